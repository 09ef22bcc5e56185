"""Read and write protobuf payloads in columns with the package ptars, where its rules and protobuf's are the same.

ptars reads quickly and believes much: of a field that comes twice, of two members of a oneof, of a map's key that comes
twice, it makes something else than protobuf. So it is asked for columns *and* to write them again: a payload that comes out
as it went in says exactly what its columns say, and every other is for protobuf itself to judge. For that to hold, ptars
gets a message of ours that stands for the topic's: each field optional, so that what was sent can be told from what was
not; enums as numbers, maps as lists of entries, Timestamp and Duration as plain messages, recursion written out.

What ptars writes of the message that stands for a topic's is what protobuf writes deterministically: fields by their number,
each that is there. So a field without presence has its default taken away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .arrow_types import TIMESTAMP
from .byte_batch import Ints, Mask
from .proto_schema import Message, MessagePart, Moment, Root, Scalar, Shape, get_type_name

_MAX_NUMBER: Final = 10_000
_MAX_FIELDS: Final = 5_000
"""ptars keeps a table up to the highest field number for each message; beyond these it would take too much memory."""

_SENT_AS: Final = {
    **dict.fromkeys(("double", "fixed64", "sfixed64"), "fixed64"),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("string", "message", "bytes"), "bytes"),
    **dict.fromkeys(("int64", "uint64", "int32", "bool", "uint32", "enum", "sint32", "sint64"), "uint64"),
}
"""The type that takes whatever a field of a type sends; groups are not served."""


@dataclass(frozen=True, slots=True)
class ColumnField:
    """A field that has a column.

    Attributes:
        part: what it is.
        fields: of its message, or of the messages in it, in the columns' order.
        one_by_one: a list whose numbers are written one by one, as ptars never does.
    """

    part: MessagePart
    fields: tuple[ColumnField, ...] = ()
    one_by_one: bool = False


@dataclass(frozen=True, slots=True)
class PtarsPlan:
    """How ptars is asked.

    Attributes:
        fields: of the root message.
        handler: of ptars, for the message that stands for it, in which a field is called `f` and its number.
    """

    fields: tuple[ColumnField, ...]
    handler: Any


def column_name(number: int) -> str:
    """Return what ptars calls the column of a field."""
    return f"f{number}"


def make_plan(root: Root, writer: Any = None) -> PtarsPlan | None:
    """Return the plan for messages of `root`; None: ptars is not installed, or cannot serve them.

    Args:
        root: what is read, or written.
        writer: the descriptor of the message that wrote, whose other fields are passed over.
    """
    if not root.shape.parts:
        return None
    try:
        import ptars
    except ImportError:
        return None
    from google.protobuf import descriptor_pool

    maker = _Maker()
    try:
        name, fields = maker.message(root.shape, root.message_class.DESCRIPTOR, writer)
    except _NotServed:
        return None
    pool = descriptor_pool.DescriptorPool()
    pool.Add(maker.file)
    stand_in = pool.FindMessageTypeByName(name)
    config = ptars.PtarsConfig(list_value_name="element")
    return PtarsPlan(fields, ptars.HandlerPool([stand_in.file], config=config).get_for_message(stand_in))


class _NotServed(Exception):
    """The message has something that ptars cannot read."""


class _Maker:
    """Makes the messages that stand for those of a topic."""

    def __init__(self) -> None:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        self.file = FileDescriptorProto(name="columns.proto", syntax="proto2")
        self._count = 0

    def message(self, shape: Message, descriptor: Any, writer: Any) -> tuple[str, tuple[ColumnField, ...]]:
        """Return the name of the message that stands for `descriptor`, and the fields of `shape`."""
        made = self._begin()
        parts = {part.number: part for part in shape.parts}
        theirs = dict(writer.fields_by_number) if writer is not None else {}
        fields = {}
        for number, field in sorted(descriptor.fields_by_number.items()):
            part, other = parts.get(number), theirs.pop(number, None)
            if get_type_name(field) == "group" or (part is None and field.is_required):
                raise _NotServed
            if get_type_name(field) == "string" and part is not None and isinstance(part.default, bytes):
                # A default that is no text.
                raise _NotServed
            if part is not None:
                fields[number] = self._field(made, part, field, other)
        for number, field in sorted(theirs.items()):
            if kind := _SENT_AS.get(get_type_name(field)):
                self._add(made, number, "bytes" if field.is_packed else kind, repeated=field.is_repeated)
        return made.name, tuple(fields[number] for number in parts)

    def _field(self, made: Any, part: MessagePart, field: Any, other: Any) -> ColumnField:
        if part.key is None:
            kind, inner, fields = self._value(part.shape, field, other)
            added = self._add(made, part.number, kind, repeated=part.repeated, message=inner)
            if field.is_packed:
                added.options.packed = True
            packable = part.repeated and kind not in ("string", "message", "bytes")
            return ColumnField(part, fields, one_by_one=packable and not field.is_packed)
        entry = self._begin()
        self._add(entry, 1, self._value(part.key, field.message_type.fields_by_number[1], None)[0])
        written = _message_of(other)
        kind, inner, fields = self._value(
            part.shape,
            field.message_type.fields_by_number[2],
            None if written is None else written.fields_by_number.get(2),
        )
        self._add(entry, 2, kind, message=inner)
        self._add(made, part.number, "message", repeated=True, message=entry.name)
        return ColumnField(part, fields)

    def _value(self, shape: Shape, field: Any, other: Any) -> tuple[str, str, tuple[ColumnField, ...]]:
        """Return the type of a value, the message it is, and that one's fields."""
        match shape:
            case Message():
                name, fields = self.message(shape, field.message_type, _message_of(other))
                return "message", name, fields
            case Moment():
                moment = self._begin()
                self._add(moment, 1, "int64")
                self._add(moment, 2, "int32")
                return "message", moment.name, ()
            case Scalar():
                return ("int32" if shape.kind == "enum" else shape.kind), "", ()

    def _begin(self) -> Any:
        return self.file.message_type.add(name=f"M{len(self.file.message_type)}")

    def _add(self, made: Any, number: int, kind: str, *, repeated: bool = False, message: str = "") -> Any:
        self._count += 1
        if number > _MAX_NUMBER or self._count > _MAX_FIELDS:
            raise _NotServed
        added = made.field.add(name=column_name(number), number=number)
        added.type = added.Type.Value(f"TYPE_{kind.upper()}")
        added.label = added.LABEL_REPEATED if repeated else added.LABEL_OPTIONAL
        if message:
            added.type_name = f".{message}"
        return added


