"""Extract the schema of a user's class, with its defaults, and load the class.

Only `load_class` and `load_module` run a user's code, and they are not used to read declarations.
"""

from __future__ import annotations

import importlib
import inspect
import json
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self, TypeVar, get_args, get_origin
from uuid import UUID

from schemactl import formats
from schemactl.codec.record_classes import (
    AVRO,
    NO_DEFAULT,
    ONE_NAME,
    ORDERED,
    SINGLE,
    ClassField,
    Hint,
    UnclearField,
    find_member,
    get_symbol,
    is_fixed,
    is_record,
    list_fields,
    read_annotation,
)
from schemactl.core.errors import SchemactlError, UsageError, did_you_mean
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.core.terminal import escape
from schemactl.formats import protobuf
from schemactl.formats.avro.go_definitions import find_changes, find_default_changes

Json = Any

Role = Literal["consumer", "producer"]
"""Whether a class receives or sends messages."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_PRIMITIVES: Final[Mapping[Any, str]] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null",
    None: "null",
}

_JAVA_PRIMITIVES: Final = (bool, int, float)
"""The types that are primitive in Java, and so never null."""

_FIXES: Final[Mapping[Any, str]] = {
    Any: "name the type",
    object: "name the type",
    set: "write list[...]: Avro has no sets",
    frozenset: "write list[...]: Avro has no sets",
    Sequence: "write list[...]",
    Mapping: "write dict[str, ...]",
    list: "name the type of the items: list[str]",
    tuple: "write list[...], or tuple[X, ...] of one type",
    dict: "name the types of keys and values: dict[str, int]",
    complex: "write a class with two fields",
    timedelta: "write a number with its unit in the name: timeout_ms: int",
    Self: "write the name of the class",
    TypeVar: "write a class for it, with the type itself",
    Flag: "write int: flags are combined, and an enum is one of its symbols",
}


@dataclass(frozen=True, slots=True)
class JavaOptions:
    """The options of Java's `SchemaDefinition` that change a definition.

    Attributes:
        always_allow_null: `withAlwaysAllowNull`: objects of Java may be null, and null is their default.
        jsr310: `withJSR310ConversionEnabled`: a datetime is `timestamp-millis`, and a time, as always in Java, `time-millis`.
    """

    always_allow_null: bool = False
    jsr310: bool = False


_NO_OPTIONS: Final = JavaOptions()


def extract(
    kind: type,
    type_: SchemaType | None = None,
    java: JavaOptions = _NO_OPTIONS,
    *,
    release: Release,
    role: Role | None = None,
    is_portable: bool = True,
    on_note: Callable[[str], None] | None = None,
) -> SchemaInfo:
    """Return the schema of a class, as Pulsar's Python client registers it if the client supports the class.

    Go's client formats a definition before it registers it, which changes some definitions. The definition of an annotated class is
    written so that Go's client does not change it: whole numbers without a point, no scale of 0, and no default that the client
    would write as another value.

    Args:
        kind: a dataclass, a pydantic model, an attrs class, a `pulsar.schema.Record`, or the class of a protobuf message.
        type_: AVRO, JSON or PROTOBUF_NATIVE; by default the first possible one for the class.
        java: the options of Java's `SchemaDefinition`; only for classes with annotations.
        release: the Pulsar release whose broker has to accept the definition.
        role: whether the class reads or writes messages, by default both. A consumer does not read computed fields, and may read a field by
            another name than it writes it.
        is_portable: whether the definition is written as Go's client formats it.
        on_note: takes a sentence about each default that is omitted for this.

    Raises:
        SchemactlError: if the class is of another kind, or has a part that Avro cannot express.
    """
    descriptor = getattr(kind, "DESCRIPTOR", None)
    is_message = hasattr(descriptor, "full_name") and hasattr(descriptor, "file") and hasattr(kind, "SerializeToString")
    if is_message:
        _require_type(kind, "a protobuf message", type_, SchemaType.PROTOBUF_NATIVE)
        return SchemaInfo(SchemaType.PROTOBUF_NATIVE, protobuf.load("rendering").render_class(kind))
    if is_client_record(kind):
        _require_type(kind, "a pulsar.schema.Record", type_, SchemaType.AVRO, SchemaType.JSON)
        if java != _NO_OPTIONS:
            raise SchemactlError(
                f"{get_class_name(kind)} is a pulsar.schema.Record, whose `required` decides which fields may be null",
                fix="leave out the options of Java's SchemaDefinition",
            )
        record: Any = kind
        try:
            schema = record.schema()
        # The client raises exceptions of any type for an invalid class.
        except Exception as error:  # noqa: BLE001
            raise SchemactlError(f"{get_class_name(kind)}: Pulsar's client rejects the class: {error}") from None
        # The same bytes as from AvroSchema and JsonSchema of the client.
        text = json.dumps(schema, indent=True)
    elif is_record(kind):
        _require_type(kind, "a class with annotations", type_, SchemaType.AVRO, SchemaType.JSON)
        from schemactl.declare.json_formatter import format_json

        definition = _Definer(java, role, is_portable=is_portable, on_note=on_note).define_record(kind, "")
        if is_portable and on_note:
            # Attributes and defaults that the class itself declares do not change.
            for change in find_changes(definition):
                place = f"{get_class_name(kind)} at /{'/'.join(change.parts)}"
                on_note(f"{place}: Go's client registers another definition, because {change.message}. {change.fix}")
        # The bytes of a default are often not text, so control characters are escaped.
        text = format_json(escape(json.dumps(definition, ensure_ascii=False), r"[\x7f-\xa0\ud800-\udfff]"))
    else:
        raise SchemactlError(
            f"cannot extract a definition from {get_class_name(kind)}",
            fix="name a dataclass, a pydantic model, an attrs class, a pulsar.schema.Record or the class of a protobuf message",
        )
    info = SchemaInfo(type_ or SchemaType.AVRO, text.encode())
    for problem in formats.find_problems(info, release):
        location = f" at {problem.pointer}" if problem.pointer else ""
        raise SchemactlError(
            f"the definition of {get_class_name(kind)} is not valid{location}: {problem.message}",
            fix=problem.fix or "change the annotation or the default in the class",
        )
    return info


class JsonDifference(NamedTuple):
    """A field of a `pulsar.schema.Record` that the client's JsonSchema writes differently from other clients.

    Attributes:
        field: the path of the field.
        roles: the roles for which values are wrong.
        text: the difference, in a sentence.
        fix: the way out.
    """

    field: str
    roles: tuple[Role, ...]
    text: str
    fix: str


def find_json_differences(kind: type) -> Iterator[JsonDifference]:
    """Yield the fields of a `pulsar.schema.Record` that `JsonSchema` of Python's client writes as different JSON than other clients."""
    if is_client_record(kind):
        yield from _find_json_differences(kind, kind.__name__, frozenset())


