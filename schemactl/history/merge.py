"""Compare work that is not approved yet with the approved history: its changes, and the result of merging it.

`read_forked` and `read_merged` are the entry points for a check and for commands that need the history after the merge;
`merge_head_into` merges HEAD into the approved ref with Git. The classes of files in between show the files as a merge leaves them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Final, NamedTuple

from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import DeclarationError, HistoryError, Problem
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.schema import EMPTY, Commit, SchemaInfo
from schemactl.declare.definition import Definitions, Include
from schemactl.declare.document import TopicDocument, read_documents
from schemactl.declare.files import SUFFIXES, Files, Kind, read_bytes
from schemactl.declare.reader import Declared, find_kind_problems, in_roots, with_kinds
from schemactl.declare.references import is_folder, select_dependencies, written_out
from schemactl.history.approved_history import History, is_approved_tip, read_history, resolve_approved_ref
from schemactl.history.cache import HistoryState
from schemactl.history.commit_files import FILE_MODES, CommitFiles, Entry, GitFiles, HashedFiles, blob_id
from schemactl.history.git import Blob, ChangedFile, GitFailed, LoggedCommit, Repository, log
from schemactl.history.git_environment import BARE_FETCH, FETCH, OPTIONS, fetch_variables
from schemactl.history.versions import Derivation, Progress, StepFiles, has_schema_file, no_progress

_AUTHOR: Final = "schemactl"
"""Name and e-mail address of the author of a proposed merge, so that the same work gives the same commit."""

_WITHOUT_FILTERS: Final = ("-c", "merge.renormalize=false")
"""Options with which a merge does not run the filter programs of the settings, like the merge of a code host."""

_MODES: Final = {"file": "100644", "symlink": "120000", "submodule": "160000"}

_DELETED: Final = ChangedFile("", "000000", "0" * 40)


class LocalChanges(NamedTuple):
    """The differences of declarations from the approved history at the merge base.

    Attributes:
        unchanged: the topics whose declaration, and every file of their definition, are unchanged since the merge base.
        combined: the definitions that combine files of both sides: at least one file that the work changed, and one that was approved
            since then. For a topic with kinds, the value is the topic with all of its kinds. The value is a problem if the definition
            cannot be read, or None if no merged file declares the topic. If both sides changed a file, the file of the work counts.
    """

    unchanged: frozenset[TopicName] = frozenset()
    combined: Mapping[TopicName, SchemaInfo | Topic | Problem | None] = {}


class Forked(NamedTuple):
    """The approved history, and its relation to work that is not approved yet.

    Attributes:
        approved_history: the current history.
        merge_base: the history at the merge base; the current history if `is_behind` is false.
        history_by_commit: the history if each commit of `branch` were approved by itself, on top of the approved history; None if not
            requested.
        branch: the commits of the work; None if the work has no commits or they were not requested.
        recorded: tenant/namespace/topic of the topics that get a version by one of these commits.
    """

    approved_history: History
    merge_base: History
    history_by_commit: History | None = None
    branch: Branch | None = None
    recorded: frozenset[str] = frozenset()

    @property
    def is_behind(self) -> bool:
        """Whether something was approved since the work began."""
        return self.merge_base.state is not self.approved_history.state

    def map_catalogs(
        self, view: Callable[[Catalog], Catalog], view_by_commit: Callable[[Catalog], Catalog] | None = None
    ) -> Forked:
        """Return the same histories with the catalogs that `view` makes of theirs, and `view_by_commit` of the history by commit."""
        approved_history = self.approved_history.with_catalog(view(self.approved_history.catalog))
        merge_base, history_by_commit = approved_history, self.history_by_commit
        if self.is_behind:
            merge_base = self.merge_base.with_catalog(view(self.merge_base.catalog))
        if history_by_commit:
            history_by_commit = history_by_commit.with_catalog((view_by_commit or view)(history_by_commit.catalog))
        return self._replace(
            approved_history=approved_history, merge_base=merge_base, history_by_commit=history_by_commit
        )

    def compare_with_base(self, files: Files, declared: Declared) -> LocalChanges:
        """Compare `files` and their declarations with the approved history at the merge base and now."""
        repository, project = self.approved_history.repository, self.approved_history.project
        state, state_at_merge_base = self.approved_history.state, self.merge_base.state
        merge = OwnOrApprovedFiles(repository, files, merge_base=state_at_merge_base, approved=state)
        paths_by_topic = {
            name: {topic.source.path, *declared.dependencies.get(name, ())}
            for name, topic in declared.catalog.topics.items()
            if topic.source
        }
        unchanged = frozenset(
            name
            for name, paths in paths_by_topic.items()
            if (topic_state := state_at_merge_base.find_state(name.schema_id, name.domain))
            and (source := declared.catalog.topics[name].source)
            and (topic_state.deleted, topic_state.path, topic_state.as_of) == (False, source.path, None)
            and not any(map(merge.is_ours, paths))
        )
        if not self.is_behind:
            return LocalChanges(unchanged)
        combined: dict[TopicName, SchemaInfo | Topic | Problem | None] = {}
        approved_paths = state.find_changed_paths(state_at_merge_base)
        definitions = Definitions(merge, include=Include.of(project))
        of_both_sides = merge.list_topics_of_both_sides(paths_by_topic, approved_paths)
        redeclared = {
            name
            for name, topic in declared.catalog.topics.items()
            if topic.source and topic.source.path in approved_paths
        }
        for name in of_both_sides | redeclared:
            document = merge.find_document(name, declared)
            if document is None:
                combined[name] = None
            elif name in of_both_sides and document.declarations:
                namespace = declared.catalog.namespaces.get(name.namespace_name)
                defaults = namespace.schema_properties if namespace else EMPTY
                document = document.with_default_properties(defaults)
                rendering = document.topic.get_rendering(project.rendering)
                results = [definitions.read(declaration, rendering) for declaration in document.declarations]
                problems = [problem for result in results for problem in result.problems]
                infos = [result.info for result in results if result.info]
                if document.kinds and not problems:
                    problems += find_kind_problems(document, infos)
                if problems:
                    combined[name] = problems[0]
                elif document.kinds:
                    combined[name] = with_kinds(replace(document.topic, schema=infos[-1]), document, infos)
                else:
                    combined[name] = infos[0] if infos else None
        return LocalChanges(unchanged, combined)


def read_forked(
    repository: Repository,
    project: Project,
    head: Commit | None,
    approved_ref: str | None = None,
    *,
    by_commit: bool = False,
    progress: Progress = no_progress,
) -> Forked:
    """Read the approved history and compare it with work that starts from `head`.

    Args:
        repository: of the project.
        project: whose history is read.
        head: the newest commit of the work; None if nothing was committed yet.
        approved_ref: the approved ref; by default the ref that the project names.
        by_commit: whether to derive the history if every commit of the work were approved by itself.
        progress: is called with the number of commits read.

    Raises:
        HistoryError: as for `read_history`, or `head` and the approved history have no commit in common.
    """
    ref, tip = resolve_approved_ref(repository, project, approved_ref)
    if tip is None:
        history = History(repository, project, ref, HistoryState.create())
        return Forked(history, history)
    branch = read_branch(repository, head=head, tip=tip) if by_commit and head and head.id != tip.id else None
    if branch:
        changes = [change for commit in branch.commits for change in commit.changes]
        repository.fetch_later(change.blob for change in changes if has_schema_file(change))
    derivation = Derivation(repository, project, progress)
    state = derivation.derive(tip, save=is_approved_tip(repository, project, approved_ref, tip))
    history = History(repository, project, ref, state)
    merge_base, state_at_merge_base = _read_merge_base(repository, derivation, state, ref, head=head, tip=tip)
    history_at_merge_base = (
        history if merge_base.id == tip.id else History(repository, project, ref, state_at_merge_base)
    )
    forked = Forked(history, history_at_merge_base)
    if branch is None or not branch.commits:
        return forked._replace(branch=branch)
    state_by_commit = derivation.derive_with(state, branch.commits)
    return forked._replace(
        history_by_commit=History(repository, project, ref, state_by_commit),
        branch=branch,
        recorded=state_by_commit.find_recorded_schemas(state.step),
    )


class Merged(NamedTuple):
    """The approved history after a merge of the working tree.

    Attributes:
        history: the approved history with that work.
        approved_history: the current approved history.
        files: the files of both sides: a file that the work did not change is as approved now.
        is_behind: whether something was approved since the work began.
        has_commits: whether something was committed since.
        brought: tells which contents of files the merge adds (see `BroughtFiles`).
        declared: the declarations of the working tree; broken ones stay as they were approved. None if they were not read.
    """

    history: History
    approved_history: History
    files: Files
    is_behind: bool
    has_commits: bool
    brought: BroughtFiles
    declared: Declared | None = None


def read_merged(
    repository: Repository,
    project: Project,
    here: HashedFiles,
    used: Collection[str],
    *,
    by_commit: bool = False,
    declared: Declared | None = None,
    progress: Progress = no_progress,
) -> Merged:
    """Read the approved history, and the history after a merge of the working tree.

    Args:
        repository: with a working tree.
        project: whose history is read.
        here: the files of the working tree.
        used: files and folders outside the project's roots that definitions include.
        by_commit: whether each commit of the branch is approved by itself, as a rebase merge does; else only its end.
        declared: the declarations of the working tree, whose broken ones stay as they were approved.
        progress: is called with the number of commits read.

    Raises:
        HistoryError: Git cannot tell which schemas were approved, or the work has no commit in common with them.
        DeclarationError: the merged files cannot be read.
    """
    ref, tip = resolve_approved_ref(repository, project)
    head, merge_base = repository.commit("HEAD"), tip
    derivation = Derivation(repository, project, progress)
    if tip is None:
        state = state_at_merge_base = HistoryState.create()
    else:
        state = state_at_merge_base = derivation.derive(tip, save=True)
    approved_history = History(repository, project, ref, state)
    merged_state = state
    if tip and head and head.id != tip.id:
        merge_base, state_at_merge_base = _read_merge_base(repository, derivation, state, ref, head=head, tip=tip)
        if by_commit and (branch := read_branch(repository, head=head, tip=tip)).commits:
            merged_state = derivation.derive_with(state, branch.commits)

    # The files of the working tree that differ from the approved ones become one more commit.
    files = OwnOrApprovedFiles(repository, here, merge_base=state_at_merge_base, approved=state)
    paths = {*here.paths(), project.path, project.waivers}
    paths |= {path for path in state.paths() if in_roots(path, project, previous=True)}
    made_of = {
        *used,
        *(path for schema_id, _ in state.list_topics() for path in state.list_definition_files(schema_id)),
    }
    paths |= written_out(made_of, here) | written_out(made_of, StepFiles(repository, state))
    changed_paths = [
        path
        for path in sorted(paths)
        # A file that the branch's commits changed and the working tree has changed back belongs to the work.
        if path.endswith(SUFFIXES) and (files.is_ours(path) or merged_state.entry(path) != state.entry(path))
    ]
    changes = [*_list_changes(repository, here, merged_state, changed_paths)]
    if changes:
        pending = Commit("0" * 40, tip.time_s if tip else 0, "content that is not approved yet")
        merged_state = derivation.derive_with(merged_state, [LoggedCommit(pending, changes, ())])
    history = approved_history if merged_state is state else History(repository, project, ref, merged_state)
    broken = declared.broken if declared else ()
    known_names, known_paths = {entry.name for entry in broken}, {entry.path for entry in broken}
    if problems := [
        note.problem
        for note in history.notes
        if note not in approved_history.notes
        and (note.topic not in known_names if note.topic else note.problem.source.path not in known_paths)
    ]:
        raise DeclarationError(problems)
    brought = BroughtFiles(repository, here, merge_base, tip)
    return Merged(history, approved_history, files, merge_base != tip, head != merge_base, brought, declared)


def _list_changes(
    repository: Repository, here: HashedFiles, state: HistoryState, paths: Iterable[str]
) -> Iterator[ChangedFile]:
    """Yield the changes from a state to the working tree; `repository` gets the contents of the changed files."""
    for path in paths:
        new_entry, old_entry = here.entry(path), state.entry(path)
        if new_entry is None and old_entry is not None:
            yield _DELETED._replace(path=path)
        elif new_entry and new_entry != old_entry:
            if old_entry and old_entry.kind == new_entry.kind != "file":
                continue
            if new_entry.kind == "file":
                data = read_bytes(here, path)
                repository.add_content(Blob(new_entry.blob, "blob", len(data), data))
            yield ChangedFile(path, _MODES[new_entry.kind], new_entry.blob)


def _read_merge_base(
    repository: Repository, derivation: Derivation, state: HistoryState, ref: str, *, head: Commit | None, tip: Commit
) -> tuple[Commit, HistoryState]:
    """Find the merge base of `head` and the approved history of `ref` up to `tip`, and the state there.

    Raises:
        HistoryError: the two have no commit in common.
    """
    if head is None or head.id == tip.id:
        return tip, state
    merge_base = repository.merge_base(head, tip)
    if merge_base is None:
        raise HistoryError(
            f"{head.short} and {ref} have no commit in common, so the changes here are unknown",
            fix="name the ref that this branch started from, with `check --base` or as `approved:` in the project file",
        )
    if merge_base.id == tip.id:
        return tip, state
    # Work may also start from a commit of a merged branch, which is not on the first-parent line.
    step = state.find_step(merge_base.id)
    return merge_base, derivation.derive(merge_base, save=False) if step is None else state.at_step(step)


# The commits of a branch


class Branch(NamedTuple):
    """The work between the approved history and a commit that is not approved yet.

    Attributes:
        commits: the commits that a rebase merge records, in its order: all that are not approved, without merges. Their changes
            are the result of applying each on top of the commits before it. The merges that a merge queue records follow.
        is_updated: whether approved history was merged into the branch, so that a fast-forward would change the first-parent
            line of the approved ref.
    """

    commits: tuple[LoggedCommit, ...]
    is_updated: bool


def read_branch(repository: Repository, *, head: Commit, tip: Commit) -> Branch:
    """Read the commits of `head` that the approved `tip` does not contain, as a rebase onto `tip` applies them.

    `head` may be a merge into the approved history, such as CI creates for a pull request.

    Raises:
        HistoryError: a shallow clone ends before the two meet.
    """
    rebased = [*log(repository, head.id, tip.id, walk="rebased")]
    if any(not commit.parents for commit in rebased):
        # Either the repository's first commit, or the end of a shallow clone.
        repository.require_all_commits()
    merges = [*log(repository, head.id, tip.id, walk="merges")]
    branch_ids = {commit.commit.id for commit in (*rebased, *merges)}
    # The merge into the approved history does not belong to the branch.
    merges = [merge for merge in merges if merge.parents[0] in branch_ids or merge.parents[0] == tip.id]
    updates = [merge for merge in merges if not branch_ids.issuperset(merge.parents[1:])]
    line_ids: set[str] = set()
    if len(merges) > len(updates):
        line_ids = {commit.commit.id for commit in log(repository, head.id, tip.id)}
    queued = [merge.commit for merge in merges if merge not in updates and merge.commit.id in line_ids]
    return Branch(tuple(_rebase(repository, rebased, queued, tip)), bool(updates))


def _rebase(
    repository: Repository, commits: Sequence[LoggedCommit], merges: Sequence[Commit], tip: Commit
) -> Iterator[LoggedCommit]:
    """Yield commits with the contents of files after each is applied on top of `tip` and the commits before it.

    A file that the approved history, or another line of the branch, has changed meanwhile is merged. A conflict stops a rebase;
    then the commit is judged on its own tree. The trees of `merges` follow: a merge queue records them.
    """
    approved_files = CommitFiles(repository, tip)
    blobs: dict[str, str | None] = {}
    for commit in commits:
        changes = []
        for change in commit.changes:
            applied = change
            if change.path.endswith(SUFFIXES):
                if change.path not in blobs:
                    blobs[change.path] = _find_blob(approved_files, change.path)
                blob = blobs[change.path]
                if blob not in (None, change.before):
                    applied = _merge_change(repository, change, blob)
                blobs[change.path] = applied.blob if applied.mode in FILE_MODES else None
            changes.append(applied)
        yield commit._replace(changes=changes)
    for merge in merges:
        merge_files = CommitFiles(repository, merge)
        changes = []
        for path, blob in blobs.items():
            if (merge_blob := _find_blob(merge_files, path)) != blob:
                blobs[path] = merge_blob
                changes.append(
                    ChangedFile(path, _MODES["file"], merge_blob) if merge_blob else _DELETED._replace(path=path)
                )
        yield LoggedCommit(merge, changes, ())


def _find_blob(files: CommitFiles, path: str) -> str | None:
    """Return the blob id of a file, or None if the path is not a file."""
    entry = files.entry(path)
    return entry.blob if entry and entry.kind == "file" else None


def _merge_change(repository: Repository, change: ChangedFile, blob: str | None) -> ChangedFile:
    """Apply a change of a file to its content `blob`, or return the change itself if they conflict."""
    if blob is None or change.mode not in FILE_MODES or not change.before.strip("0"):
        return change
    base, ours, theirs = (repository.blob(version).content for version in (change.before, blob, change.blob))
    merged = repository.merge_texts(base, ours=ours, theirs=theirs)
    if merged is None:
        return change
    merged_id = blob_id(merged, repository.object_format)
    repository.add_content(Blob(merged_id, "blob", len(merged), merged))
    return change._replace(blob=merged_id)


# The files after a merge


class OwnOrApprovedFiles:
    """Declarations and definitions after a merge: a file that the work did not change is as approved now, any other is the work's.

    Git's ids show which files the work changed. Converted line ends count as a change: then the file of the work counts.
    """

    def __init__(
        self, repository: Repository, files: Files, *, merge_base: HistoryState, approved: HistoryState
    ) -> None:
        if not isinstance(files, GitFiles | HashedFiles):
            files = HashedFiles(files, repository.object_format)
        self._files = files
        self._merge_base = merge_base
        self._approved = approved
        self._approved_files = StepFiles(repository, approved)
        self._is_ours: dict[str, bool] = {}

    def is_ours(self, path: str) -> bool:
        """Return whether the work changed, added or removed the file, or a file of the folder."""
        if path not in self._is_ours:
            if is_folder(path):
                folder = path.removesuffix("/")
                paths = {*self._files.below(folder), *self._merge_base.below(folder)}
                self._is_ours[path] = any(map(self.is_ours, paths))
            else:
                self._is_ours[path] = self._merge_base.entry(path) != self._files.entry(path)
        return self._is_ours[path]

    def paths(self) -> Iterable[str]:
        """Yield every path."""
        yield from (path for path in self._files.paths() if self.is_ours(path))
        yield from (path for path in self._approved.paths() if not self.is_ours(path))

    def below(self, folder: str) -> Iterable[str]:
        """Yield every path below a folder."""
        yield from (path for path in self._files.below(folder) if self.is_ours(path))
        yield from (path for path in self._approved.below(folder) if not self.is_ours(path))

    def read(self, path: str) -> bytes:
        """Return the content of the file (see `declare.Files`)."""
        return self._select_side(path).read(path)

    def kind(self, path: str) -> Kind:
        """Return the kind of the entry at `path`."""
        return self._select_side(path).kind(path)

    def _select_side(self, path: str) -> Files:
        return self._files if self.is_ours(path) else self._approved_files

    def list_topics_of_both_sides(
        self, paths_by_topic: Mapping[TopicName, set[str]], approved_paths: frozenset[str]
    ) -> set[TopicName]:
        """Collect the topics with files of the work and of the `approved_paths`."""
        used_paths = {name: {*paths} for name, paths in paths_by_topic.items()}
        for path in approved_paths:
            for declaration in self._approved.list_declarations_in(path):
                if declaration.schema_id:
                    used_paths.setdefault(TopicName.parse(declaration.name), set()).add(path)
            for schema_id in self._approved.find_users(path):
                for declaration in self._approved.list_declarations_of(schema_id):
                    paths = used_paths.setdefault(TopicName.parse(declaration.name), set())
                    paths.update({path, declaration.path})
        return {
            name
            for name, paths in used_paths.items()
            if select_dependencies(approved_paths, paths)
            and any(map(self.is_ours, paths | self._approved.list_definition_files(name.schema_id)))
        }

    def find_document(self, name: TopicName, declared: Declared) -> TopicDocument | None:
        """Return the declaration of a topic in the merged files, or None if they do not declare it."""
        topic = declared.catalog.topics.get(name)
        own_paths = [topic.source.path] if topic and topic.source else []
        approved_paths = [declaration.path for declaration in self._approved.list_declarations_of(name.schema_id)]
        for path in (*own_paths, *approved_paths):
            if self.kind(path) == "file":
                for document in read_documents(path, read_bytes(self, path)).documents:
                    if isinstance(document, TopicDocument) and document.topic.name == name:
                        return document
        return None


class LineMergedFiles:
    """Files of any name after a merge, such as the files that decide how a change is judged: merged by line, as Git does.

    A file that the work did not change is as approved now. If lines conflict, the file of the work counts.
    """

    def __init__(
        self, repository: Repository, here: CommitFiles | HashedFiles, *, merge_base: CommitFiles, tip: CommitFiles
    ) -> None:
        self._repository = repository
        self._here = here
        self._merge_base = merge_base
        self._tip = tip

    def paths(self) -> Iterable[str]:
        """Return every path."""
        return (path for path in {*self._here.paths(), *self._tip.paths()} if self.kind(path) != "missing")

    def below(self, folder: str) -> Iterable[str]:
        """Return every path below a folder."""
        paths = {*self._here.below(folder), *self._tip.below(folder)}
        return (path for path in paths if self.kind(path) != "missing")

    def kind(self, path: str) -> Kind:
        """Return the kind of the entry at `path`."""
        return self._select_side(path).kind(path)

    def read(self, path: str) -> bytes:
        """Return the content of the file (see `declare.Files`)."""
        sides = (self._here, self._merge_base, self._tip)
        entries = [side.entry(path) for side in sides]
        if len({*entries}) == len(sides) and all(side.kind(path) == "file" for side in sides):
            ours, base, theirs = (read_bytes(side, path) for side in sides)
            return self._repository.merge_texts(base, ours=ours, theirs=theirs) or ours
        return self._select_side(path).read(path)

    def _select_side(self, path: str) -> Files:
        return self._tip if self._here.entry(path) == self._merge_base.entry(path) else self._here


class BroughtFiles:
    """Files of any name that the work did not change, with the contents that they have after the merge."""

    def __init__(
        self, repository: Repository, here: HashedFiles, merge_base: Commit | None, tip: Commit | None
    ) -> None:
        self._here = here
        self._merge_base = CommitFiles(repository, merge_base)
        self._tip = CommitFiles(repository, tip)
        self._format = repository.object_format
        self._is_behind = merge_base != tip

    def has(self, path: str, content: bytes | None) -> bool:
        """Return whether the merge, without changes of the work, leaves `content` (None for a missing file) at `path`, relative to the top level."""
        if not self._is_behind or self._here.entry(path) != self._merge_base.entry(path):
            return False
        expected_entry = None if content is None else Entry("file", blob_id(content, self._format))
        return self._tip.entry(path) == expected_entry


# The merge by Git


class ProposedMerge(NamedTuple):
    """The commit of a proposed merge, which no ref leads to, and the name of that merge."""

    commit: Commit
    name: str

    def read(self, repository: Repository, project: Project, *, progress: Progress = no_progress) -> History:
        """Read the history that ends with the commit."""
        history = read_history(repository, project, self.commit.id, progress=progress)
        history.ref = self.name
        return history


def merge_head_into(repository: Repository, project: Project, approved_ref: str) -> ProposedMerge:
    """Merge HEAD into `approved_ref` with Git, as a squash.

    It writes objects, as `git merge-tree` does, but no ref and no file; the same work gives the same commit.

    Raises:
        HistoryError: the ref does not exist, nothing was committed, or the two conflict.
    """
    ref, tip = resolve_approved_ref(repository, project, approved_ref)
    head = repository.commit("HEAD")
    if head is None or tip is None:
        raise HistoryError("--base plans for commits, and there is no commit here yet")
    options: tuple[str, ...] = OPTIONS
    # Each merge driver of the settings is replaced with `false`: a conflict instead of a foreign program.
    drivers = dict.fromkeys(name for name, _ in repository.settings(r"^merge\..*\.driver$"))
    variables = {"GIT_CONFIG_COUNT": str(len(drivers))}
    for index, name in enumerate(drivers):
        variables |= {f"GIT_CONFIG_KEY_{index}": name, f"GIT_CONFIG_VALUE_{index}": "false"}
    if repository.promisor:
        # Git itself finds out which of the missing files of a partial clone it has to fetch for a merge.
        options = FETCH if repository.top else BARE_FETCH
        variables |= {**fetch_variables(), "GIT_NO_LAZY_FETCH": "0"}
    try:
        tree = repository.run(
            *("merge-tree", "--write-tree", tip.id, head.id), options=(*options, *_WITHOUT_FILTERS), variables=variables
        )
    except GitFailed as failure:
        if not failure.has_result:
            raise
        raise HistoryError(
            f"{head.short} cannot be merged into {ref}: they conflict",
            fix=f"`git merge {quote(ref)}`, resolve the conflicts, and commit",
        ) from failure
    message = f"{head.short} merged into {ref}"
    roles = {f"GIT_{role}_{key}": _AUTHOR for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    dates = {f"GIT_{role}_DATE": f"@{tip.time_s} +0000" for role in ("AUTHOR", "COMMITTER")}
    tree_id = tree.decode().strip()
    commit_id = repository.run("commit-tree", tree_id, "-p", tip.id, "-m", message, variables={**roles, **dates})
    commit = repository.commit(commit_id.decode().strip())
    assert commit  # noqa: S101  it was created here
    return ProposedMerge(commit, message)
