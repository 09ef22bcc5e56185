"""Find the values of JSON messages that Pulsar's Java readers lose, read as other values, or throw on.

A JSON message is read without its schema: a class, or a GenericRecord, takes what the text gives for its fields. Avro's resolution
does not apply. There are no aliases and no enum defaults, and the text of one type is seldom the text of another. The tables below
follow docs/reference/json-readers.md, the measured results of Pulsar's client.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from functools import lru_cache
from typing import Final, Literal

from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release
from schemactl.formats.avro.compatibility import (
    Case,
    Location,
    find_branch,
    find_field,
    get_trace,
    make_message_trace,
    reader_pointer,
    walk,
)
from schemactl.formats.avro.datum_encoding import Datum, UnionValue
from schemactl.formats.avro.json_text import make_reference
from schemactl.formats.avro.logical_types import (
    MAX_DIGITS,
    MAX_PAIRS,
    UNITS_PER_SECOND,
    ValueType,
    compare_value_types,
    get_value_type,
)
from schemactl.formats.avro.resolving_grammar import Likeness, Resolution
from schemactl.formats.avro.sample_messages import ONES, SampleMessages, list_candidates
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    PROMOTIONS,
    Array,
    Enum,
    Fixed,
    JavaException,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Union,
)
from schemactl.formats.type_spec import Explanation

JSON_UNREADABLE: Final = "JSON_UNREADABLE"
DEFAULT_NOT_APPLIED: Final = "DEFAULT_NOT_APPLIED"

Kind = str
"""A type as JSON readers distinguish it: Avro's name of it, or the logical type without its unit."""

KEPT: Final[Mapping[Kind, frozenset[Kind]]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    # A date that is written as a number of days is read as that date.
    "int": frozenset({"int", "long", "float", "double", "decimal", "date", "BigDecimal", "BigInteger"}),
    "long": frozenset({"long", "float", "double", "decimal", "BigDecimal", "BigInteger"}),
    "float": frozenset({"float", "double"}),
    "double": frozenset({"double", "float"}),
    "string": frozenset({"string"}),
    "bytes": frozenset({"bytes", "fixed"}),
    "fixed": frozenset({"bytes", "fixed"}),
    "enum": frozenset({"enum", "string"}),
    "array": frozenset({"array"}),
    "map": frozenset({"map"}),
    "record": frozenset({"record", "map"}),
    "decimal": frozenset({"decimal", "float", "double", "BigDecimal"}),
    "date": frozenset({"date"}),
    "time": frozenset({"time"}),
    "timestamp": frozenset({"timestamp"}),
    "local-timestamp": frozenset({"local-timestamp"}),
    "uuid": frozenset({"uuid", "string"}),
    "BigDecimal": frozenset({"BigDecimal", "decimal", "float", "double"}),
    "BigInteger": frozenset({"BigInteger", "BigDecimal", "decimal", "float", "double"}),
    "Character": frozenset({"Character"}),
}
"""By the kind that is written: the kinds of readers that get the same value except digits that floating-point numbers lose."""

KEPT_IN_UNION: Final = frozenset(
    {"null", "boolean", "int", "long", "string", "enum", "array", "map", "record", "uuid", "BigInteger"}
)
"""The kinds that a reader's union of several types keeps.

A field of such a union is an Object in Java, and its value depends on the text alone: bytes become text, times become numbers,
and the number NaN becomes text.
"""

_JAVA_CLASSES: Final[Mapping[str, tuple[str, Kind]]] = {
    "java.math.BigDecimal": ("string", "BigDecimal"),
    "java.math.BigInteger": ("string", "BigInteger"),
    "java.lang.Character": ("int", "Character"),
}
"""By the property `java-class`: Avro's type of a class whose JSON differs from the JSON of the type, and the kind."""

_WRITTEN_AS_TEXT: Final = frozenset({"bytes", "fixed", "float", "double"})
"""The kinds, except text itself, whose values are text in JSON (of numbers only NaN and infinities)."""

