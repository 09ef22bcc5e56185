"""Reasons why part of a plan cannot be applied, each with possible fixes and their consequences.

A fix has one possibility in each line. The commands in it, in backticks, are complete, and lead to a plan without changes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Final

from schemactl import formats
from schemactl.broker.upload import find_unreadable_version
from schemactl.comparison.changes import VersionIndex, get_upload_commit, make_upload
from schemactl.comparison.compatibility import find_breakages
from schemactl.core.catalog import Topic
from schemactl.core.errors import did_you_mean
from schemactl.core.findings import Answer, Outcome
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release, SchemaVersion, get_live_versions
from schemactl.core.wording import (
    describe_partitions,
    format_policy_value,
    format_time,
    format_version,
    format_version_numbers,
)
from schemactl.deploy.plan import Origin, Plan, PlanRefusal
from schemactl.deploy.registry_state import describe_policy
from schemactl.deploy.steps.set_policies import SetPolicies

_MAX_MESSAGE = 500
"""The maximum length of a shown registry message, in characters."""

HALF_DELETED = "is being deleted: the deletion was started but is not finished, so no topic can be created in it"
_MESSAGES_WOULD_BE_UNREADABLE = (
    "a broker does not return schemas from before a deletion, so consumers of such messages fail"
)
_NOT_APPROVED_YET = "change the definition before the merge: this version is not approved yet"
_ORPHANED = (
    "The topic itself does not exist: a deleted namespace leaves its schemas behind, and an upload needs no topic"
)
_REPLACE_DEFINITION = (
    "raise the topic's `generation` with a definition that this Pulsar release accepts, once the topic retains no "
    "messages: the present definition can never be uploaded, and neither can any later one"
)
_RAISE_GENERATION = (
    "raise the topic's `generation` with the next definition, once the topic retains no messages\nbring the "
    "brokers to a release that reads it"
)
_MESSAGES_WOULD_BE_MISREAD = (
    "it deletes every version in the registry, and versions get Git's numbers again. Messages written with {what} "
    "would be decoded as Git's versions: do this only if no such message is left"
)


_MAX_REPEATED: Final = 8
"""The maximum number of refused settings for which every fix repeats the command that allows them."""


@dataclass(frozen=True, slots=True)
class CommandTexts:
    """The texts of the commands that a fix names, for one target, each limited to one topic or namespace.

    Commands are in backticks; options and names are not.
    """

    origin: Origin

    @property
    def target_option(self) -> str:
        """The option that names the target."""
        return f"--target {quote(self.origin.target)}"

    def quote_topic(self, name: TopicName) -> str:
        """Return a topic's declared name, quoted for a shell."""
        return quote(self.origin.declared_topic(name).schema_id)

    def format_apply(self, name: NamespaceName | TopicName, *options: str) -> str:
        """Return the `apply` of one namespace or topic."""
        return self._format_command("apply", name, *options)

    def format_plan(self, name: NamespaceName | TopicName) -> str:
        """Return the `plan` of one namespace or topic."""
        return self._format_command("plan", name)

    def format_rebuild(self, name: NamespaceName | TopicName, *options: str) -> str:
        """Return the `rebuild` of one namespace or topic."""
        return self._format_command("rebuild", name, *options)

    def format_restart(self, name: TopicName, *options: str) -> str:
        """Return the command that deletes what a topic has and gives it Git's versions."""
        return self.format_rebuild(name, f"--force-delete {self.quote_topic(name)}", *options)

    def format_unreadable_option(self, name: TopicName) -> str:
        """Return the option that allows that retained messages of a topic become unreadable."""
        return f"--allow-unreadable-messages {self.quote_topic(name)}"

    def format_delete(self, name: TopicName, how: str) -> str:
        """Return the deletion of a topic's schemas."""
        return f"`schemactl registry delete {self.quote_topic(name)} {how} {self.target_option}`"

    def advise_to_accept(self, name: NamespaceName | TopicName, *, unmanaged: bool = False) -> str:
        """Return the fix that records the drift of `name` in Git as accepted, including version numbers."""
        command = f"schemactl drift {self.target_option}{' --unmanaged' * unmanaged} --accept --reason TEXT {self._format_scope(name)}"
        return f"`{command}`, commit what it writes, and merge it"

    def _format_command(self, command: str, name: NamespaceName | TopicName, *options: str) -> str:
        return f"`{' '.join(['schemactl', command, self.target_option, self._format_scope(name), *options])}`"

    def _format_scope(self, name: NamespaceName | TopicName) -> str:
        if isinstance(name, TopicName):
            return f"--topic {self.quote_topic(name)}"
        return f"--namespace {quote(str(self.origin.declared.get(name, name)))}"


