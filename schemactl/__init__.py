"""Schemas as code for Apache Pulsar."""

