"""`changelog`: list the changes from one commit to another, for release notes."""

from __future__ import annotations

import argparse
import sys

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format
from schemactl.cli.revisions import is_range, read_revision
from schemactl.cli.states import States
from schemactl.cli.topic_selection import add_filters
from schemactl.core.errors import UsageError
from schemactl.core.terminal import get_definition_stream


def configure_changelog(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `changelog`."""
    parser.description = (
        "The changes from one commit, branch or tag to another, for release notes, by namespace and topic: new versions and the "
        "change of each field, the first reader that breaks and its waiver, deletions, policies, commits and authors. The "
        "facts are the same as in `schemactl diff FROM..TO`."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl changelog v1.0..v1.1\n"
        "  schemactl changelog v1.1.. > release-notes.md            since a tag\n"
        "  schemactl changelog v1.0..v1.1 --format json\n"
        "  schemactl changelog v1.0..v1.1 --namespace shop/sales\n"
    )
    parser.add_argument("range", metavar="FROM..TO", help="two commits, branches or tags; omitted: HEAD")
    add_filters(parser)
    add_format(parser, "markdown", "json")


def run_changelog(args: argparse.Namespace, context: Context) -> int:
    """Print the changelog."""
    from schemactl.report import changes, changes_json

    states = States(context, args.topic, args.namespace)
    if not is_range(args.range, states):
        raise UsageError(f"{args.range}: expected FROM..TO", fix=f"write {args.range}..HEAD for all since then")
    revision = read_revision(states, args.range, args.topic, args.namespace)
    error = states.find_broken(args.topic, args.namespace)
    render = changes_json.render_revision_json if args.format == "json" else changes.render_changelog
    print(render(revision), file=get_definition_stream(sys.stdout))
    if error:
        raise error
    return 0
