"""`schemactl targets`: the environments of the project."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format
from schemactl.cli.selection import reviewed_project
from schemactl.core.terminal import table

if TYPE_CHECKING:
    from schemactl.core.project import Project, Target


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `targets`."""
    parser.description = (
        "List the targets of the approved project file: registry, release, names, what differs there, how far each is, and how many of the "
        "declared topics it has. No registry is asked; `schemactl status` does that."
    )
    parser.epilog = "examples:\n  schemactl targets\n  schemactl targets --format json\n"
    add_format(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the list is printed."""
    from schemactl.core.catalog import chosen_topics

    found, _ = context.project()
    approved = reviewed_project(found, context)
    project = approved.project if approved else found
    topics = context.approved(project).catalog.topics
    declared = [name for name in topics if not topics[name].deleted]
    targets = [
        _target(target, project, len(chosen_topics(declared, target))) for target in project.targets.values()
    ]
    if args.format == "json":
        context.report_json(topics=len(declared), targets=targets)
    elif targets:
        context.report("\n\n".join(_text(each, len(declared)) for each in targets))
    else:
        context.report(f"{project.path} has no targets.")
    return 0


def _target(target: Target, project: Project, topics: int) -> dict[str, Any]:
    return {
        "target": target.name,
        "registry": target.registry,
        "pulsar": target.pulsar or project.pulsar,
        "topics": topics,
        "tenants": dict(target.tenants),
        "namespaces": {str(own): str(there) for own, there in target.namespaces.items()},
        "overlays": list(target.overlays),
        "include": list(target.include),
        "exclude": list(target.exclude),
        "promoted": target.promoted,
        "after": list(target.after),
        "cluster": target.cluster or None,
        "labels": dict(target.labels),
    }


def _text(facts: dict[str, Any], declared: int) -> str:
    return "\n".join(
        [f"{facts['target']}  {facts['registry']}", *(f"  {row}" for row in table([*_rows(facts, declared)]))]
    )


def _rows(facts: dict[str, Any], declared: int) -> Iterator[tuple[str, str]]:
    yield "pulsar", facts["pulsar"]
    yield "topics", str(declared) if facts["topics"] == declared else f"{facts['topics']} of {declared}"
    for key, value in facts.items():
        entries = [f"{one}: {other}" for one, other in value.items()] if isinstance(value, dict) else value
        if value and key not in ("target", "registry", "pulsar", "topics"):
            yield key, value if isinstance(value, str) else ", ".join(entries)
