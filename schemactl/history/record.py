"""The record of what was approved: the first-parent line of a ref, as git streams it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from schemactl.errors import HistoryError
from schemactl.history.ancestry import time_of
from schemactl.history.repository import Repository
from schemactl.model import Commit

# Everything a user's configuration could change about the output is said here: log.showRoot, log.showSignature,
# log.diffMerges, diff.renames, diff.relative, diff.ignoreSubmodules, diff.orderFile, core.abbrev, core.quotePath,
# i18n.logOutputEncoding.
LOG: Final = (
    *("log", "--reverse", "-O/dev/null"),
    *("--raw", "-z", "--root", "--diff-merges=first-parent", "--no-renames", "--no-relative", "--no-abbrev"),
    *("--ignore-submodules=none", "--no-show-signature", "--no-ext-diff", "--no-textconv"),
    "--encoding=UTF-8",
)
"""Every commit with what it changed against its first parent, for `steps` to read in the format HEAD%x00%s."""

HEAD: Final = "%x01%H %ct"


class Change(NamedTuple):
    """One path of a commit, as it is afterwards.

    Bytes of the path that are not UTF-8 are surrogate escapes. `mode` is Git's: 100644 and 100755 are files, 120000 is a
    symlink, 160000 a submodule, 000000 a deletion.
    """

    path: str
    mode: str
    blob: str


class Step(NamedTuple):
    """One commit on the first-parent line, and what it changed against the one before. A merge is one step."""

    commit: Commit
    changes: list[Change]


def record(repository: Repository, tip: Commit, since: Commit | None = None) -> Iterator[Step]:
    """The steps from the first commit (or the one after `since`) to `tip`, oldest first, from one git process.

    Raises:
        HistoryError: git stopped, or answered what this cannot read.
    """
    for _, step in line(repository, tip.id, since.id if since else None):
        yield step


def line(repository: Repository, tip: str, since: str | None = None) -> Iterator[tuple[list[bytes], Step]]:
    """As `record`, each step with the ids of its commit's parents. A `since` that the repository has not is no bound.

    Raises:
        HistoryError: as `record`.
    """
    range_ = [tip, f"^{since}"] if since else [tip]
    options = ("--first-parent", "--ignore-missing", f"--format={HEAD} %P%x00%s", "--end-of-options")
    return steps(repository.stream(*LOG, *options, *range_))


def steps(tokens: Iterator[bytes]) -> Iterator[tuple[list[bytes], Step]]:
    """What `git log` answers to LOG: each commit with the further words that its format asked for between HEAD and %x00%s.

    Raises:
        HistoryError: it is not of that form.
    """
    step: Step | None = None
    further: list[bytes] = []
    for token in tokens:
        if token.startswith(b"\x01"):
            if step:
                yield further, step
            # Git tells no time where the commit has none that it can read.
            commit_id, time_s, *words = token[1:].split(b" ")
            further = [word for word in words if word]
            subject = next(tokens).decode("utf-8", "replace")
            step = Step(Commit(commit_id.decode(), time_of(time_s), subject), [])
        elif step and token.lstrip(b"\n").startswith(b":"):
            # `:<mode before> <mode> <id before> <id> <status>`, then the path: by spaces, for ids have 40 or 64 digits.
            _, mode, _, blob, _ = token.decode().split(" ")
            path = next(tokens).decode("utf-8", "surrogateescape")
            step.changes.append(Change(path, mode, blob))
        elif token.strip(b"\n"):
            raise HistoryError(f"git log answered {token[:80]!r}, which is not of the form asked for")
    if step:
        yield further, step
