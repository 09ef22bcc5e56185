"""Logical types that Avro ignores, or that some readers do not know: the values are plain numbers and bytes there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from schemactl.lint.definition import DefinitionPart, LintedDefinition, Remark, surely_meant

_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "decimal": ("bytes", "fixed"),
    "big-decimal": ("bytes",),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": ("fixed",),
}
"""The types that each may stand on."""

_SIZES: Final[Mapping[str, int]] = {"uuid": 16, "duration": 12}
"""Of a fixed, in bytes."""


def unknown(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the logical types that are nearly one of Avro's; others are somebody's own."""
    for part, name in _named(definition):
        near = None if name in _KNOWN else surely_meant(name.replace("_", "-"), _KNOWN)
        if near:
            yield Remark(
                (*part.parts, "logicalType"),
                f"Avro does not know the logical type `{name}`: {part.field} is a plain {_kind(part)}.",
                f"Write `{near}`. Columns made of the field get another type.",
                part.field,
            )


def ignored(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the logical types that Avro knows, and ignores where or as they stand."""
    for part in definition.of_kind("field"):
        if "logicalType" in part.keys and isinstance(part.keys["type"], str):
            yield Remark(
                (*part.parts, "logicalType"),
                f"A logical type beside the `type` of a field is kept as a property: {part.field} is a plain {part.keys['type']}.",
                f'Write it inside: "type": {{"type": "{part.keys["type"]}", "logicalType": "{part.keys["logicalType"]}"}}.',
                part.field,
                of_key=True,
            )
    for part, name in _named(definition):
        if name in _KNOWN and (why := _why_ignored(part, name)):
            yield Remark(
                (*part.parts, "logicalType"),
                f"Avro ignores `{name}` here, and {part.field} is a plain {_kind(part)}: {why[0]}.",
                why[1],
                part.field,
            )


def nanoseconds(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the timestamps in nanoseconds."""
    for part, name in _named(definition):
        if name in ("timestamp-nanos", "local-timestamp-nanos"):
            yield Remark(
                (*part.parts, "logicalType"),
                f"Only Avro from 1.12 on knows `{name}`: {part.field} is a plain long for the clients of Pulsar 4.0, and for Spark before 4.3.",
                field=part.field,
            )


def empty_decimals(definition: LintedDefinition) -> Iterator[Remark]:
    """Yield the defaults that are decimals of no bytes."""
    for part in definition.of_kind("field"):
        kind = part.keys["type"]
        branches = kind if isinstance(kind, list) else [kind]
        types = [each.get("type") if isinstance(each, dict) else each for each in branches]
        # A text is of the first branch that holds one.
        text = next((at for at, name in enumerate(types) if name in ("string", "bytes")), None)
        if part.keys.get("default") != "" or text is None or types[text] != "bytes":
            continue
        match branches[text]:
            case {"logicalType": "decimal"} as keys if not _why_no_decimal(keys, None):
                yield Remark(
                    (*part.parts, "default"),
                    f"The default of {part.field} is a decimal of no bytes: a reader that makes a number of it fails on each message that lacks the field.",
                    field=part.field,
                )


def _named(definition: LintedDefinition) -> Iterator[tuple[DefinitionPart, str]]:
    """Yield each type with a logical type."""
    for part in definition.parts:
        if part.kind != "field" and isinstance(name := part.keys.get("logicalType"), str):
            yield part, name


def _kind(part: DefinitionPart) -> str:
    return str(part.keys["type"])


def _why_ignored(part: DefinitionPart, name: str) -> tuple[str, str] | None:
    """Return why a logical type has no effect, and what to write; None: it has one."""
    kind, of = _kind(part), _KNOWN[name]
    if kind not in of:
        return f"it stands on {' or '.join(of)}", f"Write it on {' or '.join(of)}, or remove it."
    size = part.keys.get("size") if kind == "fixed" else None
    if size is not None and size != _SIZES.get(name, size):
        return f"it stands on {_SIZES[name]} bytes, not on {size}", f'Write "size": {_SIZES[name]}.'
    return _why_no_decimal(part.keys, size) if name == "decimal" else None


def _why_no_decimal(keys: Mapping[str, Any], size: int | None) -> tuple[str, str] | None:
    precision, scale = keys.get("precision"), keys.get("scale", 0)
    if type(precision) is not int or precision < 1:
        return "it has no precision", 'Write the most digits that a value has: "precision": 18, "scale": 2.'
    if type(scale) is not int or not 0 <= scale <= precision:
        return "its scale is no number up to its precision", f'Write "scale": 0 to {precision}.'
    digits = math.floor(math.log10(2) * (8 * size - 1)) if size else precision
    if precision > digits:
        return f"{size} bytes hold {digits} digits", f'Write "precision": {digits}, or a larger size.'
    return None
