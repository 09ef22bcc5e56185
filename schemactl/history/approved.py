"""The approved ref, and the project file as that ref has it.

What a change says of registries and secrets counts once it has been reviewed: targets are opened by the approved file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from schemactl.core.errors import DeclarationError, HistoryError, SchemactlError, UsageError, first_of, meant
from schemactl.core.findings import Waiver
from schemactl.core.project import Project
from schemactl.core.schema import Commit
from schemactl.declare import project as declare_project
from schemactl.declare.files import read_bytes
from schemactl.declare.project import PROJECT_FILE, read_project
from schemactl.declare.waivers import read_waivers
from schemactl.history.files import CommitFiles
from schemactl.history.repository import Repository

_USUAL: Final = (
    *("refs/remotes/origin/main", "refs/remotes/origin/master"),
    *("refs/heads/main", "refs/heads/master"),
)
"""Where the approved ref is looked for, besides the remotes' default branches."""

_STEPS: Final = re.compile(r"[~^]|@\{")
"""Where what follows leads on from a ref (gitrevisions)."""

_ID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.IGNORECASE)


class UnknownRef(HistoryError):
    """There is no such ref, or several are called like that."""


class ApprovedProject(NamedTuple):
    """The project of an approved commit, and the name of the ref that leads there.

    `proposed`: only the files at hand name that ref, as the default branch has no project file.
    """

    project: Project
    ref: str
    proposed: bool = False


