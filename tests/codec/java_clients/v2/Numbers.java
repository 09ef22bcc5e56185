package shop;

import java.math.BigDecimal;
import org.apache.avro.reflect.AvroSchema;

public class Numbers {
    public short small;
    public byte tiny;
    public Short smallN;
    @AvroSchema("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":12,\"scale\":2}")
    public BigDecimal price;
    public String note;
}
