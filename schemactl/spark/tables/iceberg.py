"""Iceberg tables as landing tables, by pyiceberg.

The files have no field ids. Readers find columns in them by the table's name mapping, which therefore keeps every name that a column
has had (section "Column Projection" of Iceberg's specification).
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

from .evolution import make_statements, path_of
from .landing_table import (
    Addition,
    Change,
    Conflict,
    DataFile,
    Folder,
    LandingTable,
    Transaction,
    WrongArgument,
    run_in_threads,
)

if TYPE_CHECKING:
    from pyiceberg import manifest
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import CreateTableTransaction, Table
    from pyiceberg.table import Transaction as TableTransaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.name_mapping import MappedField

_TRANSACTION: Final = "schemactl.txn."
_ROW_FILES: Final = "schemactl.beside."
"""Prefixes of a table's properties: the version of an application's last commit, and `Addition.row_files` of it with its version."""

_NAME_MAPPING: Final = "schema.name-mapping.default"

# One of several writers that commit at the same time succeeds, so every writer succeeds before long.
_MAX_ATTEMPTS: Final = 100
_MAX_PAUSE_S: Final = 1.0

_SECRET: Final = re.compile("secret|token|credential|password|key|sas|user|auth", re.IGNORECASE)

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
"""The types with which Spark's own writer stores its types. Iceberg has no intervals, and Spark does not read Iceberg's times."""

_TO_SPARK: Final = {name: data_type for data_type, name in reversed(_TO_ICEBERG.items())}


class _TableLocation(NamedTuple):
    """The location of files: the folder, the URI before their names in the table, and the location of a new table."""

    folder: Folder
    uri: str
    location: str | None


class _NameTaken(Conflict):
    """The catalog did not have the table, and does not create it: another writer did, or the name is the name of a view."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the catalog has no table {name} and cannot create it; a view may have this name: land in another table"
        )


