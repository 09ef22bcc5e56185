"""`TOPIC@work`, `TOPIC@REF`, `diff FROM..TO` and `changelog` use the same names of states and list the same changes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from command import Printed, run_json, schemactl
from consumers import markdown_faults
from scratch import Scratch, record, write_declaration

SCHEMA = Path(__file__).parent.parent.parent / "schemas/revision.schema.json"
HOSTILE = "[x](http://evil) <b>@ada</b> `\n::error::y"
MISSING = "READER_FIELD_MISSING_DEFAULT_VALUE"
ORDERS = "persistent://shop/sales/orders"


@pytest.fixture(scope="module")
def tagged_shop(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Two tags, with everything between them that can change; a branch; and a working tree that goes on."""
    new_shop = Scratch(tmp_path_factory.mktemp("states") / "shop")
    new_shop.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\napproved: main\n",
            "topics/ns.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
            "topics/orders.yaml": write_declaration(),
            "topics/orders.avsc": record("id", amount=1),
            "topics/refunds.yaml": write_declaration("shop/sales/refund", "refunds.avsc"),
            "topics/refunds.avsc": record("id", name="Refund"),
            "topics/old.yaml": "topic: shop/sales/old\nschema: {type: STRING}\n",
        },
        "first",
    )
    new_shop.git("tag", "v1")
    new_shop.commit(
        {"topics/orders.avsc": record("id", amount=1, count=0)}, "Count the orders", branch="feature", start=1
    )
    renamed = record("id").replace("}]}", '}, {"name": "total", "type": "long", "default": 1, "aliases": ["amount"]}]}')
    new_shop.commit({"topics/orders.avsc": renamed}, HOSTILE, start=1)
    new_shop.commit(
        {"topics/orders.avsc": renamed.replace('"total", "type": "long", "default": 1', '"total", "type": "string"')},
        "Say it in words",
    )
    new_shop.commit(
        {
            "topics/refunds.yaml": write_declaration(
                "shop/sales/refunds", "refunds.avsc", "renamed_from: shop/sales/refund\n"
            ),
            "topics/refunds.avsc": record("id", name="Refund", doc="Money <i>back</i>."),
            "topics/old.yaml": None,
            "topics/ns.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL\nowner: team @sales\n",
        },
        "Tidy up",
    )
    new_shop.git("tag", "v2")
    new_shop.write(
        {
            "topics/orders.avsc": record("id", "note"),
            "topics/new.yaml": "topic: shop/sales/new\nschema: {type: INT64}\n",
        }
    )
    return new_shop


def run_failing(shop: Scratch, *arguments: str) -> str:
    return schemactl(shop, *arguments, code=64).err


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("orders@work", record("id", "note"), "in the working tree, not approved yet, AVRO"),
        ("orders@v1", record("id", amount=1), "at v1, version 0 ("),
        ("orders@feature", record("id", amount=1, count=0), "at feature, not approved yet"),
        ("orders@main~3", record("id", amount=1), "at main~3, version 0 ("),
    ],
)
def test_show_prints_the_definition_of_any_state(tagged_shop: Scratch, name: str, text: str, words: str) -> None:
    printed = schemactl(tagged_shop, "show", name)
    assert printed.out == text + "\n"
    assert words in printed.err
    assert run_json(tagged_shop, "show", name)["state"] == name.partition("@")[2]


def test_show_names_a_missing_topic_or_revision(tagged_shop: Scratch) -> None:
    assert "has no schema at work" in schemactl(tagged_shop, "show", "old@work", code=(1, 64)).err
    assert "unknown topic 'refunds' in v1" in run_failing(tagged_shop, "show", "refunds@v1")
    assert "or a ref, found 'v9': the approved history has 0 to 2" in run_failing(tagged_shop, "show", "orders@v9")


def test_diff_takes_any_two_states_and_the_working_tree_for_the_one_left_out(tagged_shop: Scratch) -> None:
    def list_fields(*arguments: str) -> list[str]:
        return [f"{change['sign']} {change['what']}" for change in run_json(tagged_shop, "diff", *arguments)["fields"]]

    assert list_fields("orders") == ["- Order.total: string", "+ Order.note: string"]
    assert list_fields("orders@v1") == ["- Order.amount: int = 1", "+ Order.note: string"]
    assert list_fields("orders@v1", "orders@feature") == ["+ Order.count: int = 0"] == list_fields("orders@v1..feature")
    assert list_fields("orders@0", "orders@1") == ["~ Order.total: int = 1 -> long = 1, was Order.amount"]
    assert list_fields("new") == ["+ : INT64"]
    assert schemactl(tagged_shop, "diff", "orders", "--detailed-exitcode", code=2).out.splitlines()[-1].startswith("  ")


def test_diff_of_all_topics_shows_the_changes_of_the_working_tree(tagged_shop: Scratch) -> None:
    out = schemactl(tagged_shop, "diff").out
    assert out.splitlines()[2:] == [
        "topic persistent://shop/sales/new",
        "  + a new topic",
        "  + v0 INT64: not approved yet",
        "",
        f"topic {ORDERS}",
        "  + v3 AVRO: not approved yet",
        "      - Order.total: string",
        "      + Order.note: string",
        f"      ! {MISSING}, with version 2: Order.note is new and has no default; messages of version 2 do not carry it, and reading one throws.",
        f"      ! {MISSING}, with version 2: Order.total is gone, but readers of version 2 need it and have no default for it: they throw on every new message.",
        "",
        "2 new versions (1 breaking), 2 changed topics.",
    ]
    assert schemactl(tagged_shop, "diff", "--topic", "new", "--detailed-exitcode", code=2).out.count("topic ") == 1
    assert "no topic of the two states matches" in run_failing(tagged_shop, "diff", "--topic", "nothing")


