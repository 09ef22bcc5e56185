"""Read YAML 1.2 with the place of every value, describe syntax errors with a fix, and render the YAML files that schemactl writes.

Values are built from composed nodes instead of with `yaml.load`. That is faster, gives the place of every value, detects
repeated keys (`yaml.load` keeps the last), and follows YAML 1.2 instead of 1.1: `no`, `12:30` and `2024-01-01` are texts, `010`
is ten, and U+0085, U+2028 and U+2029 do not end a line. Tags, merge keys (`<<`, which YAML 1.2 does not have) and keys that are
not text are rejected. Anchors and aliases are supported, if the expanded document is not larger than MAX_BYTES.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.scanner import Scanner

from schemactl.core.errors import DeclarationError, Problem, Source
from schemactl.core.escaping import escape_path
from schemactl.core.schema import MAX_DEPTH
from schemactl.core.terminal import escape
from schemactl.declare.files import MAX_BYTES, decode
from schemactl.declare.source_location import Tokens, find_key_node, find_node, locate_node, place

MAX_VALUES: Final = 200_000
"""The maximum number of keys and values in a file; more take seconds to read."""

MAX_DOCUMENTS: Final = 10_000
"""The maximum number of documents in a file."""

_NO_TAGS: Final = ("tags (`!...`) are not used here", "write the value alone; put it in quotes if it is text")
_NO_DIRECTIVES: Final = ("directives (`%...`) are not used here", "remove the line")


# Documents and their values


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a YAML file: its value, and the node it was built from."""

    node: yaml.Node
    value: Any


def read_yaml(path: str, data: bytes, *, number_keys: bool = False) -> tuple[list[YamlDocument], list[Problem]]:
    """Read the documents of a YAML file, and their problems apart from syntax: repeated keys, tags, keys that are not text.

    Args:
        path: the path of the file, for problems.
        data: the content of the file.
        number_keys: whether a key may also be an integer, which becomes text with the same digits.

    Raises:
        DeclarationError: if the file cannot be read at all: not UTF-8, not YAML, or too large because of aliases.
    """
    nodes = compose(path, data)
    builder = _ValueBuilder(escape_path(path), aliases=b"*" in data, number_keys=number_keys)
    return [YamlDocument(node, builder.value(node)) for node in nodes], builder.problems


