"""Parse and validate one definition as the broker's `SchemaDataValidator` does, including JSON definitions of old clients.

`read` decides as `ObjectMapper.readValue(data, JsonSchema.class)` does (jackson-module-jsonSchema 2.17), as far as definitions
are known to need it: each schema has a known `type`, at the top, in `properties` and in `items`; `required` is a flag and no
list of names. The shapes that Jackson gives to other properties, such as numbers to `maximum`, are not judged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from schemactl.broker.exceptions import (
    ILLEGAL_ARGUMENT,
    IO,
    NULL_POINTER,
    PARSE,
    SERIALIZATION,
    VALIDATION,
    incompatible,
    invalid,
    is_error,
    parse_message,
)
from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import NO_DATA, Release, SchemaInfo, SchemaType
from schemactl.formats import SPECS, protobuf
from schemactl.formats.avro import resolving_grammar
from schemactl.formats.avro.json_text import InvalidAvro
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import JavaException, Schema
from schemactl.formats.key_value import FramingError, unframe

if TYPE_CHECKING:
    from schemactl.formats.protobuf.definition import ProtoDefinition


@dataclass(frozen=True, slots=True)
class SchemaData:
    """Type, bytes and properties. `data` is None where Java has null: an upload or a half without any."""

    type: SchemaType
    data: bytes | None
    properties: Mapping[str, str]

    @property
    def content(self) -> tuple[SchemaType, bytes]:
        """Type and bytes: what SchemaHash stands for."""
        return self.type, self.data or b""

    @property
    def text(self) -> str:
        """The bytes as text, as `new String(data, UTF_8)`.

        Raises:
            JavaException: there are none.
        """
        if self.data is None:
            raise JavaException(NULL_POINTER, 'Cannot read the array length because "bytes" is null')
        return self.data.decode("utf-8", "replace")


def uploaded(info: SchemaInfo) -> SchemaData:
    """Return a definition as it is uploaded."""
    return SchemaData(info.type, None if info.schema is NO_DATA else info.schema, info.properties)


def stored(info: SchemaInfo) -> SchemaData:
    """Return a definition as it comes out of the store."""
    # The stored form has no negative codes (SchemaRegistryServiceImpl.convertFromDomainType).
    kind = info.type if info.type.value >= 0 else SchemaType.NONE
    return SchemaData(kind, info.schema, info.properties)


def halves(data: SchemaData, release: Release) -> tuple[SchemaData, SchemaData]:
    """Return key and value, read as leniently as KeyValueSchemaInfo.decodeKeyValueSchemaInfo does: trailing bytes are ignored.

    Raises:
        JavaException: the framing ends early, a length is negative, a half's type is unknown or its properties are no object.
    """
    if data.data is None:
        raise JavaException(NULL_POINTER, 'Cannot read the array length because "array" is null')
    try:
        key, value, _ = unframe(data.data)
    except FramingError as error:
        raise error.java from None
    return _half(data, "key", key, release), _half(data, "value", value, release)


def _half(whole: SchemaData, half: str, data: bytes | None, release: Release) -> SchemaData:
    name = whole.properties.get(f"{half}.schema.type", SchemaType.BYTES.name)
    kind = SchemaType.__members__.get(name)
    if kind is None or release < SPECS[kind].first_release:
        raise JavaException(ILLEGAL_ARGUMENT, f"No enum constant org.apache.pulsar.common.schema.SchemaType.{name}")
    return SchemaData(kind, data, _properties(whole.properties.get(f"{half}.schema.properties")))


def _properties(text: str | None) -> dict[str, str]:
    if not text:
        return {}
    try:
        found, shown = json.loads(text), text
    except (ValueError, RecursionError):
        found, shown = None, json.dumps(text, ensure_ascii=False)
    if not isinstance(found, dict):
        words = f"java.lang.IllegalStateException: Not a JSON Object: {shown}"
        raise JavaException("JsonSyntaxException", words)
    return {name: str(value) for name, value in found.items()}


# Validation of one definition, as SchemaDataValidator does it

_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=\s]")
_KEPT: Final = 4096
"""How many definitions, and pairs of them, are remembered: a topic's versions are looked at over and over."""


def parse_avro(data: SchemaData, release: Release) -> Schema:
    """Return the schema in `data`, whatever its defaults, as validation and checkers read it.

    Raises:
        JavaException: what Java's parser throws.
    """
    return _parsed_schema(_read_avro(data.text, release).lenient)


def parse_avro_strictly(data: SchemaData, release: Release) -> Schema:
    """Return the schema in `data`, as the look-up of an upload reads it.

    Raises:
        JavaException: what Java's parser throws, also for a default that is no value of its field's type.
    """
    return _parsed_schema(_read_avro(data.text, release).strict)


