"""`schemactl registry`: manage one topic of a registry by hand, as `pulsar-admin schemas` does."""

from __future__ import annotations

import argparse
from typing import Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.schema_file import add_arguments as add_schema_arguments
from schemactl.cli.selection import add_target

ACTIONS: Final = {
    "get": "print one version's definition",
    "list": "list every stored version, including tombstones",
    "put": "upload a schema",
    "delete": "delete a topic's schemas; without a flag, say what that would destroy",
    "test": "say whether a schema would be accepted; nothing is stored",
}

_HELP = "the topic, in full (shop/sales/orders), or as much of a declared one's name as is unambiguous"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `registry`."""
    parser.description = (
        "Show one topic's schemas in a registry, and change them by hand. For what Git declares, use `plan` and `apply`: "
        "a schema put by hand is drift until it is declared."
    )
    parser.epilog = epilog = (
        "examples:\n"
        "  schemactl registry get shop/sales/orders --version 3 --target prod > orders-3.avsc\n"
        "  schemactl registry list orders --target prod --format json\n"
        "  schemactl registry test orders --file orders.avsc --target prod     exit code 100: it would be rejected\n"
        "  schemactl registry put orders --file payload.json --target local\n"
        "  schemactl registry delete orders --allow-delete --target local\n"
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=f"{summary.capitalize()}.", epilog=epilog)
        action.add_argument("topic", metavar="TOPIC", help=_HELP)
        add_target(action)
        add_format(action)
        if name == "get":
            action.add_argument("--version", type=int, metavar="N", help="(default: the latest)")
        if name in ("put", "test"):
            add_schema_arguments(action)
        if name == "delete":
            how = action.add_mutually_exclusive_group()
            add_options(
                how,
                "--allow-delete: put a tombstone: it takes the next number",
                "--force-delete: destroy all stored versions: numbering starts again at 0",
            )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: done; 100: the registry rejects it, or would."""
    from schemactl.cli.registry_actions import run_action

    return run_action(args, context)
