"""PROTOBUF_NATIVE definitions as the broker unpacks them (ProtobufNativeSchemaUtils.deserialize)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from schemactl.broker.data import SchemaData
from schemactl.broker.exceptions import SERIALIZATION, incompatible, invalid
from schemactl.errors import InvalidSchema
from schemactl.formats import protobuf_native
from schemactl.formats.avro.java import Thrown

if TYPE_CHECKING:
    from schemactl.formats.protobuf_native.wrapper import ProtoDefinition

_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=\s]")


def validate(data: SchemaData) -> None:
    """Nothing, when `data` holds a descriptor set and the root message it names.

    Raises:
        Thrown: InvalidSchemaDataException.
    """
    try:
        root_message(data)
    except Thrown as thrown:
        raise invalid("deserialize ProtobufNative Schema failed") from thrown


def root_message(data: SchemaData) -> str:
    """The full name of the root message in `data`.

    Raises:
        Thrown: SchemaSerializationException, around what Java met.
    """
    name: str = _read(data).root.full_name
    return name


def refusal(*, reader: SchemaData, writer: SchemaData) -> tuple[str, str] | None:
    """The rule and the path with which 5.0's advanced checker refuses `reader` the messages of `writer`; None: it does not.

    Raises:
        Thrown: IncompatibleSchemaException, where either cannot be unpacked.
    """
    try:
        ours, theirs = _read(reader).root, _read(writer).root
    except Thrown as thrown:
        raise incompatible("SCHEMA_RECONSTRUCTION_FAILED: invalid native descriptor") from thrown
    first = next(protobuf_native.load("advanced").advanced_violations(reader=ours, writer=theirs), None)
    return (first.rule, first.path) if first else None


def _read(data: SchemaData) -> ProtoDefinition:
    try:
        found: ProtoDefinition = protobuf_native.load("wrapper").parse(data.data or b"")
    except InvalidSchema as problem:
        raise Thrown(SERIALIZATION, _words(data.data or b"") or problem.what) from problem
    return found


def _words(data: bytes) -> str:
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
