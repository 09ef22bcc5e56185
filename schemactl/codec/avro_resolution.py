"""Resolve a writer's schema to a reader's, as Java does, with defaults in binary form (ResolvingGrammarGenerator.encode).

Follows org.apache.avro.Resolver and Schema.applyAliases, which differ from the specification's words in places (records
match by shape inside unions, names of records are not compared); messages are read by Java consumers, so Java is right.
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
    UnionType,
    alike,
    children,
    equal,
    full_name,
)
from .definition import InvalidDefinition


def encode_default(schema: Schema, value: Any) -> bytes:
    """Return the bytes of the JSON value `value` as a default of `schema`. Raises InvalidDefinition: it is no default for that schema."""
    out = bytearray()
    try:
        _encode(out, schema, value)
    except RecursionError:
        raise InvalidDefinition(f"a default of {full_name(schema)} is infinitely recursive") from None
    return bytes(out)


def zigzag(value: int) -> bytes:
    """Return a number as Avro writes it, seven bits a byte, lowest first."""
    bits = ((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF
    if bits < 0x80:
        return bytes((bits,))
    out = bytearray()
    while bits >= 0x80:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def prefix_length(raw: bytes) -> bytes:
    """Return bytes behind their length."""
    return zigzag(len(raw)) + raw


def _encode(out: bytearray, schema: Schema, value: Any) -> None:
    match schema:
        case RecordType():
            given = value if isinstance(value, dict) else {}
            for part in schema.fields:
                held = given.get(part.name, part.default)
                if held is NO_DEFAULT:
                    raise InvalidDefinition(f"the default of {schema.full_name} lacks {part.name}")
                _encode(out, part.schema, held)
        case EnumType() if value in schema.symbols:
            out += zigzag(schema.symbols.index(value))
        case ArrayType():
            # Java goes through the values of an object, too, and takes all else for empty.
            items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            _encode_items(out, [(None, item) for item in items], schema.items)
        case MapType() if not (isinstance(value, list) and value):
            entries = value.items() if isinstance(value, dict) else ()
            _encode_items(out, list(entries), schema.values)
        case UnionType():
            index = next((at for at, branch in enumerate(schema.branches) if _may_be(branch, value)), None)
            if index is None:
                raise _unfit(schema, value)
            out += zigzag(index)
            _encode(out, schema.branches[index], value)
        case FixedType() | PrimitiveType() if _may_be(schema, value):
            out += _leaf(schema, value)
        case _:
            raise _unfit(schema, value)


def _encode_items(out: bytearray, items: list[tuple[str | None, Any]], schema: Schema) -> None:
    if items:
        out += zigzag(len(items))
    for key, item in items:
        if key is not None:
            out += prefix_length(key.encode("utf-8", "replace"))
        _encode(out, schema, item)
    out.append(0)


def _leaf(schema: FixedType | PrimitiveType, value: Any) -> bytes:
    if isinstance(schema, FixedType):
        # Java pads or cuts to the size.
        padded: bytes = value.encode("latin-1", "replace")[: schema.size].ljust(schema.size, b"\0")
        return padded
    kind = schema.type
    match kind:
        case "null":
            return b""
        case "boolean":
            return b"\1" if value else b"\0"
        case "int" | "long":
            return zigzag(_whole(value, 32 if kind == "int" else 64))
        case "float" | "double":
            return _number(value, "<f" if kind == "float" else "<d")
    return prefix_length(value.encode("utf-8" if kind == "string" else "latin-1", "replace"))


def _whole(value: float, bits: int) -> int:
    """Return the number as Java's intValue and longValue give it: a fraction is cut off and bounded; an integer keeps its low bits."""
    half = 1 << (bits - 1)
    if isinstance(value, int):
        return (value + half) % (2 * half) - half
    if math.isnan(value):
        return 0
    return int(max(-half, min(half - 1, value)))


def _number(value: float, form: str) -> bytes:
    try:
        return struct.pack(form, float(value))
    except OverflowError:
        return struct.pack(form, math.inf if value > 0 else -math.inf)


def _may_be(schema: Schema, value: Any) -> bool:
    """Whether Java takes this branch of a union for a default: by the JSON kind of primitives and fixed types alone."""
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


def _unfit(schema: Schema, value: Any) -> InvalidDefinition:
    return InvalidDefinition(f"{value!r} is no default for {full_name(schema)}")


# Avro's schema resolution, as Java carries it out: how a reader's schema decodes what a writer's
# schema wrote.


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
"""Writer's type, reader's type."""


@dataclass(slots=True, eq=False)
class Promote:
    """A primitive or fixed value is taken as it is written, or as a wider type; logical types are the reader's."""

    writer: PrimitiveType | FixedType


