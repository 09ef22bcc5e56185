"""Conventions: how names are written, what has a doc, the order of fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from schemactl.declare.source_location import Tokens
from schemactl.lint.definition import LintedDefinition, Remark

_STYLES: Final = {
    "snake_case": re.compile(r"_?[a-z][a-z0-9]*(_[a-z0-9]+)*"),
    "camelCase": re.compile(r"_?[a-z][a-zA-Z0-9]*"),
    "PascalCase": re.compile(r"[A-Z][a-zA-Z0-9]*"),
    "UPPER_CASE": re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*"),
    "any": re.compile(r".*", re.DOTALL),
}


def unlike_style(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the names of fields, types and symbols that are not in the project's style."""
    names = definition.project.names
    for part in definition.of_kind("field"):
        yield from _unlike(part.keys.get("name"), names.fields, (*part.parts, "name"), part.field)
    for part in definition.of_kind("record", "enum", "fixed"):
        yield from _unlike(part.full_name.rpartition(".")[2], names.types, (*part.parts, "name"), part.field)
    for part in definition.of_kind("enum"):
        symbols = part.keys.get("symbols")
        for index, symbol in enumerate(symbols if isinstance(symbols, list) else ()):
            yield from _unlike(symbol, names.symbols, (*part.parts, "symbols", str(index)), part.field)


def _unlike(name: object, style: str, parts: Tokens, field: str) -> Iterator[Remark]:
    if isinstance(name, str) and not _STYLES[style].fullmatch(name):
        yield Remark(parts, f"`{name}` is not written in {style}.", field=field)


def without_doc(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the types and fields without a doc."""
    for part in definition.of_kind("record", "enum", "fixed", "field"):
        if not part.keys.get("doc"):
            what = "field" if part.kind == "field" else part.kind
            yield Remark(
                part.parts, f"The {what} {part.full_name or part.field} has no doc.", field=part.field
            )


def out_of_order(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the fields without default that stand behind one with a default."""
    for record in definition.of_kind("record"):
        fields = record.keys.get("fields")
        first = None
        for index, each in enumerate(fields if isinstance(fields, list) else ()):
            if not isinstance(each, dict):
                continue
            if "default" in each:
                first = first or each.get("name")
            elif first:
                at = (*record.parts, "fields", str(index))
                message = f"{record.field}.{each.get('name')} has no default, and stands behind {first}, which has one."
                yield Remark(at, message, field=f"{record.field}.{each.get('name')}")
