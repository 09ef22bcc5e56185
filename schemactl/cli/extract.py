"""`extract` derives a definition from a Python class; `verify-client` compares such a class with the approved one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from schemactl.classes.contract import (
    ClientVerdict,
    Contract,
    Reason,
    choose_versions_to_check,
    find_other_form,
    find_rejections,
    find_unreadable_versions,
    select_versions,
)
from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.schema_input import read_file, render_for_client
from schemactl.cli.topic_selection import PART_HELP, find_part, resolve_output_file
from schemactl.core import atomic_files
from schemactl.core.errors import NEGATIVE, InvalidSchema, SchemactlError, UsageError
from schemactl.core.schema import SchemaType
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import describe_broken_versions, format_version, format_version_numbers

if TYPE_CHECKING:
    from schemactl.broker.connect import PoliciesInForce
    from schemactl.codec.record_classes import Role
    from schemactl.core.names import TopicName
    from schemactl.core.policies import CompatibilityStrategy
    from schemactl.core.schema import Release, SchemaInfo, SchemaVersion


_CLASS_HELP: Final = "the class: shop.models:Order, or shop.models:Order.Line for one inside another"

_TYPES: Final = ("AVRO", "JSON", "PROTOBUF_NATIVE")

_ROLES: Final[tuple[Role, ...]] = ("consumer", "producer")

_UNAPPROVED: Final = Reason(
    "producer",
    "Its schema is not an approved version, so readers do not have the schema of its messages.",
    "give the class the fields of a version (`schemactl show TOPIC@N`, or the package's own classes; `schemactl extract --topic TOPIC "
    "--check` shows what differs from the declared one), or declare its definition (`schemactl extract`) and merge it first",
)


# `schemactl extract`.


def configure_extract(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `extract`."""
    parser.description = (
        "Print the definition of a Python class: a dataclass, a pydantic model, an attrs class, a pulsar.schema.Record or "
        "the class of a protobuf message. For the last two, Pulsar's Python client registers the same definition. With --jar and "
        "--class: the definition that Pulsar's Java client registers for a Java class.\n\n"
        "MODULE is imported as `python -m` would, from the working folder and from packages that are installed with schemactl: "
        "its code runs in this process. Only this command and verify-client run code; nothing that reads declarations does."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl extract shop.models:Order\n"
        "  schemactl extract shop.models:Order --out namespaces/orders.avsc          write it next to the declaration\n"
        "  schemactl extract shop.models:Order --out namespaces/orders.avsc --check  are the two one version? (exit 100 if not)\n"
        "  schemactl extract shop.models:Order --topic orders --check                the same, with the declaration in the files here\n"
        "  schemactl extract click_pb2:Click --out click.proto\n"
        "  schemactl extract --jar app.jar --jar 'lib/*' --class com.shop.Order --topic orders --check\n"
    )
    parser.add_argument("class_", metavar="MODULE:CLASS", nargs="?", help=_CLASS_HELP)
    add_options(
        parser,
        "--jar PATH...: with --class: a jar, a folder of classes or 'lib/*', with Pulsar's client among them, which runs in a JVM; may be "
        "repeated",
    )
    parser.add_argument(
        "--class", dest="java_class", metavar="NAME", help="with --jar: the Java class, such as com.shop.Order"
    )
    _add_class_options(parser, "no; of a Java class, yes")
    add_options(
        parser,
        "--out FILE: write it to this file: .avsc; of a protobuf message .proto, .binpb, or .json as pulsar-admin takes it",
        "--force: write FILE even if it has other content",
        "--check: write nothing; exit 100 unless FILE, or the declared schema of TOPIC, is the same version",
        f"--topic TOPIC: with --check (of a KEY_VALUE topic, its value): {PART_HELP}",
    )


def _add_class_options(parser: argparse.ArgumentParser, default: str = "no") -> None:
    """Add the options of the conversion from a class to a definition."""
    parser.add_argument("--type", choices=_TYPES, help="(default: AVRO; of a protobuf message PROTOBUF_NATIVE)")
    parser.add_argument(
        "--always-allow-null",
        action=argparse.BooleanOptionalAction,
        default=None,
        help=f"make fields of object types nullable with default null, as Java's SchemaDefinition does by default (default: {default})",
    )
    add_options(
        parser,
        "--jsr310: write datetime and time in milliseconds, as Java's java.time classes with "
        "withJSR310ConversionEnabled; prints the property to declare",
    )


