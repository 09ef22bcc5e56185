"""Read the types of one file of a definition, for the digests of a history with many revisions of the file.

Most fields of a file are the same in its next revision, and in other files. So a plain field that leads to no named type is parsed
once for all of them: a revision of 18 fields takes 65 to 80 us instead of 110 us.
"""

from __future__ import annotations

import marshal
from typing import Any, Final, NamedTuple

from schemactl.formats.avro.json_text import InvalidAvro, without_comments
from schemactl.formats.avro.parser import parse_file
from schemactl.formats.avro.plain import is_plain
from schemactl.formats.avro.schema import Composition, JsonValue, Record, SpelledField, composition

_MAX_CACHED_FIELDS: Final = 16_384

_MARSHAL_VERSION: Final = 2
"""The newest version whose bytes depend only on the value."""

_UNKNOWN: Final = object()
_SEEN: Final = object()


class FileTypes(NamedTuple):
    """The types of a file.

    Attributes:
        composition: its root and named types; a type of another file is a fixed.
        missing: the full names of the types that other files define.
        is_plain: whether the file is plain (see `formats.avro.plain`).
    """

    composition: Composition
    missing: frozenset[str]
    is_plain: bool


class FileTypesReader:
    """A reader of many files, with the fields that it has read before."""

    def __init__(self) -> None:
        # By the bytes of the JSON value; None for a field that is not plain, or leads to a named type, and _SEEN for one that
        # was seen once.
        self._fields: dict[bytes, SpelledField | object | None] = {}

    def read(self, text: str, json: JsonValue) -> FileTypes:
        """Read the types of a file.

        Args:
            text: the file.
            json: its JSON value.

        Raises:
            InvalidAvro: if the newest Avro rejects the text.
        """
        has_comments = without_comments(text) != text
        if not has_comments and type(json) is dict and json.get("type") == "record":
            types = self._read_with_known_fields(text, json)
            if types:
                return types
        schema, missing = parse_file(text, json)
        return FileTypes(composition(schema), missing, not has_comments and is_plain(json, missing))

    def _read_with_known_fields(self, text: str, json: dict[str, Any]) -> FileTypes | None:
        """Read the types of a record, or return None if it is not plain: its missing types could change the meaning of the others."""
        items = json.get("fields")
        if type(items) is not list:
            return None
        known_fields = [self._find_field(item) for item in items]
        others = [item for item, field in zip(items, known_fields, strict=True) if field is None]
        rest = {**json, "fields": others}
        record, missing = parse_file(text, rest)
        if not isinstance(record, Record) or not is_plain(rest, missing):
            return None
        other_fields = iter(record.fields)
        record.fields = tuple(field or next(other_fields) for field in known_fields)
        if len({field.name for field in record.fields}) < len(items):
            return None
        return FileTypes(composition(record), missing, is_plain=True)

    def _find_field(self, item: JsonValue) -> SpelledField | None:
        """Return a plain field that leads to no named type, or None for another field, or one that is read for the first time."""
        key = marshal.dumps(item, _MARSHAL_VERSION)
        field = self._fields.get(key, _UNKNOWN)
        if field is _UNKNOWN:
            # Many fields occur once, and are parsed with their record.
            self._fields[key] = _SEEN
            if len(self._fields) > _MAX_CACHED_FIELDS:
                del self._fields[next(iter(self._fields))]
            return None
        if field is _SEEN:
            field = self._fields[key] = _parse_field(item)
        return field if isinstance(field, SpelledField) else None


def _parse_field(item: JsonValue) -> SpelledField | None:
    json = {"type": "record", "name": "Record", "namespace": "field", "fields": [item]}
    try:
        record, missing = parse_file("", json)
    except InvalidAvro:
        return None
    types = composition(record).types
    if missing or len(types) > 1 or not isinstance(record, Record) or not is_plain(json):
        return None
    [field] = record.fields
    text = types[record.full_name].text.removeprefix("record(").removesuffix(")")
    return SpelledField(field.name, field.schema, text)