@dataclass
class IcebergTable(LandingTable):
    """A table of an Iceberg catalog, which need not exist yet.

    Attributes:
        full_name: the name with its namespace: shop.orders.
        catalog: the catalog's name in pyiceberg's configuration, or its properties in pyiceberg's spelling, including `name`.
    """

    partitions_inside: ClassVar[bool] = True

    full_name: str
    catalog: str | Mapping[str, str] = field(repr=False)
    # Kept, since a catalog may propose another location for a new table each time.
    _place: _TableLocation | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise WrongArgument if the name lacks a namespace or is malformed."""
        if not re.fullmatch(r"[^.]+(\.[^.]+)+", self.full_name):
            raise WrongArgument(
                f"{self.full_name or 'an empty name'} is not a table of Iceberg: give its namespace as well, such as shop.orders"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the connection."""
        return {name: value for name, value in self.__dict__.items() if name != "_catalog"}

    @property
    def name(self) -> str:
        """The name with its namespace."""
        return self.full_name

    def get_folder(self) -> Folder:
        """Return the folder where tasks write the files, in the file system of the properties of the catalog and the table."""
        self._place = self._locate()
        return self._place.folder

    def to_stored_columns(self, struct: spark.StructType) -> spark.StructType:
        """Return the columns as Iceberg stores them: integers have 32 or 64 bits, and null is allowed everywhere."""
        return _to_struct(_to_schema(struct))

    def read_columns(self) -> spark.StructType | None:
        """Return the table's columns, or None if the table does not exist; types that no landing writes, such as UUID, are void."""
        table = self._open()
        return None if table is None else _to_struct(table.schema())

    def read_partition_columns(self) -> tuple[str, ...] | None:
        """Return the table's partition columns, or None if the table does not exist."""
        table = self._open()
        return None if table is None else tuple(filter(None, self._partition_columns(table.metadata)))

    def check(
        self,
        struct: spark.StructType,
        changes: Sequence[Change],
        *,
        overwrite: bool,  # noqa: ARG002  every table can be overwritten
    ) -> None:
        """Check that Iceberg can store such rows, and that pyiceberg can commit them and make the changes.

        Raises:
            WrongArgument: if not; the message says what to do.
        """
        table, exists = self._open_or_stage(struct)
        if not exists:
            return
        make_statements(changes, self.name)
        self._require_fit(self._stage_changes(table, struct, changes).table_metadata, struct)

    def list_files(self) -> tuple[Folder, Sequence[str]]:
        """Return the table's current files, as a folder and names in it.

        Raises:
            WrongArgument: if some of their rows are deleted, or files are in another folder.
        """
        place, table = self._locate(), self._open()
        tasks = [] if table is None else [*table.scan().plan_files()]
        names = [task.file.file_path.removeprefix(f"{place.uri}/") for task in tasks]
        if any(task.delete_files for task in tasks) or any("://" in name for name in names):
            raise WrongArgument(
                f"{self.name} has deletions, or files elsewhere than in {place.uri}: rewrite it with Spark, by INSERT OVERWRITE"
            )
        return place.folder, names

    def read_last_version(self, app: str) -> int | None:
        """Return the version of the application's last commit, or None."""
        return _get_last_version(self._open(), app)

    def read_row_files(self, transaction: Transaction) -> Sequence[DataFile] | None:
        """Return `Addition.row_files` of the transaction's commit, () if there is no such commit, or None if it was cleared."""
        table = self._open()
        version, files = _read_row_files(table, transaction.app)
        if version == transaction.version:
            return [DataFile(*fields) for fields in files]
        return None if _is_made(table, transaction, set()) else ()

    def clear_row_files(self, transaction: Transaction) -> None:
        """Clear the transaction's `row_files`, once its rows are also committed."""
        for _ in _iterate_attempts():
            table = self._open()
            if table is None or _read_row_files(table, transaction.app)[0] != transaction.version:
                return
            if self._commit(table.transaction().remove_properties(_ROW_FILES + transaction.app)):
                return

    def commit(self, addition: Addition) -> None:
        """Make the addition, in one step for all readers, unless its transaction was made before.

        Each attempt reads the table and commits to that state or fails: when pyiceberg itself repeats a commit, it does not check
        whether another writer made the same commit meanwhile.

        Raises:
            OSError: if a file is missing or has changed since it was written.
            Conflict: if another writer changed the table. Nothing was added.
        """
        place = self._place or self._locate()
        footers = _read_footers(place.folder, addition.files)
        snapshots: set[int] = set()
        for _ in _iterate_attempts():
            table = self._open()
            if _is_made(table, addition.transaction, snapshots):
                return
            try:
                staged = self._stage_addition(table, place, addition, footers)
            except _NameTaken:
                continue
            except WrongArgument as error:
                raise Conflict(
                    f"{self.name} was changed while the files were written, and nothing was added: {error}"
                ) from None
            snapshots.add(staged.table_metadata.current_snapshot_id or 0)
            if self._commit(staged):
                return
            if table is None and self._open() is None:
                raise _NameTaken(self.name)
        raise Conflict(
            f"others committed to {self.name} at each of {_MAX_ATTEMPTS} attempts, and nothing was added: land again"
        )

    def _locate(self) -> _TableLocation:
        with self._explain_errors():
            # The credentials of a new table are only in the staged one.
            table, exists = self._open_or_stage(spark.StructType().add("x", "string"))
            location = None if exists else table.location()
            from pyiceberg.io.pyarrow import PyArrowFileIO

            uri = table.location_provider().data_path
            properties = {**self._catalog.properties, **table.io.properties}
            scheme, host, path = PyArrowFileIO.parse_location(uri, properties)
            files = PyArrowFileIO(properties).fs_by_scheme(scheme, host)
        # Workers would need pyiceberg for its own local file system.
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
    def _explain_errors(self) -> Iterator[None]:
        """Turn an error of the catalog into a WrongArgument or OSError of one line, without the secrets of its properties."""
        try:
            yield
        except (WrongArgument, Conflict):
            raise
        except Exception as error:  # noqa: BLE001  catalogs raise any exception
            properties = {} if isinstance(self.catalog, str) else dict(self.catalog)
            if "_catalog" in self.__dict__:
                properties |= self._catalog.properties
            text = " ".join(str(error).split()) or type(error).__name__
            for name, value in properties.items():
                if value and _SECRET.search(name):
                    text = text.replace(str(value), "***")
            text = re.sub(r"(?<=://)\S*@", "***@", text)
            error_type = OSError if isinstance(error, OSError) else WrongArgument
            raise error_type(f"Iceberg's catalog, of which {self.name} is to be a table: {text}") from None

    def _open(self) -> Table | None:
        """Return the current table, or None if it does not exist."""
        with self._explain_errors():
            catalog = self._catalog
            from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchTableError

            try:
                return catalog.load_table(self.name)
            except NoSuchIcebergTableError:
                raise WrongArgument(f"{self.name} is not an Iceberg table: land in another table") from None
            except NoSuchTableError:
                return None

    def _open_or_stage(self, struct: spark.StructType) -> tuple[Table, bool]:
        """Return the table and True, or a staged table with these columns and False if it does not exist."""
        table = self._open()
        if table is None:
            try:
                return self._stage_new(struct, ())._table, False  # noqa: SLF001  no public access to the staged table
            except _NameTaken:
                # Another writer was faster.
                table = self._open()
                if table is None:
                    raise
        return table, True

    def _commit(self, staged: TableTransaction) -> bool:
        """Commit, and return whether the commit was certainly made."""
        from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, TableAlreadyExistsError

        snapshot = staged.table_metadata.current_snapshot_id
        with self._explain_errors():
            try:
                staged.commit_transaction()
            except (CommitFailedException, CommitStateUnknownException, TableAlreadyExistsError):
                return False
            except Exception:
                # The response may be lost although the commit was made.
                if snapshot is None or not _is_made(self._open(), None, {snapshot}):
                    raise
        return True

    def _stage_addition(
        self, table: Table | None, place: _TableLocation, addition: Addition, footers: Sequence[pq.FileMetaData]
    ) -> TableTransaction:
        """Return pyiceberg's transaction of the addition, based on the given state of the table."""
        from pyiceberg.expressions import AlwaysTrue

        # Create the table, or change its columns.
        staged: TableTransaction
        if table is None:
            staged = self._stage_new(addition.struct, addition.partition_by, place.location)
        else:
            staged = self._stage_changes(table, addition.struct, addition.changes)
        metadata = staged.table_metadata
        self._require_fit(metadata, addition.struct)
        partition_fields = self._partition_columns(metadata)
        partition_by = [*filter(None, partition_fields)]
        if addition.files and partition_by != [*addition.partition_by]:
            raise WrongArgument(
                f"it is partitioned by {', '.join(partition_by) or 'nothing'}: land with partitionBy={partition_by}"
            )

        # Record the transaction.
        summary = {}
        if addition.transaction is not None:
            app, version = addition.transaction
            summary = {_TRANSACTION + app: str(version)}
            staged.set_properties(summary)
            if addition.row_files is not None:
                staged.set_properties({_ROW_FILES + app: json.dumps([version, addition.row_files])})
            elif table is not None and _ROW_FILES + app in table.properties:
                staged.remove_properties(_ROW_FILES + app)

        # Remove and add files.
        files_by_uri = {}
        if addition.removes and table is not None:
            files_by_uri = {task.file.file_path: task.file for task in table.scan().plan_files()}
        removed_uris = [f"{place.uri}/{name}" for name in addition.removes]
        if not files_by_uri.keys() >= set(removed_uris):
            raise WrongArgument("files of it were replaced; try again")
        if addition.overwrite and staged.table_metadata.current_snapshot_id is not None:
            with staged.update_snapshot(summary).delete() as deletion:
                deletion.delete_by_predicate(AlwaysTrue())
        # A snapshot is made even without files: it fails if another snapshot came first, while a change of properties does not.
        snapshot = staged.update_snapshot(summary)
        with snapshot.overwrite() if addition.removes else snapshot.fast_append() as update:
            for uri in removed_uris:
                update.delete_data_file(files_by_uri[uri])
            for file, footer in zip(addition.files, footers, strict=True):
                update.append_data_file(_make_data_file(metadata, partition_fields, place.uri, file, footer))
        return staged

    def _stage_new(
        self, struct: spark.StructType, partition_by: Sequence[str], location: str | None = None
    ) -> CreateTableTransaction:
        from pyiceberg.exceptions import NoSuchNamespaceError, TableAlreadyExistsError
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.transforms import IdentityTransform

        schema = _to_schema(struct)
        spec = PartitionSpec(
            *(
                PartitionField(schema.find_field(name).field_id, number, IdentityTransform(), name)
                for number, name in enumerate(partition_by, 1000)
            )
        )
        properties = {"format-version": "2"}
        with self._explain_errors():
            try:
                staged = self._catalog.create_table_transaction(
                    self.name, schema, partition_spec=spec, properties=properties
                )
                if location and staged.table_metadata.location != location:
                    # Only if necessary, since some catalogs accept no location except their own proposal.
                    staged = self._catalog.create_table_transaction(
                        self.name, schema, location, partition_spec=spec, properties=properties
                    )
            except TableAlreadyExistsError:
                # REST catalogs raise this before the commit.
                raise _NameTaken(self.name) from None
            except NoSuchNamespaceError:
                namespace = self.name.rpartition(".")[0]
                raise WrongArgument(
                    f"the catalog has no namespace {namespace} for {self.name}: type CREATE NAMESPACE {namespace} in Spark SQL, or "
                    f'create_namespace("{namespace}") in pyiceberg'
                ) from None
        staged.set_properties({_NAME_MAPPING: staged.table_metadata.schema().name_mapping.model_dump_json()})
        return staged

    def _stage_changes(self, table: Table, struct: spark.StructType, changes: Sequence[Change]) -> TableTransaction:
        """Return a transaction that makes the changes which the table does not have yet."""
        from pyiceberg.exceptions import ValidationError
        from pyiceberg.table.update import AssertCurrentSchemaId, AssertDefaultSpecId

        metadata = table.metadata
        if metadata.format_version > 2:
            raise WrongArgument(
                f"{self.name} is of Iceberg's format version {metadata.format_version}, and pyiceberg writes version 2: land in "
                "another table, and copy from there"
            )
        self._partition_columns(metadata)
        # Set in memory only, so that a stale commit fails.
        metadata.properties["commit.retry.num-retries"] = "0"
        staged = table.transaction()
        # Without these assertions, pyiceberg adds files with columns and partitions that the table no longer has.
        schema = {"type": "assert-current-schema-id", "current-schema-id": metadata.current_schema_id}
        spec = {"type": "assert-default-spec-id", "default-spec-id": metadata.default_spec_id}
        assertions = AssertCurrentSchemaId.model_validate(schema), AssertDefaultSpecId.model_validate(spec)
        staged._stage((), assertions)  # noqa: SLF001  pyiceberg asserts only changes of the transaction
        row_schema, table_types = _to_schema(struct), _list_types(metadata.schema())
        pending = [
            change
            for change in changes
            if change.kind == "widen" or ".".join(path_of(change.column)) not in table_types
        ]
        if _NAME_MAPPING in metadata.properties:
            self._require_unused(metadata, pending)
        else:
            staged.set_properties({_NAME_MAPPING: metadata.schema().name_mapping.model_dump_json()})
        try:
            for change in pending:
                if change.kind == "rename":
                    *outer, name = path_of(change.column)
                    with staged.update_schema() as update:
                        update.rename_column((*outer, change.former), name)
            with staged.update_schema() as update:
                for change in pending:
                    path = path_of(change.column)
                    if change.kind == "add":
                        update.add_column(path, row_schema.find_type(".".join(path)))
                    elif change.kind == "widen":
                        update.update_column(path, row_schema.find_type(".".join(path)))
        except (ValueError, ValidationError) as error:
            raise WrongArgument(
                f"the columns of {self.name} cannot be changed for these rows ({error}): land in another table"
            ) from None
        return staged

    def _require_unused(self, metadata: TableMetadata, changes: Sequence[Change]) -> None:
        """Raise WrongArgument if files have other values under the new name of a column."""
        mapping = metadata.name_mapping() or ()
        for change in changes:
            path = path_of(change.column)
            mapped_id = _get_mapped_id(mapping, path)
            # A column may get back its own former name.
            is_own_name = mapped_id == _get_mapped_id(mapping, (*path[:-1], change.former))
            if mapped_id and change.kind != "widen" and not is_own_name:
                catalog = self.catalog if isinstance(self.catalog, str) else self.catalog.get("name", "CATALOG")
                alter = "; ".join(make_statements([change], f"{catalog}.{self.name}"))
                raise WrongArgument(
                    f"{change.column} was the name of another column of {self.name}, whose values would come back: type in Spark SQL "
                    f"CALL {catalog}.system.rewrite_data_files(table => '{self.name}', options => map('rewrite-all', 'true')); {alter}"
                )

    def _require_fit(self, metadata: TableMetadata, struct: spark.StructType) -> None:
        """Raise WrongArgument if readers of the table would not find each column of the rows, with its type."""
        table_types, mapping = _list_types(metadata.schema()), metadata.name_mapping() or ()
        table_names = {name.casefold(): name for name in table_types}
        for name, row_type in _list_types(_to_schema(struct)).items():
            table_name = table_names.get(name.casefold())
            if table_name is None or table_types.get(name) != row_type:
                difference = f"has {table_name} as {table_types[table_name]}" if table_name else "does not have it"
                raise WrongArgument(
                    f"the rows have {name} as {row_type}, and {self.name} {difference}: land with the columns that it has, or change "
                    "them"
                )
            if _get_mapped_id(mapping, name.split(".")) != metadata.schema().find_field(name).field_id:
                raise WrongArgument(
                    f"{self.name} has the column {name}, but its name mapping, by which readers find columns in "
                    "files, does not: add it to the "
                    f"table's property {_NAME_MAPPING}"
                )

    def _partition_columns(self, metadata: TableMetadata) -> list[str]:
        """Return the column of each partition field, or "" for a field that was dropped.

        Raises:
            WrongArgument: if a field has another transform than the identity.
        """
        from pyiceberg.transforms import IdentityTransform, VoidTransform

        names_by_id = {column.field_id: column.name for column in metadata.schema().columns}
        columns = []
        for partition_field in metadata.spec().fields:
            if isinstance(partition_field.transform, VoidTransform):
                columns.append("")
            elif isinstance(partition_field.transform, IdentityTransform) and partition_field.source_id in names_by_id:
                columns.append(names_by_id[partition_field.source_id])
            else:
                raise WrongArgument(
                    f"{self.name} is partitioned by {partition_field.name} ({partition_field.transform}), and a "
                    "landing has partitions of whole columns "
                    f"only: type ALTER TABLE {self.name} DROP PARTITION FIELD {partition_field.name} in Spark SQL, or land in another table "
                    "and copy from there"
                )
        return columns


