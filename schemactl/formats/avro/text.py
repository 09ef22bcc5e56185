"""A parser of an Avro definition's JSON text, with the rules of Jackson as Avro's Java parser uses it.

That is JSON with comments (`/* */` and `//`) before its end, where the last of two equal keys counts, within Jackson's
default limits (StreamReadConstraints).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from schemactl.core.errors import InvalidSchema

MAX_DEPTH: Final = 250
"""Levels of brackets, as in declared files. Jackson reads 1,000; no real definition has so many."""
MAX_NUMBER_LENGTH: Final = 1_000
MAX_KEY_LENGTH: Final = 50_000

JAVA_SPACES: Final = "".join(map(chr, range(33)))
"""What Java's String.trim cuts off."""

_SHOWN: Final = 60
"""How many characters of a value a message shows."""

_WHITESPACE: Final = " \t\r\n"

# Patterns for what is rare, compiled at first use.
# What is never closed takes all that follows: were it looked for again behind its start, reading would be quadratic.
_STRING_OR_COMMENT: Final = r'(?s)"(?:[^"\\]++|\\.)*+"?|/\*(?:.*?\*/|.*+)|//[^\r\n]*+'
_LIMITED: Final = r'(?s)"(?:[^"\\]++|\\.)*+(?:"(?:[ \t\r\n]*+:)?)?|[\[\]{}]|[-+.0-9eE]++'
_IN_NUMBERS: Final = frozenset("-+.0123456789eE")


class InvalidAvro(InvalidSchema):
    """Avro's Java parser refuses a definition; `exception` is the simple name of what it throws."""

    def __init__(
        self, what: str, *, pointer: str = "", fix: str = "", exception: str = "SchemaParseException"
    ) -> None:
        super().__init__(what, pointer=pointer, fix=fix)
        self.exception = exception


class TrailingText(InvalidAvro):
    """A `text` follows the JSON `value`; Java's parser sees that only when it has made a schema of the value."""

    def __init__(self, what: str, *, fix: str, value: Any, text: str) -> None:
        super().__init__(what, fix=fix)
        self.value = value
        self.text = text


def decode(text: bytes | str) -> str:
    """Return the text of a definition; what is not UTF-8 becomes U+FFFD, as in the broker."""
    return text if isinstance(text, str) else text.decode("utf-8", errors="replace")


def without_comments(text: str) -> str:
    """Return `text` with every comment blanked out, so that all positions stay; one that is never closed is left."""
    if "/" not in text or ("//" not in text and "/*" not in text):
        return text
    return re.sub(_STRING_OR_COMMENT, _blank, text)


def read(text: str) -> Any:
    """Return the JSON value in `text`.

    Raises:
        TrailingText: something follows the value.
        InvalidAvro: it is not JSON that Jackson reads with Avro's settings.
    """
    plain = without_comments(text)
    start = len(plain) - len(plain.lstrip(_WHITESPACE))
    if start == len(plain):
        raise InvalidAvro("the definition is empty; expected an Avro schema in JSON")
    check_limits(plain)
    try:
        value, end = _DECODER.raw_decode(plain, start)
    except json.JSONDecodeError as problem:
        raise _not_json(plain, problem) from None
    # To Java's String.trim every control character is a space, and a comment is not.
    rest = text[end:].lstrip(JAVA_SPACES)
    if rest:
        position = len(text) - len(rest)
        raise TrailingText(
            f"{_excerpt(rest)} follows the schema at {_place(text, position)}; expected the end of the definition",
            fix="remove what stands after the schema; comments may stand before its end only",
            value=value,
            text=rest,
        )
    return value


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == '"' or (found[1] == "*" and (len(found) < 4 or not found.endswith("*/"))):
        return found
    return re.sub(r"[^\r\n]", " ", found)


def check_limits(text: str) -> None:
    """Raise InvalidAvro unless `text` keeps to the limits on depth and on the length of keys and numbers."""
    # A number that is too long has one of these characters.
    some = text[MAX_NUMBER_LENGTH - 1 :: MAX_NUMBER_LENGTH]
    brackets = text.count("{") + text.count("[")
    if len(text) <= MAX_KEY_LENGTH and brackets <= MAX_DEPTH and _IN_NUMBERS.isdisjoint(some):
        return
    depth = 0
    for match in re.finditer(_LIMITED, text):
        found = match[0]
        if found in "[{":
            depth += 1
        elif found in "]}":
            depth -= 1
        elif found[0] == '"':
            if len(found) > MAX_KEY_LENGTH and found[-1] == ":":
                raise InvalidAvro(
                    f"a key at {_place(text, match.start())} is longer than {MAX_KEY_LENGTH:,} characters"
                )
        elif len(found) > MAX_NUMBER_LENGTH:
            raise InvalidAvro(f"the number {found[:20]}... has more than {MAX_NUMBER_LENGTH:,} digits")
        if depth > MAX_DEPTH:
            raise InvalidAvro(
                f"the definition nests deeper than {MAX_DEPTH:,} levels at {_place(text, match.start())}",
                fix="give inner types names of their own and refer to them by name",
            )


def _constant(name: str) -> NoReturn:
    raise InvalidAvro(
        f"{name} is not JSON", fix=f'write "{name}" as text where a float or double default is meant'
    )


_DECODER: Final = json.JSONDecoder(parse_constant=_constant)


def _not_json(text: str, problem: json.JSONDecodeError) -> InvalidAvro:
    if text.startswith("\ufeff"):
        return InvalidAvro(
            "the definition starts with a byte order mark, which Avro's parser refuses",
            fix="save the file as UTF-8 without byte order mark",
        )
    return InvalidAvro(
        f"the definition is not JSON: {problem.msg} at {_place(text, problem.pos)}, "
        f"found {_excerpt(text[problem.pos :]) or 'the end of the text'}"
    )


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


def shown(value: Any) -> str:
    """Return a parsed value as messages show it: short, on one line."""
    if value is None:
        return "missing or null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= _SHOWN else written[:_SHOWN] + "..."


def _excerpt(text: str) -> str:
    if not text:
        return ""
    shown = text[:20].partition("\n")[0]
    return repr(shown) + ("..." if len(text) > len(shown) else "")
