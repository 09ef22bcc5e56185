"""The catalogue as Markdown: `python -m schemactl.rules.pages docs/rules` writes a page for each rule, and an index."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent

from schemactl.rules import Rule, rules

_CHAPTERS = {
    "data": "Data: what readers can decode",
    "broker": "Broker: what the registry answers",
    "declaration": "Declarations and their history",
    "tables": "Tables",
    "lint": "Lint: what is fine today and hurts later",
}
"""The rules that `check` and `lint` look for, by their verdict."""


def pages() -> dict[str, str]:
    """Every page by its file name."""
    known = [*rules().values()]
    return {"README.md": _index(known)} | {f"{rule.id}.md": _page(rule) for rule in known}


def _page(rule: Rule) -> str:
    example = indent(rule.example.strip("\n"), "    ")
    return (
        f"# {rule.id}\n\n{rule.summary}\n\n{_where(rule)}\n\n"
        f"## Why it matters\n\n{rule.why}\n\n## Example\n\n{example}\n\n## Fix\n\n{rule.fix}\n\n"
        f"See <{rule.link}>. [All rules](README.md)\n"
    )


def _where(rule: Rule) -> str:
    """Whose rule it is, and what looks for it."""
    if rule.asked_with:
        return f"Checked only with `{rule.asked_with}` in `schemactl.yaml`."
    if rule.verdict == "lint":
        return f"Found by `schemactl lint`. Severity unless the project says otherwise: {rule.severity}."
    return f"Verdict: {rule.verdict}. Severity unless the project says otherwise: {rule.severity}."


def _index(known: Sequence[Rule]) -> str:
    head = "What `schemactl check` finds, by verdict; then what `schemactl lint` finds, and the rules that a setting in `schemactl.yaml` turns on."
    parts = [f"# Rules\n\n{head} `schemactl explain RULE` shows the same on a terminal.\n"]
    for verdict, title in _CHAPTERS.items():
        chapter = [rule for rule in known if rule.verdict == verdict and not rule.asked_with]
        rows = [f"| {_link(rule)} | {rule.severity} | {rule.summary} |" for rule in chapter]
        parts.append(f"## {title}\n\n| rule | severity | |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    for command in dict.fromkeys(rule.asked_with for rule in known if rule.asked_with):
        rows = [f"| {_link(rule)} | {rule.summary} |" for rule in known if rule.asked_with == command]
        parts.append(f"## `{command}`\n\n| rule | |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _link(rule: Rule) -> str:
    return f"[{rule.id}]({rule.id}.md)"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
