"""Registries to hold to the contract, each empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemactl.registry.embedded import EmbeddedRegistry


class Clock:
    """Milliseconds that pass when told to."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock_ms() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "file"])
def registry(request: pytest.FixtureRequest, tmp_path: Path, clock_ms: Clock) -> Iterator[EmbeddedRegistry]:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "registry.db")
    opened = EmbeddedRegistry(path, clock_ms=clock_ms)
    yield opened
    opened.close()