_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMBER_STARTS: Final = frozenset("0123456789+-.")
_UNUSUAL_KEY_STARTS: Final = _NUMBER_STARTS | {"<"}
"""The first characters of unquoted keys that may not be text, and of merge keys."""
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_PREFIXED_INTEGER: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class _ValueBuilder:
    """Builds the values of the documents of a file, and collects their problems."""

    def __init__(self, path: str, *, aliases: bool, number_keys: bool) -> None:
        self.path = path
        self.aliases = aliases
        self.number_keys = number_keys
        self.problems: list[Problem] = []
        # The size and value by id of the node, or None while the value is being built.
        self._built: dict[int, tuple[int, Any] | None] = {}
        self._total_size = 0

    def value(self, node: yaml.Node) -> Any:
        """Return the value of `node`: a dict, list, str, int, float, bool or None.

        In a file with aliases, it is built once for all of them, and its size is added for each.

        Raises:
            DeclarationError: if the value contains itself, or the expanded file would be larger than MAX_BYTES.
        """
        if not self.aliases:
            return self._build(node)
        if id(node) not in self._built:
            self._built[id(node)] = None
            old_size = self._total_size
            self._total_size += 1 + (len(node.value) if node.__class__ is yaml.ScalarNode else 0)
            value = self._build(node)
            self._built[id(node)] = (self._total_size - old_size, value)
            return value
        built = self._built[id(node)]
        if built is None:
            raise self._build_error(node, "this value contains an alias of itself", "write it out")
        size, value = built
        self._total_size += size
        if self._total_size > MAX_BYTES:
            message = f"the aliases of this value make the file larger than {MAX_BYTES:,} bytes when written out"
            raise self._build_error(node, message, "use fewer aliases")
        return value

    def _build(self, node: yaml.Node) -> Any:
        if node.tag is not None:
            self._add_problem(node, *_NO_TAGS)
        if node.__class__ is yaml.ScalarNode:
            return node.value if node.style else self._build_plain(node)
        value = self.value if self.aliases else self._build
        if node.__class__ is yaml.SequenceNode:
            return [value(item) for item in node.value]
        built: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if key_node.__class__ is not yaml.ScalarNode:
                self._add_problem(key_node, "a key is text, not a list or a mapping", "write one word before the colon")
                continue
            if key in built:
                self._add_problem(key_node, f"the key `{key[:60]}` is repeated", "keep one of the two")
                continue
            if not key_node.style and (key in _CONSTANTS or key[0] in _UNUSUAL_KEY_STARTS or key_node.tag is not None):
                self._check_key(key_node)
            built[key] = value(value_node)
        return built

    def _check_key(self, node: yaml.Node) -> None:
        """Add the problems of an unquoted key that may not be text."""
        if node.tag is not None:
            self._build(node)
        elif node.value == "<<":
            self._add_problem(
                node, "merge keys (`<<`) are not part of YAML 1.2", "repeat the keys, or alias a whole value"
            )
        elif self.number_keys and _INTEGER.fullmatch(node.value):
            return
        elif not isinstance(self._build_plain(node), str):
            self._add_problem(
                node, f"a key is text, but `{node.value[:60]}` is not", f'put it in quotes: "{node.value[:60]}"'
            )

    def _build_plain(self, node: yaml.Node) -> Any:
        """Return the value of an unquoted scalar (YAML 1.2.2, section 10.3.2), or 0, with a problem, for a number that is too large."""
        text = node.value
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text[0] not in _NUMBER_STARTS:
            return text
        try:
            if _INTEGER.fullmatch(text):
                return int(text)
            if _PREFIXED_INTEGER.fullmatch(text):
                return int(text, base=0)
            if not _FLOAT.fullmatch(text):
                return text
            number = float(text)
            if not math.isinf(number):
                return number
        except ValueError:
            # Python limits the digits of an integer.
            pass
        self._add_problem(node, f"the number `{text[:20]}...` is too large", "put it in quotes if it is text")
        return 0

    def _build_error(self, node: yaml.Node, message: str, fix: str) -> DeclarationError:
        return DeclarationError([*self.problems, Problem(locate_node(self.path, node), message, fix)])

    def _add_problem(self, node: yaml.Node, message: str, fix: str) -> None:
        self.problems.append(Problem(locate_node(self.path, node), message, fix))


# Places


@dataclass(slots=True)
class YamlText:
    """A YAML file that locates its parts. It composes its nodes on demand, so that many instances need little memory."""

    path: str
    data: bytes = field(repr=False)

    def locate(self, document: int, parts: Tokens) -> Source:
        """Return the nearest place to `parts` in the document with this number, counted from 0; an empty file begins at 1:1."""
        try:
            nodes = _composed(self.path, self.data)
        except DeclarationError:
            return Source(escape_path(self.path))
        if document >= len(nodes):
            return Source(escape_path(self.path), 1, 1)
        return locate_node(escape_path(self.path), find_node(nodes[document], parts))

    def node(self, document: int, parts: Tokens) -> yaml.Node:
        """Return the node at `parts`, which exists."""
        return find_node(_composed(self.path, self.data)[document], parts)


@dataclass(frozen=True, slots=True)
class YamlPart:
    """A value of a YAML file that locates its parts: the number of its document, and its place in the document."""

    text: YamlText
    document: int
    parts: Tokens

    def locate(self, parts: Tokens) -> Source:
        """Return the nearest place to `parts` of the value."""
        return self.text.locate(self.document, self.parts + parts)

    def locate_key(self, parts: Tokens) -> Source:
        """Return the place of the key of the value at `parts`, which exists, or of the value if it has no key."""
        key = find_key_node(self.node(parts[:-1]), parts[-1]) if parts else None
        return locate_node(escape_path(self.text.path), key) if key else self.locate(parts)

    def node(self, parts: Tokens) -> yaml.Node:
        """Return the node at `parts` of the value, which exists."""
        return self.text.node(self.document, self.parts + parts)


_QUOTED_CHARACTER: Final = {
    "'": re.compile(r"''|."),
    '"': re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|."),
}
"""One written character inside each kind of quotes."""


