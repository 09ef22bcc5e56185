"""The setting `nanoseconds`: columns that keep all digits of Pulsar's times, and the note about columns that do not."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import pytest
from command import run_json, schemactl
from imported_package import import_package
from scratch import Scratch

NANOS = 1_704_164_645_123_456_789
INSTANT = struct.pack(">qi", NANOS // 10**9, NANOS % 10**9)
TOPICS = """\
namespace: shop/web
---
topic: shop/web/moments
schema: {type: INSTANT}
---
topic: shop/web/pairs
schema: {type: KEY_VALUE, key: {type: LOCAL_TIME}, value: {type: LOCAL_DATE_TIME}}
---
topic: shop/web/days
schema: {type: LOCAL_DATE}
"""


def make_repository(folder: Path, *, project: str = "", topics: str = TOPICS) -> Scratch:
    """Return a repository without approved topics."""
    scratch = Scratch(folder / "shop")
    settings = f'{{package: shop_schemas, out: generated, spark: "4.1"{project}}}'
    scratch.commit({"schemactl.yaml": f"version: 1\nroots: [topics]\napproved: main\ngenerate: {settings}\n"})
    scratch.write({"topics/topics.yaml": topics})
    return scratch


def list_notes(repository: Scratch) -> list[str]:
    report = run_json(repository, "check")
    return [note for note in report["notes"] if "nanoseconds" in note]


def set_for_topic(value: str, count: int) -> str:
    """Return the declarations with the setting in the first `count` topics."""
    return TOPICS.replace(
        "schema: {type: INSTANT", f"generate: {{nanoseconds: {value}}}\nschema: {{type: INSTANT"
    ).replace(
        "schema: {type: KEY" if count == 2 else "none", f"generate: {{nanoseconds: {value}}}\nschema: {{type: KEY"
    )


@pytest.mark.parametrize(
    ("project", "topics", "subject"),
    [
        ("", TOPICS, "INSTANT and LOCAL_TIME and LOCAL_DATE_TIME: "),
        ("", set_for_topic("bigint", 1), "LOCAL_TIME and LOCAL_DATE_TIME: "),
        ("", set_for_topic("truncated", 1), "LOCAL_TIME and LOCAL_DATE_TIME: "),
        ("", set_for_topic("bigint", 2), None),
        (", nanoseconds: bigint", TOPICS, None),
        (", nanoseconds: truncated", TOPICS, None),
        ("", "topic: shop/web/days\nschema: {type: TIMESTAMP}\n", None),
    ],
)
def test_check_notes_once_that_digits_are_cut(tmp_path: Path, project: str, topics: str, subject: str | None) -> None:
    notes = list_notes(make_repository(tmp_path, project=project, topics=topics))
    assert len(notes) == (subject is not None)
    assert subject is None or notes[0].startswith(subject)


def test_other_changes_do_not_repeat_the_note(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    # The second run reads the declarations from the cache.
    for _ in range(2):
        (note,) = list_notes(repository)
        assert "persistent://shop/web/moments and 1 more topic;" in note
    repository.commit({"topics/topics.yaml": TOPICS})
    repository.write({"topics/topics.yaml": f"{TOPICS}---\ntopic: shop/web/nights\nschema: {{type: DATE}}\n"})
    assert list_notes(repository) == []


@pytest.mark.parametrize("in_project", [True, False])
def test_packages_and_commands_keep_all_digits(tmp_path: Path, in_project: bool) -> None:  # noqa: FBT001  a column of the table
    project, topics = (", nanoseconds: bigint", TOPICS) if in_project else ("", set_for_topic("bigint", 2))
    repository = make_repository(tmp_path, project=project)
    repository.commit({"topics/topics.yaml": topics})
    schemactl(repository, "generate")
    assert schemactl(repository, "generate", "--check").code == 0
    with import_package(repository.path / "generated", "shop_schemas") as package:
        moments, pairs, days = (package.topic(f"persistent://shop/web/{name}") for name in ("moments", "pairs", "days"))
        assert moments.schema.split() == ["value", "BIGINT", "NOT", "NULL"]
        assert moments.decode_one(INSTANT, 0) == NANOS
        assert moments.encode_one(NANOS) == INSTANT
        pair = {"key": 1_001, "value": NANOS}
        assert pairs.decode_one(pairs.encode_one(pair), 0, pairs.encode_key(pair)) == pair
        assert "nanoseconds" not in (repository.path / "generated/shop_schemas/shop/web/days.py").read_text()
        assert days.codec.options.nanoseconds == "truncated"
    module = (repository.path / "generated/shop_schemas/shop/web/moments.py").read_text()
    assert "MOMENTS: Topic[int]" in module
    payload = base64.b64encode(INSTANT).decode()
    assert schemactl(repository, "decode", "moments", "--version", "0", "--base64", payload).out == f"{NANOS}\n"
    assert "value BIGINT" in schemactl(repository, "export", "ddl", "--topic", "moments").out
    assert "generate.nanoseconds" in schemactl(repository, "show", "moments", "--effective").out or in_project
    schemactl(repository, "sample", "shop/web/moments", "-n", "1", "--format", "messages", "--out", "samples")
    (sample_file,) = (path for path in repository.path.glob("samples/**/*") if path.is_file())
    assert 1_700_000_000 * 10**9 < json.loads(sample_file.read_text())["value"] < 1_800_000_000 * 10**9


def test_strict_decoding_names_the_setting(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    repository.commit({"topics/topics.yaml": TOPICS})
    repository.flush()
    command = ("decode", "moments", "--version", "0", "--base64", base64.b64encode(INSTANT).decode())
    assert schemactl(repository, *command).out == '"2024-01-02T03:04:05.123456+00:00"\n'
    strict = schemactl(repository, *command, "--strict", code=100)
    assert "`generate: {nanoseconds: bigint}` keeps them" in strict.err


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({}, '"type":"timestamp"'),
        ({"nanoseconds": "truncated"}, '"type":"timestamp"'),
        ({"nanoseconds": "bigint"}, '"type":"long"'),
        ({"nanoseconds": "long"}, "`options.nanoseconds` is not truncated or bigint"),
    ],
)
def test_struct_takes_the_option(tmp_path: Path, options: dict[str, str], answer: str) -> None:
    line = json.dumps({"id": 1, "type": "INSTANT", "schema": "", "options": options})
    result = schemactl(tmp_path, "struct", stdin=line + "\n", code="error" in answer or "not" in answer)
    assert answer in result.out.replace(" ", "") or answer in result.out
