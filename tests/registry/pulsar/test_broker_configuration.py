"""Differences of the brokers' configuration from the project file in plan, drift, status and show, on servers and real brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import admin_rest
import brokers
import pytest
from estate import Estate, EstateOnPulsar
from faulty import forward
from scratch import record, write_declaration
from scripted import Response, respond_json, serve

from schemactl.broker.checkers import create_checkers, list_classes, parse_checker_classes
from schemactl.broker.upload import VersionList
from schemactl.core.errors import UsageError
from schemactl.core.findings import Outcome
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion

S = CompatibilityStrategy
SALES = "namespaces/sales.yaml"
RUNTIME = "/brokers/configuration/runtime"
NATIVE = "ProtobufNativeSchemaCompatibilityCheck"


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return Estate(tmp_path_factory.mktemp("prepared") / "shop")


@contextmanager
def open_estate(tmp_path: Path, *, broker: str = "", git: str = "", namespace: str = "") -> Iterator[Estate]:
    """An estate whose target is `schemactl serve` with the project settings `broker`; `git` are the settings of its project file."""
    folder = tmp_path / "broker"
    folder.mkdir()
    (folder / "schemactl.yaml").write_text(f"version: 1\n{broker}\n")
    with admin_rest.serve_folder("--registry", "memory:", folder=folder) as (url, _):
        yield make_estate(tmp_path / "shop", url, git=git, namespace=namespace)


def make_estate(path: Path, url: str, *, git: str = "", namespace: str = "") -> Estate:
    estate = Estate(path, project=f'version: 1\n{git}\ntargets: {{local: {{registry: "{url}"}}}}\n')
    estate.scratch.commit({SALES: f"namespace: shop/sales\n{namespace}\n"}, "Declare the namespace")
    estate.run("apply", "--auto-approve", code=(0, 3))
    return estate


def read_json(estate: Estate, *arguments: str, code: int = 0) -> Any:
    return json.loads(estate.run(*arguments, "--format", "json", code=code).out)


def list_differences(brokers_value: dict[str, Any]) -> list[tuple[str, Any, Any, list[str]]]:
    """Return the checker or key, both values and the namespaces of each difference."""
    return [
        (
            (difference["checker"] or difference["key"]).rpartition(".")[2],
            difference["expected"],
            difference["actual"],
            difference["namespaces"],
        )
        for difference in brokers_value["differences"]
    ]


IN_SALES = ["shop/sales"]


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize(
    ("broker", "git", "namespace", "expected"),
    [
        ("", "", "", []),
        # One key, both sides, and the declaration of a namespace.
        (
            "defaults: {schema_compatibility_strategy: BACKWARD}",
            "",
            "",
            [("schemaCompatibilityStrategy", "FULL", "BACKWARD", IN_SALES)],
        ),
        (
            "",
            "defaults: {schema_compatibility_strategy: BACKWARD}",
            "",
            [("schemaCompatibilityStrategy", "BACKWARD", "FULL", IN_SALES)],
        ),
        (
            "defaults: {schema_compatibility_strategy: BACKWARD}",
            "",
            "schema_compatibility_strategy: FORWARD",
            [("schemaCompatibilityStrategy", "FULL", "BACKWARD", [])],
        ),
        (
            "defaults: {schema_compatibility_strategy: BACKWARD}",
            "",
            "schema_compatibility_strategy: UNDEFINED",
            [("schemaCompatibilityStrategy", "FULL", "BACKWARD", IN_SALES)],
        ),
        (
            "defaults: {schema_compatibility_strategy: BACKWARD}",
            "defaults: {schema_compatibility_strategy: BACKWARD}",
            "",
            [],
        ),
        (
            "defaults: {is_allow_auto_update_schema: false}",
            "",
            "",
            [("isAllowAutoUpdateSchemaEnabled", True, False, IN_SALES)],
        ),
        (
            "defaults: {is_allow_auto_update_schema: false}",
            "",
            "is_allow_auto_update_schema: true",
            [("isAllowAutoUpdateSchemaEnabled", True, False, [])],
        ),
        (
            "defaults: {schema_validation_enforced: true}",
            "",
            "",
            [("isSchemaValidationEnforced", False, True, IN_SALES)],
        ),
        # The enforcement of the brokers counts although a namespace declares false, and adds nothing where one declares true.
        (
            "defaults: {schema_validation_enforced: true}",
            "",
            "schema_validation_enforced: false",
            [("isSchemaValidationEnforced", False, True, IN_SALES)],
        ),
        (
            "defaults: {schema_validation_enforced: true}",
            "",
            "schema_validation_enforced: true",
            [("isSchemaValidationEnforced", False, True, [])],
        ),
        # Checkers.
        (
            "defaults: {excluded_checkers: [AvroSchemaCompatibilityCheck]}",
            "",
            "",
            [("AvroSchemaCompatibilityCheck", True, False, IN_SALES)],
        ),
        (
            "defaults: {excluded_checkers: [JsonSchemaCompatibilityCheck]}",
            "",
            "",
            [("JsonSchemaCompatibilityCheck", True, False, [])],
        ),
        (
            "",
            "defaults: {excluded_checkers: [org.apache.pulsar.broker.service.schema.AvroSchemaCompatibilityCheck]}",
            "",
            [("AvroSchemaCompatibilityCheck", False, True, IN_SALES)],
        ),
        (
            "protobuf: {checkers: [ProtobufSchemaCompatibilityCheck]}",
            "",
            "",
            [("ProtobufSchemaCompatibilityCheck", False, True, [])],
        ),
        (
            "",
            "protobuf: {checkers: [ProtobufSchemaCompatibilityCheck]}",
            "",
            [("ProtobufSchemaCompatibilityCheck", True, False, [])],
        ),
    ],
)
def test_each_difference_is_stated(
    tmp_path: Path, broker: str, git: str, namespace: str, expected: list[tuple[str, Any, Any, list[str]]]
) -> None:
    drifting = sum(bool(namespaces) for *_, namespaces in expected)
    with open_estate(tmp_path, broker=broker, git=git, namespace=namespace) as estate:
        plan = read_json(estate, "plan")
        assert list_differences(plan["brokers"]) == expected
        drift = read_json(estate, "drift", "--detailed-exitcode", code=2 if drifting else 0)
        assert list_differences(drift["brokers"]) == expected
        # A new namespace gets the brokers' value of automatic updates as its own.
        assert {item["kind"] for item in drift["differences"]} <= {"policy overridden"}
        [target] = read_json(estate, "status")["targets"]
        assert target["brokers"] == drift["brokers"]
        target["drift"].pop("policy overridden", None)
        assert target["drift"] == ({"broker configuration": drifting} if drifting else {})
        live = read_json(estate, "show", "--effective", "orders", "--target", "local", "--live")
        assert list_differences(live["brokers"]) == expected


@pytest.mark.network
@pytest.mark.parametrize("checker", ["AvroSchemaCompatibilityCheck", "JsonSchemaCompatibilityCheck"])
def test_the_type_of_every_kind_counts(tmp_path: Path, checker: str) -> None:
    kinds = "{made: {type: AVRO, definition: made.avsc}, sent: {type: JSON, definition: sent.avsc}}"
    declaration = f"topic: shop/web/events\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\nschemas: {kinds}\n"
    with open_estate(tmp_path, broker=f"defaults: {{excluded_checkers: [{checker}]}}") as estate:
        estate.scratch.commit(
            {
                "namespaces/events.yaml": declaration,
                "namespaces/made.avsc": record("id", name="Made"),
                "namespaces/sent.avsc": record("id", name="Sent"),
            },
            "Declare events",
        )
        [(*_, namespaces)] = list_differences(read_json(estate, "plan")["brokers"])
        assert "shop/web" in namespaces


@pytest.mark.network
def test_reports_of_each_format_have_the_difference(tmp_path: Path) -> None:
    with open_estate(tmp_path, broker="defaults: {schema_compatibility_strategy: BACKWARD}") as estate:
        sentence = "schemaCompatibilityStrategy is BACKWARD, and the project file has FULL; it counts in shop/sales"
        for command in ("plan", "drift"):
            for form in ("text", "markdown", "html"):
                assert sentence in estate.run(command, "--format", form).out, (command, form)
        for command in ("plan", "drift"):
            lines = estate.run(command, "--summary").out.splitlines()
            assert f"~ broker configuration: {sentence}" in lines
        text = estate.run("drift").out
        assert "Drift: 1 setting of the brokers. Nothing was changed." in text
        assert "write `defaults: {schema_compatibility_strategy: BACKWARD}` to the project file" in text
        status = estate.run("status", "--detailed-exitcode", code=2).out
        assert f"    {sentence}\n" in status
        assert "drift: broker configuration 1\n" in status
        metrics = estate.run("status", "--format", "prometheus").out
        assert 'schemactl_drift_differences{target="local",kind="broker configuration"} 1\n' in metrics
        assert 'schemactl_broker_settings_differing{target="local"} 1\n' in metrics
        assert 'schemactl_broker_settings_unknown{target="local"} 0\n' in metrics


@pytest.mark.network
def test_following_the_advice_ends_the_drift(tmp_path: Path) -> None:
    settings = "defaults: {schema_compatibility_strategy: BACKWARD, excluded_checkers: [AvroSchemaCompatibilityCheck]}"
    with open_estate(tmp_path, broker=settings) as estate:
        assert len(read_json(estate, "drift")["brokers"]["differences"]) == 2
        project = estate.scratch.git("show", "HEAD:schemactl.yaml")
        estate.scratch.commit({"schemactl.yaml": f"{project}\n{settings}\n"}, "State what the brokers have")
        drift = read_json(estate, "drift", "--detailed-exitcode")
        assert drift["brokers"]["differences"] == []
        # Without the checker of AVRO, a broker stores what no old reader can read.
        estate.scratch.commit({"namespaces/orders.avsc": record("number")}, "Another order")
        assert read_json(estate, "plan")["left_out"] == []
        estate.run("apply", "--auto-approve")


@pytest.mark.network
@pytest.mark.parametrize(
    ("broker", "definition", "code"),
    [
        ("", record("id", note=0), 0),
        ("", record("number"), 100),
        ("defaults: {excluded_checkers: [AvroSchemaCompatibilityCheck]}", record("number"), 0),
        ("defaults: {schema_compatibility_strategy: ALWAYS_COMPATIBLE}", record("number"), 0),
        ("defaults: {schema_compatibility_strategy: ALWAYS_INCOMPATIBLE}", record("id", note=0), 100),
    ],
)
def test_predictions_for_a_target_are_those_of_its_brokers(
    tmp_path: Path, broker: str, definition: str, code: int
) -> None:
    with open_estate(tmp_path, broker=broker) as estate:
        (estate.scratch.path / "other.avsc").write_text(definition)
        for command in (
            ("admit", "producer", "orders", "--file", "other.avsc", "--target", "local"),
            ("registry", "test", "orders", "--file", "other.avsc", "--target", "local"),
        ):
            estate.run(*command, code=code)


def test_the_embedded_registry_has_the_settings_of_the_project(tmp_path: Path) -> None:
    estate = Estate(
        tmp_path / "shop",
        project='version: 1\ndefaults: {schema_compatibility_strategy: BACKWARD}\ntargets: {local: {registry: "memory:"}}\n',
    )
    assert read_json(estate, "drift")["brokers"] == {"broker": "memory:", "problem": None, "differences": []}


def answer_runtime(upstream: str, reply: Response) -> Any:
    """Return a responder that answers `reply` for the brokers' configuration, and everything else like `upstream`."""
    return lambda request: reply if request.path == RUNTIME else forward(upstream, request)


