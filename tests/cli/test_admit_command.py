"""`schemactl admit`: 720 recorded connects, from the empty topic on, and questions about the example's topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shop
from corpora import read_rows
from scratch import Scratch

from schemactl.broker.connect import read_connect_rules

pytestmark = pytest.mark.slow

REQUEST_KEYS = ("id", "role", "client_schema", "policies", "topic_state")


def admit_lines(lines: str, code: int = 0) -> list[dict[str, Any]]:
    printed = shop.run(Path(), "admit", "--jsonl", stdin=lines, code=code)
    assert printed.err == ""
    return [json.loads(line) for line in printed.out.splitlines()]


def test_a_client_is_let_in_and_leaves_what_it_left_on_the_live_broker() -> None:
    recorded = read_rows("connect_public")
    answers = admit_lines("".join(json.dumps({key: row[key] for key in REQUEST_KEYS}) + "\n" for row in recorded))
    for answer, row in zip(answers, recorded, strict=True):
        expected = {key: row[key] for key in ("id", "allowed", "live_after")}
        assert answer == {**expected, "reason": answer["reason"]}
        assert (answer["reason"] is None) == row["allowed"], row["id"]


GOOD: dict[str, Any] = {
    "id": 1,
    "role": "producer",
    "client_schema": {"type": "STRING"},
    "policies": {"broker_strategy": "FULL"},
    "topic_state": {"steps": []},
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"role": "owner"}, "`role` is 'owner'"),
        ({"policies": None}, "`policies` is not an object"),
        ({"policies": {"broker_strategy": "NOPE"}}, "`policies.broker_strategy` is 'NOPE'"),
        ({"client_schema": {"type": "avro"}}, "`client_schema.type` is 'avro'"),
        ({"client_schema": {"type": "AVRO", "base64": "?"}}, "`client_schema.base64` is not base64"),
        ({"client_schema": {"type": "AVRO", "text": 5}}, "`client_schema.text` is not a string"),
        ({"topic_state": {"steps": [{"op": "dance"}]}}, "`topic_state.steps[0].op` is 'dance'"),
        ({"topic_state": {"steps": 5}}, "`topic_state.steps` is not a list"),
        ({"topic_state": {"domain": "queue"}}, "`topic_state.domain`"),
        ({"topic_state": {"open_producers": -1}}, "`topic_state.open_producers` is -1"),
        (
            {"topic_state": {"steps": [{"op": "upload", "schema": {"type": "AVRO", "text": "nope"}}]}},
            "`topic_state.steps[0]` is rejected: Invalid schema definition data",
        ),
    ],
)
def test_a_line_that_cannot_be_read_says_where(changed: dict[str, Any], message: str) -> None:
    answers = admit_lines(json.dumps({**GOOD, **changed}) + "\nno json\n" + json.dumps(GOOD) + "\n", code=1)
    assert message in answers[0]["error"]
    assert "not JSON" in answers[1]["error"]
    assert answers[2] == {"id": 1, "allowed": True, "live_after": [{"type": "STRING", "version": 0}], "reason": None}


@pytest.fixture(scope="module")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop.make(tmp_path_factory.mktemp("admit"))


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (("producer", "orders"), 0, ("accepted", "the definition in force (AVRO)", "carry version 5")),
        (("producer", "orders@2"), 0, ("accepted", "version 2 (AVRO)", "carry version 2")),
        (("consumer", "orders@0"), 100, ("rejected", "Unable to read schema", "schemactl diff")),
        (("producer", "orders", "--without-schema"), 100, ("rejected", "without a schema", "validation")),
        (("consumer", "orders", "--without-schema"), 0, ("accepted",)),
        (("reader", "orders", "--auto"), 0, ("accepted",)),
        (("producer", "orders", "--auto"), 0, ("carry version 5",)),
        (
            ("consumer", "orders", "--type", "STRING"),
            100,
            ("exists schema type AVRO, new schema type STRING", "give the client a schema of type AVRO"),
        ),
        (("producer", "orders", "--file", "namespaces/sales/payments.yaml"), 100, ("auto updating is disabled",)),
        # Nothing has been applied: the registry knows neither topic nor schema.
        (("producer", "orders", "--target", "local"), 0, ("registers it as version 0",)),
        (("consumer", "orders", "--target", "local", "--producers", "1"), 100, ("empty(BYTES)", "schemactl apply")),
    ],
)
def test_a_question_is_answered_in_words(
    shop_folder: Path, arguments: tuple[str, ...], code: int, texts: tuple[str, ...]
) -> None:
    done = shop.run(shop_folder, "admit", *arguments, code=code)
    assert done.err == ""
    for text in texts:
        assert text in done.out
    assert len(done.out.splitlines()) <= 6
    facts = json.loads(shop.run(shop_folder, "admit", *arguments, "--format", "json", code=code).out)
    assert facts["allowed"] == (code == 0)
    assert facts["format_version"] == 1


def test_an_auto_client_that_refuses_the_schema_itself_is_quoted(tmp_path: Path) -> None:
    definition = '{"type": "record", "name": "R", "fields": []}'
    files = {
        "schemactl.yaml": "version: 1\nroots: [schemas]\n",
        "schemas/click.yaml": f"topic: web/app/click\nschema: {{type: PROTOBUF, definition: {definition}}}\n",
    }
    repository = Scratch(tmp_path / "web")
    repository.commit(files)
    repository.flush()
    done = shop.run(repository.path, "admit", "consumer", "click", "--auto", code=100)
    assert done.out == (
        "rejected (J1): a consumer of persistent://web/app/click with the topic's own schema, whatever its type\n"
        "  Java's client itself throws IllegalArgumentException: Retrieve schema instance from schema info for type 'PROTOBUF' is not supported yet\n"
        "  Fix: give the client the topic's schema by a separate class; a consumer may take bytes instead (Schema.BYTES)\n"
    )


CLIENTS = """\
clients:
  - {name: shop, team: web, role: producer, schema: 0..1}
  - {name: billing, role: consumer, schema: 0, targets: [local]}
  - {name: audit, role: reader, schema: audit.avsc, targets: [local]}
  - {name: mail, role: consumer}
