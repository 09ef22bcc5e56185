"""Read YAML 1.2 with the place of every value, word syntax errors with a fix, and write the YAML files that the tool creates.

Values are built from composed nodes instead of with `yaml.load`. That is faster, knows the place of everything, sees
repeated keys (`yaml.load` keeps the last), and leaves YAML 1.1 behind: `no` is a text, `12:30` and `2024-01-01` are
texts, `010` is ten, and U+0085, U+2028 and U+2029 end no line. Left out on purpose: tags, merge keys (`<<` is no part of YAML 1.2), keys that are no text.
Anchors and aliases work, as long as the document written out would not exceed MAX_BYTES.
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
from schemactl.declare.files import MAX_BYTES, decode, shown
from schemactl.declare.source_location import MAX_DEPTH, Tokens, node_at, node_place, place
from schemactl.declare.source_location import key_node as key_in

MAX_VALUES: Final = 200_000
"""A file has at most this many keys and values; more take seconds to read, and nobody has them."""

MAX_DOCUMENTS: Final = 10_000
"""A file has at most this many documents: each is a topic or a namespace."""


class _Limits:
    """Leaves plain values unresolved, so that only explicit tags are set; and stops what is too deep or too much.

    The C composer calls itself for every level without asking how deep it is: 100,000 brackets end the process.
    """

    depth = 0
    values = 0

    def descend_resolver(self, _parent: yaml.Node | None, _index: object) -> None:
        self.depth += 1
        self.values += 1
        if self.depth > MAX_DEPTH:
            raise _TooMuch(f"the file is nested more than {MAX_DEPTH} levels deep")
        if self.values > MAX_VALUES:
            raise _TooMuch(f"the file has more than {MAX_VALUES:,} keys and values")

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def resolve(self, _kind: type[yaml.Node], _value: str | None, _implicit: object) -> None:
        return


class _TooMuch(Exception):
    """A file exceeds MAX_DEPTH or MAX_VALUES."""


class PythonComposer(Reader, Scanner, Parser, Composer, _Limits):
    """Nodes of a YAML text, by PyYAML's own parser: for installations without libyaml."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803  the scanner's own name
        """Stop what is too deep: the scanner is a thousand brackets ahead of the composer, and looks at all for each."""
        if self.flow_level >= MAX_DEPTH:
            raise _TooMuch(f"the file is nested more than {MAX_DEPTH} levels deep")
        super().fetch_flow_collection_start(TokenClass)


COMPOSER: Any = PythonComposer

if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class CComposer(CParser, _Limits):
        """Nodes of a YAML text, by libyaml: twenty times as fast."""

    COMPOSER = CComposer


@dataclass(slots=True)
class YamlText:
    """A YAML file that can say where its parts are. Nodes are made again on demand, so that holding many costs nothing."""

    path: str
    data: bytes = field(repr=False)

    def locate(self, document: int, parts: Tokens) -> Source:
        """Return the nearest place to `parts` in the document of that number, counted from 0."""
        try:
            nodes = _composed(self.path, self.data)
        except DeclarationError:
            return Source(shown(self.path))
        return node_place(shown(self.path), node_at(nodes[document], parts))

    def node(self, document: int, parts: Tokens) -> yaml.Node:
        """Return the node at `parts`, which exists."""
        return node_at(_composed(self.path, self.data)[document], parts)


@dataclass(frozen=True, slots=True)
class YamlPart:
    """A value of a YAML file that can say where its parts are: the number of its document, and its place in that."""

    text: YamlText
    document: int
    parts: Tokens

    def locate(self, parts: Tokens) -> Source:
        """Return the nearest place to `parts` of the value."""
        return self.text.locate(self.document, self.parts + parts)

    def locate_key(self, parts: Tokens) -> Source:
        """Return the place of the key whose value is at `parts`, which exists; of the value where it has no key."""
        key = key_in(self.node(parts[:-1]), parts[-1]) if parts else None
        return node_place(shown(self.text.path), key) if key else self.locate(parts)

    def node(self, parts: Tokens) -> yaml.Node:
        """Return the node at `parts` of the value, which exists."""
        return self.text.node(self.document, self.parts + parts)


