"""Avro messages read and written as by Java's GenericDatumReader and GenericDatumWriter of the Avro inside PySpark."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import struct
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pyspark
import pytest
from avro_pairs import make_pair
from random_avro import Maker, damage_payload
from written_values import find_difference

from schemactl.codec import Codec, Definition, Options, Unreadable, Unwritable, Version
from schemactl.codec.arrow_types import to_numbers
from schemactl.codec.message import make_payload_decoder
from schemactl.codec.values import decode_text
from schemactl.codec.wire_format import encode_zigzag
from schemactl.comparison.compatibility import compare
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.spark import ensure_java

SEEDS = range(int(os.environ.get("SCHEMACTL_AVRO_SEEDS", "15")))
MESSAGES = 100
"""Of each pair of schemas. `make soak` has 1,000 pairs."""

STRICTER = re.compile(
    r"milliseconds are more than 64 bits|: enum symbol|: a length of -|: a block of (-\d+ bytes, but|9223372036854775808 )"
)
"""Reasons for rejections that the generic reader does not have: values that Spark cannot hold; a block of 2^63 items, which Java takes for the
end; and where a field is passed over, a symbol that does not exist and negative sizes, by which Java goes back."""


class Case(NamedTuple):
    """Messages of one schema, to be read with another."""

    writer: Any
    reader: Any
    payloads: list[bytes]
    options: Options = Options()


def run_java(cases: list[Case]) -> Iterator[list[bytes | None]]:
    """Yield, for the messages of each case, the bytes of the values that Java reads with the reader's schema; None where it rejects."""
    request = bytearray()
    for case in cases:
        request += b"\1"
        for block in (json.dumps(case.writer), json.dumps(case.reader)):
            request += prefix_length(block.encode())
        request += struct.pack(">i", len(case.payloads)) + b"".join(map(prefix_length, case.payloads))
    source = Path(__file__).with_name("AvroOracle.java")
    done = subprocess.run(
        [
            str(ensure_java() / "bin" / "java"),
            "-Xmx512m",
            "-XX:+UseSerialGC",
            # A size that no message can have is rejected at once, not after its allocation.
            "-Dorg.apache.avro.limits.collectionItems.maxLength=10000000",
            "-cp",
            f"{Path(pyspark.__file__).parent}/jars/*",
            "org.codehaus.janino.SimpleCompiler",
            str(source),
            source.stem,
        ],
        input=bytes(request),
        stdout=subprocess.PIPE,
        check=True,
    )
    answer = io.BytesIO(done.stdout)
    for case in cases:
        lengths = (struct.unpack(">i", answer.read(4))[0] for _ in case.payloads)
        yield [None if length < 0 else answer.read(length) for length in lengths]
    assert not answer.read()


def prefix_length(block: bytes) -> bytes:
    return struct.pack(">i", len(block)) + block


def sort_map_entries(value: Any) -> Any:
    """The value with the entries of maps in the order of their keys, as Java's strings compare."""
    if isinstance(value, dict):
        return {key: sort_map_entries(part) for key, part in value.items()}
    if isinstance(value, list) and all(isinstance(part, tuple) for part in value):
        return [
            (key, sort_map_entries(part)) for key, part in sorted(value, key=lambda pair: pair[0].encode("utf-16-be"))
        ]
    return [sort_map_entries(part) for part in value] if isinstance(value, list) else value


class Ours:
    """Our reading on both paths, with the reason for every rejection."""

    def __init__(self, case: Case) -> None:
        writer, reader = (Definition("AVRO", json.dumps(schema)) for schema in (case.writer, case.reader))
        self.payload_decoder = make_payload_decoder(writer, reader, case.options)
        self.codec = Codec([Version(0, writer)], reader=reader, options=case.options)

    def decode_alone(self, payload: bytes) -> tuple[Any, str | None]:
        try:
            return self.payload_decoder.decode_storage(payload), None
        except Unreadable as problem:
            return None, problem.reason

    def decode_together(self, payloads: list[bytes]) -> tuple[list[Any], list[str | None], list[bytes | None]]:
        """Decode a batch, and return values, reasons for missing values, and the values encoded again."""
        decoded = self.codec.decode_batch(pa.array(payloads, pa.binary()), pa.array([0] * len(payloads)))
        decoded.rows.validate(full=True)
        return (
            to_numbers(decoded.rows.to_struct_array()).to_pylist(),
            decoded.errors.to_pylist(),
            self.codec.encode_batch(decoded.rows).payloads.to_pylist(),
        )


def make_cases() -> Iterator[Case]:
    """A writer's schema, the same or a newer one as the reader's, and messages of which most have been damaged."""
    for seed in SEEDS:
        maker = Maker(seed)
        writer = maker.record(3)
        reader = maker.evolve_schema(writer) if seed % 3 else writer
        codec = Codec([Version(0, Definition("AVRO", json.dumps(writer)))])
        good = [codec.encode_one(maker.draw_value(writer)) or b"" for _ in range(20)]
        payloads = [good[number % 20] for number in range(MESSAGES)]
        yield Case(writer, reader, [damage_payload(maker, payload) for payload in payloads])


Answered = list[tuple[Case, list[bytes | None]]]


