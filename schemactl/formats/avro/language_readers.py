"""Find the values that Pulsar's clients in other languages than Java do not read, or read as other values.

Go's client decodes AVRO with the writer's definition, straight into a struct of the reader: nothing is promoted, and aliases and
defaults do not apply. Its JSON, and the JSON of Python's `JsonSchema`, is read by a class alone. Python's `AvroSchema` resolves
the two definitions as the specification says, and looks for the names of inner records. The rules are the measured results of the
clients: pulsar-client-go 0.19 with hamba/avro 2.29, and pulsar-client 3.13 with fastavro.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.formats.avro.compatibility import (
    AmbiguousAlias,
    Case,
    Location,
    find_branch,
    find_counterpart,
    find_field,
    find_incompatibilities,
    get_trace,
    make_message_trace,
    reader_pointer,
    walk,
)
from schemactl.formats.avro.datum_encoding import UnionValue, encode, to_json, write_json
from schemactl.formats.avro.logical_types import MAX_PAIRS, Meeting, compare_value_types, get_value_type
from schemactl.formats.avro.logical_types import find_misreadings as find_changed_logical_types
from schemactl.formats.avro.sample_messages import ONES, SampleMessages
from schemactl.formats.avro.schema import NO_DEFAULT, Array, Enum, Field, Fixed, Map, Record, Schema, Union
from schemactl.formats.type_spec import Explanation

CLIENT_BREAKS: Final = "CLIENT_BREAKS"
"""The rule of values that a client of a language does not read as they were written."""

DEFAULT_NOT_APPLIED: Final = "DEFAULT_NOT_APPLIED"

Kind = str
"""A type as the clients distinguish it: Avro's name of it, or the logical type without its unit."""

Problem = Literal["type", "nullable", "null", "union", "form", "branch", "alias", "absent", "symbols", "size"]

_TIMES: Final = frozenset({"date", "timestamp", "local-timestamp"})
"""The kinds of a point in time, which Go's client has as `time.Time` in AVRO, and as a number in JSON."""

_RESOLVABLE: Final = frozenset(
    {
        "null",
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "string",
        "bytes",
        "date",
        "time",
        "timestamp",
        "decimal",
        "uuid",
    }
)
"""The kinds whose values Go's client keeps without a wrapper in a union of several types.

With any other branch, every value of the union becomes a map.
"""


@dataclass(frozen=True, slots=True)
class ReaderRules:
    """The rules by which the class of a reader takes the values of a message.

    Attributes:
        client: the client, as the subject of a sentence.
        kept: by the kind that is written, the kinds of readers that get the same value.
        converts_units: whether times of another unit, and decimals of another scale, are read as the same value.
        same_number: pairs of written and read kinds where the reader gets the number or the bytes without their meaning.
        nullable_from: the kinds of plain values that a nullable field reads; None for all.
        applies_defaults: whether an absent field has its default.
        ignores_case: whether a field is found by its name in another case.
        is_json: whether messages are JSON.
    """

    client: str
    kept: Mapping[Kind, frozenset[Kind]]
    converts_units: bool
    same_number: frozenset[tuple[Kind, Kind]]
    nullable_from: frozenset[Kind] | None
    applies_defaults: bool
    ignores_case: bool
    is_json: bool


_PLAIN: Final = (
    *("null", "boolean", "int", "long", "float", "double", "bytes", "fixed", "array", "map", "record"),
    *("date", "time", "timestamp", "local-timestamp", "decimal", "duration"),
)
_TEXTS: Final[Mapping[Kind, frozenset[Kind]]] = {
    "string": frozenset({"string", "uuid"}),
    "uuid": frozenset({"string", "uuid"}),
    "enum": frozenset({"enum", "string", "uuid"}),
}
_NUMBERS: Final[Mapping[Kind, frozenset[Kind]]] = {
    "int": frozenset({"int", "long", "float", "double"}),
    "long": frozenset({"long", "float", "double"}),
    "float": frozenset({"float", "double"}),
    "double": frozenset({"double"}),
}

