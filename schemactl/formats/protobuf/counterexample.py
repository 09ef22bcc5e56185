"""One message that proves an incompatibility: the writer's bytes, and protobuf's own result for the reader."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from google.protobuf.message import Message

from schemactl.core.findings import Counterexample, Incompatibility
from schemactl.formats.protobuf_native.default import default_of
from schemactl.formats.protobuf_native.descriptor import ProtoField, ProtoMessage
from schemactl.formats.protobuf_native.kinds import ENUM
from schemactl.formats.protobuf_native.sample import (
    around,
    encoded,
    json_text,
    message_class,
    parsed,
    required,
    values,
)
from schemactl.formats.protobuf_native.wire import MessagePair, independent, pairs
from schemactl.formats.protobuf_native.wrapper import ProtoDefinition


def counterexample(
    incompatibility: Incompatibility, *, reader: ProtoDefinition, writer: ProtoDefinition
) -> Counterexample | None:
    """Return the smallest message found that shows `incompatibility`, read by both; None: none was found.

    None can be found where only parsers of other languages misread (Java's, of open enums in proto2 files).
    """
    readers, writers = message_class(reader), message_class(writer)
    for attempt in _attempts(incompatibility, reader.root, writer.root):
        data = around(writer.root, attempt.path, attempt.body)
        if data is None:
            continue
        written = writers.FromString(data)
        result = _difference(attempt, written, readers, data)
        if result:
            return Counterexample(json_text(written), data, result)
    return None


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A message to try: `body` at the end of `path` (field numbers), to be looked at under `numbers`."""

    path: tuple[int, ...]
    body: bytes
    reader: tuple[ProtoField, ...]
    writer: tuple[ProtoField, ...]


def _attempts(found: Incompatibility, reader: ProtoMessage, writer: ProtoMessage) -> Iterator[_Attempt]:
    """Messages of the writer that may show what was found, the simplest first."""
    for pair in pairs(reader=reader, writer=writer):
        fields = [
            (read, written)
            for read, written in pair.fields()
            if _is_about(found, read, pair)
            and (written is not None or found.rule == "MESSAGE_SAME_REQUIRED_FIELDS")
        ]
        if not fields:
            continue
        read, written = tuple(one for one, _ in fields), tuple(one for _, one in fields if one is not None)
        for body in _bodies(found.rule, pair.writer, written, read):
            yield _Attempt(pair.path, body, read, written)


def is_provable(found: Incompatibility, *, reader: ProtoMessage, writer: ProtoMessage) -> bool:
    """Whether messages can be written that `found` is about: not where each must contain itself, or very many others."""
    writers = [
        pair.writer
        for pair in pairs(reader=reader, writer=writer)
        if any(_is_about(found, read, pair) for read, _ in pair.fields())
    ]
    return not writers or any(required(each, leave_out=set()) is not None for each in writers)


def _is_about(found: Incompatibility, field: ProtoField, pair: MessagePair) -> bool:
    """Whether `field` of the reader is (one of) what `found` points at."""
    if found.rule == "FIELD_SAME_ONEOF":
        oneof = next((one for one in pair.reader.oneofs() if one.pointer == found.pointer), None)
        return oneof is not None and field.proto.number in oneof.numbers
    if found.rule == "ENUM_VALUE_NO_DELETE":
        return field.kind == ENUM and field.enum.pointer == found.pointer
    return found.pointer in (field.pointer, f"{field.pointer}/type", f"{field.pointer}/default")


def _bodies(
    rule: str, message: ProtoMessage, fields: Sequence[ProtoField], readers: Sequence[ProtoField]
) -> Iterator[bytes]:
    """Yield what a message of the writer may hold so that the rule shows."""
    mine = {field.proto.number for field in fields}
    needed = required(message, leave_out=mine)
    if needed is None:
        return
    if rule in ("MESSAGE_SAME_REQUIRED_FIELDS", "FIELD_SAME_DEFAULT"):
        yield needed
    elif rule == "FIELD_SAME_ONEOF":
        together = [(field, list(islice(values(field), 1))) for field in independent(fields)[:2]]
        yield needed + b"".join(encoded(field, value) for field, first in together for value in first)
    elif rule == "ENUM_VALUE_NO_DELETE":
        for field, reader in zip(fields, readers, strict=True):
            readable = set(reader.enum.numbers().values()) if reader.kind == ENUM else set()
            for number in field.enum.numbers().values() if field.kind == ENUM else ():
                if number not in readable:
                    yield needed + encoded(field, number)
    else:
        for field in fields:
            for value in values(field):
                yield needed + encoded(field, value) * (2 if field.is_repeated else 1)


def _difference(attempt: _Attempt, written: Message, readers: type[Message], data: bytes) -> str:
    """Return what the reader's parser makes of `data` in place of what was written; "" when it is the same."""
    try:
        read = parsed(data, readers)
    except ValueError as error:
        return f"the message is rejected: {error}"
    before, after = _at(_view(written), attempt.path), _at(_view(read), attempt.path)
    for field, other in zip(attempt.writer, attempt.reader, strict=False):
        number = field.proto.number
        there, here = before.get(number), after.get(number)
        if there is None and here is None and not field.is_message and not field.is_repeated:
            there, here = _default(field), _default(other)
        if there != here:
            return (
                f"field {number} ({other.name}) is read as {_shown(here)}, and was written as {_shown(there)}"
            )
    return ""


@dataclass(frozen=True, slots=True)
class _Symbol:
    """An enum's number, which is not the number an integer has."""

    number: int
    name: str = dataclasses.field(compare=False)


View: TypeAlias = dict[int, Any]
"""A message by field numbers: messages as views, lists and maps (of entries) as lists."""


def _view(message: Message) -> View:
    view: View = {}
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            kinds = field.message_type.fields_by_number
            view[field.number] = [
                {1: _value_view(kinds[1], key), 2: _value_view(kinds[2], value[key])} for key in value
            ]
        elif field.is_repeated:
            view[field.number] = [_value_view(field, item) for item in value]
        else:
            view[field.number] = _value_view(field, value)
    return view


def _value_view(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _view(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return _Symbol(value, known.name if known else str(value))
    return value


def _at(view: View, path: Sequence[int]) -> View:
    """Return the message at the end of `path`, of a list the last; {} where it ends early."""
    for number in path:
        inner = view.get(number)
        inner = inner[-1] if isinstance(inner, list) and inner else inner
        view = inner if isinstance(inner, dict) else {}
    return view


def _default(field: ProtoField) -> Any:
    value = default_of(field)
    if field.kind != ENUM:
        return value
    names = {number: name for name, number in field.enum.numbers().items()}
    number = int(value)
    return _Symbol(number, names.get(number, str(number)))


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, _Symbol):
        return value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