def _message_of(field: Any) -> Any:
    """Return the message that a field holds; None: it is no message, or a group."""
    return field.message_type if field is not None and get_type_name(field) == "message" else None


class BatchRows:
    """The rows of a batch; `bad` are those for the path that takes one message at a time."""

    def __init__(self, bad: Mask) -> None:
        self.bad = bad

    def judge(self, fields: Sequence[ColumnField], arrays: Sequence[pa.Array], rows: Ints, there: Mask) -> None:
        """Mark the rows of messages that lack a required field, or have two members of a oneof.

        Args:
            fields: of the messages.
            arrays: what each field holds, null where it is not there.
            rows: whose each message is.
            there: which are messages at all.
        """
        groups: dict[str, Ints] = {}
        for field, array in zip(fields, arrays, strict=True):
            part = field.part
            if part.oneof is not None:
                known = groups.setdefault(part.oneof, np.zeros(len(rows), np.int64))
                known += np.asarray(array.is_valid())
            if part.required:
                self.bad[rows[there & np.asarray(array.is_null())]] = True
        for known in groups.values():
            self.bad[rows[known > 1]] = True


# Reader; unusual messages go to the reader of single messages


_MICROS: Final = 1_000_000
_MAX_SECONDS: Final = 2**63 // _MICROS - 1
"""Of what surely fits 64 bits as microseconds, whatever the nanoseconds."""

_SIZED_TAG: Final = b"".join(re.escape(bytes([byte])) for byte in range(2, 256, 8))
_HUGE: Final = re.compile(
    rb"(?:(?![\x80-\xff])[%b]|[%b][\x80-\xff]{0,3}[\x00-\x7f])[\xf6-\xff]\xff{8}[\x01-\x7f]" % (_SIZED_TAG, _SIZED_TAG)
)
"""What may be a tag and, behind it, a length of nearly 2^64 bytes, at which ptars panics."""

_HUGE_PART: Final = re.compile(b"\xff\xff\xff\xff\xff\xff\xff\xff")
"""What is quick to search for."""

_SMALL: Final = 32
"""A batch of so few messages is not searched for the one that cannot be read."""

_ZEROS: Final = {"bool": False, "string": "", "bytes": b"", "float": 0.0, "double": 0.0}


