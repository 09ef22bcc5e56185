"""A client of a Pulsar cluster, and requests about topics: partitions, first and last messages, schemas.

Every function raises PulsarProblem if the cluster does not respond, or does not have the topic.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import quote

from .options import (
    EARLIEST,
    Authentication,
    Bound,
    Connection,
    MessagePosition,
    PulsarProblem,
    Topics,
    client_package,
    namespace_of,
    topic_of,
)

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

T = TypeVar("T")

_LAST_MESSAGE_TIMEOUT_MS: Final = 2_000
"""How long a reader waits for the last message of a topic: it arrives at once, or a reader cannot get it."""

_MAX_LOST_CONNECTIONS: Final = 3
"""How often a reader at the end of a topic may lose its connection before a consumer is used instead.

The broker tells a reader of a terminated topic that the end is reached. The client does not know this command, and closes the
connection.
"""

_RETRY_INTERVAL_S: Final = 0.1

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
"""The reasons of errors, by the names of pulsar-client's exceptions; {0} is the connection."""


class Cluster:
    """A client of a cluster. It does not survive a fork, so each process makes its own."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        pulsar = client_package()
        with self.explain_errors("open a client"):
            self.client = pulsar.Client(
                connection.service_url,
                authentication=_make_client_authentication(pulsar, connection.authentication),
                operation_timeout_seconds=max(1, round(connection.operation_timeout_s)),
                connection_timeout_ms=round(connection.connection_timeout_s * 1000),
                tls_trust_certs_file_path=connection.trust_certs_file,
                tls_allow_insecure_connection=connection.allow_insecure,
                tls_validate_hostname=connection.verify_hostname and not connection.allow_insecure,
                # At lower levels the client would fill the log of each executor.
                logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        close(self.client)

    @contextmanager
    def explain_errors(self, action: str) -> Iterator[None]:
        """Turn an exception of pulsar-client in the block into a PulsarProblem, `cannot ACTION: REASON`."""
        try:
            yield
        except client_package().PulsarException as error:
            template = _REASONS.get(type(error).__name__)
            reason = template.format(self.connection) if template else error
            raise PulsarProblem(f"cannot {action}: {reason}") from error

    def wait_for_result(self, call: Callable[[Callable[[Any, Any], None]], None]) -> Any:
        """Return the result of a call of pulsar-client that takes a callback.

        The blocking calls for the same return a default, such as no message, if the client has no exception for an error. The loss
        of a connection is such an error (`raiseException` in exceptions.cc).

        Raises:
            PulsarException: of the error's name; NotConnected if there is no exception of this name.
        """
        pulsar = client_package()
        results: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        call(lambda result, value: results.put((result, value)))
        try:
            result, value = results.get(timeout=2 * self.connection.operation_timeout_s)
        except Empty:
            raise pulsar.Timeout("no answer") from None
        if result != pulsar.Result.Ok:
            error = getattr(pulsar, result.name, None)
            raise pulsar.NotConnected("the connection was lost") if error is None else error(result.name)
        return value


def close(resource: Any) -> None:
    """Close a client, reader or producer, also if the broker is gone."""
    with suppress(client_package().PulsarException):
        resource.close()


def _make_client_authentication(pulsar: Any, authentication: Authentication | None) -> Any:
    if authentication is None:
        return None
    fields = authentication.fields
    if authentication.kind == "token":
        # The client calls the function at each connection, so it uses a renewed file.
        return pulsar.AuthenticationToken(authentication.read_token)
    if authentication.kind == "tls":
        return pulsar.AuthenticationTLS(fields["tlsCertFile"], fields["tlsKeyFile"])
    client_names = {"issuerUrl": "issuer_url", "privateKey": "private_key"}
    params = {client_names.get(name, name): value for name, value in fields.items()}
    return pulsar.AuthenticationOauth2(json.dumps({"type": "client_credentials"} | params))


def list_partitions(cluster: Cluster, topics: Topics) -> list[str]:
    """Return every current partition of the topics, sorted; a topic without partitions counts as one."""
    if isinstance(topics, re.Pattern):
        listed = _list_topics(cluster.connection, namespace_of(topics.pattern))
        topics = tuple(filter(topics.fullmatch, listed))
    elif cluster.connection.admin_url is not None:
        topics_by_namespace = {
            namespace: _list_topics(cluster.connection, namespace) for namespace in {*map(namespace_of, topics)}
        }
        for topic in topics:
            namespace = namespace_of(topic)
            existing = topics_by_namespace[namespace]
            if topic not in existing and topic_of(topic) not in existing:
                raise PulsarProblem(f"unknown topic {topic}; {namespace} has {', '.join(sorted(existing)) or 'none'}")
    partitions = []
    for topic in topics:
        with cluster.explain_errors(f"look up {topic}"):
            partitions += cluster.client.get_topic_partitions(topic)
    return sorted(partitions)


def _list_topics(connection: Connection, namespace: str) -> set[str]:
    """Return the full names of the topics in `tenant/namespace`, without partitions, from Pulsar's admin REST API."""
    failure = f"cannot list the topics of {namespace}"
    topics: set[str] = set()
    for suffix in ("", "/partitioned"):
        address = f"{(connection.admin_url or '').rstrip('/')}/admin/v2/persistent/{namespace}{suffix}"
        response = _request(connection, address, failure, 200)
        try:
            topics |= {topic_of(name) for name in json.loads(response.data)}
        except (ValueError, TypeError):
            raise PulsarProblem(f"{failure}: {address} {_NO_LIST}") from None
    return topics


