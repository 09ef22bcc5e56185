"""Commits made by the tool: all of them by one git process, and on the branch only when all are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from schemactl.errors import HistoryError
from schemactl.history.process import GitFailed
from schemactl.history.repository import Repository
from schemactl.model import Commit

_REF = "refs/schemactl/import"
"""Where the commits are until the branch takes them over."""


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


def add_commits(repository: Repository, commits: Iterable[NewCommit]) -> Commit | None:
    """The branch that HEAD names ends with `commits`, as does the working tree; its new tip, None without `commits`.

    Git's hooks do not run, and nothing is signed. Nothing is overwritten: where the working tree has other
    work in the way, git refuses, and everything is as it was.

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
            process.requests.write(part)
        process.requests.close()
        process.wait()
        tip = repository.commit(_REF)
        if tip is not None:
            repository.run("-C", str(repository.top), "merge", "--quiet", "--ff-only", _REF)
    except BrokenPipeError as error:
        raise HistoryError("git stopped while it took the commits; its own words are above") from error
    finally:
        process.close()
        repository.run("update-ref", "-d", _REF)
    return tip


def _stream(commits: Iterable[NewCommit], identity: bytes, head: Commit | None) -> Iterator[bytes]:
    """The commits as `git fast-import` reads them."""
    for number, commit in enumerate(commits):
        message = commit.message.encode()
        yield b"commit %s\n" % _REF.encode()
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