def column_reader(plan: PtarsPlan, kind: pa.DataType) -> Callable[[pa.BinaryArray], tuple[pa.Array, Mask]]:
    """Read payloads without nulls into an array of `kind`, and say which rows are for the single-message path."""

    def read(payloads: pa.BinaryArray) -> tuple[pa.Array, Mask]:
        count = len(payloads)
        huge = _huge(payloads)
        readable = pc.if_else(pa.array(huge), b"", payloads) if huge.any() else payloads
        found = _ask(plan, readable) if count else None
        if found is not None:
            batch, written = found
            rows = _RowReader(huge | ~np.asarray(pc.equal(written, readable)))
            columns = rows.fields(plan.fields, batch, np.arange(count), np.ones(count, bool))
            return pa.StructArray.from_arrays(columns, fields=list(kind)), rows.bad
        if count <= _SMALL:
            return pa.nulls(count, kind), np.ones(count, bool)
        middle = count // 2
        first, second = read(payloads.slice(0, middle)), read(payloads.slice(middle))
        return pa.concat_arrays([first[0], second[0]]), np.concatenate([first[1], second[1]])

    return read


def _ask(plan: PtarsPlan, payloads: pa.BinaryArray) -> tuple[pa.RecordBatch, pa.BinaryArray] | None:
    """Return the columns, and the payloads that ptars would write for them; None: a message is not what ptars can read."""
    try:
        batch = plan.handler.array_to_record_batch(payloads)
        return batch, plan.handler.record_batch_to_array(batch)
    except ValueError:
        return None
    except BaseException as error:
        # Rust's panics are no `Exception`, and the class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        return None


def _huge(payloads: pa.BinaryArray) -> Mask:
    """Which payloads may have a length of nearly 2^64 bytes."""
    found: Mask = np.zeros(len(payloads), bool)
    if not len(payloads) or payloads.buffers()[2] is None:
        return found
    ends = np.frombuffer(payloads.buffers()[1], np.int32)[payloads.offset : payloads.offset + len(payloads) + 1]
    held = memoryview(payloads.buffers()[2])[ends[0] : ends[-1]]
    if _HUGE_PART.search(held):
        places = np.array([match.end() - 1 for match in _HUGE.finditer(held)], np.int64) + ends[0]
        found[np.searchsorted(ends, places, side="right") - 1] = True
    return found


class _RowReader(BatchRows):
    """From what ptars gives to the columns."""

    def fields(
        self, fields: Sequence[ColumnField], source: pa.RecordBatch | pa.StructArray, rows: Ints, there: Mask
    ) -> list[pa.Array]:
        """Return the columns of messages; `rows` says whose each one is, `there` which are messages at all."""
        arrays = [_column(source, column_name(field.part.number)) for field in fields]
        self.judge(fields, arrays, rows, there)
        return [self._column(field, array, rows) for field, array in zip(fields, arrays, strict=True)]

    def _column(self, field: ColumnField, array: pa.Array, rows: Ints) -> pa.Array:
        part = field.part
        if part.key is not None:
            return self._map(part, part.key, field, array, rows)
        if part.repeated:
            counts = np.diff(np.asarray(array.offsets))
            values = self._values(field, array.values, np.repeat(rows, counts))
            return pa.ListArray.from_arrays(array.offsets, values, type=part.type)
        values = self._values(field, array, rows)
        return values if part.presence and part.default is None else _filled(part, values)

    def _map(self, part: MessagePart, key: Scalar, field: ColumnField, array: pa.ListArray, rows: Ints) -> pa.Array:
        offsets, entries = array.offsets, array.values
        counts = np.diff(np.asarray(offsets))
        whose = np.repeat(np.arange(len(counts)), counts)
        keys = pc.fill_null(entries.field(0), _zero(key.kind))
        # In the order of the keys, as the single-message path has them.
        order = pc.sort_indices(
            pa.RecordBatch.from_arrays([pa.array(whose), keys], ["map", "key"]),
            sort_keys=[("map", "ascending"), ("key", "ascending")],
        )
        keys, entries = keys.take(order), entries.take(order)
        again = (whose[1:] == whose[:-1]) & np.asarray(pc.equal(keys[1:], keys[:-1]))
        inside = rows[whose]
        self.bad[inside[1:][again]] = True
        held = entries.field(1)
        if field.fields or isinstance(part.shape, Moment):
            # An entry without a value has an empty message, which only protobuf itself makes.
            self.bad[inside[np.asarray(held.is_null())]] = True
            values = self._values(field, held, inside)
        else:
            values = _filled(part, self._values(field, held, inside))
        return pa.MapArray.from_arrays(offsets, self._scalar(key, keys), values, type=part.type)

    def _values(self, field: ColumnField, array: pa.Array, rows: Ints) -> pa.Array:
        shape = field.part.shape
        if isinstance(shape, Scalar):
            return self._scalar(shape, array)
        there = np.asarray(array.is_valid())
        if isinstance(shape, Moment):
            return self._moment(shape.type, array, rows, there)
        columns = self.fields(field.fields, array, rows, there)
        return pa.StructArray.from_arrays(columns, fields=list(shape.type), mask=pa.array(~there))

    def _scalar(self, shape: Scalar, array: pa.Array) -> pa.Array:
        if shape.kind == "enum":
            return self._enum(shape, array)
        if pa.types.is_decimal(shape.type):
            return _decimals(array)
        return array if array.type == shape.type else array.cast(shape.type)

    def _enum(self, shape: Scalar, array: pa.Array) -> pa.Array:
        names = shape.names or {}
        encoded = array.dictionary_encode()
        numbers = encoded.dictionary.to_pylist()
        texts = pa.array([names.get(number) or str(number) for number in numbers], pa.string())
        return texts.take(encoded.indices)

    def _moment(self, kind: pa.DataType, array: pa.StructArray, rows: Ints, there: Mask) -> pa.Array:
        seconds = np.asarray(pc.fill_null(array.field(0), 0))
        nanos = np.asarray(pc.fill_null(array.field(1), 0)).astype(np.int64)
        wide = (seconds > _MAX_SECONDS) | (seconds < -_MAX_SECONDS)
        self.bad[rows[wide]] = True
        micros = np.where(wide, 0, seconds) * _MICROS + nanos // 1000
        return pa.array(micros, pa.int64(), mask=~there).cast(kind)


