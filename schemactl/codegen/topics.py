"""Describe a topic of the approved history for generated code: its versions, reader, module path and codec."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from schemactl.core.catalog import Kind, Topic
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.names import TopicName
from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import identity, protobuf, record_name

if TYPE_CHECKING:
    from schemactl.codec import Codec, Definition, KeyValue
    from schemactl.core.project import Generate, Nanoseconds

RUNTIME: Final = "_runtime"
"""The module from which a package imports its run-time, and the folder of a run-time in the package."""

SCHEMAS: Final = "schemas"
"""The folder with the schemas of the modules next to it."""

CLASSES: Final = "classes"
"""The folder with the classes of the modules next to it."""

_MAX_LENGTH: Final = 200
"""File systems allow names of 255 bytes, and a hash or a suffix may follow."""

_PACKAGE_NAMES: Final = frozenset({"topic", "finder", "annotations"})
"""Names in the package's `__init__`, which a folder of the same name would replace once it is imported."""

_FOLDER_NAMES: Final = frozenset({CLASSES})
"""Names that a namespace's folder has besides its topics."""

NO_VERSION: Final = -1
"""The number of the version in force of a topic without schema."""


@dataclass(frozen=True, slots=True)
class Approved:
    """A topic of the approved history.

    Attributes:
        topic: the topic with its versions.
        current: the number of the version in force, or NO_VERSION for a topic without schema, whose messages are plain bytes.
        on_targets: the versions by the numbers of each target whose numbers differ from Git's.
        kinds: of a topic with several kinds of events, the part of the topic for each kind, also for removed ones (see `list_kinds`).
    """

    topic: Topic
    current: int
    on_targets: tuple[OnTarget, ...] = ()
    kinds: tuple[Approved, ...] = ()

    @property
    def reader(self) -> tuple[int, SchemaInfo]:
        """The version that messages are read as: its number, and its schema at the approved tip.

        Raises:
            InvalidSchema: if the topic pins a version that does not exist.
        """
        if self.current == NO_VERSION:
            return NO_VERSION, SchemaInfo(SchemaType.BYTES)
        pinned = self.topic.reader
        if self.topic.schema is not None and pinned in ("latest", self.current):
            return self.current, self.topic.schema
        for version in self.versions:
            if version.number == pinned:
                return version.number, info_of(version)
        numbers = ", ".join(str(version.number) for version in self.versions)
        raise InvalidSchema(
            f"`reader: {pinned}` names no version of the {f'kind {self.topic.kind}' if self.topic.kind else 'topic'}, which has {numbers}",
            fix="write one of those, or `latest`",
        )

    @property
    def versions(self) -> tuple[SchemaVersion, ...]:
        """Git's versions that have a schema."""
        if self.current == NO_VERSION:
            return ()
        return tuple(version for version in self.topic.versions if version.info is not None)


@dataclass(frozen=True, slots=True)
class OnTarget:
    """The versions of a topic by the numbers of a target.

    Attributes:
        target: the target's name.
        versions: the versions with the target's numbers.
        git: the numbers of Git's versions by the target's number, without foreign versions, which Git never approved.
        unreadable: the numbers whose messages cannot be read, with the reasons.
        reader: the target's number of the version that messages are read as, or None if the target does not have it.
    """

    target: str
    versions: tuple[SchemaVersion, ...]
    git: Mapping[int, int]
    unreadable: Mapping[int, str]
    reader: int | None

    @property
    def foreign(self) -> frozenset[int]:
        """The numbers of versions that Git never approved."""
        return frozenset(version.number for version in self.versions) - self.git.keys()


def info_of(version: SchemaVersion) -> SchemaInfo:
    """Return the schema of one of `Approved.versions`, or of `OnTarget.versions`."""
    assert version.info is not None  # noqa: S101  versions without a schema are left out
    return version.info


def list_kinds(topic: Topic) -> tuple[Approved, ...]:
    """Return the part of the topic for each kind of events that has a version, the declared kinds first.

    A removed kind is read as its newest version.
    """
    kinds = []
    for key in topic.list_kind_keys():
        versions = [version for version in topic.versions if version.info is not None and version.kind == key]
        if versions:
            newest = versions[-1]
            kind = topic.get_kind(key) or Kind(key, info_of(newest), "")
            current_identity = identity(kind.schema.load())
            equal_numbers = [version.number for version in versions if identity(info_of(version)) == current_identity]
            kinds.append(Approved(topic.make_part(kind), equal_numbers[-1] if equal_numbers else newest.number))
    return tuple(kinds)


