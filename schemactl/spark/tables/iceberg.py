"""Iceberg tables by pyiceberg.

The files have no field ids. Which of the table's columns one of theirs is says the table's name mapping, which therefore keeps every
name that a column has had. See "Column Projection" in Iceberg's specification.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import types as spark

from .evolution import path_of, statements
from .landing_table import Addition, Change, Conflict, DataFile, Folder, Transaction, WrongArgument, at_once

if TYPE_CHECKING:
    from pyiceberg import manifest
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import CreateTableTransaction, Table
    from pyiceberg.table import Transaction as TableTransaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.name_mapping import MappedField


# Columns, types and files in the metadata of a table


# As Spark's own writer stores them. A time of Iceberg's is none that Spark reads, and it has no intervals.
_TO_ICEBERG: Final[dict[type[spark.DataType], str]] = {
    spark.BooleanType: "boolean",
    spark.IntegerType: "int",
    spark.ByteType: "int",
    spark.ShortType: "int",
    spark.LongType: "long",
    spark.FloatType: "float",
    spark.DoubleType: "double",
    spark.DateType: "date",
    spark.TimestampType: "timestamptz",
    spark.TimestampNTZType: "timestamp",
    spark.StringType: "string",
    spark.BinaryType: "binary",
}
_TO_SPARK: Final = {name: kind for kind, name in reversed(_TO_ICEBERG.items())}


def iceberg_schema(struct: spark.StructType) -> Schema:
    """Return Iceberg's columns for Spark's, null allowed everywhere. Raises WrongArgument: it has no type for one."""
    from pyiceberg.schema import Schema

    return Schema.model_validate(_iceberg_type(struct, "", itertools.count(1)))


def _iceberg_type(kind: spark.DataType, place: str, ids: Iterator[int]) -> Any:
    """Return the type as JSON, null allowed everywhere. Raises WrongArgument: Iceberg does not have it."""

    def inner(part: spark.DataType, name: str) -> Any:
        return _iceberg_type(part, f"{place}.{name}" if place else name, ids)

    match kind:
        case spark.StructType() if kind.fields:
            fields = [(each.name, next(ids), inner(each.dataType, each.name)) for each in kind]
            return {
                "type": "struct",
                "fields": [{"id": id_, "name": name, "required": False, "type": made} for name, id_, made in fields],
            }
        case spark.ArrayType():
            made = inner(kind.elementType, "element")
            return {"type": "list", "element-id": next(ids), "element": made, "element-required": False}
        case spark.MapType():
            pair = {"key": inner(kind.keyType, "key"), "value": inner(kind.valueType, "value")}
            return {"type": "map", "key-id": next(ids), "value-id": next(ids), "value-required": False} | pair
        case spark.DecimalType():
            return f"decimal({kind.precision}, {kind.scale})"
    if type(kind) not in _TO_ICEBERG:
        raise WrongArgument(
            f"{place} is {kind.simpleString()}, for which Iceberg has no type that Spark reads: cast the column, or drop it; one of "
            "the topic's own lands in the format parquet"
        )
    return _TO_ICEBERG[type(kind)]


def _spark_type(kind: Any) -> Any:
    """Return Iceberg's type, as JSON, as Spark has it; void, if no landing writes such a column."""
    match kind:
        case {"type": "struct", "fields": fields}:
            each = [(field["name"], _spark_type(field["type"]), not field["required"]) for field in fields]
            return spark.StructType([spark.StructField(*field) for field in each])
        case {"type": "list", "element": element, "element-required": required}:
            return spark.ArrayType(_spark_type(element), not required)
        case {"type": "map", "key": key, "value": value, "value-required": required}:
            return spark.MapType(_spark_type(key), _spark_type(value), not required)
    if decimal := re.fullmatch(r"decimal\((\d+), ?(\d+)\)", str(kind)):
        return spark.DecimalType(int(decimal[1]), int(decimal[2]))
    return _TO_SPARK.get(str(kind), spark.NullType)()


