"""The declaration files for a topic or namespace of a registry, and the check that they declare the same."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from schemactl.comparison.changes import content_identity, unstamped
from schemactl.core.catalog import Namespace, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.json_values import json_text
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.project import Project
from schemactl.core.schema import WITHOUT_SCHEMA, Release, SchemaInfo
from schemactl.declare import catalog
from schemactl.declare import files as declare_files
from schemactl.declare.yaml_text import Value, yaml_text
from schemactl.formats import pair_of, spec
from schemactl.formats.avro.json_text import decode, read
from schemactl.formats.key_value import join
from schemactl.formats.protobuf import load
from schemactl.importing.shared import CommonTypes, imports
from schemactl.layout.json_layout import laid_out

_IMPORT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*\.proto")

Files: TypeAlias = Mapping[str, bytes]
"""The files of one declaration by path; the first one is the YAML file."""


def namespace_text(namespace: Namespace) -> bytes:
    """Return the declaration of a namespace with all policies set on it."""
    managed: dict[str, Value] = {}
    for policy, value in namespace.policies.managed().items():
        if value != CompatibilityStrategy.UNDEFINED:
            managed[policy] = str(value) if isinstance(value, CompatibilityStrategy) else value
    return yaml_text({"namespace": str(namespace.name), **managed}).encode()


def topic_files(
    topic: Topic,
    info: SchemaInfo | None,
    stem: str,
    *,
    printed: bool = True,
    shared: CommonTypes | None = None,
) -> Files:
    """Return the declaration of `topic` with the definition `info`, in files whose paths start with `stem`.

    With `printed`, definitions are laid out, protobuf's as `.proto` files; else they stay as they are, protobuf's as a
    descriptor set. Types of `shared` stand in its files, which are returned with the others. Raise InvalidSchema for a
    definition that cannot be parsed or printed.
    """
    values: dict[str, Value] = {"topic": str(topic.name)}
    if topic.partitions is not None:
        values["partitions"] = topic.partitions
    strategy = topic.policies.schema_compatibility_strategy
    if strategy not in (None, CompatibilityStrategy.UNDEFINED):
        values["schema_compatibility_strategy"] = str(strategy)
    files: dict[str, bytes] = {}
    if info is not None and info.type not in WITHOUT_SCHEMA:
        values["schema"] = _schema(unstamped(info), stem, files, printed=printed, shared=shared)
    return {f"{stem}.yaml": yaml_text(values).encode(), **files}


def _schema(
    info: SchemaInfo, stem: str, files: dict[str, bytes], *, printed: bool, shared: CommonTypes | None
) -> dict[str, Value]:
    """Return the `schema` of a declaration, and add the files it names to `files`."""
    properties = dict(info.properties)
    values: dict[str, Value] = {"type": info.type.name}
    name = stem.rpartition("/")[2]
    kind = spec(info).language
    if kind == "avro":
        values["definition"] = f"{name}.avsc"
        files[f"{stem}.avsc"] = info.schema
        if printed:
            files[f"{stem}.avsc"], needed = _laid_out(info, shared)
            if needed:
                files |= needed
                values["references"] = [_relative(each, stem) for each in needed]
    elif kind == "protobuf":
        values |= _protobuf(info, stem, files, shared) if printed else _descriptor_set(info, stem, files)
    elif both := pair_of(info):
        values["encoding"] = both.encoding
        values["key"] = _schema(both.key, f"{stem}.key", files, printed=printed, shared=shared)
        values["value"] = _schema(both.value, f"{stem}.value", files, printed=printed, shared=shared)
        # These follow from what is declared; the names of halves nobody compares.
        derived = join(key=both.key, value=both.value, encoding=both.encoding).properties
        properties = {key: value for key, value in properties.items() if key not in derived}
    return {**values, "properties": properties}


def _laid_out(info: SchemaInfo, shared: CommonTypes | None) -> tuple[bytes, Files]:
    """Return an Avro definition as the tool prints it, and the files of shared types that it needs.

    That is JSON as `fmt` lays it out, keys in their order.
    """
    try:
        value = read(decode(info.schema))
        value, needed = shared.outside(value) if shared else (value, {})
        return laid_out(json_text(value)).encode(), needed
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("the definition cannot be printed as JSON") from error


def _protobuf(
    info: SchemaInfo, stem: str, files: dict[str, bytes], shared: CommonTypes | None
) -> dict[str, Value]:
    """Add the root's `.proto` file, and its imports in a folder under the names by which they are imported."""
    if not load("protoc").has_protoc():
        raise InvalidSchema("the printed definition could not be compiled again")
    definition, text = load("definition").parse(info.schema), load("definition").proto_text
    files[f"{stem}.proto"] = text(definition.root.file.proto).encode()
    references = []
    for each, printed in imports(info).items():
        if not _IMPORT.fullmatch(each) or ".." in each:
            raise InvalidSchema(f"{each} is no path to write to")
        path = (shared and shared.import_path(each)) or f"{stem}/{each}"
        files[path] = printed.encode()
        references.append(_relative(path, stem))
    values: dict[str, Value] = {
        "definition": f"{stem.rpartition('/')[2]}.proto",
        "message": definition.root.full_name,
    }
    return {**values, "references": references} if references else values


