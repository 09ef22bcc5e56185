"""Read the numbers file of a target, write it for `drift --accept`, and check it against the files and Git's history."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import yaml

from schemactl.comparison.changes import Contents, Generations, content_identity, last_tombstone, unstamped
from schemactl.core import atomic_files
from schemactl.core.catalog import Catalog
from schemactl.core.errors import DeclarationError, InvalidSchema, Problem, SchemactlError, Source, meant
from schemactl.core.names import NamespaceName, TopicName, parse_name
from schemactl.core.policies import SETTINGS, CompatibilityStrategy, Policies
from schemactl.core.project import Project, Target
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion, live, next_number
from schemactl.core.wording import found, policy_words, shortened
from schemactl.declare.document import capped
from schemactl.declare.files import MAX_PROBLEMS, Files, WorktreeFiles, obstacle, read_bytes, resolve, shown
from schemactl.declare.source_location import node_place
from schemactl.declare.target_numbers import (
    Acceptance,
    AcceptanceReason,
    NumberEntry,
    TargetNumbers,
    TopicNumbers,
    unusable,
)
from schemactl.declare.yaml_parser import YamlDocument, read_yaml, scalar
from schemactl.formats import SPECS, spec

# Reading

MAX_NUMBER: Final = 100_000
"""The highest number that can be recorded: no registry is asked for more versions of a topic."""

KEYS: Final = ("git", "foreign", "type", "properties", "deleted", "reason", "accepted", "owner")
_STATES: Final = ("unmanaged", "undeclarable", "policies")
_ACCEPTED: Final = (*_STATES, "fingerprint", "reason", "owner", "accepted", "until")
_SHAPES: Final = "{git: 3}, {foreign: foreign/orders-4.avsc, type: AVRO} or {deleted: true}"
_NUMBER: Final = re.compile(r"0|[1-9][0-9]*")
_FINGERPRINT: Final = re.compile(r"sha256:[0-9a-f]{64}")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def numbers_path(project: Project, target: Target) -> str:
    """Return the path of the target's numbers file, relative to the repository's top level.

    Raise ValueError if the target's name is no file name, and the project file names no file for it.
    """
    return target.numbers or resolve(project.folder, f"numbers/{target.name}.yaml")


def read_numbers(files: Files, project: Project, target: Target) -> TargetNumbers | None:
    """Return what the target's numbers file among `files` records; None if there is no such file.

    Raise DeclarationError with all problems of the file.
    """
    try:
        path = numbers_path(project, target)
    except ValueError:
        return None
    if files.kind(path) == "missing":
        return None
    if why := obstacle(files, path):
        raise DeclarationError([Problem(Source(shown(path)), why, "put the file itself here")])
    documents, problems = read_yaml(path, read_bytes(files, path), number_keys=True)
    if not documents and not problems:
        return TargetNumbers(target.name, path)
    if len(documents) > 1:
        problems.append(
            Problem(node_place(shown(path), documents[1].node), "a numbers file has one document", "remove `---`")
        )
    reader = _NumbersReader(files, path)
    topics = reader.topics(documents[0]) if documents else {}
    if problems := [*problems, *reader.problems]:
        raise DeclarationError(capped(problems))
    return TargetNumbers(target.name, path, topics, reader.accepted)


_Item = tuple[yaml.ScalarNode, yaml.Node, Any]
"""A key of a mapping, and its value."""


class _NumbersReader:
    """Reads one file; `accepted` collects the entries that are not about numbers, `problems` everything wrong."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path
        self.folder = posixpath.dirname(path)
        self.accepted: dict[NamespaceName | TopicName, Acceptance] = {}
        self.problems: list[Problem] = []

    def topics(self, document: YamlDocument) -> dict[TopicName, TopicNumbers]:
        """Return the document's topics; none if it is empty."""
        found_topics: dict[TopicName, TopicNumbers] = {}
        if document.value is None:
            return found_topics
        for key, value_node, value in self._items(document.node, document.value, "topics"):
            try:
                name = parse_name(key.value)
            except ValueError as error:
                self._report(key, str(error), "write persistent://tenant/namespace/topic, or tenant/namespace")
                continue
            items = [*self._items(value_node, value, "version numbers")]
            entries = dict(self._entries(items, is_topic=isinstance(name, TopicName)))
            if name in found_topics or name in self.accepted:
                self._report(key, f"{name} is recorded twice", "put all of it under one of the two")
                continue
            self._accept(name, key, items)
            if isinstance(name, TopicName) and (entries or name not in self.accepted):
                found_topics[name] = TopicNumbers(entries, node_place(shown(self.path), key))
        return found_topics

    def _entries(self, items: Iterable[_Item], *, is_topic: bool) -> Iterator[tuple[int, NumberEntry]]:
        for key, entry_node, entry in items:
            if key.value in _ACCEPTED:
                continue
            if not is_topic:
                self._report(key, f"a namespace has no `{shortened(key.value)}`", "write {unmanaged: true}")
                continue
            if not _NUMBER.fullmatch(key.value) or len(key.value) > 9 or int(key.value) > MAX_NUMBER:
                self._report(
                    key,
                    f"expected a version number of the target, found `{shortened(key.value)}`",
                    f"write a number from 0 to {MAX_NUMBER}, as a message carries it; the keys beside numbers are "
                    f"{', '.join(_ACCEPTED)}",
                )
                continue
            number = int(key.value)
            if read := self._entry(number, key, entry_node, entry):
                yield number, read

    def _entry(self, number: int, key: yaml.Node, node: yaml.Node, value: Any) -> NumberEntry | None:
        before = len(self.problems)
        nodes: dict[str, yaml.Node] = {}
        for each, value_node, _ in self._items(node, value, "what the number stands for"):
            if each.value in KEYS:
                nodes[each.value] = value_node
            else:
                # Looking for near misses takes longer than all else, and no more problems are reported.
                near = meant(each.value, KEYS) if len(self.problems) < MAX_PROBLEMS else None
                fix = f"write `{near}`" if near else f"the keys here are {', '.join(KEYS)}"
                self._report(each, f"unknown key `{shortened(each.value)}`", fix)
        if len(self.problems) == before:
            self._check(number, key, nodes, value)
        if len(self.problems) > before:
            return None
        foreign, path = self._foreign(nodes["foreign"], value) if "foreign" in nodes else (None, None)
        return NumberEntry(
            number,
            git=value.get("git"),
            foreign=foreign,
            deleted=value.get("deleted", False),
            reason=value.get("reason", ""),
            accepted=date.fromisoformat(value["accepted"]) if "accepted" in value else None,
            owner=value.get("owner", ""),
            source=node_place(shown(self.path), key),
            path=path,
        )

    def _accept(self, name: NamespaceName | TopicName, at: yaml.Node, items: Iterable[_Item]) -> None:
        """Read the keys beside the numbers of a namespace or topic into `accepted`, or report what is wrong with them."""
        nodes = {key.value: (node, value) for key, node, value in items if key.value in _ACCEPTED}
        before = len(self.problems)
        for key, (node, value) in nodes.items():
            fits, expected = _VALUES[key]
            if not fits(value):
                self._report(node, f"expected {expected}, found {found(value)}", "")
        if len(self.problems) > before or not nodes:
            return
        states = [key for key in _STATES if key in nodes]
        is_of_schemas = bool({"unmanaged", "undeclarable"} & nodes.keys()) and isinstance(name, TopicName)
        if not states:
            self._report(at, f"nothing says what is accepted of {name}", "write {unmanaged: true}")
        elif states[:2] == ["unmanaged", "undeclarable"] or (
            "undeclarable" in states and isinstance(name, NamespaceName)
        ):
            self._report(nodes["undeclarable"][0], "`undeclarable` is for a topic, instead of `unmanaged`", "keep one")
        elif is_of_schemas != ("fingerprint" in nodes):
            fix = "`schemactl drift --accept` writes it" if is_of_schemas else "remove it"
            self._report(at, "a `fingerprint` belongs to `unmanaged` and `undeclarable` of a topic", fix)
        elif missing := [key for key in ("reason", "accepted") if key not in nodes]:
            self._report(at, f"what is accepted of {name} needs its `{missing[0]}`", f"add {missing[0]}: ...")
        else:
            values = {key: value for key, (_, value) in nodes.items()}
            self.accepted[name] = Acceptance(
                values.get("unmanaged", False),
                values.get("undeclarable", ""),
                values.get("fingerprint", ""),
                Policies.of(values.get("policies", {})),
                AcceptanceReason(
                    values["reason"].strip(),
                    values.get("owner", "").strip(),
                    date.fromisoformat(values["accepted"]),
                    date.fromisoformat(values["until"]) if "until" in values else None,
                ),
                node_place(shown(self.path), at),
            )

    def _check(self, number: int, key: yaml.Node, nodes: Mapping[str, yaml.Node], value: Mapping[str, Any]) -> None:
        """Report what is wrong with the values of an entry whose keys are known."""
        for name, (fits, expected) in _VALUES.items():
            if name in nodes and not fits(value[name]):
                self._report(nodes[name], f"expected {expected}, found {found(value[name])}", "")
        if "git" in nodes and "foreign" in nodes:
            self._report(
                nodes["foreign"], "a number stands for one version: `git` and `foreign` exclude each other", "keep one"
            )
        elif not nodes.keys() & {"git", "foreign", "deleted"}:
            self._report(key, f"nothing says what number {number} stands for", f"write {_SHAPES}")
        for name in ("type", "properties"):
            if name in nodes and "foreign" not in nodes:
                self._report(nodes[name], f"`{name}` belongs to a `foreign` definition", "remove it")
        if "foreign" in nodes and "type" not in nodes:
            self._report(nodes["foreign"], "a foreign definition needs its `type`", "add it: type: AVRO")

    def _foreign(self, node: yaml.Node, value: Mapping[str, Any]) -> tuple[SchemaInfo | None, str | None]:
        """Return the foreign definition and its path; None where that is a problem."""
        written = value["foreign"]
        try:
            path = resolve(self.folder, written)
        except ValueError as error:
            self._report(node, str(error), "put foreign definitions next to the numbers file: foreign/...")
            return None, None
        if self.folder and not path.startswith(f"{self.folder}/"):
            self._report(
                node,
                f"`{written}` is not in the numbers file's folder, {self.folder}",
                "move the definition there: foreign/...",
            )
            return None, None
        if why := obstacle(self.files, path):
            self._report(node, why, "`schemactl drift --accept` writes the definition again; commit it with this file")
            return None, None
        try:
            data = read_bytes(self.files, path)
            return _info(path, data, SchemaType[value["type"]], value.get("properties", {})), path
        except DeclarationError as error:
            self.problems += error.problems
        except (InvalidSchema, UnicodeDecodeError) as error:
            self.problems.append(Problem(Source(shown(path)), str(error), "take it from the registry again"))
        return None, None

    def _items(self, node: yaml.Node, value: Any, what: str) -> Iterator[_Item]:
        """Yield the keys of a mapping with their values; repeated ones were reported when the file was read."""
        if not isinstance(value, dict) or not isinstance(node, yaml.MappingNode):
            self._report(node, f"expected {what} as a mapping, found {found(value)}", "")
            return
        seen = set()
        for key, value_node in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value not in seen:
                seen.add(key.value)
                yield key, value_node, value[key.value]

    def _report(self, node: yaml.Node, what: str, fix: str) -> None:
        self.problems.append(Problem(node_place(shown(self.path), node), what, fix))


