"""Write new declaration files for `import`, `init` and `new`, with shared types in separate files."""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from schemactl.comparison.changes import content_identity, remove_upload_properties
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.json_values import json_text
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.project import Project
from schemactl.core.schema import WITHOUT_SCHEMA, Release, SchemaInfo, SchemaType
from schemactl.declare import files as declare_files
from schemactl.declare import reader
from schemactl.declare.files import make_relative
from schemactl.declare.json_formatter import format_json
from schemactl.declare.references import NAMED, AvroFile, add_namespace, named_types, own_names
from schemactl.declare.source_location import JsonText
from schemactl.declare.yaml_parser import Value, render_yaml
from schemactl.formats import SPECS, get_pair, spec
from schemactl.formats.avro.json_text import decode, read
from schemactl.formats.avro.schema import PRIMITIVE_TYPES, qualify
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

# Declarations of registered topics and namespaces

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
            content_identity(spec(info).declared(info)) for info in infos
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


# New declarations, which `check` accepts before anyone edits them

EDITOR_FOLDER: Final = ".schemas"
"""The folder of the JSON Schemas for editors, next to the project file."""

_AVRO_TEMPLATE: Final = """\
{
  "type": "record",
  "name": "%(record)s",
  "namespace": "%(package)s",
  "doc": %(doc)s,
  "fields": [
    {"name": "id", "type": "string", "doc": "What it is about."},
    {
      "name": "occurred_at",
      "type": {"type": "long", "logicalType": "timestamp-millis"},
      "doc": "When it happened."
    }
  ]
}
"""
_AVRO_OF_PROTOBUF_TEMPLATE: Final = """\
{
  "type": "record",
  "name": "%(record)s",
  "namespace": "%(package)s",
  "doc": %(doc)s,
  "fields": [
    {
      "name": "id",
      "type": {"type": "string", "avro.java.string": "String"},
      "default": "",
      "doc": "What it is about."
    },
    {"name": "occurred_at_ms", "type": "long", "default": 0, "doc": "When it happened."}
  ]
}
"""
_PROTO_TEMPLATE: Final = """\
syntax = "proto3";

package %(package)s;

// A message of %(topic)s.
message %(record)s {
  // What it is about.
  string id = 1;
  // When it happened.
  int64 occurred_at_ms = 2;
}
"""


@dataclass(frozen=True, slots=True)
class Start:
    """The first definition of a new topic.

    Attributes:
        type: the schema type, or None for no schema.
        key, value: the schema types of the key and value of a KEY_VALUE schema.
        given: the path of an existing definition, relative to the folder of the declaration, or "" to write a new one.
        message: the root message of an existing `.proto` file.
        references: the paths of the files whose types the existing definition uses, relative to the same folder.
        is_payload: whether the existing file is one for `pulsar-admin schemas upload`.
    """

    type: SchemaType | None
    key: SchemaType = SchemaType.STRING
    value: SchemaType = SchemaType.AVRO
    given: str = ""
    message: str = ""
    references: tuple[str, ...] = ()
    is_payload: bool = False


def namespace_folder(name: NamespaceName, catalog: Catalog, project: Project) -> str:
    """Return the folder for declarations of a namespace: the one with most of its files, or one named like the folders of other namespaces."""
    file_counts = Counter(_list_folders(name, catalog))
    if file_counts:
        return min(file_counts, key=lambda folder: (-file_counts[folder], folder))
    root = project.roots[0]
    with_tenant = file_name(name.tenant), file_name(name.name)
    folders_by_namespace = {other: {*_list_folders(other, catalog)} for other in catalog.namespaces}
    plain = posixpath.join(root, with_tenant[1])
    has_tenants = any(
        posixpath.join(file_name(other.tenant), file_name(other.name)) == posixpath.relpath(folder, root or ".")
        for other, folders in folders_by_namespace.items()
        for folder in folders
    )
    return (
        posixpath.join(root, *with_tenant)
        if has_tenants or plain in set().union(*folders_by_namespace.values())
        else plain
    )