def _relative(path: str, stem: str) -> str:
    """Return `path` relative to the declaration whose files start with `stem`."""
    return posixpath.relpath(path, posixpath.dirname(stem) or ".")


def _descriptor_set(info: SchemaInfo, stem: str, files: dict[str, bytes]) -> dict[str, Value]:
    data, message = load("definition").descriptor_set(info.schema)
    files[f"{stem}.binpb"] = data
    return {"definition": f"{stem.rpartition('/')[2]}.binpb", "message": message}


NAMESPACE_FILE = "namespace"
"""The name, without suffix, of a namespace's own file."""

_OTHER = re.compile(r"[^A-Za-z0-9_.-]")
_DEFINITIONS = (".avsc", ".proto", ".binpb")
_SUFFIXES = (
    "",
    ".yaml",
    *(f"{half}{suffix}" for half in ("", ".key", ".value") for suffix in _DEFINITIONS),
    ".key",
    ".value",
)


class Paths:
    """Unused paths below `root`, also on file systems that ignore case."""

    def __init__(self, root: str, exists: Callable[[str], bool]) -> None:
        self._root = root
        self._exists = exists
        self._taken: set[str] = set()

    def of_namespace(self, name: NamespaceName) -> str:
        """Return the path of the namespace's file, without suffix."""
        return self._free(f"{self._folder(name)}/{NAMESPACE_FILE}")

    def of_topic(self, name: TopicName) -> str:
        """Return the common start of the paths of all the topic's files."""
        local = file_name(name.topic)
        return self._free(
            f"{self._folder(name.namespace_name)}/{local if local != NAMESPACE_FILE else local + '_'}"
        )

    def of_shared(self, name: str) -> str:
        """Return the path for the shared file called `name`, which has slashes between its parts."""
        return self._free(
            self._below_root("/".join(file_name(part) or "_" for part in ("shared", *name.split("/"))))
        )

    def _folder(self, name: NamespaceName) -> str:
        return self._below_root(f"{file_name(name.tenant)}/{file_name(name.name)}")

    def _below_root(self, path: str) -> str:
        return f"{self._root}/{path}" if self._root else path

    def _free(self, stem: str) -> str:
        free, number = stem, 1
        while free.lower() in self._taken or any(self._exists(free + suffix) for suffix in _SUFFIXES):
            number += 1
            free = f"{stem}-{number}"
        self._taken.add(free.lower())
        return free


def file_name(part: str) -> str:
    """Return `part` in characters that need no quotes; neither a hidden file nor a topic's second half (`x.key`)."""
    plain = _OTHER.sub("_", part)
    if plain.startswith((".", "-")):
        plain = f"_{plain[1:]}"
    return re.sub(r"\.(key|value)$", r"_\1", plain, flags=re.IGNORECASE)[:150]


def misread(
    made: Mapping[TopicName, tuple[Files, SchemaInfo | None]], *, root: str, release: Release, strictly: bool
) -> dict[TopicName, str]:
    """Return, by topic, why its files do not declare the definition that they were made from; {} if all do.

    With `strictly`, they must not have what `check` rejects either, such as a default that does not fit.
    """
    owners = {path: name for name, (files, _) in made.items() for path in files}
    contents = {path: text for files, _ in made.values() for path, text in files.items()}
    declared = catalog.read(declare_files.ChangedFiles(contents), Project(roots=(root,), release=release))
    found: dict[TopicName, str] = {}
    for name, (_, info) in made.items():
        read = declared.catalog.topics.get(name)
        if read is None:
            found[name] = "it cannot be declared"
        elif (read.schema and content_identity(read.schema)) != (
            info and content_identity(spec(info).declared(info))
        ):
            found[name] = "its declaration would have a different content"
    for problem in reversed(declared.problems):
        owner = owners.get(problem.source.path)
        if owner and (strictly or owner in found):
            found[owner] = problem.what
    return found


def project_text(*, root: str, target: str, registry: str, release: Release) -> bytes:
    """Return a project file that declares what is in the folder `root`, with one target."""
    targets = {target: {"registry": registry}}
    return yaml_text({"version": 1, "roots": [root], "pulsar": release.value, "targets": targets}).encode()
