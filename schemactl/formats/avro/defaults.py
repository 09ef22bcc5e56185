"""Validate the defaults of fields like Java's Avro in each release, and read and encode the values that Java makes of them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from schemactl.codec.avro_schema import parse_double
from schemactl.core.schema import Release
from schemactl.formats.avro.json_text import InvalidAvro, describe_value, json_text
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    JavaException,
    JsonValue,
    Map,
    Path,
    Primitive,
    Record,
    Schema,
    Union,
    no_branch,
    pointer,
    run_recursion,
    stack_overflow,
)

INT_RANGE: Final = range(-(2**31), 2**31)
LONG_RANGE: Final = range(-(2**63), 2**63)
NUMBER_TYPES: Final = frozenset({"int", "long", "float", "double"})
TEXT_TYPES: Final = frozenset({"string", "bytes", "fixed"})
STRING_CLASS: Final = "avro.java.string"
STRING_CLASSES: Final = frozenset({"CharSequence", "String", "Utf8"})

MAX_DEFAULT_VALUES: Final = 200
"""The maximum number of values in a default, nested values included, that is shown."""

_MAX_BYTE: Final = 0xFF

_UUID: Final = re.compile("-".join(f"[0-9a-fA-F]{{{length}}}" for length in (8, 4, 4, 4, 12)))

_DAY_MS: Final = 86_400_000

_TIME_LIMITS: Final[Mapping[tuple[str, JsonValue], int]] = {
    ("int", "time-millis"): _DAY_MS,
    ("long", "time-micros"): _DAY_MS * 1000,
}
"""The number of units in a day, by type and logical type; every time of day is less."""

_MAX_PRINTED_BITS: Final = 10_000
"""The size of an integer whose digits are counted in its text."""

_MAX_SHOWN_STEPS: Final = 20
"""The maximum number of steps in the path of a part of a default that is shown."""

MISSING_SYMBOL: Final = "TracingAvroTypeException"
"""The exception of Avro 1.12 on a default that is not a symbol of its enum."""

FIELDS_NOT_SET: Final = ("AvroRuntimeException", "Schema fields not set yet")
"""The exception of Java and its message on a default of a record type that is still being read."""


def parse_default(schema: Schema, json: Mapping[str, JsonValue], path: Path) -> JsonValue:
    """Return the default of a field like Java's parser, which reads a text as a number for a float or double.

    Args:
        schema: the schema of the field.
        json: the field's JSON object.
        path: the field's place in the definition.

    Raises:
        InvalidAvro: if the text is not a number.
    """
    text = json.get("default", NO_DEFAULT)
    if type(text) is not str or schema.type not in ("float", "double"):
        return text
    number = parse_double(text)
    if number is None:
        raise InvalidAvro(
            f"the default is {describe_value(text)}; expected a {schema.type}",
            pointer=pointer((path, "default")),
            exception="NumberFormatException",
        )
    return number


def read_default(field: Field) -> JsonValue:
    """Return the value of Java's reader for a field that the writer lacks, as plain JSON, or NO_DEFAULT if it is too large to show.

    The value includes the defaults of fields inside it. `field` must have a default that Java can encode.
    """
    try:
        check = DefaultCheck(any_branch=True)
        return _fill_in(field.schema, field.default, check, iter(range(MAX_DEFAULT_VALUES)))
    except StopIteration:
        return NO_DEFAULT


def _fill_in(schema: Schema, value: JsonValue, check: DefaultCheck, remaining: Iterator[int]) -> JsonValue:
    """Fill in nested defaults; StopIteration if there are more values than `remaining`."""
    next(remaining)
    match schema:
        case Union():
            matching_branch = next(branch for branch in schema.branches if check.is_valid(branch, value, ()))
            return _fill_in(matching_branch, value, check, remaining)
        case Array():
            # Java encodes more than valid defaults.
            items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            return [_fill_in(schema.items, item, check, remaining) for item in items]
        case Map():
            return {key: _fill_in(schema.values, item, check, remaining) for key, item in value.items()}
        case Record():
            parts = zip(schema.fields, _list_parts(schema, value), strict=True)
            return {field.name: _fill_in(part, item, check, remaining) for field, (part, item) in parts}
        case Fixed():  # cut off or padded
            return value[: schema.size].ljust(schema.size, "\0")
        case Primitive(type="int" | "long"):
            return int(value)
        case Primitive(type="float" | "double"):
            return float(value)
    return value


# Valid defaults: Schema.isValidDefault


class FieldDefaults:
    """The validation of the defaults in one definition.

    Attributes:
        problems: the problems of all fields so far.
        record_default_paths: the places of valid defaults that depend on a record type's fields, by the identity of their
            field; Avro 1.12 validates them twice.
    """

    def __init__(self, release: Release) -> None:
        self.problems: list[InvalidAvro] = []
        self.record_default_paths: dict[int, Path] = {}
        self._release = release
        self._check = DefaultCheck(any_branch=release is not Release.R4_0)

    def check(self, field: Field, record: str, path: Path, unfinished: Container[int]) -> None:
        """Validate `field.default`; `unfinished` are the identities of the records whose fields are not set yet."""
        self._check.has_met_record = False
        try:
            valid = self._check.is_valid(field.schema, field.default, unfinished)
        except JavaException as exception:
            place, fix = "a union without branches", ""
            if exception.exception == FIELDS_NOT_SET[0]:
                place = "a record type that is not complete at this place"
                fix = "make the field a union with null first and null as default"
            message = f"the default of {record}.{field.name} is for {place}"
            self._add_problem(message, path, fix, exception=exception.exception)
            return
        if not valid:
            part = self._check.find_wrong_part(field.schema, field.default, unfinished)
            if part.value is NO_DEFAULT:
                message = f"the default of {record}.{field.name} lacks {part.path}, which has no default"
                self._add_problem(message, path, "write the field, or give it a default in its record")
                return
            expected = _name(part.schema)
            if isinstance(part.schema, Union):
                expected = "one of " + ", ".join(map(_name, part.schema.branches))
            value = "null" if part.value is None else describe_value(part.value)
            place = f" at {part.path}" if part.path else ""
            needs_first_branch = isinstance(part.schema, Union) and self._release is Release.R4_0
            fix = _USE_FIRST_BRANCH if needs_first_branch else _suggest_default(part)
            message = f"the default of {record}.{field.name} is {value}{place}; expected a value of type {expected}"
            self._add_problem(message, path, fix)
        elif self._check.has_met_record and self._release is not Release.R4_0:
            self.record_default_paths[id(field)] = path

    def check_again(self, order: list[Record]) -> None:
        """Validate the defaults of `record_default_paths` like Avro 1.12 while it copies the records in this `order`."""
        paths, self.record_default_paths = self.record_default_paths, {}
        self._check = DefaultCheck(any_branch=True)
        unfinished = {id(record) for record in order}
        for record in order:
            for field in record.fields:
                if id(field) in paths:
                    self.check(field, record.full_name, paths[id(field)], unfinished)
            unfinished.discard(id(record))

    def _add_problem(self, message: str, path: Path, fix: str, exception: str = "AvroTypeException") -> None:
        self.problems.append(InvalidAvro(message, pointer=pointer((path, "default")), fix=fix, exception=exception))


_USE_FIRST_BRANCH: Final = (
    "put the branch that the default belongs to first; before Pulsar 4.2 it must match the first branch"
)


class DefaultPart(NamedTuple):
    """A part of a default.

    Attributes:
        schema: the schema of the part.
        value: the value of the part, or NO_DEFAULT if it is missing.
        path: the path inside the default, such as `[2].name` or `["key"]`; "" for the whole default.
    """

    schema: Schema
    value: JsonValue
    path: str


def _suggest_default(part: DefaultPart) -> str:
    """Return the fix for a value of the wrong type, or "" without a suggestion."""
    kind = _name(part.schema)
    if part.value is None and not isinstance(part.schema, Union):
        return f'remove it, or write the type as ["null", {describe_value(kind)}]'
    is_quoted_value = isinstance(part.value, str) and re.fullmatch(r"-?[0-9]+|true|false", part.value)
    if is_quoted_value and kind in ("int", "long", "float", "double", "boolean"):
        return f"write {part.value} without quotes"
    return ""


def _name(schema: Schema) -> str:
    return str(getattr(schema, "target", schema.full_name))  # the target of a reference that is not resolved yet


class DefaultCheck:
    """The validation of single defaults.

    Results are memoized by the identities of schema and value, so that the defaults of inner records are followed once.

    Attributes:
        has_met_record: whether a default depended on the fields of a record type. The caller resets it.
    """

    def __init__(self, *, any_branch: bool) -> None:
        """`any_branch`: the default of a union may match any branch (Avro 1.12), not only the first (Avro 1.11)."""
        self.has_met_record = False
        self._any_branch = any_branch
        self._results: dict[tuple[int, int], bool] = {}

    def is_valid(self, schema: Schema, value: JsonValue, unfinished: Container[int]) -> bool:
        """Return whether `value` is a default for `schema`; `unfinished` are the identities of records without fields yet.

        Raises:
            JavaException: if the result depends on the fields of such a record, or on the first branch of an empty union.
        """
        return run_recursion(lambda: self._is_valid(schema, value, unfinished), self._results.clear)

    def _is_valid(self, schema: Schema, value: JsonValue, unfinished: Container[int]) -> bool:
        match schema:
            case Primitive():
                return _is_primitive(schema.type, value)
            case Union():
                if not (self._any_branch or schema.branches):
                    raise no_branch()
                for branch in schema.branches if self._any_branch else schema.branches[:1]:
                    if self._is_valid(branch, value, unfinished):
                        return True
                return False
            case Array() | Map() | Record():
                if not isinstance(value, list if isinstance(schema, Array) else dict):
                    return False
                if isinstance(schema, Record):
                    self.has_met_record = True
                    if id(schema) in unfinished:
                        raise JavaException(*FIELDS_NOT_SET)
                pair = (id(schema), id(value))
                if pair not in self._results:
                    # A default that contains itself never ends. If it does contain itself, another default was already rejected.
                    self._results[pair] = True
                    for part, item in _list_parts(schema, value):
                        if item is NO_DEFAULT or not self._is_valid(part, item, unfinished):
                            self._results[pair] = False
                            break
                return self._results[pair]
        return isinstance(value, str)  # an enum's symbols and a fixed's size are not checked

    def find_wrong_part(self, schema: Schema, value: JsonValue, unfinished: Container[int]) -> DefaultPart:
        """Return the innermost part because of which `value` is not a default for `schema`."""
        steps: list[str] = []
        visited: set[tuple[int, int]] = set()
        while True:
            container = self._choose_container(schema, value)
            if container is None:
                break
            visited.add((id(container), id(value)))
            for step, (part, item) in zip(_list_steps(container, value), _list_parts(container, value), strict=True):
                if item is NO_DEFAULT:
                    return DefaultPart(part, item, _join_path([*steps, step]))
                # A record's default can contain itself by the defaults of its fields.
                is_visited = (id(self._choose_container(part, item)), id(item)) in visited
                if not is_visited and not self.is_valid(part, item, unfinished):
                    schema, value = part, item
                    steps.append(step)
                    break
            else:
                break
        return DefaultPart(schema, value, _join_path(steps))

    def _choose_container(self, schema: Schema, value: JsonValue) -> Array | Map | Record | None:
        """Return the schema if it is a container of the kind of `value`, or the only such branch of a union, or else None."""
        branches: Sequence[Schema] = (schema,)
        if isinstance(schema, Union):
            branches = schema.branches if self._any_branch else schema.branches[:1]
        containers = [
            branch
            for branch in branches
            if (isinstance(value, list) and isinstance(branch, Array))
            or (isinstance(value, dict) and isinstance(branch, Map | Record))
        ]
        return containers[0] if len(containers) == 1 else None


def _join_path(steps: Sequence[str]) -> str:
    """Return the path of a part of a default; a long path lacks its beginning."""
    path = "".join(steps[-_MAX_SHOWN_STEPS:])
    return f"...{path}" if len(steps) > _MAX_SHOWN_STEPS else path.removeprefix(".")


def _list_steps(schema: Array | Map | Record, value: JsonValue) -> list[str]:
    """Return the steps of a path to the parts of a container's default, in the order of `_list_parts`."""
    match schema:
        case Array():
            return [f"[{index}]" for index in range(len(value))]
        case Map():
            return [f"[{describe_value(key)}]" for key in value]
        case Record():
            return [f".{field.name}" for field in schema.fields]


