"""The steps that bring a registry to what Git approved. The same input always gives the same plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from schemactl import formats
from schemactl.broker.upload import put
from schemactl.comparison.changes import (
    Contents,
    GenerationBegins,
    NamespaceAdded,
    NumbersDiffer,
    PartitionsChanged,
    PoliciesChanged,
    PoliciesFormer,
    SchemaRemoved,
    TextDiffers,
    TopicAdded,
    VersionsMissing,
    VersionsUnknown,
    find_changes,
    is_behind,
    last_tombstone,
    upload,
)
from schemactl.comparison.fingerprint import broker_waiver
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import UsageError
from schemactl.core.findings import Answer, Outcome, Waiver, WaiversAt
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import SchemaInfo, SchemaVersion, live
from schemactl.core.wording import numbers
from schemactl.declare.target_numbers import TargetNumbers
from schemactl.plan import refusals
from schemactl.plan.inheritance import loss, parts, reset
from schemactl.plan.left_out import leave_out, settled, touched
from schemactl.plan.planned_state import PlannedState
from schemactl.plan.refusals import Awaited, AwaitedBy, Rejected
from schemactl.plan.registry_state import RegistryState, state_values
from schemactl.plan.selection import applicable, is_draft
from schemactl.plan.steps import (
    CreateNamespace,
    CreateTenant,
    CreateTopic,
    DeleteSchema,
    GrowPartitions,
    Origin,
    Permissions,
    Plan,
    PlanNote,
    PlanNoteKind,
    PlanRefusal,
    PlanStep,
    RegisterVersion,
    RelaxStrategy,
    RestoreStrategy,
    SetPolicies,
    TakeNumber,
)
from schemactl.target_numbers.apart import TopicApart, find_apart

ALWAYS_COMPATIBLE = CompatibilityStrategy.ALWAYS_COMPATIBLE

RELAX = "--relax-while-replaying"
"""The option that allows `Permissions.relax`."""


def make_plan(
    base: RegistryState,
    target: Catalog,
    *,
    origin: Origin,
    permissions: Permissions,
    waivers: WaiversAt = lambda _: (),
    numbers: TargetNumbers | None = None,
    awaited: AwaitedBy = lambda _: {},
) -> Plan:
    """Return the steps that bring a registry in the state `base` to the approved history `target`.

    The answer to each step is predicted after all steps before it: policies first, then versions, oldest first. A plan made after
    this one was carried out has no steps and the same notes. A topic is left out if anything of it would be rejected, or if it
    waits for another target (`awaited`). `waivers` approve what a broker rejects. `numbers` is the record of the registry's
    version numbers, by its own names. Raise UsageError if a permission names a topic that Git never declared.
    """
    for name in sorted(permissions.delete | permissions.force_delete):
        if name not in target.topics:
            raise UsageError(
                f"{name} cannot be deleted: the approved history never declared it, so it is left alone"
            )

    waiting: Mapping[TopicName, Awaited] = {}

    def computed(wanted: Catalog) -> Planner:
        planner = Planner(base, wanted, origin, permissions, waivers, numbers)
        planner.compute()
        topics = planner.target.topics.values()
        planner.refusals += refusals.in_undeclared_namespaces(topics, target.namespaces, origin)
        planner.refusals += refusals.waiting(waiting, planner.commands)
        return planner

    planner = settled(applicable(target), computed)
    plan = planner.plan()
    if waiting := awaited(plan):
        planner = settled(applicable(target), computed)
        plan = planner.plan()
    drafts = [
        PlanNote(name, PlanNoteKind.DRAFT, "is a draft: nothing of it is applied")
        for name, topic in target.topics.items()
        if is_draft(topic)
    ]
    notes = sorted([*planner.notes(plan.apart), *drafts], key=lambda note: (note.name, note.kind))
    return replace(plan, notes=tuple(notes))


class Planner(PlannedState):
    """Computes the steps, and with them the state after them."""

    def compute(self) -> None:
        """Compute the steps and refusals."""
        self.steps += [RestoreStrategy(name, own) for name, own in sorted(self.base.relaxed.items())]
        deletions: list[PlanStep] = []
        self.changes = find_changes(self.base.catalog, self.target)
        for change in self.changes:
            match change:
                case NamespaceAdded(name):
                    self._create_tenant(name)
                    self.steps.append(CreateNamespace(name))
                    self.namespaces[name] = Namespace(name)
                case PoliciesChanged(name, before, after):
                    self._set(SetPolicies(name, before, after))
                case PoliciesFormer(name, before, last):
                    if step := reset(name, before, last, spaces=self.namespaces, state=self.base):
                        self._set(step)
                case TopicAdded(name, topic):
                    self.steps.append(CreateTopic(name, topic.partitions))
                    self.topics[name] = Topic(name, partitions=topic.partitions)
                case PartitionsChanged(name, before, after):
                    self._grow(name, before, after)
                case GenerationBegins() | VersionsMissing() | VersionsUnknown():
                    self._list(change)
                case SchemaRemoved(name):
                    deletions += self._delete(name)
        self.steps += deletions

    def _list(self, change: GenerationBegins | VersionsMissing | VersionsUnknown) -> None:
        """Add the uploads that a topic lacks, or the refusals that prevent them."""
        match change:
            case GenerationBegins(name, number):
                self._begin_generation(name, number)
            case VersionsMissing(name, missing):
                if not is_behind(self.held(name), self.target.versions(name)):
                    self._bring_in(name, missing)
            case VersionsUnknown(name, unknown):
                self.refusals += refusals.unexplained(name, self._unknown(name, unknown), self.commands)

    def notes(self, apart: tuple[TopicApart, ...]) -> Iterator[PlanNote]:
        """Yield the differences that remain after all steps; `apart` are the numbers that are not Git's."""
        rejected = {refusal.name for refusal in self.refusals}
        is_recorded = {topic.name: ", as is recorded" if topic.recorded else "" for topic in apart}
        for change in find_changes(self.catalog(), self.target) if self.steps else self.changes:
            match change:
                case TextDiffers() if change.name not in rejected:
                    yield _unstored(change)
                case VersionsMissing(name, versions) if name not in rejected:
                    yield self._indistinguishable(name, versions)
                case VersionsUnknown(name, versions) if name not in rejected:
                    if unknown := self._unknown(name, versions):
                        message = f"the registry holds {_listed(unknown)}, which Git does not know"
                        message += is_recorded.get(name, "")
                        yield PlanNote(name, PlanNoteKind.UNKNOWN_VERSION, message)
                case NumbersDiffer(name, pairs):
                    texts = ", ".join(f"Git's v{git} is v{registry}" for registry, git in pairs)
                    yield PlanNote(
                        name,
                        PlanNoteKind.NUMBERS_DIFFER,
                        f"in the registry {texts}{is_recorded.get(name, '')}",
                    )
                case SchemaRemoved(name):
                    yield from self._kept(name)

    def plan(self) -> Plan:
        """Return the plan without notes, after removing the steps of what is left out."""
        leave_out(self)
        scope = touched(self)
        return Plan(
            origin=self.origin,
            scope=scope,
            state=state_values(self.read, scope),
            steps=tuple(self.steps),
            notes=(),
            refusals=tuple(
                sorted((*self.refusals, *self.losses), key=lambda refusal: (str(refusal.name), refusal.allow))
            ),
            apart=find_apart(self.git, self.catalog(), self.numbers),
            apart_now=any(
                not each.recorded for each in find_apart(self.git, self.base.catalog, self.numbers)
            ),
        )

    def _set(self, step: SetPolicies) -> None:
        """Add a step for the policies about schemas, and one for each setting, unless that could lose messages."""
        about_schemas, *settings = parts(step)
        if about_schemas.after.managed():
            self.steps.append(about_schemas)
            self.overlay(step.name, about_schemas.after)
        for each in settings:
            loses = loss(each, spaces=self.namespaces, state=self.base)
            if loses and each.address not in self.permissions.lose:
                self.losses.append(refusals.could_lose(each, loses, self.commands))
            else:
                self.steps.append(replace(each, loses=loses))
                self.overlay(step.name, each.after)

    def _grow(self, name: TopicName, before: int | None, after: int) -> None:
        if before is None or after < before:
            self.refusals.append(refusals.wrong_partitions(name, before, after, self.commands))
            return
        self.steps.append(GrowPartitions(name, before, after))
        self.topics[name] = replace(self.topics[name], partitions=after)

    def _bring_in(self, name: TopicName, missing: tuple[SchemaVersion, ...]) -> None:
        lost = self.base.retained.get(name)
        if lost and not self.versions.get(name.schema_id):
            self.refusals.append(refusals.lost_schemas(name, lost, self.commands))
        else:
            self.register(name, missing)

    def register(self, name: TopicName, missing: tuple[SchemaVersion, ...]) -> None:
        """Add the uploads of the missing versions in this order, or the refusal that prevents them."""
        strategy = self.strategy(name)
        before = self.versions.get(name.schema_id, ())
        steps, rejected = self._upload(name, missing, strategy)
        if (
            rejected
            and rejected.answer.outcome is Outcome.INCOMPATIBLE
            and self.permissions.relax
            and name in self.topics
        ):
            self.versions[name.schema_id] = before
            steps, rejected = self._upload(name, missing, ALWAYS_COMPATIBLE)
            steps = [*self._relaxed(name, strategy, steps)]
        self.steps += steps
        if rejected:
            self.refusals.append(self._refusal(name, rejected))

    def _refusal(self, name: TopicName, rejected: Rejected) -> PlanRefusal:
        git = live(self.git.versions(name))
        return refusals.rejected_version(
            name,
            rejected,
            (*git, *live(self.git.versions(name.twin))),
            commands=self.commands,
            relax=self._relaxing_command(name) if name.domain == "persistent" else None,
            restart=self._restarting_command(name, git),
            is_orphaned=self.base.catalog.topics.get(name, Topic(name)).deleted,
        )

    def _relaxing_command(self, name: TopicName) -> str:
        return self.commands.apply(name, RELAX)

    def _restarting_command(self, name: TopicName, git: tuple[SchemaVersion, ...]) -> str | None:
        """Return the command that deletes the registry's versions and registers Git's; None: that would not help."""
        if self.numbers and name in self.numbers.topics:
            return None  # it would register what is recorded
        for strategy, options in ((self.strategy(name), ()), (ALWAYS_COMPATIBLE, (RELAX,))):
            held = self.versions.pop(name.schema_id, ())
            _, rejected = self._upload(name, git, strategy)
            self.versions[name.schema_id] = held
            if rejected is None:
                return self.commands.start_again(name, *options)
        return None

    def _upload(
        self, name: TopicName, missing: tuple[SchemaVersion, ...], strategy: CompatibilityStrategy
    ) -> tuple[list[PlanStep], Rejected | None]:
        """Return the uploads that will be accepted, in order, and the first that will be rejected."""
        steps: list[PlanStep] = []
        for version in missing:
            info = upload(version)
            stored = self.versions.get(name.schema_id, ())
            answer = put(stored, info, strategy, self.origin.release, optional=self.origin.checkers)
            waiver = self._waiver(name, version, stored) if answer.outcome is Outcome.INCOMPATIBLE else None
            accepted = self._under_always_compatible(stored, info) if waiver else answer
            if accepted.outcome is Outcome.OK and accepted.version is not None:
                self.versions[name.schema_id] = (
                    *stored,
                    SchemaVersion(accepted.version, info, version.commit),
                )
                step = RegisterVersion(name, version, accepted)
                steps += self._relaxed(name, strategy, [step], waiver) if waiver else [step]
            elif accepted.outcome is not Outcome.UNCHANGED:
                return steps, Rejected(version, stored, answer, strategy)
        return steps, None

    def _relaxed(
        self,
        name: TopicName,
        strategy: CompatibilityStrategy,
        steps: Sequence[PlanStep],
        waiver: Waiver | None = None,
    ) -> Iterator[PlanStep]:
        """Yield `steps` between one that relaxes the topic and one that restores it."""
        updates = self.namespaces[name.namespace_name].policies.is_allow_auto_update_schema
        on = self.base.defaults.is_allow_auto_update_schema if updates is None else updates
        yield RelaxStrategy(name, strategy, on, waiver)
        yield from steps
        own = self.topics[name].policies.schema_compatibility_strategy or CompatibilityStrategy.UNDEFINED
        yield RestoreStrategy(name, own, latest=self.versions[name.schema_id][-1].number)

    def _waiver(
        self, name: TopicName, version: SchemaVersion, stored: tuple[SchemaVersion, ...]
    ) -> Waiver | None:
        """Return the waiver, in the commit of Git's `version`, for the broker's refusal of it after `stored`."""
        if version.commit is None or version.info is None or name not in self.topics:
            return None
        # A waiver is of Git's definitions: what is stored has a stamp, and no `.proto`.
        git = Contents(self.target.topics[name].versions)
        before = [git.find(each.info) or each for each in live(stored)[-1:] if each.info]
        declared = self.origin.declared_topic(name)
        return broker_waiver(self.waivers(version.commit), declared, before, version.info)

    def _under_always_compatible(self, stored: tuple[SchemaVersion, ...], info: SchemaInfo) -> Answer:
        return put(stored, info, ALWAYS_COMPATIBLE, self.origin.release, optional=self.origin.checkers)

    def _begin_generation(self, name: TopicName, last: int) -> None:
        """Add tombstones up to the number `last`, the first of which hides the present versions; or the refusal to hide them."""
        held = self.held(name)
        if last_tombstone(held) >= last:
            return  # the twin's
        current = live(held)
        if current and (why := self.base.retained.get(name)):
            self.refusals.append(refusals.not_to_be_hidden(name, why))
            return
        hidden = tuple(version.number for version in current)
        self.take_numbers(name, max(last + 1, self.following(name) + 1), hidden)

    def take_numbers(self, name: TopicName, end: int, hidden: tuple[int, ...] = ()) -> None:
        """Add tombstones for the free numbers below `end`; the first hides the versions `hidden`."""
        for number in range(self.following(name), end):
            self.steps.append(TakeNumber(name, number, hidden))
            self.versions[name.schema_id] = (*self.held(name), SchemaVersion(number, None))
            hidden = ()

    def _create_tenant(self, name: NamespaceName) -> None:
        """Add the step that creates the tenant of `name` if it is missing, and refusals if nobody declared it."""
        if name.tenant in self.missing_tenants:
            self.missing_tenants.remove(name.tenant)
            self.steps.append(CreateTenant(name))
            if not self.permissions.create_tenants:
                topics = self.target.topics.values()
                self.refusals += refusals.in_undeclared_tenant(name, topics, self.commands)

    def _delete(self, name: TopicName) -> Iterator[PlanStep]:
        current = self._deletable(name)
        force = name in self.permissions.force_delete
        if not current or not (force or name in self.permissions.delete):
            return
        if not force and (why := self.base.retained.get(name)):
            self.refusals.append(refusals.not_deletable(name, why))
            return
        yield DeleteSchema(name, tuple(version.number for version in current), force)
        versions = self.versions[name.schema_id]
        tombstone = SchemaVersion(versions[-1].number + 1, None)
        self.versions[name.schema_id] = () if force else (*versions, tombstone)

    def _deletable(self, name: TopicName) -> tuple[SchemaVersion, ...]:
        """Return the live versions of a topic whose schema Git no longer declares."""
        # The topic of the other domain shares the list of schemas.
        twin = self.target.topics.get(name.twin)
        if not self.target.topics[name].versions or (twin and twin.schema):
            return ()
        return live(self.versions.get(name.schema_id, ()))

    def _kept(self, name: TopicName) -> Iterator[PlanNote]:
        """Yield notes about versions in the registry of a topic or schema that Git no longer declares."""
        declared, current = self.target.topics[name], live(self.versions[name.schema_id])
        gone = "is no longer declared" if declared.deleted else "no longer declares a schema"
        if self._deletable(name):
            message = (
                f"{gone}, but the registry keeps its schema ({_listed(current)}); to delete it: --allow-delete "
                f"{self.origin.declared_topic(name)}"
            )
            yield PlanNote(name, PlanNoteKind.DELETION_SKIPPED, message)
        elif current and not declared.versions:
            message = f"the registry holds {_listed(current)}, but Git declares no schema for this topic"
            if declared.deleted:
                message = f"{gone}, and never had a schema, but the registry holds {_listed(current)}"
            yield PlanNote(name, PlanNoteKind.UNKNOWN_VERSION, message)

    def _unknown(self, name: TopicName, versions: tuple[SchemaVersion, ...]) -> tuple[SchemaVersion, ...]:
        """Return those of `versions` that are not the topic's twin's either."""
        known = Contents(self.target.versions(name.twin))
        return tuple(version for version in versions if version.info and not known.find(version.info))

    def _indistinguishable(self, name: TopicName, versions: tuple[SchemaVersion, ...]) -> PlanNote:
        texts = []
        for version in versions:
            answer = self._under_always_compatible(self.versions[name.schema_id], upload(version))
            texts.append(
                f"Git's v{version.number} would store nothing: the registry takes it for its v{answer.version}"
            )
        return PlanNote(name, PlanNoteKind.INDISTINGUISHABLE, "; ".join(texts))


def _unstored(change: TextDiffers) -> PlanNote:
    if change.number != change.latest:
        message = f"declares an older version's content again: an upload returns v{change.number}, latest stays v{change.latest}"
        return PlanNote(change.name, PlanNoteKind.OLD_VERSION, message)
    described = formats.spec(change.text).language in ("avro", "pair")
    what = "doc, aliases, enum default or properties differ" if described else "properties differ"
    return PlanNote(
        change.name, PlanNoteKind.NOT_STORED, f"would store nothing: only {what} from v{change.number}"
    )


def _listed(versions: tuple[SchemaVersion, ...]) -> str:
    return f"v{numbers(version.number for version in versions)}"
