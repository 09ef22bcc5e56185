"""The base of a check: never an empty base, the change itself, or another ref with the name of the approved one."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from itertools import product, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from case_tables import read_cases
from command import Printed, process, schemactl
from readings import clone as clone_of
from scratch import Scratch, record, write_declaration

pytestmark = pytest.mark.slow

CASES = Path(__file__).with_name("bases.yaml")

PROJECT = "version: 1\nroots: [topics]\n{approved}defaults: {{schema_compatibility_strategy: BACKWARD}}\n"
ORDERS = "topics/orders.avsc"
BREAKING = record("id", "reason")


class Clone:
    """A clone of a team's repository, with a branch that breaks a topic: pushed, and checked out."""

    def __init__(self, path: Path, approved: str = "origin/main") -> None:
        upstream = Scratch(path / "upstream")
        project = PROJECT.format(approved=f"approved: {approved}\n" if approved else "")
        upstream.commit(
            {"schemactl.yaml": project, "topics/orders.yaml": write_declaration(), ORDERS: record("id")}, "approved"
        )
        breaks: dict[str, str | bytes | None] = {ORDERS: BREAKING}
        upstream.commit(breaks, "break", branch="pull", start=1)
        self.main = upstream.id(1)
        cloned = clone_of(upstream, "--branch", "pull")
        self.path, self.git = cloned.path, cloned.git

    def copy_to(self, path: Path) -> Clone:
        """Return a copy of both repositories below `path`, which is faster than another clone."""
        old = self.path.parent
        shutil.copytree(old, path, symlinks=True, dirs_exist_ok=True)
        config = path / "clone/.git/config"
        config.write_text(config.read_text().replace(old.as_uri(), path.as_uri()))
        copied_clone = copy(self)
        copied_clone.path = path / "clone"
        copied_clone.git = Scratch.open_existing(copied_clone.path).git
        return copied_clone

    def approve(self, ref: str) -> None:
        """Make the pull request name another ref as approved."""
        (self.path / "schemactl.yaml").write_text(PROJECT.format(approved=f"approved: {ref}\n"))
        self.git("commit", "-qam", "approved by ourselves")
        self.git("push", "-q", "origin", "pull")


class BaseCase(NamedTuple):
    """A clone whose project names `approved`, and steps in it: a step alone, or with the exit code and parts of its output."""

    approved: str
    steps: list[str | dict[str, int | list[Any]]]
    values: dict[str, str]


def read_parameters() -> Iterator[Any]:
    """Read each case of `bases.yaml`, for all values of its `for`, as a parameter of pytest."""
    for name, case in read_cases(CASES, {"for", "approved", "steps"}).items():
        lists = case.get("for", {})
        for combination in product(*lists.values()):
            values = dict(zip(lists, combination, strict=True))
            approved = values.get("approved", case.get("approved", "origin/main"))
            label = ", ".join(f"{key} {value}" for key, value in values.items())
            yield pytest.param(BaseCase(approved, case["steps"], values), id=f"{name} ({label})" if label else name)


@pytest.fixture(scope="module")
def make_clone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Clone]:
    """Make the clone of a project that names this approved ref, once for all cases."""
    return cache(lambda approved: Clone(tmp_path_factory.mktemp("clone"), approved))


@pytest.mark.parametrize("case", [*read_parameters()])
def test_a_check_has_the_base_that_git_and_options_say(
    make_clone: Callable[[str], Clone], tmp_path: Path, case: BaseCase
) -> None:
    """Run the steps in order.

    `git`, `check` and `hook` are commands: `hook` is `check --staged` in a separate process. `approve` makes the branch name
    another ref as approved. Variables of the environment are in front, and `{main}` is the id of the approved commit.
    """
    clone = make_clone(case.approved).copy_to(tmp_path)
    for step in case.steps:
        [(line, expected)] = step.items() if isinstance(step, dict) else [(step, None)]
        words = shlex.split(line.format_map({"main": clone.main, **case.values}))
        variables = dict(word.split("=", 1) for word in takewhile(lambda word: "=" in word, words))
        name, *arguments = words[len(variables) :]
        if name == "git":
            clone.git(*arguments)
        elif name == "approve":
            clone.approve(*arguments)
        else:
            outcome: list[Any] = expected if isinstance(expected, list) else [expected]
            code, *parts = outcome
            printed = run_check(clone, name, arguments, variables)
            output = printed.out + printed.err
            assert printed.code == code, (line, output)
            assert [part for part in parts if part not in output] == [], (line, output)


def run_check(clone: Clone, name: str, arguments: list[str], variables: dict[str, str]) -> Printed:
    """Run the check or, in a separate process, the hook."""
    if name == "hook":
        return process(clone.path, "check", "--staged", *arguments, **variables)
    assert name == "check"
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in variables.items():
            patch.setenv(variable, value)
        return schemactl(clone.path, "check", *arguments, code=range(128))


def test_in_ci_the_hook_works_in_a_repository_without_remotes(tmp_path: Path) -> None:
    Clone(tmp_path, approved="")
    assert process(tmp_path / "upstream", "check", "--staged", CI="true").code == 0


@pytest.mark.parametrize("command", ["check", "check --staged", "check --base HEAD", "log --all", "plan"])
@pytest.mark.parametrize("inner", ["schemas", ".."], ids=["a submodule", "around a submodule"])
def test_a_project_of_another_repository_is_not_judged_by_this_ones_history(
    tmp_path: Path, command: str, inner: str
) -> None:
    other = Scratch(tmp_path / "other")
    project = PROJECT.format(approved="")
    files = {"topics/orders.yaml": write_declaration(), "schemactl.yaml": project}
    other.commit({**files, ORDERS: BREAKING})
    other.flush()
    outer = Scratch(tmp_path / "outer")
    outer.commit(dict(files) | {ORDERS: record("id")})
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.path), "schemas")
    outer.git("commit", "-qm", "a submodule")
    here = outer.path if inner == "schemas" else outer.path / "schemas"
    out, err, _ = schemactl(here, "--config", f"{inner}/schemactl.yaml", *command.split(), code=1)
    assert out == ""
    assert f"--config {inner}/schemactl.yaml is in the repository" in err
    assert "-C" in err
    if command == "check --base HEAD" and inner == "schemas":
        # A file of this repository with the same path is not read instead.
        (outer.path / "schemas" / "schemactl.yaml").rename(tmp_path / "kept")
        schemactl(here, "--config", "schemas/schemactl.yaml", *command.split(), code=64)
        (tmp_path / "kept").rename(outer.path / "schemas" / "schemactl.yaml")
    schemactl(outer.path / "schemas", "--config", "schemactl.yaml", "check")


def test_a_clone_that_does_not_know_the_default_branch_is_judged_by_the_ref_that_its_files_name(tmp_path: Path) -> None:
    clone = Clone(tmp_path, approved="origin/develop")
    clone.git("update-ref", "refs/remotes/origin/develop", clone.main)
    clone.git("update-ref", "-d", "refs/remotes/origin/main")
    clone.git("symbolic-ref", "-d", "refs/remotes/origin/HEAD")
    off = "severities: {READER_FIELD_MISSING_DEFAULT_VALUE: off, BROKER_INCOMPATIBLE: off}\n"
    (clone.path / "schemactl.yaml").write_text(PROJECT.format(approved=f"approved: origin/develop\n{off}"))
    output = schemactl(clone.path, "check", code=100).out
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in output
    assert "GATE_CHANGED" in output
