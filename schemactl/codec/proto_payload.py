"""Read and write protobuf payloads one by one, and explain damaged bytes (protobuf.dev/programming-guides/encoding)."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from .arrow_types import DURATION, Options
from .definition import CodecError, Definition, Unreadable, Unwritable
from .payload_reader import PayloadReader, PayloadWriter
from .proto_columns import column_reader, column_writer, make_plan
from .proto_schema import Message, MessagePart, Moment, Root, Scalar, Shape, get_type_name, load_descriptor, root_of
from .values import PLAIN, check_list, get_python_converter, get_storage_converter, list_entries

_MAX_DEPTH: Final = 100
"""As deep as the parsers of C++, Java and Python go by default."""

_VARINT, _FIXED64, _SIZED, _START, _END, _FIXED32 = range(6)

_PACKED_SIZES: Final = {
    **dict.fromkeys(("double", "fixed64", "sfixed64"), 8),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), 4),
}
"""Bytes an item of a packed list; all others are variable-length numbers."""


def raise_first_fault(payload: bytes, descriptor: Any) -> None:
    """Raise Unreadable for the first fault, with the byte where it shows and the field it is in."""
    _FaultFinder(payload).message(descriptor, 0, len(payload), depth=0, group=None)


def has_field(message: Any, name: str) -> bool:
    """Whether the field is set. Asked of the class: a field may be called as the method is."""
    found: bool = type(message).HasField(message, name)
    return found


def find_missing_fields(message: Any) -> Iterator[str]:
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
                    yield from (f"{name}[{key!r}].{path}" for path in find_missing_fields(held[key]))
        elif field.is_repeated:
            for place, item in enumerate(held):
                yield from (f"{name}[{place}].{path}" for path in find_missing_fields(item))
        else:
            yield from (f"{name}.{path}" for path in find_missing_fields(held))


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
                error.prepend_path(field.name if field is not None else f"field {number}")
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
            inner = field.message_type if field is not None and get_type_name(field) == "group" else None
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
        kind = get_type_name(field)
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


# Reader: fields are matched by number, whichever version wrote them


_MICROS: Final = 1_000_000
_LIMIT: Final = 2**63

_Read = Callable[[Any], Any]


def compile_reader(root: Root, *, as_python: bool) -> Callable[[bytes], Any]:
    """Return what makes of a payload its value: in storage form (see `arrow_types`), or in Python's own types.

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
            raise_first_fault(payload, message_class.DESCRIPTOR)
            raise Unreadable(f"the bytes are no message {name}") from None
        if not message_class.IsInitialized(message):
            raise_first_fault(payload, message_class.DESCRIPTOR)
            missing = ", ".join(find_missing_fields(message))
            raise Unreadable(f"required fields are missing: {missing}")
        try:
            return read(message)
        except Unreadable:
            # Of text, the walk knows the byte, too.
            raise_first_fault(payload, message_class.DESCRIPTOR)
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
                error.prepend_path(name)
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
                convert = get_python_converter(shape.type) if self._as_python else None
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


# Writer: equal values give equal bytes


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


def message_writer(root: Root) -> Callable[[Any], bytes]:
    """Write values in the form that reading gives; raises Unwritable for any other.

    A field that is absent or null is not set.
    """
    fill, message_class = _message(root.shape, root.message_class.DESCRIPTOR), root.message_class

    def write(value: Any) -> bytes:
        message = message_class()
        fill(message, value)
        if not message_class.IsInitialized(message):
            missing = ", ".join(find_missing_fields(message))
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
                error.prepend_path(name)
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
        items = check_list(value)
        try:
            for item in items:
                if fit is not None:
                    held.append(fit(item))
                else:
                    put(held.add(), item)
        except Unwritable as error:
            # A message that does not fit is in the list already.
            error.prepend_path(f"[{len(held) - (fit is None)}]")
            raise

    return append


def _entries(name: str, fit_key: _Fit, shape: Shape, field: Any) -> _Fill:
    fit = _scalar(shape) if isinstance(shape, Scalar) else None
    put = _put(shape, field)

    def fill(message: Any, value: Any) -> None:
        held = getattr(message, name)
        for key, item in list_entries(value):
            try:
                if fit is not None:
                    held[fit_key(key)] = fit(item)
                else:
                    put(held[fit_key(key)], item)
            except Unwritable as error:
                error.prepend_path(f"[{key!r}]")
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
    convert = get_storage_converter(kind)

    def fill(message: Any, value: Any) -> None:
        micros = value if convert is None else convert(value)
        if not -(2**63) <= micros < 2**63:
            raise Unwritable(f"{micros} microseconds do not fit 64 bits")
        # Seconds and nanoseconds of a Duration have the same sign (google/protobuf/duration.proto).
        sign = -1 if micros < 0 and kind == DURATION else 1
        seconds, rest = divmod(sign * micros, _MICROS)
        message.seconds, message.nanos = sign * seconds, sign * rest * 1000

    return fill


# The payload format (see `message.PayloadModule`)


def column_type(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the columns of the message."""
    return root_of(definition, options).shape.type, True


def make_reader(writer: Definition, reader: Definition, options: Options) -> PayloadReader:
    """Read by the reader's message alone, by the numbers of its fields. The writer's makes it quicker, and nothing else."""
    root = root_of(reader, options)
    plan = make_plan(root, _descriptor(writer))
    return PayloadReader(
        root.shape.type,
        compile_reader(root, as_python=True),
        compile_reader(root, as_python=False),
        None if plan is None else column_reader(plan, root.shape.type),
    )


def make_writer(writer: Definition, options: Options) -> PayloadWriter:
    """Return how values are written."""
    root = root_of(writer, options)
    plan = make_plan(root)
    return PayloadWriter(root.shape.type, message_writer(root), None if plan is None else column_writer(plan))


def _descriptor(writer: Definition) -> Any:
    try:
        return load_descriptor(writer)
    except CodecError:
        return None
