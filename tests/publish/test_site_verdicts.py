"""The site says who breaks: of each version, of each pair of clients, and of each change."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import approved
import pytest
from command import run_json, schemactl
from scratch import Scratch, write_declaration

from schemactl.core.catalog import Client, Topic
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.publish.repository_links import RepositoryLinks, find_web_address
from schemactl.publish.site_events import group_months
from schemactl.publish.site_text import plain_text, render_markdown
from schemactl.publish.site_verdicts import TopicVerdicts, format_span, judge_topic

NAME = TopicName("shop", "sales", "orders")
ID = {"name": "id", "type": "string"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
TOTAL = {"name": "total", "type": "int"}
BIG_TOTAL = {"name": "total", "type": "long"}
COLOR = {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED"]}}
COLORS = {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}}


def judge(*versions: list[dict[str, Any]], clients: tuple[Client, ...] = ()) -> TopicVerdicts:
    numbered = approved.make_versions(*(approved.record(*fields) for fields in versions))
    topic = Topic(NAME, numbered[-1].info, numbered, clients=clients)
    return judge_topic(topic, len(versions) - 1, CompatibilityStrategy.FULL_TRANSITIVE, lambda _: ())


CHIPS: list[tuple[str, list[list[dict[str, Any]]], list[str]]] = [
    ("an optional field", [[ID], [ID, NOTE]], ["first version", "safe"]),
    ("a wider type", [[ID, TOTAL], [ID, BIG_TOTAL]], ["first version", "breaks readers v0"]),
    # v0 and v1 stop at v2, and are not named again at v3.
    (
        "each reader once",
        [[TOTAL], [TOTAL, NOTE], [BIG_TOTAL], [BIG_TOTAL, NOTE]],
        ["first version", "safe", "breaks readers v0\N{EN DASH}v1", "safe"],
    ),
    ("a field without default", [[ID], [ID, TOTAL], [ID, TOTAL, NOTE]], ["first version", "cannot read v0", "safe"]),
    ("a new symbol", [[COLOR], [COLORS], [COLORS, NOTE]], ["first version", "breaks readers v0", "safe"]),
    ("both ways", [[ID], [TOTAL]], ["first version", "breaks readers v0"]),
    ("nothing in common, twice", [[ID], [TOTAL], [ID]], ["first version", "breaks readers v0", "breaks readers v1"]),
]


@pytest.mark.parametrize(("versions", "chips"), [case[1:] for case in CHIPS], ids=[case[0] for case in CHIPS])
def test_the_chip_of_a_version_names_the_readers_that_stop_there(
    versions: list[list[dict[str, Any]]], chips: list[str]
) -> None:
    assert [verdict.text for verdict in judge(*versions).versions.values()] == chips


PRODUCER, CONSUMER = Client("shop", "producer", (1, 1)), Client("billing", "consumer", (0, 0))
PAIRS: list[tuple[str, tuple[Client, ...], str, list[str]]] = [
    ("the consumer is older", (PRODUCER, CONSUMER), "breaks billing", ["billing"]),
    (
        "the producer still writes the old version",
        (Client("shop", "producer", (0, 0)), CONSUMER),
        "breaks readers v0",
        [],
    ),
    ("no producer is declared: the version in force", (CONSUMER,), "breaks billing", ["billing"]),
    ("one on latest is built again", (PRODUCER, Client("billing", "consumer")), "breaks readers v0", []),
    ("instances of both versions", (PRODUCER, Client("billing", "consumer", (0, 1))), "breaks billing", ["billing"]),
    ("a producer of both versions", (Client("shop", "producer", (0, 1)), CONSUMER), "breaks billing", ["billing"]),
    ("a reader", (PRODUCER, Client("audit", "reader", (0, 0))), "breaks audit", ["audit"]),
    (
        "two of three",
        (PRODUCER, CONSUMER, Client("audit", "reader", (0, 0)), Client("new", "consumer", (1, 1))),
        "breaks billing, audit",
        ["billing", "audit"],
    ),
    ("an unknown version", (PRODUCER, Client("billing", "consumer", (7, 9))), "breaks readers v0", []),
    ("only a producer", (PRODUCER,), "breaks readers v0", []),
]


PROBLEMS: list[tuple[str, list[list[dict[str, Any]]], tuple[Client, ...], list[str], list[str]]] = [
    ("at the newest version", [[ID], [TOTAL]], (PRODUCER, CONSUMER), ["billing"], []),
    ("a version later", [[ID], [TOTAL], [TOTAL, NOTE]], (PRODUCER, CONSUMER), [], ["billing"]),
    ("a version later, unknown producers", [[ID], [TOTAL], [TOTAL, NOTE]], (CONSUMER,), [], ["billing"]),
    (
        "one old, one new",
        [[ID], [TOTAL], [ID]],
        (Client("shop", "producer"), CONSUMER, Client("audit", "consumer", (1, 1))),
        ["audit"],
        [],
    ),
    (
        "both with the same consumer",
        [[ID], [TOTAL], [TOTAL, COLOR]],
        (Client("shop", "producer", (1, 1)), Client("web", "producer"), CONSUMER, Client("audit", "consumer", (2, 2))),
        ["audit"],
        ["billing"],
    ),
]


@pytest.mark.parametrize(
    ("versions", "clients", "alarms", "older"), [case[1:] for case in PROBLEMS], ids=[case[0] for case in PROBLEMS]
)
def test_a_client_that_broke_before_the_newest_version_is_an_older_problem(
    versions: list[list[dict[str, Any]]], clients: tuple[Client, ...], alarms: list[str], older: list[str]
) -> None:
    verdicts = judge(*versions, clients=clients)
    assert list(dict.fromkeys(pair.consumer.name for pair in verdicts.alarms)) == alarms
    assert list(dict.fromkeys(pair.consumer.name for pair in verdicts.older_problems)) == older


@pytest.mark.parametrize(("clients", "chip", "broken"), [case[1:] for case in PAIRS], ids=[case[0] for case in PAIRS])
def test_a_client_that_breaks_today_is_named(clients: tuple[Client, ...], chip: str, broken: list[str]) -> None:
    verdicts = judge([COLOR], [COLORS], clients=clients)
    assert verdicts.versions[1].text == chip
    assert verdicts.broken_consumers == broken
    for pair in verdicts.broken:
        assert pair.proof
        assert "BLUE" in pair.proof.message


def test_one_on_latest_that_cannot_read_an_old_producer_breaks() -> None:
    clients = (Client("till", "producer", (0, 0)), Client("loader", "consumer"))
    verdicts = judge([ID], [ID, TOTAL], clients=clients)
    assert [verdict.text for verdict in verdicts.versions.values()] == ["first version", "breaks loader"]


def test_a_topic_without_versions_in_force_has_no_pairs_that_break() -> None:
    versions = approved.make_versions(approved.record(ID), None)
    verdicts = judge_topic(
        Topic(NAME, None, versions, clients=(CONSUMER,)), None, CompatibilityStrategy.FULL, lambda _: ()
    )
    assert [verdict.text for verdict in verdicts.versions.values()] == ["first version", "deleted"]
    assert verdicts.broken == []


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([0], "v0"),
        ([0, 1, 2], "v0\N{EN DASH}v2"),
        ([3, 0, 1], "v0\N{EN DASH}v1, v3"),
        ([9, 10, 11], "v9\N{EN DASH}v11"),
        ([], ""),
    ],
)
def test_versions_as_text(numbers: list[int], text: str) -> None:
    assert format_span(numbers) == text


@pytest.fixture(scope="module")
def verdict_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose history has an event of each kind."""
    folder = tmp_path_factory.mktemp("events")
    shop = Scratch(folder / "shop")

    def define(*fields: dict[str, Any]) -> str:
        return json.dumps({"type": "record", "name": "Order", "fields": [*fields]})

    project = "version: 1\nroots: [topics]\nrepository: {url: 'https://github.com/acme/shop'}\n"
    shop.commit(
        {
            "schemactl.yaml": project,
            "topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL\nowner: team-sales\n",
            "topics/orders.yaml": write_declaration(),
            "topics/orders.avsc": define(ID),
            "topics/old.yaml": write_declaration("shop/sales/old", "old.avsc"),
            "topics/old.avsc": define(ID),
        },
        "first",
    )
    shop.commit({"topics/orders.avsc": define(ID, NOTE)}, "note")
    shop.commit({"topics/orders.avsc": define(ID)}, "back")
    shop.commit({"topics/old.yaml": None}, "old is gone")
    shop.commit(
        {"topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FORWARD\nowner: team-sales\n"},
        "policy",
    )
    shop.commit(
        {"topics/orders.yaml": write_declaration(more="clients: [{name: billing, role: consumer, schema: 0}]\n")},
        "clients",
    )
    shop.commit(
        {
            "topics/orders.yaml": write_declaration(
                more="clients: [{name: billing, role: consumer, schema: 0}]\n"
                "deprecated: {since: 2026-01-01, remove_after: 2026-02-01}\n"
            )
        },
        "deprecated",
    )
    shop.commit({"topics/orders.avsc": define(TOTAL)}, "broken")
    shop.flush()
    schemactl(shop.path, "site", "--out", str(folder / "site"))
    return folder / "site"


