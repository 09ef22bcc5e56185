"""`registry` manages one topic of a registry by hand; `serve` runs the embedded registry behind Pulsar's admin API."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, number
from schemactl.cli.schema_input import add_arguments as add_schema_arguments
from schemactl.cli.schema_input import read_schema
from schemactl.cli.show import definition_value, print_definition
from schemactl.cli.target_selection import add_target, target_of
from schemactl.cli.topic_selection import find
from schemactl.core.errors import (
    NEGATIVE,
    DeclarationError,
    InvalidSchema,
    NotPermitted,
    RegistryError,
    SchemactlError,
    SchemaRejected,
    UsageError,
)
from schemactl.core.findings import Answer, Breakage, Outcome
from schemactl.core.json_values import breakage_value
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.project import Project
from schemactl.core.schema import SchemaInfo, SchemaVersion, live
from schemactl.core.wording import moment, numbers, versions

if TYPE_CHECKING:
    from schemactl.registry.interface import Registry


# `schemactl registry`.


ACTIONS: Final = {
    "get": "print one version's definition",
    "list": "list every stored version, including tombstones",
    "put": "upload a schema",
    "delete": "delete a topic's schemas; without a flag, say what that would destroy",
    "test": "say whether a schema would be accepted; nothing is stored",
}

_HELP = "the topic, in full (shop/sales/orders), or as much of a declared one's name as is unambiguous"


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
        "  schemactl registry delete orders --allow-delete --target local\n"
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=f"{summary.capitalize()}.", epilog=epilog)
        action.add_argument("topic", metavar="TOPIC", help=_HELP)
        add_target(action)
        add_format(action)
        if name == "get":
            action.add_argument("--version", type=int, metavar="N", help="(default: the latest)")
        if name in ("put", "test"):
            add_schema_arguments(action)
        if name == "delete":
            how = action.add_mutually_exclusive_group()
            add_options(
                how,
                "--allow-delete: put a tombstone: it takes the next number",
                "--force-delete: destroy all stored versions: numbering starts again at 0",
            )


def run_registry(args: argparse.Namespace, context: Context) -> int:
    """Return 0: done; 100: the registry rejects it, or would."""
    return run_action(args, context)


_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class _RegistryTopic:
    """A topic in its current state in a registry.

    Attributes:
        declared: its declared name.
        name: its name on the target.
        stored: every version that the registry holds.
        checkers: the optional checkers of the brokers' configuration.
    """

    args: argparse.Namespace
    context: Context
    registry: Registry
    target: str
    declared: TopicName
    name: TopicName
    stored: tuple[SchemaVersion, ...]
    checkers: tuple[str, ...]

    @property
    def live(self) -> tuple[SchemaVersion, ...]:
        return live(self.stored)

    def show(self, text: str, **facts: Any) -> None:
        """Print the report, as `text` or the `facts` as JSON."""
        if self.args.format == "text":
            self.context.report(text)
        else:
            self.context.report_json(target=self.target, topic=str(self.name), **facts)


def _get(place: _RegistryTopic) -> int:
    found = _version(place, place.args.version)
    info = found.info
    if info is None:
        raise RegistryError(
            f"version {found.number} of {place.name} is a tombstone: it marks a deletion, and has no schema"
        )
    if place.args.format == "json":
        place.show("", **_facts(found))
        return 0
    place.context.say(f"{place.name}: {_headline(found)}")
    print_definition(info, place.name)
    return 0


def _list(place: _RegistryTopic) -> int:
    current = {version.number for version in place.live}
    lines = [f"{place.name} in {place.target}"]
    for version in reversed(place.stored):
        hidden = "" if version.number in current or version.info is None else ", hidden by a later tombstone"
        lines.append(f"  {_headline(version)}{hidden}")
    if not place.stored:
        lines.append("  no schema")
    place.show("\n".join(lines), versions=[_facts(version) for version in place.stored], live=sorted(current))
    return 0


def _put(place: _RegistryTopic) -> int:
    info = read_schema(place.args, place.context, place.declared)
    _warn(place, info)
    # Who may only produce can neither see nor repair that.
    with suppress(NotPermitted):
        _restore(place)
    before = {version.number for version in place.stored}
    try:
        number = place.registry.put_schema(place.name, info)
    except SchemaRejected as rejection:
        text = f"{place.name}: {rejection.outcome}, nothing was stored\n  the registry answers: {_first_line(rejection.what)}"
        place.show(text, stored=False, version=None, outcome=rejection.outcome, message=rejection.what)
        return NEGATIVE
    stored = number not in before
    done = "stored as" if stored else "nothing was stored: it equals"
    text = f"{place.name}: {done} version {number} in {place.target}"
    if not stored and place.live and place.live[-1].number != number:
        text += f"; latest is still version {place.live[-1].number}"
    place.show(text, stored=stored, version=number, outcome="ok" if stored else "unchanged")
    return 0


def _test(place: _RegistryTopic) -> int:
    from schemactl.comparison.compatibility import judge

    info = read_schema(place.args, place.context, place.declared)
    asked = place.registry.test_schema(place.name, info)
    strategy = place.registry.strategy(place.name)
    verdict = judge(place.stored, info, strategy, place.registry.release, checkers=place.checkers)
    upload, breakages = verdict.broker, verdict.data
    good = upload.version is not None and asked.outcome is Outcome.OK
    if good:
        done = "stores it as" if upload.outcome is Outcome.OK else "stores nothing, it equals"
        lines = [f"{place.name}: compatible under {strategy}; an upload {done} version {upload.version}"]
    else:
        lines = _rejection(place, strategy, asked, upload)
    # A type that is used twice breaks at one place of the definition.
    broken = list(dict.fromkeys(map(_broken, breakages)))
    lines += [f"  {each}" for each in broken[:_MOST_SHOWN]]
    if len(broken) > _MOST_SHOWN:
        lines.append(f"  and {len(broken) - _MOST_SHOWN} more; --format json has them all")
    place.show(
        "\n".join(lines),
        strategy=strategy.value,
        compatibility=_answer(asked),
        upload=_answer(upload),
        data=[breakage_value(breakage) for breakage in breakages],
    )
    return 0 if good else NEGATIVE


def _rejection(place: _RegistryTopic, strategy: CompatibilityStrategy, asked: Answer, upload: Answer) -> list[str]:
    no = upload if upload.version is None else asked
    lines = [f"{place.name}: {no.outcome.value} under {strategy}", f"  the registry answers: {_first_line(no.message)}"]
    if asked.outcome is Outcome.OK:
        lines.append("  its compatibility endpoint would answer that it is compatible: an upload checks more")
    elif upload.version is not None:
        lines.append(f"  an upload would still get version {upload.version}, which has the same content")
    return lines


def _broken(breakage: Breakage) -> str:
    found, old = breakage.incompatibility, f"version {breakage.against}"
    who = {
        "new_reads_old": f"the new schema cannot read {old}",
        "old_reads_new": f"{old} cannot read the new schema",
        "both": f"neither {old} nor the new schema can read the other's messages",
    }[breakage.direction]
    return f"{found.rule} at {found.pointer or 'the top'}: {who}"


def _restore(place: _RegistryTopic) -> None:
    """Restore the topic's own strategy if a killed `apply` left another."""
    from schemactl.deploy.apply import restore_left

    for line in restore_left(place.registry, [place.name]):
        place.context.say(line)


