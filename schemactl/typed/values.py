"""Instances of classes as values that a codec reads and writes, and the way back."""

from __future__ import annotations

import types
from collections.abc import Mapping
from ctypes import c_float
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypeVar, get_args, get_origin
from uuid import UUID

from .annotations import Hint, read
from .records import fields_of, is_fixed, is_record

T = TypeVar("T")


def to_value(instance: Any) -> Any:
    """Return the codec's value for an instance of a class; any other value is returned unchanged.

    Raise TypeError if a value fits no member of the union that its annotation names.
    """
    if isinstance(instance, dict):
        # Of a KEY_VALUE, each half may be one.
        is_pair = instance.keys() == {"key", "value"}
        return {name: to_value(value) for name, value in instance.items()} if is_pair else instance
    return _written(instance, type(instance)) if is_record(type(instance)) else instance


def from_value(kind: type[T], value: Any) -> T:
    """Return the instance of the class `kind` for a codec's value."""
    made: T = _made(value, kind)
    return made


def symbol(member: Enum) -> str:
    """Return Avro's symbol for the member of an enum: of an enum of texts the text, else the member's name."""
    return member.value if isinstance(member, str) else member.name


def _written(value: Any, annotation: Any) -> Any:
    hint = read(annotation)
    if hint.members and value is not None:
        members = _members(hint)
        at = member_of(value, [read(each) for each in members])
        written = _written(value, members[at])
        if len(members) == 1:
            return written
        return {f"member{number}": written if number == at else None for number in range(len(members))}
    kind: Any = type(value)
    if is_record(kind):
        fields = fields_of(kind)
        return {each.name: _written(getattr(value, each.attribute), each.annotation) for each in fields}
    if isinstance(hint.type, type) and issubclass(hint.type, Enum):
        # A model with `use_enum_values` holds the member's value.
        return symbol(hint.type(value))
    match value:
        case Enum():
            return symbol(value)
        case UUID():
            return str(value)
        case dict():
            of_values = (*get_args(hint.type), Any, Any)[1]
            return {key: _written(each, of_values) for key, each in value.items()}
        case list() | tuple():
            of_items = (*get_args(hint.type), Any)[0]
            return [_written(each, of_items) for each in value]
    return bytes(value) if is_fixed(kind) else value


def _made(value: Any, annotation: Any) -> Any:
    hint = read(annotation)
    if value is None:
        return None
    if hint.members:
        members = _members(hint)
        if len(members) == 1:
            return _made(value, members[0])
        at = next(number for number in range(len(members)) if value[f"member{number}"] is not None)
        return _made(value[f"member{at}"], members[at])
    kind, arguments = get_origin(hint.type) or hint.type, get_args(hint.type)
    if is_record(kind):
        return _instance(kind, value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(member for member in kind if symbol(member) == value)
    if kind is UUID or is_fixed(kind):
        return kind(value)
    if kind is dict and arguments:
        return {key: _made(each, arguments[1]) for key, each in value.items()}
    if kind in (list, tuple) and arguments:
        return kind(_made(each, arguments[0]) for each in value)
    return value


def _instance(kind: Any, value: Mapping[str, Any]) -> Any:
    """Return the instance of a class with fields; what it computes itself is left to it."""
    named = [(each, each.read_as if each.read_as in value else each.name) for each in fields_of(kind)]
    held = [
        (each, _made(value[name], each.annotation))
        for each, name in named
        if name in value and not each.is_computed
    ]
    found = kind(**{each.argument: part for each, part in held if each.argument})
    for each, part in held:
        if not each.argument:
            # Also where the class is frozen.
            object.__setattr__(found, each.attribute, part)
    return found


def _members(hint: Hint) -> list[Any]:
    return [each for each in hint.members if each is not types.NoneType]


def member_of(value: Any, members: list[Hint]) -> int:
    """Return the number of the member that a value is of: the first that has exactly such values, else the first of its type."""
    for exactly in (True, False):
        for number, each in enumerate(members):
            if _fits(value, each, exactly=exactly):
                return number
    wanted = ", ".join(getattr(each.type, "__name__", str(each.type)) for each in members)
    raise TypeError(f"expected one of {wanted}, found {type(value).__name__}: {value!r}")


def _fits(value: Any, hint: Hint, *, exactly: bool) -> bool:
    kind, attributes = get_origin(hint.type) or hint.type, hint.attributes
    if kind is Literal:
        return value in get_args(hint.type)
    if not isinstance(kind, type):
        return False
    if not exactly:
        wider = int if kind is float else bytes if issubclass(kind, bytes) else kind
        return isinstance(value, (kind, wider))
    is_of_it = type(value) is kind
    if kind is int and attributes.get("type") == "int":
        return is_of_it and -(2**31) <= value < 2**31
    if kind is float and attributes.get("type") == "float":
        return is_of_it and c_float(value).value == value
    if kind is Decimal:
        return is_of_it and value.as_tuple().exponent == -attributes.get("scale", 0)
    if kind is datetime:
        is_local = str(attributes.get("logicalType")).startswith("local")
        return is_of_it and (value.tzinfo is None) == is_local
    return is_of_it
