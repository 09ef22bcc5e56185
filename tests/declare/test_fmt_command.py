"""`schemactl fmt`: what it writes, what it leaves, and its exit codes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import shop
from command import schemactl
from scratch import Scratch

from schemactl.declare import formatter

MESSY = """\
# yaml-language-server: $schema=https://example.com/topic.json
schema:
    definition:   orders.avsc   # beside it
    # the shop's own types
    references:
    - ../common/money.avsc
    type:  AVRO


owner: "team-orders"
topic: persistent://shop/sales/orders
labels: { tier: gold,domain:   sales }
description: |
      One message
        for each order.

clients:
-   name: billing
    role:  consumer
    # of the new service
---

namespace:   shop/sales
"""

TIDY = """\
# yaml-language-server: $schema=https://example.com/topic.json
topic: persistent://shop/sales/orders

owner: "team-orders"
description: |
  One message
    for each order.

labels: {tier: gold, domain: sales}
clients:
  - name: billing
    role: consumer
    # of the new service
schema:
  type: AVRO
  definition: orders.avsc   # beside it
  # the shop's own types
  references:
    - ../common/money.avsc
---
namespace: shop/sales
"""

MESSY_DEFINITION = """\
{"type":"record", "name": "Order",
   "fields": [ {"name":"id","type": "long", "default": 1e3}, // the number
    /* what it costs */

    {"name":"price", "type":["null", "shop.Money"], "doc": "caf\\u00e9, in whatever currency the customer of the shop pays in"}]}
"""

TIDY_DEFINITION = """\
{
  "type": "record",
  "name": "Order",
  "fields": [
    {"name": "id", "type": "long", "default": 1e3}, // the number
    /* what it costs */

    {
      "name": "price",
      "type": ["null", "shop.Money"],
      "doc": "caf\\u00e9, in whatever currency the customer of the shop pays in"
    }
  ]
}
"""
MONEY = '{"type": "record", "name": "Money", "namespace": "shop", "fields": []}\n'


@pytest.fixture
def repository(tmp_path: Path) -> Scratch:
    """A project with a YAML file and a definition that are not laid out, and a shared definition outside the roots that is."""
    made = Scratch(tmp_path / "shop")
    made.write(
        {
            "schemactl.yaml": "version: 1\n",
            "namespaces/orders.yaml": MESSY,
            "namespaces/orders.avsc": MESSY_DEFINITION.replace("1e3", "1"),
            "common/money.avsc": MONEY,
        }
    )
    return made


def text(repository: Scratch, path: str) -> str:
    return (repository.path / path).read_text()


def test_files_are_laid_out_with_their_comments_and_versions(repository: Scratch) -> None:
    done = schemactl(repository.path, "fmt")
    assert done.out == "laid out namespaces/orders.avsc\nlaid out namespaces/orders.yaml\n"
    assert done.err == "2 files laid out, 2 files unchanged\n"
    assert text(repository, "namespaces/orders.yaml") == TIDY
    assert text(repository, "namespaces/orders.avsc") == TIDY_DEFINITION.replace("1e3", "1")
    assert schemactl(repository.path, "fmt", "--check").out == ""


def test_check_and_diff_write_nothing_and_exit_with_100(repository: Scratch) -> None:
    checked = schemactl(repository.path, "fmt", "--check", code=100)
    assert checked.out == "would lay out namespaces/orders.avsc\nwould lay out namespaces/orders.yaml\n"
    shown = schemactl(repository.path, "fmt", "--diff", "namespaces/orders.yaml", code=100).out
    assert shown.startswith("--- a/namespaces/orders.yaml\n+++ b/namespaces/orders.yaml\n")
    assert "+labels: {tier: gold, domain: sales}\n" in shown
    assert text(repository, "namespaces/orders.yaml") == MESSY


def test_paths_are_files_or_folders_from_where_one_works(repository: Scratch) -> None:
    repository.write({"common/money.avsc": MONEY.replace(" ", "")})
    assert schemactl(repository.path / "common", "fmt", ".").out == "laid out common/money.avsc\n"
    assert schemactl(repository.path / "namespaces", "fmt", "orders.avsc").out.split()[-1] == "namespaces/orders.avsc"
    for none in ("x.yaml", ""):
        assert "there is no such file or folder" in schemactl(repository.path, "fmt", none, code=64).err
    assert "outside of the repository" in schemactl(repository.path, "fmt", "..", code=64).err


def test_what_is_staged_is_checked(repository: Scratch) -> None:
    repository.git("add", "-A")
    schemactl(repository.path, "fmt")
    assert "would lay out namespaces/orders.yaml" in schemactl(repository.path, "fmt", "--staged", code=100).out
    repository.git("add", "-A")
    schemactl(repository.path, "fmt", "--staged")


def test_what_is_neither_yaml_nor_json_is_an_error_with_its_place_and_nothing_is_written(repository: Scratch) -> None:
    repository.write({"namespaces/orders.avsc": '{"type": }', "namespaces/b.yaml": "topic: [a\n"})
    told = schemactl(repository.path, "fmt", code=1).err
    assert "namespaces/orders.avsc:1:10: expected a value" in told
    assert "namespaces/b.yaml:" in told
    assert text(repository, "namespaces/orders.yaml") == MESSY


def test_line_ends_of_other_systems_become_line_ends_and_links_are_left(repository: Scratch) -> None:
    repository.write(
        {
            "namespaces/orders.yaml": TIDY.replace("\n", "\r\n"),
            "namespaces/orders.avsc": TIDY_DEFINITION.replace("1e3", "1"),
        }
    )
    (repository.path / "namespaces" / "link.avsc").symlink_to("orders.avsc")
    assert schemactl(repository.path, "fmt").out == "laid out namespaces/orders.yaml\n"
    assert (repository.path / "namespaces" / "orders.yaml").read_bytes() == TIDY.encode()


@pytest.mark.parametrize("name", ["laid_out_yaml", "laid_out_json"])
def test_a_layout_that_would_change_what_is_declared_is_a_bug_and_not_written(
    name: str, repository: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*arguments: str) -> str:
        return arguments[-1].replace("orders", "order").replace("id", "key")

    monkeypatch.setattr(formatter, name, wrong)
    before = {path.name: path.read_text() for path in (repository.path / "namespaces").iterdir()}
    told = schemactl(repository.path, "fmt", code=1).err
    assert "This is a bug of schemactl" in told
    wrong_one = "orders.yaml" if name == "laid_out_yaml" else "orders.avsc"
    assert text(repository, f"namespaces/{wrong_one}") == before[wrong_one]


def test_a_new_project_is_tidy(tmp_path: Path) -> None:
    schemactl(tmp_path, "init")
    schemactl(tmp_path, "new", "namespace", "shop/sales", "--strategy", "BACKWARD")
    for kind in ("AVRO", "STRING", "KEY_VALUE"):
        more = ("--key", "STRING", "--value", "JSON") if kind == "KEY_VALUE" else ()
        schemactl(tmp_path, "new", "topic", f"shop/sales/{kind.lower()}", "--type", kind, *more)
    schemactl(tmp_path, "fmt", "--check")
    schemactl(tmp_path, "lint", "--strict")


def test_the_examples_are_tidy(tmp_path: Path) -> None:
    made = {"shop": shop.make(tmp_path), "environments": tmp_path / "environments"}
    for step in sorted((Path(__file__).parents[2] / "examples" / "environments" / "history").iterdir()):
        shutil.copytree(step, made["environments"], dirs_exist_ok=True)
    for folder in made.values():
        schemactl(folder, "fmt", "--check")
        schemactl(folder, "lint", "--strict")
