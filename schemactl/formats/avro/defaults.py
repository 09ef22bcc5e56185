"""The defaults of fields: which are valid, as Java's Schema.isValidDefault in each release, and what Java makes of them."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping
from typing import Final

from schemactl.core.schema import Release
from schemactl.formats.avro.json_text import JAVA_SPACES, InvalidAvro, json_text, shown
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Deep,
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
    run,
    stack_overflow,
)

INT_RANGE: Final = range(-(2**31), 2**31)
LONG_RANGE: Final = range(-(2**63), 2**63)

MAX_READ: Final = 200
"""Of values in a default, those inside it counted: a larger one is not shown."""

_JAVA_DOUBLE: Final = (
    r"[+-]?(?:NaN|Infinity|(?P<decimal>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|(?P<hex>0[xX](?:[0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?|\.[0-9a-fA-F]++)[pP][+-]?[0-9]+)[fFdD]?)"
)
"""What Java's Double.valueOf reads."""


def default_of(schema: Schema, json: Mapping[str, JsonValue], path: Path) -> JsonValue:
    """Return what Java's parser takes for the default of a field: text, where the field at `path` is a float or double, for a number.

    Raises:
        InvalidAvro: there the text is none.
    """
    text = json.get("default", NO_DEFAULT)
    if type(text) is not str or schema.type not in ("float", "double"):
        return text
    number = text.strip(JAVA_SPACES)
    match = re.fullmatch(_JAVA_DOUBLE, number)
    if not match:
        raise InvalidAvro(
            f"the default is {shown(text)}; expected a {schema.type}",
            pointer=pointer((path, "default")),
            exception="NumberFormatException",
        )
    if match["hex"]:
        sign = -1.0 if number[0] == "-" else 1.0
        try:
            return sign * float.fromhex(match["hex"])
        except OverflowError:
            return sign * math.inf
    return float(number.rstrip("fFdD") if match["decimal"] else number)


FIELDS_NOT_SET: Final = ("AvroRuntimeException", "Schema fields not set yet")
"""What Java throws on a default of a record type that is still being read."""


class FieldDefaults:
    """Judges the defaults of one definition's fields, and collects what is wrong with them.

    Attributes:
        bad: the problems found.
        of_records: places of the good defaults that depend on a record type's fields, by the identity of their fields;
            Avro 1.12 judges them twice.
    """

    def __init__(self, release: Release) -> None:
        self.bad: list[InvalidAvro] = []
        self.of_records: dict[int, Path] = {}
        self._release = release
        self._check = DefaultCheck(any_branch=release is not Release.R4_0)

    def check(self, field: Field, record: str, path: Path, unfinished: Container[int]) -> None:
        """Judge `field.default`; `unfinished` holds the identities of the records whose fields are not known yet."""
        self._check.saw_record = False
        try:
            valid = self._check.is_valid(field.schema, field.default, unfinished)
        except JavaException as thrown:
            where, fix = "a union without branches", ""
            if thrown.exception == FIELDS_NOT_SET[0]:
                where = "a record type that is not complete at this place"
                fix = "make the field a union with null first and null as default"
            what = f"the default of {record}.{field.name} is for {where}"
            self._add(what, path, fix, exception=thrown.exception)
            return
        if not valid:
            is_first = isinstance(field.schema, Union) and self._release is Release.R4_0
            self._add(_what(field, record), path, _FIRST if is_first else _fix(field))
        elif self._check.saw_record and self._release is not Release.R4_0:
            self.of_records[id(field)] = path

    def check_again(self, order: list[Record]) -> None:
        """Judge the defaults `of_records` as Avro 1.12 does while it copies records, which it does in this `order`."""
        places, self.of_records = self.of_records, {}
        self._check = DefaultCheck(any_branch=True)
        unfinished = {id(record) for record in order}
        for record in order:
            for field in record.fields:
                if id(field) in places:
                    self.check(field, record.full_name, places[id(field)], unfinished)
            unfinished.discard(id(record))

    def _add(self, what: str, path: Path, fix: str, exception: str = "AvroTypeException") -> None:
        self.bad.append(InvalidAvro(what, pointer=pointer((path, "default")), fix=fix, exception=exception))


_FIRST: Final = "put the branch that the default belongs to first; before Pulsar 4.2 it must match the first branch"


def _what(field: Field, record: str) -> str:
    schema = field.schema
    expected = _name(schema)
    if isinstance(schema, Union):
        expected = "one of " + ", ".join(map(_name, schema.branches))
    default = "null" if field.default is None else shown(field.default)
    return f"the default of {record}.{field.name} is {default}; expected a value of type {expected}"


def _fix(field: Field) -> str:
    """Return what to write in place of a default that does not fit; "" where that is plain."""
    kind = _name(field.schema)
    if field.default is None and not isinstance(field.schema, Union):
        return f'remove it, or write the type as ["null", {shown(kind)}]'
    is_word = isinstance(field.default, str) and re.fullmatch(r"-?[0-9]+|true|false", field.default)
    if is_word and kind in ("int", "long", "float", "double", "boolean"):
        return f"write {field.default} without quotes"
    return ""


