"""Parse and validate one definition like the broker's `SchemaDataValidator`."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from schemactl.broker.exceptions import (
    ILLEGAL_ARGUMENT,
    IO,
    NULL_POINTER,
    PARSE,
    SERIALIZATION,
    VALIDATION,
    describe_exception,
    incompatible,
    invalid,
    is_error,
    parse_message,
)
from schemactl.broker.legacy_json import read_legacy_definition
from schemactl.codec.wire_format import InvalidPair, split_pair
from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import NO_DATA, Release, SchemaInfo, SchemaType
from schemactl.formats import SPECS, protobuf
from schemactl.formats.avro import resolving_grammar
from schemactl.formats.avro.json_text import InvalidAvro
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import JavaException, Schema, make_identity_key
from schemactl.formats.gson import GsonError
from schemactl.formats.key_value import parse_properties, to_java_exception

if TYPE_CHECKING:
    from schemactl.formats.protobuf.definition import ProtoDefinition

_CACHE_SIZE: Final = 4096
"""The number of definitions, and of pairs of definitions, in the caches: a topic's versions are read again and again."""

_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=\s]")

_GSON_HELP: Final = "https://github.com/google/gson/blob/main/Troubleshooting.md#malformed-json"


@dataclass(frozen=True, slots=True)
class SchemaData:
    """The type, bytes and properties of a definition. `data` is None where Java has null: in an upload, a key or a value without data."""

    type: SchemaType
    data: bytes | None
    properties: Mapping[str, str]

    @property
    def content(self) -> tuple[SchemaType, bytes]:
        """The type and bytes, which SchemaHash covers."""
        return self.type, self.data or b""

    @property
    def text(self) -> str:
        """The bytes as text, like `new String(data, UTF_8)`.

        Raises:
            JavaException: if the definition has no data.
        """
        if self.data is None:
            raise JavaException(NULL_POINTER, 'Cannot read the array length because "bytes" is null')
        return self.data.decode("utf-8", "replace")


def read_upload(info: SchemaInfo) -> SchemaData:
    """Return the data of an upload of a definition."""
    return SchemaData(info.type, None if info.schema is NO_DATA else info.schema, info.properties)


def read_stored(info: SchemaInfo) -> SchemaData:
    """Return the data of a stored definition."""
    # The stored form has no negative codes (SchemaRegistryServiceImpl.convertFromDomainType).
    schema_type = info.type if info.type.value >= 0 else SchemaType.NONE
    return SchemaData(schema_type, info.schema, info.properties)


def validate(data: SchemaData, release: Release) -> None:
    """Check that the registry of `release` accepts `data` as a definition of its type.

    Raises:
        JavaException: INVALID if it does not; another exception if the validator itself fails.
    """
    type_spec = SPECS[data.type]
    if release < type_spec.first_release:
        raise JavaException(
            ILLEGAL_ARGUMENT, f"No enum constant org.apache.pulsar.common.schema.SchemaType.{data.type.name}"
        )
    match type_spec.validation:
        case "avro":
            _validate_avro(data, release)
        case "proto":
            try:
                get_root_name(data)
            except JavaException as thrown:
                if is_error(thrown):
                    raise
                raise invalid("deserialize ProtobufNative Schema failed") from thrown
        case "pair":
            for part in split_key_value(data, release):
                validate(part, release)
        case "string" if data.data and data.data != b"null":
            raise invalid(f"Invalid schema definition data for string schema : '{data.text}'")
        case "empty" if data.data:
            raise invalid(
                "Invalid schema definition data for primitive schemas :length of schema data should be zero, "
                f"but {len(data.data)} bytes is found"
            )
        case "client":
            raise invalid(f"Schema {data.type.name} is a client-side schema type")


