"""A code host in this process: what GitHub and GitLab keep of comments, statuses and merges, behind their REST paths."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "secret-of-the-job"  # noqa: S105  of nobody
BOT = {"id": 41, "type": "Bot"}


class CodeHost:
    """One repository with one pull request.

    Attributes:
        comments: of the pull request.
        statuses: by commit, the newest first.
        merged: the pull requests that were merged, as the host's API says it.
        url: of the API.
    """

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.statuses: dict[str, list[dict[str, Any]]] = {}
        self.merged: list[dict[str, Any]] = []
        self.url = ""

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        """What the API answers; KeyError: there is no such path."""
        for known, pattern, act in _PATHS:
            if known == method and (found := re.fullmatch(pattern, path)):
                told = act(self, body, *found.groups())
                if not isinstance(told, list):
                    return told
                size, page = int(query["per_page"][0]), int(query["page"][0])
                return told[size * (page - 1) : size * page]
        raise KeyError(f"{method} {path}")

    def add_comment(self, body: Any) -> Any:
        """A comment of the token's own."""
        self.comments.append({"id": 100 + len(self.comments), "user": BOT, "author": BOT, **body})
        return self.comments[-1]

    def edit_comment(self, body: Any, number: str) -> Any:
        """The comment, with another text."""
        (found,) = (each for each in self.comments if each["id"] == int(number))
        found.update(body)
        return found

    def add_status(self, body: Any, commit: str, creator: dict[str, Any] = BOT) -> Any:
        """One more status of a commit."""
        held = self.statuses.setdefault(commit, [])
        held.insert(0, {**body, "id": len(held), "creator": creator, "author": creator})
        return held[0]


_Act = Callable[..., Any]
_GITHUB, _GITLAB = "/repos/acme/schemas", "/projects/7"
_PATHS: list[tuple[str, str, _Act]] = [
    ("GET", f"{_GITHUB}/issues/1/comments", lambda host, _: host.comments),
    ("POST", f"{_GITHUB}/issues/1/comments", CodeHost.add_comment),
    ("PATCH", rf"{_GITHUB}/issues/comments/(\d+)", CodeHost.edit_comment),
    ("POST", rf"{_GITHUB}/statuses/(\w+)", CodeHost.add_status),
    ("GET", rf"{_GITHUB}/commits/(\w+)/statuses", lambda host, _, commit: host.statuses.get(commit, [])),
    ("GET", rf"{_GITHUB}/commits/\w+/pulls", lambda host, _: host.merged),
    ("GET", "/user", lambda _host, _body: BOT),
    ("GET", f"{_GITLAB}/merge_requests/1/notes", lambda host, _: host.comments),
    ("POST", f"{_GITLAB}/merge_requests/1/notes", CodeHost.add_comment),
    ("PUT", rf"{_GITLAB}/merge_requests/1/notes/(\d+)", CodeHost.edit_comment),
    ("POST", rf"{_GITLAB}/statuses/(\w+)", CodeHost.add_status),
    ("GET", rf"{_GITLAB}/repository/commits/(\w+)/statuses", lambda host, _, commit: host.statuses.get(commit, [])),
    ("GET", rf"{_GITLAB}/repository/commits/\w+/merge_requests", lambda host, _: host.merged),
]


@contextmanager
def running() -> Iterator[CodeHost]:
    """A host that answers on loopback, to whoever has TOKEN."""
    host = CodeHost()

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            url = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            is_known = TOKEN in (self.headers.get("PRIVATE-TOKEN"), (self.headers.get("Authorization") or "")[7:])
            try:
                code, told = (
                    (200, host.answer(self.command, url.path, parse_qs(url.query), body)) if is_known else (403, {})
                )
            except KeyError as error:
                code, told = 404, {"message": str(error)}
            data = json.dumps(told).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = handle_one  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        host.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield host
        finally:
            server.shutdown()
            thread.join()
