"""Find the smallest message that a reader cannot decode or misreads, and prove it with a small encoder and decoder.

This proves the claim of a finding; the codec for pipelines is `schemactl.codec`. Data are plain: None, bool, int, float, str,
bytes, list, dict for maps and records, and `UnionValue` for a value of a union.
"""

from __future__ import annotations

import heapq
import json
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from schemactl.codec.definition import Unreadable
from schemactl.codec.wire_format import decode_varint, encode_zigzag
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release
from schemactl.formats.avro.compatibility import Token, message_trace, trace_of
from schemactl.formats.avro.defaults import (
    MISSING_SYMBOL,
    check_default,
    encode_default,
    find_altered_parts,
    read_default,
)
from schemactl.formats.avro.resolving_grammar import Likeness, Mark, Resolution, apply_aliases, compare_leaves
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    JavaException,
    Map,
    Path,
    Primitive,
    Record,
    Schema,
    Union,
    children,
    locate_children,
    parts,
    pointer,
)
from schemactl.formats.type_spec import ReaderFailure, UnknownWire

Datum = Any
Tokens = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class UnionValue:
    """A value of the union's branch with this index."""

    branch: int
    value: Datum


ZEROS: Final[dict[str, Any]] = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": b"",
    "string": "",
}

ONES: Final[dict[str, Any]] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.0,
    "double": 1.0,
    "bytes": b"1",
    "string": "1",
}

_DISTINCTIVE: Final = ONES | {"float": 1.5, "double": 1.5, "bytes": b"\xff", "string": "é"}

MAX_CANDIDATES = 2_000
"""The maximum number of messages to try for one pair of schemas; a schema with more enum symbols may stay without a counterexample."""

MAX_TRIED_BYTES = 200_000
"""The maximum size of these messages together."""

MAX_VALUES: Final = 2_000
"""The maximum number of values in a message, where each byte of a fixed counts; a larger message is not shown."""

MAX_DEPTH: Final = 100
"""The maximum depth of nested values in a message that is shown."""

MAX_ITEMS: Final = 10_000
"""The maximum number of array and map items in one message; a message that claims more is not decoded."""

_MAX_LENGTH: Final = 2**31 - 9

_END_OF_DATA: Final = "SchemaSerializationException: java.io.EOFException"


def counterexample(
    breakage: Breakage, *, new: Schema, old: Schema, plain_json: bool, release: Release
) -> Counterexample | None:
    """Return the message that proves `breakage` best: small, and if possible failing at the finding's own place.

    Args:
        breakage: the finding to prove.
        new: the proposed schema.
        old: the version it breaks with.
        plain_json: whether messages are plain JSON instead of Avro's binary form (Pulsar's JSON type).
        release: the release whose reader is used.
    """
    incompatibility = breakage.incompatibility
    reader, writer = breakage.sides(new=new, old=old)
    trace = message_trace(reader, trace_of(incompatibility))
    samples = SampleMessages(writer, _list_symbols(writer) - _list_symbols(reader))
    messages = _find_unreadable(samples.list_along(writer, trace), writer, reader, release)
    ranks = [_rank_message(message, incompatibility, trace) for message in messages]
    if not any(named or -shared == len(trace) for named, shared, _ in ranks):
        # No message fails at the place of the incompatibility.
        messages += find_unreadable_messages(writer=writer, reader=reader, release=release)
    if not messages:
        return _find_lost_value(trace, reader, writer, plain_json=plain_json, release=release)
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
    trace: Sequence[Token], reader: Schema, writer: Schema, *, plain_json: bool, release: Release
) -> Counterexample | None:
    """Return the smallest message in which the reader replaces a written value on `trace` by a default, or None."""
    messages = chain(list_candidates(writer), list_candidates(writer, primitives=ONES))
    best: Counterexample | None = None
    for datum, data, reading in _read_messages(messages, writer, reader, release):
        if best and len(data) >= len(best.data):
            continue
        for lost_value in reading.lost_values:
            loss_trace = *lost_value.tokens, lost_value.field.name
            written = to_json(
                lost_value.source.schema, value_along(datum, lost_value.tokens)[lost_value.source.name], tagged=False
            )
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


