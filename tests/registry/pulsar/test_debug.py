"""`--debug` prints every request with its method, path, status, time and attempt, and never a secret."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from command import process
from oauth2_issuer import SECRET, Issuer
from scratch import Scratch
from scripted import Request, Response, Server, respond_json, serve

TOKEN = "the-token-of-the-target"  # noqa: S105  it opens nothing

LINE = re.compile(
    r"debug: \d+\.\d{3} s: (?P<method>[A-Z]+) (?P<url>http\S+): (?P<outcome>.*), \d+\.\d{3} s, attempt (?P<attempt>\d+)"
)


class Cluster:
    """A cluster without topics; the first request for its namespace gets a 503, the second one no response."""

    def __init__(self) -> None:
        self.failures = {"/namespaces/a/b": [503, 0]}
        self.lock = threading.Lock()

    def __call__(self, request: Request) -> Response:
        with self.lock:
            failures = self.failures.get(request.path.partition("?")[0], [])
            if failures:
                return Response(failures.pop(0), f"not now, {TOKEN}".encode(), "text/plain")
        if request.path == "/brokers/version":
            return Response(200, b"4.0.7")
        if request.path == "/tenants":
            return respond_json(["a"])
        return respond_json({"reason": f"Not found: {TOKEN}"}, 404)


def make_repository(folder: Path, registry: str, credentials: str) -> Path:
    """Return a repository with a declared topic and a target."""
    scratch = Scratch(folder)
    targets = f'targets: {{live: {{registry: "{registry}", {credentials}}}}}'
    topic = "topic: a/b/c\nschema: {type: STRING}\n"
    scratch.commit({"schemactl.yaml": f"version: 1\n{targets}\n", "namespaces/c.yaml": topic})
    scratch.flush()
    return scratch.path


def list_requests(err: str, server: Server) -> list[tuple[str, str, str, int]]:
    """Return method, path, outcome and attempt of each printed request to a server."""
    matches = [match for line in err.splitlines() if (match := LINE.fullmatch(line))]
    return [
        (match["method"], match["url"].removeprefix(server.url), match["outcome"], int(match["attempt"]))
        for match in matches
        if match["url"].startswith(server.url)
    ]


def test_each_request_is_printed_with_its_attempt(tmp_path: Path) -> None:
    with serve(Cluster()) as server:
        repository = make_repository(tmp_path / "repository", server.url, "token_env: THE_TOKEN")
        printed = process(repository, "--debug", "plan", "--target", "live", THE_TOKEN=TOKEN)
    requests = list_requests(printed.err, server)
    assert len(requests) == len(server.requests)
    namespace = [(outcome, attempt) for _, path, outcome, attempt in requests if path == "/admin/v2/namespaces/a/b"]
    assert [attempt for _, attempt in namespace[:3]] == [1, 2, 3]
    assert (namespace[0][0], namespace[2][0]) == ("503", "404")
    assert "does not answer" in namespace[1][0]
    assert all(attempt == 1 for _, attempt in namespace[3:])
    assert TOKEN not in printed.out + printed.err


def test_requests_for_tokens_are_printed_without_secrets(tmp_path: Path) -> None:
    with serve(Cluster()) as server, serve(Issuer()) as issuer:
        credentials = f'oauth2: {{issuer: "{issuer.url}", audience: a, client_id: b, client_secret_env: THE_SECRET}}'
        repository = make_repository(tmp_path / "repository", server.url, credentials)
        printed = process(repository, "--debug", "plan", "--target", "live", THE_SECRET=SECRET)
    assert list_requests(printed.err, issuer) == [
        ("GET", "/.well-known/openid-configuration", "200", 1),
        ("POST", "/token", "200", 1),
    ]
    assert "token-1" not in printed.err
    assert SECRET not in printed.err


def test_query_of_a_redirect_is_not_printed(tmp_path: Path) -> None:
    with serve(Cluster()) as broker:

        def redirect(request: Request) -> Response:
            location = f"{broker.url}/admin/v2{request.path}?session=secret-of-the-proxy"
            return Response(307, headers={"Location": location})

        with serve(redirect) as proxy:
            repository = make_repository(tmp_path / "repository", proxy.url, "pulsar: '4.0'")
            printed = process(repository, "--debug", "plan", "--target", "live")
    assert ("GET", "/admin/v2/namespaces/a/b", "307", 1) in list_requests(printed.err, proxy)
    assert ("GET", "/admin/v2/namespaces/a/b", "503", 1) in list_requests(printed.err, broker)
    assert "secret-of-the-proxy" not in printed.err


@pytest.mark.parametrize("options", [(), ("--verbose",)])
def test_requests_are_not_printed_without_debug(tmp_path: Path, options: tuple[str, ...]) -> None:
    with serve(Cluster()) as server:
        repository = make_repository(tmp_path / "repository", server.url, "pulsar: '4.0'")
        printed = process(repository, *options, "plan", "--target", "live")
        assert list_requests(printed.err, server) == []
