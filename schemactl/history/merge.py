"""Compare the work at hand with the approved history: what the work changes, and what a merge of it leaves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Final, NamedTuple

from schemactl.core.errors import DeclarationError, HistoryError, Problem
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.schema import Commit, SchemaInfo
from schemactl.declare.definition import Definitions
from schemactl.declare.document import TopicDocument, read_documents
from schemactl.declare.files import SUFFIXES, Files, Kind, read_bytes
from schemactl.declare.reader import Declared, in_roots
from schemactl.declare.references import folders_above, is_among, is_folder, written_out
from schemactl.history.approved_history import History, approved, read
from schemactl.history.cache import Cache
from schemactl.history.commit_files import FILE_MODES, CommitFiles, Entry, GitFiles, HashedFiles, blob_id
from schemactl.history.git import Blob, ChangedFile, GitFailed, LoggedCommit, Repository, log
from schemactl.history.git_environment import BARE_FETCH, FETCH, OPTIONS, fetch_variables
from schemactl.history.versions import Derivation, Progress, StepFiles, derived_from, is_read, no_progress

_NOBODY: Final = "schemactl"

_WITHOUT_FILTERS: Final = ("-c", "merge.renormalize=false")
"""Options with which a merge runs no program that the settings name as a filter; no code host does."""

_MODES: Final = {"file": "100644", "symlink": "120000", "submodule": "160000"}

_DELETED: Final = ChangedFile("", "000000", "0" * 40)


class Branch(NamedTuple):
    """The work between the approved history and a commit that is not approved yet.

    Attributes:
        commits: those that a rebase merge records, in its order: all that are not approved, without merges. What they change is
            what they leave when each is applied on top of those before it. After them the merges that a merge queue records.
        is_updated: approved history was merged into the branch, so a fast-forward would make another line the record.
    """

    commits: tuple[LoggedCommit, ...]
    is_updated: bool


class LocalChanges(NamedTuple):
    """What files declare, against the approved history where the work on them began.

    Attributes:
        unchanged: the topics whose declaration, and every file that their definition is made of, are as they were.
        combined: the definitions that a merge makes of files of both sides, one that the work changed and one that was
            approved since; or why it makes none; None for a topic that no file declares then. Of a file that both changed it
            is the work's that counts.
        settled: the unchanged topics whose files are approved today as they were.
    """

    unchanged: frozenset[TopicName] = frozenset()
    combined: Mapping[TopicName, SchemaInfo | Problem | None] = {}
    settled: frozenset[TopicName] = frozenset()


class Forked(NamedTuple):
    """The approved history, and what work that is not approved yet has to do with it.

    Attributes:
        approved: the history as it is now.
        base: as it was where the work left it; `approved` itself when nothing was approved since.
        stepwise: as it would be if each commit of `branch` were approved by itself, on top of `approved`; None: not asked for.
        branch: the commits of the work; None where there are none, or they were not asked for.
        recorded: tenant/namespace/topic of those that get a version by one of these commits.
        changes: what files, and what they declare, have changed since `base`.
    """

    approved: History
    base: History
    stepwise: History | None = None
    branch: Branch | None = None
    recorded: frozenset[str] = frozenset()
    changes: Callable[[Files, Declared], LocalChanges] = lambda _files, _declared: LocalChanges()


def read_forked(
    repository: Repository,
    project: Project,
    head: Commit | None,
    ref: str | None = None,
    *,
    stepwise: bool = False,
    progress: Progress = no_progress,
) -> Forked:
    """Return the approved history as work that starts from `head` sees it (None: nothing was committed yet).

    `stepwise` asks for what it would be, too, if every commit of the work were approved by itself. Raise HistoryError as `read`,
    and where `head` and the approved history have no commit in common.
    """
    name, tip = approved(repository, project, ref)
    if tip is None:
        now = History(repository, project, name, Cache.new(""))
        return Forked(now, now)
    own = branch(repository, head=head, tip=tip) if stepwise and head and head.id != tip.id else None
    if own:
        repository.fetch_later(change.blob for each in own.commits for change in each.changes if is_read(change))
    derivation = Derivation(repository, project, progress)
    known = derivation.at(tip, keep=ref is None)
    now = History(repository, project, name, known)
    left_at, left = _at_merge_base(repository, derivation, known, name, head=head, tip=tip)
    base = now if left_at.id == tip.id else History(repository, project, name, left)
    forked = Forked(now, base, changes=functools.partial(_local_changes, repository, left, known))
    if own is None or not own.commits:
        return forked._replace(branch=own)
    following = derivation.followed_by(known, own.commits)
    each = History(repository, project, name, following)
    return forked._replace(stepwise=each, branch=own, recorded=following.recorded(known.step))


class Merged(NamedTuple):
    """What a merge of the work at hand puts on record.

    Attributes:
        history: the approved history with that work.
        approved: the approved history as it is now.
        files: those of both sides: a file that the work did not change is as approved now.
        is_behind: whether something was approved since the work began.
        has_commits: whether something was committed since.
        brought: asks which contents of files come with the merge (see `BroughtFiles`).
    """

    history: History
    approved: History
    files: Files
    is_behind: bool
    has_commits: bool
    brought: BroughtFiles


def read_merged(
    repository: Repository,
    project: Project,
    here: HashedFiles,
    used: Collection[str],
    *,
    by_commit: bool = False,
    progress: Progress = no_progress,
) -> Merged:
    """Return the approved history as it is, and as it will be once the files at hand are merged.

    Args:
        repository: with a working tree.
        project: whose history it is.
        here: the files at hand.
        used: files and folders besides the project's roots that matter: what definitions are made of.
        by_commit: each commit of the branch is approved by itself, as a rebase merge does; else its end alone.
        progress: is called with how many commits have been read.

    Raises:
        HistoryError: Git cannot say which schemas were approved, or the work has no commit in common with it.
        DeclarationError: what the merge leaves cannot be read.
    """
    name, tip = approved(repository, project)
    head, left_at = repository.commit("HEAD"), tip
    derivation = Derivation(repository, project, progress)
    known = began = Cache.new(derived_from(project)) if tip is None else derivation.at(tip, keep=True)
    now = History(repository, project, name, known)
    after = known
    if tip and head and head.id != tip.id:
        left_at, began = _at_merge_base(repository, derivation, known, name, head=head, tip=tip)
        if by_commit and (own := branch(repository, head=head, tip=tip)).commits:
            after = derivation.followed_by(known, own.commits)
    files = MergedFiles(repository, here, began=began, now=known)
    paths = {*here.paths(), project.path, project.waivers}
    paths |= {path for path in known.paths() if in_roots(path, project, previous=True)}
    made_of = {*used, *(path for schema, _ in known.topics() for path in known.made_of(schema))}
    paths |= written_out(made_of, here) | written_out(made_of, StepFiles(repository, known))
    ours = [
        path
        for path in sorted(paths)
        # What the branch's commits changed and the files at hand have changed back is the work's, too.
        if path.endswith(SUFFIXES) and (files.is_ours(path) or after.entry(path) != known.entry(path))
    ]
    changes = [*_changes(repository, here, after, ours)]
    if changes:
        pending = Commit("0" * 40, tip.time_s if tip else 0, "what is not approved yet")
        after = derivation.followed_by(after, [LoggedCommit(pending, changes, ())])
    merged = now if after is known else History(repository, project, name, after)
    if wrong := [note.problem for note in merged.notes if note not in now.notes]:
        raise DeclarationError(wrong)
    brought = BroughtFiles(repository, here, left_at, tip)
    return Merged(merged, now, files, left_at != tip, head != left_at, brought)


def branch(repository: Repository, *, head: Commit, tip: Commit) -> Branch:
    """Return what `head` has that the approved `tip` has not, as a rebase of it onto `tip` applies it.

    `head` may be a merge into the approved history, as CI makes one of a pull request. Raise HistoryError where a shallow clone was
    cut off before the two meet.
    """
    rebased = [*log(repository, head.id, tip.id, walk="rebased")]
    if any(not commit.parents for commit in rebased):
        # Either the repository's first commit, or where a shallow clone was cut off.
        repository.require_all_commits()
    merges = [*log(repository, head.id, tip.id, walk="merges")]
    own = {logged.commit.id for logged in (*rebased, *merges)}
    # The merge into the approved history is none of the branch.
    merges = [merge for merge in merges if merge.parents[0] in own or merge.parents[0] == tip.id]
    updates = [merge for merge in merges if not own.issuperset(merge.parents[1:])]
    line = {logged.commit.id for logged in log(repository, head.id, tip.id)} if len(merges) > len(updates) else {*()}
    queued = [merge.commit for merge in merges if merge not in updates and merge.commit.id in line]
    return Branch(tuple(_apply_each(repository, rebased, queued, tip)), bool(updates))


def _apply_each(
    repository: Repository, commits: Sequence[LoggedCommit], merges: Sequence[Commit], tip: Commit
) -> Iterator[LoggedCommit]:
    """Yield commits with the contents that files have once each is applied on top of `tip` and those before it.

    A file that the approved history, or another line of the branch, has changed meanwhile is merged. Where that conflicts a rebase
    stops, and the commit is judged on its own tree. The trees of `merges` follow: a merge queue records them.
    """
    approved = CommitFiles(repository, tip)
    contents: dict[str, str | None] = {}
    for logged in commits:
        changes = []
        for change in logged.changes:
            applied = change
            if change.path.endswith(SUFFIXES):
                if change.path not in contents:
                    contents[change.path] = _blob(approved, change.path)
                now = contents[change.path]
                if now not in (None, change.before):
                    applied = _merge_change(repository, change, now)
                contents[change.path] = applied.blob if applied.mode in FILE_MODES else None
            changes.append(applied)
        yield logged._replace(changes=changes)
    for merge in merges:
        tree = CommitFiles(repository, merge)
        changes = []
        for path, now in contents.items():
            if (blob := _blob(tree, path)) != now:
                contents[path] = blob
                changes.append(ChangedFile(path, _MODES["file"], blob) if blob else _DELETED._replace(path=path))
        yield LoggedCommit(merge, changes, ())


def _blob(files: CommitFiles, path: str) -> str | None:
    """Return the id of the content of a file; None: there is no file."""
    found = files.entry(path)
    return found.blob if found and found.kind == "file" else None


def _merge_change(repository: Repository, change: ChangedFile, now: str | None) -> ChangedFile:
    """Return a change of a file applied to its content `now`, a blob's id; the change itself where they conflict."""
    if now is None or change.mode not in FILE_MODES or not change.before.strip("0"):
        return change
    base, ours, theirs = (repository.blob(blob).content for blob in (change.before, now, change.blob))
    merged = repository.merge_texts(base, ours=ours, theirs=theirs)
    if merged is None:
        return change
    found = blob_id(merged, repository.object_format)
    repository.add_content(Blob(found, "blob", len(merged), merged))
    return change._replace(blob=found)


