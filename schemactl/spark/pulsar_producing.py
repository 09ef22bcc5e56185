"""A producer for the schema types that pulsar-client cannot name to a broker: KEY_VALUE, and the primitives but STRING.

pulsar-client 3.13 (its C++ client 4.2) has no way to them:

* A payload of KEY_VALUE is made of a `KeyValue` that its Python classes cannot give to a message, so `Producer.send` follows a
  null pointer (`MessageImpl::convertKeyValueToPayload`). Nor does it mark keys that are bytes, as those of SEPARATED pairs are.
* For the primitives but STRING it leaves the schema out of the PRODUCER command (`isBuiltInSchema` in Commands.cc), so the broker
  names no version, and the messages have none.
* A producer without a schema whose messages say their version themselves is no way around: `Message::setSchemaVersion` is not
  there in Python, and a topic with `schemaValidationEnforced` lets no such producer in. Pulsar's REST and WebSocket producers
  take no payloads that are bytes of a version.

So this speaks the few commands that a producer needs itself. What it leaves out, pulsar-client has: compression, messages in
chunks, encryption, OAuth 2.0. It is used by one thread: while that does something else, nothing is in flight.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from . import pulsar_wire as wire
from .pulsar_brokers import Broker, Cluster, Lost, passes, said
from .pulsar_connection import PulsarProblem
from .pulsar_wire import Fields

_ENTRY_MESSAGES: Final = 1_000
_ENTRY_BYTES: Final = 128 << 10
"""An entry holds so many messages, or bytes of them, as pulsar-client's do; or one that is larger."""

_IN_FLIGHT_BYTES: Final = 16 << 20
"""So much may wait for its confirmation before more is sent."""

