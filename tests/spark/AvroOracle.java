import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/**
 * Reads messages with GenericDatumReader and writes each again with GenericDatumWriter; decimals become numbers on the way.
 *
 * <p>Input, in blocks until its end: the writer's schema, the reader's, a number of messages and these; output: for every
 * message its value under the reader's schema, the entries of maps by key. Everything has its length in front; -1: refused.
 *
 * <p>Compiled by Janino, which is inside PySpark: a Java runtime is enough, and the language is the old one.
 */
public final class AvroOracle {
  private static final GenericData MODEL = new GenericData();

  public static void main(String[] args) throws IOException {
    MODEL.addLogicalTypeConversion(new Conversions.DecimalConversion());
    DataInputStream in = new DataInputStream(new java.io.BufferedInputStream(System.in, 1 << 16));
    DataOutputStream out = new DataOutputStream(new java.io.BufferedOutputStream(System.out, 1 << 16));
    while (true) {
      int length = in.read();
      if (length < 0) {
        break;
      }
      String writerText = new String(block(in), "UTF-8");
      String readerText = new String(block(in), "UTF-8");
      Schema reader = null;
      GenericDatumReader values = null;
      try {
        Schema writer = new Schema.Parser().parse(writerText);
        reader = new Schema.Parser().parse(readerText);
        values = new GenericDatumReader(writer, reader, MODEL);
      } catch (RuntimeException refused) {
        values = null;
      }
      int count = in.readInt();
      for (int number = 0; number < count; number++) {
        byte[] written = values == null ? skipped(in) : rewritten(block(in), values, reader);
        out.writeInt(written == null ? -1 : written.length);
        if (written != null) {
          out.write(written);
        }
      }
    }
    out.flush();
  }

  private static byte[] block(DataInputStream in) throws IOException {
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    return bytes;
  }

  private static byte[] skipped(DataInputStream in) throws IOException {
    block(in);
    return null;
  }

  private static byte[] rewritten(byte[] payload, GenericDatumReader values, Schema reader) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
    try {
      Object value = values.read(null, DecoderFactory.get().binaryDecoder(payload, null));
      new GenericDatumWriter(reader, MODEL).write(text(value), encoder);
    } catch (Throwable refused) {
      return null;
    }
    encoder.flush();
    return bytes.toByteArray();
  }

  /** The value with strings for what is text, which makes U+FFFD of what is none; maps in the order of their keys. */
  private static Object text(Object value) {
    if (value instanceof CharSequence) {
      return value.toString();
    }
    if (value instanceof IndexedRecord) {
      IndexedRecord record = (IndexedRecord) value;
      for (int at = 0; at < record.getSchema().getFields().size(); at++) {
        record.put(at, text(record.get(at)));
      }
    } else if (value instanceof Collection) {
      List items = new ArrayList();
      for (Iterator each = ((Collection) value).iterator(); each.hasNext(); ) {
        items.add(text(each.next()));
      }
      return items;
    } else if (value instanceof Map) {
      Map entries = new TreeMap();
      for (Iterator each = ((Map) value).entrySet().iterator(); each.hasNext(); ) {
        Map.Entry entry = (Map.Entry) each.next();
        entries.put(entry.getKey().toString(), text(entry.getValue()));
      }
      return entries;
    }
    return value;
  }
}
