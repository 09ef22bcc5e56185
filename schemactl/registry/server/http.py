"""Request bodies as Jackson reads them for Pulsar: lenient with scalars, strict with JSON; an empty body is null.

Each function raises BadRequest for a value that Jackson rejects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from schemactl.core.policies import CompatibilityStrategy
from schemactl.registry.base import AUTO_UPDATE_STRATEGIES
from schemactl.serve.answers import JSON, BadRequest, ErrorPage

_S = CompatibilityStrategy
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")

_INT32 = 1 << 31

_ORDINAL = re.compile(r"[0-9]{1,9}")


class Number(str):
    """A JSON number as it is written: where a text is expected, Jackson takes its characters."""

    __slots__ = ()


def read(body: bytes) -> Any:
    """Return the JSON value; None for an empty body. Numbers are `Number`."""
    if not body.strip():
        return None
    try:
        return json.loads(body, parse_int=Number, parse_float=Number, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise BadRequest(f"Invalid UTF-8 middle byte 0x{body[error.end - 1]:x}") from None
    except RecursionError:
        raise ErrorPage(500, "Request failed.") from None
    except ValueError as error:
        raise BadRequest(f"Unexpected character or end-of-input: {error}") from None


def read_needed(body: bytes) -> Any:
    """Return the JSON value for an endpoint that requires a boolean or a number."""
    if not body.strip():
        raise BadRequest("The request entity cannot be empty.", JSON)
    return read(body)


def read_object(body: bytes, kind: str) -> dict[str, Any] | None:
    """Return the JSON object for a Java object of class `kind`; None for null or an empty body."""
    value = read(body)
    if value is not None and not isinstance(value, dict):
        raise _mismatch(kind, value)
    return value


def text(value: Any) -> str | None:
    """Return a String: numbers and booleans as they are written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    raise _mismatch("java.lang.String", value)


def texts(value: Any) -> dict[str, str | None] | None:
    """Return a Map of String to String."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _mismatch("java.util.LinkedHashMap<java.lang.String,java.lang.String>", value)
    return {key: text(each) for key, each in value.items()}


def strings(value: Any) -> list[str]:
    """Return a Set of String, in its order; null is empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise _mismatch("java.util.HashSet<java.lang.String>", value)
    found = [text(each) for each in value]
    return list(dict.fromkeys(each for each in found if each is not None))


def boolean(value: Any) -> bool:
    """Return a boolean: null is false, a whole number is true unless 0."""
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, Number) and value.lstrip("-").isdecimal():
        return value.strip("-0") != ""
    if isinstance(value, str) and not isinstance(value, Number):
        word = value.strip()
        if word in _TRUE:
            return True
        if word in _FALSE or not word:
            return False
        raise BadRequest(
            f'Cannot deserialize value of type `boolean` from String "{value}": only "true"/"True"/"TRUE" or '
            '"false"/"False"/"FALSE" recognized'
        )
    raise _mismatch("boolean", value)


def integer(value: Any) -> int:
    """Return an int: null is 0, a fraction is cut off; raise ErrorPage beyond 32 bits, where Jackson itself fails."""
    if value is None:
        return 0
    if isinstance(value, str):
        word = value.strip()
        if not word and not isinstance(value, Number):
            return 0
        try:
            number = int(float(word)) if isinstance(value, Number) else int(word)
        except (ValueError, OverflowError):
            raise BadRequest(
                f'Cannot deserialize value of type `int` from String "{value}": not a valid `int` value'
            ) from None
        if not -_INT32 <= number < _INT32:
            raise ErrorPage(500, "Request failed.")
        return number
    raise _mismatch("int", value)


def constant(value: Any, names: Sequence[str], kind: str) -> str | None:
    """Return one of an enum's `names`, in the order of their ordinals; None for null and for what it does not know."""
    if value is None:
        return None
    if isinstance(value, str):
        word = value.strip()
        if word in names:
            return word
        if _ORDINAL.fullmatch(word) and int(word) < len(names):
            return names[int(word)]
        if not isinstance(value, Number) or word.lstrip("-").isdecimal():
            return None
    raise _mismatch(kind, value)


def _mismatch(kind: str, value: Any) -> BadRequest:
    if isinstance(value, dict | list):
        found = "Object" if isinstance(value, dict) else "Array"
        shown = f"{found} value (token `JsonToken.START_{found.upper()}`)"
    else:
        shown = json.dumps(value)
    return BadRequest(f"Cannot deserialize value of type `{kind}` from {shown}")


def _no_number(name: str) -> NoReturn:
    raise BadRequest(
        f"Non-standard token '{name}': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow"
    )


_DATA: Final = "org.apache.pulsar.common.policies.data"

AUTO_UPDATE_NAMES: Final = {strategy: name for name, strategy in AUTO_UPDATE_STRATEGIES.items()}
"""From a strategy to the deprecated policy that means it."""


def read_strategy(value: Any) -> CompatibilityStrategy:
    """Return the strategy in a request's JSON; UNDEFINED for null and unknown names."""
    # The order of the ordinals is the same, too.
    name = constant(value, tuple(_S), f"{_DATA}.SchemaCompatibilityStrategy")
    return _S(name) if name else _S.UNDEFINED


def read_auto_update(value: Any) -> CompatibilityStrategy | None:
    """Return the strategy that a deprecated auto-update policy in a request means; None for null and unknown names."""
    name = constant(value, tuple(AUTO_UPDATE_STRATEGIES), f"{_DATA}.SchemaAutoUpdateCompatibilityStrategy")
    return AUTO_UPDATE_STRATEGIES[name] if name else None
