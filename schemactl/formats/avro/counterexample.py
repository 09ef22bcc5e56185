"""Find the smallest message that a reader cannot decode or misreads, which proves the claim of a finding.

It is encoded and decoded by `datum_encoding` and `datum_reader`; the codec for pipelines is `schemactl.codec`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice

from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.formats.avro.compatibility import Token, get_trace, make_message_trace
from schemactl.formats.avro.datum_encoding import Datum, UnionValue, encode, to_json, write_json
from schemactl.formats.avro.datum_reader import DatumReader, MessageReading, ReadFailure, Unclear
from schemactl.formats.avro.defaults import read_default
from schemactl.formats.avro.sample_messages import ONES, SampleMessages, list_candidates
from schemactl.formats.avro.schema import NO_DEFAULT, Enum, Schema, parts

MAX_CANDIDATES = 2_000
"""The maximum number of messages to try for one pair of schemas; a schema with more enum symbols may stay without a counterexample."""

MAX_TRIED_BYTES = 200_000
"""The maximum size of these messages together."""


def counterexample(breakage: Breakage, *, new: Schema, old: Schema, plain_json: bool) -> Counterexample | None:
    """Return the message that proves `breakage` best: small, and if possible failing at the finding's own place.

    Args:
        breakage: the finding to prove.
        new: the proposed schema.
        old: the version it breaks with.
        plain_json: whether messages are plain JSON instead of Avro's binary form (Pulsar's JSON type).
    """
    incompatibility = breakage.incompatibility
    reader, writer = breakage.sides(new=new, old=old)
    trace = make_message_trace(reader, get_trace(incompatibility))
    samples = SampleMessages(writer, _list_symbols(writer) - _list_symbols(reader))
    messages = _find_unreadable(samples.list_along(writer, trace), writer, reader)
    ranks = [_rank_message(message, incompatibility, trace) for message in messages]
    if not any(named or -shared == len(trace) for named, shared, _ in ranks):
        # No message fails at the place of the incompatibility.
        messages += find_unreadable_messages(writer=writer, reader=reader)
    if not messages:
        return _find_lost_value(trace, reader, writer, plain_json=plain_json)
    best = min(messages, key=lambda message: _rank_message(message, incompatibility, trace))
    text = write_json(to_json(writer, best.datum, tagged=not plain_json))
    failure = best.failure
    if plain_json:
        # JSON libraries differ in how they read it; the Avro rules are the common ground of such topics.
        return Counterexample(text, text.encode(), f"not allowed by the reader's schema: {failure.message}")
    result = f"{failure.exception}: {failure.message}" if failure.message else failure.exception
    return Counterexample(text, best.data, result)


def _rank_message(
    message: UnreadableMessage, incompatibility: Incompatibility, trace: Sequence[Token]
) -> tuple[int, int, int]:
    """Return a sort key: a better proof of the incompatibility has a smaller key."""
    failure = message.failure
    shared = 0
    for failure_token, token in zip(failure.tokens, trace, strict=False):
        if failure_token != token:
            break
        shared += 1
    # A missing field is recognized by its name, every other failure by the number of tokens that it shares with the trace.
    is_missing_field = incompatibility.rule == "READER_FIELD_MISSING_DEFAULT_VALUE"
    is_named = is_missing_field and failure.message.endswith(f" field {incompatibility.message}")
    return -is_named, -shared, len(message.data)


def _find_lost_value(
    trace: Sequence[Token], reader: Schema, writer: Schema, *, plain_json: bool
) -> Counterexample | None:
    """Return the smallest message in which the reader replaces a written value on `trace` by a default, or None."""
    messages = chain(list_candidates(writer), list_candidates(writer, primitives=ONES))
    best: Counterexample | None = None
    for datum, data, reading in _read_messages(messages, writer, reader):
        if best and len(data) >= len(best.data):
            continue
        for lost_value in reading.lost_values:
            loss_trace = *lost_value.tokens, lost_value.field.name
            written = to_json(lost_value.source.schema, lost_value.value, tagged=False)
            default = read_default(lost_value.field)
            is_elsewhere = any(loss_token != token for loss_token, token in zip(loss_trace, trace, strict=False))
            if default is NO_DEFAULT or written == default or is_elsewhere:
                continue
            text = write_json(to_json(writer, datum, tagged=not plain_json))
            reader_name = "Avro's Java reader" if plain_json else "Java"
            best = Counterexample(
                text,
                text.encode() if plain_json else data,
                f"{reader_name} reads {lost_value.field.name} as its default, {write_json(default)}: the {lost_value.source.name} that was "
                f"written, {write_json(written)}, is lost",
            )
            break
    return best


def find_value_along(datum: Datum, tokens: Sequence[str | int]) -> Datum:
    """Return the value that `tokens` lead to in a message whose arrays and maps have a single item."""
    for token in tokens:
        if isinstance(datum, UnionValue):
            datum = datum.value
        elif isinstance(datum, dict) and token in datum:
            datum = datum[token]
        else:
            (datum,) = datum.values() if isinstance(datum, dict) else datum
    return datum


@dataclass(frozen=True, slots=True)
class UnreadableMessage:
    """A message of the writer, as a datum and in binary, and one place where the reader fails."""

    datum: Datum
    data: bytes
    failure: ReadFailure


@lru_cache(maxsize=4)
def find_unreadable_messages(*, writer: Schema, reader: Schema) -> tuple[UnreadableMessage, ...]:
    """Return the smallest message of `writer` for each place and exception at which `reader` fails, in the order of size.

    The result is empty if every message decodes (a record was renamed), if no message can be written (a record must contain
    itself), or if every message is too large to show.
    """
    messages = list_candidates(writer, uncommon_symbols=_list_symbols(writer) - _list_symbols(reader))
    return _find_unreadable(messages, writer, reader)


def _find_unreadable(messages: Iterable[Datum], writer: Schema, reader: Schema) -> tuple[UnreadableMessage, ...]:
    smallest_by_failure: dict[ReadFailure, UnreadableMessage] = {}
    for datum, data, reading in _read_messages(messages, writer, reader):
        for failure in reading.failures:
            smallest = smallest_by_failure.get(failure)
            if smallest is None or len(data) < len(smallest.data):
                smallest_by_failure[failure] = UnreadableMessage(datum, data, failure)
    return tuple(sorted(smallest_by_failure.values(), key=lambda message: len(message.data)))


def _read_messages(
    messages: Iterable[Datum], writer: Schema, reader: Schema
) -> Iterator[tuple[Datum, bytes, MessageReading]]:
    """Yield the first `messages`, in binary and as the reader sees them, within the limits."""
    datum_reader = DatumReader(writer=writer, reader=reader)
    remaining_bytes = MAX_TRIED_BYTES
    for datum in islice(messages, MAX_CANDIDATES):
        data = encode(writer, datum)
        try:
            yield datum, data, datum_reader.read(datum)
        except Unclear:
            return
        remaining_bytes -= len(data)
        if remaining_bytes < 0:
            return


def _list_symbols(schema: Schema) -> frozenset[str]:
    return frozenset().union(*(part.symbols for part in parts(schema) if isinstance(part, Enum)))