GO_AVRO: Final = ReaderRules(
    client="Go's client",
    kept={**{kind: frozenset({kind}) for kind in _PLAIN}, **_TEXTS},
    converts_units=True,
    same_number=frozenset(
        {
            *(("timestamp", "long"), ("local-timestamp", "long"), ("date", "int"), ("decimal", "bytes")),
            *(("timestamp", "local-timestamp"), ("local-timestamp", "timestamp")),
        }
    ),
    nullable_from=frozenset({"record"}),
    applies_defaults=False,
    ignores_case=False,
    is_json=False,
)

GO_JSON: Final = ReaderRules(
    client="Go's client",
    kept={
        **{kind: frozenset({kind}) for kind in _PLAIN},
        **_TEXTS,
        **_NUMBERS,
        "bytes": frozenset({"bytes", "fixed"}),
        "fixed": frozenset({"bytes", "fixed"}),
    },
    converts_units=False,
    same_number=frozenset(
        {
            *(("int", "date"), ("date", "int"), ("int", "time"), ("time", "int"), ("time", "long"), ("long", "time")),
            *(("timestamp", "long"), ("long", "timestamp"), ("local-timestamp", "long"), ("long", "local-timestamp")),
            *(("timestamp", "local-timestamp"), ("local-timestamp", "timestamp")),
        }
    ),
    nullable_from=None,
    applies_defaults=False,
    ignores_case=True,
    is_json=True,
)

PYTHON_JSON: Final = ReaderRules(
    client="Python's JsonSchema",
    kept={
        **{kind: frozenset({kind}) for kind in _PLAIN},
        **_NUMBERS,
        # Python has one type for both.
        "double": frozenset({"float", "double"}),
        "string": frozenset({"string"}),
        "uuid": frozenset({"uuid", "string"}),
        "enum": frozenset({"enum", "string"}),
    },
    converts_units=False,
    same_number=GO_JSON.same_number,
    nullable_from=None,
    applies_defaults=True,
    ignores_case=False,
    is_json=True,
)

_PYTHON_AVRO: Final = replace(GO_AVRO, client="Python's AvroSchema", kept=PYTHON_JSON.kept, nullable_from=None)
"""Rules that pair the fields of two definitions, to find the defaults that fastavro applies."""

RULES: Final[Mapping[tuple[str, str], ReaderRules]] = {
    ("go", "avro"): GO_AVRO,
    ("go", "json"): GO_JSON,
    ("python", "json"): PYTHON_JSON,
}
"""The rules by language and payload. Java has the rules of the specification, and of `json_readers`."""


@dataclass(frozen=True, slots=True)
class LanguageMisreading(Incompatibility):
    """A value that the client of a language reads differently from the value that was written.

    Attributes:
        problem: another type, a plain value in a nullable field, null in a plain field, a union in a plain field, a union whose
            values have another form, a branch that the reader lacks, a value that is looked for under an alias, a field without
            value and default, missing enum symbols, or another size.
        client: the client, as the subject of a sentence.
        is_json: whether messages are JSON.
    """

    problem: Problem = field(default="type", compare=False, repr=False)
    client: str = field(default="", compare=False, repr=False)
    is_json: bool = field(default=False, compare=False, repr=False)


def has_rules(language: str, payload: str) -> bool:
    """Return whether clients of a language read a payload by other rules than Java's."""
    return (language, payload) in RULES or (language, payload) == ("python", "avro")


def find_misreadings(*, reader: Schema, writer: Schema, language: str, payload: str) -> Iterator[Incompatibility]:
    """Yield the values of `writer` that a client of a language with other rules than Java's fails on, or reads as other values."""
    if (language, payload) == ("python", "avro"):
        yield from _find_by_fastavro(reader, writer)
        return
    for difference in _find_differences(reader, writer, RULES[language, payload]):
        if difference.rule != DEFAULT_NOT_APPLIED:
            yield difference