def _column(source: pa.RecordBatch | pa.StructArray, name: str) -> pa.Array:
    return source.column(name) if isinstance(source, pa.RecordBatch) else source.field(name)


def _zero(kind: str) -> Any:
    return _ZEROS.get(kind, 0)


def _filled(part: MessagePart, values: pa.Array) -> pa.Array:
    """With the field's default, or that of its type, for what was not sent."""
    shape = part.shape
    if not values.null_count or not isinstance(shape, Scalar):
        return values
    default = _zero(shape.kind) if part.default is None else part.default
    if shape.kind == "enum":
        names = shape.names or {}
        default = names.get(default) or str(default)
    return pc.fill_null(values, pa.scalar(default, shape.type))


def _decimals(array: pa.UInt64Array) -> pa.Array:
    """Unsigned numbers of 64 bits as decimals, which are 128 bits wide."""
    words: npt.NDArray[np.uint64] = np.zeros((len(array), 2), np.uint64)
    words[:, 0] = np.asarray(pc.fill_null(array, 0))
    validity = pa.array(np.asarray(array.is_valid())).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(pa.decimal128(20, 0), len(array), [validity, pa.py_buffer(words)])


# Writer; values that do not fit go to the writer of single values


_WIRE: Final[dict[str, pa.DataType]] = {
    "uint32": pa.uint32(),
    "fixed32": pa.uint32(),
    "uint64": pa.uint64(),
    "fixed64": pa.uint64(),
}
"""What ptars takes, where it is not the column's type."""


def column_writer(plan: PtarsPlan) -> Callable[[pa.Array], tuple[pa.BinaryArray, Mask]]:
    """Write messages, and say which rows are for the single-value path."""

    def write(values: pa.Array) -> tuple[pa.BinaryArray, Mask]:
        count = len(values)
        if not count:
            return pa.array([], pa.binary()), np.zeros(0, bool)
        there = np.asarray(values.is_valid())
        rows = _RowWriter(~there)
        columns = rows.fields(plan.fields, values, np.arange(count), there)
        batch = pa.RecordBatch.from_arrays(columns, [column_name(one.part.number) for one in plan.fields])
        return plan.handler.record_batch_to_array(batch), rows.bad

    return write


