"""Pictures of the example shop's schemas, from the answers of the real tool: `python ci/schema_pictures.py docs/pictures`."""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from examples.environments import history as environments_history  # noqa: E402  the examples are not installed
from examples.shop import history  # noqa: E402  as above
from schemactl.cli import main as run_schemactl  # noqa: E402  of this checkout
from schemactl.publish.drawings import render_document, render_text  # noqa: E402  of this checkout

TOPIC: Final = "orders"

CELL: Final = 34
"""The size of a cell of the heat map, in pixels."""


def run_command(folder: Path, *arguments: str) -> str:
    """Return what schemactl prints."""
    out = io.StringIO()
    with redirect_stdout(out):
        run_schemactl(["-C", str(folder), *arguments])
    return out.getvalue()


def read_answer(folder: Path, *arguments: str) -> Any:
    """Return the JSON that schemactl prints."""
    return json.loads(run_command(folder, *arguments, "--format", "json"))


class FieldLife(NamedTuple):
    """A field of a topic over its versions.

    Attributes:
        name: the newest name.
        first: the number of the first version with the field.
        last: the number of the last version with the field, or None if the newest version has it.
        renames: the earlier names, by the number of the first version with the next name.
    """

    name: str
    first: int
    last: int | None = None
    renames: Mapping[int, str] = MappingProxyType({})


def draw_evolution(
    title: str, versions: Mapping[int, str], lives: Sequence[FieldLife], breaking: frozenset[int] = frozenset()
) -> str:
    """Return a line for each field from its first to its last version, with its renames.

    Args:
        title: the title, such as the topic's name.
        versions: the day of each version, by number.
        lives: the fields.
        breaking: the versions whose messages older readers cannot read, or that cannot read older messages.
    """
    numbers = [*versions]
    left = 20 + 8 * max((len(life.name) for life in lives), default=0)
    step = 110
    x_by_version = {number: left + 20 + index * step for index, number in enumerate(numbers)}
    parts = []
    for number, day in versions.items():
        x = x_by_version[number]
        parts.append(render_text(x - 8, 20, f"v{number}", "strong bad" if number in breaking else "strong"))
        parts.append(render_text(x - 8, 38, f"✗ {day}" if number in breaking else day, "soft"))
    y = 64
    for life in lives:
        last = numbers[-1] if life.last is None else life.last
        start, end = x_by_version[life.first], x_by_version[last]
        parts.append(render_text(4, y + 4, life.name, "code" if life.last is None else "code soft"))
        parts.append(f'<path class="life" d="M{start} {y}H{end + (step // 2 if life.last is None else 0)}"/>')
        parts.append(f'<circle class="dot" cx="{start}" cy="{y}" r="6"/>')
        for number, old_name in life.renames.items():
            x = x_by_version[number]
            parts.append(f'<circle class="dot" cx="{x}" cy="{y}" r="6"/>')
            parts.append(render_text(x + 10, y - 6, f"was {old_name}", "soft"))
        y += 30
    description = "; ".join(
        f"{life.name} from version {life.first}" + ("" if life.last is None else f" to {life.last}") for life in lives
    )
    return render_document(title, description, left + len(numbers) * step, y, parts)


def draw_compatibility(
    title: str,
    numbers: Sequence[int],
    reads: Mapping[tuple[int, int], bool],
    protected: frozenset[tuple[int, int]] = frozenset(),
) -> str:
    """Return a heat map: a row for each reading version, a column for each writing version.

    Args:
        title: the title, such as the topic's name.
        numbers: the versions.
        reads: whether the reader can read messages of the writer, by (reader, writer).
        protected: the pairs that the topic's strategy protects, which get a frame.
    """
    left, top = 110, 56
    parts = [render_text(left, 18, "messages of", "soft"), render_text(4, top + 20, "readers of", "soft")]
    parts += [render_text(left + 8 + index * CELL, 44, f"v{number}", "strong") for index, number in enumerate(numbers)]
    for row, reader in enumerate(numbers):
        y = top + row * CELL
        parts.append(render_text(left - 28, y + 20, f"v{reader}", "strong"))
        for column, writer in enumerate(numbers):
            x = left + column * CELL
            readable = reads[reader, writer]
            frame = ' stroke="var(--ink)" stroke-width="2"' if (reader, writer) in protected else ""
            css, mark = ("good", "✓") if readable else ("bad", "✗")
            answer = "reads" if readable else "cannot read"
            parts.append(
                f'<g><title>v{reader} {answer} v{writer}</title><rect class="{css}" x="{x + 2}" y="{y + 2}" width="{CELL - 4}" height="{CELL - 4}" rx="5"{frame}/>'
                f"{render_text(x + 12, y + 22, mark, 'mark')}</g>"
            )
    bottom = top + len(numbers) * CELL
    if protected:
        parts.append(render_text(4, bottom + 24, "Framed: protected by the strategy.", "soft"))
    unreadable = [f"v{reader} cannot read v{writer}" for (reader, writer), readable in reads.items() if not readable]
    return render_document(
        title,
        "; ".join(unreadable) or "Each version reads each.",
        max(left + len(numbers) * CELL + 10, 260),
        bottom + 36,
        parts,
    )