@pytest.mark.network
@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (
            respond_json({"reason": "no"}, 401),
            "GET brokers/configuration/runtime answers 401; only a superuser may read it",
        ),
        (
            respond_json({"reason": "no"}, 403),
            "GET brokers/configuration/runtime answers 403; only a superuser may read it",
        ),
        (respond_json({"reason": "?"}, 404), "GET brokers/configuration/runtime answers 404"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_one_line(tmp_path: Path, reply: Response, problem: str) -> None:
    with open_estate(tmp_path) as estate:
        upstream = read_json(estate, "plan")["registry"]
        with serve(answer_runtime(upstream, reply)) as server:
            estate.scratch.commit(
                {"schemactl.yaml": f'version: 1\ntargets: {{local: {{registry: "{server.url}"}}}}\n'}, "Move"
            )
            for command in ("plan", "drift"):
                text = estate.run(command).out
                assert text.count(problem) == 1, text
            value = read_json(estate, "drift", "--detailed-exitcode")["brokers"]
            assert (value["broker"], value["problem"], value["differences"]) == (server.url, problem, [])
            text = estate.run("status", "--detailed-exitcode").out
            assert text.count(problem) == 1
            assert (
                'schemactl_broker_settings_unknown{target="local"} 1'
                in estate.run("status", "--format", "prometheus").out
            )
            live = estate.run("show", "--effective", "orders", "--target", "local", "--live").out
            assert live.count(problem) == 1


@pytest.mark.network
def test_the_strategy_is_compared_although_the_configuration_cannot_be_read(tmp_path: Path) -> None:
    with open_estate(tmp_path, broker="defaults: {schema_compatibility_strategy: BACKWARD}") as estate:
        upstream = read_json(estate, "plan")["registry"]
        with serve(answer_runtime(upstream, respond_json({"reason": "no"}, 401))) as server:
            estate.scratch.commit(
                {"schemactl.yaml": f'version: 1\ntargets: {{local: {{registry: "{server.url}"}}}}\n'}, "Move"
            )
            value = read_json(estate, "drift", "--detailed-exitcode", code=2)["brokers"]
            # A compatibility test shows it to the administrator of a tenant.
            assert list_differences(value) == [("schemaCompatibilityStrategy", "FULL", "BACKWARD", IN_SALES)]
            assert value["problem"]


@pytest.mark.network
def test_a_checker_of_somebody_else_is_named_and_is_no_drift(tmp_path: Path) -> None:
    classes = "[com.example.Ours, org.apache.pulsar.broker.service.schema.JsonSchemaCompatibilityCheck]"
    reply = respond_json(
        {
            "schemaRegistryCompatibilityCheckers": classes,
            "advertisedAddress": "b-1.example.com",
            "webServicePort": "Optional[8080]",
        }
    )
    with open_estate(tmp_path) as estate:
        upstream = read_json(estate, "plan")["registry"]
        with serve(answer_runtime(upstream, reply)) as server:
            estate.scratch.commit(
                {"schemactl.yaml": f'version: 1\ntargets: {{local: {{registry: "{server.url}"}}}}\n'}, "Move"
            )
            value = read_json(estate, "drift")["brokers"]
            assert value["broker"] == "b-1.example.com:8080"
            rows = {difference["checker"]: difference for difference in value["differences"]}
            assert rows["com.example.Ours"]["namespaces"] == []
            assert "schemactl docs how-to/serve" in rows["com.example.Ours"]["fix"]
            assert f"org.apache.pulsar.broker.service.schema.{NATIVE}" in rows


@pytest.mark.network
def test_accepted_settings_are_no_drift_until_they_change(tmp_path: Path) -> None:
    settings = "defaults: {schema_compatibility_strategy: BACKWARD, excluded_checkers: [AvroSchemaCompatibilityCheck]}"
    with open_estate(tmp_path, broker=settings) as estate:
        arguments = ("drift", "--accept", "--reason", "as on all test clusters", "--owner", "platform")
        printed = estate.run(*arguments, "--until", (datetime.now(UTC).date() + timedelta(days=30)).isoformat())
        assert "  brokers: schemaCompatibilityStrategy is BACKWARD" in printed.out
        path = estate.scratch.path / "numbers/local.yaml"
        text = path.read_text()
        assert "brokers:\n  policies: {schema_compatibility_strategy: BACKWARD}\n" in text
        assert "  checkers: {AvroSchemaCompatibilityCheck: false}\n" in text
        estate.scratch.commit({"numbers/local.yaml": text}, "Accept the brokers")
        drift = read_json(estate, "drift", "--detailed-exitcode")
        assert [item["accepted"]["owner"] for item in drift["brokers"]["differences"]] == ["platform", "platform"]
        assert "accepted: as on all test clusters; platform" in estate.run("drift").out
        assert read_json(estate, "status", "--detailed-exitcode")["targets"][0]["drift"] == {}
        assert "Nothing was written. The version numbers of" in estate.run(*arguments).out
        assert path.read_text() == text

        # Another value, and an expired acceptance, are drift.
        for old, new, count in (("BACKWARD", "FORWARD", 1), ("until: ", "until: 2020-01-01  # ", 2)):
            estate.scratch.commit({"numbers/local.yaml": text.replace(old, new)}, "Another acceptance")
            drift = read_json(estate, "drift", "--detailed-exitcode", code=2)
            assert sum(item["accepted"] is None for item in drift["brokers"]["differences"]) == count

        # Once the project file states the settings, the acceptance is obsolete, and the next one removes it.
        project = estate.scratch.git("show", "HEAD:schemactl.yaml")
        estate.scratch.commit(
            {"numbers/local.yaml": text, "schemactl.yaml": f"{project}\n{settings}\n"}, "State what the brokers have"
        )
        obsolete = "accepted, but no longer present: AvroSchemaCompatibilityCheck, schema_compatibility_strategy (numbers/local.yaml:"
        assert obsolete in estate.run("drift", "--detailed-exitcode").out
        estate.run("drift", "--accept", "--reason", "x")
        assert "brokers" not in path.read_text()


@pytest.mark.network
def test_an_acceptance_of_some_topics_leaves_the_brokers(tmp_path: Path) -> None:
    with open_estate(tmp_path, broker="defaults: {schema_compatibility_strategy: BACKWARD}") as estate:
        assert "brokers" not in estate.run("drift", "--accept", "--reason", "x", "--topic", "orders").out


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("  reason: x\n  accepted: 2026-11-22\n", "1:1: the accepted settings of the brokers are missing"),
        ("  policies: {schema_compatibility_strategy: FULL}\n  accepted: 2026-11-22\n", "1:1: accepted settings of the brokers need their `reason`"),
        ("  policies: {schema_compatibility_strategy: FULL}\n  reason: x\n", "1:1: accepted settings of the brokers need their `accepted`"),
        ("  policies: {message_ttl_in_seconds: 1}\n  reason: x\n  accepted: 2026-11-22\n", "2:13: expected values by their policies, of schema_"),
        ("  checkers: [AvroSchemaCompatibilityCheck]\n  reason: x\n  accepted: 2026-11-22\n", "2:13: expected true (listed) or false by class names"),
        ("  unmanaged: true\n  reason: x\n  accepted: 2026-11-22\n", "2:3: unknown key `unmanaged`"),
        ("  4: {git: 3}\n", "2:3: unknown key `4`"),
        ("  policies: {schema_compatibility_strategy: FULL}\n  reason: x\n  accepted: soon\n", "4:13: expected a day"),
    ],
)  # fmt: skip
def test_wrong_acceptances_of_brokers_have_their_place(estate: Estate, lines: str, message: str) -> None:
    estate.scratch.commit({"numbers/local.yaml": f"brokers:\n{lines}"}, "Record something")
    assert f"numbers/local.yaml:{message}" in estate.run("check", "--base", "HEAD~1", code=1).err


