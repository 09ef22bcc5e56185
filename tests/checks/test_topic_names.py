"""Names of new topics must be distinguishable from other names; approved names stay. System topics cannot be declared."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch

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


def check(
    scratch: Scratch, approved: dict[str, str | None], proposed: dict[str, str | None], *, code: int | tuple[int, ...]
) -> str:
    scratch.commit({"schemactl.yaml": PROJECT, **approved})
    scratch.git("checkout", "-q", "-b", "work")
    scratch.commit(proposed, branch="work", start=1)
    scratch.flush()
    printed = schemactl(scratch.path, "check", "--base", "main", code=code)
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


@pytest.mark.parametrize("topic", ["caf\u00e9", "\u8ba2\u5355", "or ders", "a;$(id)"])
def test_visible_names_are_accepted(names_repository: Scratch, topic: str) -> None:
    check(names_repository, {}, {FIRST: declare(topic)}, code=0)


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_names_that_are_equal_in_nfc_name_both_places(names_repository: Scratch, domain: str) -> None:
    second = declare("cafe\u0301").replace("shop/", f"{domain}://shop/")
    out = check(names_repository, {FIRST: declare("caf\u00e9")}, {SECOND: second}, code=1)
    message = rf"'{domain}://shop/sales/cafe\u0301' and 'persistent://shop/sales/caf\xe9' ({FIRST}:2:8) are equal after"
    assert f"{SECOND}:2:8: {message} Unicode normalization (NFC)\n" in out


def test_two_new_names_that_are_equal_in_nfc_are_one_error(names_repository: Scratch) -> None:
    out = check(names_repository, {}, {FIRST: declare("caf\u00e9"), SECOND: declare("cafe\u0301")}, code=1)
    assert out.count("are equal after Unicode normalization") == 1


def test_a_name_may_change_to_its_normal_form(names_repository: Scratch) -> None:
    check(names_repository, {FIRST: declare("cafe\u0301")}, {FIRST: declare("caf\u00e9")}, code=0)


def test_approved_names_stay(names_repository: Scratch) -> None:
    approved: dict[str, str | None] = {
        FIRST: declare("orders\u200b"),
        SECOND: declare("caf\u00e9"),
        "topics/c.yaml": declare("cafe\u0301"),
    }
    check(names_repository, approved, {FIRST: declare("orders\u200b") + "owner: sales\n"}, code=0)


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


@pytest.mark.parametrize("is_approved", [False, True])
def test_a_declared_system_topic_is_an_error_at_its_name(names_repository: Scratch, *, is_approved: bool) -> None:
    declaration = {FIRST: declare("__change_events")}
    out = check(names_repository, {**declaration} if is_approved else {}, {**declaration, SECOND: declare("b")}, code=1)
    assert f"{FIRST}:2:8: persistent://shop/sales/__change_events is a system topic of Pulsar" in out
    assert "Fix: remove this declaration, or give the topic another name\n" in out


def test_a_topic_that_begins_with_underscores_is_accepted(names_repository: Scratch) -> None:
    check(names_repository, {}, {FIRST: declare("__own")}, code=0)


def test_an_approved_system_topic_may_be_removed(names_repository: Scratch) -> None:
    declarations = {FIRST: declare("__change_events"), SECOND: declare("b")}
    out = check(names_repository, {**declarations}, {FIRST: None}, code=(0, 100))
    assert "system topic" not in out