def value_along(datum: Datum, tokens: Sequence[str | int]) -> Datum:
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
def find_unreadable_messages(*, writer: Schema, reader: Schema, release: Release) -> tuple[UnreadableMessage, ...]:
    """Return the smallest message of `writer` for each place and exception at which `reader` fails, in the order of size.

    The result is empty if every message decodes (a record was renamed), if no message can be written (a record must contain
    itself), or if every message is too large to show.
    """
    messages = list_candidates(writer, uncommon_symbols=_list_symbols(writer) - _list_symbols(reader))
    return _find_unreadable(messages, writer, reader, release)


def _find_unreadable(
    messages: Iterable[Datum], writer: Schema, reader: Schema, release: Release
) -> tuple[UnreadableMessage, ...]:
    smallest_by_failure: dict[ReadFailure, UnreadableMessage] = {}
    for datum, data, reading in _read_messages(messages, writer, reader, release):
        for failure in reading.failures:
            smallest = smallest_by_failure.get(failure)
            if smallest is None or len(data) < len(smallest.data):
                smallest_by_failure[failure] = UnreadableMessage(datum, data, failure)
    return tuple(sorted(smallest_by_failure.values(), key=lambda message: len(message.data)))


def _read_messages(
    messages: Iterable[Datum], writer: Schema, reader: Schema, release: Release
) -> Iterator[tuple[Datum, bytes, MessageReading]]:
    """Yield the first `messages`, in binary and as the reader sees them, within the limits."""
    datum_reader = DatumReader(writer=writer, reader=reader, release=release)
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


# Small messages of a schema


def list_candidates(
    schema: Schema, *, uncommon_symbols: Collection[str] = (), primitives: Mapping[str, Any] | None = None
) -> Iterator[Datum]:
    """Yield the smallest message, then a message for each place in the schema that reaches it, with every enum symbol and branch.

    Nothing is yielded if no message can be written (a record must contain itself, an enum has no symbols) or if every message is
    too large.

    Args:
        schema: the writer's schema.
        uncommon_symbols: enum symbols to try before the others.
        primitives: the values of primitives by type; ZEROS by default.
    """
    samples = SampleMessages(schema, uncommon_symbols, primitives)
    if samples.is_small(schema):
        yield samples.make_smallest(schema)
    yield from samples.list_variants(schema)


def messages(schema: Schema) -> Iterator[Datum]:
    """Yield small messages. A primitive has one, with a distinctive value: zeros and empty texts look alike in many types."""
    return iter([_DISTINCTIVE[schema.type]]) if schema.type in _DISTINCTIVE else list_candidates(schema)


