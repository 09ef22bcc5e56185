"""The specification of every schema type, the functions that use it, and definitions from JSON.

A new type is one file with its specification, and one row in `SPECS`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import struct
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from schemactl.core.catalog import Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.project import ProtoRendering
from schemactl.core.schema import NO_DATA, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import primitive, protobuf
from schemactl.formats.avro import AvroSpec
from schemactl.formats.key_value import PairSpec, join
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
    spec,
)

if TYPE_CHECKING:
    from schemactl.formats.protobuf.protoc import Proto

__all__ = ["SPECS", "Explanation", "Pair", "TypeSpec", "get_pair", "spec"]


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


def problems(info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
    """Yield every reason not to declare `info` (see TypeSpec.problems), with the reasons for the `.proto` of a PROTOBUF definition."""
    yield from spec(info).problems(info, release)
    if info.proto:
        for problem in spec(info.proto).problems(info.proto, release):
            # The pointer of a part of the `.proto` means nothing in the Avro definition.
            source = info.proto.locate(problem.pointer)
            yield InvalidSchema(f"{source}: {problem.message}" if source else problem.message, fix=problem.fix)


def find_unusable_defaults(info: SchemaInfo) -> Iterator[Incompatibility]:
    """Yield the defaults in `info` that brokers store and no reader can fill in (see TypeSpec.find_unusable_defaults).

    Raises:
        InvalidSchema: if the definition does not parse.
    """
    return spec(info).find_unusable_defaults(info)


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


def record_name(info: SchemaInfo) -> str:
    """Return the full name of the record or message at the root of a definition, by which a version belongs to a kind of events.

    It is "" if the type has no such root, or if the definition does not parse.
    """
    try:
        return spec(info).record_name(info.load())
    except InvalidSchema:
        return ""


def assign_kinds(versions: Iterable[SchemaVersion], topic: Topic) -> tuple[SchemaVersion, ...]:
    """Return the versions with the keys of the kinds of `topic`, by the names of their records.

    Without kinds, the versions are unchanged, and no definition is read.
    """
    if not topic.kind_names:
        return tuple(versions)
    return tuple(
        replace(version, kind=topic.find_kind_key(record_name(version.info)) if version.info else "")
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


def has_client_rules(info: SchemaInfo, language: str) -> bool:
    """Return whether clients of a language read messages of `info` by other rules than Java's (see TypeSpec.has_client_rules)."""
    return spec(info).has_client_rules(language)


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


