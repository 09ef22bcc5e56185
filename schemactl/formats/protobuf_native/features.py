"""The features of protobuf editions: a file's defaults, and the overrides of its elements.

proto2 and proto3 are editions, too: `syntax` picks the defaults (protobuf's "Feature Settings for Editions").
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from google.protobuf.descriptor_pb2 import (
    EDITION_2023,
    EDITION_2024,
    EDITION_PROTO2,
    EDITION_PROTO3,
    EnumOptions,
    FeatureSet,
    FieldOptions,
    FileDescriptorProto,
    FileOptions,
    MessageOptions,
)
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

JAVA_FEATURES = 1001
"""Field number of the extension `pb.java` of FeatureSet."""

JSON_FORMATS: dict[int, str] = {number: name for name, number in FeatureSet.JsonFormat.items()}

JAVA_UTF8_VERIFY = 2
"""`pb.JavaFeatures.Utf8Validation.VERIFY`."""


class Features(NamedTuple):
    """The features in force for one element, as the numbers of their enums (`java_legacy_closed_enum`: 0 or 1)."""

    field_presence: int
    enum_type: int
    utf8_validation: int
    message_encoding: int
    json_format: int
    java_utf8_validation: int
    java_legacy_closed_enum: int


_Standard: TypeAlias = Literal[
    "field_presence",
    "enum_type",
    "utf8_validation",
    "message_encoding",
    "json_format",
]
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
    FeatureSet.IMPLICIT,
    FeatureSet.OPEN,
    FeatureSet.VERIFY,
    FeatureSet.LENGTH_PREFIXED,
    FeatureSet.ALLOW,
    1,
    0,
)
DEFAULTS = {
    EDITION_PROTO2: PROTO2,
    EDITION_PROTO3: PROTO3,
    EDITION_2023: PROTO3._replace(field_presence=FeatureSet.EXPLICIT),
    EDITION_2024: PROTO3._replace(field_presence=FeatureSet.EXPLICIT),
}
"""What each edition starts with; an edition not listed starts as the newest one before it."""


Options: TypeAlias = FileOptions | MessageOptions | FieldOptions | EnumOptions


def edition_of(file: FileDescriptorProto) -> int:
    """Return the file's edition; proto2 and proto3 have numbers of their own."""
    if file.syntax == "editions":
        return file.edition
    return EDITION_PROTO3 if file.syntax == "proto3" else EDITION_PROTO2


def file_features(file: FileDescriptorProto) -> Features:
    """Return the features in force at the top of `file`."""
    edition = edition_of(file)
    known = [number for number in DEFAULTS if number <= edition]
    base = DEFAULTS[max(known)] if known else PROTO2
    return resolve(base, file.options) if file.HasField("options") else base


def resolve(parent: Features, options: Options) -> Features:
    """Return the features in force for an element with `options` inside one with `parent`."""
    if not options.HasField("features"):
        return parent
    own = options.features
    changed: dict[str, int] = {name: getattr(own, name) for name in _STANDARD if own.HasField(name)}
    java = extension_of(own, JAVA_FEATURES)
    for name, number in (("java_legacy_closed_enum", 1), ("java_utf8_validation", 2)):
        if number in java:
            changed[name] = java[number]
    return parent._replace(**changed)


def extension_of(features: FeatureSet, number: int) -> dict[int, int]:
    """Return the numeric fields of extension `number`, by field number; {} when it is not set.

    Read from the wire: the extension's own class may or may not be registered in this process.
    """
    contents = [value for field, value in _fields(features.SerializeToString()) if field == number]
    return {
        field: value
        for content in contents
        if isinstance(content, bytes)
        for field, value in _fields(content)
        if isinstance(value, int)
    }


def field_numbers(features: FeatureSet) -> set[int]:
    """Return the numbers of everything set in `features`, known to this protobuf release or not."""
    return {field for field, _ in _fields(features.SerializeToString())}


def _fields(data: bytes) -> list[tuple[int, object]]:
    """Return number and value of each field in a serialized message; nothing of what is none."""
    try:
        # To a message without fields all are unknown.
        unknown: Any = UnknownFieldSet(Empty.FromString(data))
        return [(field.field_number, field.data) for field in unknown]
    except DecodeError:
        return []
