"""What a change of a schema does to the Parquet and Delta tables that a topic feeds, told by its StructTypes; no Spark needed."""
