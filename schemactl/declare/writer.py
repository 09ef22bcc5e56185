"""Write new declaration files for `import`, `init` and `new`, with shared types in files of their own."""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from schemactl.comparison.changes import content_identity, unstamped
from schemactl.core.catalog import Catalog, Namespace, Topic
from schemactl.core.errors import InvalidSchema, Source
from schemactl.core.json_values import json_text
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.project import Project
from schemactl.core.schema import WITHOUT_SCHEMA, Release, SchemaInfo, SchemaType
from schemactl.declare import files as declare_files
from schemactl.declare import reader
from schemactl.declare.formatter import laid_out_json
from schemactl.declare.references import NAMED, AvroFile, named_types, own_names, qualified
from schemactl.declare.source_location import JsonText
from schemactl.declare.yaml_parser import Value, yaml_text
from schemactl.formats import SPECS, pair_of, spec
from schemactl.formats.avro.json_text import decode, read
from schemactl.formats.avro.schema import PRIMITIVE_TYPES, qualify
from schemactl.formats.key_value import join
from schemactl.formats.protobuf import load

# Declarations of a registry's topics and namespaces

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


def declared_topic_files(
    topic: Topic, info: SchemaInfo | None, stem: str, *, printed: bool = True, shared: CommonTypes | None = None
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
        values["schema"] = _declared_schema(unstamped(info), stem, files, printed=printed, shared=shared)
    return {f"{stem}.yaml": yaml_text(values).encode(), **files}


def _declared_schema(
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
        values["key"] = _declared_schema(both.key, f"{stem}.key", files, printed=printed, shared=shared)
        values["value"] = _declared_schema(both.value, f"{stem}.value", files, printed=printed, shared=shared)
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
        return laid_out_json(json_text(value)).encode(), needed
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("the definition cannot be printed as JSON") from error


def _protobuf(info: SchemaInfo, stem: str, files: dict[str, bytes], shared: CommonTypes | None) -> dict[str, Value]:
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
    values: dict[str, Value] = {"definition": f"{stem.rpartition('/')[2]}.proto", "message": definition.root.full_name}
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
        return self._free(f"{self._folder(name.namespace_name)}/{local if local != NAMESPACE_FILE else local + '_'}")

    def of_shared(self, name: str) -> str:
        """Return the path for the shared file called `name`, which has slashes between its parts."""
        return self._free(self._below_root("/".join(file_name(part) or "_" for part in ("shared", *name.split("/")))))

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
    declared = reader.read(declare_files.ChangedFiles(contents), Project(roots=(root,), release=release))
    found: dict[TopicName, str] = {}
    for name, (_, info) in made.items():
        read = declared.catalog.topics.get(name)
        if read is None:
            found[name] = "it cannot be declared"
        elif (read.schema and content_identity(read.schema)) != (info and content_identity(spec(info).declared(info))):
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


# New declarations, for a person to go on from; `check` accepts them as they are

EDITOR_FOLDER: Final = ".schemas"
"""Where a project has the JSON Schemas for editors, beside its project file."""

_AVRO: Final = """\
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
_AVRO_OF_PROTOBUF: Final = """\
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
_PROTO: Final = """\
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
    """The start of a new topic's definition.

    Attributes:
        type: the schema type; None for no schema.
        key, value: the schema types of a KEY_VALUE's halves.
        given: the path of a definition that is there already, from the folder of the declaration; "": one is written.
        message: of a given `.proto`, its root message.
    """

    type: SchemaType | None
    key: SchemaType = SchemaType.STRING
    value: SchemaType = SchemaType.AVRO
    given: str = ""
    message: str = ""


def namespace_folder(name: NamespaceName, catalog: Catalog, project: Project) -> str:
    """Return the folder for what is declared of a namespace: where most of it is, else one laid out as those of others are."""
    used = Counter(_folders(name, catalog))
    if used:
        return min(used, key=lambda folder: (-used[folder], folder))
    root = project.roots[0]
    with_tenant = file_name(name.tenant), file_name(name.name)
    others = {each: {*_folders(each, catalog)} for each in catalog.namespaces}
    plain = posixpath.join(root, with_tenant[1])
    has_tenants = any(
        posixpath.join(file_name(each.tenant), file_name(each.name)) == posixpath.relpath(folder, root or ".")
        for each, folders in others.items()
        for folder in folders
    )
    return posixpath.join(root, *with_tenant) if has_tenants or plain in set().union(*others.values()) else plain


def _folders(name: NamespaceName, catalog: Catalog) -> list[str]:
    """Return the folder of each declaration of a namespace and of its topics."""
    space = catalog.namespaces.get(name)
    topics = (topic for each, topic in catalog.topics.items() if each.namespace_name == name)
    return [posixpath.dirname(held.source.path) for held in (space, *topics) if held and held.source]


def namespace_files(name: NamespaceName, folder: str, strategy: str, said: Mapping[str, Value]) -> dict[str, str]:
    """Return the file that declares a namespace without automatic updates, with this strategy; "" declares none."""
    policies = {"schema_compatibility_strategy": strategy} if strategy else {}
    text = yaml_text({"namespace": str(name), **policies, "is_allow_auto_update_schema": False, **said})
    return {posixpath.join(folder, f"{NAMESPACE_FILE}.yaml"): text}


def topic_stem(name: TopicName, folder: str) -> str:
    """Return the common start of the paths of a topic's files in that folder."""
    local = file_name(name.topic)
    return posixpath.join(folder, f"{local}_" if local == NAMESPACE_FILE else local)


def new_topic_files(
    name: TopicName, stem: str, start: Start, values: Mapping[str, Value], said: Mapping[str, Value]
) -> dict[str, str]:
    """Return the files that declare a topic, by path; the first is the declaration.

    Args:
        name: of the topic.
        stem: what their paths begin with.
        start: of its definition.
        values: what is declared before what is said for people, which is `said`.
        said: as that.
    """
    files: dict[str, str] = {}
    schema = {"schema": _new_schema(start.type, name, stem, start, files)} if start.type else {}
    text = yaml_text({"topic": str(name), **values, **said, **schema})
    return {f"{stem}.yaml": text, **files}


def _new_schema(type_: SchemaType, name: TopicName, stem: str, start: Start, files: dict[str, str]) -> dict[str, Value]:
    """Return the `schema` of a declaration, or a half of one, and add the definitions that it needs to `files`."""
    words = {
        "record": _record(name.topic),
        "package": ".".join(_identifier(part) for part in (name.tenant, name.namespace)),
        "topic": str(name),
        "doc": json.dumps(f"A message of {name}."),
    }
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
    elif kind != "plain":
        avro, proto = f"{stem}.avsc", f"{stem}.proto"
        if kind != "proto":
            files[avro] = (_AVRO if kind == "avro" else _AVRO_OF_PROTOBUF) % words
        if kind != "avro":
            files[proto] = _PROTO % words
        values["definition"] = posixpath.basename(proto if kind == "proto" else avro)
        if kind == "protobuf" and not stem.endswith((".key", ".value")):
            values["proto"] = posixpath.basename(proto)
        if kind == "proto" or "proto" in values:
            values["message"] = f"{words['package']}.{words['record']}"
        else:
            files.pop(proto, None)
    return values


def _record(text: str) -> str:
    """Return the name of a record for what is called `text`: `page-views` is `PageViews`."""
    parts = re.findall("[A-Za-z0-9]+", text)
    return _identifier("".join(part[0].upper() + part[1:] for part in parts) or "Message")


def _identifier(text: str) -> str:
    """Return `text` as a valid name in Avro and protobuf."""
    plain = re.sub("[^A-Za-z0-9_]", "_", text)
    return f"_{plain}" if plain[0].isdigit() else plain


_PACKAGE: Final = re.compile(r"^package\s+([\w.]+)\s*;", re.MULTILINE)
_MESSAGE: Final = re.compile(r"^message\s+(\w+)", re.MULTILINE)


def messages(proto: str) -> list[str]:
    """Return the full names of the messages at the top level of a `.proto` text, as far as they begin a line."""
    package = _PACKAGE.search(proto)
    return [f"{package[1]}.{each}" if package else each for each in _MESSAGE.findall(proto)]


def editor_line(path: str, folder: str, kind: str) -> str:
    """Return the comment that tells editors the JSON Schema of the file `path`, in a project in `folder`."""
    schema = posixpath.join(folder, EDITOR_FOLDER, f"{kind}.schema.json")
    return f"# yaml-language-server: $schema={posixpath.relpath(schema, posixpath.dirname(path) or '.')}\n"


# Shared definitions: named Avro types, one in a file, and `.proto` files


@dataclass(slots=True)
class _FoundType:
    """One type or file as the definitions of a registry have it.

    Attributes:
        texts: the ways it is defined, as a file would have it, with the types inside it by their names; by what is the
            same for two that differ in the order of keys alone.
        topics: the topics that have it.
        uses: the other types that it needs.
    """

    texts: dict[str, str] = field(default_factory=dict)
    topics: set[TopicName] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)

    @property
    def is_shared(self) -> bool:
        """Whether two or more topics define it, all in the same way."""
        return len(self.topics) > 1 and len(self.texts) == 1

    @property
    def text(self) -> str:
        """The one way in which it is defined."""
        (text,) = self.texts.values()
        return text


class CommonTypes:
    """The named Avro types and imported `.proto` files that two or more topics have, alike in all their versions.

    A type that needs another one is shared only together with it, and types that need each other are not: files cannot.

    Attributes:
        files: the text of each file, by path.
    """

    def __init__(self, versions: Iterable[tuple[TopicName, SchemaInfo]], free_path: Callable[[str], str]) -> None:
        """Find them among `versions`, which are all to declare.

        Args:
            versions: topics and their definitions.
            free_path: returns an unused path without suffix, for a name below the folder of shared files.
        """
        found: dict[str, _FoundType] = {}
        imported: dict[str, _FoundType] = {}
        for topic, info in versions:
            for half in _halves(info):
                for name, value, uses in _inner_types(half):
                    each = found.setdefault(name, _FoundType())
                    each.texts.setdefault(json.dumps(value, sort_keys=True), laid_out_json(json_text(value)))
                    each.topics.add(topic)
                    each.uses |= uses
                for name, text in imports(half).items():
                    each = imported.setdefault(name, _FoundType())
                    each.texts[text] = text
                    each.topics.add(topic)
        self._needs: dict[str, set[str]] = {}
        while more := [
            name
            for name, each in found.items()
            if name not in self._needs and each.is_shared and each.uses <= self._needs.keys()
        ]:
            for name in more:
                uses = found[name].uses
                self._needs[name] = uses.union(*(self._needs[each] for each in uses))
        self._paths = {name: f"{free_path(name.replace('.', '/'))}.avsc" for name in sorted(self._needs)}
        self.files = {path: found[name].text.encode() for name, path in self._paths.items()}
        self._imports: dict[str, str] = {}
        for name, each in sorted(imported.items()):
            # An import finds the file whose path ends in its name, so that any other path is of no use.
            path = f"{free_path(name.removesuffix('.proto'))}.proto"
            if each.is_shared and path.endswith(f"/{name}"):
                self._imports[name] = path
                self.files[path] = each.text.encode()

    def outside(self, value: Any) -> tuple[Any, dict[str, bytes]]:
        """Return a definition with the shared types taken out, and the files that it then needs."""
        taken: set[str] = set()

        def is_shared(name: str) -> bool:
            if name in self._needs:
                taken.update((name,), self._needs[name])
            return name in self._needs

        short = _without(value, None, is_shared)
        paths = sorted(self._paths[name] for name in taken)
        return short, {path: self.files[path] for path in paths}

    def import_path(self, name: str) -> str | None:
        """Return the path of the `.proto` file that is imported by this name; None if it is not shared."""
        return self._imports.get(name)


def imports(info: SchemaInfo) -> dict[str, str]:
    """Return the `.proto` files that a protobuf definition imports, printed, by name; not those that protoc ships."""
    if spec(info).language != "protobuf":
        return {}
    try:
        definition = load("definition").parse(info.schema)
        return {
            each: load("definition").proto_text(definition.image.files[each].proto)
            for each in definition.reachable
            if each != definition.root.file.name and not load("definition").is_shipped(each)
        }
    except InvalidSchema:
        return {}


def _halves(info: SchemaInfo) -> Iterator[SchemaInfo]:
    """Yield a definition, or the two of a KEY_VALUE, unless it has none."""
    if both := pair_of(info):
        yield from _halves(both.key)
        yield from _halves(both.value)
    elif info.type not in WITHOUT_SCHEMA:
        yield info


def _inner_types(info: SchemaInfo) -> Iterator[tuple[str, Any, set[str]]]:
    """Yield the name of each named type inside a definition, its definition in a file of its own, and what it needs.

    Nothing for a definition that is no JSON, is nested too deeply, or has numbers that JSON does not have.
    """
    if spec(info).language == "avro":
        try:
            value = read(decode(info.schema))
            json_text(value)
        except (ValueError, InvalidSchema):
            return
        for named in named_types(_FILE, value):
            if named.value is not value:
                uses: set[str] = set()
                alone = _without(named.value, named.around, lambda _: True, uses, is_whole=True)
                yield named.full_name, qualified(alone, named.around), uses - {named.full_name}


def _without(
    value: Any,
    namespace: str | None,
    is_taken: Callable[[str], bool],
    uses: set[str] | None = None,
    *,
    is_whole: bool = False,
) -> Any:
    """Return a definition in which each type for which `is_taken` holds is replaced by its name.

    Args:
        value: the definition as JSON.
        namespace: the namespace in force around it.
        is_taken: asked with the full name of each named type inside it.
        uses: gets the full name of every named type that the result refers to.
        is_whole: `value` itself is not replaced, whatever its name.
    """
    uses = set() if uses is None else uses
    match value:
        case str() if value not in PRIMITIVE_TYPES:
            uses.add(qualify(value, namespace)[0])
        case [*branches]:
            return [_without(each, namespace, is_taken, uses) for each in branches]
        case {"type": ("array" | "map") as kind}:
            key = "items" if kind == "array" else "values"
            if key in value:
                return {**value, key: _without(value[key], namespace, is_taken, uses)}
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
                        {**each, "type": _without(each["type"], within, is_taken, uses)}
                        if isinstance(each, dict) and "type" in each
                        else each
                        for each in fields
                    ],
                }
        case {"type": str(name)} if name not in PRIMITIVE_TYPES:
            uses.add(qualify(name, namespace)[0])
    return value


_FILE: Final = AvroFile("", None, JsonText("", lambda _: Source("")))