@pytest.mark.network
def test_show_live_prints_both_sides(tmp_path: Path) -> None:
    with open_estate(
        tmp_path,
        broker="defaults: {schema_compatibility_strategy: BACKWARD}",
        namespace="is_allow_auto_update_schema: false",
    ) as estate:
        arguments = ["show", "--effective", "orders", "--target", "local", "--live"]
        values = read_json(estate, *arguments)["values"]
        sides = {
            key: (value["value"], value["level"], value["live"]["value"], value["live"]["level"])
            for key, value in values.items()
            if value["live"]
        }
        assert sides["schema_compatibility_strategy"] == ("FULL", "pulsar", "BACKWARD", "brokers")
        assert sides["is_allow_auto_update_schema"] == (False, "namespace", False, "namespace")
        assert sides["schema_validation_enforced"] == (False, "pulsar", False, "namespace")
        assert sides["message_ttl_in_seconds"] == (None, None, 0, "brokers")
        assert sides["partitions"] == ("none", "pulsar", "none", "topic")
        text = estate.run(*arguments).out
        assert "LOCAL" in text.splitlines()[1]
        estate.scratch.commit(
            {"namespaces/refunds.yaml": write_declaration(topic="persistent://shop/sales/refunds")}, "Refunds"
        )
        absent = estate.run("show", "--effective", "refunds", "--target", "local", "--live").out
        assert "The registry does not have persistent://shop/sales/refunds." in absent


