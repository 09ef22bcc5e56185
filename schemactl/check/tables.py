"""What is found about the tables that a changed topic feeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from schemactl.check.proposal import Proposal
from schemactl.check.run import Run
from schemactl.model import SchemaInfo, Topic
from schemactl.verdicts import Finding

if TYPE_CHECKING:
    # Most checks concern no table: it is imported where one is.
    from schemactl.tables.changes import Change
    from schemactl.tables.impact import Impact


def impact_of(run: Run, proposal: Proposal, before: Topic) -> Impact | None:
    """What becomes of tables whose rows were read as `before` says; None: the project generates no columns to read with."""
    generate = run.project.generate
    now, then = _reader(proposal, proposal.topic), _reader(proposal, before)
    if generate is None or now is None or then is None:
        return None
    from schemactl.tables.impact import impact

    older = [version.info for version in reversed(proposal.versions) if version.info]
    return impact(then, now, older=older, generate=generate, release=run.project.release)


def _reader(proposal: Proposal, topic: Topic) -> SchemaInfo | None:
    """What the generated package reads messages as; None: the version that is pinned does not exist."""
    if topic.reader == "latest":
        return topic.schema
    if topic is proposal.topic and topic.reader == proposal.number:
        return proposal.schema
    return next((each.info for each in proposal.versions if each.number == topic.reader), None)


def findings(run: Run, proposal: Proposal, found: Impact | None) -> Iterator[Finding]:
    """One for each column that tables must be written anew for, then one for all else that happens to them."""
    if found is None:
        return
    from schemactl.tables.words import advice, said, told

    topic = proposal.topic
    changes = [change for change in found.changes if change.effect != "rewrite"]
    for change in found.changes:
        if change.effect == "rewrite":
            at = _pointer(run, proposal, change)
            yield from run.find(
                "TABLE_REWRITE",
                topic,
                f"Tables fed by {topic.name}: {said(change)}",
                source=proposal.schema.locate(at),
                field=change.column,
                pointer=at,
            )
    if changes or found.refusal:
        lines = [said(change) for change in changes] or [
            f"Spark has no columns for it any more: {found.refusal}."
        ]
        yield from run.find(
            "TABLE_CHANGED",
            topic,
            told(str(topic.name), lines),
            source=proposal.schema.locate(_pointer(run, proposal, changes[0]) if changes else ""),
            fix=advice(changes),
        )


def _pointer(run: Run, proposal: Proposal, change: Change) -> str:
    """The place of a column in the declared definition, as far as it is there."""
    from schemactl.tables.impact import pointer

    return pointer(proposal.schema, change.path, run.project.release)
