"""The place of a part of a definition in its `.proto` file.

A pointer names what it means and not where it lies, so that it survives edits and finds its like in another version:

    ""                                        the root message
    /messages/web.Click                       a message; its map entries are messages too
    /messages/web.Click/fields/3              a field by number; below it `type`, `name`, `default`, `json_name`, ...
    /messages/web.Click/oneofs/target         a oneof
    /enums/web.Kind                           an enum; below it `values/KIND_AD`
    /extensions/web.note                      an extension by its full name
    /services/web.Clicks/methods/List         an RPC; below it `input_type`, `output_type`, ...
    /files/web~1click.proto                   a file; below it `package`
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

from schemactl.core.errors import Source
from schemactl.core.schema import Locator
from schemactl.formats.protobuf_native.descriptor import (
    Element,
    EnumValue,
    File,
    Image,
    Method,
    Oneof,
    Path,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    Span,
)
from schemactl.formats.protobuf_native.kinds import ENUM, MAP, REPEATED
from schemactl.formats.protobuf_native.wrapper import is_shipped

Place: TypeAlias = tuple[Element, str]
"""A part of an element by its label, the element as a whole by ""."""

# From an element's descriptor to the part a label means. Where the tuple is split, its first half leads to an options'
# `features`: any piece of text about these will do.
_LABELS: Mapping[type, Mapping[str, tuple[Path, Path]]] = {
    ProtoField: {"name": ((), (1,)), "type": ((), (5,)), "default": ((), (7,)), "json_name": ((), (10,))},
    ProtoMessage: {"message_set_wire_format": ((), (7, 1)), "json_format": ((7, 12), (6,))},
    ProtoEnum: {"enum_type": ((3, 7), (2,)), "json_format": ((3, 7), (6,))},
    EnumValue: {"number": ((), (2,))},
    Method: {"input_type": ((), (2,)), "output_type": ((), (3,)), "idempotency_level": ((), (4, 34))},
    File: {"package": ((), (2,))},
}


def span_of(place: Place) -> Span | None:
    """Return where `place` stands, as protoc counts; None when the text does not have it, and for a file as a whole.

    What protoc made for a map field stands at that field's type.
    """
    element, label = place
    file = element.file
    if isinstance(element, ProtoField) and label == "type":
        # A group has both, for a name is its type.
        by_name = file.places.span((*element.path, 6)) if element.type_name else None
        found = by_name or file.places.span((*element.path, 5))
    elif label:
        features, rest = _LABELS[type(element)][label]
        prefix = (*element.path, *features)
        found = file.places.span((*prefix, *rest)) or (_nearest(file, prefix, rest) if features else None)
    else:
        found = file.places.span(element.path) if element.path else None
    message = element.message if isinstance(element, ProtoField) else element
    if found or not isinstance(message, ProtoMessage) or not message.is_map_entry or message.parent is None:
        return found
    fields = (field for field in message.parent.fields().values() if field.type_name == message.full_name)
    return next((span_of((field, "type")) for field in fields), None)


def _nearest(file: File, prefix: Path, rest: Path) -> Span | None:
    """Return the first piece of text inside what is sought, or else the longest known part of the path below `prefix`."""
    sought = (*prefix, *rest)
    inside = file.places.first_below(sought)
    if inside is not None:
        return file.places.span(inside)
    longer = (sought[:length] for length in range(len(sought), len(prefix) - 1, -1))
    return next(filter(None, map(file.places.span, longer)), None)


def find(image: Image, pointer: str) -> Place | None:
    """Return the nearest place to `pointer` that `image` has: the part, its element, or what encloses it. None: nothing."""
    around, label = pointer, ""
    while around:
        element = image.by_pointer.get(around)
        if element is not None:
            return element, label if label in _LABELS.get(type(element), ()) else ""
        around, _, label = around.rpartition("/")
        if around in ("/messages", "/enums"):
            # Of a message or enum that is gone, the message around it is the nearest.
            parent = label.rpartition(".")[0]
            around, label = parent and f"/messages/{parent}", ""
    return None


def locator(
    read_root: Callable[[], ProtoMessage],
    *,
    paths: Mapping[str, str],
    texts: Mapping[str, bytes],
    elsewhere: Source,
) -> Locator:
    """Return what finds the place in the user's files that is nearest to a pointer.

    `read_root` is called at the first question: descriptors with source info are large, and most are never asked about.
    `paths` and `texts` are by import name. What is in no file of `paths` stands where the root message does, and what
    is nowhere, at `elsewhere`.
    """
    read_once = cache(read_root)

    def located(place: Place) -> Source | None:
        span, name = span_of(place), place[0].file.name
        if span is None and isinstance(place[0], File) and not place[1]:
            span = Span(1, 1)
        if span is None or name not in paths:
            return None
        return source_at(paths[name], texts.get(name, b""), span)

    def locate(pointer: str) -> Source:
        root = read_once()
        found = find(root.file.image, pointer)
        places = [found, (found[0], ""), (root, "")] if found else [(root, "")]
        return next(filter(None, map(located, places)), elsewhere)

    return locate


def comments(read_root: Callable[[], ProtoMessage]) -> Mapping[str, str]:
    """Return the comments of the user's files, by the pointers of what they are about."""
    elements = read_root().file.image.by_pointer
    own = {pointer: each for pointer, each in elements.items() if not is_shipped(each.file.name)}
    found = {pointer: each.file.places.comment(each.path) for pointer, each in own.items()}
    return {pointer: text for pointer, text in found.items() if text}