def compose(path: str, data: bytes) -> list[yaml.Node]:
    """Return the root nodes of the documents of a YAML file.

    Raises:
        DeclarationError: one problem: the file is no UTF-8 text, or not YAML.
    """
    text = decode(path, data)
    parsed_text, replaced = _replace_old_line_breaks(path, text)
    _check_directives(path, parsed_text)
    nodes = []
    try:
        composer = COMPOSER(parsed_text)
        while composer.check_node():
            nodes.append(composer.get_node())
            if len(nodes) > MAX_DOCUMENTS:
                what = f"the file has more than {MAX_DOCUMENTS:,} documents; this is the first beyond"
                raise DeclarationError(
                    [Problem(node_place(shown(path), nodes[-1]), what, "put them into several files")]
                )
    except _TooMuch as error:
        raise DeclarationError([Problem(Source(shown(path)), str(error))]) from None
    except yaml.YAMLError as error:
        raise DeclarationError([syntax_problem(shown(path), text, error)]) from None
    if "\t" in text:
        problem = tab_problem(shown(path), text, nodes)
        if problem:
            raise DeclarationError([problem])
    if replaced:
        for node in _scalars(nodes):
            node.value = node.value.translate(replaced)
    return nodes


_OLD_LINE_BREAKS: Final = "\x85\u2028\u2029"
"""Line breaks of YAML 1.1, which PyYAML and libyaml follow. In YAML 1.2, and in most editors, they are ordinary characters."""


def _replace_old_line_breaks(path: str, text: str) -> tuple[str, dict[int, str]]:
    """Return `text` with unused characters for _OLD_LINE_BREAKS, and a translation of these characters back.

    Raises:
        DeclarationError: one problem: the text uses too many private characters.
    """
    if text.isascii() or not any(letter in text for letter in _OLD_LINE_BREAKS):
        return text, {}
    used = {*text}
    unused = [letter for letter in map(chr, range(0xE000, 0xF900)) if letter not in used]
    if len(unused) < len(_OLD_LINE_BREAKS):
        at = min(text.index(letter) for letter in _OLD_LINE_BREAKS if letter in used)
        raise DeclarationError(
            [Problem(place(shown(path), text, at), "this character cannot be read here", "remove it")]
        )
    pairs = [*zip(_OLD_LINE_BREAKS, unused, strict=False)]
    parsed_text = text.translate({ord(letter): stand_in for letter, stand_in in pairs})
    return parsed_text, {ord(stand_in): letter for letter, stand_in in pairs}


# A caller that needs one place in a file often needs one in each of its thousands of documents.
_composed = lru_cache(maxsize=1)(compose)


def _check_directives(path: str, text: str) -> None:
    """There is none but `%YAML`: both parsers compare each `%TAG` with all before it, and nothing here has a tag.

    Raises:
        DeclarationError: one problem: there is another.
    """
    if "%" not in text or not _DIRECTIVE.search(text):
        return
    scanner = COMPOSER(text)
    try:
        while scanner.check_token():
            token = scanner.get_token()
            if isinstance(token, yaml.DirectiveToken) and token.name != "YAML":
                at = Source(shown(path), token.start_mark.line + 1, token.start_mark.column + 1)
                raise DeclarationError([Problem(at, *NO_DIRECTIVES)])
    except yaml.YAMLError:
        # The parser finds it, too.
        return


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a YAML file: its value, and the node it was built from."""

    node: yaml.Node
    value: Any


def read_yaml(path: str, data: bytes, *, number_keys: bool = False) -> tuple[list[YamlDocument], list[Problem]]:
    """Return the documents of a YAML file, and what is wrong with them short of syntax: repeated keys, tags, keys of no text.

    With `number_keys` a key may also be a whole number, which is kept as it is written.

    Raises:
        DeclarationError: one problem, with which there is nothing to build: no UTF-8 text, not YAML, an alias bomb.
    """
    nodes = compose(path, data)
    builder = _ValueBuilder(shown(path), aliases=b"*" in data, number_keys=number_keys)
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
_UNUSUAL: Final = _NUMBER_STARTS | {"<"}
"""What an unquoted key that is no text, or a merge key, can start with."""
_INT: Final = re.compile(r"[-+]?[0-9]+")
_PREFIXED: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def plain(text: str) -> Any:
    """Return the value of an unquoted scalar (YAML 1.2.2, section 10.3.2).

    Raises:
        ValueError: a number beyond what a double or Python's own limit on digits holds.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _PREFIXED.fullmatch(text):
        return int(text, base=0)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise ValueError("beyond a double")
        return number
    return text


