"""Read JSON as Gson's lenient reader does, which brokers use for the text and the properties of KEY_VALUE schemas.

It accepts names and strings without quotes or with single ones, comments, `=` and `;` as separators, and empty elements of arrays.
It rejects a comma after the last entry of an object. A number with leading zeros, `NaN` and `nope` are strings.

Sources: JsonReader and Streams (com.google.gson), 2.8.9 to 2.14.0.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

_WHITESPACE: Final = " \n\r\t"
_NOT_LITERAL: Final = frozenset("/\\;#={}[]:, \t\f\r\n")
"""The characters that end a name or a value without quotes."""
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ESCAPES: Final = {
    "t": "\t",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "f": "\f",
    "\n": "\n",
    "'": "'",
    '"': '"',
    "\\": "\\",
    "/": "/",
}
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_PREFIX: Final = ")]}'\n"
"""The line before JSON that keeps browsers from running it; it is skipped."""


class NumberText(str):
    """The text of a number: Gson keeps 1.0 and 1e2 unchanged (LazilyParsedNumber)."""

    __slots__ = ()


class GsonError(Exception):
    """The text is not JSON to Gson; the argument is the exception in Java with its message, as `name: message`."""


def parse(text: str) -> Any:
    """Return the JSON value of a text: numbers as NumberText, and None for a text without a value.

    Raises:
        GsonError: if Gson rejects the text.
        RecursionError: if it nests too deep.
    """
    try:
        # Python and Gson read standard JSON alike, except NaN and Infinity, which are strings to Gson.
        return json.loads(text, parse_int=NumberText, parse_float=NumberText, parse_constant=str)
    except ValueError:
        return _Reader(text).read_document()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        # The name or index of each open object or array, for messages; "" before the first name.
        self.path: list[str | int] = []

    def read_document(self) -> Any:
        if self.text.startswith("\ufeff"):
            self.position = 1
        if self._peek() == ")" and self.text.startswith(_PREFIX, self.position):
            self.position += len(_PREFIX)
        if not self._peek():
            return None
        value = self._read_value()
        if value is not None and (rest := self.text[self.position :].lstrip(_WHITESPACE)):
            # The reader is no longer lenient: not even a comment may follow.
            self.position = len(self.text) - len(rest) + 1
            self._fail("Use JsonReader.setLenient(true) to accept malformed JSON")
        return value

    def _read_value(self) -> Any:
        """Read the next value, from before its first character."""
        match self._next():
            case "{":
                return self._read_object()
            case "[":
                return self._read_array()
            case '"' | "'" as quote:
                return self._read_quoted(quote)
            case character if character in ",;]":
                self._fail("Unexpected value")
            case _:
                self.position -= 1
        word = self._take_word()
        if not word:
            self._fail("Expected value")
        if word.lower() in _CONSTANTS and word.isascii():
            return _CONSTANTS[word.lower()]
        return NumberText(word) if _NUMBER.fullmatch(word) else word

    def _read_object(self) -> dict[str, Any]:
        self.path.append("")
        entries: dict[str, Any] = {}
        while True:
            character = self._next()
            if character == "}":
                break
            if entries:
                if character not in ",;":
                    self._fail("Unterminated object")
                character = self._next()
            if character in "\"'":
                name = self._read_quoted(character)
            else:
                if character not in _NOT_LITERAL:
                    self.position -= 1
                name = "" if character in _NOT_LITERAL else self._take_word()
                if not name:
                    self._fail("Expected name")
            self.path[-1] = name
            separator = self._next()
            if separator not in ":=":
                self._fail("Expected ':'")
            if separator == "=" and self.text.startswith(">", self.position):
                self.position += 1
            entries[name] = self._read_value()
        self.path.pop()
        return entries

    def _read_array(self) -> list[Any]:
        self.path.append(0)
        items: list[Any] = []
        while True:
            character = self._next()
            if character == "]":
                break
            if items:
                if character not in ",;":
                    self._fail("Unterminated array")
                character = self._next()
            self.position -= 1
            if character in ",;]":
                # Nothing between two separators, or before the end, is null.
                items.append(None)
            else:
                items.append(self._read_value())
            self.path[-1] = len(items)
        self.path.pop()
        return items

    def _read_quoted(self, quote: str) -> str:
        """Read the rest of a string after its opening quote."""
        parts: list[str] = []
        while True:
            if self.position == len(self.text):
                self._fail("Unterminated string")
            character = self.text[self.position]
            self.position += 1
            if character == quote:
                # Two escapes may be one character of Java's UTF-16.
                return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            parts.append(self._read_escape() if character == "\\" else character)

    def _read_escape(self) -> str:
        if self.position == len(self.text):
            self._fail("Unterminated escape sequence")
        character = self.text[self.position]
        self.position += 1
        if character == "u":
            digits = self.text[self.position : self.position + 4]
            if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                self._fail(
                    "Unterminated escape sequence" if len(digits) < 4 else f"Malformed Unicode escape \\u{digits}"
                )
            self.position += 4
            return chr(int(digits, 16))
        if character not in _ESCAPES:
            self._fail("Invalid escape sequence")
        return _ESCAPES[character]

    def _take_word(self) -> str:
        """Read a name or value without quotes."""
        start = self.position
        while self.position < len(self.text) and self.text[self.position] not in _NOT_LITERAL:
            self.position += 1
        return self.text[start : self.position]

    def _peek(self) -> str:
        """Return the next character after blanks and comments, or "" at the end, without reading it."""
        while self.position < len(self.text):
            character = self.text[self.position]
            if character in _WHITESPACE:
                self.position += 1
            elif character == "#" or self.text.startswith("//", self.position):
                while self.position < len(self.text) and self.text[self.position] not in "\r\n":
                    self.position += 1
            elif self.text.startswith("/*", self.position):
                end = self.text.find("*/", self.position + 2)
                if end < 0:
                    self.position = len(self.text)
                    self._fail("Unterminated comment")
                self.position = end + 2
            else:
                return character
        return ""

    def _next(self) -> str:
        """Read the next character after blanks and comments."""
        character = self._peek()
        if not character:
            raise GsonError(f"java.io.EOFException: End of input{self._describe_place()}")
        self.position += 1
        return character

    def _fail(self, message: str) -> NoReturn:
        raise GsonError(f"com.google.gson.stream.MalformedJsonException: {message}{self._describe_place()}")

    def _describe_place(self) -> str:
        before = self.text[: self.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f" at line {line} column {column} path ${steps}"