def find_unapplied_defaults(
    *, reader: Schema, writer: Schema, language: str, payload: str
) -> Iterator[Incompatibility]:
    """Yield the fields of `reader` that `writer` lacks and whose default a client of the language does not apply."""
    if (language, payload) == ("python", "avro"):
        yield from _find_raw_defaults(reader, writer)
        return
    rules = RULES[language, payload]
    for difference in _find_differences(reader, writer, rules):
        if difference.rule == DEFAULT_NOT_APPLIED:
            way = walk(reader, get_trace(difference))
            default = json.dumps(way.field.default if way.field else None, ensure_ascii=False, default=str)
            message = (
                f"{way.path} is absent from the messages, and {rules.client} does not apply its default, {default}: "
                f"it reads {_describe_zero(way.schema, is_json=rules.is_json)}"
            )
            yield replace(difference, message=message)


def _find_by_fastavro(reader: Schema, writer: Schema) -> Iterator[Incompatibility]:
    """Yield the incompatibilities of the specification; names of inner records count, the name of the message does not."""
    try:
        for incompatibility in find_incompatibilities(reader=reader, writer=writer):
            if incompatibility.strict_only and incompatibility.pointer != "/name":
                incompatibility = Incompatibility(  # noqa: PLW2901  the same, as an error
                    incompatibility.rule, incompatibility.pointer, incompatibility.message, trace=incompatibility.trace
                )
            yield incompatibility
    except AmbiguousAlias as ambiguous:
        yield Incompatibility("AMBIGUOUS_ALIAS", ambiguous.pointer, str(ambiguous), trace=ambiguous.trace)
    for misreading in find_changed_logical_types(reader=reader, writer=writer):
        _, writer_end = find_counterpart(get_trace(misreading), reader=reader, writer=writer)
        writer_type, reader_type = (
            get_value_type(writer_end),
            get_value_type(walk(reader, get_trace(misreading)).schema),
        )
        # The value is read by the writer's logical type, so its unit and scale are known.
        if not (writer_type and reader_type and writer_type.kind and writer_type.kind == reader_type.kind):
            yield misreading


def _find_raw_defaults(reader: Schema, writer: Schema) -> Iterator[Incompatibility]:
    """Yield the defaults that fastavro does not convert: numbers and texts in place of times, decimals and bytes."""
    for difference in _find_differences(reader, writer, _PYTHON_AVRO):
        if difference.rule != DEFAULT_NOT_APPLIED:
            continue
        way = walk(reader, get_trace(difference))
        schema = way.schema.branches[0] if isinstance(way.schema, Union) else way.schema
        value_type = get_value_type(schema)
        default = way.field.default if way.field else None
        is_raw = value_type and (value_type.logical or (value_type.base in ("bytes", "fixed") and default))
        if value_type and is_raw and default is not None:
            text = json.dumps(default, ensure_ascii=False)
            message = (
                f"{way.path} is absent from the messages, and Python's AvroSchema reads its default as the plain value {text}, "
                f"not as a value of {value_type.text}"
            )
            yield replace(difference, message=message)


def _find_differences(reader: Schema, writer: Schema, rules: ReaderRules) -> Iterator[Incompatibility]:
    """Yield the misreadings, and the defaults that are not applied, in the order of the reader's definition."""
    if reader is writer:
        return
    compared: set[tuple[Schema, Schema]] = set()
    pending: list[Meeting | Incompatibility] = [Meeting(reader, writer, ())]
    while pending and len(compared) < MAX_PAIRS:
        item = pending.pop()
        if isinstance(item, Incompatibility):
            yield item
            continue
        pair = item.reader, item.writer
        if pair in compared:
            continue
        if isinstance(item.writer, Record):
            compared.add(pair)
        pending += reversed([*_compare(item, rules)])


def _make_misreading(
    meeting: Meeting,
    rules: ReaderRules,
    problem: Problem,
    location: Location | None = None,
    *,
    written: str = "",
    message: str = "",
    is_warning: bool = False,
) -> LanguageMisreading:
    """Return a misreading of two parts, at their location unless another is given, and with their types unless there is a message."""
    location = meeting.location if location is None else location
    written = written or _describe(meeting.writer)
    read = "" if message else _describe(meeting.reader)
    return LanguageMisreading(
        CLIENT_BREAKS,
        reader_pointer(location),
        message or f"written as {written}, read as {read}",
        trace=location,
        is_warning=is_warning,
        written=written,
        read=read,
        problem=problem,
        client=rules.client,
        is_json=rules.is_json,
    )