def _find_json_differences(kind: Any, path: str, outer_kinds: frozenset[Any]) -> Iterator[JsonDifference]:
    for name, field in kind._fields.items():
        part, place = field, f"{path}.{name}"
        # Arrays and maps have one or the other attribute.
        while (inner := getattr(part, "array_type", None) or getattr(part, "value_type", None)) is not None:
            place += "[]" if hasattr(part, "array_type") else "{}"
            part = inner
        part_kind = part if isinstance(part, type) else type(part)
        if is_client_record(part_kind):
            if part_kind not in outer_kinds:
                yield from _find_json_differences(part_kind, place, outer_kinds | {kind})
            continue
        client_names = {base.__name__ for base in part_kind.__mro__ if base.__module__ == "pulsar.schema.definition"}
        if "Bytes" in client_names:
            yield JsonDifference(
                place,
                ("consumer", "producer"),
                f"{place} is bytes, which Python's JsonSchema writes and reads as text, all other clients as base64.",
                "make it a String, or send and receive with `pulsar_schema` of the generated package, or with AvroSchema on an AVRO topic",
            )
        if "CustomEnum" in client_names:
            renamed = [member for member in part.enum_type if member.value != member.name]
            if renamed:
                yield JsonDifference(
                    place,
                    ("producer",),
                    f"{place} is an enum, whose value Python's JsonSchema writes, {renamed[0].value!r} for {renamed[0].name}; "
                    "all other clients write and read the name.",
                    f'make the values the names, {renamed[0].name} = "{renamed[0].name}", or send with `pulsar_schema` of the generated package',
                )