class SampleMessages:
    """Small messages of a writer's schema."""

    def __init__(
        self, schema: Schema, uncommon_symbols: Collection[str] = (), primitives: Mapping[str, Any] | None = None
    ) -> None:
        self._least_sizes = compute_least_sizes(schema)
        self._uncommon_symbols = frozenset(uncommon_symbols)
        self._primitives = primitives or ZEROS

    def is_small(self, schema: Schema, depth: int = 0) -> bool:
        """Return whether the smallest value of a part, inside `depth` other values, is small enough to show."""
        values, levels = self._least_sizes.get(schema, (MAX_VALUES + 1, 0))
        return values <= MAX_VALUES and depth + levels <= MAX_DEPTH

    def make_smallest(self, schema: Schema) -> Datum:
        """Return the simplest value of a part that `is_small`: zeros, empty containers, first symbols, null if a union has it."""
        match schema:
            case Record():
                return {field.name: self.make_smallest(field.schema) for field in schema.fields}
            case Union():
                index = find_simplest_branch(schema, self._least_sizes)
                return UnionValue(index, self.make_smallest(schema.branches[index]))
            case Array():
                return []
            case Map():
                return {}
            case Enum():
                return schema.symbols[0]
            case Fixed():
                return self._primitives["bytes"][:1] * schema.size or bytes(schema.size)
        return self._primitives[schema.type]

    def list_variants(self, schema: Schema, entered: frozenset[int] = frozenset(), depth: int = 0) -> Iterator[Datum]:
        """Yield values that differ from the smallest in one symbol, branch or item; each record is `entered` once."""
        if isinstance(schema, Enum):
            # The smallest value has the first symbol.
            yield from sorted(schema.symbols[1:], key=lambda symbol: symbol not in self._uncommon_symbols)
        if isinstance(schema, Record):
            if id(schema) in entered or not self.is_small(schema, depth):
                return
            entered |= {id(schema)}
        for _, part, enclose in self._list_parts(schema):
            if isinstance(schema, Union) and id(part) in entered:
                if self.is_small(part, depth + 1):
                    yield enclose(self.make_smallest(part))
            elif isinstance(schema, Record):
                yield from map(enclose, self.list_variants(part, entered, depth + 1))
            else:
                yield from map(enclose, self._list_values(part, entered, depth + 1))

    def list_along(self, schema: Schema, trace: Sequence[str | int], depth: int = 0) -> Iterator[Datum]:
        """Yield values that `trace` leads into (see `Tokens`), with the smallest value and its variants at the end."""
        if not trace:
            yield from self._list_values(schema, frozenset(), depth)
            return
        if depth > MAX_DEPTH:
            return
        # If the reader has no union, the trace has no token for a branch, and every branch is tried.
        is_union_of_writer = isinstance(schema, Union) and not isinstance(trace[0], int)
        for token, part, enclose in self._list_parts(schema):
            if is_union_of_writer or token == trace[0]:
                rest = trace if is_union_of_writer else trace[1:]
                yield from map(enclose, self.list_along(part, rest, depth + 1))

    def make_along(self, schema: Schema, trace: Sequence[str | int], value: Datum) -> Datum | None:
        """Return a datum of `schema` with `value` where `trace` leads (see `Tokens`), or None if it is too large to show."""
        if len(trace) > MAX_DEPTH:
            return None
        encloses: list[Callable[[Datum], Datum]] = []
        for token in trace:
            part = next((part for part in self._list_parts(schema) if part[0] == token), None)
            if part is None:
                return None
            _, schema, enclose = part
            encloses.append(enclose)
        for enclose in reversed(encloses):
            value = enclose(value)
        return value

    def _list_values(self, schema: Schema, entered: frozenset[int], depth: int) -> Iterator[Datum]:
        """Yield the smallest value, then its variants."""
        if depth > MAX_DEPTH:
            return
        if self.is_small(schema):
            yield self.make_smallest(schema)
        yield from self.list_variants(schema, entered, depth)

    def _list_parts(self, schema: Schema) -> Iterator[tuple[str | int, Schema, Callable[[Datum], Datum]]]:
        """Yield for each part of `schema` its token, its schema, and a function that makes a value of `schema` around the part's."""
        match schema:
            case Union():
                for index, branch in enumerate(schema.branches):
                    yield index, branch, partial(UnionValue, index)
            case Array():
                yield "items", schema.items, lambda item: [item]
            case Map():
                yield "values", schema.values, lambda item: {"k": item}
            case Record() if self.is_small(schema):
                smallest = self.make_smallest(schema)
                for field in schema.fields:

                    def replace_field(value: Datum, name: str = field.name) -> Datum:
                        return {**smallest, name: value}

                    yield field.name, field.schema, replace_field


def compute_least_sizes(schema: Schema) -> dict[Schema, tuple[int, int]]:
    """Map each part of a schema to the number of values in its smallest value, itself included, and their depth.

    A part that must contain itself is missing, because its values never end. A smallest value contains only smaller ones, so
    parts are computed from the smallest up (Knuth's generalization of Dijkstra's algorithm).
    """
    # The parents of each part, once for each place, and a heap of the parts whose smallest value has no inner values: the number of
    # values, a number that keeps the order, and the part.
    parents: dict[Schema, list[Schema]] = {schema: []}
    ready: list[tuple[int, int, Schema]] = []
    pending = [schema]
    while pending:
        part = pending.pop()
        for child in children(part):
            if child not in parents:
                parents[child] = []
                pending.append(child)
            parents[child].append(part)
        if isinstance(part, Fixed):
            ready.append((1 + part.size, len(ready), part))
        elif not isinstance(part, Enum | Record | Union) or (
            part.symbols if isinstance(part, Enum) else isinstance(part, Record) and not part.fields
        ):
            ready.append((1, len(ready), part))
    heapq.heapify(ready)

    missing_fields = {part: len(part.fields) for part in parents if isinstance(part, Record)}
    turn = len(ready)
    sizes: dict[Schema, tuple[int, int]] = {}
    while ready:
        values, _, part = heapq.heappop(ready)
        if part in sizes:
            continue
        if isinstance(part, Union):
            sizes[part] = values, 1 + sizes[part.branches[find_simplest_branch(part, sizes)]][1]
        else:
            field_depths = [sizes[field.schema][1] for field in part.fields] if isinstance(part, Record) else []
            sizes[part] = values, 1 + max(field_depths, default=0)
        for parent in parents[part]:
            if isinstance(parent, Record):
                missing_fields[parent] -= 1
                if missing_fields[parent]:
                    continue
                inner_values = sum(sizes[field.schema][0] for field in parent.fields)
            elif isinstance(parent, Union):
                inner_values = values
            else:
                continue
            turn += 1
            heapq.heappush(ready, (1 + inner_values, turn, parent))
    return sizes


