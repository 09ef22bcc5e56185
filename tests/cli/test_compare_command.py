"""`schemactl compare`: the recorded rows, and every kind of line."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import Printed, schemactl
from corpora import read_rows

from schemactl.cli.compare import _compare_identity, _compute_fingerprints, _judge_request
from schemactl.cli.json_lines import answer_lines
from schemactl.core.project import ProtoCategory
from schemactl.core.schema import Release

pytestmark = pytest.mark.slow

Row = dict[str, Any]


def compare_lines(
    requests: Iterable[Row | str], *, release: str = "4.0", category: ProtoCategory | None = None
) -> list[Row]:
    """Return the answer of `compare` to each request."""
    return answer_requests(requests, partial(_judge_request, release=Release(release), category=category))


def answer_requests(requests: Iterable[Row | str], answer: Any) -> list[Row]:
    lines = [request if isinstance(request, str) else json.dumps(request) for request in requests]
    out = io.StringIO()
    is_complete = answer_lines(io.BytesIO("\n".join(lines).encode()), out, answer)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(answers) == len(lines)
    assert is_complete is all("error" not in response for response in answers)
    return answers


def test_an_exception_is_the_error_of_its_line() -> None:
    exceptions = iter([KeyError("x"), None, RecursionError(), MemoryError()])

    def raise_next_exception(_request: Row) -> Row:
        if exception := next(exceptions):
            raise exception
        return {"text": "\ud800"}

    def compile_ahead(_requests: Sequence[Row]) -> None:
        raise ValueError

    lines = b"".join(json.dumps({"id": number}).encode() + b"\n" for number in range(4))
    out = io.StringIO()
    assert not answer_lines(io.BytesIO(lines), out, raise_next_exception, ahead=compile_ahead)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"id": 0, "error": "internal error: KeyError: 'x'"},
        {"id": 1, "text": "\ud800"},
        {"id": 2, "error": "it is nested too deeply"},
        {"id": 3, "error": "internal error: MemoryError: "},
    ]
    out.getvalue().encode()


def make_avro(schema: object) -> Row:
    return {"type": "AVRO", "schema": json.dumps(schema)}


def select_broker_verdict(answer: Row) -> Row:
    return {"put": answer["broker"], "version": answer["version"], "test": answer["test"]}


def select_recorded(pulsar: dict[str, dict[str, Row]], release: str) -> dict[str, Row]:
    """Return the recorded rows for `release`; 4.2 and 5.0 were recorded only if they differ from 4.0."""
    return pulsar["4.0"] if release == "4.0" else pulsar.get("4.2", pulsar["4.0"])


def compare_recorded(corpus: str, release: str) -> Iterator[tuple[Row, dict[str, Row]]]:
    """Yield each row of a corpus with the answers for its strategies, after comparing them with the broker's verdicts."""
    recorded = read_rows(corpus)
    requests = [
        {
            "strategy": strategy,
            "existing": list(map(make_avro, existing)),
            "new": make_avro(row.get("reader", row.get("new"))),
        }
        for row in recorded
        for existing in [row["existing"] if "existing" in row else [row["writer"]]]
        for strategy in select_recorded(row["pulsar"], release)
    ]
    answers = iter(compare_lines(requests, release=release))
    for row in recorded:
        expected = select_recorded(row["pulsar"], release)
        answers_by_strategy = {strategy: next(answers) for strategy in expected}
        assert {
            strategy: select_broker_verdict(answer) for strategy, answer in answers_by_strategy.items()
        } == expected, row["id"]
        yield row, answers_by_strategy


@pytest.mark.parametrize("release", ["4.0", "4.2", "5.0"])
def test_the_recorded_pairs(release: str) -> None:
    for row, answers in compare_recorded("avro_public", release):
        reasons = [(reason["type"], reason["location"]) for reason in row["incompatibilities"]]
        for strategy in ("BACKWARD", "FULL"):
            incompatibilities = answers[strategy]["incompatibilities"]
            reads_old = [reason for reason in incompatibilities if reason["direction"] == "new_reads_old"]
            assert [(reason["rule"], reason["pointer"]) for reason in reads_old] == reasons, row["id"]
        assert answers["BACKWARD"]["data"] == ("compatible" if row["can_read"] else "breaking"), row["id"]


