import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message.Builder;
import java.io.BufferedWriter;
import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.avro.generic.GenericEnumSymbol;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.schema.GenericObject;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.client.impl.MessageImpl;
import org.apache.pulsar.client.impl.TopicMessageImpl;
import org.apache.pulsar.client.impl.schema.KeyValueSchemaImpl;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/**
 * Messages of Java classes in three versions.
 *
 * schemas CLASSES OUT: writes the definitions of the classes.
 * exchange CLASSES OUT URL NAMESPACE COUNT: each version sends COUNT messages to each topic; the classes of each version and
 * AUTO_CONSUME receive all of them. OUT/TOPIC.jsonl has the bytes and the values.
 * decode CLASSES OUT IN: decodes the lines of IN (topic, version, key and payload in hex, - for a missing key) with the classes.
 *
 * CLASSES1, CLASSES2 and CLASSES3 are the folders of the compiled classes.
 */
public class Messages {
    /** Topic, type of the records, class or type of the key, class of the value. */
    static final String[][] TOPICS = {
        {"json-basic", "JSON", "", "shop.Basic"},
        {"avro-basic", "AVRO", "", "shop.Basic"},
        {"json-numbers", "JSON", "", "shop.Numbers"},
        {"avro-numbers", "AVRO", "", "shop.Numbers"},
        {"json-bigs", "JSON", "", "shop.Bigs"},
        {"avro-bigs", "AVRO", "", "shop.Bigs"},
        {"json-chars", "JSON", "", "shop.Chars"},
        {"avro-chars", "AVRO", "", "shop.Chars"},
        {"json-times", "JSON", "", "shop.Times"},
        {"avro-times", "AVRO", "", "shop.Times"},
        {"json-days", "JSON", "", "shop.Days"},
        {"avro-days", "AVRO", "", "shop.Days"},
        {"json-choice", "JSON", "", "shop.Choice"},
        {"avro-choice", "AVRO", "", "shop.Choice"},
        {"json-odd", "JSON", "", "shop.Odd"},
        {"kv-inline-string-json", "JSON", "STRING", "shop.Basic"},
        {"kv-sep-json-json", "JSON", "shop.Key", "shop.Basic"},
        {"kv-inline-avro-avro", "AVRO", "shop.Key", "shop.Basic"},
        {"kv-sep-avro-avro", "AVRO", "shop.Key", "shop.Numbers"},
        {"kv-sep-avro-times", "AVRO", "shop.Times", "shop.Times"},
        {"kv-sep-int-avro", "AVRO", "INT32", "shop.Basic"},
        {"kv-inline-instant-json", "JSON", "INSTANT", "shop.Numbers"},
        {"kv-sep-string-json", "JSON", "STRING", "shop.Times"},
        {"proto", "PROTOBUF_NATIVE", "", "web.Click"},
    };

    static final int AUTO = 4;
    static ClassLoader[] loaders = new ClassLoader[4];
    static Random random;

