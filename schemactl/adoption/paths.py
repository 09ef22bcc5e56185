"""Where declarations go: one folder a namespace, one file a topic, under names that every file system has."""

from __future__ import annotations

import re
from collections.abc import Callable

from schemactl.model import NamespaceName, TopicName

NAMESPACE_FILE = "namespace"
"""The name, without suffix, of a namespace's own file."""

_OTHER = re.compile(r"[^A-Za-z0-9_.-]")
_DEFINITIONS = (".avsc", ".proto", ".binpb")
_SUFFIXES = (
    "",
    ".yaml",
    *(f"{half}{suffix}" for half in ("", ".key", ".value") for suffix in _DEFINITIONS),
    ".key",
    ".value",
)


class Paths:
    """Paths below `root` that nothing else has, on file systems that fold case, too."""

    def __init__(self, root: str, exists: Callable[[str], bool]) -> None:
        self._root = root
        self._exists = exists
        self._taken: set[str] = set()

    def of_namespace(self, name: NamespaceName) -> str:
        """The path of the namespace's file, without suffix."""
        return self._free(f"{self._folder(name)}/{NAMESPACE_FILE}")

    def of_topic(self, name: TopicName) -> str:
        """What the paths of all the topic's files start with."""
        local = _plain(name.topic)
        return self._free(
            f"{self._folder(name.namespace_name)}/{local if local != NAMESPACE_FILE else local + '_'}"
        )

    def _folder(self, name: NamespaceName) -> str:
        folder = f"{_plain(name.tenant)}/{_plain(name.name)}"
        return f"{self._root}/{folder}" if self._root else folder

    def _free(self, stem: str) -> str:
        free, number = stem, 1
        while free.lower() in self._taken or any(self._exists(free + suffix) for suffix in _SUFFIXES):
            number += 1
            free = f"{stem}-{number}"
        self._taken.add(free.lower())
        return free


def _plain(part: str) -> str:
    """`part` in characters that need no quotes; a hidden file it must not be, nor a topic's second half (`x.key`)."""
    plain = _OTHER.sub("_", part)
    if plain.startswith((".", "-")):
        plain = f"_{plain[1:]}"
    return re.sub(r"\.(key|value)$", r"_\1", plain, flags=re.IGNORECASE)[:150]
