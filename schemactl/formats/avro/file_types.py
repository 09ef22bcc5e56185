"""Read the types of one file of a definition, for the digests of a history with many revisions of the file.

Most fields of a file are the same in its next revision, and in other files. So a plain field that leads to no named type is parsed
once for all of them, and the rest of the file once for all revisions in which only such fields change. JSON is context-free: if the
text of each field is a JSON object, and the file with a value in place of them is JSON, then the file is JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from schemactl.codec.avro_schema import blank_comments
from schemactl.core.errors import DeclarationError
from schemactl.formats.avro.json_text import InvalidAvro, check_limits, depth_of
from schemactl.formats.avro.parser import parse_file
from schemactl.formats.avro.plain import is_plain
from schemactl.formats.avro.schema import (
    PRIMITIVES,
    Composition,
    JsonValue,
    Record,
    SpelledField,
    Type,
    make_composition,
)

_MAX_CACHED_FIELDS: Final = 16_384
_MAX_CACHED_FRAMES: Final = 4_096

_MAX_NEW_FIELDS: Final = 2
"""The number of fields of a file that are parsed by themselves when they are read for the first time."""

_FEW_BRACKETS: Final = 60
"""The number of brackets up to which it is a sufficient limit of the depth."""

_HEAD: Final = re.compile(r'[ \t\r\n]*+\{[^{}\[\]]*?"fields"[ \t\r\n]*+:[ \t\r\n]*+\[[ \t\r\n]*+(?=\{)')
"""A record up to its first field."""

_BETWEEN_FIELDS: Final = re.compile(r"\}[ \t\r\n]*+,[ \t\r\n]*+\{")

_STAND_IN_NUMBER: Final = "7071067811865476"
_STAND_IN: Final = f"[{_STAND_IN_NUMBER}]"
"""The JSON value in place of known fields. A number is written in one way, so a text without these digits has no such value."""

_NAME: Final = re.compile(r'"name"[ \t\r\n]*+:[ \t\r\n]*+"([A-Za-z_][A-Za-z_0-9]*+)"')
_STAND_IN_NAME: Final = f"Record{_STAND_IN_NUMBER}"
"""The name in place of the names of all records."""

_STAND_IN_TEXT: Final = "\0"
"""The text of known fields in the composition of a frame, whose names and defaults have no control characters."""


class FileTypes(NamedTuple):
    """The types of a file.

    Attributes:
        composition: its root and named types; a type of another file is a fixed.
        missing: the full names of the types that other files define.
        depth: the nesting of the file, or more.
        is_plain: whether the file is plain (see `formats.avro.plain`).
    """

    composition: Composition
    missing: frozenset[str]
    depth: int
    is_plain: bool


class _KnownField(NamedTuple):
    """A plain field that leads to no named type: its name, its text in the composition of its record, and its number of brackets."""

    name: str
    text: str
    brackets: int


class _Frame(NamedTuple):
    """A plain record without its known fields.

    Attributes:
        types: its types, of which the record has _STAND_IN_TEXT for each group of known fields.
        full_name: the name of the record.
        names: the names of its other fields.
    """

    types: FileTypes
    full_name: str
    names: frozenset[str]


class FileTypesReader:
    """A reader of many files, with the fields that it has read before.

    Args:
        read_json: parses a JSON text.
    """

    def __init__(self, read_json: Callable[[str], JsonValue]) -> None:
        self._read_json = read_json
        # By the text inside the braces; None for a field that is not plain, or leads to a named type.
        self._fields: dict[str, _KnownField | None] = {}
        # The texts of new fields in files with many of them.
        self._seen: set[str] = set()
        # By the text; None for a file that must be parsed as a whole.
        self._frames: dict[str, _Frame | None] = {}

    def read(self, text: str) -> FileTypes:
        """Read the types of a file.

        Raises:
            InvalidAvro: if the newest Avro rejects the text.
            DeclarationError: if `read_json` rejects it.
        """
        types = self._read_with_known_fields(text)
        if types:
            return types
        json = self._read_json(text)
        schema, missing = parse_file(text, json)
        has_comments = blank_comments(text) != text
        brackets = text.count("{") + text.count("[")
        depth = brackets if brackets <= _FEW_BRACKETS else depth_of(json)
        return FileTypes(make_composition(schema), missing, depth, not has_comments and is_plain(json, missing))

    def _read_with_known_fields(self, text: str) -> FileTypes | None:
        """Read the types of a plain record with known fields, or return None if it must be parsed as a whole."""
        head = _HEAD.match(text)
        may_have_comments = "/" in text and ("//" in text or "/*" in text)
        if head is None or may_have_comments or _STAND_IN_NUMBER in text:
            return None
        start, end = head.end(), text.rfind("}", 0, text.rfind("]"))
        if end <= start:
            return None
        separator = _BETWEEN_FIELDS.search(text, start)
        bodies = text[start + 1 : end].split(separator[0]) if separator else [text[start + 1 : end]]
        fields = self._find_fields(bodies)
        known_fields = [field for field in fields if field]
        if not known_fields:
            return None
        check_limits(text)

        # The record without its known fields. If it has no others, which could refer to it, one frame serves records of all names.
        before, after = text[:start], text[end + 1 :]
        name = ""
        if len(known_fields) == len(fields):
            groups = [known_fields]
            frame_text = f"{before}{_STAND_IN}{after}"
            if (match := _NAME.search(before)) and match[1] not in PRIMITIVES:
                name = match[1]
                frame_text = f"{before[: match.start(1)]}{_STAND_IN_NAME}{before[match.end(1) :]}{_STAND_IN}{after}"
        else:
            groups = []
            parts: list[str] = []
            is_in_group = False
            for body, field in zip(bodies, fields, strict=True):
                if field is None:
                    parts.append(f"{{{body}}}")
                elif is_in_group:
                    groups[-1].append(field)
                else:
                    groups.append([field])
                    parts.append(_STAND_IN)
                is_in_group = field is not None
            frame_text = f"{before}{','.join(parts)}{after}"
        if frame_text in self._frames:
            frame = self._frames[frame_text]
        else:
            frame = self._frames[frame_text] = self._read_frame(frame_text, len(groups))
            if len(self._frames) > _MAX_CACHED_FRAMES:
                del self._frames[next(iter(self._frames))]
        if frame is None:
            return None

        names = {*frame.names, *[field.name for field in known_fields]}
        if len(names) < len(frame.names) + len(known_fields):
            return None
        root, types = frame.types.composition
        record = types[frame.full_name]
        record_text = record.text
        for group in groups:
            record_text = record_text.replace(_STAND_IN_TEXT, ",".join([field.text for field in group]), 1)
        full_name = frame.full_name
        if name:
            full_name = full_name.replace(_STAND_IN_NAME, name)
            root, types = Type(f"<{full_name}>", frozenset([full_name])), {}
        types = {**types, full_name: Type(record_text, record.uses)}
        depth = frame.types.depth + max([field.brackets for field in known_fields])
        return FileTypes(Composition(root, types), frame.types.missing, depth, is_plain=True)

    def _find_fields(self, bodies: list[str]) -> list[_KnownField | None]:
        """Return the field of each text inside the braces, or None for a field that is not plain, leads to a named type, or is new."""
        known_fields = self._fields
        fields = [*map(known_fields.get, bodies)]
        new_bodies = [body for body in bodies if body not in known_fields] if None in fields else []
        if not new_bodies:
            return fields
        if len(new_bodies) > _MAX_NEW_FIELDS:
            # Many fields occur once, and are parsed with their record.
            seen_bodies = [body for body in new_bodies if body in self._seen]
            if len(self._seen) > _MAX_CACHED_FIELDS:
                self._seen.clear()
            self._seen.update(new_bodies)
            new_bodies = seen_bodies
        for body in new_bodies:
            known_fields[body] = self._parse_field(f"{{{body}}}")
            if len(known_fields) > _MAX_CACHED_FIELDS:
                del known_fields[next(iter(known_fields))]
        return [*map(known_fields.get, bodies)]

    def _parse_field(self, text: str) -> _KnownField | None:
        try:
            item = self._read_json(text)
            json = {"type": "record", "name": "Record", "namespace": "field", "fields": [item]}
            record, missing = parse_file("", json)
        except (DeclarationError, InvalidAvro):
            return None
        types = make_composition(record).types
        if missing or len(types) > 1 or not isinstance(record, Record) or not is_plain(json):
            return None
        spelled = types[record.full_name].text.removeprefix("record(").removesuffix(")")
        return _KnownField(record.fields[0].name, spelled, text.count("{") + text.count("["))

    def _read_frame(self, text: str, group_count: int) -> _Frame | None:
        """Parse a record with stand-ins for its known fields, or return None if it is not plain: its missing types could change the others."""
        try:
            json = self._read_json(text)
            items = json.get("fields")
            if json.get("type") != "record" or type(items) is not list:
                return None
            others = [item for item in items if not _is_stand_in(item)]
            if len(items) - len(others) != group_count:
                return None
            rest = {**json, "fields": others}
            record, missing = parse_file(text, rest)
        except (DeclarationError, InvalidAvro):
            return None
        if not isinstance(record, Record) or not is_plain(rest, missing):
            return None
        other_fields = iter(record.fields)
        group = SpelledField("", PRIMITIVES["null"], _STAND_IN_TEXT)
        names = frozenset(field.name for field in record.fields)
        record.fields = tuple(group if _is_stand_in(item) else next(other_fields) for item in items)
        types = FileTypes(make_composition(record), missing, text.count("{") + text.count("["), is_plain=True)
        return _Frame(types, record.full_name, names)


def _is_stand_in(item: JsonValue) -> bool:
    return type(item) is list and len(item) == 1 and type(item[0]) is int and item[0] == int(_STAND_IN_NUMBER)