def _validate_avro(data: SchemaData, release: Release) -> None:
    try:
        schema = parse_avro(data, release)
    except JavaException as thrown:
        if is_error(thrown):
            raise
        # A legacy definition is accepted before 4.2 only, and if Avro's parser itself rejects the text.
        may_be_legacy = SPECS[data.type].payload == "json" and release is Release.R4_0 and thrown.exception == PARSE
        if not may_be_legacy:
            raise _make_definition_error(data) from thrown
        try:
            read_legacy_definition(data.data or b"")
        except JavaException as legacy_thrown:
            if legacy_thrown.exception != IO:
                raise
            raise _make_definition_error(data) from legacy_thrown
        return
    if SPECS[data.type].payload == "avro" and schema.type == "union":
        raise invalid("Avro schema typed [UNION] is not supported")


def _make_definition_error(data: SchemaData) -> JavaException:
    return invalid(f"Invalid schema definition data for {data.type.name} schema")


def split_key_value(data: SchemaData, release: Release) -> tuple[SchemaData, SchemaData]:
    """Return key and value, read like KeyValueSchemaInfo.decodeKeyValueSchemaInfo, which ignores trailing bytes.

    Raises:
        JavaException: if the framing ends early, a length is negative, a type is unknown or the properties are not an object.
    """
    if data.data is None:
        raise JavaException(NULL_POINTER, 'Cannot read the array length because "array" is null')
    try:
        key, value, _ = split_pair(data.data)
    except InvalidPair as error:
        raise to_java_exception(error) from None
    return _read_part(data, "key", key, release), _read_part(data, "value", value, release)


def _read_part(pair: SchemaData, part: str, data: bytes | None, release: Release) -> SchemaData:
    """Return the `part` (key or value) of a pair, whose bytes are `data`."""
    name = pair.properties.get(f"{part}.schema.type", SchemaType.BYTES.name)
    schema_type = SchemaType.__members__.get(name)
    if schema_type is None or release < SPECS[schema_type].first_release:
        raise JavaException(ILLEGAL_ARGUMENT, f"No enum constant org.apache.pulsar.common.schema.SchemaType.{name}")
    try:
        properties = parse_properties(pair.properties.get(f"{part}.schema.properties"))
    except RecursionError:
        raise JavaException("StackOverflowError") from None
    except GsonError as error:
        name, _, message = str(error).partition(": ")
        if name == "java.lang.UnsupportedOperationException":
            raise JavaException("UnsupportedOperationException", message) from None
        if release > Release.R4_0 and name == "com.google.gson.stream.MalformedJsonException":
            # Gson 2.13; brokers of 4.0 have 2.8.9.
            text = str(error).replace("setLenient(true)", "setStrictness(Strictness.LENIENT)")
            raise JavaException("JsonSyntaxException", f"{text}\nSee {_GSON_HELP}") from None
        raise JavaException("JsonSyntaxException", str(error)) from None
    return SchemaData(schema_type, data, properties)


# Avro


def parse_avro(data: SchemaData, release: Release) -> Schema:
    """Return the schema in `data` without validating its defaults, as validation and checkers read it.

    Raises:
        JavaException: the exception of Java's parser, if the definition is invalid.
    """
    return _raise_or_return(_read_avro(data.text, release).lenient)


def identify_avro(data: SchemaData, release: Release) -> Hashable:
    """Return a key that two definitions share exactly if the search for an equal version takes them for one version.

    Raises:
        JavaException: the exception of Java's parser, if the definition or a default in it is invalid.
    """
    return data.type, _read_avro(data.text, release).identity


def require_readable(*, reader: Schema, writer: Schema, release: Release) -> None:
    """Check with Avro's SchemaValidator of the release that `reader` can read messages of `writer`.

    Raises:
        JavaException: SchemaValidationException if it cannot; another exception if the check itself fails.
    """
    answer = _can_read(reader=reader, writer=writer, release=release)
    if answer.outcome == "error":
        raise JavaException(answer.exception, answer.message)
    if answer.outcome == "incompatible":
        raise JavaException(VALIDATION, _describe_unreadable(reader=reader, writer=writer))


def make_never_readable(schema: Schema) -> JavaException:
    """Return the exception of a validator that rejects every schema (NeverSchemaValidator)."""
    return JavaException(VALIDATION, _describe_unreadable(reader=schema, writer=schema))


