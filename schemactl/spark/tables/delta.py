"""Delta tables as landing tables, by delta-rs (the package `deltalake`), with the checks that delta-rs does not make.

delta-rs commits its input without a check. So everything that Delta requires of a commit is checked here: the table's features, its columns
and the files. Every commit can be recognized, by its transaction or by a mark in its information; after a failure the log is searched
for it before it is tried again.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import dataset, fs
from pyspark.sql import types as spark

from ...codec.sql_columns import quote_sql_name
from . import evolution
from .evolution import path_of
from .landing_table import (
    Addition,
    Change,
    Conflict,
    DataFile,
    Folder,
    LandingTable,
    Transaction,
    WrongArgument,
    hide_credentials,
    iterate_columns,
    iterate_leaves,
    to_sql_type,
)
from .parquet import SUCCESS

if TYPE_CHECKING:
    import deltalake
    from deltalake.transaction import AddAction

_MARK: Final = "schemactl.commit"
_ROW_FILES: Final = "schemactl.beside"
"""Keys of a commit's information: a unique name, and `Addition.row_files`."""

_MAX_ATTEMPTS: Final = 50
_MAX_PAUSE_S: Final = 0.2

_S3_OPTIONS: Final = {
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "session_token": "session_token",
    "token": "session_token",
    "region": "region",
    "default_region": "region",
    "endpoint": "endpoint_override",
    "endpoint_url": "endpoint_override",
}
"""The arguments of Arrow's S3FileSystem by delta-rs's names, which may have any case and the prefix `aws_`."""

_TYPES: Final = {
    *("string", "binary", "boolean", "byte", "short", "integer", "long", "float", "double", "decimal"),
    *("date", "timestamp", "timestamp_ntz"),
}

_INNER_TYPES: Final = {"element": "elementType", "key": "keyType", "value": "valueType"}
"""The attribute with the inner type of an array or a map, by the name in the path of a column."""

_FEATURES: Final = {
    *("appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed"),
    *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "variantType"),
}
"""Delta's writer features with which delta-rs appends to a table; it rejects others only when it commits."""

_COMPUTED_OR_CHECKED: Final = ("delta.generationExpression", "delta.identity.", "delta.invariants")
"""Prefixes of the metadata of columns whose values Delta computes or checks."""

_NOT_IN_NAMES: Final = set(" ,;{}()\n\t=")
"""SchemaUtils.checkFieldNames of Delta."""


