"""Convert instances of dataclasses, pydantic models and attrs classes to values of a codec and back, and read the annotations of their fields.

The libraries are recognized without importing them.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from ctypes import c_float
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NewType,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

PRIMITIVES: Final = ("boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL: Final[Mapping[str, str]] = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "uuid": "string",
}
"""Avro's logical types without attributes, each with its primitive type."""

ORDERED: Final = "ordered"
"""Annotates a union whose members keep the order in which they are written, in a field without an implied default.

Text after a colon makes two such annotations different, because Python caches `int | str` and `str | int` as equal types, and may return
one for the other.
"""

SINGLE: Final = "union"
"""Annotates a type that is the only member of a union."""

AVRO: Final = "__avro__"
"""The attribute of a class with attributes of its Avro type, such as `namespace`, `aliases`, or another `name`."""

NO_DEFAULT: Final = dataclasses.MISSING
ONE_NAME: Final = (
    'give it one `alias`, or give its name in messages: Field(..., json_schema_extra={"avro": {"name": "..."}})'
)
"""The fix for a field for which pydantic has several names."""

_PYDANTIC: Final[Mapping[str, tuple[type, Mapping[str, Any]]]] = {
    "NaiveDatetime": (datetime, {"logicalType": "local-timestamp-micros"}),
    **dict.fromkeys(("AwareDatetime", "PastDatetime", "FutureDatetime"), (datetime, {})),
    **dict.fromkeys(("PastDate", "FutureDate"), (date, {})),
}
"""The Python types of pydantic's special types, with the attributes of their Avro types."""

_RECODING: Final = ("EncodedBytes", "EncodedStr", "Json")
"""The annotations of pydantic's types for base64 and JSON."""

_DECIMAL: Final = re.compile(r"decimal\((\d+), *(\d+)\)")
T = TypeVar("T")


