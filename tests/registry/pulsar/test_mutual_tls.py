"""Commands on a cluster that authenticates clients by certificate: with the right certificate, and the errors with others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import brokers
import pytest
from command import Printed, schemactl
from estate import ORDERS, make_order_info
from scratch import Scratch, record, write_declaration

pytestmark = pytest.mark.broker

STRICT = "schema_compatibility_strategy: BACKWARD\n"


class Shop:
    """A repository whose target is a broker with mutual TLS, in a separate tenant."""

    def __init__(self, path: Path, broker: brokers.Broker) -> None:
        self.scratch = Scratch(path)
        self.tls = Path(broker.environment["SCHEMACTL_TLS"])
        self.url = broker.url
        self.tenant = brokers.new_tenant()
        self.scratch.configure_author()
        self.write_target("admin")
        self.scratch.commit(
            {
                "namespaces/orders.yaml": write_declaration(more=STRICT),
                "namespaces/orders.avsc": record("id"),
                ".gitignore": ".schemactl/\n",
            }
        )

    def write_target(self, client: str | None, *, ca: str = "ca", url: str | None = None) -> None:
        """Approve a project file with this client certificate and authority."""
        target: dict[str, Any] = {
            "registry": url or self.url,
            "tenants": {"shop": self.tenant},
            "ca_file": f"{self.tls}/{ca}.pem",
        }
        if client:
            target |= {"cert_file": f"{self.tls}/{client}.pem", "key_file": f"{self.tls}/{client}.key"}
        self.scratch.commit({"schemactl.yaml": json.dumps({"version": 1, "targets": {"live": target}})})

    def run(self, *arguments: str, code: int = 0) -> Printed:
        self.scratch.flush()
        return schemactl(self.scratch.path, *arguments, code=code)


@pytest.fixture(params=["tls", "tls-4.2", "tls-5.0"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop", brokers.start_broker(request.param))


def test_a_superuser_by_certificate_may_do_everything(shop: Shop) -> None:
    shop.run("apply", "--auto-approve", "--create-tenants")
    shop.scratch.commit({"namespaces/orders.avsc": record("id", "needed")})
    out = shop.run("apply", "--auto-approve", "--relax-while-replaying").out
    assert "1 version registered" in out
    assert "No changes." in shop.run("plan", "--detailed-exitcode").out
    assert "No drift." in shop.run("drift", "--detailed-exitcode").out
    assert "orders" in shop.run("status", "--all-topics").out
    definition = shop.run("registry", "get", str(ORDERS), "--version", "1", "--target", "live").out
    assert json.loads(definition) == json.loads(make_order_info("id", "needed").schema)


MESSAGES: list[tuple[str, dict[str, Any], str, str]] = [
    ("expired", {"client": "expired"}, "does not accept the target's client certificate (certificate ", "request a new certificate, and put it in "),
    ("stranger", {"client": "stranger"}, "does not accept the target's client certificate (certificate ", "signed by an authority that the cluster trusts"),
    ("none", {"client": None}, "answers 401 (Authentication required): the target has no credentials", "`cert_file` with `key_file`"),
    ("guest", {"client": "guest"}, "", "give the role the permission"),
    ("authority", {"client": "admin", "ca": "other"}, "TLS certificate verification failed for 127.0.0.1:", "as `ca_file`"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "problem", "fix"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES])
def test_every_other_certificate_is_an_error_with_its_fix(
    shop: Shop, target: dict[str, Any], problem: str, fix: str
) -> None:
    shop.write_target(**target)
    printed = shop.run("apply", "--auto-approve", "--create-tenants", code=1)
    text = printed.out + printed.err
    assert problem in text
    assert text.count("Fix: ") == 1
    assert fix in text.partition("Fix: ")[2]
    if target["client"] == "expired":
        assert ": it expired at " in text


def test_http_url_of_a_tls_server_is_an_error_with_https(shop: Shop) -> None:
    shop.write_target("admin", url=shop.url.replace("https:", "http:"))
    err = shop.run("plan", code=1).err
    assert "speaks TLS only" in err
    assert f"write https:// in `registry` of the target: {shop.url}\n" in err
