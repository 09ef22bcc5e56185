package shop;

import java.util.List;
import java.util.Map;
import org.apache.avro.reflect.AvroAlias;

public class Basic {
    public long id;
    public long count;
    @AvroAlias(alias = "name")
    public String title;
    public boolean flag;
    public double ratio;
    public double amount;
    public Float ratioN;
    public Double amountN;
    public Boolean flagN;
    public Long idN;
    public byte[] raw;
    public Level level;
    public Line first;
    public List<Line> lines;
    public Map<String, Integer> stock;
    public Map<String, Line> bySku;
    public List<String> tags;
    public int[] ints;
    public String note;
}
