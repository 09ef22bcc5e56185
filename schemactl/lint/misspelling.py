"""Names that are nearly one that Avro knows."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_NEAR: Final = 0.8
"""How alike two names are (difflib's ratio) of which one is probably the other."""


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the one of `known` that was probably meant by `name`, upper and lower case apart; None: it is a name of its own.

    Of a short name, two letters that changed places are a large part, so the same letters in any order are near enough.
    """
    small = {each.lower(): each for each in known}
    written = name.lower()
    swapped = (each for each in small if sorted(each) == sorted(written))
    near = next(swapped, None) or next(iter(get_close_matches(written, small, 1, _NEAR)), None)
    return small[near] if near else None
