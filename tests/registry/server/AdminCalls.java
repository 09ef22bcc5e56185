import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.pulsar.client.admin.*;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.*;
import org.apache.pulsar.client.impl.schema.*;
import org.apache.pulsar.common.naming.TopicDomain;
import org.apache.pulsar.common.policies.data.*;
import org.apache.pulsar.common.protocol.schema.PostSchemaPayload;
import org.apache.pulsar.common.schema.*;
import org.apache.pulsar.common.util.ObjectMapperFactory;

/** Calls Pulsar's admin client at args[0], in tenants that begin with args[1], and prints one line for each call. */
public class AdminCalls {
    static final ObjectMapper JSON = ObjectMapperFactory.create().enable(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS);
    static int n;

    interface Action { void call() throws Exception; }

    static void run(String name, Action action) throws Exception { report(name, () -> { action.call(); return "ok"; }); }

    static void report(String name, Callable<Object> call) throws Exception {
        String id = String.format("%03d %s", ++n, name);
        try {
            System.out.println("> " + id + ": " + format(call.call()));
        } catch (PulsarAdminException e) {
            String text = e.getHttpError() == null ? String.valueOf(e.getMessage()) : e.getHttpError();
            int end = text.indexOf("\n\nStacktrace");
            if (end > 0) { text = text.substring(0, end); }
            System.out.println("> " + id + ": " + e.getClass().getSimpleName() + " " + e.getStatusCode() + " " + text.replace("\n", "\\n"));
        } catch (Exception e) {
            System.out.println("> " + id + ": !" + e.getClass().getName() + " " + String.valueOf(e.getMessage()).replace("\n", "\\n"));
        }
    }

    /** Calls `setIsAllowAutoUpdateSchema`, which has a third argument from 5.0 on: the value for replicators, or null. */
    static void setAllowAutoUpdate(Namespaces namespaces, String namespace, boolean isAllowed) throws Exception {
        for (Method method : Namespaces.class.getMethods()) {
            if (method.getName().equals("setIsAllowAutoUpdateSchema")) {
                Object[] arguments = Arrays.copyOf(new Object[] {namespace, isAllowed}, method.getParameterCount());
                try {
                    method.invoke(namespaces, arguments);
                } catch (InvocationTargetException e) {
                    throw (Exception) e.getCause();
                }
                return;
            }
        }
        throw new NoSuchMethodException("setIsAllowAutoUpdateSchema");
    }

    /** Reports a topic policy once it has the expected value: brokers need a moment. */
    static void reportOnceSet(String name, Object expected, Callable<Object> call) throws Exception {
        Object last = null;
        for (int i = 0; i < 40; i++) {
            try { last = call.call(); } catch (Exception e) { last = e; }
            if (Objects.equals(last, expected)) { break; }
            Thread.sleep(100);
        }
        Object value = last;
        report(name, () -> { if (value instanceof PulsarAdminException) { throw (Exception) value; } return value; });
    }

    static String format(Object value) throws Exception {
        if (value == null) { return "null"; }
        if (value instanceof SchemaInfo) {
            SchemaInfo info = (SchemaInfo) value;
            return info.getName() + " " + info.getType() + " " + new TreeMap<>(info.getProperties()) + " " + Base64.getEncoder().encodeToString(info.getSchema()) + " = "
                + new String(info.getSchema(), StandardCharsets.UTF_8).replace("\n", "\\n");
        }
        if (value instanceof SchemaInfoWithVersion) {
            SchemaInfoWithVersion v = (SchemaInfoWithVersion) value;
            return v.getVersion() + " " + format(v.getSchemaInfo());
        }
        if (value instanceof Collection) {
            List<String> items = new ArrayList<>();
            for (Object item : (Collection<?>) value) { items.add("[" + format(item) + "]"); }
            if (!(value instanceof List) || items.size() > 0 && !(((List<?>) value).get(0) instanceof SchemaInfo)) { Collections.sort(items); }
            return String.join("", items);
        }
        if (value instanceof String || value instanceof Number || value instanceof Boolean || value instanceof Enum) { return value.getClass().getSimpleName() + " " + value; }
        return JSON.writeValueAsString(JSON.treeToValue(JSON.valueToTree(value), Object.class));
    }

    static PostSchemaPayload payload(String type, String schema) { return new PostSchemaPayload(type, schema, new HashMap<>(Map.of("owner", "orders"))); }

    static String avro(String... fields) {
        return "{\"type\":\"record\",\"name\":\"R\",\"namespace\":\"a.b\",\"fields\":[" + String.join(",", fields) + "]}";
    }

    /** Sets the clusters of a namespace: from 4.2 on, the method has a third argument. */
    static void replicate(Namespaces namespaces, String ns, Set<String> clusters) throws Exception {
        for (java.lang.reflect.Method m : Namespaces.class.getMethods()) {
            if (!m.getName().equals("setNamespaceReplicationClusters")) { continue; }
            try {
                if (m.getParameterCount() == 2) { m.invoke(namespaces, ns, clusters); } else { m.invoke(namespaces, ns, clusters, false); }
            } catch (java.lang.reflect.InvocationTargetException e) { throw (Exception) e.getCause(); }
            return;
        }
    }

