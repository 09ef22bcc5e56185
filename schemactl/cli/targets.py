"""`targets`: show the targets that a project declares."""

from __future__ import annotations

import argparse
from typing import Any

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format
from schemactl.cli.target_selection import read_approved_project
from schemactl.core.catalog import select_target_topics
from schemactl.core.terminal import format_table


def configure_targets(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `targets`."""
    parser.description = (
        "List the targets of the approved project file: registry, release, names, differences, position, and how many of the "
        "declared topics it has. It contacts no registry; `schemactl status` does that."
    )
    parser.epilog = "examples:\n  schemactl targets\n  schemactl targets --format json\n"
    add_format(parser)


def run_targets(args: argparse.Namespace, context: Context) -> int:
    """Print the targets."""
    project, _ = context.project()
    approved = read_approved_project(project, context)
    if approved:
        old_targets, new_targets = approved.project.targets, project.targets
        changes = [
            *(f"{name} is new" for name in new_targets.keys() - old_targets.keys()),
            *(f"{name} is removed" for name in old_targets.keys() - new_targets.keys()),
            *(
                f"{name} has other settings"
                for name in new_targets.keys() & old_targets
                if new_targets[name] != old_targets[name]
            ),
        ]
        if changes:
            context.note(
                f"{project.path} in the working tree changes targets ({', '.join(sorted(changes))}), from the merge into {approved.ref} on; "
                "the approved targets follow"
            )
        project = approved.project
    topics = context.approved(project).catalog.topics
    declared = [name for name in topics if not topics[name].deleted]
    values: list[dict[str, Any]] = [
        {
            "target": target.name,
            "registry": target.registry,
            "pulsar": target.pulsar or project.pulsar,
            "topics": len(select_target_topics(declared, target)),
            "tenants": dict(target.tenants),
            "namespaces": {str(declared): str(renamed) for declared, renamed in target.namespaces.items()},
            "overlays": list(target.overlays),
            "include": list(target.include),
            "exclude": list(target.exclude),
            "promoted": target.promoted,
            "after": list(target.after),
            "cluster": target.cluster or None,
            "labels": dict(target.labels),
            "properties": dict(target.properties),
        }
        for target in project.targets.values()
    ]
    if args.format == "json":
        context.report_json(topics=len(declared), targets=values)
    elif values:
        blocks = []
        for value in values:
            topics_text = (
                str(len(declared)) if value["topics"] == len(declared) else f"{value['topics']} of {len(declared)}"
            )
            rows = [("pulsar", value["pulsar"]), ("topics", topics_text)]
            for key, setting in value.items():
                if not setting or key in ("target", "registry", "pulsar", "topics"):
                    continue
                items = [f"{name}: {text}" for name, text in setting.items()] if isinstance(setting, dict) else setting
                rows.append((key, setting if isinstance(setting, str) else ", ".join(items)))
            blocks.append("\n".join([f"{value['target']}  {value['registry']}", *format_table(rows, indent=2)]))
        context.report("\n\n".join(blocks))
    else:
        context.report(f"{project.path} has no targets.")
    return 0
