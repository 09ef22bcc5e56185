"""Read the `SchemaInfo` of a declared schema from a file, from inline YAML or JSON, or from `.proto` files.

The uploaded text is the unchanged text of the file (or of the JSON in YAML), with LF line ends. A definition that is written as
YAML, or that uses types of other files, has no such text and is rendered: JSON indented by two spaces, keys in the order they are
written, without a line end after the last line.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from schemactl.core.edits import DefinitionEdit, TextEdit
from schemactl.core.errors import DeclarationError, DependsOnProtoc, InvalidSchema, Problem, Source, join_first
from schemactl.core.escaping import escape_path
from schemactl.core.json_pointer import join_pointer, split_pointer
from schemactl.core.json_values import json_text
from schemactl.core.project import Project, ProtoRendering
from schemactl.core.schema import Locator, SchemaInfo, SchemaType
from schemactl.declare.document import SchemaDeclaration
from schemactl.declare.files import (
    AVRO_SUFFIXES,
    DESCRIPTOR_SUFFIX,
    EXTERNAL_SUFFIXES,
    MAX_PROBLEMS,
    PROTO_SUFFIX,
    TEXT_SUFFIX,
    Files,
    decode,
    make_relative,
    obstacle,
    read_bytes,
    resolve,
    suggestion,
)
from schemactl.declare.payload import PAYLOAD_SUFFIX, Payload, find_name_problem, read_payload
from schemactl.declare.references import (
    AvroFile,
    DefinedTypes,
    Inlined,
    files_of,
    folder_of,
    inline,
    is_pattern,
    suggest_pattern,
)
from schemactl.declare.source_location import JsonText, Tokens
from schemactl.declare.strict_json import read_json
from schemactl.declare.text_edits import make_proto_edit, make_text_edit
from schemactl.declare.yaml_parser import YamlPart, locate_in_scalar
from schemactl.formats import SPECS
from schemactl.formats.key_value import join, split
from schemactl.formats.protobuf import load
from schemactl.formats.protobuf.imports import find_imports

if TYPE_CHECKING:
    from schemactl.formats.type_spec import Encoding


MAX_DEFINITION_BYTES: Final = 5_242_710
"""The largest definition that a broker was seen to accept."""

IDL_SUFFIX: Final = ".avdl"
_AVRO_SOURCE_SUFFIXES: Final = (IDL_SUFFIX, ".avpr")
"""The files of Avro's IDL and of Avro protocols, from which schemas are compiled."""

_MAX_CACHED_CHARACTERS: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class ResolvedDefinition:
    """The result of reading the declaration of a schema.

    Attributes:
        info: the schema; None if there are problems.
        paths: every file of the definition, including missing ones.
        unused: the places, in the declaration, of references that name a file which the definition does not use.
        avro_files: the Avro files of the definition: its own file and those whose types it uses.
        depends_on_protoc: whether another release of protoc may accept it.
    """

    info: SchemaInfo | None
    problems: tuple[Problem, ...]
    paths: frozenset[str]
    unused: tuple[Tokens, ...] = ()
    avro_files: tuple[AvroFile, ...] = ()
    depends_on_protoc: bool = False


class Include(NamedTuple):
    """The folders that prefixes of imports in `.proto` files mean, and the path of the project file that names them."""

    project_path: str
    folders: Mapping[str, str]

    @classmethod
    def of(cls, project: Project) -> Include:
        """Return the folders of a project."""
        return cls(project.path, project.include)

    def find_path(self, name: str) -> str | None:
        """Return the path in the repository that an import means by its longest prefix, or None if no prefix fits."""
        parts = name.split("/")
        if ".." in parts:
            return None
        for length in range(len(parts) - 1, 0, -1):
            folder = self.folders.get("/".join(parts[:length]))
            if folder is not None:
                return posixpath.normpath(posixpath.join(folder, *parts[length:]))
        return None

    def find_name(self, path: str) -> str | None:
        """Return the import name of a file by the longest folder that a prefix means, or None if it is in no such folder."""
        names = {
            folder: posixpath.join(prefix, make_relative(path, folder))
            for prefix, folder in sorted(self.folders.items())
            if folder in ("", ".") or path.startswith(f"{folder}/")
        }
        return names[max(names, key=len)] if names else None


NO_INCLUDE: Final = Include("", {})


class DefinitionFileCache:
    """The files of definitions in many states of one repository, by path and blob id, so that their common files are read once.

    Attributes:
        avro_files: the parsed Avro files.
        proto_texts: the valid texts of `.proto` files.
    """

    def __init__(self) -> None:
        self.avro_files: dict[tuple[str, str], AvroFile | DeclarationError] = {}
        self.proto_texts: dict[tuple[str, str], bytes] = {}
        self._characters = 0

    def add_avro_file(self, path: str, blob_id: str, file: AvroFile | DeclarationError) -> None:
        """Cache an Avro file."""
        self._count(len(file.text.text) if isinstance(file, AvroFile) and isinstance(file.text, JsonText) else 0)
        self.avro_files[path, blob_id] = file

    def add_proto_text(self, path: str, blob_id: str, text: bytes) -> None:
        """Cache the text of a `.proto` file."""
        self._count(len(text))
        self.proto_texts[path, blob_id] = text

    def _count(self, characters: int) -> None:
        """Count one more file, and drop all earlier files if the total size exceeds the limit."""
        self._characters += 100 + characters
        if self._characters > _MAX_CACHED_CHARACTERS:
            self.avro_files.clear()
            self.proto_texts.clear()
            self._characters = 100 + characters


