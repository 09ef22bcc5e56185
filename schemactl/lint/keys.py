"""Keys without meaning where they are: Avro keeps them as properties, and nothing reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from schemactl.lint.definition import DefinitionPart, Kind, LintedDefinition, Remark, surely_meant
from schemactl.lint.edits import RenameKey

_TYPE: Final = ("type", "name", "namespace", "doc", "aliases")
_LOGICAL: Final = ("logicalType", "precision", "scale")

KNOWN: Final[Mapping[Kind, tuple[str, ...]]] = {
    "record": (*_TYPE, "fields", "logicalType"),
    "enum": (*_TYPE, "symbols", "default", "logicalType"),
    "fixed": (*_TYPE, "size", *_LOGICAL),
    "array": ("type", "items", "logicalType"),
    "map": ("type", "values", "logicalType"),
    "primitive": ("type", *_LOGICAL),
    "reference": ("type",),
    "field": ("name", "type", "doc", "default", "order", "aliases"),
}
"""The keys that Avro knows, by where they stand."""

_HARMLESS: Final = frozenset({"default", "aliases", "doc", "order"})
"""What may be spelt right without changing the name, the bytes or the column of anything."""


def misspelt(part: DefinitionPart) -> Iterator[tuple[str, str]]:
    """Yield each key of `part` that Avro does not know, with the one that was probably meant."""
    known = KNOWN.get(part.kind, ())
    for key in part.keys:
        if key not in known:
            near = surely_meant(key, (each for each in known if each not in part.keys))
            if near:
                yield key, near


def ignored(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the keys that are nearly one that Avro knows, and defaults that stand inside a type."""
    for part in definition.parts:
        for key, near in misspelt(part):
            at = (*part.parts, key)
            yield Remark(
                at,
                f"Avro does not know `{key}`, and keeps it as a property: {part.field} has no `{near}`.",
                f"Write `{near}`.",
                part.field,
                of_key=True,
                edit=RenameKey(at, near) if near in _HARMLESS else None,
            )
        if "default" in part.keys and "default" not in KNOWN.get(part.kind, ()):
            yield Remark(
                (*part.parts, "default"),
                f"A default inside a type is kept as a property: {part.field} has none.",
                "Write it beside the `type` of the field.",
                part.field,
                of_key=True,
            )
