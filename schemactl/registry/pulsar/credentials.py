"""Read and apply the credentials of a target, without showing a secret in any message."""

from __future__ import annotations

import base64
import json
import math
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import urllib3

from schemactl.core.deadline import begin_wait, end_wait
from schemactl.core.errors import MissingCredentials, RegistryError, UnusableCredentials
from schemactl.core.terminal import on_one_line
from schemactl.registry.pulsar import responses
from schemactl.registry.pulsar.responses import Reply, ResponseLimitError

_TIMEOUT = urllib3.Timeout(connect=10.0, read=30.0)
_RETRIES = urllib3.Retry(2, redirect=0)
_MAX_TOKEN_ANSWER_BYTES = 1 << 20
_MAX_SHOWN = 200
_LONGEST_LIFETIME_S = 10 * 365 * 86_400.0
_YEAR_10000_S = 253_402_300_800

_VALIDITY: Final = re.compile(
    rb"\x30[\x1e-\x22](?:\x17\x0d\d{12}Z|\x18\x0f\d{14}Z)(?:\x17\x0d(\d{12})Z|\x18\x0f(\d{14})Z)"
)
"""The Validity of a certificate in DER (RFC 5280, section 4.1.2.5)."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a target: `token_env`, `token_file`, `oauth2`, `cert_file` with `key_file`, and `ca_file`."""

    bearer: Bearer | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    certificate: ClientCertificate | None = None

    @classmethod
    def from_target(cls, written: Mapping[str, Any], folder: Path) -> Credentials:
        """Read the credentials of a target in the project file; relative paths start at `folder`.

        Raises:
            RegistryError: if a file cannot be used, or an environment variable is not set.
        """
        tls = _make_tls_context(written, folder)
        bearer: Bearer | None = None
        if "oauth2" in written:
            secret = _read_environment(written["oauth2"]["client_secret_env"])
            issuer = _OAuth2(written["oauth2"], secret, tls)
            bearer = Bearer(issuer.fetch, issuer.secrets, written["oauth2"]["issuer"])
        elif "token_env" in written:
            variable = written["token_env"]
            bearer = Bearer(lambda: (_read_environment(variable), math.inf), set(), f"the variable {variable}")
            bearer.get_token()
        elif "token_file" in written:
            # Read again for each token, because the file may be replaced at any time.
            path = folder / written["token_file"]
            bearer = Bearer(lambda: (_read_token_file(path), math.inf), set(), f"the file {path}")
            bearer.get_token()
        certificate = None
        if "cert_file" in written:
            path = folder / written["cert_file"]
            certificate = ClientCertificate.read(str(path), path.read_text("latin-1"))
        return cls(bearer, tls, certificate)

    @property
    def has_secret(self) -> bool:
        """Whether requests carry a token or a client certificate."""
        return self.bearer is not None or self.certificate is not None

    @property
    def has_expired(self) -> bool:
        """Whether the token expired, by the clock of this machine."""
        claims = (self.bearer.parse_claims() if self.bearer else None) or {}
        end_s = _read_time(claims, "exp")
        return end_s is not None and end_s <= time.time()

    def describe_role(self) -> str:
        """Return the role in the token as text for a message."""
        role = (self.bearer.parse_claims() or {}).get("sub") if self.bearer else None
        return f"the role {on_one_line(role[:_MAX_SHOWN])}" if isinstance(role, str) and role else "the role"

    def explain_rejection(self) -> tuple[str, str]:
        """Return the probable reason why a broker rejected the credentials, and a fix."""
        if self.bearer is None:
            if self.certificate:
                if expiry := self.certificate.expiry:
                    return f"the target's client certificate is not valid: {expiry}", "request a new certificate"
                return (
                    "it does not accept the target's client certificate",
                    "check that the brokers authenticate clients by certificate; else give the target a token",
                )
            return (
                "the target has no credentials",
                "give it `token_env`, `token_file`, `oauth2`, or `cert_file` with `key_file`: schemactl docs reference/targets",
            )
        token = f"the token from {self.bearer.source}"
        claims = self.bearer.parse_claims()
        if claims is None:
            return (
                f"{token} is not a complete JSON Web Token",
                "put the whole token there, which begins with `eyJ`, without Pulsar's prefix `token:`",
            )
        now_s = time.time()
        if (end_s := _read_time(claims, "exp")) is not None and end_s <= now_s:
            return f"{token} expired at {_format_time(end_s)}", "request a new token, and put it there"
        if (start_s := _read_time(claims, "nbf")) is not None and start_s > now_s:
            return f"{token} is valid from {_format_time(start_s)} only", "check the clock of this machine"
        validity = "has no end" if end_s is None else f"is valid until {_format_time(end_s)}"
        return (
            f"{token} {validity}, but is not accepted: it is signed with another key, or meant for another cluster",
            f"request a token for {self.describe_role()} that is signed with the key of this cluster",
        )

    def redact(self, text: str) -> str:
        """Return `text` without the secrets that a server may have quoted."""
        for secret in sorted(self.bearer.secrets, key=len, reverse=True) if self.bearer else ():
            text = text.replace(secret, "***")
        return text


