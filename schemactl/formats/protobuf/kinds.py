"""The kinds and cardinalities of fields."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

Kind = int
"""A `FieldDescriptorProto.Type`; a message with delimited encoding is a GROUP in every syntax."""

DOUBLE = FieldDescriptorProto.TYPE_DOUBLE
FLOAT = FieldDescriptorProto.TYPE_FLOAT
FLOAT_KINDS = (FLOAT, DOUBLE)
BOOL = FieldDescriptorProto.TYPE_BOOL
STRING = FieldDescriptorProto.TYPE_STRING
BYTES = FieldDescriptorProto.TYPE_BYTES
ENUM = FieldDescriptorProto.TYPE_ENUM
MESSAGE = FieldDescriptorProto.TYPE_MESSAGE
GROUP = FieldDescriptorProto.TYPE_GROUP

PACKABLE = frozenset(FieldDescriptorProto.Type.values()) - {STRING, BYTES, MESSAGE, GROUP}
"""The kinds of lists that can be written in one piece."""

MAP_KEYS = frozenset(FieldDescriptorProto.Type.values()) - {DOUBLE, FLOAT, BYTES, ENUM, MESSAGE, GROUP}
"""The kinds of keys of maps."""

KIND_NAMES: Mapping[int, str] = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}
"""The names of kinds in a `.proto` file."""

EXPLICIT, IMPLICIT, REQUIRED, REPEATED, MAP = (
    "optional with explicit presence",
    "optional with implicit presence",
    "required",
    "repeated",
    "map",
)
"""The cardinalities of a field, in buf's words."""
