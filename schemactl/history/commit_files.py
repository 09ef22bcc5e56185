"""Read the files of a commit, the index or the working tree with their blob ids, and find Git attributes that convert them.

An attribute that converts a file is a problem: Git's history would contain another text than the reviewer of the file sees. Git is not
asked what it would store, because then it would run filter programs. Line ends, which `text`, `eol` and the older `crlf` convert,
make no difference to declarations that are text; in a binary definition they are content.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from posixpath import dirname
from shlex import quote
from typing import Final, NamedTuple

from schemactl.core.errors import DeclarationError, HistoryError, Problem, Source
from schemactl.core.escaping import escape_path
from schemactl.core.schema import Commit
from schemactl.declare.files import (
    DESCRIPTOR_SUFFIX,
    MAX_BYTES,
    SUFFIXES,
    ChangedFiles,
    Files,
    Kind,
    WorktreeFiles,
    check_bytes,
    too_large,
)
from schemactl.declare.references import folders_above
from schemactl.history.git import Blob, Repository
from schemactl.history.git_environment import DIFF_INDEX, OPTIONS

_KINDS: Final[Mapping[str, Kind]] = {"100644": "file", "100755": "file", "120000": "symlink", "160000": "submodule"}
"""Git's modes of the entries of a tree, except trees."""

FILE_MODES: Final = frozenset(mode for mode, kind in _KINDS.items() if kind == "file")

_CONVERTING: Final = ("filter", "ident", "working-tree-encoding")
"""The attributes by which the working tree and Git's objects differ in more than line ends."""

_LINE_ENDS: Final = ("text", "crlf", "eol")
"""The attributes by which they differ in line ends."""

_NOT_SET: Final = ("unspecified", "unset")

_NON_TEXT: Final = [bytes([byte]) for byte in (*range(0x20), 0x7F) if byte not in b"\b\t\n\f\r\x1b"]
"""The bytes that git counts as non-text."""


class Entry(NamedTuple):
    """An entry of a tree: its kind, and the id of its content."""

    kind: Kind
    blob: str


def create_entry(mode: str, blob: str) -> Entry | None:
    """Return the entry of a raw record, or None for a deletion (mode 000000)."""
    kind = _KINDS.get(mode)
    return Entry(kind, blob) if kind else None


def get_content(path: str, blob: Blob) -> bytes:
    """Return the content of `blob` for the file `path`.

    Raises:
        DeclarationError: the content is larger than MAX_BYTES.
    """
    if blob.size_bytes > MAX_BYTES:
        raise DeclarationError([too_large(path, blob.size_bytes)])
    return blob.content


