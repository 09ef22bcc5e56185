"""The text of a new declaration, for a person to go on from; `check` accepts it as it is."""

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
from schemactl.declare.yaml_text import Value, yaml_text
from schemactl.formats import SPECS
from schemactl.importing.declarations import NAMESPACE_FILE, file_name

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
    return (
        posixpath.join(root, *with_tenant) if has_tenants or plain in set().union(*others.values()) else plain
    )


def _folders(name: NamespaceName, catalog: Catalog) -> list[str]:
    """Return the folder of each declaration of a namespace and of its topics."""
    space = catalog.namespaces.get(name)
    topics = (topic for each, topic in catalog.topics.items() if each.namespace_name == name)
    return [posixpath.dirname(held.source.path) for held in (space, *topics) if held and held.source]


def namespace_files(
    name: NamespaceName, folder: str, strategy: str, said: Mapping[str, Value]
) -> dict[str, str]:
    """Return the file that declares a namespace without automatic updates, with this strategy; "" declares none."""
    policies = {"schema_compatibility_strategy": strategy} if strategy else {}
    text = yaml_text({"namespace": str(name), **policies, "is_allow_auto_update_schema": False, **said})
    return {posixpath.join(folder, f"{NAMESPACE_FILE}.yaml"): text}


def topic_stem(name: TopicName, folder: str) -> str:
    """Return the common start of the paths of a topic's files in that folder."""
    local = file_name(name.topic)
    return posixpath.join(folder, f"{local}_" if local == NAMESPACE_FILE else local)


def topic_files(
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
    schema = {"schema": _schema(start.type, name, stem, start, files)} if start.type else {}
    text = yaml_text({"topic": str(name), **values, **said, **schema})
    return {f"{stem}.yaml": text, **files}


def _schema(
    type_: SchemaType, name: TopicName, stem: str, start: Start, files: dict[str, str]
) -> dict[str, Value]:
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
        values["key"] = _schema(start.key, name, f"{stem}.key", key, files)
        values["value"] = _schema(start.value, name, f"{stem}.value", start, files)
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
