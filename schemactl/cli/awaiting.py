"""What `after` of a target asks for: the versions that other targets have to hold before they are planned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemactl import topic_match
from schemactl.cli import Context
from schemactl.errors import SchemactlError, StalePlan
from schemactl.messages import moment, versions

if TYPE_CHECKING:
    from schemactl.cli.selection import ChosenTarget
    from schemactl.history import History
    from schemactl.model import Catalog, SchemaVersion, TopicName
    from schemactl.plan import Awaited, Plan


def awaited(
    chosen: ChosenTarget, plan: Plan, approved: History, context: Context
) -> dict[TopicName, Awaited]:
    """Return the topics of which `plan` registers versions that a target of `after` does not hold.

    Each of these targets is asked for these topics alone. Of one whose registry gives no answer, the result of its last apply says
    what it holds.

    Args:
        chosen: the target that the plan is for.
        plan: the plan, made without asking others.
        approved: what it was made from.
        context: where to work.

    Raises:
        SchemactlError: a topic has no name on another target.
    """
    from schemactl.plan import Awaited, RegisterVersion

    wanted: dict[TopicName, list[SchemaVersion]] = {}
    for step in plan.steps:
        if isinstance(step, RegisterVersion):
            wanted.setdefault(step.name, []).append(step.version)
    declared = {own: name for name in wanted if (own := chosen.target.names.declared(name))}
    found: dict[TopicName, Awaited] = {}
    for other in chosen.target.after if wanted else ():
        place = replace(chosen, target=chosen.project.targets[other])
        patterns = [*place.target.include, *(f"!{glob}" for glob in place.target.exclude)]
        # What another target is never to have is not awaited there.
        asked = topic_match.select(declared, patterns)
        held, source = _held(place, asked, approved, context)
        for own in asked:
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
    place: ChosenTarget, topics: Iterable[TopicName], approved: History, context: Context
) -> tuple[Catalog, str]:
    """Return what a target holds of `topics`, by declared names, and where that is known from."""
    from schemactl.model import Catalog
    from schemactl.registry import Scope

    names = {place.target.names.there(name): name for name in topics}
    try:
        with closing(place.open(context)) as registry:
            read = registry.read(Scope(frozenset(), frozenset(names)))
    except SchemactlError as error:
        return _recorded(place, names, approved, context, error.what)
    topics = {own: read.topics[name] for name, own in names.items() if name in read.topics}
    return Catalog(topics=topics), "its registry says"


def _recorded(
    place: ChosenTarget,
    names: Mapping[TopicName, TopicName],
    approved: History,
    context: Context,
    problem: str,
) -> tuple[Catalog, str]:
    """Return the same as the result of the last apply records it."""
    from schemactl.cli.apply_record import result_path
    from schemactl.history import Repository, position, until
    from schemactl.model import Catalog

    path = result_path(Path(place.top, place.project.folder), place.target.name)
    why = f"its registry gives no answer ({problem})"
    try:
        result = json.loads(path.read_bytes())
        commit, untouched = _progress(result, place.target.name)
    except FileNotFoundError:
        return Catalog(), f"{why}, and there is no {path}"
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return (
            Catalog(),
            f"{why}, and {path} is not the result of an apply to {place.target.name} ({error!r})",
        )
    with Repository.open(context.directory) as repository:
        there = position(repository, approved.whole, commit, "with another result file")
        then = until(repository, place.project, approved.whole, there).catalog
    topics = {
        own: then.topics[own]
        for name, own in names.items()
        if own in then.topics and untouched(str(name)) and then.topics[own].lifecycle == "stable"
    }
    return Catalog(
        topics=topics
    ), f"the result of its last apply says ({moment(result['time_s'] * 1000)}); {why}"


def _progress(result: Any, target: str) -> tuple[str, Callable[[str], bool]]:
    """Return the commit that an apply brought, and what says whether a topic has all of it. Raise ValueError if it is of another target."""
    if result["target"] != target:
        raise ValueError(f"it was written for the target {result['target']}")
    done = {*result["done"]}
    touched, left = set(), {each.get("topic") for each in result["left_out"]}
    for number, step in enumerate(result["steps"], 1):
        touched.add(step.get("topic"))
        if number not in done:
            left.add(step.get("topic"))
    is_whole = result["whole"]
    return str(
        result["approved"]["commit"]["id"]
    ), lambda name: name not in left and (is_whole or name in touched)
