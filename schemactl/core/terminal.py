r"""Format text for terminals and build logs: escape foreign text, color it, align tables, and fit lines to a width.

Names and texts come from pull requests and registries. Control characters (C0, C1, bidirectional), Unicode's line separators
and lone surrogates are escaped as in JSON, like `\u009b`. So is one character at the start of a workflow command: `::` at the
start of a line, also after blanks (GitHub), and `##[` and `##vso[` anywhere (Azure Pipelines, older GitHub). Valid JSON stays
valid, with the same meaning.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from typing import Any, TextIO


_CONTROL_CHARACTERS = "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
_COMMAND_START = r"^([^\S\n]*):(?=:)"
_COMMAND_INSIDE = r"##(?=\[|vso\[)"

_LINK_ID: Final = os.urandom(4).hex()
"""The id of the links of this process. Foreign text cannot know it, so a link in foreign text is escaped."""

_STYLE_PATTERN = rf"\x1b\[(?:0|1|2|31|32|33|36|1;3[1236]|1;4;31)m|\x1b\]8;id={_LINK_ID};[!-~]+\x1b\\|\x1b\]8;;\x1b\\"
"""The styles that `paint` writes, and the links of `paint_link`."""

_CODES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "bold red": "1;31",
    "bold green": "1;32",
    "bold yellow": "1;33",
    "bold cyan": "1;36",
    "marked": "1;4;31",
}

_UNBREAKABLE = re.compile(r"(?:(?<=: )|(?<=  )|(?<=\x1b\[0m ))(?:\x1b\[\d+m)?schemactl [a-z].*|(?:`[^`]*`|[^ ])+")
"""A command after a colon or in a column, or a word with the text in backquotes."""

_ANY_STYLE = re.compile(r"\x1b\[[0-9;]+m|\x1b\]8;[^\x1b]*\x1b\\")

SIGNS: Final = {"+": "green", "~": "yellow", "-": "red", "!": "red", "=": "cyan"}
"""The style of the sign of a line: added, changed, removed, rejected, unchanged."""

SHADES: Final = {"good": "green", "doubtful": "yellow", "bad": "red", "": ""}
"""The style of a cell or summary."""

_DIFF_COLORS: Final = {"+": "green", "-": "red", "@": "cyan"}

_LINKING_TERMINALS: Final = {
    "TERM_PROGRAM": ("iTerm.app", "WezTerm", "vscode", "Hyper", "ghostty", "rio", "mintty"),
    "TERM": ("xterm-kitty", "xterm-ghostty", "alacritty", "foot"),
}
"""The values of variables by which terminals with links are known."""

_FIRST_VTE: Final = 5000
"""The first release of VTE (GNOME and others) with links."""

_ADDRESS_CHARACTERS: Final = "!#$%&'()*+,/:;=?@[]~"

_MIN_COLUMN_WIDTH = 8
"""The smallest width of a column of a table."""


def clean(text: str, *, styled: bool = False, starts_line: bool = True) -> str:
    """Escape all characters that a terminal or a build server would interpret, except line ends.

    Args:
        text: any text.
        styled: whether to keep the styles of this program.
        starts_line: whether `text` begins at the start of a line.
    """
    if text.replace("\n", "").isprintable() and "::" not in text and "##" not in text:
        return text

    if styled:
        parts = re.split(f"({_STYLE_PATTERN})", text)
        return "".join(
            part
            if index % 2
            else clean(part, starts_line=starts_line and (not index or parts[index - 2].endswith("\n")))
            for index, part in enumerate(parts)
        )
    text = escape(text, _CONTROL_CHARACTERS)
    text = re.sub(_COMMAND_INSIDE, r"#\\u0023", text, flags=re.IGNORECASE)
    first = "" if starts_line else text.partition("\n")[0]
    return first + re.sub(_COMMAND_START, r"\1\\u003a", text[len(first) :], flags=re.MULTILINE)


def on_one_line(text: str) -> str:
    """Clean a text and escape its line ends and tabs, for use inside a sentence."""
    return clean(text).replace("\n", "\\n").replace("\t", "\\t")


def escape(text: str, characters: str | re.Pattern[str]) -> str:
    r"""Return `text` with each of the characters that a pattern matches escaped as in JSON, such as `\u009b`."""
    return re.sub(characters, lambda match: f"\\u{ord(match[0]):04x}", text)


class CleanStream:
    """A wrapper around a text stream that cleans everything that is written.

    Attributes:
        uncleaned: the wrapped stream.
        styled: whether to keep the styles of this program.
    """

    def __init__(self, stream: TextIO) -> None:
        self.uncleaned = stream
        self.styled = False
        self._line: str | None = ""
        """The current line if it is blank or a single colon, else None."""

    def write(self, text: str) -> int:
        """Clean and write a text, and return its length."""
        starts_line = self._line is not None and not self._line.strip()
        # Two colons that are written separately would also start a workflow command.
        is_second_colon = self._line is not None and not starts_line and text.startswith(":")
        cleaned = clean(text[is_second_colon:], styled=self.styled, starts_line=starts_line)
        self.uncleaned.write((r"\u003a" if is_second_colon else "") + cleaned)
        *_, last = text.rsplit("\n", 1)
        line = last if "\n" in text else None if self._line is None else self._line + last
        self._line = line if line is not None and line.strip() in ("", ":") else None
        return len(text)

    def writelines(self, pieces: Iterable[str]) -> None:
        """Clean and write the pieces of a text."""
        for piece in pieces:
            self.write(piece)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.uncleaned, name)


def get_definition_stream(stream: TextIO) -> TextIO:
    """Return the stream for a definition: uncleaned if it is redirected to a file or a program, else cleaned."""
    return stream if stream.isatty() else get_raw_stream(stream)


def get_raw_stream(stream: TextIO) -> TextIO:
    """Return the stream inside a `CleanStream`, for output in a protocol, or `stream` itself."""
    return stream.uncleaned if isinstance(stream, CleanStream) else stream


def paint(text: str, style: str, *, color: bool) -> str:
    """Return `text` in a style of `_CODES`, or unchanged without color or for the style ""."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if color and style else text