def _delete(place: _RegistryTopic) -> int:
    if place.args.allow_delete or place.args.force_delete:
        _restore(place)
    stored = place.stored
    if not stored:
        # A delete of nothing is not nothing: a broker writes a tombstone, and the first version would be 1.
        raise RegistryError(f"{place.name} has no schema in {place.target}; nothing was deleted")
    held = versions([version.number for version in stored])
    current = [version.number for version in place.live]
    if place.args.force_delete:
        place.registry.delete_schema(place.name, force=True)
        text = f"{place.name}: {held} destroyed in {place.target}; the next upload is version 0"
        place.show(text, destroyed=[version.number for version in stored], tombstone=None)
        return 0
    if place.args.allow_delete:
        if not current:
            raise RegistryError(f"the schemas of {place.name} are deleted already, by tombstone {stored[-1].number}")
        if why := place.registry.retained(place.name):
            raise RegistryError(
                f"the schema of {place.name} cannot be hidden: {why}, whose numbers {place.target} would no longer answer",
                fix="let consumers read them, and retention remove them",
            )
        number = place.registry.delete_schema(place.name)
        text = f"{place.name}: {versions(current)} hidden by tombstone {number} in {place.target}"
        place.show(text, hidden=current, tombstone=number)
        return 0
    raise UsageError(
        f"deleting the schema of {place.name} in {place.target} needs a flag: its live versions are "
        f"{numbers(current) or 'none'}, and messages that carry their numbers can then no longer be decoded",
        fix=f"--allow-delete hides them behind a tombstone, number {stored[-1].number + 1}; --force-delete destroys {held} "
        "for good, and numbering starts again at 0",
    )


