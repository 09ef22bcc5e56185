"""Find the fields of JSON messages that a producer writes by other names than the definition has.

A JavaBean's getter, or an annotation such as Jackson's `@JsonProperty`, gives a value another name in the JSON than in the definition
that the class registers. The field is then null to every reader, without an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from .avro_schema import ArrayType, MapType, RecordType, Schema, UnionType, parse
from .definition import Definition, KeyValue

MAX_UNKNOWN_NAMES: Final = 100
"""The maximum number of unknown names that are kept for one record of a definition."""

_MAX_DEPTH: Final = 30
"""The maximum number of records inside each other that are looked into."""


class RecordNames(NamedTuple):
    """The names in the objects of one record of a definition.

    Attributes:
        fields: the fields of the record that an object has had.
        unknown: the names in objects that are not names of fields.
    """

    fields: set[str]
    unknown: set[str]


Names = dict[str, RecordNames]
"""The names by the path of the record: "" for the message, `lines[]` and so on."""


class AbsentFields(NamedTuple):
    """Fields that no message has, where the messages have unknown names.

    Attributes:
        path: the path of the record, or "" for the message.
        fields: the absent fields, in the order of the definition.
        unknown: the unknown names, sorted.
    """

    path: str
    fields: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def text(self) -> str:
        """The finding in one sentence."""
        fields = [f"{self.path}.{name}" if self.path else name for name in self.fields]
        unknown = [f"{self.path}.{name}" if self.path else name for name in self.unknown]
        verb = "is" if len(fields) == 1 else "are"
        return (
            f"{', '.join(fields)} {verb} absent in all messages, and read as null or rejected, while the messages have the unknown "
            f"{'name' if len(unknown) == 1 else 'names'} {', '.join(unknown)}"
        )


def get_json_schema(definition: Definition | KeyValue | None) -> Schema | None:
    """Return the schema of JSON payloads, or None for other payloads; the payload of a SEPARATED pair is its value."""
    if isinstance(definition, KeyValue):
        if definition.encoding != "SEPARATED":
            return None
        definition = definition.value
    return parse(definition.text) if definition is not None and definition.type == "JSON" else None


def collect_names(schema: Schema, payloads: Iterable[bytes | None], names: Names) -> None:
    """Add the names of payloads to `names`; payloads that are not JSON are skipped."""
    for payload in payloads:
        if payload is None:
            continue
        try:
            value = json.loads(payload)
        except (ValueError, RecursionError):
            continue
        _collect(schema, value, "", names, 0)


def _collect(schema: Schema, value: Any, path: str, names: Names, depth: int) -> None:
    match schema, value:
        case UnionType(), _:
            branches = [branch for branch in schema.branches if branch.type != "null"]
            if len(branches) == 1:
                _collect(branches[0], value, path, names, depth)
        case ArrayType(), list():
            for item in value:
                _collect(schema.items, item, f"{path}[]", names, depth)
        case MapType(), dict():
            for item in value.values():
                _collect(schema.values, item, f"{path}{{}}", names, depth)
        case RecordType(), dict() if depth < _MAX_DEPTH:
            record_names = names.setdefault(path, RecordNames(set(), set()))
            fields = {field.name: field.schema for field in schema.fields}
            for name, part in value.items():
                if name in fields:
                    record_names.fields.add(name)
                    _collect(fields[name], part, f"{path}.{name}" if path else name, names, depth + 1)
                elif len(record_names.unknown) < MAX_UNKNOWN_NAMES:
                    record_names.unknown.add(name)


def merge_names(names: Names, more: Names) -> None:
    """Add the names of other messages to `names`."""
    for path, record_names in more.items():
        merged = names.setdefault(path, RecordNames(set(), set()))
        merged.fields.update(record_names.fields)
        merged.unknown.update(record_names.unknown)


def find_absent_fields(schema: Schema, names: Names) -> list[AbsentFields]:
    """Return the fields that are in no object of a record whose objects have unknown names."""
    absent_fields: list[AbsentFields] = []
    _find(schema, "", names, absent_fields, 0)
    return absent_fields


def _find(schema: Schema, path: str, names: Names, absent_fields: list[AbsentFields], depth: int) -> None:
    match schema:
        case UnionType():
            branches = [branch for branch in schema.branches if branch.type != "null"]
            if len(branches) == 1:
                _find(branches[0], path, names, absent_fields, depth)
        case ArrayType():
            _find(schema.items, f"{path}[]", names, absent_fields, depth)
        case MapType():
            _find(schema.values, f"{path}{{}}", names, absent_fields, depth)
        case RecordType() if path in names and depth < _MAX_DEPTH:
            record_names = names[path]
            absent = tuple(field.name for field in schema.fields if field.name not in record_names.fields)
            if absent and record_names.unknown:
                absent_fields.append(AbsentFields(path, absent, tuple(sorted(record_names.unknown))))
            for field in schema.fields:
                if field.name in record_names.fields:
                    inner_path = f"{path}.{field.name}" if path else field.name
                    _find(field.schema, inner_path, names, absent_fields, depth + 1)
