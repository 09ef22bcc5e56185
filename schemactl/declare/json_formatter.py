"""Format JSON with comments: a value that fits is written on one line, and each field of a record starts on a new line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from schemactl.declare.source_location import Scan, scan

_WIDTH: Final = 110
"""The width of a line in characters: a value that fits is written on one line."""

_STEP: Final = "  "
_COMMENT: Final = re.compile(r"//[^\r\n]*+|/\*.*?\*/|\n(?=[ \t\r]*\n)|\n", re.DOTALL)
"""The comments and line ends between two tokens; two line ends in a row are a blank line."""


@dataclass(slots=True)
class _Item:
    """A member of an object or list, or the end of one.

    Attributes:
        before: the comments on the lines before it; "" is a blank line.
        text: the key and the value, or only the key with its colon if the value is a container; "" for the end.
        value: the container that is the value, or None for a scalar.
        width: the width of the item on one line, in characters.
        after: the comments after it on its line.
    """

    before: list[str] = field(default_factory=list)
    text: str = ""
    value: _Container | None = None
    width: int = 0
    after: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Container:
    """An object or list.

    Attributes:
        brackets: `{}` or `[]`.
        after: the comments after its opening bracket.
        items: its members, and the end, which has only comments.
        is_long: whether it is never written on one line: it contains a comment or the fields of a record.
    """

    brackets: str
    after: list[str] = field(default_factory=list)
    items: list[_Item] = field(default_factory=list)
    is_long: bool = False


def format_json(text: str) -> str:
    """Format the JSON `text`, which may have comments. Each field of a record starts on a new line.

    Raises:
        JsonSyntaxError: if it is not JSON.
    """
    text = text.replace("\r\n", "\n")
    values = scan(text)
    root = _Item()
    root.before = [comment for comment in _split_comments(text[: values.offsets[0]]) if comment != "\n"]
    _fill_item(root, values, 0, "")
    after = [comment for comment in _split_comments(text[values.stops[0] :]) if comment not in ("\n", "")]
    return "\n".join([*root.before, *_format_item(root, "", ""), *after]) + "\n"


def _fill_item(item: _Item, values: Scan, number: int, key: str) -> None:
    """Set `item` to the value with this number, after `key`."""
    text, start, stop = values.text, values.offsets[number], values.stops[number]
    item.text = f"{key}: " if key else ""
    opening = text[start]
    if opening not in "{[":
        item.text += text[start:stop]
        item.width = len(item.text)
        return
    container = _Container("{}" if opening == "{" else "[]")
    item.value = container
    offset, previous = start + 1, None
    for member_number in values.members_of(number):
        begin = values.keys[member_number] if opening == "{" else values.offsets[member_number]
        member = _Item()
        _share_comments(text[offset:begin], container.after if previous is None else previous.after, member.before)
        name = ""
        if opening == "{":
            end = values.key_end(member_number)
            name = text[begin:end]
            comments = _split_comments(text[end : values.offsets[member_number]])
            member.before += [comment for comment in comments if comment not in ("\n", "")]
        _fill_item(member, values, member_number, name)
        container.items.append(member)
        offset, previous = values.stops[member_number], member
    end_item = _Item()
    _share_comments(text[offset : stop - 1], container.after if previous is None else previous.after, end_item.before)
    while end_item.before and not end_item.before[-1]:
        end_item.before.pop()
    members = [*container.items]
    container.items.append(end_item)
    item.width = len(item.text) + 2 + sum(member.width for member in members) + 2 * max(0, len(members) - 1)
    is_field_list = key == '"fields"' and opening == "[" and bool(members)
    container.is_long = bool(is_field_list or container.after) or any(
        member.after or any(member.before) or (member.value is not None and member.value.is_long)
        for member in container.items
    )


def _share_comments(gap: str, after: list[str], before: list[str]) -> None:
    """Add the comments between two tokens to `after`, if they are on the line of the first token, or else to `before`."""
    comments = after
    for comment in _split_comments(gap):
        if comment == "\n":
            comments = before
        elif comment or comments is before:
            comments.append(comment)
            # A `//` comment ends its line.
            comments = before if comment.startswith("//") else comments


def _split_comments(gap: str) -> Iterator[str]:
    """Yield each comment between two tokens, a line feed for one or more line ends, and "" after it for a blank line."""
    line_ends = 0
    for match in _COMMENT.finditer(gap):
        if match[0] != "\n":
            line_ends = 0
            yield match[0].rstrip()
            continue
        line_ends += 1
        if line_ends == 1:
            yield "\n"
        elif line_ends == 2:
            yield ""


def _format_flat(item: _Item) -> str:
    """Format an item on one line."""
    if item.value is None:
        return item.text
    opening, closing = tuple(item.value.brackets)
    return f"{item.text}{opening}{', '.join(_format_flat(member) for member in item.value.items[:-1])}{closing}"


def _format_item(item: _Item, indent: str, comma: str) -> Iterator[str]:
    """Yield the lines of an item that ends with `comma`."""
    after = "".join(f" {comment}" for comment in item.after)
    container = item.value
    if container is None:
        yield f"{indent}{item.text}{comma}{after}"
        return
    fits = len(indent) + item.width + len(comma) <= _WIDTH or len(container.items) == 1
    if fits and not container.is_long:
        yield f"{indent}{_format_flat(item)}{comma}{after}"
        return
    opening, closing = tuple(container.brackets)
    yield f"{indent}{item.text}{opening}" + "".join(f" {comment}" for comment in container.after)
    inner = indent + _STEP
    *members, end = container.items
    for number, member in enumerate(members):
        # No blank line after an opening bracket.
        before = member.before if number else [comment for comment in member.before if comment]
        yield from (f"{inner}{comment}" if comment else "" for comment in before)
        yield from _format_item(member, inner, "," if number < len(members) - 1 else "")
    yield from (f"{inner}{comment}" if comment else "" for comment in end.before)
    yield f"{indent}{closing}{comma}{after}"