@pytest.mark.parametrize("arguments", [["--live"], ["--live", "--effective"], ["--live", "--target", "local"]])
def test_show_live_needs_a_target(estate: Estate, arguments: list[str]) -> None:
    assert "--live compares with a registry" in estate.run("show", "orders", *arguments, code=64).err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("excluded_checkers: [AvroSchemaCheck]", "`AvroSchemaCheck` is not a valid default checker of Pulsar"),
        ("excluded_checkers: [KeyValueSchemaCompatibilityCheck]", "cannot be excluded: brokers always have it"),
        ("excluded_checkers: [ExternalSchemaCompatibilityCheck]", "Pulsar 4.0 has no ExternalSchemaCompatibilityCheck"),
        ("excluded_checkers: AvroSchemaCompatibilityCheck", "expected a list"),
    ],
)
def test_a_wrong_excluded_checker_is_an_error_with_its_place(estate: Estate, settings: str, message: str) -> None:
    path = estate.scratch.path / "schemactl.yaml"
    estate.scratch.flush()
    path.write_text(path.read_text() + f"defaults: {{{settings}}}\n")
    error = estate.run("check", code=1).err
    assert message in error
    assert "schemactl.yaml:" in error


OLD = SchemaVersion(0, SchemaInfo(SchemaType.AVRO, record("id").encode()))
NEW = SchemaInfo(SchemaType.AVRO, record("number").encode())


