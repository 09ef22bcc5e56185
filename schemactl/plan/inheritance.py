"""What becomes of a policy that a namespace or topic does not set any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from schemactl.model import CompatibilityStrategy, Namespace, NamespaceName, TopicName, strategy_of
from schemactl.plan.registry_state import RegistryState


class Inherited(NamedTuple):
    """What to set so that a policy is inherited; the value in force then, and whether the namespace sets that."""

    set_to: CompatibilityStrategy | bool
    value: CompatibilityStrategy | bool
    from_namespace: bool


def inherit(
    name: NamespaceName | TopicName,
    policy: str,
    *,
    spaces: Mapping[NamespaceName, Namespace],
    state: RegistryState,
) -> Inherited:
    """Return what a reset of the policy comes to; `spaces` are the registry's namespaces.

    Brokers can unset a strategy. What is true or false, which only namespaces declare, can never be unset again (as seen on Pulsar
    4.0 and 4.2), so it gets the broker's own value; of enforced validation false, which the broker's setting is added to.
    """
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
