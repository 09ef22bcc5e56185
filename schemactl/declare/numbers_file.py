"""The reader of numbers files: every problem with its place and what to write instead."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Any, Final

import yaml

from schemactl.core.errors import DeclarationError, InvalidSchema, Problem, Source, meant
from schemactl.core.names import NamespaceName, TopicName, parse_name
from schemactl.core.policies import SETTINGS, CompatibilityStrategy, Policies
from schemactl.core.project import Project, Target
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.core.wording import found, shortened
from schemactl.declare.document import capped
from schemactl.declare.files import MAX_PROBLEMS, Files, obstacle, read_bytes, resolve, shown
from schemactl.declare.yaml_text import YamlDocument, read_yaml
from schemactl.formats import SPECS
from schemactl.history import CommitFiles, History, Repository
from schemactl.source import node_place
from schemactl.target_numbers.acceptance import Acceptance, AcceptanceReason
from schemactl.target_numbers.mapping import NumberEntry, TargetNumbers, TopicNumbers, records_other_numbers

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
            Problem(
                node_place(shown(path), documents[1].node), "a numbers file has one document", "remove `---`"
            )
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
                self._report(
                    key, str(error), "write persistent://tenant/namespace/topic, or tenant/namespace"
                )
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
            self._report(
                nodes["undeclarable"][0], "`undeclarable` is for a topic, instead of `unmanaged`", "keep one"
            )
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

    def _check(
        self, number: int, key: yaml.Node, nodes: Mapping[str, yaml.Node], value: Mapping[str, Any]
    ) -> None:
        """Report what is wrong with the values of an entry whose keys are known."""
        for name, (fits, expected) in _VALUES.items():
            if name in nodes and not fits(value[name]):
                self._report(nodes[name], f"expected {expected}, found {found(value[name])}", "")
        if "git" in nodes and "foreign" in nodes:
            self._report(
                nodes["foreign"],
                "a number stands for one version: `git` and `foreign` exclude each other",
                "keep one",
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
            self._report(
                node, why, "`schemactl drift --accept` writes the definition again; commit it with this file"
            )
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
    "type": (
        lambda value: isinstance(value, str) and value in SchemaType.__members__,
        "a schema type such as AVRO",
    ),
    "properties": (_are_properties, "texts by their names"),
    "deleted": (lambda value: value is True, "true"),
    "reason": (lambda value: isinstance(value, str) and bool(value.strip()), "the reason, a text"),
    "accepted": (_is_day, "a day such as 2026-11-22"),
    "owner": (lambda value: isinstance(value, str) and bool(value.strip()), "a person or a team"),
    "until": (_is_day, "a day such as 2027-01-31"),
    "unmanaged": (lambda value: value is True, "true"),
    "undeclarable": (
        lambda value: (
            isinstance(value, str)
            and value in SchemaType.__members__
            and bool(SPECS[SchemaType[value]].undeclarable)
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


def numbers_of(
    target: Target, project: Project, repository: Repository, approved: History
) -> TargetNumbers | None:
    """Return the record of `target` at the tip of the whole approved history; None if there is none.

    Raise DeclarationError with all problems of the numbers file.
    """
    tip = approved.whole.tip
    return None if tip is None else read_numbers(CommitFiles(repository, tip), project, target)


def recorded_elsewhere(
    topics: Iterable[TopicName], records: Iterable[TargetNumbers | None]
) -> dict[TopicName, tuple[str, ...]]:
    """Return those of `topics` whose numbers are not Git's on some targets, with the names of these targets.

    Reading their messages needs `--target`. `records` are those of the targets; None: a target has none.
    """
    known = [each for each in records if each]
    found = {
        name: tuple(each.target for each in known if records_other_numbers(each.topics.get(name)))
        for name in topics
    }
    return {name: targets for name, targets in found.items() if targets}
