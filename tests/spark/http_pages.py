"""A server with one page for every path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread


class Page(BaseHTTPRequestHandler):
    """The answer of a server that is not Pulsar."""

    content = b"<html>Welcome</html>"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@contextmanager
def serve_pages(handler: type[Page]) -> Iterator[dict[str, str]]:
    """The options that lead to such a server."""
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield {"service.url": "pulsar://127.0.0.1:6650", "admin.url": url}
        finally:
            server.shutdown()
            thread.join()
