"""What a generated module does with DataFrames. Spark is imported on use: such a module serves without it, too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .codec import Codec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FormerNames = Mapping[str, tuple[str, ...]]
"""What columns were called in older versions, the newest name first, by their paths."""


class Frames:
    """The functions of one topic's module on DataFrames."""

    def __init__(self, codec: Codec, struct: str = "", former_names: FormerNames | None = None) -> None:
        """Take the topic's codec, its StructType as JSON ("": there is none), and what its columns were called."""
        self._codec = codec
        self._struct = struct
        self._former_names = former_names or {}

    def decode(
        self,
        messages: DataFrame,
        *,
        payload: str | Sequence[str] = ("payload", "value"),
        version: str | Sequence[str] | None = ("schema_version", "__schemaVersion"),
        key: str | Sequence[str] | None = ("key", "__key"),
    ) -> DataFrame:
        """Return the messages' values as columns, read as the reader's version; rows that cannot be read say so in `__error`.

        See `spark.decode` for the columns it takes and gives.
        """
        from .spark import decode

        return decode(messages, self._codec, payload=payload, version=version, key=key)

    def encode(self, rows: DataFrame, *, version: int | None = None) -> DataFrame:
        """Return the rows as messages, written as `version`, or as the reader's; what cannot be written says why in `__error`.

        See `spark.encode` for the columns it takes and gives.
        """
        from .spark import encode

        return encode(rows, self._codec, version=version)

    def view(self, spark: SparkSession, path: str, *, name: str | None = None) -> DataFrame:
        """Return the rows landed in the folder `path` by any version of the package, with the columns of this one.

        `name`: of a temporary view to be made of it. See `spark.view`.
        """
        from .spark import view

        return view(spark, self._codec, path, former_names=self._former_names, name=name)

    def struct(self) -> StructType:
        """Return the Spark type of the values, as Spark's own Avro support has it."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(self._struct))