def locate_in_scalar(path: str, data: bytes, node: yaml.Node, offset: int) -> Source:
    """Return the place of the character at `offset` of a scalar in the file.

    The place is exact for a literal block (`|`) and for quotes on one line. For a folded block (`>`) and for quotes over several
    lines, it is the start of the scalar.
    """
    lines = decode(path, data).split("\n")
    start, end = node.start_mark, node.end_mark
    style = node.style if isinstance(node, yaml.ScalarNode) else None
    if style == "|":
        row = node.value.count("\n", 0, offset)
        content = node.value.split("\n")[row]
        line = lines[start.line + 1 + row].removesuffix("\r") if start.line + 1 + row < len(lines) else ""
        if content and line.endswith(content):
            column = offset - node.value.rfind("\n", 0, offset)
            return Source(escape_path(path), start.line + row + 2, len(line) - len(content) + column)
    elif style in ("'", '"') and start.line == end.line:
        content = lines[start.line][start.column + 1 : end.column - 1]
        preceding = [character[0] for character in _QUOTED_CHARACTER[style].finditer(content)][:offset]
        return Source(escape_path(path), start.line + 1, start.column + 2 + sum(map(len, preceding)))
    return locate_node(escape_path(path), node)


# Composition of nodes


class _Limits:
    """Leaves plain values unresolved, so that only explicit tags are set, and rejects files that are too deep or too large.

    The C composer recurses without a limit: 100,000 brackets would crash the process.
    """

    depth = 0
    values = 0

    def descend_resolver(self, _parent: yaml.Node | None, _index: object) -> None:
        self.depth += 1
        self.values += 1
        if self.depth > MAX_DEPTH:
            raise _LimitExceeded(f"the file is nested more than {MAX_DEPTH} levels deep")
        if self.values > MAX_VALUES:
            raise _LimitExceeded(f"the file has more than {MAX_VALUES:,} keys and values")

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def resolve(self, _kind: type[yaml.Node], _value: str | None, _implicit: object) -> None:
        return


class _LimitExceeded(Exception):
    """A file exceeds MAX_DEPTH or MAX_VALUES."""


