"""`schemactl explain`: what a rule means."""

from __future__ import annotations

import argparse
import textwrap
from difflib import get_close_matches

from schemactl.cli import Context
from schemactl.errors import UsageError
from schemactl.rules import Rule, rules


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `explain`."""
    parser.epilog = (
        "examples:\n  schemactl explain READER_FIELD_MISSING_DEFAULT_VALUE\n  schemactl explain --all\n"
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("rule", nargs="?", metavar="RULE", help="the rule's id, as reports print it")
    which.add_argument("--all", action="store_true", help="one line for every rule")


def run(args: argparse.Namespace, context: Context) -> int:  # noqa: ARG001  every command has this shape
    """0, after the rule or the list is printed."""
    known = rules()
    if args.all:
        for rule in known.values():
            print(f"{rule.id:<46} {rule.verdict:<12} {rule.severity:<8} {rule.summary}")
        return 0
    name = args.rule.upper()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "`schemactl explain --all` lists them"
        raise UsageError(f"there is no rule {args.rule!r}: {hint}")
    print(page(known[name]))
    return 0


def page(rule: Rule) -> str:
    """The rule as text for a terminal."""
    return "\n".join(
        (
            f"{rule.id}  ({rule.verdict} verdict, {rule.severity} by default)",
            "",
            textwrap.fill(rule.summary, 100),
            "",
            "Why it matters",
            textwrap.indent(textwrap.fill(rule.why, 98), "  "),
            "",
            "Example",
            textwrap.indent(rule.example.strip("\n"), "  "),
            "",
            "Fix",
            textwrap.indent(textwrap.fill(rule.fix, 98), "  "),
            "",
            f"See {rule.link}",
        )
    )