def _list_folders(name: NamespaceName, catalog: Catalog) -> list[str]:
    """Return the folder of each declaration of a namespace and of its topics."""
    namespace = catalog.namespaces.get(name)
    topics = (topic for topic_name, topic in catalog.topics.items() if topic_name.namespace_name == name)
    return [posixpath.dirname(item.source.path) for item in (namespace, *topics) if item and item.source]


def namespace_files(name: NamespaceName, folder: str, strategy: str, metadata: Mapping[str, Value]) -> dict[str, str]:
    """Render the declaration of a namespace without automatic updates; the strategy "" is not declared."""
    policies = {"schema_compatibility_strategy": strategy} if strategy else {}
    text = render_yaml({"namespace": str(name), **policies, "is_allow_auto_update_schema": False, **metadata})
    return {posixpath.join(folder, f"{NAMESPACE_FILE}.yaml"): text}


def topic_stem(name: TopicName, folder: str) -> str:
    """Return the common start of the paths of a topic's files in the folder."""
    local = file_name(name.topic)
    return posixpath.join(folder, f"{local}_" if local == NAMESPACE_FILE else local)


def new_topic_files(
    name: TopicName, stem: str, start: Start, values: Mapping[str, Value], metadata: Mapping[str, Value]
) -> dict[str, str]:
    """Render the files that declare a topic, by path; the first is the declaration.

    Args:
        name: the topic.
        stem: the start of the paths.
        start: the definition to write or to name.
        values: the keys before the metadata, such as `partitions`.
        metadata: the owner, description, labels and links.
    """
    files: dict[str, str] = {}
    schema = {"schema": _new_schema(start.type, name, stem, start, files)} if start.type else {}
    text = render_yaml({"topic": str(name), **values, **metadata, **schema})
    return {f"{stem}.yaml": text, **files}


def _new_schema(type_: SchemaType, name: TopicName, stem: str, start: Start, files: dict[str, str]) -> dict[str, Value]:
    """Build the `schema` of a new declaration, or its key or value, and add the new definitions to `files`."""
    words = re.findall("[A-Za-z0-9]+", name.topic)
    names = {
        # The topic `page-views` has the record `PageViews`.
        "record": _make_identifier("".join(word[0].upper() + word[1:] for word in words) or "Message"),
        "package": ".".join(_make_identifier(part) for part in (name.tenant, name.namespace)),
        "topic": str(name),
        "doc": json.dumps(f"A message of {name}."),
    }
    if start.is_payload:
        return {"payload": start.given}
    values: dict[str, Value] = {"type": type_.name}
    kind = SPECS[type_].declared_as
    if kind == "pair":
        key = Start(start.key)
        values["encoding"] = "SEPARATED"
        values["key"] = _new_schema(start.key, name, f"{stem}.key", key, files)
        values["value"] = _new_schema(start.value, name, f"{stem}.value", start, files)
    elif kind != "plain" and start.given:
        values["definition"] = start.given
        if start.message:
            values["message"] = start.message
        if start.references:
            values["references"] = list(start.references)
    elif kind not in ("plain", "text"):
        avro, proto = f"{stem}.avsc", f"{stem}.proto"
        if kind != "proto":
            files[avro] = (_AVRO_TEMPLATE if kind == "avro" else _AVRO_OF_PROTOBUF_TEMPLATE) % names
        if kind != "avro":
            files[proto] = _PROTO_TEMPLATE % names
        values["definition"] = posixpath.basename(proto if kind == "proto" else avro)
        if kind == "protobuf" and not stem.endswith((".key", ".value")):
            values["proto"] = posixpath.basename(proto)
        if kind == "proto" or "proto" in values:
            values["message"] = f"{names['package']}.{names['record']}"
        else:
            files.pop(proto, None)
    return values


def _make_identifier(text: str) -> str:
    """Make a valid name in Avro and protobuf from `text`."""
    plain = re.sub("[^A-Za-z0-9_]", "_", text)
    return f"_{plain}" if plain[0].isdigit() else plain


