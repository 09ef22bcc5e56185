"""Former names of a topic's columns, from the aliases of Avro fields and from protobuf field numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from schemactl.columns.struct import StructOptions
from schemactl.columns.topic_struct import is_record, protobuf_of
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats import pair_of, protobuf, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parser import parse

Path = tuple[str, ...]
"""A place in a StructType: names of fields, and `element` and `value` for the insides of arrays and maps."""


def former_names(
    reader: SchemaInfo, older: Sequence[SchemaInfo], options: StructOptions, release: Release
) -> dict[Path, tuple[str, ...]]:
    """Return the former names of every column that has some, the newest first; the name of another column of today is none.

    In Avro aliases say them, the reader's own and then those of older versions: what was called `a`, `b` and `c` in turn is
    found as `a` even if the reader has the alias `b` alone. In protobuf a field is its number.

    Args:
        reader: what the columns are made of; Spark has a type for it (`topic_struct.struct_of`).
        older: the older versions, the newest first; versions of another type say nothing.
        options: for the StructType.
        release: whose Avro reads the definitions.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    names = _Names(max(options.recursive_field_max_depth, 1), release)
    older = [each for each in older if each.type is reader.type]
    now = pair_of(reader)
    if now is None:
        at: Path = () if is_record(reader, options, release) else ("value",)
        return dict(names.of(reader, older, at))
    then = [pair.halves for each in older if (pair := pair_of(each))]
    found: dict[Path, tuple[str, ...]] = {}
    for name, half in now.halves.items():
        before = [each[name] for each in then if each[name].type is half.type]
        found |= names.of(half, before, (name,))
    return found


class _Names:
    """One search; a record inside itself is followed as deep as in the StructType."""

    def __init__(self, depth: int, release: Release) -> None:
        self._depth = depth
        self._release = release

    def of(
        self, reader: SchemaInfo, older: Sequence[SchemaInfo], at: Path
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        if spec(reader).payload in ("avro", "json"):
            now, *then = (parse(each.schema, self._release) for each in (reader, *older))
            yield from self._in_avro(now, then, at, ())
        elif protobuf_of(reader) is not None:
            natives = filter(None, map(protobuf_of, (reader, *older)))
            root, *roots = (protobuf.load("definition").parse(each.schema).root for each in natives)
            yield from self._in_message(root, roots, at, ())

    def _in_avro(
        self, reader: avro.Schema, older: Sequence[avro.Schema], at: Path, inside: tuple[str, ...]
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        branches = _branches(reader)
        if len(branches) != 1:
            for number, branch in enumerate(branches):
                then = [found[number] for each in older if len(found := _branches(each)) > max(number, 1)]
                yield from self._in_avro(branch, then, (*at, f"member{number}"), inside)
            return
        # Nullable or not, it is the same column.
        only = [found[0] for each in older if len(found := _branches(each)) == 1]
        match branches[0]:
            case avro.Array(items=items):
                then = [each.items for each in only if isinstance(each, avro.Array)]
                yield from self._in_avro(items, then, (*at, "element"), inside)
            case avro.Map(values=values):
                then = [each.values for each in only if isinstance(each, avro.Map)]
                yield from self._in_avro(values, then, (*at, "value"), inside)
            case avro.Record() as record if inside.count(record.full_name) < self._depth:
                records = [each for each in only if isinstance(each, avro.Record)]
                for field in record.fields:
                    names, fields = _followed(record, field, records)
                    place = (*at, field.name)
                    if names:
                        yield place, names
                    schemas = [each.schema for each in fields]
                    yield from self._in_avro(field.schema, schemas, place, (*inside, record.full_name))

    def _in_message(
        self, reader: Any, older: Sequence[Any], at: Path, inside: tuple[str, ...]
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """Messages and fields are those of formats.protobuf_native.descriptor."""
        if inside.count(reader.full_name) >= self._depth:
            return
        today = {field.name for field in reader.fields().values()}
        for number, field in reader.fields().items():
            then = [found for each in older if (found := each.fields().get(number))]
            place = (*at, field.name)
            names = tuple(dict.fromkeys(each.name for each in then if each.name not in today))
            if names:
                yield place, names
            yield from self._in_field(field, then, place, (*inside, reader.full_name))

    def _in_field(
        self, field: Any, then: Sequence[Any], place: Path, inside: tuple[str, ...]
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        kinds = protobuf.load("descriptor")
        then = [each for each in then if each.is_message and each.cardinality == field.cardinality]
        if not field.is_message:
            return
        messages = [each.message_type for each in (field, *then)]
        if field.cardinality == kinds.MAP:
            values = [each.fields()[2] for each in messages]
            yield from self._in_field(values[0], values[1:], (*place, "value"), inside)
            return
        if field.cardinality == kinds.REPEATED:
            place = (*place, "element")
        yield from self._in_message(messages[0], messages[1:], place, inside)


def _branches(schema: avro.Schema) -> list[avro.Schema]:
    """Return what a value may be besides null."""
    if isinstance(schema, avro.Union):
        return [branch for branch in schema.branches if branch.type != "null"]
    return [schema]


def _followed(
    record: avro.Record, field: avro.Field, older: Sequence[avro.Record]
) -> tuple[tuple[str, ...], list[avro.Field]]:
    """Return the former names of a field, and what it was in each older record that has it."""
    names, fields = [field.name, *(name for name in field.aliases if name not in record.fields_by_name)], []
    for each in older:
        then = next((each.fields_by_name[name] for name in names if name in each.fields_by_name), None)
        if then is not None:
            fields.append(then)
            before = (then.name, *then.aliases)
            names += [name for name in before if name not in names and name not in record.fields_by_name]
    return tuple(names[1:]), fields