def find_simplest_branch(union: Union, sizes: Mapping[Schema, tuple[int, int]]) -> int:
    """Return the index of the branch with the smallest value, and of null if it is one of several."""
    indices = [index for index, branch in enumerate(union.branches) if branch in sizes]
    return min(indices, key=lambda index: (sizes[union.branches[index]][0], union.branches[index].type != "null"))


@lru_cache(maxsize=4)  # called for each of possibly thousands of findings
def can_be_written(schema: Schema) -> bool:
    """Return whether a message can exist. It cannot if a record must contain itself or an enum has no symbols."""
    return schema in compute_least_sizes(schema)


class EndlessRecord(NamedTuple):
    """A record that must contain itself.

    Attributes:
        full_name: its full name.
        field_path: the field that leads back to the record, or the fields, such as `Node.child.parent`.
        pointer: the pointer to the first of these fields.
    """

    full_name: str
    field_path: str
    pointer: str


def find_endless_record(schema: Schema) -> EndlessRecord | None:
    """Return the first record in a schema that must contain itself, or None without such a record."""
    sizes = compute_least_sizes(schema)
    paths = _locate_parts(schema)

    # Each part without a finite value has a child without one, except empty enums and unions: the way along these children
    # ends there or in a cycle.
    next_children = {
        part: (index, child)
        for part in paths
        if part not in sizes
        for index, child in reversed([*enumerate(children(part))])
        if child not in sizes and not _is_empty(child)
    }
    visited: set[Schema] = set()
    for start in next_children:
        way: list[Schema] = []
        part = start
        while part in next_children and part not in visited:
            visited.add(part)
            way.append(part)
            part = next_children[part][1]
        if part in way:
            records = [member for member in way[way.index(part) :] if isinstance(member, Record)]
            fields = [record.fields[next_children[record][0]] for record in records]
            field_path = ".".join([records[0].name, *(field.name for field in fields)])
            first_index = next_children[records[0]][0]
            return EndlessRecord(records[0].full_name, field_path, pointer((paths[records[0]], "fields", first_index)))
    return None


def _is_empty(schema: Schema) -> bool:
    """Return whether it is an enum without symbols, or a union without branches."""
    return isinstance(schema, Enum) or (isinstance(schema, Union) and not schema.branches)


