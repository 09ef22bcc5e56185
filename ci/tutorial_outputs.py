"""Run the commands of the first tutorial and write their output into the page: `python ci/tutorial_outputs.py docs/tutorial/first-project.md`.

With `--check` the page is not written; the exit code is 1 if the output of a command differs from the page. Ids of commits differ with
each release, because `schemactl init` writes its version, so they are not compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from difflib import unified_diff
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DEFINITION: Final = "namespaces/default/greetings.avsc"
NOT_RUN: Final = ("pip", "PYTHONPATH=generated")
"""Commands of the page that need an index or that a doctest runs."""

ENVIRONMENT: Final = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "SCHEMACTL_")) and name != "CI"},
    "COLUMNS": "110",
    "NO_COLOR": "1",
    "PYTHONPATH": str(ROOT),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com", "GIT_AUTHOR_DATE": "2026-03-02T09:00:00Z",
    "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com", "GIT_COMMITTER_DATE": "2026-03-02T09:00:00Z",
}  # fmt: skip


def add_field(folder: Path, text: str) -> None:
    """Write the field into the record of the tutorial, in place of a field of this name."""
    path, field = folder / DEFINITION, json.loads(text)
    record = json.loads(path.read_text("utf-8"))
    record["fields"] = [other for other in record["fields"] if other["name"] != field["name"]] + [field]
    path.write_text(json.dumps(record, indent=2) + "\n", "utf-8")


def run_command(folder: Path, command: str) -> tuple[Path, list[str]]:
    """Run the parts of a command line. Return the folder afterwards, and the lines that schemactl prints."""
    lines: list[str] = []
    for part in command.split(" && "):
        program, *arguments = shlex.split(part)
        if program == "cd":
            folder /= arguments[0]
        elif program == "git":
            arguments += ["--quiet", "--initial-branch=main"] if arguments[0] == "init" else []
            subprocess.run(["git", *arguments], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)  # noqa: S603, S607  the page's own
        elif program == "schemactl":
            # A reader of the page answers `yes`.
            arguments += ["--auto-approve"] * (arguments[0] == "apply")
            done = subprocess.run(  # noqa: S603  the page's own
                [sys.executable, "-m", "schemactl", *arguments],
                cwd=folder, env=ENVIRONMENT, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            lines += [line.rstrip() for line in done.stdout.rstrip().splitlines()]
    return folder, lines


def follow_page(page: str) -> str:
    """Return the page with the output of each command below it."""
    result: list[str] = []
    is_output = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for line in page.splitlines():
            # The old output of the last command is replaced.
            is_command = line.startswith("    $ ")
            if is_output and not is_command and (line.startswith("    ") or not line):
                continue
            if is_output and not is_command:
                result.append("")
            is_output = False
            result.append(line)
            if line.startswith("    {"):
                add_field(folder, line)
            elif is_command and not line.startswith(tuple(f"    $ {program}" for program in NOT_RUN)):
                folder, lines = run_command(folder, line.removeprefix("    $ "))
                result += [f"    {text}" if text else "" for text in lines]
                is_output = True
    return "\n".join(result) + "\n"


def mask_ids(text: str) -> str:
    """Return the text without ids of commits and fingerprints."""
    return re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{9,64}\b", "ID", text)


def main() -> int:
    """Write or check the pages on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    args = parser.parse_args()
    exit_code = 0
    for path in args.pages:
        page = path.read_text("utf-8")
        followed = follow_page(page)
        if not args.check:
            path.write_text(followed, "utf-8")
        elif mask_ids(followed) != mask_ids(page):
            differences = unified_diff(
                mask_ids(page).splitlines(), mask_ids(followed).splitlines(), str(path), "the commands", lineterm=""
            )
            print("\n".join(differences))
            exit_code = 1
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
