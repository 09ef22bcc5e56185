"""Split and join JSON pointers (RFC 6901), by which findings and edits name a part of a definition."""

from __future__ import annotations

from collections.abc import Iterable


def split_pointer(pointer: str) -> tuple[str, ...]:
    """Return the parts of a pointer; () for the root, which is "", or "/" as in the messages of Avro's Java library."""
    if pointer in ("", "/"):
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/"))


def join_pointer(parts: Iterable[str | int]) -> str:
    """Return the pointer with these parts."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
