"""Compute the fingerprint by which a waiver names a change, and find the waiver that applies.

A fingerprint identifies exactly one change: the rule, the topic, the place in the definition, the direction, the new content, and the
contents that it breaks with. Version numbers, commits and lines are not part of it, so it survives a rebase.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from typing import Final

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Direction, Waiver
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion, live
from schemactl.formats import identity

BROKER_RULE: Final = "BROKER_INCOMPATIBLE"
"""The only rejection by a broker that a waiver can name: no strategy makes a broker accept an invalid schema or one it fails on."""


def fingerprint(
    rule: str,
    topic: TopicName,
    *,
    new: SchemaInfo | None,
    against: Iterable[SchemaInfo],
    pointer: str = "",
    direction: Direction | None = None,
) -> str:
    """Return the fingerprint of a finding, as `sha256:` and 64 hex digits.

    Args:
        rule: the finding's rule.
        topic: the finding's topic; both domains share one version list, and one fingerprint.
        new: the definition that breaks, or None if the definition was removed.
        against: the definitions it breaks with, in any order.
        pointer: the finding's pointer.
        direction: the finding's direction.
    """
    parts = [
        rule,
        topic.schema_id,
        pointer,
        direction,
        _content_digest(new) if new else "",
        sorted({*map(_content_digest, against)}),
    ]
    return f"sha256:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


def broker_fingerprint(topic: TopicName, existing: Sequence[SchemaVersion], new: SchemaInfo) -> str:
    """Return the fingerprint of a broker's rejection of `new` after the `existing` versions, of which the latest live one counts.

    The `.proto` of a PROTOBUF declaration does not count, because brokers do not see it.
    """
    latest = [version.info for version in live(existing)[-1:]]
    against = [replace(info.load(), proto=None) for info in latest if info]
    return fingerprint(BROKER_RULE, topic, new=replace(new.load(), proto=None), against=against)


def broker_waiver(
    waivers: Iterable[Waiver], topic: TopicName, existing: Sequence[SchemaVersion], new: SchemaInfo
) -> Waiver | None:
    """Return the waiver of a broker's rejection of `new` after the `existing` versions, or None.

    If there are several, the one that ends first. It may have expired: then it approves nothing more, but still documents the
    approvals before.
    """
    key = BROKER_RULE, topic.schema_id, broker_fingerprint(topic, existing, new)
    return min((waiver for waiver in waivers if waiver.key == key), key=lambda waiver: waiver.until, default=None)


def short(fingerprint: str) -> str:
    """Return the first digits of a fingerprint, which suffice for `waive`."""
    return fingerprint.removeprefix("sha256:")[:12]


def _content_digest(info: SchemaInfo) -> str:
    """Return the digest of a definition's identity, and for PROTOBUF of its `.proto`, by which it is compared."""
    info.load()
    digest = _digest(info)
    return f"{digest} {_digest(info.proto)}" if info.proto else digest


@lru_cache(maxsize=256)
def _digest(info: SchemaInfo) -> str:
    """Return the digest of a definition's identity, or of its bytes if it does not parse."""
    try:
        key: object = identity(info)
    except InvalidSchema:
        key = (info.type, info.schema)
    return hashlib.sha256(json.dumps(_to_json_value(key)).encode()).hexdigest()


def _to_json_value(key: object) -> object:
    """Return an identity as a JSON value, the same in every run: sets are sorted."""
    match key:
        case tuple():
            return [_to_json_value(part) for part in key]
        case frozenset():
            return ["set", *sorted(map(json.dumps, map(_to_json_value, key)))]
        case bytes():
            return ["bytes", key.hex()]
        case Enum():
            return key.name
    return key
