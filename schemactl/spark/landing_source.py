"""The write-only data source that landing registers with Spark, for batches and streams."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from .landing_journal import Job, abort
from .landing_sink import Landing, TaskStaged
from .worker import reduce_worker_overhead

JOB: Final = "job"
"""The option that names a batch job."""

# What each session knows: Spark warns of a name that is registered again.
_registered: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


class LandingSource(DataSource):
    """A data source that is only written to; each landing has one of its own."""

    landing: ClassVar[Landing]
    registered: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        """As which it is registered."""
        return cls.registered

    def writer(self, schema: Any, overwrite: bool) -> _BatchWriter:  # noqa: ARG002, FBT001  Spark's signature
        """For a batch job."""
        reduce_worker_overhead()
        return _BatchWriter(self.landing, Job(self.options[JOB]))

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: ARG002, FBT001, N802  Spark's signature
        """For a streaming query."""
        reduce_worker_overhead()
        # Its base came with Spark 4.1.
        from .landing_stream import LandingStreamWriter

        return LandingStreamWriter(self.landing)


def register(session: SparkSession, landing: Landing) -> str:
    """Return the name of a data source of the session that lands so; the same landing has the same name."""
    name = f"schemactl-landing-{hashlib.sha256(pickle.dumps(landing)).hexdigest()[:16]}"
    known = _registered.setdefault(session, set())
    if name not in known:
        source = type(LandingSource.__name__, (LandingSource,), {"landing": landing, "registered": name})
        session.dataSource.register(source)
        known.add(name)
    return name


@dataclass
class _BatchWriter(DataSourceArrowWriter):
    landing: Landing
    job: Job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskStaged:
        return self.landing.stage(iterator, self.job)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.landing.commit(self.job, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002  Spark's signature
        abort(self.landing.places, self.job.name)
