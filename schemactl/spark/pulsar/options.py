"""The options of the data source `pulsar-schemactl`, with the connection and the positions in topics that they describe.

The options have the names of Pulsar's Spark connector and of Pulsar's own clients.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast, get_args
from urllib.parse import urlsplit

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
    "target",
    "auto.consume",
    "package",
    "package.path",
    "pulsar.reader.readCompacted",
    "pulsar.reader.receiverQueueSize",
)
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "a batch": (*_CONNECTION, *_READING, "endingOffsets", "endingTime"),
    "a stream": (*_CONNECTION, *_READING, "maxMessagesPerTrigger", "predefinedSubscription"),
    "a sink": (
        *_CONNECTION,
        "topic",
        "schema.version",
        "schema.validation",
        "rejected",
        "pulsar.producer.sendTimeoutMs",
    ),
}
_OF_SPARK: Final = {"checkpointlocation", "queryname"}
"""Options of Spark itself, which it passes on to a sink."""

_PARTITION: Final = re.compile(r"-partition-\d+$")
_POSITION: Final = re.compile(r"(\d+):(-1|\d+):(-1|\d+)(?::(-1|\d+))?")

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

Purpose = Literal["a batch", "a stream", "a sink"]
KeyEncoding = Literal["auto", "text", "base64"]

Topics = tuple[str, ...] | re.Pattern[str]
"""Full names, or a pattern of full names in one namespace."""


class PulsarProblem(RuntimeError):
    """The cluster did not fulfill a request; the message has the request, its address, and the next step."""


@dataclass(frozen=True, slots=True)
class Authentication:
    """The client's credentials: the files with the secrets, or the token from the driver's environment."""

    kind: Literal["token", "tls", "oauth2"]
    fields: Mapping[str, str]
    token: str | None = field(default=None, repr=False)

    def read_token(self) -> str:
        """Return the current token. A file is read each time, since tokens are renewed.

        Raises:
            PulsarProblem: if the file cannot be read.
        """
        if self.token is not None:
            return self.token
        try:
            return Path(urlsplit(self.fields["token"]).path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise PulsarProblem(f"the token file cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class Connection:
    """The addresses, credentials and timeouts with which a cluster is reached."""

    service_url: str
    admin_url: str | None
    authentication: Authentication | None
    trust_certs_file: str | None
    allow_insecure: bool
    verify_hostname: bool
    operation_timeout_s: float
    connection_timeout_s: float


class GeneratedPackage(NamedTuple):
    """A package of `schemactl generate`, which decodes one topic.

    Attributes:
        name: the name to import it by.
        path: a zip or folder with it, on the driver and all executors, or "" if Python finds it.
        topic: the full name of the topic.
    """

    name: str
    path: str
    topic: str


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read, described in docs/reference/pulsar-source.md.

    Reading starts after `start`, and `end` is included.
    """

    topics: Topics
    start: Bound
    end: Bound
    fail_on_data_loss: bool
    poll_timeout_s: float
    key_encoding: KeyEncoding
    target: str | None
    auto_consume: str | None
    package: GeneratedPackage | None
    compacted: bool
    queue: int
    max_messages_per_trigger: int | None
    subscription: str | None


@dataclass(frozen=True, slots=True)
class SendOptions:
    """The options of a sink; without a `topic`, every row has to name its topic.

    Attributes:
        validates: whether payloads are validated against the version before they are sent.
        rejected: the folder for rows that are not sent, or None if such a row fails the job.
    """

    topic: str | None
    version: int
    send_timeout_s: float
    validates: bool = True
    rejected: str | None = None


