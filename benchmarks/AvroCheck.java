import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/**
 * What avro_check.py measures, of Java's SchemaCompatibility, once it is compiled.
 *
 * <p>Arguments: a file with definitions, one a line: readers and writers in turn, an empty line, the versions of topics; and the
 * number of versions a topic has.
 */
final class AvroCheck {
  private static final int ROUNDS = 12;

  public static void main(String[] args) throws Exception {
    List<String> texts = Files.readAllLines(Path.of(args[0]));
    int versions = Integer.parseInt(args[1]);
    List<String> pairs = texts.subList(0, texts.indexOf(""));
    List<String> topics = texts.subList(pairs.size() + 1, texts.size());
    List<Schema> schemas = new ArrayList<>();
    pairs.forEach(text -> schemas.add(parse(text)));
    List<Schema> histories = new ArrayList<>();
    topics.forEach(text -> histories.add(parse(text)));
    System.out.printf(
        "%nJava %s, Avro %s, warm: explain %.2f us, parse and explain %.2f us, verdict %.2f us%n",
        System.getProperty("java.version"),
        Schema.class.getPackage().getImplementationVersion(),
        microseconds(() -> explained(schemas)),
        microseconds(() -> parsedAndExplained(pairs)),
        microseconds(() -> compared(histories, versions)));
  }

  private static Schema parse(String text) {
    return new Schema.Parser().setValidateDefaults(false).parse(text);
  }

  private static int explained(List<Schema> pairs) {
    for (int index = 0; index < pairs.size(); index += 2) {
      explain(pairs.get(index), pairs.get(index + 1));
    }
    return pairs.size() / 2;
  }

  private static int parsedAndExplained(List<String> pairs) {
    for (int index = 0; index < pairs.size(); index += 2) {
      explain(parse(pairs.get(index)), parse(pairs.get(index + 1)));
    }
    return pairs.size() / 2;
  }

  private static int compared(List<Schema> histories, int versions) {
    int count = 0;
    for (int start = 0; start < histories.size(); start += versions) {
      for (int later = start; later < start + versions; later++) {
        for (int earlier = start; earlier < later; earlier++) {
          explain(histories.get(later), histories.get(earlier));
          explain(histories.get(earlier), histories.get(later));
          count += 2;
        }
      }
    }
    return count;
  }

  private static void explain(Schema reader, Schema writer) {
    try {
      SchemaCompatibility.checkReaderWriterCompatibility(reader, writer);
    } catch (AvroRuntimeException ambiguousAlias) {
      // Its verdict is that it throws.
    }
  }

  /** The CPU time for a pair in the best of some rounds; `call` returns how many pairs it has judged. */
  private static double microseconds(Supplier<Integer> call) {
    double best = Double.MAX_VALUE;
    for (int round = 0; round < ROUNDS; round++) {
      long started = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      int count = call.get();
      double taken = (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - started) / 1e3;
      best = Math.min(best, taken / count);
    }
    return best;
  }
}
