"""Pulsar's two checkers of PROTOBUF_NATIVE: the root's name, and the opt-in one of 5.0."""

from __future__ import annotations

import pytest
from protobuf_corpus import parse_root, read_public_rows

from schemactl.core.rules import get_builtin_rules
from schemactl.formats.protobuf.advanced_checker import find_advanced_violations
from schemactl.formats.protobuf.definition import find_place, parse

pytestmark = pytest.mark.slow


def test_the_root_message_of_every_public_pair_is_the_brokers() -> None:
    for row, old, new in read_public_rows():
        same = parse(old.schema).root.full_name == parse(new.schema).root.full_name
        assert same is row["pulsar_native"]["default_check"], row["id"]


@pytest.mark.parametrize("direction", ["new_reads_old", "old_reads_new"])
def test_every_public_pair_is_rejected_like_in_pulsar(direction: str) -> None:
    for row, *infos in read_public_rows():
        old, new = (parse(info.schema).root for info in infos)
        reader, writer = (new, old) if direction == "new_reads_old" else (old, new)
        violations = list(find_advanced_violations(reader=reader, writer=writer))
        expected = row["pulsar_native"][direction]
        actual = [{"rule": violation.rule, "path": violation.path} for violation in violations]
        assert actual == expected["violations"], row["id"]
        assert expected["ok"] is (not violations)


def test_every_rejection_has_a_documented_rule_and_points_at_the_named_element() -> None:
    described = {rule.id for rule in get_builtin_rules().values() if "checkers" in rule.enabled_by}
    for row, *infos in read_public_rows():
        old, new = (parse(info.schema).root for info in infos)
        for rejection in find_advanced_violations(reader=new, writer=old):
            assert rejection.rule in described
            places = [find_place(side.file.image, rejection.pointer) for side in (new, old)]
            exact = [place[0] for place in places if place and place[0].pointer == rejection.pointer]
            assert exact, (row["id"], rejection)
            if rejection.rule not in ("ROOT_MESSAGE_CHANGED", "UNSUPPORTED_FEATURE"):
                last = exact[0].nested_name.rpartition(".")[2]
                assert rejection.path.endswith(f".{last}")


def list_violations(old: str, new: str) -> list[tuple[str, str]]:
    return [(one.rule, one.path) for one in find_advanced_violations(reader=parse_root(new), writer=parse_root(old))]


def test_added_validation_of_a_string_is_rejected() -> None:
    old = 'syntax = "proto2"; message M { optional string x = 1; }'
    new = 'syntax = "proto3"; message M { optional string x = 1; }'
    assert list_violations(old, new) == [("UTF8_VALIDATION_ADDED", "M.x")]
    assert list_violations(new, old) == []


@pytest.mark.parametrize(
    "option", ["option java_string_check_utf8 = true;", "option features.(pb.java).utf8_validation = VERIFY;"]
)
def test_java_option_that_adds_utf8_validation_is_a_violation(option: str) -> None:
    edition = "features.(pb.java)" in option
    head = 'edition = "2023"; import "google/protobuf/java_features.proto";' if edition else 'syntax = "proto2";'
    none = " [features.utf8_validation = NONE]" if edition else ""
    message = f"message M {{ {'' if edition else 'optional '}string x = 1{none}; }}"
    assert list_violations(f"{head} {message}", f"{head} {option} {message}") == [("UTF8_VALIDATION_ADDED", "M.x")]


CPP_FEATURE = """
edition = "2023"; import "google/protobuf/cpp_features.proto";
message M { string x = 1 [features.(pb.cpp).string_type = VIEW]; }
"""


@pytest.mark.parametrize(
    "body",
    [
        CPP_FEATURE,
        'syntax = "proto2"; message M { extensions 5 to 9; }',
        'syntax = "proto2"; message M { option message_set_wire_format = true; extensions 4 to max; }',
    ],
)
def test_unsupported_feature_is_rejected_on_both_sides(body: str) -> None:
    [(rule, _), (again, _), *_] = list_violations(body, body)
    assert rule == again == "UNSUPPORTED_FEATURE"


def test_a_default_of_minus_zero_is_another_one_than_zero() -> None:
    old = 'syntax = "proto2"; message M { optional double x = 1; }'
    new = 'syntax = "proto2"; message M { optional double x = 1 [default = -0]; }'
    assert list_violations(old, new) == [("DEFAULT_CHANGED", "M.x")]
    nan = 'syntax = "proto2"; message M { optional double x = 1 [default = nan]; }'
    assert list_violations(nan, nan) == []
