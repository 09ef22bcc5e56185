"""List the fields of a definition, and trace each field of a topic through its versions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from schemactl.codegen.spark_types import SparkArray, SparkField, SparkMap, SparkType, Struct, type_ddl
from schemactl.codegen.topic_struct import StructOptions, protobuf_of, value_of
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion
from schemactl.formats import get_pair, protobuf, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parser import parse

MAX_ROWS: Final = 150
"""The maximum number of fields of a definition in a table, so that pages stay small."""


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field.

    Attributes:
        depth: 0 for a field of the message itself.
        name: the name within its record.
        type: the type in the syntax of its language, in pieces.
        logical: the logical type, with its parameters.
        default: the default as JSON, or "".
        doc: its documentation, or the documentation of its unnamed type.
        aliases: former names.
        holder: the full name of the record or message with the field, or "" if the message is not a record.
        spark: the type of its column in Spark's DDL, or "".
        symbols: the symbols of an enum.
        branch: the name of the record with the field, if a union has several records.
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
        """The full names of its named types."""
        return [piece.name for piece in self.type if piece.name]

    @property
    def type_text(self) -> str:
        """The text of all pieces of the type."""
        return "".join(piece.text for piece in self.type)


class Piece(NamedTuple):
    """A part of the text of a type; `name` is the full name if the part is a named type, else ""."""

    text: str
    name: str = ""


def list_field_rows(info: SchemaInfo, release: Release, options: StructOptions | None = None) -> list[FieldRow]:
    """Return the fields of a message, at most MAX_ROWS of them; a message that is not a record has one row, `value`.

    Args:
        info: the definition.
        release: the release of Pulsar whose Avro parses it.
        options: the options of the Spark types, or None for rows without them.

    Raises:
        InvalidSchema: if the definition does not parse.
    """
    return [*islice(_list_schema_rows(info, release, options), MAX_ROWS)]


def _list_schema_rows(info: SchemaInfo, release: Release, options: StructOptions | None) -> Iterator[FieldRow]:
    if pair := get_pair(info):
        for name, part in pair.halves.items():
            rows = [*_list_schema_rows(part, release, options)]
            if [row.name for row in rows] == ["value"]:
                yield replace(rows[0], name=name)
                continue
            yield FieldRow(0, name, (Piece(part.type.name),))
            for row in rows:
                yield replace(row, depth=row.depth + 1)
        return
    spark: SparkType | None = None
    if options is not None:
        with suppress(SchemactlError):
            column = value_of(info, options, release)
            spark = column.type if column else None
    schema_spec = spec(info)
    native = protobuf_of(info)
    if native is not None:
        root = protobuf.load("definition").parse(native.schema).root
        yield from _list_message_rows(root, spark, 0, frozenset(), native.comments())
    elif schema_spec.language == "avro":
        root = parse(info.schema, release)
        if isinstance(root, avro.Record):
            yield from _list_record_rows(root, spark, 0, frozenset())
        else:
            yield from _list_value_rows("value", root, spark, 0, frozenset(), doc=avro.find_doc(root))
    else:
        yield FieldRow(0, "value", (Piece(info.type.name),), spark=_format_ddl(spark))


def _list_record_rows(
    record: avro.Record, spark: SparkType | None, depth: int, parents: frozenset[str]
) -> Iterator[FieldRow]:
    columns = _map_columns(spark)
    for avro_field in record.fields:
        column = columns.get(avro_field.name)
        yield from _list_value_rows(
            avro_field.name,
            avro_field.schema,
            column.type if column else None,
            depth,
            parents | {record.full_name},
            default="" if avro_field.default is avro.NO_DEFAULT else json.dumps(avro_field.default, ensure_ascii=False),
            doc=avro_field.doc or avro.find_doc(avro_field.schema),
            aliases=avro_field.aliases,
            holder=record.full_name,
        )


def _map_columns(spark: SparkType | None) -> dict[str, SparkField]:
    return {field.name: field for field in spark.fields} if isinstance(spark, Struct) else {}


def _list_value_rows(
    name: str, schema: avro.Schema, spark: SparkType | None, depth: int, parents: frozenset[str], **attributes: Any
) -> Iterator[FieldRow]:
    """Yield the row of a value, and below it the rows of its records, except records that contain the value."""
    named = [*_find_named_types(schema)]
    enums = [named_type for named_type, _ in named if isinstance(named_type, avro.Enum)]
    records = [(named_type, path) for named_type, path in named if isinstance(named_type, avro.Record)]
    yield FieldRow(
        depth,
        name,
        tuple(_spell_avro_type(schema)),
        _find_logical_type(schema),
        spark="" if records else _format_ddl(spark),
        symbols=enums[0].symbols if len(enums) == 1 else (),
        **attributes,
    )
    for record, path in records:
        if record.full_name not in parents:
            for row in _list_record_rows(record, _follow_path(spark, path), depth + 1, parents):
                is_branch = len(records) > 1 and row.depth == depth + 1
                yield replace(row, branch=record.name) if is_branch else row


def _find_named_types(
    schema: avro.Schema, path: tuple[str, ...] = ()
) -> Iterator[tuple[avro.NamedSchema, tuple[str, ...]]]:
    """Yield the named types of a value, each with its path in the Spark type."""
    match schema:
        case avro.Array():
            yield from _find_named_types(schema.items, (*path, "[]"))
        case avro.Map():
            yield from _find_named_types(schema.values, (*path, "{}"))
        case avro.Union():
            branches = [branch for branch in schema.branches if branch.type != "null"]
            for number, branch in enumerate(branches):
                yield from _find_named_types(branch, path if len(branches) == 1 else (*path, f"member{number}"))
        case avro.Record() | avro.Enum() | avro.Fixed():
            yield schema, path


def _follow_path(spark: SparkType | None, path: tuple[str, ...]) -> SparkType | None:
    for step in path:
        match spark:
            case SparkArray():
                spark = spark.element
            case SparkMap():
                spark = spark.value
            case Struct():
                field = _map_columns(spark).get(step)
                spark = field.type if field else None
    return spark


def _spell_avro_type(schema: avro.Schema) -> Iterator[Piece]:
    match schema:
        case avro.Array() | avro.Map():
            yield Piece(f"{schema.type}<")
            yield from _spell_avro_type(schema.items if isinstance(schema, avro.Array) else schema.values)
            yield Piece(">")
        case avro.Union():
            for number, branch in enumerate(schema.branches):
                if number:
                    yield Piece(" | ")
                yield from _spell_avro_type(branch)
        case avro.Primitive():
            yield Piece(schema.type)
        case _:
            yield Piece(schema.name, schema.full_name)


def _find_logical_type(schema: avro.Schema) -> str:
    """Return the logical type of a value, of its elements, or of its only branch that is not null."""
    if isinstance(schema, avro.Union):
        branches = [branch for branch in schema.branches if branch.type != "null"]
        return _find_logical_type(branches[0]) if len(branches) == 1 else ""
    if isinstance(schema, avro.Array):
        return _find_logical_type(schema.items)
    if isinstance(schema, avro.Map):
        return _find_logical_type(schema.values)
    name = schema.properties.get("logicalType")
    if name == "decimal":
        return f"decimal({schema.properties.get('precision')},{schema.properties.get('scale', 0)})"
    return name if isinstance(name, str) else ""


def _list_message_rows(
    message: Any, spark: SparkType | None, depth: int, parents: frozenset[str], comments: Mapping[str, str]
) -> Iterator[FieldRow]:
    kinds, definitions = protobuf.load("kinds"), protobuf.load("definition")
    columns = _map_columns(spark)
    parents |= {message.full_name}
    for number, proto_field in sorted(message.fields().items()):
        value = proto_field.value
        name = value.type_name or kinds.KIND_NAMES[value.kind]
        short = name.rpartition(".")[2]
        column = columns.get(proto_field.name)
        nested = value.message_type if value.is_message else None
        if nested is not None and definitions.is_shipped(nested.file.name):
            nested = None
        oneof_note = f"One of {proto_field.oneof}." if proto_field.oneof else ""
        yield FieldRow(
            depth,
            proto_field.name,
            (*_spell_protobuf_type(proto_field, Piece(short, value.type_name), kinds), Piece(f" = {number}")),
            doc="\n".join(filter(None, (definitions.get_doc(proto_field, comments), oneof_note))),
            holder=message.full_name,
            spark=_format_ddl(column.type)
            if column and not isinstance(_find_element_type(column.type), Struct)
            else "",
            symbols=tuple(value.enum.numbers()) if value.kind == kinds.ENUM else (),
        )
        if nested is not None and nested.full_name not in parents:
            nested_spark = _find_element_type(column.type) if column else None
            yield from _list_message_rows(nested, nested_spark, depth + 1, parents, comments)


def _spell_protobuf_type(field: Any, value: Piece, kinds: Any) -> Iterator[Piece]:
    """Yield the type of a field; `value` is the type of one value."""
    if field.cardinality == kinds.MAP:
        yield Piece(f"map<{kinds.KIND_NAMES[field.message_type.fields()[1].kind]}, ")
    elif field.is_repeated:
        yield Piece(f"{field.cardinality} ")
    yield value
    if field.cardinality == kinds.MAP:
        yield Piece(">")


def _find_element_type(spark: SparkType) -> SparkType:
    match spark:
        case SparkArray():
            return spark.element
        case SparkMap():
            return spark.value
    return spark


def _format_ddl(spark: SparkType | None) -> str:
    """Return the type in Spark's DDL, without NOT NULL, which is shown with the definition."""
    return re.sub(r" /\* NOT NULL \*/| NOT NULL", "", type_ddl(spark)) if spark else ""


