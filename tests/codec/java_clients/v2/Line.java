package shop;

public class Line {
    public String sku;
    public long count;
    public Double price;
}
