"""The commands of the README's first minute work as it shows them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from schemactl.core.rules import get_builtin_rules

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parent.parent


def test_the_first_minute_ends_with_a_finding(tmp_path: Path) -> None:
    [block] = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    commands = [line.removeprefix("$ ") for line in block.splitlines()]
    assert commands.pop(0) == "pip install ."
    script = f'schemactl() {{ PYTHONPATH="{ROOT}" "{sys.executable}" -m schemactl "$@"; }}\n' + "\n".join(commands)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 100, done.stderr
    assert "MISSING_ENUM_SYMBOLS" in done.stdout
    assert "SHIPPED" in done.stdout


def test_each_picture_has_a_file() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"|!\[[^\]]*\]\(([^)]+)\)', text)
    assert len(pictures) >= 9
    assert [name for match in pictures for name in match if name and not (ROOT / name).is_file()] == []


def test_the_number_of_rules_is_current() -> None:
    assert f"Each of the {len(get_builtin_rules())} rules" in (ROOT / "README.md").read_text("utf-8")
    assert f"**{len(get_builtin_rules())}** rules" in (ROOT / "ci/docs_theme/landing.md").read_text("utf-8")
