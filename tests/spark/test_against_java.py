"""Avro as Java's own GenericDatumReader reads it, through the Avro inside PySpark."""

from __future__ import annotations

import json
import re
from typing import Any

from pyspark.sql import SparkSession
from random_avro import Maker, damage

from schemactl.codec import Codec, Definition, Unreadable, Version

SEEDS = range(160)

STRICTER = re.compile(
    r"a decimal of|lie outside the years 1 to 9999|more than 64 bits of microseconds|: enum symbol"
)
"""What is refused here and not by the generic reader: Spark or Python cannot hold it; or (only where the field is passed
over, older Avro does not look) a symbol that does not exist."""


class Java:
    """Reads with one schema what another wrote, and writes it again."""

    def __init__(self, spark: SparkSession, *, writer: str, reader: str) -> None:
        avro = spark._jvm.org.apache.avro  # type: ignore[union-attr]
        parsed = [getattr(avro.Schema, "Parser")().parse(text) for text in (writer, reader)]  # noqa: B009  a class
        self._spark = spark
        self._reader = avro.generic.GenericDatumReader(*parsed)
        self._writer = avro.generic.GenericDatumWriter(parsed[1])
        self._decoders, self._encoders = avro.io.DecoderFactory.get(), avro.io.EncoderFactory.get()

    def rewritten(self, payload: bytes) -> bytes | None:
        """The value's bytes under the reader's schema; None: Java cannot read it."""
        try:
            value = self._reader.read(None, self._decoders.binaryDecoder(payload, None))
        except Exception:  # noqa: BLE001  PySpark gives each Java exception a class of its own
            return None
        out = self._spark._jvm.java.io.ByteArrayOutputStream()  # type: ignore[union-attr]
        encoder = self._encoders.binaryEncoder(out, None)
        self._writer.write(value, encoder)
        encoder.flush()
        return bytes(out.toByteArray())


def rewritten(codec: Codec, payload: bytes) -> tuple[bytes | None, str]:
    """The same here, and the reason if it cannot be read."""
    try:
        return codec.encode_one(codec.decode_one(payload, 0)), ""
    except Unreadable as refused:
        return None, refused.reason


def schemas(seed: int) -> tuple[Maker, Any, Any] | None:
    """A writer's and a reader's schema without maps, whose order Java does not keep."""
    maker = Maker(seed)
    writer = maker.record(2)
    reader = maker.evolved(writer)
    return None if '"map"' in json.dumps([writer, reader]) else (maker, writer, reader)


def test_nothing_is_read_that_java_refuses_and_what_it_reads_is_the_same(spark: SparkSession) -> None:
    agreed = {"read": 0, "refused": 0}
    for maker, writer, reader in filter(None, map(schemas, SEEDS)):
        texts = [json.dumps(schema) for schema in (writer, reader)]
        java = Java(spark, writer=texts[0], reader=texts[1])
        codec = Codec([Version(0, Definition("AVRO", texts[0]))], reader=Definition("AVRO", texts[1]))
        for number in range(4):
            payload = codec.encode_one(maker.value(writer), 0) or b""
            payload = damage(maker, payload) if number > 1 else payload
            expected = java.rewritten(payload)
            found, reason = rewritten(codec, payload)
            if found is None:
                assert expected is None or STRICTER.search(f": {reason}"), (texts, payload, reason)
                agreed["refused"] += expected is None
            else:
                # Java's Utf8 keeps bytes that are no text; a string cannot.
                assert expected is not None, (texts, payload)
                assert found == expected or "�".encode() in found, (texts, payload)
                agreed["read"] += 1
    assert agreed["read"] > 100
    assert agreed["refused"] > 50