@dataclass(slots=True, eq=False)
class ErrorAction:
    """No such value can be read; `reason` says why. The bytes before it can."""

    reason: str


@dataclass(slots=True, eq=False)
class EnumAdjust:
    """An enum; `table` has the reader's symbol for each of the writer's, None where the reader has none."""

    writer: EnumType
    reader: EnumType
    table: tuple[str | None, ...]


@dataclass(slots=True, eq=False)
class Container:
    """An array, or a map's values."""

    writer: ArrayType | MapType
    action: Action


@dataclass(slots=True, eq=False)
class Step:
    """One field as written. What the reader does not have is skipped: its action reads what was written."""

    name: str
    action: Action
    is_skipped: bool


@dataclass(slots=True, eq=False)
class RecordAdjust:
    """A record: the writer's fields in order, then the reader's own fields, which have their defaults."""

    steps: list[Step]
    defaults: list[RecordField]


@dataclass(slots=True, eq=False)
class WriterUnion:
    """The writer's union: an index in the bytes says which of `branches` follows."""

    branches: list[Action]


@dataclass(slots=True, eq=False)
class ReaderUnion:
    """The value becomes branch `index` of the reader's union."""

    writer: Schema
    index: int
    action: Action


Action = Promote | ErrorAction | EnumAdjust | Container | RecordAdjust | WriterUnion | ReaderUnion


def resolve(writer: Schema, reader: Schema) -> Action:
    """Return what makes a value of `reader` of each value of `writer`. Actions of recursive types are cyclic.

    Raises InvalidDefinition: the reader's aliases give two of the writer's fields one name.
    """
    return _Resolver().resolve(_apply_aliases(writer, reader), reader)


class _Resolver:
    def __init__(self) -> None:
        self._records: dict[tuple[int, int], RecordAdjust | ErrorAction] = {}

    def resolve(self, writer: Schema, reader: Schema) -> Action:
        if isinstance(writer, UnionType):
            return self._writer_union(writer, reader)
        if writer.type != reader.type:
            if isinstance(reader, UnionType):
                return self._reader_union(writer, reader)
            if (writer.type, reader.type) in _PROMOTIONS:
                return _promote(writer)
            return _failed(writer, reader)
        return self._same_type(writer, reader)

    def _same_type(self, writer: Schema, reader: Schema) -> Action:
        match writer, reader:
            case (ArrayType(), ArrayType()):
                return Container(writer, self.resolve(writer.items, reader.items))
            case (MapType(), MapType()):
                return Container(writer, self.resolve(writer.values, reader.values))
            case (EnumType(), EnumType()):
                return _symbols(writer, reader)
            case (RecordType(), RecordType()):
                return self._record(writer, reader)
            case (FixedType(), FixedType()) if writer.name != reader.name:
                return _failed(writer, reader)
            case (FixedType(), FixedType()) if writer.size != reader.size:
                return _failed(writer, reader, f": {writer.size} bytes are not {reader.size}")
        return _promote(writer)

    def _record(self, writer: RecordType, reader: RecordType) -> RecordAdjust | ErrorAction:
        pair = (id(writer), id(reader))
        if pair in self._records:
            return self._records[pair]
        action = self._records[pair] = RecordAdjust([], [])
        wanted = {part.name: part for part in reader.fields}
        for part in writer.fields:
            target = wanted.pop(part.name, None)
            resolved = self.resolve(part.schema, target.schema if target else part.schema)
            action.steps.append(Step(part.name, resolved, target is None))
        action.defaults = list(wanted.values())
        missing = [part.name for part in action.defaults if part.default is NO_DEFAULT]
        if missing:
            names = ", ".join(missing)
            them = "it" if len(missing) == 1 else "them"
            self._records[pair] = _failed(writer, reader, f", which requires {names} and has no default for {them}")
        return self._records[pair]

    def _writer_union(self, writer: UnionType, reader: Schema) -> WriterUnion:
        if isinstance(reader, UnionType) and alike(writer, reader, _equivalent):
            pairs = enumerate(zip(writer.branches, reader.branches, strict=True))
            branches: list[Action] = [ReaderUnion(w, index, self.resolve(w, r)) for index, (w, r) in pairs]
        else:
            branches = [self.resolve(branch, reader) for branch in writer.branches]
        return WriterUnion(branches)

    def _reader_union(self, writer: Schema, reader: UnionType) -> Action:
        index = self._first_match(writer, reader)
        if index is None:
            return _failed(writer, reader)
        return ReaderUnion(writer, index, self.resolve(writer, reader.branches[index]))

    def _first_match(self, writer: Schema, reader: UnionType) -> int | None:
        """Return the branch Java takes: same type (and name), else a record of fitting shape, else the first promotion."""
        shape: int | None = None
        for index, branch in enumerate(reader.branches):
            if branch.type != writer.type:
                continue
            if not isinstance(writer, NamedType) or not isinstance(branch, NamedType):
                return index
            if writer.full_name == branch.full_name:
                return index
            if isinstance(writer, RecordType) and isinstance(branch, RecordType):
                fits = not _hopeless(self._record(writer, branch))
                if fits and (shape is None or writer.name == branch.name):
                    shape = index
        if shape is not None:
            return shape
        for index, branch in enumerate(reader.branches):
            if (writer.type, branch.type) in _PROMOTIONS:
                return index
        return None


