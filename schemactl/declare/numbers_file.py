"""Read the numbers file of a target, and check it against the files and Git's history."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from schemactl.comparison.changes import VersionIndex
from schemactl.core.catalog import Catalog
from schemactl.core.errors import DeclarationError, InvalidSchema, Problem, Source, find_close_match
from schemactl.core.escaping import escape_path
from schemactl.core.names import NamespaceName, TopicName, parse_name
from schemactl.core.project import Project, Target
from schemactl.core.schema import SchemaInfo, SchemaType, get_next_number
from schemactl.core.wording import describe_value, shorten
from schemactl.declare.document import limit_problems
from schemactl.declare.files import MAX_PROBLEMS, Files, obstacle, read_bytes, resolve
from schemactl.declare.source_location import locate_node
from schemactl.declare.target_numbers import (
    MAX_NUMBER,
    Acceptance,
    AcceptanceReason,
    NumberEntry,
    TargetNumbers,
    TopicNumbers,
    find_decoding_problem,
)
from schemactl.declare.yaml_parser import YamlDocument, read_yaml
from schemactl.formats import SPECS, spec

if TYPE_CHECKING:
    from schemactl.declare.models import AcceptanceShape, BrokersShape, NumberShape

# Reading

_STATES: Final = ("unmanaged", "undeclarable", "policies")
_ACCEPTANCE_KEYS: Final = (*_STATES, "fingerprint", "reason", "owner", "accepted", "until")
BROKERS: Final = "brokers"
"""The key of the accepted settings of the brokers, next to the names of namespaces and topics."""

_ENTRY_EXAMPLES: Final = "{git: 3}, {foreign: foreign/orders-4.avsc, type: AVRO} or {deleted: true}"
_NUMBER: Final = re.compile(r"0|[1-9][0-9]*")


def numbers_path(project: Project, target: Target) -> str:
    """Return the path of the target's numbers file, relative to the repository's top level.

    Raises:
        ValueError: if the project file names no numbers file, and the target's name is not a valid file name.
    """
    return target.numbers or resolve(project.folder, f"numbers/{target.name}.yaml")


def read_numbers(files: Files, project: Project, target: Target) -> TargetNumbers | None:
    """Read the target's numbers file among `files`, or return None if it does not exist.

    Raises:
        DeclarationError: all problems of the file.
    """
    try:
        path = numbers_path(project, target)
    except ValueError:
        return None
    if files.kind(path) == "missing":
        return None
    if reason := obstacle(files, path):
        raise DeclarationError([Problem(Source(escape_path(path)), reason, "put the file itself here")])
    documents, problems = read_yaml(path, read_bytes(files, path), number_keys=True)
    if not documents and not problems:
        return TargetNumbers(target.name, path)
    if len(documents) > 1:
        problems.append(
            Problem(
                locate_node(escape_path(path), documents[1].node), "a numbers file has one document", "remove `---`"
            )
        )
    reader = _NumbersReader(files, path)
    topics = reader.read_topics(documents[0]) if documents else {}
    if problems := [*problems, *reader.problems]:
        raise DeclarationError(limit_problems(problems))
    return TargetNumbers(target.name, path, topics, reader.accepted, reader.brokers)


_Item = tuple[yaml.ScalarNode, yaml.Node, Any]
"""A key of a mapping, and the node and value of its value."""


class _NumbersReader:
    """Reads one file. `accepted` and `brokers` collect the accepted drift, `problems` all problems."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path
        self.folder = posixpath.dirname(path)
        self.accepted: dict[NamespaceName | TopicName, Acceptance] = {}
        self.brokers: Acceptance | None = None
        self.problems: list[Problem] = []

    def read_topics(self, document: YamlDocument) -> dict[TopicName, TopicNumbers]:
        """Read the topics of the document, which may be empty."""
        topics: dict[TopicName, TopicNumbers] = {}
        if document.value is None:
            return topics
        for key, value_node, value in self._iterate_items(document.node, document.value, "topics"):
            if key.value == BROKERS:
                self._read_brokers(key, [*self._iterate_items(value_node, value, "accepted settings")])
                continue
            try:
                name = parse_name(key.value)
            except ValueError as error:
                self._report(key, str(error), "write persistent://tenant/namespace/topic, or tenant/namespace")
                continue
            items = [*self._iterate_items(value_node, value, "version numbers")]
            entries = dict(self._read_entries(items, is_topic=isinstance(name, TopicName)))
            if name in topics or name in self.accepted:
                self._report(key, f"{name} is recorded twice", "put all of it under one of the two")
                continue
            self._read_acceptance(name, key, items)
            if isinstance(name, TopicName) and (entries or name not in self.accepted):
                topics[name] = TopicNumbers(entries, locate_node(escape_path(self.path), key))
        return topics

    def _read_entries(self, items: Iterable[_Item], *, is_topic: bool) -> Iterator[tuple[int, NumberEntry]]:
        for key, entry_node, entry in items:
            if key.value in _ACCEPTANCE_KEYS:
                continue
            if not is_topic:
                self._report(key, f"a namespace has no `{shorten(key.value)}`", "write {unmanaged: true}")
                continue
            if not _NUMBER.fullmatch(key.value) or len(key.value) > 9 or int(key.value) > MAX_NUMBER:
                self._report(
                    key,
                    f"expected a version number of the target, found `{shorten(key.value)}`",
                    f"write a number from 0 to {MAX_NUMBER}, as a message carries it; the other keys are "
                    f"{', '.join(_ACCEPTANCE_KEYS)}",
                )
                continue
            number = int(key.value)
            if number_entry := self._read_entry(number, key, entry_node, entry):
                yield number, number_entry

    def _read_entry(self, number: int, key: yaml.Node, node: yaml.Node, value: Any) -> NumberEntry | None:
        from schemactl.declare.models import NumberShape

        items = [*self._iterate_items(node, value, "the meaning of the number")]
        if not isinstance(value, dict):
            return None
        problem_count = len(self.problems)
        shape = self._read_model("number", items)
        nodes = {item_key.value: value_node for item_key, value_node, _ in items}
        # Contradictions between keys that fit by themselves.
        if nodes.keys() <= NumberShape.model_fields.keys():
            if "git" in nodes and "foreign" in nodes:
                message = "a number means one version: `git` and `foreign` exclude each other"
                self._report(nodes["foreign"], message, "keep one")
            elif not nodes.keys() & {"git", "foreign", "deleted"}:
                self._report(key, f"the meaning of number {number} is missing", f"write {_ENTRY_EXAMPLES}")
            for name in ("type", "properties"):
                if name in nodes and "foreign" not in nodes:
                    self._report(nodes[name], f"`{name}` belongs to a `foreign` definition", "remove it")
            if "foreign" in nodes and "type" not in nodes:
                self._report(nodes["foreign"], "a foreign definition needs its `type`", "add it: type: AVRO")
        if len(self.problems) > problem_count:
            return None
        foreign, path = self._read_foreign(nodes["foreign"], shape) if shape.foreign else (None, None)
        return NumberEntry(
            number,
            git=shape.git,
            foreign=foreign,
            deleted=shape.deleted,
            reason=shape.reason,
            accepted=shape.accepted,
            owner=shape.owner,
            source=locate_node(escape_path(self.path), key),
            path=path,
        )

    def _read_model(self, kind: str, items: Sequence[_Item]) -> Any:
        """Return the model of a mapping with these items, or report its mismatches; a kind is a key of `models.KINDS`."""
        # Importing pydantic is slow, and only needed here.
        from schemactl.declare.models import read_model

        result = read_model(kind, {key.value: value for key, _, value in items})
        if not isinstance(result, list):
            return result
        nodes = {key.value: (key, node) for key, node, _ in items}
        has_unknown_keys = any(mismatch.kind == "extra_forbidden" for mismatch in result)
        for mismatch in result:
            key = mismatch.parts[0]
            if mismatch.kind == "extra_forbidden":
                # Finding similar keys is slow, and only MAX_PROBLEMS problems are reported.
                near = (
                    find_close_match(key, mismatch.keys)
                    if kind == "number" and len(self.problems) < MAX_PROBLEMS
                    else None
                )
                fix = f"write `{near}`" if near else f"the keys here are {', '.join(mismatch.keys)}"
                self._report(nodes[key][0], f"unknown key `{shorten(key)}`", fix)
            elif kind != "number" or not has_unknown_keys:
                self._report(nodes[key][1], str(mismatch.context["error"]), "")
        return None

    def _read_acceptance(self, name: NamespaceName | TopicName, name_node: yaml.Node, items: Iterable[_Item]) -> None:
        """Read the accepted drift of a namespace or topic into `accepted`, or report its problems."""
        items = [item for item in items if item[0].value in _ACCEPTANCE_KEYS]
        if not items or (shape := self._read_model("acceptance", items)) is None:
            return
        nodes = {key.value: node for key, node, _ in items}
        states = [key for key in _STATES if key in nodes]
        is_of_schemas = bool({"unmanaged", "undeclarable"} & nodes.keys()) and isinstance(name, TopicName)
        if not states:
            self._report(name_node, f"the accepted state of {name} is missing", "write {unmanaged: true}")
        elif states[:2] == ["unmanaged", "undeclarable"] or (
            "undeclarable" in states and isinstance(name, NamespaceName)
        ):
            self._report(nodes["undeclarable"], "`undeclarable` is for a topic, instead of `unmanaged`", "keep one")
        elif is_of_schemas != ("fingerprint" in nodes):
            fix = "`schemactl drift --accept` writes it" if is_of_schemas else "remove it"
            self._report(name_node, "a `fingerprint` belongs to `unmanaged` and `undeclarable` of a topic", fix)
        elif missing := [key for key in ("reason", "accepted") if key not in nodes]:
            self._report(name_node, f"the accepted state of {name} needs its `{missing[0]}`", f"add {missing[0]}: ...")
        else:
            self.accepted[name] = Acceptance(
                shape.unmanaged,
                shape.undeclarable,
                shape.fingerprint,
                shape.policies,
                decision=_build_reason(shape),
                source=locate_node(escape_path(self.path), name_node),
            )

    def _read_brokers(self, name_node: yaml.Node, items: Sequence[_Item]) -> None:
        """Read the accepted settings of the brokers, or report their problems."""
        if (shape := self._read_model("brokers", items)) is None:
            return
        keys = {key.value for key, _, _ in items}
        if not {"policies", "checkers"} & keys:
            fix = "write policies: {schema_compatibility_strategy: BACKWARD}, or remove it"
            self._report(name_node, "the accepted settings of the brokers are missing", fix)
        elif missing := [key for key in ("reason", "accepted") if key not in keys]:
            self._report(
                name_node, f"accepted settings of the brokers need their `{missing[0]}`", f"add {missing[0]}: ..."
            )
        else:
            self.brokers = Acceptance(
                policies=shape.policies,
                checkers=shape.checkers,
                decision=_build_reason(shape),
                source=locate_node(escape_path(self.path), name_node),
            )

    def _read_foreign(self, node: yaml.Node, shape: NumberShape) -> tuple[SchemaInfo | None, str | None]:
        """Return the foreign definition and its path, or (None, None) with a problem."""
        written = shape.foreign or ""
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
        if reason := obstacle(self.files, path):
            self._report(
                node, reason, "`schemactl drift --accept` writes the definition again; commit it with this file"
            )
            return None, None
        try:
            data = read_bytes(self.files, path)
            type_ = shape.type or SchemaType.NONE
            if SPECS[type_].language == "pair" and not path.endswith(".bin"):
                # The file has the admin API's text of a KEY_VALUE definition.
                data = SPECS[type_].from_text(type_, data.decode(), shape.properties).schema
            return SchemaInfo(type_, data, dict(shape.properties), Source(escape_path(path))), path
        except DeclarationError as error:
            self.problems += error.problems
        except (InvalidSchema, UnicodeDecodeError) as error:
            self.problems.append(
                Problem(Source(escape_path(path)), str(error), "get the definition from the registry again")
            )
        return None, None

    def _iterate_items(self, node: yaml.Node, value: Any, noun: str) -> Iterator[_Item]:
        """Yield the items of a mapping; `read_yaml` has reported repeated keys."""
        if not isinstance(value, dict) or not isinstance(node, yaml.MappingNode):
            self._report(node, f"expected {noun} as a mapping, found {describe_value(value)}", "")
            return
        keys = set()
        for key, value_node in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value not in keys:
                keys.add(key.value)
                yield key, value_node, value[key.value]

    def _report(self, node: yaml.Node, message: str, fix: str) -> None:
        self.problems.append(Problem(locate_node(escape_path(self.path), node), message, fix))


