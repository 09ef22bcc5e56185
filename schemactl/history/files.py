"""The files of a commit and of the index, as declarations see them."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from schemactl.declare.files import MAX_BYTES, SUFFIXES, Files, Kind, read_bytes, too_large
from schemactl.errors import DeclarationError, HistoryError
from schemactl.history import raw
from schemactl.history.repository import Blob, Repository
from schemactl.history.trees import Tree
from schemactl.model import Commit

_KINDS: Mapping[str, Kind] = {
    "100644": "file",
    "100755": "file",
    "120000": "symlink",
    "160000": "submodule",
}
"""Git's modes of what a tree holds besides trees."""

FILE_MODES = frozenset(mode for mode, kind in _KINDS.items() if kind == "file")

_EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The id of the tree without entries (`git hash-object -t tree /dev/null`), which git knows without having it."""


class Entry(NamedTuple):
    """What a tree has at a path: the kind, and the id of its content."""

    kind: Kind
    blob: str


def entry(mode: str, blob: str) -> Entry | None:
    """The entry of a raw record; None for a deletion (mode 000000)."""
    kind = _KINDS.get(mode)
    return Entry(kind, blob) if kind else None


def content(path: str, blob: Blob) -> bytes:
    """What `blob` holds, for the file `path`.

    Raises:
        DeclarationError: it is larger than MAX_BYTES.
    """
    if blob.size_bytes > MAX_BYTES:
        raise DeclarationError([too_large(path, blob.size_bytes)])
    return blob.content


class GitFiles(ABC):
    """Files whose contents are Git's blobs: what was committed or staged, whatever the working tree looks like."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository

    @abstractmethod
    def paths(self) -> Iterable[str]:
        """Every path, links and submodules among them."""

    @abstractmethod
    def entry(self, path: str) -> Entry | None:
        """What is at `path`."""

    def read(self, path: str) -> bytes:
        """The content of the file.

        Raises:
            FileNotFoundError: there is no file at `path`.
            DeclarationError: it is larger than MAX_BYTES.
        """
        found = self.entry(path)
        if found is None or found.kind != "file":
            raise FileNotFoundError(path)
        return content(path, self.blob(found.blob))

    def blob(self, blob_id: str) -> Blob:
        """The blob with this id."""
        (found,) = self.repository.blobs([blob_id])
        return found

    def kind(self, path: str) -> Kind:
        """What is at `path`."""
        found = self.entry(path)
        return found.kind if found else "missing"


class HashedFiles:
    """Files that are not Git's (see `declare.Files`), with the id that Git would give the content of each."""

    def __init__(self, files: Files, object_format: str) -> None:
        self._files = files
        self._format = object_format
        self._entries: dict[str, Entry | None] = {}

    def paths(self) -> Iterable[str]:
        """Every file."""
        return self._files.paths()

    def read(self, path: str) -> bytes:
        """The content of the file."""
        return self._files.read(path)

    def kind(self, path: str) -> Kind:
        """What is at `path`."""
        return self._files.kind(path)

    def entry(self, path: str) -> Entry | None:
        """What is at `path`; the id is "" where that is no file, or none that can be read."""
        if path not in self._entries:
            self._entries[path] = self._entry(path)
        return self._entries[path]

    def _entry(self, path: str) -> Entry | None:
        kind = self.kind(path)
        if kind != "file":
            return None if kind == "missing" else Entry(kind, "")
        try:
            data = read_bytes(self, path)
        except DeclarationError:
            return Entry(kind, "")
        blob = hashlib.new(self._format, b"blob %d\0" % len(data) + data, usedforsecurity=False)
        return Entry(kind, blob.hexdigest())


class CommitFiles(GitFiles):
    """The files of one commit; None: of none.

    Attributes:
        tree: has them.
        folders: those whose files `paths` tells, so that a large repository costs no more than its declarations; "" is the
            top.
    """

    def __init__(self, repository: Repository, commit: Commit | None) -> None:
        super().__init__(repository)
        self.tree = Tree.of(repository, commit.id if commit else None)
        self.folders: Sequence[str] = ("",)

    def paths(self) -> Iterable[str]:
        """Every path in the folders, links and submodules among them."""
        return dict.fromkeys(chain.from_iterable(map(self.tree.leaves, self.folders)))

    def entry(self, path: str) -> Entry | None:
        """What is at `path`."""
        found = self.tree.leaf(path)
        return entry(*found) if found else None


class IndexFiles(CommitFiles):
    """The files of the index that git uses here and now: what `git commit` would record.

    In a hook that is the index git made for this commit (`git commit -a`, `git commit PATH` and `git commit -p` have one
    of their own). Files noted by `git add --intent-to-add` are not in it yet.

    Attributes:
        unmerged: the paths that have a merge conflict, none of them a declaration's; the files are not in it either.

    Raises:
        HistoryError: the repository is bare, or a path of a declaration still has a merge conflict.
    """

    def __init__(self, repository: Repository) -> None:
        if repository.top is None:
            raise HistoryError(
                "a bare repository has no index, so nothing can be staged in it",
                fix="check in a clone; `schemactl log` and `plan` work here",
            )
        commit = repository.commit("HEAD")
        super().__init__(repository, commit)
        base = commit.id if commit else _EMPTY_TREE[repository.object_format]
        self._differences, self.unmerged = raw.differences(repository.run(*raw.DIFF_INDEX, base))
        self._differences |= dict.fromkeys(self.unmerged, (None, None))
        unmerged = [path for path in self.unmerged if path.endswith(SUFFIXES)]
        if unmerged:
            raise HistoryError(
                f"the merge is not finished: {', '.join(unmerged)} {'has' if len(unmerged) == 1 else 'have'} conflicts",
                fix=f"resolve them, then `git add {' '.join(unmerged)}`",
            )

    def paths(self) -> Iterable[str]:
        """Every path in the folders, links and submodules among them."""
        found = self._differences
        yield from (path for path in super().paths() if path not in found)
        yield from (path for path, (_, now) in found.items() if now)

    def entry(self, path: str) -> Entry | None:
        """What is at `path`."""
        if path not in self._differences:
            return super().entry(path)
        _, now = self._differences[path]
        return entry(*now) if now else None
