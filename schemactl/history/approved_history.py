"""Find the approved ref and the project file there, and read the approved history: every topic's versions at any position.

Targets are opened by the approved project file: what a change says of registries and secrets counts once it has been reviewed.

A position is a commit of the first-parent line of the approved ref. What was approved up to it is a beginning of the approved
history, so that its numbers are the same everywhere. Declarations count as of the position; what the project file says of
targets, as of the tip.
"""

from __future__ import annotations

import functools
import os
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from threading import RLock
from typing import Final, Generic, NamedTuple, TypeVar

from schemactl.core.catalog import Catalog, LazyMapping, Namespace, Topic
from schemactl.core.errors import (
    DeclarationError,
    HistoryError,
    Problem,
    SchemactlError,
    Source,
    UsageError,
    first_of,
    meant,
)
from schemactl.core.findings import Waiver
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import Policies
from schemactl.core.project import Project, Target
from schemactl.core.schema import Commit, DeferredInfo, SchemaInfo, SchemaType, SchemaVersion
from schemactl.declare import project as declare_project
from schemactl.declare.definition import AvroFileCache, Definitions
from schemactl.declare.document import Documents, NamespaceDocument, SchemaDeclaration, TopicDocument, read_documents
from schemactl.declare.files import SUFFIXES, Files, read_bytes
from schemactl.declare.project import PROJECT_FILE, read_project
from schemactl.declare.reader import in_roots, read_clients
from schemactl.declare.references import folders_above
from schemactl.declare.waivers import read_waivers
from schemactl.history.cache import Cache, DeclarationRow, NoteRow, VersionRow
from schemactl.history.commit_files import CommitFiles, Entry, content
from schemactl.history.git import FSCK, Repository, UnnamedBareRepository
from schemactl.history.versions import Derivation, Progress, StepFiles, named, no_progress

_USUAL: Final = (*("refs/remotes/origin/main", "refs/remotes/origin/master"), *("refs/heads/main", "refs/heads/master"))
"""Where the approved ref is looked for, besides the remotes' default branches."""

_STEPS: Final = re.compile(r"[~^]|@\{")
"""Where what follows leads on from a ref (gitrevisions)."""

T = TypeVar("T")

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
                f"{name!r} may be any of {', '.join(found)}", fix=f"write the full name, as {next(iter(found))}"
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
            fix=advice(repository, name, refs, "with --base" if ref else "as `approved:` in the project file"),
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


class JudgingProject(NamedTuple):
    """The approved project whose settings judge a change.

    Attributes:
        project: as the tip has it, or the newest commit of the approved line whose project file can be read.
        ref: the approved ref.
        tip: the commit that it leads to.
        unreadable: why the file at the tip cannot be read, and the commit whose file counts instead; None: it can.
    """

    project: Project
    ref: str
    tip: Commit
    unreadable: tuple[Problem, Commit] | None = None


def judging_project(
    repository: Repository, directory: str, config: str | None, proposed: Project, base: str | None
) -> JudgingProject | None:
    """Find the project whose settings judge the work on HEAD: that of the approved tip.

    Args:
        repository: of `directory`.
        directory: the folder of work.
        config: the path of the project file where the user named it.
        proposed: the project as the files at hand have it.
        base: the approved ref; None: it is found as `approved_project` does.

    Returns:
        The approved project; None: the approved history has no project file.

    Raises:
        HistoryError: which ref is the approved one is not known, or no commit has a project file that can be read.
    """
    ref, tip = approved(repository, proposed, base) if base else by_default(repository, proposed, local=True)
    found = _newest_readable(repository, tip, directory, config) if tip else None
    named = found.project.approved if found else proposed.approved
    if named and not base:
        # The default branch names another ref, or has no project file: then the project may live on another branch.
        ref, tip = approved(repository, found.project if found else proposed)
        found = _newest_readable(repository, tip, directory, config) if tip else None
    return found._replace(ref=ref) if found else None


