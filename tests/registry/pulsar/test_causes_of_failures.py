"""Failures that concern many requests of an `apply` are told once, with their cause and its fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import admin_rest
import brokers
import pytest
from command import Printed, schemactl
from faulty import Faults
from scratch import Scratch, record
from scripted import Request, Response, respond_json, serve

pytestmark = [pytest.mark.network, pytest.mark.slow]

TOPICS = 40
"""The topics of each of the two namespaces."""

UNAUTHORIZED = Response(401, b"<html>Authentication required</html>", "text/html")
OF_A_GATEWAY = Response(403, b"<html>Forbidden</html>", "text/html")
FORBIDDEN = respond_json({"reason": "Unauthorized to validateNamespaceOperation for operation [PACKAGES]"}, 403)


class Shop:
    """A repository with two namespaces, and a proxy before its registry that can answer in its own name."""

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
        return self._forwarded(request) if response is None else response


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    (tmp_path / "schemactl.yaml").write_text("version: 1\n")
    (tmp_path / "token").write_text(brokers.token("admin"))
    with admin_rest.served("--registry", "sqlite:registry.db", folder=tmp_path) as (upstream, _):
        proxy = Proxy(upstream)
        with serve(proxy) as server:
            proxy.url = server.url
            yield proxy


@pytest.mark.parametrize("first", [1, 60, 170, 185, 300, 450])
@pytest.mark.parametrize("case", ["another key", "expired"])
def test_rejected_credentials_end_an_apply_with_one_message(
    tmp_path: Path, proxy: Proxy, first: int, case: str
) -> None:
    expired = case == "expired"
    shop = Shop(tmp_path / "shop", proxy.url)
    if expired:
        (tmp_path / "token").write_text(brokers.token("admin", exp=1_700_000_000))
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
    (tmp_path / "token").write_text(brokers.token("admin"))
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