def test_each_kind_of_event_is_a_change(verdict_site: Path) -> None:
    (month,) = json.loads((verdict_site / "changes.json").read_text())["months"]
    events = {(event["kind"], event["name"].rpartition("/")[2], event.get("text")) for event in month["events"]}
    assert events == {
        ("version", "orders", "new topic"),
        ("version", "old", "new topic"),
        ("version", "orders", "safe"),
        ("return", "orders", "v0 again"),
        ("deletion", "old", "deleted"),
        ("policy", "sales", "policy"),
        ("clients", "orders", "1 client"),
        ("deprecation", "orders", "remove after 2026-02-01"),
        ("version", "orders", "breaks billing"),
    }
    assert month["breaking"] == 1
    (policy,) = (event for event in month["events"] if event["kind"] == "policy")
    assert policy["changes"] == ["schema_compatibility_strategy: FULL is now FORWARD"]
    assert {event["author"] for event in month["events"]} == {"Ada"}


def test_a_feed_of_an_owner_has_its_events(verdict_site: Path) -> None:
    feed = (verdict_site / "owners/team-sales.xml").read_text("utf-8")
    assert feed.count("<entry>") == 9
    assert "<title>orders v2: breaks billing (shop/sales)</title>" in feed
    breaking = (verdict_site / "breaking.xml").read_text("utf-8")
    assert breaking.count("<entry>") == 1


