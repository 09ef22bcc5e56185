"""A witness proves a breakage: it is there when Java fails on every message, and never where Java reads them all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from schemactl.formats.avro.grammar import decodes_all
from schemactl.formats.avro.java import Thrown
from schemactl.formats.avro.parse import parse
from schemactl.formats.avro.resolution import AmbiguousAlias, incompatibilities
from schemactl.formats.avro.schema import Schema
from schemactl.formats.avro.witness import unreadable_messages, witness
from schemactl.model import Breakage, Release

CORPUS = Path(__file__).parent.parent / "corpus" / "avro_public.jsonl.gz"


TAKEN_FOR_EMPTY = "pub2-26082"
"""Its default is 7.25 for a union of null and an array: Avro 1.12's check takes that for an empty array, its reader throws."""


def rows() -> list[tuple[dict[str, Any], Schema, Schema]]:
    with gzip.open(CORPUS, "rt") as lines:
        found = [json.loads(line) for line in lines]
    return [(row, _parse(row["reader"]), _parse(row["writer"])) for row in found]


def _parse(schema: Any) -> Schema:
    return parse(json.dumps(schema), Release.R5_0)


def test_there_is_a_message_that_fails_exactly_where_java_does_not_read_all() -> None:
    for row, reader, writer in rows():
        found = unreadable_messages(writer=writer, reader=reader, release=Release.R4_2)
        if row["decode"] in ("none", "some") and row["id"] != TAKEN_FOR_EMPTY:
            assert found, row["id"]
        if decodes_all(reader=reader, writer=writer, release=Release.R4_2):
            assert not found, row["id"]


def test_what_only_strict_readers_refuse_decodes_in_java() -> None:
    for row, reader, writer in rows():
        try:
            reasons = incompatibilities(reader=reader, writer=writer)
        except AmbiguousAlias:
            continue
        if reasons and all(reason.strict_only for reason in reasons) and not row.get("spec_error"):
            # What Java's own check refuses besides (a bad default, an enum's namespace in a union) is the broker's verdict.
            test = row["pulsar"]["4.0"]["BACKWARD"]["test"]
            assert row["decode"] in ("all", "n/a") or test != "ok", row["id"]


def test_every_breakage_that_java_meets_has_a_witness() -> None:
    for row, reader, writer in rows():
        try:
            reasons = incompatibilities(reader=reader, writer=writer)
        except (AmbiguousAlias, Thrown):
            continue
        for reason in reasons:
            if not reason.strict_only and row["decode"] != "n/a":
                breakage = Breakage(reason, "new_reads_old", 0)
                found = witness(breakage, new=reader, old=writer, plain_json=False, release=Release.R4_2)
                assert found or row["decode"] == "all", (row["id"], reason)
