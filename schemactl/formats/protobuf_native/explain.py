"""An incompatibility of protobuf messages in words."""

from __future__ import annotations

from schemactl.core.findings import Breakage
from schemactl.core.schema import SchemaInfo
from schemactl.formats.base import Explanation
from schemactl.formats.protobuf_native.counterexample import is_provable
from schemactl.formats.protobuf_native.descriptor import ProtoMessage
from schemactl.formats.protobuf_native.places import field_path
from schemactl.formats.protobuf_native.wire import pairs
from schemactl.formats.protobuf_native.wrapper import parse

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
