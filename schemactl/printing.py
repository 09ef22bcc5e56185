r"""Safe output of text from elsewhere: terminals and build servers obey nothing in it.

Names, texts and answers come from pull requests and registries. Every character that is not for reading (C0 and C1 controls,
bidirectional controls, Unicode's own line separators, halves of surrogate pairs) is printed as JSON escapes it, `\u009b`;
likewise one character of what begins a workflow command: `::` at the start of a line (GitHub, after blanks, too), `##[` and
`##vso[` anywhere (Azure Pipelines, older GitHub). So what was valid JSON stays JSON, and means the same.
"""

from __future__ import annotations

# The hook prints with this: neither `re` nor `typing` is imported for text that is plain.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any, TextIO

_NOT_FOR_READING = "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
_COMMAND_START = r"^([^\S\n]*):(?=:)"
_COMMAND_INSIDE = r"##(?=\[|vso\[)"
_STYLE = r"\x1b\[(?:0|1|2|31|32|33|36)m"
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
    import re

    if styled:
        parts = re.split(f"({_STYLE})", text)
        return "".join(
            part
            if at % 2
            else clean(part, starts_line=starts_line and (not at or parts[at - 2].endswith("\n")))
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
