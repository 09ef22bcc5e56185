import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;

/** Connects AUTO clients: each line `role topic` on standard input is answered with `ok`, or with what the client threw. */
public final class AutoClients {
    public static void main(String[] arguments) throws Exception {
        PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] question = line.split(" ");
            System.out.println("> " + answer(client, question[0], question[1]));
        }
        client.close();
    }

    private static String answer(PulsarClient client, String role, String topic) {
        try {
            if (role.equals("producer")) {
                client.newProducer(Schema.AUTO_PRODUCE_BYTES()).topic(topic).create().close();
            } else {
                client.newConsumer(Schema.AUTO_CONSUME()).topic(topic).subscriptionName("s").subscribe().close();
            }
            return "ok";
        } catch (Exception thrown) {
            return thrown.toString().replace("\n", "\\n");
        }
    }
}
