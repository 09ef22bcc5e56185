"""The fields of a definition as the rows of a table, nested ones below their field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from schemactl.codegen.spark_types import SparkArray, SparkField, SparkMap, SparkType, Struct, type_ddl
from schemactl.codegen.topic_struct import StructOptions, protobuf_of, value_of
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats import pair_of, protobuf, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import parts

MAX_ROWS: Final = 200
"""So many fields of a definition have a row, so that pages stay small."""


class Piece(NamedTuple):
    """A part of a type's text; `name` is the full name of the type that it names, or ""."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field.

    Attributes:
        depth: 0 for a field of the message itself.
        name: without those above it.
        type: as its language spells it, in pieces: named types by their names, each with its full name.
        logical: the logical type, with its parameters.
        default: as JSON; "": there is none.
        doc: what the definition says of it, and of its type where that is spelled out here alone.
        aliases: former names.
        holder: the full name of the record or message that has the field; "": the message is no record.
        spark: the type of its column, as Spark's DDL has it; "": there is none.
        symbols: of an enum.
        branch: the name of the record that has the field, where a union has several records.
    """

    depth: int
    name: str
    type: tuple[Piece, ...]
    logical: str = ""
    default: str = ""
    doc: str = ""
    aliases: tuple[str, ...] = ()
    holder: str = ""
    spark: str = ""
    symbols: tuple[str, ...] = ()
    branch: str = ""

    @property
    def types(self) -> list[str]:
        """The full names of the named types in it."""
        return [piece.name for piece in self.type if piece.name]

    @property
    def type_text(self) -> str:
        """The type as one text."""
        return "".join(piece.text for piece in self.type)


def field_rows(info: SchemaInfo, release: Release, options: StructOptions | None = None) -> list[FieldRow]:
    """Return the fields of a topic's messages, at most MAX_ROWS of them; a message that is no record is one row, `value`.

    Args:
        info: the definition.
        release: whose Avro reads it.
        options: for the Spark types; None: the rows have none.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    return [*islice(_rows(info, release, options), MAX_ROWS)]


def type_docs(info: SchemaInfo, release: Release) -> dict[str, str]:
    """Return by full name what the definition says of its named types, of those of which it says something. Raises as `field_rows`."""
    if both := pair_of(info):
        key, value = (type_docs(half, release) for half in both.halves.values())
        return key | value
    if native := protobuf_of(info):
        said = native.comments().items()
        places = ((re.fullmatch("/(?:messages|enums)/([^/]+)", pointer), text) for pointer, text in said)
        return {place[1]: text for place, text in places if place}
    if spec(info).language != "avro":
        return {}
    return {
        each.full_name: each.doc
        for each in parts(parse(info.schema, release))
        if isinstance(each, avro.Named) and each.doc
    }


def message_types(rows: Sequence[FieldRow]) -> set[str]:
    """Return the full names of the types that a topic's messages are of: one, or of a KEY_VALUE those of its halves."""
    found: set[str] = set()
    is_within = False
    for row in rows:
        if row.depth == 0:
            is_within = not row.holder
            found.update([row.holder] if row.holder else row.types)
        elif row.depth == 1 and is_within:
            found.add(row.holder)
    return found


def _rows(info: SchemaInfo, release: Release, options: StructOptions | None) -> Iterator[FieldRow]:
    if both := pair_of(info):
        for name, half in both.halves.items():
            inner = [*_rows(half, release, options)]
            if [row.name for row in inner] == ["value"]:
                yield replace(inner[0], name=name)
                continue
            yield FieldRow(0, name, (Piece(half.type.name),))
            for row in inner:
                yield replace(row, depth=row.depth + 1)
        return
    found = _spark(info, release, options)
    kind = spec(info)
    native = protobuf_of(info)
    if native is not None:
        root = protobuf.load("definition").parse(native.schema).root
        yield from _message(root, found, 0, frozenset(), native.comments())
    elif kind.language == "avro":
        root = parse(info.schema, release)
        if isinstance(root, avro.Record):
            yield from _record(root, found, 0, frozenset())
        else:
            yield from _value("value", root, found, 0, frozenset(), doc=avro.doc_of(root))
    else:
        yield FieldRow(0, "value", (Piece(info.type.name),), spark=_ddl(found))


def _spark(info: SchemaInfo, release: Release, options: StructOptions | None) -> SparkType | None:
    if options is None:
        return None
    try:
        found = value_of(info, options, release)
    except SchemactlError:
        return None
    return found.type if found else None


def _record(
    record: avro.Record, spark: SparkType | None, depth: int, above: frozenset[str]
) -> Iterator[FieldRow]:
    columns = _columns(spark)
    for field in record.fields:
        column = columns.get(field.name)
        yield from _value(
            field.name,
            field.schema,
            column.type if column else None,
            depth,
            above | {record.full_name},
            default="" if field.default is avro.NO_DEFAULT else json.dumps(field.default, ensure_ascii=False),
            doc=field.doc or avro.doc_of(field.schema),
            aliases=field.aliases,
            holder=record.full_name,
        )


def _columns(spark: SparkType | None) -> dict[str, SparkField]:
    return {field.name: field for field in spark.fields} if isinstance(spark, Struct) else {}