def list_schemas(connection: Connection, topic: str) -> list[dict[str, Any]]:
    """Return the responses of the admin REST API on the readable versions of a topic's schema, oldest first.

    Each has `version`, `type`, `data` and `properties` (GetSchemaResponse). pulsar-client does not show the properties, by which a
    KEY_VALUE has its types. `topic` is a full name.

    Raises:
        PulsarProblem: if the API does not respond, or the topic has no readable schema.
    """
    failure = f"cannot read the schemas of {topic}"
    namespace, _, name = topic_of(topic).partition("://")[2].rpartition("/")
    # Brokers decode the topic in these paths twice (SchemasResource).
    path = f"{namespace}/{quote(quote(name, safe=''), safe='')}"
    address = f"{(connection.admin_url or '').rstrip('/')}/admin/v2/schemas/{path}/schemas"
    response = _request(connection, address, failure, 200, 404)
    try:
        responses = json.loads(response.data)["getSchemaResponses"] if response.status == 200 else []
        responses = sorted(responses, key=lambda entry: int(entry["version"]))
    except (ValueError, TypeError, KeyError):
        raise PulsarProblem(f"{failure}: {address} {_NO_LIST}") from None
    if not responses:
        raise PulsarProblem(f"{topic} has no schema at {connection.admin_url}: check admin.url, or read raw messages")
    return responses


_NO_LIST: Final = "does not respond with a list of them; is admin.url the address of a broker's or proxy's REST API?"