def spark_struct(schema: Schema) -> spark.StructType:
    """Return Spark's columns for Iceberg's; void is what no landing writes, such as a UUID."""
    struct: spark.StructType = _spark_type(json.loads(schema.model_dump_json()))
    return struct


def types_by_path(schema: Schema) -> dict[str, str]:
    """Return the type of each part, at any depth; of what has parts itself, which of the three it is."""
    kinds = {schema.find_column_name(number): schema.find_type(number) for number in schema.field_ids}
    return {name: str(kind) if kind.is_primitive else type(kind).__name__ for name, kind in kinds.items() if name}


def mapped_id(fields: Iterable[MappedField], path: Sequence[str]) -> int | None:
    """Return the id of the column that the name mapping has by that path; None: it has none."""
    name, *inner = path
    found = next((each for each in fields if name in each.names), None)
    if found is None or not inner:
        return None if found is None else found.field_id
    return mapped_id(found.fields, inner)


def data_file(
    metadata: TableMetadata, partition_by: Sequence[str], uri: str, file: DataFile, footer: pq.FileMetaData
) -> manifest.DataFile:
    """Return what the table says of the file, whose name begins with `uri`.

    pyiceberg's own `add_files` takes the bounds of a column from those row groups that tell them, and the values of partitions
    from bounds: both are wrong where a text is so long that its row group has none.

    Args:
        metadata: of the table.
        partition_by: the columns of its partition fields; "": the field has none any more.
        uri: see above.
        file: what its task says of it.
        footer: what it says itself.
    """
    from pyiceberg import manifest
    from pyiceberg.io import pyarrow as reading
    from pyiceberg.typedef import Record

    ids = reading.parquet_path_to_id_mapping(metadata.schema())
    plan = reading.compute_statistics_plan(metadata.schema(), metadata.properties)
    none = reading.match_metrics_mode("none")
    for path, mode in _without_bounds(footer):
        if plan[ids[path]].mode != none:
            plan[ids[path]] = replace(plan[ids[path]], mode=reading.match_metrics_mode(mode))
    statistics = reading.data_file_statistics_from_parquet_metadata(footer, plan, ids)
    inside = {footer.schema.column(number).path for number in range(footer.num_columns)}
    for name in filter(None, partition_by):
        if name not in inside:
            raise WrongArgument(f"{file.name} has no column {name} inside, and readers of Iceberg find it there")
    kinds = {each.name: str(each.field_type) for each in metadata.schema().columns}
    return manifest.DataFile.from_args(
        content=manifest.DataFileContent.DATA,
        file_path=f"{uri}/{file.name}",
        file_format=manifest.FileFormat.PARQUET,
        partition=Record(*(_value(kinds[name], file.partition[name]) if name else None for name in partition_by)),
        file_size_in_bytes=file.bytes,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _without_bounds(footer: pq.FileMetaData) -> Iterator[tuple[str, str]]:
    """Yield columns of whose values some row group tells no bounds, or such that Python has no value for, and what else it tells."""
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            column = footer.row_group(group).column(number)
            told = column.statistics
            if told is None:
                yield column.path_in_schema, "none"
                continue
            bounded = told.null_count == column.num_values
            with suppress(OverflowError, ValueError):
                bounded = bounded or (told.has_min_max and told.min <= told.max)
            if not bounded:
                yield column.path_in_schema, "counts"


def _value(kind: str, text: str | None) -> Any:
    """Return the value of a partition as Iceberg has it."""
    if text is None:
        return None
    match kind:
        case "boolean":
            return text == "true"
        case "int" | "long":
            return int(text)
        case "date":
            return int(np.datetime64(text, "D").astype(int))
    return text


def footers(folder: Folder, files: Sequence[DataFile]) -> list[pq.FileMetaData]:
    """Return the footer of each file. Raises OSError: one is not there as it was written."""

    def footer(file: DataFile) -> pq.FileMetaData:
        path = folder.place(file.name)
        try:
            with folder.files.open_input_file(path) as opened:
                size, found = opened.size(), pq.read_metadata(opened)
        except (OSError, pa.ArrowInvalid) as error:
            raise OSError(f"{path} is not there as it was written ({error}): nothing was added; land again") from None
        if (size, found.num_rows) != (file.bytes, file.rows):
            raise OSError(
                f"{path} has {size} bytes and {found.num_rows} rows, and was written with {file.bytes} and {file.rows}: nothing "
                "was added; land again"
            )
        return found

    return at_once(footer, files)


# Iceberg tables to land in: files, and the changes of columns that they need, are one commit, which
# pyiceberg makes.


_TRANSACTION: Final = "schemactl.txn."
_BESIDE: Final = "schemactl.beside."
"""What the properties of a table are called that say the version of an application's last commit, and what it has beside."""

_NAME_MAPPING: Final = "schema.name-mapping.default"

# Of those that commit at the same time one gets on, so each does before long.
_TRIES: Final = 100
_LONGEST_PAUSE_S: Final = 1.0

_SECRET: Final = re.compile("secret|token|credential|password|key|sas|user|auth", re.IGNORECASE)


class _TableLocation(NamedTuple):
    """Where files are written: the folder, what is before their names in the table, and where a new table is to be."""

    folder: Folder
    uri: str
    location: str | None


class _Taken(Conflict):
    """The catalog had no such table, and does not create it either: another writer has, or there is a view of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the catalog has no table {name} and creates none: maybe there is a view of that name; land in another table"
        )


@dataclass
class IcebergTable:
    """A table of an Iceberg catalog, or one that will be.

    Attributes:
        name: with its namespace: shop.orders.
        catalog: what pyiceberg's configuration calls it, or its properties as pyiceberg spells them; `name` is one of them.
    """

    name: str
    catalog: str | Mapping[str, str] = field(repr=False)
    partitions_inside: ClassVar[bool] = True
    # A catalog may propose another location each time it is asked for that of a new table.
    _place: _TableLocation | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise WrongArgument if no table can be called so."""
        if not re.fullmatch(r"[^.]+(\.[^.]+)+", self.name):
            raise WrongArgument(
                f"{self.name or 'an empty name'} is no table of Iceberg's: give its namespace, too, such as shop.orders"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Leave the connection out."""
        return {name: value for name, value in self.__dict__.items() if name != "_catalog"}

    def folder(self) -> Folder:
        """Return where tasks write the files, in the file system that the properties of the catalog and of the table tell."""
        self._place = self._placed()
        return self._place.folder

    def stored(self, struct: spark.StructType) -> spark.StructType:
        """Return the columns as Iceberg has them: whole numbers have 32 bits or 64, and null is allowed everywhere."""
        return spark_struct(iceberg_schema(struct))

    def columns(self) -> spark.StructType | None:
        """Return the table's columns; None: there is no table. What no landing writes, such as a UUID, is void."""
        table = self._open()
        return None if table is None else spark_struct(table.schema())

    def partitioned_by(self) -> tuple[str, ...] | None:
        """Return the table's partition columns; None: there is no table."""
        table = self._open()
        return None if table is None else tuple(filter(None, self._partition_columns(table.metadata)))

    def check(
        self,
        struct: spark.StructType,
        changes: Sequence[Change],
        *,
        overwrite: bool,  # noqa: ARG002  any table can be
    ) -> None:
        """Raise WrongArgument if Iceberg cannot store such rows, or pyiceberg not commit them to the table, or not change it so."""
        table, is_there = self._found_or_new(struct)
        if not is_there:
            return
        statements(changes, self.name)
        self._require_fit(self._evolved(table, struct, changes).table_metadata, struct)

    def files(self) -> tuple[Folder, Sequence[str]]:
        """Return the files that the table has now, by their names in a folder.

        Raises:
            WrongArgument: rows of theirs are deleted, or they are elsewhere.
        """
        place, table = self._placed(), self._open()
        found = [] if table is None else [*table.scan().plan_files()]
        names = [task.file.file_path.removeprefix(f"{place.uri}/") for task in found]
        if any(task.delete_files for task in found) or any("://" in name for name in names):
            raise WrongArgument(
                f"{self.name} has deletions, or files elsewhere than in {place.uri}: write it anew with Spark, by INSERT OVERWRITE"
            )
        return place.folder, names

    def last(self, app: str) -> int | None:
        """Return the version of the application's last commit; None: there is none."""
        return _last(self._open(), app)

    def beside(self, transaction: Transaction) -> Sequence[DataFile] | None:
        """Return `Addition.beside` of the commit of that transaction, () if there is no such commit; None: it was forgotten."""
        table = self._open()
        version, files = _beside(table, transaction.app)
        if version == transaction.version:
            return [DataFile(*each) for each in files]
        return None if _is_made(table, transaction, set()) else ()

    def forget(self, transaction: Transaction) -> None:
        """Drop what `beside` says of the transaction: its rows are committed, too."""
        for _ in _attempts():
            table = self._open()
            if table is None or _beside(table, transaction.app)[0] != transaction.version:
                return
            if self._commit(table.transaction().remove_properties(_BESIDE + transaction.app)):
                return

    def discard(self) -> None:
        """Leave what is in no commit to `remove_orphan_files`."""

    def commit(self, addition: Addition) -> None:
        """Make the addition, in one step for all readers; nothing, if its transaction was made before.

        Each attempt looks at the table as it is, and is made on that or not at all: when pyiceberg itself repeats a commit, it does
        not look whether another writer has made the same meanwhile.
        """
        place = self._place or self._placed()
        written = footers(place.folder, addition.files)
        snapshots: set[int] = set()
        for _ in _attempts():
            table = self._open()
            if _is_made(table, addition.transaction, snapshots):
                return
            try:
                made = self._transaction(table, place, addition, written)
            except _Taken:
                continue
            except WrongArgument as error:
                raise Conflict(
                    f"{self.name} was changed while the files were written, and nothing was added: {error}"
                ) from None
            snapshots.add(made.table_metadata.current_snapshot_id or 0)
            if self._commit(made):
                return
            if table is None and self._open() is None:
                raise _Taken(self.name)
        raise Conflict(
            f"others committed to {self.name} at each of {_TRIES} attempts, and nothing was added: land again"
        )

    def _placed(self) -> _TableLocation:
        with self._reached():
            # A new table's credentials are nowhere else.
            table, is_there = self._found_or_new(spark.StructType().add("x", "string"))
            location = None if is_there else table.location()
            from pyiceberg.io.pyarrow import PyArrowFileIO

            uri = table.location_provider().data_path
            properties = {**self._catalog.properties, **table.io.properties}
            scheme, host, path = PyArrowFileIO.parse_location(uri, properties)
            files = PyArrowFileIO(properties).fs_by_scheme(scheme, host)
        # For pyiceberg's own local one workers would need the library.
        files = fs.LocalFileSystem() if isinstance(files, fs.LocalFileSystem) else files
        return _TableLocation(Folder(files, path), uri, location)

    @cached_property
    def _catalog(self) -> Catalog:
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError:
            raise WrongArgument(
                'Iceberg tables need the package pyiceberg: pip install pyiceberg (it comes with "pulsar-schemactl[iceberg]")'
            ) from None
        return load_catalog(self.catalog) if isinstance(self.catalog, str) else load_catalog(**self.catalog)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Raise a WrongArgument for what the catalog refuses inside, in one line and without the secrets of its properties."""
        try:
            yield
        except (WrongArgument, Conflict):
            raise
        except Exception as error:  # noqa: BLE001  whatever a catalog raises
            known = {} if isinstance(self.catalog, str) else dict(self.catalog)
            if "_catalog" in self.__dict__:
                known |= self._catalog.properties
            text = " ".join(str(error).split()) or type(error).__name__
            for name, value in known.items():
                if value and _SECRET.search(name):
                    text = text.replace(str(value), "***")
            text = re.sub(r"(?<=://)\S*@", "***@", text)
            kind = OSError if isinstance(error, OSError) else WrongArgument
            raise kind(f"Iceberg's catalog, of which {self.name} is to be a table: {text}") from None

    def _open(self) -> Table | None:
        """Return the table as it is now; None: there is none."""
        with self._reached():
            catalog = self._catalog
            from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchTableError

            try:
                return catalog.load_table(self.name)
            except NoSuchIcebergTableError:
                raise WrongArgument(f"{self.name} is no Iceberg table: land in another one") from None
            except NoSuchTableError:
                return None

    def _found_or_new(self, struct: spark.StructType) -> tuple[Table, bool]:
        """Return the table and True; else what a new one of those columns would be, and False."""
        table = self._open()
        if table is None:
            try:
                return self._new(struct, ())._table, False  # noqa: SLF001  what is staged is nowhere else
            except _Taken:
                # Another writer was faster.
                table = self._open()
                if table is None:
                    raise
        return table, True

    def _commit(self, made: TableTransaction) -> bool:
        """Commit; return whether that is certain."""
        from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, TableAlreadyExistsError

        snapshot = made.table_metadata.current_snapshot_id
        with self._reached():
            try:
                made.commit_transaction()
            except (CommitFailedException, CommitStateUnknownException, TableAlreadyExistsError):
                return False
            except Exception:
                # The answer may be lost, and the commit not.
                if snapshot is None or not _is_made(self._open(), None, {snapshot}):
                    raise
        return True

    def _transaction(
        self, table: Table | None, place: _TableLocation, addition: Addition, footers: Sequence[pq.FileMetaData]
    ) -> TableTransaction:
        """Return the addition as a transaction that can be made on the table as it is."""
        from pyiceberg.expressions import AlwaysTrue

        made: TableTransaction
        if table is None:
            made = self._new(addition.struct, addition.partition_by, place.location)
        else:
            made = self._evolved(table, addition.struct, addition.changes)
        metadata = made.table_metadata
        self._require_fit(metadata, addition.struct)
        by = self._partition_columns(metadata)
        if addition.files and [*filter(None, by)] != [*addition.partition_by]:
            raise WrongArgument(
                f"it is partitioned by {', '.join(filter(None, by)) or 'nothing'}: land with partitionBy={[*filter(None, by)]}"
            )
        summary = {}
        if addition.transaction is not None:
            app, version = addition.transaction
            summary = {_TRANSACTION + app: str(version)}
            made.set_properties(summary)
            if addition.beside is not None:
                made.set_properties({_BESIDE + app: json.dumps([version, addition.beside])})
            elif table is not None and _BESIDE + app in table.properties:
                made.remove_properties(_BESIDE + app)
        if addition.overwrite and made.table_metadata.current_snapshot_id is not None:
            with made.update_snapshot(summary).delete() as gone:
                gone.delete_by_predicate(AlwaysTrue())
        # Also without files: only a snapshot fails where another one came first, and a property does not.
        snapshot = made.update_snapshot(summary)
        with snapshot.overwrite() if addition.removes else snapshot.fast_append() as added:
            for gone_file in _found(table, place, addition.removes):
                added.delete_data_file(gone_file)
            for file, footer in zip(addition.files, footers, strict=True):
                added.append_data_file(data_file(metadata, by, place.uri, file, footer))
        return made

    def _new(
        self, struct: spark.StructType, partition_by: Sequence[str], location: str | None = None
    ) -> CreateTableTransaction:
        from pyiceberg.exceptions import NoSuchNamespaceError, TableAlreadyExistsError
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.transforms import IdentityTransform

        schema = iceberg_schema(struct)
        spec = PartitionSpec(
            *(
                PartitionField(schema.find_field(name).field_id, number, IdentityTransform(), name)
                for number, name in enumerate(partition_by, 1000)
            )
        )
        properties = {"format-version": "2"}
        with self._reached():
            try:
                made = self._catalog.create_table_transaction(
                    self.name, schema, partition_spec=spec, properties=properties
                )
                if location and made.table_metadata.location != location:
                    # Some take none that they have not proposed themselves.
                    made = self._catalog.create_table_transaction(
                        self.name, schema, location, partition_spec=spec, properties=properties
                    )
            except TableAlreadyExistsError:
                # REST catalogs say so before the commit.
                raise _Taken(self.name) from None
            except NoSuchNamespaceError:
                namespace = self.name.rpartition(".")[0]
                raise WrongArgument(
                    f"the catalog has no namespace {namespace} for {self.name}: type CREATE NAMESPACE {namespace} in Spark SQL, or "
                    f'create_namespace("{namespace}") in pyiceberg'
                ) from None
        made.set_properties({_NAME_MAPPING: made.table_metadata.schema().name_mapping.model_dump_json()})
        return made

    def _evolved(self, table: Table, struct: spark.StructType, changes: Sequence[Change]) -> TableTransaction:
        """Return a transaction that makes those changes of the table that it does not have yet."""
        from pyiceberg.exceptions import ValidationError
        from pyiceberg.table.update import AssertCurrentSchemaId, AssertDefaultSpecId

        metadata = table.metadata
        if metadata.format_version > 2:
            raise WrongArgument(
                f"{self.name} is of Iceberg's format version {metadata.format_version}, and pyiceberg writes version 2: land in "
                "another table, and copy from there"
            )
        self._partition_columns(metadata)
        # In memory only: a stale commit fails.
        metadata.properties["commit.retry.num-retries"] = "0"
        made = table.transaction()
        # pyiceberg itself adds files of columns and partitions that the table does not have any more.
        schema = {"type": "assert-current-schema-id", "current-schema-id": metadata.current_schema_id}
        spec = {"type": "assert-default-spec-id", "default-spec-id": metadata.default_spec_id}
        asserted = AssertCurrentSchemaId.model_validate(schema), AssertDefaultSpecId.model_validate(spec)
        made._stage((), asserted)  # noqa: SLF001  only changes of its own are asserted else
        rows, there = iceberg_schema(struct), types_by_path(metadata.schema())
        left = [each for each in changes if each.kind == "widen" or ".".join(path_of(each.column)) not in there]
        if _NAME_MAPPING in metadata.properties:
            self._require_unused(metadata, left)
        else:
            made.set_properties({_NAME_MAPPING: metadata.schema().name_mapping.model_dump_json()})
        try:
            for *outer, name, former in (
                (*path_of(each.column), each.former) for each in left if each.kind == "rename"
            ):
                with made.update_schema() as update:
                    update.rename_column((*outer, former), name)
            with made.update_schema() as update:
                for each in left:
                    path = path_of(each.column)
                    if each.kind == "add":
                        update.add_column(path, rows.find_type(".".join(path)))
                    elif each.kind == "widen":
                        update.update_column(path, rows.find_type(".".join(path)))
        except (ValueError, ValidationError) as error:
            raise WrongArgument(
                f"the columns of {self.name} cannot be changed for these rows ({error}): land in another table"
            ) from None
        return made

    def _require_unused(self, metadata: TableMetadata, changes: Sequence[Change]) -> None:
        """Raise WrongArgument if files have values by the name that a column is to have from now on."""
        names = metadata.name_mapping() or ()
        for each in changes:
            path = path_of(each.column)
            known = mapped_id(names, path)
            # A column may get a former name back.
            if known and each.kind != "widen" and known != mapped_id(names, (*path[:-1], each.former)):
                catalog = self.catalog if isinstance(self.catalog, str) else self.catalog.get("name", "CATALOG")
                alter = "; ".join(statements([each], f"{catalog}.{self.name}"))
                raise WrongArgument(
                    f"{each.column} was the name of another column of {self.name}, whose values would come back: type in Spark SQL "
                    f"CALL {catalog}.system.rewrite_data_files(table => '{self.name}', options => map('rewrite-all', 'true')); {alter}"
                )

    def _require_fit(self, metadata: TableMetadata, struct: spark.StructType) -> None:
        """Raise WrongArgument if readers would not find each of the rows' columns in the table, as what it is."""
        there, names = types_by_path(metadata.schema()), metadata.name_mapping() or ()
        spelled = {name.casefold(): name for name in there}
        for name, kind in types_by_path(iceberg_schema(struct)).items():
            found = spelled.get(name.casefold())
            if found is None or there.get(name) != kind:
                has = f"has {found} as {there[found]}" if found else "does not have it"
                raise WrongArgument(
                    f"the rows have {name} as {kind}, and {self.name} {has}: land with the columns that it has, or change them"
                )
            if mapped_id(names, name.split(".")) != metadata.schema().find_field(name).field_id:
                raise WrongArgument(
                    f"{self.name} has {name}, and its name mapping does not, by which readers find columns in files: add it to the "
                    f"table's property {_NAME_MAPPING}"
                )

    def _partition_columns(self, metadata: TableMetadata) -> list[str]:
        """Return the column of each partition field; "": it is one no more. Raises WrongArgument: it is made of a column."""
        from pyiceberg.transforms import IdentityTransform, VoidTransform

        columns = {each.field_id: each.name for each in metadata.schema().columns}
        found = []
        for each in metadata.spec().fields:
            if isinstance(each.transform, VoidTransform):
                found.append("")
            elif isinstance(each.transform, IdentityTransform) and each.source_id in columns:
                found.append(columns[each.source_id])
            else:
                raise WrongArgument(
                    f"{self.name} is partitioned by {each.name} ({each.transform}), and a landing has partitions of whole columns "
                    f"only: type ALTER TABLE {self.name} DROP PARTITION FIELD {each.name} in Spark SQL, or land in another table "
                    "and copy from there"
                )
        return found


def _attempts() -> Iterator[None]:
    """Yield before each attempt, with pauses between them."""
    for number in range(_TRIES):
        yield
        time.sleep(random.uniform(0, min(_LONGEST_PAUSE_S, 0.02 * 2**number)))  # noqa: S311  no secret


def _found(table: Table | None, place: _TableLocation, names: Sequence[str]) -> list[manifest.DataFile]:
    """Return what the table says of the files. Raises WrongArgument: it does not have one of them any more."""
    if not names:
        return []
    there = {} if table is None else {task.file.file_path: task.file for task in table.scan().plan_files()}
    found = [there[path] for name in names if (path := f"{place.uri}/{name}") in there]
    if len(found) < len(names):
        raise WrongArgument("files of it were replaced; try again")
    return found


def _last(table: Table | None, app: str) -> int | None:
    version = None if table is None else table.properties.get(_TRANSACTION + app)
    return None if version is None else int(version)


def _beside(table: Table | None, app: str) -> tuple[int | None, list[list[Any]]]:
    """Return the version that what is beside belongs to, and the files."""
    text = None if table is None else table.properties.get(_BESIDE + app)
    version, files = json.loads(text) if text else (None, [])
    return version, files


def _is_made(table: Table | None, transaction: Transaction | None, snapshots: set[int]) -> bool:
    if table and any(table.metadata.snapshot_by_id(number) for number in snapshots):
        return True
    return transaction is not None and transaction.is_made(_last(table, transaction.app))
