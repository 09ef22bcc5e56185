"""Read all files of a project (declarations, overlays, numbers files, waivers), and group the targets that are judged alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from schemactl.checks.check import Fork
from schemactl.core.catalog import Catalog, chosen_topics, namespaces_of
from schemactl.core.errors import DeclarationError, Problem, SchemactlError, did_you_mean
from schemactl.core.names import TopicName, matching
from schemactl.core.project import Project, Target
from schemactl.core.schema import Release
from schemactl.declare import definition, reader
from schemactl.declare import waivers as declare_waivers
from schemactl.declare.files import SUFFIXES, Files
from schemactl.declare.numbers_file import JudgedNumbers, judge_files
from schemactl.declare.project import place_in_project
from schemactl.declare.reader import NO_OVERLAYS, Declared
from schemactl.declare.references import is_folder
from schemactl.declare.target_numbers import TargetNumbers
from schemactl.history import CommitFiles, Forked, History, Repository, Store, commit_files
from schemactl.history.merge import LocalChanges
from schemactl.history.target_history import differs, effective, numbered

if TYPE_CHECKING:
    from schemactl.core.findings import Finding, Waiver
    from schemactl.history import HashedFiles


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The content of a project's files, which have no problems.

    Attributes:
        overlays: by target.
        numbers: the numbers files of all targets.
    """

    declared: Declared
    overlays: Mapping[str, Catalog]
    numbers: JudgedNumbers
    waivers: tuple[Waiver, ...]


def read_files(repository: Repository, project: Project, files: CommitFiles | HashedFiles) -> ProjectFiles:
    """Return the content of `files`; raise DeclarationError with all their problems if they have any."""
    store = Store(repository.common_directory, project.path)
    release = f"{project.release}\n".encode()
    before = bytes(store.read("valid") or b"")
    cache = reader.ValidationCache(
        definition.Definitions(files),
        lambda path: _state(files, path),
        before.removeprefix(release) if before.startswith(release) else b"",
    )
    declared = reader.read(files, project, cache=cache)
    if (content := cache.content()) is not None:
        store.write("valid", release + content)
    overlays = {}
    problems: set[Problem] = set()
    for target in project.targets.values():
        try:
            overlays[target.name] = reader.read_overlays(files, project, target)
            if not declared.problems:
                problems |= {*_undeclared(overlays[target.name], declared.catalog)}
        except DeclarationError as error:
            problems |= {*error.problems}
    numbers = judge_files(files, project)
    waivers, wrong_waivers = declare_waivers.read_waivers(files, project.waivers)
    wrong = sorted({*declared.problems, *problems, *numbers.problems, *wrong_waivers})
    files_read = (path for path in paths_of(declared) if not is_folder(path))
    judged = {project.path, *files_read, *numbers.paths, *(each.source.path for each in wrong)}
    judged |= {path for path in overlay_paths(project) if files.kind(path) != "missing"}
    if files.kind(project.waivers) != "missing":
        judged.add(project.waivers)
    if found := [*wrong, *commit_files.problems(repository, files, judged)]:
        raise DeclarationError(found)
    return ProjectFiles(declared, overlays, numbers, waivers)


def paths_of(declared: Declared) -> Iterator[str]:
    """Return the files, and whole folders, that the declarations are made of."""
    sources = (
        *(each.source for each in declared.catalog.namespaces.values()),
        *(each.source for each in declared.catalog.topics.values()),
    )
    yield from (source.path for source in sources if source)
    yield from chain.from_iterable(declared.dependencies.values())


def _state(files: CommitFiles | HashedFiles, path: str) -> str:
    """Return an id for the content of a file, or of all files in a folder."""
    if not is_folder(path):
        return ":".join(files.entry(path) or ())
    below = sorted(each for each in files.below(path.removesuffix("/")) if each.endswith(SUFFIXES))
    return "\n".join(f"{each}:{':'.join(files.entry(each) or ())}" for each in below)


def overlay_paths(project: Project) -> frozenset[str]:
    """Return the paths of the overlay files."""
    return frozenset(path for target in project.targets.values() for path in target.overlays)


def _undeclared(overlays: Catalog, declared: Catalog) -> Iterator[Problem]:
    """Yield a problem for each overlay of something that no file declares."""
    for kind, held, known in (
        ("namespace", overlays.namespaces, declared.namespaces),
        ("topic", overlays.topics, declared.topics),
    ):
        for name, each in held.items():
            if name not in known and each.source:
                meant = did_you_mean(str(name), map(str, known))
                fix = f"declare the {kind}, or remove its overlay"
                yield Problem(each.source, f"no file declares the {kind} {name}{meant}", fix)


# The environments that a check judges for: declarations and history as targets have them. Equal
# targets are one environment.


@dataclass(frozen=True, slots=True)
class Judge:
    """What a change is judged by: the judging files in one state.

    Attributes:
        project: its settings judge; its paths are those of the files that are checked.
        overlays: by target.
        numbers: the records of the targets' numbers files.
        unreadable: the approved files that cannot be read, and are replaced by older ones.
    """

    project: Project
    overlays: Mapping[str, Catalog]
    numbers: tuple[TargetNumbers, ...]
    unreadable: tuple[Finding, ...] = ()


Note = Callable[[object], None]


