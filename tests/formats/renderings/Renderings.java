import com.google.protobuf.Message;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;

/**
 * Prints, for each argument NAME=CLASS, the name and the Base64 of the schema that Pulsar's client sends for the class.
 *
 * With the first arguments `connect URL NAMESPACE FOLDER`, it prints whether a producer with this schema may connect to the topic
 * NAME, and then sends a message under the registered text in FOLDER/NAME.json.
 */
public class Renderings {
    @SuppressWarnings({"unchecked", "rawtypes"})
    public static void main(String[] arguments) throws Exception {
        boolean connects = arguments[0].equals("connect");
        PulsarClient client = connects ? PulsarClient.builder().serviceUrl(arguments[1]).build() : null;
        for (int index = connects ? 4 : 0; index < arguments.length; index++) {
            String[] parts = arguments[index].split("=", 2);
            Class<Message> type = (Class<Message>) Class.forName(parts[1]);
            Schema<Message> schema = Schema.PROTOBUF_NATIVE((Class) type);
            if (!connects) {
                byte[] text = schema.getSchemaInfo().getSchema();
                System.out.println("RENDERED " + parts[0] + " " + Base64.getEncoder().encodeToString(text));
                continue;
            }
            String topic = arguments[2] + "/" + parts[0];
            try (Producer<Message> producer = client.newProducer(schema).topic(topic).create()) {
                System.out.println("CONNECTED " + parts[0]);
            } catch (PulsarClientException error) {
                System.out.println("REJECTED " + parts[0]);
            }
            Message message = (Message) type.getMethod("getDefaultInstance").invoke(null);
            byte[] definition =
                    Files.readString(Path.of(arguments[3], parts[0] + ".json")).strip().getBytes(StandardCharsets.UTF_8);
            Schema<Message> registered = new RegisteredSchema<>((com.google.protobuf.Parser) message.getParserForType(), definition);
            try (Producer<Message> producer = client.newProducer(registered).topic(topic).create()) {
                producer.newMessage().value(message.newBuilderForType().buildPartial()).send();
                System.out.println("SENT " + parts[0]);
            }
        }
        if (connects) {
            client.close();
        }
    }
}
