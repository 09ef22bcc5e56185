import java.util.Base64;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.common.schema.KeyValue;

/**
 * What Pulsar's Java client reads with AUTO_CONSUME, and of topics called after a primitive type also with its schema:
 * `MessageReader SERVICE_URL NAMESPACE TOPIC...`, a line for each message.
 */
public class MessageReader {
    public static void main(String[] arguments) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            for (int number = 2; number < arguments.length; number++) {
                String topic = "persistent://" + arguments[1] + "/" + arguments[number];
                read(client, topic, Schema.AUTO_CONSUME());
                if (topic.endsWith("int64")) {
                    read(client, topic, Schema.INT64);
                } else if (topic.endsWith("boolean")) {
                    read(client, topic, Schema.BOOL);
                }
            }
        }
    }

    private static <T> void read(PulsarClient client, String topic, Schema<T> schema) throws Exception {
        try (Reader<T> reader = client.newReader(schema).topic(topic).startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) {
                Message<T> message = reader.readNext(10, TimeUnit.SECONDS);
                byte[] version = message.getSchemaVersion();
                String shown = version == null || version.length == 0 ? "-" : String.valueOf(version[7]);
                System.out.println(topic.substring(topic.lastIndexOf('/') + 1) + " " + shown + " " + shown(message.getValue()));
            }
        }
    }

    private static String shown(Object value) {
        if (value instanceof KeyValue) {
            KeyValue<?, ?> pair = (KeyValue<?, ?>) value;
            return shown(pair.getKey()) + "=" + shown(pair.getValue());
        }
        if (value instanceof GenericRecord) {
            return shown(((GenericRecord) value).getNativeObject());
        }
        if (value instanceof byte[]) {
            return Base64.getEncoder().encodeToString((byte[]) value);
        }
        return String.valueOf(value);
    }
}
