"""Format YAML and JSON files for `fmt`, and prove that a rewritten file still declares the same.

Comments, quotes, the spelling of numbers, block or flow style and line breaks stay. Only blanks change, and whole entries move. No
library rewrites the file, because libraries that keep comments break and join lines by other rules, and attach a comment to the key
before it, which is wrong when keys change places.
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
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.declare import reader
from schemactl.declare.document import NamespaceDocument, TopicDocument, read_documents
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
from schemactl.formats import has_same_text, identity
from schemactl.formats.avro.json_text import without_comments

# The files of a project

_DEFINITION: Final = ".avsc"
"""The suffix of files that are definitions even if no declaration names them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The files that are not formatted yet.

    Attributes:
        contents: the formatted text by path.
        refused: the paths of files whose formatted text would declare something else, which is a bug of schemactl.
        seen: the number of files read.
        problems: the problems of files that were not formatted for that reason.
    """

    contents: dict[str, bytes]
    refused: tuple[str, ...]
    seen: int
    problems: tuple[Problem, ...] = ()


def layout(files: Files, project: Project, wanted: Sequence[str] = ("",)) -> Layout:
    """Format the files of a project that are not formatted yet.

    The declarations are read only if a file changes. A file with problems is not formatted, and stops no other file.

    Args:
        files: the files of the repository.
        project: the project.
        wanted: the files and folders to format; each ends with `/`, and "" is the top of the repository.

    Raises:
        DeclarationError: if a problem concerns all files.
    """
    contents: dict[str, bytes] = {}
    problems: list[Problem] = []
    refused, read_count = [], 0
    for path in sorted({*paths(files, project)}):
        if not any(f"{path}/".startswith(prefix) for prefix in wanted):
            continue
        read_count += 1
        try:
            text = decode(path, read_bytes(files, path))
            new = laid_out_yaml(path, text) if path.endswith(YAML_SUFFIXES) else laid_out_json(text)
        except DeclarationError as error:
            problems += error.problems
            continue
        except JsonSyntaxError as error:
            problems.append(Problem(place(shown(path), text, error.offset), error.message, error.fix))
            continue
        if new == text:
            continue
        if _parse_values(path, text) == _parse_values(path, new):
            contents[path] = new.encode()
        else:
            refused.append(path)
    if contents:
        declared = reader.read(files, project)
        if declared.common_problems:
            raise DeclarationError(declared.problems)
        problems += [problem for problem in declared.problems if problem.source.path in contents]
        broken_paths = {problem.source.path for problem in problems}
        contents = {path: data for path, data in contents.items() if path not in broken_paths}
        proved_contents = proved(
            files,
            project,
            declared,
            contents,
            lambda old, new: identity(old) == identity(new) and has_same_text(old, new),
        )
        refused += sorted(contents.keys() - proved_contents.keys())
        contents = proved_contents
    return Layout(contents, tuple(refused), read_count, tuple(sorted(set(problems))))


def paths(files: Files, project: Project) -> Iterator[str]:
    """Yield the paths of the files that `fmt` formats: the YAML files of the project, and its Avro definitions as JSON."""
    project_files = {project.path, project.waivers}
    project_files |= {path for target in project.targets.values() for path in target.overlays}
    yield from (path for path in project_files if files.kind(path) == "file")
    for path in files.paths():
        if not in_roots(path, project) or files.kind(path) != "file":
            continue
        if path.endswith(_DEFINITION):
            yield path
        elif path.endswith(YAML_SUFFIXES):
            yield path
            yield from (named for named in _find_definitions(files, path) if files.kind(named) == "file")


def _find_definitions(files: Files, path: str) -> Iterator[str]:
    """Yield the Avro files that the declarations in a YAML file name, inside and outside the roots."""
    folder = posixpath.dirname(path)
    documents: Sequence[TopicDocument | NamespaceDocument] = ()
    with suppress(DeclarationError):
        documents = read_documents(path, read_bytes(files, path)).documents
    for document in documents:
        schemas = document.declarations if isinstance(document, TopicDocument) else []
        for part in (part for schema in schemas for part in (schema, schema.key, schema.value)):
            if part and part.type is SchemaType.EXTERNAL:
                continue
            for written in (part.definition, *part.references) if part else ():
                if not isinstance(written, str):
                    continue
                # A path that leads out of the repository is a problem of the declaration.
                with suppress(ValueError):
                    if is_pattern(written):
                        yield from files_of(files, folder, written)
                    elif written.endswith(AVRO_SUFFIXES):
                        yield resolve(folder, written)


def _parse_values(path: str, text: str) -> list[str]:
    """Return the value of each document in a YAML or JSON text, as JSON that is equal if the values are.

    The keys of YAML are sorted. In JSON, the order of keys and the digits of numbers count.
    """
    if path.endswith(YAML_SUFFIXES):
        documents, _ = read_yaml(path, text.encode())
        return [json.dumps(document.value, sort_keys=True) for document in documents]

    def keep_digits(digits: str) -> list[str]:
        # A string of the same digits differs from this list.
        return ["number", digits]

    return [json.dumps(json.loads(without_comments(text), parse_float=keep_digits, parse_int=keep_digits))]


# Proof of a rewrite


def proved(
    files: Files,
    project: Project,
    before: Declared,
    contents: Mapping[str, bytes],
    holds: Callable[[SchemaInfo, SchemaInfo], bool],
) -> dict[str, bytes]:
    """Return the rewrites in `contents` that do not change any declaration, apart from changes of schemas that `holds` allows.

    Args:
        files: the files before the change.
        project: the project.
        before: the declarations of `files`. A file with problems must not be among `contents`.
        contents: the new contents by path.
        holds: returns whether the first schema of a topic may become the second; nothing else of a topic may change.
    """
    remaining = dict(contents)
    broken_paths = {problem.source.path for problem in before.problems}
    while remaining:
        after = reader.read(ChangedFiles(remaining, files), project)
        new_broken_paths = {problem.source.path for problem in after.problems} - broken_paths
        rejected = new_broken_paths & remaining.keys()
        if new_broken_paths and not rejected:
            return {}
        for name, old_topic in before.catalog.topics.items():
            new_topic = after.catalog.topics.get(name)
            if new_topic is None or not _is_unchanged(old_topic, new_topic, holds):
                rejected |= {*before.dependencies.get(name, ())} & remaining.keys()
                rejected |= {old_topic.source.path} & remaining.keys() if old_topic.source else set()
        if not rejected:
            return {} if before.catalog.namespaces != after.catalog.namespaces else remaining
        remaining = {path: content for path, content in remaining.items() if path not in rejected}
    return remaining


def _is_unchanged(old: Topic, new: Topic, holds: Callable[[SchemaInfo, SchemaInfo], bool]) -> bool:
    old_parts, new_parts = old.split(), new.split()
    return len(old_parts) == len(new_parts) and all(
        replace(old_part, schema=None) == replace(new_part, schema=None)
        and (
            holds(old_part.schema, new_part.schema)
            if old_part.schema and new_part.schema
            else old_part.schema is new_part.schema
        )
        for old_part, new_part in zip(old_parts, new_parts, strict=True)
    )


def write(top: str, contents: Mapping[str, bytes]) -> None:
    """Write each file atomically below the repository's `top`; its permissions stay, as far as the umask allows."""
    below = atomic_files.find_top_folder(top)
    for path, content in contents.items():
        file = Path(top, path)
        atomic_files.write(file, content, below=below, mode=file.stat().st_mode & 0o777)


