"""A topic's schema as the codec takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Definition:
    """One schema.

    Attributes:
        type: Pulsar's SchemaType by name.
        text: AVRO, JSON and PROTOBUF: the Avro schema as JSON. PROTOBUF_NATIVE: the wrapper of its descriptor set.
        properties: of the SchemaInfo; `__charset` of a STRING is the only one that matters here.
        proto: of a PROTOBUF schema, the wrapper of the descriptor set that describes its payloads; "" if none is declared.
    """

    type: str
    text: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    proto: str = ""


@dataclass(frozen=True, slots=True)
class KeyValue:
    """Two schemas in one; `encoding` says whether the key travels in the payload or as the message's key."""

    key: Definition
    value: Definition
    encoding: Literal["INLINE", "SEPARATED"] = "INLINE"


@dataclass(frozen=True, slots=True)
class Version:
    """A schema of a topic, its number, and the commit that brought it ("" if it is not known).

    `foreign`: not approved; uploaded otherwise to the target whose number it is.
    """

    number: int
    schema: Definition | KeyValue
    commit: str = ""
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whose numbers the versions of a codec have, where these are a target's, which may not be Git's.

    Attributes:
        target: its name.
        reader: its number of the schema that messages are read into, by which values are written where no other version is
            asked for; None: it has none.
        unreadable: the numbers by which no message can be read, each with the reason.
    """

    target: str
    reader: int | None = None
    unreadable: Mapping[int, str] = field(default_factory=dict)