def _newest_readable(repository: Repository, tip: Commit, directory: str, config: str | None) -> JudgingProject | None:
    """Return the project of the newest commit whose project file can be read; None: `tip` has no project file."""

    def read_at(files: CommitFiles) -> Project:
        if repository.top is None:
            path = config or PROJECT_FILE
            return read_project(path, read_bytes(files, path))
        return declare_project.load_project(directory, config, files=files)[0]

    try:
        newest = newest_readable(repository, tip, _project_paths(repository, directory, config), read_at)
    except (DeclarationError, HistoryError):
        raise
    except SchemactlError:
        return None
    if newest.content is None:
        assert newest.problem  # noqa: S101  what cannot be read has a problem
        raise HistoryError(
            f"no commit of the approved history has a project file that can be read: {newest.problem}",
            fix="correct the project file on the approved branch",
        )
    unreadable = (newest.problem, newest.commit) if newest.problem else None
    return JudgingProject(newest.content, "", tip, unreadable)


def _project_paths(repository: Repository, directory: str, config: str | None) -> list[str]:
    """Return the paths, from the repository's top, at which the project file of a folder may be."""
    if repository.top is None:
        return [config or PROJECT_FILE]
    top, here = repository.top.resolve(), Path(directory).resolve()
    if config is not None:
        return [(here / config).parent.resolve().joinpath(Path(config).name).relative_to(top).as_posix()]
    folders = [here, *here.parents]
    return [(folder / PROJECT_FILE).relative_to(top).as_posix() for folder in folders if folder.is_relative_to(top)]


class NewestReadable(NamedTuple, Generic[T]):
    """What the newest commit has whose files can be read.

    Attributes:
        content: None: no commit has it.
        commit: the commit that it was read from.
        problem: the first problem of the files at the tip; None: they can be read.
    """

    content: T | None
    commit: Commit
    problem: Problem | None = None


def newest_readable(
    repository: Repository, tip: Commit, paths: Sequence[str], read_at: Callable[[CommitFiles], T]
) -> NewestReadable[T]:
    """Read files of the approved tip, or of the newest commit on its first-parent line where they can be read.

    Args:
        repository: of the commits.
        tip: the newest commit.
        paths: the files that `read_at` reads.
        read_at: returns their content; it raises DeclarationError where they cannot be read.
    """
    try:
        return NewestReadable(read_at(CommitFiles(repository, tip)), tip)
    except DeclarationError as error:
        problem = error.problems[0]
    # Git takes paths from the folder of work.
    named = [os.path.relpath(repository.top / path, repository.directory) if repository.top else path for path in paths]
    for line in repository.run("rev-list", "--first-parent", tip.id, "--", *named).decode().split():
        commit = repository.commit(line)
        with suppress(SchemactlError):
            if commit and commit.id != tip.id:
                return NewestReadable(read_at(CommitFiles(repository, commit)), commit, problem)
    return NewestReadable(None, tip, problem)


def other_projects(repository: Repository, project: Project, tip: Commit) -> Iterator[Project]:
    """Yield the other projects of a repository that can be read at a commit."""
    listed = repository.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", tip.id)
    for path in listed.decode("utf-8", "surrogateescape").split("\0"):
        if path.rpartition("/")[2] == PROJECT_FILE and path != project.path:
            with suppress(DeclarationError):
                if found := read_project_at(repository, tip, path):
                    yield found


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


def by_default(repository: Repository, proposed: Project, *, local: bool = False) -> tuple[str, Commit | None]:
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
        fix=f"`git fetch {quote(remote)} && git remote set-head {quote(remote)} --auto`; or, if you trust these files, give --trust-working-tree",
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
        except UnnamedBareRepository:
            raise
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
        keep = "" if has_all else f"git remote set-branches --add {quote(remote)} {quote(branch)} && "
        is_new = branch in refs and not any(ref.startswith(f"{remote}/") for ref in refs)
        first = f"; when nothing was pushed there yet, `git push {quote(remote)} {quote(branch)}`" if is_new else ""
        return f"`{keep}git fetch {quote(remote)} {quote(branch)}`{first}"
    near = meant(name, refs)
    hint = f"did you mean {near}? " if near else ""
    return f"{hint}name another ref {where}; {_those(repository, refs)}"


def _those(repository: Repository, refs: Sequence[str]) -> str:
    if refs:
        return f"this repository has {first_of(refs, 8)}"
    fetches = " && ".join(f"git fetch {quote(name)}" for name in _with_url(repository))
    return f"this repository has no ref yet: `{fetches}`"


# The approved history


_KEPT_DOCUMENTS: Final = 8_192

_KEPT_STEPS: Final = 4