def _iterate_attempts() -> Iterator[None]:
    """Yield before each attempt, with pauses of growing length between attempts."""
    for number in range(_MAX_ATTEMPTS):
        yield
        time.sleep(random.uniform(0, min(_MAX_PAUSE_S, 0.02 * 2**number)))  # noqa: S311  no secret


def _get_last_version(table: Table | None, app: str) -> int | None:
    version = None if table is None else table.properties.get(_TRANSACTION + app)
    return None if version is None else int(version)


def _read_row_files(table: Table | None, app: str) -> tuple[int | None, list[list[Any]]]:
    """Return the version whose `Addition.row_files` the table has, or None, and the files in it."""
    text = None if table is None else table.properties.get(_ROW_FILES + app)
    version, files = json.loads(text) if text else (None, [])
    return version, files


def _is_made(table: Table | None, transaction: Transaction | None, snapshots: set[int]) -> bool:
    if table and any(table.metadata.snapshot_by_id(snapshot) for snapshot in snapshots):
        return True
    return transaction is not None and transaction.is_made(_get_last_version(table, transaction.app))


# Columns, types and files in the metadata of a table


def _to_schema(struct: spark.StructType) -> Schema:
    """Return Iceberg's schema for Spark's columns, nullable everywhere; raises WrongArgument if Iceberg lacks a type."""
    from pyiceberg.schema import Schema

    return Schema.model_validate(_to_iceberg(struct, "", itertools.count(1)))


