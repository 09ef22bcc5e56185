"""Findings about the tables that a changed topic feeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from schemactl.checking.run import Proposal, Run
from schemactl.core.catalog import Topic
from schemactl.core.findings import Finding
from schemactl.core.schema import SchemaInfo, live

if TYPE_CHECKING:
    # Most checks concern no table: it is imported where one is.
    from schemactl.tables.impact import Impact


def impact_of(run: Run, proposal: Proposal, before: Topic) -> Impact | None:
    """Return what happens to tables whose rows were read as `before` says; None: the project generates no columns to read with."""
    generate = run.project.generate
    now, then = _reader(proposal, proposal.topic), _reader(proposal, before)
    if generate is None or now is None or then is None:
        return None
    from schemactl.tables.impact import impact

    older = [version.info for version in reversed(proposal.versions) if version.info]
    return impact(then, now, older=older, generate=generate, release=run.project.release)


def _reader(proposal: Proposal, topic: Topic) -> SchemaInfo | None:
    """Return what the generated package reads messages as; None: the version that is pinned does not exist."""
    if topic.reader == "latest":
        return topic.schema
    if topic is proposal.topic and topic.reader == proposal.number:
        return proposal.schema
    return next((each.info for each in proposal.versions if each.number == topic.reader), None)


def findings(run: Run, proposal: Proposal, found: Impact | None) -> Iterator[Finding]:
    """Yield a finding for each column that tables must be rewritten for, then one for all other effects."""
    if found is None:
        return
    from schemactl.tables.impact import Pointers
    from schemactl.tables.messages import MAX_SHOWN, advice, effects_on, sentence, summary

    if not found.changes and not found.refusal:
        return
    topic = proposal.topic
    places = Pointers(proposal.schema, run.project.release) if found.changes else None
    rewrites = [change for change in found.changes if change.effect == "rewrite"]
    for number, change in enumerate(rewrites[:MAX_SHOWN]):
        at = places.of(change.path) if places else ""
        more = len(rewrites) - MAX_SHOWN if number == MAX_SHOWN - 1 else 0
        and_more = f" The same for {more:,} more columns." if more > 0 else ""
        yield from run.find(
            "TABLE_REWRITE",
            topic,
            f"Tables fed by {topic.name}: {sentence(change)}{and_more}",
            source=proposal.schema.locate(at),
            field=change.column,
            pointer=at,
            fingerprint=proposal.fingerprint(
                "TABLE_REWRITE", f"{at}#{change.column}", against=_latest(proposal)
            ),
        )
    changes = [change for change in found.changes if change.effect != "rewrite"]
    if changes or found.refusal:
        lines = [sentence(change) for change in changes[:MAX_SHOWN]] or [
            f"Spark has no columns for it any more: {found.refusal}."
        ]
        if len(changes) > MAX_SHOWN:
            lines.append(f"The same for {len(changes) - MAX_SHOWN:,} more columns: {summary(changes)}.")
        at = places.of(changes[0].path) if places and changes else ""
        yield from run.find(
            "TABLE_CHANGED",
            topic,
            effects_on(str(topic.name), lines),
            source=proposal.schema.locate(at),
            fix=advice(changes),
            fingerprint=proposal.fingerprint("TABLE_CHANGED", "", against=_latest(proposal)),
        )


def _latest(proposal: Proposal) -> list[int]:
    return [version.number for version in live(proposal.versions)[-1:]]
