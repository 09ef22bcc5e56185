"""From a JSON pointer into a definition to line and column: in JSON text, and in composed YAML nodes.

Nothing here runs unless something has to be shown: a definition is read with the fast `json` first, and scanned for
places only when a problem or a finding points into it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import yaml

from schemactl.errors import Source

MAX_DEPTH: Final = 250
"""Objects and lists may be nested this deep, in JSON as in YAML (a broker's JSON parser stops at 1,000)."""

Tokens = tuple[str, ...]
"""The parts of a JSON pointer; () is the whole."""

JsonNode = int | tuple[int, "dict[str, JsonNode]"] | tuple[int, "list[JsonNode]"]
"""Where a value starts, in code points, with its children where it has any."""

N = TypeVar("N")


def tokens(pointer: str) -> Tokens:
    """The parts of `pointer` (RFC 6901); the root is "" and, as Avro's Java prints it, "/"."""
    if pointer in ("", "/"):
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/"))


def pointer(parts: Sequence[str | int]) -> str:
    """The JSON pointer of `parts` (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def place(path: str, text: str, offset: int) -> Source:
    """The place of the code point at `offset` of the file `path` with content `text`."""
    return Source(path, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def nearest(root: N, parts: Tokens, step: Callable[[N, str], N | None]) -> N:
    """The node under `root` that `parts` leads to, or the last one that exists on the way.

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
    _root: JsonNode | None = field(default=None, repr=False)

    def locate(self, parts: Tokens) -> Source:
        """The nearest place to `parts`; the start of the text when it is not JSON."""
        if self._root is None:
            try:
                self._root = scan(self.text).root
            except JsonSyntaxError:
                self._root = 0
        found = nearest(self._root, parts, _json_step)
        return self.place(found if isinstance(found, int) else found[0])


def node_at(root: yaml.Node, parts: Tokens) -> yaml.Node:
    """The YAML node under `root` that `parts` leads to, or the last one that exists on the way."""
    return nearest(root, parts, _yaml_step)


def node_place(path: str, node: yaml.Node) -> Source:
    """Where `node` starts in the file `path`."""
    mark = node.start_mark
    return Source(path, mark.line + 1, mark.column + 1)


class JsonSyntaxError(ValueError):
    """Text that is not JSON: the offset of what was found, what was expected there, and perhaps what to write."""

    def __init__(self, offset: int, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.offset = offset
        self.what = what
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Scan:
    """The places of a JSON text: its nodes, and of every repeated key the offset of the repetition."""

    root: JsonNode
    duplicates: tuple[tuple[str, int], ...]


# Jackson, as Avro sets it up, allows both kinds of comments (Schema.Parser).
_BLANK: Final = re.compile(r"(?:[ \t\n\r]+|/\*.*?\*/|//[^\n]*)*", re.DOTALL)
_STRING: Final = re.compile(
    r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"',
)
SCALAR: Final = re.compile(
    _STRING.pattern + r"|(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null)(?![\w.+-])",
)
_COMMENT: Final = re.compile(_STRING.pattern + r"|/\*.*?\*/|//[^\n]*", re.DOTALL)
_OTHER_LANGUAGES: Final = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_WORD: Final = re.compile(r"[\w.$+-]{1,40}")
_GOOD_STRING_PART: Final = re.compile(
    r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*'
)


def without_comments(text: str) -> str:
    """`text` with its comments blanked, every other character in its place."""
    return _COMMENT.sub(
        lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]), text
    )


def scan(text: str) -> Scan:
    """The places of every value of `text`, which is read as `json` does, comments aside.

    Raises:
        JsonSyntaxError: it is not JSON, or nested deeper than MAX_DEPTH.
    """
    return _Scanner(text).scan()


