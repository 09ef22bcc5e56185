"""`list`, `targets`, `show --effective` and `clients`: the declared topics, targets and clients, and on a real broker the connected clients."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import admin_rest
import brokers
import jsonschema
import pytest
from command import run_json, schemactl
from estate import Estate
from scratch import Scratch, record, write_declaration

from schemactl.cli import main

GOLD = "owner: '@acme/orders ada@example.com'\nlabels: {tier: gold}\n"


@pytest.fixture(scope="module")
def shop_repository(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Commit orders with two versions, of which the older one is in force, pings without a schema, and removed refunds.

    The working tree has another version of orders, a new topic, and other policies of pings, and does not have carts.
    """
    shop = Scratch(tmp_path_factory.mktemp("list") / "shop")
    files = {
        "schemactl.yaml": "version: 1\nroots: [topics]\n",
        "topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\nowner: team-sales\n"
        "labels: {domain: sales}\n",
        "topics/orders.yaml": write_declaration(more=GOLD),
        "topics/orders.avsc": record("id"),
        "topics/refunds.yaml": write_declaration("shop/sales/refunds"),
        "topics/pings.yaml": "topic: non-persistent://shop/ops/pings\n",
        "topics/carts.yaml": "topic: shop/sales/carts\nschema: {type: STRING}\n",
    }
    shop.commit(files)
    shop.commit({"topics/orders.avsc": record("id", count=1)})
    shop.commit({"topics/orders.avsc": record("id"), "topics/refunds.yaml": None})
    shop.write(
        {
            "topics/orders.avsc": record("id", total=1),
            "topics/a #1 [x].yaml": "topic: shop/sales/texts\nschema: {type: STRING}\nowner: '@bob'\n"
            "deprecated: {remove_after: 2031-01-01, use: shop/sales/orders}\n",
            "topics/pings.yaml": "topic: non-persistent://shop/ops/pings\nschema_compatibility_strategy: FORWARD\n",
            "topics/carts.yaml": None,
        }
    )
    return shop


def test_each_topic_of_the_files_has_a_row_with_what_they_change(shop_repository: Scratch) -> None:
    assert [line.split() for line in schemactl(shop_repository, "list").out.splitlines()] == [
        *(["TOPIC", "TYPE", "VERSION", "STRATEGY", "SET", "BY", "OWNER", "LABELS", "DEPRECATED", "CHANGE"],),
        ["non-persistent://shop/ops/pings", *["-", "-", "FORWARD", "topic", "-", "-", "-", "policies"]],
        ["shop/sales/carts", *["STRING", "0", "BACKWARD", "namespace", "team-sales", "domain=sales", "-", "removed"]],
        [
            "shop/sales/orders",
            *["AVRO", "0", "BACKWARD", "namespace", "@acme/orders", "ada@example.com"],
            *["domain=sales,tier=gold", "-", "version", "2"],
        ],
        ["shop/sales/texts", *["STRING", "-", "BACKWARD", "namespace", "@bob", "domain=sales", "2031-01-01", "new"]],
    ]


def test_on_a_terminal_of_80_columns_no_row_is_broken(
    shop_repository: Scratch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["-C", str(shop_repository.path), "list"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 4
    assert max(map(len, (head, *rows))) <= 80
    assert head.split() == ["TOPIC", "TYPE", "VERSION", "STRATEGY", "CHANGE"]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["shop/**", "!carts"], "orders texts pings"),
        (["--namespace", "shop/sales", "--skip", "carts"], "orders texts"),
        (["--owner", "team-sales", "--owner", "@bob"], "carts texts"),
        (["--label", "domain", "--label", "tier=gold"], "orders"),
        (["--label", "domain=web"], ""),
        (["--type", "AVRO"], "orders"),
        (["--deprecated"], "texts"),
        (["--changed", "--skip", "carts"], "orders texts pings"),
    ],
    ids=" ".join,
)
def test_a_listed_topic_matches_all_filters(shop_repository: Scratch, options: list[str], names: str) -> None:
    topics = run_json(shop_repository, "list", *options)["topics"]
    assert {topic["topic"].rpartition("/")[2] for topic in topics} == {*names.split()}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["refund"], "no topic of the files or the approved history matches 'refund'"),
        (["--owner", "team-sale"], "--owner team-sale: no topic has this owner; did you mean team-sales?"),
        (["--label", "tire=gold"], "--label tire: no topic has this label; did you mean tier?"),
        (["--type", "AVR"], "--type AVR: no topic has this type; did you mean AVRO?"),
    ],
    ids=str,
)
def test_what_no_topic_has_is_an_error(shop_repository: Scratch, options: list[str], error: str) -> None:
    assert f"schemactl: {error}" in schemactl(shop_repository, "list", *options, code=64).err


