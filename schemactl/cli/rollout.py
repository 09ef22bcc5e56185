"""`rollout`: show the order in which a change goes to consumers, registries and producers."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, add_timeout
from schemactl.cli.reading_setup import read_setup
from schemactl.cli.topic_selection import PART_HELP
from schemactl.core.deadline import DEFAULT_S
from schemactl.core.errors import ExitCode, UsageError, did_you_mean
from schemactl.core.json_values import ClientView
from schemactl.core.names import find_matching_topics, find_topic, format_kind_name
from schemactl.core.terminal import get_definition_stream

if TYPE_CHECKING:
    from schemactl.checks.rollout import Rollout


_REASONS_WITHOUT_VERSION: Final = {
    "not stored": "Pulsar does not compare the changed parts, so there is no new version to roll out",
    "older version": "it has an older version's schema again, so there is no new version to roll out; `schemactl explain REVERTED_TO_OLDER` says more",
    "schema removed": "its schema was removed, so there is no new version to roll out",
    "removed": "it is no longer declared, so there is no new version to roll out; `schemactl docs break` says how to end a topic",
}
"""The reports of `rollout` on changes that add no version."""

_KIND_REMOVED: Final = (
    "the kind is no longer declared, so there is no new version to roll out; `schemactl explain KIND_REMOVED` says more"
)

_ROLLOUT_EPILOG: Final = """\
Exit code 100: no order is safe, and the report says why. 0: the plan is printed, or there is no pending change of the schema.

examples:
  schemactl rollout orders                          of the files here
  schemactl rollout orders --base origin/main       of this branch, in a pull request
  schemactl rollout orders --base HEAD^             of the last merge
  schemactl rollout orders --format markdown        a checklist
"""


def configure_rollout(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rollout`."""
    parser.description = (
        "Show in which order to bring the pending change of a topic's schema to its clients and targets: consumers first, then the schema, "
        "then producers; or the other way round; or that no order is safe. The order depends on the change itself, on "
        "the schemas of the declared "
        "clients, and on the strategy. Each step has the command that exits with 0 once the step is done."
    )
    parser.epilog = _ROLLOUT_EPILOG
    parser.add_argument("topic", metavar="TOPIC[#KIND]", help=PART_HELP)
    add_options(
        parser,
        "--base REF: the change of HEAD, not of the working tree, against this ref (default: `approved` of the project file)",
    )
    add_format(parser, "text", "markdown", "json")
    add_timeout(parser, DEFAULT_S)


def run_rollout(args: argparse.Namespace, context: Context) -> int:
    """Print the order of the rollout; return 100 if no order is safe, else 0."""
    from schemactl.checks.checked_files import CheckRequest
    from schemactl.checks.project_check import check_project
    from schemactl.checks.rollout import make_rollout
    from schemactl.report.rollout import render_rollout_markdown, render_rollout_text

    setup = read_setup(context, None)
    git = setup.approved.catalog.topics
    request = CheckRequest(context.directory, context.config, approved_ref=args.base)
    check = partial(check_project, deadline=context.deadline, progress=context.reading_history(), note=context.note)
    text, separator, kind = args.topic.rpartition("#")
    # A topic whose own name has a `#` comes first.
    if not separator or find_matching_topics(args.topic, git):
        text, separator, kind = args.topic, "", ""
    try:
        report = check(replace(request, topics=(text,)))
    except UsageError:
        if not separator:
            raise
        # A new topic may have a `#` in its name.
        text, separator, kind = args.topic, "", ""
        report = check(replace(request, topics=(text,)))
    changed = {row.topic for row in report.topics}
    name = find_topic(text, {**dict.fromkeys(changed), **dict.fromkeys(git)}, globs=False)
    versions = git[name].load().versions if name in git else ()
    targets_with_own_numbers = setup.targets_with_own_numbers.get(name, ())
    rows = [row for row in report.topics if row.topic == name]
    known_kinds = dict.fromkeys([*(row.kind for row in rows), *(git[name].list_kind_keys() if name in git else ())])
    if separator and kind not in known_kinds:
        raise UsageError(f"{name} has no kind {kind!r}{did_you_mean(kind, filter(None, known_kinds))}")
    changed_kinds = dict.fromkeys(row.kind for row in rows if row.schema)
    plans = [
        make_rollout(
            name, report, setup.project.targets, versions, targets_with_own_numbers, setup.approved.ref, changed_kind
        )
        for changed_kind in ([kind] if separator else changed_kinds or [""])
    ]
    made_plans = [plan for plan in plans if plan]
    if args.format == "json":
        values = [{"kind": plan.kind or None, "pending": True, **_rollout_value(plan)} for plan in made_plans]
        value = values[0] if values else {"kind": kind or None, "pending": False}
        is_several = not separator and any(known_kinds)
        context.report_json(topic=str(name), **({"kinds": values} if is_several else value))
    elif not made_plans:
        reasons = [
            f"{format_kind_name(name, row.kind)}: {_KIND_REMOVED if row.kind and row.change == 'removed' else reason}."
            for row in rows
            if (row.kind == kind or not separator) and (reason := _REASONS_WITHOUT_VERSION.get(row.change))
        ]
        no_change = f"{format_kind_name(name, kind)}: no change of its schema is pending."
        context.report("\n".join(dict.fromkeys(reasons or [no_change])))
    elif args.format == "markdown":
        print("\n".join(map(render_rollout_markdown, made_plans)), file=get_definition_stream(sys.stdout))
    else:
        context.report("\n\n".join(map(render_rollout_text, made_plans)))
    return ExitCode.NEGATIVE if any(plan.order == "no safe order" for plan in made_plans) else 0


def _rollout_value(rollout: Rollout) -> dict[str, Any]:
    return {
        "version": rollout.version,
        "version_if_rebased": rollout.version if rollout.number_after_rebase is None else rollout.number_after_rebase,
        "latest": rollout.latest,
        "strategy": rollout.strategy.value,
        "strategy_on": list(rollout.strategy_on),
        "order": rollout.order,
        "reasons": list(rollout.reasons),
        "fix": rollout.fix or None,
        "steps": [
            {
                "kind": step.kind,
                "target": step.target or None,
                "clients": [ClientView.from_client(client) for client in step.clients],
                "text": step.text,
                "command": step.command or None,
            }
            for step in rollout.steps
        ],
    }