def _at_merge_base(
    repository: Repository, derivation: Derivation, known: Cache, name: str, *, head: Commit | None, tip: Commit
) -> tuple[Commit, Cache]:
    """Return where work on `head` left the approved history, which ends with `tip`, and the state there.

    Raises:
        HistoryError: the two have no commit in common.
    """
    if head is None or head.id == tip.id:
        return tip, known
    left_at = repository.merge_base(head, tip)
    if left_at is None:
        raise HistoryError(
            f"{head.short} and {name} have no commit in common: what was changed here cannot be told",
            fix="name the ref that this work started from, with `check --base` or as `approved:` in the project file",
        )
    if left_at.id == tip.id:
        return tip, known
    # Work may also start from a commit that a merge brought, beside the line of what was approved.
    step = known.step_of(left_at.id)
    return left_at, derivation.at(left_at, keep=False) if step is None else known.at(step)


def _local_changes(repository: Repository, began: Cache, now: Cache, files: Files, declared: Declared) -> LocalChanges:
    """Compare `files`, and what they declare, with the states of the approved history then and now."""
    merge = MergedFiles(repository, files, began=began, now=now)
    made_of = {
        name: {topic.source.path, *declared.dependencies.get(name, ())}
        for name, topic in declared.catalog.topics.items()
        if topic.source
    }
    unchanged = frozenset(
        name
        for name, paths in made_of.items()
        if (state := began.state(name.schema_id, name.domain))
        and (source := declared.catalog.topics[name].source)
        and (state.deleted, state.path, state.as_of) == (False, source.path, None)
        and not any(map(merge.is_ours, paths))
    )
    if began.step == now.step and began.connection is now.connection:
        return LocalChanges(unchanged, settled=unchanged)
    combined: dict[TopicName, SchemaInfo | Problem | None] = {}
    since = now.changed_since(began)
    definitions = Definitions(merge)
    both = merge.both_sides(made_of, since)
    theirs = {name for name, topic in declared.catalog.topics.items() if topic.source and topic.source.path in since}
    for name in both | theirs:
        document = merge.document(name, declared)
        if document is None:
            combined[name] = None
        elif name in both and document.schema:
            found = definitions.read(document.schema)
            combined[name] = found.problems[0] if found.problems else found.info
    settled = frozenset(name for name in unchanged if not any(is_among(path, made_of[name]) for path in since))
    return LocalChanges(unchanged, combined, settled)


