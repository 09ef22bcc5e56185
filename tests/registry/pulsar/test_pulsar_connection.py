"""Requests to a cluster: retries, the servers that get credentials, and the messages of errors."""

from __future__ import annotations

import base64
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trustme
from oauth2_issuer import SECRET, Issuer, authority_and_tls, oauth2
from scripted import Request, Response, Server, respond_json, serve
from waiting import assert_soon

from schemactl.core.errors import RegistryError, SchemaRejected
from schemactl.core.findings import Outcome
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.registry.interface import Scope
from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.http import AdminConnection, NoResponseError, UnreachableError, WaitTimes
from schemactl.registry.pulsar.registry import PulsarRegistry
from schemactl.registry.pulsar.responses import retry_after_s

pytestmark = pytest.mark.slow

TOKEN, OLD, NEW = "a-secret.that-nobody.may-see", "token-1", "token-2"
ORDERS = TopicName("shop", "sales", "orders")
LONG = SchemaInfo(SchemaType.INT64)

PAGE = """<html><head><title>Error 409 x</title></head><body><table>
<tr><th>STATUS:</th><td>409</td></tr>
<tr><th>MESSAGE:</th><td>Unable to read schema: &quot;a&quot;
using schema</td></tr></table></body></html>"""
UNEXPECTED = "\n --- An unexpected error occurred in the server ---\n\nMessage: {message}\n\nStacktrace:\n\n{exception}: {message}\n\tat x"


SHORT = WaitTimes(first_retry_s=0.3, retry_s=0.5, longest_delay_s=0.05)

PATIENT = replace(SHORT, first_retry_s=60.0, retry_s=60.0)
"""For a request that gets a response in the end, however slow the machine is."""


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Credentials:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    return Credentials.from_target({"token_env": "SHOP_TOKEN"}, tmp_path)


def get(url: str, credentials: Credentials = Credentials(), waits: WaitTimes = SHORT) -> Any:  # noqa: B008  frozen
    with closing(AdminConnection(url, credentials, waits=waits)) as connection:
        return connection.get("clusters", ([str], str))


@contextmanager
def registry_of(
    answer: Callable[[Request], Response], path: str = "", waits: WaitTimes = SHORT
) -> Iterator[tuple[Server, PulsarRegistry]]:
    """Open a connection to a server with these responses."""
    with serve(answer) as server, closing(PulsarRegistry(server.url + path, waits=waits)) as registry:
        yield server, registry


def redirect(location: str) -> Response:
    return Response(307, headers={"Location": location})


def unexpected(exception: str, message: str = "no") -> Response:
    return respond_json({"reason": UNEXPECTED.format(exception=exception, message=message)}, 500)


@pytest.mark.parametrize(
    "trouble",
    [
        Response(0),
        Response(412, reason="Failed to find the ownership for the topic"),
        Response(429),
        Response(500, b"<h1>Internal Server Error</h1>", "text/html"),
        unexpected("org.apache.pulsar.metadata.api.MetadataStoreException"),
        unexpected("java.util.concurrent.TimeoutException"),
        Response(502),
        Response(503),
        Response(504),
        respond_json({"reason": "Concurrent modification"}, 409),
    ],
    ids=lambda trouble: str(trouble.status),
)
def test_transient_errors_are_retried(trouble: Response) -> None:
    with serve(lambda _: trouble if len(server.requests) < 4 else respond_json(["one"])) as server:
        assert get(server.url, waits=PATIENT) == ["one"]
        assert len(server.requests) == 4


def test_address_that_never_responded_is_retried_for_a_short_time() -> None:
    with serve(lambda _: Response(0)) as server:
        with pytest.raises(RegistryError, match="does not answer"):
            get(server.url, waits=WaitTimes(first_retry_s=0.0))
        assert len(server.requests) == 1


@contextmanager
def run_deaf_server() -> Iterator[str]:
    """Yield the URL of a server that accepts no connection, and does not reject one either."""
    with socket.socket() as listener, ExitStack() as clients:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            client = clients.enter_context(socket.socket())
            client.settimeout(0)
            client.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("kind", ["circle", "deaf broker"])
