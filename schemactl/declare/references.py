"""Inline Avro types of other files where they are first used, and find the files that a folder or glob in `references` means.

Files know each other's types by name alone, whatever folder they are in, as long as the declaration lists them. A type
used by nobody is left out. Which place in the result came from which file is remembered, so that findings point there.

What is listed that way is a choice: a definition takes from it the types it needs, and whatever else is there makes no difference.
So a definition is made of the files it takes types of, and of the folder itself, which is written with a `/` at its end.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Any, Final

from schemactl.core.errors import DeclarationError, Problem, Source, meant
from schemactl.core.names import glob_expression
from schemactl.declare.files import AVRO_SUFFIXES, PROTO_SUFFIX, Files, resolve
from schemactl.declare.source_location import MAX_DEPTH, JsonText, Tokens
from schemactl.declare.yaml_parser import YamlPart
from schemactl.formats.avro.schema import PRIMITIVE_TYPES, qualify

# Types of other Avro files

NAMED: Final = ("record", "error", "enum", "fixed")
_INSIDE: Final = {"array": "items", "map": "values"}


@dataclass(frozen=True, eq=False)
class AvroFile:
    """A definition as it stands in a file: its path, its value, and the text that says where its parts are."""

    path: str
    value: Any
    text: JsonText | YamlPart

    def locate(self, parts: Tokens) -> Source:
        """Return the nearest place to `parts` in the file."""
        return self.text.locate(parts)

    @cached_property
    def types(self) -> tuple[ReferencedType, ...]:
        """Every type that it defines, itself first, in document order; found once, however many topics are offered the file."""
        return tuple(named_types(self, self.value))


@dataclass(frozen=True, slots=True)
class ReferencedType:
    """A type that a file defines: its definition, and the namespace in force around it."""

    full_name: str
    file: AvroFile
    parts: Tokens
    value: dict[str, Any]
    around: str | None


@dataclass(slots=True)
class Inlined:
    """A definition that stands alone.

    Attributes:
        value: the definition with the types it needs.
        used: the paths of the files whose types were inlined.
        origins: by place in `value`, the file that it came from and the place there.
        problems: types defined twice, files that use each other.
        unknown: names that no file defines, with their places.
    """

    value: Any
    used: set[str] = field(default_factory=set)
    origins: dict[Tokens, tuple[AvroFile, Tokens]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unknown: list[tuple[str, Source]] = field(default_factory=list)

    def locate(self, parts: Tokens) -> Source:
        """Return the nearest place to `parts` of `value` in the files."""
        length = max(n for n in range(len(parts) + 1) if parts[:n] in self.origins)
        file, start = self.origins[parts[:length]]
        return file.locate(start + parts[length:])


def inline(definition: AvroFile, references: Sequence[AvroFile], offered: Sequence[AvroFile] = ()) -> Inlined:
    """`definition` with every type of `references` that it uses, directly or through them, defined at its first use.

    The definition itself comes back where nothing had to be inlined. Names resolve as Avro resolves them: in the
    namespace around them, then as they stand. A type that one of the files `offered` defines, too, which nobody listed one by
    one, is a problem where it is used.
    """
    types: dict[str, ReferencedType] = {}
    problems = []
    ambiguous: dict[str, Problem] = {}
    for file in (definition, *references, *offered):
        for named in file.types:
            known = types.setdefault(named.full_name, named)
            # What one file defines twice is for Avro's parser to judge.
            if known.file is not file:
                first = known.file.locate((*known.parts, "name"))
                problem = Problem(
                    file.locate((*named.parts, "name")),
                    f"{named.full_name} is defined here and at {first}",
                    "keep one of the two definitions, and refer to it",
                )
                if file in offered:
                    ambiguous.setdefault(named.full_name, problem)
                else:
                    problems.append(problem)
    result = Inlined(definition.value, origins={(): (definition, ())}, problems=problems)
    if not problems:
        _Inliner(result, types, ambiguous).run(definition)
    return result


class _Inliner:
    """One walk through a definition and what it uses, in document order."""

    def __init__(self, result: Inlined, types: dict[str, ReferencedType], ambiguous: dict[str, Problem]) -> None:
        self.result = result
        self.types = types
        self.ambiguous = ambiguous
        self.defined: set[str] = set()
        self.files: list[AvroFile] = []
        # How each of the files was entered: the place in the one before it, and the type that it defines.
        self.entries: list[tuple[Tokens, str]] = []

    def run(self, definition: AvroFile) -> None:
        self.files.append(definition)
        self.entries.append(((), ""))
        self.result.value = self._schema(definition.value, None, (), ())

    def _schema(self, value: Any, namespace: str | None, at: Tokens, origin: Tokens) -> Any:
        """`value`, which stands at `at` in the result and at `origin` in the innermost file, with what it needs."""
        if len(at) > MAX_DEPTH:
            what = f"with its references, the definition is nested more than {MAX_DEPTH} levels deep"
            self.result.problems.append(Problem(self.files[-1].locate(origin), what))
        elif isinstance(value, str):
            value = self._reference(value, value, namespace, at, origin)
        elif isinstance(value, list):
            value = [
                self._schema(branch, namespace, (*at, str(index)), (*origin, str(index)))
                for index, branch in enumerate(value)
            ]
        elif isinstance(value, dict):
            kind = value.get("type")
            if kind in NAMED:
                value = self._definition(value, namespace, at, origin)
            elif isinstance(kind, str) and (key := _INSIDE.get(kind, "")) in value:
                value = {**value, key: self._schema(value[key], namespace, (*at, key), (*origin, key))}
            elif isinstance(kind, str):
                value = self._reference(kind, value, namespace, at, (*origin, "type"))
        return value

    def _definition(self, value: dict[str, Any], namespace: str | None, at: Tokens, origin: Tokens) -> Any:
        full_name, within = own_names(value, namespace)
        known = self.types.get(full_name)
        if full_name in self.defined and known and known.file is self.files[-1] and known.parts == origin:
            # It was used before this, its place of definition, and stands there.
            return full_name
        self.defined.add(full_name)
        if full_name in self.ambiguous:
            self.result.problems.append(self.ambiguous.pop(full_name))
        fields = value.get("fields")
        if not isinstance(fields, list):
            return value
        return {**value, "fields": [self._field(each, within, index, at, origin) for index, each in enumerate(fields)]}

    def _field(self, value: Any, namespace: str | None, index: int, at: Tokens, origin: Tokens) -> Any:
        if not isinstance(value, dict) or "type" not in value:
            return value
        inside = ("fields", str(index), "type")
        return {**value, "type": self._schema(value["type"], namespace, at + inside, origin + inside)}

    def _reference(self, name: str, written: Any, namespace: str | None, at: Tokens, origin: Tokens) -> Any:
        """`written`, which refers to `name`, or the definition of that type at its first use."""
        if name in PRIMITIVE_TYPES:
            return written
        here = self.files[-1]
        full_name = qualify(name, namespace)[0]
        named = self.types.get(full_name) or self.types.get(name)
        if named is None:
            self.result.unknown.append((full_name, here.locate(origin)))
            if full_name != name:
                self.result.unknown.append((name, here.locate(origin)))
        if named is None or named.file is here is self.files[0]:
            return written
        if named.file is not here and named.file in self.files:
            self._add_cycle(origin, named)
            return written
        if named.full_name in self.defined:
            return written
        self.result.used.add(named.file.path)
        self.result.origins[at] = (named.file, named.parts)
        self.files.append(named.file)
        self.entries.append((origin, named.full_name))
        value = self._schema(named.value, named.around, at, named.parts)
        self.files.pop()
        self.entries.pop()
        return value if named.around == namespace else qualified(value, named.around)

    def _add_cycle(self, origin: Tokens, named: ReferencedType) -> None:
        """Add the problem of files that need each other: the same one, wherever the cycle was entered."""
        start = self.files.index(named.file)
        files, entries = self.files[start:], [*self.entries[start + 1 :], (origin, named.full_name)]
        first = min(range(len(files)), key=lambda at: files[at].path)
        files, entries = files[first:] + files[:first], entries[first:] + entries[:first]
        uses = [f"{name} of `{other.path}`" for (_, name), other in zip(entries, [*files[1:], files[0]], strict=True)]
        self.result.problems.append(
            Problem(
                files[0].locate(entries[0][0]),
                f"these files need each other: `{files[0].path}` uses {', which uses '.join(uses)}",
                "put types that need each other into one file",
            )
        )


def defined_names(file: AvroFile) -> Iterator[str]:
    """Yield the full name of every type that a file defines."""
    return (named.full_name for named in file.types)


class DefinedTypes:
    """The types that the Avro files of a repository define; `read` reads one of them."""

    def __init__(self, files: Files, read: Callable[[str], AvroFile]) -> None:
        self._files = files
        self._read = read

    def definer(self, name: str) -> str | None:
        """Return the path of the first file that defines the type `name`; None: there is none."""
        return self._paths.get(name)

    def similar(self, name: str) -> str | None:
        """Return the type that was probably meant by `name`; None: there is none."""
        return meant(name, self._paths, likeness=0.85)

    @cached_property
    def _paths(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in sorted(each for each in self._files.paths() if each.endswith(AVRO_SUFFIXES)):
            with suppress(DeclarationError):
                for name in defined_names(self._read(path)):
                    found.setdefault(name, path)
        return found


def named_types(
    file: AvroFile, value: Any, namespace: str | None = None, parts: Tokens = ()
) -> Iterator[ReferencedType]:
    """Yield every type that `value` defines, itself first, in document order.

    Args:
        file: the file that `value` stands in.
        value: a definition as JSON.
        namespace: the namespace in force around it.
        parts: where in the file it stands.
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
    for index, each in enumerate(fields if isinstance(fields, list) else ()):
        if isinstance(each, dict):
            yield from named_types(file, each.get("type"), namespace, (*parts, "fields", str(index), "type"))
    for key in ("items", "values"):
        yield from named_types(file, value.get(key), namespace, (*parts, key))


