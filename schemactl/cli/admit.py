"""`admit`: predict whether a broker lets a client connect, for one client, JSON lines, or all declared clients."""

from __future__ import annotations

import argparse
import base64
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from schemactl.cli.context import Context
from schemactl.cli.json_lines import Answer, Request, answer_standard_input
from schemactl.cli.parser import add_format, add_options, add_timeout, make_number_type
from schemactl.cli.schema_input import add_schema_arguments, has_schema, read_schema, render_for_client
from schemactl.cli.target_selection import add_target, choose_target
from schemactl.cli.topic_selection import VERSION_HELP, ChosenTopic, choose, find
from schemactl.core.catalog import Catalog, Client, Topic
from schemactl.core.errors import ExitCode, RegistryError, SchemaRejected, UsageError
from schemactl.core.json_values import ClientView
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.schema import Release, SchemaInfo, SchemaType, get_live_versions
from schemactl.core.terminal import format_table, on_one_line

if TYPE_CHECKING:
    from schemactl.broker.connect import ConnectRule, Decision, PoliciesInForce, Role
    from schemactl.registry.embedded import EmbeddedRegistry


_ROLES: Final[tuple[Role, ...]] = ("producer", "consumer", "reader")

_MATRIX_ROLES: Final[tuple[Role, ...]] = ("producer", "consumer")
"""The roles in the tables of --all: brokers treat readers as they do consumers."""

_MAX_REASONS: Final = 3

_JSONL_NAMESPACE: Final = NamespaceName("tenant", "namespace")

_EPILOG = """\
Exit code 100: the broker, or Java's client itself, would reject the client (with --all, one of the declared clients); the answer and
the fix are on standard output. Each answer names the connect rule that decides (P4, C7, ...): `schemactl docs connects` lists all
rules.

JSON lines: {"id", "role", "client_schema", "policies", "topic_state"} in, {"id", "allowed", "live_after", "reason"} or {"id",
"error"} out. `client_schema` has `type` and `text` or `base64`, and `properties`; BYTES is not a schema. `policies` has
`broker_strategy`, `namespace_strategy`, `topic_strategy`, `allow_auto_update`, `validation_enforced`. `topic_state` has the
`steps` that made the topic, and `domain`, `open_producers`, `open_consumers`, `has_data`. The answers are Pulsar 4.0's.

examples:
  schemactl admit producer orders                        with the definition approved now
  schemactl admit consumer orders@2 --target prod        with version 2, as the registry of prod is now
  schemactl admit producer orders --file new.avsc
  schemactl admit producer clicks --language go          a Go program with the approved .proto
  schemactl admit consumer orders --producers 1          with a producer connected
  schemactl admit --all orders                           every declared client, and every version
  schemactl admit --jsonl < connects.jsonl
"""


# `schemactl admit`.


