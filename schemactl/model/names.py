"""The names of tenants, namespaces and topics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

_PART = re.compile(r"[-=:.\w]+", re.ASCII)


def parse_tenant(text: str) -> str:
    """Return `text`; ValueError says why Pulsar rejects it as the name of a tenant, or of a namespace in one (NamedEntity)."""
    if not _PART.fullmatch(text):
        raise ValueError(f"{text!r} is not a name Pulsar accepts: letters, digits and -=:._ only")
    return text


@dataclass(frozen=True, slots=True, order=True)
class NamespaceName:
    """`tenant/namespace`."""

    tenant: str
    name: str

    @classmethod
    def parse(cls, text: str) -> NamespaceName:
        """Return the name in `text`; ValueError says why Pulsar rejects it (NamespaceName, NamedEntity)."""
        parts = text.split("/")
        if len(parts) != 2:
            raise ValueError(f"{text!r} is not a namespace: expected tenant/namespace")
        return cls(*map(parse_tenant, parts))

    def __str__(self) -> str:
        return f"{self.tenant}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class TopicName:
    """`domain://tenant/namespace/topic`. The registry's key is `schema_id`: domains share one list of schemas."""

    tenant: str
    namespace: str
    topic: str
    domain: Literal["persistent", "non-persistent"] = "persistent"

    @classmethod
    @lru_cache(maxsize=16_384)  # a history names the same topics again and again
    def parse(cls, text: str) -> TopicName:
        """Return the name in `text` (`tenant/namespace/topic` is persistent); ValueError says what is wrong with it."""
        domain, separator, rest = text.partition("://")
        if not separator:
            domain, rest = "persistent", text
        if domain not in ("persistent", "non-persistent"):
            raise ValueError(f"{domain!r} is not a topic domain: expected persistent or non-persistent")
        parts = rest.split("/", 2)
        if len(parts) != 3 or not parts[2]:
            raise ValueError(f"{text!r} is not a topic: expected persistent://tenant/namespace/topic")
        NamespaceName.parse(f"{parts[0]}/{parts[1]}")
        if re.search(r"[\x00-\x1f\x7f]", parts[2]) or parts[2] != parts[2].strip() or "/" in parts[2]:
            raise ValueError(
                f"{parts[2]!r} is not a topic's local name: no slashes, control characters or outer spaces"
            )
        if re.search(r"-partition-\d+$", parts[2]):
            raise ValueError(f"{text!r} names one partition: declare the topic itself, with `partitions`")
        return cls(parts[0], parts[1], parts[2], domain)  # type: ignore[arg-type]

    @property
    def namespace_name(self) -> NamespaceName:
        """The namespace that holds the topic."""
        return NamespaceName(self.tenant, self.namespace)

    @property
    def schema_id(self) -> str:
        """`tenant/namespace/topic`, the registry's key: without domain and partition."""
        return f"{self.tenant}/{self.namespace}/{self.topic}"

    def __str__(self) -> str:
        return f"{self.domain}://{self.schema_id}"
