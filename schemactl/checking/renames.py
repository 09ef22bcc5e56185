"""Findings about topics that have another name now, and do not say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from schemactl.checking.merging import declared
from schemactl.checking.run import Proposal, Run, is_rejected
from schemactl.core.catalog import Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo
from schemactl.formats.type_spec import outline

_ALIKE: Final = 0.6
"""So much of two definitions is the same at least if one is the other's successor."""

Parts = frozenset[tuple[str, str]]


def undeclared(run: Run, names: Iterable[TopicName]) -> Iterator[Finding]:
    """Yield a finding for each new topic among `names` that seems to be one that the change removes.

    It is an error where the schema breaks what the former name's strategy protects: without `renamed_from` the two are not compared.
    """
    kept = {name.schema_id for name in run.target.topics}
    # An approved topic is read when it is looked at, so by name first.
    lost = [name for name in run.approved.topics if name.schema_id not in kept]
    gone = {name for name in lost if not run.approved.topics[name].deleted}
    renamed = {topic.renamed_from for topic in run.target.topics.values()}
    removed = _by_record(run.approved.topics[name] for name in gone - renamed)
    if not removed:
        return
    added = _by_record(
        topic
        for name in names
        if (topic := run.target.topics.get(name))
        and topic.renamed_from not in gone
        and not declared(run.approved, name)
    )
    for key, topics in added.items():
        candidates = removed.get(key, [])
        for topic, parts in topics:
            found = max(candidates, key=lambda each: _alike(parts, each[1]), default=None)
            if found and _alike(parts, found[1]) >= _ALIKE:
                candidates.remove(found)
                yield from _renamed(run, topic, found[0])


def _by_record(topics: Iterable[Topic]) -> dict[str, list[tuple[Topic, Parts]]]:
    """Return topics, with the parts of their definitions, by the name of their first record; those without one are left out."""
    found: dict[str, list[tuple[Topic, Parts]]] = {}
    for topic in sorted(topics, key=lambda topic: topic.name):
        parts = _parts(topic.schema) if topic.schema else {}
        record = next((name.rpartition(".")[0] for name in parts if "." in name), None)
        if topic.schema and record:
            found.setdefault(record, []).append((topic, frozenset(parts.items())))
    return found


def _parts(schema: SchemaInfo) -> dict[str, str]:
    try:
        return outline(schema.load())
    except InvalidSchema:
        return {}


def _alike(one: Parts, other: Parts) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def _renamed(run: Run, topic: Topic, former: Topic) -> Iterator[Finding]:
    former = former.load()
    strategy, level = run.approved.strategy(former.name, run.project.defaults)
    if topic.schema is None or not former.versions:
        return
    proposal = Proposal.of(topic, topic.schema.load(), former.versions, strategy, level)
    breaks = former.lifecycle == "stable" and is_rejected(proposal.verdict(run.project))
    latest = former.versions[-1].number
    # On the former topic: its readers are concerned, also where the new one is a draft.
    yield from run.find(
        "RENAME_UNDECLARED",
        former,
        f"{topic.name} is new, and {former.name} ({former.source} before the change) is gone, which had nearly the same definition."
        + (f" The new one breaks what {strategy} protects there." if breaks else ""),
        fix=f"If it is the same topic, add `renamed_from: {former.name}`, and its versions are compared, too; else remove the old one "
        "in a change of its own",
        source=topic.source,
        severity="error" if breaks else None,
        against=(latest,),
        fingerprint=proposal.fingerprint("RENAME_UNDECLARED", "", against=(latest,)),
    )
