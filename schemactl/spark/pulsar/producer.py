"""Producers that send encoded payloads with the version that the broker has registered.

pulsar-client names the schema of AVRO, JSON, STRING, PROTOBUF and PROTOBUF_NATIVE when it connects, so the broker gives messages the
version. For KEY_VALUE, its native producer is used directly (`PairProducer`). For other types the client names no schema
(`isBuiltInSchema` in Commands.cc), so their messages have no version.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from threading import BoundedSemaphore
from typing import Any, Final

from ...codec.message import SENDABLE
from .options import PulsarProblem, client_package
from .topics import Cluster

_MAX_PENDING: Final = 1_000
"""How many messages wait for their confirmation."""

OnConfirmation = Callable[[Any, Any], None]
"""Called with pulsar-client's result and the id of the message."""


def is_sent_without_version(schema_type: str) -> bool:
    """Return whether pulsar-client connects without the schema of a type, so that its messages carry no version."""
    return schema_type not in SENDABLE and schema_type != "KEY_VALUE"


def open_producer(cluster: Cluster, topic: str, info: Any, *, send_timeout_s: float, router: Any) -> Any:
    """Open a producer for payloads that are encoded already. Closing the client closes it.

    Args:
        cluster: the client.
        topic: the full name of the topic.
        info: the registered SchemaInfo of the version, by which the broker recognizes the version.
        send_timeout_s: how long a message may wait for its confirmation.
        router: chooses the partition of a message.

    Raises:
        PulsarProblem: if the broker accepts no producer, or the topic requires a schema that pulsar-client does not name.
    """
    pulsar = client_package()
    schema_type = info.schema_type().name
    if schema_type == "KEY_VALUE":
        return PairProducer(cluster, topic, info, send_timeout_s=send_timeout_s, router=router)
    # The package offers no schema made of a registered definition.
    schema = pulsar.schema.BytesSchema()
    if not is_sent_without_version(schema_type):
        schema._schema_info = info  # noqa: SLF001
    try:
        return cluster.client.create_producer(
            topic,
            schema=schema,
            send_timeout_millis=round(send_timeout_s * 1000),
            block_if_queue_full=True,
            batching_enabled=True,
            message_router=router,
        )
    except pulsar.IncompatibleSchema:
        if not is_sent_without_version(schema_type):
            raise
        raise PulsarProblem(
            f"{topic} requires a schema of its producers (schema_validation_enforced), but pulsar-client sends no schema for this type: send "
            "with Pulsar's Java client"
        ) from None


class PairProducer:
    """Sends KEY_VALUE messages whose payloads and keys are bytes, on pulsar-client's native producer.

    Python does not support KEY_VALUE (https://github.com/apache/pulsar-client-python/issues/69): it cannot give a pair to a message, and the client crashes on a message without one (MessageImpl::convertKeyValueToPayload).
    Whether the client expects a pair depends on the schema in its configuration, which it shares with this object. So the producer connects
    with the registered schema, by which the broker assigns the version, and the configuration names no schema while a message is handed
    over. It names the
    registered one at all other times, since the client connects with it again if the connection is lost.
    """

    def __init__(self, cluster: Cluster, topic: str, info: Any, *, send_timeout_s: float, router: Any) -> None:
        pulsar, native = client_package(), import_module("_pulsar")
        configuration = native.ProducerConfiguration()
        configuration.send_timeout_millis(round(send_timeout_s * 1000))
        # The client must not wait while the configuration names no schema, so `send_async` waits instead.
        configuration.block_if_queue_full(False)  # noqa: FBT003  the native signature
        configuration.max_pending_messages(2 * _MAX_PENDING)
        configuration.batching_enabled(True)  # noqa: FBT003  the native signature
        configuration.message_router(lambda message, partitions: int(router(message, partitions)))
        configuration.schema(info)
        self._configuration, self._info = configuration, info
        self._no_schema = pulsar.schema.BytesSchema().schema_info()
        self._slots = BoundedSemaphore(_MAX_PENDING)
        self._producer = pulsar.Producer()
        self._producer._producer = cluster.client._client.create_producer(topic, configuration)  # noqa: SLF001
        self._producer._schema = pulsar.schema.BytesSchema()  # noqa: SLF001
        self._producer._client = cluster.client._client  # noqa: SLF001

    def send_async(self, payload: bytes | None, on_confirmation: OnConfirmation, **arguments: Any) -> None:
        """Send a message; see pulsar-client's `Producer.send_async`."""
        self._slots.acquire()

        def confirm(result: Any, message_id: Any) -> None:
            self._slots.release()
            on_confirmation(result, message_id)

        self._configuration.schema(self._no_schema)
        try:
            self._producer.send_async(payload, confirm, **arguments)
        finally:
            self._configuration.schema(self._info)

    def flush(self) -> None:
        """Wait until all messages are confirmed."""
        self._producer.flush()
