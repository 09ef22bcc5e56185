"""Topics, namespaces and schemas: the keys of their documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from schemactl.declare.shapes.leaf import (
    MAX_ITEMS,
    Definition,
    FilePath,
    Flag,
    MessageName,
    NamespaceText,
    Properties,
    References,
    Shape,
    Strategy,
    TopicText,
    choice,
    optional,
    tag_of,
    text,
    whole,
)
from schemactl.model import PRIMITIVE

_AVRO = "An .avsc file (its path starts at this file's folder), or the Avro schema itself as YAML or JSON."
_TYPES = "Files whose named types the definition may use; inlined at first use."
_PROPERTIES = "Text stored with the schema. Pulsar never compares it."
_STRATEGY = "Which readers a new version must not break. UNDEFINED or absent: as the level above says."


class AvroShape(Shape):
    """A schema whose definition is an Avro schema."""

    type: Literal["AVRO", "JSON"]
    definition: Definition = Field(description=_AVRO)
    references: References = optional(_TYPES)
    properties: Properties = optional(_PROPERTIES)


class ProtobufHalfShape(Shape):
    """Protobuf messages that an Avro schema describes (Pulsar's older support), as a half of a KEY_VALUE."""

    type: Literal["PROTOBUF"]
    definition: Definition = Field(description=_AVRO)
    references: References = optional(_TYPES)
    properties: Properties = optional(_PROPERTIES)


class ProtobufShape(ProtobufHalfShape):
    """Protobuf messages that an Avro schema describes (Pulsar's older support)."""

    proto: FilePath = optional("The .proto behind it, for wire rules and codecs only.")
    message: MessageName = optional("The root message in `proto`: package.Message.")


class ProtobufNativeShape(Shape):
    """Protobuf messages that their own descriptor describes."""

    type: Literal["PROTOBUF_NATIVE"]
    definition: FilePath = Field(description="A .proto file, or a descriptor set with its imports (.binpb).")
    message: MessageName = Field(description="The root message: package.Message.")
    references: References = optional("The .proto files that the definition imports.")
    properties: Properties = optional(_PROPERTIES)


class PrimitiveShape(Shape):
    """A schema without definition: its wire form is fixed by Pulsar."""

    type: Annotated[Any, choice("type", (*sorted(each.name for each in PRIMITIVE), "EXTERNAL"))]
    properties: Properties = optional(_PROPERTIES)


class PrimitiveHalfShape(Shape):
    """A half without definition: its wire form is fixed by Pulsar, or plain bytes."""

    type: Annotated[Any, choice("type", (*sorted(each.name for each in PRIMITIVE), "BYTES"))]
    properties: Properties = optional(_PROPERTIES)


_ALWAYS: Final[dict[str, type[Shape]]] = {
    "AVRO": AvroShape,
    "JSON": AvroShape,
    "PROTOBUF_NATIVE": ProtobufNativeShape,
}
_HALVES: Final[dict[str, type[Shape]]] = {
    **dict.fromkeys((each.name for each in PRIMITIVE), PrimitiveHalfShape),
    **_ALWAYS,
    "PROTOBUF": ProtobufHalfShape,
    "BYTES": PrimitiveHalfShape,
}


def tagged(shapes: Callable[[], dict[str, type[Shape]]]) -> Discriminator:
    """Picks the shape by the mapping's `type`; None, where there is no such, becomes an error of the union itself."""

    def tag(value: object) -> str | None:
        name = value.get("type") if isinstance(value, dict) else None
        shape = shapes().get(name) if isinstance(name, str) else None
        return tag_of(shape) if shape else None

    return Discriminator(tag)


HalfShape = Annotated[
    Annotated[AvroShape, Tag("<AvroShape>")]
    | Annotated[ProtobufHalfShape, Tag("<ProtobufHalfShape>")]
    | Annotated[ProtobufNativeShape, Tag("<ProtobufNativeShape>")]
    | Annotated[PrimitiveHalfShape, Tag("<PrimitiveHalfShape>")],
    tagged(lambda: _HALVES),
]


class KeyValueShape(Shape):
    """Two schemas in one: a key and a value."""

    type: Literal["KEY_VALUE"]
    encoding: Annotated[Any, choice("encoding", ("INLINE", "SEPARATED"))] = Field(
        default=None,
        description="SEPARATED: the key travels as the message's key. INLINE (default): in the payload.",
    )
    key: HalfShape
    value: HalfShape
    properties: Properties = optional(_PROPERTIES)


_TOPICS: Final[dict[str, type[Shape]]] = {
    **dict.fromkeys((each.name for each in PRIMITIVE), PrimitiveShape),
    **_ALWAYS,
    "PROTOBUF": ProtobufShape,
    "KEY_VALUE": KeyValueShape,
    "EXTERNAL": PrimitiveShape,
}

SchemaShape = Annotated[
    Annotated[AvroShape, Tag("<AvroShape>")]
    | Annotated[ProtobufShape, Tag("<ProtobufShape>")]
    | Annotated[ProtobufNativeShape, Tag("<ProtobufNativeShape>")]
    | Annotated[KeyValueShape, Tag("<KeyValueShape>")]
    | Annotated[PrimitiveShape, Tag("<PrimitiveShape>")],
    tagged(lambda: _TOPICS),
]


BRANCHES: Final = {tag_of(shape): shape for shape in (*_TOPICS.values(), *_HALVES.values())}
"""The shapes of schemas by the names they have in pydantic's locations."""


class ClientShape(Shape):
    """A producer or consumer of the topic: which version of the schema it carries."""

    name: Annotated[Any, text("a client's name", r"^\S(.*\S)?$")]
    role: Annotated[Any, choice("role of a client", ("producer", "consumer", "reader"))]
    version: Annotated[Any, whole("`latest` or a version's number", 0, "latest")] = optional(
        "The version it is built with: latest (default) or a number."
    )


class TopicShape(Shape):
    """A topic and its schema."""

    topic: TopicText = Field(description="persistent://tenant/namespace/topic; the domain may be left away.")
    partitions: Annotated[Any, whole("a number of partitions, 1 or more", 1)] = optional(
        "Absent: not partitioned. May only grow."
    )
    renamed_from: TopicText = optional("Check against the versions of that topic, too.")
    schema_compatibility_strategy: Strategy = optional(_STRATEGY)
    reader: Annotated[Any, whole("`latest` or a version's number", 0, "latest")] = optional(
        "The version that generated readers use: latest (default) or a number."
    )
    lifecycle: Annotated[Any, choice("lifecycle", ("stable", "draft"))] = optional(
        "draft: may still break; stable is the default."
    )
    clients: Annotated[list[ClientShape], Field(max_length=MAX_ITEMS)] = optional(
        "Known producers and consumers, for `admit` and `rollout`."
    )
    # pydantic's own BaseModel has a deprecated method of that name.
    schema_: SchemaShape = optional("Absent: a topic without schema.", alias="schema")


class NamespaceShape(Shape):
    """A namespace and its schema policies. A policy that is absent is left as it is on the cluster."""

    namespace: NamespaceText = Field(description="tenant/namespace")
    schema_compatibility_strategy: Strategy = optional(_STRATEGY)
    is_allow_auto_update_schema: Flag = optional(
        "Whether a producer may register a new version by connecting."
    )
    schema_validation_enforced: Flag = optional(
        "Whether clients without a schema are refused where the topic has one."
    )
