"""`schemactl rollout`: the order in which the pending change of a topic goes to its consumers, registries and producers."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from schemactl.checks.project_check import CheckRequest, check_project
from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.selection import TOPIC_HELP
from schemactl.cli.time_limit import add_timeout
from schemactl.core.deadline import DEFAULT_S, within
from schemactl.core.errors import NEGATIVE
from schemactl.core.terminal import redirected

_NOTHING: Final = {
    "not stored": "what changes is nothing that Pulsar compares, so there is no new version to roll out",
    "older version": "it has an older version's schema again, so there is no new version to roll out; `schemactl explain REVERTED_TO_OLDER` says more",
    "schema removed": "it has no schema any more, so there is no new version to roll out",
    "removed": "it is no longer declared, so there is no new version to roll out; docs/how-to/break.md#a-new-topic says how to end a topic",
}
"""What to say of a change that brings no version."""

if TYPE_CHECKING:
    from schemactl.checks.rollout import Rollout
    from schemactl.core.deadline import Deadline

_EPILOG = """\
Exit code 100: no order is safe, and the report says why. 0: the plan is printed, or there is no pending change of the schema.

examples:
  schemactl rollout orders                          of the files here
  schemactl rollout orders --base origin/main       of this branch, in a pull request
  schemactl rollout orders --base HEAD^             of what was merged last
  schemactl rollout orders --format markdown        a checklist
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rollout`."""
    parser.description = (
        "Show in which order to bring the pending change of a topic's schema to its clients and targets: consumers first, then the schema, "
        "then producers; or the other way round; or that no order is safe. The order depends on the change itself, on what the declared "
        "clients are built with, and on the strategy. Each step has the command that exits with 0 once the step is done."
    )
    parser.epilog = _EPILOG
    parser.add_argument("topic", metavar="TOPIC", help=TOPIC_HELP)
    add_options(
        parser,
        "--base REF: the change of HEAD, not of the working tree, against this ref (default: `approved` of the project file)",
    )
    add_format(parser, "text", "markdown", "json")
    add_timeout(parser, DEFAULT_S)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: there is a safe order, or nothing is pending; 100: there is none."""
    return within(args.timeout, lambda deadline: _run(args, context, deadline))


def _run(args: argparse.Namespace, context: Context, deadline: Deadline) -> int:
    from schemactl.checks.rollout import rollout
    from schemactl.cli.reading import reading
    from schemactl.core.names import find_one
    from schemactl.report import changes

    request = CheckRequest(context.directory, context.config, base=args.base, topics=(args.topic,))
    report = check_project(request, deadline, progress=context.reading_history(), note=context.note)
    known = reading(context, None)
    git = known.approved.catalog.topics
    changed = {row.topic for row in report.topics}
    name = find_one(args.topic, {**dict.fromkeys(changed), **dict.fromkeys(git)}, globs=False)
    versions = git[name].load().versions if name in git else ()
    elsewhere = known.elsewhere.get(name, ())
    found = rollout(name, report, known.project.targets, versions, elsewhere, known.approved.ref)
    if args.format == "json":
        context.report_json(topic=str(name), pending=found is not None, **(_value(found) if found else {}))
    elif found is None:
        known_reasons = (_NOTHING.get(row.change) for row in report.topics if row.topic == name)
        why = next(filter(None, known_reasons), "no change of its schema is pending")
        context.report(f"{name}: {why}.")
    elif args.format == "markdown":
        print(changes.render_markdown(found), file=redirected(sys.stdout))
    else:
        context.report(changes.render_rollout_text(found))
    return NEGATIVE if found and found.order == "no safe order" else 0


def _value(found: Rollout) -> dict[str, Any]:
    from schemactl.core.json_values import client_value

    return {
        "version": found.version,
        "version_if_rebased": found.version if found.rebased is None else found.rebased,
        "latest": found.latest,
        "strategy": found.strategy.value,
        "strategy_on": list(found.strategy_on),
        "order": found.order,
        "reasons": list(found.reasons),
        "fix": found.fix or None,
        "steps": [
            {
                "kind": step.kind,
                "target": step.target or None,
                "clients": [client_value(each) for each in step.clients],
                "text": step.text,
                "command": step.command,
            }
            for step in found.steps
        ],
    }
