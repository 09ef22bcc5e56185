"""`schemactl admit`: predicts whether a broker lets a client connect, and which version it registers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options, number
from schemactl.cli.schema_file import add_arguments as add_schema_arguments
from schemactl.cli.schema_file import is_given, read_schema
from schemactl.cli.selection import VERSION_HELP, ChosenTopic, add_target, choose, find, target_of
from schemactl.core.errors import NEGATIVE, UsageError

if TYPE_CHECKING:
    from schemactl.broker.connect import Decision, PoliciesInForce, Role
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.schema import Release, SchemaInfo

_MOST_SHOWN = 3
_ROLES: Final[tuple[Role, ...]] = ("producer", "consumer", "reader")

_EPILOG = """\
Exit code 100: the broker, or Java's client itself, would reject it, with --all a declared client; the answer and the fix are on standard output. Each
answer names the row of Pulsar's rules behind it (P4, C7, ...): docs/reference/connects.md has them all.

JSON lines: {"id", "role", "client_schema", "policies", "topic_state"} in, {"id", "allowed", "live_after", "reason"} or {"id",
"error"} out. `client_schema` has `type` and `text` or `base64`, and `properties`; BYTES is no schema. `policies` has
`broker_strategy`, `namespace_strategy`, `topic_strategy`, `allow_auto_update`, `validation_enforced`. `topic_state` has the
`steps` that made the topic, and `domain`, `open_producers`, `open_consumers`, `has_data`. The answers are Pulsar 4.0's.

examples:
  schemactl admit producer orders                        with the definition approved now
  schemactl admit consumer orders@2 --target prod        with version 2, as the registry of prod is now
  schemactl admit producer orders --file new.avsc
  schemactl admit consumer orders --producers 1          somebody has connected before
  schemactl admit --all orders                           every declared client, and every version
  schemactl admit --jsonl < connects.jsonl
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `admit`."""
    parser.description = (
        "Predict whether a broker would let a client in, and which version it would register for the client. By default the topic is "
        "as the approved history says; with --target, as the registry has it now."
    )
    parser.epilog = _EPILOG
    parser.add_argument("role", nargs="?", choices=_ROLES, metavar="ROLE", help=", ".join(_ROLES))
    parser.add_argument("topic", nargs="?", metavar="TOPIC[@N]", help=VERSION_HELP)
    add_options(parser, "--all TOPIC: every declared client of the topic, and a client with each version")
    add_schema_arguments(parser)
    add_options(
        parser,
        "--without-schema: the client has no schema, as with BYTES",
        "--auto: the client is Java's with AUTO_PRODUCE_BYTES or AUTO_CONSUME",
    )
    add_target(parser, "the registry whose topic is asked about", from_environment=False)
    parser.add_argument("--producers", type=number(0), default=0, metavar="N", help="how many are connected")
    add_options(
        parser, "--consumers N: the same, not counting AUTO_CONSUME consumers", type=number(0), default=0
    )
    add_options(parser, "--has-data: the topic holds messages")
    add_format(parser)
    add_options(parser, "--jsonl: answer questions on standard input")


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: accepted; 100: rejected. With --jsonl 0: every line was read; 1: at least one was not."""
    if args.jsonl:
        if args.role or args.topic or args.all:
            raise UsageError("--jsonl reads its questions from standard input, not from the command line")
        from schemactl.cli.admit_lines import connect
        from schemactl.cli.json_lines import answer_lines

        return 0 if answer_lines(sys.stdin.buffer, sys.stdout, connect) else 1
    if args.all:
        return _all(args, context)
    if args.role is None or args.topic is None:
        missing = "TOPIC is missing" if args.role else "ROLE and TOPIC are missing"
        raise UsageError(missing, fix="schemactl admit producer|consumer|reader TOPIC, or --all TOPIC")
    from schemactl.broker.connect import TopicState, admit

    question = _question(args, context)
    state = TopicState(question.topic.versions, args.producers, args.consumers, args.has_data)
    decision = admit(args.role, question.client, state, question.policies, question.release)
    if args.format == "json":
        context.report_json(**_facts(question, decision, args.role))
    else:
        context.report(_text(question, decision, args.role))
    return 0 if decision.allowed else NEGATIVE


def _all(args: argparse.Namespace, context: Context) -> int:
    from schemactl.broker.connect import TopicState
    from schemactl.cli.admit_matrix import facts, matrix, text

    if args.role or is_given(args) or args.without_schema or args.auto:
        raise UsageError("--all asks about every client: leave out the role, the schema and --auto")
    approved = context.approved()
    chosen = find(args.all, approved.catalog)
    topic, policies, release = _state(args, context, chosen, approved.catalog)
    state = TopicState(topic.versions, args.producers, args.consumers, args.has_data)
    found = matrix(chosen.load(), state, policies, release, args.target)
    if args.format == "json":
        context.report_json(**facts(found), policies=_policies(policies))
    else:
        context.report(text(found))
    return 0 if all(entry.decision.allowed for entry in found.declared) else NEGATIVE


class _Question(NamedTuple):
    """A client and the topic it comes to. `what` says what it brings."""

    topic: Topic
    client: SchemaInfo | None
    what: str
    policies: PoliciesInForce
    release: Release


