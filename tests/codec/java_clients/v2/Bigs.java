package shop;

import java.math.BigDecimal;
import java.math.BigInteger;

public class Bigs {
    public int id;
    public String note;
    public BigDecimal big;
    public BigInteger bigint;
}
