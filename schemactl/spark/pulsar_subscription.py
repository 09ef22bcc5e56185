"""A durable subscription by which a stream holds back messages until it has read them."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from .pulsar_connection import Connection, as_pulsar_problem, client_package, close
from .pulsar_positions import Offsets, Position
from .pulsar_topics import message_id_of


class Subscription:
    """The subscription of one query, on each partition it reads. It stays when the query ends: the next run goes on with it."""

    def __init__(self, client: Any, connection: Connection, name: str) -> None:
        self._client = client
        self._connection = connection
        self._name = name
        self._consumers: dict[str, Any] = {}

    def hold(self, topics: Collection[str]) -> None:
        """Nothing of these partitions is removed from now on.

        Raises:
            PulsarProblem: another query uses the subscription, or the role may not.
        """
        pulsar = client_package()
        for topic in self._consumers.keys() - set(topics):
            close(self._consumers.pop(topic))
        for topic in set(topics) - self._consumers.keys():
            with as_pulsar_problem(self._connection, f"subscribe to {topic} as {self._name}"):
                # It receives nothing to speak of: readers read.
                self._consumers[topic] = self._client.subscribe(
                    topic,
                    self._name,
                    receiver_queue_size=1,
                    initial_position=pulsar.InitialPosition.Earliest,
                    consumer_name=f"schemactl-{uuid.uuid4().hex[:8]}",
                )

    def release(self, offsets: Offsets) -> None:
        """Release what was read: all in front of the last entry, which stays as the proof that nothing behind it is gone."""
        for topic, position in offsets.items():
            if topic in self._consumers and position is not None and position.entry > 0:
                before = Position(position.ledger, position.entry - 1, position.partition)
                with as_pulsar_problem(self._connection, f"acknowledge what was read of {topic}"):
                    self._consumers[topic].acknowledge_cumulative(message_id_of(before))
