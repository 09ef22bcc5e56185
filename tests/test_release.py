"""A release has the same bytes from any checkout, and only the files that users need."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
NAME = "pulsar_schemactl"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def build_distributions(folder: Path, out: Path, *, umask: int, zone: str) -> dict[str, bytes]:
    """Build the distributions from the tracked files, checked out into `folder` with other permissions, dates and locations."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    former = os.umask(umask)
    try:
        for name in filter(None, listed.decode().split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes((ROOT / name).read_bytes())
    finally:
        os.umask(former)
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), "."],
        cwd=folder, check=True, capture_output=True, env=os.environ | {"TZ": zone},
    )  # fmt: skip
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


@pytest.fixture(scope="module")
def built_distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    one, other = (tmp_path_factory.mktemp(name) for name in ("one", "a longer name"))
    first = build_distributions(one / "checkout", one / "dist", umask=0o022, zone="UTC")
    assert first == build_distributions(other / "checkout", other / "dist", umask=0o077, zone="Asia/Tokyo")
    return first


@pytest.mark.live
def test_the_distributions_are_the_same_wherever_they_are_built(
    built_distributions: dict[str, bytes], tmp_path: Path
) -> None:
    assert [*built_distributions] == [f"{NAME}-{VERSION}-py3-none-any.whl", f"{NAME}-{VERSION}.tar.gz"]
    for name, content in built_distributions.items():
        (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, tmp_path.iterdir())]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.live
def test_the_wheel_has_what_the_package_needs_and_nothing_else(
    built_distributions: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "wheel.zip"
    path.write_bytes(built_distributions[f"{NAME}-{VERSION}-py3-none-any.whl"])
    with zipfile.ZipFile(path) as wheel:
        names = {*wheel.namelist()}
        metadata = wheel.read(f"{NAME}-{VERSION}.dist-info/METADATA").decode()
    assert {name.partition("/")[0] for name in names} == {
        "schemactl",
        "pyspark_schemactl",
        f"{NAME}-{VERSION}.dist-info",
    }
    tracked = subprocess.run(
        ["git", "ls-files", "schemactl"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert {name for name in tracked.split("\n") if (ROOT / name).is_file()} <= names
    assert "schemactl/_examples/shop/history/01-first-topics/schemactl.yaml" in names
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert {f"schemactl/_docs/{page}" for page in pages} <= names
    assert "schemactl/_examples/environments/history.py" in names
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []
    assert "Requires-Dist: pyspark" not in re.sub(r"^.*extra ==.*$", "", metadata, flags=re.MULTILINE)


@pytest.mark.live
def test_the_source_distribution_can_be_tested(built_distributions: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "source.tar.gz"
    path.write_bytes(built_distributions[f"{NAME}-{VERSION}.tar.gz"])
    with tarfile.open(path) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert {"Makefile", "constraints.txt", "tests/conftest.py", "docs/README.md", "examples/shop/demo.py"} <= names
    assert [name for name in names if name.startswith((".git/", ".venv"))] == []


def print_notes(*arguments: str, code: int = 0) -> str:
    command = [sys.executable, str(ROOT / "ci/release_notes.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_the_version_has_one_place_and_the_notes_come_from_the_changelog() -> None:
    assert print_notes("--version").strip() == VERSION
    if f"## [{VERSION}] - " in (ROOT / "CHANGELOG.md").read_text():
        assert "### " in print_notes()
    else:
        assert "has no section" in print_notes(code=1)


def test_only_the_job_that_publishes_may_publish() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "publish" in json.dumps(jobs["page"]["needs"])
    for job in jobs.values():
        for step in job["steps"]:
            assert re.search(r"@[0-9a-f]{40}$", step.get("uses", f"@{'0' * 40}"))
