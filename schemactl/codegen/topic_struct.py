"""Find the Spark columns of a topic's messages, as Spark converts their schema, and the former names of the columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from schemactl.codec.avro_schema import JAVA_CLASSES
from schemactl.codec.definition import MAX_COLUMNS, MAX_PRECISION, RESERVED_NAMES
from schemactl.codec.wire_format import compute_max_precision
from schemactl.codegen import spark_types
from schemactl.codegen.codecs import get_nanoseconds
from schemactl.codegen.spark_types import (
    SparkField,
    SparkType,
    Struct,
    UnboundedColumns,
    UnsupportedBySpark,
    catalyst_type,
)
from schemactl.core.catalog import Topic
from schemactl.core.errors import SchemactlError
from schemactl.core.project import Generate, Nanoseconds
from schemactl.core.schema import NANOSECOND_TYPES, Release, SchemaInfo
from schemactl.formats import get_pair, protobuf, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parser import parse
from schemactl.formats.digest import is_known_plain

Path = tuple[str, ...]
"""The path of a column in a struct: names of fields, and `element` and `value` inside arrays and maps."""

MAX_PLACES: Final = MAX_COLUMNS
"""The maximum number of columns and parts of a struct, in which named types are written out at each use."""

_CATALYST_TYPE: Final = "spark.sql.catalyst.type"
"""The Avro property in which Spark stores its own type (SchemaConverters.CATALYST_TYPE_PROP_NAME)."""

_PRIMITIVES: Final = {
    "null": spark_types.VOID,
    "boolean": spark_types.BOOLEAN,
    "int": spark_types.INTEGER,
    "long": spark_types.LONG,
    "float": spark_types.FLOAT,
    "double": spark_types.DOUBLE,
    "bytes": spark_types.BINARY,
    "string": spark_types.STRING,
}

_LOGICAL: Final[dict[tuple[str, str], SparkType]] = {
    ("int", "date"): spark_types.DATE,
    ("long", "timestamp-millis"): spark_types.TIMESTAMP,
    ("long", "timestamp-micros"): spark_types.TIMESTAMP,
    ("long", "local-timestamp-millis"): spark_types.TIMESTAMP_NTZ,
    ("long", "local-timestamp-micros"): spark_types.TIMESTAMP_NTZ,
}

_SINCE: Final[dict[tuple[str, str], tuple[tuple[int, int], SparkType]]] = {
    ("long", "time-micros"): ((4, 2), spark_types.TIME),
    ("long", "timestamp-nanos"): ((4, 3), spark_types.Atomic("timestamp_ltz(9)")),
    ("long", "local-timestamp-nanos"): ((4, 3), spark_types.Atomic("timestamp_ntz(9)")),
}
"""Logical types that a later Spark release introduced, with the release."""

_UINT64: Final = spark_types.Decimal(20, 0, is_int=True)

_SCALARS: Final[dict[str, SparkType]] = {
    "double": spark_types.DOUBLE,
    "float": spark_types.FLOAT,
    "int64": spark_types.LONG,
    "uint64": _UINT64,
    "int32": spark_types.INTEGER,
    "fixed64": _UINT64,
    "fixed32": spark_types.LONG,
    "bool": spark_types.BOOLEAN,
    "string": spark_types.STRING,
    "bytes": spark_types.BINARY,
    "uint32": spark_types.LONG,
    "enum": spark_types.STRING,
    "sfixed32": spark_types.INTEGER,
    "sfixed64": spark_types.LONG,
    "sint32": spark_types.INTEGER,
    "sint64": spark_types.LONG,
}

_WELL_KNOWN_TYPES: Final = {
    "google.protobuf.Timestamp": spark_types.TIMESTAMP,
    "google.protobuf.Duration": spark_types.Atomic("interval day to second"),
}


@dataclass(frozen=True, slots=True)
class StructOptions:
    """The settings that determine the columns of a schema.

    Attributes:
        spark: the Spark release, as `MAJOR.MINOR`: time-micros is `bigint` up to 4.1 and `time(6)` since 4.2.
        recursive_field_max_depth: how often a record may contain itself before the field is dropped (Spark's
            `recursiveFieldMaxDepth`); with less than 1, recursion is an error.
        stable_union_identifiers: whether the members of a union are named by type instead of position (Spark's
            `enableStableIdentifiersForUnionType`).
        stable_union_prefix: the prefix of such names (`stableIdentifierPrefixForUnionType`).
        as_decoded: whether these are the columns that codecs decode to. Then nanosecond timestamps are `bigint`, because PySpark cannot
            parse Spark's type for them, which needs a feature flag; and numbers stay numbers, even if a property names another Spark type.
        nanoseconds: the columns of INSTANT, LOCAL_TIME and LOCAL_DATE_TIME (see `schemactl.codec.arrow_types.Options`).
    """

    spark: str = "4.1"
    recursive_field_max_depth: int = -1
    stable_union_identifiers: bool = False
    stable_union_prefix: str = "member_"
    as_decoded: bool = False
    nanoseconds: Nanoseconds = "truncated"

    @property
    def release(self) -> tuple[int, int]:
        """The Spark release as two numbers, for comparisons.

        Raises:
            SchemactlError: if `spark` does not have the form `MAJOR.MINOR`, or is older than 4.0.
        """
        match = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?", self.spark)
        if not match:
            raise SchemactlError(f"{self.spark!r} is not a Spark release", fix='write it as "4.1"')
        if int(match[1]) < 4:
            raise SchemactlError(f"Spark {self.spark} is older than the supported releases", fix="write 4.0 or newer")
        return int(match[1]), int(match[2])

    @property
    def has_time(self) -> bool:
        """Whether times of day are `time(6)` instead of numbers; raises like `release`."""
        return self.release >= (4, 2)


def decoded_options(generate: Generate | None, topic: Topic | None = None) -> StructOptions:
    """Return the options of decoded columns, with the settings of the package that the project generates, if any.

    The settings of `topic` take precedence; without it, `generate` may have its recursion depth (`Generate.with_recursion_depth`).
    """
    options = StructOptions(as_decoded=True)
    if generate is not None:
        generate = generate.with_recursion_depth(topic.recursion_depth if topic else None)
        options = replace(options, spark=generate.spark, recursive_field_max_depth=generate.recursion_depth)
    return replace(options, nanoseconds=get_nanoseconds(topic, generate) or "truncated")


@dataclass(frozen=True, slots=True)
class Converted:
    """A Spark type, and whether its values may be null."""

    type: SparkType
    nullable: bool


def struct_of(info: SchemaInfo, options: StructOptions, release: Release) -> Struct | None:
    """Return the columns of messages, or None without a codec for the schema type.

    The columns are a record's fields (see `is_record`), `key` and `value` of a KEY_VALUE, or else one column `value`.

    Args:
        info: the schema with which the messages are read.
        options: the settings of the columns.
        release: the Pulsar release whose Avro parses the definition.

    Raises:
        InvalidSchema: if the definition does not parse.
        UnsupportedBySpark: if Spark has no type for it.
    """
    if pair := get_pair(info):
        parts = [(name, _convert_value(part, options, release)) for name, part in pair.halves.items()]
        # Key and value may be null in any message.
        fields = tuple(SparkField(name, part.type, nullable=True) for name, part in parts if part)
        return Struct(fields) if len(fields) == 2 else None
    value = _convert_value(info, options, release)
    if value is None:
        return None
    columns = _split_into_columns(info, value.type, release)
    return Struct((SparkField("value", value.type, value.nullable),)) if columns is None else columns


def is_record(info: SchemaInfo, options: StructOptions, release: Release) -> bool:
    """Return whether the fields of a value are separate columns, instead of one column `value`; raises like `struct_of`.

    The value is also one column if a field has the name of a column that decoded DataFrames have next to the values.
    """
    value = _convert_value(info, options, release)
    return value is not None and _split_into_columns(info, value.type, release) is not None


def _split_into_columns(info: SchemaInfo, value_type: SparkType, release: Release) -> Struct | None:
    """Return the fields of a value's type if they are separate columns, else None."""
    if not isinstance(value_type, Struct):
        return None
    if spec(info).payload in ("avro", "json") and not isinstance(_parse_avro(info.schema, release), avro.Record):
        return None
    has_message_columns = not RESERVED_NAMES.isdisjoint(field.name.casefold() for field in value_type.fields)
    return None if has_message_columns else value_type