@dataclass(frozen=True, slots=True)
class HistoryNote:
    """Something approved that cannot be read and made no version: where, what, by which commit, of which topic if that is known."""

    commit: Commit
    problem: Problem
    topic: TopicName | None = None

    def __str__(self) -> str:
        about = f"{self.topic}: " if self.topic else ""
        return f"{about}{self.commit.short} made no version: {self.problem.source}: {self.problem.what}"


class Position(NamedTuple):
    """A commit of the approved line, and the name that leads there; `ref` is that name in full."""

    name: str
    ref: str
    commit: Commit


class History:
    """What Git records as approved, at the step of `cache`; -1: nothing is approved yet.

    Attributes:
        catalog: every topic that was ever declared, with all its versions; the rest of it as declared at the tip. Topics
            that are no longer declared are `deleted` and keep their versions. It can be read after `repository` was closed.
        ref: whose first-parent history it is, as people write it; or the name of the position that it goes up to.
        tip: its newest commit; None in a repository without commits.
        commits: how many commits it has.
        grown: tenant/namespace/topic of those that get further versions in the whole history.
        notes: what cannot be read at the tip; there the last readable state counts.
        repaired: what could not be read at older commits, made no version there, and was repaired or removed since.
    """

    def __init__(self, repository: Repository, project: Project, ref: str, cache: Cache) -> None:
        self.ref = ref
        self._cache = cache
        self._whole: History | None = None
        self.commits = cache.step + 1
        self.grown: frozenset[str] = frozenset()
        self._repository = repository
        self._project = project
        self._definitions = DefinitionLoader(repository, cache)
        self._commit = functools.cache(cache.commit)
        self.tip = self._commit(cache.step) if cache.step >= 0 else None
        namespaces = LazyMapping(self._namespace_names, self._namespace)
        topics = LazyMapping(self._topic_names, self._topic)
        self.catalog = Catalog(namespaces, topics, LazyMapping(self._former_names, self._former))
        self.notes, self.repaired = (tuple(map(self._note, notes)) for notes in cache.notes())

    def with_catalog(self, catalog: Catalog, *, whole: History | None = None) -> History:
        """Return the same history with another `catalog`, and as a part of another `whole`."""
        shown = copy(self)
        shown.catalog, shown._whole = catalog, whole or self._whole  # noqa: SLF001  of a copy
        return shown

    @property
    def whole(self) -> History:
        """The history up to the tip of the approved ref: itself, unless it goes up to a position."""
        return self._whole or self

    @property
    def later(self) -> int:
        """How many commits follow in the whole history."""
        return self.whole.commits - self.commits

    def has(self, commit: Commit) -> bool:
        """Return whether a commit is one of this first-parent history."""
        return self._cache.step_of(commit.id) is not None

    def concerned_since(self, older: History) -> frozenset[str] | None:
        """Return tenant/namespace/topic of those that commits after the tip of `older` concern; None: that is not on this line."""
        step = self._cache.step_of(older.tip.id) if older.tip else -1
        if step is None:
            return None
        before = self._cache.at(step)
        found = {*self._cache.recorded(step)}
        for path in self._cache.changed_since(before):
            for cache in (before, self._cache):
                found |= {each.schema for each in cache.declared(path) if each.schema}
                found.update(*(cache.users(each) for each in (path, *folders_above(path))))
        return frozenset(found)

    def unapproved_files(self, head: Commit) -> list[str]:
        """Return the files of declarations, definitions and overlays that work up to `head` changed, and that are not approved so.

        Raises:
            HistoryError: a shallow clone ends before the work left this history.
        """
        left = self._repository.merge_base(head, self.tip) if self.tip else None
        if left is None or left.id == head.id:
            return []
        names = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", left.id, head.id)
        changed = self._repository.run(*names).decode("utf-8", "surrogateescape").split("\0")[:-1]
        overlays = {path for target in self._project.targets.values() for path in target.overlays}
        here = CommitFiles(self._repository, head)
        return [
            path
            for path in changed
            if path.endswith(SUFFIXES)
            and (
                path in overlays
                or in_roots(path, self._project)
                or any(map(self._cache.users, (path, *folders_above(path))))
            )
            and here.entry(path) != self._cache.entry(path)
        ]

    def position(self, name: str, where: str) -> Position:
        """Return the position called `name`, a ref or commit; `where` is how another one is named.

        Raises:
            UnknownRef: there is no such ref.
            HistoryError: it is no commit of the approved line.
        """
        found = _named(self._repository, name, where)
        if not self.has(found.commit):
            raise _off_the_line(self._repository, self, name, found.commit)
        return found

    def promoted(self, target: Target) -> Position:
        """Return the position that `promoted` of the target names.

        Raises:
            UnknownRef: there is no such ref yet, or not here.
            HistoryError: it leads beside the approved line.
        """
        name = target.promoted or self.ref
        try:
            return self.position(name, f"as `promoted:` of the target {target.name}")
        except UnknownRef as error:
            raise UnknownRef(
                f"{error.what}, and the target {target.name} is where that leads",
                fix=f"{error.fix}; or, when nothing was promoted yet, `schemactl promote {quote(target.name)} --to {quote(self.ref)}`",
            ) from None
        except HistoryError as error:
            raise HistoryError(
                f"{target.name} is `promoted: {name}`. {error.what}",
                fix=f"{error.fix}: `schemactl promote {quote(target.name)} --to COMMIT`, and push that",
            ) from None

    def until(self, position: Position) -> History:
        """Return this history as it was at a position of it, with the roots that the project had then."""
        step = self._cache.step_of(position.commit.id)
        if step is None:
            raise ValueError(f"{position.commit.id} is not on the line of {self.ref}")
        project = project_at(self._repository, self._project, position.commit)
        found = History(self._repository, project, position.name, self._cache.at(step))
        found._whole, found.grown = self, self._cache.recorded(step)
        return found

    def read_at(self, name: str) -> History:
        """Return the history up to the commit `name`, which need not be approved: its versions are counted along its own line.

        Raises:
            UnknownRef: there is no such commit.
        """
        found = _named(self._repository, name, "in its place")
        if self.has(found.commit):
            return self.until(found)
        state = Derivation(self._repository, self._project).at(found.commit, keep=False)
        return History(self._repository, project_at(self._repository, self._project, found.commit), name, state)

    def later_versions(self) -> dict[TopicName, tuple[SchemaVersion, ...]]:
        """Return the versions that follow in the whole history, of each topic that has some."""
        before, after = self.catalog, self.whole.catalog
        names = [name for name in after.topics if name.schema_id in self.grown]
        return {name: after.versions(name)[len(before.versions(name)) :] for name in names}

    def revisions(self, *paths: str) -> Iterator[Files]:
        """Yield the files after each commit that brought, changed or removed one of `paths`, the newest first."""
        steps = {step for path in paths for step in self._cache.steps_at(path)}
        for step in sorted(steps, reverse=True):
            yield StepFiles(self._repository, self._cache.at(step))

    def current(self, topic: TopicName) -> int | None:
        """Return the number of the version in force: not the highest one after a return to older content; None: none is."""
        state = self._cache.state(topic.schema_id, topic.domain)
        return state.number if state and self._is_today(topic) else None

    def declaration(self, topic: TopicName) -> SchemaDeclaration | None:
        """Return how the schema of a topic is declared now; None: no file declares one."""
        state = self._cache.state(topic.schema_id, topic.domain)
        if state is None or state.deleted:
            return None
        step = self._cache.step if state.as_of is None else state.as_of
        return self._definitions.topic(step, state.path, topic.schema_id).schema

    def since(self, topic: TopicName) -> Commit | None:
        """Return the commit since which the topic stands as it does; None: it was never declared."""
        state = self._cache.state(topic.schema_id, topic.domain)
        return self._commit(state.since) if state else None

    def was_interrupted(self, topic: TopicName) -> bool:
        """Return whether the topic had no schema for a time, after it had one."""
        return self._cache.was_interrupted(topic.schema_id, topic.domain)

    def _topic_names(self) -> list[TopicName]:
        return sorted(TopicName.parse(f"{domain}://{schema}") for schema, domain in self._cache.topics())

    def _topic(self, name: TopicName) -> Topic | None:
        """Return the topic as it is declared now in today's roots, or was last, with its versions."""
        state = self._cache.state(name.schema_id, name.domain)
        if state is None:
            return None
        versions = tuple(self._versions(name.schema_id))
        generation = 1 + sum(version.info is None for version in versions)
        if state.deleted:
            source = self._last_source(name, state.since)
            return Topic(name, versions=versions, generation=generation, deleted=True, source=source)
        step = self._cache.step if state.as_of is None else state.as_of
        declared = self._definitions.declared(step, state.path, name.schema_id)
        if not self._is_today(name):
            return Topic(name, versions=versions, generation=generation, deleted=True, source=declared.source)
        schema = None
        if state.number is not None and (info := versions[state.number].info):
            [row] = [each for each in self._cache.versions(name.schema_id) if each.number == state.number]
            schema = self._definitions.in_force(info, row, step, state.path, name.schema_id)
        return replace(declared, schema=schema, versions=versions, generation=generation)

    def _last_source(self, name: TopicName, deleted: int) -> Source | None:
        """Return where the topic was declared before the step that deleted it."""
        before = self._cache.at(deleted - 1).state(name.schema_id, name.domain)
        if before is None:
            return None
        step = deleted - 1 if before.as_of is None else before.as_of
        return self._definitions.topic(step, before.path, name.schema_id).source

    def _versions(self, schema: str) -> Iterator[SchemaVersion]:
        """Yield the topic's versions, with the tombstones before each generation, of the commit that began it."""
        following = 0
        for row in self._cache.versions(schema):
            version = self._version(schema, row)
            for number in range(following, row.number):
                yield SchemaVersion(number, None, version.commit)
            yield version
            following = row.number + 1

    def _version(self, schema: str, version: VersionRow) -> SchemaVersion:
        info = self._definitions.info(SchemaType[version.type], version.step, version.path, schema)
        return SchemaVersion(version.number, info, self._commit(version.step))

    def _is_today(self, name: TopicName) -> bool:
        """Return whether a file in today's roots declares the topic, or its namesake in the other domain."""
        return any(in_roots(each.path, self._project) for each in self._cache.declarations(name.schema_id))

    def _namespace_names(self) -> list[NamespaceName]:
        held = filter(lambda each: in_roots(each.path, self._project), self._cache.declarations(None))
        return list(dict.fromkeys(NamespaceName.parse(each.name) for each in held))

    def _namespace(self, name: NamespaceName) -> Namespace | None:
        """Return the namespace as it is declared now; of two declarations the first by path."""
        for held in self._cache.declarations(None):
            if held.name == str(name) and in_roots(held.path, self._project):
                return self._definitions.namespace(held)
        return None

    def _former_names(self) -> list[NamespaceName | TopicName]:
        names = (
            TopicName.parse(name) if "://" in name else NamespaceName.parse(name)
            for name in self._cache.with_policies()
        )
        return [name for name in names if self._former(name)]

    def _former(self, name: NamespaceName | TopicName) -> Policies | None:
        """Return the policies that were declared last and are not any more; None: there are none."""
        found = self.catalog.get(name)
        declared = found.policies.managed() if found else {}
        last = self._cache.last_policies(str(name)).managed()
        former = Policies.of({policy: value for policy, value in last.items() if policy not in declared})
        return None if former == Policies() else former

    def _note(self, note: NoteRow) -> HistoryNote:
        topic = TopicName.parse(note.topic) if note.topic else None
        return HistoryNote(self._commit(note.step), note.problem, topic)


