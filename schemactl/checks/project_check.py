"""Run a whole check, from the request to the report, for the command `check` and the Python API."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cache, cached_property, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from schemactl.core.errors import DeclarationError, HistoryError, SchemactlError, UsageError
from schemactl.core.names import NamespaceName, TopicName, select_known_topics
from schemactl.core.schema import NANOSECOND_TYPES, SchemaType
from schemactl.history.early_exit import in_ci

if TYPE_CHECKING:
    from schemactl.checks.check import Fork
    from schemactl.checks.check_report import CheckReport
    from schemactl.checks.environments import CheckCache, Environment, Judge, ProjectFiles
    from schemactl.checks.proposal import KindKey, MovedTopic, Run
    from schemactl.checks.waivers import WaiverKey
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.deadline import Deadline
    from schemactl.core.errors import Problem
    from schemactl.core.findings import Finding, Waiver, WaiversAt
    from schemactl.core.project import Project
    from schemactl.core.schema import Commit, SchemaInfo
    from schemactl.declare.document import SchemaDeclaration
    from schemactl.declare.files import Files
    from schemactl.declare.reader import BrokenDeclaration, Declared
    from schemactl.history import ApprovedProject, CommitFiles, Forked, HashedFiles, History, Repository
    from schemactl.history.approved_history import JudgingProject
    from schemactl.history.merge import LocalChanges


_JUDGED_AGAINST_HEAD: Final = (
    "git does not tell hooks of `--amend`, so an amended commit is compared with the commit that it replaces; to compare it with "
    "the one before: SCHEMACTL_AMEND=1 git commit --amend"
)


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The files to check, and the approved ref to check them against.

    Attributes:
        directory: absolute path of a folder of the project.
        config: path of the project file, or None for the nearest schemactl.yaml upwards from `directory`.
        staged: whether to check the index instead of the working tree.
        approved_ref: the approved ref against which to check HEAD, or None to check the working tree against the project's ref.
        amend: whether the commit replaces HEAD (with `staged`).
        topics: patterns of the topics to check, as `--topic` takes them; empty for all topics.
        namespaces: patterns of the namespaces to check; empty for all namespaces.
        paths: files and folders of the repository, whose topics are checked; empty for all topics.
        strict: whether warnings fail; then readers are also judged where the strategy does not protect them.
        today: the day in UTC on which waivers expire and deprecated topics are overdue.
        target: the target whose release and recorded version numbers judge, or None for all targets.
        edited_contents: other contents of files, by path from the repository's top, as if they were written already.
        check_cache: the files and declarations of the previous check in this process, or None for a single check.
        requires_base: whether CI has to name `approved_ref` where HEAD would be judged against itself.
    """

    directory: str
    config: str | None = None
    staged: bool = False
    approved_ref: str | None = None
    amend: bool = False
    topics: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    strict: bool = False
    today: date = field(default_factory=lambda: datetime.now(UTC).date())
    target: str | None = None
    edited_contents: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    check_cache: CheckCache | None = field(default=None, hash=False, compare=False)
    requires_base: bool = True


def check_project(
    request: CheckRequest,
    deadline: Deadline,
    *,
    progress: Callable[[int, int | None], None] = lambda *_: None,
    note: Callable[[object], None] = lambda _: None,
    repository: Repository | None = None,
) -> CheckReport:
    """Compare the declared files with the approved history.

    If a new project file hides the approved project that covers its folder, both projects are checked. If the change moves topics to
    another project of the repository, they are checked there.

    Args:
        request: what to check.
        deadline: the time limit.
        progress: called with the number of commits read so far, and their total if it is known.
        note: called for parts of the approved history that cannot be read.
        repository: the open repository of the request's folder, or None to open it.

    Raises:
        DeclarationError: if the files have problems; `problems` has all of them.
        SchemactlError: if the check cannot be completed.
    """
    from schemactl import history

    if repository is None:
        deadline.begin("opening the repository")
        with history.Repository.open(request.directory) as opened:
            return check_project(request, deadline, progress=progress, note=note, repository=opened)

    def on_commit(done: int, total: int | None) -> None:
        deadline.look()
        progress(done, total)

    deadline.begin("reading the declared files")
    checked = find_checked_files(request, repository)
    report = _check_files(request, repository, checked, deadline, on_commit, note)
    if checked.covering is not None:
        deadline.begin("checking the approved project that covers this folder")
        other_request = _make_request_for(request, repository, checked.covering)
        other = find_checked_files(other_request, repository)
        covering_report = _check_files(other_request, repository, other, deadline, on_commit, note)
        both = f"{checked.proposed.path} is new, and {checked.covering} covers its folder: both projects are checked"
        return _join_projects(covering_report, report, both)
    deadline.begin("checking the topics that move to another project")
    for other_request, other in _find_new_homes(request, repository, checked, report):
        other_report = _check_files(other_request, repository, other, deadline, on_commit, note)
        moves = f"topics move from {checked.proposed.path} to {other.proposed.path}: they are checked there as well"
        report = _join_projects(report, other_report, moves)
    return report


def _make_request_for(request: CheckRequest, repository: Repository, path: str) -> CheckRequest:
    """Return the same request for the project whose file is at `path`."""
    return replace(request, config=str(Path(str(repository.top), path)), target=None)


