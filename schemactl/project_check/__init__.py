"""A whole check: files, approved history, report. What `schemactl check` and `schemactl.check` share."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final

from schemactl.early_exit import in_ci
from schemactl.errors import DeclarationError, SchemactlError
from schemactl.project_check.request import CheckRequest, files_of, require_base
from schemactl.topic_match import require_matches, select

if TYPE_CHECKING:
    from schemactl.checking import CheckReport, Fork
    from schemactl.deadline import Deadline
    from schemactl.declare import Declared, Files
    from schemactl.history import CommitFiles, Forked, HashedFiles, Repository
    from schemactl.model import Catalog, Commit, Project, TopicName, Waiver, WaiversAt
    from schemactl.project_check.environments import Environment
    from schemactl.project_check.files import ProjectFiles
    from schemactl.target_numbers import JudgedNumbers


def check_project(
    request: CheckRequest,
    deadline: Deadline,
    *,
    progress: Callable[[int, int | None], None] = lambda *_: None,
    note: Callable[[object], None] = lambda _: None,
) -> CheckReport:
    """Compare the declared files with the approved history.

    Args:
        request: what to check.
        deadline: is told what is being done.
        progress: is called with the number of commits read, and of how many.
        note: takes what the approved history cannot read.

    Raises:
        DeclarationError: the files have problems; `problems` holds all of them.
        SchemactlError: it could not be decided.
    """
    from schemactl import declare, history
    from schemactl.checking import WaiverFile, with_waivers
    from schemactl.checking.run import Run
    from schemactl.project_check.files import overlay_paths, paths_of, read_files

    def on_commit(done: int, total: int | None) -> None:
        deadline.look()
        progress(done, total)

    deadline.begin("opening the repository")
    with history.Repository.open(request.directory) as repository:
        deadline.begin("reading the declared files")
        proposed, project, files = files_of(request, repository, note)
        if not request.base and in_ci():
            require_base(request, repository, proposed)
        if request.target is not None:
            declare.choose_target(proposed, request.target, f"--target {request.target}")
        read = read_files(repository, replace(project, targets=proposed.targets), files)
        declared, numbers, waivers = read.declared, read.numbers, read.waivers
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
        for each in forked.approved.notes:
            note(each)
        deadline.begin("comparing what is declared with what was approved")
        approved, base = forked.approved, forked.base
        tips = {base.tip, approved.tip} if waivers else set()
        known: Counter[tuple[str, str, str]] = reduce(
            or_, (_waived_at(repository, project, tip) for tip in tips), Counter()
        )
        file = WaiverFile(waivers, known, request.today)

        @cache
        def in_force(commit: Commit) -> tuple[Waiver, ...]:
            return replace(file, waivers=history.waivers_at(repository, project, commit)).in_force

        found = _judged(request, (proposed, project), files, read, forked, in_force, repository, note)
        if request.base and isinstance(files, history.CommitFiles):
            paths = {project.path, project.waivers, *paths_of(declared), *numbers.paths}
            paths |= overlay_paths(proposed)
            notes = _not_judged(repository, project, files, paths)
            found = replace(found, notes=(*found.notes, *notes))
        run = Run(declared.catalog, base.catalog, project)
        is_whole = not (request.topics or request.namespaces or request.target)
        report = with_waivers(found, run, file, is_whole=is_whole)
        is_recorded = request.staged and is_whole and not request.config
        if is_recorded and not report.count("error") and Path.cwd() == Path(request.directory):
            _record(repository, proposed, declared, numbers)
        if request.staged and head and not in_ci():
            now, then = Counter(each.key for each in waivers), _waived_at(repository, project, head)
            changed = {key for key in now | then if now[key] != then[key]}
            before = history.CommitFiles(repository, head)
            settings = {project.path, *overlay_paths(proposed)}
            found = _of_this_commit(found, report, before, files, declared, forked, settings, changed)
            file = replace(file, known=file.known | then)
            report = with_waivers(found, run, file, is_whole=is_whole)
            if report.count("error") and approved.tip == head:
                report = replace(report, notes=(*report.notes, _JUDGED_AGAINST_HEAD))
    return report


_JUDGED_AGAINST_HEAD: Final = (
    "git does not tell hooks of `--amend`, so an amended commit is compared with the commit that it replaces; to compare it with "
    "the one before: SCHEMACTL_AMEND=1 git commit --amend"
)


def _waived_at(
    repository: Repository, project: Project, commit: Commit | None
) -> Counter[tuple[str, str, str]]:
    """Return what the waivers in the tree of a commit are of, and how many there are of each; None: of no commit."""
    from schemactl.history import waivers_at

    return Counter(each.key for each in waivers_at(repository, project, commit)) if commit else Counter()


def _amended(request: CheckRequest, repository: Repository, project: Project) -> str | None:
    """Return the ref to judge a commit against that replaces the tip of the approved ref: its parent; else None."""
    from schemactl.history.approved import approved

    head = repository.commit("HEAD")
    if not request.amend or head is None or approved(repository, project)[1] != head:
        return None
    if repository.commit("HEAD^") is None:
        raise SchemactlError(
            "the commit to be replaced is the first: there is nothing before it to judge against",
            fix="git commit --amend --no-verify",
        )
    return "HEAD^"


def _of_this_commit(
    found: CheckReport,
    report: CheckReport,
    before: CommitFiles,
    files: CommitFiles | HashedFiles,
    declared: Declared,
    forked: Forked,
    settings: Collection[str],
    waived: Collection[tuple[str, str, str]],
) -> CheckReport:
    """Return `found` without findings of what the commit leaves as `before` has it: another commit of the branch brought them.

    What the commit waives, or waives no longer, is `waived`: findings of these stay. `report` is `found` with its waivers.
    """
    from schemactl.messages import counted

    def made_of(name: TopicName) -> Iterator[str]:
        for catalog in (declared.catalog, forked.base.catalog):
            named = (catalog.topics.get(name), catalog.namespaces.get(name.namespace_name))
            yield from (each.source.path for each in named if each and each.source)
        yield from declared.dependencies.get(name, ())

    @cache
    def is_touched(name: TopicName | None, place: str | None) -> bool:
        paths = (*settings, *([place] if place else ()), *(made_of(name) if name else ()))
        return any(before.entry(path) != files.entry(path) for path in paths)

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


def _record(repository: Repository, project: Project, declared: Declared, numbers: JudgedNumbers) -> None:
    """Let the next check leave early where nothing of a schema is staged: see `early_exit`."""
    from schemactl import early_exit
    from schemactl.declare import PROJECT_FILE, in_roots
    from schemactl.project_check.files import overlay_paths

    if "" in project.roots or project.path != PROJECT_FILE or str(repository.top) != os.path.realpath("."):
        return
    definitions = chain.from_iterable(declared.dependencies.values())
    # Definitions beside the roots are watched by their folders, which are fewer.
    outside = {posixpath.dirname(path) or path for path in definitions if not in_roots(path, project)}
    overlays = overlay_paths(project)
    early_exit.record({project.path, project.waivers, *project.roots, *outside, *numbers.places, *overlays})


def _not_judged(
    repository: Repository, project: Project, files: CommitFiles, judged: set[str]
) -> Iterator[str]:
    """Say that files of the working tree are not as HEAD has them."""
    from schemactl import declare, history
    from schemactl.history.files import differing_files
    from schemactl.messages import counted

    worktree = declare.WorktreeFiles(str(repository.top), folders=project.roots)
    here = history.HashedFiles(worktree, repository.object_format)
    paths = differing_files(files, here, judged)
    if paths:
        named = ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")
        yield (
            f"not judged: {counted(len(paths), 'file')} that differ{'' if len(paths) > 1 else 's'} from HEAD "
            f"({named}); commit them, or leave --base out"
        )


def _judged(
    request: CheckRequest,
    projects: tuple[Project, Project],
    files: CommitFiles | HashedFiles,
    read: ProjectFiles,
    forked: Forked,
    waivers: WaiversAt,
    repository: Repository,
    note: Callable[[object], None],
) -> CheckReport:
    """Return the report for all environments, or for the one target that is asked for; what the files say is `read`.

    `projects` are as the files have it, and the one that judges; `waivers` returns those in force in the tree of a commit. Raise
    DeclarationError where what the files say contradicts the history.
    """
    from schemactl.checking import joined
    from schemactl.project_check.environments import environments, setting_problems
    from schemactl.target_numbers import expect_agreement

    proposed, project = projects
    declared, approved = read.declared.catalog, forked.approved.catalog
    changes = forked.changes(files, read.declared)
    if problems := [*setting_problems(files, proposed, declared, approved)]:
        raise DeclarationError(problems)
    expect_agreement(read.numbers.records, declared, forked)
    judged = environments(proposed, project, read, forked, repository, note)
    asked = request.target
    if asked is not None:
        judged = [replace(each, targets=(asked,)) for each in judged if asked in each.targets]
    only = _only(request, declared, approved)
    shown = [(each, each.of(read.declared, forked, changes, note)) for each in judged]
    report = joined([_compared(request, project, only, *each, waivers) for each in shown])
    names = {name for _, (here, *_) in shown for name in here.catalog.topics}
    report = replace(report, checked=len(names if only is None else names & only))
    if read.declared.samples:
        report = _with_samples(report, project, files, read.declared, forked, repository, only)
    return _with_settings(request, projects, files, read, forked, report, judged, only)


def _with_samples(
    report: CheckReport,
    project: Project,
    files: CommitFiles | HashedFiles,
    declared: Declared,
    forked: Forked,
    repository: Repository,
    only: frozenset[TopicName] | None,
) -> CheckReport:
    """Return the report with the samples that cannot be read: of topics whose schema changes, and those that the change brings."""
    from schemactl.checking.run import Run
    from schemactl.history import CommitFiles

    before = CommitFiles(repository, forked.base.tip)
    changed = {path for path in declared.samples if files.entry(path) != before.entry(path)}
    if not changed and not any(each.schema for each in report.topics):
        return report
    from schemactl.topic_codec import require_codec

    require_codec()
    from schemactl.samples.judging import with_samples

    run = Run(declared.catalog, forked.base.catalog, project)
    return with_samples(report, run, declared, files, changed, only)


def _compared(
    request: CheckRequest,
    project: Project,
    only: frozenset[TopicName] | None,
    environment: Environment,
    shown: tuple[Declared, Forked, Fork],
    waivers: WaiversAt,
) -> tuple[tuple[str, ...], CheckReport]:
    """Compare what is declared with what was approved, both as an environment has them.

    `waivers` returns those in force in the tree of a commit.
    """
    from schemactl.checking import Stepwise, check
    from schemactl.checking.schemas import UNPROTECTED

    declared, forked, fork = shown
    approved, _, stepwise, branch, *_ = forked
    asked = {UNPROTECTED: "warning", **project.severities} if request.strict else project.severities
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
        stepwise=Stepwise(
            stepwise.catalog, [each.commit for each in branch.commits], forked.recorded, waivers
        )
        if stepwise and branch
        else None,
        targets=environment.targets,
    )
    return environment.targets, report


def _with_settings(
    request: CheckRequest,
    projects: tuple[Project, Project],
    files: Files,
    read: ProjectFiles,
    forked: Forked,
    report: CheckReport,
    judged: Sequence[Environment],
    only: frozenset[TopicName] | None,
) -> CheckReport:
    """Return `report` with what is no target's own: settings, and what a day has brought.

    `projects` are as the files have it, and the one that judges.
    """
    from schemactl.checking import deprecations, with_settings
    from schemactl.checking.run import Run
    from schemactl.declare import place_in_project

    proposed, project = projects
    run = Run(read.declared.catalog, forked.base.catalog, project)
    found = (*report.findings, *deprecations(run, only, request.today))
    report = replace(report, findings=found, target=request.target or "")
    overlays = {name: (each.left, each.overlays) for each in judged for name in each.targets}
    report = with_settings(
        report, run, proposed, lambda key: place_in_project(files, proposed, key), overlays
    )
    notes = _notes(project, report)
    approved, branch = forked.approved, forked.branch
    if branch and branch.is_updated and forked.base is approved:
        foxtrot = (
            f"this branch has merged {approved.ref} into itself: a fast-forward would make the branch's line the record, and count "
            "versions along it. Merge with a merge commit, a squash or a rebase"
        )
        notes = chain(notes, [foxtrot])
    return replace(report, notes=(*report.notes, *notes))


def _notes(project: Project, report: CheckReport) -> Iterator[str]:
    """Say what a reader of the report might not expect."""
    if project.pulsar != project.release:
        yield f"{project.path} says Pulsar {project.pulsar}; predicting the answers of {project.release}, the nearest supported release"
    if not report.checked and not report.topics:
        yield f"nothing is declared in {', '.join(root or '.' for root in project.roots)} (`roots` of {project.path})"


def _only(request: CheckRequest, *catalogs: Catalog) -> frozenset[TopicName] | None:
    """Return the topics that --topic and --namespace leave; None: all."""
    if not request.topics and not request.namespaces:
        return None
    names = {name for catalog in catalogs for name in catalog.topics}
    require_matches(
        names, request.topics, request.namespaces, where="the declared files and the approved history"
    )
    return select(names, request.topics, request.namespaces)
