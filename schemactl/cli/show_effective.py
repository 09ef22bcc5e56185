"""`schemactl show --effective`: the values in force for a topic on a target, and the origin of each."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.selection import approved_target, find
from schemactl.core.terminal import table
from schemactl.core.wording import policy_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.errors import Source
    from schemactl.core.json_values import Json
    from schemactl.core.project import Project, Target
    from schemactl.history import History

_ORIGINS: Final = {
    "topic": "",
    "namespace": " (namespace)",
    "overlay": " (overlay)",
    "namespace overlay": " (namespace, overlay)",
    "project": " (default of the project)",
    "pulsar": "Pulsar's default",
    "target": "the target's name",
    "declared": "as declared",
}


@dataclass(frozen=True, slots=True)
class _Value:
    """A value in force, the level that sets it (see `_ORIGINS`), and its place in a file, if it has one."""

    key: str
    value: Any
    level: str
    source: Source | None = None

    @property
    def origin(self) -> str:
        return f"{self.source or ''}{_ORIGINS[self.level]}"


def show_effective(args: argparse.Namespace, context: Context) -> int:
    """Print the values in force for a topic, on a target or as declared. Return 0."""
    project, top = context.project()
    target = None
    if args.target is not None:
        chosen = approved_target(args.target, project, top, context)
        project, target = chosen.project, chosen.target
    approved = context.approved(project, target)
    topic = find(args.topic, approved.catalog)
    values = [*_values(topic, approved, project, target, context)]
    if args.format == "json":
        context.report_json(
            topic=str(topic.name),
            target=target.name if target else None,
            ref=approved.ref,
            values={each.key: _json(each) for each in values},
        )
        return 0
    rows = [(each.key, policy_word(each.value), each.origin) for each in values]
    head = f"{topic.name}{f' on {target.name}' if target else ''}, as {approved.ref} has it"
    context.report("\n".join([head, *(f"  {line}" for line in table(rows))]))
    return 0


def _json(value: _Value) -> Json:
    place = value.source
    return {
        "value": value.value,
        "level": value.level,
        "file": place.path if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }


def _values(
    topic: Topic, approved: History, project: Project, target: Target | None, context: Context
) -> Iterator[_Value]:
    overlays = target.overlays if target else ()

    def level(kind: str, source: Source | None) -> str:
        is_overlay = source is not None and source.path in overlays
        return {"topic": "overlay", "namespace": "namespace overlay"}[kind] if is_overlay else kind

    if target:
        there = target.names.there(topic.name)
        yield _Value("name", str(there), "declared" if there == topic.name else "target")
    if topic.partitions is None:
        yield _Value("partitions", "none", "pulsar")
    else:
        place = topic.locate("/partitions")
        yield _Value("partitions", topic.partitions, level("topic", place), place)
    for each in _policies(topic, approved.catalog, project):
        if each.level == "project":
            yield replace(each, source=_project_place(each.key, approved, project, context))
        else:
            yield replace(each, level=level(each.level, each.source) if each.source else each.level)
    for key, usual in (
        ("generation", 1),
        ("renamed_from", None),
        ("reader", "latest"),
        ("lifecycle", "stable"),
    ):
        if (value := getattr(topic, key)) != usual:
            yield _Value(
                key, value if isinstance(value, int) else str(value), "topic", topic.locate(f"/{key}")
            )
    space = approved.catalog.namespaces.get(topic.name.namespace_name)
    own, words = topic.metadata.values(), approved.catalog.metadata(topic.name).words()
    for key, said in words.items():
        holder, at = (space, "namespace") if space and key not in own else (topic, "topic")
        yield _Value(key, said, at, holder.locate(f"/{key}"))
    if topic.schema:
        yield _Value("schema", topic.schema.type.name, "topic", topic.locate("/schema/type"))


def _policies(topic: Topic, catalog: Catalog, project: Project) -> Iterator[_Value]:
    """Yield each policy in force: that of the topic, else of the namespace, else the default of brokers."""
    from schemactl.core.policies import SETTINGS, BrokerDefaults, Policies

    space = catalog.namespaces.get(topic.name.namespace_name)
    for key in Policies.names():
        for level, holder in (("topic", topic), ("namespace", space)):
            value = holder.policies.get(key) if holder else None
            if holder and value not in (None, "UNDEFINED"):
                shown = str(value) if isinstance(value, str) else value
                yield _Value(key, shown, level, holder.locate(f"/{key}"))
                break
        else:
            if key in SETTINGS:
                continue  # not managed: what counts is not known here
            value = getattr(project.defaults, key)
            is_said = value != getattr(BrokerDefaults(), key)
            yield _Value(
                key, value if isinstance(value, bool) else str(value), "project" if is_said else "pulsar"
            )


def _project_place(key: str, approved: History, project: Project, context: Context) -> Source:
    from schemactl import history
    from schemactl.declare import project as declare_project

    files = history.CommitFiles(context.repository, approved.whole.tip)
    return declare_project.place_in_project(files, project, ("defaults", key))
