"""The codec of a topic that declarations and the approved history describe. It imports what codecs need on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schemactl.core.errors import SchemactlError

if TYPE_CHECKING:
    from schemactl.codec import Codec, Definition, KeyValue
    from schemactl.codegen.approved import OnTarget
    from schemactl.core.catalog import Topic
    from schemactl.core.schema import SchemaInfo


def require_codec() -> None:
    """Raise SchemactlError, which says what to install, where something that codecs need is not installed."""
    try:
        from schemactl import codec  # noqa: F401  only whether it can be
    except ImportError:
        raise SchemactlError(
            "decoding needs pyarrow and numpy, which are not installed",
            fix='pip install "pulsar-schemactl[codec]"',
        ) from None


def codec_of(
    topic: Topic, options: Any, *, reader: SchemaInfo | None = None, on_target: OnTarget | None = None
) -> Codec:
    """Return the codec that knows the topic's versions and reads into `reader`; None: the newest version's schema.

    Args:
        topic: with its versions, as the approved history has them.
        options: of the codec (`schemactl.codec.Options`).
        reader: the schema to read into.
        on_target: by whose numbers messages are read; None: by Git's.
    """
    from schemactl.codec import Codec, Numbers, Version

    foreign = on_target.foreign if on_target else frozenset()
    return Codec(
        [
            Version(
                version.number,
                schema_of(version.info),
                version.commit.id if version.commit else "",
                version.number in foreign,
            )
            for version in (on_target.versions if on_target else topic.versions)
            if version.info is not None
        ],
        reader=None if reader is None else schema_of(reader),
        options=options,
        numbers=Numbers(on_target.target, on_target.reader, on_target.unreadable) if on_target else None,
    )


def schema_of(info: SchemaInfo) -> Definition | KeyValue:
    """Return the schema as the codec takes it."""
    from schemactl.codec import Definition, KeyValue
    from schemactl.formats import pair_of

    info = info.load()
    if both := pair_of(info):
        key, value = schema_of(both.key), schema_of(both.value)
        assert isinstance(key, Definition)  # noqa: S101  pairs do not nest
        assert isinstance(value, Definition)  # noqa: S101  pairs do not nest
        return KeyValue(key, value, both.encoding)
    proto = info.proto.schema.decode() if info.proto is not None else ""
    return Definition(info.type.name, info.schema.decode(errors="replace"), dict(info.properties), proto)
