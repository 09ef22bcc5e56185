package shop;

public class Key {
    public String region;
    public int n;
    public Long more;
}
