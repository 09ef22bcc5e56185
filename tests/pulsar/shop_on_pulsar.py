"""The example's repository with a target on a real broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import brokers
import shop


class OnPulsar:
    """The example's repository with a target `prod` on a real broker, where its namespaces have other names."""

    def __init__(self, folder: Path, broker: brokers.Broker, credentials: str = "") -> None:
        self.folder = shop.make(folder)
        self.tenant = brokers.new_tenant()
        project = self.folder / "schemactl.yaml"
        target = (
            f'  prod:\n    registry: "{broker.url}"\n{credentials}'
            f"    namespaces: {{shop/sales: {self.tenant}/sales, shop/web: {self.tenant}/web}}\n"
        )
        text = project.read_text(encoding="utf-8")
        project.write_text(text.replace("targets:\n", f"targets:\n{target}"), encoding="utf-8")

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """What the command prints, and its exit code."""
        command = [sys.executable, "-m", "schemactl", *arguments, "--target", "prod", "--trust-working-tree"]
        surroundings = {**os.environ, **environment}
        return subprocess.run(
            command, cwd=self.folder, env=surroundings, capture_output=True, text=True, check=False
        )

    def git_versions(self) -> dict[str, list[int]]:
        """The numbers that Git gives, by topic."""
        plan = json.loads(self.run("plan", "--format", "json").stdout)
        found: dict[str, list[int]] = {}
        for step in plan["steps"]:
            if step["action"] == "register_version":
                assert step["version"] == step["answer"]["version"]
                found.setdefault(step["topic"], []).append(step["version"])
        return found