def _info(path: str, data: bytes, kind: SchemaType, properties: Mapping[str, str]) -> SchemaInfo:
    """Return the definition in the file `path`: the admin API's text, unless the file is a `.bin`."""
    if SPECS[kind].language == "pair" and not path.endswith(".bin"):
        read = SPECS[kind].from_text(kind, data.decode(), properties)
        return SchemaInfo(kind, read.schema, dict(properties), Source(shown(path)))
    return SchemaInfo(kind, data, dict(properties), Source(shown(path)))


def _is_day(value: Any) -> bool:
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER


def _are_properties(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _are_policies(value: Any) -> bool:
    if not isinstance(value, dict) or not value or not value.keys() <= {*Policies.names()}:
        return False
    others = {key: each for key, each in value.items() if key not in SETTINGS}
    strategy = others.pop("schema_compatibility_strategy", CompatibilityStrategy.FULL.name)
    is_strategy = isinstance(strategy, str) and strategy in CompatibilityStrategy.__members__
    fits = all(row.shape.fits(value[name]) for name, row in SETTINGS.items() if name in value)
    return fits and is_strategy and all(isinstance(each, bool) for each in others.values())


_VALUES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "git": (_is_number, "the number of a version of Git's"),
    "foreign": (lambda value: isinstance(value, str) and bool(value.strip()), "a file's path"),
    "type": (lambda value: isinstance(value, str) and value in SchemaType.__members__, "a schema type such as AVRO"),
    "properties": (_are_properties, "texts by their names"),
    "deleted": (lambda value: value is True, "true"),
    "reason": (lambda value: isinstance(value, str) and bool(value.strip()), "the reason, a text"),
    "accepted": (_is_day, "a day such as 2026-11-22"),
    "owner": (lambda value: isinstance(value, str) and bool(value.strip()), "a person or a team"),
    "until": (_is_day, "a day such as 2027-01-31"),
    "unmanaged": (lambda value: value is True, "true"),
    "undeclarable": (
        lambda value: (
            isinstance(value, str) and value in SchemaType.__members__ and bool(SPECS[SchemaType[value]].undeclarable)
        ),
        "a schema type that no file can declare, such as BYTES",
    ),
    "policies": (_are_policies, "values by their policies, such as {schema_validation_enforced: true}"),
    "fingerprint": (
        lambda value: isinstance(value, str) and bool(_FINGERPRINT.fullmatch(value)),
        "a fingerprint such as sha256:0f3a..., as `schemactl drift --accept` writes it",
    ),
}
"""What each key of an entry may hold, and how that is called."""


