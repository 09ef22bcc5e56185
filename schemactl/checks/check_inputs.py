"""Read the files of a check and the approved history that they are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce
from operator import or_

from schemactl.checks.changed_protos import ChangedProto, find_changed_protos
from schemactl.checks.checked_files import CheckedFiles, CheckRequest
from schemactl.checks.environments import Note
from schemactl.checks.project_files import ProjectFiles, list_overlay_paths, read_files
from schemactl.checks.proposal import Comparison, KindKey, MovedTopic
from schemactl.checks.waivers import WaiverFile, WaiverKey
from schemactl.core.catalog import filter_catalog
from schemactl.core.deadline import Deadline
from schemactl.core.errors import DeclarationError, Problem, SchemactlError, Source, join_first
from schemactl.core.findings import Waiver, WaiversAt
from schemactl.core.names import NamespaceName, TopicName, select_known_topics
from schemactl.core.project import Project
from schemactl.core.schema import Commit
from schemactl.declare.project import choose_target, place_in_project
from schemactl.declare.reader import BrokenDeclaration, Declared, describe_unused_paths
from schemactl.history.approved_history import (
    History,
    read_history,
    read_other_projects,
    read_waivers_of_commit,
    resolve_approved_ref,
)
from schemactl.history.git import Repository
from schemactl.history.merge import Forked, LocalChanges, read_forked
from schemactl.history.versions import Derivation, Progress


@dataclass(frozen=True)
class CheckInputs:
    """The files of one project that a check judges, and the approved history that it compares them with.

    Attributes:
        request: the request.
        repository: the open repository.
        checked: the files, and their project.
        content: the content of the files.
        forked: the approved history, also at the merge base.
        head: the commit before the checked change, or None without one.
        note: called with each remark that is printed at once and is not in the report.
    """

    request: CheckRequest
    repository: Repository
    checked: CheckedFiles
    content: ProjectFiles
    forked: Forked
    head: Commit | None
    note: Note

    @property
    def comparison_at_merge_base(self) -> Comparison:
        """The comparison of the declarations with the approved history at the merge base."""
        return Comparison(
            self.content.declared.catalog, self.forked.merge_base.catalog, self.checked.project, moved=self.moved_topics
        )

    @property
    def is_whole(self) -> bool:
        """Whether all topics and targets are judged."""
        request = self.request
        is_filtered = request.topics or request.namespaces or request.paths or request.target
        return not (is_filtered or self.content.declared.broken)

    @cached_property
    def selected(self) -> frozenset[TopicName] | None:
        """The topics that --topic, --namespace and the paths select, or None if all topics are checked."""
        topics, namespaces, paths = self.request.topics, self.request.namespaces, self.request.paths
        if not topics and not namespaces and not paths:
            return None
        declared, approved_history = self.content.declared, self.forked.approved_history
        names = {*declared.catalog.topics, *declared.broken_topics, *approved_history.catalog.topics}
        selected = select_known_topics(names, topics, namespaces, where="the declared files and the approved history")
        if not paths or self.checked.proposed_project.path in paths:
            return selected
        # A removed file still names the topics that it declared.
        selected &= declared.find_topics_at(paths) | approved_history.find_topics_at(paths)
        for path_note in describe_unused_paths(declared, paths, selected):
            self.note(path_note)
        return selected

    @cached_property
    def readable_topics(self) -> frozenset[TopicName] | None:
        """The requested topics whose declarations can be read, or None if all topics are checked."""
        return None if self.selected is None else self.content.declared.filter_readable(self.selected)

    @cached_property
    def branch_changes(self) -> LocalChanges:
        """The changes of the files since the merge base."""
        return self.forked.compare_with_base(self.checked.files, self.content.declared)

    @cached_property
    def moved_topics(self) -> Mapping[TopicName, MovedTopic]:
        """The new topics that another approved project of the repository has; they are compared like renamed topics."""
        approved_history = self.forked.approved_history
        tip, approved_names = approved_history.tip, {*approved_history.catalog.topics}
        old_names = {
            name: [topic.renamed_from] if topic.renamed_from else [name, *name.same_names_elsewhere]
            for name, topic in self.content.declared.catalog.topics.items()
            if not {name, *name.same_names_elsewhere, topic.renamed_from} & approved_names
        }
        moved: dict[TopicName, MovedTopic] = {}
        if not old_names or tip is None:
            return moved
        for project in read_other_projects(self.repository, self.checked.project, tip):
            catalog = read_history(self.repository, project, tip.id).catalog
            for name, candidates in old_names.items():
                old_topic = next((topic for candidate in candidates if (topic := catalog.topics.get(candidate))), None)
                if old_topic and old_topic.versions:
                    strategy, _ = catalog.strategy(old_topic.name, project.defaults)
                    moved[name] = MovedTopic(old_topic.load(), strategy, project)
        return moved

    @cached_property
    def changed_protos(self) -> Mapping[KindKey, ChangedProto]:
        """The PROTOBUF topics and kinds that replace or remove `proto:`, because the approved file judges them as well."""
        return find_changed_protos(
            self.checked,
            self.content.declared.catalog,
            self.forked.approved_history,
            unchanged=self.branch_changes.unchanged,
        )

    @cached_property
    def waiver_file(self) -> WaiverFile:
        """The waivers of the checked files, with the waivers that were in force before the change."""
        tips = {self.forked.merge_base.tip, self.forked.approved_history.tip} if self.content.waivers else set()
        return WaiverFile(
            self.content.waivers,
            reduce(or_, map(self.count_waivers, tips), Counter()),
            self.request.today,
            frozenset(waiver for tip in tips for waiver in self._read_waivers(tip)),
        )

    @cached_property
    def list_waivers_in_force(self) -> WaiversAt:
        """A function that returns the waivers in force in the tree of a commit, which decide about the version that it adds."""
        return cache(lambda commit: replace(self.waiver_file, waivers=self._read_waivers(commit)).in_force)

    def count_waivers(self, commit: Commit | None) -> Counter[WaiverKey]:
        """Count the waivers in the tree of a commit by their keys."""
        return Counter(waiver.key for waiver in self._read_waivers(commit))

    def _read_waivers(self, commit: Commit | None) -> tuple[Waiver, ...]:
        return read_waivers_of_commit(self.repository, self.checked.project, commit) if commit else ()

    def list_settings_paths(self) -> set[str]:
        """Return the paths of the project file, the overlays and the numbers files, which can concern every topic."""
        overlays = list_overlay_paths(self.checked.proposed_project)
        return {self.checked.project.path, *overlays, *self.content.numbers.all_paths}


def read_check_inputs(
    request: CheckRequest,
    checked: CheckedFiles,
    *,
    repository: Repository,
    deadline: Deadline,
    on_commit: Progress,
    note: Note,
) -> CheckInputs:
    """Read the approved history and the content of the checked files.

    An interrupted run saves the part of the history that it has read, so the history comes first. Problems of the files have priority.

    Raises:
        DeclarationError: if the files have problems other than broken declarations, or `adopted` changes approved numbers.
        SchemactlError: if the history cannot be read, or `adopted` does not name a commit of the approved line.
    """
    proposed_project, project, judging_project = checked.proposed_project, checked.project, checked.judging_project
    if request.target is not None:
        choose_target(proposed_project, request.target, f"--target {request.target}")
    deadline.begin("reading the approved history")
    history_problem: SchemactlError | None = None
    try:
        head = repository.commit("HEAD^" if request.amend else "HEAD")
        approved_ref = request.approved_ref or _find_ref_of_amended_commit(request, repository, project)
        forked = read_forked(
            repository, project, head, approved_ref, by_commit=bool(request.approved_ref), progress=on_commit
        )
    except SchemactlError as error:
        history_problem = error
    deadline.begin("reading the declared files")
    content = read_files(
        repository,
        replace(project, targets=proposed_project.targets),
        checked.files,
        allow_broken=True,
        check_cache=request.check_cache,
    )
    if history_problem is not None:
        raise history_problem
    if judging_project and judging_project.project.adopted != proposed_project.adopted:
        value = judging_project.project.adopted
        renumbered = Derivation(repository, project).find_renumbered(judging_project.tip, proposed_project.adopted)
        if renumbered:
            raise DeclarationError(
                [
                    Problem(
                        place_in_project(checked.files, proposed_project, ("adopted",)),
                        f"`adopted` would change the numbers of approved versions: {join_first(renumbered, 3)}",
                        f"write {value}, as approved"
                        if value
                        else "remove it: it takes effect only before the project is approved",
                    )
                ]
            )
    deadline.begin("comparing declarations with the approved history")
    declared, forked = _leave_out_undecided(content.declared, forked)
    content = replace(content, declared=keep_broken_as_approved(declared, forked.merge_base))
    return CheckInputs(request, repository, checked, content, forked, head, note)


def _find_ref_of_amended_commit(request: CheckRequest, repository: Repository, project: Project) -> str | None:
    """Return the parent of HEAD if an amended commit replaces the tip of the approved ref; else None."""
    head = repository.commit("HEAD")
    if not request.amend or head is None or resolve_approved_ref(repository, project)[1] != head:
        return None
    if repository.commit("HEAD^") is None:
        raise SchemactlError(
            "the amended commit is the first commit, so it has no parent to compare with",
            fix="git commit --amend --no-verify",
        )
    return "HEAD^"


def _leave_out_undecided(declared: Declared, forked: Forked) -> tuple[Declared, Forked]:
    """Make the topics whose version numbers depend on the installed protoc broken, and leave them out of the history."""
    undecided = forked.approved_history.undecided
    if not undecided:
        return declared, forked

    def is_kept(name: NamespaceName | TopicName) -> bool:
        return isinstance(name, NamespaceName) or name.schema_id not in undecided

    broken = []
    for name, topic in {**forked.approved_history.catalog.topics, **declared.catalog.topics}.items():
        if not is_kept(name):
            error, source = undecided[name.schema_id], topic.source or Source(forked.approved_history.ref)
            broken.append(BrokenDeclaration(name, source.path, (Problem(source, error.message, error.fix),)))
    declared = replace(declared, catalog=filter_catalog(declared.catalog, is_kept), broken=(*declared.broken, *broken))
    return declared, forked.map_catalogs(lambda catalog: filter_catalog(catalog, is_kept))


def keep_broken_as_approved(declared: Declared, merge_base: History) -> Declared:
    """Return the declarations with the broken ones as they were approved, so that they do not look removed.

    Args:
        declared: the declarations; a file with problems also declares what it declared at the merge base.
        merge_base: the approved history at the merge base.
    """
    if not declared.broken:
        return declared
    names: set[TopicName | NamespaceName | None] = {broken.name for broken in declared.broken}
    known_names = {*names, *declared.catalog.topics, *declared.catalog.namespaces}
    broken_before = [
        BrokenDeclaration(name, broken.path, broken.problems)
        for broken in {broken.path: broken for broken in declared.broken}.values()
        for name in merge_base.list_declared(broken.path)
        if name not in known_names
    ]
    names.update(broken.name for broken in broken_before)
    catalog, base_catalog = declared.catalog, merge_base.catalog
    namespaces = {name: entry for name, entry in base_catalog.namespaces.items() if name in names}
    topics = {
        name: replace(topic, versions=())
        for name, topic in base_catalog.topics.items()
        if name in names and not topic.deleted
    }
    catalog = replace(catalog, namespaces={**catalog.namespaces, **namespaces}, topics={**catalog.topics, **topics})
    return replace(declared, catalog=catalog, broken=(*declared.broken, *broken_before))
