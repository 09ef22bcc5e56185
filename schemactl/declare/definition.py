"""The `SchemaInfo` of a declared schema: reads its definition from a file, from inline YAML or JSON, or from `.proto` files.

The text that is uploaded is the text of the file (or of the JSON in YAML) as it stands, with line ends of LF. Where there
is no such text, because the definition is written as YAML or takes types of other files, it is rendered: JSON indented
by two spaces, keys in the order they are written, no line end at its end.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from schemactl.core.errors import DeclarationError, InvalidSchema, Problem, Source
from schemactl.core.json_values import json_text
from schemactl.core.schema import Locator, SchemaInfo
from schemactl.declare.document import SchemaDeclaration
from schemactl.declare.files import (
    AVRO_SUFFIXES,
    DESCRIPTOR_SUFFIX,
    MAX_PROBLEMS,
    PROTO_SUFFIX,
    Files,
    decode,
    obstacle,
    read_bytes,
    resolve,
    shown,
    suggestion,
)
from schemactl.declare.references import (
    AvroFile,
    DefinedTypes,
    Inlined,
    files_of,
    folder_of,
    inline,
    is_pattern,
    said_instead,
)
from schemactl.declare.source_location import MAX_DEPTH, SCALAR, JsonSyntaxError, JsonText, Tokens, place, scan, tokens
from schemactl.declare.yaml_parser import YamlPart, scalar_place
from schemactl.formats import SPECS
from schemactl.formats.avro.json_text import without_comments
from schemactl.formats.key_value import join
from schemactl.formats.protobuf import load

if TYPE_CHECKING:
    from schemactl.formats.type_spec import Encoding


MAX_DEFINITION_BYTES: Final = 5_242_710
"""The largest definition that a broker was seen to accept."""


@dataclass(frozen=True, slots=True)
class ResolvedDefinition:
    """The result of reading the declaration of a schema.

    Attributes:
        info: the schema; None if there are problems.
        paths: every file of the definition, including missing ones.
        unused: the places, in the declaration, of references from which nothing was taken.
        written: the Avro definitions in files that make it up.
    """

    info: SchemaInfo | None
    problems: tuple[Problem, ...]
    paths: frozenset[str]
    unused: tuple[Tokens, ...] = ()
    written: tuple[AvroFile, ...] = ()


_MAX_KEPT_CHARACTERS: Final = 4_000_000


class AvroFileCache:
    """The parsed Avro files of many states of one repository, by path and blob id, so that their common files are read once."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], tuple[AvroFile, str] | DeclarationError] = {}
        self._characters = 0

    def add(self, path: str, blob_id: str, file: tuple[AvroFile, str] | DeclarationError) -> None:
        """Keep a file; the files so far are dropped when they are too large together."""
        size = 100 if isinstance(file, DeclarationError) else 100 + len(file[1])
        if self._characters + size > _MAX_KEPT_CHARACTERS:
            self.files.clear()
            self._characters = 0
        self._characters += size
        self.files[path, blob_id] = file


