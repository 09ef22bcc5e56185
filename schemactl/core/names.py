"""Parse the names of tenants, namespaces and topics, translate them to those of a target, and match them with topic globs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, TypeVar, cast

from schemactl.core.errors import SchemactlError, UsageError, did_you_mean, first_of

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


# Unicode's Default_Ignorable_Code_Point without the characters of the category Cf, which `find_invisible_characters` knows.
_IGNORABLE = re.compile(
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2065\\u3164\\ufe00-\\ufe0f\\uffa0\\ufff0-\\ufff8\\U000e0000-\\U000e0fff]"
)


def find_invisible_characters(text: str) -> list[str]:
    """Return the characters of `text`, in order, that a reader cannot see or takes for a plain space.

    These are the Unicode categories Cc, Cf, Zl, Zp and Zs without U+0020, and the code points that Unicode calls ignorable by default.
    """
    return [letter for letter in dict.fromkeys(text) if _is_invisible(letter)]


def without_invisible_characters(text: str) -> str:
    """Return `text` with a plain space for every other space, and without all other invisible characters."""
    spaced = "".join(" " if unicodedata.category(letter) == "Zs" else letter for letter in text)
    return "".join(letter for letter in spaced if not _is_invisible(letter)).strip()


def _is_invisible(letter: str) -> bool:
    is_hidden = unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp", "Zs") and letter != " "
    return is_hidden or _IGNORABLE.match(letter) is not None


def has_visible_letter(text: str) -> bool:
    """Return whether `text` contains a letter (Unicode categories L*) that a reader can see."""
    return any(unicodedata.category(letter).startswith("L") and not _is_invisible(letter) for letter in text)


def describe_characters(letters: Iterable[str]) -> str:
    """Return characters as code points, each with its Unicode name if it has one: `U+200B ZERO WIDTH SPACE`."""
    return ", ".join(f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".strip() for letter in letters)


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
        ours += [NamespaceName(own, space.name) for own, theirs in self.tenants.items() if theirs == space.tenant]
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


# Topic patterns, the same in every command: a full name, its last parts, or a glob

_GLOB_PARTS = re.compile(r"(?:^|(?<=/))\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|.", re.DOTALL)


def matching(pattern: str, names: Iterable[TopicName], *, globs: bool = True) -> list[TopicName]:
    """Return the topics of `names` that `pattern` names, sorted.

    A pattern is a topic's full name, `tenant/namespace/topic`, or any right-hand part of that (`sales/orders`, `orders`), and
    may be a glob: `*`, `?` and `[...]` stop at `/`, `**` does not. A name that is written out names that topic alone; a
    partition stands for its topic. Without `globs`, which few options that destroy something take, they are plain text.
    """
    text = re.sub("-partition-[0-9]+$", "", pattern)
    known = sorted(names)
    exact = [name for name in known if text in (str(name), name.schema_id)]
    if exact:
        return exact
    try:
        expression = glob_expression(text) if globs else re.compile(re.escape(text))
    except re.error:  # a range that runs backwards, such as [z-a]
        return []
    return [name for name in known if any(expression.fullmatch(spelled) for spelled in _spellings(name))]


def glob_expression(glob: str, *, of_files: bool = False) -> re.Pattern[str]:
    """Return what matches a glob: `*`, `?` and `[...]` stop at `/`, `**` does not; `of_files`, `**/` is any folder, or none.

    The text between two `**`, and in that between two `*`, is matched at its first place only: whatever fits behind a
    later place fits behind that one, too. So a glob is fast, however many wildcards a stranger puts into it.

    Raises:
        re.error: for a range that runs backwards.
    """
    # By `**`, what stands before its part; the parts of each by `*`.
    stretches: list[tuple[str, list[str]]] = [("", [""])]
    for part in _GLOB_PARTS.findall(glob):
        if part == "**/" and of_files:
            stretches.append(("(?:.*?/)??", [""]))
        elif part.startswith("**"):
            stretches.append((".*?", [_expression(each) for each in part[2:]] or [""]))
        elif part == "*":
            stretches[-1][1].append("")
        else:
            stretches[-1][1][-1] += _expression(part)
    expression = ""
    for number, (wildcard, (first, *others)) in enumerate(stretches, start=1):
        is_last = number == len(stretches)
        inner = [f"(?>[^/]*?{each})" for each in others]
        if is_last and others:
            inner[-1] = f"[^/]*?{others[-1]}"
        whole = f"{wildcard}{first}{''.join(inner)}"
        expression += whole if is_last else f"(?>{whole})"
    return re.compile(expression, re.DOTALL)


def is_glob(pattern: str, names: Iterable[TopicName]) -> bool:
    """Return whether `pattern` is a glob, and not itself the name of a topic."""
    return any(each in pattern for each in "*?[") and not matching(pattern, names, globs=False)


def select(
    names: Iterable[TopicName], patterns: Sequence[str] = (), namespaces: Sequence[str] = ()
) -> frozenset[TopicName]:
    """Return the topics in one of `namespaces` that match one of `patterns` and no `!PATTERN`; without any, all."""
    found = [name for name in names if not namespaces or str(name.namespace_name) in namespaces]
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    chosen = {name for pattern in wanted for name in matching(pattern, found)} if wanted else set(found)
    return frozenset(
        chosen.difference(*(matching(pattern[1:], found) for pattern in patterns if pattern.startswith("!")))
    )


def select_known(
    names: Collection[TopicName],
    patterns: Sequence[str],
    namespaces: Sequence[str],
    *,
    where: str = "the approved history",
    known_namespaces: Iterable[str] = (),
) -> frozenset[TopicName]:
    """Return what `select` does; raise UsageError if one of `patterns` or `namespaces` matches nothing, or nothing all of them."""
    spaces = {str(name.namespace_name) for name in names} | {*known_namespaces}
    for text in namespaces:
        if text not in spaces:
            raise UsageError(f"--namespace {text}: there is no such namespace in {where}{did_you_mean(text, spaces)}")
    for pattern in (each.removeprefix("!") for each in patterns):
        if not select(names, [pattern], namespaces):
            inside = f" in {', '.join(namespaces)}" if namespaces else ""
            raise UsageError(f"no topic of {where} matches {pattern!r}{inside}{_near(pattern, names)}")
    found = select(names, patterns, namespaces)
    if patterns and not found:
        raise UsageError(f"{' '.join(patterns)}: these leave no topic")
    return found


def find_one(
    text: str, names: Collection[TopicName], *, globs: bool = True, where: str = "the approved history"
) -> TopicName:
    """Return the one topic of `names` that `text` names; `where` describes them.

    Raises:
        UsageError: there is none, or several; the message lists what comes near.
    """
    found = matching(text, names, globs=globs)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{text!r} names {len(found)} topics: {first_of(found)}", fix="write more of its name")
    if not names:
        raise UsageError(f"there is no topic {text!r}: {where} declares none yet")
    raise UsageError(f"there is no topic {text!r} in {where}{_near(text, names)}")


def _spellings(name: TopicName) -> tuple[str, ...]:
    return str(name), name.schema_id, f"{name.namespace}/{name.topic}", name.topic


def _expression(part: str) -> str:
    """Return the regular expression of one part of a glob."""
    if part == "?":
        return "[^/]"
    if len(part) > 1:
        inside = part[1:-1].replace("\\", r"\\").replace("^", r"\^").replace("[", r"\[")
        return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(part)


def _near(text: str, names: Collection[TopicName]) -> str:
    """Return, as the end of a message, which of `names` was probably meant, or what names there are."""
    # What was left out is no difference: the name is compared with as many parts as it has.
    parts = 0 if "://" in text else text.count("/") + 1
    spelled = {"/".join(str(name).split("/")[-parts:]): str(name) for name in names}
    known = f"; known: {first_of(sorted(names, key=str))}" if names else ""
    return did_you_mean(text, spelled, shown=spelled, most=3) or known