def test_a_circle_of_redirects_and_an_unreachable_broker_are_given_up_early(kind: str) -> None:
    with (
        run_deaf_server() as deaf_url,
        serve(lambda _: redirect(server.url if kind == "circle" else deaf_url)) as server,
    ):
        started_s = time.monotonic()
        with pytest.raises(RegistryError, match=r"redirected more than 5 times|does not answer"):
            get(server.url, waits=replace(PATIENT, connect_s=0.1, unreachable_s=0.5))
        assert time.monotonic() - started_s < 20
        assert len(server.requests) > 1


@pytest.mark.parametrize(
    ("kind", "error"),
    [("refused", NoResponseError), ("deaf", UnreachableError), ("http://nowhere.invalid:8080", UnreachableError)],
)
def test_a_broker_that_restarts_is_not_unreachable(kind: str, error: type[NoResponseError]) -> None:
    with serve(lambda _: respond_json([])) as stopped:
        pass
    with run_deaf_server() as deaf_url, pytest.raises(NoResponseError) as raised:
        get({"refused": stopped.url, "deaf": deaf_url}.get(kind, kind), waits=replace(SHORT, connect_s=0.1))
    assert type(raised.value) is error


def drip_bytes(first: bytes, repeated: bytes) -> Iterator[bytes]:
    """Yield the beginning of a response, and then some bytes from time to time, without end."""
    yield first
    while True:
        time.sleep(0.05)
        yield repeated


