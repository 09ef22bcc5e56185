"""Connections to a cluster's brokers over Pulsar's binary protocol, for what pulsar-client cannot say to them (`pulsar_producing`)."""

from __future__ import annotations

import random
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from . import pulsar_wire as wire
from .pulsar_connection import Connection, PulsarProblem, reason_of
from .pulsar_positions import topic_of
from .pulsar_wire import Fields

T = TypeVar("T")

_ERRORS: Final = {
    3: "AuthenticationError",
    4: "AuthorizationError",
    11: "TopicNotFound",
    18: "IncompatibleSchema",
}
"""Names of ServerError, as pulsar-client calls its exceptions."""

_NOT_FOUND: Final = 11
_PASSING: Final = {0, 1, 2, 6, 14, 16}
"""UnknownError, MetadataError, PersistenceError, ServiceNotReady, TooManyRequests, ProducerBusy: another time it may go well."""

_MAX_MESSAGE_BYTES: Final = 5 << 20
"""Where the broker does not say."""

_REDIRECTS: Final = 20
_SHOWN: Final = 300

_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 2.0


class Lost(Exception):
    """A connection is gone, or a broker cannot now: the same may go well another time."""


class Refused(Exception):
    """A broker says no.

    Attributes:
        code: of PulsarApi.proto's ServerError.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Registered:
    """A version of a schema as the broker holds it.

    Attributes:
        kind: of PulsarApi.proto's Schema.Type.
        properties: of the SchemaInfo.
        message: the whole, as it came.
    """

    kind: int
    properties: Mapping[str, str]
    message: bytes


class Broker:
    """A connection to a broker. One thread uses it; nothing happens on it but while it is asked, sent to or heard."""

    def __init__(self, connection: Connection, address: str, through: str | None = None) -> None:
        """Connected.

        Args:
            connection: how to prove who one is.
            address: `host:port`.
            through: `host:port` of a proxy; None: there is none between.

        Raises:
            Lost: there is no connection.
            Refused: the credentials are not taken.
        """
        self.max_message_bytes = _MAX_MESSAGE_BYTES
        self.listeners: dict[int, Callable[[int, Fields], None]] = {}
        self.closed = False
        self._connection = connection
        self._address = address
        self.reached = through or address
        self._requests = count(1)
        self._answers: dict[int, tuple[int, Fields]] = {}
        self._heard = bytearray()
        self._socket = _connected(connection, self.reached)
        try:
            self._greet(address if through else None)
        except BaseException:
            self.close()
            raise

    def ask(self, kind: int, fields: Mapping[int, Any], *, request: int) -> Fields:
        """The answer to a command.

        Args:
            kind: of the command.
            fields: its own.
            request: the number of the field that tells requests apart.

        Raises:
            Lost: there is none.
            Refused: it is an error.
        """
        number = next(self._requests)
        self.send(wire.command(kind, {**fields, request: number}))
        found, answer = self._await(number)
        code, message = _error(found, answer)
        if code is None:
            return answer
        raise Lost(message) if passes(code) else Refused(code, message)

    def tell(self, kind: int, fields: Mapping[int, Any], *, request: int) -> None:
        """As `ask`, whatever the answer is, and if there is none."""
        with suppress(Lost, Refused):
            self.ask(kind, fields, request=request)

    def send(self, frame: bytes) -> None:
        """The frame is on its way.

        Raises:
            Lost: there is no connection any more.
        """
        try:
            self._socket.settimeout(self._connection.operation_timeout_s)
            self._socket.sendall(frame)
        except OSError as error:
            self.close()
            raise Lost(f"{self._address} takes nothing any more: {error}") from None

    def hear(self, timeout_s: float = 0) -> bool:
        """What has come, or comes in that time, is dealt with; False: nothing has.

        Raises:
            Lost: the connection has ended.
        """
        found = self._receive(timeout_s) if not self._whole_frame() else True
        while self._deal_with_one():
            pass
        return found

    def close(self) -> None:
        """Nothing is sent or heard any more."""
        self.closed = True
        with suppress(OSError):
            self._socket.close()

    def _greet(self, behind_proxy: str | None) -> None:
        method, data = self._credentials()
        fields = {
            1: "schemactl",
            3: data,
            4: wire.PROTOCOL_VERSION,
            5: method,
            6: behind_proxy,
            10: {1: True},
        }
        self.send(wire.command(wire.CONNECT, fields))
        found, answer = self._await(0)
        code, message = _error(found, answer)
        if code is not None:
            raise Refused(code, message)
        self.max_message_bytes = answer.number(3) or _MAX_MESSAGE_BYTES

    def _credentials(self) -> tuple[str | None, bytes | None]:
        given = self._connection.authentication
        if given is None:
            return None, None
        return given.kind, given.bearer().encode() if given.kind == "token" else b""

    def _await(self, request: int) -> tuple[int, Fields]:
        until = time.monotonic() + self._connection.operation_timeout_s
        while request not in self._answers:
            left = until - time.monotonic()
            if left <= 0:
                self.close()
                raise Lost(
                    f"no answer of {self._address} within {self._connection.operation_timeout_s:g} s "
                    "(pulsar.client.operationTimeoutMs)"
                )
            # One by one: what comes behind the answer is said of what the answer brings about.
            if not self._deal_with_one():
                self._receive(left)
        return self._answers.pop(request)

    def _receive(self, timeout_s: float) -> bool:
        try:
            self._socket.settimeout(timeout_s)
            data = self._socket.recv(1 << 16)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError as error:
            self.close()
            raise Lost(f"{self._address} is gone: {error}") from None
        if not data:
            self.close()
            raise Lost(f"{self._address} has closed the connection")
        self._heard += data
        return True

    def _whole_frame(self) -> bool:
        return len(self._heard) >= 4 and len(self._heard) >= 4 + int.from_bytes(self._heard[:4], "big")

    def _deal_with_one(self) -> bool:
        """False: no whole command has come."""
        if not self._whole_frame():
            return False
        end = 4 + int.from_bytes(self._heard[:4], "big")
        frame = bytes(self._heard[4:end])
        del self._heard[:end]
        self._deal_with(wire.decoded(frame[4 : 4 + int.from_bytes(frame[:4], "big")]))
        return True

    def _deal_with(self, said: Fields) -> None:
        kind = said.number(1)
        fields = wire.decoded(said.data(kind))
        match kind:
            case wire.PING:
                self.send(wire.command(wire.PONG, {}))
            case wire.CONNECTED:
                self._answers[0] = kind, fields
            case wire.ERROR:
                # What is wrong with CONNECT is said of a request that nobody made.
                number = fields.number(1)
                self._answers[number if number < 1 << 63 else 0] = kind, fields
            case wire.SUCCESS | wire.PRODUCER_SUCCESS | wire.GET_SCHEMA_RESPONSE:
                self._answers[fields.number(1)] = kind, fields
            case wire.LOOKUP_RESPONSE:
                self._answers[fields.number(4)] = kind, fields
            case wire.AUTH_CHALLENGE:
                method, data = self._credentials()
                answer = {1: "schemactl", 2: {1: method, 2: data}, 3: wire.PROTOCOL_VERSION}
                self.send(wire.command(wire.AUTH_RESPONSE, answer))
            case wire.SEND_RECEIPT | wire.SEND_ERROR | wire.CLOSE_PRODUCER:
                listener = self.listeners.get(fields.number(1))
                if listener is not None:
                    listener(kind, fields)


class Cluster:
    """The brokers of a cluster, each of them connected to once; whoever made it closes it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.producers = count(1)
        self._brokers: dict[tuple[str, str | None], Broker] = {}

    def broker_of(self, topic: str) -> Broker:
        """The one that serves a topic, or the partition of one.

        Raises:
            Lost: none does now.
            Refused: the topic is not there, or not for this role.
        """
        broker, authoritative = self._any(), False
        for _ in range(_REDIRECTS):
            answer = broker.ask(wire.LOOKUP, {1: topic, 3: authoritative}, request=2)
            secure = self.connection.service_url.startswith("pulsar+ssl:")
            address = _address(answer.text(2 if secure else 1))
            if not address:
                raise Lost(f"the broker of {topic} has no {'pulsar+ssl' if secure else 'pulsar'} address")
            through = broker.reached if answer.number(8) and broker.reached != address else None
            broker = self._to(address, through)
            if answer.number(3) == 1:
                return broker
            authoritative = bool(answer.number(5))
        raise Lost(f"the brokers send each other the question who serves {topic}")

    def schema(self, topic: str, version: int) -> Registered | None:
        """That version of a topic's schema, or of the topic that a partition is of; None: there is none, or not any more.

        Raises:
            Lost: the cluster does not answer.
            Refused: it does not say.
        """
        asked = {2: topic_of(topic), 3: version.to_bytes(8, "big")}
        try:
            message = self._any().ask(wire.GET_SCHEMA, asked, request=1).data(4)
        except Refused as refused:
            if refused.code == _NOT_FOUND:
                return None
            raise
        pairs = [wire.decoded(pair) for pair in wire.repeated(message, 5)]
        properties = {pair.text(1): pair.text(2) for pair in pairs}
        return Registered(wire.decoded(message).number(4), properties, message)

    def patiently(self, doing: str, action: Callable[[], T], timeout_s: float) -> T:
        """What the action gives, tried again while the cluster is not able to.

        Raises:
            PulsarProblem: it was not in that time, or it refuses.
        """
        until, pause_s = time.monotonic() + timeout_s, _FIRST_PAUSE_S
        while True:
            try:
                return action()
            except Refused as refused:
                reason = reason_of(_ERRORS.get(refused.code, ""), self.connection) or str(refused)
                raise PulsarProblem(f"cannot {doing}: {reason}") from refused
            except Lost as lost:
                if time.monotonic() + pause_s > until:
                    raise PulsarProblem(f"cannot {doing}: {lost}") from lost
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def close(self) -> None:
        """All connections are closed."""
        for broker in self._brokers.values():
            broker.close()

    def _any(self) -> Broker:
        """One of those that `service.url` names."""
        hosts, reasons = _hosts(self.connection.service_url), []
        for host in random.sample(hosts, len(hosts)):
            try:
                return self._to(host, None)
            except Lost as lost:
                reasons.append(str(lost))
        raise Lost("; ".join(reasons))

    def _to(self, address: str, through: str | None) -> Broker:
        found = self._brokers.get((address, through))
        if found is None or found.closed:
            found = self._brokers[address, through] = Broker(self.connection, address, through)
        return found


