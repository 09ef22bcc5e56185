"""Validate, convert and write single values: between Python's own types, such as `datetime`, and the form in which columns store them.

A value comes in the form that reading gives (or as `datetime` objects, numbers, dicts).
"""

from __future__ import annotations

import decimal
import math
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

import pyarrow as pa

from .arrow_types import DURATION, TIME, TIMESTAMP, TIMESTAMP_NTZ, Choice, Group, Leaf, Repeated, Shape
from .avro_schema import (
    NO_DEFAULT,
    ArrayType,
    DecimalType,
    EnumType,
    FixedType,
    PrimitiveType,
    RecordField,
    RecordType,
    UnionType,
)
from .definition import MAX_KEY_LENGTH, Unreadable, Unwritable, shorten

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_NTZ: Final = datetime(1970, 1, 1)  # noqa: DTZ001  a local date-time has no zone
_EPOCH_DAY: Final = EPOCH.toordinal()
DAY_MICROS: Final = 86_400_000_000
MAX_MILLIS: Final = (2**63 - 1) // 1000
"""Milliseconds that fit 64 bits as microseconds, too."""

LIMITS: Final = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}

EXACT: Final = decimal.Context(prec=100)
"""Wide enough for every decimal that a column holds, so that nothing is rounded."""

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")

Convert = Callable[[Any], Any]


def decode_text(raw: bytes) -> str:
    """Decode UTF-8 as Java's strings do, with U+FFFD for what is none: one for a surrogate, where Python has one a byte."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", raw).decode(errors="replace")


class Scale(NamedTuple):
    """Which whole numbers a schema's values may be, and how many of the column's units make one of the schema's."""

    low: int
    high: int
    factor: int


def scale_of(shape: Leaf) -> Scale:
    """Return the scale of a leaf that is an int or a long."""
    logical = None if isinstance(shape.schema, EnumType) else shape.schema.logical
    if logical in ("timestamp-millis", "local-timestamp-millis"):
        return Scale(-MAX_MILLIS, MAX_MILLIS, 1000)
    if shape.type == TIME:
        return Scale(0, DAY_MICROS - 1, 1000)
    return Scale(*LIMITS[shape.schema.type], 1)


def get_python_converter(arrow_type: pa.DataType) -> Convert | None:
    """Return what makes of the storage form one of Python's own types; None where they are the same."""
    return _TO_PYTHON.get(arrow_type)


def get_storage_converter(arrow_type: pa.DataType) -> Convert | None:
    """Return what makes of Python's own types the storage form, which a number is already, but for times; None where they are the same."""
    return _TO_STORAGE.get(arrow_type)


def _within_years(epoch: datetime, micros: int) -> datetime:
    try:
        return epoch + timedelta(microseconds=micros)
    except OverflowError:
        raise Unreadable(f"{micros} microseconds since 1970 lie outside the years 1 to 9999 of Python") from None


def _date(days: int) -> date:
    try:
        return date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise Unreadable(f"{days} days since 1970 lie outside the years 1 to 9999 of Python") from None


