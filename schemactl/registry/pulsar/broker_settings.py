"""The brokers' own settings, which only a superuser may read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy
from schemactl.registry.pulsar import settings
from schemactl.registry.pulsar.connection import AdminConnection
from schemactl.registry.pulsar.replies import strategy_named

_SWITCHES: Final = {
    "is_allow_auto_update_schema": "isAllowAutoUpdateSchemaEnabled",
    "schema_validation_enforced": "isSchemaValidationEnforced",
}
"""The settings behind the policies that are true or false."""

_STRATEGY: Final = "schemaCompatibilityStrategy"
_POLICIES_OF_TOPICS: Final = "topicPoliciesServiceClassName"
_AS_MESSAGES: Final = "SystemTopicBasedTopicPoliciesService"
"""The class that brokers keep policies of topics with, unless another one is configured."""

_SHAPE: Final = dict.fromkeys(
    (_STRATEGY, _POLICIES_OF_TOPICS, *_SWITCHES.values(), *settings.broker_keys()), str | None
)


class BrokerSettings:
    """The configuration of `connection`'s brokers, read once; empty where the role may not read it."""

    def __init__(self, connection: AdminConnection) -> None:
        self._connection = connection
        self._found: dict[str, Any] | None = None

    def _known(self) -> dict[str, Any]:
        if self._found is None:
            what = "brokers/configuration/runtime"
            reply = self._connection.send("GET", what)
            self._found = self._connection.json(reply, f"GET {what}", _SHAPE) if reply.fine else {}
        return self._found

    def over(self, defaults: BrokerDefaults) -> BrokerDefaults:
        """Return `defaults` with the brokers' own booleans and settings in their place, as far as they are known."""
        known = self._known()
        values: dict[str, Any] = {
            policy: known[key] == "true" for policy, key in _SWITCHES.items() if known.get(key)
        }
        return replace(defaults, **values, settings=settings.of_brokers(known))

    def strategy(self) -> CompatibilityStrategy | None:
        """Return the strategy; None if it is not known."""
        if not self._known():
            return None
        strategy = strategy_named(self._known().get(_STRATEGY))
        # PulsarService takes UNDEFINED in its settings for FULL.
        return CompatibilityStrategy.FULL if strategy is CompatibilityStrategy.UNDEFINED else strategy

    def keep_policies_as_messages(self) -> bool:
        """Whether brokers keep topic policies as messages in a system topic of the namespace; True if not known."""
        return str(self._known().get(_POLICIES_OF_TOPICS) or _AS_MESSAGES).endswith(_AS_MESSAGES)
