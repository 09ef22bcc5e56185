"""The Spark type of an Avro schema, as spark-avro's own SchemaConverters makes it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Final

from schemactl.columns import spark_type
from schemactl.columns.spark_type import SparkType, UnsupportedBySpark, catalyst_type
from schemactl.core.errors import SchemactlError
from schemactl.core.project import Generate
from schemactl.formats.avro import schema as avro

MAX_PRECISION: Final = 38
"""Of Spark's decimals (DecimalType.MAX_PRECISION)."""

_JAVA_CLASSES: Final = ("avro.java.string", "java-class", "java-key-class", "java-element-class")
"""Properties beside which Avro ignores a logical type (LogicalType.INCOMPATIBLE_PROPS)."""

_CATALYST_TYPE: Final = "spark.sql.catalyst.type"
"""The Avro property in which Spark notes the type it had (SchemaConverters.CATALYST_TYPE_PROP_NAME)."""

_PRIMITIVES: Final = {
    "null": spark_type.VOID,
    "boolean": spark_type.BOOLEAN,
    "int": spark_type.INTEGER,
    "long": spark_type.LONG,
    "float": spark_type.FLOAT,
    "double": spark_type.DOUBLE,
    "bytes": spark_type.BINARY,
    "string": spark_type.STRING,
}

_LOGICAL: Final[dict[tuple[str, str], SparkType]] = {
    ("int", "date"): spark_type.DATE,
    ("long", "timestamp-millis"): spark_type.TIMESTAMP,
    ("long", "timestamp-micros"): spark_type.TIMESTAMP,
    ("long", "local-timestamp-millis"): spark_type.TIMESTAMP_NTZ,
    ("long", "local-timestamp-micros"): spark_type.TIMESTAMP_NTZ,
}

_SINCE: Final[dict[tuple[str, str], tuple[tuple[int, int], SparkType]]] = {
    ("long", "time-micros"): ((4, 2), spark_type.TIME),
    ("long", "timestamp-nanos"): ((4, 3), spark_type.Atomic("timestamp_ltz(9)")),
    ("long", "local-timestamp-nanos"): ((4, 3), spark_type.Atomic("timestamp_ntz(9)")),
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
            raise SchemactlError(
                f"Spark {self.spark} is older than the supported releases", fix="write 4.0 or newer"
            )
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
                converted = Converted(_decimal(schema) or spark_type.BINARY, nullable=False)
            case avro.Enum():
                converted = Converted(spark_type.Atomic("string", schema.symbols), nullable=False)
            case avro.Array():
                items = self.convert(schema.items, depths)
                converted = items and Converted(
                    spark_type.SparkArray(items.type, items.nullable), nullable=False
                )
            case avro.Map():
                values = self.convert(schema.values, depths)
                converted = values and Converted(
                    spark_type.SparkMap(values.type, values.nullable), nullable=False
                )
            case avro.Union():
                converted = self._union(schema, depths)
            case avro.Record():
                converted = self._record(schema, depths)
        return converted

    def _primitive(self, schema: avro.Primitive) -> SparkType:
        if schema.type == "bytes":
            return _decimal(schema) or spark_type.BINARY
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
        if made is not None and not (made == spark_type.TIME and found.name.startswith("time(")):
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
            spark_type.SparkField(field.name, c.type, c.nullable, field.doc or avro.doc_of(field.schema))
            for field, c in fields
            if c is not None
        )
        return Converted(spark_type.Struct(kept, schema.name), nullable=False)

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
            return Converted(spark_type.LONG, nullable=False)
        if len(branches) == 2 and types == {"float", "double"}:
            return Converted(spark_type.DOUBLE, nullable=False)
        members = []
        names: set[str] = set()
        for number, branch in enumerate(branches):
            converted = self.convert(branch, depths)
            if converted is not None:
                name = f"member{number}"
                if self._options.stable_union_identifiers:
                    name = self._member(branch, names)
                members.append(spark_type.SparkField(name, converted.type, nullable=True))
        return Converted(spark_type.Struct(tuple(members)), nullable=False)

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
    return UnsupportedBySpark(
        "OutOfMemoryError", f"written out, it has more than {MAX_PLACES:,} columns and parts"
    )


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
    return spark_type.Decimal(precision, scale)


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
