"""The example's history on real brokers, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import brokers
import pytest
import shop

RELEASES = list(brokers.RELEASES)


class OnPulsar:
    """The example's repository with a target on a real broker, under other names for its namespaces."""

    def __init__(self, folder: Path, release: str, credentials: str = "") -> None:
        self.folder = shop.make(folder)
        self.tenant = brokers.new_tenant()
        self.broker = brokers.running(release)
        project = self.folder / "schemactl.yaml"
        target = (
            f'  prod:\n    registry: "{self.broker.url}"\n{credentials}'
            f"    namespaces: {{shop/sales: {self.tenant}/sales, shop/web: {self.tenant}/web}}\n"
        )
        text = project.read_text(encoding="utf-8")
        project.write_text(text.replace("targets:\n", f"targets:\n{target}"), encoding="utf-8")

    def run(self, *arguments: str) -> CompletedProcess[str]:
        return shop.schemactl(self.folder, *arguments, "--target", "prod")

    def git_versions(self) -> dict[str, list[int]]:
        """The numbers that Git gives, by topic."""
        plan = json.loads(self.run("plan", "--format", "json").stdout)
        found: dict[str, list[int]] = {}
        for step in plan["steps"]:
            if step["action"] == "register_version":
                assert step["version"] == step["answer"]["version"]
                found.setdefault(step["topic"], []).append(step["version"])
        return found


@pytest.mark.parametrize("release", RELEASES)
def test_the_history_is_applied_once_and_has_gits_numbers(tmp_path: Path, release: str) -> None:
    found = OnPulsar(tmp_path, release)
    planned = found.git_versions()
    assert len(planned) >= 4
    first = found.run("plan", "--detailed-exitcode")
    assert first.returncode == 2, first.stderr
    assert f"answers as of Pulsar {release}" in first.stdout
    applied = found.run("apply", "--auto-approve", "--relax-while-replaying")
    assert (applied.returncode, applied.stderr.count("Error")) == (0, 0), applied.stderr
    again = found.run("plan", "--detailed-exitcode")
    assert again.returncode == 0, again.stdout
    assert "No changes." in again.stdout
    with brokers.opened(found.broker) as registry:
        held = registry.read(registry.everything())
        for topic in held.topics.values():
            if topic.name.tenant == found.tenant:
                numbers = [version.number for version in topic.versions]
                assert numbers == planned.get(str(topic.name), [])
                commits = [
                    version.info and "schemactl.commit" in version.info.properties
                    for version in topic.versions
                ]
                assert all(commits)
