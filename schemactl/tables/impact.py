"""The effect of a changed schema on the tables that its topic feeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from schemactl.codegen.spark_types import UnsupportedBySpark
from schemactl.codegen.topic_struct import Path, StructOptions, former_names, is_record, struct_of
from schemactl.core.errors import InvalidSchema
from schemactl.core.project import Generate
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats import pair_of, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parser import parse
from schemactl.tables.changes import ColumnChange, Past, changes
from schemactl.tables.messages import summary


@dataclass(frozen=True, slots=True)
class Impact:
    """What rows read with the new schema are to tables with rows read with the old one.

    Attributes:
        changes: of columns; () if nothing happens to the tables.
        refusal: why Spark has no columns for the new schema; "" if it has.
    """

    changes: tuple[ColumnChange, ...] = ()
    refusal: str = ""

    @property
    def summary(self) -> str:
        """What happens in a few words, the worst first."""
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
    """Return the impact of reading with `new` what was read with `old`; None where there are no columns to compare.

    Columns are those of the generated StructType. There are none for a type without codec, or where Spark has no type
    for the old schema.

    Args:
        old: what messages were read as.
        new: what they are read as now.
        older: further versions, the newest first: tables have rows of theirs, and they may know what a column was called.
        generate: for which Spark.
        release: whose Avro reads the definitions.
    """
    options = StructOptions(generate.spark, as_decoded=True)
    try:
        before = struct_of(old, options, release)
        if before is None:
            return None
        try:
            after = struct_of(new, options, release)
        except UnsupportedBySpark as error:
            return Impact(refusal=error.what)
        if after is None:
            return None
        names = former_names(new, [old, *older], options, release)
        return Impact(changes(before, after, names, partial(_past, old, older, options, release)))
    except (InvalidSchema, UnsupportedBySpark, RecursionError):
        # Nests deeper than any table.
        return None


def _past(old: SchemaInfo, older: Sequence[SchemaInfo], options: StructOptions, release: Release) -> Past:
    structs = []
    for each in older:
        with suppress(InvalidSchema, UnsupportedBySpark, RecursionError):
            found = struct_of(each, options, release)
            structs += [found] if found is not None else []
    return Past(structs, former_names(old, older, options, release))


class Pointers:
    """Where the columns of a definition stand in it. It is read once, however many of its columns are looked for."""

    def __init__(self, info: SchemaInfo, release: Release) -> None:
        """Read the definition; raise InvalidSchema and UnsupportedBySpark as `struct_of` does."""
        self._parts: dict[str, avro.Schema | None] = {}
        if both := pair_of(info):
            self._parts = {"key": _schema(both.key, release), "value": _schema(both.value, release)}
        self._is_record = self._parts == {} and is_record(info, StructOptions(), release)
        self._schema = None if self._parts else _schema(info, release)
        # By the identity of a record: of its fields the number by the name.
        self._numbers: dict[int, dict[str, int]] = {}

    def of(self, path: Path) -> str:
        """Return the JSON pointer to the place of a column, or to the last place on the way there that the definition has.

        Avro's definitions alone have such places: in others it is the whole.
        """
        if self._parts:
            return f"/{path[0]}{self._from(self._parts[path[0]], path[1:])}"
        return self._from(self._schema, path if self._is_record else path[1:])

    def _from(self, schema: avro.Schema | None, path: Path) -> str:
        found: list[str] = []
        for name in path:
            inner = _inside(schema, name, self._number) if schema else None
            if inner is None:
                break
            found.append(inner[0])
            schema = inner[1]
        return "".join(found).removesuffix("/type")

    def _number(self, record: avro.Record, name: str) -> int:
        if id(record) not in self._numbers:
            self._numbers[id(record)] = {field.name: number for number, field in enumerate(record.fields)}
        return self._numbers[id(record)][name]


def _schema(info: SchemaInfo, release: Release) -> avro.Schema | None:
    return parse(info.schema, release) if spec(info).payload in ("avro", "json") else None


def _inside(
    schema: avro.Schema, name: str, number_of: Callable[[avro.Record, str], int]
) -> tuple[str, avro.Schema] | None:
    """Return the pointer from a schema to what is called `name` in its StructType, and the schema there; None: there is none."""
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
            number = number_of(schema, name)
            return f"{token}/fields/{number}/type", schema.fields[number].schema
        case avro.Array():
            return f"{token}/items", schema.items
        case avro.Map():
            return f"{token}/values", schema.values
    return None
