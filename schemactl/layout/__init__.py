"""`fmt`: lays out declarations and definitions, without changing what they declare."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from schemactl.core.errors import DeclarationError, Problem
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo
from schemactl.declare import catalog
from schemactl.declare.catalog import in_roots
from schemactl.declare.document import TopicDocument, read_documents
from schemactl.declare.files import AVRO_SUFFIXES, YAML_SUFFIXES, Files, decode, read_bytes, resolve, shown
from schemactl.declare.reference_patterns import files_of, is_pattern
from schemactl.declare.yaml_text import read_yaml
from schemactl.formats import identity, same_text
from schemactl.formats.avro.json_text import without_comments
from schemactl.layout import json_layout, yaml_layout
from schemactl.rewriting import proved
from schemactl.source import JsonSyntaxError, place

_DEFINITION: Final = ".avsc"
"""How the name of a file ends that is a definition, whether a declaration names it or not."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The files that are not laid out yet.

    Attributes:
        contents: by path, the text as it is laid out.
        refused: the paths of files that would declare something else when laid out, which is a bug of schemactl.
        seen: the number of files looked at.
    """

    contents: dict[str, bytes]
    refused: tuple[str, ...]
    seen: int


def layout(files: Files, project: Project, wanted: Sequence[str] = ("",)) -> Layout:
    """Lay out the files of a project that are not laid out yet.

    What they declare is looked at only where there is one.

    Args:
        files: among which they are.
        project: whose files they are.
        wanted: only these of them, and those in these folders; each ends with `/`, and "" is the top of the repository.

    Raises:
        DeclarationError: files have problems.
    """
    contents: dict[str, bytes] = {}
    problems: list[Problem] = []
    refused, seen = [], 0
    for path in sorted({*paths(files, project)}):
        if not any(f"{path}/".startswith(each) for each in wanted):
            continue
        seen += 1
        try:
            text = decode(path, read_bytes(files, path))
            new = _laid_out(path, text)
        except DeclarationError as error:
            problems += error.problems
            continue
        if new == text:
            continue
        value = _yaml_value if path.endswith(YAML_SUFFIXES) else _json_value
        if value(path, text) == value(path, new):
            contents[path] = new.encode()
        else:
            refused.append(path)
    if problems:
        raise DeclarationError(problems)
    if contents:
        declared = catalog.load_all(files, project)
        kept = proved(files, project, declared, contents, is_same)
        refused += sorted(contents.keys() - kept.keys())
        contents = kept
    return Layout(contents, tuple(refused), seen)


def paths(files: Files, project: Project) -> Iterator[str]:
    """Yield the paths of the files that have a layout: the project's YAML files, and its Avro definitions as JSON."""
    of_project = {project.path, project.waivers}
    of_project |= {path for target in project.targets.values() for path in target.overlays}
    yield from (path for path in of_project if files.kind(path) == "file")
    for path in files.paths():
        if not in_roots(path, project) or files.kind(path) != "file":
            continue
        if path.endswith(_DEFINITION):
            yield path
        elif path.endswith(YAML_SUFFIXES):
            yield path
            yield from (each for each in _definitions(files, path) if files.kind(each) == "file")


def _definitions(files: Files, path: str) -> Iterator[str]:
    """Yield the Avro files that the declarations in a YAML file name, wherever these are."""
    for document in read_documents(path, read_bytes(files, path)).documents:
        schema = document.schema if isinstance(document, TopicDocument) else None
        for each in (schema, schema.key, schema.value) if schema else ():
            for written in (each.definition, *each.references) if each else ():
                if isinstance(written, str):
                    with suppress(ValueError):
                        yield from _named(files, posixpath.dirname(path), written)


def _named(files: Files, folder: str, written: str) -> Iterator[str]:
    """Yield the Avro files that a path, glob or folder in a file of `folder` means. Raise ValueError where it leads elsewhere."""
    if is_pattern(written):
        yield from files_of(files, folder, written)
    elif written.endswith(AVRO_SUFFIXES):
        yield resolve(folder, written)


def _laid_out(path: str, text: str) -> str:
    """Return the text of a file laid out. Raise DeclarationError if it is neither YAML nor JSON."""
    if path.endswith(YAML_SUFFIXES):
        return yaml_layout.laid_out(path, text)
    try:
        return json_layout.laid_out(text)
    except JsonSyntaxError as error:
        problem = Problem(place(shown(path), text, error.offset), error.what, error.fix)
        raise DeclarationError([problem]) from None


def is_same(one: SchemaInfo, other: SchemaInfo) -> bool:
    """Return whether two schemas are one version in the same words."""
    return identity(one) == identity(other) and same_text(one, other)


def _yaml_value(path: str, text: str) -> list[str]:
    """Return the values of a YAML file's documents, without the order of keys."""
    documents, _ = read_yaml(path, text.encode())
    return [json.dumps(document.value, sort_keys=True) for document in documents]


def _json_value(_path: str, text: str) -> str:
    """Return what a JSON text says, with the order of its keys."""
    return json.dumps(json.loads(without_comments(text), parse_float=_spelt, parse_int=_spelt))


def _spelt(digits: str) -> list[str]:
    """Return a number as it is spelt, in a form that differs from the same text."""
    return ["number", digits]