class MergedFiles:
    """The files as a merge leaves them: what the work did not change is as approved now.

    Which files it changed is seen from Git's ids. Line ends that Git converts make a difference here: then it is the
    work's file that counts.
    """

    def __init__(self, repository: Repository, files: Files, *, began: Cache, now: Cache) -> None:
        if not isinstance(files, GitFiles | HashedFiles):
            files = HashedFiles(files, repository.object_format)
        self._files = files
        self._began = began
        self._now = now
        self._approved = StepFiles(repository, now)
        self._ours: dict[str, bool] = {}

    def is_ours(self, path: str) -> bool:
        """Return whether the work changed, added or removed the file, or one in the folder."""
        if path not in self._ours:
            if is_folder(path):
                folder = path.removesuffix("/")
                self._ours[path] = any(map(self.is_ours, {*self._files.below(folder), *self._began.below(folder)}))
            else:
                self._ours[path] = self._began.entry(path) != self._files.entry(path)
        return self._ours[path]

    def paths(self) -> Iterable[str]:
        """Yield every path."""
        yield from (path for path in self._files.paths() if self.is_ours(path))
        yield from (path for path in self._now.paths() if not self.is_ours(path))

    def below(self, folder: str) -> Iterable[str]:
        """Yield every path below a folder."""
        yield from (path for path in self._files.below(folder) if self.is_ours(path))
        yield from (path for path in self._now.below(folder) if not self.is_ours(path))

    def read(self, path: str) -> bytes:
        """Return the content of the file (see `declare.Files`)."""
        return self._side(path).read(path)

    def kind(self, path: str) -> Kind:
        """Return what kind of thing is at `path`."""
        return self._side(path).kind(path)

    def both_sides(self, made_of: Mapping[TopicName, set[str]], theirs: frozenset[str]) -> set[TopicName]:
        """Return the topics that are made of files of both sides, `theirs` among them."""
        used = {name: {*paths} for name, paths in made_of.items()}
        for path in theirs:
            for held in self._now.declared(path):
                if held.schema:
                    used.setdefault(TopicName.parse(held.name), set()).add(path)
            for schema in set().union(*map(self._now.users, (path, *folders_above(path)))):
                for held in self._now.declarations(schema):
                    used.setdefault(TopicName.parse(held.name), set()).update({path, held.path})
        return {
            name
            for name, paths in used.items()
            if any(is_among(path, paths) for path in theirs)
            and any(map(self.is_ours, paths | self._now.made_of(name.schema_id)))
        }

    def document(self, name: TopicName, declared: Declared) -> TopicDocument | None:
        """Return the topic as the merged files declare it; None: they do not."""
        topic = declared.catalog.topics.get(name)
        ours = [topic.source.path] if topic and topic.source else []
        for path in (*ours, *(held.path for held in self._now.declarations(name.schema_id))):
            if self.kind(path) == "file":
                for document in read_documents(path, read_bytes(self, path)).documents:
                    if isinstance(document, TopicDocument) and document.topic.name == name:
                        return document
        return None

    def _side(self, path: str) -> Files:
        return self._files if self.is_ours(path) else self._approved


