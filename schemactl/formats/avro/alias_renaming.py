"""Rename the writer's types and fields by the reader's aliases as Java's Schema.applyAliases does, side effects included."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Final, TypeVar

from schemactl.core.schema import Release
from schemactl.formats.avro.defaults import DefaultCheck
from schemactl.formats.avro.json_text import json_text, schema_text
from schemactl.formats.avro.schema import (
    NO_DEFAULT,
    NO_PROPERTIES,
    PRIMITIVES,
    Array,
    Field,
    Fixed,
    JavaException,
    Map,
    Named,
    Record,
    Schema,
    Union,
    equal,
    has_aliases,
    run_recursion,
)
from schemactl.formats.avro.schema import Enum as EnumSchema

N = TypeVar("N", EnumSchema, Fixed, Record)

_FIELDS_NOT_SET: Final = (Field("", PRIMITIVES["null"]),)
"""The fields of an unfinished record, which equals no other record yet."""


def apply_aliases(*, writer: Schema, reader: Schema, release: Release) -> Schema:
    """Return `writer` with its types and fields renamed where `reader` lists their names as aliases.

    If an unequal reader has any alias, Java rebuilds every record of the writer, and validates names and defaults that its
    parser accepted.

    Raises:
        JavaException: if the writer has an invalid default or a `$` in a name; or if two fields of a record, or two branches of a
            union, get the same name.
    """
    if not has_aliases(reader) or equal(writer, reader):
        return writer

    def rename() -> Schema:
        renaming = _Renaming(release)
        renaming.collect_aliases(reader)
        return renaming.rename(writer)

    return run_recursion(rename)


class _Renaming:
    """The aliases of one reader, and the writer's records that have been rebuilt with them."""

    def __init__(self, release: Release) -> None:
        self._is_avro_1_11 = release is Release.R4_0
        self._type_names: dict[str, str] = {}  # alias to full name
        self._field_names: dict[str, dict[str, str]] = {}  # by a record's names: alias to field
        self._collected_records: set[Record] = set()
        self._rebuilt_records: dict[Record, Record] = {}
        self._unfinished_ids: set[int] = set()  # of rebuilt records whose fields are not set yet
        self._defaults = DefaultCheck(any_branch=not self._is_avro_1_11)

    def collect_aliases(self, reader: Schema) -> None:
        """Collect the aliases in `reader`. If two types have the same alias, it belongs to the type visited last."""
        if isinstance(reader, Named):
            self._type_names.update(dict.fromkeys(reader.aliases, reader.full_name))
        match reader:
            case Record() if reader not in self._collected_records:
                self._collected_records.add(reader)
                for field in reader.fields:
                    if field.aliases:
                        names = self._field_names.setdefault(reader.full_name, {})
                        names.update(dict.fromkeys(field.aliases, field.name))
                    self.collect_aliases(field.schema)
                if reader.full_name in self._field_names:
                    names = self._field_names[reader.full_name]
                    self._field_names.update(dict.fromkeys(reader.aliases, names))
            case Union():
                for branch in reader.branches:
                    self.collect_aliases(branch)
            case Array():
                self.collect_aliases(reader.items)
            case Map():
                self.collect_aliases(reader.values)

    def rename(self, writer: Schema) -> Schema:
        """Return `writer` renamed: records and unions are always new, arrays and maps only if their content changed."""
        renamed: Schema = writer
        match writer:
            case Record():
                renamed = self._rebuilt_records.get(writer) or self._rebuild_record(writer)
            case EnumSchema() if writer.full_name in self._type_names:
                renamed = self._rename_type(writer)
                _check_names(writer.symbols)
            case Fixed() if writer.full_name in self._type_names:
                renamed = self._rename_type(writer)
            case Array():
                items = self.rename(writer.items)
                if not equal(items, writer.items):
                    renamed = Array(items, writer.properties)
            case Map():
                values = self.rename(writer.values)
                if not equal(values, writer.values):
                    renamed = Map(values, writer.properties)
            case Union():
                branches = [self.rename(branch) for branch in writer.branches]
                names = set()
                for branch in branches:
                    if branch.full_name in names:
                        raise JavaException("AvroRuntimeException", f"Duplicate in union:{branch.full_name}")
                    names.add(branch.full_name)
                renamed = Union(tuple(branches))
        return renamed

    def _rename_type(self, named: N) -> N:
        full_name = self._type_names.get(named.full_name, named.full_name)
        namespace, _, name = full_name.rpartition(".")
        _check_names([name])
        renamed = copy.copy(named)
        renamed.full_name, renamed.name, renamed.namespace = full_name, name, namespace or None
        renamed.aliases = ()
        return renamed

    def _rebuild_record(self, writer: Record) -> Record:
        record = self._rename_type(writer)
        record.fields, record.fields_by_name, record.properties = _FIELDS_NOT_SET, {}, NO_PROPERTIES
        self._rebuilt_records[writer] = record
        self._unfinished_ids.add(id(record))
        names = self._field_names.get(record.full_name, {})
        fields = []
        for field in writer.fields:
            renamed = copy.copy(field)
            renamed.schema = self.rename(field.schema)
            renamed.name = names.get(field.name, field.name)
            renamed.aliases = ()
            fields.append(renamed)
            _check_names([renamed.name])
            if renamed.default is not NO_DEFAULT and not self._defaults.is_valid(
                renamed.schema, renamed.default, self._unfinished_ids
            ):
                schema = schema_text(renamed.schema, unfinished=self._unfinished_ids, one_definition=self._is_avro_1_11)
                message = f"Invalid default for field {renamed.name}: {json_text(renamed.default)} not a {schema}"
                raise JavaException("AvroTypeException", message)
        descriptions: dict[str, str] = {}
        for position, field in enumerate(fields):
            description = f"{field.name} type:{field.schema.type.upper()} pos:{position}"
            if field.name in descriptions:
                raise JavaException(
                    "AvroRuntimeException",
                    f"Duplicate field {field.name} in record {record.full_name}: {description} and {descriptions[field.name]}.",
                )
            descriptions[field.name] = description
        record.fields = tuple(fields)
        record.fields_by_name = {field.name: field for field in fields}
        record.properties = writer.properties
        self._unfinished_ids.remove(id(record))
        return record


def _check_names(names: Iterable[str]) -> None:
    """Check Avro's own rule for names. Pulsar's parser accepts only one character that breaks it."""
    for name in names:
        if "$" in name:
            problem = "Illegal initial character" if name.startswith("$") else "Illegal character in"
            raise JavaException("SchemaParseException", f"{problem}: {name}")
