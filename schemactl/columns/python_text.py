"""Spark's types and texts as Python writes them."""

from __future__ import annotations

import re
from typing import Final

PYTHON_TYPES: Final = {
    "binary": "bytes",
    "boolean": "bool",
    "byte": "int",
    "date": "date",
    "double": "float",
    "float": "float",
    "integer": "int",
    "interval day to second": "timedelta",
    "long": "int",
    "short": "int",
    "string": "str",
    "time(6)": "time",
    "timestamp": "datetime",
    "timestamp_ntz": "datetime",
    "void": "None",
}
"""The Python type of a value that a codec gives for an atomic type of Spark's."""


def literal(text: str) -> str:
    """Return the text as Python writes it, in ASCII."""
    is_plain = text.isascii() and text.isprintable() and not re.search(r"[\"\\]", text)
    return f'"{text}"' if is_plain else ascii(text)
