"""The example's history on real brokers, through the command line."""

from __future__ import annotations

from pathlib import Path

import brokers
import pytest
from shop_on_pulsar import OnPulsar

RELEASES = list(brokers.RELEASES)


@pytest.mark.parametrize("release", RELEASES)
def test_the_history_is_applied_once_and_has_gits_numbers(tmp_path: Path, release: str) -> None:
    broker = brokers.running(release)
    found = OnPulsar(tmp_path, broker)
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
    with brokers.opened(broker) as registry:
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
