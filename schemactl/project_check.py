"""A whole check: files, approved history, report. What `schemactl check` and `schemactl.check` share."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cache, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final

from schemactl.early_exit import in_ci
from schemactl.errors import DeclarationError, HistoryError, SchemactlError, UsageError
from schemactl.topic_match import require_matches, select

if TYPE_CHECKING:
    from schemactl.checking import CheckReport, Fork
    from schemactl.deadline import Deadline
    from schemactl.declare import Declared, Files
    from schemactl.history import ApprovedProject, CommitFiles, Forked, HashedFiles, Repository
    from schemactl.model import Catalog, Commit, Project, Target, TopicName, Waiver
    from schemactl.target_numbers import Judged


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
    from schemactl.checking import Fork, WaiverFile, with_waivers
    from schemactl.checking.run import Run
    from schemactl.target_numbers import numbered

    def on_commit(done: int, total: int | None) -> None:
        deadline.look()
        progress(done, total)

    deadline.begin("opening the repository")
    with history.Repository.open(request.directory) as repository:
        deadline.begin("reading the declared files")
        proposed, project, files = _files(request, repository, note)
        if not request.base and in_ci():
            _require_base(request, repository, proposed)
        target = (
            declare.choose_target(project, request.target, f"--target {request.target}")
            if request.target is not None
            else None
        )
        declared, numbers, waivers = read_files(repository, project, files)
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
        changes = forked.changes(files, declared)
        declared, forked = numbered(target, numbers, declared, forked, note)
        approved, base = forked.approved, forked.base
        fork = Fork(base.catalog, base.tip, *changes)
        tips = {base.tip, approved.tip} if waivers else set()
        known: Counter[tuple[str, str, str]] = reduce(
            or_, (_waived_at(repository, project, tip) for tip in tips), Counter()
        )
        file = WaiverFile(waivers, known, request.today)

        @cache
        def in_force(commit: Commit) -> tuple[Waiver, ...]:
            return replace(file, waivers=history.waivers_at(repository, project, commit)).in_force

        found = _compared(request, (proposed, project), target, files, declared, forked, fork, in_force)
        if request.base and isinstance(files, history.CommitFiles):
            paths = {project.path, project.waivers, *paths_of(declared), *numbers.paths}
            notes = _not_judged(repository, project, files, paths)
            found = replace(found, notes=(*found.notes, *notes))
        run = Run(declared.catalog, base.catalog, project)
        is_whole = not (request.topics or request.namespaces or target)
        others = frozenset(name for each in numbers.records for name in each.topics)
        report = with_waivers(found, run, file, is_whole=is_whole, numbered=others)
        is_recorded = request.staged and is_whole and not request.config
        if is_recorded and not report.count("error") and Path.cwd() == Path(request.directory):
            _record(repository, proposed, declared, numbers)
        if request.staged and head and not in_ci():
            now, then = Counter(each.key for each in waivers), _waived_at(repository, project, head)
            changed = {key for key in now | then if now[key] != then[key]}
            before = history.CommitFiles(repository, head)
            found = _of_this_commit(found, report, before, files, declared, forked, project.path, changed)
            file = replace(file, known=file.known | then)
            report = with_waivers(found, run, file, is_whole=is_whole, numbered=others)
            if report.count("error") and approved.tip == head:
                report = replace(report, notes=(*report.notes, _JUDGED_AGAINST_HEAD))
    return report


_JUDGED_AGAINST_HEAD: Final = (
    "a commit that replaces this one is judged against it, as hooks are not told; to judge it against the one before: "
    "SCHEMACTL_AMEND=1 git commit --amend"
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
    settings: str,
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
        paths = (settings, *([place] if place else ()), *(made_of(name) if name else ()))
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


def _record(repository: Repository, project: Project, declared: Declared, numbers: Judged) -> None:
    """Let the next check leave early where nothing of a schema is staged: see `early_exit`."""
    from schemactl import early_exit
    from schemactl.declare import PROJECT_FILE, in_roots

    if "" in project.roots or project.path != PROJECT_FILE or str(repository.top) != os.path.realpath("."):
        return
    definitions = chain.from_iterable(declared.dependencies.values())
    # Definitions beside the roots are watched by their folders, which are fewer.
    outside = {posixpath.dirname(path) or path for path in definitions if not in_roots(path, project)}
    early_exit.record({project.path, project.waivers, *project.roots, *outside, *numbers.places})


def _require_base(request: CheckRequest, repository: Repository, project: Project) -> None:
    """Refuse to judge what a CI system checked out against itself, or against what only the change calls approved.

    With `staged` what has been approved may be: the hook runs after a merge, too, where there is nothing to judge.

    Raises:
        UsageError: it would be, without --base.
    """
    from schemactl.history.approved import UnknownRef, approved, approved_project, resolve

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
            f"in CI, --base is needed here: HEAD is {ref} ({tip.short}), and would be judged against itself",
            fix=fix,
        )


def _is_settled(
    repository: Repository, project: Project, tip: Commit, reviewed: ApprovedProject | None
) -> bool:
    """Whether it is not for a change to move what leads to the commit `tip`: a remote has it, or there is none."""
    from schemactl.history.approved import by_default, is_clone, resolve

    if not is_clone(repository):
        return project.approved is None or bool(reviewed and not reviewed.proposed)
    found = resolve(repository, reviewed.ref) if reviewed and not reviewed.proposed else None
    if found and found[0].startswith("refs/remotes/"):
        return True
    ref, default = by_default(repository, project, local=True)
    return "/" in ref and default == tip


def _files(
    request: CheckRequest, repository: Repository, note: Callable[[object], None]
) -> tuple[Project, Project, CommitFiles | HashedFiles]:
    """Return the project as the files have it, the one by which they are judged, and the files: the index, HEAD, or the working tree.

    Raises:
        SchemactlError: there are none, or the project asks for what cannot be done with them.
    """
    from schemactl import declare, history

    files: CommitFiles | HashedFiles
    if repository.top is None and not request.staged:
        raise SchemactlError(
            "a bare repository has no files to check",
            fix="check in a clone; `schemactl log` and `plan` work here",
        )
    if request.staged or request.base:
        head = None if request.staged else repository.commit("HEAD")
        if not request.staged and head is None:
            raise SchemactlError(
                "--base checks what is committed, and there is no commit here yet",
                fix="commit first, or leave --base out to check the working tree",
            )
        files = history.CommitFiles(repository, head) if head else history.IndexFiles(repository)
        proposed = declare.load_project(request.directory, request.config, files=files)[0]
        project = _judging(request, repository, proposed, lambda path: files.entry(path) is not None, note)
        files.folders = project.roots
    else:
        proposed, top = declare.load_project(request.directory, request.config)
        project = _judging(request, repository, proposed, lambda path: Path(top, path).is_file(), note)
        worktree = declare.WorktreeFiles(top, folders=project.roots)
        files = history.HashedFiles(worktree, repository.object_format)
    if repository.top:
        folders = (posixpath.dirname(project.path), *project.roots)
        repository.reject_embedded(repository.top / folder for folder in folders)
    return proposed, project, files


def _judging(
    request: CheckRequest,
    repository: Repository,
    proposed: Project,
    is_file: Callable[[str], bool],
    note: Callable[[object], None],
) -> Project:
    """Return the project by which a change is judged, whose settings are those that were approved."""
    from schemactl.checking import judging
    from schemactl.history.approved import judging_project

    try:
        found = judging_project(repository, request.directory, request.config, proposed, request.base)
    except SchemactlError as error:
        note(f"the settings of {proposed.path} at hand judge, not approved ones: {error.what}")
        return proposed
    if found and found.project.path != proposed.path and is_file(found.project.path):
        # A new project beside the approved one, which goes on.
        found = None
    if found and (root := _forgotten_root(proposed, found.project)) is not None:
        written = posixpath.relpath(root or ".", proposed.folder or ".")
        raise HistoryError(
            f"{found.ref} has the root `{root}`, which {proposed.path} does not know: the versions of topics that were "
            "declared there would be counted again",
            fix=f"add `{written}` to `previous_roots` in {proposed.path}",
        )
    return judging(proposed, found.project if found else None)


def _forgotten_root(proposed: Project, approved: Project) -> str | None:
    """Return the first root of `approved` that `proposed` neither has nor calls a previous one."""
    from schemactl.declare import in_roots

    return next(
        (
            root
            for root in (*approved.roots, *approved.previous_roots)
            if root not in {*proposed.roots, *proposed.previous_roots}
            and not in_roots(f"{root}/x".lstrip("/"), proposed, previous=True)
        ),
        None,
    )


def read_files(
    repository: Repository, project: Project, files: CommitFiles | HashedFiles
) -> tuple[Declared, Judged, tuple[Waiver, ...]]:
    """Return what the files say: declarations, numbers files, waivers. Raise DeclarationError if they have problems."""
    from schemactl import declare
    from schemactl.history import attributes
    from schemactl.target_numbers import judge_files

    store = repository.store(project.path)
    release = f"{project.release}\n".encode()
    before = bytes(store.read("valid") or b"")
    cache = declare.ValidationCache(
        declare.Definitions(files),
        lambda path: ":".join(files.entry(path) or ()),
        before.removeprefix(release) if before.startswith(release) else b"",
    )
    declared = declare.read(files, project, cache=cache)
    if (content := cache.content()) is not None:
        store.write("valid", release + content)
    numbers = judge_files(files, project)
    waivers, wrong_waivers = declare.read_waivers(files, project.waivers)
    wrong = sorted({*declared.problems, *numbers.problems, *wrong_waivers})
    judged = {project.path, *paths_of(declared), *numbers.paths, *(each.source.path for each in wrong)}
    if files.kind(project.waivers) != "missing":
        judged.add(project.waivers)
    if problems := [*wrong, *attributes.problems(repository, files, judged)]:
        raise DeclarationError(problems)
    return declared, numbers, waivers


def paths_of(declared: Declared) -> Iterator[str]:
    """Return the files that the declarations are made of."""
    sources = (
        *(each.source for each in declared.catalog.namespaces.values()),
        *(each.source for each in declared.catalog.topics.values()),
    )
    yield from (source.path for source in sources if source)
    yield from chain.from_iterable(declared.dependencies.values())


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


def _compared(
    request: CheckRequest,
    projects: tuple[Project, Project],
    target: Target | None,
    files: Files,
    declared: Declared,
    forked: Forked,
    fork: Fork,
    waivers: Callable[[Commit], Sequence[Waiver]],
) -> CheckReport:
    """Compare what is declared with what was approved.

    `projects` are as the files have it, and the one that judges, for `target` (None: none in particular); `waivers` returns those in
    force in the tree of a commit.
    """
    from schemactl.checking import Stepwise, check, overdue, with_settings
    from schemactl.checking.run import Run
    from schemactl.checking.schemas import UNPROTECTED
    from schemactl.declare import place_in_project

    proposed, project = projects
    approved, base, stepwise, branch, *_ = forked
    asked = {UNPROTECTED: "warning", **project.severities} if request.strict else project.severities
    only = _only(request, declared.catalog, approved.catalog)
    release = target.release if target and target.release else project.release
    report = check(
        declared.catalog,
        approved=approved.catalog,
        project=replace(project, severities=asked, release=release),
        label=f"{approved.ref} ({approved.tip.short})" if approved.tip else "an empty history",
        declared=declared.findings,
        only=only,
        fork=fork,
        stepwise=Stepwise(
            stepwise.catalog, [each.commit for each in branch.commits], forked.recorded, waivers
        )
        if stepwise and branch
        else None,
    )
    run = Run(declared.catalog, base.catalog, project)
    found = (*report.findings, *overdue(run, only, request.today))
    report = replace(report, findings=found, target=target.name if target else "")
    report = with_settings(report, run, proposed, lambda key: place_in_project(files, proposed, key))
    notes = _notes(project, report)
    if branch and branch.is_updated and base is approved:
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
