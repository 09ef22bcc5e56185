"""Load descriptors that Java accepts into Python's protobuf, which is stricter.

A file that Python rejects is replaced by an edition 2023 file with the same messages on the wire, in which each element has its features.
The replacement omits the parts that do not change how messages are read: JSON names, services, extensions, ranges and most options.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from google.protobuf.descriptor_pb2 import (
    EDITION_2023,
    DescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from schemactl.core.errors import InvalidSchema
from schemactl.formats.protobuf.descriptor import MAX_FIELD_NUMBER, File, Image, ProtoEnum, ProtoField, ProtoMessage
from schemactl.formats.protobuf.java_descriptors import IDENTIFIER
from schemactl.formats.protobuf.kinds import (
    ENUM,
    EXPLICIT,
    GROUP,
    IMPLICIT,
    MESSAGE,
    PACKABLE,
    REPEATED,
    REQUIRED,
    STRING,
)

_PRESENCES: Final[Mapping[str, FeatureSet.FieldPresence.ValueType]] = {
    REQUIRED: FeatureSet.LEGACY_REQUIRED,
    EXPLICIT: FeatureSet.EXPLICIT,
    IMPLICIT: FeatureSet.IMPLICIT,
}
_OPTIONAL = FieldDescriptorProto.LABEL_OPTIONAL


def build_pool(image: Image, names: Collection[str]) -> DescriptorPool:
    """Return a pool of Python's protobuf with the files `names`, each of which follows its imports.

    Raises:
        InvalidSchema: if Python's protobuf cannot have them: a package that is not a name, or a type that two files declare.
    """
    pool, _ = _load(image, names)
    return pool


def adapt_files(image: Image, names: Collection[str]) -> list[FileDescriptorProto] | None:
    """Return the files as Python's protobuf accepts them, or None if it accepts the original files.

    Raises:
        InvalidSchema: if Python's protobuf cannot have them.
    """
    _, adapted_names = _load(image, names)
    if not adapted_names and all(image.files[name].proto is image.files[name].stored_proto for name in names):
        return None
    return [
        _adapt_file(image.files[name], adapted_names) if name in adapted_names else image.files[name].proto
        for name in names
    ]


def _load(image: Image, names: Collection[str]) -> tuple[DescriptorPool, set[str]]:
    """Return the pool, and the names of the files that were adapted."""
    pool = DescriptorPool()
    adapted_names: set[str] = set()
    for name in names:
        file = image.files[name]
        # Python accepts some messages that have the option of map entries, but not their fields.
        has_odd_map_entry = any(
            isinstance(element, ProtoMessage) and element.proto.options.map_entry and not element.is_map_entry
            for element in file.elements
        )
        if not adapted_names.intersection(file.proto.dependency) and not has_odd_map_entry:
            try:
                pool.AddSerializedFile(file.proto.SerializeToString())
                continue
            except TypeError:
                pass
        adapted_names.add(name)
        try:
            pool.AddSerializedFile(_adapt_file(file, adapted_names).SerializeToString())
        except TypeError as error:
            _, _, reason = str(error).partition("descriptor pool: ")
            raise InvalidSchema(f"Python's protobuf cannot load {name}: {reason or error}") from error
    return pool, adapted_names


def _adapt_file(file: File, adapted_names: Collection[str]) -> FileDescriptorProto:
    """Return a file with the messages and enums of `file`; each enum of the files `adapted_names` is in a message without fields."""
    proto = FileDescriptorProto(name=file.name, package=file.proto.package, syntax="editions", edition=EDITION_2023)
    proto.dependency.extend(dict.fromkeys(file.proto.dependency))
    proto.public_dependency.extend(
        index
        for index, name in enumerate(proto.dependency)
        if name in {file.proto.dependency[public] for public in file.proto.public_dependency}
    )
    adapted: dict[str, DescriptorProto] = {}
    for element in file.elements:
        parent = getattr(element, "parent", None)
        siblings = proto.message_type if parent is None else adapted[parent.full_name].nested_type
        if isinstance(element, ProtoMessage):
            adapted[element.full_name] = siblings.add(name=element.proto.name)
            _fill_message(adapted[element.full_name], element, adapted_names)
        elif isinstance(element, ProtoEnum):
            enum = siblings.add(name=_holder_name(element)).enum_type.add(name=element.proto.name)
            numbers = [value.number for value in element.proto.value]
            enum.options.allow_alias = len(set(numbers)) < len(numbers)
            enum.options.features.enum_type = FeatureSet.OPEN if _is_open(element) else FeatureSet.CLOSED
            for value in element.proto.value:
                enum.value.add(name=value.name, number=value.number)
    return proto


def _holder_name(enum: ProtoEnum) -> str:
    """Return the name of the message that contains one enum alone: names of values are unique in a message, not in an enum."""
    return f"EnumOf_{enum.proto.name}"


def _fill_message(proto: DescriptorProto, message: ProtoMessage, adapted_names: Collection[str]) -> None:
    if message.is_map_entry and message.parent is not None:
        users = [field for field in message.parent.fields().values() if field.type_name == message.full_name]
        proto.options.map_entry = all(field.is_repeated for field in users)
    if message.proto.options.message_set_wire_format:
        proto.options.message_set_wire_format = True
        proto.extension_range.add(start=4, end=(1 << 31) - 1)
    field_names = {field.name for field in message.proto.field}
    # The indices of the oneofs here by their indices in the original message.
    oneofs: dict[int, int] = {}
    for oneof in message.oneofs():
        original_index, index, name = oneof.path[-1], len(oneofs), oneof.name
        members = (field for field in message.proto.field if field.oneof_index == original_index)
        if not any(map(_can_be_in_oneof, members)):
            continue
        oneofs[original_index] = index
        is_unique = sum(other.name == name for other in message.proto.oneof_decl) == 1
        if not is_unique or name in field_names or not IDENTIFIER.fullmatch(name):
            name = f"oneof_{index}_of_{message.proto.name}"
        proto.oneof_decl.add(name=name)
    for field in message.fields().values():
        _fill_field(proto.field.add(), field, oneofs, adapted_names)


def _fill_field(
    proto: FieldDescriptorProto, field: ProtoField, oneofs: Mapping[int, int], adapted_names: Collection[str]
) -> None:
    source = field.proto
    proto.name, proto.number, proto.json_name = source.name, source.number, source.name
    proto.type = MESSAGE if field.kind == GROUP else source.type
    proto.label = FieldDescriptorProto.LABEL_REPEATED if source.label == 3 else _OPTIONAL
    if field.kind == ENUM and field.enum.file.name in adapted_names:
        scope, dot, name = field.type_name.rpartition(".")
        proto.type_name = f".{scope}{dot}{_holder_name(field.enum)}.{name}"
    elif source.type_name:
        proto.type_name = source.type_name
    if field.in_map_entry:
        return
    features = proto.options.features
    is_member = _can_be_in_oneof(source) and source.oneof_index in oneofs
    if is_member:
        proto.oneof_index = oneofs[source.oneof_index]
    if source.HasField("default_value") and proto.label == _OPTIONAL and not field.is_message:
        proto.default_value = source.default_value
    if proto.label == _OPTIONAL and not is_member:
        features.field_presence = _PRESENCES[field.cardinality]
        has_closed_enum = field.kind == ENUM and not _is_open(field.enum)
        if field.cardinality == IMPLICIT and (proto.HasField("default_value") or has_closed_enum or field.is_message):
            features.field_presence = FeatureSet.EXPLICIT
    if field.kind == GROUP:
        features.message_encoding = FeatureSet.DELIMITED
    if field.cardinality == REPEATED and proto.type in PACKABLE and not _is_packed(field):
        features.repeated_field_encoding = FeatureSet.EXPANDED
    if field.features.utf8_validation == FeatureSet.NONE and field.kind == STRING:
        features.utf8_validation = FeatureSet.NONE


def _can_be_in_oneof(field: FieldDescriptorProto) -> bool:
    """Return whether the field is an alternative of a oneof; Java ignores the oneof of lists and required fields."""
    is_member = field.HasField("oneof_index") and not field.proto3_optional and field.label == _OPTIONAL
    return is_member and field.number <= MAX_FIELD_NUMBER


def _is_open(enum: ProtoEnum) -> bool:
    """Return whether the enum can be open in Python: its first value, which absent fields have, must be zero."""
    return not enum.is_closed and enum.proto.value[0].number == 0


def _is_packed(field: ProtoField) -> bool:
    """Return whether Java writes the list in one piece."""
    if field.file.proto.syntax in ("proto3", "editions"):
        return field.proto.options.packed or not field.proto.options.HasField("packed")
    return field.proto.options.packed
