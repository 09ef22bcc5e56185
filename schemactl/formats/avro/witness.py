"""The smallest message that a reader cannot read: sought among a writer's simplest messages, proved by reading it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from schemactl.formats.avro.datum import Datum, Failure, In, encode, failures, to_json
from schemactl.formats.avro.java import Thrown
from schemactl.formats.avro.schema import Array, Enum, Fixed, Map, Record, Schema, Union
from schemactl.formats.avro.way import message_way, way_of
from schemactl.model import Breakage, Release, Witness

MAX_CANDIDATES = 2_000
"""Of messages tried for one pair of schemas: a definition with more enum symbols and branches may stay without a witness."""


@dataclass(frozen=True, slots=True)
class UnreadableMessage:
    """A message of the writer, in the form of `schemactl.formats.avro.datum` and in binary, and one place where it fails."""

    datum: Datum
    data: bytes
    failure: Failure


def unreadable_messages(*, writer: Schema, reader: Schema, release: Release) -> tuple[UnreadableMessage, ...]:
    """Messages of `writer` that `reader` cannot read: the smallest for each place and exception, the smallest first.

    Nothing is found where every message decodes (a record was renamed), or where nothing can be written at all (a record
    that must contain itself).
    """
    found: dict[Failure, UnreadableMessage] = {}
    data = b""
    for datum in islice(candidates(writer), MAX_CANDIDATES):
        try:
            data = encode(writer, datum)
            reasons = failures(data, writer=writer, reader=reader, release=release)
        except Thrown as thrown:
            return (UnreadableMessage(datum, data, Failure(thrown.exception, thrown.message, ())),)
        except RecursionError:
            break
        for reason in reasons:
            if reason not in found or len(data) < len(found[reason].data):
                found[reason] = UnreadableMessage(datum, data, reason)
    return tuple(sorted(found.values(), key=lambda message: len(message.data)))


class _Endless(Exception):
    """A record that must contain itself has no smallest message, nor any."""


def candidates(schema: Schema) -> Iterator[Datum]:
    """The smallest message, then for each place in the schema one that goes there, each enum symbol and branch in turn."""
    try:
        yield smallest(schema)
        yield from _variants(schema, frozenset())
    except (_Endless, IndexError):
        # Nothing can be written with a record that must contain itself, nor with an enum without symbols.
        return


def smallest(schema: Schema, inside: frozenset[int] = frozenset()) -> Datum:
    """The simplest value: zeros, empty containers, the first symbol, null where a union has it.

    Raises:
        _Endless: every value would contain itself.
    """
    if isinstance(schema, Record):
        if id(schema) in inside:
            raise _Endless
        within = inside | {id(schema)}
        return {field.name: smallest(field.schema, within) for field in schema.fields}
    if isinstance(schema, Union):
        return _smallest_branch(schema, inside)
    if isinstance(schema, Array | Map):
        return [] if isinstance(schema, Array) else {}
    if isinstance(schema, Enum):
        return schema.symbols[0]
    if isinstance(schema, Fixed):
        return bytes(schema.size)
    return _ZEROS[schema.type]


def _smallest_branch(union: Union, inside: frozenset[int]) -> In:
    for index in sorted(range(len(union.branches)), key=lambda index: union.branches[index].type != "null"):
        try:
            return In(index, smallest(union.branches[index], inside))
        except _Endless:
            continue
    raise _Endless


_ZEROS: dict[str, Any] = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": b"",
    "string": "",
}


def _variants(schema: Schema, inside: frozenset[int]) -> Iterator[Datum]:
    """Values that differ from the smallest in one choice: a symbol, a branch, an item; each record is entered once."""
    if isinstance(schema, Enum):
        yield from schema.symbols[1:]
    elif isinstance(schema, Union):
        for index, branch in enumerate(schema.branches):
            values = _each(branch, inside) if id(branch) not in inside else iter([smallest(branch)])
            yield from (In(index, value) for value in values)
    elif isinstance(schema, Array):
        yield from ([item] for item in _each(schema.items, inside))
    elif isinstance(schema, Map):
        yield from ({"k": value} for value in _each(schema.values, inside))
    elif isinstance(schema, Record) and id(schema) not in inside:
        within = inside | {id(schema)}
        least = smallest(schema)
        for field in schema.fields:
            yield from (least | {field.name: value} for value in _variants(field.schema, within))


def _each(schema: Schema, inside: frozenset[int]) -> Iterator[Datum]:
    """The smallest value, then its variants."""
    try:
        yield smallest(schema)
    except _Endless:
        return
    yield from _variants(schema, inside)


def witness(
    breakage: Breakage, *, new: Schema, old: Schema, plain_json: bool, release: Release
) -> Witness | None:
    """The message that proves `breakage` best: it stops at the finding's own place, if one does, and is small.

    Args:
        breakage: what is to be proved.
        new: the proposed schema.
        old: the version it breaks with.
        plain_json: messages travel as plain JSON, not in Avro's binary form (Pulsar's JSON type).
        release: whose reader is used.
    """
    found = breakage.incompatibility
    reader, writer = (old, new) if breakage.direction == "old_reads_new" else (new, old)
    wanted = message_way(reader, way_of(found))
    messages = unreadable_messages(writer=writer, reader=reader, release=release)
    if not messages:
        return None

    def fitness(message: UnreadableMessage) -> tuple[int, int, int]:
        failure = message.failure
        pairs = zip(failure.tokens, wanted, strict=False)
        shared = next(
            (at for at, (one, other) in enumerate(pairs) if one != other),
            min(len(failure.tokens), len(wanted)),
        )
        # A missing field is told by its name; everything else by how far into the message the way is the finding's own.
        named = found.rule == "READER_FIELD_MISSING_DEFAULT_VALUE" and failure.message.endswith(
            f" field {found.message}"
        )
        return -named, -shared, len(message.data)

    best = min(messages, key=fitness)
    shown = json.dumps(to_json(writer, best.datum, tagged=not plain_json), ensure_ascii=False)
    failure = best.failure
    if plain_json:
        # What a JSON library makes of it differs; the Avro rules are what such topics agree on.
        return Witness(shown, shown.encode(), f"what the reader's schema does not allow: {failure.message}")
    said = f"{failure.exception}: {failure.message}" if failure.message else failure.exception
    return Witness(shown, best.data, said)
