"""The message that proves a protobuf incompatibility, its words, and the outline of a definition."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import SchemaInfo
from schemactl.formats.protobuf import descriptor
from schemactl.formats.protobuf.compatibility import MessagePair, fields_of, pairs, select_independent
from schemactl.formats.protobuf.definition import ProtoDefinition, build_pool, field_path, is_shipped, parse
from schemactl.formats.protobuf.descriptor import ENUM, KIND_NAMES, ProtoEnum, ProtoField, ProtoMessage, default_of
from schemactl.formats.type_spec import Explanation

# Small messages.


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
    if field.kind == descriptor.STRING:
        yield from ("a", "")
    elif field.kind == descriptor.BYTES:
        yield from (b"\xff", b"a")
    elif field.kind in (descriptor.FLOAT, descriptor.DOUBLE):
        yield 1.5
    elif field.kind == descriptor.ENUM:
        numbers = field.enum.numbers().values()
        yield from sorted(numbers, key=lambda number: (number == 0, abs(number)))
    elif field.is_message:
        if required(field.message_type, leave_out=set()) is not None:
            yield None
    elif field.kind == descriptor.BOOL:
        yield 1
    else:
        yield from (1, 2)


def required(message: ProtoMessage, *, leave_out: set[int]) -> bytes | None:
    """Return the fields a message cannot do without, as simple as they can be; None: a message must contain itself."""
    return _required(message, leave_out, {}, 0)


def _required(message: ProtoMessage, leave_out: set[int], known: dict[str, bytes | None], depth: int) -> bytes | None:
    out = b""
    for number, field in fields_of(message).items():
        if field.cardinality != descriptor.REQUIRED or number in leave_out:
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
    number, name = field.proto.number, descriptor.KIND_NAMES[field.kind]
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
    if field.kind == descriptor.GROUP:
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


# Outline of a definition.


def parts(info: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield the parts of protobuf messages (see TypeSpec.outline)."""
    definition = parse(info.schema)
    yield "", f"message {definition.root.full_name}"

    def described(field: ProtoField) -> str:
        label = f"{field.cardinality} " if field.is_repeated else ""
        oneof = f" in oneof {field.oneof}" if field.oneof else ""
        return f"{label}{field.type_name or KIND_NAMES[field.kind]} {field.proto.name}{oneof}"

    for name in definition.reachable:
        if is_shipped(name):
            continue
        for element in definition.image.files[name].elements:
            match element:
                case ProtoMessage():
                    yield element.full_name, "message"
                    for number, each in sorted(element.fields().items()):
                        yield f"{element.full_name} {number}", described(each)
                case ProtoEnum():
                    yield element.full_name, "enum"
                    for value, number in element.numbers().items():
                        yield f"{element.full_name}.{value}", f"number {number}"
                case ProtoField():
                    yield f"extension {element.full_name} {element.proto.number}", described(element)
                case _:
                    # A service says nothing about messages on a topic.
                    pass


def uses(info: SchemaInfo) -> dict[str, frozenset[str]]:
    """Return the types that each message uses, by full name; a map is no type of its own (see TypeSpec.uses)."""
    definition = parse(info.schema)
    found = {"": frozenset({definition.root.full_name})}
    for name in definition.reachable:
        for element in () if is_shipped(name) else definition.image.files[name].elements:
            if isinstance(element, ProtoMessage) and not element.is_map_entry:
                held = (field.value for field in element.fields().values())
                found[element.full_name] = frozenset(
                    each.type_name.removeprefix(".") for each in held if each.type_name
                )
            elif isinstance(element, ProtoEnum):
                found[element.full_name] = frozenset()
    return found


# Search for a message that proves an incompatibility.


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
            if _is_about(found, read, pair) and (written is not None or found.rule == "MESSAGE_SAME_REQUIRED_FIELDS")
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
        together = [(field, list(islice(values(field), 1))) for field in select_independent(fields)[:2]]
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
            return f"field {number} ({other.name}) is read as {_shown(here)}, and was written as {_shown(there)}"
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


# Incompatibilities in words.


_CONSEQUENCES = {
    "ENUM_VALUE_NO_DELETE": "The enum is closed: a parser puts other numbers aside, and the field looks as if it were not set.",
    "FIELD_SAME_DEFAULT": "A message that does not carry the field means one thing to its writer and another to the reader.",
    "FIELD_SAME_ONEOF": "What the message said first is lost.",
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": "The reader keeps one of several values or none, or takes one value for a list.",
    "FIELD_WIRE_COMPATIBLE_TYPE": "The bytes mean something else: the reader fails, misses the field or sees another value.",
    "MESSAGE_SAME_MESSAGE_SET_WIRE_FORMAT": "Its extensions lie elsewhere in the bytes, and the reader does not find them.",
    "MESSAGE_SAME_REQUIRED_FIELDS": "A message without it does not parse: the reader throws.",
}

_FIXES = {
    "ENUM_VALUE_NO_DELETE": (
        "Keep every value, and write new ones only when all readers know them; or make the enum open: proto3, or "
        "`option features.enum_type = OPEN;`."
    ),
    "FIELD_SAME_DEFAULT": "Keep the default as it was.",
    "FIELD_SAME_ONEOF": "Leave fields that exist where they are; only new fields belong in a oneof.",
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": "Keep it as it was, or write `reserved {number};` and take a new number.",
    "FIELD_WIRE_COMPATIBLE_TYPE": "Keep the type, or write `reserved {number};` and take a new number for the new type.",
    "MESSAGE_SAME_MESSAGE_SET_WIRE_FORMAT": "Keep `message_set_wire_format` as it was.",
    "MESSAGE_SAME_REQUIRED_FIELDS": "Leave it optional, or as it was: a required field can be neither added nor removed.",
}


def explain(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
    """Which field it is, what becomes of the messages, and what to write instead."""
    found = breakage.incompatibility
    roots = [parse(info.schema).root for info in (new, old)]
    number = found.pointer.partition("/fields/")[2].partition("/")[0]
    sentence = f"{found.message[:1].upper()}{found.message[1:]}."
    is_older = breakage.direction == "old_reads_new"
    if not is_provable(found, reader=roots[is_older], writer=roots[not is_older]):
        sentence += " No message can be shown: each would have to contain itself, or be too large."
    return Explanation(
        field_path(found.pointer, *roots),
        f"{sentence} {_CONSEQUENCES[found.rule]}",
        _FIXES[found.rule].format(number=number),
        _counterpart(found.pointer, reader=roots[1], writer=roots[0]) if is_older else found.pointer,
        found.pointer if is_older else None,
    )


def _counterpart(pointer: str, *, reader: ProtoMessage, writer: ProtoMessage) -> str:
    """`pointer` into the reader's definition as one into the writer's, where the message or enum may be called otherwise."""
    noun, name, *rest = pointer.split("/")[1:]
    for pair in pairs(reader=reader, writer=writer):
        names = [(pair.reader.full_name, pair.writer.full_name)]
        if noun == "enums":
            names = [(read.type_name, written.type_name) for read, written in pair.fields() if written]
        for ours, theirs in names:
            if ours == name and theirs:
                return "/" + "/".join((noun, theirs, *rest))
    return pointer
