"""KEY_VALUE: two schemas in one, each after its length; types and encoding are properties.

The broker compares the framed bytes alone, so a change of encoding, or of a half's type where the bytes stay the same
(STRING to INT32, AVRO to JSON), is invisible to it. Here both are incompatibilities of their own.

Sources: `KeyValueSchemaInfo` and `SchemaUtils` (org.apache.pulsar.client.impl.schema), `KeyValue` (common.schema).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any, Final, Literal, cast

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats.avro.schema import JavaException, out_of_memory
from schemactl.formats.type_spec import (
    Encoding,
    Explanation,
    Note,
    Pair,
    ReaderFailure,
    TypeSpec,
    Wire,
    misreading_of,
    outline,
    spec,
)

ENCODING: Final = "kv.encoding.type"
"""The property that says whether the key travels inside the payload (INLINE) or as the message's key (SEPARATED)."""

Half = Literal["key", "value"]

_HALVES: tuple[Half, Half] = ("key", "value")

_HEAP_BYTES: Final = 1 << 30
"""A length beyond this, as JSON text taken for a pair has, exhausts Java's heap."""

_MAX_HALVES: Final = 3
"""Keys, and values, that example messages are made of."""


def join(*, key: SchemaInfo, value: SchemaInfo, encoding: Encoding) -> SchemaInfo:
    """Return the KEY_VALUE schema of two halves, bytes and properties as Pulsar's Java client makes them."""
    properties = {ENCODING: str(encoding)}
    for half, info in zip(_HALVES, (key, value), strict=True):
        properties[f"{half}.schema.name"] = ""
        properties[f"{half}.schema.type"] = info.type.name
        properties[f"{half}.schema.properties"] = _compact(dict(sorted(info.properties.items())))

    def comments() -> dict[str, str]:
        both = zip(_HALVES, (key, value), strict=True)
        return {f"/{half}{at}": text for half, info in both for at, text in info.comments().items()}

    return SchemaInfo(SchemaType.KEY_VALUE, frame(key.schema, value.schema), properties, comments=comments)


def split(info: SchemaInfo) -> Pair:
    """Return the halves of a KEY_VALUE schema; a half that is absent (length -1) has no bytes.

    Raises:
        InvalidSchema: the framing, a half's type, its properties or the encoding is not what Pulsar writes.
    """
    try:
        key, value, rest = unframe(info.schema)
    except FramingError as error:
        raise InvalidSchema(
            f"a KEY_VALUE schema ends before the length of its {error.half}"
            if error.length is None
            else f"a KEY_VALUE schema gives its {error.half} {error.length} bytes, but {error.left} follow",
            pointer=f"/{error.half}",
        ) from None
    if rest:
        raise InvalidSchema(f"{len(rest)} bytes follow the value of a KEY_VALUE schema")
    encoding = info.properties.get(ENCODING) or "INLINE"
    if encoding not in ("INLINE", "SEPARATED"):
        raise InvalidSchema(f"{ENCODING} is {encoding!r}", pointer="/encoding", fix="write INLINE or SEPARATED")
    return Pair(_half(info, "key", key or b""), _half(info, "value", value or b""), cast("Encoding", encoding))


def frame(key: bytes, value: bytes) -> bytes:
    """Return both definitions, each after its length in four bytes, big-endian."""
    return struct.pack(">i", len(key)) + key + struct.pack(">i", len(value)) + value


class FramingError(Exception):
    """A length that says more than is there, or is none.

    Attributes:
        half: whose length it is.
        length: what it says; None: the bytes end before it.
        left: how many bytes follow it.
    """

    def __init__(self, half: Half, length: int | None, left: int) -> None:
        super().__init__(f"a length of {length}, and {left} bytes follow")
        self.half = half
        self.length = length
        self.left = left

    @property
    def java(self) -> JavaException:
        """What Java throws, which makes an array of that length before it looks at what is there."""
        length = self.length or 0
        if length < 0:
            return JavaException("NegativeArraySizeException", str(length))
        return out_of_memory() if length > _HEAP_BYTES else JavaException("BufferUnderflowException")


