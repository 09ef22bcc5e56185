"""Find the line and column of a JSON pointer, in JSON text and in composed YAML nodes.

This runs only if there is something to report: a definition is read with the fast `json` first, and is scanned for places only
when a problem or a finding points into it.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeVar

import yaml

from schemactl.core.errors import Source
from schemactl.core.schema import MAX_DEPTH

Tokens = tuple[str, ...]
"""The parts of a JSON pointer; () is the whole value."""

N = TypeVar("N")


_UNDERLINED: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\w.+-]+|[^\s\w]')
"""A quoted text, a word or one character, which an editor underlines."""


def place(path: str, text: str, offset: int) -> Source:
    """Return the place of the code point at `offset` of the file `path` with content `text`."""
    column = offset - text.rfind("\n", 0, offset)
    word = _UNDERLINED.match(text, offset)
    return Source(path, text.count("\n", 0, offset) + 1, column, column + len(word[0]) if word else None)


def find_deepest(root: N, parts: Tokens, step: Callable[[N, str], N | None]) -> N:
    """Return the node under `root` that `parts` leads to, or the last existing node in that path.

    `step` returns the child of a node for a token, or None.
    """
    node = root
    for token in parts:
        child = step(node, token)
        if child is None:
            return node
        node = child
    return node


@dataclass(frozen=True, slots=True)
class EscapedText:
    """A text that a JSON file has in quotes.

    Attributes:
        content: the content of the file.
        offsets: the offset in the file of each character, and of the closing quote.
    """

    content: str
    offsets: array[int]


@dataclass(slots=True)
class JsonText:
    """JSON text in a file, in a scalar of a YAML file, or in quotes in a JSON file, that locates its parts.

    Attributes:
        text: the JSON text, which may have comments.
        place: converts an offset in `text` to the place in the user's file.
        read_block: returns the content of the YAML file whose literal block (`|`) the text is, or None.
        escaped: the text in the quotes of a JSON file, or None.
    """

    text: str
    place: Callable[[int], Source]
    read_block: Callable[[], str | None] = lambda: None
    escaped: EscapedText | None = None
    _scan: Scan | None = field(default=None, repr=False)

    def locate(self, parts: Tokens) -> Source:
        """Return the nearest place to `parts`, or the start of the text if it is not JSON."""
        try:
            values = self.scan()
        except JsonSyntaxError:
            return self.place(0)
        return self.place(values.offsets[find_deepest(0, parts, values.child)])

    def locate_key(self, parts: Tokens) -> Source:
        """Return the place of the key of the value at `parts`, which exists, or of the value if it has no key."""
        values = self.scan()
        number = find_deepest(0, parts, values.child)
        return self.place(values.keys[number] if values.keys[number] >= 0 else values.offsets[number])

    def scan(self) -> Scan:
        """Scan the text once for the places of its values.

        Raises:
            JsonSyntaxError: if it is not JSON.
        """
        self._scan = self._scan or scan(self.text)
        return self._scan


class JsonSyntaxError(ValueError):
    """The text is not JSON.

    Attributes:
        offset: the offset of the error in the text.
        message: the message.
        fix: the text to write, or "".
    """

    def __init__(self, offset: int, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Scan:
    """The places of all values of a JSON text. Values are numbered in document order, each before its members.

    Attributes:
        offsets: the offset of each value.
        keys: the offset of its key, -1 outside of objects.
        ends: the number of the first value after it and its members.
        stops: the offset of its end.
        duplicates: the repeated keys, with the offset of the repetition.
        items: cached members of lists.
        members: cached members of objects by key; the first of repeated keys counts.
    """

    text: str
    # Plain numbers: five megabytes of JSON are a million values, and must not become a million objects.
    offsets: array[int] = field(default_factory=lambda: array("q"))
    keys: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    stops: array[int] = field(default_factory=lambda: array("q"))
    duplicates: list[tuple[str, int]] = field(default_factory=list)
    items: dict[int, list[int]] = field(default_factory=dict)
    members: dict[int, dict[str, int]] = field(default_factory=dict)

    def child(self, number: int, token: str) -> int | None:
        """Return the member `token` of the value `number`, or None. The first of repeated keys counts."""
        opening = self.text[self.offsets[number]]
        if opening == "{":
            if number not in self.members:
                # Backwards, so that the first of equal keys stays.
                members = reversed(list(self.members_of(number)))
                self.members[number] = {
                    json.loads(self.text[self.keys[member] : self.key_end(member)]): member for member in members
                }
            return self.members[number].get(token)
        if opening == "[" and _INDEX.fullmatch(token):
            if number not in self.items:
                self.items[number] = list(self.members_of(number))
            items = self.items[number]
            return items[int(token)] if int(token) < len(items) else None
        return None

    def members_of(self, number: int) -> Iterator[int]:
        """Yield the numbers of the direct members of an object or list."""
        member = number + 1
        while member < self.ends[number]:
            yield member
            member = self.ends[member]

    def key_end(self, number: int) -> int:
        """Return the offset of the end of the key of a member of an object."""
        match = _STRING.match(self.text, self.keys[number])
        return match.end() if match else self.keys[number]


# Jackson, as Avro sets it up, allows both kinds of comments (Schema.Parser).
_BLANK: Final = re.compile(r"(?:[ \t\n\r]++|/\*.*?\*/|//[^\r\n]*+)*+", re.DOTALL)
_VALID_STRING_PART: Final = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+')
_STRING: Final = re.compile(_VALID_STRING_PART.pattern + '"')
SCALAR: Final = re.compile(
    _STRING.pattern + r"|(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null)(?![\w.+-])"
)
_JSON_LITERALS: Final = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_INDEX: Final = re.compile(r"[0-9]{1,9}")
_WORD: Final = re.compile(r"[\w.$+-]{1,40}")


def scan(text: str) -> Scan:
    """Find the places of all values of a JSON text, which may have comments.

    Raises:
        JsonSyntaxError: if it is not JSON, or is nested deeper than MAX_DEPTH.
    """
    return _Scanner(text).scan()


class _Scanner:
    """Scans a text in one pass, with its own stack instead of recursion."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self.result = Scan(text)
        # The open containers: the number of each with its keys so far, or None for a list.
        self.open: list[tuple[int, set[str] | None]] = []
        self.key = -1

    def scan(self) -> Scan:
        self._skip_blanks()
        while self._read_value() or self._read_separator():
            pass
        if self.offset < len(self.text):
            raise _build_syntax_error(self.text, self.offset, "the end of the text")
        return self.result

    def _read_value(self) -> bool:
        """Read a scalar or the start of a container; return whether a value of a container follows."""
        number = len(self.result.offsets)
        self.result.offsets.append(self.offset)
        self.result.keys.append(self.key)
        self.result.ends.append(number + 1)
        self.result.stops.append(self.offset)
        character = self._peek()
        if character and character in "[{":
            if len(self.open) == MAX_DEPTH:
                raise JsonSyntaxError(self.offset, f"this is nested more than {MAX_DEPTH} levels deep")
            self.open.append((number, set() if character == "{" else None))
            self.offset += 1
            self._skip_blanks()
            if self._close_container():
                return False
            self._read_key()
            return True
        match = SCALAR.match(self.text, self.offset)
        if match is None:
            raise _build_syntax_error(self.text, self.offset, "a value")
        self.offset = self.result.stops[number] = match.end()
        return False

    def _read_separator(self) -> bool:
        """Close all containers that end here, and return whether another value follows."""
        self._skip_blanks()
        while self.open:
            if self._close_container():
                self._skip_blanks()
                continue
            comma = self.offset
            if self._peek() != ",":
                raise _build_syntax_error(self.text, comma, f"`,` or `{self._closing}`")
            self.offset += 1
            self._skip_blanks()
            if self._peek() == self._closing:
                raise JsonSyntaxError(comma, f"there is a comma before `{self._closing}`", "remove the comma")
            self._read_key()
            return True
        return False

    def _read_key(self) -> None:
        """Read a key and its colon in an object."""
        keys = self.open[-1][1]
        self.key = -1
        if keys is None:
            return
        match = _STRING.match(self.text, self.offset)
        if match is None:
            raise _build_syntax_error(self.text, self.offset, "a key in double quotes")
        key = json.loads(match[0])
        if key in keys:
            self.result.duplicates.append((key, self.offset))
        keys.add(key)
        self.key = self.offset
        self.offset = match.end()
        self._skip_blanks()
        if self._peek() != ":":
            raise _build_syntax_error(self.text, self.offset, "`:` after the key")
        self.offset += 1
        self._skip_blanks()

    @property
    def _closing(self) -> str:
        return "]" if self.open[-1][1] is None else "}"

    def _close_container(self) -> bool:
        if self._peek() != self._closing:
            return False
        self.offset += 1
        number, _ = self.open.pop()
        self.result.ends[number] = len(self.result.offsets)
        self.result.stops[number] = self.offset
        return True

    def _peek(self) -> str:
        return self.text[self.offset : self.offset + 1]

    def _skip_blanks(self) -> None:
        blank = _BLANK.match(self.text, self.offset)
        self.offset = blank.end() if blank else self.offset