class _ValueBuilder:
    """Builds the values of a file's documents and collects what is wrong with them."""

    def __init__(self, path: str, *, aliases: bool, number_keys: bool = False) -> None:
        self.path = path
        self.aliases = aliases
        self.number_keys = number_keys
        self.problems: list[Problem] = []
        # By node: the weight and value of what was built, None while it is being built.
        self._built: dict[int, tuple[int, Any] | None] = {}
        self._weight = 0

    def value(self, node: yaml.Node) -> Any:
        """Return the value of `node`: a dict, list, str, int, float, bool or None."""
        if self.aliases:
            return self._shared(node)
        return self._make(node)

    def _make(self, node: yaml.Node) -> Any:
        if node.tag is not None:
            self._problem(node, *NO_TAGS)
        if node.__class__ is yaml.ScalarNode:
            return node.value if node.style else self._plain(node)
        value = self.value if self.aliases else self._make
        if node.__class__ is yaml.SequenceNode:
            return [value(item) for item in node.value]
        built: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if key_node.__class__ is not yaml.ScalarNode:
                self._problem(key_node, "a key is text, not a list or a mapping", "write one word before the colon")
                continue
            if key in built:
                self._problem(key_node, f"the key `{key[:60]}` is repeated", "keep one of the two")
                continue
            if not key_node.style and (key in _CONSTANTS or key[0] in _UNUSUAL or key_node.tag is not None):
                self._key(key_node)
            built[key] = value(value_node)
        return built

    def _key(self, node: yaml.Node) -> None:
        """Return what is wrong with an unquoted key that may be no text."""
        if node.tag is not None:
            self._make(node)
        elif node.value == "<<":
            self._problem(node, "merge keys (`<<`) are not part of YAML 1.2", "repeat the keys, or alias a whole value")
        elif self.number_keys and _INT.fullmatch(node.value):
            return
        elif not isinstance(self._plain(node), str):
            self._problem(
                node, f"a key is text, but `{node.value[:60]}` is not", f'put it in quotes: "{node.value[:60]}"'
            )

    def _plain(self, node: yaml.Node) -> Any:
        try:
            return plain(node.value)
        except ValueError:
            self._problem(node, f"the number `{node.value[:20]}...` is too large", "put it in quotes if it is text")
            return 0

    def _shared(self, node: yaml.Node) -> Any:
        """Return the value of `node`, built once however many aliases lead to it, and weighed every time.

        Raises:
            DeclarationError: the value contains itself, or written out the file would be larger than MAX_BYTES.
        """
        if id(node) not in self._built:
            self._built[id(node)] = None
            before = self._weight
            self._weight += 1 + (len(node.value) if node.__class__ is yaml.ScalarNode else 0)
            value = self._make(node)
            self._built[id(node)] = (self._weight - before, value)
            return value
        known = self._built[id(node)]
        if known is None:
            raise self._hopeless(node, "this value contains an alias of itself", "write it out")
        weight, value = known
        self._weight += weight
        if self._weight > MAX_BYTES:
            what = f"the aliases of this value make the file larger than {MAX_BYTES:,} bytes when written out"
            raise self._hopeless(node, what, "use fewer aliases")
        return value

    def _hopeless(self, node: yaml.Node, what: str, fix: str) -> DeclarationError:
        return DeclarationError([*self.problems, Problem(node_place(self.path, node), what, fix)])

    def _problem(self, node: yaml.Node, what: str, fix: str) -> None:
        self.problems.append(Problem(node_place(self.path, node), what, fix))


