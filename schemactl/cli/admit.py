"""`schemactl admit`: predicts whether a broker lets a client connect, and which version it registers."""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any, Final, NamedTuple, get_args

from schemactl import history
from schemactl.broker import Decision, PoliciesInForce, TopicState, admit, policies_in_force
from schemactl.broker.connect import Role
from schemactl.cli import REFUSED, Context
from schemactl.cli.json_lines import Answer, Request, answer_lines
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.schema_file import add_arguments as add_schema_arguments
from schemactl.cli.schema_file import is_given, read_schema
from schemactl.cli.selection import VERSION_HELP, Chosen, add_target, choose, target_of
from schemactl.compat import judge
from schemactl.definition_json import InvalidInput, properties_of
from schemactl.errors import RegistryError, SchemaRejected, UsageError
from schemactl.formats import explain
from schemactl.model import (
    BrokerDefaults,
    Catalog,
    CompatibilityStrategy,
    NamespaceName,
    Policies,
    Release,
    SchemaInfo,
    SchemaType,
    Topic,
    TopicName,
    live,
)
from schemactl.plan import renamed_topic
from schemactl.registry import Scope
from schemactl.registry.database import MEMORY
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.storage import MemoryStorage

_MOST_SHOWN = 3
ROLES: Final = get_args(Role)
_SPACE = NamespaceName("tenant", "namespace")

_EPILOG = """\
Exit code 100: the broker would reject it; its answer and the fix are on standard output.

JSON lines: {"id", "role", "client_schema", "policies", "topic_state"} in, {"id", "allowed", "live_after", "reason"} or {"id",
"error"} out. `client_schema` has `type` and `text` or `base64`, and `properties`; BYTES is no schema. `policies` has
`broker_strategy`, `namespace_strategy`, `topic_strategy`, `allow_auto_update`, `validation_enforced`. `topic_state` has the
`steps` that made the topic, and `domain`, `open_producers`, `open_consumers`, `has_data`. The answers are Pulsar 4.0's.

examples:
  schemactl admit producer orders                        with the definition approved now
  schemactl admit consumer orders@2 --target prod        with version 2, as the registry of prod is now
  schemactl admit producer orders --file new.avsc
  schemactl admit consumer orders --producers 1          somebody has connected before
  schemactl admit --jsonl < connects.jsonl
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `admit`."""
    parser.description = (
        "Whether a broker would let a client in, and which version it would register for it. The topic is taken as the "
        "approved history says it should be, or, with --target, as the registry has it now."
    )
    parser.epilog = _EPILOG
    parser.add_argument("role", nargs="?", choices=ROLES, metavar="ROLE", help=", ".join(ROLES))
    parser.add_argument("topic", nargs="?", metavar="TOPIC[@N]", help=VERSION_HELP)
    add_schema_arguments(parser)
    add_options(
        parser,
        "--without-schema: the client has no schema, as with BYTES",
        "--auto: the client is an AUTO_PRODUCE_BYTES or AUTO_CONSUME one",
    )
    add_target(parser, "the registry whose topic is asked about", from_environment=False)
    parser.add_argument("--producers", type=int, default=0, metavar="N", help="how many are connected")
    add_options(parser, "--consumers N: the same, not counting AUTO_CONSUME consumers", type=int, default=0)
    add_options(parser, "--has-data: the topic holds messages")
    add_format(parser)
    add_options(parser, "--jsonl: answer questions on standard input")


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0: accepted; 100: rejected. With --jsonl 0: every line was read; 1: at least one was not."""
    if args.jsonl:
        if args.role or args.topic:
            raise UsageError("--jsonl reads its questions from standard input, not from the command line")
        return 0 if answer_lines(sys.stdin.buffer, sys.stdout, partial(connect, release=Release.R4_0)) else 1
    if args.role is None or args.topic is None:
        raise UsageError(
            "who wants in, and where?", fix="schemactl admit producer|consumer|reader TOPIC, or --jsonl"
        )
    question = _question(args, context)
    state = TopicState(question.topic.versions, args.producers, args.consumers, args.has_data)
    decision = admit(args.role, question.client, state, question.policies, question.release)
    if args.format == "json":
        context.report_json(**_facts(question, decision, args.role))
    else:
        context.report(_text(question, decision, args.role))
    return 0 if decision.allowed else REFUSED


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


def _client(args: argparse.Namespace, context: Context, chosen: Chosen) -> tuple[SchemaInfo | None, str]:
    """Return the schema that the client brings, and what to call it."""
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
    if args.target is None:
        project, _ = history.load_project(context.directory, context.config)
        strategy, _ = approved.strategy(topic.name, project.defaults)
        found, release = approved, project.release
    else:
        chosen = target_of(args.target, context)
        project = chosen.project
        name = renamed_topic(topic.name, chosen.target.namespaces)
        with closing(chosen.open(context)) as registry:
            found = registry.read(Scope(frozenset({name.namespace_name}), frozenset({name})))
            strategy, release = registry.strategy(name), registry.release
        topic = found.topics.get(name) or Topic(name)
    space = found.namespaces.get(topic.name.namespace_name)
    in_force = policies_in_force(
        topic.policies, space.policies if space else None, project.defaults, strategy=strategy
    )
    return topic.load(), in_force, release


def _text(question: _Question, decision: Decision, role: str) -> str:
    verdict = "accepted" if decision.allowed else "rejected"
    lines = [f"{verdict}: a {role} of {question.topic.name} with {question.what}"]
    if decision.registered is not None:
        lines.append(f"  the broker registers it as version {decision.registered}")
    elif decision.allowed and role == "producer" and decision.version is not None:
        lines.append(f"  its messages carry version {decision.version}")
    elif decision.allowed and role == "producer":
        lines.append("  its messages carry no version")
    if not decision.allowed:
        # Both definitions follow in the broker's message; whoever wants them asks for JSON.
        message = decision.message.partition("\n")[0].strip().rstrip(":")
        lines.append(f"  the broker answers {decision.error}: {message}")
        lines += [f"  {reason}" for reason in _reasons(question, decision)]
        lines.append(f"  Fix: {_fix(question, decision)}")
    return "\n".join(lines)


def _reasons(question: _Question, decision: Decision) -> Iterator[str]:
    """Say what the broker's message means, where it only has the definitions that it compared."""
    if question.client is None or "\n" not in decision.message:
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

    if question.client is None:
        return "give the client the topic's schema, or turn schema_validation_enforced off"
    if not live(question.topic.versions):
        return "register the schema before the client connects: `schemactl apply`"
    if not question.policies.is_allow_auto_update_schema and "auto updating" in decision.message:
        return "clients cannot register schemas here: merge the schema, then run `schemactl apply`"
    return "`schemactl diff` shows what it is that breaks between two versions, `schemactl check` for a changed file"


