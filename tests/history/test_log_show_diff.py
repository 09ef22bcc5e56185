"""The commands that show the approved history: log, show and diff."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from command import run_json, schemactl
from scratch import Scratch, record, write_declaration

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\n"


class Shop(Scratch):
    """A repository whose history is shown by commands."""

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command, and return its exit code, standard output and standard error."""
        result = schemactl(self, *arguments, code=(0, 1, 64))
        return result.code, result.out, result.err

    def run_json(self, *arguments: str) -> Any:
        """Run a command, and return the JSON that it prints."""
        return run_json(self, *arguments)

    def run_failing(self, *arguments: str) -> tuple[int, str]:
        """Run a command that prints no result, and return its exit code and message."""
        code, out, err = self.run(*arguments)
        assert out == ""
        return code, err


OF_ORDERS = {
    "owner": "team-sales",
    "description": "",
    "labels": {},
    "links": {},
    "deprecated": {"remove_after": "2028-01-31"},
}


@pytest.fixture(scope="module")
def orders_shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Orders with three versions, of which the middle one is in force, a deleted topic, and a topic without schema."""
    shop = Shop(tmp_path_factory.mktemp("history") / "shop")
    shop.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/orders.yaml": write_declaration(
                more="  properties: {owner: orders-team}\ndeprecated: {remove_after: 2028-01-31}\n"
            ),
            "topics/orders.avsc": record("id", doc="First."),
            "topics/refunds.yaml": write_declaration("shop/sales/refunds", "refunds.avsc"),
            "topics/refunds.avsc": record("id", name="Refund"),
            "topics/payments.yaml": write_declaration("shop/billing/payments", "refunds.avsc"),
            "topics/pings.yaml": "topic: shop/ops/pings\n",
            "topics/doors.yaml": "topic: shop/ops/doors\nschema: {type: BOOLEAN}\n",
            "topics/sales.yaml": "namespace: shop/sales\nowner: team-sales\ndescription: |-\n  What is\n  sold.\n",
        },
        "Declare the topics",
    )
    shop.commit({"topics/orders.avsc": record("id", count=1)}, "Count the orders")
    shop.commit({"topics/orders.avsc": record("id", "customer", count=1)}, "Know the customer")
    shop.commit({"topics/orders.avsc": record("id", count=1, indent=2)}, "Forget the customer")
    shop.commit({"topics/payments.yaml": None}, "Bill no more")
    return shop


@pytest.fixture
def empty_shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "r")


def test_log_lists_versions_newest_first_and_says_which_is_in_force(orders_shop: Shop) -> None:
    code, out, _ = orders_shop.run("log", "orders")
    assert code == 0
    short = {mark: orders_shop.id(mark)[:9] for mark in range(1, 5)}
    assert out.splitlines() == [
        "persistent://shop/sales/orders",
        "  owner: team-sales",
        "  deprecated: remove_after=2028-01-31",
        f"  version 1 is in force again since {short[4]} (2023-11-14: Forget the customer); the latest version in a registry stays 2",
        "  VERSION       TYPE  COMMIT     DAY         SUBJECT",
        f"  2             AVRO  {short[3]}  2023-11-14  Know the customer",
        f"  1 (in force)  AVRO  {short[2]}  2023-11-14  Count the orders",
        f"  0             AVRO  {short[1]}  2023-11-14  Declare the topics",
    ]


def test_log_says_that_a_topic_is_gone_or_has_no_schema(orders_shop: Shop) -> None:
    _, out, _ = orders_shop.run("log", "payments")
    assert f"no longer declared since {orders_shop.id(5)[:9]} (2023-11-14: Bill no more)" in out
    assert "(in force)" not in out
    _, out, _ = orders_shop.run("log", "pings")
    assert out == "persistent://shop/ops/pings\n  declares no schema\n"


def test_log_of_all_topics_gives_other_programs_the_whole_correspondence(orders_shop: Shop) -> None:
    result = orders_shop.run_json("log", "--all")
    assert (result["format_version"], result["ref"], result["tip"]["id"]) == (1, "main", orders_shop.id(5))
    topics = {topic["topic"]: topic for topic in result["topics"]}
    assert list(topics) == sorted(topics)
    assert len(topics) == 5
    orders = topics["persistent://shop/sales/orders"]
    assert (orders["current"], orders["latest"], orders["deleted"]) == (1, 2, False)
    assert [version["commit"]["id"] for version in orders["versions"]] == [orders_shop.id(mark) for mark in (1, 2, 3)]
    assert [version["version_bytes"] for version in orders["versions"]] == ["0" * 15 + str(n) for n in range(3)]
    assert topics["persistent://shop/billing/payments"]["deleted"]


@pytest.mark.parametrize(
    "version_bytes",
    ["0000000000000002", "0x0000000000000002", "00 00 00 00 00 00 00 02", "0000000000000002" + "00" * 56],
)
def test_log_says_which_commit_wrote_a_message(orders_shop: Shop, version_bytes: str) -> None:
    _, out, _ = orders_shop.run("log", "orders", "--version-bytes", version_bytes)
    assert (
        out == f"persistent://shop/sales/orders: version 2 ({orders_shop.id(3)[:9]}, 2023-11-14): Know the customer\n"
    )
    result = orders_shop.run_json("log", "orders", "--version-bytes", version_bytes)
    assert (result["version"], result["commit"]["id"]) == (2, orders_shop.id(3))


VERSIONS = "the approved history has 0 to 2"
REFUSED: dict[str, tuple[int, str]] = {
    "log orders --version-bytes 0000000000000007": (1, "has no version 7 in the approved history: it has 0 to 2"),
    "log orders --version-bytes ffffffffffffffff": (1, "has no version -1"),
    "log orders --version-bytes ''": (64, "written without a schema"),
    "log orders --version-bytes 00": (64, "expected 8 bytes, found 1"),
    "log orders --version-bytes zz": (64, "expected 16 hex digits"),
    "log orders@1 --version-bytes 0000000000000000": (64, "--version-bytes"),
    "log": (64, "name one TOPIC, or add --all"),
    "log orders --all": (64, "--all"),
    "log --all --version-bytes 00": (64, "--version-bytes"),
    "log ordrs": (64, "did you mean persistent://shop/sales/orders or "),
    "show shop/biling/payments": (64, "did you mean persistent://shop/billing/payments"),
    "show xyz": (64, "in the approved history; known: persistent://shop/billing/payments"),
    **{
        f"{command} orders@{number}": (
            64,
            f"orders@{number}: expected the number of a version after the @, `work`, or a ref, found {number!r}: {VERSIONS}",
        )
        for command in ("show", "diff")
        for number in ("x", "", "-1", "1.0", "latest")
    },
    "show pings": (1, "schemactl: persistent://shop/ops/pings has never had a schema\n"),
    "show orders@3": (64, f"has no version 3: {VERSIONS}"),
    "show pings@0": (64, "has none"),
    "diff orders pings": (64, "has never had a schema"),
}
"""Commands that name no version of a topic, with their exit code and a part of the message."""


@pytest.mark.parametrize(
    ("command", "code", "words"), [(name, *refused) for name, refused in REFUSED.items()], ids=REFUSED
)
def test_a_command_that_names_no_version_says_what_there_is(
    orders_shop: Shop, command: str, code: int, words: str
) -> None:
    exit_code, message = orders_shop.run_failing(*shlex.split(command))
    assert (exit_code, words in message) == (code, True), message


@pytest.mark.parametrize("name", ["orders", "sales/orders", "shop/sales/orders", "persistent://shop/sales/orders"])
def test_a_topic_is_named_by_as_much_as_is_unambiguous(orders_shop: Shop, name: str) -> None:
    assert orders_shop.run_json("show", name)["topic"] == "persistent://shop/sales/orders"
    assert orders_shop.run_json("show", f"{name}@0")["version"] == 0


def test_one_of_gits_versions_is_named_after_an_at(orders_shop: Shop) -> None:
    assert orders_shop.run_json("log", "orders@1") == orders_shop.run_json(
        "log", "orders", "--version-bytes", "0000000000000001"
    )


def test_an_ambiguous_topic_gets_the_candidates(empty_shop: Shop) -> None:
    two = "topic: a/b/x\nschema: {type: STRING}\n---\ntopic: a/c/x\nschema: {type: STRING}\n"
    at = "---\ntopic: a/c/x@1\nschema: {type: INT64}\n"
    empty_shop.commit({"schemactl.yaml": PROJECT, "topics/t.yaml": two + at})
    code, message = empty_shop.run_failing("show", "x")
    assert code == 64
    assert "persistent://a/b/x, persistent://a/c/x" in message
    assert empty_shop.run_json("show", "x@1")["topic"] == "persistent://a/c/x@1"
    assert empty_shop.run_json("show", "x@1@0")["version"] == 0


def test_in_an_empty_repository_nothing_is_approved(empty_shop: Shop) -> None:
    empty_shop.write({"schemactl.yaml": PROJECT})
    assert "does not declare any topic yet" in empty_shop.run_failing("log", "orders")[1]
    assert empty_shop.run_json("log", "--all") == {
        "format_version": 1,
        "ref": "main",
        "tip": None,
        "topics": [],
        "notes": [],
        "repaired": [],
    }


SHOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "show orders@0": (
        record("id", doc="First.") + "\n",
        ("version 0 ({first}, 2023-11-14), AVRO", "reads versions 0-2", "is read by versions 0-1"),
    ),
    "show orders": (record("id", count=1, indent=2) + "\n", ("in force, version 1",)),
    "show payments": (record("id", name="Refund") + "\n", ("no longer declared; the last was version 0",)),
    "show doors": ("", ("BOOLEAN (the type alone, without a definition)",)),
}
"""Commands, the definition that they print, and parts of the description on standard error."""


@pytest.mark.parametrize(
    ("command", "definition", "words"), [(command, *output) for command, output in SHOWN.items()], ids=SHOWN
)
def test_show_prints_a_definition_and_describes_it(
    orders_shop: Shop, command: str, definition: str, words: tuple[str, ...]
) -> None:
    code, out, err = orders_shop.run(*command.split())
    assert (code, out) == (0, definition)
    assert [word for word in words if word.format(first=orders_shop.id(1)[:9]) not in err] == []


def test_show_quietly_prints_the_definition_alone(orders_shop: Shop) -> None:
    assert orders_shop.run("--quiet", "show", "orders@1") == (0, record("id", count=1) + "\n", "")


def test_show_gives_other_programs_all_facts(orders_shop: Shop) -> None:
    assert orders_shop.run_json("show", "orders@2") == {
        "format_version": 1,
        "topic": "persistent://shop/sales/orders",
        **OF_ORDERS,
        "kind": None,
        "kinds": [],
        "state": None,
        "version": 2,
        "in_force": 1,
        "latest": 2,
        "deleted": False,
        "type": "AVRO",
        "schema": record("id", "customer", count=1),
        "properties": {"owner": "orders-team"},
        "source": "topics/orders.avsc:1:1",
        "commit": {"id": orders_shop.id(3), "time_s": 1_700_000_003, "subject": "Know the customer"},
        "reads": [2],
        "read_by": [0, 1, 2],
        "unreadable": [
            {
                "versions": [0, 1],
                "border": 1,
                "commit": {"id": orders_shop.id(2), "time_s": 1_700_000_002, "subject": "Count the orders"},
                "strict_readers_only": False,
                "reasons": [
                    {
                        "rule": "READER_FIELD_MISSING_DEFAULT_VALUE",
                        "pointer": "/fields/1",
                        "message": "customer",
                        "strict_only": False,
                        "told": "Order.customer is new and has no default; messages of version 1 do not carry it, and reading "
                        "one throws.",
                    }
                ],
            }
        ],
        "unread_by": [],
    }


def test_show_says_since_which_version_readers_cannot_read(empty_shop: Shop) -> None:
    project = "version: 1\nroots: [topics]\n"
    empty_shop.commit(
        {"schemactl.yaml": project, "topics/o.yaml": write_declaration(), "topics/orders.avsc": record("id")}
    )
    for subject, text in (
        ("count", record("id", count=1)),
        ("count in words", record("id", "count")),
        ("count again", record("id", count=2)),
        ("rename", record("id", count=3, name="Purchase")),
        ("no id", record(count=3, name="Purchase")),
    ):
        empty_shop.commit({"topics/orders.avsc": text}, subject)
    empty_shop.commit({"topics/o.yaml": "topic: shop/sales/orders\nschema: {type: STRING}\n"}, "text")
    ids = {number: empty_shop.id(number + 1)[:9] for number in range(7)}
    _, _, output = empty_shop.run("show", "orders@1")
    lines = [line for line in output.splitlines()[1:] if not line.startswith("    ")]
    assert lines == [
        "  reads versions 0-1, 3",
        f'  cannot read version 2 ({ids[2]}, 2023-11-14) "count in words"',
        f'  cannot read version 4 ({ids[4]}, 2023-11-14) "rename"; Java can, strict readers cannot',
        f'  cannot read versions 5-6, from version 5 ({ids[5]}, 2023-11-14) "no id"',
        "  is read by versions 0-1, 3",
        f'  cannot be read by version 2 ({ids[2]}, 2023-11-14) "count in words"',
        f'  cannot be read by versions 4-5, from version 4 ({ids[4]}, 2023-11-14) "rename"; Java can, strict readers cannot',
        f'  cannot be read by version 6 ({ids[6]}, 2023-11-14) "text"',
    ]
    assert [line.strip() for line in output.splitlines() if "Order.count" in line] == [
        "TYPE_MISMATCH: Order.count: string is written, readers of version 1 expect int, and Avro promotes neither to the other.",
        "TYPE_MISMATCH: Order.count: int is written, the new schema expects string, and Avro promotes neither to the other.",
    ]
    assert "    READER_FIELD_MISSING_DEFAULT_VALUE: " in output
    result = empty_shop.run_json("show", "orders@6")
    assert (result["reads"], result["read_by"]) == ([6], [6])
    assert [(gap["versions"], gap["border"]) for gap in result["unreadable"]] == [([0, 1, 2, 3, 4, 5], 5)]
    assert result["unreadable"][0]["reasons"][0]["rule"] == "SCHEMA_TYPE_CHANGED"
    assert result["unreadable"][0]["commit"]["subject"] == "no id"


def test_show_tells_the_first_reasons_and_how_many_more_there_are(empty_shop: Shop) -> None:
    empty_shop.commit(
        {"schemactl.yaml": PROJECT, "topics/o.yaml": write_declaration(), "topics/orders.avsc": record("id")}
    )
    empty_shop.commit({"topics/orders.avsc": record(*(f"f{number}" for number in range(1_021)))})
    _, _, output = empty_shop.run("show", "orders@1")
    assert output.count("    READER_FIELD_MISSING_DEFAULT_VALUE: ") == 21
    assert "    and 1,001 reasons more: `--format json` has them all\n  is read by version 1\n" in output
    [gap] = empty_shop.run_json("show", "orders@1")["unreadable"]
    assert len(gap["reasons"]) == 1_021


def test_diff_of_two_versions_shows_text_fields_and_who_reads_whom(orders_shop: Shop) -> None:
    code, out, _ = orders_shop.run("diff", "orders@1", "orders@2")
    lines = out.splitlines()
    assert code == 0
    assert lines[:4] == [
        "persistent://shop/sales/orders",
        "",
        f"--- orders@1 ({orders_shop.id(2)[:9]}, 2023-11-14)",
        f"+++ orders@2 ({orders_shop.id(3)[:9]}, 2023-11-14)",
    ]
    assert '+      "name": "customer",' in lines
    fields = lines.index("Fields:")
    assert lines[fields : fields + 4] == ["Fields:", "  + Order.customer: string", "", "orders@2 reads orders@1: no."]
    assert lines[fields + 4].startswith("  READER_FIELD_MISSING_DEFAULT_VALUE: ")
    assert lines[-1] == "orders@1 reads orders@2: yes."


CUSTOMER = {"sign": "-", "what": "Order.customer: string"}
DIFFERENCES: dict[str, tuple[tuple[int, int], list[dict[str, str]], list[str], list[str]]] = {
    "diff orders": ((1, 1), [], [], []),
    "diff orders@0": ((0, 1), [{"sign": "+", "what": "Order.count: int = 1"}], [], []),
    "diff orders@2 orders": ((2, 1), [CUSTOMER], [], ["READER_FIELD_MISSING_DEFAULT_VALUE"]),
    "diff orders@1 orders@2": ((1, 2), [{**CUSTOMER, "sign": "+"}], ["READER_FIELD_MISSING_DEFAULT_VALUE"], []),
}
"""Commands, both versions, the changed fields, and the rules by which the new one cannot read the old one, and vice versa."""


@pytest.mark.parametrize(
    ("command", "versions", "fields", "forward", "backward"),
    [(name, *difference) for name, difference in DIFFERENCES.items()],
    ids=DIFFERENCES,
)
def test_diff_has_the_changed_fields_and_which_side_reads_the_other(
    orders_shop: Shop,
    command: str,
    versions: tuple[int, int],
    fields: list[dict[str, str]],
    forward: list[str],
    backward: list[str],
) -> None:
    document = orders_shop.run_json(*command.split())
    assert (document["old"]["version"], document["new"]["version"], document["fields"]) == (*versions, fields)
    assert [reason["rule"] for reason in document["new_reads_old"]] == forward
    assert [reason["rule"] for reason in document["old_reads_new"]] == backward


def test_diff_of_one_topic_goes_to_the_working_tree(orders_shop: Shop) -> None:
    document = orders_shop.run_json("diff", "orders")
    assert (document["new"]["state"], document["text"]) == ("work", [])
    assert orders_shop.run_json("diff", "orders@0")["new"]["label"].startswith("orders@work (version 1 (")
    assert orders_shop.run_json("diff", "orders@0..1") == orders_shop.run_json("diff", "orders@0", "orders@1")


def test_diff_of_an_equal_definition_says_so(orders_shop: Shop) -> None:
    _, out, _ = orders_shop.run("diff", "orders@1", "orders")
    assert "The text is the same." in out
    assert "No field differs." in out


def test_diff_of_two_types_names_both_directions(orders_shop: Shop) -> None:
    _, out, _ = orders_shop.run("diff", "orders", "doors")
    assert "persistent://shop/sales/orders -> persistent://shop/ops/doors" in out
    assert "  ~ type: AVRO -> BOOLEAN" in out
    assert out.count("SCHEMA_TYPE_CHANGED") == 2


def test_diff_and_show_say_where_a_reader_gets_other_values(empty_shop: Shop) -> None:
    def make_event(unit: str) -> str:
        type_ = {"type": "long", "logicalType": f"timestamp-{unit}"}
        return json.dumps({"type": "record", "name": "Event", "fields": [{"name": "at", "type": type_}]})

    empty_shop.commit(
        {"schemactl.yaml": PROJECT, "topics/o.yaml": write_declaration(), "topics/orders.avsc": make_event("millis")}
    )
    empty_shop.commit({"topics/orders.avsc": make_event("micros")})
    _, out, _ = empty_shop.run("diff", "orders@0", "orders@1")
    assert "orders@1 reads orders@0: as other values.\n  LOGICAL_TYPE_CHANGED: Event.at is written as " in out
    result = empty_shop.run_json("diff", "orders@0", "orders@1")
    assert result["new_reads_old"] == []
    assert [reason["rule"] for reason in result["new_misreads_old"]] == ["LOGICAL_TYPE_CHANGED"]
    assert empty_shop.run_json("show", "orders@1")["reads"] == [1]


def test_colors_appear_only_on_request(orders_shop: Shop) -> None:
    assert "\x1b[" not in orders_shop.run("diff", "orders@0")[1]
    assert "\x1b[32m+" in orders_shop.run("--color", "always", "diff", "orders@0")[1]


def test_long_definitions_are_compared_in_time(empty_shop: Shop) -> None:
    numbers: Any = {f"n{number}": number for number in range(6_000)}
    empty_shop.commit({"schemactl.yaml": PROJECT, "topics/o.yaml": write_declaration(definition="o.avsc")})
    empty_shop.commit({"topics/o.avsc": record("id", **numbers)})
    empty_shop.commit({"topics/o.avsc": record("id", **numbers | {"n7": 70, "n9": 90})})
    difference = empty_shop.run_json("diff", "orders@0", "orders@1")
    header, *rest = difference["text"][2:]
    assert header.startswith("@@ -")
    removed = [line[1:].strip() for line in rest if line.startswith("-")]
    added = [line[1:].strip() for line in rest if line.startswith("+")]
    assert len(removed) == len(added) < 20
    assert [pair for pair in zip(removed, added, strict=True) if pair[0] != pair[1]] == [
        ('"default": 7', '"default": 70'),
        ('"default": 9', '"default": 90'),
    ]


def test_every_command_names_once_what_was_approved_and_cannot_be_read(empty_shop: Shop) -> None:
    empty_shop.commit(
        {
            "schemactl.yaml": PROJECT + "targets: {local: {registry: 'sqlite:x.db'}}\n",
            "topics/orders.yaml": write_declaration(),
            "topics/orders.avsc": record("id"),
        }
    )
    empty_shop.commit({"topics/orders.avsc": "{"})
    for command in (
        ("log", "orders"),
        ("show", "orders"),
        ("diff", "orders@0", "orders"),
        ("list",),
        ("targets",),
        ("export", "avro"),
        ("clients",),
    ):
        code, _, err = empty_shop.run(*command)
        assert code == 0
        assert err.count("note: persistent://shop/sales/orders: ") == 1, (command, err)
        assert err.count(" added no version: topics/orders.avsc:1:") == 1


@pytest.fixture(scope="module")
def unreadable_shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Declare one topic that can be read, and two and a file that cannot. No test changes it."""
    shop = Shop(tmp_path_factory.mktemp("unreadable") / "shop")
    files = {
        "schemactl.yaml": PROJECT + "targets: {local: {registry: 'sqlite:x.db'}}\n",
        "topics/file.yaml": "topic: [",
    }
    for name, definition in (("good", record("id")), ("broken1", "{"), ("broken2", '"nothing"')):
        files[f"topics/{name}.yaml"] = write_declaration(f"shop/sales/{name}", f"{name}.avsc")
        files[f"topics/{name}.avsc"] = definition
    shop.commit(files)
    return shop