@dataclass(frozen=True, slots=True)
class DeltaTable(LandingTable):
    """A Delta table at a path, which need not exist yet.

    Attributes:
        place: a local path or a URI: file:, s3:, gs:, abfss:.
        storage_options: options of delta-rs, such as AWS_ENDPOINT_URL; it also reads the environment.
        filesystem: the file system with which tasks write the files; by default the file system of `place`, for S3 with the storage options.
    """

    in_place: ClassVar[frozenset[str]] = frozenset({"add"})

    place: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    filesystem: fs.FileSystem | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # Tasks may run in another working folder, and delta-rs does not know file:/folder.
        if "://" not in self.place or self.place.startswith("file:"):
            object.__setattr__(self, "place", Folder.from_location(self.place).path)
            if match := re.search(r"%[0-9A-Fa-f]{2}|\\", self.place):
                raise WrongArgument(
                    f"{self.place} has {match[0]!r} in it, which delta-rs interprets, so it would use another folder: land elsewhere"
                )
        elif urlsplit(self.place).password or urlsplit(self.place).query:
            # The path is in messages, and in the log of the table of the same landing.
            raise WrongArgument(
                f"{hide_credentials(self.place)} was given with credentials: take them out, and give storage_options"
            )

    @property
    def name(self) -> str:
        """The table's path."""
        return self.place

    def get_folder(self) -> Folder:
        """Return the folder where tasks write the files, which is the table's own."""
        url = urlsplit(self.place)
        if "://" not in self.place or not (self.filesystem or self.storage_options):
            return Folder.from_location(self.place)
        if self.filesystem is None and url.scheme not in ("s3", "s3a"):
            raise WrongArgument(
                f"with storage_options the tasks cannot write to {url.scheme}: give the same settings as an Arrow file system, `filesystem`"
            )
        files = self.filesystem
        if files is None:
            options = {name.lower().removeprefix("aws_"): value for name, value in self.storage_options.items()}
            arguments = {_S3_OPTIONS[name]: value for name, value in options.items() if name in _S3_OPTIONS}
            files = fs.S3FileSystem(**arguments)
        return Folder.from_location(url.netloc + url.path, files)

    def read_columns(self) -> spark.StructType | None:
        """Return the table's columns, or None if the table does not exist."""
        table = self._open()
        return _read_columns(table) if table else None

    def read_partition_columns(self) -> tuple[str, ...] | None:
        """Return the table's partition columns, or None if the table does not exist."""
        table = self._open()
        return tuple(table.metadata().partition_columns) if table else None

    def check(self, struct: spark.StructType, changes: Sequence[Change], *, overwrite: bool) -> None:
        """Check that Delta can store such rows, and that delta-rs can commit them and make the changes.

        Raises:
            WrongArgument: if not; the message says what to do, such as the statement of Spark SQL that makes the changes.
        """
        _check_columns(struct)
        folder, table = self.get_folder(), self._open()
        folder.check_writable()
        if table is not None:
            _check_writable(table, self.place, overwrite=overwrite)
            _check_spelling(_read_columns(table), struct)
            if any(change.kind not in self.in_place for change in changes):
                raise WrongArgument(
                    'delta-rs can only add columns. Rewrite the table, with all its rows, by evolve="rewrite" (--evolve '
                    "rewrite), or in Spark, after which this landing goes on: "
                    f"{_make_rewrite(table, self.place, struct, changes)}"
                )
            return
        if folder.get_subfolder(SUCCESS).is_file():
            raise WrongArgument(
                f"{self.place} is a folder of Parquet, whose rows would not be part of the Delta table: land elsewhere, or run "
                f"CONVERT TO DELTA parquet.{quote_sql_name(self.place)} first"
            )
        has_ntz = any(_is_ntz(part) for _, part in iterate_columns(struct))
        has_ntz_outside_maps = any(_is_ntz(part) for _, part in iterate_columns(struct, maps=False))
        if has_ntz and not has_ntz_outside_maps:
            raise WrongArgument(
                f"delta-rs cannot create {self.place} for rows whose only timestamp_ntz is in a map: create the table with Spark first"
            )

    def check_rewrite(self, struct: spark.StructType, changes: Sequence[Change]) -> None:
        """Raise WrongArgument if `rewrite` would fail; the message has the statement that does the same in Spark."""
        table = self._open()
        if table is None:
            return
        from deltalake.exceptions import DeltaError

        _check_writable(table, self.place, overwrite=True)
        self.list_files()
        columns = _read_columns(table)
        changed = _change_columns(columns, struct, changes)
        partitions = set(table.metadata().partition_columns)
        problem = ""
        if any(old.name in partitions and old != new for old, new in zip(columns, changed, strict=True)):
            problem = "a partition column would change"
        try:
            _open_rows(table)
        except DeltaError as error:
            problem = _get_first_line(error)
        if problem:
            raise WrongArgument(
                f"delta-rs cannot rewrite {self.place} ({problem}). Spark does: {_make_rewrite(table, self.place, struct, changes)}"
            )

    def rewrite(self, struct: spark.StructType, changes: Sequence[Change]) -> None:
        """Rename and widen columns of the existing rows, in one commit that replaces all files.

        Raises:
            Conflict: if another writer changed the table meanwhile. Nothing was changed.
        """
        import deltalake
        from deltalake.exceptions import DeltaError

        table = self._open()
        if table is None:
            raise Conflict(f"another writer dropped {self.place}: nothing was changed; land again")
        version = table.version()
        columns = _read_columns(table)
        changed = _change_columns(columns, struct, changes)
        schema = pa.schema(_make_schema(changed).to_arrow())
        rows = _open_rows(table)
        batches = (
            pa.RecordBatch.from_arrays(
                [_change_array(array, column.type) for array, column in zip(batch.columns, schema, strict=True)],
                schema=schema,
            )
            for batch in rows.scanner(columns=columns.names).to_batches()
        )
        info = {_MARK: uuid.uuid4().hex, _ROW_FILES: json.dumps(())}
        try:
            deltalake.write_deltalake(
                table,
                pa.RecordBatchReader.from_batches(schema, batches),
                mode="overwrite",
                schema_mode="overwrite",
                partition_by=table.metadata().partition_columns or None,
                # With a retry, rows that another writer added meanwhile would stay, with the old columns.
                commit_properties=_make_properties(None, info, max_commit_retries=0),
            )
        except DeltaError as error:
            if not self._has_commit(None, info[_MARK], after_version=version):
                raise Conflict(
                    f"another writer changed {self.place} while it was rewritten: nothing was changed; land again "
                    f"({_get_first_line(error)})"
                ) from error

    def list_files(self) -> tuple[Folder, Sequence[str]]:
        """Return the table's current files, as a folder and names in it.

        Raises:
            WrongArgument: if rows are deleted by deletion vectors, which only Spark reads.
        """
        table = self._open()
        if table is not None and table.deletion_vectors().read_all().num_rows:
            name = f"delta.{quote_sql_name(self.place)}"
            raise WrongArgument(f"{self.place} has deletion vectors: type REORG TABLE {name} APPLY (PURGE)")
        return self.get_folder(), _list_files(table) if table else ()

    def read_last_version(self, app: str) -> int | None:
        """Return the version of the application's last commit, or None."""
        table = self._open()
        return table.transaction_version(app) if table else None

    def read_row_files(self, transaction: Transaction) -> Sequence[DataFile]:
        """Return `Addition.row_files` of the transaction's commit, or () if there is no such commit.

        Raises:
            Conflict: if the commit was made, but is no longer in the log.
        """
        table = self._open()
        if table is None or not _is_made(table, transaction):
            return ()
        txn = {"appId": transaction.app, "version": transaction.version}
        commit = next((commit for commit in self._read_log(table.version()) if txn in commit["txn"]), None)
        if commit is None:
            raise Conflict(
                f"{self.place} has the rejected messages of {transaction}, but its log no longer says which rows belong to "
                "them: restore it to a version before them, and land again"
            )
        return [DataFile(*fields) for fields in json.loads(commit["commitInfo"][0][_ROW_FILES])]

    def commit(self, addition: Addition) -> None:
        """Make the addition, in one step for all readers, unless its transaction was made before.

        New columns are a separate commit before it.

        Raises:
            OSError: if a file is missing or has changed since it was written.
            Conflict: if another writer changed the table. Nothing was added.
        """
        from deltalake.exceptions import DeltaError
        from deltalake.transaction import AddAction

        folder = self.get_folder()
        infos = folder.read_infos([file.name for file in addition.files])
        actions = []
        for file, file_info in zip(addition.files, infos, strict=True):
            if not file_info.is_file or file_info.size != file.bytes:
                problem = f"has {file_info.size} bytes" if file_info.is_file else "is not there"
                raise OSError(
                    f"{folder.place(file.name)} {problem}, and was written with {file.bytes}: nothing was added; land again"
                )
            action = AddAction(
                path=file.name,
                size=file.bytes,
                # Delta treats the empty text as null.
                partition_values={column: value or None for column, value in file.partition.items()},
                modification_time=(file_info.mtime_ns or time.time_ns()) // 1_000_000,
                data_change=True,
                stats=file.statistics or json.dumps({"numRecords": file.rows}),
            )
            actions.append(action)
        info = {_MARK: uuid.uuid4().hex, _ROW_FILES: json.dumps(addition.row_files or ())}
        for attempts_left in reversed(range(_MAX_ATTEMPTS)):
            table = self._open()
            version = table.version() if table is not None else -1
            try:
                self._attempt_commit(table, addition, actions, info)
            except Conflict:
                raise
            except Exception as error:
                # Another commit came first, or a step of delta-rs after the commit failed.
                if self._has_commit(addition.transaction, info[_MARK], after_version=version):
                    return
                if not isinstance(error, DeltaError):
                    raise
                if not attempts_left:
                    raise Conflict(
                        f"nothing was added to {self.place} in {_MAX_ATTEMPTS} tries: {_get_first_line(error)}"
                    ) from error
                time.sleep(random.uniform(0, _MAX_PAUSE_S))  # noqa: S311  no secret
            else:
                return

    def _open(self) -> deltalake.DeltaTable | None:
        """Return the current table, or None if it does not exist."""
        try:
            import deltalake
            from deltalake.exceptions import DeltaError, TableNotFoundError
        except ImportError:
            raise WrongArgument(
                'Delta tables need the package deltalake: pip install deltalake (it comes with "pulsar-schemactl[delta]")'
            ) from None
        try:
            return deltalake.DeltaTable(self.place, storage_options=dict(self.storage_options))
        except TableNotFoundError:
            return None
        except DeltaError as error:
            if self.get_folder().is_file():
                raise WrongArgument(f"{self.place} is a file: a Delta table is a folder") from None
            raise WrongArgument(f"{self.place} cannot be read as a Delta table: {_get_first_line(error)}") from None
        except OSError as error:
            raise OSError(f"{self.place}: {_get_first_line(error)}") from None

    def _attempt_commit(
        self, table: deltalake.DeltaTable | None, addition: Addition, actions: list[AddAction], info: Mapping[str, str]
    ) -> None:
        """Make the addition to the given state of the table, or create the table if it is None."""
        import deltalake
        from deltalake.transaction import RemoveAction, create_table_with_add_actions

        if table is None:
            if addition.removes:
                raise Conflict(f"another writer dropped {self.place}: nothing was changed; land again")
            create_table_with_add_actions(
                self.place,
                _make_schema(addition.struct),
                actions,
                mode="error",
                partition_by=list(addition.partition_by),
                storage_options=dict(self.storage_options),
                # With a retry, the second of two writers that create the table would create it again, as the next version.
                commit_properties=_make_properties(addition.transaction, info, max_commit_retries=0),
            )
            return
        if _is_made(table, addition.transaction):
            return

        # Check the table again, which may have changed since the start of the landing.
        try:
            _check_writable(table, self.place, overwrite=addition.overwrite)
            _check_spelling(_read_columns(table), addition.struct)
            needed = evolution.find_changes(_read_columns(table), addition.struct, {})
        except WrongArgument as error:
            raise Conflict(f"another writer changed {self.place} meanwhile: {error}") from None
        partitions = tuple(table.metadata().partition_columns)
        if partitions != addition.partition_by:
            raise Conflict(
                f"{self.place} is partitioned by {', '.join(partitions) or 'nothing'}: land with partitionBy={[*partitions]}"
            )
        allowed_kinds = {change.kind for change in addition.changes} & {"add"}
        if any(change.kind not in allowed_kinds for change in needed):
            raise Conflict(
                f"another writer changed the columns of {self.place} meanwhile: nothing was added; land again"
            )

        # Add the new columns.
        if needed:
            names = {path_of(change.column)[0] for change in needed}
            fields = [field for field in addition.struct if field.name in names]
            if any(_is_ntz(part) for _, part in iterate_columns(fields)):
                # delta-rs does not add the feature for a column in a map, and then cannot read the table.
                ntz = deltalake.TableFeatures.TimestampWithoutTimezone
                table.alter.add_feature(ntz, allow_protocol_versions_increase=True)
            table.alter.add_columns(_make_schema(fields).fields)
            # The next commit is based on the table with its new columns.
            table = deltalake.DeltaTable(self.place, storage_options=dict(self.storage_options))
            if _is_made(table, addition.transaction):
                return

        # Add and remove the files.
        if addition.removes and not set(_list_files(table)).issuperset(addition.removes):
            raise Conflict(f"another writer replaced files of {self.place} meanwhile: nothing was changed; try again")
        now_ms = time.time_ns() // 1_000_000
        removals = [RemoveAction(name, data_change=True, deletion_timestamp=now_ms) for name in addition.removes]
        table.create_write_transaction(
            [*removals, *actions],
            "overwrite" if addition.overwrite else "append",
            table.schema(),
            list(partitions),
            commit_properties=_make_properties(addition.transaction, info),
        )

    def _has_commit(self, transaction: Transaction | None, mark: str, *, after_version: int) -> bool:
        """Return whether a commit was made although delta-rs raised: it also raises for steps after a commit."""
        table = self._open()
        if table is None or transaction is not None:
            return table is not None and _is_made(table, transaction)
        commits = itertools.islice(self._read_log(table.version()), table.version() - after_version)
        return any(info.get(_MARK) == mark for commit in commits for info in commit["commitInfo"])

    def _read_log(self, version: int) -> Iterator[Mapping[str, list[dict[str, Any]]]]:
        """Yield the `commitInfo` and `txn` actions of the version's commit, then of earlier ones as far back as the log has them.

        `history` of delta-rs finds nothing if the path has a `#`.
        """
        log = self.get_folder().get_subfolder("_delta_log")
        for number in range(version, -1, -1):
            try:
                with log.files.open_input_stream(log.place(f"{number:020}.json")) as file:
                    lines = file.read().splitlines()
            except FileNotFoundError:
                return
            actions: dict[str, list[dict[str, Any]]] = {"commitInfo": [], "txn": []}
            for line in lines:
                for kind, action in json.loads(line).items():
                    if kind in actions:
                        actions[kind].append(action)
            yield actions


