"""Resetting policies that a namespace or topic no longer declares to what it inherits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from schemactl.core.catalog import Namespace
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import SCHEMA_POLICIES, SETTINGS, CompatibilityStrategy, Policies, strategy_of
from schemactl.plan.registry_state import RegistryState
from schemactl.plan.steps import SetPolicies


class Inherited(NamedTuple):
    """The value to set so that a policy is inherited, the value then in force (None: unknown), and whether a namespace sets that."""

    set_to: Any
    value: Any
    from_namespace: bool


def inherit(
    name: NamespaceName | TopicName,
    policy: str,
    *,
    spaces: Mapping[NamespaceName, Namespace],
    state: RegistryState,
) -> Inherited:
    """Return the effect of resetting the policy; `spaces` are the registry's namespaces.

    Brokers can unset a strategy. A boolean policy, which only namespaces have, cannot be unset (as seen on Pulsar 4.0 and 4.2),
    so it gets the broker's own value; enforced validation gets false, since the broker's setting counts in addition. A setting
    can be removed, except for those that a namespace always has, which stay.
    """
    if policy in SETTINGS:
        if isinstance(name, NamespaceName) and not SETTINGS[policy].removable:
            held = spaces[name].policies.settings.get(policy)
            return Inherited(held, held, from_namespace=False)
        space = spaces.get(name.namespace_name) if isinstance(name, TopicName) else None
        value = space.policies.settings.get(policy) if space else None
        if value is None or value == CompatibilityStrategy.UNDEFINED:
            default = state.defaults.settings.get(policy)
            return Inherited(CompatibilityStrategy.UNDEFINED, default, from_namespace=False)
        return Inherited(CompatibilityStrategy.UNDEFINED, value, from_namespace=True)
    if policy == "is_allow_auto_update_schema":
        value = state.defaults.is_allow_auto_update_schema
        return Inherited(value, value, from_namespace=False)
    if policy == "schema_validation_enforced":
        return Inherited(set_to=False, value=state.defaults.schema_validation_enforced, from_namespace=False)
    if isinstance(name, NamespaceName):
        return Inherited(
            CompatibilityStrategy.UNDEFINED, state.default_strategies[name], from_namespace=False
        )
    space = spaces.get(name.namespace_name)
    above = strategy_of(space.policies if space else None)
    default = state.default_strategies[name.namespace_name]
    return Inherited(CompatibilityStrategy.UNDEFINED, above or default, from_namespace=above is not None)


def reset(
    name: NamespaceName | TopicName,
    before: Policies,
    last: Policies,
    *,
    spaces: Mapping[NamespaceName, Namespace],
    state: RegistryState,
) -> SetPolicies | None:
    """Return the step that resets the policies that are as Git declared them `last`; None: there are none. Others are drift."""
    found = {}
    for policy, held in before.managed().items():
        inherited = inherit(name, policy, spaces=spaces, state=state)
        if held == last.get(policy) and held != inherited.set_to:
            found[policy] = inherited
    if not found:
        return None
    return SetPolicies(
        name,
        Policies.of({policy: before.get(policy) for policy in found}),
        Policies.of({policy: each.set_to for policy, each in found.items()}),
        Policies.of({policy: each.value for policy, each in found.items() if each.from_namespace}),
        Policies.of({policy: each.value for policy, each in found.items() if not each.from_namespace}),
    )


def parts(step: SetPolicies) -> Iterator[SetPolicies]:
    """Yield the step for the policies about schemas, which may be empty, and then one step for each setting."""
    sides = (step.before, step.after, step.from_namespace, step.from_default)
    for names in (SCHEMA_POLICIES, *((name,) for name in SETTINGS if name in step.after.settings)):
        yield SetPolicies(
            step.name, *(Policies.of({name: each.get(name) for name in names}) for each in sides)
        )


def loss(step: SetPolicies, *, spaces: Mapping[NamespaceName, Namespace], state: RegistryState) -> str:
    """Return how messages can be lost by the step for a setting, as a clause; "" if they cannot."""
    ((setting, after),) = step.after.settings.items()
    there = state.catalog.get(step.name)
    if there is None or there.deleted:
        return ""
    inherited = inherit(step.name, setting, spaces=spaces, state=state).value
    before = step.before.get(setting)
    return SETTINGS[setting].loss(
        inherited if before is None else before,
        inherited if after == CompatibilityStrategy.UNDEFINED else after,
    )
