"""Find the message that proves a protobuf incompatibility, explain the incompatibility, and outline a definition."""

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

from schemactl.codec.wire_format import encode_varint
from schemactl.core.edits import SetType
from schemactl.core.findings import Breakage, Counterexample, Incompatibility
from schemactl.core.schema import SchemaInfo
from schemactl.formats.protobuf import kinds
from schemactl.formats.protobuf.compatibility import (
    INTEGER_RANGES,
    MessagePair,
    iterate_pairs,
    list_fields,
    list_swapped_numbers,
    select_independent,
)
from schemactl.formats.protobuf.defaults import get_default
from schemactl.formats.protobuf.definition import ProtoDefinition, field_path, is_shipped, parse
from schemactl.formats.protobuf.descriptor import ProtoEnum, ProtoField, ProtoMessage
from schemactl.formats.protobuf.kinds import ENUM, KIND_NAMES
from schemactl.formats.protobuf.python_runtime import build_pool
from schemactl.formats.type_spec import Explanation

Value: TypeAlias = int | float | str | bytes | None
"""The value of a field; None is an empty message."""

View: TypeAlias = dict[int, Any]
"""A message by field numbers: messages as views, lists and maps (of entries) as lists."""

_MAX_FIELDS: Final = 3
_MAX_DEPTH: Final = 50

_MAX_BYTES: Final = 100_000
"""The maximum size of nested required messages; a larger message is not written."""

_FIXED_SIZE_FORMS: Final = {
    "float": (5, "<f"),
    "double": (1, "<d"),
    "fixed32": (5, "<I"),
    "sfixed32": (5, "<i"),
    "fixed64": (1, "<Q"),
    "sfixed64": (1, "<q"),
}
"""The wire type and struct format of the kinds with a fixed size."""

_EXTREME_INTEGERS: Final = (2**32 + 1, 2**31, -1, 2, 2**63)
"""Integers that some type does not have, the most typical first."""

_CONSEQUENCES = {
    "ENUM_VALUE_NO_DELETE": "The enum is closed: a parser keeps other numbers as unknown fields, and the field looks unset.",
    "FIELD_SAME_DEFAULT": "A message that does not carry the field means one thing to its writer and another to the reader.",
    "FIELD_SAME_ONEOF": "The first value in the message is lost.",
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": "The reader keeps one of several values or none, or takes one value for a list.",
    "FIELD_WIRE_COMPATIBLE_TYPE": "The bytes mean something else: the reader fails, misses the field or sees another value.",
    "MESSAGE_SAME_MESSAGE_SET_WIRE_FORMAT": "Its extensions are at other places in the bytes, and the reader does not find them.",
    "MESSAGE_SAME_REQUIRED_FIELDS": "A message without it does not parse: the reader throws.",
    "NARROWER_TYPE": "A value that the reader's type does not have loses its high bits, or changes its sign.",
    "NUMBERS_SWAPPED": "The bytes carry numbers, so the reader finds one name's value under another name, without an error.",
}

_FIXES = {
    "ENUM_VALUE_NO_DELETE": (
        "Keep every value, and write new ones only when all readers know them; or make the enum open: proto3, or "
        "`option features.enum_type = OPEN;`."
    ),
    "FIELD_SAME_DEFAULT": "Keep the default.",
    "FIELD_SAME_ONEOF": "Leave fields that exist where they are; only new fields belong in a oneof.",
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": "Keep the cardinality, or write `reserved {number};` and take a new number.",
    "FIELD_WIRE_COMPATIBLE_TYPE": "Keep the type, or write `reserved {number};` and take a new number for the new type.",
    "MESSAGE_SAME_MESSAGE_SET_WIRE_FORMAT": "Keep `message_set_wire_format`.",
    "MESSAGE_SAME_REQUIRED_FIELDS": "Keep the field optional, or required as before: a required field can be neither added nor removed.",
    "NARROWER_TYPE": "Keep the type, or write `reserved {number};` and take a new number for the new type.",
    "NUMBERS_SWAPPED": "Give each name the number that it had.",
}


