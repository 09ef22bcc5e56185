"""Decode and encode protobuf payloads (see `message.PayloadModule`), and locate the fault in damaged bytes.

The wire format is described at https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from .arrow_types import DURATION, Options, is_too_wide
from .definition import CodecError, Definition, Unreadable, Unwritable
from .payload_batches import PayloadDecoder, PayloadEncoder
from .proto_columns import make_column_reader, make_column_writer, make_plan
from .proto_schema import Message, MessagePart, Moment, Root, Scalar, Shape, get_type_name, load_descriptor, load_root
from .values import LIMITS, PLAIN, SECOND_MICROS, TO_PYTHON, TO_STORAGE, check_fields, check_list, list_entries
from .wire_format import decode_varint

_MAX_DEPTH: Final = 100
"""The default limit of the parsers of C++, Java and Python."""

_VARINT, _FIXED64, _SIZED, _START, _END, _FIXED32 = range(6)

_PACKED_SIZES: Final = {
    **dict.fromkeys(("double", "fixed64", "sfixed64"), 8),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), 4),
}
"""The size in bytes of an item of a packed list; other items are variable-length numbers."""

_RANGES: Final = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), LIMITS["int"]),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), LIMITS["long"]),
    **dict.fromkeys(("uint32", "fixed32"), (0, 2**32 - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, 2**64 - 1)),
}

_DIGITS: Final = re.compile("-?[0-9]{1,10}")

_Read = Callable[[Any], Any]

_Fill = Callable[[Any, Any], None]
"""Writes a value into a message; raises Unwritable."""

_Fit = Callable[[Any], Any]
"""Validates a value and converts it for protobuf; raises Unwritable."""


def column_type(definition: Definition, options: Options) -> tuple[pa.DataType, bool]:
    """Return the type of the column, and that values are records."""
    return load_root(definition, options).shape.type, True


def make_decoder(writer_schema: Definition, reader_schema: Definition, options: Options) -> PayloadDecoder:
    """Make the decoder of values of the reader's message. The writer's message only has an effect on speed."""
    root = load_root(reader_schema, options)
    try:
        descriptor = load_descriptor(writer_schema)
    except CodecError:
        descriptor = None
    plan = None if is_too_wide([root.shape.type]) else make_plan(root, descriptor)
    return PayloadDecoder(
        root.shape.type,
        _compile_reader(root, as_python=True),
        _compile_reader(root, as_python=False),
        None if plan is None else make_column_reader(plan, root.shape.type),
    )


def make_encoder(schema: Definition, options: Options) -> PayloadEncoder:
    """Make the encoder of values of a definition. A field that is absent or null is not set, and equal values have equal bytes."""
    root = load_root(schema, options)
    plan = None if is_too_wide([root.shape.type]) else make_plan(root)
    message_class = root.message_class
    fill = _WriterCompiler().compile_message(root.shape, message_class.DESCRIPTOR)

    def write(value: Any) -> bytes:
        message = message_class()
        fill(message, value)
        if not message_class.IsInitialized(message):
            missing = ", ".join(_find_missing_fields(message))
            raise Unwritable(f"required fields are missing: {missing}")
        written: bytes = message_class.SerializeToString(message, deterministic=True)
        return written

    return PayloadEncoder(root.shape.type, write, None if plan is None else make_column_writer(plan))


# Reader


def _compile_reader(root: Root, *, as_python: bool) -> Callable[[bytes], Any]:
    """Compile the function that decodes payloads into the storage form (see `arrow_types`), or into Python's own types.

    Fields are matched by number, whichever version wrote them. The function raises Unreadable.
    """
    from google.protobuf.message import DecodeError

    message_class, name = root.message_class, root.shape.full_name
    read = _ReaderCompiler(as_python=as_python).compile_message(root.shape)

    def read_payload(payload: bytes) -> Any:
        message = message_class()
        try:
            message_class.ParseFromString(message, payload)
        except DecodeError:
            _raise_first_fault(payload, message_class.DESCRIPTOR)
            raise Unreadable(f"the bytes are not a message {name}") from None
        if not message_class.IsInitialized(message):
            _raise_first_fault(payload, message_class.DESCRIPTOR)
            missing = ", ".join(_find_missing_fields(message))
            raise Unreadable(f"required fields are missing: {missing}")
        try:
            return read(message)
        except Unreadable:
            # For text that is not UTF-8, this also finds the byte.
            _raise_first_fault(payload, message_class.DESCRIPTOR)
            raise

    return read_payload


class _ReaderCompiler:
    """Compiles shapes to functions that convert parsed messages; None where a value needs no conversion."""

    def __init__(self, *, as_python: bool) -> None:
        self._as_python = as_python
        self._messages: dict[int, _Read] = {}

    def compile_message(self, shape: Message) -> _Read:
        # Compiled once, because a recursive message has the same shape in many places.
        if id(shape) in self._messages:
            return self._messages[id(shape)]
        parts = [(part.name, self._compile_part(part)) for part in shape.parts]

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

        self._messages[id(shape)] = read_message
        return read_message

    def _compile_part(self, part: MessagePart) -> _Read:
        name = part.name
        read = self._compile_value(part.shape)
        if part.key is not None:
            return self._compile_map(name, self._compile_value(part.key), read)
        if part.repeated:
            if read is None:
                return lambda message: list(getattr(message, name))
            return lambda message: [read(item) for item in getattr(message, name)]
        if part.presence and part.default is None:
            if read is None:
                return lambda message: getattr(message, name) if _has_field(message, name) else None
            return lambda message: read(getattr(message, name)) if _has_field(message, name) else None
        if read is None:
            return lambda message: getattr(message, name)
        return lambda message: read(getattr(message, name))

    def _compile_map(self, name: str, read_key: _Read | None, read_value: _Read | None) -> _Read:
        collect: Callable[[Any], Any] = dict if self._as_python else list

        def read_entries(message: Any) -> Any:
            entries = getattr(message, name)
            try:
                # A map has no order, and equal messages have to give equal values.
                keys = sorted(entries)
            except TypeError:
                raise Unreadable("text that is not UTF-8") from None
            # Not with `items()`, whose lookups add keys that are missing.
            return collect(
                (read_key(key) if read_key else key, read_value(entries[key]) if read_value else entries[key])
                for key in keys
            )

        return read_entries

    def _compile_value(self, shape: Shape) -> _Read | None:
        match shape:
            case Message():
                return self.compile_message(shape)
            case Moment():
                if not self._as_python:
                    return _read_micros
                convert = TO_PYTHON[shape.type]
                return lambda moment: convert(_read_micros(moment))
            case Scalar(kind="enum"):
                names = shape.names or {}
                # A number without a name becomes its digits.
                return lambda number: names.get(number) or str(number)
            case Scalar() if pa.types.is_decimal(shape.type):
                return None if self._as_python else decimal.Decimal
            case Scalar(any_bytes=True):

                def read_text(value: str | bytes) -> str:
                    # protobuf returns text of proto2 that is not UTF-8 as bytes.
                    if isinstance(value, bytes):
                        raise Unreadable("text that is not UTF-8")
                    return value

                return read_text
            case Scalar():
                return None


def _read_micros(moment: Any) -> int:
    """Return the microseconds of a Timestamp or Duration; further digits are truncated."""
    seconds: int = moment.seconds
    nanos: int = moment.nanos
    low, high = LIMITS["long"]
    micros = seconds * SECOND_MICROS + nanos // 1000
    if not low <= micros <= high:
        raise Unreadable(f"{seconds} seconds do not fit 64 bits as microseconds")
    return micros


def _has_field(message: Any, name: str) -> bool:
    """Return whether a field is set."""
    # Called on the class, because a field may have the name of the method.
    is_set: bool = type(message).HasField(message, name)
    return is_set


def _find_missing_fields(message: Any) -> Iterator[str]:
    """Yield the paths of the required fields that a message lacks. All texts of the message have to be UTF-8.

    protobuf's own search for them crashes on nested messages.
    """
    for field in type(message).DESCRIPTOR.fields:
        if field.is_required and not _has_field(message, field.name):
            yield field.name
    for field, value in type(message).ListFields(message):
        entry = field.message_type
        if entry is None:
            continue
        name = f"({field.full_name})" if field.is_extension else field.name
        if entry.GetOptions().map_entry:
            if entry.fields_by_name["value"].message_type is not None:
                for key in value:
                    yield from (f"{name}[{key!r}].{path}" for path in _find_missing_fields(value[key]))
        elif field.is_repeated:
            for index, item in enumerate(value):
                yield from (f"{name}[{index}].{path}" for path in _find_missing_fields(item))
        else:
            yield from (f"{name}.{path}" for path in _find_missing_fields(value))


# Faults in damaged bytes


def _raise_first_fault(payload: bytes, descriptor: Any) -> None:
    """Raise Unreadable for the first fault in a payload, with its byte and field. Return if the payload has no fault."""
    _FaultFinder(payload).check_message(descriptor, 0, len(payload), depth=0, group=None)


class _FaultFinder:
    """Walks through a payload, and raises Unreadable for the first fault."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def check_message(self, descriptor: Any, at: int, end: int, *, depth: int, group: int | None) -> int:
        """Check the fields of a message, or of the group with the number `group`, and return the position after them."""
        if depth > _MAX_DEPTH:
            raise Unreadable(f"messages are nested deeper than {_MAX_DEPTH}", at)
        while at < end:
            start = at
            tag, at = decode_varint(self._payload, at, end)
            number, wire = tag >> 3, tag & 7
            if not 0 < number < 2**29:
                raise Unreadable(f"{number} is not a field number", start)
            if wire == _END:
                if number != group:
                    raise Unreadable(f"the group {number} ends without a start", start)
                return at
            field = descriptor.fields_by_number.get(number) if descriptor is not None else None
            try:
                at = self._check_value(field, number, wire, at, end, depth)
            except Unreadable as error:
                error.prepend_path(field.name if field is not None else f"field {number}")
                raise
        if group is not None:
            raise Unreadable(f"the message ends inside the group {group}", at)
        return at

    def _check_value(self, field: Any, number: int, wire: int, at: int, end: int, depth: int) -> int:
        if wire == _VARINT:
            return decode_varint(self._payload, at, end)[1]
        if wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
            if end - at < size:
                raise Unreadable(f"{size} bytes are expected, {end - at} are left", at)
            return at + size
        if wire == _START:
            inner = field.message_type if field is not None and get_type_name(field) == "group" else None
            return self.check_message(inner, at, end, depth=depth + 1, group=number)
        if wire != _SIZED:
            raise Unreadable(f"there is no wire type {wire}", at)
        size, start = decode_varint(self._payload, at, end)
        if size > end - start:
            raise Unreadable(f"a length of {size} bytes, but {end - start} are left", at)
        stop = start + size
        if field is None:
            return stop
        kind = get_type_name(field)
        if kind == "message":
            self.check_message(field.message_type, start, stop, depth=depth + 1, group=None)
        elif kind == "string":
            try:
                self._payload[start:stop].decode()
            except UnicodeDecodeError as error:
                raise Unreadable("text that is not UTF-8", start + error.start) from None
        elif field.is_repeated and kind not in ("bytes", "group"):
            item_size = _PACKED_SIZES.get(kind)
            if item_size is not None and size % item_size:
                raise Unreadable(f"{size} bytes are not a multiple of items of {item_size} bytes", start)
            while item_size is None and start < stop:
                start = decode_varint(self._payload, start, stop)[1]
        return stop


