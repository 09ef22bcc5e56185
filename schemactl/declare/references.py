"""Inline Avro types of other files at their first use, and find the files that a folder or glob in `references` matches.

Files refer to types of other files by name, independent of folders, if the declaration lists these files. Unused types are omitted.
The result records the file and place of each inlined type, so that findings point there.

A definition may use only some files that a folder or glob matches, and the other files do not change it. So the files of a
definition are the files whose types it uses, and the folder itself, which is written with a `/` at its end.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import takewhile
from typing import Any, Final

from schemactl.core.errors import DeclarationError, Problem, Source, find_close_match
from schemactl.core.escaping import escape_path
from schemactl.core.names import compile_glob
from schemactl.core.schema import MAX_DEPTH
from schemactl.declare.files import AVRO_SUFFIXES, PROTO_SUFFIX, Files, decode, resolve
from schemactl.declare.source_location import JsonText, Tokens, place
from schemactl.declare.strict_json import read_json
from schemactl.declare.yaml_parser import YamlPart
from schemactl.formats.avro.schema import PRIMITIVE_TYPES, qualify

# Types of other Avro files

NAMED: Final = ("record", "error", "enum", "fixed")
_CONTENT_KEYS: Final = {"array": "items", "map": "values"}
"""The key of the contained schema, by type."""


@dataclass(frozen=True, eq=False)
class AvroFile:
    """A definition in a file: its path, its value, and the text that locates its parts."""

    path: str
    value: Any
    text: JsonText | YamlPart

    @classmethod
    def parse(cls, path: str, data: bytes) -> AvroFile:
        """Parse the content of a JSON file.

        Raises:
            DeclarationError: if it is not JSON.
        """
        text = decode(path, data)
        json_text = JsonText(text, partial(place, escape_path(path), text))
        return cls(path, read_json(json_text), json_text)

    def locate(self, parts: Tokens) -> Source:
        """Return the nearest place to `parts` in the file."""
        return self.text.locate(parts)

    @cached_property
    def types(self) -> tuple[ReferencedType, ...]:
        """Every type that it defines, itself first, in document order."""
        return tuple(named_types(self, self.value))


@dataclass(frozen=True, slots=True)
class ReferencedType:
    """A type that a file defines: its definition, and the enclosing namespace."""

    full_name: str
    file: AvroFile
    parts: Tokens
    value: dict[str, Any]
    around: str | None


@dataclass(slots=True)
class Inlined:
    """A definition with all types that it needs.

    Attributes:
        value: the definition as JSON.
        used: the paths of the files whose types were inlined.
        origins: the file and the place in it, by place in `value`.
        problems: types that are defined twice, and files that use each other.
        unknown: names that no file defines, with their places.
    """

    value: Any
    used: set[str] = field(default_factory=set)
    origins: dict[Tokens, tuple[AvroFile, Tokens]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unknown: list[tuple[str, Source]] = field(default_factory=list)

    def locate(self, parts: Tokens) -> Source:
        """Return the nearest place to `parts` of `value` in the files."""
        file, file_parts = self.find_origin(parts)
        return file.locate(file_parts)

    def find_origin(self, parts: Tokens) -> tuple[AvroFile, Tokens]:
        """Return the file that writes `parts` of `value`, and the tokens there."""
        length = max(n for n in range(len(parts) + 1) if parts[:n] in self.origins)
        file, start = self.origins[parts[:length]]
        return file, start + parts[length:]


def inline(definition: AvroFile, references: Sequence[AvroFile], matched: Sequence[AvroFile] = ()) -> Inlined:
    """Inline every type that `definition` uses, directly or through other types, at its first use.

    Names are resolved as in Avro: first in the enclosing namespace, then unchanged.

    Args:
        definition: the definition, which is returned unchanged if it needs no other file.
        references: the files that the declaration lists one by one. A type that two of them define is a problem.
        matched: the files that folders and globs match. A second definition of a type in one of them is a problem only if the
            definition uses the type.
    """
    types: dict[str, ReferencedType] = {}
    problems = []
    ambiguous: dict[str, Problem] = {}
    for file in (definition, *references, *matched):
        for type_ in file.types:
            first = types.setdefault(type_.full_name, type_)
            # Avro's parser reports a type that one file defines twice.
            if first.file is not file:
                problem = Problem(
                    file.locate((*type_.parts, "name")),
                    f"{type_.full_name} is defined here and at {first.file.locate((*first.parts, 'name'))}",
                    "keep one of the two definitions, and refer to it",
                )
                if file in matched:
                    ambiguous.setdefault(type_.full_name, problem)
                else:
                    problems.append(problem)
    result = Inlined(definition.value, origins={(): (definition, ())}, problems=problems)
    if not problems:
        _Inliner(result, types, ambiguous).run(definition)
    return result


class _Inliner:
    """Walks through a definition and the types that it uses, in document order."""

    def __init__(self, result: Inlined, types: dict[str, ReferencedType], ambiguous: dict[str, Problem]) -> None:
        self.result = result
        self.types = types
        self.ambiguous = ambiguous
        self.defined: set[str] = set()
        self.files: list[AvroFile] = []
        # For each of the files, the place of the reference in the previous file, and the referenced type.
        self.entries: list[tuple[Tokens, str]] = []

    def run(self, definition: AvroFile) -> None:
        self.files.append(definition)
        self.entries.append(((), ""))
        self.result.value = self._inline_schema(definition.value, None, (), ())

    def _inline_schema(self, value: Any, namespace: str | None, parts: Tokens, origin: Tokens) -> Any:
        """Inline a schema that is at `parts` in the result and at `origin` in the current file."""
        if len(parts) > MAX_DEPTH:
            message = f"with its references, the definition is nested more than {MAX_DEPTH} levels deep"
            self.result.problems.append(Problem(self.files[-1].locate(origin), message))
        elif isinstance(value, str):
            value = self._resolve_reference(value, value, namespace, parts, origin)
        elif isinstance(value, list):
            value = [
                self._inline_schema(branch, namespace, (*parts, str(index)), (*origin, str(index)))
                for index, branch in enumerate(value)
            ]
        elif isinstance(value, dict):
            kind = value.get("type")
            if kind in NAMED:
                value = self._inline_definition(value, namespace, parts, origin)
            elif isinstance(kind, str) and (key := _CONTENT_KEYS.get(kind, "")) in value:
                value = {**value, key: self._inline_schema(value[key], namespace, (*parts, key), (*origin, key))}
            elif isinstance(kind, str):
                value = self._resolve_reference(kind, value, namespace, parts, (*origin, "type"))
        return value

    def _inline_definition(self, value: dict[str, Any], namespace: str | None, parts: Tokens, origin: Tokens) -> Any:
        full_name, within = own_names(value, namespace)
        type_ = self.types.get(full_name)
        if full_name in self.defined and type_ and type_.file is self.files[-1] and type_.parts == origin:
            # An earlier use of the type in another file has inlined the definition.
            return full_name
        self.defined.add(full_name)
        if full_name in self.ambiguous:
            self.result.problems.append(self.ambiguous.pop(full_name))
        fields = value.get("fields")
        if not isinstance(fields, list):
            return value
        inlined_fields = []
        for index, field_ in enumerate(fields):
            has_type = isinstance(field_, dict) and "type" in field_
            # Most fields need no other type, and stay unchanged.
            if not has_type or (len(parts) < MAX_DEPTH - 4 and _has_only_primitives(field_["type"])):
                inlined_fields.append(field_)
                continue
            type_parts = ("fields", str(index), "type")
            inlined = self._inline_schema(field_["type"], within, parts + type_parts, origin + type_parts)
            inlined_fields.append({**field_, "type": inlined})
        return {**value, "fields": inlined_fields}

    def _resolve_reference(self, name: str, written: Any, namespace: str | None, parts: Tokens, origin: Tokens) -> Any:
        """Return `written`, which refers to `name`, or the definition of the type at its first use."""
        if name in PRIMITIVE_TYPES:
            return written
        file = self.files[-1]
        full_name = qualify(name, namespace)[0]
        type_ = self.types.get(full_name) or self.types.get(name)
        if type_ is None:
            self.result.unknown.append((full_name, file.locate(origin)))
            if full_name != name:
                self.result.unknown.append((name, file.locate(origin)))
        if type_ is None or type_.file is file is self.files[0]:
            return written
        if type_.file is not file and type_.file in self.files:
            self._add_cycle(origin, type_)
            return written
        if type_.full_name in self.defined:
            return written
        self.result.used.add(type_.file.path)
        self.result.origins[parts] = (type_.file, type_.parts)
        self.files.append(type_.file)
        self.entries.append((origin, type_.full_name))
        value = self._inline_schema(type_.value, type_.around, parts, type_.parts)
        self.files.pop()
        self.entries.pop()
        return value if type_.around == namespace else add_namespace(value, type_.around)

    def _add_cycle(self, origin: Tokens, type_: ReferencedType) -> None:
        """Add a problem for files that need each other. The problem does not depend on the first file of the cycle."""
        start = self.files.index(type_.file)
        files, entries = self.files[start:], [*self.entries[start + 1 :], (origin, type_.full_name)]
        first = min(range(len(files)), key=lambda index: files[index].path)
        files, entries = files[first:] + files[:first], entries[first:] + entries[:first]
        uses = [f"{name} of `{other.path}`" for (_, name), other in zip(entries, [*files[1:], files[0]], strict=True)]
        self.result.problems.append(
            Problem(
                files[0].locate(entries[0][0]),
                f"these files need each other: `{files[0].path}` uses {', which uses '.join(uses)}",
                "put types that need each other into one file",
            )
        )


def _has_only_primitives(schema: Any) -> bool:
    """Return whether a schema is the name of a primitive type, or a union of such names."""
    branches = schema if isinstance(schema, list) else [schema]
    return all(isinstance(branch, str) and branch in PRIMITIVE_TYPES for branch in branches)


class DefinedTypes:
    """The types that the Avro files of a repository define.

    Args:
        files: the files of the repository.
        read: reads the Avro file at a path.
    """

    def __init__(self, files: Files, read: Callable[[str], AvroFile]) -> None:
        self._files = files
        self._read = read

    def find_definer(self, name: str) -> str | None:
        """Return the path of the first file that defines the type `name`, or None."""
        return self._paths_by_name.get(name)

    def find_similar(self, name: str) -> str | None:
        """Return the defined type with the most similar name, or None."""
        return find_close_match(name, self._paths_by_name, likeness=0.85)

    @cached_property
    def _paths_by_name(self) -> dict[str, str]:
        paths_by_name: dict[str, str] = {}
        for path in sorted(path for path in self._files.paths() if path.endswith(AVRO_SUFFIXES)):
            with suppress(DeclarationError):
                for type_ in self._read(path).types:
                    paths_by_name.setdefault(type_.full_name, path)
        return paths_by_name


def named_types(
    file: AvroFile, value: Any, namespace: str | None = None, parts: Tokens = ()
) -> Iterator[ReferencedType]:
    """Yield every type that `value` defines, itself first, in document order.

    Args:
        file: the file of `value`.
        value: a definition as JSON.
        namespace: the enclosing namespace.
        parts: the place of `value` in the file.
    """
    if isinstance(value, list):
        for index, branch in enumerate(value):
            yield from named_types(file, branch, namespace, (*parts, str(index)))
    if not isinstance(value, dict):
        return
    if value.get("type") in NAMED and isinstance(value.get("name"), str):
        full_name, within = own_names(value, namespace)
        yield ReferencedType(full_name, file, parts, value, namespace)
        namespace = within
    fields = value.get("fields")
    for index, field_ in enumerate(fields if isinstance(fields, list) else ()):
        if isinstance(field_, dict):
            yield from named_types(file, field_.get("type"), namespace, (*parts, "fields", str(index), "type"))
    for key in ("items", "values"):
        yield from named_types(file, value.get(key), namespace, (*parts, key))


def own_names(value: dict[str, Any], namespace: str | None) -> tuple[str, str | None]:
    """Return the full name of a definition, and the enclosing namespace of its parts."""
    declared_namespace, name = value.get("namespace"), value.get("name")
    full_name, _, inside = qualify(
        name if isinstance(name, str) else "", declared_namespace if isinstance(declared_namespace, str) else namespace
    )
    return full_name, inside


def add_namespace(value: Any, namespace: str | None) -> Any:
    """Add the enclosing namespace to a definition that is moved out of it."""
    if not isinstance(value, dict) or isinstance(value.get("namespace"), str) or "." in value["name"]:
        return value
    definition: dict[str, Any] = {}
    for key, member in value.items():
        definition[key] = member
        if key == "name":
            definition["namespace"] = namespace or ""
    return definition


# Globs and folders


def is_pattern(written: str) -> bool:
    """Return whether an entry of `references` is a glob or a folder, not the path of a file."""
    return written.endswith("/") or "*" in written or "?" in written


def folder_of(here: str, written: str) -> str:
    """Return the folder, with `/` at its end, that contains all matches of a pattern in a file of the folder `here`.

    Raises:
        ValueError: if the pattern leads out of the repository, or the folder is the top folder.
    """
    path = resolve(here, written)
    folder = path if written.endswith("/") else "/".join(takewhile(lambda part: not is_pattern(part), path.split("/")))
    if not folder:
        raise ValueError(f"`{written}` is the top folder of the repository; name a folder in it")
    return f"{folder}/"


def files_of(files: Files, here: str, written: str, *, proto: bool = False) -> list[str]:
    """Return the files that a pattern matches, sorted: `.avsc`, `.json` only if the pattern ends with it, or else `.proto` files.

    Hidden files, links and files of other repositories do not match.

    Raises:
        ValueError: if the pattern leads out of the repository, matches its top folder, or has a range that runs backwards.
    """
    folder = folder_of(here, written)
    # Brackets before the first `*` or `?` are part of the name of a folder.
    glob = "**" if written.endswith("/") else resolve(here, written).removeprefix(folder)
    try:
        expression = compile_glob(glob, of_files=True)
    except re.error as error:
        raise ValueError(f"`{written}` has a range that runs backwards") from error
    suffixes = (PROTO_SUFFIX,) if proto else AVRO_SUFFIXES if written.endswith(".json") else AVRO_SUFFIXES[:1]
    return sorted(
        path
        for path in files.below(folder.removesuffix("/"))
        if path.endswith(suffixes)
        and path.isprintable()
        and not any(part.startswith(".") for part in path.removeprefix(folder).split("/"))
        and expression.fullmatch(path.removeprefix(folder))
        and files.kind(path) == "file"
    )


def is_folder(path: str) -> bool:
    """Return whether a dependency of a definition is a folder."""
    return path.endswith("/")


def folders_above(path: str) -> tuple[str, ...]:
    """Return the folders around the file at `path`, each with `/` at its end."""
    return _list_folders(path.rpartition("/")[0])


@lru_cache(maxsize=1_024)  # a history has many changes in the same folders
def _list_folders(folder: str) -> tuple[str, ...]:
    parts = folder.split("/") if folder else []
    return tuple("/".join(parts[:depth]) + "/" for depth in range(1, len(parts) + 1))


def select_dependencies(paths: AbstractSet[str], dependencies: Collection[str]) -> set[str]:
    """Return the files at `paths` that are dependencies, or are in one of their folders."""
    folders = tuple(filter(is_folder, dependencies))
    matches = {path for path in paths if path.startswith(folders)} if folders else set[str]()
    return matches | {path for path in dependencies if path in paths}


def written_out(dependencies: Iterable[str], files: Files) -> set[str]:
    """Replace the folders in `dependencies` by the files below them."""
    paths: set[str] = set()
    for path in dependencies:
        paths.update(files.below(path.removesuffix("/")) if is_folder(path) else [path])
    return paths


def suggest_pattern(files: Files, here: str, written: str) -> str:
    """Return the fix for a path that names a folder, or "" if it does not."""
    try:
        path = resolve(here, written)
    except ValueError:
        return ""
    is_folder_with_files = path and next(iter(files.below(path)), path) != path
    return f"write `{posixpath.normpath(written)}/` for all files of the folder" if is_folder_with_files else ""
