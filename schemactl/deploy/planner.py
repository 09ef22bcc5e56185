"""Make a plan: the steps that bring a registry to the approved history, without the versions that it would reject.

The same input always gives the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from shlex import quote
from typing import cast

from schemactl import formats
from schemactl.broker.upload import VersionList
from schemactl.comparison.changes import (
    Change,
    GenerationBegins,
    NamespaceAdded,
    NumbersDiffer,
    PartitionsChanged,
    PoliciesChanged,
    PoliciesUndeclared,
    SchemaRemoved,
    TextDiffers,
    TopicAdded,
    VersionIndex,
    VersionsMissing,
    VersionsUnknown,
    find_changes,
    is_stored_alike,
    lacks_newest_generation,
    last_tombstone,
    make_upload,
)
from schemactl.comparison.fingerprint import find_broker_waiver
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import UsageError
from schemactl.core.findings import Outcome, Waiver, WaiversAt
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import (
    REPLICATION,
    SCHEMA_POLICIES,
    SETTINGS,
    CompatibilityStrategy,
    Policies,
    find_strategy,
    list_guarantees,
)
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion, get_live_versions
from schemactl.core.wording import format_ranges, get_name_type
from schemactl.declare.target_numbers import TargetNumbers
from schemactl.deploy import refusals
from schemactl.deploy.permissions import Permissions
from schemactl.deploy.plan import Origin, Plan, PlanNote, PlanNoteKind, PlanRefusal
from schemactl.deploy.policy_resets import find_inherited, make_reset
from schemactl.deploy.refusals import Awaited, AwaitedBy, Rejected
from schemactl.deploy.registry_state import RegistryState, state_values
from schemactl.deploy.steps.create_namespace import CreateNamespace
from schemactl.deploy.steps.create_tenant import CreateTenant
from schemactl.deploy.steps.create_topic import CreateTopic
from schemactl.deploy.steps.delete_schema import DeleteSchema
from schemactl.deploy.steps.grow_partitions import GrowPartitions
from schemactl.deploy.steps.register_version import RegisterVersion
from schemactl.deploy.steps.relax_strategy import RelaxStrategy
from schemactl.deploy.steps.restore_strategy import RestoreStrategy
from schemactl.deploy.steps.set_policies import SetPolicies
from schemactl.deploy.steps.step import PredictedState, Step
from schemactl.deploy.steps.take_number import TakeNumber
from schemactl.deploy.target_catalog import (
    find_deletable_versions,
    find_scope,
    is_draft,
    select_applicable,
    without_namespaces,
)
from schemactl.deploy.version_numbers import TopicMismatches, find_number_mismatches
from schemactl.formats import native_definitions
from schemactl.registry.interface import Scope

ALWAYS_COMPATIBLE = CompatibilityStrategy.ALWAYS_COMPATIBLE

_UploadKey = tuple[TopicName, tuple[SchemaVersion, ...], CompatibilityStrategy, tuple[SchemaVersion, ...]]
"""A topic, the versions to upload, the strategy in force, and the stored versions."""

RELAX = "--relax-while-replaying"
"""The option that allows `Permissions.relax`."""


def make_plan(
    registry_state: RegistryState,
    approved: Catalog,
    *,
    origin: Origin,
    permissions: Permissions,
    waivers: WaiversAt = lambda _: (),
    numbers: TargetNumbers | None = None,
    awaited: AwaitedBy = lambda _: {},
) -> Plan:
    """Return the plan that brings a registry to the approved history.

    The answer to each step is predicted after all steps before it: policies first, then versions, oldest first. After the plan was
    carried out, a new plan has no steps and the same notes. A topic is left out if the registry would reject one of its versions, or
    if it waits for another target.

    Args:
        registry_state: the state of the registry.
        approved: the approved history, by the target's names.
        origin: the origin of the plan.
        permissions: the permissions of the user.
        waivers: returns the waivers of a commit, which approve versions that a broker rejects.
        numbers: the record of the registry's version numbers, by its own names.
        awaited: returns the topics of a plan that wait for another target.

    Raises:
        UsageError: if a permission names a topic that Git never declared.
    """
    for name in sorted(permissions.delete | permissions.force_delete):
        if name not in approved.topics:
            raise UsageError(f"{name} cannot be deleted, because the approved history never declared it")

    inputs = PlanInputs(registry_state, approved, origin, permissions, waivers, numbers)
    run = compute_run(partial(PlanRun, inputs), inputs.applicable)
    plan = run.build_plan()
    if waiting := awaited(plan):
        run.refuse_waiting_topics(waiting)
        if run.find_relaxed_namespaces():
            run = compute_run(partial(PlanRun, replace(inputs, waiting=waiting)), inputs.applicable)
        plan = run.build_plan()
    drafts = [
        PlanNote(name, PlanNoteKind.DRAFT, "is a draft, and `apply` skips drafts")
        for name, topic in approved.topics.items()
        if is_draft(topic)
    ]
    notes = sorted([*run.find_notes(plan.number_mismatches), *drafts], key=lambda note: (note.name, note.kind))
    return replace(plan, notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class PredictedUploads:
    """The uploads of the missing versions of a topic, until a broker rejects one.

    Attributes:
        steps: the accepted uploads, in order.
        waivers: by Git's number, the waivers of versions that are accepted only while the topic is relaxed.
        versions: the versions of the topic after these uploads.
        rejected: the first rejected upload, or None.
    """

    steps: tuple[RegisterVersion, ...]
    waivers: Mapping[int, Waiver]
    versions: tuple[SchemaVersion, ...]
    rejected: Rejected | None


@dataclass(frozen=True)
class PlanInputs:
    """The input of a plan, from which every run starts.

    Attributes:
        registry_state, approved, origin, permissions, waivers, numbers: see `make_plan`.
        waiting: the topics that wait for another target.
        uploads: the uploads that were predicted so far: several runs need the same predictions.
    """

    registry_state: RegistryState
    approved: Catalog
    origin: Origin
    permissions: Permissions
    waivers: WaiversAt
    numbers: TargetNumbers | None
    waiting: Mapping[TopicName, Awaited] = field(default_factory=dict)
    uploads: dict[_UploadKey, PredictedUploads] = field(default_factory=dict)

    @cached_property
    def applicable(self) -> Catalog:
        """The approved history without drafts."""
        return select_applicable(self.approved)


def compute_run(make_run: Callable[[Catalog], PlanRun], target: Catalog) -> PlanRun:
    """Return the run with the steps to `target`, of which no namespace becomes less strict for a topic that is left out.

    Such a namespace keeps its policies, and topics that need the new policies are left out as well: the less strict part of a change is
    never applied without the rest.
    """
    run = make_run(target)
    run.compute()
    refused = {refusal.name for refusal in run.refusals}
    unchanged: dict[NamespaceName, list[TopicName]] = {}
    while relaxed := run.find_relaxed_namespaces():
        unchanged |= relaxed
        namespaces = {
            name: replace(namespace, policies=Policies()) if name in unchanged else namespace
            for name, namespace in target.namespaces.items()
        }
        former = {name: policies for name, policies in target.former.items() if name not in unchanged}
        run = make_run(replace(target, namespaces=namespaces, former=former))
        run.compute()
    run.refuse_less_strict_policies(unchanged, refused)
    return run


class PlanRun:
    """Computes the steps from the state of a registry to a catalog, and the refusals of everything that is left out.

    Attributes:
        inputs: the input of the plan.
        commands: the commands that messages name.
        target: the catalog that the steps lead to: the approved history without the namespaces in `closed`, and without policies that would
            become less strict for topics that are left out.
        covered_state: the part of the registry's state that the steps can change: the topics of the target, without the namespaces in `closed`.
        predicted: the state of the registry after the steps so far.
        closed: the namespaces without steps.
        changes: the differences between `covered_state` and `target`.
        steps: the steps so far.
        refusals: the topics and policies that are left out.
        losses: the refusals of settings that could lose messages.
    """

    def __init__(self, inputs: PlanInputs, target: Catalog) -> None:
        self.inputs = inputs
        self.commands = refusals.CommandTexts(inputs.origin)
        state, cluster = inputs.registry_state, inputs.origin.cluster
        # Namespaces that are, and stay, only on other clusters.
        clusters_elsewhere = {
            name: namespace.clusters
            for name, namespace in state.catalog.namespaces.items()
            if namespace.is_elsewhere(cluster)
            and not (
                name in target.namespaces and cluster in target.namespaces[name].policies.settings.get(REPLICATION, ())
            )
        }
        self.closed = state.half_deleted | clusters_elsewhere.keys()
        # Topics outside of the target (drafts) are invisible to this plan.
        topics = {name: topic for name, topic in state.catalog.topics.items() if name in target.topics}
        registered = without_namespaces(replace(state.catalog, topics=topics), self.closed)
        self.covered_state = replace(state, catalog=registered)
        self.target = without_namespaces(target, self.closed)
        self.changes: tuple[Change, ...] = ()
        self.steps: list[Step] = []
        self.refusals = [
            refusals.refuse_namespace_elsewhere(name, cluster, clusters_elsewhere[namespace])
            if (namespace := name.namespace_name) in clusters_elsewhere
            else refusals.refuse_half_deleted_namespace(name, self.commands)
            for name, topic in target.topics.items()
            if name.namespace_name in self.closed and not topic.deleted
        ]
        self.losses: list[PlanRefusal] = []  # they skip no other step: a plan with such a refusal is not applied at all
        self.predicted = PredictedState(
            dict(registered.namespaces),
            dict(registered.topics),
            {topic.name.schema_id: topic.versions for topic in registered.topics.values()},
            set(state.missing_tenants),
        )

    def compute(self) -> None:
        """Compute the steps and the refusals."""
        self.add_changes()
        self.refuse_scalable_topics()
        self.refusals += refusals.refuse_undeclared_namespaces(
            self.target.topics.values(), self.inputs.approved.namespaces, self.inputs.origin
        )
        self.refuse_waiting_topics(self.inputs.waiting)

    def refuse_waiting_topics(self, waiting: Mapping[TopicName, Awaited]) -> None:
        """Leave out topics that wait for another target."""
        self.refusals += refusals.refuse_waiting_topics(waiting, self.commands)

    def refuse_less_strict_policies(
        self, unchanged: Mapping[NamespaceName, list[TopicName]], refused: Collection[NamespaceName | TopicName]
    ) -> None:
        """Explain that namespaces keep their policies, each because of its topics in `unchanged`.

        Topics other than `refused` are left out only because they need the new policies.
        """
        for index, refusal in enumerate(self.refusals):
            if isinstance(refusal.name, TopicName) and refusal.name not in refused:
                namespace = refusal.name.namespace_name
                message = f"needs the new policies of {namespace}, which the plan skips. {refusal.message}"
                self.refusals[index] = replace(refusal, message=message, fix=self._advise_to_skip(unchanged[namespace]))
        for namespace, names in unchanged.items():
            message = (
                "keeps its policies: the new ones would accept more schemas or clients on "
                f"{', '.join(map(str, names))}, which the plan skips"
            )
            self.refusals.append(PlanRefusal(namespace, message, self._advise_to_skip(names)))

    def add(self, step: Step) -> None:
        """Add a step, whose effect all later steps can rely on."""
        self.steps.append(step)
        step.predict(self.predicted)

    def get_strategy(self, name: TopicName) -> CompatibilityStrategy:
        """Return the strategy in force for uploads to the topic."""
        topic, namespace = self.predicted.topics.get(name), self.predicted.namespaces.get(name.namespace_name)
        own = find_strategy(topic.policies if topic else None, namespace.policies if namespace else None)
        return own or self.covered_state.default_strategies[name.namespace_name]

    def add_changes(self) -> None:
        """Add the steps, or refusals, of all differences between the registry and the target."""
        for relaxed_name, left in sorted(self.covered_state.relaxed.items()):
            self.steps.append(RestoreStrategy(relaxed_name, left.strategy, left=left))
        deletions: list[Step] = []
        self.changes = find_changes(self.covered_state.catalog, self.target)
        for change in self.changes:
            match change:
                case NamespaceAdded(name):
                    if name.tenant in self.predicted.missing_tenants:
                        self.add(CreateTenant(name))
                        if not self.inputs.permissions.create_tenants:
                            topics = self.target.topics.values()
                            self.refusals += refusals.refuse_undeclared_tenant(name, topics, self.commands)
                    self.add(CreateNamespace(name))
                case PoliciesChanged(name, before, after):
                    self._add_policies(SetPolicies(name, before, after))
                case PoliciesUndeclared(name, before, last):
                    if step := make_reset(
                        name, before, last, namespaces=self.predicted.namespaces, state=self.covered_state
                    ):
                        self._add_policies(step)
                case TopicAdded(name, topic):
                    self.add(CreateTopic(name, topic.partitions))
                case PartitionsChanged(name, before, after) if before is None or after < before:
                    self.refusals.append(refusals.refuse_partitions(name, before, after, self.commands))
                case PartitionsChanged(name, int(before), after):
                    self.add(GrowPartitions(name, before, after))
                case GenerationBegins(name, number):
                    self._begin_generation(name, number)
                case VersionsMissing(name, missing) if not lacks_newest_generation(
                    self.predicted.list_versions(name), self.target.versions(name)
                ):
                    retained = self.covered_state.retained.get(name)
                    if retained and not self.predicted.list_versions(name):
                        self.refusals.append(refusals.refuse_lost_schemas(name, retained, self.commands))
                    else:
                        self.register(name, missing)
                case VersionsUnknown(name, unknown):
                    self.refusals += refusals.refuse_unexplained_versions(
                        name, self._drop_twin_versions(name, unknown), self.commands
                    )
                case SchemaRemoved(name):
                    current = find_deletable_versions(self.target, name, self.predicted.list_versions(name))
                    is_forced = name in self.inputs.permissions.force_delete
                    if not current or not (is_forced or name in self.inputs.permissions.delete):
                        continue
                    retained = self.covered_state.retained.get(name, "")
                    if retained and name not in self.inputs.permissions.unreadable:
                        self.refusals.append(refusals.refuse_deletion(name, retained, self.commands, force=is_forced))
                        continue
                    numbers = tuple(version.number for version in current)
                    deletion = DeleteSchema(name, numbers, is_forced, bool(retained))
                    deletion.predict(self.predicted)
                    deletions.append(deletion)
        self.steps += deletions

    def find_notes(self, number_mismatches: tuple[TopicMismatches, ...]) -> Iterator[PlanNote]:
        """Yield the differences that remain after all steps, `number_mismatches` among them."""
        rejected = {refusal.name for refusal in self.refusals}
        is_recorded = {topic.name: ", as is recorded" if topic.recorded else "" for topic in number_mismatches}
        for change in find_changes(self.predicted.build_catalog(), self.target) if self.steps else self.changes:
            match change:
                case TextDiffers(name) if name not in rejected:
                    of_kind = f" of {change.kind}" if change.kind else ""
                    if change.number != change.latest:
                        message = (
                            f"declares the content of an older version{of_kind} again: an upload returns v{change.number}, and the "
                            f"latest version{of_kind} stays v{change.latest}"
                        )
                        yield PlanNote(name, PlanNoteKind.OLD_VERSION, message)
                    else:
                        has_docs = formats.spec(change.definition).language in ("avro", "pair")
                        differing = "doc, aliases, enum default or properties" if has_docs else "properties"
                        message = f"would store nothing{of_kind}: only {differing} differ from v{change.number}"
                        yield PlanNote(name, PlanNoteKind.NOT_STORED, message)
                case VersionsMissing(name, versions) if name not in rejected:
                    stored = VersionList(
                        self.predicted.versions[name.schema_id],
                        self.inputs.origin.release,
                        checker_changes=self.inputs.origin.checkers,
                    )
                    answers = [(version, stored.put(make_upload(version), ALWAYS_COMPATIBLE)) for version in versions]
                    message = "; ".join(
                        f"Git's v{version.number} would store nothing: the registry treats it as its v{answer.version}"
                        for version, answer in answers
                    )
                    yield PlanNote(name, PlanNoteKind.INDISTINGUISHABLE, message)
                case VersionsUnknown(name, versions) if name not in rejected:
                    if unknown := self._drop_twin_versions(name, versions):
                        message = f"the registry holds {_format_numbers(unknown)}, which Git does not know"
                        message += is_recorded.get(name, "")
                        yield PlanNote(name, PlanNoteKind.UNKNOWN_VERSION, message)
                case NumbersDiffer(name, pairs):
                    texts = ", ".join(f"Git's v{git} is v{registry}" for registry, git in pairs)
                    yield PlanNote(
                        name, PlanNoteKind.NUMBERS_DIFFER, f"in the registry {texts}{is_recorded.get(name, '')}"
                    )
                case SchemaRemoved(name):
                    yield from self._note_kept_versions(name)
        for name, topic in sorted(self.target.topics.items()):
            if name not in rejected and not topic.deleted:
                yield from self._note_other_forms(topic)
                if self._is_shadowed(name):
                    message = refusals.describe_scalable(name, is_migrated=self.covered_state.has_topic(name))
                    yield PlanNote(name, PlanNoteKind.SCALABLE_TOPIC, message)

    def build_plan(self) -> Plan:
        """Return the plan without notes and without steps of topics that are left out."""
        self._remove_skipped_topics()
        self.losses.sort(key=lambda loss: (str(loss.name), loss.allow))
        allowed = [address for step in self.steps for address in step.needs.lose]
        self.losses = [*refusals.advise_to_allow(self.losses, allowed, self.commands)]

        # The scope: the namespaces and topics of the steps and refusals, with the topics that share their lists of schemas.
        refused = (*self.refusals, *self.losses)
        names = {step.name for step in self.steps} | {refusal.name for refusal in refused}
        schema_ids = {name.schema_id for name in names if isinstance(name, TopicName)}
        all_topics = self.target.topics.keys() | self.inputs.registry_state.catalog.topics.keys()
        topics = frozenset(name for name in all_topics if name.schema_id in schema_ids)
        namespaces = frozenset(name.namespace_name for name in names)
        all_settings = find_scope(self.target).settings
        settings = {name: all_settings[name] for name in all_settings.keys() & (namespaces | topics)}
        scope = Scope(namespaces, topics, settings)

        mismatches = find_number_mismatches(self.inputs.applicable, self.predicted.build_catalog(), self.inputs.numbers)
        # Without steps, the registry stays as it is.
        mismatches_now = (
            find_number_mismatches(self.inputs.applicable, self.covered_state.catalog, self.inputs.numbers)
            if self.steps
            else mismatches
        )
        return Plan(
            origin=self.inputs.origin,
            scope=scope,
            state=state_values(self.inputs.registry_state, scope),
            steps=tuple(self.steps),
            notes=(),
            refusals=tuple(
                sorted((*self.refusals, *self.losses), key=lambda refusal: (str(refusal.name), refusal.allow))
            ),
            number_mismatches=mismatches,
            has_unrecorded_mismatch_now=any(not topic.recorded for topic in mismatches_now),
        )

    def refuse_scalable_topics(self) -> None:
        """Leave out the changes of each topic whose name a topic of the other kind, scalable or persistent, already has.

        These are topics whose name a scalable topic has, and missing scalable topics whose name a persistent topic has. This reason
        replaces all other reasons of the topic. Before 5.0, no topic is scalable.
        """
        names = {step.name for step in self.steps} | {refusal.name for refusal in (*self.refusals, *self.losses)}
        changed_names = {name for name in names if isinstance(name, TopicName)}
        changed_ids = {name.schema_id for name in changed_names}
        reasons: dict[NamespaceName | TopicName, PlanRefusal] = {}
        for name, topic in self.target.topics.items():
            if name in changed_names and name.is_scalable and self.inputs.origin.release < Release.R5_0:
                reasons[name] = refusals.refuse_scalable_topic(name, self.inputs.origin.release)
            elif name in changed_names and name in self.covered_state.occupied:
                reasons[name] = refusals.refuse_occupied_name(name, self.commands)
            # A topic that is no longer declared may have become the scalable topic.
            elif self._is_shadowed(name) and (
                name in changed_names if topic.deleted else name.schema_id in changed_ids
            ):
                reasons[name] = refusals.refuse_shadowed_topic(name, is_migrated=self.covered_state.has_topic(name))
        self.refusals = [*(refusal for refusal in self.refusals if refusal.name not in reasons), *reasons.values()]
        self.losses = [loss for loss in self.losses if loss.name not in reasons]

    def _is_shadowed(self, name: TopicName) -> bool:
        """Return whether a scalable topic has the name of this topic, which is not scalable."""
        return not name.is_scalable and name.scalable in self.covered_state.scalable

    def _add_policies(self, step: SetPolicies) -> None:
        """Add a step for the schema policies and one for each setting, or a refusal for a setting that could lose messages."""
        sides = (step.before, step.after, step.from_namespace, step.from_default)
        settings = [(name,) for name in SETTINGS if name in step.after.settings]
        about_schemas, *setting_steps = (
            SetPolicies(step.name, *(Policies.of({name: side.get(name) for name in names}) for side in sides))
            for names in (SCHEMA_POLICIES, *settings)
        )
        if about_schemas.after.managed():
            self.add(about_schemas)
        for setting_step in setting_steps:
            # A setting of a namespace or topic that does not exist yet, or is half deleted, loses no messages.
            ((setting, after),) = setting_step.after.settings.items()
            registered, loses = self.covered_state.catalog.get(step.name), ""
            if registered and not registered.deleted:
                before = setting_step.before.get(setting)
                if before is None:
                    before = find_inherited(
                        step.name, setting, namespaces=self.covered_state.catalog.namespaces, state=self.covered_state
                    ).value
                if after == CompatibilityStrategy.UNDEFINED:
                    after = find_inherited(
                        step.name, setting, namespaces=self.predicted.namespaces, state=self.covered_state
                    ).value
                loses = SETTINGS[setting].loss(before, after)
            if loses and setting_step.address not in self.inputs.permissions.lose:
                self.losses.append(refusals.refuse_lossy_setting(setting_step, loses))
                # A refused setting also counts for the next steps: the user may allow it, and all losses are then known at once.
                setting_step.predict(self.predicted)
            else:
                self.add(replace(setting_step, loses=loses))

    def register(self, name: TopicName, missing: tuple[SchemaVersion, ...]) -> None:
        """Add the uploads of the missing versions in this order, or a refusal."""
        strategy, stored = self.get_strategy(name), self.predicted.list_versions(name)
        uploads = self._predict_uploads(name, missing, strategy, stored)
        is_relaxed = (
            uploads.rejected is not None
            and uploads.rejected.answer.outcome is Outcome.INCOMPATIBLE
            and self.inputs.permissions.relax
            and name in self.predicted.topics
            and not name.is_scalable
        )
        if is_relaxed:
            uploads = self._predict_uploads(name, missing, ALWAYS_COMPATIBLE, stored)
        self.predicted.versions[name.schema_id] = uploads.versions
        if is_relaxed:
            self.steps += self._relax_around(name, strategy, uploads.steps, uploads.versions[-1].number)
        else:
            for step in uploads.steps:
                waiver = uploads.waivers.get(step.version.number)
                number = cast("int", step.answer.version)
                self.steps += self._relax_around(name, strategy, [step], number, waiver) if waiver else [step]
        if uploads.rejected is None:
            return

        # The level whose own strategy is in force, although Git declares none there.
        undeclared_level = ""
        for holder in (name, name.namespace_name):
            registered, declared = self.covered_state.catalog.get(holder), self.target.get(holder)
            if find_strategy(registered.policies if registered else None):
                is_declared = declared is not None and declared.policies.schema_compatibility_strategy is not None
                if not is_declared and name not in self.covered_state.relaxed:
                    undeclared_level = get_name_type(holder)
                break

        git = get_live_versions(self.inputs.applicable.versions(name))
        self.refusals.append(
            refusals.refuse_version(
                name,
                uploads.rejected,
                (*git, *get_live_versions(self.inputs.applicable.twin_versions(name))),
                commands=self.commands,
                relax=self._make_relaxing_command(name) if name.domain == "persistent" else None,
                restart=None if name.is_scalable else self._find_restarting_command(name, git),
                is_orphaned=self.covered_state.catalog.topics.get(name, Topic(name)).deleted,
                set_by_others=undeclared_level,
            )
        )

    def _make_relaxing_command(self, name: TopicName) -> str:
        """Return the command that registers the topic's versions under ALWAYS_COMPATIBLE; a rebuild has another one."""
        return self.commands.format_apply(name, RELAX)

    def _find_restarting_command(self, name: TopicName, git: tuple[SchemaVersion, ...]) -> str | None:
        """Return the command that deletes the registry's versions and registers Git's, or None if that would not help."""
        if self.inputs.numbers and name in self.inputs.numbers.topics:
            return None  # it would register the recorded numbers, not Git's
        for strategy, options in ((self.get_strategy(name), ()), (ALWAYS_COMPATIBLE, (RELAX,))):
            if self._predict_uploads(name, git, strategy, ()).rejected is None:
                return self.commands.format_restart(name, *options)
        return None

    def _predict_uploads(
        self,
        name: TopicName,
        missing: tuple[SchemaVersion, ...],
        strategy: CompatibilityStrategy,
        stored: tuple[SchemaVersion, ...],
    ) -> PredictedUploads:
        """Predict the answers to uploads of the `missing` versions, in this order, to a topic with the `stored` versions."""
        key = name, missing, strategy, stored
        if key in self.inputs.uploads:
            return self.inputs.uploads[key]
        steps: list[RegisterVersion] = []
        waivers: dict[int, Waiver] = {}
        versions = VersionList(stored, self.inputs.origin.release, checker_changes=self.inputs.origin.checkers)
        rejected: Rejected | None = None
        for version in missing:
            info = make_upload(version)
            answer = versions.put(info, strategy)
            waiver = None
            if answer.outcome is Outcome.INCOMPATIBLE:
                waiver = self._find_waiver(name, version, versions.versions)
            accepted = versions.put(info, ALWAYS_COMPATIBLE) if waiver else answer
            if accepted.outcome is Outcome.OK and accepted.version is not None:
                steps.append(RegisterVersion(name, version, accepted))
                versions.append(SchemaVersion(accepted.version, info, version.commit))
                if waiver:
                    waivers[version.number] = waiver
            elif accepted.outcome is not Outcome.UNCHANGED:
                rejected = Rejected(version, tuple(versions.versions), answer, strategy)
                break
        self.inputs.uploads[key] = PredictedUploads(tuple(steps), waivers, tuple(versions.versions), rejected)
        return self.inputs.uploads[key]

    def _relax_around(
        self,
        name: TopicName,
        strategy: CompatibilityStrategy,
        steps: Sequence[Step],
        latest: int,
        waiver: Waiver | None = None,
    ) -> Iterator[Step]:
        """Yield `steps`, after which `latest` is the latest version, between steps that relax and restore the topic."""
        updates = self.predicted.namespaces[name.namespace_name].policies.is_allow_auto_update_schema
        on = self.covered_state.defaults.is_allow_auto_update_schema if updates is None else updates
        yield RelaxStrategy(name, strategy, on, waiver)
        yield from steps
        own = self.predicted.topics[name].policies.schema_compatibility_strategy or CompatibilityStrategy.UNDEFINED
        yield RestoreStrategy(name, own, latest=latest)

    def _find_waiver(self, name: TopicName, version: SchemaVersion, stored: Sequence[SchemaVersion]) -> Waiver | None:
        """Return the waiver, in the commit of `version`, for the broker's rejection of it after `stored`, or None."""
        # A scalable topic does not have a strategy that could be relaxed.
        if version.commit is None or version.info is None or name not in self.predicted.topics or name.is_scalable:
            return None
        # Waivers are for Git's definitions; stored definitions have a commit property, and no `.proto`.
        git = VersionIndex(self.target.topics[name].versions)
        before = [git.find(entry.info) or entry for entry in get_live_versions(stored)[-1:] if entry.info]
        declared = self.inputs.origin.declared_topic(name)
        return find_broker_waiver(self.inputs.waivers(version.commit), declared, before, version.info)

    def _begin_generation(self, name: TopicName, last: int) -> None:
        """Add tombstones up to the number `last`, of which the first hides the current versions, or a refusal."""
        versions = self.predicted.list_versions(name)
        if last_tombstone(versions) >= last:
            return  # the tombstone of a topic in another domain
        current = get_live_versions(versions)
        if current and (retained := self.covered_state.retained.get(name)):
            self.refusals.append(refusals.refuse_generation(name, retained))
            return
        hidden = tuple(version.number for version in current)
        self.take_numbers(name, max(last + 1, self.predicted.get_next_number(name) + 1), hidden)

    def take_numbers(self, name: TopicName, end: int, hidden: tuple[int, ...] = ()) -> None:
        """Add tombstones for the free numbers below `end`; the first hides the versions `hidden`."""
        for number in range(self.predicted.get_next_number(name), end):
            self.add(TakeNumber(name, number, hidden))
            hidden = ()

    def _note_kept_versions(self, name: TopicName) -> Iterator[PlanNote]:
        """Yield notes about versions in the registry of a topic or schema that Git no longer declares."""
        declared, current = self.target.topics[name], get_live_versions(self.predicted.versions[name.schema_id])
        gone = "is no longer declared" if declared.deleted else "no longer declares a schema"
        if find_deletable_versions(self.target, name, self.predicted.list_versions(name)):
            message = (
                f"{gone}, but the registry keeps its schema ({_format_numbers(current)}); to delete it: --allow-delete "
                f"{quote(str(self.inputs.origin.declared_topic(name)))}"
            )
            yield PlanNote(name, PlanNoteKind.DELETION_SKIPPED, message)
        elif current and not declared.versions:
            message = f"the registry holds {_format_numbers(current)}, but Git declares no schema for this topic"
            if declared.deleted:
                message = f"{gone}, and never had a schema, but the registry has {_format_numbers(current)}"
            yield PlanNote(name, PlanNoteKind.UNKNOWN_VERSION, message)

    def _drop_twin_versions(self, name: TopicName, versions: tuple[SchemaVersion, ...]) -> tuple[SchemaVersion, ...]:
        """Return the versions that the topics in the other domains do not have either."""
        twin_contents = VersionIndex(self.target.twin_versions(name))
        return tuple(version for version in versions if version.info and not twin_contents.find(version.info))

    def _note_other_forms(self, topic: Topic) -> Iterator[PlanNote]:
        """Note the versions whose PROTOBUF_NATIVE definition the registry has only in another form: brokers compare bytes."""
        contents = VersionIndex(self.predicted.list_versions(topic.name))
        numbers_by_forms: dict[tuple[str, str], list[int]] = {}
        for version in get_live_versions(topic.versions):
            if version.info is None or formats.spec(version.info).language not in ("protobuf", "pair"):
                continue
            registered = contents.find(version.info)
            if registered is None or registered.info is None or is_stored_alike(registered.info, version.info):
                continue
            if registered.info.schema != version.info.schema and native_definitions.list_native_parts(version.info):
                forms = _describe_form(registered.info), _describe_form(version.info)
                if forms[0] == forms[1]:
                    forms = f"with {_list_files(registered.info)}", f"with {_list_files(version.info)}"
                numbers_by_forms.setdefault(forms, []).append(version.number)
        for (registered_form, declared_form), version_numbers in numbers_by_forms.items():
            verb = "is" if len(version_numbers) == 1 else "are"
            version_name = quote(f"{self.inputs.origin.declared_topic(topic.name).schema_id}@{version_numbers[-1]}")
            message = (
                f"Git's v{format_ranges(version_numbers)} {verb} registered {registered_form}, and declared {declared_form}: brokers without "
                f"automatic updates reject producers that send the declared form. `schemactl registry put {version_name} "
                f"{self.commands.target_option}` uploads it, and {self.commands.advise_to_accept(topic.name)} then records its number"
            )
            yield PlanNote(topic.name, PlanNoteKind.OTHER_FORM, message)

    def _remove_skipped_topics(self) -> None:
        """Remove the steps of topics that are left out, but still restore topics that a killed `apply` left relaxed."""
        omitted = self._find_skipped_topics()
        refused = {refusal.name for refusal in self.refusals}
        # Their settings are not applied, so that they lose nothing.
        self.losses = [loss for loss in self.losses if loss.name not in omitted]
        for name in sorted(omitted - refused):
            twin = next(twin for twin in name.same_names_elsewhere if twin in refused)
            message = f"shares its schemas with {twin}, which the plan skips"
            self.refusals.append(PlanRefusal(name, message, self._advise_to_skip([twin])))
        for name in omitted:
            self.predicted.topics.pop(name, None)
            self.predicted.versions.pop(name.schema_id, None)
        topics = {name: topic for name, topic in self.covered_state.catalog.topics.items() if name in omitted}
        self.predicted.topics |= topics
        self.predicted.versions |= {name.schema_id: topic.versions for name, topic in topics.items()}
        self.steps = [step for step in self.steps if step.name not in omitted or step.is_repair]
        # A namespace or tenant that only omitted topics need may be a typo in their names.
        creations = (CreateTenant, CreateNamespace)
        needed = {step.name for step in self.steps if not isinstance(step, creations)}
        needed |= {step.name.namespace_name for step in self.steps if isinstance(step.name, TopicName)}
        unneeded_namespaces = {name.namespace_name for name in omitted} - needed
        created: dict[str, NamespaceName] = {}
        for step in self.steps:
            if isinstance(step, CreateNamespace) and step.name not in unneeded_namespaces:
                created.setdefault(step.name.tenant, step.name)
        self.steps = [
            CreateTenant(created[step.name.tenant]) if isinstance(step, CreateTenant) else step
            for step in self.steps
            if not (isinstance(step, CreateNamespace) and step.name in unneeded_namespaces)
            and not (isinstance(step, CreateTenant) and step.name.tenant not in created)
        ]

    def find_relaxed_namespaces(self) -> dict[NamespaceName, list[TopicName]]:
        """Return the namespaces that become less strict for topics that are left out, each with these topics."""
        topics_by_namespace: dict[NamespaceName, list[TopicName]] = {}
        registered, defaults = self.covered_state.catalog, self.covered_state.defaults
        for name in sorted(self._find_skipped_topics()):
            namespace = name.namespace_name
            if namespace not in registered.namespaces or namespace not in self.predicted.namespaces:
                continue
            before, after = registered.namespaces[namespace].policies, self.predicted.namespaces[namespace].policies
            topic, default_strategy = registered.topics.get(name), self.covered_state.default_strategies[namespace]
            old_strategy, new_strategy = (
                find_strategy(topic.policies if topic else None, policies) or default_strategy
                for policies in (before, after)
            )
            old_updates, new_updates = (
                defaults.is_allow_auto_update_schema
                if policies.is_allow_auto_update_schema is None
                else policies.is_allow_auto_update_schema
                for policies in (before, after)
            )
            old_enforced, new_enforced = (
                defaults.schema_validation_enforced
                if policies.schema_validation_enforced is None
                else policies.schema_validation_enforced
                for policies in (before, after)
            )
            lets_more_in = (new_updates and not old_updates) or (old_enforced and not new_enforced)
            if lets_more_in or list_guarantees(old_strategy) - list_guarantees(new_strategy):
                topics_by_namespace.setdefault(namespace, []).append(name)
        return topics_by_namespace

    def _find_skipped_topics(self) -> set[TopicName]:
        """Return the topics with refusals, and the topics that share their lists of schemas."""
        rejected = {refusal.name.schema_id for refusal in self.refusals if isinstance(refusal.name, TopicName)}
        return {name for name in self.target.topics if name.schema_id in rejected}

    def _advise_to_skip(self, names: Iterable[TopicName]) -> str:
        """Return the advice to apply the rest without these topics."""
        skipped = " ".join(f"--skip {self.commands.quote_topic(name)}" for name in names)
        return (
            f"repair that first\n`schemactl apply {self.commands.target_option} {skipped}`: everything else is applied, "
            "policies included"
        )


def _describe_form(info: SchemaInfo) -> str:
    """Describe the form of a PROTOBUF_NATIVE definition, as the end of a clause."""
    rendering = native_definitions.find_rendering(info)
    return f"as {rendering.capitalize()}'s client sends it" if rendering else "in a form that no Pulsar client sends"


def _list_files(info: SchemaInfo) -> str:
    """Return the names of the files of a PROTOBUF_NATIVE definition."""
    parts = native_definitions.list_native_parts(info)
    return ", ".join(name for part in parts for name in native_definitions.list_proto_files(part))


def _format_numbers(versions: tuple[SchemaVersion, ...]) -> str:
    return f"v{format_ranges(version.number for version in versions)}"