def _require_type(kind: type, description: str, schema_type: SchemaType | None, *possible: SchemaType) -> None:
    """Raise SchemactlError if the class, which `description` describes, cannot have the schema type."""
    if schema_type and schema_type not in possible:
        raise SchemactlError(
            f"{get_class_name(kind)} is {description}, which cannot have a schema of type {schema_type.name}",
            fix=f"--type {' or '.join(possible_type.name for possible_type in possible)}",
        )


def is_client_record(kind: type) -> bool:
    """Return whether a class is a `pulsar.schema.Record`, which Pulsar's Python client reads and writes itself."""
    return any(base.__module__ == "pulsar.schema.definition" and base.__name__ == "Record" for base in kind.__mro__)


def get_class_name(kind: type) -> str:
    """Return the full name of a class, with its module."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _describe(kind: Any) -> str:
    """Return a class or another annotation as messages show it."""
    return (
        get_class_name(kind)
        if isinstance(kind, type) and kind.__module__ != "builtins"
        else getattr(kind, "__name__", str(kind))
    )


# Avro definitions of annotated classes: docs/how-to/extract.md has the table of types


class _Definer:
    """Makes one definition, in which a named type is defined at its first use and referenced later."""

    def __init__(
        self, java: JavaOptions, role: Role | None, *, is_portable: bool, on_note: Callable[[str], None] | None
    ) -> None:
        self._java = java
        self._role = role
        self._is_portable = is_portable
        self._on_note = on_note
        self._owners: dict[str, Any] = {}
        self._definitions: dict[str, Json] = {}

    def define_record(self, kind: type, namespace: str) -> Json:
        """Return the definition of a class as JSON.

        Args:
            kind: the class.
            namespace: the namespace of types without a namespace.

        Raises:
            SchemactlError: if the class has something that Avro does not have; the message names the class and the field.
        """
        node, own_namespace, is_reference = self._register(
            kind, {"type": "record", "name": kind.__name__, **_get_attributes(kind)}, namespace
        )
        if is_reference:
            return node
        node["fields"] = []
        for field in _list_fields(kind):
            place = f"{get_class_name(kind)}.{field.attribute}"
            if field.read_as and self._role is None:
                raise SchemactlError(
                    f"{place} is written as {field.name} and read as {field.read_as}, but a definition has only one name for a field",
                    fix=ONE_NAME,
                )
            if self._role != "consumer":
                node["fields"].append(self._define_field(field, own_namespace, place))
            elif not field.is_computed:
                read_field = replace(field, name=field.read_as or field.name)
                node["fields"].append(self._define_field(read_field, own_namespace, place))
        return node

    def _define_field(self, field: ClassField, namespace: str, place: str) -> Json:
        hint = self._read_hint(field.annotation, place)
        default, has_default = field.default, field.default is not NO_DEFAULT
        first_member = _find_member_of_default(hint, field.default, place) if has_default else None
        type_ = self._define_type(hint, namespace, place, first_member=first_member)
        is_nullable = None in hint.members or type(None) in hint.members
        is_object = hint.type not in _JAVA_PRIMITIVES and not hint.members and hint.verbatim is None
        is_nullable_object = self._java.always_allow_null and is_object
        if is_nullable_object:
            type_ = [type_, "null"] if has_default and default is not None else ["null", type_]
        node: dict[str, Json] = {"name": field.name, "type": type_}
        doc = field.doc if field.doc is not None else hint.doc or None
        if doc is not None:
            node["doc"] = doc
        if "default" in field.avro:
            node["default"] = field.avro["default"]
        elif has_default:
            json_default = _DefaultWriter(self._definitions, place).to_json(default, type_)
            if self._is_portable:
                json_default = _write_whole_numbers(json_default)
                changes = find_default_changes(json_default, type_, namespace, self._definitions)
                if change := next(changes, None):
                    json_default = NO_DEFAULT
                    if self._on_note:
                        self._on_note(
                            f"{place}: its default is omitted, because Go's client would register another default: {change.message}. "
                            'To keep it, write it in the metadata of the field: {"avro": {"default": ...}}'
                        )
            if json_default is not NO_DEFAULT:
                node["default"] = json_default
        elif (is_nullable and ORDERED not in hint.markers) or is_nullable_object:
            node["default"] = None
        return {**node, **field.avro}

    def _read_hint(self, annotation: Any, place: str) -> Hint:
        try:
            hint = read_annotation(annotation)
        except UnclearField as error:
            raise SchemactlError(f"{place}: {error.message}", fix=error.fix) from None
        if hint.attributes and len(hint.members) - (type(None) in hint.members) > 1:
            raise SchemactlError(
                f"{place}: Annotated describes the whole union, but applies to one of its types",
                fix='write it with that type: Annotated[int, "int"] | str',
            )
        if hint.attributes and is_record(hint.type):
            raise SchemactlError(
                f"{place}: the attributes that Annotated gives {_describe(hint.type)} belong in the class itself",
                fix='write it there: __avro__ = {"...": ...}',
            )
        return hint

    def _define_type(self, hint: Hint, namespace: str, place: str, *, first_member: int | None = None) -> Json:
        """Return the type of an annotation; `first_member` is the index of the member that is first in a union."""
        if hint.verbatim is not None:
            return hint.verbatim
        if hint.members:
            members = [*hint.members]
            if ORDERED not in hint.markers:
                null_member = members.index(type(None)) if type(None) in members else None
                first = first_member if first_member is not None else null_member
                if first is not None:
                    members.insert(0, members.pop(first))
            return [self._define_type(self._read_hint(member, place), namespace, place) for member in members]
        type_ = self._define_single_type(hint, namespace, place)
        return [type_] if SINGLE in hint.markers else type_

    def _define_single_type(self, hint: Hint, namespace: str, place: str) -> Json:
        kind, arguments = get_origin(hint.type) or hint.type, get_args(hint.type)
        attributes = dict(hint.attributes)
        if is_record(kind):
            return self.define_record(kind, namespace)
        if isinstance(kind, type) and issubclass(kind, Enum) and not issubclass(kind, Flag):
            symbols = [get_symbol(member) for member in kind]
            node = {"type": "enum", "name": kind.__name__, **_get_attributes(kind), "symbols": symbols}
            return self._register(kind, node | attributes, namespace)[0]
        if is_fixed(kind):
            node = {"type": "fixed", "name": kind.__name__, **_get_attributes(kind)}
            return self._register(kind, node | attributes, namespace)[0]
        if kind is Literal:
            return self._define_literal(arguments, attributes, namespace, place)
        if kind is list or (kind is tuple and arguments[1:] == (...,)):
            if not arguments:
                raise _make_unsupported_error(kind, place)
            items = self._define_type(self._read_hint(arguments[0], place), namespace, place)
            return {"type": "array", "items": items, **attributes}
        if kind is dict and arguments:
            if arguments[0] is not str:
                raise SchemactlError(
                    f"{place}: the keys of a map are strings in Avro, not {_describe(arguments[0])}",
                    fix="write dict[str, ...]",
                )
            values = self._define_type(self._read_hint(arguments[1], place), namespace, place)
            return {"type": "map", "values": values, **attributes}
        node = self._define_primitive(kind, attributes, place)
        if node.get("type") == "fixed" or "name" in node:
            return self._register(str(sorted(node.items(), key=str)), node, namespace)[0]
        return node["type"] if node.keys() == {"type"} else node

    def _define_primitive(self, kind: Any, attributes: dict[str, Json], place: str) -> dict[str, Json]:
        """Return the primitive or logical type of a Python type without parts, or the type in `attributes`."""
        if not isinstance(kind, type):
            raise _make_unsupported_error(kind, place)
        if kind in _PRIMITIVES:
            return {"type": _PRIMITIVES[kind], **attributes}
        if kind is Decimal:
            node = {"type": "bytes", "logicalType": "decimal", **attributes}
            if "precision" not in node:
                raise SchemactlError(
                    f"{place}: Avro's decimals have a fixed number of digits, and Decimal alone does not say how many",
                    fix='write Annotated[Decimal, "decimal(12, 2)"], with the number of all digits and of the decimal places',
                )
            if self._is_portable and node.get("scale") == 0:
                del node["scale"]
            return node
        unit = "millis" if self._java.jsr310 else "micros"
        logical_types = {
            datetime: ("long", f"timestamp-{unit}"),
            date: ("int", "date"),
            time: ("int" if self._java.jsr310 else "long", f"time-{unit}"),
            UUID: ("string", "uuid"),
        }
        if kind in logical_types:
            type_, logical_type = logical_types[kind]
            return {"type": type_, "logicalType": logical_type, **attributes}
        if "type" in attributes:
            return attributes
        raise _make_unsupported_error(kind, place)

    def _define_literal(self, values: tuple[Any, ...], attributes: dict[str, Json], namespace: str, place: str) -> Json:
        if not all(isinstance(value, str) for value in values):
            texts = [value for value in values if isinstance(value, str) and not isinstance(value, Enum)]
            other_types = dict.fromkeys(type(value) for value in values if value not in texts)
            types = [str(Literal[(*texts,)]).removeprefix("typing.")] if texts else []
            types += ["None" if type_ is type(None) else type_.__name__ for type_ in other_types]
            raise SchemactlError(
                f"{place}: a Literal becomes an enum only if all its values are strings",
                fix=f"write {' | '.join(types)}",
            )
        class_name, _, attribute = place.rpartition(".")
        words = attribute.split("_")
        name = class_name.rpartition(".")[2] + "".join(word[:1].upper() + word[1:] for word in words)
        node = {"type": "enum", "name": name, "symbols": [*values], **attributes}
        return self._register(values, node, namespace)[0]

    def _register(self, owner: Any, node: dict[str, Json], namespace: str) -> tuple[Json, str, bool]:
        """Return a named type, its namespace, and whether it is only a name, since the type was defined before.

        Args:
            owner: the Python object that the type comes from, which distinguishes types of the same name.
            node: its definition.
            namespace: the namespace of the enclosing type.
        """
        own_namespace = node.get("namespace", namespace)
        full_name = f"{own_namespace}.{node['name']}" if own_namespace else node["name"]
        if full_name in self._owners:
            if self._owners[full_name] != owner:
                raise SchemactlError(
                    f"two types are called {full_name}: {_describe(self._owners[full_name])} and {_describe(owner)}",
                    fix='give one of them another name or namespace: __avro__ = {"name": "..."}',
                )
            return (node["name"] if own_namespace == namespace else full_name), own_namespace, True
        if own_namespace == namespace:
            node.pop("namespace", None)
        self._owners[full_name], self._definitions[full_name] = owner, node
        return node, own_namespace, False


def _write_whole_numbers(value: Json) -> Json:
    """Return a default whose whole numbers have no point."""
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case list():
            return [_write_whole_numbers(item) for item in value]
        case dict():
            return {key: _write_whole_numbers(item) for key, item in value.items()}
    return value


def _make_unsupported_error(kind: Any, place: str) -> SchemactlError:
    key = TypeVar if isinstance(kind, TypeVar) else Flag if isinstance(kind, type(Flag)) else kind
    fix = _FIXES.get(key, "write a dataclass, or the type that travels, such as str")
    return SchemactlError(f"{place}: Avro has no type for {_describe(kind)}", fix=fix)


def _list_fields(kind: type) -> Sequence[ClassField]:
    """Return the fields of a class; raises SchemactlError if they are unclear."""
    if getattr(kind, "__pydantic_root_model__", False):
        raise SchemactlError(
            f"{get_class_name(kind)} is a RootModel, whose messages are not records",
            fix="write the type of its root instead: `Ids = list[str]` in place of `class Ids(RootModel[list[str]])`",
        )
    if "[" in kind.__name__:
        raise SchemactlError(
            f"Avro has no name for {get_class_name(kind)}", fix=f"give it one: class OrderPage({kind.__name__})"
        )
    try:
        return list_fields(kind)
    except UnclearField as error:
        raise SchemactlError(f"{get_class_name(kind)}: {error.message}", fix=error.fix) from None
    except (NameError, TypeError, AttributeError) as error:
        raise SchemactlError(
            # Messages of pydantic have a second line, with a URL.
            f"{get_class_name(kind)}: its annotations cannot be evaluated: {str(error).partition(chr(10))[0]}",
            fix="import what they name in the module itself, not only for type checking",
        ) from None
    # A factory may raise anything.
    except Exception as error:  # noqa: BLE001
        raise SchemactlError(
            f"{get_class_name(kind)}: a default factory fails: {error!r}",
            fix="make the factory work when the module is imported alone",
        ) from None


def _find_member_of_default(hint: Hint, default: Any, place: str) -> int | None:
    """Return the index of the union's member that a default fits; None without a union, or if the default is None and the union does not contain null."""
    if not hint.members:
        return None
    if default is None:
        return hint.members.index(type(None)) if type(None) in hint.members else None
    indices = [index for index, member in enumerate(hint.members) if member is not type(None)]
    try:
        return indices[find_member(default, [read_annotation(hint.members[index]) for index in indices])]
    except TypeError as error:
        raise SchemactlError(
            f"{place}: its default does not match any type of the union: {error}",
            fix="give another default, or add its type to the union",
        ) from None


