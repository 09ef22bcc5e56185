"""Check in the hook of a commit: report only the findings that the commit causes, and record success for the next commit."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Final

from schemactl.checks.check_inputs import CheckInputs
from schemactl.checks.check_report import CheckReport
from schemactl.checks.waivers import apply_waivers
from schemactl.core.names import TopicName
from schemactl.core.wording import format_count
from schemactl.declare.project import PROJECT_FILE
from schemactl.declare.reader import in_roots
from schemactl.history import early_exit
from schemactl.history.commit_files import CommitFiles, IndexFiles

_JUDGED_AGAINST_HEAD: Final = (
    "git does not tell hooks of `--amend`, so an amended commit is compared with the commit that it replaces; to compare it with "
    "the one before: SCHEMACTL_AMEND=1 git commit --amend"
)


def keep_findings_of_commit(inputs: CheckInputs, unwaived: CheckReport, report: CheckReport) -> CheckReport:
    """Return the report without the findings of earlier commits of the branch, whose files this commit does not change.

    Args:
        inputs: the staged files, and the approved history.
        unwaived: the report with all findings, before waivers.
        report: the same report after waivers.
    """
    head, waiver_file = inputs.head, inputs.waiver_file
    keys, keys_at_head = Counter(waiver.key for waiver in waiver_file.waivers), inputs.count_waivers(head)
    changed_keys = {key for key in keys | keys_at_head if keys[key] != keys_at_head[key]}
    files, files_at_head = inputs.checked.files, CommitFiles(inputs.repository, head)
    settings_paths = inputs.list_settings_paths()

    @cache
    def is_touched(name: TopicName | None, place: str | None) -> bool:
        paths = (*settings_paths, *([place] if place else ()), *(_list_topic_files(inputs, name) if name else ()))
        return any(files_at_head.entry(path) != files.entry(path) for path in paths)

    remaining_findings = tuple(
        finding
        for finding in unwaived.findings
        if finding.key in changed_keys or is_touched(finding.topic, finding.source.path if finding.source else None)
    )
    dropped_ids = {id(finding) for finding in unwaived.findings} - {id(finding) for finding in remaining_findings}
    # Waived findings would not stop the commit.
    dropped_count = sum(id(finding) in dropped_ids for finding in report.findings)
    notes = list(unwaived.notes)
    if dropped_count:
        notes.append(
            f"left out: {format_count(dropped_count, 'finding')} of earlier commits on this branch; "
            f"`schemactl check` without --staged shows {'them' if dropped_count > 1 else 'it'}"
        )
    waiver_file = replace(waiver_file, counts_before=waiver_file.counts_before | keys_at_head)
    remaining = replace(unwaived, findings=remaining_findings, notes=tuple(notes))
    # Findings that are left out here still count for the order of upgrades.
    result = replace(
        apply_waivers(remaining, inputs.comparison_at_merge_base, waiver_file, is_whole=inputs.is_whole),
        topics=report.topics,
    )
    if result.count("error") and inputs.forked.approved_history.tip == head:
        result = replace(result, notes=(*result.notes, _JUDGED_AGAINST_HEAD))
    return result


def _list_topic_files(inputs: CheckInputs, name: TopicName) -> Iterator[str]:
    """Yield the paths of the files that declare a topic and its namespace, now or at the merge base, and of its definitions."""
    declared = inputs.content.declared
    for catalog in (declared.catalog, inputs.forked.merge_base.catalog):
        declarations = (catalog.topics.get(name), catalog.namespaces.get(name.namespace_name))
        yield from (declaration.source.path for declaration in declarations if declaration and declaration.source)
    yield from declared.dependencies.get(name, ())
    yield from (broken.path for broken in declared.broken if broken.name == name)


def record_success(inputs: CheckInputs) -> None:
    """Let the next check end early if nothing staged concerns a schema (see `early_exit`)."""
    project, files, content = inputs.checked.proposed_project, inputs.checked.files, inputs.content
    head = inputs.repository.commit("HEAD")
    is_at_top = project.path == PROJECT_FILE and str(inputs.repository.top) == os.path.realpath(".")
    if head is None or "" in project.roots or not is_at_top or not isinstance(files, IndexFiles):
        return
    definitions = chain.from_iterable(content.declared.dependencies.values())
    # Definitions outside of the roots are watched by folder, because there are fewer folders.
    outside = {posixpath.dirname(path) or path for path in definitions if not in_roots(path, project)}
    watched = {*inputs.list_settings_paths(), project.waivers, *project.roots, *outside}
    early_exit.record(head.id, watched, files.changed_paths)
