"""Build the blocks that reports on plans, drift and status share: misread topics, unreadable declarations, brokers."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from schemactl.core.terminal import on_one_line
from schemactl.deploy.broker_configuration import BrokerComparison
from schemactl.deploy.drift_kinds import DriftKind
from schemactl.deploy.plan import UnreadableDeclaration
from schemactl.deploy.version_numbers import TopicMismatches
from schemactl.report.document import ReportBlock, ReportLine, list_alternatives, render_lines


def render_misread_topics(misread: Sequence[TopicMismatches], *, target: str, color: bool = False) -> str:
    """Return the topics whose messages would be misread, with the next step, as text."""
    return "\n".join(render_lines(make_misread_block(misread, target=target), color=color))


def make_broker_blocks(comparison: BrokerComparison | None, *, has_fixes: bool = True) -> list[ReportBlock]:
    """Return the block about the brokers' configuration: its differences from the project file, or why it was not compared."""
    if comparison is None or not (comparison.differences or comparison.problem or comparison.unused):
        return []
    lines = []
    for difference in comparison.differences:
        lines.append(ReportLine(on_one_line(difference.message), "~" if difference.is_drift else "=", 1))
        if difference.is_drift and has_fixes:
            lines += [line._replace(depth=2) for line in list_alternatives("Next", difference.fix)]
    if unused := comparison.unused:
        parts = ", ".join(sorted(part for part, _ in unused.parts))
        lines.append(ReportLine(on_one_line(f"accepted, but no longer present: {parts} ({unused.source})"), "=", 1))
    if comparison.problem:
        lines.append(ReportLine(f"not compared: {comparison.problem}; `defaults` of the project file count", "=", 1))
    return [(ReportLine(f"Configuration of the brokers, as {on_one_line(comparison.broker)} has it:"), *lines)]


def make_broker_lines(comparison: BrokerComparison | None) -> list[ReportLine]:
    """Return the block about the brokers' configuration as separate lines, without fixes."""
    return [
        line._replace(text=f"{DriftKind.BROKER_CONFIGURATION}: {line.text}", depth=0)
        for block in make_broker_blocks(comparison, has_fixes=False)
        for line in block[1:]
    ]


def make_unreadable_block(declarations: Sequence[UnreadableDeclaration]) -> ReportBlock:
    """Return a block with the approved declarations that cannot be read."""
    head = "Approved declarations that cannot be read; their last readable state counts:"
    lines = [
        ReportLine(
            on_one_line(f"{declaration.topic}: {declaration.message}" if declaration.topic else declaration.message),
            "!",
            1,
        )
        for declaration in declarations
    ]
    return (ReportLine(head), *lines)


def make_misread_block(
    misread: Sequence[TopicMismatches], *, target: str, after: bool = False, planned: bool = False
) -> ReportBlock:
    """Return the topics whose messages would be misread, with the next step.

    Args:
        misread: the topics with a version number that is neither Git's nor recorded.
        target: the name of the target.
        after: whether the numbers will differ only after the plan has been applied.
        planned: whether the plan has steps, which come first.
    """
    when = f"After this apply, {target} will have" if after else f"{target} has"
    head = f"{when} version numbers that are not Git's, and no approved numbers file records them. Messages would be misread:"
    lines = [ReportLine(head), *(ReportLine(f"{topic.name}: {topic}", "!", 1) for topic in misread)]
    if all(topic.unexplained for topic in misread):
        next_step = f"Next: `schemactl drift --target {quote(target)}` shows how to bring the commits back"
        return (*lines, ReportLine(next_step, depth=1))
    lines.append(ReportLine(f"Next: {describe_next_step(target, planned=planned)}", depth=1))
    if after and any(topic.contradicted for topic in misread):
        rebuild = (
            f"If the registry lost versions that are recorded, run `schemactl rebuild --target {quote(target)}` "
            "first: it restores their numbers"
        )
        lines.append(ReportLine(rebuild, depth=1))
    return tuple(lines)


def describe_next_step(target: str, *, planned: bool = False) -> str:
    """Return the next step for version numbers that are not recorded."""
    first = "apply this; then " if planned else ""
    return (
        f"{first}`schemactl drift --target {quote(target)} --accept --reason TEXT`, commit what it writes, and merge it"
    )
