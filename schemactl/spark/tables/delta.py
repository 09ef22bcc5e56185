"""Delta tables by delta-rs, with the checks that delta-rs does not make.

So whatever Delta requires of a commit is checked here: the table's features, its columns, the files. Every commit can be recognised,
by its transaction or by a mark in its information; after a failure the log is searched for it before it is tried again.
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
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import types as spark

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
    leaves,
    parts,
    quoted,
    sql_type,
    without_secrets,
)
from .parquet import SUCCESS

if TYPE_CHECKING:
    import deltalake
    from deltalake.transaction import AddAction, RemoveAction


_TYPES: Final = {
    *("string", "binary", "boolean", "byte", "short", "integer", "long", "float", "double", "decimal"),
    *("date", "timestamp", "timestamp_ntz"),
}

# The attribute of an array's or a map's type that has the type of what is inside.
_INNER: Final = {"element": "elementType", "key": "keyType", "value": "valueType"}

# Of Delta's writer features those that delta-rs appends to: others it refuses only when it commits.
_FEATURES: Final = {
    *("appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed"),
    *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "variantType"),
}

# What the metadata of a column say whose values Delta computes or checks.
_MADE: Final = ("delta.generationExpression", "delta.identity.", "delta.invariants")

# SchemaUtils.checkFieldNames of Delta.
_NOT_IN_NAMES: Final = set(" ,;{}()\n\t=")


def check_writable(table: deltalake.DeltaTable, place: str, *, overwrite: bool) -> None:
    """Raise WrongArgument if a commit by delta-rs would be refused, or would break what the table promises."""
    settings = table.metadata().configuration
    name = f"delta.{quoted(place)}"
    by = _partitioned(table.metadata().partition_columns)
    copy = f"delta.{quoted(place + '_copy')} USING delta{by} AS SELECT * FROM {name}"  # noqa: S608  for a person to type
    land_elsewhere = f"land in a copy of it: CREATE TABLE {copy}"
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise WrongArgument(
            f"{place} maps its columns to other names in files, which delta-rs does not write: type ALTER TABLE {name} "
            "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none'), by which Spark writes it anew, or "
            f"{land_elsewhere}"
        )
    unknown = set(table.protocol().writer_features or ()) - _FEATURES
    if unknown:
        raise WrongArgument(
            f"{place} has {', '.join(sorted(unknown))}, to which delta-rs does not write: {land_elsewhere}"
        )
    if overwrite and settings.get("delta.appendOnly", "").lower() == "true":
        raise WrongArgument(
            f"{place} is append-only: append to it, or type "
            f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'false')"
        )
    checks = [key.removeprefix("delta.constraints.") for key in settings if key.startswith("delta.constraints.")]
    if checks:
        drop = "; ".join(f"ALTER TABLE {name} DROP CONSTRAINT {quoted(each)}" for each in checks)
        raise WrongArgument(f"{place} checks its rows ({', '.join(checks)}), and files are added unseen: type {drop}")
    for path, column in parts(table_columns(table)):
        made = [key for key in column.metadata or () if key.startswith(_MADE)]
        if made:
            raise WrongArgument(f"{path} of {place} has {made[0]}, and files are added unseen: {land_elsewhere}")
        if not column.nullable:
            raise WrongArgument(
                f"{path} of {place} is NOT NULL, and files are added unseen: type "
                f"ALTER TABLE {name} ALTER COLUMN {path} DROP NOT NULL"
            )


def rewriting(table: deltalake.DeltaTable, place: str, struct: spark.StructType, changes: Sequence[Change]) -> str:
    """Return the statement that widens and renames columns: with what Delta has for it, delta-rs writes to the table no more."""
    rows = {place: part.dataType for place, part in parts(struct)}
    before, after = table_columns(table), table_columns(table)
    for change in changes:
        if change.kind != "add":
            _alter(after, change, rows[".".join(path_of(change.column))])
    values = [
        (f"CAST({quoted(old.name)} AS {sql_type(new.dataType)})" if old.dataType != new.dataType else quoted(old.name))
        + (f" AS {quoted(new.name)}" if old != new else "")
        for old, new in zip(before, after, strict=True)
    ]
    name = f"delta.{quoted(place)}"
    partitions = table.metadata().partition_columns
    by = [new.name for old, new in zip(before, after, strict=True) if old.name in partitions]
    return f"CREATE OR REPLACE TABLE {name} USING delta{_partitioned(by)} AS SELECT {', '.join(values)} FROM {name}"  # noqa: S608  for a person to type


def table_columns(table: deltalake.DeltaTable) -> spark.StructType:
    """Return the columns of the table."""
    return spark.StructType.fromJson(json.loads(table.schema().to_json()))


def _partitioned(by: Sequence[str]) -> str:
    return f" PARTITIONED BY ({', '.join(map(quoted, by))})" if by else ""


def _alter(struct: Any, change: Change, wide: spark.DataType) -> None:
    """Rename or widen a column of the struct, at any depth; `wide` is what is widened to."""
    *outer, name = path_of(change.column)
    for step in outer:
        struct = struct[step].dataType if isinstance(struct, spark.StructType) else getattr(struct, _INNER[step])
    if change.kind == "rename":
        struct[change.former].name = name
    elif isinstance(struct, spark.StructType):
        struct[name].dataType = wide
    else:
        setattr(struct, _INNER[name], wide)


def is_ntz(column: spark.StructField) -> bool:
    """Whether it is a time without a zone, which is a feature of a table."""
    return isinstance(column.dataType, spark.TimestampNTZType)


def only_in_maps(struct: spark.StructType) -> bool:
    """Whether it has times without a zone, and all of them are in maps."""
    outside = [part for _, part in parts(struct, maps=False)]
    return any(is_ntz(part) for _, part in parts(struct)) and not any(map(is_ntz, outside))


def check_columns(struct: spark.StructType) -> None:
    """Raise WrongArgument if Delta stores no such columns."""
    seen: dict[str, str] = {}
    for place, column in parts(struct):
        odd = _NOT_IN_NAMES.intersection(column.name)
        if odd:
            raise WrongArgument(f"Delta has no column {column.name!r}: a name has no {min(odd)!r} there; rename it")
        if seen.setdefault(place.casefold(), place) != place:
            raise WrongArgument(
                f"{seen[place.casefold()]} and {place} are one column to Delta, which does not look at case: rename one of them"
            )
    for place, kind in leaves(struct):
        if kind.typeName() not in _TYPES:
            raise WrongArgument(
                f"{place} is {kind.simpleString()}, for which Delta has no type: cast the column, or drop it; one of the topic's "
                "own lands in the format parquet"
            )


def check_spelling(table: spark.StructType, struct: spark.StructType) -> None:
    """Raise WrongArgument if the table has a column in another spelling: delta-rs would read null from the files."""
    there = {place.casefold(): place for place, _ in parts(table)}
    for place, _ in parts(struct):
        spelled = there.get(place.casefold(), place)
        if spelled != place:
            raise WrongArgument(f"{place} is called {spelled} in the table, and must be in the rows")


# Delta tables to land in, by delta-rs (the package `deltalake`), which does not validate what it is
# given to commit.


_MARK: Final = "schemactl.commit"
_BESIDE: Final = "schemactl.beside"
"""Keys of a commit's information: a unique name, and `Addition.beside`."""