_EXACT_DIGITS: Final = 15
"""The digits that every double keeps: a decimal in a union of several types is read as a double."""

_FORMS: Final[Mapping[Kind, str]] = {
    "int": "a number",
    "long": "a number",
    "float": "a number, or the text NaN or Infinity",
    "double": "a number, or the text NaN or Infinity",
    "decimal": "a number",
    "string": "text",
    "uuid": "text",
    "bytes": "base64 text",
    "fixed": "base64 text",
    "date": "a list such as [2026,11,28]",
    "time": "a list such as [12,34,56,789000000]",
    "timestamp": "a number of seconds",
    "BigDecimal": "a number",
    "BigInteger": "a number",
    "Character": "a text of one character",
    "local-timestamp": "a list such as [2026,11,28,12,34,56]",
}
"""How Pulsar's Java client writes values in JSON."""

_SAMPLES: Final[Mapping[Kind, str]] = {
    "int": "-7",
    "long": "1796000000000",
    "float": '"NaN"',
    "double": '"NaN"',
    "string": '"a"',
    "uuid": '"123e4567-e89b-12d3-a456-426614174000"',
    "bytes": '"AQID"',
    "date": "[2026,11,28]",
    "time": "[12,34,56,789000000]",
    "timestamp": "1795869296.789000000",
    "BigDecimal": "1.5",
    "BigInteger": "12345678901234567890",
    "Character": '"q"',
    "local-timestamp": "[2026,11,28,12,34,56,789000000]",
}
"""Values in the form of Pulsar's Java client, which other readers do not keep."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Problem = Literal["alias", "absent", "symbols", "digits", "type", "union"]


@dataclass(frozen=True, slots=True)
class JsonMisreading(Incompatibility):
    """A misreading of JSON.

    Attributes:
        problem: a value that is looked for under an alias, a field without value and default, a missing enum symbol, a decimal
            with too few digits, another type, or a type that a union of several types does not keep.
    """

    problem: Problem = field(default="type", compare=False, repr=False)


def get_kind(schema: Schema) -> Kind:
    """Return the kind of a schema."""
    value_type = get_value_type(schema)
    if value_type is None:
        return schema.type
    base, kind = _JAVA_CLASSES.get(str(schema.properties.get("java-class")), ("", ""))
    return kind if schema.type == base else _kind_of_values(value_type)


def _kind_of_values(value_type: ValueType) -> Kind:
    # Java has no classes for durations and big decimals: both stay bytes, as a uuid of 16 bytes does.
    return (
        value_type.kind
        if value_type.kind in KEPT and (value_type.base, value_type.kind) != ("fixed", "uuid")
        else value_type.base
    )


def find_misreadings(*, reader: Schema, writer: Schema) -> Iterator[Incompatibility]:
    """Yield the values that `writer` writes in JSON and `reader` does not get, in the order of the reader's definition.

    Incompatibilities by Avro's rules are not repeated. Changed units of times, which readers of whole numbers misread, are
    LOGICAL_TYPE_CHANGED, as in Avro.
    """
    for difference in _find_differences(reader, writer):
        if difference.rule != DEFAULT_NOT_APPLIED:
            yield difference


def find_unapplied_defaults(*, reader: Schema, writer: Schema) -> Iterator[Incompatibility]:
    """Yield the fields of `reader` that `writer` lacks and that have a default other than null, which readers of JSON do not apply."""
    for difference in _find_differences(reader, writer):
        if difference.rule == DEFAULT_NOT_APPLIED:
            way = walk(reader, get_trace(difference))
            default = json.dumps(way.field.default if way.field else None, ensure_ascii=False, default=str)
            absent = _describe_absent(way.schema)
            message = (
                f"{way.path} is absent from the messages, and readers of JSON do not apply its default, {default}: "
                f"Java's classes read {absent}"
            )
            yield replace(difference, message=message)


def _find_differences(reader: Schema, writer: Schema) -> Iterator[Incompatibility]:
    """Yield the misreadings and the defaults that are not applied."""
    if reader is writer:
        return
    branches = _Branches(reader)
    compared: set[_Pair] = set()
    pending: list[tuple[_Pair, Location] | Incompatibility] = [(_Pair(reader, writer), ())]
    while pending and len(compared) < MAX_PAIRS:
        item = pending.pop()
        if isinstance(item, Incompatibility):
            yield item
            continue
        pair, location = item
        misreading = _compare_values(pair, location)
        if misreading:
            yield misreading
        if pair in compared:
            continue
        # One node represents every place of a primitive.
        if not isinstance(pair.writer, Primitive):
            compared.add(pair)
        match pair.reader, pair.writer:
            case (Union(), _) | (_, Union()):
                pending += reversed([*branches.list_pairs(pair, location)])
            case Record(), Record():
                pending += reversed([*_list_fields(pair, pair.reader, pair.writer, location)])
            case Array(), Array():
                pending.append((pair.enter(reader=pair.reader.items, writer=pair.writer.items), (location, "items")))
            case Map(), Map():
                pending.append((pair.enter(reader=pair.reader.values, writer=pair.writer.values), (location, "values")))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Parts of reader and writer that meet.

    Attributes:
        reader_is_object: whether the reader's part is inside a union of several types, and so an Object in Java.
        writer_is_object: the same for the writer's part.
        reader_takes_text: whether the reader's part is a branch next to string, so that any text is read as a string.
        writer_takes_text: the same for the writer's part.
    """

    reader: Schema
    writer: Schema
    reader_is_object: bool = False
    writer_is_object: bool = False
    reader_takes_text: bool = False
    writer_takes_text: bool = False

    def enter(self, *, reader: Schema, writer: Schema) -> _Pair:
        """Return the pair of two parts inside these, which are not branches."""
        return _Pair(reader, writer, self.reader_is_object, self.writer_is_object)