def counterexample(
    incompatibility: Incompatibility, *, reader: ProtoDefinition, writer: ProtoDefinition
) -> Counterexample | None:
    """Return a small message that shows `incompatibility`, read by both, or None if none was found.

    There is no counterexample if only parsers of other languages misread (Java's, of open enums in proto2 files).
    """
    reader_class, writer_class = make_message_class(reader), make_message_class(writer)
    rule = incompatibility.rule
    for pair in iterate_pairs(reader=reader.root, writer=writer.root):
        field_pairs = [
            (reader_field, writer_field)
            for reader_field, writer_field in pair.pair_fields()
            if _is_about(incompatibility, reader_field, pair)
            and (writer_field is not None or rule == "MESSAGE_SAME_REQUIRED_FIELDS")
        ]
        if not field_pairs:
            continue
        reader_fields = [reader_field for reader_field, _ in field_pairs]
        writer_fields = [writer_field for _, writer_field in field_pairs if writer_field is not None]
        has_other_name = rule == "NUMBERS_SWAPPED" and any(
            incompatibility.pointer == field.pointer for field in reader_fields
        )
        # The simplest messages come first.
        for body in _list_bodies(rule, pair.writer, writer_fields, reader_fields):
            data = encode_enclosing(writer.root, pair.path, body)
            if data is None:
                continue
            written_message = writer_class.FromString(data)
            try:
                read_message = parse_message(data, reader_class)
            except ValueError as error:
                difference = f"the message is rejected: {error}"
            else:
                writer_view, reader_view = (
                    _get_inner_view(_make_view(message), pair.path) for message in (written_message, read_message)
                )
                difference = _find_difference(
                    field_pairs, written=writer_view, read=reader_view, has_other_name=has_other_name
                )
            if difference:
                return Counterexample(json_text(written_message), data, difference)
    return None


def _is_about(incompatibility: Incompatibility, field: ProtoField, pair: MessagePair) -> bool:
    """Return whether the pointer of an incompatibility leads to the reader's `field`, or to its oneof or enum."""
    if incompatibility.rule == "FIELD_SAME_ONEOF":
        oneof = next((oneof for oneof in pair.reader.oneofs() if oneof.pointer == incompatibility.pointer), None)
        return oneof is not None and field.proto.number in oneof.numbers
    if field.kind == ENUM and field.enum.pointer == incompatibility.pointer:
        return True
    return incompatibility.pointer in (field.pointer, f"{field.pointer}/type", f"{field.pointer}/default")


def _list_bodies(
    rule: str, message: ProtoMessage, fields: Sequence[ProtoField], reader_fields: Sequence[ProtoField]
) -> Iterator[bytes]:
    """Yield encoded messages of the writer that may break the rule."""
    required_fields = encode_required(message, leave_out={field.proto.number for field in fields})
    if required_fields is None:
        return
    if rule in ("MESSAGE_SAME_REQUIRED_FIELDS", "FIELD_SAME_DEFAULT"):
        yield required_fields
    elif rule == "FIELD_SAME_ONEOF":
        members = [(field, list(islice(list_values(field), 1))) for field in select_independent(fields)[:2]]
        yield required_fields + b"".join(
            encode(field, value) for field, first_values in members for value in first_values
        )
    elif rule == "ENUM_VALUE_NO_DELETE":
        for field, reader_field in zip(fields, reader_fields, strict=True):
            readable = set(reader_field.enum.numbers().values()) if reader_field.kind == ENUM else set()
            for number in field.enum.numbers().values() if field.kind == ENUM else ():
                if number not in readable:
                    yield required_fields + encode(field, number)
    elif rule == "NUMBERS_SWAPPED":
        for field, reader_field in zip(fields, reader_fields, strict=True):
            swapped_numbers: list[Value] = []
            if field.kind == ENUM and reader_field.kind == ENUM:
                swapped_numbers += [
                    number for number, _, _ in list_swapped_numbers(reader=reader_field.enum, writer=field.enum)
                ]
            for value in swapped_numbers or islice(list_values(field), 1):
                yield required_fields + encode(field, value)
    elif rule == "NARROWER_TYPE":
        for field in fields:
            least, greatest = INTEGER_RANGES[field.kind]
            for number in _EXTREME_INTEGERS:
                if least <= number <= greatest:
                    yield required_fields + encode(field, number)
    else:
        for field in fields:
            for value in list_values(field):
                yield required_fields + encode(field, value) * (2 if field.is_repeated else 1)