@dataclass(frozen=True, slots=True)
class Awaited:
    """The target that must have a topic's versions first, and a sentence about the versions that it has now."""

    target: str
    message: str


AwaitedBy = Callable[[Plan], Mapping[TopicName, Awaited]]
"""Returns the topics of a plan that wait for other targets."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """An upload that the registry would reject, with the versions that it would have before the upload."""

    version: SchemaVersion
    stored: tuple[SchemaVersion, ...]
    answer: Answer
    strategy: CompatibilityStrategy


def refuse_version(
    name: TopicName,
    rejected: Rejected,
    git: Sequence[SchemaVersion],
    *,
    commands: CommandTexts,
    relax: str | None,
    restart: str | None,
    is_orphaned: bool,
    set_by_others: str,
) -> PlanRefusal:
    """Return the refusal of Git's version, with its fixes.

    Args:
        name: the topic, by the target's names.
        rejected: the rejected upload.
        git: Git's versions of the topic and of its twins.
        commands: the commands for the fixes.
        relax: the command that registers the version under ALWAYS_COMPATIBLE, or None if that is impossible.
        restart: the command that deletes the registry's versions and registers Git's, or None if that would not help.
        is_orphaned: whether the topic has schemas, but does not exist.
        set_by_others: the level at which something other than Git's declarations set the strategy, or "".
    """
    version, answer, strategy = rejected.version, rejected.answer, rejected.strategy
    registered, git_contents = get_live_versions(rejected.stored), VersionIndex(git)
    foreign = tuple(
        entry
        for entry in registered
        if entry.info and not git_contents.find(entry.info) and not get_upload_commit(entry.info)
    )
    release = commands.origin.release
    blocking_version = (
        find_unreadable_version(registered, make_upload(version), release) if answer.outcome is Outcome.ERROR else None
    )
    broker_says = answer.message.strip().partition("\n")[0][:_MAX_MESSAGE]
    if blocking_version:
        git_version = git_contents.find(blocking_version.info) if blocking_version.info else None
        message = (
            f"the topic is blocked by {_describe_version(blocking_version, git_version)}: brokers of Pulsar {release} cannot "
            f"read that version ({broker_says}), and reject every later schema. Git's {format_version(version)} "
            "waits"
        )
        fix = _RAISE_GENERATION if git_version else _list_fixes_by_deletion(name, blocking_version, commands, restart)
    else:
        message = (
            f"Git's {format_version(version)} would be rejected: {answer.outcome} under {strategy}. "
            f"{_explain_rejection(rejected, git_contents, broker_says)}"
        )
        if answer.outcome is not Outcome.INCOMPATIBLE:
            fix = _REPLACE_DEFINITION
        else:
            fix = "\n".join(_list_fixes_of_incompatibility(rejected, foreign, restart, relax))
            if set_by_others:
                message += f". {strategy} is the {set_by_others}'s own strategy, which Git does not declare: it was set in the registry"
                fix = f"approve `schema_compatibility_strategy: UNDEFINED` for the {set_by_others}: `apply` removes that value first\n{fix}"
    if is_orphaned:
        message += f". {_ORPHANED}"
    if commands.origin.proposed and version.commit == commands.origin.tip:
        fix = f"{_NOT_APPROVED_YET}\n{fix}"
    return PlanRefusal(
        name,
        message,
        fix,
        version.number,
        # A broker's message quotes both definitions in full.
        replace(answer, message=answer.message[:_MAX_MESSAGE]),
        blocked_by=blocking_version.number if blocking_version else None,
    )


def describe_way_out(delete_command: str) -> str:
    """Return the fix for a topic that a version blocks, and that no file can declare."""
    return (
        f"{delete_command}, once the topic retains no messages, then declare the corrected definition, such as with a valid default, "
        "and apply it"
    )


def _list_fixes_by_deletion(
    name: TopicName, blocking_version: SchemaVersion, commands: CommandTexts, restart: str | None
) -> str:
    lines = [f"{restart}: {_MESSAGES_WOULD_BE_MISREAD.format(what=f'v{blocking_version.number}')}"] if restart else []
    lines.append(
        f"{commands.format_delete(name, '--allow-delete')}, then {commands.format_apply(name)}: a tombstone uses a number and Git's "
        f"versions follow it, so record the new numbers afterwards. Messages written with v{blocking_version.number} are "
        "rejected; nothing is deleted while the topic retains such messages"
    )
    return "\n".join(lines)


def _list_fixes_of_incompatibility(
    rejected: Rejected, foreign: Sequence[SchemaVersion], restart: str | None, relax: str | None
) -> Iterator[str]:
    """Yield the fixes. With foreign versions or another order than Git's, they cost numbers or messages."""
    number, git = rejected.stored[-1].number + 1, rejected.version.number
    if not foreign:
        yield "approve another strategy for the topic"
    if restart and (foreign or number != git):
        subject = f"the registry's {format_version_numbers([version.number for version in foreign or get_live_versions(rejected.stored)])}"
        yield f"{restart}: {_MESSAGES_WOULD_BE_MISREAD.format(what=subject)}"
    if relax:
        renumbered = f"; Git's v{git} becomes v{number}; record this number afterwards" if number != git else ""
        yield f"{relax}: it keeps the registered versions, and registers the approved ones{renumbered}"


