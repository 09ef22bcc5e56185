"""The validation of values against a schema, shared by the single-value and the column writers.

A value comes in the form that reading gives (or as `datetime` objects, numbers, dicts). What comes out is ready to write: a
record's parts in the schema's order (ABSENT for one to be taken from its default), a union as branch index and value, a
map as pairs, times in the schema's own unit, a decimal as its unscaled number.
"""

from __future__ import annotations

import decimal
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from .columns import TIME, Choice, Group, Leaf, Repeated, Shape
from .errors import LONG_NAME, Unwritable, shortened
from .schema import (
    NO_DEFAULT,
    ArrayType,
    DecimalType,
    EnumType,
    FixedType,
    PrimitiveType,
    RecordField,
    UnionType,
)
from .values import EXACT, to_storage

Fit = Callable[[Any], Any]
"""From a value to its ready form; raises Unwritable."""


class _Absent:
    """The type of ABSENT."""


ABSENT: Final = _Absent()

_FLOAT: Final = struct.Struct("<f")

_LIMITS: Final = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}


def fitting(shape: Shape) -> Fit:
    """Make values of `shape` ready to write."""
    match shape:
        case Group():
            return _record(shape)
        case Repeated():
            part = fitting(shape.part)
            return _list(part) if isinstance(shape.schema, ArrayType) else _map(part)
        case Choice():
            return _union(shape)
        case Leaf():
            return _leaf(shape)


def unscaled_decimal(value: decimal.Decimal, logical: DecimalType) -> int:
    """Return the number as its last digit counts it.

    Raises:
        Unwritable: it is not finite, or has more digits than the type holds, before the point or behind.
    """
    if not value.is_finite():
        raise Unwritable(f"{value} is no decimal")
    if value and not -100 < value.adjusted() < 100:
        raise Unwritable(f"{value} is out of the range of a decimal of {logical.precision} digits")
    scaled = value.scaleb(logical.scale, EXACT)
    if scaled != scaled.to_integral_value():
        raise Unwritable(f"{value} has more than {logical.scale} digits after the decimal point")
    if abs(scaled) >= 10**logical.precision:
        raise Unwritable(f"{value} has more than {logical.precision} digits")
    return int(scaled)


def _record(shape: Group) -> Fit:
    parts = [(part.name, _field(part, shape), part.default is not NO_DEFAULT) for part in shape.schema.fields]
    names = frozenset(part.name for part in shape.schema.fields)

    def record(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Unwritable(f"expected the fields of {shape.schema.full_name}, found {value!r}")
        unknown = value.keys() - names
        if unknown:
            raise Unwritable(f"{shape.schema.full_name} has no field {', '.join(sorted(map(str, unknown)))}")
        ready = []
        name = ""
        try:
            for name, fit, optional in parts:
                held = value.get(name, ABSENT)
                ready.append(ABSENT if held is ABSENT and optional else fit(held))
        except Unwritable as error:
            error.inside(name)
            raise
        return ready

    return record


def _field(part: RecordField, shape: Group) -> Fit:
    if part.name in shape.fields:
        fit = fitting(shape.fields[part.name])

        def given(value: Any) -> Any:
            if value is ABSENT:
                raise Unwritable("absent, and it has no default")
            return fit(value)

        return given

    def cut(value: Any) -> Any:
        kinds = [branch.type for branch in part.schema.branches] if isinstance(part.schema, UnionType) else []
        if (value is None or value is ABSENT) and "null" in kinds:
            return kinds.index("null"), None
        raise Unwritable("nested deeper than the recursion depth of the columns")

    return cut


def _list(part: Fit) -> Fit:
    def items(value: Any) -> Any:
        ready: list[Any] = []
        held = items_of(value)
        try:
            for item in held:
                ready.append(part(item))  # noqa: PERF401  the length is the place of an error
        except Unwritable as error:
            error.inside(f"[{len(ready)}]")
            raise
        return ready

    return items


def items_of(value: Any) -> Sequence[Any]:
    """Return a list's items. Raises Unwritable: it is no list."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray | memoryview):
        raise Unwritable(f"expected a list, found {value!r}")
    return value


def _map(part: Fit) -> Fit:
    def entries(value: Any) -> Any:
        ready = []
        key = None
        held = pairs_of(value)
        try:
            for key, item in held:
                ready.append((text(key), part(item)))
        except Unwritable as error:
            error.inside(f"[{shortened(repr(key), LONG_NAME)}]")
            raise
        return ready

    return entries


def pairs_of(value: Any) -> list[tuple[Any, Any]]:
    """Return a map's entries, from a dict or from the list of pairs that Arrow makes of one. Raises Unwritable: it is neither."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return value
    raise Unwritable(f"expected a dict, found {value!r}")


def _union(shape: Choice) -> Fit:
    kinds = [branch.type for branch in shape.schema.branches]
    branches = [
        (member, index, fitting(part))
        for index, (member, part) in enumerate(zip(shape.members, shape.branches, strict=True))
        if part is not None
    ]
    members = {member: (index, fit) for member, index, fit in branches if member is not None}

    def choice(value: Any) -> Any:
        if value is None:
            if "null" not in kinds:
                raise Unwritable("null, and the union has no null")
            return kinds.index("null"), None
        if members:
            index, fit, held = _one_member(members, value)
            return index, fit(held)
        # One branch; or two, of which the wider takes what the narrower does not hold exactly.
        refusal = Unwritable(f"no branch of the union fits {value!r}")
        for _, index, fit in branches:
            if len(branches) > 1 and kinds[index] == "float" and not _is_float(value):
                continue
            try:
                return index, fit(value)
            except Unwritable as error:
                refusal = error
        raise refusal

    return choice


def _is_float(value: Any) -> bool:
    """Whether 32 bits hold the number exactly."""
    if not isinstance(value, float) or not math.isfinite(value):
        return True
    try:
        held: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return False
    return held == value


def _one_member(members: dict[str, tuple[int, Fit]], value: Any) -> tuple[int, Fit, Any]:
    if isinstance(value, Mapping) and value.keys() <= members.keys():
        given = [name for name, held in value.items() if held is not None]
        if len(given) == 1:
            return *members[given[0]], value[given[0]]
    raise Unwritable(f"expected exactly one of {', '.join(members)}, found {value!r}")


def _leaf(shape: Leaf) -> Fit:
    schema = shape.schema
    if isinstance(schema, EnumType):
        return _enum(schema)
    if isinstance(schema.logical, DecimalType):
        return _decimal(schema.logical)
    if isinstance(schema, FixedType):
        return _fixed(schema.size)
    return _integer(schema, shape) if schema.type in ("int", "long") else PLAIN[schema.type]


def _integer(schema: PrimitiveType, shape: Leaf) -> Fit:
    low, high = _LIMITS[schema.type]
    convert = to_storage(shape.type)
    # How many of the column's units make one of the schema's: microseconds, and nanoseconds of a time.
    millis = schema.logical in ("timestamp-millis", "local-timestamp-millis")
    unit = 1000 if millis or shape.type == TIME else 1

    def whole(value: Any) -> Any:
        number = value if convert is None else convert(value)
        if not isinstance(number, int) or isinstance(number, bool):
            raise Unwritable(f"expected a whole number, found {value!r}")
        number //= unit
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
        return unscaled_decimal(decimal.Decimal(value), logical)

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


def text(value: Any) -> str:
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
    "string": text,
    "bytes": raw,
}
"""For types that have no parts and need no more than their name, in Avro and in protobuf."""