def _build_syntax_error(text: str, offset: int, expected: str) -> JsonSyntaxError:
    """Build the error for the text at `offset`, where `expected` was expected."""
    if not text.strip():
        return JsonSyntaxError(0, "the definition is empty")
    if offset >= len(text):
        return JsonSyntaxError(len(text), f"the text ends where {expected} was expected")
    if text.startswith("/*", offset):
        return JsonSyntaxError(offset, "this comment is never closed", "write `*/` at its end")
    if text[offset] == '"' and not _STRING.match(text, offset):
        return _build_string_error(text, offset)
    word = _WORD.match(text, offset) or _STRING.match(text, offset)
    raw = word[0] if word else text[offset]
    actual = f"`{raw[:40]}`" if raw.isprintable() else f"the character U+{ord(raw[0]):04X}"
    fix = 'put text in double quotes: "..."' if text[offset] == "'" or actual[1:2].isalpha() else ""
    if expected.startswith("`,` or"):
        fix = (
            f"put a comma before {actual}"
            if word
            else f"write {expected[7:]} before it"
            if text[offset] in "]}"
            else fix
        )
    if expected == "a value" and text[offset] == ",":
        fix = "remove this comma, or write the value before it"
    if word and word[0] in _JSON_LITERALS:
        fix = f"write `{_JSON_LITERALS[word[0]]}`"
    return JsonSyntaxError(offset, f"expected {expected}, found {actual}", fix)