class Definitions:
    """Reads definitions from `files`. Each Avro file is read and parsed once, however many topics use it.

    Args:
        files: one state of a repository.
        shared: files that other states have parsed.
        blob: returns the blob id of the file at a path, or "" where it is not a file of Git; needed for `shared`.
    """

    def __init__(
        self, files: Files, *, shared: AvroFileCache | None = None, blob: Callable[[str], str] = lambda _: ""
    ) -> None:
        self.files = files
        self._shared = shared
        self._blob = blob
        self.missed = 0
        """The number of files that are named but do not exist."""
        self._avro: dict[str, tuple[AvroFile, str] | DeclarationError] = {}
        self._compiled: dict[tuple[str, str], SchemaInfo | InvalidSchema] = {}
        # The topics of a folder mostly have the same globs.
        self.matching = cache(partial(files_of, files))
        self.types = DefinedTypes(files, lambda path: self.avro_file(path)[0])

    def prepare(self, declarations: Iterable[SchemaDeclaration]) -> None:
        """Compile the `.proto` files of all `declarations` in one go: starting protoc takes longer than its work.

        Raises:
            SchemactlError: protoc is needed and not installed.
        """
        jobs = {}
        for declaration in declarations:
            for each in (declaration, declaration.key, declaration.value):
                proto = _DefinitionReader(self, each).proto() if each else None
                if proto is not None:
                    jobs[proto.digest(), proto.message] = proto
        if jobs:
            answers = load("protoc").compile_all(list(jobs.values()))
            self._compiled.update(zip(jobs, answers, strict=True))

    def compiled(self, proto: Any) -> SchemaInfo:
        """Return what a `.proto` declares (see `formats.protobuf.protoc.compile_proto`).

        Raises:
            InvalidSchema: it does not compile.
        """
        key = proto.digest(), proto.message
        if key not in self._compiled:
            [self._compiled[key]] = load("protoc").compile_all([proto])
        found = self._compiled[key]
        if isinstance(found, InvalidSchema):
            raise found
        return found

    def read(self, declaration: SchemaDeclaration) -> ResolvedDefinition:
        """Return the schema that `declaration` declares, without asking whether a broker would accept it."""
        reading = _DefinitionReader(self, declaration)
        info = reading.info()
        return ResolvedDefinition(
            None if reading.problems else info,
            tuple(reading.problems),
            frozenset(reading.paths),
            tuple(sorted(reading.unused)),
            tuple(reading.written),
        )

    def missing(self, declaration: SchemaDeclaration) -> tuple[Problem, ...]:
        """Return the problems of the paths in a declaration that has other problems, too."""
        reading = _DefinitionReader(self, declaration)
        reading.look_for_files()
        return tuple(reading.problems)

    def _parsed(self, path: str) -> tuple[AvroFile, str] | DeclarationError:
        try:
            text = decode(path, read_bytes(self.files, path))
            json_text = JsonText(text, lambda offset: place(shown(path), text, offset))
            return AvroFile(path, read_json(json_text), json_text), text.replace("\r\n", "\n")
        except DeclarationError as error:
            return error

    def avro_file(self, path: str) -> tuple[AvroFile, str]:
        """Return the JSON file at `path`, and its text with line ends of LF.

        Raises:
            DeclarationError: it cannot be read, or is not JSON.
        """
        if path not in self._avro:
            blob_id = self._blob(path) if self._shared else ""
            known = self._shared.files.get((path, blob_id)) if self._shared and blob_id else None
            self._avro[path] = known or self._parsed(path)
            if self._shared and blob_id and not known:
                self._shared.add(path, blob_id, self._avro[path])
        found = self._avro[path]
        if isinstance(found, DeclarationError):
            raise found
        return found