def draw_environments(
    title: str, targets: Sequence[str], topics: Mapping[str, tuple[int | None, Sequence[int | None]]]
) -> str:
    """Return a grid of topics and targets: the version of each target, and by how many versions it is behind Git.

    Args:
        title: the title.
        targets: the names of the targets.
        topics: by topic, the newest version in Git, and the version of each target as Git counts; None without a version.
    """
    left = 24 + 8 * max((len(topic) for topic in topics), default=0)
    step = 120
    parts = [render_text(left + index * step, 20, name, "strong") for index, name in enumerate(("Git", *targets))]
    y = 44
    for topic, (newest, versions) in topics.items():
        parts.append(render_text(4, y + 4, topic, "code"))
        parts.append(render_text(left, y + 4, "-" if newest is None else f"v{newest}", "code"))
        for index, version in enumerate(versions):
            x = left + (index + 1) * step
            is_current = version == newest
            behind = "" if is_current or newest is None or version is None else f", {newest - version} behind"
            text = ("✓ " if is_current else "") + ("none" if version is None else f"v{version}{behind}")
            parts.append(render_text(x, y + 4, text, "code good" if is_current else "code soft"))
        y += 28
    description = "; ".join(
        f"{topic}: Git {newest}, {', '.join(f'{target} {version}' for target, version in zip(targets, versions, strict=True))}"
        for topic, (newest, versions) in topics.items()
    )
    return render_document(title, description, left + (len(targets) + 1) * step, y, parts)


def find_lives(shown_versions: dict[int, Any]) -> list[FieldLife]:
    """Return the fields of an Avro record over its versions; a field with an alias continues the field of that name."""
    lives: list[dict[str, Any]] = []
    current: dict[str, dict[str, Any]] = {}
    for number, version in shown_versions.items():
        previous, current = current, {}
        for definition in json.loads(version["schema"])["fields"]:
            names = [definition["name"], *definition.get("aliases", ())]
            life = next((previous[name] for name in names if name in previous), None)
            if life is None:
                life = {"first": number, "renames": {}}
                lives.append(life)
            elif life["name"] != definition["name"]:
                life["renames"][number] = life["name"]
            life["name"] = definition["name"]
            life["last"] = number
            current[definition["name"]] = life
    newest = [*shown_versions][-1]
    return [
        FieldLife(life["name"], life["first"], None if life["last"] == newest else life["last"], life["renames"])
        for life in lives
    ]


def main() -> None:
    """Write the pictures into the folder on the command line."""
    out = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        shop = Path(name, "shop")
        history.make(shop)
        [topic] = read_answer(shop, "log", TOPIC)["topics"]
        versions = topic["versions"]
        numbers = [version["version"] for version in versions]
        shown_versions = {number: read_answer(shop, "show", f"{TOPIC}@{number}") for number in numbers}

        # Who reads whom, of every pair; a strategy of BACKWARD_TRANSITIVE protects the pairs below the diagonal.
        reads = {(number, number): True for number in numbers}
        for number, version in shown_versions.items():
            readable = {*version["reads"]}
            reads |= {(number, other): other in readable for other in numbers if other != number}
        protected = frozenset((reader, writer) for reader in numbers for writer in numbers if reader > writer)
        (out / "orders-compatibility.svg").write_text(
            draw_compatibility("Which version of orders reads which", numbers, reads, protected), "utf-8"
        )

        # A version breaks readers if the version before it cannot read its messages, or it cannot read earlier messages.
        breaking = frozenset(
            number for number in numbers[1:] if not (reads[number - 1, number] and reads[number, number - 1])
        )
        days = {
            version["version"]: datetime.fromtimestamp(version["commit"]["time_s"], UTC).date().isoformat()
            for version in versions
        }
        (out / "orders-evolution.svg").write_text(
            draw_evolution("The fields of orders", days, find_lives(shown_versions), breaking), "utf-8"
        )

        graph = run_command(shop, "graph", "Money", "--format", "svg")
        (out / "money-users.svg").write_text(graph, "utf-8")

        # Dev has a version more than stage, and prod is not promoted yet.
        clone = environments_history.make(Path(name, "environments"))
        read_answer(clone, "apply", "--target", "dev", "--auto-approve")
        read_answer(clone, "promote", "stage", "--to", "origin/main")
        history.git(clone, "push", "--quiet", "origin", "promoted/stage")
        read_answer(clone, "apply", "--target", "stage", "--auto-approve")
        history.git(
            clone,
            "merge",
            "--quiet",
            "--no-ff",
            "-m",
            "Orders carry tags",
            "origin/tags",
            when_s=history.FIRST_COMMIT_S,
        )
        history.git(clone, "push", "--quiet", "origin", "main")
        read_answer(clone, "apply", "--target", "dev", "--auto-approve")
        status = read_answer(clone, "status", "--all-targets")
        targets = [target["target"] for target in status["targets"]]
        grid = {
            topic["topic"].removeprefix("persistent://"): (
                topic["approved"],
                [topic["targets"].get(target, {}).get("git") for target in targets],
            )
            for topic in status["topics"]
        }
        (out / "environments.svg").write_text(
            draw_environments("Versions of topics in each environment", targets, grid), "utf-8"
        )


if __name__ == "__main__":
    main()
