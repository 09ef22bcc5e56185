"""`schemactl changelog`: what changed between two states, for release notes."""

from __future__ import annotations

import argparse
import sys

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format
from schemactl.cli.revision import is_range, read_revision
from schemactl.cli.selection import add_filters
from schemactl.cli.states import States
from schemactl.core.errors import UsageError
from schemactl.core.terminal import redirected


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `changelog`."""
    parser.description = (
        "What changed from one commit, branch or tag to another, for release notes, by namespace and topic: new versions and what "
        "became of each field, what breaks readers first and by which waiver, what is deleted, policies, commits and authors. The "
        "facts are those of `schemactl diff FROM..TO`."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl changelog v1.0..v1.1\n"
        "  schemactl changelog v1.1.. > release-notes.md            since a tag\n"
        "  schemactl changelog v1.0..v1.1 --format json\n"
        "  schemactl changelog v1.0..v1.1 --namespace shop/sales\n"
    )
    parser.add_argument("range", metavar="FROM..TO", help="two commits, branches or tags; left out: HEAD")
    add_filters(parser)
    add_format(parser, "markdown", "json")


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the changelog is printed."""
    from schemactl.report import changes

    states = States(context)
    if not is_range(args.range, states):
        raise UsageError(
            f"{args.range}: expected FROM..TO", fix=f"write {args.range}..HEAD for all since then"
        )
    found = read_revision(states, args.range, args.topic, args.namespace)
    render = changes.render_revision_json if args.format == "json" else changes.render_changelog
    print(render(found), file=redirected(sys.stdout))
    return 0
