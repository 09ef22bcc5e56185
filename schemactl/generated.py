"""The runtime of generated packages: a topic's module passes its schemas to a `Topic`, which reads and writes messages.

Spark is imported on use.
"""

from __future__ import annotations

import json
import os
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Self, TypeVar, Unpack, overload

from .codec import (
    Codec,
    CodecError,
    CodecUnavailable,
    Decoded,
    Definition,
    Encoded,
    KindsCodec,
    Numbers,
    Options,
    TargetVersions,
    UnknownTarget,
    UnknownVersion,
    Unreadable,
    Unwritable,
    Version,
)
from .codec import KeyValue as KeyValueDefinition
from .codec.generic_record import GenericRecord
from .codec.kinds import Event
from .codec.record_classes import from_value, to_value

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

    from .codec.arrow_types import JsonTimes
    from .codec.pulsar_client import Mode, TopicSchema
    from .codec.record_classes import Instance
    from .spark.dataframes import ParseMode, Split
    from .spark.landing import LandingOptions, SaveMode, Sink
    from .spark.landing_kinds import KindsSink
    from .spark.landing_sink import Landed
    from .spark.message_columns import Name
    from .spark.tables.landing_table import Format

__all__ = [
    "CodecError",
    "CodecUnavailable",
    "GenericRecord",
    "KeyValue",
    "Kind",
    "Kinds",
    "Numbers",
    "Options",
    "Schema",
    "TargetNumbers",
    "Topic",
    "UnknownTarget",
    "UnknownVersion",
    "Unreadable",
    "Unwritable",
    "finder",
]

Row = TypeVar("Row")
Model = TypeVar("Model")

TARGET_VARIABLE: Final = "SCHEMACTL_TARGET"
"""The environment variable with the target that messages are from."""


class SchemaFile(NamedTuple):
    """A schema of a topic.

    Attributes:
        type: the schema type in Pulsar.
        file: the file of the definition, in the folder `schemas` next to the module.
        charset: the charset of a STRING schema.
        proto: the file that describes the payloads of a PROTOBUF schema.
        kind: the key of its kind of events; "" in a topic with one schema.
    """

    type: str
    file: str = ""
    charset: str = ""
    proto: str = ""
    kind: str = ""


class KeyValueFiles(NamedTuple):
    """The two schemas of a KEY_VALUE schema; with the encoding INLINE, the payload contains the key."""

    key: SchemaFile
    value: SchemaFile
    encoding: Literal["INLINE", "SEPARATED"] = "INLINE"


class TargetNumbers(NamedTuple):
    """The version numbers of a target, where they differ from Git's.

    Attributes:
        reader: the target's number of the version that messages are read as, or None if the target does not have it.
        versions: by the target's number: the number of Git's version, the schema of a foreign version, or why messages are unreadable.
        properties: the SchemaInfo properties of the foreign versions that have some, by the target's number, or None.
    """

    reader: int | None
    versions: Mapping[int, int | SchemaFile | KeyValueFiles | str]
    properties: Mapping[int, Mapping[str, str]] | None = None


