"""The `.proto` text of a file descriptor, for definitions whose source is not available.

What the text cannot say, or says only in ways that are not known here (groups, custom options), is refused. To be sure,
compile the text again and compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message

from schemactl.core.errors import InvalidSchema
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
        yield from _option_lines(file.options)
        for message in file.message_type:
            yield from ("", *self._message(message))
        for enum in file.enum_type:
            yield from ("", *self._enum(enum))
        if file.extension:
            yield from ("", *self._extensions(file.extension))
        for service in file.service:
            yield from ("", *_service(service))

    def _message(self, message: DescriptorProto) -> Iterator[str]:
        return _block(f"message {message.name}", self._inside(message))

    def _inside(self, message: DescriptorProto) -> Iterator[str]:
        yield from _option_lines(message.options)
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
                members = [
                    self._field(each, None) for each in message.field if _is_in(each, field.oneof_index)
                ]
                yield from _block(f"oneof {oneof.name}", [*_option_lines(oneof.options), *members])
        for nested in rest:
            yield from self._message(nested)

    def _enum(self, enum: EnumDescriptorProto) -> Iterator[str]:
        values = (f"{each.name} = {each.number}{_bracketed(_options(each.options))};" for each in enum.value)
        reserved = (
            f"reserved {gap.start} to {'max' if gap.end == _MAX_ENUM else gap.end};"
            for gap in enum.reserved_range
        )
        parts = [*_option_lines(enum.options), *values, *reserved, *self._reserved(enum.reserved_name)]
        return _block(f"enum {enum.name}", parts)

    def _reserved(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            yield f"reserved {name if self.syntax == 'editions' else _quoted(name)};"

    def _extensions(self, fields: Sequence[FieldDescriptorProto]) -> Iterator[str]:
        for field in fields:
            yield from _block(f"extend {field.extendee}", [self._field(field, None)])

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
    methods = (line for method in service.method for line in _method(method))
    return _block(f"service {service.name}", [*_option_lines(service.options), *methods])


def _method(method: MethodDescriptorProto) -> Iterator[str]:
    taken = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
    given = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
    head, options = f"rpc {method.name} ({taken}) returns ({given})", list(_option_lines(method.options))
    return _block(head, options) if options else iter([f"{head};"])


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
    shown = (_ESCAPES.get(each) or (each if each >= " " else f"\\{ord(each):03o}") for each in text)
    return f'"{"".join(shown)}"'


def _option_lines(options: Message) -> Iterator[str]:
    return (f"option {each};" for each in _options(options))


def _block(head: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{head} {{"
    yield from (f"  {line}" for line in lines)
    yield "}"
