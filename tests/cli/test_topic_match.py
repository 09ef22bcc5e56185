"""One way to name topics: exact names, right-hand parts and globs."""

from __future__ import annotations

import pytest

from schemactl.errors import UsageError
from schemactl.model import TopicName
from schemactl.topic_match import find_one, matching, require_matches, select

NAMES = [
    TopicName.parse(text)
    for text in (
        "a/b/orders",
        "a/b/orders-v2",
        "a/c/orders",
        "non-persistent://a/b/clicks",
        "x/b/[1]",
        "x/b/1",
    )
]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("orders", ["a/b/orders", "a/c/orders"]),
        ("b/orders", ["a/b/orders"]),
        ("a/b/orders", ["a/b/orders"]),
        ("persistent://a/b/orders", ["a/b/orders"]),
        ("persistent://a/b/clicks", []),
        ("a/b/orders-partition-3", ["a/b/orders"]),
        ("orders*", ["a/b/orders", "a/b/orders-v2", "a/c/orders"]),
        ("*/orders", ["a/b/orders", "a/c/orders"]),
        ("a/*", []),
        ("a/**", ["a/b/orders", "a/b/orders-v2", "a/c/orders", "a/b/clicks"]),
        ("a/?/orders", ["a/b/orders", "a/c/orders"]),
        ("[!c]/orders", ["a/b/orders"]),
        ("x/b/[1]", ["x/b/[1]"]),
        ("[z-a]", []),
        ("rders", []),
        ("", []),
    ],
)
def test_a_pattern_names_topics(pattern: str, expected: list[str]) -> None:
    assert sorted(name.schema_id for name in matching(pattern, NAMES)) == sorted(expected)


def test_without_globs_a_star_is_a_star() -> None:
    assert matching("orders*", NAMES, globs=False) == []
    assert len(matching("orders", NAMES, globs=False)) == 2


def test_patterns_add_and_leave_out() -> None:
    assert select(NAMES) == frozenset(NAMES)
    assert {str(name.namespace_name) for name in select(NAMES, ["orders", "!c/orders"])} == {"a/b"}
    assert len(select(NAMES, ["!orders*"])) == 3
    assert len(select(NAMES, namespaces=["a/c"])) == 1


@pytest.mark.parametrize(
    ("patterns", "namespaces", "said"),
    [
        (["ordres"], [], "did you mean persistent://"),
        (["orders"], ["x/b"], "no topic of the approved history matches in x/b"),
        ([], ["a/bb"], "did you mean a/b?"),
        (["orders", "!orders"], [], "these leave no topic"),
    ],
)
def test_what_names_nothing_is_an_error(patterns: list[str], namespaces: list[str], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        require_matches(NAMES, patterns, namespaces)
    assert said in str(raised.value)


def test_one_topic_is_found_or_the_candidates_are_named() -> None:
    assert str(find_one("c/orders", NAMES)) == "persistent://a/c/orders"
    with pytest.raises(
        UsageError, match="'orders' names 2 topics: persistent://a/b/orders, persistent://a/c/orders"
    ):
        find_one("orders", NAMES)