@pytest.mark.parametrize("release", ["4.0", "4.2", "5.0"])
def test_the_recorded_histories(release: str) -> None:
    assert len(list(compare_recorded("avro_chains_public", release))) > 100


@pytest.mark.parametrize("release", ["4.0", "4.2", "5.0"])
def test_the_named_cases(release: str) -> None:
    for row, answers in compare_recorded("named_cases", release):
        backward = answers["BACKWARD"]
        reasons = [f"{reason['rule']} {reason['pointer']}" for reason in backward["incompatibilities"]]
        if row["spec"] != "throws":
            assert (reasons or ["ok"]) == row["spec"].split("; "), row["id"]
        assert (backward["data"] == "compatible") is (row["spec"] == "ok"), row["id"]


def test_the_recorded_decisions_of_the_registry() -> None:
    recorded = read_rows("broker_public")
    answers = compare_lines({**row, "new": row["new"]} for row in recorded)
    for row, answer in zip(recorded, answers, strict=True):
        put = "unchanged" if row["verdict"] == "ok" and not row["stored"] else row["verdict"]
        expected = {"put": put, "version": row["version"], "test": row["test"]["verdict"]}
        assert select_broker_verdict(answer) == expected, row["id"]


def test_the_recorded_fingerprints() -> None:
    recorded = read_rows("avro_pcf_public")
    requests = ({"id": row["id"], "schema": json.dumps(row["schema"])} for row in recorded)
    for row, answer in zip(recorded, answer_requests(requests, _compute_fingerprints), strict=True):
        expected = {"canonical": row["pcf"], "crc64": row["rabin"], "sha256": row["sha256"]}
        assert answer == {"id": row["id"], **expected}


def test_the_recorded_identities() -> None:
    recorded = read_rows("avro_chains_public")
    requests = (
        {"existing": [make_avro(schema) for schema in row["existing"]], "new": make_avro(row["new"])}
        for row in recorded
    )
    for row, answer in zip(recorded, answer_requests(requests, _compare_identity), strict=True):
        assert answer["equal"] == row["equal"], row["id"]


def test_the_answer_has_the_documented_shape() -> None:
    old = make_avro({"type": "record", "name": "A", "fields": []})
    new = make_avro({"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]})
    (answer,) = compare_lines([{"id": "7", "strategy": "BACKWARD", "existing": [old], "new": new}])
    reason = {"rule": "READER_FIELD_MISSING_DEFAULT_VALUE", "pointer": "/fields/0"}
    assert answer == {
        "id": "7",
        "broker": "incompatible",
        "version": None,
        "test": "incompatible",
        "data": "breaking",
        "incompatibilities": [reason | {"direction": "new_reads_old", "against": 0}],
        "misread": [],
        "values": "changed",
        "check": "breaking",
    }


@pytest.mark.parametrize(
    ("release", "broker", "data"), [(Release.R4_0, "ok", "breaking"), (Release.R5_0, "invalid", None)]
)
def test_data_is_judged_where_the_release_accepts_the_names(release: Release, broker: str, data: str | None) -> None:
    old, new = (
        make_avro({"type": "enum", "name": "A", "namespace": "models_0.1", "symbols": symbols})
        for symbols in (["X", "Y"], ["X"])
    )
    request = {"id": 1, "strategy": "BACKWARD", "existing": [old], "new": new}
    (answer,) = answer_requests([request], partial(_judge_request, release=release))
    assert (answer["broker"], answer["data"]) == (broker, data)
    assert answer["values"] == ("changed" if data else None)


STRING = {"type": "STRING"}
GOOD: Row = {"id": 1, "strategy": "FULL", "existing": [], "new": STRING}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "not JSON"),
        ({**GOOD, "strategy": "BACKWARDS"}, "ALWAYS_COMPATIBLE"),
        ({"id": 1, "existing": [], "new": STRING}, "`strategy`"),
        ({**GOOD, "existing": None}, "`existing`"),
        ({**GOOD, "existing": ["x"]}, "`existing[0]`"),
        ({**GOOD, "new": None}, "`new`"),
        ({**GOOD, "new": {"type": "avro", "schema": "{}"}}, "`new.type`"),
        ({**GOOD, "new": {"type": ["AVRO"]}}, "`new.type`"),
        ({**GOOD, "new": {"deleted": True}}, "`new.type`"),
        ({**GOOD, "new": {"type": "AVRO", "schema": {"type": "int"}}}, "`new.schema`"),
        ({**GOOD, "new": {"type": "AVRO", "schema_b64": "!"}}, "base64"),
        ({**GOOD, "new": {"type": "AVRO", "schema_b64": 1}}, "base64"),
        ({**GOOD, "existing": [{"type": "KEY_VALUE", "schema": "[]"}]}, "KEY_VALUE"),
        ({**GOOD, "new": {"type": "STRING", "properties": {"a": 1}}}, "`new.properties`"),
        ({**GOOD, "new": {"type": "PROTOBUF_NATIVE", "schema": {"proto": "nope", "message": "A"}}}, ""),
    ],
)
def test_a_line_that_cannot_be_read_is_answered_and_the_run_goes_on(line: Row | str, words: str) -> None:
    answers = compare_lines([GOOD, line, GOOD])
    assert words in answers[1]["error"]
    assert answers[1]["id"] == (line["id"] if isinstance(line, dict) else None)
    assert answers[0] == answers[2]
    assert (answers[0]["broker"], answers[0]["version"], answers[0]["data"]) == ("ok", 0, "compatible")