_ACTIONS = {"get": _get, "list": _list, "put": _put, "delete": _delete, "test": _test}


def run_action(args: argparse.Namespace, context: Context) -> int:
    """Do what `args` ask for, and return the exit code of `registry`."""
    with _opened(args, context) as place:
        return _ACTIONS[args.action](place)


@contextmanager
def _opened(args: argparse.Namespace, context: Context) -> Iterator[_RegistryTopic]:
    from schemactl.broker.checkers import known_to

    chosen = target_of(args.target, context)
    target = chosen.target
    declared = _name(args, chosen.project, context)
    name = target.names.there(declared)
    with closing(chosen.open(context)) as registry:
        stored = registry.versions(name)
        checkers = known_to(registry.release, chosen.project.defaults.checkers)
        yield _RegistryTopic(args, context, registry, target.name, declared, name, stored, checkers)


def _name(args: argparse.Namespace, project: Project, context: Context) -> TopicName:
    """Return the topic; a declared one need not be named in full. Actions that write accept no globs."""
    text, globs = args.topic, args.action not in ("put", "delete")
    if ("://" in text or text.count("/") == 2) and not (globs and set(text) & set("*?[")):
        try:
            return TopicName.parse(text)
        except ValueError as error:
            raise UsageError(str(error)) from None
    return find(text, context.approved(project).catalog, globs=globs).name


def _warn(place: _RegistryTopic, info: SchemaInfo) -> None:
    """Warn on standard error if Git does not declare the schema that is uploaded."""
    from schemactl import formats
    from schemactl.comparison.changes import Contents

    topic = place.context.approved().catalog.topics.get(place.declared)
    if topic is None or topic.deleted:
        place.context.say(
            f"warning: Git does not declare {place.declared}: `apply` does not touch it, and only `drift --unmanaged` shows it"
        )
        return
    try:
        formats.identity(info)
    except InvalidSchema:
        return  # the registry will say so
    if Contents(topic.versions).find(info) is None:
        place.context.say(
            f"warning: this schema is no approved version of {place.declared}; if it is stored, version numbers will "
            "differ from Git's. Declare it, merge it, and run `schemactl apply`"
        )


def _version(place: _RegistryTopic, number: int | None) -> SchemaVersion:
    stored = place.stored
    if not stored:
        raise RegistryError(f"{place.name} has no schema in {place.target}")
    if number is None:
        if place.live:
            return place.live[-1]
        raise RegistryError(
            f"the schemas of {place.name} were deleted by tombstone {stored[-1].number}",
            fix="--version N shows an older one, if the registry still has it",
        )
    for version in stored:
        if version.number == number:
            return version
    known = numbers([version.number for version in stored])
    raise RegistryError(f"{place.name} has no version {number} in {place.target}: there is {known}")


def _headline(version: SchemaVersion) -> str:
    from schemactl.comparison.changes import stamp

    what = version.info.type.name if version.info else "tombstone"
    commit = stamp(version.info)
    origin = f", from commit {commit[:9]}" if commit else ""
    return f"version {version.number}, {what}, {moment(version.timestamp_ms)}{origin}"