class GeneratedTopic(Generic[Row]):
    """The messages of a topic; `Topic` in a generated package, where `Row` is the Python type of a message's value.

    A message without a version is read as if written with the reader's schema, as Pulsar's consumers do. The numbers of versions are
    the numbers of the target that `for_target` or else the environment variable SCHEMACTL_TARGET names, by default Git's.

    Attributes:
        name: the topic's full name.
        schema: the columns as Spark DDL; "" for a topic without columns.
        former_names: the names of columns in older versions, the newest name first, by path.
    """

    def __init__(
        self,
        name: str,
        module: str,
        *,
        versions: Mapping[int, SchemaFile | KeyValueFiles],
        reader: int | SchemaFile | KeyValueFiles,
        schema: str = "",
        former_names: Mapping[str, tuple[str, ...]] | None = None,
        targets: Mapping[str, TargetNumbers] | None = None,
        numbers: Numbers | None = None,
        foreign: Sequence[int] = (),
        options: Options | None = None,
        kind: str = "",
        properties: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        """Create the topic of a generated module; its schemas are read when they are needed.

        Args:
            name: the topic's full name.
            module: the full name of the generated module.
            versions: every schema that messages can be written with, by version number.
            reader: the schema that messages are read into: a version number, or a schema that is not a version.
            schema: see above.
            former_names: see above.
            targets: the version numbers of targets where they differ from Git's.
            numbers: in packages for one target, which earlier releases generated: the numbers of that target, which `versions` has.
            foreign: in such packages, the numbers of versions that were not approved in Git.
            options: for reading and writing.
            kind: the key of the kind of events that is read and written; "" for a topic with one schema.
            properties: the SchemaInfo properties of the versions that have some, by version number.
        """
        self.name = name
        self.schema = schema
        self.former_names = former_names or {}
        self._module = module
        self._package = module.rsplit(".", 3)[0]
        self._versions = versions
        self._reader = versions[reader] if isinstance(reader, int) else reader
        self._targets = targets or {}
        self._numbers = numbers
        self._foreign = foreign
        self._options = options
        self._kind = kind
        self._properties = properties or {}
        self._target: str | None = None
        # By target, None if none is chosen, and whether it is a default. Shared with the topics that `for_target` returns.
        self._codecs: dict[tuple[str | None, bool], Codec] = {}

    def __repr__(self) -> str:
        name = f"{self.name}#{self._kind}" if self._kind else self.name
        return f"<topic {name}>" if self._target is None else f"<topic {name} on {self._target}>"

    def _repr_html_(self) -> str:
        """Return the topic for a notebook: its columns since their first version, and its versions with their changes."""
        from .codec.html import render_topic

        return render_topic(repr(self)[1:-1], self.codec, self.former_names)

    def __getstate__(self) -> dict[str, Any]:
        # The environment of another process, such as a worker of Spark, may name no target.
        return {**vars(self), "_target": self._target or self._default_target}

    def for_target(self, target: str) -> Self:
        """Return the topic whose messages are from `target`, and have its version numbers.

        Raises:
            UnknownTarget: the package does not have the numbers of this target.
        """
        self._get_codec(target)
        topic = copy(self)
        topic._target = target  # noqa: SLF001  an object of the same class
        return topic

    @property
    def codec(self) -> Codec:
        """The codec behind all methods.

        Raises:
            UnknownTarget: SCHEMACTL_TARGET names a target whose numbers the package does not have.
        """
        if self._target is not None:
            return self._get_codec(self._target)
        # Reading the environment takes 2 us, as long as decoding a small message. If all targets have Git's numbers, reading it once is
        # enough.
        return self._default_codec if self._targets else self._first_codec

    @property
    def _default_codec(self) -> Codec:
        return self._get_codec(self._default_target, is_default=True)

    @cached_property
    def _first_codec(self) -> Codec:
        """The codec of the default target at the first use."""
        return self._default_codec

    @property
    def numbers(self) -> Numbers | None:
        """The version numbers of the chosen target, or None if they are Git's."""
        return self.codec.numbers

    @property
    def _default_target(self) -> str | None:
        """The target if `for_target` names none; packages of earlier releases have one or none and do not depend on the environment."""
        if self._target_names is None:
            return None
        return os.environ.get(TARGET_VARIABLE) or self._package_target

    @cached_property
    def _target_names(self) -> Sequence[str] | None:
        """The names of all targets, or None in packages of earlier releases."""
        return getattr(import_module(self._package), "TARGETS", None)

    @cached_property
    def _package_target(self) -> str | None:
        """The package's own default target, or None for Git's numbers."""
        return getattr(import_module(self._package), "TARGET", None)

    def _get_codec(self, target: str | None, *, is_default: bool = False) -> Codec:
        key = target, is_default
        if key not in self._codecs:
            base = self._codecs.get((None, True)) or self._make_codec()
            self._codecs[None, True] = base
            self._codecs[key] = base if target is None else base.for_target(target, is_default=is_default)
        return self._codecs[key]

    def _make_codec(self) -> Codec:
        definitions = {number: self._read_definition(files) for number, files in self._versions.items()}
        targets: dict[str, TargetVersions | None] = dict.fromkeys(self._target_names or ())
        for target, (reader, meanings, _) in self._targets.items():
            versions = []
            unreadable = {}
            for number, meaning in meanings.items():
                if isinstance(meaning, str):
                    unreadable[number] = meaning
                elif isinstance(meaning, int):
                    git_kind = _get_kind(self._versions[meaning])
                    versions.append(Version(number, definitions[meaning], kind=git_kind))
                else:
                    foreign_kind = _get_kind(meaning)
                    versions.append(Version(number, self._read_definition(meaning), foreign=True, kind=foreign_kind))
            targets[target] = TargetVersions(tuple(versions), Numbers(target, reader, unreadable))
        return Codec(
            [
                Version(number, schema, foreign=number in self._foreign, kind=_get_kind(self._versions[number]))
                for number, schema in definitions.items()
            ],
            reader=self._read_definition(self._reader),
            options=self._options,
            numbers=self._numbers,
            targets=None if self._target_names is None else targets,
            kind=self._kind,
        )

    @property
    def struct(self) -> StructType:
        """`schema` as a StructType."""
        from .spark.column_types import struct_of_ddl

        return struct_of_ddl(self.schema)

    def commit(self, version: int) -> str:
        """Return the id of the commit that added `version`, a number of the chosen target.

        Raises:
            LookupError: the package was generated without `--with-commits`, does not have this version, or the version is a foreign one.
        """
        git_version = self._find_git_version(version)
        if git_version is None:
            raise LookupError(f"version {version} on {self.codec.target} is a foreign version, which no commit added")
        try:
            data = pkgutil.get_data(self._package, "versions.json")
        except OSError:
            raise LookupError(f"{self._package} names no commits: make it with --with-commits") from None
        commit_id: str = json.loads(data or b"{}")[self.name][str(git_version)]["commit"]
        return commit_id

    def properties(self, version: int) -> dict[str, str]:
        """Return the declared SchemaInfo properties of `version`, a number of the chosen target.

        A registry may have more: the commit, and the properties of its target.

        Raises:
            LookupError: the package does not have this version.
        """
        git_version = self._find_git_version(version)
        if git_version is not None:
            return dict(self._properties.get(git_version, {}))
        foreign_properties = self._targets[self.codec.target or ""].properties or {}
        return dict(foreign_properties.get(version, {}))

    def _find_git_version(self, version: int) -> int | None:
        """Return Git's number of a version of the chosen target, or None if it is a foreign version.

        Raises:
            LookupError: the package does not have this version.
        """
        try:
            self.codec.number_written(version)
        except UnknownVersion as error:
            raise LookupError(str(error)) from None
        target = self.codec.target
        if target is None or target not in self._targets:
            return version
        meaning = self._targets[target].versions[version]
        return meaning if isinstance(meaning, int) else None

    def decode_one(self, payload: bytes | None, version: int | bytes | None = None, key: bytes | None = None) -> Row:
        """Decode the value of one message (see `Codec.decode_one`)."""
        value: Row = self.codec.decode_one(payload, version, key)
        return value

    def decode_batch(
        self,
        payloads: pa.Array | pa.ChunkedArray,
        versions: pa.Array | pa.ChunkedArray | None = None,
        keys: pa.Array | pa.ChunkedArray | None = None,
    ) -> Decoded:
        """Decode many messages at once to Arrow columns (see `Codec.decode_batch`)."""
        return self.codec.decode_batch(payloads, versions, keys)

    @overload
    def encode_one(self, value: Row, version: None = None, *, json_times: JsonTimes | None = None) -> bytes | None: ...

    @overload
    def encode_one(
        self, value: Instance, version: None = None, *, json_times: JsonTimes | None = None
    ) -> bytes | None: ...

    @overload
    def encode_one(self, value: Any, version: int, *, json_times: JsonTimes | None = None) -> bytes | None: ...

    def encode_one(
        self, value: Any, version: int | None = None, *, json_times: JsonTimes | None = None
    ) -> bytes | None:
        """Encode a value, or an instance of a class of the package, with the schema of `version` or by default the reader's.

        See `Codec.encode_one`.
        """
        return self.codec.encode_one(to_value(value), version, json_times=json_times)

    def encode_key(
        self, value: Any, version: int | None = None, *, json_times: JsonTimes | None = None
    ) -> bytes | None:
        """Encode the key of a message whose payload does not contain the key (see `Codec.encode_key`)."""
        return self.codec.encode_key(to_value(value), version, json_times=json_times)

    def decode_as(
        self, kind: type[Model], payload: bytes | None, version: int | bytes | None = None, key: bytes | None = None
    ) -> Model:
        """Decode one message, or the value of a key-value pair, to an instance of a class of the package (see `Codec.decode_one`)."""
        value = self.codec.decode_one(payload, version, key)
        is_pair = isinstance(self.codec.reader, KeyValueDefinition)
        return from_value(kind, value["value"] if is_pair else value)

    def encode_batch(
        self, rows: pa.RecordBatch, version: int | None = None, *, json_times: JsonTimes | None = None
    ) -> Encoded:
        """Encode Arrow columns to payloads (see `Codec.encode_batch`)."""
        return self.codec.encode_batch(rows, version, json_times=json_times)

    def read_as(self, version: int) -> Codec:
        """Return a codec that decodes each message to the schema of `version`, as AUTO_CONSUME does."""
        return self.codec.read_as(version)

    def validate(self, payload: bytes | None, version: int, key: bytes | None = None) -> None:
        """Check that `payload` is a message of `version` to the last byte (see `Codec.validate`).

        Raises:
            Unreadable: it is not.
        """
        self.codec.validate(payload, version, key)

    def pulsar_schema(
        self, client: Any, version: int | None = None, *, mode: Mode | None = None, topic: str | None = None
    ) -> TopicSchema:
        """Create the schema for a producer or consumer of pulsar-client (see `codec.pulsar_client.topic_schema`).

        Producers accept the same values as `encode_one`. `topic` is the name on the client's cluster, if it differs.
        """
        from .codec.pulsar_client import topic_schema

        return topic_schema(self.codec, client, topic or self.name, version, mode, to_value=to_value)

    @overload
    def decode(
        self,
        messages: DataFrame,
        /,
        *,
        payload: Name = ...,
        version: Name | None = ...,
        key: Name | None = ...,
        mode: ParseMode = ...,
    ) -> DataFrame: ...

    @overload
    def decode(
        self,
        payload: str | Column,
        version: str | Column | None,
        key: str | Column | None = ...,
        /,
        *,
        mode: Literal["PERMISSIVE", "FAILFAST"] = ...,
    ) -> Column: ...

    def decode(self, messages: Any, /, *columns: Any, **options: Any) -> Any:
        """Decode messages to columns; a row that cannot be read has the reason in `__error` (see `spark.decode`).

        Columns with payloads and versions (and keys) are decoded to a column `struct<value, error>` (see `spark.decode_column`).
        """
        return _decode(self.codec, messages, columns, options)

    def split(self, decoded: DataFrame) -> Split:
        """Split the result of `decode` into rows and rejected messages (see `spark.split`)."""
        from .spark.dataframes import split

        return split(decoded, self.codec)

    def encode(self, rows: DataFrame, *, version: int | None = None, json_times: JsonTimes | None = None) -> DataFrame:
        """Encode rows to messages; a row that cannot be written has the reason in `__error` (see `spark.encode`)."""
        from .spark.dataframes import encode

        return encode(rows, self.codec, version=version, json_times=json_times)

    def land(
        self,
        messages: DataFrame,
        path: str | PathLike[str],
        *,
        mode: SaveMode = "append",
        txnVersion: int | None = None,  # noqa: N803  the name in Spark's Delta
        **options: Unpack[LandingOptions],
    ) -> Landed:
        """Write the messages to a folder of Parquet, a Delta or an Iceberg table (see `spark.land`)."""
        from .spark.landing import land

        return land(messages, self.codec, path, mode=mode, txnVersion=txnVersion, **self._add_former_names(options))

    def land_stream(
        self, messages: DataFrame, path: str | PathLike[str], **options: Unpack[LandingOptions]
    ) -> DataStreamWriter:
        """Return a writer of a stream that lands each batch as `land` does (see `spark.land_stream`)."""
        from .spark.landing import land_stream

        return land_stream(messages, self.codec, path, **self._add_former_names(options))

    def sink(self, path: str | PathLike[str], **options: Unpack[LandingOptions]) -> Sink:
        """Return a function for a stream's `foreachBatch` that lands each batch as `land` does (see `spark.sink`)."""
        from .spark.landing import sink

        return sink(self.codec, path, **self._add_former_names(options))

    def replay(self, spark: SparkSession, path: str | PathLike[str], **options: Unpack[LandingOptions]) -> Landed:
        """Turn the rejected messages that this package can read into rows (see `spark.replay`)."""
        from .spark.landing import replay

        return replay(spark, self.codec, path, **self._add_former_names(options))

    def view(
        self,
        spark: SparkSession,
        path: str,
        *,
        format: Format = "parquet",  # noqa: A002  as in `land`
        former: bool = False,
        name: str | None = None,
    ) -> DataFrame:
        """Read the rows that packages of any version landed in `path`, with the columns of this package (see `spark.view`)."""
        from .spark.views import view

        names = self.former_names
        return view(spark, self.codec, path, format=format, former_names=names, former=former, name=name)

    def _add_former_names(self, options: LandingOptions) -> LandingOptions:
        return {"former_names": self.former_names, **options}

    def _read_definition(self, files: SchemaFile | KeyValueFiles) -> Any:
        if isinstance(files, KeyValueFiles):
            key, value = self._read_definition(files.key), self._read_definition(files.value)
            return KeyValueDefinition(key, value, files.encoding)
        properties = {"__charset": files.charset} if files.charset else {}
        return Definition(files.type, self._read_text(files.file), properties, self._read_text(files.proto))

    def _read_text(self, file: str) -> str:
        data = pkgutil.get_data(self._module, f"schemas/{file}") if file else None
        return (data or b"").decode()


def _decode(
    codec: Codec | KindsCodec, messages: DataFrame | str | Column, columns: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Decode a DataFrame, or columns, the first of which is `messages`."""
    from pyspark.sql import Column

    from .spark.dataframes import decode, decode_column

    if isinstance(messages, str | Column):
        return decode_column(codec, messages, *columns, **options)
    return decode(messages, codec, **options)


def _get_kind(files: SchemaFile | KeyValueFiles) -> str:
    return files.kind if isinstance(files, SchemaFile) else ""


class KindOfEvents(NamedTuple):
    """One of several kinds of events of a topic; the attributes are as in GeneratedTopic.

    Attributes:
        reader: the schema that messages are read into: a version number, or a schema that is not a version.
        schema: the columns as Spark DDL.
        former_names: the names of columns in older versions, the newest name first, by path.
        targets: by target, its number of the version that messages are read as, or None if the target does not have it.
        options: for reading and writing.
    """

    reader: int | SchemaFile
    schema: str = ""
    former_names: Mapping[str, tuple[str, ...]] | None = None
    targets: Mapping[str, int | None] | None = None
    options: Options | None = None


class GeneratedKinds:
    """The messages of a topic with several kinds of events; `Kinds` in a generated package.

    Each kind is an attribute, and an item by its key: a GeneratedTopic that reads and writes this kind alone. The version of a message
    shows its kind. Only messages whose version belongs to no kind that was ever declared are rejected.

    Attributes:
        name: the topic's full name.
        kinds: the kinds by their keys, also kinds that are no longer declared.
    """

    def __init__(
        self,
        name: str,
        module: str,
        *,
        versions: Mapping[int, SchemaFile],
        kinds: Mapping[str, KindOfEvents],
        targets: Mapping[str, TargetNumbers] | None = None,
        properties: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        """Create the topic of a generated module; its schemas are read when they are needed.

        Args:
            name: the topic's full name.
            module: the full name of the generated module.
            versions: every schema that messages can be written with, by version number.
            kinds: the kinds by their keys.
            targets: the version numbers of targets where they differ from Git's; each kind has its own `reader`.
            properties: the SchemaInfo properties of the versions that have some, by version number.
        """
        self.name = name
        self.kinds: dict[str, GeneratedTopic[Any]] = {}
        self._codec: KindsCodec | None = None
        for key, kind in kinds.items():
            readers = kind.targets or {}
            topic: GeneratedTopic[Any] = GeneratedTopic(
                name,
                module,
                versions=versions,
                reader=kind.reader,
                schema=kind.schema,
                former_names=kind.former_names,
                targets={
                    target: numbers._replace(reader=readers.get(target)) for target, numbers in (targets or {}).items()
                },
                options=kind.options,
                kind=key,
                properties=properties,
            )
            self._add_kind(key, topic)

    def _add_kind(self, key: str, topic: GeneratedTopic[Any]) -> None:
        self.kinds[key] = topic
        setattr(self, f"{key}_" if hasattr(GeneratedKinds, key) or key in ("name", "kinds") else key, topic)

    def __repr__(self) -> str:
        return f"<topic {self.name}: {', '.join(self.kinds)}>"

    def _repr_html_(self) -> str:
        """Return the kinds for a notebook, one after the other."""
        return "".join(topic._repr_html_() for topic in self.kinds.values())

    def __getitem__(self, kind: str) -> GeneratedTopic[Any]:
        return self.kinds[kind]

    def for_target(self, target: str) -> Self:
        """Return the topic whose messages are from `target`, and have its version numbers.

        Raises:
            UnknownTarget: the package does not have the numbers of this target.
        """
        topic = copy(self)
        topic.kinds = {}
        topic._codec = None  # noqa: SLF001  an object of the same class
        for key, kind in self.kinds.items():
            topic._add_kind(key, kind.for_target(target))  # noqa: SLF001  an object of the same class
        return topic

    @property
    def codec(self) -> KindsCodec:
        """The codec behind all methods.

        Raises:
            UnknownTarget: SCHEMACTL_TARGET names a target whose numbers the package does not have.
        """
        codecs = {key: topic.codec for key, topic in self.kinds.items()}
        # The default target, and with it the codec of each kind, may change.
        if self._codec is None or [*self._codec.codecs.values()] != [*codecs.values()]:
            self._codec = KindsCodec(codecs)
        return self._codec

    @property
    def numbers(self) -> Numbers | None:
        """The version numbers of the chosen target, or None if they are Git's."""
        return self.codec.numbers

    def properties(self, version: int) -> dict[str, str]:
        """Return the declared SchemaInfo properties of `version`, of any kind (see GeneratedTopic.properties)."""
        return self._find_topic(version).properties(version)

    def _find_topic(self, version: int) -> GeneratedTopic[Any]:
        """Return the topic of the kind that `version` belongs to, or of the first kind for an unknown version."""
        first = next(iter(self.kinds.values()))
        return self.kinds.get(first.codec.find_kind_key(version), first)

    @property
    def struct(self) -> StructType:
        """The columns of `decode`: `__kind`, and one struct for each kind."""
        from .spark.column_types import struct_of

        return struct_of(self.codec.columns)

    def commit(self, version: int) -> str:
        """Return the id of the commit that added `version` (see `GeneratedTopic.commit`)."""
        return self._find_topic(version).commit(version)

    def decode_one(self, payload: bytes | None, version: int | bytes | None, key: bytes | None = None) -> Event:
        """Decode one message to its kind and its value (see `KindsCodec.decode_one`)."""
        return self.codec.decode_one(payload, version, key)

    def decode_batch(
        self, payloads: pa.Array | pa.ChunkedArray, versions: pa.Array | pa.ChunkedArray | None = None
    ) -> Decoded:
        """Decode many messages at once to Arrow columns: `__kind`, and one struct for each kind (see `Codec.decode_batch`)."""
        return self.codec.decode_batch(payloads, versions)

    def validate(self, payload: bytes | None, version: int, key: bytes | None = None) -> None:
        """Check that `payload` is a message of `version` to the last byte (see `Codec.validate`)."""
        self._find_topic(version).codec.validate(payload, version, key)

    @overload
    def decode(
        self,
        messages: DataFrame,
        /,
        *,
        payload: Name = ...,
        version: Name | None = ...,
        key: Name | None = ...,
        mode: ParseMode = ...,
    ) -> DataFrame: ...

    @overload
    def decode(
        self, payload: str | Column, version: str | Column, /, *, mode: Literal["PERMISSIVE", "FAILFAST"] = ...
    ) -> Column: ...

    def decode(self, messages: Any, /, *columns: Any, **options: Any) -> Any:
        """Decode messages of all kinds to `__kind` and one struct for each kind, all null but one (see `spark.decode`).

        Columns with payloads and versions are decoded to a column `struct<value, error>` (see `spark.decode_column`).
        """
        return _decode(self.codec, messages, columns, options)

    def split(self, decoded: DataFrame) -> Split:
        """Split the result of `decode` into rows and rejected messages (see `spark.split`)."""
        from .spark.dataframes import split

        return split(decoded, self.codec)

    def land(
        self,
        messages: DataFrame,
        path: str | PathLike[str],
        *,
        mode: SaveMode = "append",
        txnVersion: int | None = None,  # noqa: N803  the name in Spark's Delta
        **options: Unpack[LandingOptions],
    ) -> dict[str, Landed]:
        """Write the messages of each kind to a separate table, and return the result for each.

        The table is the folder `path/KIND`, or the Iceberg table `path_KIND`. All kinds share one location for rejected messages.
        """
        from .spark.landing_kinds import land_kinds

        names = self._former_names
        return land_kinds(messages, self.codec, path, names_by_kind=names, mode=mode, txnVersion=txnVersion, **options)

    def land_stream(
        self, messages: DataFrame, path: str | PathLike[str], **options: Unpack[LandingOptions]
    ) -> DataStreamWriter:
        """Return a writer of a stream that lands each batch as `land` does, with `foreachBatch`."""
        return messages.writeStream.foreachBatch(self.sink(path, **options))

    def sink(self, path: str | PathLike[str], **options: Unpack[LandingOptions]) -> KindsSink:
        """Return a function for a stream's `foreachBatch` that lands each batch as `land` does."""
        from .spark.landing_kinds import KindsSink

        return KindsSink(self.codec, path, self._former_names, options)

    def replay(
        self, spark: SparkSession, path: str | PathLike[str], **options: Unpack[LandingOptions]
    ) -> dict[str, Landed]:
        """Turn the rejected messages that this package can read into rows of their kinds (see `spark.replay`)."""
        from .spark.landing_kinds import replay_kinds

        return replay_kinds(spark, self.codec, path, names_by_kind=self._former_names, **options)

    def view(
        self,
        spark: SparkSession,
        path: str,
        *,
        format: Format = "parquet",  # noqa: A002  as in `land`
        former: bool = False,
        name: str | None = None,
    ) -> dict[str, DataFrame]:
        """Read the rows of each kind that packages of any version landed in `path` (see `spark.view`).

        The temporary views are called `name_KIND`. A kind without rows is missing.
        """
        from .spark.landing_kinds import view_kinds

        names = self._former_names
        return view_kinds(spark, self.codec, path, names_by_kind=names, format=format, former=former, name=name)

    @property
    def _former_names(self) -> dict[str, Mapping[str, tuple[str, ...]]]:
        return {key: topic.former_names for key, topic in self.kinds.items()}


def finder(topics: Mapping[str, str]) -> Callable[[str], Any]:
    """Create the function `topic` of a generated package; `topics` maps full names to module names."""

    def topic(name: str) -> Any:
        """Return the topic with a full name, or of a partition.

        Raises:
            KeyError: the package does not have this topic.
        """
        name = re.sub("-partition-[0-9]+$", "", name)
        if name not in topics:
            raise KeyError(f"no topic of the package is called {name}: TOPICS has the full names")
        module = topics[name]
        return getattr(import_module(module), module.rpartition(".")[2].upper())

    return topic


# The names in generated packages.
Kind = KindOfEvents
Kinds = GeneratedKinds
Topic = GeneratedTopic
Schema = SchemaFile
KeyValue = KeyValueFiles