class FilesAfterMerge:
    """Files of any name as a merge leaves them: what the work did not change is as approved now.

    Git merges a file that both changed line by line. Where that conflicts it is the work's.
    """

    def __init__(
        self, repository: Repository, here: CommitFiles | HashedFiles, *, base: CommitFiles, tip: CommitFiles
    ) -> None:
        self._repository = repository
        self._here = here
        self._base = base
        self._tip = tip

    def paths(self) -> Iterable[str]:
        """Return every path."""
        return (path for path in {*self._here.paths(), *self._tip.paths()} if self.kind(path) != "missing")

    def below(self, folder: str) -> Iterable[str]:
        """Return every path below a folder."""
        both = {*self._here.below(folder), *self._tip.below(folder)}
        return (path for path in both if self.kind(path) != "missing")

    def kind(self, path: str) -> Kind:
        """Return what kind of thing is at `path`."""
        return self._side(path).kind(path)

    def read(self, path: str) -> bytes:
        """Return the content of the file (see `declare.Files`)."""
        sides = (self._here, self._base, self._tip)
        entries = [side.entry(path) for side in sides]
        if len({*entries}) == len(sides) and all(side.kind(path) == "file" for side in sides):
            ours, base, theirs = (read_bytes(side, path) for side in sides)
            return self._repository.merge_texts(base, ours=ours, theirs=theirs) or ours
        return self._side(path).read(path)

    def _side(self, path: str) -> Files:
        return self._tip if self._here.entry(path) == self._base.entry(path) else self._here


