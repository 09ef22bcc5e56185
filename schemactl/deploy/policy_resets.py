"""Find what remains of a policy that Git no longer declares: the value that a namespace or a broker sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from schemactl.core.catalog import Namespace
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import SETTINGS, CompatibilityStrategy, Policies, find_strategy
from schemactl.deploy.registry_state import RegistryState
from schemactl.deploy.steps.set_policies import SetPolicies


class Inherited(NamedTuple):
    """The inheritance of a policy.

    Attributes:
        set_to: the value to set so that the policy is inherited.
        value: the value then in force, or None if it is unknown.
        from_namespace: whether a namespace sets that value.
    """

    set_to: Any
    value: Any
    from_namespace: bool


def find_inherited(
    name: NamespaceName | TopicName, policy: str, *, namespaces: Mapping[NamespaceName, Namespace], state: RegistryState
) -> Inherited:
    """Return the effect of resetting the policy; `namespaces` are the registry's namespaces.

    Brokers can unset a strategy. A boolean policy cannot be unset (as seen on Pulsar 4.0 and 4.2),
    so it gets the broker's own value; enforced validation gets false, since the broker's setting counts in addition. A setting
    can be removed, unless a namespace always has it.
    """
    if policy in SETTINGS:
        if isinstance(name, NamespaceName) and not SETTINGS[policy].removable:
            value = namespaces[name].policies.settings.get(policy)
            return Inherited(value, value, from_namespace=False)
        namespace = namespaces.get(name.namespace_name) if isinstance(name, TopicName) else None
        value = namespace.policies.settings.get(policy) if namespace else None
        if value is None or value == CompatibilityStrategy.UNDEFINED:
            default = state.defaults.settings.get(policy)
            return Inherited(CompatibilityStrategy.UNDEFINED, default, from_namespace=False)
        return Inherited(CompatibilityStrategy.UNDEFINED, value, from_namespace=True)
    if policy == "is_allow_auto_update_schema":
        value = state.defaults.is_allow_auto_update_schema
        return Inherited(value, value, from_namespace=False)
    if policy == "schema_validation_enforced" and isinstance(name, TopicName):
        # No request removes the value of a topic, so it gets the value of its namespace.
        namespace = namespaces.get(name.namespace_name)
        enforced = bool(namespace and namespace.policies.schema_validation_enforced)
        return Inherited(enforced, enforced or state.defaults.schema_validation_enforced, from_namespace=enforced)
    if policy == "schema_validation_enforced":
        return Inherited(set_to=False, value=state.defaults.schema_validation_enforced, from_namespace=False)
    if isinstance(name, NamespaceName):
        return Inherited(CompatibilityStrategy.UNDEFINED, state.default_strategies[name], from_namespace=False)
    namespace = namespaces.get(name.namespace_name)
    above = find_strategy(namespace.policies if namespace else None)
    default = state.default_strategies[name.namespace_name]
    return Inherited(CompatibilityStrategy.UNDEFINED, above or default, from_namespace=above is not None)


def make_reset(
    name: NamespaceName | TopicName,
    before: Policies,
    last: Policies,
    *,
    namespaces: Mapping[NamespaceName, Namespace],
    state: RegistryState,
) -> SetPolicies | None:
    """Return the step that resets the policies with the values that Git declared `last`, or None without any. Others are drift."""
    inherited_by_policy = {}
    for policy, value in before.managed().items():
        inherited = find_inherited(name, policy, namespaces=namespaces, state=state)
        if value == last.get(policy) and value != inherited.set_to:
            inherited_by_policy[policy] = inherited
    if not inherited_by_policy:
        return None
    return SetPolicies(
        name,
        Policies.of({policy: before.get(policy) for policy in inherited_by_policy}),
        Policies.of({policy: inherited.set_to for policy, inherited in inherited_by_policy.items()}),
        Policies.of(
            {policy: inherited.value for policy, inherited in inherited_by_policy.items() if inherited.from_namespace}
        ),
        Policies.of(
            {
                policy: inherited.value
                for policy, inherited in inherited_by_policy.items()
                if not inherited.from_namespace
            }
        ),
    )
