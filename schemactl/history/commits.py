"""Commits: the first-parent line of a ref as git streams it, what a branch adds to it, and new ones for `import`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from schemactl.errors import HistoryError
from schemactl.history.approved import refuse_shallow
from schemactl.history.git import GitFailed
from schemactl.history.repository import Repository, time_of
from schemactl.model import Commit

# Everything a user's configuration could change about the output is said here: log.showRoot, log.showSignature,
# log.diffMerges, diff.renames, diff.relative, diff.ignoreSubmodules, diff.orderFile, core.abbrev, core.quotePath,
# i18n.logOutputEncoding.
_LOG: Final = (
    *("log", "--reverse", "-O/dev/null", "--first-parent", "--ignore-missing"),
    *("--raw", "-z", "--root", "--diff-merges=first-parent", "--no-renames", "--no-relative", "--no-abbrev"),
    *("--ignore-submodules=none", "--no-show-signature", "--no-ext-diff", "--no-textconv"),
    *("--encoding=UTF-8", "--format=%x01%H %ct %P%x00%s", "--end-of-options"),
)

_IMPORT_REF: Final = "refs/schemactl/import"
"""Where new commits are until the branch takes them over."""


class Change(NamedTuple):
    """One path of a commit, as it is afterwards.

    Bytes of the path that are not UTF-8 are surrogate escapes. `mode` is Git's: 100644 and 100755 are files, 120000 is a
    symlink, 160000 a submodule, 000000 a deletion.
    """

    path: str
    mode: str
    blob: str


class LoggedCommit(NamedTuple):
    """A commit on a first-parent line, what it changed against the one before, and its parents' ids. A merge is one commit."""

    commit: Commit
    changes: list[Change]
    parents: tuple[str, ...]


class Branch(NamedTuple):
    """The work between the approved history and a commit that is not approved yet.

    A merge commit or a squash records the end of a branch alone; a rebase merge or a fast-forward records each commit.

    Attributes:
        fork: the newest commit that both have.
        commits: its own commits along its first-parent line, oldest first. A merge that brings approved history into the
            branch is none of them: a rebase drops it.
        is_updated: there was such a merge, so a fast-forward would make another line the record.
    """

    fork: Commit
    commits: tuple[LoggedCommit, ...]
    is_updated: bool


class NewCommit(NamedTuple):
    """A commit to be made.

    Attributes:
        message: its first line is the subject.
        time_s: of author and committer, seconds since the epoch.
        files: path to content; None removes.
    """

    message: str
    time_s: int
    files: Mapping[str, bytes | None]


def log(repository: Repository, tip: str, since: str | None = None) -> Iterator[LoggedCommit]:
    """Yield the commits from the first one (or the one after `since`) to `tip`, oldest first, from one git process.

    A `since` that the repository does not have is no bound.

    Raises:
        HistoryError: git stopped, or its output cannot be parsed.
    """
    logged: LoggedCommit | None = None
    tokens = repository.start(*_LOG, tip, *([f"^{since}"] if since else [])).tokens()
    for token in tokens:
        if token.startswith(b"\x01"):
            if logged:
                yield logged
            # Git prints no time where the commit has none that it can read.
            commit_id, time_s, *parents = token[1:].decode().split(" ")
            subject = next(tokens).decode("utf-8", "replace")
            commit = Commit(commit_id, time_of(time_s.encode()), subject)
            logged = LoggedCommit(commit, [], tuple(filter(None, parents)))
        elif logged and token.lstrip(b"\n").startswith(b":"):
            # `:<mode before> <mode> <id before> <id> <status>`, then the path: by spaces, for ids have 40 or 64 digits.
            _, mode, _, blob, _ = token.decode().split(" ")
            logged.changes.append(Change(next(tokens).decode("utf-8", "surrogateescape"), mode, blob))
        elif token.strip(b"\n"):
            raise HistoryError(f"git log answered {token[:80]!r}, which is not of the form asked for")
    if logged:
        yield logged


