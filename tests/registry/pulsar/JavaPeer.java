import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.schema.Field;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.api.schema.GenericRecordBuilder;
import org.apache.pulsar.client.api.schema.GenericSchema;
import org.apache.pulsar.common.schema.SchemaInfo;
import org.apache.pulsar.common.schema.SchemaType;

/** Pulsar's Java client on the other side: sends a record, or receives some, as its arguments say. */
public final class JavaPeer {
    public static void main(String[] arguments) throws Exception {
        PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
        for (int each = 2; each < arguments.length; each++) {
            String[] words = arguments[each].split("\t");
            if (words[0].equals("send")) {
                send(client, words[1], words[2], words[3]);
            } else {
                receive(client, words[1], Integer.parseInt(words[2]));
            }
        }
        client.close();
    }

    private static void send(PulsarClient client, String topic, String definition, String json) throws Exception {
        GenericSchema<GenericRecord> schema = Schema.generic(SchemaInfo.builder().name("").type(SchemaType.AVRO)
                .schema(definition.getBytes(StandardCharsets.UTF_8)).properties(Map.of()).build());
        org.apache.avro.Schema avro = new org.apache.avro.Schema.Parser().parse(definition);
        org.apache.avro.generic.GenericRecord value =
                new GenericDatumReader<org.apache.avro.generic.GenericRecord>(avro)
                        .read(null, DecoderFactory.get().jsonDecoder(avro, json));
        GenericRecordBuilder builder = schema.newRecordBuilder();
        for (Field field : schema.getFields()) {
            builder.set(field, value.get(field.getName()));
        }
        try (Producer<GenericRecord> producer = client.newProducer(schema).topic(topic).create()) {
            producer.send(builder.build());
        }
    }

    private static void receive(PulsarClient client, String topic, int count) throws Exception {
        try (Consumer<GenericRecord> consumer = client.newConsumer(Schema.AUTO_CONSUME()).topic(topic)
                .subscriptionName("java").subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            for (int each = 0; each < count; each++) {
                Message<GenericRecord> message = consumer.receive(20, TimeUnit.SECONDS);
                Object value = message.getValue().getNativeObject();
                System.out.println("> " + ByteBuffer.wrap(message.getSchemaVersion()).getLong() + " " + value);
            }
        }
    }
}
