r"""Escape and quote foreign text for the languages of reports, pages and definitions.

`escape_X` returns text in which nothing is markup or a command of X, `quote_X` a literal of X with its quotes. Names and texts
come from pull requests and registries, so functions for what people and build servers read also `clean`.

Every command escapes paths with it, so modules of the standard library that import `ssl` and `urllib.request` are imported on use.
"""

from __future__ import annotations

import re
from typing import Final

from schemactl.core.terminal import clean, on_one_line, truncate

MAX_MARKDOWN_LINE: Final = 8_000
"""The maximum number of characters of a text within a line of Markdown."""

_ZERO_WIDTH_SPACE = "\u200b"

_MARKDOWN_MARKUP = re.compile(rf"[\\`*{{}}\[\]<>#|~&@${_ZERO_WIDTH_SPACE}]|(?<![^\W_])_+|_+(?![^\W_])")
"""Characters that are markup; `_` is not between letters and digits."""

_MARKDOWN_BLOCK = re.compile(r"^(?=[-+=])|(?<=^\d)(?=\d{0,8}[.)])")
"""The start of a line that would be a list, a heading or a rule."""

_LINK_STARTS = re.compile(
    r"[@#]|(?i:(?<=http):(?=//)|(?<=https):(?=//)|(?<=ftp):(?=//))|(?i:(?<!\w)(?:www(?=\.)|GH(?=-\d)))|:(?=[\w+-]+:)"
)
"""Characters that, with the text after them, GitHub renders as a mention, a reference, a link or an emoji."""

_ILLEGAL_IN_HTML: Final = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
"""Characters that HTML does not allow, with their replacements."""

_ILLEGAL_IN_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")

_GO_ESCAPES = dict(zip('\\"\a\b\f\n\r\t\v', '\\"abfnrtv', strict=True))

_JACKSON_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(32)} | {
    ord(character): f"\\{short}" for character, short in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)
}

_PROTO_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


# Build servers


def escape_azure(text: str) -> str:
    """Return `text` escaped for the message or a property of a logging command of Azure Pipelines.

    https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands
    """
    text = clean(text, starts_line=False).replace("%", "%AZP25").replace("\n", "%0A")
    return text.replace(";", "%3B").replace("]", "%5D")


def escape_github(text: str, *, of_property: bool = False) -> str:
    """Return `text` escaped for the message or for a property of a workflow command of GitHub."""
    text = clean(text, starts_line=False).replace("%", "%25").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if of_property else text


# Markup


def escape_html(value: object) -> str:
    """Return the text of a value on one line, escaped for the text and the attributes of HTML elements."""
    import html

    return html.escape(on_one_line(str(value)).translate(_ILLEGAL_IN_HTML))


def escape_jetty(text: str) -> str:
    """Return `text` escaped as in the error pages of a broker's HTTP server, where nothing is removed."""
    from xml.sax import saxutils

    return saxutils.escape(text, {'"': "&quot;", "'": "&apos;"})


def escape_markdown(text: str, *, starts_line: bool = True) -> str:
    """Return `text` on one line, so that no part of it is Markdown, HTML, a link, a mention or a reference to an issue.

    A character reference (CommonMark 0.31, section 2.5) is never markup. GitHub searches the rendered page for mentions,
    references and emoji, so a space of no width separates the first character of one from the rest.

    Args:
        text: any text; what exceeds MAX_MARKDOWN_LINE is cut off.
        starts_line: whether `text` could begin a list, a heading or a rule.
    """
    text = _LINK_STARTS.sub(
        lambda match: f"{'' if match[0] == ':' else _ZERO_WIDTH_SPACE}{match[0]}{_ZERO_WIDTH_SPACE}",
        on_one_line(truncate(text, MAX_MARKDOWN_LINE)),
    )
    if starts_line:
        text = _MARKDOWN_BLOCK.sub(_ZERO_WIDTH_SPACE, text)
    return _MARKDOWN_MARKUP.sub(lambda match: "".join(f"&#{ord(mark)};" for mark in match[0]), text)


def escape_xml(text: str) -> str:
    """Return `text` escaped for the text of an XML element; characters that XML does not allow are replaced."""
    from xml.sax import saxutils

    return saxutils.escape(_replace_illegal(text))


def quote_xml(text: str) -> str:
    """Return `text` as the value of an XML attribute, with its quotes; characters that XML does not allow are replaced."""
    from xml.sax import saxutils

    return saxutils.quoteattr(_replace_illegal(text))


def _replace_illegal(text: str) -> str:
    return _ILLEGAL_IN_XML.sub("\ufffd", clean(text, starts_line=False))


# Paths, and literals of languages


def escape_path(path: str) -> str:
    """Return `path` with escape sequences for control characters and for bytes that are not UTF-8 (surrogate escapes)."""
    if path.isprintable():
        return path
    return "".join(
        character
        if character.isprintable()
        else f"\\x{ord(character) - 0xDC00:02x}"
        if "\udc80" <= character <= "\udcff"
        else character.encode("unicode_escape").decode()
        for character in path
    )


def quote_go(text: str) -> str:
    """Return `text` like Go's %q writes it."""

    def escape_character(character: str) -> str:
        if character in _GO_ESCAPES:
            return f"\\{_GO_ESCAPES[character]}"
        if character.isprintable():
            return character
        code = ord(character)
        return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return f'"{"".join(map(escape_character, text))}"'


def quote_jackson(text: str) -> str:
    """Return `text` as a string of JSON like Jackson writes it."""
    return f'"{text.translate(_JACKSON_ESCAPES)}"'


def quote_proto(text: str) -> str:
    """Return `text` as a string of a `.proto` file."""
    escaped = (
        _PROTO_ESCAPES.get(character) or (character if character >= " " else f"\\{ord(character):03o}")
        for character in text
    )
    return f'"{"".join(escaped)}"'
