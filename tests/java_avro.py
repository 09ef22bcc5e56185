"""Java's own Avro, and Spark's view of it, to compare with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import brokers
import pytest

Json = Any


@contextmanager
def _own_errors() -> Iterator[None]:
    """Raise Java's errors as py4j makes them.

    Once a process has a Spark, PySpark looks for each in Spark's Java, where its id belongs to another object.
    """
    gateway: Any = import_module("py4j.java_gateway")
    protocol: Any = import_module("py4j.protocol")
    original_function = gateway.get_return_value
    gateway.get_return_value = protocol.get_return_value
    try:
        yield
    finally:
        gateway.get_return_value = original_function


class JavaAvro:
    """The Avro of PySpark, 1.12 as in Pulsar 4.2 and newer, in a separate JVM."""

    def __init__(self, jvm: Any, thrown: type[Exception]) -> None:
        self._thrown: Any = thrown
        self._jvm = jvm
        self._avro = jvm.org.apache.avro

    def parse(self, definition: Json) -> Any:
        return self._avro.Schema.Parser().setValidateDefaults(False).parse(json.dumps(definition))

    @_own_errors()
    def resolve_pair(self, *, reader: Any, writer: Any) -> tuple[str, str]:
        parsing = self._avro.io.parsing
        try:
            errors = parsing.Symbol.hasErrors(parsing.ResolvingGrammarGenerator().generate(writer, reader))
        except self._thrown as thrown:
            return "error", str(thrown.java_exception.getClass().getSimpleName())
        return ("incompatible" if errors else "ok"), ""

    @_own_errors()
    def list_reasons(self, *, reader: Any, writer: Any) -> list[tuple[str, str, str]] | None:
        """Return the rule, location and message of each incompatibility, or None if Java throws."""
        try:
            pair = self._avro.SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
        except self._thrown:
            return None
        incompatibilities = pair.getResult().getIncompatibilities()
        return [
            (incompatibility.getType().name(), incompatibility.getLocation(), incompatibility.getMessage())
            for incompatibility in incompatibilities
        ]

    @_own_errors()
    def read_default(self, definition: Json) -> str:
        """Return the text of the value that a reader fills in for the first field of a record, or the exception."""
        field = self.parse(definition).getFields().get(0)
        data = self._avro.generic.GenericData.get()
        try:
            return str(data.toString(data.getDefaultValue(field)))
        except self._thrown as thrown:
            return str(thrown.java_exception.getClass().getSimpleName())

    def read_refusal(self, *, reader: Any, writer: Any) -> str:
        return str(self._avro.SchemaValidationException(reader, writer).getMessage())

    @_own_errors()
    def convert_to_struct(
        self, definition: Json, *, depth: int, stable: bool, prefix: str
    ) -> tuple[Json, bool] | tuple[str, str | None]:
        """Return the type by the installed Spark's SchemaConverters and whether it is nullable, or the exception and its condition."""
        converters = self._jvm.org.apache.spark.sql.avro.SchemaConverters
        try:
            incompatibilities = converters.toSqlType(
                self._avro.Schema.Parser().parse(json.dumps(definition)), stable, prefix, depth
            )
        except self._thrown as thrown:
            error = thrown.java_exception
            names = {method.getName() for method in error.getClass().getMethods()}
            condition = error.getCondition() if "getCondition" in names else None
            return str(error.getClass().getSimpleName()), condition
        return json.loads(incompatibilities.dataType().json()), incompatibilities.nullable()

    @_own_errors()
    def decode(self, messages: Iterable[bytes], *, reader: Any, writer: Any) -> list[str]:
        """Return Java's text of each message. Raise Py4JJavaError if a message of `writer` does not decode with `reader`."""
        decoder = self._avro.generic.GenericDatumReader(writer, reader)
        binary = self._avro.io.DecoderFactory.get().binaryDecoder
        return [str(decoder.read(None, binary(message, None))) for message in messages]


def start_java() -> Iterator[JavaAvro]:
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
        javaopts=[*brokers.SHORT_LIVED, "-Dorg.apache.avro.fastread=false"],
        die_on_exit=True,
    )
    yield JavaAvro(gateway.jvm, thrown)
    gateway.shutdown()
