package shop;

public class Box {
    public int w;
    public String s;
}
