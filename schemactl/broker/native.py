"""PROTOBUF_NATIVE definitions as the broker unpacks them (ProtobufNativeSchemaUtils.deserialize)."""

from __future__ import annotations

import json
import re
from typing import Final

from schemactl.broker.data import SchemaData
from schemactl.broker.exceptions import SERIALIZATION, invalid
from schemactl.errors import InvalidSchema
from schemactl.formats import protobuf_native
from schemactl.formats.avro.java import Thrown

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
    wrapper = protobuf_native.load("wrapper")
    try:
        name: str = wrapper.root_message(data.data or b"")
    except InvalidSchema as problem:
        raise Thrown(SERIALIZATION, _words(data.data or b"") or problem.what) from problem
    return name


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