def _get_attributes(kind: type) -> dict[str, Json]:
    """Return the namespace, documentation and other properties of a class's type, in this order, without inherited ones."""
    avro = vars(kind).get(AVRO, {})
    namespace = {"namespace": avro["namespace"]} if "namespace" in avro else {}
    doc = vars(kind).get("__doc__") or ""
    if doc.startswith(f"{kind.__name__}(") or doc == "An enumeration.":
        # Python or a library has generated it.
        doc = ""
    doc = inspect.cleandoc(doc)
    return {**namespace, **({"doc": doc} if doc else {}), **avro}


@dataclass(frozen=True)
class _DefaultWriter:
    """Writes the default of one field.

    Attributes:
        definitions: the definitions of the named types, by full name.
        place: the name of the field in errors.
    """

    definitions: Mapping[str, Json]
    place: str

    def to_json(self, value: Any, type_: Json) -> Json:
        """Return Avro's JSON of a value of `type_`, or of its first member if it is a union.

        Raises:
            SchemactlError: if Avro does not have the value.
        """
        node = type_[0] if isinstance(type_, list) else type_
        node = self.definitions.get(node, {}) if isinstance(node, str) else node
        kind: Any = type(value)
        match value:
            case list() | tuple():
                return [self.to_json(item, node.get("items")) for item in value]
            case dict():
                return {key: self.to_json(item, node.get("values")) for key, item in value.items()}
            case _ if is_record(kind):
                types = {field["name"]: field["type"] for field in node["fields"]}
                fields = list_fields(kind)
                if types.keys() != {field.name for field in fields}:
                    raise SchemactlError(
                        f"{self.place}: its default is an instance of the class itself, whose fields are not known yet",
                        fix="leave out the default",
                    )
                return {
                    field.name: self.to_json(getattr(value, field.attribute), types[field.name]) for field in fields
                }
            case Enum():
                return get_symbol(value)
            case float() if not math.isfinite(value):
                return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
            case None | bool() | int() | float() | str():
                return value
            case bytes():
                return value.decode("latin-1")
            case UUID():
                return str(value)
            case Decimal():
                return self._decimal_to_bytes(value, node).decode("latin-1")
            case datetime() | date() | time():
                return _time_to_number(value, str(node.get("logicalType", "")))
        raise SchemactlError(
            f"{self.place}: Avro has no value for its default, {value!r}",
            fix="give a default that the annotation allows",
        )

    def _decimal_to_bytes(self, value: Decimal, node: Mapping[str, Any]) -> bytes:
        unscaled = value.scaleb(node.get("scale", 0))
        if unscaled != int(unscaled):
            raise SchemactlError(
                f"{self.place}: its default, {value}, has more decimal places than its type",
                fix="round it, or allow more decimal places in the type",
            )
        number = int(unscaled)
        # The fewest bytes, like Java's BigInteger.toByteArray.
        size = node.get("size") or (number if number >= 0 else ~number).bit_length() // 8 + 1
        return number.to_bytes(size, "big", signed=True)