class Definitions:
    """The definitions in `files`. Each Avro file is read and parsed once, however many topics use it.

    Args:
        files: one state of a repository.
        shared: files that other states have parsed.
        blob: returns the blob id of the file at a path, or "" if Git does not have it; needed for `shared`.
        include: the folders that prefixes of imports in `.proto` files mean.
    """

    def __init__(
        self,
        files: Files,
        *,
        shared: DefinitionFileCache | None = None,
        blob: Callable[[str], str] = lambda _: "",
        include: Include = NO_INCLUDE,
    ) -> None:
        self.files = files
        self.include = include
        self._shared = shared
        self._blob = blob
        self.is_history = shared is not None
        """Whether the files are of an old state, so that advice about them is pointless."""
        self.missed = 0
        """The number of unreadable paths in declarations."""
        self._avro_files: dict[str, AvroFile | DeclarationError] = {}
        self._proto_texts: dict[str, bytes] = {}
        self.proto_inputs: dict[Hashable, ProtoInput] = {}
        """The files of definitions that several topics share, by the part of their declarations that names the files."""
        self._results: dict[tuple[str, str], SchemaInfo | InvalidSchema] = {}

    @cached_property
    def match_files(self) -> Callable[..., list[str]]:
        """The function `files_of` for these files, which calls it once for the same glob: many topics of a folder have it."""
        return cache(partial(files_of, self.files))

    @cached_property
    def types(self) -> DefinedTypes:
        """The types that the files define."""
        return DefinedTypes(self.files, self.avro_file)

    @cached_property
    def proto_paths(self) -> list[str]:
        """The paths of all `.proto` files of the repository."""
        return sorted(path for path in self.files.below("") if path.endswith(PROTO_SUFFIX))

    def prepare(self, declarations: Iterable[SchemaDeclaration]) -> None:
        """Compile the `.proto` files of all `declarations` in one go: starting protoc takes longer than its work.

        Raises:
            SchemactlError: if protoc is needed and not installed.
        """
        jobs = {}
        for declaration in declarations:
            for part in (declaration, declaration.key, declaration.value):
                if part and (proto_input := self.read_proto(part)):
                    proto = proto_input.to_compile(part.message)
                    jobs[proto.digest(), proto.message] = proto
        if jobs:
            results = load("protoc").compile_all(list(jobs.values()))
            self._results.update(zip(jobs, results, strict=True))

    def read_proto(self, declaration: SchemaDeclaration) -> ProtoInput | None:
        """Read the files of a declaration with a `.proto` definition, or return None if that has problems (see `read`)."""
        return _DefinitionReader(self, declaration).read_proto()

    def compile(self, proto: Any) -> SchemaInfo:
        """Compile a `.proto` file, or return the result of `prepare` (see `formats.protobuf.protoc.compile_all`).

        Raises:
            InvalidSchema: if it does not compile.
        """
        key = proto.digest(), proto.message
        if key not in self._results:
            [self._results[key]] = load("protoc").compile_all([proto])
        result = self._results[key]
        if isinstance(result, InvalidSchema):
            raise result
        return result

    def read(self, declaration: SchemaDeclaration, rendering: ProtoRendering = "java") -> ResolvedDefinition:
        """Read the schema of `declaration`. Whether a broker accepts it is not checked here.

        Args:
            declaration: the value of `schema:`.
            rendering: the client language in whose form a `.proto` definition is read.
        """
        reader = _DefinitionReader(self, declaration, rendering)
        info = reader.read()
        return ResolvedDefinition(
            None if reader.problems else info,
            tuple(reader.problems),
            frozenset(reader.paths),
            tuple(sorted(reader.unused)),
            tuple(reader.avro_files),
            reader.depends_on_protoc,
        )

    def find_references(self, path: str) -> list[str]:
        """Return the paths of the files whose types the definition at `path` uses, directly or through each other, sorted.

        The check of the declaration reports types that no file of the repository defines. An import that could mean several files
        means the file below the folder that the import path of `path` itself starts from; all are returned if that does not decide.

        Raises:
            DeclarationError: if the file cannot be read.
        """
        if path.endswith(PROTO_SUFFIX):
            return self._find_proto_references(path)
        file, references = self.avro_file(path), dict[str, AvroFile]()
        while True:
            inlined = inline(file, list(references.values()))
            definers = {self.types.find_definer(name) for name, _ in inlined.unknown} - {None, path, *references}
            if not definers:
                return sorted(inlined.used)
            references |= {definer: self.avro_file(definer) for definer in definers if definer}

    def _find_proto_references(self, path: str) -> list[str]:
        paths = [other for other in self.proto_paths if other != path]
        while True:
            result = gather(path, partial(read_bytes, self.files), paths, self.include)
            if result.ambiguous is None:
                return sorted(result.used)
            name, *matches = result.ambiguous
            other_matches = [match for match in matches if not path.startswith(match.removesuffix(name))]
            if len(other_matches) in (0, len(matches)):
                return sorted({*result.used, *matches})
            paths = [other for other in paths if other not in other_matches]

    def check_paths(self, declaration: SchemaDeclaration) -> tuple[Problem, ...]:
        """Return the problems of the paths in a declaration that cannot be read because of other problems."""
        reader = _DefinitionReader(self, declaration)
        reader.check_paths()
        return tuple(reader.problems)

    def avro_file(self, path: str) -> AvroFile:
        """Return the JSON file at `path`.

        Raises:
            DeclarationError: if it cannot be read, or is not JSON.
        """
        if path not in self._avro_files:
            blob_id = self._blob(path) if self._shared else ""
            file = self._shared.avro_files.get((path, blob_id)) if self._shared and blob_id else None
            if file is None:
                try:
                    file = AvroFile.parse(path, read_bytes(self.files, path))
                except DeclarationError as error:
                    file = error
                if self._shared and blob_id:
                    self._shared.add_avro_file(path, blob_id, file)
            self._avro_files[path] = file
        file = self._avro_files[path]
        if isinstance(file, DeclarationError):
            raise file
        return file

    def proto_text(self, path: str) -> bytes:
        """Return the text of a `.proto` file.

        Raises:
            DeclarationError: if it cannot be read, or is not text.
        """
        if path not in self._proto_texts:
            blob_id = self._blob(path) if self._shared else ""
            text = self._shared.proto_texts.get((path, blob_id)) if self._shared and blob_id else None
            if text is None:
                text = read_bytes(self.files, path)
                decode(path, text)
                if self._shared and blob_id:
                    self._shared.add_proto_text(path, blob_id, text)
            self._proto_texts[path] = text
        return self._proto_texts[path]