def _list_parts(schema: Array | Map | Record, value: JsonValue) -> list[tuple[Schema, JsonValue]]:
    """Return the parts of a container's default, each with its schema."""
    match schema:
        case Array():
            return [(schema.items, item) for item in value]
        case Map():
            return [(schema.values, item) for item in value.values()]
        case Record():
            return [(field.schema, value.get(field.name, field.default)) for field in schema.fields]


def _is_primitive(type_name: str, value: JsonValue) -> bool:
    match type_name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string" | "bytes":
            return isinstance(value, str)
        case "int":
            return _is_integer(value) and value in INT_RANGE
        case "long":
            return _is_integer(value) and value in LONG_RANGE
        case _:  # float and double
            return _is_integer(value) or isinstance(value, float)


def _is_integer(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# Defaults that Java can encode: ResolvingGrammarGenerator.encode


def encode_default(field: Field, release: Release) -> Encoding | None:
    """Encode the default of a field that the writer lacks like Java, or return None if it has no bytes.

    Follows GenericData.getDefaultValue, which accepts more than valid defaults: 1.5 is an int (cut off), any text is a fixed (cut
    off or padded), every value except an array or object is an empty array; but an enum's default must be a symbol.

    Raises:
        JavaException: if Java cannot encode the default.
    """
    schema, default = field.schema, field.default
    if default is None:
        if isinstance(schema, Union) and not schema.branches:
            raise no_branch()
        first = schema.branches[0] if isinstance(schema, Union) else schema
        if first.type == "null":
            return None

    def encode() -> Encoding:
        encoding = Encoding(release)
        encoding.encode(schema, default)
        return encoding

    return run_recursion(encode)


class Encoding:
    """The encoding of one default; only errors are recorded, not the bytes.

    Attributes:
        unreadable: the exception of Java when it reads the bytes back, or None.
        read_by_grammar: whether Java reads the bytes with a resolving grammar, as before the faster reader of Avro 1.12.1.
    """

    def __init__(self, release: Release) -> None:
        # Avro 1.11 encodes a union's default as its first branch, 1.12 searches for a matching branch.
        self._first_branch_only = release is Release.R4_0
        self.unreadable: JavaException | None = None
        self.read_by_grammar = release is not Release.R5_0
        self._is_encoded: dict[int, bool] = {}  # by the identity of a field, for its own default

    def encode(self, schema: Schema, value: JsonValue) -> None:
        """Encode `value`.

        Raises:
            JavaException: if Java cannot encode it.
        """
        match schema:
            case Record():
                values = value if isinstance(value, dict) else {}
                for field in schema.fields:
                    if field.name in values:
                        self.encode(field.schema, values[field.name])
                    elif field.default is NO_DEFAULT:
                        raise JavaException("AvroTypeException", f"No default value for: {field.name}")
                    elif id(field) not in self._is_encoded:
                        # The default of a field is encoded once: the result is always the same.
                        self._is_encoded[id(field)] = False
                        self.encode(field.schema, field.default)
                        self._is_encoded[id(field)] = True
                    elif not self._is_encoded[id(field)]:  # it contains itself: Java recurses until its stack overflows
                        raise stack_overflow()
            case Array():
                # Jackson also iterates over the values of an object, and over nothing in any other value.
                items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
                for item in items:
                    self.encode(schema.items, item)
            case Map():
                if isinstance(value, list) and value:
                    # Java writes the number of items in the array as the number of entries, but no entries: the reader meets the end.
                    self._set_unreadable(JavaException("AvroRuntimeException", "java.io.EOFException"))
                if isinstance(value, dict) and value:
                    self._check_string_class(schema)
                    for item in value.values():
                        self.encode(schema.values, item)
            case Union():
                for branch in schema.branches:
                    if self._first_branch_only or _is_candidate(branch, value):
                        self.encode(branch, value)
                        return
                if self._first_branch_only:
                    raise no_branch()
                raise _make_error("Not compatible default value for union: ", value)
            case Enum() if value not in schema.symbols:
                if self._first_branch_only:  # Avro 1.11 unboxes the ordinal, which is null
                    raise JavaException("NullPointerException")
                symbol = value if isinstance(value, str) else "null"
                symbols = ", ".join(schema.symbols)
                raise JavaException(MISSING_SYMBOL, f"enum value '{symbol}' is not in the enum symbol set: [{symbols}]")
            case Fixed():
                if not isinstance(value, str):
                    raise _make_error("Non-string default value for fixed: ", value)
            case Primitive(type="string" | "bytes"):
                if not isinstance(value, str):
                    raise _make_error(f"Non-string default value for {schema.type}: ", value)
                if schema.type == "string":
                    self._check_string_class(schema)
            case Primitive(type="int" | "long" | "float" | "double"):
                if not _is_number(value):
                    raise _make_error(f"Non-numeric default value for {schema.type}: ", value)
            case Primitive(type="boolean"):
                if not isinstance(value, bool):
                    raise _make_error("Non-boolean default for boolean: ", value)
            case Primitive(type="null"):
                if value is not None:
                    raise _make_error("Non-null default value for null type: ", value)

    def _check_string_class(self, schema: Primitive | Map) -> None:
        name = schema.properties.get(STRING_CLASS)
        if self.read_by_grammar and isinstance(name, str) and name not in STRING_CLASSES:
            kind = "org.apache.avro.generic.GenericData.StringType"
            self._set_unreadable(JavaException("IllegalArgumentException", f"No enum constant {kind}.{name}"))

    def _set_unreadable(self, reason: JavaException) -> None:
        self.unreadable = self.unreadable or reason


# Defaults that Java writes as other values: ResolvingGrammarGenerator.encode


def find_altered_parts(field: Field) -> Iterator[str]:
    """Yield a description of each part of the default of `field` that Java writes as another value.

    Java cuts and pads the text of a fixed, replaces characters that the type does not have, rounds whole numbers in a float or double, and
    from Avro 1.12 on writes a value as the first branch of a union with its kind of JSON. A value outside of its logical type is written,
    and no reader with that type can use it.
    """
    pending: list[tuple[Schema, JsonValue, str]] = [(field.schema, field.default, "")]
    while pending:
        schema, value, path = pending.pop()
        problem = ""
        match schema:
            case Union():
                branch = next((branch for branch in schema.branches if _is_candidate(branch, value)), None)
                if branch is not None:
                    pending.append((branch, value, path))
            case Array() | Map() | Record() if not isinstance(value, list if isinstance(schema, Array) else dict):
                problem = (
                    f"is {describe_value(value)}, which is written as {'an' if isinstance(schema, Array) else 'a'} "
                    f"{schema.type} without it"
                )
            case Array() | Map():
                steps = [f"{path}{step}" for step in _list_steps(schema, value)]
                parts = _list_parts(schema, value)
                pending += reversed([(part, item, step) for step, (part, item) in zip(steps, parts, strict=True)])
                if isinstance(schema, Map) and any(map(_has_lone_surrogate, value)):
                    problem = "has a key with a lone surrogate, which is written as ?"
            case Record():
                fields = [part for part in schema.fields if part.name in value]
                pending += reversed([(part.schema, value[part.name], f"{path}.{part.name}") for part in fields])
                if unknown := value.keys() - {part.name for part in schema.fields}:
                    names = ", ".join(describe_value(name) for name in sorted(unknown))
                    problem = f"has {names}, which {schema.full_name} does not have, and which is not written"
            case Fixed() | Primitive():
                problem = _describe_alteration(schema, value)
        if problem:
            place = path.removeprefix(".")
            yield f"{place or 'it'} {problem}"


def _describe_alteration(schema: Fixed | Primitive, value: JsonValue) -> str:
    """Return how a value is written as another one, or "" if it is kept or not a value of this type."""
    logical_type = schema.properties.get("logicalType")
    match schema.type:
        case "bytes" | "fixed" if isinstance(value, str):
            if wrong := next((character for character in value if ord(character) > _MAX_BYTE), None):
                return f"has the character U+{ord(wrong):04X}, which is not a byte and is written as ?"
            if isinstance(schema, Fixed) and len(value) != schema.size:
                change = "is cut off" if len(value) > schema.size else "is filled up with zeros"
                size = f"{len(value)} byte" if len(value) == 1 else f"{len(value)} bytes"
                return f"has {size} and {change} to {schema.size}"
            return _describe_digits(schema, value) if logical_type == "decimal" else ""
        case "string" if isinstance(value, str):
            if _has_lone_surrogate(value):
                return "has a lone surrogate, which is written as ?"
            if logical_type == "uuid" and not _UUID.fullmatch(value):
                return f"is {describe_value(value)}, which is not a UUID"
        case "int" | "long" if _is_number(value):
            # A float is looked up in a range number by number.
            if isinstance(value, float) or value not in (INT_RANGE if schema.type == "int" else LONG_RANGE):
                article = "an int" if schema.type == "int" else "a long"
                return f"is {describe_value(value)}, which is not {article}: its upper bits or its fraction are cut off"
            limit = _TIME_LIMITS.get((schema.type, logical_type))
            if limit is not None and value not in range(limit):
                return f"is {describe_value(value)}, which is not a time of day"
        case "float" | "double" if _is_number(value):
            return _describe_rounding(schema.type, value)
    return ""


def _describe_digits(schema: Fixed | Primitive, value: str) -> str:
    """Return the problem of a decimal with too many digits, or ""."""
    precision = schema.properties.get("precision")
    number = abs(int.from_bytes(value.encode("latin-1"), "big", signed=True))
    # Python writes no integer of more than 4,300 digits (sys.set_int_max_str_digits).
    is_printable = number.bit_length() <= _MAX_PRINTED_BITS
    digits = len(str(number)) if is_printable else math.floor(math.log10(number)) + 1
    if type(precision) is not int or digits <= precision or not value:
        return ""
    return f"is a decimal of {digits} digits, and its type has {precision}"


def _describe_rounding(type_name: str, value: float) -> str:
    """Return how a number changes in a float or double, or "". Fractions are rounded to the nearest number in each case."""
    try:
        double = float(value)
        written = struct.unpack("<f", struct.pack("<f", double))[0] if type_name == "float" else double
    except OverflowError:
        written = math.copysign(math.inf, value)
    is_lost = math.isinf(written) != (isinstance(value, float) and math.isinf(value)) or (written == 0 and value != 0)
    if is_lost or (isinstance(value, int) and int(written) != value):
        return f"is {describe_value(value)}, which a {type_name} does not have: it is written as {written!r}"
    return ""


def _has_lone_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _is_candidate(branch: Schema, value: JsonValue) -> bool:
    """Return whether Avro 1.12 tries this branch of a union for a default: only the kind of the JSON value counts."""
    kind = branch.type
    if kind in TEXT_TYPES:
        return isinstance(value, str)
    if kind in NUMBER_TYPES:
        return _is_number(value)
    if kind == "boolean":
        return isinstance(value, bool)
    return kind != "null" or value is None


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _make_error(message: str, value: JsonValue) -> JavaException:
    return JavaException("AvroTypeException", message + json_text(value))
