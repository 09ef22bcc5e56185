"""Run a whole check, from the request to the report; the command and the Python API share it."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cache, cached_property, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from schemactl.core.errors import DeclarationError, HistoryError, SchemactlError, UsageError
from schemactl.core.names import select_known
from schemactl.core.schema import SchemaType
from schemactl.history.early_exit import in_ci

if TYPE_CHECKING:
    from schemactl.checks.check import Fork
    from schemactl.checks.check_report import CheckReport
    from schemactl.checks.environments import Environment, Judge, ProjectFiles
    from schemactl.checks.proposal import MovedTopic, Run
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.deadline import Deadline
    from schemactl.core.findings import Finding, Waiver, WaiversAt
    from schemactl.core.names import TopicName
    from schemactl.core.project import Project
    from schemactl.core.schema import Commit, SchemaInfo
    from schemactl.declare.document import SchemaDeclaration
    from schemactl.declare.files import Files
    from schemactl.declare.reader import Declared
    from schemactl.history import ApprovedProject, CommitFiles, Forked, HashedFiles, Repository
    from schemactl.history.approved_history import JudgingProject
    from schemactl.history.merge import LocalChanges


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What to check, and against what.

    Attributes:
        directory: absolute path of a folder of the project.
        config: path of the project file; None: the nearest schemactl.yaml upwards from `directory`.
        staged: the index, not the working tree.
        base: HEAD, not the working tree, against this approved ref; None: against the project's.
        amend: the commit replaces HEAD (with `staged`).
        topics: only these, as `--topic` takes them; none: all.
        namespaces: only these; none: all.
        strict: warnings are to fail: data is judged also where a strategy protects nobody.
        today: the day in UTC, by which waivers expire and deprecated topics are overdue.
        target: judge by this target's release, and by the versions and numbers that its numbers file records; None: by Git's.
    """

    directory: str
    config: str | None = None
    staged: bool = False
    base: str | None = None
    amend: bool = False
    topics: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    strict: bool = False
    today: date = field(default_factory=lambda: datetime.now(UTC).date())
    target: str | None = None


def require_base(request: CheckRequest, repository: Repository, project: Project) -> None:
    """Refuse to judge what a CI system checked out against itself, or against what only the change calls approved.

    With `staged` what has been approved may be: the hook runs after a merge, too, where there is nothing to judge.

    Raises:
        UsageError: it would be, without --base.
    """
    from schemactl.history.approved_history import UnknownRef, approved, approved_project, resolve

    fix = "name the branch this will be merged into, such as --base origin/main; after a merge, the commit before it"
    if request.staged:
        fix = "instead of --staged, name the branch this will be merged into, such as --base origin/main (SKIP=schemactl-check keeps pre-commit from the hook)"
    try:
        ref, tip = approved(repository, project)
    except UnknownRef as error:
        raise UsageError(f"in CI, --base is needed here: {error.what}", fix=f"{fix}. {error.fix}") from error
    try:
        reviewed = approved_project(request.directory, request.config, project, local=True)
        meant = resolve(repository, reviewed.ref) if reviewed else None
    except SchemactlError as error:
        raise UsageError(f"in CI, --base is needed here: {error.what}", fix=fix) from error
    if reviewed and meant and meant[1] != tip:
        raise UsageError(
            f"in CI, --base is needed here: {project.path} calls {ref} the approved ref, and {reviewed.ref} is what was approved",
            fix=fix,
        )
    if request.staged and tip and _is_settled(repository, project, tip, reviewed):
        return
    if tip and tip == repository.commit("HEAD"):
        raise UsageError(
            f"in CI, --base is needed here: HEAD is {ref} ({tip.short}), and would be judged against itself", fix=fix
        )


def _is_settled(repository: Repository, project: Project, tip: Commit, reviewed: ApprovedProject | None) -> bool:
    """Whether it is not for a change to move what leads to the commit `tip`: a remote has it, or there is none."""
    from schemactl.history.approved_history import by_default, is_clone, resolve

    if not is_clone(repository):
        return project.approved is None or bool(reviewed and not reviewed.proposed)
    found = resolve(repository, reviewed.ref) if reviewed and not reviewed.proposed else None
    if found and found[0].startswith("refs/remotes/"):
        return True
    ref, default = by_default(repository, project, local=True)
    return "/" in ref and default == tip