    public static class Order { public long id; public String note; }
    public static class Dated { public long id; public String note; public Integer day; }
    public static class Broken { public String id; }

    @SuppressWarnings({"unchecked", "deprecation"})
    public static void main(String[] args) throws Exception {
        String tenant = args[1];
        String ns = tenant + "/ns";
        String t = "persistent://" + ns + "/orders";
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(args[0]).requestTimeout(20, TimeUnit.SECONDS).build()) {
            Schemas schemas = admin.schemas();
            Namespaces namespaces = admin.namespaces();
            Topics topics = admin.topics();
            Tenants tenants = admin.tenants();
            org.apache.pulsar.client.admin.TopicPolicies local = admin.topicPolicies();
            Set<String> clusters = Set.of("standalone");

            // clusters, brokers
            report("clusters", () -> admin.clusters().getClusters());
            report("cluster missing", () -> admin.clusters().getCluster("nowhere"));
            report("active brokers of cluster missing", () -> admin.brokers().getActiveBrokers("nowhere"));
            report("active brokers count", () -> admin.brokers().getActiveBrokers("standalone").size());
            report("active brokers all", () -> admin.brokers().getActiveBrokers().size());
            report("leader", () -> admin.brokers().getLeaderBroker().getServiceUrl() != null);
            report("version", () -> admin.brokers().getVersion());
            run("health", () -> admin.brokers().healthcheck());
            report("runtime settings", () -> new TreeMap<>(admin.brokers().getRuntimeConfigurations()).entrySet().stream().filter(e -> e.getKey().toLowerCase().contains("schema")).map(Object::toString).filter(e -> !e.contains("lass") && !e.contains("Registry") && !e.contains("Ledger")).collect(Collectors.toList()));
            report("dynamic settings", () -> admin.brokers().getAllDynamicConfigurations());
            report("dynamic setting names has one", () -> admin.brokers().getDynamicConfigurationNames().contains("schemaCompatibilityStrategy"));

            // tenants
            run("tenant create null info clusters", () -> tenants.createTenant(tenant, TenantInfo.builder().build()));
            run("tenant create bad cluster", () -> tenants.createTenant(tenant, TenantInfo.builder().allowedClusters(Set.of("nowhere")).build()));
            run("tenant create", () -> tenants.createTenant(tenant, TenantInfo.builder().allowedClusters(clusters).adminRoles(Set.of("team")).build()));
            run("tenant create again", () -> tenants.createTenant(tenant, TenantInfo.builder().allowedClusters(clusters).build()));
            run("tenant create bad name", () -> tenants.createTenant("a b", TenantInfo.builder().allowedClusters(clusters).build()));
            report("tenant info", () -> tenants.getTenantInfo(tenant));
            report("tenant info missing", () -> tenants.getTenantInfo(tenant + "x"));
            run("tenant update", () -> tenants.updateTenant(tenant, TenantInfo.builder().allowedClusters(clusters).adminRoles(Set.of("a", "b")).build()));
            report("tenant info after", () -> tenants.getTenantInfo(tenant).getAdminRoles());
            run("tenant update missing", () -> tenants.updateTenant(tenant + "x", TenantInfo.builder().allowedClusters(clusters).build()));
            report("tenants has it", () -> tenants.getTenants().contains(tenant));

            // namespaces
            report("namespaces none", () -> namespaces.getNamespaces(tenant));
            report("namespaces of missing tenant", () -> namespaces.getNamespaces(tenant + "x"));
            run("namespace create", () -> namespaces.createNamespace(ns));
            run("namespace create again", () -> namespaces.createNamespace(ns));
            run("namespace create in missing tenant", () -> namespaces.createNamespace(tenant + "x/ns"));
            run("namespace create with clusters", () -> namespaces.createNamespace(tenant + "/clustered", clusters));
            run("namespace create with bad clusters", () -> namespaces.createNamespace(tenant + "/badly", Set.of("nowhere")));
            run("namespace create with bundles", () -> namespaces.createNamespace(tenant + "/bundled", 16));
            report("namespace bundles", () -> namespaces.getBundles(tenant + "/bundled"));
            report("namespace bundles of default", () -> namespaces.getBundles(ns));
            run("namespace create with policies", () -> { Policies p = new Policies(); p.schema_compatibility_strategy = SchemaCompatibilityStrategy.FORWARD; p.is_allow_auto_update_schema = false; p.schema_validation_enforced = true; p.retention_policies = new RetentionPolicies(60, 100); p.message_ttl_in_seconds = 7; p.replication_clusters = clusters; p.bundles = BundlesData.builder().numBundles(4).build(); namespaces.createNamespace(tenant + "/politic", p); });
            report("namespace policies of it", () -> namespaces.getPolicies(tenant + "/politic"));
            report("its strategy", () -> namespaces.getSchemaCompatibilityStrategy(tenant + "/politic"));
            report("its retention", () -> namespaces.getRetention(tenant + "/politic"));
            report("its ttl", () -> namespaces.getNamespaceMessageTTL(tenant + "/politic"));
            report("its auto update", () -> namespaces.getIsAllowAutoUpdateSchema(tenant + "/politic"));
            report("its enforced", () -> namespaces.getSchemaValidationEnforced(tenant + "/politic"));
            report("namespaces", () -> namespaces.getNamespaces(tenant));
            report("policies new", () -> namespaces.getPolicies(ns));
            report("policies of missing", () -> namespaces.getPolicies(tenant + "/missing"));
            report("strategy new", () -> namespaces.getSchemaCompatibilityStrategy(ns));
            report("auto strategy new", () -> namespaces.getSchemaAutoUpdateCompatibilityStrategy(ns));
            report("auto update new", () -> namespaces.getIsAllowAutoUpdateSchema(ns));
            report("enforced new", () -> namespaces.getSchemaValidationEnforced(ns));
            report("enforced new applied", () -> namespaces.getSchemaValidationEnforced(ns, true));
            for (SchemaCompatibilityStrategy s : SchemaCompatibilityStrategy.values()) {
                run("strategy set " + s, () -> namespaces.setSchemaCompatibilityStrategy(ns, s));
                report("strategy got", () -> namespaces.getSchemaCompatibilityStrategy(ns));
            }
            run("strategy set missing ns", () -> namespaces.setSchemaCompatibilityStrategy(tenant + "/missing", SchemaCompatibilityStrategy.FULL));
            for (SchemaAutoUpdateCompatibilityStrategy s : SchemaAutoUpdateCompatibilityStrategy.values()) {
                run("auto strategy set " + s, () -> namespaces.setSchemaAutoUpdateCompatibilityStrategy(ns, s));
                report("auto strategy got", () -> namespaces.getSchemaAutoUpdateCompatibilityStrategy(ns));
            }
            run("strategy set UNDEFINED", () -> namespaces.setSchemaCompatibilityStrategy(ns, SchemaCompatibilityStrategy.UNDEFINED));
            run("auto update off", () -> setAllowAutoUpdate(namespaces, ns, false));
            report("auto update got", () -> namespaces.getIsAllowAutoUpdateSchema(ns));
            run("auto update on", () -> setAllowAutoUpdate(namespaces, ns, true));
            run("enforced on", () -> namespaces.setSchemaValidationEnforced(ns, true));
            report("enforced got", () -> namespaces.getSchemaValidationEnforced(ns));
            run("enforced off", () -> namespaces.setSchemaValidationEnforced(ns, false));
            report("policies later", () -> namespaces.getPolicies(ns));

            // namespace settings
            report("retention none", () -> namespaces.getRetention(ns));
            run("retention set", () -> namespaces.setRetention(ns, new RetentionPolicies(10, 20)));
            report("retention got", () -> namespaces.getRetention(ns));
            run("retention bad", () -> namespaces.setRetention(ns, new RetentionPolicies(0, 20)));
            run("retention remove", () -> namespaces.removeRetention(ns));
            report("retention gone", () -> namespaces.getRetention(ns));
            report("ttl none", () -> namespaces.getNamespaceMessageTTL(ns));
            run("ttl set", () -> namespaces.setNamespaceMessageTTL(ns, 100));
            report("ttl got", () -> namespaces.getNamespaceMessageTTL(ns));
            run("ttl bad", () -> namespaces.setNamespaceMessageTTL(ns, -5));
            run("ttl remove", () -> namespaces.removeNamespaceMessageTTL(ns));
            report("dedup none", () -> namespaces.getDeduplicationStatus(ns));
            run("dedup set", () -> namespaces.setDeduplicationStatus(ns, true));
            report("dedup got", () -> namespaces.getDeduplicationStatus(ns));
            run("dedup remove", () -> namespaces.removeDeduplicationStatus(ns));
            report("inactive none", () -> namespaces.getInactiveTopicPolicies(ns));
            run("inactive set", () -> namespaces.setInactiveTopicPolicies(ns, new InactiveTopicPolicies(InactiveTopicDeleteMode.delete_when_no_subscriptions, 10, false)));
            report("inactive got", () -> namespaces.getInactiveTopicPolicies(ns));
            run("inactive remove", () -> namespaces.removeInactiveTopicPolicies(ns));
            report("compaction none", () -> namespaces.getCompactionThreshold(ns));
            run("compaction set", () -> namespaces.setCompactionThreshold(ns, 1000));
            report("compaction got", () -> namespaces.getCompactionThreshold(ns));
            run("compaction bad", () -> namespaces.setCompactionThreshold(ns, -1));
            run("compaction remove", () -> namespaces.removeCompactionThreshold(ns));
            report("clusters of ns", () -> namespaces.getNamespaceReplicationClusters(ns));
            run("clusters of ns set", () -> replicate(namespaces, ns, clusters));
            run("clusters of ns bad", () -> replicate(namespaces, ns, Set.of("nowhere")));
            run("clusters of ns empty", () -> replicate(namespaces, ns, Set.of()));
            run("properties set", () -> namespaces.setProperties(ns, Map.of("a", "1", "b", "2")));
            run("property set", () -> namespaces.setProperty(ns, "c", "3"));
            report("property got", () -> namespaces.getProperty(ns, "c"));
            report("property missing", () -> namespaces.getProperty(ns, "zz"));
            report("properties got", () -> namespaces.getProperties(ns));
            report("property removed", () -> namespaces.removeProperty(ns, "a"));
            run("properties clear", () -> namespaces.clearProperties(ns));
            report("properties cleared", () -> namespaces.getProperties(ns));
            report("permissions", () -> namespaces.getPermissions(ns));
            report("auto topic creation", () -> namespaces.getAutoTopicCreation(ns));
            run("auto topic creation set", () -> namespaces.setAutoTopicCreation(ns, AutoTopicCreationOverride.builder().allowAutoTopicCreation(false).build()));
            run("auto topic creation remove", () -> namespaces.removeAutoTopicCreation(ns));
            report("backlog quotas", () -> namespaces.getBacklogQuotaMap(ns));
            report("persistence", () -> namespaces.getPersistence(ns));
            report("max topics", () -> namespaces.getMaxTopicsPerNamespace(ns));
            report("allowed clusters", () -> namespaces.getNamespaceAllowedClusters(ns));

            // topics
            run("topic create", () -> topics.createNonPartitionedTopic(t));
            run("topic create again", () -> topics.createNonPartitionedTopic(t));
            run("topic create with properties", () -> topics.createNonPartitionedTopic("persistent://" + ns + "/props", Map.of("k", "v")));
            report("topic properties", () -> topics.getProperties("persistent://" + ns + "/props"));
            run("topic properties more", () -> topics.updateProperties("persistent://" + ns + "/props", Map.of("k2", "v2")));
            run("topic properties less", () -> topics.removeProperties("persistent://" + ns + "/props", "k"));
            report("topic properties then", () -> topics.getProperties("persistent://" + ns + "/props"));
            report("topic properties of missing", () -> topics.getProperties("persistent://" + ns + "/missing"));
            run("topic create in missing ns", () -> topics.createNonPartitionedTopic("persistent://" + tenant + "/missing/orders"));
            run("topic create odd name", () -> topics.createNonPartitionedTopic("persistent://" + ns + "/a b%c+d\u00fc"));
            run("topic create with slash", () -> topics.createNonPartitionedTopic("persistent://" + ns + "/a/b"));
            run("partitioned create", () -> topics.createPartitionedTopic("persistent://" + ns + "/parts", 3));
            run("partitioned create 0", () -> topics.createPartitionedTopic("persistent://" + ns + "/parts0", 0));
            run("partitioned create again", () -> topics.createPartitionedTopic("persistent://" + ns + "/parts", 3));
            run("partitioned create with properties", () -> topics.createPartitionedTopic("persistent://" + ns + "/parts2", 2, Map.of("p", "q")));
            report("partitioned properties", () -> topics.getProperties("persistent://" + ns + "/parts2"));
            report("partitioned metadata", () -> topics.getPartitionedTopicMetadata("persistent://" + ns + "/parts"));
            report("partitioned metadata with properties", () -> topics.getPartitionedTopicMetadata("persistent://" + ns + "/parts2"));
            report("partitioned metadata of single", () -> topics.getPartitionedTopicMetadata(t));
            report("partitioned metadata of missing", () -> topics.getPartitionedTopicMetadata("persistent://" + ns + "/missing"));
            run("partitioned grow", () -> topics.updatePartitionedTopic("persistent://" + ns + "/parts", 4));
            run("partitioned shrink", () -> topics.updatePartitionedTopic("persistent://" + ns + "/parts", 2));
            run("partitioned same", () -> topics.updatePartitionedTopic("persistent://" + ns + "/parts", 4));
            run("partitioned grow missing", () -> topics.updatePartitionedTopic("persistent://" + ns + "/missing", 4));
            run("partitioned create missed", () -> topics.createMissedPartitions("persistent://" + ns + "/parts"));
            run("non-persistent partitioned", () -> topics.createPartitionedTopic("non-persistent://" + ns + "/np", 2));
            run("non-persistent single", () -> topics.createNonPartitionedTopic("non-persistent://" + ns + "/np1"));
            report("list", () -> topics.getList(ns));
            report("list persistent", () -> topics.getList(ns, TopicDomain.persistent));
            report("list non-persistent", () -> topics.getList(ns, TopicDomain.non_persistent));
            report("list partitioned", () -> topics.getPartitionedTopicList(ns));
            report("list of missing ns", () -> topics.getList(tenant + "/missing"));
            report("list partitioned of missing ns", () -> topics.getPartitionedTopicList(tenant + "/missing"));
            report("namespace topics", () -> namespaces.getTopics(ns));
            report("namespace topics all", () -> namespaces.getTopics(ns, ListNamespaceTopicsOptions.builder().mode(Mode.ALL).build()));
            report("namespace topics non-persistent", () -> namespaces.getTopics(ns, ListNamespaceTopicsOptions.builder().mode(Mode.NON_PERSISTENT).build()));
            report("list with system topics is more", () -> topics.getList(ns, TopicDomain.persistent, ListTopicsOptions.builder().includeSystemTopic(false).build()).size());
            report("subscriptions", () -> topics.getSubscriptions(t));
            report("topic permissions", () -> topics.getPermissions(t));

            // topic policies
            report("topic strategy none", () -> local.getSchemaCompatibilityStrategy(t, false));
            report("topic strategy applied", () -> local.getSchemaCompatibilityStrategy(t, true));
            run("topic strategy set", () -> local.setSchemaCompatibilityStrategy(t, SchemaCompatibilityStrategy.BACKWARD));
            reportOnceSet("topic strategy got", SchemaCompatibilityStrategy.BACKWARD, () -> local.getSchemaCompatibilityStrategy(t, false));
            report("topic strategy in force", () -> local.getSchemaCompatibilityStrategy(t, true));
            run("topic strategy remove", () -> local.removeSchemaCompatibilityStrategy(t));
            reportOnceSet("topic strategy gone", null, () -> local.getSchemaCompatibilityStrategy(t, false));
            run("topic strategy UNDEFINED", () -> local.setSchemaCompatibilityStrategy(t, SchemaCompatibilityStrategy.UNDEFINED));
            report("topic strategy of missing", () -> local.getSchemaCompatibilityStrategy("persistent://" + ns + "/missing", false));
            run("topic strategy set of missing", () -> local.setSchemaCompatibilityStrategy("persistent://" + ns + "/missing", SchemaCompatibilityStrategy.FULL));
            run("topic strategy set of partition", () -> local.setSchemaCompatibilityStrategy("persistent://" + ns + "/parts-partition-0", SchemaCompatibilityStrategy.FULL));
            run("topic strategy set of partitioned", () -> local.setSchemaCompatibilityStrategy("persistent://" + ns + "/parts", SchemaCompatibilityStrategy.FULL));
            reportOnceSet("topic strategy got of partitioned", SchemaCompatibilityStrategy.FULL, () -> local.getSchemaCompatibilityStrategy("persistent://" + ns + "/parts", false));
            report("topic enforced", () -> topics.getSchemaValidationEnforced(t, false));
            run("topic enforced set", () -> topics.setSchemaValidationEnforced(t, true));
            reportOnceSet("topic enforced got", true, () -> topics.getSchemaValidationEnforced(t, false));
            run("topic enforced unset", () -> topics.setSchemaValidationEnforced(t, false));
            report("topic retention none", () -> local.getRetention(t));
            run("topic retention set", () -> local.setRetention(t, new RetentionPolicies(5, 6)));
            reportOnceSet("topic retention got", new RetentionPolicies(5, 6), () -> local.getRetention(t));
            run("topic retention remove", () -> local.removeRetention(t));
            reportOnceSet("topic retention gone", null, () -> local.getRetention(t));
            report("topic retention applied", () -> local.getRetention(t, true));
            run("topic ttl set", () -> local.setMessageTTL(t, 50));
            reportOnceSet("topic ttl got", 50, () -> local.getMessageTTL(t));
            run("topic ttl remove", () -> local.removeMessageTTL(t));
            reportOnceSet("topic ttl gone", null, () -> local.getMessageTTL(t));
            report("topic ttl applied", () -> local.getMessageTTL(t, true));
            run("topic dedup set", () -> local.setDeduplicationStatus(t, true));
            reportOnceSet("topic dedup got", true, () -> local.getDeduplicationStatus(t));
            run("topic dedup remove", () -> local.removeDeduplicationStatus(t));
            reportOnceSet("topic dedup gone", null, () -> local.getDeduplicationStatus(t));
            report("topic dedup applied", () -> local.getDeduplicationStatus(t, true));
            run("topic compaction set", () -> local.setCompactionThreshold(t, 9));
            reportOnceSet("topic compaction got", 9L, () -> local.getCompactionThreshold(t));
            run("topic compaction remove", () -> local.removeCompactionThreshold(t));
            reportOnceSet("topic compaction gone", null, () -> local.getCompactionThreshold(t));
            report("topic compaction applied", () -> local.getCompactionThreshold(t, true));
            run("topic inactive set", () -> local.setInactiveTopicPolicies(t, new InactiveTopicPolicies(InactiveTopicDeleteMode.delete_when_subscriptions_caught_up, 11, true)));
            reportOnceSet("topic inactive got", new InactiveTopicPolicies(InactiveTopicDeleteMode.delete_when_subscriptions_caught_up, 11, true), () -> local.getInactiveTopicPolicies(t));
            run("topic inactive remove", () -> local.removeInactiveTopicPolicies(t));
            reportOnceSet("topic inactive gone", null, () -> local.getInactiveTopicPolicies(t));
            report("topic inactive applied", () -> local.getInactiveTopicPolicies(t, true));
            report("topic clusters", () -> local.getReplicationClusters(t, false));
            report("topic clusters applied", () -> local.getReplicationClusters(t, true));

            // schemas: every type
            namespaces.setSchemaCompatibilityStrategy(ns, SchemaCompatibilityStrategy.BACKWARD);
            report("schema none", () -> schemas.getSchemaInfo(t));
            report("schema none with version", () -> schemas.getSchemaInfoWithVersion(t));
            report("schema none all", () -> schemas.getAllSchemas(t));
            report("schema none metadata", () -> schemas.getSchemaMetadata(t));
            report("schema none version of", () -> schemas.getVersionBySchema(t, payload("AVRO", avro())));
            report("schema none compatible", () -> schemas.testCompatibility(t, payload("AVRO", avro())));
            run("schema none delete", () -> schemas.deleteSchema(t));
            run("schema none delete force", () -> schemas.deleteSchema(t, true));
            report("schema none get 0", () -> schemas.getSchemaInfo(t, 0));

            Map<String, SchemaInfo> infos = new LinkedHashMap<>();
            for (Schema<?> s : List.of(Schema.BYTES, Schema.STRING, Schema.BOOL, Schema.INT8, Schema.INT16, Schema.INT32, Schema.INT64, Schema.FLOAT, Schema.DOUBLE, Schema.DATE, Schema.TIME, Schema.TIMESTAMP, Schema.INSTANT, Schema.LOCAL_DATE, Schema.LOCAL_TIME, Schema.LOCAL_DATE_TIME)) {
                infos.put(s.getSchemaInfo().getType().name(), s.getSchemaInfo());
            }
            infos.put("AVRO", Schema.AVRO(Order.class).getSchemaInfo());
            infos.put("AVRO-always-null", Schema.AVRO(SchemaDefinition.<Order>builder().withPojo(Order.class).withAlwaysAllowNull(false).withProperties(new HashMap<>(Map.of("x", "y"))).build()).getSchemaInfo());
            infos.put("JSON", Schema.JSON(Order.class).getSchemaInfo());
            infos.put("PROTOBUF", Schema.PROTOBUF(SchemaDefinition.<com.google.protobuf.Timestamp>builder().withPojo(com.google.protobuf.Timestamp.class).build()).getSchemaInfo());
            infos.put("PROTOBUF_NATIVE", Schema.PROTOBUF_NATIVE(com.google.protobuf.Timestamp.class).getSchemaInfo());
            infos.put("PROTOBUF_NATIVE-Struct", Schema.PROTOBUF_NATIVE(com.google.protobuf.Value.class).getSchemaInfo());
            infos.put("KV-inline", Schema.KeyValue(Schema.STRING, Schema.AVRO(Order.class), KeyValueEncodingType.INLINE).getSchemaInfo());
            infos.put("KV-separated", Schema.KeyValue(Schema.JSON(Order.class), Schema.AVRO(Dated.class), KeyValueEncodingType.SEPARATED).getSchemaInfo());
            infos.put("KV-bytes", Schema.KV_BYTES().getSchemaInfo());
            infos.put("KV-primitive", Schema.KeyValue(Schema.INT32, Schema.INSTANT, KeyValueEncodingType.SEPARATED).getSchemaInfo());
            infos.put("KV-proto", Schema.KeyValue(Schema.STRING, Schema.PROTOBUF_NATIVE(com.google.protobuf.Timestamp.class), KeyValueEncodingType.SEPARATED).getSchemaInfo());
            infos.put("KV-classes", Schema.KeyValue(Order.class, Dated.class, SchemaType.JSON).getSchemaInfo());
            infos.put("NONE", SchemaInfoImpl.builder().name("x").schema(new byte[0]).type(SchemaType.NONE).properties(Map.of()).build());
            infos.put("AUTO_CONSUME", SchemaInfoImpl.builder().name("x").schema(new byte[0]).type(SchemaType.AUTO_CONSUME).properties(Map.of()).build());
            infos.put("AUTO_PUBLISH", SchemaInfoImpl.builder().name("x").schema(new byte[0]).type(SchemaType.AUTO_PUBLISH).properties(Map.of()).build());
            for (Map.Entry<String, SchemaInfo> e : infos.entrySet()) {
                String at = "persistent://" + ns + "/type-" + e.getKey();
                SchemaInfo info = e.getValue();
                run(e.getKey() + " create", () -> schemas.createSchema(at, info));
                report(e.getKey() + " get", () -> schemas.getSchemaInfo(at));
                report(e.getKey() + " same", () -> Arrays.equals(schemas.getSchemaInfo(at).getSchema(), info.getSchema()));
                report(e.getKey() + " with version", () -> schemas.getSchemaInfoWithVersion(at).getVersion());
                report(e.getKey() + " get 0", () -> schemas.getSchemaInfo(at, 0).getType());
                report(e.getKey() + " all", () -> schemas.getAllSchemas(at).size());
                report(e.getKey() + " version of", () -> schemas.getVersionBySchema(at, info));
                report(e.getKey() + " compatible", () -> schemas.testCompatibility(at, info));
                run(e.getKey() + " again", () -> schemas.createSchema(at, info));
                report(e.getKey() + " still", () -> schemas.getAllSchemas(at).size());
                report(e.getKey() + " metadata", () -> schemas.getSchemaMetadata(at).index.size());
            }
            // type names in payloads as people write them
            for (String name : List.of("avro", "Avro", "AVRO ", "STRING", "KEY_VALUE", "PROTOBUF_NATIVE", "BOOL", "BOOLEAN", "INT64", "LONG", "", "NOPE", "EXTERNAL")) {
                run("type name '" + name + "'", () -> schemas.createSchema("persistent://" + ns + "/named-" + name.trim().toLowerCase() + name.length(), payload(name, avro("{\"name\":\"a\",\"type\":\"int\"}"))));
            }
            run("payload null type", () -> schemas.createSchema("persistent://" + ns + "/n1", new PostSchemaPayload(null, "", Map.of())));
            run("payload null schema", () -> schemas.createSchema("persistent://" + ns + "/n2", new PostSchemaPayload("AVRO", null, Map.of())));
            run("payload null properties", () -> schemas.createSchema("persistent://" + ns + "/n3", new PostSchemaPayload("AVRO", avro(), null)));
            report("payload null properties got", () -> schemas.getSchemaInfo("persistent://" + ns + "/n3"));
            run("payload empty", () -> schemas.createSchema("persistent://" + ns + "/n4", new PostSchemaPayload()));

            // evolution
            String a = avro("{\"name\":\"a\",\"type\":\"int\"}");
            String ab = avro("{\"name\":\"a\",\"type\":\"int\"}", "{\"name\":\"b\",\"type\":\"string\",\"default\":\"\"}");
            String c = avro("{\"name\":\"c\",\"type\":\"int\"}");
            run("evolve 0", () -> schemas.createSchema(t, payload("AVRO", a)));
            report("evolve 0 compatible with ab", () -> schemas.testCompatibility(t, payload("AVRO", ab)));
            run("evolve 1", () -> schemas.createSchema(t, payload("AVRO", ab)));
            run("evolve back", () -> schemas.createSchema(t, payload("AVRO", a)));
            report("evolve with version", () -> schemas.getSchemaInfoWithVersion(t));
            run("evolve bad", () -> schemas.createSchema(t, payload("AVRO", c)));
            report("evolve bad tested", () -> schemas.testCompatibility(t, payload("AVRO", c)));
            run("evolve other type", () -> schemas.createSchema(t, payload("JSON", a)));
            report("evolve other type tested", () -> schemas.testCompatibility(t, payload("JSON", a)));
            run("evolve not json", () -> schemas.createSchema(t, payload("AVRO", "{")));
            run("evolve not avro", () -> schemas.createSchema(t, payload("AVRO", "{\"type\":\"nope\"}")));
            run("evolve empty", () -> schemas.createSchema(t, payload("AVRO", "")));
            run("evolve spaces", () -> schemas.createSchema(t, payload("AVRO", " " + ab + " ")));
            run("evolve properties only", () -> schemas.createSchema(t, new PostSchemaPayload("AVRO", ab, Map.of("other", "1"))));
            report("evolve all", () -> schemas.getAllSchemas(t));
            report("evolve get 0", () -> schemas.getSchemaInfo(t, 0));
            report("evolve get 1", () -> schemas.getSchemaInfo(t, 1));
            report("evolve get -1", () -> schemas.getSchemaInfo(t, -1));
            report("evolve get 99", () -> schemas.getSchemaInfo(t, 99));
            report("evolve get max", () -> schemas.getSchemaInfo(t, Long.MAX_VALUE));
            report("evolve version of a", () -> schemas.getVersionBySchema(t, payload("AVRO", a)));
            report("evolve version of ab", () -> schemas.getVersionBySchema(t, payload("AVRO", ab)));
            report("evolve version of c", () -> schemas.getVersionBySchema(t, payload("AVRO", c)));
            report("evolve version of as json", () -> schemas.getVersionBySchema(t, payload("JSON", ab)));
            report("evolve version of broken", () -> schemas.getVersionBySchema(t, payload("AVRO", "{")));
            report("evolve compat of broken", () -> schemas.testCompatibility(t, payload("AVRO", "{")));
            report("evolve metadata", () -> schemas.getSchemaMetadata(t).index.size());
            run("java classes", () -> schemas.createSchema("persistent://" + ns + "/java", Schema.AVRO(Order.class).getSchemaInfo()));
            run("java classes next", () -> schemas.createSchema("persistent://" + ns + "/java", Schema.AVRO(Dated.class).getSchemaInfo()));
            run("java classes broken", () -> schemas.createSchema("persistent://" + ns + "/java", Schema.AVRO(Broken.class).getSchemaInfo()));
            report("java classes broken tested", () -> schemas.testCompatibility("persistent://" + ns + "/java", Schema.AVRO(Broken.class).getSchemaInfo()));

            // deletion, and again
            run("delete", () -> schemas.deleteSchema(t));
            report("deleted get", () -> schemas.getSchemaInfo(t));
            report("deleted get 0", () -> schemas.getSchemaInfo(t, 0));
            report("deleted all", () -> schemas.getAllSchemas(t));
            report("deleted metadata", () -> schemas.getSchemaMetadata(t).index.size());
            report("deleted version of a", () -> schemas.getVersionBySchema(t, payload("AVRO", a)));
            report("deleted compatible c", () -> schemas.testCompatibility(t, payload("AVRO", c)));
            run("delete again", () -> schemas.deleteSchema(t));
            run("create after delete", () -> schemas.createSchema(t, payload("STRING", "")));
            report("created after delete", () -> schemas.getSchemaInfoWithVersion(t));
            report("created after delete all", () -> schemas.getAllSchemas(t));
            run("create after delete 2", () -> schemas.createSchema(t, payload("AVRO", a)));
            run("delete force", () -> schemas.deleteSchema(t, true));
            report("forced get", () -> schemas.getSchemaInfo(t));
            report("forced metadata", () -> schemas.getSchemaMetadata(t));
            run("create after force", () -> schemas.createSchema(t, payload("AVRO", a)));
            report("created after force", () -> schemas.getSchemaInfoWithVersion(t));
            run("delete topic", () -> topics.delete(t));
            report("after delete of topic", () -> schemas.getSchemaInfo(t));
            run("delete topic again", () -> topics.delete(t));

            // names of topics
            String p = "persistent://" + ns + "/parts";
            run("schema of partition", () -> schemas.createSchema(p + "-partition-1", payload("AVRO", a)));
            report("schema of partitioned", () -> schemas.getSchemaInfo(p));
            report("schema of partition 0", () -> schemas.getSchemaInfo(p + "-partition-0"));
            report("schema of non-persistent", () -> schemas.getSchemaInfo("non-persistent://" + ns + "/parts"));
            run("schema in missing ns", () -> schemas.createSchema("persistent://" + tenant + "/missing/o", payload("AVRO", a)));
            report("schema get in missing ns", () -> schemas.getSchemaInfo("persistent://" + tenant + "/missing/o"));
            run("schema of odd name", () -> schemas.createSchema("persistent://" + ns + "/a b%c+d\u00fc", payload("AVRO", a)));
            report("schema of odd name got", () -> schemas.getSchemaInfo("persistent://" + ns + "/a b%c+d\u00fc"));
            run("schema of slash name", () -> schemas.createSchema("persistent://" + ns + "/a/b", payload("AVRO", a)));
            report("schema of slash name got", () -> schemas.getSchemaInfo("persistent://" + ns + "/a/b"));
            run("schema of short name", () -> schemas.createSchema(ns + "/short", payload("AVRO", a)));
            report("schema of short name got", () -> schemas.getSchemaInfo("persistent://" + ns + "/short"));
            run("schema without topic made no topic", () -> { if (topics.getList(ns).contains("persistent://" + ns + "/short")) { throw new IllegalStateException("it did"); } });

            // auto update off, ALWAYS_INCOMPATIBLE
            run("auto update off", () -> setAllowAutoUpdate(namespaces, ns, false));
            run("upload while off", () -> schemas.createSchema(ns + "/short", payload("AVRO", ab)));
            run("incompatible always", () -> namespaces.setSchemaCompatibilityStrategy(ns, SchemaCompatibilityStrategy.ALWAYS_INCOMPATIBLE));
            run("upload then", () -> schemas.createSchema(ns + "/short", payload("AVRO", a)));
            run("upload then new", () -> schemas.createSchema(ns + "/short", payload("AVRO", avro("{\"name\":\"a\",\"type\":\"int\"}", "{\"name\":\"z\",\"type\":\"string\",\"default\":\"\"}"))));
            run("upload then first", () -> schemas.createSchema(ns + "/first", payload("AVRO", a)));

            // statistics and end
            report("stats", () -> topics.getStats("persistent://" + ns + "/props").getMsgInCounter());
            report("internal stats", () -> topics.getInternalStats("persistent://" + ns + "/props").numberOfEntries);
            report("stats of missing", () -> topics.getStats("persistent://" + ns + "/missing").getMsgInCounter());
            run("delete partitioned as single", () -> topics.delete(p));
            run("delete single as partitioned", () -> topics.deletePartitionedTopic("persistent://" + ns + "/props"));
            run("delete partition", () -> topics.delete(p + "-partition-0"));
            run("delete partitioned", () -> topics.deletePartitionedTopic(p));
            report("schema after delete of partitioned", () -> schemas.getSchemaInfo(p));
            run("delete with force", () -> topics.delete("persistent://" + ns + "/props", true));
            run("delete missing", () -> topics.delete("persistent://" + ns + "/missing"));
            run("namespace delete not empty", () -> namespaces.deleteNamespace(ns));
            run("namespace delete force", () -> namespaces.deleteNamespace(ns, true));
            run("tenant delete not empty", () -> tenants.deleteTenant(tenant));
            run("tenant delete force", () -> tenants.deleteTenant(tenant, true));
            for (String name : List.of("clustered", "bundled", "politic")) {
                run("namespace delete " + name, () -> namespaces.deleteNamespace(tenant + "/" + name));
            }
            run("namespace delete missing", () -> namespaces.deleteNamespace(tenant + "/missing"));
            report("list before end", () -> topics.getList(ns));
            for (String topic : new TreeSet<>(topics.getPartitionedTopicList(ns))) { run("delete " + topic, () -> topics.deletePartitionedTopic(topic)); }
            for (String topic : new TreeSet<>(topics.getList(ns))) { if (!topic.contains("__") && topic.startsWith("persistent")) { run("delete " + topic, () -> topics.delete(topic)); } }
            run("namespace delete", () -> namespaces.deleteNamespace(ns));
            run("tenant delete", () -> tenants.deleteTenant(tenant));
            run("tenant delete again", () -> tenants.deleteTenant(tenant));
        }
    }
}
