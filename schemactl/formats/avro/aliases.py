"""A writer's schema under its reader's names: Java's Schema.applyAliases, side effects included."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Final, TypeVar

from schemactl.core.schema import Release
from schemactl.formats.avro.defaults import DefaultCheck
from schemactl.formats.avro.equality import equal, parts
from schemactl.formats.avro.java import JavaException
from schemactl.formats.avro.recursion import Deep, gather, run
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    NO_PROPERTIES,
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Schema,
    Union,
)
from schemactl.formats.avro.schema_text import json_text, schema_text

N = TypeVar("N", Enum, Fixed, Record)

_NOT_SET: Final = (Field("", PRIMITIVES["null"]),)
"""Stands for the fields of a record that is being rebuilt, which equals no other record yet."""


def apply_aliases(*, writer: Schema, reader: Schema, release: Release) -> Schema:
    """Return `writer` with its types and fields renamed where `reader` lists their names as aliases.

    As soon as an unequal reader has any alias, Java rebuilds every record of the writer, and validates names and defaults
    that it had let pass before.

    Raises:
        JavaException: the writer has an invalid default or a `$` in a name; or two fields of a record, or two branches of a union,
            come to bear one name.
    """
    if not _has_aliases(reader) or equal(writer, reader):
        return writer
    renaming = _Renaming(release)
    run(renaming.collect(reader))
    return run(renaming.apply(writer))


def _has_aliases(schema: Schema) -> bool:
    return any(
        part.aliases or (isinstance(part, Record) and any(field.aliases for field in part.fields))
        for part in parts(schema)
        if isinstance(part, Named)
    )


class _Renaming:
    """The aliases of one reader, and the writer's records that have been rebuilt with them."""

    def __init__(self, release: Release) -> None:
        self._is_avro_1_11 = release is Release.R4_0
        self._types: dict[str, str] = {}  # alias to full name
        self._fields: dict[str, dict[str, str]] = {}  # by a record's names: alias to field
        self._collected: set[Record] = set()
        self._rebuilt: dict[Record, Record] = {}
        self._open: set[int] = set()  # by identity: rebuilt records whose fields are not known yet
        self._defaults = DefaultCheck(any_branch=not self._is_avro_1_11)

    def collect(self, reader: Schema) -> Deep[None]:
        """Take up the aliases in `reader`. Where two types claim one alias, the type visited last has it."""
        if isinstance(reader, Named):
            self._types.update(dict.fromkeys(reader.aliases, reader.full_name))
        match reader:
            case Record() if reader not in self._collected:
                self._collected.add(reader)
                for field in reader.fields:
                    if field.aliases:
                        names = self._fields.setdefault(reader.full_name, {})
                        names.update(dict.fromkeys(field.aliases, field.name))
                    yield self.collect(field.schema)
                if reader.full_name in self._fields:
                    names = self._fields[reader.full_name]
                    self._fields.update(dict.fromkeys(reader.aliases, names))
            case Union():
                for branch in reader.branches:
                    yield self.collect(branch)
            case Array():
                yield self.collect(reader.items)
            case Map():
                yield self.collect(reader.values)

    def apply(self, writer: Schema) -> Deep[Schema]:
        """Return `writer` renamed: records and unions always new, an array or map only where what it holds has changed."""
        renamed: Schema = writer
        match writer:
            case Record():
                renamed = self._rebuilt.get(writer) or (yield self._record(writer))
            case Enum() if writer.full_name in self._types:
                renamed = self._renamed(writer)
                _check_names(writer.symbols)
            case Fixed() if writer.full_name in self._types:
                renamed = self._renamed(writer)
            case Array():
                items = yield self.apply(writer.items)
                if not equal(items, writer.items):
                    renamed = Array(items, writer.properties)
            case Map():
                values = yield self.apply(writer.values)
                if not equal(values, writer.values):
                    renamed = Map(values, writer.properties)
            case Union():
                renamed = yield self._union(writer)
        return renamed

    def _union(self, writer: Union) -> Deep[Union]:
        branches = yield gather(map(self.apply, writer.branches))
        names = set()
        for branch in branches:
            if branch.full_name in names:
                raise JavaException("AvroRuntimeException", f"Duplicate in union:{branch.full_name}")
            names.add(branch.full_name)
        return Union(tuple(branches))

    def _renamed(self, named: N) -> N:
        full_name = self._types.get(named.full_name, named.full_name)
        namespace, _, name = full_name.rpartition(".")
        _check_names([name])
        renamed = copy.copy(named)
        renamed.full_name, renamed.name, renamed.namespace = full_name, name, namespace or None
        renamed.aliases = ()
        return renamed

    def _record(self, writer: Record) -> Deep[Record]:
        record = self._renamed(writer)
        record.fields, record.fields_by_name, record.properties = _NOT_SET, {}, NO_PROPERTIES
        self._rebuilt[writer] = record
        self._open.add(id(record))
        names = self._fields.get(record.full_name, {})
        fields = []
        for field in writer.fields:
            renamed = copy.copy(field)
            renamed.schema = yield self.apply(field.schema)
            renamed.name = names.get(field.name, field.name)
            renamed.aliases = ()
            fields.append(renamed)
            self._check_field(renamed)
        _check_distinct(record, fields)
        record.fields = tuple(fields)
        record.fields_by_name = {field.name: field for field in fields}
        record.properties = writer.properties
        self._open.remove(id(record))
        return record

    def _check_field(self, field: Field) -> None:
        _check_names([field.name])
        if field.default is NO_DEFAULT:
            return
        if not self._defaults.is_valid(field.schema, field.default, self._open):
            schema = schema_text(field.schema, unfinished=self._open, one_definition=self._is_avro_1_11)
            default = json_text(field.default)
            raise JavaException(
                "AvroTypeException", f"Invalid default for field {field.name}: {default} not a {schema}"
            )


def _check_names(names: Iterable[str]) -> None:
    """Avro's own rule for names. Pulsar's parser has let in only one character that breaks it."""
    for name in names:
        if "$" in name:
            what = "Illegal initial character" if name.startswith("$") else "Illegal character in"
            raise JavaException("SchemaParseException", f"{what}: {name}")


def _check_distinct(record: Record, fields: list[Field]) -> None:
    places: dict[str, str] = {}
    for position, field in enumerate(fields):
        place = f"{field.name} type:{field.schema.type.upper()} pos:{position}"
        if field.name in places:
            raise JavaException(
                "AvroRuntimeException",
                f"Duplicate field {field.name} in record {record.full_name}: {place} and {places[field.name]}.",
            )
        places[field.name] = place
