"""A connection is used again only after its response has ended: for each form of a response, and for requests of several threads."""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest
import urllib3

from schemactl.registry.pulsar import responses
from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.http import AdminConnection

NEXT = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext"
# Without the time, so that the names of tests are the same in every process.
ZIPPED = gzip.compress(b"hello", mtime=0)


@dataclass
class Server:
    """A server that keeps connections open: its URL, the number of connections, and the number of requests for each path."""

    url: str = ""
    connections: int = 0
    requests: Counter[str] = field(default_factory=Counter)


@contextmanager
def serve_bytes(response: bytes) -> Iterator[Server]:
    """Run a server that answers `/first` with these bytes, and any other path with `NEXT`."""
    server = Server()

    class Handler(StreamRequestHandler):
        disable_nagle_algorithm = True

        def handle(self) -> None:
            server.connections += 1
            while line := self.rfile.readline():
                while self.rfile.readline().strip():
                    pass
                path = line.split()[1].decode()
                server.requests[path] += 1
                self.wfile.write(response if path.endswith("/first") else NEXT)

    class QuietServer(ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *_: object) -> None:
            """Ignore errors, because the client closes some connections early."""

    with QuietServer(("127.0.0.1", 0), Handler) as tcp:
        thread = Thread(target=tcp.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        server.url = f"http://127.0.0.1:{tcp.server_address[1]}"
        yield server
        tcp.shutdown()
        thread.join()


def make_response(status: str, *headers: str, body: bytes = b"", version: str = "HTTP/1.1") -> bytes:
    return "\r\n".join([f"{version} {status}", *headers, "", ""]).encode() + body


@pytest.mark.parametrize(
    ("response", "body", "connections"),
    [
        (make_response("204 No Content"), b"", 1),
        (make_response("204 No Content", "Content-Length: 0"), b"", 1),
        (make_response("204 No Content", "Content-Encoding: gzip"), b"", 1),
        (make_response("204 No Content", "Content-Length: 5"), b"", 2),
        (make_response("204 No Content", "Transfer-Encoding: chunked"), b"", 2),
        (make_response("204 No Content", "Transfer-Encoding: chunked", "Content-Encoding: gzip"), b"", 2),
        (make_response("204 No Content", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"), b"", 2),
        (make_response("204 No Content", "Connection: close"), b"", 2),
        (make_response("204 No Content", version="HTTP/1.0"), b"", 2),
        (make_response("304 Not Modified", "Content-Length: 0"), b"", 1),
        (make_response("200 OK", "Content-Length: 0"), b"", 1),
        (make_response("200 OK", "Content-Length: 0", "Content-Encoding: gzip"), b"", 1),
        (make_response("200 OK", "Content-Length: 0, 0"), b"", 2),
        (make_response("200 OK", "Content-Length: 0", "Content-Length: 0"), b"", 2),
        (make_response("200 OK", "Content-Length: 0", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"), b"", 1),
        (make_response("200 OK", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"), b"", 1),
        (make_response("200 OK", "Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n\r\n"), b"hello", 1),
        (make_response("200 OK", "Content-Length: 5", body=b"hello"), b"hello", 1),
        (make_response("200 OK", "Content-Length: 5, 5", body=b"hello"), b"hello", 2),
        (make_response("200 OK", "Content-Length: 10", body=b"0123456789"), b"0123456789", 1),
        (make_response("200 OK", "Content-Length: 12", body=b"0123456789XY"), b"0123456789", 2),
        (
            make_response(
                "200 OK", f"Content-Length: {len(ZIPPED) + 4}", "Content-Encoding: gzip", body=ZIPPED + b"rest"
            ),
            b"hello",
            1,
        ),
        (make_response("307 Temporary Redirect", "Location: /next", "Content-Length: 0"), b"", 1),
        (make_response("404 Not Found", "Content-Length: 0"), b"", 1),
        (make_response("500 Error", "Content-Length: 4", body=b"oops"), b"oops", 1),
        # Bytes that come with the response are not the response to the next request.
        (make_response("204 No Content", body=b"HTTP/1.1 500 Error\r\n\r\n"), b"", 1),
    ],
)
def test_next_request_works_while_the_response_still_exists(response: bytes, body: bytes, connections: int) -> None:
    with serve_bytes(response) as server, urllib3.PoolManager(maxsize=1, block=True, timeout=5.0) as manager:
        pool = responses.open_pool(manager, server.url)
        first = pool.urlopen("GET", "/first", retries=False, redirect=False, preload_content=False)
        assert responses.read_body(first, max_bytes=10, cut=True) == body
        following = pool.urlopen("GET", "/following", retries=False, redirect=False, preload_content=False)
        assert (following.status, responses.read_body(following)) == (200, b"next")
        assert server.connections == connections
        assert first.closed


@pytest.mark.slow
def test_threads_send_each_request_once() -> None:
    interval_s = sys.getswitchinterval()
    with serve_bytes(make_response("204 No Content")) as server:
        with closing(AdminConnection(server.url, Credentials(), parallel=8)) as connection:
            # Threads change between any two steps, also between the end of a response and its deletion.
            sys.setswitchinterval(1e-6)
            try:
                paths = [f"{number}/first" for number in range(5_000)]
                replies = list(connection.map_in_threads(lambda path: connection.send("PUT", path), paths))
            finally:
                sys.setswitchinterval(interval_s)
        assert {reply.status for reply in replies} == {204}
        assert server.requests == Counter({f"/admin/v2/{path}": 1 for path in paths})
        assert server.connections <= 8
