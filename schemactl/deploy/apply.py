"""Carry out a plan, several topics in parallel, verify each upload, and report the remaining steps with the reasons."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from typing import Final, get_args

from schemactl.core.deadline import PARALLEL, OutOfTime, Worker
from schemactl.core.errors import SchemactlError, StalePlan, UnusableCredentials
from schemactl.core.names import NamespaceName, TopicName
from schemactl.deploy.plan import Plan
from schemactl.deploy.registry_state import read_registry_state, state_changes, state_values
from schemactl.deploy.steps.restore_strategy import restore
from schemactl.deploy.steps.step import ApplyContext, Phase, Step
from schemactl.registry.interface import Registry

_MOST_LISTED: Final = 8
_TICK_S: Final = 0.2
_GRACE_S: Final = 0.5
"""The time that an interrupted apply waits for running steps."""

_RESTORE_ATTEMPTS: Final = 3
"""The number of attempts to restore a topic: until one succeeds, any producer can register a breaking schema."""

OnStep = Callable[[int, Step], None]

NumberedStep = tuple[int, Step]
"""A step with its number in the plan, from 1."""

Lane = list[list[NumberedStep]]
"""Groups of steps that run one after the other; each group is of one namespace or one list of schemas."""


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The outcome of a plan.

    Attributes:
        plan: the plan that was carried out.
        done: the numbers of the completed steps, from 1, in the order of completion.
        failures: the errors of failed steps by step number; later steps of their topic or namespace were not tried.
        stopped: the reason why the apply stopped early, or None.
        unfinished: the numbers of the steps that were running at an interrupt; the registry may still carry them out.
    """

    plan: Plan
    done: tuple[int, ...] = ()
    failures: Mapping[int, SchemactlError] = field(default_factory=dict)
    stopped: SchemactlError | None = None
    unfinished: tuple[int, ...] = ()

    @property
    def remaining_steps(self) -> tuple[NumberedStep, ...]:
        """The steps that were not carried out."""
        done = set(self.done)
        return tuple(numbered_step for numbered_step in enumerate(self.plan.steps, 1) if numbered_step[0] not in done)

    @property
    def failure(self) -> SchemactlError | None:
        """The error of the first failed step, or the reason why the apply stopped early, or None."""
        return self.failures[min(self.failures)] if self.failures else self.stopped

    @property
    def is_stale(self) -> bool:
        """Whether another writer changed a topic meanwhile."""
        return any(isinstance(error, StalePlan) for error in self.failures.values())


def apply_plan(
    plan: Plan,
    registry: Registry,
    *,
    on_step_started: OnStep = lambda _number, _step: None,
    on_step_done: OnStep = lambda _number, _step: None,
    on_wait: Callable[[], None] = lambda: None,
    parallel: int = PARALLEL,
    fail_fast: bool = False,
    is_current: bool = False,
) -> ApplyResult:
    """Carry out the steps of `plan`: the steps of a topic in order, several topics in parallel, namespaces before their topics.

    A failure only ends the work on its topic, or on the topics of its namespace. A step that another `apply` has already carried
    out counts as done. A relaxed strategy is always restored.

    Args:
        plan: the plan.
        registry: the registry to change.
        on_step_started: called before each step with its number and the step, by one thread at a time.
        on_step_done: called after each step with its number and the step, by one thread at a time.
        on_wait: called several times a second in the calling thread; an exception from it interrupts the apply.
        parallel: the number of topics to process in parallel.
        fail_fast: whether to reject a plan that leaves something out, and to stop after the first failure.
        is_current: whether the registry was just read for the plan; otherwise it is read again and compared.

    Raises:
        StalePlan: if the registry has changed since the plan was made; only relaxed topics were restored.
        SchemactlError: if the plan leaves something out, with `fail_fast`. Nothing was changed.
        RegistryError: if the registry cannot be read. Nothing was changed.
    """
    if plan.leaves_out and fail_fast:
        raise SchemactlError(
            "the plan skips topics, so --fail-fast applied nothing",
            fix="schemactl plan shows what and why; without --fail-fast the rest is applied",
        )
    if not is_current:
        state = read_registry_state(registry, plan.scope)
        if changes := list(state_changes(plan.state, state_values(state, plan.scope))):
            more = f"; and {len(changes) - _MOST_LISTED} more" if len(changes) > _MOST_LISTED else ""
            ending = restore_before_error(registry, state.relaxed)
            raise StalePlan(
                f"{registry.url} has changed since the plan was made ({'; '.join(changes[:_MOST_LISTED])}{more}); {ending}",
                fix="look at a new plan: schemactl plan",
            )
    run = _ApplyRun(plan, registry, on_step_started, on_step_done, fail_fast=fail_fast)
    return run.carry_out(parallel, on_wait)


