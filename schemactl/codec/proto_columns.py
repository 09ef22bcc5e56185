"""Which protobuf messages the package ptars can read and write in columns, and how.

ptars reads quickly and believes much: of a field that comes twice, of two members of a oneof, of a map's key that comes
twice, it makes something else than protobuf. So it is asked for columns *and* to write them again: a payload that comes out
as it went in says exactly what its columns say, and every other is for protobuf itself to judge. For that to hold, ptars
gets a message of ours that stands for the topic's: each field optional, so that what was sent can be told from what was
not; enums as numbers, maps as lists of entries, Timestamp and Duration as plain messages, recursion written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from .lanes import Ints, Mask
from .proto_schema import Message, MessagePart, Moment, Root, Scalar, Shape, kind_of

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


def plan_of(root: Root, writer: Any = None) -> PtarsPlan | None:
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
            if kind_of(field) == "group" or (part is None and field.is_required):
                raise _NotServed
            if kind_of(field) == "string" and part is not None and isinstance(part.default, bytes):
                # A default that is no text.
                raise _NotServed
            if part is not None:
                fields[number] = self._field(made, part, field, other)
        for number, field in sorted(theirs.items()):
            if kind := _SENT_AS.get(kind_of(field)):
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
    return field.message_type if field is not None and kind_of(field) == "message" else None


class BatchRows:
    """The rows of a batch; `bad` are those for the path that takes one message at a time."""

    def __init__(self, bad: Mask) -> None:
        self.bad = bad

    def judge(
        self, fields: Sequence[ColumnField], arrays: Sequence[pa.Array], rows: Ints, there: Mask
    ) -> None:
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
