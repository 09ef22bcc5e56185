import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.reflect.AvroSchema;
import org.apache.avro.reflect.Union;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.api.schema.GenericSchema;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.client.impl.schema.SchemaInfoImpl;
import org.apache.pulsar.client.impl.schema.generic.GenericSchemaImpl;
import org.apache.pulsar.common.schema.SchemaInfo;
import org.apache.pulsar.common.schema.SchemaType;

/** Prints two lines for each record: its definition, and the payload that Pulsar's client writes. */
public class Forms {
    public enum Level { LOW, HIGH }

    public static class Box {
        public int w = 1;
    }

    public static class All {
        public boolean booleanField = true;
        public byte byteField = -1;
        public short shortField = 2;
        public int intField = 3;
        public long longField = 4L;
        public float floatField = 1.5f;
        public double doubleField = 1e23;
        public Double doubleNaN = Double.NaN;
        public char charField = 'q';
        public char[] charArray = {'o', 'k'};
        public String stringField = "text";
        public byte[] byteArray = {1, 2, -1};
        public ByteBuffer byteBuffer = ByteBuffer.wrap(new byte[] {1, 2, -1});
        public Level enumField = Level.HIGH;
        public UUID uuidField = new UUID(1, 2);
        public BigDecimal bigDecimal = new BigDecimal("12.50");
        public BigInteger bigInteger = new BigInteger("12345678901234567890");

        @AvroSchema("{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}")
        public BigDecimal decimalField = new BigDecimal("12.50");

        public Instant instantField = Instant.parse("2024-01-02T03:04:05.678Z");

        @AvroSchema("{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}")
        public Instant instantMicros = Instant.parse("2024-01-02T03:04:05.678901Z");

        @AvroSchema("{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}")
        public long longMillis = 1704164645678L;

        public LocalDate localDate = LocalDate.of(2024, 1, 2);
        public LocalTime localTime = LocalTime.of(3, 4, 5, 678_000_000);

        @AvroSchema("{\"type\":\"long\",\"logicalType\":\"time-micros\"}")
        public LocalTime localTimeMicros = LocalTime.of(3, 4);

        public LocalDateTime localDateTime = LocalDateTime.of(2024, 1, 2, 3, 4, 5, 678_000_000);
        public List<Integer> listField = List.of(1, 2);
        public Map<String, Integer> mapField = Map.of("a", 1);
        public Map<Integer, String> mapByInteger = Map.of(7, "a");
        public Box recordField = new Box();

        @Union({String.class, Long.class})
        public Object unionField = "text";
    }

    public static class WithJsr310 {
        public Instant instantField = Instant.parse("2024-01-02T03:04:05.678Z");
    }

    static final String GENERIC = "{\"type\":\"record\",\"name\":\"G\",\"fields\":["
            + "{\"name\":\"bytesField\",\"type\":\"bytes\"},"
            + "{\"name\":\"longMillis\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}},"
            + "{\"name\":\"instantField\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}},"
            + "{\"name\":\"bigDecimal\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}},"
            + "{\"name\":\"decimalBytes\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}}]}";

    public static void main(String[] arguments) throws Exception {
        Schema<All> schema = Schema.JSON(SchemaDefinition.<All>builder().withPojo(All.class).build());
        print(schema.getSchemaInfo().getSchemaDefinition(), schema.encode(new All()));
        Schema<WithJsr310> withJsr310 = Schema.JSON(SchemaDefinition.<WithJsr310>builder()
                .withPojo(WithJsr310.class).withJSR310ConversionEnabled(true).build());
        print(withJsr310.getSchemaInfo().getSchemaDefinition(), withJsr310.encode(new WithJsr310()));
        SchemaInfo info = SchemaInfoImpl.builder().name("G").type(SchemaType.JSON)
                .schema(GENERIC.getBytes(StandardCharsets.UTF_8)).properties(Map.of()).build();
        GenericSchema<GenericRecord> generic = GenericSchemaImpl.of(info);
        print(GENERIC, generic.encode(generic.newRecordBuilder()
                .set("bytesField", new byte[] {1, 2, -1})
                .set("longMillis", 1704164645678L)
                .set("instantField", Instant.parse("2024-01-02T03:04:05.678Z"))
                .set("bigDecimal", new BigDecimal("12.50"))
                .set("decimalBytes", ByteBuffer.wrap(new byte[] {4, -30}))
                .build()));
        System.exit(0);
    }

    static void print(String definition, byte[] payload) {
        System.out.println(definition.replaceAll("\\s+", " "));
        System.out.println(new String(payload, StandardCharsets.UTF_8));
    }
}