def own_names(value: dict[str, Any], namespace: str | None) -> tuple[str, str | None]:
    """Return the full name of a definition, and the namespace in force inside it."""
    space, name = value.get("namespace"), value.get("name")
    full_name, _, inside = qualify(
        name if isinstance(name, str) else "", space if isinstance(space, str) else namespace
    )
    return full_name, inside


def qualified(value: Any, namespace: str | None) -> Any:
    """Return the definition with its namespace written out: it is no longer inside it."""
    if not isinstance(value, dict) or isinstance(value.get("namespace"), str) or "." in value["name"]:
        return value
    spelled: dict[str, Any] = {}
    for key, each in value.items():
        spelled[key] = each
        if key == "name":
            spelled["namespace"] = namespace or ""
    return spelled


# Globs and folders


def is_pattern(written: str) -> bool:
    """Return whether an entry of `references` is a glob or a folder, and no file's path."""
    return written.endswith("/") or "*" in written or "?" in written


def folder_of(here: str, written: str) -> str:
    """Return the folder, with `/` at its end, below which a pattern in a file of the folder `here` finds all its files.

    Raises:
        ValueError: it leads out of the repository, or means all of it; says why.
    """
    path = resolve(here, written)
    fixed = path if written.endswith("/") else "/".join(takewhile(lambda part: not is_pattern(part), path.split("/")))
    if not fixed:
        raise ValueError(f"`{written}` is the top folder of the repository; name a folder in it")
    return f"{fixed}/"