def value_of(info: SchemaInfo, options: StructOptions, release: Release) -> Converted | None:
    """Return the type of a message's whole value, or None without a codec for the schema type; raises like `struct_of`."""
    if get_pair(info):
        columns = struct_of(info, options, release)
        return None if columns is None else Converted(columns, nullable=False)
    return _convert_value(info, options, release)


def protobuf_of(info: SchemaInfo) -> SchemaInfo | None:
    """Return the PROTOBUF_NATIVE schema of the payloads of `info`, or None if they are not protobuf or have no such schema."""
    if spec(info).payload != "protobuf":
        return None
    return info if spec(info).language == "protobuf" else info.proto


def message_doc(info: SchemaInfo, release: Release) -> str:
    """Return the documentation of the whole message in its definition, or "".

    Raises:
        InvalidSchema: if the definition does not parse.
    """
    native = protobuf_of(info)
    if native is not None:
        root = protobuf.load("definition").parse(native.schema).root
        return native.comments().get(root.pointer, "")
    if spec(info).language != "avro":
        return ""
    root = _parse_avro(info.schema, release)
    return (root.doc or "") if isinstance(root, avro.Record) else ""


def _convert_value(info: SchemaInfo, options: StructOptions, release: Release) -> Converted | None:
    if spec(info).payload in ("avro", "json"):
        return _convert_avro(info.schema, options, release)
    native = protobuf_of(info)
    if native is not None:
        root = protobuf.load("definition").parse(native.schema).root
        try:
            struct = _ProtoConverter(options, native.comments()).convert_message(root, {})
        except RecursionError:
            raise _make_too_deep_error() from None
        assert struct is not None  # noqa: S101  the outermost message is never dropped
        return Converted(struct, nullable=False)
    # The types of Pulsar's Spark connector, or the nearest type where it lacks one.
    name = spec(info).spark
    if options.nanoseconds == "bigint" and info.type in NANOSECOND_TYPES:
        return Converted(spark_types.LONG, nullable=False)
    if name == "time":
        return Converted(spark_types.TIME if options.has_time else spark_types.LONG, nullable=False)
    return Converted(spark_types.Atomic(name), nullable=False) if name else None


