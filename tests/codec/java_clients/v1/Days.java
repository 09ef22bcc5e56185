package shop;

import java.time.LocalDate;
import java.time.LocalTime;
import java.util.UUID;
import org.apache.avro.reflect.AvroSchema;

public class Days {
    public int id;
    public LocalDate day;
    public LocalTime time;
    @AvroSchema("{\"type\":\"long\",\"logicalType\":\"time-micros\"}")
    public LocalTime timeMicros;
    public UUID uuid;
}
