"""Hostile texts, escaped for each language that a report, a page or a definition is written in."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from google.protobuf import descriptor_pb2, text_format

from schemactl.core import escaping
from schemactl.core.terminal import on_one_line

HOSTILE_TEXTS = (
    "",
    "orders",
    "a\nb\r\tc",
    "\x1b[31mred\x07",
    "::error::broken",
    " ::error::broken\n::error::again",
    "##vso[task.complete]",
    "100%; a]b,c:d",
    "%0A::error::",
    "<b onclick='x'>\"&amp;</b>",
    "]]> <!-- -->",
    "@admin #12 GH-3 :smile: https://example.org www.example.org",
    "*bold* _under_ [a](b) `code` | cell",
    "- item",
    "1. item",
    "# head",
    "\u202edlrow",
    "\ud800 \ufffe \uffff \0",
    "\\\"'",
    "\U0001f600 \u00e9",
)


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
@pytest.mark.parametrize(
    "escape",
    [
        escaping.escape_azure,
        escaping.escape_github,
        lambda text: escaping.escape_github(text, of_property=True),
        escaping.escape_html,
        escaping.escape_markdown,
        lambda text: escaping.escape_markdown(text, starts_line=False),
        escaping.escape_path,
        escaping.quote_go,
        escaping.quote_jackson,
        escaping.quote_xml,
    ],
)
def test_escaped_text_is_one_line(escape: Callable[[str], str], text: str) -> None:
    assert not re.search("[\n\r]", escape(text))


@pytest.mark.parametrize(
    ("escape", "text", "expected"),
    [
        (escaping.escape_azure, "100%\na;b]", "100%AZP25%0Aa%3Bb%5D"),
        (escaping.escape_azure, "##vso[task.complete]", "#\\u0023vso[task.complete%5D"),
        (escaping.escape_github, "100%\n::error::a", "100%25%0A\\u003a:error::a"),
        (escaping.escape_github, "\x1b[31m", "\\u001b[31m"),
        (escaping.escape_html, "<a b='\"'>&\n\ufffe", "&lt;a b=&#x27;&quot;&#x27;&gt;&amp;\\n\ufffd"),
        (escaping.escape_jetty, "<a b='\"'>&\n", "&lt;a b=&apos;&quot;&apos;&gt;&amp;\n"),
        (escaping.escape_markdown, "- *a* @b", "\u200b- &#42;a&#42; \u200b&#64;\u200bb".replace("\u200b", "&#8203;")),
        (escaping.escape_path, "a\n\udcff\u202eé", "a\\n\\xff\\u202eé"),
        (escaping.escape_xml, "<a b='\"'>&\n\0\ufffe", "&lt;a b='\"'&gt;&amp;\n\\u0000\ufffd"),
        (escaping.quote_xml, "<a b='\"'>&\n", "\"&lt;a b='&quot;'&gt;&amp;&#10;\""),
        (escaping.quote_go, 'é\0\n"\\\u202e\U000e0001', '"é\\x00\\n\\"\\\\\\u202e\\U000e0001"'),
        (escaping.quote_jackson, 'é\x1f\n"\\/', '"é\\u001F\\n\\"\\\\/"'),
        (escaping.quote_proto, "é\x1f\n\"\\'", '"é\\037\\n\\"\\\\\'"'),
    ],
)
def test_each_language_has_its_escapes(escape: Callable[[str], str], text: str, expected: str) -> None:
    assert escape(text) == expected


def test_property_of_github_ends_at_no_colon_or_comma() -> None:
    assert escaping.escape_github("a:b,c%", of_property=True) == "a%3Ab%2Cc%25"


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_markup_is_read_back_as_text(text: str) -> None:
    assert html.unescape(escaping.escape_html(text)) == re.sub("[\ufffe\uffff]", "\ufffd", on_one_line(text))
    assert html.unescape(escaping.escape_markdown(text)).replace("\u200b", "") == on_one_line(text)
    element = ET.fromstring(f"<a b={escaping.quote_xml(text)}>{escaping.escape_xml(text)}</a>")  # noqa: S314  written above
    assert element.get("b") == (element.text or "")
    assert (element.get("b") == "") == (text == "")


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_literals_are_read_back_as_the_text(text: str) -> None:
    assert json.loads(escaping.quote_jackson(text)) == text
    if not re.search("[\ud800-\udfff]", text):
        message = text_format.Parse(f"name: {escaping.quote_proto(text)}", descriptor_pb2.FileDescriptorProto())
        assert message.name == text