_LISTENS_S: Final = 1.0
_PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent.

    Attributes:
        payload: None: the message says that it has none.
        key: as it is written, bytes in base64.
        key_is_bytes: the key is in base64.
        null_key: the message says that the key of its pair is null.
        event_ms: None: it has no event time.
        properties: of the message.
    """

    payload: bytes | None
    key: str | None
    key_is_bytes: bool
    null_key: bool
    event_ms: int | None
    properties: dict[str, str]


_NOTHING: Final = Message(None, None, key_is_bytes=False, null_key=False, event_ms=None, properties={})


@dataclass(frozen=True, slots=True)
class _Entry:
    sequence_id: int
    frame: bytes
    until: float


class Producer:
    """Sends to a topic without partitions, or to one partition, with a registered version."""

    def __init__(self, cluster: Cluster, topic: str, *, version: int, send_timeout_s: float) -> None:
        """The broker has let it in.

        Raises:
            PulsarProblem: it has not.
        """
        self._cluster = cluster
        self._topic = topic
        self._version = version
        self._send_timeout_s = send_timeout_s
        self._id = next(cluster.producers)
        self._name: str | None = None
        self._epoch = 0
        self._sequence_id = 0
        self._broker: Broker | None = None
        self._let_go = False
        self._messages: list[bytes] = []
        self._first = _NOTHING
        self._bytes = 0
        self._unconfirmed: deque[_Entry] = deque()
        self._in_flight = 0
        cluster.patiently(f"send to {topic}", self._opened, cluster.connection.operation_timeout_s)

    def send(self, message: Message) -> None:
        """The message is in an entry that is sent when it is full.

        Raises:
            PulsarProblem: the broker does not take what was sent before, or never will such a message.
        """
        payload = message.payload or b""
        about = wire.encoded(
            {
                1: [{1: name, 2: value} for name, value in message.properties.items()],
                2: message.key,
                3: len(payload),
                5: message.event_ms,
                6: message.key_is_bytes or None,
                8: self._sequence_id + len(self._messages),
                9: message.payload is None or None,
                10: message.null_key or None,
            }
        )
        whole = b"".join((len(about).to_bytes(4, "big"), about, payload))
        if self._messages and self._bytes + len(whole) > _ENTRY_BYTES:
            # The number of the message stays what it is.
            self._send_entry()
        if not self._messages:
            self._first = message
        self._messages.append(whole)
        self._bytes += len(whole)
        if len(self._messages) == _ENTRY_MESSAGES:
            self._send_entry()

    def flush(self) -> None:
        """All messages are confirmed.

        Raises:
            PulsarProblem: one is not.
        """
        self._send_entry()
        while self._unconfirmed:
            self._listen()

    def close(self) -> None:
        """The broker knows that no more comes; that it is gone by then is no problem of its own."""
        if self._broker is not None and not self._broker.closed:
            self._broker.listeners.pop(self._id, None)
            self._broker.tell(wire.CLOSE_PRODUCER, {1: self._id}, request=2)

    def _opened(self) -> Broker:
        """The broker that takes this producer's entries, which those that are not confirmed were sent to again.

        Raises:
            Lost, Refused, PulsarProblem: there is none.
        """
        if self._broker is not None and not self._broker.closed:
            return self._broker
        self._broker = None
        # Asked each time: the broker would register what it does not have.
        registered = self._cluster.schema(self._topic, self._version)
        if registered is None:
            raise PulsarProblem(f"{self._topic} has no version {self._version} of a schema any more")
        broker = self._cluster.broker_of(self._topic)
        fields = {
            1: self._topic,
            2: self._id,
            4: self._name,
            7: registered.message,
            8: self._epoch,
            9: False,
        }
        self._epoch += 1
        self._let_go = False
        broker.listeners[self._id] = self._heard
        answer = broker.ask(wire.PRODUCER, fields, request=3)
        if self._let_go:
            # A topic that is unloaded in that moment lets the producer go before it says that it let it in.
            broker.tell(wire.CLOSE_PRODUCER, {1: self._id}, request=2)
            raise Lost(f"{self._topic} moves to another broker")
        found = answer.data(4)
        if found != self._version.to_bytes(8, "big"):
            broker.tell(wire.CLOSE_PRODUCER, {1: self._id}, request=2)
            number = f"version {int.from_bytes(found, 'big')}" if found else "no version"
            raise PulsarProblem(
                f"asked for the schema of version {self._version} of {self._topic}, the broker names {number}: "
                "see which versions hold that schema with `schemactl registry list`"
            )
        self._name = answer.text(2)
        for entry in self._unconfirmed:
            broker.send(entry.frame)
        self._broker = broker
        return broker

    def _send_entry(self) -> None:
        """What was collected is sent, once there is room."""
        if not self._messages:
            return
        while self._in_flight > _IN_FLIGHT_BYTES:
            self._listen()
        until = time.monotonic() + self._send_timeout_s
        broker = self._reached(until)
        frame = self._frame(broker.max_message_bytes)
        self._unconfirmed.append(_Entry(self._sequence_id, frame, until))
        self._in_flight += len(frame)
        self._sequence_id += len(self._messages)
        self._messages, self._bytes = [], 0
        try:
            broker.send(frame)
        except Lost:
            self._reached(until)

    def _frame(self, max_bytes: int) -> bytes:
        payload = b"".join(self._messages)
        if len(payload) > max_bytes:
            raise PulsarProblem(
                f"a message for {self._topic} has {len(payload)} bytes, and the broker takes {max_bytes} (maxMessageSize)"
            )
        last = self._sequence_id + len(self._messages) - 1
        metadata: dict[int, Any] = {
            1: self._name,
            2: self._sequence_id,
            3: time.time_ns() // 1_000_000,
            6: self._first.key,
            11: len(self._messages),
            16: self._version.to_bytes(8, "big"),
            17: self._first.key_is_bytes or None,
            24: last,
        }
        send = {1: self._id, 2: self._sequence_id, 3: len(self._messages), 6: last}
        return wire.entry(send, metadata, payload)

    def _reached(self, until: float) -> Broker:
        """The broker, which everything unconfirmed was sent to, after all that came from it was heard.

        Raises:
            PulsarProblem: there is none until then.
        """

        def reached() -> Broker:
            broker = self._opened()
            while broker.hear():
                pass
            return self._opened()

        return self._cluster.patiently(f"send to {self._topic}", reached, until - time.monotonic())

    def _listen(self) -> None:
        """Waits for confirmations.

        Raises:
            PulsarProblem: the oldest does not come in time.
        """
        until = self._unconfirmed[0].until
        if time.monotonic() > until:
            raise PulsarProblem(
                f"{self._topic} did not confirm a message within {self._send_timeout_s:g} s "
                "(pulsar.producer.sendTimeoutMs); it may be there all the same"
            )
        broker = self._reached(until)
        if self._unconfirmed:
            try:
                broker.hear(min(_LISTENS_S, max(until - time.monotonic(), 0)))
            except Lost:
                # Opened again by the next call, which has a time limit.
                self._broker = None

    def _heard(self, kind: int, fields: Fields) -> None:
        """What the broker says to this producer."""
        sequence_id = fields.number(2)
        if kind == wire.CLOSE_PRODUCER:
            self._broker, self._let_go = None, True
        elif kind == wire.SEND_ERROR and not passes(fields.number(3)):
            raise PulsarProblem(f"{self._topic} did not take a message: {said(fields.text(4))}")
        elif kind == wire.SEND_RECEIPT and self._unconfirmed:
            first = self._unconfirmed[0]
            if sequence_id == first.sequence_id:
                self._unconfirmed.popleft()
                self._in_flight -= len(first.frame)
            elif sequence_id > first.sequence_id:
                self._start_over()
        elif kind == wire.SEND_ERROR:
            # The storage may need a moment.
            time.sleep(_PAUSE_S)
            self._start_over()

    def _start_over(self) -> None:
        """An entry did not arrive: it and those behind it are sent again, on another connection so that they stay in order."""
        if self._broker is not None:
            self._broker.close()
        self._broker = None
