"""The layout that `fmt` gives to YAML and JSON files, and the proof that a rewritten file still declares the same.

Whatever a person chose stays: comments, quotes, numbers as they are spelt, block or flow style, line breaks. Only blanks change, and whole
entries move. That is why no library writes the file anew: those that keep comments break and join lines by rules of their own, and attach
a comment to the key before it, which goes wrong where keys change places.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from schemactl.core import atomic_files
from schemactl.core.catalog import Topic
from schemactl.core.errors import DeclarationError, Problem
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo
from schemactl.declare import reader
from schemactl.declare.document import TopicDocument, read_documents
from schemactl.declare.files import (
    AVRO_SUFFIXES,
    YAML_SUFFIXES,
    ChangedFiles,
    Files,
    decode,
    read_bytes,
    resolve,
    shown,
)
from schemactl.declare.reader import Declared, in_roots
from schemactl.declare.references import files_of, is_pattern
from schemactl.declare.source_location import JsonSyntaxError, Scan, place, scan
from schemactl.declare.yaml_parser import COMPOSER, compose, read_yaml
from schemactl.formats import identity, same_text
from schemactl.formats.avro.json_text import without_comments

# The files of a project

_DEFINITION: Final = ".avsc"
"""How the name of a file ends that is a definition, whether a declaration names it or not."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The files that are not laid out yet.

    Attributes:
        contents: by path, the text as it is laid out.
        refused: the paths of files that would declare something else when laid out, which is a bug of schemactl.
        seen: the number of files looked at.
    """

    contents: dict[str, bytes]
    refused: tuple[str, ...]
    seen: int


def layout(files: Files, project: Project, wanted: Sequence[str] = ("",)) -> Layout:
    """Lay out the files of a project that are not laid out yet.

    What they declare is looked at only where there is one.

    Args:
        files: among which they are.
        project: whose files they are.
        wanted: only these of them, and those in these folders; each ends with `/`, and "" is the top of the repository.

    Raises:
        DeclarationError: files have problems.
    """
    contents: dict[str, bytes] = {}
    problems: list[Problem] = []
    refused, seen = [], 0
    for path in sorted({*paths(files, project)}):
        if not any(f"{path}/".startswith(each) for each in wanted):
            continue
        seen += 1
        try:
            text = decode(path, read_bytes(files, path))
            new = _laid_out(path, text)
        except DeclarationError as error:
            problems += error.problems
            continue
        if new == text:
            continue
        value = _yaml_value if path.endswith(YAML_SUFFIXES) else _json_value
        if value(path, text) == value(path, new):
            contents[path] = new.encode()
        else:
            refused.append(path)
    if problems:
        raise DeclarationError(problems)
    if contents:
        declared = reader.load_all(files, project)
        kept = proved(files, project, declared, contents, is_same)
        refused += sorted(contents.keys() - kept.keys())
        contents = kept
    return Layout(contents, tuple(refused), seen)


def paths(files: Files, project: Project) -> Iterator[str]:
    """Yield the paths of the files that have a layout: the project's YAML files, and its Avro definitions as JSON."""
    of_project = {project.path, project.waivers}
    of_project |= {path for target in project.targets.values() for path in target.overlays}
    yield from (path for path in of_project if files.kind(path) == "file")
    for path in files.paths():
        if not in_roots(path, project) or files.kind(path) != "file":
            continue
        if path.endswith(_DEFINITION):
            yield path
        elif path.endswith(YAML_SUFFIXES):
            yield path
            yield from (each for each in _definitions(files, path) if files.kind(each) == "file")


def _definitions(files: Files, path: str) -> Iterator[str]:
    """Yield the Avro files that the declarations in a YAML file name, wherever these are."""
    for document in read_documents(path, read_bytes(files, path)).documents:
        schema = document.schema if isinstance(document, TopicDocument) else None
        for each in (schema, schema.key, schema.value) if schema else ():
            for written in (each.definition, *each.references) if each else ():
                if isinstance(written, str):
                    with suppress(ValueError):
                        yield from _named(files, posixpath.dirname(path), written)


def _named(files: Files, folder: str, written: str) -> Iterator[str]:
    """Yield the Avro files that a path, glob or folder in a file of `folder` means. Raise ValueError where it leads elsewhere."""
    if is_pattern(written):
        yield from files_of(files, folder, written)
    elif written.endswith(AVRO_SUFFIXES):
        yield resolve(folder, written)


def _laid_out(path: str, text: str) -> str:
    """Return the text of a file laid out. Raise DeclarationError if it is neither YAML nor JSON."""
    if path.endswith(YAML_SUFFIXES):
        return laid_out_yaml(path, text)
    try:
        return laid_out_json(text)
    except JsonSyntaxError as error:
        problem = Problem(place(shown(path), text, error.offset), error.what, error.fix)
        raise DeclarationError([problem]) from None


def is_same(one: SchemaInfo, other: SchemaInfo) -> bool:
    """Return whether two schemas are one version in the same words."""
    return identity(one) == identity(other) and same_text(one, other)


