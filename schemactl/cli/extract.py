"""`extract` derives a definition from a Python class; `verify-client` compares such a class with the approved one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from schemactl.classes.contract import (
    ClientVerdict,
    Contract,
    Reason,
    _against,
    _default_against,
    _rejected,
    _unreadable,
)
from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.schema_input import read_file
from schemactl.cli.topic_selection import TOPIC_HELP, find, output_file
from schemactl.core import atomic_files
from schemactl.core.errors import NEGATIVE, InvalidSchema, SchemactlError, UsageError
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import break_too, format_version, versions

if TYPE_CHECKING:
    from schemactl.broker.connect import PoliciesInForce
    from schemactl.codec.record_classes import Role
    from schemactl.core.names import TopicName
    from schemactl.core.policies import CompatibilityStrategy
    from schemactl.core.schema import Release, SchemaInfo, SchemaVersion


# `schemactl extract`.


CLASS_HELP: Final = "the class: shop.models:Order, or shop.models:Order.Line for one inside another"
_TYPES: Final = ("AVRO", "JSON", "PROTOBUF_NATIVE")


def configure_extract(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `extract`."""
    parser.description = (
        "Print the definition that a Python class stands for: a dataclass, a pydantic model, an attrs class, a pulsar.schema.Record or "
        "the class of a protobuf message. For the last two, that is what Pulsar's Python client registers.\n\n"
        "MODULE is imported as `python -m` would, from the folder that is worked in and from what is installed beside schemactl: "
        "its code runs in this process. Only this command and verify-client run code; nothing that reads declarations does."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl extract shop.models:Order\n"
        "  schemactl extract shop.models:Order --out namespaces/orders.avsc          write it beside the declaration\n"
        "  schemactl extract shop.models:Order --out namespaces/orders.avsc --check  are the two one version? (exit 100 if not)\n"
        "  schemactl extract shop.models:Order --topic orders --check                the same, with what the files here declare\n"
        "  schemactl extract click_pb2:Click --out click.proto\n"
    )
    parser.add_argument("class_", metavar="MODULE:CLASS", help=CLASS_HELP)
    add_class_options(parser)
    add_options(
        parser,
        "--out FILE: write it to this file: .avsc; of a protobuf message .proto, .binpb, or .json as pulsar-admin takes it",
        "--force: write FILE even if something else is there",
        "--check: write nothing; exit 100 unless FILE, or what TOPIC is declared with, is the same version",
        f"--topic TOPIC: with --check (of a KEY_VALUE topic, its value): {TOPIC_HELP}",
    )


