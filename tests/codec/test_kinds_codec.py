"""Codecs of topics with several kinds of events: the version of a message shows its kind."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from schemactl.codec import (
    Codec,
    Definition,
    InvalidDefinition,
    KindsCodec,
    Numbers,
    TargetVersions,
    UnknownVersion,
    Unreadable,
    Version,
)

ID: dict[str, Any] = {"name": "id", "type": "long"}
ZIP: dict[str, Any] = {"name": "zip", "type": ["null", "string"], "default": None}


def define(name: str, *fields: dict[str, Any], type_: str = "AVRO") -> Definition:
    return Definition(type_, json.dumps({"type": "record", "name": name, "fields": list(fields)}))


A, B, C = define("A", ID), define("B", ID), define("C", ID, type_="JSON")
A2, B2 = define("A", ID, ZIP), define("B", ZIP, ID)
OLD = define("Old", ID)
VERSIONS = [
    Version(0, A, kind="a"),
    Version(1, B, kind="b"),
    Version(2, C, kind="c"),
    Version(3, A2, kind="a"),
    Version(4, B2, kind="b"),
    # From the time of `schema:`; no kind ever had its record.
    Version(5, OLD),
]
CODEC = KindsCodec({kind: Codec(VERSIONS, kind=kind) for kind in "abc"})
MESSAGES: list[tuple[int | None, bytes, str | None, Any]] = [
    (0, b"\x02", "a", {"id": 1, "zip": None}),
    (1, b"\x04", "b", {"zip": None, "id": 2}),
    (2, b'{"id":3}', "c", {"id": 3}),
    (3, b"\x08\x02\x0699", "a", None),
    (3, b"\x08\x02\x0499", "a", {"id": 4, "zip": "99"}),
    (4, b"\x00\x0a", "b", {"zip": None, "id": 5}),
]
NO_KIND = "schema version 5 does not belong to any kind of events that was ever declared"


def test_each_message_is_decoded_by_the_kind_of_its_version() -> None:
    assert CODEC.columns.names == ["__kind", "a", "b", "c"]
    for version, payload, kind, value in MESSAGES:
        if value is not None:
            assert CODEC.decode_one(payload, version) == (kind, value)
            assert CODEC.decode_one(payload, int(version or 0).to_bytes(8, "big")) == (kind, value)
    decoded = CODEC.decode_batch(
        pa.array([payload for _, payload, *_ in MESSAGES]), pa.array([version for version, *_ in MESSAGES])
    )
    decoded.rows.validate(full=True)
    rows = decoded.rows.to_pylist()
    assert [row["__kind"] for row in rows] == [kind for _, _, kind, _ in MESSAGES]
    for row, (_, _, kind, value) in zip(rows, MESSAGES, strict=True):
        assert {name: row[name] for name in "abc"} == {name: value if name == kind else None for name in "abc"}
    assert [reason is None for reason in decoded.errors.to_pylist()] == [value is not None for *_, value in MESSAGES]


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (5, NO_KIND),
        (6, "schema version 6 is not in the codec (0 to 5): generate it again"),
        (-1, "schema version -1 is not in the codec (0 to 5): generate it again"),
        (None, "the message has no schema version, which would show its kind"),
        (b"\x01", "a schema version of 1 bytes: expected 8, or none"),
    ],
)
def test_only_messages_without_a_kind_are_rejected(version: Any, reason: str) -> None:
    with pytest.raises(Unreadable) as error:
        CODEC.decode_one(b"\x02", version)
    assert error.value.reason == reason
    type_ = pa.binary() if isinstance(version, bytes) else pa.int64()
    good = (0).to_bytes(8, "big") if isinstance(version, bytes) else 0
    decoded = CODEC.decode_batch(pa.array([b"\x02", b"\x02"]), pa.array([version, good], type_))
    assert decoded.errors.to_pylist() == [reason, None]
    assert decoded.rows.to_pylist()[0] == {"__kind": None, "a": None, "b": None, "c": None}
    assert decoded.rows.column("__kind").to_pylist() == [None, "a"]


def test_messages_without_versions_show_no_kind() -> None:
    assert CODEC.decode_batch(pa.array([b"\x02"])).errors.null_count == 0
    assert CODEC.decode_batch(pa.array([], pa.binary()), pa.array([], pa.int64())).rows.num_rows == 0


def test_the_codec_of_a_kind_leaves_other_kinds_alone() -> None:
    codec = CODEC.codecs["a"]
    assert codec.columns.names == ["id", "zip"]
    assert codec.encode_one({"id": 4, "zip": "99"}) == b"\x08\x02\x0499"
    assert codec.number_written() == 3
    versions = pa.array([0, 1, 3, 5, 9, None], pa.int64())
    assert codec.mask_own_messages(versions, 6).tolist() == [True, False, True, True, True, True]
    with pytest.raises(Unreadable, match="schema version 1 is of the kind b, and not a"):
        codec.decode_one(b"\x02", 1)
    with pytest.raises(UnknownVersion, match="is of the kind b"):
        codec.encode_one({"id": 1}, 1)
    with pytest.raises(UnknownVersion, match="does not belong to any kind of events that was ever declared"):
        codec.read_as(5)
    assert codec.read_as(0).columns.names == ["id"]
    assert codec.read_as(0).kind == "a"


def test_a_batch_with_versions_has_no_message_of_a_kind_without_one() -> None:
    codec = CODEC.codecs["a"]
    payloads = pa.array([b"\x02\x00", b"\x02\x00"])
    decoded = codec.decode_batch(payloads, pa.array([None, 3], pa.int64()))
    assert decoded.errors.to_pylist() == ["the message has no schema version, which would show its kind", None]
    assert decoded.rows.to_pylist() == [{"id": None, "zip": None}, {"id": 1, "zip": None}]
    # Whoever says that no message has a version knows their kind.
    assert codec.decode_batch(payloads).errors.null_count == 2
    assert codec.decode_one(b"\x02\x00") == {"id": 1, "zip": None}


def test_codecs_of_kinds_are_pickled() -> None:
    copy = pickle.loads(pickle.dumps(CODEC))  # noqa: S301  what was pickled here
    assert copy.decode_one(b"\x02", 0) == ("a", {"id": 1, "zip": None})
    assert copy.codecs["b"].kind == "b"


def test_kinds_have_the_numbers_of_targets() -> None:
    # On prod, another party took number 1, with a record of the kind b and a field that Git does not have.
    foreign = Version(1, define("B", ID, {"name": "x", "type": "long"}), foreign=True, kind="b")
    of_prod = [VERSIONS[0], foreign, Version(2, B, kind="b"), Version(3, C, kind="c")]
    numbers = {"a": Numbers("prod", 0), "b": Numbers("prod", 2), "c": Numbers("prod", 3)}
    codecs = {
        kind: Codec(VERSIONS, kind=kind, targets={"prod": TargetVersions(tuple(of_prod), numbers[kind]), "stage": None})
        for kind in "abc"
    }
    codec = KindsCodec(codecs)
    with pytest.raises(Unreadable, match="means different content on two targets"):
        codec.decode_one(b"\x02", 1)
    prod = codec.for_target("prod")
    assert prod.decode_one(b"\x02\x04", 1) == ("b", {"zip": None, "id": 1})
    assert prod.decode_one(b"\x02", 2) == ("b", {"zip": None, "id": 1})
    assert prod.decode_one(b'{"id":1}', 3) == ("c", {"id": 1})
    assert codec.for_target("stage").decode_one(b'{"id":1}', 2) == ("c", {"id": 1})
    assert prod.codecs["b"].number_written() == 2
    with pytest.raises(Unreadable, match="not a version of prod"):
        prod.decode_one(b"\x02", 4)


def test_a_kind_needs_a_version() -> None:
    with pytest.raises(InvalidDefinition, match="no version is of the kind d"):
        Codec(VERSIONS, kind="d")
    with pytest.raises(InvalidDefinition, match="at least one kind"):
        KindsCodec({})
