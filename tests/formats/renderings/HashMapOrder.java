import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Prints the names of each line of standard input, separated by tabs, in the order of a HashMap to which they were added. */
public class HashMapOrder {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Boolean> names = new HashMap<>();
            for (String name : line.split("\t")) {
                names.put(name, true);
            }
            out.println(String.join("\t", names.keySet()));
        }
    }
}