class GitFiles(ABC):
    """Files whose contents are Git's blobs: committed or staged, regardless of the working tree."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository

    @abstractmethod
    def paths(self) -> Iterable[str]:
        """Return every path, including links and submodules."""

    @abstractmethod
    def below(self, folder: str) -> Iterable[str]:
        """Return every path below a folder."""

    @abstractmethod
    def entry(self, path: str) -> Entry | None:
        """Return the entry at `path`, or None if the path does not exist."""

    def read(self, path: str) -> bytes:
        """Return the content of the file.

        Raises:
            FileNotFoundError: the path is not a file.
            DeclarationError: the file is too large.
        """
        entry = self.entry(path)
        if entry is None or entry.kind != "file":
            raise FileNotFoundError(path)
        return get_content(path, self.repository.blob(entry.blob))

    def kind(self, path: str) -> Kind:
        """Return the kind of the entry at `path`."""
        entry = self.entry(path)
        return entry.kind if entry else "missing"


class CommitFiles(GitFiles):
    """The files of one commit, or none if there is no commit.

    Attributes:
        folders: the folders whose files `paths` returns and that are listed at once; "" is the top.
    """

    def __init__(self, repository: Repository, commit: Commit | None) -> None:
        super().__init__(repository)
        self.folders: Sequence[str] = ("",)
        self._commit = commit
        # The entries of the listed folders.
        self._entries: dict[str, Entry] = {}
        self._listed: set[str] = set()
        self._below: dict[str, Mapping[str, Entry]] = {}

    def paths(self) -> Iterable[str]:
        """Return every path in the folders, including links and submodules."""
        return dict.fromkeys(path for folder in self.folders for path in self.below(folder))

    def below(self, folder: str) -> Iterable[str]:
        """Return every path below a folder."""
        if folder not in self._below:
            below = self._below[folder] = self._list(folder, recursive=True)
            self._entries |= below
            # If `folder` is a file, git lists only the file itself, not its folder.
            self._listed.update(map(dirname, below.keys() - {folder}))
        return self._below[folder]

    def entry(self, path: str) -> Entry | None:
        """Return the entry at `path`, or None if the path does not exist; its folder is listed once."""
        if path not in self._entries and (folder := dirname(path)) not in self._listed:
            self._listed.add(folder)
            self._entries |= self._list(folder)
        return self._entries.get(path)

    def _list(self, folder: str, *, recursive: bool = False) -> dict[str, Entry]:
        """List a folder; a path that is not a folder lists itself."""
        if self._commit is None:
            return {}
        list_entries = self.repository.list_below if recursive else self.repository.list_folder
        entries = {}
        for path, (mode, blob) in list_entries(self._commit.id, folder).items():
            if tree_entry := create_entry(mode, blob):
                entries[path] = tree_entry
        return entries


class IndexFiles(CommitFiles):
    """The files of the index that git uses now, which `git commit` would record.

    In a hook that is the index that git created for this commit. Files of `git add --intent-to-add` are not in it yet.

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
        tree = commit.id if commit else repository.run("hash-object", "-t", "tree", "--stdin").decode().strip()
        self._changed: dict[str, Entry | None] = {}
        unmerged = []
        tokens = repository.run(*DIFF_INDEX, tree).split(b"\0")
        for facts, name in zip(tokens[::2], tokens[1::2], strict=False):
            # `:<mode before> <mode> <id before> <id> <status>`, split at spaces, as ids have 40 or 64 digits.
            _, mode, _, blob, status = facts.decode().split(" ")
            path = name.decode("utf-8", "surrogateescape")
            self._changed[path] = create_entry(mode, blob) if status != "U" else None
            if status == "U" and path.endswith(SUFFIXES):
                unmerged.append(path)
        if unmerged:
            raise HistoryError(
                f"the merge is not finished: {', '.join(unmerged)} {'has' if len(unmerged) == 1 else 'have'} conflicts",
                fix=f"resolve them, then `git add -- {' '.join(map(quote, unmerged))}`",
            )

    @property
    def changed_paths(self) -> Collection[str]:
        """The paths at which the index differs from HEAD."""
        return self._changed.keys()

    def paths(self) -> Iterator[str]:
        """Yield every path in the folders, including links and submodules."""
        yield from (path for path in super().paths() if path not in self._changed)
        yield from (path for path, new_entry in self._changed.items() if new_entry)

    def below(self, folder: str) -> Iterator[str]:
        """Yield every path below a folder."""
        yield from (path for path in super().below(folder) if path not in self._changed)
        start = f"{folder}/" if folder else ""
        yield from (path for path, new_entry in self._changed.items() if new_entry and path.startswith(start))

    def entry(self, path: str) -> Entry | None:
        """Return the entry at `path`, or None if the path does not exist."""
        return self._changed[path] if path in self._changed else super().entry(path)


class HashedFiles:
    """Files of the working tree or of an editor, with the blob ids that Git would compute for their contents."""

    def __init__(self, files: Files, object_format: str) -> None:
        self._files = files
        self._format = object_format
        self._entries: dict[str, Entry | None] = {}
        # The blob ids of the files that were read, or "" for a file that cannot be a declaration or definition.
        self._ids: dict[str, str] = {}

    def paths(self) -> Iterable[str]:
        """Return every file."""
        return self._files.paths()

    def below(self, folder: str) -> Iterable[str]:
        """Return every file below a folder."""
        return self._files.below(folder)

    def read(self, path: str) -> bytes:
        """Return the content of the file."""
        data = self._files.read(path)
        if path not in self._ids:
            try:
                check_bytes(path, data)
                self._ids[path] = blob_id(data, self._format)
            except DeclarationError:
                self._ids[path] = ""
        return data

    def kind(self, path: str) -> Kind:
        """Return the kind of the entry at `path`."""
        return self._files.kind(path)

    def entry(self, path: str) -> Entry | None:
        """Return the entry at `path`, or None if the path does not exist; the id is "" if it is not a readable file."""
        if path not in self._entries:
            self._entries[path] = self._read_entry(path)
        return self._entries[path]

    def _read_entry(self, path: str) -> Entry | None:
        kind = self.kind(path)
        if kind != "file":
            return None if kind == "missing" else Entry(kind, "")
        if path not in self._ids:
            with suppress(OSError, DeclarationError):
                self.read(path)
        return Entry(kind, self._ids.get(path, ""))


