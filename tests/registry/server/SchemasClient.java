import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.admin.Schemas;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.common.policies.data.SchemaCompatibilityStrategy;
import org.apache.pulsar.common.policies.data.TenantInfo;
import org.apache.pulsar.common.protocol.schema.PostSchemaPayload;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;
import org.apache.pulsar.common.schema.SchemaInfo;

/** What Pulsar's own admin client gets from the server at args[0], in the tenant args[1]: one line a call, without times. */
public class SchemasClient {
    public static class Order {
        public long id;
        public String note;
    }

    public static class Dated {
        public long id;
        public String note;
        public int day;
    }

    private static void say(String name, Callable<Object> call) throws Exception {
        try {
            System.out.println("> " + name + ": " + shown(call.call()));
        } catch (PulsarAdminException e) {
            String words = e.getHttpError() == null ? String.valueOf(e.getMessage()) : e.getHttpError();
            System.out.println("> " + name + ": " + e.getClass().getSimpleName() + " " + e.getStatusCode() + " " + words.lines().findFirst().orElse(""));
        }
    }

    private static String shown(Object value) {
        if (value instanceof SchemaInfo) {
            SchemaInfo info = (SchemaInfo) value;
            return info.getName() + " " + info.getType() + " " + new TreeMap<>(info.getProperties()) + " "
                + new String(info.getSchema(), StandardCharsets.UTF_8);
        }
        if (value instanceof List) {
            // Pulsar lists topics in any order.
            return ((List<?>) value).stream().map(each -> "[" + shown(each) + "]").sorted().collect(Collectors.joining());
        }
        return String.valueOf(value);
    }

    private static PostSchemaPayload payload(String type, String schema) {
        return new PostSchemaPayload(type, schema, Map.of("owner", "orders"));
    }

    public static void main(String[] args) throws Exception {
        String space = args[1] + "/ns";
        String topic = "persistent://" + space + "/orders";
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(args[0]).build()) {
            Schemas schemas = admin.schemas();
            String tenant = args[1];
            say("tenant", () -> { admin.tenants().createTenant(tenant, TenantInfo.builder().allowedClusters(Set.copyOf(admin.clusters().getClusters())).build()); return "made"; });
            say("namespace", () -> { admin.namespaces().createNamespace(space); return admin.namespaces().getNamespaces(tenant); });
            say("namespace again", () -> { admin.namespaces().createNamespace(space); return "made"; });
            say("strategy", () -> { admin.namespaces().setSchemaCompatibilityStrategy(space, SchemaCompatibilityStrategy.BACKWARD); return admin.namespaces().getSchemaCompatibilityStrategy(space); });
            say("get nothing", () -> schemas.getSchemaInfo(topic));
            String first = "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"}]}";
            String second = "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"b\",\"type\":\"string\",\"default\":\"\"}]}";
            String third = "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"c\",\"type\":\"int\"}]}";
            for (String text : List.of(first, second, first, third, "{")) {
                say("upload", () -> { schemas.createSchema(topic, payload("AVRO", text)); return "taken"; });
            }
            say("get", () -> schemas.getSchemaInfo(topic));
            say("get with version", () -> schemas.getSchemaInfoWithVersion(topic).getVersion());
            say("get 0", () -> schemas.getSchemaInfo(topic, 0));
            say("get 7", () -> schemas.getSchemaInfo(topic, 7));
            say("all", () -> schemas.getAllSchemas(topic));
            say("version", () -> schemas.getVersionBySchema(topic, payload("AVRO", second)));
            say("compatibility", () -> schemas.testCompatibility(topic, payload("AVRO", second)).isCompatibility());
            say("compatibility not", () -> schemas.testCompatibility(topic, payload("AVRO", third)).isCompatibility());
            say("metadata", () -> schemas.getSchemaMetadata(topic).index.size());
            say("delete", () -> { schemas.deleteSchema(topic); return "gone"; });
            say("get deleted", () -> schemas.getSchemaInfo(topic));
            say("upload after", () -> { schemas.createSchema(topic, payload("STRING", "")); return schemas.getSchemaInfoWithVersion(topic).getVersion(); });
            say("force", () -> { schemas.deleteSchema(topic, true); return "gone"; });
            // What `pulsar-admin schemas extract` does with a class.
            String extracted = "persistent://" + space + "/extracted";
            for (Class<?> type : List.of(Order.class, Dated.class)) {
                SchemaInfo info = Schema.AVRO(SchemaDefinition.builder().withPojo(type).withAlwaysAllowNull(true).build()).getSchemaInfo();
                say("extract", () -> { schemas.createSchema(extracted, new PostSchemaPayload("AVRO", info.getSchemaDefinition(), info.getProperties())); return schemas.getSchemaInfo(extracted); });
            }
            String pairs = "persistent://" + space + "/pairs";
            Schema<KeyValue<String, Order>> pair = Schema.KeyValue(Schema.STRING, Schema.AVRO(Order.class), KeyValueEncodingType.SEPARATED);
            say("key value", () -> { schemas.createSchema(pairs, pair.getSchemaInfo()); return schemas.getSchemaInfo(pairs).getProperties().get("kv.encoding.type"); });
            say("key value version", () -> schemas.getVersionBySchema(pairs, pair.getSchemaInfo()));
            say("topics", () -> { admin.topics().createPartitionedTopic(topic, 2); return admin.topics().getPartitionedTopicMetadata(topic).partitions; });
            say("topics grow", () -> { admin.topics().updatePartitionedTopic(topic, 3); return admin.topics().getPartitionedTopicList(space); });
            say("topic list", () -> admin.topics().getList(space));
            say("topic delete", () -> { admin.topics().deletePartitionedTopic(topic); return admin.topics().getList(space); });
            say("auto update", () -> { admin.namespaces().setIsAllowAutoUpdateSchema(space, false); return admin.namespaces().getIsAllowAutoUpdateSchema(space); });
            say("enforced", () -> { admin.namespaces().setSchemaValidationEnforced(space, true); return admin.namespaces().getSchemaValidationEnforced(space); });
            say("policies", () -> admin.namespaces().getPolicies(space).schema_compatibility_strategy);
            say("namespace delete", () -> { admin.namespaces().deleteNamespace(space); return admin.namespaces().getNamespaces(tenant); });
            say("tenant delete", () -> { admin.tenants().deleteTenant(tenant); return "gone"; });
            say("health", () -> { admin.brokers().healthcheck(); return "fine"; });
        }
    }
}