def _failed(writer: Schema, reader: Schema, why: str = "") -> ErrorAction:
    return ErrorAction(f"{full_name(writer)} was written and cannot be read as {full_name(reader)}{why}")


def _promote(writer: Schema) -> Promote:
    assert isinstance(writer, PrimitiveType | FixedType)  # noqa: S101  the others have actions of their own
    return Promote(writer)


def _hopeless(action: RecordAdjust | ErrorAction) -> bool:
    return isinstance(action, ErrorAction) or any(isinstance(step.action, ErrorAction) for step in action.steps)


def _symbols(writer: EnumType, reader: EnumType) -> EnumAdjust | ErrorAction:
    if writer.name != reader.name:
        return _failed(writer, reader)
    known = set(reader.symbols)
    # The default counts only if the reader lists it among its symbols.
    default = reader.default if reader.default in known else None
    return EnumAdjust(writer, reader, tuple(s if s in known else default for s in writer.symbols))


def _equivalent(left: Schema, right: Schema) -> bool:
    """Compare but for namespaces, logical types and defaults (Resolver.unionEquiv)."""
    match left, right:
        case (FixedType(), FixedType()):
            return (left.name, left.size) == (right.name, right.size)
        case (EnumType(), EnumType()):
            return (left.name, left.symbols) == (right.name, right.symbols)
        case (RecordType(), RecordType()):
            names = [part.name for part in left.fields], [part.name for part in right.fields]
            return left.name == right.name and names[0] == names[1]
    return True


def _apply_aliases(writer: Schema, reader: Schema) -> Schema:
    """Return the writer's schema under the reader's names (Schema.applyAliases)."""
    if alike(writer, reader, equal):
        return writer
    names: dict[str, str] = {}
    fields: dict[str, dict[str, str]] = {}
    _collect_aliases(reader, names, fields, set())
    if not names and not fields:
        return writer
    renamer = _Renamer(names, fields)
    renamed = renamer.rename(writer)
    renamer.check_defaults()
    return renamed


def _collect_aliases(schema: Schema, names: dict[str, str], fields: dict[str, dict[str, str]], seen: set[int]) -> None:
    if isinstance(schema, NamedType):
        names.update(dict.fromkeys(schema.aliases, schema.full_name))
        if id(schema) in seen:
            return
        seen.add(id(schema))
    if isinstance(schema, RecordType):
        aliases = {alias: part.name for part in schema.fields for alias in part.aliases}
        if aliases:
            fields.setdefault(schema.full_name, {}).update(aliases)
    for part in children(schema):
        _collect_aliases(part, names, fields, seen)
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
                return ArrayType(self.rename(schema.items))
            case MapType():
                return MapType(self.rename(schema.values))
            case UnionType():
                return UnionType(tuple(self.rename(branch) for branch in schema.branches))
            case EnumType() | FixedType():
                return replace(schema, full_name=self._names.get(schema.full_name, schema.full_name))
            case RecordType():
                return self._record(schema)
            case PrimitiveType():
                return schema

    def _record(self, schema: RecordType) -> RecordType:
        if id(schema) in self._records:
            return self._records[id(schema)]
        name = self._names.get(schema.full_name, schema.full_name)
        renamed = self._records[id(schema)] = RecordType(name, ())
        aliases = self._fields.get(name, {})
        for part in schema.fields:
            field_name = aliases.get(part.name, part.name)
            renamed.fields.append(RecordField(field_name, self.rename(part.schema), part.default, ()))
        names = [part.name for part in renamed.fields]
        twice = sorted({field_name for field_name in names if names.count(field_name) > 1})
        if twice:
            raise InvalidDefinition(f"by its aliases the reader calls two fields of {name} {', '.join(twice)}")
        return renamed

    def check_defaults(self) -> None:
        """Reject what Java rejects: a default of the writer's that names a field by the name it had.

        Raises InvalidDefinition: there is one.
        """
        for record in self._records.values():
            for part in record.fields:
                if part.default is not NO_DEFAULT:
                    encode_default(part.schema, part.default)