def _get_first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()


def _read_columns(table: deltalake.DeltaTable) -> spark.StructType:
    return spark.StructType.fromJson(json.loads(table.schema().to_json()))


def _open_rows(table: deltalake.DeltaTable) -> dataset.Dataset:
    """Return the table's rows; raises DeltaError if delta-rs does not support a feature of the table."""
    # Spark before 3.0 wrote times with 96 bits, which exceed the range of nanoseconds in 64 bits.
    return table.to_pyarrow_dataset(parquet_read_options=dataset.ParquetReadOptions(coerce_int96_timestamp_unit="us"))


def _list_files(table: deltalake.DeltaTable) -> list[str]:
    names: list[str] = pa.table(table.get_add_actions())["path"].to_pylist()
    return names


def _is_made(table: deltalake.DeltaTable, transaction: Transaction | None) -> bool:
    return transaction is not None and transaction.is_made(table.transaction_version(transaction.app))


def _is_ntz(column: spark.StructField) -> bool:
    """Return whether the column is a timestamp without time zone, which needs a feature of the table."""
    return isinstance(column.dataType, spark.TimestampNTZType)


def _make_properties(
    transaction: Transaction | None, info: Mapping[str, str], max_commit_retries: int | None = None
) -> deltalake.CommitProperties:
    import deltalake

    ids = [deltalake.Transaction(transaction.app, transaction.version)] if transaction else []
    return deltalake.CommitProperties(dict(info), max_commit_retries, ids)


