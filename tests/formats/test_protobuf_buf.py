"""buf's categories: the rules, places and messages that `buf breaking` prints."""

from __future__ import annotations

from collections import Counter

import pytest
from corpora import rows
from protobuf_corpus import images, public

from schemactl.core.project import ProtoCategory
from schemactl.core.rules import rules
from schemactl.formats.protobuf.compatibility import CATEGORIES, proto_rules
from schemactl.formats.protobuf.descriptor import Image

pytestmark = pytest.mark.slow

EVERY: tuple[ProtoCategory, ...] = ("WIRE", "WIRE_JSON")


def list_violations(old: Image, new: Image, category: ProtoCategory) -> list[tuple[str, int | None, str]]:
    return [
        (violation.rule, violation.line, violation.message)
        for violation in proto_rules(old=old, new=new, category=category)
    ]


def by_buf(message: str) -> str:
    """Return a message of buf with the error in one of its format strings ("%sq moved") corrected."""
    return message.replace('"q moved', '" moved')


def test_every_public_pair_is_judged_as_buf_judges_it() -> None:
    pairs = [(row, {"a.proto": row["before"]}, {"a.proto": row["after"]}) for row, _, _ in public()]
    compiled = iter(images(*(files for _, before, after in pairs for files in (before, after))))
    for row, _, _ in pairs:
        old, new = next(compiled), next(compiled)
        for category in EVERY:
            expected = row["buf"][category]["violations"]
            assert sorted(list_violations(old, new, category), key=str) == sorted(
                ((one["rule"], one["line"], by_buf(one["message"])) for one in expected), key=str
            ), (row["id"], category)


def test_every_recorded_pair_is_judged_as_buf_judged_it_in_its_order() -> None:
    recorded = rows("proto_buf")
    fired_rules: set[str] = set()
    compiled = iter(images(*(files for row in recorded for files in (row["old"], row["new"]))))
    for row in recorded:
        old, new = next(compiled), next(compiled)
        for category in EVERY:
            expected = [[*place, by_buf(message)] for *place, message in row["buf"][category]]
            violations = proto_rules(old=old, new=new, category=category)
            assert [
                [violation.rule, violation.file, violation.line, violation.column, violation.message]
                for violation in violations
            ] == expected, (row["id"], category)
            fired_rules |= {violation.rule for violation in violations}
    assert fired_rules == set().union(*CATEGORIES.values())


def test_a_definition_breaks_nothing_of_its_own() -> None:
    recorded = rows("proto_buf")[:40]
    for one, same in zip(
        images(*(row["old"] for row in recorded)), images(*(row["old"] for row in recorded)), strict=True
    ):
        assert all(proto_rules(old=one, new=same, category=category) == [] for category in EVERY)


def test_the_categories_are_as_large_as_bufs() -> None:
    assert {name: len(rules) for name, rules in CATEGORIES.items()} == {"WIRE": 15, "WIRE_JSON": 22}


def test_every_rule_has_a_page_of_the_catalogue() -> None:
    assert set().union(*CATEGORIES.values()) <= rules().keys()


def test_many_findings_in_a_large_file_are_all_found() -> None:
    count = 1000
    fields = "".join(f"string f{n} = {n}; map<string, int32> m{n} = {n + count};" for n in range(1, count))
    reserved = "".join(f"reserved {2 * n + 20_000};" for n in range(count))
    body = f"message M {{ {reserved} {fields} }}"
    changed = body.replace("int32", "double").replace("reserved 2", "reserved 3")
    old, new = images(*({"a.proto": f'syntax = "proto3"; {text}'} for text in (body, changed)))
    violations_by_rule = Counter(violation.rule for violation in proto_rules(old=old, new=new, category="WIRE"))
    assert violations_by_rule["FIELD_WIRE_COMPATIBLE_TYPE"] == count - 1
    assert violations_by_rule["RESERVED_MESSAGE_NO_DELETE"] == count


def test_a_default_may_change_in_a_file_that_did_not() -> None:
    shared = 'syntax = "proto2"; package web; enum Kind {{ {} }}'
    user = 'syntax = "proto2"; package web; import "kind.proto"; message Click { optional Kind kind = 1; }'
    old, new = images(
        {"kind.proto": shared.format("AD = 0; LINK = 1;"), "click.proto": user},
        {"kind.proto": shared.format("LINK = 1; AD = 0;"), "click.proto": user},
    )
    [violation] = proto_rules(old=old, new=new, category="WIRE")
    assert (violation.rule, violation.file, violation.pointer) == (
        "FIELD_SAME_DEFAULT",
        "click.proto",
        "/messages/web.Click/fields/1/default",
    )