def find_missing_symbols(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield the pointer of each default that sets an enum to a text that is not one of its symbols, and the problem.

    Avro accepts the definition, but its readers fail on every message that lacks the field, and a broker's check fails.
    """
    for part, path in _locate_parts(schema).items():
        for index, field in enumerate(part.fields if isinstance(part, Record) else ()):
            if field.default is NO_DEFAULT:
                continue
            try:
                encode_default(field, Release.R5_0)
            except JavaException as exception:
                if exception.exception == MISSING_SYMBOL:
                    # The message without the list of symbols is the same in versions that list others.
                    enum_value = exception.message.partition(" is not in ")[0]
                    message = f"the default of {part.full_name}.{field.name} cannot be read: {enum_value} is not a symbol of the enum"
                    yield pointer((path, "fields", index, "default")), message


def find_altered_defaults(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield the pointer of each default with a part that Java writes as another value, and the problem."""
    for part, path in _locate_parts(schema).items():
        for index, field in enumerate(part.fields if isinstance(part, Record) else ()):
            if field.default is not NO_DEFAULT:
                for problem in find_altered_parts(field):
                    message = f"the default of {part.full_name}.{field.name} is not kept: {problem}"
                    yield pointer((path, "fields", index, "default")), message


def _locate_parts(schema: Schema) -> dict[Schema, Path]:
    """Map `schema` and every schema inside it, in document order, to the path of its first place."""
    paths: dict[Schema, Path] = {}
    pending: list[tuple[Schema, Path]] = [(schema, ())]
    while pending:
        part, path = pending.pop()
        if part not in paths:
            paths[part] = path
            pending += reversed([(child, (path, *tokens)) for tokens, child in locate_children(part)])
    return paths


# Reading of a message with another schema


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """A place in a message where its reader throws.

    Attributes:
        exception: the simple class name of the Java exception.
        message: its message.
        tokens: the tokens to the place in the writer's message: field names, branch indices, `items`, `values`.
    """

    exception: str
    message: str
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class LostValue:
    """A value that the reader of a message replaces by a default.

    An alias of `field` names `source`, but Java searches the aliases of fields only under their record's name.

    Attributes:
        field: the reader's field, read as its default.
        source: the writer's field with the value.
        tokens: the tokens to the record, as in ReadFailure.
    """

    field: Field
    source: Field
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class MessageReading:
    """The result of reading one message.

    Attributes:
        failures: the places where the reader fails, in the order of reading; empty for a readable message. Java stops at the
            first; it would stop at the next if the ones before were repaired.
        lost_values: the values that the reader replaces by a default in a readable message.
    """

    failures: list[ReadFailure]
    lost_values: list[LostValue]

    def add_failure(self, message: str, tokens: Tokens) -> None:
        """Add a place where the reader fails by Avro's own rules."""
        self.failures.append(ReadFailure("AvroTypeException", message, tokens))


class Unclear(Exception):
    """It takes too much work to find out whether a message is readable."""


class DatumReader:
    """A reader of messages of one schema with another, like the GenericDatumReader of a release."""

    def __init__(self, *, writer: Schema, reader: Schema, release: Release) -> None:
        self._reader = reader
        self._release = release
        self._likeness = Likeness()
        self._resolution = Resolution(release, reader)
        self._default_errors: dict[Field, JavaException | None] = {}
        self._writer: Schema | JavaException
        try:
            self._writer = apply_aliases(writer=writer, reader=reader, release=release)
        except JavaException as exception:
            self._writer = exception

    def read(self, datum: Datum) -> MessageReading:
        """Read a message of the writer.

        An exception that Java throws before it reads is the only failure, without tokens.

        Raises:
            Unclear: if it takes too much work to find out what Java does.
        """
        reading = MessageReading([], [])
        try:
            if isinstance(self._writer, JavaException):
                raise self._writer
            self._read(datum, self._writer, self._reader, reading, ())
        except JavaException as exception:
            if self._resolution.is_exhausted:
                raise Unclear from None
            return MessageReading([ReadFailure(exception.exception, exception.message, ())], [])
        return MessageReading(reading.failures, []) if reading.failures else reading

    def _read(self, datum: Datum, writer: Schema, reader: Schema, reading: MessageReading, tokens: Tokens) -> None:
        """Read one value, in the order and with the choices of Resolver and ResolvingDecoder."""
        if isinstance(writer, Union):
            match = reader
            if isinstance(reader, Union) and self._likeness.are_alike(writer, reader):
                match = reader.branches[datum.branch]
            branch = writer.branches[datum.branch]
            self._read(datum.value, branch, match, reading, (*tokens, datum.branch))
        elif isinstance(reader, Union):
            reader_branch = self._resolution.choose_branch(writer=writer, reader=reader)
            if reader_branch is None:
                reading.add_failure(f"Found {writer.full_name}, expecting union", tokens)
            else:
                self._read(datum, writer, reader_branch, reading, tokens)
        elif isinstance(writer, Record) and isinstance(reader, Record):
            self._read_record(datum, writer, reader, reading, tokens)
        elif isinstance(writer, Array | Map) and writer.type == reader.type:
            (writer_item,), (reader_item,) = children(writer), children(reader)
            items, token = (datum, "items") if isinstance(writer, Array) else (datum.values(), "values")
            for item in items:
                self._read(item, writer_item, reader_item, reading, (*tokens, token))
        elif compare_leaves(writer, reader) is Mark.ERROR:
            reading.add_failure(f"Found {writer.full_name}, expecting {reader.full_name}", tokens)
        elif isinstance(reader, Enum) and datum not in reader.symbols and reader.default is None:
            reading.add_failure(f"No match for {datum}", tokens)

    def _read_record(
        self, datum: Datum, writer: Record, reader: Record, reading: MessageReading, tokens: Tokens
    ) -> None:
        for field in reader.fields:
            if field.name in writer.fields_by_name:
                continue
            if field.default is NO_DEFAULT:
                message = f"Found {writer.full_name}, expecting {reader.full_name}, missing required field {field.name}"
                reading.add_failure(message, tokens)
                continue
            exception = self._check_default(field)
            if exception:
                reading.failures.append(ReadFailure(exception.exception, exception.message, tokens))
            unused_aliases = (alias for alias in field.aliases if alias not in reader.fields_by_name)
            source = next(filter(None, map(writer.fields_by_name.get, unused_aliases)), None)
            if source:
                reading.lost_values.append(LostValue(field, source, tokens))
        # Aliases may have renamed the writer's fields, so the datum has other names.
        for field, value in zip(writer.fields, datum.values(), strict=True):
            match = reader.fields_by_name.get(field.name)
            if match is not None:
                self._read(value, field.schema, match.schema, reading, (*tokens, field.name))

    def _check_default(self, field: Field) -> JavaException | None:
        """Return the exception of Java on filling in the default of a field that the writer lacks, or None."""
        if field not in self._default_errors:
            try:
                check_default(field, self._release)
                self._default_errors[field] = None
            except JavaException as exception:
                self._default_errors[field] = exception
        return self._default_errors[field]


# Binary and JSON encoding


def write_json(value: Any) -> str:
    """Return a JSON value on one line, without escapes of letters outside ASCII."""
    return json.dumps(value, ensure_ascii=False)


def to_json(schema: Schema, datum: Datum, *, tagged: bool = True) -> Any:
    """Return `datum` in Avro's JSON encoding, or without union tags as plain JSON (the form of Pulsar's JSON type)."""
    if isinstance(schema, Union):
        branch = schema.branches[datum.branch]
        value = to_json(branch, datum.value, tagged=tagged)
        return value if not tagged or branch.type == "null" else {branch.full_name: value}
    if isinstance(schema, Record):
        return {field.name: to_json(field.schema, datum[field.name], tagged=tagged) for field in schema.fields}
    if isinstance(schema, Array):
        return [to_json(schema.items, item, tagged=tagged) for item in datum]
    if isinstance(schema, Map):
        return {key: to_json(schema.values, value, tagged=tagged) for key, value in datum.items()}
    return datum.decode("iso-8859-1") if isinstance(datum, bytes) else datum


def encode(schema: Schema, datum: Datum) -> bytes:
    """Return the binary form of `datum`, a value of `schema`."""
    out = bytearray()
    _encode(out, schema, datum)
    return bytes(out)


def _encode(out: bytearray, schema: Schema, datum: Datum) -> None:
    match schema:
        case Union():
            out += encode_zigzag(datum.branch)
            _encode(out, schema.branches[datum.branch], datum.value)
        case Record():
            for field in schema.fields:
                _encode(out, field.schema, datum[field.name])
        case Array():
            if datum:
                out += encode_zigzag(len(datum))
            for item in datum:
                _encode(out, schema.items, item)
            out += encode_zigzag(0)
        case Map():
            if datum:
                out += encode_zigzag(len(datum))
            for key, value in datum.items():
                _append_bytes(out, key.encode())
                _encode(out, schema.values, value)
            out += encode_zigzag(0)
        case Enum():
            out += encode_zigzag(schema.symbols.index(datum))
        case Fixed():
            out += datum
        case Primitive(type="boolean"):
            out.append(datum)
        case Primitive(type="int" | "long"):
            out += encode_zigzag(datum)
        case Primitive(type="float"):
            out += struct.pack("<f", datum)
        case Primitive(type="double"):
            out += struct.pack("<d", datum)
        case Primitive(type="bytes"):
            _append_bytes(out, datum)
        case Primitive(type="string"):
            _append_bytes(out, datum.encode())


def _append_bytes(out: bytearray, data: bytes) -> None:
    out += encode_zigzag(len(data)) + data


def decode(data: bytes, schema: Schema) -> Datum:
    """Return the value of `schema` at the start of `data`; like in Java, the bytes after it are ignored.

    Raises:
        ReaderFailure: if Java throws.
        UnknownWire: if the bytes announce more items than fit, so that Java's result depends on its memory.
    """
    return _ByteReader(data).read(schema)


def decode_json(data: bytes) -> object:
    """Return the first JSON value in `data`; like Jackson, ignore the text after it.

    Raises:
        ReaderFailure: if `data` does not start with JSON.
    """
    text = data.decode("utf-8", "replace")
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip(" \t\r\n"))
    except ValueError as error:
        raise ReaderFailure(f"SchemaSerializationException: the bytes are not JSON ({error})") from None
    return value


