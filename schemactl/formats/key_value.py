"""KEY_VALUE: two schemas in one, its halves, each preceded by its length; types and encoding are properties.

The broker compares only the framed bytes, so it does not see a change of encoding, or of a half's type if the bytes stay the same
(STRING to INT32, AVRO to JSON). Here both are incompatibilities with their own rules.

Sources: `KeyValueSchemaInfo` and `SchemaUtils` (org.apache.pulsar.client.impl.schema), `KeyValue` (common.schema).
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any, Final, Literal, cast

from schemactl.codec.wire_format import InvalidPair, join_pair, split_pair
from schemactl.core.edits import DefinitionEdit
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats import gson
from schemactl.formats.avro.schema import JavaException, out_of_memory
from schemactl.formats.part_changes import outline
from schemactl.formats.type_spec import (
    Encoding,
    Explanation,
    Note,
    Pair,
    ReaderFailure,
    Rename,
    TypeSpec,
    Wire,
    find_misread_for_direction,
    spec,
)

ENCODING: Final = "kv.encoding.type"
"""The property for the place of the key: in the payload (INLINE), or as the message's key (SEPARATED)."""

Half = Literal["key", "value"]
_HALVES: tuple[Half, Half] = ("key", "value")

_HEAP_BYTES: Final = 1 << 30
"""A longer length, such as JSON text that is read as a pair, exhausts Java's heap."""

_MAX_SAMPLES: Final = 3
"""The maximum number of keys, and of values, in sample messages."""


