"""Drawings are valid SVG, show each node, version and answer, and cannot be broken by names."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import pytest
import shop
from command import schemactl

from schemactl.publish.drawings import draw_usage
from schemactl.publish.usage_graph import Node, Usage

HOSTILE = '</text><script>alert("1")</script>&\u202e\u0000'


def load_schema_pictures() -> Any:
    """Return the script that draws the pictures of the documentation, which is not in a package."""
    spec = spec_from_file_location("schema_pictures", Path(__file__).parent.parent.parent / "ci/schema_pictures.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PICTURES: Final = load_schema_pictures()


def read_texts(svg: str) -> list[str]:
    """Return the texts of an SVG, which has no script."""
    root = ET.fromstring(svg)  # noqa: S314  written here
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "style", "g", "rect", "path", "circle", "text"}
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_graph_of_a_type_has_its_users_and_its_file(tmp_path: Path) -> None:
    svg = schemactl(shop.make(tmp_path), "graph", "Money", "--format", "svg").out
    texts = read_texts(svg)
    assert "2 topics" in texts
    assert {"shop/sales/orders", "shop/sales/payments", "com.example.shop.Money", "namespaces/common/money.avsc"} <= {
        *texts
    }
    assert svg.count('class="box middle"') == 1


@pytest.mark.parametrize(
    ("nodes", "expected"), [(0, []), (1, ["1 topic"]), (40, ["40 topics"]), (41, ["41 topics", "and 1 more"])]
)
def test_long_columns_are_folded(nodes: int, expected: list[str]) -> None:
    uses = {Node("topic", f"persistent://a/b/t{number}"): frozenset[Node]() for number in range(nodes)}
    texts = read_texts(draw_usage(Usage(uses)))
    assert [text for text in expected if text not in texts] == []
    assert ("and 1 more" in texts) == (nodes == 41)


def test_types_that_use_each_other_are_drawn_once() -> None:
    a, b = Node("type", "A"), Node("type", "B")
    texts = read_texts(draw_usage(Usage({a: frozenset({b, a}), b: frozenset({a})}), a))
    assert (texts.count("A"), texts.count("B")) == (1, 1)


def test_a_used_type_is_to_the_right_of_its_users() -> None:
    chain = [Node("type", name) for name in "ABC"]
    uses = {chain[2]: frozenset[Node](), chain[1]: frozenset({chain[2]}), chain[0]: frozenset({chain[1], chain[2]})}
    root = ET.fromstring(draw_usage(Usage(uses)))  # noqa: S314  written here
    x_by_name = {text.text: int(text.get("x") or 0) for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert x_by_name["A"] < x_by_name["B"] < x_by_name["C"]


def test_hostile_names_are_texts() -> None:
    node = Node("topic", HOSTILE)
    lives = [PICTURES.FieldLife(HOSTILE, 0, renames={1: HOSTILE})]
    drawings = (
        draw_usage(Usage({node: frozenset()}), node),
        PICTURES.draw_evolution(HOSTILE, {0: "2026-01-01", 1: HOSTILE}, lives, frozenset({1})),
        PICTURES.draw_environments(HOSTILE, [HOSTILE], {HOSTILE: (1, [None])}),
        PICTURES.draw_compatibility(HOSTILE, [0], {(0, 0): True}),
    )
    for svg in drawings:
        assert "<script" not in svg
        assert "\0" not in svg
        read_texts(svg)


def test_the_evolution_has_renames_removals_and_breaking_versions() -> None:
    lives = [
        PICTURES.FieldLife("customer", 0, renames={1: "customer_id"}),
        PICTURES.FieldLife("note", 0, 1),
        PICTURES.FieldLife("tags", 2),
    ]
    svg = PICTURES.draw_evolution("orders", {0: "2026-01-01", 1: "2026-01-02", 2: "2026-01-03"}, lives, frozenset({1}))
    texts = read_texts(svg)
    assert {"was customer_id", "✗ 2026-01-02", "2026-01-03"} <= {*texts}
    assert "note from version 0 to 1" in svg


def test_each_pair_of_versions_has_a_mark() -> None:
    reads = {(0, 0): True, (0, 1): False, (1, 0): True, (1, 1): True}
    svg = PICTURES.draw_compatibility("orders", [0, 1], reads, frozenset({(1, 0)}))
    texts = read_texts(svg)
    assert (texts.count("✓"), texts.count("✗")) == (3, 1)
    assert svg.count('stroke-width="2"/>') == 1
    assert "v0 cannot read v1" in svg


def test_the_grid_has_the_distance_of_each_target() -> None:
    texts = read_texts(
        PICTURES.draw_environments("all", ["dev", "prod"], {"orders": (5, [5, 3]), "old": (None, [None, 0])})
    )
    assert {"✓ v5", "v3, 2 behind", "v0", "-"} <= {*texts}
