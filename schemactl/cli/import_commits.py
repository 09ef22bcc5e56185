"""The commits that `import` makes of what a registry has."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from schemactl.core.errors import HistoryError
from schemactl.core.wording import moment
from schemactl.history.git import GitFailed

if TYPE_CHECKING:
    from schemactl.core.project import Target
    from schemactl.core.schema import Commit
    from schemactl.deploy.registry_import import ImportResult
    from schemactl.history import Repository

_IMPORT_REF: Final = "refs/schemactl/import"
"""Where new commits are until the branch takes them over."""


class NewCommit(NamedTuple):
    """A commit to be made: its message, its time in seconds since the epoch, its files (None removes one)."""

    message: str
    time_s: int
    files: Mapping[str, bytes | None]


def commits_of(imported: ImportResult, target: Target) -> Iterator[NewCommit]:
    """Yield a commit of everything that has no versions, then a commit of each version."""
    now_s = int(time.time())
    if imported.namespace_files:
        yield NewCommit(f"Import the namespaces of {target.name}\n", now_s, imported.namespace_files)
    for revision in imported.revisions:
        number, uploaded_ms = revision.version.number, revision.version.timestamp_ms
        uploaded = f", uploaded {moment(uploaded_ms)} UTC" if uploaded_ms else ""
        yield NewCommit(
            f"{revision.topic}: version {number} of {target.name}\n\n"
            f"Imported from {target.registry}{uploaded}.\n",
            # What a registry says may be anything; nothing was uploaded after now, as far as Git is concerned.
            min(max(uploaded_ms // 1000, 0), now_s) if uploaded_ms else now_s,
            revision.files,
        )


def add_commits(repository: Repository, commits: Iterable[NewCommit]) -> Commit | None:
    """Add `commits` to the branch that HEAD names, and to the working tree; return its new tip, None without `commits`.

    One git process makes them, and the branch takes over all or none. Git's hooks do not run, and nothing is signed.
    Where the working tree has other work in the way, git refuses, and everything is as it was.
    """
    try:
        repository.run("symbolic-ref", "--quiet", "HEAD")
    except GitFailed as error:
        raise HistoryError(
            "HEAD is on no branch, so that the commits would be lost", fix="git switch -c import"
        ) from error
    identity = repository.run("var", "GIT_COMMITTER_IDENT").rsplit(b" ", 2)[0]
    head = repository.commit("HEAD")
    stream = b"".join(_stream(commits, identity, head))
    try:
        repository.run("fast-import", "--quiet", "--date-format=raw", standard_input=stream)
        tip = repository.commit(_IMPORT_REF)
        if tip is not None:
            repository.run("-C", str(repository.top), "merge", "--quiet", "--ff-only", _IMPORT_REF)
    finally:
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
