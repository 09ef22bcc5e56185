"""Build the AsyncAPI 3 document of topics: one channel each, with Pulsar's bindings and the schema in force."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from schemactl.codec.avro_schema import blank_comments
from schemactl.codegen.spark_types import UnboundedColumns
from schemactl.codegen.topic_struct import StructOptions, message_doc, value_of
from schemactl.core.catalog import Catalog, Topic
from schemactl.core.errors import InvalidSchema, SchemactlError, UsageError
from schemactl.core.names import TopicName, format_kind_name
from schemactl.core.schema import Release, SchemaInfo, SchemaVersion
from schemactl.formats import protobuf, spec
from schemactl.publish.json_schema import Json, SchemaWriter, drop_empty, find_free_name, has_payload

_BINDING: Final = {"bindingVersion": "0.1.0"}
_MEGABYTE: Final = 2**20
_NAME: Final = re.compile(r"([A-Za-z_]\w*(\.[A-Za-z_]\w*)*)?", re.ASCII)
"""The names that AsyncAPI's schema of Avro definitions allows; Pulsar allows more."""

_ROOT_COMMENT: Final = "@RootNode"
"""The comment by which AsyncAPI's parser finds the message of a payload in a `.proto` file of several messages."""

_KNOWN_IMPORTS: Final = frozenset(
    f"google/protobuf/{name}.proto"
    for name in ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
)
"""The files that AsyncAPI's parser has; a document cannot include further files."""

_EXPANSION: Final = StructOptions(recursive_field_max_depth=2)
"""AsyncAPI's parser writes out each message at each use, and a recursive message twice."""

_CONTENT_TYPES: Final = {
    "avro": "application/vnd.apache.avro",
    "json": "application/json",
    "protobuf": "application/x-protobuf",
}
"""The content type of payloads; all others are `application/octet-stream`."""


class AsyncApiDocument(NamedTuple):
    """A document, and the topics and kinds of events that it lacks, each with the reason."""

    content: Json
    skipped: Mapping[str, str]


def make_document(
    title: str,
    version: str,
    catalog: Catalog,
    topics: Sequence[tuple[Topic, SchemaVersion]],
    *,
    servers: Mapping[str, Json],
    release: Release,
) -> AsyncApiDocument:
    """Return the document of the topics, each with the version in force, without the topics that cannot be described.

    Args:
        title: the title of the document.
        version: the version of the document, which names its commit.
        catalog: the catalog with the topics.
        topics: the topics with their versions in force, whose definitions are as formatted now.
        servers: the Server Objects, by name.
        release: the release of Pulsar whose Avro parses the definitions.
    """
    writer = SchemaWriter("#/components/schemas/", release)
    tenants = {topic.name.namespace_name.tenant for topic, _ in topics}
    binding = {"pulsar": {"tenant": next(iter(tenants)), **_BINDING}} if len(tenants) == 1 else {}
    channels: Json = {}
    skipped = {}
    keys: dict[TopicName, str] = {}
    for topic, current in topics:
        key = keys.get(topic.name) or find_free_name(
            re.sub(r"[^\w.-]", ".", topic.name.schema_id, flags=re.ASCII), channels
        )
        known_types = writer.list_types()
        try:
            channel = _make_channel(topic, current, catalog, writer)
            if topic.name in keys:
                # Another kind of events of the same topic; the channel has the newest version of all.
                channel["messages"] = channels[key]["messages"] | channel["messages"]
                newer = max(channel, channels[key], key=lambda value: value["x-schema-version"])
                channel |= {name: newer[name] for name in ("x-schema-version", "x-commit") if name in newer}
            channels[key], keys[topic.name] = channel, key
        except SchemactlError as error:
            skipped[format_kind_name(topic.name, topic.kind)] = error.message
        except RecursionError:
            skipped[format_kind_name(topic.name, topic.kind)] = "it is nested too deeply"
        else:
            continue
        writer.forget_types_except(known_types)
    content = {
        "asyncapi": "3.0.0",
        "info": {"title": title, "version": version},
        "defaultContentType": "application/octet-stream",
        **drop_empty(
            {"servers": {name: drop_empty({**server, "bindings": binding}) for name, server in servers.items()}}
        ),
        "channels": channels,
        **drop_empty({"components": drop_empty({"schemas": dict(sorted(writer.types.items()))})}),
    }
    return AsyncApiDocument(content, skipped)


def _make_channel(topic: Topic, current: SchemaVersion, catalog: Catalog, writer: SchemaWriter) -> Json:
    metadata = catalog.metadata(topic.name)
    url = next(iter(metadata.links.values()), "")
    return drop_empty(
        {
            "address": str(topic.name),
            "description": metadata.description,
            "messages": {topic.kind or "message": _make_message(topic, current, writer)},
            "tags": [{"name": f"{name}={text}"} for name, text in metadata.labels.items()],
            # A URI consists of ASCII characters without quotes and angle brackets.
            "externalDocs": drop_empty({"url": quote(url, safe="%:/?#[]@!$&'()*+,;=~")}),
            "bindings": {"pulsar": _make_binding(topic, catalog)},
            "x-owner": metadata.owner,
            "x-deprecated": metadata.deprecated and (metadata.deprecated.values() or True),
            "x-schema-version": current.number,
            "x-commit": current.commit and current.commit.id,
        }
    )


