"""The layout of JSON definitions: indentation, spaces and line breaks. Keys stay in their order, values as they are spelt, comments where they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from schemactl.source import Scan, scan

WIDTH: Final = 110
"""Of a line, in characters: what fits stands on one."""

_STEP: Final = "  "
_COMMENT: Final = re.compile(r"//[^\r\n]*+|/\*.*?\*/|\n(?=[ \t\r]*\n)|\n", re.DOTALL)
"""What blanks between two tokens may hold; two line ends in a row are a blank line."""


@dataclass(slots=True)
class _Item:
    """A member of an object or list, or what ends one.

    Attributes:
        before: comments on lines of their own before it; "" is a blank line.
        text: key and value where both are on one line; the key alone, with its colon, where the value is not; "": the end.
        value: the container that is the value; None: it has no parts.
        width: of all of it on one line, in characters.
        behind: comments that stand behind it on its line.
    """

    before: list[str] = field(default_factory=list)
    text: str = ""
    value: _Container | None = None
    width: int = 0
    behind: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Container:
    """An object or list.

    Attributes:
        brackets: `{}` or `[]`.
        behind: comments behind its opening bracket.
        items: its members, and an end, which has none but comments.
        is_long: it is never put on one line: a record with fields, the list of these, what holds a comment, and what is around them.
    """

    brackets: str
    behind: list[str] = field(default_factory=list)
    items: list[_Item] = field(default_factory=list)
    is_long: bool = False


def laid_out(text: str) -> str:
    """Return the JSON `text`, in which comments may stand, as it is laid out: a record and its fields on lines of their own.

    Raises:
        JsonSyntaxError: it is not JSON.
    """
    text = text.replace("\r\n", "\n")
    found = scan(text)
    root = _Item()
    comments = [*_comments(text[: found.offsets[0]])]
    root.before = [comment for comment in comments if comment != "\n"]
    _fill(root, found, 0, "")
    after = [each for each in _comments(text[found.stops[0] :]) if each not in ("\n", "")]
    return "\n".join([*root.before, *_lines(root, "", ""), *after]) + "\n"


def _fill(item: _Item, found: Scan, number: int, key: str) -> None:
    """Make `item` the value of that number, behind `key`."""
    text, start, stop = found.text, found.offsets[number], found.stops[number]
    item.text = f"{key}: " if key else ""
    opening = text[start]
    if opening not in "{[":
        item.text += text[start:stop]
        item.width = len(item.text)
        return
    container = _Container("{}" if opening == "{" else "[]")
    item.value = container
    at, last = start + 1, None
    for member in found.members_of(number):
        begin = found.keys[member] if opening == "{" else found.offsets[member]
        each = _Item()
        _share(text[at:begin], container.behind if last is None else last.behind, each.before)
        name = ""
        if opening == "{":
            end = found.key_end(member)
            name = text[begin:end]
            each.before += [
                one for one in _comments(text[end : found.offsets[member]]) if one not in ("\n", "")
            ]
        _fill(each, found, member, name)
        container.items.append(each)
        at, last = found.stops[member], each
    end_of_all = _Item()
    _share(text[at : stop - 1], container.behind if last is None else last.behind, end_of_all.before)
    while end_of_all.before and not end_of_all.before[-1]:
        end_of_all.before.pop()
    container.items.append(end_of_all)
    members = container.items[:-1]
    item.width = len(item.text) + 2 + sum(each.width for each in members) + 2 * max(0, len(members) - 1)
    is_fields = key == '"fields"' and opening == "[" and len(container.items) > 1
    container.is_long = bool(is_fields or container.behind) or any(
        each.behind or any(each.before) or (each.value is not None and each.value.is_long)
        for each in container.items
    )


def _share(gap: str, behind: list[str], before: list[str]) -> None:
    """Give the comments between two tokens to the one before, on whose line they stand, or to the one after."""
    to = behind
    for comment in _comments(gap):
        if comment == "\n":
            to = before
        elif comment or to is before:
            to.append(comment)
            # What follows `//` is on the next line.
            to = before if comment.startswith("//") else to


def _comments(gap: str) -> Iterator[str]:
    """Yield each comment of blanks; a line end for one or more of them, and "" behind it for a blank line."""
    ends = 0
    for match in _COMMENT.finditer(gap):
        if match[0] != "\n":
            ends = 0
            yield match[0].rstrip()
            continue
        ends += 1
        if ends == 1:
            yield "\n"
        elif ends == 2:
            yield ""


def _flat(item: _Item) -> str:
    """Return an item on one line."""
    if item.value is None:
        return item.text
    opening, closing = tuple(item.value.brackets)
    return f"{item.text}{opening}{', '.join(_flat(each) for each in item.value.items[:-1])}{closing}"


def _lines(item: _Item, indent: str, comma: str) -> Iterator[str]:
    """Yield the lines of an item, which `comma` ends."""
    behind = "".join(f" {comment}" for comment in item.behind)
    container = item.value
    if container is None:
        yield f"{indent}{item.text}{comma}{behind}"
        return
    fits = len(indent) + item.width + len(comma) <= WIDTH or len(container.items) == 1
    if fits and not container.is_long:
        yield f"{indent}{_flat(item)}{comma}{behind}"
        return
    opening, closing = tuple(container.brackets)
    yield f"{indent}{item.text}{opening}" + "".join(f" {comment}" for comment in container.behind)
    inner = indent + _STEP
    *members, end = container.items
    for number, each in enumerate(members):
        # No blank line behind a bracket.
        before = each.before if number else [comment for comment in each.before if comment]
        yield from (f"{inner}{comment}" if comment else "" for comment in before)
        yield from _lines(each, inner, "," if number < len(members) - 1 else "")
    yield from (f"{inner}{comment}" if comment else "" for comment in end.before)
    yield f"{indent}{closing}{comma}{behind}"