def _facts(question: _Question, decision: Decision, role: str) -> dict[str, Any]:
    return {
        "role": role,
        "topic": str(question.topic.name),
        "client": question.client.type.name if question.client else None,
        "allowed": decision.allowed,
        "registers": decision.registered,
        "version": decision.version,
        "error": decision.error or None,
        "reason": decision.message or None,
        "policies": {
            "schema_compatibility_strategy": question.policies.strategy.value,
            "is_allow_auto_update_schema": question.policies.is_allow_auto_update_schema,
            "schema_validation_enforced": question.policies.schema_validation_enforced,
        },
    }


def connect(request: Request, *, release: Release) -> Answer:
    """Return whether the client of one line is let in, and which versions are live then.

    Raises:
        InvalidInput: the line is not what is expected.
    """
    state, policies = _object(request, "topic_state"), _object(request, "policies")
    role = _one_of(request.get("role"), ROLES, "role")
    client = _schema(request.get("client_schema"), "client_schema")
    try:
        topic = TopicName.parse(f"{state.get('domain', 'persistent')}://{_SPACE}/topic")
    except ValueError as error:
        raise InvalidInput(f"`topic_state.domain`: {error}") from None
    defaults = BrokerDefaults(_strategy_of(policies, "broker_strategy") or CompatibilityStrategy.FULL)
    with closing(
        EmbeddedRegistry(MEMORY, storage=MemoryStorage(), release=release, defaults=defaults)
    ) as registry:
        registry.create_namespace(_SPACE)
        _prepare(registry, topic, state)
        _set_policies(registry, topic, policies)
        decision = registry.connect(
            topic,
            role,  # type: ignore[arg-type]  # one of the roles
            client,
            producers=_count(state, "open_producers"),
            consumers=_count(state, "open_consumers"),
            has_data=state.get("has_data") is True,
        )
        held = live(registry.versions(topic))
    return {
        "allowed": decision.allowed,
        "live_after": [
            {"type": version.info.type.name, "version": version.number} for version in held if version.info
        ],
        "reason": f"{decision.error}: {decision.message}" if decision.error else None,
    }