def _make_message(topic: Topic, current: SchemaVersion, writer: SchemaWriter) -> Json:
    info = current.info
    assert info is not None  # noqa: S101  a version in force has a definition
    schema_spec = spec(info)
    payload = _make_payload(info, writer)
    return {
        **drop_empty(
            {
                "name": topic.kind or topic.name.topic,
                "title": f"{topic.kind or topic.name.topic}, version {current.number}",
                "description": message_doc(info, writer.release),
                "contentType": _CONTENT_TYPES.get(schema_spec.payload, "application/octet-stream"),
            }
        ),
        **({"payload": payload} if payload is not None else {}),
        "x-schema-type": info.type.name,
        **drop_empty({"x-schema-properties": dict(info.properties)}),
        **({"x-schema-version": current.number} if topic.kind else {}),
    }


def _make_payload(info: SchemaInfo, writer: SchemaWriter) -> Json | None:
    """Return the schema of the payloads in their own language or as JSON Schema, or None if neither can describe them."""
    try:
        value_of(info, _EXPANSION, writer.release)
    except UnboundedColumns:
        # AsyncAPI's parser would write it out without end, and with it the whole document.
        raise
    except SchemactlError:
        # Spark has no type for it, which is not the subject.
        pass
    schema_spec = spec(info)
    if schema_spec.payload == "avro":
        schema = _split_full_names(json.loads(blank_comments(info.schema.decode())))
        if all(_NAME.fullmatch(name) for name in _list_names(schema)):
            return {"schemaFormat": "application/vnd.apache.avro;version=1.9.0", "schema": schema}
    native = info if schema_spec.language == "protobuf" else info.proto
    if native is not None:
        text = _find_proto_text(native)
        if text is not None:
            return {"schemaFormat": "application/vnd.google.protobuf;version=3", "schema": text}
    return writer.convert(info) if has_payload(info) else None


def _find_proto_text(native: SchemaInfo) -> str | None:
    """Return the `.proto` file of a PROTOBUF_NATIVE definition, or None if AsyncAPI's parser cannot read it."""
    definitions = protobuf.load("definition")
    root = definitions.parse(native.schema).root
    file = root.file.proto
    if file.syntax == "editions" or not _KNOWN_IMPORTS.issuperset(file.dependency):
        return None
    try:
        text: str = definitions.proto_text(file, {root.full_name: _ROOT_COMMENT})
    except InvalidSchema:
        # It has a group.
        return None
    return text


def _split_full_names(schema: Any) -> Any:
    """Move the namespace of full names into `namespace`, because AsyncAPI's schema of Avro does not allow dots in `name`."""
    if isinstance(schema, list):
        return [_split_full_names(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    definition = {
        key: _split_full_names(value) if key in ("type", "items", "values", "fields") else value
        for key, value in schema.items()
    }
    namespace, has_dot, name = str(definition.get("name", "")).rpartition(".")
    return {**definition, "name": name, "namespace": namespace} if has_dot else definition


def _list_names(schema: Any) -> Iterator[str]:
    """Yield the names, namespaces, aliases and symbols in an Avro definition."""
    if isinstance(schema, list):
        for part in schema:
            yield from _list_names(part)
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("name", "namespace", "aliases", "symbols"):
                names = value if isinstance(value, list) else [value]
                yield from (name for name in names if isinstance(name, str))
            elif key in ("type", "items", "values", "fields"):
                yield from _list_names(value)


def _make_binding(topic: Topic, catalog: Catalog) -> Json:
    namespace = catalog.namespaces.get(topic.name.namespace_name)

    def find_setting(name: str) -> Any:
        for holder in (topic, namespace):
            value = holder.policies.get(name) if holder else None
            if value not in (None, "UNDEFINED"):
                return value
        return None

    retention, compaction = find_setting("retention_policies"), find_setting("compaction_threshold")
    limits = retention and {"time": retention["retentionTimeInMinutes"], "size": retention["retentionSizeInMB"]}
    settings = {
        "compaction": -(-compaction // _MEGABYTE) if compaction else None,
        "geo-replication": find_setting("replication_clusters"),
        # The binding cannot express unlimited retention.
        "retention": retention and {key: value for key, value in limits.items() if value >= 0},
        "ttl": find_setting("message_ttl_in_seconds"),
        "deduplication": find_setting("deduplicationEnabled"),
    }
    return {
        "namespace": topic.name.namespace,
        # The binding does not know scalable topics, which are persistent.
        "persistence": "persistent" if topic.name.is_scalable else topic.name.domain,
        **{key: value for key, value in settings.items() if value is not None},
        **_BINDING,
    }


def parse_server(text: str) -> tuple[str, Json]:
    """Parse `NAME=pulsar://HOST:PORT` into a name and a Server Object.

    Raises:
        UsageError: if the text has another form.
    """
    name, is_given, url = text.partition("=")
    parts = urlsplit(url)
    if not is_given or not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise UsageError(f"--server {text}: expected NAME=pulsar://HOST:PORT")
    if parts.scheme not in ("pulsar", "pulsar+ssl") or not parts.hostname or "@" in parts.netloc:
        raise UsageError(f"--server {text}: expected pulsar://HOST:PORT or pulsar+ssl://HOST:PORT, without secrets")
    return name, {"host": parts.netloc, "protocol": parts.scheme}