def parse_connection(values: Mapping[str, str], purpose: Purpose | None = None) -> Connection:
    """Return the connection that the options describe, with a token from the driver's environment if they name a variable.

    Args:
        values: the options, by their names in any case.
        purpose: which options are allowed; by default the options of all purposes.

    Raises:
        ValueError: if an option is unknown, missing or wrong.
    """
    options = _Options(values, purpose)
    return Connection(
        service_url=options.get_required("service.url", r"pulsar(\+ssl)?://\S+", "pulsar://broker:6650"),
        admin_url=options.get("admin.url"),
        authentication=_parse_authentication(options),
        trust_certs_file=options.get("pulsar.client.tlsTrustCertsFilePath"),
        allow_insecure=options.get_flag("pulsar.client.tlsAllowInsecureConnection", default=False),
        verify_hostname=options.get_flag("pulsar.client.tlsHostnameVerificationEnable", default=True),
        operation_timeout_s=options.get_seconds("pulsar.client.operationTimeoutMs", default_s=30),
        connection_timeout_s=options.get_seconds("pulsar.client.connectionTimeoutMs", default_s=10),
    )


def parse_read_options(values: Mapping[str, str], purpose: Literal["a batch", "a stream"]) -> ReadOptions:
    """Return the options of a read.

    Raises:
        ValueError: if an option is unknown, missing or wrong.
    """
    options = _Options(values, purpose)
    encoding = options.get("key.encoding") or "auto"
    if encoding not in get_args(KeyEncoding):
        raise ValueError(f"key.encoding is {encoding!r}: write auto, text or base64")
    return ReadOptions(
        topics=_parse_topics(options),
        start=_parse_side(options, "starting", EARLIEST if purpose == "a batch" else LATEST),
        end=_parse_side(options, "ending", LATEST),
        fail_on_data_loss=options.get_flag("failOnDataLoss", default=True),
        poll_timeout_s=options.get_seconds("pollTimeoutMs", default_s=120),
        key_encoding=cast("KeyEncoding", encoding),
        target=parse_target(values),
        auto_consume=parse_auto_consume(values),
        package=parse_package(values),
        compacted=options.get_flag("pulsar.reader.readCompacted", default=False),
        queue=options.get_number("pulsar.reader.receiverQueueSize") or 1_000,
        max_messages_per_trigger=options.get_number("maxMessagesPerTrigger"),
        subscription=options.get("predefinedSubscription"),
    )


def parse_target(values: Mapping[str, str]) -> str | None:
    """Return the target that the messages are from, or None if the options of a read name none."""
    return next((value for name, value in values.items() if name.casefold() == "target"), None) or None


def parse_auto_consume(values: Mapping[str, str]) -> str | None:
    """Return the full name of the topic that a read decodes with registered schemas (AUTO_CONSUME), or None for raw messages.

    Raises:
        ValueError: if an option is unknown or wrong, or does not fit AUTO_CONSUME.
    """
    options = _Options(values, None)
    if not options.get_flag("auto.consume", default=False):
        return None
    topic = _parse_single_topic(options, "auto.consume decodes one topic into its columns")
    if not options.get("admin.url"):
        raise ValueError("auto.consume needs admin.url: registered schemas are read through Pulsar's admin REST API")
    return topic


def parse_package(values: Mapping[str, str]) -> GeneratedPackage | None:
    """Return the generated package that decodes the messages of a read, or None for a read without the option `package`.

    Raises:
        ValueError: if an option is unknown or wrong, or does not fit `package`.
    """
    options = _Options(values, None)
    name, path = options.get("package"), options.get("package.path")
    if not name:
        if path:
            raise ValueError("package.path needs package: give the name of the generated package as well")
        return None
    if options.get_flag("auto.consume", default=False):
        raise ValueError(
            "auto.consume decodes with registered schemas, and package with generated ones: give one of them"
        )
    return GeneratedPackage(name, path or "", _parse_single_topic(options, "package is for one topic"))


def _parse_single_topic(options: _Options, requirement: str) -> str:
    """Return the full name of the only topic; raises ValueError with the `requirement` if there may be several."""
    topics = _parse_topics(options)
    if isinstance(topics, re.Pattern) or len(topics) != 1:
        raise ValueError(f"{requirement}: give the option topic")
    return topics[0]