# Writing

_HEAD: Final = """\
# Which version each number of {target} stands for, where the two differ, and what else of it is accepted. `schemactl drift
# --target {target} --accept` writes this file; what counts is the one at the tip of the approved ref.
"""
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")


def write_numbers(numbers: TargetNumbers, top: Path) -> list[str]:
    """Write the numbers file, and missing foreign definitions, below `top`; return their paths, relative to `top`.

    The definitions come first, so that the file never names what does not exist. Raise SchemactlError if a path leads through a
    link, or cannot be written.
    """
    files = WorktreeFiles(str(top))
    top = top.resolve()
    topics = {
        name: TopicNumbers({number: _placed(numbers, name, entry) for number, entry in recorded.entries.items()})
        for name, recorded in sorted(numbers.topics.items())
    }
    written = []
    for recorded in topics.values():
        for entry in recorded.entries.values():
            if entry.foreign and entry.path:
                data = _content(entry.foreign, entry.path)
                if files.kind(entry.path) != "file" or files.read(entry.path) != data:
                    _write(top, entry.path, data)
                    written.append(entry.path)
    text = numbers_text(replace(numbers, topics=topics))
    _write(top, numbers.path, text.encode())
    return [*written, numbers.path]


def numbers_text(numbers: TargetNumbers) -> str:
    """Return the file's text: a line for each number."""
    lines = [_HEAD.format(target=shown(numbers.target))]
    folder = posixpath.dirname(numbers.path)
    for name in sorted({*numbers.topics, *numbers.accepted}, key=str):
        lines.append(f"{scalar(str(name))}:\n")
        recorded = numbers.topics.get(name) if isinstance(name, TopicName) else None
        for number, entry in recorded.entries.items() if recorded else ():
            lines.append(f"  {number}: {{{', '.join(_parts(entry, folder))}}}\n")
        if accepted := numbers.accepted.get(name):
            lines += [f"  {line}\n" for line in _accepted(accepted)]
    return "".join(lines)


