"""Topics that are listed through Pulsar's admin REST API."""

from __future__ import annotations

from typing import ClassVar

import pytest

from schemactl.spark.pulsar.options import PulsarProblem, parse_connection, parse_read_options
from schemactl.spark.pulsar.topics import Cluster, list_partitions

from .http_pages import Page, serve_pages


class Number(Page):
    """JSON, at least."""

    content = b"5"


class Listing(Page):
    """Two topics, and who asked for them."""

    content = b'["persistent://t/n/a", "persistent://t/n/b-partition-0"]'
    requested_paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:  # noqa: N802  the name in the standard library
        self.requested_paths.append(self.path)
        super().do_GET()


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
