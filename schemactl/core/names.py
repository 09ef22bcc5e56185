"""Names of tenants, namespaces and topics: parse them, translate them to the names on a target, and select topics by pattern."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal, TypeVar, cast

from schemactl.core.errors import SchemactlError, UsageError, did_you_mean, join_first

_PART = re.compile(r"[-=:.\w]+", re.ASCII)

Domain = Literal["persistent", "non-persistent", "topic"]

DOMAINS: Final[tuple[Domain, ...]] = ("persistent", "non-persistent", "topic")
"""The domains of topics; scalable topics have the domain "topic"."""

_GLOB_PARTS = re.compile(r"(?:^|(?<=/))\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|.", re.DOTALL)


def parse_tenant(text: str) -> str:
    """Check the name of a tenant, or of a namespace in a tenant, and return it (NamedEntity in Pulsar).

    Raises:
        ValueError: Pulsar rejects the name.
    """
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
        """Parse `tenant/namespace` (NamespaceName and NamedEntity in Pulsar).

        Raises:
            ValueError: Pulsar rejects the name.
        """
        parts = text.split("/")
        if len(parts) != 2:
            raise ValueError(f"{text!r} is not a namespace: expected tenant/namespace")
        return cls(*map(parse_tenant, parts))

    @property
    def namespace_name(self) -> NamespaceName:
        """The name itself; a topic name has the name of its namespace here."""
        return self

    def __str__(self) -> str:
        return f"{self.tenant}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class TopicName:
    """`domain://tenant/namespace/topic`. The key in the registry is `schema_id`: all domains share one list of versions.

    Scalable topics, since Pulsar 5.0, have the domain "topic".
    """

    tenant: str
    namespace: str
    topic: str
    domain: Domain = "persistent"

    @classmethod
    @lru_cache(maxsize=16_384)  # a history contains the same names many times
    def parse(cls, text: str) -> TopicName:
        """Parse a full topic name, or `tenant/namespace/topic` of a persistent topic.

        Raises:
            ValueError: Pulsar rejects the name, or it names one partition.
        """
        domain, separator, rest = text.partition("://")
        if not separator:
            domain, rest = "persistent", text
        if domain not in DOMAINS:
            raise ValueError(f"{domain!r} is not a topic domain: expected persistent, non-persistent or topic")
        parts = rest.split("/", 2)
        if len(parts) != 3 or not parts[2]:
            expected_domain = "topic" if domain == "topic" else "persistent"
            raise ValueError(f"{text!r} is not a topic: expected {expected_domain}://tenant/namespace/topic")
        NamespaceName.parse(f"{parts[0]}/{parts[1]}")
        if re.search(r"[\x00-\x1f\x7f]", parts[2]) or parts[2] != parts[2].strip() or "/" in parts[2]:
            raise ValueError(
                f"{parts[2]!r} is not a topic's local name: no slashes, control characters or outer spaces"
            )
        if re.search(r"-partition-\d+$", parts[2]):
            raise ValueError(f"{text!r} names one partition: declare the topic itself, with `partitions`")
        return cls(parts[0], parts[1], parts[2], domain)

    @property
    def namespace_name(self) -> NamespaceName:
        """The namespace of the topic."""
        return NamespaceName(self.tenant, self.namespace)

    @property
    def schema_id(self) -> str:
        """`tenant/namespace/topic`, the key in the registry: without domain and partition."""
        return f"{self.tenant}/{self.namespace}/{self.topic}"

    @property
    def same_names_elsewhere(self) -> tuple[TopicName, ...]:
        """The topics of the same name in the other domains, which share the registry's list of versions."""
        return tuple(
            TopicName(self.tenant, self.namespace, self.topic, domain) for domain in DOMAINS if domain != self.domain
        )

    @property
    def is_scalable(self) -> bool:
        """Whether this is the name of a scalable topic (Pulsar 5.0)."""
        return self.domain == "topic"

    @property
    def scalable(self) -> TopicName:
        """The scalable topic of this name, which shares the registry's list of versions."""
        return TopicName(self.tenant, self.namespace, self.topic, "topic")

    def __str__(self) -> str:
        return f"{self.domain}://{self.schema_id}"