def _describe_version(version: SchemaVersion, git: SchemaVersion | None) -> str:
    # A version of the same plan has no time of upload.
    when = f", uploaded {format_time(version.timestamp_ms)} UTC" if version.timestamp_ms else ""
    kind = version.info.type.name if version.info else "tombstone"
    whose = f"which is Git's v{git.number}" if git else "which Git does not know"
    return f"the registry's v{version.number} ({kind}{when}), {whose}"


def _explain_rejection(rejected: Rejected, git_contents: VersionIndex, broker_says: str) -> str:
    """Explain the first breakage that has a definition; if no data would break, quote the broker."""
    new = make_upload(rejected.version)
    for breakage in find_breakages(rejected.stored, new, rejected.strategy):
        old = next(version for version in rejected.stored if version.number == breakage.against)
        if old.info is not None:
            reason = formats.explain(breakage, new=new, old=old.info).reason.rstrip(".")
            return f"Compared with {_describe_version(old, git_contents.find(old.info))}: {reason}"
    return f"The registry says: {broker_says}" if broker_says else ""


def refuse_lossy_setting(step: SetPolicies, loses: str) -> PlanRefusal:
    """Return the refusal of a setting that could lose messages, and that the user does not allow; see `advise_to_allow`."""
    ((setting, after),) = step.after.settings.items()
    return PlanRefusal(
        step.name,
        f"{setting}: {describe_policy(step.before.get(setting))} -> {format_policy_value(after)}: {loses}; `apply` "
        "changes nothing until this is allowed",
        "",
        allow=step.address,
    )


def advise_to_allow(
    losses: Sequence[PlanRefusal], allowed: Iterable[str], commands: CommandTexts
) -> Iterator[PlanRefusal]:
    """Yield the refusals of `refuse_lossy_setting` with their fix: one command that allows all of them, and the addresses that are `allowed`."""
    addresses = sorted({*allowed, *(loss.allow for loss in losses)})
    options = " ".join(f"--allow-data-loss {quote(address)}" for address in addresses)
    command = f"`schemactl apply {commands.target_option} {options}`"
    meant = "if that is meant" if len(addresses) == 1 else f"if all {len(addresses)} are meant"
    for position, loss in enumerate(losses):
        # Hundreds of settings need the long command only once.
        is_repeated = position == 0 or len(losses) <= _MAX_REPEATED
        allowing = f"{command}, {meant}" if is_repeated else f"the command of {losses[0].name} above allows it, {meant}"
        yield replace(loss, fix=f"{allowing}\ndeclare a value in Git that loses no messages")


def refuse_partitions(name: TopicName, registered: int | None, declared: int, commands: CommandTexts) -> PlanRefusal:
    """Return the refusal of a number of partitions that Pulsar cannot set."""
    if registered is None:
        fix = (
            "remove `partitions` from the topic's declaration, and merge that\n"
            f"`pulsar-admin topics delete {quote(str(name))}`, then {commands.format_apply(name)}: it deletes the topic with its messages and "
            "schemas, and creates it with its partitions"
        )
    else:
        fix = f"approve `partitions: {registered}` for the topic, its number of partitions in the registry"
    message = (
        f"the topic {describe_partitions(registered)}, but Git declares {declared}: Pulsar can only add partitions "
        "to a partitioned topic"
    )
    return PlanRefusal(name, message, fix)