def _list_fields(
    pair: _Pair, reader: Record, writer: Record, location: Location
) -> Iterator[tuple[_Pair, Location] | Incompatibility]:
    """Yield the fields of two records that have one name, and the misreadings of fields that only an alias connects."""
    for index, field_ in enumerate(reader.fields):
        source = writer.fields_by_name.get(field_.name)
        field_location: Location = (location, "fields", index)
        if source is not None:
            yield pair.enter(reader=field_.schema, writer=source.schema), (*field_location, "type")
            continue
        aliased = [writer.fields_by_name[alias] for alias in field_.aliases if alias in writer.fields_by_name]
        is_aliased = len(aliased) == 1 and aliased[0].schema.type != "null"
        branches = field_.schema.branches if isinstance(field_.schema, Union) else (field_.schema,)
        is_nullable = any(branch.type == "null" for branch in branches)
        if is_aliased and aliased[0].name not in reader.fields_by_name:
            message = f"written as {aliased[0].name}, which readers of JSON do not read as {field_.name}"
            yield _make_misreading("alias", field_location, message, aliased[0].name)
        elif is_aliased and field_.default is NO_DEFAULT and not is_nullable:
            message = f"written as {aliased[0].name} alone; {field_.name} has no value and no default"
            yield _make_misreading("absent", field_location, message, aliased[0].name)
        elif field_.default is not NO_DEFAULT and field_.default is not None:
            yield Incompatibility(DEFAULT_NOT_APPLIED, reader_pointer(field_location), trace=field_location)


@lru_cache(maxsize=64)  # called for each branch of the other side
def _has_several_types(union: Schema) -> bool:
    return isinstance(union, Union) and sum(branch.type != "null" for branch in union.branches) > 1


@lru_cache(maxsize=64)  # called for each branch of the other side
def _has_string(union: Schema) -> bool:
    return isinstance(union, Union) and any(branch.type == "string" for branch in union.branches)


