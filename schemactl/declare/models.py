"""The shapes of topic and namespace documents, and of schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Union

from pydantic import Discriminator, Field, Tag, create_model

from schemactl.core.policies import SETTINGS, Names, OneOf, Parts, Setting, Switch, Whole
from schemactl.core.schema import SchemaType
from schemactl.declare.files import AVRO_SUFFIXES, DESCRIPTOR_SUFFIX, PROTO_SUFFIX
from schemactl.declare.shapes.leaf import (
    MAX_ITEMS,
    Definition,
    FilePath,
    Flag,
    MappingShape,
    MessageName,
    NamespaceText,
    Properties,
    References,
    Strategy,
    TopicText,
    ValueShape,
    choice,
    optional,
    tag_of,
    text,
    whole,
)
from schemactl.declare.shapes.waiver import Day
from schemactl.formats import SPECS

_AVRO = "An .avsc file (its path starts at this file's folder), or the Avro schema itself as YAML or JSON."
_TYPES = "Files whose named types the definition may use; inlined at first use. A glob, or a folder with / at its end, offers all its files."
_PROPERTIES = "Text stored with the schema. Pulsar never compares it."
DEFINITION_SUFFIXES: Final = (*AVRO_SUFFIXES, PROTO_SUFFIX, DESCRIPTOR_SUFFIX)
_BUILD_PATTERN: Final = r"^latest$|^[0-9]{1,9}\.\.[0-9]{1,9}$|\.(avsc|json|proto|binpb)$"
_STRATEGY = "Which readers a new version must not break. UNDEFINED or absent: as the level above says."


def _types(declared_as: str, *, half: bool = False) -> Any:
    """Return the annotation of a `type` that has that shape; the shape was picked by it, so nothing is left to check."""
    types = sorted(
        type_.name
        for type_, spec in SPECS.items()
        if spec.declared_as == declared_as and not (spec.unfit_half if half else spec.undeclarable)
    )
    return Annotated[
        Any, ValueShape(lambda _value: None, {"enum": types, "description": "Pulsar's schema type."})
    ]


class AvroShape(MappingShape):
    """A schema whose definition is an Avro schema."""

    type: _types("avro")  # type: ignore[valid-type]
    definition: Definition = Field(description=_AVRO, examples=["orders.avsc"])
    references: References = optional(_TYPES, examples=[["../common/money.avsc"]])
    properties: Properties = optional(_PROPERTIES)


class ProtobufHalfShape(AvroShape):
    """Protobuf messages that an Avro schema describes (Pulsar's older support), as a half of a KEY_VALUE."""

    type: _types("protobuf", half=True)  # type: ignore[valid-type]


class ProtobufShape(AvroShape):
    """Protobuf messages that an Avro schema describes (Pulsar's older support)."""

    type: _types("protobuf")  # type: ignore[valid-type]
    proto: FilePath = optional("The .proto behind it, for wire rules and codecs only.")
    message: MessageName = optional("The root message in `proto`: package.Message.")


class ProtobufNativeShape(MappingShape):
    """Protobuf messages that their own descriptor describes."""

    type: _types("proto")  # type: ignore[valid-type]
    definition: FilePath = Field(description="A .proto file, or a descriptor set with its imports (.binpb).")
    message: MessageName = Field(description="The root message: package.Message.")
    references: References = optional(
        "The .proto files that the definition imports; or globs, or folders with / at their end."
    )
    properties: Properties = optional(_PROPERTIES)


class PlainShape(MappingShape):
    """A schema without definition: its wire form is fixed by Pulsar."""

    type: _types("plain")  # type: ignore[valid-type]
    properties: Properties = optional(_PROPERTIES)


class PlainHalfShape(PlainShape):
    """A half without definition: its wire form is fixed by Pulsar, or plain bytes."""

    type: _types("plain", half=True)  # type: ignore[valid-type]


def _one_of(shapes: dict[str, type[MappingShape]], *, half: bool) -> Any:
    """Return the annotation of a schema: one of `shapes`, which are by `TypeSpec.declared_as`, picked by its type."""

    def tag(value: object) -> str | None:
        name = value.get("type") if isinstance(value, dict) else None
        type_ = SchemaType.__members__.get(name) if isinstance(name, str) else None
        # None, where there is no such type, becomes an error of the union itself.
        if type_ is None or (SPECS[type_].unfit_half if half else SPECS[type_].undeclarable):
            return None
        return tag_of(shapes[SPECS[type_].declared_as])

    tagged = tuple(Annotated[shape, Tag(tag_of(shape))] for shape in shapes.values())
    return Annotated[Union[tagged], Discriminator(tag)]  # noqa: UP007  of as many as there are


_HALVES: Final[dict[str, type[MappingShape]]] = {
    "avro": AvroShape,
    "protobuf": ProtobufHalfShape,
    "proto": ProtobufNativeShape,
    "plain": PlainHalfShape,
}


class KeyValueShape(MappingShape):
    """Two schemas in one: a key and a value."""

    type: _types("pair")  # type: ignore[valid-type]
    encoding: Annotated[Any, choice("encoding", ("INLINE", "SEPARATED"))] = Field(
        default=None,
        description="SEPARATED: the key travels as the message's key. INLINE (default): in the payload.",
    )
    key: _one_of(_HALVES, half=True) = Field(description="The schema of the key.")  # type: ignore[valid-type]
    value: _one_of(_HALVES, half=True) = Field(description="The schema of the value.")  # type: ignore[valid-type]
    properties: Properties = optional(_PROPERTIES)


_WHOLE: Final[dict[str, type[MappingShape]]] = {
    "avro": AvroShape,
    "protobuf": ProtobufShape,
    "proto": ProtobufNativeShape,
    "pair": KeyValueShape,
    "plain": PlainShape,
}

BRANCHES: Final = {tag_of(shape): shape for shape in (*_WHOLE.values(), *_HALVES.values())}
"""The shapes of schemas by the names they have in pydantic's locations."""


def _check_build(value: object) -> None:
    """ValueError: not what a client is built with."""
    if isinstance(value, str):
        range_ = re.fullmatch(r"([0-9]{1,9})\.\.([0-9]{1,9})", value)
        if range_ and int(range_[1]) > int(range_[2]):
            raise ValueError(f"the range {value} ends before it begins", f"write {range_[2]}..{range_[1]}")
        if value == "latest" or range_ or value.endswith(DEFINITION_SUFFIXES):
            return
    _NUMBER.check(value)


_NUMBER: Final = whole(
    "`latest`, a version's number, a range such as 3..5, or a definition's file", 0, "latest"
)
_BUILD: Final = ValueShape(
    _check_build, {"oneOf": [_NUMBER.schema["oneOf"][0], {"type": "string", "pattern": _BUILD_PATTERN}]}
)


class ClientShape(MappingShape):
    """A producer or consumer of the topic: who it is, and which version of the schema it is built with."""

    name: Annotated[Any, text("a client's name", r"^\S(.*\S)?$")] = Field(description="Its name, for people.")
    role: Annotated[Any, choice("role of a client", ("producer", "consumer", "reader"))] = Field(
        description="Whether it writes or reads; a reader has no subscription."
    )
    schema_: Annotated[Any, _BUILD] = optional(
        "What it is built with: latest (default), a version's number, a range of those that run, or its own definition's file.",
        alias="schema",
    )
    team: Annotated[Any, text("a team")] = optional("Who answers for it.")
    language: Annotated[Any, text("a language")] = optional("What it is written in.")
    contact: Annotated[Any, text("where to find the team")] = optional(
        "Where to find the team: a finding about the client names it.", examples=["@acme/payments"]
    )
    targets: Annotated[
        list[Annotated[Any, text("a target's name")]], Field(min_length=1, max_length=MAX_ITEMS)
    ] = optional("The targets on which it runs; absent: all that have the topic.")


class DeprecatedShape(MappingShape):
    """That a topic is to be used no longer."""

    since: Day = optional("The day since when.")
    remove_after: Day = optional("The last day, in UTC, on which it may be there.")
    use: TopicText = optional("The topic to use instead.")


class MetadataShape(MappingShape):
    """What is said of a topic or namespace for people."""

    owner: Annotated[Any, text("a person or a team")] = optional(
        "Who answers for it, or for all topics of a namespace: shown, and the owner of its waivers.",
        examples=["team-orders", "@acme/orders"],
    )
    description: Annotated[Any, text("a text")] = optional("What it is for.")
    labels: Annotated[
        dict[str, Annotated[Any, text("text", fix="put it in quotes")]], Field(max_length=MAX_ITEMS)
    ] = optional(
        "Name to text, to find it by (`list --label`); a namespace's are those of its topics, too.",
        examples=[{"tier": "gold"}],
    )
    links: Annotated[
        dict[str, Annotated[Any, text("a URL", r"^(https?://|mailto:)\S+$", fix="begin it with https://")]],
        Field(max_length=MAX_ITEMS),
    ] = optional("Name to URL.", examples=[{"dashboard": "https://grafana.example.com/d/orders"}])
    deprecated: DeprecatedShape = optional(
        "That it is to be used no longer: until when, and what instead.",
        examples=[{"since": "2026-11-01", "remove_after": "2027-05-01", "use": "shop/sales/orders-v2"}],
    )


Partitions = Annotated[Any, whole("a number of partitions, 1 or more", 1)]


def _setting(name: str, shape: Whole | Switch | OneOf | Names | Parts) -> Any:
    """Return the annotation of a value of a setting, or of a part of one, that has this shape."""
    match shape:
        case Whole(expected, least, most):
            return Annotated[Any, whole(expected, least, most=most)]
        case Switch():
            return Flag
        case OneOf(noun, names):
            return Annotated[Any, choice(noun, names)]
        case Names(noun, pattern):
            each = Annotated[Any, text(noun, pattern)]
            return Annotated[list[each], Field(min_length=1, max_length=MAX_ITEMS)]
        case Parts(parts, about):
            fields: dict[str, Any] = {
                key: (_setting(key, part), Field(description=about[key])) for key, part in parts.items()
            }
            words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
            return create_model(f"{words}Shape", __base__=MappingShape, **fields)


def _shape_of_settings(name: str, rows: Iterable[Setting]) -> Any:
    """Return the shape, called `name`, of what can be set of these rows of the table of settings."""
    fields: dict[str, Any] = {row.name: (_setting(row.name, row.shape), optional(row.about)) for row in rows}
    return create_model(name, __base__=MappingShape, **fields)


_NamespaceSettings = _shape_of_settings("NamespaceSettings", SETTINGS.values())
_TopicSettings = _shape_of_settings("TopicSettings", (row for row in SETTINGS.values() if row.topic_path))


class _OfTopics(MappingShape):
    """What may differ of a topic on a target, without settings."""

    topic: TopicText = Field(description="The topic as it is declared.")
    partitions: Partitions = optional("Its partitions there. May only grow.")
    schema_compatibility_strategy: Strategy = optional(_STRATEGY)


class TopicOverlayShape(_TopicSettings, _OfTopics):  # type: ignore[misc, valid-type]
    """What of a topic differs on a target."""


class _OfNamespaces(MappingShape):
    """What may differ of a namespace on a target, without settings."""

    namespace: NamespaceText = Field(description="tenant/namespace", examples=["shop/sales"])
    schema_compatibility_strategy: Strategy = optional(_STRATEGY)
    is_allow_auto_update_schema: Flag = optional(
        "Whether a producer may register a new version by connecting."
    )
    schema_validation_enforced: Flag = optional(
        "Whether clients without a schema are rejected where the topic has one."
    )


class NamespaceOverlayShape(_NamespaceSettings, _OfNamespaces):  # type: ignore[misc, valid-type]
    """What of a namespace differs on a target."""


class NamespaceShape(MetadataShape, NamespaceOverlayShape):
    """A namespace and its policies. A policy that was never declared is left as it is on the cluster; one that is declared no longer is reset."""


class TopicShape(MetadataShape, TopicOverlayShape):
    """A topic and its schema."""

    topic: TopicText = Field(
        description="persistent://tenant/namespace/topic; the domain may be omitted.",
        examples=["persistent://shop/sales/orders"],
    )
    partitions: Partitions = optional("Absent: not partitioned. May only grow.")
    generation: Annotated[Any, whole("a number of generations, 1 or more", 1)] = optional(
        "Raised by one: the versions so far are deleted, on a topic that retains no message, and nothing is compared with them again."
    )
    renamed_from: TopicText = optional("Check against the versions of that topic, too.")
    reader: Annotated[Any, whole("`latest` or a version's number", 0, "latest")] = optional(
        "The version that generated readers use: latest (default) or a number."
    )
    lifecycle: Annotated[Any, choice("lifecycle", ("stable", "draft"))] = optional(
        "draft: may still break; stable is the default."
    )
    clients: Annotated[list[ClientShape], Field(max_length=MAX_ITEMS)] = optional(
        "Known producers and consumers: a change must not break what one is built with.",
        examples=[[{"name": "billing", "team": "payments", "role": "consumer", "schema": 3}]],
    )
    # pydantic's own BaseModel has a deprecated method of that name.
    schema_: _one_of(_WHOLE, half=False) = optional(  # type: ignore[valid-type]
        "Absent: a topic without schema.",
        alias="schema",
        examples=[{"type": "AVRO", "definition": "orders.avsc"}],
    )
