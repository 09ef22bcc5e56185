"""A definition for people: one line for each field, whatever the schema language and layout."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from operator import eq
from typing import Final

from schemactl.formats.base import spec
from schemactl.model import SchemaInfo

_SMALLEST_DIFF_LINES: Final = 5_000


def outline(info: SchemaInfo) -> dict[str, str]:
    """Map each part's name to what it is, in document order: `Order.lines` to `array<OrderLine>`.

    Named types are spelled out once, under their own name without namespace where no two share it. Docs, aliases and the
    order of symbols are left out. The properties of the SchemaInfo come last.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    parts = dict(spec(info).outline(info))
    # A pair keeps its types and encoding there, which are parts already.
    if spec(info).language != "pair":
        parts |= {f"property {name}": value for name, value in sorted(info.properties.items())}
    return parts


def changes(*, old: SchemaInfo, new: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield what differs between two outlines: `+`, `-` or `~`, and the part, in the order of the new one.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    if old.type is not new.type:
        yield "~", f"type: {old.type.name} -> {new.type.name}"
        return
    before, after = outline(old), outline(new)
    for part, what in before.items():
        if part not in after:
            yield "-", f"{part}: {what}"
    for part, what in after.items():
        if part not in before:
            yield "+", f"{part}: {what}"
        elif before[part] != what:
            name = f"{part}: " if part else ""
            yield "~", f"{name}{before[part]} -> {what}"


def line_changes(
    *, old: SchemaInfo | None, new: SchemaInfo | None, labels: tuple[str, str] = ("old", "new")
) -> list[str]:
    """Return the lines of a unified diff of two definitions, laid out the same: layout is no difference. None is no definition.

    It is the smallest diff where that can be found in reasonable time.
    """
    from difflib import unified_diff

    before, after = (spec(info).lines(info) if info else [] for info in (old, new))
    if max(len(before), len(after)) <= _SMALLEST_DIFF_LINES or before == after:
        return list(unified_diff(before, after, *labels, lineterm=""))
    # Looking for the smallest takes time in the square of the lines: here all between the first and the last difference is one.
    head = _alike(before, after)
    tail = _alike(before[head:][::-1], after[head:][::-1])
    gone, come = (text[head : len(text) - tail] for text in (before, after))
    place = f"@@ -{head + 1},{len(gone)} +{head + 1},{len(come)} @@"
    lines = [f"--- {labels[0]}", f"+++ {labels[1]}", place]
    return [*lines, *(f"-{line}" for line in gone), *(f"+{line}" for line in come)]


def _alike(one: list[str], other: list[str]) -> int:
    """Return how many of their first lines are the same."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def protobuf_parts(info: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield the parts of protobuf messages (see TypeSpec.outline)."""
    from schemactl.formats.protobuf_native.descriptor import ProtoEnum, ProtoField, ProtoMessage
    from schemactl.formats.protobuf_native.kinds import KIND_NAMES
    from schemactl.formats.protobuf_native.wrapper import is_shipped, parse

    definition = parse(info.schema)
    yield "", f"message {definition.root.full_name}"

    def described(field: ProtoField) -> str:
        label = f"{field.cardinality} " if field.is_repeated else ""
        oneof = f" in oneof {field.oneof}" if field.oneof else ""
        return f"{label}{field.type_name or KIND_NAMES[field.kind]} {field.proto.name}{oneof}"

    for name in definition.reachable:
        if is_shipped(name):
            continue
        for element in definition.image.files[name].elements:
            match element:
                case ProtoMessage():
                    yield element.full_name, "message"
                    for number, each in sorted(element.fields().items()):
                        yield f"{element.full_name} {number}", described(each)
                case ProtoEnum():
                    yield element.full_name, "enum"
                    for value, number in element.numbers().items():
                        yield f"{element.full_name}.{value}", f"number {number}"
                case ProtoField():
                    yield f"extension {element.full_name} {element.proto.number}", described(element)
                case _:
                    # A service says nothing about messages on a topic.
                    pass
