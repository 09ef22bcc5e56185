"""`registry`: manage one topic of a registry by hand."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, add_timeout
from schemactl.cli.schema_input import add_schema_arguments, has_schema, read_schema, render_for_client
from schemactl.cli.show import definition_value, print_definition
from schemactl.cli.target_selection import add_target, choose_target
from schemactl.cli.topic_selection import choose, find
from schemactl.core.errors import ExitCode, InvalidSchema, NotPermitted, RegistryError, SchemaRejected, UsageError
from schemactl.core.findings import Answer, Breakage, Outcome
from schemactl.core.json_values import BreakageView
from schemactl.core.names import TopicName
from schemactl.core.project import Project
from schemactl.core.schema import WITHOUT_SCHEMA, SchemaInfo, SchemaVersion, find_by_number, get_live_versions
from schemactl.core.wording import format_ranges, format_time, format_version_numbers

if TYPE_CHECKING:
    from schemactl.registry.interface import Registry


_SUMMARIES: Final = {
    "get": "print one version's definition",
    "list": "list every stored version, including tombstones",
    "put": "upload a schema",
    "delete": "delete a topic's schemas; without a flag, list what would be lost",
    "test": "test whether a schema would be accepted; nothing is stored",
}

_TOPIC_HELP: Final = "the topic, in full (shop/sales/orders), or an unambiguous end of a declared name"

_MAX_BREAKAGES: Final = 8


def configure_registry(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `registry`."""
    parser.description = (
        "Show one topic's schemas in a registry, and change them by hand. For what Git declares, use `plan` and `apply`: "
        "a schema put by hand is drift until it is declared."
    )
    parser.epilog = epilog = (
        "examples:\n"
        "  schemactl registry get shop/sales/orders --version 3 --target prod > orders-3.avsc\n"
        "  schemactl registry list orders --target prod --format json\n"
        "  schemactl registry test orders --file orders.avsc --target prod     exit code 100: it would be rejected\n"
        "  schemactl registry put orders --file payload.json --target local\n"
        "  schemactl registry put clicks@0 --language go --target prod         version 0 as Git approved it, in the form of Go's client\n"
        "  schemactl registry delete orders --allow-delete --target local\n"
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in _SUMMARIES.items():
        action = actions.add_parser(name, help=summary, description=f"{summary.capitalize()}.", epilog=epilog)
        is_upload = name in ("put", "test")
        version_help = "; TOPIC@N uploads the approved version N" if is_upload else ""
        action.add_argument("topic", metavar="TOPIC[@N]" if is_upload else "TOPIC", help=_TOPIC_HELP + version_help)
        add_target(action)
        add_format(action)
        add_timeout(action)
        if name == "get":
            action.add_argument("--version", type=int, metavar="N", help="(default: the latest)")
        if is_upload:
            add_schema_arguments(action)
        if name == "put":
            add_options(
                action, "--force: upload a definition even if brokers would then reject every later upload to the topic"
            )
        if name == "delete":
            how = action.add_mutually_exclusive_group()
            add_options(
                how,
                "--allow-delete: put a tombstone: it takes the next number",
                "--force-delete: destroy all stored versions: numbering starts again at 0",
            )
            add_options(
                action, "--allow-unreadable-messages: even if the topic retains messages that need the versions"
            )


def run_registry(args: argparse.Namespace, context: Context) -> int:
    """Run the action; return 100 if the registry rejects the schema, or would reject it, else 0."""
    actions = {
        "get": _print_definition,
        "list": _list_versions,
        "put": _upload,
        "delete": _delete_versions,
        "test": _test_upload,
    }
    chosen = choose_target(args.target, context)
    target = chosen.target
    declared, approved = _resolve_topic(args, chosen.project, context)
    name = target.names.to_target(declared)
    with closing(chosen.open(context)) as registry:
        stored, properties = registry.versions(name), target.properties
        topic = _RegistryTopic(args, context, registry, target.name, declared, name, stored, approved, properties)
        return actions[args.action](topic)


@dataclass(frozen=True, slots=True)
class _RegistryTopic:
    """A topic in its current state in a registry.

    Attributes:
        args: the parsed command line.
        context: prints the report.
        registry: the open registry.
        target: the name of the target.
        declared: the declared name of the topic.
        name: the name of the topic on the target.
        stored: all versions in the registry, with tombstones, oldest first.
        approved: the approved version that TOPIC@N names for an upload, as `apply` uploads it, or None.
        properties: the properties that uploads to the target get.
    """

    args: argparse.Namespace
    context: Context
    registry: Registry
    target: str
    declared: TopicName
    name: TopicName
    stored: tuple[SchemaVersion, ...]
    approved: SchemaInfo | None
    properties: Mapping[str, str]

    def read_upload(self) -> SchemaInfo:
        """Return the schema to upload, with the properties of the target: the approved version, or the one on the command line."""
        from schemactl.comparison.changes import add_target_properties

        if self.approved is None:
            return add_target_properties(read_schema(self.args, self.context, self.declared), self.properties)
        return add_target_properties(render_for_client(self.approved, self.args.language), self.properties)

    @property
    def live_versions(self) -> tuple[SchemaVersion, ...]:
        return get_live_versions(self.stored)

    def show(self, text: str, **facts: Any) -> None:
        """Print the report, as `text` or the `facts` as JSON."""
        if self.args.format == "text":
            self.context.report(text)
        else:
            self.context.report_json(target=self.target, topic=str(self.name), **facts)


def _resolve_topic(args: argparse.Namespace, project: Project, context: Context) -> tuple[TopicName, SchemaInfo | None]:
    """Return the declared name of the topic, which may be abbreviated, and the approved version that TOPIC@N names instead of a file."""
    from schemactl.comparison.changes import make_upload

    text = args.topic
    _, at, version_number = text.rpartition("@")
    if args.action in ("put", "test") and not has_schema(args) and at and version_number.isdecimal():
        chosen = choose(text, context.approved(project, topics=[text]).catalog)
        return chosen.topic.name, make_upload(chosen.version.load()) if chosen.version else None
    # Actions that write accept no globs.
    globs = args.action not in ("put", "delete")
    if ("://" in text or text.count("/") == 2) and not (globs and set(text) & set("*?[")):
        try:
            return TopicName.parse(text), None
        except ValueError as error:
            raise UsageError(str(error)) from None
    return find(text, context.approved(project, topics=[text]).catalog, globs=globs).name, None


def _print_definition(topic: _RegistryTopic) -> int:
    stored, number = topic.stored, topic.args.version
    if not stored:
        raise RegistryError(f"{topic.name} has no schema in {topic.target}")
    if number is None and not topic.live_versions:
        raise RegistryError(
            f"the schemas of {topic.name} were deleted by tombstone {stored[-1].number}",
            fix="--version N shows an older one, if the registry still has it",
        )
    version = topic.live_versions[-1] if number is None else find_by_number(stored, number)
    if version is None:
        numbers_text = format_ranges([entry.number for entry in stored])
        raise RegistryError(f"{topic.name} has no version {number} in {topic.target}: it has {numbers_text}")
    info = version.info
    if info is None:
        raise RegistryError(
            f"version {version.number} of {topic.name} is a tombstone: it marks a deletion, and has no schema"
        )
    if topic.args.format == "json":
        topic.show("", **_version_value(version))
        return 0
    topic.context.say(f"{topic.name}: {_describe_version(version)}")
    print_definition(info, topic.name)
    return 0


def _list_versions(topic: _RegistryTopic) -> int:
    current = {version.number for version in topic.live_versions}
    lines = [f"{topic.name} in {topic.target}"]
    for version in reversed(topic.stored):
        hidden = "" if version.number in current or version.info is None else ", hidden by a later tombstone"
        lines.append(f"  {_describe_version(version)}{hidden}")
    if not topic.stored:
        lines.append("  no schema")
    topic.show("\n".join(lines), versions=[_version_value(version) for version in topic.stored], live=sorted(current))
    return 0


def _describe_version(version: SchemaVersion) -> str:
    from schemactl.comparison.changes import get_upload_commit

    type_name = version.info.type.name if version.info else "tombstone"
    commit = get_upload_commit(version.info)
    origin = f", from commit {commit[:9]}" if commit else ""
    return f"version {version.number}, {type_name}, {format_time(version.timestamp_ms)}{origin}"


def _version_value(version: SchemaVersion) -> dict[str, Any]:
    definition = definition_value(version.info) if version.info else {"deleted": True}
    return {"version": version.number, **definition, "timestamp_ms": version.timestamp_ms}


def _upload(topic: _RegistryTopic) -> int:
    info = topic.read_upload()
    _warn_if_undeclared(topic, info)
    if not topic.args.force and (problem := _find_wedge_problem(topic, info)):
        text = (
            f"{topic.name}: not uploaded\n  {problem}\n  Fix: correct the definition, or store it anyway with --force"
        )
        topic.show(text, stored=False, version=None, outcome="refused", message=problem)
        return ExitCode.NEGATIVE
    # A role that may only produce can neither see nor repair the strategy.
    with suppress(NotPermitted):
        _restore_strategy(topic)
    old_numbers = {version.number for version in topic.stored}
    try:
        number = topic.registry.put_schema(topic.name, info)
    except SchemaRejected as rejection:
        text = f"{topic.name}: {rejection.outcome}, nothing was stored\n  the registry answers: {_first_line(rejection.message)}"
        topic.show(text, stored=False, version=None, outcome=rejection.outcome, message=rejection.message)
        return ExitCode.NEGATIVE
    is_new = number not in old_numbers
    outcome_text = "stored as" if is_new else "nothing was stored: it equals"
    text = f"{topic.name}: {outcome_text} version {number} in {topic.target}"
    if not is_new and topic.live_versions and topic.live_versions[-1].number != number:
        text += f"; latest is still version {topic.live_versions[-1].number}"
    topic.show(text, stored=is_new, version=number, outcome="ok" if is_new else "unchanged")
    return 0


def _find_wedge_problem(topic: _RegistryTopic, info: SchemaInfo) -> str:
    """Return the consequence if brokers would store a definition, and no other one after it; else empty."""
    from schemactl.broker.upload import would_block_uploads
    from schemactl.formats import find_problems

    release = topic.registry.release
    if not would_block_uploads(topic.stored, info, release):
        return ""
    reason = next(iter(find_problems(info, release)), None)
    location = f" at {reason.pointer}" if reason and reason.pointer else ""
    cause = f": {reason.message}{location}" if reason else ""
    return f"brokers of Pulsar {release} store this definition, and then every later upload to the topic fails{cause}"


def _warn_if_undeclared(registry_topic: _RegistryTopic, info: SchemaInfo) -> None:
    """Warn on standard error if Git does not declare the schema that is uploaded."""
    from schemactl import formats
    from schemactl.comparison.changes import VersionIndex

    name = registry_topic.declared
    topic = registry_topic.context.approved(topics=[str(name)]).catalog.topics.get(name)
    if topic is None or topic.deleted:
        registry_topic.context.say(
            f"warning: Git does not declare {registry_topic.declared}: `apply` does not touch it, and only `drift --unmanaged` shows it"
        )
        return
    try:
        formats.identity(info)
    except InvalidSchema:
        return  # The registry reports the problem.
    if VersionIndex(topic.versions).find(info) is None:
        registry_topic.context.say(
            f"warning: this schema is not an approved version of {registry_topic.declared}; if it is stored, version numbers will "
            "differ from Git's. Declare it, merge it, and run `schemactl apply`"
        )


def _restore_strategy(topic: _RegistryTopic) -> None:
    """Restore the topic's strategy if a killed `apply` left another one."""
    from schemactl.deploy.apply import restore_left

    for line in restore_left(topic.registry, [topic.name]):
        topic.context.say(line)


def _first_line(message: str) -> str:
    return message.partition("\n")[0].strip().rstrip(":")


def _test_upload(topic: _RegistryTopic) -> int:
    from schemactl.comparison.compatibility import judge

    info = topic.read_upload()
    compatibility = topic.registry.test_schema(topic.name, info)
    strategy = topic.registry.strategy(topic.name)
    verdict = judge(topic.stored, info, strategy, topic.registry.release, checkers=topic.registry.defaults.checkers)
    upload, breakages = verdict.broker, verdict.data
    is_compatible = upload.version is not None and compatibility.outcome is Outcome.OK
    wedge_problem = _find_wedge_problem(topic, info)
    if is_compatible:
        outcome_text = "stores it as" if upload.outcome is Outcome.OK else "stores nothing, it equals"
        lines = [f"{topic.name}: compatible under {strategy}; an upload {outcome_text} version {upload.version}"]
    else:
        rejection = upload if upload.version is None else compatibility
        lines = [
            f"{topic.name}: {rejection.outcome.value} under {strategy}",
            f"  the registry answers: {_first_line(rejection.message)}",
        ]
        if compatibility.outcome is Outcome.OK:
            lines.append(
                "  the broker's compatibility endpoint would report it as compatible, because an upload checks more"
            )
        elif upload.version is not None:
            lines.append(f"  an upload would still get version {upload.version}, which has the same content")
    lines += [f"  {wedge_problem}: `registry put` needs --force"] if wedge_problem else []
    # A type that is used twice breaks in one location of the definition.
    breakage_texts = list(dict.fromkeys(map(_describe_breakage, breakages)))
    lines += [f"  {text}" for text in breakage_texts[:_MAX_BREAKAGES]]
    if len(breakage_texts) > _MAX_BREAKAGES:
        lines.append(f"  and {len(breakage_texts) - _MAX_BREAKAGES} more; --format json has them all")
    topic.show(
        "\n".join(lines),
        strategy=strategy.value,
        compatibility=_answer_value(compatibility),
        upload=_answer_value(upload),
        data=[BreakageView.from_breakage(breakage) for breakage in breakages],
        wedges=wedge_problem or None,
    )
    return 0 if is_compatible and not wedge_problem else ExitCode.NEGATIVE


def _describe_breakage(breakage: Breakage) -> str:
    incompatibility, old = breakage.incompatibility, f"version {breakage.against}"
    problem = {
        "new_reads_old": f"the new schema cannot read {old}",
        "old_reads_new": f"{old} cannot read the new schema",
        "both": f"neither {old} nor the new schema can read the other's messages",
    }[breakage.direction]
    return f"{incompatibility.rule} at {incompatibility.pointer or 'the top'}: {problem}"


def _answer_value(answer: Answer) -> dict[str, Any]:
    return {"outcome": answer.outcome.value, "version": answer.version, "message": answer.message or None}


def _delete_versions(topic: _RegistryTopic) -> int:
    if topic.args.allow_delete or topic.args.force_delete:
        _restore_strategy(topic)
    stored = topic.stored
    if not stored:
        # A broker would write a tombstone, and the first version would be 1.
        raise RegistryError(f"{topic.name} has no schema in {topic.target}; nothing was deleted")
    all_versions = format_version_numbers([version.number for version in stored])
    live_numbers = [version.number for version in topic.live_versions]
    is_deletable = live_numbers if topic.args.allow_delete else topic.args.force_delete
    describes_messages = any(
        version.info and version.info.type not in WITHOUT_SCHEMA for version in topic.live_versions
    )
    reason = topic.registry.describe_retained_messages(topic.name) if is_deletable and describes_messages else ""
    if reason and not topic.args.allow_unreadable_messages:
        way = "hidden" if topic.args.allow_delete else "destroyed"
        raise RegistryError(
            f"the schema of {topic.name} cannot be {way}: {reason}, and {topic.target} would no longer return the schemas of their numbers",
            fix="let consumers read these messages, and wait until retention removes them; or, if these messages "
            "are not needed, --allow-unreadable-messages",
        )
    if topic.args.force_delete:
        topic.registry.delete_schema(topic.name, force=True)
        text = f"{topic.name}: {all_versions} destroyed in {topic.target}; the next upload is version 0"
        topic.show(text, destroyed=[version.number for version in stored], tombstone=None)
        return 0
    if topic.args.allow_delete:
        if not live_numbers:
            raise RegistryError(f"the schemas of {topic.name} are deleted already, by tombstone {stored[-1].number}")
        number = topic.registry.delete_schema(topic.name)
        text = f"{topic.name}: {format_version_numbers(live_numbers)} hidden by tombstone {number} in {topic.target}"
        topic.show(text, hidden=live_numbers, tombstone=number)
        return 0
    raise UsageError(
        f"deleting the schema of {topic.name} in {topic.target} needs a flag: its live versions are "
        f"{format_ranges(live_numbers) or 'none'}, and messages that carry their numbers can then no longer be decoded",
        fix=f"--allow-delete hides them behind a tombstone, number {stored[-1].number + 1}; --force-delete destroys {all_versions} "
        "permanently, and numbering starts again at 0",
    )