def parse_send_options(values: Mapping[str, str]) -> SendOptions:
    """Return the options of a sink.

    Raises:
        ValueError: if an option is unknown, missing or wrong.
    """
    options = _Options(values, "a sink")
    topic = options.get("topic")
    return SendOptions(
        topic=full_topic_name(topic) if topic else None,
        version=int(options.get_required("schema.version", r"\d+", "the number of a registered version, such as 3")),
        send_timeout_s=options.get_seconds("pulsar.producer.sendTimeoutMs", default_s=30),
        validates=options.get_flag("schema.validation", default=True),
        rejected=options.get("rejected"),
    )


class _Options:
    """Options by their names in any case, as Spark passes them; raises ValueError if one is unknown or wrong."""

    def __init__(self, values: Mapping[str, str], purpose: Purpose | None) -> None:
        self._values = {name.casefold(): value for name, value in values.items()}
        all_names = {name.casefold(): name for names in _NAMES.values() for name in names}
        allowed = all_names if purpose is None else {name.casefold(): name for name in _NAMES[purpose]}
        for name in sorted(self._values.keys() - allowed.keys() - _OF_SPARK):
            if name in all_names:
                raise ValueError(f"{all_names[name]} is not an option of {purpose}")
            raise ValueError(f"pulsar-schemactl has no option {name}; it has {', '.join(sorted(allowed.values()))}")

    def get(self, name: str) -> str | None:
        return self._values.get(name.casefold())

    def get_required(self, name: str, pattern: str, example: str) -> str:
        value = self.get(name)
        if value is None:
            raise ValueError(f"the option {name} is missing: give {example}")
        if not re.fullmatch(pattern, value):
            raise ValueError(f"{name} is {value!r}: expected {example}")
        return value

    def get_flag(self, name: str, *, default: bool) -> bool:
        value = (self.get(name) or str(default)).casefold()
        if value not in ("true", "false"):
            raise ValueError(f"{name} is {value!r}: write true or false")
        return value == "true"

    def get_number(self, name: str, description: str = "a number above 0") -> int | None:
        return None if self.get(name) is None else int(self.get_required(name, r"[1-9]\d*", description))

    def get_seconds(self, name: str, *, default_s: float) -> float:
        milliseconds = self.get_number(name)
        return default_s if milliseconds is None else milliseconds / 1000


def _parse_topics(options: _Options) -> Topics:
    names = ("topic", "topics", "topicsPattern")
    selections = [(name, value) for name in names if (value := options.get(name))]
    if len(selections) != 1:
        used_names = " and ".join(name for name, _ in selections) or "none"
        raise ValueError(f"give one of topic, topics (separated by commas) and topicsPattern; found {used_names}")
    [(option, value)] = selections
    if option == "topicsPattern":
        pattern = full_topic_name(value)
        if options.get("admin.url") is None:
            raise ValueError("topicsPattern needs admin.url: topics are listed through Pulsar's admin REST API")
        try:
            return re.compile(pattern)
        except re.error as error:
            raise ValueError(f"topicsPattern is not a regular expression: {error}") from None
    parts = [value] if option == "topic" else value.split(",")
    topics = [full_topic_name(part.strip()) for part in parts if part.strip()]
    duplicates = sorted({topic for topic in topics if topics.count(topic) > 1})
    if duplicates or not topics:
        raise ValueError(f"topics names {', '.join(duplicates)} twice" if duplicates else "topics names no topic")
    return tuple(topics)


def _parse_side(options: _Options, side: Literal["starting", "ending"], default: Bound) -> Bound:
    offsets = options.get(f"{side}Offsets")
    time_ms = options.get_number(f"{side}Time", "milliseconds since 1970, above 0")
    if offsets is not None and time_ms is not None:
        raise ValueError(f"give {side}Offsets or {side}Time, not both")
    if time_ms is not None:
        return time_ms
    return default if offsets is None else parse_bound(offsets, name=f"{side}Offsets")


