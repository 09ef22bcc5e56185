"""A repository in memory, for declarations that need no disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemactl.declare.files import Kind


class MemoryFiles:
    """Files by path; `apart` has the paths that are a `symlink` or `submodule`."""

    def __init__(self, files: Mapping[str, str | bytes], *, apart: Mapping[str, Kind] | None = None) -> None:
        self.files = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
        self.apart = apart or {}

    def paths(self) -> Iterable[str]:
        return [*self.files, *self.apart]

    def below(self, folder: str) -> Iterable[str]:
        return [path for path in self.paths() if path.startswith(f"{folder}/" if folder else "")]

    def read(self, path: str) -> bytes:
        return self.files[path]

    def kind(self, path: str) -> Kind:
        return "file" if path in self.files else self.apart.get(path, "missing")
