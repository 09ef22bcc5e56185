"""The tutorial for beginners, followed to the letter: a topic is declared, registered, broken, repaired, and read in both versions."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from command import schemactl
from scratch import ENVIRONMENT

pytestmark = pytest.mark.slow

PAGE: Final = Path(__file__).parent.parent / "docs/tutorial/first-project.md"
DEFINITION: Final = "namespaces/default/greetings.avsc"


def declare(folder: Path, field: str) -> None:
    """The record has the field, in place of one of that name."""
    path, added = folder / DEFINITION, json.loads(field)
    record = json.loads(path.read_text("utf-8"))
    record["fields"] = [field for field in record["fields"] if field["name"] != added["name"]] + [added]
    path.write_text(json.dumps(record), "utf-8")


def test_the_tutorial_leads_from_nothing_to_messages_of_two_versions(tmp_path: Path) -> None:
    folder, is_broken = tmp_path, False
    printed: dict[str, str] = {}
    for line in re.findall(r"^    ((?:\$|\{).*)$", PAGE.read_text("utf-8"), re.MULTILINE):
        if line.startswith("{"):
            declare(folder, line)
            is_broken = "default" not in line
            continue
        for command in line.removeprefix("$ ").split(" && "):
            program, *arguments = shlex.split(command)
            if program == "cd":
                folder /= arguments[0]
            elif program == "git":
                arguments += ["-b", "main"] if arguments[0] == "init" else []
                subprocess.run([program, *arguments], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)
            elif program == "schemactl":
                # Who follows the page answers `yes`.
                arguments += ["--auto-approve"] * (arguments[0] == "apply")
                done = schemactl(folder, *arguments, code=100 if is_broken else 0)
                printed[command] = printed.get(command, "") + done.out
            else:
                assert program in ("pip", "PYTHONPATH=generated")
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in printed["schemactl check"]
    assert "BROKER_INCOMPATIBLE" in printed["schemactl check"]
    assert "channel" in printed["schemactl diff greetings@0"]
    # As on the page: a separate process, with the package on its path.
    examples = subprocess.run(
        [sys.executable, "-m", "doctest", "-v", str(PAGE)],
        env=ENVIRONMENT | {"PYTHONPATH": str(folder / "generated")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed" in examples.stdout, examples.stdout[-3000:]
    assert examples.returncode == 0


def test_the_page_shows_the_output_of_each_command() -> None:
    # `make tutorials` writes it again.
    done = subprocess.run(
        [sys.executable, "ci/tutorial_outputs.py", "--check", str(PAGE)],
        cwd=PAGE.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    blocks = PAGE.read_text("utf-8").split("    $ schemactl ")[1:]
    assert [block.splitlines()[0] for block in blocks if len(block.splitlines()) < 2] == []
