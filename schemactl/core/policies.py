"""Define policies: compatibility strategies, the readers that they protect, and the table of retention, TTL and other settings.

Declarations, requests to registries, plans and the protection against message loss all follow from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal

LONG: Final = 2**63 - 1
"""The largest long of Java."""

_WHEN_CAUGHT_UP = "delete_when_subscriptions_caught_up"

REPLICATION: Final = "replication_clusters"


@dataclass(frozen=True, slots=True)
class IntegerValue:
    """An integer from `least` to `most`."""

    expected: str
    least: int
    most: int = 2**31 - 1

    def fits(self, value: object) -> bool:
        """Return whether `value` is such an integer."""
        return isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most


@dataclass(frozen=True, slots=True)
class BooleanValue:
    """A boolean."""

    def fits(self, value: object) -> bool:
        """Return whether `value` is a boolean."""
        return isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class ChoiceValue:
    """One of several names."""

    noun: str
    names: tuple[str, ...]

    def fits(self, value: object) -> bool:
        """Return whether `value` is one of the names."""
        return value in self.names


@dataclass(frozen=True, slots=True)
class NameListValue:
    """A set of names, as a list that is not empty."""

    noun: str
    pattern: str

    def fits(self, value: object) -> bool:
        """Return whether `value` is a list of texts that is not empty."""
        return isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value)


@dataclass(frozen=True, slots=True)
class MappingValue:
    """A mapping with exactly these keys; `about` describes each key for editors."""

    parts: Mapping[str, IntegerValue | BooleanValue | ChoiceValue]
    about: Mapping[str, str]

    def fits(self, value: object) -> bool:
        """Return whether `value` has a valid value for each key."""
        return isinstance(value, dict) and all(shape.fits(value.get(key)) for key, shape in self.parts.items())


LossCheck = Callable[[Any, Any], str]
"""Returns a clause about how messages can be lost if one value replaces another, or ""; the old value is None if unknown."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a namespace or topic: a row of `SETTINGS`.

    Attributes:
        name: the name in declarations and in the policies of a namespace in the admin API.
        about: the description for editors.
        shape: the valid values.
        path: the path of its endpoint below a namespace.
        topic_path: the path of its endpoint below a topic, or "" if topics do not have it.
        method: the method that sets it on a namespace; a topic takes a POST.
        topic_query: the query parameter with the value for a topic, or "" for the body.
        default: the default of Pulsar's brokers, or None if it depends on the cluster.
        broker: the key in the brokers' configuration; for a mapping, keys for each part, of which the first that is set counts.
        loses: how a change can lose messages, or None if it cannot.
        wrong: returns the problem for which Pulsar rejects a value of this shape, or "".
        removable: whether it can be removed from a namespace.
    """

    name: str
    about: str
    shape: IntegerValue | BooleanValue | NameListValue | MappingValue
    path: str
    topic_path: str = ""
    method: str = "POST"
    topic_query: str = ""
    default: Any = None
    broker: str | Mapping[str, tuple[str, ...]] = ""
    loses: LossCheck | None = None
    wrong: Callable[[Any], str] = field(default=lambda _value: "")
    removable: bool = True

    def loss(self, before: Any, after: Any) -> str:
        """Return a clause about how messages can be lost by a change, or ""; a value is None if it is unknown."""
        if self.loses is None:
            return ""
        if after is None:
            return "the brokers' own behavior is unknown" if self.removable else ""
        return self.loses(before, after)

    def normal(self, value: Any) -> Any:
        """Return a value of a broker or a file in the form in which values are compared.

        Raises:
            ValueError: if it is not a value of this setting.
        """
        if not self.shape.fits(value):
            raise ValueError(f"{self.name} has no such value")
        if isinstance(self.shape, MappingValue):
            return {key: value[key] for key in self.shape.parts}
        return sorted(set(value)) if isinstance(self.shape, NameListValue) else value


def _check_retention(before: Any, after: Any) -> str:
    for part, new_limit in after.items():
        old_limit = -1 if before is None else before[part]
        if new_limit != -1 and (old_limit == -1 or new_limit < old_limit):
            return "acknowledged messages that were retained are deleted"
    return ""


def _check_limits(value: Any) -> str:
    limits = set(value.values())
    return "one limit is 0 and the other is not, so nothing would be retained" if 0 in limits and limits != {0} else ""


def _check_ttl(before: Any, after: Any) -> str:
    is_sooner = after > 0 and (not before or after < before)
    return "messages that no subscription has acknowledged in that time are lost" if is_sooner else ""


def _check_inactive_topics(before: Any, after: Any) -> str:
    mode, duration_s, deletes = "inactiveTopicDeleteMode", "maxInactiveDurationSeconds", "deleteWhileInactive"
    if not after[deletes]:
        return ""
    is_stricter = (
        before is None
        or not before[deletes]
        or after[duration_s] < before[duration_s]
        or (after[mode] == _WHEN_CAUGHT_UP and before[mode] != _WHEN_CAUGHT_UP)
    )
    return "inactive topics are deleted, with their messages and schemas" if is_stricter else ""


def _check_clusters(before: Any, after: Any) -> str:
    removed = sorted(set(before or ()) - set(after))
    return (
        f"brokers of {', '.join(removed)} delete the topics there, with their messages and schemas" if removed else ""
    )


SETTINGS: Final[dict[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(
            "retention_policies",
            "The limits of time and size for acknowledged messages that are retained; -1 means no limit, and 0 for both retains none.",
            MappingValue(
                {
                    "retentionTimeInMinutes": IntegerValue("minutes, or -1 for no limit", -1),
                    "retentionSizeInMB": IntegerValue("megabytes, or -1 for no limit", -1, LONG),
                },
                {
                    "retentionTimeInMinutes": "The time limit in minutes; -1 means no limit.",
                    "retentionSizeInMB": "The size limit of each topic or partition in MB; -1 means no limit.",
                },
            ),
            path="retention",
            topic_path="retention",
            default={"retentionTimeInMinutes": 0, "retentionSizeInMB": 0},
            broker={
                "retentionTimeInMinutes": ("defaultRetentionTimeInMinutes",),
                "retentionSizeInMB": ("defaultRetentionSizeInMB",),
            },
            loses=_check_retention,
            wrong=_check_limits,
        ),
        Setting(
            "message_ttl_in_seconds",
            "The seconds after which a message counts as acknowledged by every subscription; 0 is never.",
            IntegerValue("seconds, or 0 for never", 0),
            path="messageTTL",
            topic_path="messageTTL",
            topic_query="messageTTL",
            default=0,
            broker="ttlDurationDefaultInSeconds",
            loses=_check_ttl,
        ),
        Setting(
            "inactive_topic_policies",
            "Whether and when brokers delete unused topics, with their schemas.",
            MappingValue(
                {
                    "inactiveTopicDeleteMode": ChoiceValue(
                        "delete mode", ("delete_when_no_subscriptions", _WHEN_CAUGHT_UP)
                    ),
                    "maxInactiveDurationSeconds": IntegerValue("seconds, 1 or more", 1),
                    "deleteWhileInactive": BooleanValue(),
                },
                {
                    "inactiveTopicDeleteMode": "Which topics count: without subscriptions, or also with subscriptions that have read everything.",
                    "maxInactiveDurationSeconds": "The seconds without clients after which a topic is inactive.",
                    "deleteWhileInactive": "Whether inactive topics are deleted.",
                },
            ),
            path="inactiveTopicPolicies",
            topic_path="inactiveTopicPolicies",
            default={
                "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
                "maxInactiveDurationSeconds": 60,
                "deleteWhileInactive": True,
            },
            broker={
                "inactiveTopicDeleteMode": ("brokerDeleteInactiveTopicsMode",),
                "maxInactiveDurationSeconds": (
                    "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds",
                    "brokerDeleteInactiveTopicsFrequencySeconds",
                ),
                "deleteWhileInactive": ("brokerDeleteInactiveTopicsEnabled",),
            },
            loses=_check_inactive_topics,
        ),
        Setting(
            "deduplicationEnabled",
            "Whether a message that a producer sends twice is stored once.",
            BooleanValue(),
            path="deduplication",
            topic_path="deduplicationEnabled",
            default=False,
            broker="brokerDeduplicationEnabled",
        ),
        Setting(
            "compaction_threshold",
            "The backlog in bytes at which a topic is compacted; 0 turns automatic compaction off.",
            IntegerValue("bytes, or 0 for no automatic compaction", 0, LONG),
            path="compactionThreshold",
            topic_path="compactionThreshold",
            method="PUT",
            default=0,
            broker="brokerServiceCompactionThresholdInBytes",
        ),
        Setting(
            REPLICATION,
            "The clusters that have the topics, and between which messages are replicated.",
            NameListValue("the name of a cluster", r"^\S+$"),
            path="replication",
            topic_path="replication",
            loses=_check_clusters,
            removable=False,
        ),
    )
}
"""The settings by name, in the order in which a plan sets them."""


def get_setting_address(name: object, setting: str) -> str:
    """Return the name of a setting of a namespace or topic in plans, by which users allow a change that can lose messages."""
    return f"{name}:{setting}"


class CompatibilityStrategy(StrEnum):
    """Pulsar's SchemaCompatibilityStrategy; UNDEFINED inherits the strategy of the next level (topic, namespace, broker)."""

    UNDEFINED = "UNDEFINED"
    ALWAYS_INCOMPATIBLE = "ALWAYS_INCOMPATIBLE"
    ALWAYS_COMPATIBLE = "ALWAYS_COMPATIBLE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of a namespace or topic: None if not managed, UNDEFINED if reset to the value of the next level.

    Attributes:
        settings: the managed values of `SETTINGS`, by name.
    """

    schema_compatibility_strategy: CompatibilityStrategy | None = None
    is_allow_auto_update_schema: bool | None = None
    schema_validation_enforced: bool | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Policies:
        """Return the policies in a mapping by name, in which a strategy may be text; raise ValueError for a value that is not valid."""
        strategy = values.get("schema_compatibility_strategy")
        return cls(
            None if strategy is None else CompatibilityStrategy(strategy),
            values.get("is_allow_auto_update_schema"),
            values.get("schema_validation_enforced"),
            {
                name: value if value == CompatibilityStrategy.UNDEFINED else setting.normal(value)
                for name, setting in SETTINGS.items()
                if (value := values.get(name)) is not None
            },
        )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all policies: the schema policies and the settings."""
        return (*SCHEMA_POLICIES, *SETTINGS)

    def get(self, name: str) -> Any:
        """Return the policy with this name, or None if it is not managed."""
        return getattr(self, name) if name in SCHEMA_POLICIES else self.settings.get(name)

    def managed(self) -> dict[str, Any]:
        """Return the policies that are not None, by name."""
        return {name: value for name in self.names() if (value := self.get(name)) is not None}

    def without(self, managed: Policies) -> Policies:
        """Return these policies without the policies that `managed` sets."""
        return Policies.of({**self.managed(), **dict.fromkeys(managed.managed())})

    def override_with(self, managed: Policies) -> Policies:
        """Return these policies, overridden by the policies in `managed`."""
        return Policies.of({**self.managed(), **managed.managed()})


