"""Validate single values, and convert them between Python's own types, such as `datetime`, and the storage form (see `arrow_types`).

`ShapeWriter` is the base of the writers of Avro's binary form and of JSON.
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
    MapType,
    RecordField,
    RecordType,
    UnionType,
)
from .definition import MAX_KEY_LENGTH, Unreadable, Unwritable, shorten

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_NTZ: Final = datetime(1970, 1, 1)  # noqa: DTZ001  a local date-time has no zone
EPOCH_DAY: Final = EPOCH.toordinal()
SECOND_MICROS: Final = 1_000_000
DAY_MICROS: Final = 86_400 * SECOND_MICROS
MAX_MILLIS: Final = (2**63 - 1) // 1000
"""The maximum number of milliseconds that fits 64 bits as microseconds."""

MAX_SECONDS: Final = (2**63 - 1) // SECOND_MICROS - 1
"""The maximum number of seconds that fits 64 bits as microseconds, with any nanoseconds."""

LIMITS: Final = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
"""The minimum and maximum of Avro's integers."""

EXACT: Final = decimal.Context(prec=100)
"""A context with enough digits for every decimal of a column, so that nothing is rounded."""

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""A surrogate in UTF-8, where surrogates are invalid."""

_ABSENT: Final = object()
"""The value of a field that a record does not have."""

_FLOAT: Final = struct.Struct("<f")

Convert = Callable[[Any], Any]

Fit = Callable[[Any], Any]
"""Validates a value and converts it to the form to write: a time in the schema's unit, an unscaled decimal; raises Unwritable."""

Piece = TypeVar("Piece", str, bytes)


# Validation and writing of values of a shape