def _parse_authentication(options: _Options) -> Authentication | None:
    plugin = options.get("pulsar.client.authPluginClassName")
    params = options.get("pulsar.client.authParams")
    if plugin is None and params is None:
        return None
    if plugin is None or params is None:
        raise ValueError(
            "pulsar.client.authPluginClassName and pulsar.client.authParams are given together, or neither is"
        )
    match plugin.rpartition(".")[2].casefold():
        case "authenticationtoken":
            # Spark shows options in plans and in its user interface, so the secret is never in an option, nor any part of it in an error.
            if not re.fullmatch(r"(file://\S+|env:\w+)", params):
                raise ValueError(
                    "pulsar.client.authParams must say where the token is, not what it is, since Spark shows options: "
                    "write file:///path/to/token, or env:NAME for an environment variable of the driver"
                )
            scheme, _, variable = params.partition(":")
            if scheme == "file":
                return Authentication("token", {"token": params})
            if not os.environ.get(variable):
                raise ValueError(f"the environment variable {variable} for the token is not set")
            return Authentication("token", {}, os.environ[variable].strip())
        case "authenticationtls":
            return Authentication("tls", _parse_auth_params(params, plugin, required=("tlsCertFile", "tlsKeyFile")))
        case "authenticationoauth2":
            optional = ("audience", "scope", "type")
            fields = _parse_auth_params(params, plugin, required=("issuerUrl", "privateKey"), optional=optional)
            if not fields["privateKey"].startswith(("file:", "/")):
                raise ValueError(
                    "privateKey of pulsar.client.authParams must be a file (file:///path), since Spark shows options"
                )
            return Authentication("oauth2", fields)
    raise ValueError(
        f"pulsar.client.authPluginClassName is {plugin!r}: known are AuthenticationToken, AuthenticationTls "
        "and AuthenticationOAuth2"
    )


def _parse_auth_params(
    params: str, plugin: str, *, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, str]:
    """Parse either of the two forms of Pulsar's Java client: a JSON object, or `name:value,name:value`."""
    if params.lstrip().startswith("{"):
        try:
            fields = {str(name): str(value) for name, value in json.loads(params).items()}
        except ValueError:
            raise ValueError("pulsar.client.authParams is not a JSON object") from None
    else:
        pairs = [pair.partition(":") for pair in params.split(",")]
        fields = {name.strip(): value.strip() for name, _, value in pairs}
    if not set(required) <= fields.keys() <= {*required, *optional}:
        raise ValueError(
            f"pulsar.client.authParams of {plugin} needs {', '.join(required)}, and accepts only "
            f"{', '.join((*required, *optional))}"
        )
    return fields


# Topics, and positions in them


def full_topic_name(name: str) -> str:
    """Return the name with its domain, tenant and namespace, as Pulsar completes it.

    Raises:
        ValueError: if it is not the name of a persistent topic.
    """
    domain, separator, rest = name.rpartition("://")
    if domain == "topic":
        raise ValueError(f"{name!r} is a scalable topic of Pulsar 5.0, and only persistent topics can be read")
    parts = rest.split("/")
    if len(parts) == 1 and not separator:
        parts = ["public", "default", *parts]
    if len(parts) != 3 or not all(parts) or domain not in ("", "persistent"):
        raise ValueError(f"{name!r} is not a name of a persistent topic: write persistent://tenant/namespace/topic")
    return f"persistent://{'/'.join(parts)}"


def topic_of(partition: str) -> str:
    """Return the name of a partition's topic; the name of a topic without partitions is returned unchanged."""
    return _PARTITION.sub("", partition)


def namespace_of(topic: str) -> str:
    """Return the `tenant/namespace` in a topic's full name."""
    return "/".join(topic.removeprefix("persistent://").split("/")[:2])


def client_package() -> Any:
    """Import the package `pulsar`.

    Raises:
        PulsarProblem: if it is not installed, or too old.
    """
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


