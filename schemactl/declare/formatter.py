"""Format the YAML files and the Avro definitions of a project."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from schemactl.codec.avro_schema import blank_comments
from schemactl.core.catalog import Namespace
from schemactl.core.errors import DeclarationError, Problem
from schemactl.core.escaping import escape_path
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.declare import reader
from schemactl.declare.document import TopicDocument, read_documents
from schemactl.declare.files import AVRO_SUFFIXES, YAML_SUFFIXES, Files, decode, read_bytes, resolve
from schemactl.declare.json_formatter import format_json
from schemactl.declare.reader import in_roots
from schemactl.declare.references import files_of, is_pattern
from schemactl.declare.rewriting import select_harmless_rewrites
from schemactl.declare.source_location import JsonSyntaxError, place
from schemactl.declare.yaml_formatter import format_yaml
from schemactl.declare.yaml_parser import read_yaml
from schemactl.formats import has_same_text, identity

_DEFINITION: Final = ".avsc"
"""The suffix of files that are definitions even if no declaration names them."""


@dataclass(frozen=True, slots=True)
class FormattedFiles:
    """The files that are not formatted yet.

    Attributes:
        contents: the formatted text by path.
        refused: the paths of files whose formatted text would declare something else, which is a bug of schemactl.
        read_count: the number of files read.
        problems: the problems of files that were not formatted for that reason.
    """

    contents: dict[str, bytes]
    refused: tuple[str, ...]
    read_count: int
    problems: tuple[Problem, ...] = ()


def format_files(files: Files, project: Project, prefixes: Sequence[str] = ("",)) -> FormattedFiles:
    """Format the files of a project that are not formatted yet.

    The declarations are read only if a file changes. A file with problems is not formatted, and stops no other file.

    Args:
        files: the files of the repository.
        project: the project.
        prefixes: the files and folders to format; each ends with `/`, and "" is the top of the repository.

    Raises:
        DeclarationError: if a problem concerns all files.
    """
    contents: dict[str, bytes] = {}
    problems: list[Problem] = []
    refused, read_count = [], 0
    for path in sorted({*_list_paths(files, project)}):
        if not any(f"{path}/".startswith(prefix) for prefix in prefixes):
            continue
        read_count += 1
        try:
            text = decode(path, read_bytes(files, path))
            new = format_yaml(path, text) if path.endswith(YAML_SUFFIXES) else format_json(text)
        except DeclarationError as error:
            problems += error.problems
            continue
        except JsonSyntaxError as error:
            problems.append(Problem(place(escape_path(path), text, error.offset), error.message, error.fix))
            continue
        if new == text:
            continue
        if _parse_values(path, text) == _parse_values(path, new):
            contents[path] = new.encode()
        else:
            refused.append(path)
    if contents:
        declared = reader.read(files, project)
        if declared.common_problems:
            raise DeclarationError(declared.problems)
        problems += [problem for problem in declared.problems if problem.source.path in contents]
        broken_paths = {problem.source.path for problem in problems}
        contents = {path: data for path, data in contents.items() if path not in broken_paths}

        def is_same(old: SchemaInfo, new: SchemaInfo) -> bool:
            return identity(old) == identity(new) and has_same_text(old, new)

        harmless_contents = select_harmless_rewrites(
            files, project, declared, contents, is_same, is_allowed_for_client=is_same
        )
        refused += sorted(contents.keys() - harmless_contents.keys())
        contents = harmless_contents
    return FormattedFiles(contents, tuple(refused), read_count, tuple(sorted(set(problems))))


def _list_paths(files: Files, project: Project) -> Iterator[str]:
    """Yield the paths of the files that `fmt` formats: the YAML files of the project, and its Avro definitions as JSON."""
    project_files = {project.path, project.waivers}
    project_files |= {path for target in project.targets.values() for path in target.overlays}
    yield from (path for path in project_files if files.kind(path) == "file")
    for path in files.paths():
        if not in_roots(path, project) or files.kind(path) != "file":
            continue
        if path.endswith(_DEFINITION):
            yield path
        elif path.endswith(YAML_SUFFIXES):
            yield path
            yield from (named for named in _find_definitions(files, path) if files.kind(named) == "file")


def _find_definitions(files: Files, path: str) -> Iterator[str]:
    """Yield the Avro files that the declarations in a YAML file name, inside and outside the roots."""
    folder = posixpath.dirname(path)
    documents: Sequence[TopicDocument | Namespace] = ()
    with suppress(DeclarationError):
        documents = read_documents(path, read_bytes(files, path)).documents
    for document in documents:
        schemas = document.declarations if isinstance(document, TopicDocument) else []
        for part in (part for schema in schemas for part in (schema, schema.key, schema.value)):
            if part and part.type is SchemaType.EXTERNAL:
                continue
            for declared in (part.definition, *part.references) if part else ():
                if not isinstance(declared, str):
                    continue
                # A path that leads out of the repository is a problem of the declaration.
                with suppress(ValueError):
                    if is_pattern(declared):
                        yield from files_of(files, folder, declared)
                    elif declared.endswith(AVRO_SUFFIXES):
                        yield resolve(folder, declared)


def _parse_values(path: str, text: str) -> list[str]:
    """Return the value of each document in a YAML or JSON text, as JSON that is equal if the values are.

    The keys of YAML are sorted. In JSON, the order of keys and the digits of numbers count.
    """
    if path.endswith(YAML_SUFFIXES):
        documents, _ = read_yaml(path, text.encode())
        return [json.dumps(document.value, sort_keys=True) for document in documents]

    def keep_digits(digits: str) -> list[str]:
        # A string of the same digits differs from this list.
        return ["number", digits]

    return [json.dumps(json.loads(blank_comments(text), parse_float=keep_digits, parse_int=keep_digits))]
