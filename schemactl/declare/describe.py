"""Descriptions of values, and near misses."""

from __future__ import annotations

from collections.abc import Iterable
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


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the one of `choices` that was probably meant by `word`, upper and lower case apart."""
    # Costs some milliseconds to import, and is needed for errors only.
    from difflib import get_close_matches

    folded = {choice.casefold(): choice for choice in choices}
    close = get_close_matches(word[:100].casefold(), folded, n=1, cutoff=0.65)
    return folded[close[0]] if close else None