class _DefinitionReader:
    """Reads one declaration, and collects its problems and files."""

    def __init__(self, definitions: Definitions, declaration: SchemaDeclaration) -> None:
        self.definitions = definitions
        self.declaration = declaration
        self.folder = posixpath.dirname(declaration.text.path)
        self.problems: list[Problem] = []
        self.paths: set[str] = set()
        self.written: list[AvroFile] = []
        self.halves: dict[str, ResolvedDefinition] = {}
        # The entries of `references`, by their place in the list, and those of which something is taken.
        self.listed: set[int] = set()
        self.taken: set[int] = set()

    @property
    def unused(self) -> set[Tokens]:
        """The places of the references from which nothing is taken."""
        own = {("references", str(index)) for index in self.listed - self.taken}
        return own | {(half, *at) for half, found in self.halves.items() for at in found.unused}

    def info(self) -> SchemaInfo | None:
        """Return the schema; to be ignored if there are problems."""
        match SPECS[self.declaration.type].declared_as:
            case "pair":
                return self._key_value()
            case "avro" | "protobuf":
                return self._avro()
            case "proto":
                return self._protobuf_native()
        return self._made(b"", self.declaration.source, lambda pointer: self.declaration.locate(*tokens(pointer)))

    def look_for_files(self) -> None:
        """Add a problem for each file that is named and missing."""
        declared = self.declaration
        native = declared.is_proto
        suffixes = (PROTO_SUFFIX, DESCRIPTOR_SUFFIX) if native else AVRO_SUFFIXES
        if isinstance(declared.definition, str) and (native or not declared.is_inline):
            self._path(declared.definition, suffixes, "definition")
        if declared.proto is not None:
            self._path(declared.proto, (PROTO_SUFFIX,), "proto")
        for index, written in enumerate(declared.references):
            if is_pattern(written):
                self._matching(index, written)
            else:
                self._path(written, (*AVRO_SUFFIXES, PROTO_SUFFIX), "references", str(index))
        for half in (declared.key, declared.value):
            if half is not None:
                self.problems += self.definitions.missing(half)

    def _made(self, schema: bytes, source: Source, locator: Locator) -> SchemaInfo:
        if len(schema) > MAX_DEFINITION_BYTES:
            what = f"the definition has {len(schema):,} bytes"
            self._problem(f"{what}; a broker takes at most {MAX_DEFINITION_BYTES:,}", "definition")
        return SchemaInfo(self.declaration.type, schema, self.declaration.properties, source, locator)

    def _key_value(self) -> SchemaInfo | None:
        halves: dict[str, SchemaInfo] = {}
        for half, declaration in (("key", self.declaration.key), ("value", self.declaration.value)):
            if declaration is not None:
                found = self.definitions.read(declaration)
                self.problems += found.problems
                self.paths |= found.paths
                self.halves[half] = found
                self.written += found.written
                if found.info:
                    halves[half] = found.info
        if len(halves) < 2:
            return None
        encoding = cast("Encoding", self.declaration.encoding)
        joined = join(key=halves["key"], value=halves["value"], encoding=encoding)

        def locate(pointer: str) -> Source:
            half, *rest = tokens(pointer) or ("",)
            if half in halves:
                return halves[half].locate("".join(f"/{part}" for part in rest)) or self.declaration.source
            return self.declaration.locate(*tokens(pointer))

        info = self._made(joined.schema, self.declaration.source, locate)
        properties = {**joined.properties, **self.declaration.properties}
        return replace(info, properties=properties, comments=joined.comments)

    def _avro(self) -> SchemaInfo | None:
        main = self._main()
        references = list(self._references())
        if main is None or self.problems:
            return None
        file, text = main
        unreadable: list[Problem] = []
        offered = list(self._offered(unreadable))
        if self.problems:
            # Of a folder that matches nothing, every type would be missing.
            return None
        inlined = inline(file, [each for _, each in references], [each for _, each in offered])
        self.problems += inlined.problems or self._unlisted(inlined, file, [*references, *offered])
        if inlined.unknown:
            # One of these may define what is missing.
            self.problems += unreadable
        self.taken |= {index for index, each in (*references, *offered) if each.path in inlined.used}
        self.paths |= {each.path for _, each in offered if each.path in inlined.used}
        self.written = [file, *(each for _, each in (*references, *offered) if each.path in inlined.used)]
        is_here = file.path == self.declaration.text.path
        source = self.declaration.definition_source if is_here else Source(shown(file.path))
        if inlined.used or text is None:
            text = self._rendered(inlined.value)
        info = self._made(text.encode(), source, lambda pointer: inlined.locate(tokens(pointer)))
        return replace(info, proto=self._compiled("proto")) if self.declaration.proto else info

    def _unlisted(
        self, inlined: Inlined, file: AvroFile, references: Iterable[tuple[int, AvroFile]]
    ) -> Iterator[Problem]:
        """Yield a problem for each type that is defined only in a file that is not listed, or the cycle that listing it would make."""
        known = [each for _, each in references]
        for name, source in inlined.unknown:
            path = self.definitions.types.definer(name)
            if path is not None and path not in (file.path, *(each.path for each in known)):
                written = posixpath.relpath(path, self.folder or ".")
                yield from inline(file, [*known, self.definitions.avro_file(path)[0]]).problems or [
                    Problem(
                        source,
                        f"`{name}` is defined in `{written}`, which is not listed",
                        f"list that file under `references`: [{written}]",
                    )
                ]
            elif path is None and (near := self.definitions.types.similar(name)):
                yield Problem(source, f"no file defines `{name}`", f"did you mean `{near}`?")

    def _protobuf_native(self) -> SchemaInfo | None:
        written = str(self.declaration.definition)
        is_set = written.endswith(DESCRIPTOR_SUFFIX)
        info = self._descriptor_set(written) if is_set else self._compiled("definition")
        return replace(info, properties=self.declaration.properties) if info else None

    def _descriptor_set(self, written: str) -> SchemaInfo | None:
        path = self._path(written, (PROTO_SUFFIX, DESCRIPTOR_SUFFIX), "definition")
        info: SchemaInfo | None = None
        with self._collecting("definition"):
            if path is not None:
                data = read_bytes(self.definitions.files, path)
                message = self.declaration.message
                info = load("protoc").read_descriptor_set(data, message, path=shown(path))
        return info

    def _compiled(self, key: str) -> SchemaInfo | None:
        """Return what the `.proto` that `key` names declares."""
        proto = self.proto()
        with self._collecting(key):
            return self.definitions.compiled(proto) if proto is not None else None
        return None

    def proto(self) -> Any:
        """Return the `.proto` of the declaration as protoc takes it; None where it has none, or it cannot be read."""
        native = self.declaration.is_proto
        key = "definition" if native else "proto"
        written = self.declaration.definition if native else self.declaration.proto
        if written is None or str(written).endswith(DESCRIPTOR_SUFFIX):
            return None
        path = self._path(written, (PROTO_SUFFIX, DESCRIPTOR_SUFFIX) if native else (PROTO_SUFFIX,), key)
        references = self._proto_references()
        if path is None or self.problems:
            return None
        files = None
        with self._collecting(key):
            for each, (_, is_listed) in references.items():
                if is_listed:
                    self._proto_text(each)
            files = gather(path, self._proto_text, [each for each in references if each != path])
        if files is None or self.problems:
            return None
        if files.ambiguous:
            name, one, other = files.ambiguous
            what = f'`import "{name}"` could mean `{one}` or `{other}`'
            self.problems.append(Problem(Source(shown(path)), what, "import it by a longer part of its path"))
            return None
        self.taken |= {references[each][0] for each in files.used}
        self.paths |= files.used
        return files.to_compile(self.declaration.message)

    def _proto_references(self) -> dict[str, tuple[int, bool]]:
        """Return the `.proto` files that may be imported, each with the index of its entry, and whether the entry names the file itself."""
        found: dict[str, tuple[int, bool]] = {}
        for index, written in enumerate(self.declaration.references):
            if is_pattern(written):
                for each in self._matching(index, written, proto=True):
                    found.setdefault(each, (index, False))
            elif self.declaration.is_proto or written.endswith(PROTO_SUFFIX):
                self.listed.add(index)
                if path := self._path(written, (PROTO_SUFFIX,), "references", str(index)):
                    found[path] = index, True
        return found

    def _main(self) -> tuple[AvroFile, str | None] | None:
        """Return the definition as it is written, and its text; None for the text where there is none."""
        definition, path = self.declaration.definition, self.declaration.text.path
        if not isinstance(definition, str):
            for at in _bare_nulls(definition):
                what = "`null` without quotes is not a type in YAML"
                self._problem(what, "definition", *at, fix='write "null"')
            here = (*self.declaration.parts, "definition")
            part = YamlPart(self.declaration.text, self.declaration.document, here)
            return AvroFile(path, definition, part), None
        with self._collecting("definition"):
            if self.declaration.is_inline:
                json_text = JsonText(definition, self._inside)
                return AvroFile(path, read_json(json_text), json_text), definition
            found = self._path(definition, AVRO_SUFFIXES, "definition")
            return self.definitions.avro_file(found) if found else None
        return None

    def _inside(self, offset: int) -> Source:
        """Return the place of an offset in a definition that is JSON text in YAML."""
        text, parts = self.declaration.text, (*self.declaration.parts, "definition")
        return scalar_place(text.path, text.data, text.node(self.declaration.document, parts), offset)

    def _proto_text(self, path: str) -> bytes:
        data = read_bytes(self.definitions.files, path)
        decode(path, data)
        return data

    def _references(self) -> Iterator[tuple[int, AvroFile]]:
        """Yield the files whose types may be used, each with its place in the list."""
        for index, written in enumerate(self.declaration.references):
            if is_pattern(written) or (self.declaration.proto and written.endswith(PROTO_SUFFIX)):
                continue
            self.listed.add(index)
            at = ("references", str(index))
            path = self._path(written, AVRO_SUFFIXES, *at)
            with self._collecting(*at):
                if path is not None:
                    yield index, self.definitions.avro_file(path)[0]

    def _offered(self, unreadable: list[Problem]) -> Iterator[tuple[int, AvroFile]]:
        """Yield the files that globs and folders mean, each with its entry's place; `unreadable` gets what is wrong with others."""
        seen = {*self.paths}
        for index, written in enumerate(self.declaration.references):
            for path in self._matching(index, written) if is_pattern(written) else ():
                if path not in seen:
                    seen.add(path)
                    try:
                        yield index, self.definitions.avro_file(path)[0]
                    except DeclarationError as error:
                        unreadable += error.problems

    def _matching(self, index: int, written: str, *, proto: bool = False) -> list[str]:
        """Return the files that a glob or folder means; add a problem if there are none."""
        self.listed.add(index)
        try:
            self.paths.add(folder_of(self.folder, written))
            matching = partial(self.definitions.matching, self.folder, written)
            found, others = matching(proto=proto), matching(proto=not proto)
        except ValueError as error:
            self._problem(str(error), "references", str(index))
            return []
        if not found and not others:
            what = f"`{written}` matches no {'.proto' if self.declaration.is_proto else '.avsc'} file"
            self._problem(what, "references", str(index), fix="correct the path, or add the file")
        return found

    @contextmanager
    def _collecting(self, *at: str) -> Iterator[None]:
        """Collect what is raised as problems; a problem without a place gets that of `at` in the schema."""
        try:
            yield
        except DeclarationError as error:
            self.problems += error.problems
        except InvalidSchema as error:
            place = error.source or self.declaration.locate(*(tokens(error.pointer) or at))
            self.problems.append(Problem(place, error.what, error.fix))

    def _path(self, written: str, suffixes: tuple[str, ...], *at: str) -> str | None:
        """Return the path that is `written` at `at` of the schema; None, with a problem, if it cannot be read."""
        try:
            path = resolve(self.folder, written)
        except ValueError as error:
            name = posixpath.basename(written)
            is_beside = self.definitions.files.kind(posixpath.join(self.folder, name)) == "file"
            self._problem(str(error), *at, fix=f"write {name}" if is_beside else "")
            return None
        if path in self.paths:
            self._problem(f"`{written}` is named twice", *at, fix="remove one of the two")
        self.paths.add(path)
        files = self.definitions.files
        why = obstacle(files, path)
        if why is None and not path.endswith(suffixes):
            why = f"`{written}` is no {' or '.join(suffixes)} file"
        if why is None:
            return path
        self.definitions.missed += 1
        # Each time all files are looked through, of which there may be as many.
        if at[0] == "references" and (instead := said_instead(files, self.folder, written)):
            self._problem(f"`{written}` is a folder", *at, fix=instead)
            return None
        near = suggestion(files, path, suffixes) if self.definitions.missed <= MAX_PROBLEMS else None
        is_of_another_type = files.kind(path) == "file" and at == ("definition",)
        if is_of_another_type and not (near and Path(near).stem == Path(path).stem):
            is_proto = path.endswith((PROTO_SUFFIX, DESCRIPTOR_SUFFIX))
            self._problem(why, *at, fix=f"its type is {'PROTOBUF_NATIVE' if is_proto else 'AVRO or JSON'}")
            return None
        fix = f"write {posixpath.relpath(near, self.folder or '.')}" if near else ""
        if not near and files.kind(path) == "missing" and path:
            start = f"`{self.folder}`" if self.folder else "the top folder"
            fix = f"add the file, or correct its path, which starts in {start}"
        self._problem(why, *at, fix=fix)
        return None

    def _rendered(self, value: Any) -> str:
        try:
            return json_text(value)
        except ValueError:
            for at in _not_finite(value):
                fix = "write a text instead"
                self._problem("infinite numbers and .nan are not JSON", "definition", *at, fix=fix)
        return ""

    def _problem(self, what: str, *at: str, fix: str = "") -> None:
        self.problems.append(Problem(self.declaration.locate(*at), what, fix))


