"""What a cluster knows of topics: partitions, first and last positions, schemas.

All raise PulsarProblem where the cluster does not answer, or has no such topic.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .options import (
    EARLIEST,
    Authentication,
    Bound,
    Cluster,
    Connection,
    MessagePlace,
    PulsarProblem,
    ReadOptions,
    Topics,
    client_package,
    close,
    namespace_of,
    topic_of,
)

if TYPE_CHECKING:
    from urllib3 import PoolManager

T = TypeVar("T")

_ARRIVES_WITHIN_MS: Final = 2_000
"""The last message of a topic is there at once, or is one that a reader cannot be given."""

_LOSSES: Final = 3
"""So often a reader at the end of a topic may lose its connection before a consumer asks in its place.

A broker says of a topic that was terminated that its end is reached, and the client, which does not know that command, closes the
connection.
"""

_MOVING_S: Final = 0.1


def partitions_of(cluster: Cluster, topics: Topics) -> list[str]:
    """Return every partition of the topics, as they are now; a topic without partitions counts as one."""
    if isinstance(topics, re.Pattern):
        listed = _topics_in(cluster.connection, namespace_of(topics.pattern))
        topics = tuple(filter(topics.fullmatch, listed))
    elif cluster.connection.admin_url is not None:
        _check_there(cluster.connection, topics)
    found = []
    for name in topics:
        with cluster.doing(f"look up {name}"):
            found += cluster.client.get_topic_partitions(name)
    return sorted(found)


class Head:
    """The last message of a partition (None: there is none), and a reader there that sees whether another one came.

    Whoever opened it closes it.
    """

    def __init__(self, cluster: Cluster, topic: str, *, compacted: bool = False) -> None:
        self.position = last_position(cluster, topic, compacted=compacted)
        self._cluster = cluster
        pulsar = client_package()
        start = pulsar.MessageId.earliest if self.position is None else self.position.message_id
        with cluster.doing(f"wait for messages of {topic}"):
            # It asks for none, so that it is not told either that there will be none (`_LOSSES`).
            self._reader = open_reader(cluster, topic, start, queue=0, compacted=compacted)

    def has_moved(self) -> bool:
        """Whether there is a later message, in one request; also if that cannot be told."""
        try:
            return has_more(self._reader, self._cluster)
        except client_package().PulsarException:
            return True

    def close(self) -> None:
        """Close the reader."""
        close(self._reader)


def last_position(cluster: Cluster, topic: str, *, compacted: bool = False) -> MessagePlace | None:
    """Return the last message of a partition; None if it holds none. Raises PulsarProblem: the cluster does not answer."""
    lost = client_package().NotConnected
    losses = 0

    def last() -> MessagePlace | None:
        nonlocal losses
        if losses == _LOSSES:
            return _position_by_consumer(cluster, topic)
        try:
            return _read_last(cluster, topic, compacted=compacted)
        except lost:
            losses += 1
            raise

    with cluster.doing(f"ask for the last message of {topic}"):
        return _retried(cluster, last)


def _read_last(cluster: Cluster, topic: str, *, compacted: bool) -> MessagePlace | None:
    """Return the last message, which is read: so its batch is known, and nothing is left in the cluster."""
    pulsar = client_package()
    reader = open_reader(cluster, topic, pulsar.MessageId.latest, inclusive=True, queue=1, compacted=compacted)
    try:
        if not _has_more(reader, cluster):
            return None
        return MessagePlace.of(reader.read_next(_ARRIVES_WITHIN_MS).message_id())
    except pulsar.Timeout:
        # It cannot be placed at the end of a message in chunks.
        return _position_by_consumer(cluster, topic)
    finally:
        close(reader)


def _position_by_consumer(cluster: Cluster, topic: str) -> MessagePlace | None:
    """Return what the broker says is last, asked by a consumer that asks for no messages (`_LOSSES`)."""
    consumer = cluster.client.subscribe(topic, f"schemactl-{uuid.uuid4().hex}", receiver_queue_size=0)
    try:
        ask = consumer._consumer.get_last_message_id_async  # noqa: SLF001  has no wrapper
        found = MessagePlace.of(cluster.answer(ask))
    finally:
        consumer.unsubscribe()
        close(consumer)
    return None if found.entry < 0 else found


def first_since(cluster: Cluster, topic: str, time_ms: int) -> MessagePlace | None:
    """Return the first message of a partition that was published at that time or later; None if there is none."""
    pulsar = client_package()
    with cluster.doing(f"look for a time in {topic}"):
        reader = open_reader(cluster, topic, pulsar.MessageId.earliest, queue=1)
        try:
            reader.seek(time_ms)
            while has_more(reader, cluster):
                message = reader.read_next(round(cluster.connection.operation_timeout_s * 1000))
                if message.publish_timestamp() >= time_ms:
                    return MessagePlace.of(message.message_id())
            return None
        finally:
            close(reader)


def has_more(reader: Any, cluster: Cluster) -> bool:
    """Whether there is a message to read; asked again where the broker moves the reader."""
    return _retried(cluster, lambda: _has_more(reader, cluster))


def _retried(cluster: Cluster, ask: Callable[[], T]) -> T:
    """Return the answer; ask again where the topic is moved meanwhile, or the connection is lost."""
    pulsar = client_package()
    until = time.monotonic() + cluster.connection.operation_timeout_s
    while True:
        try:
            return ask()
        except (pulsar.BrokerMetadataError, pulsar.NotConnected):
            if time.monotonic() > until:
                raise
        time.sleep(_MOVING_S)


def _has_more(reader: Any, cluster: Cluster) -> bool:
    return bool(cluster.answer(reader._reader.has_message_available_async))  # noqa: SLF001  has no wrapper


def places_in(
    cluster: Cluster, topics: Sequence[str], bound: Bound, reading: ReadOptions
) -> dict[str, MessagePlace | None]:
    """Return the bound in each partition: the last message in front of it; None if there is none.

    Raises:
        ValueError: the bound has no place for one of them, or names another topic.
    """
    check_named(bound, topics)
    return {topic: _place_in(cluster, topic, bound, compacted=reading.compacted) for topic in topics}


def check_named(bound: Bound, partitions: Sequence[str]) -> None:
    """Raise ValueError if the bound names a topic that is not read."""
    if isinstance(bound, Mapping):
        strange = sorted(bound.keys() - {*partitions, *map(topic_of, partitions)})
        if strange:
            raise ValueError(f"the offsets name {', '.join(strange)}, which is not read")


def _place_in(cluster: Cluster, topic: str, bound: Bound, *, compacted: bool) -> MessagePlace | None:
    if isinstance(bound, Mapping):
        place = bound.get(topic, bound.get(topic_of(topic)))
        if place is None:
            raise ValueError(f"the offsets say nothing of {topic}; they name {', '.join(sorted(bound))}")
        bound = place
    if isinstance(bound, MessagePlace):
        return bound
    if bound == EARLIEST:
        return None
    if isinstance(bound, int):
        found = first_since(cluster, topic, bound)
        if found is not None:
            return found.before()
    return last_position(cluster, topic, compacted=compacted)


def schema_info(cluster: Cluster, topic: str, version: int) -> Any | None:
    """Return that version of a topic's schema, or of the topic that a partition is of; None: there is none, or not any more."""
    with cluster.doing(f"ask for version {version} of the schema of {topic}"):
        try:
            return cluster.client._client.get_schema_info(topic_of(topic), version)  # noqa: SLF001  nothing else asks
        except client_package().TopicNotFound:
            return None


