"""KEY_VALUE: two schemas in one, framed by their lengths; types and encoding sit in the properties.

The broker compares the framed bytes alone, so a change of encoding, or of a half's type where the bytes stay the same
(STRING to INT32, AVRO to JSON), is invisible to it. Here both are incompatibilities of their own.

Sources: `KeyValueSchemaInfo` and `SchemaUtils` (org.apache.pulsar.client.impl.schema), `KeyValue` (common.schema).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol, cast

from schemactl.errors import InvalidSchema
from schemactl.formats.base import Explanation, Format
from schemactl.model import (
    AVRO_DESCRIBED,
    CLIENT_SIDE,
    PRIMITIVE,
    WITHOUT_SCHEMA,
    Release,
    SchemaInfo,
    SchemaType,
)
from schemactl.verdicts import Breakage, Counterexample, Incompatibility

ENCODING: Final = "kv.encoding.type"
"""The property that says whether the key travels inside the payload (INLINE) or as the message's key (SEPARATED)."""

Encoding = Literal["INLINE", "SEPARATED"]

Half = Literal["key", "value"]

_HALVES: tuple[Half, Half] = ("key", "value")

_NO_HALF: Final = PRIMITIVE | WITHOUT_SCHEMA
"""The types whose half is `""` in the admin API's text (SchemaType.isPrimitiveType)."""


@dataclass(frozen=True, slots=True)
class KeyValue:
    """The two schemas of a KEY_VALUE schema, and how a message carries its key."""

    key: SchemaInfo
    value: SchemaInfo
    encoding: Encoding


def join(*, key: SchemaInfo, value: SchemaInfo, encoding: Encoding) -> SchemaInfo:
    """The KEY_VALUE schema of two halves, bytes and properties as Pulsar's Java client makes them."""
    properties = {ENCODING: str(encoding)}
    for half, info in zip(_HALVES, (key, value), strict=True):
        properties[f"{half}.schema.name"] = ""
        properties[f"{half}.schema.type"] = info.type.name
        properties[f"{half}.schema.properties"] = _compact(dict(sorted(info.properties.items())))
    return SchemaInfo(SchemaType.KEY_VALUE, frame(key.schema, value.schema), properties)


def split(info: SchemaInfo) -> KeyValue:
    """The halves of a KEY_VALUE schema; a half that is absent (length -1) has no bytes.

    Raises:
        InvalidSchema: the framing, a half's type, its properties or the encoding is not what Pulsar writes.
    """
    halves = [_half(info, half, data) for half, data in zip(_HALVES, _unframe(info.schema), strict=True)]
    encoding = info.properties.get(ENCODING) or "INLINE"
    if encoding not in ("INLINE", "SEPARATED"):
        raise InvalidSchema(
            f"{ENCODING} is {encoding!r}", pointer="/encoding", fix="write INLINE or SEPARATED"
        )
    return KeyValue(halves[0], halves[1], cast("Encoding", encoding))


def frame(key: bytes, value: bytes) -> bytes:
    """Both definitions, each after its length in four bytes, big-endian."""
    return struct.pack(">i", len(key)) + key + struct.pack(">i", len(value)) + value


def to_text(info: SchemaInfo) -> str:
    """The admin API's text of a KEY_VALUE schema: `{"key":...,"value":...}`, `""` for a half without definition.

    Raises:
        InvalidSchema: see `split`; or a half that has a definition is not JSON.
    """
    both = split(info)
    try:
        return _compact({half: _shown(getattr(both, half), half) for half in _HALVES})
    except RecursionError:
        raise InvalidSchema("a half of a KEY_VALUE schema nests too deep to be shown") from None


def from_text(text: str, properties: Mapping[str, str]) -> SchemaInfo:
    """The KEY_VALUE schema that the broker stores for the admin API's text: halves compact, in their own key order.

    Raises:
        InvalidSchema: not a JSON object with `key` and `value`.
    """
    try:
        halves = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"the text of a KEY_VALUE schema is not JSON: {error}") from None
    if not isinstance(halves, dict) or any(half not in halves for half in _HALVES):
        raise InvalidSchema('the text of a KEY_VALUE schema is not an object {"key": ..., "value": ...}')
    try:
        key, value = (b"" if halves[half] == "" else _rendered(halves[half]).encode() for half in _HALVES)
    except (RecursionError, UnicodeEncodeError) as error:
        raise InvalidSchema(f"the text of a KEY_VALUE schema cannot be stored: {error}") from None
    return SchemaInfo(SchemaType.KEY_VALUE, frame(key, value), properties)