def read(
    repository: Repository, project: Project, ref: str | None = None, *, progress: Progress = no_progress
) -> History:
    """Return the approved history of the project, up to `ref` or the ref that the project names.

    `progress` is called with how many commits have been read of those that were not known before. Raise HistoryError where
    Git cannot say which schemas were approved; it says the command that repairs it.
    """
    name, tip = approved(repository, project, ref)
    if tip is None:
        return History(repository, project, name, Cache.new(""))
    known = Derivation(repository, project, progress).at(tip, keep=ref is None)
    return History(repository, project, name, known)


def _named(repository: Repository, name: str, where: str) -> Position:
    """Return the ref or commit `name`; raise UnknownRef where there is none. `where` is how another one is named."""
    if found := resolve_shared(repository, name):
        return Position(name, *found)
    raise UnknownRef(
        f"there is no ref or commit {name!r} in this repository", fix=advice(repository, name, repository.refs(), where)
    )


def _off_the_line(repository: Repository, whole: History, name: str, commit: Commit) -> HistoryError:
    """Say why a commit is no position, and which one to name instead."""
    what = f"{name} is {commit.short}, which is not on the first-parent line of {whole.ref}"
    tip = whole.tip.id if whole.tip else ""
    listed = repository.run("rev-list", "--ancestry-path", tip, f"^{commit.id}").decode().split() if tip else []
    brought = next(
        (found for each in reversed(listed) if (found := repository.commit(each)) and whole.has(found)), None
    )
    if brought is None:
        return HistoryError(
            f"{what}: it was never approved, or this clone is behind",
            fix=f"`git fetch`; or have it merged, and name the commit of {whole.ref} that brings it",
        )
    return HistoryError(
        f"{what}: it is a commit of a branch, which {brought.short} ({brought.subject}) merged",
        fix=f"name {brought.short}",
    )


