"""Make the schemas with which pulsar-client sends and receives the messages of a topic. Importing this module imports pulsar-client.

The modes follow Pulsar's Java client: AutoProduceBytesSchema, AutoConsumeSchema, NativeAvroBytesSchema.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

from .avro_schema import ShapeComparison, is_equal, parse
from .definition import CodecUnavailable, Definition, KeyValue, UnknownVersion
from .generic_record import GenericRecord, to_generic
from .message import SENDABLE, decode_pair_key, get_payload, get_version_number
from .topic import Codec

try:
    pulsar: Any = import_module("pulsar")
except ImportError:
    raise CodecUnavailable("this needs the package pulsar-client: pip install pulsar-client") from None

Mode = Literal["RECEIVE_ONLY", "AUTO_CONSUME", "AUTO_PRODUCE_BYTES", "NATIVE_AVRO"]

VERSION_PROPERTY = "schemactl.version"
"""The property with which producers and consumers report their version to the broker."""


def topic_schema(
    codec: Codec,
    client: Any,
    topic: str,
    version: int | None = None,
    mode: Mode | None = None,
    *,
    to_value: Callable[[Any], Any],
) -> TopicSchema:
    """Make the schema of a registered version, with its registered properties. This does not register a schema.

    Args:
        codec: the codec of the topic.
        client: a `pulsar.Client`, or a `pulsar.asyncio.Client`, for which this call blocks until the broker responds.
        topic: the full name of the topic.
        version: the number of the version; None is the version that messages are decoded into.
        mode: the mode of the schema; None sends and receives values.
        to_value: converts an object to send, such as an instance of a class, to a value of the codec.

    Raises:
        UnknownVersion: the codec has no such version, the broker has another schema with this number, or the broker has no such version and
            the mode allows sending.
        CodecUnavailable: there is no codec for the schema's type.
        ValueError: the mode does not exist, or does not support the schema type.
    """
    if mode not in _SCHEMA_CLASSES:
        raise ValueError(f"there is no mode {mode!r}: expected {', '.join(filter(None, _SCHEMA_CLASSES))}")
    codec.columns  # noqa: B018  raises here, not at the first message
    number = version
    if number is None:
        try:
            number = _find_reader_number(codec)
        except UnknownVersion:
            if mode not in ("RECEIVE_ONLY", "AUTO_CONSUME"):
                raise
    definition = codec.schema(number)
    kind = definition.type if isinstance(definition, Definition) else "KEY_VALUE"
    if mode == "NATIVE_AVRO" and kind != "AVRO":
        raise ValueError(f"NATIVE_AVRO is for AVRO, and version {number} of {topic} is {kind}")
    # The broker compares nothing for a consumer that connects without a schema.
    info = pulsar.schema.BytesSchema().schema_info()
    if mode == "AUTO_CONSUME":
        return _AutoConsumeSchema(codec, number, info, to_value)
    if not isinstance(definition, Definition) or kind not in SENDABLE:
        return _UnsendableSchema(codec, number, info, to_value)
    if number is not None:
        registered = _get_registered(client, topic, number, definition)
        if registered is None and mode != "RECEIVE_ONLY":
            raise UnknownVersion(
                f"{topic} has no version {number} there: `schemactl apply` registers it, and nothing else should; "
                'consumers that are upgraded before that use mode="RECEIVE_ONLY"'
            )
        info = registered or info
    return _SCHEMA_CLASSES[mode](codec if version is None else codec.read_as(version), number, info, to_value)


def _find_reader_number(codec: Codec) -> int:
    """Return the number of the version that messages are decoded into, from which the reader's docs and aliases may differ.

    Raises:
        UnknownVersion: the reader's schema is not a version of the codec or of its target.
    """
    number, reader = codec.number_written(), codec.reader
    if number is not None:
        return number
    for version in reversed(codec.versions):
        schema = version.schema
        if isinstance(reader, Definition) and isinstance(schema, Definition) and is_same_schema(schema, reader):
            return version.number
    raise UnknownVersion("messages are read into a schema that is not a version: name the version")


def _get_registered(client: Any, topic: str, number: int, definition: Definition) -> Any:
    """Return the registered SchemaInfo of a version number, or None if the broker has no such version.

    Raises:
        UnknownVersion: the registered schema is not the approved one.
    """
    try:
        info = client._client.get_schema_info(topic, number)  # noqa: SLF001  pulsar-client has no public method for it
    except pulsar.TopicNotFound:
        return None
    if not is_same_schema(definition, Definition(info.schema_type().name, info.schema())):
        raise UnknownVersion(
            f"version {number} of {topic} there is not the approved one: `schemactl drift` shows what it is"
        )
    return info


def is_same_schema(left: Definition | KeyValue, right: Definition | KeyValue) -> bool:
    """Return whether two schemas are equal except for docs, aliases and other parts without an effect on messages."""
    if isinstance(left, KeyValue) or isinstance(right, KeyValue):
        return (
            isinstance(left, KeyValue)
            and isinstance(right, KeyValue)
            and left.encoding == right.encoding
            and is_same_schema(left.key, right.key)
            and is_same_schema(left.value, right.value)
        )
    if left.type != right.type or left.type not in ("AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE"):
        return left.type == right.type
    if left.type == "PROTOBUF_NATIVE":
        from .proto_schema import describe_messages

        return bool(describe_messages(left) == describe_messages(right))
    return ShapeComparison(is_equal).is_same(parse(left.text), parse(right.text))


class TopicSchema(pulsar.schema.Schema):  # type: ignore[misc]  # the client has no types
    """Sends values of one version, and receives messages of every version as values of that one.

    Attributes:
        version: the number of the version; None if the target of the package has not registered the version yet.
        properties: the properties for `create_producer` and `subscribe`, which report the version to the broker.
        only_receives: the error of `encode` for schemas that cannot send; "" if the schema can.
    """

    only_receives = ""

    def __init__(self, codec: Codec, version: int | None, info: Any, to_value: Callable[[Any], Any]) -> None:
        """Create a schema that connects with `info`, a SchemaInfo of pulsar-client. For `to_value` see `topic_schema`."""
        self._codec = codec
        self._to_value = to_value
        self._schema_info = info
        self._record_cls = None
        self.version = version
        self.properties = {} if version is None else {VERSION_PROPERTY: str(version)}

    def encode(self, obj: Any) -> bytes:
        """Encode a value.

        Raises:
            Unwritable: the value does not fit the version. Nothing is sent then.
            TypeError: the schema cannot send.
        """
        if self.only_receives:
            raise TypeError(self.only_receives.format(type(obj).__name__))
        payload = self._codec.encode_one(self._to_value(obj), self.version)
        assert payload is not None  # noqa: S101  only a SEPARATED KEY_VALUE has no payload, and pulsar-client cannot send it
        return payload

    def decode(self, data: bytes) -> Any:
        """Decode a payload without its message, for table views of pulsar-client.

        Raises:
            UnknownVersion: the codec has several versions, so the version of the payload is unknown.
        """
        if self.version is None or len(self._codec.versions) > 1:
            raise UnknownVersion("a payload alone does not say its version: decode the message")
        return self._codec.decode_one(data, self.version)

    def decode_message(self, msg: Any) -> Any:
        """Decode a message of any version.

        Raises:
            UnknownVersion: the package has no such version.
            Unreadable: the message cannot be decoded; `reason` has the place and the problem.
        """
        return self._decode_with(self._codec, msg, self._get_known_number(msg))

    def _get_known_number(self, message: Any) -> int | None:
        """Return the number of the message's version. Raises UnknownVersion if the package has no such version."""
        number = get_version_number(message)
        if number is not None:
            self._codec.schema(number)
        return number

    @staticmethod
    def _decode_with(codec: Codec, message: Any, number: int | None) -> Any:
        key = decode_pair_key(message.partition_key(), message.properties()) if codec.separated else None
        return codec.decode_one(get_payload(message), number, key)