class PythonComposer(Reader, Scanner, Parser, Composer, _Limits):
    """PyYAML's pure Python composer, for installations without libyaml."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803  the name in PyYAML
        """Check the depth in the scanner, which reads a thousand brackets ahead, and takes quadratic time for open brackets."""
        if self.flow_level >= MAX_DEPTH:
            raise _LimitExceeded(f"the file is nested more than {MAX_DEPTH} levels deep")
        super().fetch_flow_collection_start(TokenClass)


COMPOSER: Any = PythonComposer

if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class CComposer(CParser, _Limits):
        """The composer of libyaml, which is twenty times as fast."""

    COMPOSER = CComposer


def compose(path: str, data: bytes, composer_class: Any = COMPOSER) -> list[yaml.Node]:
    """Compose the root nodes of the documents of a YAML file.

    Args:
        path: the path of the file, for problems.
        data: the content of the file.
        composer_class: PythonComposer or CComposer, which compose the same nodes.

    Raises:
        DeclarationError: with one problem, if the file is not UTF-8, not YAML, or exceeds a limit.
    """
    text = decode(path, data)
    parsed_text, replacements = _replace_old_line_breaks(path, text)
    _check_directives(path, parsed_text, composer_class)
    nodes = []
    try:
        composer = composer_class(parsed_text)
        while composer.check_node():
            nodes.append(composer.get_node())
            if len(nodes) > MAX_DOCUMENTS:
                message = f"the file has more than {MAX_DOCUMENTS:,} documents; this is the first one over the limit"
                raise DeclarationError(
                    [Problem(locate_node(escape_path(path), nodes[-1]), message, "put them into several files")]
                )
    except _LimitExceeded as error:
        raise DeclarationError([Problem(Source(escape_path(path)), str(error))]) from None
    except yaml.YAMLError as error:
        raise DeclarationError([_describe_syntax_error(escape_path(path), text, error)]) from None
    if "\t" in text:
        problem = _find_tab_problem(escape_path(path), text, nodes)
        if problem:
            raise DeclarationError([problem])
    if replacements:
        for node in _iterate_scalars(nodes):
            node.value = node.value.translate(replacements)
    return nodes


_OLD_LINE_BREAKS: Final = "\x85\u2028\u2029"
"""Line breaks of YAML 1.1, which PyYAML and libyaml follow. In YAML 1.2, and in most editors, they are ordinary characters."""


def _replace_old_line_breaks(path: str, text: str) -> tuple[str, dict[int, str]]:
    """Replace _OLD_LINE_BREAKS in `text` by unused characters, and return the text with the table for `str.translate` back.

    Raises:
        DeclarationError: with one problem, if the text uses too many private characters.
    """
    if text.isascii() or not any(letter in text for letter in _OLD_LINE_BREAKS):
        return text, {}
    used = {*text}
    unused = [letter for letter in map(chr, range(0xE000, 0xF900)) if letter not in used]
    if len(unused) < len(_OLD_LINE_BREAKS):
        offset = min(text.index(letter) for letter in _OLD_LINE_BREAKS if letter in used)
        raise DeclarationError(
            [Problem(place(escape_path(path), text, offset), "this character cannot be read here", "remove it")]
        )
    pairs = [*zip(_OLD_LINE_BREAKS, unused, strict=False)]
    parsed_text = text.translate({ord(letter): stand_in for letter, stand_in in pairs})
    return parsed_text, {ord(stand_in): letter for letter, stand_in in pairs}


# A caller that needs a place in one document of a file often needs places in thousands of its documents.
_composed = lru_cache(maxsize=1)(compose)

_DIRECTIVE: Final = re.compile("(?:^|[\n\r])%")
"""The start of a directive, or of a line in a scalar."""


def _check_directives(path: str, text: str, composer_class: Any) -> None:
    """Reject directives except `%YAML`: parsers compare each `%TAG` with all earlier ones, and tags are not supported.

    Raises:
        DeclarationError: with one problem, if the file has another directive.
    """
    if "%" not in text or not _DIRECTIVE.search(text):
        return
    scanner = composer_class(text)
    try:
        while scanner.check_token():
            token = scanner.get_token()
            if isinstance(token, yaml.DirectiveToken) and token.name != "YAML":
                source = Source(escape_path(path), token.start_mark.line + 1, token.start_mark.column + 1)
                raise DeclarationError([Problem(source, *_NO_DIRECTIVES)])
    except yaml.YAMLError:
        # The composer reports the error.
        return


# Rendering

Value = str | int | Sequence[str] | Mapping[str, "Value"]

_PLAIN_TEXT: Final = re.compile(r"(?:\.\.?/)*[A-Za-z_][A-Za-z0-9_./:+-]*(?<!:)")
_RESERVED_WORD: Final = re.compile(r"(?i:null|true|false|yes|no|on|off|y|n)")
"""Words that YAML 1.1 readers do not read as text."""

_TO_ESCAPE: Final = re.compile("[^\n\r\t -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def render_yaml(values: Mapping[str, Value]) -> str:
    """Render `values` as one YAML document. The order of keys stays, and empty mappings are omitted."""
    return "".join(f"{line}\n" for line in _render_lines(values, 0))


def _render_lines(values: Mapping[str, Value], depth: int) -> Iterator[str]:
    for key, value in values.items():
        label = f"{'  ' * depth}{scalar(key)}:"
        if isinstance(value, str | int):
            yield f"{label} {scalar(value)}"
        elif not isinstance(value, Mapping):
            yield f"{label} [{', '.join(map(scalar, value))}]"
        elif value:
            yield label
            yield from _render_lines(value, depth + 1)


def scalar(value: str | int) -> str:
    """Render `value` on one line, in quotes if it needs them."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN_TEXT.fullmatch(value) and not _RESERVED_WORD.fullmatch(value):
        return value
    # A JSON string is a YAML scalar, except for some characters that only YAML requires to be escaped.
    return escape(json.dumps(value, ensure_ascii=False), _TO_ESCAPE)


# Messages for syntax errors

