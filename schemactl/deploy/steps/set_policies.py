"""The step that sets policies of a namespace or topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from schemactl.comparison.changes import UNSET
from schemactl.core.errors import StalePlan
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies, get_setting_address
from schemactl.core.wording import format_policies
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.registry_state import describe_policy
from schemactl.deploy.steps.step import ApplyContext, PredictedState, Step, StepSign

_UNKNOWN_DEFAULT: Final = "the brokers' own behavior, which is unknown"


@dataclass(frozen=True, slots=True)
class SetPolicies(Step):
    """Set policies of a namespace or topic. Each setting has a separate step.

    Attributes:
        before, after: the old and new values of the changed policies; all other policies are None.
        from_namespace, from_default: the effective values of policies that Git no longer declares and that are reset, by the
            level that sets them.
        loses: how messages can be lost with the setting, as a clause, or "".
    """

    name: NamespaceName | TopicName
    before: Policies
    after: Policies
    from_namespace: Policies = field(default_factory=Policies)
    from_default: Policies = field(default_factory=Policies)
    loses: str = field(default="", kw_only=True)
    repairs: ClassVar = frozenset({DriftKind.POLICY, DriftKind.NAMESPACE_MISSING, DriftKind.TOPIC_MISSING})

    @property
    def address(self) -> str:
        """The address that allows the loss: the name, and the setting."""
        return get_setting_address(self.name, *self.after.settings)

    @property
    def action(self) -> str:
        """See `Step.action`."""
        return f"set_{'topic' if isinstance(self.name, TopicName) else 'namespace'}_policies"

    def describe(self) -> str:
        """See `Step.describe`."""
        inherited, changes = self._describe_inherited(), []
        for policy, value in format_policies(self.after).items():
            if self._is_reset(policy, value):
                changes.append(f"reset {policy} to {inherited.get(policy, _UNKNOWN_DEFAULT)}")
            else:
                changes.append(f"set {policy}: {value}")
        return f"{self.name}: {', '.join(changes)}"

    def list_lines(self) -> Iterator[tuple[StepSign, str]]:
        """See `Step.list_lines`."""
        old_values, inherited = format_policies(self.before), self._describe_inherited()
        for policy, value in format_policies(self.after).items():
            if self._is_reset(policy, value):
                yield "-", f"{policy}: {old_values[policy]} (now {inherited.get(policy, _UNKNOWN_DEFAULT)})"
            elif old_values.get(policy, "UNDEFINED") == "UNDEFINED":
                yield "+", f"{policy}: {value}"
            else:
                yield "~", f"{policy}: {old_values[policy]} -> {value}"
        if self.loses:
            yield "!", f"{self.loses} (allowed: {self.address})"

    def list_facts(self) -> Mapping[str, object]:
        """See `Step.list_facts`: the policies by their keys in namespace files, and the inherited values of reset policies."""
        after = self.after.managed()
        facts: dict[str, object] = {"before": {policy: self.before.get(policy) for policy in after}, "after": after}
        if self.loses:
            facts["loses"] = self.loses
        inherited = {"namespace": self.from_namespace.managed(), "default": self.from_default.managed()}
        return facts | {"inherited": inherited} if any(inherited.values()) else facts

    @property
    def needs(self) -> Permissions:
        """See `Step.needs`."""
        return Permissions(lose=frozenset({self.address})) if self.loses else Permissions()

    def predict(self, state: PredictedState) -> None:
        """See `Step.predict`."""
        state.overlay(self.name, self.after)

    def carry_out(self, context: ApplyContext) -> None:
        """See `Step.carry_out`."""
        registry, new_values = context.registry, self.after.managed()
        # A new namespace or topic has its broker's values, which no plan can know.
        if self.name not in context.created:
            policies = registry.read_policies(self.name, new_values.keys())
            changes = []
            for policy, new_value in new_values.items():
                old_value, value = self.before.get(policy), policies.get(policy)
                is_unset = _is_unset(policy, value) and _is_unset(policy, old_value)
                if value not in (old_value, new_value) and not is_unset:
                    changes.append(f"{policy} was {describe_policy(old_value)} and is {describe_policy(value)}")
            if changes:
                raise StalePlan(
                    f"{self.name}: its policies were not set, because another client has changed them since the plan was made "
                    f"({'; '.join(changes)})",
                    fix="look at a new plan: schemactl plan",
                )
        if isinstance(self.name, NamespaceName):
            if self.after.is_allow_auto_update_schema is False:
                registry.forget_relaxing(self.name)
            registry.set_namespace_policies(self.name, self.after)
        else:
            if self.after.schema_compatibility_strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
                registry.forget_relaxing(self.name)
            registry.set_topic_policies(self.name, self.after)

    def _is_reset(self, policy: str, value: str) -> bool:
        is_inherited = policy in format_policies(self.from_namespace) or policy in format_policies(self.from_default)
        return is_inherited or (policy in self.after.settings and value == "UNDEFINED")

    def _describe_inherited(self) -> dict[str, str]:
        """Map each policy that is reset to the value that it then inherits, with the origin of that value."""
        levels = ("from its namespace", self.from_namespace), ("the broker's default", self.from_default)
        return {
            policy: f"{value}, {level}"
            for level, policies in levels
            for policy, value in format_policies(policies).items()
        }


def _is_unset(policy: str, value: object) -> bool:
    # Brokers answer false for a topic without `schema_validation_enforced`.
    return value in UNSET or (policy == "schema_validation_enforced" and value is False)