@dataclass(frozen=True)
class _ParsedText:
    """The results of parsing a text with validation of defaults (`strict`) and without."""

    strict: Schema | JavaException
    lenient: Schema | JavaException

    @cached_property
    def identity(self) -> Hashable:
        """The key that two schemas share exactly if Java's `Schema.equals` holds for them."""
        return make_identity_key(_raise_or_return(self.strict))


@lru_cache(_CACHE_SIZE)
def _read_avro(text: str, release: Release) -> _ParsedText:
    try:
        schema = parse(text, release, validate_defaults=True)
    except InvalidAvro as problem:
        strict = _to_java_exception(text, problem, release)
    else:
        return _ParsedText(schema, schema)
    try:
        return _ParsedText(strict, parse(text, release))
    except InvalidAvro as problem:
        return _ParsedText(strict, _to_java_exception(text, problem, release))


def _to_java_exception(text: str, problem: InvalidAvro, release: Release) -> JavaException:
    return JavaException(problem.exception, parse_message(text, problem, release))


def _raise_or_return(result: Schema | JavaException) -> Schema:
    if isinstance(result, JavaException):
        # A cached exception would otherwise collect the tracebacks of all its raises.
        raise result.with_traceback(None)
    return result


_can_read: Final = lru_cache(_CACHE_SIZE)(resolving_grammar.can_read)
# The message is long, and the same for an upload and its test.
_describe_unreadable: Final = lru_cache(64)(resolving_grammar.describe_unreadable)


# Protobuf


def get_root_name(data: SchemaData) -> str:
    """Return the full name of the root message in `data`.

    Raises:
        JavaException: SchemaSerializationException, if it cannot be read.
    """
    name: str = _read_native(data).root.full_name
    return name


def find_advanced_violation(*, reader: SchemaData, writer: SchemaData) -> tuple[str, str] | None:
    """Return the rule and path of the first violation that 5.0's advanced checker finds, or None if `reader` can read `writer`.

    Raises:
        JavaException: IncompatibleSchemaException, if either cannot be read.
    """
    try:
        reader_root, writer_root = _read_native(reader).root, _read_native(writer).root
    except JavaException as thrown:
        raise incompatible("SCHEMA_RECONSTRUCTION_FAILED: invalid native descriptor") from thrown
    violations = protobuf.load("advanced_checker").find_advanced_violations(reader=reader_root, writer=writer_root)
    violation = next(violations, None)
    return (violation.rule, violation.path) if violation else None


def _read_native(data: SchemaData) -> ProtoDefinition:
    try:
        definition: ProtoDefinition = protobuf.load("definition").parse(data.data or b"")
    except protobuf.load("java_descriptors").RejectedDefinition as rejected:
        if is_error(rejected.java):
            raise rejected.java from rejected
        cause = describe_exception(rejected.java)
        if rejected.java.exception == "DescriptorValidationException":
            # Thrown for a file, and once more for the definition.
            cause = f"org.apache.pulsar.client.api.SchemaSerializationException: {cause}"
        raise JavaException(SERIALIZATION, cause) from rejected
    except InvalidSchema as problem:
        raise JavaException(SERIALIZATION, _make_jackson_message(data.data or b"") or problem.message) from problem
    return definition


def _make_jackson_message(data: bytes) -> str:
    """Return Jackson's message for an empty text and for a descriptor set that is not base64, else ""."""
    package = "com.fasterxml.jackson.databind.exc"
    if not data.strip():
        source = "REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1"
        return f"{package}.MismatchedInputException: No content to map due to end-of-input\n at [Source: {source}]"
    try:
        encoded = json.loads(data).get("fileDescriptorSet")
    except (ValueError, RecursionError, AttributeError):
        return ""
    invalid_character = _NOT_BASE64.search(encoded) if isinstance(encoded, str) else None
    if invalid_character is None:
        return ""
    character, rest = invalid_character[0], encoded[invalid_character.end() :]
    return (
        f'{package}.InvalidFormatException: Cannot deserialize value of type `byte[]` from String "{rest}": '
        "Failed to decode VALUE_STRING as base64 (MIME-NO-LINEFEEDS): "
        f"Illegal character '{character}' (code 0x{ord(character):x}) in base64 content"
    )
