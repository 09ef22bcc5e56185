package shop;

import java.time.Instant;
import org.apache.avro.reflect.AvroSchema;

public class Times {
    public int id;
    public String note;
    public Instant at;
    @AvroSchema("{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}")
    public Instant atMicros;
}