def add_class_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how a class becomes a definition."""
    parser.add_argument("--type", choices=_TYPES, help="(default: AVRO; of a protobuf message PROTOBUF_NATIVE)")
    parser.add_argument(
        "--always-allow-null",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="as Java's SchemaDefinition does by default: what is an object in Java may be null, and is so by default (default: no)",
    )
    add_options(
        parser,
        "--jsr310: as Java's classes of java.time with withJSR310ConversionEnabled: datetime and time in milliseconds",
    )


def class_schema(args: argparse.Namespace, folder: str, release: Release, role: Role | None = None) -> SchemaInfo:
    """Return the schema of the class that the command line names, whose module is looked for in `folder` first.

    For `role` see `extract`.
    """
    from schemactl.classes.extraction import JavaOptions, extract, load_class
    from schemactl.core.schema import SchemaType

    found = load_class(args.class_, folder)
    java = JavaOptions(always_allow_null=args.always_allow_null, jsr310=args.jsr310)
    return extract(found, SchemaType[args.type] if args.type else None, java, release=release, role=role)


def run_extract(args: argparse.Namespace, context: Context) -> int:
    """Return 0: printed, written, or the same version; 100: `--check` found another one."""
    if args.check and (args.out is None) == (args.topic is None):
        raise UsageError("--check compares with one thing: give --out FILE or --topic TOPIC")
    if args.topic and not args.check:
        raise UsageError("--topic belongs to --check")
    if args.force and (args.check or not args.out):
        raise UsageError("--force belongs to --out, without --check")
    declared = _declared(args.topic, context) if args.topic else None
    if declared:
        take_type(args, declared[1])
    info = class_schema(args, context.directory, _release(context))
    if args.check:
        return _check(args, context, info, declared)
    if args.out:
        return _write(args, context, info)
    from schemactl.cli.show import print_text
    from schemactl.formats import spec

    print_text(spec(info).text(info) or "")
    return 0


def _release(context: Context) -> Release:
    """Return the release of the project that the folder belongs to, or the default of one."""
    from schemactl.core.project import Project
    from schemactl.declare import project as declare_project

    try:
        return declare_project.load_project(context.directory, context.config)[0].release
    except SchemactlError:
        return Project().release


def take_type(args: argparse.Namespace, there: SchemaInfo) -> None:
    """Make a JSON schema of the class where the topic has one, and the command line names no type."""
    if args.type is None and there.type.name == "JSON":
        args.type = "JSON"


def _declared(topic: str, context: Context) -> tuple[str, SchemaInfo]:
    """Return what a topic is declared with, and what it is called; of a pair, the value."""
    from schemactl.cli.topic_selection import States
    from schemactl.formats import pair_of

    named = States(context).at_work(topic)
    if named.info is None:
        raise SchemactlError(f"{named.topic.name} is declared without a schema")
    name, pair = f"{named.topic.name.topic}@work", pair_of(named.info)
    return (f"the value of {name}", pair.value) if pair else (name, named.info)


def _check(
    args: argparse.Namespace, context: Context, info: SchemaInfo, declared: tuple[str, SchemaInfo] | None
) -> int:
    from schemactl.cli.diff import Side, differences
    from schemactl.comparison.changes import content_identity, same_text
    from schemactl.core.catalog import Topic
    from schemactl.core.names import TopicName

    what, there = declared or (args.out, read_file(args.out, context, type_=info.type, message=_message(info)))
    if content_identity(there) == content_identity(info):
        docs = "" if same_text(there, info) else "; docs, aliases or properties differ, which makes no version"
        print(f"{what} and {args.class_} are one version{docs}.")
        return 0
    topic = Topic(TopicName("", "", what))
    old = Side(topic, "", None, what, what, there)
    new = Side(topic, "", None, args.class_, args.class_, info)
    print("\n".join(differences(old, new, color=context.color)))
    print(f"\n{what} and {args.class_} are two versions.")
    return NEGATIVE


def _write(args: argparse.Namespace, context: Context, info: SchemaInfo) -> int:
    from schemactl.comparison.changes import same_text

    path = output_file(args.out, context, name=f"{args.class_.rpartition(':')[2]}.avsc")
    data = _content(info, path)
    held = atomic_files.read(path, below=context.top)
    if held is not None and not args.force:
        there = _definition(path, context, info)
        if there is None or _title(there) != _title(info):
            raise SchemactlError(
                f"{path} does not hold a definition of {_title(info)}, and is left alone",
                fix="name another file, or overwrite it with --force",
            )
        if held == data or same_text(there, info):
            print(f"{path}: unchanged")
            return 0
    atomic_files.write(path, data, below=context.top)
    print(f"{path}: {'created' if held is None else 'updated'}")
    return 0


def _content(info: SchemaInfo, path: Path) -> bytes:
    """Return what the file of that name holds."""
    from schemactl.formats import protobuf, spec

    suffix = path.suffix.lower()
    if spec(info).language == "avro" and suffix == ".avsc":
        from schemactl.declare.formatter import laid_out_json

        return laid_out_json(info.schema.decode()).encode()
    if spec(info).language == "protobuf" and suffix == ".binpb":
        data: bytes = protobuf.load("definition").descriptor_set(info.schema)[0]
        return data
    if spec(info).language == "protobuf" and suffix == ".proto":
        root = protobuf.load("definition").parse(info.schema).root
        imports = [each for each in root.file.proto.dependency if not each.startswith("google/protobuf/")]
        if imports:
            raise SchemactlError(
                f"{root.full_name} is declared over several files: it imports {', '.join(imports)}",
                fix=f"write the descriptor set, which has all of them: --out {path.with_suffix('.binpb')}",
            )
        text: str = protobuf.load("definition").proto_text(root.file.proto)
        return text.encode()
    if suffix == ".json":
        from schemactl.core.json_values import json_text

        payload = {"type": info.type.name, "schema": info.schema.decode(), "properties": dict(info.properties)}
        return (json_text(payload) + "\n").encode()
    wanted = ".avsc" if spec(info).language == "avro" else ".proto, .binpb"
    raise UsageError(
        f"--out {path}: a definition of type {info.type.name} goes into a file that ends in {wanted} or .json"
    )


def _definition(path: Path, context: Context, info: SchemaInfo) -> SchemaInfo | None:
    """Return the definition in a file; None: it holds none."""
    try:
        return read_file(str(path.absolute()), context, type_=info.type, message=_message(info))
    except SchemactlError:
        return None


def _message(info: SchemaInfo) -> str | None:
    return _title(info) if info.type.name == "PROTOBUF_NATIVE" else None


def _title(info: SchemaInfo) -> str:
    """Return the full name of the record or message."""
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


_ROLES: Final[tuple[Role, ...]] = ("consumer", "producer")


def configure_verify_client(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `verify-client`."""
    parser.description = (
        "Whether a service's class can read and write what is approved for a topic: as a consumer it must read what the topic's "
        "versions wrote, as a producer it must be an approved version, which their readers can read. How far back, the topic's "
        "strategy says: with a ..._TRANSITIVE one all versions count, else the latest.\n\n"
        "It runs in the service's own repository. Its module is imported as `python -m` would, from the folder that the command is "
        "started in: that runs its code. What is approved comes from the schemas repository, which -C names (a submodule or a clone "
        "with its history), or from a generated package that is installed here (--package), without Git."
    )
    parser.epilog = (
        "exit codes: 0: it can; 100: it cannot, and the report says why and what to do; 1: it could not be decided.\n\n"
        "examples:\n"
        "  schemactl -C schemas verify-client billing.events:Order --topic orders --role consumer\n"
        "  schemactl -C schemas verify-client checkout.events:Order --topic orders --role producer --against all\n"
        "  schemactl verify-client billing.events:Order --topic orders --package shop_schemas\n"
    )
    parser.add_argument("class_", metavar="MODULE:CLASS", help=CLASS_HELP)
    parser.add_argument("--topic", required=True, metavar="TOPIC", help=TOPIC_HELP)
    parser.add_argument("--role", choices=(*_ROLES, "both"), default="both", help="what the service is (default: both)")
    add_options(
        parser,
        "--against VERSIONS: latest, all, or numbers such as 3,5 (default: as the topic's strategy says; with --package all, or latest for a class that is the latest version)",
        "--package NAME: take what is approved from this generated package, not from Git",
    )
    parser.add_argument(
        "--half", choices=("key", "value"), help="of a KEY_VALUE topic: which half it is (default: value)"
    )
    add_class_options(parser)
    add_format(parser)