class ClientCertificate(NamedTuple):
    """The client certificate of a target: its file, and its end in seconds since 1970, or None if it is unknown."""

    path: str
    end_s: float | None

    @classmethod
    def read(cls, path: str, text: str) -> ClientCertificate:
        """Read the end of the first certificate in a PEM text."""
        try:
            first = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", text, re.DOTALL)
            validity = _VALIDITY.search(ssl.PEM_cert_to_DER_cert(first[0])) if first else None
            if validity is None:
                return cls(path, None)
            short, long = (group.decode() if group else "" for group in validity.groups())
            # Two digits mean a year from 1950 to 2049.
            digits = long or f"{'19' if short[:2] >= '50' else '20'}{short}"
            end = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        except ValueError:
            return cls(path, None)
        return cls(path, end.timestamp())

    @property
    def expiry(self) -> str:
        """A clause if it has expired, by the clock of this machine, or ""."""
        if self.end_s is None or self.end_s > time.time():
            return ""
        return f"it expired at {_format_time(self.end_s)}"


class Bearer:
    """A source of bearer tokens, each used until shortly before it expires.

    Args:
        fetch: returns a new token and its lifetime in seconds, or raises RegistryError.
        secrets: the secrets that `fetch` sends; every token is added.
        source: the origin of the tokens, for messages.
    """

    def __init__(self, fetch: Callable[[], tuple[str, float]], secrets: set[str], source: str = "the target") -> None:
        self._fetch = fetch
        self.source = source
        self._lock = Lock()
        self._token = ""
        self._until_s = 0.0
        self.secrets = secrets

    def get_token(self) -> str:
        """Return a valid token; raise RegistryError if none can be fetched."""
        with self._lock:
            if time.monotonic() >= self._until_s:
                self._token, lifetime_s = self._fetch()
                self.secrets.add(self._token)
                self._until_s = time.monotonic() + max(lifetime_s * 0.9 - 5.0, 1.0)
            return self._token

    def parse_claims(self) -> dict[str, Any] | None:
        """Return the unverified claims of the token, or None if it is not a JSON Web Token (RFC 7519)."""
        parts = self._token.split(".")
        try:
            claims = json.loads(base64.urlsafe_b64decode(parts[1] + "==")) if len(parts) == 3 else None
        except (ValueError, RecursionError):
            return None
        return claims if isinstance(claims, dict) else None

    def renew(self, rejected: str) -> bool:
        """Fetch a new token after a broker rejected `rejected`, and return whether it differs."""
        with self._lock:
            if self._token == rejected:
                self._until_s = 0.0
        return self.get_token() != rejected


