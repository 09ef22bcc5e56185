"""`schemactl admit --jsonl`: connects in bulk, each at an embedded registry that went through the steps before it."""

from __future__ import annotations

import base64
from contextlib import closing
from typing import Any, Final, get_args

from schemactl.broker.connect import Role
from schemactl.cli.json_lines import Answer, Request, Unreadable
from schemactl.errors import RegistryError, SchemaRefused
from schemactl.model import (
    BrokerDefaults,
    CompatibilityStrategy,
    NamespaceName,
    Policies,
    Release,
    SchemaInfo,
    SchemaType,
    TopicName,
    live,
)
from schemactl.registry.database import MEMORY
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.storage import MemoryStorage

_S = CompatibilityStrategy
_SPACE = NamespaceName("tenant", "namespace")
_ROLES: Final = get_args(Role)


def connect(request: Request, *, release: Release) -> Answer:
    """Return whether the client of one line is let in, and which versions are live then.

    Raises:
        Unreadable: the line is not what is expected.
    """
    state, policies = _object(request, "topic_state"), _object(request, "policies")
    role = _one_of(request.get("role"), _ROLES, "role")
    client = _schema(request.get("client_schema"), "client_schema")
    topic = _topic(state)
    defaults = BrokerDefaults(_strategy(policies, "broker_strategy") or _S.FULL)
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
        Policies(_S.ALWAYS_COMPATIBLE, is_allow_auto_update_schema=True, schema_validation_enforced=False),
    )
    steps = state.get("steps", [])
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise Unreadable("`topic_state.steps` is not a list of objects")
    for number, step in enumerate(steps):
        where = f"topic_state.steps[{number}]"
        try:
            _step(registry, topic, step, where)
        except SchemaRefused as refused:
            raise Unreadable(f"`{where}` is refused: {refused.what}") from None
        except RegistryError as error:
            raise Unreadable(f"`{where}`: {error.what}") from None


def _step(registry: EmbeddedRegistry, topic: TopicName, step: dict[str, Any], where: str) -> None:
    info = _schema(step.get("schema"), f"{where}.schema")
    match step.get("op"):
        case "create_topic":
            registry.create_topic(topic, None)
        case "upload" if info is not None:
            registry.put_schema(topic, info)
        case "open" | "publish":
            role = _one_of(step.get("role", "producer"), _ROLES, f"{where}.role")
            decision = registry.connect(topic, role, info)  # type: ignore[arg-type]  # one of the roles
            if not decision.allowed:
                raise Unreadable(f"`{where}` is refused: {decision.message}")
        case "delete":
            registry.delete_schema(topic)
        case "force_delete":
            registry.delete_schema(topic, force=True)
        case "consume_all":
            pass  # what is read stays stored, and `has_data` says what matters
        case other:
            raise Unreadable(f"`{where}.op` is {other!r}, which is no step")


def _set_policies(registry: EmbeddedRegistry, topic: TopicName, told: dict[str, Any]) -> None:
    # A flag that is not set at any level is the broker's own.
    auto_update, enforced = (
        told.get("allow_auto_update", True) is not False,
        told.get("validation_enforced") is True,
    )
    strategy = _strategy(told, "namespace_strategy") or _S.UNDEFINED
    registry.set_namespace_policies(_SPACE, Policies(strategy, auto_update, enforced))
    own = _strategy(told, "topic_strategy")
    if own is not None:
        if registry.metadata.topic(topic) is None:
            registry.create_topic(topic, None)
        registry.set_topic_policies(topic, Policies(own))


def _topic(state: dict[str, Any]) -> TopicName:
    domain = state.get("domain", "persistent")
    try:
        return TopicName.parse(f"{domain}://{_SPACE}/topic")
    except ValueError as error:
        raise Unreadable(f"`topic_state.domain`: {error}") from None


def _schema(told: object, where: str) -> SchemaInfo | None:
    if told is None:
        return None
    if not isinstance(told, dict):
        raise Unreadable(f"`{where}` is not an object")
    name = told.get("type")
    if name == "AUTO_PRODUCE":
        return SchemaInfo(SchemaType.AUTO_PUBLISH)
    if not isinstance(name, str) or name not in SchemaType.__members__:
        raise Unreadable(f"`{where}.type` is {name!r}, which is no schema type")
    properties = told.get("properties") or {}
    if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
        raise Unreadable(f"`{where}.properties` is not an object of texts")
    return SchemaInfo(SchemaType[name], _content(told, where), properties)


def _content(told: dict[str, Any], where: str) -> bytes:
    text, encoded = told.get("text"), told.get("base64")
    if isinstance(encoded, str):
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError:
            raise Unreadable(f"`{where}.base64` is not base64") from None
    if text is not None and not isinstance(text, str):
        raise Unreadable(f"`{where}.text` is not a text")
    return (text or "").encode(errors="replace")


def _object(request: Request, name: str) -> dict[str, Any]:
    found = request.get(name)
    if not isinstance(found, dict):
        raise Unreadable(f"`{name}` is not an object")
    return found


def _strategy(told: dict[str, Any], name: str) -> CompatibilityStrategy | None:
    found = told.get(name)
    return None if found is None else _S(_one_of(found, tuple(_S), f"policies.{name}"))


def _one_of(value: object, known: tuple[str, ...], where: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise Unreadable(f"`{where}` is {value!r}; expected one of {', '.join(known)}")
    return value


def _count(told: dict[str, Any], name: str) -> int:
    found = told.get(name, 0)
    if not isinstance(found, int) or found < 0:
        raise Unreadable(f"`topic_state.{name}` is {found!r}; expected a number")
    return found
