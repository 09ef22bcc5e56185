"""Decoding and encoding a topic's messages: the run-time of generated packages.

Imports nothing of schemactl outside this folder, and only relatively, so that a generated package can carry a copy.
"""

from __future__ import annotations

from .batch import Decoded, Encoded
from .columns import Options
from .definition import Definition, KeyValue, Numbers, Version
from .errors import (
    BatchTooLarge,
    CodecError,
    CodecUnavailable,
    InvalidDefinition,
    UnknownVersion,
    Unreadable,
    Unwritable,
)
from .topic import Codec

__all__ = [
    "BatchTooLarge",
    "Codec",
    "CodecError",
    "CodecUnavailable",
    "Decoded",
    "Definition",
    "Encoded",
    "InvalidDefinition",
    "KeyValue",
    "Numbers",
    "Options",
    "UnknownVersion",
    "Unreadable",
    "Unwritable",
    "Version",
]
