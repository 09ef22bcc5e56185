"""Java's own Avro, and Spark's view of it, to compare with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

Json = Any


@contextmanager
def _own_errors() -> Iterator[None]:
    """Java's errors come as py4j has them.

    Once a process has a Spark, PySpark looks for each in Spark's Java, where its number is that of another object.
    """
    gateway: Any = import_module("py4j.java_gateway")
    protocol: Any = import_module("py4j.protocol")
    kept = gateway.get_return_value
    gateway.get_return_value = protocol.get_return_value
    try:
        yield
    finally:
        gateway.get_return_value = kept


class JavaAvro:
    """The Avro that PySpark brings, 1.12 as in Pulsar 4.2 and newer, in a Java of its own."""

    def __init__(self, jvm: Any, thrown: type[Exception]) -> None:
        self._thrown: Any = thrown
        self._jvm = jvm
        self._avro = jvm.org.apache.avro

    def parse(self, definition: Json) -> Any:
        return self._avro.Schema.Parser().setValidateDefaults(False).parse(json.dumps(definition))

    @_own_errors()
    def answer(self, *, reader: Any, writer: Any) -> tuple[str, str]:
        parsing = self._avro.io.parsing
        try:
            errors = parsing.Symbol.hasErrors(parsing.ResolvingGrammarGenerator().generate(writer, reader))
        except self._thrown as thrown:
            return "error", str(thrown.java_exception.getClass().getSimpleName())
        return ("incompatible" if errors else "ok"), ""

    @_own_errors()
    def reasons(self, *, reader: Any, writer: Any) -> list[tuple[str, str, str]] | None:
        """Rule, location and message of each incompatibility; None: it throws."""
        try:
            pair = self._avro.SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
        except self._thrown:
            return None
        found = pair.getResult().getIncompatibilities()
        return [(each.getType().name(), each.getLocation(), each.getMessage()) for each in found]

    @_own_errors()
    def read_default(self, definition: Json) -> str:
        """Return the text of the value that a reader fills in for the first field of a record, or the exception."""
        field = self.parse(definition).getFields().get(0)
        data = self._avro.generic.GenericData.get()
        try:
            return str(data.toString(data.getDefaultValue(field)))
        except self._thrown as thrown:
            return str(thrown.java_exception.getClass().getSimpleName())

    def refusal(self, *, reader: Any, writer: Any) -> str:
        return str(self._avro.SchemaValidationException(reader, writer).getMessage())

    @_own_errors()
    def struct(
        self, definition: Json, *, depth: int, stable: bool, prefix: str
    ) -> tuple[Json, bool] | tuple[str, str | None]:
        """The type that SchemaConverters of the installed Spark makes, and whether it is nullable; or what it throws, and its condition."""
        converters = self._jvm.org.apache.spark.sql.avro.SchemaConverters
        try:
            found = converters.toSqlType(
                self._avro.Schema.Parser().parse(json.dumps(definition)), stable, prefix, depth
            )
        except self._thrown as thrown:
            error = thrown.java_exception
            names = {method.getName() for method in error.getClass().getMethods()}
            condition = error.getCondition() if "getCondition" in names else None
            return str(error.getClass().getSimpleName()), condition
        return json.loads(found.dataType().json()), found.nullable()

    @_own_errors()
    def decode(self, messages: Iterable[bytes], *, reader: Any, writer: Any) -> list[str]:
        """What Java prints of each message; raises Py4JJavaError where a message of `writer` does not decode with `reader`."""
        decoder = self._avro.generic.GenericDatumReader(writer, reader)
        binary = self._avro.io.DecoderFactory.get().binaryDecoder
        return [str(decoder.read(None, binary(message, None))) for message in messages]


def running() -> Iterator[JavaAvro]:
    """One that lasts until asked for another. Where there is no Java the test is skipped."""
    java_gateway = pytest.importorskip("py4j.java_gateway")
    thrown = pytest.importorskip("py4j.protocol").Py4JJavaError
    pyspark = pytest.importorskip("pyspark")
    from schemactl.spark.session import JavaNotFound, ensure_java

    home = os.environ.get("JAVA_HOME")
    try:
        executable = ensure_java() / "bin" / "java"
    except JavaNotFound as problem:
        pytest.skip(str(problem))
    finally:
        if home is None:
            os.environ.pop("JAVA_HOME", None)
    jars = Path(pyspark.__file__).parent / "jars"
    gateway = java_gateway.JavaGateway.launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=f"{jars}/*",
        java_path=str(executable),
        # Avro 1.12.1 has a faster reader, off in those before it, which cannot fill in [] for an optional array.
        javaopts=["-Dorg.apache.avro.fastread=false"],
        die_on_exit=True,
    )
    yield JavaAvro(gateway.jvm, thrown)
    gateway.shutdown()