def test_json_has_everything_that_is_said_of_a_topic(shop_repository: Scratch) -> None:
    [texts] = run_json(shop_repository, "list", "texts")["topics"]
    assert texts == {
        "topic": "persistent://shop/sales/texts",
        "type": "STRING",
        "kinds": [],
        "version": None,
        "strategy": "BACKWARD",
        "level": "namespace",
        "lifecycle": "stable",
        "owner": "@bob",
        "description": "",
        "labels": {"domain": "sales"},
        "links": {},
        "properties": {},
        "deprecated": {"remove_after": "2031-01-01", "use": "persistent://shop/sales/orders"},
        "change": "added",
        "next_version": 0,
        "file": "topics/a #1 [x].yaml",
        "line": 1,
    }


def test_json_is_as_its_published_schema_says(shop_repository: Scratch) -> None:
    schema = json.loads((Path(__file__).parent.parent.parent / "schemas/list.schema.json").read_text())
    printed = run_json(shop_repository, "list")
    assert len(printed["topics"]) == 4
    jsonschema.Draft7Validator(schema).validate(printed)


def test_code_owners_are_read_by_githubs_rules(shop_repository: Scratch, tmp_path: Path) -> None:
    """The last pattern that matches counts, as in .gitignore, where git itself matches; `#`, `[` and `!` cannot be escaped."""
    printed = schemactl(shop_repository, "list", "--format", "codeowners")
    assert "skipped owner `team-sales`: GitHub accepts only" in printed.err
    lines = [line for line in printed.out.splitlines() if not line.startswith("#")]
    rules = [line.replace(r"\ ", "\0").split(" ") for line in lines]
    patterns = [pattern.replace("\0", r"\ ") for pattern, *_ in rules]
    assert not any(set(pattern) & set("#[]!") for pattern in patterns)
    other = Scratch(tmp_path / "other")
    other.write({".gitignore": "".join(f"{pattern}\n" for pattern in patterns)})

    def find_owners(path: str) -> list[str]:
        command = ["git", "-C", str(other.path), "check-ignore", "--no-index", "-v", path]
        columns = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split(":")
        return rules[int(columns[1]) - 1][1:] if len(columns) > 1 else []

    assert {
        path: find_owners(path) for path in ("topics/orders.yaml", "topics/orders.avsc", "topics/a #1 [x].yaml")
    } == {
        "topics/orders.yaml": ["@acme/orders", "ada@example.com"],
        "topics/orders.avsc": ["@acme/orders", "ada@example.com"],
        "topics/a #1 [x].yaml": ["@bob"],
    }
    assert find_owners("topics/deep/topics/orders.yaml") == find_owners("topics/sales.yaml") == []


