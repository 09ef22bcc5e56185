"""`schemactl list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scratch import Scratch, declared, record

from schemactl.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Orders with two versions of which the older one is in force, pings without schema, and refunds no more."""
    shop = Scratch(tmp_path_factory.mktemp("list") / "shop")
    files = {
        "schemactl.yaml": "version: 1\nroots: [topics]\n",
        "topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
        "topics/orders.yaml": declared(),
        "topics/orders.avsc": record("id"),
        "topics/refunds.yaml": declared("shop/sales/refunds"),
        "topics/pings.yaml": "topic: shop/ops/pings\n",
    }
    shop.commit(files)
    shop.commit({"topics/orders.avsc": record("id", count=1)})
    shop.commit({"topics/orders.avsc": record("id"), "topics/refunds.yaml": None})
    shop.flush()
    return str(shop.path)


def test_a_declared_topic_has_its_type_the_version_in_force_and_its_strategy(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-C", folder, "list"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["TOPIC", "TYPE", "VERSION", "STRATEGY"],
        ["persistent://shop/ops/pings", "-", "-", "FULL"],
        ["persistent://shop/sales/orders", "AVRO", "0", "BACKWARD"],
    ]


def test_topics_are_chosen_as_everywhere_and_come_as_json(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-C", folder, "list", "shop/**", "!pings", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["topics"] == [
        {
            "topic": "persistent://shop/sales/orders",
            "type": "AVRO",
            "version": 0,
            "strategy": "BACKWARD",
            "level": "namespace",
        }
    ]


def test_a_pattern_that_names_no_declared_topic_is_an_error(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-C", folder, "list", "refund"]) == 64
    assert "schemactl: refund: no topic of the approved history matches" in capsys.readouterr().err


def test_a_project_without_topics_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = Scratch(tmp_path / "empty")
    empty.commit({"schemactl.yaml": "version: 1\n"})
    empty.flush()
    assert main(["-C", str(empty.path), "list"]) == 0
    assert capsys.readouterr().out == "main declares no topic.\n"
