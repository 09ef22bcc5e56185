"""From an Avro schema's text to the model, refusing what Java's Schema.Parser refuses in each Pulsar release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from schemactl.formats.avro.defaults import FieldDefaults
from schemactl.formats.avro.definition import DefinitionReader
from schemactl.formats.avro.dialects import Avro111, Avro1120, Avro1122, AvroOfSpark40, AvroOfSpark41
from schemactl.formats.avro.plain import read_plain
from schemactl.formats.avro.recursion import room
from schemactl.formats.avro.schema import Schema
from schemactl.formats.avro.text import MAX_DEPTH, InvalidAvro, TrailingText, decode, read
from schemactl.model import Release

FRAMES_OF_THE_DEEPEST: Final = 4 * MAX_DEPTH
"""So many calls inside one another it takes to read what nests MAX_DEPTH levels, with some to spare."""


def parse(text: bytes | str, release: Release, *, validate_defaults: bool = False) -> Schema:
    """The schema in `text`, as the Avro inside that Pulsar release reads it.

    With `validate_defaults` a default must be a value of its field's type, as where the broker looks for an upload among
    the versions it has; without, it may be anything, as where the broker judges compatibility.

    Raises:
        InvalidAvro: that Avro refuses the text; `pointer` says where.
    """
    if not validate_defaults:
        decoded = decode(text)
        try:
            return _read(decoded, release)
        except RecursionError:
            with room(FRAMES_OF_THE_DEEPEST):
                return _read(decoded, release)
    return _read_until_bad(text, _DIALECTS[release], FieldDefaults(release))


def parse_for_spark(text: bytes | str, spark: tuple[int, int]) -> Schema:
    """The schema in `text`, as the Avro inside that release of Spark reads it; a default must be a value of its field's type.

    Raises:
        InvalidAvro: that Avro refuses the text; `pointer` says where.
    """
    dialect = AvroOfSpark40 if spark < (4, 1) else AvroOfSpark41
    return _read_until_bad(text, dialect, FieldDefaults(Release.R5_0))


def problems(text: bytes | str, release: Release) -> Iterator[InvalidAvro]:
    """Everything for which `parse` refuses `text` with its defaults validated: every bad default, and one error else."""
    defaults = FieldDefaults(release)
    try:
        _read_strictly(text, _DIALECTS[release], defaults)
    except InvalidAvro as problem:
        yield problem
    yield from defaults.bad


def _read_until_bad(text: bytes | str, dialect: type[DefinitionReader], defaults: FieldDefaults) -> Schema:
    try:
        return _read_strictly(text, dialect, defaults)
    finally:
        # Java stops at the first bad default, before it comes to what else is wrong further down.
        if defaults.bad:
            raise defaults.bad[0]


def _read_strictly(text: bytes | str, dialect: type[DefinitionReader], defaults: FieldDefaults) -> Schema:
    decoded = decode(text)
    try:
        return _read_in_dialect(decoded, dialect, defaults)
    except RecursionError:
        defaults.forget()
        with room(FRAMES_OF_THE_DEEPEST):
            return _read_in_dialect(decoded, dialect, defaults)


def _read(text: str, release: Release) -> Schema:
    try:
        plain = read_plain(read(text))
    except TrailingText:
        plain = None
    return plain or _read_in_dialect(text, _DIALECTS[release], None)


def _read_in_dialect(text: str, dialect: type[DefinitionReader], defaults: FieldDefaults | None) -> Schema:
    try:
        json = read(text)
    except TrailingText as trailing:
        dialect(text, trailing.value, defaults).read()
        raise
    return dialect(text, json, defaults).read()


_DIALECTS: Final[Mapping[Release, type[DefinitionReader]]] = {
    Release.R4_0: Avro111,
    Release.R4_2: Avro1120,
    Release.R5_0: Avro1122,
}