def paint_link(text: str, address: str, *, color: bool) -> str:
    """Return `text` as a link (OSC 8) if standard output is a terminal that supports links, or unchanged without an address."""
    if not (color and address and supports_links()):
        return text
    return f"\x1b]8;id={_LINK_ID};{quote(address, safe=_ADDRESS_CHARACTERS)}\x1b\\{text}\x1b]8;;\x1b\\"


def supports_links(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the terminal is known to support links; FORCE_HYPERLINK decides if it is set."""
    if (forced := environment.get("FORCE_HYPERLINK")) is not None:
        return forced not in ("", "0")
    if sys.stdout is None or not sys.stdout.isatty() or environment.get("TERM") == "dumb":
        return False
    is_vte = environment.get("VTE_VERSION", "0").isdigit() and int(environment.get("VTE_VERSION", "0")) >= _FIRST_VTE
    return (
        is_vte
        or any(environment.get(variable) in values for variable, values in _LINKING_TERMINALS.items())
        or any(map(environment.get, ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "WEZTERM_PANE", "DOMTERM")))
    )


def render_file_diff(path: str, old_text: str, new_text: str, *, color: bool) -> Iterator[str]:
    """Yield the lines of the unified diff of a file, as `git diff` shows it."""
    import difflib

    old_lines, new_lines = old_text.splitlines(), new_text.splitlines()
    for line in difflib.unified_diff(old_lines, new_lines, f"a/{path}", f"b/{path}", lineterm=""):
        yield paint_diff(line, color=color)


def paint_diff(line: str, *, color: bool) -> str:
    """Return a line of a unified diff in the style of `git diff`."""
    return paint(line, "bold" if line.startswith(("+++", "---")) else _DIFF_COLORS.get(line[:1], ""), color=color)


def format_table(
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    numeric: Collection[int] = (),
    styles: Sequence[Sequence[str]] | None = None,
    whole: Collection[int] = (),
    indent: int = 0,
) -> list[str]:
    """Return the lines of a table with aligned columns.

    rich.table would make `schemactl list` of 20 topics 8% slower and of 5,000 topics 60%, and it leaves out the end of a long text.

    Args:
        rows: rows of equally many cells.
        width: the longest line, for which the widest columns are shortened, or None for any.
        numeric: the indices of columns that are aligned to the right.
        styles: the style of each cell, "" for none, or None for no styles.
        whole: the indices of columns that are shortened last.
        indent: the number of blanks before each line, which count for the width.
    """
    if not rows:
        return []
    if width is not None:
        width -= indent
    widths = [max(map(count_columns, column)) for column in zip(*rows, strict=True)]
    while width is not None and sum(widths) + 2 * len(widths) - 2 > width and max(widths) > _MIN_COLUMN_WIDTH:
        others = [index for index, size in enumerate(widths) if index not in whole and size > _MIN_COLUMN_WIDTH + 2]
        widths[max(others or range(len(widths)), key=widths.__getitem__)] -= 1

    def format_cell(index: int, text: str, style: str, *, is_last: bool) -> str:
        size = widths[index]
        if count_columns(text) > size:
            text = _omit_middle(text, size)
        painted = paint(text, style, color=True) if style and text else text
        blanks = " " * (size - count_columns(text))
        return blanks + painted if index in numeric else painted + ("" if is_last else blanks)

    return [
        " " * indent
        + "  ".join(
            format_cell(index, text, styles[number][index] if styles else "", is_last=index == len(row) - 1)
            for index, text in enumerate(row)
        ).rstrip()
        for number, row in enumerate(rows)
    ]


def _omit_middle(text: str, width: int) -> str:
    """Return the start and the end of a text with an ellipsis between them, which take at most `width` columns."""
    widths = [count_columns(character) for character in text]
    head_length = bisect_right([*accumulate(widths)], width // 2)
    tail_start = len(text) - bisect_right([*accumulate(reversed(widths))], width - width // 2 - 1)
    while tail_start < len(text) and widths[tail_start] == 0:
        # A mark without its letter would be shown on the ellipsis.
        tail_start += 1
    return f"{text[:head_length]}…{text[tail_start:]}"


def count_columns(text: str) -> int:
    """Return the number of columns that a text takes on a terminal: two for a wide character of East Asia, none for a mark."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(character) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def truncate(text: str, most: int) -> str:
    """Return the first `most` characters of a text, followed by ` ...` if it is longer."""
    return text if len(text) <= most else f"{text[:most]} ..."


def get_terminal_width() -> int | None:
    """Return the columns of the terminal, or None if standard output is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def wrap_text(text: str, width: int | None) -> str:
    """Break lines longer than `width` at blanks, with an indent, or return the text unchanged if `width` is None.

    Commands and text in backquotes are not broken, so that they can be pasted.
    """
    if width is None:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in _break_line(line, width))


def _break_line(line: str, width: int) -> Iterator[str]:
    if count_columns(_ANY_STYLE.sub("", line)) <= width:
        yield line
        return
    indent = " " * min(len(line) - len(line.lstrip(" ")), width // 2)
    hanging, words, length_so_far = f"{indent}  ", list[str](), len(indent) - 1
    for word in _split_words(line.lstrip(" ")):
        length = count_columns(_ANY_STYLE.sub("", word))
        if words and length_so_far + 1 + length > width:
            yield indent + " ".join(words)
            indent, words, length_so_far = hanging, [], len(hanging) - 1
        words.append(word)
        length_so_far += 1 + length
    yield indent + " ".join(words)


def _split_words(line: str) -> Iterator[str]:
    """Yield the parts of a line that must not be broken; a command is one part."""
    start = 0
    while start <= len(line):
        word = _UNBREAKABLE.match(line, start)
        yield word[0] if word else ""
        start = word.end() + 1 if word else start + 1


def is_color_enabled(choice: str) -> bool:
    """Return whether to color standard output: `always`, `never`, or `auto`, which honors NO_COLOR (no-color.org)."""
    if choice == "auto":
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return choice == "always"