def unframe(data: bytes) -> tuple[bytes | None, bytes | None, bytes]:
    """Return key, value and what follows them, as Java's KeyValue takes a pair apart: a length of -1 is null.

    Raises:
        FramingError: a length is missing, negative or too large.
    """
    halves: list[bytes | None] = []
    for half in _HALVES:
        if len(data) < 4:
            raise FramingError(half, None, 0)
        (length,) = struct.unpack_from(">i", data)
        data = data[4:]
        if not -1 <= length <= len(data):
            raise FramingError(half, length, len(data))
        halves.append(None if length < 0 else data[:length])
        data = data[max(length, 0) :]
    return halves[0], halves[1], data


@dataclass(frozen=True, kw_only=True)
class PairSpec(TypeSpec):
    """KEY_VALUE; its halves are asked through the specifications of their own types."""

    language: Literal["pair"] = "pair"
    payload: Literal["pair"] = "pair"
    declared_as: Literal["pair"] = "pair"
    unfit_half: str = "a KEY_VALUE schema cannot be the half of another"
    validation: Literal["pair"] = "pair"
    checker: Literal["pair"] = "pair"
    suffix: str = ".json"

    def pair(self, info: SchemaInfo) -> Pair:
        """Return the halves (see `split`)."""
        return split(info)

    def text(self, info: SchemaInfo) -> str:
        """Return the admin API's text of it: `{"key":...,"value":...}`, `""` for a half without definition.

        Raises:
            InvalidSchema: see `split`; or a half that has a definition is not JSON.
        """
        try:
            return _compact({name: _shown(half, name) for name, half in split(info).halves.items()})
        except RecursionError:
            raise InvalidSchema("a half of a KEY_VALUE schema nests too deep to be shown") from None

    def from_text(self, type_: SchemaType, text: str, properties: Mapping[str, str]) -> SchemaInfo:
        """Return the schema that the broker stores for the text: halves compact, in their own key order."""
        what = "the text of a KEY_VALUE schema"
        number = _NumberText
        try:
            halves = json.loads(text, parse_int=number, parse_float=number, parse_constant=number)
        except (ValueError, RecursionError) as error:
            raise InvalidSchema(f"{what} is not JSON: {error}") from None
        if not isinstance(halves, dict) or any(half not in halves for half in _HALVES):
            raise InvalidSchema(f'{what} is not an object {{"key": ..., "value": ...}}')
        try:
            texts = ("" if halves[half] == "" else _rendered(halves[half]) for half in _HALVES)
            key, value = (each.encode() for each in texts)
        except (RecursionError, UnicodeEncodeError) as error:
            raise InvalidSchema(f"{what} cannot be stored: {error}") from None
        return SchemaInfo(type_, frame(key, value), properties)

    def problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Yield what is wrong with the framing, or with a half under `/key` and `/value`."""
        try:
            both = split(info)
        except InvalidSchema as error:
            yield error
            return
        for half, part in both.halves.items():
            if f"{half}.schema.type" not in info.properties:
                yield InvalidSchema(
                    f"the {half} has no type: the broker would silently drop its definition",
                    pointer=f"/{half}",
                    fix=f"set the property {half}.schema.type",
                )
            elif spec(part).unfit_half:
                yield InvalidSchema(f"the {half} cannot be of type {part.type.name}", pointer=f"/{half}")
            elif spec(part).payload != "bytes":
                for problem in spec(part).problems(part, release):
                    yield InvalidSchema(
                        problem.what, pointer=_under(half, problem.pointer), fix=problem.fix, source=problem.source
                    )

    def identity(self, info: SchemaInfo) -> Hashable:
        """Return encoding, types and the halves' own keys: a re-rendered half is the same version, STRING to INT32 not."""
        both = split(info)
        return info.type, both.encoding, *(spec(half).identity(half) for half in both.halves.values())

    def content(self, info: SchemaInfo) -> object:
        """Return the contents of both halves."""
        return tuple(spec(half).content(half) for half in split(info).halves.values())

    def require_newest(self, info: SchemaInfo) -> None:
        """Raise InvalidSchema unless the newest release accepts the names in both halves."""
        for half in split(info).halves.values():
            spec(half).require_newest(half)

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Yield a changed encoding; then for the key and the value a changed type, or what its own specification finds."""
        ours, theirs = split(reader), split(writer)
        if ours.encoding != theirs.encoding:
            yield Incompatibility(
                "KEY_VALUE_ENCODING_CHANGED",
                "",
                f"reader encoding: {ours.encoding} not compatible with writer encoding: {theirs.encoding}",
            )
        for half, r in ours.halves.items():
            w = theirs.halves[half]
            if r.type is not w.type:
                yield Incompatibility(
                    "KEY_VALUE_TYPE_CHANGED",
                    f"/{half}",
                    f"reader {half} type: {r.type.name} not compatible with writer {half} type: {w.type.name}",
                )
            else:
                for found in spec(r).resolve(reader=r, writer=w):
                    yield found.moved(_under(half, found.pointer))

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """Return a changed encoding or half type for people; anything inside a half as its own type explains it."""
        found, before, after = breakage.incompatibility, split(old), split(new)
        is_older = breakage.direction == "old_reads_new"
        if found.rule == "KEY_VALUE_ENCODING_CHANGED":
            return Explanation(
                "",
                f"The encoding was {before.encoding} in {breakage.older_name} and is {after.encoding}: the key has moved between "
                "the payload and the message's own key, and a reader looks for it in one place only. The registry does "
                "not see this change and stores nothing.",
                f"Keep `encoding: {before.encoding}`, or give the new messages a topic of their own.",
                "/encoding",
                "/encoding" if is_older else None,
            )
        half = _half_at(found.pointer)
        new_half, old_half = after.halves[half], before.halves[half]
        if found.rule == "KEY_VALUE_TYPE_CHANGED":
            return Explanation(
                half,
                f"The {half} was {old_half.type.name} in {breakage.older_name} and is {new_half.type.name}: the bytes on "
                "the topic mean something else from one message to the next. The registry does not see it where the "
                "definitions stay the same.",
                f"Keep {old_half.type.name}, or give the new messages a topic of their own.",
                found.pointer,
                found.pointer if is_older else None,
            )
        inner = spec(new_half).explain(_inside(breakage, half, new_half), new=new_half, old=old_half)
        return replace(
            inner,
            field=f"{half}.{inner.field}" if inner.field else half,
            place=_under(half, inner.place),
            older=None if inner.older is None else _under(half, inner.older),
        )

    def counterexample(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
        """Return a whole message where the encoding changed; else the key or the value that breaks, alone."""
        found = breakage.incompatibility
        if found.rule == "KEY_VALUE_ENCODING_CHANGED":
            return misreading_of(breakage.direction, new=new, old=old)
        half = _half_at(found.pointer)
        new_half, old_half = split(new).halves[half], split(old).halves[half]
        if found.rule == "KEY_VALUE_TYPE_CHANGED":
            proof = misreading_of(breakage.direction, new=new_half, old=old_half)
        else:
            inner = _inside(breakage, half, new_half)
            proof = spec(new_half).counterexample(inner, new=new_half, old=old_half)
        return proof and replace(proof, message=f'{{"{half}": {proof.message}}}', result=f"the {half}: {proof.result}")

    def outline(self, info: SchemaInfo) -> Iterator[tuple[str, str]]:
        """Yield the encoding, then each half's type and parts."""
        both = split(info)
        yield "encoding", both.encoding
        for name, half in both.halves.items():
            yield name, half.type.name
            yield from ((f"{name}: {part}", what) for part, what in outline(half).items() if part)

    def uses(self, info: SchemaInfo) -> dict[str, frozenset[str]]:
        """Return what both halves use."""
        found: dict[str, frozenset[str]] = {}
        for half in split(info).halves.values():
            for name, used in spec(half).uses(half).items():
                found[name] = found.get(name, frozenset()) | used
        return found

    def notes(self, info: SchemaInfo) -> Iterator[tuple[str, Note]]:
        """Yield those of both halves."""
        for name, half in split(info).halves.items():
            yield from ((f"{name}: {part}", note) for part, note in spec(half).notes(half))

    def messages(self, info: SchemaInfo) -> Iterator[Wire]:
        """Yield pairs of the halves' first messages."""
        both = split(info)
        few = [list(islice(spec(half).messages(half), _MAX_HALVES)) for half in both.halves.values()]
        for key, value in product(*few):
            if both.encoding == "SEPARATED":
                yield Wire(value.payload, key.payload)
            else:
                yield Wire(frame(key.payload or b"", value.payload or b""))

    def read(self, wire: Wire, info: SchemaInfo) -> str:
        """Return key and value; a missing one is null."""
        both = split(info)
        if both.encoding == "SEPARATED":
            parts = (wire.key, wire.payload)
        else:
            try:
                parts = unframe(wire.payload or b"")[:2]
            except FramingError as error:
                java = error.java
                aside = f": {java.message}" if java.message else f" ({error})" if error.length else ""
                raise ReaderFailure(java.exception + aside) from None
        shown = (
            "null" if data is None else spec(half).read(Wire(data), half)
            for data, half in zip(parts, both.halves.values(), strict=True)
        )
        return '{{"key": {}, "value": {}}}'.format(*shown)