def resolve(repository: Repository, name: str) -> tuple[str, Commit] | None:
    """Return the full name of the ref or commit `name`, and the commit that it leads to; None: there is none.

    Other than with git, a remote's branch (or its default branch, where the remote alone is named) comes before a tag or a
    branch of the same name: no tag or local branch takes the place of the record. Raise UnknownRef where several have the name.
    """
    match = _STEPS.search(name)
    ref, steps = (name[: match.start()], name[match.start() :]) if match else (name, "")
    local = [f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/{ref}"]
    groups = [[f"refs/remotes/{ref}"], [f"refs/remotes/{ref}/HEAD"], local, [ref]]
    if _ID.fullmatch(ref) or not ref or ref.startswith("refs/") or ref == "HEAD":
        groups = [[ref]]
    for group in groups:
        found = {each: tip for each in group if (tip := repository.commit(each + steps))}
        if len(found) > 1:
            raise UnknownRef(
                f"{name!r} may be any of {', '.join(found)}",
                fix=f"write the full name, as {next(iter(found))}",
            )
        for each, tip in found.items():
            return each + steps, tip
    return None


def resolve_shared(repository: Repository, name: str) -> tuple[str, Commit] | None:
    """Return what `resolve` does; in the bare repository that clones are made of, `origin/main` is its own main."""
    return next((found for each in _in_bare(repository, name) if (found := resolve(repository, each))), None)


def approved(repository: Repository, project: Project, ref: str | None = None) -> tuple[str, Commit | None]:
    """Return the ref whose first-parent history is the record, as people write it, and its tip.

    That is `ref`, else what the project file names, else the default branch of the remote, else the branch main or master. The
    tip is None in a repository without commits that has no remote, or fetched nothing from it: nothing is approved yet.

    Raises:
        UnknownRef: there is no such ref, or there are several.
        HistoryError: the history behind it is incomplete.
    """
    name = ref or project.approved
    for candidate in _in_bare(repository, name) if name else _candidates(repository):
        if found := resolve(repository, candidate):
            repository.require_trees()
            return _short(candidate), found[1]
    refs = repository.refs()
    fetched = repository.common_directory / "FETCH_HEAD"
    # A fetch leaves FETCH_HEAD empty when the remote has no branch.
    nothing_fetched = fetched.is_file() and not fetched.stat().st_size
    if not refs and repository.commit("HEAD") is None and (not _with_url(repository) or nothing_fetched):
        return name or "main", None
    if name:
        raise UnknownRef(
            f"there is no ref {name!r} in this repository, and the approved history is read from it",
            fix=advice(
                repository, name, refs, "with --base" if ref else "as `approved:` in the project file"
            ),
        )
    raise UnknownRef(
        "no ref is known to hold the approved history: no remote's default branch is known, and there is no main or master",
        fix=f"name it as `approved:` in {project.path}; {_those(repository, refs)}",
    )


def approved_project(
    directory: str, config: str | None, proposed: Project, *, local: bool = False
) -> ApprovedProject | None:
    """Return the project that `directory` belongs to, as the approved ref has it; None: nothing has been approved yet.

    The files at hand do not say which ref that is. It is the remote's default branch (else main or master), or what the project
    file there names as `approved`. Only where nothing was fetched may the files at hand name one, and only a branch.

    Args:
        directory: the folder of work.
        config: the path of the project file where the user named it, from `directory`; in a bare repository from the top.
        proposed: the project as the files at hand have it.
        local: a clone's own main or master counts, too, where its remote's default branch is not known. It may be anybody's:
            not for what opens a target.

    Raises:
        HistoryError: which ref is the approved one is not known.
        SchemactlError: the approved project file has problems.
    """
    try:
        repository = Repository.open(directory)
    except HistoryError:
        here = Path(directory).resolve()
        if "GIT_DIR" in os.environ or any(os.path.lexists(each / ".git") for each in (here, *here.parents)):
            raise
        return None
    with repository:
        return _approved_project(repository, directory, config, proposed, local=local)


def _approved_project(
    repository: Repository, directory: str, config: str | None, proposed: Project, *, local: bool
) -> ApprovedProject | None:
    ref, tip = by_default(repository, proposed, local=local)
    first = _project_at(repository, tip, ref, directory, config)
    if first is not None and first.approved is None:
        return ApprovedProject(first, ref)
    # Where the default branch has no project file, the project may live on another one from its beginning.
    says = first or (proposed if proposed.approved else None)
    if says is None or tip is None:
        return None
    named, there = approved(repository, says)
    found = _project_at(repository, there, named, directory, config)
    return ApprovedProject(found, named, proposed=first is None) if found else None


def judging_project(
    repository: Repository, directory: str, config: str | None, proposed: Project, base: str | None
) -> ApprovedProject | None:
    """Return the project whose settings judge the work on HEAD: as it was approved where that work began.

    Args:
        repository: of `directory`.
        directory: the folder of work.
        config: the path of the project file where the user named it.
        proposed: the project as the files at hand have it.
        base: the approved ref; None: it is found as `approved_project` does.

    Returns:
        The project, and the ref that leads there; None: nothing has been approved yet, or no project file.

    Raises:
        HistoryError: which ref is the approved one is not known.
        SchemactlError: the approved project file has problems.
    """
    found = None if base else _approved_project(repository, directory, config, proposed, local=True)
    if not base and found is None:
        return None
    ref, tip = approved(repository, proposed, base or (found.ref if found else None))
    head = repository.commit("HEAD")
    left = repository.merge_base(head, tip) if head and tip else tip
    project = _project_at(repository, left, ref, directory, config)
    if project is None and (since := _project_at(repository, tip, ref, directory, config)):
        # The work began before there was a project; what was approved since judges it, if it is the same one.
        project = since if since.path == proposed.path else None
    return ApprovedProject(project, ref) if project else None


def waivers_at(repository: Repository, project: Project, commit: Commit) -> tuple[Waiver, ...]:
    """Return the waivers in the tree of a commit, at the path that its own project file names.

    What was approved by that commit is judged by these, whatever has become of the file since, and never by the clock. Entries that
    cannot be read are none.
    """
    files = CommitFiles(repository, commit)
    return read_waivers(files, project_at(repository, project, commit).waivers)[0]


def project_at(repository: Repository, project: Project, commit: Commit) -> Project:
    """Return `project` as a commit has it; where that cannot be read, itself with all the roots that it knows."""
    try:
        found = read_project_at(repository, commit, project.path)
    except DeclarationError:
        found = None
    return found or replace(project, roots=(*project.roots, *project.previous_roots))


def by_default(
    repository: Repository, proposed: Project, *, local: bool = False
) -> tuple[str, Commit | None]:
    """Return the ref that is approved whatever the files at hand say, and its tip, as `approved` does.

    In a clone that is a branch of a remote: what is called main here may be anybody's, and counts only as `local`. Raise
    HistoryError where the remote's default branch is not known, and none of its own branches is named.
    """
    unknown: HistoryError | None = None
    remotes = _with_url(repository)
    try:
        ref, tip = approved(repository, replace(proposed, approved=None))
        if local or tip is None or repository.top is None or "/" in ref or not remotes:
            return ref, tip
    except HistoryError as error:
        if not proposed.approved:
            raise
        unknown = error
        if not is_clone(repository):
            ref, tip = approved(repository, proposed)
            found = resolve(repository, ref) if tip else None
            if found is None or found[0].startswith("refs/heads/"):
                return ref, tip
    remote = min(remotes, key=lambda name: name != "origin", default="origin")
    raise HistoryError(
        "the target is taken from the approved project file, and this clone does not know the remote's default branch",
        fix=f"`git fetch {remote} && git remote set-head {remote} --auto`; or, if you trust these files, give --trust-working-tree",
    ) from unknown


def is_clone(repository: Repository) -> bool:
    """Return whether commits were fetched into this repository, or are to be: its branches may be anybody's."""
    # What a bare repository has as branches, it has for everybody.
    return repository.top is not None and (
        bool(_with_url(repository))
        or bool(repository.run("for-each-ref", "--count=1", "refs/remotes/"))
        or any((each / "FETCH_HEAD").is_file() for each in (repository.own, repository.common_directory))
    )


def load_project(directory: str, config: str | None = None) -> tuple[Project, str]:
    """Return the project that `directory` belongs to, and the folder that its relative paths start from.

    As `declare.load_project`; a bare repository, which has no files, gives it as HEAD's commit has it (`config` is a path there).
    """
    try:
        return declare_project.load_project(directory, config)
    except DeclarationError:
        raise
    except SchemactlError:
        try:
            repository = Repository.open(directory)
        except HistoryError:
            repository = None
        if repository is None:
            raise
        with repository:
            head = repository.commit("HEAD") if repository.top is None else None
            if head is None:
                raise
            path = config or PROJECT_FILE
            found = read_project_at(repository, head, path)
        if found is None:
            raise UsageError(
                f"this repository is bare, and its HEAD ({head.short}) has no file {path}",
                fix="name the project file, as a path in that commit, with --config",
            ) from None
        return found, str(Path(directory).resolve())


def read_project_at(repository: Repository, commit: Commit, path: str) -> Project | None:
    """Return the project whose file is at `path` in a commit; None: it has none. Raise DeclarationError where that is wrong."""
    files = CommitFiles(repository, commit)
    return read_project(path, read_bytes(files, path)) if files.kind(path) == "file" else None


def _project_at(
    repository: Repository, commit: Commit | None, ref: str, directory: str, config: str | None
) -> Project | None:
    """Return the project of a commit; None: it has no project file."""
    if commit is None:
        return None
    try:
        if repository.top is None:
            return read_project_at(repository, commit, config or PROJECT_FILE)
        return declare_project.load_project(directory, config, files=CommitFiles(repository, commit))[0]
    except DeclarationError as error:
        raise SchemactlError(
            f"the project file as {ref} has it cannot be read: {error.problems[0]}",
            fix="have it mended there; or, if you trust the files here, give --trust-working-tree",
        ) from error
    except HistoryError:
        raise
    except SchemactlError:
        return None


def _in_bare(repository: Repository, name: str) -> list[str]:
    """Return `name`, and after `origin/main` also `main` in the bare repository that clones are made of."""
    _, _, branch = name.removeprefix("refs/remotes/").partition("/")
    return [name, f"refs/heads/{branch}"] if branch and repository.top is None else [name]


def _candidates(repository: Repository) -> list[str]:
    """Return the refs to try when none is named, the best first."""
    origin = "refs/remotes/origin/"
    defaults = sorted(repository.default_branches, key=lambda name: not name.startswith(origin))
    if len(defaults) > 1 and not defaults[0].startswith(origin):
        names = " and ".join(_short(name) for name in defaults)
        raise UnknownRef(
            f"several remotes have a default branch ({names}), and none of them is called origin",
            fix="name the one that records what was approved as `approved:` in schemactl.yaml",
        )
    # A checkout in CI often has origin/main without the note that this is the default branch.
    return [*defaults[:1], *_USUAL]


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")


def _with_url(repository: Repository) -> list[str]:
    """Return the names of the remotes that have an address."""
    return sorted(name for name, settings in repository.remotes.items() if "url" in settings)


def advice(repository: Repository, name: str, refs: Sequence[str], where: str) -> str:
    """Return how the ref `name` comes to be there, or how another of `refs` is named: `where`."""
    remote, _, branch = name.removeprefix("refs/remotes/").partition("/")
    if branch and remote in repository.remotes:
        # A clone of a single branch does not keep others, even when it fetches them.
        everything = f"refs/heads/*:refs/remotes/{remote}/*"
        has_all = any(everything in spec for spec in repository.remotes[remote].get("fetch", []))
        keep = "" if has_all else f"git remote set-branches --add {remote} {branch} && "
        is_new = branch in refs and not any(ref.startswith(f"{remote}/") for ref in refs)
        first = f"; when nothing was pushed there yet, `git push {remote} {branch}`" if is_new else ""
        return f"`{keep}git fetch {remote} {branch}`{first}"
    near = meant(name, refs)
    hint = f"did you mean {near}? " if near else ""
    return f"{hint}name another ref {where}; {_those(repository, refs)}"


def _those(repository: Repository, refs: Sequence[str]) -> str:
    if refs:
        return f"this repository has {first_of(refs, 8)}"
    fetches = " && ".join(f"git fetch {name}" for name in _with_url(repository))
    return f"this repository has no ref yet: `{fetches}`"