class CheckedFiles(NamedTuple):
    """The files that a check is about.

    Attributes:
        proposed: the project as they have it.
        project: the same project under the approved settings; its own where nothing was approved.
        files: the index, HEAD, or the working tree.
        approved: the approved project; None: nothing was approved yet.
        covering: the path of the approved project that a new, nearer project file would hide; None: there is none.
    """

    proposed: Project
    project: Project
    files: CommitFiles | HashedFiles
    approved: JudgingProject | None
    covering: str | None


def checked_files(request: CheckRequest, repository: Repository) -> CheckedFiles:
    """Find the project and the files that a request is about.

    Raises:
        SchemactlError: there are none, or the project asks for what cannot be done with them.
    """
    from schemactl import history
    from schemactl.checks.judging_files import with_all_roots
    from schemactl.declare import files as declare_files
    from schemactl.declare import project as declare_project
    from schemactl.history.approved_history import judging_project

    files: CommitFiles | HashedFiles
    if repository.top is None and not request.staged:
        raise SchemactlError(
            "a bare repository has no files to check", fix="check in a clone; `schemactl log` and `plan` work here"
        )
    if request.staged or request.base:
        head = None if request.staged else repository.commit("HEAD")
        if not request.staged and head is None:
            raise SchemactlError(
                "--base checks what is committed, and there is no commit here yet",
                fix="commit first, or leave --base out to check the working tree",
            )
        files = history.CommitFiles(repository, head) if head else history.IndexFiles(repository)
        proposed, top = declare_project.load_project(request.directory, request.config, files=files)
    else:
        proposed, top = declare_project.load_project(request.directory, request.config)
    if not request.base and in_ci():
        require_base(request, repository, proposed)
    found = judging_project(repository, request.directory, request.config, proposed, request.base)
    covering = None
    if found and found.project.path != proposed.path:
        nearest, found = found, _of_same_project(request, repository, proposed, found)
        covering = nearest.project.path if _has_file(request, repository, nearest.project.path) else None
    if found and (root := _forgotten_root(repository, proposed, found)) is not None:
        written = posixpath.relpath(root or ".", proposed.folder or ".")
        raise HistoryError(
            f"{found.ref} has the root `{root}`, which {proposed.path} does not know: the versions of topics that were "
            "declared there would be counted again",
            fix=f"add `{written}` to `previous_roots` in {proposed.path}",
        )
    project = with_all_roots(found.project, proposed, found.project) if found else proposed
    if request.staged or request.base:
        assert isinstance(files, history.CommitFiles)  # noqa: S101  for mypy
        files.folders = project.roots
    else:
        worktree = declare_files.WorktreeFiles(top, folders=project.roots)
        files = history.HashedFiles(worktree, repository.object_format)
    return CheckedFiles(proposed, project, files, found, covering)


def _of_same_project(
    request: CheckRequest, repository: Repository, proposed: Project, found: JudgingProject
) -> JudgingProject | None:
    """Return the approved project that `proposed` goes on from, where the nearest approved one has another path.

    That is the one at the same path; else the nearest, if its file was moved here; else none: a new project begins.
    """
    from schemactl.history.approved_history import judging_project

    config = str(Path(str(repository.top), proposed.path))
    try:
        same = judging_project(repository, request.directory, config, proposed, request.base)
    except SchemactlError:
        same = None
    if same:
        return same
    return None if _has_file(request, repository, found.project.path) else found


def _has_file(request: CheckRequest, repository: Repository, path: str) -> bool:
    """Return whether there is a file at `path` in what the request checks."""
    from schemactl import history

    if request.staged:
        return history.IndexFiles(repository).entry(path) is not None
    if request.base:
        return history.CommitFiles(repository, repository.commit("HEAD")).entry(path) is not None
    return Path(str(repository.top), path).is_file()


def _forgotten_root(repository: Repository, proposed: Project, approved: JudgingProject) -> str | None:
    """Return the first approved root that `proposed` neither has nor calls a previous one.

    A root that the approved branch gained after the work began is not missing from it.
    """
    from schemactl.declare.reader import in_roots
    from schemactl.history.approved_history import read_project_at

    head = repository.commit("HEAD")
    base = repository.merge_base(head, approved.tip) if head else None
    roots = [*approved.project.roots, *approved.project.previous_roots]
    if base and base.id != approved.tip.id:
        with suppress(DeclarationError):
            if began := read_project_at(repository, base, approved.project.path):
                roots = [root for root in roots if root in {*began.roots, *began.previous_roots}]
    return next(
        (
            root
            for root in roots
            if root not in {*proposed.roots, *proposed.previous_roots}
            and not in_roots(f"{root}/x".lstrip("/"), proposed, previous=True)
        ),
        None,
    )


