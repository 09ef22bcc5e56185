"""The class that parses and writes messages of a definition.

An enum of proto2 is closed: protobuf keeps a number without a name among the unknown fields, and a list, map or field has lost
it. Here its fields are numbers, which are the same on the wire, so that the number stays where it was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

_INT32: Final = 5


def class_of(descriptor: Any) -> Any:
    """Return the class for messages of `descriptor`; fields of closed enums hold the enum's numbers."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_opened(descriptor))


def _opened(descriptor: Any) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    files = list(_files(descriptor.file, set()))
    copies = [FileDescriptorProto.FromString(file.serialized_pb) for file in files]
    changes = [
        _open_fields(file.message_types_by_name.values(), copy.message_type)
        for file, copy in zip(files, copies, strict=True)
    ]
    if not any(changes):
        return descriptor
    pool = DescriptorPool()
    for copy in copies:
        pool.Add(copy)
    return pool.FindMessageTypeByName(descriptor.full_name)


def _files(file: Any, seen: set[str]) -> Iterator[Any]:
    """Return the file, behind all that it imports."""
    if file.name not in seen:
        seen.add(file.name)
        for imported in file.dependencies:
            yield from _files(imported, seen)
        yield file


def _open_fields(messages: Iterable[Any], copies: Any) -> bool:
    """Make numbers of the fields of closed enums in `copies`; whether there were any."""
    found = False
    by_name = {copy.name: copy for copy in copies}
    for message in messages:
        copy = by_name[message.name]
        fields = {field.number: field for field in copy.field}
        for field in message.fields:
            if field.enum_type is not None and field.enum_type.is_closed:
                number = fields[field.number]
                number.type = _INT32
                number.ClearField("type_name")
                if number.HasField("default_value"):
                    number.default_value = str(field.default_value)
                found = True
        found |= _open_fields(message.nested_types, copy.nested_type)
    return found