def require_readable(*, reader: Schema, writer: Schema, release: Release) -> None:
    """Raise JavaException unless Avro's SchemaValidator in that release lets `reader` read what `writer` wrote.

    Raises:
        JavaException: SchemaValidationException where it does not; what the check itself throws, where it fails.
    """
    answer = _can_read(reader, writer, release)
    if answer.outcome == "error":
        raise JavaException(answer.exception, answer.message)
    if answer.outcome == "incompatible":
        raise JavaException(VALIDATION, _unable_to_read(reader, writer))


def never_readable(schema: Schema) -> JavaException:
    """Return what a validator that never accepts throws for `schema` (NeverSchemaValidator)."""
    return JavaException(VALIDATION, _unable_to_read(schema, schema))


@dataclass(frozen=True, slots=True)
class _Read:
    """A text as the parser reads it with its defaults validated (`strict`) and without."""

    strict: Schema | JavaException
    lenient: Schema | JavaException


@lru_cache(_KEPT)
def _read_avro(text: str, release: Release) -> _Read:
    try:
        schema = parse(text, release, validate_defaults=True)
    except InvalidAvro as bad:
        strict = _thrown(text, bad, release)
    else:
        return _Read(schema, schema)
    try:
        return _Read(strict, parse(text, release))
    except InvalidAvro as bad:
        return _Read(strict, _thrown(text, bad, release))


def _thrown(text: str, problem: InvalidAvro, release: Release) -> JavaException:
    return JavaException(problem.exception, parse_message(text, problem, release))


def _parsed_schema(found: Schema | JavaException) -> Schema:
    if isinstance(found, JavaException):
        raise found.with_traceback(None)
    return found


@lru_cache(_KEPT)
def _can_read(reader: Schema, writer: Schema, release: Release) -> resolving_grammar.GrammarAnswer:
    return resolving_grammar.can_read(reader=reader, writer=writer, release=release)


@lru_cache(64)
def _unable_to_read(reader: Schema, writer: Schema) -> str:
    # Long texts, and the same ones for an upload and its test.
    return resolving_grammar.unable_to_read(reader=reader, writer=writer)


def root_message(data: SchemaData) -> str:
    """Return the full name of the root message in `data`.

    Raises:
        JavaException: SchemaSerializationException, around what Java met.
    """
    name: str = _read_native(data).root.full_name
    return name


def advanced_violation(*, reader: SchemaData, writer: SchemaData) -> tuple[str, str] | None:
    """Return the rule and the path with which 5.0's advanced checker refuses `reader` the messages of `writer`; None: it does not.

    Raises:
        JavaException: IncompatibleSchemaException, where either cannot be unpacked.
    """
    try:
        ours, theirs = _read_native(reader).root, _read_native(writer).root
    except JavaException as thrown:
        raise incompatible("SCHEMA_RECONSTRUCTION_FAILED: invalid native descriptor") from thrown
    first = next(protobuf.load("advanced_checker").advanced_violations(reader=ours, writer=theirs), None)
    return (first.rule, first.path) if first else None


def _read_native(data: SchemaData) -> ProtoDefinition:
    try:
        found: ProtoDefinition = protobuf.load("definition").parse(data.data or b"")
    except InvalidSchema as problem:
        raise JavaException(SERIALIZATION, _jackson_message(data.data or b"") or problem.what) from problem
    return found


def _jackson_message(data: bytes) -> str:
    """Jackson's words for an empty text, and for a descriptor set that is no base64; "" for everything else."""
    package = "com.fasterxml.jackson.databind.exc"
    if not data.strip():
        source = "REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1"
        return f"{package}.MismatchedInputException: No content to map due to end-of-input\n at [Source: {source}]"
    try:
        encoded = json.loads(data).get("fileDescriptorSet")
    except (ValueError, RecursionError, AttributeError):
        return ""
    odd = _NOT_BASE64.search(encoded) if isinstance(encoded, str) else None
    if odd is None:
        return ""
    return (
        f'{package}.InvalidFormatException: Cannot deserialize value of type `byte[]` from String "{encoded[odd.end() :]}": '
        "Failed to decode VALUE_STRING as base64 (MIME-NO-LINEFEEDS): "
        f"Illegal character '{odd[0]}' (code 0x{ord(odd[0]):x}) in base64 content"
    )


def validate(data: SchemaData, release: Release) -> None:
    """Raise JavaException unless the registry of `release` accepts `data` as a definition of its type.

    Raises:
        JavaException: INVALID where it does not; another exception where the validator itself fails.
    """
    kind = SPECS[data.type]
    if release < kind.first_release:
        raise JavaException(
            ILLEGAL_ARGUMENT, f"No enum constant org.apache.pulsar.common.schema.SchemaType.{data.type.name}"
        )
    _VALIDATORS[kind.validation](data, release)


