"""An empty registry to plan against."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from schemactl.registry.embedded import EmbeddedRegistry


@pytest.fixture
def registry() -> Iterator[EmbeddedRegistry]:
    opened = EmbeddedRegistry(":memory:")
    yield opened
    opened.close()
