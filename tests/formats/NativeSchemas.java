import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.pulsar.broker.service.schema.ProtobufNativeSchemaCompatibilityCheck;
import org.apache.pulsar.broker.service.schema.validator.ProtobufNativeSchemaDataValidator;
import org.apache.pulsar.client.impl.schema.ProtobufNativeSchemaUtils;
import org.apache.pulsar.common.policies.data.SchemaCompatibilityStrategy;
import org.apache.pulsar.common.protocol.schema.SchemaData;
import org.apache.pulsar.common.schema.SchemaType;

/**
 * Answers a line each: the schema data in base64; or two of them, the older one first, and a strategy.
 *
 * <p>The answer to one is the result of the validator and that of the deserialization, to two that of the compatibility check. A
 * result is "ok" and a name, or the class of an exception and its message; texts are in base64.
 */
public class NativeSchemas {
    private static final PrintStream OUT = System.out;

    interface Action {
        String run() throws Throwable;
    }

    public static void main(String[] args) throws Exception {
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            byte[] first = Base64.getDecoder().decode(parts[0]);
            if (parts.length == 1) {
                OUT.println(answer(() -> {
                    ProtobufNativeSchemaDataValidator.of().validate(data(first));
                    return "";
                }) + " " + answer(() -> ProtobufNativeSchemaUtils.deserialize(first).getFullName()));
            } else {
                byte[] second = Base64.getDecoder().decode(parts[1]);
                SchemaCompatibilityStrategy strategy = SchemaCompatibilityStrategy.valueOf(parts[2]);
                OUT.println(answer(() -> {
                    new ProtobufNativeSchemaCompatibilityCheck().checkCompatible(data(first), data(second), strategy);
                    return "";
                }));
            }
            OUT.flush();
        }
    }

    private static SchemaData data(byte[] bytes) {
        return SchemaData.builder().type(SchemaType.PROTOBUF_NATIVE).data(bytes).build();
    }

    /** Where Java's answer depends on the addresses of objects, it differs between attempts. */
    private static String answer(Action action) {
        String first = attempt(action);
        for (int attempt = 0; attempt < 3; attempt++) {
            if (!first.equals(attempt(action))) {
                return "varies ";
            }
        }
        return first;
    }

    private static String attempt(Action action) {
        try {
            return "ok " + encode(action.run());
        } catch (Throwable thrown) {
            return thrown.getClass().getSimpleName() + " " + encode(String.valueOf(thrown.getMessage()));
        }
    }

    private static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
