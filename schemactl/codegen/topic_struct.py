"""The StructType of a topic's messages, as spark-avro maps their schema, and the former names of its columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from schemactl.codegen import spark_types
from schemactl.codegen.spark_types import SparkField, SparkType, Struct, UnsupportedBySpark, catalyst_type
from schemactl.core.errors import SchemactlError
from schemactl.core.project import Generate
from schemactl.core.schema import Release, SchemaInfo
from schemactl.formats import pair_of, protobuf, spec
from schemactl.formats.avro import schema as avro
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import Record

# Spark types of Avro schemas, as spark-avro's SchemaConverters makes them


MAX_PRECISION: Final = 38
"""Of Spark's decimals (DecimalType.MAX_PRECISION)."""

_JAVA_CLASSES: Final = ("avro.java.string", "java-class", "java-key-class", "java-element-class")
"""Properties beside which Avro ignores a logical type (LogicalType.INCOMPATIBLE_PROPS)."""

_CATALYST_TYPE: Final = "spark.sql.catalyst.type"
"""The Avro property in which Spark notes the type it had (SchemaConverters.CATALYST_TYPE_PROP_NAME)."""

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
"""Further ones, and the Spark release that knows them first."""


MAX_PLACES: Final = 100_000
"""So many places a StructType may have, its named types written out wherever they are used: no table is as wide."""


@dataclass(frozen=True, slots=True)
class StructOptions:
    """What decides on the type besides the schema.

    Attributes:
        spark: the Spark release, as `MAJOR.MINOR`: time-micros is `bigint` up to 4.1 and `time(6)` from 4.2 on.
        recursive_field_max_depth: how often a record may hold itself before the field is dropped (Spark's
            `recursiveFieldMaxDepth`); below 1: recursion is refused.
        stable_union_identifiers: name a union's members by type instead of by position (Spark's
            `enableStableIdentifiersForUnionType`).
        stable_union_prefix: in front of such names (`stableIdentifierPrefixForUnionType`).
        as_decoded: give the types of the columns that codecs have: nanosecond timestamps as `bigint` also where Spark would
            give a type that PySpark cannot parse and that only a feature flag turns on, and a number as a number also
            where a property notes which type it had in Spark.
    """

    spark: str = "4.1"
    recursive_field_max_depth: int = -1
    stable_union_identifiers: bool = False
    stable_union_prefix: str = "member_"
    as_decoded: bool = False

    @property
    def release(self) -> tuple[int, int]:
        """The Spark release as two numbers, for comparisons.

        Raises:
            SchemactlError: `spark` is not of the form `MAJOR.MINOR`, or older than 4.0.
        """
        found = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?", self.spark)
        if not found:
            raise SchemactlError(f"{self.spark!r} is not a Spark release", fix='write it as "4.1"')
        if int(found[1]) < 4:
            raise SchemactlError(f"Spark {self.spark} is older than the supported releases", fix="write 4.0 or newer")
        return int(found[1]), int(found[2])

    @property
    def has_time(self) -> bool:
        """Whether times of day are `time(6)`, and not numbers. Raises as `release`."""
        return self.release >= (4, 2)


def decoded_options(generate: Generate | None) -> StructOptions:
    """Return the options for the columns that messages are decoded into, by the package that the project generates, if it does."""
    return StructOptions(generate.spark if generate else StructOptions().spark, as_decoded=True)


@dataclass(frozen=True, slots=True)
class Converted:
    """A Spark type, and whether a value of it may be null."""

    type: SparkType
    nullable: bool


def convert(schema: avro.Schema, options: StructOptions) -> Converted:
    """Return the Spark type of values of `schema`, exactly as SchemaConverters.toSqlType of that Spark release answers.

    Raises:
        UnsupportedBySpark: Spark has no type for it.
    """
    try:
        converted = _Converter(options).convert(schema, {})
    except RecursionError:
        raise UnsupportedBySpark("StackOverflowError", "it is nested deeper than can be followed") from None
    # The outermost record is never dropped: its depth is 0.
    assert converted is not None  # noqa: S101  an invariant, as in SchemaConverters
    return converted


