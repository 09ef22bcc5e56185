import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.pulsar.client.api.Schema;

/** Prints, for each argument NAME=CLASS, the name and the Base64 of the schema that Pulsar's client sends for the class. */
public class Renderings {
    @SuppressWarnings({"unchecked", "rawtypes"})
    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            byte[] schema = Schema.PROTOBUF_NATIVE((Class) Class.forName(parts[1])).getSchemaInfo().getSchema();
            System.out.println("RENDERED " + parts[0] + " " + Base64.getEncoder().encodeToString(schema));
        }
    }
}
