"""The connection to a Pulsar cluster: its client, and error messages in plain words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit


class PulsarProblem(RuntimeError):
    """The cluster did not do what was asked of it; the message says what, where, and what to look at."""


@dataclass(frozen=True, slots=True)
class Authentication:
    """How to prove who one is: the files with the secrets, or the token that the driver's environment had."""

    kind: Literal["token", "tls", "oauth2"]
    fields: Mapping[str, str]
    token: str | None = field(default=None, repr=False)

    def bearer(self) -> str:
        """Return the token now: a file is read each time, since tokens are renewed. Raises PulsarProblem: the file cannot be read."""
        if self.token is not None:
            return self.token
        try:
            return Path(urlsplit(self.fields["token"]).path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise PulsarProblem(f"the token file cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class Connection:
    """What is to be known to reach the cluster."""

    service_url: str
    admin_url: str | None
    authentication: Authentication | None
    trust_certs_file: str | None
    allow_insecure: bool
    verify_hostname: bool
    operation_timeout_s: float
    connection_timeout_s: float


def client_package() -> Any:
    """Return the package `pulsar`. Raises PulsarProblem: it is not installed, or too old."""
    try:
        pulsar = import_module("pulsar")
    except ImportError:
        raise PulsarProblem(
            'pulsar-schemactl needs the package pulsar-client: pip install "pulsar-schemactl[pulsar]", on the driver and on every '
            "executor"
        ) from None
    if not hasattr(pulsar.Message, "has_null_value"):
        raise PulsarProblem(
            f"pulsar-client {pulsar.__version__} cannot tell a message without payload from an empty one: install a newer one"
        )
    return pulsar


class Cluster:
    """A client of a cluster, made in the process that uses it: it does not survive a fork."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        pulsar = client_package()
        with self.doing("open a client"):
            self.client = pulsar.Client(
                connection.service_url,
                authentication=_authentication(pulsar, connection.authentication),
                operation_timeout_seconds=max(1, round(connection.operation_timeout_s)),
                connection_timeout_ms=round(connection.connection_timeout_s * 1000),
                tls_trust_certs_file_path=connection.trust_certs_file,
                tls_allow_insecure_connection=connection.allow_insecure,
                tls_validate_hostname=connection.verify_hostname and not connection.allow_insecure,
                # Its other words would fill the log of each executor.
                logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        close(self.client)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Raise a PulsarProblem that says what was being done for what pulsar-client raises in the block."""
        try:
            yield
        except client_package().PulsarException as error:
            reason = _REASONS.get(type(error).__name__)
            why = reason.format(self.connection) if reason else error
            raise PulsarProblem(f"cannot {what}: {why}") from error

    def answer(self, call: Callable[[Callable[[Any, Any], None]], None]) -> Any:
        """Return what a call of pulsar-client that takes a callback gives.

        Those that wait for the same give a default, such as no message, where the client has no exception for an error; a
        connection that is lost is such an error (`raiseException` in exceptions.cc).

        Raises:
            PulsarException: of the error's name; NotConnected where there is none of that name.
        """
        pulsar = client_package()
        answers: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        call(lambda result, value: answers.put((result, value)))
        try:
            result, value = answers.get(timeout=2 * self.connection.operation_timeout_s)
        except Empty:
            raise pulsar.Timeout("no answer") from None
        if result != pulsar.Result.Ok:
            error = getattr(pulsar, result.name, None)
            raise pulsar.NotConnected("the connection was lost") if error is None else error(result.name)
        return value


def close(opened: Any) -> None:
    """Close a client, reader or producer; a broker that is gone by then is no problem of its own."""
    with suppress(client_package().PulsarException):
        opened.close()


_REASONS: Final = {
    "Timeout": (
        "no answer within {0.operation_timeout_s:g} s (pulsar.client.operationTimeoutMs): there is no broker at {0.service_url}, "
        "or it rejects these credentials"
    ),
    "ConnectError": "no connection to {0.service_url}",
    "TopicNotFound": "there is no such topic, or no such namespace",
    "AuthorizationError": "permission denied: the role needs the permission to consume, or to produce",
    "AuthenticationError": "the cluster rejects these credentials, or requires some (pulsar.client.authParams)",
    "ErrorGettingAuthenticationData": "the credentials could not be obtained (pulsar.client.authParams)",
    "ConsumerBusy": "another consumer uses the subscription: each query needs its own",
    "IncompatibleSchema": "the broker rejects the schema",
}
"""Why, by the names of pulsar-client's exceptions; {0} is the connection."""


def _authentication(pulsar: Any, authentication: Authentication | None) -> Any:
    if authentication is None:
        return None
    fields = authentication.fields
    if authentication.kind == "token":
        # Asked again at each connection, so that a renewed file serves.
        return pulsar.AuthenticationToken(authentication.bearer)
    if authentication.kind == "tls":
        return pulsar.AuthenticationTLS(fields["tlsCertFile"], fields["tlsKeyFile"])
    named = {"issuerUrl": "issuer_url", "privateKey": "private_key"}
    given = {named.get(name, name): value for name, value in fields.items()}
    return pulsar.AuthenticationOauth2(json.dumps({"type": "client_credentials"} | given))
