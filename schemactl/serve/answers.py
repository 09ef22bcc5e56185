"""Responses in a broker's forms: Pulsar's JSON, Jersey's plain text, Jetty's error pages."""

from __future__ import annotations

import html
import json
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

JSON = "application/json"

_LONGEST_PAGE_BYTES = 32_767
"""A page that is longer is not sent at all (Jetty's ErrorHandler gives up when its buffer is full)."""

_WITH_PAGE = ("GET", "HEAD", "POST")
"""Other methods get an error page's status alone."""


class Rejection(Exception):
    """The response to a request that is refused."""

    def response(self, request: Request) -> Response:
        """Return what the client gets."""
        raise NotImplementedError


class RestError(Rejection):
    """A response with `status` and a JSON reason (RestException)."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason

    def response(self, request: Request) -> Response:
        """Return Pulsar's ErrorData."""
        del request
        return ok({"reason": self.reason}, self.status)


class Unexpected(RestError):
    """The response that RestException makes of an uncaught Java exception; its stack trace has one line.

    Args:
        message: the exception's, "" where it has none.
        exception: its class.
    """

    def __init__(self, message: str, exception: str = "java.lang.RuntimeException") -> None:
        thrown = f"{exception}: {message}" if message else exception
        head = "\n --- An unexpected error occurred in the server ---\n\n"
        super().__init__(500, f"{head}Message: {message or 'null'}\n\nStacktrace:\n\n{thrown}\n")


class BadRequest(Rejection):
    """A body that the endpoint cannot read; Jersey answers with Jackson's message."""

    def __init__(self, message: str, media: str = "text/plain") -> None:
        super().__init__(message)
        self.media = media

    def response(self, request: Request) -> Response:
        """Return the message, without the character set that Starlette would add."""
        del request
        return Response(str(self).encode(errors="replace"), 400, {"Content-Type": self.media})


class ErrorPage(Rejection):
    """A response with `status` and one of Jetty's pages, or their JSON if the request asks for it."""

    def __init__(self, status: int, message: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message or HTTPStatus(status).phrase
        self.headers = headers or {}

    def response(self, request: Request) -> Response:
        """Return HTML, or JSON where the client prefers that; an empty body where it would be too long."""
        path = request.scope["path"]
        if _first_accepted(request) == JSON:
            media, content = JSON, _json_page(path, self.status, self.message).encode(errors="replace")
        else:
            media = "text/html;charset=iso-8859-1"
            content = _html_page(path, self.status, self.message).encode("iso-8859-1", errors="replace")
        if request.method not in _WITH_PAGE or len(content) > _LONGEST_PAGE_BYTES:
            return Response(status_code=self.status, headers=self.headers)
        headers = {
            "Cache-Control": "must-revalidate,no-cache,no-store",
            "Content-Type": media,
            **self.headers,
        }
        return Response(content, self.status, headers)


def ok(value: Any, status: int = 200) -> Response:
    """Return `value` as JSON, in the order of its keys."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate has no UTF-8; the question mark is what Java writes.
    return Response(text.encode(errors="replace"), status, media_type=JSON)


def plain(text: str) -> Response:
    """Return text that is not quoted as content type JSON, as Pulsar does."""
    return Response(text, media_type=JSON)


def nothing(status: int = 204) -> Response:
    """Return a status without a body."""
    return Response(status_code=status)


def accepts_json(request: Request) -> bool:
    """Whether the client accepts JSON, which is all that the endpoints give."""
    accepted = _accepted(request)
    return not accepted or any(kind in (JSON, "application/*", "*/*") for kind in accepted)


def _accepted(request: Request) -> list[str]:
    kinds = request.headers.get("accept", "").split(",")
    return [kind.split(";")[0].strip().lower() for kind in kinds if kind.strip()]


def _first_accepted(request: Request) -> str:
    return next((kind for kind in _accepted(request) if kind in (JSON, "text/html", "*/*")), "")


def _json_page(path: str, status: int, message: str) -> str:
    fields = {"servlet": "schemactl", "message": _escaped(message), "url": path, "status": str(status)}
    lines = ",\n".join(
        f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()
    )
    return f"{{\n{lines}\n}}"


def _html_page(path: str, status: int, message: str) -> str:
    text, where = _escaped(message), _escaped(path)
    return (
        '<html>\n<head>\n<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>\n'
        f"<title>Error {status} {text}</title>\n</head>\n<body><h2>HTTP ERROR {status} {text}</h2>\n<table>\n"
        f"<tr><th>URI:</th><td>{where}</td></tr>\n<tr><th>STATUS:</th><td>{status}</td></tr>\n"
        f"<tr><th>MESSAGE:</th><td>{text}</td></tr>\n<tr><th>SERVLET:</th><td>schemactl</td></tr>\n</table>\n\n"
        "</body>\n</html>\n"
    )


def _escaped(text: str) -> str:
    return html.escape(text).replace("&#x27;", "&apos;")