def mark_other_kinds(versions: Iterable[SchemaVersion], topic: Topic, reader: SchemaInfo) -> tuple[SchemaVersion, ...]:
    """Return the versions of a topic with one schema; a version keeps its kind only if it is another kind than the reader's.

    A topic that once had several kinds of events still has their versions, which the reader's schema cannot read.
    """
    if not topic.kind_names:
        return tuple(versions)
    own_kind = topic.find_kind_key(record_name(reader))
    return tuple(replace(version, kind="") if version.kind == own_kind else version for version in versions)


# Module paths: `persistent://shop/sales/order-lines` is `shop.sales.order_lines`


def module_paths(topics: Iterable[TopicName]) -> Mapping[TopicName, tuple[str, str, str]]:
    """Map each topic to the path of its module below the package: tenant, namespace and topic, as Python names.

    Letters become lower case, since many file systems do not distinguish `Orders` from `orders`, and other characters become `_`;
    keywords get a `_` at the end, digits one at the start. If topics would share a module, a topic whose name is unchanged keeps it,
    and the others end in a hash of their full names, so that a new topic never moves the others. If a name with a hash is taken by
    another topic, another hash is used, so that no two topics share a module.
    """
    paths = {
        topic: (
            _to_python_name(topic.tenant, _PACKAGE_NAMES),
            _to_python_name(topic.namespace),
            _to_python_name(topic.topic, _FOLDER_NAMES),
        )
        for topic in topics
    }
    topics_by_path = Counter(paths.values())
    # Includes paths that no topic keeps, so that the path of a topic depends on as few other topics as possible.
    taken = set(paths.values())
    for topic in sorted(paths, key=str):
        tenant, namespace, name = path = paths[topic]
        is_unchanged = (topic.tenant, topic.namespace, topic.topic) == path
        if topics_by_path[path] > 1 and not (is_unchanged and topic.domain == "persistent"):
            candidates = ((tenant, namespace, f"{name}_{_hash_topic(topic, attempt)}") for attempt in count())
            paths[topic] = next(candidate for candidate in candidates if candidate not in taken)
            taken.add(paths[topic])
    return paths


def is_importable(name: str) -> bool:
    """Return whether a package can have this name, which consists of identifiers with dots between them."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split("."))


@cache
def _to_python_name(name: str, reserved: frozenset[str] = frozenset()) -> str:
    part = re.sub(r"[^a-z0-9_]", "_", name.lower())[:_MAX_LENGTH]
    if part[0].isdigit():
        part = f"_{part}"
    # Names in double underscores have a meaning in Python.
    if keyword.iskeyword(part) or part in (RUNTIME, *reserved) or re.fullmatch(r"__.*__", part):
        part += "_"
    return part


def _hash_topic(topic: TopicName, attempt: int) -> str:
    """Return eight hexadecimal digits, which differ between attempts."""
    text = f"{topic}\n{attempt}" if attempt else str(topic)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# Codecs, imported on use


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


def codec_of(
    topic: Topic, options: Any, *, reader: SchemaInfo | None = None, on_target: OnTarget | None = None, kind: str = ""
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
        versions = [*mark_other_kinds(versions, topic, reader or info_of(versions[-1]))]
    return Codec(
        [
            Version(
                version.number,
                schema_of(info_of(version)),
                version.commit.id if version.commit else "",
                version.number in foreign,
                version.kind,
            )
            for version in versions
        ],
        reader=None if reader is None else schema_of(reader),
        options=options,
        numbers=Numbers(on_target.target, on_target.reader, on_target.unreadable) if on_target else None,
        kind=kind,
    )


def schema_of(info: SchemaInfo) -> Definition | KeyValue:
    """Return the schema in the form that the codec takes."""
    from schemactl.codec import Definition, KeyValue
    from schemactl.formats import get_pair

    info = info.load()
    if pair := get_pair(info):
        key, value = schema_of(pair.key), schema_of(pair.value)
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