@dataclass(frozen=True, kw_only=True)
class PairSpec(TypeSpec):
    """KEY_VALUE, which delegates to the specifications of its halves' types."""

    language: Literal["pair"] = "pair"
    payload: Literal["pair"] = "pair"
    declared_as: Literal["pair"] = "pair"
    unfit_half: str = "a KEY_VALUE schema cannot be the key or value of another"
    validation: Literal["pair"] = "pair"
    checker: Literal["pair"] = "pair"
    suffix: str = ".json"

    def get_pair(self, info: SchemaInfo) -> Pair:
        """Return the halves (see `split`)."""
        return split(info)

    def to_text(self, info: SchemaInfo) -> str:
        """Return the text in the admin API: `{"key":...,"value":...}`, with `""` for a half without definition.

        Raises:
            InvalidSchema: if `split` raises it for another reason than the encoding, or if a half's definition is not JSON.
        """
        texts: dict[Half, Any] = {}
        for name, half in _split_halves(info).items():
            try:
                # The types of SchemaType.isPrimitiveType have no definition.
                has_text = half.schema and spec(half).payload not in ("value", "bytes")
                texts[name] = json.loads(half.schema) if has_text else ""
            except (ValueError, RecursionError):
                raise InvalidSchema(f"the {name} of a KEY_VALUE schema is not JSON", pointer=f"/{name}") from None
        try:
            return _to_json(texts)
        except RecursionError:
            raise InvalidSchema("the key or value of a KEY_VALUE schema is nested too deeply to be shown") from None

    def from_text(self, type_: SchemaType, text: str, properties: Mapping[str, str]) -> SchemaInfo:
        """Return the schema that the broker stores for the text: compact halves in their own key order."""
        subject = "the text of a KEY_VALUE schema"
        try:
            halves = gson.parse(text)
        except (gson.GsonError, RecursionError) as error:
            raise InvalidSchema(f"{subject} is not JSON: {error}") from None
        if not isinstance(halves, dict) or any(half not in halves for half in _HALVES):
            raise InvalidSchema(f'{subject} is not an object {{"key": ..., "value": ...}}')
        try:
            key, value = (("" if halves[half] == "" else _render(halves[half])).encode() for half in _HALVES)
        except (RecursionError, UnicodeEncodeError) as error:
            raise InvalidSchema(f"{subject} cannot be stored: {error}") from None
        return SchemaInfo(type_, join_pair(key, value), properties)

    def find_problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Yield the problems of the framing, or of the halves under `/key` and `/value`."""
        try:
            pair = split(info)
        except InvalidSchema as error:
            yield error
            return
        for name, half in pair.halves.items():
            if f"{name}.schema.type" not in info.properties:
                yield InvalidSchema(
                    f"the {name} has no type: the broker would silently drop its definition",
                    pointer=f"/{name}",
                    fix=f"set the property {name}.schema.type",
                )
            elif spec(half).unfit_half:
                yield InvalidSchema(f"the {name} cannot be of type {half.type.name}", pointer=f"/{name}")
            elif spec(half).payload != "bytes":
                for problem in spec(half).find_problems(half, release):
                    yield InvalidSchema(
                        problem.message,
                        pointer=_prefix_pointer(name, problem.pointer),
                        fix=problem.fix,
                        source=problem.source,
                    )

    def find_unusable_defaults(self, info: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield the unusable defaults of both halves, under `/key` and `/value`."""
        for name, half in split(info).halves.items():
            for default in spec(half).find_unusable_defaults(half):
                yield replace(default, pointer=_prefix_pointer(name, default.pointer))

    def find_unapplied_defaults(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield the defaults of both halves that are not applied, under `/key` and `/value`, except in a half whose type changed."""
        for name, reader_half, writer_half in _list_halves_of_one_type(reader, writer):
            for default in spec(reader_half).find_unapplied_defaults(reader=reader_half, writer=writer_half):
                yield default.move_to(_prefix_pointer(name, default.pointer))

    def identity(self, info: SchemaInfo) -> Hashable:
        """Return encoding, types and the halves' own keys: a half in another layout is the same version, STRING to INT32 is not."""
        pair = split(info)
        return info.type, pair.encoding, *(spec(half).identity(half) for half in pair.halves.values())

    def list_reading_parts(self, info: SchemaInfo) -> tuple[Hashable, ...]:
        """Return the parts of key and value that change how they read data and are not part of their identities."""
        halves = tuple(spec(half).list_reading_parts(half) for half in split(info).halves.values())
        return halves if any(halves) else ()

    def get_content(self, info: SchemaInfo) -> object:
        """Return the contents of both halves."""
        return tuple(spec(half).get_content(half) for half in split(info).halves.values())

    def require_newest(self, info: SchemaInfo, *, or_release: Release | None = None) -> None:
        """Raise InvalidSchema unless the newest release, or `or_release`, accepts the names in both halves."""
        for half in split(info).halves.values():
            spec(half).require_newest(half, or_release=or_release)

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield a changed encoding; then for key and value a changed type, or the incompatibilities of the type."""
        reader_pair, writer_pair = split(reader), split(writer)
        if reader_pair.encoding != writer_pair.encoding:
            yield Incompatibility(
                "KEY_VALUE_ENCODING_CHANGED",
                "",
                f"reader encoding: {reader_pair.encoding} not compatible with writer encoding: {writer_pair.encoding}",
            )
        for name, reader_half in reader_pair.halves.items():
            writer_half = writer_pair.halves[name]
            if reader_half.type is not writer_half.type:
                yield Incompatibility(
                    "KEY_VALUE_TYPE_CHANGED",
                    f"/{name}",
                    f"reader {name} type: {reader_half.type.name} not compatible with "
                    f"writer {name} type: {writer_half.type.name}",
                )
            else:
                for incompatibility in spec(reader_half).resolve(reader=reader_half, writer=writer_half):
                    yield incompatibility.move_to(_prefix_pointer(name, incompatibility.pointer))

    def find_misreadings(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield the misreadings of both halves, under `/key` and `/value`. A half whose type changed has no misreadings."""
        for name, reader_half, writer_half in _list_halves_of_one_type(reader, writer):
            for misreading in spec(reader_half).find_misreadings(reader=reader_half, writer=writer_half):
                yield misreading.move_to(_prefix_pointer(name, misreading.pointer))

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """Explain a changed encoding or type of a half; a half's own type explains everything inside it."""
        incompatibility, old_pair, new_pair = breakage.incompatibility, split(old), split(new)
        is_older = breakage.direction == "old_reads_new"
        if incompatibility.rule == "KEY_VALUE_ENCODING_CHANGED":
            return Explanation(
                "",
                f"The encoding was {old_pair.encoding} in {breakage.older_name} and is {new_pair.encoding}: the key has moved "
                "between the payload and the message's own key, and a reader looks for it in one place only. The registry "
                "does not see this change and stores nothing.",
                f"Keep `encoding: {old_pair.encoding}`, or give the new messages a separate topic.",
                "/encoding",
                "/encoding" if is_older else None,
            )
        half = _get_half(incompatibility.pointer)
        old_half, new_half = old_pair.halves[half], new_pair.halves[half]
        if incompatibility.rule == "KEY_VALUE_TYPE_CHANGED":
            return Explanation(
                half,
                f"The {half} was {old_half.type.name} in {breakage.older_name} and is {new_half.type.name}: the bytes on "
                "the topic mean something else from one message to the next. The registry does not see it where the "
                "definitions stay the same.",
                f"Keep {old_half.type.name}, or give the new messages a separate topic.",
                incompatibility.pointer,
                incompatibility.pointer if is_older else None,
            )
        explanation = spec(new_half).explain(_move_inside(breakage, half, new_half), new=new_half, old=old_half)
        return replace(
            explanation,
            field=f"{half}.{explanation.field}" if explanation.field else half,
            place=_prefix_pointer(half, explanation.place),
            older=None if explanation.older is None else _prefix_pointer(half, explanation.older),
            edit=explanation.edit and _move_edit(explanation.edit, half),
            alternatives=tuple(_move_edit(edit, half) for edit in explanation.alternatives),
        )

    def find_renames(self, *, new: SchemaInfo, old: SchemaInfo, old_name: str, new_name: str) -> Iterator[Rename]:
        """Yield the renames of both halves, under `/key` and `/value`, except for a half whose type changed."""
        for name, new_half, old_half in _list_halves_of_one_type(new, old):
            half_spec = spec(new_half)
            for rename in half_spec.find_renames(new=new_half, old=old_half, old_name=old_name, new_name=new_name):
                edit = replace(rename.edit, pointer=_prefix_pointer(name, rename.edit.pointer))
                yield replace(rename, edit=edit)

    def counterexample(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
        """Return a whole message if the encoding changed; otherwise only the key or the value that breaks."""
        incompatibility = breakage.incompatibility
        if incompatibility.rule == "KEY_VALUE_ENCODING_CHANGED":
            return find_misread_for_direction(breakage.direction, new=new, old=old)
        half = _get_half(incompatibility.pointer)
        new_half, old_half = split(new).halves[half], split(old).halves[half]
        if incompatibility.rule == "KEY_VALUE_TYPE_CHANGED":
            proof = find_misread_for_direction(breakage.direction, new=new_half, old=old_half)
        else:
            inner_breakage = _move_inside(breakage, half, new_half)
            proof = spec(new_half).counterexample(inner_breakage, new=new_half, old=old_half)
        return proof and replace(proof, message=f'{{"{half}": {proof.message}}}', result=f"the {half}: {proof.result}")

    def list_parts(self, info: SchemaInfo) -> Iterator[tuple[str, str]]:
        """Yield the encoding, then each half's type and parts."""
        pair = split(info)
        yield "encoding", pair.encoding
        for name, half in pair.halves.items():
            yield name, half.type.name
            yield from ((f"{name}: {part}", description) for part, description in outline(half).items() if part)

    def list_direct_references(self, info: SchemaInfo) -> dict[str, frozenset[str]]:
        """Merge the direct references of both halves."""
        merged: dict[str, frozenset[str]] = {}
        for half in split(info).halves.values():
            for name, references in spec(half).list_direct_references(half).items():
                merged[name] = merged.get(name, frozenset()) | references
        return merged

    def list_notes(self, info: SchemaInfo) -> Iterator[tuple[str, Note]]:
        """Yield the notes of both halves."""
        for name, half in split(info).halves.items():
            yield from ((f"{name}: {part}", note) for part, note in spec(half).list_notes(half))

    def make_messages(self, info: SchemaInfo) -> Iterator[Wire]:
        """Yield pairs of the halves' first messages."""
        pair = split(info)
        samples = [list(islice(spec(half).make_messages(half), _MAX_SAMPLES)) for half in pair.halves.values()]
        for key, value in product(*samples):
            if pair.encoding == "SEPARATED":
                yield Wire(value.payload, key.payload)
            else:
                yield Wire(join_pair(key.payload or b"", value.payload or b""))

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        """Return key and value; a missing part is null."""
        pair = split(info)
        if pair.encoding == "SEPARATED":
            parts = (wire.key, wire.payload)
        else:
            try:
                parts = split_pair(wire.payload or b"")[:2]
            except InvalidPair as error:
                java = to_java_exception(error)
                lengths = f" (a length of {error.length}, and {error.remaining} bytes follow)" if error.length else ""
                detail = f": {java.message}" if java.message else lengths
                raise ReaderFailure(java.exception + detail) from None
        key, value = (
            "null" if data is None else spec(half).read(Wire(data), half)
            for data, half in zip(parts, pair.halves.values(), strict=True)
        )
        return f'{{"key": {key}, "value": {value}}}'


def _get_half(pointer: str) -> Half:
    return "key" if pointer.startswith("/key") else "value"


def _move_inside(breakage: Breakage, half: Half, info: SchemaInfo) -> Breakage:
    """Return the breakage with a pointer into the half's own definition."""
    root = "/" if spec(info).language == "avro" else ""
    pointer = breakage.incompatibility.pointer.removeprefix(f"/{half}") or root
    return replace(breakage, incompatibility=breakage.incompatibility.move_to(pointer))


def _list_halves_of_one_type(reader: SchemaInfo, writer: SchemaInfo) -> Iterator[tuple[Half, SchemaInfo, SchemaInfo]]:
    """Yield the name, the reader's half and the writer's half for key and value, except for a half whose type changed."""
    writer_halves = split(writer).halves
    for name, reader_half in split(reader).halves.items():
        if reader_half.type is writer_halves[name].type:
            yield name, reader_half, writer_halves[name]


def _move_edit(edit: DefinitionEdit, half: Half) -> DefinitionEdit:
    return replace(edit, pointer=_prefix_pointer(half, edit.pointer))


def _prefix_pointer(half: Half, pointer: str) -> str:
    return f"/{half}" if pointer in ("", "/") else f"/{half}{pointer}"


# The stored bytes and properties


def join(*, key: SchemaInfo, value: SchemaInfo, encoding: Encoding) -> SchemaInfo:
    """Return the KEY_VALUE schema of two halves, with the bytes and properties of Pulsar's Java client."""
    properties = {ENCODING: str(encoding)}
    for half, info in zip(_HALVES, (key, value), strict=True):
        properties[f"{half}.schema.name"] = ""
        properties[f"{half}.schema.type"] = info.type.name
        properties[f"{half}.schema.properties"] = _to_json(dict(sorted(info.properties.items())))

    def comments() -> dict[str, str]:
        halves = zip(_HALVES, (key, value), strict=True)
        return {f"/{half}{pointer}": text for half, info in halves for pointer, text in info.comments().items()}

    return SchemaInfo(SchemaType.KEY_VALUE, join_pair(key.schema, value.schema), properties, comments=comments)


def split(info: SchemaInfo) -> Pair:
    """Return the halves of a KEY_VALUE schema; an absent half (length -1) has no bytes.

    Raises:
        InvalidSchema: if Pulsar would not write this framing, encoding, half's type or properties.
    """
    halves = _split_halves(info)
    encoding = info.properties.get(ENCODING) or "INLINE"
    if encoding not in ("INLINE", "SEPARATED"):
        raise InvalidSchema(f"{ENCODING} is {encoding!r}", pointer="/encoding", fix="write INLINE or SEPARATED")
    return Pair(halves["key"], halves["value"], cast("Encoding", encoding))


def _split_halves(info: SchemaInfo) -> dict[Half, SchemaInfo]:
    """Return the halves as a broker reads them, which stores any encoding. Raises as `split`, but not for the encoding."""
    try:
        key, value, end = split_pair(info.schema)
    except InvalidPair as error:
        raise InvalidSchema(
            f"a KEY_VALUE schema ends before the length of its {error.part}"
            if error.length is None
            else f"a KEY_VALUE schema gives its {error.part} {error.length} bytes, but {error.remaining} follow",
            pointer=f"/{error.part}",
        ) from None
    if end < len(info.schema):
        raise InvalidSchema(f"{len(info.schema) - end} bytes follow the value of a KEY_VALUE schema")
    return {"key": _make_half(info, "key", key or b""), "value": _make_half(info, "value", value or b"")}


def _make_half(info: SchemaInfo, half: Half, data: bytes) -> SchemaInfo:
    name = info.properties.get(f"{half}.schema.type", "BYTES")
    if name not in SchemaType.__members__:
        raise InvalidSchema(f"{half}.schema.type is {name!r}, which is not a schema type", pointer=f"/{half}")
    try:
        properties = parse_properties(info.properties.get(f"{half}.schema.properties"))
    except (gson.GsonError, RecursionError):
        raise InvalidSchema(f"{half}.schema.properties is not a JSON object with texts", pointer=f"/{half}") from None

    def comments() -> dict[str, str]:
        return {
            pointer.removeprefix(f"/{half}"): text
            for pointer, text in info.comments().items()
            if pointer.startswith(f"/{half}/")
        }

    return SchemaInfo(SchemaType[name], data, properties, info.source, comments=comments)


def parse_properties(text: str | None) -> dict[str, str]:
    """Return the properties of a half, as SchemaUtils reads them: none for JSON `null`, a text without a value, or None.

    Raises:
        GsonError: if the text is not a JSON object with texts, numbers and booleans; a list of one of them counts as this one.
        RecursionError: if it nests too deep.
    """
    properties = gson.parse(text) if text else None
    if properties is None:
        return {}
    if not isinstance(properties, dict):
        raise gson.GsonError(f"java.lang.IllegalStateException: Not a JSON Object: {_render(properties)}")
    return {name: _read_property(value) for name, value in properties.items()}


def _read_property(value: Any) -> str:
    """Return the text of a value like JsonElement.getAsString."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return str(value)
        case [item]:
            return _read_property(item)
        case list():
            raise gson.GsonError(f"java.lang.IllegalStateException: Array must have size 1, but has size {len(value)}")
    raise gson.GsonError(f"java.lang.UnsupportedOperationException: {'JsonNull' if value is None else 'JsonObject'}")


def to_java_exception(error: InvalidPair) -> JavaException:
    """Return the exception of Java, which allocates an array of the length before it reads."""
    length = error.length or 0
    if length < 0:
        return JavaException("NegativeArraySizeException", str(length))
    return out_of_memory() if length > _HEAP_BYTES else JavaException("BufferUnderflowException")


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _render(value: Any) -> str:
    if isinstance(value, gson.NumberText):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_to_json(key)}:{_render(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_render, value)) + "]"
    return _to_json(value)
