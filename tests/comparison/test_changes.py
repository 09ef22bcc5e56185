"""One comparison for every pair of sources."""

from __future__ import annotations

from dataclasses import replace

from approved import A_WITH_DOC, ORDERS, REFUNDS, SALES, A, B, C, S, make_catalog, make_topic, make_versions
from hypothesis import given, settings
from hypothesis import strategies as st

from schemactl.comparison.changes import (
    COMMIT_PROPERTY,
    NamespaceAdded,
    NumbersDiffer,
    PartitionsChanged,
    PoliciesChanged,
    SchemaRemoved,
    TextDiffers,
    TopicAdded,
    VersionsMissing,
    VersionsUnknown,
    find_changes,
)
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo, SchemaType


def test_a_catalog_does_not_differ_from_itself() -> None:
    same = make_catalog(make_topic(ORDERS, A, B), make_topic(REFUNDS), sales=Policies(S.FULL))
    assert find_changes(same, same) == ()


def test_all_declarations_are_added_to_an_empty_catalog() -> None:
    orders = make_topic(ORDERS, A, B, partitions=4, policies=Policies(S.FULL))
    assert find_changes(Catalog(), make_catalog(orders, sales=Policies(S.BACKWARD))) == (
        NamespaceAdded(SALES),
        PoliciesChanged(SALES, Policies(), Policies(S.BACKWARD)),
        TopicAdded(ORDERS, orders),
        PoliciesChanged(ORDERS, Policies(), Policies(S.FULL)),
        VersionsMissing(ORDERS, make_versions(A, B)),
    )


def test_everything_is_removed_from_something() -> None:
    orders = make_topic(ORDERS, A, B)
    assert find_changes(make_catalog(orders), Catalog()) == (SchemaRemoved(ORDERS),)


def test_a_policy_that_is_not_managed_never_differs() -> None:
    base = make_catalog(sales=Policies(S.FULL, is_allow_auto_update_schema=True))
    target = make_catalog(sales=Policies(schema_validation_enforced=True))
    changed = PoliciesChanged(SALES, Policies(), Policies(schema_validation_enforced=True))
    assert find_changes(base, target) == (changed,)


def test_an_unset_strategy_equals_undefined() -> None:
    assert find_changes(make_catalog(), make_catalog(sales=Policies(S.UNDEFINED))) == ()
    assert find_changes(make_catalog(sales=Policies(S.UNDEFINED)), make_catalog(sales=Policies(S.UNDEFINED))) == ()
    reset = PoliciesChanged(SALES, Policies(S.FULL), Policies(S.UNDEFINED))
    assert find_changes(make_catalog(sales=Policies(S.FULL)), make_catalog(sales=Policies(S.UNDEFINED))) == (reset,)


def test_partitions_differ_only_where_they_are_declared() -> None:
    base = make_catalog(make_topic(ORDERS, A, partitions=4))
    assert find_changes(base, make_catalog(make_topic(ORDERS, A))) == ()
    assert find_changes(base, make_catalog(make_topic(ORDERS, A, partitions=6))) == (PartitionsChanged(ORDERS, 4, 6),)


def test_a_doc_is_another_text_of_the_version() -> None:
    target = make_catalog(make_topic(ORDERS, A, schema=A_WITH_DOC))
    assert find_changes(make_catalog(make_topic(ORDERS, A)), target) == (TextDiffers(ORDERS, A_WITH_DOC, 0, 0),)


def test_reformatted_definition_is_not_a_change() -> None:
    spaced = replace(A, schema=A.schema.replace(b", ", b" ,\n  "))
    assert find_changes(make_catalog(make_topic(ORDERS, A)), make_catalog(make_topic(ORDERS, A, schema=spaced))) == ()


def test_old_content_that_is_in_force_again_differs_from_the_latest() -> None:
    target = make_catalog(make_topic(ORDERS, A, B, schema=A))
    assert find_changes(make_catalog(make_topic(ORDERS, A, B)), target) == (TextDiffers(ORDERS, A, 0, 1),)
    assert find_changes(target, target) == ()