def _make_schema(columns: Iterable[spark.StructField]) -> deltalake.Schema:
    import deltalake

    return deltalake.Schema.from_json(spark.StructType([*columns]).toNullable().json())


# The checks that delta-rs does not make


def _check_columns(struct: spark.StructType) -> None:
    """Raise WrongArgument if Delta cannot store the columns."""
    paths: dict[str, str] = {}
    for path, column in iterate_columns(struct):
        invalid_characters = _NOT_IN_NAMES.intersection(column.name)
        if invalid_characters:
            raise WrongArgument(
                f"Delta has no column {column.name!r}: a name has no {min(invalid_characters)!r} there; rename it"
            )
        if paths.setdefault(path.casefold(), path) != path:
            raise WrongArgument(
                f"{paths[path.casefold()]} and {path} are one column to Delta, which ignores case: rename one of them"
            )
    for path, data_type in iterate_leaves(struct):
        if data_type.typeName() not in _TYPES:
            raise WrongArgument(
                f"{path} is {data_type.simpleString()}, for which Delta has no type: cast the column, or drop it; one of the topic's "
                "own lands in the format parquet"
            )


def _check_spelling(table: spark.StructType, struct: spark.StructType) -> None:
    """Raise WrongArgument if the table has a column in another case: delta-rs would read null from the files."""
    table_paths = {path.casefold(): path for path, _ in iterate_columns(table)}
    for path, _ in iterate_columns(struct):
        table_path = table_paths.get(path.casefold(), path)
        if table_path != path:
            raise WrongArgument(f"{path} is called {table_path} in the table, and must be in the rows")