def test_files_that_cannot_be_read_leave_what_was_approved(
    shop_repository: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = Scratch(tmp_path / "bare", bare=True)
    shop_repository.git("push", "-q", str(bare.path), "main")
    broken = Scratch(tmp_path / "broken")
    broken.git("pull", "-q", str(bare.path), "main")
    broken.write({"topics/orders.yaml": "topics: x\n"})
    printed = schemactl(broken, "list")
    assert (
        "note: showing the approved topics, because the working tree has errors: topics/orders.yaml:1:1" in printed.err
    )
    monkeypatch.setenv("GIT_DIR", str(bare.path))
    assert schemactl(bare, "list").out == printed.out
    assert [line.split()[:3] for line in printed.out.splitlines()[1:]] == [
        ["non-persistent://shop/ops/pings", "-", "-"],
        ["shop/sales/carts", "STRING", "0"],
        ["shop/sales/orders", "AVRO", "0"],
    ]
    assert "needs a working tree" in schemactl(bare, "list", "--format", "codeowners", code=64).err


def test_a_project_without_topics_says_so(tmp_path: Path) -> None:
    empty = Scratch(tmp_path / "empty")
    empty.commit({"schemactl.yaml": "version: 1\n"})
    assert schemactl(empty, "list").out == "Neither the files nor main declare a topic.\n"


PROJECT = """\
version: 1
defaults: {is_allow_auto_update_schema: false}
targets:
  dev: {registry: "sqlite:dev.db", pulsar: "4.2", exclude: ["click*"]}
  prod:
    registry: "sqlite:prod.db"
    tenants: {shop: live}
    overlays: environments/prod.yaml
    labels: {region: eu}
    after: [dev]
"""
OVERLAYS = """\
namespace: shop/sales
schema_compatibility_strategy: FORWARD
schema_validation_enforced: true
---
topic: shop/sales/orders
partitions: 4
"""


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    estate = Estate(
        tmp_path_factory.mktemp("prepared") / "shop",
        project=PROJECT.replace("click*", "orders"),
        orders=write_declaration(more="owner: ada\n"),
    )
    estate.scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            "environments/prod.yaml": OVERLAYS,
            "namespaces/sales.yaml": "namespace: shop/sales\nlabels: {tier: gold}\n",
            "namespaces/clicks.yaml": "topic: shop/sales/clicks\nschema_compatibility_strategy: FULL\n",
        }
    )
    return estate


def test_each_value_has_the_line_that_sets_it(estate: Estate) -> None:
    out = estate.run("show", "--effective", "orders", "--target", "prod").out
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "persistent://shop/sales/orders on prod, as main has it",
        "name persistent://live/sales/orders the target's name",
        "partitions 4 environments/prod.yaml:6:13 (overlay)",
        "schema_compatibility_strategy FORWARD environments/prod.yaml:2:32 (namespace, overlay)",
        "is_allow_auto_update_schema false schemactl.yaml:2:41 (default of the project)",
        "schema_validation_enforced true environments/prod.yaml:3:29 (namespace, overlay)",
        "owner ada namespaces/orders.yaml:5:8",
        "labels tier=gold namespaces/sales.yaml:2:9 (namespace)",
        "schema AVRO namespaces/orders.yaml:3:9",
    ]


def test_without_a_target_it_is_what_is_declared(estate: Estate) -> None:
    printed = estate.run_json("show", "--effective", "clicks")
    assert (printed["topic"], printed["target"]) == ("persistent://shop/sales/clicks", None)
    source_location = {"file": "namespaces/clicks.yaml", "line": 2, "column": 32}
    assert printed["values"]["schema_compatibility_strategy"] == {"value": "FULL", "level": "topic", **source_location}
    assert printed["values"]["schema_validation_enforced"] == {
        "value": False,
        "level": "pulsar",
        **dict.fromkeys(source_location),
    }


def test_a_topic_that_a_target_does_not_have_is_not_shown(estate: Estate) -> None:
    assert "unknown topic 'clicks'" in estate.run("show", "--effective", "clicks", "--target", "dev", code=64).err
    error = estate.run("show", "orders", "--target", "dev", code=64).err
    assert "--target requires --effective" in error


def test_targets_are_listed_with_what_they_say(estate: Estate) -> None:
    out = estate.run("targets").out
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "dev sqlite:dev.db",
        *("pulsar 4.2", "topics 1 of 2", "exclude click*", ""),
        "prod sqlite:prod.db",
        *("pulsar 4.0", "topics 2", "tenants shop: live", "overlays environments/prod.yaml", "after dev"),
        "labels region: eu",
    ]
    report = estate.run_json("targets")
    assert report["topics"] == 2
    assert [target["topics"] for target in report["targets"]] == [1, 2]
    assert report["targets"][1]["labels"] == {"region": "eu"}
    assert not (estate.scratch.path / "dev.db").exists()


