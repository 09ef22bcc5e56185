"""`schemactl explain`: what a rule means."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core.errors import UsageError, did_you_mean
from schemactl.core.rules import Rule, every_rule

_WIDTH = 80

_VERDICTS = ("data", "broker", "declaration", "tables", "lint")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    parser.epilog = (
        "examples:\n  schemactl explain READER_FIELD_MISSING_DEFAULT_VALUE\n  schemactl explain --all\n"
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("rule", nargs="?", metavar="RULE", help="the rule's id, as reports print it")
    add_options(which, "--all: one line for every rule")


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the rule or the list is printed."""
    known = every_rule()
    if args.all:
        context.report("\n".join(overview([*known.values()])))
        return 0
    name = args.rule.strip().upper().replace("-", "_")
    if name not in known:
        hint = did_you_mean(name, known) or ": `schemactl explain --all` lists them"
        raise UsageError(f"there is no rule {args.rule!r}{hint}")
    context.report(page(known[name]))
    return 0


def overview(known: list[Rule]) -> Iterator[str]:
    """Yield a line for each rule: first those of `check` and `lint`, by verdict; then the optional ones, under their command."""
    width = max(len(rule.id) for rule in known)
    command = ""
    for rule in sorted(
        known, key=lambda rule: len(_VERDICTS) if rule.asked_with else _VERDICTS.index(rule.verdict)
    ):
        if rule.asked_with != command:
            command = rule.asked_with
            yield f"\nonly with `{command}`:"
        facts = f"{rule.verdict:<11} {rule.severity:<7} " if not command else ""
        yield f"{rule.id:<{width}}  {facts}{rule.summary}"


def page(rule: Rule) -> str:
    """Return the rule as text for a terminal."""
    found = "found by `lint`" if rule.verdict == "lint" else f"{rule.verdict} verdict"
    where = f"{found}, {rule.severity} by default"
    parts = (
        rule.id,
        f"only with `{rule.asked_with}`" if rule.asked_with else where,
        "",
        textwrap.fill(rule.summary, _WIDTH),
        "",
        "Why it matters",
        _inset(textwrap.fill(rule.why, _WIDTH - 2)),
        "",
        "Example",
        _inset(rule.example.strip("\n")),
        "",
        "Fix",
        _inset(textwrap.fill(rule.fix, _WIDTH - 2)),
        "",
        f"See {rule.link}",
    )
    return "\n".join(parts)


def _inset(text: str) -> str:
    return textwrap.indent(text, "  ")