class _Scanner:
    """One pass over a text, with a stack of its own: a deep text must not become deep calls."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.root: JsonNode = 0
        self.open: list[dict[str, JsonNode] | list[JsonNode]] = []
        self.key = ""
        self.duplicates: list[tuple[str, int]] = []

    def scan(self) -> Scan:
        self._skip()
        while self._opened() or self._continued():
            pass
        if self.at < len(self.text):
            raise _unexpected(self.text, self.at, "the end of the text")
        return Scan(self.root, tuple(self.duplicates))

    def _opened(self) -> bool:
        """One value was read; whether it is a container whose first member's value starts here."""
        start, character = self.at, self._peek()
        if character and character in "[{":
            return self._entered(start, {} if character == "{" else [])
        match = SCALAR.match(self.text, start)
        if match is None:
            raise _unexpected(self.text, start, "a value")
        self.at = match.end()
        self._attach(start)
        return False

    def _entered(self, start: int, children: dict[str, JsonNode] | list[JsonNode]) -> bool:
        if len(self.open) == MAX_DEPTH:
            raise JsonSyntaxError(start, f"this is nested more than {MAX_DEPTH} levels deep")
        # mypy cannot tell that a pair of a union is a union of pairs.
        self._attach((start, children))  # type: ignore[arg-type]
        self.open.append(children)
        self.at += 1
        self._skip()
        if self._closed():
            return False
        self._key()
        return True

    def _continued(self) -> bool:
        """Every container that ends here is closed; whether another member's value starts here."""
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
            self._key()
            return True
        return False

    def _key(self) -> None:
        """In an object, the key and its colon were read."""
        children = self.open[-1]
        if isinstance(children, list):
            return
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise _unexpected(self.text, self.at, "a key in double quotes")
        self.key = json.loads(match[0])
        if self.key in children:
            self.duplicates.append((self.key, self.at))
        self.at = match.end()
        self._skip()
        if self._peek() != ":":
            raise _unexpected(self.text, self.at, "`:` after the key")
        self.at += 1
        self._skip()

    def _attach(self, node: JsonNode) -> None:
        if not self.open:
            self.root = node
        elif isinstance(children := self.open[-1], dict):
            children.setdefault(self.key, node)
        else:
            children.append(node)

    @property
    def _closing(self) -> str:
        return "}" if isinstance(self.open[-1], dict) else "]"

    def _closed(self) -> bool:
        if self._peek() != self._closing:
            return False
        self.at += 1
        self.open.pop()
        return True

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at


def _unexpected(text: str, offset: int, expected: str) -> JsonSyntaxError:
    """What to say of the text at `offset`, where `expected` should stand."""
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
    if word and word[0] in _OTHER_LANGUAGES:
        fix = f"write `{_OTHER_LANGUAGES[word[0]]}`"
    return JsonSyntaxError(offset, f"expected {expected}, found {found}", fix)


def _bad_string(text: str, offset: int) -> JsonSyntaxError:
    good = _GOOD_STRING_PART.match(text, offset)
    at = good.end() if good else offset
    character = text[at : at + 1]
    if character in ("", "\n", "\r"):
        return JsonSyntaxError(
            offset,
            "this text in quotes does not end on its line",
            'close it with `"`, and write line breaks as `\\n`',
        )
    if character == "\\":
        return JsonSyntaxError(
            at,
            f"`{text[at : at + 2]}` is no JSON escape",
            "write `\\\\` for a backslash, `\\u00e9` for a character",
        )
    return JsonSyntaxError(
        at,
        f"a text in quotes holds the control character U+{ord(character):04X}",
        f"write `\\u{ord(character):04x}`",
    )


def _json_step(node: JsonNode, token: str) -> JsonNode | None:
    if isinstance(node, int):
        return None
    children = node[1]
    if isinstance(children, dict):
        return children.get(token)
    return children[int(token)] if _is_index(token, len(children)) else None


def _yaml_step(node: yaml.Node, token: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == token), None)
    if isinstance(node, yaml.SequenceNode) and _is_index(token, len(node.value)):
        found: yaml.Node = node.value[int(token)]
        return found
    return None


def _is_index(token: str, length: int) -> bool:
    return token.isascii() and token.isdigit() and len(token) < 10 and int(token) < length