def test_targets_of_the_working_tree_count_from_the_merge_on(estate: Estate) -> None:
    project = PROJECT.replace("click*", "orders").replace("  prod:", "  stage:")
    estate.scratch.write({"schemactl.yaml": project})
    done = estate.run("targets")
    assert "stage" not in done.out
    assert done.err == (
        "note: schemactl.yaml in the working tree changes targets (dev has other settings, prod is removed, stage is new), from the merge into main on; the "
        "approved targets follow\n"
    )


CLIENTS = """\
clients:
  - {name: shop, team: web, role: producer, schema: 0, language: java, contact: "@acme/web"}
  - {name: billing, team: payments, role: consumer, schema: 0..1, targets: [prod]}
  - {name: billing-eu, role: consumer, targets: [prod]}
  - {name: audit, role: reader}
  - {name: elsewhere, role: consumer, targets: [local]}
"""
SCHEMA = "schema: {type: AVRO, definition: {type: record, name: Order, fields: []}}\n"


def make_repository(path: Path, tenant: str, url: str) -> Path:
    """Make a project with topics in `tenant`, an embedded target and a target at `url`, and return its folder."""
    repository = Scratch(path)
    targets = f"targets: {{local: {{registry: 'sqlite:local.db'}}, prod: {{registry: '{url}'}}}}\n"
    topic = f"topic: {tenant}/sales/"
    repository.commit(
        {
            "schemactl.yaml": f"version: 1\nroots: [topics]\n{targets}",
            "topics/sales.yaml": f"namespace: {tenant}/sales\n",
            "topics/orders.yaml": f"{topic}orders\npartitions: 2\n{CLIENTS}{SCHEMA}",
            "topics/notes.yaml": f"{topic}notes\n{SCHEMA}",
        }
    )
    repository.flush()
    return repository.path