@pytest.mark.parametrize(
    ("first", "repeated"),
    [(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"), (b"HTTP/1.1 200 OK\r\n\r\n[", b"1,"), (b"", b"H")],
    ids=["headers", "body", "status line"],
)
def test_slow_responses_in_several_threads_are_closed(first: bytes, repeated: bytes) -> None:
    with (
        serve(lambda _: drip_bytes(first, repeated)) as server,
        closing(AdminConnection(server.url, Credentials(), waits=replace(SHORT, response_s=0.5))) as connection,
    ):
        started_s = time.monotonic()
        with pytest.raises(RegistryError, match=r"the response of .* takes longer than"):
            list(connection.map_in_threads(lambda number: connection.get(f"topic-{number}", [str]), range(20)))
        assert time.monotonic() - started_s < 20


def test_closing_ends_the_requests_of_other_threads() -> None:
    with serve(lambda _: drip_bytes(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n")) as server:
        connection = AdminConnection(server.url, Credentials(), waits=SHORT)
        errors: list[RegistryError] = []

        def send() -> None:
            try:
                connection.get("clusters", [str])
            except RegistryError as error:
                errors.append(error)

        threads = [Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert_soon(lambda: len(server.requests), 4)
        connection.close()
        for thread in threads:
            thread.join(20)
        assert len(errors) == 4


def test_the_next_address_is_tried_after_one_that_accepts_no_connection() -> None:
    waits = WaitTimes(connect_s=0.1, first_retry_s=0.0)
    with run_deaf_server() as deaf_url, serve(lambda _: respond_json(["one"])) as server:
        assert get(f"{deaf_url},{server.url}", waits=waits) == ["one"]


@pytest.mark.parametrize(
    "refusal",
    [*map(Response, (401, 403, 405, 406, 422, 409)), unexpected("org.apache.avro.AvroTypeException")],
    ids=lambda refusal: str(refusal.status),
)
def test_a_refusal_is_not_tried_again(refusal: Response) -> None:
    with serve(lambda _: refusal) as server:
        with pytest.raises(RegistryError, match=f"GET clusters answers {refusal.status}"):
            get(server.url)
        assert len(server.requests) == 1


def test_retry_after_is_heeded() -> None:
    answers = iter([Response(429, headers={"Retry-After": "0"}), respond_json([])])
    with serve(lambda _: next(answers)) as server:
        assert get(server.url, waits=PATIENT) == []


@pytest.mark.parametrize(
    ("header", "least_s", "most_s"),
    [("7", 7, 7), ("Wed, 21 Oct 2099 07:28:00 GMT", 1e9, 1e10), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0)],
)
def test_retry_after_is_a_number_of_seconds_or_a_moment(header: str, least_s: float, most_s: float) -> None:
    delay_s = retry_after_s(header)
    assert delay_s is not None
    assert least_s <= delay_s <= most_s


@pytest.mark.parametrize("header", ["", "soon", "-1", "21 Oct 2099"])
def test_another_retry_after_asks_for_nothing(header: str) -> None:
    assert retry_after_s(header) is None


def test_a_request_without_an_answer_is_named_once_while_it_waits() -> None:
    heard: list[str] = []

    def respond_late(_: Request) -> Response:
        assert_soon(lambda: bool(heard), wanted=True)
        return respond_json([])

    waits = WaitTimes(warn_after_s=0.2)
    with (
        serve(respond_late) as server,
        closing(AdminConnection(server.url, Credentials(), heard.append, waits=waits)) as connection,
    ):
        assert connection.get("clusters", [str]) == []
    (line,) = heard
    assert re.fullmatch(rf"{server.url}: GET clusters: no answer for \d+ s; waiting for up to \d+ s", line)


def test_address_without_a_server_is_one_clear_error() -> None:
    with serve(lambda _: respond_json([])) as server:
        pass
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:\d+ does not answer \(Connection refused\)") as raised:
        get(server.url)
    assert "`registry` of the target" in raised.value.fix


def test_next_broker_of_the_list_is_used_if_one_is_down() -> None:
    with serve(lambda _: respond_json([])) as down:
        pass
    with serve(lambda _: respond_json(["two"])) as server:
        assert get(f"{down.url},{server.url}") == ["two"]


def test_a_web_page_is_no_admin_api() -> None:
    page = Response(200, b"<html>welcome</html>", "text/html")
    with serve(lambda _: page) as server, pytest.raises(RegistryError, match="does not answer with JSON"):
        get(server.url)


@pytest.mark.parametrize("value", [None, {}, [], [1], "x", 1, {"getSchemaResponses": [{}]}], ids=repr)
def test_json_of_another_shape_is_one_clear_error(value: Any) -> None:
    name = ORDERS.namespace_name
    with registry_of(lambda _: respond_json(value)) as (_, registry):
        calls: list[Callable[[], object]] = [
            lambda: registry.put_schema(ORDERS, LONG),
            lambda: registry.get_schema(ORDERS),
            lambda: registry.delete_schema(ORDERS),
            lambda: registry.read(Scope(frozenset({name}), frozenset({ORDERS}))),
        ]
        for ask in calls:
            with pytest.raises(RegistryError, match="does not answer as Pulsar does"):
                ask()


def test_a_namespace_with_a_cluster_in_its_name_is_passed_over() -> None:
    answers = {"/tenants": ["shop"], "/namespaces/shop": ["shop/west/sales", "shop/sales"]}
    with registry_of(lambda request: respond_json(answers.get(request.path, []))) as (_, registry):
        assert registry.read_scope().namespaces == {ORDERS.namespace_name}


def test_an_address_with_a_path_keeps_it() -> None:
    with serve(lambda request: respond_json(request.path)) as server:
        assert get(f"{server.url}/pulsar/") == "/pulsar/admin/v2/clusters"


@pytest.mark.parametrize("url", ["http://broker:port", "http://broker:99999", "https://[::1"])
def test_invalid_address_is_one_clear_error(url: str) -> None:
    with pytest.raises(RegistryError, match="is not an address of an admin API"):
        AdminConnection(url, Credentials())


@pytest.mark.parametrize("location", ["ftp://broker/", "http://broker:port/", "http://[::1/"])
def test_a_redirect_to_nowhere_is_one_clear_error(location: str) -> None:
    with (
        serve(lambda _: redirect(location)) as server,
        pytest.raises(RegistryError, match="not an address of a broker"),
    ):
        get(server.url)


def test_after_a_failure_no_further_request_begins() -> None:
    def answer(request: Request) -> Response:
        if "schemas" in request.path or request.path.endswith("/internalStats"):
            return Response(403)
        return respond_json([f"persistent://shop/sales/t{n}" for n in range(1000)])

    names = frozenset(TopicName("shop", "sales", f"t{n}") for n in range(1000))
    with registry_of(answer) as (server, registry):
        with pytest.raises(RegistryError, match="answers 403"):
            registry.read(Scope(frozenset(), names))
        assert len(server.requests) < 100
        # And then others do.
        with pytest.raises(RegistryError, match="answers 403"):
            registry.get_schema(ORDERS)


def test_a_redirect_keeps_the_request_and_the_token(credentials: Credentials) -> None:
    def answer(request: Request) -> Response:
        return redirect(f"{owner.url}/admin/v2{request.path}?authoritative=true")

    with serve(lambda _: respond_json({"version": {"version": 3}})) as owner, serve(answer) as first:
        url = f"{first.url},{owner.url}"
        with closing(PulsarRegistry(url, credentials=credentials, waits=SHORT)) as registry:
            assert registry.put_schema(ORDERS, LONG) == 3
        assert [(request.method, request.token) for request in (*first.requests, *owner.requests)] == [
            ("POST", TOKEN)
        ] * 2
        assert owner.requests[0].body == first.requests[0].body != b""


def test_a_broker_that_the_cluster_lists_gets_the_token(credentials: Credentials) -> None:
    def answer(request: Request) -> Response:
        if request.path == "/brokers":
            return respond_json([owner.url.removeprefix("http://")])
        return respond_json([]) if request.path == "/clusters" and len(first.requests) > 1 else redirect(owner.url)

    with serve(lambda _: respond_json(["one"])) as owner, serve(answer) as first:
        assert get(first.url, credentials) == ["one"]
        assert owner.requests[0].token == TOKEN


def test_a_host_that_is_not_of_the_cluster_gets_nothing(credentials: Credentials) -> None:
    def answer(request: Request) -> Response:
        return Response(401) if request.path == "/brokers" else redirect(stranger.url)

    with serve(lambda _: respond_json([])) as stranger, serve(answer) as first:
        with pytest.raises(RegistryError, match="the cluster does not list as a broker") as raised:
            get(first.url, credentials)
        assert stranger.requests == []
        assert f"registry: {first.url},{stranger.url}" in raised.value.fix


def test_without_credentials_every_redirect_is_followed() -> None:
    with serve(lambda _: respond_json(["one"])) as owner, serve(lambda _: redirect(owner.url)) as first:
        assert get(first.url) == ["one"]


def test_a_redirect_to_a_dead_broker_is_not_blamed_on_the_address_of_the_target() -> None:
    with serve(lambda _: respond_json([])) as dead:
        pass
    host = dead.url.removeprefix("http://")
    with serve(lambda _: redirect(dead.url)) as first, pytest.raises(RegistryError) as raised:
        get(first.url)
    assert f"{host} (where the cluster redirects to) does not answer (Connection refused)" in raised.value.message
    assert "advertisedAddress" in raised.value.fix


@pytest.mark.parametrize("answer", [Response(404), Response(200, b"welcome", "text/html"), respond_json(5)])
def test_error_names_the_target_of_a_redirect(answer: Response) -> None:
    with serve(lambda _: answer) as owner, serve(lambda _: redirect(owner.url)) as first:
        with pytest.raises(RegistryError) as raised:
            get(first.url)
        assert f"(redirected to {owner.url})" in raised.value.message


def test_redirects_in_a_circle_end() -> None:
    with (
        serve(lambda request: redirect(request.path)) as server,
        pytest.raises(RegistryError, match="redirected more than 5 times"),
    ):
        get(server.url)


def test_tls_needs_the_clusters_authority(tmp_path: Path) -> None:
    _, context = authority_and_tls(tmp_path)
    with serve(lambda _: respond_json([]), context) as server:
        assert get(server.url, Credentials.from_target({"ca_file": "ca.pem"}, tmp_path)) == []
        with pytest.raises(RegistryError, match=r"TLS certificate verification failed for 127\.0") as raised:
            get(server.url)
    assert "ca_file" in raised.value.fix
    assert "object at" not in str(raised.value)


def test_https_url_of_a_plain_server_is_one_clear_error() -> None:
    with serve(lambda _: respond_json([])) as server, pytest.raises(RegistryError, match="does not speak TLS"):
        get(server.url.replace("http:", "https:"))


def test_a_server_that_hangs_up_in_the_handshake_may_want_a_certificate() -> None:
    def hang_up() -> None:
        with suppress(OSError):
            while True:
                accepted, _ = server.accept()
                accepted.recv(4096)
                accepted.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=hang_up, daemon=True).start()
        with pytest.raises(RegistryError, match="ends the TLS connection without a reason") as raised:
            get(f"https://127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)
    assert "`cert_file`" in raised.value.fix


# An alert can be lost when the server hangs up; then it is asked again.
@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_shows_its_certificate(tmp_path: Path, newest: ssl.TLSVersion) -> None:
    authority, context = authority_and_tls(tmp_path)
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = newest
    authority.configure_trust(context)
    for name, signer in (("client", authority), ("stranger", trustme.CA())):
        client = signer.issue_cert("client.example")
        client.private_key_pem.write_to_path(str(tmp_path / f"{name}.key"))
        client.cert_chain_pems[0].write_to_path(str(tmp_path / f"{name}.pem"))
    with serve(lambda _: respond_json([]), context) as server:
        written = {"ca_file": "ca.pem", "cert_file": "client.pem", "key_file": "client.key"}
        assert get(server.url, Credentials.from_target(written, tmp_path), PATIENT) == []
        with pytest.raises(
            RegistryError, match="requires a client certificate, but the target does not name one"
        ) as none:
            get(server.url, Credentials.from_target({"ca_file": "ca.pem"}, tmp_path), PATIENT)
        assert "`cert_file`" in none.value.fix
        written |= {"cert_file": "stranger.pem", "key_file": "stranger.key"}
        with pytest.raises(RegistryError, match="does not accept the target's client certificate"):
            get(server.url, Credentials.from_target(written, tmp_path), PATIENT)


def test_a_redirect_never_leaves_encryption(tmp_path: Path) -> None:
    _, context = authority_and_tls(tmp_path)
    credentials = Credentials.from_target({"ca_file": "ca.pem"}, tmp_path)
    with (
        serve(lambda _: redirect("http://127.0.0.1:1/"), context) as server,
        pytest.raises(RegistryError, match=r"from https to 127\.0\.0\.1 without encryption"),
    ):
        get(server.url, credentials)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"token_env": "NOT_SET"}, "the environment variable NOT_SET is not set"),
        ({"token_file": "none"}, "the token file .*none cannot be read: No such file"),
        ({"token_file": "two-lines"}, "two-lines does not contain a token"),
        ({"ca_file": "two-lines"}, "the ca_file .*two-lines cannot be used: it is not PEM"),
        ({"cert_file": "none", "key_file": "none"}, "the cert_file .* cannot be used: No such file"),
    ],
)
def test_useless_credentials_are_one_clear_error(tmp_path: Path, written: dict[str, str], problem: str) -> None:
    (tmp_path / "two-lines").write_text("one two\nthree")
    with pytest.raises(RegistryError, match=problem):
        Credentials.from_target(written, tmp_path)


def test_a_token_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{OLD}\n")
    credentials = Credentials.from_target({"token_file": str(path)}, tmp_path)
    path.write_text(f"{NEW}\n")
    with serve(lambda request: respond_json([]) if request.token == NEW else Response(401)) as server:
        assert get(server.url, credentials) == []
        assert [request.token for request in server.requests] == [OLD, NEW]


@pytest.mark.parametrize(("refused", "tokens"), [(None, [OLD] * 3), (OLD, [OLD, NEW, NEW, NEW])])
def test_a_token_of_oauth2_is_used_until_it_expires_or_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: str | None, tokens: list[str]
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    issuer = Issuer()
    with (
        serve(issuer) as issuing,
        serve(lambda request: Response(401) if request.token == refused else respond_json([])) as server,
    ):
        credentials = Credentials.from_target(oauth2(issuing.url), tmp_path)
        for _ in range(3):
            assert get(server.url, credentials) == []
        assert [request.token for request in server.requests] == tokens
        assert issuer.token_count == len({*tokens})


def jwt(**claims: object) -> str:
    """A token that says so; its signature is nobody's."""
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in ({"alg": "none"}, claims))
    return f"{head.decode()}.{body.decode().rstrip('=')}.x"


