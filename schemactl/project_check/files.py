"""Read all files of a project: declarations, overlays, numbers files and waivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from schemactl.core.errors import DeclarationError, Problem, did_you_mean
from schemactl.declare import definition, reader
from schemactl.declare import waivers as declare_waivers
from schemactl.declare.files import SUFFIXES
from schemactl.declare.numbers_file import JudgedNumbers, judge_files
from schemactl.declare.references import is_folder
from schemactl.history import Store, commit_files

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog
    from schemactl.core.findings import Waiver
    from schemactl.core.project import Project
    from schemactl.declare.reader import Declared
    from schemactl.history import CommitFiles, HashedFiles, Repository


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
