"""`schemactl admit --jsonl`: whether a broker lets clients in, on JSON lines."""

from __future__ import annotations

import base64
from contextlib import closing
from typing import Any, Final, get_args

from schemactl.broker.connect import Role
from schemactl.cli.json_lines import Answer, Request
from schemactl.core.errors import RegistryError, SchemaRejected
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import BrokerDefaults, CompatibilityStrategy, Policies
from schemactl.core.schema import Release, SchemaInfo, SchemaType, live
from schemactl.formats import InvalidInput, properties_of
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.storage import MEMORY

ROLES: Final = get_args(Role)
_SPACE = NamespaceName("tenant", "namespace")


def connect(request: Request) -> Answer:
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
    with closing(EmbeddedRegistry(MEMORY, release=Release.R4_0, defaults=defaults)) as registry:
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
            aside = " is rejected" if isinstance(error, SchemaRejected) else ""
            raise InvalidInput(f"`{where}`{aside}: {error.what}") from None


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
        if registry.topic(topic) is None:
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
