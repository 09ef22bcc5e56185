"""Find the effects of a changed schema on the Parquet folders, Delta and Iceberg tables that its topic feeds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from shlex import quote
from typing import Final, Literal

from schemactl.checks.proposal import Comparison, Proposal
from schemactl.codec.sql_columns import is_widening, quote_sql_name
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
from schemactl.codegen.topic_struct import Path, StructOptions, decoded_options, former_names, is_record, struct_of
from schemactl.core.catalog import Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Finding
from schemactl.core.project import Generate
from schemactl.core.schema import Release, SchemaInfo, get_live_versions
from schemactl.formats import get_pair, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parser import parse
from schemactl.formats.digest import is_known_plain

MAX_SHOWN = 100
"""Maximum number of listed columns of one topic; the others are counted."""

Effect = Literal["rewrite", "type widened", "renamed column", "added column", "column no longer written", "may be null"]

ADVICE: dict[Effect, str] = {
    "rewrite": "",
    "type widened": "set delta.enableTypeWidening on a Delta table that Spark writes, and write with mergeSchema",
    "renamed column": "RENAME COLUMN in a Delta table with column mapping that Spark writes, before new rows come",
    "added column": "write to Delta with mergeSchema (or ALTER TABLE ... ADD COLUMNS before)",
    "column no longer written": "DROP NOT NULL in a Delta table that demands the column",
    "may be null": "DROP NOT NULL in a Delta table that demands the column",
}
"""The advice for each effect, the effect with most work for the table's owner first; the line of a rewrite has its own."""

_TYPE_EFFECTS: Final[tuple[Effect, ...]] = ("rewrite", "type widened")
"""The effects of a changed type, the worse first."""

_MAX_TYPE_LENGTH: Final = 60
"""Maximum length of a type's text, in characters."""

_MAX_NAMED_COLUMNS: Final = 5
"""Maximum number of columns that are named in a sentence."""

_READABLE_PAIRS = frozenset(frozenset(pair) for pair in (("string", "binary"), ("timestamp", "timestamp_ntz")))
"""Pairs of types that Spark converts when it reads Parquet files, but that a Delta table cannot widen."""

_LANDING_ADVICE = "`schemactl spark land` changes its own tables with --evolve, or prints the statement that you need"
"""Advice to use schemactl, because the Delta features that Spark enables can keep delta-rs from writing to the table."""

_STOPPING_EFFECTS: Final = frozenset(("renamed column", "type widened"))
"""The effects after which nothing can be landed in an existing Delta table, because delta-rs only adds columns."""

_PARQUET_ADVICE = "Read folders of Parquet through the generated view, or with the StructType, not with mergeSchema"


@dataclass(frozen=True, slots=True)
class Impact:
    """The effects on tables with rows of the old schema when rows of the new schema arrive.

    Attributes:
        changes: the changed columns; empty if tables stay the same.
        refusal: the reason why Spark has no columns for the new schema, or empty.
    """

    changes: tuple[ColumnChange, ...] = ()
    refusal: str = ""

    @property
    def summary(self) -> str:
        """The effects in a few words, the worst first."""
        if self.refusal:
            return "no columns any more"
        return summarize_changes(self.changes)


def compare_tables(comparison: Comparison, proposal: Proposal, approved_topic: Topic) -> Impact | None:
    """Return the effects on tables with rows of the approved topic, or None if the project does not generate columns."""
    generate = comparison.project.generate
    new_schema = _find_reader_schema(proposal, proposal.topic)
    old_schema = _find_reader_schema(proposal, approved_topic)
    if generate is None or new_schema is None or old_schema is None:
        return None
    older_schemas = [version.info for version in reversed(proposal.versions) if version.info]
    return compute_impact(
        old_schema,
        new_schema,
        older=older_schemas,
        generate=generate.with_recursion_depth(proposal.topic.recursion_depth),
        release=comparison.project.release,
    )