def _accepted(acceptance: Acceptance) -> Iterator[str]:
    if acceptance.unmanaged:
        yield "unmanaged: true"
    if acceptance.undeclarable:
        yield f"undeclarable: {acceptance.undeclarable}"
    if acceptance.fingerprint:
        yield f'fingerprint: "{acceptance.fingerprint}"'
    if policies := policy_words(acceptance.policies):
        yield f"policies: {{{', '.join(f'{policy}: {value}' for policy, value in policies.items())}}}"
    yield from _decision(acceptance.decision)


def _decision(decision: AcceptanceReason) -> Iterator[str]:
    if decision.reason:
        yield f"reason: {_quoted(decision.reason)}"
    if decision.owner:
        yield f"owner: {_quoted(decision.owner)}"
    if decision.accepted:
        yield f"accepted: {decision.accepted.isoformat()}"
    if decision.until:
        yield f"until: {decision.until.isoformat()}"


def _parts(entry: NumberEntry, folder: str) -> Iterator[str]:
    if entry.git is not None:
        yield f"git: {entry.git}"
    if entry.foreign and entry.path:
        yield f"foreign: {scalar(entry.path.removeprefix(f'{folder}/' if folder else ''))}"
        yield f"type: {entry.foreign.type.name}"
        if entry.foreign.properties:
            written = sorted(entry.foreign.properties.items())
            yield f"properties: {{{', '.join(f'{_quoted(key)}: {_quoted(value)}' for key, value in written)}}}"
    if entry.deleted:
        yield "deleted: true"
    yield from _decision(entry.decision)


def _quoted(text: str) -> str:
    """Return a text in quotes; half a surrogate pair, which has no UTF-8, becomes a question mark."""
    plain = text.encode(errors="replace").decode()
    written = scalar(plain)
    return written if written.startswith('"') else f'"{written}"'