def scalar_place(path: str, data: bytes, node: yaml.Node, offset: int) -> Source:
    """Return the place of the character at `offset` of a text in the file.

    It is exact in `|` texts and in quotes on one line. In a folded text (`>`), or in quotes over several lines, it is where
    the text starts.
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
            return Source(shown(path), start.line + row + 2, len(line) - len(content) + column)
    elif style in ("'", '"') and start.line == end.line:
        raw = lines[start.line][start.column + 1 : end.column - 1]
        before = [unit[0] for unit in _UNIT[style].finditer(raw)][:offset]
        return Source(shown(path), start.line + 1, start.column + 2 + sum(map(len, before)))
    return node_place(shown(path), node)


_DIRECTIVE: Final = re.compile("(?:^|[\n\r])%")
"""Where one may be, unless it is the line of a text."""

_UNIT: Final = {"'": re.compile(r"''|."), '"': re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|.")}
"""What stands for one character inside quotes."""


Value = str | int | Sequence[str] | Mapping[str, "Value"]

_BARE: Final = re.compile(r"(?:\.\.?/)*[A-Za-z_][A-Za-z0-9_./:+-]*(?<!:)")
_WORDS: Final = re.compile(r"(?i:null|true|false|yes|no|on|off|y|n)")
"""Other readers of YAML take some of these for no text."""

_TO_ESCAPE: Final = re.compile("[^\n\r\t -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def yaml_text(values: Mapping[str, Value]) -> str:
    """`values` as one YAML document, keys in their order. An empty mapping is left out."""
    return "".join(f"{line}\n" for line in _written_lines(values, 0))


def _written_lines(values: Mapping[str, Value], depth: int) -> Iterator[str]:
    for key, value in values.items():
        label = f"{'  ' * depth}{scalar(key)}:"
        if isinstance(value, str | int):
            yield f"{label} {scalar(value)}"
        elif not isinstance(value, Mapping):
            yield f"{label} [{', '.join(map(scalar, value))}]"
        elif value:
            yield label
            yield from _written_lines(value, depth + 1)


def scalar(value: str | int) -> str:
    """`value` as YAML writes it on one line, in quotes where it needs them."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _BARE.fullmatch(value) and not _WORDS.fullmatch(value):
        return value
    # JSON's text in quotes is YAML's, but for what YAML wants escaped and JSON does not.
    return _TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


# Messages for syntax errors

NO_TAGS: Final = ("tags (`!...`) are not used here", "write the value alone; put it in quotes if it is text")
NO_DIRECTIVES: Final = ("directives (`%...`) are not used here", "remove the line")

