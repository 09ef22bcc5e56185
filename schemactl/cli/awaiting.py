"""The setting `after` of a target: versions that other targets must hold before they are planned for this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from schemactl.core.errors import HistoryError, SchemactlError, StalePlan
from schemactl.core.wording import moment, versions

if TYPE_CHECKING:
    from schemactl.cli.selection import ChosenTarget
    from schemactl.cli.several_targets import OpenTarget
    from schemactl.core.catalog import Catalog
    from schemactl.core.json_values import Json
    from schemactl.core.names import TopicName
    from schemactl.core.schema import SchemaVersion
    from schemactl.deploy.refusals import Awaited
    from schemactl.deploy.steps import Plan
    from schemactl.registry.interface import Scope

    Ask = Callable[[ChosenTarget, Scope], Catalog]


def awaited(target: OpenTarget, plan: Plan, ask: Ask | None = None) -> dict[TopicName, Awaited]:
    """Return the topics for which `plan` registers versions that some target in `after` does not hold yet.

    Each of those targets is asked about these topics only. If its registry does not answer, the result file of its last apply
    counts.

    Args:
        target: the target that the plan is for.
        plan: the plan, made without asking others.
        ask: returns what another target holds, or raises SchemactlError; None: its registry is opened and read.

    Raises:
        SchemactlError: a topic has no name on another target.
    """
    from schemactl.core.catalog import chosen_topics
    from schemactl.deploy.refusals import Awaited
    from schemactl.deploy.steps import RegisterVersion

    wanted: dict[TopicName, list[SchemaVersion]] = {}
    for step in plan.steps:
        if isinstance(step, RegisterVersion):
            wanted.setdefault(step.name, []).append(step.version)
    declared = {own: name for name in wanted if (own := target.names.declared(name))}
    found: dict[TopicName, Awaited] = {}
    for other in target.place.target.after if wanted else ():
        place = replace(target.place, target=target.place.project.targets[other])
        # What another target is never to have is not awaited there.
        asked = chosen_topics(declared, place.target)
        held, source = _held(place, asked, target, ask)
        for own in sorted(asked):
            name = declared[own]
            if missing := _missing(wanted[name], held.versions(own)):
                found.setdefault(
                    name, Awaited(other, f"{other} does not hold Git's {versions(missing)} yet: {source}")
                )
    return found


def expect_nothing_awaited(target: OpenTarget, plan: Plan) -> None:
    """Raise StalePlan if a target in `after` does not hold a version that `plan` registers."""
    for name, each in awaited(target, plan).items():
        raise StalePlan(
            f"{name}: {each.message}; nothing was changed",
            fix=f"make the plan again, when it is there: schemactl plan --target {target.name}",
        )


def _missing(wanted: Iterable[SchemaVersion], held: tuple[SchemaVersion, ...]) -> list[int]:
    from schemactl.comparison.changes import Contents

    contents = Contents(held)
    return [each.number for each in wanted if each.info and not contents.find(each.info.load())]


def _held(
    place: ChosenTarget, topics: Iterable[TopicName], target: OpenTarget, ask: Ask | None
) -> tuple[Catalog, str]:
    """Return what the target at `place` holds of `topics`, by declared names, and where that is known from."""
    from schemactl.core.catalog import Catalog
    from schemactl.registry.interface import Scope

    names = {place.target.names.there(name): name for name in topics}
    try:
        scope = Scope(frozenset(), frozenset(names))
        answer = ask(place, scope) if ask else place.read(scope, target.context)
    except SchemactlError as error:
        return _recorded(place, names, target, error.what)
    topics = {own: answer.topics[name] for name, own in names.items() if name in answer.topics}
    return Catalog(topics=topics), "its registry says"


def _recorded(
    place: ChosenTarget, names: Mapping[TopicName, TopicName], target: OpenTarget, problem: str
) -> tuple[Catalog, str]:
    """Return the same according to the result file of the last apply."""
    from schemactl.cli.apply_record import read_result, result_path
    from schemactl.core.catalog import Catalog

    path = result_path(place.folder, place.target.name)
    why = f"its registry gives no answer ({problem})"
    try:
        found = read_result(path, place.target.name)
        if found is None:
            return Catalog(), f"{why}, and there is no {path}"
        last, result = found
        is_brought = _brought(result)
        whole = target.approved.whole
        then = whole.until(whole.position(last.commit, "in another result")).catalog
    except (HistoryError, ValueError, LookupError, TypeError, AttributeError) as error:
        return Catalog(), f"{why}, and nothing is known from {path} ({error})"
    topics = {
        own: then.topics[own]
        for name, own in names.items()
        if own in then.topics and is_brought(str(name)) and then.topics[own].lifecycle == "stable"
    }
    return Catalog(topics=topics), f"the result of its last apply says ({moment(last.time_s * 1000)}); {why}"


def _brought(result: Json) -> Callable[[str], bool]:
    """Return a function that says, by a topic's name on the target, whether the apply left it with everything approved."""
    done = {*result["done"]}
    touched = {step.get("topic") for step in result["steps"]}
    left = {step.get("topic") for number, step in enumerate(result["steps"], 1) if number not in done}
    left |= {each.get("topic") for each in result["left_out"]}
    is_whole = result["whole"]
    return lambda name: name not in left and (is_whole or name in touched)