@dataclass(frozen=True)
class FieldLife:
    """A field of a topic, from the first version with it on.

    Attributes:
        path: the names from the message down to it, joined by dots.
        row: its newest definition.
        first: the first version with it, also under a previous name.
        last: the last version with it, or None if it is in force.
        types: its earlier types, each with the first and the last version.
        symbols: the first version of each symbol that was added later than the field.
        former: its previous path, or "".
        later: the path that it was renamed to, or "".
        renamed: the version that gave it this name, or None.
    """

    path: str
    row: FieldRow
    first: SchemaVersion
    last: SchemaVersion | None = None
    types: tuple[tuple[str, int, int], ...] = ()
    symbols: dict[str, int] = field(default_factory=dict)
    former: str = ""
    later: str = ""
    renamed: SchemaVersion | None = None
    type_since: int = 0


def list_paths(rows: Sequence[FieldRow]) -> list[str]:
    """Return the path of each row, each different."""
    parents: list[str] = []
    paths: dict[str, None] = {}
    for row in rows:
        name = f"{row.branch}.{row.name}" if row.branch else row.name
        parents[row.depth :] = [name]
        path = ".".join(parents)
        while path in paths:
            path += "'"
        paths[path] = None
    return [*paths]


def trace_fields(
    versions: Iterable[SchemaVersion], read_rows: Callable[[SchemaInfo], Sequence[FieldRow]]
) -> tuple[dict[str, FieldLife], list[FieldLife]]:
    """Return the fields in force by path, and the removed or renamed ones, the last one to go first.

    Args:
        versions: the versions of one kind of events up to the one in force, oldest first.
        read_rows: returns the fields of a definition.
    """
    lives: dict[str, FieldLife] = {}
    ended: list[FieldLife] = []
    previous: SchemaVersion | None = None
    for version in versions:
        if version.info is None:
            continue
        rows = read_rows(version.info)
        rows_by_path = dict(zip(list_paths(rows), rows, strict=True))
        removed = {path: life for path, life in lives.items() if path not in rows_by_path}
        current: dict[str, FieldLife] = {}
        for path, row in rows_by_path.items():
            life = lives.get(path)
            if life is None:
                former = _find_former(path, row, removed)
                if former is None:
                    current[path] = FieldLife(path, row, version, type_since=version.number)
                    continue
                old_life = removed[former]
                removed[former] = replace(old_life, later=path)
                life = replace(old_life, path=path, former=former, renamed=version)
            current[path] = _continue_life(life, row, version, previous)
        if previous:
            ended += [replace(life, last=previous) for life in removed.values()]
        lives, previous = current, version
    return lives, ended[::-1]


