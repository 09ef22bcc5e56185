import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/**
 * What Pulsar's Java client makes of messages: `PulsarReadings SERVICE_URL NAMESPACE TOPIC...`, a line behind `> ` for each, with the
 * version it has and its value. TOPIC=INLINE and TOPIC=SEPARATED are pairs of STRING and INT32 for a reader that asks for such; of
 * any other the broker says what they are.
 */
public class PulsarReadings {
    public static void main(String[] arguments) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            for (int at = 2; at < arguments.length; at++) {
                String[] parts = arguments[at].split("=");
                Schema<?> schema = parts.length == 1
                        ? Schema.AUTO_CONSUME()
                        : Schema.KeyValue(Schema.STRING, Schema.INT32, KeyValueEncodingType.valueOf(parts[1]));
                read(client, schema, "persistent://" + arguments[1] + "/" + parts[0], parts[0]);
            }
        }
    }

    private static <T> void read(PulsarClient client, Schema<T> schema, String topic, String name) throws Exception {
        try (Reader<T> reader = client.newReader(schema).topic(topic).startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) {
                Message<T> message = reader.readNext(20, TimeUnit.SECONDS);
                byte[] version = message.getSchemaVersion();
                System.out.write(("> " + name + " " + version[version.length - 1] + " " + message.getProperties() + " "
                        + message.getEventTime() + " " + shown(message.getValue()) + "\n").getBytes(StandardCharsets.UTF_8));
            }
        }
        System.out.flush();
    }

    private static String shown(Object value) {
        if (value instanceof KeyValue<?, ?> pair) {
            return shown(pair.getKey()) + " = " + shown(pair.getValue());
        }
        if (value instanceof GenericRecord record) {
            Object found = record.getNativeObject();
            return found instanceof org.apache.avro.generic.GenericRecord ? found.toString() : shown(found);
        }
        return value instanceof java.util.Date date ? date.getTime() + " ms" : String.valueOf(value);
    }
}
