"""Which declared definitions were sound when they were judged, kept in the Git directory: whoever checks again need not look.

Nothing else is kept than a key for each definition, made of all that the judgement hangs on; there is nothing that could be
out of date. Deleting the file loses nothing but time.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from schemactl.history.files import GitFiles, HashedFiles
from schemactl.history.repository import Repository
from schemactl.history.store import Store
from schemactl.model import Project

_KIND: Final = "soundness"
"""What it is kept as."""

_KEY_BYTES: Final = 20


class Soundness:
    """The definitions of `files` that are known to be sound (see `declare.Soundness`)."""

    def __init__(self, repository: Repository, project: Project, files: GitFiles | HashedFiles) -> None:
        self._store = repository.store(project.path)
        self._files = files
        self._judge = str(project.release)
        self._known = _read(self._store)
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
        self._store.write(_KIND, b"".join(sorted(self._met)))

    def _key(self, path: str, document: int, made_of: tuple[str, ...]) -> bytes:
        contents = [(each, self._files.entry(each)) for each in (path, *made_of)]
        return blake2b(repr((self._judge, document, contents)).encode(), digest_size=_KEY_BYTES).digest()


def _read(store: Store) -> frozenset[bytes]:
    known = bytes(store.read(_KIND) or b"")
    return frozenset(known[at : at + _KEY_BYTES] for at in range(0, len(known), _KEY_BYTES))