def _check_writable(table: deltalake.DeltaTable, place: str, *, overwrite: bool) -> None:
    """Raise WrongArgument if delta-rs would fail to commit, or if a commit would break a promise of the table."""
    settings = table.metadata().configuration
    name = f"delta.{quote_sql_name(place)}"
    partitions = _make_partition_clause(table.metadata().partition_columns)
    copy = f"delta.{quote_sql_name(place + '_copy')} USING delta{partitions} AS SELECT * FROM {name}"  # noqa: S608  for a person to type
    land_elsewhere = f"land in a copy of it: CREATE TABLE {copy}"
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise WrongArgument(
            f"{place} maps its columns to other names in files, which delta-rs does not write: type ALTER TABLE {name} "
            "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none'), by which Spark rewrites it, or "
            f"{land_elsewhere}"
        )
    unknown_features = set(table.protocol().writer_features or ()) - _FEATURES
    if unknown_features:
        raise WrongArgument(
            f"{place} has {', '.join(sorted(unknown_features))}, to which delta-rs does not write: {land_elsewhere}"
        )
    if overwrite and settings.get("delta.appendOnly", "").lower() == "true":
        raise WrongArgument(
            f"{place} is append-only: append to it, or type "
            f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'false')"
        )
    checks = [key.removeprefix("delta.constraints.") for key in settings if key.startswith("delta.constraints.")]
    if checks:
        drop = "; ".join(f"ALTER TABLE {name} DROP CONSTRAINT {quote_sql_name(check)}" for check in checks)
        raise WrongArgument(
            f"{place} checks its rows ({', '.join(checks)}), but landing adds files without these checks: run {drop}"
        )
    for path, column in iterate_columns(_read_columns(table)):
        keys = [key for key in column.metadata or () if key.startswith(_COMPUTED_OR_CHECKED)]
        if keys:
            raise WrongArgument(
                f"{path} of {place} has {keys[0]}, but landing adds files without such checks: {land_elsewhere}"
            )
        if not column.nullable:
            raise WrongArgument(
                f"{path} of {place} is NOT NULL, but landing adds files without this check: run ALTER TABLE {name} "
                f"ALTER COLUMN {path} DROP NOT NULL"
            )


