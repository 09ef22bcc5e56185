package shop;

import java.util.List;
import java.util.Map;

public class Basic {
    public long id;
    public int count;
    public String name;
    public boolean flag;
    public float ratio;
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
    public String gone;
}
