"""The codec of a topic, made from what Git says of it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from schemactl.errors import SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.codec import Codec, Definition, KeyValue
    from schemactl.codegen.approved import OnTarget
    from schemactl.model import SchemaInfo, Topic


def add_strict(parser: argparse.ArgumentParser) -> None:
    """The argument that a codec's `strict` is."""
    parser.add_argument(
        "--strict", action="store_true", help="refuse bytes behind the value, and text that is not UTF-8"
    )


def add_recursion_depth(parser: argparse.ArgumentParser) -> None:
    """The argument that says how deep columns go; `check_recursion_depth` judges it."""
    parser.add_argument(
        "--recursion-depth",
        type=int,
        default=0,
        metavar="N",
        help="how often a record may hold itself before the field is dropped (default: recursive schemas are refused)",
    )


def check_recursion_depth(args: argparse.Namespace) -> None:
    """Raises UsageError if the depth is none."""
    if args.recursion_depth < 0:
        raise UsageError("--recursion-depth is a number from 0 on")


def require_codec() -> None:
    """What codecs need is installed.

    Raises:
        SchemactlError: it is not; says what to install.
    """
    try:
        import schemactl.codec  # noqa: F401  only whether it can be
    except ImportError:
        raise SchemactlError(
            "decoding needs pyarrow and numpy, which are not installed",
            fix='pip install "pulsar-schemactl[codec]"',
        ) from None


def codec_of(
    topic: Topic, options: Any, *, reader: SchemaInfo | None = None, on_target: OnTarget | None = None
) -> Codec:
    """The codec that knows the topic's versions and reads into `reader`; None: the newest version's schema.

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
    """The schema as the codec takes it."""
    from schemactl.codec import Definition, KeyValue
    from schemactl.formats import pair_of

    if both := pair_of(info):
        key, value = schema_of(both.key), schema_of(both.value)
        assert isinstance(key, Definition)  # noqa: S101  pairs do not nest
        assert isinstance(value, Definition)  # noqa: S101  pairs do not nest
        return KeyValue(key, value, both.encoding)
    proto = info.proto.schema.decode() if info.proto is not None else ""
    return Definition(info.type.name, info.schema.decode(errors="replace"), dict(info.properties), proto)
