"""Random registries, imported: then nothing is left to apply, and every number is told right."""

from __future__ import annotations

import json
import random
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from command import schemactl
from hypothesis import given, settings
from hypothesis import strategies as st
from property_runs import EXAMPLES
from random_avro import JsonValue, Maker
from scratch import Scratch

from schemactl.comparison.changes import content_identity
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType, live
from schemactl.formats.key_value import join
from schemactl.registry.embedded import EmbeddedRegistry

pytestmark = pytest.mark.slow

PROJECT = 'version: 1\ntargets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n'
SPACES = [NamespaceName("shop", name) for name in ("sales", "web")]
PRIMITIVES = [SchemaType.STRING, SchemaType.INT64, SchemaType.DATE, SchemaType.INSTANT]


class Cluster:
    """A registry made from one seed, as people and programs fill them."""

    def __init__(self, registry: EmbeddedRegistry, seed: int) -> None:
        self.registry = registry
        self.random = random.Random(seed)  # noqa: S311  reproducible, not secret
        self.maker = Maker(seed)
        self.common = [self.maker.record() for _ in range(3)]

    def fill(self) -> None:
        for space in SPACES:
            self.registry.create_namespace(space)
            self.registry.set_namespace_policies(space, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
            for number in range(self.random.randrange(4)):
                self.topic(TopicName(space.tenant, space.name, f"topic-{number}"))
            self.registry.set_namespace_policies(space, self.policies())

    def topic(self, name: TopicName) -> None:
        self.registry.create_topic(name, self.random.choice([None, 1, 5]))
        for _ in range(self.random.randrange(5)):
            if self.random.random() < 0.1:
                self.registry.delete_schema(name)
            else:
                self.registry.put_schema(name, self.info())
        self.registry.set_topic_policies(name, Policies(self.random.choice(list(CompatibilityStrategy))))

    def info(self) -> SchemaInfo:
        kind = self.random.randrange(4)
        if kind == 0:
            return SchemaInfo(self.random.choice(PRIMITIVES), properties=self.properties())
        if kind == 1:
            half = SchemaInfo(SchemaType.JSON, json.dumps(self.record()).encode())
            other = SchemaInfo(self.random.choice(PRIMITIVES))
            return join(key=other, value=half, encoding=self.random.choice(["INLINE", "SEPARATED"]))
        text = json.dumps(self.record(), indent=self.random.choice([None, 1, 4]))
        described = self.random.choice([SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF])
        return SchemaInfo(described, text.encode(), self.properties())

    def record(self) -> JsonValue:
        """A record, which may define a type that other topics define, too, alike or nearly so."""
        made, common = self.maker.record(), self.random.choice(self.common)
        if self.random.random() < 0.5:
            made["fields"].insert(0, {"name": "common", "type": common})
        if self.random.random() < 0.1:
            common["doc"] = str(self.random.random())
        return made

    def properties(self) -> dict[str, str]:
        words = ["", "yes", "1", "a: b", "- x", "é\u2028\t\x7f", "#", "~", "owner", "null", "😀"]
        return {self.random.choice(words): self.random.choice(words) for _ in range(self.random.randrange(3))}

    def policies(self) -> Policies:
        return Policies(
            self.random.choice(list(CompatibilityStrategy)),
            self.random.choice([None, True, False]),
            self.random.choice([None, True, False]),
        )


@settings(EXAMPLES, max_examples=EXAMPLES.max_examples // 5)
@given(st.integers(0, 2**32))
def test_an_imported_registry_has_nothing_to_apply_and_every_content_once(seed: int) -> None:
    with TemporaryDirectory() as folder:
        scratch = Scratch(Path(folder, "shop"))
        scratch.commit({"schemactl.yaml": PROJECT, ".gitignore": ".schemactl/\n"})
        scratch.configure_author()
        scratch.flush()
        with closing(EmbeddedRegistry(str(scratch.path / ".schemactl/registry.db"))) as registry:
            Cluster(registry, seed).fill()
            held = registry.read(registry.everything())
        run = partial(schemactl, scratch.path)
        run("import", "--commit-each-version")
        # A deletion before the import, or one content twice, took a number; once that is recorded, nothing is left.
        run("plan", "--detailed-exitcode", code=(0, 100))
        run("drift", "--accept", "--reason", "imported")
        scratch.git("add", "-A")
        scratch.git("commit", "-q", "--allow-empty", "-m", "Record numbers")
        run("plan", "--detailed-exitcode")
        logged = json.loads(run("log", "--all", "--target", "local", "--format", "json").out)["topics"]
        numbers = {
            topic["topic"]: [each["git"] for each in topic["versions"] if each["state"] == "readable"]
            for topic in logged
        }
        for name, topic in held.topics.items():
            known = [content_identity(version.info) for version in live(topic.versions) if version.info]
            assert numbers.get(str(name), []) == [known.index(key) for key in known]