def _compare(meeting: Meeting, rules: ReaderRules) -> Iterator[Meeting | Incompatibility]:
    """Yield the misreadings of two parts themselves, and the parts inside them that meet."""
    reader, writer, location = meeting
    reader_branches, writer_branches = _list_branches(reader), _list_branches(writer)
    reader_values = [(index, branch) for index, branch in reader_branches if branch.type != "null"]
    writer_values = [(index, branch) for index, branch in writer_branches if branch.type != "null"]
    reader_has_null = len(reader_values) < len(reader_branches)
    writer_has_null = len(writer_values) < len(writer_branches)
    if writer_has_null and not reader_has_null:
        yield _make_misreading(meeting, rules, "null")
        return
    if not reader_values or not writer_values:
        if writer_values:
            yield _make_misreading(meeting, rules, "type")
        return
    if len(reader_values) > 1:
        for index, branch in writer_values:
            # A value of JSON has no branch: any variable takes it.
            kept_kinds = rules.kept.get(get_kind(branch, rules), frozenset()) if rules.is_json else frozenset()
            is_kept = any(get_kind(value, rules) in kept_kinds for _, value in reader_values)
            if not isinstance(reader, Union) or (find_branch(branch, reader) is None and not is_kept):
                at: Location = (location, ~index) if isinstance(writer, Union) else location
                yield _make_misreading(meeting, rules, "branch", at, written=_describe(branch))
                return
        if not rules.is_json and _is_bare(writer) != _is_bare(reader):
            yield _make_misreading(meeting, rules, "form")
        return
    if len(writer_values) > 1:
        yield _make_misreading(meeting, rules, "union")
        return
    (reader_index, reader_value), (writer_index, writer_value) = reader_values[0], writer_values[0]
    reader_kind, writer_kind = get_kind(reader_value, rules), get_kind(writer_value, rules)
    if isinstance(reader, Union) or isinstance(writer, Union):
        is_plain_read = rules.nullable_from is None or writer_kind in rules.nullable_from
        if reader_has_null and not isinstance(writer, Union) and not is_plain_read:
            yield _make_misreading(meeting, rules, "nullable")
            return
        inner: Location = (location, ~writer_index) if isinstance(writer, Union) else location
        yield Meeting(reader_value, writer_value, (inner, reader_index) if isinstance(reader, Union) else inner)
        return

    reader_type, writer_type = get_value_type(reader), get_value_type(writer)
    if reader_kind not in rules.kept.get(writer_kind, frozenset({writer_kind})):
        has_same_bytes = bool(reader_type and writer_type and reader_type.base == writer_type.base)
        has_number = (writer_kind, reader_kind) in rules.same_number and (rules.is_json or has_same_bytes)
        yield _make_misreading(meeting, rules, "type", is_warning=has_number)
        return
    match reader, writer:
        case Record(), Record():
            yield from _compare_fields(meeting, reader, writer, rules)
        case Array(), Array():
            yield Meeting(reader.items, writer.items, (location, "items"))
        case Map(), Map():
            yield Meeting(reader.values, writer.values, (location, "values"))
        case Enum(), Enum():
            missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
            if missing:
                written = ", ".join(missing)
                message = f"written as {written}, which the reader does not list"
                yield _make_misreading(
                    meeting, rules, "symbols", (location, "symbols"), written=written, message=message
                )
        case Fixed(), Fixed() if reader.size != writer.size and reader_kind != "decimal":
            yield _make_misreading(meeting, rules, "size", (location, "size"))
        case _:
            # A decimal is written with its decimal point, so its digits do not matter.
            reads_same = rules.converts_units or reader_type == writer_type or writer_kind == "decimal"
            if reader_type and writer_type and reader_kind == writer_kind and not reads_same:
                changed = compare_value_types(reader=reader_type, writer=writer_type)
                # Microseconds of a day do not fit into the int of milliseconds, which Avro would not promote.
                yield _make_misreading(meeting, rules, "type", is_warning=changed.is_warning if changed else False)