def _yaml_value(path: str, text: str) -> list[str]:
    """Return the values of a YAML file's documents, without the order of keys."""
    documents, _ = read_yaml(path, text.encode())
    return [json.dumps(document.value, sort_keys=True) for document in documents]


def _json_value(_path: str, text: str) -> str:
    """Return what a JSON text says, with the order of its keys."""
    return json.dumps(json.loads(without_comments(text), parse_float=_spelt, parse_int=_spelt))


def _spelt(digits: str) -> list[str]:
    """Return a number as it is spelt, in a form that differs from the same text."""
    return ["number", digits]


# Rewriting that keeps what is declared


def proved(
    files: Files,
    project: Project,
    before: Declared,
    contents: Mapping[str, bytes],
    holds: Callable[[SchemaInfo, SchemaInfo], bool],
) -> dict[str, bytes]:
    """Return those of `contents` that keep everything declared as it is, except for changes of schemas that `holds` allows.

    Args:
        files: the files before the change.
        project: whose files they are.
        before: what they declare; without problems.
        contents: the new contents of some of them.
        holds: whether a topic's schema may change into another; nothing else of a topic may change.
    """
    kept = dict(contents)
    while kept:
        after = reader.read(ChangedFiles(kept, files), project)
        wrong = {problem.source.path for problem in after.problems} & kept.keys()
        if after.problems and not wrong:
            return {}
        for name, topic in before.catalog.topics.items():
            now = after.catalog.topics.get(name)
            if now is None or not _is_kept(topic, now, holds):
                wrong |= {*before.dependencies.get(name, ())} & kept.keys()
                wrong |= {topic.source.path} & kept.keys() if topic.source else set()
        if not wrong:
            return {} if before.catalog.namespaces != after.catalog.namespaces else kept
        kept = {path: content for path, content in kept.items() if path not in wrong}
    return kept


def _is_kept(topic: Topic, now: Topic, holds: Callable[[SchemaInfo, SchemaInfo], bool]) -> bool:
    one, other = topic.schema, now.schema
    if one is None or other is None:
        return topic == now
    return replace(topic, schema=None) == replace(now, schema=None) and holds(one, other)


def write(top: str, contents: Mapping[str, bytes]) -> None:
    """Write each file whole, with the permissions it has as far as the umask leaves them, below the repository's `top`."""
    below = atomic_files.top_of(top)
    for path, content in contents.items():
        place = Path(top, path)
        atomic_files.write(place, content, below=below, mode=place.stat().st_mode & 0o777)


# JSON

WIDTH: Final = 110
"""Of a line, in characters: what fits stands on one."""

_JSON_STEP: Final = "  "
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


def laid_out_json(text: str) -> str:
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
            each.before += [one for one in _comments(text[end : found.offsets[member]]) if one not in ("\n", "")]
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
        each.behind or any(each.before) or (each.value is not None and each.value.is_long) for each in container.items
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
    inner = indent + _JSON_STEP
    *members, end = container.items
    for number, each in enumerate(members):
        # No blank line behind a bracket.
        before = each.before if number else [comment for comment in each.before if comment]
        yield from (f"{inner}{comment}" if comment else "" for comment in before)
        yield from _lines(each, inner, "," if number < len(members) - 1 else "")
    yield from (f"{inner}{comment}" if comment else "" for comment in end.before)
    yield f"{indent}{closing}{comma}{behind}"


# YAML

_YAML_STEP: Final = 2

_ORDERS: Final[Mapping[str, Sequence[str]]] = {
    "topic": (
        *("topic", "partitions", "generation", "renamed_from", "schema_compatibility_strategy", ""),
        *("reader", "lifecycle", "owner", "description", "labels", "links", "deprecated", "clients", "schema"),
    ),
    "namespace": (
        *("namespace", "schema_compatibility_strategy", "is_allow_auto_update_schema"),
        *("schema_validation_enforced", "", "owner", "description", "labels", "links", "deprecated"),
    ),
    "schema": (*("type", "encoding", "key", "value", "definition", "proto", "message", "references", ""), "properties"),
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


def laid_out_yaml(path: str, text: str) -> str:
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


# YAML: the order of keys


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
    if node.flow_style or any(lines[key.start_mark.line][: key.start_mark.column].strip() for key, _ in node.value):
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


# YAML: indentation and blank lines


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
        return self.new + (_YAML_STEP if self.is_sequence else 0)


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
        new = self.levels[-1].new + _YAML_STEP if self.levels else 0
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
            return _YAML_STEP * self.depth
        if self.depth:
            return level.content + _YAML_STEP * self.depth
        if isinstance(token, _CLOSING):
            return level.content
        if isinstance(token, yaml.BlockEntryToken) or self._is_key(token):
            return level.new
        return level.content + (0 if level.is_sequence else _YAML_STEP)

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
        column = (self.levels[-1].content if self.levels else 0) + _YAML_STEP * self.depth
        inner = column if self.levels and self.levels[-1].is_sequence and not self.depth else column + _YAML_STEP
        inner = inner if self.levels else 0
        if token.style not in ("|", ">"):
            first, *rest = written.split("\n")
            return "\n".join(
                [first.rstrip(" ") if not first.endswith("\\ ") else first, *(_set(line, inner) for line in rest)]
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