def _find_new_homes(
    request: CheckRequest, repository: Repository, checked: CheckedFiles, report: CheckReport
) -> Iterator[tuple[CheckRequest, CheckedFiles]]:
    """Yield the other projects among the checked files that declare topics which this one removes."""
    from schemactl.declare.project import PROJECT_FILE
    from schemactl.declare.reader import read

    removed = {
        topic_check.topic for topic_check in report.topics if topic_check.change == "removed" and not topic_check.kind
    }
    if not removed:
        return
    paths = [path for path in sorted(checked.files.below("")) if posixpath.basename(path) == PROJECT_FILE]
    for path in paths:
        if path == checked.proposed.path:
            continue
        other_request = _make_request_for(request, repository, path)
        try:
            other = find_checked_files(other_request, repository)
            topics = read(other.files, other.project).catalog.topics
        except SchemactlError:
            # Nothing is generated or applied from a project that cannot be read.
            continue
        moved = [
            name for name, topic in topics.items() if {name, *name.same_names_elsewhere, topic.renamed_from} & removed
        ]
        if moved:
            yield replace(other_request, topics=tuple(map(str, moved)), namespaces=()), other


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


def _check_files(
    request: CheckRequest,
    repository: Repository,
    checked: CheckedFiles,
    deadline: Deadline,
    on_commit: Callable[[int, int | None], None],
    note: Callable[[object], None],
) -> CheckReport:
    """Check the files of one project; see `check_project` for the arguments."""
    from schemactl import history
    from schemactl.checks.environments import read_files
    from schemactl.checks.rollout import add_upgrade_order
    from schemactl.checks.waivers import WaiverFile, apply_waivers
    from schemactl.declare import project as declare_project

    proposed, project, files, approved, _ = checked
    if request.target is not None:
        declare_project.choose_target(proposed, request.target, f"--target {request.target}")
    # An interrupted run saves the part of the history that it has read, so the history comes first. Problems of the files have priority.
    deadline.begin("reading the approved history")
    history_problem: SchemactlError | None = None
    try:
        head = repository.commit("HEAD^" if request.amend else "HEAD")
        forked = history.read_forked(
            repository,
            project,
            head,
            request.approved_ref or _find_amended_base(request, repository, project),
            by_commit=bool(request.approved_ref),
            progress=on_commit,
        )
    except SchemactlError as error:
        history_problem = error
    deadline.begin("reading the declared files")
    content = read_files(
        repository,
        replace(project, targets=proposed.targets),
        files,
        allow_broken=True,
        check_cache=request.check_cache,
    )
    if history_problem is not None:
        raise history_problem
    if approved and approved.project.adopted != proposed.adopted:
        _require_same_numbers(repository, project, proposed, files, approved)

    deadline.begin("comparing declarations with the approved history")
    declared, forked = _leave_out_undecided(content.declared, forked)
    content = replace(content, declared=keep_broken_as_approved(declared, forked.merge_base))
    check = _Check(request, repository, proposed, project, files, content, forked, approved, note)
    check.note_unreadable_history()
    tips = {forked.merge_base.tip, forked.approved.tip} if content.waivers else set()
    known_keys: Counter[WaiverKey] = reduce(or_, map(check.count_waivers, tips), Counter())
    approved_waivers = frozenset(
        waiver for tip in tips if tip for waiver in history.waivers_at(repository, project, tip)
    )
    waiver_file = WaiverFile(content.waivers, known_keys, request.today, approved_waivers)
    if waiver_file.problems:
        raise DeclarationError(waiver_file.problems)

    # The waivers of a commit in the middle of the branch decide about the version that it adds.
    @cache
    def list_waivers_in_force(commit: Commit) -> tuple[Waiver, ...]:
        return replace(waiver_file, waivers=history.waivers_at(repository, project, commit)).in_force

    unwaived = check.add_broken(check.make_report(list_waivers_in_force))
    if request.approved_ref and isinstance(files, history.CommitFiles):
        unwaived = replace(unwaived, notes=(*unwaived.notes, *check.note_unjudged_files(files)))
    is_whole = not (request.topics or request.namespaces or request.paths or request.target or content.declared.broken)
    report = add_upgrade_order(apply_waivers(unwaived, check.run, waiver_file, is_whole=is_whole))

    is_recorded = request.staged and is_whole and not request.config and not request.edited_contents
    if is_recorded and not report.count("error") and Path.cwd() == Path(request.directory):
        check.record_success()

    # The hook of a commit reports only the findings that this commit causes.
    if request.staged and head and not in_ci():
        keys, keys_at_head = Counter(waiver.key for waiver in content.waivers), check.count_waivers(head)
        changed_keys = {key for key in keys | keys_at_head if keys[key] != keys_at_head[key]}
        unwaived = check.drop_earlier_findings(unwaived, report, head, changed_keys)
        waiver_file = replace(waiver_file, counts_before=waiver_file.counts_before | keys_at_head)
        # Findings that are left out here still count for the order.
        report = replace(apply_waivers(unwaived, check.run, waiver_file, is_whole=is_whole), topics=report.topics)
        if report.count("error") and forked.approved.tip == head:
            report = replace(report, notes=(*report.notes, _JUDGED_AGAINST_HEAD))
    # The texts of the files with findings, without files that cannot be read.
    texts: dict[str, str] = {}
    for path in sorted({finding.place.path for finding in (*report.waived, *report.findings) if finding.place}):
        with suppress(OSError, SchemactlError, UnicodeDecodeError):
            texts[path] = files.read(path).decode("utf-8")
    return replace(report, texts=texts)


def _require_same_numbers(
    repository: Repository, project: Project, proposed: Project, files: Files, approved: JudgingProject
) -> None:
    """Check that the proposed `adopted` changes no number of an approved version.

    Raises:
        DeclarationError: if it changes numbers.
        HistoryError: if it does not name a commit of the approved line.
    """
    from schemactl.core.errors import Problem, join_first
    from schemactl.declare.project import place_in_project
    from schemactl.history.versions import Derivation

    renumbered = Derivation(repository, project).find_renumbered(approved.tip, proposed.adopted)
    if renumbered:
        place = place_in_project(files, proposed, ("adopted",))
        message = f"`adopted` would change the numbers of approved versions: {join_first(renumbered, 3)}"
        value = approved.project.adopted
        fix = (
            f"write {value}, as approved" if value else "remove it: it takes effect only before the project is approved"
        )
        raise DeclarationError([Problem(place, message, fix)])