def test_commits_and_files_lead_into_the_repository(verdict_site: Path) -> None:
    page = (verdict_site / "topics/shop/sales/orders.html").read_text("utf-8")
    assert 'href="https://github.com/acme/shop/blob/main/topics/orders.yaml#L1"' in page
    assert 'href="https://github.com/acme/shop/edit/main/topics/orders.yaml"' in page
    assert 'href="https://github.com/acme/shop/commit/' in page


def test_a_client_has_a_page_with_its_pairs(verdict_site: Path) -> None:
    page = (verdict_site / "clients/billing.html").read_text("utf-8")
    assert '<span class="chip hurts">cannot read v2</span>' in page
    assert '<svg class="flow"' in page
    assert "breaks on orders" in (verdict_site / "clients.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("https://github.com/acme/shop.git", "https://github.com/acme/shop"),
        ("https://github.com/acme/shop/", "https://github.com/acme/shop"),
        ("https://user:secret@git.example.com:8443/a/b/c.git", "https://git.example.com:8443/a/b/c"),
        ("git@github.com:acme/shop.git", "https://github.com/acme/shop"),
        ("ssh://git@git.example.com:2222/acme/shop.git", "https://git.example.com/acme/shop"),
        ("/srv/git/shop.git", ""),
        ("../shop", ""),
        ("file:///srv/git/shop.git", ""),
        ("", ""),
        ("javascript:alert(1)", ""),
    ],
)
def test_the_web_address_of_a_remote(remote: str, url: str) -> None:
    assert find_web_address(remote) == url


@pytest.mark.parametrize(
    ("url", "commit", "line"),
    [
        ("https://github.com/a/b", "/commit/c1", "/blob/main/x%20y.yaml#L3"),
        ("https://gitlab.com/a/b", "/-/commit/c1", "/-/blob/main/x%20y.yaml#L3"),
        ("https://bitbucket.org/a/b", "/commits/c1", "/src/main/x%20y.yaml#lines-3"),
    ],
)
def test_links_have_the_form_of_their_host(url: str, commit: str, line: str) -> None:
    links = RepositoryLinks(url)
    assert links.commit("c1") == url + commit
    assert links.file("x y.yaml", 3) == url + line
    assert RepositoryLinks("").commit("c1") == RepositoryLinks("").file("x") == ""


