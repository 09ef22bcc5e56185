"""The permissions of the user, without which a plan only adds and sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from schemactl.core.names import TopicName


@dataclass(frozen=True, slots=True)
class Permissions:
    """The actions that the user allows beyond adding and setting.

    Attributes:
        delete: the topics whose schema may be deleted with a tombstone, if Git no longer declares it.
        force_delete: the topics whose schema may be deleted without a trace, if Git no longer declares it.
        relax: whether approved versions that today's strategy rejects may be registered under ALWAYS_COMPATIBLE.
        create_tenants: whether tenants that are not declared may be created.
        lose: the addresses of settings that may be set although messages can be lost.
        unreadable: the topics whose retained messages may become unreadable.
    """

    delete: frozenset[TopicName] = frozenset()
    force_delete: frozenset[TopicName] = frozenset()
    relax: bool = False
    create_tenants: bool = False
    lose: frozenset[str] = frozenset()
    unreadable: frozenset[TopicName] = frozenset()

    @classmethod
    def join(cls, parts: Iterable[Permissions]) -> Permissions:
        """Return the permissions of all `parts` together."""
        parts = tuple(parts)
        joined: dict[str, Any] = {}
        for permission in fields(cls):
            values = [getattr(part, permission.name) for part in parts]
            joined[permission.name] = any(values) if permission.default is False else frozenset().union(*values)
        return cls(**joined)