SCHEMA_POLICIES: Final = ("schema_compatibility_strategy", "is_allow_auto_update_schema", "schema_validation_enforced")
"""The policies on schemas."""

BROKER_KEYS: Final[Mapping[str, str]] = {
    "schema_compatibility_strategy": "schemaCompatibilityStrategy",
    "is_allow_auto_update_schema": "isAllowAutoUpdateSchemaEnabled",
    "schema_validation_enforced": "isSchemaValidationEnforced",
}
"""The key in the brokers' configuration for each of SCHEMA_POLICIES."""


def find_strategy(*policies: Policies | None) -> CompatibilityStrategy | None:
    """Return the first strategy that is set, given the policies from topic to namespace, or None."""
    for level in policies:
        strategy = level.schema_compatibility_strategy if level else None
        if strategy not in (None, CompatibilityStrategy.UNDEFINED):
            return strategy
    return None


@dataclass(frozen=True, slots=True)
class BrokerDefaults:
    """The broker settings in the project file, with Pulsar's defaults."""

    schema_compatibility_strategy: CompatibilityStrategy = CompatibilityStrategy.FULL
    is_allow_auto_update_schema: bool = True
    schema_validation_enforced: bool = False
    checkers: tuple[str, ...] = ()
    """The optional checkers of the brokers, and after a `!` the default checkers that they do not have (see `core.project`)."""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)
    """The brokers' values of unset settings by name, as far as they are known."""