def _build_string_error(text: str, offset: int) -> JsonSyntaxError:
    valid_part = _VALID_STRING_PART.match(text, offset)
    end = valid_part.end() if valid_part else offset
    character = text[end : end + 1]
    if character in ("", "\n", "\r"):
        return JsonSyntaxError(
            offset, "this text in quotes does not end on its line", 'close it with `"`, and write line breaks as `\\n`'
        )
    if character == "\\":
        return JsonSyntaxError(
            end,
            f"`{text[end : end + 2]}` is not a JSON escape",
            "write `\\\\` for a backslash, `\\u00e9` for a character",
        )
    return JsonSyntaxError(
        end,
        f"a text in quotes contains the control character U+{ord(character):04X}",
        f"write `\\u{ord(character):04x}`",
    )


# YAML nodes


def find_node(root: yaml.Node, parts: Tokens) -> yaml.Node:
    """Return the YAML node under `root` that `parts` leads to, or the last existing node in that path."""
    return find_deepest(root, parts, _get_child)


def locate_node(path: str, node: yaml.Node) -> Source:
    """Return the place of `node` in the file `path`. It has an end only if the node is on one line."""
    mark = node.start_mark
    is_one_line = node.end_mark.line == mark.line
    return Source(path, mark.line + 1, mark.column + 1, node.end_mark.column + 1 if is_one_line else None)


def find_key_node(mapping: yaml.Node, key: str) -> yaml.Node | None:
    """Return the node of the key in a mapping, or None if `mapping` does not have it or is not a mapping."""
    pair = _find_member(mapping, key) if isinstance(mapping, yaml.MappingNode) else None
    return pair[0] if pair else None


def _find_member(mapping: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the nodes of a key and its value, or None. The first of repeated keys counts."""
    if len(mapping.value) > _MAX_SCANNED_MEMBERS:
        return _index_members(mapping).get(key)
    for pair in mapping.value:
        if pair[0].value == key and isinstance(pair[0], yaml.ScalarNode):
            return pair  # type: ignore[no-any-return]
    return None


_MAX_SCANNED_MEMBERS: Final = 16
"""Up to this size, a mapping is scanned: that is faster than building an index."""


@lru_cache(maxsize=4)  # a caller looks up thousands of keys of a large mapping
def _index_members(mapping: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """Map the text of each key to the nodes of its key and value. The first of repeated keys counts."""
    pairs = (pair for pair in reversed(mapping.value) if isinstance(pair[0], yaml.ScalarNode))
    return {key.value: (key, value) for key, value in pairs}


def _get_child(node: yaml.Node, token: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        pair = _find_member(node, token)
        return pair[1] if pair else None
    if isinstance(node, yaml.SequenceNode) and _INDEX.fullmatch(token) and int(token) < len(node.value):
        item: yaml.Node = node.value[int(token)]
        return item
    return None
