"""One request to one endpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.responses import Response

from schemactl.core.names import NamespaceName, TopicName
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.metadata import StoredNamespace
from schemactl.serve.answers import RestError

_PARTITION = re.compile(r"(?P<topic>.+)-partition-(?P<index>0|[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class AdminCall:
    """A request as endpoints see it.

    Attributes:
        registry: the registry that is served.
        path: decoded.
        names: the parts of the path that are in braces in its pattern, decoded.
        query: the query parameters, the last one of a name.
        body: as it was sent.
        host: the host and port that the client addressed.
    """

    registry: EmbeddedRegistry
    path: str
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    host: str

    def flag(self, name: str) -> bool:
        """Whether the query has `name=true`, as Boolean.parseBoolean reads it."""
        return self.query.get(name, "").lower() == "true"

    @property
    def namespace(self) -> NamespaceName:
        """The namespace in the path; RestError if its name is not valid."""
        try:
            return NamespaceName.parse(f"{self.names['tenant']}/{self.names['namespace']}")
        except ValueError:
            raise RestError(412, "Namespace name is not valid") from None

    @property
    def topic(self) -> TopicName:
        """The topic in the path, of a partition the topic it belongs to; RestError if its name is not valid."""
        domain = self.names.get("domain", "persistent")
        namespace = f"{self.names['tenant']}/{self.names['namespace']}"
        try:
            return TopicName.parse(f"{domain}://{namespace}/{self.local_name}")
        except ValueError:
            raise RestError(412, "Topic name is not valid") from None

    @property
    def local_name(self) -> str:
        """The topic's local name in the path, without the partition."""
        found = _PARTITION.fullmatch(self.names["topic"])
        return found["topic"] if found else self.names["topic"]

    @property
    def partition(self) -> int | None:
        """The partition's number; what Java does not write as a number, say 01, is none (TopicName.getPartitionIndex)."""
        found = _PARTITION.fullmatch(self.names["topic"])
        return int(found["index"]) if found else None

    def need_namespace(self) -> StoredNamespace:
        """Return the namespace in the path; RestError if there is none."""
        found = self.registry.namespace(self.namespace)
        if found is None:
            raise RestError(404, "Namespace does not exist")
        return found


Endpoint = Callable[[AdminCall], Response]
"""Answers a call; raises a `Rejection` where it is not done."""
