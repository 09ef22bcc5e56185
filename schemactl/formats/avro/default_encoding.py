"""The defaults that Java can encode: ResolvingGrammarGenerator.encode, and decoding the result."""

from __future__ import annotations

from typing import Final

from schemactl.formats.avro.java import JavaException, no_branch, stack_overflow
from schemactl.formats.avro.recursion import Deep, run
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    JsonValue,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
)
from schemactl.formats.avro.schema_text import json_text
from schemactl.model import Release

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
    if isinstance(schema, Primitive):
        encoding.primitive(schema, default)
    else:
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
        self._fields: dict[
            int, bool
        ] = {}  # by identity: whether the field's own default has been encoded to its end

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
                self.primitive(schema, value)

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

    def primitive(self, schema: Primitive, value: JsonValue) -> None:
        """Encode `value` as a primitive."""
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