def _make_rewrite(table: deltalake.DeltaTable, place: str, struct: spark.StructType, changes: Sequence[Change]) -> str:
    """Return the statement of Spark SQL that widens and renames columns by rewriting the table.

    Delta has statements that change columns in place, but delta-rs cannot write to a table after them.
    """
    before = _read_columns(table)
    after = _change_columns(before, struct, changes)
    values = [
        (
            f"CAST({quote_sql_name(old.name)} AS {to_sql_type(new.dataType)})"
            if old.dataType != new.dataType
            else quote_sql_name(old.name)
        )
        + (f" AS {quote_sql_name(new.name)}" if old != new else "")
        for old, new in zip(before, after, strict=True)
    ]
    name = f"delta.{quote_sql_name(place)}"
    old_partitions = table.metadata().partition_columns
    new_partitions = [new.name for old, new in zip(before, after, strict=True) if old.name in old_partitions]
    clause, selection = _make_partition_clause(new_partitions), ", ".join(values)
    return f"CREATE OR REPLACE TABLE {name} USING delta{clause} AS SELECT {selection} FROM {name}"  # noqa: S608  for a person to type


def _change_columns(columns: spark.StructType, rows: spark.StructType, changes: Sequence[Change]) -> spark.StructType:
    """Return the columns of a table after the renaming and widening that rows need, in the same order."""
    changed = spark.StructType.fromJson(columns.jsonValue())
    types = {path: part.dataType for path, part in iterate_columns(rows)}
    for change in changes:
        if change.kind != "add":
            _change_column(changed, change, types[".".join(path_of(change.column))])
    return changed


def _change_array(array: pa.Array, new_type: pa.DataType) -> pa.Array:
    """Return the values of a column with the names of fields and the wider types of `new_type`, in the same order."""
    return array.view(_rename_fields(array.type, new_type)).cast(new_type)


def _rename_fields(old_type: pa.DataType, new_type: pa.DataType) -> pa.DataType:
    """Return the old type with the names of the new one, which has the same number of fields at every depth."""
    if not old_type.num_fields:
        return old_type
    fields = [
        new_type.field(index).with_type(_rename_fields(old_type.field(index).type, new_type.field(index).type))
        for index in range(old_type.num_fields)
    ]
    if pa.types.is_struct(old_type):
        return pa.struct(fields)
    if pa.types.is_map(old_type):
        return pa.map_(fields[0].type.field(0), fields[0].type.field(1))
    return pa.list_(fields[0])


def _change_column(struct: Any, change: Change, new_type: spark.DataType) -> None:
    """Rename a column of the struct, at any depth, or widen it to `new_type`."""
    *outer, name = path_of(change.column)
    for segment in outer:
        struct = (
            struct[segment].dataType if isinstance(struct, spark.StructType) else getattr(struct, _INNER_TYPES[segment])
        )
    if change.kind == "rename":
        struct[change.former].name = name
    elif isinstance(struct, spark.StructType):
        struct[name].dataType = new_type
    else:
        setattr(struct, _INNER_TYPES[name], new_type)


def _make_partition_clause(columns: Sequence[str]) -> str:
    return f" PARTITIONED BY ({', '.join(map(quote_sql_name, columns))})" if columns else ""