def _find_reader_schema(proposal: Proposal, topic: Topic) -> SchemaInfo | None:
    """Return the schema with which the generated package reads messages, or None if the pinned version does not exist."""
    if topic.reader == "latest":
        return topic.schema
    if topic is proposal.topic and topic.reader == proposal.number:
        return proposal.schema
    return next((version.info for version in proposal.versions if version.number == topic.reader), None)


def compute_impact(
    old: SchemaInfo, new: SchemaInfo, *, older: Sequence[SchemaInfo] = (), generate: Generate, release: Release
) -> Impact | None:
    """Return the effects on tables of reading with `new` instead of `old`, or None if there are no columns to compare.

    The columns come from the generated StructType. A type without a codec has no columns, and neither does an old schema
    without a Spark type.

    Args:
        old: the schema with which messages were read.
        new: the schema with which messages are read now.
        older: earlier versions, the newest first; tables may have rows of them, and they may have old names of columns.
        generate: the settings of the generated package, which select the Spark release.
        release: the Pulsar release whose Avro parses the definitions.
    """
    options = decoded_options(generate)
    try:
        old_struct = struct_of(old, options, release)
        if old_struct is None:
            return None
        try:
            new_struct = struct_of(new, options, release)
        except UnsupportedBySpark as error:
            return Impact(refusal=error.message)
        if new_struct is None:
            return None
        names = former_names(new, [old, *older], options, release)
        history = _TableHistory(old, older, options, release)
        return Impact(find_column_changes(old_struct, new_struct, names, history))
    except (InvalidSchema, UnsupportedBySpark, RecursionError):
        # The schema nests deeper than any table.
        return None


def check_tables(comparison: Comparison, proposal: Proposal, impact: Impact | None) -> Iterator[Finding]:
    """Yield a finding for each column for which tables must be rewritten, then one for all other effects."""
    if impact is None or not (impact.changes or impact.refusal):
        return
    topic = proposal.topic
    pointers = Pointers(proposal.schema, comparison.project.release, StructOptions()) if impact.changes else None
    rewrites = [change for change in impact.changes if change.effect == "rewrite"]
    for index, change in enumerate(rewrites[:MAX_SHOWN]):
        pointer = pointers.find(change.path) if pointers else ""
        remaining_count = len(rewrites) - MAX_SHOWN if index == MAX_SHOWN - 1 else 0
        remark = f" The same for {remaining_count:,} more columns." if remaining_count > 0 else ""
        landing_stop = "Landing into a Delta or Iceberg table stops until then."
        yield from comparison.make_finding(
            "TABLE_REWRITE",
            topic,
            f"Tables fed by {topic.name}: {describe_change(change)} {landing_stop}{remark}",
            source=proposal.schema.locate(pointer),
            field=change.column,
            pointer=pointer,
            landing_stop=landing_stop,
            fingerprint=proposal.make_fingerprint(
                "TABLE_REWRITE", f"{pointer}#{change.column}", against=_list_latest_number(proposal)
            ),
        )
    other_changes = [change for change in impact.changes if change.effect != "rewrite"]
    if other_changes or impact.refusal:
        lines = [describe_change(change) for change in other_changes[:MAX_SHOWN]] or [
            f"Spark has no columns for it any more: {impact.refusal}."
        ]
        if len(other_changes) > MAX_SHOWN:
            lines.append(
                f"The same for {len(other_changes) - MAX_SHOWN:,} more columns: {summarize_changes(other_changes)}."
            )
        landing_stop = ""
        stopping_columns = list(dict.fromkeys(change.column for change in other_changes if is_stopping(change)))
        if stopping_columns:
            shown_columns = ", ".join(stopping_columns[:_MAX_NAMED_COLUMNS])
            more = (
                f" and {len(stopping_columns) - _MAX_NAMED_COLUMNS:,} more"
                if stopping_columns[_MAX_NAMED_COLUMNS:]
                else ""
            )
            landing_stop = f"Landing into a Delta table stops at {shown_columns}{more}, until the table is rewritten."
            lines.append(landing_stop)
        pointer = pointers.find(other_changes[0].path) if pointers and other_changes else ""
        yield from comparison.make_finding(
            "TABLE_CHANGED",
            topic,
            "\n".join([f"Tables fed by {topic.name}:", *lines]),
            source=proposal.schema.locate(pointer),
            fix=suggest_actions(other_changes, topic.name.schema_id),
            landing_stop=landing_stop,
            fingerprint=proposal.make_fingerprint("TABLE_CHANGED", "", against=_list_latest_number(proposal)),
        )


