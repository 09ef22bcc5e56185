"""Describe the effects of a changed schema on the Parquet folders, Delta and Iceberg tables that its topic feeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import islice
from typing import Final, Literal

from schemactl.checks.proposal import Proposal, Run
from schemactl.codegen import spark_types as spark
from schemactl.codegen.spark_types import (
    Atomic,
    Decimal,
    SparkArray,
    SparkField,
    SparkMap,
    SparkType,
    Struct,
    UnsupportedBySpark,
)
from schemactl.codegen.topic_struct import Path, StructOptions, former_names, is_record, struct_of
from schemactl.core.catalog import Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Finding
from schemactl.core.project import Generate
from schemactl.core.schema import Release, SchemaInfo, live
from schemactl.formats import pair_of, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parser import parse


def impact_of(run: Run, proposal: Proposal, before: Topic) -> Impact | None:
    """Return what happens to tables whose rows were read as `before` says; None: the project generates no columns to read with."""
    generate = run.project.generate
    now, then = _reader(proposal, proposal.topic), _reader(proposal, before)
    if generate is None or now is None or then is None:
        return None

    older = [version.info for version in reversed(proposal.versions) if version.info]
    return impact(then, now, older=older, generate=generate, release=run.project.release)


def _reader(proposal: Proposal, topic: Topic) -> SchemaInfo | None:
    """Return what the generated package reads messages as; None: the version that is pinned does not exist."""
    if topic.reader == "latest":
        return topic.schema
    if topic is proposal.topic and topic.reader == proposal.number:
        return proposal.schema
    return next((each.info for each in proposal.versions if each.number == topic.reader), None)


def findings(run: Run, proposal: Proposal, found: Impact | None) -> Iterator[Finding]:
    """Yield a finding for each column that tables must be rewritten for, then one for all other effects."""
    if found is None:
        return

    if not found.changes and not found.refusal:
        return
    topic = proposal.topic
    places = Pointers(proposal.schema, run.project.release) if found.changes else None
    rewrites = [change for change in found.changes if change.effect == "rewrite"]
    for number, change in enumerate(rewrites[:MAX_SHOWN]):
        at = places.of(change.path) if places else ""
        more = len(rewrites) - MAX_SHOWN if number == MAX_SHOWN - 1 else 0
        and_more = f" The same for {more:,} more columns." if more > 0 else ""
        yield from run.find(
            "TABLE_REWRITE",
            topic,
            f"Tables fed by {topic.name}: {sentence(change)}{and_more}",
            source=proposal.schema.locate(at),
            field=change.column,
            pointer=at,
            fingerprint=proposal.fingerprint("TABLE_REWRITE", f"{at}#{change.column}", against=_latest(proposal)),
        )
    changes = [change for change in found.changes if change.effect != "rewrite"]
    if changes or found.refusal:
        lines = [sentence(change) for change in changes[:MAX_SHOWN]] or [
            f"Spark has no columns for it any more: {found.refusal}."
        ]
        if len(changes) > MAX_SHOWN:
            lines.append(f"The same for {len(changes) - MAX_SHOWN:,} more columns: {summary(changes)}.")
        at = places.of(changes[0].path) if places and changes else ""
        yield from run.find(
            "TABLE_CHANGED",
            topic,
            effects_on(str(topic.name), lines),
            source=proposal.schema.locate(at),
            fix=advice(changes),
            fingerprint=proposal.fingerprint("TABLE_CHANGED", "", against=_latest(proposal)),
        )


def _latest(proposal: Proposal) -> list[int]:
    return [version.number for version in live(proposal.versions)[-1:]]


# The comparison of two StructTypes: what a table of the first needs before it can take rows of the
# second.


Effect = Literal["rewrite", "type widened", "renamed column", "added column", "column no longer written", "may be null"]

_OF_TYPES: Final[tuple[Effect, ...]] = ("rewrite", "type widened")
"""What happens to a column for its type, the graver first."""

_SHOWN: Final = 60
"""Of a type's text."""

