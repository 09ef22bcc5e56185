"""`schemactl check`: the hook and the pull-request check."""

from __future__ import annotations

import argparse
import os
import posixpath
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli import REFUSED, Context
from schemactl.cli.parser import add_options
from schemactl.cli.selection import add_filters
from schemactl.deadline import DEFAULT_S, Deadline, OutOfTime, within
from schemactl.early_exit import in_ci
from schemactl.errors import DeclarationError, SchemactlError, UsageError, did_you_mean
from schemactl.output import write
from schemactl.printing import uncleaned
from schemactl.report import CHECK_FORMATS, OBEYED, render_check
from schemactl.report.style import fit, terminal_width
from schemactl.topic_match import require_matches, select

if TYPE_CHECKING:
    from schemactl.check import CheckReport, Fork
    from schemactl.declare import Declared
    from schemactl.history import ApprovedProject, CommitFiles, Forked, HashedFiles, Repository
    from schemactl.model import Catalog, Commit, Project, TopicName
    from schemactl.target_numbers import Judged

_LONGEST_S = 1e6


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `check`."""
    parser.description = (
        "Compare the declared files with the approved history. For every changed schema, predict the broker's answer and "
        "whether readers can decode all messages. Exits with 100 when the check fails."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl check                          the working tree\n"
        "  schemactl check --staged                 what `git commit` would commit: the pre-commit hook\n"
        "  schemactl check --base origin/main       a pull request: HEAD, against the branch it goes to\n"
        "  schemactl check --format github --format sarif=schemactl.sarif\n"
        "  schemactl check --topic 'shop/sales/*'\n"
    )
    what = parser.add_mutually_exclusive_group()
    add_options(
        what,
        "--staged: the index, not the working tree",
        "--base REF: judge HEAD, not the working tree, against this approved ref (default: `approved` of the project file)",
    )
    add_options(
        parser,
        f"--format FORMAT[=FILE]: {', '.join(CHECK_FORMATS)}; may be repeated; all but one need a file (default: text)",
        action="append",
    )
    add_filters(parser)
    add_options(parser, "--strict: warnings fail, too")
    add_options(
        parser,
        f"--timeout SECONDS: give up after this many seconds, with exit code 1 (default: {DEFAULT_S:g})",
        type=_seconds,
        default=DEFAULT_S,
    )


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < (seconds := float(text)) < _LONGEST_S:
            return seconds
    raise argparse.ArgumentTypeError(f"expected a number of seconds between 0 and {_LONGEST_S:g}")


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: fine; 100: findings that fail."""
    if args.base is not None and not args.base.strip():
        raise UsageError(
            "--base is empty: is a variable of the CI system unset here?",
            fix="give the branch this will be merged into, such as --base origin/main, or a commit's id",
        )
    outputs = _outputs(args.format or ["text"])
    try:
        return within(args.timeout, "starting", lambda deadline: _run(args, context, outputs, deadline))
    except OutOfTime as error:
        raise SchemactlError(error.what, fix=error.fix) from None


def _run(
    args: argparse.Namespace, context: Context, outputs: list[tuple[str, str | None]], deadline: Deadline
) -> int:
    report = report_of(args, context, deadline)
    deadline.begin("writing the report")
    for name, path in outputs:
        text = render_check(report, name, color=context.color and path is None)
        if path is None:
            text = fit(text, terminal_width()) if name == "text" else text
            print(text, file=uncleaned(sys.stdout) if name == OBEYED else sys.stdout)
        else:
            _write(Path(context.directory) / path, text + "\n", context)
    failing = report.count("error") + (report.count("warning") if args.strict else 0)
    return REFUSED if failing else 0