def _list_latest_number(proposal: Proposal) -> list[int]:
    return [version.number for version in get_live_versions(proposal.versions)[-1:]]


# Names that differ only in case


_RECURSIVE: Final = StructOptions(recursive_field_max_depth=1, as_decoded=True)
"""The columns of each record once, also of a recursive one."""


def find_equal_names(info: SchemaInfo, spark_release: str, release: Release) -> dict[Path, tuple[str, ...]]:
    """Return the names of fields that differ only in case, in one struct, by the path of the last of them.

    A record that occurs at several places counts once. The result is empty for a schema without columns.
    """
    options = replace(_RECURSIVE, spark=spark_release)
    names_by_path: dict[Path, tuple[str, ...]] = {}
    known_keys: set[tuple[str, tuple[str, ...]]] = set()

    def visit(spark_type: SparkType, path: Path) -> None:
        match spark_type:
            case Struct():
                names_by_key: dict[str, list[str]] = {}
                for field in spark_type.fields:
                    # As Spark compares them: String.toLowerCase(Locale.ROOT).
                    names_by_key.setdefault(field.name.lower(), []).append(field.name)
                for names in names_by_key.values():
                    key = (spark_type.name or ".".join(path), tuple(names))
                    if len(names) > 1 and key not in known_keys:
                        known_keys.add(key)
                        names_by_path[*path, names[-1]] = tuple(names)
                for field in spark_type.fields:
                    visit(field.type, (*path, field.name))
            case SparkArray():
                visit(spark_type.element, (*path, "element"))
            case SparkMap():
                visit(spark_type.value, (*path, "value"))

    with suppress(InvalidSchema, UnsupportedBySpark, RecursionError):
        if struct := struct_of(info, options, release):
            visit(struct, ())
    return names_by_path


def check_equal_names(comparison: Comparison, proposal: Proposal) -> Iterator[Finding]:
    """Yield a finding for each set of fields of one record or message whose names differ only in case."""
    generate, release = comparison.project.generate, comparison.project.release
    spark_release = generate.spark if generate else _RECURSIVE.spark
    names_by_path = find_equal_names(proposal.schema, spark_release, release)
    if not names_by_path:
        return
    pointers = Pointers(proposal.schema, release, _RECURSIVE)
    for path, names in [*names_by_path.items()][:MAX_SHOWN]:
        pointer = pointers.find(path)
        *first_names, last_name = (f"`{name}`" for name in names)
        yield from comparison.make_finding(
            "FIELDS_DIFFER_IN_CASE",
            proposal.topic,
            f"{proposal.topic.name}: the fields {', '.join(first_names)} and {last_name} differ only in case. Spark and Delta treat them "
            "as one column, and reject a table with both.",
            source=proposal.schema.locate(pointer),
            field=".".join(path),
            pointer=pointer,
            fingerprint=proposal.make_fingerprint("FIELDS_DIFFER_IN_CASE", f"{pointer}#{'.'.join(path)}", against=()),
        )


