"""The producers and consumers that a topic declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from schemactl.model.schema import SchemaInfo, SchemaVersion


class ClientBuild(NamedTuple):
    """A definition that a client is built with; without `number` it is its own."""

    number: int | None
    info: SchemaInfo


@dataclass(frozen=True, slots=True)
class Client:
    """A declared producer or consumer of a topic, and which schema it is built with.

    Attributes:
        versions: the first and the last version that what runs of it is built with; None: `schema`, or always the latest.
        file: the definition of its own that it is built with instead, as the declaration names it; "": none.
        schema: what that file defines; None: there is none, or it was not read.
        team: who answers for it; `contact` is where to find them.
        targets: those on which it runs; (): all that have the topic.
    """

    name: str
    role: Literal["producer", "consumer", "reader"]
    versions: tuple[int, int] | None = None
    file: str = ""
    schema: SchemaInfo | None = None
    team: str = ""
    language: str = ""
    contact: str = ""
    targets: tuple[str, ...] = ()

    @property
    def reads(self) -> bool:
        """Whether it reads messages."""
        return self.role != "producer"

    @property
    def who(self) -> str:
        """Its name and its team, for people."""
        return f"{self.name} (team {self.team})" if self.team else self.name

    @property
    def owner(self) -> str:
        """Who answers for it: where to find its team, or else the team's name; "": not declared."""
        return self.contact or self.team

    @property
    def is_latest(self) -> bool:
        """Whether it is built with the latest version, whichever that is."""
        return not (self.versions or self.file)

    @property
    def built(self) -> str:
        """What it is built with, as a declaration writes it."""
        if self.versions:
            first, last = self.versions
            return str(first) if first == last else f"{first}..{last}"
        return self.file or "latest"

    def builds(self, versions: Sequence[SchemaVersion]) -> list[ClientBuild]:
        """Return the definitions that it is built with, of a topic with these versions, the newest first."""
        if self.schema:
            return [ClientBuild(None, self.schema)]
        first, last = self.versions or (0, -1)
        # A tombstone at the end leaves no latest version.
        chosen = (
            versions[-1:] if self.is_latest else [each for each in versions if first <= each.number <= last]
        )
        return [ClientBuild(each.number, each.info) for each in reversed(chosen) if each.info]

    def is_same_build(self, other: Client) -> bool:
        """Whether `other` is the same client, built with the same schema."""
        return (self.name, self.role, self.versions, self.schema) == (
            other.name,
            other.role,
            other.versions,
            other.schema,
        )

    def runs_on(self, *targets: str) -> bool:
        """Whether it runs on one of these targets, or none is given."""
        return not (self.targets and targets) or not {*self.targets}.isdisjoint(targets)

    @classmethod
    def parse(cls, name: str, role: Literal["producer", "consumer", "reader"], schema: int | str) -> Client:
        """Return the client that a declaration with this `schema` means: a number, a range `3..5`, `latest`, or a file."""
        if isinstance(schema, int):
            return cls(name, role, (schema, schema))
        first, dots, last = schema.partition("..")
        if dots and first.isdecimal() and last.isdecimal():
            return cls(name, role, (int(first), int(last)))
        return cls(name, role, file="" if schema == "latest" else schema)
