"""Pulsar's admin REST API as tests call it: a plain connection, `schemactl serve` behind it, and answers to compare."""

from __future__ import annotations

import html
import http.client
import json
import re
import select
import signal
import socket
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import brokers
from fork_server import COMMAND_LINE, RunningProgram, start_program

JSON = "application/json"


@dataclass(frozen=True)
class Said:
    """An answer."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").split(";")[0]

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        return json.loads(self.content)


class Client:
    """One connection to the server at `url`."""

    def __init__(self, url: str) -> None:
        address = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)

    def call(
        self, method: str, path: str, body: Any = None, *, content_type: str | None = JSON, **headers: str
    ) -> Said:
        """The answer; a body that is not yet bytes or text goes out as JSON."""
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
        data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
        sent = {"Content-Type": content_type, **headers} if content_type else headers
        if self.connection.sock and select.select([self.connection.sock], [], [], 0)[0]:
            # The server hangs up after some seconds without a request; the next request connects again.
            self.connection.close()
        self.connection.request(method, f"/admin/v2{path}", data, sent)
        answer = self.connection.getresponse()
        headers_by_name = {name.lower(): value for name, value in answer.getheaders()}
        return Said(answer.status, answer.reason, headers_by_name, answer.read())

    def create_namespace(self, name: str, policies: Any = None) -> None:
        """Create the namespace `name`, and its tenant if it is missing."""
        self.call("PUT", f"/tenants/{name.partition('/')[0]}", {"allowedClusters": ["standalone"]})
        self.call("PUT", f"/namespaces/{name}", policies or {})

    def close(self) -> None:
        self.connection.close()


@contextmanager
def open_connection(url: str) -> Iterator[socket.socket]:
    """A bare connection to the server at `url`."""
    address = urllib.parse.urlsplit(url)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=30) as raw:
        yield raw


@contextmanager
def serve_folder(*arguments: str, folder: Path | None = None) -> Iterator[tuple[str, RunningProgram]]:
    """The URL of a `schemactl serve`, and its process, which ends with the block if it has not before."""
    assert not brokers.markers.isdisjoint({"network", "live"}), "mark the test: pytest.mark.network"
    command = ["serve", "--port", "0", *arguments]
    with start_program(folder or Path.cwd(), COMMAND_LINE, *command, limit_s=None) as server:
        url = server.read_first_line()
        assert url.startswith("http://"), (url, server.read_err())
        yield url, server
        server.send_signal(signal.SIGTERM)
        server.wait(within_s=30)


def normalize_answer(said: Said, replaced: Mapping[str, str]) -> dict[str, Any]:
    """Return the comparable part of a response: JSON without times and ledgers, and the first line of an error message."""
    text = said.text
    for old, new in replaced.items():
        text = text.replace(old, new)
    if said.media_type == JSON:
        try:
            value = json.loads(text)
        except ValueError:
            return {"kind": "text", "body": text}
        if isinstance(value, dict) and "reason" in value and said.status >= 400:
            match = re.search(r"\nMessage: (.*)", value["reason"])
            return _make_error(match.group(1) if match else value["reason"])
        return {"kind": "json", "body": _without_times(value)}
    if said.media_type == "text/html":
        match = re.search(r"<tr><th>MESSAGE:</th><td>(.*?)</td>", text, re.DOTALL)
        return _make_error(html.unescape(match.group(1)) if match else said.reason)
    return {"kind": "empty"} if text == "" else _make_error(text)


def _make_error(words: str) -> dict[str, Any]:
    return {"kind": "error", "message": words.split("\n", maxsplit=1)[0].strip()}


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        left_out = ("timestamp", "ledgerId", "entryId")
        return {key: _without_times(item) for key, item in value.items() if key not in left_out}
    return [_without_times(item) for item in value] if isinstance(value, list) else value