class DefinitionLoader:
    """Reads documents and definitions of any step again, since histories are long, even after `repository` was closed."""

    def __init__(self, repository: Repository, cache: Cache) -> None:
        self._repository = repository
        self._cache = cache
        # A state keeps what it was asked for, and many definitions are of one step.
        self._at = functools.cache(cache.at)
        self._documents = functools.lru_cache(_KEPT_DOCUMENTS)(functools.partial(_documents, repository))
        # Topics of one step, and of many, mostly take types of the same files.
        self._definitions = functools.lru_cache(_KEPT_STEPS)(self._definitions_at)
        self._avro_files = AvroFileCache()
        # Git answers one question at a time.
        self._lock = RLock()
        weakref.finalize(self, repository.close)

    def topic(self, step: int, path: str, schema: str) -> TopicDocument:
        """Return the declaration of that schema that the file at `path` held after that step."""
        with self._lock:
            cache = self._at(step)
            held = next(each for each in cache.declarations(schema) if each.path == path)
            return named(self._read(cache, held), held)

    def declared(self, step: int, path: str, schema: str) -> Topic:
        """Return the topic that is declared there, its clients with the definitions of their own that are readable; its schema is not read."""
        document = self.topic(step, path, schema)
        if not document.clients:
            return document.topic
        with self._lock:
            definitions = self._definitions(step)
            return replace(document.topic, clients=read_clients(document, definitions).clients)

    def namespace(self, held: DeclarationRow) -> Namespace:
        """Return the namespace that is declared there."""
        with self._lock:
            documents = self._read(self._cache, held)
        found = (each.namespace for each in documents if isinstance(each, NamespaceDocument))
        return next(each for each in found if str(each.name) == held.name)

    def info(self, type_: SchemaType, step: int, path: str, schema: str) -> SchemaInfo:
        """Return what the file at `path` declared after that step for that tenant/namespace/topic; it is read on use."""
        return DeferredInfo.of(type_, functools.partial(self._info, step, path, schema))

    def in_force(self, info: SchemaInfo, version: VersionRow, step: int, path: str, schema: str) -> SchemaInfo:
        """Return what the file declared after that step: the version's own `info`, where all its files are still the same."""

        def read() -> SchemaInfo:
            with self._lock:
                is_same = self._made_of(step, path, schema) == self._made_of(version.step, version.path, schema)
            return info.load() if is_same else self._info(step, path, schema)

        return DeferredInfo.of(info.type, read)

    def _made_of(self, step: int, path: str, schema: str) -> dict[str, Entry | str | None]:
        """Return what was in the file at `path`, or counted instead, and in all others of the definition, after that step."""
        cache = self._at(step)
        files: dict[str, Entry | str | None] = {each: cache.entry(each) for each in cache.made_of(schema)}
        held = next(each for each in cache.declarations(schema) if each.path == path)
        return files | {path: held.blob or cache.entry(path)}

    def _info(self, step: int, path: str, schema: str) -> SchemaInfo:
        with self._lock:
            declaration = self.topic(step, path, schema).schema
            info = self._definitions(step).read(declaration).info if declaration else None
        if info is None:
            raise HistoryError(f"what {path} declared for {schema} cannot be read any more", fix=FSCK)
        return info

    def _definitions_at(self, step: int) -> Definitions:
        files = StepFiles(self._repository, self._at(step))
        return Definitions(files, shared=self._avro_files, blob=files.blob)

    def _read(self, cache: Cache, held: DeclarationRow) -> Sequence[TopicDocument | NamespaceDocument]:
        entry = cache.entry(held.path)
        return self._documents(held.path, held.blob or (entry.blob if entry else "")).documents


def _documents(repository: Repository, path: str, blob_id: str) -> Documents:
    """Return what the file at `path` declares where its content is that blob."""
    return read_documents(path, content(path, repository.blob(blob_id)))
