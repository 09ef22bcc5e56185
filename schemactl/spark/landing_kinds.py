"""Land the messages of a topic with several kinds of events: a table for each kind, and one for rejected messages.

Each kind has a separate landing (`landing`), and the landings run one after the other. A message is in exactly one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import TYPE_CHECKING, Final, Unpack, cast

from pyspark.errors import AnalysisException

from ..codec import KindsCodec
from ..codec.kinds import KindReplayCodec
from .landing import (
    REJECTED,
    LandingOptions,
    SaveMode,
    check_arguments,
    make_batch_transaction,
    make_landing_tables,
    prepare_landing,
    replay_with,
)
from .landing_sink import Landed
from .tables.landing_table import Format, Transaction, WrongArgument
from .views import FormerNames, view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FormerNamesByKind = Mapping[str, FormerNames]
"""The former names of the columns of each kind."""

_NO_TABLE: Final = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND")
"""Spark's conditions for a folder or table that does not exist or has no rows."""


def name_table(path: str | PathLike[str], kind: str, format: Format) -> str:  # noqa: A002  as in `land`
    """Return the location of the rows of a kind: a folder in `path`, or the Iceberg table `path_kind`."""
    location = fspath(path).rstrip("/")
    return f"{location}_{kind}" if format == "iceberg" else f"{location}/{kind}"


def name_rejected_table(path: str | PathLike[str], format: Format) -> str:  # noqa: A002  as in `land`
    """Return the default location of the rejected messages of all kinds: the folder `_rejected` in `path`, or the table `path_rejected`."""
    location = fspath(path).rstrip("/")
    return f"{location}/{REJECTED}" if format == "parquet" else f"{location}{REJECTED}"


@dataclass
class KindsLanding:
    """The tables of a topic with several kinds of events, and how messages are landed in them; see `land_kinds`."""

    codec: KindsCodec
    path: str | PathLike[str]
    names_by_kind: FormerNamesByKind
    options: LandingOptions

    def list_tables(self) -> Iterator[tuple[str, str, LandingOptions]]:
        """Yield each kind with the location of its rows, and the options of its landing."""
        format_: Format = self.options.get("format", "parquet")
        rejected = self.options.get("rejected") or name_rejected_table(self.path, format_)
        for kind in self.codec.codecs:
            kind_options = {**self.options, "rejected": rejected, "former_names": self.names_by_kind.get(kind, {})}
            yield kind, name_table(self.path, kind, format_), cast("LandingOptions", kind_options)

    def check(self, messages: DataFrame, *, overwrite: bool = False) -> None:
        """Check, before anything is written, that messages with these columns can be landed.

        Raises:
            Exception: like `land`.
        """
        if self.options.get("version", "") is None:
            raise WrongArgument(
                "a message without a schema version does not show its kind: name the column with the versions, or land one kind alone"
            )
        for kind, table_path, table_options in self.list_tables():
            prepare_landing(messages, self.codec.codecs[kind], table_path, table_options, overwrite=overwrite)

    def run(
        self, messages: DataFrame, transaction: Transaction | None, *, overwrite: bool = False
    ) -> dict[str, Landed]:
        """Land the messages, one kind after the other, and return the result for each kind."""
        self.check(messages, overwrite=overwrite)
        result: dict[str, Landed] = {}
        with _cache(messages):
            for kind, table_path, table_options in self.list_tables():
                landing = prepare_landing(
                    messages,
                    self.codec.codecs[kind],
                    table_path,
                    table_options,
                    overwrite=overwrite,
                    is_first=not result,
                )
                result[kind] = landing.run(messages, transaction)
        return result


