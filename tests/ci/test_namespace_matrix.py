"""The workflow that plans and applies each namespace in a job, with its own commands, on an embedded registry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import run_json, schemactl
from scratch import Scratch, record

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "examples/ci/github/schemas-namespaces.yml"
PAGE = ROOT / "docs/how-to/namespaces.md"

NAMESPACES = ["shop/old", "shop/sales", "shop/stock", "web/clicks"]

pytestmark = pytest.mark.slow


@pytest.fixture
def matrix_repository(tmp_path: Path) -> Path:
    """A repository with four namespaces, of which one is no longer declared, and the command on the path of its jobs."""
    scratch = Scratch(tmp_path / "r")
    project = "version: 1\nroots: [topics]\ntargets:\n  prod: {registry: 'sqlite:registry.db'}\n"
    files: dict[str, str | None] = {"schemactl.yaml": project}
    for number, namespace in enumerate(NAMESPACES):
        folder = f"topics/{namespace}"
        files[f"{folder}/namespace.yaml"] = f"namespace: {namespace}\nschema_compatibility_strategy: BACKWARD\n"
        for topic in range(number + 1):
            files[f"{folder}/t{topic}.yaml"] = (
                f"topic: {namespace}/t{topic}\npartitions: 2\nschema: {{type: AVRO, definition: t{topic}.avsc}}\n"
            )
            files[f"{folder}/t{topic}.avsc"] = record("id", note=topic)
    scratch.commit(files, "topics")
    scratch.commit({"topics/web/clicks/t0.avsc": record("id")}, "a version")
    scratch.commit({path: None for path in files if "/old/" in path}, "without shop/old")
    scratch.flush()
    subprocess.run(["git", "reset", "-q", "--hard", "main"], cwd=scratch.path, check=True)
    command = tmp_path / "bin/schemactl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m schemactl "$@"\n')
    command.chmod(0o755)
    return scratch.path


def run_steps(job: str, folder: Path, **values: str) -> dict[str, str]:
    """Run the commands of a job as a runner does, and return its outputs; actions and the installation are left out."""
    (workflow,) = yaml.load_all(WORKFLOW.read_text(), yaml.BaseLoader)
    output = folder.parent / "output"
    output.write_text("")
    environment = os.environ | {
        "PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(output),
        "GITHUB_ENV": str(folder.parent / "variables"),
        "TARGET": workflow["env"]["TARGET"],
    }
    steps: list[dict[str, Any]] = workflow["jobs"][job]["steps"]
    for step in steps:
        if "run" in step and "pipx" not in step["run"]:
            variables = {"NAMESPACE": values["namespace"]} if "NAMESPACE" in step.get("env", {}) else {}
            command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
            subprocess.run(command, cwd=folder, env=environment | variables, check=True, stdout=subprocess.DEVNULL)
    return dict(line.split("=", 1) for line in output.read_text().splitlines())


def plan(folder: Path, *options: str) -> Any:
    return run_json(folder, "plan", "--target", "prod", *options)


def test_the_jobs_of_the_matrix_apply_the_whole_plan(matrix_repository: Path) -> None:
    whole = plan(matrix_repository)
    namespaces = json.loads(run_steps("namespaces", matrix_repository)["namespaces"])
    assert namespaces == NAMESPACES
    receipts = []
    for namespace in namespaces:
        run_steps("plan", matrix_repository, namespace=namespace)
        receipt = json.loads((matrix_repository / "plan.json").read_text())
        assert receipt["digest"] == plan(matrix_repository, "--namespace", namespace)["digest"]
        receipts.append((matrix_repository / "plan.json").read_bytes())
    assert len({json.loads(receipt)["digest"] for receipt in receipts}) == len(namespaces)
    steps = []
    # Each job applies its own plan, though the others have changed the registry since it was made.
    for namespace, receipt in zip(namespaces, receipts, strict=True):
        (matrix_repository / "plan.json").write_bytes(receipt)
        run_steps("apply", matrix_repository, namespace=namespace)
        result = json.loads((matrix_repository / "result.json").read_text())
        assert result["outcome"] == "applied"
        steps += result["steps"]
    assert sorted(map(json.dumps, steps)) == sorted(map(json.dumps, whole["steps"]))
    assert plan(matrix_repository)["steps"] == []


def test_a_plan_that_fails_holds_up_no_other_namespace() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    assert {jobs[job]["strategy"]["fail-fast"] for job in ("plan", "apply")} == {False}
    # By default, a job is skipped if one job of a matrix that it needs has failed.
    assert "!cancelled()" in jobs["apply"]["if"]
    # A matrix without values is an error.
    assert all("outputs.namespaces != '[]'" in jobs[job]["if"] for job in ("plan", "apply"))


def test_the_page_lists_namespaces_as_the_command_does(matrix_repository: Path) -> None:
    page = PAGE.read_text()
    listing = page.partition("contacts no registry\n")[2].partition("    $")[0].split()
    assert json.loads(page.partition("for a matrix\n")[2].splitlines()[0]) == listing
    lines = schemactl(matrix_repository, "plan", "namespaces", "--target", "prod").out.split()
    assert lines == NAMESPACES


@pytest.mark.parametrize(("options", "output"), [([], ""), (["--format", "json"], "[]\n")])
def test_a_project_without_namespaces_has_no_line(tmp_path: Path, options: list[str], output: str) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"schemactl.yaml": "version: 1\nroots: [topics]\ntargets:\n  prod: {registry: 'sqlite:r.db'}\n"})
    scratch.flush()
    assert schemactl(scratch.path, "plan", "namespaces", *options).out == output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--relax-while-replaying"], "--relax-while-replaying applies when a plan is made"),
        (["--out", "plan.json"], "--out applies when a plan is made"),
        (["--format", "html"], "plan namespaces has one --format: text or json"),
        (["--at", "main", "--base", "main"], "give one of them"),
        (["--namespace", "shop/sale"], "unknown namespace in the approved history"),
        (["plan.json"], "plan namespaces takes no file: plan.json"),
    ],
)
def test_an_option_without_a_meaning_is_wrong_usage(matrix_repository: Path, options: list[str], message: str) -> None:
    assert message in schemactl(matrix_repository, "plan", "namespaces", *options, code=64).err
