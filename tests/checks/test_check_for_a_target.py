"""`check --target` judges by the numbers, the foreign versions and the release of one target, from Git alone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import brokers
import pytest
from estate import ORDERS, PROJECT, Estate, EstateOnPulsar, make_order_info
from scratch import record, write_declaration

pytestmark = pytest.mark.slow

DAYS = ("--reason", "consumers are gone", "--until", "2027-06-30", "--owner", "ada")


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Apply versions 0 and 1 to `local`, record a foreign version 2, and check out a branch."""
    more = '  other: {registry: "sqlite:.schemactl/other.db", pulsar: "4.2"}\n'
    result = Estate(tmp_path_factory.mktemp("prepared") / "shop", project=PROJECT + more)
    result.commit_orders("id", note=0)
    result.run("apply", "--target", "local", "--auto-approve")
    result.put(make_order_info("id", theirs=0))
    result.accept("--target", "local")
    result.scratch.git("checkout", "-q", "-b", "work")
    return result


def require_note(estate: Estate) -> None:
    """Require `note`, which is compatible with Git's version 1 but not with the foreign version."""
    estate.scratch.write({"namespaces/orders.avsc": record("id", note=0).replace(', "default": 0', "")})


def edit(estate: Estate, *fields: str, **default: Any) -> None:
    estate.scratch.write({"namespaces/orders.avsc": record(*fields, **default)})


def check(estate: Estate, *arguments: str, code: int = 0) -> Any:
    return estate.run_json("check", *arguments, code=code)


def list_rules(report: Any) -> list[str]:
    return [finding["rule"] for finding in report["findings"]]


def test_the_numbers_and_the_release_are_the_targets(estate: Estate) -> None:
    edit(estate, "id", note=0, theirs=0)
    report = check(estate, "--target", "local")
    [local] = report["topics"]
    assert (report["pulsar"], local["version"], local["latest"]) == ("4.0", 3, 2)
    assert check(estate, "--target", "other")["pulsar"] == "4.2"
    [also, other] = check(estate)["topics"]
    assert also == local
    assert (other["targets"], other["version"], other["latest"]) == (["other"], 2, 1)
    assert local["broker"]["version"] == 3
    edit(estate, "id")
    [older] = check(estate, "--target", "local")["topics"]
    assert (older["change"], older["version"], older["latest"]) == ("older version", 0, 2)


def test_a_foreign_version_takes_part_in_both_verdicts(estate: Estate) -> None:
    require_note(estate)
    assert list_rules(check(estate, "--target", "other")) == []
    result = check(estate, "--target", "local", code=100)
    assert check(estate, code=100)["findings"] == [
        {**finding, "fix": finding["fix"].replace(" --target local", "")} for finding in result["findings"]
    ]
    assert {*list_rules(result)} == {"READER_FIELD_MISSING_DEFAULT_VALUE", "BROKER_INCOMPATIBLE"}
    assert [finding["against"] for finding in result["findings"] if finding["against"]] == [[2]]
    assert result["target"] == "local"
    text = estate.run("check", "--target", "local", code=100).out
    assert "version 3 must read messages written with version 2." in text
    assert "checked against main (" in text
    assert ") on local for Pulsar 4.0, 1 changed, 1 failed" in text


def test_plan_says_the_same_after_the_merge(estate: Estate) -> None:
    require_note(estate)
    estate.scratch.git("commit", "-q", "-a", "-m", "No default")
    assert {*list_rules(check(estate, "--base", "main", "--target", "local", code=100))} == {
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "BROKER_INCOMPATIBLE",
    }
    estate.scratch.git("checkout", "-q", "main")
    estate.scratch.git("merge", "-q", "--ff-only", "work")
    assert "would be rejected" in estate.run("plan", "--target", "local", code=100).out


