"""Findings about topics that are to be used no longer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from schemactl.checking.run import Run
from schemactl.core.catalog import Deprecated, Namespace, Topic
from schemactl.core.errors import did_you_mean
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.wording import counted


def deprecations(run: Run, only: frozenset[TopicName] | None, today: date) -> Iterator[Finding]:
    """Yield topics that were to be removed before today, the day in UTC, and replacements that no file declares.

    Look at `only` these topics (None: all). A deprecated namespace is one finding, at the first of its topics.
    """
    said: set[Namespace] = set()
    for name in sorted(name for name in run.target.topics if only is None or name in only):
        topic, space = run.target.topics[name], run.target.namespaces.get(name.namespace_name)
        if topic.metadata.deprecated:
            names = ", ".join(client.name for client in topic.clients)
            clients = f" Declared clients: {names}." if names else ""
            yield from _deprecated(run, topic, topic, topic.metadata.deprecated, today, clients)
        elif space and space.metadata.deprecated and space not in said:
            said.add(space)
            count = sum(each.namespace_name == space.name for each in run.target.topics)
            text = f" It has {counted(count, 'topic')}."
            yield from _deprecated(run, topic, space, space.metadata.deprecated, today, text)


def _deprecated(
    run: Run, topic: Topic, holder: Topic | Namespace, said: Deprecated, today: date, more: str
) -> Iterator[Finding]:
    if said.remove_after and said.remove_after < today:
        use = f" Use {said.use} instead." if said.use else ""
        yield from run.find(
            "REMOVAL_OVERDUE",
            topic,
            f"{holder.name} is deprecated and was to be removed after {said.remove_after}.{use}{more}",
            source=holder.locate("/deprecated/remove_after"),
        )
    if said.use and said.use not in run.target.topics:
        others = [str(name) for name in run.target.topics if name != holder.name]
        yield from run.find(
            "REPLACEMENT_UNDECLARED",
            topic,
            f"{said.use}, which is to be used instead of {holder.name}, is declared by no file"
            f"{did_you_mean(str(said.use), others)}",
            source=holder.locate("/deprecated/use"),
        )
