"""The columns that a topic's messages are read into, as Spark types, and what they were called before."""
