"""Names of new topics must be distinguishable from other names; approved names stay. System topics cannot be declared."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import schemactl
from scratch import Files, Scratch

from schemactl.core.names import TopicName, is_system_topic

PROJECT = "version: 1\nroots: [topics]\napproved: main\n"
FIRST = "topics/a.yaml"
SECOND = "topics/b.yaml"


def declare(topic: str) -> str:
    escaped = topic.encode("unicode_escape").decode().replace("\\x", "\\u00")
    return f'schema: {{type: STRING}}\ntopic: "shop/sales/{escaped}"\n'


@pytest.fixture
def names_repository(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "repository")


def check(scratch: Scratch, approved: Files, proposed: Files, *, code: int) -> str:
    scratch.commit({"schemactl.yaml": PROJECT, **approved})
    scratch.git("checkout", "-q", "-b", "work")
    scratch.commit(proposed, branch="work", start=1)
    printed = schemactl(scratch, "check", "--base", "main", code=code)
    return printed.out + printed.err


@pytest.mark.parametrize(
    ("topic", "characters", "fix"),
    [
        ("orders\u200b", "U+200B ZERO WIDTH SPACE", "orders"),
        ("or\u00adders", "U+00AD SOFT HYPHEN", "orders"),
        ("or\u202eders", "U+202E RIGHT-TO-LEFT OVERRIDE", "orders"),
        ("or\u0085ders", "U+0085", "orders"),
        ("or\u2028ders", "U+2028 LINE SEPARATOR", "orders"),
        ("or\u2029ders", "U+2029 PARAGRAPH SEPARATOR", "orders"),
        ("or\u00a0ders", "U+00A0 NO-BREAK SPACE", "or ders"),
        ("or\u3000ders", "U+3000 IDEOGRAPHIC SPACE", "or ders"),
        ("or\ufe0fders", "U+FE0F VARIATION SELECTOR-16", "orders"),
        ("or\u3164ders", "U+3164 HANGUL FILLER", "orders"),
    ],
)
def test_invisible_characters_are_named_with_the_text_to_write(
    names_repository: Scratch, topic: str, characters: str, fix: str
) -> None:
    out = check(names_repository, {}, {FIRST: declare(topic)}, code=1)
    assert f"{FIRST}:2:8: {f'persistent://shop/sales/{topic}'!a} contains {characters}\n" in out
    assert f"Fix: write persistent://shop/sales/{fix}\n" in out


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("topic://shop/sales", "topic://TENANT/shop/sales"),
        ("topic://orders", "topic://TENANT/NAMESPACE/orders"),
        ("topic://shop/sales/orders-partition-3", "topic://shop/sales/orders"),
    ],
)
def test_the_fix_for_the_name_of_a_scalable_topic_is_a_scalable_topic(
    names_repository: Scratch, name: str, fix: str
) -> None:
    out = check(names_repository, {}, {FIRST: f"topic: {name}\n"}, code=1)
    assert f"{FIRST}:1:8: '{name}' " in out
    assert f"Fix: write {fix}\n" in out


SYSTEM_TOPICS = [
    "persistent://shop/sales/__change_events",
    "non-persistent://shop/sales/__change_events",
    "persistent://shop/sales/__transaction_buffer_snapshot",
    "persistent://shop/sales/__transaction_buffer_snapshot_indexes",
    "persistent://shop/sales/__transaction_buffer_snapshot_segments",
    "persistent://shop/sales/orders-billing__transaction_pending_ack",
    "persistent://pulsar/system/transaction_coordinator_assign",
    "persistent://pulsar/system/__transaction_log_3",
    "non-persistent://pulsar/system/resource-usage",
    "non-persistent://pulsar/system/loadbalancer-service-unit-state",
    "persistent://pulsar/broker-1:8080/healthcheck",
]
OTHER_TOPICS = [
    "persistent://shop/sales/__own",
    "persistent://shop/sales/change_events",
    "persistent://shop/sales/__change_events_of_sales",
    "persistent://shop/sales/my__transaction_buffer_snapshot",
    "persistent://shop/sales/__transaction_pending_ack_of_sales",
    "persistent://shop/sales/__transaction_log_3",
    "persistent://pulsar/systems/orders",
    "persistent://pulsar/sales/orders",
    "persistent://shop/system/transaction_coordinator_assign",
]


@pytest.mark.parametrize("topic", SYSTEM_TOPICS)
def test_a_system_topic_belongs_to_the_brokers(topic: str) -> None:
    assert is_system_topic(TopicName.parse(topic))


@pytest.mark.parametrize("topic", OTHER_TOPICS)
def test_other_topics_are_not_system_topics(topic: str) -> None:
    assert not is_system_topic(TopicName.parse(topic))


CAFE, CAFE_NFD = declare("caf\u00e9"), declare("cafe\u0301")
INVISIBLE = declare("orders\u200b")
SYSTEM = declare("__change_events")
EQUAL = "{place}:2:8: '{domain}://shop/sales/cafe\\u0301' and 'persistent://shop/sales/caf\\xe9' (topics/a.yaml:2:8) are equal after Unicode normalization (NFC)\n"
IS_SYSTEM = "topics/a.yaml:2:8: persistent://shop/sales/__change_events is a system topic of Pulsar"
REMOVE = "Fix: remove this declaration, or give the topic another name\n"

NAMES: dict[str, tuple[Files, Files, int, tuple[str, ...]]] = {
    "a letter with an accent is accepted": ({}, {FIRST: CAFE}, 0, ()),
    "Chinese characters are accepted": ({}, {FIRST: declare("\u8ba2\u5355")}, 0, ()),
    "a blank is accepted": ({}, {FIRST: declare("or ders")}, 0, ()),
    "characters of a shell are accepted": ({}, {FIRST: declare("a;$(id)")}, 0, ()),
    "a name may begin with underscores": ({}, {FIRST: declare("__own")}, 0, ()),
    "a name that equals an approved name in NFC": (
        {FIRST: CAFE}, {SECOND: CAFE_NFD.replace("shop/", "persistent://shop/")}, 1, (EQUAL.format(place=SECOND, domain="persistent"),),
    ),
    "a name that equals an approved name of the other domain in NFC": (
        {FIRST: CAFE}, {SECOND: CAFE_NFD.replace("shop/", "non-persistent://shop/")}, 1,
        (EQUAL.format(place=SECOND, domain="non-persistent"),),
    ),
    "two new names that are equal in NFC": ({}, {FIRST: CAFE, SECOND: CAFE_NFD}, 1, ("are equal after Unicode normalization",)),
    "a name may change to its normal form": ({FIRST: CAFE_NFD}, {FIRST: CAFE}, 0, ()),
    "approved names stay": (
        {FIRST: INVISIBLE, SECOND: CAFE, "topics/c.yaml": CAFE_NFD}, {FIRST: INVISIBLE + "owner: sales\n"}, 0, (),
    ),
    "a system topic is declared": ({}, {FIRST: SYSTEM, SECOND: declare("b")}, 1, (IS_SYSTEM, REMOVE)),
    "an approved system topic is declared": ({FIRST: SYSTEM}, {SECOND: declare("b")}, 1, (IS_SYSTEM, REMOVE)),
    "an approved system topic is removed": ({FIRST: SYSTEM, SECOND: declare("b")}, {FIRST: None}, 0, ()),
}  # fmt: skip
"""The approved and the proposed files, the exit code, and parts of the output, which it has once."""


@pytest.mark.parametrize(("approved", "proposed", "code", "messages"), NAMES.values(), ids=NAMES)
def test_new_names_differ_visibly_and_no_system_topic_is_declared(
    names_repository: Scratch, approved: Files, proposed: Files, code: int, messages: tuple[str, ...]
) -> None:
    out = check(names_repository, approved, proposed, code=code)
    assert [out.count(message) for message in messages] == [1] * len(messages)
    assert messages or "system topic" not in out
