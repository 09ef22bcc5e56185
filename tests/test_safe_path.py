"""Modules that lie in the working directory are not imported: it is a repository, and may be a stranger's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import shop
from scratch import Scratch, record, write_declaration

import schemactl

pytestmark = pytest.mark.slow

EVIL = "import os, pathlib; pathlib.Path(__file__).with_suffix('.ran').touch()\nraise SystemExit(77)\n"


def start(folder: Path, *arguments: str, flags: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *flags, "-m", *arguments],
        cwd=folder,
        env=shop.make_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def before_any_program(folder: Path) -> set[str]:
    """Return the modules that Python itself imports for `-m`, before the program runs."""
    (folder / "probe.py").write_text("import sys; print(*sys.modules)")
    return {name.split(".")[0] for name in start(folder, "probe").stdout.split()}


@pytest.fixture
def hostile_repository(tmp_path: Path) -> Path:
    """Make a repository with modules of the same names as the imports of schemactl and Python's library."""
    scratch = Scratch(tmp_path / "shop")
    lines_before = before_any_program(tmp_path)
    assert "__future__" not in lines_before
    ours = {"yaml", "pydantic", "git", "google", "grpc_tools", "pyarrow", "numpy", "sitecustomize"}
    names = (sys.stdlib_module_names | ours) - lines_before
    assert {"__future__", "argparse", "typing", "json", "pathlib", "subprocess", "yaml"} <= names
    scratch.commit(
        {
            **{f"{name}.py": EVIL for name in names},
            "schemactl.yaml": "version: 1\nroots: [topics]\ntargets: {local: {registry: 'sqlite:r.db'}}\n",
            "topics/orders.yaml": write_declaration(),
            "topics/orders.avsc": record("id"),
        },
        "hostile",
    )
    scratch.flush()
    return scratch.path


@pytest.mark.parametrize(
    "arguments", [["--version"], ["check"], ["check", "--staged"], ["plan"], ["log", "shop/sales/orders"]]
)
def test_python_m_runs_no_module_of_the_working_directory(hostile_repository: Path, arguments: list[str]) -> None:
    done = start(hostile_repository, "schemactl", *arguments)
    assert not list(hostile_repository.glob("*.ran"))
    assert done.returncode == 0, done.stderr


def test_protoc_runs_no_module_of_the_working_directory(hostile_repository: Path) -> None:
    schema = "{type: PROTOBUF_NATIVE, definition: click.proto, message: Click}"
    (hostile_repository / "topics/clicks.yaml").write_text(f"topic: shop/web/clicks\nschema: {schema}\n")
    (hostile_repository / "topics/click.proto").write_text('syntax = "proto3"; message Click { string id = 1; }\n')
    done = start(hostile_repository, "schemactl", "check")
    assert not list(hostile_repository.glob("*.ran"))
    assert done.returncode == 0, done.stderr
    assert "shop/web/clicks" in done.stdout


@pytest.mark.parametrize("flags", [[], ["-P"]])
def test_a_checkout_of_schemactl_runs_its_own_modules(tmp_path: Path, flags: list[str]) -> None:
    package = Path(schemactl.__file__).parent
    shutil.copytree(package, tmp_path / "schemactl", ignore=shutil.ignore_patterns("__pycache__"))
    shop.edit(tmp_path / "schemactl" / "cli" / "parser.py", "\nexit codes:\n", "\nexit codes here:\n")
    (tmp_path / "argparse.py").write_text(EVIL)
    done = start(tmp_path, "schemactl", "--help", flags=flags)
    assert done.returncode == 0, done.stderr
    assert ("exit codes here:" in done.stdout) == (not flags)
    assert not list(tmp_path.glob("*.ran"))