# The comparison of two StructTypes


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """The change of one column.

    Attributes:
        effect: the effect on tables.
        path: the path of the new column, or of the old one if it is no longer written; see `Path`.
        before: the old type in SQL, or empty for an added column.
        after: the new type in SQL, or empty for a column that is no longer written.
        former: the old path if the column was renamed.
        successor: the path of the column that had this name in older rows, if there is one.
    """

    effect: Effect
    path: Path
    before: str
    after: str
    former: Path = ()
    successor: Path = ()

    @property
    def column(self) -> str:
        """The path as text, such as `address.zip` or `items.element.sku`."""
        return ".".join(self.path)


_MADE_UP_COLUMN: Final = re.compile(r"member\d+|key|value|element")
"""The names of columns that are not in the text of an Avro definition, ignoring case."""


class _TableHistory:
    """The columns of older rows, which are read only for a column that the old schema lacks."""

    def __init__(self, old: SchemaInfo, older: Sequence[SchemaInfo], options: StructOptions, release: Release) -> None:
        self._old = old
        self._older = older
        self._options = options
        self._release = release
        self._structs: dict[int, Struct | None] = {}
        self._types: dict[tuple[int, Path], dict[str, SparkType]] = {}

    @cached_property
    def successors(self) -> dict[tuple[Path, str], Path]:
        """The path of each old column by its struct and a name that it had before."""
        names_by_path = former_names(self._old, self._older, self._options, self._release)
        return {(path[:-1], name.casefold()): path for path, names in names_by_path.items() for name in names}

    def find_types(self, path: Path, name: str) -> Iterator[SparkType]:
        """Yield the types that the column `name`, ignoring case, has in the struct at `path` of older rows, the newest first."""
        for index, schema in enumerate(self._older):
            if not _may_have_column(schema, name):
                continue
            # A struct may have thousands of columns, and all of them may be added.
            if (index, path) not in self._types:
                struct = _find_type(self._read_struct(index), path)
                fields = struct.fields if isinstance(struct, Struct) else ()
                self._types[index, path] = {field.name.casefold(): field.type for field in fields}
            if name in self._types[index, path]:
                yield self._types[index, path][name]

    def _read_struct(self, index: int) -> Struct | None:
        if index not in self._structs:
            self._structs[index] = None
            with suppress(InvalidSchema, UnsupportedBySpark, RecursionError):
                self._structs[index] = struct_of(self._older[index], self._options, self._release)
        return self._structs[index]


def _may_have_column(schema: SchemaInfo, name: str) -> bool:
    """Return whether a schema may have a column, anywhere, with a name that ignores case; a long history need not be parsed."""
    if not is_known_plain(schema) or _MADE_UP_COLUMN.fullmatch(name):
        return True
    if not schema.may_mention(name):
        return False
    text = schema.schema.decode().casefold()
    return name in text or "\\u" in text


def _find_type(spark_type: SparkType | None, path: Path) -> SparkType | None:
    """Return the type of the column at `path`, or None without such a column."""
    for name in path:
        match spark_type:
            case Struct(fields):
                folded_name = name.casefold()
                spark_type = next((field.type for field in fields if field.name.casefold() == folded_name), None)
            case SparkArray(element) if name == "element":
                spark_type = element
            case SparkMap(value, key=key) if name in ("key", "value"):
                spark_type = key if name == "key" else value
            case _:
                return None
    return spark_type


def find_column_changes(
    old: Struct, new: Struct, former_names: Mapping[Path, Sequence[str]], history: _TableHistory | None = None
) -> tuple[ColumnChange, ...]:
    """Return the changes of columns in the order of the new columns, then the columns that are no longer written.

    Columns match by name as in Spark, regardless of case; their order does not matter.

    Args:
        old: the struct of existing rows.
        new: the struct of new rows.
        former_names: the earlier names of the new columns.
        history: the columns of older rows, or None without older rows.
    """
    return tuple(_StructComparison(former_names, history).compare_structs((), (), old, new))