def test_definitions_that_no_broker_accepts_are_verdicts_not_errors() -> None:
    for new in (
        {"type": "AVRO", "schema": "nope"},
        {"type": "AVRO"},
        {"type": "AVRO", "schema": "\ud800"},
        {"type": "AVRO", "schema_b64": None},
        {"type": "KEY_VALUE", "schema_b64": "AAAA"},
        {"type": "KEY_VALUE", "schema": "[]"},
        {"type": "KEY_VALUE", "schema": '{"key": ""}', "properties": {"key.schema.type": "AVRO"}},
        {"type": "PROTOBUF_NATIVE", "schema": "{}"},
        {"type": "AUTO_CONSUME"},
    ):
        (answer,) = compare_lines([{**GOOD, "new": new}])
        assert answer["broker"] in ("invalid", "error"), new
        assert answer["version"] is None


def test_tombstones_and_raw_bytes_among_existing() -> None:
    raw = {"type": "AVRO", "schema_b64": base64.b64encode(b'"int"').decode()}
    (answer,) = compare_lines([{**GOOD, "existing": [STRING, {"deleted": True}, raw], "new": make_avro("int")}])
    assert (answer["broker"], answer["version"], answer["data"]) == ("unchanged", 2, "compatible")
    assert answer_requests(
        [{**GOOD, "existing": [STRING, {"deleted": True}, raw], "new": make_avro("int")}], _compare_identity
    ) == [{"id": 1, "equal": [False, False, True]}]


def test_key_value_in_the_admin_apis_text() -> None:
    properties = {"key.schema.type": "STRING", "value.schema.type": "AVRO", "kv.encoding.type": "INLINE"}
    separated = properties | {"kv.encoding.type": "SEPARATED"}
    old, new = (
        {"type": "KEY_VALUE", "schema": f'{{"key": "", "value": {value}}}', "properties": pair_properties}
        for value, pair_properties in (('{"type": "string"}', properties), ('"int"', separated))
    )
    (answer,) = compare_lines([{**GOOD, "strategy": "BACKWARD", "existing": [old], "new": new}])
    assert answer["broker"] == "incompatible"
    assert [(reason["rule"], reason["pointer"]) for reason in answer["incompatibilities"]] == [
        ("KEY_VALUE_ENCODING_CHANGED", ""),
        ("TYPE_MISMATCH", "/value"),
    ]


def make_proto(text: str, *, as_text: bool = False) -> Row:
    schema: Any = {"proto": f'syntax = "proto3"; package web; {text}', "message": "web.Click"}
    return {"type": "PROTOBUF_NATIVE", "schema": json.dumps(schema) if as_text else schema}