_UNAPPROVED: Final = Reason(
    "producer",
    "Its schema is not an approved version: no reader knows what its messages are written with.",
    "give the class the fields of a version (`schemactl show TOPIC@N`, or the package's own classes; `schemactl extract --topic TOPIC "
    "--check` shows what differs from the declared one), or declare its definition (`schemactl extract`) and have that approved first",
)


def run_verify_client(args: argparse.Namespace, context: Context) -> int:
    """Return 0: the class reads and writes what is approved; 100: it does not."""
    from schemactl.comparison.changes import Contents
    from schemactl.formats import pair_of

    whole = _of_package(args) if args.package else _of_git(args, context)
    if args.half and not any(pair_of(each.info.load()) for each in whole.versions if each.info):
        raise UsageError(f"--half says which half of a pair it is, and {whole.name} is no KEY_VALUE topic")
    halves = tuple(_half(each, args.half or "value") for each in whole.versions)
    # A half is no schema that a client connects with.
    policies = whole.policies if halves == whole.versions else None
    contract = replace(whole, versions=halves, policies=policies)
    if newest := contract.versions[-1].info:
        take_type(args, newest)
    folder, release = str(Path.cwd()), contract.release
    infos = {role: class_schema(args, folder, release, role) for role in _ROLES}
    same = Contents(contract.versions).find(infos["producer"])
    against = _against(args.against or _default_against(contract, same), contract)
    reasons: list[Reason] = []
    for role in _ROLES if args.role == "both" else (args.role,):
        reasons += _unreadable(role, infos[role], against)
        if role == "producer" and same is None:
            reasons.append(_UNAPPROVED)
        reasons += _rejected(role, infos[role], contract, args.class_)
    answer = ClientVerdict(args.class_, args.role, contract, against, same, reasons)
    if args.format == "json":
        context.report_json(**_facts(answer))
    else:
        context.report("\n".join(_lines(answer)))
    return NEGATIVE if answer.failed_roles else 0


