"""The names of tenants, namespaces and topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, TypeVar, cast

from schemactl.errors import SchemactlError, first_of

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

    @property
    def namespace_name(self) -> NamespaceName:
        """The namespace itself, as a topic has its own."""
        return self

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

    @property
    def twin(self) -> TopicName:
        """The same topic in the other domain, which shares the registry's list of versions."""
        is_persistent = self.domain == "persistent"
        return replace(self, domain="non-persistent" if is_persistent else "persistent")

    def __str__(self) -> str:
        return f"{self.domain}://{self.schema_id}"


Named = TypeVar("Named", bound=NamespaceName | TopicName)


def parse_name(text: str) -> NamespaceName | TopicName:
    """Return the name in `text`; ValueError says why it is neither a topic's nor a namespace's."""
    return NamespaceName.parse(text) if text.count("/") == 1 else TopicName.parse(text)


@dataclass(frozen=True, slots=True)
class TargetNames:
    """The names that what is declared has on a target.

    Attributes:
        target: the target's name.
        tenants: declared to the target's, as `namespaces`, which go before them. Without either a name is the declared one; else what
            is in neither has no name there.
    """

    target: str = ""
    tenants: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[NamespaceName, NamespaceName] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether names may differ from the declared ones."""
        return bool(self.tenants or self.namespaces)

    def there(self, name: Named) -> Named:
        """Return the target's name of the namespace or topic declared as `name`. Raise SchemactlError where it has none."""
        if not self:
            return name
        space = name.namespace_name
        self.require([space])
        return _moved(name, self._known(space) or space)

    def declared(self, name: Named) -> Named | None:
        """Return the declared name of the namespace or topic that is `name` on the target; None: nothing declared is called so."""
        if not self:
            return name
        space = name.namespace_name
        ours = [own for own, theirs in self.namespaces.items() if theirs == space]
        ours += [
            NamespaceName(own, space.name) for own, theirs in self.tenants.items() if theirs == space.tenant
        ]
        return next((_moved(name, own) for own in ours if self._known(own) == space), None)

    def has(self, name: NamespaceName) -> bool:
        """Return whether the declared namespace has a name on the target."""
        return not self or self._known(name) is not None

    def require(self, names: Iterable[NamespaceName]) -> None:
        """Raise SchemactlError where one of these namespaces has no name on the target, or two have the same."""
        names = sorted({*names}) if self else []
        missing = [name for name in names if self._known(name) is None]
        if missing:
            tenants = {**self.tenants, **{name.tenant: name.tenant for name in missing}}
            entries = ", ".join(f"{own}: {theirs}" for own, theirs in tenants.items())
            raise SchemactlError(
                f"target {self.target}: neither its `tenants` nor its `namespaces` say what is {first_of(missing, 3)} there",
                fix=f"write `tenants: {{{entries}}}` in the target, with the names that are used there",
            )

        taken: dict[NamespaceName | None, NamespaceName] = {}
        for name in names:
            first = taken.setdefault(self._known(name), name)
            if first != name:
                raise SchemactlError(
                    f"target {self.target}: {first} and {name} would both be {self._known(name)} there",
                    fix="give each a name of its own under `namespaces` of the target",
                )

    def _known(self, space: NamespaceName) -> NamespaceName | None:
        tenant = self.tenants.get(space.tenant)
        return self.namespaces.get(space) or (replace(space, tenant=tenant) if tenant else None)


def _moved(name: Named, space: NamespaceName) -> Named:
    moved = replace(name, tenant=space.tenant, namespace=space.name) if isinstance(name, TopicName) else space
    return cast("Named", moved)
