"""The project file for a repository that has none."""

from __future__ import annotations

from schemactl.declare.writing import yaml_text
from schemactl.model import Release


def project_text(*, root: str, target: str, registry: str, release: Release) -> bytes:
    """A project that declares what is in the folder `root`, with one target."""
    targets = {target: {"registry": registry}}
    return yaml_text({"version": 1, "roots": [root], "pulsar": release.value, "targets": targets}).encode()
