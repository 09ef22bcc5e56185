"""`explain`: describe a rule."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from schemactl.cli.command_result import add_result_formats
from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core.errors import UsageError, did_you_mean
from schemactl.core.json_values import make_view
from schemactl.core.rules import Rule, get_all_rules
from schemactl.core.wording import format_count

_EXPLANATION_WIDTH: Final = 80

_VERDICTS: Final = ("data", "broker", "declaration", "tables", "lint")
"""The verdicts, in the order of the list of rules."""


def configure_explain(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    parser.epilog = (
        "examples:\n"
        "  schemactl explain READER_FIELD_MISSING_DEFAULT_VALUE\n"
        "  schemactl explain enum default       the rules about these words\n"
        "  schemactl explain --all\n"
    )
    parser.add_argument(
        "rule", nargs="*", metavar="RULE", help="the rule's id, as reports print it, or words to find rules by"
    )
    add_options(parser, "--all: one line for every rule")
    add_result_formats(parser)


def run_explain(args: argparse.Namespace, context: Context) -> int:
    """Print the rule, the rules that have all the words, or the list of all rules."""
    rules = get_all_rules()
    if args.all == bool(args.rule):
        raise UsageError("name a rule or search words, or use --all", fix="schemactl explain --all")
    if args.all:
        context.record(rules=[RuleView.from_rule(rule) for rule in rules.values()])
        context.report("\n".join(_list_rules([*rules.values()])))
        return 0
    text = " ".join(args.rule)
    name = "_".join(text.upper().replace("-", "_").split())
    if name in rules:
        context.record(rules=[RuleView.from_rule(rules[name])])
        context.report(_render_rule(rules[name]))
        return 0
    words = text.casefold().replace("_", " ").split()
    matches = []
    for rule in rules.values() if words else ():
        searched_text = f"{rule.id.replace('_', ' ')} {rule.summary} {rule.why}".casefold()
        if all(word in searched_text for word in words):
            matches.append(rule)
    if not matches:
        hint = did_you_mean(name, rules) or ": `schemactl explain --all` lists them"
        raise UsageError(f"there is no rule {text!r}{hint}")
    context.say(
        f"no rule is called {text!r}; {format_count(len(matches), 'rule has', 'rules have')} "
        f"{'these words' if len(words) > 1 else 'this word'}:"
    )
    context.record(rules=[RuleView.from_rule(rule) for rule in matches])
    context.report("\n".join(_list_rules(matches)).strip("\n"))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """A rule in JSON; `only_with` is the command that an optional rule needs."""

    rule: str
    verdict: str
    severity: str
    only_with: str | None
    summary: str
    why: str
    example: str
    fix: str
    link: str

    @classmethod
    def from_rule(cls, rule: Rule) -> RuleView:
        """Return the view of a rule."""
        return make_view(cls, rule, rule=rule.id, only_with=rule.enabled_by or None)


def _list_rules(rules: list[Rule]) -> Iterator[str]:
    """Yield a line for each rule: the rules of `check` and `lint` by verdict, then the optional rules under their command."""
    width = max(len(rule.id) for rule in rules)
    command = ""
    for rule in sorted(rules, key=lambda rule: len(_VERDICTS) if rule.enabled_by else _VERDICTS.index(rule.verdict)):
        if rule.enabled_by != command:
            command = rule.enabled_by
            yield f"\nonly with `{command}`:"
        columns = f"{rule.verdict:<11} {rule.severity:<7} " if not command else ""
        yield f"{rule.id:<{width}}  {columns}{rule.summary}"


def _render_rule(rule: Rule) -> str:
    """Return the rule as text for a terminal."""
    verdict = "found by `lint`" if rule.verdict == "lint" else f"{rule.verdict} verdict"
    parts = (
        rule.id,
        f"only with `{rule.enabled_by}`" if rule.enabled_by else f"{verdict}, {rule.severity} by default",
        "",
        textwrap.fill(rule.summary, _EXPLANATION_WIDTH),
        "",
        "Why it matters",
        _indent(textwrap.fill(rule.why, _EXPLANATION_WIDTH - 2)),
        "",
        "Example",
        _indent(rule.example.strip("\n")),
        "",
        "Fix",
        _indent(textwrap.fill(rule.fix, _EXPLANATION_WIDTH - 2)),
        "",
        f"See {rule.link}",
    )
    return "\n".join(parts)


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")