class _DefinitionReader:
    """Reads one declaration, and collects its problems and files."""

    def __init__(
        self, definitions: Definitions, declaration: SchemaDeclaration, rendering: ProtoRendering = "java"
    ) -> None:
        self.definitions = definitions
        self.declaration = declaration
        self.rendering: ProtoRendering = rendering
        self.folder = posixpath.dirname(declaration.text.path)
        self.problems: list[Problem] = []
        self.paths: set[str] = set()
        self.avro_files: list[AvroFile] = []
        self.depends_on_protoc = False
        self.halves: dict[str, ResolvedDefinition] = {}
        # The indexes of the entries of `references` that name one file, and of those entries that the definition uses.
        self.listed: set[int] = set()
        self.used: set[int] = set()

    @property
    def unused(self) -> set[Tokens]:
        """The places of the references that name one file from which the definition uses no type."""
        unused = {("references", str(index)) for index in self.listed - self.used}
        return unused | {(half, *parts) for half, part in self.halves.items() for parts in part.unused}

    def read(self) -> SchemaInfo | None:
        """Return the schema, which is only valid if there are no problems."""
        if self.declaration.payload is not None:
            return self._read_payload(self.declaration.payload)
        match SPECS[self.declaration.type].declared_as:
            case "pair":
                return self._read_key_value()
            case "avro" | "protobuf":
                return self._read_avro()
            case "proto":
                return self._read_protobuf_native()
            case "text" if self.declaration.definition is not None:
                return self._read_text()
        return self._build_info(
            b"", self.declaration.source, lambda pointer: self.declaration.locate(*split_pointer(pointer))
        )

    def check_paths(self) -> None:
        """Add a problem for each path that cannot be read."""
        declared = self.declaration
        if declared.payload is not None:
            self._resolve_path(declared.payload, (PAYLOAD_SUFFIX,), "payload")
            return
        is_native = declared.is_proto
        is_text = SPECS[declared.type].declared_as == "text"
        suffixes = (PROTO_SUFFIX, DESCRIPTOR_SUFFIX) if is_native else EXTERNAL_SUFFIXES if is_text else AVRO_SUFFIXES
        if isinstance(declared.definition, str) and (is_native or is_text or not declared.is_inline):
            self._resolve_path(declared.definition, suffixes, "definition")
        if declared.proto is not None:
            self._resolve_path(declared.proto, (PROTO_SUFFIX,), "proto")
        for index, written in enumerate(declared.references):
            if is_pattern(written):
                self._match_files(index, written)
            else:
                self._resolve_path(written, (*AVRO_SUFFIXES, PROTO_SUFFIX), "references", str(index))
        for half in (declared.key, declared.value):
            if half is not None:
                self.problems += self.definitions.check_paths(half)

    def _read_payload(self, written: str) -> SchemaInfo | None:
        """Return the schema in a payload file, or the separate definition of a client with the payload's type."""
        path = self._resolve_path(written, (PAYLOAD_SUFFIX,), "payload")
        if path is None:
            return None
        with self._collect_problems("payload"):
            payload = read_payload(path, read_bytes(self.definitions.files, path))
            if isinstance(self.declaration.definition, str):
                return self._read_client_definition(payload)
            self.problems += find_name_problem(payload.name, self.declaration.topic, payload.text.locate(("name",)))
            self.problems += _find_payload_problems(payload)
            info = payload.build_info({} if payload.type is SchemaType.KEY_VALUE else self.declaration.properties)
            if payload.type is SchemaType.KEY_VALUE and self.declaration.properties:
                info = _add_default_properties(info, self.declaration.properties)
            if SPECS[payload.type].language in ("avro", "pair"):
                file = AvroFile(path, read_json(payload.definition), payload.definition)
                info = replace(
                    info,
                    locator=lambda pointer: file.locate(split_pointer(pointer)),
                    editor=partial(make_text_edit, file),
                )
            else:
                source = payload.text.locate(("type",) if SPECS[payload.type].declared_as == "plain" else ("schema",))
                info = replace(info, locator=lambda _: source)
            return replace(info, source=payload.text.locate(("schema",)))
        return None

    def _read_client_definition(self, payload: Payload) -> SchemaInfo | None:
        """Return the definition in the file of a client whose topic declares a payload."""
        form = SPECS[payload.type].declared_as
        suffixes = {"avro": AVRO_SUFFIXES, "protobuf": AVRO_SUFFIXES, "proto": (PROTO_SUFFIX, DESCRIPTOR_SUFFIX)}.get(
            form
        )
        if suffixes is None or not self.declaration.definition.endswith(suffixes):
            kind = payload.type.name
            fix = f"name a file that ends with {' or '.join(suffixes)}" if suffixes else "write a version's number"
            message = f"a client of a topic whose schema is {kind} cannot be built with `{self.declaration.definition}`"
            self._add_problem(message, "schema", fix=fix)
            return None
        message_name = ""
        if form == "proto":
            descriptor = read_json(payload.definition)
            message_name = str(descriptor.get("rootMessageTypeName", "")) if isinstance(descriptor, dict) else ""
        declaration = self.declaration._replace(type=payload.type, payload=None, message=message_name)
        definition = self.definitions.read(declaration, self.rendering)
        self.problems += definition.problems
        self.paths |= definition.paths
        self.depends_on_protoc |= definition.depends_on_protoc
        return definition.info

    def _build_info(self, schema: bytes, source: Source, locator: Locator) -> SchemaInfo:
        if len(schema) > MAX_DEFINITION_BYTES:
            size = f"the definition has {len(schema):,} bytes"
            self._add_problem(f"{size}; a broker takes at most {MAX_DEFINITION_BYTES:,}", "definition")
        return SchemaInfo(self.declaration.type, schema, self.declaration.properties, source, locator)

    def _read_key_value(self) -> SchemaInfo | None:
        halves: dict[str, SchemaInfo] = {}
        for half, declaration in (("key", self.declaration.key), ("value", self.declaration.value)):
            if declaration is not None:
                definition = self.definitions.read(declaration, self.rendering)
                self.problems += definition.problems
                self.paths |= definition.paths
                self.halves[half] = definition
                self.depends_on_protoc |= definition.depends_on_protoc
                self.avro_files += definition.avro_files
                if definition.info:
                    halves[half] = definition.info
        if len(halves) < 2:
            return None
        encoding = cast("Encoding", self.declaration.encoding)
        joined = join(key=halves["key"], value=halves["value"], encoding=encoding)

        def locate(pointer: str) -> Source:
            half, *rest = split_pointer(pointer) or ("",)
            if half in halves:
                return halves[half].locate("".join(f"/{part}" for part in rest)) or self.declaration.source
            return self.declaration.locate(*split_pointer(pointer))

        def edit_half(edit: DefinitionEdit) -> TextEdit | None:
            half, *rest = split_pointer(edit.pointer) or ("",)
            return halves[half].edit(replace(edit, pointer=join_pointer(rest))) if half in halves else None

        info = self._build_info(joined.schema, self.declaration.source, locate)
        info = replace(info, editor=edit_half)
        properties = {**joined.properties, **self.declaration.properties}
        return replace(info, properties=properties, comments=joined.comments)

    def _read_avro(self) -> SchemaInfo | None:
        file = self._read_definition()
        # The files that `references` names one by one, each with the index of its entry.
        references: list[tuple[int, AvroFile]] = []
        for index, written in enumerate(self.declaration.references):
            if is_pattern(written) or (self.declaration.proto and written.endswith(PROTO_SUFFIX)):
                continue
            self.listed.add(index)
            parts = ("references", str(index))
            path = self._resolve_path(written, AVRO_SUFFIXES, *parts)
            with self._collect_problems(*parts):
                if path is not None:
                    references.append((index, self.definitions.avro_file(path)))
        if file is None or self.problems:
            return None

        # The files that globs and folders match. Those that cannot be parsed matter only if a type is missing.
        matched: list[tuple[int, AvroFile]] = []
        unreadable: list[Problem] = []
        known_paths = {*self.paths}
        for index, written in enumerate(self.declaration.references):
            for path in self._match_files(index, written) if is_pattern(written) else ():
                if path in known_paths:
                    continue
                known_paths.add(path)
                try:
                    matched.append((index, self.definitions.avro_file(path)))
                except DeclarationError as error:
                    unreadable += error.problems
        if self.problems:
            # An empty folder is one problem; each missing type would be another.
            return None

        inlined = inline(file, [reference for _, reference in references], [other for _, other in matched])
        self.problems += inlined.problems or self._find_missing_types(
            inlined, file, [*references, *matched], unreadable
        )
        used = [(index, other) for index, other in (*references, *matched) if other.path in inlined.used]
        self.used |= {index for index, _ in used}
        self.paths |= {other.path for _, other in used}
        self.avro_files = [file, *(other for _, other in used)]
        is_here = file.path == self.declaration.text.path
        source = self.declaration.definition_source if is_here else Source(escape_path(file.path))
        if inlined.used or isinstance(file.text, YamlPart):
            text = self._render_json(inlined.value)
        else:
            text = file.text.text if is_here else file.text.text.replace("\r\n", "\n")
        info = self._build_info(text.encode(), source, lambda pointer: inlined.locate(split_pointer(pointer)))

        def edit_origin(edit: DefinitionEdit) -> TextEdit | None:
            origin, parts = inlined.find_origin(split_pointer(edit.pointer))
            return make_text_edit(origin, replace(edit, pointer=join_pointer(parts)))

        info = replace(info, editor=edit_origin)
        return replace(info, proto=self._compile_proto("proto")) if self.declaration.proto else info

    def _find_missing_types(
        self,
        inlined: Inlined,
        file: AvroFile,
        references: Sequence[tuple[int, AvroFile]],
        unreadable: Sequence[Problem],
    ) -> list[Problem]:
        """Return a problem for each type that is not defined, unless all of them are left to the parser of the whole definition.

        Args:
            inlined: the definition, with the missing types.
            file: the file of the definition.
            references: the files that may be used, each with the index of its entry.
            unreadable: the problems of matched files that cannot be parsed. One of these files may define a missing type.
        """
        names_by_source: dict[Source, list[str]] = {}
        for name, source in inlined.unknown:
            names_by_source.setdefault(source, []).append(name)
        problems: list[Problem] = []
        undefined: dict[Source, str] = {}
        for source, names in names_by_source.items():
            unlisted_problems = [
                problem for name in names for problem in self._find_unlisted_type(name, source, file, references)
            ]
            problems += unlisted_problems
            if not unlisted_problems:
                undefined[source] = names[-1]
        if undefined and (unreadable or problems):
            paths = sorted({f"`{problem.source.path}`" for problem in unreadable})
            hint = f"; it may be in {join_first(paths, 3)}, which cannot be parsed" if paths else ""
            problems += [Problem(source, f"no file defines `{name}`{hint}") for source, name in undefined.items()]
            problems += unreadable
        return problems

    def _find_unlisted_type(
        self, name: str, source: Source, file: AvroFile, references: Sequence[tuple[int, AvroFile]]
    ) -> Iterator[Problem]:
        """Yield the problem of a type that only an unlisted file defines; listing that file may make a cycle, which is reported instead.

        If a listed file needs the type, it is missing in the list, and that file is right.
        """
        listed = [reference for _, reference in references]
        path = self.definitions.types.find_definer(name)
        if path is None:
            if near := self.definitions.types.find_similar(name):
                yield Problem(source, f"no file defines `{name}`", f"did you mean `{near}`?")
        elif path not in (file.path, *(reference.path for reference in listed)):
            if problems := inline(file, [*listed, self.definitions.avro_file(path)]).problems:
                yield from problems
                return
            written = make_relative(path, self.folder)
            fix = f"list that file under `references`: [{written}]"
            for index, reference in references:
                if reference.path != file.path and escape_path(reference.path) == source.path:
                    user = make_relative(reference.path, self.folder)
                    message = f"`{user}` uses `{name}`, and `{written}`, which defines it, is not listed"
                    yield Problem(self.declaration.locate("references", str(index)), message, fix)
                    return
            yield Problem(source, f"`{name}` is defined in `{written}`, which is not listed", fix)

    def _read_protobuf_native(self) -> SchemaInfo | None:
        written = str(self.declaration.definition)
        if not written.endswith(DESCRIPTOR_SUFFIX):
            info = self._compile_proto("definition")
            if info is None:
                return None
            schema = load("rendering").render_as(info.schema, self.rendering)
            return replace(info, schema=schema, properties=self.declaration.properties)
        path = self._resolve_path(written, (PROTO_SUFFIX, DESCRIPTOR_SUFFIX), "definition")
        with self._collect_problems("definition"):
            if path is not None:
                data = read_bytes(self.definitions.files, path)
                compiled: SchemaInfo = load("protoc").read_descriptor_set(
                    data, self.declaration.message, path=escape_path(path)
                )
                return replace(compiled, properties=self.declaration.properties)
        return None

    def _compile_proto(self, key: str) -> SchemaInfo | None:
        """Return the compiled `.proto` file that the key `key` names, or None with a problem."""
        proto_input = self.read_proto()
        if proto_input is None:
            return None
        proto = proto_input.to_compile(self.declaration.message)
        with self._collect_problems(key):
            try:
                info = self.definitions.compile(proto)
            except InvalidSchema as error:
                match = _MISSING_IMPORT.fullmatch(error.message)
                if match is None or match[1] in proto.sources or match[1].startswith(_PROTOC_FOLDER):
                    raise
                raise self._explain_missing_import(match[1], error) from error

            def edit_file(edit: DefinitionEdit) -> TextEdit | None:
                source = info.locate(edit.pointer)
                for name, path in proto.paths.items():
                    if source and escape_path(path) == source.path and name in proto.sources:
                        return make_proto_edit(path, proto.sources[name].decode(), source, edit)
                return None

            return replace(info, editor=edit_file)
        return None

    def _explain_missing_import(self, name: str, error: InvalidSchema) -> InvalidSchema:
        """Return the problem of an import that is not found, with the folder to list or the prefix to map.

        If a listed file needs the import, it is missing in the list, and that file is right.
        """
        include = self.definitions.include
        if included_path := include.find_path(name):
            fix = f"`protobuf.include` of {include.project_path} means `{included_path}`: add this file, or correct the folder"
            return InvalidSchema(error.message, fix=fix, source=error.source)
        self.definitions.missed += 1
        is_searched = self.definitions.missed <= MAX_PROBLEMS and not self.definitions.is_history
        parts = name.split("/")
        for start in range(len(parts) if is_searched else 0):
            ending = "/".join(parts[start:])
            paths = [path for path in self.definitions.proto_paths if f"/{path}".endswith(f"/{ending}")]
            if not paths:
                continue
            path = min(paths, key=lambda path: (len(path), path))
            if start:
                folder = path.removesuffix(ending).rstrip("/") or "."
                relative_folder = make_relative(folder, posixpath.dirname(include.project_path))
                prefix = "/".join(parts[:start])
                fix = f"write `protobuf: {{include: {{{prefix}: {relative_folder}}}}}` in {include.project_path or 'schemactl.yaml'}"
                return InvalidSchema(error.message, fix=fix, source=error.source)
            folder = make_relative(posixpath.dirname(path) or ".", self.folder)
            fix = f"list its folder: `references: [{folder}/]`"
            for index, written in enumerate(self.declaration.references):
                user = error.source.path if error.source else ""
                if not is_pattern(written) and posixpath.normpath(posixpath.join(self.folder, written)) == user:
                    source = self.declaration.locate("references", str(index))
                    return InvalidSchema(f"`{written}` imports `{name}`, which is not listed", fix=fix, source=source)
            return InvalidSchema(error.message, fix=fix, source=error.source)
        fix = "add the file to the repository, and list its folder under `references`"
        return InvalidSchema(error.message, fix=fix, source=error.source)

    def read_proto(self) -> ProtoInput | None:
        """Read the files of a `.proto` definition, or return None if the declaration names none or a file cannot be read."""
        is_native = self.declaration.is_proto
        key = "definition" if is_native else "proto"
        written = self.declaration.definition if is_native else self.declaration.proto
        if written is None or str(written).endswith(DESCRIPTOR_SUFFIX):
            return None
        # The messages of one file are mostly the roots of several topics. Other paths of the declaration can contradict these.
        names = (self.folder, key, written, self.declaration.references, self.declaration.file_name)
        is_first = not self.paths and not self.problems
        proto_input = self.definitions.proto_inputs.get(names) if is_first else None
        if proto_input is None:
            proto_input = self._gather_proto_files(key, written)
            if proto_input and is_first:
                self.definitions.proto_inputs[names] = proto_input
        if proto_input:
            self.listed |= proto_input.listed
            self.used |= proto_input.used
            self.paths |= proto_input.paths
        return proto_input

    def _gather_proto_files(self, key: str, written: str) -> ProtoInput | None:
        suffixes = (PROTO_SUFFIX, DESCRIPTOR_SUFFIX) if self.declaration.is_proto else (PROTO_SUFFIX,)
        path = self._resolve_path(written, suffixes, key)
        # The files that may be imported, each with the index of its entry, and whether the entry names the file itself.
        references: dict[str, tuple[int, bool]] = {}
        for index, written_reference in enumerate(self.declaration.references):
            if is_pattern(written_reference):
                for matched_path in self._match_files(index, written_reference, proto=True):
                    references.setdefault(matched_path, (index, False))
            elif self.declaration.is_proto or written_reference.endswith(PROTO_SUFFIX):
                self.listed.add(index)
                parts = ("references", str(index))
                if named_path := self._resolve_path(written_reference, (PROTO_SUFFIX,), *parts):
                    references[named_path] = index, True
        if path is None or self.problems:
            return None
        files = None
        with self._collect_problems(key):
            for reference, (_, is_listed) in references.items():
                if is_listed:
                    self.definitions.proto_text(reference)
            others = [reference for reference in references if reference != path]
            files = gather(
                path, self.definitions.proto_text, others, self.definitions.include, self.declaration.file_name
            )
        if files is None or self.problems:
            return None
        if files.ambiguous:
            name, first, second = files.ambiguous
            message = f'`import "{name}"` could mean `{first}` or `{second}`'
            self.problems.append(Problem(Source(escape_path(path)), message, "import it by a longer part of its path"))
            return None
        used = {references[used_path][0] for used_path in files.used if used_path in references}
        paths = {*self.paths, *files.used, *files.included}
        if files.unlisted and self.definitions.include.project_path:
            # A change of `protobuf.include` may find these imports in another file.
            paths.add(self.definitions.include.project_path)
        return ProtoInput(files, frozenset(paths), frozenset(self.listed), frozenset(used))

    def _read_definition(self) -> AvroFile | None:
        """Return the definition in its own file, or in the declaration as YAML or JSON."""
        definition, text, document = self.declaration.definition, self.declaration.text, self.declaration.document
        parts = (*self.declaration.parts, "definition")
        if not isinstance(definition, str):
            for null_parts in _find_bare_nulls(definition):
                message = "`null` without quotes is not a type in YAML"
                self._add_problem(message, "definition", *null_parts, fix='write "null"')
            return AvroFile(text.path, definition, YamlPart(text, document, parts))

        def locate(offset: int) -> Source:
            return locate_in_scalar(text.path, text.data, text.node(document, parts), offset)

        def read_block() -> str | None:
            is_block = getattr(text.node(document, parts), "style", None) == "|"
            return text.data.decode() if is_block else None

        with self._collect_problems("definition"):
            if self.declaration.is_inline:
                json_text = JsonText(definition, locate, read_block)
                return AvroFile(text.path, read_json(json_text), json_text)
            file_path = self._resolve_path(definition, AVRO_SUFFIXES, "definition")
            return self.definitions.avro_file(file_path) if file_path else None
        return None

    def _match_files(self, index: int, written: str, *, proto: bool = False) -> list[str]:
        """Return the files that a glob or folder matches; add a problem if it matches neither Avro nor `.proto` files."""
        try:
            self.paths.add(folder_of(self.folder, written))
            match = partial(self.definitions.match_files, self.folder, written)
            paths, other_paths = match(proto=proto), match(proto=not proto)
        except ValueError as error:
            self._add_problem(str(error), "references", str(index))
            return []
        if not paths and not other_paths:
            message = f"`{written}` matches no {'.proto' if self.declaration.is_proto else '.avsc'} file"
            self._add_problem(message, "references", str(index), fix="correct the path, or add the file")
        return paths

    @contextmanager
    def _collect_problems(self, *parts: str) -> Iterator[None]:
        """Turn exceptions into problems; a problem without a place gets the place of `parts` in the schema."""
        try:
            yield
        except DeclarationError as error:
            self.problems += error.problems
        except InvalidSchema as error:
            source = error.source or self.declaration.locate(*(split_pointer(error.pointer) or parts))
            self.depends_on_protoc |= isinstance(error, DependsOnProtoc)
            self.problems.append(Problem(source, error.message, error.fix))

    def _read_text(self) -> SchemaInfo | None:
        """Return the schema whose definition is the unchanged text of a file."""
        path = self._resolve_path(self.declaration.definition, EXTERNAL_SUFFIXES, "definition")
        with self._collect_problems("definition"):
            if path is not None:
                data = read_bytes(self.definitions.files, path)
                decode(path, data)
                return self._build_info(data, Source(escape_path(path)), lambda _pointer: Source(escape_path(path)))
        return None

    def _resolve_path(self, written: str, suffixes: tuple[str, ...], *parts: str) -> str | None:
        """Return the path that is `written` at `parts` of the schema, or None, with a problem, if it cannot be read."""
        try:
            path = resolve(self.folder, written)
        except ValueError as error:
            name = posixpath.basename(written)
            is_in_folder = self.definitions.files.kind(posixpath.join(self.folder, name)) == "file"
            self._add_problem(str(error), *parts, fix=f"write {name}" if is_in_folder else "")
            return None
        if path in self.paths:
            self._add_problem(f"`{written}` is named twice", *parts, fix="remove one of the two")
        self.paths.add(path)
        files = self.definitions.files
        reason = obstacle(files, path)
        if reason is None and not path.endswith(suffixes):
            reason = f"`{written}` is not a {' or '.join(suffixes)} file"
        if reason is None:
            return path
        self.definitions.missed += 1
        if parts[0] == "references" and (folder_fix := suggest_pattern(files, self.folder, written)):
            self._add_problem(f"`{written}` is a folder", *parts, fix=folder_fix)
            return None
        # Looking for similar names goes through all files, so its number is limited.
        similar_path = suggestion(files, path, suffixes) if self.definitions.missed <= MAX_PROBLEMS else None
        has_same_stem = similar_path is not None and Path(similar_path).stem == Path(path).stem
        kind, is_proto, fix = files.kind(path), path.endswith((PROTO_SUFFIX, DESCRIPTOR_SUFFIX)), ""
        if kind == "file" and path.endswith(_AVRO_SOURCE_SUFFIXES):
            reason, fix = _explain_avro_source(written, path)
        elif kind == "file" and parts == ("payload",):
            type_ = "PROTOBUF_NATIVE" if is_proto else "AVRO"
            fix = f"write {{type: {type_}, definition: {written}{', message: PACKAGE.NAME' * is_proto}}}"
        elif kind == "file" and parts == ("definition",) and not has_same_stem:
            if suffixes == EXTERNAL_SUFFIXES:
                fix = f"rename it to {posixpath.splitext(written)[0]}{TEXT_SUFFIX}, or correct `type`"
            else:
                fix = f"its type is {'PROTOBUF_NATIVE' if is_proto else 'AVRO or JSON'}"
        elif similar_path:
            fix = f"write {make_relative(similar_path, self.folder)}"
        elif kind == "missing" and path:
            start = f"`{self.folder}`" if self.folder else "the top folder"
            fix = f"add the file, or correct its path, which starts in {start}"
        self._add_problem(reason, *parts, fix=fix, missing=path if kind == "missing" else "")
        return None

    def _render_json(self, value: Any) -> str:
        try:
            return json_text(value)
        except ValueError:
            for parts in _find_non_finite(value):
                fix = "write a text instead"
                self._add_problem("infinite numbers and .nan are not JSON", "definition", *parts, fix=fix)
        return ""

    def _add_problem(self, message: str, *parts: str, fix: str = "", missing: str = "") -> None:
        self.problems.append(Problem(self.declaration.locate(*parts), message, fix, missing))


