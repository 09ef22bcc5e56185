"""What holds for every test."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_git_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run the same inside a Git hook, and whatever the developer's Git settings are."""
    for name in os.environ:
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
