"""JSON messages are judged by what Pulsar's Java client reads."""

from __future__ import annotations

from typing import Any

import brokers
import pytest
import yaml
from java_json import start_client
from json_reader_table import PAGE, RECORDED, measure, render_page

MEASURED: Any = yaml.safe_load(RECORDED.read_text())


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.EACH_RELEASE)
def test_java_client_reads_as_recorded(release: str) -> None:
    with start_client(brokers.jars(brokers.RELEASES[release])) as client:
        assert measure(client) == MEASURED


def test_page_has_the_recorded_results() -> None:
    assert render_page(MEASURED) == PAGE.read_text()