class DataclassInstance(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class ModelInstance(Protocol):
    """An instance of a pydantic model."""

    __pydantic_fields__: ClassVar[dict[str, Any]]


Instance = DataclassInstance | ModelInstance


def to_value(instance: Any) -> Any:
    """Convert an instance of a class to a value of a codec; other values are returned unchanged.

    Raises:
        TypeError: a value fits no member of the union in its annotation.
    """
    if isinstance(instance, dict):
        # The key and the value of a KEY_VALUE may be instances.
        is_pair = instance.keys() == {"key", "value"}
        return {name: to_value(value) for name, value in instance.items()} if is_pair else instance
    return _convert_to_value(instance, type(instance)) if is_record(type(instance)) else instance


def from_value(kind: type[T], value: Any) -> T:
    """Convert a value of a codec to an instance of the class `kind`."""
    instance: T = _convert_from_value(value, kind)
    return instance


def _convert_to_value(value: Any, annotation: Any) -> Any:
    hint = read_annotation(annotation)
    if hint.members and value is not None:
        members = _list_members(hint)
        index = find_member(value, [read_annotation(member) for member in members])
        converted = _convert_to_value(value, members[index])
        if len(members) == 1:
            return converted
        return {f"member{number}": converted if number == index else None for number in range(len(members))}
    kind: Any = type(value)
    if is_record(kind):
        return {
            field.name: _convert_to_value(getattr(value, field.attribute), field.annotation)
            for field in list_fields(kind)
        }
    if isinstance(hint.type, type) and issubclass(hint.type, Enum):
        # A model with `use_enum_values` has the value of the member.
        return get_symbol(hint.type(value))
    match value:
        case Enum():
            return get_symbol(value)
        case UUID():
            return str(value)
        case dict():
            item_annotation = (*get_args(hint.type), Any, Any)[1]
            return {key: _convert_to_value(item, item_annotation) for key, item in value.items()}
        case list() | tuple():
            item_annotation = (*get_args(hint.type), Any)[0]
            return [_convert_to_value(item, item_annotation) for item in value]
    return bytes(value) if is_fixed(kind) else value


def _convert_from_value(value: Any, annotation: Any) -> Any:
    hint = read_annotation(annotation)
    if value is None:
        return None
    if hint.members:
        members = _list_members(hint)
        if len(members) == 1:
            return _convert_from_value(value, members[0])
        index = next(number for number in range(len(members)) if value[f"member{number}"] is not None)
        return _convert_from_value(value[f"member{index}"], members[index])
    kind, arguments = get_origin(hint.type) or hint.type, get_args(hint.type)
    if is_record(kind):
        return _make_instance(kind, value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(member for member in kind if get_symbol(member) == value)
    if kind is UUID or is_fixed(kind):
        return kind(value)
    if kind is dict and arguments:
        return {key: _convert_from_value(item, arguments[1]) for key, item in value.items()}
    if kind in (list, tuple) and arguments:
        return kind(_convert_from_value(item, arguments[0]) for item in value)
    return value


def _make_instance(kind: Any, value: Mapping[str, Any]) -> Any:
    """Make an instance of a class with fields, which computes its computed fields itself."""
    arguments: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for field in list_fields(kind):
        name = field.read_as if field.read_as in value else field.name
        if name not in value or field.is_computed:
            continue
        converted = _convert_from_value(value[name], field.annotation)
        if field.argument:
            arguments[field.argument] = converted
        else:
            attributes[field.attribute] = converted
    instance = kind(**arguments)
    for attribute, converted in attributes.items():
        # Works also if the class is frozen.
        object.__setattr__(instance, attribute, converted)
    return instance


def _list_members(hint: Hint) -> list[Any]:
    return [member for member in hint.members if member is not types.NoneType]


def find_member(value: Any, members: list[Hint]) -> int:
    """Return the index of the member of a union for a value: the first that represents it exactly, or else the first of its type.

    Raises:
        TypeError: the value fits no member.
    """
    for exactly in (True, False):
        for index, member in enumerate(members):
            if _fits_member(value, member, exactly=exactly):
                return index
    names = ", ".join(getattr(member.type, "__name__", str(member.type)) for member in members)
    raise TypeError(f"expected one of {names}, found {type(value).__name__}: {value!r}")


def _fits_member(value: Any, hint: Hint, *, exactly: bool) -> bool:
    kind, attributes = get_origin(hint.type) or hint.type, hint.attributes
    if kind is Literal:
        return value in get_args(hint.type)
    if not isinstance(kind, type):
        return False
    if not exactly:
        wider = int if kind is float else bytes if issubclass(kind, bytes) else kind
        return isinstance(value, (kind, wider))
    is_of_type = type(value) is kind
    if kind is int and attributes.get("type") == "int":
        return is_of_type and -(2**31) <= value < 2**31
    if kind is float and attributes.get("type") == "float":
        return is_of_type and c_float(value).value == value
    if kind is Decimal:
        return is_of_type and value.as_tuple().exponent == -attributes.get("scale", 0)
    if kind is datetime:
        is_local = str(attributes.get("logicalType")).startswith("local")
        return is_of_type and (value.tzinfo is None) == is_local
    return is_of_type


def get_symbol(member: Enum) -> str:
    """Return Avro's symbol of an enum member: its text in an enum of texts, otherwise its name."""
    return member.value if isinstance(member, str) else member.name


# Fields of classes


@dataclass(frozen=True)
class ClassField:
    """A field of a class.

    Attributes:
        attribute: the name of the attribute in Python.
        argument: the name of the argument of the class; "" if it is not an argument.
        name: the name in Avro.
        annotation: the annotation of its type.
        default: the default; NO_DEFAULT if a value is required.
        doc: the documentation, or None.
        avro: further attributes of the Avro field: `aliases`, `order`, a `default` in JSON.
        is_computed: whether an instance computes it from other fields.
        read_as: the name in messages that the class reads, if it differs from `name`; otherwise "".
    """

    attribute: str
    argument: str
    name: str
    annotation: Any
    default: Any = NO_DEFAULT
    doc: str | None = None
    avro: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    is_computed: bool = False
    read_as: str = ""


def is_record(kind: Any) -> bool:
    """Return whether it is a class with fields that `list_fields` can read."""
    return isinstance(kind, type) and any(
        hasattr(kind, name) for name in ("__dataclass_fields__", "__pydantic_fields__", "__attrs_attrs__")
    )


def is_fixed(kind: Any) -> bool:
    """Return whether it is a class of bytes for a fixed type."""
    return isinstance(kind, type) and issubclass(kind, bytes) and AVRO in vars(kind)


@cache
def list_fields(kind: Any) -> tuple[ClassField, ...]:
    """Return the fields of a class for which `is_record` is true; of a pydantic model, the fields that it dumps.

    Raises:
        NameError: an annotation has a name that its module does not define.
        UnclearField: the name by which a field is read is unknown.
    """
    if hasattr(kind, "__pydantic_fields__"):
        return tuple(_read_pydantic_fields(kind))
    hints = get_type_hints(kind, include_extras=True)
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(_read_attrs_fields(kind, hints))
    fields = []
    for field in dataclasses.fields(kind):
        factory = field.default_factory
        default = field.default if factory is NO_DEFAULT else _make_constant_default(factory)
        argument = field.name if field.init else ""
        avro = field.metadata.get("avro", {})
        fields.append(_make_field(field.name, argument, hints[field.name], default, avro))
    return tuple(fields)


def _read_attrs_fields(kind: Any, hints: Mapping[str, Any]) -> Iterator[ClassField]:
    attr: Any = sys.modules["attr"]
    for attribute in kind.__attrs_attrs__:
        default = attribute.default
        if default is attr.NOTHING:
            default = NO_DEFAULT
        elif isinstance(default, attr.Factory):
            default = NO_DEFAULT if default.takes_self else _make_constant_default(default.factory)
        annotation = hints.get(attribute.name, attribute.type)
        argument = attribute.alias if attribute.init else ""
        yield _make_field(attribute.name, argument, annotation, default, attribute.metadata.get("avro", {}))


def _read_pydantic_fields(kind: Any) -> Iterator[ClassField]:
    # A rebuilt model also resolves the types of generic models, and names of the function in which it is defined.
    if hasattr(kind, "__dataclass_fields__"):
        config = kind.__pydantic_config__
        sys.modules["pydantic.dataclasses"].rebuild_dataclass(kind)
    else:
        config = kind.model_config
        kind.model_rebuild()
    for name, info in kind.__pydantic_fields__.items():
        if info.init_var or info.exclude:
            continue
        default = NO_DEFAULT
        if info.default_factory is not None and not info.default_factory_takes_validated_data:
            default = _make_constant_default(info.default_factory)
        elif info.default_factory is None and not info.is_required():
            default = info.default
        avro = _get_pydantic_attributes(info)
        # The name when pydantic dumps by alias.
        alias = None if config.get("serialize_by_alias") is False else info.serialization_alias
        written_name = alias or name
        read_names = _get_read_names(name, info, config)
        if not read_names and "name" not in avro:
            raise UnclearField(f"{name} is written as {written_name} and read from within another field", ONE_NAME)
        argument = written_name if written_name in read_names else next(iter(read_names), "")
        read_as = "" if written_name in read_names or "name" in avro else argument
        annotation = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
        argument = "" if info.init is False else argument
        yield _make_field(name, argument, annotation, default, {"name": written_name, **avro}, read_as=read_as)
    for name, computed_field in kind.__pydantic_decorators__.computed_fields.items():
        info = computed_field.info
        avro = {"name": info.alias or name, **_get_pydantic_attributes(info)}
        yield _make_field(name, "", info.return_type, NO_DEFAULT, avro, is_computed=True)


def _get_pydantic_attributes(info: Any) -> dict[str, Any]:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    return {"doc": info.description, **extra.get("avro", {})}


def _get_read_names(name: str, info: Any, config: Mapping[str, Any]) -> list[str]:
    """Return the names by which pydantic reads a field, in its order of preference."""
    alias = info.validation_alias
    # AliasChoices has several names, and AliasPath the path to a nested value.
    choices = [alias] if isinstance(alias, str) else getattr(alias, "choices", [alias])
    paths = (getattr(choice, "path", [choice]) for choice in choices if choice is not None)
    aliases = [path[0] for path in paths if len(path) == 1] if config.get("validate_by_alias", True) else []
    is_by_name = config.get("populate_by_name") or config.get("validate_by_name") or alias is None
    return [*aliases, name] if is_by_name else aliases


def _make_constant_default(factory: Callable[[], Any]) -> Any:
    """Return the value of a default factory, or NO_DEFAULT if the value differs for each message, such as the current time or an id."""
    if is_record(factory):
        return NO_DEFAULT if any(field.default is NO_DEFAULT for field in list_fields(factory)) else factory()
    default = factory()
    # A factory of a constant is only needed for mutable values.
    is_constant = isinstance(default, list | tuple | dict) or is_record(type(default))
    return default if is_constant and default == factory() else NO_DEFAULT


def _make_field(
    attribute: str, argument: str, annotation: Any, default: Any, avro: Mapping[str, Any], **extra: Any
) -> ClassField:
    rest = {name: value for name, value in avro.items() if name not in ("name", "doc")}
    name, doc = avro.get("name", attribute), avro.get("doc")
    return ClassField(attribute, argument, name, annotation, default, doc, rest, **extra)


# Annotations


class UnclearField(ValueError):
    """A field whose representation in messages is ambiguous.

    Attributes:
        message: the problem.
        fix: the change that solves it.
    """

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(f"{message}; {fix}")
        self.message = message
        self.fix = fix


@dataclass(frozen=True)
class Hint:
    """The information in an annotation.

    Attributes:
        type: the Python type, without `Annotated` around it.
        attributes: the attributes of the Avro type in JSON, such as `type` and `logicalType`.
        verbatim: the whole Avro type in JSON, or None if it follows from the other attributes.
        markers: the markers ORDERED and SINGLE.
        doc: the documentation.
    """

    type: Any
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    verbatim: Any = None
    markers: frozenset[str] = frozenset()
    doc: str = ""

    @property
    def members(self) -> tuple[Any, ...]:
        """The members of a union, with None, or an empty tuple for other types.

        The attributes of the union are attributes of each member except None.
        """
        members = get_args(self.type) if get_origin(self.type) in (Union, types.UnionType) else ()
        if not self.attributes:
            return members
        return tuple(member if member is types.NoneType else Annotated[member, self.attributes] for member in members)


def read_annotation(annotation: Any) -> Hint:
    """Read the information in an annotation.

    Raises:
        UnclearField: the annotation is not valid.
    """
    attributes: dict[str, Any] = {}
    verbatim, markers, doc = None, set(), ""
    while True:
        if isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            # `type Name = ...`, from Python 3.12 on.
            annotation = annotation.__value__
        elif getattr(annotation, "__module__", "") == "pydantic.types" and annotation.__name__ in _PYDANTIC:
            annotation, inner_attributes = _PYDANTIC[annotation.__name__]
            attributes = {**inner_attributes, **attributes}
        elif get_origin(annotation) is Annotated:
            annotation, *extras = get_args(annotation)
            outer_attributes, attributes = attributes, {}
            for extra in extras:
                marker = extra.partition(":")[0] if isinstance(extra, str) else ""
                if marker in (ORDERED, SINGLE):
                    markers.add(marker)
                elif isinstance(extra, str) and extra.startswith("["):
                    verbatim = verbatim or _parse_json(extra)
                elif (extra_attributes := _read_attributes(extra)) is not None:
                    attributes |= extra_attributes
                elif not doc:
                    # The text of a `Doc` of typing_extensions is `documentation`.
                    text = extra if isinstance(extra, str) else getattr(extra, "documentation", "")
                    doc = text if isinstance(text, str) else ""
            attributes |= outer_attributes
        else:
            return Hint(annotation, attributes, verbatim, frozenset(markers), doc)


def _read_attributes(extra: Any) -> Mapping[str, Any] | None:
    """Return the attributes of the Avro type in an argument of `Annotated`, or None without such attributes."""
    if isinstance(extra, Mapping):
        return extra
    if not isinstance(extra, str):
        if type(extra).__module__ == "pydantic.types" and type(extra).__name__ in _RECODING:
            raise UnclearField(
                "pydantic reads it from another form than it holds", "write the type that it holds, such as bytes"
            )
        # pydantic's limits of a Decimal, which a `Field` has in its metadata.
        for metadata in getattr(extra, "metadata", [extra]):
            digits, places = (getattr(metadata, name, None) for name in ("max_digits", "decimal_places"))
            if isinstance(digits, int) and isinstance(places, int):
                return {"precision": digits, "scale": places}
        return None
    if extra in PRIMITIVES:
        return {"type": extra}
    if extra in LOGICAL:
        return {"type": LOGICAL[extra], "logicalType": extra}
    if numbers := _DECIMAL.fullmatch(extra):
        return {"precision": int(numbers[1]), "scale": int(numbers[2])}
    return dict(_parse_json(extra)) if extra.startswith("{") else None


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UnclearField(
            f"a text in Annotated begins like JSON and does not parse: {error}",
            "correct the JSON, or begin the text with another character",
        ) from None
