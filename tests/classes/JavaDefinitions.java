import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.SchemaDefinition;

/** Prints the definition of one class under each choice of the two options, a line each: null or not, then jsr310 or not. */
public class JavaDefinitions {
    public static class Line {
        public String sku;
        public int count;
    }

    public enum Size { SMALL, WIDE }

    public static class Order {
        public String id;
        public long number;
        public int count;
        public double total;
        public float weight;
        public boolean paid;
        public Instant at;
        public LocalDate day;
        public LocalTime opens;
        public LocalDateTime local;
        public UUID ref;
        public Size size;
        public Line line;
        public List<String> tags;
        public Map<String, Long> counts;
    }

    public static void main(String[] args) {
        for (boolean nullable : new boolean[] {false, true}) {
            for (boolean jsr310 : new boolean[] {false, true}) {
                SchemaDefinition<Order> definition = SchemaDefinition.<Order>builder()
                        .withPojo(Order.class)
                        .withAlwaysAllowNull(nullable)
                        .withJSR310ConversionEnabled(jsr310)
                        .build();
                System.out.println(Schema.AVRO(definition).getSchemaInfo().getSchemaDefinition().replaceAll("\\s+", " "));
            }
        }
    }
}
