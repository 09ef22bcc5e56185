"""The options of the data source `pulsar-schemactl`, as Pulsar's Spark connector and Pulsar's own clients name them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from .pulsar_connection import Authentication, Connection
from .pulsar_positions import EARLIEST, LATEST, Bound, full_topic_name, parse_bound

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
        authentication=_authentication(options),
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
        version=int(
            options.needed("schema.version", r"\d+", "the number of a registered version, such as 3")
        ),
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
            raise ValueError(
                f"pulsar-schemactl has no option {name}; it has {', '.join(sorted(known.values()))}"
            )

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
            raise ValueError(
                "topicsPattern needs admin.url: topics are listed through Pulsar's admin REST API"
            )
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


def _authentication(options: _Options) -> Authentication | None:
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


def _fields(
    params: str, plugin: str, *, needed: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, str]:
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