class FileCache:
    """The contents of a working tree for many checks in one process: a file is read again only if its size, time or inode changed.

    After `forget`, every file is checked for changes once; an editor calls it when it learns that a file has changed.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry | None] = {}
        """The entries since the files were looked at last."""
        self._contents: dict[str, tuple[tuple[int, int, int], bytes, str]] = {}

    def forget(self) -> None:
        """Look at every file again."""
        self.entries.clear()

    def read(self, path: str, files: WorktreeFiles, object_format: str, *, is_known: bool = False) -> tuple[bytes, str]:
        """Return the content of the file, and the id that Git gives it; with `is_known`, the content that was read last.

        Raises:
            OSError: if it cannot be read.
            DeclarationError: if it is too large.
        """
        if is_known and (content := self._contents.get(path)):
            return content[1], content[2]
        status = os.lstat(f"{files.top}/{path}")
        version = status.st_mtime_ns, status.st_size, status.st_ino
        content = self._contents.get(path)
        if content is None or content[0] != version:
            data = files.read(path)
            content = self._contents[path] = version, data, blob_id(data, object_format)
        return content[1], content[2]


class CachedFiles(HashedFiles):
    """The working tree, with the contents in a cache."""

    def __init__(self, files: WorktreeFiles, object_format: str, cache: FileCache) -> None:
        super().__init__(files, object_format)
        self._worktree = files
        self._cache = cache

    def read(self, path: str) -> bytes:
        """Return the content of the file."""
        return self._cache.read(path, self._worktree, self._format, is_known=path in self._cache.entries)[0]

    def entry(self, path: str) -> Entry | None:
        """Return the entry at `path`, or None if the path does not exist; the id is "" if it is not a readable file."""
        entries = self._cache.entries
        if path not in entries:
            entries[path] = self._read_entry(path)
        return entries[path]

    def kind(self, path: str) -> Kind:
        """Return the kind of the entry at `path`."""
        entry = self._cache.entries.get(path)
        return entry.kind if entry else super().kind(path)

    def _read_entry(self, path: str) -> Entry | None:
        if self.kind(path) != "file":
            return super()._read_entry(path)
        try:
            data, blob = self._cache.read(path, self._worktree, self._format)
            check_bytes(path, data)
        except (OSError, DeclarationError):
            return Entry("file", "")
        return Entry("file", blob)


class OverlaidFiles(HashedFiles):
    """The files of a repository state, with the contents of some of them replaced."""

    def __init__(self, contents: Mapping[str, bytes], over: CommitFiles | HashedFiles, object_format: str) -> None:
        super().__init__(ChangedFiles(contents, over), object_format)
        self._contents = contents
        self._over = over

    def entry(self, path: str) -> Entry | None:
        """Return the entry at `path`, or None if the path does not exist."""
        return super().entry(path) if path in self._contents else self._over.entry(path)


def blob_id(data: bytes, object_format: str) -> str:
    """Compute the id that Git gives a file with this content."""
    return hashlib.new(object_format, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def list_differing_files(committed: GitFiles, here: HashedFiles, further: Iterable[str]) -> list[str]:
    """List the declaration, definition and `further` files of the working tree that differ from a commit in more than line ends.

    Git itself would run filter programs for this. The paths are escaped for printing.
    """
    paths = {path for files in (committed, here) for path in files.paths() if path.endswith(SUFFIXES)}
    return [escape_path(path) for path in sorted(paths.union(further)) if _is_different(committed, here, path)]


def _is_different(committed: GitFiles, here: HashedFiles, path: str) -> bool:
    old_entry, new_entry = committed.entry(path), here.entry(path)
    if old_entry == new_entry:
        return False
    if old_entry is None or new_entry is None or old_entry.kind != new_entry.kind:
        return True
    if old_entry.kind != "file":
        # The targets of links and submodules are not read.
        return False
    try:
        return committed.read(path).replace(b"\r\n", b"\n") != here.read(path).replace(b"\r\n", b"\n")
    except (OSError, DeclarationError):
        return True


def list_staged_paths(repository: Repository) -> list[str]:
    """Return the paths at which the index differs from HEAD. Without index or commits, the result is empty."""
    head = repository.commit("HEAD")
    if head is None or repository.top is None:
        return []
    return [path.decode("utf-8", "surrogateescape") for path in repository.run(*DIFF_INDEX, head.id).split(b"\0")[1::2]]


# Git attributes that convert files


def find_attribute_problems(repository: Repository, files: Files, paths: Iterable[str]) -> list[Problem]:
    """Return a problem for each converting attribute of the checked `paths`.

    Attributes are read from the checked state: a commit, the index, or the working tree and, for files missing there, the index.
    """
    checked_paths = sorted(set(paths))
    has_binary = any(path.endswith(DESCRIPTOR_SUFFIX) for path in checked_paths)
    attributes = _read_attributes(repository, files, checked_paths, (*_CONVERTING, *(_LINE_ENDS if has_binary else ())))
    problems = []
    for path, values in attributes.items():
        converting = [name for name in _CONVERTING if values[name] not in _NOT_SET]
        if path.endswith(DESCRIPTOR_SUFFIX) and (name := _find_line_end_attribute(values, files, path)):
            converting.append(name)
        for name in converting:
            written = name if values[name] == "set" else f"{name}={escape_path(values[name])}"
            off = "-text" if name in _LINE_ENDS else f"!{name}"
            problem = Problem(
                Source(escape_path(path)),
                f"the attribute `{written}` makes Git store other bytes than the file contains, so that a reviewer does not see the "
                "recorded content",
                f"turn it off for this file: write `{escape_path(path)} {off}` at the end of .gitattributes",
            )
            problems.append(problem)
    return problems


def _read_attributes(
    repository: Repository, files: Files, paths: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Read the values of the attributes `names` for each of `paths`, with one git process."""
    if not paths:
        return {}
    options = (*OPTIONS, "-C", str(repository.top)) if repository.top else OPTIONS
    check = ["check-attr", "-z", "--stdin", *(["--cached"] if isinstance(files, GitFiles) else []), *names]
    stdin = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    if not isinstance(files, GitFiles) or isinstance(files, IndexFiles):
        output = repository.run(*check, standard_input=stdin, options=options)
    else:
        # Git before 2.40 cannot read the attributes of a commit, so its .gitattributes files are put into a temporary index.
        folders = {""}.union(*map(folders_above, paths))
        entries = {path: files.entry(path) for path in (f"{folder}.gitattributes" for folder in folders)}
        blobs = {path: entry.blob for path, entry in entries.items() if entry and entry.kind != "submodule"}
        repository.fetch_missing(blobs.values())
        records = "".join(f"100644 {blob}\t{path}\0" for path, blob in blobs.items())
        with tempfile.TemporaryDirectory(prefix="schemactl-") as temporary:
            index = {"GIT_INDEX_FILE": str(Path(temporary, "index"))}
            update_index = ("-c", "core.splitIndex=false", "update-index", "-z", "--index-info")
            repository.run(*update_index, standard_input=records.encode("utf-8", "surrogateescape"), variables=index)
            output = repository.run(*check, standard_input=stdin, options=options, variables=index)
    # The output has path, attribute and value, for each path all attributes.
    values = iter(output.decode("utf-8", "surrogateescape").split("\0")[2::3])
    return {path: {name: next(values) for name in names} for path in paths}


def _find_line_end_attribute(values: Mapping[str, str], files: Files, path: str) -> str | None:
    """Return the attribute by which git converts line ends in a binary file, or None if it does not, by git's own rules."""
    for name in ("text", "crlf"):
        if values[name] == "unset":
            return None
        if values[name] in ("set", "input"):
            return name
        if values[name] == "auto":
            try:
                return name if _looks_like_text(files.read(path)) else None
            except (OSError, DeclarationError):
                return name
    return "eol" if values["eol"] in ("lf", "crlf") else None


def _looks_like_text(data: bytes) -> bool:
    """Return whether git's automatic detection takes the data for text with line ends."""
    if b"\0" in data or b"\n" not in data or b"\r" in data.replace(b"\r\n", b""):
        return False
    non_text = sum(map(data.count, _NON_TEXT))
    line_ends = data.count(b"\n") + data.count(b"\r")
    # Git ignores a final Ctrl-Z, the end of a text in DOS.
    non_text -= data.endswith(b"\x1a")
    return (len(data) - line_ends - non_text) >> 7 >= non_text
