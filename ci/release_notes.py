"""Print the changelog section of the version in pyproject.toml: `python ci/release_notes.py`; with --version, print that version."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> int:
    """Return 0 after it is printed; 1: the changelog has no section of that version."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    if arguments == ["--version"]:
        print(version)
        return 0
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    match = re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if match is None:
        print(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`", file=sys.stderr)
        return 1
    print(match[1].strip())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