_TRIES: Final = 50
_PAUSE_S: Final = 0.2

# The arguments of Arrow's S3FileSystem by delta-rs's names, which may be in any case and begin with `aws_`.
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


@dataclass(frozen=True, slots=True)
class DeltaTable(LandingTable):
    """A Delta table that is at a path, or will be.

    Attributes:
        place: a local path or a URI: file:, s3:, gs:, abfss:.
        storage_options: of delta-rs, such as AWS_ENDPOINT_URL; besides them, it reads the environment.
        filesystem: with which tasks write the files; None: the one that `place` names, or, of S3, with the same storage options.
    """

    place: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    filesystem: fs.FileSystem | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # Tasks may run in another working folder, and delta-rs knows no file:/folder.
        if "://" not in self.place or self.place.startswith("file:"):
            object.__setattr__(self, "place", Folder.at(self.place).path)
            if found := re.search(r"%[0-9A-Fa-f]{2}|\\", self.place):
                raise WrongArgument(
                    f"{self.place} has {found[0]!r} in it, which delta-rs takes for something else, and looks in another folder: "
                    "land elsewhere"
                )
        elif urlsplit(self.place).password or urlsplit(self.place).query:
            # Messages, and the log of the table beside, name the place.
            raise WrongArgument(
                f"{without_secrets(self.place)} was given with credentials: take them out, and give storage_options"
            )

    @property
    def name(self) -> str:
        """Return the table's path."""
        return self.place

    def folder(self) -> Folder:
        """Return where tasks write the files: the table's own."""
        place = urlsplit(self.place)
        if "://" not in self.place or not (self.filesystem or self.storage_options):
            return Folder.at(self.place)
        if self.filesystem is None and place.scheme not in ("s3", "s3a"):
            raise WrongArgument(
                f"with storage_options the tasks cannot write to {place.scheme}: give the same as `filesystem`, of Arrow"
            )
        return Folder.at(place.netloc + place.path, self.filesystem or self._s3())

    def columns(self) -> spark.StructType | None:
        """Return the table's columns; None: there is no table."""
        table = self._open()
        return table_columns(table) if table else None

    def partitioned_by(self) -> tuple[str, ...] | None:
        """Return the table's partition columns; None: there is no table."""
        table = self._open()
        return tuple(table.metadata().partition_columns) if table else None

    def check(self, struct: spark.StructType, changes: Sequence[Change], *, overwrite: bool) -> None:
        """Raise WrongArgument if Delta cannot store such rows, or delta-rs not commit them to the table, or not change it so."""
        check_columns(struct)
        folder, table = self.folder(), self._open()
        folder.check_writable()
        if table is not None:
            check_writable(table, self.place, overwrite=overwrite)
            check_spelling(table_columns(table), struct)
            if any(change.kind != "add" for change in changes):
                raise WrongArgument(
                    "delta-rs adds columns and changes none. Spark writes the table anew, with all its rows, after which this "
                    f"landing goes on: {rewriting(table, self.place, struct, changes)}"
                )
            return
        if folder.below(SUCCESS).is_file():
            raise WrongArgument(
                f"{self.place} is a folder of Parquet, whose rows no reader of a Delta table finds: land elsewhere, or type "
                f"CONVERT TO DELTA parquet.{quoted(self.place)} first"
            )
        if only_in_maps(struct):
            raise WrongArgument(
                f"delta-rs cannot make {self.place} of rows with a timestamp_ntz in a map and in no other column: make the table "
                "with Spark first"
            )

    def files(self) -> tuple[Folder, Sequence[str]]:
        """Return the files that the table has now, by their names in a folder.

        Raises:
            WrongArgument: rows of theirs are deleted by vectors, which only Spark reads.
        """
        table = self._open()
        if table is not None and table.deletion_vectors().read_all().num_rows:
            name = f"delta.{quoted(self.place)}"
            raise WrongArgument(f"{self.place} has deletion vectors: type REORG TABLE {name} APPLY (PURGE)")
        return self.folder(), _names(table) if table else ()

    def last(self, app: str) -> int | None:
        """Return the version of the application's last commit; None: there is none."""
        table = self._open()
        return table.transaction_version(app) if table else None

    def beside(self, transaction: Transaction) -> Sequence[DataFile]:
        """Return `Addition.beside` of the commit of that transaction.

        Raises:
            Conflict: the log no longer says, although there was such a commit.
        """
        table = self._open()
        if table is None or not _made(table, transaction):
            return ()
        of_it = {"appId": transaction.app, "version": transaction.version}
        found = next((each for each in self._commits(table.version()) if of_it in each["txn"]), None)
        if found is None:
            raise Conflict(
                f"{self.place} has the rejected messages of {transaction}, but its log no longer says which rows belong to "
                "them: restore it to a version before them, and land again"
            )
        return [DataFile(*each) for each in json.loads(found["commitInfo"][0][_BESIDE])]

    def commit(self, addition: Addition) -> None:
        """Make the addition, in one step for all readers; nothing, if its transaction was made before.

        Columns that are added are a commit of their own, before.
        """
        from deltalake.exceptions import DeltaError

        written_ms = self._written_ms(addition.files)
        info = {_MARK: uuid.uuid4().hex, _BESIDE: json.dumps(addition.beside or ())}
        actions = [_action(file, since) for file, since in zip(addition.files, written_ms, strict=True)]
        for tries_left in reversed(range(_TRIES)):
            table = self._open()
            since = table.version() if table is not None else -1
            try:
                self._attempt(table, addition, actions, info)
            except Conflict:
                raise
            except Exception as error:
                # Another commit came first, or what comes after a commit failed.
                if self._holds(addition.transaction, info[_MARK], since=since):
                    return
                if not isinstance(error, DeltaError):
                    raise
                if not tries_left:
                    raise Conflict(f"nothing was added to {self.place} in {_TRIES} tries: {_line(error)}") from error
                time.sleep(random.uniform(0, _PAUSE_S))  # noqa: S311  no secret
            else:
                return

    def _attempt(
        self, table: deltalake.DeltaTable | None, addition: Addition, actions: list[AddAction], info: Mapping[str, str]
    ) -> None:
        from deltalake.transaction import create_table_with_add_actions

        if table is not None:
            if not _made(table, addition.transaction):
                self._add(table, addition, actions, info)
            return
        if addition.removes:
            raise Conflict(f"another writer dropped {self.place}: nothing was changed; land again")
        create_table_with_add_actions(
            self.place,
            _schema(addition.struct),
            actions,
            mode="error",
            partition_by=list(addition.partition_by),
            storage_options=dict(self.storage_options),
            # Of two that make it at once, the other would be made anew, as the next version.
            commit_properties=_properties(addition.transaction, info, max_commit_retries=0),
        )

    def _s3(self) -> fs.S3FileSystem:
        given = {name.lower().removeprefix("aws_"): value for name, value in self.storage_options.items()}
        return fs.S3FileSystem(**{_S3_OPTIONS[name]: value for name, value in given.items() if name in _S3_OPTIONS})

    def _open(self) -> deltalake.DeltaTable | None:
        """Return the table as it is now; None: there is none."""
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
            if self.folder().is_file():
                raise WrongArgument(f"{self.place} is a file: a Delta table is a folder") from None
            raise WrongArgument(f"{self.place} cannot be read as a Delta table: {_line(error)}") from None
        except OSError as error:
            raise OSError(f"{self.place}: {_line(error)}") from None

    def _written_ms(self, files: Sequence[DataFile]) -> list[int]:
        """Return when each file was written. Raises OSError: one is not there as it was written."""
        folder = self.folder()
        infos = folder.infos([file.name for file in files])
        for file, info in zip(files, infos, strict=True):
            if not info.is_file or info.size != file.bytes:
                there = f"has {info.size} bytes" if info.is_file else "is not there"
                raise OSError(
                    f"{folder.place(file.name)} {there}, and was written with {file.bytes}: nothing was added; land again"
                )
        return [(info.mtime_ns or time.time_ns()) // 1_000_000 for info in infos]

    def _add(
        self, table: deltalake.DeltaTable, addition: Addition, actions: list[AddAction], info: Mapping[str, str]
    ) -> None:
        import deltalake

        try:
            check_writable(table, self.place, overwrite=addition.overwrite)
            check_spelling(table_columns(table), addition.struct)
            needed = evolution.changes(table_columns(table), addition.struct, {})
        except WrongArgument as error:
            raise Conflict(f"another writer changed {self.place} meanwhile: {error}") from None
        allowed = {change.kind for change in addition.changes} & {"add"}
        partitions = tuple(table.metadata().partition_columns)
        if partitions != addition.partition_by:
            raise Conflict(
                f"{self.place} is partitioned by {', '.join(partitions) or 'nothing'}: land with partitionBy={[*partitions]}"
            )
        if any(change.kind not in allowed for change in needed):
            raise Conflict(
                f"another writer changed the columns of {self.place} meanwhile: nothing was added; land again"
            )
        if needed:
            names = {path_of(change.column)[0] for change in needed}
            fields = [field for field in addition.struct if field.name in names]
            if any(is_ntz(part) for _, part in parts(fields)):
                # Which delta-rs forgets for a column in a map, and then cannot read the table.
                ntz = deltalake.TableFeatures.TimestampWithoutTimezone
                table.alter.add_feature(ntz, allow_protocol_versions_increase=True)
            table.alter.add_columns(_schema(fields).fields)
            # What is committed next stands on the table with its new columns.
            table = deltalake.DeltaTable(self.place, storage_options=dict(self.storage_options))
            if _made(table, addition.transaction):
                return
        removed = self._removed(table, addition)
        table.create_write_transaction(
            [*removed, *actions],
            "overwrite" if addition.overwrite else "append",
            table.schema(),
            list(partitions),
            commit_properties=_properties(addition.transaction, info),
        )

    def _removed(self, table: deltalake.DeltaTable, addition: Addition) -> list[RemoveAction]:
        from deltalake.transaction import RemoveAction

        if addition.removes and not set(_names(table)).issuperset(addition.removes):
            raise Conflict(f"another writer replaced files of {self.place} meanwhile: nothing was changed; try again")
        now_ms = time.time_ns() // 1_000_000
        return [RemoveAction(name, data_change=True, deletion_timestamp=now_ms) for name in addition.removes]

    def _holds(self, transaction: Transaction | None, mark: str, *, since: int) -> bool:
        """Whether the commit was made after all: delta-rs raises of what comes after a commit, too."""
        table = self._open()
        if table is None or transaction is not None:
            return table is not None and _made(table, transaction)
        later = itertools.islice(self._commits(table.version()), table.version() - since)
        return any(info.get(_MARK) == mark for each in later for info in each["commitInfo"])

    def _commits(self, version: int) -> Iterator[Mapping[str, list[dict[str, Any]]]]:
        """Yield the actions of the commit of that version by their kinds, and of those before, as far as the log has them.

        What delta-rs has for it (`history`) finds nothing where there is a `#` in the path.
        """
        log = self.folder().below("_delta_log")
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


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()


def _made(table: deltalake.DeltaTable, transaction: Transaction | None) -> bool:
    return transaction is not None and transaction.is_made(table.transaction_version(transaction.app))


def _properties(
    transaction: Transaction | None, info: Mapping[str, str], max_commit_retries: int | None = None
) -> deltalake.CommitProperties:
    import deltalake

    ids = [deltalake.Transaction(transaction.app, transaction.version)] if transaction else []
    return deltalake.CommitProperties(dict(info), max_commit_retries, ids)


def _names(table: deltalake.DeltaTable) -> list[str]:
    names: list[str] = pa.table(table.get_add_actions())["path"].to_pylist()
    return names


def _action(file: DataFile, written_ms: int) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(
        path=file.name,
        size=file.bytes,
        # The empty text is null to Delta.
        partition_values={column: value or None for column, value in file.partition.items()},
        modification_time=written_ms,
        data_change=True,
        stats=file.statistics or json.dumps({"numRecords": file.rows}),
    )


def _schema(columns: Iterable[spark.StructField]) -> deltalake.Schema:
    import deltalake

    return deltalake.Schema.from_json(spark.StructType([*columns]).toNullable().json())
