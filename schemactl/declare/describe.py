"""Descriptions of values, and near misses."""

from __future__ import annotations

from typing import Any


def found(value: Any) -> str:
    """Return what `value` is, as a person would say it who sees the file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {shortened(str(value))}"
    if isinstance(value, str) and value:
        return f"the text `{shortened(value)}`"
    return {type(None): "nothing", str: "an empty text", list: "a list", dict: "a mapping"}[type(value)]


def shortened(text: str) -> str:
    """`text` fit for one line: at most 60 characters, none that a terminal would obey."""
    text = text if len(text) <= 60 else text[:57] + "..."
    return text if text.isprintable() else repr(text)[1:-1]
