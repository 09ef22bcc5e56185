"""Render declarations of the topics and namespaces of a registry, for `import`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from schemactl.comparison.changes import content_identity, remove_upload_properties
from schemactl.core.catalog import Namespace, Topic
from schemactl.core.errors import InvalidSchema
from schemactl.core.json_values import json_text
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.project import Project
from schemactl.core.schema import WITHOUT_SCHEMA, Release, SchemaInfo
from schemactl.declare import files as declare_files
from schemactl.declare import reader
from schemactl.declare.files import make_relative
from schemactl.declare.json_formatter import format_json
from schemactl.declare.shared_types import CommonTypes, print_imports
from schemactl.declare.yaml_parser import Value, render_yaml
from schemactl.formats import get_pair, spec
from schemactl.formats.avro.json_text import decode, read
from schemactl.formats.key_value import join
from schemactl.formats.native_definitions import find_rendering, list_native_parts
from schemactl.formats.protobuf import load

NAMESPACE_FILE: Final = "namespace"
"""The name, without suffix, of the file that declares a namespace."""

_IMPORT_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*\.proto")
_UNSAFE_CHARACTER: Final = re.compile(r"[^A-Za-z0-9_.-]")
_DEFINITION_SUFFIXES: Final = (".avsc", ".proto", ".binpb", ".txt")
_SUFFIXES: Final = (
    "",
    ".yaml",
    *(f"{half}{suffix}" for half in ("", ".key", ".value") for suffix in _DEFINITION_SUFFIXES),
    ".key",
    ".value",
)
"""The suffixes of all files and folders of a topic."""

Files: TypeAlias = Mapping[str, bytes]
"""The files of one declaration by path; the first is the YAML file."""


def namespace_text(namespace: Namespace) -> bytes:
    """Render the declaration of a namespace with all its policies."""
    return render_yaml({"namespace": str(namespace.name), **_policy_values(namespace.policies)}).encode()


def _policy_values(policies: Policies) -> dict[str, Value]:
    """Return the policies that are set, by their keys in declarations."""
    return {
        policy: str(value) if isinstance(value, CompatibilityStrategy) else value
        for policy, value in policies.managed().items()
        if value != CompatibilityStrategy.UNDEFINED
    }


def declared_topic_files(
    topic: Topic, infos: Mapping[str, SchemaInfo], stem: str, *, printed: bool = True, shared: CommonTypes | None = None
) -> Files:
    """Render the declaration of `topic` with the definitions `infos`, in files whose paths start with `stem`.

    Args:
        topic: the registered topic.
        infos: the definition of each kind of events by its key, or of a topic with one schema under ""; {} for a topic without schema.
        stem: the start of the paths.
        printed: whether to format definitions, and to print protobuf definitions as `.proto` files, except for those in a form that no
            Pulsar client sends. Otherwise definitions keep their bytes, and protobuf definitions are written as descriptor sets.
        shared: types that are defined in separate files, which are included in the result.

    Raises:
        InvalidSchema: if the definition cannot be parsed or printed.
    """
    values: dict[str, Value] = {"topic": str(topic.name)}
    if topic.partitions is not None:
        values["partitions"] = topic.partitions
    values |= _policy_values(topic.policies)
    files: dict[str, bytes] = {}
    folder = posixpath.dirname(stem)
    schemas: dict[str, Value] = {}
    for key, info in infos.items():
        if info.type in WITHOUT_SCHEMA:
            continue
        schema_stem = f"{stem}/{key}" if key else stem
        schemas[key] = _build_schema(
            remove_upload_properties(info), schema_stem, folder, files, printed=printed, shared=shared
        )
        if printed and (rendering := find_rendering(info)):
            values["protobuf"] = {"rendering": rendering, **({} if key else _name_proto_file(info, stem))}
    if "" in schemas:
        values["schema"] = schemas[""]
    elif schemas:
        values["schemas"] = schemas
    return {f"{stem}.yaml": render_yaml(values).encode(), **files}


def _build_schema(
    info: SchemaInfo, stem: str, folder: str, files: dict[str, bytes], *, printed: bool, shared: CommonTypes | None
) -> dict[str, Value]:
    """Build the `schema` of a declaration in `folder`, and add the files that it names, which start with `stem`, to `files`."""
    properties = dict(info.properties)
    values: dict[str, Value] = {"type": info.type.name}
    kind = spec(info).language
    if kind == "avro":
        values["definition"] = make_relative(f"{stem}.avsc", folder)
        files[f"{stem}.avsc"] = info.schema
        if printed:
            try:
                value = read(decode(info.schema))
                value, needed = shared.extract(value) if shared else (value, {})
                files[f"{stem}.avsc"] = format_json(json_text(value)).encode()
            except (ValueError, RecursionError) as error:
                raise InvalidSchema("the definition cannot be printed as JSON") from error
            if needed:
                files |= needed
                values["references"] = [make_relative(path, folder) for path in needed]
    elif kind == "protobuf":
        if printed and not _is_descriptor_set(info):
            values |= _print_protobuf(info, stem, folder, files, shared)
        else:
            files[f"{stem}.binpb"], message = load("definition").make_descriptor_set(info.schema)
            values |= {"definition": make_relative(f"{stem}.binpb", folder), "message": message}
    elif spec(info).declared_as == "text":
        if info.schema:
            values["definition"] = make_relative(f"{stem}.txt", folder)
            files[f"{stem}.txt"] = info.schema
    elif both := get_pair(info):
        values["encoding"] = both.encoding
        values["key"] = _build_schema(both.key, f"{stem}.key", folder, files, printed=printed, shared=shared)
        values["value"] = _build_schema(both.value, f"{stem}.value", folder, files, printed=printed, shared=shared)
        # `join` writes these again. The names of the key and the value are not compared.
        derived = join(key=both.key, value=both.value, encoding=both.encoding).properties
        properties = {key: value for key, value in properties.items() if key not in derived}
    return {**values, "properties": properties}


def _print_protobuf(
    info: SchemaInfo, stem: str, folder: str, files: dict[str, bytes], shared: CommonTypes | None
) -> dict[str, Value]:
    """Add the `.proto` file of the root message and its imports, which are in a folder under their import names."""
    if not load("protoc").has_protoc():
        raise InvalidSchema("the printed definition could not be compiled again")
    definition = load("definition").parse(info.schema)
    files[f"{stem}.proto"] = load("definition").proto_text(definition.root.file.proto).encode()
    references = []
    for name, proto_text in print_imports(info).items():
        if not _IMPORT_NAME.fullmatch(name) or ".." in name:
            raise InvalidSchema(f"{name} is not a path to write to")
        path = (shared and shared.import_path(name)) or f"{stem}/{name}"
        files[path] = proto_text.encode()
        references.append(make_relative(path, folder))
    definition_path = make_relative(f"{stem}.proto", folder)
    values: dict[str, Value] = {"definition": definition_path, "message": definition.root.full_name}
    return {**values, "references": references} if references else values


def _name_proto_file(info: SchemaInfo, stem: str) -> dict[str, Value]:
    """Return the key for the registered name of the root's file, if its name in the declaration is another one."""
    roots = [load("definition").parse(part.schema).root for part in list_native_parts(info)]
    names = [root.file.name for root in roots if _IMPORT_NAME.fullmatch(root.file.name)]
    if len(names) != len(roots) or len(set(names)) != 1 or names == [f"{posixpath.basename(stem)}.proto"]:
        return {}
    return {"file": names[0]}


