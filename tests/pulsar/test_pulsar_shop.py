"""The example's history on real brokers, through the command line."""

from __future__ import annotations

from pathlib import Path

import brokers
import pytest
from shop_on_pulsar import OnPulsar

from schemactl.changes import COMMIT_PROPERTY
from schemactl.model import NamespaceName


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.EACH_RELEASE)
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
    spaces = frozenset(NamespaceName(found.tenant, name) for name in ("sales", "web"))
    with brokers.opened(broker) as registry:
        held = registry.read(registry.everything(spaces))
    assert held.namespaces.keys() == spaces
    for topic in held.topics.values():
        assert [version.number for version in topic.versions] == planned.get(str(topic.name), [])
        for version in topic.versions:
            assert version.info is not None
            assert COMMIT_PROPERTY in version.info.properties