def files_of(files: Files, here: str, written: str, *, proto: bool = False) -> list[str]:
    """Return the files that a pattern means, sorted: `.avsc`, or `.json` where it says so; or `.proto`.

    Hidden files are left out, and so are links and other repositories, which are not followed. Raise ValueError as
    `folder_of`, and for a range that runs backwards.
    """
    folder = folder_of(here, written)
    # What is written before the first `*` or `?` is a folder's name, brackets included.
    glob = "**" if written.endswith("/") else resolve(here, written).removeprefix(folder)
    try:
        expression = glob_expression(glob, of_files=True)
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
    """Return whether what a definition is made of is a folder: any file below it may be."""
    return path.endswith("/")


def folders_above(path: str) -> list[str]:
    """Return the folders that the file at `path` is in, each with `/` at its end."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) + "/" for depth in range(1, len(parts))]


def is_among(path: str, made_of: Collection[str]) -> bool:
    """Return whether the file at `path` is one of the files `made_of`, or in one of the folders."""
    return path in made_of or any(each in made_of for each in folders_above(path))


def among(paths: AbstractSet[str], made_of: Collection[str]) -> set[str]:
    """Return those of the files at `paths` that are `made_of`, or in one of its folders: quick where few files are among many."""
    folders = tuple(filter(is_folder, made_of))
    found = {path for path in paths if path.startswith(folders)} if folders else set[str]()
    return found | {path for path in made_of if path in paths}


def written_out(made_of: Iterable[str], files: Files) -> set[str]:
    """Return the files `made_of`, with those in the folders in place of the folders."""
    found: set[str] = set()
    for path in made_of:
        found.update(files.below(path.removesuffix("/")) if is_folder(path) else [path])
    return found


def said_instead(files: Files, here: str, written: str) -> str:
    """Return what to write in place of a path that is a folder's; "" where it is none."""
    try:
        path = resolve(here, written)
    except ValueError:
        return ""
    is_there = path and next(iter(files.below(path)), path) != path
    return f"write `{posixpath.normpath(written)}/` for all files of the folder" if is_there else ""