def _find_payload_problems(payload: Payload) -> Iterator[Problem]:
    """Yield the parts of a payload that a declared schema must not have."""
    if undeclarable := SPECS[payload.type].undeclarable:
        yield Problem(payload.text.locate(("type",)), *undeclarable)
    for name in payload.properties:
        if name.startswith("schemactl."):
            source = payload.text.locate_key(("properties", name))
            yield Problem(source, f"schemactl sets the property `{name}` itself", "remove it")
    if SPECS[payload.type].declared_as == "plain" and payload.definition.text:
        message = f"{payload.type.name} has no definition"
        yield Problem(payload.text.locate(("schema",)), message, 'write "schema": ""')


def _add_default_properties(info: SchemaInfo, defaults: Mapping[str, str]) -> SchemaInfo:
    """Return a KEY_VALUE whose key and value of type AVRO have the default properties; their own properties win."""
    pair = split(info)
    halves = {
        half: replace(part, properties={**defaults, **part.properties}) if part.type is SchemaType.AVRO else part
        for half, part in pair.halves.items()
    }
    joined = join(key=halves["key"], value=halves["value"], encoding=pair.encoding)
    part_names = ("key.schema.properties", "value.schema.properties")
    part_properties = {name: joined.properties[name] for name in part_names if name in joined.properties}
    return replace(info, properties={**joined.properties, **info.properties, **part_properties})


