"""The kinds of difference of a registry from the approved history."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class DriftKind(StrEnum):
    """The kinds of drift."""

    FOREIGN_VERSION = "foreign version"
    UNEXPLAINED_VERSION = "unexplained version"
    MISSING_VERSIONS = "missing versions"
    TOMBSTONE = "tombstone"
    NUMBERS_APART = "numbers apart"
    POLICY = "policy"
    POLICY_OVERRIDDEN = "policy overridden"
    PARTITIONS = "partitions"
    NAMESPACE_MISSING = "namespace missing"
    TOPIC_MISSING = "topic missing"
    SCALABLE_TOPIC = "scalable topic"
    NO_LONGER_DECLARED = "no longer declared"
    RELAXED = "relaxed"
    BROKER_CONFIGURATION = "broker configuration"
    UPDATES_OFF = "updates off"
    WEDGED = "wedged"
    UNMANAGED_NAMESPACE = "unmanaged namespace"
    UNMANAGED_TOPIC = "unmanaged topic"


VERSIONS_GONE: Final = frozenset(
    {DriftKind.MISSING_VERSIONS, DriftKind.TOPIC_MISSING, DriftKind.TOMBSTONE, DriftKind.WEDGED}
)
"""The kinds of drift in which a topic no longer has its approved versions."""
