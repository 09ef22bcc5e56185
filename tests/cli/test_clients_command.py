"""`schemactl clients`: the declared clients, and on a real broker the connected ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import admin_rest
import brokers
import pytest
from command import schemactl
from scratch import Scratch

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
    [orders] = json.loads(schemactl(folder, "clients", "orders", "--format", "json").out)["topics"]
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
    with admin_rest.served(folder=tmp_path) as (url, _):
        folder = make_repository(tmp_path / "r", "shop", url)
        schemactl(folder, "apply", "--target", "prod", "--auto-approve", "--create-tenants")
        printed = schemactl(folder, "clients", "orders", "--target", "prod", code=1)
    assert f"{url} is `schemactl serve`, which has no clients: they connect to brokers" in printed.err


@pytest.fixture
def exit_stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.live
@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.RELEASES)
def test_connected_clients_are_listed_with_the_declared_ones(
    release: str, tmp_path: Path, exit_stack: ExitStack
) -> None:
    broker, tenant = brokers.running(release), brokers.new_tenant()
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
    [topic] = json.loads(schemactl(folder, "clients", "orders", "--target", "prod", "--format", "json").out)["topics"]
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
        reasons: list[str] = json.loads(schemactl(folder, *command, "--format", "json", code=code).out)["behind"]
        printed = schemactl(folder, "--quiet", *command, code=code)
        assert printed.err == ""
        assert printed.out.splitlines()[-len(reasons) or None :] == reasons or not reasons
        return reasons

    backlogs = ["billing has 3 messages left to read", "nobody has 3 messages left to read"]
    assert {*backlogs} <= {*list_behind("orders", "--drained")}
    assert list_behind("orders", "--expect", "0", "--client", "shop", code=0) == []
    late = [
        "shop is at 0, not yet at 1",
        "billing does not tell its version: give it the property schemactl.version",
        "audit does not tell its version: give it the property schemactl.version",
    ]
    assert list_behind("orders", "--expect", "1") == late
    assert list_behind("orders", "--expect", "1", "--role", "producer") == late[:1]
    notes = ("notes", "--role", "consumer", "--expect")
    assert list_behind(*notes, "0") == ["nobody is declared, and nobody is connected"]
    client.subscribe(f"persistent://{tenant}/sales/notes", "reports", consumer_name="r", **report_version(0))
    assert list_behind(*notes, "0", code=0) == []
    assert list_behind(*notes, "1") == ["r is at 0, not yet at 1"]
    unknown = ("clients", "orders", "--target", "prod", "--expect", "1", "--client")
    assert "declares no client bill there; did you mean billing?" in schemactl(folder, *unknown, "bill", code=64).err
    assert "declares no client zzz there: it has shop, " in schemactl(folder, *unknown, "zzz", code=64).err