def _time_to_number(value: datetime | date | time, logical_type: str) -> int:
    """Return Avro's number for a datetime, a date or a time of day."""
    if isinstance(value, time):
        since = datetime.combine(date.min, value) - datetime.combine(date.min, time())
    elif not isinstance(value, datetime):
        return value.toordinal() - _EPOCH.toordinal()
    else:
        # A datetime without zone is in UTC, or local if the type is local, which gives the same number.
        aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        since = aware - _EPOCH
    microseconds = since // _MICROSECOND
    return microseconds // 1000 if logical_type.endswith("millis") else microseconds


# Import of a user's class, like `python -m`


def load_class(text: str, folder: str) -> type:
    """Import the class MODULE:CLASS, which runs the module and its imports.

    Args:
        text: `shop.models:Order`; `shop.models:Order.Line` for a class inside another.
        folder: the folder that is searched for the module before the installed packages.

    Raises:
        UsageError: if the text does not have this form.
        SchemactlError: if the module or class does not exist, or the module cannot be imported.
    """
    module_name, colon, path = text.partition(":")
    if not (colon and all(part.isidentifier() for part in (*module_name.split("."), *path.split(".")))):
        raise UsageError(f"{text}: expected MODULE:CLASS, such as shop.models:Order")
    value: Any = load_module(module_name, folder)
    for part in path.split("."):
        if not hasattr(value, part):
            classes = {name: member for name, member in vars(value).items() if isinstance(member, type)}
            # A module may only reexport the classes of other modules.
            candidates = [name for name, class_ in classes.items() if class_.__module__ == module_name] or classes
            raise SchemactlError(
                f"{value.__name__} has no class {part}{did_you_mean(part, classes)}",
                fix=f"name one of {', '.join(sorted(candidates))}"
                if candidates
                else "name a module that defines classes",
            )
        value = getattr(value, part)
    if not isinstance(value, type):
        raise SchemactlError(f"{text} is not a class, but a value of type {type(value).__name__}", fix="name a class")
    return value


