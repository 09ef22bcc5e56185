"""Positions in topics, and offsets as checkpoints and options have them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from .pulsar_connection import client_package

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
        return cls(
            message_id.ledger_id(), message_id.entry_id(), message_id.partition(), message_id.batch_index()
        )

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
    return {
        topic: EARLIEST if position is None else str(position) for topic, position in sorted(offsets.items())
    }


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
        raise ValueError(
            f"{name!r} is no name of a persistent topic: write persistent://tenant/namespace/topic"
        )
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
            return MessagePlace.of(
                client_package().MessageId.deserialize(bytes(each & 255 for each in value))
            )
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
