"""An `apply` reports a failure of many requests once, with its cause and fix."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import admin_rest
import brokers
import pytest
from command import Printed, schemactl
from faulty import Faults
from scratch import Scratch, record
from scripted import Request, Response, respond_json, serve

from schemactl.core.errors import RegistryError
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.error_causes import find_cause
from schemactl.registry.pulsar.http import AdminConnection, WaitTimes
from schemactl.registry.pulsar.registry import PulsarRegistry
from schemactl.registry.pulsar.responses import Reply

pytestmark = [pytest.mark.network, pytest.mark.slow]

TOPICS = 20
"""The topics of each of the two namespaces."""

UNAUTHORIZED = Response(401, b"<html>Authentication required</html>", "text/html")
OF_A_GATEWAY = Response(403, b"<html>Forbidden</html>", "text/html")
FORBIDDEN = respond_json({"reason": "Unauthorized to validateNamespaceOperation for operation [PACKAGES]"}, 403)


class Shop:
    """A repository with two namespaces, and a proxy before its registry that can respond itself."""

    def __init__(self, path: Path, url: str) -> None:
        self.scratch = Scratch(path)
        target = f'{{registry: "{url}", token_file: ../token}}'
        files = {
            "schemactl.yaml": f"version: 1\nroots: [n]\ntargets: {{prod: {target}}}\n",
            ".gitignore": ".schemactl/\n",
        }
        for space in ("sales", "web"):
            files[f"n/{space}.yaml"] = f"namespace: shop/{space}\nschema_compatibility_strategy: FULL\n"
            for number in range(TOPICS):
                schema = "{type: AVRO, definition: order.avsc}"
                files[f"n/{space}-{number}.yaml"] = f"topic: shop/{space}/t{number}\nschema: {schema}\n"
        self.scratch.commit({**files, "n/order.avsc": record("id")})
        self.scratch.flush()

    def run(self, *arguments: str, code: int | tuple[int, ...] = 0) -> Printed:
        return schemactl(self.scratch.path, *arguments, code=code)


class Proxy(Faults):
    """Forwards requests, unless `answer` returns a response."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream, 0)
        self.answer: Callable[[Request, int], Response | None] = lambda _request, _number: None
        self.url = ""
        self.number = 0
        self.own = 0
        """The number of requests that it answered itself."""
        self.has_written = False

    def __call__(self, request: Request) -> Response:
        self.number += 1
        response = self.answer(request, self.number)
        self.own += response is not None
        self.has_written |= response is None and request.method != "GET"
        return self._forward(request) if response is None else response


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    (tmp_path / "schemactl.yaml").write_text("version: 1\n")
    (tmp_path / "token").write_text(brokers.make_token("admin"))
    with admin_rest.serve_folder("--registry", "sqlite:registry.db", folder=tmp_path) as (upstream, _):
        proxy = Proxy(upstream)
        with serve(proxy) as server:
            proxy.url = server.url
            yield proxy


@pytest.mark.parametrize("first", [1, 30, 85, 95, 150, 125])
@pytest.mark.parametrize("case", ["another key", "expired"])
def test_rejected_credentials_end_an_apply_with_one_message(
    tmp_path: Path, proxy: Proxy, first: int, case: str
) -> None:
    expired = case == "expired"
    shop = Shop(tmp_path / "shop", proxy.url)
    if expired:
        (tmp_path / "token").write_text(brokers.make_token("admin", exp=1_700_000_000))
    response = OF_A_GATEWAY if expired else UNAUTHORIZED
    proxy.answer = lambda _request, number: response if number >= first else None
    printed = shop.run("apply", "--auto-approve", code=(1, 3))
    assert printed.code == (3 if proxy.has_written else 1)
    text = printed.out + printed.err
    assert len(re.findall(f" answers {response.status}", text)) == 1, text
    cause = "expired at 2023-11-14 22:13:20 UTC" if expired else "but is not accepted: it is signed with another key"
    assert text.count(cause) == 1
    assert text.count("Fix: ") == 1
    assert proxy.own <= 17, "each worker may have had a request under way"
    assert "Failed: " not in text
    proxy.answer = lambda _request, _number: None
    (tmp_path / "token").write_text(brokers.make_token("admin"))
    shop.run("apply", "--auto-approve")
    assert "No changes." in shop.run("plan", "--detailed-exitcode").out


def test_a_namespace_without_permission_fails_alone_and_its_topics_together(tmp_path: Path, proxy: Proxy) -> None:
    shop = Shop(tmp_path / "shop", proxy.url)
    pattern = re.compile("/(persistent|schemas)/shop/web/t")
    proxy.answer = lambda request, _: FORBIDDEN if request.method != "GET" and pattern.match(request.path) else None
    out = shop.run("apply", "--auto-approve", code=3).out
    assert out.count(" answers 403") == 1
    assert out.count("Failed: ") == 1
    assert f"and {TOPICS - 1} steps for the same reason:\n" in out
    assert "expired" not in out
    assert "Fix: give the role admin the permission: `schemactl docs reference/targets`" in out
    proxy.answer = lambda _request, _number: None
    shop.run("apply", "--auto-approve")


# Errors with a known cause

UNEXPECTED = "\n --- An unexpected error occurred in the server ---\n\nMessage: {message}\n\nStacktrace:\n\n{exception}: {message}\n\tat x"
ORDERS = TopicName("shop", "sales", "orders")
SCHEMA_EXCEPTION = "org.apache.pulsar.broker.service.schema.exceptions.SchemaException"
PULSAR_EXCEPTION = "org.apache.pulsar.broker.service.BrokerServiceException"


def fail(message: str, exception: str = PULSAR_EXCEPTION, status: int = 500) -> Response:
    reason = UNEXPECTED.format(message=message, exception=exception) if status == 500 else message
    return respond_json({"reason": reason}, status)