def _prepare(registry: EmbeddedRegistry, topic: TopicName, state: dict[str, Any]) -> None:
    """Take the topic through the steps, under policies that refuse nothing."""
    registry.set_namespace_policies(
        _SPACE,
        Policies(
            CompatibilityStrategy.ALWAYS_COMPATIBLE,
            is_allow_auto_update_schema=True,
            schema_validation_enforced=False,
        ),
    )
    steps = state.get("steps", [])
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise InvalidInput("`topic_state.steps` is not a list of objects")
    for number, step in enumerate(steps):
        where = f"topic_state.steps[{number}]"
        try:
            _step(registry, topic, step, where)
        except RegistryError as error:
            refused = " is rejected" if isinstance(error, SchemaRejected) else ""
            raise InvalidInput(f"`{where}`{refused}: {error.what}") from None


def _step(registry: EmbeddedRegistry, topic: TopicName, step: dict[str, Any], where: str) -> None:
    info = _schema(step.get("schema"), f"{where}.schema")
    match step.get("op"):
        case "create_topic":
            registry.create_topic(topic, None)
        case "upload" if info is not None:
            registry.put_schema(topic, info)
        case "open" | "publish":
            role = _one_of(step.get("role", "producer"), ROLES, f"{where}.role")
            decision = registry.connect(topic, role, info)  # type: ignore[arg-type]  # one of the roles
            if not decision.allowed:
                raise InvalidInput(f"`{where}` is rejected: {decision.message}")
        case "delete":
            registry.delete_schema(topic)
        case "force_delete":
            registry.delete_schema(topic, force=True)
        case "consume_all":
            pass  # what is read stays stored, and `has_data` says what matters
        case other:
            raise InvalidInput(f"`{where}.op` is {other!r}, which is not a step")


def _set_policies(registry: EmbeddedRegistry, topic: TopicName, given: dict[str, Any]) -> None:
    # A flag that is not set at any level is the broker's own.
    auto_update = given.get("allow_auto_update", True) is not False
    enforced = given.get("validation_enforced") is True
    strategy = _strategy_of(given, "namespace_strategy") or CompatibilityStrategy.UNDEFINED
    registry.set_namespace_policies(_SPACE, Policies(strategy, auto_update, enforced))
    own = _strategy_of(given, "topic_strategy")
    if own is not None:
        if registry.metadata.topic(topic) is None:
            registry.create_topic(topic, None)
        registry.set_topic_policies(topic, Policies(own))


def _schema(given: object, where: str) -> SchemaInfo | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise InvalidInput(f"`{where}` is not an object")
    name = given.get("type")
    if name == "AUTO_PRODUCE":
        return SchemaInfo(SchemaType.AUTO_PUBLISH)
    if not isinstance(name, str) or name not in SchemaType.__members__:
        raise InvalidInput(f"`{where}.type` is {name!r}, which is not a schema type")
    return SchemaInfo(SchemaType[name], _content(given, where), properties_of(given, where))


def _content(given: dict[str, Any], where: str) -> bytes:
    text, encoded = given.get("text"), given.get("base64")
    if isinstance(encoded, str):
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError:
            raise InvalidInput(f"`{where}.base64` is not base64") from None
    if text is not None and not isinstance(text, str):
        raise InvalidInput(f"`{where}.text` is not a string")
    return (text or "").encode(errors="replace")


def _object(request: Request, name: str) -> dict[str, Any]:
    found = request.get(name)
    if not isinstance(found, dict):
        raise InvalidInput(f"`{name}` is not an object")
    return found


def _strategy_of(given: dict[str, Any], name: str) -> CompatibilityStrategy | None:
    found = given.get(name)
    return (
        None
        if found is None
        else CompatibilityStrategy(_one_of(found, tuple(CompatibilityStrategy), f"policies.{name}"))
    )


def _one_of(value: object, known: tuple[str, ...], where: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise InvalidInput(f"`{where}` is {value!r}; expected one of {', '.join(known)}")
    return value


def _count(given: dict[str, Any], name: str) -> int:
    found = given.get(name, 0)
    if not isinstance(found, int) or found < 0:
        raise InvalidInput(f"`topic_state.{name}` is {found!r}; expected a number")
    return found
