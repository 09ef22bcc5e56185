"""The action, the component, the image's recipe and the examples, by the hosts' own schemas and by the linters of each."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from test_pinned import list_needed

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
COMPONENT = ROOT / "templates/schemactl.yml"
WORKFLOWS = sorted((ROOT / "examples/ci/github").glob("*.yml"))
SCRIPTS = sorted((ROOT / "ci").glob("*.sh"))


def read_documents(path: Path) -> list[Any]:
    return list(yaml.load_all(path.read_text(), yaml.BaseLoader))


def list_texts(value: Any) -> list[tuple[str, str]]:
    """Every text in a document, with its key."""
    if isinstance(value, dict):
        return [
            pair
            for key, item in value.items()
            for pair in ([(key, item)] if isinstance(item, str) else list_texts(item))
        ]
    return [pair for item in value for pair in list_texts(item)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("github-actions", ACTION),
        *(("github-workflows", path) for path in WORKFLOWS),
        ("gitlab-ci", COMPONENT),
        ("gitlab-ci", COMPONENT.with_name("promote.yml")),
        ("gitlab-ci", ROOT / "examples/ci/gitlab/.gitlab-ci.yml"),
    ],
    ids=lambda each: each.name if isinstance(each, Path) else each,
)
def test_the_host_accepts_the_file(schema: str, path: Path) -> None:
    published = files("check_jsonschema") / f"builtin_schemas/vendor/{schema}.json"
    published_schema = json.loads(published.read_text(encoding="utf-8"))
    for document in yaml.safe_load_all(path.read_text()):
        # YAML 1.1 reads the key `on` as true.
        read = {"on" if key is True else key: value for key, value in document.items()}
        jsonschema.Draft7Validator(published_schema).validate(read)


def test_the_component_needs_no_target() -> None:
    """GitLab rejects a job without a name of its environment, even if no rule runs the job."""
    spec, _ = read_documents(COMPONENT)
    text = COMPONENT.read_text().partition("\n---\n")[2]
    for name, input_item in spec["spec"]["inputs"].items():
        text = text.replace(f"$[[ inputs.{name} ]]", str(input_item.get("default", "IMAGE")))
    assert "$[[" not in text
    jobs = yaml.safe_load(text)
    assert [job["environment"]["name"] for job in jobs.values() if "environment" in job] == [
        "production-comment",
        "production-plan",
        "production",
    ]


def test_the_check_of_the_component_has_no_environment_whose_variables_it_gets() -> None:
    _, jobs = read_documents(COMPONENT)
    assert "environment" not in {**jobs[".schemactl"], **jobs["schemactl-check"]}
    assert jobs["schemactl-check"]["variables"] == {"SCHEMACTL_COMMENT": "false"}


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.name)
def test_what_others_may_change_is_pinned_and_no_text_of_theirs_is_run(path: Path) -> None:
    document_texts = list_texts(read_documents(path))
    uses = [text for key, text in document_texts if key == "uses"]
    assert uses
    assert [used_action for used_action in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used_action)] == []
    assert [text for key, text in document_texts if key == "run" and "${{" in text] == []


def test_only_an_apply_on_the_default_branch_saves_the_cache() -> None:
    [action] = read_documents(ACTION)
    [save] = [step for step in action["runs"]["steps"] if re.match("actions/cache(/save)?@", step.get("uses", ""))]
    is_not_cancelled, is_asked_for, is_apply, is_approved = (
        save["if"].removeprefix("${{ ").removesuffix(" }}").split(" && ")
    )
    assert is_not_cancelled == "!cancelled()"
    assert (is_asked_for, is_apply) == ("inputs.cache == 'true'", "inputs.run == 'apply'")
    assert is_approved == "github.ref_name == github.event.repository.default_branch"
    assert action["inputs"]["cache"]["default"] == "false"
    assert "cache" not in json.dumps([read_documents(path) for path in (COMPONENT, *WORKFLOWS)])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_more_permissions_than_its_jobs_need(path: Path) -> None:
    (workflow,) = read_documents(path)
    assert "pull_request_target" not in workflow["on"]
    assert workflow["permissions"] == {}
    secret = [name for name, job in workflow["jobs"].items() if "secrets." in json.dumps(job)]
    for name, job in workflow["jobs"].items():
        writes = {scope for scope, right in job["permissions"].items() if right == "write"}
        assert writes <= {
            "check": {"pull-requests", "security-events"},
            "plan": {"pull-requests", "statuses"},
            "stage": {"contents"},
            "prod": {"contents"},
            "drift": {"contents", "pull-requests"},
        }.get(name, set())
        assert ("environment" in job) == (name in secret)


def test_the_packages_are_those_that_the_code_needs() -> None:
    listed = (ROOT / "ci/packages.txt").read_text().split()
    assert listed == sorted(
        {"hatchling", "urllib3", *list_needed("pulsar-schemactl", "proto"), *list_needed("hatchling")}
    )


@pytest.mark.parametrize("path", [*SCRIPTS, ROOT / "Dockerfile"], ids=lambda path: path.name)
def test_no_python_imports_from_the_folder_that_a_stranger_wrote(path: Path) -> None:
    options = re.findall(r"(?:python3?\}?\"?) +(-[^ ]+)", path.read_text())
    assert set(options) <= {"-I"}


def test_the_image_has_a_fixed_base_and_no_root() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM")]
    assert re.fullmatch(r"python:[\w.-]+@sha256:[0-9a-f]{64}", bases[0])
    assert set(bases[1:]) == {"base"}
    assert "USER 10001" in lines


@pytest.mark.live
@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("shellcheck", [*SCRIPTS, ROOT / ".ci/run"]),
        # `make actionlint` builds it.
        pytest.param("actionlint", WORKFLOWS, marks=pytest.mark.go),
        ("zizmor", ["--offline", "--pedantic", ACTION, *WORKFLOWS]),
        ("hadolint", [ROOT / "Dockerfile"]),
    ],
)
def test_the_linters_have_nothing_to_say(program: str, arguments: list[str | Path]) -> None:
    # Programs from packages are in the folder of this Python.
    program_path = shutil.which(program, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if not program_path:
        pytest.skip(f"needs {program}")
    done = subprocess.run([program_path, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.live
def test_the_action_installs_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "ci/install.sh", tmp_path / "home"], capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr
    frozen = subprocess.run(
        [tmp_path / "home/bin/python", "-m", "pip", "freeze", "--all"], capture_output=True, text=True, check=True
    ).stdout
    names = {re.split("==| @ ", line)[0].lower().replace("_", "-") for line in frozen.splitlines()}
    assert names <= {*(ROOT / "ci/packages.txt").read_text().split(), "pip", "pulsar-schemactl"}
