"""Commands that are printed for copying hold each foreign name as one word of a shell."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from command import Printed, schemactl
from scratch import Scratch

EVIL = "a;touch RAN;$(id)"
TOPIC = f"persistent://shop/sales/{EVIL}"
PROJECT = "version: 1\nroots: [topics]\napproved: origin/main\ntargets: {local: {registry: 'sqlite:r.db'}}\n"
DECLARED = f'{{"topic": "shop/sales/{EVIL}", "schema": {{"type": "STRING"}}}}\n'


@pytest.fixture
def clone(tmp_path: Path) -> Scratch:
    """A clone whose approved branch declares the topic, which is registered, and whose branch removes it."""
    origin = Scratch(tmp_path / "origin")
    origin.commit({"schemactl.yaml": PROJECT, "topics/a.yaml": DECLARED, ".gitignore": "*.db\n"})
    origin.git("branch", "feature")
    origin.git("clone", "-q", ".", str(tmp_path / "clone"))
    clone = Scratch.open_existing(tmp_path / "clone")
    schemactl(clone, "apply", "--target", "local", "--auto-approve")
    origin.commit({"topics/a.yaml": None})
    origin.flush()
    return clone


def join_outputs(printed: Printed) -> str:
    return printed.out + printed.err


def test_a_deleted_topic(clone: Scratch) -> None:
    (clone.path / "topics/a.yaml").unlink()
    report = join_outputs(schemactl(clone, "check"))
    assert f"`apply --allow-delete {shlex.quote(TOPIC)}` deletes them" in report
    clone.git("pull", "-q")
    plan = join_outputs(schemactl(clone, "plan", "--target", "local"))
    assert f"to delete it: --allow-delete {shlex.quote(TOPIC)}" in plan


@pytest.mark.parametrize("ref", ["origin/main;touch RAN", "origin/$(id)", "origin/`id`", "origin/a b"])
def test_a_ref_that_is_missing(clone: Scratch, ref: str) -> None:
    fix = join_outputs(schemactl(clone, "check", "--base", ref, code=1))
    assert f"git fetch origin {shlex.quote(ref.removeprefix('origin/'))}`" in fix