class ShapeWriter(ABC, Generic[Piece]):
    """Makes the functions that write values of a shape as pieces of text or bytes.

    Attributes:
        null: the piece of a null.
    """

    null: Piece

    def __init__(self) -> None:
        self._records: dict[int, Callable[[Any], Piece]] = {}

    @abstractmethod
    def make_leaf_writer(self, shape: Leaf) -> Callable[[Any], Piece]:
        """Make the function that writes a leaf, after `Fit` has validated and converted it."""

    @abstractmethod
    def write_default(self, part: RecordField) -> Piece:
        """Write a field that is absent and has a default."""

    @abstractmethod
    def make_record_joiner(self, schema: RecordType) -> Callable[[list[Piece]], Piece]:
        """Make the function that joins the fields of a record."""

    @abstractmethod
    def write_items(self, pieces: list[Piece]) -> Piece:
        """Join the items of an array."""

    @abstractmethod
    def write_entries(self, pieces: list[tuple[str, Piece]]) -> Piece:
        """Join the entries of a map."""

    @abstractmethod
    def write_branch(self, index: int, piece: Piece) -> Piece:
        """Write a value of the branch `index` of a union."""

    def make_writer(self, shape: Shape) -> Callable[[Any], Piece]:
        """Make the function that writes values in the form in which they are read; it raises Unwritable for other values."""
        match shape:
            case Group():
                # Made once, because a recursive record has the same shape in many places.
                if id(shape) not in self._records:
                    self._records[id(shape)] = self._make_record_writer(shape)
                return self._records[id(shape)]
            case Repeated():
                return self._make_list_writer(shape)
            case Choice():
                return self._make_union_writer(shape)
            case Leaf():
                fit, write = _make_fit(shape), self.make_leaf_writer(shape)
                return lambda value: write(fit(value))

    def _make_record_writer(self, shape: Group) -> Callable[[Any], Piece]:
        schema = shape.schema
        parts = [
            (
                part.name,
                self._make_field_writer(part, shape),
                None if part.default is NO_DEFAULT else self.write_default(part),
            )
            for part in schema.fields
        ]
        names = frozenset(part.name for part in schema.fields)
        join_fields = self.make_record_joiner(schema)

        def write_record(value: Any) -> Piece:
            check_fields(value, names, schema.full_name)
            pieces = []
            name = ""
            try:
                for name, write, default in parts:
                    field = value.get(name, _ABSENT)
                    pieces.append(write(field) if default is None or field is not _ABSENT else default)
            except Unwritable as error:
                error.prepend_path(name)
                raise
            return join_fields(pieces)

        return write_record

    def _make_field_writer(self, part: RecordField, shape: Group) -> Callable[[Any], Piece]:
        if part.name in shape.fields:
            write = self.make_writer(shape.fields[part.name])

            def write_present(value: Any) -> Piece:
                if value is _ABSENT:
                    raise Unwritable("absent, and it has no default")
                return write(value)

            return write_present

        def write_cut(value: Any) -> Piece:
            kinds = [branch.type for branch in part.schema.branches] if isinstance(part.schema, UnionType) else []
            if (value is None or value is _ABSENT) and "null" in kinds:
                return self.write_branch(kinds.index("null"), self.null)
            if value is _ABSENT and isinstance(part.schema, ArrayType):
                return self.write_items([])
            if value is _ABSENT and isinstance(part.schema, MapType):
                return self.write_entries([])
            raise Unwritable("nested deeper than the recursion depth of the columns")

        return write_cut

    def _make_list_writer(self, shape: Repeated) -> Callable[[Any], Piece]:
        write_item = self.make_writer(shape.part)

        def write_list(value: Any) -> Piece:
            pieces: list[Piece] = []
            items = check_list(value)
            try:
                for item in items:
                    pieces.append(write_item(item))  # noqa: PERF401  the length is the place of an error
            except Unwritable as error:
                error.prepend_path(f"[{len(pieces)}]")
                raise
            return self.write_items(pieces)

        def write_map(value: Any) -> Piece:
            pieces = []
            key = None
            entries = list_entries(value)
            try:
                for key, item in entries:
                    pieces.append((check_text(key), write_item(item)))
            except Unwritable as error:
                error.prepend_path(f"[{shorten(repr(key), MAX_KEY_LENGTH)}]")
                raise
            return self.write_entries(pieces)

        return write_list if isinstance(shape.schema, ArrayType) else write_map

    def _make_union_writer(self, shape: Choice) -> Callable[[Any], Piece]:
        kinds = [branch.type for branch in shape.schema.branches]
        branches = [
            (member, index, self.make_writer(part))
            for index, (member, part) in enumerate(zip(shape.members, shape.branches, strict=True))
            if part is not None
        ]
        members = {member: (index, write) for member, index, write in branches if member is not None}

        def write_union(value: Any) -> Piece:
            if value is None:
                if "null" not in kinds:
                    raise Unwritable("null, and the union has no null")
                return self.write_branch(kinds.index("null"), self.null)
            if members:
                is_struct = isinstance(value, Mapping) and value.keys() <= members.keys()
                names = [name for name, member in value.items() if member is not None] if is_struct else []
                if len(names) != 1:
                    raise Unwritable(f"expected exactly one of {', '.join(members)}, found {value!r}")
                index, write = members[names[0]]
                return self.write_branch(index, write(value[names[0]]))
            # There is one branch, or two numeric ones, of which the wider takes the numbers that the narrower cannot represent exactly.
            problem = Unwritable(f"no branch of the union fits {value!r}")
            for _, index, write in branches:
                if len(branches) > 1 and kinds[index] == "float" and not _fits_float(value):
                    continue
                try:
                    return self.write_branch(index, write(value))
                except Unwritable as error:
                    problem = error
            raise problem

        return write_union


def _fits_float(value: Any) -> bool:
    """Return whether 32 bits represent the number exactly."""
    if not isinstance(value, float) or not math.isfinite(value):
        return True
    try:
        rounded: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return False
    return rounded == value