def _compare_fields(
    meeting: Meeting, reader: Record, writer: Record, rules: ReaderRules
) -> Iterator[Meeting | Incompatibility]:
    """Yield the pairs of fields that have one name, and the misreadings of fields that the writer lacks."""
    fields_by_case = {field.name.lower(): field for field in writer.fields} if rules.ignores_case else {}
    for index, reader_field in enumerate(reader.fields):
        at: Location = (meeting.location, "fields", index)
        source = writer.fields_by_name.get(reader_field.name) or fields_by_case.get(reader_field.name.lower())
        if source is not None:
            yield Meeting(reader_field.schema, source.schema, (*at, "type"))
            continue
        aliased = [alias for alias in reader_field.aliases if alias in writer.fields_by_name]
        if aliased and aliased[0] not in reader.fields_by_name:
            message = f"written as {aliased[0]}, which {rules.client} does not read as {reader_field.name}"
            yield _make_misreading(meeting, rules, "alias", at, written=aliased[0], message=message)
        elif reader_field.default is NO_DEFAULT:
            if "null" not in {branch.type for _, branch in _list_branches(reader_field.schema)}:
                yield _make_misreading(
                    meeting,
                    rules,
                    "absent",
                    at,
                    message=f"absent from the messages, and {reader_field.name} has no default",
                )
        elif rules is _PYTHON_AVRO or not (
            rules.applies_defaults or _is_zero(reader_field.default, reader_field.schema, rules)
        ):
            yield Incompatibility(DEFAULT_NOT_APPLIED, reader_pointer(at), trace=at, is_warning=True)


def _list_branches(schema: Schema) -> list[tuple[int, Schema]]:
    return list(enumerate(schema.branches)) if isinstance(schema, Union) else [(0, schema)]


def _is_bare(schema: Schema) -> bool:
    """Return whether Go's client keeps the values of a part without a wrapper in a variable of any type."""
    if not isinstance(schema, Union):
        return True
    return all((get_kind(branch, GO_AVRO) in _RESOLVABLE) for branch in schema.branches)


def get_kind(schema: Schema, rules: ReaderRules) -> Kind:
    """Return the kind of a schema for the clients; types that they do not know are numbers, bytes and texts."""
    value_type = get_value_type(schema)
    if value_type is None:
        return schema.type
    kind = value_type.kind
    if kind not in rules.kept or (value_type.base, kind) == ("fixed", "uuid"):
        return value_type.base
    # Go's Avro does not know nanoseconds.
    return value_type.base if value_type.unit == "nanos" and not rules.is_json else kind


def _describe(schema: Schema) -> str:
    if isinstance(schema, Union):
        return f"[{', '.join(_describe(branch) for branch in schema.branches)}]"
    value_type = get_value_type(schema)
    return value_type.text if value_type else f"{schema.type} {getattr(schema, 'name', '')}".strip()


def _is_zero(default: Any, schema: Schema, rules: ReaderRules, entered: frozenset[Field] = frozenset()) -> bool:
    """Return whether a default is the value that a Go variable has from the start.

    `entered` has the fields whose own defaults contain this one: a default that contains itself never ends.
    """
    match schema:
        case Union():
            return default is None
        case Record():
            return isinstance(default, Mapping) and all(
                _is_zero(default[inner.name], inner.schema, rules, entered)
                if inner.name in default
                else inner not in entered and _is_zero(inner.default, inner.schema, rules, entered | {inner})
                for inner in schema.fields
            )
        case Enum():
            return False
    kind = get_kind(schema, rules)
    if kind == "decimal" or (kind in _TIMES and not rules.is_json):
        # A decimal is nil or the empty text, a time is the year 1.
        return False
    if isinstance(schema, Fixed):
        return not rules.is_json and isinstance(default, str) and not default.strip("\0")
    return default is None or default in (0, False, "", [], {})


