"""A topic's approved schema as the official Python client takes it: `pulsar.schema.Schema`. Importing this imports pulsar-client.

Follows Pulsar's Java client: AutoProduceBytesSchema, AutoConsumeSchema, NativeAvroBytesSchema.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

from .avro_schema import is_equal, is_same_shape, parse
from .definition import CodecUnavailable, Definition, UnknownVersion
from .message import SENDABLE, number_of, pair_key, payload_of
from .topic import Codec, GenericRecord, to_generic

try:
    pulsar: Any = import_module("pulsar")
except ImportError:
    raise CodecUnavailable("this needs the package pulsar-client: pip install pulsar-client") from None

Mode = Literal["RECEIVE_ONLY", "AUTO_CONSUME", "AUTO_PRODUCE_BYTES", "NATIVE_AVRO"]

VERSION_PROPERTY = "schemactl.version"
"""The property in which a producer or consumer reports its version to the broker."""


class TopicSchema(pulsar.schema.Schema):  # type: ignore[misc]  # the client has no types
    """Values of one version to send; to receive, those of every version, read into that one.

    Attributes:
        version: its number; None: the target whose numbers the package has has not given it one yet.
        properties: for `create_producer` and `subscribe`: they report the version to the broker.
    """

    def __init__(self, codec: Codec, version: int | None, info: Any, to_value: Callable[[Any], Any]) -> None:
        """Read and write with `codec`; connect with `info`, of the client's own class. For `to_value` see `topic_schema`."""
        self._codec = codec
        self._to_value = to_value
        self._schema_info = info
        self._record_cls = None
        self.version = version
        self.properties = {} if version is None else {VERSION_PROPERTY: str(version)}

    only_receives = ""
    """Why, and with what to send; "": it sends, too."""

    def encode(self, obj: Any) -> bytes:
        """Return the payload of a value. Raises Unwritable, before anything is sent: the value does not fit the version."""
        if self.only_receives:
            raise TypeError(self.only_receives.format(type(obj).__name__))
        payload = self._codec.encode_one(self._to_value(obj), self.version)
        # The only value without a payload is a half of a pair, which the client cannot send.
        assert payload is not None  # noqa: S101
        return payload

    def decode(self, data: bytes) -> Any:
        """Return the value of a payload without a message, as table views of the client ask for it.

        Raises UnknownVersion: there are several versions, and nothing says which one wrote it.
        """
        if self.version is None or len(self._codec.versions) > 1:
            raise UnknownVersion("a payload alone does not say its version: decode the message")
        return self._codec.decode_one(data, self.version)

    def decode_message(self, msg: Any) -> Any:
        """Return the value of a message of any version.

        Raises:
            UnknownVersion: the package has no such version.
            Unreadable: the message cannot be read; `reason` says where and why.
        """
        return self._decoded(self._codec, msg, self._known(msg))

    def _known(self, message: Any) -> int | None:
        """Return the number of the message's version. Raises UnknownVersion: the package has no such version."""
        number = number_of(message)
        if number is not None:
            self._codec.schema(number)
        return number

    @staticmethod
    def _decoded(codec: Codec, message: Any, number: int | None) -> Any:
        key = pair_key(message.partition_key()) if codec.separated else None
        return codec.decode_one(payload_of(message), number, key)


class _AsWritten(TopicSchema):
    """AUTO_CONSUME: each message as its producer saw it."""

    only_receives = "AUTO_CONSUME only receives: send a {} with the schema of a version"

    def decode_message(self, msg: Any) -> Any:
        number = self._known(msg)
        codec = self._codec if number is None else self._codec.read_as(number)
        value = to_generic(self._decoded(codec, msg, number))
        if isinstance(value, GenericRecord):
            vars(value)["schema_version"] = number
        return value


class _UncheckedPayloads(TopicSchema):
    """NATIVE_AVRO: payloads, sent as they are."""

    def encode(self, obj: Any) -> bytes:
        if not isinstance(obj, bytes):
            raise TypeError(f"expected a payload as bytes, found {type(obj).__name__}")
        return obj

    def decode(self, data: bytes) -> bytes:
        return data

    def decode_message(self, msg: Any) -> bytes | None:
        return payload_of(msg)


class _Payloads(_UncheckedPayloads):
    """AUTO_PRODUCE_BYTES: payloads, which are validated before they are sent."""

    def encode(self, obj: Any) -> bytes:
        payload = super().encode(obj)
        # Only what receives is without a number.
        assert self.version is not None  # noqa: S101
        self._codec.validate(payload, self.version)
        return payload


