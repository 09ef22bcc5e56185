"""The `.proto` text of a file descriptor, for definitions whose source is not available.

What the text cannot say, or says only in ways that are not known here (groups, custom options), is refused. Whoever needs
to be sure compiles the text again and compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    EnumValueDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
    OneofDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message

from schemactl.errors import InvalidSchema
from schemactl.formats.protobuf_native.wrapper import default_json_name

_MAX_FIELD = 1 << 29
"""One more than the highest number of a field: where `to max` ends in a message."""

_MAX_ENUM = (1 << 31) - 1
_REPEATED = FieldDescriptorProto.LABEL_REPEATED
_REQUIRED = FieldDescriptorProto.LABEL_REQUIRED
_NAMED = (FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_ENUM)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def proto_text(file: FileDescriptorProto) -> str:
    """Return the text of `file`: two spaces of indentation, everything in the descriptor's order, types by their full names.

    Raises:
        InvalidSchema: it has something that is not printed here.
    """
    return "\n".join(_Printer(file).lines()) + "\n"


class _Printer:
    def __init__(self, file: FileDescriptorProto) -> None:
        self.file = file
        self.syntax = file.syntax or "proto2"

    def lines(self) -> Iterator[str]:
        file = self.file
        if self.syntax == "editions":
            yield f'edition = "{Edition.Name(file.edition).removeprefix("EDITION_")}";'
        else:
            yield f'syntax = "{self.syntax}";'
        if file.package:
            yield f"package {file.package};"
        for number, name in enumerate(file.dependency):
            kind = "public " if number in file.public_dependency else ""
            kind = "weak " if number in file.weak_dependency else kind
            yield f"import {kind}{_quoted(name)};"
        yield from (f"option {each};" for each in _options(file.options))
        for message in file.message_type:
            yield from ("", *self._message(message))
        for enum in file.enum_type:
            yield from ("", *self._enum(enum))
        if file.extension:
            yield from ("", *self._extensions(file.extension))
        for service in file.service:
            yield from ("", *_service(service))

    def _message(self, message: DescriptorProto) -> Iterator[str]:
        yield f"message {message.name} {{"
        yield from _indented(self._inside(message))
        yield "}"

    def _inside(self, message: DescriptorProto) -> Iterator[str]:
        yield from (f"option {each};" for each in _options(message.options))
        yield from self._fields_and_messages(message)
        for enum in message.enum_type:
            yield from self._enum(enum)
        for numbers in message.extension_range:
            last = "max" if numbers.end == _MAX_FIELD else numbers.end - 1
            yield f"extensions {numbers.start} to {last}{_bracketed(_options(numbers.options))};"
        if message.extension:
            yield from self._extensions(message.extension)
        for gap in message.reserved_range:
            yield f"reserved {gap.start} to {'max' if gap.end == _MAX_FIELD else gap.end - 1};"
        yield from self._reserved(message.reserved_name)

    def _fields_and_messages(self, message: DescriptorProto) -> Iterator[str]:
        entries = {each.name: each for each in message.nested_type if each.options.map_entry}
        # A map's entry is a nested message, too, where its field stands: the others keep their places around it.
        rest = list(message.nested_type)
        printed: set[int] = set()
        for field in message.field:
            entry = _entry(field, entries)
            if entry is not None and entry in rest:
                before = rest.index(entry)
                for nested in rest[:before]:
                    yield from self._message(nested)
                rest = rest[before + 1 :]
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield self._field(field, entry)
            elif field.oneof_index not in printed:
                printed.add(field.oneof_index)
                oneof = message.oneof_decl[field.oneof_index]
                yield from self._oneof(
                    oneof, [each for each in message.field if _is_in(each, field.oneof_index)]
                )
        for nested in rest:
            yield from self._message(nested)

    def _oneof(self, oneof: OneofDescriptorProto, fields: Sequence[FieldDescriptorProto]) -> Iterator[str]:
        yield f"oneof {oneof.name} {{"
        yield from _indented(f"option {each};" for each in _options(oneof.options))
        yield from _indented(self._field(field, None) for field in fields)
        yield "}"

    def _enum(self, enum: EnumDescriptorProto) -> Iterator[str]:
        yield f"enum {enum.name} {{"
        yield from _indented(f"option {each};" for each in _options(enum.options))
        yield from _indented(map(_value, enum.value))
        for gap in enum.reserved_range:
            yield f"  reserved {gap.start} to {'max' if gap.end == _MAX_ENUM else gap.end};"
        yield from _indented(self._reserved(enum.reserved_name))
        yield "}"

    def _reserved(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            yield f"reserved {name if self.syntax == 'editions' else _quoted(name)};"

    def _extensions(self, fields: Sequence[FieldDescriptorProto]) -> Iterator[str]:
        for field in fields:
            yield f"extend {field.extendee} {{"
            yield f"  {self._field(field, None)}"
            yield "}"

    def _field(self, field: FieldDescriptorProto, entry: DescriptorProto | None) -> str:
        if entry is not None:
            key, value = entry.field
            kind = f"map<{_type(key)}, {_type(value)}>"
        else:
            kind = f"{self._label(field)}{_type(field)}"
        options = [*_default(field), *_options(field.options)]
        if field.json_name and field.json_name != default_json_name(field.name) and not field.extendee:
            options.append(f"json_name = {_quoted(field.json_name)}")
        return f"{kind} {field.name} = {field.number}{_bracketed(options)};"

    def _label(self, field: FieldDescriptorProto) -> str:
        if field.label == _REPEATED:
            return "repeated "
        if field.label == _REQUIRED and self.syntax == "proto2":
            return "required "
        optional = field.proto3_optional or (self.syntax == "proto2" and not field.HasField("oneof_index"))
        return "optional " if optional else ""


def _service(service: ServiceDescriptorProto) -> Iterator[str]:
    yield f"service {service.name} {{"
    yield from _indented(f"option {each};" for each in _options(service.options))
    for method in service.method:
        yield from _indented(_method(method))
    yield "}"


def _method(method: MethodDescriptorProto) -> Iterator[str]:
    taken = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
    given = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
    options = list(_options(method.options))
    yield f"rpc {method.name} ({taken}) returns ({given}){' {' if options else ';'}"
    if options:
        yield from _indented(f"option {each};" for each in options)
        yield "}"


def _value(value: EnumValueDescriptorProto) -> str:
    return f"{value.name} = {value.number}{_bracketed(_options(value.options))};"


def _entry(field: FieldDescriptorProto, entries: dict[str, DescriptorProto]) -> DescriptorProto | None:
    """Return the message behind a map's field."""
    return entries.get(field.type_name.rpartition(".")[2]) if field.label == _REPEATED else None


