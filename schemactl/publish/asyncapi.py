"""An AsyncAPI 3 document of topics: a channel each, with Pulsar's bindings and the message in force."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlsplit

from schemactl.codegen.topic_struct import message_doc
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion
from schemactl.formats import protobuf, spec
from schemactl.formats.avro.json_text import without_comments
from schemactl.publish.json_schema import Json, SchemaWriter, filled, free_name

_BINDING: Final = {"bindingVersion": "0.1.0"}
_MEGABYTE: Final = 2**20
_NAME: Final = re.compile(r"([A-Za-z_]\w*(\.[A-Za-z_]\w*)*)?", re.ASCII)
"""What AsyncAPI's schema of Avro definitions allows; Pulsar allows more."""

CONTENT_TYPES: Final = {
    "avro": "application/vnd.apache.avro",
    "json": "application/json",
    "protobuf": "application/x-protobuf",
}
"""Of payloads; all others are `application/octet-stream`."""


def server_of(text: str) -> tuple[str, Json]:
    """Return the name and the Server Object that `NAME=pulsar://HOST:PORT` describes.

    Raises:
        UsageError: the text has another form.
    """
    name, is_given, url = text.partition("=")
    parts = urlsplit(url)
    if not is_given or not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise UsageError(f"--server {text}: expected NAME=pulsar://HOST:PORT")
    if parts.scheme not in ("pulsar", "pulsar+ssl") or not parts.hostname or "@" in parts.netloc:
        raise UsageError(f"--server {text}: expected pulsar://HOST:PORT or pulsar+ssl://HOST:PORT, without secrets")
    return name, {"host": parts.netloc, "protocol": parts.scheme}


def document(
    title: str,
    version: str,
    catalog: Catalog,
    topics: Sequence[tuple[Topic, SchemaVersion]],
    *,
    servers: Mapping[str, Json],
    release: Release,
) -> Json:
    """Return the document of the topics, each with the version in force.

    Args:
        title: of the document.
        version: of the document: what names the commit that it was made of.
        catalog: that has the topics.
        topics: with the version in force, and its definition as it reads now.
        servers: by name.
        release: whose Avro reads the definitions.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    writer = SchemaWriter("#/components/schemas/", release)
    tenants = {topic.name.namespace_name.tenant for topic, _ in topics}
    binding = {"pulsar": {"tenant": next(iter(tenants)), **_BINDING}} if len(tenants) == 1 else {}
    channels = {key: _channel(topic, one, catalog, writer) for key, topic, one in _keyed(topics)}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": title, "version": version},
        "defaultContentType": "application/octet-stream",
        **filled({"servers": {name: filled({**server, "bindings": binding}) for name, server in servers.items()}}),
        "channels": channels,
        **filled({"components": filled({"schemas": dict(sorted(writer.types.items()))})}),
    }


def _keyed(topics: Sequence[tuple[Topic, SchemaVersion]]) -> list[tuple[str, Topic, SchemaVersion]]:
    """Return the topics with keys that the specification allows, each once."""
    found: dict[str, tuple[str, Topic, SchemaVersion]] = {}
    for topic, one in topics:
        key = free_name(re.sub(r"[^\w.-]", ".", topic.name.schema_id, flags=re.ASCII), found)
        found[key] = key, topic, one
    return [*found.values()]


def _channel(topic: Topic, one: SchemaVersion, catalog: Catalog, writer: SchemaWriter) -> Json:
    said = catalog.metadata(topic.name)
    url = next(iter(said.links.values()), "")
    return filled(
        {
            "address": str(topic.name),
            "description": said.description,
            "messages": {"message": _message(topic, one, writer)},
            "tags": [{"name": f"{name}={text}"} for name, text in said.labels.items()],
            # A URI has ASCII alone, and no quotes or angle brackets.
            "externalDocs": filled({"url": quote(url, safe="%:/?#[]@!$&'()*+,;=~")}),
            "bindings": {"pulsar": _binding(topic, catalog)},
            "x-owner": said.owner,
            "x-deprecated": said.deprecated and (said.deprecated.values() or True),
            "x-schema-version": one.number,
            "x-commit": one.commit and one.commit.id,
        }
    )


def _message(topic: Topic, one: SchemaVersion, writer: SchemaWriter) -> Json:
    info = one.info
    assert info is not None  # noqa: S101  a version in force has one
    kind = spec(info)
    payload = _payload(info, writer)
    return {
        **filled(
            {
                "name": topic.name.topic,
                "title": f"{topic.name.topic}, version {one.number}",
                "description": message_doc(info, writer.release),
                "contentType": CONTENT_TYPES.get(kind.payload, "application/octet-stream"),
            }
        ),
        **({"payload": payload} if payload is not None else {}),
        "x-schema-type": info.type.name,
    }


def _payload(info: SchemaInfo, writer: SchemaWriter) -> Json | None:
    """Return the schema of the payloads in the language that tools know for it; None: nothing says what they are."""
    kind = spec(info)
    if kind.payload == "avro":
        schema = _short_names(json.loads(without_comments(info.schema.decode())))
        if all(_NAME.fullmatch(each) for each in _names(schema)):
            return {"schemaFormat": "application/vnd.apache.avro;version=1.9.0", "schema": schema}
    native = info if kind.language == "protobuf" else info.proto
    if native is not None:
        wrapper, printing = protobuf.load("definition"), protobuf.load("definition")
        file = wrapper.parse(native.schema).root.file.proto
        # A document has no place for further files: without them JSON Schema says the same.
        if all(map(wrapper.is_shipped, file.dependency)):
            return {"schemaFormat": "application/vnd.google.protobuf;version=3", "schema": printing.proto_text(file)}
    try:
        return writer.message(info)
    except SchemactlError:
        return None


def _short_names(schema: Any) -> Any:
    """Return an Avro definition with the namespaces of full names apart: AsyncAPI's schema of Avro allows no dots in `name`."""
    if isinstance(schema, list):
        return [_short_names(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: _short_names(value) if key in ("type", "items", "values", "fields") else value
        for key, value in schema.items()
    }
    namespace, has_dot, name = str(found.get("name", "")).rpartition(".")
    return {**found, "name": name, "namespace": namespace} if has_dot else found


def _names(schema: Any) -> Iterator[str]:
    """Yield the names, namespaces, aliases and symbols in an Avro definition."""
    if isinstance(schema, list):
        for each in schema:
            yield from _names(each)
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("name", "namespace", "aliases", "symbols"):
                yield from [value] if isinstance(value, str) else value
            elif key in ("type", "items", "values", "fields"):
                yield from _names(value)


def _binding(topic: Topic, catalog: Catalog) -> Json:
    space = catalog.namespaces.get(topic.name.namespace_name)

    def setting(name: str) -> Any:
        for holder in (topic, space):
            value = holder.policies.get(name) if holder else None
            if value not in (None, "UNDEFINED"):
                return value
        return None

    retention, compaction = setting("retention_policies"), setting("compaction_threshold")
    limits = retention and {"time": retention["retentionTimeInMinutes"], "size": retention["retentionSizeInMB"]}
    settings = {
        "compaction": -(-compaction // _MEGABYTE) if compaction else None,
        "geo-replication": setting("replication_clusters"),
        # The binding has no word for what is kept without end.
        "retention": retention and {key: value for key, value in limits.items() if value >= 0},
        "ttl": setting("message_ttl_in_seconds"),
        "deduplication": setting("deduplicationEnabled"),
    }
    return {
        "namespace": topic.name.namespace,
        "persistence": topic.name.domain,
        **{key: value for key, value in settings.items() if value is not None},
        **_BINDING,
    }