def _question(args: argparse.Namespace, context: Context) -> _Question:
    if sum((is_given(args), args.without_schema, args.auto)) > 1:
        raise UsageError("give only one of --file or --type, --without-schema, --auto")
    approved = context.approved()
    chosen = choose(args.topic, approved.catalog)
    client, what = _client(args, context, chosen)
    topic, policies, release = _state(args, context, chosen.topic, approved.catalog)
    return _Question(topic, client, what, policies, release)


def _client(args: argparse.Namespace, context: Context, chosen: ChosenTopic) -> tuple[SchemaInfo | None, str]:
    """Return the schema that the client brings, and what to call it."""
    from schemactl.core.schema import SchemaInfo, SchemaType

    if args.without_schema:
        return None, "no schema"
    if args.auto:
        kind = SchemaType.AUTO_PUBLISH if args.role == "producer" else SchemaType.AUTO_CONSUME
        return SchemaInfo(kind), "the topic's own schema, whatever it is"
    if is_given(args):
        brought = read_schema(args, context, chosen.topic.name)
        return brought, f"{args.file} ({brought.type.name})" if args.file else brought.type.name
    if chosen.info is None:
        return None, "no schema, as it is approved"
    which = f"version {chosen.version.number}" if chosen.version else "the definition in force"
    return chosen.info, f"{which} ({chosen.info.type.name})"


def _state(
    args: argparse.Namespace, context: Context, topic: Topic, approved: Catalog
) -> tuple[Topic, PoliciesInForce, Release]:
    """Return the topic as history or a registry has it, and what is in force there."""
    from schemactl.broker.connect import policies_at
    from schemactl.core.catalog import Topic
    from schemactl.registry.interface import Scope

    if args.target is None:
        project, _ = context.project()
        strategy, _ = approved.strategy(topic.name, project.defaults)
        found, release = approved, project.release
    else:
        chosen = target_of(args.target, context)
        project = chosen.project
        name = chosen.target.names.there(topic.name)
        with closing(chosen.open(context)) as registry:
            found = registry.read(Scope(frozenset({name.namespace_name}), frozenset({name})))
            strategy, release = registry.strategy(name), registry.release
        topic = found.topics.get(name) or Topic(name)
    return topic.load(), policies_at(found, topic.name, project.defaults, strategy=strategy), release


def _text(question: _Question, decision: Decision, role: str) -> str:
    verdict = "accepted" if decision.allowed else "rejected"
    lines = [f"{verdict} ({decision.row}): a {role} of {question.topic.name} with {question.what}"]
    if decision.registered is not None:
        lines.append(f"  the broker registers it as version {decision.registered}")
    elif decision.allowed and role == "producer" and decision.version is not None:
        lines.append(f"  its messages carry version {decision.version}")
    elif decision.allowed and role == "producer":
        lines.append("  its messages carry no version")
    if not decision.allowed:
        # Both definitions follow in the broker's message; whoever wants them asks for JSON.
        who = "Java's client itself throws" if decision.by_client else "the broker answers"
        lines.append(f"  {who} {decision.error}: {decision.first_line}")
        lines += [f"  {reason}" for reason in _reasons(question, decision)]
        lines.append(f"  Fix: {_fix(question, decision)}")
    return "\n".join(lines)


def _reasons(question: _Question, decision: Decision) -> Iterator[str]:
    """Say what the broker's message means, where it only has the definitions that it compared."""
    from schemactl.comparison.compatibility import judge
    from schemactl.formats import explain

    if question.client is None or decision.by_client or "\n" not in decision.message:
        return
    topic, policies = question.topic, question.policies
    data = judge(topic.versions, question.client, policies.strategy, question.release).data or ()
    stored = {version.number: version.info for version in topic.versions}
    nearest = [breakage for breakage in data if breakage.against == data[0].against]
    for breakage in nearest[:_MOST_SHOWN]:
        if old := stored[breakage.against]:
            reason = explain(breakage, new=question.client, old=old).reason
            yield f"{breakage.incompatibility.rule}: {reason}"
    if len(nearest) > _MOST_SHOWN:
        yield f"and {len(nearest) - _MOST_SHOWN} more reasons"
    if not data:
        yield "the broker's check rejects the two definitions, although messages can be read: --format json shows both answers"


def _fix(question: _Question, decision: Decision) -> str:
    from schemactl.core.schema import live

    if decision.by_client:
        return "give the client the topic's schema by a class of its own; a consumer may take bytes instead (Schema.BYTES)"
    if question.client is None:
        return "give the client the topic's schema, or turn schema_validation_enforced off"
    stored = live(question.topic.versions)
    if not stored:
        return "register the schema before the client connects: `schemactl apply`"
    if (info := stored[-1].info) and info.type is not question.client.type:
        return f"give the client a schema of type {info.type.name}, as the topic has it"
    if decision.row == "P8":
        return "clients cannot register schemas here: merge the schema, then run `schemactl apply`"
    return "`schemactl diff` shows what it is that breaks between two versions, `schemactl check` for a changed file"


def _facts(question: _Question, decision: Decision, role: str) -> dict[str, Any]:
    from schemactl.cli.admit_matrix import decision_value

    return {
        "role": role,
        "topic": str(question.topic.name),
        "client": question.client.type.name if question.client else None,
        **decision_value(decision),
        "policies": _policies(question.policies),
    }


def _policies(policies: PoliciesInForce) -> dict[str, Any]:
    return {
        "schema_compatibility_strategy": policies.strategy.value,
        "is_allow_auto_update_schema": policies.is_allow_auto_update_schema,
        "schema_validation_enforced": policies.schema_validation_enforced,
    }