@pytest.mark.parametrize(
    ("checker_changes", "strategy", "outcome"),
    [
        ((), S.FULL, Outcome.INCOMPATIBLE),
        (("!AvroSchemaCompatibilityCheck",), S.FULL, Outcome.OK),
        (("!AvroSchemaCompatibilityCheck",), S.ALWAYS_INCOMPATIBLE, Outcome.INCOMPATIBLE),
        (("!JsonSchemaCompatibilityCheck",), S.FULL, Outcome.INCOMPATIBLE),
    ],
)
def test_a_type_without_its_checker_accepts_everything(
    checker_changes: tuple[str, ...], strategy: CompatibilityStrategy, outcome: Outcome
) -> None:
    assert VersionList([OLD], Release.R4_0, checker_changes=checker_changes).put(NEW, strategy).outcome is outcome


@pytest.mark.parametrize("release", [*Release])
def test_checkers_and_their_classes_are_one_to_one(release: Release) -> None:
    for optional in ((), ("!JsonSchemaCompatibilityCheck",), ("ProtobufSchemaCompatibilityCheck", f"!{NATIVE}")):
        assert parse_checker_classes(release, list_classes(release, optional)) == optional
    assert parse_checker_classes(release, ["com.example.Ours"]) is None
    with pytest.raises(UsageError):
        create_checkers(Release.R4_0, ("AvroSchemaCompatibilityCheck",))


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_a_real_broker_has_the_default_configuration(tmp_path: Path, release: str) -> None:
    broker = brokers.start_broker(release)
    estate = EstateOnPulsar(tmp_path / "shop", broker)
    estate.run("apply", "--auto-approve")
    value = read_json(estate, "drift", "--detailed-exitcode")["brokers"]
    assert value == {"broker": broker.url.removeprefix("http://"), "problem": None, "differences": []}
    text = estate.scratch.git("show", "HEAD:schemactl.yaml")
    settings = "defaults: {schema_compatibility_strategy: BACKWARD, schema_validation_enforced: true, excluded_checkers: [JsonSchemaCompatibilityCheck]}"
    estate.scratch.commit({"schemactl.yaml": f"{text}\n{settings}\n"}, "State something else")
    differences = list_differences(read_json(estate, "plan")["brokers"])
    # The namespace declares a strategy, and the topic is AVRO.
    assert [(key, expected, actual, bool(namespaces)) for key, expected, actual, namespaces in differences] == [
        ("schemaCompatibilityStrategy", "BACKWARD", "FULL", False),
        ("isSchemaValidationEnforced", True, False, True),
        ("JsonSchemaCompatibilityCheck", False, True, False),
    ]
