"""The specification of every schema type, and the functions that compare two definitions of any type.

A new type is one file with its specification, and one row in `SPECS`.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

from schemactl.core.catalog import Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import primitive
from schemactl.formats.avro import AvroSpec
from schemactl.formats.key_value import PairSpec
from schemactl.formats.primitive import BytesSpec, make_number_spec, make_time_spec
from schemactl.formats.protobuf import ProtobufNativeSpec
from schemactl.formats.type_spec import (
    SPECS,
    Explanation,
    Pair,
    Rename,
    TypeSpec,
    find_misread_for_direction,
    get_pair,
    get_parts,
    spec,
)

__all__ = ["SPECS", "Explanation", "Pair", "TypeSpec", "get_pair", "get_parts", "spec"]


def _explain_no_schema(name: str) -> tuple[str, str]:
    return (
        f"{name} means a topic without schema; an upload of it would lock the topic for every typed client",
        "remove `schema`",
    )


def _make_client_spec(name: str) -> TypeSpec:
    message = f"{name} exists only inside a client and is never stored"
    fix = "declare the type of the messages themselves"
    return TypeSpec(undeclarable=(message, fix), unfit_half=message, validation="client")


SPECS.update(
    {
        SchemaType.NONE: BytesSpec(undeclarable=_explain_no_schema("NONE"), unfit_half="NONE means no schema"),
        SchemaType.STRING: primitive.StringSpec(),
        SchemaType.JSON: AvroSpec(payload="json", checker="json"),
        SchemaType.PROTOBUF: AvroSpec(payload="protobuf", declared_as="protobuf", checker="default"),
        SchemaType.AVRO: AvroSpec(payload="avro", checker="avro"),
        SchemaType.BOOLEAN: make_number_spec("?", "BooleanSchema", spark="boolean"),
        SchemaType.INT8: make_number_spec("b", "ByteSchema", spark="byte"),
        SchemaType.INT16: make_number_spec("h", "ShortSchema", spark="short"),
        SchemaType.INT32: make_number_spec("i", "IntSchema", spark="integer"),
        SchemaType.INT64: make_number_spec("q", "LongSchema", spark="long"),
        SchemaType.FLOAT: make_number_spec("f", "FloatSchema", spark="float"),
        SchemaType.DOUBLE: make_number_spec("d", "DoubleSchema", spark="double"),
        SchemaType.DATE: make_time_spec(primitive.decode_moment, spark="date"),
        SchemaType.TIME: make_time_spec(primitive.decode_time_of_day, spark="time"),
        SchemaType.TIMESTAMP: make_time_spec(primitive.decode_moment, spark="timestamp"),
        SchemaType.KEY_VALUE: PairSpec(),
        SchemaType.INSTANT: make_time_spec(primitive.decode_instant, spark="timestamp", first=struct.pack(">qi", 1, 0)),
        SchemaType.LOCAL_DATE: make_time_spec(primitive.decode_local_date, spark="date"),
        SchemaType.LOCAL_TIME: make_time_spec(primitive.decode_local_time, spark="time"),
        SchemaType.LOCAL_DATE_TIME: make_time_spec(
            primitive.decode_local_date_time, spark="timestamp_ntz", first=struct.pack(">2q", 1, 0)
        ),
        SchemaType.PROTOBUF_NATIVE: ProtobufNativeSpec(),
        SchemaType.EXTERNAL: TypeSpec(
            declared_as="text",
            unfit_half="an EXTERNAL schema cannot be the key or value of another",
            checker="external",
            first_release=Release.R4_2,
        ),
        SchemaType.BYTES: BytesSpec(undeclarable=_explain_no_schema("BYTES")),
        SchemaType.AUTO: _make_client_spec("AUTO"),
        SchemaType.AUTO_CONSUME: _make_client_spec("AUTO_CONSUME"),
        SchemaType.AUTO_PUBLISH: _make_client_spec("AUTO_PUBLISH"),
    }
)


def find_problems(info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
    """Yield every reason not to declare `info` (see TypeSpec.find_problems), with the reasons for the `.proto` of a PROTOBUF definition."""
    yield from spec(info).find_problems(info, release)
    if info.proto:
        for problem in spec(info.proto).find_problems(info.proto, release):
            # The pointer of a part of the `.proto` means nothing in the Avro definition.
            source = info.proto.locate(problem.pointer)
            yield InvalidSchema(f"{source}: {problem.message}" if source else problem.message, fix=problem.fix)


def find_unapplied_defaults(*, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
    """Yield the defaults that `reader` does not apply (see TypeSpec.find_unapplied_defaults), if the types are equal.

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    if reader.type is not writer.type:
        return iter(())
    return spec(reader).find_unapplied_defaults(reader=reader, writer=writer)


