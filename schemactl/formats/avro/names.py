"""Names of types and fields, and places in a definition."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_WITH_DOLLAR: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*").fullmatch

Path = tuple[Any, ...]
"""A place in a definition: () for the whole, otherwise the place around it and a key or an index."""


class Name(NamedTuple):
    """The name of a type: in full, without its namespace, and the namespace (None for the null namespace)."""

    full: str
    local: str
    namespace: str | None


def qualify(name: str, namespace: str | None) -> Name:
    """`name` where `namespace` is in force; a name with dots brings its own."""
    if "." in name:
        namespace, _, name = name.rpartition(".")
    if not namespace:
        return Name(name, name, None)
    return Name(f"{namespace}.{name}", name, namespace)


def is_name(name: str) -> bool:
    """Whether `name` is a letter or `_`, then letters, digits or `_`, of any script.

    Java looks at UTF-16 units, so that letters outside Unicode's basic plane do not count.
    """
    return _PLAIN(name) is not None or (not name.isascii() and _is_name(name, "_"))


def is_name_with_dollar(name: str) -> bool:
    """As `is_name`, but `$` may stand anywhere, too (Pulsar's CompatibleNameValidator)."""
    return _WITH_DOLLAR(name) is not None or (not name.isascii() and _is_name(name, "_$"))


def _is_name(name: str, others: str) -> bool:
    return (
        max(name) <= "\uffff"
        and (name[0].isalpha() or name[0] in others)
        and all(character.isalpha() or character.isdecimal() or character in others for character in name)
    )


def first_repeated(names: list[str]) -> int | None:
    """The index of the first of the `names` that occurs before it, too; None if there is none."""
    if len(set(names)) == len(names):
        return None
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            return index
        seen.add(name)
    return None


def pointer(path: Path) -> str:
    """The JSON pointer (RFC 6901) of a place; "" for the whole definition."""
    tokens: list[str] = []
    while path:
        path, token = path
        tokens.append(f"/{token}")
    return "".join(reversed(tokens))
