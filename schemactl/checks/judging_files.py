"""Read the judging files (project file, overlays, numbers files) that judge a change.

A change to a judging file is judged twice: under the files of the approved tip, and under its own files as the merge will leave
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from schemactl.checks.project_files import ProjectFiles
from schemactl.core.catalog import Catalog
from schemactl.core.errors import DeclarationError, Problem, Source
from schemactl.core.findings import Finding
from schemactl.core.project import Project
from schemactl.core.rules import get_builtin_rules
from schemactl.core.schema import Commit
from schemactl.declare.files import read_bytes
from schemactl.declare.numbers_file import numbers_path, read_all_numbers_files, read_numbers
from schemactl.declare.project import read_project
from schemactl.declare.reader import NO_OVERLAYS, read_overlays
from schemactl.declare.target_numbers import TargetNumbers
from schemactl.history.approved_history import JudgingProject, read_newest_revision
from schemactl.history.git import Repository
from schemactl.history.merge import LineMergedFiles


@dataclass(frozen=True, slots=True)
class JudgingFiles:
    """The judging files in one state.

    Attributes:
        project: the project whose settings judge, with the paths of the checked files.
        overlays: the overlays by target name.
        numbers: the records of the targets' numbers files.
        unreadable: findings about unreadable approved files, which older versions replace.
    """

    project: Project
    overlays: Mapping[str, Catalog]
    numbers: tuple[TargetNumbers, ...]
    unreadable: tuple[Finding, ...] = ()


def read_approved_judging_files(
    repository: Repository,
    judging_project: JudgingProject,
    project: Project,
    content: ProjectFiles,
    approved_catalog: Catalog,
) -> JudgingFiles:
    """Read the judging files of the approved tip, each in its newest readable version.

    Args:
        repository: has the approved files.
        judging_project: the approved project.
        project: the same project with the paths of the checked files.
        content: the content of the checked files. Of their overlays, only entries for names that the change adds count.
        approved_catalog: the approved topics and namespaces.
    """
    tip_project, ref, tip = judging_project.project, judging_project.ref, judging_project.tip
    unreadable: list[Finding] = []
    if judging_project.unreadable:
        unreadable.append(_report_unreadable_file(tip_project.path, ref, *judging_project.unreadable))
    overlays: dict[str, Catalog] = {}
    numbers: list[TargetNumbers] = []
    for target in tip_project.targets.values():
        read_target_overlays = partial(read_overlays, project=tip_project, target=target, may_miss=True)
        overlay_files = read_newest_revision(repository, tip, target.overlays, read_target_overlays)
        if problem := overlay_files.problem:
            unreadable.append(_report_unreadable_file(problem.source.path, ref, problem, overlay_files.commit))
        tip_overlays = overlay_files.content or NO_OVERLAYS
        new_overlays = content.overlays.get(target.name, NO_OVERLAYS)
        overlays[target.name] = _merge_overlays(tip_overlays, new_overlays, content.declared.catalog, approved_catalog)
        try:
            path = numbers_path(tip_project, target)
        except ValueError:
            # The target's name is not a valid file name, so it has no numbers file.
            continue
        read_target_numbers = partial(read_numbers, project=tip_project, target=target)
        numbers_file = read_newest_revision(repository, tip, [path], read_target_numbers)
        if problem := numbers_file.problem:
            unreadable.append(_report_unreadable_file(problem.source.path, ref, problem, numbers_file.commit))
        if numbers_file.content:
            numbers.append(numbers_file.content)
    return JudgingFiles(project, overlays, tuple(numbers), tuple(unreadable))


def _report_unreadable_file(path: str, ref: str, problem: Problem, commit: Commit) -> Finding:
    return Finding(
        rule="GATE_UNREADABLE",
        severity="warning",
        verdict="declaration",
        topic=None,
        source=Source(path),
        message=f"{path} of {ref} cannot be read: {problem}.\nThis change is checked with the version of commit {commit.short} instead.",
        fix=get_builtin_rules()["GATE_UNREADABLE"].fix,
    )


def _merge_overlays(old: Catalog, new: Catalog, proposed_catalog: Catalog, approved_catalog: Catalog) -> Catalog:
    """Return the approved overlays, with the new overlays of names that the approved history has never had.

    A renamed topic has the approved overlay of its old name, and no new overlay.
    """
    # Only the names: an approved topic is read when it is accessed. Both domains share one list of versions.
    approved_names = {*approved_catalog.topics}
    approved_ids = {name.schema_id for name in approved_names}
    approved_namespaces = {*approved_catalog.namespaces, *(name.namespace_name for name in approved_names)}
    namespaces = {name: overlay for name, overlay in new.namespaces.items() if name not in approved_namespaces}
    topics = {name: overlay for name, overlay in new.topics.items() if name.schema_id not in approved_ids}
    topics |= old.topics
    for name, topic in proposed_catalog.topics.items():
        if topic.renamed_from in approved_names and name not in approved_names:
            topics.pop(name, None)
            if topic.renamed_from and (old_overlay := old.topics.get(topic.renamed_from)):
                topics[name] = replace(old_overlay, name=name)
    return Catalog({**namespaces, **old.namespaces}, topics)


def read_proposed_judging_files(
    proposed_project: Project, merged_files: LineMergedFiles, approved_project: Project
) -> JudgingFiles:
    """Read the change's own judging files, as they will be after the merge.

    Args:
        proposed_project: the project of the checked files.
        merged_files: the files after the merge.
        approved_project: the approved project, whose roots are declared as well.

    Raises:
        DeclarationError: if the merged files cannot be read.
    """
    path, merged_project = proposed_project.path, proposed_project
    if merged_files.kind(path) == "file":
        merged_project = read_project(path, read_bytes(merged_files, path))
    overlays = {
        target.name: read_overlays(merged_files, merged_project, target) for target in merged_project.targets.values()
    }
    numbers = read_all_numbers_files(merged_files, merged_project)
    if numbers.problems:
        raise DeclarationError(numbers.problems)
    return JudgingFiles(unite_roots(merged_project, proposed_project, approved_project), overlays, numbers.records)


def unite_roots(project: Project, proposed_project: Project, approved_project: Project) -> Project:
    """Return `project` with the paths of `proposed_project`, by which its files are read, and the roots of both, so that no declaration is missing."""
    roots = {*proposed_project.roots, *approved_project.roots}
    previous_roots = {*proposed_project.previous_roots, *approved_project.previous_roots, *approved_project.roots}
    return replace(
        project,
        folder=proposed_project.folder,
        path=proposed_project.path,
        roots=tuple(sorted(root for root in roots if not any(is_below(root, other) for other in roots - {root}))),
        previous_roots=tuple(sorted(previous_roots - {*proposed_project.roots})),
        approved=approved_project.approved,
        adopted=approved_project.adopted,
        include=proposed_project.include,
        waivers=proposed_project.waivers,
    )


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it; the folder "" is the top of the repository."""
    return not folder or path == folder or path.startswith(f"{folder}/")