def _validate_avro(data: SchemaData, release: Release) -> None:
    try:
        schema = parse_avro(data, release)
    except JavaException as thrown:
        # Only before 4.2, and only what Avro's parser itself refuses, may be a legacy definition.
        if is_error(thrown):
            raise
        if SPECS[data.type].payload == "json" and release is Release.R4_0 and thrown.exception == PARSE:
            _validate_legacy(data)
            return
        raise _invalid_definition(data) from thrown
    if SPECS[data.type].payload == "avro" and schema.type == "union":
        raise invalid("Avro schema typed [UNION] is not supported")


def _validate_legacy(data: SchemaData) -> None:
    try:
        read(data.data or b"")
    except JavaException as thrown:
        if thrown.exception != IO:
            raise
        raise _invalid_definition(data) from thrown


def _invalid_definition(data: SchemaData) -> JavaException:
    return invalid(f"Invalid schema definition data for {data.type.name} schema")


def _validate_native(data: SchemaData, _release: Release) -> None:
    try:
        root_message(data)
    except JavaException as thrown:
        raise invalid("deserialize ProtobufNative Schema failed") from thrown


def _validate_string(data: SchemaData, _release: Release) -> None:
    if data.data and data.data != b"null":
        raise invalid(f"Invalid schema definition data for string schema : '{data.text}'")


def _validate_primitive(data: SchemaData, _release: Release) -> None:
    if data.data:
        raise invalid(
            "Invalid schema definition data for primitive schemas :length of schema data should be zero, "
            f"but {len(data.data)} bytes is found"
        )


def _validate_halves(data: SchemaData, release: Release) -> None:
    for half in halves(data, release):
        validate(half, release)


def _accept(data: SchemaData, release: Release) -> None:
    """NONE, BYTES and EXTERNAL: anything."""


def _reject(data: SchemaData, _release: Release) -> None:
    raise invalid(f"Schema {data.type.name} is a client-side schema type")


_VALIDATORS: Final[dict[str, Callable[[SchemaData, Release], None]]] = {
    "any": _accept,
    "empty": _validate_primitive,
    "string": _validate_string,
    "avro": _validate_avro,
    "proto": _validate_native,
    "pair": _validate_halves,
    "client": _reject,
}
"""By `TypeSpec.validation`."""


# JSON definitions of clients before 2.1: Jackson's JSON Schema class, which brokers before 4.2 still read

_TYPES: Final = ("any", "null", "boolean", "string", "number", "integer", "array", "object")


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """What the broker compares of a legacy definition: its `id`, None where it has none."""

    id: str | None


def read(data: bytes) -> JsonSchema | None:
    """Return the legacy definition in `data`; None for JSON `null` and for an array that holds a type alone.

    Raises:
        JavaException: IO where Jackson rejects the text, ILLEGAL_ARGUMENT where it does not know the top-level `type`.
    """
    text = data.decode(json.detect_encoding(data), "replace")
    try:
        # What follows the first JSON value is ignored.
        value, _ = _DECODER.raw_decode(text.lstrip(" \t\r\n"))
        return _json_schema(value)
    except (ValueError, RecursionError) as error:
        raise JavaException(IO, str(error)) from None


def _constant(name: str) -> NoReturn:
    raise ValueError(f"Non-standard token '{name}'")


_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_constant)
"""Reads a number as it is written, for where a text is expected Jackson takes it as one."""


def _json_schema(value: Any) -> JsonSchema | None:
    """Return the schema in an object, or in an array of its type and the rest: Jackson's other form."""
    if value is None:
        return None
    if isinstance(value, dict):
        value = [value.get("type"), value]
    kind = _text(value[0]) if isinstance(value, list) and value else None
    if kind is None:
        raise ValueError("missing type id property 'type'")
    if kind not in _TYPES:
        standard = "[STRING, NUMBER, INTEGER, BOOLEAN, OBJECT, ARRAY, NULL, ANY]"
        raise JavaException(
            ILLEGAL_ARGUMENT,
            f"Can not resolve JsonSchema 'type' id of \"{kind}\", not recognized as one of standard values: {standard}",
        )
    if len(value) == 1:
        return None
    if len(value) > 2 or not isinstance(value[1], dict) or not _fits(value[1]):
        raise ValueError("a property has another shape than JsonSchema gives it")
    return JsonSchema(_text(value[1].get("id")))


def _text(value: Any) -> str | None:
    """Return what Jackson reads as a text, which a boolean is, too."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else None


def _fits(schema: dict[str, Any]) -> bool:
    """Return whether the properties have the shapes that JsonSchema gives them."""
    properties, items = schema.get("properties") or {}, schema.get("items")
    if not isinstance(properties, dict) or any(
        isinstance(schema.get(name), list | dict) for name in ("id", "required")
    ):
        return False
    return all(map(_is_schema, [*properties.values(), *(items if isinstance(items, list) else [items])]))


def _is_schema(value: Any) -> bool:
    try:
        _json_schema(value)
    except (ValueError, JavaException):
        return False
    return True
