"""`schemactl list`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest
from command import schemactl
from scratch import Scratch, declared, record

from schemactl.cli import main

GOLD = "owner: '@acme/orders ada@example.com'\nlabels: {tier: gold}\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Commit orders with two versions, of which the older one is in force, pings without a schema, and removed refunds.

    The working tree has another version of orders, a new topic, and other policies of pings, and does not have carts.
    """
    shop = Scratch(tmp_path_factory.mktemp("list") / "shop")
    files = {
        "schemactl.yaml": "version: 1\nroots: [topics]\n",
        "topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\nowner: team-sales\n"
        "labels: {domain: sales}\n",
        "topics/orders.yaml": declared(more=GOLD),
        "topics/orders.avsc": record("id"),
        "topics/refunds.yaml": declared("shop/sales/refunds"),
        "topics/pings.yaml": "topic: non-persistent://shop/ops/pings\n",
        "topics/carts.yaml": "topic: shop/sales/carts\nschema: {type: STRING}\n",
    }
    shop.commit(files)
    shop.commit({"topics/orders.avsc": record("id", count=1)})
    shop.commit({"topics/orders.avsc": record("id"), "topics/refunds.yaml": None})
    shop.flush()
    shop.write(
        {
            "topics/orders.avsc": record("id", total=1),
            "topics/a #1 [x].yaml": "topic: shop/sales/texts\nschema: {type: STRING}\nowner: '@bob'\n"
            "deprecated: {remove_after: 2031-01-01, use: shop/sales/orders}\n",
            "topics/pings.yaml": "topic: non-persistent://shop/ops/pings\nschema_compatibility_strategy: FORWARD\n",
            "topics/carts.yaml": None,
        }
    )
    return shop


def test_each_topic_of_the_files_has_a_row_with_what_they_change(shop: Scratch) -> None:
    assert [line.split() for line in schemactl(shop.path, "list").out.splitlines()] == [
        *(["TOPIC", "TYPE", "VERSION", "STRATEGY", "SET", "BY", "OWNER", "LABELS", "DEPRECATED", "CHANGE"],),
        ["non-persistent://shop/ops/pings", *["-", "-", "FORWARD", "topic", "-", "-", "-", "policies"]],
        ["shop/sales/carts", *["STRING", "0", "BACKWARD", "namespace", "team-sales", "domain=sales", "-", "removed"]],
        [
            "shop/sales/orders",
            *["AVRO", "0", "BACKWARD", "namespace", "@acme/orders", "ada@example.com"],
            *["domain=sales,tier=gold", "-", "version", "2"],
        ],
        ["shop/sales/texts", *["STRING", "-", "BACKWARD", "namespace", "@bob", "domain=sales", "2031-01-01", "new"]],
    ]


def test_on_a_terminal_of_80_columns_no_row_is_broken(
    shop: Scratch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["-C", str(shop.path), "list"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 4
    assert max(map(len, (head, *rows))) <= 80
    assert head.split() == ["TOPIC", "TYPE", "VERSION", "STRATEGY", "CHANGE"]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["shop/**", "!carts"], "orders texts pings"),
        (["--namespace", "shop/sales", "--skip", "carts"], "orders texts"),
        (["--owner", "team-sales", "--owner", "@bob"], "carts texts"),
        (["--label", "domain", "--label", "tier=gold"], "orders"),
        (["--label", "domain=web"], ""),
        (["--type", "AVRO"], "orders"),
        (["--deprecated"], "texts"),
        (["--changed", "--skip", "carts"], "orders texts pings"),
    ],
    ids=" ".join,
)
def test_a_listed_topic_matches_all_filters(shop: Scratch, options: list[str], names: str) -> None:
    topics = json.loads(schemactl(shop.path, "list", "--format", "json", *options).out)["topics"]
    assert {topic["topic"].rpartition("/")[2] for topic in topics} == {*names.split()}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["refund"], "no topic of the files or the approved history matches 'refund'"),
        (["--owner", "team-sale"], "--owner team-sale: no topic has that; did you mean team-sales?"),
        (["--label", "tire=gold"], "--label tire: no topic has that; did you mean tier?"),
        (["--type", "AVR"], "--type AVR: no topic has that; did you mean AVRO?"),
    ],
    ids=str,
)
def test_what_no_topic_has_is_an_error(shop: Scratch, options: list[str], error: str) -> None:
    assert f"schemactl: {error}" in schemactl(shop.path, "list", *options, code=64).err


