"""What a registry holds of a topic or a namespace, as the files that declare the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from schemactl.changes import unstamped
from schemactl.declare.rendering import rendered
from schemactl.declare.writing import Value, yaml_text
from schemactl.errors import InvalidSchema
from schemactl.formats.avro.text import decode, read
from schemactl.formats.key_value import join, split
from schemactl.formats.protobuf_native import load
from schemactl.model import (
    AVRO_DESCRIBED,
    CompatibilityStrategy,
    Namespace,
    SchemaInfo,
    SchemaType,
    Topic,
)

NO_SCHEMA = frozenset({SchemaType.NONE, SchemaType.BYTES})
"""What a registry may hold for a topic whose messages have no schema."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one declaration by path; the first one is the YAML file."""

    yaml_path: str
    contents: Mapping[str, bytes]


Texts = Callable[[SchemaInfo], bytes]
"""How an Avro definition is written: laid out, or as it stands."""


def namespace_text(namespace: Namespace) -> bytes:
    """The declaration of a namespace with every policy that is set on it."""
    managed: dict[str, Value] = {}
    for policy in fields(namespace.policies):
        value = getattr(namespace.policies, policy.name)
        if value not in (None, CompatibilityStrategy.UNDEFINED):
            managed[policy.name] = value if isinstance(value, bool) else str(value)
    return yaml_text({"namespace": str(namespace.name), **managed}).encode()


def topic_files(topic: Topic, info: SchemaInfo | None, stem: str, texts: Texts) -> Files:
    """The declaration of `topic` with the definition `info`, in files whose paths start with `stem`.

    Raises:
        InvalidSchema: the definition cannot be taken apart.
    """
    told: dict[str, Value] = {"topic": str(topic.name)}
    if topic.partitions is not None:
        told["partitions"] = topic.partitions
    strategy = topic.policies.schema_compatibility_strategy
    if strategy not in (None, CompatibilityStrategy.UNDEFINED):
        told["schema_compatibility_strategy"] = str(strategy)
    beside: dict[str, bytes] = {}
    if info is not None and info.type not in NO_SCHEMA:
        told["schema"] = _schema(unstamped(info), stem, beside, texts)
    return Files(f"{stem}.yaml", {f"{stem}.yaml": yaml_text(told).encode(), **beside})


def laid_out(info: SchemaInfo) -> bytes:
    """An Avro definition as the tool prints it: JSON, indented by two, keys in their order.

    Raises:
        InvalidSchema: it is not JSON.
    """
    try:
        return (rendered(read(decode(info.schema))) + "\n").encode()
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("the definition cannot be printed as JSON") from error


def as_it_stands(info: SchemaInfo) -> bytes:
    """An Avro definition byte by byte."""
    return info.schema


def _schema(info: SchemaInfo, stem: str, beside: dict[str, bytes], texts: Texts) -> dict[str, Value]:
    """The `schema` of a declaration; the files it names are put into `beside`."""
    properties = dict(info.properties)
    told: dict[str, Value] = {"type": info.type.name}
    name = stem.rpartition("/")[2]
    if info.type in AVRO_DESCRIBED:
        beside[f"{stem}.avsc"] = texts(info)
        told["definition"] = f"{name}.avsc"
    elif info.type is SchemaType.PROTOBUF_NATIVE:
        data, message = load("wrapper").descriptor_set(info.schema)
        beside[f"{stem}.binpb"] = data
        told |= {"definition": f"{name}.binpb", "message": message}
    elif info.type is SchemaType.KEY_VALUE:
        both = split(info)
        told["encoding"] = both.encoding
        told["key"] = _schema(both.key, f"{stem}.key", beside, texts)
        told["value"] = _schema(both.value, f"{stem}.value", beside, texts)
        # These follow from what is declared; the names of halves nobody compares.
        derived = join(key=both.key, value=both.value, encoding=both.encoding).properties
        properties = {key: value for key, value in properties.items() if key not in derived}
    return {**told, "properties": properties}