def _name(schema: Schema) -> str:
    return str(getattr(schema, "target", schema.full_name))  # of a reference that is not resolved yet


class DefaultCheck:
    """Judges single defaults.

    Answers are remembered by the identity of schema and value, so that defaults which lead through the defaults of
    other records are not followed again and again.
    """

    def __init__(self, *, any_branch: bool) -> None:
        """`any_branch`: the default of a union may match any branch (Avro 1.12), not the first only (Avro 1.11)."""
        self._any_branch = any_branch
        self._known: dict[tuple[int, int], bool] = {}
        self.saw_record = False

    def is_valid(self, schema: Schema, value: JsonValue, unfinished: Container[int]) -> bool:
        """Whether `value` is a default for `schema`; `unfinished`: identities of records without fields as yet.

        Raises:
            JavaException: the answer depends on the fields of such a record, or on the first branch of an empty union.
        """
        return run(self._is_valid(schema, value, unfinished))

    def _is_valid(self, schema: Schema, value: JsonValue, unfinished: Container[int]) -> Deep[bool]:
        match schema:
            case Primitive():
                return _is_primitive(schema.type, value)
            case Union():
                if not (self._any_branch or schema.branches):
                    raise no_branch()
                for branch in schema.branches if self._any_branch else schema.branches[:1]:
                    if (yield self._is_valid(branch, value, unfinished)):
                        return True
                return False
            case Array() | Map() | Record():
                return bool((yield self._is_container(schema, value, unfinished)))
        return isinstance(value, str)  # an enum's symbols and a fixed's size are not looked at

    def _is_container(self, schema: Array | Map | Record, value: JsonValue, unfinished: Container[int]) -> Deep[bool]:
        if not isinstance(value, list if isinstance(schema, Array) else dict):
            return False
        if isinstance(schema, Record):
            self.saw_record = True
            if id(schema) in unfinished:
                raise JavaException(*FIELDS_NOT_SET)
        place = (id(schema), id(value))
        known = self._known.get(place)
        if known is None:
            # A default that leads back into itself never ends. Where it does, another one was refused already.
            known = self._known[place] = True
            for part, item in _parts(schema, value):
                if item is NO_DEFAULT or not (yield self._is_valid(part, item, unfinished)):
                    known = False
                    break
            self._known[place] = known
        return known


def read_default(field: Field) -> JsonValue:
    """Return what Java's reader has in place of a field that the writer lacks, as plain JSON: its default, and those inside it.

    The default is one that Java can encode. NO_DEFAULT where it is too large to be shown.
    """
    try:
        check = DefaultCheck(any_branch=True)
        return _filled_in(field.schema, field.default, check, iter(range(MAX_READ)))
    except StopIteration:
        return NO_DEFAULT


def _filled_in(schema: Schema, value: JsonValue, check: DefaultCheck, room: Iterator[int]) -> JsonValue:
    next(room)
    match schema:
        case Union():
            fitting = next(branch for branch in schema.branches if check.is_valid(branch, value, ()))
            return _filled_in(fitting, value, check, room)
        case Array():
            # Java takes more than what is valid.
            items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            return [_filled_in(schema.items, item, check, room) for item in items]
        case Map():
            return {key: _filled_in(schema.values, item, check, room) for key, item in value.items()}
        case Record():
            parts = zip(schema.fields, _parts(schema, value), strict=True)
            return {field.name: _filled_in(part, item, check, room) for field, (part, item) in parts}
        case Fixed():  # cut off or padded
            return value[: schema.size].ljust(schema.size, "\0")
        case Primitive(type="int" | "long"):
            return int(value)
        case Primitive(type="float" | "double"):
            return float(value)
    return value


def _parts(schema: Array | Map | Record, value: JsonValue) -> list[tuple[Schema, JsonValue]]:
    """Return what a container's default consists of, each part with its schema."""
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


# Defaults that Java can encode: ResolvingGrammarGenerator.encode.

NUMBER_TYPES: Final = frozenset({"int", "long", "float", "double"})
TEXT_TYPES: Final = frozenset({"string", "bytes", "fixed"})

STRING_CLASS: Final = "avro.java.string"
STRING_CLASSES: Final = frozenset({"CharSequence", "String", "Utf8"})


def encode_default(field: Field, release: Release) -> Encoding | None:
    """Return the encoding that Java makes of a default to stand in for a field the writer lacks; None: it needs no bytes.

    Follows GenericData.getDefaultValue. What it takes is wider than a valid default: 1.5 is an int (cut off), any text is a
    fixed (cut off or padded), anything but an array or object is an empty array; but an enum's default must be a symbol.

    Raises:
        JavaException: the default cannot be encoded.
    """
    schema, default = field.schema, field.default
    if default is None and (schema.type == "null" or _starts_with_null(schema)):
        return None
    encoding = Encoding(release)
    run(encoding.steps(schema, default))
    return encoding


def check_default(field: Field, release: Release) -> None:
    """Raise JavaException unless Java's reader can fill in the default of `field`.

    Raises:
        JavaException: the default cannot be encoded, or its encoding cannot be read back.
    """
    encoding = encode_default(field, release)
    if encoding and encoding.unreadable:
        raise encoding.unreadable