class _Branches:
    """The pairs of parts that meet in unions, as Avro's resolution pairs them."""

    def __init__(self, reader: Schema) -> None:
        self._likeness = Likeness()
        self._resolution = Resolution(Release.R5_0, reader)

    def list_pairs(self, pair: _Pair, location: Location) -> Iterator[tuple[_Pair, Location]]:
        """Yield the branches of two parts, if one is a union, with their locations."""
        reader, writer = pair.reader, pair.writer
        reader_pair = replace(
            pair,
            reader_is_object=pair.reader_is_object or _has_several_types(reader),
            reader_takes_text=pair.reader_takes_text or _has_string(reader),
        )
        if isinstance(writer, Union):
            has_several_types, has_string = _has_several_types(writer), _has_string(writer)
            is_alike = isinstance(reader, Union) and self._likeness.are_alike(writer, reader)
            for index, branch in enumerate(writer.branches):
                branch_location: Location = (location, ~index)
                branch_pair = replace(
                    reader_pair if is_alike else pair,
                    writer=branch,
                    writer_is_object=pair.writer_is_object or has_several_types,
                    writer_takes_text=has_string,
                )
                if isinstance(reader, Union) and is_alike:
                    yield replace(branch_pair, reader=reader.branches[index]), (branch_location, index)
                else:
                    yield branch_pair, branch_location
        elif isinstance(reader, Union):
            branch_index = self._choose_branch(reader, writer)
            if branch_index is not None:
                yield replace(reader_pair, reader=reader.branches[branch_index]), (location, branch_index)

    def _choose_branch(self, reader: Union, writer: Schema) -> int | None:
        index = find_branch(writer, reader)
        if index is not None:
            return index
        if isinstance(writer, Named):
            # Readers of JSON look for no name at all, so aliases decide here.
            return _index_aliases(reader).get((writer.type, writer.full_name))
        try:
            chosen_branch = self._resolution.choose_branch(writer=writer, reader=reader)
        except JavaException:
            return None
        return next((index for index, branch in enumerate(reader.branches) if branch is chosen_branch), None)


@lru_cache(maxsize=64)  # called for each branch of the other side
def _index_aliases(union: Union) -> Mapping[tuple[str, str], int]:
    """Map the aliases of the named branches, with the type, to the index of the first that has it."""
    indices: dict[tuple[str, str], int] = {}
    for index, branch in enumerate(union.branches):
        for alias in branch.aliases if isinstance(branch, Named) else ():
            indices.setdefault((branch.type, alias), index)
    return indices


def _compare_values(pair: _Pair, location: Location) -> Incompatibility | None:
    """Return how values of the writer's part itself are misread, or None."""
    reader, writer = pair.reader, pair.writer
    if isinstance(reader, Union) or isinstance(writer, Union):
        return None
    if isinstance(reader, Enum) and isinstance(writer, Enum):
        missing_symbols = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
        if not missing_symbols or reader.default is None:
            return None
        written = ", ".join(missing_symbols)
        message = f"written as {written}, which the reader does not list"
        return _make_misreading("symbols", (location, "symbols"), message, written)
    reader_type, writer_type = get_value_type(reader), get_value_type(writer)
    if reader_type is None or writer_type is None:
        return None
    if reader_type.base != writer_type.base and writer_type.base not in PROMOTIONS.get(reader_type.base, ()):
        return None
    reader_kind, writer_kind = get_kind(reader), get_kind(writer)
    written, read = _describe_type(writer, writer_type), _describe_type(reader, reader_type)
    message = f"written as {written}, read as {read}"
    if reader_kind not in KEPT[writer_kind]:
        return _make_misreading("type", location, message, written, read)
    becomes_object = pair.reader_is_object and not pair.writer_is_object
    becomes_text = pair.reader_takes_text and not pair.writer_takes_text and writer_kind in _WRITTEN_AS_TEXT
    is_exact_decimal = writer_kind == "decimal" and writer_type.precision <= _EXACT_DIGITS
    if becomes_text or (becomes_object and writer_kind not in KEPT_IN_UNION and not is_exact_decimal):
        return _make_misreading("union", location, message, written, read)
    if reader_kind == writer_kind == "decimal":
        has_whole_digits = reader_type.precision - reader_type.scale >= writer_type.precision - writer_type.scale
        if has_whole_digits and reader_type.scale >= writer_type.scale:
            return None
        return _make_misreading("digits", location, message, written, read)
    if isinstance(reader, Fixed) and isinstance(writer, Fixed) and reader.size != writer.size:
        # An incompatibility by Avro's rules.
        return None
    changed = compare_value_types(reader=reader_type, writer=writer_type)
    if changed is None:
        return None
    return Incompatibility(
        changed.rule,
        reader_pointer(location),
        message,
        trace=location,
        is_warning=changed.is_warning,
        written=written,
        read=read,
    )