def _make_fit(shape: Leaf) -> Fit:
    """Make the validation of a leaf by its type."""
    schema = shape.schema
    if isinstance(schema, EnumType):
        symbols = frozenset(schema.symbols)

        def fit_symbol(value: Any) -> Any:
            if not isinstance(value, str) or value not in symbols:
                raise Unwritable(f"{value!r} is not a symbol of {schema.full_name}: {', '.join(schema.symbols)}")
            return value

        return fit_symbol

    if isinstance(schema.logical, DecimalType):
        logical = schema.logical

        def fit_decimal(value: Any) -> Any:
            if not isinstance(value, decimal.Decimal | int) or isinstance(value, bool):
                raise Unwritable(f"expected a decimal, found {value!r}")
            return to_unscaled(decimal.Decimal(value), logical)

        return fit_decimal

    if isinstance(schema, FixedType):
        size = schema.size

        def fit_fixed(value: Any) -> Any:
            if not isinstance(value, bytes | bytearray | memoryview) or len(bytes(value)) != size:
                raise Unwritable(f"expected {size} bytes, found {value!r}")
            return bytes(value)

        return fit_fixed

    if schema.type not in LIMITS:
        return PLAIN[schema.type]

    low, high = LIMITS[schema.type]
    factor = get_scale(shape).factor
    convert = TO_STORAGE.get(shape.type)

    def fit_integer(value: Any) -> Any:
        number = value if convert is None else convert(value)
        if not isinstance(number, int) or isinstance(number, bool):
            raise Unwritable(f"expected a whole number, found {value!r}")
        number //= factor
        if not low <= number <= high:
            raise Unwritable(f"{value!r} is out of the range of {schema.type}")
        return number

    return fit_integer


def to_unscaled(value: decimal.Decimal, logical: DecimalType) -> int:
    """Return the unscaled integer of a decimal.

    Raises:
        Unwritable: the number is not finite, or has too many digits before or after the decimal point.
    """
    if not value.is_finite():
        raise Unwritable(f"{value} is not a decimal")
    if value and not -100 < value.adjusted() < 100:
        raise Unwritable(f"{value} is out of the range of a decimal of {logical.precision} digits")
    scaled = value.scaleb(logical.scale, EXACT)
    if scaled != scaled.to_integral_value():
        raise Unwritable(f"{value} has more than {logical.scale} digits after the decimal point")
    if scaled.copy_abs() >= 10**logical.precision:
        raise Unwritable(f"{value} has more than {logical.precision} digits")
    return int(scaled)


def _make_floating_fit(kind: str, packed: struct.Struct) -> Fit:
    def fit_number(value: Any) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise Unwritable(f"expected a number, found {value!r}")
        try:
            packed.pack(value)
        except (struct.error, OverflowError):
            raise Unwritable(f"{value!r} is out of the range of {kind}") from None
        return float(value)

    return fit_number


def _check_null(value: Any) -> None:
    if value is not None:
        raise Unwritable(f"expected null, found {value!r}")


def _check_boolean(value: Any) -> Any:
    if not isinstance(value, bool):
        raise Unwritable(f"expected true or false, found {value!r}")
    return value


def check_text(value: Any) -> str:
    """Return the value if it is a text that can be written as UTF-8. Raises Unwritable if it is not."""
    if not isinstance(value, str):
        raise Unwritable(f"expected text, found {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unwritable(f"{value!r} contains a lone surrogate (half a character)") from None
    return value


def check_bytes(value: Any) -> bytes:
    """Return the value as bytes. Raises Unwritable if it is not bytes."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise Unwritable(f"expected bytes, found {value!r}")
    return bytes(value)


PLAIN: Final[dict[str, Fit]] = {
    "null": _check_null,
    "boolean": _check_boolean,
    "float": _make_floating_fit("float", _FLOAT),
    "double": _make_floating_fit("double", struct.Struct("<d")),
    "string": check_text,
    "bytes": check_bytes,
}
"""The validation of types without attributes, by name, in Avro and protobuf."""


def check_fields(value: Any, names: Collection[str], record: str) -> None:
    """Raise Unwritable if the value is not a mapping, or has a field that is not among the `names` of the fields of `record`."""
    if not isinstance(value, Mapping):
        raise Unwritable(f"expected the fields of {record}, found {value!r}")
    unknown = value.keys() - names
    if unknown:
        raise Unwritable(f"{record} has no field {', '.join(sorted(map(str, unknown)))}")


def check_list(value: Any) -> Sequence[Any]:
    """Return the value if it is a list. Raises Unwritable if it is not."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray | memoryview):
        raise Unwritable(f"expected a list, found {value!r}")
    return value


def list_entries(value: Any) -> list[tuple[Any, Any]]:
    """Return the entries of a map, which is a dict or the list of pairs that Arrow returns. Raises Unwritable for other values."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return value
    raise Unwritable(f"expected a dict, found {value!r}")


# Text


def decode_text(raw: bytes) -> str:
    """Decode UTF-8 as Java does, with U+FFFD for invalid bytes: one for a whole surrogate, where Python has one for each byte."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", raw).decode(errors="replace")


