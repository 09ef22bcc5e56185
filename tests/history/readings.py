"""Read the approved history of a repository of the tests."""

from __future__ import annotations

import json
from pathlib import Path

from scratch import Scratch

from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.history.approved_history import History, read_history
from schemactl.history.git import Repository

PROJECT = Project(roots=("topics",))
ORDERS = TopicName.parse("shop/sales/orders")


def read(path: Scratch | Path, project: Project = PROJECT, ref: str | None = None) -> History:
    """Read the approved history with all definitions."""
    if isinstance(path, Scratch):
        path.flush()
        path = path.path
    with Repository.open(path) as repository:
        approved = read_history(repository, project, ref)
        approved.catalog.load()
        return approved


def list_subjects(approved: History, topic: TopicName = ORDERS) -> list[str]:
    """List the subjects of the commits that added the topic's versions."""
    versions = approved.catalog.topics[topic].versions
    assert [version.number for version in versions] == list(range(len(versions)))
    return [version.commit.subject for version in versions if version.commit]


def clone(upstream: Scratch, *options: str) -> Scratch:
    """Clone `upstream` to the folder next to it."""
    path = upstream.path.parent / "clone"
    upstream.git("clone", "-q", *options, upstream.path.as_uri(), str(path))
    return Scratch.open_existing(path)


def read_commands(trace: Path) -> list[list[str]]:
    """Read the git commands from a trace (GIT_TRACE2_EVENT), and remove the trace."""
    events = [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []
    trace.unlink(missing_ok=True)
    return [event["argv"] for event in events if event["event"] == "start"]