def run_extract(args: argparse.Namespace, context: Context) -> int:
    """Print, write or compare the definition; return 100 if it is another version than --check expects, else 0."""
    if args.check and (args.out is None) == (args.topic is None):
        raise UsageError("--check needs either --out FILE or --topic TOPIC")
    if args.topic and not args.check:
        raise UsageError("--topic requires --check")
    if args.force and (args.check or not args.out):
        raise UsageError("--force requires --out, without --check")
    if bool(args.jar) != bool(args.java_class) or bool(args.java_class) == bool(args.class_):
        raise UsageError(
            "name one class",
            fix="schemactl extract MODULE:CLASS, or for Java: schemactl extract --jar app.jar --class com.shop.Order",
        )
    args.class_ = args.class_ or args.java_class
    declared = _read_declared(args.topic, context) if args.topic else None
    if declared:
        _follow_type(args, declared[1])
    folder, release = context.directory, _read_release(context)
    expected: list[SchemaInfo] = []
    if declared:
        expected = [declared[1]]
    elif args.out and args.out.lower().endswith(".avsc") and Path(context.directory, args.out).is_file():
        with suppress(SchemactlError):
            expected = [read_file(args.out, context, type_=SchemaType[args.type or "AVRO"])]
    info = _extract_schema(args, folder, release, expected=expected, context=context)
    if info.type.name == "JSON" and not args.java_class:
        from schemactl.classes.extraction import find_json_differences, load_class

        for difference in find_json_differences(load_class(args.class_, folder)):
            context.note(f"{difference.text} Fix: {difference.fix}.")
    if args.jsr310 and info.type.name == "AVRO":
        from schemactl.formats.avro.logical_types import JSR310_PROPERTY

        # Java's producers register this property with the definition.
        if declared is None or declared[1].properties.get(JSR310_PROPERTY) != "true":
            where = "its schema" if declared is None else f"the schema of {declared[0]}"
            context.say(
                f'declare it with {where}, because it tells Java\'s consumers how to read times: properties: {{{JSR310_PROPERTY}: "true"}}'
            )
    if args.check:
        return _check_version(args, context, info, declared)
    if args.out:
        return _write_definition(args, context, info)
    from schemactl.cli.show import print_text
    from schemactl.formats import spec

    print_text(spec(info).text(info) or "")
    return 0


def _extract_schema(
    args: argparse.Namespace,
    folder: str,
    release: Release,
    role: Role | None = None,
    *,
    expected: Sequence[SchemaInfo] = (),
    context: Context | None = None,
) -> SchemaInfo:
    """Return the schema of the class that the command line names.

    Its module is imported from `folder`, or from an installed package. For `role` see `schemactl.classes.extraction.extract`. If the
    definition in the spelling of the class is one of the `expected`, it stays so, although Go's client registers another one.
    """
    from schemactl.classes.extraction import JavaOptions, extract, load_class
    from schemactl.comparison.changes import content_identity

    if getattr(args, "java_class", None):
        from schemactl.classes.java_classes import extract_java_class

        # A class path is relative to the folder that is worked in.
        jars = [str(Path(folder, jar)) for jar in args.jar]
        for option, path in zip(args.jar, jars, strict=True):
            if not (Path(path).parent.is_dir() if Path(path).name == "*" else Path(path).exists()):
                raise UsageError(f"--jar {option}: no such file")
        always_allow_null = args.always_allow_null is not False
        java_type = SchemaType[args.type or "AVRO"]
        return extract_java_class(
            args.java_class, jars, java_type, always_allow_null=always_allow_null, jsr310=args.jsr310
        )
    class_ = load_class(args.class_, folder)
    java = JavaOptions(always_allow_null=bool(args.always_allow_null), jsr310=args.jsr310)
    type_ = SchemaType[args.type] if args.type else None
    if expected:
        info = extract(class_, type_, java, release=release, role=role, is_portable=False)
        if any(content_identity(info) == content_identity(schema) for schema in expected):
            return info
    on_note = context.note if context else None
    return extract(class_, type_, java, release=release, role=role, on_note=on_note)