def _not_finite(value: Any, at: Tokens = ()) -> Iterator[Tokens]:
    """Yield the places of the numbers in `value` that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        yield at
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _not_finite(each, (*at, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _not_finite(each, (*at, str(index)))


def _bare_nulls(schema: Any, at: Tokens = ()) -> Iterator[Tokens]:
    """Yield the places of every null in an Avro schema that stands where a type should: in YAML, `null` without quotes."""
    if schema is None:
        yield at
    elif isinstance(schema, list):
        for index, branch in enumerate(schema):
            yield from _bare_nulls(branch, (*at, str(index)))
    elif isinstance(schema, dict):
        for key in ("type", "items", "values"):
            if key in schema:
                yield from _bare_nulls(schema[key], (*at, key))
        fields = schema.get("fields")
        for index, each in enumerate(fields if isinstance(fields, list) else ()):
            if isinstance(each, dict) and "type" in each:
                yield from _bare_nulls(each["type"], (*at, "fields", str(index), "type"))


# Strict JSON


def read_json(definition: JsonText) -> Any:
    """Return the value of a definition's text. Comments are allowed, as Avro's parser allows them.

    Raises:
        DeclarationError: what is wrong with it: not JSON, repeated keys, nested too deep, a number out of range.
    """
    text = definition.text
    try:
        if "/*" in text or "//" in text:
            text = without_comments(text)
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        problems = list(islice(_problems(definition), MAX_PROBLEMS)) or [
            Problem(definition.place(0), f"this is not JSON: {error}")
        ]
        raise DeclarationError(problems) from None
    # Counting is quick; only a text of many brackets can be deep.
    if text.count("[") + text.count("{") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        raise DeclarationError(list(islice(_problems(definition), MAX_PROBLEMS)))
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is repeated")
    return members


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("beyond a double")
    return number


def _constant(_name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)


def depth_of(value: Any) -> int:
    """Return how deep objects and arrays nest in a JSON value."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [child for each in level for child in (each.values() if isinstance(each, dict) else each)]
    return depth


