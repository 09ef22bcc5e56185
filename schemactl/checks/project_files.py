"""Read all files of a project: declarations, overlays, numbers files and waivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from shlex import quote
from typing import Any

from schemactl.core.catalog import Catalog, list_namespaces
from schemactl.core.errors import DeclarationError, Problem, SchemactlError, did_you_mean
from schemactl.core.escaping import escape_path
from schemactl.core.findings import Waiver
from schemactl.core.names import find_matching_topics
from schemactl.core.project import Project
from schemactl.declare import definition, reader
from schemactl.declare import waivers as declare_waivers
from schemactl.declare.files import SUFFIXES, Files
from schemactl.declare.numbers_file import NumbersFiles, read_all_numbers_files
from schemactl.declare.project import place_in_project
from schemactl.declare.reader import Declared
from schemactl.declare.references import is_folder
from schemactl.history import commit_files
from schemactl.history.commit_files import CommitFiles, FileCache, HashedFiles
from schemactl.history.git import Repository
from schemactl.history.store import Store
from schemactl.history.target_history import apply_target


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The content of a project's files.

    Attributes:
        declared: the declarations, of which some may be broken.
        overlays: the overlays by target name.
        numbers: the numbers files of all targets.
        waivers: the entries of the waiver file.
    """

    declared: Declared
    overlays: Mapping[str, Catalog]
    numbers: NumbersFiles
    waivers: tuple[Waiver, ...]


@dataclass(slots=True)
class CheckCache:
    """The files and declarations that one process, such as a language server, keeps from one check to the next.

    Attributes:
        files: the contents of the working tree.
        valid_files: the valid declaration files, by project.
        declared: the declarations that were read last.
    """

    files: FileCache = field(default_factory=FileCache)
    valid_files: dict[Any, reader.ValidationCache] = field(default_factory=dict)
    declared: Declared | None = None


def read_files(
    repository: Repository,
    project: Project,
    files: CommitFiles | HashedFiles,
    *,
    allow_broken: bool = False,
    check_cache: CheckCache | None = None,
) -> ProjectFiles:
    """Read the files of a project.

    Args:
        repository: the repository of the files.
        project: the project.
        files: its files.
        allow_broken: whether declarations may have problems, as long as all other files are right.
        check_cache: the files and declarations of the previous check in this process, or None for a single check.

    Raises:
        DeclarationError: if the files have problems; `problems` has all of them.
    """
    store = Store(repository.common_directory, project.path)
    release = f"{project.release}\n".encode()
    key = project.path, project.release, tuple(sorted(project.include.items()))
    previous_validation = check_cache.valid_files.get(key) if check_cache else None
    saved_validation = b"" if previous_validation else bytes(store.read("valid") or b"")
    validation_cache = reader.ValidationCache(
        definition.Definitions(files, include=definition.Include.of(project)),
        lambda path: _make_content_id(files, path),
        saved_validation.removeprefix(release) if saved_validation.startswith(release) else b"",
        project=project,
        earlier=previous_validation,
    )
    try:
        declared = advise_restoring(repository, reader.read(files, project, cache=validation_cache))
    except SchemactlError:
        raise
    except BaseException:
        # Out of time, or interrupted by the user: the next check does not read the valid files again.
        if not previous_validation:
            store.write("valid", release + validation_cache.content_so_far())
        raise
    if check_cache:
        check_cache.valid_files[key] = validation_cache
        check_cache.declared = declared
    if not previous_validation and (content := validation_cache.content()) is not None:
        store.write("valid", release + content)
    overlays = {}
    problems: set[Problem] = set()
    for target in project.targets.values():
        try:
            overlays[target.name] = reader.read_overlays(files, project, target)
            if not declared.problems:
                problems |= {*_check_overlays(overlays[target.name], declared.catalog)}
        except DeclarationError as error:
            problems |= {*error.problems}
    numbers = read_all_numbers_files(files, project)
    waivers, wrong_waivers = declare_waivers.read_waivers(files, project.waivers)
    problems_of_files = sorted({*declared.problems, *problems, *numbers.problems, *wrong_waivers})
    declaration_paths = (path for path in list_declaration_paths(declared) if not is_folder(path))
    checked_paths = {
        project.path,
        *declaration_paths,
        *numbers.existing_paths,
        *(problem.source.path for problem in problems_of_files),
    }
    checked_paths |= {path for path in list_overlay_paths(project) if files.kind(path) != "missing"}
    if files.kind(project.waivers) != "missing":
        checked_paths.add(project.waivers)
    all_problems = {*problems_of_files, *commit_files.find_attribute_problems(repository, files, checked_paths)}
    problems_of_declarations = {problem for broken in declared.broken for problem in broken.problems}
    if all_problems - (problems_of_declarations if allow_broken else set()):
        raise DeclarationError([*all_problems])
    return ProjectFiles(declared, overlays, numbers, waivers)


