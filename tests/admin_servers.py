"""The servers of the admin API on which a test runs: `schemactl serve` and real brokers, of each release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import admin_rest
import brokers
import pytest

KINDS = [
    pytest.param("serve 4.0", marks=pytest.mark.network),
    pytest.param("serve 4.2", marks=pytest.mark.network),
    pytest.param("serve 5.0", marks=pytest.mark.network),
    pytest.param("4.0", marks=pytest.mark.broker),
    pytest.param("4.2", marks=pytest.mark.broker),
    pytest.param("5.0", marks=pytest.mark.broker),
]
"""The servers as parameters of a fixture."""


class Server(NamedTuple):
    """A server that answers.

    Attributes:
        url: the URL of the admin API.
        service_url: the URL for clients, or "" for `serve`.
        release: the release, such as "4.0".
    """

    url: str
    service_url: str
    release: str


@contextmanager
def open_server(kind: str, folder: Path) -> Iterator[Server]:
    """Provide the server of this kind; `serve` has its project in `folder`."""
    if not kind.startswith("serve"):
        broker = brokers.start_broker(kind)
        yield Server(broker.url, broker.service_url, kind)
        return
    release = kind.removeprefix("serve ")
    (folder / "schemactl.yaml").write_text(f'version: 1\npulsar: "{release}"\n')
    with admin_rest.serve_folder("--registry", "sqlite:registry.db", folder=folder) as (url, _):
        yield Server(url, "", release)