def _problems(definition: JsonText) -> Iterator[Problem]:
    """Yield what a slower pass finds wrong with a text that the decoder rejected."""
    try:
        found = scan(definition.text)
    except JsonSyntaxError as error:
        yield Problem(definition.place(error.offset), error.what, error.fix)
        return
    for key, offset in found.duplicates:
        yield Problem(definition.place(offset), f"the key `{key[:60]}` is repeated", "keep one of the two")
    for offset in found.offsets:
        number = SCALAR.match(definition.text, offset)
        if number and _out_of_range(number[0]):
            yield Problem(definition.place(offset), f"the number `{number[0][:20]}...` is out of range")


def _out_of_range(digits: str) -> bool:
    if digits[0] not in "-0123456789":
        return False
    try:
        if set(digits) & set(".eE"):
            return math.isinf(float(digits))
        int(digits)
    except ValueError:
        # More digits than Python converts (sys.set_int_max_str_digits).
        return True
    return False


# `.proto` files

_IMPORT: Final = re.compile(rb"""import\s*+(?:\b(?:public|weak|option)\b\s*+)?["']([^"'\n]+)["']""")


@dataclass(frozen=True, slots=True)
class ProtoFiles:
    """A `.proto` and what it may import.

    Attributes:
        entry: the import name of the file itself: its last part, so that moving the file changes nothing.
        sources: the texts by import name.
        paths: where they are in the repository, by import name.
        used: the paths of the references that are imported.
        ambiguous: an import that could mean two references, with both paths; None: there is none.
    """

    entry: str
    sources: Mapping[str, bytes]
    paths: Mapping[str, str]
    used: frozenset[str]
    ambiguous: tuple[str, str, str] | None = None

    def to_compile(self, message: str) -> Any:
        """Return what to compile, as `formats.protobuf.protoc` takes it."""
        return load("protoc").Proto(message, self.entry, self.sources, self.paths)


