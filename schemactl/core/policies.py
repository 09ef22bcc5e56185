"""`CompatibilityStrategy` with the readers that each strategy protects, `Policies`, and the table of retention, TTL and other settings.

What files may declare, what a registry is asked and told, what a plan shows, and what needs the user's word because messages can
be lost: all of it follows from the table. A setting takes no part in version numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal

LONG: Final = 2**63 - 1
"""The largest of Java's long."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `least` to `most`."""

    expected: str
    least: int
    most: int = 2**31 - 1

    def fits(self, value: object) -> bool:
        """Whether `value` is one."""
        return isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most


@dataclass(frozen=True, slots=True)
class Switch:
    """True or false."""

    def fits(self, value: object) -> bool:
        """Whether `value` is one of the two."""
        return isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some names."""

    noun: str
    names: tuple[str, ...]

    def fits(self, value: object) -> bool:
        """Whether `value` is one of them."""
        return value in self.names


@dataclass(frozen=True, slots=True)
class Names:
    """A set of names, as a list that is not empty."""

    noun: str
    pattern: str

    def fits(self, value: object) -> bool:
        """Whether `value` is a list of texts."""
        return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


@dataclass(frozen=True, slots=True)
class Parts:
    """A mapping that has each of these parts, and no others; `about` says what each is, for editors."""

    parts: Mapping[str, Whole | Switch | OneOf]
    about: Mapping[str, str]

    def fits(self, value: object) -> bool:
        """Whether `value` has each part."""
        return isinstance(value, dict) and all(kind.fits(value.get(key)) for key, kind in self.parts.items())


Loses = Callable[[Any, Any], str]
"""Says how messages can be lost where a value follows another, as a clause; "": they cannot. None before: what it is is not known."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the table.

    Attributes:
        name: in declarations, and among the policies that the admin API shows of a namespace.
        about: what it says, for editors.
        shape: which values it has.
        path: of its endpoint below a namespace; `method` is how it is set there.
        topic_path: of its endpoint below a topic, which takes a POST; "": topics have none.
        topic_query: the query parameter that takes the value there; "": the body does.
        default: what Pulsar's brokers do where nothing is set; None: that depends on the cluster.
        broker: the name of the brokers' own setting for it; for a mapping, by its parts, of which the first that is set counts.
        loses: when messages can be lost; None: never.
        wrong: says what Pulsar rejects in a value that has the shape; "": nothing.
        removable: a namespace can do without it.
    """

    name: str
    about: str
    shape: Whole | Switch | Names | Parts
    path: str
    topic_path: str = ""
    method: str = "POST"
    topic_query: str = ""
    default: Any = None
    broker: str | Mapping[str, tuple[str, ...]] = ""
    loses: Loses | None = None
    wrong: Callable[[Any], str] = field(default=lambda _value: "")
    removable: bool = True

    def loss(self, before: Any, after: Any) -> str:
        """Return how messages can be lost where `after` comes into force, as a clause; "": they cannot. None: that is not known."""
        if self.loses is None:
            return ""
        if after is None:
            return "what its brokers do then is not known" if self.removable else ""
        return self.loses(before, after)

    def normal(self, value: Any) -> Any:
        """Return what a broker answers, or a file says, in the one form in which values are compared.

        Raise ValueError where it is no value of this setting.
        """
        if not self.shape.fits(value):
            raise ValueError(f"{self.name} has no such value")
        if isinstance(self.shape, Parts):
            return {key: value[key] for key in self.shape.parts}
        return sorted(set(value)) if isinstance(self.shape, Names) else value


def _retained_less(before: Any, after: Any) -> str:
    def is_less(part: str) -> bool:
        had = -1 if before is None else before[part]
        has = after[part]
        return bool(has != -1 and (had == -1 or has < had))

    less = [part for part in after if is_less(part)]
    return "acknowledged messages that were retained are deleted" if less else ""


def _half_retained(value: Any) -> str:
    limits = set(value.values())
    return "one limit is 0 and the other is not: nothing would be kept" if 0 in limits and limits != {0} else ""


def _expires_sooner(before: Any, after: Any) -> str:
    sooner = after > 0 and (not before or after < before)
    return "messages that no subscription has acknowledged in that time are lost" if sooner else ""


_WHEN_CAUGHT_UP = "delete_when_subscriptions_caught_up"


def _deletes_more(before: Any, after: Any) -> str:
    mode, after_s, deletes = "inactiveTopicDeleteMode", "maxInactiveDurationSeconds", "deleteWhileInactive"
    if not after[deletes]:
        return ""
    more = (
        before is None
        or not before[deletes]
        or after[after_s] < before[after_s]
        or (after[mode] == _WHEN_CAUGHT_UP and before[mode] != _WHEN_CAUGHT_UP)
    )
    return "inactive topics are deleted, with their messages and schemas" if more else ""


def _fewer_clusters(before: Any, after: Any) -> str:
    left = sorted(set(before or ()) - set(after))
    return f"brokers of {', '.join(left)} delete the topics there, with their messages and schemas" if left else ""


REPLICATION: Final = "replication_clusters"

SETTINGS: Final[dict[str, Setting]] = {
    row.name: row
    for row in (
        Setting(
            "retention_policies",
            "How long, and up to which size, acknowledged messages are kept; -1: without end, 0 both: not at all.",
            Parts(
                {
                    "retentionTimeInMinutes": Whole("minutes, or -1: without end", -1),
                    "retentionSizeInMB": Whole("megabytes, or -1: without end", -1, LONG),
                },
                {
                    "retentionTimeInMinutes": "How long; -1: without end.",
                    "retentionSizeInMB": "Up to which size, for each topic or partition; -1: without end.",
                },
            ),
            path="retention",
            topic_path="retention",
            default={"retentionTimeInMinutes": 0, "retentionSizeInMB": 0},
            broker={
                "retentionTimeInMinutes": ("defaultRetentionTimeInMinutes",),
                "retentionSizeInMB": ("defaultRetentionSizeInMB",),
            },
            loses=_retained_less,
            wrong=_half_retained,
        ),
        Setting(
            "message_ttl_in_seconds",
            "After so long a message counts as acknowledged by every subscription; 0: never.",
            Whole("seconds, or 0: never", 0),
            path="messageTTL",
            topic_path="messageTTL",
            topic_query="messageTTL",
            default=0,
            broker="ttlDurationDefaultInSeconds",
            loses=_expires_sooner,
        ),
        Setting(
            "inactive_topic_policies",
            "Whether topics that nobody uses are deleted, and when. Their schemas go with them.",
            Parts(
                {
                    "inactiveTopicDeleteMode": OneOf("delete mode", ("delete_when_no_subscriptions", _WHEN_CAUGHT_UP)),
                    "maxInactiveDurationSeconds": Whole("seconds, 1 or more", 1),
                    "deleteWhileInactive": Switch(),
                },
                {
                    "inactiveTopicDeleteMode": "Which topics: those without subscriptions, or also those that have read everything.",
                    "maxInactiveDurationSeconds": "After how many seconds without clients.",
                    "deleteWhileInactive": "Whether they are deleted at all.",
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
            loses=_deletes_more,
        ),
        Setting(
            "deduplicationEnabled",
            "Whether a message that a producer sends twice is stored once.",
            Switch(),
            path="deduplication",
            topic_path="deduplicationEnabled",
            default=False,
            broker="brokerDeduplicationEnabled",
        ),
        Setting(
            "compaction_threshold",
            "The backlog in bytes from which on a topic is compacted; 0: never by itself.",
            Whole("bytes, or 0: never by itself", 0, LONG),
            path="compactionThreshold",
            topic_path="compactionThreshold",
            method="PUT",
            default=0,
            broker="brokerServiceCompactionThresholdInBytes",
        ),
        Setting(
            REPLICATION,
            "The clusters that have the topics, and between which messages are replicated.",
            Names("the name of a cluster", r"^\S+$"),
            path="replication",
            topic_path="replication",
            loses=_fewer_clusters,
            removable=False,
        ),
    )
}
"""The table, by name, in the order in which a plan sets them."""


def address(name: object, setting: str) -> str:
    """Return how a plan names a setting of a namespace or topic, and the user allows what it can lose."""
    return f"{name}:{setting}"


class CompatibilityStrategy(StrEnum):
    """Pulsar's SchemaCompatibilityStrategy; UNDEFINED asks the next level (topic, namespace, broker)."""

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
    """The policies of a namespace or topic. None: not managed here; UNDEFINED: reset to "ask the next level".

    `settings` are the values of SETTINGS, by name: those that are managed, or UNDEFINED.
    """

    schema_compatibility_strategy: CompatibilityStrategy | None = None
    is_allow_auto_update_schema: bool | None = None
    schema_validation_enforced: bool | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Policies:
        """Return the policies among these values, by name; a strategy may be text. Raise ValueError where a value is none."""
        strategy = values.get("schema_compatibility_strategy")
        return cls(
            None if strategy is None else CompatibilityStrategy(strategy),
            values.get("is_allow_auto_update_schema"),
            values.get("schema_validation_enforced"),
            {
                name: value if value == CompatibilityStrategy.UNDEFINED else row.normal(value)
                for name, row in SETTINGS.items()
                if (value := values.get(name)) is not None
            },
        )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the name of every policy: those about schemas, and the settings."""
        return (*SCHEMA_POLICIES, *SETTINGS)

    def get(self, name: str) -> Any:
        """Return the policy of that name; None: it is not managed."""
        return getattr(self, name) if name in SCHEMA_POLICIES else self.settings.get(name)

    def managed(self) -> dict[str, Any]:
        """Return the policies that are not None, by name."""
        return {name: value for name in self.names() if (value := self.get(name)) is not None}

    def without(self, managed: Policies) -> Policies:
        """Return these policies, without those that `managed` has."""
        return Policies.of({**self.managed(), **dict.fromkeys(managed.managed())})

    def overlaid(self, managed: Policies) -> Policies:
        """Return these policies, with those that `managed` has in place of their own."""
        return Policies.of({**self.managed(), **managed.managed()})


SCHEMA_POLICIES: Final = ("schema_compatibility_strategy", "is_allow_auto_update_schema", "schema_validation_enforced")
"""The policies about schemas themselves."""


def strategy_of(*policies: Policies | None) -> CompatibilityStrategy | None:
    """Return the first strategy that is set in `policies`, which go from topic to namespace; None: none is."""
    for each in policies:
        strategy = each.schema_compatibility_strategy if each else None
        if strategy not in (None, CompatibilityStrategy.UNDEFINED):
            return strategy
    return None


@dataclass(frozen=True, slots=True)
class BrokerDefaults:
    """The broker's own settings, as the project file has them, with Pulsar's defaults."""

    schema_compatibility_strategy: CompatibilityStrategy = CompatibilityStrategy.FULL
    is_allow_auto_update_schema: bool = True
    schema_validation_enforced: bool = False
    checkers: tuple[str, ...] = ()
    """The optional checkers that the brokers are configured with (see OPTIONAL_CHECKERS)."""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)
    """What they do where a setting is not set, by its name; what is not known is not there."""


Level = Literal["topic", "namespace", "default"]
"""Where a policy in force was set."""

_S = CompatibilityStrategy

READS_OLD: Final = frozenset({_S.BACKWARD, _S.BACKWARD_TRANSITIVE, _S.FULL, _S.FULL_TRANSITIVE})
"""The strategies that have the new schema read what an old one wrote."""

READ_BY_OLD: Final = frozenset({_S.FORWARD, _S.FORWARD_TRANSITIVE, _S.FULL, _S.FULL_TRANSITIVE})
"""The strategies that have an old schema read what the new one writes."""

TRANSITIVE: Final = frozenset({_S.BACKWARD_TRANSITIVE, _S.FORWARD_TRANSITIVE, _S.FULL_TRANSITIVE})
"""The strategies that look at every live version, not only the latest."""


def protects(strategy: _S) -> frozenset[str]:
    """Return what a strategy protects: the more it rejects, the larger the set."""
    if strategy is _S.ALWAYS_INCOMPATIBLE:
        return frozenset({"new_reads_old", "old_reads_new", "all versions", "nothing may follow"})
    found = {"new_reads_old"} if strategy in READS_OLD else set()
    found |= {"old_reads_new"} if strategy in READ_BY_OLD else set()
    return frozenset(found | ({"all versions"} if strategy in TRANSITIVE else set()))
