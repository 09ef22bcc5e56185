import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Proxy;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import javax.tools.ToolProvider;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.client.impl.schema.JSONSchema;
import org.apache.pulsar.client.impl.schema.SchemaInfoImpl;
import org.apache.pulsar.client.impl.schema.generic.GenericJsonRecord;
import org.apache.pulsar.client.impl.schema.generic.GenericSchemaImpl;
import org.apache.pulsar.common.schema.SchemaType;

/**
 * Writes and reads JSON messages as Pulsar's Java client does: with classes, and as GenericRecord.
 *
 * A request is a line of JSON, and so is its answer:
 *   {"compile": SOURCE}                         SOURCE is the text of the public class Shapes, whose nested classes are readers and writers
 *   {"write": CLASS, "value": VALUE}            the payload that a producer of the class sends
 *   {"read": CLASS, "payload": TEXT}            what a consumer of the class gets
 *   {"generic": DEFINITION, "payload": TEXT}    what a consumer of GenericRecords gets
 *
 * A VALUE is null, a boolean, a whole number, a text, a list, or an object with one key, the type: {"double": "1.5"}.
 */
public class JsonReaders {
    static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    static final Map<Class<?>, Schema<Object>> SCHEMAS = new LinkedHashMap<>();
    static ClassLoader classes;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ObjectMapper mapper = new ObjectMapper();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = mapper.readTree(line);
            ObjectNode answer = NODES.objectNode();
            try {
                if (request.has("compile")) {
                    compile(request.get("compile").asText());
                } else if (request.has("write")) {
                    Class<?> shape = classes.loadClass("Shapes$" + request.get("write").asText());
                    byte[] payload = schemaOf(shape).encode(toJava(shape, request.get("value")));
                    answer.put("payload", new String(payload, StandardCharsets.UTF_8));
                } else if (request.has("read")) {
                    Class<?> shape = classes.loadClass("Shapes$" + request.get("read").asText());
                    answer.set("value", fromJava(schemaOf(shape).decode(payloadOf(request))));
                } else {
                    byte[] definition = request.get("generic").asText().getBytes(StandardCharsets.UTF_8);
                    GenericRecord record = GenericSchemaImpl.of(SchemaInfoImpl.builder().name("").type(SchemaType.JSON)
                            .schema(definition).properties(Map.of()).build()).decode(payloadOf(request));
                    answer.set("value", fromJava(record));
                }
            } catch (Throwable thrown) {
                Throwable cause = thrown;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                answer.put("throws", cause.getClass().getSimpleName());
                answer.put("message", String.valueOf(cause.getMessage()).split("\n")[0]);
            }
            out.println(mapper.writeValueAsString(answer));
        }
        System.exit(0);
    }

    static byte[] payloadOf(JsonNode request) {
        return request.get("payload").asText().getBytes(StandardCharsets.UTF_8);
    }

    static void compile(String source) throws Exception {
        Path folder = Files.createTempDirectory("json-readers");
        Path file = folder.resolve("Shapes.java");
        Files.writeString(file, source);
        if (ToolProvider.getSystemJavaCompiler().run(null, null, null, "-nowarn", "-proc:none", "-d", folder.toString(), file.toString()) != 0) {
            throw new IllegalArgumentException("the source does not compile");
        }
        classes = new URLClassLoader(new URL[] {folder.toUri().toURL()}, JsonReaders.class.getClassLoader());
    }

    /** A class and a definition may not be given together, because the client would not use the class to derive its definition. */
    @SuppressWarnings("unchecked")
    static Schema<Object> schemaOf(Class<?> shape) {
        return SCHEMAS.computeIfAbsent(shape, key -> JSONSchema.of((SchemaDefinition<Object>) Proxy.newProxyInstance(
                JsonReaders.class.getClassLoader(), new Class<?>[] {SchemaDefinition.class}, (proxy, method, args) -> switch (method.getName()) {
                    case "getPojo" -> key;
                    case "getJsonDef" -> "{\"type\": \"record\", \"name\": \"Shape\", \"fields\": []}";
                    case "getProperties" -> Map.of();
                    case "getSchemaReaderOpt", "getSchemaWriterOpt" -> java.util.Optional.empty();
                    case "getClassLoader" -> classes;
                    default -> false;
                })));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Object toJava(Type type, JsonNode value) throws Exception {
        if (value.isNull()) {
            return null;
        }
        Class<?> raw = (Class<?>) (type instanceof ParameterizedType generic ? generic.getRawType() : type);
        Type[] arguments = type instanceof ParameterizedType generic ? generic.getActualTypeArguments() : new Type[] {Object.class, Object.class};
        if (value.isArray()) {
            List<Object> items = new ArrayList<>();
            for (JsonNode item : value) {
                items.add(toJava(arguments[0], item));
            }
            return items;
        }
        if (value.isBoolean()) {
            return value.asBoolean();
        }
        if (value.isNumber() && (raw == char.class || raw == Character.class)) {
            return (char) value.asInt();
        }
        if (value.isNumber()) {
            return raw == int.class || raw == Integer.class || raw == Object.class && value.isInt() ? (Object) value.asInt() : (Object) value.asLong();
        }
        if (value.isTextual()) {
            return value.asText();
        }
        String kind = value.fieldNames().next();
        JsonNode content = value.get(kind);
        switch (kind) {
            case "float": return Float.valueOf(content.asText());
            case "double": return Double.valueOf(content.asText());
            case "bytes": return HexFormat.of().parseHex(content.asText());
            case "decimal": return new BigDecimal(content.asText());
            case "integer": return new BigInteger(content.asText());
            case "instant": return Instant.parse(content.asText());
            case "date": return LocalDate.parse(content.asText());
            case "time": return LocalTime.parse(content.asText());
            case "local": return LocalDateTime.parse(content.asText());
            case "uuid": return UUID.fromString(content.asText());
            case "enum": return raw == Object.class ? content.asText() : Enum.valueOf((Class<Enum>) raw, content.asText());
            case "map":
            case "record":
                boolean isMap = raw == Map.class || raw == Object.class;
                Object target = isMap ? new LinkedHashMap<String, Object>() : raw.getConstructor().newInstance();
                for (Iterator<String> names = content.fieldNames(); names.hasNext();) {
                    String name = names.next();
                    if (isMap) {
                        ((Map<String, Object>) target).put(name, toJava(arguments[1], content.get(name)));
                    } else {
                        Field field = raw.getField(name);
                        field.set(target, toJava(field.getGenericType(), content.get(name)));
                    }
                }
                return target;
            default: throw new IllegalArgumentException(kind);
        }
    }

    static JsonNode fromJava(Object value) throws Exception {
        if (value == null) {
            return NODES.nullNode();
        }
        if (value instanceof Boolean flag) {
            return NODES.booleanNode(flag);
        }
        if (value instanceof BigInteger) {
            return typed("integer", value);
        }
        if (value instanceof Character character) {
            return NODES.numberNode((int) character);
        }
        if (value instanceof Float) {
            return typed("float", value);
        }
        if (value instanceof Double) {
            return typed("double", value);
        }
        if (value instanceof BigDecimal decimal) {
            return typed("decimal", decimal.toPlainString());
        }
        if (value instanceof Number number) {
            return NODES.numberNode(number.longValue());
        }
        if (value instanceof String text) {
            return NODES.textNode(text);
        }
        if (value instanceof byte[] bytes) {
            return typed("bytes", HexFormat.of().formatHex(bytes));
        }
        if (value instanceof Instant) {
            return typed("instant", value);
        }
        if (value instanceof LocalDate) {
            return typed("date", value);
        }
        if (value instanceof LocalTime) {
            return typed("time", value);
        }
        if (value instanceof LocalDateTime) {
            return typed("local", value);
        }
        if (value instanceof UUID) {
            return typed("uuid", value);
        }
        if (value instanceof Enum<?> symbol) {
            return typed("enum", symbol.name());
        }
        if (value instanceof List<?> list) {
            ArrayNode items = NODES.arrayNode();
            for (Object item : list) {
                items.add(fromJava(item));
            }
            return items;
        }
        ObjectNode content = NODES.objectNode();
        if (value instanceof GenericJsonRecord record) {
            if (record.getJsonNode().isArray()) {
                return NODES.objectNode().set("json", record.getJsonNode());
            }
            for (org.apache.pulsar.client.api.schema.Field field : record.getFields()) {
                content.set(field.getName(), fromJava(record.getField(field)));
            }
        } else if (value instanceof Map<?, ?> map) {
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                content.set(String.valueOf(entry.getKey()), fromJava(entry.getValue()));
            }
            return NODES.objectNode().set("map", content);
        } else {
            for (Field field : value.getClass().getFields()) {
                content.set(field.getName(), fromJava(field.get(value)));
            }
        }
        return NODES.objectNode().set("record", content);
    }

    static JsonNode typed(String kind, Object text) {
        return NODES.objectNode().put(kind, String.valueOf(text));
    }
}
