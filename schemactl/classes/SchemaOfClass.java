import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.common.schema.SchemaInfo;

/** Prints the schema that Pulsar's client registers for a class, in base64: the definition, then each property's name and value. */
public class SchemaOfClass {
    @SuppressWarnings({"rawtypes", "unchecked"})
    public static void main(String[] arguments) throws Exception {
        Class type = Class.forName(arguments[0]);
        SchemaDefinition definition = SchemaDefinition.builder()
                .withPojo(type)
                .withAlwaysAllowNull(Boolean.parseBoolean(arguments[2]))
                .withJSR310ConversionEnabled(Boolean.parseBoolean(arguments[3]))
                .build();
        Schema schema = switch (arguments[1]) {
            case "JSON" -> Schema.JSON(definition);
            case "PROTOBUF_NATIVE" -> Schema.PROTOBUF_NATIVE(type);
            default -> Schema.AVRO(definition);
        };
        SchemaInfo info = schema.getSchemaInfo();
        print(info.getSchema());
        for (Map.Entry<String, String> property : info.getProperties().entrySet()) {
            print(property.getKey().getBytes(StandardCharsets.UTF_8));
            print(property.getValue().getBytes(StandardCharsets.UTF_8));
        }
    }

    private static void print(byte[] bytes) {
        System.out.println("schemactl:" + Base64.getEncoder().encodeToString(bytes));
    }
}
