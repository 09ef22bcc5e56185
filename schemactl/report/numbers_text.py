"""Where a target's version numbers are not Git's and nothing records it, for people."""

from __future__ import annotations

from collections.abc import Sequence

from schemactl.report.style import paint
from schemactl.target_numbers import TopicApart


def render(misread: Sequence[TopicApart], *, target: str, after: bool = False, color: bool = False) -> str:
    """The topics whose messages would be misread, and what to do.

    Args:
        misread: the topics of which some number is neither Git's nor recorded.
        target: the target's name.
        after: it is not so yet, but will be when the plan has been applied.
        color: with ANSI colours.
    """
    when = "When this is applied, nothing" if after else "Nothing"
    lines = [
        f"{when} approved says what these version numbers of {target} stand for. Messages would be misread:"
    ]
    lines += [f"  {paint('!', 'red', color=color)} {topic.name}: {topic}" for topic in misread]
    if all(topic.unexplained for topic in misread):
        return "\n".join(
            [*lines, f"  Next: schemactl drift --target {target} tells how to bring the commits back"]
        )
    lines.append(f"  Next: {advice(target, after=after)}")
    if after and any(topic.contradicted for topic in misread):
        lines.append(
            f"  Where the registry lost what is recorded, first: schemactl rebuild --target {target} gives those numbers back"
        )
    return "\n".join(lines)


def advice(target: str, *, after: bool = False) -> str:
    """What to do about numbers that are not recorded."""
    first = "apply this; then " if after else ""
    return f"{first}schemactl drift --target {target} --accept --reason TEXT; commit what it writes, and have it approved"
