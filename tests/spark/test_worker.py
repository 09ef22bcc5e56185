"""What is made easier for the Python processes of Spark, which run one task after another."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from schemactl.spark.worker import spare_worker


def test_no_task_looks_for_garbage_among_modules(spark: SparkSession) -> None:
    def frozen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_worker()
        for batch in batches:
            yield pa.record_batch({"frozen": [gc.get_freeze_count() > 0] * batch.num_rows})

    rows = spark.range(0, 4, 1, 2).mapInArrow(frozen, "frozen boolean").collect()
    assert [row.frozen for row in rows] == [True] * 4


def test_a_process_that_is_no_worker_looks_for_garbage_as_ever() -> None:
    spare_worker()
    assert gc.get_freeze_count() == 0