def _connected(connection: Connection, address: str) -> Any:
    """A socket to `host:port`, in TLS where `service.url` says so.

    Raises:
        Lost: there is none to be had.
    """
    at = urlsplit(f"//{address}")
    try:
        found = socket.create_connection((at.hostname, at.port), connection.connection_timeout_s)
    except OSError as error:
        raise Lost(f"no connection to {address}: {error}") from None
    try:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if connection.service_url.startswith("pulsar+ssl:"):
            return _security(connection).wrap_socket(found, server_hostname=at.hostname)
    except OSError as error:
        found.close()
        raise Lost(f"no connection to {address}: {error}") from None
    except BaseException:
        found.close()
        raise
    return found


def _security(connection: Connection) -> ssl.SSLContext:
    """Raises PulsarProblem where a file of the options cannot be used."""
    try:
        context = ssl.create_default_context(cafile=connection.trust_certs_file)
        context.check_hostname = connection.verify_hostname and not connection.allow_insecure
        if connection.allow_insecure:
            context.verify_mode = ssl.CERT_NONE
        if connection.authentication is not None and connection.authentication.kind == "tls":
            fields = connection.authentication.fields
            context.load_cert_chain(fields["tlsCertFile"], fields["tlsKeyFile"])
    except OSError as error:
        raise PulsarProblem(f"a certificate or its key cannot be used (pulsar.client.*): {error}") from None
    return context


