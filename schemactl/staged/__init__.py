"""`check --staged` on sight: the index is as the last check knew it, or differs in what is plainly fine.

The hook runs at every commit, and most commits concern no schema. What is told here is told with certainty, in the words
of the complete check, which alone works out and explains everything else. Nothing is imported before it is needed.
"""

from __future__ import annotations

import os
import sys

from schemactl.staged.git import DIFF_INDEX, Folders, Git, find, stamp
from schemactl.staged.standing import Standing, concerning


def answer() -> str | None:
    """The report of a check of the index; None: work it out."""
    try:
        folders = find(os.getcwd())
        standing = Standing.read(folders) if folders else None
        if folders is None or standing is None:
            return None
        return _answer(folders, standing)
    except (OSError, ValueError):
        # Git is missing, or something else than git answered, or something else was left.
        return None


def program() -> str:
    """What tells this installation from the next one, which may judge differently."""
    package = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__init__.py")
    found = os.stat(package)
    return f"{package} {found.st_ino} {found.st_mtime_ns}"


def refs(ref: bytes) -> tuple[bytes, bytes, bytes] | None:
    """The tip of `ref`, where HEAD left it, and the remotes' default branches; None: no history to go by."""
    asked = ("--is-shallow-repository", "HEAD..." + os.fsdecode(ref))
    told = Git("rev-parse", *asked, "--symbolic-full-name", "--glob=refs/remotes/*/HEAD").output() or b""
    # Whether the history is cut off, the tip, HEAD, with a caret where they parted, then names.
    lines = told.removesuffix(b"\n").split(b"\n")
    bases = [line[1:] for line in lines if line.startswith(b"^")]
    if lines[0] != b"false" or len(bases) != 1:
        return None
    return lines[1], bases[0], b"\n".join(lines[4:])


def _answer(folders: Folders, standing: Standing) -> str | None:
    if (standing.program, standing.prefix) != (program().encode(), os.fsencode(folders.prefix)):
        return None
    told = Git(*DIFF_INDEX, standing.base.decode()).output()
    if told is None:
        return None
    records = concerning(told, roots=standing.roots, outside=standing.outside)
    now = stamp(folders, os.fsdecode(standing.approved))
    if now != standing.stamp:
        if refs(standing.ref) != (standing.tip, standing.base, standing.defaults):
            return None
        standing.stamp = now
        standing.write(folders)
    if b"\0".join(records) != standing.records:
        if not standing.topics or (standing.notes and standing.base != standing.tip):
            return None
        from schemactl.staged.judging import judged

        return judged(standing, records, color=_is_colored())
    return (standing.colored if _is_colored() else standing.plain).decode()


def _is_colored() -> bool:
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    from schemactl.report.style import is_welcome

    return is_welcome("auto")