def _to_iceberg(data_type: spark.DataType, path: str, ids: Iterator[int]) -> Any:
    """Return Iceberg's type as JSON, nullable everywhere; `path` is the column, for errors, `ids` are unused field ids."""

    def convert_part(part: spark.DataType, name: str) -> Any:
        return _to_iceberg(part, f"{path}.{name}" if path else name, ids)

    match data_type:
        case spark.StructType() if data_type.fields:
            return {
                "type": "struct",
                "fields": [
                    {
                        "id": next(ids),
                        "name": field.name,
                        "required": False,
                        "type": convert_part(field.dataType, field.name),
                    }
                    for field in data_type
                ],
            }
        case spark.ArrayType():
            element = convert_part(data_type.elementType, "element")
            return {"type": "list", "element-id": next(ids), "element": element, "element-required": False}
        case spark.MapType():
            pair = {"key": convert_part(data_type.keyType, "key"), "value": convert_part(data_type.valueType, "value")}
            return {"type": "map", "key-id": next(ids), "value-id": next(ids), "value-required": False} | pair
        case spark.DecimalType():
            return f"decimal({data_type.precision}, {data_type.scale})"
    if type(data_type) not in _TO_ICEBERG:
        raise WrongArgument(
            f"{path} is {data_type.simpleString()}, for which Iceberg has no type that Spark reads: cast the column, or drop it; one of "
            "the topic's own lands in the format parquet"
        )
    return _TO_ICEBERG[type(data_type)]