def configure_admit(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `admit`."""
    parser.description = (
        "Predict whether a broker would let a client in, and which version it would register for the client. By "
        "default, the topic is in the state of the approved history; with --target, in the current state of the "
        "registry."
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
    add_target(parser, "the target whose registry has the topic", from_environment=False)
    parser.add_argument("--producers", type=make_number_type(0), default=0, metavar="N", help="how many are connected")
    add_options(
        parser, "--consumers N: the same, not counting AUTO_CONSUME consumers", type=make_number_type(0), default=0
    )
    add_options(parser, "--has-data: the topic holds messages")
    add_format(parser)
    add_timeout(parser)
    add_options(parser, "--jsonl: answer queries on standard input")


def run_admit(args: argparse.Namespace, context: Context) -> int:
    """Predict the decision; return 0 if the broker accepts the client, else 100.

    With --jsonl, return 0 if every line was answered, else 1.
    """
    if args.jsonl:
        if args.role or args.topic or args.all:
            raise UsageError("--jsonl reads its queries from standard input, not from the command line")
        return answer_standard_input(connect)
    if args.all:
        return _print_matrix(args, context)
    if args.role is None or args.topic is None:
        missing = "TOPIC is missing" if args.role else "ROLE and TOPIC are missing"
        raise UsageError(missing, fix="schemactl admit producer|consumer|reader TOPIC, or --all TOPIC")
    from schemactl.broker.connect import TopicState, admit
    from schemactl.formats.native_definitions import find_variants

    if sum((has_schema(args), args.without_schema, args.auto)) > 1:
        raise UsageError("give only one of --file or --type, --without-schema, --auto")
    approved = context.approved(topics=[args.topic])
    chosen = choose(args.topic, approved.catalog)
    client, client_text = _choose_client(args, context, chosen)
    topic, policies, release = _read_topic(args, context, chosen.topic, approved.catalog)
    variants = find_variants(client, args.language) if client and args.language else []
    question = _Question(topic, client, client_text, policies, release, variants)
    state = TopicState(topic.versions, args.producers, args.consumers, args.has_data)
    decision = admit(args.role, client, state, policies, release)
    if args.format == "json":
        context.report_json(
            role=args.role,
            topic=str(topic.name),
            client=client.type.name if client else None,
            **_decision_value(decision),
            variants=variants,
            policies=_policies_value(policies),
        )
    else:
        context.report(_render_decision(question, decision, args.role))
    return 0 if decision.allowed else ExitCode.NEGATIVE


def _print_matrix(args: argparse.Namespace, context: Context) -> int:
    """Print the decisions about all clients of a topic; return 100 if a declared client is rejected, else 0."""
    from schemactl.broker.connect import TopicState, admit, read_connect_rules

    if args.role or has_schema(args) or args.without_schema or args.auto:
        raise UsageError("--all covers every client: remove the role, the schema and --auto")
    approved = context.approved(topics=[args.all])
    approved_topic = find(args.all, approved.catalog)
    topic, policies, release = _read_topic(args, context, approved_topic, approved.catalog)
    state = TopicState(topic.versions, args.producers, args.consumers, args.has_data)
    git = approved_topic.load()
    entries: list[ClientDecision] = []

    def add_entry(client: Client | None, role: Role, built: str, info: SchemaInfo | None) -> None:
        entries.append(ClientDecision(client, role, built, admit(role, info, state, policies, release)))

    # Each declared client of the target, or of any target, then a client that is built with each version.
    for client in git.clients:
        if client.runs_on(*(args.target,) if args.target else ()):
            for number, info in reversed(client.builds(git.versions)):
                built = client.file if number is None else str(number)
                add_entry(client, client.role, built, info and render_for_client(info, client.client_language))
    builds = [(str(version.number), version.info) for version in git.versions if version.info]
    for built, schema in (*builds, ("no schema", None)):
        for role in _MATRIX_ROLES:
            add_entry(None, role, built, schema)
    for role, kind in zip(_MATRIX_ROLES, (SchemaType.AUTO_PUBLISH, SchemaType.AUTO_CONSUME), strict=True):
        add_entry(None, role, "the topic's own", SchemaInfo(kind))
    used = {entry.decision.row for entry in entries}
    rules = {row: rule for row, rule in read_connect_rules().items() if row in used}
    if args.format == "json":
        context.report_json(
            topic=str(git.name),
            decisions=[
                {
                    "client": ClientView.from_client(entry.client) if entry.client else None,
                    "role": entry.role,
                    "built": entry.built,
                    **_decision_value(entry.decision),
                }
                for entry in entries
            ],
            rules={row: rule._asdict() for row, rule in rules.items()},
            policies=_policies_value(policies),
        )
    else:
        context.report(_render_matrix(git.name, entries, rules))
    return 0 if all(entry.decision.allowed for entry in entries if entry.client) else ExitCode.NEGATIVE


class _Question(NamedTuple):
    """A client that connects to a topic.

    Attributes:
        topic: the topic in the approved history or in a registry.
        client: the schema of the client, or None for a client without schema.
        client_text: a description of that schema.
        policies: the policies in force for the topic.
        release: the release of the broker.
        variants: why the client may send another definition, each as a clause about the client.
    """

    topic: Topic
    client: SchemaInfo | None
    client_text: str
    policies: PoliciesInForce
    release: Release
    variants: list[str]


def _choose_client(args: argparse.Namespace, context: Context, chosen: ChosenTopic) -> tuple[SchemaInfo | None, str]:
    """Return the schema of the client, and a description of it."""
    from schemactl.formats.native_definitions import list_native_parts

    if args.without_schema:
        return None, "no schema"
    if args.auto:
        kind = SchemaType.AUTO_PUBLISH if args.role == "producer" else SchemaType.AUTO_CONSUME
        return SchemaInfo(kind), "the topic's own schema, whatever its type"
    form = f", as {args.language.capitalize()}'s client sends it" if args.language else ""
    if has_schema(args):
        info = read_schema(args, context, chosen.topic.name)
        return info, f"{args.file} ({info.type.name}{form})" if args.file else info.type.name
    if chosen.info is None:
        return None, "no schema, as in the approved history"
    described_as = f"version {chosen.version.number}" if chosen.version else "the definition in force"
    info = render_for_client(chosen.info, args.language)
    return info, f"{described_as} ({info.type.name}{form if list_native_parts(info) else ''})"


def _read_topic(
    args: argparse.Namespace, context: Context, topic: Topic, approved: Catalog
) -> tuple[Topic, PoliciesInForce, Release]:
    """Return the topic in the approved history or on the target, with the policies in force and the release of the broker."""
    from schemactl.broker.connect import resolve_policies_at
    from schemactl.registry.interface import Scope

    if args.target is None:
        project, _ = context.project()
        defaults = project.defaults
        strategy, _ = approved.strategy(topic.name, defaults)
        catalog, release = approved, project.release
    else:
        chosen = choose_target(args.target, context)
        name = chosen.target.names.to_target(topic.name)
        with closing(chosen.open(context)) as registry:
            catalog = registry.read(Scope(frozenset({name.namespace_name}), frozenset({name})))
            strategy, release, defaults = registry.strategy(name), registry.release, registry.defaults
        topic = catalog.topics.get(name) or Topic(name)
    return topic.load(), resolve_policies_at(catalog, topic.name, defaults, strategy=strategy), release


def _render_decision(question: _Question, decision: Decision, role: str) -> str:
    """Return the decision, and of a rejection the reasons and a fix."""
    from schemactl.comparison.compatibility import judge
    from schemactl.formats import explain

    verdict = "accepted" if decision.allowed else "rejected"
    lines = [f"{verdict} ({decision.row}): a {role} of {question.topic.name} with {question.client_text}"]
    if decision.registered is not None:
        lines.append(f"  the broker registers it as version {decision.registered}")
    elif decision.allowed and role == "producer" and decision.version is not None:
        lines.append(f"  its messages carry version {decision.version}")
    elif decision.allowed and role == "producer":
        lines.append("  its messages carry no version")
    if not decision.allowed:
        # The broker's message continues with both definitions, which only the JSON report shows.
        subject = "Java's client itself throws" if decision.by_client else "the broker answers"
        lines.append(f"  {subject} {decision.error}: {decision.first_line}")
        client, versions = question.client, question.topic.versions
        if client is not None and not decision.by_client and "\n" in decision.message:
            # The message only has the definitions that were compared.
            breakages = judge(versions, client, question.policies.strategy, question.release).data or ()
            stored = {version.number: version.info for version in versions}
            breakages_of_pair = [breakage for breakage in breakages if breakage.against == breakages[0].against]
            for breakage in breakages_of_pair[:_MAX_REASONS]:
                if old := stored[breakage.against]:
                    reason = explain(breakage, new=client, old=old).reason
                    lines.append(f"  {breakage.incompatibility.rule}: {reason}")
            if len(breakages_of_pair) > _MAX_REASONS:
                lines.append(f"  and {len(breakages_of_pair) - _MAX_REASONS} more reasons")
            if not breakages:
                lines.append(
                    "  the broker's check rejects the two definitions, although messages can be read: --format json shows both answers"
                )
        lines.append(f"  Fix: {_suggest_fix(question, decision)}")
    lines += [f"  the client may send another definition: {variant}" for variant in question.variants]
    return "\n".join(lines)


def _suggest_fix(question: _Question, decision: Decision) -> str:
    from schemactl.comparison.changes import VersionIndex
    from schemactl.formats.native_definitions import list_native_parts

    if decision.by_client:
        return (
            "give the client the topic's schema by a separate class; a consumer may take bytes instead (Schema.BYTES)"
        )
    if question.client is None:
        return "give the client the topic's schema, or turn schema_validation_enforced off"
    stored = get_live_versions(question.topic.versions)
    if not stored:
        return "register the schema before the client connects: `schemactl apply`"
    if (info := stored[-1].info) and info.type is not question.client.type:
        return f"give the client a schema of type {info.type.name}, as the topic has it"
    if decision.row == "P8":
        if list_native_parts(question.client) and VersionIndex(question.topic.versions).find(question.client):
            return "the topic has this definition in the form of another client, and brokers compare bytes: `schemactl docs protobuf-forms`"
        return "clients cannot register schemas here: merge the schema, then run `schemactl apply`"
    return "`schemactl diff` shows the breaking differences between two versions, `schemactl check` those of a changed file"


def _policies_value(policies: PoliciesInForce) -> dict[str, Any]:
    return {
        "schema_compatibility_strategy": policies.strategy.value,
        "is_allow_auto_update_schema": policies.is_allow_auto_update_schema,
        "schema_validation_enforced": policies.schema_validation_enforced,
    }


# `schemactl admit --jsonl`.


def connect(request: Request) -> Answer:
    """Connect the client of one JSON line to a new embedded registry, and return the decision and the live versions after it.

    Raises:
        InvalidInput: if the line is not a valid request.
    """
    from schemactl.broker.connect import Role
    from schemactl.formats.json_definitions import InvalidInput
    from schemactl.registry.embedded import EmbeddedRegistry
    from schemactl.registry.storage import MEMORY

    state, policies = _get_object(request, "topic_state"), _get_object(request, "policies")
    role = _check_choice(request.get("role"), get_args(Role), "role")
    client = _parse_schema(request.get("client_schema"), "client_schema")
    try:
        topic = TopicName.parse(f"{state.get('domain', 'persistent')}://{_JSONL_NAMESPACE}/topic")
    except ValueError as error:
        raise InvalidInput(f"`topic_state.domain`: {error}") from None
    defaults = BrokerDefaults(_get_strategy(policies, "broker_strategy") or CompatibilityStrategy.FULL)
    with closing(EmbeddedRegistry(MEMORY, release=Release.R4_0, defaults=defaults)) as registry:
        registry.create_namespace(_JSONL_NAMESPACE)
        _make_topic(registry, topic, state)
        # The policies of the line count from here on; a flag that no level sets has the broker's default.
        auto_update = policies.get("allow_auto_update", True) is not False
        enforced = policies.get("validation_enforced") is True
        namespace_strategy = _get_strategy(policies, "namespace_strategy") or CompatibilityStrategy.UNDEFINED
        registry.set_namespace_policies(_JSONL_NAMESPACE, Policies(namespace_strategy, auto_update, enforced))
        topic_strategy = _get_strategy(policies, "topic_strategy")
        if topic_strategy is not None:
            if registry.topic(topic) is None:
                registry.create_topic(topic, None)
            registry.set_topic_policies(topic, Policies(topic_strategy))
        decision = registry.connect(
            topic,
            role,  # type: ignore[arg-type]  # one of the roles
            client,
            producers=_get_count(state, "open_producers"),
            consumers=_get_count(state, "open_consumers"),
            has_data=state.get("has_data") is True,
        )
        live_versions = get_live_versions(registry.versions(topic))
    return {
        "allowed": decision.allowed,
        "live_after": [
            {"type": version.info.type.name, "version": version.number} for version in live_versions if version.info
        ],
        "reason": f"{decision.error}: {decision.message}" if decision.error else None,
    }


def _make_topic(registry: EmbeddedRegistry, topic: TopicName, state: dict[str, Any]) -> None:
    """Create the state of the topic by running its steps, under policies that allow everything."""
    from schemactl.broker.connect import Role
    from schemactl.formats.json_definitions import InvalidInput

    registry.set_namespace_policies(
        _JSONL_NAMESPACE,
        Policies(
            CompatibilityStrategy.ALWAYS_COMPATIBLE, is_allow_auto_update_schema=True, schema_validation_enforced=False
        ),
    )
    steps = state.get("steps", [])
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise InvalidInput("`topic_state.steps` is not a list of objects")
    for position, step in enumerate(steps):
        where = f"topic_state.steps[{position}]"
        try:
            info = _parse_schema(step.get("schema"), f"{where}.schema")
            match step.get("op"):
                case "create_topic":
                    registry.create_topic(topic, None)
                case "upload" if info is not None:
                    registry.put_schema(topic, info)
                case "open" | "publish":
                    role = _check_choice(step.get("role", "producer"), get_args(Role), f"{where}.role")
                    decision = registry.connect(topic, role, info)  # type: ignore[arg-type]  # one of the roles
                    if not decision.allowed:
                        raise InvalidInput(f"`{where}` is rejected: {decision.message}")
                case "delete":
                    registry.delete_schema(topic)
                case "force_delete":
                    registry.delete_schema(topic, force=True)
                case "consume_all":
                    pass  # Consumed messages stay stored; whether there are any is in `has_data`.
                case op:
                    raise InvalidInput(f"`{where}.op` is {op!r}, which is not a step")
        except RegistryError as error:
            rejection = " is rejected" if isinstance(error, SchemaRejected) else ""
            raise InvalidInput(f"`{where}`{rejection}: {error.message}") from None


def _parse_schema(value: object, where: str) -> SchemaInfo | None:
    from schemactl.formats.json_definitions import InvalidInput, read_json_properties

    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidInput(f"`{where}` is not an object")
    name = value.get("type")
    if name == "AUTO_PRODUCE":
        return SchemaInfo(SchemaType.AUTO_PUBLISH)
    if not isinstance(name, str) or name not in SchemaType.__members__:
        raise InvalidInput(f"`{where}.type` is {name!r}, which is not a schema type")
    text, encoded = value.get("text"), value.get("base64")
    if isinstance(encoded, str):
        try:
            data = base64.b64decode(encoded, validate=True)
        except ValueError:
            raise InvalidInput(f"`{where}.base64` is not base64") from None
    elif text is None or isinstance(text, str):
        data = (text or "").encode(errors="replace")
    else:
        raise InvalidInput(f"`{where}.text` is not a string")
    return SchemaInfo(SchemaType[name], data, read_json_properties(value, where))


def _get_object(request: Request, name: str) -> dict[str, Any]:
    from schemactl.formats.json_definitions import InvalidInput

    value = request.get(name)
    if not isinstance(value, dict):
        raise InvalidInput(f"`{name}` is not an object")
    return value


def _get_strategy(policies: dict[str, Any], name: str) -> CompatibilityStrategy | None:
    value = policies.get(name)
    if value is None:
        return None
    return CompatibilityStrategy(_check_choice(value, tuple(CompatibilityStrategy), f"policies.{name}"))


def _check_choice(value: object, choices: tuple[str, ...], where: str) -> str:
    from schemactl.formats.json_definitions import InvalidInput

    if not isinstance(value, str) or value not in choices:
        raise InvalidInput(f"`{where}` is {value!r}; expected one of {', '.join(choices)}")
    return value


def _get_count(state: dict[str, Any], name: str) -> int:
    from schemactl.formats.json_definitions import InvalidInput

    count = state.get(name, 0)
    if not isinstance(count, int) or count < 0:
        raise InvalidInput(f"`topic_state.{name}` is {count!r}; expected a number")
    return count


# `schemactl admit --all`.


class ClientDecision(NamedTuple):
    """The decision about a declared client, or about any client that is built with a version (`client` is then None)."""

    client: Client | None
    role: Role
    built: str
    decision: Decision


def _render_matrix(topic: TopicName, entries: Sequence[ClientDecision], rules: Mapping[str, ConnectRule]) -> str:
    """Return the decisions as two tables, and the connect rules behind them."""
    blocks = [str(topic)]
    rows = [
        (
            on_one_line(entry.client.display_name),
            entry.role,
            on_one_line(entry.built),
            _describe_decision(entry.decision),
        )
        for entry in entries
        if entry.client
    ]
    if rows:
        blocks.append("\n".join(format_table([("client", "role", "built with", "answer"), *rows])))
    decisions_by_build: dict[str, list[str]] = {}
    for entry in entries:
        if not entry.client:
            decisions_by_build.setdefault(entry.built, []).append(_describe_decision(entry.decision))
    head = ("built with", "producer", "consumer or reader")
    blocks.append("\n".join(format_table([head, *((built, *texts) for built, texts in decisions_by_build.items())])))
    legend = [(row, f"{rule.when}: {rule.then}") for row, rule in rules.items()]
    blocks.append("\n".join(["the connect rules:", *format_table(legend, indent=2)]))
    return "\n\n".join(blocks)


def _describe_decision(decision: Decision) -> str:
    """Return the decision in a word or two, with the connect rule behind it."""
    if not decision.allowed:
        return f"rejected ({decision.row})"
    if decision.registered is not None:
        return f"accepted, registers {decision.registered} ({decision.row})"
    return f"accepted ({decision.row})"


def _decision_value(decision: Decision) -> dict[str, Any]:
    """Return the JSON value of a decision."""
    return {
        "allowed": decision.allowed,
        "row": decision.row,
        "registers": decision.registered,
        "version": decision.version,
        "error": decision.error or None,
        "reason": decision.message or None,
        "by_client": decision.by_client,
    }