def test_without_a_target_the_declared_ones_are_listed(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", "shop", "https://pulsar.example.com")
    printed = schemactl(folder, "clients").out
    assert [line.split() for line in printed.splitlines()] == [
        ["persistent://shop/sales/orders"],
        ["client", "role", "built", "with", "language", "targets", "contact"],
        ["shop", "(team", "web)", "producer", "0", "java", "all", "@acme/web"],
        ["billing", "(team", "payments)", "consumer", "0..1", "-", "prod", "-"],
        ["billing-eu", "consumer", "latest", "-", "prod", "-"],
        ["audit", "reader", "latest", "-", "all", "-"],
        ["elsewhere", "consumer", "latest", "-", "local", "-"],
    ]
    [orders] = run_json(folder, "clients", "orders")["topics"]
    assert [client["declared"]["name"] for client in orders["clients"]] == [
        "shop",
        "billing",
        "billing-eu",
        "audit",
        "elsewhere",
    ]
    assert schemactl(folder, "clients", "notes").out == "No client is declared.\n"
    printed_for_local = schemactl(folder, "clients", "orders", "--target", "local", code=1)
    assert "is an embedded registry, which has no clients: they connect to brokers" in printed_for_local.err
    for wrong in (
        ["--expect", "1"],
        ["orders", "--target", "prod", "--expect", "-1"],
        ["orders", "--client", "audit"],
        ["orders", "--role", "producer"],
        ["orders", "--drained"],
        ["nothing"],
        ["--topic", "nothing"],
    ):
        assert schemactl(folder, "clients", *wrong, code=64).out == ""


@pytest.mark.network
def test_serve_says_that_it_has_no_clients(tmp_path: Path) -> None:
    with admin_rest.serve_folder(folder=tmp_path) as (url, _):
        folder = make_repository(tmp_path / "r", "shop", url)
        schemactl(folder, "apply", "--target", "prod", "--auto-approve", "--create-tenants")
        printed = schemactl(folder, "clients", "orders", "--target", "prod", code=1)
    assert f"{url} is `schemactl serve`, which has no clients: they connect to brokers" in printed.err


@pytest.fixture
def exit_stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_connected_clients_are_listed_with_the_declared_ones(
    release: str, tmp_path: Path, exit_stack: ExitStack
) -> None:
    broker, tenant = brokers.start_broker(release), brokers.new_tenant()
    folder = make_repository(tmp_path / "r", tenant, broker.url)
    plain = schemactl(folder, "clients", "orders", "--target", "prod").out
    assert "declared and not connected: shop, billing, billing-eu, audit" in plain
    schemactl(folder, "apply", "--target", "prod", "--auto-approve", "--create-tenants")
    pulsar: Any = import_module("pulsar")
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Error, str(tmp_path / "log"))
    client = pulsar.Client(broker.service_url, logger=logger)
    exit_stack.callback(client.close)
    orders = f"persistent://{tenant}/sales/orders"

    def report_version(version: int) -> dict[str, Any]:
        return {"properties": {"schemactl.version": str(version)}}

    producer = client.create_producer(orders, producer_name="shop-7f", **report_version(0))
    client.subscribe(
        orders, "billing", consumer_name="a", consumer_type=pulsar.ConsumerType.Shared, **report_version(1)
    )
    client.subscribe(orders, "billing", consumer_type=pulsar.ConsumerType.Shared)
    client.subscribe(orders, "billing-eu-1", **report_version(1))
    client.subscribe(orders, "someone", **report_version(0))
    client.subscribe(orders, "nobody").close()
    client.create_reader(f"{orders}-partition-1", pulsar.MessageId.earliest, reader_name="audit")
    for _ in range(3):
        producer.send(b"")
    [topic] = run_json(folder, "clients", "orders", "--target", "prod")["topics"]
    states = {}
    for listed in topic["clients"]:
        connections = listed["connections"]
        name = listed["declared"]["name"] if listed["declared"] else connections[0]["subscription"]
        states[name] = (listed["state"], [(connection["role"], connection["version"]) for connection in connections])
    assert states == {
        "shop": ("connected", [("producer", 0)]),
        "billing": ("connected", [("consumer", 1), ("consumer", None)]),
        "billing-eu": ("connected", [("consumer", 1)]),
        "audit": ("connected", [("reader", None)]),
        "someone": ("not declared", [("consumer", 0)]),
    }
    printed = schemactl(folder, "clients", "orders", "--target", "prod").out
    assert "connected and not declared: 1" in printed
    [line] = [line.split() for line in printed.splitlines() if "billing (" in line]
    assert line[-5:] == ["1", "and", "unknown", "2", "3"]

    def list_behind(*arguments: str, code: int = 100) -> list[str]:
        command = ("clients", *arguments, "--target", "prod")
        reasons: list[str] = run_json(folder, *command, code=code)["behind"]
        printed = schemactl(folder, "--quiet", *command, code=code)
        assert printed.err == ""
        assert printed.out.splitlines()[-len(reasons) or None :] == reasons or not reasons
        return reasons

    backlogs = ["billing has 3 messages left to read", "nobody has 3 messages left to read"]
    assert {*backlogs} <= {*list_behind("orders", "--drained")}
    assert list_behind("orders", "--expect", "0", "--client", "shop", code=0) == []
    late = [
        "shop is at 0, not yet at 1",
        "billing does not report its version: give it the property schemactl.version",
        "audit does not report its version: give it the property schemactl.version",
    ]
    assert list_behind("orders", "--expect", "1") == late
    assert list_behind("orders", "--expect", "1", "--role", "producer") == late[:1]
    notes = ("notes", "--role", "consumer", "--expect")
    assert list_behind(*notes, "0") == ["no client is declared, and no client is connected"]
    client.subscribe(f"persistent://{tenant}/sales/notes", "reports", consumer_name="r", **report_version(0))
    assert list_behind(*notes, "0", code=0) == []
    assert list_behind(*notes, "1") == ["r is at 0, not yet at 1"]
    unknown = ("clients", "orders", "--target", "prod", "--expect", "1", "--client")
    assert (
        "declares no client bill for this target; did you mean billing?"
        in schemactl(folder, *unknown, "bill", code=64).err
    )
    assert "declares no client zzz for this target: it has shop, " in schemactl(folder, *unknown, "zzz", code=64).err