def test_what_only_a_target_meets_is_waived_for_it_and_carried_out(estate: Estate) -> None:
    require_note(estate)
    printed = estate.run("check", "--target", "local", code=100).out
    name, *options = printed.partition("schemactl waive ")[2].split()
    assert options[:2] == ["--target", "local"]
    estate.run("waive", name, "--target", "local", *DAYS)
    assert len(check(estate, "--target", "local")["waivers"]) == 2
    # Another target does not have the version, and the waivers do not count as unused.
    assert list_rules(check(estate, "--target", "other")) == []
    assert check(estate)["warnings"] == 0
    estate.scratch.git("add", "-A")
    estate.scratch.git("commit", "-q", "-m", "No default")
    assert check(estate, "--base", "main")["warnings"] == 0
    estate.scratch.git("checkout", "-q", "main")
    estate.scratch.git("merge", "-q", "--ff-only", "work")
    assert "consumers are gone" in estate.run("plan", "--target", "local").out
    estate.run("apply", "--target", "local", "--auto-approve")
    assert [version.number for version in estate.read_versions()] == [0, 1, 2, 3]


def test_pinned_readers_and_clients_mean_gits_versions(estate: Estate) -> None:
    client = "clients: [{name: billing, role: consumer, schema: 1}]\n"
    orders = write_declaration() + client
    edit(estate, "id", note=0, city=0)
    for reader, code in ((2, 0), (7, 100)):
        estate.scratch.write({"namespaces/orders.yaml": f"{orders}reader: {reader}\n"})
        for arguments in ([], ["--target", "local"]):
            rules = list_rules(check(estate, *arguments, code=code))
            assert ("READER_VERSION_UNKNOWN" in rules) == (reader == 7)


def test_a_client_is_judged_where_it_runs(estate: Estate) -> None:
    orders = write_declaration() + "clients: [{name: billing, role: consumer, schema: 0, targets: [other]}]\n"
    path = estate.scratch.path / "namespaces/orders.yaml"
    estate.scratch.git("checkout", "-q", "main")
    path.write_text(orders)
    estate.scratch.git("commit", "-q", "-a", "-m", "billing")
    edit(estate, note=0)
    local, other = check(estate, "--target", "local"), check(estate, "--target", "other", code=100)
    assert (list_rules(local), local["topics"][0]["clients"]) == ([], [])
    assert list_rules(other) == ["CLIENT_BREAKS"]
    assert [client["name"] for client in other["topics"][0]["clients"]] == ["billing"]
    assert [finding["targets"] for finding in check(estate, code=100)["findings"]] == [["other"]]
    # Declaring the client for another target does not repair it, and neither does removing it.
    path.write_text(orders.replace("other", "local"))
    assert list_rules(check(estate, "--target", "other", code=100)) == ["CLIENT_BREAKS"]


def test_a_rollout_asks_each_target_by_its_own_numbers(estate: Estate) -> None:
    edit(estate, "id", note=0, theirs=0)
    project = estate.scratch.path / "schemactl.yaml"
    # Clients connect to this target.
    project.write_text(re.sub('"sqlite:.*?"', '"https://pulsar.example.com"', project.read_text()))
    for targets in (("local", "other"), ("local",)):
        result = estate.run_json("rollout", "orders")
        assert (result["version"], result["latest"]) == (2, 1)
        commands = {(step["kind"], step["target"]): (step["text"], step["command"]) for step in result["steps"]}
        assert {target for _, target in commands} == {None, *targets}
        assert commands["merge", None][1] == "schemactl show shop/sales/orders@2"
        text, command = commands["consumers", "local"]
        assert text == "upgrade consumers to version 2 (3 there)"
        assert command == "schemactl clients shop/sales/orders --target local --expect 3 --role consumer"
        if "other" in targets:
            assert commands["consumers", "other"][1].endswith("--target other --expect 2 --role consumer")
        # Without a target that has Git's numbers.
        project.write_text(project.read_text().partition("  other:")[0])


def test_a_deleted_number_is_a_tombstone(estate: Estate) -> None:
    estate.scratch.git("checkout", "-q", "main")
    numbers = estate.scratch.path / "numbers/local.yaml"
    numbers.write_text(f"{ORDERS}: {{0: {{deleted: true}}, 1: {{deleted: true}}, 2: {{deleted: true}}}}\n")
    estate.scratch.git("commit", "-q", "-a", "-m", "Somebody deleted all of it")
    edit(estate, "id", note=0, city=0)
    [topic] = check(estate, "--target", "local")["topics"]
    # Git's versions 0 and 1 follow under new numbers.
    assert (topic["latest"], topic["version"]) == (4, 5)