def parse_name(text: str) -> NamespaceName | TopicName:
    """Parse the name of a namespace or a topic.

    Raises:
        ValueError: Pulsar rejects the name.
    """
    return NamespaceName.parse(text) if text.count("/") == 1 else TopicName.parse(text)


Named = TypeVar("Named", bound=NamespaceName | TopicName)


@dataclass(frozen=True, slots=True)
class TargetNames:
    """The names that declared namespaces and topics have on a target.

    Without `tenants` and `namespaces`, all names are as declared. Otherwise a namespace has a name on the target only if one of them
    contains it or its tenant.

    Attributes:
        target: the name of the target.
        tenants: the target's tenant for each declared tenant.
        namespaces: the target's namespace for each declared namespace; these override `tenants`.
    """

    target: str = ""
    tenants: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[NamespaceName, NamespaceName] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether names can differ from the declared ones."""
        return bool(self.tenants or self.namespaces)

    def to_target(self, name: Named) -> Named:
        """Translate a declared name to the name on the target.

        Raises:
            SchemactlError: its namespace does not have a name on the target.
        """
        if not self:
            return name
        namespace = name.namespace_name
        self.require([namespace])
        return _replace_namespace(name, self._translate(namespace) or namespace)

    def declared(self, name: Named) -> Named | None:
        """Translate a name on the target to the declared name, or return None if no declared name leads to it."""
        if not self:
            return name
        namespace = name.namespace_name
        candidates = [own for own, on_target in self.namespaces.items() if on_target == namespace]
        candidates += [
            NamespaceName(own, namespace.name)
            for own, on_target in self.tenants.items()
            if on_target == namespace.tenant
        ]
        for candidate in candidates:
            if self._translate(candidate) == namespace:
                return _replace_namespace(name, candidate)
        return None

    def has(self, name: NamespaceName) -> bool:
        """Return whether the declared namespace has a name on the target."""
        return not self or self._translate(name) is not None

    def require(self, names: Iterable[NamespaceName]) -> None:
        """Raise SchemactlError if one of these namespaces does not have a name on the target, or two have the same."""
        names = sorted({*names}) if self else []
        missing = [name for name in names if self._translate(name) is None]
        if missing:
            tenants = {**self.tenants, **{name.tenant: name.tenant for name in missing}}
            entries = ", ".join(f"{own}: {on_target}" for own, on_target in tenants.items())
            raise SchemactlError(
                f"target {self.target}: neither its `tenants` nor its `namespaces` have a name for {join_first(missing, 3)}",
                fix=f"write `tenants: {{{entries}}}` in the target, with the names that are used there",
            )

        first_names: dict[NamespaceName | None, NamespaceName] = {}
        for name in names:
            first = first_names.setdefault(self._translate(name), name)
            if first != name:
                raise SchemactlError(
                    f"target {self.target}: {first} and {name} would both be {self._translate(name)} there",
                    fix="give each a separate name under `namespaces` of the target",
                )

    def _translate(self, namespace: NamespaceName) -> NamespaceName | None:
        tenant = self.tenants.get(namespace.tenant)
        return self.namespaces.get(namespace) or (replace(namespace, tenant=tenant) if tenant else None)


def _replace_namespace(name: Named, namespace: NamespaceName) -> Named:
    if isinstance(name, TopicName):
        return cast("Named", TopicName(namespace.tenant, namespace.name, name.topic, name.domain))
    return cast("Named", namespace)


# Topic patterns of all commands: a full name, its last parts, or a glob


def find_matching_topics(pattern: str, names: Iterable[TopicName], *, globs: bool = True) -> list[TopicName]:
    """Return the topics of `names` that match `pattern`, sorted.

    A pattern is a topic's full name, `tenant/namespace/topic`, or the last parts of that (`sales/orders`, `orders`), and can be a
    glob: `*`, `?` and `[...]` do not match `/`, `**` does. A full name matches only that topic; the name of a partition matches
    its topic. Without `globs`, wildcards are plain text: some options that destroy data do not accept globs.
    """
    text = re.sub("-partition-[0-9]+$", "", pattern)
    sorted_names = sorted(names)
    exact = [name for name in sorted_names if text in (str(name), name.schema_id)]
    if exact:
        return exact
    try:
        expression = compile_glob(text) if globs else re.compile(re.escape(text))
    except re.error:  # a range that runs backwards, such as [z-a]
        return []
    return [
        name
        for name in sorted_names
        if any(map(expression.fullmatch, (str(name), name.schema_id, f"{name.namespace}/{name.topic}", name.topic)))
    ]


def compile_glob(glob: str, *, of_files: bool = False) -> re.Pattern[str]:
    """Compile a glob: `*`, `?` and `[...]` do not match `/`, `**` does; with `of_files`, `**/` matches any folders, or none.

    The text between two `**`, and within it between two `*`, is matched at its first occurrence only: a rest that fits after a later
    occurrence fits after the first one as well. So a glob is fast even with many wildcards.

    Raises:
        re.error: a range is reversed.
    """
    # A stretch begins at each `**`: the expression of the `**`, and the expressions between the `*` that follow.
    stretches: list[tuple[str, list[str]]] = [("", [""])]
    for part in _GLOB_PARTS.findall(glob):
        if part == "**/" and of_files:
            stretches.append(("(?:.*?/)??", [""]))
        elif part.startswith("**"):
            stretches.append((".*?", [_compile_part(letter) for letter in part[2:]] or [""]))
        elif part == "*":
            stretches[-1][1].append("")
        else:
            stretches[-1][1][-1] += _compile_part(part)
    expression = ""
    for number, (wildcard, (first, *others)) in enumerate(stretches, start=1):
        is_last = number == len(stretches)
        inner = [f"(?>[^/]*?{other})" for other in others]
        if is_last and others:
            inner[-1] = f"[^/]*?{others[-1]}"
        whole = f"{wildcard}{first}{''.join(inner)}"
        expression += whole if is_last else f"(?>{whole})"
    return re.compile(expression, re.DOTALL)


def is_glob(pattern: str, names: Iterable[TopicName]) -> bool:
    """Return whether `pattern` is a glob, and not itself the name of a topic."""
    return any(wildcard in pattern for wildcard in "*?[") and not find_matching_topics(pattern, names, globs=False)


def select_topics(
    names: Iterable[TopicName], patterns: Sequence[str] = (), namespaces: Sequence[str] = ()
) -> frozenset[TopicName]:
    """Select the topics in one of `namespaces` that match one of `patterns` and no `!PATTERN`; an empty list selects all."""
    in_namespaces = [name for name in names if not namespaces or str(name.namespace_name) in namespaces]
    included = [pattern for pattern in patterns if not pattern.startswith("!")]
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    selected = {*in_namespaces}
    if included:
        selected = {name for pattern in included for name in find_matching_topics(pattern, in_namespaces)}
    return frozenset(selected.difference(*(find_matching_topics(pattern, in_namespaces) for pattern in excluded)))


def select_known_topics(
    names: Collection[TopicName],
    patterns: Sequence[str],
    namespaces: Sequence[str],
    *,
    where: str = "the approved history",
    known_namespaces: Iterable[str] = (),
) -> frozenset[TopicName]:
    """Select topics as `select_topics` does.

    Args:
        names: the topics to select from.
        patterns: topic patterns.
        namespaces: names of namespaces.
        where: a description of `names` for errors.
        known_namespaces: namespaces that need not have a topic in `names`.

    Raises:
        UsageError: one of `patterns` or `namespaces` matches nothing, or no topic matches all of them. A `!PATTERN` with a wildcard
            may match nothing: then there is nothing to leave out. A plain name that matches nothing is probably misspelled.
    """
    all_namespaces = {str(name.namespace_name) for name in names} | {*known_namespaces}
    for namespace in namespaces:
        if namespace not in all_namespaces:
            hint = did_you_mean(namespace, all_namespaces)
            raise UsageError(f"--namespace {namespace}: unknown namespace in {where}{hint}")
    for pattern in patterns:
        plain = pattern.removeprefix("!")
        if pattern.startswith("!") and is_glob(plain, names):
            continue
        if not select_topics(names, [plain], namespaces):
            inside = f" in {', '.join(namespaces)}" if namespaces else ""
            raise UsageError(f"no topic of {where} matches {plain!r}{inside}{_suggest_names(plain, names)}")
    selected = select_topics(names, patterns, namespaces)
    if patterns and not selected:
        raise UsageError(f"{' '.join(patterns)}: no topic matches all of these patterns")
    return selected


def format_kind_name(topic: TopicName, kind: str) -> str:
    """Return `TOPIC#KIND`, as the command line names a kind of events of a topic, or `TOPIC` for no kind."""
    return f"{topic}#{kind}" if kind else str(topic)


def find_topic(
    text: str, names: Collection[TopicName], *, globs: bool = True, where: str = "the approved history"
) -> TopicName:
    """Find the one topic of `names` that matches `text`; `where` describes `names` in errors.

    Raises:
        UsageError: no topic or several topics match; the message lists similar names.
    """
    matches = find_matching_topics(text, names, globs=globs)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"{text!r} names {len(matches)} topics: {join_first(matches)}", fix="write more of its name")
    if not names:
        raise UsageError(f"unknown topic {text!r}: {where} does not declare any topic yet")
    raise UsageError(f"unknown topic {text!r} in {where}{_suggest_names(text, names)}")


def _compile_part(part: str) -> str:
    """Return the regular expression of a character, `?` or `[...]` in a glob."""
    if part == "?":
        return "[^/]"
    if len(part) > 1:
        inside = part[1:-1].replace("\\", r"\\").replace("^", r"\^").replace("[", r"\[")
        return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(part)


def _suggest_names(text: str, names: Collection[TopicName]) -> str:
    """Return the end of a message with the names that are similar to `text`, or with some of `names`."""
    # Compare as many parts of each name as `text` has, so that omitted parts make no difference.
    parts = 0 if "://" in text else text.count("/") + 1
    full_names = {"/".join(str(name).split("/")[-parts:]): str(name) for name in names}
    known = f"; known: {join_first(sorted(names, key=str))}" if names else ""
    return did_you_mean(text, full_names, shown=full_names, most=3) or known


# Topics of the brokers

_SYSTEM_NAMESPACE = re.compile(r"pulsar/(?:system|[^:/]+:[0-9]+)")
_SYSTEM_TOPICS = frozenset(
    {
        "__change_events",
        "__transaction_buffer_snapshot",
        "__transaction_buffer_snapshot_indexes",
        "__transaction_buffer_snapshot_segments",
    }
)


def is_system_topic(name: TopicName) -> bool:
    """Return whether a topic belongs to the brokers, which create it, write to it and omit it from lists of topics.

    Source: SystemTopicNames.isSystemTopic and BrokerService.isSystemTopic of Pulsar 4.0 and 4.2. The namespace `pulsar/system` has
    the topics of the transaction coordinator and the load balancer, a namespace `pulsar/HOST:PORT` the heartbeats of a broker.
    """
    return (
        name.topic in _SYSTEM_TOPICS
        or name.topic.endswith("__transaction_pending_ack")
        or _SYSTEM_NAMESPACE.fullmatch(str(name.namespace_name)) is not None
    )