def _read_release(context: Context) -> Release:
    """Return the release of the project that the folder belongs to, or the default release outside of a project."""
    from schemactl.core.project import Project
    from schemactl.declare import project as declare_project

    try:
        return declare_project.load_project(context.directory, context.config)[0].release
    except SchemactlError:
        return Project().release


def _follow_type(args: argparse.Namespace, topic_schema: SchemaInfo) -> None:
    """Set --type to JSON if the topic has a JSON schema and the command line does not name a type."""
    if args.type is None and topic_schema.type.name == "JSON":
        args.type = "JSON"


def _read_declared(topic: str, context: Context) -> tuple[str, SchemaInfo]:
    """Return the declared schema of a topic, or the value's schema of a KEY_VALUE topic, with a name for it."""
    from schemactl.cli.states import States
    from schemactl.formats import get_pair

    states = States(context, [topic])
    named = states.find_in_working_tree(topic)
    if (declared_topic := states.work.catalog.topics.get(named.topic.name)) and not topic.endswith(
        f"#{named.topic.kind}"
    ):
        _require_kind(topic, [kind.key for kind in declared_topic.kinds])
    if named.info is None:
        raise SchemactlError(f"{named.topic.name} is declared without a schema")
    name, pair = f"{named.topic.name.topic}@work", get_pair(named.info)
    return (f"the value of {name}", pair.value) if pair else (name, named.info)


def _check_version(
    args: argparse.Namespace, context: Context, info: SchemaInfo, declared: tuple[str, SchemaInfo] | None
) -> int:
    from schemactl.cli.diff import Side, render_differences
    from schemactl.comparison.changes import content_identity, has_same_text
    from schemactl.core.catalog import Topic
    from schemactl.core.names import TopicName
    from schemactl.formats.native_definitions import find_rendering

    name, expected = declared or (args.out, read_file(args.out, context, type_=info.type, message=_message_name(info)))
    if content_identity(expected) == content_identity(info):
        if declared is None and args.out.endswith(".proto"):
            expected = render_for_client(expected, "python")
        if info.type is SchemaType.PROTOBUF_NATIVE and expected.schema != info.schema:
            rendering = find_rendering(expected)
            form = (
                f"as {rendering.capitalize()}'s client sends it"
                if rendering
                else "in a form that no Pulsar client sends"
            )
            print(
                f"{name} and {args.class_} have the same content, but are two versions to a broker, which compares bytes: {name} is registered "
                f"{form}, and {args.class_} is sent as Python's client does.\n"
                "  Fix: declare `protobuf: {rendering: python}` if its producers use Python, or send the registered text: "
                "`schemactl docs protobuf-forms`"
            )
            return NEGATIVE
        docs = "" if has_same_text(expected, info) else "; docs, aliases or properties differ, which makes no version"
        print(f"{name} and {args.class_} are one version{docs}.")
        return 0
    topic = Topic(TopicName("", "", name))
    old = Side(topic, "", None, name, name, expected)
    new = Side(topic, "", None, args.class_, args.class_, info)
    print("\n".join(render_differences(old, new, color=context.color)))
    print(f"\n{name} and {args.class_} are two versions.")
    return NEGATIVE


def _write_definition(args: argparse.Namespace, context: Context, info: SchemaInfo) -> int:
    from schemactl.comparison.changes import has_same_text

    path = resolve_output_file(args.out, context, name=f"{args.class_.rpartition(':')[2]}.avsc")
    from schemactl.formats.avro.logical_types import JSR310_PROPERTY

    if args.jsr310 and info.type.name == "AVRO" and path.suffix.lower() == ".json":
        info = replace(info, properties={JSR310_PROPERTY: "true"})
    data = _render_definition(info, path)
    old_data = atomic_files.read(path, below=context.top)
    if old_data is not None and not args.force:
        old_info = None
        with suppress(SchemactlError):
            old_info = read_file(str(path.absolute()), context, type_=info.type, message=_message_name(info))
        if old_info is None or _full_name(old_info) != _full_name(info):
            raise SchemactlError(
                f"{path} does not have a definition of {_full_name(info)}; it was not changed",
                fix="name another file, or overwrite it with --force",
            )
        if old_data == data or has_same_text(old_info, info):
            print(f"{path}: unchanged")
            return 0
    atomic_files.write(path, data, below=context.top)
    print(f"{path}: {'created' if old_data is None else 'updated'}")
    return 0


