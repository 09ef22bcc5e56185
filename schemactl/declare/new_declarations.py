"""Render declarations that `check` accepts before anyone edits them, for `init` and `new`."""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from schemactl.core.catalog import Catalog
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Project
from schemactl.core.schema import SchemaType
from schemactl.declare.writer import NAMESPACE_FILE, file_name
from schemactl.declare.yaml_parser import Value, render_yaml
from schemactl.formats import SPECS

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
        existing_path: the path of an existing definition, relative to the folder of the declaration, or "" to write a new one.
        message: the root message of an existing `.proto` file.
        references: the paths of the files whose types the existing definition uses, relative to the same folder.
        is_payload: whether the existing file is one for `pulsar-admin schemas upload`.
    """

    type: SchemaType | None
    key: SchemaType = SchemaType.STRING
    value: SchemaType = SchemaType.AVRO
    existing_path: str = ""
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
        return {"payload": start.existing_path}
    values: dict[str, Value] = {"type": type_.name}
    kind = SPECS[type_].declared_as
    if kind == "pair":
        key = Start(start.key)
        values["encoding"] = "SEPARATED"
        values["key"] = _new_schema(start.key, name, f"{stem}.key", key, files)
        values["value"] = _new_schema(start.value, name, f"{stem}.value", start, files)
    elif kind != "plain" and start.existing_path:
        values["definition"] = start.existing_path
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
