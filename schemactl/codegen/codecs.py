"""Make the codecs of topics. The codec package is imported on use, because it needs pyarrow and numpy."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from schemactl.codegen.topics import get_version_schema, mark_other_kinds
from schemactl.core.catalog import Topic
from schemactl.core.errors import SchemactlError
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.formats import get_pair, protobuf

if TYPE_CHECKING:
    from schemactl.codec import Codec, Definition, KeyValue
    from schemactl.codegen.topics import VersionsOnTarget
    from schemactl.core.project import Generate, Nanoseconds


def require_codec() -> None:
    """Raise SchemactlError, with the command that installs them, if the packages of codecs are missing."""
    try:
        from schemactl.codec import Codec  # noqa: F401  checks that it can be imported
    except ImportError:
        raise SchemactlError(
            "decoding needs pyarrow and numpy, which are not installed", fix='pip install "pulsar-schemactl[codec]"'
        ) from None


def get_wire_options(topic: Topic, generate: Generate | None) -> dict[str, Any]:
    """Return those arguments of the codec's `Options` that determine the bytes or columns of a topic's messages, and are not the default.

    Args:
        topic: the topic, whose settings take precedence.
        generate: the settings of the project's package, or None if it has no package.
    """
    json_times = topic.json_times or (generate.json_times if generate else "number")
    options: dict[str, Any] = {"json_times": json_times} if json_times != "number" else {}
    options |= {"integers": topic.integers} if topic.integers == "little" else {}
    return options | ({"nanoseconds": "bigint"} if get_nanoseconds(topic, generate) == "bigint" else {})


def get_nanoseconds(topic: Topic | None, generate: Generate | None) -> Nanoseconds | None:
    """Return the setting `nanoseconds` of a topic or else of the project, or None if neither has it, which means `truncated`."""
    return (topic.nanoseconds if topic else None) or (generate.nanoseconds if generate else None)


def make_codec(
    topic: Topic,
    options: Any,
    *,
    reader: SchemaInfo | None = None,
    on_target: VersionsOnTarget | None = None,
    kind: str = "",
) -> Codec:
    """Return the codec of a topic.

    Args:
        topic: the topic, with the versions of the approved history.
        options: the options of the codec (`schemactl.codec.Options`).
        reader: the schema to read into, by default the newest version's.
        on_target: the versions by the numbers of a target; None means that messages have Git's numbers.
        kind: the key of the kind of events to decode into, if the topic has several; "" for a topic with one schema.
    """
    from schemactl.codec import Codec, Numbers, Version

    foreign = on_target.foreign if on_target else frozenset()
    versions = [version for version in (on_target or topic).versions if version.info is not None]
    if not kind and versions:
        versions = [*mark_other_kinds(versions, topic, reader or get_version_schema(versions[-1]))]
    return Codec(
        [
            Version(
                version.number,
                to_codec_schema(get_version_schema(version)),
                version.commit.id if version.commit else "",
                version.number in foreign,
                version.kind,
            )
            for version in versions
        ],
        reader=None if reader is None else to_codec_schema(reader),
        options=options,
        numbers=Numbers(on_target.target, on_target.reader, on_target.unreadable) if on_target else None,
        kind=kind,
    )


def to_codec_schema(info: SchemaInfo) -> Definition | KeyValue:
    """Return the schema in the form that the codec takes."""
    from schemactl.codec import Definition, KeyValue

    info = info.load()
    if pair := get_pair(info):
        key, value = to_codec_schema(pair.key), to_codec_schema(pair.value)
        assert isinstance(key, Definition)  # noqa: S101  pairs do not nest
        assert isinstance(value, Definition)  # noqa: S101  pairs do not nest
        return KeyValue(key, value, pair.encoding)
    proto = adapt_descriptors(info.proto).decode() if info.proto is not None else ""
    return Definition(info.type.name, adapt_descriptors(info).decode(errors="replace"), dict(info.properties), proto)


def adapt_descriptors(info: SchemaInfo) -> bytes:
    """Return the definition; a PROTOBUF_NATIVE one with descriptors that Python's protobuf can load, where there are such."""
    if info.type is SchemaType.PROTOBUF_NATIVE:
        # Otherwise the codec has the error, when it is used.
        with suppress(SchemactlError):
            adapted: bytes = protobuf.load("definition").adapt_for_python(info.schema)
            return adapted
    return info.schema