# Writer


class _WriterCompiler:
    """Compiles shapes to functions that fill messages."""

    def __init__(self) -> None:
        self._messages: dict[int, _Fill] = {}

    def compile_message(self, shape: Message, descriptor: Any) -> _Fill:
        # Compiled once, because a recursive message has the same shape in many places.
        if id(shape) in self._messages:
            return self._messages[id(shape)]
        parts = {
            part.name: (part, self._compile_part(part, descriptor.fields_by_name[part.name])) for part in shape.parts
        }

        def fill(message: Any, value: Any) -> None:
            check_fields(value, parts.keys(), shape.full_name)
            names_by_oneof: dict[str, str] = {}
            for name, field in value.items():
                if field is None:
                    continue
                part, fill_field = parts[name]
                if part.oneof is not None and names_by_oneof.setdefault(part.oneof, name) != name:
                    raise Unwritable(f"only one of {names_by_oneof[part.oneof]} and {name} can be set ({part.oneof})")
                try:
                    fill_field(message, field)
                except Unwritable as error:
                    error.prepend_path(name)
                    raise

        self._messages[id(shape)] = fill
        return fill

    def _compile_part(self, part: MessagePart, field: Any) -> _Fill:
        name, key, shape = part.name, part.key, part.shape
        value_field = field if key is None else field.message_type.fields_by_name["value"]
        # A scalar is assigned, and a message is filled in place.
        fit = _make_scalar_fit(shape) if isinstance(shape, Scalar) else None
        fill: _Fill | None = None
        if isinstance(shape, Moment):
            fill = _compile_moment(shape.type)
        elif isinstance(shape, Message):
            fill = self.compile_message(shape, value_field.message_type)

        if key is not None:
            fit_key = _make_scalar_fit(key)

            def fill_map(message: Any, value: Any) -> None:
                entries = getattr(message, name)
                for entry_key, item in list_entries(value):
                    try:
                        if fit is not None:
                            entries[fit_key(entry_key)] = fit(item)
                        elif fill is not None:
                            fill(entries[fit_key(entry_key)], item)
                    except Unwritable as error:
                        error.prepend_path(f"[{entry_key!r}]")
                        raise

            return fill_map

        if part.repeated:

            def fill_list(message: Any, value: Any) -> None:
                items = getattr(message, name)
                for index, item in enumerate(check_list(value)):
                    try:
                        if fit is not None:
                            items.append(fit(item))
                        elif fill is not None:
                            fill(items.add(), item)
                    except Unwritable as error:
                        error.prepend_path(f"[{index}]")
                        raise

            return fill_list

        def fill_field(message: Any, value: Any) -> None:
            if fit is not None:
                setattr(message, name, fit(value))
            elif fill is not None:
                inner = getattr(message, name)
                type(inner).SetInParent(inner)
                fill(inner, value)

        return fill_field