UNAUTHENTICATED = Response(
    401, b"<table><tr><th>MESSAGE:</th><td>Authentication required</td></tr></table>", "text/html"
)


@pytest.mark.parametrize(
    ("token", "why", "fix"),
    [
        ("", "the target has no credentials", "token_env"),
        (TOKEN, "the token from the variable SHOP_TOKEN is not a complete JSON Web Token", "token:"),
        ("a.b.c", "is not a complete JSON Web Token", ""),
        (jwt(exp=1_700_000_000), "expired at 2023-11-14 22:13:20 UTC", "a new token"),
        (jwt(nbf=4_000_000_000), "is valid from 2096-10-02 07:06:40 UTC only", "clock"),
        (jwt(sub="ci", exp=4_000_000_000), "is valid until 2096-10-02 07:06:40 UTC, but is not", "role ci"),
        (jwt(sub="ci"), "has no end, but is not accepted: it is signed with another key", "this cluster"),
        (jwt(exp="x", nbf=float("nan")), "has no end, but is not accepted", "the role that"),
        (jwt(exp=10**400), "has no end, but is not accepted", ""),
    ],
)  # fmt: skip
def test_why_a_broker_does_not_know_who_asks_is_told_by_the_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, token: str, why: str, fix: str
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", token)
    credentials = Credentials.from_target({"token_env": "SHOP_TOKEN"} if token else {}, tmp_path)
    with serve(lambda _: UNAUTHENTICATED) as server, pytest.raises(RegistryError) as raised:
        get(server.url, credentials)
    assert "GET clusters answers 401 (Authentication required): " in raised.value.message
    assert why in raised.value.message
    assert fix in raised.value.fix
    assert not token or token not in str(raised.value)