# Avro, as spark-avro's SchemaConverters converts it


@lru_cache(maxsize=4)
def _parse_avro(definition: bytes, release: Release) -> avro.Schema:
    # The value, the columns and their former names need the same definition, one after the other.
    return parse(definition, release)


@lru_cache(maxsize=4)
def _convert_avro(definition: bytes, options: StructOptions, release: Release) -> Converted:
    return convert(_parse_avro(definition, release), options)


def convert(schema: avro.Schema, options: StructOptions) -> Converted:
    """Return the Spark type of values of `schema`, exactly like SchemaConverters.toSqlType of the Spark release.

    Raises:
        UnsupportedBySpark: if Spark has no type for it.
    """
    try:
        converted = _Converter(options).convert(schema, {})
    except RecursionError:
        raise _make_too_deep_error() from None
    # The outermost record is never dropped: its depth is 0.
    assert converted is not None  # noqa: S101  an invariant, as in SchemaConverters
    return converted


class _Converter:
    """One conversion, which follows org.apache.spark.sql.avro.SchemaConverters.toSqlTypeHelper branch by branch.

    The result None means that Spark drops the field, since it ends a recursion there. `depths` has the number of enclosing records
    by full name.
    """

    def __init__(self, options: StructOptions) -> None:
        self._options = options
        self._release = options.release
        self._places_left = MAX_PLACES
        self._newer_types = {
            key: spark_type
            for key, (since, spark_type) in _SINCE.items()
            if since <= self._release and not (options.as_decoded and key[1].endswith("-nanos"))
        }

    def convert(self, schema: avro.Schema, depths: dict[str, int]) -> Converted | None:
        converted: Converted | None
        self._places_left -= 1
        if self._places_left < 0:
            raise _make_too_wide_error()
        match schema:
            case avro.Primitive():
                converted = Converted(self._convert_primitive(schema), nullable=schema.type == "null")
            case avro.Fixed():
                converted = Converted(_find_decimal(schema) or spark_types.BINARY, nullable=False)
            case avro.Enum():
                converted = Converted(spark_types.Atomic("string", schema.symbols), nullable=False)
            case avro.Array():
                items = self.convert(schema.items, depths)
                converted = items and Converted(spark_types.SparkArray(items.type, items.nullable), nullable=False)
            case avro.Map():
                values = self.convert(schema.values, depths)
                converted = values and Converted(spark_types.SparkMap(values.type, values.nullable), nullable=False)
            case avro.Union():
                branches = [branch for branch in schema.branches if branch.type != "null"]
                converted = self._convert_branches(branches, depths)
                if converted and len(branches) < len(schema.branches):
                    converted = replace(converted, nullable=True)
            case avro.Record():
                converted = self._convert_record(schema, depths)
        return converted

    def _convert_primitive(self, schema: avro.Primitive) -> SparkType:
        if schema.type == "bytes":
            return _find_decimal(schema) or spark_types.BINARY
        if schema.type not in ("int", "long"):
            return _PRIMITIVES[schema.type]
        logical_type = _get_logical_type(schema)
        key = (schema.type, logical_type or "")
        if key in _LOGICAL:
            return _LOGICAL[key]
        newer_type, type_name = self._newer_types.get(key), schema.properties.get(_CATALYST_TYPE)
        if self._options.as_decoded or not isinstance(type_name, str):
            return newer_type or _PRIMITIVES[schema.type]
        property_type = catalyst_type(type_name, self._release)
        if newer_type is not None and not (newer_type == spark_types.TIME and property_type.name.startswith("time(")):
            raise UnsupportedBySpark(
                "ClassCastException",
                f"the property {_CATALYST_TYPE} is {type_name!r}, which is not a type for {logical_type}",
            )
        return property_type

    def _convert_record(self, schema: avro.Record, depths: dict[str, int]) -> Converted | None:
        depth = depths.get(schema.full_name, 0)
        limit = self._options.recursive_field_max_depth
        if depth > 0 and limit <= 0:
            raise UnboundedColumns(
                "IncompatibleSchemaException",
                f"the record {schema.full_name} is recursive, and Spark has no recursive types",
                fix="give a recursion depth; deeper levels are dropped",
            )
        if depth > 0 and depth >= limit:
            return None
        inner_depths = {**depths, schema.full_name: depth + 1}
        fields = []
        for field in schema.fields:
            converted = self.convert(field.schema, inner_depths)
            if converted is not None:
                doc = field.doc or avro.find_doc(field.schema)
                fields.append(SparkField(field.name, converted.type, converted.nullable, doc))
        return Converted(Struct(tuple(fields), schema.name), nullable=False)

    def _convert_branches(self, branches: list[avro.Schema], depths: dict[str, int]) -> Converted | None:
        types = {branch.type for branch in branches}
        if len(branches) == 1:
            return self.convert(branches[0], depths)
        if len(branches) == 2 and types == {"int", "long"}:
            return Converted(spark_types.LONG, nullable=False)
        if len(branches) == 2 and types == {"float", "double"}:
            return Converted(spark_types.DOUBLE, nullable=False)
        members = []
        names: set[str] = set()
        for number, branch in enumerate(branches):
            converted = self.convert(branch, depths)
            if converted is not None:
                name = f"member{number}"
                if self._options.stable_union_identifiers:
                    type_name = branch.name if isinstance(branch, avro.Named) else branch.full_name
                    if type_name.lower() in names:
                        raise UnsupportedBySpark(
                            "IncompatibleSchemaException",
                            f"two members of a union would be called {type_name}, as Spark compares names without case",
                            fix="rename one of the types",
                        )
                    names.add(type_name.lower())
                    name = self._options.stable_union_prefix + type_name
                members.append(SparkField(name, converted.type, nullable=True))
        return Converted(Struct(tuple(members)), nullable=False)


