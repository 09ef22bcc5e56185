"""What Pulsar's Java client refuses itself: AUTO_CONSUME and AUTO_PRODUCE_BYTES on a topic whose schema they cannot use."""

from __future__ import annotations

from typing import Final

from schemactl.broker.data import SchemaData, halves, stored
from schemactl.broker.definitions import parse_avro
from schemactl.broker.exceptions import ILLEGAL_ARGUMENT
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats.avro.json_text import schema_text
from schemactl.formats.avro.schema import Enum, Fixed, JavaException, Record, Schema

_UNSUPPORTED: Final = frozenset({SchemaType.PROTOBUF, SchemaType.EXTERNAL})
_AVRO_TEXT: Final = frozenset({SchemaType.AVRO, SchemaType.JSON})


def require_consumable(latest: SchemaInfo, release: Release) -> None:
    """Raise what AUTO_CONSUME throws on a topic whose latest schema this is (AutoConsumeSchema.generateSchema)."""
    data = stored(latest)
    if data.type not in _AVRO_TEXT:
        _require_instance(data, release)
    elif isinstance(_parse(data, release), Enum | Fixed) and data.type is SchemaType.JSON:
        # It looks for a Java class of that name, which an application hardly ever has.
        raise JavaException(
            ILLEGAL_ARGUMENT, "Must specify one of the pojo or jsonDef for the schema definition."
        )


def require_producible(latest: SchemaInfo, release: Release) -> None:
    """Raise what AUTO_PRODUCE_BYTES throws on a topic whose latest schema this is (PulsarClientImpl.createProducerAsync)."""
    data = stored(latest)
    if data.type is SchemaType.PROTOBUF:
        _require_record(data, release)
    else:
        _require_instance(data, release)


def _require_instance(data: SchemaData, release: Release) -> None:
    """Follow AutoConsumeSchema.getSchema."""
    if data.type in _UNSUPPORTED:
        raise JavaException(
            ILLEGAL_ARGUMENT,
            f"Retrieve schema instance from schema info for type '{data.type.name}' is not supported yet",
        )
    if data.type is SchemaType.KEY_VALUE:
        for half in halves(data, release):
            _require_instance(half, release)
    elif data.type in _AVRO_TEXT:
        _require_record(data, release)


def _require_record(data: SchemaData, release: Release) -> None:
    schema = _parse(data, release)
    if not isinstance(schema, Record):
        kind = schema.type
        raise JavaException(
            "AvroRuntimeException",
            f"Schema typed [org.apache.avro.Schema${kind.capitalize()}Schema], simple-type:[{kind.upper()}] is not supported. "
            f"schema-content: {schema_text(schema)}",
        )


def _parse(data: SchemaData, release: Release) -> Schema:
    try:
        return parse_avro(data, release)
    except JavaException:
        # A client validates no namespaces; a broker newer than 4.0 does.
        return parse_avro(data, Release.R4_0)