def _placed(numbers: TargetNumbers, name: TopicName, entry: NumberEntry) -> NumberEntry:
    """Return the entry with the path of its foreign definition, a new one where it has none yet."""
    if entry.foreign is None or entry.path:
        return entry
    parts = (numbers.target, name.tenant, name.namespace, name.topic)
    label = ".".join(parts[1:])
    if not all(map(_PLAIN.fullmatch, parts[1:])) or name.domain != "persistent":
        # Names that a file system may take for one another, or not take at all.
        label = (
            f"{re.sub('[^A-Za-z0-9_-]+', '_', name.topic)[:60]}-{hashlib.sha256(str(name).encode()).hexdigest()[:12]}"
        )
    target = (
        numbers.target if _PLAIN.fullmatch(numbers.target) else hashlib.sha256(numbers.target.encode()).hexdigest()[:12]
    )
    content = hashlib.sha256(entry.foreign.schema).hexdigest()[:8]
    file = f"foreign/{target}/{label}-{entry.number}-{content}{_suffix(entry.foreign)}"
    return replace(entry, path=posixpath.join(posixpath.dirname(numbers.path), file))


def _suffix(info: SchemaInfo) -> str:
    return ".bin" if spec(info).language == "pair" and not _pair_text(info) else spec(info).suffix


def _content(info: SchemaInfo, path: str) -> bytes:
    if spec(info).language == "pair" and not path.endswith(".bin"):
        return _pair_text(info)
    return info.schema


def _pair_text(info: SchemaInfo) -> bytes:
    """Return the admin API's text of a definition; nothing where that would not restore its bytes."""
    try:
        text = spec(info).text(info) or ""
        same = spec(info).from_text(info.type, text, info.properties).schema == info.schema
        return text.encode() if same else b""
    except (InvalidSchema, ValueError):
        return b""


def _write(top: Path, path: str, data: bytes) -> None:
    try:
        atomic_files.write(top / path, data, below=str(top))
    except OSError as error:
        raise SchemactlError(
            f"{shown(path)} cannot be written: {error.strerror}", fix="run it again once it can be"
        ) from error


def accept(
    git: Sequence[SchemaVersion],
    entries: Sequence[SchemaVersion],
    before: TopicNumbers | None,
    decision: AcceptanceReason,
) -> TopicNumbers | None:
    """Return the record of what a registry holds of a topic; None if its numbers are Git's.

    The record lists every number that is not Git's, and the last number, so that later ones count from there. A number that the
    registry does not show is recorded as deleted, without its meaning so far: the list may have begun anew. An entry that is
    still right stays as it is.

    Args:
        git: Git's versions.
        entries: the registry's list, in order of number, tombstones among them.
        before: the record so far.
        decision: why it is accepted; it does not expire.
    """
    old = before.entries if before else {}
    known, ended = Generations(git), last_tombstone(git)
    readable = {entry.number for entry in live(entries)}
    found: dict[int, NumberEntry] = {}
    for entry in entries:
        number = entry.number
        version = known.find(entry)
        # Of an earlier generation in Git, too.
        has_ended = number <= ended and number not in readable and number not in old
        new = NumberEntry(
            number,
            git=number if has_ended else version.number if version else None,
            foreign=unstamped(entry.info) if entry.info and not version and not has_ended else None,
            deleted=number not in readable and not has_ended,
            reason=decision.reason,
            accepted=decision.accepted,
            owner=decision.owner,
        )
        still = number in old and old[number].deleted == new.deleted and _holds(old[number], entry, known)
        found[number] = old[number] if still else new
    listed = {number: each for number, each in found.items() if each.git != number or each.deleted}
    if not listed:
        return None
    last = max(found)
    return TopicNumbers(dict(sorted({**listed, last: found[last]}.items())))


def _holds(old: NumberEntry, entry: SchemaVersion, known: Generations) -> bool:
    """Return whether the recorded meaning of a number is still right; a foreign version may have been approved since."""
    if entry.info is None:
        return True
    if old.foreign:
        return content_identity(old.foreign) == content_identity(entry.info)
    found = known.find(entry)
    return found is not None and found.number == old.git


# Checks before approval

_VERSION: Final = "write the number of a version of Git's, or `foreign` with the definition"


@dataclass(frozen=True, slots=True)
class JudgedNumbers:
    """The numbers files among the checked files.

    Attributes:
        records: one for each target whose file has no problems.
        problems: everything that is wrong with a file by itself.
        paths: the existing files and their foreign definitions.
        places: the same, and the paths of files that do not exist.
    """

    records: tuple[TargetNumbers, ...]
    problems: tuple[Problem, ...]
    paths: frozenset[str]
    places: frozenset[str]