def _make_too_wide_error() -> UnboundedColumns:
    return UnboundedColumns("OutOfMemoryError", f"fully expanded, it has more than {MAX_PLACES:,} columns and parts")


def _make_too_deep_error() -> UnboundedColumns:
    return UnboundedColumns("StackOverflowError", "it is nested too deeply")


def _find_decimal(schema: avro.Primitive | avro.Fixed) -> SparkType | None:
    """Return the decimal type, or None if the logical type is another one or invalid (LogicalTypes.Decimal.validate)."""
    if _get_logical_type(schema) != "decimal":
        return None
    precision, scale = schema.properties.get("precision"), schema.properties.get("scale", 0)
    if not (type(precision) is int and type(scale) is int and 0 <= scale <= precision):
        return None
    max_precision = (1 << 31) - 1
    if isinstance(schema, avro.Fixed):
        max_precision = compute_max_precision(schema.size)
    if not 0 < precision <= max_precision:
        return None
    if precision > MAX_PRECISION:
        raise UnsupportedBySpark(
            "SparkArithmeticException",
            f"a decimal of {precision} digits: Spark allows at most {MAX_PRECISION}",
            condition="DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
            fix=f"lower the precision to {MAX_PRECISION}",
        )
    return spark_types.Decimal(precision, scale)


