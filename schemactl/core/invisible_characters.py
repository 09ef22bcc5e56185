"""Characters that a reader cannot see, and that therefore do not belong in names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# Unicode's Default_Ignorable_Code_Point without the characters of the category Cf, which `find_invisible_characters` knows.
_IGNORABLE = re.compile(
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2065\\u3164\\ufe00-\\ufe0f\\uffa0\\ufff0-\\ufff8\\U000e0000-\\U000e0fff]"
)


def find_invisible_characters(text: str) -> list[str]:
    """Return the characters of `text`, in order, that a reader cannot see or cannot tell from a plain space.

    These are the Unicode categories Cc, Cf, Zl, Zp and Zs without U+0020, and the code points that Unicode calls ignorable by default.
    """
    return [letter for letter in dict.fromkeys(text) if _is_invisible(letter)]


def remove_invisible_characters(text: str) -> str:
    """Return `text` with a plain space for every other space, and without all other invisible characters."""
    spaced = "".join(" " if unicodedata.category(letter) == "Zs" else letter for letter in text)
    return "".join(letter for letter in spaced if not _is_invisible(letter)).strip()


def _is_invisible(letter: str) -> bool:
    is_hidden = unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp", "Zs") and letter != " "
    return is_hidden or _IGNORABLE.match(letter) is not None


def has_visible_letter(text: str) -> bool:
    """Return whether `text` contains a letter (Unicode categories L*) that a reader can see."""
    return any(unicodedata.category(letter).startswith("L") and not _is_invisible(letter) for letter in text)


def describe_characters(letters: Iterable[str]) -> str:
    """Return characters as code points, each with its Unicode name if it has one: `U+200B ZERO WIDTH SPACE`."""
    return ", ".join(f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".strip() for letter in letters)
