"""What is said of a topic or namespace for people: it is shown, and makes no version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from types import MappingProxyType
from typing import Any

from schemactl.model.names import TopicName

EMPTY: Mapping[str, str] = MappingProxyType({})


def parse_day(text: str) -> date:
    """Return the day that `text` names as ISO 8601 writes it in full, `2027-01-31`. Raise ValueError where it names none."""
    found = date.fromisoformat(text)
    if found.isoformat() != text:
        raise ValueError(f"{text!r} is not written as {found}")
    return found


@dataclass(frozen=True, slots=True)
class Deprecated:
    """That a topic is to be used no longer: since when, the last day on which it may be there, and what to use instead."""

    since: date | None = None
    remove_after: date | None = None
    use: TopicName | None = None

    @classmethod
    def parse(
        cls, since: str | None = None, remove_after: str | None = None, use: str | None = None
    ) -> Deprecated:
        """Return what a declaration says; its days are as ISO 8601 writes them."""
        first, last = (day and parse_day(day) for day in (since, remove_after))
        return cls(first or None, last or None, TopicName.parse(use) if use else None)

    def values(self) -> dict[str, str]:
        """Return what is said, as a declaration writes it."""
        said = {"since": self.since, "remove_after": self.remove_after, "use": self.use}
        return {key: str(value) for key, value in said.items() if value}


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is said of a topic or namespace for people.

    Attributes:
        owner: who answers for it.
        labels: name to text, to find it by.
        links: name to URL.
    """

    owner: str = ""
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY, hash=False)
    links: Mapping[str, str] = field(default_factory=lambda: EMPTY, hash=False)
    deprecated: Deprecated | None = None

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Metadata:
        """Return what a declaration with these `values` says."""
        said = {key: values[key] for key in cls.__slots__ if key in values}
        if "deprecated" in said:
            said["deprecated"] = Deprecated.parse(**said["deprecated"])
        return cls(**said)

    def values(self) -> dict[str, Any]:
        """Return what is said, as a declaration writes it."""
        said = {
            key: value for key in self.__slots__ if (value := getattr(self, key)) not in ("", EMPTY, None)
        }
        return said | ({"deprecated": self.deprecated.values()} if self.deprecated else {})

    def words(self) -> dict[str, str]:
        """Return what is said, by key, each as one line."""
        said = {
            key: ", ".join(f"{name}={text}" for name, text in value.items())
            if isinstance(value, Mapping)
            else value
            for key, value in self.values().items()
        }
        return {key: " ".join(text.split()) for key, text in said.items()}

    def within(self, namespace: Metadata) -> Metadata:
        """Return a topic's, with what its namespace says of all its topics: their owner, labels, and that they are deprecated."""
        return replace(
            self,
            owner=self.owner or namespace.owner,
            labels={**namespace.labels, **self.labels},
            deprecated=self.deprecated or namespace.deprecated,
        )


NO_METADATA = Metadata()