_MESSAGES: Final = {
    "invalid Unicode": ("this is not a character", "write the character itself"),
    "unknown escape": ("this is not a YAML escape", "write `\\\\` for a backslash, or use single quotes"),
    "a quoted scalar": ("this quote is never closed", "close it, or double it where it belongs to the text"),
    "mapping values are not allowed": ("`:` is not allowed here", "put a value that contains `: ` in quotes"),
    "could not find expected ':'": (
        "this line is not `key: value`",
        "write `key: value`, or indent it if it continues the text above",
    ),
    "',' or ']'": ("expected `,` or `]` of the list that starts at {start}", "close the list"),
    "',' or '}'": ("expected `,` or `}` of the mapping that starts at {start}", "close the mapping"),
    "while parsing a block mapping": (
        "this line fits neither the mapping that starts at {start} nor a level below it",
        "indent it like the keys it belongs to",
    ),
    "while parsing a block collection": (
        "this line fits neither the list that starts at {start} nor a level below it",
        "indent it like the items it belongs to",
    ),
    "undefined alias": ("this alias has no anchor (`&name`) before it", "put text that starts with `*` in quotes"),
    "second occurrence": ("this anchor is defined for the second time", "give it another name"),
    "scanning an alias": ("an alias needs a name", "put text that starts with `*` in quotes"),
    "scanning an anchor": ("an anchor needs a name", "put text that starts with `&` in quotes"),
    "tag": _NO_TAGS,
    "a block scalar": ("this cannot follow `|` or `>`", "start the text on the next line"),
    "directive": _NO_DIRECTIVES,
    "YAML document": _NO_DIRECTIVES,
    "<document start>": ("text follows the end of a document", "start the next document with `---`"),
    "cannot start any token": ("`{found}` cannot start a value", "put the value in quotes"),
}
"""The problem and the fix by words in the error of libyaml or PyYAML. {start} is the line where the construct starts."""

_REPORTED_AT_START: Final = (
    "a quoted scalar",
    "could not find expected ':'",
    "scanning an alias",
    "scanning an anchor",
    "tag",
)
"""The errors that are reported where the construct starts, not where the parser stopped."""

_UNPRINTABLE: Final = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END: Final = re.compile(r"\r\n|[\n\r]")
_LAST_WORD: Final = re.compile(r"(?<=[\s\]}\"'])[\w.-]+$")
_ITEM: Final = re.compile(r"[\w./-]+|\"[^\"\n]{0,60}\"|'[^'\n]{0,60}'")
_KEY_AND_VALUE: Final = re.compile(r"( *(?:- +)*)([\w.-]+): +[^\s#|>&*\[{]")
_KEY_WITHOUT_SPACE: Final = re.compile(r"( *[A-Za-z_]+):([^\s:/'\"]\S{0,60})\s*$")
_TAB: Final = re.compile(r" *\t\s*?(?=\S)")


def _describe_syntax_error(path: str, text: str, error: yaml.YAMLError) -> Problem:
    """Convert an error of PyYAML about `text` to a problem with the place to edit."""
    if isinstance(error, ReaderError):
        match = _UNPRINTABLE.search(text)
        offset = match.start() if match else 0
        return Problem(
            place(path, text, offset), f"the character U+{ord(text[offset]):04X} is not allowed in YAML", "remove it"
        )
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Problem(Source(path), f"this is not YAML: {error}")
    mark, start = error.problem_mark, error.context_mark
    line = _split_lines(text)[mark.line]
    if _TAB.match(line):
        return _build_tab_problem(path, mark.line, line)
    error_text = f"{error.context or ''} {error.problem or ''}"
    if problem := _find_missing_space(path, text, error_text, mark):
        return problem
    if likely_error := _find_missing_comma(text, error_text, mark, start) or _find_wrong_indent(text, error_text, mark):
        column, message, fix = likely_error
        return Problem(Source(path, mark.line + 1, column + 1), message, fix)
    for words, (template, fix) in _MESSAGES.items():
        if words in error_text:
            start_line = f"line {start.line + 1}" if start else "the line above"
            mark = start if start and words in _REPORTED_AT_START else mark
            stopped_at = line[mark.column : mark.column + 1]
            message = template.replace("{start}", start_line).replace("{found}", stopped_at)
            return Problem(_locate_mark(path, text, mark), message, fix)
    return Problem(_locate_mark(path, text, mark), f"this is not YAML: {error.problem}")


