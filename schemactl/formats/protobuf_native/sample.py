"""Small messages in protobuf's binary form, and the result of protobuf's own parser for any bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from schemactl.formats.protobuf_native import kinds
from schemactl.formats.protobuf_native.descriptor import ProtoField, ProtoMessage
from schemactl.formats.protobuf_native.wire import fields_of
from schemactl.formats.protobuf_native.wrapper import ProtoDefinition, build_pool, parse

Value: TypeAlias = int | float | str | bytes | None
"""What a field is given; None: an empty message."""

_MAX_FIELDS: Final = 3
_MAX_DEPTH: Final = 50
_MAX_BYTES: Final = 100_000
"""Of required messages inside each other; what needs more is not written."""


def messages(schema: bytes) -> Iterator[bytes]:
    """Yield small messages: with one field set, for the first few fields, then with none but the required ones.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    root = parse(schema).root
    for field in islice(fields_of(root).values(), _MAX_FIELDS):
        needed = required(root, leave_out={field.proto.number})
        value = list(islice(values(field), 1))
        if needed is not None and value:
            yield needed + encoded(field, value[0])
    needed = required(root, leave_out=set())
    if needed is not None:
        yield needed


def message_class(definition: ProtoDefinition) -> type[Message]:
    """Return protobuf's own class of the root message."""
    pool = build_pool(definition.image, definition.reachable)
    return GetMessageClass(pool.FindMessageTypeByName(definition.root.full_name))


def parsed(data: bytes, message: type[Message]) -> Message:
    """Return the message in `data`, as protobuf's own parser reads it.

    Raises:
        ValueError: the parser refuses it; says why.
    """
    found = message()
    try:
        found.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    if not found.IsInitialized():
        missing = found.FindInitializationErrors()  # type: ignore[attr-defined]  # the stubs lack it
        raise ValueError(f"it lacks {', '.join(missing)}")
    return found


def json_text(message: Message) -> str:
    """Return `message` as JSON, on one line."""
    text: str = MessageToJson(message, preserving_proto_field_name=True, indent=None)
    return text


def values(field: ProtoField) -> Iterator[Value]:
    """Yield values of the field's type, the most ordinary first."""
    if field.kind == kinds.STRING:
        yield from ("a", "")
    elif field.kind == kinds.BYTES:
        yield from (b"\xff", b"a")
    elif field.kind in (kinds.FLOAT, kinds.DOUBLE):
        yield 1.5
    elif field.kind == kinds.ENUM:
        numbers = field.enum.numbers().values()
        yield from sorted(numbers, key=lambda number: (number == 0, abs(number)))
    elif field.is_message:
        if required(field.message_type, leave_out=set()) is not None:
            yield None
    elif field.kind == kinds.BOOL:
        yield 1
    else:
        yield from (1, 2)


def required(message: ProtoMessage, *, leave_out: set[int]) -> bytes | None:
    """Return the fields a message cannot do without, as simple as they can be; None: a message must contain itself."""
    return _required(message, leave_out, {}, 0)


def _required(
    message: ProtoMessage, leave_out: set[int], known: dict[str, bytes | None], depth: int
) -> bytes | None:
    out = b""
    for number, field in fields_of(message).items():
        if field.cardinality != kinds.REQUIRED or number in leave_out:
            continue
        if field.is_message:
            name = field.type_name
            if name not in known:
                # As long as it is open: there is no end to a message that must contain itself.
                known[name] = None
                if depth < _MAX_DEPTH:
                    known[name] = _required(field.message_type, set(), known, depth + 1)
            body = known[name]
            if body is None:
                return None
            out += _wrapped(field, body)
        else:
            out += encoded(field, next(values(field)))
        if len(out) > _MAX_BYTES:
            return None
    return out


def around(root: ProtoMessage, path: Sequence[int], body: bytes) -> bytes | None:
    """Return a message of `root` with `body` at the end of `path`."""
    messages, fields = [root], []
    for number in path:
        fields.append(fields_of(messages[-1])[number])
        messages.append(fields[-1].message_type)
    for field, message in zip(reversed(fields), reversed(messages[:-1]), strict=True):
        needed = required(message, leave_out={field.proto.number})
        if needed is None:
            return None
        body = needed + _wrapped(field, body)
    return body


def encoded(field: ProtoField, value: Value) -> bytes:
    """Return `value` in protobuf's binary form, with its tag."""
    number, name = field.proto.number, kinds.KIND_NAMES[field.kind]
    if value is None:
        body = required(field.message_type, leave_out=set())
        return _wrapped(field, body or b"")
    if isinstance(value, (str, bytes)):
        return _wrapped(field, value.encode() if isinstance(value, str) else value)
    if name in _FIXED:
        wire_type, form = _FIXED[name]
        return _tag(number, wire_type, struct.pack(form, value))
    integer = int(value)
    if name.startswith("sint"):
        integer = (integer << 1) ^ (integer >> 63)
    return _tag(number, 0, _varint(integer & 0xFFFFFFFFFFFFFFFF))


_FIXED: Final = {
    "float": (5, "<f"),
    "double": (1, "<d"),
    "fixed32": (5, "<I"),
    "sfixed32": (5, "<i"),
    "fixed64": (1, "<Q"),
    "sfixed64": (1, "<q"),
}
"""Wire type and form of the kinds of fixed size."""


def _wrapped(field: ProtoField, body: bytes) -> bytes:
    """`body` as a string, bytes or message of `field`."""
    number = field.proto.number
    if field.kind == kinds.GROUP:
        return _tag(number, 3, body) + _tag(number, 4, b"")
    return _tag(number, 2, _varint(len(body)) + body)


def _tag(number: int, wire_type: int, content: bytes) -> bytes:
    return _varint(number << 3 | wire_type) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