def identity(info: SchemaInfo) -> Hashable:
    """Return a key that two definitions share exactly if they are one version (see TypeSpec.identity).

    Raises:
        InvalidSchema: if the definition does not parse.
    """
    return spec(info).identity(info)


def get_record_name(info: SchemaInfo) -> str:
    """Return the full name of the record or message at the root of a definition, by which a version belongs to a kind of events.

    It is "" if the type has no such root, or if the definition does not parse.
    """
    known_name: str | None = getattr(info, "record_name", None)
    if known_name is not None:
        return known_name
    try:
        return spec(info).get_record_name(info.load())
    except InvalidSchema:
        return ""


def assign_kinds(versions: Iterable[SchemaVersion], topic: Topic) -> tuple[SchemaVersion, ...]:
    """Return the versions with the keys of the kinds of `topic`, by the names of their records.

    Without kinds, the versions are unchanged, and no definition is read.
    """
    if not topic.kind_names:
        return tuple(versions)
    return tuple(
        replace(version, kind=topic.find_kind_key(get_record_name(version.info)) if version.info else "")
        for version in versions
    )


def resolve(*, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
    """Yield every reason why `reader` may fail on a message of `writer` (see TypeSpec.resolve); one for different types.

    PROTOBUF definitions that both have a `.proto` are compared by its wire rules, which describe the bytes on the topic.

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    if reader.type is not writer.type:
        message = f"{reader.type.name} cannot read {writer.type.name}"
        return iter([Incompatibility("SCHEMA_TYPE_CHANGED", "", message)])
    reader, writer = select_wire_definitions(reader, writer)
    return spec(reader).resolve(reader=reader, writer=writer)


def find_misreadings(*, reader: SchemaInfo, writer: SchemaInfo) -> Iterator[Incompatibility]:
    """Yield where `reader` decodes a message of `writer` to another value (see TypeSpec.find_misreadings), if the types are equal.

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    if reader.type is not writer.type:
        return iter(())
    reader, writer = select_wire_definitions(reader, writer)
    return spec(reader).find_misreadings(reader=reader, writer=writer)


def find_client_misreadings(*, reader: SchemaInfo, writer: SchemaInfo, language: str) -> Iterator[Incompatibility]:
    """Yield where a client of a language fails on a message of `writer` or reads another value (see TypeSpec).

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    if reader.type is not writer.type:
        return resolve(reader=reader, writer=writer)
    reader, writer = select_wire_definitions(reader, writer)
    return spec(reader).find_client_misreadings(reader=reader, writer=writer, language=language)


def find_client_defaults(*, reader: SchemaInfo, writer: SchemaInfo, language: str) -> Iterator[Incompatibility]:
    """Yield the defaults that a client of a language does not apply (see TypeSpec.find_client_defaults), if the types are equal.

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    if reader.type is not writer.type:
        return iter(())
    return spec(reader).find_client_defaults(reader=reader, writer=writer, language=language)


def select_wire_definitions(left: SchemaInfo, right: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo]:
    """Return the definitions that describe the bytes of two definitions of one type: the `.proto` of PROTOBUF, if both have it."""
    return (left.proto, right.proto) if left.proto and right.proto else (left, right)


def explain(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
    """Explain a `breakage` of `new` with `old`."""
    if old.type is not new.type:
        return Explanation(
            "",
            f"The schema type was {old.type.name} and is {new.type.name}: the bytes on the topic mean something else "
            "from one message to the next, and no reader decodes both.",
            f"Keep {old.type.name}, or give the new messages a separate topic.",
        )
    new, old = select_wire_definitions(new, old)
    return spec(new).explain(breakage, new=new, old=old)


def identify_breakage(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Hashable:
    """Return a key that the breakages of two new schemas with one old schema share if they are the same problem of the same field."""
    problem, explanation = breakage.incompatibility, explain(breakage, new=new, old=old)
    return explanation.field, problem.rule, problem.message, explanation.causes, breakage.direction


def find_renames(*, new: SchemaInfo, old: SchemaInfo, old_name: str, new_name: str) -> Iterator[Rename]:
    """Yield the parts of `new` called `new_name` that may be what `old` calls `old_name`.

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    if new.type is not old.type:
        return iter(())
    return spec(new).find_renames(new=new, old=old, old_name=old_name, new_name=new_name)


ReadingAnswer = Literal["yes", "doubtful", "strict", "misread", "no"]


class Reading(NamedTuple):
    """Whether readers with one version can read the messages of another.

    Attributes:
        answer: "strict" if Pulsar's Java clients can, but strict readers may not; "doubtful" if they read what was written except
            for a warning; "misread" if they read other values.
        reason: the first reason against "yes"; "" without one.
    """

    answer: ReadingAnswer
    reason: str = ""


def judge_reading(
    *, reader: SchemaVersion, writer: SchemaVersion, language: str = "", explains: bool = True
) -> Reading:
    """Return whether readers with one version can read the messages of another; both must have a definition.

    With a language that has separate rules (`TypeSpec.has_client_rules`), readers are Pulsar's clients in that language. Without
    `explains`, the reason is left out.
    """
    if reader.number == writer.number:
        return Reading("yes")
    assert reader.info is not None  # noqa: S101  see the docstring
    assert writer.info is not None  # noqa: S101
    is_newer = reader.number > writer.number
    older_number = min(reader.number, writer.number)
    old, new = (writer.info, reader.info) if is_newer else (reader.info, writer.info)
    answer: ReadingAnswer
    try:
        if spec(reader.info).has_client_rules(language):
            incompatibilities = [*find_client_misreadings(reader=reader.info, writer=writer.info, language=language)]
            incompatibilities.sort(key=lambda incompatibility: not incompatibility.is_error)
            misreadings = []
            defaults = [*find_client_defaults(reader=reader.info, writer=writer.info, language=language)]
            if defaults and not incompatibilities:
                return Reading("doubtful", f"{defaults[0].message}.")
        else:
            incompatibilities = [*resolve(reader=reader.info, writer=writer.info)]
            misreadings = [*find_misreadings(reader=reader.info, writer=writer.info)]
        if any(incompatibility.is_error for incompatibility in incompatibilities):
            answer, problem = "no", incompatibilities[0]
        elif errors := [misreading for misreading in misreadings if misreading.is_error]:
            answer, problem = "misread", errors[0]
        elif incompatibilities:
            answer, problem = "doubtful" if incompatibilities[0].is_warning else "strict", incompatibilities[0]
        elif misreadings:
            answer, problem = "doubtful", misreadings[0]
        else:
            return Reading("yes")
        if not explains:
            return Reading(answer)
        breakage = Breakage(problem, "new_reads_old" if is_newer else "old_reads_new", older_number)
        return Reading(answer, explain(breakage, new=new, old=old).reason)
    except InvalidSchema as error:
        return Reading("no", str(error))


def counterexample(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Counterexample | None:
    """Return a message that proves `breakage` and the reader's result, or None if no such message was found."""
    if old.type is not new.type:
        return find_misread_for_direction(breakage.direction, new=new, old=old)
    new, old = select_wire_definitions(new, old)
    return spec(new).counterexample(breakage, new=new, old=old)


def has_same_text(left: SchemaInfo, right: SchemaInfo) -> bool:
    """Return whether two definitions of one version are equal with doc, aliases and properties; layout does not count."""
    if left.type is not right.type or left.properties != right.properties:
        return False
    return spec(left).get_content(left) == spec(right).get_content(right)
