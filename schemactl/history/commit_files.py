"""Files of a commit, the index and the working tree with their blob ids, and the Git attributes that convert them.

An attribute that converts a file is a problem: Git's history would hold another text than the reviewer of the file sees. Git is
never asked what it would store, since that runs programs. Line ends, which `text`, `eol` and the older `crlf` convert, make no
difference to declarations that are text; in a binary definition they are content like all else.
"""

from __future__ import annotations

import hashlib
import posixpath
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from posixpath import dirname
from shlex import quote
from typing import Final, NamedTuple

from schemactl.core.errors import DeclarationError, HistoryError, Problem, Source
from schemactl.core.schema import Commit
from schemactl.declare.files import DESCRIPTOR_SUFFIX, MAX_BYTES, SUFFIXES, Files, Kind, read_bytes, shown, too_large
from schemactl.history.git import Blob, Repository
from schemactl.history.git_environment import DIFF_INDEX, OPTIONS

_KINDS: Final[Mapping[str, Kind]] = {"100644": "file", "100755": "file", "120000": "symlink", "160000": "submodule"}
"""Git's modes of what a tree holds besides trees."""

FILE_MODES: Final = frozenset(mode for mode, kind in _KINDS.items() if kind == "file")


class Entry(NamedTuple):
    """What a tree has at a path: the kind, and the id of its content."""

    kind: Kind
    blob: str


def entry(mode: str, blob: str) -> Entry | None:
    """Return the entry of a raw record, or None for a deletion (mode 000000)."""
    kind = _KINDS.get(mode)
    return Entry(kind, blob) if kind else None


def content(path: str, blob: Blob) -> bytes:
    """Return what `blob` holds, for the file `path`. Raise DeclarationError where it is larger than MAX_BYTES."""
    if blob.size_bytes > MAX_BYTES:
        raise DeclarationError([too_large(path, blob.size_bytes)])
    return blob.content


class GitFiles(ABC):
    """Files whose contents are Git's blobs: what was committed or staged, whatever the working tree looks like."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository

    @abstractmethod
    def paths(self) -> Iterable[str]:
        """Return every path, links and submodules among them."""

    @abstractmethod
    def below(self, folder: str) -> Iterable[str]:
        """Return every path below a folder."""

    @abstractmethod
    def entry(self, path: str) -> Entry | None:
        """Return what is at `path`."""

    def read(self, path: str) -> bytes:
        """Return the content of the file. Raise FileNotFoundError where there is none, DeclarationError if it is too large."""
        entry = self.entry(path)
        if entry is None or entry.kind != "file":
            raise FileNotFoundError(path)
        return content(path, self.repository.blob(entry.blob))

    def kind(self, path: str) -> Kind:
        """Return what kind of thing is at `path`."""
        entry = self.entry(path)
        return entry.kind if entry else "missing"


class CommitFiles(GitFiles):
    """The files of one commit, or none if there is no commit.

    Attributes:
        folders: those whose files `paths` gives and that are listed at once; "" is the top.
    """

    def __init__(self, repository: Repository, commit: Commit | None) -> None:
        super().__init__(repository)
        self.folders: Sequence[str] = ("",)
        self._commit = commit
        # What is in the folders that were listed.
        self._entries: dict[str, Entry] = {}
        self._listed: set[str] = set()
        self._below: dict[str, Mapping[str, Entry]] = {}

    def paths(self) -> Iterable[str]:
        """Return every path in the folders, links and submodules among them."""
        return dict.fromkeys(path for folder in self.folders for path in self.below(folder))

    def below(self, folder: str) -> Iterable[str]:
        """Return every path below a folder."""
        if folder not in self._below:
            below = self._below[folder] = self._list(folder, recursive=True)
            self._entries |= below
            # A folder that is a file lists itself, and nothing of what is beside it.
            self._listed.update(map(dirname, below.keys() - {folder}))
        return self._below[folder]

    def entry(self, path: str) -> Entry | None:
        """Return what is at `path`; the folder that it is in is listed once."""
        if path not in self._entries and (folder := dirname(path)) not in self._listed:
            self._listed.add(folder)
            self._entries |= self._list(folder)
        return self._entries.get(path)

    def _list(self, folder: str, *, recursive: bool = False) -> dict[str, Entry]:
        """Return what `git ls-tree` lists in a folder; a path that is no folder lists itself."""
        if self._commit is None:
            return {}
        commit_id = self._commit.id
        if recursive:
            below = [folder] if folder else []
            listed = self.repository.run("ls-tree", "-z", "--full-tree", "-r", commit_id, "--", *below)
        else:
            listed = self.repository.folder(commit_id, folder)
        entries = {}
        for record in listed.decode("utf-8", "surrogateescape").split("\0")[:-1]:
            facts, _, path = record.partition("\t")
            mode, _, blob = facts.split(" ")
            if in_tree := entry(mode, blob):
                entries[path] = in_tree
        return entries


class IndexFiles(CommitFiles):
    """The files of the index that git uses here and now: what `git commit` would record.

    In a hook that is the index git made for this commit. Files noted by `git add --intent-to-add` are not in it yet.

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
            # `:<mode before> <mode> <id before> <id> <status>`: by spaces, for ids have 40 or 64 digits.
            _, mode, _, blob, status = facts.decode().split(" ")
            path = name.decode("utf-8", "surrogateescape")
            self._changed[path] = entry(mode, blob) if status != "U" else None
            if status == "U" and path.endswith(SUFFIXES):
                unmerged.append(path)
        if unmerged:
            raise HistoryError(
                f"the merge is not finished: {', '.join(unmerged)} {'has' if len(unmerged) == 1 else 'have'} conflicts",
                fix=f"resolve them, then `git add -- {' '.join(map(quote, unmerged))}`",
            )

    def paths(self) -> Iterator[str]:
        """Yield every path in the folders, links and submodules among them."""
        yield from (path for path in super().paths() if path not in self._changed)
        yield from (path for path, now in self._changed.items() if now)

    def below(self, folder: str) -> Iterator[str]:
        """Yield every path below a folder."""
        yield from (path for path in super().below(folder) if path not in self._changed)
        start = f"{folder}/" if folder else ""
        yield from (path for path, now in self._changed.items() if now and path.startswith(start))

    def entry(self, path: str) -> Entry | None:
        """Return what is at `path`."""
        return self._changed[path] if path in self._changed else super().entry(path)


