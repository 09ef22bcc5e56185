"""`schemactl admit --all`: the answer to each declared client of a topic, and to a client with each of its versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from schemactl.core.json_values import client_value
from schemactl.core.terminal import on_one_line, table

if TYPE_CHECKING:
    from schemactl.broker.connect import Decision, PoliciesInForce, Role, TopicState
    from schemactl.core.catalog import Client, Topic
    from schemactl.core.names import TopicName
    from schemactl.core.schema import Release, SchemaInfo

_ROLES: Final[tuple[Role, ...]] = ("producer", "consumer")
"""Brokers answer readers as they do consumers."""


class ClientDecision(NamedTuple):
    """The answer to one client: a declared one, or (None) any that is built so."""

    client: Client | None
    role: Role
    built: str
    decision: Decision


class Matrix(NamedTuple):
    """All answers about a topic."""

    topic: TopicName
    entries: tuple[ClientDecision, ...]

    @property
    def declared(self) -> list[ClientDecision]:
        """The answers to declared clients."""
        return [entry for entry in self.entries if entry.client]


def matrix(
    git: Topic, state: TopicState, policies: PoliciesInForce, release: Release, target: str | None
) -> Matrix:
    """Return the answers to the clients that `git` declares, those on `target` if there is one, and with each version.

    Args:
        git: the topic as it was approved, read; its numbers are those of clients.
        state: of the topic that is asked about.
        policies: in force there.
        release: of the broker.
        target: the one that is asked about; None: none in particular.
    """
    from schemactl.broker.connect import admit
    from schemactl.core.schema import SchemaInfo, SchemaType

    def decide(client: Client | None, role: Role, built: str, info: SchemaInfo | None) -> ClientDecision:
        return ClientDecision(client, role, built, admit(role, info, state, policies, release))

    def entries() -> Iterator[ClientDecision]:
        for client in git.clients:
            if client.runs_on(*(target,) if target else ()):
                for number, info in reversed(client.builds(git.versions)):
                    built = client.file if number is None else str(number)
                    yield decide(client, client.role, built, info)
        versions = ((str(each.number), each.info) for each in git.versions if each.info)
        for built, brought in (*versions, ("no schema", None)):
            for role in _ROLES:
                yield decide(None, role, built, brought)
        for role, kind in zip(_ROLES, (SchemaType.AUTO_PUBLISH, SchemaType.AUTO_CONSUME), strict=True):
            yield decide(None, role, "the topic's own", SchemaInfo(kind))

    return Matrix(git.name, tuple(entries()))


def text(found: Matrix) -> str:
    """Return the answers as two tables, and the rows of Pulsar's rules that they come from."""
    from schemactl.broker.connect import connect_rules

    blocks = [str(found.topic)]
    if found.declared:
        rows = [
            (on_one_line(entry.client.who), entry.role, on_one_line(entry.built), _answer(entry.decision))
            for entry in found.declared
            if entry.client
        ]
        blocks.append("\n".join(table([("client", "role", "built with", "answer"), *rows])))
    others = [entry for entry in found.entries if not entry.client]
    built: dict[str, list[str]] = {}
    for entry in others:
        built.setdefault(entry.built, []).append(_answer(entry.decision))
    head = ("built with", "producer", "consumer or reader")
    blocks.append("\n".join(table([head, *((name, *answers) for name, answers in built.items())])))
    used = {entry.decision.row for entry in found.entries}
    legend = [(row, f"{rule.when}: {rule.then}") for row, rule in connect_rules().items() if row in used]
    blocks.append("\n".join(["the rows of Pulsar's rules:", *(f"  {line}" for line in table(legend))]))
    return "\n\n".join(blocks)


def _answer(decision: Decision) -> str:
    """Return the answer in a word or two, with its row."""
    if not decision.allowed:
        return f"rejected ({decision.row})"
    if decision.registered is not None:
        return f"accepted, registers {decision.registered} ({decision.row})"
    return f"accepted ({decision.row})"


def facts(found: Matrix) -> dict[str, Any]:
    """Return the answers as JSON has them."""
    from schemactl.broker.connect import connect_rules

    used = {entry.decision.row for entry in found.entries}
    return {
        "topic": str(found.topic),
        "decisions": [
            {
                "client": client_value(entry.client) if entry.client else None,
                "role": entry.role,
                "built": entry.built,
                **decision_value(entry.decision),
            }
            for entry in found.entries
        ],
        "rules": {row: rule._asdict() for row, rule in connect_rules().items() if row in used},
    }


def decision_value(decision: Decision) -> dict[str, Any]:
    """Return a decision as JSON has it."""
    return {
        "allowed": decision.allowed,
        "row": decision.row,
        "registers": decision.registered,
        "version": decision.version,
        "error": decision.error or None,
        "reason": decision.message or None,
        "by_client": decision.by_client,
    }