def _find_difference(
    field_pairs: Sequence[tuple[ProtoField, ProtoField | None]], *, written: View, read: View, has_other_name: bool
) -> str:
    """Describe how the reader's view of a message differs from the written one in pairs of fields; "" if it does not.

    `has_other_name` is whether the reader misreads a field because the field has another name there.
    """
    for reader_field, field in field_pairs:
        if field is None:
            continue
        number = field.proto.number
        written_value, read_value = written.get(number), read.get(number)
        if written_value is None and read_value is None and not field.is_message and not field.is_repeated:
            written_value, read_value = _get_default(field), _get_default(reader_field)
        if written_value is not None and reader_field.name != field.name and has_other_name:
            return (
                f"field {number} is written as {field.name} = {_to_text(written_value)} and read as {reader_field.name}"
            )
        if (
            isinstance(written_value, _Symbol)
            and isinstance(read_value, _Symbol)
            and written_value.name != read_value.name
        ):
            return (
                f"field {number} ({reader_field.name}) is written as {written_value.name} and read as {read_value.name}"
            )
        if written_value != read_value:
            return (
                f"field {number} ({reader_field.name}) is read as {_to_text(read_value)}, and was written as "
                f"{_to_text(written_value)}"
            )
    return ""


def _get_inner_view(view: View, path: Sequence[int]) -> View:
    """Return the message at the end of `path`, the last one of a list, or {} if the path ends early."""
    for number in path:
        inner = view.get(number)
        inner = inner[-1] if isinstance(inner, list) and inner else inner
        view = inner if isinstance(inner, dict) else {}
    return view


@dataclass(frozen=True, slots=True)
class _Symbol:
    """The number of an enum value, which does not equal the same number of an integer."""

    number: int
    name: str = dataclasses.field(compare=False)


def _make_view(message: Message) -> View:
    view: View = {}
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            parts = field.message_type.fields_by_number
            view[field.number] = [
                {1: _make_value_view(parts[1], key), 2: _make_value_view(parts[2], value[key])} for key in value
            ]
        elif field.is_repeated:
            view[field.number] = [_make_value_view(field, item) for item in value]
        else:
            view[field.number] = _make_value_view(field, value)
    return view


