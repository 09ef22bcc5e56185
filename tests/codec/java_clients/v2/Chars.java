package shop;

public class Chars {
    public int id;
    public String note;
    public char letter;
    public Character letterN;
}
