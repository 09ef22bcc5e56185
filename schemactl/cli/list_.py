"""`schemactl list`: the declared topics."""

from __future__ import annotations

import argparse

from schemactl.cli import Context
from schemactl.cli.parser import add_format
from schemactl.json_values import commit_value
from schemactl.report.style import table, terminal_width
from schemactl.topic_match import require_matches, select


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `list`."""
    parser.description = (
        "List the topics that the approved history declares, each with its schema type, the version in force and the "
        "compatibility strategy in force."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl list\n"
        "  schemactl list 'shop/sales/*' '!*-dead-letter'\n"
        "  schemactl list --format json                with the level that sets each strategy\n"
    )
    parser.add_argument(
        "topic",
        nargs="*",
        metavar="TOPIC",
        help="only these: orders, 'shop/sales/*', 'shop/**'; '!GLOB' leaves some out",
    )
    add_format(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the list is printed."""
    from schemactl.history import load_project

    project, _ = load_project(context.directory, context.config)
    history = context.approved(project)
    context.note(history.notes)
    declared = [name for name, topic in history.catalog.topics.items() if not topic.deleted]
    require_matches(declared, args.topic, (), option="")
    topics = []
    for name in sorted(select(declared, args.topic)):
        schema, number = history.catalog.topics[name].schema, history.current(name)
        strategy, level = history.catalog.strategy(name, project.defaults)
        topics.append(
            {
                "topic": str(name),
                "type": schema.type.name if schema else None,
                "version": number,
                "strategy": strategy.value,
                "level": level,
            }
        )
    if args.format == "json":
        context.report_json(ref=history.ref, tip=commit_value(history.tip), topics=topics)
    elif topics:
        columns = ("topic", "type", "version", "strategy")
        cells = [["-" if topic[key] is None else str(topic[key]) for key in columns] for topic in topics]
        rows = [[key.upper() for key in columns], *cells]
        context.report("\n".join(table(rows, width=terminal_width(), numeric={2})))
    else:
        context.report(f"{history.ref} declares no topic.")
    return 0