def is_private(url: str) -> bool:
    """Return whether requests to `url` are encrypted or stay on this machine."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "https":
            return True
        host = (parts.hostname or "").lower()
        return parts.scheme == "http" and (host == "localhost" or ip_address(host).is_loopback)
    except ValueError:
        return False


def _read_time(claims: dict[str, Any], name: str) -> float | None:
    """Return a time in the claims in seconds since 1970, or None if it is missing or out of range."""
    value = claims.get(name)
    is_time = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _YEAR_10000_S
    return value if is_time else None


def _format_time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(int(seconds), tz=UTC):%Y-%m-%d %H:%M:%S} UTC"


def _read_token_file(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise MissingCredentials(
            f"the token file {path} cannot be read: {error.strerror}", fix="check `token_file` of the target"
        ) from None
    except UnicodeDecodeError:
        token = ""
    return _check_token(token, f"the token file {path}")


class _OAuth2:
    """Fetches tokens for client credentials (RFC 6749, section 4.4)."""

    def __init__(self, written: Mapping[str, str], secret: str, tls: ssl.SSLContext | None) -> None:
        self._written = written
        self._secret = secret
        self.secrets = {secret}
        if not is_private(written["issuer"]):
            raise self._make_error("a secret is sent over http only to this machine: write https://")
        self._http = urllib3.PoolManager(ssl_context=tls, timeout=_TIMEOUT)

    def fetch(self) -> tuple[str, float]:
        """Return a token and its lifetime in seconds."""
        issuer = self._written["issuer"].rstrip("/")
        configuration = self._request_json("GET", f"{issuer}/.well-known/openid-configuration")
        endpoint = configuration.get("token_endpoint")
        if not isinstance(endpoint, str):
            raise self._make_error("its configuration has no token_endpoint")
        # An https issuer must not send the secret over http, even to this machine.
        is_downgraded = issuer.startswith("https:") and not endpoint.startswith("https:")
        if is_downgraded or not is_private(endpoint):
            raise self._make_error(
                f"its configuration names {endpoint[:_MAX_SHOWN]!r} as token_endpoint, and a secret is sent over http only to "
                "this machine"
            )
        form = {
            "grant_type": "client_credentials",
            "client_id": self._written["client_id"],
            "client_secret": self._secret,
            "audience": self._written["audience"],
        }
        response = self._request_json("POST", endpoint, urlencode(form))
        token, lifetime_s = response.get("access_token"), response.get("expires_in", 300)
        if not isinstance(token, str) or not isinstance(lifetime_s, (int, float, str)):
            raise self._make_error("its response has no `access_token`")
        try:
            seconds = float(lifetime_s)
        except (ValueError, OverflowError):
            seconds = -1.0
        if not 0 <= seconds <= _LONGEST_LIFETIME_S:
            raise self._make_error("`expires_in` in its response is not a number of seconds")
        return _check_token(token, f"the response of {issuer}"), seconds

    def _request_json(self, method: str, url: str, form: str | None = None) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        plain_url, started_s = url.partition("?")[0][:_MAX_SHOWN], time.monotonic()
        wait = object()
        begin_wait(
            wait, lambda: f"a token: {method} {plain_url} (no response for {time.monotonic() - started_s:.1f} s)"
        )
        try:
            pool = responses.open_pool(self._http, url)
            reply = pool.urlopen(
                method, urllib3.util.parse_url(url).request_uri, form, headers, retries=_RETRIES, preload_content=False
            )
            data = responses.read_body(reply, max_bytes=_MAX_TOKEN_ANSWER_BYTES)
        except (urllib3.exceptions.HTTPError, UnicodeError) as error:
            # The text of the error may contain the request with the secret, so only its class is shown.
            reason_text = f"the response {error}" if isinstance(error, ResponseLimitError) else type(error).__name__
            responses.audit_request(method, plain_url, reason_text, started_s)
            raise self._make_error(f"{plain_url} cannot be reached ({reason_text})") from None
        finally:
            end_wait(wait)
        responses.audit_request(method, plain_url, str(reply.status), started_s)
        try:
            value = Reply(reply.status, body=data).json()
        except ValueError:
            value = None
        if reply.status != 200 or not isinstance(value, dict):
            reason = value.get("error") if isinstance(value, dict) else None
            quotes_secret = isinstance(reason, str) and any(secret in reason for secret in self.secrets)
            suffix = f": {on_one_line(reason[:_MAX_SHOWN])}" if isinstance(reason, str) and not quotes_secret else ""
            raise self._make_error(f"{plain_url} answers {reply.status}{suffix}")
        return value

    def _make_error(self, problem: str) -> RegistryError:
        return UnusableCredentials(
            f"no token from {self._written['issuer']}: {problem}",
            fix=f"check `oauth2` of the target and the variable {self._written['client_secret_env']}",
        )


def _read_environment(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise MissingCredentials(
            f"the environment variable {name} is not set, and the target's credentials come from it",
            fix=f"set {name} where schemactl runs",
        )
    return _check_token(value, f"the environment variable {name}")


def _check_token(token: str, where: str) -> str:
    # A header cannot contain other characters, and the error of the HTTP library would show the token.
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UnusableCredentials(
            f"{where} does not contain a token: expected one line of printable ASCII without spaces"
        )
    return token


def _make_tls_context(written: Mapping[str, Any], folder: Path) -> ssl.SSLContext | None:
    """Return the TLS settings of a target, or None for the system's default."""
    if not {"ca_file", "cert_file"} & written.keys():
        return None
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2

    subject = ""
    try:
        if "ca_file" in written:
            authority = folder / written["ca_file"]
            subject = f"the ca_file {authority}"
            context.load_verify_locations(authority)
        if "cert_file" in written:
            certificate, key = folder / written["cert_file"], folder / written["key_file"]
            subject = f"the cert_file {certificate} with the key_file {key}"
            # The empty password prevents a prompt for an encrypted key.
            context.load_cert_chain(certificate, key, password=lambda: b"")
    except OSError as error:
        not_pem = "it is not PEM, or the key has a password or does not fit the certificate"
        reason = not_pem if isinstance(error, ssl.SSLError) else error.strerror
        kind = MissingCredentials if isinstance(error, FileNotFoundError) else RegistryError
        raise kind(f"{subject} cannot be used: {reason}", fix="check the target's files") from None
    return context
