"""Validate payloads before they are sent, as Pulsar's producers with AUTO_PRODUCE_BYTES do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...codec import Codec, CodecError, Definition, KeyValue, Options, Unreadable, Version
from ...codec.message import limit_nesting
from .options import Connection, PulsarProblem
from .registered import make_version
from .topics import list_schemas

_NESTING_DEPTHS: Final = (64, 32, 16, 8, 4, 2, 1)
"""The numbers of nested records to try when a payload is validated, the highest first; deeper ones are not looked at."""

_WITHOUT_PROPERTIES: Final = ("AVRO", "JSON", "STRING", "PROTOBUF_NATIVE")
"""The types whose payloads follow from the definition alone; a STRING is taken for UTF-8."""


@dataclass(frozen=True, slots=True)
class Validator:
    """Finds payloads that are not messages of a version, to the last byte.

    Attributes:
        codec: a strict codec with the version.
        number: its number.
    """

    codec: Codec
    number: int

    def find_reasons(self, payloads: pa.Array, keys: pa.Array | None) -> list[str | None]:
        """Return the reason for each invalid payload, and None for each valid one.

        A null payload is valid: in a compacted topic, it deletes its key.
        """
        has_keys = self.codec.separated
        if has_keys and keys is None:
            keys = pa.nulls(len(payloads), pa.binary())
        reasons: list[str | None] = []
        for decoded in self.codec.decode_parts(payloads, None, keys if has_keys else None):
            reasons += decoded.errors.to_pylist()
        for row in pc.indices_nonzero(pa.array([reason is not None for reason in reasons])).to_pylist():
            payload, key = payloads[row].as_py(), keys[row].as_py() if has_keys and keys is not None else None
            if payload is not None:
                # A value that has no place in a column, such as a decimal of 40 digits, may be valid.
                try:
                    self.codec.decode_one(payload, self.number, key)
                except Unreadable:
                    continue
            reasons[row] = None
        return reasons


def make_validator(connection: Connection, topic: str, number: int, info: Any) -> Validator | None:
    """Return the validator of a registered version, or None if its payloads cannot be judged: bytes, and PROTOBUF without descriptors.

    Args:
        connection: the options; with `admin.url`, the properties of the schema count, which pulsar-client does not show.
        topic: the full name of the topic.
        number: the number of the version.
        info: its SchemaInfo.

    Raises:
        PulsarProblem: if the version needs its properties and there is no `admin.url`, or there is no codec for it.
    """
    schema = _read_schema(connection, topic, number, info)
    if isinstance(schema, Definition) and schema.type in ("PROTOBUF", "BYTES", "NONE"):
        return None
    try:
        options = limit_nesting(schema, Options(strict=True, loses_nanoseconds=True), _NESTING_DEPTHS)
        codec = Codec([Version(number, schema)], options=options)
        codec.columns  # noqa: B018  raises here, not at the first payload
    except CodecError as error:
        raise PulsarProblem(
            f"payloads of version {number} of {topic} cannot be validated: {error}. schema.validation=false sends them without"
        ) from None
    return Validator(codec, number)


def _read_schema(connection: Connection, topic: str, number: int, info: Any) -> Definition | KeyValue:
    schema_type = info.schema_type().name
    if connection.admin_url:
        for response in list_schemas(connection, topic):
            if response["version"] == number:
                return make_version(topic, response).schema
    if schema_type in (*_WITHOUT_PROPERTIES, "PROTOBUF", "BYTES", "NONE"):
        return Definition(schema_type, info.schema())
    raise PulsarProblem(
        f"to validate payloads of version {number} of {topic}, set admin.url: pulsar-client does not show the types of a KEY_VALUE, or "
        "a primitive type; schema.validation=false sends without validation"
    )
