"""The single-message reader of protobuf: fields are matched by number, whichever version wrote them."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from .errors import Unreadable
from .proto_schema import Message, MessagePart, Moment, Root, Scalar, Shape
from .proto_wire import find_fault, has_field, missing_fields
from .values import to_python

_MICROS: Final = 1_000_000
_LIMIT: Final = 2**63

_Read = Callable[[Any], Any]


def reader(root: Root, *, as_python: bool) -> Callable[[bytes], Any]:
    """Return what makes of a payload its value: in storage form (see `columns`), or in Python's own types.

    The function raises Unreadable.
    """
    from google.protobuf.message import DecodeError

    message_class, name = root.message_class, root.shape.full_name
    read = _ProtoCompiler(as_python=as_python).message(root.shape)

    def read_payload(payload: bytes) -> Any:
        message = message_class()
        try:
            message_class.ParseFromString(message, payload)
        except DecodeError:
            find_fault(payload, message_class.DESCRIPTOR)
            raise Unreadable(f"the bytes are no message {name}") from None
        if not message_class.IsInitialized(message):
            find_fault(payload, message_class.DESCRIPTOR)
            missing = ", ".join(missing_fields(message))
            raise Unreadable(f"required fields are missing: {missing}")
        try:
            return read(message)
        except Unreadable:
            # Of text, the walk knows the byte, too.
            find_fault(payload, message_class.DESCRIPTOR)
            raise

    return read_payload


class _ProtoCompiler:
    """Makes the functions that read; None where a value is taken as it is."""

    def __init__(self, *, as_python: bool) -> None:
        self._as_python = as_python
        self._messages: dict[int, _Read] = {}

    def message(self, shape: Message) -> _Read:
        # Each once: in a message that holds itself, one shape stands in many places.
        if id(shape) not in self._messages:
            self._messages[id(shape)] = self._message(shape)
        return self._messages[id(shape)]

    def _message(self, shape: Message) -> _Read:
        parts = [(part.name, self._part(part)) for part in shape.parts]

        def read_message(message: Any) -> Any:
            value = {}
            name = ""
            try:
                for name, read in parts:
                    value[name] = read(message)
            except Unreadable as error:
                error.inside(name)
                raise
            return value

        return read_message

    def _part(self, part: MessagePart) -> _Read:
        name = part.name
        read = self._value(part.shape)
        if part.key is not None:
            return self._entries(name, self._value(part.key), read)
        if part.repeated:
            if read is None:
                return lambda message: list(getattr(message, name))
            return lambda message: [read(item) for item in getattr(message, name)]
        if part.presence and part.default is None:
            if read is None:
                return lambda message: getattr(message, name) if has_field(message, name) else None
            return lambda message: read(getattr(message, name)) if has_field(message, name) else None
        if read is None:
            return lambda message: getattr(message, name)
        return lambda message: read(getattr(message, name))

    def _entries(self, name: str, key: _Read | None, value: _Read | None) -> _Read:
        collect: Callable[[Any], Any] = dict if self._as_python else list

        def read_entries(message: Any) -> Any:
            held = getattr(message, name)
            # A map has no order: sorted, equal messages give equal values. Not by `items()`: what is not there would be
            # put there by asking for it.
            return collect(
                (key(one) if key else one, value(held[one]) if value else held[one]) for one in _sorted(held)
            )

        return read_entries

    def _value(self, shape: Shape) -> _Read | None:
        match shape:
            case Message():
                return self.message(shape)
            case Moment():
                convert = to_python(shape.type) if self._as_python else None
                return _micros if convert is None else lambda moment: convert(_micros(moment))
            case Scalar(kind="enum"):
                names = shape.names or {}
                # A number without a name stays visible.
                return lambda number: names.get(number) or str(number)
            case Scalar() if pa.types.is_decimal(shape.type):
                return None if self._as_python else decimal.Decimal
            case Scalar(any_bytes=True):
                return _text
            case Scalar():
                return None


def _sorted(keys: Any) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:
        raise Unreadable("text that is not UTF-8") from None


def _text(held: str | bytes) -> str:
    # What protobuf did not look at comes as bytes where it is no text.
    if isinstance(held, bytes):
        raise Unreadable("text that is not UTF-8")
    return held


def _micros(moment: Any) -> int:
    """Seconds and nanoseconds as microseconds; what is finer is cut off."""
    seconds: int = moment.seconds
    nanos: int = moment.nanos
    micros = seconds * _MICROS + nanos // 1000
    if not -_LIMIT <= micros < _LIMIT:
        raise Unreadable(f"{seconds} seconds do not fit 64 bits as microseconds")
    return micros