# JSON

WIDTH: Final = 110
"""The width of a line in characters: a value that fits is written on one line."""

_JSON_STEP: Final = "  "
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


def laid_out_json(text: str) -> str:
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
    fits = len(indent) + item.width + len(comma) <= WIDTH or len(container.items) == 1
    if fits and not container.is_long:
        yield f"{indent}{_format_flat(item)}{comma}{after}"
        return
    opening, closing = tuple(container.brackets)
    yield f"{indent}{item.text}{opening}" + "".join(f" {comment}" for comment in container.after)
    inner = indent + _JSON_STEP
    *members, end = container.items
    for number, member in enumerate(members):
        # No blank line after an opening bracket.
        before = member.before if number else [comment for comment in member.before if comment]
        yield from (f"{inner}{comment}" if comment else "" for comment in before)
        yield from _format_item(member, inner, "," if number < len(members) - 1 else "")
    yield from (f"{inner}{comment}" if comment else "" for comment in end.before)
    yield f"{indent}{closing}{comma}{after}"


# YAML

_YAML_STEP: Final = 2

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


def laid_out_yaml(path: str, text: str) -> str:
    """Format the YAML `text` of the file `path`.

    The keys of topics and namespaces are sorted. A text with explicit keys (`? `), directives, an empty block scalar
    (`|`, `>`) or other line ends than LF and CRLF is returned unchanged.
    """
    text = text.replace("\r\n", "\n")
    if any(mark in text for mark in _OTHER_LINE_ENDS):
        return text
    if not text.endswith("\n"):
        # A final line end would become part of a block scalar at the end of the file.
        if _ends_with_block(path, text):
            return text
        text += "\n"
    indenter = _YamlIndenter(text)
    indented = indenter.format()
    if indenter.is_unsupported:
        return text
    # Sorting comes second: blank lines that move with an entry cannot become part of a block scalar of the indented text.
    ordered = _sort_keys(path, indented)
    return indented if ordered == indented else _YamlIndenter(ordered).format()


def _ends_with_block(path: str, text: str) -> bool:
    """Return whether the file ends with a block scalar."""
    nodes = compose(path, text.encode())
    if not nodes:
        return False
    node = nodes[-1]
    while isinstance(node, yaml.CollectionNode) and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


# Order of YAML keys


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


# Indentation and blank lines of YAML


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
        return self.new + (_YAML_STEP if self.is_sequence else 0)


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


class _YamlIndenter:
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
        new = self.levels[-1].new + _YAML_STEP if self.levels else 0
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
            return _YAML_STEP * self.depth
        if self.depth:
            return level.content + _YAML_STEP * self.depth
        if isinstance(token, _CLOSING):
            return level.content
        if isinstance(token, yaml.BlockEntryToken) or (
            not self.levels[-1].is_sequence and token.start_mark.column == self.levels[-1].old
        ):
            return level.new
        return level.content + (0 if level.is_sequence else _YAML_STEP)

    def _render_token(self, token: Any, written: str) -> str:
        """Return the text of a token; its second and further lines are indented below its level."""
        if not isinstance(token, yaml.ScalarToken) or "\n" not in written:
            return written
        column = (self.levels[-1].content if self.levels else 0) + _YAML_STEP * self.depth
        inner = column if self.levels and self.levels[-1].is_sequence and not self.depth else column + _YAML_STEP
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
