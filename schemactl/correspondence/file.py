"""The correspondence as JSON: part of what `apply --result` writes and `drift --format json` prints, read by `rebuild`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schemactl.changes import upload
from schemactl.correspondence import Pair, pair_up
from schemactl.json_values import Json, commit_value, schema_value
from schemactl.model import Catalog, Topic, TopicName


def topic_values(*, git: Catalog, registry: Catalog) -> list[Json]:
    """Every topic of both catalogs that has a version in one of them, sorted by name."""
    names = sorted(git.topics.keys() | registry.topics.keys())
    pairs = {name: _pairs(git.topics.get(name), registry.topics.get(name)) for name in names}
    return [topic_value(name, each) for name, each in pairs.items() if each]


def topic_value(name: TopicName, pairs: Iterable[Pair]) -> Json:
    """One topic's list."""
    return {"topic": str(name), "versions": [pair_value(pair) for pair in pairs]}


def pair_value(pair: Pair) -> Json:
    """One entry. `schema` is there where Git alone could not bring back exactly what the registry holds."""
    entry, version = pair.registry, pair.git
    info = entry.info if entry else version.info if version else None
    told: Json = {
        "registry": entry.number if entry else None,
        "git": version.number if version else None,
        "state": pair.state,
        "type": info.type.name if info else None,
        "time_ms": entry.timestamp_ms if entry else None,
        "commit": commit_value(version.commit) if version else None,
        "stamp": pair.stamp,
    }
    if entry and entry.info and not (version and upload(version) == entry.info):
        told["schema"] = schema_value(entry.info)
    return told


def _pairs(git: Topic | None, registry: Topic | None) -> Sequence[Pair]:
    return pair_up(git=git.versions if git else (), registry=registry.versions if registry else ())