def judge_files(files: Files, project: Project) -> JudgedNumbers:
    """Read the numbers files of all targets among `files`, with the definitions that they name."""
    records: list[TargetNumbers] = []
    problems: set[Problem] = set()
    paths: set[str] = set()
    places: set[str] = set()
    for target in project.targets.values():
        try:
            path = numbers_path(project, target)
        except ValueError:
            # A name that makes no file's name has no numbers file.
            continue
        places.add(path)
        if files.kind(path) == "file":
            paths.add(path)
        try:
            numbers = read_numbers(files, project, target)
        except DeclarationError as error:
            problems |= {*error.problems}
            continue
        if numbers:
            records.append(numbers)
            paths |= {entry.path for entry in _entries(numbers) if entry.path}
            problems |= {*_useless(numbers)}
    return JudgedNumbers(tuple(records), tuple(sorted(problems)), frozenset(paths), frozenset(paths | places))


def contradictions(
    records: Iterable[TargetNumbers], declared: Catalog, histories: Iterable[Catalog]
) -> tuple[Problem, ...]:
    """Return a problem for each topic or version in a record that Git does not have and will not have.

    Args:
        records: the numbers files.
        declared: the declared files; each new definition becomes the next version.
        histories: the approved history, and other forms that it may take.
    """
    catalogs = tuple(histories)
    known: dict[TopicName, frozenset[int]] = {}
    problems: set[Problem] = set()
    for numbers in records:
        for name, recorded in numbers.topics.items():
            if not any(name in each.topics for each in (declared, *catalogs)):
                if recorded.source:
                    what = f"{name} is declared nowhere, and never was"
                    fix = "write the name that Git declares, not the target's own; else remove the entry"
                    problems.add(Problem(recorded.source, what, fix))
                continue
            for entry in recorded.entries.values():
                if entry.git is None or not entry.source:
                    continue
                if name not in known:
                    known[name] = _versions(name, declared, catalogs)
                if entry.git not in known[name]:
                    problems.add(Problem(entry.source, _no_version(name, entry, known[name]), _VERSION))
    return tuple(sorted(problems))


def _no_version(name: TopicName, entry: NumberEntry, known: frozenset[int]) -> str:
    there = f"its versions are {min(known)} to {max(known)}" if known else "it has none"
    return f"number {entry.number} is recorded as version {entry.git} of {name}, which Git does not have: {there}"


def _versions(name: TopicName, declared: Catalog, histories: Iterable[Catalog]) -> frozenset[int]:
    """Return the numbers of Git's versions of the topic, with that of the declared one."""
    topic = declared.topics.get(name)
    schema = topic.schema if topic else None
    found: set[int] = set()
    for catalog in histories:
        versions = catalog.versions(name)
        found |= {version.number for version in versions}
        if schema and Contents(versions).find(schema.load()) is None:
            found.add(next_number(versions))
    return frozenset(found)


def _useless(numbers: TargetNumbers) -> Iterator[Problem]:
    """Yield a problem for each foreign definition with which messages cannot be read, unless `drift --accept` wrote it."""
    for entry in _entries(numbers):
        if entry.foreign is None or entry.source is None or _is_accepted(entry, entry.foreign):
            continue
        if spec(entry.foreign).undeclarable:
            why = f"no message has a version of the type {entry.foreign.type.name}"
        elif spec(entry.foreign).payload == "unknown" or not (wrong := unusable(entry.foreign)):
            continue
        else:
            why = f"its definition in {entry.path} cannot be used: {wrong}"
        fix = "`schemactl drift --accept` writes what the registry holds; where nobody knows it, write {deleted: true}"
        yield Problem(entry.source, f"number {entry.number} is foreign, and {why}", fix)


def _is_accepted(entry: NumberEntry, foreign: SchemaInfo) -> bool:
    """Return whether the definition's file has the name that `drift --accept` gives it, which ends with a digest of its bytes.

    A registry may hold anything, and it must be possible to record what it holds.
    """
    stem = posixpath.splitext(entry.path or "")[0]
    return stem.endswith(f"-{entry.number}-{hashlib.sha256(foreign.schema).hexdigest()[:8]}")


def _entries(numbers: TargetNumbers) -> Iterator[NumberEntry]:
    for recorded in numbers.topics.values():
        yield from recorded.entries.values()
