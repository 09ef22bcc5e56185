"""Features of editions: the settings of a file and its parts that change the meaning of fields.

proto2 and proto3 are also editions: `syntax` selects the defaults (protobuf's "Feature Settings for Editions").
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from google.protobuf.descriptor_pb2 import (
    EDITION_2023,
    EDITION_2024,
    EDITION_PROTO2,
    EDITION_PROTO3,
    DescriptorProto,
    EnumDescriptorProto,
    EnumOptions,
    FeatureSet,
    FieldDescriptorProto,
    FieldOptions,
    FileDescriptorProto,
    FileOptions,
    MessageOptions,
)
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

JAVA_FEATURES = 1001
"""The field number of FeatureSet's extension `pb.java`."""

JAVA_UTF8_VERIFY = 2
"""`pb.JavaFeatures.Utf8Validation.VERIFY`."""

JSON_FORMATS: dict[int, str] = {number: name for name, number in FeatureSet.JsonFormat.items()}


class Features(NamedTuple):
    """The features of one element, as the numbers of their enum values (`java_legacy_closed_enum`: 0 or 1)."""

    field_presence: int
    enum_type: int
    utf8_validation: int
    message_encoding: int
    json_format: int
    java_utf8_validation: int
    java_legacy_closed_enum: int


_Standard: TypeAlias = Literal["field_presence", "enum_type", "utf8_validation", "message_encoding", "json_format"]
_STANDARD: tuple[_Standard, ...] = get_args(_Standard)
PROTO2 = Features(
    FeatureSet.EXPLICIT,
    FeatureSet.CLOSED,
    FeatureSet.NONE,
    FeatureSet.LENGTH_PREFIXED,
    FeatureSet.LEGACY_BEST_EFFORT,
    1,
    1,
)
PROTO3 = Features(
    FeatureSet.IMPLICIT, FeatureSet.OPEN, FeatureSet.VERIFY, FeatureSet.LENGTH_PREFIXED, FeatureSet.ALLOW, 1, 0
)

DEFAULTS = {
    EDITION_PROTO2: PROTO2,
    EDITION_PROTO3: PROTO3,
    EDITION_2023: PROTO3._replace(field_presence=FeatureSet.EXPLICIT),
    EDITION_2024: PROTO3._replace(field_presence=FeatureSet.EXPLICIT),
}
"""The default features of each edition; an edition that is not listed has the features of the newest edition before it."""

Options: TypeAlias = FileOptions | MessageOptions | FieldOptions | EnumOptions


def get_edition(file: FileDescriptorProto) -> int:
    """Return the file's edition; proto2 and proto3 also have a number."""
    if file.syntax == "editions":
        return file.edition
    return EDITION_PROTO3 if file.syntax == "proto3" else EDITION_PROTO2


def get_file_features(file: FileDescriptorProto) -> Features:
    """Return the features at the top level of `file`."""
    edition = get_edition(file)
    editions = [number for number in DEFAULTS if number <= edition]
    features = DEFAULTS[max(editions)] if editions else PROTO2
    return resolve(features, file.options) if file.HasField("options") else features


def get_features(scope: Features, proto: DescriptorProto | EnumDescriptorProto | FieldDescriptorProto) -> Features:
    """Return the features of `proto` inside an element with the features `scope`."""
    return resolve(scope, proto.options) if proto.HasField("options") else scope


def resolve(parent: Features, options: Options) -> Features:
    """Return the features of an element with `options` inside an element with the features `parent`."""
    if not options.HasField("features"):
        return parent
    feature_set = options.features
    changed: dict[str, int] = {name: getattr(feature_set, name) for name in _STANDARD if feature_set.HasField(name)}
    java_features = read_extension(feature_set, JAVA_FEATURES)
    for name, number in (("java_legacy_closed_enum", 1), ("java_utf8_validation", 2)):
        if number in java_features:
            changed[name] = java_features[number]
    return parent._replace(**changed)


def read_extension(features: FeatureSet, number: int) -> dict[int, int]:
    """Return the numeric fields of the extension `number` by field number, or {} if it is not set.

    They are read from the wire format, because the extension's class may not be registered in this process.
    """
    contents = [value for field, value in _parse_fields(features.SerializeToString()) if field == number]
    return {
        field: value
        for content in contents
        if isinstance(content, bytes)
        for field, value in _parse_fields(content)
        if isinstance(value, int)
    }


def list_field_numbers(features: FeatureSet) -> set[int]:
    """Return the numbers of all features that are set, including features that this protobuf release does not know."""
    return {field for field, _ in _parse_fields(features.SerializeToString())}


def _parse_fields(data: bytes) -> list[tuple[int, object]]:
    """Return number and value of each field in a serialized message; [] if `data` is not a message."""
    try:
        # For a message without fields, all fields are unknown.
        unknown_fields: Any = UnknownFieldSet(Empty.FromString(data))
        return [(field.field_number, field.data) for field in unknown_fields]
    except DecodeError:
        return []
