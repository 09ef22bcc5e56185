"""Pulsar's Java client as a reader and writer of JSON messages: classes of Avro schemas, and values that Java and Python exchange.

A neutral value is JSON: null, a boolean, a whole number, text, a list, or an object with one key that names the type, such as
`{"double": "1.5"}`, `{"bytes": "00ff"}`, `{"record": {"id": 1}}` (see JsonReaders.java).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import brokers

Json = Any

PROGRAM: Final = Path(__file__).parent / "JsonReaders.java"

_NUMBERS: Final = {"boolean": "boolean", "int": "int", "long": "long", "float": "float", "double": "double"}
_BOXES: Final = {"boolean": "Boolean", "int": "Integer", "long": "Long", "float": "Float", "double": "Double"}
_OTHERS: Final = {"string": "String", "bytes": "byte[]", "fixed": "byte[]", "null": "Object"}
_CLASSES: Final = {
    "java.math.BigDecimal": "BigDecimal",
    "java.math.BigInteger": "BigInteger",
    "java.lang.Character": "Character",
}
_LOGICAL: Final = {
    "date": "LocalDate",
    "time-millis": "LocalTime",
    "time-micros": "LocalTime",
    "timestamp-millis": "Instant",
    "timestamp-micros": "Instant",
    "timestamp-nanos": "Instant",
    "local-timestamp-millis": "LocalDateTime",
    "local-timestamp-micros": "LocalDateTime",
    "local-timestamp-nanos": "LocalDateTime",
    "decimal": "BigDecimal",
    "uuid": "UUID",
}


class JavaClient:
    """A running JsonReaders.java."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, request: Json) -> Json:
        """Return the answer to one request."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        # The client logs to standard output as well.
        line = next(line for line in iter(stdout.readline, "") if line.startswith("{"))
        return json.loads(line)

    def compile(self, source: str) -> None:
        """Compile the class Shapes, whose nested classes `write` and `read` name."""
        answer = self.ask({"compile": source})
        assert not answer, answer

    def write(self, name: str, value: Json) -> str:
        """Return the payload that a producer of a class sends."""
        answer = self.ask({"write": name, "value": value})
        assert "payload" in answer, (name, value, answer)
        return str(answer["payload"])


@contextmanager
def start_client(jars: Path) -> Iterator[JavaClient]:
    """Start the Java client in a folder of jars."""
    command = ["java", "-Xss16m", *brokers.SHORT_LIVED, "-cp", f"{jars}/*", str(PROGRAM)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    )
    with process:
        yield JavaClient(process)
        assert process.stdin is not None
        process.stdin.close()


class JavaClasses:
    """The source of classes for Avro schemas: fields have the types that a Java developer would give them."""

    def __init__(self) -> None:
        self._declarations: list[str] = []

    @property
    def source(self) -> str:
        """The class Shapes with all classes inside."""
        imports = "import java.math.*; import java.time.*; import java.util.*;\n"
        return imports + "public class Shapes {\n" + "\n".join(self._declarations) + "\n}\n"

    def add_record(self, schema: Json) -> str:
        """Add the class of a record, and return its name. References to named types are not supported."""
        name = f"C{len(self._declarations)}"
        self._declarations.append("")
        index = len(self._declarations) - 1
        fields = " ".join(f"public {self.make_type(field['type'])} {field['name']};" for field in schema["fields"])
        self._declarations[index] = f"public static class {name} {{ {fields} }}"
        return name

    def make_type(self, schema: Json, *, boxed: bool = False) -> str:
        """Return the Java type of a schema."""
        if isinstance(schema, list):
            branches = [branch for branch in schema if branch != "null"]
            return self.make_type(branches[0], boxed=True) if len(branches) == 1 else "Object"
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = None if isinstance(schema, str) else schema.get("logicalType")
        if logical in _LOGICAL and (logical, kind) != ("uuid", "fixed"):
            return _LOGICAL[logical]
        java_class = "" if isinstance(schema, str) else schema.get("java-class", "")
        if java_class in _CLASSES:
            return _CLASSES[java_class]
        match kind:
            case "record":
                return self.add_record(schema)
            case "array":
                return f"List<{self.make_type(schema['items'], boxed=True)}>"
            case "map":
                return f"Map<String, {self.make_type(schema['values'], boxed=True)}>"
            case "enum":
                name = f"C{len(self._declarations)}"
                self._declarations.append(f"public enum {name} {{ {', '.join(schema['symbols'])} }}")
                return name
        return (_BOXES if boxed else _NUMBERS).get(kind) or _OTHERS[kind]