class _StructComparison:
    """A comparison of two structs, and of their columns that older rows have as well."""

    def __init__(self, former_names: Mapping[Path, Sequence[str]], history: _TableHistory | None = None) -> None:
        self._former_names = former_names
        self._history = history

    def compare_structs(self, old_path: Path, new_path: Path, old: Struct, new: Struct) -> Iterator[ColumnChange]:
        """Yield the changes between the struct at `old_path` and its successor at `new_path`."""
        # Case matters only if names of one struct differ in nothing else.
        folded_names = [[field.name.casefold() for field in struct.fields] for struct in (old, new)]
        fold_case = str.casefold if all(len({*names}) == len(names) for names in folded_names) else str
        remaining_fields = {fold_case(field.name): field for field in old.fields}
        pairs = [(field, remaining_fields.pop(fold_case(field.name), None)) for field in new.fields]
        for field, field_of_same_name in pairs:
            field_path = (*new_path, field.name)
            former_names = map(fold_case, self._former_names.get(field_path, ()))
            old_field = field_of_same_name or next(
                (remaining_fields.pop(name) for name in former_names if name in remaining_fields), None
            )
            if old_field is None:
                yield from self._compare_added(old_path, field_path, field)
                continue
            old_field_path = (*old_path, old_field.name)
            if field_of_same_name is None:
                yield ColumnChange(
                    "renamed column",
                    field_path,
                    format_sql_type(old_field.type),
                    format_sql_type(field.type),
                    old_field_path,
                )
            yield from self.compare_types(old_field_path, field_path, old_field.type, field.type)
            if field.nullable and not old_field.nullable:
                yield ColumnChange(
                    "may be null", field_path, format_sql_type(old_field.type), format_sql_type(field.type)
                )
        for field in remaining_fields.values():
            yield ColumnChange("column no longer written", (*old_path, field.name), format_sql_type(field.type), "")

    def _compare_added(self, old_path: Path, new_path: Path, field: SparkField) -> Iterator[ColumnChange]:
        """Yield the change for a column that the struct at `old_path` lacks; older rows may have a column of that name."""
        name = field.name.casefold()
        type_changes: list[ColumnChange] = []
        if self._history:
            successor = self._history.successors.get((old_path, name))
            if successor is not None:
                yield ColumnChange("rewrite", new_path, "", format_sql_type(field.type), successor=successor)
                return
            for older_type in self._history.find_types(old_path, name):
                type_changes += _StructComparison({}).compare_types(new_path, new_path, older_type, field.type)
        worst_effect = next(
            (effect for effect in _TYPE_EFFECTS if any(change.effect == effect for change in type_changes)), None
        )
        if worst_effect is None:
            yield ColumnChange("added column", new_path, "", format_sql_type(field.type))
        yield from dict.fromkeys(change for change in type_changes if change.effect == worst_effect)

    def compare_types(self, old_path: Path, new_path: Path, old: SparkType, new: SparkType) -> Iterator[ColumnChange]:
        """Yield the changes between the types of the column at `old_path` and its successor at `new_path`."""
        match old, new:
            case Struct(), Struct():
                yield from self.compare_structs(old_path, new_path, old, new)
            case SparkArray(), SparkArray():
                yield from self.compare_types((*old_path, "element"), (*new_path, "element"), old.element, new.element)
                if new.contains_null and not old.contains_null:
                    yield ColumnChange(
                        "may be null",
                        (*new_path, "element"),
                        format_sql_type(old.element),
                        format_sql_type(new.element),
                    )
            case SparkMap(), SparkMap():
                yield from self.compare_types((*old_path, "key"), (*new_path, "key"), old.key, new.key)
                yield from self.compare_types((*old_path, "value"), (*new_path, "value"), old.value, new.value)
                if new.value_contains_null and not old.value_contains_null:
                    yield ColumnChange(
                        "may be null", (*new_path, "value"), format_sql_type(old.value), format_sql_type(new.value)
                    )
            case _ if old != new:
                before, after = format_sql_type(old), format_sql_type(new)
                yield ColumnChange("type widened" if is_widening(before, after) else "rewrite", new_path, before, after)