def _half_at(pointer: str) -> Half:
    """Return the half that `pointer` leads into."""
    return "key" if pointer.startswith("/key") else "value"


def _inside(breakage: Breakage, half: Half, info: SchemaInfo) -> Breakage:
    """Return the same breakage, seen from inside its half."""
    root = "/" if spec(info).language == "avro" else ""
    pointer = breakage.incompatibility.pointer.removeprefix(f"/{half}") or root
    return replace(breakage, incompatibility=breakage.incompatibility.moved(pointer))


def _half(info: SchemaInfo, half: Half, data: bytes) -> SchemaInfo:
    name = info.properties.get(f"{half}.schema.type", "BYTES")
    if name not in SchemaType.__members__:
        raise InvalidSchema(f"{half}.schema.type is {name!r}, which is not a schema type", pointer=f"/{half}")
    try:
        properties = json.loads(info.properties.get(f"{half}.schema.properties") or "{}")
    except (ValueError, RecursionError):
        properties = None
    if not isinstance(properties, dict):
        raise InvalidSchema(f"{half}.schema.properties is not a JSON object", pointer=f"/{half}")

    def comments() -> dict[str, str]:
        said = info.comments().items()
        return {at.removeprefix(f"/{half}"): text for at, text in said if at.startswith(f"/{half}/")}

    texts = {key: str(value) for key, value in properties.items()}
    return SchemaInfo(SchemaType[name], data, texts, info.source, comments=comments)


def _under(half: Half, pointer: str) -> str:
    return f"/{half}" if pointer in ("", "/") else f"/{half}{pointer}"


def _shown(half: SchemaInfo, name: Half) -> Any:
    # As SchemaType.isPrimitiveType has it.
    if spec(half).payload in ("value", "bytes") or not half.schema:
        return ""
    try:
        return json.loads(half.schema)
    except (ValueError, RecursionError):
        raise InvalidSchema(f"the {name} of a KEY_VALUE schema is not JSON", pointer=f"/{name}") from None


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _NumberText(str):
    """A number as it is written: the broker keeps 1.0 and 1e2 as they came (Gson's LazilyParsedNumber)."""

    __slots__ = ()


def _rendered(value: Any) -> str:
    if isinstance(value, _NumberText):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_compact(key)}:{_rendered(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_rendered, value)) + "]"
    return _compact(value)
