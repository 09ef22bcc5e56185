"""Run a whole check, from the request to the report, for the command `check`, the editor and the Python API."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from schemactl.checks import hook
from schemactl.checks.branch_commits import BranchCommits
from schemactl.checks.changed_protos import check_changed_protos
from schemactl.checks.check import check_catalog
from schemactl.checks.check_inputs import CheckInputs, read_check_inputs
from schemactl.checks.check_report import (
    CheckReport,
    EnvironmentReport,
    join_judgments,
    join_reports,
    make_undecided_finding,
)
from schemactl.checks.checked_files import CheckedFiles, CheckRequest, find_checked_files
from schemactl.checks.clients import check_project_rendering
from schemactl.checks.declarations import check_deprecations, check_names
from schemactl.checks.environments import Environment, EnvironmentView, Note, group_targets
from schemactl.checks.gate import check_drafts, check_gate, find_changed_files
from schemactl.checks.judging_files import JudgingFiles, read_approved_judging_files, read_proposed_judging_files
from schemactl.checks.project_files import (
    check_settings,
    list_declaration_paths,
    list_overlay_paths,
    list_unused_exclusions,
)
from schemactl.checks.rollout import add_upgrade_order
from schemactl.checks.schemas import UNPROTECTED
from schemactl.checks.waivers import apply_waivers
from schemactl.codegen.codecs import get_nanoseconds
from schemactl.core.catalog import Catalog
from schemactl.core.deadline import Deadline
from schemactl.core.errors import DeclarationError, Problem, SchemactlError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Project
from schemactl.core.schema import NANOSECOND_TYPES, SchemaType
from schemactl.core.wording import format_count
from schemactl.declare.files import Files, WorktreeFiles, describe_folders
from schemactl.declare.project import PROJECT_FILE
from schemactl.declare.reader import BrokenDeclaration, describe_broken, describe_outside_declarations, read
from schemactl.formats import get_parts
from schemactl.history.commit_files import CommitFiles, HashedFiles, list_differing_files
from schemactl.history.early_exit import in_ci
from schemactl.history.git import Repository
from schemactl.history.merge import LineMergedFiles
from schemactl.history.sparse_checkout import find_omitted_files
from schemactl.history.target_history import expect_agreement
from schemactl.history.versions import Progress, no_progress


def check_project(
    request: CheckRequest,
    deadline: Deadline,
    *,
    progress: Progress = no_progress,
    note: Note = lambda _: None,
    repository: Repository | None = None,
) -> CheckReport:
    """Compare the declared files with the approved history.

    If a new project file hides the approved project that covers its folder, both projects are checked. If the change moves topics to
    another project of the repository, they are checked there.

    Args:
        request: what to check.
        deadline: the time limit.
        progress: called with the number of commits read so far, and their total if it is known.
        note: called with each remark that is printed at once and is not in the report.
        repository: the open repository of the request's folder, or None to open it.

    Raises:
        DeclarationError: if the files have problems; `problems` has all of them.
        SchemactlError: if the check cannot be completed.
    """
    if repository is None:
        deadline.begin("opening the repository")
        with Repository.open(request.directory) as opened:
            return check_project(request, deadline, progress=progress, note=note, repository=opened)

    def on_commit(done: int, total: int | None) -> None:
        deadline.look()
        progress(done, total)

    read_inputs = partial(read_check_inputs, repository=repository, deadline=deadline, on_commit=on_commit, note=note)
    deadline.begin("reading the declared files")
    checked = find_checked_files(request, repository)
    report = _check_one_project(read_inputs(request, checked))
    if checked.covering_path is not None:
        deadline.begin("checking the approved project that covers this folder")
        other_request = _make_request_for(request, repository, checked.covering_path)
        other_checked = find_checked_files(other_request, repository)
        covering_report = _check_one_project(read_inputs(other_request, other_checked))
        covering_note = f"{checked.proposed_project.path} is new, and {checked.covering_path} covers its folder: both projects are checked"
        return _join_projects(covering_report, report, covering_note)
    deadline.begin("checking the topics that move to another project")
    for other_request, other_checked in _find_projects_of_moved_topics(request, repository, checked, report):
        other_report = _check_one_project(read_inputs(other_request, other_checked))
        move_note = f"topics move from {checked.proposed_project.path} to {other_checked.proposed_project.path}: they are checked there as well"
        report = _join_projects(report, other_report, move_note)
    return report


def _make_request_for(request: CheckRequest, repository: Repository, path: str) -> CheckRequest:
    """Return the same request for the project whose file is at `path`."""
    return replace(request, config=str(Path(str(repository.top), path)), target=None)


def _find_projects_of_moved_topics(
    request: CheckRequest, repository: Repository, checked: CheckedFiles, report: CheckReport
) -> Iterator[tuple[CheckRequest, CheckedFiles]]:
    """Yield the other projects among the checked files that declare topics which this one removes."""
    removed_names = {
        topic_check.topic for topic_check in report.topics if topic_check.change == "removed" and not topic_check.kind
    }
    if not removed_names:
        return
    paths = [path for path in sorted(checked.files.below("")) if posixpath.basename(path) == PROJECT_FILE]
    for path in paths:
        if path == checked.proposed_project.path:
            continue
        other_request = _make_request_for(request, repository, path)
        try:
            other_checked = find_checked_files(other_request, repository)
            topics = read(other_checked.files, other_checked.project).catalog.topics
        except SchemactlError:
            # Nothing is generated or applied from a project that cannot be read.
            continue
        moved_names = [
            name
            for name, topic in topics.items()
            if {name, *name.same_names_elsewhere, topic.renamed_from} & removed_names
        ]
        if moved_names:
            yield replace(other_request, topics=tuple(map(str, moved_names)), namespaces=()), other_checked


def _join_projects(report: CheckReport, other: CheckReport, note: str) -> CheckReport:
    """Return one report of two projects, with a note that says why both are in it."""
    return replace(
        report,
        checked=report.checked + other.checked,
        topics=(*report.topics, *other.topics),
        policies=(*report.policies, *other.policies),
        findings=(*report.findings, *other.findings),
        waived=(*report.waived, *other.waived),
        notes=tuple(dict.fromkeys([note, *report.notes, *other.notes])),
        texts={**report.texts, **other.texts},
    )


def _check_one_project(inputs: CheckInputs) -> CheckReport:
    """Return the whole report on one project: judge its change, apply the waivers, add the order of upgrades and the texts of files.

    Notes are given to `inputs.note`. A run of the hook that passes is recorded, and a commit gets only the findings of its own files. Errors are as for `check_project`.
    """
    request, checked, selected = inputs.request, inputs.checked, inputs.selected
    # Problems of the approved history on requested topics, unless the report has the same problem.
    broken_problems = {problem for broken in inputs.content.declared.broken for problem in broken.problems}
    for history_note in inputs.forked.approved_history.notes:
        is_requested = selected is None or history_note.topic is None or history_note.topic in selected
        if is_requested and history_note.problem not in broken_problems:
            inputs.note(history_note)
    waiver_file = inputs.waiver_file
    if waiver_file.problems:
        raise DeclarationError(waiver_file.problems)
    unwaived = _add_broken(inputs, _judge_change(inputs))
    if request.approved_ref and isinstance(checked.files, CommitFiles):
        unwaived = replace(unwaived, notes=(*unwaived.notes, *_note_unjudged_files(inputs, checked.files)))
    report = add_upgrade_order(
        apply_waivers(unwaived, inputs.comparison_at_merge_base, waiver_file, is_whole=inputs.is_whole)
    )
    is_run_of_hook = request.staged and inputs.is_whole and not request.config and not request.edited_contents
    if is_run_of_hook and not report.count("error") and Path.cwd() == Path(request.directory):
        hook.record_success(inputs)
    if request.staged and inputs.head and not in_ci():
        report = hook.keep_findings_of_commit(inputs, unwaived, report)
    # The texts of the files with findings, without files that cannot be read.
    texts: dict[str, str] = {}
    for path in sorted({finding.place.path for finding in (*report.waived, *report.findings) if finding.place}):
        with suppress(OSError, SchemactlError, UnicodeDecodeError):
            texts[path] = checked.files.read(path).decode("utf-8")
    return replace(report, texts=texts)


def _judge_change(inputs: CheckInputs) -> CheckReport:
    """Judge the change by the approved judging files, and also by its own if it changes them.

    Raises:
        DeclarationError: if the files contradict the history.
    """
    checked, content, forked, selected = inputs.checked, inputs.content, inputs.forked, inputs.selected
    proposed_project, judging_project = checked.proposed_project, checked.judging_project
    proposed_catalog, approved_catalog = content.declared.catalog, forked.approved_history.catalog
    problems = [
        *check_settings(checked.files, proposed_project, proposed_catalog, approved_catalog),
        *check_names(proposed_catalog, approved_catalog),
    ]
    if problems:
        raise DeclarationError(problems)
    for exclusion in list_unused_exclusions(checked.files, proposed_project, proposed_catalog, approved_catalog):
        inputs.note(exclusion)
    if selected is None and not inputs.request.staged:
        paths = checked.list_paths(inputs.repository)
        for outside in describe_outside_declarations(checked.files, proposed_project, paths):
            inputs.note(outside)
    expect_agreement(content.numbers.records, proposed_catalog, forked)
    if judging_project is None:
        own_judging_files = JudgingFiles(proposed_project, content.overlays, content.numbers.records)
        report = _judge_for_targets(inputs, own_judging_files)
        if forked.approved_history.tip is None:
            return report
        note = f"{proposed_project.path} has not been approved yet, so its own settings judge"
        return replace(report, notes=(*report.notes, note))
    approved_judging_files = read_approved_judging_files(
        inputs.repository, judging_project, checked.project, content, approved_catalog
    )
    report = _judge_for_targets(inputs, approved_judging_files)
    files_at_merge_base, files_at_tip = (
        CommitFiles(inputs.repository, commit) for commit in (forked.merge_base.tip, judging_project.tip)
    )
    records = (*approved_judging_files.numbers, *content.numbers.records)
    projects = (judging_project.project, proposed_project)
    changed = find_changed_files(projects, records, files_at_merge_base, checked.files)
    gate_findings = [*approved_judging_files.unreadable]
    if changed:
        merged_files = LineMergedFiles(
            inputs.repository, checked.files, merge_base=files_at_merge_base, tip=files_at_tip
        )
        proposed_judging_files = read_proposed_judging_files(proposed_project, merged_files, judging_project.project)
        report = join_judgments(report, _judge_for_targets(inputs, proposed_judging_files, approved_judging_files))
        gate_findings += check_gate(
            changed, approved_judging_files, proposed_judging_files, checked.files, inputs.comparison_at_merge_base
        )
        gate_findings += [
            finding
            for finding in check_project_rendering(inputs.comparison_at_merge_base, *projects)
            if inputs.readable_topics is None or finding.topic in inputs.readable_topics
        ]
    gate_findings += check_changed_protos(inputs.changed_protos, checked, proposed_catalog)
    gate_findings += check_drafts(inputs.comparison_at_merge_base)
    return replace(report, findings=(*gate_findings, *report.findings))


def _judge_for_targets(
    inputs: CheckInputs, judging_files: JudgingFiles, approved_judging_files: JudgingFiles | None = None
) -> CheckReport:
    """Judge the change by one state of the judging files, for all of its targets or for the requested one.

    Args:
        inputs: the files, and the approved history.
        judging_files: the judging files.
        approved_judging_files: the approved ones, if `judging_files` are the proposed ones.
    """
    declared, forked, selected = inputs.content.declared, inputs.forked, inputs.readable_topics
    environments = group_targets(
        judging_files, approved_judging_files, declared.catalog, forked.approved_history.catalog
    )
    target_name = inputs.request.target
    if target_name is not None:
        environments = [
            replace(environment, targets=(target_name,))
            for environment in environments
            if target_name in environment.targets
        ]
        # A target that the judging files do not have is judged without overlays.
        environments = environments or [Environment((), None, judging_files.project.release)]
    reports: list[EnvironmentReport] = []
    names: set[TopicName] = set()
    for environment in environments:
        view = environment.make_view(declared, forked, inputs.branch_changes, inputs.note)
        reports.append((environment.targets, _judge_for_environment(inputs, judging_files.project, environment, view)))
        names |= view.declared.catalog.topics.keys()
    readable_names = declared.filter_readable(names)
    report = replace(
        join_reports(reports), checked=len(readable_names if selected is None else readable_names & selected)
    )
    report = _add_samples(inputs, report)
    findings = (
        *report.findings,
        *check_deprecations(
            replace(inputs.comparison_at_merge_base, project=judging_files.project), selected, inputs.request.today
        ),
    )
    notes = [*_describe_surprises(judging_files.project, report, declared.catalog, inputs.checked.files)]
    notes += _describe_lost_nanoseconds(judging_files.project, report, declared.catalog)
    if forked.branch and forked.branch.is_updated and not forked.is_behind:
        notes.append(
            f"this branch contains a merge of {forked.approved_history.ref}: after a fast-forward, the commits of this "
            "branch would be the approved first-parent line, and versions would be numbered along them. Merge "
            "with a merge commit, a squash or a rebase"
        )
    return replace(report, findings=findings, target=target_name or "", notes=(*report.notes, *notes))


def _judge_for_environment(
    inputs: CheckInputs, project: Project, environment: Environment, view: EnvironmentView
) -> CheckReport:
    """Judge the change for the targets of one environment, by the settings of `project`."""
    forked, request = view.forked, inputs.request
    approved_history, history_by_commit = forked.approved_history, forked.history_by_commit
    selected = inputs.readable_topics
    if environment.topics is not None:
        selected = environment.topics if selected is None else environment.topics & selected
    severities = {UNPROTECTED: "warning", **project.severities} if request.strict else project.severities
    branch = None
    if history_by_commit and forked.branch:
        commits = [entry.commit for entry in forked.branch.commits]
        branch = BranchCommits(history_by_commit.catalog, commits, forked.recorded, inputs.list_waivers_in_force)
    tip = approved_history.tip
    return check_catalog(
        view.declared.catalog,
        approved_catalog=approved_history.catalog,
        project=replace(project, severities=severities, release=environment.release),
        history_label=f"{approved_history.ref} ({tip.short})" if tip else "an empty history",
        file_findings=view.declared.findings,
        selected=selected,
        branch_point=view.branch_point,
        branch=branch,
        targets=environment.targets,
        moved=inputs.moved_topics,
        protos={key: changed.schema for key, changed in inputs.changed_protos.items() if changed.schema},
    )


def _add_samples(inputs: CheckInputs, report: CheckReport) -> CheckReport:
    """Add findings for unreadable samples: the samples of changed schemas, and changed samples."""
    declared = inputs.content.declared
    files_at_merge_base = CommitFiles(inputs.repository, inputs.forked.merge_base.tip)
    changed_paths = {
        path for path in declared.samples if inputs.checked.files.entry(path) != files_at_merge_base.entry(path)
    }
    if not declared.samples or not (changed_paths or any(topic.schema for topic in report.topics)):
        return report
    from schemactl.codegen.codecs import require_codec

    require_codec()
    from schemactl.checks.samples import add_sample_findings

    return add_sample_findings(
        report, inputs.comparison_at_merge_base, declared, inputs.checked.files, changed_paths, inputs.readable_topics
    )


def _add_broken(inputs: CheckInputs, report: CheckReport) -> CheckReport:
    """Return the report with an error for each problem of the requested topics, and a note on the other broken ones.

    Raises:
        DeclarationError: if nothing else was judged.
    """
    declared = inputs.content.declared
    if not declared.broken:
        return report
    needed = declared.select_broken(inputs.selected, inputs.request.paths)
    # A topic that could not be judged has its approved declaration here, which must not be judged in its place.
    names = {finding.topic for finding in report.findings if finding.topic}
    names |= {name for entry in report.policies if isinstance(name := entry.name, TopicName)}
    names |= {entry.topic for entry in report.topics}
    readable = declared.filter_readable(names)
    topics = tuple(entry for entry in report.topics if entry.topic in readable)
    findings = [finding for finding in report.findings if finding.topic is None or finding.topic in readable]
    if needed and not (report.checked or topics or findings):
        raise DeclarationError([problem for broken in needed for problem in broken.problems])
    declarations: dict[Problem, list[BrokenDeclaration]] = {}
    for broken in needed:
        for problem in broken.problems:
            declarations.setdefault(problem, []).append(broken)
    undecided = []
    for problem, concerned in declarations.items():
        concerned_topics: list[TopicName | None] = [
            broken.name for broken in concerned if isinstance(broken.name, TopicName)
        ]
        if not concerned_topics or len({broken.path for broken in concerned}) == 1 < len(concerned):
            # It is the problem of their one file.
            concerned_topics = [None]
        undecided += [
            make_undecided_finding(problem.source, problem.message, problem.fix, topic)
            for topic in dict.fromkeys(concerned_topics)
        ]
    return replace(
        report,
        topics=topics,
        policies=tuple(
            entry for entry in report.policies if isinstance(entry.name, NamespaceName) or entry.name in readable
        ),
        findings=(*undecided, *findings),
        notes=(*report.notes, *describe_broken({*declared.broken}.difference(needed))),
    )


def _note_unjudged_files(inputs: CheckInputs, files: CommitFiles) -> Iterator[str]:
    """Yield a note if files of the working tree differ from the judged `files` of HEAD."""
    project, content, repository = inputs.checked.project, inputs.content, inputs.repository
    checked_paths = {
        project.path,
        project.waivers,
        *list_declaration_paths(content.declared),
        *content.numbers.existing_paths,
    }
    checked_paths |= list_overlay_paths(inputs.checked.proposed_project)
    worktree = WorktreeFiles(str(repository.top), folders=project.roots)
    omitted_paths = {*find_omitted_files(repository, project)}
    differing_paths = list_differing_files(files, HashedFiles(worktree, repository.object_format), checked_paths)
    paths = [path for path in differing_paths if path not in omitted_paths]
    if paths:
        names = ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")
        yield (
            f"not judged: {format_count(len(paths), 'file')} that differ{'' if len(paths) > 1 else 's'} from HEAD "
            f"({names}); commit them, or leave --base out"
        )


def _describe_surprises(project: Project, report: CheckReport, declared: Catalog, files: Files) -> Iterator[str]:
    """Yield notes about surprises: another release is predicted, or nothing is declared."""
    if project.pulsar != project.release:
        yield (
            f"{project.path} declares Pulsar {project.pulsar}; the check predicts the answers of {project.release}, "
            "the nearest supported release"
        )
    if not report.checked and not report.topics and not declared.namespaces:
        folders = describe_folders(files, project.folder)
        note = f"nothing is declared in {', '.join(root or '.' for root in project.roots)} (`roots` of {project.path})"
        yield f"{note}; {folders}" if folders else note


def _describe_lost_nanoseconds(project: Project, report: CheckReport, declared: Catalog) -> Iterator[str]:
    """Yield a note if columns of changed topics lose digits of nanoseconds and neither the topic nor the project sets `nanoseconds`."""
    types: set[SchemaType] = set()
    names = []
    for name in sorted({entry.topic for entry in report.topics} & declared.topics.keys()):
        topic = declared.topics[name]
        if topic.schema is None or get_nanoseconds(topic, project.generate):
            continue
        part_types = {part.type for part in get_parts(topic.schema.load()).values()}
        if topic_types := part_types & {*NANOSECOND_TYPES}:
            types |= topic_types
            names.append(name)
    if names:
        subject = " and ".join(type_.name for type_ in NANOSECOND_TYPES if type_ in types)
        more = f" and {format_count(len(names) - 1, 'more topic')}" if len(names) > 1 else ""
        yield (
            f"{subject}: messages have nanoseconds, and columns have microseconds, so the last three digits are cut in {names[0]}{more}; "
            f"write `generate: {{nanoseconds: bigint}}` for the topic or in {project.path} to keep them, or `truncated` to accept this"
        )
