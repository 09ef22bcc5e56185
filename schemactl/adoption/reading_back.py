"""Whether files that were made say what the registry holds, found out by reading them as `declare` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from schemactl import declare
from schemactl.adoption.declaring import Files
from schemactl.changes import identity
from schemactl.formats import declared as declared_as
from schemactl.model import Project, Release, SchemaInfo, TopicName


class MemoryFiles:
    """A repository that has only these files."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents

    def paths(self) -> Iterable[str]:
        """See `declare.Files`."""
        return self._contents

    def read(self, path: str) -> bytes:
        """See `declare.Files`."""
        return self._contents[path]

    def kind(self, path: str) -> Literal["file", "missing"]:
        """See `declare.Files`."""
        return "file" if path in self._contents else "missing"


def misread(
    made: Mapping[TopicName, tuple[Files, SchemaInfo | None]], *, root: str, release: Release, strictly: bool
) -> dict[TopicName, str]:
    """Why the files of a topic do not declare the definition beside them; topics whose files do are not in it.

    `strictly`: nor may they have what `check` would not let pass, such as a default that does not fit.
    """
    owners = {path: name for name, (files, _) in made.items() for path in files}
    contents = {path: text for files, _ in made.values() for path, text in files.items()}
    declared = declare.read(MemoryFiles(contents), Project(roots=(root,), release=release))
    found: dict[TopicName, str] = {}
    for name, (_, info) in made.items():
        read = declared.catalog.topics.get(name)
        if read is None:
            found[name] = "it cannot be declared"
        elif (read.schema and identity(read.schema)) != (info and identity(declared_as(info))):
            found[name] = "read back, it is another content"
    for problem in reversed(declared.problems):
        owner = owners.get(problem.source.path)
        if owner and (strictly or owner in found):
            found[owner] = problem.what
    return found