"""


def test_a_matrix_has_every_declared_client_and_every_version(tmp_path: Path) -> None:
    def make_order(*fields: str) -> str:
        return f'{{"type": "record", "name": "Order", "fields": [{", ".join(fields)}]}}'

    repository = Scratch(tmp_path / "r")
    number, text = '{"name": "id", "type": "int"}', '{"name": "note", "type": "string"}'
    files = {"topics/audit.avsc": make_order(number), "topics/orders.avsc": make_order(text)}
    project = "version: 1\nroots: [topics]\ntargets: {local: {registry: 'sqlite:here.db'}, other: {registry: 'sqlite:there.db'}}\n"
    strategy = "schema_compatibility_strategy: BACKWARD\n"
    declared = f"topic: shop/sales/orders\n{strategy}schema: {{type: AVRO, definition: orders.avsc}}\n"
    repository.commit({"schemactl.yaml": project, "topics/orders.yaml": declared, **files})
    repository.commit({"topics/orders.avsc": make_order(), "topics/orders.yaml": declared + CLIENTS})
    repository.flush()
    printed = shop.run(repository.path, "admit", "--all", "orders", code=100).out
    assert [line.split() for line in printed.splitlines()[2:14]] == [
        ["client", "role", "built", "with", "answer"],
        ["shop", "(team", "web)", "producer", "0", "accepted", "(P4)"],
        ["shop", "(team", "web)", "producer", "1", "accepted", "(P4)"],
        ["billing", "consumer", "0", "rejected", "(C7)"],
        ["audit", "reader", "audit.avsc", "rejected", "(C7)"],
        ["mail", "consumer", "1", "accepted", "(C6)"],
        [],
        ["built", "with", "producer", "consumer", "or", "reader"],
        ["0", "accepted", "(P4)", "rejected", "(C7)"],
        ["1", "accepted", "(P4)", "accepted", "(C6)"],
        ["no", "schema", "accepted", "(P2)", "accepted", "(C1)"],
        ["the", "topic's", "own", "accepted", "(P4)", "accepted", "(C2)"],
    ]
    assert (
        "  C7  a consumer or reader with a schema that cannot read the versions that the strategy requires: rejected"
        in printed
    )
    report = json.loads(shop.run(repository.path, "admit", "--all", "orders", "--format", "json", code=100).out)
    assert {decision["row"] for decision in report["decisions"]} == report["rules"].keys()
    # Nothing is applied to the other target, and billing and audit do not run there.
    elsewhere = shop.run(repository.path, "admit", "--all", "orders", "--target", "other").out
    assert "billing" not in elsewhere
    assert "registers 0 (P5)" in elsewhere


def test_every_row_of_the_page_is_a_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "connects.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    assert [(row, rule.when) for row, rule in read_connect_rules().items()] == [
        (cells[0].removeprefix("| "), cells[1]) for cells in rows
    ]


def test_asking_changes_no_registry(shop_folder: Path) -> None:
    shop.run(shop_folder, "admit", "producer", "orders", "--target", "local")
    assert not (shop_folder / ".schemactl" / "registry.db").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("producer",),
        ("owner", "orders"),
        ("producer", "orders", "--auto", "--without-schema"),
        ("producer", "orders", "--file", "nowhere.avsc"),
        ("producer", "orders", "--type", "AVRO"),
        ("producer", "no-such-topic"),
        ("producer", "orders", "--target", "nowhere"),
        ("producer", "orders", "--jsonl"),
        ("producer", "orders", "--consumers", "-1"),
    ],
)
def test_wrong_usage_says_why(shop_folder: Path, arguments: tuple[str, ...]) -> None:
    done = shop.run(shop_folder, "admit", *arguments, code=64)
    assert done.out == ""
    assert done.err.strip()
