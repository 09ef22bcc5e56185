"""From an Avro schema's text to the model, refusing what Java's Schema.Parser refuses in each Pulsar release."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Lock
from typing import Final

from schemactl.formats.avro.defaults import FieldDefaults
from schemactl.formats.avro.dialects import Avro111, Avro1120, Avro1122
from schemactl.formats.avro.plain import read_plain
from schemactl.formats.avro.schema import Schema
from schemactl.formats.avro.text import MAX_DEPTH, InvalidAvro, decode, read
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
    decoded = decode(text)
    try:
        return _read_json(decoded, release, defaults)
    except RecursionError:
        if defaults:
            defaults.forget()
        with _room_for_the_deepest:
            return _read_json(decoded, release, defaults)


def _read_json(text: str, release: Release, defaults: FieldDefaults | None) -> Schema:
    json = read(text)
    if defaults is None:
        plain = read_plain(json)
        if plain:
            return plain
    dialect = Avro111 if release is Release.R4_0 else Avro1120 if release is Release.R4_2 else Avro1122
    return dialect(text, json, defaults).read()


class _Room:
    """Lets Python recurse as deep as a definition may nest. Its frames are on the heap, the limit is all there is."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._usual = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._usual = sys.getrecursionlimit()
        sys.setrecursionlimit(self._usual + FRAMES_OF_THE_DEEPEST)

    def __exit__(self, *_: object) -> None:
        sys.setrecursionlimit(self._usual)
        self._lock.release()


_room_for_the_deepest: Final = _Room()