class _ReceiveOnly(TopicSchema):
    """RECEIVE_ONLY: values of every version, read into one that may not be registered yet."""

    only_receives = "RECEIVE_ONLY only receives: send a {} with a schema without mode"


class _Unsendable(TopicSchema):
    """Of a type that the client cannot send."""

    only_receives = f"pulsar-client sends {', '.join(SENDABLE)}: send a {{}} with Pulsar's Java client"


_MODES = {
    None: TopicSchema,
    "RECEIVE_ONLY": _ReceiveOnly,
    "AUTO_CONSUME": _AsWritten,
    "AUTO_PRODUCE_BYTES": _Payloads,
    "NATIVE_AVRO": _UncheckedPayloads,
}


def topic_schema(
    codec: Codec,
    client: Any,
    topic: str,
    version: int | None = None,
    mode: Mode | None = None,
    *,
    to_value: Callable[[Any], Any],
) -> TopicSchema:
    """Return the schema of a version, as the broker holds it, so with its properties; nothing is registered on the way.

    Args:
        codec: the topic's.
        client: `pulsar.Client`, or `pulsar.asyncio.Client`, which waits for the broker's answer here.
        topic: its full name there.
        version: the number of the version; None: the one that messages are read into.
        mode: what is sent and received; None: values, both ways.
        to_value: makes a value of the codec of what is sent, such as an instance of a class.

    Raises:
        UnknownVersion: the codec has no such version, the broker has none and would be sent messages of it, or it has another schema
            of that number.
        CodecUnavailable: there is no codec for the schema's type.
        ValueError: there is no such mode, or it is for schemas of another type.
    """
    if mode not in _MODES:
        raise ValueError(f"there is no mode {mode!r}: expected {', '.join(filter(None, _MODES))}")
    codec.columns  # noqa: B018  raises here, not at the first message
    number = _number(codec, mode) if version is None else version
    definition = codec.schema(number)
    kind = definition.type if isinstance(definition, Definition) else "KEY_VALUE"
    if mode == "NATIVE_AVRO" and kind != "AVRO":
        raise ValueError(f"NATIVE_AVRO is for AVRO, and version {number} of {topic} is {kind}")
    # What a consumer connects with that brings no schema: the broker compares nothing.
    info = pulsar.schema.BytesSchema().schema_info()
    if mode == "AUTO_CONSUME":
        return _AsWritten(codec, number, info, to_value)
    if not isinstance(definition, Definition) or kind not in SENDABLE:
        return _Unsendable(codec, number, info, to_value)
    if number is not None:
        registered = _registered(client, topic, number, definition)
        if registered is None and mode != "RECEIVE_ONLY":
            raise UnknownVersion(
                f"{topic} has no version {number} there: `schemactl apply` registers it, and nothing else should; "
                'consumers that are upgraded before that use mode="RECEIVE_ONLY"'
            )
        info = registered or info
    return _MODES[mode](codec if version is None else codec.read_as(version), number, info, to_value)


def _registered(client: Any, topic: str, number: int, definition: Definition) -> Any:
    """Return the schema that the broker has under that number, of the client's own class; None: it has none.

    Raises UnknownVersion: that is not the approved one.
    """
    try:
        info = client._client.get_schema_info(topic, number)  # noqa: SLF001  nothing else asks
    except pulsar.TopicNotFound:
        return None
    if not _is_same(definition, Definition(info.schema_type().name, info.schema())):
        raise UnknownVersion(
            f"version {number} of {topic} there is not the approved one: `schemactl drift` shows what it is"
        )
    return info


def _number(codec: Codec, mode: Mode | None) -> int | None:
    """Return the number of the version that messages are read into; None, of what only receives: its target has given it none yet."""
    try:
        return _reader_number(codec)
    except UnknownVersion:
        if mode in ("RECEIVE_ONLY", "AUTO_CONSUME"):
            return None
        raise


def _reader_number(codec: Codec) -> int:
    """Return the number of the version that messages are read into, whose docs and aliases may have been edited since."""
    number, reader = codec.number_written(), codec.reader
    if number is not None:
        return number
    for one in reversed(codec.versions):
        if isinstance(reader, Definition) and isinstance(one.schema, Definition) and _is_same(one.schema, reader):
            return one.number
    raise UnknownVersion("messages are read into a schema that is no version: name the version")


def _is_same(one: Definition, other: Definition) -> bool:
    """Whether both say the same but for docs, aliases and what no message depends on."""
    if one.type != other.type or one.type == "STRING":
        return one.type == other.type
    if one.type == "PROTOBUF_NATIVE":
        from .proto_schema import describe_messages

        return bool(describe_messages(one) == describe_messages(other))
    return is_same_shape(parse(one.text), parse(other.text), is_equal)