def _continue_life(life: FieldLife, row: FieldRow, version: SchemaVersion, previous: SchemaVersion | None) -> FieldLife:
    if row == life.row:
        return life
    old_type, new_type = _format_type(life.row), _format_type(row)
    if old_type != new_type and previous:
        types = (*life.types, (old_type, life.type_since, previous.number))
        life = replace(life, types=types, type_since=version.number)
    if row.symbols != life.row.symbols:
        old_symbols = {*life.row.symbols}
        new_symbols = {symbol: version.number for symbol in row.symbols if symbol not in old_symbols}
        life = replace(life, symbols={**life.symbols, **new_symbols})
    return replace(life, row=row)


def _format_type(row: FieldRow) -> str:
    return re.sub(r" = \d+$", "", row.type_text) + (f" ({row.logical})" if row.logical else "")


def _find_former(path: str, row: FieldRow, removed: dict[str, FieldLife]) -> str | None:
    """Return the path of a removed field that an alias, or the number of a protobuf field, identifies with a new one."""
    parent = path.rpartition(".")[0]
    siblings = {old: life for old, life in removed.items() if old.rpartition(".")[0] == parent and not life.later}
    for alias in row.aliases:
        candidate = f"{parent}.{alias}" if parent else alias
        if candidate in siblings:
            return candidate
    number = row.type[-1].text if row.type else ""
    if re.fullmatch(r" = \d+", number):
        return next((old for old, life in siblings.items() if life.row.type[-1].text == number), None)
    return None
