"""What the complete check leaves for the next one (see `standing`), when it had nothing to remark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from schemactl import staged
from schemactl.check import CheckReport
from schemactl.declare import PROJECT_FILE, Declared
from schemactl.history import History, IndexFiles, Repository
from schemactl.history.cache import derivation, location
from schemactl.model import Project, SchemaType
from schemactl.report import render_check
from schemactl.staged.git import DIFF_INDEX, Git, find, stamp
from schemactl.staged.standing import Standing, concerning, topic_line

_TYPES: Final = (SchemaType.AVRO, SchemaType.JSON)
"""What is judged on sight."""


def keep(
    repository: Repository,
    directory: str,
    *,
    project: Project,
    files: IndexFiles,
    declared: Declared,
    approved: History,
    base: History,
    report: CheckReport,
) -> None:
    """The next check of the same index, started in the same `directory`, can be told on sight.

    Nothing is kept of a check that failed, nor where it cannot be certain what the next one will meet.
    """
    folders = find(directory)
    if (
        folders is None
        or os.path.realpath(folders.common) != str(repository.common_directory)
        or os.path.basename(project.path) != PROJECT_FILE
        or approved.tip is None
        or base.tip is None
        or approved.notes
        or report.count("error")
        or project.waivers
        or "@{" in (project.approved or "")
    ):
        return
    standing = Standing()
    standing.program = staged.program().encode()
    standing.prefix = os.fsencode(folders.prefix)
    standing.approved = os.fsencode(project.approved or "")
    standing.ref = os.fsencode(project.approved or _full(approved.ref))
    standing.stamp = stamp(folders, project.approved or "")
    refs = staged.refs(standing.ref)
    if refs is None or refs[:2] != (approved.tip.id.encode(), base.tip.id.encode()):
        return
    standing.tip, standing.base, standing.defaults = refs
    standing.roots = b"\0".join(map(os.fsencode, project.roots))
    used = {path for paths in declared.dependencies.values() for path in paths}
    standing.outside = b"\0".join(sorted(os.fsencode(path) for path in used if not _within(path, project)))
    told = Git(*DIFF_INDEX, standing.base.decode()).output()
    if told is None:
        return
    records = concerning(told, roots=standing.roots, outside=standing.outside)
    if not _agree(records, files):
        return
    standing.records = b"\0".join(records)
    standing.plain = render_check(report, "text").encode()
    standing.colored = render_check(report, "text", color=True).encode()
    standing.release = report.release.encode()
    standing.label = report.base.encode()
    standing.checked = str(report.checked).encode()
    standing.notes = "\n".join(report.notes).encode()
    standing.history = os.fsencode(location(repository.common_directory, project.path))
    standing.derivation = derivation(
        roots=project.roots,
        previous_roots=project.previous_roots,
        path=project.path,
        waivers=project.waivers,
    ).encode()
    standing.topics = b"" if report.findings else b"".join(_topics(declared, project))
    standing.write(folders)


def _topics(declared: Declared, project: Project) -> Iterator[bytes]:
    for name, topic in declared.catalog.topics.items():
        paths = [*sorted(declared.dependencies.get(name, ()))]
        declaration = topic.source.path if topic.source else ""
        fields = [str(name), declaration, "", *paths]
        if (
            topic.schema
            and topic.schema.type in _TYPES
            and topic.reader == "latest"
            and not topic.renamed_from
        ):
            fields[2] = declared.catalog.strategy(name, project.defaults)[0].value
        yield topic_line(*map(os.fsencode, fields)) if all(map(str.isprintable, fields)) else b""


def _full(ref: str) -> str:
    """The full name of a ref that was found without a project naming it."""
    return f"refs/remotes/{ref}" if "/" in ref else f"refs/heads/{ref}"


def _within(path: str, project: Project) -> bool:
    return any(not root or path.startswith(root + "/") for root in project.roots)


def _agree(records: list[bytes], files: IndexFiles) -> bool:
    """Whether the index is still as it was when it was read."""
    for facts, path in zip(records[::2], records[1::2], strict=True):
        _, after, _, blob, _ = facts.decode().split(" ")
        found = files.entries.get(os.fsdecode(path))
        if (found.blob if found else None) != (None if after == "000000" else blob):
            return False
    return True