# Wording


def format_sql_type(spark_type: SparkType) -> str:
    """Return the type in SQL; a long type is cut."""
    # Take no more pieces than fit: a struct may have thousands of nested fields.
    text = "".join(islice(_write_sql(spark_type), _MAX_TYPE_LENGTH + 1))
    return text if len(text) <= _MAX_TYPE_LENGTH else f"{text[:_MAX_TYPE_LENGTH]}..."


def _write_sql(spark_type: SparkType) -> Iterator[str]:
    """Yield the pieces of the type's text."""
    match spark_type:
        case Atomic(name):
            yield spark.SQL_NAMES.get(name, name)
        case Decimal(precision, scale):
            yield f"decimal({precision},{scale})"
        case SparkArray(element):
            yield "array<"
            yield from _write_sql(element)
            yield ">"
        case SparkMap(value, key=key):
            yield "map<"
            yield from _write_sql(key)
            yield ","
            yield from _write_sql(value)
            yield ">"
        case Struct(fields):
            yield "struct<"
            for number, field in enumerate(fields):
                yield f"{',' if number else ''}{field.name}:"
                yield from _write_sql(field.type)
            yield ">"


def summarize_changes(changes: Sequence[ColumnChange]) -> str:
    """Return the effects in a few words, the worst first."""
    return ", ".join(list_effects(changes)) or "nothing"


def list_effects(changes: Sequence[ColumnChange]) -> tuple[Effect, ...]:
    """Return the distinct effects, the worst first."""
    present_effects = {change.effect for change in changes}
    return tuple(effect for effect in ADVICE if effect in present_effects)


def describe_change(change: ColumnChange) -> str:
    """Describe the change of one column in a line."""
    column = change.column
    match change.effect:
        case "added column":
            return f"{column} {change.after}: added column, null in existing rows."
        case "column no longer written":
            return f"{column} {change.before}: column no longer written, null in new rows."
        case "renamed column":
            old_name = ".".join(change.former)
            return f"{column} {change.after}: renamed column; existing rows have it as {old_name}."
        case "type widened":
            return f"{column}: type widened from {change.before} to {change.after}; Spark reads old files with the new type."
        case "may be null":
            return f"{column} {change.after}: may be null from now on."
        case "rewrite" if change.successor:
            successor = ".".join(change.successor)
            return (
                f"{column} is now called {successor}. Rewrite these tables: in older rows, this column contains the "
                f"values of {successor}. Or give the new field a name that no field had before."
            )
        case "rewrite":
            type_change = f"{column} goes from {change.before} to {change.after}"
            if frozenset((change.before, change.after)) in _READABLE_PAIRS:
                return f"{type_change}. Rewrite a Delta table; old Parquet files are read with the new type where the StructType is given."
            return f"{type_change}. Rewrite these tables: Spark fails on the old files or reads wrong values."


def suggest_actions(changes: Sequence[ColumnChange], topic: str) -> str:
    """Return the advice for the owner of a table that `topic` feeds."""
    actions = dict.fromkeys(ADVICE[effect] for effect in list_effects(changes) if ADVICE[effect])
    if not actions:
        return ""
    landing_advice = f"{_LANDING_ADVICE}."
    if any(map(is_stopping, changes)):
        landing_advice = (
            "An Iceberg table of `schemactl spark land` is changed with `--evolve rename`, and a Delta table is rewritten, in one "
            f"transaction, with `schemactl spark land {quote(topic)} --messages PATH --out TABLE --format delta --evolve rewrite`"
        )
        statement = make_rewrite_statement(changes)
        landing_advice += f", or in Spark: {statement}" if statement else "."
    return f"{_PARQUET_ADVICE}; {'; '.join(actions)}. {landing_advice}"