class _Converter:
    """One conversion; follows org.apache.spark.sql.avro.SchemaConverters.toSqlTypeHelper branch by branch.

    None stands for what Spark drops because a recursion is cut there.
    """

    def __init__(self, options: StructOptions) -> None:
        self._options = options
        self._release = options.release
        self._left = MAX_PLACES
        self._newer = {
            kind: made
            for kind, (since, made) in _SINCE.items()
            if since <= self._release and not (options.as_decoded and kind[1].endswith("-nanos"))
        }

    def convert(self, schema: avro.Schema, depths: dict[str, int]) -> Converted | None:
        converted: Converted | None
        self._left -= 1
        if self._left < 0:
            raise too_wide()
        match schema:
            case avro.Primitive():
                converted = Converted(self._primitive(schema), nullable=schema.type == "null")
            case avro.Fixed():
                converted = Converted(_decimal(schema) or spark_types.BINARY, nullable=False)
            case avro.Enum():
                converted = Converted(spark_types.Atomic("string", schema.symbols), nullable=False)
            case avro.Array():
                items = self.convert(schema.items, depths)
                converted = items and Converted(spark_types.SparkArray(items.type, items.nullable), nullable=False)
            case avro.Map():
                values = self.convert(schema.values, depths)
                converted = values and Converted(spark_types.SparkMap(values.type, values.nullable), nullable=False)
            case avro.Union():
                converted = self._union(schema, depths)
            case avro.Record():
                converted = self._record(schema, depths)
        return converted

    def _primitive(self, schema: avro.Primitive) -> SparkType:
        if schema.type == "bytes":
            return _decimal(schema) or spark_types.BINARY
        if schema.type not in ("int", "long"):
            return _PRIMITIVES[schema.type]
        logical = _logical_type(schema)
        kind = (schema.type, logical or "")
        if kind in _LOGICAL:
            return _LOGICAL[kind]
        made, noted = self._newer.get(kind), schema.properties.get(_CATALYST_TYPE)
        if self._options.as_decoded or not isinstance(noted, str):
            return made or _PRIMITIVES[schema.type]
        found = catalyst_type(noted, self._release)
        if made is not None and not (made == spark_types.TIME and found.name.startswith("time(")):
            what = f"the property {_CATALYST_TYPE} says {noted!r}, which is no type of a {logical}"
            raise UnsupportedBySpark("ClassCastException", what)
        return found

    def _record(self, schema: avro.Record, depths: dict[str, int]) -> Converted | None:
        depth = depths.get(schema.full_name, 0)
        limit = self._options.recursive_field_max_depth
        if depth > 0 and limit <= 0:
            raise UnsupportedBySpark(
                "IncompatibleSchemaException",
                f"the record {schema.full_name} is recursive, and Spark has no recursive types",
                fix="give a recursion depth; deeper levels are dropped",
            )
        if depth > 0 and depth >= limit:
            return None
        inner = {**depths, schema.full_name: depth + 1}
        fields = ((field, self.convert(field.schema, inner)) for field in schema.fields)
        kept = tuple(
            spark_types.SparkField(field.name, c.type, c.nullable, field.doc or avro.doc_of(field.schema))
            for field, c in fields
            if c is not None
        )
        return Converted(spark_types.Struct(kept, schema.name), nullable=False)

    def _union(self, schema: avro.Union, depths: dict[str, int]) -> Converted | None:
        branches = [branch for branch in schema.branches if branch.type != "null"]
        converted = self._branches(branches, depths)
        is_nullable = len(branches) < len(schema.branches)
        return replace(converted, nullable=True) if converted and is_nullable else converted

    def _branches(self, branches: list[avro.Schema], depths: dict[str, int]) -> Converted | None:
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
                    name = self._member(branch, names)
                members.append(spark_types.SparkField(name, converted.type, nullable=True))
        return Converted(spark_types.Struct(tuple(members)), nullable=False)

    def _member(self, branch: avro.Schema, names: set[str]) -> str:
        name = branch.name if isinstance(branch, avro.Named) else branch.full_name
        if name.lower() in names:
            raise UnsupportedBySpark(
                "IncompatibleSchemaException",
                f"two members of a union would be called {name}, as Spark compares names without case",
                fix="rename one of the types",
            )
        names.add(name.lower())
        return self._options.stable_union_prefix + name


def too_wide() -> UnsupportedBySpark:
    """Return the refusal of a type that would have more than MAX_PLACES."""
    return UnsupportedBySpark("OutOfMemoryError", f"written out, it has more than {MAX_PLACES:,} columns and parts")


