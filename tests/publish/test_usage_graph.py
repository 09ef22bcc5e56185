"""`schemactl graph`: who uses which type and file, in every format."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command import run_json, schemactl
from scratch import Scratch, record, write_declaration

from schemactl.publish import usage_graph as report
from schemactl.publish.usage_graph import Node, Usage

MONEY = '{"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "of", "type": {"type": "enum", "name": "Currency", "symbols": ["EUR"]}}]}'
CLICK = (
    'syntax = "proto3";\npackage web;\nmessage Click { map<string, Place> at = 1; }\nmessage Place { int32 x = 1; }\n'
)
PARSERS = Path(os.environ.get("SCHEMACTL_GRAPH_PARSERS") or Path(__file__).parent.parent.parent / ".graph-parsers")


def make_record_using(name: str, *types: str) -> str:
    return record(name=name).replace(
        "[]", json.dumps([{"name": f"f{number}", "type": type_name} for number, type_name in enumerate(types)])
    )


@pytest.fixture(scope="module")
def graph_shop(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    new_shop = Scratch(tmp_path_factory.mktemp("graph") / "shop")
    shared = "  references: [../shared/]\n"
    new_shop.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\n",
            "topics/orders.yaml": write_declaration(more=shared),
            "topics/orders.avsc": make_record_using("Order", "Price"),
            "topics/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc", shared),
            "topics/refunds.avsc": make_record_using("Refund", "shop.Money"),
            "topics/clicks.yaml": "topic: shop/web/clicks\nschema: {type: PROTOBUF_NATIVE, definition: click.proto, message: web.Click}\n",
            "topics/click.proto": CLICK,
            "topics/pairs.yaml": "topic: shop/web/pairs\nschema: {type: KEY_VALUE, key: {type: STRING}, value: {type: AVRO, definition: orders.avsc, references: [../shared/]}}\n",
            "topics/pings.yaml": "topic: shop/web/pings\n",
            "shared/money.avsc": MONEY,
            "shared/price.avsc": make_record_using("Price", "shop.Money"),
        }
    )
    new_shop.flush()
    return new_shop


def read_lines(shop: Scratch, *arguments: str) -> list[str]:
    return schemactl(shop.path, "graph", *arguments).out.splitlines()


def test_without_a_name_it_is_what_several_topics_share(graph_shop: Scratch) -> None:
    blocks = schemactl(graph_shop.path, "graph").out.removesuffix("\n").split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [
        "file shared/money.avsc",
        "file shared/price.avsc",
        "file topics/orders.avsc",
        "type Order",
        "type Price",
        "type shop.Currency",
        "type shop.Money",
    ]
    assert blocks[-1].splitlines()[1:] == [
        "  topic persistent://shop/sales/refunds, through Refund",
        "  topic persistent://shop/sales/orders, through Price",
        "  topic persistent://shop/web/pairs, through Price",
    ]


def test_of_a_type_a_file_or_a_topic_it_is_who_uses_it_and_what_it_uses(graph_shop: Scratch) -> None:
    assert read_lines(graph_shop, "Price") == [
        "type Price",
        "used by:",
        "  type Order",
        "  topic persistent://shop/sales/orders, through Order",
        "  topic persistent://shop/web/pairs, through Order",
        "uses:",
        "  file shared/price.avsc",
        "  type shop.Money",
        "  file shared/money.avsc, through shop.Money",
        "  type shop.Currency, through shop.Money",
    ]
    assert read_lines(graph_shop, "price.avsc")[2] == "  type Price"
    assert read_lines(graph_shop, "clicks")[1:] == [
        "used by:",
        "  nothing",
        "uses:",
        "  file topics/click.proto",
        "  type web.Click",
        "  type web.Place, through web.Click",
    ]
    assert read_lines(graph_shop, "pings")[1:] == ["used by:", "  nothing", "uses:", "  nothing"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Mony", "no topic, type or file is called 'Mony'; did you mean shop.Money"),
        ("orders.avs", "no topic, type or file is called"),
        ("s", "no topic, type or file is called 's'"),
    ],
)
def test_a_name_that_is_none_gets_the_nearest(graph_shop: Scratch, name: str, words: str) -> None:
    assert words in schemactl(graph_shop.path, "graph", name, code=64).err


def test_json_has_all_and_of_a_name_its_part(graph_shop: Scratch) -> None:
    whole = run_json(graph_shop.path, "graph")
    assert {"kind": "topic", "name": "persistent://shop/web/pings"} in whole["nodes"]
    part = run_json(graph_shop.path, "graph", "Refund")
    assert part["about"] == {"kind": "type", "name": "Refund"}
    assert {node["name"] for node in part["nodes"]} == {
        *("Refund", "shop.Money", "shop.Currency", "persistent://shop/sales/refunds"),
        *("topics/refunds.avsc", "shared/money.avsc"),
    }
    ends = [edge[end] for edge in part["edges"] for end in ("from", "to")]
    assert all(node in part["nodes"] for node in ends)
    assert all(edge in whole["edges"] for edge in part["edges"])


def test_declarations_with_problems_are_no_graph(tmp_path: Path) -> None:
    other = Scratch(tmp_path / "o")
    other.commit({"schemactl.yaml": "version: 1\nroots: [topics]\n", "topics/o.yaml": write_declaration()})
    other.flush()
    assert "there is no file `topics/orders.avsc`" in schemactl(other.path, "graph", code=1).err


HOSTILE = [
    'a"]; click n0 "javascript:x"',
    "end",
    "#quot; #35; \\N \\l \\",
    "<b onclick=x>&amp;",
    "`x` %% --> {y} |z|",
    "line\nbreak\x1b[31m",
    "größe 名前",
]


def make_hostile_usage() -> Usage:
    files = [Node("file", name) for name in HOSTILE]
    return Usage({Node("topic", "t"): frozenset(files), **{file: frozenset() for file in files}})


def test_names_are_obeyed_by_no_format() -> None:
    usage = make_hostile_usage()
    for text in (report.render_mermaid(usage), report.render_dot(usage), report.render_text(usage, Node("topic", "t"))):
        assert "\x1b" not in text
        assert "line\nbreak" not in text
    assert re.fullmatch(
        r'(  n\d+(\(\[|\[|\[/)"[\w ._/:#;-]*"(\]\)|\]|/\])\n|  n\d+ -\.?-> n\d+\n?|flowchart LR\n)*',
        report.render_mermaid(usage),
    )


@pytest.mark.live
@pytest.mark.node
def test_mermaid_and_graphviz_read_what_is_meant() -> None:
    node = shutil.which("node")
    if node is None or not (PARSERS / "node_modules").is_dir():
        pytest.skip("Mermaid's parser and Graphviz are missing: `make graph-parsers` fetches them, with node and npm")
    usage = make_hostile_usage()
    rendered_graphs = json.dumps({"mermaid": report.render_mermaid(usage), "dot": report.render_dot(usage)})
    done = subprocess.run(
        [node, str(Path(__file__).parent / "graph_parsers.mjs"), str(PARSERS.resolve())],
        input=rendered_graphs, capture_output=True, text=True, check=True,
    )  # fmt: skip
    read: dict[str, Any] = json.loads(done.stdout)
    meant = {"t", *(name.replace("\n", "\\n").replace("\x1b", "\\u001b") for name in HOSTILE)}
    # So Mermaid keeps a character that is written as a number, until it draws it.
    written = (re.sub(r"ﬂ°°(\d+)¶ß", lambda match: chr(int(match[1])), name) for name in read["mermaid"])
    assert {*written} == meant
    # Graphviz unescapes backslashes only when it draws.
    assert {name.replace("\\\\", "\\") for name in read["dot"]} == meant
    assert read["arrows"] == read["edges"] == len(HOSTILE)
