"""A plan or drift as GitHub workflow commands: what is rejected is an error, what differs a warning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from schemactl.core.terminal import clean
from schemactl.report.annotations import SHOWN
from schemactl.report.check_github import escaped
from schemactl.report.sheet import Sheet, SheetBlock


def render(sheets: Sequence[Sheet]) -> str:
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