_WHOLE: Final[dict[str, int]] = {"byte": 1, "short": 2, "integer": 3, "long": 4}
"""The whole numbers, each wider than those before."""

_DIGITS: Final[dict[str, int]] = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""How many digits before the point a decimal must have to take them; a byte lies in a file as an integer does."""

_OTHERS: Final = frozenset(
    {
        *((Atomic(name), spark.DOUBLE) for name in ("byte", "short", "integer", "float")),
        (spark.DATE, spark.TIMESTAMP_NTZ),
    }
)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What becomes of one column.

    Attributes:
        path: of the column as it is now, or was last if it is gone; see `Path`.
        before: its type, as SQL has it; "" for an added one. `after`: "" for one that is gone.
        former: the path that it had, if that was another.
        successor: of a column whose name another one had in older rows, the path of that other.
    """

    effect: Effect
    path: Path
    before: str
    after: str
    former: Path = ()
    successor: Path = ()

    @property
    def column(self) -> str:
        """The path for people: `address.zip`, `items.element.sku`."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Past:
    """What tables have besides the rows of the old columns.

    Attributes:
        structs: of older rows, the newest first.
        former_names: of the old columns.
    """

    structs: Sequence[Struct]
    former_names: Mapping[Path, Sequence[str]]


_NOTHING: Final = Past((), {})


def changes(
    old: Struct, new: Struct, former_names: Mapping[Path, Sequence[str]], past: Callable[[], Past] = lambda: _NOTHING
) -> tuple[ColumnChange, ...]:
    """Return what is different, in the order of the new columns, those that are gone last; () if tables stay as they are.

    Columns are found by their names as Spark finds them, without regard to case; their order does not count.

    Args:
        old: of the rows that tables have.
        new: of the rows that they get.
        former_names: of the new columns.
        past: asked for where a column comes that the old ones lack.
    """
    return tuple(_StructComparison(former_names, past).structs((), (), old, new))


class _StructComparison:
    def __init__(self, former_names: Mapping[Path, Sequence[str]], past: Callable[[], Past] = lambda: _NOTHING) -> None:
        self._former_names = former_names
        self._past = cache(past)
        # Asked for once a struct, which may have thousands of columns.
        self._older_types = cache(self._older_types_at)

    def structs(self, was: Path, at: Path, old: Struct, new: Struct) -> Iterator[ColumnChange]:
        """Yield what is different between the struct at `was` and what it has become, at `at`."""
        fold = _fold(old, new)
        left = {fold(field.name): field for field in old.fields}
        pairs = [(field, left.pop(fold(field.name), None)) for field in new.fields]
        for field, same in pairs:
            path = (*at, field.name)
            before = same or self._renamed(map(fold, self._former_names.get(path, ())), left)
            if before is None:
                yield from self._added(was, path, field)
                continue
            former = (*was, before.name)
            if same is None:
                yield ColumnChange("renamed column", path, sql(before.type), sql(field.type), former)
            yield from self.types(former, path, before.type, field.type)
            if field.nullable and not before.nullable:
                yield ColumnChange("may be null", path, sql(before.type), sql(field.type))
        for field in left.values():
            yield ColumnChange("column no longer written", (*was, field.name), sql(field.type), "")

    def _added(self, was: Path, path: Path, field: SparkField) -> Iterator[ColumnChange]:
        """Yield a column that the struct at `was` lacks. Rows that are older yet may have one under that name."""
        name = field.name.casefold()
        successor = self._successors.get((was, name))
        if successor is not None:
            yield ColumnChange("rewrite", path, "", sql(field.type), successor=successor)
            return
        found: list[ColumnChange] = []
        for types in self._older_types(was):
            if name in types:
                found += _StructComparison({}).types(path, path, types[name], field.type)
        worst = next((effect for effect in _OF_TYPES if any(each.effect == effect for each in found)), None)
        if worst is None:
            yield ColumnChange("added column", path, "", sql(field.type))
        yield from dict.fromkeys(each for each in found if each.effect == worst)

    @cached_property
    def _successors(self) -> dict[tuple[Path, str], Path]:
        """By the struct and the name that a column had there before, where it is now."""
        names = self._past().former_names
        return {(path[:-1], name.casefold()): path for path in names for name in names[path]}

    def _older_types_at(self, was: Path) -> list[dict[str, SparkType]]:
        """Return the columns that older rows have in the struct there."""
        structs = [_type_inside(struct, was) for struct in self._past().structs]
        return [
            {field.name.casefold(): field.type for field in struct.fields}
            for struct in structs
            if isinstance(struct, Struct)
        ]

    def _renamed(self, names: Iterable[str], left: dict[str, SparkField]) -> SparkField | None:
        """Return the column that is called otherwise now, taken from those that are left."""
        return next((left.pop(name) for name in names if name in left), None)

    def types(self, was: Path, at: Path, old: SparkType, new: SparkType) -> Iterator[ColumnChange]:
        """Yield what is different between the type of the column at `was` and that of what it has become, at `at`."""
        match old, new:
            case Struct(), Struct():
                yield from self.structs(was, at, old, new)
            case SparkArray(), SparkArray():
                yield from self._insides(was, at, "element", old.element, new.element)
                if new.contains_null and not old.contains_null:
                    yield ColumnChange("may be null", (*at, "element"), sql(old.element), sql(new.element))
            case SparkMap(), SparkMap():
                yield from self._insides(was, at, "key", old.key, new.key)
                yield from self._insides(was, at, "value", old.value, new.value)
                if new.value_contains_null and not old.value_contains_null:
                    yield ColumnChange("may be null", (*at, "value"), sql(old.value), sql(new.value))
            case _ if old != new:
                effect: Effect = "type widened" if widens(old, new) else "rewrite"
                yield ColumnChange(effect, at, sql(old), sql(new))

    def _insides(self, was: Path, at: Path, name: str, old: SparkType, new: SparkType) -> Iterator[ColumnChange]:
        yield from self.types((*was, name), (*at, name), old, new)


def _type_inside(spark_type: SparkType | None, path: Path) -> SparkType | None:
    """Return the type of the column there; None: there is none."""
    for name in path:
        match spark_type:
            case Struct(fields):
                fold = name.casefold()
                spark_type = next((each.type for each in fields if each.name.casefold() == fold), None)
            case SparkArray(element) if name == "element":
                spark_type = element
            case SparkMap(value, key=key) if name in ("key", "value"):
                spark_type = key if name == "key" else value
            case _:
                return None
    return spark_type


def _fold(*structs: Struct) -> Callable[[str], str]:
    """Return what makes the same of names that are the same: case counts only where names of a struct differ in nothing else."""
    names = [[field.name.casefold() for field in struct.fields] for struct in structs]
    return str.casefold if all(len(set(each)) == len(each) for each in names) else str


def sql(spark_type: SparkType) -> str:
    """Return the type as SQL has it; of a long one the beginning."""
    # No more pieces than can be shown: a struct may hold thousands, each of them as many.
    text = "".join(islice(_sql(spark_type), _SHOWN + 1))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _sql(spark_type: SparkType) -> Iterator[str]:
    """Yield the pieces of the text."""
    match spark_type:
        case Atomic(name):
            yield spark.SQL_NAMES.get(name, name)
        case Decimal(precision, scale):
            yield f"decimal({precision},{scale})"
        case SparkArray(element):
            yield "array<"
            yield from _sql(element)
            yield ">"
        case SparkMap(value, key=key):
            yield "map<"
            yield from _sql(key)
            yield ","
            yield from _sql(value)
            yield ">"
        case Struct(fields):
            yield "struct<"
            for number, field in enumerate(fields):
                yield f"{',' if number else ''}{field.name}:"
                yield from _sql(field.type)
            yield ">"


def widens(old: SparkType, new: SparkType) -> bool:
    """Return whether `new` holds every value of `old`, and a file with `old` is read as `new`.

    Spark's Parquet reader and Delta's type widening agree on these (ParquetVectorUpdaterFactory; delta.enableTypeWidening). The rest is
    refused by both, or its bits are taken for something else, with two exceptions that only the Parquet reader knows: text and
    bytes, and timestamps with and without zone.
    """
    match old, new:
        case Decimal(), Decimal():
            return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        case Atomic(), Decimal():
            return old.name in _DIGITS and new.precision - new.scale >= _DIGITS[old.name]
        case Atomic(), Atomic() if old.name in _WHOLE and new.name in _WHOLE:
            return _WHOLE[old.name] < _WHOLE[new.name]
        case _:
            return (old, new) in _OTHERS


# Sentences


_READ_AS = frozenset(frozenset(pair) for pair in (("string", "binary"), ("timestamp", "timestamp_ntz")))
"""What Spark reads from Parquet files of the other type, value by value, and no Delta table widens to."""

MAX_SHOWN = 100
"""As many columns of one topic are listed; the others are counted."""

ADVICE: dict[Effect, str] = {
    "rewrite": "",
    "type widened": "set delta.enableTypeWidening on a Delta table and write with mergeSchema",
    "renamed column": "RENAME COLUMN in a Delta table with column mapping before new rows come",
    "added column": "write to Delta with mergeSchema (or ALTER TABLE ... ADD COLUMNS before)",
    "column no longer written": "DROP NOT NULL in a Delta table that demands the column",
    "may be null": "DROP NOT NULL in a Delta table that demands the column",
}
"""Every effect, those that ask most of a table's owner first, and what is to be done about it; of a rewrite its line says all."""