def _get_logical_type(schema: avro.Primitive | avro.Fixed) -> str | None:
    """Return the name of the logical type, or None without one or next to the name of a Java class (LogicalType.validate)."""
    if any(isinstance(schema.properties.get(name), str) for name in JAVA_CLASSES):
        return None
    logical_type = schema.properties.get("logicalType")
    return logical_type if isinstance(logical_type, str) else None


# Protobuf, as Spark's SchemaConverters for protobuf converts it


class _ProtoConverter:
    """One conversion of messages and fields of `formats.protobuf.descriptor`, like Spark's protobuf support with its safe options.

    Unsigned numbers have the next wider type (`upcast.unsigned.ints`), and messages without fields are dropped.
    The result None means that the field is dropped. `depths` has the number of enclosing messages by full name.
    """

    def __init__(self, options: StructOptions, comments: Mapping[str, str]) -> None:
        self._comments = comments
        self._max_depth = options.recursive_field_max_depth
        self._places_left = MAX_PLACES
        self._kinds = protobuf.load("kinds")
        self._doc_of = protobuf.load("definition").get_doc

    def convert_message(self, message: Any, depths: dict[str, int]) -> Struct | None:
        name = message.full_name
        depth = depths.get(name, 0)
        if depth > 0 and self._max_depth <= 0:
            raise UnboundedColumns(
                "AnalysisException",
                f"the message {name} is recursive, and Spark has no recursive types",
                condition="RECURSIVE_PROTOBUF_SCHEMA",
                fix="give a recursion depth; deeper levels are dropped",
            )
        if depth > 0 and depth >= self._max_depth:
            return None
        inner_depths = {**depths, name: depth + 1}
        converted = (self._convert_field(field, inner_depths) for field in message.fields().values())
        fields = tuple(field for field in converted if field is not None)
        return Struct(fields, name.rpartition(".")[2]) if fields or not depths else None

    def _convert_field(self, field: Any, depths: dict[str, int]) -> SparkField | None:
        field_type: SparkType | None
        if field.cardinality == self._kinds.MAP:
            entry = field.message_type.fields()
            key, value = self._convert_value(entry[1], depths), self._convert_value(entry[2], depths)
            if key is None or value is None:
                return None
            field_type = spark_types.SparkMap(value, value_contains_null=False, key=key)
        else:
            field_type = self._convert_value(field, depths)
            if field_type is None:
                return None
            if field.cardinality == self._kinds.REPEATED:
                field_type = spark_types.SparkArray(field_type, contains_null=False)
        is_nullable = field.cardinality != self._kinds.REQUIRED
        return SparkField(field.name, field_type, is_nullable, self._doc_of(field, self._comments))

    def _convert_value(self, field: Any, depths: dict[str, int]) -> SparkType | None:
        self._places_left -= 1
        if self._places_left < 0:
            raise _make_too_wide_error()
        if not field.is_message:
            return _SCALARS[self._kinds.KIND_NAMES[field.kind]]
        well_known_type = _WELL_KNOWN_TYPES.get(field.type_name)
        return well_known_type if well_known_type is not None else self.convert_message(field.message_type, depths)


