"""Messages of topics on a live broker, as tests send and read them."""

from __future__ import annotations

import json
from typing import Any

from pulsar_cluster import Namespace
from pyspark.sql.datasource import InputPartition

from schemactl.spark.pulsar.options import parse_connection, parse_read_options
from schemactl.spark.pulsar.source import PulsarBatch

from .schemas import make_codec, make_field, record

_VERSIONS = [record("N", make_field("id", kind)) for kind in ("int", "long")]
NUMBERS = [json.dumps(version) for version in _VERSIONS]
CODEC = make_codec(*_VERSIONS)


def make_values(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def make_payloads(start: int, end: int, version: int) -> list[bytes | None]:
    """Numbers as that version of NUMBERS has them."""
    return [CODEC.read_as(version).encode_one({"id": number}, version) for number in range(start, end)]


def batch(space: Namespace, **options: str) -> PulsarBatch:
    all_options = {**space.options, **options}
    return PulsarBatch(parse_connection(all_options, "a batch"), parse_read_options(all_options, "a batch"))


def read(reader: PulsarBatch, parts: list[InputPartition] | None = None) -> list[dict[str, Any]]:
    parts = reader.partitions() if parts is None else parts
    return [row for part in parts for found in reader.read(part) for row in found.to_pylist()]


def read_values(space: Namespace, **options: str) -> list[bytes]:
    return [row["value"] for row in read(batch(space, **options))]
