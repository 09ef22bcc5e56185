r"""Text for terminals and build logs: escaping of foreign text, colors, aligned tables, widths.

Names, texts and answers come from pull requests and registries. Every character that is not for reading (C0 and C1 controls,
bidirectional controls, Unicode's own line separators, halves of surrogate pairs) is printed as JSON escapes it, `\u009b`;
likewise one character of what begins a workflow command: `::` at the start of a line (GitHub, after blanks, too), `##[` and
`##vso[` anywhere (Azure Pipelines, older GitHub). So what was valid JSON stays JSON, and means the same.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Any, TextIO


_NOT_FOR_READING = "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
_COMMAND_START = r"^([^\S\n]*):(?=:)"
_COMMAND_INSIDE = r"##(?=\[|vso\[)"
_STYLE_PATTERN = r"\x1b\[(?:0|1|2|31|32|33|36)m"
"""The styles that `report.style` writes."""


def clean(text: str, *, styled: bool = False, starts_line: bool = True) -> str:
    """`text`, in lines as it is, with nothing in it that a terminal or a build server would obey.

    Args:
        text: any text.
        styled: this program's own colours may be in it.
        starts_line: `text` stands at the start of a line.
    """
    if text.replace("\n", "").isprintable() and "::" not in text and "##" not in text:
        return text

    if styled:
        parts = re.split(f"({_STYLE_PATTERN})", text)
        return "".join(
            part if at % 2 else clean(part, starts_line=starts_line and (not at or parts[at - 2].endswith("\n")))
            for at, part in enumerate(parts)
        )
    text = re.sub(_NOT_FOR_READING, _escaped, text)
    text = re.sub(_COMMAND_INSIDE, r"#\\u0023", text, flags=re.IGNORECASE)
    first = "" if starts_line else text.partition("\n")[0]
    return first + re.sub(_COMMAND_START, r"\1\\u003a", text[len(first) :], flags=re.MULTILINE)


def on_one_line(text: str) -> str:
    """`text`, cleaned, with its line ends and tabs as JSON escapes them: a name or a value inside a sentence of ours."""
    return clean(text).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


class CleanStream:
    """A text stream that everything goes to cleaned; what it does not do itself, the stream below it does.

    Attributes:
        uncleaned: the stream below, for output that is a protocol of its own.
        styled: this program's own colours may pass.
    """

    def __init__(self, stream: TextIO) -> None:
        self.uncleaned = stream
        self.styled = False
        self._starts_line = True

    def write(self, text: str) -> int:
        """Write `text` cleaned, and return its length."""
        self.uncleaned.write(clean(text, styled=self.styled, starts_line=self._starts_line))
        if text:
            last = text.rpartition("\n")[2] if "\n" in text else text
            self._starts_line = (self._starts_line or "\n" in text) and not last.strip()
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.uncleaned, name)


def redirected(stream: TextIO) -> TextIO:
    """Return the stream for a definition that is shown: as it is to the byte where it goes to a file or a program, else cleaned."""
    return stream if stream.isatty() else uncleaned(stream)


def uncleaned(stream: TextIO) -> TextIO:
    """Return the stream below a cleaned one, for output that is a protocol of its own; otherwise `stream` itself."""
    return stream.uncleaned if isinstance(stream, CleanStream) else stream


# ANSI styles, used only where colours are enabled

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_WORD = re.compile(r"(?<=: )schemactl [a-z].*|(?:`[^`]*`|[^ ])+")
_ANY_STYLE = re.compile(r"\x1b\[[0-9]+m")
SIGNS: Final = {"+": "green", "~": "yellow", "-": "red", "!": "red", "=": "cyan"}
"""The style of the sign in front of a line: what comes, becomes another, goes, is rejected or breaks, stays."""

SHADES: Final = {"good": "green", "doubtful": "yellow", "bad": "red", "": ""}
"""The style of what a cell or a sum says."""

_DIFF: Final = {"+": "green", "-": "red", "@": "cyan"}
_NARROWEST = 8
"""A column of a table is never narrower."""


def paint(text: str, style: str, *, color: bool) -> str:
    """Return `text` in `style`, a name of `_CODES`; unchanged without colour, or where the style is ""."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if color and style else text


def paint_diff(line: str, *, color: bool) -> str:
    """Return a line of a unified diff in the style that `git diff` shows it in."""
    return paint(line, "bold" if line.startswith(("+++", "---")) else _DIFF.get(line[:1], ""), color=color)


def table(
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    numeric: Collection[int] = (),
    styles: Sequence[Sequence[str]] | None = None,
    whole: Collection[int] = (),
) -> list[str]:
    """Return the rows with their columns aligned, two blanks between them.

    Args:
        rows: the cells, as many in each row.
        width: the longest line; the widest cells are shortened in their middle until it holds. None: any.
        numeric: the columns that are aligned to the right.
        whole: the columns that are shortened last.
        styles: the style of each cell, "" for none; None: there are no colours.
    """
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while width is not None and sum(widths) + 2 * len(widths) - 2 > width and max(widths) > _NARROWEST:
        others = [at for at, each in enumerate(widths) if at not in whole and each > 2 * _NARROWEST]
        widths[max(others or range(len(widths)), key=widths.__getitem__)] -= 1

    def cell(at: int, text: str, style: str, *, is_last: bool) -> str:
        short = _shortened(text, widths[at])
        shown = paint(short, style, color=True) if style and short else short
        blanks = " " * (widths[at] - len(short))
        return blanks + shown if at in numeric else shown + ("" if is_last else blanks)

    return [
        "  ".join(
            cell(at, text, styles[number][at] if styles else "", is_last=at == len(row) - 1)
            for at, text in enumerate(row)
        ).rstrip()
        for number, row in enumerate(rows)
    ]


def _shortened(text: str, width: int) -> str:
    """Return `text`, with `…` for its middle where it is longer than `width`."""
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - head - 1) :]}"


def cut(text: str, most: int) -> str:
    """Return the first `most` characters of `text`, with ` ...` behind them where there are more."""
    return text if len(text) <= most else f"{text[:most]} ..."


def terminal_width() -> int | None:
    """Return the columns of the terminal that standard output is; None where it is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def fit(text: str, width: int | None) -> str:
    """Return `text` with lines longer than `width` broken at blanks, the rest indented below; None: as it is.

    Commands and what is between backquotes are not broken, so that they can be pasted.
    """
    if width is None:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in _broken(line, width))


def _broken(line: str, width: int) -> Iterator[str]:
    if len(_ANY_STYLE.sub("", line)) <= width:
        yield line
        return
    indent = " " * min(len(line) - len(line.lstrip(" ")), width // 2)
    hanging, words, filled = f"{indent}  ", list[str](), len(indent) - 1
    for word in _words(line.lstrip(" ")):
        length = len(_ANY_STYLE.sub("", word))
        if words and filled + 1 + length > width:
            yield indent + " ".join(words)
            indent, words, filled = hanging, [], len(hanging) - 1
        words.append(word)
        filled += 1 + length
    yield indent + " ".join(words)


def _words(line: str) -> Iterator[str]:
    """Yield what may be on lines of their own: a command that is to be pasted is one word."""
    at = 0
    while at <= len(line):
        word = _WORD.match(line, at)
        yield word[0] if word else ""
        at = word.end() + 1 if word else at + 1


def is_welcome(choice: str) -> bool:
    """Return whether standard output is to have colours: `always`, `never`, or `auto`, which honours NO_COLOR (no-color.org)."""
    if choice == "auto":
        terminal = sys.stdout is not None and sys.stdout.isatty()
        return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return choice == "always"