def _value(
    name: str, schema: avro.Schema, spark: SparkType | None, depth: int, above: frozenset[str], **said: Any
) -> Iterator[FieldRow]:
    """Yield the row of a value, and below it those of the records that it holds, unless they hold it."""
    named = [*_named(schema)]
    enums = [each for each, _ in named if isinstance(each, avro.Enum)]
    records = [(each, path) for each, path in named if isinstance(each, avro.Record)]
    yield FieldRow(
        depth,
        name,
        tuple(_type(schema)),
        _logical(schema),
        spark="" if records else _ddl(spark),
        symbols=enums[0].symbols if len(enums) == 1 else (),
        **said,
    )
    for each, path in records:
        if each.full_name not in above:
            for row in _record(each, _at(spark, path), depth + 1, above):
                is_branch = len(records) > 1 and row.depth == depth + 1
                yield replace(row, branch=each.name) if is_branch else row


def _named(
    schema: avro.Schema, path: tuple[str, ...] = ()
) -> Iterator[tuple[avro.NamedSchema, tuple[str, ...]]]:
    """Yield the named types that a value holds itself, with the way to each in Spark's type."""
    match schema:
        case avro.Array():
            yield from _named(schema.items, (*path, "[]"))
        case avro.Map():
            yield from _named(schema.values, (*path, "{}"))
        case avro.Union():
            branches = [each for each in schema.branches if each.type != "null"]
            for number, each in enumerate(branches):
                yield from _named(each, path if len(branches) == 1 else (*path, f"member{number}"))
        case avro.Record() | avro.Enum() | avro.Fixed():
            yield schema, path


def _at(spark: SparkType | None, path: tuple[str, ...]) -> SparkType | None:
    for step in path:
        match spark:
            case SparkArray():
                spark = spark.element
            case SparkMap():
                spark = spark.value
            case Struct():
                field = _columns(spark).get(step)
                spark = field.type if field else None
    return spark


def _type(schema: avro.Schema) -> Iterator[Piece]:
    match schema:
        case avro.Array() | avro.Map():
            yield Piece(f"{schema.type}<")
            yield from _type(schema.items if isinstance(schema, avro.Array) else schema.values)
            yield Piece(">")
        case avro.Union():
            for number, branch in enumerate(schema.branches):
                if number:
                    yield Piece(" | ")
                yield from _type(branch)
        case avro.Primitive():
            yield Piece(schema.type)
        case _:
            yield Piece(schema.name, schema.full_name)


def _ddl(spark: SparkType | None) -> str:
    """Return the type as Spark's DDL has it, without NOT NULL, which the definition says."""
    return re.sub(r" /\* NOT NULL \*/| NOT NULL", "", type_ddl(spark)) if spark else ""


def _logical(schema: avro.Schema) -> str:
    """Return the logical type of a value, or of the one thing it is if it is not null."""
    if isinstance(schema, avro.Union):
        others = [each for each in schema.branches if each.type != "null"]
        return _logical(others[0]) if len(others) == 1 else ""
    if isinstance(schema, avro.Array):
        return _logical(schema.items)
    if isinstance(schema, avro.Map):
        return _logical(schema.values)
    name = schema.properties.get("logicalType")
    if name == "decimal":
        return f"decimal({schema.properties.get('precision')},{schema.properties.get('scale', 0)})"
    return name if isinstance(name, str) else ""


def _message(
    message: Any, spark: SparkType | None, depth: int, above: frozenset[str], comments: Mapping[str, str]
) -> Iterator[FieldRow]:
    kinds, wrapper, places = (
        protobuf.load("descriptor"),
        protobuf.load("definition"),
        protobuf.load("definition"),
    )
    columns = _columns(spark)
    above |= {message.full_name}
    for number, field in sorted(message.fields().items()):
        value = field.value
        name = value.type_name or kinds.KIND_NAMES[value.kind]
        short = name.rpartition(".")[2]
        column = columns.get(field.name)
        held = value.message_type if value.is_message else None
        if held is not None and wrapper.is_shipped(held.file.name):
            held = None
        yield FieldRow(
            depth,
            field.name,
            (*_proto_type(field, Piece(short, value.type_name), kinds), Piece(f" = {number}")),
            doc="\n".join(
                filter(None, (places.doc_of(field, comments), field.oneof and f"One of {field.oneof}."))
            ),
            holder=message.full_name,
            spark=_ddl(column.type) if column and not isinstance(_inner(column.type), Struct) else "",
            symbols=tuple(value.enum.numbers()) if value.kind == kinds.ENUM else (),
        )
        if held is not None and held.full_name not in above:
            inner = _inner(column.type) if column else None
            yield from _message(held, inner, depth + 1, above, comments)


def _proto_type(field: Any, value: Piece, kinds: Any) -> Iterator[Piece]:
    """Yield a field's type; `value` names the type of one value."""
    if field.cardinality == kinds.MAP:
        yield Piece(f"map<{kinds.KIND_NAMES[field.message_type.fields()[1].kind]}, ")
    elif field.is_repeated:
        yield Piece(f"{field.cardinality} ")
    yield value
    if field.cardinality == kinds.MAP:
        yield Piece(">")


def _inner(spark: SparkType) -> SparkType:
    match spark:
        case SparkArray():
            return spark.element
        case SparkMap():
            return spark.value
    return spark