# Numbers of dates and times


class Scale(NamedTuple):
    """The range of a schema's integers, and the factor that converts them to the unit of the column."""

    low: int
    high: int
    factor: int


def get_scale(shape: Leaf) -> Scale:
    """Return the scale of a leaf that is an int or a long."""
    logical = None if isinstance(shape.schema, EnumType) else shape.schema.logical
    if logical in ("timestamp-millis", "local-timestamp-millis"):
        return Scale(-MAX_MILLIS, MAX_MILLIS, 1000)
    if shape.type == TIME:
        return Scale(0, DAY_MICROS - 1, 1000)
    return Scale(*LIMITS[shape.schema.type], 1)


def _to_datetime(epoch: datetime, micros: int) -> datetime:
    try:
        return epoch + timedelta(microseconds=micros)
    except OverflowError:
        raise Unreadable(f"{micros} microseconds since 1970 lie outside the years 1 to 9999 of Python") from None


def _to_date(days: int) -> date:
    try:
        return date.fromordinal(days + EPOCH_DAY)
    except (ValueError, OverflowError):
        raise Unreadable(f"{days} days since 1970 lie outside the years 1 to 9999 of Python") from None


def _to_timedelta(micros: int) -> timedelta:
    try:
        return timedelta(microseconds=micros)
    except OverflowError:
        raise Unreadable(f"{micros} microseconds are longer than Python's timedelta") from None


def _from_datetime(epoch: datetime, value: Any) -> int:
    if not isinstance(value, datetime):
        return _check_integer(value, "a datetime")
    if value.tzinfo is None and epoch.tzinfo is not None:
        raise Unwritable(f"{value.isoformat()} has no time zone, and a timestamp is a point in time")
    if value.tzinfo is not None and epoch.tzinfo is None:
        raise Unwritable(f"{value.isoformat()} has a time zone, which a local timestamp cannot have")
    return (value - epoch) // timedelta(microseconds=1)


def _from_date(value: Any) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - EPOCH_DAY
    return _check_integer(value, "a date")


def _from_time(value: Any) -> int:
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return (seconds * 1_000_000 + value.microsecond) * 1000
    # Numbers are ambiguous: Spark counts microseconds of a day, these columns nanoseconds.
    raise Unwritable(f"expected a time, found {value!r}")


def _from_timedelta(value: Any) -> int:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return _check_integer(value, "a timedelta")


def _check_integer(value: Any, expected: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Unwritable(f"expected {expected}, found {value!r}")


TO_PYTHON: Final[dict[pa.DataType, Convert]] = {
    TIMESTAMP: partial(_to_datetime, EPOCH),
    TIMESTAMP_NTZ: partial(_to_datetime, EPOCH_NTZ),
    pa.date32(): _to_date,
    TIME: lambda nanos: (EPOCH_NTZ + timedelta(microseconds=nanos // 1000)).time(),
    DURATION: _to_timedelta,
}
"""The functions that convert the storage form to Python's own types, where they differ."""

TO_STORAGE: Final[dict[pa.DataType, Convert]] = {
    TIMESTAMP: partial(_from_datetime, EPOCH),
    TIMESTAMP_NTZ: partial(_from_datetime, EPOCH_NTZ),
    pa.date32(): _from_date,
    TIME: _from_time,
    DURATION: _from_timedelta,
}
"""The functions that convert Python's own types to the storage form, where they differ.

They accept numbers, which are the storage form already, except for times.
"""
