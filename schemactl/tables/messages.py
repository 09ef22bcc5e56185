"""The effect of a change on tables, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from schemactl.tables.changes import ColumnChange, Effect

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
