package shop;

import org.apache.avro.reflect.Union;

public class Choice {
    public int id;
    public String note;
    @Union({Box.class, Bag.class})
    public Object either;
    @Union({Long.class, String.class, Double.class})
    public Object any;
}
