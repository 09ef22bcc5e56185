"""The names of topics and namespaces: exact names, right-hand parts and globs, and the names that a target has for them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from estate import Estate
from hypothesis import example, given
from hypothesis import strategies as st

from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.names import (
    NamespaceName,
    TargetNames,
    TopicName,
    compile_glob,
    find_matching_topics,
    find_topic,
    select_known_topics,
    select_topics,
)

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
    assert sorted(name.schema_id for name in find_matching_topics(pattern, NAMES)) == sorted(expected)


def test_without_globs_a_star_is_a_star() -> None:
    assert find_matching_topics("orders*", NAMES, globs=False) == []
    assert len(find_matching_topics("orders", NAMES, globs=False)) == 2


def test_patterns_add_and_leave_out() -> None:
    assert select_topics(NAMES) == frozenset(NAMES)
    assert {str(name.namespace_name) for name in select_topics(NAMES, ["orders", "!c/orders"])} == {"a/b"}
    assert len(select_topics(NAMES, ["!orders*"])) == 3
    assert len(select_topics(NAMES, namespaces=["a/c"])) == 1


def test_a_glob_may_leave_out_nothing() -> None:
    assert (
        select_known_topics(NAMES, ["!*-experiment"], [])
        == select_known_topics(NAMES, ["*", "![xy]*", "!ordres?"], [])
        == frozenset(NAMES)
    )


@pytest.mark.parametrize(
    ("patterns", "namespaces", "message"),
    [
        (["ordres"], [], "did you mean persistent://"),
        (["!ordres"], [], "matches 'ordres'; did you mean persistent://a/c/orders"),
        (["nothing"], [], "; known: non-persistent://a/b/clicks, persistent://a/b/orders, "),
        (["orders"], ["x/b"], "no topic of the approved history matches 'orders' in x/b"),
        ([], ["a/bb"], "did you mean a/b?"),
        (["orders", "!orders"], [], "no topic matches all of these patterns"),
    ],
)
def test_pattern_without_match_is_an_error(patterns: list[str], namespaces: list[str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        select_known_topics(NAMES, patterns, namespaces)
    assert message in str(raised.value)


def test_one_topic_is_found_or_the_candidates_are_named() -> None:
    assert str(find_topic("c/orders", NAMES)) == "persistent://a/c/orders"
    with pytest.raises(UsageError, match="'orders' names 2 topics: persistent://a/b/orders, persistent://a/c/orders"):
        find_topic("orders", NAMES)


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
    assert bool(compile_glob(glob, of_files=of_files).fullmatch(text)) == bool(expected)


@pytest.mark.parametrize("glob", ["**a" * 40, "*a" * 40, "**/*a" * 40, "**a*a/" * 20])
@pytest.mark.parametrize("of_files", [False, True])
def test_a_glob_of_many_wildcards_is_decided(glob: str, *, of_files: bool) -> None:
    """Each glob would take too long if it were tried at every position."""
    for text in ("a" * 200 + "b", "a/" * 100 + "b"):
        assert not compile_glob(glob, of_files=of_files).fullmatch(text)


SALES, WEB = NamespaceName("shop", "sales"), NamespaceName("shop", "web")
TARGET_NAMES = TargetNames("prod", {"shop": "live", "lab": "shop"}, {SALES: NamespaceName("eu", "sales")})


@pytest.mark.parametrize(
    ("declared", "on_target"),
    [("shop/sales", "eu/sales"), ("shop/web", "live/web"), ("lab/sales", "shop/sales"), ("lab/x", "shop/x")],
)
def test_a_namespaces_own_entry_goes_before_its_tenants(declared: str, on_target: str) -> None:
    ours, theirs = NamespaceName.parse(declared), NamespaceName.parse(on_target)
    assert TARGET_NAMES.to_target(ours) == theirs
    assert TARGET_NAMES.declared(theirs) == ours
    topic = TopicName.parse(f"non-persistent://{declared}/orders")
    assert str(TARGET_NAMES.to_target(topic)) == f"non-persistent://{on_target}/orders"
    assert TARGET_NAMES.declared(TARGET_NAMES.to_target(topic)) == topic


def test_namespace_without_entry_has_no_name_on_the_target() -> None:
    with pytest.raises(SchemactlError) as raised:
        TARGET_NAMES.to_target(TopicName.parse("web/clicks/clicks"))
    assert str(raised.value) == (
        "target prod: neither its `tenants` nor its `namespaces` have a name for web/clicks\n"
        "  Fix: write `tenants: {shop: live, lab: shop, web: web}` in the target, with the names that are used there"
    )
    # The tenant's entry would lead there, but the namespace has its own entry.
    assert TARGET_NAMES.declared(NamespaceName("live", "sales")) is None
    assert TARGET_NAMES.declared(NamespaceName("web", "clicks")) is None


def test_without_entries_names_are_the_declared_ones() -> None:
    assert TargetNames("prod").to_target(WEB) == WEB == TargetNames("prod").declared(WEB)


@pytest.mark.parametrize(
    "command", [("plan",), ("apply", "--yes"), ("drift",), ("rebuild",), ("log", "refunds", "--target", "prod")]
)
def test_a_forgotten_entry_stops_every_command_before_the_registry(tmp_path: Path, command: tuple[str, ...]) -> None:
    project = 'version: 1\ntargets: {prod: {registry: "sqlite:prod.db", namespaces: {shop/sales: live/sales}}}\n'
    estate = Estate(tmp_path / "shop", project=project)
    estate.scratch.commit({"namespaces/web.yaml": "topic: shop/web/refunds\nschema: {type: STRING}\n"})
    error = estate.run(*command, code=1).err
    assert "target prod: neither its `tenants` nor its `namespaces` have a name for shop/web" in error
    assert not (estate.scratch.path / "prod.db").exists()
    completed = project.replace("namespaces:", "tenants: {shop: shop}, namespaces:")
    estate.scratch.commit({"schemactl.yaml": completed})
    assert "live/sales/orders" in estate.run("plan").out
