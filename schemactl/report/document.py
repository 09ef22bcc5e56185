"""Define a report on one target, a plan or drift, as blocks of lines that each format arranges."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from schemactl.core.json_values import json_pieces, to_json
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import Commit
from schemactl.core.terminal import SHADES, SIGNS, paint
from schemactl.core.wording import format_day
from schemactl.report.check import Shade

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Sign = Literal["+", "-", "~", "!", "=", ""]


class ReportLine(NamedTuple):
    """A line of a report.

    Attributes:
        text: the text, without sign and indentation.
        sign: + added, - removed, ~ changed, ! rejected, = unchanged; "" for other lines.
        depth: the level of indentation, 0 for the first line of a block.
        strong: the part of the text in bold.
    """

    text: str
    sign: Sign = ""
    depth: int = 0
    strong: str = ""

    @property
    def shade(self) -> Shade:
        """The shade: bad for a rejection and for messages that would be misread, doubtful for another difference, else ""."""
        if self.sign == "!" or "misread" in self.text:
            return "bad"
        return "doubtful" if self.strong and self.depth else ""


ReportBlock = tuple[ReportLine, ...]
"""The lines about one namespace, topic or problem; the first line has its name."""


@dataclass(frozen=True, slots=True)
class TargetReport:
    """A report on one target.

    Attributes:
        command: the command that reports.
        target: the name of the target.
        head: a line with the registry and the approved history that were compared.
        blocks: the changes or differences.
        problems: rejections, and messages that would be misread.
        summary: the sentence with the totals, and its shade.
        digest: the digest of a plan that can be applied, or "".
        is_short: whether the blocks are single lines, without blank lines in between.
        broken_clients: the clients that break, as a sentence, or "".
    """

    command: Literal["plan", "drift"]
    target: str
    head: str
    blocks: tuple[ReportBlock, ...]
    problems: tuple[ReportBlock, ...]
    summary: tuple[str, Shade]
    digest: str = ""
    is_short: bool = False
    broken_clients: str = ""

    def render(self, *, color: bool = False) -> str:
        """Return the report for a terminal."""
        blocks = ("\n".join(render_lines(block, color=color)) for block in (*self.blocks, *self.problems))
        summary, shade = self.summary
        end = paint(summary, SHADES[shade], color=color and bool(summary))
        broken_clients = paint(f"✗ {self.broken_clients}", "bold red", color=color) if self.broken_clients else ""
        parts = [broken_clients, self.head, *blocks, f"{end}\nDigest: {self.digest}" if self.digest else end]
        return ("\n" if self.is_short else "\n\n").join(filter(None, parts))


TargetDocument: TypeAlias = "tuple[TargetReport, DataclassInstance | None]"
"""A report on a target, and its JSON document, or None if JSON is not one of the formats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTargetDocument:
    """The JSON document of a target that could not be examined."""

    format_version: Literal[1] = 1
    target: str
    problem: str


def render_text(documents: Sequence[TargetDocument], *, color: bool = False) -> str:
    """Return the reports for a terminal, with an empty line after each of several."""
    end = "\n" if len(documents) > 1 else ""
    return "\n".join(report.render(color=color) + end for report, _ in documents)


def render_json(documents: Sequence[TargetDocument]) -> Iterable[str]:
    """Return the pieces of the only document, or one line for each of several."""
    json_documents = [document for _, document in documents if document]
    if len(json_documents) == 1:
        return json_pieces(json_documents[0])
    return ["\n".join(json.dumps(to_json(document), separators=(",", ":")) for document in json_documents)]


class _Named(Protocol):
    @property
    def name(self) -> NamespaceName | TopicName: ...


N = TypeVar("N", bound=_Named)


def group_by_name(items: Iterable[N]) -> dict[NamespaceName | TopicName, list[N]]:
    """Group steps, differences or changes by namespace or topic, in their order."""
    items_by_name: dict[NamespaceName | TopicName, list[N]] = {}
    for item in items:
        items_by_name.setdefault(item.name, []).append(item)
    return items_by_name


def render_lines(lines: Sequence[ReportLine], *, color: bool) -> Iterator[str]:
    """Yield the lines of a block for a terminal."""
    for line in lines:
        sign = f"{paint(line.sign, SIGNS[line.sign], color=color)} " if line.sign else ""
        text = line.text.replace(line.strong, paint(line.strong, "bold", color=color), 1) if line.strong else line.text
        yield f"{'  ' * line.depth}{sign}{text}"


def list_alternatives(label: str, fix: str) -> Iterator[ReportLine]:
    """Yield the fixes of a problem, one for each line of `fix`, joined by `or`."""
    first, *others = fix.split("\n")
    yield ReportLine(f"{label}: {first}.", depth=1)
    yield from (ReportLine(f"{'or:':>{len(label) + 1}} {other}.", depth=1) for other in others)


def describe_tip(tip: Commit | None) -> str:
    """Return the end of a heading that names the approved commit."""
    return f" at {tip.short}, {format_day(tip)}" if tip else ", without commits"


def make_unknown_report(command: Literal["plan", "drift"], target: str, error: Exception) -> TargetReport:
    """Return the report on a target that could not be examined, with the reason."""
    problem = tuple(map(ReportLine, f"{target}: {error}".split("\n")))
    return TargetReport(command, target, "", (), (problem,), ("", "bad"))