# Former names of columns


def former_names(
    reader: SchemaInfo, older: Sequence[SchemaInfo], options: StructOptions, release: Release
) -> dict[Path, tuple[str, ...]]:
    """Return the former names of columns, newest first, by path; the present name of another column does not count.

    In Avro, former names come from the aliases of the reader and then of older versions: a field whose name changed from `a` to `b`
    to `c` has the former name `a` even if the reader has only the alias `b`. In protobuf, a field keeps its number.

    Args:
        reader: the schema of the columns, for which Spark has a type (see `struct_of`).
        older: the older versions, newest first; versions of another schema type are ignored.
        options: the settings of the columns.
        release: the Pulsar release whose Avro parses the definitions.

    Raises:
        InvalidSchema: if a definition does not parse.
    """
    search = _FormerNameSearch(max(options.recursive_field_max_depth, 1), release)
    # A plain definition has no aliases, so it adds no names.
    older = [info for info in older if info.type is reader.type and not is_known_plain(info)]
    reader_pair = get_pair(reader)
    if reader_pair is None:
        path: Path = () if is_record(reader, options, release) else ("value",)
        return dict(search.find(reader, older, path))
    older_pairs = [pair.halves for info in older if (pair := get_pair(info))]
    names_by_path: dict[Path, tuple[str, ...]] = {}
    for name, part in reader_pair.halves.items():
        older_parts = [parts[name] for parts in older_pairs if parts[name].type is part.type]
        names_by_path |= search.find(part, older_parts, (name,))
    return names_by_path


