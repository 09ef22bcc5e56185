"""Spark's data source for Pulsar."""
