"""Compute the fingerprint by which a waiver names a change, and find the waiver that applies.

A fingerprint identifies exactly one change: the rule, the topic, the place in the definition, the direction, the new content with
everything that changes how it reads data, and the contents that it breaks with. Version numbers, commits and lines are not part of it, so it
survives a rebase.

Aliases, enum defaults and properties make no version, and earlier fingerprints did not cover them. A waiver that names such a former
fingerprint counts if it is approved, so that a replay of the history gives the same result; a new waiver names the full one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Direction, Fingerprint, Waiver
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion, get_live_versions
from schemactl.formats import identity, spec
from schemactl.formats.digest import encode_identity

BROKER_RULE: Final = "BROKER_INCOMPATIBLE"
"""The only rejection by a broker that a waiver can name: no strategy makes a broker accept an invalid schema or one it fails on."""


def compute_fingerprint(
    rule: str,
    topic: TopicName,
    *,
    new: SchemaInfo | None,
    against: Iterable[SchemaInfo],
    pointer: str = "",
    direction: Direction | None = None,
) -> Fingerprint:
    """Return the fingerprint of a finding, as `sha256:` and 64 hex digits, with its former one.

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
        _digest_content(new) if new else "",
        sorted({*map(_digest_content, against)}),
    ]
    reading = _digest_reading_parts(new) if new else ""
    former = _compute_sha256(parts)
    return Fingerprint(_compute_sha256([*parts, reading]), former) if reading else Fingerprint(former)


def _compute_sha256(parts: Sequence[object]) -> str:
    return f"sha256:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


def compute_broker_fingerprint(topic: TopicName, existing: Sequence[SchemaVersion], new: SchemaInfo) -> Fingerprint:
    """Return the fingerprint of a broker's rejection of `new` after the `existing` versions, of which the latest live one counts.

    The `.proto` of a PROTOBUF declaration does not count, because brokers do not see it.
    """
    latest = [version.info for version in get_live_versions(existing)[-1:]]
    against = [replace(info.load(), proto=None) for info in latest if info]
    return compute_fingerprint(BROKER_RULE, topic, new=replace(new.load(), proto=None), against=against)


def find_broker_waiver(
    waivers: Iterable[Waiver], topic: TopicName, existing: Sequence[SchemaVersion], new: SchemaInfo
) -> Waiver | None:
    """Return the approved waiver of a broker's rejection of `new` after the `existing` versions, or None.

    If several match, the waiver that ends first. An expired waiver approves no further versions, but still documents earlier approvals.
    """
    fingerprint = compute_broker_fingerprint(topic, existing, new)
    keys = {(BROKER_RULE, topic.schema_id, text) for text in (fingerprint, fingerprint.former)}
    return min((waiver for waiver in waivers if waiver.key in keys), key=lambda waiver: waiver.until, default=None)


def _digest_reading_parts(info: SchemaInfo) -> str:
    """Return the digest of the parts of a definition that change how it reads data and make no version, or "" without such parts."""
    try:
        parts = spec(info).list_reading_parts(info)
        parts += spec(info.proto).list_reading_parts(info.proto) if info.proto else ()
    except InvalidSchema:
        return ""
    return hashlib.sha256(encode_identity(parts).encode()).hexdigest() if parts else ""


def shorten_fingerprint(fingerprint: str) -> str:
    """Return the first digits of a fingerprint, which suffice for `waive`."""
    return fingerprint.removeprefix("sha256:")[:12]


def _digest_content(info: SchemaInfo) -> str:
    """Return the digest of a definition's identity, and for PROTOBUF of its `.proto`, by which it is compared."""
    info.load()
    digest = _digest_identity(info)
    return f"{digest} {_digest_identity(info.proto)}" if info.proto else digest


@lru_cache(maxsize=256)
def _digest_identity(info: SchemaInfo) -> str:
    """Return the digest of a definition's identity, or of its bytes if it does not parse."""
    try:
        key: object = identity(info)
    except InvalidSchema:
        key = (info.type, info.schema)
    return hashlib.sha256(encode_identity(key).encode()).hexdigest()
