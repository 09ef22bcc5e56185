"""The tutorial on three environments, followed to the letter: three environments, from nothing to a break in production."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import brokers
import pytest
from command import process, schemactl
from scratch import ENVIRONMENT, cache_of

from examples.environments import history
from schemactl.core.names import TopicName
from schemactl.core.policies import BrokerDefaults
from schemactl.core.project import Project
from schemactl.declare.project import read_project
from schemactl.registry import open_registry
from schemactl.registry.interface import Scope

README: Final = Path(__file__).parents[1] / "docs/tutorial/three-environments.md"
TARGETS: Final = ("dev", "stage", "prod")
MESSAGES: Final[dict[str, dict[int, dict[str, Any]]]] = {
    "orders": {0: {"order_id": "a", "total": 1.5}, 1: {"order_id": "b", "total": 2.5, "tags": ["new"]}},
    "refunds": {0: {"order_id": "a", "amount": 1.5}, 1: {"order_id": "b", "refunded": "2.50"}},
}

_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "orders": {"order_id": "", "total": 0.0, "tags": []},
    "refunds": {"order_id": "", "refunded": ""},
}
"""The fields of the newest versions, in which every message is read."""

fastavro: Any = import_module("fastavro")


def list_steps() -> list[tuple[str, int, list[str]]]:
    """The commands of the page, each with its exit code and the output lines that the page shows."""
    result: list[tuple[str, int, list[str]]] = []
    is_shown = False
    for line in README.read_text(encoding="utf-8").splitlines():
        if command := re.fullmatch(r"    \$ (.*?)(?: +# exit code (\d+))?", line):
            result.append((command[1], int(command[2] or 0), []))
            is_shown = True
        elif is_shown and line.startswith("    "):
            result[-1][2].append(line.strip())
        else:
            is_shown = False
    return result


def follow(folder: Path) -> Path:
    """All commands of the page are carried out, from the third on, in the repository in `folder`; return it."""
    first, second, *others = list_steps()
    assert [first[0], second[0]] == ["mkdir environments", "schemactl init --example environments -C environments"]
    printed = ""
    for written, code, shown_lines in others:
        fingerprint = re.search(r"schemactl waive ([0-9a-f]+)", printed)
        command = written.replace("FINGERPRINT", fingerprint[1] if fingerprint else "")
        command = command.replace("YYYY-MM-DD", str(datetime.now(UTC).date() + timedelta(days=30)))
        program, *arguments = shlex.split(command)
        if program == "cd":
            folder = folder.parent / arguments[0]
            continue
        if program == "schemactl":
            done = schemactl(folder, *arguments, code=code)
            printed = done.out + done.err
        else:
            assert program == "git"
            subprocess.run([program, *arguments], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)
        lines = [" ".join(line.split()) for line in printed.splitlines()]
        for line in shown_lines:
            pattern = ".*".join(map(re.escape, " ".join(line.split()).split("...")))
            assert any(re.fullmatch(pattern, line) for line in lines), (written, line, printed)
    return folder


def read_registries(project: Project, folder: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the registered definitions of each topic by target and number."""
    result: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name in TARGETS:
        target = project.targets[name]
        names = {topic: target.names.to_target(TopicName("shop", "sales", topic)) for topic in MESSAGES}
        with closing(
            open_registry(target, release=project.release, defaults=BrokerDefaults(), folder=folder)
        ) as registry:
            topics = registry.read(Scope(frozenset(), frozenset(names.values()))).topics
        result[name] = {topic: [] for topic in names}
        for topic, versions_by_target in names.items():
            for number, version in enumerate(topics[versions_by_target].versions):
                assert (version.number, version.info is not None) == (number, True)
                result[name][topic].append(json.loads(version.info.schema) if version.info else {})
    return result