def _describe_zero(schema: Schema, *, is_json: bool) -> str:
    """Return the value that a Go variable has from the start."""
    match schema:
        case Union():
            return "nil"
        case Array():
            return "an empty list"
        case Map():
            return "an empty map"
        case Record():
            return "a record of empty values"
    value_type = get_value_type(schema)
    kind = value_type.kind if value_type else ""
    if kind == "decimal":
        return "no number"
    if kind in _TIMES and not is_json:
        return "the year 1"
    return {"boolean": "false", "string": '""', "enum": '""', "bytes": "no bytes", "fixed": "no bytes"}.get(
        schema.type, "0"
    )


# Explanations


def explain(breakage: Breakage, *, new: Schema, old: Schema) -> Explanation:
    """Explain a misreading, its effect on messages, and the fix in the new schema."""
    misreading = breakage.incompatibility
    assert isinstance(misreading, LanguageMisreading)  # noqa: S101  the only class of this rule
    case = Case.from_breakage(breakage, new=new, old=old, plain_json=misreading.is_json)
    way, place, is_upgraded = case.walk, case.place, case.is_upgraded
    whose = "the new schema" if is_upgraded else case.older
    written, read, client = misreading.written, misreading.read, misreading.client
    kept, added = (written, read) if is_upgraded else (read, written)
    by_writer = "" if misreading.is_json else ", because it decodes with the writer's definition and promotes nothing"
    fix = f"keep {kept}, and add a field of the type {added} next to it: producers write both until no reader needs the old one."
    match misreading.problem:
        case "alias":
            read_name = way.field.name if way.field else place
            kept_name, added_name = (written, read_name) if is_upgraded else (read_name, written)
            reason = (
                f"{place}: the value is written as {written}, and {client} knows no aliases: it reads "
                f"{_describe_zero(way.schema, is_json=misreading.is_json)} as {read_name}, and the value of {written} is lost."
            )
            fix = f"keep the field {kept_name}, and add {added_name} next to it: producers write both until no reader needs {kept_name}."
        case "absent":
            read_name = way.field.name if way.field else place
            reason = (
                f"{place} is absent from the messages and has no default in {whose}: {client} reads "
                f"{_describe_zero(way.schema, is_json=misreading.is_json)}, which no producer wrote."
            )
            fix = (
                'make it a union with null first, and "default": null.'
                if is_upgraded
                else f"keep the field {read_name} until no reader needs it."
            )
        case "symbols":
            reason = (
                f"{place}: messages may hold {written}, which {whose} does not list, and {client} uses no enum default."
            )
            fix = "list every symbol again" if is_upgraded else "keep the symbols"
            fix += (
                ", or add a field with the new enum next to this one, and write both until no reader needs the old one."
            )
        case "nullable":
            reason = f"{place}: {written} is written, which {client} does not read into the nullable type {read} of {whose}{by_writer}."
        case "null":
            reason = f"{place}: null may be written, which {client} does not read as {read} of {whose}."
        case "union" | "branch":
            reason = f"{place}: {written} is written, which {client} does not read as {read} of {whose}."
        case "form":
            reason = f"{place}: {written} is written, whose values {client} has in another form than the values of {read} in {whose}."
        case _:
            reason = f"{place}: {written} is written, which {client} does not read as {read} of {whose}{by_writer}."
    return case.explain(reason, fix)


