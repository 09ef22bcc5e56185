package shop;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.List;
import java.util.Map;

public class Odd {
    public int id;
    public String note;
    public LocalDateTime local;
    public char[] letters;
    public Map<Integer, String> byNumber;
    public Map<Level, Long> byLevel;
    public List<BigDecimal> bigs;
    public Map<LocalDate, String> byDay;
    public Map<Instant, Level> byInstant;
    public Map<LocalDateTime, String> byLocal;
}
