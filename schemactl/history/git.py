"""Read a repository with git processes: objects, refs, settings and the commits of a first-parent line.

GitPython starts the processes: confined, with English messages and a time limit (`Runner`, at the end).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from io import BufferedReader, RawIOBase
from itertools import accumulate, takewhile
from pathlib import Path
from select import select
from shlex import quote
from subprocess import PIPE
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

from schemactl.core.errors import HistoryError
from schemactl.core.schema import Commit
from schemactl.declare.files import MAX_BYTES
from schemactl.history.git_environment import (
    BARE_FETCH,
    FETCH,
    OPTIONS,
    RAW,
    VARIABLES,
    fetch_variables,
    pin_repository,
)

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


MIN_VERSION = (2, 38)
"""The oldest git that respects `safe.bareRepository`, and merges without a working tree."""

TIME_LIMIT_S = 3600.0
"""Time without output after which a command is killed."""

LATEST_S = 253_402_300_799
"""The last second of the year 9999, the latest time in a calendar."""

CHUNK_BYTES = 1 << 16

_STDERR_BYTES = 1 << 16

_EXIT_TIMEOUT_S = 2.0
"""Time limit for reading standard error after a command has ended."""

_STREAM_OPTIONS = (*OPTIONS, "-c", "core.deltaBaseCacheLimit=16m")
"""Options for a process that reads many objects: the default cache takes 96 MB, and is not faster."""

_REQUEST_BYTES = 2048
"""Size limit of a request to `git cat-file`, whose objects are in memory together. Git reads a request before it writes any object."""

_READ_AHEAD_BYTES = 1 << 26
"""Size of read contents after which `Repository.read_ahead` stops."""

_SEPARATOR = "--schemactl-next"
"""Separates two results of `git rev-parse`, which repeats unknown options."""

_WALKS: Final = {
    "line": ("--first-parent", "--diff-merges=first-parent"),
    "rebased": ("--topo-order", "--no-merges"),
    "merges": ("--topo-order", "--merges", "--diff-merges=first-parent"),
}
"""Options for the commits of a first-parent line, for the commits that `git rebase` applies, in its order, and for all merges."""

_MERGE_SUBJECT: Final = re.compile(r"Merge pull request #\d+ from |Merge(?: remote-tracking)? branch |Merged in ")
"""The subjects that GitHub, GitLab, Bitbucket and Git itself give to merge commits."""

_PULL_REQUEST: Final = re.compile(r"(?:^Merge pull request |\(pull request )(#\d+)")

_MERGE_REQUEST: Final = re.compile(r"^See merge request \S*?(!\d+)$")

_NO_TITLE: Final = re.compile(r"[*#]|See merge request |[A-Za-z]+(?:-[A-Za-z]+)+: ")
"""Lines in the body of a merge commit that are not a title."""

_TREE_MODES: Final = frozenset({b"40000", b"100644", b"100755", b"120000", b"160000"})
"""The modes of entries that Git writes into trees; it also reads others, from its first releases."""

_LOG_FORMAT: Final = (
    "--no-show-signature",
    "--encoding=UTF-8",
    "--format=%x01%H %ct %P%x00%s%x00%b",
    "--end-of-options",
)
"""Options that override every setting of the user that could change the output."""

FSCK = "`git fetch --refetch` or a fresh clone restores missing objects; `git fsck` lists them"


class GitFailed(HistoryError):
    """A git command that failed.

    Attributes:
        has_result: whether the exit status 1 is an answer, such as that of `git merge-base` about unrelated commits.
        stderr: the text on standard error, without outer spaces.
    """

    def __init__(self, command: str, status: int, stderr: str) -> None:
        # With GIT_TRACE, standard error has lines of other kinds as well.
        self.has_result = status == 1 and not re.search(r"(?m)^(?:error|fatal): ", stderr)
        self.stderr = stderr.strip()
        reason = self.stderr or f"it exited with {status} and no message"
        super().__init__(f"`git {command}` failed: {reason}")


class UnnamedBareRepository(HistoryError):
    """A folder is a bare repository that GIT_DIR does not name."""


class ChangedFile(NamedTuple):
    """A path that a commit changed.

    Attributes:
        path: the path; bytes that are not UTF-8 are surrogate escapes.
        mode: the new mode: 100644 and 100755 are files, 120000 is a symlink, 160000 a submodule, 000000 a deletion.
        blob: the new id.
        before: the old id, or "" if it is unknown.
    """

    path: str
    mode: str
    blob: str
    before: str = ""


class LoggedCommit(NamedTuple):
    """A commit, its changes since its first parent, and the ids of its parents."""

    commit: Commit
    changes: list[ChangedFile]
    parents: tuple[str, ...]


class TreeEntry(NamedTuple):
    """The mode of an entry of a tree, in octal digits, and its id."""

    mode: str
    id: str


class Blob(NamedTuple):
    """An object from `git cat-file`; the content is empty if it is larger than MAX_BYTES, the limit of declared files."""

    id: str
    type: str
    size_bytes: int
    content: bytes


class Repository:
    """An open repository. Close it, or use it in a `with`: it can have a running git process.

    Git gets the caller's environment, so that a hook sees the index that git created for it; `open` alone decides which
    repository is read. All paths are absolute.

    Attributes:
        directory: the folder in which git runs.
        own: Git's folder for this working tree.
        top: the working tree's top level; None in a bare repository.
        common_directory: Git's folder that all linked worktrees share.
        default_branches: full names of the default branches of remotes, such as `refs/remotes/origin/main`.
        shallow: whether a depth limit of the clone cuts off the history.
        object_format: `sha1` or `sha256`.
    """

    def __init__(self, path: Path) -> None:
        """Find the repository that `path` is in; raises HistoryError like `open`."""
        if not os.access(path, os.X_OK):
            raise HistoryError(f"{path} is not a folder, or cannot be entered")
        # Started next to `.git`, git uses that folder, and not a fake Git directory that a commit added below. Git itself decides
        # whether to trust it.
        folder = path
        if "GIT_DIR" not in os.environ:
            folder = next((above for above in (path, *path.parents) if os.path.lexists(above / ".git")), path)
        facts = ("--is-shallow-repository", "--is-bare-repository", "--show-object-format", "--show-cdup")
        remotes = ("--symbolic-full-name", "--glob=refs/remotes/*/HEAD")
        try:
            # Results that may contain a newline come last.
            output = Runner(str(folder), {}).run(
                "rev-parse", *facts, *remotes, "--absolute-git-dir", _SEPARATOR, "--git-common-dir"
            )
        except GitFailed as failure:
            raise _create_open_error(path, failure.stderr) from failure
        first_result, _, common = output.decode("utf-8", "surrogateescape").partition(f"\n{_SEPARATOR}\n")
        shallow, is_bare, self.object_format, *lines = first_result.split("\n")
        # In a bare repository git omits the way up to the top of the working tree.
        up = lines.pop(0) if is_bare == "false" else None
        self.default_branches = tuple(takewhile(lambda line: line.startswith("refs/"), lines))
        self.own = Path("\n".join(lines[len(self.default_branches) :]))
        self.directory = path
        self.top = None if up is None else (folder / up).resolve()
        self.common_directory = (folder / common.removesuffix("\n")).resolve()
        self.shallow = shallow == "true"
        git = Runner(str(path), pin_repository(str(self.own), str(self.top) if self.top else None))
        self.run = git.run
        self.start = git.start
        self._objects: Process | None = None
        # A command sees one state: a ref keeps the commit that it had when it was first resolved.
        self._commits: dict[str, Commit | None] = {}
        self._merge_bases: dict[tuple[str, str], Commit | None] = {}
        self._trees: dict[str, dict[str, TreeEntry] | None] = {}
        # Folders of unusual trees, which only git itself can list.
        self._listed_folders: dict[tuple[str, str], dict[str, TreeEntry]] = {}
        # In a partial clone: the ids of all present objects, and of the objects to fetch with the next missing one.
        self._present: set[str] | None = None
        self._fetched_later: set[str] = set()
        self._added: dict[str, Blob] = {}
        self._ahead: dict[str, Blob] = {}

    @classmethod
    def open(cls, directory: str | os.PathLike[str] = ".") -> Repository:
        """Open the repository that `directory` is in, which git finds and trusts by its own rules.

        Raises:
            HistoryError: the folder is not in a repository, git refuses to read it (another owner, or bare and not named by
                GIT_DIR), it has grafts, or git is older than MIN_VERSION.
        """
        repository = cls(Path(directory).resolve())
        grafts = Path(os.environ.get("GIT_GRAFT_FILE") or repository.common_directory / "info" / "grafts")
        if grafts.is_file() and grafts.read_bytes().strip():
            raise HistoryError(
                f"{grafts} replaces the parents of commits, so this clone sees another history than other clones",
                fix=f"remove it: `rm {quote(str(grafts))}`",
            )
        return repository

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the git process that reads objects; the next request starts another."""
        if self._objects:
            self._objects.close()
            self._objects = None

    def objects(self, names: Sequence[str]) -> Iterator[Blob | None]:
        """Yield the objects with these names (ids, or anything git can resolve) in order, and None for a name that does not exist.

        A name is a line on git's standard input, so it can never become an option, and must not contain a newline. Take all objects
        before the next request.
        """
        lines = [b"contents %b\n" % name.encode("utf-8", "surrogateescape") for name in names]
        while lines:
            total = accumulate(map(len, lines))
            count = max(1, sum(1 for _ in takewhile(lambda size: size <= _REQUEST_BYTES, total)))
            if self._objects is None:
                # With a buffer, git writes the objects of a request together, which takes half the time.
                self._objects = self.start("cat-file", "--batch-command", "--buffer")
            try:
                self._objects.write(b"%bflush\n" % b"".join(lines[:count]))
                # A group is read to its end before its first object is yielded, so that a caller cannot leave half a response behind.
                blobs = [_read_object(self._objects) for _ in lines[:count]]
            except (BrokenPipeError, EOFError) as error:
                stderr = self._objects.read_stderr()
                self.close()
                raise HistoryError(f"git stopped while it read objects: {stderr.strip()}", fix=FSCK) from error
            yield from blobs
            del lines[:count]

    def blob(self, blob_id: str) -> Blob:
        """Return the blob with this id; a blob that is missing from a partial clone is fetched."""
        blob = self._added.get(blob_id) or self._ahead.get(blob_id)
        if blob is None:
            self.fetch_missing([blob_id])
            [blob] = self.objects([blob_id])
        if blob is None or blob.type != "blob":
            # A shallow clone whose derived history was kept lacks the files of the commits that are cut off.
            self.require_all_commits()
            raise HistoryError(f"the repository has no blob {blob_id}", fix=FSCK)
        return blob

    def read_ahead(self, ids: Iterable[str]) -> None:
        """Read the blobs with these ids, which are needed next, up to _READ_AHEAD_BYTES."""
        self._ahead = {}
        blob_ids = [blob_id for blob_id in dict.fromkeys(ids) if blob_id not in self._added]
        self.fetch_missing(blob_ids)
        size_bytes = 0
        for blob in filter(None, self.objects(blob_ids)):
            self._ahead[blob.id] = blob
            size_bytes += len(blob.content)
            if size_bytes > _READ_AHEAD_BYTES:
                break

    def add_content(self, blob: Blob) -> None:
        """Make `blob` return the content of a file that git may not have."""
        self._added[blob.id] = blob

    def commit(self, ref: str) -> Commit | None:
        """Return the commit that `ref` or its tag names, or None if it does not exist. Each name is resolved once."""
        if ref not in self._commits:
            self._commits[ref] = commit = self._read_commit(ref)
            if commit:
                self._commits[commit.id] = commit
        return self._commits[ref]

    def merge_base(self, head: Commit, tip: Commit) -> Commit | None:
        """Return the newest common commit, or None if there is no common commit. Each pair is computed once.

        Raises:
            HistoryError: a shallow clone ends before it.
        """
        if head == tip:
            return head
        if (head.id, tip.id) not in self._merge_bases:
            try:
                base = self.commit(self.run("merge-base", head.id, tip.id).decode().strip())
            except GitFailed as failure:
                if not failure.has_result:
                    raise
                self.require_all_commits()
                base = None
            self._merge_bases[head.id, tip.id] = base
        return self._merge_bases[head.id, tip.id]

    def merge_texts(self, base: bytes, *, ours: bytes, theirs: bytes) -> bytes | None:
        """Merge two versions of a text line by line, as `git merge` does, or return None if they conflict."""
        with TemporaryDirectory() as folder:
            names = ("ours", "base", "theirs")
            for name, text in zip(names, (ours, base, theirs), strict=True):
                Path(folder, name).write_bytes(text)
            try:
                return self.run("merge-file", "-p", "--quiet", *(str(Path(folder, name)) for name in names))
            except GitFailed:
                return None

    def _read_commit(self, ref: str) -> Commit | None:
        if any(part in ref for part in ("\0", "\n", "..")) or ref.startswith(("^", "-")):
            # These name a range of commits or nothing.
            return None
        # Most of the tried names do not exist, which the process that reads objects reports quickly. It gets only plain names: an
        # unset upstream or a wrong pattern would end it.
        if set("@:{").isdisjoint(ref):
            [commit_object] = self.objects([f"{ref}^{{commit}}"])
            if commit_object is None or commit_object.id in self._commits:
                return commit_object and self._commits[commit_object.id]
            # The commit exists, so a failure is an error.
            output = self._log_commit(commit_object.id)
        else:
            try:
                output = self._log_commit(f"{ref}^{{commit}}")
            except GitFailed:
                return None
        return _parse_commit(*output.split(b"\0")).commit

    def _log_commit(self, name: str) -> bytes:
        # A walk would need the parents, which a damaged or incomplete repository may not have.
        return self.run("log", "--no-walk", *_LOG_FORMAT, name, "--")

    def list_folder(self, commit_id: str, folder: str) -> Mapping[str, TreeEntry]:
        """Return the entries of a folder of a commit by path; "" is its top."""
        entries = self._read_folder(commit_id, folder)
        if entries is not None:
            return entries
        if (commit_id, folder) not in self._listed_folders:
            # Without the slash, git would list the folder's own entry instead of its contents.
            listed = self._list_tree(commit_id, *([f"{folder}/"] if folder else []))
            self._listed_folders[commit_id, folder] = listed
        return self._listed_folders[commit_id, folder]

    def list_below(self, commit_id: str, folder: str) -> Mapping[str, TreeEntry]:
        """Return the entries of a folder and of all folders in it, without the folders; a path that is not a folder lists itself."""
        return self._list_tree(commit_id, *([folder] if folder else []), is_recursive=True)

    def _list_tree(self, commit_id: str, *paths: str, is_recursive: bool = False) -> dict[str, TreeEntry]:
        recursive = ["-r"] if is_recursive else []
        output = self.run("ls-tree", "-z", "--full-tree", *recursive, commit_id, "--", *paths)
        entries = {}
        for record in output.decode("utf-8", "surrogateescape").split("\0")[:-1]:
            facts, _, path = record.partition("\t")
            mode, _, entry_id = facts.split(" ")
            entries[path] = TreeEntry(mode, entry_id)
        return entries

    def _read_folder(self, commit_id: str, folder: str) -> dict[str, TreeEntry] | None:
        """List a folder with the process that reads objects, or return None if only `git ls-tree` can list it."""
        entries = self._read_tree(f"{commit_id}^{{tree}}")
        for name in folder.split("/") if folder else ():
            if entries is None or name in ("", ".", ".."):
                return None
            entry = entries.get(name)
            if entry is None:
                return {}
            entries = self._read_tree(entry.id) if entry.mode == "40000" else None
        if entries is None or not folder:
            return entries
        return {f"{folder}/{name}": entry for name, entry in entries.items()}

    def _read_tree(self, name: str) -> dict[str, TreeEntry] | None:
        """Return the entries of a tree by name, or None if the tree is missing or unusual."""
        if name not in self._trees:
            [tree] = self.objects([name])
            is_read = tree is not None and tree.type == "tree" and tree.size_bytes == len(tree.content)
            self._trees[name] = _parse_tree(tree.content, len(tree.id) // 2) if tree and is_read else None
        return self._trees[name]

    def refs(self) -> list[str]:
        """Return the short names of all refs."""
        return self.run("for-each-ref", "--format=%(refname:short)").decode("utf-8", "replace").split()

    def settings(self, names: str) -> list[tuple[str, str]]:
        """Return the names and values of the settings whose names match a regular expression, as git spells them."""
        try:
            listed = self.run("config", "--null", "--get-regexp", names).decode("utf-8", "surrogateescape")
        except GitFailed as failure:
            if not failure.has_result:
                raise
            # No setting has a matching name.
            return []
        entries = (entry.partition("\n") for entry in listed.split("\0")[:-1])
        return [(name, value) for name, _, value in entries]

    @cached_property
    def remotes(self) -> dict[str, dict[str, list[str]]]:
        """The settings of each remote: `url`, `fetch`, and in lower case the filter of a partial clone."""
        remotes: dict[str, dict[str, list[str]]] = {}
        for key, value in self.settings(r"^remote\..*\.(url|fetch|promisor|partialclonefilter)$"):
            name, _, setting = key.removeprefix("remote.").rpartition(".")
            remotes.setdefault(name, {}).setdefault(setting, []).append(value)
        return remotes

    @cached_property
    def promisor(self) -> str | None:
        """The remote with the objects that are missing from a partial clone, or None for a complete clone."""
        if not any((self.common_directory / "objects" / "pack").glob("*.promisor")):
            return None
        promisors = {name: settings.get("promisor", [""])[-1] for name, settings in self.remotes.items()}
        return next((name for name, promisor in promisors.items() if promisor == "true"), None)

    def require_trees(self) -> None:
        """Raise HistoryError with the command that fetches them if a clone lacks the file names of older commits."""
        settings = self.remotes[self.promisor] if self.promisor else {}
        clone_filter = settings.get("partialclonefilter", [""])[-1]
        if "tree:" in clone_filter or "object:type=" in clone_filter:
            raise HistoryError(
                f"this partial clone was made without the file names of older commits (filter {clone_filter}): reading its "
                "history would fetch them one commit at a time",
                fix=f"`git config {quote(f'remote.{self.promisor}.partialclonefilter')} blob:none && git fetch "
                f"--refetch {quote(self.promisor or '')}`",
            )

    def require_all_commits(self) -> None:
        """Raise HistoryError with the command that repairs it if the history is cut off."""
        if self.shallow:
            raise HistoryError(
                "this clone is shallow: its history is cut off, and version numbers are counted from the first commit",
                fix="`git fetch --unshallow`; in a GitHub workflow give actions/checkout `fetch-depth: 0`",
            )

    def fetch_later(self, blob_ids: Iterable[str]) -> None:
        """Fetch the blobs with these ids together with the next missing blobs."""
        if self.promisor:
            self._fetched_later.update(blob_ids)

    def fetch_missing(self, blob_ids: Iterable[str]) -> None:
        """Fetch the blobs that are missing from a partial clone, with one `git fetch`."""
        if not self.promisor:
            return
        if self._present is None:
            list_objects = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
            self._present = set(self.run(*list_objects).decode().split("\n"))
        missing = {*blob_ids}.difference(self._present, self._added)
        if not missing:
            return
        missing |= self._fetched_later.difference(self._present, self._added)
        self._fetched_later.clear()
        # Git itself fetches missing objects with these options (promisor-remote.c), but one by one.
        upload = () if self.top else ("--upload-pack=git-upload-pack",)
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
        objects = ("--recurse-submodules=no", "--filter=blob:none", "--stdin", self.promisor)
        try:
            self.run(
                *("fetch", *upload, *quiet, *objects),
                standard_input="".join(f"{blob_id}\n" for blob_id in sorted(missing)).encode(),
                options=FETCH if self.top else BARE_FETCH,
                variables=fetch_variables(),
            )
        except GitFailed as failure:
            raise HistoryError(
                f"this partial clone lacks {len(missing)} files of the approved history, and they could not be fetched from "
                f"{self.promisor}: {' '.join(failure.stderr.split())}",
                fix="name the remote's protocol in GIT_ALLOW_PROTOCOL, or use a whole clone"
                if "not allowed" in failure.stderr
                else f"make `git fetch {quote(self.promisor)}` work, or use a whole clone",
            ) from failure
        self._present |= missing


def log(
    repository: Repository, tip: str, since: str | None = None, *, walk: Literal["line", "rebased", "merges"] = "line"
) -> Iterator[LoggedCommit]:
    """Yield the commits from the first one (or the one after `since`) to `tip`, oldest first, from one git process.

    `walk` selects the commits of the first-parent line, the commits that a rebase onto `since` applies, or all merges. A `since` that
    does not exist is ignored.
    """
    logged: LoggedCommit | None = None
    tokens = repository.start(
        *("log", "--reverse", *_WALKS[walk], "--ignore-missing", *RAW, "--root", *_LOG_FORMAT),
        *(tip, *([f"^{since}"] if since else [])),
    ).read_records()
    for token in tokens:
        if token.startswith(b"\x01"):
            if logged:
                yield logged
            logged = _parse_commit(token, next(tokens), next(tokens))
        elif logged and token.lstrip(b"\n").startswith(b":"):
            # `:<mode before> <mode> <id before> <id> <status>`, then the path: split at spaces, as ids have 40 or 64 digits.
            _, mode, before, blob, _ = token.decode().split(" ")
            logged.changes.append(ChangedFile(next(tokens).decode("utf-8", "surrogateescape"), mode, blob, before))
        elif token.strip(b"\n"):
            raise HistoryError(f"unexpected output of git log: {token[:80]!r}")
    if logged:
        yield logged


def list_authors(repository: Repository, start: Commit | None, end: Commit) -> list[str]:
    """Return the author of each commit that `end` has and `start` does not have."""
    exclusion = [f"^{start.id}"] if start else []
    output = repository.run("log", "--format=%aN", end.id, *exclusion, "--")
    return output.decode("utf-8", "replace").splitlines()


def read_authors(repository: Repository, commit_ids: Collection[str]) -> dict[str, str]:
    """Map each commit id to the author of the commit."""
    if not commit_ids:
        return {}
    id_lines = "".join(f"{commit_id}\n" for commit_id in sorted(commit_ids)).encode()
    output = repository.run("log", "--no-walk=unsorted", "--format=%H %aN", "--stdin", standard_input=id_lines)
    rows = (line.partition(" ") for line in output.decode("utf-8", "replace").splitlines())
    return {commit_id: author for commit_id, _, author in rows}


def _parse_commit(facts: bytes, subject: bytes, body: bytes) -> LoggedCommit:
    """Return the commit that _LOG_FORMAT printed, without its changes."""
    # Git prints no time if it cannot read the time of the commit.
    commit_id, time_s, *parents = facts.removeprefix(b"\x01").decode().split(" ")
    title = _find_title(subject, body, is_merge=len(parents) > 1)
    return LoggedCommit(Commit(commit_id, parse_time(time_s), title), [], tuple(filter(None, parents)))


def _parse_tree(content: bytes, id_bytes: int) -> dict[str, TreeEntry] | None:
    """Return the entries of a tree object by name, or None if one has an unusual mode; `id_bytes` is the size of an id."""
    entries: dict[str, TreeEntry] = {}
    start = 0
    while start < len(content):
        name_end = content.index(b"\0", start)
        mode, _, name = content[start:name_end].partition(b" ")
        if mode not in _TREE_MODES:
            return None
        start = name_end + 1 + id_bytes
        entries[name.decode("utf-8", "surrogateescape")] = TreeEntry(mode.decode(), content[name_end + 1 : start].hex())
    return entries


def _find_title(subject: bytes, body: bytes, *, is_merge: bool) -> str:
    """Return the subject of a commit, or the title of the pull request that a merge commit merged, with its number.

    GitHub and Bitbucket have the number in the subject and the title in the body, GitLab has both in the body.
    """
    text = subject.decode("utf-8", "replace")
    if not is_merge or not _MERGE_SUBJECT.match(text):
        return text
    lines = [line.strip() for line in body.decode("utf-8", "replace").splitlines()]
    title = next(filter(None, lines), "")
    # Git itself adds lists of commits and conflicts, and trailers.
    if not title or _NO_TITLE.match(title):
        return text
    number = _PULL_REQUEST.search(text) or next(filter(None, map(_MERGE_REQUEST.search, lines)), None)
    return f"{title} ({number[1]})" if number and number[1] not in title else title


def parse_time(digits: str) -> int:
    """Convert the time that git prints to seconds since the epoch: 0 if git prints no time, at most LATEST_S."""
    if not digits.isdigit():
        return 0
    # Python limits the number of digits that it converts.
    return min(int(digits), LATEST_S) if len(digits) <= 20 else LATEST_S


def _read_object(process: Process) -> Blob | None:
    """Read an object from `git cat-file`: `<id> <type> <size>`, newline, content, newline; or `<name> missing`."""
    header = process.output.readline()
    if header.endswith((b" missing\n", b" ambiguous\n")):
        return None
    if not header.endswith(b"\n"):
        raise EOFError
    object_id, kind, size = header.split()
    content, rest = b"", int(size) + 1
    if rest <= MAX_BYTES + 1:
        content = process.output.read(rest)
        rest -= len(content)
    while rest and (part := process.output.read(min(rest, CHUNK_BYTES))):
        rest -= len(part)
    if rest:
        raise EOFError
    return Blob(object_id.decode(), kind.decode(), int(size), content[:-1])


def _create_open_error(directory: Path, stderr: str) -> HistoryError:
    problem = stderr.removeprefix("fatal: ")
    if "safe.directory" in problem:
        reason, _, advice = problem.partition("\n")
        return HistoryError(f"git refuses to read this repository: {reason}", fix=" ".join(advice.split()))
    if "safe.bareRepository" in problem:
        return UnnamedBareRepository(
            f"{directory} is a bare repository, and git may read one only if it is named",
            fix=f"set GIT_DIR={quote(str(directory))}, if you trust its settings",
        )
    if problem.startswith("not a git repository"):
        return HistoryError(
            f"{directory} is not in a Git repository, and versions come from its history",
            fix="work inside a repository, or name one with -C DIR; `git init` makes one",
        )
    return HistoryError(f"git cannot open a repository at {directory}: {problem}")


# Git processes


class Runner:
    """A starter of git commands in one folder, with GitPython's `Git`, which is imported on use."""

    def __init__(self, directory: str, variables: Mapping[str, str]) -> None:
        try:
            # Takes 100 ms, and looks for git.
            from git import Git
        except ImportError as error:
            raise _make_version_error("git was not found") from error
        _require_version()
        self._git = Git(directory)
        self._git.update_environment(**VARIABLES, **variables)

    def run(
        self,
        *arguments: str,
        standard_input: bytes = b"",
        options: Sequence[str] = OPTIONS,
        variables: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run a git command and return its standard output.

        Raises:
            GitFailed: its exit status is not 0.
        """
        if not standard_input:
            return self._start(options, arguments, env=variables).read()
        with TemporaryFile() as input_file:
            input_file.write(standard_input)
            input_file.seek(0)
            return self._start(options, arguments, istream=input_file, env=variables).read()

    def start(self, *arguments: str) -> Process:
        """Start a git command that runs in parallel, with pipes to and from it."""
        return self._start(_STREAM_OPTIONS, arguments, istream=PIPE)

    def _start(self, options: Sequence[str], arguments: Sequence[str], **settings: Any) -> Process:
        from git.exc import GitCommandNotFound

        command = [self._git.GIT_PYTHON_GIT_EXECUTABLE or "git", *options, *arguments]
        try:
            # Without `as_process`, GitPython leaves the command and a timer running when this process is interrupted.
            return Process(arguments[0], self._git.execute(command, as_process=True, **settings))
        except GitCommandNotFound as error:
            raise _make_version_error("git was not found") from error


class Process:
    """A running git command, `started` by GitPython. Reading its `output` raises HistoryError after TIME_LIMIT_S without data."""

    def __init__(self, command: str, started: Any) -> None:
        self._command = command
        # GitPython ends the process when this object is deleted.
        self._started = started
        self._process = started.proc
        self.output = BufferedReader(_Output(command, self._process.stdout.fileno()), CHUNK_BYTES)
        self._stderr = b""
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def write(self, data: bytes) -> None:
        """Pass `data` to the command at once."""
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def read(self) -> bytes:
        """Read the whole output, and close the process.

        Raises:
            GitFailed: its exit status is not 0.
        """
        return b"".join(self._read_chunks())

    def read_records(self) -> Iterator[bytes]:
        """Yield the NUL-terminated records of the output, and close the process.

        Raises:
            GitFailed: its exit status is not 0.
        """
        rest = b""
        for chunk in self._read_chunks():
            *records, rest = (rest + chunk).split(b"\0")
            yield from records
        if rest:
            yield rest

    def _read_chunks(self) -> Iterator[bytes]:
        try:
            while chunk := self.output.read1():
                yield chunk
            if status := self._process.wait():
                raise GitFailed(self._command, status, self.read_stderr())
        finally:
            self.close()

    def read_stderr(self) -> str:
        """Return the text that the command, which has ended, printed on standard error."""
        self._listener.join(_EXIT_TIMEOUT_S)
        return self._stderr.decode("utf-8", "replace")

    def close(self) -> None:
        """End the command, finished or not."""
        # Closing flushes, and a dead process no longer reads.
        with suppress(BrokenPipeError):
            if self._process.stdin:
                self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._listener.join(_EXIT_TIMEOUT_S)
        self._process.stdout.close()
        self._process.stderr.close()

    def _listen(self) -> None:
        """Read standard error, which would block the command when its pipe is full."""
        with suppress(OSError, ValueError):
            while part := os.read(self._process.stderr.fileno(), CHUNK_BYTES):
                self._stderr = (self._stderr + part)[-_STDERR_BYTES:]


class _Output(RawIOBase):
    """The standard output of a running command, with a time limit for each read."""

    def __init__(self, command: str, descriptor: int) -> None:
        self._command = command
        self._descriptor = descriptor

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not select([self._descriptor], [], [], TIME_LIMIT_S)[0]:
            raise HistoryError(f"`git {self._command}` timed out after {TIME_LIMIT_S:g} s")
        return os.readv(self._descriptor, [buffer])


@cache
def _require_version() -> None:
    """Raise HistoryError if git is older than MIN_VERSION: it would ignore some of OPTIONS silently."""
    from git import Git
    from git.exc import GitCommandNotFound

    try:
        version = Git().version_info[:2]
    except GitCommandNotFound as error:
        raise _make_version_error("git was not found") from error
    if version < MIN_VERSION:
        raise _make_version_error(f"git {'.'.join(map(str, version))} is too old")


def _make_version_error(problem: str) -> HistoryError:
    return HistoryError(problem, fix=f"install Git {'.'.join(map(str, MIN_VERSION))} or newer, and have it on PATH")
