"""The `.proto` files of a definition, and the names under which they import each other."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_IMPORT: Final = re.compile(rb"""import\s*+(?:\b(?:public|weak|option)\b\s*+)?["']([^"'\n]+)["']""")


@dataclass(frozen=True, slots=True)
class ProtoFiles:
    """A `.proto` and what it may import.

    Attributes:
        entry: the import name of the file itself: its last part, so that moving the file changes nothing.
        sources: the texts by import name.
        paths: where they are in the repository, by import name.
        used: the paths of the references that are imported.
        ambiguous: an import that could mean two references, with both paths; None: there is none.
    """

    entry: str
    sources: Mapping[str, bytes]
    paths: Mapping[str, str]
    used: frozenset[str]
    ambiguous: tuple[str, str, str] | None = None

    def to_compile(self, message: str) -> Any:
        """Return what to compile, as `formats.protobuf_native.compile` takes it."""
        from schemactl.formats.protobuf import load

        return load("protoc").Proto(message, self.entry, self.sources, self.paths)


def gather(path: str, read: Callable[[str], bytes], references: Iterable[str]) -> ProtoFiles:
    """Return the files that `path` imports, directly or through others, from `references`; `read` gives the text of each.

    An import means the reference whose path ends in its name: `import "common/money.proto"` finds
    `namespaces/common/money.proto`, whatever protoc's include path is elsewhere.
    """
    entry = posixpath.basename(path)
    text = read(path)
    sources, paths = {entry: text}, {entry: path}
    used: set[str] = set()
    todo = [text]
    by_last_part: dict[str, list[str]] = {}
    for each in references:
        by_last_part.setdefault(posixpath.basename(each), []).append(each)
    while todo:
        for name in _imports(todo.pop()):
            if name in sources:
                continue
            near = by_last_part.get(posixpath.basename(name), [])
            meant = [each for each in near if each == name or each.endswith("/" + name)]
            if len(meant) > 1:
                return ProtoFiles(entry, sources, paths, frozenset(used), (name, meant[0], meant[1]))
            for each in meant:
                sources[name], paths[name] = read(each), each
                used.add(each)
                todo.append(sources[name])
    return ProtoFiles(entry, sources, paths, frozenset(used))


def _imports(text: bytes) -> Iterator[str]:
    """Yield the names that a `.proto` imports, and perhaps some in its comments: what starts a line or follows `;`, `}` or `*/`."""
    start = 0
    while found := _IMPORT.search(text, start):
        # What stands between is looked at once: a pattern that starts with the spaces would try each of them as the first.
        between = text[start : found.start()]
        before = between.rstrip()
        if (
            (not before and start == 0)
            or b"\n" in between[len(before) :]
            or before.endswith((b";", b"}", b"*/"))
        ):
            yield found[1].decode("utf-8", "replace")
            start = found.end()
        else:
            start = found.start() + len(b"import")