_MESSAGES: Final = {
    "invalid Unicode": ("this is no character", "write the character itself"),
    "unknown escape": ("this is no YAML escape", "write `\\\\` for a backslash, or use single quotes"),
    "a quoted scalar": ("this quote is never closed", "close it, or double it where it belongs to the text"),
    "mapping values are not allowed": ("a `:` cannot stand here", "put a value that holds `: ` in quotes"),
    "could not find expected ':'": (
        "this line is no `key: value`",
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
    "tag": NO_TAGS,
    "a block scalar": ("this cannot follow `|` or `>`", "start the text on the next line"),
    "directive": NO_DIRECTIVES,
    "YAML document": NO_DIRECTIVES,
    "<document start>": ("text follows the end of a document", "start the next document with `---`"),
    "cannot start any token": ("`{found}` cannot start a value", "put the value in quotes"),
}
"""By words of libyaml or PyYAML: what is wrong, and the fix. {start}: the line where the thing in question starts."""

_AT_START: Final = ("a quoted scalar", "could not find expected ':'", "scanning an alias", "scanning an anchor", "tag")
"""Of those, where the place to look at is where the thing starts, not where the parser stopped."""

_UNPRINTABLE: Final = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END: Final = re.compile(r"\r\n|[\n\r]")
_LAST_WORD: Final = re.compile(r"(?<=[\s\]}\"'])[\w.-]+$")
_ITEM: Final = re.compile(r"[\w./-]+|\"[^\"\n]{0,60}\"|'[^'\n]{0,60}'")
_KEY_AND_VALUE: Final = re.compile(r"( *(?:- +)*)([\w.-]+): +[^\s#|>&*\[{]")
_NO_BLANK: Final = re.compile(r"( *[A-Za-z_]+):([^\s:/'\"]\S{0,60})\s*$")
_TAB: Final = re.compile(r" *\t\s*?(?=\S)")


def syntax_problem(path: str, text: str, error: yaml.YAMLError) -> Problem:
    """Return what PyYAML found wrong with `text`, as a problem at the place to look at."""
    if isinstance(error, ReaderError):
        found = _UNPRINTABLE.search(text)
        at = found.start() if found else 0
        return Problem(
            place(path, text, at), f"the character U+{ord(text[at]):04X} is not allowed in YAML", "remove it"
        )
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Problem(Source(path), f"this is not YAML: {error}")
    mark, start = error.problem_mark, error.context_mark
    line = _source_lines(text)[mark.line]
    if _TAB.match(line):
        return _tab_problem_at(path, mark.line, line)
    error_text = f"{error.context or ''} {error.problem or ''}"
    if problem := _no_blank(path, text, error_text, mark):
        return problem
    if known := _missing_comma(text, error_text, mark, start) or _too_deep(text, error_text, mark):
        at, what, fix = known
        return Problem(Source(path, mark.line + 1, at + 1), what, fix)
    for words, (what, fix) in _MESSAGES.items():
        if words in error_text:
            begins = f"line {start.line + 1}" if start else "the line above"
            mark = start if start and words in _AT_START else mark
            stopped_at = line[mark.column : mark.column + 1]
            filled = what.replace("{start}", begins).replace("{found}", stopped_at)
            return Problem(_source(path, text, mark), filled, fix)
    return Problem(_source(path, text, mark), f"this is not YAML: {error.problem}")


def _source_lines(text: str) -> list[str]:
    """Return the lines of `text` as the parsers count them, and an empty one after the last, where they may stop."""
    return [*_LINE_END.split(text), ""]


def _missing_comma(text: str, error_text: str, mark: yaml.Mark, start: yaml.Mark | None) -> tuple[int, str, str] | None:
    """Return the column of an item of a list or mapping on which no comma follows, what is wrong, and the fix."""
    if start is None or "',' or" not in error_text:
        return None
    lines = _source_lines(text)
    line = lines[mark.line]
    # The parser stops at the item itself, or at the colon behind it.
    before = _LAST_WORD.search(line[: mark.column]) if line[mark.column : mark.column + 1] == ":" else None
    at = before.start() if before else mark.column
    item = _ITEM.match(line, at)
    opening = lines[start.line]
    if not item or (mark.line > start.line and at <= len(opening) - len(opening.lstrip())):
        return None
    return at, f"there is no comma before `{item[0]}`", f"put a comma before `{item[0]}`"


def _no_blank(path: str, text: str, error_text: str, mark: yaml.Mark) -> Problem | None:
    """Return the problem of a key without a blank behind its colon, on the line before the one where the parser stopped."""
    lines = _source_lines(text)
    over = next((number for number in range(mark.line - 1, -1, -1) if lines[number].strip()), None)
    if over is None or not ("mapping values" in error_text or "could not find expected ':'" in error_text):
        return None
    key = _NO_BLANK.match(lines[over])
    if key is None:
        return None
    at = Source(path, over + 1, key.end(1) + 2)
    return Problem(at, f"a space is missing after `{key[1].strip()}:`", f"write `{key[1].strip()}: {key[2]}`")


def _too_deep(text: str, error_text: str, mark: yaml.Mark) -> tuple[int, str, str] | None:
    """Return the column of a line that is indented more than the `key: value` above it, what is wrong, and the fix."""
    if "mapping values are not allowed" not in error_text:
        return None
    line, *above = reversed(_source_lines(text)[: mark.line + 1])
    indent = len(line) - len(line.lstrip())
    over = next((each for each in above if each.strip() and not each.lstrip().startswith("#")), "")
    key = _KEY_AND_VALUE.match(over)
    if key is None or indent <= len(key[1]) or ": " in f"{line[: mark.column]} ".rstrip("\n"):
        return None
    spaces = indent - len(key[1])
    many = "one space" if spaces == 1 else f"{spaces} spaces"
    return indent, f"this line is indented {many} too far", f"start it in the same column as `{key[2]}`"


def _source(path: str, text: str, mark: yaml.Mark) -> Source:
    """Return the place of a mark; one on the line after the last is at the end of the text."""
    lines = _source_lines(text)
    if mark.line == len(lines) - 1:
        return Source(path, mark.line, len(lines[-2]) + 1)
    return Source(path, mark.line + 1, mark.column + 1)


def tab_problem(path: str, text: str, nodes: list[yaml.Node]) -> Problem | None:
    """Return the first line that a tab indents, outside of texts of several lines; the C parser lets some of them pass."""
    lines = {number for number, line in enumerate(text.split("\n")) if _TAB.match(line)}
    for node in _scalars(nodes) if lines else ():
        first, last = node.start_mark, node.end_mark
        lines -= set(range(first.line + 1, last.line + (last.column > 0)))
    if not lines:
        return None
    return _tab_problem_at(path, min(lines), text.split("\n")[min(lines)])


def _tab_problem_at(path: str, line: int, content: str) -> Problem:
    return Problem(
        Source(path, line + 1, content.index("\t") + 1), "a tab indents this line", "YAML indents with spaces alone"
    )


def _scalars(nodes: list[yaml.Node]) -> Iterator[yaml.ScalarNode]:
    """Every scalar under `nodes`, each once."""
    seen: set[int] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield node
        elif isinstance(node, yaml.MappingNode):
            stack += [each for pair in node.value for each in pair]
        else:
            stack += node.value
