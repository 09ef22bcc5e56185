"""The reader of overlay files: which policies and partitions differ on a target."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import DeclarationError, Problem, Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Project, Target
from schemactl.core.wording import found
from schemactl.declare.document import TopicDocument, capped, settings_misfits, to_document
from schemactl.declare.files import Files, obstacle, read_bytes, shown
from schemactl.declare.project import place_in_project
from schemactl.declare.validation_errors import HOMES, Misfit, located, validation_errors
from schemactl.declare.yaml_text import YamlDocument, YamlText, read_yaml

NO_OVERLAYS: Final = Catalog()


def read_overlays(files: Files, project: Project, target: Target, *, may_miss: bool = False) -> Catalog:
    """Return the overlays of `target`: namespaces and topics by their declared names, with only what the overlay files set.

    Args:
        files: contain the overlay files.
        project: declares the target.
        target: the target.
        may_miss: ignore a missing file, which is otherwise a problem.

    Raises:
        DeclarationError: all problems of the files.
    """
    problems: list[Problem] = []
    namespaces: dict[NamespaceName, Namespace] = {}
    topics: dict[TopicName, Topic] = {}
    for index, path in enumerate(target.overlays):
        if may_miss and files.kind(path) == "missing":
            continue
        if why := obstacle(files, path):
            is_named = files.kind(project.path) == "file"
            key = ("targets", target.name, "overlays", str(index))
            place = place_in_project(files, project, key) if is_named else Source(shown(path))
            problems.append(Problem(place, why, "write the file, or remove it from `overlays`"))
            continue
        try:
            read = _read(path, read_bytes(files, path))
        except DeclarationError as error:
            problems += error.problems
            continue
        for each in read:
            first = (
                topics.setdefault(each.name, each)
                if isinstance(each, Topic)
                else namespaces.setdefault(each.name, each)
            )
            if first is not each and each.source:
                what = f"{each.name} has a second overlay on {target.name}; the first is at {first.source}"
                problems.append(Problem(each.source, what, "keep one of the two"))
    if problems:
        raise DeclarationError(problems)
    return Catalog(namespaces, topics)


@lru_cache(64)
def _read(path: str, data: bytes) -> tuple[Topic | Namespace, ...]:
    """Return the overlays in one file, which several targets and most commits may share; raise DeclarationError for its problems."""
    documents, problems = read_yaml(path, data)
    text = YamlText(path, data)
    places = {problem.source for problem in problems}
    result: list[Topic | Namespace] = []
    for number, document in enumerate(documents):
        errors = located(_misfits(document), document.node, shown(path))
        problems += [problem for problem in errors if problem.source not in places]
        if not errors:
            declared = to_document(document, text, number)
            result.append(declared.topic if isinstance(declared, TopicDocument) else declared.namespace)
    if problems:
        raise DeclarationError(capped(problems))
    return tuple(result)


def _misfits(document: YamlDocument) -> Iterator[Misfit]:
    value = document.value
    if not isinstance(value, dict):
        yield Misfit.of((), f"expected a mapping, found {found(value)}", _DOCUMENT)
        return
    kind, may_differ = ("topic", "policies and partitions") if "topic" in value else ("namespace", "policies")
    fixed = [key for key in value if HOMES.get(key) in _THE_SAME[kind] and key != "partitions"]
    for key in fixed:
        fix = f"set it where the {kind} is declared: only its {may_differ} may differ"
        yield Misfit.of((key,), f"`{key}` is the same on every target", fix, of_key=True)
    rest = {key: each for key, each in value.items() if key not in fixed}
    yield from [*validation_errors(f"{kind} overlay", rest)] or settings_misfits(rest)
    if [*value] == [kind]:
        yield Misfit.of((kind,), f"nothing of this {kind} is set here", "add what differs, or remove it")


_DOCUMENT: Final = "write what differs on the target: `namespace: ...` or `topic: ...`, and its policies"

_THE_SAME: Final = {"topic": ("a topic", "a topic or a namespace"), "namespace": ("a topic or a namespace",)}
"""The homes of the keys that an overlay of a topic or namespace does not have."""
