"""The screens of plan and apply, as a user sees them."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

from approved import (
    ID,
    NEEDED,
    ORDERS,
    REFUNDS,
    A,
    B,
    C,
    S,
    carry_out,
    catalog,
    orders,
    plan_for,
    record,
    topic,
)

from schemactl.apply import Result
from schemactl.errors import RegistryError
from schemactl.model import Policies, SchemaInfo, SchemaType
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.report.plan_json import result_document
from schemactl.report.plan_text import render, render_result

HEAD = "Plan for local (sqlite::memory:) from main at fffffffff, 2026-03-02, answers as of Pulsar 4.0\n"


def screen(text: str) -> str:
    return HEAD + dedent(text).rstrip("\n")


def test_a_first_plan(registry: EmbeddedRegistry) -> None:
    orders = topic(ORDERS, A, B, C, schema=A, partitions=4, policies=Policies(S.FULL_TRANSITIVE))
    refunds = topic(REFUNDS, SchemaInfo(SchemaType.STRING))
    sales = Policies(S.BACKWARD, is_allow_auto_update_schema=False)
    assert render(plan_for(registry, catalog(orders, refunds, sales=sales))) == screen(
        """
        + namespace shop/sales
          + schema_compatibility_strategy: BACKWARD
          + is_allow_auto_update_schema: false

        + topic persistent://shop/sales/orders, 4 partitions
          + schema_compatibility_strategy: FULL_TRANSITIVE
          + v0 AVRO (111111111, 2026-01-01): registers v0
          + v1 AVRO (222222222, 2026-01-02): registers v1
          + v2 AVRO (333333333, 2026-01-03): registers v2

        + topic persistent://shop/sales/refunds
          + v0 STRING (111111111, 2026-01-01): registers v0

        Stays as it is:
          = persistent://shop/sales/orders declares an old text: an upload returns v0, latest stays v2

        Plan: 1 namespace, 2 topics, 4 versions to register.
        """
    )


def test_a_release_in_between_is_told(registry: EmbeddedRegistry) -> None:
    plan = plan_for(registry, orders(A))
    for version, told in (("4.1.2", "Pulsar 4.0 (it is 4.1.2)"), ("4.0.7", "Pulsar 4.0"), ("", "Pulsar 4.0")):
        said = render(replace(plan, origin=replace(plan.origin, version=version)))
        assert said.splitlines()[0].endswith(f"answers as of {told}")


def test_a_plan_of_changes_and_deletions(registry: EmbeddedRegistry) -> None:
    carry_out(registry, catalog(topic(ORDERS, A, partitions=2), topic(REFUNDS, A, B), sales=Policies(S.FULL)))
    registry.delete_schema(ORDERS)
    target = catalog(
        topic(ORDERS, A, partitions=4),
        topic(REFUNDS, A, B, schema=None, deleted=True),
        sales=Policies(S.BACKWARD),
    )
    assert render(plan_for(registry, target)) == screen(
        f"""
        ~ namespace shop/sales
          ~ schema_compatibility_strategy: FULL -> BACKWARD

        ~ topic persistent://shop/sales/orders
          ~ partitions: 2 -> 4
          + v0 AVRO (111111111, 2026-01-01): registers v2, which is Git's v0

        Stays as it is:
          = {ORDERS} in the registry Git's v0 is v2
          = {REFUNDS} is no longer declared, but the registry keeps its schema (v0-1); to delete it: --allow-delete {REFUNDS}

        Nothing approved says which versions these numbers of local are. Messages would be misread:
          ! {ORDERS}: v1 is deleted, v2 is Git's v0
          Next: schemactl drift --target local --accept --reason TEXT; commit what it writes, and merge it

        Plan: 1 namespace, 1 topic, 1 version to register; 1 deletion skipped.
        """
    )
    plan = plan_for(registry, target, delete=frozenset({REFUNDS}))
    assert render(plan).endswith(
        dedent(
            """
            - topic persistent://shop/sales/refunds
              - versions 0-1 no longer readable; a tombstone takes the next number

            Stays as it is:
              = persistent://shop/sales/orders in the registry Git's v0 is v2

            Nothing approved says which versions these numbers of local are. Messages would be misread:
              ! persistent://shop/sales/orders: v1 is deleted, v2 is Git's v0
              Next: schemactl drift --target local --accept --reason TEXT; commit what it writes, and merge it

            Plan: 1 namespace, 2 topics, 1 version to register, 1 schema to delete."""
        )
    )


def test_a_refused_plan(registry: EmbeddedRegistry) -> None:
    plan = plan_for(registry, orders(A, record(ID, NEEDED)))
    text = render(plan)
    assert "! persistent://shop/sales/orders\n  version 1 (222222222, 2026-01-02) would be rejected: " in text
    assert "needed" in text
    assert text.endswith(
        "\n  Fix: change the strategy in Git, or register it all the same with --relax-while-replaying"
        "\n\nRejected: 1 topic. Nothing of this plan can be applied."
    )
    assert "Unable to read schema" not in text


def test_a_relaxed_plan(registry: EmbeddedRegistry) -> None:
    target = orders(A, record(ID, NEEDED), policies=Policies(S.FULL))
    assert dedent(
        """
        + topic persistent://shop/sales/orders
          + schema_compatibility_strategy: FULL
          ~ strategy: FULL -> ALWAYS_COMPATIBLE, for the time of these uploads
          + v0 AVRO (111111111, 2026-01-01): registers v0
          + v1 AVRO (222222222, 2026-01-02): registers v1
          ~ the topic's own strategy: back to FULL
        """
    ) in render(plan_for(registry, target, relax=True))


def test_an_empty_plan(registry: EmbeddedRegistry) -> None:
    target = orders(A)
    carry_out(registry, target)
    assert render(plan_for(registry, target)) == screen(
        """
        No changes. The registry has everything that Git approved.
        """
    )


def test_colours_are_all_that_colour_changes(registry: EmbeddedRegistry) -> None:
    plan = plan_for(registry, catalog(topic(ORDERS, A, record(ID, NEEDED)), topic(REFUNDS, A, B, schema=A)))
    coloured = render(plan, color=True)
    for code in ("1", "2", "31", "32", "33", "36"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured != render(plan, color=True)
    assert coloured.replace("\x1b[0m", "") == render(plan)


def test_the_result_of_an_apply(registry: EmbeddedRegistry) -> None:
    plan = plan_for(registry, orders(A, B, sales=Policies(S.FULL)))
    assert (
        render_result(Result(plan, len(plan.steps)))
        == "Applied: 1 namespace, 1 topic, 2 versions registered."
    )
    partly = Result(plan, 3, RegistryError("the connection was lost", fix="run apply again"))
    assert render_result(partly) == dedent(
        """\
        Stopped at persistent://shop/sales/orders: register v0
          the connection was lost
            Fix: run apply again
        Not tried:
          persistent://shop/sales/orders: register v1
        Applied 3 of 5 steps."""
    )


def test_the_result_file_of_an_apply(registry: EmbeddedRegistry) -> None:
    plan = plan_for(registry, orders(A, sales=Policies(S.FULL)))
    told = result_document(Result(plan, 3, RegistryError("the connection was lost")))
    assert (told["outcome"], told["failure"]) == ("partly applied", "the connection was lost")
    assert [step["action"] for step in told["done"]] == [
        "create_namespace",
        "set_namespace_policies",
        "create_topic",
    ]
    assert [step["action"] for step in told["left"]] == ["register_version"]
    assert result_document(Result(plan, 4))["outcome"] == "applied"
    assert result_document(Result(plan, 0))["outcome"] == "started"
    assert result_document(Result(plan, 0, RegistryError("no")))["outcome"] == "failed"
