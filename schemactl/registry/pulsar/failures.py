"""Explain why a request gets no response: the address, TLS, the certificate of the server or of the client."""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import suppress
from typing import Final, NamedTuple

from urllib3.exceptions import HTTPError, ProtocolError, SSLError

from schemactl.core.terminal import on_one_line
from schemactl.registry.pulsar.credentials import ClientCertificate, Credentials
from schemactl.registry.pulsar.responses import ResponseLimitError
from schemactl.registry.url import HostPort, parse_address

CHECK_ADDRESS: Final = "check that `registry` of the target is the address of Pulsar's admin API"

_CHECK_CLUSTER: Final = "check that the cluster runs, and that `registry` of the target is the address of its admin API"

_CHECK_BROKER: Final = (
    "check that this machine reaches each broker by the address that the cluster names (`advertisedAddress` in its "
    "settings), or name a proxy in `registry` of the target"
)

_NAME_CERTIFICATE: Final = "name yours as `cert_file`, with its `key_file`, of the target"

_NO_CERTIFICATE: Final = ("HANDSHAKE_FAILURE", "BAD_CERTIFICATE", "CERTIFICATE_REQUIRED")
"""The alerts of servers to a client without certificate: in TLS 1.2, in Java, in TLS 1.3."""

_NOT_YET_VALID, _HAS_EXPIRED, _OTHER_HOST, _OTHER_ADDRESS = 9, 10, 62, 64
"""The errors of X509_verify_cert (openssl/x509_vfy.h) with separate fixes."""

_PROBE_S: Final = 3.0
"""The time limit of a probe."""

_MAX_SHOWN: Final = 200


class Failure(NamedTuple):
    """The cause of a missing response.

    Attributes:
        message: the cause.
        fix: the repair.
        may_pass: whether a retry may get a response.
        is_of_credentials: whether the client certificate is the cause, so that every request fails.
    """

    message: str
    fix: str
    may_pass: bool = False
    is_of_credentials: bool = False


def explain_failure(
    error: HTTPError | UnicodeError, base: str, credentials: Credentials, *, is_redirected: bool, may_probe: bool
) -> Failure:
    """Return the cause of an error with its fix.

    Args:
        error: the exception of urllib3.
        base: the URL of the server.
        credentials: the credentials of the target.
        is_redirected: whether the server comes from a redirect, not from the project file.
        may_probe: whether to begin a TLS handshake with the server, without a request, to find the cause.
    """
    address = parse_address(base)
    host = f"{address[0]}:{address[1]}{' (where the cluster redirects to)' if is_redirected else ''}"
    if isinstance(error, ResponseLimitError):
        return Failure(f"the response of {host} {error}", CHECK_ADDRESS)
    # A server closes the connection after its alert, which is lost if it has not read the request.
    is_closed = isinstance(error, ProtocolError) or (isinstance(error, SSLError) and "EOF occurred" in str(error))
    if is_closed and may_probe and base.startswith("https:") and (alert := _read_alert(address, credentials.tls)):
        return _explain_alert(alert, host, credentials.certificate)
    if isinstance(error, SSLError):
        return _explain_tls_failure(error, host, credentials.certificate)
    if is_closed and may_probe and base.startswith("http:") and _speaks_tls(address):
        fix = f"write https:// in `registry` of the target: https{base.removeprefix('http')}"
        return Failure(f"{host} speaks TLS only", fix)
    return Failure(
        f"{host} does not answer ({_innermost_message(error)})",
        _CHECK_BROKER if is_redirected else _CHECK_CLUSTER,
        may_pass=True,
    )


def _explain_tls_failure(error: SSLError, host: str, certificate: ClientCertificate | None) -> Failure:
    text = str(error)
    if "WRONG_VERSION_NUMBER" in text or "record layer failure" in text:
        return Failure(
            f"{host} does not speak TLS", "write http:// in `registry` of the target, or the port that speaks TLS"
        )
    if "EOF occurred" in text:
        # Some servers close the connection without an alert.
        return Failure(
            f"{host} ends the TLS connection without a reason",
            "it may ask for another client certificate: look at `cert_file` and `key_file` of the target",
            may_pass=True,
        )
    if "_ALERT_" in text:
        return _explain_alert(text, host, certificate)
    code = getattr(_find_innermost(error), "verify_code", None)
    if code == _HAS_EXPIRED:
        fix = f"renew the certificate of {host}, and check the clock of this machine; `ca_file` is not the cause"
    elif code == _NOT_YET_VALID:
        fix = "check the clock of this machine: the certificate is not valid yet"
    elif code in (_OTHER_HOST, _OTHER_ADDRESS):
        fix = "write a host name that the certificate has in `registry` of the target; `ca_file` is not the cause"
    else:
        fix = "name the cluster's certificate authority as `ca_file` of the target (a self-signed certificate is its own authority)"
    return Failure(f"TLS certificate verification failed for {host}: {_innermost_message(error)}", fix)


def _explain_alert(text: str, host: str, certificate: ClientCertificate | None) -> Failure:
    """Return the cause of a TLS alert, whose name is in `text`."""
    match = re.search(r"ALERT_([A-Z_]+)", text)
    alert = match[1].lower().replace("_", " ") if match else "alert"
    if certificate:
        expiry = certificate.expiry
        return Failure(
            f"{host} does not accept the target's client certificate ({alert}){f': {expiry}' if expiry else ''}",
            f"request a new certificate, and put it in {certificate.path}, with its key in `key_file`"
            if expiry
            else "check that `cert_file` is signed by an authority that the cluster trusts, for use by a client, and not revoked",
            is_of_credentials=True,
        )
    if any(name in text for name in _NO_CERTIFICATE):
        return Failure(
            f"{host} requires a client certificate, but the target does not name one ({alert})",
            _NAME_CERTIFICATE,
            is_of_credentials=True,
        )
    return Failure(f"{host} ends the TLS handshake ({alert})", "check the TLS versions and ciphers of the cluster")


def _speaks_tls(address: HostPort) -> bool:
    """Return whether a server begins a TLS handshake."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # no request is sent
    with suppress(OSError), socket.create_connection(address, timeout=_PROBE_S) as connection:
        try:
            context.wrap_socket(connection, server_hostname=address[0]).close()
        except ssl.SSLError as error:
            return "_ALERT_" in str(error)
        return True
    return False


def _read_alert(address: HostPort, tls: ssl.SSLContext | None) -> str:
    """Return the alert that a server sends after the handshake, before any request, or "" without one."""
    context = tls or ssl.create_default_context()
    with suppress(OSError), socket.create_connection(address, timeout=_PROBE_S) as connection:
        try:
            with context.wrap_socket(connection, server_hostname=address[0]) as secured:
                secured.settimeout(1.0)
                secured.recv(1)
        except ssl.SSLError as error:
            return str(error) if "_ALERT_" in str(error) else ""
    return ""


def _find_innermost(error: BaseException) -> BaseException:
    """Return the innermost exception of a urllib3 error; the texts of the outer ones contain Python objects."""
    cause = error
    while isinstance(inner := cause.__cause__ or (cause.args[-1] if cause.args else None), BaseException):
        cause = inner
    return cause


def _innermost_message(error: BaseException) -> str:
    cause = _find_innermost(error)
    text = getattr(cause, "verify_message", "") or getattr(cause, "strerror", "") or str(cause)
    return on_one_line((text.rpartition("object at ")[2].partition(">: ")[2] or text)[:_MAX_SHOWN])
