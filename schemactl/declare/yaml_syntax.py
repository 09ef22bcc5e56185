"""Messages for YAML syntax errors, with the place to correct, whichever parser reported them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import yaml
from yaml.reader import ReaderError

from schemactl.core.errors import Problem, Source
from schemactl.source import place

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
    "undefined alias": (
        "this alias has no anchor (`&name`) before it",
        "put text that starts with `*` in quotes",
    ),
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

_AT_START: Final = (
    "a quoted scalar",
    "could not find expected ':'",
    "scanning an alias",
    "scanning an anchor",
    "tag",
)
"""Of those, where the place to look at is where the thing starts, not where the parser stopped."""

_UNPRINTABLE: Final = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END: Final = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
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
    line = _lines(text)[mark.line]
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


def _lines(text: str) -> list[str]:
    """Return the lines of `text` as the parsers count them, and an empty one after the last, where they may stop."""
    return [*_LINE_END.split(text), ""]


def _missing_comma(
    text: str, error_text: str, mark: yaml.Mark, start: yaml.Mark | None
) -> tuple[int, str, str] | None:
    """Return the column of an item of a list or mapping on which no comma follows, what is wrong, and the fix."""
    if start is None or "',' or" not in error_text:
        return None
    lines = _lines(text)
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
    lines = _lines(text)
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
    line, *above = reversed(_lines(text)[: mark.line + 1])
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
    lines = _lines(text)
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
        Source(path, line + 1, content.index("\t") + 1),
        "a tab indents this line",
        "YAML indents with spaces alone",
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