def report_of(args: argparse.Namespace, context: Context, deadline: Deadline) -> CheckReport:
    """Compare the declared files with the approved history."""
    from schemactl import history
    from schemactl.check import Fork
    from schemactl.target_numbers import contradictions

    deadline.begin("opening the repository")
    progress = context.reading_history()

    def told(done: int, total: int | None) -> None:
        deadline.look()
        progress(done, total)

    with history.Repository.open(context.directory) as repository:
        deadline.begin("reading the declared files")
        project, files = _files(args, context, repository)
        if not args.base and in_ci():
            _refuse_itself(context, repository, project, staged=args.staged)
        declared, numbers = _declared(repository, project, files)
        deadline.begin("reading the approved history")
        forked = history.read_forked(
            repository, project, repository.commit("HEAD"), args.base, stepwise=bool(args.base), progress=told
        )
        approved, base = forked.approved, forked.base
        context.note(approved.notes)
        deadline.begin("comparing what is declared with what was approved")
        fork = Fork(base.catalog, base.tip, *forked.changes(files, declared))
        histories = [forked.approved.catalog, *([forked.stepwise.catalog] if forked.stepwise else [])]
        if problems := contradictions(numbers.records, declared.catalog, histories):
            raise DeclarationError(problems)
        report = _compared(args, project, declared, forked, fork)
        if args.base and isinstance(files, history.CommitFiles):
            paths = {project.path, *_paths(declared), *numbers.paths}
            notes = _not_judged(repository, project, files, paths)
            report = replace(report, notes=(*report.notes, *notes))
        is_whole = args.staged and not (args.topic or args.namespace or context.config)
        if is_whole and not report.count("error") and Path.cwd() == Path(context.directory):
            _record(repository, project, declared, numbers)
    return report


def _record(repository: Repository, project: Project, declared: Declared, numbers: Judged) -> None:
    """Let the next check leave early where nothing of a schema is staged: see `early_exit`."""
    from schemactl import early_exit
    from schemactl.declare import PROJECT_FILE, in_roots

    if "" in project.roots or project.path != PROJECT_FILE or str(repository.top) != os.path.realpath("."):
        return
    definitions = chain.from_iterable(declared.dependencies.values())
    # Definitions beside the roots are watched by their folders, which are fewer.
    outside = {posixpath.dirname(path) or path for path in definitions if not in_roots(path, project)}
    early_exit.record({project.path, *project.roots, *outside, *numbers.places})


def _refuse_itself(context: Context, repository: Repository, project: Project, *, staged: bool) -> None:
    """Refuse to judge what a CI system checked out against itself, or against what only the change calls approved.

    With `staged` what has been approved may be: the hook runs after a merge, too, where there is nothing to judge.

    Raises:
        UsageError: it would be, without --base.
    """
    from schemactl.history.approved import UnknownRef, approved, approved_project, resolve

    fix = "name the branch this will be merged into, such as --base origin/main; after a merge, the commit before it"
    if staged:
        fix = "instead of --staged, name the branch this will be merged into, such as --base origin/main (SKIP=schemactl-check keeps pre-commit from the hook)"
    try:
        ref, tip = approved(repository, project)
    except UnknownRef as error:
        raise UsageError(f"in CI, --base is needed here: {error.what}", fix=f"{fix}. {error.fix}") from error
    try:
        reviewed = approved_project(context.directory, context.config, project, local=True)
        meant = resolve(repository, reviewed.ref) if reviewed else None
    except SchemactlError as error:
        raise UsageError(f"in CI, --base is needed here: {error.what}", fix=fix) from error
    if reviewed and meant and meant[1] != tip:
        raise UsageError(
            f"in CI, --base is needed here: {project.path} calls {ref} the approved ref, and {reviewed.ref} is what was approved",
            fix=fix,
        )
    if staged and tip and _is_settled(repository, project, tip, reviewed):
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
    args: argparse.Namespace, context: Context, repository: Repository
) -> tuple[Project, CommitFiles | HashedFiles]:
    """Return the project, and the files to check: the index, HEAD, or the working tree.

    Raises:
        SchemactlError: there are none, or the project asks for what cannot be done with them.
    """
    from schemactl import declare, history

    files: CommitFiles | HashedFiles
    if repository.top is None and not args.staged:
        raise SchemactlError(
            "a bare repository has no files to check",
            fix="check in a clone; `schemactl log` and `plan` work here",
        )
    if args.staged or args.base:
        head = None if args.staged else repository.commit("HEAD")
        if not args.staged and head is None:
            raise SchemactlError(
                "--base checks what is committed, and there is no commit here yet",
                fix="commit first, or leave --base out to check the working tree",
            )
        files = history.CommitFiles(repository, head) if head else history.IndexFiles(repository)
        project = declare.load_project(context.directory, context.config, files=files)[0]
        files.folders = project.roots
    else:
        project, top = declare.load_project(context.directory, context.config)
        worktree = declare.WorktreeFiles(top, folders=(*project.roots,))
        files = history.HashedFiles(worktree, repository.object_format)
    if repository.top:
        folders = (posixpath.dirname(project.path), *project.roots)
        repository.refuse_embedded(repository.top / folder for folder in folders)
    if project.waivers:
        raise SchemactlError(
            f"{project.path} has `waivers`, which this version does not support: a finding would wrongly count as waived",
            fix="remove `waivers`; `severities` can turn a rule down, also for one namespace",
        )
    return project, files


