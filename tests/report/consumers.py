"""What reads the output of a command: a build server, a Markdown renderer, a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyte
from markdown_it import MarkdownIt
from markdown_it.token import Token

_V2 = re.compile(r"\s*::([^ :]+)(?: (.*?))?::(.*)")
_V1 = re.compile(r"##(?:vso)?\[([^\]]+)\](.*)", re.IGNORECASE)


def workflow_commands(text: str) -> Iterator[str]:
    """The commands that build servers would obey, one of a line at most, without their data.

    As GitHub's runner has it (ActionCommand.TryParseV2: after blanks, at the start of a line; TryParse: `##[` anywhere), and
    Azure Pipelines' agent (`##vso[` anywhere). A runner reads lines that end in CR, LF or both.
    """
    for line in re.split("\r\n|\r|\n", text):
        if found := _V2.match(line) or _V1.search(line):
            yield found[1]


def screen(text: str) -> tuple[list[str], str]:
    """What stands on a terminal that is wide enough after `text`, without blanks at line ends, and the window's title."""
    lines = text.split("\n")
    terminal = pyte.Screen(max(len(line.expandtabs()) for line in lines) + 8, len(lines) + 1)
    stream = pyte.Stream(terminal)
    stream.feed(text.replace("\n", "\r\n"))
    return [line.rstrip() for line in terminal.display[: len(lines)]], terminal.title


_OURS = re.compile(r"</?(?:details|summary|b|code)>|<!-- schemactl:report:check -->")
_MENTION = re.compile(r"(?<![\w`])@[A-Za-z0-9]|(?<!\w)(?:#|GH-)\d|:[a-z0-9_+-]+:")
"""What GitHub's filters take for mentions, references and emoji in the text of a rendered page."""


def markdown_faults(text: str) -> list[str]:
    """What in a Markdown report is more than text: links, pictures, HTML that is not ours, mentions, ragged tables."""
    faults = []
    columns = 0
    cells = 0
    for token in _flat(MarkdownIt("gfm-like", {"html": True, "linkify": True}).parse(text)):
        kind: Any = token.type
        if kind in (
            "image",
            "link_open",
            "fence",
            "code_block",
            "bullet_list_open",
            "ordered_list_open",
            "hr",
            "heading_open",
        ):
            faults.append(kind)
        elif kind in ("html_inline", "html_block"):
            rest = _OURS.sub("", token.content)
            faults += [f"html: {rest}"] if "<" in rest else []
        elif kind == "text":
            faults += [f"mention: {found}" for found in _MENTION.findall(token.content)]
        elif kind == "tr_open":
            cells = 0
        elif kind in ("td_open", "th_open"):
            cells += 1
        elif kind == "tr_close":
            columns = columns or cells
            faults += [f"a row of {cells}"] if cells != columns else []
    return faults


def _flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or [])