_PACKAGE_LINE: Final = re.compile(r"^package\s+([\w.]+)\s*;", re.MULTILINE)
_MESSAGE_LINE: Final = re.compile(r"^message\s+(\w+)", re.MULTILINE)


def list_message_names(proto: str) -> list[str]:
    """List the full names of the top-level messages of a `.proto` text whose `message` starts a line."""
    package = _PACKAGE_LINE.search(proto)
    return [f"{package[1]}.{name}" if package else name for name in _MESSAGE_LINE.findall(proto)]


def editor_line(path: str, folder: str, kind: str) -> str:
    """Return the comment that names the JSON Schema of the file `path` for editors, in a project in `folder`."""
    schema = posixpath.join(folder, EDITOR_FOLDER, f"{kind}.schema.json")
    return f"# yaml-language-server: $schema={posixpath.relpath(schema, posixpath.dirname(path) or '.')}\n"


# Shared definitions: named Avro types, each in a file, and `.proto` files

_NO_FILE: Final = AvroFile("", None, JsonText("", lambda _: Source("")))


@dataclass(slots=True)
class _TypeUsage:
    """One named type or `.proto` file, with its definitions in all versions.

    Attributes:
        texts: the different definitions, as texts of a file that refers to other types by name. The keys are equal for
            definitions that differ only in the order of keys.
        topics: the topics that use it.
        uses: the other types that it refers to.
    """

    texts: dict[str, str] = field(default_factory=dict)
    topics: set[TopicName] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)

    @property
    def is_shared(self) -> bool:
        """Whether two or more topics use it, all with the same definition."""
        return len(self.topics) > 1 and len(self.texts) == 1

    @property
    def text(self) -> str:
        """Its only definition."""
        (text,) = self.texts.values()
        return text


class CommonTypes:
    """The named Avro types and imported `.proto` files that two or more topics use with one definition in all their versions.

    A type is shared only if it has a namespace and all types that it refers to are shared. Types that refer to each other are not
    shared, because files cannot reference each other.

    Attributes:
        files: the text of each file, by path.
    """

    def __init__(self, versions: Iterable[tuple[TopicName, SchemaInfo]], free_path: Callable[[str], str]) -> None:
        """Find the shared definitions among `versions`.

        Args:
            versions: the topics and definitions to declare.
            free_path: returns an unused path, without suffix, for a name below the folder of shared files.
        """
        types: dict[str, _TypeUsage] = {}
        imported: dict[str, _TypeUsage] = {}
        for topic, info in versions:
            for half in _split_definition(info):
                for name, value, uses in _find_inner_types(half):
                    if "." not in name:
                        # Topics that have nothing in common often use the same name without a namespace.
                        continue
                    usage = types.setdefault(name, _TypeUsage())
                    usage.texts.setdefault(json.dumps(value, sort_keys=True), format_json(json_text(value)))
                    usage.topics.add(topic)
                    usage.uses |= uses
                for name, text in print_imports(half).items():
                    usage = imported.setdefault(name, _TypeUsage())
                    usage.texts[text] = text
                    usage.topics.add(topic)
        self._needs: dict[str, set[str]] = {}
        while shared_names := [
            name
            for name, usage in types.items()
            if name not in self._needs and usage.is_shared and usage.uses <= self._needs.keys()
        ]:
            for name in shared_names:
                uses = types[name].uses
                self._needs[name] = uses.union(*(self._needs[used_name] for used_name in uses))
        self._paths = {name: f"{free_path(name.replace('.', '/'))}.avsc" for name in sorted(self._needs)}
        self.files = {path: types[name].text.encode() for name, path in self._paths.items()}
        self._imports: dict[str, str] = {}
        for name, usage in sorted(imported.items()):
            # An import means the file whose path ends with its name.
            path = f"{free_path(name.removesuffix('.proto'))}.proto"
            if usage.is_shared and path.endswith(f"/{name}"):
                self._imports[name] = path
                self.files[path] = usage.text.encode()

    def extract(self, value: Any) -> tuple[Any, dict[str, bytes]]:
        """Replace the shared types in a definition by their names, and return it with the files that it then needs."""
        used_names: set[str] = set()

        def is_shared(name: str) -> bool:
            if name in self._needs:
                used_names.update((name,), self._needs[name])
            return name in self._needs

        definition = _replace_types(value, None, is_shared)
        paths = sorted(self._paths[name] for name in used_names)
        return definition, {path: self.files[path] for path in paths}

    def import_path(self, name: str) -> str | None:
        """Return the path of the shared `.proto` file with this import name, or None."""
        return self._imports.get(name)


