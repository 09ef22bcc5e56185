"""Execute a plan step by step, verify each upload, and report what is left when a step fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from schemactl.changes import content_identity, stamp, upload
from schemactl.errors import RegistryError, SchemactlError, StalePlan
from schemactl.messages import versions
from schemactl.model import Catalog, CompatibilityStrategy, NamespaceName, Policies, SchemaInfo, TopicName
from schemactl.plan import (
    CreateNamespace,
    CreateTenant,
    CreateTopic,
    DeleteSchema,
    GrowPartitions,
    Plan,
    PlanStep,
    RegisterVersion,
    RegistryState,
    RelaxStrategy,
    RestoreStrategy,
    SetPolicies,
    TakeNumber,
    observe,
)
from schemactl.plan.registry_state import digest
from schemactl.registry.base import Registry, Scope


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a plan: how many of its steps were carried out, and why it stopped early, if it did."""

    plan: Plan
    done: int
    failure: SchemactlError | None = None

    @property
    def left(self) -> tuple[PlanStep, ...]:
        """The steps that were not carried out; the first of them is the one that failed."""
        return self.plan.steps[self.done :]


def as_planned(_state: RegistryState) -> None:
    """Accept the state without a review: the plan was made in this process."""


def apply_plan(
    plan: Plan,
    registry: Registry,
    *,
    progress: Callable[[int, PlanStep], None],
    review: Callable[[RegistryState], None] = as_planned,
) -> Result:
    """Carry out the steps of `plan` in order, and stop at the first that fails.

    A step that another `apply` has carried out already counts as done. A relaxed strategy is always restored. `progress` is
    called after each step with its number from 1; `review` sees what the registry holds before the first step, and may raise.

    Raises:
        StalePlan: the registry is no longer as it was when the plan was made; only relaxed topics were restored.
        SchemactlError: the plan expects refusals. Nothing was changed.
        RegistryError: the registry cannot be read. Nothing was changed.
    """
    if plan.refusals:
        raise SchemactlError(
            "the registry would reject a part of this plan, so it cannot be applied",
            fix="schemactl plan shows them",
        )
    state = observe(registry, plan.scope)
    if digest(state) != plan.state_digest:
        stale = StalePlan(
            f"{registry.url} is no longer as it was when the plan was made; nothing was changed",
            fix="look at a new plan: schemactl plan",
        )
        raise _with_restored(stale, state, registry)
    try:
        review(state)
    except SchemactlError as error:
        raise _with_restored(error, state, registry) from error.__cause__
    done = 0
    try:
        with _relaxing(registry) as relaxed:
            for step in plan.steps:
                _carry_out(step, registry, relaxed)
                if isinstance(step, CreateNamespace):
                    _expect_known_schemas(step.name, state.catalog, plan.scope, registry)
                done += 1
                progress(done, step)
    except SchemactlError as error:
        return Result(plan, done, error)
    except KeyboardInterrupt:
        if not done:
            raise
        return Result(
            plan,
            done,
            SchemactlError("interrupted", fix="run apply again: it continues where this one stopped"),
        )
    return Result(plan, done)


def _with_restored(error: SchemactlError, state: RegistryState, registry: Registry) -> SchemactlError:
    """Restore the topics that are relaxed in `state`, and add that to the message of `error`."""
    restored = [restored_line(*each) for each in restore_left(registry, state.relaxed)]
    if restored:
        nothing = error.what.replace("nothing was changed", "nothing else was changed")
        error.what = "; ".join([nothing, *restored])
    return error


def restore_left(
    registry: Registry, names: Iterable[TopicName]
) -> Iterator[tuple[TopicName, CompatibilityStrategy]]:
    """Restore those of `names` that a killed `apply` left relaxed, and yield each with its own strategy.

    This comes before anything else that a writing command does or refuses: a topic must not go on accepting everything.
    """
    for name in sorted(names):
        own = registry.relaxed(name)
        if own is not None:
            _restore(registry, name)
            yield name, own


def restored_line(name: TopicName, own: CompatibilityStrategy) -> str:
    """Say in a sentence what was restored."""
    return (
        f"restored {name}: an apply that was killed had left it ALWAYS_COMPATIBLE, without automatic updates, "
        f"and its own strategy is {own} again"
    )


@contextmanager
def _relaxing(registry: Registry) -> Iterator[set[TopicName]]:
    """Provide a set for relaxed topics; whatever is still in it at the end is restored."""
    relaxed: set[TopicName] = set()
    try:
        yield relaxed
    finally:
        for name in sorted(relaxed):
            _restore(registry, name)


def _carry_out(step: PlanStep, registry: Registry, relaxed: set[TopicName]) -> None:
    match step:
        case CreateTenant() | CreateNamespace():
            _create(step, registry)
        case SetPolicies(name, _, after):
            _set_policies(name, after, registry)
        case CreateTopic(name, partitions):
            registry.create_topic(name, partitions)
        case GrowPartitions(name, _, after):
            registry.grow_partitions(name, after)
        case RegisterVersion():
            _register(step, registry)
        case RelaxStrategy(name):
            relaxed.add(name)
            registry.relax(name)
        case RestoreStrategy(name, _, latest):
            _restore(registry, name)
            relaxed.discard(name)
            _expect_nothing_after(latest, name, registry)
        case DeleteSchema():
            _delete(step, registry)
        case TakeNumber():
            _take(step, registry)