def _render_definition(info: SchemaInfo, path: Path) -> bytes:
    """Return the content of the file, in the format that its suffix names."""
    from schemactl.formats import protobuf, spec

    suffix = path.suffix.lower()
    if spec(info).language == "avro" and suffix == ".avsc":
        from schemactl.declare.json_formatter import format_json

        return format_json(info.schema.decode()).encode()
    if spec(info).language == "protobuf" and suffix == ".binpb":
        data: bytes = protobuf.load("definition").make_descriptor_set(info.schema)[0]
        return data
    if spec(info).language == "protobuf" and suffix == ".proto":
        root = protobuf.load("definition").parse(info.schema).root
        imports = [path for path in root.file.proto.dependency if not path.startswith("google/protobuf/")]
        if imports:
            raise SchemactlError(
                f"{root.full_name} is declared over several files: it imports {', '.join(imports)}",
                fix=f"write a descriptor set, which contains all files: --out {quote(str(path.with_suffix('.binpb')))}",
            )
        text: str = protobuf.load("definition").proto_text(root.file.proto)
        return text.encode()
    if suffix == ".json":
        from schemactl.core.json_values import json_text

        payload = {"type": info.type.name, "schema": info.schema.decode(), "properties": dict(info.properties)}
        return (json_text(payload) + "\n").encode()
    suffixes = ".avsc" if spec(info).language == "avro" else ".proto, .binpb"
    raise UsageError(
        f"--out {path}: a definition of type {info.type.name} goes into a file that ends in {suffixes} or .json"
    )


def _message_name(info: SchemaInfo) -> str | None:
    return _full_name(info) if info.type.name == "PROTOBUF_NATIVE" else None


def _full_name(info: SchemaInfo) -> str:
    """Return the full name of the record or message, or "" for an invalid definition."""
    from schemactl.formats import protobuf, spec

    try:
        if spec(info).language == "protobuf":
            name: str = protobuf.load("definition").parse(info.schema).root.full_name
            return name
        from schemactl.core.schema import Release
        from schemactl.formats.avro.parser import parse

        return parse(info.schema, Release.R4_0).full_name
    except InvalidSchema:
        return ""


# `schemactl verify-client`.


