import com.fasterxml.jackson.annotation.JsonProperty;
import org.apache.pulsar.client.api.Schema;

/** Prints the definition of a JavaBean, then a message of it. */
public class BeanNames {
    public static class Bean {
        private boolean isActive = true;
        private String URL = "u";

        @JsonProperty("customer_id")
        private String customerId = "c";

        public boolean isActive() {
            return isActive;
        }

        public void setActive(boolean active) {
            isActive = active;
        }

        public String getURL() {
            return URL;
        }

        public void setURL(String url) {
            URL = url;
        }
    }

    public static void main(String[] args) {
        Schema<Bean> schema = Schema.JSON(Bean.class);
        System.out.println(schema.getSchemaInfo().getSchemaDefinition().replaceAll("\\s+", " "));
        System.out.println(new String(schema.encode(new Bean())));
    }
}