def test_json_has_everything_that_is_said_of_a_topic(shop: Scratch) -> None:
    [texts] = json.loads(schemactl(shop.path, "list", "texts", "--format", "json").out)["topics"]
    assert texts == {
        "topic": "persistent://shop/sales/texts",
        "type": "STRING",
        "version": None,
        "strategy": "BACKWARD",
        "level": "namespace",
        "lifecycle": "stable",
        "owner": "@bob",
        "description": "",
        "labels": {"domain": "sales"},
        "links": {},
        "deprecated": {"remove_after": "2031-01-01", "use": "persistent://shop/sales/orders"},
        "change": "added",
        "next_version": 0,
        "file": "topics/a #1 [x].yaml",
        "line": 1,
    }


def test_json_is_as_its_published_schema_says(shop: Scratch) -> None:
    schema = json.loads((Path(__file__).parent.parent.parent / "schemas/list.schema.json").read_text())
    printed = json.loads(schemactl(shop.path, "list", "--format", "json").out)
    assert len(printed["topics"]) == 4
    jsonschema.Draft7Validator(schema).validate(printed)


def test_code_owners_are_read_by_githubs_rules(shop: Scratch, tmp_path: Path) -> None:
    """The last pattern that matches counts, as in .gitignore, where git itself matches; `#`, `[` and `!` cannot be escaped."""
    printed = schemactl(shop.path, "list", "--format", "codeowners")
    assert "left out: `team-sales` is none to GitHub" in printed.err
    lines = [line for line in printed.out.splitlines() if not line.startswith("#")]
    rules = [line.replace(r"\ ", "\0").split(" ") for line in lines]
    patterns = [pattern.replace("\0", r"\ ") for pattern, *_ in rules]
    assert not any(set(pattern) & set("#[]!") for pattern in patterns)
    other = Scratch(tmp_path / "other")
    other.write({".gitignore": "".join(f"{pattern}\n" for pattern in patterns)})

    def find_owners(path: str) -> list[str]:
        command = ["git", "-C", str(other.path), "check-ignore", "--no-index", "-v", path]
        columns = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split(":")
        return rules[int(columns[1]) - 1][1:] if len(columns) > 1 else []

    assert {
        path: find_owners(path) for path in ("topics/orders.yaml", "topics/orders.avsc", "topics/a #1 [x].yaml")
    } == {
        "topics/orders.yaml": ["@acme/orders", "ada@example.com"],
        "topics/orders.avsc": ["@acme/orders", "ada@example.com"],
        "topics/a #1 [x].yaml": ["@bob"],
    }
    assert find_owners("topics/deep/topics/orders.yaml") == find_owners("topics/sales.yaml") == []


def test_files_that_cannot_be_read_leave_what_was_approved(
    shop: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = Scratch(tmp_path / "bare", bare=True)
    shop.git("push", "-q", str(bare.path), "main")
    broken = Scratch(tmp_path / "broken")
    broken.git("pull", "-q", str(bare.path), "main")
    broken.write({"topics/orders.yaml": "topics: x\n"})
    printed = schemactl(broken.path, "list")
    assert "note: this is what was approved, for the files cannot be read: topics/orders.yaml:1:1" in printed.err
    monkeypatch.setenv("GIT_DIR", str(bare.path))
    assert schemactl(bare.path, "list").out == printed.out
    assert [line.split()[:3] for line in printed.out.splitlines()[1:]] == [
        ["non-persistent://shop/ops/pings", "-", "-"],
        ["shop/sales/carts", "STRING", "0"],
        ["shop/sales/orders", "AVRO", "0"],
    ]
    assert "needs a working tree" in schemactl(bare.path, "list", "--format", "codeowners", code=64).err


def test_a_project_without_topics_says_so(tmp_path: Path) -> None:
    empty = Scratch(tmp_path / "empty")
    empty.commit({"schemactl.yaml": "version: 1\n"})
    empty.flush()
    assert schemactl(empty.path, "list").out == "Neither the files nor main declare a topic.\n"
