"""Decode and encode protobuf payloads by columns with the package ptars, and leave rows that it treats differently to the scalar path.

ptars differs from protobuf for payloads in which a field, a key of a map or several members of a oneof occur twice. So ptars decodes a batch
and encodes the result again: if a payload is unchanged, its columns are right, and any other payload is decoded by protobuf itself.

For this, ptars gets a *substitute message* instead of the topic's message. All of its fields are optional, to distinguish unset fields. Enums
are numbers, maps are lists of entries, Timestamp and Duration are plain messages, and recursion is expanded. ptars encodes all fields that
are set, by field number, as protobuf's deterministic serialization does. To encode, fields without presence are unset if they have their
default.
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
from .values import MAX_SECONDS, SECOND_MICROS

_MAX_NUMBER: Final = 10_000
_MAX_FIELDS: Final = 5_000
"""Limits of memory: ptars has a table up to the highest field number for each message."""

_SUBSTITUTE_TYPES: Final = {
    **dict.fromkeys(("double", "fixed64", "sfixed64"), "fixed64"),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("string", "message", "bytes"), "bytes"),
    **dict.fromkeys(("int64", "uint64", "int32", "bool", "uint32", "enum", "sint32", "sint64"), "uint64"),
}
"""The types of fields that only the writer has, with which ptars reads all values of a type; groups are not supported."""

_PTARS_TYPES: Final[dict[str, pa.DataType]] = {
    "uint32": pa.uint32(),
    "fixed32": pa.uint32(),
    "uint64": pa.uint64(),
    "fixed64": pa.uint64(),
}
"""The types of ptars that differ from the types of the columns."""

_LENGTH_TAG: Final = b"".join(re.escape(bytes([byte])) for byte in range(2, 256, 8))
_HUGE_LENGTH: Final = re.compile(
    rb"(?:(?![\x80-\xff])[%b]|[%b][\x80-\xff]{0,3}[\x00-\x7f])[\xf6-\xff]\xff{8}[\x01-\x7f]"
    % (_LENGTH_TAG, _LENGTH_TAG)
)
"""Bytes that may be a tag with a length of nearly 2^64 bytes, at which ptars panics."""

_HUGE_LENGTH_PART: Final = re.compile(b"\xff\xff\xff\xff\xff\xff\xff\xff")
"""A part of such a length, which is faster to search for."""

_FEW_ROWS: Final = 32
"""A batch that ptars rejects is split until it has at most this number of rows, which go to the scalar path."""

_ZEROS: Final = {"bool": False, "string": "", "bytes": b"", "float": 0.0, "double": 0.0}


@dataclass(frozen=True, slots=True)
class PtarsPlan:
    """The decoder and encoder of ptars for a root message.

    Attributes:
        fields: the fields of the root message.
        handler: the handler of ptars for the substitute message, in which a field has the name `f` with its number.
    """

    fields: tuple[ColumnField, ...]
    handler: Any


@dataclass(frozen=True, slots=True)
class ColumnField:
    """A field with a column.

    Attributes:
        part: the field.
        fields: the fields of its message, or of the messages in a list or map, in the order of the columns.
        is_unpacked: whether it is a list of numbers that is not packed, which ptars cannot encode.
    """

    part: MessagePart
    fields: tuple[ColumnField, ...] = ()
    is_unpacked: bool = False


def make_plan(root: Root, writer: Any = None) -> PtarsPlan | None:
    """Return the plan for messages of `root`, or None if ptars is not installed or cannot decode them.

    Args:
        root: the root message.
        writer: the descriptor of the writer's message, whose other fields are skipped; None if it is the same message.
    """
    if not root.shape.parts:
        return None
    try:
        import ptars
    except ImportError:
        return None
    from google.protobuf import descriptor_pool

    maker = _SubstituteMaker()
    try:
        name, fields = maker.add_message(root.shape, root.message_class.DESCRIPTOR, writer)
    except _UnsupportedMessage:
        return None
    pool = descriptor_pool.DescriptorPool()
    pool.Add(maker.file)
    substitute = pool.FindMessageTypeByName(name)
    config = ptars.PtarsConfig(list_value_name="element")
    return PtarsPlan(fields, ptars.HandlerPool([substitute.file], config=config).get_for_message(substitute))


def column_name(number: int) -> str:
    """Return the name of a field in the substitute message."""
    return f"f{number}"


class _UnsupportedMessage(Exception):
    """ptars cannot decode the message."""


class _SubstituteMaker:
    """Makes the substitute messages.

    Attributes:
        file: the file of the messages.
    """

    def __init__(self) -> None:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        self.file = FileDescriptorProto(name="columns.proto", syntax="proto2")
        self._field_count = 0

    def add_message(self, shape: Message, descriptor: Any, writer: Any) -> tuple[str, tuple[ColumnField, ...]]:
        """Add the substitute of `descriptor`, and return its name and the fields of `shape`."""
        substitute = self._add_message_type()
        parts = {part.number: part for part in shape.parts}
        writer_fields = dict(writer.fields_by_number) if writer is not None else {}
        fields = {}
        for number, field in sorted(descriptor.fields_by_number.items()):
            part, writer_field = parts.get(number), writer_fields.pop(number, None)
            if get_type_name(field) == "group" or (part is None and field.is_required):
                raise _UnsupportedMessage
            if get_type_name(field) == "string" and part is not None and isinstance(part.default, bytes):
                # protobuf returns a default that is not UTF-8 as bytes.
                raise _UnsupportedMessage
            if part is not None:
                fields[number] = self._add_part(substitute, part, field, writer_field)
        for number, field in sorted(writer_fields.items()):
            if kind := _SUBSTITUTE_TYPES.get(get_type_name(field)):
                self._add_field(substitute, number, "bytes" if field.is_packed else kind, repeated=field.is_repeated)
        return substitute.name, tuple(fields[number] for number in parts)

    def _add_part(self, substitute: Any, part: MessagePart, field: Any, writer_field: Any) -> ColumnField:
        if part.key is None:
            kind, inner, fields = self._describe_value(part.shape, field, writer_field)
            added = self._add_field(substitute, part.number, kind, repeated=part.repeated, message=inner)
            if field.is_packed:
                added.options.packed = True
            packable = part.repeated and kind not in ("string", "message", "bytes")
            return ColumnField(part, fields, is_unpacked=packable and not field.is_packed)
        entry = self._add_message_type()
        self._add_field(entry, 1, self._describe_value(part.key, field.message_type.fields_by_number[1], None)[0])
        writer_entry = _get_message_type(writer_field)
        writer_value = None if writer_entry is None else writer_entry.fields_by_number.get(2)
        kind, inner, fields = self._describe_value(part.shape, field.message_type.fields_by_number[2], writer_value)
        self._add_field(entry, 2, kind, message=inner)
        self._add_field(substitute, part.number, "message", repeated=True, message=entry.name)
        return ColumnField(part, fields)

    def _describe_value(self, shape: Shape, field: Any, writer_field: Any) -> tuple[str, str, tuple[ColumnField, ...]]:
        """Return the type of a value, and the name and the fields of its message, if it is one."""
        match shape:
            case Message():
                name, fields = self.add_message(shape, field.message_type, _get_message_type(writer_field))
                return "message", name, fields
            case Moment():
                moment = self._add_message_type()
                self._add_field(moment, 1, "int64")
                self._add_field(moment, 2, "int32")
                return "message", moment.name, ()
            case Scalar():
                return ("int32" if shape.kind == "enum" else shape.kind), "", ()

    def _add_message_type(self) -> Any:
        return self.file.message_type.add(name=f"M{len(self.file.message_type)}")

    def _add_field(self, substitute: Any, number: int, kind: str, *, repeated: bool = False, message: str = "") -> Any:
        self._field_count += 1
        if number > _MAX_NUMBER or self._field_count > _MAX_FIELDS:
            raise _UnsupportedMessage
        added = substitute.field.add(name=column_name(number), number=number)
        added.type = added.Type.Value(f"TYPE_{kind.upper()}")
        added.label = added.LABEL_REPEATED if repeated else added.LABEL_OPTIONAL
        if message:
            added.type_name = f".{message}"
        return added


def _get_message_type(field: Any) -> Any:
    """Return the message type of a field, or None if it has another type or is a group."""
    return field.message_type if field is not None and get_type_name(field) == "message" else None


class BatchRows:
    """The rows of a batch; `bad` is the mask of rows for the scalar path."""

    def __init__(self, bad: Mask) -> None:
        self.bad = bad

    def mark_invalid(
        self, fields: Sequence[ColumnField], arrays: Sequence[pa.Array], rows: Ints, present: Mask
    ) -> None:
        """Mark the rows of messages that lack a required field, or have two members of a oneof.

        Args:
            fields: the fields of the messages.
            arrays: the values of each field, null where it is not set.
            rows: the row of each message.
            present: whether each message is set.
        """
        counts_by_oneof: dict[str, Ints] = {}
        for field, array in zip(fields, arrays, strict=True):
            part = field.part
            if part.oneof is not None:
                counts = counts_by_oneof.setdefault(part.oneof, np.zeros(len(rows), np.int64))
                counts += np.asarray(array.is_valid())
            if part.required:
                self.bad[rows[present & np.asarray(array.is_null())]] = True
        for counts in counts_by_oneof.values():
            self.bad[rows[counts > 1]] = True


# Reader


def make_column_reader(plan: PtarsPlan, kind: pa.DataType) -> Callable[[pa.BinaryArray], tuple[pa.Array, Mask]]:
    """Make the function that decodes payloads without nulls into an array of `kind`, with the mask of rows for the scalar path."""

    def read(payloads: pa.BinaryArray) -> tuple[pa.Array, Mask]:
        count = len(payloads)
        huge = _mask_huge_lengths(payloads)
        readable = pc.if_else(pa.array(huge), b"", payloads) if huge.any() else payloads
        result = _decode_and_encode(plan, readable) if count else None
        if result is not None:
            batch, encoded = result
            rows = _RowReader(huge | ~np.asarray(pc.equal(encoded, readable)))
            columns = rows.read_fields(plan.fields, batch, np.arange(count), np.ones(count, bool))
            return pa.StructArray.from_arrays(columns, fields=list(kind)), rows.bad
        if count <= _FEW_ROWS:
            return pa.nulls(count, kind), np.ones(count, bool)
        middle = count // 2
        first, second = read(payloads.slice(0, middle)), read(payloads.slice(middle))
        return pa.concat_arrays([first[0], second[0]]), np.concatenate([first[1], second[1]])

    return read


def _decode_and_encode(plan: PtarsPlan, payloads: pa.BinaryArray) -> tuple[pa.RecordBatch, pa.BinaryArray] | None:
    """Return the columns of payloads, and the payloads encoded from them, or None if ptars cannot decode one of the payloads."""
    try:
        batch = plan.handler.array_to_record_batch(payloads)
        return batch, plan.handler.record_batch_to_array(batch)
    except ValueError:
        return None
    except BaseException as error:
        # The class of Rust's panics is not an `Exception`, and cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        return None


def _mask_huge_lengths(payloads: pa.BinaryArray) -> Mask:
    """Return whether each payload may contain a length of nearly 2^64 bytes."""
    mask: Mask = np.zeros(len(payloads), bool)
    if not len(payloads) or payloads.buffers()[2] is None:
        return mask
    offsets = np.frombuffer(payloads.buffers()[1], np.int32)[payloads.offset : payloads.offset + len(payloads) + 1]
    data = memoryview(payloads.buffers()[2])[offsets[0] : offsets[-1]]
    if _HUGE_LENGTH_PART.search(data):
        positions = np.array([match.end() - 1 for match in _HUGE_LENGTH.finditer(data)], np.int64) + offsets[0]
        mask[np.searchsorted(offsets, positions, side="right") - 1] = True
    return mask


class _RowReader(BatchRows):
    """Converts the columns of ptars to the columns of values."""

    def read_fields(
        self, fields: Sequence[ColumnField], source: pa.RecordBatch | pa.StructArray, rows: Ints, present: Mask
    ) -> list[pa.Array]:
        """Return the columns of messages, given the row of each message and whether it is set."""
        get_column = source.column if isinstance(source, pa.RecordBatch) else source.field
        arrays = [get_column(column_name(field.part.number)) for field in fields]
        self.mark_invalid(fields, arrays, rows, present)
        columns = []
        for field, array in zip(fields, arrays, strict=True):
            part = field.part
            if part.key is not None:
                column = self._read_map(field, part.key, array, rows)
            elif part.repeated:
                counts = np.diff(np.asarray(array.offsets))
                items = self._read_values(field, array.values, np.repeat(rows, counts))
                column = pa.ListArray.from_arrays(array.offsets, items, type=part.type)
            else:
                column = self._read_values(field, array, rows)
                if not part.presence or part.default is not None:
                    column = _fill_defaults(part, column)
            columns.append(column)
        return columns

    def _read_map(self, field: ColumnField, key: Scalar, array: pa.ListArray, rows: Ints) -> pa.Array:
        part = field.part
        offsets, entries = array.offsets, array.values
        counts = np.diff(np.asarray(offsets))
        owners = np.repeat(np.arange(len(counts)), counts)
        keys = pc.fill_null(entries.field(0), _ZEROS.get(key.kind, 0))
        # In the order of keys, as on the scalar path.
        order = pc.sort_indices(
            pa.RecordBatch.from_arrays([pa.array(owners), keys], ["map", "key"]),
            sort_keys=[("map", "ascending"), ("key", "ascending")],
        )
        keys, entries = keys.take(order), entries.take(order)
        is_duplicate = (owners[1:] == owners[:-1]) & np.asarray(pc.equal(keys[1:], keys[:-1]))
        entry_rows = rows[owners]
        self.bad[entry_rows[1:][is_duplicate]] = True
        sent_values = entries.field(1)
        values = self._read_values(field, sent_values, entry_rows)
        if field.fields or isinstance(part.shape, Moment):
            # An entry without a value has an empty message, which only protobuf itself creates.
            self.bad[entry_rows[np.asarray(sent_values.is_null())]] = True
        else:
            values = _fill_defaults(part, values)
        return pa.MapArray.from_arrays(offsets, self._read_scalar(key, keys), values, type=part.type)

    def _read_values(self, field: ColumnField, array: pa.Array, rows: Ints) -> pa.Array:
        shape = field.part.shape
        if isinstance(shape, Scalar):
            return self._read_scalar(shape, array)
        present = np.asarray(array.is_valid())
        if isinstance(shape, Moment):
            seconds = np.asarray(pc.fill_null(array.field(0), 0))
            nanos = np.asarray(pc.fill_null(array.field(1), 0)).astype(np.int64)
            is_too_large = (seconds > MAX_SECONDS) | (seconds < -MAX_SECONDS)
            self.bad[rows[is_too_large]] = True
            micros = np.where(is_too_large, 0, seconds) * SECOND_MICROS + nanos // 1000
            return pa.array(micros, pa.int64(), mask=~present).cast(shape.type)
        columns = self.read_fields(field.fields, array, rows, present)
        return pa.StructArray.from_arrays(columns, fields=list(shape.type), mask=pa.array(~present))

    def _read_scalar(self, shape: Scalar, array: pa.Array) -> pa.Array:
        if shape.kind == "enum":
            names = shape.names or {}
            encoded = array.dictionary_encode()
            numbers = encoded.dictionary.to_pylist()
            texts = pa.array([names.get(number) or str(number) for number in numbers], pa.string())
            return texts.take(encoded.indices)
        if pa.types.is_decimal(shape.type):
            # Unsigned numbers of 64 bits become the low words of decimals, which have 128 bits.
            words: npt.NDArray[np.uint64] = np.zeros((len(array), 2), np.uint64)
            words[:, 0] = np.asarray(pc.fill_null(array, 0))
            validity = pa.array(np.asarray(array.is_valid())).buffers()[1] if array.null_count else None
            return pa.Array.from_buffers(shape.type, len(array), [validity, pa.py_buffer(words)])
        return array if array.type == shape.type else array.cast(shape.type)


def _fill_defaults(part: MessagePart, values: pa.Array) -> pa.Array:
    """Replace null by the default of the field or of its type."""
    shape = part.shape
    if not values.null_count or not isinstance(shape, Scalar):
        return values
    default: Any = _ZEROS.get(shape.kind, 0) if part.default is None else part.default
    if shape.kind == "enum":
        names = shape.names or {}
        default = names.get(default) or str(default)
    return pc.fill_null(values, pa.scalar(default, shape.type))


# Writer


def make_column_writer(plan: PtarsPlan) -> Callable[[pa.Array], tuple[pa.BinaryArray, Mask]]:
    """Make the function that encodes messages, with the mask of rows for the scalar path."""

    def write(values: pa.Array) -> tuple[pa.BinaryArray, Mask]:
        count = len(values)
        if not count:
            return pa.array([], pa.binary()), np.zeros(0, bool)
        present = np.asarray(values.is_valid())
        rows = _RowWriter(~present)
        columns = rows.write_fields(plan.fields, values, np.arange(count), present)
        batch = pa.RecordBatch.from_arrays(columns, [column_name(field.part.number) for field in plan.fields])
        return plan.handler.record_batch_to_array(batch), rows.bad

    return write


class _RowWriter(BatchRows):
    """Converts the columns of values to the columns of ptars."""

    def write_fields(
        self, fields: Sequence[ColumnField], messages: pa.StructArray, rows: Ints, present: Mask
    ) -> list[pa.Array]:
        """Return the columns of ptars for messages, given the row of each message and whether it is set."""
        # `flatten` also makes the fields of unset messages null.
        columns = dict(zip((part.name for part in messages.type), messages.flatten(), strict=True))
        arrays = [columns[field.part.name] for field in fields]
        self.mark_invalid(fields, arrays, rows, present)
        written = []
        for field, array in zip(fields, arrays, strict=True):
            part = field.part
            if part.key is not None:
                column = self._write_map(field, part.key, array, rows)
            elif part.repeated:
                counts = np.asarray(pc.fill_null(pc.list_value_length(array), 0))
                item_rows = np.repeat(rows, counts)
                items = array.flatten()
                self.bad[item_rows[np.asarray(items.is_null())]] = True
                if field.is_unpacked:
                    self.bad[item_rows] = True
                column = _make_list_array(counts, self._write_values(field, items, item_rows))
            else:
                column = self._write_values(field, array, rows)
                if not part.presence:
                    column = _unset_defaults(part, column)
            written.append(column)
        return written

    def _write_map(self, field: ColumnField, key: Scalar, array: pa.MapArray, rows: Ints) -> pa.Array:
        # The entries of a new array do not include the entries of null maps.
        array = array.take(pa.array(np.arange(len(array))))
        counts = np.diff(np.asarray(array.offsets))
        entry_rows = np.repeat(rows, counts)
        keys, values = array.keys, array.items
        self.bad[entry_rows[np.asarray(values.is_null())]] = True
        # Only protobuf defines the order of entries, and the entry that is written for a duplicate key.
        self.bad[rows[counts > 1]] = True
        entries = pa.StructArray.from_arrays(
            [self._write_scalar(key, keys, entry_rows), self._write_values(field, values, entry_rows)],
            names=[column_name(1), column_name(2)],
        )
        return _make_list_array(counts, entries)

    def _write_values(self, field: ColumnField, array: pa.Array, rows: Ints) -> pa.Array:
        shape = field.part.shape
        if isinstance(shape, Scalar):
            return self._write_scalar(shape, array, rows)
        present = np.asarray(array.is_valid())
        if isinstance(shape, Moment):
            micros = np.asarray(pc.fill_null(array.cast(pa.int64()), 0))
            # Seconds and nanoseconds of a Duration have the same sign (google/protobuf/duration.proto).
            rest = micros % SECOND_MICROS if shape.type == TIMESTAMP else np.fmod(micros, SECOND_MICROS)
            moments = ((micros - rest) // SECOND_MICROS, (rest * 1000).astype(np.int32))
            columns = [pa.array(numbers, mask=numbers == 0) for numbers in moments]
            names = [column_name(1), column_name(2)]
        else:
            columns = self.write_fields(field.fields, array, rows, present)
            names = [column_name(inner.part.number) for inner in field.fields]
        return pa.StructArray.from_arrays(columns, names=names, mask=pa.array(~present))

    def _write_scalar(self, shape: Scalar, array: pa.Array, rows: Ints) -> pa.Array:
        if shape.kind == "enum":
            numbers_by_name = {name: number for number, name in (shape.names or {}).items()}
            encoded = array.dictionary_encode()
            names = encoded.dictionary.to_pylist()
            values = pa.array([numbers_by_name.get(name) for name in names], pa.int32()).take(encoded.indices)
            self.bad[rows[np.asarray(values.is_null()) & np.asarray(array.is_valid())]] = True
            return values
        ptars_type = _PTARS_TYPES.get(shape.kind)
        if ptars_type is None:
            return array
        if ptars_type == pa.uint32():
            numbers = np.asarray(pc.fill_null(array, 0))
            self.bad[rows[(numbers < 0) | (numbers >= 2**32)]] = True
            words = numbers.astype(np.uint32)
        else:
            pairs = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, 2)
            words, high = pairs[array.offset : array.offset + len(array)].T
            self.bad[rows[(high != 0) & np.asarray(array.is_valid())]] = True
        return pa.array(words, ptars_type, mask=np.asarray(array.is_null()))


def _unset_defaults(part: MessagePart, values: pa.Array) -> pa.Array:
    """Replace the default of a field without presence by null, because it is not sent."""
    if not isinstance(part.shape, Scalar):
        return values
    kind = part.shape.kind
    if kind in ("string", "bytes"):
        is_default = pc.equal(pc.binary_length(values), 0)
    elif kind in ("float", "double"):
        # Compared by their bits, because negative zero is sent.
        is_default = pc.equal(values.view(pa.int32() if kind == "float" else pa.int64()), 0)
    else:
        is_default = pc.invert(values) if kind == "bool" else pc.equal(values, pa.scalar(0, values.type))
    return pc.if_else(is_default, pa.scalar(None, values.type), values)


def _make_list_array(counts: Any, values: pa.Array) -> pa.Array:
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)
