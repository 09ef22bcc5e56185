"""Protobuf messages for people (see `schemactl.formats.outline`)."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.core.schema import SchemaInfo
from schemactl.formats.protobuf_native.descriptor import ProtoEnum, ProtoField, ProtoMessage
from schemactl.formats.protobuf_native.kinds import KIND_NAMES
from schemactl.formats.protobuf_native.wrapper import is_shipped, parse


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
