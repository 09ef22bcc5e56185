"""The kind of a field's values on the wire, and its cardinality."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import FeatureSet, FieldDescriptorProto

from schemactl.formats.protobuf_native.features import Features

Kind = int
"""A `FieldDescriptorProto.Type`; a message with delimited encoding is a GROUP whatever the file's syntax."""

DOUBLE = FieldDescriptorProto.TYPE_DOUBLE
FLOAT = FieldDescriptorProto.TYPE_FLOAT
BOOL = FieldDescriptorProto.TYPE_BOOL
STRING = FieldDescriptorProto.TYPE_STRING
BYTES = FieldDescriptorProto.TYPE_BYTES
ENUM = FieldDescriptorProto.TYPE_ENUM
MESSAGE = FieldDescriptorProto.TYPE_MESSAGE
GROUP = FieldDescriptorProto.TYPE_GROUP

KIND_NAMES: Mapping[int, str] = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}
"""As a `.proto` writes them."""

EXPLICIT, IMPLICIT, REQUIRED, REPEATED, MAP = (
    "optional with explicit presence",
    "optional with implicit presence",
    "required",
    "repeated",
    "map",
)
"""How many values a field has, in buf's words."""


def kind_of(proto: FieldDescriptorProto, features: Features, *, is_map_part: bool) -> Kind:
    """Return the kind of a field; maps and their values are length-prefixed whatever the features say."""
    delimited = features.message_encoding == FeatureSet.DELIMITED
    return GROUP if proto.type == MESSAGE and delimited and not is_map_part else proto.type


def cardinality_of(proto: FieldDescriptorProto, features: Features, kind: Kind) -> str:
    """Return how many values a field has, unless it is a map."""
    if proto.label == FieldDescriptorProto.LABEL_REPEATED:
        return REPEATED
    legacy_required = features.field_presence == FeatureSet.LEGACY_REQUIRED and not proto.extendee
    if proto.label == FieldDescriptorProto.LABEL_REQUIRED or legacy_required:
        return REQUIRED
    if (
        features.field_presence != FeatureSet.IMPLICIT
        or kind in (MESSAGE, GROUP)
        or proto.extendee
        or proto.HasField("oneof_index")
    ):
        return EXPLICIT
    return IMPLICIT