@pytest.fixture(scope="module")
def answered_cases() -> Answered:
    """Return all cases (text, trees, random ones) with Java's answers."""
    all_cases = [text_case(), tree_case(), *make_cases()]
    return [*zip(all_cases, run_java(all_cases), strict=True)]


def test_nothing_is_read_that_java_rejects_and_what_it_reads_is_the_same(answered_cases: Answered) -> None:
    agreed = {"read": 0, "rejected": 0, "stricter": 0}
    for case, answers in answered_cases[2:]:
        ours = Ours(case)
        made_here = zip(case.payloads, answers, *ours.decode_together(case.payloads), strict=True)
        for payload, expected, row, reason, batched in made_here:
            value_read, why = ours.decode_alone(payload)
            assert reason == why, (case.writer, case.reader, payload)
            if reason is not None:
                assert expected is None or STRICTER.search(f": {reason}"), (case, payload, reason)
                agreed["rejected" if expected is None else "stricter"] += 1
                continue
            assert repr(row) == repr(value_read), (case.writer, case.reader, payload)
            assert expected is not None, (case.writer, case.reader, payload, row)
            if "nan" not in repr(value_read):
                # A signalling NaN of 32 bits is a quiet one once Python has held it.
                assert batched == ours.codec.encode_one(value_read), (case.writer, case.reader, payload)
                assert expected == ours.codec.encode_one(sort_map_entries(value_read)), (
                    case.writer,
                    case.reader,
                    payload,
                )
            agreed["read"] += 1
    print(agreed)  # noqa: T201  how much of what was seen, for those who run it alone
    assert agreed["read"] > MESSAGES * len(SEEDS) / 4
    assert agreed["rejected"] > MESSAGES * len(SEEDS) / 4


TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "value", "type": "string"},
        {"name": "left", "type": ["null", "Tree"]},
        {"name": "others", "type": {"type": "map", "values": "Tree"}},
    ],
}


def tree_case() -> Case:
    """Damaged trees. Levels that the columns cut off are read, too."""
    maker = Maker(1)

    def make_tree(depth: int) -> dict[str, Any]:
        left = make_tree(depth - 1) if depth and maker.random.random() < 0.7 else None
        others = {str(number): make_tree(depth - 1) for number in range(maker.random.randrange(3) if depth else 0)}
        return {"value": "x" * maker.random.randrange(4), "left": left, "others": others}

    parsed = fastavro.parse_schema(TREE)
    payloads = []
    for _ in range(500):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, make_tree(4))
        payloads.append(damage_payload(maker, out.getvalue()))
    return Case(TREE, TREE, payloads, Options(recursion_depth=2))


def test_a_recursive_value_is_read_where_java_reads_it(answered_cases: Answered) -> None:
    case, answers = answered_cases[1]
    ours = Ours(case)
    _, reasons, _ = ours.decode_together(case.payloads)
    assert [reason is None for reason in reasons] == [answer is not None for answer in answers]
    assert reasons == [ours.decode_alone(payload)[1] for payload in case.payloads]
    assert 100 < sum(reason is None for reason in reasons) < 400


def text_case() -> Case:
    """Bytes at the edges of UTF-8's ranges."""
    edges = b"A\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc2\xdf\xe0\xe1\xed\xef\xf0\xf1\xf4\xf5\xff"
    raw = [bytes(part) for size in (1, 2, 3) for part in itertools.product(edges, repeat=size)]
    tails = [bytes(part) for part in itertools.product(b"\x80\x90\xa0A", repeat=3)]
    raw += [bytes((first,)) + tail for first in edges for tail in tails]
    return Case("string", "string", [encode_zigzag(len(part)) + part for part in raw])


def test_what_is_no_utf_8_is_replaced_as_java_replaces_it(answered_cases: Answered) -> None:
    case, answers = answered_cases[0]
    expected = [answer and answer.decode()[1:] for answer in answers]
    assert [decode_text(payload[1:]) for payload in case.payloads] == expected
    rows, _, _ = Ours(case).decode_together(case.payloads)
    assert [row["value"] for row in rows] == expected


def test_java_gets_what_was_written_where_nothing_is_found() -> None:
    kept_cases = []
    for seed in range(4 * len(SEEDS)):
        maker, writer, reader = make_pair(seed)
        old, new = (SchemaInfo(SchemaType.AVRO, json.dumps(schema).encode()) for schema in (writer, reader))
        if compare([old], new, CompatibilityStrategy.BACKWARD).values == "kept":
            codec = Codec([Version(0, Definition("AVRO", json.dumps(writer)))])
            with suppress(Unwritable):
                kept_cases.append(
                    Case(writer, reader, [codec.encode_one(maker.draw_value(writer)) or b"" for _ in range(10)])
                )
    assert len(kept_cases) > len(SEEDS)
    for case, results in zip(kept_cases, run_java(kept_cases), strict=True):
        writer_codec, reader_codec = (
            Codec([Version(0, Definition("AVRO", json.dumps(schema)))]) for schema in (case.writer, case.reader)
        )
        for payload, result in zip(case.payloads, results, strict=True):
            assert result is not None, (case.writer, case.reader)
            assert not find_difference(
                writer=case.writer,
                reader=case.reader,
                written=writer_codec.decode_one(payload),
                read=reader_codec.decode_one(result),
            ), (case.writer, case.reader)
