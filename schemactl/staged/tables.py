"""What plain changes do to the tables that a topic feeds: columns of simple types come and go at the top. All else is worked out."""

from __future__ import annotations

import json
from types import SimpleNamespace

from schemactl.staged.avro import PRIMITIVES, NotPlain
from schemactl.tables.words import MAX_TOLD, advice, said, summary, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from schemactl.staged.avro import Definition

_MAX_PLACES = 10_000
"""So many places has a definition, its named types written out, that surely has columns (codegen.struct.MAX_PLACES)."""

_SQL = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "enum": "string",
    "fixed": "binary",
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "uuid": "string",
    "time-millis": "int",
}
"""The types of columns whatever the release of Spark (codegen.struct), by what Avro calls them."""


def changes(old: Definition, new: Definition, versions: Sequence[Definition]) -> list[Any]:
    """What becomes of columns (tables.changes), of tables with rows of all versions.

    Raises:
        NotPlain: something else may.
    """
    if old.root != new.root or any(_places(each, each.root, {}) > _MAX_PLACES for each in (old, new)):
        raise NotPlain
    for name in old.names.keys() & new.names.keys():
        (was, before), (kind, content) = old.names[name], new.names[name]
        same = was == kind and (kind != "record" or name == new.root or _types(before) == _types(content))
        if not same:
            raise NotPlain
    before, after = (_types(each.names[each.root][1]) for each in (old, new))
    names = {*before, *after}
    if len({name.casefold() for name in names}) < len(names) or any(
        before[name] != after[name] for name in before.keys() & after.keys()
    ):
        raise NotPlain
    then = {name.casefold() for each in versions for name in each.names[each.root][1]}
    if any(name not in before and name.casefold() in then for name in after):
        # Older rows have a column of that name, perhaps of another type.
        raise NotPlain
    come = [
        _change("added column", name, "", _sql(new, of)) for name, of in after.items() if name not in before
    ]
    gone = [
        _change("column no longer written", name, _sql(old, of), "")
        for name, of in before.items()
        if name not in after
    ]
    if len(come) + len(gone) > MAX_TOLD:
        raise NotPlain
    return come + gone


def finding(topic: str, found: list[Any], path: str, text: bytes) -> SimpleNamespace:
    """The note on them, at the first of the columns in that file, which holds the definition.

    Raises:
        NotPlain: the definition is laid out otherwise.
    """
    line, column = _place(text.decode(), found[0].column)
    return SimpleNamespace(
        rule="TABLE_CHANGED",
        severity="note",
        source=f"{path}:{line}:{column}",
        message=told(topic, [said(each) for each in found]),
        fix=advice(found),
        older="",
        counterexample=None,
    )


def cell(found: list[Any]) -> SimpleNamespace:
    """What is said of them beside the verdicts."""
    return SimpleNamespace(summary=summary(found))


def _change(effect: str, column: str, before: str, after: str) -> SimpleNamespace:
    return SimpleNamespace(effect=effect, column=column, before=before, after=after)


def _types(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record without their defaults."""
    return {name: of for name, (of, _) in fields.items()}


def _sql(definition: Definition, of: Any) -> str:
    """The type of a column."""
    if of.__class__ is str and of not in PRIMITIVES:
        of = definition.names[of][0]
    elif of[0] == "union":
        branches = [branch for branch in of[1] if branch != "null"]
        if len(branches) != 1:
            raise NotPlain
        return _sql(definition, branches[0])
    elif of[0] == "logical" and len(of) > 3:
        return f"decimal({of[2]},{of[3]})"
    elif of[0] == "logical":
        of = of[2]
    if of.__class__ is not str or of not in _SQL:
        raise NotPlain
    return _SQL[of]


def _places(definition: Definition, of: Any, known: dict[str, int]) -> int:
    """How many columns and parts of columns the type has, written out."""
    if of.__class__ is str:
        if of in PRIMITIVES:
            return 1
        if of not in known:
            kind, content = definition.names[of]
            fields = content.values() if kind == "record" else ()
            known[of] = 1 + sum(_places(definition, each, known) for each, _ in fields)
        return known[of]
    if of[0] == "union":
        return 1 + sum(_places(definition, branch, known) for branch in of[1])
    return 1 if of[0] == "logical" else 1 + _places(definition, of[1], known)


def _place(text: str, name: str) -> tuple[int, int]:
    """Line and column of the field with that name, or else of the whole, in the text of a record."""
    read = json.JSONDecoder().raw_decode
    start = at = _skipped(text, 0)
    if text[at] != "{":
        raise NotPlain
    key = None
    while key != "fields":
        key, at = read(text, _skipped(text, at + 1))
        at = _skipped(text, _skipped(text, at) + 1)
        if key != "fields":
            at = _skipped(text, read(text, at)[1])
    while text[at] != "]":
        place = _skipped(text, at + 1)
        field, at = read(text, place)
        at = _skipped(text, at)
        if field["name"] == name:
            start = place
            break
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def _skipped(text: str, at: int) -> int:
    """Behind white space."""
    while text[at] in " \t\r\n":
        at += 1
    return at
