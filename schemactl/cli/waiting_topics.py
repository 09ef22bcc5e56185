"""Find the topics of a plan that wait for other targets, by the setting `after` of its target."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from schemactl.core.catalog import Catalog, select_target_topics
from schemactl.core.errors import HistoryError, SchemactlError
from schemactl.core.wording import format_time, format_version_numbers

if TYPE_CHECKING:
    from schemactl.cli.apply_results import NamedResults
    from schemactl.cli.target_selection import ChosenTarget, OpenTarget
    from schemactl.core.names import TopicName
    from schemactl.core.schema import SchemaVersion
    from schemactl.deploy.plan import Plan
    from schemactl.deploy.refusals import Awaited
    from schemactl.registry.interface import Scope

    Ask = Callable[[ChosenTarget, Scope], Catalog]


def find_waiting_topics(
    target: OpenTarget, plan: Plan, results: NamedResults, ask: Ask | None = None
) -> dict[TopicName, Awaited]:
    """Return the topics for which `plan` registers versions that some target in `after` does not have yet.

    Only these topics are read from each of these targets. If its registry does not respond, the result of its last apply counts,
    if `results` names one.

    Args:
        target: the target that the plan is for.
        plan: the plan, made without other targets.
        results: the results that the user names.
        ask: reads the topics of another target, or raises SchemactlError; by default its registry is opened and read.

    Raises:
        SchemactlError: if a topic has no name on another target.
    """
    from schemactl.comparison.changes import VersionIndex
    from schemactl.deploy.refusals import Awaited

    versions_by_topic: dict[TopicName, list[SchemaVersion]] = {}
    for name, version in plan.new_versions:
        versions_by_topic.setdefault(name, []).append(version)
    declared = {declared_name: name for name in versions_by_topic if (declared_name := target.names.declared(name))}
    waiting: dict[TopicName, Awaited] = {}
    for other in target.place.target.after if versions_by_topic else ():
        place = replace(target.place, target=target.place.project.targets[other])
        # Topics that another target never gets do not wait for it.
        expected_names = select_target_topics(declared, place.target)
        registered, source = _read_versions_elsewhere(place, expected_names, target, results, ask)
        for declared_name in sorted(expected_names):
            name = declared[declared_name]
            contents = VersionIndex(registered.versions(declared_name))
            missing = [
                version.number
                for version in versions_by_topic[name]
                if version.info and not contents.find(version.info.load())
            ]
            if missing:
                waiting.setdefault(
                    name, Awaited(other, f"{other} does not have Git's {format_version_numbers(missing)} yet: {source}")
                )
    return waiting


def _read_versions_elsewhere(
    place: ChosenTarget, topics: Iterable[TopicName], target: OpenTarget, results: NamedResults, ask: Ask | None
) -> tuple[Catalog, str]:
    """Return the versions of `topics` that the target at `place` has, by declared names, and their source as a clause."""
    from schemactl.registry.interface import Scope

    names = {place.target.names.to_target(name): name for name in topics}
    try:
        scope = Scope(frozenset(), frozenset(names))
        answer = ask(place, scope) if ask else place.read(scope, target.context)
    except SchemactlError as error:
        reason = f"its registry did not respond ({error.message})"
    else:
        registered = {declared: answer.topics[name] for name, declared in names.items() if name in answer.topics}
        return Catalog(topics=registered), "according to its registry"
    try:
        last, result = results.find(place.target.name)
        # A topic is complete if it has everything that was approved for it when the apply ended.
        done, is_whole = {*result["done"]}, result["whole"]
        touched = {step.get("topic") for step in result["steps"]}
        incomplete = {step.get("topic") for number, step in enumerate(result["steps"], 1) if number not in done}
        incomplete |= {entry.get("topic") for entry in result["left_out"]}
        complete = {name for name in names if str(name) not in incomplete and (is_whole or str(name) in touched)}
        history = target.approved.full_history
        catalog = history.view_until(history.resolve_position(last.commit, "in another result")).catalog
    except (HistoryError, ValueError, LookupError, TypeError, AttributeError) as error:
        return Catalog(), f"{reason}, and no result of an apply can be used ({error})"
    recorded = {
        declared_name: catalog.topics[declared_name]
        for name, declared_name in names.items()
        if declared_name in catalog.topics and name in complete and catalog.topics[declared_name].lifecycle == "stable"
    }
    source = f"according to the result of its last apply ({format_time(last.time_s * 1000)}); {reason}"
    return Catalog(topics=recorded), source
