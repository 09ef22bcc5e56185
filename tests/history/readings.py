"""What Git says is approved, read from a repository of the tests."""

from __future__ import annotations

import json
from pathlib import Path

from scratch import Scratch

from schemactl import history
from schemactl.core.names import TopicName
from schemactl.core.project import Project

PROJECT = Project(roots=("topics",))
ORDERS = TopicName.parse("shop/sales/orders")


def read(path: Scratch | Path, project: Project = PROJECT, ref: str | None = None) -> history.History:
    """The approved history, with all definitions."""
    if isinstance(path, Scratch):
        path.flush()
        path = path.path
    with history.Repository.open(path) as repository:
        found = history.read(repository, project, ref)
        found.catalog.load()
        return found


def subjects(approved: history.History, topic: TopicName = ORDERS) -> list[str]:
    """The subjects of the commits that brought the topic's versions."""
    found = approved.catalog.topics[topic].versions
    assert [version.number for version in found] == list(range(len(found)))
    return [version.commit.subject for version in found if version.commit]


def clone(upstream: Scratch, *options: str) -> Scratch:
    """A clone beside `upstream`."""
    path = upstream.path.parent / "clone"
    upstream.git("clone", "-q", *options, upstream.path.as_uri(), str(path))
    return Scratch.opened(path)


def started(trace: Path) -> list[list[str]]:
    """The git commands in a trace of git's own (GIT_TRACE2_EVENT), which is emptied."""
    events = [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []
    trace.unlink(missing_ok=True)
    return [event["argv"] for event in events if event["event"] == "start"]
