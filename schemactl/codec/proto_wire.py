"""The reason why bytes are not a protobuf message (protobuf.dev/programming-guides/encoding)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .errors import Unreadable
from .proto_schema import kind_of

_MAX_DEPTH: Final = 100
"""As deep as the parsers of C++, Java and Python go by default."""

_VARINT, _FIXED64, _SIZED, _START, _END, _FIXED32 = range(6)

_PACKED_SIZES: Final = {
    **dict.fromkeys(("double", "fixed64", "sfixed64"), 8),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), 4),
}
"""Bytes an item of a packed list; all others are variable-length numbers."""


def find_fault(payload: bytes, descriptor: Any) -> None:
    """Raise Unreadable for the first fault, with the byte where it shows and the field it is in."""
    _FaultFinder(payload).message(descriptor, 0, len(payload), depth=0, group=None)


def has_field(message: Any, name: str) -> bool:
    """Whether the field is set. Asked of the class: a field may be called as the method is."""
    found: bool = type(message).HasField(message, name)
    return found


def missing_fields(message: Any) -> Iterator[str]:
    """Return the required fields that a message lacks, as paths; protobuf's own search for them crashes on nested ones.

    All of the message's text is UTF-8.
    """
    for field in type(message).DESCRIPTOR.fields:
        if field.is_required and not has_field(message, field.name):
            yield field.name
    for field, held in type(message).ListFields(message):
        entry = field.message_type
        if entry is None:
            continue
        name = f"({field.full_name})" if field.is_extension else field.name
        if entry.GetOptions().map_entry:
            if entry.fields_by_name["value"].message_type is not None:
                for key in held:
                    yield from (f"{name}[{key!r}].{path}" for path in missing_fields(held[key]))
        elif field.is_repeated:
            for place, item in enumerate(held):
                yield from (f"{name}[{place}].{path}" for path in missing_fields(item))
        else:
            yield from (f"{name}.{path}" for path in missing_fields(held))


class _FaultFinder:
    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def message(self, descriptor: Any, at: int, end: int, *, depth: int, group: int | None) -> int:
        """Return the position behind the message's fields; `group` is the number of the group that they are in."""
        if depth > _MAX_DEPTH:
            raise Unreadable(f"messages are nested deeper than {_MAX_DEPTH}", at)
        while at < end:
            start = at
            tag, at = self._number(at, end)
            number, wire = tag >> 3, tag & 7
            if not 0 < number < 2**29:
                raise Unreadable(f"{number} is no field number", start)
            if wire == _END:
                if number != group:
                    raise Unreadable(f"the group {number} ends without a start", start)
                return at
            field = descriptor.fields_by_number.get(number) if descriptor is not None else None
            try:
                at = self._value(field, number, wire, at, end, depth)
            except Unreadable as error:
                error.inside(field.name if field is not None else f"field {number}")
                raise
        if group is not None:
            raise Unreadable(f"the message ends inside the group {group}", at)
        return at

    def _value(self, field: Any, number: int, wire: int, at: int, end: int, depth: int) -> int:
        if wire == _VARINT:
            return self._number(at, end)[1]
        if wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
            if end - at < size:
                raise Unreadable(f"{size} bytes are expected, {end - at} are left", at)
            return at + size
        if wire == _START:
            inner = field.message_type if field is not None and kind_of(field) == "group" else None
            return self.message(inner, at, end, depth=depth + 1, group=number)
        if wire != _SIZED:
            raise Unreadable(f"there is no wire type {wire}", at)
        size, start = self._number(at, end)
        if size > end - start:
            raise Unreadable(f"a length of {size} bytes, but {end - start} are left", at)
        if field is not None:
            self._content(field, start, start + size, depth)
        return start + size

    def _content(self, field: Any, at: int, end: int, depth: int) -> None:
        kind = kind_of(field)
        if kind == "message":
            self.message(field.message_type, at, end, depth=depth + 1, group=None)
        elif kind == "string":
            try:
                self._payload[at:end].decode()
            except UnicodeDecodeError as error:
                raise Unreadable("text that is not UTF-8", at + error.start) from None
        elif field.is_repeated and kind not in ("bytes", "group"):
            size = _PACKED_SIZES.get(kind)
            if size is not None and (end - at) % size:
                raise Unreadable(f"{end - at} bytes are not a multiple of items of {size} bytes", at)
            while size is None and at < end:
                at = self._number(at, end)[1]

    def _number(self, at: int, end: int) -> tuple[int, int]:
        """Return the variable-length number at `at`, and the position behind."""
        value = 0
        for place, byte in enumerate(self._payload[at : min(end, at + 10)]):
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value, at + place + 1
        what = "a number has more than 10 bytes" if end - at > 9 else "the message ends inside a number"
        raise Unreadable(what, at)
