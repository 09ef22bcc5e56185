"""Topics that are listed through Pulsar's admin REST API."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from schemactl.spark.pulsar_connection import PulsarProblem
from schemactl.spark.pulsar_options import connection_of, reading_of
from schemactl.spark.pulsar_topics import partitions_of


class Page(BaseHTTPRequestHandler):
    """What stands where somebody took another server for Pulsar's."""

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


@pytest.fixture(params=[Page, Number])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), request.param) as server:
        serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


def test_an_admin_url_where_no_pulsar_answers_is_told(url: str) -> None:
    given = {"service.url": "pulsar://127.0.0.1:6650", "admin.url": url, "topicsPattern": "t/n/.*"}
    topics = reading_of(given, "a batch").topics
    with pytest.raises(PulsarProblem, match=r"t/n: http://.* answers with no list of them"):
        partitions_of(None, connection_of(given), topics)
