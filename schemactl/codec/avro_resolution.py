"""Resolve a writer's Avro schema to a reader's schema, as Java does, and encode defaults (ResolvingGrammarGenerator.encode).

This module follows org.apache.avro.Resolver and Schema.applyAliases, because Java consumers read the messages. They differ from the
specification in places: inside unions records match by their structure, and names of records are not compared.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from typing import Any, Final

from .avro_schema import (
    NO_DEFAULT,
    ArrayType,
    EnumType,
    FixedType,
    MapType,
    NamedType,
    PrimitiveType,
    RecordField,
    RecordType,
    Schema,
    ShapeComparison,
    UnionType,
    get_full_name,
    is_equal,
    list_children,
)
from .definition import InvalidDefinition
from .wire_format import encode_zigzag

_PROMOTIONS: Final = frozenset(
    {
        ("int", "long"),
        ("int", "float"),
        ("int", "double"),
        ("long", "float"),
        ("long", "double"),
        ("float", "double"),
        ("string", "bytes"),
        ("bytes", "string"),
    }
)
"""Pairs of a writer's type and a reader's type."""


@dataclass(slots=True, eq=False)
class Promote:
    """A primitive or fixed value, read with the writer's type or a wider one; the logical type is the reader's."""

    writer: PrimitiveType | FixedType


@dataclass(slots=True, eq=False)
class ErrorAction:
    """A value that cannot be read, for `reason`. A message fails only when it has such a value."""

    reason: str


@dataclass(slots=True, eq=False)
class EnumAdjust:
    """An enum; `table` has the reader's symbol for each symbol of the writer, or None if the reader has no such symbol."""

    writer: EnumType
    reader: EnumType
    table: tuple[str | None, ...]


@dataclass(slots=True, eq=False)
class Container:
    """An array or map; `action` reads its items or values."""

    writer: ArrayType | MapType
    action: Action


@dataclass(slots=True, eq=False)
class Step:
    """A field of the writer. A field that the reader does not have is skipped; its action reads the writer's value."""

    name: str
    action: Action
    is_skipped: bool


@dataclass(slots=True, eq=False)
class RecordAdjust:
    """A record: the fields of the writer in order, then the fields that only the reader has, which get their defaults."""

    steps: list[Step]
    defaults: list[RecordField]


@dataclass(slots=True, eq=False)
class WriterUnion:
    """A union of the writer, whose values start with the index of a branch."""

    branches: list[Action]


@dataclass(slots=True, eq=False)
class ReaderUnion:
    """A value that becomes the branch `index` of the reader's union."""

    writer: Schema
    index: int
    action: Action


Action = Promote | ErrorAction | EnumAdjust | Container | RecordAdjust | WriterUnion | ReaderUnion


def resolve(writer: Schema, reader: Schema) -> Action:
    """Return the action that converts values of `writer` to values of `reader`. Actions of recursive types are cyclic.

    Raises:
        InvalidDefinition: aliases of the reader give the same name to two fields of the writer.
    """
    # The fields and types of the writer get the names that the reader's aliases give them (Schema.applyAliases).
    if not ShapeComparison(is_equal).is_same(writer, reader):
        names: dict[str, str] = {}
        fields: dict[str, dict[str, str]] = {}
        _collect_aliases(reader, names, fields, set())
        if names or fields:
            renamer = _Renamer(names, fields)
            writer = renamer.rename(writer)
            renamer.check_defaults()
    return _Resolver().resolve(writer, reader)


