package shop;

public class Key {
    public String region;
    public int n;
}
