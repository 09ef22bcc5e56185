"""Each failure of TLS, of the server's certificate and of the client's has a separate fix; the servers are real."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from certificates import DAY, NOW, Authority
from scripted import respond_json, serve

from schemactl.core.errors import RegistryError, UnusableCredentials
from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.http import AdminConnection, WaitTimes

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("authority")]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    authority = Authority(tmp_path)
    authority.issue("server")
    authority.issue("client")
    authority.issue("expired", end=NOW - 2 * DAY)
    authority.issue("tomorrow", start=NOW + DAY, end=NOW + 2 * DAY)
    authority.issue("elsewhere", address="127.0.0.2")
    Authority(tmp_path, "other").issue("stranger")
    return authority


@contextmanager
def run_server(
    folder: Path, certificate: str, *, wants_client: bool, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{certificate}.pem", folder / f"{certificate}.key")
    context.maximum_version = newest
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / "ca.pem")
    with serve(lambda _: respond_json([]), context) as server:
        yield server.url


def get(url: str, credentials: Credentials = Credentials(), waits: WaitTimes = WaitTimes()) -> Any:  # noqa: B008  frozen
    with closing(AdminConnection(url, credentials, waits=waits)) as connection:
        return connection.get("clusters", [str])


@pytest.mark.parametrize(
    ("certificate", "ca_file", "problem", "fix"),
    [
        ("expired", "ca.pem", "certificate has expired", "and check the clock of this machine; `ca_file` is not the cause"),
        ("tomorrow", "ca.pem", "certificate is not yet valid", "check the clock of this machine"),
        ("elsewhere", "ca.pem", "IP address mismatch, certificate is not valid for '127.0.0.1'", "write a host name that the certificate has"),
        ("server", None, "unable to get local issuer certificate", "name the cluster's certificate authority as `ca_file`"),
        ("server", "other.pem", "", "name the cluster's certificate authority as `ca_file`"),
        ("stranger", "ca.pem", "unable to get local issuer certificate", "name the cluster's certificate authority as `ca_file`"),
        ("ca-itself", None, "self-signed certificate", "a self-signed certificate is its own authority"),
    ],
)  # fmt: skip
def test_a_certificate_of_a_server_that_is_not_valid(
    tmp_path: Path, certificate: str, ca_file: str | None, problem: str, fix: str
) -> None:
    if certificate == "ca-itself":
        Authority(tmp_path, certificate)
    written = {"ca_file": ca_file} if ca_file else {}
    with run_server(tmp_path, certificate, wants_client=False) as url, pytest.raises(RegistryError) as raised:
        get(url, Credentials.from_target(written, tmp_path))
    assert f"TLS certificate verification failed for {url.removeprefix('https://')}: " in raised.value.message
    assert problem in raised.value.message
    assert fix in raised.value.fix


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("client", "problem", "fix"),
    [
        (None, "requires a client certificate, but the target does not name one", "name yours as `cert_file`, with its `key_file`"),
        ("expired", "does not accept the target's client certificate", "request a new certificate, and put it in "),
        ("stranger", "does not accept the target's client certificate", "signed by an authority that the cluster trusts"),
        ("client", "", ""),
    ],
)  # fmt: skip
def test_a_server_that_wants_a_client_certificate(
    tmp_path: Path, newest: ssl.TLSVersion, client: str | None, problem: str, fix: str
) -> None:
    written = {"ca_file": "ca.pem"}
    written |= {"cert_file": f"{client}.pem", "key_file": f"{client}.key"} if client else {}
    credentials = Credentials.from_target(written, tmp_path)
    with run_server(tmp_path, "server", wants_client=True, newest=newest) as url:
        if not problem:
            assert get(url, credentials) == []
            return
        for _ in range(5):  # the alert is lost now and then
            with pytest.raises(UnusableCredentials) as raised:
                get(url, credentials)
            assert problem in raised.value.message
            assert fix in raised.value.fix
    if client == "expired":
        assert f"it expired at {NOW - 2 * DAY:%Y-%m-%d %H:%M:%S} UTC" in raised.value.message


@pytest.mark.parametrize("wants_client", [False, True], ids=["any client", "client certificate"])
@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_http_to_a_port_that_speaks_tls(tmp_path: Path, *, wants_client: bool, newest: ssl.TLSVersion) -> None:
    with run_server(tmp_path, "server", wants_client=wants_client, newest=newest) as url:
        with pytest.raises(RegistryError, match="speaks TLS only") as raised:
            get(url.replace("https:", "http:"))
        assert raised.value.fix == f"write https:// in `registry` of the target: {url}"


def test_the_address_with_tls_keeps_the_brackets_of_an_ipv6_address(tmp_path: Path) -> None:
    with run_server(tmp_path, "server", wants_client=False) as url:
        ipv6_url = url.replace("127.0.0.1", "[::ffff:127.0.0.1]")
        with pytest.raises(RegistryError, match="speaks TLS only") as raised:
            get(ipv6_url.replace("https:", "http:"))
    assert raised.value.fix == f"write https:// in `registry` of the target: {ipv6_url}"


def test_https_to_a_plain_port() -> None:
    with (
        serve(lambda _: respond_json([])) as server,
        pytest.raises(RegistryError, match="does not speak TLS") as raised,
    ):
        get(server.url.replace("http:", "https:"))
    assert "write http:// in `registry`" in raised.value.fix


def test_a_plain_server_that_hangs_up_is_not_taken_for_one_with_tls() -> None:
    with serve(lambda _: b"") as server, pytest.raises(RegistryError, match="does not answer") as raised:
        get(server.url, waits=WaitTimes(first_retry_s=0.3))
    assert "TLS" not in str(raised.value)