def refuse_waiting_topics(awaited: Mapping[TopicName, Awaited], commands: CommandTexts) -> Iterator[PlanRefusal]:
    """Yield a refusal for each topic that waits for another target."""
    for name, other in awaited.items():
        fix = f"apply it to {other.target} first\n`schemactl apply {commands.target_option} --skip {commands.quote_topic(name)}`: everything else is applied"
        yield PlanRefusal(name, other.message, fix, waits_for=other.target)


def refuse_half_deleted_namespace(name: TopicName, commands: CommandTexts) -> PlanRefusal:
    """Return the refusal of a topic in a namespace whose deletion is not finished."""
    message = f"the namespace {name.namespace_name} {HALF_DELETED}"
    return PlanRefusal(name, message, finish_deletion(name.namespace_name, commands))


def refuse_namespace_elsewhere(name: TopicName, cluster: str, clusters: Sequence[str]) -> PlanRefusal:
    """Return the refusal of a topic whose namespace is not on this cluster."""
    cluster_names = ", ".join(clusters)
    return PlanRefusal(
        name,
        f"the namespace {name.namespace_name} is only on {cluster_names}, and brokers of {cluster} have no topics of this namespace",
        f"apply it on {cluster_names}, and exclude it here: `exclude` of the target\n"
        f"add {cluster} to the declared `replication_clusters`",
    )


def describe_scalable(name: TopicName, *, is_migrated: bool) -> str:
    """Describe the effect of the scalable topic of the same name on a topic, which exists only if it was migrated."""
    if is_migrated:
        return (
            f"the topic was migrated to the scalable topic {name.scalable}: it keeps its old messages, brokers accept no new ones for it "
            "(TopicTerminated), and both names share the schemas"
        )
    return f"the scalable topic {name.scalable} exists, and shares the schemas of this name, so `apply` does not create this topic"


def list_scalable_fixes(name: TopicName) -> str:
    """Return the fixes for a declared topic whose name a scalable topic has."""
    return (
        f"declare the scalable topic in its place, and merge that: `topic: {name.scalable}`\n"
        "leave it out here: `exclude` of the target\nremove the topic from Git, and merge that"
    )


def refuse_shadowed_topic(name: TopicName, *, is_migrated: bool) -> PlanRefusal:
    """Return the refusal to change a topic whose name a scalable topic has."""
    return PlanRefusal(name, describe_scalable(name, is_migrated=is_migrated), list_scalable_fixes(name))


def refuse_occupied_name(name: TopicName, commands: CommandTexts) -> PlanRefusal:
    """Return the refusal to create a scalable topic whose name a persistent topic has."""
    persistent = replace(name, domain="persistent")
    return PlanRefusal(
        name,
        f"{persistent} exists and would share its schemas with this scalable topic, so `apply` does not create the scalable topic",
        f"migrate it first: `POST /admin/v2/scalable/{name.schema_id}/migrate`; then {commands.format_plan(name)}\n"
        "leave the scalable topic out here: `exclude` of the target",
    )


def refuse_scalable_topic(name: TopicName, release: Release) -> PlanRefusal:
    """Return the refusal of a scalable topic on a registry of a release without them."""
    message = f"Pulsar {release} does not support scalable topics, which need 5.0"
    return PlanRefusal(name, message, "leave it out here: `exclude` of the target")


def finish_deletion(name: NamespaceName, commands: CommandTexts) -> str:
    """Return the fix that finishes the deletion of a namespace, and creates it again."""
    return (
        f"`pulsar-admin namespaces delete {quote(str(name))}`, then {commands.format_apply(name)}: its remains are deleted, and it is "
        "created again; its schemas are kept"
    )


def refuse_lost_schemas(name: TopicName, retained: str, commands: CommandTexts) -> PlanRefusal:
    """Return the refusal to register versions on a topic that lost its schemas but retains messages with version numbers."""
    return PlanRefusal(
        name,
        f"the topic has lost its schemas, but {retained}: `apply` does not register Git's versions, because their "
        "numbers may have belonged to other definitions",
        f"{commands.format_rebuild(name)}: it gives versions the numbers that the target's numbers file records, else Git's; with the file "
        "of a saved list (`apply --result`, `drift --format json`), the numbers of that list",
    )


