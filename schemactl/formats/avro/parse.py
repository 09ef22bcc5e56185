"""From an Avro schema's text to the model, refusing what Java's Schema.Parser refuses in each Pulsar release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from schemactl.formats.avro.defaults import FieldDefaults
from schemactl.formats.avro.definition import DefinitionReader
from schemactl.formats.avro.dialects import Avro111, Avro1120, Avro1122, AvroOfSpark40, AvroOfSpark41
from schemactl.formats.avro.schema import Schema
from schemactl.formats.avro.text import InvalidAvro, TrailingText, decode, read
from schemactl.model import Release


def parse(text: bytes | str, release: Release, *, validate_defaults: bool = False) -> Schema:
    """Return the schema in `text`, as the Avro inside that Pulsar release reads it.

    Args:
        text: the definition.
        release: whose rules on names and references count.
        validate_defaults: a default must be a value of its field's type, as where the broker looks for an upload among
            the versions it has; otherwise it may be anything, as where the broker judges compatibility.

    Raises:
        InvalidAvro: that Avro refuses the text; `pointer` says where.
    """
    if validate_defaults:
        return _read_until_bad(text, _DIALECTS[release], FieldDefaults(release))
    return _read(text, _DIALECTS[release], None)


def parse_for_spark(text: bytes | str, spark: tuple[int, int]) -> Schema:
    """Return the schema in `text`, as the Avro inside that release of Spark reads it, which validates defaults.

    Raises:
        InvalidAvro: that Avro refuses the text; `pointer` says where.
    """
    dialect = AvroOfSpark40 if spark < (4, 1) else AvroOfSpark41
    return _read_until_bad(text, dialect, FieldDefaults(Release.R5_0))


def problems(text: bytes | str, release: Release) -> Iterator[InvalidAvro]:
    """Yield why `parse` refuses `text` with its defaults validated: every bad default, and one other error."""
    defaults = FieldDefaults(release)
    try:
        _read(text, _DIALECTS[release], defaults)
    except InvalidAvro as problem:
        yield problem
    yield from defaults.bad


def _read_until_bad(text: bytes | str, dialect: type[DefinitionReader], defaults: FieldDefaults) -> Schema:
    try:
        return _read(text, dialect, defaults)
    finally:
        # Java stops at the first bad default, before it comes to what else is wrong further down.
        if defaults.bad:
            raise defaults.bad[0]


def _read(text: bytes | str, dialect: type[DefinitionReader], defaults: FieldDefaults | None) -> Schema:
    decoded = decode(text)
    try:
        json = read(decoded)
    except TrailingText as trailing:
        dialect(decoded, trailing.value, defaults).read()
        raise
    return dialect(decoded, json, defaults).read()


_DIALECTS: Final[Mapping[Release, type[DefinitionReader]]] = {
    Release.R4_0: Avro111,
    Release.R4_2: Avro1120,
    Release.R5_0: Avro1122,
}