def test_proto_texts_are_compiled_and_judged() -> None:
    old, new = (
        make_proto("message Click { int64 at = 1; }"),
        make_proto("message Click { string at = 1; }", as_text=True),
    )
    (answer,) = compare_lines([{**GOOD, "existing": [old], "new": new}], category="WIRE")
    assert (answer["broker"], answer["version"]) == ("ok", 1)
    assert answer["data"] == "breaking"
    assert {reason["rule"] for reason in answer["incompatibilities"]} == {"FIELD_WIRE_COMPATIBLE_TYPE"}
    assert [violation["rule"] for violation in answer["proto_rules"]] == ["FIELD_WIRE_COMPATIBLE_TYPE"]
    (first,) = compare_lines([{**GOOD, "new": new}], category="WIRE")
    assert first["proto_rules"] == []
    broken = {"type": "PROTOBUF_NATIVE", "schema": "{}"}
    (unknown,) = compare_lines([{**GOOD, "existing": [old], "new": broken}], category="WIRE")
    assert (unknown["broker"], unknown["data"], unknown["proto_rules"]) == ("invalid", None, None)


def test_the_optional_checker_of_5_0_looks_at_fields() -> None:
    name = "ProtobufNativeSchemaAdvancedCompatibilityCheck"
    old, new = make_proto("message Click { int64 at = 1; }"), make_proto("message Click { int32 at = 1; }")
    lines = json.dumps({**GOOD, "existing": [old], "new": new})
    answers = [
        json.loads(run_compare([*arguments, "--pulsar", "5.0"], lines).out) for arguments in ([], ["--checker", name])
    ]
    assert [answer["broker"] for answer in answers] == ["ok", "incompatible"]
    assert run_compare(["--checker", name], lines).code == 64
    assert run_compare(["--checker", "x"], lines).code == 64


def run_compare(arguments: Sequence[str], text: str) -> Printed:
    return schemactl(Path(), "compare", *arguments, stdin=text, code=range(128))


def test_the_command_exits_with_1_when_a_line_was_not_read() -> None:
    fine = run_compare([], json.dumps(GOOD) + "\n\n")
    assert (fine.code, fine.err) == (0, "")
    assert json.loads(fine.out)["id"] == 1
    broken = run_compare(["--pulsar", "5.0"], "{\n" + json.dumps(GOOD))
    assert (broken.code, len(broken.out.splitlines())) == (1, 2)
    assert run_compare(["--pulsar", "3.0"], "").code == 64
    assert run_compare(["--identity", "--fingerprint"], "").code == 64


def test_each_line_is_answered_as_it_comes() -> None:
    command = [sys.executable, "-m", "schemactl", "compare"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        for number in range(3):
            process.stdin.write(json.dumps({**GOOD, "id": number}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait(timeout=60) == 0


LONG, INT, STRING = (
    make_avro({"type": "record", "name": "R", "fields": [{"name": "a", "type": t}]}) for t in ("long", "int", "string")
)
MILLIS, MICROS = (
    make_avro({"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "long", "logicalType": unit}}]})
    for unit in ("timestamp-millis", "timestamp-micros")
)
BROKEN = {"type": "AVRO", "schema": "{"}


@pytest.mark.parametrize(
    ("strategy", "old", "new", "data", "checked"),
    [
        ("BACKWARD", INT, LONG, "compatible", "compatible"),
        ("FORWARD", INT, LONG, "breaking", "breaking"),
        ("BACKWARD", INT, STRING, "breaking", "breaking"),
        ("FULL", MILLIS, MICROS, "compatible", "breaking"),
        # No reader is protected.
        ("ALWAYS_COMPATIBLE", INT, STRING, "compatible", "not_judged"),
        ("ALWAYS_INCOMPATIBLE", INT, INT, "compatible", "not_judged"),
        ("ALWAYS_COMPATIBLE", MILLIS, MICROS, "compatible", "not_judged"),
        ("ALWAYS_COMPATIBLE", INT, BROKEN, None, None),
        ("BACKWARD", INT, BROKEN, None, None),
    ],
)
def test_the_verdict_of_check_is_a_key_of_its_own(
    strategy: str, old: Row, new: Row, data: str | None, checked: str | None
) -> None:
    [answer] = compare_lines([{"id": 1, "strategy": strategy, "existing": [old], "new": new}])
    assert (answer["data"], answer["check"]) == (data, checked)
