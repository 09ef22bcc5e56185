"""Which declared definitions were sound when they were judged, kept in the Git directory: whoever checks again need not look.

Nothing else is kept than a key for each definition, made of all that the judgement hangs on; there is nothing that could be
out of date. Deleting the file loses nothing but time.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from schemactl.history import kept
from schemactl.history.cache import location
from schemactl.history.files import GitFiles, HashedFiles
from schemactl.history.repository import Repository
from schemactl.model import Project

_KIND: Final = "soundness"
"""What it is kept as."""

_KEY_BYTES: Final = 20


class Soundness:
    """The definitions of `files` that are known to be sound (see `declare.Soundness`).

    Attributes:
        path: where that is kept.
    """

    def __init__(
        self, repository: Repository, project: Project, files: GitFiles | HashedFiles, *, program: str
    ) -> None:
        """`program` tells this installation from others, which may judge differently."""
        self.path = f"{location(repository.common_directory, project.path)}.sound"
        self._files = files
        self._judge = f"{program} {project.release}"
        self._known = _read(self.path)
        self._met: set[bytes] = set()

    def knows(self, path: str, document: int, made_of: tuple[str, ...]) -> bool:
        """Whether the definition that this document of the file declares, made of those files, is known to be sound."""
        key = self._key(path, document, made_of)
        if key not in self._known:
            return False
        self._met.add(key)
        return True

    def add(self, path: str, document: int, made_of: tuple[str, ...]) -> None:
        """It is sound."""
        self._met.add(self._key(path, document, made_of))

    def keep(self) -> None:
        """The definitions that were met are known the next time; where nothing can be written, as many as before are."""
        if self._met == self._known:
            return
        kept.write(self.path, _KIND, b"".join(sorted(self._met)))

    def _key(self, path: str, document: int, made_of: tuple[str, ...]) -> bytes:
        contents = [(each, self._files.entry(each)) for each in (path, *made_of)]
        return blake2b(repr((self._judge, document, contents)).encode(), digest_size=_KEY_BYTES).digest()


def _read(path: str) -> frozenset[bytes]:
    known = bytes(kept.read(path, _KIND) or b"")
    return frozenset(known[at : at + _KEY_BYTES] for at in range(0, len(known), _KEY_BYTES))