def _build_reason(shape: AcceptanceShape | BrokersShape) -> AcceptanceReason:
    return AcceptanceReason(shape.reason.strip(), shape.owner.strip(), shape.accepted, shape.until)


# Checks before approval

_VERSION: Final = "write the number of one of Git's versions, or `foreign` with the definition"


@dataclass(frozen=True, slots=True)
class NumbersFiles:
    """The numbers files among the checked files.

    Attributes:
        records: the content of each file without problems.
        problems: the problems of each file by itself.
        existing_paths: the existing files and their foreign definitions.
        all_paths: the same, with the paths of missing files.
    """

    records: tuple[TargetNumbers, ...]
    problems: tuple[Problem, ...]
    existing_paths: frozenset[str]
    all_paths: frozenset[str]


def read_all_numbers_files(files: Files, project: Project) -> NumbersFiles:
    """Read the numbers files of all targets among `files`, with the definitions that they name."""
    records: list[TargetNumbers] = []
    problems: set[Problem] = set()
    existing_paths: set[str] = set()
    all_paths: set[str] = set()
    for target in project.targets.values():
        try:
            path = numbers_path(project, target)
        except ValueError:
            # A target whose name is not a valid file name has no numbers file.
            continue
        all_paths.add(path)
        if files.kind(path) == "file":
            existing_paths.add(path)
        try:
            numbers = read_numbers(files, project, target)
        except DeclarationError as error:
            problems |= {*error.problems}
            continue
        if numbers:
            records.append(numbers)
            existing_paths |= {entry.path for entry in _iterate_entries(numbers) if entry.path}
            problems |= {*_find_unusable_entries(numbers)}
    return NumbersFiles(
        tuple(records), tuple(sorted(problems)), frozenset(existing_paths), frozenset(existing_paths | all_paths)
    )


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
    known_numbers: dict[TopicName, frozenset[int]] = {}
    problems: set[Problem] = set()
    for numbers in records:
        for name, recorded in numbers.topics.items():
            if not any(name in catalog.topics for catalog in (declared, *catalogs)):
                if recorded.source:
                    message = f"{name} is not declared, and never was"
                    fix = "write the name that Git declares, not the target's own; else remove the entry"
                    problems.add(Problem(recorded.source, message, fix))
                continue
            for entry in recorded.entries.values():
                if entry.git is None or not entry.source:
                    continue
                if name not in known_numbers:
                    known_numbers[name] = _list_versions(name, declared, catalogs)
                versions = known_numbers[name]
                if entry.git not in versions:
                    suffix = f"its versions are {min(versions)} to {max(versions)}" if versions else "it has none"
                    missing = (
                        f"number {entry.number} is recorded as version {entry.git} of {name}, which Git does not have: "
                        f"{suffix}"
                    )
                    problems.add(Problem(entry.source, missing, _VERSION))
    return tuple(sorted(problems))