class MessagePosition(NamedTuple):
    """The position of a message, written like a message id of Pulsar's Java client: `ledger:entry:partition[:batch]`.

    Ledger numbers grow along a topic, and a cluster never uses one twice. The entry -1 is the position before the first entry
    of a ledger, the partition -1 means a topic without partitions, the batch -1 a whole entry.
    """

    ledger: int
    entry: int
    partition: int = -1
    batch: int = -1

    @classmethod
    def of(cls, message_id: Any) -> MessagePosition:
        """Return the position of a message that was read; of a message in chunks, the position of the last chunk."""
        return cls(message_id.ledger_id(), message_id.entry_id(), message_id.partition(), message_id.batch_index())

    @property
    def message_id(self) -> Any:
        """The native message id of pulsar-client."""
        message_id = client_package().MessageId(self.partition, self.ledger, self.entry, self.batch)
        return message_id._msg_id  # noqa: SLF001  a reader takes the native id, and the package has no other way to it

    @property
    def order(self) -> tuple[int, int, float]:
        """A sort key: of two positions in a topic, the later one has the greater key."""
        return self.ledger, self.entry, math.inf if self.batch < 0 else self.batch

    def before(self) -> MessagePosition:
        """Return the position just before this message."""
        if self.batch > 0:
            return self._replace(batch=self.batch - 1)
        return self._replace(entry=self.entry - 1, batch=-1)

    def __str__(self) -> str:
        batch = "" if self.batch < 0 else f":{self.batch}"
        return f"{self.ledger}:{self.entry}:{self.partition}{batch}"


Position = str | MessagePosition
"""The position of a message, EARLIEST (before the first message of the topic), or LATEST (after the current last one)."""

Bound = Position | int | Mapping[str, Position]
"""The start or end of a read: a position, a publish time in milliseconds since 1970, or a position for each topic."""

Offsets = Mapping[str, MessagePosition | None]
"""For each partition, the last message that was read, or None before the first one."""


def offsets_to_json(offsets: Offsets) -> dict[str, str]:
    """Write the offsets as text, sorted by topic: the same text for the same offsets."""
    return {topic: EARLIEST if position is None else str(position) for topic, position in sorted(offsets.items())}


def offsets_from_json(offsets: Mapping[str, str]) -> dict[str, MessagePosition | None]:
    """Parse the result of `offsets_to_json`.

    Raises:
        ValueError: if a position is malformed.
    """
    return {
        topic: None if text == EARLIEST else _parse_message_position(text, topic) for topic, text in offsets.items()
    }


def parse_bound(text: str, *, name: str) -> Bound:
    """Parse the value of an option: `earliest`, `latest`, or a JSON object with a position for each topic.

    A position is `earliest`, `latest` or a message id (`ledger:entry:partition[:batch]`, or the list of bytes that the connector
    for the JVM writes). Reading starts after it, so the end offsets of one read are the start offsets of the next.

    Args:
        text: the value.
        name: the option's name, for errors.

    Raises:
        ValueError: if the value is malformed.
    """
    text = text.strip()
    if text in (EARLIEST, LATEST):
        return text
    try:
        positions = json.loads(text)
    except ValueError:
        positions = None
    if not isinstance(positions, dict) or not positions:
        raise ValueError(
            f'{name} is {text!r}: write earliest, latest, or JSON such as {{"persistent://t/n/topic": "5:17:-1"}}'
        )
    return {full_topic_name(topic): _parse_position(position, topic) for topic, position in positions.items()}


def _parse_position(value: Any, topic: str) -> Position:
    if isinstance(value, str) and value in (EARLIEST, LATEST):
        return value
    if isinstance(value, list) and all(isinstance(byte, int) and -128 <= byte < 256 for byte in value):
        try:
            # Bytes are signed in Java.
            return MessagePosition.of(client_package().MessageId.deserialize(bytes(byte & 255 for byte in value)))
        except ValueError as error:
            raise ValueError(f"the offset of {topic} is not a message id: {error}") from None
    return _parse_message_position(value, topic)


def _parse_message_position(value: Any, topic: str) -> MessagePosition:
    match = _POSITION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(
            f"the offset of {topic} is {value!r}: expected earliest, latest or ledger:entry:partition[:batch]"
        )
    return MessagePosition(*(-1 if part is None else int(part) for part in match.groups()))