def test_a_role_without_permission_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHOP_TOKEN", jwt(sub="ci", exp=1))
    credentials = Credentials.from_target({"token_env": "SHOP_TOKEN"}, tmp_path)
    answer = respond_json({"reason": "Unauthorized to validateTenantOperation"}, 401)
    with serve(lambda _: answer) as server, pytest.raises(RegistryError) as raised:
        get(server.url, credentials)
    assert raised.value.message.endswith("answers 401: Unauthorized to validateTenantOperation")
    assert raised.value.fix.startswith("give the role ci the permission: ")


HOSTILE = "no\n::error::x\r\x1b[2Jred\u202e\u2028end"


@pytest.mark.parametrize(
    "answer",
    [
        respond_json({"reason": HOSTILE}, 403),
        Response(403, HOSTILE.encode(), "text/plain"),
        Response(401, f"<th>MESSAGE:</th><td>{HOSTILE}</td>".encode(), "text/html"),
    ],
)
def test_a_brokers_words_are_shown_on_one_line_with_control_characters_escaped(answer: Response) -> None:
    with serve(lambda _: answer) as server, pytest.raises(RegistryError) as raised:
        get(server.url)
    assert "no\\n\\u003a:error::x\\u000d\\u001b[2Jred\\u202e\\u2028end" in raised.value.message
    assert raised.value.message.isprintable()


