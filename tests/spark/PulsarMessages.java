import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/** Messages as only Pulsar's Java client writes them: `PulsarMessages SERVICE_URL NAMESPACE`. */
public class PulsarMessages {
    public static void main(String[] arguments) throws Exception {
        String namespace = "persistent://" + arguments[1] + "/";
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            for (KeyValueEncodingType encoding : KeyValueEncodingType.values()) {
                Schema<KeyValue<String, Integer>> pairs = Schema.KeyValue(Schema.STRING, Schema.INT32, encoding);
                try (Producer<KeyValue<String, Integer>> producer =
                        client.newProducer(pairs).topic(namespace + "pairs-" + encoding.name().toLowerCase()).create()) {
                    producer.send(new KeyValue<>("grün", 7));
                    producer.send(new KeyValue<>("b", null));
                    producer.send(new KeyValue<>(null, 9));
                }
            }
            try (Producer<byte[]> producer = client.newProducer().topic(namespace + "keyed").create()) {
                for (String key : new String[] {"a", "b", "order-17", "grün", "日本", "\uD83D\uDE00", "x".repeat(100)}) {
                    producer.newMessage().key(key).value(new byte[0]).send();
                }
            }
            try (Producer<byte[]> producer = client.newProducer().topic(namespace + "chunked")
                    .enableBatching(false).enableChunking(true).chunkMaxMessageSize(1000).create()) {
                producer.send(new byte[] {1});
                producer.newMessage().value(null).key("no bytes").eventTime(1_700_000_000_123L).send();
                producer.newMessage().value(new byte[0]).keyBytes(new byte[] {-1, 0, 1}).properties(Map.of("a", "ä")).send();
                producer.send("x".repeat(5_000).getBytes(StandardCharsets.UTF_8));
            }
        }
    }
}