# The check


def check_project(
    request: CheckRequest,
    deadline: Deadline,
    *,
    progress: Callable[[int, int | None], None] = lambda *_: None,
    note: Callable[[object], None] = lambda _: None,
) -> CheckReport:
    """Compare the declared files with the approved history.

    A new project file does not hide the approved project that covers its folder: then both projects are checked.

    Args:
        request: what to check.
        deadline: the time limit.
        progress: called with the number of commits read so far, and of all.
        note: called for parts of the approved history that cannot be read.

    Raises:
        DeclarationError: the files have problems; `problems` holds all of them.
        SchemactlError: it could not be decided.
    """
    from schemactl import history

    def on_commit(done: int, total: int | None) -> None:
        deadline.look()
        progress(done, total)

    deadline.begin("opening the repository")
    with history.Repository.open(request.directory) as repository:
        deadline.begin("reading the declared files")
        checked = checked_files(request, repository)
        report = _check_files(request, repository, checked, deadline, on_commit, note)
        if checked.covering is None:
            return report
        deadline.begin("checking the approved project that covers this folder")
        covering = replace(request, config=str(Path(str(repository.top), checked.covering)), target=None)
        other = _check_files(covering, repository, checked_files(covering, repository), deadline, on_commit, note)
    both = f"{checked.proposed.path} is new, and {checked.covering} covers its folder: both projects are checked"
    return replace(
        other,
        checked=other.checked + report.checked,
        topics=(*other.topics, *report.topics),
        policies=(*other.policies, *report.policies),
        findings=(*other.findings, *report.findings),
        waived=(*other.waived, *report.waived),
        notes=tuple(dict.fromkeys([both, *other.notes, *report.notes])),
    )


def _check_files(
    request: CheckRequest,
    repository: Repository,
    checked: CheckedFiles,
    deadline: Deadline,
    on_commit: Callable[[int, int | None], None],
    note: Callable[[object], None],
) -> CheckReport:
    """Check the files of one project; the arguments are those of `check_project`."""
    from schemactl import history
    from schemactl.checks.environments import read_files
    from schemactl.checks.waivers import WaiverFile, with_waivers
    from schemactl.declare import project as declare_project

    proposed, project, files, approved, _ = checked
    if request.target is not None:
        declare_project.choose_target(proposed, request.target, f"--target {request.target}")
    read = read_files(repository, replace(project, targets=proposed.targets), files)
    deadline.begin("reading the approved history")
    head = repository.commit("HEAD^" if request.amend else "HEAD")
    forked = history.read_forked(
        repository,
        project,
        head,
        request.base or _amended(request, repository, project),
        stepwise=bool(request.base),
        progress=on_commit,
    )
    for problem in forked.approved.notes:
        note(problem)
    deadline.begin("comparing what is declared with what was approved")
    check = _Check(request, repository, proposed, project, files, read, forked, approved, note)
    tips = {forked.base.tip, forked.approved.tip} if read.waivers else set()
    known: Counter[tuple[str, str, str]] = reduce(or_, map(check.waived_at, tips), Counter())
    approved_waivers = frozenset(
        waiver for tip in tips if tip for waiver in history.waivers_at(repository, project, tip)
    )
    file = WaiverFile(read.waivers, known, request.today, approved_waivers)
    if file.problems:
        raise DeclarationError(file.problems)

    @cache
    def in_force(commit: Commit) -> tuple[Waiver, ...]:
        return replace(file, waivers=history.waivers_at(repository, project, commit)).in_force

    found = check.report(in_force)
    if request.base and isinstance(files, history.CommitFiles):
        found = replace(found, notes=(*found.notes, *check.not_judged(files)))
    is_whole = not (request.topics or request.namespaces or request.target)
    report = with_waivers(found, check.run, file, is_whole=is_whole)
    is_recorded = request.staged and is_whole and not request.config
    if is_recorded and not report.count("error") and Path.cwd() == Path(request.directory):
        check.record()
    if request.staged and head and not in_ci():
        now, then = Counter(waiver.key for waiver in read.waivers), check.waived_at(head)
        changed = {key for key in now | then if now[key] != then[key]}
        found = check.of_this_commit(found, report, head, changed)
        file = replace(file, known=file.known | then)
        report = with_waivers(found, check.run, file, is_whole=is_whole)
        if report.count("error") and forked.approved.tip == head:
            report = replace(report, notes=(*report.notes, _JUDGED_AGAINST_HEAD))
    return report


