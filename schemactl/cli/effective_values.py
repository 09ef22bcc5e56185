"""`show --effective`: the values in force for a topic, as declared and in the registry of a target."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.target_selection import ChosenTarget, choose_approved_target
from schemactl.cli.topic_selection import find
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.policies import SETTINGS, BrokerDefaults, Policies
from schemactl.core.schema import SchemaType
from schemactl.core.terminal import format_table, get_terminal_width
from schemactl.core.wording import format_policy_value

if TYPE_CHECKING:
    from schemactl.core.errors import Source
    from schemactl.core.json_values import Json
    from schemactl.core.names import NamespaceName, TopicName
    from schemactl.core.project import Project, Target
    from schemactl.history.approved_history import History
    from schemactl.registry.interface import Registry


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
"""How the text report names the level that sets a value; the source location, if there is one, precedes it."""


@dataclass(frozen=True, slots=True)
class _EffectiveValue:
    """A value in force, the level that sets it (see `_ORIGINS`), and its source location, if it has one."""

    key: str
    value: Any
    level: str
    source: Source | None = None

    @property
    def origin(self) -> str:
        return f"{self.source or ''}{_ORIGINS[self.level]}"


def show_effective(args: argparse.Namespace, context: Context) -> None:
    """Print the values in force for a topic, on a target or as declared."""
    project, top = context.project()
    target = chosen_target = None
    if args.target is not None:
        chosen_target = choose_approved_target(args.target, project, top, context)
        project, target = chosen_target.project, chosen_target.target
    approved = context.approved(project, target, topics=[args.topic])
    topic = find(args.topic, approved.catalog)
    values = [*_list_values(topic, approved, project, target, context)]
    if args.live and chosen_target:
        _compare_with_registry(args, context, chosen_target, approved, topic, values)
    elif args.format == "json":
        context.report_json(
            topic=str(topic.name),
            target=target.name if target else None,
            ref=approved.ref,
            values={value.key: _value_json(value) for value in values},
        )
    else:
        rows = [(value.key, format_policy_value(value.value), value.origin) for value in values]
        head = f"{topic.name}{f' on {target.name}' if target else ''}, as {approved.ref} has it"
        context.report("\n".join([head, *format_table(rows, indent=2)]))


@dataclass(frozen=True, slots=True)
class _RegistryValue:
    """A value in force in a registry, or None if it is not known, and the level that sets it: `topic`, `namespace` or `brokers`."""

    value: Any
    level: str


def _compare_with_registry(
    args: argparse.Namespace,
    context: Context,
    chosen: ChosenTarget,
    approved: History,
    topic: Topic,
    declared: Sequence[_EffectiveValue],
) -> None:
    """Print the values in force for a topic as declared, next to the values of the target's registry."""
    from schemactl.deploy.broker_configuration import BrokerComparisonView, compare_configuration
    from schemactl.deploy.target_catalog import rename_catalog
    from schemactl.history.target_history import read_numbers_of_target
    from schemactl.report.document import render_lines
    from schemactl.report.target_blocks import make_broker_blocks

    target = chosen.target
    name = target.names.to_target(topic.name)
    declared_namespace = approved.catalog.namespaces.get(topic.name.namespace_name)
    with closing(chosen.open(context)) as registry:
        registry_values = _read_registry_values(registry, name)
        catalog = Catalog(
            {declared_namespace.name: declared_namespace} if declared_namespace else {}, {topic.name: topic}
        )
        numbers = read_numbers_of_target(target, chosen.project, context.repository, approved)
        comparison = compare_configuration(
            chosen.project.defaults,
            registry.configuration,
            registry.release,
            rename_catalog(catalog, target.names),
            accepted=numbers.brokers if numbers else None,
            today=datetime.now(UTC).date(),
        )
    values = {value.key: value for value in declared}
    keys = [
        *values,
        *(key for key, value in (registry_values or {}).items() if key not in values and value.value is not None),
    ]
    if args.format == "json":
        context.report_json(
            topic=str(topic.name),
            target=target.name,
            registry=target.registry,
            ref=approved.ref,
            exists=registry_values is not None,
            values={
                key: {
                    **(_value_json(values[key]) if key in values else dict.fromkeys(_VALUE_KEYS)),
                    "live": {"value": registry_values[key].value, "level": registry_values[key].level}
                    if registry_values and key in registry_values
                    else None,
                }
                for key in keys
            },
            brokers=BrokerComparisonView.from_comparison(comparison),
        )
        return
    rows: list[tuple[str, ...]] = [("", "GIT", "SET BY", target.name.upper(), "SET BY")]
    for key in keys:
        value, registry_value = values.get(key), (registry_values or {}).get(key)
        rows.append(
            (
                key,
                format_policy_value(value.value) if value else "-",
                value.origin if value else "",
                ""
                if registry_value is None
                else "unknown"
                if registry_value.value is None
                else format_policy_value(registry_value.value),
                registry_value.level if registry_value else "",
            )
        )
    head = f"{topic.name} as {approved.ref} has it, and {target.name} ({target.registry})"
    blocks = ["\n".join([head, *format_table(rows, width=get_terminal_width(), indent=2)])]
    blocks += ["\n".join(render_lines(block, color=context.color)) for block in make_broker_blocks(comparison)]
    if registry_values is None:
        blocks.append(f"The registry does not have {name}.")
    context.report("\n\n".join(blocks))