def is_stopping(change: ColumnChange) -> bool:
    """Return whether the change prevents landing rows in a Delta table that has the old column."""
    return change.effect in _STOPPING_EFFECTS


def make_rewrite_statement(changes: Sequence[ColumnChange]) -> str:
    """Return the statement of Spark SQL that renames and widens the columns of a Delta table without partitions.

    It is empty if a column inside of another one changes: its new type needs all columns of the table's struct.
    """
    stopping = [change for change in changes if is_stopping(change)]
    if not stopping or any(len(change.path) > 1 for change in stopping) or len(stopping) > MAX_SHOWN:
        return ""
    former_names = {change.path: change.former[-1] for change in stopping if change.effect == "renamed column"}
    types = {change.path: change.after for change in stopping if change.effect == "type widened"}
    values = []
    for path in dict.fromkeys(change.path for change in stopping):
        old_name, new_name = quote_sql_name(former_names.get(path, path[-1])), quote_sql_name(path[-1])
        values.append(f"{f'CAST({old_name} AS {types[path]})' if path in types else old_name} AS {new_name}")
    old_names = ", ".join(quote_sql_name(former_names.get(path, path[-1])) for path in former_names | types)
    return (
        "CREATE OR REPLACE TABLE delta.`TABLE` USING delta AS "  # noqa: S608  for a person to type
        f"SELECT * EXCEPT ({old_names}), {', '.join(values)} FROM delta.`TABLE`"
    )


# The places of columns in a definition


class Pointers:
    """Find the places of columns in a definition, which is parsed once."""

    def __init__(self, info: SchemaInfo, release: Release, options: StructOptions) -> None:
        """Parse the definition; raise InvalidSchema or UnsupportedBySpark as `struct_of` does."""
        self._parts: dict[str, avro.Schema | None] = {}
        if pair := get_pair(info):
            self._parts = {name: _parse_avro(part, release) for name, part in pair.halves.items()}
        self._is_record = not self._parts and is_record(info, options, release)
        self._schema = None if self._parts else _parse_avro(info, release)

    def find(self, path: Path) -> str:
        """Return the JSON pointer to a column, or to the last part of its path that the definition has.

        Only Avro definitions have such parts; for others the pointer is the whole definition.
        """
        if self._parts:
            return f"/{path[0]}{self._join_tokens(self._parts[path[0]], path[1:])}"
        return self._join_tokens(self._schema, path if self._is_record else path[1:])

    @staticmethod
    def _join_tokens(schema: avro.Schema | None, path: Path) -> str:
        tokens: list[str] = []
        for name in path:
            token_and_schema = _find_inner_schema(schema, name) if schema else None
            if token_and_schema is None:
                break
            tokens.append(token_and_schema[0])
            schema = token_and_schema[1]
        return "".join(tokens).removesuffix("/type")


def _parse_avro(info: SchemaInfo, release: Release) -> avro.Schema | None:
    return parse(info.schema, release) if spec(info).payload in ("avro", "json") else None


def _find_inner_schema(schema: avro.Schema, name: str) -> tuple[str, avro.Schema] | None:
    """Return the pointer from a schema to the column `name` of its StructType, and the schema there, or None."""
    union_token = ""
    if isinstance(schema, avro.Union):
        branches = [branch for branch in enumerate(schema.branches) if branch[1].type != "null"]
        if len(branches) > 1:
            members = {f"member{index}": branch for index, branch in enumerate(branches)}
            return (f"/{members[name][0]}", members[name][1]) if name in members else None
        if not branches:
            return None
        union_token, schema = f"/{branches[0][0]}", branches[0][1]
    match schema:
        case avro.Record() if name in schema.fields_by_name:
            number = [*schema.fields_by_name].index(name)
            return f"{union_token}/fields/{number}/type", schema.fields[number].schema
        case avro.Array():
            return f"{union_token}/items", schema.items
        case avro.Map():
            return f"{union_token}/values", schema.values
    return None