class _AutoConsumeSchema(TopicSchema):
    """Receives each message as a value of the version that it was written with (AUTO_CONSUME)."""

    only_receives = "AUTO_CONSUME only receives: send a {} with the schema of a version"

    def decode_message(self, msg: Any) -> Any:
        number = self._get_known_number(msg)
        codec = self._codec if number is None else self._codec.read_as(number)
        value = to_generic(self._decode_with(codec, msg, number))
        if isinstance(value, GenericRecord):
            vars(value)["schema_version"] = number
        return value


class _NativeAvroSchema(TopicSchema):
    """Sends and receives payloads without validation (NATIVE_AVRO)."""

    def encode(self, obj: Any) -> bytes:
        if not isinstance(obj, bytes):
            raise TypeError(f"expected a payload as bytes, found {type(obj).__name__}")
        return obj

    def decode(self, data: bytes) -> bytes:
        return data

    def decode_message(self, msg: Any) -> bytes | None:
        return get_payload(msg)


class _AutoProduceBytesSchema(_NativeAvroSchema):
    """Sends payloads that it has validated (AUTO_PRODUCE_BYTES)."""

    def encode(self, obj: Any) -> bytes:
        payload = super().encode(obj)
        assert self.version is not None  # noqa: S101  only schemas that cannot send have no version
        self._codec.validate(payload, self.version)
        return payload


class _ReceiveOnlySchema(TopicSchema):
    """Receives messages of every version as values of one version that may not be registered yet (RECEIVE_ONLY)."""

    only_receives = "RECEIVE_ONLY only receives: send a {} with a schema without mode"


class _UnsendableSchema(TopicSchema):
    """Receives messages of a schema type that pulsar-client cannot send."""

    only_receives = f"pulsar-client sends {', '.join(SENDABLE)}: send a {{}} with Pulsar's Java client"


_SCHEMA_CLASSES = {
    None: TopicSchema,
    "RECEIVE_ONLY": _ReceiveOnlySchema,
    "AUTO_CONSUME": _AutoConsumeSchema,
    "AUTO_PRODUCE_BYTES": _AutoProduceBytesSchema,
    "NATIVE_AVRO": _NativeAvroSchema,
}
