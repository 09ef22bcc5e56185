"""The effect of a schema change on Parquet and Delta tables, from the StructTypes alone; needs no Spark."""
