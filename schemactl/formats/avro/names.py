"""Names of types and fields, and places in a definition."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

Path = tuple[Any, ...]
"""A place in a definition: () for the whole, otherwise the place around it, and the keys and indices that lead there."""


Name = tuple[str, str, str | None]
"""The name of a type: in full, without its namespace, and the namespace (None for the null namespace)."""


def qualify(name: str, namespace: str | None) -> Name:
    """Return `name` in full where `namespace` is in force; a name with dots brings its own."""
    if "." in name:
        namespace, _, name = name.rpartition(".")
    if not namespace:
        return name, name, None
    return f"{namespace}.{name}", name, namespace


@lru_cache(maxsize=1_000)
def is_plain_namespace(namespace: str) -> bool:
    """Whether all parts of `namespace` are of ASCII letters, digits and `_`, which every release accepts."""
    return all(part.isidentifier() and part.isascii() for part in namespace.split("."))


def is_name(name: str, *, others: str) -> bool:
    """Whether `name` is a letter, then letters and digits, of any script; `others` may stand anywhere, too.

    Java looks at UTF-16 units, so that letters outside Unicode's basic plane do not count.
    """
    return (
        bool(name)
        and max(name) <= "\uffff"
        and (name[0].isalpha() or name[0] in others)
        and all(character.isalpha() or character.isdecimal() or character in others for character in name)
    )


def first_repeated(names: list[str]) -> int:
    """Return the index of the first of the `names` that occurs before it, too; there is one."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            break
        seen.add(name)
    return len(seen)


def pointer(path: Path) -> str:
    """Return the JSON pointer (RFC 6901) of a place; "" for the whole definition."""
    tokens: list[Any] = []
    while path:
        tokens += path[:0:-1]
        path = path[0]
    return "".join([f"/{token}" for token in reversed(tokens)])
