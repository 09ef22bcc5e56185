package shop;

public class Bag {
    public String c;
}
