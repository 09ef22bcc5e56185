"""`check` finishes a malicious pull request in time that is proportional to its size."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from command import schemactl
from scratch import ENVIRONMENT, Scratch

from schemactl.history.git import Blob, Repository

Files = Mapping[str, str]

GENERATE: Final = "generate: {package: shop_schemas}\n"
AVRO_TOPIC: Final = "topic: shop/sales/orders\nschema: {type: AVRO, definition: orders.avsc}\n"

FACTOR: Final = 24
"""Maximum ratio of CPU times for eight times the input, including the start of Python; quadratic work would be 64."""


def make_repository(folder: Path, approved: Files, proposed: Files, project: str = "") -> Path:
    scratch = Scratch(folder)
    scratch.commit({"schemactl.yaml": f"version: 1\napproved: main\n{project}", **approved})
    scratch.commit(proposed, branch="work", start=1)
    scratch.git("checkout", "-q", "work")
    return folder


def check(folder: Path, *, limit_s: float = math.inf) -> tuple[subprocess.CompletedProcess[str], float]:
    """Return the output of `check` and its CPU time in seconds; a process over the limit is killed."""

    def limit_cpu() -> None:
        if limit_s < math.inf:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit_s), math.ceil(limit_s) + 1))

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "schemactl", "check", "--notes"],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit_cpu,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def record(columns: int, kind: str) -> str:
    fields = [{"name": f"column_{number}", "type": kind} for number in range(columns)]
    return json.dumps({"type": "record", "name": "Order", "fields": fields}, indent=1)


def make_doubling_records(levels: int, kind: str) -> str:
    """Return records each of which contains the next one twice."""
    inner: Any = kind
    for level in range(levels):
        again = f"Level{level - 1}" if level else kind
        fields = [{"name": "one", "type": inner}, {"name": "other", "type": again}]
        inner = {"type": "record", "name": f"Level{level}", "fields": fields}
    return json.dumps(inner)


def change_avro(folder: Path, old: str, new: str) -> Path:
    topic = {"namespaces/orders.yaml": AVRO_TOPIC}
    return make_repository(
        folder, {**topic, "namespaces/orders.avsc": old}, {"namespaces/orders.avsc": new}, project=GENERATE
    )


def change_columns(folder: Path, many: int) -> Path:
    return change_avro(folder, record(many, "int"), record(many, "string"))


def columns_that_double(folder: Path, many: int) -> Path:
    levels = many.bit_length() - 1
    return change_avro(folder, make_doubling_records(levels, "int"), make_doubling_records(levels, "string"))


def declare_attack(text: Callable[[int], str]) -> Callable[[Path, int], Path]:
    """Make an attack that declares this text."""

    def change_references(folder: Path, many: int) -> Path:
        topic = "topic: shop/sales/orders\n"
        return make_repository(folder, {"namespaces/orders.yaml": topic}, {"namespaces/orders.yaml": text(many)})

    return change_references


def repeat_piece(piece: str, many: int) -> str:
    """Repeat the piece `many` times, with its number in place of `#`."""
    return "".join(piece.replace("#", str(number)) for number in range(many))


wrong_properties = declare_attack(
    lambda many: (
        f"topic: shop/sales/orders\nschema: {{type: STRING, properties: {{{repeat_piece('p#: 1, ', many)}}}}}\n"
    )
)
unknown_keys = declare_attack(lambda many: "topic: shop/sales/orders\n" + repeat_piece("key#: 1\n", many))
documents = declare_attack(lambda many: repeat_piece("---\ntopic: shop/sales/orders#\n", many))
wrong_documents = declare_attack(lambda many: repeat_piece("---\ntopic: shop/sales/orders#\nkey: 1\n", many))
directives = declare_attack(lambda many: repeat_piece("%TAG !a#! b\n", many) + "---\ntopic: shop/sales/orders\n")


def missing_files(folder: Path, many: int) -> Path:
    topic = "---\ntopic: shop/sales/t#\nschema: {type: AVRO, definition: orders_#x.avsc}\n"
    files = {f"namespaces/orders_{number}.avsc": '"int"' for number in range(many)}
    return make_repository(folder, {}, {"namespaces/orders.yaml": repeat_piece(topic, many), **files})


def write_samples(folder: Path, many: int) -> Path:
    topic = "topic: shop/sales/orders\nschema: {type: STRING}\n"
    messages = repeat_piece('{"version": 0, "payload_b64": "eA=="}\n', many)
    return make_repository(folder, {"namespaces/orders.yaml": topic}, {"namespaces/samples/orders.jsonl": messages})


@pytest.mark.timed
@pytest.mark.parametrize(
    ("attack", "many", "code", "said"),
    [
        (change_columns, 2_000, 100, "The same for 1,900 more columns."),
        (columns_that_double, 2**14, 100, "The same for 16,284 more columns."),
        (wrong_properties, 90_000, 1, ":2:833: 89,900 more problems in this file from here on"),
        (unknown_keys, 90_000, 1, ":102:1: 89,900 more problems in this file from here on"),
        (wrong_documents, 8_000, 1, ":303:1: 7,900 more problems in this file from here on"),
        (documents, 8_000, 0, "8,000 topics checked"),
        (directives, 100_000, 1, ":1:1: directives (`%...`) are not used here"),
        (missing_files, 2_000, 1, "there is no file `namespaces/orders_1999x.avsc`"),
        (write_samples, 40_000, 0, "1 topic checked"),
    ],
    ids=lambda value: "" if callable(value) else None,
)
def test_eight_times_as_much_takes_about_eight_times_as_long(
    tmp_path: Path, attack: Callable[[Path, int], Path], many: int, code: int, said: str
) -> None:
    _, little_s = check(attack(tmp_path / "little", many // 8))
    done, much_s = check(attack(tmp_path / "much", many), limit_s=FACTOR * little_s)
    words = done.stdout + done.stderr
    assert (done.returncode, said in words) == (code, True), f"{much_s:.1f} s, {words[-2000:]}"


@pytest.mark.timed
@pytest.mark.parametrize("levels", [20, 60])
def test_columns_that_double_beyond_all_tables_are_reported_once(tmp_path: Path, levels: int) -> None:
    _, little_s = check(columns_that_double(tmp_path / "little", 2**10))
    folder = change_avro(tmp_path / "much", make_doubling_records(2, "int"), make_doubling_records(levels, "int"))
    done, much_s = check(folder, limit_s=FACTOR * little_s)
    words = done.stdout
    assert words.count("it has more than 100,000 columns and parts") == 1, f"{much_s:.1f} s, {words[-2000:]}"


@pytest.mark.slow
def test_a_file_has_so_many_documents_and_no_more(tmp_path: Path) -> None:
    done, _ = check(documents(tmp_path / "much", 60_000))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [
        "namespaces/orders.yaml:20002:1: the file has more than 10,000 documents; this is the first one over the limit",
        "  Fix: put them into several files",
    ]


@pytest.mark.parametrize("change", ["remove", "replace", "rename", "edit"])
def test_the_definitions_of_topics_that_do_not_change_are_not_read(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = {
        f"namespaces/t{number}.yaml": f"topic: shop/sales/t{number}\nschema: {{type: AVRO, definition: t{number}.avsc}}\n"
        for number in range(60)
    }
    definitions = {path.replace(".yaml", ".avsc"): record(number + 1, "int") for number, path in enumerate(topics)}
    text = topics["namespaces/t7.yaml"]
    proposals: dict[str, dict[str, str | None]] = {
        "remove": {"namespaces/t7.yaml": None},
        "replace": {"namespaces/t7.yaml": text.replace("t7\n", "u7\n", 1)},
        "rename": {"namespaces/t7.yaml": text.replace("t7\n", "u7\nrenamed_from: shop/sales/t7\n", 1)},
        "edit": {"namespaces/t7.yaml": text + "owner: sales\n"},
    }
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"schemactl.yaml": "version: 1\napproved: main\n", **topics, **definitions})
    schemactl(scratch, "check")
    scratch.commit(proposals[change], branch="work", start=1)
    scratch.git("checkout", "-q", "work")
    blob_ids: list[str] = []
    read_blob = Repository.blob

    def read_and_note(repository: Repository, blob_id: str) -> Blob:
        blob_ids.append(blob_id)
        return read_blob(repository, blob_id)

    monkeypatch.setattr(Repository, "blob", read_and_note)
    schemactl(scratch, "check", code=(0, 100))
    assert len(blob_ids) < 20
