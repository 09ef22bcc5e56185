"""From an Avro schema's text to the model, refusing what Java's Schema.Parser refuses in each Pulsar release."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.formats.avro.defaults import FieldDefaults
from schemactl.formats.avro.dialects import Avro111, Avro1120, Avro1122
from schemactl.formats.avro.schema import Schema
from schemactl.formats.avro.text import InvalidAvro, decode
from schemactl.model import Release


def parse(text: bytes | str, release: Release, *, validate_defaults: bool = False) -> Schema:
    """The schema in `text`, as the Avro inside that Pulsar release reads it.

    With `validate_defaults` a default must be a value of its field's type, as where the broker looks for an upload among
    the versions it has; without, it may be anything, as where the broker judges compatibility.

    Raises:
        InvalidAvro: that Avro refuses the text; `pointer` says where.
    """
    if not validate_defaults:
        return _read(text, release, None)
    defaults = FieldDefaults(release)
    try:
        return _read(text, release, defaults)
    finally:
        # Java stops at the first bad default, before it comes to what else is wrong further down.
        if defaults.bad:
            raise defaults.bad[0]


def problems(text: bytes | str, release: Release) -> Iterator[InvalidAvro]:
    """Everything for which `parse` refuses `text` with its defaults validated: every bad default, and one error else."""
    defaults = FieldDefaults(release)
    try:
        _read(text, release, defaults)
    except InvalidAvro as problem:
        yield problem
    yield from defaults.bad


def _read(text: bytes | str, release: Release, defaults: FieldDefaults | None) -> Schema:
    dialect = Avro111 if release is Release.R4_0 else Avro1120 if release is Release.R4_2 else Avro1122
    return dialect(decode(text), defaults).read()
