"""Commands on Spark: they share a Java of their own, and a worker has them beside the one that has the rest of Spark."""
