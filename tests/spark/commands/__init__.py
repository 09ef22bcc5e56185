"""Commands on Spark. They share one JVM, so that another test worker can run the other tests of Spark."""