class Misreading(Protocol):
    """What finds a message of `writer` that `reader` throws on or reads as another value."""

    def __call__(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Counterexample | None:
        """The message; None where none was found."""
        ...


class KeyValueFormat:
    """The slot for KEY_VALUE, over the slots of its halves (handed in, as the broker hands its checkers).

    So is what finds a message of one schema that another misreads, whatever their types.
    """

    def __init__(self, formats: Mapping[SchemaType, Format], misreading: Misreading) -> None:
        self._formats = formats
        self._misreading = misreading

    def problems(self, info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        """Every reason not to declare `info`: its own framing, or a half's problems under `/key` and `/value`."""
        try:
            both = split(info)
        except InvalidSchema as error:
            yield error
            return
        for half in _HALVES:
            part: SchemaInfo = getattr(both, half)
            if f"{half}.schema.type" not in info.properties:
                yield InvalidSchema(
                    f"the {half} has no type: the broker would silently drop its definition",
                    pointer=f"/{half}",
                    fix=f"set the property {half}.schema.type",
                )
            elif part.type in CLIENT_SIDE | {SchemaType.KEY_VALUE, SchemaType.NONE, SchemaType.EXTERNAL}:
                yield InvalidSchema(f"the {half} cannot be of type {part.type.name}", pointer=f"/{half}")
            elif part.type is not SchemaType.BYTES:
                for problem in self._formats[part.type].problems(part, release):
                    yield InvalidSchema(
                        problem.what,
                        pointer=_under(half, problem.pointer),
                        fix=problem.fix,
                        source=problem.source,
                    )

    def identity(self, info: SchemaInfo) -> Hashable:
        """Encoding, types and the halves' own identities: a re-rendered half is the same version, STRING to INT32 not.

        Raises:
            InvalidSchema: see `split`; or a half does not parse.
        """
        both = split(info)
        return SchemaType.KEY_VALUE, both.encoding, self._identity(both.key), self._identity(both.value)

    def resolve(self, *, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
        """Encoding, then the key, then the value: a changed type, or what the halves' own format finds.

        Raises:
            InvalidSchema: see `split`; or a half does not parse.
        """
        ours, theirs = split(reader), split(writer)
        if ours.encoding != theirs.encoding:
            yield Incompatibility(
                "KEY_VALUE_ENCODING_CHANGED",
                "",
                f"reader encoding: {ours.encoding} not compatible with writer encoding: {theirs.encoding}",
            )
        for half in _HALVES:
            r, w = getattr(ours, half), getattr(theirs, half)
            if r.type is not w.type:
                yield Incompatibility(
                    "KEY_VALUE_TYPE_CHANGED",
                    f"/{half}",
                    f"reader {half} type: {r.type.name} not compatible with writer {half} type: {w.type.name}",
                )
            else:
                for found in self._formats[r.type].resolve(reader=r, writer=w):
                    yield found.moved(_under(half, found.pointer))

    def explain(self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
        """A changed encoding or half type in words for people; anything inside a half in its own format's words."""
        found, before, after = breakage.incompatibility, split(old), split(new)
        is_older = breakage.direction == "old_reads_new"
        if found.rule == "KEY_VALUE_ENCODING_CHANGED":
            return Explanation(
                "",
                f"Version {breakage.against} is {before.encoding}, the new schema {after.encoding}: the key has moved between "
                "the payload and the message's own key, and a reader looks for it in one place only. The registry does "
                "not see this change and stores nothing.",
                f"Keep `encoding: {before.encoding}`, or give the new messages a topic of their own.",
                "/encoding",
                "/encoding" if is_older else None,
            )
        half, new_half, old_half = _halves_at(found.pointer, new=after, old=before)
        if found.rule == "KEY_VALUE_TYPE_CHANGED":
            return Explanation(
                half,
                f"The {half} was {old_half.type.name} in version {breakage.against} and is {new_half.type.name}: the bytes on "
                "the topic mean something else from one message to the next. The registry does not see it where the "
                "definitions stay the same.",
                f"Keep {old_half.type.name}, or give the new messages a topic of their own.",
                found.pointer,
                found.pointer if is_older else None,
            )
        inner = _inside(breakage, half, new_half)
        told = self._formats[new_half.type].explain(inner, new=new_half, old=old_half)
        return replace(
            told,
            field=f"{half}.{told.field}" if told.field else half,
            place=_under(half, told.place),
            older=None if told.older is None else _under(half, told.older),
        )

    def counterexample(
        self, breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo
    ) -> Counterexample | None:
        """A whole message where the encoding changed; else the key or the value that breaks, alone."""
        found = breakage.incompatibility
        is_older = breakage.direction == "old_reads_new"
        if found.rule == "KEY_VALUE_ENCODING_CHANGED":
            return (
                self._misreading(reader=old, writer=new)
                if is_older
                else self._misreading(reader=new, writer=old)
            )
        half, new_half, old_half = _halves_at(found.pointer, new=split(new), old=split(old))
        if found.rule == "KEY_VALUE_TYPE_CHANGED":
            reader, writer = (old_half, new_half) if is_older else (new_half, old_half)
            proof = self._misreading(reader=reader, writer=writer)
        else:
            inner = _inside(breakage, half, new_half)
            proof = self._formats[new_half.type].counterexample(inner, new=new_half, old=old_half)
        return proof and replace(
            proof, message=f'{{"{half}": {proof.message}}}', result=f"the {half}: {proof.result}"
        )

    def _identity(self, half: SchemaInfo) -> Hashable:
        return self._formats[half.type].identity(half)


def _halves_at(pointer: str, *, new: KeyValue, old: KeyValue) -> tuple[Half, SchemaInfo, SchemaInfo]:
    """The half that `pointer` leads into, as it is new and as it was."""
    return ("key", new.key, old.key) if pointer.startswith("/key") else ("value", new.value, old.value)


def _inside(breakage: Breakage, half: Half, info: SchemaInfo) -> Breakage:
    """The same breakage, seen from inside its half."""
    root = "/" if info.type in AVRO_DESCRIBED else ""
    pointer = breakage.incompatibility.pointer.removeprefix(f"/{half}") or root
    return replace(breakage, incompatibility=breakage.incompatibility.moved(pointer))


def _unframe(data: bytes) -> tuple[bytes, bytes]:
    key, rest = _take(data, "key")
    value, rest = _take(rest, "value")
    if rest:
        raise InvalidSchema(f"{len(rest)} bytes follow the value of a KEY_VALUE schema")
    return key, value


def _take(data: bytes, half: Half) -> tuple[bytes, bytes]:
    if len(data) < 4:
        raise InvalidSchema(f"a KEY_VALUE schema ends before the length of its {half}", pointer=f"/{half}")
    (length,) = struct.unpack_from(">i", data)
    if length == -1:
        return b"", data[4:]
    if not 0 <= length <= len(data) - 4:
        raise InvalidSchema(
            f"a KEY_VALUE schema gives its {half} {length} bytes, but {len(data) - 4} follow",
            pointer=f"/{half}",
        )
    return data[4 : 4 + length], data[4 + length :]


def _half(info: SchemaInfo, half: Half, data: bytes) -> SchemaInfo:
    name = info.properties.get(f"{half}.schema.type", "BYTES")
    if name not in SchemaType.__members__:
        raise InvalidSchema(f"{half}.schema.type is {name!r}, which is no schema type", pointer=f"/{half}")
    try:
        properties = json.loads(info.properties.get(f"{half}.schema.properties") or "{}")
    except (ValueError, RecursionError):
        properties = None
    if not isinstance(properties, dict):
        raise InvalidSchema(f"{half}.schema.properties is not a JSON object", pointer=f"/{half}")
    return SchemaInfo(
        SchemaType[name], data, {key: str(value) for key, value in properties.items()}, info.source
    )


def _under(half: Half, pointer: str) -> str:
    return f"/{half}" if pointer in ("", "/") else f"/{half}{pointer}"


def _shown(half: SchemaInfo, name: Half) -> Any:
    if half.type in _NO_HALF or not half.schema:
        return ""
    try:
        return json.loads(half.schema)
    except (ValueError, RecursionError):
        raise InvalidSchema(f"the {name} of a KEY_VALUE schema is not JSON", pointer=f"/{name}") from None


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Number(str):
    """A number as it is written: the broker keeps 1.0 and 1e2 as they came (Gson's LazilyParsedNumber)."""

    __slots__ = ()


def _rendered(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_compact(key)}:{_rendered(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_rendered, value)) + "]"
    return _compact(value)