class _FormerNameSearch:
    """Yields paths and former names; follows a record inside itself as deep as the columns do.

    `enclosing` has the full names of the records or messages around a schema.
    """

    def __init__(self, depth: int, release: Release) -> None:
        self._depth = depth
        self._release = release

    def find(
        self, reader: SchemaInfo, older: Sequence[SchemaInfo], path: Path
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        if spec(reader).payload in ("avro", "json"):
            schema, *older_schemas = (_parse_avro(info.schema, self._release) for info in (reader, *older))
            yield from self._search_avro(schema, older_schemas, path, ())
        elif protobuf_of(reader) is not None:
            natives = filter(None, map(protobuf_of, (reader, *older)))
            root, *older_roots = (protobuf.load("definition").parse(native.schema).root for native in natives)
            yield from self._search_message(root, older_roots, path, ())

    def _search_avro(
        self, reader: avro.Schema, older: Sequence[avro.Schema], path: Path, enclosing: tuple[str, ...]
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        branches = _list_branches(reader)
        older_branches = [_list_branches(schema) for schema in older]
        if len(branches) != 1:
            for index, branch in enumerate(branches):
                older_members = [members[index] for members in older_branches if len(members) > max(index, 1)]
                yield from self._search_avro(branch, older_members, (*path, f"member{index}"), enclosing)
            return
        # A column stays the same if it becomes nullable.
        older_types = [members[0] for members in older_branches if len(members) == 1]
        match branches[0]:
            case avro.Array(items=items):
                older_items = [schema.items for schema in older_types if isinstance(schema, avro.Array)]
                yield from self._search_avro(items, older_items, (*path, "element"), enclosing)
            case avro.Map(values=values):
                older_values = [schema.values for schema in older_types if isinstance(schema, avro.Map)]
                yield from self._search_avro(values, older_values, (*path, "value"), enclosing)
            case avro.Record() as record if enclosing.count(record.full_name) < self._depth:
                older_records = [schema for schema in older_types if isinstance(schema, avro.Record)]
                for field in record.fields:
                    names, older_fields = _follow_field(record, field, older_records)
                    field_path = (*path, field.name)
                    if names:
                        yield field_path, names
                    older_schemas = [older_field.schema for older_field in older_fields]
                    yield from self._search_avro(
                        field.schema, older_schemas, field_path, (*enclosing, record.full_name)
                    )

    def _search_message(
        self, reader: Any, older: Sequence[Any], path: Path, enclosing: tuple[str, ...]
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """Search messages of `formats.protobuf.descriptor`."""
        if enclosing.count(reader.full_name) >= self._depth:
            return
        present_names = {field.name for field in reader.fields().values()}
        for number, field in reader.fields().items():
            older_fields = [older_field for message in older if (older_field := message.fields().get(number))]
            field_path = (*path, field.name)
            names = tuple(
                dict.fromkeys(older_field.name for older_field in older_fields if older_field.name not in present_names)
            )
            if names:
                yield field_path, names
            yield from self._search_field(field, older_fields, field_path, (*enclosing, reader.full_name))

    def _search_field(
        self, field: Any, older: Sequence[Any], path: Path, enclosing: tuple[str, ...]
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        if not field.is_message:
            return
        kinds = protobuf.load("kinds")
        older = [
            older_field
            for older_field in older
            if older_field.is_message and older_field.cardinality == field.cardinality
        ]
        message, *older_messages = (part.message_type for part in (field, *older))
        if field.cardinality == kinds.MAP:
            value, *older_values = (entry.fields()[2] for entry in (message, *older_messages))
            yield from self._search_field(value, older_values, (*path, "value"), enclosing)
            return
        if field.cardinality == kinds.REPEATED:
            path = (*path, "element")
        yield from self._search_message(message, older_messages, path, enclosing)


def _list_branches(schema: avro.Schema) -> list[avro.Schema]:
    """Return the branches of a union without null, or else the schema itself."""
    if isinstance(schema, avro.Union):
        return [branch for branch in schema.branches if branch.type != "null"]
    return [schema]


def _follow_field(
    record: avro.Record, field: avro.Field, older: Sequence[avro.Record]
) -> tuple[tuple[str, ...], list[avro.Field]]:
    """Return the former names of a field, and the same field in each older record that has it."""
    names = [field.name, *(name for name in field.aliases if name not in record.fields_by_name)]
    fields = []
    for older_record in older:
        matches = [older_record.fields_by_name[name] for name in names if name in older_record.fields_by_name]
        if matches:
            older_field = matches[0]
            fields.append(older_field)
            older_names = [older_field.name, *older_field.aliases]
            names += [name for name in older_names if name not in names and name not in record.fields_by_name]
    return tuple(names[1:]), fields