class BroughtFiles:
    """Files of any name that the work did not touch, and that are as the approved history has them once it is merged."""

    def __init__(self, repository: Repository, here: HashedFiles, base: Commit | None, tip: Commit | None) -> None:
        self._here = here
        self._base = CommitFiles(repository, base)
        self._tip = CommitFiles(repository, tip)
        self._format = repository.object_format
        self._is_ahead = base != tip

    def has(self, path: str, content: bytes | None) -> bool:
        """Return whether the merge itself leaves `content` (None: nothing) at `path`, from the repository's top level."""
        if not self._is_ahead or self._here.entry(path) != self._base.entry(path):
            return False
        found = self._tip.entry(path)
        return found == (None if content is None else Entry("file", blob_id(content, self._format)))


def _changes(repository: Repository, here: HashedFiles, after: Cache, paths: Iterable[str]) -> Iterator[ChangedFile]:
    """Yield what makes the files of the state `after` those at hand; their contents are lent to `repository`."""
    for path in paths:
        found, before = here.entry(path), after.entry(path)
        if found is None and before is not None:
            yield _DELETED._replace(path=path)
        elif found and found != before and not (before and before.kind == found.kind != "file"):
            if found.kind == "file":
                data = read_bytes(here, path)
                repository.add_content(Blob(found.blob, "blob", len(data), data))
            yield ChangedFile(path, _MODES[found.kind], found.blob)


class Proposed(NamedTuple):
    """A commit that no ref leads to, and what was merged into what."""

    commit: Commit
    name: str

    def read(self, repository: Repository, project: Project, *, progress: Progress = no_progress) -> History:
        """Return the history that ends with it."""
        found = read(repository, project, self.commit.id, progress=progress)
        found.ref = self.name
        return found


def proposed(repository: Repository, project: Project, base: str) -> Proposed:
    """Return the squash of HEAD into the ref `base`, as Git merges them.

    Its objects are written, as `git merge-tree` does, but no ref and no file; the same work gives the same commit.

    Raises:
        HistoryError: there is no such ref, nothing was committed, or the two cannot be merged by themselves.
    """
    name, tip = approved(repository, project, base)
    head = repository.commit("HEAD")
    if head is None or tip is None:
        raise HistoryError("--base plans for what is committed, and there is no commit here yet")
    options: tuple[str, ...] = OPTIONS
    variables = _without_drivers(repository)
    if repository.promisor:
        # Which of the files that a partial clone lacks a merge compares, it finds out itself.
        options = FETCH if repository.top else BARE_FETCH
        variables |= {**fetch_variables(), "GIT_NO_LAZY_FETCH": "0"}
    try:
        merged = repository.run(
            *("merge-tree", "--write-tree", tip.id, head.id), options=(*options, *_WITHOUT_FILTERS), variables=variables
        )
    except GitFailed as failure:
        if failure.words.strip():
            raise
        raise HistoryError(
            f"{head.short} cannot be merged into {name}: they conflict",
            fix=f"`git merge {quote(name)}`, and commit what resolves it",
        ) from failure
    merge = f"{head.short} merged into {name}"
    roles = {f"GIT_{role}_{key}": _NOBODY for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    dates = {f"GIT_{role}_DATE": f"@{tip.time_s} +0000" for role in ("AUTHOR", "COMMITTER")}
    tree = merged.decode().strip()
    made = repository.run("commit-tree", tree, "-p", tip.id, "-m", merge, variables={**roles, **dates})
    commit = repository.commit(made.decode().strip())
    assert commit  # noqa: S101  it was made here
    return Proposed(commit, merge)


def _without_drivers(repository: Repository) -> dict[str, str]:
    """Return variables that have each program that the settings name for merges fail, which is a conflict, instead of run."""
    names = dict.fromkeys(name for name, _ in repository.settings(r"^merge\..*\.driver$"))
    found = {"GIT_CONFIG_COUNT": str(len(names))}
    for number, name in enumerate(names):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": "false"}
    return found