def advise_restoring(repository: Repository, declared: Declared) -> Declared:
    """Return the declarations with the command that restores a missing file as the fix of its problem, if HEAD has the file."""
    head = repository.commit("HEAD")
    if head is None or not any(problem.missing for problem in declared.problems):
        return declared
    committed = commit_files.CommitFiles(repository, head)

    def suggest_restoring(problem: Problem) -> Problem:
        if not problem.missing or committed.kind(problem.missing) == "missing":
            return problem
        fix = f"`git restore -- {quote(escape_path(problem.missing))}`, or also remove the declaration of the topic"
        return replace(problem, message=f"{problem.message} any more", fix=fix)

    return replace(
        declared,
        problems=tuple(map(suggest_restoring, declared.problems)),
        broken=tuple(
            replace(broken, problems=tuple(map(suggest_restoring, broken.problems))) for broken in declared.broken
        ),
    )


def _make_content_id(files: CommitFiles | HashedFiles, path: str) -> str:
    """Return an id of the content of a file, or of all definition files in a folder."""
    if not is_folder(path):
        return ":".join(files.entry(path) or ())
    file_paths = sorted(file_path for file_path in files.below(path.removesuffix("/")) if file_path.endswith(SUFFIXES))
    return "\n".join(f"{file_path}:{':'.join(files.entry(file_path) or ())}" for file_path in file_paths)


def _check_overlays(overlays: Catalog, declared: Catalog) -> Iterator[Problem]:
    """Yield a problem for each overlay of an undeclared namespace or topic."""
    for kind, entries, declared_names in (
        ("namespace", overlays.namespaces, declared.namespaces),
        ("topic", overlays.topics, declared.topics),
    ):
        for name, entry in entries.items():
            if name not in declared_names and entry.source:
                suggestion = did_you_mean(str(name), map(str, declared_names))
                fix = f"declare the {kind}, or remove its overlay"
                yield Problem(entry.source, f"no file declares the {kind} {name}{suggestion}", fix)


def list_declaration_paths(declared: Declared) -> Iterator[str]:
    """Yield the paths of the files and whole folders that the declarations consist of."""
    sources = (
        *(entry.source for entry in declared.catalog.namespaces.values()),
        *(entry.source for entry in declared.catalog.topics.values()),
    )
    yield from (source.path for source in sources if source)
    yield from chain.from_iterable(declared.dependencies.values())


def list_overlay_paths(project: Project) -> frozenset[str]:
    """Return the paths of the overlay files of all targets."""
    return frozenset(path for target in project.targets.values() for path in target.overlays)


def check_settings(
    files: Files, project: Project, proposed_catalog: Catalog, approved_catalog: Catalog
) -> Iterator[Problem]:
    """Yield a problem for each `include` of a target that matches no topic, and for namespaces without a name on a target."""
    names = {*proposed_catalog.topics, *approved_catalog.topics}
    for target in project.targets.values():
        key_path = ("targets", target.name)
        for index, glob in enumerate(target.include):
            if not find_matching_topics(glob, names):
                place = place_in_project(files, project, (*key_path, "include", str(index)))
                yield Problem(place, f"no topic is called `{glob}`, now or before", "correct it, or remove it")
        if target.names:
            # Only current declarations are checked, because reading all approved policies is slow; `plan` checks those.
            catalogs_on_target = [
                apply_target(Catalog(catalog.namespaces, catalog.topics), target)
                for catalog in (proposed_catalog, approved_catalog)
            ]
            try:
                target.names.require({name for catalog in catalogs_on_target for name in list_namespaces(catalog)})
            except SchemactlError as error:
                key = "tenants" if target.tenants else "namespaces"
                yield Problem(place_in_project(files, project, (*key_path, key)), error.message, error.fix)


def list_unused_exclusions(
    files: Files, project: Project, proposed_catalog: Catalog, approved_catalog: Catalog
) -> Iterator[str]:
    """Yield a note for each `exclude` of a target that matches no topic: it excludes nothing, which does no harm."""
    names = {*proposed_catalog.topics, *approved_catalog.topics}
    for target in project.targets.values():
        for index, glob in enumerate(target.exclude):
            if not find_matching_topics(glob, names):
                place = place_in_project(files, project, ("targets", target.name, "exclude", str(index)))
                yield f"{place}: `exclude` of {target.name} leaves out nothing: no topic is called `{glob}`, now or before"