def _leave_out_undecided(declared: Declared, forked: Forked) -> tuple[Declared, Forked]:
    """Make the topics whose version numbers depend on the installed protoc broken, and leave them out of the history."""
    from schemactl.core.catalog import filter_catalog
    from schemactl.core.errors import Problem, Source
    from schemactl.declare.reader import BrokenDeclaration

    undecided = forked.approved.undecided
    if not undecided:
        return declared, forked

    def is_kept(name: NamespaceName | TopicName) -> bool:
        return isinstance(name, NamespaceName) or name.schema_id not in undecided

    broken = []
    for name, topic in {**forked.approved.catalog.topics, **declared.catalog.topics}.items():
        if not is_kept(name):
            error, source = undecided[name.schema_id], topic.source or Source(forked.approved.ref)
            broken.append(BrokenDeclaration(name, source.path, (Problem(source, error.message, error.fix),)))
    approved = forked.approved.with_catalog(filter_catalog(forked.approved.catalog, is_kept))
    merge_base = approved
    if forked.merge_base is not forked.approved:
        merge_base = forked.merge_base.with_catalog(filter_catalog(forked.merge_base.catalog, is_kept))
    history_by_commit = forked.history_by_commit and forked.history_by_commit.with_catalog(
        filter_catalog(forked.history_by_commit.catalog, is_kept)
    )
    declared = replace(declared, catalog=filter_catalog(declared.catalog, is_kept), broken=(*declared.broken, *broken))
    return declared, forked._replace(approved=approved, merge_base=merge_base, history_by_commit=history_by_commit)


def keep_broken_as_approved(declared: Declared, base: History) -> Declared:
    """Return the declarations with the broken ones as they were approved, so that they do not look removed.

    Args:
        declared: the declarations; a file with problems also declares what it declared at the merge base.
        base: the approved history at the merge base.
    """
    from schemactl.declare.reader import BrokenDeclaration

    if not declared.broken:
        return declared
    names: set[TopicName | NamespaceName | None] = {broken.name for broken in declared.broken}
    known_names = {*names, *declared.catalog.topics, *declared.catalog.namespaces}
    broken_before = [
        BrokenDeclaration(name, broken.path, broken.problems)
        for broken in {broken.path: broken for broken in declared.broken}.values()
        for name in base.list_declared(broken.path)
        if name not in known_names
    ]
    names.update(broken.name for broken in broken_before)
    catalog, base_catalog = declared.catalog, base.catalog
    namespaces = {name: entry for name, entry in base_catalog.namespaces.items() if name in names}
    topics = {
        name: replace(topic, versions=())
        for name, topic in base_catalog.topics.items()
        if name in names and not topic.deleted
    }
    catalog = replace(catalog, namespaces={**catalog.namespaces, **namespaces}, topics={**catalog.topics, **topics})
    return replace(declared, catalog=catalog, broken=(*declared.broken, *broken_before))


def _find_amended_base(request: CheckRequest, repository: Repository, project: Project) -> str | None:
    """Return the parent of HEAD if an amended commit replaces the tip of the approved ref; else None."""
    from schemactl.history.approved_history import approved

    head = repository.commit("HEAD")
    if not request.amend or head is None or approved(repository, project)[1] != head:
        return None
    if repository.commit("HEAD^") is None:
        raise SchemactlError(
            "the amended commit is the first commit, so it has no parent to compare with",
            fix="git commit --amend --no-verify",
        )
    return "HEAD^"


