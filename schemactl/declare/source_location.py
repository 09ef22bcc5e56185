"""Find the line and column of a JSON pointer, in JSON text and in composed YAML nodes.

Nothing here runs unless something has to be shown: a definition is read with the fast `json` first, and scanned for
places only when a problem or a finding points into it.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeVar

import yaml

from schemactl.core.errors import Source

MAX_DEPTH: Final = 250
"""Objects and lists may be nested this deep, in JSON as in YAML (a broker's JSON parser stops at 1,000)."""

Tokens = tuple[str, ...]
"""The parts of a JSON pointer; () is the whole."""

N = TypeVar("N")


def tokens(pointer: str) -> Tokens:
    """Return the parts of `pointer` (RFC 6901); the root is "" and, as Avro's Java prints it, "/"."""
    if pointer in ("", "/"):
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/"))


def pointer(parts: Sequence[str | int]) -> str:
    """Return the JSON pointer of `parts` (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def place(path: str, text: str, offset: int) -> Source:
    """Return the place of the code point at `offset` of the file `path` with content `text`."""
    column = offset - text.rfind("\n", 0, offset)
    word = _WHAT_STANDS_THERE.match(text, offset)
    return Source(path, text.count("\n", 0, offset) + 1, column, column + len(word[0]) if word else None)


_WHAT_STANDS_THERE: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\w.+-]+|[^\s\w]')
"""A text, a word or one character, which an editor can underline."""


def nearest(root: N, parts: Tokens, step: Callable[[N, str], N | None]) -> N:
    """Return the node under `root` that `parts` leads to, or the last one that exists on the way.

    `step` gives a node's child by its token, None where there is none.
    """
    node = root
    for token in parts:
        child = step(node, token)
        if child is None:
            return node
        node = child
    return node


@dataclass(slots=True)
class JsonText:
    """JSON text in a file, or in a scalar of a YAML file, that can say where its parts are.

    Attributes:
        text: the JSON, comments allowed.
        place: from an offset in `text` to the place in the user's file.
    """

    text: str
    place: Callable[[int], Source]
    _scan: Scan | None = field(default=None, repr=False)

    def locate(self, parts: Tokens) -> Source:
        """Return the nearest place to `parts`; the start of the text if it is not JSON."""
        try:
            found = self.scan()
        except JsonSyntaxError:
            return self.place(0)
        return self.place(found.offsets[nearest(0, parts, found.child)])

    def locate_key(self, parts: Tokens) -> Source:
        """Return the place of the key whose value is at `parts`, which exists; of the value where it has no key."""
        found = self.scan()
        number = nearest(0, parts, found.child)
        return self.place(found.keys[number] if found.keys[number] >= 0 else found.offsets[number])

    def scan(self) -> Scan:
        """Return the places of its values, which are looked for once. Raise JsonSyntaxError where it is not JSON."""
        self._scan = self._scan or scan(self.text)
        return self._scan


def node_at(root: yaml.Node, parts: Tokens) -> yaml.Node:
    """Return the YAML node under `root` that `parts` leads to, or the last one that exists on the way."""
    return nearest(root, parts, _yaml_step)


def node_place(path: str, node: yaml.Node) -> Source:
    """Where `node` starts in the file `path`."""
    mark = node.start_mark
    is_one_line = node.end_mark.line == mark.line
    return Source(path, mark.line + 1, mark.column + 1, node.end_mark.column + 1 if is_one_line else None)


class JsonSyntaxError(ValueError):
    """Text that is not JSON: the offset of what was found, what was expected there, and perhaps what to write."""

    def __init__(self, offset: int, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.offset = offset
        self.what = what
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Scan:
    """The places of every value of a JSON text, the whole first, each before its members.

    Attributes:
        offsets: where each value starts.
        keys: where its key starts, -1 outside of objects.
        ends: the number of the first value that is not inside it.
        stops: where its text ends.
        duplicates: repeated keys, with the offset of the repetition.
        items: the members of the lists that were asked for.
        members: the members of the objects that were asked for, by key; of a repeated key the first.
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
        """Return the member of the value `number` that a pointer calls `token`; of a repeated key the first."""
        opening = self.text[self.offsets[number]]
        if opening == "{":
            if number not in self.members:
                # Backwards, so that the first of equal keys stays.
                inside = reversed(list(self.members_of(number)))
                self.members[number] = {self._key(member): member for member in inside}
            return self.members[number].get(token)
        if opening == "[" and _INDEX.fullmatch(token):
            if number not in self.items:
                self.items[number] = list(self.members_of(number))
            items = self.items[number]
            return items[int(token)] if int(token) < len(items) else None
        return None

    def members_of(self, number: int) -> Iterator[int]:
        """Yield the numbers of the values right inside an object or list."""
        member = number + 1
        while member < self.ends[number]:
            yield member
            member = self.ends[member]

    def key_end(self, number: int) -> int:
        """Return where the key of a member of an object ends."""
        match = _STRING.match(self.text, self.keys[number])
        return match.end() if match else self.keys[number]

    def _key(self, number: int) -> str:
        text: str = json.loads(self.text[self.keys[number] : self.key_end(number)])
        return text


# Jackson, as Avro sets it up, allows both kinds of comments (Schema.Parser).
_BLANK: Final = re.compile(r"(?:[ \t\n\r]++|/\*.*?\*/|//[^\r\n]*+)*+", re.DOTALL)
_GOOD_STRING_PART: Final = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+')
_STRING: Final = re.compile(_GOOD_STRING_PART.pattern + '"')
SCALAR: Final = re.compile(
    _STRING.pattern + r"|(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null)(?![\w.+-])"
)
_OTHER_LANGUAGES: Final = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_INDEX: Final = re.compile(r"[0-9]{1,9}")
_WORD: Final = re.compile(r"[\w.$+-]{1,40}")


def scan(text: str) -> Scan:
    """Return the places of every value of `text`, which is read as `json` does, comments aside.

    Raises:
        JsonSyntaxError: it is not JSON, or nested deeper than MAX_DEPTH.
    """
    return _Scanner(text).scan()


class _Scanner:
    """One pass over a text, with a stack of its own: a deep text must not become deep calls."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found = Scan(text)
        # The open containers: the number of each, and the keys it has so far; None for a list.
        self.open: list[tuple[int, set[str] | None]] = []
        self.key = -1

    def scan(self) -> Scan:
        self._skip()
        while self._opened() or self._continued():
            pass
        if self.at < len(self.text):
            raise _unexpected(self.text, self.at, "the end of the text")
        return self.found

    def _opened(self) -> bool:
        """After a value was read, return whether it is a container whose first member's value starts here."""
        number = len(self.found.offsets)
        self.found.offsets.append(self.at)
        self.found.keys.append(self.key)
        self.found.ends.append(number + 1)
        self.found.stops.append(self.at)
        character = self._peek()
        if character and character in "[{":
            return self._entered(number, set() if character == "{" else None)
        match = SCALAR.match(self.text, self.at)
        if match is None:
            raise _unexpected(self.text, self.at, "a value")
        self.at = self.found.stops[number] = match.end()
        return False

    def _entered(self, number: int, keys: set[str] | None) -> bool:
        if len(self.open) == MAX_DEPTH:
            raise JsonSyntaxError(self.at, f"this is nested more than {MAX_DEPTH} levels deep")
        self.open.append((number, keys))
        self.at += 1
        self._skip()
        if self._closed():
            return False
        self._read_key()
        return True

    def _continued(self) -> bool:
        """Close every container that ends here; return whether another member's value starts here."""
        self._skip()
        while self.open:
            if self._closed():
                self._skip()
                continue
            comma = self.at
            if self._peek() != ",":
                raise _unexpected(self.text, comma, f"`,` or `{self._closing}`")
            self.at += 1
            self._skip()
            if self._peek() == self._closing:
                raise JsonSyntaxError(comma, f"a comma stands before `{self._closing}`", "remove the comma")
            self._read_key()
            return True
        return False

    def _read_key(self) -> None:
        """Read a key and its colon in an object."""
        keys = self.open[-1][1]
        self.key = -1
        if keys is None:
            return
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise _unexpected(self.text, self.at, "a key in double quotes")
        key = json.loads(match[0])
        if key in keys:
            self.found.duplicates.append((key, self.at))
        keys.add(key)
        self.key = self.at
        self.at = match.end()
        self._skip()
        if self._peek() != ":":
            raise _unexpected(self.text, self.at, "`:` after the key")
        self.at += 1
        self._skip()

    @property
    def _closing(self) -> str:
        return "]" if self.open[-1][1] is None else "}"

    def _closed(self) -> bool:
        if self._peek() != self._closing:
            return False
        self.at += 1
        number, _ = self.open.pop()
        self.found.ends[number] = len(self.found.offsets)
        self.found.stops[number] = self.at
        return True

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at


def _unexpected(text: str, offset: int, expected: str) -> JsonSyntaxError:
    """Return the error about the text at `offset`, where `expected` should be."""
    if not text.strip():
        return JsonSyntaxError(0, "the definition is empty")
    if offset >= len(text):
        return JsonSyntaxError(len(text), f"the text ends where {expected} was expected")
    if text.startswith("/*", offset):
        return JsonSyntaxError(offset, "this comment is never closed", "write `*/` at its end")
    if text[offset] == '"' and not _STRING.match(text, offset):
        return _bad_string(text, offset)
    word = _WORD.match(text, offset) or _STRING.match(text, offset)
    found = word[0] if word else text[offset]
    found = f"`{found[:40]}`" if found.isprintable() else f"the character U+{ord(found[0]):04X}"
    fix = 'put text in double quotes: "..."' if text[offset] == "'" or found[1:2].isalpha() else ""
    if expected.startswith("`,` or"):
        fix = (
            f"put a comma before {found}"
            if word
            else f"write {expected[7:]} before it"
            if text[offset] in "]}"
            else fix
        )
    if expected == "a value" and text[offset] == ",":
        fix = "remove this comma, or write the value before it"
    if word and word[0] in _OTHER_LANGUAGES:
        fix = f"write `{_OTHER_LANGUAGES[word[0]]}`"
    return JsonSyntaxError(offset, f"expected {expected}, found {found}", fix)


def _bad_string(text: str, offset: int) -> JsonSyntaxError:
    good = _GOOD_STRING_PART.match(text, offset)
    at = good.end() if good else offset
    character = text[at : at + 1]
    if character in ("", "\n", "\r"):
        return JsonSyntaxError(
            offset, "this text in quotes does not end on its line", 'close it with `"`, and write line breaks as `\\n`'
        )
    if character == "\\":
        return JsonSyntaxError(
            at, f"`{text[at : at + 2]}` is no JSON escape", "write `\\\\` for a backslash, `\\u00e9` for a character"
        )
    return JsonSyntaxError(
        at, f"a text in quotes holds the control character U+{ord(character):04X}", f"write `\\u{ord(character):04x}`"
    )


def key_node(mapping: yaml.Node, key: str) -> yaml.Node | None:
    """Return the node of the key in a mapping; None if it has no such key, or is no mapping."""
    found = _members(mapping).get(key) if isinstance(mapping, yaml.MappingNode) else None
    return found[0] if found else None


@lru_cache(maxsize=4)  # who looks for one key of a large mapping looks for thousands
def _members(mapping: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """Key and value by the key's text; of a repeated key the first."""
    pairs = (pair for pair in reversed(mapping.value) if isinstance(pair[0], yaml.ScalarNode))
    return {key.value: (key, value) for key, value in pairs}


def _yaml_step(node: yaml.Node, token: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        found_pair = _members(node).get(token)
        return found_pair[1] if found_pair else None
    if isinstance(node, yaml.SequenceNode) and _INDEX.fullmatch(token) and int(token) < len(node.value):
        found: yaml.Node = node.value[int(token)]
        return found
    return None