def configure_verify_client(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `verify-client`."""
    parser.description = (
        "Check whether a service's class can read and write the messages of a topic: as a consumer it must read the "
        "messages of the topic's versions; as a producer it must be an approved version, which the readers of these "
        "versions can read. The topic's strategy decides which versions count: all versions under a ..._TRANSITIVE "
        "strategy, else only the latest.\n\n"
        "It runs in the service's own repository. Its module is imported as `python -m` would, from the folder that the command is "
        "started in: that runs its code. Approved schemas come from the schemas repository, which -C names (a submodule or a clone "
        "with its history), or from a generated package that is installed here (--package), without Git."
    )
    parser.epilog = (
        "exit codes: 0: the class can; 100: it cannot, and the report explains why and what to do; 1: the check could not decide.\n\n"
        "examples:\n"
        "  schemactl -C schemas verify-client billing.events:Order --topic orders --role consumer\n"
        "  schemactl -C schemas verify-client checkout.events:Order --topic orders --role producer --against all\n"
        "  schemactl verify-client billing.events:Order --topic orders --package shop_schemas\n"
    )
    parser.add_argument("class_", metavar="MODULE:CLASS", help=_CLASS_HELP)
    parser.add_argument("--topic", required=True, metavar="TOPIC", help=PART_HELP)
    parser.add_argument(
        "--role", choices=(*_ROLES, "both"), default="both", help="the role of the service (default: both)"
    )
    add_options(
        parser,
        "--against VERSIONS: latest, all, or numbers such as 3,5 (default: the versions that the topic's strategy "
        "requires; with --package all, or latest for a class that is the latest version)",
        "--package NAME: read the approved schemas from this generated package, not from Git",
    )
    parser.add_argument(
        "--half", choices=("key", "value"), help="of a KEY_VALUE topic: the part, key or value (default: value)"
    )
    _add_class_options(parser)
    add_format(parser)


def run_verify_client(args: argparse.Namespace, context: Context) -> int:
    """Compare the class with the approved versions; return 100 if it cannot read or write their messages, else 0."""
    from schemactl.classes.extraction import find_json_differences, is_client_record, load_class
    from schemactl.comparison.changes import VersionIndex
    from schemactl.formats import get_pair

    topic_contract = _read_package_contract(args) if args.package else _read_git_contract(args, context)
    if args.half and not any(get_pair(version.info.load()) for version in topic_contract.versions if version.info):
        raise UsageError(f"--half applies only to KEY_VALUE topics, and {topic_contract.name} is not one")
    # Of a pair, only the key or the value has the class.
    parts = []
    for version in topic_contract.versions:
        pair = get_pair(version.info.load()) if version.info else None
        parts.append(replace(version, info=pair.halves[args.half or "value"]) if pair else version)
    # Clients connect with the pair, so the broker's policies say nothing about one part.
    policies = topic_contract.policies if tuple(parts) == topic_contract.versions else None
    contract = replace(topic_contract, versions=tuple(parts), policies=policies)
    if newest := contract.versions[-1].info:
        _follow_type(args, newest)
    folder, release = str(Path.cwd()), contract.release
    infos = [version.info for version in contract.versions if version.info]
    schemas = {role: _extract_schema(args, folder, release, role, expected=infos) for role in _ROLES}
    matching_version = VersionIndex(contract.versions).find(schemas["producer"])
    against = select_versions(args.against or choose_versions_to_check(contract, matching_version), contract)
    language = "python" if is_client_record(load_class(args.class_, folder)) else ""
    reasons: list[Reason] = []
    for role in _ROLES if args.role == "both" else (args.role,):
        reasons += find_unreadable_versions(role, schemas[role], against, language=language)
        if role == "producer" and matching_version is None:
            reasons.append(_UNAPPROVED)
        elif role == "producer" and matching_version and not args.package:
            reasons += find_other_form(schemas[role], matching_version)
        reasons += find_rejections(role, schemas[role], contract, args.class_)
        if schemas[role].type.name == "JSON":
            for difference in find_json_differences(load_class(args.class_, folder)):
                if role in difference.roles:
                    reasons.append(Reason(role, difference.text, difference.fix, field=difference.field))
    verdict = ClientVerdict(args.class_, args.role, contract, against, matching_version, reasons)
    if args.format == "json":
        context.report_json(**_verdict_value(verdict))
    else:
        context.report("\n".join(_render_verdict(verdict)))
    return NEGATIVE if verdict.failed_roles else 0


def _read_git_contract(args: argparse.Namespace, context: Context) -> Contract:
    from schemactl.broker.connect import resolve_policies_at

    project, _ = context.project()
    catalog = context.approved(project, topics=[args.topic]).catalog
    topic = find_part(args.topic, catalog).load()
    _require_kind(args.topic, [kind.key for kind in topic.kinds])
    broker_strategy, _ = catalog.strategy(topic.name, project.defaults)
    strategy, _ = catalog.data_strategy(topic.name, project.defaults)
    policies = resolve_policies_at(catalog, topic.name, project.defaults, strategy=broker_strategy)
    return _make_contract(topic.name, topic.versions, strategy, policies, project.release)


def _require_kind(text: str, keys: Sequence[str]) -> None:
    """Raise UsageError if `text` names a topic with kinds of events of these keys as a whole: a class is of one kind."""
    if keys:
        names = " or ".join(quote(f"{text}#{key}") for key in keys)
        raise UsageError(
            f"{text}: the topic has several kinds of events, and a class describes only one kind", fix=f"write {names}"
        )


def _read_package_contract(args: argparse.Namespace) -> Contract:
    from schemactl.classes.extraction import load_module
    from schemactl.core.errors import did_you_mean
    from schemactl.core.names import TopicName, find_matching_topics, find_topic
    from schemactl.core.schema import Release, SchemaVersion

    package = load_module(args.package, str(Path.cwd()))
    if not hasattr(package, "TOPICS"):
        raise SchemactlError(
            f"{args.package} is not a package that `schemactl generate` wrote", fix="name such a package"
        )
    names = {TopicName.parse(name): name for name in package.TOPICS}
    text, kind = args.topic, ""
    if "#" in text and not find_matching_topics(text, names):
        text, _, kind = text.rpartition("#")
    name = find_topic(text, names, where=args.package)
    codec = package.topic(names[name]).codec
    # The codec of a topic with several kinds of events has one for each kind.
    keys = [*getattr(codec, "codecs", ())]
    if kind and kind not in keys:
        near = did_you_mean(kind, keys) if keys else ": it has one schema"
        raise UsageError(f"{name} has no kind {kind!r}{near or ': its kinds are ' + ', '.join(keys)}")
    _require_kind(args.topic, [] if kind else keys)
    versions = [
        SchemaVersion(version.number, _make_schema(version.schema))
        for version in codec.versions
        # A package of an earlier release has no kinds.
        if getattr(version, "kind", "") == kind
    ]
    return _make_contract(name, tuple(versions), None, None, Release.R5_0)


def _make_schema(definition: Any) -> SchemaInfo:
    """Return the schema for a definition of a generated package."""
    from schemactl.core.schema import SchemaInfo
    from schemactl.formats.key_value import join

    if hasattr(definition, "encoding"):
        return join(
            key=_make_schema(definition.key), value=_make_schema(definition.value), encoding=definition.encoding
        )
    return SchemaInfo(SchemaType[definition.type], definition.text.encode(), definition.properties)


def _make_contract(
    name: TopicName,
    versions: Sequence[SchemaVersion],
    strategy: CompatibilityStrategy | None,
    policies: PoliciesInForce | None,
    release: Release,
) -> Contract:
    from schemactl.core.schema import get_live_versions

    live_versions = get_live_versions(versions)
    if not live_versions:
        raise SchemactlError(f"{name} has no approved schema", fix="declare one, and merge it")
    return Contract(name, tuple(live_versions), strategy, policies, release)


def _render_verdict(verdict: ClientVerdict) -> Iterator[str]:
    contract, failed = verdict.contract, verdict.failed_roles
    if len(failed) > 1:
        ability = "cannot read or write"
    elif failed:
        ability = "cannot read" if "consumer" in failed else "cannot write"
    else:
        ability = {"consumer": "reads", "producer": "writes", "both": "reads and writes"}[verdict.role]
    strategy = f", {contract.strategy}" if contract.strategy else ""
    compared_versions = format_version_numbers([version.number for version in verdict.against])
    yield f"{verdict.class_} {ability} the approved versions of {contract.name} ({compared_versions}{strategy})."
    yield f"It is version {verdict.same.number}." if verdict.same else "It is not an approved version."
    reasons_by_cause: dict[tuple[object, ...], list[Reason]] = {}
    for reason in verdict.reasons:
        reasons_by_cause.setdefault(reason.cause, []).append(reason)
    for reason, *repeated in reasons_by_cause.values():
        remark = " (warning)" if reason.is_warning else ""
        if reason.strict_only:
            remark = " (warning: Java's clients get through, strict readers do not)"
        verb = "cannot read" if reason.role == "consumer" else "is not read by"
        version_text = f"{verb} {format_version(reason.version)}: " if reason.version else ""
        yield ""
        yield f"{reason.role}: {version_text}{reason.rule}{remark}".rstrip()
        yield f"  {on_one_line(reason.text)}"
        if numbers := {other.version.number for other in repeated if other.version and other.version != reason.version}:
            yield f"  {describe_broken_versions([*numbers])}"
        yield f"  Fix: {on_one_line(reason.fix)}"
        if reason.rule:
            yield f"  More: schemactl explain {reason.rule}"


def _verdict_value(verdict: ClientVerdict) -> dict[str, Any]:
    return {
        "class": verdict.class_,
        "topic": str(verdict.contract.name),
        "role": verdict.role,
        "strategy": verdict.contract.strategy,
        "against": [version.number for version in verdict.against],
        "version": verdict.same.number if verdict.same else None,
        "failed": bool(verdict.failed_roles),
        "findings": [
            {
                "role": reason.role,
                "rule": reason.rule or None,
                "severity": "warning" if reason.is_warning else "error",
                "against": reason.version.number if reason.version else None,
                "reason": reason.text,
                "fix": reason.fix,
            }
            for reason in verdict.reasons
        ],
    }