def _is_in(field: FieldDescriptorProto, oneof: int) -> bool:
    return field.HasField("oneof_index") and not field.proto3_optional and field.oneof_index == oneof


def _type(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_GROUP:
        raise InvalidSchema(f"the group {field.name} is not printed")
    if field.type in _NAMED:
        return field.type_name
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _default(field: FieldDescriptorProto) -> Iterator[str]:
    if field.HasField("default_value"):
        value = field.default_value
        if field.type == FieldDescriptorProto.TYPE_STRING:
            value = _quoted(value)
        elif field.type == FieldDescriptorProto.TYPE_BYTES:
            value = f'"{value}"'  # escaped already
        yield f"default = {value}"


def _options(options: Message, path: str = "") -> Iterator[str]:
    """Yield the options that are set, as `name = value`."""
    for descriptor, value in options.ListFields():
        name = f"{path}{descriptor.name}"
        if descriptor.is_extension or (descriptor.message_type and isinstance(value, Sequence)):
            raise InvalidSchema(f"the option {descriptor.full_name} is not printed")
        if isinstance(value, Message):
            yield from _options(value, f"{name}.")
        else:
            several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            yield from (f"{name} = {_option(descriptor, each)}" for each in several)


def _option(descriptor: Any, value: object) -> str:
    if descriptor.enum_type is not None:
        return str(descriptor.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else str(value)


def _bracketed(options: Iterable[str]) -> str:
    listed = ", ".join(options)
    return f" [{listed}]" if listed else ""


def _quoted(text: str) -> str:
    return (
        '"'
        + "".join(
            _ESCAPES.get(letter) or (letter if letter >= " " else f"\\{ord(letter):03o}") for letter in text
        )
        + '"'
    )


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