def _make_value_view(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _make_view(value)
    if field.enum_type is not None:
        enum_value = field.enum_type.values_by_number.get(value)
        return _Symbol(value, enum_value.name if enum_value else str(value))
    return value


def _get_default(field: ProtoField) -> Any:
    value = get_default(field)
    if field.kind != ENUM:
        return value
    names = {number: name for name, number in field.enum.numbers().items()}
    number = int(value)
    return _Symbol(number, names.get(number, str(number)))


def _to_text(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, _Symbol):
        return value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


# Explanation of an incompatibility


_WIDER_TYPES: Final = frozenset({("int32", "int64"), ("uint32", "uint64"), ("sint32", "sint64")})
"""Pairs of types with the same bytes for a value, of which the second has every value of the first."""


def explain(breakage: Breakage, *, new: SchemaInfo, old: SchemaInfo) -> Explanation:
    """Explain which field changed, the effect on messages, and the fix."""
    incompatibility = breakage.incompatibility
    new_root, old_root = parse(new.schema).root, parse(old.schema).root
    number = incompatibility.pointer.partition("/fields/")[2].partition("/")[0]
    sentence = f"{incompatibility.message[:1].upper()}{incompatibility.message[1:]}."
    is_older = breakage.direction == "old_reads_new"
    reader, writer = (old_root, new_root) if is_older else (new_root, old_root)
    if not is_provable(incompatibility, reader=reader, writer=writer):
        sentence += " No message can be shown: each would have to contain itself, or be too large."
    pointer = incompatibility.pointer
    fix, edit = _FIXES[incompatibility.rule].format(number=number), None
    if incompatibility.rule == "NARROWER_TYPE" and not is_older:
        written, read = incompatibility.written, incompatibility.read
        if (read, written) in _WIDER_TYPES:
            fix, edit = f"Write {written}, which has every value of {read}.", SetType(pointer, written)
    return Explanation(
        field_path(pointer, new_root, old_root),
        f"{sentence} {_CONSEQUENCES[incompatibility.rule]}",
        fix,
        _translate_pointer(pointer, reader=reader, writer=writer) if is_older else pointer,
        pointer if is_older else None,
        edit,
    )


def is_provable(incompatibility: Incompatibility, *, reader: ProtoMessage, writer: ProtoMessage) -> bool:
    """Return whether a message can reach the incompatibility: not if it must contain itself, or very many others."""
    writer_messages = [
        pair.writer
        for pair in iterate_pairs(reader=reader, writer=writer)
        if any(_is_about(incompatibility, reader_field, pair) for reader_field, _ in pair.pair_fields())
    ]
    return not writer_messages or any(
        encode_required(message, leave_out=set()) is not None for message in writer_messages
    )


def _translate_pointer(pointer: str, *, reader: ProtoMessage, writer: ProtoMessage) -> str:
    """Translate a pointer into the reader's definition to the writer's, in which the message or enum can have another name."""
    noun, name, *rest = pointer.split("/")[1:]
    for pair in iterate_pairs(reader=reader, writer=writer):
        names = [(pair.reader.full_name, pair.writer.full_name)]
        if noun == "enums":
            names = [
                (reader_field.type_name, writer_field.type_name)
                for reader_field, writer_field in pair.pair_fields()
                if writer_field
            ]
        for reader_name, writer_name in names:
            if reader_name == name and writer_name:
                return "/" + "/".join((noun, writer_name, *rest))
    return pointer


# Outline of a definition


def list_parts(info: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield the parts of protobuf messages (see TypeSpec.list_parts)."""
    definition = parse(info.schema)
    yield "", f"message {definition.root.full_name}"

    def describe(field: ProtoField) -> str:
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
                    for number, field in sorted(element.fields().items()):
                        yield f"{element.full_name} {number}", describe(field)
                case ProtoEnum():
                    yield element.full_name, "enum"
                    for value, number in element.numbers().items():
                        yield f"{element.full_name}.{value}", f"number {number}"
                case ProtoField():
                    yield f"extension {element.full_name} {element.proto.number}", describe(element)
                case _:
                    # A service does not describe messages on a topic.
                    pass


def list_direct_references(info: SchemaInfo) -> dict[str, frozenset[str]]:
    """Map each message and enum, and "" for the root, to the types that it references directly (see TypeSpec.list_direct_references).

    A map field references the type of its values; its entry is not a type.
    """
    definition = parse(info.schema)
    types_by_name = {"": frozenset({definition.root.full_name})}
    for name in definition.reachable:
        for element in () if is_shipped(name) else definition.image.files[name].elements:
            if isinstance(element, ProtoMessage) and not element.is_map_entry:
                type_names = (field.value.type_name.removeprefix(".") for field in element.fields().values())
                types_by_name[element.full_name] = frozenset(filter(None, type_names))
            elif isinstance(element, ProtoEnum):
                types_by_name[element.full_name] = frozenset()
    return types_by_name


# Small messages


def list_messages(schema: bytes) -> Iterator[bytes]:
    """Yield small messages: one for each of the first fields with only this field set, then one with only required fields.

    Raises:
        InvalidSchema: if the definition does not parse.
    """
    root = parse(schema).root
    for field in islice(list_fields(root).values(), _MAX_FIELDS):
        other_fields = encode_required(root, leave_out={field.proto.number})
        first_values = list(islice(list_values(field), 1))
        if other_fields is not None and first_values:
            yield other_fields + encode(field, first_values[0])
    required_fields = encode_required(root, leave_out=set())
    if required_fields is not None:
        yield required_fields


def make_message_class(definition: ProtoDefinition) -> type[Message]:
    """Return protobuf's class of the root message."""
    pool = build_pool(definition.image, definition.reachable)
    return GetMessageClass(pool.FindMessageTypeByName(definition.root.full_name))


def parse_message(data: bytes, message: type[Message]) -> Message:
    """Parse `data` with protobuf's parser.

    Raises:
        ValueError: if the parser rejects it, with the reason.
    """
    result = message()
    try:
        result.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    if not result.IsInitialized():
        missing = result.FindInitializationErrors()  # type: ignore[attr-defined]  # the stubs lack it
        raise ValueError(f"it lacks {', '.join(missing)}")
    return result


def json_text(message: Message) -> str:
    """Return `message` as JSON, on one line."""
    text: str = MessageToJson(message, preserving_proto_field_name=True, indent=None)
    return text


def list_values(field: ProtoField) -> Iterator[Value]:
    """Yield values of the field's type, the most typical first."""
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
        if encode_required(field.message_type, leave_out=set()) is not None:
            yield None
    elif field.kind == kinds.BOOL:
        yield 1
    else:
        yield from (1, 2)


def encode_required(message: ProtoMessage, *, leave_out: set[int]) -> bytes | None:
    """Encode the simplest values of a message's required fields, or return None if a message must contain itself.

    `leave_out` are the numbers of required fields to omit.
    """
    return _encode_required(message, leave_out, {}, 0)


def _encode_required(
    message: ProtoMessage, leave_out: set[int], bodies: dict[str, bytes | None], depth: int
) -> bytes | None:
    out = b""
    for number, field in list_fields(message).items():
        if field.cardinality != kinds.REQUIRED or number in leave_out:
            continue
        if field.is_message:
            name = field.type_name
            if name not in bodies:
                # None while it is being encoded, because a message that must contain itself never ends.
                bodies[name] = None
                if depth < _MAX_DEPTH:
                    bodies[name] = _encode_required(field.message_type, set(), bodies, depth + 1)
            body = bodies[name]
            if body is None:
                return None
            out += _encode_length_delimited(field, body)
        else:
            out += encode(field, next(list_values(field)))
        if len(out) > _MAX_BYTES:
            return None
    return out


def encode_enclosing(root: ProtoMessage, path: Sequence[int], body: bytes) -> bytes | None:
    """Encode a message of `root` with `body` at the end of `path`, or return None if a message must contain itself."""
    messages, fields = [root], []
    for number in path:
        fields.append(list_fields(messages[-1])[number])
        messages.append(fields[-1].message_type)
    for field, message in zip(reversed(fields), reversed(messages[:-1]), strict=True):
        other_fields = encode_required(message, leave_out={field.proto.number})
        if other_fields is None:
            return None
        body = other_fields + _encode_length_delimited(field, body)
    return body


def encode(field: ProtoField, value: Value) -> bytes:
    """Encode `value` in protobuf's binary form, with its tag."""
    number, name = field.proto.number, kinds.KIND_NAMES[field.kind]
    if value is None:
        body = encode_required(field.message_type, leave_out=set())
        return _encode_length_delimited(field, body or b"")
    if isinstance(value, (str, bytes)):
        return _encode_length_delimited(field, value.encode() if isinstance(value, str) else value)
    if name in _FIXED_SIZE_FORMS:
        wire_type, form = _FIXED_SIZE_FORMS[name]
        return _encode_tagged(number, wire_type, struct.pack(form, value))
    integer = int(value)
    if name.startswith("sint"):
        integer = (integer << 1) ^ (integer >> 63)
    return _encode_tagged(number, 0, encode_varint(integer & 0xFFFFFFFFFFFFFFFF))


def _encode_length_delimited(field: ProtoField, body: bytes) -> bytes:
    """Encode `body` as a string, bytes or message of `field`; a group has start and end tags instead of a length."""
    number = field.proto.number
    if field.kind == kinds.GROUP:
        return _encode_tagged(number, 3, body) + _encode_tagged(number, 4, b"")
    return _encode_tagged(number, 2, encode_varint(len(body)) + body)


def _encode_tagged(number: int, wire_type: int, content: bytes) -> bytes:
    return encode_varint(number << 3 | wire_type) + content
