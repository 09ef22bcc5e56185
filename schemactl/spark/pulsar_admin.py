"""The list of a namespace's topics, from Pulsar's admin REST API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .pulsar_connection import Authentication, Connection, PulsarProblem
from .pulsar_positions import topic_of

if TYPE_CHECKING:
    from urllib3 import PoolManager


def topics_in(connection: Connection, namespace: str) -> set[str]:
    """Return the full names of the topics in `tenant/namespace`, each partitioned one once; PulsarProblem if they cannot be had."""
    import urllib3

    cannot = f"cannot list the topics of {namespace}"
    found: set[str] = set()
    with _pool(connection) as pool:
        for what in ("", "/partitioned"):
            address = f"{(connection.admin_url or '').rstrip('/')}/admin/v2/persistent/{namespace}{what}"
            try:
                answer = pool.request("GET", address, redirect=False)
            except urllib3.exceptions.HTTPError as error:
                raise PulsarProblem(f"{cannot}: {error}") from None
            if answer.status != 200:
                raise PulsarProblem(f"{cannot}: {address} answers {answer.status}")
            try:
                found |= {topic_of(name) for name in json.loads(answer.data)}
            except (ValueError, TypeError):
                raise PulsarProblem(
                    f"{cannot}: {address} answers with no list of them; is admin.url that of a broker's or proxy's REST API?"
                ) from None
    return found


def _pool(connection: Connection) -> PoolManager:
    """Return connections that authenticate as the client does."""
    import urllib3

    chosen: dict[str, Any] = {}
    match connection.authentication:
        case Authentication(kind="oauth2"):
            raise PulsarProblem(
                "admin.url does not work with AuthenticationOAuth2: name the topics, and leave it out"
            )
        case Authentication(kind="token") as token:
            chosen["headers"] = {"Authorization": f"Bearer {token.bearer()}"}
        case Authentication(kind="tls", fields=files):
            chosen |= {"cert_file": files["tlsCertFile"], "key_file": files["tlsKeyFile"]}
    if connection.trust_certs_file is not None:
        chosen["ca_certs"] = connection.trust_certs_file
    if connection.allow_insecure:
        chosen["cert_reqs"] = "CERT_NONE"
    timeout = urllib3.Timeout(connect=connection.connection_timeout_s, read=connection.operation_timeout_s)
    return urllib3.PoolManager(timeout=timeout, retries=2, **chosen)