def counterexample(breakage: Breakage, *, new: Schema, old: Schema) -> Counterexample | None:
    """Return a message and the result of the client, or None if every message is too large to show, or has no value there."""
    misreading = breakage.incompatibility
    assert isinstance(misreading, LanguageMisreading)  # noqa: S101  the only class of this rule
    case = Case.from_breakage(breakage, new=new, old=old, plain_json=misreading.is_json)
    way, writer = case.walk, case.writer
    writer_pointer, writer_end = case.counterpart
    message_tokens = [*make_message_trace(case.reader, case.trace)]
    samples = SampleMessages(writer, primitives=ONES)
    client, problem = misreading.client, misreading.problem
    if problem == "alias":
        message_tokens[-1] = misreading.written
        written_field = find_field(writer, writer_pointer)
        writer_end = written_field.schema if written_field else writer_end
        result = f"{client} reads {way.field.name if way.field else 'the field'} as {_describe_zero(way.schema, is_json=misreading.is_json)}"
    elif problem == "absent":
        datum = samples.make_smallest(writer) if samples.is_small(writer) else None
        return _show(
            writer,
            datum,
            misreading,
            f"{client} reads {way.path} as {_describe_zero(way.schema, is_json=misreading.is_json)}",
        )
    else:
        result = f"{client} {_describe_result(misreading, way.schema, writer_end)}"
    if not samples.is_small(writer_end):
        return None
    sample = samples.make_smallest(writer_end)
    if isinstance(writer_end, Union) and problem != "null":
        # Null is read in every form.
        values = ((index, part) for index, part in enumerate(writer_end.branches) if part.type != "null")
        index, branch = next(values, (0, None))
        if branch is None or not samples.is_small(branch):
            return None
        sample = UnionValue(index, samples.make_smallest(branch))
    if problem == "symbols" and isinstance(writer_end, Enum) and isinstance(way.schema, Enum):
        sample = next(symbol for symbol in writer_end.symbols if symbol not in way.schema.symbols)
        result = f"{client} reads {sample}, which the reader does not list"
    return _show(writer, samples.make_along(writer, message_tokens, sample), misreading, result)


def _describe_result(misreading: LanguageMisreading, reader: Schema, writer: Schema) -> str:
    written, read = misreading.written, misreading.read
    if misreading.problem == "form":
        return "has the value in another form"
    if misreading.problem == "branch":
        return f"reads {written}, which the reader's union does not list"
    if misreading.is_json:
        return f"does not read {written} as {read}"
    if not isinstance(reader, Union) and not _is_failure(reader, writer):
        return f"does not read {written} as {read}"
    return f"fails: {_name_go_type(reader)} is unsupported for Avro {writer.type}"


_GO_TYPES: Final[Mapping[Kind, str]] = {
    "boolean": "bool",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "bytes": "[]uint8",
    "string": "string",
    "uuid": "string",
    "enum": "string",
    "date": "time.Time",
    "timestamp": "time.Time",
    "local-timestamp": "time.Time",
    "time": "time.Duration",
    "decimal": "*big.Rat",
    "duration": "avro.LogicalDuration",
}
"""Go's types by the kind of a reader."""

_LENIENT: Final = frozenset({*_TIMES, "time", "decimal"})
"""The kinds of readers that also take values of other types, as other values."""


def _name_go_type(schema: Schema) -> str:
    """Return the name of a Go type in the errors of Go's client: `struct` for every record."""
    match schema:
        case Array():
            return f"[]{_name_go_type(schema.items)}"
        case Map():
            return f"map[string]{_name_go_type(schema.values)}"
        case Record():
            return "struct"
        case Union():
            values = [branch for branch in schema.branches if branch.type != "null"]
            return f"*{_name_go_type(values[0])}" if len(values) == 1 else "any"
    kind = get_kind(schema, GO_AVRO)
    return f"[{schema.size}]uint8" if isinstance(schema, Fixed) and kind == "fixed" else _GO_TYPES.get(kind, kind)


def _is_failure(reader: Schema, writer: Schema) -> bool:
    """Return whether Go's client fails on a type, instead of reading another value."""
    reader_kind, writer_kind = get_kind(reader, GO_AVRO), get_kind(writer, GO_AVRO)
    if (writer_kind, reader_kind) in (("array", "bytes"), ("record", "duration")) or reader_kind in _LENIENT:
        return False
    if writer_kind in _LENIENT and reader_kind in ("int", "long"):
        return False
    return not (reader_kind == "enum" and writer_kind in ("string", "uuid"))


def _show(writer: Schema, datum: Any, misreading: LanguageMisreading, result: str) -> Counterexample | None:
    if datum is None:
        return None
    message = write_json(to_json(writer, datum, tagged=not misreading.is_json))
    payload = message.encode() if misreading.is_json else encode(writer, datum)
    return Counterexample(message, payload, result)
