"""Render checks, plans and drift as GitHub workflow commands, and owners as a CODEOWNERS file.

https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from schemactl.checks.check_report import CheckReport
from schemactl.core.terminal import clean
from schemactl.report.causes import ShownCause, Weight, shown_causes
from schemactl.report.check import summary
from schemactl.report.document import Sheet, SheetBlock

AnnotationLevel = Literal["error", "warning", "notice"]

SHOWN: Final = 10
"""GitHub and Azure Pipelines show ten annotations of a level for each step; the last one says how many more there are."""

_LEVELS: Final[dict[Weight, AnnotationLevel]] = {
    "waived": "notice",
    "error": "error",
    "warning": "warning",
    "note": "notice",
}


def annotated(report: CheckReport) -> Iterator[tuple[AnnotationLevel, ShownCause | str]]:
    """Yield the causes that fit, with the level of each, waived ones first; after the last of a level how many more there are."""
    causes = shown_causes(report)
    left = {level: sum(_LEVELS[cause.weight] == level for cause in causes) for level in dict.fromkeys(_LEVELS.values())}
    room = {level: SHOWN if count <= SHOWN else SHOWN - 1 for level, count in left.items()}
    for cause in causes:
        level = _LEVELS[cause.weight]
        if room[level]:
            room[level] -= 1
            left[level] -= 1
            yield level, cause
    for level, count in left.items():
        if count:
            yield level, f"{count} more: run `schemactl {report.command}` to see all of them"


# CODEOWNERS, for GitHub and GitLab


_OWNER: Final = re.compile(r"@[A-Za-z0-9][\w-]*(/[\w.-]+)*|[^\s@#]+@[^\s@#]+\.[^\s@#]+", re.ASCII)
"""A user, a team or an e-mail address."""

_HEAD: Final = "# Written by `schemactl list --format codeowners`.\n"

_UNWRITABLE: Final = re.compile(r"[#*?\[\]\\!\t]")
"""Characters that mean something in a pattern, or begin a comment, and that a backslash does not help in all of GitHub."""


def render_codeowners(owners: Mapping[str, Collection[str]]) -> tuple[str, list[str]]:
    """Return the lines of files, by path from the repository's top, with their owners; and the owners that are none to GitHub."""
    unknown = set()
    lines: list[tuple[bool, str, str]] = []
    for path, names in owners.items():
        known = dict.fromkeys(name for owner in sorted(names) for name in owner.split() if _OWNER.fullmatch(name))
        unknown |= {owner for owner in names if not all(map(_OWNER.fullmatch, owner.split()))}
        if known:
            # `?` is any one character: what else it finds may have a line of its own, and the last one counts.
            pattern = "/" + _UNWRITABLE.sub("?", path).replace(" ", r"\ ")
            lines.append(("?" not in pattern, pattern, " ".join(known)))
    return _HEAD + "".join(f"{pattern} {known}\n" for _, pattern, known in sorted(lines)), sorted(unknown)


# Checks: each cause becomes an annotation in the pull request


def render_check(report: CheckReport) -> str:
    """One command a line, waived causes first, at most ten of each level, and the sum as plain text."""
    commands = [_command(level, each) for level, each in annotated(report)]
    return "\n".join([*commands, clean(summary(report))])


def _command(level: str, annotation: ShownCause | str) -> str:
    if isinstance(annotation, str):
        return f"::{level} title=schemactl::{escaped(annotation)}"
    aside = " (waived)" if annotation.weight == "waived" else ""
    properties, source = {"title": f"{annotation.lead.rule}{aside}"}, annotation.lead.place
    if source:
        properties |= {"file": source.path, "line": str(source.line), "col": str(source.column)}
        properties |= {"endColumn": str(source.end_column)} if source.end_column else {}
    parameters = ",".join(f"{name}={escaped(value, of_property=True)}" for name, value in properties.items())
    return f"::{level} {parameters}::{escaped(annotation.message)}"


def escaped(text: str, *, of_property: bool = False) -> str:
    """Return `text` as the runner reads it in a command, or in a property of one."""
    text = clean(text, starts_line=False).replace("%", "%25").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if of_property else text


# Plans and drift: a rejection is an error, a difference a warning


def render_documents(sheets: Sequence[Sheet]) -> str:
    """One command a line, at most ten of each level, and the sum of each target as plain text."""
    problems = [(sheet, block) for sheet in sheets for block in sheet.problems]
    differing = [(sheet, block) for sheet in sheets if sheet.command == "drift" for block in sheet.blocks]
    commands = [*_commands("error", problems), *_commands("warning", differing)]
    sums = [clean(f"{sheet.target}: {sheet.summary[0]}") for sheet in sheets if sheet.summary[0]]
    digests = [f"Digest of {clean(sheet.target)}: {sheet.digest}" for sheet in sheets if sheet.digest]
    return "\n".join([*commands, *sums, *digests])


def _commands(level: str, found: Sequence[tuple[Sheet, SheetBlock]]) -> Iterator[str]:
    shown = found if len(found) <= SHOWN else found[: SHOWN - 1]
    for sheet, block in shown:
        text = "\n".join(_words(block))
        yield f"::{level} title=schemactl {sheet.command} {escaped(sheet.target, of_property=True)}::{escaped(text)}"
    if len(shown) < len(found):
        yield f"::{level} title=schemactl::{len(found) - len(shown)} more: see the whole report"


def _words(block: SheetBlock) -> Iterable[str]:
    return (f"{'  ' * line.depth}{line.sign}{' ' if line.sign else ''}{line.text}" for line in block)
