"""One way to name topics: exact names, right-hand parts and globs."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemactl.core.errors import UsageError
from schemactl.core.names import TopicName, find_one, glob_expression, matching, select, select_known

NAMES = [
    TopicName.parse(text)
    for text in ("a/b/orders", "a/b/orders-v2", "a/c/orders", "non-persistent://a/b/clicks", "x/b/[1]", "x/b/1")
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
    ("patterns", "namespaces", "message"),
    [
        (["ordres"], [], "did you mean persistent://"),
        (["!ordres"], [], "matches 'ordres'; did you mean persistent://a/c/orders"),
        (["nothing"], [], "; known: non-persistent://a/b/clicks, persistent://a/b/orders, "),
        (["orders"], ["x/b"], "no topic of the approved history matches 'orders' in x/b"),
        ([], ["a/bb"], "did you mean a/b?"),
        (["orders", "!orders"], [], "these leave no topic"),
    ],
)
def test_what_names_nothing_is_an_error(patterns: list[str], namespaces: list[str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        select_known(NAMES, patterns, namespaces)
    assert message in str(raised.value)


def test_one_topic_is_found_or_the_candidates_are_named() -> None:
    assert str(find_one("c/orders", NAMES)) == "persistent://a/c/orders"
    with pytest.raises(UsageError, match="'orders' names 2 topics: persistent://a/b/orders, persistent://a/c/orders"):
        find_one("orders", NAMES)


def by_every_place(glob: str, *, of_files: bool) -> re.Pattern[str]:
    """Return an expression that tries every position, as a reference."""
    simple = {"**/": "(?:.*/)?" if of_files else ".*/", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.findall(r"(?:^|(?<=/))\*\*/|\*\*|\*|\?|.", glob)
    return re.compile("".join(simple.get(part, part) for part in parts))


@given(glob=st.text("ab/*?", max_size=12), text=st.text("ab/", max_size=14), of_files=st.booleans())
@example(glob="**a*b", text="a/ab", of_files=False)
@example(glob="**/a**/b", text="a/ab", of_files=True)
@example(glob="*/**/**/b", text="a/b", of_files=True)
def test_a_glob_matches_as_if_every_place_were_tried(*, glob: str, text: str, of_files: bool) -> None:
    expected = by_every_place(glob, of_files=of_files).fullmatch(text)
    assert bool(glob_expression(glob, of_files=of_files).fullmatch(text)) == bool(expected)


@pytest.mark.parametrize("glob", ["**a" * 40, "*a" * 40, "**/*a" * 40, "**a*a/" * 20])
@pytest.mark.parametrize("of_files", [False, True])
def test_a_glob_of_many_wildcards_is_decided(glob: str, *, of_files: bool) -> None:
    """Each glob would take too long if it were tried at every position."""
    for text in ("a" * 200 + "b", "a/" * 100 + "b"):
        assert not glob_expression(glob, of_files=of_files).fullmatch(text)