_LANDED = "`schemactl spark land` changes its own tables with --evolve, or prints the statement that you need"
"""What Spark has for a Delta table would keep delta-rs from writing to it."""

_PARQUET = "Read folders of Parquet through the generated view, or with the StructType, not with mergeSchema"


def summary(changes: Sequence[ColumnChange]) -> str:
    """Return what happens in a few words, the worst first."""
    return ", ".join(effects(changes)) or "nothing"


def effects(changes: Sequence[ColumnChange]) -> tuple[Effect, ...]:
    """Return what happens, each once, the worst first."""
    there = {change.effect for change in changes}
    return tuple(effect for effect in ADVICE if effect in there)


def effects_on(topic: str, lines: Sequence[str]) -> str:
    """Return what happens to the tables that a topic feeds, in lines."""
    return "\n".join([f"Tables fed by {topic}:", *lines])


def sentence(change: ColumnChange) -> str:
    """Return what becomes of one column, in a line."""
    column = change.column
    match change.effect:
        case "added column":
            return f"{column} {change.after}: added column, null in the rows that are there."
        case "column no longer written":
            return f"{column} {change.before}: column no longer written, null in new rows."
        case "renamed column":
            former = ".".join(change.former)
            return f"{column} {change.after}: renamed column, was {former}, where the rows that are there have it."
        case "type widened":
            return f"{column}: type widened from {change.before} to {change.after}; Spark reads old files with the new type."
        case "may be null":
            return f"{column} {change.after}: may be null from now on."
        case "rewrite" if change.successor:
            other = ".".join(change.successor)
            return (
                f"{column} was the name of what is {other} now. Rewrite these tables: older rows show the values of "
                f"{other} under it. Or give the new field a name that no field had before."
            )
        case "rewrite":
            turned = f"{column} goes from {change.before} to {change.after}"
            if frozenset((change.before, change.after)) in _READ_AS:
                return f"{turned}. Rewrite a Delta table; old Parquet files are read with the new type where the StructType is given."
            return f"{turned}. Rewrite these tables: Spark fails on the old files or reads wrong values."


def advice(changes: Sequence[ColumnChange]) -> str:
    """Return what the owner of a table is to do about the changes."""
    asked = dict.fromkeys(ADVICE[effect] for effect in effects(changes) if ADVICE[effect])
    return f"{_PARQUET}; {'; '.join(asked)}. {_LANDED}." if asked else ""


# Effects by table format


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
    old: SchemaInfo, new: SchemaInfo, *, older: Sequence[SchemaInfo] = (), generate: Generate, release: Release
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
            inner = _change_inside(schema, name, self._number) if schema else None
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


def _change_inside(
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
