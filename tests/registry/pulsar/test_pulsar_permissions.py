"""Each command needs only its documented permissions on a broker that checks tokens, and shows no token."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import brokers
import pytest
from estate import EstateOnPulsar

from schemactl.core.errors import RegistryError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.interface import Scope
from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.http import AdminConnection
from schemactl.registry.pulsar.registry import PulsarRegistry

pytestmark = pytest.mark.broker

S = CompatibilityStrategy


@pytest.fixture(scope="session", params=["token", "token-4.2", "token-5.0"])
def strict(request: pytest.FixtureRequest) -> brokers.Broker:
    """A broker that checks tokens and permissions."""
    return brokers.start_broker(request.param)


def make_credentials(role: str, tmp_path: Path) -> Credentials:
    (tmp_path / role).write_text(brokers.make_token(role))
    return Credentials.from_target({"token_file": role}, tmp_path)


def registry_of(strict: brokers.Broker, role: str, tmp_path: Path) -> PulsarRegistry:
    # Where the broker cannot be asked for its settings, these stand for them.
    defaults = BrokerDefaults(S.FORWARD_TRANSITIVE, is_allow_auto_update_schema=False)
    return PulsarRegistry(
        strict.url, credentials=make_credentials(role, tmp_path), defaults=defaults, waits=brokers.NO_CLIENTS
    )


@pytest.fixture
def tenant(strict: brokers.Broker, tmp_path: Path) -> str:
    name = brokers.new_tenant()
    permit(strict, name, tmp_path)
    return name


def permit(strict: brokers.Broker, name: str, tmp_path: Path) -> None:
    """Make a tenant that the role `boss` administers; `prod` may produce to its namespace `sales`, `cons` may consume."""
    with closing(AdminConnection(strict.url, make_credentials("admin", tmp_path))) as admin:
        admin.change("PUT", f"tenants/{name}", {"adminRoles": ["boss"], "allowedClusters": ["standalone"]})
        admin.change("PUT", f"namespaces/{name}/sales")
        admin.change("POST", f"namespaces/{name}/sales/permissions/prod", ["produce"])
        admin.change("POST", f"namespaces/{name}/sales/permissions/cons", ["consume"])


def test_a_tenants_administrator_makes_no_tenants(strict: brokers.Broker, tenant: str, tmp_path: Path) -> None:
    boss = registry_of(strict, "boss", tmp_path)
    web, clicks = NamespaceName(tenant, "web"), TopicName(tenant, "web", "clicks")
    boss.create_namespace(web)
    assert boss.version in brokers.VERSIONS.values()
    assert boss.default_strategy(web) is S.FULL
    assert boss.defaults.is_allow_auto_update_schema is False
    admin = registry_of(strict, "admin", tmp_path)
    assert admin.defaults.is_allow_auto_update_schema is True
    admin.close()
    boss.set_namespace_policies(web, Policies(S.BACKWARD, is_allow_auto_update_schema=False))
    boss.create_topic(clicks, 2)
    boss.grow_partitions(clicks, 3)
    boss.set_topic_policies(clicks, Policies(S.FULL, schema_validation_enforced=True))
    assert boss.put_schema(clicks, SchemaInfo(SchemaType.INT64)) == 0
    boss.set_namespace_policies(web, Policies(is_allow_auto_update_schema=True))
    boss.relax(clicks)
    boss.restore(clicks)
    assert boss.describe_retained_messages(clicks) == ""
    assert boss.delete_schema(clicks) == 1
    assert set(boss.read_scope(frozenset({web})).topics) == {clicks}
    catalog = boss.read(Scope(frozenset({web}), frozenset({clicks})))
    assert catalog.topics[clicks].partitions == 3
    # On 5.0 an administrator of a tenant cannot even list the clusters.
    with pytest.raises(RegistryError, match=r"(PUT tenants/.*|GET clusters) answers 401"):
        boss.create_namespace(NamespaceName(brokers.new_tenant(), "web"))
    boss.close()


@pytest.mark.parametrize("role", ["prod", "cons"])
def test_role_of_a_client_cannot_read_policies_and_the_error_names_the_permission(
    strict: brokers.Broker, tenant: str, tmp_path: Path, role: str
) -> None:
    client = registry_of(strict, role, tmp_path)
    sales, orders = NamespaceName(tenant, "sales"), TopicName(tenant, "sales", "orders")
    with pytest.raises(RegistryError, match=f"GET namespaces/{sales} answers 403") as raised:
        client.read(Scope(frozenset({sales}), frozenset()))
    assert "schemactl docs reference/targets" in raised.value.fix
    assert client.get_schema(orders) is None
    assert client.read_scope(frozenset({sales})).namespaces == {sales}
    client.close()


def test_role_that_may_produce_may_upload(strict: brokers.Broker, tenant: str, tmp_path: Path) -> None:
    orders, text = TopicName(tenant, "sales", "orders"), SchemaInfo(SchemaType.STRING)
    producer, consumer = (registry_of(strict, role, tmp_path) for role in ("prod", "cons"))
    with pytest.raises(RegistryError, match=r"upload to .* answers 401"):
        consumer.put_schema(orders, text)
    assert producer.put_schema(orders, text) == 0
    producer.close()
    consumer.close()


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("", "the target has no credentials"),
        ("nonsense", "the token from the variable SHOP_TOKEN is not a complete JSON Web Token"),
        (brokers.make_token("boss", key=b"another key, of 32 bytes and more"), "signed with another key"),
        (brokers.make_token("boss", exp=1_700_000_000), "expired at 2023-11-14 22:13:20 UTC"),
        (brokers.make_token("boss", nbf=4_000_000_000), "is valid from 2096-10-02 07:06:40 UTC only"),
    ],
)
def test_a_broker_that_does_not_know_who_asks_is_told_apart_from_one_that_does_not_let_them(
    strict: brokers.Broker, tenant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, token: str, why: str
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", token)
    credentials = Credentials.from_target({"token_env": "SHOP_TOKEN"} if token else {}, tmp_path)
    space = NamespaceName(tenant, "sales")
    with closing(PulsarRegistry(strict.url, credentials=credentials)) as registry:
        calls: list[Callable[[], object]] = [
            lambda: registry.read(Scope(frozenset({space}), frozenset())),
            lambda: registry.set_namespace_policies(space, Policies(S.FULL)),
            lambda: registry.get_schema(TopicName(tenant, "sales", "orders")),
        ]
        for call in calls:
            with pytest.raises(RegistryError, match=f"answers 401.*: .*{why}"):
                call()


SPACE = "{tenant}/sales"
POLICIES = f"GET namespaces/{SPACE} answers 403: Unauthorized to "
TOPIC_POLICY = f"GET persistent/{SPACE}/orders/schemaCompatibilityStrategy answers 403: "
SCHEMAS = f"GET schemas/{SPACE}/orders/schemas answers 401: "
COMMANDS = [
    (("plan",), "boss", ("prod", POLICIES)),
    (("drift",), "boss", ("prod", POLICIES)),
    (("drift", "--unmanaged"), "admin", ("boss", "GET tenants answers 401: Unauthorized to ")),
    (("drift", "--unmanaged", "--namespace", "shop/sales"), "boss", ("prod", POLICIES)),
    (("show", "--effective", "orders", "--target", "local", "--live"), "boss", ("prod", POLICIES)),
    (("log", "orders", "--target", "local"), "boss", ("prod", TOPIC_POLICY)),
    (("apply", "--yes"), "boss", ("prod", POLICIES)),
    (("rebuild", "--auto-approve"), "boss", ("prod", POLICIES)),
    (("import",), "admin", ("boss", "GET tenants answers 401: ")),
    (("import", "--namespace", SPACE), "boss", ("prod", POLICIES)),
    (("admit", "producer", "orders", "--target", "local"), "boss", ("prod", POLICIES)),
    (("registry", "get", "orders"), "cons", ("nobody", SCHEMAS)),
    (("registry", "list", "orders"), "cons", ("nobody", SCHEMAS)),
    (("registry", "test", "orders", "--type", "STRING"), "boss", ("prod", "compatibility test .* answers 401: ")),
    (("registry", "put", "orders", "--type", "STRING"), "prod", ("cons", "upload to .* answers 401: ")),
    (("registry", "delete", "orders", "--allow-delete"), "boss", ("prod", TOPIC_POLICY)),
    (("registry", "delete", "orders", "--force-delete"), "boss", ("prod", TOPIC_POLICY)),
]  # fmt: skip
"""A command, the least role that may run it, and a lesser role with its error."""


@pytest.mark.parametrize(("command", "role", "less"), COMMANDS, ids=[" ".join(command) for command, _, _ in COMMANDS])
def test_a_command_needs_the_permission_that_the_page_names(
    strict: brokers.Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    role: str,
    less: tuple[str, str],
) -> None:
    estate = EstateOnPulsar(tmp_path / "shop", strict, more=", token_env: SHOP_TOKEN")
    permit(strict, estate.topic.tenant, tmp_path)
    monkeypatch.setenv("SHOP_TOKEN", brokers.make_token("boss"))
    estate.run("apply", "--yes")
    estate.commit_orders("id", note=0)
    named = [argument.format(tenant=estate.topic.tenant) for argument in command]
    lesser, words = less
    monkeypatch.setenv("SHOP_TOKEN", brokers.make_token(lesser))
    output = estate.run(*named, code=1).err
    assert re.search(words.format(tenant=estate.topic.tenant), output), output
    assert f"give the role {lesser} the permission: `schemactl docs reference/targets`" in output
    first_advice = (
        "name the namespaces with `--namespace TENANT/NAMESPACE`" if "GET tenants" in words else "give the role"
    )
    assert f"  Fix: {first_advice}" in output
    monkeypatch.setenv("SHOP_TOKEN", brokers.make_token(role))
    # A schema of another type is rejected by those that may ask, too; what else is on the broker has no declared name.
    printed = estate.run(*named, code=(0, 1, 100))
    assert printed.code != 1 or "have no declared name for" in printed.err


def test_a_tenants_administrator_cannot_read_the_configuration_and_nothing_fails(
    strict: brokers.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate = EstateOnPulsar(tmp_path / "shop", strict, more=", token_env: SHOP_TOKEN")
    permit(strict, estate.topic.tenant, tmp_path)
    monkeypatch.setenv("SHOP_TOKEN", brokers.make_token("boss"))
    estate.run("apply", "--yes")
    for command in (["plan"], ["drift", "--detailed-exitcode"], ["status", "--detailed-exitcode"]):
        text = estate.run(*command).out
        assert text.count("GET brokers/configuration/runtime answers 401; only a superuser may read it") == 1
    monkeypatch.setenv("SHOP_TOKEN", brokers.make_token("admin"))
    assert "brokers" not in estate.run("plan").out


def test_a_missing_tenant_takes_a_superuser(
    strict: brokers.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate = EstateOnPulsar(tmp_path / "shop", strict, more=", token_env: SHOP_TOKEN")
    tenant = estate.topic.tenant
    for role in ("nobody", "boss", "admin"):
        monkeypatch.setenv("SHOP_TOKEN", brokers.make_token(role))
        step = f"sales in the new tenant {tenant}, which only a superuser can create"
        assert step in estate.run("plan").out
    monkeypatch.setenv("SHOP_TOKEN", brokers.make_token("boss"))
    refused = estate.run("apply", "--yes", code=1).out
    assert re.search(f"Failed: tenant {tenant}: create\n.*(PUT tenants/{tenant}|GET clusters) answers 401: ", refused)
    monkeypatch.setenv("SHOP_TOKEN", brokers.make_token("admin"))
    estate.run("apply", "--yes")
    assert "No changes" in estate.run("plan").out


def test_no_token_is_ever_shown(strict: brokers.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estate = EstateOnPulsar(tmp_path / "shop", strict, more=", token_env: SHOP_TOKEN")
    admin, nobody = brokers.make_token("admin"), brokers.make_token("nobody")
    apply = ("apply", "--auto-approve", "--result", "result.json")
    output = ""
    for token, command, code in (
        (admin, ("plan", "--out", "plan.json"), 0),
        ("not.a.token", ("plan",), 1),
        (f"two lines\n{admin}", ("plan",), 1),
        (admin, apply, 0),
        (nobody, ("plan", "--format", "json"), 1),
        (admin, ("plan", "--detailed-exitcode"), 0),
    ):
        monkeypatch.setenv("SHOP_TOKEN", token)
        printed = estate.run(*command, code=code)
        output += printed.out + printed.err
    output += "".join((estate.scratch.path / name).read_text() for name in ("plan.json", "result.json"))
    assert "Traceback" not in output
    for secret in (admin, nobody, "not.a.token", admin.rpartition(".")[2]):
        assert secret not in output