def _explain_avro_source(written: str, path: str) -> tuple[str, str]:
    """Return the problem of an Avro IDL or protocol file at `path` in place of a schema, and how to convert it."""
    if written.endswith(IDL_SUFFIX):
        arguments = f"{quote(escape_path(path))} {quote(escape_path(posixpath.dirname(path) or '.'))}"
        message = f"`{written}` is Avro IDL, and a definition is a schema in JSON"
        fix = (
            f"convert it with `java -jar avro-tools-1.12.1.jar idl2schemata {arguments}`, which writes an .avsc file for "
            "each type, and name the file of this type"
        )
        return message, fix
    return (
        f"`{written}` is an Avro protocol, and a definition is one schema",
        "write the type, from the `types` of the protocol, into an .avsc file, and name that file",
    )


def _find_non_finite(value: Any, parts: Tokens = ()) -> Iterator[Tokens]:
    """Yield the places of the infinities and NaNs in `value`, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        yield parts
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _find_non_finite(member, (*parts, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _find_non_finite(member, (*parts, str(index)))


def _find_bare_nulls(schema: Any, parts: Tokens = ()) -> Iterator[Tokens]:
    """Yield the place of every null in an Avro schema where a type is expected: in YAML, `null` without quotes."""
    if schema is None:
        yield parts
    elif isinstance(schema, list):
        for index, branch in enumerate(schema):
            yield from _find_bare_nulls(branch, (*parts, str(index)))
    elif isinstance(schema, dict):
        for key in ("type", "items", "values"):
            if key in schema:
                yield from _find_bare_nulls(schema[key], (*parts, key))
        fields = schema.get("fields")
        for index, field_ in enumerate(fields if isinstance(fields, list) else ()):
            if isinstance(field_, dict) and "type" in field_:
                yield from _find_bare_nulls(field_["type"], (*parts, "fields", str(index), "type"))


# `.proto` files

_PROTOC_FOLDER: Final = "google/protobuf/"
"""The folder of protoc's own files."""