def test_content_that_comes_back_after_a_deletion_keeps_its_number() -> None:
    base = make_catalog(make_topic(ORDERS, A, B, schema=None, deleted=True))
    orders = make_topic(ORDERS, A, B, schema=A)
    assert find_changes(base, make_catalog(orders)) == (TopicAdded(ORDERS, orders), TextDiffers(ORDERS, A, 0, 1))


def test_deleted_topic_is_not_a_change() -> None:
    base = make_catalog(make_topic(ORDERS, A, schema=None, deleted=True))
    assert find_changes(base, make_catalog()) == ()
    assert find_changes(base, base) == ()


def test_undeclared_schema_is_removed() -> None:
    assert find_changes(make_catalog(make_topic(ORDERS, A)), make_catalog(make_topic(ORDERS, A, schema=None))) == (
        SchemaRemoved(ORDERS),
    )


def test_schemas_without_topic_are_removed_where_the_target_deleted_theirs() -> None:
    ghost = make_topic(ORDERS, A, deleted=True)
    gone = make_topic(ORDERS, A, schema=None, deleted=True)
    assert find_changes(make_catalog(ghost), make_catalog(gone)) == (SchemaRemoved(ORDERS),)
    added, removed = find_changes(make_catalog(ghost), make_catalog(make_topic(ORDERS)))
    assert isinstance(added, TopicAdded)
    assert removed == SchemaRemoved(ORDERS)


def test_versions_are_matched_by_content_not_by_number() -> None:
    base = make_catalog(replace(make_topic(ORDERS, C, A_WITH_DOC), schema=A_WITH_DOC))
    target = make_catalog(make_topic(ORDERS, A, B))
    assert find_changes(base, target) == (
        VersionsMissing(ORDERS, make_versions(A, B)[1:]),
        VersionsUnknown(ORDERS, make_versions(C)),
        NumbersDiffer(ORDERS, ((1, 0),)),
    )


def test_versions_before_a_tombstone_are_missing() -> None:
    base = make_catalog(replace(Topic(ORDERS), versions=make_versions(A, B, None)))
    assert find_changes(base, make_catalog(make_topic(ORDERS, A, B))) == (VersionsMissing(ORDERS, make_versions(A, B)),)


def test_commit_property_is_not_a_difference() -> None:
    stamped = replace(A, properties={COMMIT_PROPERTY: "0" * 40})
    assert find_changes(make_catalog(make_topic(ORDERS, stamped)), make_catalog(make_topic(ORDERS, A))) == ()


def test_unparsable_definition_equals_only_its_own_bytes() -> None:
    broken = SchemaInfo(SchemaType.AVRO, b"{")
    assert find_changes(make_catalog(make_topic(ORDERS, broken)), make_catalog(make_topic(ORDERS, broken))) == ()
    missing, unknown = find_changes(make_catalog(make_topic(ORDERS, broken)), make_catalog(make_topic(ORDERS, A)))
    assert (missing, unknown) == (
        VersionsMissing(ORDERS, make_versions(A)),
        VersionsUnknown(ORDERS, make_versions(broken)),
    )


contents = st.lists(st.sampled_from([A, B, C, SchemaInfo(SchemaType.STRING)]), unique=True)


@settings(deadline=None)
@given(contents, contents)
def test_missing_one_way_is_unknown_the_other_way(one: list[SchemaInfo], other: list[SchemaInfo]) -> None:
    forward, backward = (
        find_changes(make_catalog(make_topic(ORDERS, *base)), make_catalog(make_topic(ORDERS, *target)))
        for base, target in ((one, other), (other, one))
    )
    if one and other:
        missing = [version for change in forward if isinstance(change, VersionsMissing) for version in change.versions]
        assert [version.info for version in missing] == [info for info in other if info not in one]
        assert missing == [
            version for change in backward if isinstance(change, VersionsUnknown) for version in change.versions
        ]
