"""What to say of a text that is not YAML: our words, at the place to look at, whichever parser found it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import yaml
from yaml.reader import ReaderError

from schemactl.errors import Problem, Source
from schemactl.source import place

_SAYINGS: Final = (
    # Words of libyaml or PyYAML; whether the place is where the thing in question starts; what to say; the fix.
    (
        "a quoted scalar",
        True,
        "this quote is never closed",
        "close it, or double it where it belongs to the text",
    ),
    (
        "mapping values are not allowed",
        False,
        "a `:` cannot stand here",
        "put a value that holds `: ` in quotes; indent keys like their siblings",
    ),
    (
        "could not find expected ':'",
        True,
        "this line is no `key: value`",
        "write `key: value`, or indent it if it continues the text above",
    ),
    ("',' or ']'", False, "expected `,` or `]` of the list that starts at {start}", "close the list"),
    ("',' or '}'", False, "expected `,` or `}` of the mapping that starts at {start}", "close the mapping"),
    (
        "while parsing a block mapping",
        False,
        "this line fits neither the mapping that starts at {start} nor a level below it",
        "indent it like the keys it belongs to",
    ),
    (
        "while parsing a block collection",
        False,
        "this line fits neither the list that starts at {start} nor a level below it",
        "indent it like the items it belongs to",
    ),
    (
        "undefined alias",
        False,
        "this alias has no anchor (`&name`) before it",
        "put text that starts with `*` in quotes",
    ),
    ("second occurrence", False, "this anchor is defined for the second time", "give it another name"),
    ("while scanning an alias", True, "an alias needs a name", "put text that starts with `*` in quotes"),
    ("while scanning an anchor", True, "an anchor needs a name", "put text that starts with `&` in quotes"),
    ("escape", False, "this is no YAML escape", "write the character itself, or `\\\\` for a backslash"),
    ("tag", True, "tags (`!...`) are not used here", "write the value alone; put it in quotes if it is text"),
    ("a block scalar", False, "this cannot follow `|` or `>`", "start the text on the next line"),
    ("directive", False, "directives (`%...`) are not used here", "remove the line"),
    ("YAML document", False, "directives (`%...`) are not used here", "remove the line"),
    ("<document start>", False, "text follows the end of a document", "start the next document with `---`"),
    ("cannot start any token", False, "`{found}` cannot start a value", "put the value in quotes"),
)

_UNPRINTABLE: Final = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAB: Final = re.compile(r"^ *\t\s*?(?=\S)", re.MULTILINE)


def syntax_problem(path: str, text: str, error: yaml.YAMLError) -> Problem:
    """What PyYAML found wrong with `text`, in our words and at the place to look at."""
    if isinstance(error, ReaderError):
        found = _UNPRINTABLE.search(text)
        at = found.start() if found else 0
        return Problem(
            place(path, text, at), f"the character U+{ord(text[at]):04X} is not allowed in YAML", "remove it"
        )
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Problem(Source(path), f"this is not YAML: {error}")
    mark, start = error.problem_mark, error.context_mark
    line = text.split("\n")[mark.line] if mark.line <= text.count("\n") else ""
    if _TAB.match(line):
        return _tab_problem_at(path, mark.line, line)
    said = f"{error.context or ''} {error.problem or ''}"
    for words, from_start, saying, fix in _SAYINGS:
        if words in said:
            if from_start and start:
                mark = start
            begins = f"line {start.line + 1}" if start else "the line above"
            what = saying.replace("{start}", begins).replace("{found}", line[mark.column : mark.column + 1])
            return Problem(Source(path, mark.line + 1, mark.column + 1), what, fix)
    return Problem(Source(path, mark.line + 1, mark.column + 1), f"this is not YAML: {error.problem}")


def tab_problem(path: str, text: str, nodes: list[yaml.Node]) -> Problem | None:
    """The first line that a tab indents, outside of texts of several lines; the C parser lets some of them pass."""
    lines = {text.count("\n", 0, found.start()) for found in _TAB.finditer(text)}
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