class _Resolver:
    def __init__(self) -> None:
        self._records: dict[tuple[int, int], RecordAdjust | ErrorAction] = {}
        self._equivalence = ShapeComparison(_is_equivalent)

    def resolve(self, writer: Schema, reader: Schema) -> Action:
        if isinstance(writer, UnionType):
            if isinstance(reader, UnionType) and self._equivalence.is_same(writer, reader):
                pairs = enumerate(zip(writer.branches, reader.branches, strict=True))
                return WriterUnion([ReaderUnion(w, index, self.resolve(w, r)) for index, (w, r) in pairs])
            return WriterUnion([self.resolve(branch, reader) for branch in writer.branches])
        match writer, reader:
            case (_, UnionType()):
                index = self._find_branch(writer, reader)
                if index is not None:
                    return ReaderUnion(writer, index, self.resolve(writer, reader.branches[index]))
            case (ArrayType(), ArrayType()):
                return Container(writer, self.resolve(writer.items, reader.items))
            case (MapType(), MapType()):
                return Container(writer, self.resolve(writer.values, reader.values))
            case (RecordType(), RecordType()):
                return self._resolve_record(writer, reader)
            case (EnumType(), EnumType()) if writer.name == reader.name:
                symbols = set(reader.symbols)
                # The default has an effect only if it is one of the symbols.
                default = reader.default if reader.default in symbols else None
                table = tuple(symbol if symbol in symbols else default for symbol in writer.symbols)
                return EnumAdjust(writer, reader, table)
            case (FixedType(), FixedType()) if writer.name == reader.name:
                if writer.size == reader.size:
                    return Promote(writer)
                return _fail(writer, reader, f": {writer.size} bytes are not {reader.size}")
            case (PrimitiveType(), PrimitiveType()):
                if writer.type == reader.type or (writer.type, reader.type) in _PROMOTIONS:
                    return Promote(writer)
        return _fail(writer, reader)

    def _resolve_record(self, writer: RecordType, reader: RecordType) -> RecordAdjust | ErrorAction:
        pair = (id(writer), id(reader))
        if pair in self._records:
            return self._records[pair]
        action = self._records[pair] = RecordAdjust([], [])
        reader_fields = {part.name: part for part in reader.fields}
        for part in writer.fields:
            target = reader_fields.pop(part.name, None)
            resolved = self.resolve(part.schema, target.schema if target else part.schema)
            action.steps.append(Step(part.name, resolved, target is None))
        action.defaults = list(reader_fields.values())
        missing = [part.name for part in action.defaults if part.default is NO_DEFAULT]
        if missing:
            names = ", ".join(missing)
            them = "it" if len(missing) == 1 else "them"
            self._records[pair] = _fail(writer, reader, f", which requires {names} and has no default for {them}")
        return self._records[pair]

    def _find_branch(self, writer: Schema, reader: UnionType) -> int | None:
        """Return the branch that Java selects: of the same type and name, or else a record of the same structure, or else a promotion."""
        matching_record: int | None = None
        for index, branch in enumerate(reader.branches):
            if branch.type != writer.type:
                continue
            if not isinstance(writer, NamedType) or not isinstance(branch, NamedType):
                return index
            if writer.full_name == branch.full_name:
                return index
            if isinstance(writer, RecordType) and isinstance(branch, RecordType):
                action = self._resolve_record(writer, branch)
                always_fails = isinstance(action, ErrorAction) or any(
                    isinstance(step.action, ErrorAction) for step in action.steps
                )
                if not always_fails and (matching_record is None or writer.name == branch.name):
                    matching_record = index
        if matching_record is not None:
            return matching_record
        for index, branch in enumerate(reader.branches):
            if (writer.type, branch.type) in _PROMOTIONS:
                return index
        return None


def _fail(writer: Schema, reader: Schema, detail: str = "") -> ErrorAction:
    return ErrorAction(f"{get_full_name(writer)} was written and cannot be read as {get_full_name(reader)}{detail}")


def _is_equivalent(left: Schema, right: Schema) -> bool:
    """Compare two types except for namespaces, logical types and defaults (Resolver.unionEquiv)."""
    match left, right:
        case (FixedType(), FixedType()):
            return (left.name, left.size) == (right.name, right.size)
        case (EnumType(), EnumType()):
            return (left.name, left.symbols) == (right.name, right.symbols)
        case (RecordType(), RecordType()):
            left_names, right_names = [part.name for part in left.fields], [part.name for part in right.fields]
            return left.name == right.name and left_names == right_names
    return True


# Aliases


def _collect_aliases(
    schema: Schema, names: dict[str, str], fields: dict[str, dict[str, str]], visited: set[int]
) -> None:
    """Add the full names by alias to `names`, and the field names by alias of each record to `fields`."""
    if isinstance(schema, NamedType):
        names.update(dict.fromkeys(schema.aliases, schema.full_name))
        if id(schema) in visited:
            return
        visited.add(id(schema))
    if isinstance(schema, RecordType):
        aliases = {alias: part.name for part in schema.fields for alias in part.aliases}
        if aliases:
            fields.setdefault(schema.full_name, {}).update(aliases)
    for part in list_children(schema):
        _collect_aliases(part, names, fields, visited)
    if isinstance(schema, RecordType) and schema.full_name in fields:
        fields.update(dict.fromkeys(schema.aliases, fields[schema.full_name]))