def land_kinds(
    messages: DataFrame,
    codec: KindsCodec,
    path: str | PathLike[str],
    *,
    names_by_kind: FormerNamesByKind,
    mode: SaveMode = "append",
    txnVersion: int | None = None,  # noqa: N803  the name in Spark's Delta
    **options: Unpack[LandingOptions],
) -> dict[str, Landed]:
    """Write every message as a row to the table of its kind, or as a rejected message to the one table of rejected messages.

    `name_table` and `name_rejected_table` have the locations. The kinds are landed one after the other: if the job fails, the
    tables of some kinds may have their rows. With `txnAppId`, a repeated landing adds only the missing rows.

    Args:
        messages: raw messages; they are cached until all kinds are landed, unless they are cached already.
        codec: the codec of the topic.
        path: the folder of the folders or Delta tables; or the start of the names of Iceberg tables.
        names_by_kind: the former names of the columns of each kind.
        mode: as for `land`. With "error" and "ignore", the rows of one kind count for all.
        txnVersion: as for `land`.
        options: as for `land`.

    Returns:
        The result for each kind. Messages without a kind count for the first one.

    Raises:
        Exception: like `land`.
    """
    transaction = check_arguments(messages, mode, options, txnVersion)
    landing = KindsLanding(codec, path, names_by_kind, options)
    if mode not in ("append", "overwrite"):
        for kind, table_path, table_options in landing.list_tables():
            if make_landing_tables(table_path, table_options)[0].read_partition_columns() is not None:
                if mode == "ignore":
                    return {key: Landed() for key in codec.codecs}
                raise FileExistsError(
                    f"{table_path} has rows of {kind} already: land with mode append or overwrite, or elsewhere"
                )
    return landing.run(messages, transaction, overwrite=mode == "overwrite")


@dataclass
class KindsSink(KindsLanding):
    """A function for `foreachBatch` that lands each batch like `land_kinds`.

    `landed` has the sum of its batches for each kind; it stays empty if Spark calls a copy of the function in another process.
    """

    landed: dict[str, Landed] = field(default_factory=dict)

    def __call__(self, messages: DataFrame, batch: int) -> None:
        """Land a batch; a table that has it already is not changed."""
        transaction = make_batch_transaction(messages.sparkSession, self.options, batch)
        for kind, landed in self.run(messages, transaction).items():
            self.landed[kind] = self.landed.get(kind, Landed()) + landed


def replay_kinds(
    session: SparkSession,
    codec: KindsCodec,
    path: str | PathLike[str],
    *,
    names_by_kind: FormerNamesByKind,
    **options: Unpack[LandingOptions],
) -> dict[str, Landed]:
    """Turn the rejected messages that the codec can read into rows of their kinds, and remove them (see `replay`).

    Returns:
        The result for each kind, whose rejected messages are all that remained after it, of any kind.
    """
    return {
        kind: replay_with(session, KindReplayCodec(codec.codecs, kind), table_path, table_options)
        for kind, table_path, table_options in KindsLanding(codec, path, names_by_kind, options).list_tables()
    }


def view_kinds(
    session: SparkSession,
    codec: KindsCodec,
    path: str,
    *,
    names_by_kind: FormerNamesByKind,
    format: Format,  # noqa: A002  as in `land`
    former: bool,
    name: str | None,
) -> dict[str, DataFrame]:
    """Read the landed rows of each kind (see `view`), without kinds that have no rows yet.

    With `name`, the temporary view of a kind is called `name_kind`. The other arguments and the errors are as for `view`.
    """
    views = {}
    for kind, codec_of_kind in codec.codecs.items():
        # As for `view`, a name without a slash is a table in a catalog.
        is_in_catalog = format != "parquet" and "/" not in path
        try:
            views[kind] = view(
                session,
                codec_of_kind,
                f"{path}_{kind}" if is_in_catalog else name_table(path, kind, format),
                format=format,
                former_names=names_by_kind.get(kind),
                former=former,
                name=None if name is None else f"{name}_{kind}",
            )
        except AnalysisException as error:
            if not (error.getCondition() or "").startswith(_NO_TABLE):
                raise
    return views


@contextmanager
def _cache(messages: DataFrame) -> Iterator[None]:
    """Keep the messages during several jobs, which otherwise would read them again."""
    level = messages.storageLevel
    if level.useMemory or level.useDisk:
        yield
        return
    messages.persist()
    try:
        yield
    finally:
        messages.unpersist()
