"""The rules about tables that are fed from a topic."""

from __future__ import annotations

from functools import partial
from typing import Final

from schemactl.rules import Rule

_SPARK: Final = (
    "https://github.com/apache/spark/blob/v4.1.1/sql/core/src/main/java/org/apache/spark/sql/execution/datasources/parquet/"
    "ParquetVectorUpdaterFactory.java"
)
_DELTA: Final = "https://docs.delta.io/delta-type-widening/"

_rule = partial(Rule, verdict="tables", severity="note")

RULES: Final = (
    _rule(
        "TABLE_REWRITE",
        severity="warning",
        summary="A column takes a type that the rows already landed cannot be read as.",
        why="A folder of Parquet keeps its old files, and Spark reads them as the new type only where every value fits: "
        "int to bigint, int to double, float to double, to decimals with more digits, date to timestamp_ntz. Anything "
        "else fails when the first old file is met, or its bits are taken for other values without a word: a decimal(9,2) "
        "of 7.00 read as int is 700. A Delta table rejects such rows. The rows of every approved version count: a column that comes "
        "back meets those it was in before, and one that takes a name which another column had before its renaming shows the "
        "values of that in older rows. Looked for where the project has `generate`, whose "
        "columns and Spark release it goes by.",
        example="""
# before: decimal(9,2)
{"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}

# after: decimal(9,4), one with less room before the point
{"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 4}}""",
        fix="Keep the type and add a column of the new type; or land the topic again, or rewrite the old files "
        "with a cast, before new rows come.",
        link=_SPARK,
    ),
    _rule(
        "TABLE_CHANGED",
        summary="Tables fed by the topic get another column, a wider type, or no longer get a column.",
        why="The generated columns follow the schema, and the tables that hold rows of earlier versions follow only if they are "
        "asked to. What was landed stays as it is: a new column is null there, a renamed one has its old name, a widened one "
        "its old type, and Spark reads such files together if it is given the columns, as the generated `view` does. A Delta table "
        "takes the new rows where its schema may evolve. Looked for where the project has `generate`.",
        example="""
# before
{"name": "quantity", "type": "int"}

# after: quantity is widened from int to bigint, and channel is an added column
{"name": "quantity", "type": "long"},
{"name": "channel", "type": ["null", "string"], "default": null}""",
        fix="Read folders of Parquet through the generated `view` or with the StructType of today; let Delta tables evolve as the "
        "finding says.",
        link=_DELTA,
    ),
)
