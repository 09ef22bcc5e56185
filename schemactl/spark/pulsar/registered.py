"""Decode a topic with the schemas that the cluster has registered, for topics and versions without a generated package.

The driver reads the schemas through Pulsar's admin REST API, and tasks get them with their partitions.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, overload

from pyspark.sql.types import StructType

from ...codec import Codec, CodecError, Definition, KeyValue, KindsCodec, UnknownVersion, Version
from ...codec.avro_schema import get_full_name, parse
from ..dataframes import AnyCodec, decoded_columns
from ..message_columns import KEY, SCHEMA_VERSION, Columns
from .options import Connection, PulsarProblem, full_topic_name, parse_connection
from .topics import list_schemas

_LOGGER = logging.getLogger("schemactl")


@overload
def registered_codec(options: Mapping[str, str], *, codec: Codec | None = None) -> Codec: ...


@overload
def registered_codec(options: Mapping[str, str], *, codec: KindsCodec) -> KindsCodec: ...


def registered_codec(options: Mapping[str, str], *, codec: AnyCodec | None = None) -> AnyCodec:
    """Return a codec of a topic with the schemas of the cluster, read now; a warning in the log says so.

    Args:
        options: the options of the data source, among them `admin.url` and `topic`.
        codec: the codec of the topic's generated package, which gets the versions that it does not have. By default the codec has the
            registered versions alone, and messages are decoded into the newest.

    Raises:
        ValueError: if an option is missing or wrong.
        PulsarProblem: if the registry does not respond, or has no schema of the topic.
        UnknownVersion: if a version of `codec` has another content in the registry.
    """
    values = {name.casefold(): value for name, value in options.items()}
    if "topic" not in values:
        raise ValueError("the option topic is missing: give the topic whose schemas are read")
    connection, topic = parse_connection(options), full_topic_name(values["topic"])
    return read_codec(connection, topic) if codec is None else _add_foreign_versions(codec, connection, topic)


def read_codec(connection: Connection, topic: str) -> Codec:
    """Return a codec with the registered versions of a topic, which decodes into the newest; `topic` is a full name."""
    versions = _read_versions(connection, topic)
    _warn(
        f"the schemas of {topic} at {connection.admin_url} are read from its registry: versions {_list_numbers(versions)}"
    )
    return Codec(versions, reader=_find_reader(topic, versions).schema)


def _read_versions(connection: Connection, topic: str) -> list[Version]:
    if connection.admin_url is None:
        raise ValueError("the option admin.url is missing: registered schemas are read through Pulsar's admin REST API")
    return [make_version(topic, response) for response in list_schemas(connection, topic)]


def _add_foreign_versions(codec: AnyCodec, connection: Connection, topic: str) -> AnyCodec:
    """Return a codec that also has the registered versions that `codec` does not have."""
    from ...codec.pulsar_client import is_same_schema

    versions = _read_versions(connection, topic)
    place = f"{topic} at {connection.admin_url}"
    known_versions = {version.number: version.schema for version in codec.versions}
    for version in versions:
        if version.number in known_versions and not is_same_schema(known_versions[version.number], version.schema):
            raise UnknownVersion(
                f"version {version.number} of {place} is not the approved one: `schemactl drift` shows what it is"
            )
    foreign = [version for version in versions if version.number not in known_versions]
    if not foreign:
        return codec
    _warn(f"foreign versions of {place} are read from its registry: {_list_numbers(foreign)}")
    if any(version.kind for version in codec.versions):
        kinds_by_record = {_find_record_name(version.schema): version.kind for version in codec.versions}
        foreign = [
            replace(version, kind=kinds_by_record.get(_find_record_name(version.schema), "")) for version in foreign
        ]
    if isinstance(codec, KindsCodec):
        return KindsCodec({kind: _add_versions(kind_codec, foreign) for kind, kind_codec in codec.codecs.items()})
    return _add_versions(codec, foreign)


def _add_versions(codec: Codec, versions: Iterable[Version]) -> Codec:
    return Codec(
        [*codec.versions, *versions],
        reader=codec.reader,
        options=codec.options,
        numbers=codec.numbers,
        target=codec.target,
        kind=codec.kind,
    )


def _find_record_name(schema: Definition | KeyValue) -> str:
    """Return the full name of the record or message at the root of a schema, by which a version belongs to a kind of events, or ""."""
    if isinstance(schema, KeyValue) or not schema.text:
        return ""
    try:
        if schema.type == "PROTOBUF_NATIVE":
            from ...codec.proto_schema import load_descriptor

            return str(load_descriptor(schema).full_name)
        return get_full_name(parse(schema.text))
    except CodecError:
        return ""


def read_codec_for(connection: Connection, topic: str, raw: StructType, schema: StructType) -> Codec:
    """Return a codec with the registered versions, which decodes into the newest version that has the columns `schema`.

    So the columns of a query stay the same if a version is registered after it was planned. `raw` has the columns of a read without
    decoding.

    Raises:
        ValueError: if no version has these columns.
        PulsarProblem: as `registered_codec`.
    """
    codec = read_codec(connection, topic)
    for version in reversed(codec.versions):
        candidate = Codec(codec.versions, reader=version.schema)
        try:
            if _describe(decoded_columns(raw, candidate, select_columns(raw))) == _describe(schema):
                return candidate
        except CodecError:
            continue
    raise ValueError(
        f"no registered version of {topic} has the columns {', '.join(schema.names)}: remove `.schema(...)`, or load the source again"
    )


def _describe(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema]


def select_columns(raw: StructType) -> Columns:
    """Return the raw columns of a read by their meaning."""
    others = tuple(name for name in raw.names if name not in ("value", KEY, SCHEMA_VERSION))
    return Columns("value", SCHEMA_VERSION, KEY, others)


@cache
def _warn(text: str) -> None:
    """Log a warning once: a stream reads the schemas for each batch."""
    _LOGGER.warning(text)


def _find_reader(topic: str, versions: list[Version]) -> Version:
    """Return the newest version that messages can be decoded into."""
    problem: CodecError | None = None
    for version in reversed(versions):
        try:
            Codec([version]).columns  # noqa: B018  raises for a schema without columns
        except CodecError as error:
            problem = problem or error
            continue
        return version
    raise PulsarProblem(f"{topic}: no registered version can be decoded into columns: {problem}")


def _list_numbers(versions: list[Version]) -> str:
    return ", ".join(str(version.number) for version in versions)


def make_version(topic: str, response: Mapping[str, Any]) -> Version:
    """Return the version in a response of `list_schemas`."""
    try:
        number, text = int(response["version"]), str(response.get("data") or "")
        properties = {str(name): str(value) for name, value in (response.get("properties") or {}).items()}
        if response["type"] != "KEY_VALUE":
            return Version(number, Definition(str(response["type"]), text, properties), foreign=True)
        # The API shows the definitions of key and value as JSON in the text of a KEY_VALUE.
        texts, parts = json.loads(text), {}
        for name in ("key", "value"):
            part_text = texts[name] if isinstance(texts[name], str) else json.dumps(texts[name])
            part_properties = json.loads(properties.get(f"{name}.schema.properties") or "{}")
            parts[name] = Definition(
                properties.get(f"{name}.schema.type", "BYTES"),
                part_text,
                {str(key): str(value) for key, value in part_properties.items()},
            )
        encoding = properties.get("kv.encoding.type") or "INLINE"
        pair = KeyValue(parts["key"], parts["value"], "SEPARATED" if encoding == "SEPARATED" else "INLINE")
        return Version(number, pair, foreign=True)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PulsarProblem(f"{topic}: the response of the registry is not a schema: {error!r}") from None