_MISSING_IMPORT: Final = re.compile(r'Import "([^"]+)" was not found or had errors\.')


@dataclass(frozen=True, slots=True)
class ProtoFiles:
    """A `.proto` file with the files that it imports.

    Attributes:
        entry: the import name of the file itself.
        sources: the texts by import name.
        paths: the paths in the repository, by import name.
        used: the paths of the imported references.
        included: the paths of imports by a prefix of the project file, including missing ones.
        unlisted: whether an import is missing among the references, except protoc's own files.
        ambiguous: an import that could mean two references, with both paths, or None.
    """

    entry: str
    sources: Mapping[str, bytes]
    paths: Mapping[str, str]
    used: frozenset[str]
    included: frozenset[str] = frozenset()
    unlisted: bool = False
    ambiguous: tuple[str, str, str] | None = None


class ProtoInput(NamedTuple):
    """The files of a `.proto` definition.

    Attributes:
        files: the file itself with its imports.
        paths: every path that the declaration names, and of the imports.
        listed: the indexes of the entries of `references` that name one file.
        used: the indexes of the entries of `references` that the definition uses.
    """

    files: ProtoFiles
    paths: frozenset[str]
    listed: frozenset[int]
    used: frozenset[int]

    def to_compile(self, message: str) -> Any:
        """Return the input of `formats.protobuf.protoc` for the root message `message`."""
        return load("protoc").Proto(message, self.files.entry, self.files.sources, self.files.paths)


