"""Compare the configuration of a target's brokers with the settings that `check` assumes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

from schemactl.broker.checkers import find_checked_type, list_classes
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.json_values import make_view
from schemactl.core.names import NamespaceName
from schemactl.core.policies import BROKER_KEYS, BrokerConfiguration, BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.project import CHECKER_PACKAGE, CHECKERS_KEY, DEFAULT_CHECKERS, OPTIONAL_CHECKERS
from schemactl.core.schema import Release, SchemaType
from schemactl.core.wording import format_policy_value
from schemactl.declare.target_numbers import Acceptance, AcceptanceReason


@dataclass(frozen=True, slots=True)
class BrokerDifference:
    """A setting of the brokers that differs from the project file.

    Attributes:
        key: the key in broker.conf.
        expected: the value that `check` assumes; for a checker, whether it is listed.
        actual: the value of the broker that answered.
        checker: the class name of the checker, or "" for a policy.
        namespaces: the namespaces of declared topics whose predictions depend on it, by the target's names.
        fix: the ways to repair it, one a line.
        policy: the policy, or "" for a checker.
        accepted: the reason of its acceptance; None if it is not accepted.
    """

    key: str
    expected: CompatibilityStrategy | bool
    actual: CompatibilityStrategy | bool
    fix: str
    namespaces: tuple[NamespaceName, ...] = ()
    checker: str = ""
    policy: str = ""
    accepted: AcceptanceReason | None = None

    @property
    def part(self) -> tuple[str, str]:
        """The policy or checker with its value, as an acceptance has it."""
        return self.policy or self.checker.removeprefix(CHECKER_PACKAGE), str(self.actual)

    @property
    def is_drift(self) -> bool:
        """Whether a prediction depends on it, and it is not accepted."""
        return bool(self.namespaces) and self.accepted is None

    @property
    def message(self) -> str:
        """The difference as a sentence without a full stop."""
        if self.checker:
            states = {True: "lists", False: "does not list"}
            text = f"{self.key} {states[bool(self.actual)]} {self.checker}, and the project file {states[bool(self.expected)]} it"
        else:
            text = f"{self.key} is {format_policy_value(self.actual)}, and the project file has {format_policy_value(self.expected)}"
        names = ", ".join(map(str, self.namespaces))
        accepted = f"; accepted: {self.accepted}" if self.accepted else ""
        return f"{text}; {f'it counts in {names}' if names else 'no declared topic depends on it'}{accepted}"


@dataclass(frozen=True, slots=True)
class BrokerComparison:
    """The configuration of the brokers next to the project file.

    Attributes:
        broker: the address of the broker that answered.
        problem: a clause about why not everything was compared, or "".
        differences: the differences.
        unused: the acceptance, if a part of it no longer describes the brokers.
    """

    broker: str
    problem: str = ""
    differences: tuple[BrokerDifference, ...] = ()
    unused: Acceptance | None = None

    @property
    def drift(self) -> tuple[BrokerDifference, ...]:
        """The differences on which a prediction depends, and that are not accepted."""
        return tuple(difference for difference in self.differences if difference.is_drift)

    def accept(self, decision: AcceptanceReason) -> Acceptance | None:
        """Return the acceptance of all differences on which a prediction depends, or None without such a difference."""
        differences = [difference for difference in self.differences if difference.namespaces]
        if not differences:
            return None
        policies = {difference.policy: difference.actual for difference in differences if difference.policy}
        checkers = {difference.part[0]: bool(difference.actual) for difference in differences if difference.checker}
        return Acceptance(policies=Policies.of(policies), checkers=checkers, decision=decision)


def compare_configuration(
    defaults: BrokerDefaults,
    configuration: BrokerConfiguration,
    release: Release,
    git: Catalog,
    *,
    accepted: Acceptance | None = None,
    today: date | None = None,
) -> BrokerComparison:
    """Compare the configuration of the brokers with the project file.

    Args:
        defaults: the brokers' settings in the project file.
        configuration: the settings of the broker that answered.
        release: the release of the brokers.
        git: the approved history, by the target's names.
        accepted: the accepted settings of the brokers, or None.
        today: the day (UTC), by which the acceptance expires.
    """
    topics = [topic for topic in git.topics.values() if not topic.deleted]
    differences = (
        *_compare_policies(defaults, configuration, topics, git),
        *_compare_checkers(defaults, configuration, release, topics),
    )
    if accepted is None:
        return BrokerComparison(configuration.broker, configuration.problem, differences)
    is_valid = today is None or accepted.is_valid_on(today)
    differences = tuple(
        replace(difference, accepted=accepted.decision)
        if is_valid and difference.part in accepted.parts
        else difference
        for difference in differences
    )
    # Where the configuration cannot be read, nothing shows that an acceptance is obsolete.
    is_used = accepted.parts <= {difference.part for difference in differences}
    unused = None if is_used or configuration.problem else accepted
    return BrokerComparison(configuration.broker, configuration.problem, differences, unused)


def _compare_policies(
    defaults: BrokerDefaults, configuration: BrokerConfiguration, topics: list[Topic], git: Catalog
) -> Iterator[BrokerDifference]:
    for policy, key in BROKER_KEYS.items():
        expected, actual = getattr(defaults, policy), configuration.values.get(policy)
        if actual is None or actual == expected:
            continue
        namespaces = tuple(
            sorted({topic.name.namespace_name for topic in topics if _depends_on_default(topic, policy, git)})
        )
        fix = (
            f"write `defaults: {{{policy}: {format_policy_value(actual)}}}` to the project file, and merge it\n"
            f"declare `{policy}` for each of these namespaces\n"
            f"set {key}={format_policy_value(expected)} in broker.conf of every broker, and restart them"
        )
        yield BrokerDifference(key, expected, actual, fix, namespaces, policy=policy)


def _depends_on_default(topic: Topic, policy: str, git: Catalog) -> bool:
    """Return whether the value of the brokers counts for a declared topic."""
    namespace = git.namespaces.get(topic.name.namespace_name)
    levels = [topic.policies, *([namespace.policies] if namespace else [])]
    values = [value for level in levels if (value := level.get(policy)) not in (None, CompatibilityStrategy.UNDEFINED)]
    # The brokers' own enforcement counts in addition to the value of a topic or namespace.
    return not values or (policy == "schema_validation_enforced" and not values[0])


def _compare_checkers(
    defaults: BrokerDefaults, configuration: BrokerConfiguration, release: Release, topics: list[Topic]
) -> Iterator[BrokerDifference]:
    if configuration.checkers is None:
        return
    expected = list_classes(release, defaults.checkers)
    for name in sorted(expected ^ configuration.checkers):
        is_listed, is_optional, schema_type = (
            name in configuration.checkers,
            name in OPTIONAL_CHECKERS,
            find_checked_type(name),
        )
        # The checker of the type compares versions of these topics; a KEY_VALUE may contain any type.
        namespaces = {
            topic.name.namespace_name
            for topic in topics
            for schema in ([kind.schema for kind in topic.kinds] if topic.kinds else [topic.schema])
            if schema_type and schema and schema.type in (schema_type, SchemaType.KEY_VALUE)
        }
        if is_optional or name in DEFAULT_CHECKERS:
            key = "protobuf: {checkers: [...]}" if is_optional else "defaults: {excluded_checkers: [...]}"
            fix = (
                f"{'add it to' if is_listed == is_optional else 'remove it from'} `{key}` of the project file, and merge it\n"
                f"{'remove it from' if is_listed else 'add it to'} {CHECKERS_KEY} in broker.conf of every broker, and restart them"
            )
        else:
            fix = "install a package that predicts it: `schemactl docs how-to/serve`"
        full_name = CHECKER_PACKAGE + name if "." not in name else name
        yield BrokerDifference(CHECKERS_KEY, not is_listed, is_listed, fix, tuple(sorted(namespaces)), full_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDifferenceView:
    """A `BrokerDifference` in JSON."""

    key: str
    checker: str | None
    expected: CompatibilityStrategy | bool
    actual: CompatibilityStrategy | bool
    namespaces: tuple[NamespaceName, ...]
    accepted: AcceptanceReason | None
    message: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerComparisonView:
    """A `BrokerComparison` in JSON."""

    broker: str
    problem: str | None
    differences: tuple[BrokerDifferenceView, ...]

    @classmethod
    def from_comparison(cls, comparison: BrokerComparison | None) -> BrokerComparisonView | None:
        """Return the view of a comparison, or None if nothing was compared."""
        if comparison is None:
            return None
        differences = tuple(make_view(BrokerDifferenceView, difference) for difference in comparison.differences)
        return make_view(cls, comparison, differences=differences)
