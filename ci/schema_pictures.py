"""Pictures of the example shop's schemas, from the answers of the real tool: `python ci/schema_pictures.py docs/pictures`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from examples.environments import history as environments_history  # noqa: E402  the examples are not installed
from examples.shop import history  # noqa: E402  as above
from schemactl.publish.drawings import FieldLife, draw_compatibility, draw_environments, draw_evolution  # noqa: E402  of this checkout

TOPIC: Final = "orders"


def run_command(folder: Path, *arguments: str) -> Any:
    """Return the JSON that schemactl prints."""
    command = [sys.executable, "-m", "schemactl", *arguments, "--format", "json"]
    done = subprocess.run(  # noqa: S603  the project's own command
        command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    return json.loads(done.stdout)


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
        [topic] = run_command(shop, "log", TOPIC)["topics"]
        versions = topic["versions"]
        numbers = [version["version"] for version in versions]
        shown_versions = {number: run_command(shop, "show", f"{TOPIC}@{number}") for number in numbers}

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

        command = [sys.executable, "-m", "schemactl", "graph", "Money", "--format", "svg"]
        graph = subprocess.run(  # noqa: S603  the project's own command
            command, cwd=shop, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=True
        ).stdout
        (out / "money-users.svg").write_bytes(graph)

        # Dev has a version more than stage, and prod is not promoted yet.
        clone = environments_history.make(Path(name, "environments"))
        run_command(clone, "apply", "--target", "dev", "--auto-approve")
        run_command(clone, "promote", "stage", "--to", "origin/main")
        history.git(clone, "push", "--quiet", "origin", "promoted/stage")
        run_command(clone, "apply", "--target", "stage", "--auto-approve")
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
        run_command(clone, "apply", "--target", "dev", "--auto-approve")
        status = run_command(clone, "status", "--all-targets")
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