def _decimal(schema: avro.Primitive | avro.Fixed) -> SparkType | None:
    """Return the decimal type; None: there is no such logical type, or an invalid one (LogicalTypes.Decimal.validate)."""
    if _logical_type(schema) != "decimal":
        return None
    precision, scale = schema.properties.get("precision"), schema.properties.get("scale", 0)
    if not (type(precision) is int and type(scale) is int and 0 <= scale <= precision):
        return None
    most = _digits(schema.size) if isinstance(schema, avro.Fixed) else (1 << 31) - 1
    if not 0 < precision <= most:
        return None
    if precision > MAX_PRECISION:
        raise UnsupportedBySpark(
            "SparkArithmeticException",
            f"a decimal of {precision} digits: Spark allows at most {MAX_PRECISION}",
            condition="DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
            fix=f"lower the precision to {MAX_PRECISION}",
        )
    return spark_types.Decimal(precision, scale)


def _logical_type(schema: avro.Primitive | avro.Fixed) -> str | None:
    """Return the name of the logical type; None where there is none, or where a Java class is named, too (LogicalType.validate)."""
    if any(isinstance(schema.properties.get(name), str) for name in _JAVA_CLASSES):
        return None
    logical = schema.properties.get("logicalType")
    return logical if isinstance(logical, str) else None


def _digits(size: int) -> int:
    """How many digits always fit into a fixed of `size` bytes, as LogicalTypes.Decimal.maxPrecision says, in Java's ints."""
    bits = (8 * size - 1 + (1 << 31)) % (1 << 32) - (1 << 31)
    return math.floor(math.log10(2) * bits)


# The StructType of any schema type


_BESIDE: Final = frozenset({"__schemaversion", "__error", "__payload"})
"""What DataFrames and tables have beside the values, as names are compared without case (codec.message, which imports Arrow)."""


def struct_of(info: SchemaInfo, options: StructOptions, release: Release) -> Struct | None:
    """Return the columns of messages: a record's fields (see `is_record`); `key` and `value` of a KEY_VALUE; else one column `value`.

    None: there is no codec for the type, so nothing would fill them.

    Args:
        info: what the messages are read as.
        options: for the types.
        release: whose Avro reads the definition.

    Raises:
        InvalidSchema: the definition does not parse.
        UnsupportedBySpark: Spark has no type for it.
    """
    if both := pair_of(info):
        halves = [(name, _value(half, options, release)) for name, half in both.halves.items()]
        # Either half may be null in any message.
        fields = tuple(SparkField(name, half.type, nullable=True) for name, half in halves if half)
        return Struct(fields) if len(fields) == 2 else None
    found = _value(info, options, release)
    if found is None:
        return None
    columns = _columns(info, found.type, release)
    return Struct((SparkField("value", found.type, found.nullable),)) if columns is None else columns


def is_record(info: SchemaInfo, options: StructOptions, release: Release) -> bool:
    """Whether the fields of a value are columns of their own; else it is one column `value`. Raises as `struct_of`.

    It is one column, too, where a field would be called as a column that stands beside the values.
    """
    found = _value(info, options, release)
    return found is not None and _columns(info, found.type, release) is not None


def _columns(info: SchemaInfo, found: SparkType, release: Release) -> Struct | None:
    """Return the fields of the type that was found for a value, if they are columns of their own."""
    if not isinstance(found, Struct):
        return None
    if spec(info).payload in ("avro", "json") and not isinstance(parse(info.schema, release), Record):
        return None
    return found if _BESIDE.isdisjoint(field.name.casefold() for field in found.fields) else None


def value_of(info: SchemaInfo, options: StructOptions, release: Release) -> Converted | None:
    """Return the type of a message's whole value, and whether it may be null. None, and raises, as `struct_of`."""
    if pair_of(info):
        columns = struct_of(info, options, release)
        return None if columns is None else Converted(columns, nullable=False)
    return _value(info, options, release)


def protobuf_of(info: SchemaInfo) -> SchemaInfo | None:
    """Return the PROTOBUF_NATIVE schema that describes the payloads of `info`; None: they are no protobuf, or nothing does."""
    if spec(info).payload != "protobuf":
        return None
    return info if spec(info).language == "protobuf" else info.proto


def message_doc(info: SchemaInfo, release: Release) -> str:
    """Return what the definition says of the whole message; "": nothing.

    Raises:
        InvalidSchema: the definition does not parse.
    """
    native = protobuf_of(info)
    if native is not None:
        root = protobuf.load("definition").parse(native.schema).root
        return native.comments().get(root.pointer, "")
    if spec(info).language != "avro":
        return ""
    root = parse(info.schema, release)
    return (root.doc or "") if isinstance(root, Record) else ""


