"""A definition in the form of the registry's own code (`SchemaData`), and the two halves of a KEY_VALUE definition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from schemactl.broker.exceptions import ILLEGAL_ARGUMENT, NULL_POINTER
from schemactl.core.schema import NO_DATA, Release, SchemaInfo, SchemaType
from schemactl.formats import SPECS
from schemactl.formats.avro.schema import JavaException
from schemactl.formats.key_value import FramingError, unframe


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
        raise JavaException(
            ILLEGAL_ARGUMENT, f"No enum constant org.apache.pulsar.common.schema.SchemaType.{name}"
        )
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
