"""Tables that Parquet files are committed to: folders, Delta tables by delta-rs, Iceberg tables by pyiceberg.

`landing_table.py` is their interface. Nothing here runs Spark, whose types only describe columns. Imports nothing of schemactl
outside of `spark`, and only relatively, so that a generated package can carry a copy.
"""
