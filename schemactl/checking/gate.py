"""The settings that judge a change are those that were approved; a change that weakens them is a finding of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from schemactl.checking.merging import is_same_schema
from schemactl.checking.report import CheckReport
from schemactl.checking.run import Run
from schemactl.checking.settings import is_below, setting_changes
from schemactl.checking.targets import ChangedOverlays, target_changes
from schemactl.core.errors import Source
from schemactl.core.findings import Finding
from schemactl.core.names import TopicName
from schemactl.core.project import Project

_SETTINGS: Final = "What was approved judges this change; from its merge on, that no longer holds."
_TARGETS: Final = "A change is judged for the targets as it leaves them: this one for less than was approved."

Locate = Callable[[tuple[str, ...]], Source]
"""Returns the place of a key in the project file; of a removed one, that of the nearest key that is left."""


def judging(proposed: Project, approved: Project | None) -> Project:
    """Return the project by which a change is judged.

    Args:
        proposed: as the change has it: paths are its own.
        approved: as it was approved: the settings that judge are taken from here. Declarations are read under the roots of
            both, so that none goes missing. None: nothing was approved, and the change speaks for itself.
    """
    if approved is None:
        return proposed
    roots = {*proposed.roots, *approved.roots}
    return replace(
        proposed,
        roots=tuple(
            sorted(root for root in roots if not any(is_below(root, each) for each in roots - {root}))
        ),
        previous_roots=tuple(
            sorted({*proposed.previous_roots, *approved.previous_roots, *approved.roots} - {*proposed.roots})
        ),
        approved=approved.approved,
        pulsar=approved.pulsar,
        release=approved.release,
        defaults=approved.defaults,
        severities=approved.severities,
        namespace_severities=approved.namespace_severities,
        proto_rules=approved.proto_rules,
        require_declared_namespaces=approved.require_declared_namespaces,
        waivers=approved.waivers,
        generate=approved.generate or proposed.generate,
        targets=approved.targets,
    )


def with_settings(
    report: CheckReport, run: Run, proposed: Project, locate: Locate, overlays: ChangedOverlays
) -> CheckReport:
    """Return `report` with what the change does to the settings that judge: findings and notes.

    A setting that judges less, and a topic that is a draft again, are findings that no severity of the project concerns: errors
    beside a changed schema, or where topics are removed, else warnings. The others are notes.

    Args:
        report: on the topics.
        run: whose project judges.
        proposed: the project as the change has it.
        locate: returns the place of a key in its file.
        overlays: of each target that was approved, as they were approved and as the change has them.
    """
    changes = [*setting_changes(run.project, proposed, run), *target_changes(proposed, overlays, run)]
    weaker = [change for change in changes if change.loses]
    named = sorted(name for name, topic in run.target.topics.items() if topic.lifecycle == "draft")
    drafts = [
        topic
        for topic in map(run.target.topics.__getitem__, named)
        if not (topic.deleted or run.is_draft(topic))
    ]
    removes = any(change.key == ("roots",) for change in weaker)

    def is_error(targets: tuple[str, ...], topics: tuple[TopicName, ...]) -> bool:
        """Whether a schema changes beside it: on one of the targets, or of one of these topics, which none may have any more."""
        beside = (seen for seen in report.topics if seen.change not in ("policies", "clients"))
        if removes or any(not (targets and seen.targets) or {*targets} & {*seen.targets} for seen in beside):
            return True
        both = ((run.approved.topics[name], run.target.topics.get(name)) for name in topics if targets)
        return any(now is None or not is_same_schema(was.schema, now.schema) for was, now in both)

    rule = run.rules["GATE_WEAKENED"]

    def finding(
        what: str,
        source: Source | None,
        topic: TopicName | None = None,
        targets: tuple[str, ...] = (),
        topics: tuple[TopicName, ...] = (),
        *,
        of_target: bool = False,
    ) -> Finding:
        return Finding(
            rule=rule.id,
            severity="error" if is_error(targets, topics) else "warning",
            verdict=rule.verdict,
            topic=topic,
            source=source,
            message=f"{what}. {_TARGETS if of_target else _SETTINGS}",
            fix=rule.fix,
            targets=targets,
        )

    found = [
        finding(
            change.sentence,
            change.source or locate(change.key),
            None,
            change.targets,
            change.topics,
            of_target=change.key[0] == "targets",
        )
        for change in weaker
    ]
    found += [
        finding(f"{topic.name} is a draft again, was stable", topic.locate("/lifecycle"), topic.name)
        for topic in drafts
    ]
    notes = [f"from the merge on, {change.sentence}" for change in changes if not change.loses]
    return replace(report, findings=(*found, *report.findings), notes=(*report.notes, *notes))
