"""The catalogue as Markdown: `python -m schemactl.rules.pages docs/rules` writes a page for each rule, and an index."""

from __future__ import annotations

import sys
from pathlib import Path

from schemactl.rules import Rule, rules

_VERDICTS = {
    "data": "What readers meet",
    "broker": "What a broker answers",
    "declaration": "What the declarations and their history say",
}


def pages() -> dict[str, str]:
    """Every page by its file name."""
    known = rules()
    return {"README.md": _index(known)} | {f"{rule.id}.md": _page(rule) for rule in known.values()}


def _page(rule: Rule) -> str:
    example = "\n".join(f"    {line}".rstrip() for line in rule.example.strip("\n").splitlines())
    return (
        f"# {rule.id}\n\n{rule.summary}\n\n"
        f"Verdict: {rule.verdict}. Severity unless the project says otherwise: {rule.severity}.\n\n"
        f"## Why it matters\n\n{rule.why}\n\n## Example\n\n{example}\n\n## Fix\n\n{rule.fix}\n\n"
        f"See <{rule.link}>. [All rules](README.md)\n"
    )


def _index(known: dict[str, Rule]) -> str:
    parts = [
        "# Rules\n\nWhat can be found, by whose verdict it is. `schemactl explain RULE` shows the same on a terminal.\n"
    ]
    for verdict, title in _VERDICTS.items():
        rows = [
            f"| [{rule.id}]({rule.id}.md) | {rule.severity} | {rule.summary} |"
            for rule in known.values()
            if rule.verdict == verdict
        ]
        parts.append(f"## {title}\n\n| rule | severity | |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def main(folder: Path) -> None:
    """The pages lie in `folder`; those of rules that are no more are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for path in folder.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
