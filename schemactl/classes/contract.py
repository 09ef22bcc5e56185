"""`verify-client`: whether a class reads and writes the approved schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from schemactl.core.errors import UsageError

if TYPE_CHECKING:
    from schemactl.broker.connect import PoliciesInForce
    from schemactl.codec.record_classes import Role
    from schemactl.core.findings import Incompatibility
    from schemactl.core.names import TopicName
    from schemactl.core.policies import CompatibilityStrategy
    from schemactl.core.schema import Release, SchemaInfo, SchemaVersion


class Reason(NamedTuple):
    """Why a class is not what a topic needs.

    Attributes:
        role: the role that it fails.
        text: the reason.
        fix: what to do.
        version: the version that it concerns; None: the topic.
        incompatibility: with that version.
        field: that it is about; "": not known.
    """

    role: Role
    text: str
    fix: str
    version: SchemaVersion | None = None
    incompatibility: Incompatibility | None = None
    field: str = ""

    @property
    def cause(self) -> tuple[object, ...]:
        """What reasons have in common that differ in the version alone, in which the field may have another place."""
        found = self.incompatibility
        if found is None:
            return self.role, self.text
        return self.role, found.rule, found.message, found.strict_only, self.field or found.pointer

    @property
    def rule(self) -> str:
        """The rule as `explain` takes it; "": no rule."""
        return self.incompatibility.rule if self.incompatibility else ""

    @property
    def strict_only(self) -> bool:
        """Whether Pulsar's Java clients get through all the same."""
        return self.incompatibility is not None and self.incompatibility.strict_only


@dataclass(frozen=True, slots=True)
class Contract:
    """What is approved for a topic.

    Attributes:
        name: the topic's.
        versions: those with a schema, oldest first; of a KEY_VALUE topic, one half of each.
        strategy: in force; None: it is not known.
        policies: those that a broker judges a connect by; None: they are not known, or it is a half.
        release: whose answers to predict.
    """

    name: TopicName
    versions: tuple[SchemaVersion, ...]
    strategy: CompatibilityStrategy | None
    policies: PoliciesInForce | None
    release: Release


class ClientVerdict(NamedTuple):
    """Whether a class reads and writes what is approved.

    Attributes:
        class_: as the command line names it.
        role: of the service; `both` is one, too.
        contract: what is approved.
        against: the versions that count.
        same: the version that has the schema of the class; None: no version has.
        reasons: why not, and warnings.
    """

    class_: str
    role: str
    contract: Contract
    against: Sequence[SchemaVersion]
    same: SchemaVersion | None
    reasons: Sequence[Reason]

    @property
    def failed_roles(self) -> set[Role]:
        """The roles that the class is unfit for."""
        return {each.role for each in self.reasons if not each.strict_only}


def _default_against(contract: Contract, same: SchemaVersion | None) -> Literal["all", "latest"]:
    """Return what counts without --against for a class that is the version `same`: what the strategy protects, as far as it is known."""
    from schemactl.core.policies import TRANSITIVE

    if contract.strategy is None:
        # The latest version was approved with all that breaks by it.
        return "latest" if same == contract.versions[-1] else "all"
    return "all" if contract.strategy in TRANSITIVE else "latest"


def _against(text: str, contract: Contract) -> tuple[SchemaVersion, ...]:
    """Return the versions that count, oldest first."""
    versions = contract.versions
    known = {each.number: each for each in versions}
    if text == "all":
        return versions
    if text == "latest":
        return versions[-1:]
    wanted = text.replace(" ", "").split(",")
    if not all(each.isdecimal() and int(each) in known for each in wanted):
        raise UsageError(
            f"--against {text}: expected latest, all, or numbers among {', '.join(map(str, known))}",
            fix="--against all",
        )
    return tuple(known[number] for number in sorted(map(int, set(wanted))))


def _unreadable(role: Role, info: SchemaInfo, against: Sequence[SchemaVersion]) -> Iterator[Reason]:
    """Yield why the class cannot read those versions, or their readers cannot read it; newest version first."""
    from schemactl.comparison.compatibility import breakages
    from schemactl.core.policies import CompatibilityStrategy
    from schemactl.formats import explain

    direction = "BACKWARD" if role == "consumer" else "FORWARD"
    strategy = CompatibilityStrategy[f"{direction}_TRANSITIVE"]
    versions = {each.number: each for each in against}
    for each in breakages(against, info, strategy, by_any_release=True):
        version = versions[each.against]
        if version.info is not None:
            explanation = explain(each, new=info, old=version.info)
            yield Reason(role, explanation.reason, explanation.fix, version, each.incompatibility, explanation.field)


def _rejected(role: Role, info: SchemaInfo, contract: Contract, class_: str) -> Iterator[Reason]:
    """Yield that a broker does not let the class connect, with others connected as in service."""
    from schemactl.broker.connect import TopicState, admit

    if contract.policies is None:
        return
    state = TopicState(contract.versions, producers=1, consumers=1, has_data=True)
    decision = admit(role, info, state, contract.policies, contract.release)
    if not decision.allowed:
        short = str(contract.name).removeprefix("persistent://")
        fix = f"`schemactl extract {class_} --out FILE`, then `schemactl admit {role} {short} --file FILE` shows what the broker compares"
        yield Reason(
            role, f"A broker does not let it connect ({decision.row}): {decision.error}: {decision.first_line}", fix
        )
