"""Read the output of a command as a build server, a Markdown renderer or a terminal does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyte
from markdown_it import MarkdownIt
from markdown_it.token import Token

from schemactl.core.rules import find_page, get_builtin_rules

_V2 = re.compile(r"\s*::([^ :]+)(?: (.*?))?::(.*)")
_V1 = re.compile(r"##(?:vso)?\[([^\]]+)\](.*)", re.IGNORECASE)


def workflow_commands(text: str) -> Iterator[str]:
    """The commands that build servers would obey, one of a line at most, without their data.

    As GitHub's runner has it (ActionCommand.TryParseV2: after blanks, at the start of a line; TryParse: `##[` anywhere), and
    Azure Pipelines' agent (`##vso[` anywhere). A runner reads lines that end in CR, LF or both.
    """
    for line in re.split("\r\n|\r|\n", text):
        if match := _V2.match(line) or _V1.search(line):
            yield match[1]


def read_screen(text: str) -> tuple[list[str], str]:
    """Return the lines of a wide terminal after `text`, without trailing blanks, and the title of the window."""
    lines = text.split("\n")
    terminal = pyte.Screen(max(len(line.expandtabs()) for line in lines) + 8, len(lines) + 1)
    stream = pyte.Stream(terminal)
    stream.feed(text.replace("\n", "\r\n"))
    return [line.rstrip() for line in terminal.display[: len(lines)]], terminal.title


_OURS = re.compile(r"</?(?:details|summary|b|code)>|<details open>|<!-- schemactl:report:[a-z]+(?: [\w.%/~-]+)* -->")
_LINKS = {find_page(rule) for rule in get_builtin_rules()}
_MENTION = re.compile(r"(?<![\w`])@[A-Za-z0-9]|(?<!\w)(?:#|GH-)\d|:[a-z0-9_+-]+:")
"""The mentions, references and emoji that GitHub's filters recognize in the text of a rendered page."""


def markdown_faults(text: str, host: str = "https://host.invalid/") -> list[str]:
    """List foreign markup in a Markdown report: pictures, HTML, mentions, ragged tables, and foreign links and code.

    Ours are links to the pages of rules and to lines and commits on `host`, blocks of code that are diffs, and one heading.
    """
    faults = []
    headings = 0
    columns = 0
    cells = 0
    for token in _flatten_tokens(MarkdownIt("gfm-like", {"html": True, "linkify": True}).parse(text)):
        kind: Any = token.type
        if kind in ("image", "code_block", "bullet_list_open", "ordered_list_open", "hr"):
            faults.append(kind)
        elif kind == "heading_open":
            headings += 1
            faults += [kind] if headings > 1 or token.tag != "h3" else []
        elif kind in ("link_open", "fence"):
            faults += _find_foreign(token, host)
        elif kind in ("html_inline", "html_block"):
            rest = _OURS.sub("", token.content)
            faults += [f"html: {rest}"] if "<" in rest else []
        elif kind == "text":
            faults += [f"mention: {mention}" for mention in _MENTION.findall(token.content)]
        elif kind == "table_open":
            columns = 0
        elif kind == "tr_open":
            cells = 0
        elif kind in ("td_open", "th_open"):
            cells += 1
        elif kind == "tr_close":
            columns = columns or cells
            faults += [f"a row of {cells}"] if cells != columns else []
    return faults


def _find_foreign(token: Token, host: str) -> list[str]:
    """Return the link or the block of code if it is not ours."""
    if token.type == "link_open":
        address = str(token.attrs["href"])
        return [] if address in _LINKS or address.startswith(host) else [f"link: {address}"]
    is_ours = token.info == "diff" and all(line[:1] in "+-@ !" for line in token.content.splitlines())
    return [] if is_ours else [f"code: {token.content}"]


def _flatten_tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flatten_tokens(token.children or [])


def azure_issues(text: str) -> list[tuple[dict[str, str], str]]:
    """Return the properties and message of each issue that the agent of Azure Pipelines reads (Command.TryParse, decoded)."""
    issues = []
    for line in text.splitlines():
        if command := re.match(r"##vso\[task\.logissue ([^\]]*)\](.*)", line):
            pairs = (part.partition("=") for part in command[1].split(";") if part)
            issues.append(({name: _unescape_text(value) for name, _, value in pairs}, _unescape_text(command[2])))
    return issues


def _unescape_text(text: str) -> str:
    for code, character in (("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]"), ("%AZP25", "%")):
        text = text.replace(code, character)
    return text