def _split_lines(text: str) -> list[str]:
    """Split `text` into lines as the parsers count them, with an empty line at the end, where they may stop."""
    return [*_LINE_END.split(text), ""]


def _find_missing_comma(
    text: str, error_text: str, mark: yaml.Mark, start: yaml.Mark | None
) -> tuple[int, str, str] | None:
    """Return the column, the message and the fix for an item of a list or mapping without a comma before it, or None."""
    if start is None or "',' or" not in error_text:
        return None
    lines = _split_lines(text)
    line = lines[mark.line]
    # The parser stops at the item or at the colon after it.
    key = _LAST_WORD.search(line[: mark.column]) if line[mark.column : mark.column + 1] == ":" else None
    column = key.start() if key else mark.column
    item = _ITEM.match(line, column)
    opening = lines[start.line]
    if not item or (mark.line > start.line and column <= len(opening) - len(opening.lstrip())):
        return None
    return column, f"there is no comma before `{item[0]}`", f"put a comma before `{item[0]}`"


def _find_missing_space(path: str, text: str, error_text: str, mark: yaml.Mark) -> Problem | None:
    """Return the problem of a key without a space after its colon, on the line before the parser stopped, or None."""
    lines = _split_lines(text)
    previous = next((number for number in range(mark.line - 1, -1, -1) if lines[number].strip()), None)
    if previous is None or not ("mapping values" in error_text or "could not find expected ':'" in error_text):
        return None
    key = _KEY_WITHOUT_SPACE.match(lines[previous])
    if key is None:
        return None
    source = Source(path, previous + 1, key.end(1) + 2)
    return Problem(source, f"a space is missing after `{key[1].strip()}:`", f"write `{key[1].strip()}: {key[2]}`")


def _find_wrong_indent(text: str, error_text: str, mark: yaml.Mark) -> tuple[int, str, str] | None:
    """Return the column, the message and the fix for a line that is indented more than the `key: value` above it, or None."""
    if "mapping values are not allowed" not in error_text:
        return None
    line, *above = reversed(_split_lines(text)[: mark.line + 1])
    indent = len(line) - len(line.lstrip())
    previous = next((other for other in above if other.strip() and not other.lstrip().startswith("#")), "")
    key = _KEY_AND_VALUE.match(previous)
    if key is None or indent <= len(key[1]) or ": " in f"{line[: mark.column]} ".rstrip("\n"):
        return None
    spaces = indent - len(key[1])
    amount = "one space" if spaces == 1 else f"{spaces} spaces"
    return indent, f"this line is indented {amount} too far", f"start it in the same column as `{key[2]}`"


def _locate_mark(path: str, text: str, mark: yaml.Mark) -> Source:
    """Return the place of a mark. A mark after the last line means the end of the text."""
    lines = _split_lines(text)
    if mark.line == len(lines) - 1:
        return Source(path, mark.line, len(lines[-2]) + 1)
    return Source(path, mark.line + 1, mark.column + 1)


def _find_tab_problem(path: str, text: str, nodes: list[yaml.Node]) -> Problem | None:
    """Return the problem of the first line that is indented by a tab, outside of multiline scalars. libyaml accepts some of them."""
    lines = {number for number, line in enumerate(text.split("\n")) if _TAB.match(line)}
    for node in _iterate_scalars(nodes) if lines else ():
        first, last = node.start_mark, node.end_mark
        lines -= set(range(first.line + 1, last.line + (last.column > 0)))
    if not lines:
        return None
    return _build_tab_problem(path, min(lines), text.split("\n")[min(lines)])


def _build_tab_problem(path: str, line: int, content: str) -> Problem:
    return Problem(Source(path, line + 1, content.index("\t") + 1), "a tab indents this line", "indent with spaces")


def _iterate_scalars(nodes: list[yaml.Node]) -> Iterator[yaml.ScalarNode]:
    """Yield every scalar below `nodes` once."""
    visited: set[int] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield node
        elif isinstance(node, yaml.MappingNode):
            stack += [child for pair in node.value for child in pair]
        else:
            stack += node.value