def load_module(name: str, folder: str) -> Any:
    """Import a module; for `folder` and the exceptions see `load_class`."""
    with _search_in(folder), redirect_stdout(sys.stderr):
        try:
            return importlib.import_module(name)
        except KeyboardInterrupt:
            raise
        # A module may do anything, including sys.exit.
        except BaseException as error:  # noqa: BLE001
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing and (name == missing or name.startswith(f"{missing}.")):
                raise SchemactlError(
                    f"cannot find the module {missing}, neither in {folder} nor installed with schemactl",
                    fix="start in the folder that contains the top-level package of the module, or install the package here",
                ) from None
            location = _find_location(error, folder)
            prefix = f"{location}: " if location else ""
            reason = traceback.format_exception_only(error)[-1].strip()
            raise SchemactlError(
                f"{prefix}{name} cannot be imported: {reason}", fix="repair the module, or install what it needs"
            ) from None


@contextmanager
def _search_in(folder: str) -> Iterator[None]:
    original_path = [*sys.path]
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = original_path


def _find_location(error: BaseException, folder: str) -> str:
    """Return the file and line of an error, preferably in the user's own files, or ""."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    own_frames = [
        frame
        for frame in frames
        if Path(folder) in Path(frame.filename).parents and "site-packages" not in frame.filename
    ]
    frames = own_frames or frames[1:]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
