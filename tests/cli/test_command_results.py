"""The JSON of commands whose text is for people: one object in every case, with the keys of its page."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from command import Printed, schemactl
from estate import Estate
from scratch import Scratch, record

from schemactl.core.documentation import find_documentation

pytestmark = pytest.mark.slow

COMMON = {"format_version", "schemactl", "command", "exit_code", "problems"}


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Two approved versions; nothing is applied."""
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    estate.commit_orders("id", note=0)
    return estate


@cache
def read_page() -> dict[str, set[str]]:
    """Return the keys that the page lists, by command; the keys of every command are under ""."""
    text = (find_documentation() / "reference" / "command-results.md").read_text()
    keys: dict[str, set[str]] = {}
    command = ""
    for line in text.splitlines():
        if line.startswith("## "):
            command = line.removeprefix("## ")
        elif line.startswith("| `"):
            keys.setdefault(command, set()).update(re.findall(r"`(\w+)`", line.split("|")[1]))
    return keys


def read_result(printed: Printed, command: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(printed.out)
    assert result["format_version"] == 1
    assert result["command"] == command
    assert result["exit_code"] == printed.code
    return result


def run(path: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    """Return the result of a command as JSON, which has exactly the keys of its page unless the command failed."""
    result = read_result(schemactl(path, *arguments, "--format", "json", code=code), arguments[0])
    expected = read_page()[""] | read_page()[arguments[0]]
    assert result.keys() <= expected
    if not result["problems"]:
        assert result.keys() == expected
    return result


def test_the_page_has_the_common_keys() -> None:
    assert read_page()[""] == COMMON


def test_init_and_new_name_their_files(tmp_path: Path) -> None:
    shop = Scratch(tmp_path / "shop")
    result = run(shop.path, "init")
    assert {"schemactl.yaml", "namespaces/default/greetings.avsc", ".pre-commit-config.yaml"} <= {*result["written"]}
    assert all((shop.path / path).is_file() for path in result["written"])
    assert {*result["changed"]} == {".gitignore", ".gitattributes"}
    assert "schemactl check" in result["next"]
    again = run(shop.path, "init")
    assert (again["written"], again["changed"], again["next"]) == ([], [], [])

    namespace = run(shop.path, "new", "namespace", "shop/sales", "--strategy", "FULL")
    assert (namespace["kind"], namespace["name"]) == ("namespace", "shop/sales")
    topic = run(shop.path, "new", "topic", "shop/sales/orders")
    assert (topic["kind"], topic["name"]) == ("topic", "persistent://shop/sales/orders")
    assert topic["next"] == ["schemactl check"]
    assert [path.endswith((".yaml", ".avsc")) for path in topic["written"]] == [True, True]
    twice = run(shop.path, "new", "topic", "shop/sales/orders", code=64)
    assert "is declared already" in twice["problems"][0]["message"]
    assert twice["written"] == []


def test_fmt_names_the_files(estate: Estate) -> None:
    estate.scratch.flush()
    path = estate.scratch.path / "namespaces/orders.avsc"
    path.write_text(record("id", note=0, indent=7))
    check = run(estate.scratch.path, "fmt", "--check", code=100)
    assert (check["written"], check["changed"], check["refused"]) == (False, ["namespaces/orders.avsc"], [])
    assert check["unchanged"] == 3
    assert path.read_text() == record("id", note=0, indent=7)
    fmt = run(estate.scratch.path, "fmt")
    assert (fmt["written"], fmt["changed"]) == (True, ["namespaces/orders.avsc"])
    assert run(estate.scratch.path, "fmt")["changed"] == []


def test_explain_has_the_whole_rule(estate: Estate) -> None:
    [rule] = run(estate.scratch.path, "explain", "READER_FIELD_MISSING_DEFAULT_VALUE")["rules"]
    assert rule["rule"] == "READER_FIELD_MISSING_DEFAULT_VALUE"
    assert (rule["verdict"], rule["severity"], rule["only_with"]) == ("data", "error", None)
    assert all(rule[key] for key in ("summary", "why", "example", "fix", "link"))
    rules = run(estate.scratch.path, "explain", "--all")["rules"]
    assert len(rules) == len({rule["rule"] for rule in rules}) > 100
    assert {rule["rule"] for rule in run(estate.scratch.path, "explain", "enum", "default")["rules"]} < {
        rule["rule"] for rule in rules
    }
    assert "there is no rule" in run(estate.scratch.path, "explain", "QQQZZZ", code=64)["problems"][0]["message"]


def test_waive_has_its_entries(estate: Estate) -> None:
    estate.scratch.flush()
    (estate.scratch.path / "namespaces/orders.avsc").write_text(record("number"))
    check = estate.run_json("check", code=100)
    fingerprint = check["causes"][0]["fingerprint"] if "fingerprint" in check["causes"][0] else check["causes"][0]["id"]
    arguments = ("waive", fingerprint, "--reason", "nobody reads it", "--until", next_month(), "--owner", "ada")
    result = run(estate.scratch.path, *arguments)
    assert result["path"] == "waivers.yaml"
    assert {waiver["owner"] for waiver in result["waivers"]} == {"ada"}
    again = run(estate.scratch.path, *arguments, code=64)
    assert again["problems"]
    wrong = run(estate.scratch.path, "waive", "0000", "--reason", "x", "--until", next_month(), code=64)
    assert wrong["problems"][0]["message"]


def next_month() -> str:
    from datetime import UTC, datetime, timedelta

    return (datetime.now(UTC).date() + timedelta(days=30)).isoformat()


def test_apply_has_the_result_of_its_target(estate: Estate) -> None:
    path = estate.scratch.path
    refused = run(path, "apply", code=64)
    assert "without the format text, the plan is not shown" in refused["problems"][0]["message"]
    assert "standard input is not a terminal" in schemactl(path, "apply", code=64).err
    result = run(path, "apply", "--auto-approve")
    [target] = result["targets"]
    assert (target["target"], target["outcome"], target["problem"]) == ("local", "applied", None)
    assert [step["action"] for step in target["steps"]][-2:] == ["register_version", "register_version"]
    assert target["done"] == [*range(1, len(target["steps"]) + 1)]
    recorded = json.loads((path / ".schemactl/results/local.json").read_text())
    assert {key: target[key] for key in recorded if key != "time_s"} == {
        key: value for key, value in recorded.items() if key != "time_s"
    }
    [target] = run(path, "apply", "--auto-approve")["targets"]
    assert (target["outcome"], target["steps"]) == ("applied", [])


def test_apply_of_a_rejected_version_is_not_applied(estate: Estate) -> None:
    estate.run("apply", "--auto-approve")
    estate.commit_orders("number")
    estate.scratch.flush()
    result = run(estate.scratch.path, "apply", "--auto-approve", "--fail-fast", code=100)
    [target] = result["targets"]
    assert (target["outcome"], len(target["left_out"]), target["done"]) == ("not applied", 1, [])


def test_apply_of_several_targets_has_each(tmp_path: Path) -> None:
    project = (
        "version: 1\ntargets:\n  good: {registry: 'sqlite:.schemactl/good.db'}\n"
        "  silent: {registry: 'http://127.0.0.1:9'}\n"
    )
    estate = Estate(tmp_path / "shop", project=project)
    estate.scratch.flush()
    result = run(estate.scratch.path, "apply", "--all-targets", "--auto-approve", "--timeout", "60", code=1)
    assert not result["problems"], result
    targets = {target["target"]: target for target in result["targets"]}
    assert targets["good"]["outcome"] == "applied"
    assert "127.0.0.1:9" in targets["silent"]["problem"]


def test_rebuild_has_the_result_and_the_sources(estate: Estate) -> None:
    estate.run("apply", "--auto-approve")
    estate.run("registry", "delete", "orders", "--force-delete")
    result = run(estate.scratch.path, "rebuild", "--auto-approve")
    [target] = result["targets"]
    assert target["outcome"] == "applied"
    assert result["sources"]
    estate.run("registry", "delete", "orders", "--force-delete")
    planned = run(estate.scratch.path, "rebuild", "--out", "plan.json")
    assert planned["targets"][0]["outcome"] == "not applied"
    assert (estate.scratch.path / "plan.json").is_file()


def test_import_names_its_files(estate: Estate, tmp_path: Path) -> None:
    estate.run("apply", "--auto-approve")
    other = Scratch(tmp_path / "other")
    other.commit({"README.md": "empty\n"}, "Begin")
    other.flush()
    other.configure_author()
    url = f"sqlite:{estate.scratch.path}/.schemactl/registry.db"
    result = run(other.path, "import", "--registry", url, "--one-commit")
    assert (result["target"], result["registry"], result["topics"], result["namespaces"]) == ("local", url, 1, 1)
    assert result["committed"] == other.git("rev-parse", "HEAD")
    assert all((other.path / path).is_file() for path in result["written"])
    again = run(other.path, "import")
    assert (again["topics"], again["written"], again["committed"]) == (0, [], None)


@pytest.mark.parametrize(
    "arguments",
    [
        ["apply", "--auto-approve"],
        ["rebuild", "--auto-approve"],
        ["import"],
        ["waive", "4ee9", "--reason", "x", "--until", "{until}"],
        ["new", "topic", "shop/sales/refunds"],
        ["init"],
        ["fmt"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_problems_of_the_project_file_have_their_place(estate: Estate, arguments: list[str]) -> None:
    estate.scratch.commit({"schemactl.yaml": "version: 1\nrooots: [a]\ntargetz: {}\n"}, "Break it")
    estate.scratch.flush()
    words = [argument.format(until=next_month()) for argument in arguments]
    printed = estate.run(*words, "--format", "json", code=1)
    problems = read_result(printed, arguments[0])["problems"]
    assert [(problem["file"], problem["line"], problem["column"]) for problem in problems] == [
        ("schemactl.yaml", 2, 1),
        ("schemactl.yaml", 3, 1),
    ]
    assert all(problem["message"] and problem["fix"] for problem in problems)
    assert "schemactl.yaml:2:1" in printed.err


def test_json_in_a_file_leaves_the_text(estate: Estate) -> None:
    printed = estate.run("apply", "--auto-approve", "--format", "text", "--format", "json=result.json")
    assert "Applied: 1 namespace, 1 topic, 2 versions registered." in printed.out
    assert "wrote" in printed.err
    assert estate.read_json("result.json")["targets"][0]["outcome"] == "applied"
    # A file alone replaces the text on standard output, as for other commands.
    assert estate.run("apply", "--auto-approve", "--format", "json=result.json").out == ""


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("yaml", "expected one of text, json"),
        ("json=", "a file name must follow the ="),
        ("text=out.txt", "--format text=FILE: this command can write text only to standard output"),
    ],
)
def test_wrong_formats_are_wrong_usage(estate: Estate, option: str, message: str) -> None:
    assert message in estate.run("fmt", "--check", "--format", option, code=64).err
