"""Reads the parsed JSON of a definition into the model, and refuses what is not a schema.

Follows org.apache.avro.Schema.parse. How types are defined and found by name differs between versions of Avro: `dialects`
has that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from schemactl.formats.avro.defaults import FieldDefaults, default_of
from schemactl.formats.avro.names import Path, is_plain_name
from schemactl.formats.avro.parts import (
    Json,
    bad_name,
    finish_field,
    finish_named,
    invalid,
    list_of,
    name_of,
    order_of,
    primitive_of,
    properties_of,
    size_of,
    symbols_of,
)
from schemactl.formats.avro.references import Holder, Unresolved, check_branches
from schemactl.formats.avro.schema import (
    NO_PROPERTIES,
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    JsonValue,
    Map,
    NamedSchema,
    Record,
    Schema,
    Union,
)
from schemactl.formats.avro.text import InvalidAvro, shown


class DefinitionReader(ABC):
    """Reads one definition, by recursion: texts nest 1,000 levels at most (`parse` makes room for them)."""

    def __init__(self, text: str, json: JsonValue, defaults: FieldDefaults | None) -> None:
        """`json` is what the text holds. `defaults` judges the defaults of fields; without it they may be anything."""
        self._text = text
        self._json = json
        self._defaults = defaults
        self._types: dict[str, NamedSchema] = {}
        self._open: set[int] = set()
        """The identities of the records whose fields are being read."""
        self._holders: list[Holder] = []
        """What holds a reference that is not resolved yet."""

    def read(self) -> Schema:
        """The schema that the text defines; references may be unresolved.

        Raises:
            InvalidAvro: it defines none.
        """
        return self._schema(self._json, None, ())

    # What dialects differ in.

    @abstractmethod
    def _is_name(self, name: str) -> bool:
        """Whether `name` may name a type, a field or a symbol. Plain names may always."""

    @abstractmethod
    def _reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        """The type called `name` where `namespace` is in force."""

    @abstractmethod
    def _wrapped_reference(self, name: str, namespace: str | None, path: Path) -> Schema:
        """The type that `{"type": name}` refers to."""

    known_inside: ClassVar[bool]
    """Whether a type is known from its name on, without fields, properties and aliases; else when it is complete."""

    @abstractmethod
    def _define(self, named: NamedSchema, path: Path) -> None:
        """Makes a type known by its name."""

    @abstractmethod
    def _check_properties(self, properties: Mapping[str, JsonValue], path: Path) -> None:
        """Refuses properties of a record, array or map that the dialect cannot keep."""

    # One method for each kind of schema.

    def _schema(self, json: JsonValue, namespace: str | None, path: Path) -> Schema:
        if type(json) is str:
            return PRIMITIVES.get(json) or self._reference(json, namespace, path)
        if type(json) is list:
            return _union_of_primitives(json) or self._union(json, namespace, path)
        if type(json) is not dict:
            expected = "a type's name, an object or a union's array"
            raise invalid(f"{shown(json)} is not a schema; expected {expected}", path)
        kind = json.get("type")
        if type(kind) is not str:
            is_nested = isinstance(kind, dict | list)
            fix = "put the inner schema in place of the object around it" if is_nested else ""
            raise invalid(f'"type" is {shown(kind)}; expected the name of a type', path, "type", fix=fix)
        if kind in PRIMITIVES:
            return primitive_of(json)
        read_kind = self._kinds.get(kind)
        if read_kind:
            return read_kind(self, json, namespace, path)
        return self._wrapped_reference(kind, namespace, path)

    def _record(self, json: Json, namespace: str | None, path: Path) -> Schema:
        full_name, name, space = name_of(json, namespace, self._is_name, path)
        record = Record(full_name, name, space)
        record.is_error = json["type"] == "error"
        self._open.add(id(record))
        if self.known_inside:
            self._define(record, path)
        place = (path, "fields")
        fields: dict[str, Field] = {}
        repeated: Path | None = None
        for index, item in enumerate(list_of(json, "fields", path)):
            try:
                name, kind = item["name"], item["type"]
            except (KeyError, TypeError):
                raise _bad_field(item, index, record, place) from None
            schema = (
                PRIMITIVES[kind]  # as in most fields
                if type(kind) is str and kind in PRIMITIVES
                else self._schema(kind, space, ((place, index), "type"))
            )
            if type(name) is not str or not (is_plain_name(name) or self._is_name(name)):
                # Java looks at these before the name.
                order_of(item, (place, index))
                default_of(schema, item, (place, index))
                raise _bad_field(item, index, record, place)
            if name in fields and repeated is None:  # Java says so when it has read all fields
                repeated = (place, index)
            fields[name] = field = Field(name, schema)
            if type(schema) is Unresolved:
                self._holders.append(field)
            if len(item) > 2:
                self._finish_field(field, item, full_name, (place, index))
        if repeated:
            what = f"record {full_name} has two fields {json['fields'][repeated[1]]['name']}"
            raise invalid(what, repeated, exception="AvroRuntimeException")
        record.fields = tuple(fields.values())
        record.fields_by_name = fields
        self._open.discard(id(record))
        self._finish(record, json, path)
        return record

    def _finish_field(self, field: Field, json: Json, record: str, path: Path) -> None:
        known = 2
        if "default" in json:
            known += 1
            if "order" in json:
                # Java looks at it before the default.
                order_of(json, path)
            field.default = default_of(field.schema, json, path)
            if self._defaults:
                self._defaults.check(field, record, path, self._open)
        if len(json) > known:
            finish_field(field, json, path)

    def _enum(self, json: Json, namespace: str | None, path: Path) -> Enum:
        full_name, name, space = name_of(json, namespace, self._is_name, path)
        symbols, default = symbols_of(json, full_name, self._is_name, path)
        enum = Enum(full_name, name, space, symbols, default)
        if self.known_inside:
            self._define(enum, path)
        self._finish(enum, json, path)
        return enum

    def _fixed(self, json: Json, namespace: str | None, path: Path) -> Fixed:
        full_name, name, space = name_of(json, namespace, self._is_name, path)
        fixed = Fixed(full_name, name, space, size_of(json, full_name, path))
        if self.known_inside:
            self._define(fixed, path)
        self._finish(fixed, json, path)
        return fixed

    def _array(self, json: Json, namespace: str | None, path: Path) -> Schema:
        if "items" not in json:
            raise invalid('an array without "items"; expected the schema of its items', path)
        return self._holder(Array, self._schema(json["items"], namespace, (path, "items")), json, path)

    def _map(self, json: Json, namespace: str | None, path: Path) -> Schema:
        if "values" not in json:
            raise invalid('a map without "values"; expected the schema of its values', path)
        return self._holder(Map, self._schema(json["values"], namespace, (path, "values")), json, path)

    def _holder(self, kind: type[Array | Map], inner: Schema, json: Json, path: Path) -> Array | Map:
        properties = properties_of(json) if len(json) > 2 else NO_PROPERTIES
        if properties:
            self._check_properties(properties, path)
        holder = kind(inner, properties)
        if type(inner) is Unresolved:
            self._holders.append(holder)
        return holder

    def _union(self, json: list[JsonValue], namespace: str | None, path: Path) -> Schema:
        branches = [
            PRIMITIVES[item]
            if type(item) is str and item in PRIMITIVES
            else self._schema(item, namespace, (path, index))
            for index, item in enumerate(json)
        ]
        union = Union(tuple(branches))
        check_branches(union, path)
        if Unresolved in map(type, branches):
            self._holders.append(union)
        return union

    _kinds: ClassVar[Mapping[str, Callable[[DefinitionReader, Json, str | None, Path], Schema]]] = {
        "record": _record,
        "error": _record,
        "enum": _enum,
        "fixed": _fixed,
        "array": _array,
        "map": _map,
    }

    # What named types share.

    def _finish(self, named: NamedSchema, json: Json, path: Path) -> None:
        # Name, type, and fields, symbols or size are there by now.
        if len(json) > (4 if "namespace" in json else 3):
            finish_named(named, json, self._is_name, self._check_properties, path)
        if not self.known_inside:
            self._define(named, path)


def _union_of_primitives(json: list[JsonValue]) -> Union | None:
    """The union, if `json` is no more than names of primitives: as most unions are, with null among them."""
    try:
        union = Union(tuple(map(PRIMITIVES.__getitem__, json)))
    except (KeyError, TypeError):
        return None
    return union if len(set(json)) == len(json) else None


def _bad_field(item: JsonValue, index: int, record: Record, path: Path) -> InvalidAvro:
    """The refusal of a field without name or type, or with what is no name."""
    name = item.get("name") if isinstance(item, dict) else None
    place = (path, index)
    if not isinstance(name, str):
        return invalid(f'field {index} of record {record.full_name} has no "name"', place)
    if "type" not in item:
        return invalid(f'field {name} of record {record.full_name} has no "type"', place)
    return bad_name(name, "the field name", (place, "name"))