def _read_registry_values(registry: Registry, name: TopicName) -> dict[str, _RegistryValue] | None:
    """Return the values in force for a topic of a registry by key, or None if the registry does not have the topic."""
    from schemactl.registry.interface import Scope

    space_name = name.namespace_name
    topic_settings = frozenset(setting for setting, row in SETTINGS.items() if row.topic_path)
    settings: dict[NamespaceName | TopicName, frozenset[str]] = {space_name: frozenset(SETTINGS), name: topic_settings}
    catalog = registry.read(Scope(frozenset({space_name}), frozenset({name}), settings))
    topic, namespace = catalog.topics.get(name), catalog.namespaces.get(space_name)
    if topic is None:
        return None
    partitions = "none" if topic.partitions is None else topic.partitions
    values = {"name": _RegistryValue(str(name), "topic"), "partitions": _RegistryValue(partitions, "topic")}
    defaults = registry.defaults
    if not (topic.policies.schema_validation_enforced or (namespace and namespace.policies.schema_validation_enforced)):
        # Brokers also answer false for a topic without the policy.
        topic = replace(topic, policies=replace(topic.policies, schema_validation_enforced=None))
    for key in Policies.names():
        if holder := _find_holder(key, topic, namespace):
            values[key] = _RegistryValue(holder.policies.get(key), "topic" if holder is topic else "namespace")
        elif key == "schema_compatibility_strategy":
            values[key] = _RegistryValue(registry.default_strategy(space_name), "brokers")
        elif key in SETTINGS:
            values[key] = _RegistryValue(defaults.settings.get(key), "brokers")
        else:
            values[key] = _RegistryValue(getattr(defaults, key), "brokers")
    # The brokers' own enforcement counts in addition to the policies of topic and namespace.
    if defaults.schema_validation_enforced:
        values["schema_validation_enforced"] = _RegistryValue(True, "brokers")  # noqa: FBT003  a value
    return values


_VALUE_KEYS: Final = ("value", "level", "file", "line", "column")


def _value_json(value: _EffectiveValue) -> Json:
    source = value.source
    return {
        "value": value.value,
        "level": value.level,
        "file": source.path if source else None,
        "line": source.line if source else None,
        "column": source.column if source else None,
    }


