"""A topic of the approved history as code is generated from it: its versions, reader, module path and codec."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from schemactl.core.catalog import Topic
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaVersion

if TYPE_CHECKING:
    from schemactl.codec import Codec, Definition, KeyValue


@dataclass(frozen=True, slots=True)
class OnTarget:
    """What the numbers of a target stand for, of one topic.

    Attributes:
        foreign: the numbers of those versions that Git never approved.
        unreadable: the numbers by which no message can be read, each with the reason.
        reader: the target's number of the version that messages are read as; None: it has none.
    """

    target: str
    versions: tuple[SchemaVersion, ...]
    foreign: frozenset[int]
    unreadable: Mapping[int, str]
    reader: int | None


@dataclass(frozen=True, slots=True)
class Approved:
    """A topic as the approved history has it, with the number of the version in force, and by whose numbers messages are read (None: Git's)."""

    topic: Topic
    current: int
    on_target: OnTarget | None = None

    @property
    def reader(self) -> tuple[int, SchemaInfo]:
        """The version that messages are read as: its number, and its schema as it stands at the tip.

        Raises:
            InvalidSchema: the topic pins a version that it does not have.
        """
        pinned = self.topic.reader
        if self.topic.schema is not None and pinned in ("latest", self.current):
            return self.current, self.topic.schema
        for version in self.versions:
            if version.number == pinned:
                return version.number, info_of(version)
        known = ", ".join(str(version.number) for version in self.versions)
        raise InvalidSchema(
            f"`reader: {pinned}` names no version of the topic, which has {known}",
            fix="write one of those, or `latest`",
        )

    @property
    def versions(self) -> tuple[SchemaVersion, ...]:
        """The versions that have a schema."""
        return tuple(version for version in self.topic.versions if version.info is not None)

    @property
    def read(self) -> tuple[SchemaVersion, ...]:
        """The versions that messages are read by; they have a schema."""
        return self.versions if self.on_target is None else self.on_target.versions


def info_of(version: SchemaVersion) -> SchemaInfo:
    """Return the schema of one of `Approved.versions`, or of `Approved.read`."""
    assert version.info is not None  # noqa: S101  tombstones are left out
    return version.info


# Module paths: `persistent://shop/sales/order-lines` is `shop.sales.order_lines`


RUNTIME: Final = "_runtime"
"""What a package calls the module that it imports its run-time from, and the folder of one that it carries."""

SCHEMAS: Final = "schemas"
"""The folder beside modules that holds their schemas."""

CLASSES: Final = "classes"
"""The folder beside modules that holds their classes."""

_MAX_LENGTH: Final = 200
"""File systems take names of 255 bytes, and something may come behind."""

_OF_THE_PACKAGE: Final = frozenset({"topic", "finder", "annotations"})
"""Names in the package's own `__init__`, which a folder of that name would take the place of once it is imported."""


def module_paths(topics: Iterable[TopicName]) -> Mapping[TopicName, tuple[str, str, str]]:
    """For each topic its module's path below the package: tenant, namespace, topic, each made a Python name.

    Letters become small, for many file systems do not tell `Orders` from `orders`, and other characters `_`; keywords get
    a `_` behind, digits one in front. Where topics would share a module, one whose name needs no change keeps it, and the
    others end in the first digits of a hash of their full names, so that one topic more never moves the others. No two
    topics have one module: a name that ends in a hash and that another topic's has, too, gives way to one with another hash.
    """
    paths = {
        topic: (_part(topic.tenant, _OF_THE_PACKAGE), _part(topic.namespace), _part(topic.topic, {CLASSES}))
        for topic in topics
    }
    sharing = Counter(paths.values())
    # Also those that nobody keeps: what a topic is called hangs on as few others as can be.
    taken = set(paths.values())
    for topic in sorted(paths, key=str):
        tenant, namespace, name = path = paths[topic]
        unchanged = (topic.tenant, topic.namespace, topic.topic) == path
        if sharing[path] > 1 and not (unchanged and topic.domain == "persistent"):
            hashed = ((tenant, namespace, f"{name}_{_hash(topic, attempt)}") for attempt in count())
            paths[topic] = next(free for free in hashed if free not in taken)
            taken.add(paths[topic])
    return paths


def is_importable(name: str) -> bool:
    """Whether a package can be called `name`: identifiers with dots between them."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split("."))


def _part(name: str, taken: Collection[str] = ()) -> str:
    part = re.sub(r"[^a-z0-9_]", "_", name.lower())[:_MAX_LENGTH]
    if part[0].isdigit():
        part = f"_{part}"
    # Names with two underscores around them mean something to Python.
    if keyword.iskeyword(part) or part in (RUNTIME, *taken) or re.fullmatch(r"__.*__", part):
        part += "_"
    return part


def _hash(topic: TopicName, attempt: int) -> str:
    """Eight digits; other ones at each attempt."""
    text = f"{topic}\n{attempt}" if attempt else str(topic)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# Codecs, imported on use


def require_codec() -> None:
    """Raise SchemactlError, which says what to install, where something that codecs need is not installed."""
    try:
        from schemactl import codec  # noqa: F401  only whether it can be
    except ImportError:
        raise SchemactlError(
            "decoding needs pyarrow and numpy, which are not installed", fix='pip install "pulsar-schemactl[codec]"'
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