@pytest.mark.parametrize(
    "command",
    [
        ("log", "good"),
        ("log", "good@0"),
        ("log", "shop/sales/good", "--format", "json"),
        ("show", "good"),
        ("show", "good@0"),
        ("show", "good", "--effective"),
        ("diff", "good@0", "good"),
        ("diff", "HEAD..HEAD", "--topic", "good"),
        ("changelog", "HEAD..HEAD", "--topic", "good"),
        ("export", "jsonschema", "good"),
        ("sample", "good"),
        ("clients", "good"),
    ],
)
def test_commands_on_a_topic_print_no_notes_on_others(unreadable_shop: Shop, command: tuple[str, ...]) -> None:
    code, out, err = unreadable_shop.run(*command)
    assert (code, "broken" in out + err, "added no version:" in out + err) == (0, False, False)


@pytest.mark.parametrize(
    ("command", "topics"),
    [
        (("log", "broken1"), {"broken1"}),
        (("log", "broken1", "--format", "json"), {"broken1"}),
        (("log", "--all"), {"broken1", "broken2", "file"}),
        (("diff", "HEAD..HEAD", "--topic", "broken*"), {"broken1", "broken2"}),
        (("clients", "--namespace", "shop/sales"), {"broken1", "broken2"}),
        (("log", "unknown"), {"broken1", "broken2", "file"}),
    ],
)
def test_notes_on_the_selected_topics_are_printed(
    unreadable_shop: Shop, command: tuple[str, ...], topics: set[str]
) -> None:
    _, _, err = unreadable_shop.run(*command)
    notes = [line for line in err.splitlines() if "added no version:" in line]
    assert {
        path for path in ("broken1", "broken2", "file") if any(f"topics/{path}." in line for line in notes)
    } == topics
