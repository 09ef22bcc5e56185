"""The smallest message that a reader cannot decode or misreads, verified by decoding it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice

from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release
from schemactl.formats.avro.datum import (
    Datum,
    DatumReader,
    In,
    MessageReading,
    ReadFailure,
    Unclear,
    encode,
    to_json,
)
from schemactl.formats.avro.defaults import read_default
from schemactl.formats.avro.equality import parts
from schemactl.formats.avro.sample import ONES, SampleMessages, candidates
from schemactl.formats.avro.schema import NO_DEFAULT, Enum, Schema
from schemactl.formats.avro.trace import Token, message_trace, trace_of

MAX_CANDIDATES = 2_000
"""Of messages tried for one pair of schemas: a definition with more enum symbols and branches may stay without a counterexample."""

MAX_TRIED_BYTES = 200_000
"""Of such messages altogether."""


@dataclass(frozen=True, slots=True)
class UnreadableMessage:
    """A message of the writer, in the form of `schemactl.formats.avro.datum` and in binary, and one place where it fails."""

    datum: Datum
    data: bytes
    failure: ReadFailure


@lru_cache(maxsize=4)
def unreadable_messages(*, writer: Schema, reader: Schema, release: Release) -> tuple[UnreadableMessage, ...]:
    """Return messages of `writer` that `reader` cannot read: the smallest for each place and exception, the smallest first.

    Nothing is found where every message decodes (a record was renamed), where nothing can be written at all (a record
    that must contain itself), and where every message is too large to be shown (`sample`).
    """
    return _tried(candidates(writer, uncommon=_unknown_symbols(writer, reader)), writer, reader, release)


def _tried(
    messages: Iterable[Datum], writer: Schema, reader: Schema, release: Release
) -> tuple[UnreadableMessage, ...]:
    found: dict[ReadFailure, UnreadableMessage] = {}
    for datum, data, reading in _readings(messages, writer, reader, release):
        for failure in reading.failures:
            if failure not in found or len(data) < len(found[failure].data):
                found[failure] = UnreadableMessage(datum, data, failure)
    return tuple(sorted(found.values(), key=lambda message: len(message.data)))


def _readings(
    messages: Iterable[Datum], writer: Schema, reader: Schema, release: Release
) -> Iterator[tuple[Datum, bytes, MessageReading]]:
    """Yield the first `messages` in binary, and what comes of them."""
    pair = DatumReader(writer=writer, reader=reader, release=release)
    room = MAX_TRIED_BYTES
    for datum in islice(messages, MAX_CANDIDATES):
        data = encode(writer, datum)
        try:
            yield datum, data, pair.read(datum)
        except Unclear:
            return
        room -= len(data)
        if room < 0:
            return


def _unknown_symbols(writer: Schema, reader: Schema) -> frozenset[str]:
    """Return the enum symbols in `writer` that `reader` has nowhere."""
    return _symbols(writer) - _symbols(reader)


def _symbols(schema: Schema) -> frozenset[str]:
    return frozenset().union(*(part.symbols for part in parts(schema) if isinstance(part, Enum)))


def counterexample(
    breakage: Breakage, *, new: Schema, old: Schema, plain_json: bool, release: Release
) -> Counterexample | None:
    """Return the message that proves `breakage` best: it stops at the finding's own place, if one does, and is small.

    Args:
        breakage: what is to be proved.
        new: the proposed schema.
        old: the version it breaks with.
        plain_json: messages travel as plain JSON, not in Avro's binary form (Pulsar's JSON type).
        release: whose reader is used.
    """
    found = breakage.incompatibility
    reader, writer = breakage.sides(new=new, old=old)
    wanted = message_trace(reader, trace_of(found))
    sample = SampleMessages(writer, _unknown_symbols(writer, reader))
    messages = _tried(sample.along(writer, wanted), writer, reader, release)
    if not any(_is_at(message, found, wanted) for message in messages):
        messages += unreadable_messages(writer=writer, reader=reader, release=release)
    if not messages:
        return _lost_value(found, reader, writer, plain_json=plain_json, release=release)
    best = min(messages, key=lambda message: _fitness(message, found, wanted))
    shown = _text(to_json(writer, best.datum, tagged=not plain_json))
    failure = best.failure
    if plain_json:
        # What a JSON library makes of it differs; the Avro rules are what such topics agree on.
        return Counterexample(
            shown, shown.encode(), f"what the reader's schema does not allow: {failure.message}"
        )
    result = f"{failure.exception}: {failure.message}" if failure.message else failure.exception
    return Counterexample(shown, best.data, result)


def _is_at(message: UnreadableMessage, found: Incompatibility, wanted: Sequence[Token]) -> bool:
    """Whether a message fails just where the finding is."""
    is_named, shared, _ = _fitness(message, found, wanted)
    return bool(is_named) or -shared == len(wanted)


def _fitness(
    message: UnreadableMessage, found: Incompatibility, wanted: Sequence[Token]
) -> tuple[int, int, int]:
    """Return a sort key: the less, the better the message proves the finding."""
    failure = message.failure
    shared = 0
    for one, other in zip(failure.tokens, wanted, strict=False):
        if one != other:
            break
        shared += 1
    # A missing field is recognised by its name; everything else by how far into the message the trace is the finding's own.
    is_named = found.rule == "READER_FIELD_MISSING_DEFAULT_VALUE" and failure.message.endswith(
        f" field {found.message}"
    )
    return -is_named, -shared, len(message.data)


def _lost_value(
    found: Incompatibility, reader: Schema, writer: Schema, *, plain_json: bool, release: Release
) -> Counterexample | None:
    """Return the smallest message that is read with a default in place of what was written; None: there is none at the finding."""
    wanted = message_trace(reader, trace_of(found))
    messages = chain(candidates(writer), candidates(writer, primitives=ONES))
    best: Counterexample | None = None
    for datum, data, reading in _readings(messages, writer, reader, release):
        if best and len(data) >= len(best.data):
            continue
        for loss in reading.losses:
            trace = *loss.tokens, loss.field.name
            written = to_json(loss.source.schema, _value(datum, loss.tokens)[loss.source.name], tagged=False)
            read = read_default(loss.field)
            if (
                read is NO_DEFAULT
                or written == read
                or any(one != other for one, other in zip(trace, wanted, strict=False))
            ):
                continue
            shown = to_json(writer, datum, tagged=not plain_json)
            who = "Avro's Java reader" if plain_json else "Java"
            best = Counterexample(
                _text(shown),
                _text(shown).encode() if plain_json else data,
                f"{who} reads {loss.field.name} as its default, {_text(read)}: the {loss.source.name} that was "
                f"written, {_text(written)}, is lost",
            )
            break
    return best


def _value(datum: Datum, tokens: Sequence[str | int]) -> Datum:
    """Return what stands at `tokens` in a message; of a container it is the only item."""
    for token in tokens:
        if isinstance(datum, In):
            datum = datum.value
        elif isinstance(datum, dict) and token in datum:
            datum = datum[token]
        else:
            (datum,) = datum.values() if isinstance(datum, dict) else datum
    return datum


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