def _time(nanos: int) -> time:
    return (EPOCH_NTZ + timedelta(microseconds=nanos // 1000)).time()


def _duration(micros: int) -> timedelta:
    try:
        return timedelta(microseconds=micros)
    except OverflowError:
        raise Unreadable(f"{micros} microseconds are longer than Python's timedelta") from None


def _from_datetime(epoch: datetime, value: Any) -> int:
    if not isinstance(value, datetime):
        return _number(value, "a datetime")
    if value.tzinfo is None and epoch.tzinfo is not None:
        raise Unwritable(f"{value.isoformat()} has no time zone, and a timestamp is a point in time")
    if value.tzinfo is not None and epoch.tzinfo is None:
        raise Unwritable(f"{value.isoformat()} has a time zone, and a local timestamp has none")
    return (value - epoch) // timedelta(microseconds=1)


def _from_date(value: Any) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - _EPOCH_DAY
    return _number(value, "a date")


def _from_time(value: Any) -> int:
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return (seconds * 1_000_000 + value.microsecond) * 1000
    # Spark counts a day's microseconds, these columns its nanoseconds: a number may be either.
    raise Unwritable(f"expected a time, found {value!r}")


def _from_duration(value: Any) -> int:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return _number(value, "a timedelta")


def _number(value: Any, expected: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Unwritable(f"expected {expected}, found {value!r}")


_TO_PYTHON: Final[dict[pa.DataType, Convert]] = {
    TIMESTAMP: partial(_within_years, EPOCH),
    TIMESTAMP_NTZ: partial(_within_years, EPOCH_NTZ),
    pa.date32(): _date,
    TIME: _time,
    DURATION: _duration,
}

_TO_STORAGE: Final[dict[pa.DataType, Convert]] = {
    TIMESTAMP: partial(_from_datetime, EPOCH),
    TIMESTAMP_NTZ: partial(_from_datetime, EPOCH_NTZ),
    pa.date32(): _from_date,
    TIME: _from_time,
    DURATION: _from_duration,
}


# Validation and writing, shared by Avro's binary form and JSON


Fit = Callable[[Any], Any]
"""From a value to its ready form: a time in the schema's own unit, a decimal as its unscaled number; raises Unwritable."""

_ABSENT: Final = object()
"""What a record does not have."""

_FLOAT: Final = struct.Struct("<f")

Piece = TypeVar("Piece", str, bytes)


class ShapeWriter(ABC, Generic[Piece]):
    """Makes the functions that write values of a shape; `null` is how a null is written."""

    null: Piece

    @abstractmethod
    def leaf(self, shape: Leaf) -> Callable[[Any], Piece]:
        """Write what `Fit` makes of a value without parts."""

    @abstractmethod
    def default(self, part: RecordField) -> Piece:
        """Return what stands for a field that is absent, and has a default."""

    @abstractmethod
    def record(self, schema: RecordType) -> Callable[[list[Piece]], Piece]:
        """Write a record of its fields' values."""

    @abstractmethod
    def items(self, pieces: list[Piece]) -> Piece:
        """Write a list of its items."""

    @abstractmethod
    def entries(self, pieces: list[tuple[str, Piece]]) -> Piece:
        """Write a map."""

    @abstractmethod
    def branch(self, index: int, piece: Piece) -> Piece:
        """Write the value of a union."""

    def writer(self, shape: Shape) -> Callable[[Any], Piece]:
        """Write values in the form that reading with the same shape gives; raises Unwritable for any other."""
        match shape:
            case Group():
                return self._record(shape)
            case Repeated():
                part = self.writer(shape.part)
                return self._list(part) if isinstance(shape.schema, ArrayType) else self._map(part)
            case Choice():
                return self._union(shape)
            case Leaf():
                fit, write = _leaf(shape), self.leaf(shape)
                return lambda value: write(fit(value))

    def _record(self, shape: Group) -> Callable[[Any], Piece]:
        schema = shape.schema
        parts = [
            (part.name, self._field(part, shape), None if part.default is NO_DEFAULT else self.default(part))
            for part in schema.fields
        ]
        names = frozenset(part.name for part in schema.fields)
        write_all = self.record(schema)

        def write_record(value: Any) -> Piece:
            if not isinstance(value, Mapping):
                raise Unwritable(f"expected the fields of {schema.full_name}, found {value!r}")
            unknown = value.keys() - names
            if unknown:
                raise Unwritable(f"{schema.full_name} has no field {', '.join(sorted(map(str, unknown)))}")
            pieces = []
            name = ""
            try:
                for name, write, default in parts:
                    held = value.get(name, _ABSENT)
                    pieces.append(write(held) if default is None or held is not _ABSENT else default)
            except Unwritable as error:
                error.prepend_path(name)
                raise
            return write_all(pieces)

        return write_record

    def _field(self, part: RecordField, shape: Group) -> Callable[[Any], Piece]:
        if part.name in shape.fields:
            write = self.writer(shape.fields[part.name])

            def write_given(value: Any) -> Piece:
                if value is _ABSENT:
                    raise Unwritable("absent, and it has no default")
                return write(value)

            return write_given

        def write_cut(value: Any) -> Piece:
            kinds = [branch.type for branch in part.schema.branches] if isinstance(part.schema, UnionType) else []
            if (value is None or value is _ABSENT) and "null" in kinds:
                return self.branch(kinds.index("null"), self.null)
            raise Unwritable("nested deeper than the recursion depth of the columns")

        return write_cut

    def _list(self, part: Callable[[Any], Piece]) -> Callable[[Any], Piece]:
        def write_list(value: Any) -> Piece:
            pieces: list[Piece] = []
            held = check_list(value)
            try:
                for item in held:
                    pieces.append(part(item))  # noqa: PERF401  the length is the place of an error
            except Unwritable as error:
                error.prepend_path(f"[{len(pieces)}]")
                raise
            return self.items(pieces)

        return write_list

    def _map(self, part: Callable[[Any], Piece]) -> Callable[[Any], Piece]:
        def write_map(value: Any) -> Piece:
            pieces = []
            key = None
            held = list_entries(value)
            try:
                for key, item in held:
                    pieces.append((check_text(key), part(item)))
            except Unwritable as error:
                error.prepend_path(f"[{shorten(repr(key), MAX_KEY_LENGTH)}]")
                raise
            return self.entries(pieces)

        return write_map

    def _union(self, shape: Choice) -> Callable[[Any], Piece]:
        kinds = [branch.type for branch in shape.schema.branches]
        branches = [
            (member, index, self.writer(part))
            for index, (member, part) in enumerate(zip(shape.members, shape.branches, strict=True))
            if part is not None
        ]
        members = {member: (index, write) for member, index, write in branches if member is not None}

        def write_union(value: Any) -> Piece:
            if value is None:
                if "null" not in kinds:
                    raise Unwritable("null, and the union has no null")
                return self.branch(kinds.index("null"), self.null)
            if members:
                name = _only_member(members, value)
                index, write = members[name]
                return self.branch(index, write(value[name]))
            # One branch; or two, of which the wider takes what the narrower does not hold exactly.
            problem = Unwritable(f"no branch of the union fits {value!r}")
            for _, index, write in branches:
                if len(branches) > 1 and kinds[index] == "float" and not _is_float(value):
                    continue
                try:
                    return self.branch(index, write(value))
                except Unwritable as error:
                    problem = error
            raise problem

        return write_union


def to_unscaled(value: decimal.Decimal, logical: DecimalType) -> int:
    """Return the number as its last digit counts it.

    Raises Unwritable: it is not finite, or has more digits than the type holds, before the point or behind.
    """
    if not value.is_finite():
        raise Unwritable(f"{value} is no decimal")
    if value and not -100 < value.adjusted() < 100:
        raise Unwritable(f"{value} is out of the range of a decimal of {logical.precision} digits")
    scaled = value.scaleb(logical.scale, EXACT)
    if scaled != scaled.to_integral_value():
        raise Unwritable(f"{value} has more than {logical.scale} digits after the decimal point")
    if scaled.copy_abs() >= 10**logical.precision:
        raise Unwritable(f"{value} has more than {logical.precision} digits")
    return int(scaled)


def check_list(value: Any) -> Sequence[Any]:
    """Return a list's items. Raises Unwritable: it is no list."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray | memoryview):
        raise Unwritable(f"expected a list, found {value!r}")
    return value


def list_entries(value: Any) -> list[tuple[Any, Any]]:
    """Return a map's entries, from a dict or from the list of pairs that Arrow makes of one. Raises Unwritable: it is neither."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return value
    raise Unwritable(f"expected a dict, found {value!r}")


def _is_float(value: Any) -> bool:
    """Whether 32 bits hold the number exactly."""
    if not isinstance(value, float) or not math.isfinite(value):
        return True
    try:
        held: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return False
    return held == value


def _only_member(members: Collection[str], value: Any) -> str:
    if isinstance(value, Mapping) and value.keys() <= set(members):
        given = [name for name, held in value.items() if held is not None]
        if len(given) == 1:
            return str(given[0])
    raise Unwritable(f"expected exactly one of {', '.join(members)}, found {value!r}")


def _leaf(shape: Leaf) -> Fit:
    schema = shape.schema
    if isinstance(schema, EnumType):
        return _enum(schema)
    if isinstance(schema.logical, DecimalType):
        return _decimal(schema.logical)
    if isinstance(schema, FixedType):
        return _fixed(schema.size)
    return _integer(schema, shape) if schema.type in LIMITS else PLAIN[schema.type]


def _integer(schema: PrimitiveType, shape: Leaf) -> Fit:
    low, high = LIMITS[schema.type]
    factor = scale_of(shape).factor
    convert = get_storage_converter(shape.type)

    def whole(value: Any) -> Any:
        number = value if convert is None else convert(value)
        if not isinstance(number, int) or isinstance(number, bool):
            raise Unwritable(f"expected a whole number, found {value!r}")
        number //= factor
        if not low <= number <= high:
            raise Unwritable(f"{value!r} is out of the range of {schema.type}")
        return number

    return whole


def _enum(schema: EnumType) -> Fit:
    symbols = frozenset(schema.symbols)

    def symbol(value: Any) -> Any:
        if not isinstance(value, str) or value not in symbols:
            raise Unwritable(f"{value!r} is no symbol of {schema.full_name}: {', '.join(schema.symbols)}")
        return value

    return symbol


def _decimal(logical: DecimalType) -> Fit:
    def number(value: Any) -> Any:
        if not isinstance(value, decimal.Decimal | int) or isinstance(value, bool):
            raise Unwritable(f"expected a decimal, found {value!r}")
        return to_unscaled(decimal.Decimal(value), logical)

    return number


def _fixed(size: int) -> Fit:
    def sized(value: Any) -> Any:
        if not isinstance(value, bytes | bytearray | memoryview) or len(bytes(value)) != size:
            raise Unwritable(f"expected {size} bytes, found {value!r}")
        return bytes(value)

    return sized


def _null(value: Any) -> None:
    if value is not None:
        raise Unwritable(f"expected null, found {value!r}")


def _boolean(value: Any) -> Any:
    if not isinstance(value, bool):
        raise Unwritable(f"expected true or false, found {value!r}")
    return value


def _floating(kind: str, packed: struct.Struct) -> Fit:
    def number(value: Any) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise Unwritable(f"expected a number, found {value!r}")
        try:
            packed.pack(value)
        except (struct.error, OverflowError):
            raise Unwritable(f"{value!r} is out of the range of {kind}") from None
        return float(value)

    return number


def check_text(value: Any) -> str:
    """Return the text, if it can be written as UTF-8."""
    if not isinstance(value, str):
        raise Unwritable(f"expected text, found {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unwritable(f"{value!r} has half a character (a lone surrogate)") from None
    return value


def raw(value: Any) -> bytes:
    """Return the bytes."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise Unwritable(f"expected bytes, found {value!r}")
    return bytes(value)


PLAIN: Final[dict[str, Fit]] = {
    "null": _null,
    "boolean": _boolean,
    "float": _floating("float", _FLOAT),
    "double": _floating("double", struct.Struct("<d")),
    "string": check_text,
    "bytes": raw,
}
"""For types that have no parts and need no more than their name, in Avro and in protobuf."""