class _RowWriter(BatchRows):
    """From columns to what ptars takes."""

    def fields(
        self, fields: Sequence[ColumnField], messages: pa.StructArray, rows: Ints, there: Mask
    ) -> list[pa.Array]:
        """Return what ptars takes for messages; `rows` says whose each one is, `there` which are messages at all."""
        # Flat, what lies in a message that is not there is null, too.
        columns = dict(zip((part.name for part in messages.type), messages.flatten(), strict=True))
        arrays = [columns[field.part.name] for field in fields]
        self.judge(fields, arrays, rows, there)
        return [self._column(field, array, rows) for field, array in zip(fields, arrays, strict=True)]

    def _column(self, field: ColumnField, array: pa.Array, rows: Ints) -> pa.Array:
        part = field.part
        if part.key is not None:
            return self._map(part.key, field, array, rows)
        if part.repeated:
            counts = np.asarray(pc.fill_null(pc.list_value_length(array), 0))
            inside = np.repeat(rows, counts)
            items = array.flatten()
            self.bad[inside[np.asarray(items.is_null())]] = True
            if field.one_by_one:
                self.bad[inside] = True
            return _listed(counts, self._values(field, items, inside))
        values = self._values(field, array, rows)
        return values if part.presence else _sent(part, values)

    def _map(self, key: Scalar, field: ColumnField, array: pa.MapArray, rows: Ints) -> pa.Array:
        # Taken anew, the entries are those of the maps that are there, and no others.
        array = array.take(pa.array(np.arange(len(array))))
        counts = np.diff(np.asarray(array.offsets))
        inside = np.repeat(rows, counts)
        keys, held = array.keys, array.items
        self.bad[inside[np.asarray(held.is_null())]] = True
        # In what order protobuf writes several, and which of two with one key, it alone knows.
        self.bad[rows[counts > 1]] = True
        entries = pa.StructArray.from_arrays(
            [self._scalar(key, keys, inside), self._values(field, held, inside)], names=["f1", "f2"]
        )
        return _listed(counts, entries)

    def _values(self, field: ColumnField, array: pa.Array, rows: Ints) -> pa.Array:
        shape = field.part.shape
        if isinstance(shape, Scalar):
            return self._scalar(shape, array, rows)
        there = np.asarray(array.is_valid())
        if isinstance(shape, Moment):
            columns = [_or_null(numbers) for numbers in _moment(shape.type, array)]
            names = ["f1", "f2"]
        else:
            columns = self.fields(field.fields, array, rows, there)
            names = [column_name(one.part.number) for one in field.fields]
        return pa.StructArray.from_arrays(columns, names=names, mask=pa.array(~there))

    def _scalar(self, shape: Scalar, array: pa.Array, rows: Ints) -> pa.Array:
        if shape.kind == "enum":
            return self._enum(shape, array, rows)
        wire = _WIRE.get(shape.kind)
        if wire is None:
            return array
        if wire == pa.uint32():
            numbers = np.asarray(pc.fill_null(array, 0))
            self.bad[rows[(numbers < 0) | (numbers >= 2**32)]] = True
            words = numbers.astype(np.uint32)
        else:
            pairs = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, 2)
            words, high = pairs[array.offset : array.offset + len(array)].T
            self.bad[rows[(high != 0) & np.asarray(array.is_valid())]] = True
        return pa.array(words, wire, mask=np.asarray(array.is_null()))

    def _enum(self, shape: Scalar, array: pa.StringArray, rows: Ints) -> pa.Array:
        numbers = {name: number for number, name in (shape.names or {}).items()}
        encoded = array.dictionary_encode()
        found = pa.array([numbers.get(name) for name in encoded.dictionary.to_pylist()], pa.int32())
        values = found.take(encoded.indices)
        self.bad[rows[np.asarray(values.is_null()) & np.asarray(array.is_valid())]] = True
        return values


def _sent(part: MessagePart, values: pa.Array) -> pa.Array:
    """Null for the default of a field without presence, which is not sent."""
    if not isinstance(part.shape, Scalar):
        return values
    kind = part.shape.kind
    if kind in ("string", "bytes"):
        default = pc.equal(pc.binary_length(values), 0)
    elif kind in ("float", "double"):
        # Not by its value: zero with a sign is sent.
        default = pc.equal(values.view(pa.int32() if kind == "float" else pa.int64()), 0)
    else:
        default = pc.invert(values) if kind == "bool" else pc.equal(values, pa.scalar(0, values.type))
    return pc.if_else(default, pa.scalar(None, values.type), values)


def _moment(kind: pa.DataType, array: pa.Array) -> tuple[Any, Any]:
    """Seconds and nanoseconds; those of a Duration have the same sign (google/protobuf/duration.proto)."""
    micros = np.asarray(pc.fill_null(array.cast(pa.int64()), 0))
    rest = micros % _MICROS if kind == TIMESTAMP else np.fmod(micros, _MICROS)
    return (micros - rest) // _MICROS, (rest * 1000).astype(np.int32)


def _or_null(numbers: Any) -> pa.Array:
    return pa.array(numbers, mask=numbers == 0)


def _listed(counts: Any, values: pa.Array) -> pa.Array:
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)
