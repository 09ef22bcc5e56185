"""After any history of a lost registry, a rebuild from the saved version lists restores its version numbers."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from approved import (
    A_WITH_DOC,
    CITY,
    ID,
    NEEDED,
    ORDERS,
    ORIGIN,
    REFUNDS,
    SALES,
    A,
    B,
    C,
    S,
    carry_out,
    make_topic,
    record,
)
from approved import make_catalog as catalog_of
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES

from schemactl.comparison.changes import remove_upload_properties
from schemactl.core.catalog import Catalog
from schemactl.core.json_values import to_json
from schemactl.core.names import TopicName
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo, SchemaType, get_live_versions
from schemactl.deploy.apply import apply_plan
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Plan
from schemactl.deploy.rebuild import Lists, make_rebuild, without_versions
from schemactl.deploy.registry_state import read_registry_state
from schemactl.deploy.target_catalog import find_scope, select_applicable
from schemactl.deploy.version_lists import FORMAT_VERSION, list_topics, read_lists
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.interface import Registry, Scope

CONTENTS = [A, B, C, record(ID, NEEDED), SchemaInfo(SchemaType.STRING), SchemaInfo(SchemaType.INT64)]
FOREIGN = [*CONTENTS, A_WITH_DOC, record(ID, CITY), record(ID, owner="somebody"), SchemaInfo(SchemaType.DATE)]

events = st.lists(
    st.tuples(st.sampled_from(["foreign", "delete", "apply"]), st.integers(0, len(FOREIGN) - 1)), max_size=9
)


def make_approved(contents: list[SchemaInfo], count: int) -> Catalog:
    """Git after `count` versions of orders; refunds has one."""
    anything = Policies(S.ALWAYS_COMPATIBLE)
    return catalog_of(make_topic(ORDERS, *contents[:count]), make_topic(REFUNDS, A), sales=anything)


def rebuild(registry: Registry, git: Catalog, lists: Lists) -> Plan:
    state = read_registry_state(registry, find_scope(without_versions(select_applicable(git), lists)))
    return make_rebuild(state, git, lists, origin=ORIGIN, permissions=Permissions())


def export_lists(registry: Registry, git: Catalog) -> Lists:
    """The lists, after a journey through a file."""
    contents = registry.read(find_scope(git))
    document = {
        "format_version": FORMAT_VERSION,
        "target": "local",
        "topics": to_json(list_topics(git=git, registry=contents)),
    }
    with TemporaryDirectory() as folder:
        path = Path(folder, "numbers.json")
        path.write_text(json.dumps(document))
        return read_lists(path, target="local", git=git)


def lists_of(registry: Registry, name: TopicName) -> tuple[list[tuple[int, SchemaInfo | None]], int]:
    """Return the readable definitions by number, and the next number."""
    topic_there = registry.read(Scope(frozenset(), frozenset({name}))).topics.get(name)
    stored = topic_there.versions if topic_there else ()
    readable = [(version.number, version.info) for version in get_live_versions(stored)]
    return readable, stored[-1].number + 1 if stored else 0


@EXAMPLES
@given(st.permutations(CONTENTS), events, st.none() | st.floats(0, 1))
def test_a_rebuild_from_what_was_kept_is_exact(
    contents: list[SchemaInfo], happened: list[tuple[str, int]], stopped: float | None
) -> None:
    with closing(EmbeddedRegistry(":memory:")) as registry:
        count = 0
        for event, which in happened:
            if event == "foreign":
                _upload(registry, FOREIGN[which])
            elif event == "delete":
                registry.delete_schema(ORDERS)
            else:
                count = max(count, which % (len(contents) + 1))
                carry_out(registry, make_approved(contents, count), relax=True)
        git = make_approved(contents, count)
        carry_out(registry, git, relax=True)
        before = lists_of(registry, ORDERS)
        lists = export_lists(registry, git)
        for name in (ORDERS, REFUNDS):
            registry.delete_topic(name)
        plan = rebuild(registry, git, lists)
        assert not plan.refusals
        if stopped is not None:
            _stop_at(plan, registry, round(stopped * len(plan.steps)))
            plan = rebuild(registry, git, lists)
            assert not plan.refusals
        assert apply_plan(plan, registry).failure is None
        assert lists_of(registry, ORDERS) == before
        assert rebuild(registry, git, lists).steps == ()


def _upload(registry: EmbeddedRegistry, info: SchemaInfo) -> None:
    registry.create_namespace(SALES)
    registry.set_namespace_policies(SALES, Policies(S.ALWAYS_COMPATIBLE))
    registry.put_schema(ORDERS, info)


def _stop_at(plan: Plan, registry: Registry, step: int) -> None:
    def stop_at_step(number: int, _step: object) -> None:
        if number == step:
            raise KeyboardInterrupt

    apply_plan(plan, registry, on_step_done=stop_at_step)


@EXAMPLES
@given(st.permutations(CONTENTS), st.integers(0, len(CONTENTS)))
def test_from_git_a_rebuild_is_exact_where_only_apply_wrote(contents: list[SchemaInfo], count: int) -> None:
    git = make_approved(contents, count)
    with closing(EmbeddedRegistry(":memory:")) as registry:
        carry_out(registry, git)
        before = [(number, info and remove_upload_properties(info)) for number, info in lists_of(registry, ORDERS)[0]]
        assert [number for number, _ in before] == list(range(count))
        registry.delete_topic(ORDERS)
        apply_plan(rebuild(registry, git, {}), registry)
        after = [(number, info and remove_upload_properties(info)) for number, info in lists_of(registry, ORDERS)[0]]
        assert after == before
