"""What a plan knows so far: its steps, and the state that the registry is in after them."""

from __future__ import annotations

from dataclasses import replace

from schemactl.comparison.changes import Change
from schemactl.core.catalog import Catalog
from schemactl.core.findings import WaiversAt
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies, strategy_of
from schemactl.core.schema import SchemaVersion, live, next_number
from schemactl.declare.target_numbers import TargetNumbers
from schemactl.plan import refusals
from schemactl.plan.registry_state import RegistryState
from schemactl.plan.selection import elsewhere_only, without_namespaces
from schemactl.plan.steps import Origin, Permissions, PlanRefusal, PlanStep


class PlannedState:
    """The steps and refusals so far, and the state of the registry after these steps.

    Attributes:
        closed: namespaces of which nothing is planned.
        read: the state that was read; `base` is the part of it that the plan is about, without `closed`.
        target: what the registry is to have; `git` is what its version numbers are compared with.
        losses: settings that are not set because messages could be lost.
        versions: the list of each schema, which topics of both domains share.
    """

    def __init__(
        self,
        base: RegistryState,
        target: Catalog,
        origin: Origin,
        permissions: Permissions,
        waivers: WaiversAt,
        numbers: TargetNumbers | None,
    ) -> None:
        elsewhere = elsewhere_only(base.catalog, target, origin.cluster)
        self.closed = base.half_deleted | elsewhere.keys()
        # What is not for this plan to judge (drafts) is not there for it.
        there = {name: topic for name, topic in base.catalog.topics.items() if name in target.topics}
        self.read = base
        self.base = replace(
            base, catalog=without_namespaces(replace(base.catalog, topics=there), self.closed)
        )
        self.target = without_namespaces(target, self.closed)
        self.git = self.target
        self.origin = origin
        self.commands = refusals.Commands(origin)
        self.permissions = permissions
        self.waivers = waivers
        self.numbers = numbers
        self.changes: tuple[Change, ...] = ()
        self.steps: list[PlanStep] = []
        self.refusals = [
            refusals.elsewhere(name, origin.cluster, elsewhere[space])
            if (space := name.namespace_name) in elsewhere
            else refusals.half_deleted(name, self.commands)
            for name, topic in target.topics.items()
            if name.namespace_name in self.closed and not topic.deleted
        ]
        self.namespaces = dict(self.base.catalog.namespaces)
        self.topics = dict(self.base.catalog.topics)
        self.losses: list[PlanRefusal] = []  # they leave out nothing else: nothing of the plan is applied
        self.missing_tenants = set(base.missing_tenants)
        self.versions = {topic.name.schema_id: topic.versions for topic in self.topics.values()}

    def catalog(self) -> Catalog:
        """Return the state as a catalog."""
        topics = {}
        for name, topic in self.topics.items():
            versions = self.versions.get(name.schema_id, ())
            current = live(versions)
            topics[name] = replace(topic, schema=current[-1].info if current else None, versions=versions)
        return Catalog(self.namespaces, topics)

    def overlay(self, name: NamespaceName | TopicName, after: Policies) -> None:
        """Set these policies."""
        if isinstance(name, NamespaceName):
            space = self.namespaces[name]
            self.namespaces[name] = replace(space, policies=space.policies.overlaid(after))
        else:
            topic = self.topics[name]
            self.topics[name] = replace(topic, policies=topic.policies.overlaid(after))

    def strategy(self, name: TopicName) -> CompatibilityStrategy:
        """Return the strategy in force for uploads to the topic."""
        topic, space = self.topics.get(name), self.namespaces.get(name.namespace_name)
        own = strategy_of(topic.policies if topic else None, space.policies if space else None)
        return own or self.base.default_strategies[name.namespace_name]

    def following(self, name: TopicName) -> int:
        """Return the next number that the registry would give."""
        return next_number(self.held(name))

    def held(self, name: TopicName) -> tuple[SchemaVersion, ...]:
        """Return the topic's list of versions."""
        return self.versions.get(name.schema_id, ())
