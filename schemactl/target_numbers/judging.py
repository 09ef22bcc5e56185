"""Check numbers files before they are approved, against the files and Git's history."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from schemactl.comparison.changes import Contents
from schemactl.core.catalog import Catalog
from schemactl.core.errors import DeclarationError, Problem
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo, next_number
from schemactl.declare.files import Files
from schemactl.formats import spec
from schemactl.target_numbers.file import numbers_path, read_numbers
from schemactl.target_numbers.mapping import NumberEntry, TargetNumbers, unusable

_VERSION: Final = "write the number of a version of Git's, or `foreign` with the definition"


@dataclass(frozen=True, slots=True)
class JudgedNumbers:
    """The numbers files among the checked files.

    Attributes:
        records: one for each target whose file has no problems.
        problems: everything that is wrong with a file by itself.
        paths: the existing files and their foreign definitions.
        places: the same, and the paths of files that do not exist.
    """

    records: tuple[TargetNumbers, ...]
    problems: tuple[Problem, ...]
    paths: frozenset[str]
    places: frozenset[str]


def judge_files(files: Files, project: Project) -> JudgedNumbers:
    """Read the numbers files of all targets among `files`, with the definitions that they name."""
    records: list[TargetNumbers] = []
    problems: set[Problem] = set()
    paths: set[str] = set()
    places: set[str] = set()
    for target in project.targets.values():
        try:
            path = numbers_path(project, target)
        except ValueError:
            # A name that makes no file's name has no numbers file.
            continue
        places.add(path)
        if files.kind(path) == "file":
            paths.add(path)
        try:
            numbers = read_numbers(files, project, target)
        except DeclarationError as error:
            problems |= {*error.problems}
            continue
        if numbers:
            records.append(numbers)
            paths |= {entry.path for entry in _entries(numbers) if entry.path}
            problems |= {*_useless(numbers)}
    return JudgedNumbers(tuple(records), tuple(sorted(problems)), frozenset(paths), frozenset(paths | places))


def contradictions(
    records: Iterable[TargetNumbers], declared: Catalog, histories: Iterable[Catalog]
) -> tuple[Problem, ...]:
    """Return a problem for each topic or version in a record that Git does not have and will not have.

    Args:
        records: the numbers files.
        declared: the declared files; each new definition becomes the next version.
        histories: the approved history, and other forms that it may take.
    """
    catalogs = tuple(histories)
    known: dict[TopicName, frozenset[int]] = {}
    problems: set[Problem] = set()
    for numbers in records:
        for name, recorded in numbers.topics.items():
            if not any(name in each.topics for each in (declared, *catalogs)):
                if recorded.source:
                    what = f"{name} is declared nowhere, and never was"
                    fix = "write the name that Git declares, not the target's own; else remove the entry"
                    problems.add(Problem(recorded.source, what, fix))
                continue
            for entry in recorded.entries.values():
                if entry.git is None or not entry.source:
                    continue
                if name not in known:
                    known[name] = _versions(name, declared, catalogs)
                if entry.git not in known[name]:
                    problems.add(Problem(entry.source, _no_version(name, entry, known[name]), _VERSION))
    return tuple(sorted(problems))


def _no_version(name: TopicName, entry: NumberEntry, known: frozenset[int]) -> str:
    there = f"its versions are {min(known)} to {max(known)}" if known else "it has none"
    return f"number {entry.number} is recorded as version {entry.git} of {name}, which Git does not have: {there}"


def _versions(name: TopicName, declared: Catalog, histories: Iterable[Catalog]) -> frozenset[int]:
    """Return the numbers of Git's versions of the topic, with that of the declared one."""
    topic = declared.topics.get(name)
    schema = topic.schema if topic else None
    found: set[int] = set()
    for catalog in histories:
        versions = catalog.versions(name)
        found |= {version.number for version in versions}
        if schema and Contents(versions).find(schema.load()) is None:
            found.add(next_number(versions))
    return frozenset(found)


def _useless(numbers: TargetNumbers) -> Iterator[Problem]:
    """Yield a problem for each foreign definition with which messages cannot be read, unless `drift --accept` wrote it."""
    for entry in _entries(numbers):
        if entry.foreign is None or entry.source is None or _is_accepted(entry, entry.foreign):
            continue
        if spec(entry.foreign).undeclarable:
            why = f"no message has a version of the type {entry.foreign.type.name}"
        elif spec(entry.foreign).payload == "unknown" or not (wrong := unusable(entry.foreign)):
            continue
        else:
            why = f"its definition in {entry.path} cannot be used: {wrong}"
        fix = "`schemactl drift --accept` writes what the registry holds; where nobody knows it, write {deleted: true}"
        yield Problem(entry.source, f"number {entry.number} is foreign, and {why}", fix)


def _is_accepted(entry: NumberEntry, foreign: SchemaInfo) -> bool:
    """Return whether the definition's file has the name that `drift --accept` gives it, which ends with a digest of its bytes.

    A registry may hold anything, and it must be possible to record what it holds.
    """
    stem = posixpath.splitext(entry.path or "")[0]
    return stem.endswith(f"-{entry.number}-{hashlib.sha256(foreign.schema).hexdigest()[:8]}")


def _entries(numbers: TargetNumbers) -> Iterator[NumberEntry]:
    for recorded in numbers.topics.values():
        yield from recorded.entries.values()
