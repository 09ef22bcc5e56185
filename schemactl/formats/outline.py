"""A definition for people: one line for each field, whatever the schema language and layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from schemactl.formats.base import spec
from schemactl.model import SchemaInfo

if TYPE_CHECKING:
    from schemactl.formats.avro.schema import Field, NamedSchema, Schema


def outline(info: SchemaInfo) -> dict[str, str]:
    """Map each part's name to what it is, in document order: `Order.lines` to `array<OrderLine>`.

    Named types are spelled out once, under their own name without namespace where no two share it. Docs, aliases and the
    order of symbols are left out. The properties of the SchemaInfo come last.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    parts = dict(spec(info).outline(info))
    # A pair keeps its types and encoding there, which are parts already.
    if spec(info).language != "pair":
        parts |= {f"property {name}": value for name, value in sorted(info.properties.items())}
    return parts


def changes(*, old: SchemaInfo, new: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield what differs between two outlines: `+`, `-` or `~`, and the part, in the order of the new one.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    if old.type is not new.type:
        yield "~", f"type: {old.type.name} -> {new.type.name}"
        return
    before, after = outline(old), outline(new)
    for part, what in before.items():
        if part not in after:
            yield "-", f"{part}: {what}"
    for part, what in after.items():
        if part not in before:
            yield "+", f"{part}: {what}"
        elif before[part] != what:
            name = f"{part}: " if part else ""
            yield "~", f"{name}{before[part]} -> {what}"


def stored_text(info: SchemaInfo) -> str | None:
    """Return the definition as the admin API shows it (see TypeSpec.text)."""
    return spec(info).text(info)


def lines(info: SchemaInfo) -> list[str]:
    """Return the definition's lines, laid out the same for the same content (see TypeSpec.lines)."""
    return spec(info).lines(info)


def avro_parts(info: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield the parts of an Avro definition (see TypeSpec.outline)."""
    from schemactl.formats.avro import parsed_by_any
    from schemactl.formats.avro.schema import Named

    root = parsed_by_any(info.schema)
    types = list(_named_types(root))
    short = Counter(named.name for named in types)
    names = {named.full_name: named.name if short[named.name] == 1 else named.full_name for named in types}
    if not isinstance(root, Named):
        yield "", _type(root, names)
    for named in types:
        yield from _named(named, names)


def _named_types(root: Schema) -> Iterator[NamedSchema]:
    """Yield the named types of a definition, in document order."""
    from schemactl.formats.avro.schema import Array, Map, Named, Record, Union

    todo: list[Schema] = [root]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Named):
            yield node
        match node:
            case Record():
                todo.extend(field.schema for field in reversed(node.fields))
            case Union():
                todo.extend(reversed(node.branches))
            case Array():
                todo.append(node.items)
            case Map():
                todo.append(node.values)
            case _:
                pass


def _named(node: NamedSchema, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    from schemactl.formats.avro.schema import Enum, Record

    name = names[node.full_name]
    properties = _properties(node)
    if isinstance(node, Record):
        yield name, f"record {node.full_name}{properties}"
        for field in node.fields:
            yield f"{name}.{field.name}", _field(field, names)
    elif isinstance(node, Enum):
        default = f", default {node.default}" if node.default is not None else ""
        yield name, f"enum {node.full_name}{default}{properties}"
        yield from ((f"{name}.{symbol}", "symbol") for symbol in node.symbols)
    else:
        yield name, f"fixed {node.full_name} of {node.size} bytes{properties}"


def _field(field: Field, names: Mapping[str, str]) -> str:
    from schemactl.formats.avro.equality import canonical_json
    from schemactl.formats.avro.schema import NO_DEFAULT

    default = "" if field.default is NO_DEFAULT else f" = {canonical_json(field.default)}"
    order = "" if field.order == "ascending" else f", order {field.order}"
    return f"{_type(field.schema, names)}{default}{order}{_properties(field)}"


def _type(schema: Schema, names: Mapping[str, str]) -> str:
    """Return the type as a reader would say it, named types by their name alone."""
    from schemactl.formats.avro.schema import Array, Map, Named, Union

    # A stack of what is still to be said: nesting may be deeper than Python's own.
    said: list[str] = []
    todo: list[Schema | str] = [schema]
    while todo:
        node = todo.pop()
        match node:
            case str():
                said.append(node)
            case Union():
                branches: list[Schema | str] = []
                for branch in node.branches:
                    branches += [" | ", branch]
                todo.extend(reversed(branches[1:]))
            case Array():
                todo += [f">{_properties(node)}", node.items, "array<"]
            case Map():
                todo += [f">{_properties(node)}", node.values, "map<"]
            case Named():
                said.append(names[node.full_name])
            case _:
                said.append(node.type + _properties(node))
    return "".join(said)


def _properties(holder: Schema | Field) -> str:
    """Return the custom properties: ` (decimal, precision 10, scale 2)`."""
    properties = dict(holder.properties)
    if not properties:
        return ""
    logical = properties.pop("logicalType", None)
    words = [str(logical)] if logical is not None else []
    words += [f"{name} {value}" for name, value in properties.items()]
    return f" ({', '.join(words)})"


def protobuf_parts(info: SchemaInfo) -> Iterator[tuple[str, str]]:
    """Yield the parts of protobuf messages (see TypeSpec.outline)."""
    from schemactl.formats.protobuf_native.descriptor import ProtoEnum, ProtoField, ProtoMessage
    from schemactl.formats.protobuf_native.kinds import KIND_NAMES
    from schemactl.formats.protobuf_native.wrapper import is_shipped, parse

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
                    yield f"extension {element.extension_name} {element.proto.number}", described(element)
                case _:
                    # A service says nothing about messages on a topic.
                    pass
