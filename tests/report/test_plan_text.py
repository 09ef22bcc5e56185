"""The screens of plan and apply, as a user sees them."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest
from approved import (
    ID,
    NEEDED,
    ORDERS,
    REFUNDS,
    A,
    B,
    S,
    carry_out,
    make_catalog,
    make_orders,
    make_topic,
    plan_for,
    record,
)

from schemactl.core.errors import RegistryError, SchemactlError
from schemactl.core.json_values import to_json
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.deploy.apply import ApplyResult
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.report.apply_result import UNFINISHED, UNTRIED, make_result_document, render_result
from schemactl.report.plan import render_plan

HEAD = "Plan for local (sqlite::memory:) from main at fffffffff, 2026-03-02, answers as of Pulsar 4.0\n"
MISREAD = f"""\
local has version numbers that are not Git's, and no approved numbers file records them. Messages would be misread:
  ! {ORDERS}: v1 is deleted, v2 is Git's v0
  Next: apply this; then `schemactl drift --target local --accept --reason TEXT`, commit what it writes, and merge it
"""


def test_a_first_plan(registry: EmbeddedRegistry) -> None:
    strict = make_topic(ORDERS, A, B, schema=A, partitions=4, policies=Policies(S.FULL_TRANSITIVE))
    refunds = make_topic(REFUNDS, SchemaInfo(SchemaType.STRING))
    sales = Policies(S.BACKWARD, is_allow_auto_update_schema=False)
    text = render_plan(plan_for(registry, make_catalog(strict, refunds, sales=sales)))
    assert text.startswith(HEAD)
    parts = [
        "+ namespace shop/sales\n  + schema_compatibility_strategy: BACKWARD\n  + is_allow_auto_update_schema: false\n",
        f"+ topic {ORDERS}, 4 partitions\n  + schema_compatibility_strategy: FULL_TRANSITIVE\n",
        "  + v0 AVRO (111111111, 2026-01-01): registers v0\n  + v1 AVRO (222222222, 2026-01-02): registers v1\n",
        f"+ topic {REFUNDS}\n  + v0 STRING (111111111, 2026-01-01): registers v0\n",
        f"Unchanged:\n  = {ORDERS} declares the content of an older version again: an upload returns v0, and the latest version stays v1\n",
        "Plan: 1 namespace, 2 topics, 3 versions to register.",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


def test_a_release_in_between_is_told(registry: EmbeddedRegistry) -> None:
    plan = plan_for(registry, make_orders(A))
    for version, release_text in (("4.1.2", "Pulsar 4.0 (it is 4.1.2)"), ("4.0.7", "Pulsar 4.0"), ("", "Pulsar 4.0")):
        text = render_plan(replace(plan, origin=replace(plan.origin, version=version)))
        assert text.splitlines()[0].endswith(f"answers as of {release_text}")


def test_a_plan_of_changes_and_deletions(registry: EmbeddedRegistry) -> None:
    carry_out(
        registry, make_catalog(make_topic(ORDERS, A, partitions=2), make_topic(REFUNDS, A, B), sales=Policies(S.FULL))
    )
    registry.delete_schema(ORDERS)
    gone = make_topic(REFUNDS, A, B, schema=None, deleted=True)
    target = make_catalog(make_topic(ORDERS, A, partitions=4), gone, sales=Policies(S.BACKWARD))
    text = render_plan(plan_for(registry, target))
    for part in (
        "~ namespace shop/sales\n  ~ schema_compatibility_strategy: FULL -> BACKWARD\n",
        "  ~ partitions: 2 -> 4\n  + v0 AVRO (111111111, 2026-01-01): registers v2, which is Git's v0\n",
        f"  = {ORDERS} in the registry Git's v0 is v2\n",
        f"keeps its schema (v0-1); to delete it: --allow-delete {REFUNDS}\n",
        MISREAD,
    ):
        assert part in text
    assert text.endswith("\nPlan: 1 namespace, 1 topic, 1 version to register; 1 deletion skipped.")
    text = render_plan(plan_for(registry, target, delete=frozenset({REFUNDS})))
    assert f"- topic {REFUNDS}\n  - versions 0-1 no longer readable; a tombstone takes the next number\n" in text
    assert text.endswith("\nPlan: 1 namespace, 2 topics, 1 version to register, 1 schema to delete.")


def test_a_refused_plan(registry: EmbeddedRegistry) -> None:
    text = render_plan(plan_for(registry, make_orders(A, record(ID, NEEDED))))
    assert "! persistent://shop/sales/orders\n  Git's version 1 (222222222, 2026-01-02) would be rejected: " in text
    assert "needed" in text
    assert text.endswith(
        "\n  Fix: approve another strategy for the topic."
        "\n   or: `schemactl apply --target local --topic shop/sales/orders --relax-while-replaying`: it keeps the registered versions, and registers the approved ones."
        "\n\nNothing can be applied; left out: 1 topic."
    )
    assert "Unable to read schema" not in text


def test_a_relaxed_plan(registry: EmbeddedRegistry) -> None:
    plan = plan_for(registry, make_orders(A, record(ID, NEEDED), policies=Policies(S.FULL)), relax=True)
    before, _, uploads = render_plan(plan).partition(
        "  ~ automatic updates in shop/sales: off, during these uploads\n"
        "  ~ strategy: FULL -> ALWAYS_COMPATIBLE, during these uploads\n"
    )
    assert before.endswith("  + schema_compatibility_strategy: FULL\n")
    assert uploads.splitlines()[2:4] == [
        "  ~ the topic's own strategy: back to FULL, and automatic updates as before",
        "  = afterwards v1 must be the latest version",
    ]


def test_an_empty_plan(registry: EmbeddedRegistry) -> None:
    carry_out(registry, make_orders(A))
    assert render_plan(plan_for(registry, make_orders(A))) == (
        f"{HEAD}\nNo changes. The registry has everything that Git approved."
    )


def test_colours_are_all_that_colour_changes(registry: EmbeddedRegistry) -> None:
    plan = plan_for(
        registry, make_catalog(make_topic(ORDERS, A, record(ID, NEEDED)), make_topic(REFUNDS, A, B, schema=A))
    )
    coloured = render_plan(plan, color=True)
    for code in ("1", "2", "31", "32", "33", "36"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured != render_plan(plan, color=True)
    assert coloured.replace("\x1b[0m", "") == render_plan(plan)


def test_the_result_of_an_apply(registry: EmbeddedRegistry) -> None:
    plan = plan_for(registry, make_orders(A, B, sales=Policies(S.FULL)))
    whole = "Applied: 1 namespace, 1 topic, 2 versions registered."
    assert render_result(ApplyResult(plan, (1, 2, 3, 4, 5))) == whole
    partly = ApplyResult(plan, (1, 2, 3), {4: RegistryError("the connection was lost", fix="run apply again")})
    assert render_result(partly) == dedent(
        """\
        Failed: persistent://shop/sales/orders: register v0
          the connection was lost
            Fix: run apply again
        Not tried:
          persistent://shop/sales/orders: register v1
        Applied 3 of 5 steps."""
    )
    ended = ApplyResult(plan, (1, 2, 3), stopped=RegistryError("interrupted", fix="run apply again"), unfinished=(4,))
    assert render_result(ended) == dedent(
        """\
        Stopped: interrupted
          Fix: run apply again
        Not finished; the registry may still execute these steps:
          persistent://shop/sales/orders: register v0
        Not tried:
          persistent://shop/sales/orders: register v1
        Applied 3 of 5 steps."""
    )
    reasons = {left["step"]: left["reason"] for left in to_json(make_result_document(ended))["left"]}
    assert reasons == {4: UNFINISHED, 5: "interrupted\n  Fix: run apply again"}


LOST = RegistryError("the connection was lost")
ENDED = RegistryError("interrupted")


@pytest.mark.parametrize(
    ("done", "failures", "stopped", "outcome", "reasons"),
    [
        (4, {}, None, "applied", {}),
        (3, {4: LOST}, None, "partly applied", {4: "the connection was lost"}),
        (0, {}, ENDED, "failed", dict.fromkeys((1, 2, 3, 4), "interrupted")),
        (2, {3: LOST}, None, "partly applied", {3: "the connection was lost", 4: UNTRIED}),
        (2, {3: LOST}, ENDED, "partly applied", {3: "the connection was lost", 4: "interrupted"}),
    ],
)
def test_the_result_file_of_an_apply(
    registry: EmbeddedRegistry,
    done: int,
    failures: dict[int, SchemactlError],
    stopped: SchemactlError | None,
    outcome: str,
    reasons: dict[int, str],
) -> None:
    plan = plan_for(registry, make_orders(A, sales=Policies(S.FULL)))
    result = ApplyResult(plan, tuple(range(1, done + 1)), failures, stopped)
    document = to_json(make_result_document(result))
    actions = ["create_namespace", "set_namespace_policies", "create_topic", "register_version"]
    assert [step["action"] for step in document["steps"]] == actions
    assert (document["outcome"], document["done"]) == (outcome, list(result.done))
    assert {pending_step["step"]: pending_step["reason"] for pending_step in document["left"]} == reasons
    assert document["approved"]["commit"]["id"] == "f" * 40
