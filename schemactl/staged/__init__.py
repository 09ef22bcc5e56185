"""`check --staged` on sight: the index is as the last check knew it, or differs in what is plainly fine.

The hook runs at every commit, and most commits concern no schema. What is told here is told with certainty, in the words
of the complete check, which alone works out and explains everything else. Nothing is imported before it is needed.
"""

from __future__ import annotations

import os
import sys

from schemactl.history import kept
from schemactl.history.folders import (
    USUAL,
    Folders,
    default_branches,
    find,
    is_shallow,
    seen,
    spellings,
    stamp,
)
from schemactl.history.raw import DIFF_INDEX
from schemactl.staged.git import Git
from schemactl.staged.standing import Standing, concerning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NOT_CI = ("", "0", "false")
"""Values of the variable CI that say that this is none."""

_MAX_COMMITS = 2_000
"""So many commits are looked at for where work began."""


def in_ci() -> bool:
    """Whether a build server runs this, on what it checked out: then a check looks at what it would be judged against."""
    return os.environ.get("CI", "").lower() not in _NOT_CI


def answer() -> str | None:
    """The report of a check of the index; None: work it out."""
    look = Look()
    try:
        return look.answer()
    finally:
        look.close()


class Look:
    """A look at the index, and what git has told by its end: whoever works out the rest need not ask again.

    Attributes:
        base: the id of the commit that the index was compared with; "": it was not.
        records: what git told of that, as `DIFF_INDEX` asks for it.
    """

    def __init__(self) -> None:
        self.base = ""
        self.records = b""
        self._objects: Git | None = None

    def answer(self) -> str | None:
        """The report of a check of the index; None: work it out."""
        if in_ci():
            return None
        try:
            folders = find(os.getcwd())
            standing = Standing.read(folders) if folders else None
            if folders is None or standing is None:
                return None
            return self._answer(folders, standing)
        except (OSError, ValueError):
            # Git is missing, or something else than git answered, or something else was left.
            return None
        except BaseException:
            if taken := self.take():
                taken.kill()
            raise

    def objects(self, folders: Folders) -> Git:
        """The git process that reads objects of the repository with these folders."""
        if self._objects is None:
            self._objects = Git(folders, "cat-file", "--batch", asks=True)
        return self._objects

    def take(self) -> Git | None:
        """That process, if there is one, for somebody else to close."""
        taken, self._objects = self._objects, None
        return taken

    def close(self) -> None:
        """No git process of this look runs any more."""
        if taken := self.take():
            taken.close()

    def _answer(self, folders: Folders, standing: Standing) -> str | None:
        if (standing.program, standing.prefix) != (program(folders), os.fsencode(folders.prefix)):
            return None
        told = Git(folders, *DIFF_INDEX, standing.base.decode()).output()
        if told is None:
            return None
        self.base, self.records = standing.base.decode(), told
        records = concerning(told, roots=standing.roots, outside=standing.outside)
        now = stamp(folders, os.fsdecode(standing.approved))
        if now != standing.stamp:
            if not self._is_where_it_was(folders, standing):
                return None
            standing.stamp = now
            standing.write(folders)
        if b"\0".join(records) != standing.records:
            if not standing.topics or (standing.notes and standing.base != standing.tip):
                return None
            if not {*standing.numbers.split(b"\0")}.isdisjoint(records[1::2]):
                return None
            from schemactl.staged.judging import judged

            return judged(standing, records, self.objects(folders), color=_is_colored())
        return (standing.colored if _is_colored() else standing.plain).decode()

    def _is_where_it_was(self, folders: Folders, standing: Standing) -> bool:
        """Whether the approved history is the same, and HEAD left it at the same commit."""
        branches = default_branches(folders)
        if branches is None or "\n".join(branches) != os.fsdecode(standing.defaults) or is_shallow(folders):
            return False

        def read(names: Sequence[str]) -> list[bytes]:
            found = [each[1] for each in self.objects(folders).objects(names) if each]
            if len(found) < len(names):
                raise ValueError("a commit is missing")
            return found

        groups = spellings(os.fsdecode(standing.approved))
        if not standing.approved:
            branches.sort(key=lambda name: not name.startswith("refs/remotes/origin/"))
            groups = [[name] for name in (*branches[:1], *USUAL)]
        candidates = [name for group in groups for name in group]
        from schemactl.history.ancestry import parting

        head, *found = self.objects(folders).objects([f"{name}^{{commit}}" for name in ("HEAD", *candidates)])
        tips = {name: tip[0] for name, tip in zip(candidates, found, strict=True) if tip}
        tip = standing.tip.decode()
        first = next(filter(None, ([name for name in group if name in tips] for group in groups)), [])
        if head is None or first != [ref := os.fsdecode(standing.ref)] or tips[ref] != tip:
            return False
        return parting(read, head=head[0], tip=tip, limit=_MAX_COMMITS).fork == standing.base.decode()


def program(folders: Folders) -> bytes:
    """What tells this installation, and the attributes that one repository has beside its files, from others."""
    return kept.program().encode() + b" " + seen(os.path.join(folders.common, "info", "attributes"))


def _is_colored() -> bool:
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    from schemactl.report.style import is_welcome

    return is_welcome("auto")