@dataclass(frozen=True, slots=True)
class Environment:
    """A target, or several that differ in nothing.

    Attributes:
        targets: their names; empty for the declarations by themselves.
        target: one of them.
        release: the Pulsar release whose answers are predicted.
        overlays: what differs there, for the files; `approved`: the same, for the approved history.
        numbers: the record of their version numbers; None: they are Git's.
        only: topics that are on no target, and are checked as declared; None: all topics of the target.
    """

    targets: tuple[str, ...]
    target: Target | None
    release: Release
    overlays: Catalog = NO_OVERLAYS
    approved: Catalog = NO_OVERLAYS
    numbers: TargetNumbers | None = None
    only: frozenset[TopicName] | None = None

    def is_as(self, other: Environment) -> bool:
        """Return whether both environments are the same."""
        return self._settings() == other._settings()

    def _settings(self) -> tuple[object, ...]:
        target = self.target
        chosen = (target.include, target.exclude) if target else ()
        numbers = self.numbers.topics if self.numbers else {}
        return self.release, chosen, self.overlays, self.approved, numbers

    def of(
        self, declared: Declared, forked: Forked, changes: LocalChanges, note: Note
    ) -> tuple[Declared, Forked, Fork]:
        """Return the declarations, the history, and the point where the work left it, as this environment has them."""
        unchanged = changes.unchanged
        if self.target and (differs(self.target) or self.overlays != NO_OVERLAYS):
            declared, forked = self._shown(declared, forked, self.target)
            now, then = self.overlays.topics, self.approved.topics
            changed = {name for name in {*now, *then} if now.get(name) != then.get(name)}
            unchanged = frozenset(name for name in unchanged - changed if name in declared.catalog.topics)
        if self.numbers:
            declared, forked = numbered(self.numbers, declared, forked, note)
        base = forked.base
        return declared, forked, Fork(base.catalog, base.tip, unchanged, changes.combined, changes.settled)

    def _shown(self, declared: Declared, forked: Forked, target: Target) -> tuple[Declared, Forked]:
        # A topic that was renamed stays where it was: its new name may match other globs.
        chosen = chosen_topics(forked.approved.catalog.topics, target)
        renamed = [name for name, topic in declared.catalog.topics.items() if topic.renamed_from in chosen]

        def shown(history: History, overlays: Catalog) -> History:
            return history.with_catalog(effective(history.catalog, target, overlays))

        approved = shown(forked.approved, self.approved)
        return (
            replace(declared, catalog=effective(declared.catalog, target, self.overlays, further=renamed)),
            forked._replace(
                approved=approved,
                base=approved if forked.base is forked.approved else shown(forked.base, self.approved),
                stepwise=shown(forked.stepwise, self.overlays) if forked.stepwise else None,
            ),
        )


def environments(judge: Judge, before: Judge | None, declared: Catalog, approved: Catalog) -> list[Environment]:
    """Return the environments of a judge's targets, each once, and one for topics that are on no target.

    Args:
        judge: the judging files.
        before: those that were approved, if they are others: the policies of a target's approved topics are by these.
        declared: the files.
        approved: the approved history.
    """
    result: list[Environment] = []
    for target in judge.project.targets.values():
        overlays = judge.overlays.get(target.name, NO_OVERLAYS)
        environment = Environment(
            (target.name,),
            target,
            target.release or judge.project.release,
            overlays,
            before.overlays.get(target.name, overlays) if before else overlays,
            next((record for record in judge.numbers if record.target == target.name and record.topics), None),
        )
        same = next((index for index, other in enumerate(result) if other.is_as(environment)), None)
        if same is None:
            result.append(environment)
        else:
            result[same] = replace(result[same], targets=(*result[same].targets, target.name))
    if all(each.target and (each.target.include or each.target.exclude) for each in result):
        result += _of_no_target(result, declared, approved, judge.project.release)
    return result


def _of_no_target(
    environments: Sequence[Environment], declared: Catalog, approved: Catalog, release: Release
) -> Iterator[Environment]:
    """Yield an environment for the topics that are on no target, which are judged all the same."""
    names = frozenset({*declared.topics, *approved.topics})
    left = names.difference(*(chosen_topics(names, each.target) for each in environments if each.target))
    if left or not environments:
        yield Environment((), None, release, only=left if environments else None)


def setting_problems(files: Files, project: Project, declared: Catalog, approved: Catalog) -> Iterator[Problem]:
    """Yield globs of targets that match no topic, declared or approved, and namespaces without a name on a target."""
    names = {*declared.topics, *approved.topics}
    for target in project.targets.values():
        at = ("targets", target.name)
        for key, globs in (("include", target.include), ("exclude", target.exclude)):
            for index, glob in enumerate(globs):
                if not matching(glob, names):
                    what = f"no topic is called `{glob}`, now or before"
                    place = place_in_project(files, project, (*at, key, str(index)))
                    yield Problem(place, what, "correct it, or remove it")
        if target.names:
            # What policies were declared once is not asked for, which takes long: `plan` does.
            held = [effective(Catalog(each.namespaces, each.topics), target) for each in (declared, approved)]
            try:
                target.names.require({name for each in held for name in namespaces_of(each)})
            except SchemactlError as error:
                key = "tenants" if target.tenants else "namespaces"
                yield Problem(place_in_project(files, project, (*at, key)), error.what, error.fix)