def _value(info: SchemaInfo, options: StructOptions, release: Release) -> Converted | None:
    if spec(info).payload in ("avro", "json"):
        return convert(parse(info.schema, release), options)
    native = protobuf_of(info)
    if native is not None:
        return Converted(_struct_of_message(native, options), nullable=False)
    # As Pulsar's Spark connector has them, and the nearest type for those it leaves out.
    name = spec(info).spark
    if name == "time":
        return Converted(spark_types.TIME if options.has_time else spark_types.LONG, nullable=False)
    return Converted(spark_types.Atomic(name), nullable=False) if name else None


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

_MOMENTS: Final = {
    "google.protobuf.Timestamp": spark_types.TIMESTAMP,
    "google.protobuf.Duration": spark_types.Atomic("interval day to second"),
}


def _struct_of_message(native: SchemaInfo, options: StructOptions) -> Struct:
    """Return the type of the root message of a PROTOBUF_NATIVE schema, as Spark's protobuf support has it with its safe options.

    Unsigned numbers take the next wider type (`upcast.unsigned.ints`), and messages without fields are dropped.

    Raises:
        InvalidSchema: the schema does not parse.
        UnsupportedBySpark: a message holds itself, and the options give no depth.
        SchemactlError: protobuf is not installed.
    """
    root = protobuf.load("definition").parse(native.schema).root
    found = _ProtoConverter(options, native.comments()).message(root, {})
    assert found is not None  # noqa: S101  the outermost message is never cut
    return found


class _ProtoConverter:
    """None stands for what is dropped. Messages and fields are those of formats.protobuf_native.descriptor."""

    def __init__(self, options: StructOptions, comments: Mapping[str, str]) -> None:
        self._comments = comments
        self._limit = options.recursive_field_max_depth
        self._left = MAX_PLACES
        self._kinds = protobuf.load("descriptor")
        self._doc_of = protobuf.load("definition").doc_of

    def message(self, message: Any, depths: dict[str, int]) -> Struct | None:
        name = message.full_name
        depth = depths.get(name, 0)
        if depth > 0 and self._limit <= 0:
            raise UnsupportedBySpark(
                "AnalysisException",
                f"the message {name} is recursive, and Spark has no recursive types",
                condition="RECURSIVE_PROTOBUF_SCHEMA",
                fix="give a recursion depth; deeper levels are dropped",
            )
        if depth > 0 and depth >= self._limit:
            return None
        inner = {**depths, name: depth + 1}
        fields = tuple(part for field in message.fields().values() if (part := self._field(field, inner)) is not None)
        return Struct(fields, name.rpartition(".")[2]) if fields or not depths else None

    def _field(self, field: Any, depths: dict[str, int]) -> SparkField | None:
        found: SparkType | None
        if field.cardinality == self._kinds.MAP:
            entry = field.message_type.fields()
            key, value = self._value(entry[1], depths), self._value(entry[2], depths)
            if key is None or value is None:
                return None
            found = spark_types.SparkMap(value, value_contains_null=False, key=key)
        else:
            found = self._value(field, depths)
            if found is None:
                return None
            if field.cardinality == self._kinds.REPEATED:
                found = spark_types.SparkArray(found, contains_null=False)
        is_nullable = field.cardinality != self._kinds.REQUIRED
        return SparkField(field.name, found, is_nullable, self._doc_of(field, self._comments))

    def _value(self, field: Any, depths: dict[str, int]) -> SparkType | None:
        self._left -= 1
        if self._left < 0:
            raise too_wide()
        if not field.is_message:
            return _SCALARS[self._kinds.KIND_NAMES[field.kind]]
        moment = _MOMENTS.get(field.type_name)
        return moment if moment is not None else self.message(field.message_type, depths)


# Former names of columns


Path = tuple[str, ...]
"""A place in a StructType: names of fields, and `element` and `value` for the insides of arrays and maps."""


def former_names(
    reader: SchemaInfo, older: Sequence[SchemaInfo], options: StructOptions, release: Release
) -> dict[Path, tuple[str, ...]]:
    """Return the former names of every column that has some, the newest first; the name of another column of today is none.

    In Avro aliases say them, the reader's own and then those of older versions: what was called `a`, `b` and `c` in turn is
    found as `a` even if the reader has the alias `b` alone. In protobuf a field is its number.

    Args:
        reader: what the columns are made of; Spark has a type for it (`topic_struct.struct_of`).
        older: the older versions, the newest first; versions of another type say nothing.
        options: for the StructType.
        release: whose Avro reads the definitions.

    Raises:
        InvalidSchema: a definition does not parse.
    """
    names = _Names(max(options.recursive_field_max_depth, 1), release)
    older = [each for each in older if each.type is reader.type]
    now = pair_of(reader)
    if now is None:
        at: Path = () if is_record(reader, options, release) else ("value",)
        return dict(names.of(reader, older, at))
    then = [pair.halves for each in older if (pair := pair_of(each))]
    found: dict[Path, tuple[str, ...]] = {}
    for name, half in now.halves.items():
        before = [each[name] for each in then if each[name].type is half.type]
        found |= names.of(half, before, (name,))
    return found