def list_phases(steps: tuple[Step, ...]) -> Iterator[list[Lane]]:
    """Yield the phases in order (`step.Phase`), each with lanes that can run in parallel: for each namespace and list of schemas."""
    numbered = list(enumerate(steps, 1))
    last = {step.name.schema_id: number for number, step in numbered if isinstance(step.name, TopicName)}
    steps_by_phase: dict[Phase, list[NumberedStep]] = {phase: [] for phase in get_args(Phase)}
    for number, step in numbered:
        phase = step.phase
        if phase == "deletions" and isinstance(step.name, TopicName) and last[step.name.schema_id] != number:
            phase = "topics"
        steps_by_phase[phase].append((number, step))
    for phase_steps in steps_by_phase.values():
        groups: dict[NamespaceName | str, list[NumberedStep]] = {}
        for numbered_step in phase_steps:
            name = numbered_step[1].name
            groups.setdefault(name.schema_id if isinstance(name, TopicName) else name, []).append(numbered_step)
        # All lists with relaxed topics in one namespace share a lane, because restoring one of these topics turns the namespace's
        # automatic updates on again.
        lanes: dict[NamespaceName | str, Lane] = {}
        for key, group in groups.items():
            name = group[0][1].name
            relaxes = any(step.shares_lane for _, step in group)
            shared = name.namespace_name if isinstance(name, TopicName) and relaxes else key
            lanes.setdefault(shared, []).append(group)
        yield list(lanes.values())


