"""Share one `schemactl serve` between the tests of a worker, each in another tenant."""

from __future__ import annotations

from collections.abc import Iterator

import admin_rest
import brokers
import pytest


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with admin_rest.serve_folder() as (client, _):
        yield client


@pytest.fixture
def client(url: str) -> Iterator[admin_rest.Client]:
    opened = admin_rest.Client(url)
    yield opened
    opened.close()


@pytest.fixture
def tenant(client: admin_rest.Client) -> str:
    """A tenant with the namespace `ns`."""
    name = brokers.new_tenant()
    assert client.call("PUT", f"/tenants/{name}", {"allowedClusters": ["standalone"]}).status == 204
    assert client.call("PUT", f"/namespaces/{name}/ns", {}).status == 204
    return name