_JUDGED_AGAINST_HEAD: Final = (
    "git does not tell hooks of `--amend`, so an amended commit is compared with the commit that it replaces; to compare it with "
    "the one before: SCHEMACTL_AMEND=1 git commit --amend"
)


def _amended(request: CheckRequest, repository: Repository, project: Project) -> str | None:
    """Return the parent of HEAD if an amended commit replaces the tip of the approved ref; else None."""
    from schemactl.history.approved_history import approved

    head = repository.commit("HEAD")
    if not request.amend or head is None or approved(repository, project)[1] != head:
        return None
    if repository.commit("HEAD^") is None:
        raise SchemactlError(
            "the commit to be replaced is the first: there is nothing before it to judge against",
            fix="git commit --amend --no-verify",
        )
    return "HEAD^"


@dataclass(frozen=True)
class _Check:
    """One check, after everything was read.

    Attributes:
        request: what to check.
        repository: the open repository.
        proposed: the project as the files have it.
        project: the project by whose settings they are judged.
        files: the index, HEAD, or the working tree.
        read: the content of the files.
        forked: the approved history, and the point where the work left it.
        approved: the approved project; None: nothing was approved yet.
        note: is called for what cannot be read.
    """

    request: CheckRequest
    repository: Repository
    proposed: Project
    project: Project
    files: CommitFiles | HashedFiles
    read: ProjectFiles
    forked: Forked
    approved: JudgingProject | None
    note: Callable[[object], None]

    @property
    def run(self) -> Run:
        """The declarations, compared with the approved history where the work left it."""
        from schemactl.checks.proposal import Run

        return Run(self.read.declared.catalog, self.forked.base.catalog, self.project, moved=self.moved)

    @cached_property
    def protos(self) -> Mapping[TopicName, SchemaInfo]:
        """The schemas of topics that replace or remove `proto:`, with the approved `.proto` as it is among the files."""
        from schemactl.declare.definition import Definitions

        definitions = Definitions(self.files)
        protos: dict[TopicName, SchemaInfo] = {}
        for name, (schema, approved) in self._changed_protos.items():
            found = definitions.read(approved).info
            if found and found.proto:
                protos[name] = replace(schema.load(), proto=found.proto)
        return protos

    @cached_property
    def _changed_protos(self) -> Mapping[TopicName, tuple[SchemaInfo, SchemaDeclaration]]:
        """The PROTOBUF topics that replace or remove `proto:`: what they declare now, and how the approved files declare it."""
        changed: dict[TopicName, tuple[SchemaInfo, SchemaDeclaration]] = {}
        unchanged = self.changes.unchanged
        for name, topic in self.read.declared.catalog.topics.items():
            if topic.schema is None or topic.schema.type is not SchemaType.PROTOBUF or name in unchanged:
                continue
            approved = self.forked.approved.declaration(name)
            now = _declaration(self.files, topic)
            if approved and approved.proto and (now is None or _proto_of(now) != _proto_of(approved)):
                changed[name] = (topic.schema, approved)
        return changed

    def _changed_proto_findings(self) -> Iterator[Finding]:
        """Yield a warning for each topic that replaces or removes `proto:`, by which its messages are judged."""
        from schemactl.core.findings import Finding
        from schemactl.core.rules import rules

        for name, (_, approved) in self._changed_protos.items():
            topic = self.read.declared.catalog.topics[name]
            now = _declaration(self.files, topic)
            path, message = _proto_of(approved)
            if now is None or now.proto is None:
                effect = f"{name} no longer declares `proto:`, so that its messages are not judged any more"
            else:
                effect = f"{name} declares `proto: {now.proto}` and `message: {now.message}`"
            judged = (
                "This change is judged under it, too"
                if name in self.protos
                else "It is gone, so its messages are not compared"
            )
            yield Finding(
                rule="GATE_CHANGED",
                severity="warning",
                verdict="declaration",
                topic=name,
                source=topic.locate("/schema/proto"),
                message=f"{name} was approved with the message {message} of {path}. {judged}.\nAfter the merge: {effect}.",
                fix=rules()["GATE_CHANGED"].fix,
            )

    @cached_property
    def changes(self) -> LocalChanges:
        """What the files change since the work began."""
        return self.forked.changes(self.files, self.read.declared)

    @cached_property
    def moved(self) -> Mapping[TopicName, MovedTopic]:
        """The new topics that another approved project of the repository has: they are compared as renamed ones are."""
        from schemactl import history
        from schemactl.checks.proposal import MovedTopic
        from schemactl.history.approved_history import other_projects

        tip, known = self.forked.approved.tip, {*self.forked.approved.catalog.topics}
        names = [
            name
            for name, topic in self.read.declared.catalog.topics.items()
            if not topic.renamed_from and not {name, name.twin} & known
        ]
        moved: dict[TopicName, MovedTopic] = {}
        if not names or tip is None:
            return moved
        for project in other_projects(self.repository, self.project, tip):
            catalog = history.read(self.repository, project, tip.id).catalog
            for name in names:
                former = next((topic for each in (name, name.twin) if (topic := catalog.topics.get(each))), None)
                if former and former.versions:
                    strategy, _ = catalog.strategy(former.name, project.defaults)
                    moved[name] = MovedTopic(former.load(), strategy, project.path)
        return moved

    def waived_at(self, commit: Commit | None) -> Counter[tuple[str, str, str]]:
        """Return the keys of the waivers in the tree of a commit, and how many there are of each; None: no commit."""
        from schemactl.history import waivers_at

        waivers = waivers_at(self.repository, self.project, commit) if commit else ()
        return Counter(each.key for each in waivers)

    def report(self, waivers: WaiversAt) -> CheckReport:
        """Judge the change by the approved judging files, and by its own where it changes them; report the findings of both.

        `waivers` returns those in force in the tree of a commit. Raise DeclarationError if the files contradict the history.
        """
        from schemactl.checks.check_report import judged_twice
        from schemactl.checks.declarations import name_problems
        from schemactl.checks.environments import setting_problems
        from schemactl.checks.judging_files import (
            approved_judge,
            changed_files,
            drafts_again,
            gate_findings,
            proposed_judge,
        )
        from schemactl.history import CommitFiles
        from schemactl.history.merge import FilesAfterMerge
        from schemactl.history.target_history import expect_agreement

        read, forked = self.read, self.forked
        declared, history = read.declared.catalog, forked.approved.catalog
        changes = self.changes
        if problems := [
            *setting_problems(self.files, self.proposed, declared, history),
            *name_problems(declared, history),
        ]:
            raise DeclarationError(problems)
        expect_agreement(read.numbers.records, declared, forked)
        only = self._only(declared, history)
        if self.approved is None:
            judge = proposed_judge(self.proposed, read)
            report = self._judged(judge, None, changes, only, waivers)
            return replace(report, notes=(*report.notes, *self._speaks_for_itself()))
        judge = approved_judge(self.repository, self.approved, self.project, read, history)
        report = self._judged(judge, None, changes, only, waivers)
        began, tip = (CommitFiles(self.repository, commit) for commit in (forked.base.tip, self.approved.tip))
        records = (*judge.numbers, *read.numbers.records)
        changed = changed_files((self.approved.project, self.proposed), records, began, self.files)
        gate = [*judge.unreadable]
        if changed:
            merge = FilesAfterMerge(self.repository, self.files, base=began, tip=tip)
            own = proposed_judge(self.proposed, read, merge, self.approved.project)
            report = judged_twice(report, self._judged(own, judge, changes, only, waivers))
            gate += gate_findings(changed, judge, own, began, self.files, self.run)
        gate += [*self._changed_proto_findings(), *drafts_again(self.run)]
        return replace(report, findings=(*gate, *report.findings))

    def _speaks_for_itself(self) -> Iterator[str]:
        if self.forked.approved.tip:
            yield f"{self.proposed.path} has not been approved yet, so its own settings judge"

    def _judged(
        self,
        judge: Judge,
        before: Judge | None,
        changes: LocalChanges,
        only: frozenset[TopicName] | None,
        waivers: WaiversAt,
    ) -> CheckReport:
        """Return the report by one judge, for all its targets, or for the target that is asked for."""
        from schemactl.checks.check_report import joined
        from schemactl.checks.environments import Environment, environments

        read, forked, asked = self.read, self.forked, self.request.target
        judged = environments(judge, before, read.declared.catalog, forked.approved.catalog)
        if asked is not None:
            judged = [replace(environment, targets=(asked,)) for environment in judged if asked in environment.targets]
            # What the judge does not know is judged as it is declared.
            judged = judged or [Environment((), None, judge.project.release)]
        shown = [(environment, environment.of(read.declared, forked, changes, self.note)) for environment in judged]
        report = joined([self._compared(judge.project, *each, only, waivers) for each in shown])
        names = {name for _, (here, *_) in shown for name in here.catalog.topics}
        report = replace(report, checked=len(names if only is None else names & only))
        return self._with_the_rest(self._with_samples(report, only), judge.project, only)

    def _only(self, *catalogs: Catalog) -> frozenset[TopicName] | None:
        """Return the topics that --topic and --namespace select; None: all."""
        topics, namespaces = self.request.topics, self.request.namespaces
        if not topics and not namespaces:
            return None
        names = {name for catalog in catalogs for name in catalog.topics}
        return select_known(names, topics, namespaces, where="the declared files and the approved history")

    def _compared(
        self,
        project: Project,
        environment: Environment,
        shown: tuple[Declared, Forked, Fork],
        only: frozenset[TopicName] | None,
        waivers: WaiversAt,
    ) -> tuple[tuple[str, ...], CheckReport]:
        """Compare the declarations with the approved history, both `shown` as an environment has them."""
        from schemactl.checks.check import Stepwise, check
        from schemactl.checks.schemas import UNPROTECTED

        declared, forked, fork = shown
        approved, _, stepwise, branch, *_ = forked
        asked = project.severities
        if self.request.strict:
            asked = {UNPROTECTED: "warning", **asked}
        if environment.only is not None:
            only = environment.only if only is None else environment.only & only
        report = check(
            declared.catalog,
            approved=approved.catalog,
            project=replace(project, severities=asked, release=environment.release),
            label=f"{approved.ref} ({approved.tip.short})" if approved.tip else "an empty history",
            declared=declared.findings,
            only=only,
            fork=fork,
            stepwise=Stepwise(stepwise.catalog, [each.commit for each in branch.commits], forked.recorded, waivers)
            if stepwise and branch
            else None,
            targets=environment.targets,
            moved=self.moved,
            protos=self.protos,
        )
        return environment.targets, report

    def _with_samples(self, report: CheckReport, only: frozenset[TopicName] | None) -> CheckReport:
        """Add the samples that cannot be read: those of topics whose schema changes, and those that the change adds."""
        from schemactl.history import CommitFiles

        declared = self.read.declared
        before = CommitFiles(self.repository, self.forked.base.tip)
        changed = {path for path in declared.samples if self.files.entry(path) != before.entry(path)}
        if not declared.samples or not (changed or any(each.schema for each in report.topics)):
            return report
        from schemactl.codegen.topics import require_codec

        require_codec()
        from schemactl.checks.samples import with_samples

        return with_samples(report, self.run, declared, self.files, changed, only)

    def _with_the_rest(self, report: CheckReport, project: Project, only: frozenset[TopicName] | None) -> CheckReport:
        """Add what concerns no single target, and notes about the branch."""
        from schemactl.checks.declarations import deprecations

        forked = self.forked
        findings = (*report.findings, *deprecations(replace(self.run, project=project), only, self.request.today))
        notes = [*_notes(project, report)]
        if forked.branch and forked.branch.is_updated and forked.base is forked.approved:
            notes.append(
                f"this branch has merged {forked.approved.ref} into itself: a fast-forward would make the branch's line the record, "
                "and count versions along it. Merge with a merge commit, a squash or a rebase"
            )
        target = self.request.target or ""
        return replace(report, findings=findings, target=target, notes=(*report.notes, *notes))

    def of_this_commit(
        self, found: CheckReport, report: CheckReport, head: Commit, waived: Collection[tuple[str, str, str]]
    ) -> CheckReport:
        """Return `found` without findings about what is as in `head`: they come from earlier commits of the branch.

        Findings whose waivers the commit changes, `waived`, stay. `report` is `found` with its waivers.
        """
        from schemactl.checks.environments import overlay_paths
        from schemactl.core.wording import counted
        from schemactl.history import CommitFiles

        declared, before = self.read.declared, CommitFiles(self.repository, head)
        settings = {self.project.path, *overlay_paths(self.proposed), *self.read.numbers.places}

        def made_of(name: TopicName) -> Iterator[str]:
            for catalog in (declared.catalog, self.forked.base.catalog):
                named = (catalog.topics.get(name), catalog.namespaces.get(name.namespace_name))
                yield from (each.source.path for each in named if each and each.source)
            yield from declared.dependencies.get(name, ())

        @cache
        def is_touched(name: TopicName | None, place: str | None) -> bool:
            paths = (*settings, *([place] if place else ()), *(made_of(name) if name else ()))
            return any(before.entry(path) != self.files.entry(path) for path in paths)

        kept = tuple(
            finding
            for finding in found.findings
            if finding.key in waived or is_touched(finding.topic, finding.source.path if finding.source else None)
        )
        dropped = {id(each) for each in found.findings} - {id(each) for each in kept}
        # What is waived would stop no commit.
        left_out = sum(id(each) in dropped for each in report.findings)
        notes = list(found.notes)
        if left_out:
            notes.append(
                f"left out: {counted(left_out, 'finding')} of earlier commits on this branch; "
                f"`schemactl check` without --staged shows {'them' if left_out > 1 else 'it'}"
            )
        return replace(found, findings=kept, notes=tuple(notes))

    def not_judged(self, files: CommitFiles) -> Iterator[str]:
        """Yield a note if files of the working tree differ from HEAD, whose `files` were judged."""
        from schemactl import history
        from schemactl.checks.environments import overlay_paths, paths_of
        from schemactl.core.wording import counted
        from schemactl.declare import files as declare_files
        from schemactl.history.commit_files import differing_files

        project, read, repository = self.project, self.read, self.repository
        judged = {project.path, project.waivers, *paths_of(read.declared), *read.numbers.paths}
        judged |= overlay_paths(self.proposed)
        worktree = declare_files.WorktreeFiles(str(repository.top), folders=project.roots)
        paths = differing_files(files, history.HashedFiles(worktree, repository.object_format), judged)
        if paths:
            named = ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")
            yield (
                f"not judged: {counted(len(paths), 'file')} that differ{'' if len(paths) > 1 else 's'} from HEAD "
                f"({named}); commit them, or leave --base out"
            )

    def record(self) -> None:
        """Let the next check end early if nothing staged concerns a schema (see `early_exit`)."""
        from schemactl.checks.environments import overlay_paths
        from schemactl.declare.project import PROJECT_FILE
        from schemactl.declare.reader import in_roots
        from schemactl.history import early_exit

        project, read, head = self.proposed, self.read, self.repository.commit("HEAD")
        is_at_top = project.path == PROJECT_FILE and str(self.repository.top) == os.path.realpath(".")
        if head is None or "" in project.roots or not is_at_top:
            return
        definitions = chain.from_iterable(read.declared.dependencies.values())
        # Definitions beside the roots are watched by their folders, which are fewer.
        outside = {posixpath.dirname(path) or path for path in definitions if not in_roots(path, project)}
        others = {*read.numbers.places, *overlay_paths(project)}
        early_exit.record(head.id, {project.path, project.waivers, *project.roots, *outside, *others})


def _declaration(files: Files, topic: Topic) -> SchemaDeclaration | None:
    """Return how the schema of a topic is declared among `files`."""
    from schemactl.declare.document import TopicDocument, read_documents
    from schemactl.declare.files import read_bytes

    path = topic.source.path if topic.source else ""
    for document in read_documents(path, read_bytes(files, path)).documents:
        if isinstance(document, TopicDocument) and document.topic.name == topic.name:
            return document.schema
    return None


def _proto_of(declaration: SchemaDeclaration) -> tuple[str, str]:
    """Return the `.proto` of a declaration, as a path from the repository's top, and its message; "": it has none."""
    if declaration.proto is None:
        return "", ""
    return posixpath.normpath(
        posixpath.join(posixpath.dirname(declaration.text.path), declaration.proto)
    ), declaration.message


def _notes(project: Project, report: CheckReport) -> Iterator[str]:
    """Yield notes about what a reader of the report might not expect."""
    if project.pulsar != project.release:
        yield f"{project.path} says Pulsar {project.pulsar}; predicting the answers of {project.release}, the nearest supported release"
    if not report.checked and not report.topics:
        yield f"nothing is declared in {', '.join(root or '.' for root in project.roots)} (`roots` of {project.path})"