def _list_values(
    topic: Topic, approved: History, project: Project, target: Target | None, context: Context
) -> Iterator[_EffectiveValue]:
    from schemactl.declare import project as declare_project
    from schemactl.history.commit_files import CommitFiles

    overlays = target.overlays if target else ()

    def level_of(kind: str, source: Source | None) -> str:
        is_overlay = source is not None and source.path in overlays
        return {"topic": "overlay", "namespace": "namespace overlay"}[kind] if is_overlay else kind

    if target:
        target_name = target.names.to_target(topic.name)
        yield _EffectiveValue("name", str(target_name), "declared" if target_name == topic.name else "target")
    if topic.partitions is None:
        yield _EffectiveValue("partitions", "none", "pulsar")
    else:
        source = topic.locate("/partitions")
        yield _EffectiveValue("partitions", topic.partitions, level_of("topic", source), source)
    for policy in _list_policies(topic, approved.catalog, project):
        if policy.level == "project":
            files = CommitFiles(context.repository, approved.full_history.tip)
            yield replace(policy, source=declare_project.place_in_project(files, project, ("defaults", policy.key)))
        else:
            yield replace(policy, level=level_of(policy.level, policy.source) if policy.source else policy.level)
    for key in ("recursion_depth", "json_times", "integers", "nanoseconds"):
        if (setting := getattr(topic, key)) is not None:
            yield _EffectiveValue(f"generate.{key}", setting, "topic", topic.locate(f"/generate/{key}"))
    if topic.rendering:
        yield _EffectiveValue("protobuf.rendering", topic.rendering, "topic", topic.locate("/protobuf/rendering"))
    elif topic.schema and topic.schema.type is SchemaType.PROTOBUF_NATIVE and project.rendering:
        yield _EffectiveValue("protobuf.rendering", project.rendering, "project")
    for key, default in (("generation", 1), ("renamed_from", None), ("reader", "latest"), ("lifecycle", "stable")):
        if (value := getattr(topic, key)) != default:
            text = value if isinstance(value, int) else str(value)
            yield _EffectiveValue(key, text, "topic", topic.locate(f"/{key}"))
    namespace = approved.catalog.namespaces.get(topic.name.namespace_name)
    topic_metadata = topic.metadata.values()
    for key, text in approved.catalog.metadata(topic.name).words().items():
        holder, level = (namespace, "namespace") if namespace and key not in topic_metadata else (topic, "topic")
        yield _EffectiveValue(key, text, level, holder.locate(f"/{key}"))
    for kind in topic.kinds:
        pointer = f"/schemas/{kind.key}"
        yield _EffectiveValue(f"schemas.{kind.key}", kind.schema.type.name, "topic", topic.locate(f"{pointer}/type"))
        if kind.reader != "latest":
            yield _EffectiveValue(f"schemas.{kind.key}.reader", kind.reader, "topic", topic.locate(f"{pointer}/reader"))
    if topic.kinds:
        strategy, level = approved.catalog.data_strategy(topic.name, project.defaults)
        source = topic.locate("/kinds_compatibility") if level == "kinds" else None
        yield _EffectiveValue("kinds_compatibility", strategy.value, "topic" if source else "project", source)
    elif topic.schema:
        yield _EffectiveValue("schema", topic.schema.type.name, "topic", topic.locate("/schema/type"))
    if topic.schema and namespace:
        for name, text in namespace.schema_properties.items():
            source = namespace.locate(f"/schema_properties/{name}")
            yield _EffectiveValue(f"schema_properties.{name}", text, level_of("namespace", source), source)


def _list_policies(topic: Topic, catalog: Catalog, project: Project) -> Iterator[_EffectiveValue]:
    """Yield each policy in force, from the topic, else its namespace, else the defaults of the brokers."""
    namespace = catalog.namespaces.get(topic.name.namespace_name)
    for key in Policies.names():
        if holder := _find_holder(key, topic, namespace):
            value = holder.policies.get(key)
            level = "topic" if holder is topic else "namespace"
            text = str(value) if isinstance(value, str) else value
            yield _EffectiveValue(key, text, level, holder.locate(f"/{key}"))
        elif key not in SETTINGS:
            # The project does not manage a setting that neither sets, and the broker's value is not known here.
            value = getattr(project.defaults, key)
            level = "pulsar" if value == getattr(BrokerDefaults(), key) else "project"
            yield _EffectiveValue(key, value if isinstance(value, bool) else str(value), level)


def _find_holder(key: str, topic: Topic, namespace: Namespace | None) -> Topic | Namespace | None:
    """Return the topic if it sets the policy, else the namespace if that sets it, else None."""
    for holder in (topic, namespace):
        if holder and holder.policies.get(key) not in (None, "UNDEFINED"):
            return holder
    return None
