"""Answers of brokers to PROTOBUF_NATIVE definitions: from their jars, predicted, and recorded (`native_public`).

python tests/formats/native_schemas.py    # records tests/corpus/native_public.jsonl.gz again, from the jars of both releases
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import brokers
from corpora import CORPUS, read_rows
from odd_descriptors import make_definitions

from schemactl.broker.checkers import NativeChecker
from schemactl.broker.validation import SchemaData, get_root_name, validate
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaType
from schemactl.formats.avro.schema import JavaException

PROGRAM = Path(__file__).with_name("NativeSchemas.java")
RECORDED_DEFINITIONS = 3_200
RECORDED_PAIRS = 800

_KNOWN_CAUSES = ("com.google.protobuf.Descriptors$", "java.lang.NullPointerException", "java.lang.ArrayIndex")
"""The causes whose messages are predicted, not only their outcome."""


class Result(NamedTuple):
    """The result of one call: "ok" and a name, or the class of an exception and its message."""

    outcome: str
    text: str

    @property
    def comparable(self) -> Result:
        """This result, without messages of Jackson and of protobuf's parser, which are not predicted."""
        is_predicted = self.outcome != "SchemaSerializationException" or any(
            cause in self.text for cause in _KNOWN_CAUSES
        )
        return self if is_predicted else Result(self.outcome, "")


Answer = tuple[Result, ...]
"""The results of the validator and of the deserialization, or the result of the compatibility check."""


class Pair(NamedTuple):
    """A stored definition, a new one and a strategy, for the compatibility check."""

    old: bytes
    new: bytes
    strategy: CompatibilityStrategy


def ask_java(questions: Sequence[bytes | Pair], jars: Path) -> list[Answer | None]:
    """Return the answers of the classes in `jars`; None where an answer depends on the addresses of objects."""
    lines = (
        " ".join([_encode(question.old), _encode(question.new), question.strategy.name])
        if isinstance(question, Pair)
        else _encode(question)
        for question in questions
    )
    process = subprocess.run(
        ["nice", "java", *brokers.SHORT_LIVED, "-cp", f"{jars}/*", str(PROGRAM)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [_read_answer(line) for line in process.stdout.splitlines()]
    assert len(answers) == len(questions), process.stderr
    return answers


def _encode(schema: bytes) -> str:
    return base64.b64encode(schema).decode()


def _read_answer(line: str) -> Answer | None:
    words = line.split(" ")
    if "varies" in words:
        return None
    texts = (base64.b64decode(word).decode(errors="replace") for word in words[1::2])
    return tuple(map(Result, words[::2], texts))


def predict(question: bytes | Pair, release: Release) -> Answer:
    """Return our prediction of the answer."""
    if isinstance(question, Pair):
        old, new = _read(question.old), _read(question.new)
        return (_call(lambda: NativeChecker().check([old], new, question.strategy, listed=False)),)
    data = _read(question)
    return _call(lambda: validate(data, release)), _call(lambda: get_root_name(data))


def _read(schema: bytes) -> SchemaData:
    return SchemaData(SchemaType.PROTOBUF_NATIVE, schema, {})


def _call(action: Any) -> Result:
    try:
        return Result("ok", action() or "")
    except JavaException as thrown:
        # Java's message of an exception of the JVM itself is null.
        return Result(thrown.exception, thrown.message or "null")


def find_differences(
    questions: Sequence[bytes | Pair], answers: Iterable[Answer | None], release: Release
) -> list[str]:
    """Return the questions with another answer than predicted, as text; the expected ones come first."""
    differences = []
    for question, answer in zip(questions, answers, strict=True):
        if answer is None:
            continue
        prediction = predict(question, release)
        if [result.comparable for result in prediction] != [result.comparable for result in answer]:
            differences.append(f"{answer} is predicted as {prediction} for {question!r}")
    return differences


def make_pairs(definitions: Sequence[bytes], seed: int, count: int) -> list[Pair]:
    """Return random pairs of the definitions, with all strategies; most have definitions that brokers store."""
    pick = random.Random(seed)  # noqa: S311  reproducible, not secret
    strategies = list(CompatibilityStrategy)
    stored = [definition for definition in definitions if predict(definition, Release.R4_0)[0].outcome == "ok"]

    def pick_definition() -> bytes:
        return pick.choice(stored if pick.random() < 0.9 else definitions)

    return [Pair(pick_definition(), pick_definition(), pick.choice(strategies)) for _ in range(count)]


def read_corpus() -> tuple[list[bytes | Pair], list[Answer | None]]:
    """Return the recorded questions, and the answers of 4.0.7, which 4.2.4 also gives."""
    questions: list[bytes | Pair] = []
    answers: list[Answer | None] = []
    definitions: list[bytes] = []
    for row in read_rows("native_public"):
        if "pair" in row:
            old, new, strategy = row["pair"]
            questions.append(Pair(definitions[old], definitions[new], CompatibilityStrategy[strategy]))
        else:
            definitions.append(_join_definition(row))
            questions.append(definitions[-1])
        answers.append(tuple(Result(*result) for result in row["answer"]) if row["answer"] else None)
    return questions, answers


def _split_definition(schema: bytes) -> dict[str, Any]:
    """Return a definition as a row has it: the bytes of the set compress better than their base64."""
    try:
        values = json.loads(schema)
        encoded = values.pop("fileDescriptorSet")
        row = {"set": base64.b64decode(encoded, validate=True).decode("latin-1"), "values": values}
        if _join_definition(row) == schema:
            return row
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return {"schema": schema.decode("latin-1")}


def _join_definition(row: dict[str, Any]) -> bytes:
    if "schema" in row:
        schema: bytes = row["schema"].encode("latin-1")
        return schema
    return json.dumps({"fileDescriptorSet": _encode(row["set"].encode("latin-1")), **row["values"]}).encode()


def record() -> None:
    """Record the corpus from the jars of both releases, which must agree."""
    brokers.markers = frozenset({"broker"})
    definitions = list(make_definitions(range(RECORDED_DEFINITIONS * 2)))[:RECORDED_DEFINITIONS]
    pairs = make_pairs(definitions, 1, RECORDED_PAIRS)
    questions: list[bytes | Pair] = [*definitions, *pairs]
    old_answers, answers = (ask_java(questions, brokers.find_jars(version)) for version in brokers.RELEASES.values())
    assert old_answers == answers
    indices = {definition: index for index, definition in enumerate(definitions)}
    lines = []
    for question, answer in zip(questions, answers, strict=True):
        if isinstance(question, Pair):
            row: dict[str, Any] = {"pair": [indices[question.old], indices[question.new], question.strategy.name]}
        else:
            row = _split_definition(question)
        lines.append(json.dumps({**row, "answer": answer}, separators=(",", ":")))
    with gzip.GzipFile(CORPUS / "native_public.jsonl.gz", "wb", mtime=0) as file:
        file.write(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    record()
