package shop;

public class Chars {
    public int id;
    public char letter;
    public Character letterN;
}