def reading(*, reader: SchemaVersion, writer: SchemaVersion, language: str = "", explains: bool = True) -> Reading:
    """Return whether readers with one version can read the messages of another; both must have a definition.

    With a language that has separate rules (`has_client_rules`), readers are Pulsar's clients in that language. Without
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
        if has_client_rules(reader.info, language):
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
    try:
        return spec(left).content(left) == spec(right).content(right)
    except RecursionError:
        return left.schema == right.schema


# The forms of PROTOBUF_NATIVE definitions


def list_native_parts(info: SchemaInfo) -> list[SchemaInfo]:
    """Return the PROTOBUF_NATIVE definitions in a schema: itself, or the key and value of a pair."""
    pair = get_pair(info)
    parts = list(pair.halves.values()) if pair else [info]
    return [part for part in parts if part.type is SchemaType.PROTOBUF_NATIVE]


def list_proto_files(info: SchemaInfo) -> list[str]:
    """Return the names of the files in a PROTOBUF_NATIVE definition, in their order."""
    names: list[str] = list(protobuf.load("definition").parse(info.schema).image.files)
    return names


def convert(info: SchemaInfo, rendering: ProtoRendering) -> SchemaInfo:
    """Return a schema whose PROTOBUF_NATIVE definitions have the form that the client of a language sends.

    Raises:
        InvalidSchema: if a broker rejects one of them.
    """
    if not list_native_parts(info):
        return info
    if info.type is SchemaType.PROTOBUF_NATIVE:
        return replace(info, schema=protobuf.load("rendering").convert(info.schema, rendering))
    pair = get_pair(info)
    assert pair is not None  # noqa: S101  a schema with native parts is a definition or a pair
    halves = {half: convert(part, rendering) for half, part in pair.halves.items()}
    joined = join(key=halves["key"], value=halves["value"], encoding=pair.encoding)
    return replace(info, schema=joined.schema)


def find_rendering(info: SchemaInfo) -> ProtoRendering | None:
    """Return the language whose client sends the PROTOBUF_NATIVE definitions of a schema, or None if there is no such language.

    Raises:
        InvalidSchema: if a broker rejects one of them.
    """
    renderings = {protobuf.load("rendering").find_rendering(part.schema) for part in list_native_parts(info)}
    return renderings.pop() if len(renderings) == 1 else None


def find_variants(info: SchemaInfo, language: ProtoRendering) -> list[str]:
    """Return why the client of a language may send other PROTOBUF_NATIVE definitions, each as a clause about the client."""
    parts = list_native_parts(info)
    return [text for part in parts for text in protobuf.load("rendering").find_variants(part.schema, language)]


# Definitions from JSON


class InvalidInput(Exception):
    """A JSON value has an unexpected form."""


def read_json_definition(entry: object, where: str) -> SchemaInfo:
    """Return the definition in `{"type", "schema", "properties"}`; `schema_b64` may replace `schema`.

    Raises:
        InvalidInput: if `entry` is not such an object; `where` is its place in messages.
        InvalidSchema: if a KEY_VALUE is not the text of one, or a `.proto` does not compile.
    """
    if not isinstance(entry, dict):
        raise InvalidInput(f"`{where}` is not a definition: expected an object with `type` and `schema`")
    type_ = _read_type(entry.get("type"), f"{where}.type")
    properties = read_json_properties(entry, where)
    if "schema_b64" in entry:
        encoded = entry["schema_b64"]
        try:
            data = NO_DATA if encoded is None else base64.b64decode(encoded, validate=True)
        except (TypeError, ValueError):
            raise InvalidInput(f"`{where}.schema_b64` is not base64") from None
        return SchemaInfo(type_, data, properties)
    schema = "" if entry.get("schema") is None else entry["schema"]
    if SPECS[type_].language == "protobuf" and (compiled := _compile_proto(schema)):
        return replace(compiled, properties=properties)
    if not isinstance(schema, str):
        raise InvalidInput(f"`{where}.schema` is not a string")
    return SPECS[type_].from_text(type_, schema, properties)


def read_request_definition(request: Mapping[str, Any], role: str) -> SchemaInfo:
    """Return the definition under `role` in a request, with the request's `type` and `properties`; a text or its JSON.

    Raises:
        InvalidInput: if the request does not have such a definition.
        InvalidSchema: if a KEY_VALUE is not the text of one, or a `.proto` does not compile.
    """
    type_, schema = _read_type(request.get("type"), "type"), request.get(role)
    type_spec = SPECS[type_]
    if schema is None and type_spec.language:
        raise InvalidInput(f"`{role}` is missing: give the definition of {type_.name}, as a text or as the JSON itself")
    entry = {"type": type_.name, "schema": schema, "properties": request.get("properties")}
    if type_spec.declared_as == "protobuf" and (compiled := _compile_proto(schema)):
        return replace(read_json_definition({**entry, "schema": None}, role), proto=compiled)
    if type_spec.payload in ("avro", "json"):
        if isinstance(schema, bool | int | float):
            raise InvalidInput(f"`{role}` is {json.dumps(schema)}, which is not a definition")
        # A bare word is the JSON of a primitive type; its text has quotes.
        if not isinstance(schema, str) or schema.isidentifier():
            entry["schema"] = json.dumps(schema)
    elif type_spec.language == "pair" and isinstance(schema, dict):
        entry["schema"] = json.dumps({name: _half_to_json(half) for name, half in schema.items()})
    elif isinstance(schema, dict | list) and not find_json_proto(schema):
        entry["schema"] = json.dumps(schema)
    return read_json_definition(entry, role)


def read_json_properties(entry: dict[str, Any], where: str) -> dict[str, str]:
    """Return the properties of a definition.

    Raises:
        InvalidInput: if they are not an object with strings.
    """
    properties = entry.get("properties") or {}
    if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
        raise InvalidInput(f"`{where}.properties` is not an object whose values are strings")
    return properties


def find_json_proto(schema: object) -> Proto | None:
    """Return the `.proto` in `{"proto": "<text>", "message": "a.B"}`, as an object or as JSON text, or None."""
    if isinstance(schema, str) and '"proto"' in schema:
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):
            return None
    if not isinstance(schema, dict):
        return None
    text, message = schema.get("proto"), schema.get("message")
    if not isinstance(text, str) or not isinstance(message, str):
        return None
    proto: Proto = protobuf.load("protoc").Proto.of_text(text, message)
    return proto


def _half_to_json(half: object) -> object:
    """Return a half of a KEY_VALUE as JSON, as in the admin API's text; it may be given as a text, JSON or `.proto`."""
    if compiled := _compile_proto(half):
        return json.loads(compiled.schema)
    if isinstance(half, str) and not half.isidentifier():
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(half)
    return half


def _compile_proto(schema: object) -> SchemaInfo | None:
    proto = find_json_proto(schema)
    return protobuf.load("protoc").compile_proto(proto) if proto else None


def _read_type(name: object, where: str) -> SchemaType:
    if name is None:
        raise InvalidInput(f"`{where}` is missing: write AVRO, JSON or another of Pulsar's schema types")
    if not isinstance(name, str) or name not in SchemaType.__members__:
        raise InvalidInput(f"`{where}` is {json.dumps(name)}, which is not a schema type")
    return SchemaType[name]