def _describe_type(schema: Schema, value_type: ValueType) -> str:
    kind = get_kind(schema)
    return f"{schema.type} of {kind}" if kind in KEPT and kind[:1].isupper() else value_type.text


def _make_misreading(
    problem: Problem, location: Location, message: str, written: str, read: str = ""
) -> JsonMisreading:
    pointer = reader_pointer(location)
    return JsonMisreading(
        JSON_UNREADABLE, pointer, message, trace=location, problem=problem, written=written, read=read
    )


# Explanations


def explain(breakage: Breakage, *, new: Schema, old: Schema) -> Explanation:
    """Explain a misreading, its effect on messages, and the fix in the new schema."""
    case = Case.from_breakage(breakage, new=new, old=old, plain_json=True)
    way, place, is_upgraded = case.walk, case.place, case.is_upgraded
    writer_pointer, writer_end = case.counterpart
    whose = "the new schema" if is_upgraded else f"a reader of {case.older}"
    written, read = case.incompatibility.written, case.incompatibility.read
    keep = f"keep {written if is_upgraded else read}, and add a field of the type {read if is_upgraded else written} next to it."

    match _get_problem(case.incompatibility):
        case "alias":
            read_name = way.field.name if way.field else place
            written_field = find_field(case.writer, writer_pointer)
            written_name = written_field.name if written_field else ""
            reason = (
                f"{place}: the value is written as {written_name}, and readers of JSON know no aliases: {whose} has {read_name}, "
                f"which Java reads as {_describe_absent(way.schema)}, and the value of {written_name} is lost."
            )
            kept_name, added_name = (written_name, read_name) if is_upgraded else (read_name, written_name)
            kept_schema = way.schema if is_upgraded else writer_end
            added_field = f'{{"name": "{added_name}", "type": {_describe_nullable(kept_schema)}, "default": null}}'
            fix = f"keep the field {kept_name}, and add {added_field} next to it: producers write both until no reader needs {kept_name}."
        case "absent":
            reason = (
                f"{place} has no default in {whose}, and its alias does not help: readers of JSON know no aliases, "
                "and messages do not carry it."
            )
            fix = 'make it a union with null first, and "default": null.'
        case "symbols":
            reason = (
                f"{place}: messages may hold {written}, which {whose} does not list. "
                f"Readers of JSON use no enum default: Java's classes throw."
            )
            fix = "list every symbol again" if is_upgraded else "keep the symbols"
            fix += (
                ", or add a field with the new enum next to this one, and write both until no reader needs the old one."
            )
        case "digits":
            reason = f"{place} is written as {written}, with more digits than {read} of {whose} has."
            fix = keep
        case "union":
            form = _FORMS.get(get_kind(writer_end), "JSON")
            reason = (
                f"{place}: {written} is written as {form}, and {whose} has a union of several types: readers of JSON choose "
                f"one of them by the text alone."
            )
            fix = (
                f"keep {written}, and add a field of the union next to it."
                if is_upgraded
                else "keep the type, and add a field next to it."
            )
        case _:
            form = _FORMS.get(get_kind(writer_end), "JSON")
            reason = f"{place}: {written} is written as {form}, which {whose} does not read as {read}."
            fix = keep
    return case.explain(reason, fix)


def _get_problem(misreading: Incompatibility) -> Problem:
    return misreading.problem if isinstance(misreading, JsonMisreading) else "type"


