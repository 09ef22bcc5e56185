"""`schemactl verify-client`: whether a service's class reads and writes what is approved for a topic."""

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
from schemactl.cli.extract import CLASS_HELP, add_class_options, class_schema, take_type
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.selection import TOPIC_HELP, find
from schemactl.core.errors import NEGATIVE, SchemactlError, UsageError
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import break_too, format_version, versions

if TYPE_CHECKING:
    from schemactl.broker.connect import PoliciesInForce
    from schemactl.core.names import TopicName
    from schemactl.core.policies import CompatibilityStrategy
    from schemactl.core.schema import Release, SchemaInfo, SchemaVersion
    from schemactl.typed.records import Role

_ROLES: Final[tuple[Role, ...]] = ("consumer", "producer")


def configure(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument(
        "--role", choices=(*_ROLES, "both"), default="both", help="what the service is (default: both)"
    )
    add_options(
        parser,
        "--against VERSIONS: latest, all, or numbers such as 3,5 (default: as the topic's strategy says; with --package all, or latest for a class that is the latest version)",
        "--package NAME: take what is approved from this generated package, not from Git",
    )
    parser.add_argument(
        "--half",
        choices=("key", "value"),
        help="of a KEY_VALUE topic: which half it is (default: value)",
    )
    add_class_options(parser)
    add_format(parser)


_UNAPPROVED: Final = Reason(
    "producer",
    "Its schema is not an approved version: no reader knows what its messages are written with.",
    "give the class the fields of a version (`schemactl show TOPIC@N`, or the package's own classes; `schemactl extract --topic TOPIC "
    "--check` shows what differs from the declared one), or declare its definition (`schemactl extract`) and have that approved first",
)


def run(args: argparse.Namespace, context: Context) -> int:
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
    versions = [
        SchemaVersion(each.number, _info(each.schema)) for each in package.topic(names[name]).codec.versions
    ]
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