def expect_one_package_for_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are equal in the three registries, plans are empty, and one package decodes what was written in each."""
    project = read_project("schemactl.yaml", (folder / "schemactl.yaml").read_bytes())
    result = read_registries(project, folder)
    assert result["dev"] == result["stage"] == result["prod"]
    for name in TARGETS:
        plan = json.loads(schemactl(folder, "plan", "--target", name, "--format", "json").out)
        assert (plan["steps"], plan["left_out"], plan["notes"]) == ([], [], [])
    monkeypatch.syspath_prepend(str(folder / "generated"))
    monkeypatch.delitem(sys.modules, "sales_schemas", raising=False)
    generated = import_module("sales_schemas")
    for definitions in result.values():
        for topic, values in MESSAGES.items():
            assert len(definitions[topic]) == len(values)
            codec = generated.topic(f"persistent://shop/sales/{topic}").codec
            for number, value in values.items():
                payload = io.BytesIO()
                schema = fastavro.parse_schema(definitions[topic][number], named_schemas={})
                fastavro.schemaless_writer(payload, schema, value)
                decoded = codec.decode_one(payload.getvalue(), number)
                assert decoded == {
                    **_DEFAULTS[topic],
                    **{key: setting for key, setting in value.items() if key in _DEFAULTS[topic]},
                }


@pytest.mark.slow
def test_the_tutorial_leads_to_the_same_numbers_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = follow(history.make(tmp_path / "environments").parent)
    expect_one_package_for_all(folder, monkeypatch)


def test_two_applies_at_once_to_two_environments_do_not_interfere(tmp_path: Path) -> None:
    folder = history.make(tmp_path / "environments")
    schemactl(folder, "promote", "stage", "--to", "tags~1")
    git = ("git", "push", "--quiet", "origin", "promoted/stage")
    subprocess.run(git, cwd=folder, env=ENVIRONMENT, check=True)
    # Nothing is waited for, and nothing of the history is cached: both read all of it, and keep it, at once.
    text = (folder / "schemactl.yaml").read_text(encoding="utf-8").replace("    after: [dev]\n", "")
    (folder / "schemactl.yaml").write_text(text, encoding="utf-8")
    shutil.rmtree(cache_of(folder / ".git"))
    arguments = ("--trust-working-tree", "--auto-approve", "--target")
    with ThreadPoolExecutor() as pool:
        applied = [*pool.map(lambda name: process(folder, "apply", *arguments, name), ("dev", "stage"))]
    assert [(printed.code, printed.out.splitlines()[-1]) for printed in applied] == [
        (0, "Applied: 1 namespace, 2 topics, 2 versions registered.")
    ] * 2
    for name in ("dev", "stage"):
        result = json.loads((folder / f".schemactl/results/{name}.json").read_bytes())
        assert (result["target"], result["outcome"], len(result["done"])) == (name, "applied", 6)
        assert {step.get("topic", f"shop-{name}/").split("/")[-3] for step in result["steps"] if "topic" in step} == {
            f"shop-{name}"
        }
        plan = schemactl(folder, "plan", "--trust-working-tree", "--target", name).out
        assert "No changes." in plan


@pytest.mark.broker
def test_the_tutorial_leads_there_on_live_brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Development has Pulsar 4.2, and the other two share a cluster of 4.0."""
    steps = shutil.copytree(history.STEPS, tmp_path / "steps")
    project = (steps / "01-topics/schemactl.yaml").read_text(encoding="utf-8")
    for name, release in (("dev", "4.2"), ("stage", "4.0"), ("prod", "4.0")):
        tenant = "shop" if name == "prod" else f"shop-{name}"
        project = project.replace(f'"sqlite:.schemactl/{name}.db"', f'"{brokers.start_broker(release).url}"')
        project = project.replace(f"{{shop: {tenant}}}", f"{{shop: {brokers.new_tenant()}}}")
    (steps / "01-topics/schemactl.yaml").write_text(project, encoding="utf-8")
    folder = follow(history.make(tmp_path / "environments", steps).parent)
    expect_one_package_for_all(folder, monkeypatch)