def _of_git(args: argparse.Namespace, context: Context) -> Contract:
    from schemactl.broker.connect import policies_at

    project, _ = context.project()
    catalog = context.approved(project).catalog
    topic = find(args.topic, catalog).load()
    strategy, _ = catalog.strategy(topic.name, project.defaults)
    policies = policies_at(catalog, topic.name, project.defaults, strategy=strategy)
    return _contract(topic.name, topic.versions, strategy, policies, project.release)


def _of_package(args: argparse.Namespace) -> Contract:
    from schemactl.classes.extraction import load_module
    from schemactl.core.names import TopicName, find_one
    from schemactl.core.schema import Release, SchemaVersion

    package = load_module(args.package, str(Path.cwd()))
    if not hasattr(package, "TOPICS"):
        raise SchemactlError(
            f"{args.package} is not a package that `schemactl generate` wrote", fix="name such a package"
        )
    names = {TopicName.parse(name): name for name in package.TOPICS}
    name = find_one(args.topic, names, where=args.package)
    versions = [SchemaVersion(each.number, _info(each.schema)) for each in package.topic(names[name]).codec.versions]
    return _contract(name, tuple(versions), None, None, Release.R5_0)


def _info(definition: Any) -> SchemaInfo:
    """Return the schema that a package has."""
    from schemactl.core.schema import SchemaInfo, SchemaType
    from schemactl.formats.key_value import join

    if hasattr(definition, "encoding"):
        return join(key=_info(definition.key), value=_info(definition.value), encoding=definition.encoding)
    return SchemaInfo(SchemaType[definition.type], definition.text.encode(), definition.properties)


def _contract(
    name: TopicName,
    versions: Sequence[SchemaVersion],
    strategy: CompatibilityStrategy | None,
    policies: PoliciesInForce | None,
    release: Release,
) -> Contract:
    from schemactl.core.schema import live

    found = live(versions)
    if not found:
        raise SchemactlError(
            f"nothing is approved for {name}: it has no schema", fix="declare one, and have it approved"
        )
    return Contract(name, tuple(found), strategy, policies, release)


def _half(version: SchemaVersion, half: Literal["key", "value"]) -> SchemaVersion:
    from schemactl.formats import pair_of

    both = pair_of(version.info.load()) if version.info else None
    return replace(version, info=both.halves[half]) if both else version


def _lines(answer: ClientVerdict) -> Iterator[str]:
    contract, failed = answer.contract, answer.failed_roles
    if len(failed) > 1:
        does = "cannot read or write"
    elif failed:
        does = "cannot read" if "consumer" in failed else "cannot write"
    else:
        does = {"consumer": "reads", "producer": "writes", "both": "reads and writes"}[answer.role]
    strategy = f", {contract.strategy}" if contract.strategy else ""
    against = versions([each.number for each in answer.against])
    yield f"{answer.class_} {does} what is approved for {contract.name} ({against}{strategy})."
    yield f"It is version {answer.same.number}." if answer.same else "It is none of the approved versions."
    causes: dict[tuple[object, ...], list[Reason]] = {}
    for each in answer.reasons:
        causes.setdefault(each.cause, []).append(each)
    for each, *alike in causes.values():
        aside = " (warning: Java's clients get through, strict readers do not)" if each.strict_only else ""
        verb = "cannot read" if each.role == "consumer" else "is not read by"
        where = f"{verb} {format_version(each.version)}: " if each.version else ""
        yield ""
        yield f"{each.role}: {where}{each.rule}{aside}".rstrip()
        yield f"  {on_one_line(each.text)}"
        if older := {one.version.number for one in alike if one.version and one.version != each.version}:
            yield f"  {break_too([*older])}"
        yield f"  Fix: {on_one_line(each.fix)}"
        if each.rule:
            yield f"  More: schemactl explain {each.rule}"


def _facts(answer: ClientVerdict) -> dict[str, Any]:
    return {
        "class": answer.class_,
        "topic": str(answer.contract.name),
        "role": answer.role,
        "strategy": answer.contract.strategy,
        "against": [each.number for each in answer.against],
        "version": answer.same.number if answer.same else None,
        "failed": bool(answer.failed_roles),
        "findings": [
            {
                "role": each.role,
                "rule": each.rule or None,
                "severity": "warning" if each.strict_only else "error",
                "against": each.version.number if each.version else None,
                "reason": each.text,
                "fix": each.fix,
            }
            for each in answer.reasons
        ],
    }
