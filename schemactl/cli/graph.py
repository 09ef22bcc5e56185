"""`graph`: show who uses which type and file."""

from __future__ import annotations

import argparse

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format
from schemactl.cli.states import States
from schemactl.core.errors import DeclarationError, UsageError
from schemactl.core.names import find_matching_topics


def configure_graph(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `graph`."""
    parser.description = (
        "Show which topics and types use which types, and which files define them, as the working tree declares "
        "them. With a NAME: its users and its parts, direct and indirect. Without a NAME: the types and files that "
        "several topics use; with --format json, all types and files."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl graph                         what do several topics share?\n"
        "  schemactl graph Money                   who uses this type?\n"
        "  schemactl graph common/money.avsc       which topics use this file?\n"
        "  schemactl graph orders                  what is this topic made of?\n"
        "  schemactl graph --format mermaid        for Markdown\n"
        "  schemactl graph Money --format svg > money.svg\n"
    )
    parser.add_argument(
        "node", metavar="NAME", nargs="?", help="a type, a file or a topic, or an unambiguous end of its name"
    )
    add_format(parser, "text", "mermaid", "dot", "svg", "json")


def run_graph(args: argparse.Namespace, context: Context) -> int:
    """Print the graph of the uses of types and files, without topics that cannot be read.

    Raises:
        DeclarationError: if the requested topic cannot be read; or, after the graph of all topics, if one cannot be read.
    """
    from schemactl.declare.reader import describe_broken
    from schemactl.publish import usage_graph

    states = States(context)
    declared = states.work
    if declared.common_problems or (declared.problems and not declared.catalog.topics):
        raise DeclarationError(declared.problems)
    if args.node and (broken_names := find_matching_topics(args.node, declared.broken_topics, globs=False)):
        needed = declared.select_broken(broken_names)
        raise DeclarationError([problem for broken in needed for problem in broken.problems])
    usage = usage_graph.read_usage(states.files, declared)
    try:
        node = usage.find(args.node) if args.node else None
    except UsageError as error:
        # A file whose topics cannot be read may declare it.
        if problems := [problem for broken in declared.broken if broken.name is None for problem in broken.problems]:
            raise DeclarationError(problems) from error
        raise
    part = usage.select_around(node) if node else usage
    if args.format == "text":
        context.report(usage_graph.render_text(usage, node, color=context.color))
    elif args.format == "json":
        print(usage_graph.render_json(part, node))
    elif args.format == "svg":
        from schemactl.publish.drawings import draw_usage

        print(draw_usage(part if node else part.select_shared(), node), end="")
    else:
        render = usage_graph.render_mermaid if args.format == "mermaid" else usage_graph.render_dot
        print(render(part if node else part.select_shared()))
    if node:
        context.note(*describe_broken(declared.broken))
    elif declared.problems:
        raise DeclarationError(declared.problems)
    return 0