class _Names:
    """One search; a record inside itself is followed as deep as in the StructType."""

    def __init__(self, depth: int, release: Release) -> None:
        self._depth = depth
        self._release = release

    def of(self, reader: SchemaInfo, older: Sequence[SchemaInfo], at: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
        if spec(reader).payload in ("avro", "json"):
            now, *then = (parse(each.schema, self._release) for each in (reader, *older))
            yield from self._in_avro(now, then, at, ())
        elif protobuf_of(reader) is not None:
            natives = filter(None, map(protobuf_of, (reader, *older)))
            root, *roots = (protobuf.load("definition").parse(each.schema).root for each in natives)
            yield from self._in_message(root, roots, at, ())

    def _in_avro(
        self, reader: avro.Schema, older: Sequence[avro.Schema], at: Path, inside: tuple[str, ...]
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        branches = _branches(reader)
        if len(branches) != 1:
            for number, branch in enumerate(branches):
                then = [found[number] for each in older if len(found := _branches(each)) > max(number, 1)]
                yield from self._in_avro(branch, then, (*at, f"member{number}"), inside)
            return
        # Nullable or not, it is the same column.
        only = [found[0] for each in older if len(found := _branches(each)) == 1]
        match branches[0]:
            case avro.Array(items=items):
                then = [each.items for each in only if isinstance(each, avro.Array)]
                yield from self._in_avro(items, then, (*at, "element"), inside)
            case avro.Map(values=values):
                then = [each.values for each in only if isinstance(each, avro.Map)]
                yield from self._in_avro(values, then, (*at, "value"), inside)
            case avro.Record() as record if inside.count(record.full_name) < self._depth:
                records = [each for each in only if isinstance(each, avro.Record)]
                for field in record.fields:
                    names, fields = _followed(record, field, records)
                    place = (*at, field.name)
                    if names:
                        yield place, names
                    schemas = [each.schema for each in fields]
                    yield from self._in_avro(field.schema, schemas, place, (*inside, record.full_name))

    def _in_message(
        self, reader: Any, older: Sequence[Any], at: Path, inside: tuple[str, ...]
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """Messages and fields are those of formats.protobuf_native.descriptor."""
        if inside.count(reader.full_name) >= self._depth:
            return
        today = {field.name for field in reader.fields().values()}
        for number, field in reader.fields().items():
            then = [found for each in older if (found := each.fields().get(number))]
            place = (*at, field.name)
            names = tuple(dict.fromkeys(each.name for each in then if each.name not in today))
            if names:
                yield place, names
            yield from self._in_field(field, then, place, (*inside, reader.full_name))

    def _in_field(
        self, field: Any, then: Sequence[Any], place: Path, inside: tuple[str, ...]
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        kinds = protobuf.load("descriptor")
        then = [each for each in then if each.is_message and each.cardinality == field.cardinality]
        if not field.is_message:
            return
        messages = [each.message_type for each in (field, *then)]
        if field.cardinality == kinds.MAP:
            values = [each.fields()[2] for each in messages]
            yield from self._in_field(values[0], values[1:], (*place, "value"), inside)
            return
        if field.cardinality == kinds.REPEATED:
            place = (*place, "element")
        yield from self._in_message(messages[0], messages[1:], place, inside)


def _branches(schema: avro.Schema) -> list[avro.Schema]:
    """Return what a value may be besides null."""
    if isinstance(schema, avro.Union):
        return [branch for branch in schema.branches if branch.type != "null"]
    return [schema]


def _followed(
    record: avro.Record, field: avro.Field, older: Sequence[avro.Record]
) -> tuple[tuple[str, ...], list[avro.Field]]:
    """Return the former names of a field, and what it was in each older record that has it."""
    names, fields = [field.name, *(name for name in field.aliases if name not in record.fields_by_name)], []
    for each in older:
        then = next((each.fields_by_name[name] for name in names if name in each.fields_by_name), None)
        if then is not None:
            fields.append(then)
            before = (then.name, *then.aliases)
            names += [name for name in before if name not in names and name not in record.fields_by_name]
    return tuple(names[1:]), fields
