"""The options of the Pulsar source: the connection, and positions and offsets in topics."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Literal, NamedTuple, Self, cast, get_args
from urllib.parse import urlsplit


class PulsarProblem(RuntimeError):
    """The cluster did not do what was asked of it; the message says what, where, and what to look at."""


@dataclass(frozen=True, slots=True)
class Authentication:
    """How to prove who one is: the files with the secrets, or the token that the driver's environment had."""

    kind: Literal["token", "tls", "oauth2"]
    fields: Mapping[str, str]
    token: str | None = field(default=None, repr=False)

    def bearer(self) -> str:
        """Return the token now: a file is read each time, since tokens are renewed. Raises PulsarProblem: the file cannot be read."""
        if self.token is not None:
            return self.token
        try:
            return Path(urlsplit(self.fields["token"]).path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise PulsarProblem(f"the token file cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class Connection:
    """What is to be known to reach the cluster."""

    service_url: str
    admin_url: str | None
    authentication: Authentication | None
    trust_certs_file: str | None
    allow_insecure: bool
    verify_hostname: bool
    operation_timeout_s: float
    connection_timeout_s: float


def client_package() -> Any:
    """Return the package `pulsar`. Raises PulsarProblem: it is not installed, or too old."""
    try:
        pulsar = import_module("pulsar")
    except ImportError:
        raise PulsarProblem(
            'pulsar-schemactl needs the package pulsar-client: pip install "pulsar-schemactl[pulsar]", on the driver and on every '
            "executor"
        ) from None
    if not hasattr(pulsar.Message, "has_null_value"):
        raise PulsarProblem(
            f"pulsar-client {pulsar.__version__} cannot tell a message without payload from an empty one: install a newer one"
        )
    return pulsar


class Cluster:
    """A client of a cluster, made in the process that uses it: it does not survive a fork."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        pulsar = client_package()
        with self.doing("open a client"):
            self.client = pulsar.Client(
                connection.service_url,
                authentication=_client_authentication(pulsar, connection.authentication),
                operation_timeout_seconds=max(1, round(connection.operation_timeout_s)),
                connection_timeout_ms=round(connection.connection_timeout_s * 1000),
                tls_trust_certs_file_path=connection.trust_certs_file,
                tls_allow_insecure_connection=connection.allow_insecure,
                tls_validate_hostname=connection.verify_hostname and not connection.allow_insecure,
                # Its other words would fill the log of each executor.
                logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        close(self.client)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Raise a PulsarProblem that says what was being done for what pulsar-client raises in the block."""
        try:
            yield
        except client_package().PulsarException as error:
            reason = _REASONS.get(type(error).__name__)
            why = reason.format(self.connection) if reason else error
            raise PulsarProblem(f"cannot {what}: {why}") from error

    def answer(self, call: Callable[[Callable[[Any, Any], None]], None]) -> Any:
        """Return what a call of pulsar-client that takes a callback gives.

        Those that wait for the same give a default, such as no message, where the client has no exception for an error; a
        connection that is lost is such an error (`raiseException` in exceptions.cc).

        Raises:
            PulsarException: of the error's name; NotConnected where there is none of that name.
        """
        pulsar = client_package()
        answers: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        call(lambda result, value: answers.put((result, value)))
        try:
            result, value = answers.get(timeout=2 * self.connection.operation_timeout_s)
        except Empty:
            raise pulsar.Timeout("no answer") from None
        if result != pulsar.Result.Ok:
            error = getattr(pulsar, result.name, None)
            raise pulsar.NotConnected("the connection was lost") if error is None else error(result.name)
        return value


def close(opened: Any) -> None:
    """Close a client, reader or producer; a broker that is gone by then is no problem of its own."""
    with suppress(client_package().PulsarException):
        opened.close()


_REASONS: Final = {
    "Timeout": (
        "no answer within {0.operation_timeout_s:g} s (pulsar.client.operationTimeoutMs): there is no broker at {0.service_url}, "
        "or it rejects these credentials"
    ),
    "ConnectError": "no connection to {0.service_url}",
    "TopicNotFound": "there is no such topic, or no such namespace",
    "AuthorizationError": "permission denied: the role needs the permission to consume, or to produce",
    "AuthenticationError": "the cluster rejects these credentials, or requires some (pulsar.client.authParams)",
    "ErrorGettingAuthenticationData": "the credentials could not be obtained (pulsar.client.authParams)",
    "ConsumerBusy": "another consumer uses the subscription: each query needs its own",
    "IncompatibleSchema": "the broker rejects the schema",
}
"""Why, by the names of pulsar-client's exceptions; {0} is the connection."""


def _client_authentication(pulsar: Any, authentication: Authentication | None) -> Any:
    if authentication is None:
        return None
    fields = authentication.fields
    if authentication.kind == "token":
        # Asked again at each connection, so that a renewed file serves.
        return pulsar.AuthenticationToken(authentication.bearer)
    if authentication.kind == "tls":
        return pulsar.AuthenticationTLS(fields["tlsCertFile"], fields["tlsKeyFile"])
    named = {"issuerUrl": "issuer_url", "privateKey": "private_key"}
    given = {named.get(name, name): value for name, value in fields.items()}
    return pulsar.AuthenticationOauth2(json.dumps({"type": "client_credentials"} | given))


# Positions and offsets


_PARTITION: Final = re.compile(r"-partition-\d+$")
_WRITTEN: Final = re.compile(r"(\d+):(-1|\d+):(-1|\d+)(?::(-1|\d+))?")


class MessagePlace(NamedTuple):
    """A message's place: written as Pulsar's Java client writes a message id, `ledger:entry:partition[:batch]`.

    Numbers of ledgers grow along a topic, and are never used again in a cluster. The entry -1 is the place before all of a ledger, the
    partition -1 a topic without any, the batch -1 a whole entry.
    """

    ledger: int
    entry: int
    partition: int = -1
    batch: int = -1

    @classmethod
    def of(cls, message_id: Any) -> MessagePlace:
        """Return the place of a message that was read. Of one in chunks, that of the last chunk."""
        return cls(message_id.ledger_id(), message_id.entry_id(), message_id.partition(), message_id.batch_index())

    @property
    def message_id(self) -> Any:
        """Return what the client takes for the place."""
        made = client_package().MessageId(self.partition, self.ledger, self.entry, self.batch)
        return made._msg_id  # noqa: SLF001  a reader takes the native id, and the package has no other way to it

    @property
    def order(self) -> tuple[int, int, float]:
        """A key to sort by: of two positions in a topic the one behind has the greater."""
        return self.ledger, self.entry, math.inf if self.batch < 0 else self.batch

    def before(self) -> MessagePlace:
        """Return the place just before this message."""
        if self.batch > 0:
            return self._replace(batch=self.batch - 1)
        return self._replace(entry=self.entry - 1, batch=-1)

    def __str__(self) -> str:
        batch = "" if self.batch < 0 else f":{self.batch}"
        return f"{self.ledger}:{self.entry}:{self.partition}{batch}"


EARLIEST: Final = "earliest"
LATEST: Final = "latest"

Place = str | MessagePlace
"""A message's, or that before the first message there is (EARLIEST), or behind the last one there is now (LATEST)."""

Bound = Place | int | Mapping[str, Place]
"""Where to start or end: a place, a publish time in milliseconds since 1970, or a place for each topic."""

Offsets = Mapping[str, MessagePlace | None]
"""For each topic, a partition being one, the last message that was read; None: none yet."""


def offsets_to_json(offsets: Offsets) -> dict[str, str]:
    """Write the offsets as text, sorted by topic: the same text for the same offsets."""
    return {topic: EARLIEST if position is None else str(position) for topic, position in sorted(offsets.items())}


def offsets_from_json(offsets: Mapping[str, str]) -> dict[str, MessagePlace | None]:
    """Read what `offsets_to_json` made. Raises ValueError: it is something else."""
    return {topic: None if text == EARLIEST else _position(text, topic) for topic, text in offsets.items()}


def parse_bound(text: str, *, name: str) -> Bound:
    """Return the bound that an option names: `earliest`, `latest`, or a JSON object with a place for each topic.

    A place is `earliest`, `latest`, a message id (`ledger:entry:partition[:batch]`, or the list of bytes that the connector
    for the JVM writes). Reading starts behind it, so that the offsets of one read's end are the next one's start.

    Raises:
        ValueError: it is none of these.
    """
    text = text.strip()
    if text in (EARLIEST, LATEST):
        return text
    try:
        places = json.loads(text)
    except ValueError:
        places = None
    if not isinstance(places, dict) or not places:
        raise ValueError(
            f'{name} is {text!r}: write earliest, latest, or JSON such as {{"persistent://t/n/topic": "5:17:-1"}}'
        )
    return {full_topic_name(topic): _place(place, topic) for topic, place in places.items()}


def full_topic_name(name: str) -> str:
    """Return the name with its domain, tenant and namespace, as Pulsar completes it. Raises ValueError: it is no topic's name."""
    domain, separator, rest = name.rpartition("://")
    parts = rest.split("/")
    if len(parts) == 1 and not separator:
        parts = ["public", "default", *parts]
    if len(parts) != 3 or not all(parts) or domain not in ("", "persistent"):
        raise ValueError(f"{name!r} is no name of a persistent topic: write persistent://tenant/namespace/topic")
    return f"persistent://{'/'.join(parts)}"


def topic_of(partition: str) -> str:
    """Return the topic that a partition is of; a topic without partitions is its own."""
    return _PARTITION.sub("", partition)


def namespace_of(topic: str) -> str:
    """Return the `tenant/namespace` in a topic's full name."""
    return "/".join(topic.removeprefix("persistent://").split("/")[:2])


def _place(value: Any, topic: str) -> Place:
    if isinstance(value, str) and value in (EARLIEST, LATEST):
        return value
    if isinstance(value, list) and all(isinstance(each, int) and -128 <= each < 256 for each in value):
        try:
            return MessagePlace.of(client_package().MessageId.deserialize(bytes(each & 255 for each in value)))
        except ValueError as error:
            raise ValueError(f"the offset of {topic} is no message id: {error}") from None
    return _position(value, topic)


def _position(value: Any, topic: str) -> MessagePlace:
    found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(
            f"the offset of {topic} is {value!r}: expected earliest, latest or ledger:entry:partition[:batch]"
        )
    return MessagePlace(*(-1 if part is None else int(part) for part in found.groups()))


# The options of the data source `pulsar-schemactl`, as Pulsar's Spark connector and Pulsar's own
# clients name them.


_CONNECTION: Final = (
    "service.url",
    "admin.url",
    "pulsar.client.authPluginClassName",
    "pulsar.client.authParams",
    "pulsar.client.tlsTrustCertsFilePath",
    "pulsar.client.tlsAllowInsecureConnection",
    "pulsar.client.tlsHostnameVerificationEnable",
    "pulsar.client.operationTimeoutMs",
    "pulsar.client.connectionTimeoutMs",
)
_READING: Final = (
    "topic",
    "topics",
    "topicsPattern",
    "startingOffsets",
    "startingTime",
    "failOnDataLoss",
    "pollTimeoutMs",
    "key.encoding",
    "pulsar.reader.readCompacted",
    "pulsar.reader.receiverQueueSize",
)
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "a batch": (*_CONNECTION, *_READING, "endingOffsets", "endingTime"),
    "a stream": (*_CONNECTION, *_READING, "maxMessagesPerTrigger", "predefinedSubscription"),
    "a sink": (*_CONNECTION, "topic", "schema.version", "pulsar.producer.sendTimeoutMs"),
}
_OF_SPARK: Final = {"checkpointlocation", "queryname"}
"""Spark passes these on to a sink that has no need of them."""

Purpose = Literal["a batch", "a stream", "a sink"]
KeyEncoding = Literal["auto", "text", "base64"]


Topics = tuple[str, ...] | re.Pattern[str]
"""Full names, or a pattern of them in one namespace."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read, which docs/reference/pulsar-source.md describes; reading starts behind `start` and ends with `end`."""

    topics: Topics
    start: Bound
    end: Bound
    fail_on_data_loss: bool
    poll_timeout_s: float
    key_encoding: KeyEncoding
    compacted: bool
    queue: int
    max_messages_per_trigger: int | None
    subscription: str | None


@dataclass(frozen=True, slots=True)
class SendOptions:
    """The options of a sink; without a `topic`, every row has to name one."""

    topic: str | None
    version: int
    send_timeout_s: float


def connection_of(given: Mapping[str, str], purpose: Purpose | None = None) -> Connection:
    """Return how to reach the cluster, with what only the driver's environment says; None stands for any purpose.

    Raises:
        ValueError: an option is unknown, missing or wrong.
    """
    options = _Options(given, purpose)
    return Connection(
        service_url=options.needed("service.url", r"pulsar(\+ssl)?://\S+", "pulsar://broker:6650"),
        admin_url=options.text("admin.url"),
        authentication=_given_authentication(options),
        trust_certs_file=options.text("pulsar.client.tlsTrustCertsFilePath"),
        allow_insecure=options.flag("pulsar.client.tlsAllowInsecureConnection", default=False),
        verify_hostname=options.flag("pulsar.client.tlsHostnameVerificationEnable", default=True),
        operation_timeout_s=options.seconds("pulsar.client.operationTimeoutMs", default_s=30),
        connection_timeout_s=options.seconds("pulsar.client.connectionTimeoutMs", default_s=10),
    )


def reading_of(given: Mapping[str, str], purpose: Literal["a batch", "a stream"]) -> ReadOptions:
    """Return what to read. Raises ValueError: an option is unknown, missing or wrong."""
    options = _Options(given, purpose)
    encoding = options.text("key.encoding") or "auto"
    if encoding not in get_args(KeyEncoding):
        raise ValueError(f"key.encoding is {encoding!r}: write auto, text or base64")
    return ReadOptions(
        topics=_topics(options),
        start=_bound(options, "starting", EARLIEST if purpose == "a batch" else LATEST),
        end=_bound(options, "ending", LATEST),
        fail_on_data_loss=options.flag("failOnDataLoss", default=True),
        poll_timeout_s=options.seconds("pollTimeoutMs", default_s=120),
        key_encoding=cast("KeyEncoding", encoding),
        compacted=options.flag("pulsar.reader.readCompacted", default=False),
        queue=options.number("pulsar.reader.receiverQueueSize") or 1_000,
        max_messages_per_trigger=options.number("maxMessagesPerTrigger"),
        subscription=options.text("predefinedSubscription"),
    )


def sending_of(given: Mapping[str, str]) -> SendOptions:
    """Return what to send, and with which version. Raises ValueError: an option is unknown, missing or wrong."""
    options = _Options(given, "a sink")
    topic = options.text("topic")
    return SendOptions(
        topic=full_topic_name(topic) if topic else None,
        version=int(options.needed("schema.version", r"\d+", "the number of a registered version, such as 3")),
        send_timeout_s=options.seconds("pulsar.producer.sendTimeoutMs", default_s=30),
    )


class _Options:
    """What was given, by names in any case, as Spark takes them; raises ValueError where one is unknown or wrong."""

    def __init__(self, given: Mapping[str, str], purpose: Purpose | None) -> None:
        self._given = {name.casefold(): value for name, value in given.items()}
        every = {name.casefold(): name for names in _NAMES.values() for name in names}
        known = every if purpose is None else {name.casefold(): name for name in _NAMES[purpose]}
        for name in sorted(self._given.keys() - known.keys() - _OF_SPARK):
            if name in every:
                raise ValueError(f"{every[name]} is no option of {purpose}")
            raise ValueError(f"pulsar-schemactl has no option {name}; it has {', '.join(sorted(known.values()))}")

    def text(self, name: str) -> str | None:
        return self._given.get(name.casefold())

    def needed(self, name: str, pattern: str, example: str) -> str:
        value = self.text(name)
        if value is None:
            raise ValueError(f"the option {name} is missing: give {example}")
        if not re.fullmatch(pattern, value):
            raise ValueError(f"{name} is {value!r}: expected {example}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        value = (self.text(name) or str(default)).casefold()
        if value not in ("true", "false"):
            raise ValueError(f"{name} is {value!r}: write true or false")
        return value == "true"

    def number(self, name: str, what: str = "a number above 0") -> int | None:
        return None if self.text(name) is None else int(self.needed(name, r"[1-9]\d*", what))

    def seconds(self, name: str, *, default_s: float) -> float:
        milliseconds = self.number(name)
        return default_s if milliseconds is None else milliseconds / 1000


def _topics(options: _Options) -> Topics:
    names = ("topic", "topics", "topicsPattern")
    given = [(name, value) for name in names if (value := options.text(name))]
    if len(given) != 1:
        found = " and ".join(name for name, _ in given) or "none"
        raise ValueError(f"give one of topic, topics (separated by commas) and topicsPattern; found {found}")
    [(option, value)] = given
    if option == "topicsPattern":
        pattern = full_topic_name(value)
        if options.text("admin.url") is None:
            raise ValueError("topicsPattern needs admin.url: topics are listed through Pulsar's admin REST API")
        try:
            return re.compile(pattern)
        except re.error as error:
            raise ValueError(f"topicsPattern is no regular expression: {error}") from None
    named = [value] if option == "topic" else value.split(",")
    topics = [full_topic_name(name.strip()) for name in named if name.strip()]
    twice = sorted({name for name in topics if topics.count(name) > 1})
    if twice or not topics:
        raise ValueError(f"topics names {', '.join(twice)} twice" if twice else "topics names no topic")
    return tuple(topics)


def _bound(options: _Options, which: Literal["starting", "ending"], default: Bound) -> Bound:
    offsets = options.text(f"{which}Offsets")
    time = options.number(f"{which}Time", "milliseconds since 1970, above 0")
    if offsets is not None and time is not None:
        raise ValueError(f"give {which}Offsets or {which}Time, not both")
    if time is not None:
        return time
    return default if offsets is None else parse_bound(offsets, name=f"{which}Offsets")


def _given_authentication(options: _Options) -> Authentication | None:
    plugin, params = (options.text(f"pulsar.client.auth{what}") for what in ("PluginClassName", "Params"))
    if plugin is None and params is None:
        return None
    if plugin is None or params is None:
        raise ValueError(
            "pulsar.client.authPluginClassName and pulsar.client.authParams are given together, or neither is"
        )
    match plugin.rpartition(".")[2].casefold():
        case "authenticationtoken":
            # What stands in an option is shown in plans and by Spark's pages: never the secret, nor a part of it in an error.
            if not re.fullmatch(r"(file://\S+|env:\w+)", params):
                raise ValueError(
                    "pulsar.client.authParams must say where the token is, not what it is, since Spark shows options: "
                    "write file:///path/to/token, or env:NAME for an environment variable of the driver"
                )
            kind, _, variable = params.partition(":")
            if kind == "file":
                return Authentication("token", {"token": params})
            if not os.environ.get(variable):
                raise ValueError(f"the environment variable {variable} for the token is not set")
            return Authentication("token", {}, os.environ[variable].strip())
        case "authenticationtls":
            return Authentication("tls", _fields(params, plugin, needed=("tlsCertFile", "tlsKeyFile")))
        case "authenticationoauth2":
            also = ("audience", "scope", "type")
            fields = _fields(params, plugin, needed=("issuerUrl", "privateKey"), optional=also)
            if not fields["privateKey"].startswith(("file:", "/")):
                raise ValueError(
                    "privateKey of pulsar.client.authParams must be a file (file:///path), since Spark shows options"
                )
            return Authentication("oauth2", fields)
    raise ValueError(
        f"pulsar.client.authPluginClassName is {plugin!r}: known are AuthenticationToken, AuthenticationTls "
        "and AuthenticationOAuth2"
    )


def _fields(params: str, plugin: str, *, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, str]:
    """Read one of Java's two ways to write them: a JSON object, or `name:value,name:value`."""
    if params.lstrip().startswith("{"):
        try:
            found = {str(name): str(value) for name, value in json.loads(params).items()}
        except ValueError:
            raise ValueError("pulsar.client.authParams is no JSON object") from None
    else:
        pairs = [pair.partition(":") for pair in params.split(",")]
        found = {name.strip(): value.strip() for name, _, value in pairs}
    if not set(needed) <= found.keys() <= {*needed, *optional}:
        raise ValueError(
            f"pulsar.client.authParams of {plugin} needs {', '.join(needed)}, and may have no other but "
            f"{', '.join((*needed, *optional))}"
        )
    return found
