"""What the registry asks of a definition before it looks at any other (SchemaDataValidator)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from schemactl.broker import legacy_json, native
from schemactl.broker.avro import parse
from schemactl.broker.data import SchemaData, halves
from schemactl.broker.exceptions import ILLEGAL_ARGUMENT, IO, PARSE, invalid, is_error
from schemactl.formats import SPECS
from schemactl.formats.avro.java import Thrown
from schemactl.model import Release


def validate(data: SchemaData, release: Release) -> None:
    """Nothing, when the registry of `release` accepts `data` as a definition of its type.

    Raises:
        Thrown: INVALID where it is not one; another exception where the validator itself stumbles.
    """
    kind = SPECS[data.type]
    if release < kind.first_release:
        raise Thrown(
            ILLEGAL_ARGUMENT, f"No enum constant org.apache.pulsar.common.schema.SchemaType.{data.type.name}"
        )
    _VALIDATORS[kind.validation](data, release)


def _validate_avro(data: SchemaData, release: Release) -> None:
    try:
        schema = parse(data, release)
    except Thrown as thrown:
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
        legacy_json.read(data.data or b"")
    except Thrown as thrown:
        if thrown.exception != IO:
            raise
        raise _invalid_definition(data) from thrown


def _invalid_definition(data: SchemaData) -> Thrown:
    return invalid(f"Invalid schema definition data for {data.type.name} schema")


def _validate_native(data: SchemaData, release: Release) -> None:
    del release
    native.validate(data)


def _validate_string(data: SchemaData, release: Release) -> None:
    del release
    if data.data and data.data != b"null":
        raise invalid(f"Invalid schema definition data for string schema : '{data.text}'")


def _validate_primitive(data: SchemaData, release: Release) -> None:
    del release
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


def _refuse(data: SchemaData, release: Release) -> None:
    del release
    raise invalid(f"Schema {data.type.name} is a client-side schema type")


_VALIDATORS: Final[dict[str, Callable[[SchemaData, Release], None]]] = {
    "any": _accept,
    "empty": _validate_primitive,
    "string": _validate_string,
    "avro": _validate_avro,
    "proto": _validate_native,
    "pair": _validate_halves,
    "client": _refuse,
}
"""By `TypeSpec.validation`."""