def _make_scalar_fit(shape: Scalar) -> _Fit:
    kind = shape.kind
    if kind == "enum":
        numbers = {name: number for number, name in (shape.names or {}).items()}

        def fit_enum(value: Any) -> int:
            if isinstance(value, str):
                if value in numbers:
                    return numbers[value]
                # A number without a name is decoded to its digits.
                if shape.open_enum and _DIGITS.fullmatch(value) and -(2**31) <= int(value) < 2**31:
                    return int(value)
            raise Unwritable(f"{value!r} is not one of {', '.join(numbers)}")

        return fit_enum

    if kind not in _RANGES:
        return PLAIN["boolean" if kind == "bool" else kind]
    low, high = _RANGES[kind]

    def fit_integer(value: Any) -> int:
        if isinstance(value, decimal.Decimal) and value.is_finite() and value == value.to_integral_value():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise Unwritable(f"expected a whole number, found {value!r}")
        if not low <= value <= high:
            raise Unwritable(f"{value!r} is out of the range of {kind}")
        return value

    return fit_integer


def _compile_moment(kind: pa.DataType) -> _Fill:
    convert = TO_STORAGE[kind]
    low, high = LIMITS["long"]

    def fill(message: Any, value: Any) -> None:
        micros = convert(value)
        if not low <= micros <= high:
            raise Unwritable(f"{micros} microseconds do not fit 64 bits")
        # Seconds and nanoseconds of a Duration have the same sign (google/protobuf/duration.proto).
        sign = -1 if micros < 0 and kind == DURATION else 1
        seconds, rest = divmod(sign * micros, SECOND_MICROS)
        message.seconds, message.nanos = sign * seconds, sign * rest * 1000

    return fill
