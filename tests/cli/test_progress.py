"""Progress on standard error as JSON Lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import admin_rest
import pytest
from command import Printed
from estate import PROJECT, Estate

from schemactl.cli.context import JsonProgress

PHASES: list[tuple[list[str], dict[str, str]]] = [
    (["check"], {"reading the approved history": "commits"}),
    (["plan"], {"reading the approved history": "commits"}),
    (["apply", "--auto-approve"], {"reading the approved history": "commits", "applying": "steps"}),
    (["drift"], {"reading the approved history": "commits"}),
    (["status"], {"reading the approved history": "commits"}),
    (["generate"], {"reading the approved history": "commits"}),
    (["site", "--out", "site"], {"reading the approved history": "commits", "writing pages": "topics"}),
    (["log", "orders"], {"reading the approved history": "commits"}),
]
"""A command, and the unit of each of its phases."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    estate = Estate(
        tmp_path_factory.mktemp("prepared") / "shop", project=f"{PROJECT}generate: {{package: shop_schemas}}\n"
    )
    for number in range(5):
        estate.orders("id", **{f"note{number}": 0})
    return estate


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCHEMACTL_CACHE", str(tmp_path / "cache"))


def read_lines(printed: Printed) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.err.splitlines() if line.startswith("{")]


@pytest.mark.parametrize(("arguments", "units"), PHASES, ids=[" ".join(arguments[:1]) for arguments, _ in PHASES])
@pytest.mark.parametrize("position", ["before the command", "after it"])
def test_each_phase_ends_with_its_total(
    estate: Estate, arguments: list[str], units: dict[str, str], position: str
) -> None:
    option = ["--progress", "json"]
    printed = estate.run(*arguments, *option) if position == "after it" else estate.run(*option, *arguments)
    lines = read_lines(printed)
    assert {line["phase"]: line["unit"] for line in lines} == units
    for phase in units:
        line = [line for line in lines if line["phase"] == phase][-1]
        assert line.keys() == {"phase", "target", "done", "total", "unit", "elapsed_s"}
        assert line["done"] == line["total"] > 0
        assert line["elapsed_s"] >= 0
        assert line["target"] is None
    assert "[1/" not in printed.err


@pytest.mark.parametrize("options", [[], ["--progress", "text"], ["--quiet", "--progress", "json"]])
def test_no_json_without_it_and_none_with_quiet(estate: Estate, options: list[str]) -> None:
    assert read_lines(estate.run("plan", *options)) == []


def test_targets_side_by_side_are_named(tmp_path: Path) -> None:
    project = "version: 1\ntargets:\n  one: {registry: 'sqlite:.schemactl/one.db'}\n  two: {registry: 'sqlite:.schemactl/two.db'}\n"
    estate = Estate(tmp_path / "shop", project=project)
    lines = read_lines(estate.run("apply", "--all-targets", "--auto-approve", "--progress", "json"))
    ends = {line["target"]: line["done"] == line["total"] for line in lines if line["phase"] == "applying"}
    assert ends == {"one": True, "two": True}


@pytest.mark.network
def test_reading_a_registry_is_a_phase(tmp_path: Path) -> None:
    with admin_rest.served("--registry", "memory:") as (url, _):
        estate = Estate(tmp_path / "shop", project=f'version: 1\ntargets: {{local: {{registry: "{url}"}}}}\n')
        estate.run("apply", "--auto-approve")
        for command in (["plan"], ["drift", "--unmanaged"], ["import"], ["status"]):
            lines = [
                line for line in read_lines(estate.run(*command, "--progress", "json")) if line["unit"] == "topics"
            ]
            assert [(line["phase"], line["done"], line["total"]) for line in lines] == [("reading local", 1, 1)], (
                command
            )


def test_wrong_form_is_wrong_usage(estate: Estate) -> None:
    assert "--progress" in estate.run("plan", "--progress", "xml", code=64).err


def test_objects_are_at_most_two_a_second_and_end_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr("schemactl.cli.context.time.monotonic", lambda: now_s)
    progress = JsonProgress("reading", "topics", "prod")
    for done in range(1, 101):
        now_s += 0.1
        progress(done, 100)
    progress(100, 100)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert 15 <= len(lines) <= 21
    assert [line["done"] for line in lines] == sorted({line["done"] for line in lines})
    assert lines[-1] == {
        "phase": "reading", "target": "prod", "done": 100, "total": 100, "unit": "topics", "elapsed_s": 10.0,
    }  # fmt: skip