def _describe_absent(schema: Schema) -> str:
    """Return the value of a Java class in a field that is absent from a message."""
    absent = {"boolean": "false", "int": "0", "long": "0", "float": "0", "double": "0"}
    return absent.get(get_kind(schema), "null")


def _describe_nullable(schema: Schema) -> str:
    """Return the union of null and a type for a fix; named types by their names."""
    definition = make_reference(schema)
    branches = definition if isinstance(definition, list) else [definition]
    return json.dumps(["null", *(branch for branch in branches if branch != "null")], ensure_ascii=False)


# Counterexamples


class JsonText(str):
    """A value of a message in the form of JSON."""

    __slots__ = ()


def counterexample(breakage: Breakage, *, new: Schema, old: Schema) -> Counterexample | None:
    """Return a message in the form of Pulsar's Java client, and the result of its readers, or None if every message is too large to show."""
    case = Case.from_breakage(breakage, new=new, old=old, plain_json=True)
    way, writer = case.walk, case.writer
    writer_pointer, writer_end = case.counterpart
    written_field = find_field(writer, writer_pointer)
    written_name = written_field.name if written_field else ""
    message_tokens = [*make_message_trace(case.reader, case.trace)]
    samples = SampleMessages(writer, primitives=ONES)
    sample: Datum
    reader_kind, writer_kind = get_kind(way.schema), get_kind(writer_end)
    reader_type, writer_type = get_value_type(way.schema), get_value_type(writer_end)
    match _get_problem(case.incompatibility):
        case "alias":
            message_tokens[-1] = written_name
            sample = next(
                (datum for datum in list_candidates(writer_end, primitives=ONES) if not _is_null(datum)), None
            )
            if sample is None or way.field is None:
                return None
            absent = _describe_absent(way.schema)
            result = f"Java reads {way.field.name} as {absent}: the {written_name} that was written is lost"
        case "absent":
            message_tokens[-1] = written_name
            sample = samples.make_smallest(writer_end) if samples.is_small(writer_end) else None
            result = f"{way.field.name if way.field else 'the field'} is absent and has no default"
        case "symbols" if isinstance(writer_end, Enum) and isinstance(way.schema, Enum):
            symbol = next(symbol for symbol in writer_end.symbols if symbol not in way.schema.symbols)
            sample = symbol
            result = f"InvalidFormatException: {symbol} is not one of {', '.join(way.schema.symbols)}"
        case "digits" if reader_type and writer_type:
            text = _make_decimal(reader_type, writer_type)
            if text is None:
                return None
            sample, result = JsonText(text), f"{text} does not fit {reader_type.text}"
        case problem:
            if writer_kind == "decimal" and writer_type:
                text = _make_decimal(None, writer_type)
                if text is None:
                    return None
                sample = JsonText(text)
            elif writer_kind in _SAMPLES:
                sample = JsonText(_SAMPLES[writer_kind])
            else:
                sample = samples.make_smallest(writer_end)
            sample_text = _render(writer_end, sample) or "null"
            result = _describe_reading(sample_text, writer_kind, "union" if problem == "union" else reader_kind)
    datum = samples.make_along(writer, message_tokens, sample)
    if datum is None:
        return None
    message = _render(writer, datum) or "null"
    return Counterexample(message, message.encode(), result)


def _is_null(datum: Datum) -> bool:
    return datum is None or (isinstance(datum, UnionValue) and datum.value is None)


def _make_decimal(reader_type: ValueType | None, writer_type: ValueType) -> str | None:
    """Return a decimal of the writer that the reader has too few digits for, or one of all digits; None if it is too long to show."""
    if reader_type and writer_type.scale > reader_type.scale:
        unscaled = 10 ** min(writer_type.scale, writer_type.precision - 1, 9) + 5
    elif writer_type.precision > MAX_DIGITS:
        return None
    else:
        unscaled = int(("1234567890" * writer_type.precision)[: writer_type.precision])
    return _format_decimal(unscaled, writer_type.scale)


