"""`schemactl graph`: who uses which type and file."""

from __future__ import annotations

import argparse

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format
from schemactl.cli.states import States
from schemactl.core.errors import DeclarationError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `graph`."""
    parser.description = (
        "Who uses what, as the files here declare it: topics use types, types use types, and files define them. With a NAME: what "
        "uses it and what it uses, itself or through others. Without one: the types and files that several topics use; JSON has all."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl graph                         what do several topics share?\n"
        "  schemactl graph Money                   who uses this type?\n"
        "  schemactl graph common/money.avsc       who is made of this file?\n"
        "  schemactl graph orders                  what is this topic made of?\n"
        "  schemactl graph --format mermaid        for Markdown\n"
        "  schemactl graph --format dot | dot -Tsvg > graph.svg\n"
    )
    parser.add_argument(
        "node",
        metavar="NAME",
        nargs="?",
        help="a type, a file or a topic, by as much of its end as is unambiguous",
    )
    add_format(parser, "text", "mermaid", "dot", "json")


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the graph is printed."""
    from schemactl.publish import usage_graph as report
    from schemactl.publish.usage_graph import read_usage

    states = States(context)
    declared = states.work
    if declared.problems:
        raise DeclarationError(declared.problems)
    usage = read_usage(states.files, declared)
    node = usage.find(args.node) if args.node else None
    if args.format == "text":
        context.report(report.text(usage, node, color=context.color))
        return 0
    part = usage.around(node) if node else usage
    if args.format == "json":
        print(report.json(part, node))
    else:
        print({"mermaid": report.mermaid, "dot": report.dot}[args.format](part if node else part.shared()))
    return 0