def open_reader(
    cluster: Cluster, topic: str, start: Any, *, inclusive: bool = False, queue: int, compacted: bool = False
) -> Any:
    """Return a reader, whoever opened it closes it. It has no schema, so nothing is registered, and it leaves no subscription."""
    return cluster.client.create_reader(
        topic,
        start,
        receiver_queue_size=queue,
        start_message_id_inclusive=inclusive,
        is_read_compacted=compacted,
        subscription_role_prefix="schemactl",
    )


def _check_there(connection: Connection, names: Iterable[str]) -> None:
    listed = {namespace: _topics_in(connection, namespace) for namespace in {*map(namespace_of, names)}}
    for name in names:
        there = listed[namespace_of(name)]
        if name not in there and topic_of(name) not in there:
            has = ", ".join(sorted(there)) or "none"
            raise PulsarProblem(f"there is no topic {name}; {namespace_of(name)} has {has}")


def _topics_in(connection: Connection, namespace: str) -> set[str]:
    """Return the full names of the topics in `tenant/namespace`, each partitioned one once, from Pulsar's admin REST API."""
    import urllib3

    cannot = f"cannot list the topics of {namespace}"
    found: set[str] = set()
    with _pool(connection) as pool:
        for what in ("", "/partitioned"):
            address = f"{(connection.admin_url or '').rstrip('/')}/admin/v2/persistent/{namespace}{what}"
            try:
                answer = pool.request("GET", address, redirect=False)
            except urllib3.exceptions.HTTPError as error:
                raise PulsarProblem(f"{cannot}: {error}") from None
            if answer.status != 200:
                raise PulsarProblem(f"{cannot}: {address} answers {answer.status}")
            try:
                found |= {topic_of(name) for name in json.loads(answer.data)}
            except (ValueError, TypeError):
                raise PulsarProblem(
                    f"{cannot}: {address} answers with no list of them; is admin.url that of a broker's or proxy's REST API?"
                ) from None
    return found


def _pool(connection: Connection) -> PoolManager:
    """Return connections that authenticate as the client does."""
    import urllib3

    chosen: dict[str, Any] = {}
    match connection.authentication:
        case Authentication(kind="oauth2"):
            raise PulsarProblem("admin.url does not work with AuthenticationOAuth2: name the topics, and leave it out")
        case Authentication(kind="token") as token:
            chosen["headers"] = {"Authorization": f"Bearer {token.bearer()}"}
        case Authentication(kind="tls", fields=files):
            chosen |= {"cert_file": files["tlsCertFile"], "key_file": files["tlsKeyFile"]}
    if connection.trust_certs_file is not None:
        chosen["ca_certs"] = connection.trust_certs_file
    if connection.allow_insecure:
        chosen["cert_reqs"] = "CERT_NONE"
    timeout = urllib3.Timeout(connect=connection.connection_timeout_s, read=connection.operation_timeout_s)
    return urllib3.PoolManager(timeout=timeout, retries=2, **chosen)