def doc_of(field: ProtoField, comments: Mapping[str, str]) -> str:
    """Return the comment of a field, else of the message or enum that its values are of, else ""."""
    value = field.value
    held = value.message_type if value.is_message else value.enum if value.kind == ENUM else None
    return comments.get(field.pointer) or (comments.get(held.pointer, "") if held else "")


def source_at(path: str, text: bytes, span: Span) -> Source:
    """Return the place in code points: protoc counts bytes, and a tab as reaching to the next multiple of eight."""
    lines = text.split(b"\n", span.line)
    line = lines[span.line - 1].decode(errors="replace") if span.line <= len(lines) else ""
    column, end = _column(line, span.column), len(line.rstrip()) + 1
    return Source(path, span.line, column, end if end > column else None)


def _column(line: str, reported: int) -> int:
    if line.isascii() and "\t" not in line:
        return reported
    reached = 0
    for column, character in enumerate(line, start=1):
        if reached >= reported - 1:
            return column
        reached += 8 - reached % 8 if character == "\t" else len(character.encode())
    return len(line) + 1 if line else reported


def field_path(pointer: str, *roots: ProtoMessage) -> str:
    """Return the fields on the way to `pointer`, for people: `Click.user.emails[]`, from the first root that leads there.

    What no field leads to goes by its own name.
    """
    places = [(root, find(root.file.image, pointer)) for root in roots]
    found = [(root, place[0]) for root, place in places if place and pointer.startswith(place[0].pointer)]
    named = (path for root, element in found if (path := _path_to(root, element)))
    return next(named, found[0][1].nested_name if found else roots[0].nested_name)


def _path_to(root: ProtoMessage, element: Element) -> str:
    paths = _paths(root)
    match element:
        case ProtoMessage() | ProtoEnum():
            return paths.get(element.full_name, "")
        case EnumValue():
            return paths.get(element.enum.full_name, "")
        case ProtoField() | Oneof() if element.message and element.message.full_name in paths:
            step = _step(element) if isinstance(element, ProtoField) else f".{element.name}"
            return paths[element.message.full_name] + step
    return ""


def _paths(root: ProtoMessage) -> dict[str, str]:
    """Return the shortest path from the root to each message and enum it reaches."""
    paths = {root.full_name: root.proto.name}
    queue = deque([root])
    while queue:
        message = queue.popleft()
        for field in message.fields().values():
            if field.type_name and field.type_name not in paths:
                paths[field.type_name] = paths[message.full_name] + _step(field)
                if field.is_message:
                    queue.append(field.message_type)
    return paths


def _step(field: ProtoField) -> str:
    """`.emails[]` of a list, `.tags{}` of a map and so of its values."""
    if field.in_map_entry:
        return "" if field.proto.number == 2 else ".key"
    return f".{field.proto.name}" + {MAP: "{}", REPEATED: "[]"}.get(field.cardinality, "")
