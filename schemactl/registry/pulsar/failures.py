"""The message for a request without a response: TLS errors, limits, and hosts that do not answer."""

from __future__ import annotations

from typing import Final, NamedTuple

from urllib3.exceptions import HTTPError, SSLError

from schemactl.core.terminal import on_one_line
from schemactl.registry.pulsar import http_limits

_MAX_SHOWN: Final = 200
_CHECK_ADDRESS: Final = "check that `registry` of the target is the address of Pulsar's admin API"
_CHECK_BROKER: Final = (
    "check that this machine reaches each broker by the address that the cluster names (`advertisedAddress` in its "
    "settings), or name a proxy in `registry` of the target"
)
_NO_CERTIFICATE: Final = ("HANDSHAKE_FAILURE", "BAD_CERTIFICATE", "CERTIFICATE_REQUIRED")
"""What servers send to a client that shows no certificate: of TLS 1.2, of Java's, of TLS 1.3."""


class Failure(NamedTuple):
    """Why no response came, and what to do. `may_pass`: a retry may get one."""

    what: str
    fix: str
    may_pass: bool = False


def failure(
    error: HTTPError | UnicodeError, host: str, *, has_certificate: bool, is_redirected: bool
) -> Failure:
    """Return the cause of `error` and what to do.

    Args:
        error: urllib3's.
        host: the host and port that was asked.
        has_certificate: the request was sent with a client certificate.
        is_redirected: the host comes from a redirect, not from the project file.
    """
    host = f"{host} (where the cluster redirects to)" if is_redirected else host
    if limit := http_limits.limit_reached(error):
        return Failure(f"the response of {host} is not read on: {limit}", _CHECK_ADDRESS)
    if isinstance(error, SSLError):
        return _tls_failure(error, host, has_certificate=has_certificate)
    fix = "check that the cluster runs, and that `registry` of the target is the address of its admin API"
    return Failure(
        f"{host} does not answer ({_cause(error)})", _CHECK_BROKER if is_redirected else fix, may_pass=True
    )


def _tls_failure(error: SSLError, host: str, *, has_certificate: bool) -> Failure:
    text, cause = str(error), _cause(error)
    if "WRONG_VERSION_NUMBER" in text:
        return Failure(
            f"{host} does not speak TLS",
            "write http:// in `registry` of the target, or the port that speaks TLS",
        )
    if "EOF occurred" in text:
        # Some servers hang up without an alert, and an alert can be lost.
        return Failure(
            f"{host} ends the TLS connection without a reason",
            "it may ask for another client certificate: look at `cert_file` and `key_file` of the target",
            may_pass=True,
        )
    if "_ALERT_" not in text:
        return Failure(
            f"TLS certificate verification failed for {host}: {cause}",
            "name the cluster's certificate authority as `ca_file` of the target; check the host's name",
        )
    if has_certificate:
        return Failure(
            f"{host} does not accept the target's client certificate: {cause}",
            "check that `cert_file` has not expired, and is signed by an authority that the cluster trusts",
        )
    if any(alert in text for alert in _NO_CERTIFICATE):
        return Failure(
            f"{host} asks for a client certificate, and the target names none: {cause}",
            "name yours as `cert_file`, with its `key_file`, of the target",
        )
    return Failure(
        f"{host} ends the TLS handshake: {cause}", "check the TLS versions and ciphers of the cluster"
    )


def _cause(error: HTTPError | UnicodeError) -> str:
    """Return the innermost part of urllib3's message; the rest shows Python objects."""
    cause: BaseException = error
    while isinstance(inner := cause.__cause__ or (cause.args[-1] if cause.args else None), BaseException):
        cause = inner
    text = getattr(cause, "verify_message", "") or getattr(cause, "strerror", "") or str(cause)
    return on_one_line((text.rpartition("object at ")[2].partition(">: ")[2] or text)[:_MAX_SHOWN])
