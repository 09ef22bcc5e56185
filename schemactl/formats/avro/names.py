"""Names of types and fields, and places in a definition."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WITH_DOLLAR: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")

Path = tuple[Any, ...]
"""A place in a definition: () for the whole, otherwise the place around it and a key or an index."""


class Name(NamedTuple):
    """The name of a type; `namespace` is None for the null namespace."""

    local: str
    namespace: str | None

    @property
    def full(self) -> str:
        """With its namespace, if it has one."""
        return f"{self.namespace}.{self.local}" if self.namespace else self.local


def qualify(name: str, namespace: str | None) -> Name:
    """`name` where `namespace` is in force; a name with dots brings its own."""
    space, dot, local = name.rpartition(".")
    return Name(local, (space if dot else namespace) or None)


def is_name(name: str, *, dollar: bool) -> bool:
    """Whether `name` is a letter or `_`, then letters, digits or `_`; with `dollar` a `$` may stand anywhere.

    Letters and digits are those of any script, but none outside Unicode's basic plane (Java looks at UTF-16 units).
    """
    if (_WITH_DOLLAR if dollar else _PLAIN).fullmatch(name):
        return True
    if not name or name.isascii():
        return False
    others = "_$" if dollar else "_"
    in_plane = all(character <= "\uffff" for character in name)
    return (
        in_plane
        and (name[0].isalpha() or name[0] in others)
        and all(letter.isalpha() or letter.isdecimal() or letter in others for letter in name)
    )


def pointer(path: Path) -> str:
    """The JSON pointer (RFC 6901) of a place; "" for the whole definition."""
    tokens: list[str] = []
    while path:
        path, token = path
        tokens.append(f"/{token}")
    return "".join(reversed(tokens))
