package shop;

public class Line {
    public String sku;
    public int count;
}
