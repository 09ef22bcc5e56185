"""The single-message writer of protobuf; deterministic: equal values give equal bytes."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from .columns import DURATION
from .errors import Unwritable
from .fitting import PLAIN, items_of, pairs_of
from .proto_schema import Message, MessagePart, Moment, Root, Scalar, Shape
from .proto_wire import missing_fields
from .values import to_storage

_MICROS: Final = 1_000_000

_RANGES: Final = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (-(2**31), 2**31 - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (-(2**63), 2**63 - 1)),
    **dict.fromkeys(("uint32", "fixed32"), (0, 2**32 - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, 2**64 - 1)),
}

_DIGITS: Final = re.compile("-?[0-9]{1,10}")

_Fill = Callable[[Any, Any], None]
"""Puts a value into a message."""

_Fit = Callable[[Any], Any]
"""From a value to what protobuf takes; raises Unwritable."""


def writer(root: Root) -> Callable[[Any], bytes]:
    """Write values in the form that reading gives; raises Unwritable for any other.

    A field that is absent or null is not set.
    """
    fill, message_class = _message(root.shape, root.message_class.DESCRIPTOR), root.message_class

    def write(value: Any) -> bytes:
        message = message_class()
        fill(message, value)
        if not message_class.IsInitialized(message):
            missing = ", ".join(missing_fields(message))
            raise Unwritable(f"required fields are missing: {missing}")
        written: bytes = message_class.SerializeToString(message, deterministic=True)
        return written

    return write


def _message(shape: Message, descriptor: Any) -> _Fill:
    parts = {part.name: (part, _part(part, descriptor.fields_by_name[part.name])) for part in shape.parts}

    def fill(message: Any, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise Unwritable(f"expected the fields of {shape.full_name}, found {value!r}")
        unknown = value.keys() - parts.keys()
        if unknown:
            raise Unwritable(f"{shape.full_name} has no field {', '.join(sorted(map(str, unknown)))}")
        chosen: dict[str, str] = {}
        for name, held in value.items():
            if held is None:
                continue
            part, put = parts[name]
            if part.oneof is not None and chosen.setdefault(part.oneof, name) != name:
                raise Unwritable(f"only one of {chosen[part.oneof]} and {name} can be set ({part.oneof})")
            try:
                put(message, held)
            except Unwritable as error:
                error.inside(name)
                raise

    return fill


def _part(part: MessagePart, field: Any) -> _Fill:
    name = part.name
    if part.key is not None:
        return _entries(name, _scalar(part.key), part.shape, field.message_type.fields_by_name["value"])
    put = _put(part.shape, field)
    if part.repeated:
        return _items(name, part.shape, put)
    if isinstance(part.shape, Scalar):
        fit = _scalar(part.shape)

        def set_scalar(message: Any, value: Any) -> None:
            setattr(message, name, fit(value))

        return set_scalar

    def set_message(message: Any, value: Any) -> None:
        inner = getattr(message, name)
        type(inner).SetInParent(inner)
        put(inner, value)

    return set_message


def _put(shape: Shape, field: Any) -> _Fill:
    """Fill a message that is a value."""
    if isinstance(shape, Message):
        return _message(shape, field.message_type)
    if isinstance(shape, Moment):
        return _moment(shape.type)

    # A scalar is no message.
    return lambda _message, _value: None


def _items(name: str, shape: Shape, put: _Fill) -> _Fill:
    fit = _scalar(shape) if isinstance(shape, Scalar) else None

    def append(message: Any, value: Any) -> None:
        held = getattr(message, name)
        items = items_of(value)
        try:
            for item in items:
                if fit is not None:
                    held.append(fit(item))
                else:
                    put(held.add(), item)
        except Unwritable as error:
            # A message that does not fit is in the list already.
            error.inside(f"[{len(held) - (fit is None)}]")
            raise

    return append


def _entries(name: str, fit_key: _Fit, shape: Shape, field: Any) -> _Fill:
    fit = _scalar(shape) if isinstance(shape, Scalar) else None
    put = _put(shape, field)

    def fill(message: Any, value: Any) -> None:
        held = getattr(message, name)
        for key, item in pairs_of(value):
            try:
                if fit is not None:
                    held[fit_key(key)] = fit(item)
                else:
                    put(held[fit_key(key)], item)
            except Unwritable as error:
                error.inside(f"[{key!r}]")
                raise

    return fill


def _scalar(shape: Scalar) -> _Fit:
    if shape.kind == "enum":
        return _enum(shape)
    if shape.kind in _RANGES:
        return _integer(shape.kind)
    return PLAIN["boolean" if shape.kind == "bool" else shape.kind]


def _integer(kind: str) -> _Fit:
    low, high = _RANGES[kind]

    def fit(value: Any) -> int:
        if isinstance(value, decimal.Decimal) and value.is_finite() and value == value.to_integral_value():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise Unwritable(f"expected a whole number, found {value!r}")
        if not low <= value <= high:
            raise Unwritable(f"{value!r} is out of the range of {kind}")
        return value

    return fit


def _enum(shape: Scalar) -> _Fit:
    numbers = {name: number for number, name in (shape.names or {}).items()}

    def fit(value: Any) -> int:
        if isinstance(value, str):
            if value in numbers:
                return numbers[value]
            # A number without a name is read as its digits.
            if shape.open_enum and _DIGITS.fullmatch(value) and -(2**31) <= int(value) < 2**31:
                return int(value)
        raise Unwritable(f"{value!r} is none of {', '.join(numbers)}")

    return fit


def _moment(kind: pa.DataType) -> _Fill:
    convert = to_storage(kind)

    def fill(message: Any, value: Any) -> None:
        micros = value if convert is None else convert(value)
        if not -(2**63) <= micros < 2**63:
            raise Unwritable(f"{micros} microseconds do not fit 64 bits")
        # Seconds and nanoseconds of a Duration have the same sign (google/protobuf/duration.proto).
        sign = -1 if micros < 0 and kind == DURATION else 1
        seconds, rest = divmod(sign * micros, _MICROS)
        message.seconds, message.nanos = sign * seconds, sign * rest * 1000

    return fill
