"""Fingerprints identify exactly one change, in every run and after a rebase."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from schemactl.comparison.fingerprint import compute_broker_fingerprint, compute_fingerprint, find_broker_waiver
from schemactl.core.findings import Waiver
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats.key_value import join

ORDERS = TopicName.parse("shop/sales/orders")


def make_enum(*symbols: str, **more: Any) -> SchemaInfo:
    text = {"type": "enum", "name": "Status", "symbols": symbols, **more}
    return SchemaInfo(SchemaType.AVRO, json.dumps(text).encode())


PAID, OPEN = make_enum("PAID"), make_enum("PAID", "OPEN")
RECORD = b"""{"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "long"},
    {"name": "status", "type": ["null", {"type": "enum", "name": "Status", "symbols": ["PAID"]}], "default": null},
    {"name": "lines", "type": {"type": "array", "items": "shop.Order"}, "default": []}]}"""
CHANGE: dict[str, Any] = {
    "rule": "MISSING_ENUM_SYMBOLS",
    "topic": ORDERS,
    "new": PAID,
    "against": [OPEN],
    "pointer": "/symbols",
    "direction": "new_reads_old",
}


@pytest.mark.parametrize(
    ("info", "digits"),
    [
        (PAID, "b57a458b9222"),
        (SchemaInfo(SchemaType.STRING), "31d40923fb09"),
        (SchemaInfo(SchemaType.JSON, RECORD), "d6ee9101a9b1"),
    ],
    ids=["enum", "plain", "record"],
)
def test_fingerprint_does_not_change_between_releases(info: SchemaInfo, digits: str) -> None:
    # Waivers in the history contain it: a release that computes another fingerprint would ignore them.
    assert compute_fingerprint(**{**CHANGE, "new": info}).startswith(f"sha256:{digits}")


@pytest.mark.parametrize(
    "other",
    [
        {"new": make_enum("PAID", doc="another text")},
        {"new": replace(PAID, schema=b" " + PAID.schema)},
        {"topic": replace(ORDERS, domain="non-persistent")},
        {"against": [OPEN, OPEN]},
    ],
    ids=["documentation", "layout", "the other domain", "two versions of one content"],
)
def test_same_change_has_the_same_fingerprint(other: dict[str, Any]) -> None:
    assert compute_fingerprint(**{**CHANGE, **other}) == compute_fingerprint(**CHANGE)


@pytest.mark.parametrize(
    "other",
    [
        {"rule": "TYPE_MISMATCH"},
        {"topic": TopicName.parse("shop/sales/order")},
        {"new": make_enum("OPEN")},
        {"new": replace(PAID, type=SchemaType.JSON)},
        {"new": replace(PAID, proto=SchemaInfo(SchemaType.PROTOBUF_NATIVE, b"{}"))},
        {"against": []},
        {"against": [OPEN, PAID]},
        {"pointer": "/symbols/0"},
        {"direction": "old_reads_new"},
        {"direction": None},
    ],
    ids=str,
)
def test_another_change_has_another_fingerprint(other: dict[str, Any]) -> None:
    assert compute_fingerprint(**{**CHANGE, **other}) != compute_fingerprint(**CHANGE)


NESTED = """{{"type": "record", "name": "Order", "fields": [
    {{"name": "total", "type": {{"type": "array", "items": {{"type": "record", "name": "Money", {record} "fields": [
        {{"name": "cents", "type": "long" {field}}},
        {{"name": "kind", "type": {{"type": "enum", "name": "Kind", {enum} "symbols": ["A", "B"]}}}},
        {{"name": "code", "type": {{"type": "fixed", "name": "Code", {fixed} "size": 3}}}}
    ]}}}}}}
]}}"""
PLACES = {"record": "", "field": "", "enum": "", "fixed": ""}


def make_nested(type_: SchemaType = SchemaType.AVRO, **parts: str) -> SchemaInfo:
    return SchemaInfo(type_, NESTED.format(**{**PLACES, **parts}).encode())


@pytest.mark.parametrize(
    "parts",
    [
        {"record": '"aliases": ["Amount"],'},
        {"record": '"aliases": ["Amount", "Sum"],'},
        {"field": ', "aliases": ["amount"]'},
        {"enum": '"aliases": ["Sort"],'},
        {"enum": '"default": "A",'},
        {"enum": '"default": "B",'},
        {"fixed": '"aliases": ["Key"],'},
    ],
    ids=str,
)
@pytest.mark.parametrize("type_", [SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF])
def test_change_of_reading_parts_changes_the_fingerprint(parts: dict[str, str], type_: SchemaType) -> None:
    plain = compute_fingerprint(**{**CHANGE, "new": make_nested(type_)})
    changed = compute_fingerprint(**{**CHANGE, "new": make_nested(type_, **parts)})
    assert changed != plain
    assert changed.former == plain == plain.former
    wrapped = [
        compute_fingerprint(**{**CHANGE, "new": join(key=info, value=SchemaInfo(SchemaType.STRING), encoding="INLINE")})
        for info in (make_nested(type_), make_nested(type_, **parts))
    ]
    assert wrapped[0] != wrapped[1]
    assert wrapped[1].former == wrapped[0]


def test_a_charset_is_part_of_the_fingerprint() -> None:
    plain, latin = (
        SchemaInfo(SchemaType.STRING, properties=properties) for properties in ({}, {"__charset": "ISO-8859-1"})
    )
    assert compute_fingerprint(**{**CHANGE, "new": latin}) != compute_fingerprint(**{**CHANGE, "new": plain})
    owned = replace(plain, properties={"owner": "sales"})
    assert compute_fingerprint(**{**CHANGE, "new": owned}) == compute_fingerprint(**{**CHANGE, "new": plain})


def test_an_approved_waiver_may_name_the_former_fingerprint_of_a_rejection() -> None:
    new = make_nested(enum='"default": "A",')
    former = compute_broker_fingerprint(ORDERS, make_versions(OPEN), new).former
    waiver = Waiver("BROKER_INCOMPATIBLE", ORDERS, former, "meant", "ada", date(2027, 1, 31))
    assert find_broker_waiver([waiver], ORDERS, make_versions(OPEN), new) == waiver


def test_a_definition_that_does_not_parse_has_a_fingerprint_of_its_bytes() -> None:
    broken = [SchemaInfo(SchemaType.AVRO, text) for text in (b"{", b"[")]
    one, other = (compute_fingerprint(**{**CHANGE, "against": [definition]}) for definition in broken)
    assert one != other


def make_versions(*infos: SchemaInfo | None) -> tuple[SchemaVersion, ...]:
    return tuple(SchemaVersion(number, info) for number, info in enumerate(infos))


def test_brokers_rejection_depends_on_the_content_of_the_latest_live_version() -> None:
    wanted = compute_broker_fingerprint(ORDERS, make_versions(OPEN), PAID)
    assert compute_broker_fingerprint(ORDERS, make_versions(PAID, OPEN), PAID) == wanted
    assert compute_broker_fingerprint(ORDERS, make_versions(PAID, None, OPEN), PAID) == wanted
    assert compute_broker_fingerprint(ORDERS, make_versions(OPEN, None), PAID) != wanted
    assert compute_broker_fingerprint(ORDERS, make_versions(OPEN, PAID), PAID) != wanted


def test_the_waiver_of_a_brokers_rejection_names_rule_topic_and_fingerprint() -> None:
    before = make_versions(OPEN)
    wanted = compute_broker_fingerprint(ORDERS, before, PAID)
    waiver = Waiver("BROKER_INCOMPATIBLE", ORDERS, wanted, "meant", "ada", date(2027, 1, 31))
    assert find_broker_waiver([waiver], ORDERS, before, PAID) == waiver
    for other in (
        replace(waiver, rule="MISSING_ENUM_SYMBOLS"),
        replace(waiver, topic=TopicName.parse("shop/sales/order")),
        replace(waiver, fingerprint=compute_fingerprint(**CHANGE)),
    ):
        assert find_broker_waiver([other], ORDERS, before, PAID) is None
    sooner = replace(waiver, until=date(2026, 12, 31))
    assert find_broker_waiver([waiver, sooner], ORDERS, before, PAID) == sooner
