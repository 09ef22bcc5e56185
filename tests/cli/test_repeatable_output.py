"""Every read-only command answers the same when it is run twice, with and without caches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import shop
from command import Printed, process
from scratch import Scratch

pytestmark = pytest.mark.slow

COMMANDS = [
    "check",
    "check --format json",
    "check --format markdown",
    "check --staged --format json",
    "check --base main~3 --format json",
    "check --strict --topic orders",
    "lint",
    "lint --format json",
    "fmt --check",
    "fmt --diff",
    "list",
    "list --format json",
    "list --changed",
    "list --format codeowners",
    "log orders",
    "log --all",
    "log --all --format json",
    "targets",
    "targets --format json",
    "show orders",
    "show orders@0",
    "show orders@work --format json",
    "show --effective orders",
    "diff",
    "diff orders",
    "diff main~3..main --format json",
    "changelog main~5..main",
    "graph",
    "graph Money",
    "graph --format json",
    "explain --all",
    "plan --target local",
    "plan --target local --format json",
    "drift --target local",
    "drift --target local --format json",
    "status",
    "status --format json",
    "rollout orders",
    "clients orders",
    "generate --check",
    "export asyncapi",
    "export jsonschema orders",
    "export ddl orders",
    "export avro orders",
    "sample orders",
    "sample orders --count 3",
]


@pytest.fixture(scope="module")
def changed_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example project, with a change of a topic and a broken declaration in the working tree."""
    folder = shop.make(tmp_path_factory.mktemp("example"))
    shop.edit(folder / shop.ORDERS, shop.STATUS, shop.WITHOUT_SHIPPED)
    (folder / shop.ORDERS.parent / "broken.yaml").write_text(
        "topic: shop/sales/broken\nschema: {type: AVRO, definition: none.avsc}\n"
    )
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_answers_the_same_with_and_without_caches(command: str, changed_shop: Path, tmp_path: Path) -> None:
    def run(cache: str) -> Printed:
        printed = process(changed_shop, *command.split(), SCHEMACTL_CACHE=cache, NO_COLOR="1")
        # `status` says when it was asked.
        return printed._replace(out=re.sub(r'^  "time_s": \d+', '  "time_s": 0', printed.out, flags=re.MULTILINE))

    first = run(str(tmp_path))
    assert "Traceback" not in first.err
    assert first.code in (0, 1, 64, 100), first
    assert run(str(tmp_path)) == first
    assert run("") == first


def test_the_cache_of_a_long_history_answers_as_the_history(tmp_path: Path) -> None:
    scratch = Scratch.open_existing(shop.make(tmp_path))
    without = process(scratch, "log", "--all", "--format", "json", SCHEMACTL_CACHE="")
    for revision in ("main~10", "main~5", "main"):
        scratch.git("update-ref", "refs/heads/part", revision)
        process(scratch, "check", "--base", "part", SCHEMACTL_CACHE=str(tmp_path / "cache"))
    assert process(scratch, "log", "--all", "--format", "json", SCHEMACTL_CACHE=str(tmp_path / "cache")) == without