class _ApplyRun:
    """Carries out a plan in several threads."""

    def __init__(
        self, plan: Plan, registry: Registry, on_step_started: OnStep, on_step_done: OnStep, *, fail_fast: bool
    ) -> None:
        self._plan = plan
        self._registry = registry
        self._on_step_started = on_step_started
        self._on_step_done = on_step_done
        self._fail_fast = fail_fast
        self._started: set[int] = set()
        self._done: list[int] = []
        self._failures: dict[int, SchemactlError] = {}
        self._blocked: set[NamespaceName | str] = set()
        """The tenants, namespaces and lists of schemas whose remaining steps are not tried."""
        self._context = ApplyContext(registry, plan.origin.properties)
        self._workers: list[Worker] = []
        self._lock = Lock()
        self._stopping = Event()
        self._interrupted = False
        self._unusable: UnusableCredentials | None = None
        self._raised: BaseException | None = None

    def carry_out(self, parallel: int, on_wait: Callable[[], None]) -> ApplyResult:
        """Carry out the steps, and return what was done.

        An interrupt or a time-out stops the workers; it is raised again only if nothing was done, and is otherwise the reason in
        `ApplyResult.stopped`.
        """
        stopped = None
        try:
            for phase in list_phases(self._plan.steps):
                self._carry_out_lanes(phase, parallel, on_wait)
        except (KeyboardInterrupt, OutOfTime) as error:
            messages = [error.message if isinstance(error, OutOfTime) else "interrupted", *self._stop_workers()]
            if not self._done and len(messages) == 1:
                raise
            if len(self._done) < len(self._plan.steps) or len(messages) > 1:
                stopped = SchemactlError(
                    "; ".join(messages), fix="run apply again: it continues where this one stopped"
                )
        if self._unusable and stopped is None:
            fix = f"{self._unusable.fix}; then run apply again: it continues where this one stopped"
            stopped = type(self._unusable)(self._unusable.message, fix=fix)
        if self._fail_fast and self._failures and stopped is None:
            stopped = SchemactlError("a step failed, and --fail-fast ends there", fix="run apply again")
        done, failures = tuple(self._done), dict(sorted(self._failures.items()))
        unfinished = self._started.difference(done, failures) if self._interrupted else ()
        return ApplyResult(self._plan, done, failures, stopped, tuple(sorted(unfinished)))

    def _carry_out_lanes(self, lanes: list[Lane], parallel: int, on_wait: Callable[[], None]) -> None:
        """Carry out `lanes`, `parallel` of them at a time."""
        queue = deque(lanes)
        self._workers = [Worker(partial(self._work_off_lanes, queue)) for _ in range(min(parallel, len(lanes)))]
        for worker in self._workers:
            worker.start()
        for worker in self._workers:
            while not worker.has_ended:
                worker.wait(_TICK_S)
                on_wait()
        if self._raised is not None:
            raise self._raised

    def _work_off_lanes(self, lanes: deque[Lane]) -> None:
        """Carry out lanes in one thread until the queue is empty."""
        try:
            while not self._stopping.is_set():
                try:
                    lane = lanes.popleft()
                except IndexError:
                    return
                for group in lane:
                    self._carry_out_group(group)
        except BaseException as error:  # noqa: BLE001  raised again in the main thread
            self._raised = error
            self._stopping.set()

    def _carry_out_group(self, group: list[NumberedStep]) -> None:
        """Carry out the steps of one group until one fails."""
        unverified: list[Step] = []
        try:
            for index, (number, step) in enumerate(group):
                if self._stopping.is_set() or not self._blocked.isdisjoint(step.blocked_by):
                    return
                with self._lock:
                    self._started.add(number)
                    self._on_step_started(number, step)
                try:
                    step.carry_out(self._context)
                    unverified.append(step)
                    if not any(type(later) is type(step) for _, later in group[index + 1 : index + 2]):
                        step.verify(unverified, self._context)
                        unverified.clear()
                except SchemactlError as error:
                    self._fail(number, error)
                    return
                with self._lock:
                    self._done.append(number)
                    self._on_step_done(number, step)
        finally:
            for name in sorted({step.name for _, step in group if isinstance(step.name, TopicName)}):
                self._restore(name, number)

    def _restore(self, name: TopicName, number: int) -> None:
        """Restore the topic if it is still relaxed; a failure counts for step `number`."""
        # After an interrupt, only the main thread may use the registry; it restores the remaining topics.
        if name not in self._context.relaxed or self._interrupted:
            return
        problem: SchemactlError | None = None
        for _ in range(_RESTORE_ATTEMPTS):
            try:
                restore(self._registry, name)
            except SchemactlError as error:
                problem = error
            else:
                self._context.relaxed.discard(name)
                return
        if problem:
            previous = self._failures.get(number)
            prefix = "" if previous is None or problem.message in previous.message else f"{previous.message}; "
            self._fail(number, type(problem)(prefix + problem.message, fix=problem.fix))
            with self._lock:
                self._blocked.add(name.namespace_name)

    def _fail(self, number: int, error: SchemactlError) -> None:
        """Record the error of a step, and block the steps that depend on it."""
        if self._interrupted:
            return
        if isinstance(error, UnusableCredentials):
            # Every other step would fail in the same way.
            self._unusable = self._unusable or error
            self._stopping.set()
            return
        step = self._plan.steps[number - 1]
        with self._lock:
            self._failures[number] = error
            self._blocked |= step.blocks
        if self._fail_fast:
            self._stopping.set()

    def _stop_workers(self) -> list[str]:
        """Wait a short time for running steps, and restore relaxed topics; return the messages of failures."""
        self._stopping.set()
        self._interrupted = True
        self._registry.stop_other_threads()
        end_s = time.monotonic() + _GRACE_S
        for worker in self._workers:
            worker.wait(max(0.0, end_s - time.monotonic()))
        messages = []
        for name in sorted(self._context.relaxed):
            try:
                restore(self._registry, name)
            except SchemactlError as error:
                messages.append(error.message)
        return messages


def restore_before_error(registry: Registry, names: Iterable[TopicName]) -> str:
    """Restore the topics that a killed `apply` left relaxed, and return the end of an error's message: what was changed."""
    restored = [*restore_left(registry, names)]
    return "; ".join(["nothing else was changed", *restored]) if restored else "nothing was changed"


def restore_left(registry: Registry, names: Iterable[TopicName]) -> Iterator[str]:
    """Restore the topics among `names` that a killed `apply` left relaxed, and yield a sentence about each.

    A writing command does this first, even if it then fails, because the topics accept every upload until then.
    """
    for name in sorted(names):
        relaxed_topic = registry.find_relaxed_topic(name)
        if relaxed_topic is not None:
            restore(registry, name)
            changes = []
            if relaxed_topic.accepts_all:
                changes.append(f"it ALWAYS_COMPATIBLE, and its own strategy is {relaxed_topic.strategy} again")
            if relaxed_topic.updates_off:
                changes.append(f"{name.namespace_name} without automatic updates, and they are on again")
            yield f"restored {name}: an apply that was killed had left {'; '.join(changes)}"
