"""Which `.proto` files a definition is made of, and under which names they import each other."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_IMPORT: Final = re.compile(
    rb"""(?:^|[;}]|\*/)\s*import\s*(?:\b(?:public|weak|option)\b\s*)?["']([^"'\n]+)["']""", re.MULTILINE
)


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
        """What to compile, as `formats.protobuf_native.compile` takes it."""
        from schemactl.formats.protobuf_native import load

        return load("compile").Proto(message, self.entry, self.sources, self.paths)


def gather(path: str, text: bytes, references: Mapping[str, bytes]) -> ProtoFiles:
    """The files that `path` imports, directly or through others, from `references` (path to text).

    An import means the reference whose path ends in its name: `import "common/money.proto"` finds
    `namespaces/common/money.proto`, whatever protoc's include path is elsewhere.
    """
    entry = posixpath.basename(path)
    sources, paths = {entry: text}, {entry: path}
    used: set[str] = set()
    todo = [text]
    while todo:
        for found in _IMPORT.findall(todo.pop()):
            name = found.decode("utf-8", "replace")
            if name in sources:
                continue
            meant = [each for each in references if each == name or each.endswith("/" + name)]
            if len(meant) > 1:
                return ProtoFiles(entry, sources, paths, frozenset(used), (name, meant[0], meant[1]))
            for each in meant:
                sources[name], paths[name] = references[each], each
                used.add(each)
                todo.append(references[each])
    return ProtoFiles(entry, sources, paths, frozenset(used))