def gather(
    path: str,
    read: Callable[[str], bytes],
    references: Iterable[str],
    include: Include = NO_INCLUDE,
    file_name: str = "",
) -> ProtoFiles:
    """Collect the files that `path` imports, directly or through others.

    An import means the reference whose path ends in its name: `import "common/money.proto"` finds
    `namespaces/common/money.proto`, independent of the include path of other builds. Otherwise its prefix may mean a folder.

    Clients also send the name of the file itself. It is the declared name, else its path from the folder in which the names of all its imports begin, or else
    by the prefix of its folder, or else its base name.

    Args:
        path: the file.
        read: returns the text of a path, or raises DeclarationError.
        references: the paths that may be imported.
        include: the folders that prefixes of imports mean.
        file_name: the declared name of the file, or "".
    """
    entry = posixpath.basename(path)
    text = read(path)
    sources, paths = {entry: text}, {entry: path}
    used: set[str] = set()
    included: set[str] = set()
    unlisted = False
    unread_texts = [text]
    references_by_basename: dict[str, list[str]] = {}
    for reference in references:
        references_by_basename.setdefault(posixpath.basename(reference), []).append(reference)
    while unread_texts:
        for name in find_imports(unread_texts.pop()):
            if name in sources:
                continue
            candidates = references_by_basename.get(posixpath.basename(name), [])
            matches = [reference for reference in candidates if reference == name or reference.endswith("/" + name)]
            if len(matches) > 1:
                ambiguous = (name, matches[0], matches[1])
                return ProtoFiles(entry, sources, paths, frozenset(used), frozenset(included), unlisted, ambiguous)
            if matches:
                used.add(matches[0])
            elif not name.startswith(_PROTOC_FOLDER):
                unlisted = True
                if (included_path := include.find_path(name)) and included_path != path:
                    included.add(included_path)
                    matches = [included_path]
            for match in matches:
                try:
                    sources[name], paths[name] = read(match), match
                except DeclarationError:
                    if match in used:
                        raise
                    continue
                unread_texts.append(sources[name])
    folders = {paths[name].removesuffix(name) for name in paths if name != entry and paths[name].endswith(name)}
    folder = folders.pop() if len(folders) == 1 else None
    name_in_folder = path.removeprefix(folder) if folder is not None and path.startswith(folder) else ""
    name = file_name or name_in_folder or include.find_name(path) or ""
    if name and name not in sources:
        sources[name], paths[name] = sources.pop(entry), paths.pop(entry)
        entry = name
    return ProtoFiles(entry, sources, paths, frozenset(used), frozenset(included), unlisted)