def _to_struct(schema: Schema) -> spark.StructType:
    """Return Spark's columns for Iceberg's; types that no landing writes, such as UUID, are void."""
    struct: spark.StructType = _to_spark(json.loads(schema.model_dump_json()))
    return struct


def _to_spark(iceberg_type: Any) -> Any:
    """Return Spark's type for Iceberg's type, which is JSON."""
    match iceberg_type:
        case {"type": "struct", "fields": fields}:
            return spark.StructType(
                [spark.StructField(field["name"], _to_spark(field["type"]), not field["required"]) for field in fields]
            )
        case {"type": "list", "element": element, "element-required": required}:
            return spark.ArrayType(_to_spark(element), not required)
        case {"type": "map", "key": key, "value": value, "value-required": required}:
            return spark.MapType(_to_spark(key), _to_spark(value), not required)
    if decimal := re.fullmatch(r"decimal\((\d+), ?(\d+)\)", str(iceberg_type)):
        return spark.DecimalType(int(decimal[1]), int(decimal[2]))
    return _TO_SPARK.get(str(iceberg_type), spark.NullType)()


def _list_types(schema: Schema) -> dict[str, str]:
    """Map the path of each column, at any depth, to its type, or to StructType, ListType or MapType if it has parts."""
    types_by_name = {schema.find_column_name(field_id): schema.find_type(field_id) for field_id in schema.field_ids}
    return {
        name: str(field_type) if field_type.is_primitive else type(field_type).__name__
        for name, field_type in types_by_name.items()
        if name
    }