def test_an_issuers_words_are_shown_on_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    with serve(lambda _: respond_json({"error": HOSTILE}, 400)) as issuing, pytest.raises(RegistryError) as raised:
        get("http://127.0.0.1:1", Credentials.from_target(oauth2(issuing.url), tmp_path))
    assert raised.value.message.isprintable()


def test_an_issuer_that_refuses_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET", "another-secret")
    with serve(Issuer()) as issuing, pytest.raises(RegistryError, match="answers 401: invalid_client") as raised:
        get("http://127.0.0.1:1", Credentials.from_target(oauth2(issuing.url), tmp_path))
    assert "another-secret" not in repr(raised.value) + str(raised.value)


@pytest.mark.parametrize(
    ("answer", "outcome", "words"),
    [
        (
            Response(409, PAGE.encode(), "text/html;charset=iso-8859-1"),
            Outcome.INCOMPATIBLE,
            'Unable to read schema: "a"\nusing schema',
        ),
        (Response(409, b"", "text/html", reason="Unable to read"), Outcome.INCOMPATIBLE, "Unable to read"),
        (respond_json({"reason": "Invalid schema"}, 422), Outcome.INVALID, "Invalid schema"),
        (unexpected("org.apache.avro.AvroTypeException", "Invalid default"), Outcome.ERROR, "Invalid default"),
    ],
)
def test_a_refusal_has_the_brokers_words(answer: Response, outcome: Outcome, words: str) -> None:
    with registry_of(lambda _: answer) as (_, registry), pytest.raises(SchemaRejected) as refused:
        registry.put_schema(ORDERS, LONG)
    assert (refused.value.outcome, refused.value.message) == (outcome, words)


