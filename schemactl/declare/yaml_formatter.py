"""Format YAML: the order of keys, the indentation and the blank lines.

Comments, quotes, the spelling of numbers, block or flow style and line breaks stay. Only blanks change, and whole entries move. No
library rewrites the file, because libraries that keep comments break and join lines by other rules, and attach a comment to the key
before it, which is wrong when keys change places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from schemactl.declare.yaml_parser import COMPOSER, compose

_STEP: Final = 2

_ORDERS: Final[Mapping[str, Sequence[str]]] = {
    "topic": (
        *("topic", "partitions", "generation", "renamed_from", "schema_compatibility_strategy", ""),
        *(
            "reader",
            "generate",
            "protobuf",
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
        *(
            "schema_validation_enforced",
            "schema_properties",
            "",
            "owner",
            "description",
            "labels",
            "links",
            "deprecated",
        ),
    ),
    "schema": (*("type", "encoding", "key", "value", "definition", "proto", "message", "references", ""), "properties"),
}
"""The keys of each kind of mapping as docs/reference/declarations.md lists them; "" means all other keys, in their order."""

_SCHEMA_KEYS: Final[Mapping[str, Sequence[str]]] = {"topic": ("schema",), "schema": ("key", "value")}
"""The keys of each kind of mapping whose values are schemas."""

_FIXED: Final = re.compile(r"&|[|>][0-9]?\+")
"""Text that must not move: an anchor, which must precede its alias, and a block scalar that includes the blank lines after it."""

_OTHER_LINE_ENDS: Final = ("\r", "\x85", "\u2028", "\u2029")

_OPENING: Final = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken)
_CLOSING: Final = (yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_VISIBLE: Final = (
    *(yaml.BlockEntryToken, yaml.ValueToken, yaml.FlowEntryToken, *_OPENING, *_CLOSING),
    *(yaml.ScalarToken, yaml.AliasToken, yaml.AnchorToken, yaml.TagToken),
    *(yaml.DocumentStartToken, yaml.DocumentEndToken),
)


def format_yaml(path: str, text: str) -> str:
    """Return the formatted YAML `text` of the file `path`.

    The keys of topics and namespaces are sorted. A text with explicit keys (`? `), directives, an empty block scalar
    (`|`, `>`) or other line ends than LF and CRLF is returned unchanged.

    Raises:
        DeclarationError: if it is not YAML.
    """
    text = text.replace("\r\n", "\n")
    nodes = compose(path, text.encode())
    if any(mark in text for mark in _OTHER_LINE_ENDS):
        return text
    if not text.endswith("\n"):
        # A final line end would become part of a block scalar at the end of the file.
        if nodes and _ends_with_block(nodes[-1]):
            return text
        text += "\n"
    indenter = _Indenter(text)
    indented = indenter.format()
    if indenter.is_unsupported:
        return text
    # Sorting comes second: blank lines that move with an entry cannot become part of a block scalar of the indented text.
    ordered = _sort_keys(path, indented)
    return indented if ordered == indented else _Indenter(ordered).format()


def _ends_with_block(node: yaml.Node) -> bool:
    """Return whether a document ends with a block scalar."""
    while isinstance(node, yaml.CollectionNode) and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


# Order of keys


def _sort_keys(path: str, text: str) -> str:
    """Sort the entries of each declaration in the order of `_ORDERS`."""
    lines = text.split("\n")
    for root in compose(path, text.encode()):
        if not isinstance(root, yaml.MappingNode):
            continue
        names = {key.value for key, _ in root.value}
        kind = next((kind for kind in ("topic", "namespace") if kind in names), None)
        if kind and not any(map(_FIXED.search, lines[root.start_mark.line : root.end_mark.line + 1])):
            _sort_entries(lines, root, kind, is_root=True)
    return "\n".join(lines)


def _sort_entries(lines: list[str], node: yaml.MappingNode, kind: str, *, is_root: bool = False) -> None:
    """Sort the entries of a mapping and of its schemas in `lines`, unless several entries share a line."""
    for key, value in node.value:
        if key.value in _SCHEMA_KEYS.get(kind, ()) and isinstance(value, yaml.MappingNode):
            _sort_entries(lines, value, "schema")
    starts = [key.start_mark.line for key, _ in node.value]
    if node.flow_style or any(lines[key.start_mark.line][: key.start_mark.column].strip() for key, _ in node.value):
        return
    order = _ORDERS[kind]
    ranks = [order.index(key.value if key.value in order else "") for key, _ in node.value]
    if ranks == sorted(ranks):
        return
    ends = []
    for _, value in node.value:
        end = _find_last_line(value) + 1
        # Comments that are further right than the keys belong to the entry above them.
        while (
            end < len(lines) and lines[end].lstrip().startswith("#") and lines[end].index("#") > node.start_mark.column
        ):
            end += 1
        ends.append(end)
    first = starts[0]
    while not is_root and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    entries = [lines[start:end] for start, end in zip([first, *ends[:-1]], ends, strict=True)]
    order_of_entries = sorted(range(len(entries)), key=lambda number: ranks[number])
    lines[first : ends[-1]] = [line for number in order_of_entries for line in entries[number]]


def _find_last_line(node: yaml.Node) -> int:
    """Return the number of the last line of a value, without the blank lines after a block scalar."""
    if isinstance(node, yaml.ScalarNode):
        if node.style in ("|", ">"):
            # The mark after a block scalar is on the next line, except at the end of a file without a line end.
            return max(int(node.start_mark.line) + 1, int(node.end_mark.line) - (0 if node.end_mark.column else 1))
        return int(node.end_mark.line)
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        return int(node.end_mark.line)
    last = node.value[-1]
    return _find_last_line(last[1] if isinstance(node, yaml.MappingNode) else last)


# Indentation and blank lines


@dataclass(frozen=True, slots=True)
class _Level:
    """A block collection.

    Attributes:
        old: the column of its entries in the source.
        new: the column of its entries in the formatted text.
        is_sequence: whether it is a list, which may start in the column of its key.
        is_implied: whether the scanner has no token for its start.
    """

    old: int
    new: int
    is_sequence: bool
    is_implied: bool = False

    @property
    def content(self) -> int:
        """The column where the content of an entry starts."""
        return self.new + (_STEP if self.is_sequence else 0)


@dataclass(slots=True)
class _Row:
    """The tokens of one line, or of several lines if a token spans them.

    Attributes:
        first, last: the numbers of its lines in the source.
        old, new: its indentation in the source and in the formatted text.
        columns: the new column of comments below it, by their old column.
    """

    first: int
    old: int
    new: int
    last: int = 0
    text: str = ""
    columns: dict[int, int] = field(default_factory=dict)


class _Indenter:
    """One pass over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.source = text
        self.lines = text.split("\n")
        self.levels: list[_Level] = []
        self.depth = 0
        self.rows: list[_Row] = []
        self.previous: Any = None
        self.is_unsupported = False

    def format(self) -> str:
        """Return the formatted text, or the source if it is not supported."""
        scanner = COMPOSER(self.source)
        while scanner.check_token():
            token = scanner.get_token()
            is_block = isinstance(token, yaml.ScalarToken) and token.style in ("|", ">")
            written = self.source[token.start_mark.index : token.end_mark.index]
            if (
                isinstance(token, yaml.DirectiveToken)
                or (is_block and not token.value.strip())
                or (isinstance(token, yaml.KeyToken) and written == "?")
            ):
                self.is_unsupported = True
                return self.source
            if isinstance(token, yaml.BlockMappingStartToken | yaml.BlockSequenceStartToken):
                self._open_level(token, is_sequence=isinstance(token, yaml.BlockSequenceStartToken))
            elif isinstance(token, yaml.BlockEndToken):
                self._close_implied_level()
                self.levels.pop()
            elif isinstance(token, yaml.KeyToken) and not self.depth:
                self._close_implied_level()
            elif isinstance(token, yaml.BlockEntryToken) and not self.levels[-1].is_sequence:
                self._open_level(token, is_sequence=True, is_implied=True)
            if isinstance(token, _VISIBLE):
                self._append_token(token)
        if self.rows:
            self._end_row()
        return "".join(f"{line}\n" for line in self._format_lines())

    def _open_level(self, token: Any, *, is_sequence: bool, is_implied: bool = False) -> None:
        new = self.levels[-1].new + _STEP if self.levels else 0
        self.levels.append(_Level(token.start_mark.column, new, is_sequence, is_implied))

    def _close_implied_level(self) -> None:
        if self.levels and self.levels[-1].is_implied:
            self.levels.pop()

    def _append_token(self, token: Any) -> None:
        """Append a token to the row of the previous one, or start a new row."""
        start, end = token.start_mark, token.end_mark
        if isinstance(token, _CLOSING):
            self.depth -= 1
        if self.previous is None or self._find_last_line(self.previous) != start.line:
            if self.rows:
                self._end_row()
            self.rows.append(_Row(start.line, start.column, self._indent_token(token)))
        elif isinstance(token, yaml.ValueToken):
            # Without a blank, the colon would be a part of the alias.
            self.rows[-1].text += " " if isinstance(self.previous, yaml.AliasToken) else ""
        elif not isinstance(self.previous, _OPENING) and not isinstance(token, (*_CLOSING, yaml.FlowEntryToken)):
            self.rows[-1].text += " "
        row = self.rows[-1]
        if self.levels and not self.depth:
            row.columns.setdefault(self.levels[-1].old, self.levels[-1].new)
        row.text += self._render_token(token, self.source[start.index : end.index])
        row.last = self._find_last_line(token)
        if isinstance(token, _OPENING):
            self.depth += 1
        self.previous = token

    def _end_row(self) -> None:
        """Append the comment at the end of its line to the last row."""
        end = self.previous.end_mark
        if end.column == 0 and end.index and isinstance(self.previous, yaml.ScalarToken):
            return
        self.rows[-1].text += self.lines[end.line][end.column :].rstrip()

    def _find_last_line(self, token: Any) -> int:
        """Return the number of the last line of a token; for a block scalar, of its last line that is not blank."""
        if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
            return int(token.start_mark.line) + self._read_block(token).count("\n")
        return int(token.end_mark.line)

    def _read_block(self, token: Any) -> str:
        """Return the header and the text of a block scalar, without its final line end."""
        written: str = self.source[token.start_mark.index : token.end_mark.index]
        header, _, content = written.partition("\n")
        lines = content.removesuffix("\n").split("\n")
        # With `+`, blank lines at the end are part of the text, and so are blank lines that are longer than its indentation.
        if "+" not in header.partition("#")[0]:
            column = self._find_block_column(header, lines)
            while lines and not lines[-1].strip(" ") and len(lines[-1]) <= column:
                lines.pop()
        return "\n".join([header, *lines])

    def _find_block_column(self, header: str, lines: Sequence[str]) -> int:
        """Return the column where the lines of a block scalar start."""
        indicator = next((int(letter) for letter in header.partition("#")[0] if letter.isdigit()), None)
        if indicator is not None:
            return indicator + (self.levels[-1].old if self.levels else 0)
        return next((len(line) - len(line.lstrip(" ")) for line in lines if line.strip(" ")), 0)

    def _indent_token(self, token: Any) -> int:
        """Return the new column of the first token of a row."""
        level = self.levels[-1] if self.levels else None
        if level is None or isinstance(token, yaml.DocumentStartToken | yaml.DocumentEndToken):
            return _STEP * self.depth
        if self.depth:
            return level.content + _STEP * self.depth
        if isinstance(token, _CLOSING):
            return level.content
        if isinstance(token, yaml.BlockEntryToken) or (
            not self.levels[-1].is_sequence and token.start_mark.column == self.levels[-1].old
        ):
            return level.new
        return level.content + (0 if level.is_sequence else _STEP)

    def _render_token(self, token: Any, written: str) -> str:
        """Return the text of a token; its second and further lines are indented below its level."""
        if not isinstance(token, yaml.ScalarToken) or "\n" not in written:
            return written
        column = (self.levels[-1].content if self.levels else 0) + _STEP * self.depth
        inner = column if self.levels and self.levels[-1].is_sequence and not self.depth else column + _STEP
        inner = inner if self.levels else 0
        if token.style not in ("|", ">"):
            first, *rest = written.split("\n")
            contents = [line.lstrip(" \t") for line in rest]
            first = first if first.endswith("\\ ") else first.rstrip(" ")
            return "\n".join([first, *(" " * inner + content if content else "" for content in contents)])
        header, *lines = self._read_block(token).split("\n")
        old = self._find_block_column(header, lines)
        if self.levels and any(letter.isdigit() for letter in header.partition("#")[0]):
            # The header has an indentation indicator, which counts from the column of the level.
            inner = old - self.levels[-1].old + self.levels[-1].new
        return "\n".join([header.rstrip(), *(" " * inner + line[old:] if len(line) > old else "" for line in lines)])

    def _format_lines(self) -> Iterator[str]:
        """Yield the rows, and the comments and blank lines between them."""
        next_line, was_blank = 0, True
        for number, row in enumerate([*self.rows, None]):
            between = []
            for line in self.lines[next_line : row.first if row else len(self.lines)]:
                comment = line.strip()
                column = len(line) - len(line.lstrip())
                between.append(" " * self._find_comment_column(column, number) + comment if comment else "")
            # No blank line at the start of a document, before its end, or at the end of the text.
            if row is None or (row.text.startswith(("---", "...")) and row.new == 0):
                while between and not between[-1]:
                    between.pop()
            for line in between:
                if line or not was_blank:
                    yield line
                was_blank = not line
            if row:
                yield " " * row.new + row.text
                was_blank = row.text.partition(" ")[0] in ("---", "...")
                next_line = row.last + 1

    def _find_comment_column(self, old: int, number: int) -> int:
        """Return the new column of a comment: the column of the row below it, or of a token above it in the same old column."""
        below = self.rows[number] if number < len(self.rows) else None
        if below and below.old == old:
            return below.new
        for row in reversed(self.rows[:number]):
            if old in row.columns:
                return row.columns[old]
            if min(row.columns, default=row.old) < old:
                break
        return below.new if below else 0