@dataclass(frozen=True)
class _Check:
    """One check, with all files and the approved history read.

    Attributes:
        request: the request.
        repository: the open repository.
        proposed: the project of the checked files.
        project: the same project under the approved settings, which judge the change.
        files: the index, HEAD, or the working tree.
        content: the content of the files.
        forked: the approved history, also at the merge base.
        approved: the approved project, or None if nothing has been approved yet.
        note: called for parts of the approved history that cannot be read.
    """

    request: CheckRequest
    repository: Repository
    proposed: Project
    project: Project
    files: CommitFiles | HashedFiles
    content: ProjectFiles
    forked: Forked
    approved: JudgingProject | None
    note: Callable[[object], None]

    def make_report(self, waivers: WaiversAt) -> CheckReport:
        """Judge the change by the approved judging files, and also by its own if it changes them.

        Args:
            waivers: returns the waivers in force in the tree of a commit.

        Raises:
            DeclarationError: if the files contradict the history.
        """
        from schemactl.checks.check_report import join_judgments
        from schemactl.checks.clients import check_project_rendering
        from schemactl.checks.declarations import check_names
        from schemactl.checks.environments import check_settings, list_unused_exclusions
        from schemactl.checks.judging_files import (
            check_drafts,
            check_gate,
            find_changed_files,
            read_approved_judge,
            read_proposed_judge,
        )
        from schemactl.declare.reader import describe_outside_declarations
        from schemactl.history import CommitFiles
        from schemactl.history.merge import FilesAfterMerge
        from schemactl.history.target_history import expect_agreement

        content, forked = self.content, self.forked
        declared, history = content.declared.catalog, forked.approved.catalog
        if problems := [*check_settings(self.files, self.proposed, declared, history), *check_names(declared, history)]:
            raise DeclarationError(problems)
        for exclusion in list_unused_exclusions(self.files, self.proposed, declared, history):
            self.note(exclusion)
        if self._selected is None and not self.request.staged:
            for outside in describe_outside_declarations(self.files, self.proposed, self._list_paths()):
                self.note(outside)
        expect_agreement(content.numbers.records, declared, forked)
        selected = self._selected
        if selected is not None:
            selected = content.declared.filter_readable(selected)
        if self.approved is None:
            judge = read_proposed_judge(self.proposed, content)
            report = self._judge_by(judge, None, selected, waivers)
            if forked.approved.tip is None:
                return report
            note = f"{self.proposed.path} has not been approved yet, so its own settings judge"
            return replace(report, notes=(*report.notes, note))
        judge = read_approved_judge(self.repository, self.approved, self.project, content, history)
        report = self._judge_by(judge, None, selected, waivers)
        files_at_base, files_at_tip = (
            CommitFiles(self.repository, commit) for commit in (forked.merge_base.tip, self.approved.tip)
        )
        records = (*judge.numbers, *content.numbers.records)
        changed = find_changed_files((self.approved.project, self.proposed), records, files_at_base, self.files)
        gate_findings = [*judge.unreadable]
        if changed:
            merged_files = FilesAfterMerge(self.repository, self.files, base=files_at_base, tip=files_at_tip)
            proposed = read_proposed_judge(self.proposed, content, merged_files, self.approved.project)
            report = join_judgments(report, self._judge_by(proposed, judge, selected, waivers))
            gate_findings += check_gate(changed, judge, proposed, files_at_base, self.files, self.run)
            gate_findings += [
                finding
                for finding in check_project_rendering(self.run, self.approved.project, self.proposed)
                if selected is None or finding.topic in selected
            ]
        gate_findings += [*self._check_changed_protos(), *check_drafts(self.run)]
        return replace(report, findings=(*gate_findings, *report.findings))

    def _list_paths(self) -> Iterable[str]:
        """List the paths of the checked state, without ignored files of the working tree."""
        from schemactl.history import CommitFiles

        if isinstance(self.files, CommitFiles):
            return self.files.below(self.proposed.folder)
        listed = self.repository.run(
            *("-C", str(self.repository.top), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        )
        return [path.decode("utf-8", "surrogateescape") for path in listed.split(b"\0")[:-1]]

    def _judge_by(
        self, judge: Judge, approved: Judge | None, selected: frozenset[TopicName] | None, waivers: WaiversAt
    ) -> CheckReport:
        """Report on the change by one judge, for all of its targets or for the requested one.

        Args:
            judge: the judge.
            approved: the approved judge, if `judge` is the proposed one.
            selected: the topics to check, or None for all topics.
            waivers: returns the waivers in force in the tree of a commit.
        """
        from schemactl.checks.check_report import join_reports
        from schemactl.checks.environments import Environment, group_targets

        content, forked, target_name = self.content, self.forked, self.request.target
        environments = group_targets(judge, approved, content.declared.catalog, forked.approved.catalog)
        if target_name is not None:
            environments = [
                replace(environment, targets=(target_name,))
                for environment in environments
                if target_name in environment.targets
            ]
            # A target that the judge does not know is judged without overlays.
            environments = environments or [Environment((), None, judge.project.release)]
        views = [
            (environment, environment.make_view(content.declared, forked, self.branch_changes, self.note))
            for environment in environments
        ]
        report = join_reports([self._check_environment(judge.project, *view, selected, waivers) for view in views])
        names = self.content.declared.filter_readable(
            {name for _, (declared, *_) in views for name in declared.catalog.topics}
        )
        report = replace(report, checked=len(names if selected is None else names & selected))
        return self._add_deprecations(self._add_samples(report, selected), judge.project, selected)

    @cached_property
    def _selected(self) -> frozenset[TopicName] | None:
        """The topics that --topic, --namespace and the paths select, or None if all topics are checked."""
        from schemactl.declare.reader import describe_unused_paths

        topics, namespaces, paths = self.request.topics, self.request.namespaces, self.request.paths
        if not topics and not namespaces and not paths:
            return None
        declared, approved = self.content.declared, self.forked.approved
        names = {*declared.catalog.topics, *declared.broken_topics, *approved.catalog.topics}
        selected = select_known_topics(names, topics, namespaces, where="the declared files and the approved history")
        if not paths or self.proposed.path in paths:
            return selected
        # A removed file still names the topics that it declared.
        selected &= declared.find_topics_at(paths) | approved.find_topics_at(paths)
        for path_note in describe_unused_paths(declared, paths, selected):
            self.note(path_note)
        return selected

    def note_unreadable_history(self) -> None:
        """Note the problems of the approved history on requested topics, unless the report has the same problem."""
        problems = {problem for broken in self.content.declared.broken for problem in broken.problems}
        selected = self._selected
        for history_note in self.forked.approved.notes:
            is_requested = selected is None or history_note.topic is None or history_note.topic in selected
            if is_requested and history_note.problem not in problems:
                self.note(history_note)

    def add_broken(self, report: CheckReport) -> CheckReport:
        """Return the report with an error for each problem of the requested topics, and a note on the other broken ones.

        Raises:
            DeclarationError: if nothing else was judged.
        """
        from schemactl.checks.check_report import make_undecided_finding
        from schemactl.declare.reader import describe_broken

        declared = self.content.declared
        if not declared.broken:
            return report
        needed = declared.select_broken(self._selected, self.request.paths)
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

    def _check_environment(
        self,
        project: Project,
        environment: Environment,
        view: tuple[Declared, Forked, Fork],
        selected: frozenset[TopicName] | None,
        waivers: WaiversAt,
    ) -> tuple[tuple[str, ...], CheckReport]:
        """Compare the declarations with the approved history; `view` has both as the environment has them."""
        from schemactl.checks.branch_commits import BranchCommits
        from schemactl.checks.check import check
        from schemactl.checks.schemas import UNPROTECTED

        declared, forked, fork = view
        approved, _, history_by_commit, branch, *_ = forked
        severities = project.severities
        if self.request.strict:
            severities = {UNPROTECTED: "warning", **severities}
        if environment.topics is not None:
            selected = environment.topics if selected is None else environment.topics & selected
        report = check(
            declared.catalog,
            approved=approved.catalog,
            project=replace(project, severities=severities, release=environment.release),
            history_label=f"{approved.ref} ({approved.tip.short})" if approved.tip else "an empty history",
            file_findings=declared.findings,
            selected=selected,
            fork=fork,
            branch=BranchCommits(
                history_by_commit.catalog, [entry.commit for entry in branch.commits], forked.recorded, waivers
            )
            if history_by_commit and branch
            else None,
            targets=environment.targets,
            moved=self.moved_topics,
            protos=self.protos,
        )
        return environment.targets, report

    def _add_samples(self, report: CheckReport, selected: frozenset[TopicName] | None) -> CheckReport:
        """Add findings for unreadable samples: the samples of changed schemas, and changed samples."""
        from schemactl.history import CommitFiles

        declared = self.content.declared
        files_at_base = CommitFiles(self.repository, self.forked.merge_base.tip)
        changed_paths = {path for path in declared.samples if self.files.entry(path) != files_at_base.entry(path)}
        if not declared.samples or not (changed_paths or any(topic.schema for topic in report.topics)):
            return report
        from schemactl.codegen.topics import require_codec

        require_codec()
        from schemactl.checks.samples import add_sample_findings

        return add_sample_findings(report, self.run, declared, self.files, changed_paths, selected)

    def _add_deprecations(
        self, report: CheckReport, project: Project, selected: frozenset[TopicName] | None
    ) -> CheckReport:
        """Add the findings about deprecation, which do not depend on a target, and notes about the branch."""
        from schemactl.checks.declarations import check_deprecations

        forked = self.forked
        findings = (
            *report.findings,
            *check_deprecations(replace(self.run, project=project), selected, self.request.today),
        )
        notes = [*_describe_surprises(project, report, self.content.declared.catalog, self.files)]
        notes += _describe_lost_nanoseconds(project, report, self.content.declared.catalog)
        if forked.branch and forked.branch.is_updated and forked.merge_base is forked.approved:
            notes.append(
                f"this branch contains a merge of {forked.approved.ref}: after a fast-forward, the commits of this "
                "branch would be the approved first-parent line, and versions would be numbered along them. Merge "
                "with a merge commit, a squash or a rebase"
            )
        target = self.request.target or ""
        return replace(report, findings=findings, target=target, notes=(*report.notes, *notes))

    @property
    def run(self) -> Run:
        """The comparison of the declarations with the approved history at the merge base."""
        from schemactl.checks.proposal import Run

        return Run(self.content.declared.catalog, self.forked.merge_base.catalog, self.project, moved=self.moved_topics)

    @cached_property
    def branch_changes(self) -> LocalChanges:
        """The changes of the files since the merge base."""
        return self.forked.compare_with_base(self.files, self.content.declared)

    @cached_property
    def moved_topics(self) -> Mapping[TopicName, MovedTopic]:
        """The new topics that another approved project of the repository has; they are compared like renamed topics."""
        from schemactl import history
        from schemactl.checks.proposal import MovedTopic
        from schemactl.history.approved_history import read_other_projects

        tip, approved_names = self.forked.approved.tip, {*self.forked.approved.catalog.topics}
        old_names = {
            name: [topic.renamed_from] if topic.renamed_from else [name, *name.same_names_elsewhere]
            for name, topic in self.content.declared.catalog.topics.items()
            if not {name, *name.same_names_elsewhere, topic.renamed_from} & approved_names
        }
        moved: dict[TopicName, MovedTopic] = {}
        if not old_names or tip is None:
            return moved
        for project in read_other_projects(self.repository, self.project, tip):
            catalog = history.read(self.repository, project, tip.id).catalog
            for name, candidates in old_names.items():
                old_topic = next((topic for candidate in candidates if (topic := catalog.topics.get(candidate))), None)
                if old_topic and old_topic.versions:
                    strategy, _ = catalog.strategy(old_topic.name, project.defaults)
                    moved[name] = MovedTopic(old_topic.load(), strategy, project)
        return moved

    @cached_property
    def protos(self) -> Mapping[KindKey, SchemaInfo]:
        """The schemas of topics that replace or remove `proto:`, with the current content of the approved `.proto`."""
        from schemactl.declare.definition import Definitions, Include

        definitions = Definitions(self.files, include=Include.of(self.proposed))
        protos: dict[KindKey, SchemaInfo] = {}
        for key, (schema, approved) in self._changed_protos.items():
            schema_with_proto = definitions.read(approved).info
            if schema_with_proto and schema_with_proto.proto:
                protos[key] = replace(schema.load(), proto=schema_with_proto.proto)
        return protos

    @cached_property
    def _changed_protos(self) -> Mapping[KindKey, tuple[SchemaInfo, SchemaDeclaration]]:
        """The PROTOBUF topics and kinds that replace or remove `proto:`, with the new schema and the approved declaration."""
        from schemactl.checks.kinds import find_approved_kind

        changed: dict[KindKey, tuple[SchemaInfo, SchemaDeclaration]] = {}
        unchanged = self.branch_changes.unchanged
        for name, topic in self.content.declared.catalog.topics.items():
            for part in topic.split():
                if part.schema is None or part.schema.type is not SchemaType.PROTOBUF or name in unchanged:
                    continue
                approved_topic = self.forked.approved.catalog.topics.get(name)
                approved_kind = find_approved_kind(approved_topic, part) if approved_topic else None
                approved_key = approved_kind.key if approved_kind else ""
                approved = self.forked.approved.declaration(name, approved_key)
                declaration = _read_declaration(self.files, part)
                is_changed = declaration is None or (approved and _get_proto(declaration) != _get_proto(approved))
                if approved and approved.proto and is_changed:
                    changed[name, part.kind] = (part.schema, approved)
        return changed

    def _check_changed_protos(self) -> Iterator[Finding]:
        """Yield a warning for each topic that replaces or removes `proto:`, because the file judges its messages."""
        from schemactl.core.findings import Finding
        from schemactl.core.rules import get_builtin_rules

        for (name, kind), (_, approved) in self._changed_protos.items():
            whole = self.content.declared.catalog.topics[name]
            topic = next(part for part in whole.split() if part.kind == kind)
            declaration = _read_declaration(self.files, topic)
            path, message = _get_proto(approved)
            if declaration is None or declaration.proto is None:
                effect = f"{name} no longer declares `proto:`, so its messages are no longer checked"
            else:
                effect = f"{name} declares `proto: {declaration.proto}` and `message: {declaration.message}`"
            judged = (
                "This change is also checked against that message"
                if (name, kind) in self.protos
                else "The file no longer exists, so its messages are not compared"
            )
            yield Finding(
                rule="GATE_CHANGED",
                severity="warning",
                verdict="declaration",
                topic=name,
                source=topic.locate("/schema/proto"),
                kind=kind,
                message=f"{name} was approved with messages of type {message} from {path}. {judged}.\nAfter the merge: {effect}.",
                fix=get_builtin_rules()["GATE_CHANGED"].fix,
            )

    def count_waivers(self, commit: Commit | None) -> Counter[WaiverKey]:
        """Count the waivers in the tree of a commit by their keys."""
        from schemactl.history import waivers_at

        waivers = waivers_at(self.repository, self.project, commit) if commit else ()
        return Counter(waiver.key for waiver in waivers)

    def drop_earlier_findings(
        self, unwaived: CheckReport, report: CheckReport, head: Commit, changed_keys: Collection[WaiverKey]
    ) -> CheckReport:
        """Drop the findings of earlier commits of the branch: their files are the same in `head`.

        Args:
            unwaived: the report without waivers, which is filtered.
            report: the same report with waivers; dropped findings are counted in it.
            head: the commit before the staged changes.
            changed_keys: the keys of the waivers that the commit changes; their findings stay.
        """
        from schemactl.checks.environments import list_overlay_paths
        from schemactl.core.wording import format_count
        from schemactl.history import CommitFiles

        declared, files_at_head = self.content.declared, CommitFiles(self.repository, head)
        settings = {self.project.path, *list_overlay_paths(self.proposed), *self.content.numbers.places}

        def list_files(name: TopicName) -> Iterator[str]:
            for catalog in (declared.catalog, self.forked.merge_base.catalog):
                declarations = (catalog.topics.get(name), catalog.namespaces.get(name.namespace_name))
                yield from (
                    declaration.source.path for declaration in declarations if declaration and declaration.source
                )
            yield from declared.dependencies.get(name, ())
            yield from (broken.path for broken in declared.broken if broken.name == name)

        @cache
        def is_touched(name: TopicName | None, place: str | None) -> bool:
            paths = (*settings, *([place] if place else ()), *(list_files(name) if name else ()))
            return any(files_at_head.entry(path) != self.files.entry(path) for path in paths)

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
        return replace(unwaived, findings=remaining_findings, notes=tuple(notes))

    def note_unjudged_files(self, files: CommitFiles) -> Iterator[str]:
        """Yield a note if files of the working tree differ from the judged `files` of HEAD."""
        from schemactl import history
        from schemactl.checks.environments import list_overlay_paths, paths_of
        from schemactl.core.wording import format_count
        from schemactl.declare import files as declare_files
        from schemactl.history.commit_files import list_differing_files
        from schemactl.history.sparse_checkout import find_omitted_files

        project, content, repository = self.project, self.content, self.repository
        checked_paths = {project.path, project.waivers, *paths_of(content.declared), *content.numbers.paths}
        checked_paths |= list_overlay_paths(self.proposed)
        worktree = declare_files.WorktreeFiles(str(repository.top), folders=project.roots)
        omitted_paths = {*find_omitted_files(repository, project)}
        differing_paths = list_differing_files(
            files, history.HashedFiles(worktree, repository.object_format), checked_paths
        )
        paths = [path for path in differing_paths if path not in omitted_paths]
        if paths:
            names = ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")
            yield (
                f"not judged: {format_count(len(paths), 'file')} that differ{'' if len(paths) > 1 else 's'} from HEAD "
                f"({names}); commit them, or leave --base out"
            )

    def record_success(self) -> None:
        """Let the next check end early if nothing staged concerns a schema (see `early_exit`)."""
        from schemactl.checks.environments import list_overlay_paths
        from schemactl.declare.project import PROJECT_FILE
        from schemactl.declare.reader import in_roots
        from schemactl.history import early_exit
        from schemactl.history.commit_files import IndexFiles

        project, content, head = self.proposed, self.content, self.repository.commit("HEAD")
        is_at_top = project.path == PROJECT_FILE and str(self.repository.top) == os.path.realpath(".")
        if head is None or "" in project.roots or not is_at_top or not isinstance(self.files, IndexFiles):
            return
        definitions = chain.from_iterable(content.declared.dependencies.values())
        # Definitions outside of the roots are watched by folder, because there are fewer folders.
        outside = {posixpath.dirname(path) or path for path in definitions if not in_roots(path, project)}
        others = {*content.numbers.places, *list_overlay_paths(project)}
        watched = {project.path, project.waivers, *project.roots, *outside, *others}
        early_exit.record(head.id, watched, self.files.changed_paths)


def _read_declaration(files: Files, topic: Topic) -> SchemaDeclaration | None:
    """Return the declaration of a topic's schema, or of its kind, in `files`, or None if the files do not declare it."""
    from schemactl.declare.document import TopicDocument, read_documents
    from schemactl.declare.files import read_bytes

    path = topic.source.path if topic.source else ""
    for document in read_documents(path, read_bytes(files, path)).documents:
        if isinstance(document, TopicDocument) and document.topic.name == topic.name:
            return document.kinds.get(topic.kind) if topic.kind else document.schema
    return None


def _get_proto(declaration: SchemaDeclaration) -> tuple[str, str]:
    """Return the `.proto` path from the repository's top and the message of a declaration, or empty texts without `proto:`."""
    if declaration.proto is None:
        return "", ""
    return posixpath.normpath(
        posixpath.join(posixpath.dirname(declaration.text.path), declaration.proto)
    ), declaration.message


def _describe_surprises(project: Project, report: CheckReport, declared: Catalog, files: Files) -> Iterator[str]:
    """Yield notes about surprises: another release is predicted, or nothing is declared."""
    if project.pulsar != project.release:
        yield (
            f"{project.path} declares Pulsar {project.pulsar}; the check predicts the answers of {project.release}, "
            "the nearest supported release"
        )
    if not report.checked and not report.topics and not declared.namespaces:
        from schemactl.declare.files import describe_folders

        folders = describe_folders(files, project.folder)
        note = f"nothing is declared in {', '.join(root or '.' for root in project.roots)} (`roots` of {project.path})"
        yield f"{note}; {folders}" if folders else note


def _describe_lost_nanoseconds(project: Project, report: CheckReport, declared: Catalog) -> Iterator[str]:
    """Yield a note if columns of changed topics lose digits of nanoseconds and neither the topic nor the project sets `nanoseconds`."""
    from schemactl.codegen.topics import get_nanoseconds
    from schemactl.core.wording import format_count
    from schemactl.formats import get_pair

    types: set[SchemaType] = set()
    names = []
    for name in sorted({entry.topic for entry in report.topics} & declared.topics.keys()):
        topic = declared.topics[name]
        if topic.schema is None or get_nanoseconds(topic, project.generate):
            continue
        pair = get_pair(topic.schema.load())
        parts = pair.halves.values() if pair else [topic.schema]
        if topic_types := {part.type for part in parts} & {*NANOSECOND_TYPES}:
            types |= topic_types
            names.append(name)
    if names:
        subject = " and ".join(type_.name for type_ in NANOSECOND_TYPES if type_ in types)
        more = f" and {format_count(len(names) - 1, 'more topic')}" if len(names) > 1 else ""
        yield (
            f"{subject}: messages have nanoseconds, and columns have microseconds, so the last three digits are cut in {names[0]}{more}; "
            f"write `generate: {{nanoseconds: bigint}}` for the topic or in {project.path} to keep them, or `truncated` to accept this"
        )


# The files that are checked


class CheckedFiles(NamedTuple):
    """The files that are checked, and their project.

    Attributes:
        proposed: the project of these files.
        project: the same project under the approved settings, or its own settings if nothing has been approved.
        files: the index, HEAD, or the working tree.
        approved: the approved project, or None if nothing has been approved yet.
        covering: the path of the approved project file that a new, nearer project file would hide, or None.
    """

    proposed: Project
    project: Project
    files: CommitFiles | HashedFiles
    approved: JudgingProject | None
    covering: str | None


def find_checked_files(request: CheckRequest, repository: Repository) -> CheckedFiles:
    """Find the project and the files that a request is about.

    Raises:
        SchemactlError: if there are no such files, or the project forgets an approved root.
    """
    from schemactl import history
    from schemactl.checks.judging_files import unite_roots
    from schemactl.declare import files as declare_files
    from schemactl.declare import project as declare_project
    from schemactl.history.approved_history import find_judging_project
    from schemactl.history.sparse_checkout import require_complete_checkout

    files: CommitFiles | HashedFiles
    if repository.top is None and not request.staged:
        raise SchemactlError(
            "a bare repository has no files to check", fix="check in a clone; `schemactl log` and `plan` work here"
        )
    if request.staged or request.approved_ref:
        head = None if request.staged else repository.commit("HEAD")
        if not request.staged and head is None:
            raise SchemactlError(
                "--base checks committed files, and this repository has no commit yet",
                fix="commit first, or omit --base to check the working tree",
            )
        files = history.CommitFiles(repository, head) if head else history.IndexFiles(repository)
        proposed, top = declare_project.load_project(request.directory, request.config, files=files)
    elif request.edited_contents:
        changed = declare_files.ChangedFiles(request.edited_contents, declare_files.WorktreeFiles(str(repository.top)))
        proposed, top = declare_project.load_project(request.directory, request.config, files=changed)
    else:
        proposed, top = declare_project.load_project(request.directory, request.config)
    if request.requires_base and not request.approved_ref and in_ci():
        require_base(request, repository, proposed)
    approved = find_judging_project(repository, request.directory, request.config, proposed, request.approved_ref)
    covering = None
    if approved and approved.project.path != proposed.path:
        nearest, approved = approved, _find_same_project(request, repository, proposed, approved)
        covering = nearest.project.path if _has_file(request, repository, nearest.project.path) else None
    if approved and (root := _find_forgotten_root(repository, proposed, approved)) is not None:
        relative_root = posixpath.relpath(root or ".", proposed.folder or ".")
        raise HistoryError(
            f"{approved.ref} has the root `{root}`, which {proposed.path} does not list: the versions of topics that "
            "were declared there would get new numbers",
            fix=f"add `{relative_root}` to `previous_roots` in {proposed.path}",
        )
    project = unite_roots(approved.project, proposed, approved.project) if approved else proposed
    if request.staged or request.approved_ref:
        assert isinstance(files, history.CommitFiles)  # noqa: S101  for mypy
        files.folders = project.roots
    else:
        require_complete_checkout(repository, project)
        worktree = declare_files.WorktreeFiles(top, folders=project.roots)
        files = history.HashedFiles(worktree, repository.object_format)
        if request.check_cache:
            from schemactl.history.commit_files import CachedFiles

            files = CachedFiles(worktree, repository.object_format, request.check_cache.files)
    if request.edited_contents:
        from schemactl.history.commit_files import OverlaidFiles

        files = OverlaidFiles(request.edited_contents, files, repository.object_format)
    return CheckedFiles(proposed, project, files, approved, covering)


def _find_same_project(
    request: CheckRequest, repository: Repository, proposed: Project, nearest: JudgingProject
) -> JudgingProject | None:
    """Return the approved version of `proposed`, whose path differs from the `nearest` approved project.

    This is the approved project with the same path, or `nearest` if its file was moved, or None for a new project.
    """
    from schemactl.history.approved_history import find_judging_project

    config = str(Path(str(repository.top), proposed.path))
    try:
        at_same_path = find_judging_project(repository, request.directory, config, proposed, request.approved_ref)
    except SchemactlError:
        at_same_path = None
    if at_same_path:
        return at_same_path
    return None if _has_file(request, repository, nearest.project.path) else nearest


def _has_file(request: CheckRequest, repository: Repository, path: str) -> bool:
    """Return whether the checked files include a file at `path`."""
    from schemactl import history

    if request.staged:
        return history.IndexFiles(repository).entry(path) is not None
    if request.approved_ref:
        return history.CommitFiles(repository, repository.commit("HEAD")).entry(path) is not None
    return Path(str(repository.top), path).is_file()


def _find_forgotten_root(repository: Repository, proposed: Project, approved: JudgingProject) -> str | None:
    """Return the first approved root that is neither a root nor a previous root of `proposed`, or None.

    Roots that were approved after the merge base are not missing.
    """
    from schemactl.declare.reader import in_roots
    from schemactl.history.approved_history import read_project_at

    head = repository.commit("HEAD")
    base = repository.merge_base(head, approved.tip) if head else None
    roots = [*approved.project.roots, *approved.project.previous_roots]
    if base and base.id != approved.tip.id:
        with suppress(DeclarationError):
            if project_at_base := read_project_at(repository, base, approved.project.path):
                roots = [root for root in roots if root in {*project_at_base.roots, *project_at_base.previous_roots}]
    return next(
        (
            root
            for root in roots
            if root not in {*proposed.roots, *proposed.previous_roots}
            and not in_roots(f"{root}/x".lstrip("/"), proposed, previous=True)
        ),
        None,
    )


def require_base(request: CheckRequest, repository: Repository, project: Project) -> None:
    """Require --base in CI if HEAD would be judged against itself, or against a ref that is the approved one only according to the change.

    With `staged`, the approved commit may be checked: the hook also runs after a merge, when there is nothing to judge.

    Raises:
        UsageError: if --base is required.
    """
    from schemactl.history.approved_history import UnknownRef, approved, approved_project, resolve

    fix = "name the branch this will be merged into, such as --base origin/main; after a merge, the commit before it"
    if request.staged:
        fix = (
            "instead of --staged, name the branch this will be merged into, such as --base origin/main "
            "(SKIP=schemactl-check keeps pre-commit from the hook)"
        )
    try:
        ref, tip = approved(repository, project)
    except UnknownRef as error:
        raise UsageError(f"in CI, --base is needed here: {error.message}", fix=f"{fix}. {error.fix}") from error
    try:
        reviewed = approved_project(request.directory, request.config, project, local=True, repository=repository)
        resolved = resolve(repository, reviewed.ref) if reviewed else None
    except SchemactlError as error:
        raise UsageError(f"in CI, --base is needed here: {error.message}", fix=fix) from error
    if reviewed and resolved and resolved[1] != tip:
        raise UsageError(
            f"in CI, --base is needed here: `approved` in {project.path} is {ref}, but the approved history is {reviewed.ref}",
            fix=fix,
        )
    if request.staged and tip and _is_settled(repository, project, tip, reviewed):
        return
    if tip and tip == repository.commit("HEAD"):
        raise UsageError(
            f"in CI, --base is needed here: HEAD is {ref} ({tip.short}), and would be compared with itself", fix=fix
        )


def _is_settled(repository: Repository, project: Project, tip: Commit, reviewed: ApprovedProject | None) -> bool:
    """Return whether the change cannot have moved the approved ref to `tip`: a remote has it, or there is no remote."""
    from schemactl.history.approved_history import find_default_tip, is_clone, resolve

    if not is_clone(repository):
        return project.approved is None or bool(reviewed and not reviewed.proposed)
    resolved = resolve(repository, reviewed.ref) if reviewed and not reviewed.proposed else None
    if resolved and resolved[0].startswith("refs/remotes/"):
        return True
    ref, default = find_default_tip(repository, project, local=True)
    return "/" in ref and default == tip