def _is_descriptor_set(info: SchemaInfo) -> bool:
    """Return whether a definition has no client's form, and is registered with the same bytes if its descriptor set is declared."""
    if find_rendering(info):
        return False
    data, message = load("definition").make_descriptor_set(info.schema)
    is_same: bool = load("protoc").read_descriptor_set(data, message, path="").schema == info.schema
    return is_same


class Paths:
    """Chooses unused paths below `root`, which also differ on file systems that ignore case."""

    def __init__(self, root: str, exists: Callable[[str], bool]) -> None:
        self._root = root
        self._exists = exists
        self._taken: set[str] = set()

    def of_namespace(self, name: NamespaceName) -> str:
        """Choose the path, without suffix, of a file that declares a namespace."""
        return self._find_unused(f"{self._build_folder(name)}/{NAMESPACE_FILE}")

    def of_topic(self, name: TopicName) -> str:
        """Choose the common start of the paths of all files of a topic."""
        local = file_name(name.topic)
        return self._find_unused(
            f"{self._build_folder(name.namespace_name)}/{local if local != NAMESPACE_FILE else local + '_'}"
        )

    def of_shared(self, name: str) -> str:
        """Choose the path of the shared file `name`, whose parts are separated by slashes."""
        return self._find_unused(
            self._add_root("/".join(file_name(part) or "_" for part in ("shared", *name.split("/"))))
        )

    def _build_folder(self, name: NamespaceName) -> str:
        return self._add_root(f"{file_name(name.tenant)}/{file_name(name.name)}")

    def _add_root(self, path: str) -> str:
        return f"{self._root}/{path}" if self._root else path

    def _find_unused(self, stem: str) -> str:
        candidate, number = stem, 1
        while candidate.lower() in self._taken or any(self._exists(candidate + suffix) for suffix in _SUFFIXES):
            number += 1
            candidate = f"{stem}-{number}"
        self._taken.add(candidate.lower())
        return candidate