class HashedFiles:
    """Files that are not Git's (see `declare.Files`), with the id that Git would give the content of each."""

    def __init__(self, files: Files, object_format: str) -> None:
        self._files = files
        self._format = object_format
        self._entries: dict[str, Entry | None] = {}

    def paths(self) -> Iterable[str]:
        """Return every file."""
        return self._files.paths()

    def below(self, folder: str) -> Iterable[str]:
        """Return every file below a folder."""
        return self._files.below(folder)

    def read(self, path: str) -> bytes:
        """Return the content of the file."""
        return self._files.read(path)

    def kind(self, path: str) -> Kind:
        """Return what kind of thing is at `path`."""
        return self._files.kind(path)

    def entry(self, path: str) -> Entry | None:
        """Return what is at `path`; the id is "" where that is no file, or none that can be read."""
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
        return Entry(kind, blob_id(data, self._format))


def blob_id(data: bytes, object_format: str) -> str:
    """Return the id that Git gives a file of that content."""
    return hashlib.new(object_format, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def differing_files(committed: GitFiles, here: HashedFiles, further: Iterable[str]) -> list[str]:
    """Return the declared and `further` files of the working tree that differ from a commit's in more than line ends.

    Git is not asked, for it would run the programs of a filter. The paths can be printed.
    """
    named = {path for files in (committed, here) for path in files.paths() if path.endswith(SUFFIXES)}
    return [shown(path) for path in sorted(named.union(further)) if _differs(committed, here, path)]


def _differs(committed: GitFiles, here: HashedFiles, path: str) -> bool:
    before, now = committed.entry(path), here.entry(path)
    if before == now:
        return False
    if before is None or now is None or before.kind != now.kind:
        return True
    if before.kind != "file":
        # Where a link or a submodule leads to is not read.
        return False
    try:
        return committed.read(path).replace(b"\r\n", b"\n") != here.read(path).replace(b"\r\n", b"\n")
    except (OSError, DeclarationError):
        return True


# Git attributes that convert files


_CONVERTING: Final = ("filter", "ident", "working-tree-encoding")
"""The attributes by which the working tree and Git's objects differ in more than line ends."""

_LINE_ENDS: Final = ("text", "crlf", "eol")
"""The attributes by which they differ in line ends."""

_NOT_SET: Final = ("unspecified", "unset")

_NON_TEXT: Final = [bytes([byte]) for byte in (*range(0x20), 0x7F) if byte not in b"\b\t\n\f\r\x1b"]
"""The bytes that git takes for a sign that something is no text."""


def problems(repository: Repository, files: Files, paths: Iterable[str]) -> list[Problem]:
    """Return a problem for each such attribute of `paths`, the files that are judged.

    Attributes are read from the judged state: a commit, the index, or the working tree and, where it lacks one, the index.
    """
    judged = sorted(set(paths))
    has_binary = any(path.endswith(DESCRIPTOR_SUFFIX) for path in judged)
    attributes = _read_attributes(repository, files, judged, (*_CONVERTING, *(_LINE_ENDS if has_binary else ())))
    problems = []
    for path, values in attributes.items():
        converting = [name for name in _CONVERTING if values[name] not in _NOT_SET]
        if path.endswith(DESCRIPTOR_SUFFIX) and (name := _find_line_end_attribute(values, files, path)):
            converting.append(name)
        for name in converting:
            written = name if values[name] == "set" else f"{name}={shown(values[name])}"
            off = "-text" if name in _LINE_ENDS else f"!{name}"
            problem = Problem(
                Source(shown(path)),
                f"the attribute `{written}` has Git store other bytes than the file here holds, so that what is reviewed would "
                "not be what is recorded",
                f"take it off this file: `{shown(path)} {off}` at the end of .gitattributes",
            )
            problems.append(problem)
    return problems


def _read_attributes(
    repository: Repository, files: Files, paths: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the values of the attributes `names` for each of `paths`, from one git process."""
    if not paths:
        return {}
    options = (*OPTIONS, "-C", str(repository.top)) if repository.top else OPTIONS
    check = ["check-attr", "-z", "--stdin", *(["--cached"] if isinstance(files, GitFiles) else []), *names]
    asked = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    if not isinstance(files, GitFiles) or isinstance(files, IndexFiles):
        answer = repository.run(*check, standard_input=asked, options=options)
    else:
        # Before 2.40 git reads no attributes of a commit: those files of it are put into an index of their own.
        folders = {""}.union(*(_folders_above(path) for path in paths))
        places = [posixpath.join(folder, ".gitattributes") for folder in folders]
        entries = {place: files.entry(place) for place in places}
        blobs = {place: entry.blob for place, entry in entries.items() if entry and entry.kind != "submodule"}
        repository.fetch_missing(blobs.values())
        records = "".join(f"100644 {blob}\t{place}\0" for place, blob in blobs.items())
        with tempfile.TemporaryDirectory(prefix="schemactl-") as temporary:
            index = {"GIT_INDEX_FILE": str(Path(temporary, "index"))}
            make = ("-c", "core.splitIndex=false", "update-index", "-z", "--index-info")
            repository.run(*make, standard_input=records.encode("utf-8", "surrogateescape"), variables=index)
            answer = repository.run(*check, standard_input=asked, options=options, variables=index)
    # Path, attribute, value; for each path all attributes.
    values = iter(answer.decode("utf-8", "surrogateescape").split("\0")[2::3])
    return {path: {name: next(values) for name in names} for path in paths}


def _folders_above(path: str) -> Iterator[str]:
    while path := dirname(path):
        yield path


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
    """Return whether git takes that for text with line ends, where it is to find out itself."""
    if b"\0" in data or b"\n" not in data or b"\r" in data.replace(b"\r\n", b""):
        return False
    non_text = sum(map(data.count, _NON_TEXT))
    line_ends = data.count(b"\n") + data.count(b"\r")
    # A last Ctrl-Z was the end of a text once.
    non_text -= data.endswith(b"\x1a")
    return (len(data) - line_ends - non_text) >> 7 >= non_text
