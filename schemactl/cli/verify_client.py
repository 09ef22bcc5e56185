"""`verify-client`: compare a service's class with the approved versions of a topic."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
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
from schemactl.cli.extract import CLASS_HELP, add_class_options, extract_schema, follow_type, require_kind
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.topic_selection import PART_HELP, find_part
from schemactl.core.errors import ExitCode, SchemactlError, UsageError, did_you_mean
from schemactl.core.names import TopicName, find_matching_topics, find_topic
from schemactl.core.schema import Release, SchemaInfo, SchemaType, SchemaVersion, get_live_versions
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import describe_broken_versions, format_version, format_version_numbers

if TYPE_CHECKING:
    from schemactl.broker.connect import PoliciesInForce
    from schemactl.classes.extraction import Role
    from schemactl.core.policies import CompatibilityStrategy


_ROLES: Final[tuple[Role, ...]] = ("consumer", "producer")

_UNAPPROVED: Final = Reason(
    "producer",
    "Its schema is not an approved version, so readers do not have the schema of its messages.",
    "give the class the fields of a version (`schemactl show TOPIC@N`, or the package's own classes; `schemactl extract --topic TOPIC "
    "--check` shows what differs from the declared one), or declare its definition (`schemactl extract`) and merge it first",
)


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
    parser.add_argument("class_", metavar="MODULE:CLASS", help=CLASS_HELP)
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
    add_class_options(parser)
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
        follow_type(args, newest)
    folder, release = str(Path.cwd()), contract.release
    infos = [version.info for version in contract.versions if version.info]
    schemas = {role: extract_schema(args, folder, release, role, expected=infos) for role in _ROLES}
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
    return ExitCode.NEGATIVE if verdict.failed_roles else 0


def _read_git_contract(args: argparse.Namespace, context: Context) -> Contract:
    from schemactl.broker.connect import resolve_policies_at

    project, _ = context.project()
    catalog = context.approved(project, topics=[args.topic]).catalog
    topic = find_part(args.topic, catalog).load()
    require_kind(args.topic, [kind.key for kind in topic.kinds])
    broker_strategy, _ = catalog.strategy(topic.name, project.defaults)
    strategy, _ = catalog.data_strategy(topic.name, project.defaults)
    policies = resolve_policies_at(catalog, topic.name, project.defaults, strategy=broker_strategy)
    return _make_contract(topic.name, topic.versions, strategy, policies, project.release)


def _read_package_contract(args: argparse.Namespace) -> Contract:
    from schemactl.classes.extraction import load_module

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
    require_kind(args.topic, [] if kind else keys)
    versions = [
        SchemaVersion(version.number, _make_schema(version.schema))
        for version in codec.versions
        # A package of an earlier release has no kinds.
        if getattr(version, "kind", "") == kind
    ]
    return _make_contract(name, tuple(versions), None, None, Release.R5_0)


def _make_schema(definition: Any) -> SchemaInfo:
    """Return the schema for a definition of a generated package."""
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
