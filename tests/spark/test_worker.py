"""What is made easier for the Python processes of Spark, which run one task after another."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from schemactl.spark.dataframes import reduce_worker_overhead


def test_no_task_looks_for_garbage_among_modules(spark: SparkSession) -> None:
    def frozen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_worker_overhead()
        for batch in batches:
            yield pa.record_batch({"frozen": [gc.get_freeze_count() > 0] * batch.num_rows})

    rows = spark.range(0, 4, 1, 2).mapInArrow(frozen, "frozen boolean").collect()
    assert [row.frozen for row in rows] == [True] * 4


def test_the_index_of_spark_s_own_archives_alone_is_not_read_again(spark: SparkSession) -> None:
    def forgotten(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_worker_overhead()
        left = [path for path in sys.path_importer_cache if path.endswith("pyspark.zip")]
        for batch in batches:
            yield pa.record_batch({"forgotten": [not left] * batch.num_rows})

    assert [row.forgotten for row in spark.range(1).mapInArrow(forgotten, "forgotten boolean").collect()] == [True]


def test_pyspark_may_be_installed_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__file__", "/deps/pyspark/__init__.py")
    before = dict(sys.path_importer_cache)
    reduce_worker_overhead()
    assert sys.path_importer_cache == before


def test_a_process_that_is_no_worker_looks_for_garbage_as_ever() -> None:
    before = gc.get_freeze_count()
    reduce_worker_overhead()
    assert gc.get_freeze_count() == before