def _facts(version: SchemaVersion) -> dict[str, Any]:
    what = definition_value(version.info) if version.info else {"deleted": True}
    return {"version": version.number, **what, "timestamp_ms": version.timestamp_ms}


def _answer(answer: Answer) -> dict[str, Any]:
    return {"outcome": answer.outcome.value, "version": answer.version, "message": answer.message or None}


def _first_line(message: str) -> str:
    return message.partition("\n")[0].strip().rstrip(":")


# `schemactl serve`.


MEMORY = "memory:"
DEFAULT_PORT = 8080


def configure_serve(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `serve`."""
    parser.description = (
        "Serve the embedded registry as a Pulsar broker would: schemas, and the tenants, namespaces, topics and policies "
        "around them. Prints its URL when it is ready, and ends on Ctrl-C or SIGTERM. The project's `pulsar` and `defaults` "
        "say which release it answers as, and stand in for the broker's own settings. There is no authentication: requests that "
        "call it by a name that was not given to it, as other people's web pages make browsers do, are rejected."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl serve --port 0                                         in memory, on a free port\n"
        "  schemactl serve --registry sqlite:.schemactl/registry.db         what `plan --target local` speaks of\n"
        "  pulsar-admin --admin-url http://127.0.0.1:8080 schemas get shop/sales/orders\n"
    )
    add_options(parser, "--port N: 0: any that is free (default: 8080)", type=number(0, 65535), default=DEFAULT_PORT)
    add_options(
        parser,
        "--registry URL: sqlite:PATH, memory: or module:Class?metadata=PATH (default: memory:, gone when it ends)",
        default=MEMORY,
    )
    add_options(
        parser,
        "--host ADDRESS: address to listen on (default: 127.0.0.1); any but this machine's own needs --allow-host",
        default="127.0.0.1",
    )
    add_options(
        parser,
        "--allow-host NAME...: a name or address, besides localhost, by which clients may call the server; can be given several times",
    )


def run_serve(args: argparse.Namespace, context: Context) -> int:
    """Return 0 when it is stopped."""
    from schemactl.registry import open_embedded

    try:
        from schemactl.registry.server.app import host_name, is_loopback, serve
    except ModuleNotFoundError as error:
        raise SchemactlError(
            f"serve needs {error.name}, which is not installed", fix='pip install "pulsar-schemactl[serve]"'
        ) from error
    allowed = [host_name(name) for name in args.allow_host]
    for name, given in zip(allowed, args.allow_host, strict=True):
        if not name:
            raise UsageError(f"--allow-host {given}: this is no host's name", fix="write NAME, without port")
    if not is_loopback(args.host.strip("[]")):
        if not allowed:
            raise UsageError(
                f"--host {args.host} lets other machines in, and there is no authentication",
                fix="name the server as they are to call it, with --allow-host NAME; or leave --host away",
            )
        context.say(
            f"warning: whoever reaches {args.host} and calls it {' or '.join(allowed)} can read, write and delete everything here: "
            "there is no authentication"
        )
    project = _project(context)
    registry = open_embedded(
        args.registry, release=project.release, defaults=project.defaults, folder=Path(context.directory)
    )
    if registry is None:
        raise UsageError(
            f"--registry {args.registry} is no embedded registry",
            fix="write sqlite:PATH, memory: or module:Class?metadata=PATH",
        )
    with closing(registry):
        # A file that cannot be used is to be said now, not to the first client.
        registry.tenants()
        serve(registry, host=args.host, port=args.port, ready=lambda url: print(url, flush=True), allowed_hosts=allowed)
    return 0


def _project(context: Context) -> Project:
    """Return the project of the current folder; outside of a project, one with all defaults."""
    from schemactl.declare import project as declare_project

    try:
        project, _ = declare_project.load_project(context.directory, context.config)
    except (DeclarationError, UsageError):
        raise
    except SchemactlError:
        if context.config:
            raise
        return Project()
    return project
