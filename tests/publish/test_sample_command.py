"""`sample`, and `check` of its files."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from command import run_json, schemactl
from scratch import Scratch, record, write_declaration

from schemactl.checks.samples import SampleMessage

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [namespaces]\n"
TOPIC = "namespaces/orders.yaml"
DEFINITION = "namespaces/orders.avsc"


@pytest.fixture
def topic_folder(tmp_path: Path) -> Path:
    scratch = Scratch(tmp_path / "repository")
    scratch.commit({"schemactl.yaml": PROJECT, TOPIC: write_declaration(), DEFINITION: record("id")})
    scratch.commit({DEFINITION: record("id", amount=0)})
    scratch.git("reset", "-q", "--hard")
    return scratch.path


def read_lines(folder: Path, *arguments: str, code: int = 0) -> list[Any]:
    return [json.loads(line) for line in schemactl(folder, "sample", *arguments, code=code).out.splitlines()]


def test_a_version_has_messages_of_its_own(topic_folder: Path) -> None:
    assert [set(value) for value in read_lines(topic_folder, "orders@0", "-n", "2")] == [{"id"}, {"id"}]
    assert [set(value) for value in read_lines(topic_folder, "orders")] == [{"id", "amount"}]
    assert read_lines(topic_folder, "orders", "--seed", "1") != read_lines(topic_folder, "orders", "--seed", "2")
    (message,) = read_lines(topic_folder, "orders@0", "--format", "messages")
    assert message["version"] == 0
    printed = schemactl(topic_folder, "decode", "orders", "--version", "0", "--base64", message["payload_b64"])
    assert json.loads(printed.out) == message["value"]


def test_a_definition_that_is_not_approved_has_the_number_it_would_get(topic_folder: Path) -> None:
    (topic_folder / DEFINITION).write_text(record("id", amount=0, count=1))
    printed = schemactl(topic_folder, "sample", "orders@work", "--format", "messages")
    assert json.loads(printed.out)["version"] == 2
    assert "not approved yet, so the messages get the number that the version would have: 2" in printed.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["orders", "-n", "0"], "expected a number from 1 on, found '0'"),
        (["orders", "-n", "2", "--format", "bytes"], "several payloads on standard output cannot be separated"),
        (["orders", "--format", "json", "--out", "x"], "prints values, not messages"),
        (["orders@0", "--from", "pulsar://localhost:1"], "--from reads messages of all versions"),
        (["orders", "--token-env", "TOKEN"], "--token-env requires --from"),
        (["orders", "--from", "pulsar://localhost:1", "--token-env", "NONE_SUCH"], "NONE_SUCH .* is not set"),
        (["others"], "others"),
        (["orders", "--timeout", "-1", "--from", "pulsar://localhost:1"], "expected a number of seconds"),
    ],
)
def test_wrong_usage_is_said(topic_folder: Path, arguments: list[str], expected: str) -> None:
    error = schemactl(topic_folder, "sample", *arguments, code=64).err
    assert re.search(expected, error), error


@pytest.mark.parametrize("form", ["messages", "bytes"])
def test_check_reads_what_sample_wrote(topic_folder: Path, form: str) -> None:
    for version in ("0", "1"):
        out = f"namespaces/{version}/samples"
        arguments = ("sample", f"orders@{version}", "-n", "3", "--format", form, "--out", out)
        assert "in place of" not in schemactl(topic_folder, *arguments).err
        assert "in place of" in schemactl(topic_folder, *arguments).err
    samples = topic_folder / "namespaces" / "samples"
    samples.mkdir()
    for number, path in enumerate(sorted(topic_folder.glob("namespaces/[01]/samples/*"))):
        path.rename(samples / f"orders.{number}{path.name.removeprefix('orders')}")
    assert schemactl(topic_folder, "check").err == ""
    (topic_folder / DEFINITION).write_text(record("id", "customer", amount=0))
    findings = run_json(topic_folder, "check", code=100)["findings"]
    unreadable = [finding for finding in findings if finding["rule"] == "SAMPLE_UNREADABLE"]
    assert len(unreadable) == 6
    assert "customer" in unreadable[0]["message"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("orders.first.bin", "", "orders.first.bin:1:1: the file name does not contain the version"),
        ("orders.jsonl", "\n{", "orders.jsonl:2:1: this line is not JSON"),
        ("orders.jsonl", "[]", "this line is not a JSON object"),
        (
            "orders.jsonl",
            '{"version": true}',
            "`version` is neither a version number nor null (for a message without a version)",
        ),
        (
            "orders.jsonl",
            f'{{"version": {2**63}}}',
            "`version` is neither a version number nor null (for a message without a version)",
        ),
        ("orders.jsonl", '{"payload_b64": "?"}', "`payload_b64` is not base64"),
        ("orders.jsonl", '{"payload_b64": "é"}', "`payload_b64` is not base64"),
        ("orders.jsonl", '{"payload_b64": 1}', "`payload_b64` is not base64 text"),
        ("orders.jsonl", '{"payload": ""}', "unknown key of a sample: 'payload'"),
    ],
)
def test_a_file_that_is_none_of_samples_is_an_error(topic_folder: Path, name: str, content: str, expected: str) -> None:
    (topic_folder / "namespaces" / "samples").mkdir()
    (topic_folder / "namespaces" / "samples" / name).write_text(content)
    assert expected in schemactl(topic_folder, "check", code=1).err


def test_messages_of_a_record_that_holds_itself_in_several_places_are_read(tmp_path: Path) -> None:
    node = {
        "type": "record",
        "name": "Node",
        "fields": [
            {"name": "below", "type": {"type": "array", "items": "Node"}},
            {"name": "next", "type": ["null", "Node"]},
        ],
    }
    repository = Scratch(tmp_path / "tree")
    declared = {"topic": "shop/sales/trees", "schema": {"type": "AVRO", "definition": node}}
    leaf, deep = bytes(2), b"\2" * 100_000
    messages = [SampleMessage(payload, 0).to_line() for payload in (leaf, b"\2" + leaf + bytes(2), deep)]
    repository.commit({"schemactl.yaml": "version: 1\nroots: [ns]\n"})
    repository.flush()
    repository.write({"ns/trees.yaml": json.dumps(declared), "ns/samples/trees.jsonl": "\n".join(messages)})
    findings = run_json(repository.path, "check", code=100)["findings"]
    [unread] = [finding for finding in findings if finding["rule"] == "SAMPLE_UNREADABLE"]
    assert unread["line"] == 3
    assert "the value is nested too deeply" in unread["message"]


def test_all_files_that_are_none_of_samples_are_said_at_once(topic_folder: Path) -> None:
    (topic_folder / "namespaces" / "samples").mkdir()
    (topic_folder / "namespaces" / "samples" / "orders.jsonl").write_text("{")
    (topic_folder / "namespaces" / "samples" / "orders.more.jsonl").write_text("{")
    assert schemactl(topic_folder, "check", code=1).err.count("this line is not JSON") == 2


def test_a_sample_of_a_version_that_there_is_not_says_which_there_are(topic_folder: Path) -> None:
    (topic_folder / "namespaces" / "samples").mkdir()
    (topic_folder / "namespaces" / "samples" / "orders.v7.bin").write_bytes(b"")
    assert "there is no version 7: the topic has versions 0-1." in schemactl(topic_folder, "check", code=100).out


def test_a_sample_of_no_topic_is_noted(topic_folder: Path) -> None:
    (topic_folder / "namespaces" / "samples").mkdir()
    (topic_folder / "namespaces" / "samples" / "ordres.v0.bin").write_bytes(b"")
    assert "namespaces/samples/ordres.v0.bin" in "".join(schemactl(topic_folder, "check")[:2])


def test_a_waived_sample_passes_and_one_with_another_key_or_payload_does_not(topic_folder: Path) -> None:
    (topic_folder / "namespaces" / "samples").mkdir()
    file = topic_folder / "namespaces" / "samples" / "orders.jsonl"
    file.write_text('{"version": 0, "payload_b64": ""}\n')
    (finding,) = run_json(topic_folder, "check", code=100)["findings"]
    reason = (
        "--reason",
        "it is kept as it came",
        "--owner",
        "team-orders",
        "--until",
        f"{datetime.now(UTC).date() + timedelta(days=30)}",
    )
    schemactl(topic_folder, "waive", finding["fingerprint"], *reason)
    schemactl(topic_folder, "check")
    for other in ('{"version": 0}\n', '{"version": 0, "payload_b64": "", "key_b64": "YQ=="}\n'):
        file.write_text(other)
        assert "SAMPLE_UNREADABLE" in schemactl(topic_folder, "check", code=100).out
