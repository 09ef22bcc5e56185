"""Check whether a class can read and write the approved schemas of a topic (`verify-client`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Literal, NamedTuple

from schemactl.core.errors import UsageError

if TYPE_CHECKING:
    from schemactl.broker.connect import PoliciesInForce
    from schemactl.classes.extraction import Role
    from schemactl.core.findings import Incompatibility
    from schemactl.core.names import TopicName
    from schemactl.core.policies import CompatibilityStrategy
    from schemactl.core.schema import Release, SchemaInfo, SchemaVersion


class Reason(NamedTuple):
    """A reason why a class does not fit a topic.

    Attributes:
        role: the role for which it does not fit.
        text: the reason.
        fix: what to do.
        version: the version that the reason concerns, or None for the topic.
        incompatibility: the incompatibility with this version.
        field: the field that the reason concerns, or "" if unknown.
    """

    role: Role
    text: str
    fix: str
    version: SchemaVersion | None = None
    incompatibility: Incompatibility | None = None
    field: str = ""

    @property
    def cause(self) -> tuple[object, ...]:
        """A key that is equal for reasons that differ only in the version, in which the field may have another path."""
        problem = self.incompatibility
        if problem is None:
            return self.role, self.text
        return self.role, problem.rule, problem.message, problem.strict_only, self.field or problem.pointer

    @property
    def rule(self) -> str:
        """The rule's id, as `explain` takes it, or ""."""
        return self.incompatibility.rule if self.incompatibility else ""

    @property
    def is_warning(self) -> bool:
        """Whether the class fits despite the reason: only strict readers fail, or the meaning of a value is doubtful."""
        return self.incompatibility is not None and not self.incompatibility.is_error

    @property
    def strict_only(self) -> bool:
        """Whether Pulsar's Java clients tolerate it."""
        return self.incompatibility is not None and self.incompatibility.strict_only


@dataclass(frozen=True, slots=True)
class Contract:
    """The approved schemas and policies of a topic.

    Attributes:
        name: the topic's name.
        versions: the versions with a schema, oldest first; for a KEY_VALUE topic, either the keys or the values.
        strategy: the compatibility strategy in force, or None if unknown.
        policies: the policies by which a broker judges a connect, or None if unknown or if the versions are keys or values.
        release: the Pulsar release whose answers are predicted.
    """

    name: TopicName
    versions: tuple[SchemaVersion, ...]
    strategy: CompatibilityStrategy | None
    policies: PoliciesInForce | None
    release: Release


class ClientVerdict(NamedTuple):
    """The result of checking a class against the contract of a topic.

    Attributes:
        class_: the class, as the command line names it.
        role: the role of the service, which may be `both`.
        contract: the approved schemas and policies.
        against: the versions that the class is compared with.
        same: the version with the schema of the class, or None.
        reasons: why the class does not fit, and warnings.
    """

    class_: str
    role: str
    contract: Contract
    against: Sequence[SchemaVersion]
    same: SchemaVersion | None
    reasons: Sequence[Reason]

    @property
    def failed_roles(self) -> set[Role]:
        """The roles for which the class does not fit."""
        return {reason.role for reason in self.reasons if not reason.is_warning}


def choose_versions_to_check(contract: Contract, same: SchemaVersion | None) -> Literal["all", "latest"]:
    """Return the default of --against for a class with the schema of `same`: the versions that the strategy protects."""
    from schemactl.core.policies import TRANSITIVE

    if contract.strategy is None:
        # The latest version was approved together with its breaking changes.
        return "latest" if same == contract.versions[-1] else "all"
    return "all" if contract.strategy in TRANSITIVE else "latest"


def select_versions(text: str, contract: Contract) -> tuple[SchemaVersion, ...]:
    """Return the versions that --against selects, oldest first.

    Raises:
        UsageError: if the text is not `latest`, `all` or a list of version numbers.
    """
    versions = contract.versions
    if text == "all":
        return versions
    if text == "latest":
        return versions[-1:]
    versions_by_number = {version.number: version for version in versions}
    numbers = text.replace(" ", "").split(",")
    if not all(number.isdecimal() and int(number) in versions_by_number for number in numbers):
        raise UsageError(
            f"--against {text}: expected latest, all, or numbers among {', '.join(map(str, versions_by_number))}",
            fix="--against all",
        )
    return tuple(versions_by_number[number] for number in sorted(map(int, set(numbers))))


def find_unreadable_versions(
    role: Role, info: SchemaInfo, against: Sequence[SchemaVersion], *, language: str = ""
) -> Iterator[Reason]:
    """Yield why the class cannot read the versions, or why their readers cannot read it; newest version first.

    A consumer with a class of the client in a `language` reads by the rules of that client.
    """
    from schemactl.comparison.compatibility import find_changed_values
    from schemactl.core.policies import CompatibilityStrategy
    from schemactl.formats import explain

    direction = "BACKWARD" if role == "consumer" else "FORWARD"
    strategy = CompatibilityStrategy[f"{direction}_TRANSITIVE"]
    versions_by_number = {version.number: version for version in against}
    rules = language if role == "consumer" else ""
    for breakage in find_changed_values(against, info, strategy, language=rules):
        version = versions_by_number[breakage.against]
        if version.info is not None:
            explanation = explain(breakage, new=info, old=version.info)
            yield Reason(
                role, explanation.reason, explanation.fix, version, breakage.incompatibility, explanation.field
            )


def find_other_form(info: SchemaInfo, version: SchemaVersion) -> Iterator[Reason]:
    """Yield a reason if a producer's class is sent with other bytes than its version: to a broker it is another version then."""
    from schemactl.formats.native_definitions import find_rendering, list_native_parts

    if version.info is None or version.info.schema == info.schema or not list_native_parts(info):
        return
    if rendering := find_rendering(version.info):
        yield Reason(
            "producer",
            f"It has the content of version {version.number} in another form: the topic is registered as {rendering.capitalize()}'s "
            "client sends it, and brokers compare bytes. They reject the class, or store it as a further version",
            "declare `protobuf: {rendering: python}` if the producers use Python, or send the registered text: "
            "`schemactl docs protobuf-forms`",
            version,
        )


def find_rejections(role: Role, info: SchemaInfo, contract: Contract, class_: str) -> Iterator[Reason]:
    """Yield a reason if a broker rejects the connect of the class while a producer and a consumer are connected."""
    from schemactl.broker.connect import TopicState, admit

    if contract.policies is None:
        return
    state = TopicState(contract.versions, producers=1, consumers=1, has_data=True)
    decision = admit(role, info, state, contract.policies, contract.release)
    if not decision.allowed:
        short = str(contract.name).removeprefix("persistent://")
        fix = f"`schemactl extract {quote(class_)} --out FILE`, then `schemactl admit {role} {quote(short)} --file FILE` shows what the broker compares"
        yield Reason(
            role, f"A broker does not let it connect ({decision.row}): {decision.error}: {decision.first_line}", fix
        )
