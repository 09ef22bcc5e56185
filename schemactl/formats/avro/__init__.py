"""Avro: the schema language of the types AVRO, JSON and PROTOBUF."""
