"""What a changed schema does to the tables that its topic feeds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from schemactl.codegen.former_names import Path, former_names
from schemactl.codegen.spark_type import SparkRefuses
from schemactl.codegen.struct import Options
from schemactl.codegen.topic_struct import is_record, struct_of
from schemactl.errors import InvalidSchema
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parse import parse
from schemactl.formats.key_value import split
from schemactl.model import AVRO_PAYLOADS, Generate, Release, SchemaInfo, SchemaType
from schemactl.tables.changes import Change, Past, changes
from schemactl.tables.words import summary


@dataclass(frozen=True, slots=True)
class Impact:
    """What rows read with the new schema are to tables with rows read with the old one.

    Attributes:
        changes: of columns; () if nothing happens to the tables.
        refusal: why Spark has no columns for the new schema; "" if it has.
    """

    changes: tuple[Change, ...] = ()
    refusal: str = ""

    @property
    def summary(self) -> str:
        """What happens in a few words, the gravest first."""
        if self.refusal:
            return "no columns any more"
        return summary(self.changes)


def impact(
    old: SchemaInfo,
    new: SchemaInfo,
    *,
    older: Sequence[SchemaInfo] = (),
    generate: Generate,
    release: Release,
) -> Impact | None:
    """The impact of reading with `new` what was read with `old`; None where there are no columns to compare.

    Columns are those of the generated StructType. There are none for a type without codec, or where Spark has no type
    for the old schema.

    Args:
        old: what messages were read as.
        new: what they are read as now.
        older: further versions, the newest first: tables have rows of theirs, and they may know what a column was called.
        generate: for which Spark.
        release: whose Avro reads the definitions.
    """
    options = Options(generate.spark, as_decoded=True)
    try:
        before = struct_of(old, options, release)
        if before is None:
            return None
        try:
            after = struct_of(new, options, release)
        except SparkRefuses as error:
            return Impact(refusal=error.what)
        if after is None:
            return None
        names = former_names(new, [old, *older], options, release)
        return Impact(changes(before, after, names, partial(_past, old, older, options, release)))
    except (InvalidSchema, SparkRefuses, RecursionError):
        # Nests deeper than any table.
        return None


def _past(old: SchemaInfo, older: Sequence[SchemaInfo], options: Options, release: Release) -> Past:
    structs = []
    for each in older:
        with suppress(InvalidSchema, SparkRefuses, RecursionError):
            found = struct_of(each, options, release)
            structs += [found] if found is not None else []
    return Past(structs, former_names(old, older, options, release))


def pointer(info: SchemaInfo, path: Path, release: Release) -> str:
    """The JSON pointer into a definition to the place of a column, or to the last place on the way there that it has.

    Avro's definitions alone have such places: in others it is the whole.
    """
    if info.type is SchemaType.KEY_VALUE:
        half = split(info).key if path[0] == "key" else split(info).value
        return f"/{path[0]}{_pointer(half, path[1:], release)}"
    return _pointer(info, path if is_record(info, Options(), release) else path[1:], release)


def _pointer(info: SchemaInfo, path: Path, release: Release) -> str:
    if info.type not in AVRO_PAYLOADS:
        return ""
    schema, found = parse(info.schema, release), ""
    for name in path:
        inner = _inside(schema, name)
        if inner is None:
            break
        found += inner[0]
        schema = inner[1]
    return found.removesuffix("/type")


def _inside(schema: avro.Schema, name: str) -> tuple[str, avro.Schema] | None:
    """The pointer from a schema to what is called `name` in its StructType, and the schema there; None: there is none."""
    token = ""
    if isinstance(schema, avro.Union):
        branches = [each for each in enumerate(schema.branches) if each[1].type != "null"]
        if len(branches) > 1:
            members = {f"member{place}": each for place, each in enumerate(branches)}
            return (f"/{members[name][0]}", members[name][1]) if name in members else None
        if not branches:
            return None
        token, schema = f"/{branches[0][0]}", branches[0][1]
    match schema:
        case avro.Record() if name in schema.fields_by_name:
            number = [field.name for field in schema.fields].index(name)
            return f"{token}/fields/{number}/type", schema.fields[number].schema
        case avro.Array():
            return f"{token}/items", schema.items
        case avro.Map():
            return f"{token}/values", schema.values
    return None
