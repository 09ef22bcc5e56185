"""`schema_validation_enforced` of topics: declared, applied, inherited again, imported and judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from scratch import Scratch

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\ntargets: {local: {registry: 'sqlite:r.db', overlays: local.yaml}}\n"
ON = ("--target", "local")


def commit(repository: Scratch, namespace: str, topic: str, overlay: str = "", branch: str = "main") -> None:
    """Commit declarations with these values, on a branch that is checked out."""

    def write_line(value: str) -> str:
        return f"schema_validation_enforced: {value}\n" if value else ""

    repository.commit(
        {
            "schemactl.yaml": PROJECT,
            "local.yaml": "topic: shop/sales/orders\n" + (write_line(overlay) or "partitions: 2\n"),
            "topics/sales.yaml": f"namespace: shop/sales\n{write_line(namespace)}",
            "topics/orders.yaml": f"topic: shop/sales/orders\npartitions: 2\n{write_line(topic)}schema: {{type: STRING}}\n",
        },
        branch=branch,
    )
    repository.flush()


def make_project(path: Path, namespace: str, topic: str, overlay: str = "") -> Scratch:
    """Apply declarations with these values."""
    repository = Scratch(path)
    commit(repository, namespace, topic, overlay)
    schemactl(path, "apply", *ON, "--auto-approve", "--create-tenants")
    return repository


def plan(repository: Scratch) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = json.loads(schemactl(repository.path, "plan", *ON, "--format", "json").out)["steps"]
    return steps


@pytest.mark.parametrize(
    ("namespace", "topic", "overlay"),
    [("true", "false", ""), ("false", "true", ""), ("", "true", ""), ("true", "", "false"), ("", "false", "true")],
)
def test_it_is_set_and_an_overlay_wins(tmp_path: Path, namespace: str, topic: str, overlay: str) -> None:
    repository = make_project(tmp_path / "r", namespace, topic, overlay)
    assert plan(repository) == []
    schemactl(repository.path, "drift", *ON, "--detailed-exitcode")
    declaration = "schema_validation_enforced of the topic"
    assert declaration not in schemactl(repository.path, "drift", *ON).out
    commit(repository, namespace, topic, "false" if (overlay or topic) == "true" else "true")
    assert [step["action"] for step in plan(repository)] == ["set_topic_policies"]


def test_a_removed_value_is_reset_to_that_of_the_namespace(tmp_path: Path) -> None:
    repository = make_project(tmp_path / "r", "true", "false")
    commit(repository, "true", "")
    [step] = plan(repository)
    assert (step["action"], step["after"]) == ("set_topic_policies", {"schema_validation_enforced": True})
    schemactl(repository.path, "apply", *ON, "--auto-approve")
    assert plan(repository) == []
    schemactl(repository.path, "drift", *ON, "--detailed-exitcode")


@pytest.mark.parametrize(
    ("old", "new", "is_lost"),
    [
        (("true", ""), ("true", "false"), True),
        (("", "true"), ("", ""), True),
        (("", "true"), ("true", ""), False),
        (("true", "false"), ("true", ""), False),
        (("true", "true"), ("true", ""), False),
        (("false", ""), ("false", "false"), False),
    ],
)
def test_losing_it_is_a_finding(tmp_path: Path, old: tuple[str, str], new: tuple[str, str], *, is_lost: bool) -> None:
    repository = Scratch(tmp_path / "r")
    commit(repository, *old)
    repository.git("branch", "approved")
    repository.git("checkout", "-q", "-b", "work")
    commit(repository, *new, branch="work")
    report = json.loads(
        schemactl(repository.path, "check", "--base", "approved", "--format", "json", code=(0, 100)).out
    )
    lost = [finding for finding in report["findings"] if finding["rule"] == "PROTECTION_LOST"]
    assert bool(lost) is is_lost


@pytest.mark.parametrize(
    ("namespace", "topic", "is_written"), [("", "true", True), ("true", "false", True), ("", "false", False)]
)
def test_import_writes_what_differs(tmp_path: Path, namespace: str, topic: str, *, is_written: bool) -> None:
    repository = make_project(tmp_path / "r", namespace, topic)
    other = Scratch(tmp_path / "other")
    other.commit(
        {"schemactl.yaml": PROJECT.replace("r.db", f"{repository.path}/r.db").replace(", overlays: local.yaml", "")}
    )
    other.flush()
    schemactl(other.path, "import", *ON)
    text = "".join(path.read_text(encoding="utf-8") for path in other.path.rglob("orders.yaml"))
    assert (f"schema_validation_enforced: {topic}" in text) is is_written
    other.git("add", "-A")
    other.git("commit", "-qm", "import")
    assert plan(other) == []