@dataclass(frozen=True, slots=True)
class BrokerConfiguration:
    """The settings about schemas of the broker that answered.

    Attributes:
        broker: its address.
        values: the values of `SCHEMA_POLICIES` by name, as far as they are known.
        checkers: the class names of its checkers, of Pulsar's own without package; None if they are unknown.
        problem: a clause about why not everything is known, or "".
    """

    broker: str
    values: Mapping[str, Any] = field(default_factory=dict)
    checkers: frozenset[str] | None = None
    problem: str = ""


Level = Literal["kinds", "topic", "namespace", "default"]
"""The level that sets a policy in force."""

_S = CompatibilityStrategy

READS_OLD: Final = frozenset({_S.BACKWARD, _S.BACKWARD_TRANSITIVE, _S.FULL, _S.FULL_TRANSITIVE})
"""The strategies by which the new schema must read messages of old schemas."""

READ_BY_OLD: Final = frozenset({_S.FORWARD, _S.FORWARD_TRANSITIVE, _S.FULL, _S.FULL_TRANSITIVE})
"""The strategies by which old schemas must read messages of the new schema."""

TRANSITIVE: Final = frozenset({_S.BACKWARD_TRANSITIVE, _S.FORWARD_TRANSITIVE, _S.FULL_TRANSITIVE})
"""The strategies that check every live version, not only the latest."""


def list_guarantees(strategy: _S) -> frozenset[str]:
    """Return the guarantees of a strategy; a stricter strategy has a superset."""
    if strategy is _S.ALWAYS_INCOMPATIBLE:
        return frozenset({"new_reads_old", "old_reads_new", "all versions", "nothing may follow"})
    guarantees = {"new_reads_old"} if strategy in READS_OLD else set()
    guarantees |= {"old_reads_new"} if strategy in READ_BY_OLD else set()
    return frozenset(guarantees | ({"all versions"} if strategy in TRANSITIVE else set()))
