"""What a plan, or drift, says: lines in blocks, which each format lays out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar

from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.terminal import SHADES, SIGNS, paint
from schemactl.report.check import Shade

Sign = Literal["+", "-", "~", "!", "=", ""]


class _Named(Protocol):
    @property
    def name(self) -> NamespaceName | TopicName: ...


N = TypeVar("N", bound=_Named)


class SheetLine(NamedTuple):
    """A line of a report.

    Attributes:
        text: what it says.
        sign: what happens: + comes, - goes, ~ becomes another, ! is rejected, = stays; "" says nothing of that.
        depth: how far below the first line of its block it stands.
        strong: the part of the text that stands out.
    """

    text: str
    sign: Sign = ""
    depth: int = 0
    strong: str = ""


SheetBlock = tuple[SheetLine, ...]
"""Lines about one thing, the first of which names it."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A report on one target.

    Attributes:
        command: whose report it is.
        target: its name.
        head: what was compared with what.
        blocks: what changes, or differs.
        problems: what is rejected, or read wrongly.
        summary: the sum, and what it says.
        digest: of a plan that can be applied.
        is_short: its parts are lines of their own, not blocks.
    """

    command: Literal["plan", "drift"]
    target: str
    head: str
    blocks: tuple[SheetBlock, ...]
    problems: tuple[SheetBlock, ...]
    summary: tuple[str, Shade]
    digest: str = ""
    is_short: bool = False

    def text(self, *, color: bool = False) -> str:
        """Return the report for a terminal."""
        blocks = ("\n".join(text_lines(block, color=color)) for block in (*self.blocks, *self.problems))
        end = self.sum_text(color=color)
        parts = [self.head, *blocks, f"{end}\nDigest: {self.digest}" if self.digest else end]
        return ("\n" if self.is_short else "\n\n").join(filter(None, parts))

    def sum_text(self, *, color: bool = False) -> str:
        """Return the sum for a terminal."""
        summary, shade = self.summary
        return paint(summary, SHADES[shade], color=color and bool(summary))


def by_name(items: Iterable[N]) -> dict[NamespaceName | TopicName, list[N]]:
    """Return steps, differences or changes by the namespace or topic that they are of, in their order."""
    found: dict[NamespaceName | TopicName, list[N]] = {}
    for each in items:
        found.setdefault(each.name, []).append(each)
    return found


def text_lines(lines: Sequence[SheetLine], *, color: bool) -> Iterator[str]:
    """Yield the lines for a terminal."""
    for line in lines:
        sign = f"{paint(line.sign, SIGNS[line.sign], color=color)} " if line.sign else ""
        text = line.text.replace(line.strong, paint(line.strong, "bold", color=color), 1) if line.strong else line.text
        yield f"{'  ' * line.depth}{sign}{text}"


def alternatives(label: str, fix: str) -> Iterator[SheetLine]:
    """Yield the ways out, which `fix` has one in each line, below a problem."""
    first, *others = fix.split("\n")
    yield SheetLine(f"{label}: {first}.", depth=1)
    yield from (SheetLine(f"{'or:':>{len(label) + 1}} {other}.", depth=1) for other in others)


def unknown(command: Literal["plan", "drift"], target: str, error: Exception) -> Sheet:
    """Return the report on a target that could not be examined, with the reason."""
    first, *rest = f"{target}: {error}".split("\n")
    problem = (SheetLine(first), *(SheetLine(line) for line in rest))
    return Sheet(command, target, "", (), (problem,), ("", "bad"))