def _get_mapped_id(fields: Iterable[MappedField], path: Sequence[str]) -> int | None:
    """Return the id of the column at this path in the name mapping, or None."""
    name, *inner_path = path
    for mapped_field in fields:
        if name in mapped_field.names:
            return _get_mapped_id(mapped_field.fields, inner_path) if inner_path else mapped_field.field_id
    return None


def _read_footers(folder: Folder, files: Sequence[DataFile]) -> list[pq.FileMetaData]:
    """Return the footer of each file; raises OSError if a file is missing or has changed."""

    def read_footer(file: DataFile) -> pq.FileMetaData:
        path = folder.place(file.name)
        try:
            with folder.files.open_input_file(path) as stream:
                size, footer = stream.size(), pq.read_metadata(stream)
        except (OSError, pa.ArrowInvalid) as error:
            raise OSError(
                f"{path} is missing or has changed since it was written ({error}): nothing was added; land again"
            ) from None
        if (size, footer.num_rows) != (file.bytes, file.rows):
            raise OSError(
                f"{path} has {size} bytes and {footer.num_rows} rows, and was written with {file.bytes} and {file.rows}: nothing "
                "was added; land again"
            )
        return footer

    return run_in_threads(read_footer, files)


def _make_data_file(
    metadata: TableMetadata, partition_fields: Sequence[str], uri: str, file: DataFile, footer: pq.FileMetaData
) -> manifest.DataFile:
    """Return the table's entry of a file.

    `add_files` of pyiceberg takes the bounds of a column from the row groups that have bounds, and the values of partitions from
    bounds. Both are wrong if a text is so long that its row group has no bounds.

    Args:
        metadata: the table's metadata.
        partition_fields: the column of each partition field, or "" for a field that was dropped.
        uri: the URI of the folder.
        file: the file, as its task describes it.
        footer: the file's footer.
    """
    from pyiceberg import manifest
    from pyiceberg.io import pyarrow as io
    from pyiceberg.typedef import Record

    ids = io.parquet_path_to_id_mapping(metadata.schema())
    plan = io.compute_statistics_plan(metadata.schema(), metadata.properties)
    no_metrics = io.match_metrics_mode("none")
    for path, mode in _find_columns_without_bounds(footer):
        if plan[ids[path]].mode != no_metrics:
            plan[ids[path]] = replace(plan[ids[path]], mode=io.match_metrics_mode(mode))
    statistics = io.data_file_statistics_from_parquet_metadata(footer, plan, ids)
    file_columns = {footer.schema.column(index).path for index in range(footer.num_columns)}
    for name in filter(None, partition_fields):
        if name not in file_columns:
            raise WrongArgument(f"{file.name} has no column {name}, which readers of Iceberg expect in the file")
    types_by_name = {column.name: str(column.field_type) for column in metadata.schema().columns}
    values = (
        _parse_partition_value(types_by_name[name], file.partition[name]) if name else None for name in partition_fields
    )
    return manifest.DataFile.from_args(
        content=manifest.DataFileContent.DATA,
        file_path=f"{uri}/{file.name}",
        file_format=manifest.FileFormat.PARQUET,
        partition=Record(*values),
        file_size_in_bytes=file.bytes,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _find_columns_without_bounds(footer: pq.FileMetaData) -> Iterator[tuple[str, str]]:
    """Yield columns without bounds in some row group, or with bounds that Python cannot represent, and their metrics mode."""
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            column = footer.row_group(group).column(index)
            statistics = column.statistics
            if statistics is None:
                yield column.path_in_schema, "none"
                continue
            # A column of nulls needs no bounds.
            has_bounds = statistics.null_count == column.num_values
            with suppress(OverflowError, ValueError):
                has_bounds = has_bounds or (statistics.has_min_max and statistics.min <= statistics.max)
            if not has_bounds:
                yield column.path_in_schema, "counts"


def _parse_partition_value(iceberg_type: str, text: str | None) -> Any:
    """Return Iceberg's value of a partition, given the text in the folder's name."""
    if text is None:
        return None
    match iceberg_type:
        case "boolean":
            return text == "true"
        case "int" | "long":
            return int(text)
        case "date":
            return int(np.datetime64(text, "D").astype(int))
    return text
