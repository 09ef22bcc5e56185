"""`schemactl generate` on the example's history."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command import schemactl
from estate import PROJECT, Estate
from scratch import record
from shop import git, make, read_approved

from schemactl.core.names import TopicName

pytestmark = pytest.mark.slow

ORDERS = Path("generated/shop_schemas/shop/sales/orders.py")


@pytest.fixture(scope="module")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("generate"))


def test_the_package_is_written_and_then_up_to_date(shop_folder: Path) -> None:
    assert schemactl(shop_folder, "generate").out.startswith("38 files: ")
    assert "0 stale" in schemactl(shop_folder, "generate", "--check").out
    assert schemactl(shop_folder, "-q", "generate", "--check") == ("", "", 0)
    (shop_folder / ORDERS).write_text((shop_folder / ORDERS).read_text() + "# edited\n")
    stale = schemactl(shop_folder, "generate", "--check", code=100).out
    assert stale.splitlines()[0] == f"stale: {ORDERS}"
    assert schemactl(shop_folder, "generate").out.endswith("0 created, 1 updated, 0 deleted.\n")


def test_what_is_packed_is_complete_and_nothing_else_is_written(shop_folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    git(shop_folder, "clone", "-q", ".", str(work))
    out = schemactl(work, "-q", "generate", "--zip", "x.zip", "--wheel", "--with-commits").out
    assert out.splitlines()[0] == "x.zip"
    assert git(work, "status", "--porcelain", "--ignored").split() == ["??", "dist/", "??", "x.zip"]
    with zipfile.ZipFile(work / "x.zip") as archive:
        names = set(archive.namelist())
        commits = json.loads(archive.read("shop_schemas/versions.json"))
    assert {"shop_schemas/_runtime/LICENSE", "shop_schemas/_runtime/generated.py"} < names
    orders = read_approved(work).topics[TopicName.parse("shop/sales/orders")]
    entries = commits["persistent://shop/sales/orders"]
    commit_ids = [version.commit.id for version in orders.versions if version.commit]
    assert [entry["commit"] for entry in entries.values()] == commit_ids
    assert entries["0"]["time"] == "2026-01-01T09:00:00+00:00"


@pytest.mark.parametrize(
    "arguments",
    [
        "--check --zip x.zip",
        "--check --wheel",
        "--out elsewhere --zip x.zip",
        "--with-commits",
        "--wheel-version 1.0",
        "--wheel --wheel-version first",
        "--recursion-depth -1",
        "--topic nowhere/*",
    ],
)
def test_wrong_usage_is_said_and_nothing_is_written(shop_folder: Path, arguments: str) -> None:
    schemactl(shop_folder, "-q", "generate", *arguments.split(), code=64)
    assert not (shop_folder / "x.zip").exists()
    assert not (shop_folder / "dist").exists()


def test_the_package_of_the_index_has_what_is_staged_and_nothing_else(tmp_path: Path) -> None:
    estate = Estate(tmp_path / "estate", project=f"{PROJECT}generate: {{package: shop_schemas, out: generated}}\n")
    estate.run("generate")
    definition = estate.scratch.path / "namespaces/orders.avsc"
    definition.write_text(record("id", staged=0))
    estate.scratch.git("add", "namespaces")
    definition.write_text(record("id", staged=0, unstaged=0))
    (estate.scratch.path / "schemactl.yaml").write_text("not: [a project")
    assert "Run `schemactl generate --staged`" in estate.run("generate", "--check", "--staged", code=100).out
    estate.run("generate", "--staged")
    texts = "".join(path.read_text() for path in estate.scratch.path.glob("generated/**/*.*"))
    assert "staged" in texts
    assert "unstaged" not in texts
    assert estate.run("generate", "--check", "--staged").out.endswith(" 0 stale.\n")
    estate.scratch.git("checkout", "-q", "schemactl.yaml")
    estate.run("generate", "--check", code=100)
    assert (
        "cannot be combined with orders"
        in estate.run("generate", "--staged", "--classes", "dataclass", "orders", code=64).err
    )


def test_a_wheel_is_made_with_one_command(shop_folder: Path) -> None:
    output = schemactl(shop_folder, "-q", "generate", "--wheel", "wheels", "--wheel-version", "1.4.0").out
    assert output.splitlines()[0] == "wheels/shop_schemas-1.4.0-py3-none-any.whl"
    assert (shop_folder / "wheels/shop_schemas-1.4.0-py3-none-any.whl").is_file()


def test_a_bare_repository_gives_what_its_clone_gives(
    shop_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare, out = tmp_path / "bare", str(tmp_path / "out")
    git(shop_folder, "clone", "-q", "--bare", ".", str(bare))
    with monkeypatch.context() as patch:
        patch.setenv("GIT_DIR", str(bare))
        assert "--out" in schemactl(bare, "-q", "generate", code=64).err
        schemactl(bare, "-q", "generate", "--out", out)
    schemactl(shop_folder, "-q", "generate", "--out", out, "--check")


@pytest.mark.slow
def test_two_clones_give_the_same_bytes_whatever_is_set_around_them(shop_folder: Path, tmp_path: Path) -> None:
    commands = [["-q", "generate"], ["-q", "generate", "--zip", "dist/x.zip", "--wheel", "--with-commits"]]
    for name in ("one", "other"):
        git(shop_folder, "clone", "-q", ".", str(tmp_path / name))
    for arguments in commands:
        schemactl(tmp_path / "one", *arguments)
    environment = {**os.environ, "TZ": "America/Lima", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "63"}
    for arguments in commands:
        command = [sys.executable, "-m", "schemactl", *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path / "other", env=environment, umask=0o077)
    one, other = (
        {
            path.relative_to(tmp_path / name).as_posix(): path.read_bytes()
            for part in ("generated", "dist")
            for path in (tmp_path / name / part).rglob("*.*")
        }
        for name in ("one", "other")
    )
    assert one == other
    assert sum(name.startswith("dist/") for name in one) == 2


def test_what_the_project_pins_is_what_the_package_reads(shop_folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    git(shop_folder, "clone", "-q", ".", str(work))
    (orders,) = (path for path in work.rglob("*.yaml") if "shop/sales/orders\n" in path.read_text())
    project = work / "schemactl.yaml"
    orders.write_text(orders.read_text() + "reader: 1\n")
    project.write_text(project.read_text() + "  json_defaults: true\n")
    git(work, "commit", "-qam", "x")
    schemactl(work, "-q", "generate")
    module = (work / ORDERS).read_text()
    assert "read as version 1." in module
    assert "    reader=1,\n" in module
    assert "json_defaults=True" in (work / "generated/shop_schemas/shop/web/page_views.py").read_text()
    orders.write_text(orders.read_text().replace("reader: 1", "reader: 99"))
    git(work, "commit", "-qam", "y")
    schemactl(work, "-q", "generate", code=1)
    assert (work / ORDERS).read_text() == module


def test_a_file_that_a_killed_run_left_is_removed_and_the_file_of_another_run_is_not(tmp_path: Path) -> None:
    folder = make(tmp_path)
    schemactl(folder, "generate")
    [package] = [path.parent for path in (folder / "generated").glob("*/__init__.py")]
    left, other = (package / f".schemactl.{digit * 24}.part" for digit in "0f")
    for path in (left, other):
        path.write_text("half of a ")
    os.utime(left, (0, 0))
    assert ", 1 stale." in schemactl(folder, "generate", "--check", code=100).out
    schemactl(folder, "generate")
    assert (left.exists(), other.exists()) == (False, True)
