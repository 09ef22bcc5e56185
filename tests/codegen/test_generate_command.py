"""`schemactl generate` on the example's history."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.shop import history
from schemactl.cli import main


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generate") / "shop"
    history.make(folder)
    return folder


def test_the_package_is_written_and_then_up_to_date(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(shop), "-q", "generate", "--zip", "schemas.zip", "--vendor"]) == 0
    assert (shop / "generated" / "shop_schemas" / "shop" / "sales" / "orders.py").is_file()
    assert (shop / "schemas.zip").is_file()
    assert capsys.readouterr().out.startswith("schemas.zip\n")
    assert main(["-C", str(shop), "-q", "generate", "--check", "--vendor"]) == 0
    assert "0 stale" in capsys.readouterr().out


def test_a_stale_package_is_found_file_by_file(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(shop), "-q", "generate"]) == 0
    orders = shop / "generated" / "shop_schemas" / "shop" / "sales" / "orders.py"
    orders.write_text(orders.read_text() + "# edited\n")
    capsys.readouterr()
    assert main(["-C", str(shop), "-q", "generate", "--check"]) == 100
    assert capsys.readouterr().out.splitlines()[0] == "stale: generated/shop_schemas/shop/sales/orders.py"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--check", "--zip", "x.zip"],
        ["--check", "--wheel"],
        ["--wheel-version", "1.0"],
        ["--wheel", "--wheel-version", "first"],
        ["--recursion-depth", "-1"],
        ["--topic", "nowhere/*"],
    ],
)
def test_wrong_usage_is_said_and_nothing_is_written(shop: Path, arguments: list[str]) -> None:
    assert main(["-C", str(shop), "-q", "generate", *arguments]) == 64
    assert not (shop / "x.zip").exists()
    assert not (shop / "dist").exists()


def test_a_wheel_is_made_with_one_command(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(shop), "-q", "generate", "--wheel", "wheels", "--wheel-version", "1.4.0"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "wheels/shop_schemas-1.4.0-py3-none-any.whl"
    assert (shop / "wheels" / "shop_schemas-1.4.0-py3-none-any.whl").is_file()


def test_a_bare_repository_gives_what_its_clone_gives(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "clone", "-q", "--bare", str(shop), str(tmp_path / "bare")], check=True)
    assert main(["-C", str(tmp_path / "bare"), "-q", "generate"]) == 64
    assert "--out" in capsys.readouterr().err
    assert main(["-C", str(tmp_path / "bare"), "-q", "generate", "--out", str(tmp_path / "out")]) == 0
    assert main(["-C", str(shop), "-q", "generate", "--out", str(tmp_path / "out"), "--check"]) == 0


def test_two_clones_give_the_same_bytes_whatever_is_set_around_them(shop: Path, tmp_path: Path) -> None:
    made = []
    for name, zone, locale, mask in (
        ("one", "Pacific/Apia", "C", 0o022),
        ("other", "America/Lima", "C.UTF-8", 0o077),
    ):
        subprocess.run(["git", "clone", "-q", str(shop), str(tmp_path / name)], check=True)
        subprocess.run(
            [
                sys.executable,
                "-m",
                "schemactl",
                "-q",
                "generate",
                "--vendor",
                "--zip",
                "dist/x.zip",
                "--wheel",
            ],
            check=True,
            capture_output=True,
            cwd=tmp_path / name,
            env={**os.environ, "TZ": zone, "LC_ALL": locale, "PYTHONHASHSEED": str(mask)},
            umask=mask,
        )
        made.append(
            {
                path.relative_to(tmp_path / name).as_posix(): path.read_bytes()
                for part in ("generated", "dist")
                for path in (tmp_path / name / part).rglob("*.*")
            }
        )
    assert made[0] == made[1]
    assert sum(name.startswith("dist/") for name in made[0]) == 2


def test_what_the_project_pins_is_what_the_package_reads(shop: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "-q", str(shop), str(work)], check=True)
    (orders,) = (path for path in work.rglob("*.yaml") if "shop/sales/orders\n" in path.read_text())
    project = work / "schemactl.yaml"
    generated = work / "generated" / "shop_schemas" / "shop"

    def commit_and_generate() -> int:
        commit = [
            "git",
            "-C",
            str(work),
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@example.com",
            "commit",
            "-qam",
            "x",
        ]
        subprocess.run(commit, check=True)
        return main(["-C", str(work), "-q", "generate"])

    orders.write_text(orders.read_text() + "reader: 1\n")
    project.write_text(project.read_text() + "  json_defaults: true\n")
    assert commit_and_generate() == 0
    module = (generated / "sales" / "orders.py").read_text()
    assert "read as version 1;" in module
    assert "READER = VERSIONS[1].schema" in module
    assert "json_defaults=True" in (generated / "web" / "page_views.py").read_text()
    orders.write_text(orders.read_text().replace("reader: 1", "reader: 99"))
    assert commit_and_generate() == 1
    assert (generated / "sales" / "orders.py").read_text() == module