def test_a_definition_that_does_not_parse_is_not_compared_with(estate: Estate) -> None:
    estate.scratch.git("checkout", "-q", "main")
    [path] = (estate.scratch.path / "numbers/foreign/local").iterdir()
    broken = path.with_name(f"{path.stem.rpartition('-')[0]}-6b86b273.avsc")
    path.rename(broken)
    broken.write_text("1")
    numbers = estate.scratch.path / "numbers/local.yaml"
    numbers.write_text(numbers.read_text().replace(path.name, broken.name))
    estate.scratch.git("add", "-A")
    estate.scratch.git("commit", "-q", "-m", "What the registry holds is no schema")
    require_note(estate)
    printed = estate.run("check", "--target", "local")
    assert f"local's version 2 of {ORDERS} is not used in the comparison: its definition does not parse" in printed.err


def test_no_registry_is_contacted_and_the_environment_does_not_count(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHEMACTL_TARGET", "local")
    shutil.rmtree(estate.scratch.path / ".schemactl")
    assert check(estate)["target"] is None
    check(estate, "--target", "local")
    assert not (estate.scratch.path / ".schemactl").exists()


def test_an_unknown_target_is_named(estate: Estate) -> None:
    assert (
        "--target locla: schemactl.yaml has local, other; did you mean local?"
        in estate.run("check", "--target", "locla", code=64).err
    )


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_a_broker_answers_what_the_check_for_its_target_predicts(tmp_path: Path, release: str) -> None:
    estate = EstateOnPulsar(tmp_path / "shop", brokers.start_broker(release), more=f', pulsar: "{release}"')
    estate.commit_orders("id", note=0)
    estate.run("apply", "--auto-approve")
    estate.put(make_order_info("id", theirs=0))
    estate.accept()
    require_note(estate)
    predicted = check(estate, "--target", "local", code=100)
    assert predicted["topics"][0]["broker"]["answer"] == "incompatible"
    arguments = ("registry", "put", "orders", "--file", "namespaces/orders.avsc")
    assert "incompatible, nothing was stored" in estate.run(*arguments, code=100).out
    edit(estate, "id", note=0, theirs=0)
    predicted = check(estate, "--target", "local")
    number = predicted["topics"][0]["broker"]["version"]
    estate.scratch.git("commit", "-q", "-a", "-m", "Approve what is theirs, too")
    estate.run("apply", "--auto-approve")
    assert estate.read_versions()[-1].number == number == 3


def test_a_generation_begins_after_what_the_target_has(estate: Estate) -> None:
    second = write_declaration(more="generation: 2\n")
    estate.scratch.write({"namespaces/orders.yaml": second, "namespaces/orders.avsc": record(id=0)})
    report = check(estate, "--target", "local", code=100)
    assert (list_rules(report), report["topics"][0]["version"]) == (["NEW_GENERATION"], 4)
    (finding,) = report["findings"]
    estate.run("waive", finding["fingerprint"], *DAYS)
    estate.scratch.git("checkout", "-q", "main")
    estate.scratch.commit(
        {
            "namespaces/orders.yaml": second,
            "namespaces/orders.avsc": record(id=0),
            "waivers.yaml": (estate.scratch.path / "waivers.yaml").read_text(),
        }
    )
    estate.scratch.git("reset", "-q", "--hard", "main")
    edit(estate, id=0, note=0)
    report = check(estate, "--target", "local")
    assert (report["findings"], report["topics"][0]["version"], report["topics"][0]["latest"]) == ([], 5, 4)
    estate.run("apply", "--target", "local", "--auto-approve", code=3)
    assert [version.info is None for version in estate.read_versions()] == [False, False, False, True, False]
    report = check(estate, "--target", "local")
    assert (report["findings"], report["topics"][0]["version"]) == ([], 5)
