"""Write and read Avro container files, whose records are values of a topic, and find the version that wrote one.

The file states the definition of its writer. Source: *Object Container Files* of the Avro specification.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from schemactl.comparison.changes import VersionIndex
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.schema import SchemaInfo, SchemaType

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.schema import SchemaVersion

MAGIC: Final = b"Obj\x01"
"""The first bytes of a container file."""

SUFFIX: Final = ".avro"

AVRO_TYPES: Final = (SchemaType.AVRO, SchemaType.JSON)
"""The types of topics whose definitions are Avro's, and whose values a container file can hold."""

_MAX_NAME_LENGTH: Final = 60


@dataclass(frozen=True, slots=True)
class ContainerHeader:
    """The header of a container file.

    Attributes:
        definition: the definition that its records were written with, as JSON.
        metadata: the other entries of its header that are text.
    """

    definition: str
    metadata: Mapping[str, str]


def is_container(path: Path) -> bool:
    """Return whether the file exists and begins like a container file."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def make_container(definition: str, payloads: Iterable[bytes], metadata: Mapping[str, str]) -> bytes:
    """Return a container file with the values of Avro payloads, compressed with deflate.

    Raises:
        SchemactlError: if fastavro is not installed, or does not accept the definition or a value.
    """
    fastavro = _import_fastavro()
    try:
        schema = json.loads(definition)
        # Logical types stay numbers and bytes, so no value is converted.
        plain_schema = fastavro.parse_schema(_without_logical_types(schema))
        records = [
            fastavro.schemaless_reader(io.BytesIO(payload), plain_schema, return_named_type=True)
            for payload in payloads
        ]
        file = io.BytesIO()
        fastavro.writer(file, fastavro.parse_schema(schema), records, codec="deflate", metadata=dict(metadata))
    except _list_failures(fastavro) as error:
        raise SchemactlError(f"fastavro does not write these values: {_describe(error)}") from None
    return file.getvalue()


def read_header(path: Path) -> ContainerHeader:
    """Read the header of a container file.

    Raises:
        SchemactlError: if fastavro is not installed, or the file cannot be read or is not a container file.
    """
    fastavro = _import_fastavro()
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise SchemactlError(f"{path} is not an Avro container file: it does not begin with `Obj` and 1")
            file.seek(0)
            metadata = fastavro.block_reader(file).metadata
    except OSError as error:
        raise SchemactlError(f"cannot read {path}: {error.strerror}") from None
    except _list_failures(fastavro) as error:
        raise _make_broken_error(path, error) from None
    texts = {
        name: text if isinstance(text, str) else text.decode("utf-8", "replace") for name, text in metadata.items()
    }
    return ContainerHeader(
        texts["avro.schema"], {name: text for name, text in texts.items() if not name.startswith("avro.")}
    )


def read_payloads(path: Path) -> Iterator[bytes]:
    """Yield the bytes of each record of a container file.

    Raises:
        SchemactlError: if fastavro is not installed, or a block or a record cannot be read.
    """
    fastavro = _import_fastavro()
    schema = fastavro.parse_schema(_without_logical_types(json.loads(read_header(path).definition)))
    try:
        with path.open("rb") as file:
            for block in fastavro.block_reader(file):
                data = block.bytes_.getvalue()
                records = io.BytesIO(data)
                for _ in range(block.num_records):
                    start = records.tell()
                    fastavro.schemaless_reader(records, schema)
                    yield data[start : records.tell()]
    except OSError as error:
        raise SchemactlError(f"cannot read {path}: {error.strerror}") from None
    except _list_failures(fastavro) as error:
        raise _make_broken_error(path, error) from None


def find_writer(definition: str, topic: Topic) -> SchemaVersion | None:
    """Return the version of a topic with the content of `definition`, as Pulsar compares AVRO and JSON, or None."""
    contents = VersionIndex(topic.versions)
    for schema_type in AVRO_TYPES:
        try:
            version = contents.find(SchemaInfo(schema_type, definition.encode()))
        except InvalidSchema:
            return None
        if version is not None:
            return version
    return None


def find_writers(definition: str, catalog: Catalog) -> list[tuple[Topic, SchemaVersion]]:
    """Return each topic that has a version with the content of `definition`, with the version, sorted by name."""
    try:
        name = json.loads(definition).get("name", "").rpartition(".")[2].encode()
    except (ValueError, AttributeError):
        name = b""
    writers = []
    for _, topic in sorted(catalog.topics.items()):
        candidates = [version for version in topic.versions if version.info and version.info.type in AVRO_TYPES]
        # Most definitions do not have the name, and need not be parsed.
        if any(version.info and name in version.info.load().schema for version in candidates):
            version = find_writer(definition, topic)
            if version is not None:
                writers.append((topic, version))
    return writers


def describe_record(definition: str) -> str:
    """Return the full name of the definition's record, or its type."""
    try:
        schema = json.loads(definition)
    except ValueError:
        return "a definition that is not JSON"
    if not isinstance(schema, dict):
        return str(schema)[:_MAX_NAME_LENGTH]
    name, namespace = str(schema.get("name", schema.get("type"))), schema.get("namespace")
    return (f"{namespace}.{name}" if namespace and "." not in name else name)[:_MAX_NAME_LENGTH]


def _without_logical_types(schema: Any) -> Any:
    """Return a schema whose values are read as numbers and bytes."""
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    return schema


def _import_fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise SchemactlError(
            "Avro container files need fastavro, which is not installed", fix='pip install "pulsar-schemactl[avro]"'
        ) from None
    return fastavro


def _list_failures(fastavro: Any) -> tuple[type[Exception], ...]:
    """Return the exceptions with which fastavro rejects a definition, a file or a value."""
    from fastavro.schema import SchemaParseException

    return (
        *(ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, RecursionError, AttributeError),
        *(struct.error, zlib.error, SchemaParseException, fastavro.read.SchemaResolutionError),
    )


def _describe(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _make_broken_error(path: Path, error: Exception) -> SchemactlError:
    return SchemactlError(f"{path} is not a valid Avro container file: {_describe(error)}")
