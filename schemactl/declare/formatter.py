"""The layout of YAML files: indentation, spaces, blank lines, and the order of a declaration's keys.

Whatever a person chose stays: comments, quotes, numbers as they are spelt, block or flow style, line breaks. Only blanks change, and whole
entries move. That is why no library writes the file anew: those that keep comments break and join lines by rules of their own, and attach
a comment to the key before it, which goes wrong where keys change places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from schemactl.declare.yaml_text import COMPOSER, compose

_STEP: Final = 2

_ORDERS: Final[Mapping[str, Sequence[str]]] = {
    "topic": (
        *("topic", "partitions", "generation", "renamed_from", "schema_compatibility_strategy", ""),
        *(
            "reader",
            "lifecycle",
            "owner",
            "description",
            "labels",
            "links",
            "deprecated",
            "clients",
            "schema",
        ),
    ),
    "namespace": (
        *("namespace", "schema_compatibility_strategy", "is_allow_auto_update_schema"),
        *("schema_validation_enforced", "", "owner", "description", "labels", "links", "deprecated"),
    ),
    "schema": (
        *("type", "encoding", "key", "value", "definition", "proto", "message", "references", ""),
        "properties",
    ),
}
"""The keys of each kind of mapping as docs/reference/declarations.md lists them; "" stands for all others, in their order."""

_INSIDE: Final[Mapping[str, Sequence[str]]] = {"topic": ("schema",), "schema": ("key", "value")}
"""Which keys of it hold a schema."""

_FIXED: Final = re.compile(r"&|[|>][0-9]?\+")
"""What has its place: an anchor, which must come before its alias, and a text that the blank lines behind it are part of."""

_OTHER_LINE_ENDS: Final = ("\r", "\x85", "\u2028", "\u2029")

_PLACED: Final = (yaml.KeyToken, yaml.BlockEntryToken)
"""What stands at the indentation of its level."""

_OPENING: Final = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken)
_CLOSING: Final = (yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_VISIBLE: Final = (
    *(yaml.BlockEntryToken, yaml.ValueToken, yaml.FlowEntryToken, *_OPENING, *_CLOSING),
    *(yaml.ScalarToken, yaml.AliasToken, yaml.AnchorToken, yaml.TagToken),
    *(yaml.DocumentStartToken, yaml.DocumentEndToken),
)


def laid_out(path: str, text: str) -> str:
    """Return the YAML `text` of the file `path` laid out.

    Declarations of topics and namespaces get their keys in order. A text with explicit keys (`? `), directives, a block
    (`|`, `>`) without words or line ends of other systems comes back as it is.
    """
    text = text.replace("\r\n", "\n")
    if any(mark in text for mark in _OTHER_LINE_ENDS):
        return text
    if not text.endswith("\n"):
        # A text in block style that ends with the file would get a line end of its own.
        if _last_is_block(path, text):
            return text
        text += "\n"
    layout = _Layout(text)
    placed = layout.text()
    if layout.is_odd:
        return text
    # After that, a blank line that goes with an entry becomes no part of a text that it comes to stand behind.
    ordered = _ordered(path, placed)
    return placed if ordered == placed else _Layout(ordered).text()


def _last_is_block(path: str, text: str) -> bool:
    """Return whether a text in block style ends the file."""
    nodes = compose(path, text.encode())
    if not nodes:
        return False
    node = nodes[-1]
    while isinstance(node, yaml.CollectionNode) and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


# The order of keys.


def _ordered(path: str, text: str) -> str:
    """Return the text with the entries of each declaration in the order of `_ORDERS`."""
    lines = text.split("\n")
    for root in compose(path, text.encode()):
        if not isinstance(root, yaml.MappingNode):
            continue
        names = {key.value for key, _ in root.value}
        kind = next((each for each in ("topic", "namespace") if each in names), None)
        if kind and not any(map(_FIXED.search, lines[root.start_mark.line : root.end_mark.line + 1])):
            _order(lines, root, kind, is_root=True)
    return "\n".join(lines)


def _order(lines: list[str], node: yaml.MappingNode, kind: str, *, is_root: bool = False) -> None:
    """Put the entries of a mapping in order, and those of the schemas in it, where each begins a line of its own."""
    for key, value in node.value:
        if key.value in _INSIDE.get(kind, ()) and isinstance(value, yaml.MappingNode):
            _order(lines, value, "schema")
    starts = [key.start_mark.line for key, _ in node.value]
    if node.flow_style or any(
        lines[key.start_mark.line][: key.start_mark.column].strip() for key, _ in node.value
    ):
        return
    order = _ORDERS[kind]
    ranks = [order.index(key.value if key.value in order else "") for key, _ in node.value]
    if ranks == sorted(ranks):
        return
    ends = [_after(lines, _last_line(value) + 1, node.start_mark.column) for _, value in node.value]
    first = starts[0]
    while not is_root and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    entries = [lines[start:end] for start, end in zip([first, *ends[:-1]], ends, strict=True)]
    moved = sorted(range(len(entries)), key=lambda number: ranks[number])
    lines[first : ends[-1]] = [line for number in moved for line in entries[number]]


def _after(lines: Sequence[str], line: int, column: int) -> int:
    """Return the number of the first line from `line` on that is no comment further right than `column`."""
    while line < len(lines) and lines[line].lstrip().startswith("#") and lines[line].index("#") > column:
        line += 1
    return line


def _last_line(node: yaml.Node) -> int:
    """Return the number of the last line of a value; blank lines after a text are none of it."""
    if isinstance(node, yaml.ScalarNode):
        if node.style in ("|", ">"):
            return int(node.start_mark.line) + max(1, _rows(node))
        return int(node.end_mark.line)
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        return int(node.end_mark.line)
    last = node.value[-1]
    return _last_line(last[1] if isinstance(node, yaml.MappingNode) else last)


def _rows(node: yaml.ScalarNode) -> int:
    """Return how many lines a text in block style has below its first."""
    return int(node.end_mark.line) - int(node.start_mark.line) - (0 if node.end_mark.column else 1)


# The blanks.


@dataclass(frozen=True, slots=True)
class _Level:
    """A block collection: the column where its entries stand, and the one where they will.

    Attributes:
        is_sequence: of a list, which may stand as far left as the key that it belongs to.
        is_implied: the scanner has no token for it.
    """

    old: int
    new: int
    is_sequence: bool
    is_implied: bool = False

    @property
    def content(self) -> int:
        """The column that an entry's own lines go from."""
        return self.new + (_STEP if self.is_sequence else 0)