    public static void main(String[] arguments) throws Exception {
        for (int version = 1; version <= 3; version++) {
            URL[] folder = {new File(arguments[1] + version).toURI().toURL()};
            loaders[version] = new URLClassLoader(folder, Messages.class.getClassLoader());
        }
        Path out = Paths.get(arguments[2]);
        switch (arguments[0]) {
            case "schemas" -> writeSchemas(out);
            case "exchange" -> exchange(out, arguments[3], arguments[4], Integer.parseInt(arguments[5]));
            case "decode" -> decode(out, Paths.get(arguments[3]));
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.exit(0);
    }

    // Schemas

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Schema<Object> makePart(String type, String name, int version) throws Exception {
        switch (name) {
            case "STRING": return (Schema) Schema.STRING;
            case "INT32": return (Schema) Schema.INT32;
            case "INSTANT": return (Schema) Schema.INSTANT;
            default:
        }
        Class pojo = loaders[version].loadClass(name);
        if (type.equals("PROTOBUF_NATIVE")) {
            return Schema.PROTOBUF_NATIVE(pojo);
        }
        SchemaDefinition<Object> definition =
                SchemaDefinition.builder().withPojo(pojo).withJSR310ConversionEnabled(true).build();
        return type.equals("JSON") ? Schema.JSON(definition) : Schema.AVRO(definition);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Schema<Object> makeSchema(String[] topic, int version) throws Exception {
        if (topic[2].isEmpty()) {
            return makePart(topic[1], topic[3], version);
        }
        KeyValueEncodingType encoding =
                topic[0].contains("-sep-") ? KeyValueEncodingType.SEPARATED : KeyValueEncodingType.INLINE;
        Schema<Object> key = makePart(topic[1], topic[2], version);
        return (Schema) Schema.KeyValue(key, makePart(topic[1], topic[3], version), encoding);
    }

    static void writeSchemas(Path out) throws Exception {
        Files.createDirectories(out);
        for (String[] topic : TOPICS) {
            for (int version = 1; version <= 3; version++) {
                for (int part : new int[] {2, 3}) {
                    if (topic[part].contains(".") && !topic[1].equals("PROTOBUF_NATIVE")) {
                        String suffix = topic[2].isEmpty() ? "" : part == 2 ? "-key" : "-value";
                        String text = makePart(topic[1], topic[part], version).getSchemaInfo().getSchemaDefinition();
                        Files.writeString(out.resolve(topic[0] + suffix + ".v" + version + ".avsc"), text);
                    }
                }
            }
        }
    }

    // Random values

    /** Returns a value of a field. Without `full`, every fourth object is null. */
    static Object makeValue(Type type, String name, int version, boolean full) throws Exception {
        Class<?> kind = (Class<?>) (type instanceof ParameterizedType ? ((ParameterizedType) type).getRawType() : type);
        if (!kind.isPrimitive() && !full && random.nextInt(4) == 0) {
            return null;
        }
        int choice = random.nextInt(8);
        if (kind == long.class || kind == Long.class) {
            return new long[] {0, 1, -1, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 53, (1L << 53) + 1, random.nextLong()}[choice];
        }
        if (kind == int.class || kind == Integer.class) {
            return new int[] {0, 1, -1, Integer.MAX_VALUE, Integer.MIN_VALUE, 7, 100, random.nextInt()}[choice];
        }
        if (kind == short.class || kind == Short.class) {
            return (short) new int[] {0, 1, -1, 32767, -32768, 7, 100, random.nextInt()}[choice];
        }
        if (kind == byte.class || kind == Byte.class) {
            return (byte) new int[] {0, 1, -1, 127, -128, 7, 100, random.nextInt()}[choice];
        }
        if (kind == char.class || kind == Character.class) {
            return "a\u0000\u00e9\u20ac\"\\\n9".charAt(choice);
        }
        if (kind == boolean.class || kind == Boolean.class) {
            return random.nextBoolean();
        }
        if (kind == float.class || kind == Float.class) {
            float[] floats = {0, -0f, Float.NaN, Float.POSITIVE_INFINITY, Float.MAX_VALUE, Float.MIN_VALUE, 0.1f, random.nextFloat()};
            return floats[choice];
        }
        if (kind == double.class || kind == Double.class) {
            double[] doubles = {0, -0.0, Double.NaN, Double.NEGATIVE_INFINITY, Double.MAX_VALUE, Double.MIN_VALUE, 1e23, random.nextDouble()};
            return doubles[choice];
        }
        if (kind == String.class) {
            return new String[] {"", "x", "é€😀", "\"\\\n\t\u0001", "null", "  ", "12", "a,b:{}"}[choice];
        }
        if (kind == byte[].class) {
            byte[] bytes = new byte[choice];
            random.nextBytes(bytes);
            return bytes;
        }
        if (kind == char[].class) {
            return new String[] {"", "a", "é€😀", "\"\\\n\u0000", "null", "  ", "12", "ab"}[choice].toCharArray();
        }
        if (kind == int[].class) {
            return random.ints(choice % 3).toArray();
        }
        if (kind == long[].class) {
            return random.longs(choice % 3).toArray();
        }
        if (kind == BigDecimal.class) {
            if (name.equals("price")) {
                return new BigDecimal(BigInteger.valueOf(random.nextInt()), 2);
            }
            String[] texts = {"1.50", "-0.001", "1E+3", "12345678901234567890.123456789", "0", "100", "1E-7", "0.25"};
            return new BigDecimal(texts[choice]);
        }
        if (kind == BigInteger.class) {
            return new BigInteger(90, random);
        }
        boolean hasMicros = name.endsWith("Micros");
        int micros = choice < 3 ? 0 : hasMicros ? random.nextInt(1_000_000) : random.nextInt(1000) * 1000;
        if (kind == Instant.class) {
            long seconds = 1_700_000_000L + random.nextInt(1_000_000);
            return Instant.ofEpochSecond(choice == 3 ? -seconds : choice == 0 ? 0 : seconds, micros * 1000L);
        }
        if (kind == LocalDate.class) {
            return LocalDate.ofEpochDay(random.nextInt(40_000) - 10_000);
        }
        LocalTime time = LocalTime.of(random.nextInt(24), random.nextInt(60), choice == 0 ? 0 : random.nextInt(60), micros * 1000);
        if (kind == LocalTime.class) {
            return time;
        }
        if (kind == LocalDateTime.class) {
            return LocalDateTime.of(LocalDate.ofEpochDay(random.nextInt(40_000) - 10_000), time);
        }
        if (kind == UUID.class) {
            return new UUID(random.nextLong(), random.nextLong());
        }
        if (kind.isEnum()) {
            Object[] constants = kind.getEnumConstants();
            return constants[random.nextInt(constants.length)];
        }
        if (kind == List.class) {
            List<Object> items = new ArrayList<>();
            for (int i = 0; i < choice % 3; i++) {
                items.add(makeValue(((ParameterizedType) type).getActualTypeArguments()[0], name, version, true));
            }
            return items;
        }
        if (kind == Map.class) {
            Type[] parts = ((ParameterizedType) type).getActualTypeArguments();
            Map<Object, Object> entries = new LinkedHashMap<>();
            for (int i = 0; i < choice % 3; i++) {
                Object key = parts[0] == String.class ? "k" + i + (i == 1 ? "é.\"" : "") : makeValue(parts[0], name, version, true);
                entries.put(key, makeValue(parts[1], name, version, true));
            }
            return entries;
        }
        if (kind == Object.class && name.equals("either")) {
            return makeObject(loaders[version].loadClass(random.nextBoolean() ? "shop.Box" : "shop.Bag"), version, full);
        }
        if (kind == Object.class) {
            return new Object[] {1L, 5_000_000_000L, "text", "12", 1.5, -7L, "", 2.0}[choice];
        }
        return makeObject(kind, version, full);
    }

    static Object makeObject(Class<?> kind, int version, boolean full) throws Exception {
        if (kind.getName().startsWith("web.")) {
            Builder builder = (Builder) kind.getMethod("newBuilder").invoke(null);
            fill(builder, full);
            return builder.build();
        }
        Object object = kind.getConstructor().newInstance();
        for (Field field : kind.getFields()) {
            field.set(object, makeValue(field.getGenericType(), field.getName(), version, full));
        }
        return object;
    }

    static void fill(Builder builder, boolean full) {
        for (FieldDescriptor field : builder.getDescriptorForType().getFields()) {
            if (!full && random.nextInt(3) == 0) {
                continue;
            }
            if (field.isMapField()) {
                for (int i = 0; i < 2; i++) {
                    Builder entry = builder.newBuilderForField(field);
                    FieldDescriptor key = entry.getDescriptorForType().findFieldByNumber(1);
                    FieldDescriptor value = entry.getDescriptorForType().findFieldByNumber(2);
                    entry.setField(key, key.getJavaType() == FieldDescriptor.JavaType.STRING ? (Object) ("k" + i) : (Object) i);
                    entry.setField(value, makeFieldValue(entry, value, full));
                    builder.addRepeatedField(field, entry.build());
                }
            } else if (field.isRepeated()) {
                for (int i = 0; i < random.nextInt(3); i++) {
                    builder.addRepeatedField(field, makeFieldValue(builder, field, full));
                }
            } else {
                builder.setField(field, makeFieldValue(builder, field, full));
            }
        }
    }

    static Object makeFieldValue(Builder builder, FieldDescriptor field, boolean full) {
        int choice = random.nextInt(5);
        switch (field.getJavaType()) {
            case INT: return new int[] {0, 1, -1, Integer.MAX_VALUE, Integer.MIN_VALUE}[choice];
            case LONG: return new long[] {0, 1, -1, Long.MAX_VALUE, Long.MIN_VALUE}[choice];
            case FLOAT: return new float[] {0, -0f, Float.NaN, 0.1f, Float.MAX_VALUE}[choice];
            case DOUBLE: return new double[] {0, -0.0, Double.NaN, 0.1, Double.NEGATIVE_INFINITY}[choice];
            case BOOLEAN: return random.nextBoolean();
            case STRING: return new String[] {"", "x", "é€😀", "\u0001\"", "z"}[choice];
            case BYTE_STRING: return ByteString.copyFrom(new byte[] {(byte) choice, -1});
            case ENUM: return field.getEnumType().getValues().get(random.nextInt(field.getEnumType().getValues().size()));
            default:
                Builder inner = builder.newBuilderForField(field);
                fill(inner, full);
                return inner.build();
        }
    }

    // Values as JSON, with a tag for the types that JSON does not have

    static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char unit : text.toCharArray()) {
            boolean isPlain = unit >= 32 && unit <= 126 && unit != '"' && unit != '\\';
            quoted.append(isPlain ? String.valueOf(unit) : String.format("\\u%04x", (int) unit));
        }
        return quoted.append('"').toString();
    }

