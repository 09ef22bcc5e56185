"""Random calls have the same results on the embedded registry and on a model of one page."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from property_runs import EXAMPLES

from schemactl.core.errors import RegistryError, SchemaRejected
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.interface import Scope

S = CompatibilityStrategy
SALES = NamespaceName("shop", "sales")
TOPICS = [TopicName("shop", "sales", name) for name in ("orders", "refunds")]
# The two STRINGs, from Java and from Python, are two definitions of one type.
CONTENTS = [
    SchemaInfo(SchemaType.STRING),
    SchemaInfo(SchemaType.STRING, b"null"),
    SchemaInfo(SchemaType.INT64),
    SchemaInfo(SchemaType.AVRO, b'"string"'),
    SchemaInfo(SchemaType.AVRO, b'"bytes"'),
    SchemaInfo(SchemaType.AVRO, b'"long"'),
]
READS = {b'"string"': {b'"bytes"'}, b'"bytes"': {b'"string"'}, b'"long"': set[bytes]()}
"""Which other definition an Avro one can read: string and bytes read each other, long only itself."""


@dataclass
class Modelled:
    """A topic as the model knows it."""

    exists: bool = False
    strategy: S = S.UNDEFINED
    entries: list[SchemaInfo | None] = field(default_factory=list)

    @property
    def live(self) -> list[tuple[int, SchemaInfo]]:
        versions: list[tuple[int, SchemaInfo]] = []
        for number, info in enumerate(self.entries):
            versions = [] if info is None else [*versions, (number, info)]
        return versions

    def accepts(self, new: SchemaInfo, strategy: S) -> bool:
        if strategy is S.ALWAYS_COMPATIBLE or not self.live:
            return True
        earlier = [info for _, info in self.live]
        if not strategy.endswith("_TRANSITIVE"):
            earlier = earlier[-1:]
        if any(info.type is not new.type for info in earlier) or strategy is S.ALWAYS_INCOMPATIBLE:
            return False
        # Only Avro is checked, and this little set of definitions reads the same in both directions.
        return new.type is not SchemaType.AVRO or all(info.schema in READS[new.schema] for info in earlier)


class RegistryMachine(RuleBasedStateMachine):
    """Registry and model, side by side."""

    topics = st.sampled_from(TOPICS)
    strategies = st.sampled_from(list(S))

    def __init__(self) -> None:
        super().__init__()
        self.registry = EmbeddedRegistry(":memory:")
        self.namespace: S | None = None
        self.model = {name: Modelled() for name in TOPICS}

    def teardown(self) -> None:
        self.registry.close()

    def strategy(self, name: TopicName) -> S:
        for level in (self.model[name].strategy, self.namespace):
            if level not in (None, S.UNDEFINED):
                return level
        return S.FULL

    @rule()
    def create_namespace(self) -> None:
        self.registry.create_namespace(SALES)
        self.namespace = self.namespace or S.UNDEFINED

    @rule()
    def delete_namespace(self) -> None:
        self.registry.delete_namespace(SALES)
        self.namespace = None
        for modelled in self.model.values():
            modelled.exists, modelled.strategy = False, S.UNDEFINED

    @rule(strategy=strategies)
    def set_namespace_strategy(self, strategy: S) -> None:
        try:
            self.registry.set_namespace_policies(SALES, Policies(strategy))
        except RegistryError:
            assert self.namespace is None
        else:
            assert self.namespace is not None
            self.namespace = strategy

    @rule(name=topics)
    def create_topic(self, name: TopicName) -> None:
        try:
            self.registry.create_topic(name, None)
        except RegistryError:
            assert self.namespace is None
        else:
            assert self.namespace is not None
            self.model[name].exists = True

    @rule(name=topics, strategy=strategies)
    def set_topic_strategy(self, name: TopicName, strategy: S) -> None:
        try:
            self.registry.set_topic_policies(name, Policies(strategy))
        except RegistryError:
            assert not self.model[name].exists
        else:
            assert self.model[name].exists
            self.model[name].strategy = strategy

    @rule(name=topics, info=st.sampled_from(CONTENTS))
    def put(self, name: TopicName, info: SchemaInfo) -> None:
        modelled = self.model[name]
        equal_number = next((number for number, stored in modelled.live if stored == info), None)
        try:
            number = self.registry.put_schema(name, info)
        except SchemaRejected:
            assert equal_number is None
            assert not modelled.accepts(info, self.strategy(name))
        except RegistryError:
            assert self.namespace is None
        else:
            assert self.namespace is not None
            if equal_number is None:
                assert modelled.accepts(info, self.strategy(name))
                assert number == len(modelled.entries)
                modelled.entries.append(info)
            else:
                assert number == equal_number

    @rule(name=topics)
    def delete_schema(self, name: TopicName) -> None:
        assert self.registry.delete_schema(name) == len(self.model[name].entries)
        self.model[name].entries.append(None)

    @rule(name=topics)
    def force_delete_schema(self, name: TopicName) -> None:
        assert self.registry.delete_schema(name, force=True) is None
        self.model[name].entries.clear()

    @rule(name=topics)
    def delete_topic(self, name: TopicName) -> None:
        self.registry.delete_topic(name)
        self.model[name] = Modelled()

    @invariant()
    def both_hold_the_same(self) -> None:
        catalog = self.registry.read(Scope(frozenset({SALES}), frozenset(TOPICS)))
        assert (SALES in catalog.namespaces) == (self.namespace is not None)
        for name, modelled in self.model.items():
            topic = catalog.topics.get(name)
            assert (topic is not None) == (modelled.exists or bool(modelled.entries))
            assert self.registry.strategy(name) is self.strategy(name)
            if topic is not None:
                assert topic.deleted != modelled.exists
                assert [version.info for version in topic.versions] == modelled.entries
                assert [version.number for version in topic.versions] == list(range(len(modelled.entries)))
                assert topic.schema == (modelled.live[-1][1] if modelled.live else None)


TestRegistryModel = RegistryMachine.TestCase
TestRegistryModel.settings = settings(EXAMPLES, stateful_step_count=40)
