"""Topics' messages as DataFrames: decoding with a generated codec, rejected messages with their reason.

    decoded = decode(messages, codec)                    # in a generated package: ORDERS.decode(messages)
    rows, rejected = split(decoded, codec)
    landed = land(messages, codec, "orders")

Imports nothing of schemactl but `codec`, and only relatively, so that a generated package can carry a copy.
"""

from __future__ import annotations

from .dataframes import decode, decode_column, encode, split
from .landing import land, land_stream, replay, sink
from .landing_sink import Counts, Landed
from .message_columns import ERROR, KEY, PAYLOAD, SCHEMA_VERSION
from .pulsar.registered import registered_codec
from .pulsar.source import PulsarSource
from .session import JavaNotFound, ensure_java
from .tables.landing_table import Conflict, WrongArgument
from .views import FormerNames, view, view_sql

__all__ = [
    "ERROR",
    "KEY",
    "PAYLOAD",
    "SCHEMA_VERSION",
    "Conflict",
    "Counts",
    "FormerNames",
    "JavaNotFound",
    "Landed",
    "PulsarSource",
    "WrongArgument",
    "decode",
    "decode_column",
    "encode",
    "ensure_java",
    "land",
    "land_stream",
    "registered_codec",
    "replay",
    "sink",
    "split",
    "view",
    "view_sql",
]
