"""Numbers apart as JSON, the same in plans, reports of drift and `log`; keys are never renamed."""

from __future__ import annotations

from collections.abc import Iterable

from schemactl.json_values import Json
from schemactl.model import TopicName
from schemactl.target_numbers.apart import NumberApart, TopicApart


def apart_values(apart: Iterable[TopicApart]) -> list[Json]:
    """Every number that is not Git's: what it is instead, and whether that is recorded."""
    return [
        {
            "topic": str(topic.name),
            "registry": each.registry,
            "git": each.git,
            "state": each.state,
            "recorded": each.recorded,
        }
        for topic in apart
        for each in topic.numbers
    ]


def read_apart(values: Iterable[Json]) -> tuple[TopicApart, ...]:
    """What `apart_values` told."""
    found: dict[TopicName, list[NumberApart]] = {}
    for each in values:
        number = NumberApart(each["registry"], each["git"], each["state"], each["recorded"])
        found.setdefault(TopicName.parse(each["topic"]), []).append(number)
    return tuple(TopicApart(name, tuple(numbers)) for name, numbers in found.items())