@dataclass(slots=True)
class _Row:
    """Tokens that follow one another on one line, or on several where one of them goes over lines.

    Attributes:
        first, last: the numbers of its lines in the text.
        old, new: its indentation.
        columns: where what stands in it may have comments of its own: old column to new.
    """

    first: int
    old: int
    new: int
    last: int = 0
    text: str = ""
    columns: dict[int, int] = field(default_factory=dict)


class _Layout:
    """One run over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.source = text
        self.lines = text.split("\n")
        self.levels: list[_Level] = []
        self.depth = 0
        self.rows: list[_Row] = []
        self.before: Any = None
        self.is_odd = False

    def text(self) -> str:
        """Return the text as it is laid out."""
        scanner = COMPOSER(self.source)
        while scanner.check_token():
            self._token(scanner.get_token())
            if self.is_odd:
                return self.source
        if self.rows:
            self._end_row()
        lines = [line.rstrip() if row is None else line for line, row in self._lines()]
        return "".join(f"{line}\n" for line in lines)

    def _token(self, token: Any) -> None:
        is_block = isinstance(token, yaml.ScalarToken) and token.style in ("|", ">")
        if isinstance(token, yaml.DirectiveToken) or (is_block and not token.value.strip()):
            self.is_odd = True
        elif isinstance(token, yaml.BlockMappingStartToken | yaml.BlockSequenceStartToken):
            self._open(token, is_sequence=isinstance(token, yaml.BlockSequenceStartToken))
        elif isinstance(token, yaml.BlockEndToken):
            self._drop_implied()
            self.levels.pop()
        elif isinstance(token, yaml.KeyToken) and not self.depth:
            self._drop_implied()
        elif isinstance(token, yaml.BlockEntryToken) and not self.levels[-1].is_sequence:
            self._open(token, is_sequence=True, is_implied=True)
        if isinstance(token, _VISIBLE):
            self._add(token)
        elif isinstance(token, yaml.KeyToken):
            self.is_odd |= self.source[token.start_mark.index : token.end_mark.index] == "?"

    def _open(self, token: Any, *, is_sequence: bool, is_implied: bool = False) -> None:
        new = self.levels[-1].new + _STEP if self.levels else 0
        self.levels.append(_Level(token.start_mark.column, new, is_sequence, is_implied))

    def _drop_implied(self) -> None:
        if self.levels and self.levels[-1].is_implied:
            self.levels.pop()

    def _add(self, token: Any) -> None:
        """Put a token behind the one before it, or on a line of its own."""
        start, end = token.start_mark, token.end_mark
        if isinstance(token, _CLOSING):
            self.depth -= 1
        if self.before is None or self._last_line_of(self.before) != start.line:
            if self.rows:
                self._end_row()
            self.rows.append(_Row(start.line, start.column, self._indentation(token)))
        else:
            self.rows[-1].text += self._gap(token)
        row = self.rows[-1]
        if self.levels and not self.depth:
            row.columns.setdefault(self.levels[-1].old, self.levels[-1].new)
        row.text += self._written(token, self.source[start.index : end.index])
        row.last = self._last_line_of(token)
        if isinstance(token, _OPENING):
            self.depth += 1
        self.before = token

    def _end_row(self) -> None:
        """Add the comment at the end of its line to the last row."""
        end = self.before.end_mark
        if end.column == 0 and end.index and isinstance(self.before, yaml.ScalarToken):
            return
        rest = self.lines[end.line][end.column :].rstrip()
        self.rows[-1].text += rest

    def _last_line_of(self, token: Any) -> int:
        """Return the number of the line that the token ends on; of a text in block style the last one that is not blank."""
        if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
            return int(token.start_mark.line) + self._block(token).count("\n")
        return int(token.end_mark.line)

    def _block(self, token: Any) -> str:
        """Return the text of a block scalar, its header with it, without what ends the last line of it."""
        written: str = self.source[token.start_mark.index : token.end_mark.index]
        header, _, content = written.partition("\n")
        lines = content.removesuffix("\n").split("\n")
        # With `+` the blank lines at its end are part of it, and so are those that go further right than the text.
        if "+" not in header.partition("#")[0]:
            column = self._block_column(header, lines)
            while lines and not lines[-1].strip(" ") and len(lines[-1]) <= column:
                lines.pop()
        return "\n".join([header, *lines])

    def _block_column(self, header: str, lines: Sequence[str]) -> int:
        """Return the column where the lines of a text in block style start."""
        said = next((int(letter) for letter in header.partition("#")[0] if letter.isdigit()), None)
        if said is not None:
            return said + (self.levels[-1].old if self.levels else 0)
        return next((len(line) - len(line.lstrip(" ")) for line in lines if line.strip(" ")), 0)

    def _indentation(self, token: Any) -> int:
        """Return the new column of a token that begins a line."""
        level = self.levels[-1] if self.levels else None
        if level is None or isinstance(token, yaml.DocumentStartToken | yaml.DocumentEndToken):
            return _STEP * self.depth
        if self.depth:
            return level.content + _STEP * self.depth
        if isinstance(token, _CLOSING):
            return level.content
        if isinstance(token, yaml.BlockEntryToken) or self._is_key(token):
            return level.new
        return level.content + (0 if level.is_sequence else _STEP)

    def _is_key(self, token: Any) -> bool:
        """Whether a token begins an entry of the innermost mapping."""
        return not self.levels[-1].is_sequence and token.start_mark.column == self.levels[-1].old

    def _gap(self, token: Any) -> str:
        """Return the blanks between the token before and this one on the same line."""
        before = self.before
        if isinstance(token, yaml.ValueToken):
            return " " if isinstance(before, yaml.AliasToken) else ""
        if isinstance(before, _OPENING) or isinstance(token, (*_CLOSING, yaml.FlowEntryToken)):
            return ""
        return " "

    def _written(self, token: Any, written: str) -> str:
        """Return the token's own text, whose further lines stand below its level."""
        if not isinstance(token, yaml.ScalarToken) or "\n" not in written:
            return written
        column = (self.levels[-1].content if self.levels else 0) + _STEP * self.depth
        inner = column if self.levels and self.levels[-1].is_sequence and not self.depth else column + _STEP
        inner = inner if self.levels else 0
        if token.style not in ("|", ">"):
            first, *rest = written.split("\n")
            return "\n".join(
                [
                    first.rstrip(" ") if not first.endswith("\\ ") else first,
                    *(_set(line, inner) for line in rest),
                ]
            )
        header, *lines = self._block(token).split("\n")
        return "\n".join([header.rstrip(), *self._shifted(header, lines, inner)])

    def _shifted(self, header: str, lines: Sequence[str], column: int) -> Iterator[str]:
        """Yield the lines of a text in block style, which starts at `column` unless its header says how far it is indented."""
        old = self._block_column(header, lines)
        if self.levels and any(letter.isdigit() for letter in header.partition("#")[0]):
            column = old - self.levels[-1].old + self.levels[-1].new
        for line in lines:
            yield " " * column + line[old:] if len(line) > old else ""

    # The lines.

    def _lines(self) -> Iterator[tuple[str, _Row | None]]:
        """Yield every line, with the row that it is of; None: it is blank, or a comment."""
        at, was_blank = 0, True
        for number, row in enumerate(self.rows):
            between = [*self._between(at, row.first, number)]
            # No blank line at the start of a document or before its end.
            if row.text.startswith(("---", "...")) and row.new == 0:
                while between and not between[-1]:
                    between.pop()
            for line in between:
                if line or not was_blank:
                    yield line, None
                was_blank = not line
            yield " " * row.new + row.text, row
            was_blank = row.text.partition(" ")[0] in ("---", "...")
            at = row.last + 1
        rest = [*self._between(at, len(self.lines), len(self.rows))]
        while rest and not rest[-1]:
            rest.pop()
        for line in rest:
            if line or not was_blank:
                yield line, None
            was_blank = not line

    def _between(self, first: int, last: int, number: int) -> Iterator[str]:
        """Yield the comments and blank lines of these lines, which stand before the row of that number."""
        for line in self.lines[first:last]:
            comment = line.strip()
            column = len(line) - len(line.lstrip())
            yield " " * self._comment_column(column, number) + comment if comment else ""

    def _comment_column(self, old: int, number: int) -> int:
        """Return the new column of a comment: that of the row below it, or of what above it stands as far right."""
        below = self.rows[number] if number < len(self.rows) else None
        if below and below.old == old:
            return below.new
        for row in reversed(self.rows[:number]):
            if old in row.columns:
                return row.columns[old]
            if min(row.columns, default=row.old) < old:
                break
        return below.new if below else 0


def _set(line: str, column: int) -> str:
    """Return a further line of a text that goes over lines, which starts at `column`."""
    stripped = line.lstrip(" \t")
    return " " * column + stripped if stripped else ""