def fork(repository: Repository, *, head: Commit, tip: Commit) -> Commit | None:
    """Return the newest commit that both have; None: they have none in common.

    Raises:
        HistoryError: the clone is shallow, and was cut off before they meet.
    """
    try:
        found = repository.run("merge-base", head.id, tip.id).decode().strip()
    except GitFailed as failure:
        if failure.words.strip():
            raise
        refuse_shallow(repository)
        return None
    return repository.commit(found)


def branch(repository: Repository, *, head: Commit, tip: Commit) -> Branch | None:
    """Return what `head` has that the approved `tip` has not; None when they have no commit in common.

    Where `head` is a merge into the approved history, as CI makes one of a pull request, the branch is what it merges.

    Raises:
        HistoryError: the clone is shallow, and was cut off before they meet.
    """
    left = fork(repository, head=head, tip=tip)
    if left is None:
        return None
    listed = repository.run("rev-list", "--parents", head.id, f"^{tip.id}").decode().splitlines()
    parents = {commit: others for commit, *others in (line.split(" ") for line in listed)}
    at = head.id
    if len(parents.get(at, ())) > 1 and parents[at][0] not in parents:
        at = parents[at][1]
    own = []
    is_updated = False
    for each in log(repository, at, tip.id) if at in parents else ():
        if not each.parents:
            # Either the repository's first commit, or where a shallow clone was cut off.
            refuse_shallow(repository)
        if parents.keys() >= set(each.parents[1:]):
            own.append(each)
        else:
            is_updated = True
    return Branch(left, tuple(own), is_updated)


def add_commits(repository: Repository, commits: Iterable[NewCommit]) -> Commit | None:
    """Add `commits` to the branch that HEAD names, and to the working tree; return its new tip, None without `commits`.

    One git process makes them, and the branch takes over all or none. Git's hooks do not run, and nothing is signed.
    Where the working tree has other work in the way, git refuses, and everything is as it was.

    Raises:
        HistoryError: HEAD is on no branch, there is no working tree, git knows no author, or it refused.
    """
    if repository.top is None:
        raise HistoryError(
            "a bare repository has no working tree to import into", fix="work in a clone of it"
        )
    try:
        repository.run("symbolic-ref", "--quiet", "HEAD")
    except GitFailed as error:
        raise HistoryError(
            "HEAD is on no branch, so that the commits would be lost", fix="git switch -c import"
        ) from error
    identity = repository.run("var", "GIT_COMMITTER_IDENT").rsplit(b" ", 2)[0]
    head = repository.commit("HEAD")
    process = repository.start("fast-import", "--quiet", "--date-format=raw")
    try:
        for part in _stream(commits, identity, head):
            process.write(part)
        process.wait()
        tip = repository.commit(_IMPORT_REF)
        if tip is not None:
            repository.run("-C", str(repository.top), "merge", "--quiet", "--ff-only", _IMPORT_REF)
    except BrokenPipeError as error:
        raise HistoryError(f"git stopped while it took the commits: {process.words().strip()}") from error
    finally:
        process.close()
        repository.run("update-ref", "-d", _IMPORT_REF)
    return tip


def _stream(commits: Iterable[NewCommit], identity: bytes, head: Commit | None) -> Iterator[bytes]:
    """Yield the commits as `git fast-import` reads them."""
    for number, commit in enumerate(commits):
        message = commit.message.encode()
        yield b"commit %s\n" % _IMPORT_REF.encode()
        for role in (b"author", b"committer"):
            yield b"%s %s %d +0000\n" % (role, identity, commit.time_s)
        yield b"data %d\n%s\n" % (len(message), message)
        if not number and head is not None:
            yield b"from %s\n" % head.id.encode()
        for path, content in commit.files.items():
            name = _quoted(path)
            if content is None:
                yield b"D %s\n" % name
            else:
                yield b"M 100644 inline %s\ndata %d\n%s\n" % (name, len(content), content)


def _quoted(path: str) -> bytes:
    raw = path.encode("utf-8", "surrogateescape").replace(b"\\", rb"\\").replace(b'"', rb"\"")
    return b'"' + raw.replace(b"\n", rb"\n") + b'"'
