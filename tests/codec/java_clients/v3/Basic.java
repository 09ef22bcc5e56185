package shop;

import java.util.List;
import java.util.Map;
import org.apache.avro.reflect.AvroAlias;
import org.apache.avro.reflect.AvroDefault;
import org.apache.avro.reflect.AvroSchema;

public class Basic {
    public long id;
    public long count;
    @AvroAlias(alias = "name")
    public String title;
    public boolean flag;
    public double ratio;
    public double amount;
    public Double ratioN;
    public Double amountN;
    public Boolean flagN;
    public Long idN;
    public byte[] raw;
    public Level level;
    public Line first;
    public List<Line> lines;
    public Map<String, Long> stock;
    public Map<String, Line> bySku;
    public List<String> tags;
    public long[] ints;
    public String note;
    @AvroDefault("7")
    public int seven;
    @AvroSchema("[\"string\",\"null\"]")
    @AvroDefault("\"x\"")
    public String dflt = "init";
    public Map<String, List<Integer>> deep;
    public Level kind;
}
