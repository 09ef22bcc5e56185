"""An issuer of OAuth 2.0 tokens, and TLS for servers of tests."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import trustme
from scripted import Request, Response, respond_json

SECRET = "the-secret"  # noqa: S105  it opens nothing


class Issuer:
    """An issuer of token-1, token-2, ... for the right secret; `lifetime` is the `expires_in` of its responses."""

    def __init__(self, lifetime: str = "3600") -> None:
        self.lifetime = lifetime
        self.token_count = 0

    def __call__(self, request: Request) -> Response:
        if request.path == "/.well-known/openid-configuration":
            return respond_json({"token_endpoint": f"http://{request.headers['Host']}/token"})
        if f"client_secret={SECRET}".encode() not in request.body:
            return respond_json({"error": "invalid_client"}, 401)
        self.token_count += 1
        return Response(200, f'{{"access_token": "token-{self.token_count}", "expires_in": {self.lifetime}}}'.encode())


def oauth2(issuer: str) -> dict[str, Any]:
    """The credentials of a target."""
    settings = {"issuer": issuer, "audience": "pulsar", "client_id": "schemactl", "client_secret_env": "SECRET"}
    return {"oauth2": settings}


def authority_and_tls(folder: Path) -> tuple[trustme.CA, ssl.SSLContext]:
    """Create a certificate authority, `ca.pem` in `folder`, and return the TLS settings of a server on this machine."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    return authority, context