def test_words_of_megabytes_are_cut() -> None:
    answer = unexpected("org.apache.avro.AvroTypeException", "x" * 3_000_000)
    with registry_of(lambda _: answer) as (_, registry), pytest.raises(RegistryError) as raised:
        registry.put_schema(ORDERS, LONG)
    assert len(str(raised.value)) < 2_500
    answer = respond_json({"reason": "x" * 3_000_000}, 403)
    with serve(lambda _: answer) as server, pytest.raises(RegistryError) as refused:
        get(server.url)
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize(
    "words",
    [
        "Not enough non-faulty bookies available -  ledger=-1 - operation=Failed to create ledger",
        "Bookie handle is not available -  ledger=2 - operation=Failed to read entry - entry=0",
    ],
)
def test_a_small_upload_waits_for_the_bookies_of_a_broker_that_starts(words: str) -> None:
    trouble = unexpected("org.apache.pulsar.broker.service.schema.exceptions.SchemaException", words)
    answers = iter([trouble, trouble])

    def respond(_: Request) -> Response:
        return next(answers, respond_json({"version": {"version": 0}}))

    with registry_of(respond, waits=PATIENT) as (server, registry):
        assert registry.put_schema(ORDERS, LONG) == 0
        assert len(server.requests) == 3


def test_an_address_that_is_no_admin_api_is_told() -> None:
    with (
        registry_of(lambda _: Response(404, b"<h1>Not Found</h1>", "text/html"), "/somewhere") as (_, registry),
        pytest.raises(RegistryError, match="not as Pulsar's admin API does"),
    ):
        _ = registry.version


def test_an_upload_that_is_too_big_is_not_tried_again() -> None:
    trouble = unexpected(
        "org.apache.bookkeeper.client.BKException$BKNotEnoughBookiesException",
        "Not enough non-faulty bookies available",
    )
    big = SchemaInfo(SchemaType.AVRO, b" " * 5_500_000)
    with registry_of(lambda _: trouble) as (server, registry):
        with pytest.raises(SchemaRejected, match="too big for Pulsar: 5,500,000 bytes"):
            registry.put_schema(ORDERS, big)
        assert len(server.requests) == 1