def test_diff_between_commits_has_all_facts(tagged_shop: Scratch) -> None:
    revision = run_json(tagged_shop, "diff", "v1..v2")
    subjects = {subject.get("topic") or subject["namespace"]: subject for subject in revision["subjects"]}
    assert list(subjects) == ["shop/sales", "persistent://shop/sales/old", ORDERS, "persistent://shop/sales/refunds"]
    assert (revision["commits"], revision["authors"], revision["versions"], revision["breaking"]) == (3, ["Ada"], 3, 1)
    space = subjects["shop/sales"]
    assert space["changes"][0]["after"] == {"schema_compatibility_strategy": "FULL"}
    assert space["metadata"] == [{"key": "owner", "before": None, "after": "team @sales"}]
    assert subjects["persistent://shop/sales/old"]["deleted"]
    assert subjects["persistent://shop/sales/old"]["since"]["author"] == "Ada"
    first, second = subjects[ORDERS]["versions"]
    assert first["parts"] == [
        {"kind": "renamed", "part": "Order.total", "before": "int = 1", "after": "long = 1", "former": "Order.amount"}
    ]
    assert [breakage["rule"] for breakage in second["breaks"]] == ["TYPE_MISMATCH", "TYPE_MISMATCH"]
    assert (first["breaking"], second["breaking"]) == (False, True)
    refunds = subjects["persistent://shop/sales/refunds"]
    assert refunds["renamed_from"] == "persistent://shop/sales/refund"
    assert [part["kind"] for part in refunds["versions"][0]["parts"]] == ["documented"]
    assert run_json(tagged_shop, "changelog", "v1..v2") == revision
    [alone] = run_json(tagged_shop, "diff", "v1..v2", "--namespace", "shop/sales", "--topic", "refunds")["subjects"][1:]
    assert alone == refunds
    jsonschema.validate(revision, json.loads(SCHEMA.read_text()))


def test_three_dots_start_from_the_merge_base_and_an_end_left_out_is_head(tagged_shop: Scratch) -> None:
    assert [subject["topic"] for subject in run_json(tagged_shop, "diff", "v2...feature")["subjects"]] == [ORDERS]
    back = run_json(tagged_shop, "diff", "v2..feature")
    assert {change["change"] for subject in back["subjects"] for change in subject["changes"]} >= {
        "versions gone",
        "topic added",
    }
    assert run_json(tagged_shop, "diff", "v1..")["subjects"] == run_json(tagged_shop, "diff", "v1..HEAD")["subjects"]
    assert run_json(tagged_shop, "diff", "..v1")["before"]["name"] == "HEAD"
    assert run_json(tagged_shop, "diff", "v2..work")["subjects"] == run_json(tagged_shop, "diff")["subjects"]
    assert "no ref or commit 'v7'" in run_failing(tagged_shop, "diff", "v7..v2")
    assert "no ref or commit 'v7'" in run_failing(tagged_shop, "diff", "v7...v2")
    assert "expected FROM..TO" in run_failing(tagged_shop, "changelog", "v1")


def test_changelog_quotes_foreign_text_without_markup(tagged_shop: Scratch) -> None:
    text = schemactl(tagged_shop, "changelog", "v1..v2").out
    ours = {"heading_open", "bullet_list_open"}
    assert [fault for fault in markdown_faults(text) if fault not in ours] == []
    lines = text.splitlines()
    assert lines[0] == "# Schemas: v1 to v2"
    assert lines.index("## Breaking") < lines.index("## shop/sales")
    assert "### refunds, was shop/sales/refund" in lines
    assert (
        "  * renamed <code>Order.amount</code> to <code>Order.total</code>: <code>int = 1</code>, now <code>long = 1</code>"
        in lines
    )
    assert any(line.startswith("* deleted: Tidy up (Ada, 2023-11-14, <code>") for line in lines)


def test_waiver_is_listed_below_its_breakage(tmp_path: Path) -> None:
    repository, until = Scratch(tmp_path / "w"), datetime.now(UTC).date() + timedelta(days=30)
    repository.commit(
        {
            "schemactl.yaml": "version: 1\nroots: [topics]\napproved: main\n",
            "topics/o.yaml": write_declaration(),
            "topics/orders.avsc": record("id"),
        }
    )
    repository.git("tag", "v1")
    repository.git("checkout", "-q", "-b", "work")
    repository.write({"topics/orders.avsc": record("id", "note")})
    report = run_json(repository, "check", code=100)
    for fingerprint in {finding["fingerprint"] for finding in report["findings"] if finding["fingerprint"]}:
        # Waived with its cause, it is waived already.
        schemactl(
            repository, "waive", fingerprint, "--reason", "agreed", "--owner", "ada", "--until", str(until), code=(0, 1)
        )
    repository.git("add", ".")
    repository.git("commit", "-qm", "Break")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--ff-only", "work")
    [subject] = run_json(repository, "diff", "v1..main")["subjects"]
    assert {breakage["waiver"]["owner"] for breakage in subject["versions"][0]["breaks"]} == {"ada"}
    assert f"waived by ada until {until}: agreed" in schemactl(repository, "changelog", "v1..main").out


def test_a_bare_repository_has_no_working_tree_to_compare_with(
    tagged_shop: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagged_shop.git("clone", "-q", "--bare", str(tagged_shop.path), str(tmp_path / "b"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "b"))
    for selection in (["orders"], [], ["v1..work"]):
        printed: Printed = schemactl(tmp_path / "b", "diff", *selection, code=64)
        assert "this repository is bare: there is no working tree" in printed.err
    assert "Order.count" in schemactl(tmp_path / "b", "diff", "orders@v1", "orders@feature").out