class _Renamer:
    def __init__(self, names: dict[str, str], fields: dict[str, dict[str, str]]) -> None:
        self._names = names
        self._fields = fields
        self._records: dict[int, RecordType] = {}

    def rename(self, schema: Schema) -> Schema:
        match schema:
            case ArrayType():
                return ArrayType(self.rename(schema.items), schema.java)
            case MapType():
                return MapType(self.rename(schema.values))
            case UnionType():
                return UnionType(tuple(self.rename(branch) for branch in schema.branches))
            case EnumType() | FixedType():
                return replace(schema, full_name=self._names.get(schema.full_name, schema.full_name))
            case RecordType() if id(schema) in self._records:
                return self._records[id(schema)]
            case RecordType():
                name = self._names.get(schema.full_name, schema.full_name)
                renamed = self._records[id(schema)] = RecordType(name, ())
                aliases = self._fields.get(name, {})
                for part in schema.fields:
                    field_name = aliases.get(part.name, part.name)
                    renamed.fields.append(RecordField(field_name, self.rename(part.schema), part.default, ()))
                names = [part.name for part in renamed.fields]
                duplicates = sorted({field_name for field_name in names if names.count(field_name) > 1})
                if duplicates:
                    raise InvalidDefinition(
                        f"by its aliases the reader calls two fields of {name} {', '.join(duplicates)}"
                    )
                return renamed
            case PrimitiveType():
                return schema

    def check_defaults(self) -> None:
        """Check the defaults of renamed records as Java does, which rejects a default with the previous name of a field.

        Raises:
            InvalidDefinition: a default is not valid.
        """
        for record in self._records.values():
            for part in record.fields:
                if part.default is not NO_DEFAULT:
                    encode_default(part.schema, part.default)


# Defaults in binary form


def encode_default(schema: Schema, value: Any) -> bytes:
    """Encode the JSON value `value`, which is a default of `schema`.

    Raises:
        InvalidDefinition: the value is not a valid default of the schema.
    """
    out = bytearray()
    try:
        _encode(out, schema, value)
    except RecursionError:
        raise InvalidDefinition(f"a default of {get_full_name(schema)} is infinitely recursive") from None
    return bytes(out)


def prefix_length(raw: bytes) -> bytes:
    """Return bytes with their length in front."""
    return encode_zigzag(len(raw)) + raw


def _encode(out: bytearray, schema: Schema, value: Any) -> None:
    match schema:
        case RecordType():
            values = value if isinstance(value, dict) else {}
            for part in schema.fields:
                field_value = values.get(part.name, part.default)
                if field_value is NO_DEFAULT:
                    raise InvalidDefinition(f"the default of {schema.full_name} lacks {part.name}")
                _encode(out, part.schema, field_value)
        case EnumType() if value in schema.symbols:
            out += encode_zigzag(schema.symbols.index(value))
        case ArrayType():
            # Java also accepts an object, for its values, and treats all other JSON as empty.
            items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            _encode_items(out, [(None, item) for item in items], schema.items)
        case MapType() if not (isinstance(value, list) and value):
            entries = value.items() if isinstance(value, dict) else ()
            _encode_items(out, list(entries), schema.values)
        case UnionType():
            index = next((at for at, branch in enumerate(schema.branches) if _is_candidate(branch, value)), None)
            if index is None:
                raise _make_default_error(schema, value)
            out += encode_zigzag(index)
            _encode(out, schema.branches[index], value)
        case FixedType() if _is_candidate(schema, value):
            # Java pads or cuts to the size.
            out += value.encode("latin-1", "replace")[: schema.size].ljust(schema.size, b"\0")
        case PrimitiveType(type="null") if value is None:
            return
        case PrimitiveType(type="boolean") if _is_candidate(schema, value):
            out.append(value)
        case PrimitiveType(type="int" | "long" as kind) if _is_candidate(schema, value):
            # As Java's intValue and longValue: fractions are truncated and bounded, integers keep their low bits.
            half = 1 << (31 if kind == "int" else 63)
            if isinstance(value, int):
                out += encode_zigzag((value + half) % (2 * half) - half)
            else:
                out += encode_zigzag(0 if math.isnan(value) else int(max(-half, min(half - 1, value))))
        case PrimitiveType(type="float" | "double" as kind) if _is_candidate(schema, value):
            form = "<f" if kind == "float" else "<d"
            try:
                out += struct.pack(form, float(value))
            except OverflowError:
                out += struct.pack(form, math.inf if value > 0 else -math.inf)
        case PrimitiveType(type="string" | "bytes" as kind) if _is_candidate(schema, value):
            out += prefix_length(value.encode("utf-8" if kind == "string" else "latin-1", "replace"))
        case _:
            raise _make_default_error(schema, value)


def _encode_items(out: bytearray, items: list[tuple[str | None, Any]], schema: Schema) -> None:
    if items:
        out += encode_zigzag(len(items))
    for key, item in items:
        if key is not None:
            out += prefix_length(key.encode("utf-8", "replace"))
        _encode(out, schema, item)
    out.append(0)


def _is_candidate(schema: Schema, value: Any) -> bool:
    """Return whether Java selects this branch of a union for a default, by the JSON type of primitive and fixed types alone."""
    match schema.type:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long" | "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string" | "bytes" | "fixed":
            return isinstance(value, str)
    return True


def _make_default_error(schema: Schema, value: Any) -> InvalidDefinition:
    return InvalidDefinition(f"{value!r} is not a default for {get_full_name(schema)}")