def _declared(
    repository: Repository, project: Project, files: CommitFiles | HashedFiles
) -> tuple[Declared, Judged]:
    """Return what the files say, the targets' numbers files among them. Raise DeclarationError if they have problems."""
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
    wrong = sorted({*declared.problems, *numbers.problems})
    judged = {project.path, *_paths(declared), *numbers.paths, *(each.source.path for each in wrong)}
    if problems := [*wrong, *attributes.problems(repository, files, judged)]:
        raise DeclarationError(problems)
    return declared, numbers


def _paths(declared: Declared) -> Iterator[str]:
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

    worktree = declare.WorktreeFiles(str(repository.top), folders=project.roots)
    here = history.HashedFiles(worktree, repository.object_format)
    paths = differing_files(files, here, judged)
    if paths:
        named = ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")
        yield (
            f"not judged: {len(paths)} file{'s' if len(paths) > 1 else ''} that differ{'' if len(paths) > 1 else 's'} from HEAD "
            f"({named}); commit them, or leave --base out"
        )


def _compared(
    args: argparse.Namespace, project: Project, declared: Declared, forked: Forked, fork: Fork
) -> CheckReport:
    from schemactl.check import Stepwise, check

    approved, base, stepwise, branch, *_ = forked
    report = check(
        declared.catalog,
        approved=approved.catalog,
        project=project,
        label=f"{approved.ref} ({approved.tip.short})" if approved.tip else "an empty history",
        declared=declared.findings,
        only=_only(args, declared.catalog, approved.catalog),
        fork=fork,
        stepwise=Stepwise(stepwise.catalog, [each.commit for each in branch.commits], forked.recorded)
        if stepwise and branch
        else None,
    )
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


def _only(args: argparse.Namespace, *catalogs: Catalog) -> frozenset[TopicName] | None:
    """Return the topics that --topic and --namespace leave; None: all."""
    if not args.topic and not args.namespace:
        return None
    names = {name for catalog in catalogs for name in catalog.topics}
    require_matches(names, args.topic, args.namespace, where="the declared files and the approved history")
    return select(names, args.topic, args.namespace)


def _outputs(wanted: list[str]) -> list[tuple[str, str | None]]:
    """Return formats with their files; None is standard output, which only one of them may have."""
    outputs: list[tuple[str, str | None]] = []
    for entry in wanted:
        name, separator, path = entry.partition("=")
        if name not in CHECK_FORMATS:
            near = did_you_mean(name, CHECK_FORMATS)
            raise UsageError(
                f"--format {entry}: expected one of {', '.join(CHECK_FORMATS)}, each with an optional =FILE{near}"
            )
        if separator and not path:
            raise UsageError(f"--format {entry}: a file name must follow the =")
        outputs.append((name, path or None))
    if sum(path is None for _, path in outputs) > 1:
        raise UsageError(
            "only one --format can go to standard output: give the others a file, as in sarif=report.sarif"
        )
    return outputs


def _write(path: Path, text: str, context: Context) -> None:
    """Write the whole text to the file, or leave it as it was."""
    try:
        write(path, text.encode("utf-8", "backslashreplace"), below=context.top)
    except OSError as error:
        raise SchemactlError(f"cannot write {path}: {error.strerror}") from error
    print(f"wrote {path}", file=sys.stderr)
