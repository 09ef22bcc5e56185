"""The names of modules of topics."""

from __future__ import annotations

import hashlib
import keyword

from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES

from schemactl.codegen.module_paths import module_paths
from schemactl.core.names import TopicName


def list_module_names(*topics: str) -> list[str]:
    return [".".join(path) for path in module_paths(map(TopicName.parse, topics)).values()]


NAMES = {
    "shop/sales/orders": "shop.sales.orders",
    # Characters and names that Python does not allow are replaced.
    "shop/sales/order-lines.v2": "shop.sales.order_lines_v2",
    "shop/class/2024": "shop.class_._2024",
    "shop/sales/__init__": "shop.sales.__init___",
    # A tenant never replaces the folder of the run-time or a name of the package.
    "_runtime/sales/orders": "_runtime_.sales.orders",
    "topic/topic/topic": "topic_.topic.topic",
    "annotations/a/b": "annotations_.a.b",
    "finder/a/b": "finder_.a.b",
    "topics/a/b": "topics.a.b",
}


def test_a_name_stays_but_for_what_cannot_be_a_module() -> None:
    assert dict(zip(NAMES, list_module_names(*NAMES), strict=True)) == NAMES


def test_long_names_fit_a_file_system() -> None:
    long = [f"shop/sales/{'x' * 300}{end}" for end in ("a", "b")]
    parts = [name.split(".")[-1] for name in list_module_names(*long)]
    assert len(set(parts)) == 2
    assert all(len(f"{part}.py.1234567890") < 255 for part in parts)


def test_names_that_meet_are_told_apart_and_the_unchanged_one_stays() -> None:
    first, *others = list_module_names("shop/sales/order_lines", "shop/sales/order-lines", "shop/sales/Order_Lines")
    assert first == "shop.sales.order_lines"
    assert len(set(others)) == 2
    assert all(name.startswith(f"{first}_") for name in others)
    assert list_module_names("shop/sales/order-lines") == [first]
    persistent, other = list_module_names("persistent://a/b/c", "non-persistent://a/b/c")
    assert persistent == "a.b.c" != other


PART = st.text("abAB01_-.=:", min_size=1, max_size=5) | st.sampled_from(["topic", "topic_", "_runtime", "class"])


@given(st.sets(st.tuples(PART, PART, PART), max_size=30))
@EXAMPLES
def test_no_two_topics_share_a_module_on_any_file_system(topics: set[tuple[str, str, str]]) -> None:
    paths = module_paths([TopicName(*topic) for topic in sorted(topics)])
    assert len({tuple(part.casefold() for part in path) for path in paths.values()}) == len(topics)
    for part in (part for path in paths.values() for part in path):
        assert part.isidentifier()
        assert not keyword.iskeyword(part)


def hash_of(topic: str) -> str:
    """Return the end of the name of a topic's module that would share its name with another."""
    return hashlib.sha256(f"persistent://{topic}".encode()).hexdigest()[:8]


def test_a_topic_that_is_called_like_another_s_hash_does_not_take_its_module() -> None:
    forged = f"shop/sales/a_b_{hash_of('shop/sales/A.b')}"
    modules = list_module_names("shop/sales/a_b", "shop/sales/A.b", forged)
    assert modules[0] == "shop.sales.a_b"
    assert modules[2] == forged.replace("/", ".")
    assert len(set(modules)) == 3
    # The same for the hashes of later attempts.
    forged_topics = [forged]
    for _ in range(20):
        modules = list_module_names("shop/sales/a_b", "shop/sales/A.b", *forged_topics)
        assert len(set(modules)) == len(modules)
        forged_topics.append(modules[1].replace(".", "/"))


@st.composite
def draw_adversaries(draw: st.DrawFn) -> list[str]:
    """Topics that would share modules, and topics with the names that distinguish these modules, in any order."""
    parts = draw(st.lists(st.sampled_from(["a.b", "A.b", "a_b", "a-B", "class", "Class"]), unique=True, min_size=2))
    topics = [f"t/n/{part}" for part in parts]
    for _ in range(draw(st.integers(0, 4))):
        taken = [f"t/n/{name.split('.')[-1]}" for name in list_module_names(*topics)]
        topics += [topic for topic in draw(st.sets(st.sampled_from(taken))) if topic not in topics]
    return draw(st.permutations(topics))


@given(draw_adversaries())
@EXAMPLES
def test_no_name_is_forged_and_the_order_does_not_matter(topics: list[str]) -> None:
    paths = module_paths(map(TopicName.parse, topics))
    assert len(set(paths.values())) == len(topics)
    assert paths == module_paths(map(TopicName.parse, reversed(topics)))
    # A name that needs no change stays, regardless of the other topics.
    for topic, path in paths.items():
        if path[2].startswith(topic.topic) and topic.topic.isidentifier() and topic.topic != "class":
            assert path[2] == topic.topic
