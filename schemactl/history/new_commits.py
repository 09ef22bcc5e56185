"""Add commits to the branch that HEAD names, all or none, with one git process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from schemactl.core.errors import HistoryError
from schemactl.core.schema import Commit
from schemactl.history.git import GitFailed, Repository

_IMPORT_REF: Final = "refs/schemactl/import"
"""The ref of new commits until the branch contains them."""


class NewCommit(NamedTuple):
    """A commit to make.

    Attributes:
        message: the full message, with a line break at its end.
        time_s: the time of author and committer, in seconds since the epoch.
        files: the content by path; None removes the file.
    """

    message: str
    time_s: int
    files: Mapping[str, bytes | None]


def add_commits(repository: Repository, commits: Iterable[NewCommit]) -> Commit | None:
    """Add `commits` to the branch that HEAD names and to the working tree, and return its new tip, or None without `commits`.

    One git process makes them, and the branch gets all or none. Git's hooks do not run, and no commit is signed.
    If a commit would overwrite changes in the working tree, git fails and nothing changes.
    """
    try:
        repository.run("symbolic-ref", "--quiet", "HEAD")
    except GitFailed as error:
        raise HistoryError("HEAD is detached, so the commits would be lost", fix="git switch -c import") from error
    identity = repository.run("var", "GIT_COMMITTER_IDENT").rsplit(b" ", 2)[0]
    head = repository.commit("HEAD")
    stream = b"".join(_format_commits(commits, identity, head))
    try:
        repository.run("fast-import", "--quiet", "--date-format=raw", standard_input=stream)
        tip = repository.commit(_IMPORT_REF)
        if tip is not None:
            repository.run("-C", str(repository.top), "merge", "--quiet", "--ff-only", _IMPORT_REF)
    finally:
        repository.run("update-ref", "-d", _IMPORT_REF)
    return tip


def _format_commits(commits: Iterable[NewCommit], identity: bytes, head: Commit | None) -> Iterator[bytes]:
    """Yield the commits in the input format of `git fast-import`."""
    for number, commit in enumerate(commits):
        message = commit.message.encode()
        yield b"commit %s\n" % _IMPORT_REF.encode()
        for role in (b"author", b"committer"):
            yield b"%s %s %d +0000\n" % (role, identity, commit.time_s)
        yield b"data %d\n%s\n" % (len(message), message)
        if not number and head is not None:
            yield b"from %s\n" % head.id.encode()
        for path, content in commit.files.items():
            escaped_path = path.encode("utf-8", "surrogateescape").replace(b"\\", rb"\\").replace(b'"', rb"\"")
            name = b'"' + escaped_path.replace(b"\n", rb"\n") + b'"'
            if content is None:
                yield b"D %s\n" % name
            else:
                yield b"M 100644 inline %s\ndata %d\n%s\n" % (name, len(content), content)