CASES = [
    (fail("Bookie handle is not available -  ledger=2 - operation=Failed to read entry - entry=0"),
     "no bookie answers", "start the bookies that are down; if their data is lost, set managedLedgerForceRecovery=true"),
    (fail("No such ledger exists on Metadata Server -  ledger=5 - operation=Failed to open ledger", SCHEMA_EXCEPTION),
     "a ledger which the broker needs is gone", "set autoSkipNonRecoverableData=true"),
    (fail("Error while reading ledger -  ledger=164 - operation=Failed to read entry - entry=0"),
     "persistent://shop/sales/__change_events", "restart the brokers"),
    (fail("Topic policies cache have not init."), "cannot read the topic policies", "pulsar-admin namespaces unload shop/sales"),
    (fail("General OpenSslEngine problem"), "do not trust the certificates", "brokerClientTrustCertsFilePath"),
    (fail("KeeperErrorCode = ConnectionLoss", "org.apache.pulsar.metadata.api.MetadataStoreException"),
     "no connection to its metadata store", "ZooKeeper"),
    (fail("Failed to acquire ownership for namespace bundle shop/sales/0x00_0x10"),
     "no broker owns", "pulsar-admin namespaces unload shop/sales"),
    (fail("Failed to find ownership for topic:persistent://shop/sales/orders", status=412),
     "no broker owns", "pulsar-admin brokers healthcheck"),
    (fail("Exceed maximum number of topics in namespace.", status=412), "has a limit", "maxTopicsPerNamespace"),
    (fail("Namespace missing local cluster name in clusters list: local_cluster=a ns=shop/sales clusters=[b]", status=412),
     "on other clusters only", "`replication_clusters`"),
    (fail("Topic level policies is disabled, to enable the topic level policy and retry.", status=405),
     "switched off", "topicLevelPoliciesEnabled=true"),
    (Response(429, b"Too Many Requests", "text/plain"), "limit the rate", "--parallel 1"),
    (Response(413, b"<html>too large</html>", "text/html"), "limits the size", "client_max_body_size"),
    (Response(503, b"", "text/plain"), "reaches no broker", "check that the brokers behind it run"),
    (fail("Connection refused: x"), "", "the broker's log has the reason"),
    (fail("Failed to load persistent://shop/net/ConnectionLoss"), "", "the broker's log has the reason"),
]  # fmt: skip
"""Responses with the expected cause and fix."""


@pytest.mark.parametrize(("response", "cause", "fix"), CASES, ids=[cause or "unknown" for _, cause, _ in CASES])
def test_a_known_cause_has_its_fix(response: Response, cause: str, fix: str) -> None:
    def answer(request: Request) -> Response:
        if request.path.startswith("/persistent/shop/sales/orders/") or request.method == "POST":
            return response
        return respond_json(["persistent://shop/sales/orders"] if request.path == "/persistent/shop/sales" else [])

    with serve(answer) as server:
        registry = PulsarRegistry(server.url, waits=WaitTimes(retry_s=0.4))
        with pytest.raises(RegistryError) as raised:
            registry.grow_partitions(ORDERS, 3)
        assert cause in raised.value.message
        assert fix in raised.value.fix
        with pytest.raises(RegistryError) as raised:
            registry.put_schema(ORDERS, SchemaInfo(SchemaType.STRING))
        if "reason" not in str(response.body) or "SchemaException" in str(response.body):
            assert fix in raised.value.fix
        registry.close()


def test_bookies_that_restart_get_less_time_than_a_broker() -> None:
    response = fail("Bookie handle is not available -  ledger=2 - operation=Failed to read entry - entry=0")
    cause = find_cause(Reply(500, body=response.body))
    assert cause is not None
    assert cause.retry_s == 20.0


def test_the_time_of_a_cause_begins_with_its_first_reply() -> None:
    lost_ledger = fail(
        "No such ledger exists on Metadata Server", "org.apache.bookkeeper.mledger.ManagedLedgerException"
    )
    cause = find_cause(Reply(500, body=lost_ledger.body))
    assert cause is not None
    limit_s = cause.retry_s
    assert limit_s is not None
    started_s = time.monotonic()
    replies_with_cause: list[Response] = []

    def answer(request: Request) -> Response:
        if "/orders" not in request.path or len(replies_with_cause) == 3:
            return respond_json([])
        # The cluster starts again for longer than the time of the cause.
        if time.monotonic() - started_s < limit_s:
            return Response(503)
        replies_with_cause.append(lost_ledger)
        return lost_ledger

    with (
        serve(answer) as server,
        closing(AdminConnection(server.url, Credentials(), waits=WaitTimes(longest_delay_s=0.1))) as connection,
    ):
        connection.get("clusters", [str])
        started_s = time.monotonic()
        connection.get("orders", [str])
    assert len(replies_with_cause) == 3


@pytest.mark.parametrize(
    ("response", "longest_s"),
    [
        (fail("Exceed maximum number of topics in namespace.", status=412), 2.5),
        (fail("Bookie handle is not available -  ledger=2 - operation=Failed to read entry - entry=0"), 3.0),
    ],
    ids=["limit", "bookies"],
)
def test_a_cause_that_lasts_is_not_retried_for_each_request(response: Response, longest_s: float) -> None:
    with serve(lambda request: response if "/orders" in request.path else respond_json([])) as server:
        registry = PulsarRegistry(server.url, waits=WaitTimes(retry_s=1.0))
        started_s = time.monotonic()
        for _ in range(5):
            with pytest.raises(RegistryError):
                registry.grow_partitions(ORDERS, 3)
        assert time.monotonic() - started_s < longest_s
        registry.close()
