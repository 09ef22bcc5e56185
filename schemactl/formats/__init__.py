"""The schema types: one specification each (`formats.base.TypeSpec`), and functions that pick the right one.

A new type is one file with its specification, and one row in `SPECS`.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator
from typing import Literal, NamedTuple

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import primitive
from schemactl.formats.avro import AvroSpec
from schemactl.formats.base import SPECS, Explanation, Pair, TypeSpec, pair_of, spec
from schemactl.formats.key_value import PairSpec
from schemactl.formats.misreading import misreading_of
from schemactl.formats.primitive import BytesSpec, number, time
from schemactl.formats.protobuf_native import ProtobufNativeSpec

__all__ = ["SPECS", "Explanation", "Pair", "TypeSpec", "pair_of", "spec"]


def _no_schema(name: str) -> tuple[str, str]:
    return (
        f"{name} means a topic without schema; an upload of it would lock the topic for every typed client",
        "leave `schema` away",
    )


def _of_clients(name: str) -> TypeSpec:
    what = f"{name} exists only inside a client and is never stored"
    fix = "declare the type of the messages themselves"
    return TypeSpec(undeclarable=(what, fix), unfit_half=what, validation="client")


SPECS.update(
    {
        SchemaType.NONE: BytesSpec(undeclarable=_no_schema("NONE"), unfit_half="NONE means no schema"),
        SchemaType.STRING: primitive.StringSpec(),
        SchemaType.JSON: AvroSpec(payload="json", checker="json"),
        SchemaType.PROTOBUF: AvroSpec(payload="protobuf", declared_as="protobuf", checker="default"),
        SchemaType.AVRO: AvroSpec(payload="avro", checker="avro"),
        SchemaType.BOOLEAN: number("?", "BooleanSchema", spark="boolean"),
        SchemaType.INT8: number("b", "ByteSchema", spark="byte"),
        SchemaType.INT16: number("h", "ShortSchema", spark="short"),
        SchemaType.INT32: number("i", "IntSchema", spark="integer"),
        SchemaType.INT64: number("q", "LongSchema", spark="long"),
        SchemaType.FLOAT: number("f", "FloatSchema", spark="float"),
        SchemaType.DOUBLE: number("d", "DoubleSchema", spark="double"),
        SchemaType.DATE: time(primitive.moment, spark="date"),
        SchemaType.TIME: time(primitive.time_of_day, spark="time"),
        SchemaType.TIMESTAMP: time(primitive.moment, spark="timestamp"),
        SchemaType.KEY_VALUE: PairSpec(),
        SchemaType.INSTANT: time(primitive.instant, spark="timestamp", first=struct.pack(">qi", 1, 0)),
        SchemaType.LOCAL_DATE: time(primitive.local_date, spark="date"),
        SchemaType.LOCAL_TIME: time(primitive.local_time, spark="time"),
        SchemaType.LOCAL_DATE_TIME: time(
            primitive.local_date_time, spark="timestamp_ntz", first=struct.pack(">2q", 1, 0)
        ),
        SchemaType.PROTOBUF_NATIVE: ProtobufNativeSpec(),
        SchemaType.EXTERNAL: TypeSpec(
            unfit_half="an EXTERNAL schema cannot be the half of another",
            checker="external",
            first_release=Release.R4_2,
        ),
        SchemaType.BYTES: BytesSpec(undeclarable=_no_schema("BYTES")),
        SchemaType.AUTO: _of_clients("AUTO"),
        SchemaType.AUTO_CONSUME: _of_clients("AUTO_CONSUME"),
        SchemaType.AUTO_PUBLISH: _of_clients("AUTO_PUBLISH"),
    }
)


def problems(info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
    """Yield every reason not to declare `info` (see TypeSpec.problems)."""
    return spec(info).problems(info, release)


def identity(info: SchemaInfo) -> Hashable:
    """Return a key that is equal for two definitions exactly when they are one version (see TypeSpec.identity).

    Raises:
        InvalidSchema: the definition does not parse.
    """
    return spec(info).identity(info)


def resolve(*, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
    """Yield every reason `reader` may fail on a message of `writer` (see TypeSpec.resolve); of two types there is one.

    PROTOBUF definitions that both know their `.proto` are judged by its wire rules: those are the bytes on the topic.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    if reader.type is not writer.type:
        message = f"{reader.type.name} cannot read {writer.type.name}"
        return iter([Incompatibility("SCHEMA_TYPE_CHANGED", "", message)])
    reader, writer = on_the_wire(reader, writer)
    return spec(reader).resolve(reader=reader, writer=writer)


def on_the_wire(one: SchemaInfo, other: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo]:
    """Return two definitions of one type as their bytes follow them: PROTOBUF by its `.proto`, where both know it."""
    return (one.proto, other.proto) if one.proto and other.proto else (one, other)


def explain(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
    """Return `breakage` of `new` with `old` for people."""
    if old.type is not new.type:
        return Explanation(
            "",
            f"The schema type was {old.type.name} and is {new.type.name}: the bytes on the topic mean something else "
            "from one message to the next, and no reader decodes both.",
            f"Keep {old.type.name}, or give the new messages a topic of their own.",
        )
    new, old = on_the_wire(new, old)
    return spec(new).explain(breakage, new=new, old=old)


class Reading(NamedTuple):
    """Whether readers with one version read the messages of another.

    Attributes:
        answer: "strict": strict readers may not, though Pulsar's Java clients do.
        reason: the first why they do not; "": they do.
    """

    answer: Literal["yes", "strict", "no"]
    reason: str = ""


def reading(*, reader: SchemaVersion, writer: SchemaVersion) -> Reading:
    """Return whether readers with one version read the messages of another; both have a definition."""
    if reader.number == writer.number:
        return Reading("yes")
    assert reader.info is not None  # noqa: S101  they have one
    assert writer.info is not None  # noqa: S101
    is_newer = reader.number > writer.number
    older = min(reader.number, writer.number)
    old, new = (writer.info, reader.info) if is_newer else (reader.info, writer.info)
    try:
        found = [*resolve(reader=reader.info, writer=writer.info)]
        if not found:
            return Reading("yes")
        breakage = Breakage(found[0], "new_reads_old" if is_newer else "old_reads_new", older)
        reason = explain(breakage, new=new, old=old).reason
    except InvalidSchema as error:
        return Reading("no", str(error))
    return Reading("strict" if all(each.strict_only for each in found) else "no", reason)


def counterexample(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
    """Return a message that proves `breakage`, and what its reader gets; None where none can exist or was found."""
    if old.type is not new.type:
        return misreading_of(breakage.direction, new=new, old=old)
    new, old = on_the_wire(new, old)
    return spec(new).counterexample(breakage, new=new, old=old)


def same_text(one: SchemaInfo, other: SchemaInfo) -> bool:
    """Whether two definitions of one version say the same, doc, aliases and properties included; layout does not count."""
    if one.type is not other.type or one.properties != other.properties:
        return False
    try:
        return spec(one).content(one) == spec(other).content(other)
    except RecursionError:
        return one.schema == other.schema