def _list_versions(name: TopicName, declared: Catalog, histories: Iterable[Catalog]) -> frozenset[int]:
    """Return the numbers of Git's versions of the topic, including the numbers of declared contents that are new."""
    topic = declared.topics.get(name)
    schemas = [part.schema for part in topic.split() if part.schema] if topic else []
    numbers: set[int] = set()
    for catalog in histories:
        versions = catalog.versions(name)
        numbers |= {version.number for version in versions}
        contents = VersionIndex(versions)
        new_count = sum(contents.find(schema.load()) is None for schema in schemas)
        first_number = get_next_number(versions)
        numbers.update(range(first_number, first_number + new_count))
    return frozenset(numbers)


def _find_unusable_entries(numbers: TargetNumbers) -> Iterator[Problem]:
    """Yield a problem for each foreign definition that cannot decode messages, unless `drift --accept` wrote it."""
    for entry in _iterate_entries(numbers):
        if entry.foreign is None or entry.source is None:
            continue
        # `drift --accept` ends the name of a file with a digest of its bytes. It must be able to record any definition of a registry.
        digest = hashlib.sha256(entry.foreign.schema).hexdigest()[:8]
        if posixpath.splitext(entry.path or "")[0].endswith(f"-{entry.number}-{digest}"):
            continue
        if spec(entry.foreign).undeclarable:
            reason = f"messages cannot have a version of the type {entry.foreign.type.name}"
        elif spec(entry.foreign).payload == "unknown" or not (problem := find_decoding_problem(entry.foreign)):
            continue
        else:
            reason = f"its definition in {entry.path} cannot be used: {problem}"
        fix = "`schemactl drift --accept` writes the registered definition; if it is unknown, write {deleted: true}"
        yield Problem(entry.source, f"number {entry.number} is foreign, and {reason}", fix)


def _iterate_entries(numbers: TargetNumbers) -> Iterator[NumberEntry]:
    for recorded in numbers.topics.values():
        yield from recorded.entries.values()
