"""What other tools read of topics: Avro definitions, JSON Schemas, tables in SQL, an AsyncAPI document."""