def _format_decimal(unscaled: int, scale: int) -> str:
    if scale > MAX_DIGITS:
        return f"{unscaled}E-{scale}"
    return format(Decimal(unscaled).scaleb(-scale, Context(prec=3 * MAX_DIGITS)), "f")


def _describe_reading(text: str, writer_kind: Kind, reader_kind: Kind) -> str:
    """Return the result of Java, a value or an exception, for a value of the writer in the form of JSON."""
    if reader_kind == "union":
        form = "the double nearest to it" if writer_kind == "decimal" else text
        return f"Java reads {form}, which is not the {writer_kind} that was written"
    match writer_kind, reader_kind:
        case (("BigDecimal" | "decimal"), "BigInteger"):
            return f"Java reads {text.partition('.')[0]}, the whole part"
        case (("bytes" | "decimal" | "BigDecimal" | "BigInteger" | "Character"), "string"):
            return f"Java reads the text {text.strip(chr(34))}"
        case (("int" | "long"), "timestamp"):
            return f"Java reads {text} seconds since 1970"
        case "timestamp", ("long" | "float" | "double"):
            return f"Java reads {text.partition('.')[0] if reader_kind == 'long' else text.rstrip('0')}, a number of seconds"
        case "int", "Character":
            return "InvalidFormatException: not a character"
        case "string", ("bytes" | "fixed"):
            return "JsonEOFException: not base64 text"
        case "Character", ("date" | "time" | "timestamp" | "local-timestamp"):
            return f"DateTimeParseException: not a value of the type {reader_kind}"
        case (("string" | "uuid" | "bytes" | "Character"), _) | (_, "uuid"):
            return f"InvalidFormatException: not a value of the type {reader_kind}"
        case "date", "time":
            return "DateTimeException: not a time"
        case (("date" | "time"), "local-timestamp"):
            return "JsonParseException: not a local timestamp"
    return f"MismatchedInputException: not a value of the type {reader_kind}"


def _render(schema: Schema, datum: Datum) -> str | None:
    """Return a value in the form that Pulsar's Java client writes, or None for null, which it omits in records and maps."""
    if isinstance(datum, JsonText):
        return str(datum)
    match schema:
        case Union():
            return _render(schema.branches[datum.branch], datum.value)
        case Record():
            return _render_entries((field.name, _render(field.schema, datum[field.name])) for field in schema.fields)
        case Array():
            return f"[{','.join(_render(schema.items, item) or 'null' for item in datum)}]"
        case Map():
            return _render_entries((key, _render(schema.values, value)) for key, value in datum.items())
    value_type = get_value_type(schema)
    if datum is None:
        return None
    if value_type is None:
        return json.dumps(datum, ensure_ascii=False)
    return _render_leaf(value_type, datum)


def _render_entries(entries: Iterable[tuple[str, str | None]]) -> str:
    pieces = [f"{json.dumps(name, ensure_ascii=False)}:{piece}" for name, piece in entries if piece is not None]
    return "{" + ",".join(pieces) + "}"


def _render_leaf(value_type: ValueType, datum: Datum) -> str:
    kind = _kind_of_values(value_type)
    if kind == "decimal":
        return _format_decimal(int.from_bytes(datum, "big", signed=True), value_type.scale)
    if isinstance(datum, bytes):
        return f'"{base64.b64encode(datum).decode()}"'
    if kind == "uuid":
        return _SAMPLES["uuid"]
    if kind in ("date", "time", "timestamp", "local-timestamp"):
        # Sample values are close to zero.
        units = 1 if kind == "date" else UNITS_PER_SECOND[value_type.unit]
        moment = _EPOCH + timedelta(seconds=datum * (86_400 if kind == "date" else 1) / units)
        if kind == "timestamp":
            return f"{datum / units:.9f}"
        day, time = [moment.year, moment.month, moment.day], [moment.hour, moment.minute, moment.second]
        time += [moment.microsecond * 1000] if moment.microsecond else []
        return json.dumps({"date": day, "time": time}.get(kind, day + time), separators=(",", ":"))
    return json.dumps(datum, ensure_ascii=False)