def file_name(part: str) -> str:
    """Return `part` as a file name without special characters, which is neither hidden nor ends with `.key` or `.value`."""
    plain = _UNSAFE_CHARACTER.sub("_", part)
    if plain.startswith((".", "-")):
        plain = f"_{plain[1:]}"
    return re.sub(r"\.(key|value)$", r"_\1", plain, flags=re.IGNORECASE)[:150]


def find_misread_topics(
    declarations: Mapping[TopicName, tuple[Files, Sequence[SchemaInfo]]], *, root: str, release: Release, strictly: bool
) -> dict[TopicName, str]:
    """Map each topic whose files do not declare the definition that they were rendered from to the reason.

    Args:
        declarations: the rendered files and the definitions of each topic: one for each kind of events, or one schema, or none.
        root: the folder of the declarations.
        release: the Pulsar release whose rules apply.
        strictly: whether problems that `check` reports, such as an invalid default, count as well.
    """
    topics_by_path = {path: name for name, (files, _) in declarations.items() for path in files}
    contents = {path: text for files, _ in declarations.values() for path, text in files.items()}
    declared = reader.read(declare_files.ChangedFiles(contents), Project(roots=(root,), release=release))
    reasons: dict[TopicName, str] = {}
    for name, (_, infos) in declarations.items():
        topic = declared.catalog.topics.get(name)
        if topic is None:
            reasons[name] = "it cannot be declared"
        elif [content_identity(part.schema) for part in topic.split() if part.schema] != [
            content_identity(spec(info).to_declared(info)) for info in infos
        ]:
            reasons[name] = "its declaration would have a different content"
    for problem in reversed(declared.problems):
        name_of_file = topics_by_path.get(problem.source.path)
        if name_of_file and (strictly or name_of_file in reasons):
            reasons[name_of_file] = problem.message
    return reasons


def project_text(*, root: str, target: str, registry: str, release: Release) -> bytes:
    """Render a project file for the declarations in the folder `root`, with one target."""
    targets = {target: {"registry": registry}}
    return render_yaml({"version": 1, "roots": [root], "pulsar": release.value, "targets": targets}).encode()
