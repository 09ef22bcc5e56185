"""Secrets leave this machine only encrypted, and are read only if they are used."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from oauth2_issuer import SECRET, Issuer, authority_and_tls, oauth2
from scratch import Scratch
from scripted import Request, Response, respond_json, serve

from schemactl.core.errors import RegistryError
from schemactl.registry.pulsar.credentials import Bearer, Credentials, is_private
from schemactl.registry.pulsar.http import AdminConnection


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)


def bearer_of(written: dict[str, Any], folder: Path) -> Bearer:
    bearer = Credentials.from_target(written, folder).bearer
    assert bearer is not None
    return bearer


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("https://pulsar.example.com", True),
        ("http://127.0.0.1:8080", True),
        ("http://127.8.9.1", True),
        ("http://[::1]:8080", True),
        ("http://LOCALHOST:8080", True),
        ("http://localhost.example.com", False),
        ("http://127.0.0.1.example.com", False),
        ("http://127.0.0.1@example.com", False),
        ("http://10.0.0.1", False),
        ("http://[::]:8080", False),
        ("http://0.0.0.0", False),
        ("http://", False),
        ("http://[::1", False),
        ("ftp://localhost", False),
    ],
)
def test_url_shows_whether_requests_are_private(url: str, *, private: bool) -> None:
    assert is_private(url) is private


@pytest.mark.parametrize(
    "credentials",
    [
        "token_env: SECRET",
        "token_file: token",
        "oauth2: {issuer: 'https://idp.example.com', audience: a, client_id: b, client_secret_env: SECRET}",
        "oauth2: {issuer: 'http://idp.example.com', audience: a, client_id: b, client_secret_env: SECRET}",
    ],
)
@pytest.mark.parametrize("command", [("plan",), ("registry", "list", "a/b/c")], ids=" ".join)
@pytest.mark.parametrize("url", ["http://pulsar.example:8080", "http://127.0.0.1:1,http://pulsar.example:8080"])
def test_a_token_for_another_machine_needs_https(
    tmp_path: Path, url: str, command: tuple[str, ...], credentials: str
) -> None:
    scratch = Scratch(tmp_path / "r")
    target = f'registry: "{url}", {credentials}'
    scratch.commit({"schemactl.yaml": f"version: 1\ntargets: {{live: {{{target}}}}}\n", "token": f"{SECRET}\n"})
    scratch.flush()
    out, err, _ = schemactl(scratch.path, *command, code=1)
    assert out == ""
    assert "sent over http" in err
    assert "to this machine" in err
    assert SECRET not in err


def test_a_token_does_not_follow_a_redirect_into_the_open(tmp_path: Path) -> None:
    def answer(request: Request) -> Response:
        # Even if the cluster lists that host.
        if request.path == "/brokers":
            return respond_json(["broker.example:8080"])
        return Response(307, headers={"Location": "http://broker.example:8080/admin/v2/clusters"})

    credentials = Credentials.from_target({"token_env": "SECRET"}, tmp_path)
    with (
        serve(answer) as server,
        closing(AdminConnection(server.url, credentials)) as connection,
        pytest.raises(RegistryError, match=r"to http://broker\.example:8080, and a token is sent"),
    ):
        connection.get("clusters", [str])


@pytest.mark.parametrize(
    "endpoint",
    ["http://idp.example/token", "http://127.0.0.1:{port}/token", "ftp://x/", "//x/token", "http://[::1", "x"],
)
def test_from_an_issuer_with_https_the_secret_goes_to_no_other(tmp_path: Path, endpoint: str) -> None:
    _, context = authority_and_tls(tmp_path)
    with serve(lambda _: respond_json({})) as open_one:
        named = endpoint.format(port=open_one.url.rpartition(":")[2])
        with serve(lambda _: respond_json({"token_endpoint": named}), context) as issuer:
            bearer = bearer_of({**oauth2(issuer.url), "ca_file": "ca.pem"}, tmp_path)
            with pytest.raises(RegistryError, match="a secret is sent over http only"):
                bearer.get_token()
            assert [request.method for request in issuer.requests] == ["GET"]
        assert open_one.requests == []


def test_an_issuer_on_this_machine_sends_the_secret_nowhere_else_in_the_open(tmp_path: Path) -> None:
    with serve(lambda _: respond_json({"token_endpoint": "http://idp.example/token"})) as issuer:
        bearer = bearer_of(oauth2(issuer.url), tmp_path)
        with pytest.raises(RegistryError, match="a secret is sent over http only"):
            bearer.get_token()


@pytest.mark.parametrize("lifetime", ["NaN", "1e999", "-1", '"x"', "[]", "9" * 400, "null"])
def test_a_lifetime_that_is_no_time_is_one_error(tmp_path: Path, lifetime: str) -> None:
    with serve(Issuer(lifetime)) as issuer:
        bearer = bearer_of(oauth2(issuer.url), tmp_path)
        with pytest.raises(RegistryError, match="no token from"):
            bearer.get_token()


def test_a_text_is_cleared_of_secrets_without_a_request(tmp_path: Path) -> None:
    with serve(Issuer("0")) as issuer:
        credentials = Credentials.from_target(oauth2(issuer.url), tmp_path)
        assert credentials.redact(f"x {SECRET} y") == "x *** y"
        assert issuer.requests == []
        assert credentials.bearer is not None
        credentials.bearer.get_token()
        request_count = len(issuer.requests)
        assert credentials.bearer.renew("token-1")
        # The one before may still be quoted.
        assert credentials.redact("token-1, token-2") == "***, ***"
        assert len(issuer.requests) == 2 * request_count


def test_a_secret_that_begins_with_another_is_hidden_whole() -> None:
    bearer = Bearer(lambda: ("abcdef", 60.0), {"abc"})
    bearer.get_token()
    assert Credentials(bearer).redact("abcdef abc") == "*** ***"
