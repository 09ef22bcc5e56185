"""Damaged definitions end no command in a traceback: a short run by default, an hour in `make soak` (SCHEMACTL_FUZZ_SECONDS)."""

from __future__ import annotations

import io
import json
import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from fuzzed_definitions import Fuzzer
from scratch import Scratch

from schemactl.cli.compare import _compare_identity, _compile_ahead, _compute_fingerprints, _judge_request
from schemactl.cli.decode import _decode_line
from schemactl.cli.json_lines import INTERNAL_ERROR, answer_lines
from schemactl.cli.struct import _convert_schema
from schemactl.core.schema import Release

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("SCHEMACTL_FUZZ_SECONDS", "0"))
"""How long each test runs; by default each takes its first seeds only."""

COMMANDS = (
    *("check", "lint", "list", "diff", "show a", "show d --effective", "sample a", "sample d", "sample k", "graph"),
    *(
        "export asyncapi",
        "export jsonschema --out out",
        "export ddl",
        "export datacontract --out out",
        "export avro --out out",
    ),
    *(
        "site --out site",
        "generate --draft",
        "generate --draft --recursion-depth 2",
        "fmt --check",
        "changelog HEAD~1..HEAD",
    ),
)
PROJECT = "version: 1\nroots: [topics]\ngenerate: {package: fuzzed}\n"
NAMESPACE = "namespace: t/n\nschema_compatibility_strategy: FULL_TRANSITIVE\n"


def choose_seeds(count: int, *more: int) -> Iterator[int]:
    """Yield the first seeds and `more`, which ended in a traceback once, or seeds for SCHEMACTL_FUZZ_SECONDS."""
    if not SECONDS:
        yield from (*more, *range(count))
        return
    first = int(os.environ.get("SCHEMACTL_FUZZ_SEED", "0"))
    end = time.monotonic() + SECONDS
    seed = first
    while time.monotonic() < end:
        yield seed
        seed += 1


def answer_line(request: Any, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    out = io.StringIO()
    answer_lines(io.BytesIO(json.dumps(request).encode()), out, answer, ahead=_compile_ahead)
    response: dict[str, Any] = json.loads(out.getvalue())
    return response


def test_no_line_of_a_batch_has_an_internal_error() -> None:
    answers: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
        *(partial(_judge_request, release=release, category="WIRE_JSON") for release in Release),
        _compare_identity,
    ]
    failures = []
    for seed in choose_seeds(300, 7517, 8298, 10193, 33746, 34626, 103834):
        fuzzer = Fuzzer(seed)
        request = fuzzer.make_request()
        new = request["new"]
        schema = new.get("schema") if isinstance(new, dict) else new
        struct_request = {**(new if isinstance(new, dict) else {}), "options": {"recursiveFieldMaxDepth": 2}}
        decode_request = {**struct_request, "writer": schema, "reader": schema, "messages_b64": ["", "AAAA", "e30="]}
        lines: list[tuple[Any, Callable[[dict[str, Any]], dict[str, Any]]]] = [
            *((request, answer) for answer in answers),
            ({"schema": schema}, _compute_fingerprints),
            (struct_request, partial(_convert_schema, spark="4.1")),
            (decode_request, _decode_line),
        ]
        for line, answer in lines:
            error = answer_line(line, answer).get("error")
            if isinstance(error, str) and error.startswith(INTERNAL_ERROR):
                failures.append((seed, error))
    assert failures == []


def test_no_command_ends_in_a_traceback(tmp_path: Path) -> None:
    failures = []
    for seed in choose_seeds(8, 5024):
        scratch = Scratch(tmp_path / str(seed))
        scratch.commit({"schemactl.yaml": PROJECT, "topics/n.yaml": NAMESPACE, **Fuzzer(seed).make_files()})
        scratch.commit(Fuzzer(seed + 1_000_000).make_files())
        scratch.write(Fuzzer(seed + 2_000_000).make_files())
        for command in COMMANDS:
            try:
                schemactl(scratch, *command.split(), code=(0, 1, 2, 3, 4, 64, 100))
            except Exception as error:  # noqa: BLE001  it would be a traceback
                place = traceback.extract_tb(error.__traceback__)[-1]
                failures.append((seed, command, f"{type(error).__name__}: {error}", f"{place.filename}:{place.lineno}"))
        shutil.rmtree(scratch.path)
    assert failures == []