MARKDOWN = [
    ("plain words", "<p>plain words</p>", "plain words"),
    ("**Key**: `order_id`", "<p><strong>Key</strong>: <code>order_id</code></p>", "Key : order_id"),
    ("* one\n* two", "<ul>\n<li>one</li>\n<li>two</li>\n</ul>", "one two"),
    ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>", "<script>alert(1)</script>"),
    ("![x](https://evil.example/a.png)", '<p>!<a href="https://evil.example/a.png" rel="noreferrer">x</a></p>', "! x"),
    ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>", "[x](javascript:alert(1))"),
    ("# Title", "<p># Title</p>", "# Title"),
    ("a\n\nb", "<p>a</p>\n<p>b</p>", "a b"),
    ("1 < 2 & 3", "<p>1 &lt; 2 &amp; 3</p>", "1 < 2 & 3"),
    ("", "", ""),
]


@pytest.mark.parametrize(("text", "html", "plain"), MARKDOWN)
def test_descriptions_are_a_safe_subset_of_markdown(text: str, html: str, plain: str) -> None:
    assert render_markdown(text).strip() == html
    assert plain_text(text).replace("Key:", "Key :") == plain


def test_months_of_no_events_are_none() -> None:
    assert group_months([]) == []


def test_a_waived_break_says_until_when(tmp_path: Path) -> None:
    shop = Scratch(tmp_path / "shop")

    def define(field: dict[str, Any]) -> str:
        return json.dumps({"type": "record", "name": "Order", "fields": [field]})

    shop.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: FORWARD}\n",
            "topics/sales.yaml": "namespace: shop/sales\nowner: team-sales\n",
            "topics/orders.yaml": write_declaration(),
            "topics/orders.avsc": define(COLOR),
        }
    )
    shop.flush()
    shop.git("checkout", "-q", "-f", "main")
    (shop.path / "topics/orders.avsc").write_text(define(COLORS))
    report = run_json(shop.path, "check", code=100)
    (finding,) = (one for one in report["findings"] if one["severity"] == "error")
    until = str(datetime.now(UTC).date() + timedelta(days=90))
    schemactl(shop.path, "waive", finding["fingerprint"], "--reason", "no reader is older", "--until", until)
    shop.git("add", "--all")
    shop.git("commit", "-q", "-m", "Blue, waived")
    schemactl(shop.path, "site", "--out", str(tmp_path / "site"))
    (month, *_) = json.loads((tmp_path / "site/changes.json").read_text())["months"]
    event = next(event for event in month["events"] if event.get("version") == 1)
    assert (event["verdict"], event["text"], event["waived_until"]) == ("waived", f"waived until {until}", until)
    assert event["note"] == "Waived: no reader is older (team-sales)."
    assert 'class="chip waived"' in (tmp_path / "site/topics/shop/sales/orders.html").read_text("utf-8")


def test_the_page_folds_older_problems(tmp_path: Path) -> None:
    shop = Scratch(tmp_path / "shop")
    clients = "clients: [{name: web, role: producer}, {name: billing, role: consumer, schema: 0}]\n"
    shop.commit(
        {
            "schemactl.yaml": 'version: 1\nroots: [topics]\ntargets: {prod: {registry: "sqlite:p.db"}}\n',
            "topics/orders.yaml": write_declaration(more=clients),
            "topics/orders.avsc": approved.record(ID).schema.decode(),
        }
    )
    pages = []
    for fields in ([TOTAL], [TOTAL, NOTE]):
        shop.commit({"topics/orders.avsc": approved.record(*fields).schema.decode()})
        shop.flush()
        schemactl(shop.path, "site", "--out", str(tmp_path / "site"))
        pages.append((tmp_path / "site/topics/shop/sales/orders.html").read_text(encoding="utf-8"))
    heading = ">billing cannot read what web writes</h2>"
    assert heading in pages[0].partition("<section class=alarm aria-labelledby=alarm>")[2]
    assert "older problem" not in pages[0]
    assert heading in pages[1].partition("<details class=older><summary>1 older problem: billing</summary>")[2]
    assert "aria-labelledby=alarm" not in pages[1]