def _starts_with_null(schema: Schema) -> bool:
    if not isinstance(schema, Union):
        return False
    if not schema.branches:
        raise no_branch()
    return schema.branches[0].type == "null"


class Encoding:
    """One default, encoded.

    Attributes:
        unreadable: what Java throws when it reads the bytes back.
        read_by_grammar: it does so with a resolving grammar, not yet with the faster reader of Avro 1.12.1 and newer.
    """

    def __init__(self, release: Release) -> None:
        # Avro 1.11 writes a union's default as its first branch, 1.12 looks for a branch that fits.
        self.first_branch_only = release is Release.R4_0
        self.unreadable: JavaException | None = None
        self.read_by_grammar = release is not Release.R5_0
        self._fields: dict[int, bool] = {}  # by identity: whether a field's own default has been encoded

    def steps(self, schema: Schema, value: JsonValue) -> Deep[None]:
        """Encode `value`; JavaException where Java cannot."""
        match schema:
            case Record():
                yield self._record(schema, value)
            case Array():
                # Jackson iterates over the values of an object, too, and over nothing in any other value.
                yield self._items(schema.items, list(value.values()) if isinstance(value, dict) else value)
            case Map():
                self._check_map(schema, value)
                yield self._items(schema.values, list(value.values()) if isinstance(value, dict) else None)
            case Union():
                yield self.steps(self._branch(schema, value), value)
            case Enum():
                self._enum(schema, value)
            case Fixed():
                if not isinstance(value, str):
                    raise _unfit("Non-string default value for fixed: ", value)
            case Primitive():
                self._primitive(schema, value)

    def _items(self, schema: Schema, values: JsonValue) -> Deep[None]:
        if isinstance(values, list):
            for value in values:
                yield self.steps(schema, value)

    def _record(self, schema: Record, value: JsonValue) -> Deep[None]:
        given = value if isinstance(value, dict) else {}
        for field in schema.fields:
            if field.name in given:
                yield self.steps(field.schema, given[field.name])
            elif field.default is NO_DEFAULT:
                raise JavaException("AvroTypeException", f"No default value for: {field.name}")
            else:
                yield self._default(field)

    def _default(self, field: Field) -> Deep[None]:
        """Encode the default of `field` once: it is the same every time."""
        encoded = self._fields.get(id(field))
        if encoded is None:
            self._fields[id(field)] = False
            yield self.steps(field.schema, field.default)
            self._fields[id(field)] = True
        elif not encoded:  # inside itself: Java goes round until its stack is full
            raise stack_overflow()

    def _enum(self, schema: Enum, value: JsonValue) -> None:
        if value in schema.symbols:
            return
        if self.first_branch_only:  # Avro 1.11 unboxes the ordinal it did not find
            raise JavaException("NullPointerException")
        symbol = value if isinstance(value, str) else "null"
        raise JavaException(
            "TracingAvroTypeException",
            f"enum value '{symbol}' is not in the enum symbol set: [{', '.join(schema.symbols)}]",
        )

    def _check_map(self, schema: Map, value: JsonValue) -> None:
        if isinstance(value, list) and value:
            # Java announces as many entries as the array has items and writes none, so the reader runs off the end.
            self._cannot_read(JavaException("AvroRuntimeException", "java.io.EOFException"))
        if isinstance(value, dict) and value:
            self._check_string_class(schema)

    def _branch(self, schema: Union, value: JsonValue) -> Schema:
        for branch in schema.branches:
            if self.first_branch_only or _may_hold(branch, value):
                return branch
        if self.first_branch_only:
            raise no_branch()
        raise _unfit("Not compatible default value for union: ", value)

    def _primitive(self, schema: Primitive, value: JsonValue) -> None:
        kind = schema.type
        if kind in ("string", "bytes"):
            if not isinstance(value, str):
                raise _unfit(f"Non-string default value for {kind}: ", value)
            if kind == "string":
                self._check_string_class(schema)
        elif kind in NUMBER_TYPES:
            if not _is_number(value):
                raise _unfit(f"Non-numeric default value for {kind}: ", value)
        elif kind == "boolean":
            if not isinstance(value, bool):
                raise _unfit("Non-boolean default for boolean: ", value)
        elif value is not None:
            raise _unfit("Non-null default value for null type: ", value)

    def _check_string_class(self, schema: Primitive | Map) -> None:
        name = schema.properties.get(STRING_CLASS)
        if self.read_by_grammar and isinstance(name, str) and name not in STRING_CLASSES:
            kind = "org.apache.avro.generic.GenericData.StringType"
            self._cannot_read(JavaException("IllegalArgumentException", f"No enum constant {kind}.{name}"))

    def _cannot_read(self, reason: JavaException) -> None:
        self.unreadable = self.unreadable or reason


def _may_hold(branch: Schema, value: JsonValue) -> bool:
    """Whether Avro 1.12 tries this branch of a union for a default: by the kind of the JSON value alone."""
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


def _unfit(what: str, value: JsonValue) -> JavaException:
    return JavaException("AvroTypeException", what + json_text(value))
