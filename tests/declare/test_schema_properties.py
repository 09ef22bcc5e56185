"""`schema_properties` of a namespace: the default properties of its topics' schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import run_json, schemactl
from scratch import Scratch, record

PROJECT = 'version: 1\nroots: [topics]\napproved: main\ntargets: {local: {registry: "sqlite:registry.db"}}\n'
SWITCH = "__jsr310ConversionEnabled"
NAMESPACE = f'namespace: shop/web\nschema_properties: {{{SWITCH}: "true", owner: web}}\n'
TOPICS = {
    "plain": "schema: {type: AVRO, definition: r.avsc}",
    "own": f'schema: {{type: AVRO, definition: r.avsc, properties: {{{SWITCH}: "false"}}}}',
    "json": "schema: {type: JSON, definition: r.avsc}",
    "text": 'schema: {type: STRING, properties: {__charset: "ISO-8859-1"}}',
    "pair": "schema: {type: KEY_VALUE, encoding: SEPARATED, key: {type: JSON, definition: r.avsc}, "
    "value: {type: AVRO, definition: r.avsc, properties: {owner: sales}}}",
    "two-records": "schema: {type: KEY_VALUE, encoding: INLINE, key: {type: AVRO, definition: r.avsc}, "
    "value: {type: AVRO, definition: r.avsc}}",
}
DEFAULTS = {SWITCH: "true", "owner": "web"}
EXPECTED: dict[str, Any] = {
    "plain": DEFAULTS,
    "own": {SWITCH: "false", "owner": "web"},
    "json": DEFAULTS,
    "text": {**DEFAULTS, "__charset": "ISO-8859-1"},
}


@pytest.fixture
def shop_repository(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path / "shop")
    topics = {f"topics/{name}.yaml": f"topic: shop/web/{name}\n{schema}\n" for name, schema in TOPICS.items()}
    # The namespace is read after its topics, and before them.
    files = {"schemactl.yaml": PROJECT, "topics/z.yaml": NAMESPACE, "topics/r.avsc": record("id"), **topics}
    scratch.commit(
        {**files, "topics/other.yaml": "topic: shop/other/plain\nschema: {type: AVRO, definition: r.avsc}\n"}
    )
    scratch.flush()
    return scratch


def read_properties(repository: Scratch, topic: str) -> Any:
    """Return the declared properties of a topic's schema."""
    return run_json(repository, "show", topic)["properties"]


@pytest.mark.parametrize("state", ["", "@0", "@work"])
def test_topics_have_the_defaults_of_their_namespace(shop_repository: Scratch, state: str) -> None:
    for topic, properties in EXPECTED.items():
        assert read_properties(shop_repository, f"shop/web/{topic}{state}") == properties
    pair = read_properties(shop_repository, f"shop/web/pair{state}")
    assert json.loads(pair["key.schema.properties"]) == {}
    assert json.loads(pair["value.schema.properties"]) == {SWITCH: "true", "owner": "sales"}
    records = read_properties(shop_repository, f"shop/web/two-records{state}")
    assert json.loads(records["key.schema.properties"]) == DEFAULTS
    assert SWITCH not in records
    assert read_properties(shop_repository, f"shop/other/plain{state}") == {}


def test_apply_registers_them(shop_repository: Scratch) -> None:
    # The second check takes its declarations from the cache.
    for _ in range(2):
        schemactl(shop_repository, "check")
    schemactl(shop_repository, "apply", "--target", "local", "--auto-approve")
    for topic, properties in EXPECTED.items():
        answer = run_json(shop_repository, "registry", "get", f"shop/web/{topic}", "--target", "local")
        registered = answer["properties"]
        assert {name: text for name, text in registered.items() if not name.startswith("schemactl.")} == properties
    schemactl(shop_repository, "drift", "--target", "local", "--detailed-exitcode")


def test_a_version_has_the_defaults_of_its_commit(shop_repository: Scratch) -> None:
    later = NAMESPACE.replace("owner: web", "owner: later")
    shop_repository.commit({"topics/z.yaml": None, "topics/a.yaml": later})
    shop_repository.flush()
    assert read_properties(shop_repository, "shop/web/plain@0")["owner"] == "web"
    assert read_properties(shop_repository, "shop/web/plain")["owner"] == "later"
    shop_repository.commit({"topics/r.avsc": record("id", "note")})
    shop_repository.flush()
    assert read_properties(shop_repository, "shop/web/plain@1")["owner"] == "later"
    shop_repository.commit({"topics/a.yaml": None, "topics/more.avsc": record("x")})
    shop_repository.flush()
    assert read_properties(shop_repository, "shop/web/plain@1")["owner"] == "later"
    assert read_properties(shop_repository, "shop/web/plain") == {}
    shop_repository.commit({"topics/r.avsc": record("id", "note", "more")})
    shop_repository.flush()
    assert read_properties(shop_repository, "shop/web/plain@2") == {}


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ('{schemactl.commit: "x"}', "schemactl sets the property `schemactl.commit` itself"),
        ("{__charset: UTF-16}", "`__charset` determines the bytes of messages"),
        ('{kv.encoding.type: "INLINE"}', "`kv.encoding.type` belongs to one KEY_VALUE"),
        ("{a: true}", "expected text"),
        ("[a]", "expected a mapping"),
    ],
)
def test_wrong_defaults_are_problems(shop_repository: Scratch, properties: str, problem: str) -> None:
    shop_repository.write({"topics/z.yaml": f"namespace: shop/web\nschema_properties: {properties}\n"})
    printed = schemactl(shop_repository, "check", code=1)
    assert "topics/z.yaml:2:" in printed.err + printed.out
    assert problem in printed.err + printed.out


def test_an_overlay_has_none(shop_repository: Scratch) -> None:
    project = PROJECT.replace('registry.db"}', 'registry.db", overlays: prod.yaml}')
    shop_repository.write({"schemactl.yaml": project, "prod.yaml": NAMESPACE})
    printed = schemactl(shop_repository, "check", code=1)
    assert "`schema_properties` is the same on every target" in printed.err + printed.out


def test_a_default_for_registered_versions_makes_none(shop_repository: Scratch) -> None:
    schemactl(shop_repository, "apply", "--target", "local", "--auto-approve")
    shop_repository.commit({"topics/z.yaml": NAMESPACE.replace("owner: web", "owner: later")})
    printed = schemactl(shop_repository, "plan", "--target", "local")
    assert "would store nothing" in printed.out + printed.err


def test_effective_values_name_the_namespace(shop_repository: Scratch) -> None:
    effective = schemactl(shop_repository, "show", "shop/web/plain", "--effective").out
    [line] = (line for line in effective.splitlines() if SWITCH in line)
    assert "true" in line
    assert "topics/z.yaml:2:" in line
