"""One checker for each schema type: default checkers, optional ones in `schemactl.yaml`, and checkers of other packages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scratch import Scratch

from schemactl.broker.checkers import create_checkers
from schemactl.broker.upload import VersionList
from schemactl.cli import main
from schemactl.core.environment import list_entry_points
from schemactl.core.errors import SchemaRejected, UsageError
from schemactl.core.findings import Outcome
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.registry.embedded import EmbeddedRegistry

ADVANCED = "ProtobufNativeSchemaAdvancedCompatibilityCheck"


@pytest.fixture
def _other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with a checker for PROTOBUF, which a broker never checks by itself."""
    info = tmp_path / "strict_protobuf-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strict-protobuf\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[schemactl.checkers]\nPROTOBUF = strict_protobuf:Never\n")
    (tmp_path / "strict_protobuf.py").write_text(
        "from schemactl.broker.exceptions import incompatible\n"
        "class Never:\n"
        "    def check(self, existing, new, strategy, *, listed):\n"
        "        raise incompatible('never')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for cached_function in (create_checkers, list_entry_points):
        cached_function.cache_clear()
    yield
    for cached_function in (create_checkers, list_entry_points):
        cached_function.cache_clear()


def make_protobuf(name: str) -> SchemaInfo:
    text = f'{{"type":"record","name":"{name}","fields":[]}}'
    return SchemaInfo(SchemaType.PROTOBUF, text.encode())


def test_external_has_a_checker_from_4_2_on() -> None:
    assert SchemaType.EXTERNAL not in create_checkers(Release.R4_0)
    one, other = (SchemaInfo(SchemaType.EXTERNAL, data) for data in (b"", b"x"))
    strategy = CompatibilityStrategy.ALWAYS_INCOMPATIBLE
    assert VersionList([], Release.R4_0).put(one, strategy).outcome is Outcome.ERROR
    assert VersionList([SchemaVersion(0, one)], Release.R4_2).put(other, strategy).outcome is Outcome.OK


def test_external_is_not_a_key_or_value_before_4_2() -> None:
    halves = {"key.schema.type": "STRING", "value.schema.type": "EXTERNAL"}
    pair = SchemaInfo(SchemaType.KEY_VALUE, bytes(8), halves)
    longer, strategy = replace(pair, schema=bytes(9)), CompatibilityStrategy.BACKWARD
    rejected, accepted = (
        VersionList([SchemaVersion(0, pair)], release).check_consumer(longer, strategy)
        for release in (Release.R4_0, Release.R4_2)
    )
    assert (rejected.outcome, rejected.exception) == (Outcome.ERROR, "IllegalArgumentException")
    assert accepted.outcome is Outcome.OK


@pytest.mark.usefixtures("_other_package")
def test_another_package_plugs_a_checker_in() -> None:
    history = [SchemaVersion(0, make_protobuf("A"))]
    answer = VersionList(history, Release.R4_0).put(make_protobuf("B"), CompatibilityStrategy.FULL)
    assert (answer.outcome, answer.message) == (Outcome.INCOMPATIBLE, "never")


def test_no_checker_of_another_package_is_installed() -> None:
    history = [SchemaVersion(0, make_protobuf("A"))]
    assert VersionList(history, Release.R4_0).put(make_protobuf("B"), CompatibilityStrategy.FULL).outcome is Outcome.OK


@pytest.mark.parametrize("release", [Release.R4_0, Release.R4_2])
def test_an_optional_checker_belongs_to_its_releases(release: Release) -> None:
    with pytest.raises(UsageError, match=ADVANCED):
        create_checkers(release, (ADVANCED,))
    assert create_checkers(Release.R5_0, (ADVANCED,)) is not create_checkers(Release.R5_0)


def test_a_broker_may_be_configured_to_check_protobuf_as_avro() -> None:
    optional = ("ProtobufSchemaCompatibilityCheck",)
    added = SchemaInfo(SchemaType.PROTOBUF, b'{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]}')
    history, backward = [SchemaVersion(0, make_protobuf("A"))], CompatibilityStrategy.BACKWARD
    assert VersionList(history, Release.R4_0).put(added, backward).outcome is Outcome.OK
    assert (
        VersionList(history, Release.R4_0, checker_changes=optional).put(added, backward).outcome
        is Outcome.INCOMPATIBLE
    )


def test_the_advanced_checker_names_rule_direction_and_version() -> None:
    broken = SchemaInfo(SchemaType.PROTOBUF_NATIVE, b"{}")
    good = SchemaInfo(
        SchemaType.PROTOBUF_NATIVE,
        b'{"fileDescriptorSet":"Ci0KB20ucHJvdG8SB2RlbW8udjEiEQoBTRIMCgFhGAEgASgJUgFhYgZwcm90bzM=",'
        b'"rootMessageTypeName":"demo.v1.M","rootFileDescriptorName":"m.proto"}',
    )
    again = SchemaInfo(good.type, good.schema + b" ")
    for strategy, outcome in {
        CompatibilityStrategy.FULL: Outcome.OK,
        CompatibilityStrategy.ALWAYS_COMPATIBLE: Outcome.OK,
        CompatibilityStrategy.ALWAYS_INCOMPATIBLE: Outcome.INCOMPATIBLE,
        CompatibilityStrategy.UNDEFINED: Outcome.INCOMPATIBLE,
    }.items():
        answer = VersionList([SchemaVersion(0, good)], Release.R5_0, checker_changes=(ADVANCED,)).put(again, strategy)
        assert answer.outcome is outcome
    full = CompatibilityStrategy.FULL
    answer = VersionList([SchemaVersion(0, broken)], Release.R5_0, checker_changes=(ADVANCED,)).put(good, full)
    assert answer.message.startswith("SCHEMA_RECONSTRUCTION_FAILED")
    # Under the default checker, reading the same bytes fails.
    assert VersionList([SchemaVersion(0, broken)], Release.R5_0).put(good, full).outcome is Outcome.ERROR


CHECKER = "ProtobufSchemaCompatibilityCheck"
FIELDS: list[list[dict[str, str]]] = [[], [{"name": "id", "type": "int"}]]


def make_project(checkers: str) -> str:
    return (
        "version: 1\n"
        f"protobuf: {{checkers: [{checkers}]}}\n"
        "defaults: {schema_compatibility_strategy: BACKWARD}\n"
        'targets: {local: {registry: "sqlite:registry.db"}}\n'
    )


def declare_clicks(fields: list[dict[str, str]]) -> str:
    definition = json.dumps({"type": "record", "name": "Click", "fields": fields})
    return f"topic: shop/web/clicks\nschema:\n  type: PROTOBUF\n  definition: {definition}\n"


def run(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main(["-C", str(path), *arguments, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("checkers", ["", CHECKER])
def test_every_prediction_knows_the_checkers_of_the_brokers(
    checkers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "repository"
    repository = Scratch(path)
    repository.commit({"schemactl.yaml": make_project(checkers), "namespaces/clicks.yaml": declare_clicks(FIELDS[0])})
    repository.flush()
    assert main(["-C", str(path), "apply", "--auto-approve"]) == 0
    capsys.readouterr()
    repository.write({"namespaces/clicks.yaml": declare_clicks(FIELDS[1])})
    is_rejected = bool(checkers)
    _, report = run(path, capsys, "check")
    assert ("BROKER_INCOMPATIBLE" in {finding["rule"] for finding in report["findings"]}) == is_rejected
    repository.commit({"namespaces/clicks.yaml": declare_clicks(FIELDS[1])})
    repository.flush()
    _, plan = run(path, capsys, "plan")
    assert bool(plan["left_out"]) == is_rejected
    new = {"type": "PROTOBUF", "schema": json.dumps({"type": "record", "name": "Click", "fields": FIELDS[1]})}
    repository.write({"payload.json": json.dumps({**new, "properties": {}})})
    _, answers = run(path, capsys, "registry", "test", "clicks", "--file", str(path / "payload.json"))
    assert [answers[name]["outcome"] == "incompatible" for name in ("upload", "compatibility")] == [is_rejected] * 2


@pytest.mark.parametrize("checkers", [(), (CHECKER,)])
def test_the_embedded_registry_answers_by_the_checkers_it_is_configured_with(checkers: tuple[str, ...]) -> None:
    topic = TopicName.parse("shop/web/clicks")
    old, new = (
        SchemaInfo(SchemaType.PROTOBUF, json.dumps({"type": "record", "name": "Click", "fields": fields}).encode())
        for fields in FIELDS
    )
    defaults = BrokerDefaults(CompatibilityStrategy.BACKWARD, checkers=checkers)
    with closing(EmbeddedRegistry(":memory:", defaults=defaults)) as registry:
        registry.create_namespace(NamespaceName("shop", "web"))
        registry.set_namespace_policies(NamespaceName("shop", "web"), Policies())
        registry.put_schema(topic, old)
        decisions = [registry.connect(topic, role, new).allowed for role in ("consumer", "producer")]
        assert decisions == [not checkers] * 2
        if checkers:
            with pytest.raises(SchemaRejected):
                registry.put_schema(topic, new)
