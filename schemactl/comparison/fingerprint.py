"""Compute the fingerprint of a change, by which a waiver names it, and find the waiver that applies.

A fingerprint is of exactly one change: the rule, the topic, the place in the definition, who reads whom, the new content, and the
contents it breaks with. Numbers, commits and lines are not in it, so it survives a rebase.
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
"""The one refusal of a broker that a waiver can name: what it holds for invalid, or fails on, no strategy makes it accept."""


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
        rule: the finding's.
        topic: its topic; both domains share one list of schemas, and one fingerprint.
        new: the definition at fault; None if the fault is that there is none any more.
        against: the definitions it breaks with, in any order.
        pointer: the finding's.
        direction: the finding's.
    """
    parts = [rule, topic.schema_id, pointer, direction, _content(new) if new else "", sorted({*map(_content, against)})]
    return f"sha256:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


def short(fingerprint: str) -> str:
    """Return the first digits of a fingerprint, enough for `waive`."""
    return fingerprint.removeprefix("sha256:")[:12]


def broker_fingerprint(topic: TopicName, before: Sequence[SchemaVersion], new: SchemaInfo) -> str:
    """Return the fingerprint of a broker's refusal of `new` after the versions `before`, of which the latest live one counts.

    No broker sees the `.proto` of a PROTOBUF declaration, so it has no part in this.
    """
    latest = [version.info for version in live(before)[-1:]]
    against = [replace(info.load(), proto=None) for info in latest if info]
    return fingerprint(BROKER_RULE, topic, new=replace(new.load(), proto=None), against=against)


def broker_waiver(
    waivers: Iterable[Waiver], topic: TopicName, before: Sequence[SchemaVersion], new: SchemaInfo
) -> Waiver | None:
    """Return the waiver of a broker's refusal of `new` after the versions `before`; None if there is none.

    Of several it is the one that ends first. It may have expired: that ends its power to approve, not the record of
    what was approved under it.
    """
    wanted = BROKER_RULE, topic.schema_id, broker_fingerprint(topic, before, new)
    return min((each for each in waivers if each.key == wanted), key=lambda each: each.until, default=None)


def _content(info: SchemaInfo) -> str:
    """Return the digest of a definition's identity: of PROTOBUF also of its `.proto`, by which it is judged."""
    info.load()
    own = _digest(info)
    return f"{own} {_digest(info.proto)}" if info.proto else own


@lru_cache(maxsize=256)
def _digest(info: SchemaInfo) -> str:
    """Return the digest of what makes two definitions one version; of one that does not parse, of its bytes."""
    try:
        key: object = identity(info)
    except InvalidSchema:
        key = (info.type, info.schema)
    return hashlib.sha256(json.dumps(_plain(key)).encode()).hexdigest()


def _plain(key: object) -> object:
    """Return an identity as JSON, the same in every run: sets in order."""
    match key:
        case tuple():
            return [_plain(each) for each in key]
        case frozenset():
            return ["set", *sorted(map(json.dumps, map(_plain, key)))]
        case bytes():
            return ["bytes", key.hex()]
        case Enum():
            return key.name
    return key