def gather(path: str, read: Callable[[str], bytes], references: Iterable[str]) -> ProtoFiles:
    """Return the files that `path` imports, directly or through others, from `references`; `read` gives the text of each.

    An import means the reference whose path ends in its name: `import "common/money.proto"` finds
    `namespaces/common/money.proto`, whatever protoc's include path is elsewhere.
    """
    entry = posixpath.basename(path)
    text = read(path)
    sources, paths = {entry: text}, {entry: path}
    used: set[str] = set()
    todo = [text]
    by_last_part: dict[str, list[str]] = {}
    for each in references:
        by_last_part.setdefault(posixpath.basename(each), []).append(each)
    while todo:
        for name in _imports(todo.pop()):
            if name in sources:
                continue
            near = by_last_part.get(posixpath.basename(name), [])
            meant = [each for each in near if each == name or each.endswith("/" + name)]
            if len(meant) > 1:
                return ProtoFiles(entry, sources, paths, frozenset(used), (name, meant[0], meant[1]))
            for each in meant:
                sources[name], paths[name] = read(each), each
                used.add(each)
                todo.append(sources[name])
    return ProtoFiles(entry, sources, paths, frozenset(used))


def _imports(text: bytes) -> Iterator[str]:
    """Yield the names that a `.proto` imports, and perhaps some in its comments: what starts a line or follows `;`, `}` or `*/`."""
    start = 0
    while found := _IMPORT.search(text, start):
        # What stands between is looked at once: a pattern that starts with the spaces would try each of them as the first.
        between = text[start : found.start()]
        before = between.rstrip()
        if (not before and start == 0) or b"\n" in between[len(before) :] or before.endswith((b";", b"}", b"*/")):
            yield found[1].decode("utf-8", "replace")
            start = found.end()
        else:
            start = found.start() + len(b"import")
