"""Messages of one schema that a reader with another schema misreads, for all schema types.

A consumer decodes every message by its own schema. So a changed type is proved by a small message of the writer's,
read as the reader would: it throws, or reads another value. Where the readings of all messages tried agree (TIMESTAMP
as DATE: one moment) nothing is proved. PROTOBUF without its `.proto` does not tell its bytes, EXTERNAL never does.

Avro is read by the reader's definition alone. So does a client where the message names no version (Python's: where all
else fails). Java's looks the version up first, and throws before it reads where that has no Avro definition: results
say by what was read, unless both definitions are the same.

Sources: `KeyValue` (org.apache.pulsar.common.schema), MessageImpl, GenericJsonReader.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from schemactl.core.errors import SchemactlError
from schemactl.core.findings import Counterexample, Direction
from schemactl.core.schema import SchemaInfo
from schemactl.formats.base import ReaderFailure, UnknownWire, pair_of, spec

MAX_MESSAGES: Final = 9
"""Of one schema that are tried."""

BY_ITS_OWN: Final = " (decoded by the reader's definition alone)"
"""Added to a result where another definition might have been used."""


def misreading_of(direction: Direction, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
    """Return a message that one side misreads, of those that `direction` has reading; None where none was found."""
    if direction != "old_reads_new":
        found = misreading(reader=new, writer=old)
        if found or direction == "new_reads_old":
            return found
    return misreading(reader=old, writer=new)


def misreading(*, reader: SchemaInfo, writer: SchemaInfo) -> Counterexample | None:
    """Return the first small message of `writer` that `reader` throws on or reads as another value; None: there was none.

    None, too, where a definition does not parse, or protobuf is not installed.
    """
    reader, writer = reader.proto or reader, writer.proto or writer
    try:
        by = BY_ITS_OWN if _holds_avro(reader) and reader.schema != writer.schema else ""
        for wire in islice(spec(writer).messages(writer), MAX_MESSAGES):
            written, payload = spec(writer).read(wire, writer), wire.payload or b""
            try:
                result = spec(reader).read(wire, reader)
            except ReaderFailure as thrown:
                return Counterexample(written, payload, f"{thrown}{by}")
            if result != written:
                return Counterexample(written, payload, f"reads {result}{by}")
    except (SchemactlError, UnknownWire, RecursionError):
        return None
    return None


def _holds_avro(info: SchemaInfo) -> bool:
    pair = pair_of(info)
    return any(map(_holds_avro, pair.halves.values())) if pair else spec(info).payload == "avro"