def print_imports(info: SchemaInfo) -> dict[str, str]:
    """Print the `.proto` files that a protobuf definition imports, by import name, without the files that protoc ships."""
    if spec(info).language != "protobuf":
        return {}
    try:
        definition = load("definition").parse(info.schema)
        return {
            name: load("definition").proto_text(definition.image.files[name].proto)
            for name in definition.reachable
            if name != definition.root.file.name and not load("definition").is_shipped(name)
        }
    except InvalidSchema:
        return {}


def _split_definition(info: SchemaInfo) -> Iterator[SchemaInfo]:
    """Yield a definition, or the key and value of a KEY_VALUE; nothing for a schema without definition."""
    if both := get_pair(info):
        yield from _split_definition(both.key)
        yield from _split_definition(both.value)
    elif info.type not in WITHOUT_SCHEMA:
        yield info


def _find_inner_types(info: SchemaInfo) -> Iterator[tuple[str, Any, set[str]]]:
    """Yield the name, the standalone definition and the used type names of each named type inside an Avro definition.

    A definition that is not JSON, is nested too deep, or has numbers that JSON does not have yields nothing.
    """
    if spec(info).language == "avro":
        try:
            value = read(decode(info.schema))
            json_text(value)
        except (ValueError, InvalidSchema):
            return
        for named in named_types(_NO_FILE, value):
            if named.value is not value:
                uses: set[str] = set()
                alone = _replace_types(named.value, named.around, lambda _: True, uses, is_whole=True)
                yield named.full_name, add_namespace(alone, named.around), uses - {named.full_name}


def _replace_types(
    value: Any,
    namespace: str | None,
    is_taken: Callable[[str], bool],
    uses: set[str] | None = None,
    *,
    is_whole: bool = False,
) -> Any:
    """Replace each inner type for which `is_taken` is true by its name.

    Args:
        value: the definition as JSON.
        namespace: the enclosing namespace.
        is_taken: called with the full name of each named type inside the definition.
        uses: receives the full name of every named type that the result refers to.
        is_whole: whether `value` is the whole definition, which is not replaced itself.
    """
    uses = set() if uses is None else uses
    match value:
        case str() if value not in PRIMITIVE_TYPES:
            uses.add(qualify(value, namespace)[0])
        case [*branches]:
            return [_replace_types(branch, namespace, is_taken, uses) for branch in branches]
        case {"type": ("array" | "map") as kind}:
            key = "items" if kind == "array" else "values"
            if key in value:
                return {**value, key: _replace_types(value[key], namespace, is_taken, uses)}
        case {"type": str(kind), "name": str()} if kind in NAMED:
            full_name, within = own_names(value, namespace)
            if not is_whole and is_taken(full_name):
                uses.add(full_name)
                around, _, name = full_name.rpartition(".")
                return name if around == (namespace or "") else full_name
            if isinstance(fields := value.get("fields"), list):
                return {
                    **value,
                    "fields": [
                        {**part, "type": _replace_types(part["type"], within, is_taken, uses)}
                        if isinstance(part, dict) and "type" in part
                        else part
                        for part in fields
                    ],
                }
        case {"type": str(name)} if name not in PRIMITIVE_TYPES:
            uses.add(qualify(name, namespace)[0])
    return value
