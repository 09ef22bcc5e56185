"""Relaxed topics: for a time they take every upload, but no schema of a client.

Each write leaves what the next command needs to undo it: what something was is kept before it is changed, and forgotten after it
is as it was. Automatic updates go off before the topic accepts everything, and on after it has stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from schemactl.core.errors import RegistryError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.registry.base import RELAXED_FROM, UPDATES_OFF_FOR

ALWAYS_COMPATIBLE = CompatibilityStrategy.ALWAYS_COMPATIBLE


class Relaxing(ABC):
    """The part of a `Registry` that relaxes topics, in terms of policies and properties."""

    @abstractmethod
    def set_topic_policies(self, name: TopicName, policies: Policies) -> None:
        """See `Registry.set_topic_policies`."""

    @abstractmethod
    def set_namespace_policies(self, name: NamespaceName, policies: Policies) -> None:
        """See `Registry.set_namespace_policies`."""

    @abstractmethod
    def _own_strategy(self, topic: TopicName) -> CompatibilityStrategy:
        """Return the topic's own strategy; UNDEFINED if it has none."""

    @abstractmethod
    def _updates_allowed(self, namespace: NamespaceName) -> bool:
        """Whether clients may register schemas; True for a namespace that does not exist."""

    @abstractmethod
    def _property(self, name: NamespaceName | TopicName, key: str) -> str | None:
        """Return the property; None if it is not set, or there is nothing of that name."""

    @abstractmethod
    def _set_property(self, name: NamespaceName | TopicName, key: str, value: str | None) -> None:
        """Set the property; None deletes it."""

    @abstractmethod
    def _let_clients_see(self) -> None:
        """Wait until clients that connect are judged by the policies set last."""

    def relax(self, topic: TopicName) -> None:
        """See `Registry.relax`."""
        own, space = self._own_strategy(topic), topic.namespace_name
        if own is ALWAYS_COMPATIBLE:
            return
        self._set_property(topic, RELAXED_FROM, own)
        if self._updates_allowed(space):
            self._set_property(space, UPDATES_OFF_FOR, str(topic))
            self.set_namespace_policies(space, Policies(is_allow_auto_update_schema=False))
            self._let_clients_see()
        self.set_topic_policies(topic, Policies(ALWAYS_COMPATIBLE))

    def relaxed(self, topic: TopicName) -> CompatibilityStrategy | None:
        """See `Registry.relaxed`. What is kept counts only beside a policy that `relax` has set."""
        own = self._own_strategy(topic)
        if own is ALWAYS_COMPATIBLE:
            kept = self._property(topic, RELAXED_FROM)
            return None if kept is None else _strategy(topic, kept)
        return own if self.updates_off_for(topic.namespace_name) == topic else None

    def updates_off_for(self, namespace: NamespaceName) -> TopicName | None:
        """See `Registry.updates_off_for`."""
        kept = None if self._updates_allowed(namespace) else self._property(namespace, UPDATES_OFF_FOR)
        if kept is None:
            return None
        try:
            topic = TopicName.parse(kept)
        except ValueError:
            topic = None
        if topic is None or topic.namespace_name != namespace:
            raise RegistryError(
                f"namespace {namespace}: its property {UPDATES_OFF_FOR} names no topic of it: {kept[:80]!r}",
                fix="`apply` did not write that: remove the property",
            )
        return topic

    def restore(self, topic: TopicName) -> None:
        """See `Registry.restore`."""
        before, space = self.relaxed(topic), topic.namespace_name
        if before is not None and self._own_strategy(topic) is ALWAYS_COMPATIBLE:
            self.set_topic_policies(topic, Policies(before))
        if self.updates_off_for(space) == topic:
            self._let_clients_see()
            self.set_namespace_policies(space, Policies(is_allow_auto_update_schema=True))
        if self._property(space, UPDATES_OFF_FOR) == str(topic):
            self._set_property(space, UPDATES_OFF_FOR, None)
        if self._property(topic, RELAXED_FROM) is not None:
            self._set_property(topic, RELAXED_FROM, None)


def _strategy(topic: TopicName, kept: str) -> CompatibilityStrategy:
    try:
        return CompatibilityStrategy(kept)
    except ValueError:
        raise RegistryError(
            f"{topic}: its property {RELAXED_FROM} names no strategy: {kept[:80]!r}",
            fix="`apply` did not write that: remove the property",
        ) from None