class _ByteReader:
    """A reader of consecutive values."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0
        self._item_count = 0

    def read(self, schema: Schema) -> Datum:
        match schema:
            case Record():
                return {field.name: self.read(field.schema) for field in schema.fields}
            case Union():
                index = self._read_index(len(schema.branches), "ArrayIndexOutOfBoundsException")
                return UnionValue(index, self.read(schema.branches[index]))
            case Enum():
                return schema.symbols[self._read_index(len(schema.symbols), "IndexOutOfBoundsException")]
            case Array():
                return [self.read(schema.items) for _ in self._read_blocks()]
            case Map():
                return {self._read_string(): self.read(schema.values) for _ in self._read_blocks()}
            case Fixed():
                return self._take(schema.size)
            case Primitive(type="null"):
                return None
            case Primitive(type="boolean"):
                return self._take(1) == b"\x01"
            case Primitive(type="int"):
                return self._read_varint(bits=32)
            case Primitive(type="long"):
                return self._read_varint(bits=64)
            case Primitive(type="float"):
                return struct.unpack("<f", self._take(4))[0]
            case Primitive(type="double"):
                return struct.unpack("<d", self._take(8))[0]
            case Primitive(type="bytes"):
                return self._take(self._read_length("arrays", " in Java library"))
        return self._read_string()

    def _read_string(self) -> str:
        return self._take(self._read_length("strings", "")).decode("utf-8", "replace")

    def _read_length(self, kind: str, suffix: str) -> int:
        length = self._read_varint(bits=64)
        if length < 0:
            raise ReaderFailure(f"AvroRuntimeException: Malformed data. Length is negative: {length}")
        if length > _MAX_LENGTH:
            message = f"Cannot read {kind} longer than {_MAX_LENGTH} bytes{suffix}"
            raise ReaderFailure(f"UnsupportedOperationException: {message}")
        return length

    def _read_index(self, length: int, exception: str) -> int:
        index = self._read_varint(bits=32)
        if not 0 <= index < length:
            raise ReaderFailure(f"{exception}: Index {index} out of bounds for length {length}")
        return index

    def _read_blocks(self) -> Iterator[None]:
        """Yield once for each item of an array or map, which the caller then reads."""
        while count := self._read_varint(bits=64):
            if count < 0:
                self._read_varint(bits=64)  # the size of the block in bytes
            for _ in range(abs(count)):
                self._item_count += 1
                if self._item_count > MAX_ITEMS:
                    raise UnknownWire
                yield

    def _read_varint(self, *, bits: int) -> int:
        max_bytes = 5 if bits == 32 else 10
        end = min(len(self._data), self._offset + max_bytes)
        try:
            value, self._offset = decode_varint(self._data, self._offset, end)
        except Unreadable:
            if end - self._offset < max_bytes:
                raise ReaderFailure(_END_OF_DATA) from None
            kind = "int" if bits == 32 else "long"
            raise ReaderFailure(f"InvalidNumberEncodingException: Invalid {kind} encoding") from None
        value &= (1 << bits) - 1
        return (value >> 1) ^ -(value & 1)

    def _take(self, size: int) -> bytes:
        data = self._data[self._offset : self._offset + size]
        if len(data) < size:
            raise ReaderFailure(_END_OF_DATA)
        self._offset += size
        return data