    static String tag(String name, Object value) {
        return "{\"" + name + "\":" + (value instanceof String ? quote((String) value) : value) + "}";
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "" : HexFormat.of().formatHex(bytes);
    }

    static String toJson(Object value) throws Exception {
        if (value == null) {
            return "null";
        }
        if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte || value instanceof Boolean) {
            return value.toString();
        }
        if (value instanceof Character) {
            return Integer.toString((Character) value);
        }
        if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            return tag("float", Double.isNaN(number) ? "nan" : Long.toHexString(Double.doubleToLongBits(number)));
        }
        if (value instanceof CharSequence || value instanceof UUID || value instanceof GenericEnumSymbol) {
            return quote(value.toString());
        }
        if (value instanceof byte[]) {
            return tag("bytes", hex((byte[]) value));
        }
        if (value instanceof ByteBuffer) {
            ByteBuffer buffer = ((ByteBuffer) value).duplicate();
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            return tag("bytes", hex(bytes));
        }
        if (value instanceof ByteString) {
            return tag("bytes", hex(((ByteString) value).toByteArray()));
        }
        if (value instanceof BigDecimal || value instanceof BigInteger) {
            return tag("decimal", value.toString());
        }
        if (value instanceof Instant) {
            Instant instant = (Instant) value;
            return tag("moment", Math.addExact(Math.multiplyExact(instant.getEpochSecond(), 1_000_000L), instant.getNano() / 1000));
        }
        if (value instanceof LocalDateTime) {
            Instant instant = ((LocalDateTime) value).toInstant(ZoneOffset.UTC);
            return tag("local", instant.getEpochSecond() * 1_000_000L + instant.getNano() / 1000);
        }
        if (value instanceof LocalDate) {
            return tag("day", ((LocalDate) value).toEpochDay());
        }
        if (value instanceof LocalTime) {
            return tag("time", ((LocalTime) value).toNanoOfDay() / 1000);
        }
        if (value instanceof Enum) {
            return quote(((Enum<?>) value).name());
        }
        if (value instanceof EnumValueDescriptor) {
            return quote(((EnumValueDescriptor) value).getName());
        }
        if (value.getClass().isArray()) {
            List<Object> items = new ArrayList<>();
            for (int i = 0; i < Array.getLength(value); i++) {
                items.add(Array.get(value, i));
            }
            return toJson(items);
        }
        if (value instanceof Collection) {
            List<String> items = new ArrayList<>();
            for (Object item : (Collection<?>) value) {
                items.add(toJson(item));
            }
            return "[" + String.join(",", items) + "]";
        }
        Map<String, String> members = new TreeMap<>();
        if (value instanceof Map) {
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                members.put(entry.getKey().toString(), toJson(entry.getValue()));
            }
        } else if (value instanceof KeyValue) {
            members.put("key", toJson(((KeyValue<?, ?>) value).getKey()));
            members.put("value", toJson(((KeyValue<?, ?>) value).getValue()));
        } else if (value instanceof GenericObject) {
            return toJson(((GenericObject) value).getNativeObject());
        } else if (value instanceof org.apache.avro.generic.GenericRecord) {
            org.apache.avro.generic.GenericRecord record = (org.apache.avro.generic.GenericRecord) value;
            for (org.apache.avro.Schema.Field field : record.getSchema().getFields()) {
                members.put(field.name(), toJson(record.get(field.pos())));
            }
        } else if (value instanceof JsonNode) {
            return tag("tree", value.toString());
        } else if (value instanceof com.google.protobuf.Message) {
            addFields((com.google.protobuf.Message) value, members);
        } else {
            for (Field field : value.getClass().getFields()) {
                members.put(field.getName(), toJson(field.get(value)));
            }
        }
        return toObject(members);
    }

    static void addFields(com.google.protobuf.Message message, Map<String, String> members) throws Exception {
        for (FieldDescriptor field : message.getDescriptorForType().getFields()) {
            Object value = message.getField(field);
            if (field.isMapField()) {
                Map<String, String> entries = new TreeMap<>();
                for (Object item : (List<?>) value) {
                    com.google.protobuf.Message entry = (com.google.protobuf.Message) item;
                    Object key = entry.getField(entry.getDescriptorForType().findFieldByNumber(1));
                    entries.put(String.valueOf(key), toJson(entry.getField(entry.getDescriptorForType().findFieldByNumber(2))));
                }
                members.put(field.getName(), toObject(entries));
                continue;
            }
            if (field.getType() == FieldDescriptor.Type.UINT32 || field.getType() == FieldDescriptor.Type.FIXED32) {
                value = Integer.toUnsignedLong((Integer) value);
            }
            if (field.getType() == FieldDescriptor.Type.UINT64 || field.getType() == FieldDescriptor.Type.FIXED64) {
                value = new BigInteger(Long.toUnsignedString((Long) value));
            }
            boolean isUnset = field.hasPresence() && !message.hasField(field);
            members.put(field.getName(), isUnset ? "null" : toJson(value));
        }
    }

    static String toObject(Map<String, String> members) {
        List<String> pairs = new ArrayList<>();
        members.forEach((name, text) -> pairs.add(quote(name) + ":" + text));
        return "{" + String.join(",", pairs) + "}";
    }

    static String describe(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null && cause.getCause() != cause) {
            cause = cause.getCause();
        }
        return error.getClass().getSimpleName() + " / " + cause.getClass().getSimpleName() + ": " + cause.getMessage();
    }

    // Messages

    static void exchange(Path out, String url, String namespace, int count) throws Exception {
        Files.createDirectories(out);
        try (PulsarClient client = PulsarClient.builder().serviceUrl(url).ioThreads(1).listenerThreads(1).build()) {
            for (String[] topic : TOPICS) {
                String name = "persistent://" + namespace + "/" + topic[0];
                if (!topic[1].equals("PROTOBUF_NATIVE") || hasProtobuf()) {
                    List<Map<String, String>> rows = send(client, topic, name, count);
                    receive(client, topic, name, rows);
                    try (BufferedWriter writer = Files.newBufferedWriter(out.resolve(topic[0] + ".jsonl"))) {
                        for (Map<String, String> row : rows) {
                            writer.write(toObject(row));
                            writer.newLine();
                        }
                    }
                }
            }
        }
    }

    static boolean hasProtobuf() {
        return loaders[1].getResource("web/Click.class") != null;
    }

    /** Sends `count` messages of each version, and returns the bytes of all. */
    static List<Map<String, String>> send(PulsarClient client, String[] topic, String name, int count) throws Exception {
        for (int version = 1; version <= 3; version++) {
            random = new Random(topic[0].hashCode() * 31L + version);
            try (Producer<Object> producer = client.newProducer(makeSchema(topic, version)).topic(name).enableBatching(false).create()) {
                for (int i = 0; i < count; i++) {
                    boolean isPair = !topic[2].isEmpty();
                    Object key = switch (topic[2]) {
                        case "" -> null;
                        case "STRING" -> "k" + i;
                        case "INT32" -> i * 1000;
                        case "INSTANT" -> Instant.ofEpochSecond(1_700_000_000L + i, i * 1000L);
                        default -> i % 7 == 6 ? null : makeObject(loaders[version].loadClass(topic[2]), version, i == 0);
                    };
                    Object value = isPair && i % 7 == 5 ? null : makeObject(loaders[version].loadClass(topic[3]), version, i == 0);
                    producer.newMessage().value(isPair ? new KeyValue<>(key, value) : value).send();
                }
            }
        }
        List<Map<String, String>> rows = new ArrayList<>();
        try (Reader<byte[]> reader = client.newReader(Schema.BYTES).topic(name).startMessageId(MessageId.earliest).create()) {
            for (int i = 0; i < 3 * count; i++) {
                Message<byte[]> message = reader.readNext(10, TimeUnit.SECONDS);
                MessageImpl<?> inner = (MessageImpl<?>) (message instanceof TopicMessageImpl ? ((TopicMessageImpl<?>) message).getMessage() : message);
                boolean isNullKey = inner.getMessageBuilder().isNullPartitionKey();
                Map<String, String> row = new TreeMap<>();
                row.put("class", Integer.toString(i / count + 1));
                row.put("version", Long.toString(ByteBuffer.wrap(message.getSchemaVersion()).getLong()));
                row.put("payload", inner.getMessageBuilder().isNullValue() ? "null" : quote(hex(message.getData())));
                row.put("key", message.hasKey() && !isNullKey ? quote(hex(message.getKeyBytes())) : "null");
                rows.add(row);
            }
        }
        return rows;
    }

    /** Adds to each row what the classes of each version, and AUTO_CONSUME, receive. */
    static void receive(PulsarClient client, String[] topic, String name, List<Map<String, String>> rows) throws Exception {
        for (int version = 1; version <= AUTO; version++) {
            String reader = version == AUTO ? "auto" : "java" + version;
            Schema<?> schema = version == AUTO ? Schema.AUTO_CONSUME() : makeSchema(topic, version);
            try (Consumer<?> consumer = client.newConsumer(schema).topic(name).subscriptionName(reader)
                    .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
                for (Map<String, String> row : rows) {
                    Message<?> message = consumer.receive(10, TimeUnit.SECONDS);
                    String received;
                    try {
                        received = toJson(message.getValue());
                    } catch (Throwable error) {
                        received = tag("error", describe(error));
                    }
                    row.put(reader, received);
                }
            } catch (PulsarClientException error) {
                // The latest schema may not be read by an old class, which the broker then rejects.
                rows.forEach(row -> row.put(reader, tag("refused", error.getClass().getSimpleName())));
            }
        }
    }

    static byte[] fromHex(String text) {
        return text.equals("-") ? null : HexFormat.of().parseHex(text);
    }

    static void decode(Path out, Path in) throws Exception {
        Map<String, String[]> topics = new HashMap<>();
        Arrays.asList(TOPICS).forEach(topic -> topics.put(topic[0], topic));
        try (BufferedWriter writer = Files.newBufferedWriter(out)) {
            for (String line : Files.readAllLines(in)) {
                String[] parts = line.split("\t", -1);
                String[] topic = topics.get(parts[0]);
                String decoded;
                try {
                    Schema<Object> schema = makeSchema(topic, Integer.parseInt(parts[1]));
                    byte[] key = fromHex(parts[2]);
                    byte[] payload = fromHex(parts[3]);
                    decoded = toJson(topic[0].contains("-sep-")
                            ? ((KeyValueSchemaImpl<?, ?>) (Schema) schema).decode(key, payload, null)
                            : schema.decode(payload));
                } catch (Throwable error) {
                    decoded = tag("error", describe(error));
                }
                writer.write(decoded);
                writer.newLine();
            }
        }
    }
}
