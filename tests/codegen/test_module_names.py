"""Topics' names as modules' names."""

from __future__ import annotations

import keyword

from hypothesis import given, settings
from hypothesis import strategies as st

from schemactl.codegen.names import module_paths
from schemactl.model import TopicName


def names(*topics: str) -> list[str]:
    return [".".join(path) for path in module_paths(map(TopicName.parse, topics)).values()]


def test_a_plain_name_stays() -> None:
    assert names("shop/sales/orders") == ["shop.sales.orders"]


def test_what_python_cannot_have_is_replaced() -> None:
    assert names("shop/sales/order-lines.v2", "shop/class/2024", "shop/sales/__init__") == [
        "shop.sales.order_lines_v2",
        "shop.class_._2024",
        "shop.sales.__init___",
    ]


def test_the_run_time_s_folder_is_no_tenant() -> None:
    assert names("_runtime/sales/orders") == ["_runtime_.sales.orders"]


def test_a_tenant_does_not_take_the_place_of_the_package_s_own_names() -> None:
    assert names("topic/topic/topic", "annotations/a/b", "sub/a/b", "topics/a/b") == [
        "topic_.topic.topic",
        "annotations_.a.b",
        "sub_.a.b",
        "topics.a.b",
    ]


def test_long_names_fit_a_file_system() -> None:
    long = [f"shop/sales/{'x' * 300}{end}" for end in ("a", "b")]
    parts = [name.split(".")[-1] for name in names(*long)]
    assert len(set(parts)) == 2
    assert all(len(f"{part}.py.1234567890") < 255 for part in parts)


def test_names_that_meet_are_told_apart_and_the_unchanged_one_stays() -> None:
    found = names("shop/sales/order_lines", "shop/sales/order-lines", "shop/sales/Order_Lines")
    assert found[0] == "shop.sales.order_lines"
    assert len(set(found)) == 3
    assert all(name.startswith("shop.sales.order_lines_") for name in found[1:])
    assert names("shop/sales/order-lines") == ["shop.sales.order_lines"]


def test_domains_are_told_apart() -> None:
    found = names("persistent://a/b/c", "non-persistent://a/b/c")
    assert found[0] == "a.b.c"
    assert found[1] != found[0]


PART = st.text("abAB01_-.=:", min_size=1, max_size=5) | st.sampled_from(
    ["topic", "topic_", "_runtime", "class"]
)


@given(st.sets(st.tuples(PART, PART, PART), max_size=30))
@settings(max_examples=200, deadline=None)
def test_no_two_topics_share_a_module_on_any_file_system(topics: set[tuple[str, str, str]]) -> None:
    paths = module_paths([TopicName(*topic) for topic in sorted(topics)])
    assert len({tuple(part.casefold() for part in path) for path in paths.values()}) == len(topics)
    for part in (part for path in paths.values() for part in path):
        assert part.isidentifier()
        assert not keyword.iskeyword(part)