def refuse_unexplained_versions(
    name: TopicName, unknown: Iterable[SchemaVersion], commands: CommandTexts
) -> Iterator[PlanRefusal]:
    """Yield a refusal for each version that an `apply` uploaded but that the approved history does not have."""
    for version in unknown:
        commit = get_upload_commit(version.info)
        if commit:
            yield PlanRefusal(
                name,
                f"the registry's v{version.number} was uploaded from commit {commit[:9]}, but the approved history does not "
                "have its content: it was rewritten, or this clone is behind",
                f"git fetch; if the history was rewritten, restore that commit in the approved history: `schemactl drift {commands.target_option}` "
                "shows how",
            )


def refuse_deletion(name: TopicName, retained: str, commands: CommandTexts, *, force: bool) -> PlanRefusal:
    """Return the refusal to delete the schema of a topic that retains messages."""
    option = f"--{'force' if force else 'allow'}-delete {commands.quote_topic(name)}"
    return PlanRefusal(
        name,
        f"its schema cannot be deleted: {retained}, and {_MESSAGES_WOULD_BE_UNREADABLE}",
        "let consumers read these messages, and wait until retention removes them\nkeep the schema\n"
        f"{commands.format_apply(name, option, commands.format_unreadable_option(name))}: if these messages are not needed",
    )


def refuse_rebuild(name: TopicName, retained: str, commands: CommandTexts) -> PlanRefusal:
    """Return the refusal to delete the versions of a topic that retains messages, so that Git's versions get their numbers."""
    return PlanRefusal(
        name,
        f"its versions are not deleted: {retained}, and messages that carry their numbers would be unreadable, or "
        "decoded with the wrong schema",
        "let consumers read these messages, and wait until retention removes them\n"
        f"the same command with `{commands.format_unreadable_option(name)}`: if these messages are not needed",
    )


def refuse_generation(name: TopicName, retained: str) -> PlanRefusal:
    """Return the refusal to begin a generation on a topic that retains messages."""
    return PlanRefusal(
        name,
        f"its new generation cannot begin: {retained}, and {_MESSAGES_WOULD_BE_UNREADABLE}",
        "stop its producers, let consumers read the remaining messages, and wait until retention removes them\nuse a "
        "new topic with `renamed_from`",
    )


def refuse_undeclared_namespaces(
    topics: Iterable[Topic], declared: Container[NamespaceName], origin: Origin
) -> Iterator[PlanRefusal]:
    """Yield a refusal for each topic in an undeclared namespace, if the project requires declarations."""
    for topic in topics:
        namespace = topic.name.namespace_name
        if origin.require_declared_namespaces and not topic.deleted and namespace not in declared:
            yield PlanRefusal(
                topic.name,
                f"no file declares the namespace {namespace}, and the project file has `require_declared_namespaces: true`",
                f"correct the topic's name, or approve a declaration: {_format_declaration(namespace, origin)}",
            )


def refuse_undeclared_tenant(
    namespace: NamespaceName, topics: Iterable[Topic], commands: CommandTexts
) -> Iterator[PlanRefusal]:
    """Yield a refusal for each of `topics` in the missing tenant of `namespace`, if that tenant is not declared.

    If namespaces must be declared, `refuse_undeclared_namespaces` yields the refusals instead.
    """
    origin = commands.origin
    declared = origin.declared_tenants
    if declared is None or namespace.tenant in declared or origin.require_declared_namespaces:
        return
    for topic in topics:
        if topic.name.tenant == namespace.tenant and not topic.deleted:
            own = topic.name.namespace_name
            yield PlanRefusal(
                topic.name,
                f"the tenant {namespace.tenant} does not exist, and no file declares a namespace of it"
                f"{did_you_mean(namespace.tenant, declared)}",
                f"correct the topic's name\napprove a declaration: {_format_declaration(own, origin)}\n"
                f"{commands.format_apply(own, '--create-tenants')}: it creates the tenant",
            )


def _format_declaration(namespace: NamespaceName, origin: Origin) -> str:
    return f"`namespace: {origin.declared.get(namespace, namespace)}`"
