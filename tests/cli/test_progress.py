"""Progress on standard error as JSON Lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import admin_rest
import pytest
from command import Printed
from estate import PROJECT, Estate

from schemactl.cli.context import (
    BAR_COLUMNS,
    Context,
    JsonProgress,
    PlainProgress,
    Progress,
    describe_progress,
    render_bar,
)
from schemactl.history.approved_history import load_project, read_history
from schemactl.history.git import Repository

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
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    estate = Estate(
        tmp_path_factory.mktemp("prepared") / "shop", project=f"{PROJECT}generate: {{package: shop_schemas}}\n"
    )
    for number in range(5):
        estate.commit_orders("id", **{f"note{number}": 0})
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
    with admin_rest.serve_folder("--registry", "memory:") as (url, _):
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


@pytest.mark.parametrize(
    ("done", "total", "elapsed_s", "text"),
    [
        (0, 20, 9.0, "0 of 20 steps"),
        (5, 20, 1.0, "5 of 20 steps"),
        (5, 20, 10.0, "5 of 20 steps, 0.5 a second, about 30 s left"),
        (1_500, None, 10.0, "1,500 steps, 150.0 a second"),
        (20, 20, 10.0, "20 of 20 steps, 2.0 a second, about 0 s left"),
    ],
)
def test_progress_has_a_rate_and_the_time_left(done: int, total: int | None, elapsed_s: float, text: str) -> None:
    assert describe_progress(done, total, "steps", elapsed_s) == text


def test_a_bar_is_as_long_as_the_part_that_is_done() -> None:
    for done in (0, 5, 10, 20):
        bar = re.sub(r"\x1b\[[0-9;]*m", "", render_bar(done, 20))
        assert len(bar) == BAR_COLUMNS
        assert render_bar(done, 20).partition("\x1b[0m")[0].count("\u2501") in (done * BAR_COLUMNS // 20, BAR_COLUMNS)


def test_without_a_terminal_there_is_a_line_every_ten_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr("schemactl.cli.context.time.monotonic", lambda: now_s)
    progress = PlainProgress(Context("/"), "reading prod", "topics")
    for done in range(1, 101):
        now_s += 0.25
        progress(done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "reading prod: 40 of 100 topics, 4.0 a second, about 15 s left",
        "reading prod: 80 of 100 topics, 4.0 a second, about 5 s left",
    ]


@pytest.mark.parametrize("columns", [30, 80])
def test_a_terminal_shows_a_bar_in_the_first_second(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr("schemactl.cli.context.time.monotonic", lambda: now_s)
    monkeypatch.setenv("COLUMNS", str(columns))
    progress = Progress("reading prod", "topics")
    for done in range(1, 10):
        now_s += 0.1
        progress(done, 100)
    lines = [re.sub(r"\x1b\[[0-9;]*[mK]", "", line) for line in capsys.readouterr().err.split("\r")]
    assert lines[1].endswith("reading prod: 5 of 100 topics"[: columns - 1])
    assert max(map(len, lines)) < columns
    progress(100, 100)
    assert capsys.readouterr().err == "\r\x1b[K"


def test_reading_a_long_history_knows_its_total(estate: Estate) -> None:
    calls: list[tuple[int, int | None]] = []
    for _ in range(210):
        estate.scratch.commit()
    count = int(estate.scratch.git("rev-list", "--first-parent", "--count", "HEAD"))
    project = load_project(str(estate.scratch.path), None)[0]
    with Repository.open(estate.scratch.path) as repository:
        read_history(repository, project, progress=lambda done, total: calls.append((done, total)))
    steps = [(done, count if done >= 200 else None) for done in range(1, count)]
    assert calls == [*steps, (count, None), (count, count)]
