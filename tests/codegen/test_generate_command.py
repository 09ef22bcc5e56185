"""`schemactl generate` on the example's history."""

from __future__ import annotations

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
    capsys.readouterr()
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
    "arguments", [["--check", "--zip", "x.zip"], ["--recursion-depth", "-1"], ["--topic", "nowhere/*"]]
)
def test_wrong_usage_is_said_and_nothing_is_written(shop: Path, arguments: list[str]) -> None:
    assert main(["-C", str(shop), "-q", "generate", *arguments]) == 64
    assert not (shop / "x.zip").exists()
