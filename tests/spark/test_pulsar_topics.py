"""Topics that are listed through Pulsar's admin REST API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from schemactl.spark.pulsar.options import PulsarProblem, parse_connection, parse_read_options
from schemactl.spark.pulsar.topics import Cluster, list_partitions


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


class Number(Page):
    """JSON, at least."""

    content = b"5"


class Listing(Page):
    """Two topics, and who asked for them."""

    content = b'["persistent://t/n/a", "persistent://t/n/b-partition-0"]'
    requested_paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.requested_paths.append(self.path)
        super().do_GET()


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


@pytest.mark.parametrize("page", [Page, Number])
def test_an_admin_url_where_no_pulsar_answers_is_told(page: type[Page]) -> None:
    with serve_pages(page) as url:
        topics = parse_read_options({**url, "topicsPattern": "t/n/.*"}, "a batch").topics
        with pytest.raises(PulsarProblem, match=r"t/n: http://.* does not respond with a list of them"):
            list_partitions(Cluster(parse_connection(url)), topics)


def test_a_namespace_is_listed_once_however_many_of_its_topics_are_read() -> None:
    with serve_pages(Listing) as url:
        topics = parse_read_options({**url, "topics": "t/n/a,t/n/b,t/n/c"}, "a batch").topics
        with pytest.raises(PulsarProblem, match=r"unknown topic persistent://t/n/c; t/n has .*/a, .*/b$"):
            list_partitions(Cluster(parse_connection(url)), topics)
    assert Listing.requested_paths == ["/admin/v2/persistent/t/n", "/admin/v2/persistent/t/n/partitioned"]
