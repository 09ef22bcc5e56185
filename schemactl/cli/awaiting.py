"""What `after` of a target asks for: the versions that other targets have to hold before they are planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from schemactl.cli import Context
from schemactl.errors import HistoryError, SchemactlError, StalePlan
from schemactl.messages import moment, versions

if TYPE_CHECKING:
    from schemactl.cli.selection import ChosenTarget
    from schemactl.history import History
    from schemactl.json_values import Json
    from schemactl.model import Catalog, SchemaVersion, TopicName
    from schemactl.plan import Awaited, Plan
    from schemactl.registry import Scope

    Ask = Callable[[ChosenTarget, Scope], Catalog]


def awaited(
    chosen: ChosenTarget, plan: Plan, approved: History, context: Context, ask: Ask | None = None
) -> dict[TopicName, Awaited]:
    """Return the topics of which `plan` registers versions that a target of `after` does not hold.

    Each of these targets is asked for these topics alone. Of one whose registry gives no answer, the result of its last apply says
    what it holds.

    Args:
        chosen: the target that the plan is for.
        plan: the plan, made without asking others.
        approved: what it was made from.
        context: where to work.
        ask: returns what another target holds, or raises SchemactlError; None: its registry is opened and read.

    Raises:
        SchemactlError: a topic has no name on another target.
    """
    from schemactl.effective import chosen_topics
    from schemactl.plan import Awaited, RegisterVersion

    wanted: dict[TopicName, list[SchemaVersion]] = {}
    for step in plan.steps:
        if isinstance(step, RegisterVersion):
            wanted.setdefault(step.name, []).append(step.version)
    declared = {own: name for name in wanted if (own := chosen.target.names.declared(name))}
    found: dict[TopicName, Awaited] = {}
    for other in chosen.target.after if wanted else ():
        place = replace(chosen, target=chosen.project.targets[other])
        # What another target is never to have is not awaited there.
        asked = chosen_topics(declared, place.target)
        held, source = _held(place, asked, approved, context, ask)
        for own in sorted(asked):
            name = declared[own]
            if missing := _missing(wanted[name], held.versions(own)):
                found.setdefault(
                    name, Awaited(other, f"{other} does not hold Git's {versions(missing)} yet: {source}")
                )
    return found


def expect_nothing_awaited(chosen: ChosenTarget, plan: Plan, approved: History, context: Context) -> None:
    """Raise StalePlan where a target of `after` does not hold a version that `plan` registers."""
    for name, each in awaited(chosen, plan, approved, context).items():
        raise StalePlan(
            f"{name}: {each.message}; nothing was changed",
            fix=f"make the plan again, when it is there: schemactl plan --target {chosen.target.name}",
        )


def _missing(wanted: Iterable[SchemaVersion], held: tuple[SchemaVersion, ...]) -> list[int]:
    from schemactl.changes import Contents

    contents = Contents(held)
    return [each.number for each in wanted if each.info and not contents.find(each.info.load())]


def _held(
    place: ChosenTarget,
    topics: Iterable[TopicName],
    approved: History,
    context: Context,
    ask: Ask | None,
) -> tuple[Catalog, str]:
    """Return what a target holds of `topics`, by declared names, and where that is known from."""
    from schemactl.model import Catalog
    from schemactl.registry import Scope

    names = {place.target.names.there(name): name for name in topics}
    try:
        scope = Scope(frozenset(), frozenset(names))
        answer = ask(place, scope) if ask else place.read(scope, context)
    except SchemactlError as error:
        return _recorded(place, names, approved, context, error.what)
    topics = {own: answer.topics[name] for name, own in names.items() if name in answer.topics}
    return Catalog(topics=topics), "its registry says"


def _recorded(
    place: ChosenTarget,
    names: Mapping[TopicName, TopicName],
    approved: History,
    context: Context,
    problem: str,
) -> tuple[Catalog, str]:
    """Return the same as the result of the last apply records it."""
    from schemactl.cli.apply_record import read_result, result_path
    from schemactl.history import position, until
    from schemactl.model import Catalog

    path = result_path(place.folder, place.target.name)
    why = f"its registry gives no answer ({problem})"
    try:
        found = read_result(path, place.target.name)
        if found is None:
            return Catalog(), f"{why}, and there is no {path}"
        last, result = found
        is_brought = _brought(result)
        there = position(context.repository, approved.whole, last.commit, "in another result")
        then = until(context.repository, place.project, approved.whole, there).catalog
    except (HistoryError, ValueError, LookupError, TypeError, AttributeError) as error:
        return Catalog(), f"{why}, and nothing is known from {path} ({error})"
    topics = {
        own: then.topics[own]
        for name, own in names.items()
        if own in then.topics and is_brought(str(name)) and then.topics[own].lifecycle == "stable"
    }
    return Catalog(topics=topics), f"the result of its last apply says ({moment(last.time_s * 1000)}); {why}"


def _brought(result: Json) -> Callable[[str], bool]:
    """Return what says whether an apply left a topic with all that was approved, by the target's names."""
    done = {*result["done"]}
    touched = {step.get("topic") for step in result["steps"]}
    left = {step.get("topic") for number, step in enumerate(result["steps"], 1) if number not in done}
    left |= {each.get("topic") for each in result["left_out"]}
    is_whole = result["whole"]
    return lambda name: name not in left and (is_whole or name in touched)