def _request(connection: Connection, address: str, failure: str, *statuses: int) -> BaseHTTPResponse:
    """Return the response of an address, with the client's credentials.

    Raises:
        PulsarProblem: with `failure`, if there is no response, or for any other status than `statuses`.
    """
    import urllib3

    arguments: dict[str, Any] = {}
    match connection.authentication:
        case Authentication(kind="oauth2"):
            raise PulsarProblem(
                "admin.url does not work with AuthenticationOAuth2: name the topics, and remove admin.url"
            )
        case Authentication(kind="token") as token:
            arguments["headers"] = {"Authorization": f"Bearer {token.read_token()}"}
        case Authentication(kind="tls", fields=files):
            arguments |= {"cert_file": files["tlsCertFile"], "key_file": files["tlsKeyFile"]}
    if connection.trust_certs_file is not None:
        arguments["ca_certs"] = connection.trust_certs_file
    if connection.allow_insecure:
        arguments["cert_reqs"] = "CERT_NONE"
    timeout = urllib3.Timeout(connect=connection.connection_timeout_s, read=connection.operation_timeout_s)
    with urllib3.PoolManager(timeout=timeout, retries=2, **arguments) as pool:
        try:
            response = pool.request("GET", address, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            raise PulsarProblem(f"{failure}: {error}") from None
    if response.status not in statuses:
        raise PulsarProblem(f"{failure}: {address} responds with {response.status}")
    return response


def find_positions(
    cluster: Cluster, partitions: Sequence[str], bound: Bound, *, compacted: bool
) -> dict[str, MessagePosition | None]:
    """Map each partition to the last message before the bound, or to None.

    Raises:
        ValueError: if the bound lacks a position for a partition, or names another topic.
    """
    check_topics_of_bound(bound, partitions)
    return {partition: _find_position(cluster, partition, bound, compacted=compacted) for partition in partitions}


def check_topics_of_bound(bound: Bound, partitions: Sequence[str]) -> None:
    """Raise ValueError if the bound names a topic that is not read."""
    if isinstance(bound, Mapping):
        unread_topics = sorted(bound.keys() - {*partitions, *map(topic_of, partitions)})
        if unread_topics:
            raise ValueError(f"the offsets name {', '.join(unread_topics)}, which is not read")


def _find_position(cluster: Cluster, partition: str, bound: Bound, *, compacted: bool) -> MessagePosition | None:
    if isinstance(bound, Mapping):
        position = bound.get(partition, bound.get(topic_of(partition)))
        if position is None:
            raise ValueError(f"the offsets omit {partition}; they name {', '.join(sorted(bound))}")
        bound = position
    if isinstance(bound, MessagePosition):
        return bound
    if bound == EARLIEST:
        return None
    if isinstance(bound, int):
        first = _find_first_since(cluster, partition, bound)
        if first is not None:
            return first.before()
    return _find_last_position(cluster, partition, compacted=compacted)


def _find_first_since(cluster: Cluster, partition: str, time_ms: int) -> MessagePosition | None:
    """Return the first message that was published at this time or later, or None."""
    with cluster.explain_errors(f"look for a time in {partition}"):
        reader = open_reader(cluster, partition, client_package().MessageId.earliest, queue=1)
        try:
            reader.seek(time_ms)
            while has_more(reader, cluster):
                message = reader.read_next(round(cluster.connection.operation_timeout_s * 1000))
                if message.publish_timestamp() >= time_ms:
                    return MessagePosition.of(message.message_id())
            return None
        finally:
            close(reader)


class Head:
    """The last message of a partition, and a reader after it that detects new messages. The caller closes it.

    Attributes:
        position: the last message, or None if the partition is empty.
    """

    def __init__(self, cluster: Cluster, partition: str, *, compacted: bool) -> None:
        self.position = _find_last_position(cluster, partition, compacted=compacted)
        self._cluster = cluster
        earliest = client_package().MessageId.earliest
        start = earliest if self.position is None else self.position.message_id
        with cluster.explain_errors(f"wait for messages of {partition}"):
            # A reader without a queue requests no messages, so the broker also does not tell it that no message will come
            # (see _MAX_LOST_CONNECTIONS).
            self._reader = open_reader(cluster, partition, start, queue=0, compacted=compacted)

    def has_moved(self) -> bool:
        """Return whether there is a later message, in one request; True if the client cannot tell."""
        try:
            return has_more(self._reader, self._cluster)
        except client_package().PulsarException:
            return True

    def close(self) -> None:
        """Close the reader."""
        close(self._reader)


def _find_last_position(cluster: Cluster, partition: str, *, compacted: bool) -> MessagePosition | None:
    """Return the last message of a partition, or None if it is empty."""
    lost_connections = 0

    def find() -> MessagePosition | None:
        nonlocal lost_connections
        if lost_connections == _MAX_LOST_CONNECTIONS:
            return _ask_for_last_position(cluster, partition)
        try:
            return _read_last_position(cluster, partition, compacted=compacted)
        except client_package().NotConnected:
            lost_connections += 1
            raise

    with cluster.explain_errors(f"ask for the last message of {partition}"):
        return _retry(cluster, find)


def _read_last_position(cluster: Cluster, partition: str, *, compacted: bool) -> MessagePosition | None:
    """Return the last message by reading it, which tells its index in a batch and leaves no subscription in the cluster."""
    pulsar = client_package()
    reader = open_reader(cluster, partition, pulsar.MessageId.latest, inclusive=True, queue=1, compacted=compacted)
    try:
        if not _has_more_now(reader, cluster):
            return None
        return MessagePosition.of(reader.read_next(_LAST_MESSAGE_TIMEOUT_MS).message_id())
    except pulsar.Timeout:
        # A reader cannot be placed at the end of a message in chunks.
        return _ask_for_last_position(cluster, partition)
    finally:
        close(reader)


def _ask_for_last_position(cluster: Cluster, partition: str) -> MessagePosition | None:
    """Return the broker's last message id, through a consumer that requests no messages (see _MAX_LOST_CONNECTIONS)."""
    consumer = cluster.client.subscribe(partition, f"schemactl-{uuid.uuid4().hex}", receiver_queue_size=0)
    try:
        get_last_message_id = consumer._consumer.get_last_message_id_async  # noqa: SLF001  has no wrapper
        position = MessagePosition.of(cluster.wait_for_result(get_last_message_id))
    finally:
        consumer.unsubscribe()
        close(consumer)
    return None if position.entry < 0 else position


def open_reader(
    cluster: Cluster, partition: str, start: Any, *, inclusive: bool = False, queue: int, compacted: bool = False
) -> Any:
    """Open a reader, which the caller closes. It has no schema, so nothing is registered, and it leaves no subscription.

    Args:
        cluster: the client.
        partition: the full name of a partition, or of a topic without partitions.
        start: the native message id after which reading starts.
        inclusive: whether the message at `start` is also read.
        queue: the number of messages that the client requests ahead.
        compacted: whether only the last message of each key is read, if the topic is compacted.
    """
    return cluster.client.create_reader(
        partition,
        start,
        receiver_queue_size=queue,
        start_message_id_inclusive=inclusive,
        is_read_compacted=compacted,
        subscription_role_prefix="schemactl",
    )


def has_more(reader: Any, cluster: Cluster) -> bool:
    """Return whether there is a message to read; retries while the broker moves the topic."""
    return _retry(cluster, lambda: _has_more_now(reader, cluster))


def _has_more_now(reader: Any, cluster: Cluster) -> bool:
    return bool(cluster.wait_for_result(reader._reader.has_message_available_async))  # noqa: SLF001  has no wrapper


def _retry(cluster: Cluster, request: Callable[[], T]) -> T:
    """Return the result of the request, which is repeated while the topic moves to another broker or the connection is lost."""
    pulsar = client_package()
    until = time.monotonic() + cluster.connection.operation_timeout_s
    while True:
        try:
            return request()
        except (pulsar.BrokerMetadataError, pulsar.NotConnected):
            if time.monotonic() > until:
                raise
        time.sleep(_RETRY_INTERVAL_S)


def get_schema_info(cluster: Cluster, topic: str, version: int) -> Any | None:
    """Return pulsar-client's SchemaInfo of a version, or None if it does not exist or was deleted.

    `topic` may also be a partition: its topic has the schemas.
    """
    with cluster.explain_errors(f"ask for version {version} of the schema of {topic}"):
        try:
            return cluster.client._client.get_schema_info(topic_of(topic), version)  # noqa: SLF001  has no wrapper
        except client_package().TopicNotFound:
            return None