def _expect_known_schemas(name: NamespaceName, seen: Catalog, scope: Scope, registry: Registry) -> None:
    """Raise RegistryError unless the new namespace has exactly the schemas that were seen before, usually none.

    The schemas of a deleted namespace outlive it, and a broker may show them only when it exists again; then the numbers that
    the plan expects would be wrong.
    """
    topics = frozenset(topic for topic in scope.topics if topic.namespace_name == name)
    for topic in registry.read(Scope(frozenset(), topics)).topics.values():
        before = seen.topics.get(topic.name)
        if topic.versions != (before.versions if before else ()):
            raise RegistryError(
                f"{topic.name} has schemas from a time when the namespace existed before, and the plan knows nothing of them",
                fix="look at a new plan: schemactl plan",
            )


def _expect_nothing_after(latest: int | None, name: TopicName, registry: Registry) -> None:
    """Raise StalePlan where a version has appeared after number `latest` while the topic accepted every upload."""
    if latest is None:
        return
    topic = registry.read(Scope(frozenset(), frozenset({name}))).topics.get(name)
    appeared = [version for version in topic.versions if version.number > latest] if topic else []
    if not appeared:
        return
    commits = sorted({commit[:9] for version in appeared if (commit := stamp(version.info))})
    whose = f"an `apply` of commit {', '.join(commits)} uploaded" if commits else "somebody uploaded"
    raise StalePlan(
        f"{name}: {whose} {versions([each.number for each in appeared])} while the topic accepted everything, over the admin API: "
        "automatic updates were off; the strategy is restored",
        fix="schemactl drift shows what was uploaded",
    )


def _set_policies(name: NamespaceName | TopicName, policies: Policies, registry: Registry) -> None:
    if isinstance(name, NamespaceName):
        registry.set_namespace_policies(name, policies)
    else:
        registry.set_topic_policies(name, policies)


def _register(step: RegisterVersion, registry: Registry) -> None:
    info = upload(step.version)
    number = _put(step, info, registry)
    if number != step.answer.version:
        raise RegistryError(
            f"{step.name}: the registry gave Git's v{step.version.number} the number {number} where {step.answer.version} "
            "was expected: somebody else is writing to it",
            fix="look at a new plan: schemactl plan",
        )
    held = registry.get_schema(step.name, number)
    if held is None or held.info is None or content_identity(held.info) != content_identity(info):
        raise RegistryError(f"{step.name}: v{number} reads back with other content than was uploaded")


def _put(step: RegisterVersion, info: SchemaInfo, registry: Registry) -> int:
    try:
        return registry.put_schema(step.name, info)
    except RegistryError:
        # Perhaps only the answer was lost, and with a bad default even the repeated upload is rejected: what is stored counts.
        with suppress(RegistryError):
            held = registry.get_schema(step.name, step.answer.version)
            if held and held.info and content_identity(held.info) == content_identity(info):
                return held.number
        raise


def _create(step: CreateTenant | CreateNamespace, registry: Registry) -> None:
    if isinstance(step, CreateTenant):
        registry.create_tenant(step.name.tenant)
    else:
        registry.create_namespace(step.name)


def _delete(step: DeleteSchema, registry: Registry) -> None:
    # A soft delete appends a tombstone each time, so it must not be repeated when another apply was faster.
    topic = registry.read(Scope(frozenset(), frozenset({step.name}))).topics.get(step.name)
    if topic is None or (topic.schema is None and not step.force):
        return
    if not step.force:
        _expect_empty(step.name, registry)
    registry.delete_schema(step.name, force=step.force)


def _take(step: TakeNumber, registry: Registry) -> None:
    # Likewise not to be repeated.
    name = step.name
    topic = registry.read(Scope(frozenset(), frozenset({name}))).topics.get(name)
    taken = [version.number for version in topic.versions if version.info is None] if topic else []
    if step.number in taken:
        return
    if step.versions:
        _expect_empty(name, registry)
    given = registry.delete_schema(name)
    if given != step.number:
        raise RegistryError(
            f"{name}: a tombstone took v{given} where v{step.number} was expected: somebody else is writing to it",
            fix="look at a new plan",
        )


def _expect_empty(name: TopicName, registry: Registry) -> None:
    """Raise RegistryError where messages are retained: somebody may have written to the topic since the plan was made."""
    if why := registry.retained(name):
        raise RegistryError(
            f"{name}: its schema is not deleted: {why}", fix="look at a new plan: schemactl plan"
        )


def _restore(registry: Registry, name: TopicName) -> None:
    why: SchemactlError | None = None
    try:
        registry.restore(name)
        if registry.relaxed(name) is None:
            return
    except SchemactlError as error:
        why = error
    raise RegistryError(
        f"{name} still has the strategy ALWAYS_COMPATIBLE, or no automatic updates, which was meant for the uploads only"
        + (f": {why.what}" if why else ""),
        fix="run apply again: it restores the topic's own",
    ) from why
