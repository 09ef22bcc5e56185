"""Make small random approved histories, and the content of a registry after they were applied."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

from schemactl.comparison.changes import remove_upload_properties
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.deploy.plan import Origin
from schemactl.registry.interface import Registry

S = CompatibilityStrategy


def record(number: int, *, compatible: bool = True) -> SchemaInfo:
    """Return an Avro record with `number` fields; the last one has no default unless `compatible`."""
    fields: list[dict[str, Any]] = [{"name": "id", "type": "long"}]
    fields += [{"name": f"f{n}", "type": "string", "default": ""} for n in range(number)]
    if not compatible:
        fields.append({"name": f"needed{number}", "type": "string"})
    text = json.dumps({"type": "record", "name": "Order", "fields": fields})
    return SchemaInfo(SchemaType.AVRO, text.encode())


def make_versions(infos: list[SchemaInfo]) -> tuple[SchemaVersion, ...]:
    """Return the versions 0, 1, ... of a topic, each from another commit."""
    return tuple(
        SchemaVersion(number, info, Commit(f"{number + 1:040x}", 1_767_225_600 + number, "change"))
        for number, info in enumerate(infos)
    )


def in_force(policies: Policies) -> tuple[object, ...]:
    """Return a namespace's policies, with Pulsar's defaults for unset ones."""
    return (
        policies.schema_compatibility_strategy,
        policies.is_allow_auto_update_schema is not False,
        policies.schema_validation_enforced is True,
    )


class History:
    """A namespace with topics: plain, partitioned, to be relaxed, and to be deleted.

    Attributes:
        target: the approved catalog.
        deleted: the topics whose schema is to be deleted.
    """

    def __init__(self, chance: random.Random, tenant: str) -> None:
        self.space = NamespaceName(tenant, "sales")
        self.origin = Origin("prod", "http://registry", Release.R4_0, "main", None)
        policies = Policies(
            chance.choice([S.BACKWARD, S.FULL]), chance.choice([None, False]), chance.choice([None, True])
        )
        plain = Topic(self._name("plain"), policies=Policies(chance.choice([None, S.FULL_TRANSITIVE])))
        counted = Topic(self._name("counted"), partitions=chance.randint(1, 3))
        replayed = Topic(self._name("replayed"), policies=Policies(S.FULL))
        gone = Topic(self._name("gone"), deleted=True)
        infos = {
            plain.name: [record(number) for number in range(chance.randint(1, 4))],
            counted.name: [record(number) for number in range(chance.randint(0, 3))],
            replayed.name: [record(0), record(1, compatible=False), record(2)],
            gone.name: [record(0)],
        }
        topics = {
            topic.name: replace(
                topic,
                versions=make_versions(infos[topic.name]),
                schema=infos[topic.name][-1] if infos[topic.name] and not topic.deleted else None,
            )
            for topic in (plain, counted, replayed, gone)
        }
        self.target = Catalog({self.space: Namespace(self.space, policies)}, topics)
        self.deleted = frozenset({gone.name})

    def prepare(self, registry: Registry) -> None:
        """Register the topic that is to be deleted."""
        registry.create_namespace(self.space)
        for name in self.deleted:
            registry.put_schema(name, record(0))

    def expected_state(self) -> dict[str, Any]:
        """Return the result of `read_state` after the history was applied."""
        state = {"policies": in_force(self.target.namespaces[self.space].policies)}
        for topic in self.target.topics.values():
            definitions: list[SchemaInfo | None] = [version.info for version in topic.versions]
            if topic.deleted:
                # A tombstone hides all earlier versions.
                definitions = [None] * (len(definitions) + 1)
            own = topic.policies.schema_compatibility_strategy or S.UNDEFINED
            state[topic.name.topic] = (not topic.deleted, topic.partitions, own, definitions)
        return state

    def _name(self, topic: str) -> TopicName:
        return TopicName(self.space.tenant, self.space.name, topic)


def read_state(registry: Registry, history: History) -> dict[str, Any]:
    """Return the state of the registry, without times and commit properties."""
    catalog = registry.read(registry.read_scope(frozenset({history.space})))
    gone = registry.read(replace(registry.read_scope(frozenset()), topics=history.deleted))
    state = {"policies": in_force(catalog.namespaces[history.space].policies)}
    for topic in {**catalog.topics, **gone.topics}.values():
        assert [version.number for version in topic.versions] == list(range(len(topic.versions)))
        own = topic.policies.schema_compatibility_strategy
        state[topic.name.topic] = (
            not topic.deleted,
            topic.partitions,
            own,
            [v.info and remove_upload_properties(v.info) for v in topic.versions],
        )
    return state