def _error(kind: int, answer: Fields) -> tuple[int | None, str]:
    """The ServerError that an answer is, and what it says; None: it is none."""
    fields = {wire.ERROR: (2, 3), wire.GET_SCHEMA_RESPONSE: (2, 3), wire.LOOKUP_RESPONSE: (6, 7)}.get(kind)
    if fields is None or fields[0] not in answer.found:
        return None, ""
    return answer.number(fields[0]), said(answer.text(fields[1]))


def passes(code: int) -> bool:
    """Whether what fails with that ServerError may go well another time."""
    return code in _PASSING


def said(message: str) -> str:
    """The beginning of what a broker says of an error: it may go on with whole schemas, and the stack."""
    first = message.strip().partition("\n")[0]
    return first if len(first) <= _SHOWN else f"{first[:_SHOWN]}..."


def _hosts(service_url: str) -> list[str]:
    """`host:port` of each that the URL names."""
    scheme, _, rest = service_url.partition("://")
    port = 6651 if scheme == "pulsar+ssl" else 6650
    hosts = rest.rstrip("/").split(",")
    return [host if urlsplit(f"//{host}").port else f"{host}:{port}" for host in hosts]


def _address(url: str) -> str:
    """`host:port` of a broker's URL."""
    return url.partition("://")[2].rstrip("/")
