"""Random changes of retention and TTL in files and overlays: each loss of a topic is named, and the printed command carries all out."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import admin_rest
import pytest
from command import Printed, schemactl
from scratch import Scratch, record, write_declaration

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SCHEMACTL_EXAMPLES", "100")) // 20
NAMES = ["sales", *(f"t{number}" for number in range(3))]
"""The namespace, and its topics."""

RETENTION, TTL = "retention_policies", "message_ttl_in_seconds"
PARTS = "retentionTimeInMinutes", "retentionSizeInMB"
VALUES: dict[str, list[Any]] = {
    RETENTION: [None, *(dict(zip(PARTS, limits, strict=True)) for limits in ((0, 0), (60, 100), (1000, -1), (-1, -1)))],
    TTL: [None, 0, 60, 3600],
}
DEFAULTS: dict[str, Any] = {RETENTION: VALUES[RETENTION][1], TTL: 0}

State = dict[str, dict[str, Any]]
"""The value of each setting by name, with None for a setting that is not declared."""


def make_address(name: str, setting: str) -> str:
    return f"shop/sales:{setting}" if name == "sales" else f"persistent://shop/sales/{name}:{setting}"


def find_value(state: State, name: str, setting: str) -> Any:
    """Return the value in force for a topic."""
    own, inherited = state[name][setting], state["sales"][setting]
    return next(value for value in (own, inherited, DEFAULTS[setting]) if value is not None)


def keeps_less(setting: str, old: Any, new: Any) -> bool:
    if setting == TTL:
        return bool(new != 0 and (old == 0 or new < old))
    return any(new[part] != -1 and (old[part] == -1 or new[part] < old[part]) for part in PARTS)


def write_state(scratch: Scratch, state: State, chance: random.Random) -> None:
    """Approve a state, with each value either in the files or in the overlay of the target, which wins over another value."""
    files, overlay = {}, []
    for name, settings in state.items():
        head = "namespace: shop/sales" if name == "sales" else f"topic: shop/sales/{name}"
        base, above = {}, {}
        for setting, value in settings.items():
            if value is not None and chance.random() < 0.4:
                above[setting] = value
                value = chance.choice(VALUES[setting])  # noqa: PLW2901  the overlay's counts
            base[setting] = value
        lines = [f"{setting}: {json.dumps(value)}\n" for setting, value in base.items() if value is not None]
        schema = "" if name == "sales" else "schema: {type: STRING}\n"
        files[f"namespaces/{name}.yaml"] = f"{head}\n{schema}{''.join(lines)}"
        lines = [f"{setting}: {json.dumps(value)}\n" for setting, value in above.items()]
        overlay += [f"{head}\n{''.join(lines)}"] * bool(lines)
    files["environment.yaml"] = "---\n".join(overlay) or "# none\n"
    scratch.commit(files)


@contextmanager
def open_registry(kind: str) -> Iterator[str]:
    if kind == "embedded":
        yield "sqlite:.schemactl/registry.db"
        return
    with admin_rest.serve_folder() as (url, _):
        yield url


@pytest.mark.network
@pytest.mark.parametrize("seed", range(SEEDS))
def test_losses_of_random_changes_are_named_and_allowed_by_one_command(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  no secret
    with open_registry("embedded" if seed % 2 else "serve") as url:
        scratch = Scratch(tmp_path / "shop")
        target = f'{{registry: "{url}", overlays: environment.yaml}}'
        scratch.commit({"schemactl.yaml": f"version: 1\ntargets: {{local: {target}}}\n", ".gitignore": ".schemactl/\n"})

        def run(*arguments: str, code: int | tuple[int, ...] = 0) -> Printed:
            scratch.flush()
            return schemactl(scratch.path, *arguments, code=code)

        old: State | None = None
        for _ in range(4):
            new = {name: {setting: chance.choice(values) for setting, values in VALUES.items()} for name in NAMES}
            for name in NAMES:
                if old and chance.random() < 0.3:
                    new[name] = old[name]
            write_state(scratch, new, chance)
            if old is None:
                run("apply", "--auto-approve", "--create-tenants") if url.startswith("http") else run(
                    "apply", "--auto-approve"
                )
                old = new
                continue
            plan = run("plan", code=(0, 100)).out
            commands = re.findall(r"`schemactl (apply [^`]+ --allow-data-loss [^`]+)`", plan)
            named = set(re.findall(r"--allow-data-loss ([^ `]+)", plan))
            for name in NAMES[1:]:
                for setting in VALUES:
                    is_lost = keeps_less(setting, *(find_value(state, name, setting) for state in (old, new)))
                    if is_lost:
                        assert {make_address(name, setting), make_address("sales", setting)} & named, plan
                    else:
                        assert make_address(name, setting) not in named, plan
            assert len(set(commands)) <= 1
            command = shlex.split(commands[0]) if commands else ["apply"]
            run(*command, "--auto-approve")
            assert "No changes." in run("plan", "--detailed-exitcode").out
            old = new


def test_a_topic_that_is_left_out_loses_nothing(tmp_path: Path) -> None:
    """Its settings are not applied, so that they keep nothing else from being applied."""
    scratch = Scratch(tmp_path / "shop")
    strict, week, day = "schema_compatibility_strategy: BACKWARD\n", VALUES[RETENTION][4], VALUES[RETENTION][2]
    scratch.commit(
        {
            "schemactl.yaml": 'version: 1\ntargets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n',
            ".gitignore": ".schemactl/\n",
            "namespaces/sales.yaml": "namespace: shop/sales\n",
            "namespaces/orders.yaml": write_declaration(more=f"{strict}{RETENTION}: {json.dumps(week)}\n"),
            "namespaces/orders.avsc": record("id"),
        }
    )
    scratch.flush()
    schemactl(scratch.path, "apply", "--auto-approve")
    scratch.commit(
        {
            "namespaces/sales.yaml": f"namespace: shop/sales\n{TTL}: 60\n",
            "namespaces/orders.yaml": write_declaration(more=f"{strict}{RETENTION}: {json.dumps(day)}\n"),
            "namespaces/orders.avsc": record("id", "needed"),
        }
    )
    scratch.flush()
    plan = schemactl(scratch.path, "plan", code=100).out
    assert re.findall(r"--allow-data-loss ([^ `]+)", plan) == [f"shop/sales:{TTL}"]
    schemactl(scratch.path, "apply", "--auto-approve", "--allow-data-loss", f"shop/sales:{TTL}", code=3)
    assert "Nothing can be applied; left out: 1 topic." in schemactl(scratch.path, "plan", code=100).out
