"""What the complete check leaves for the next one (see `standing`), when it had nothing to remark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from schemactl import staged
from schemactl.check import CheckReport, Fork
from schemactl.declare import PROJECT_FILE, Declared
from schemactl.history import History, IndexFiles
from schemactl.history.approved import resolve
from schemactl.history.cache import derivation, location
from schemactl.history.folders import Folders, find, stamp
from schemactl.model import AVRO_PAYLOADS, Catalog, Project
from schemactl.report import render_check
from schemactl.staged.standing import Standing, TopicLine, concerning
from schemactl.target_numbers import Judged, contradictions

_TABLES: Final = "TABLE_CHANGED"
"""What is found on sight, as serious as it is unless the project says otherwise."""


class Beginning(NamedTuple):
    """Where a check of the index began: the folders of the repository, and how its refs stood before they were read."""

    folders: Folders
    stamp: bytes


def begin(directory: str, project: Project) -> Beginning | None:
    """The beginning of a check, started in `directory`; None where the next one could not be certain what it will meet."""
    folders = find(directory)
    approved = project.approved or ""
    if folders is None or os.path.basename(project.path) != PROJECT_FILE or {*approved} & {*"~^@"}:
        return None
    return Beginning(folders, stamp(folders, approved))


def keep(
    beginning: Beginning,
    *,
    project: Project,
    files: IndexFiles,
    declared: Declared,
    approved: History,
    fork: Fork,
    report: CheckReport,
    numbers: Judged,
) -> None:
    """The next check of the same index, started in the same folder, can be told on sight.

    Nothing is kept of a check that failed, or that said something beside its report.
    """
    repository = files.repository
    folders = beginning.folders
    if (
        os.path.realpath(folders.common) != str(repository.common_directory)
        or os.path.realpath(folders.top) != str(repository.top)
        or approved.tip is None
        or fork.commit is None
        or approved.notes
        or report.count("error")
        or project.waivers
        or files.unmerged
    ):
        return
    named = resolve(repository, project.approved) if project.approved else None
    standing = Standing()
    standing.program = staged.program(folders)
    standing.prefix = os.fsencode(folders.prefix)
    standing.approved = os.fsencode(project.approved or "")
    standing.ref = os.fsencode(named[0] if named else _full(approved.ref))
    standing.stamp = beginning.stamp
    standing.tip, standing.base = approved.tip.id.encode(), fork.commit.id.encode()
    standing.defaults = b"\n".join(map(os.fsencode, repository.default_branches))
    standing.roots = b"\0".join(map(os.fsencode, project.roots))
    used = {path for paths in declared.dependencies.values() for path in paths}
    # A link in place of a folder is a change as well.
    places = {place for path in numbers.places for place in (path, *_folders(path))}
    standing.numbers = b"\0".join(sorted(map(os.fsencode, places)))
    outside = {path for path in used if not _within(path, project)} | places
    standing.outside = b"\0".join(sorted(map(os.fsencode, outside)))
    told = files.against(fork.commit)
    records = concerning(told, roots=standing.roots, outside=standing.outside)
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
    # What is not approved yet may go again, and the numbers files name it.
    is_settled = not contradictions(numbers.records, Catalog(), [approved.catalog])
    standing.topics = (
        b"".join(_topics(declared, project, fork, approved.catalog))
        if is_settled and _is_plain(report, project)
        else b""
    )
    standing.tables = b"generate" if project.generate else b""
    standing.write(folders)


def _topics(declared: Declared, project: Project, fork: Fork, approved: Catalog) -> Iterator[bytes]:
    """The declared topics for `Standing.topics`; their strategy where it is the same whatever a merge makes of it."""
    # What an unchanged topic says now it said at the fork: nobody needs to read it there, nor where it is approved as it was.
    same = Catalog(fork.catalog.namespaces, declared.catalog.topics)
    settled = Catalog(approved.namespaces, declared.catalog.topics)
    for name, topic in declared.catalog.topics.items():
        schema, strategy, definition = topic.schema, "", ""
        files = declared.dependencies.get(name, frozenset())
        if schema and schema.type in AVRO_PAYLOADS and topic.reader == "latest" and not topic.renamed_from:
            began = same if name in fork.unchanged else fork.catalog
            now = settled if name in fork.settled else approved
            catalogs = (declared.catalog, began, now)
            strategies = {catalog.strategy(name, project.defaults)[0] for catalog in catalogs}
            strategy = strategies.pop().value if len(strategies) == 1 else ""
            definition = schema.source.path if schema.source and schema.source.path in files else ""
        declaration = topic.source.path if topic.source else ""
        kind = schema.type.name if schema else ""
        yield TopicLine(str(name), declaration, strategy, kind, definition, *sorted(files)).line()


def _is_plain(report: CheckReport, project: Project) -> bool:
    """Whether nothing was found but what is found on sight, too."""
    severities = (project.severities, *project.namespace_severities.values())
    return all(finding.rule == _TABLES for finding in report.findings) and not any(
        _TABLES in each for each in severities
    )


def _full(ref: str) -> str:
    """The full name of a ref that was found without a project naming it."""
    return f"refs/remotes/{ref}" if "/" in ref else f"refs/heads/{ref}"


def _folders(path: str) -> Iterator[str]:
    """The folders around a path, without the top."""
    while path := path.rpartition("/")[0]:
        yield path


def _within(path: str, project: Project) -> bool:
    return any(not root or path.startswith(root + "/") for root in project.roots)
