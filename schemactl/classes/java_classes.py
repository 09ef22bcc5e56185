"""Read the definition of a Java class: Pulsar's own client derives it, in a separate JVM."""

from __future__ import annotations

import os
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from schemactl.core.errors import SchemactlError
from schemactl.core.schema import SchemaInfo, SchemaType

_PROGRAM: Final = Path(__file__).with_name("SchemaOfClass.java")

_MARK: Final = "schemactl:"
"""The start of the program's lines; the class may print others."""

_TIMEOUT_S: Final = 120

_MAX_REASON_LINES: Final = 3

_NEEDS_CLIENT: Final = (
    "add the jars of pulsar-client with --jar, such as --jar 'lib/*', if the application's jar does not include them"
)


def extract_java_class(
    name: str, jars: Sequence[str], type_: SchemaType, *, always_allow_null: bool = True, jsr310: bool = False
) -> SchemaInfo:
    """Return the schema that Pulsar's Java client registers for a class.

    Args:
        name: the full name of the class; an inner class has a `$` before its own name.
        jars: the class path: jars, folders, or `lib/*` for all jars of a folder.
        type_: AVRO, JSON or PROTOBUF_NATIVE.
        always_allow_null: SchemaDefinition's option, which is true in Java by default.
        jsr310: whether to enable the conversion of java.time classes.

    Raises:
        SchemactlError: if there is no JDK, or the class cannot be loaded or has no such schema.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if not java or not Path(java).is_file():
        raise SchemactlError(
            "extract --jar needs Java, which was not found", fix="install a JDK 17 or newer, or set JAVA_HOME"
        )
    flags = [str(always_allow_null).lower(), str(jsr310).lower()]
    class_path = os.pathsep.join(jars)
    command = [java, "-XX:TieredStopAtLevel=1", "-cp", class_path, str(_PROGRAM), name, type_.name, *flags]
    try:
        process = subprocess.run(command, capture_output=True, check=False, timeout=_TIMEOUT_S)  # noqa: S603  the user's own classes
    except subprocess.TimeoutExpired:
        raise SchemactlError(f"{name}: Java did not end within {_TIMEOUT_S} s") from None
    output, error_text = process.stdout.decode(errors="replace"), process.stderr.decode(errors="replace")
    if not process.returncode:
        lines = [line.removeprefix(_MARK) for line in output.splitlines() if line.startswith(_MARK)]
        schema, *texts = (b64decode(line) for line in lines)
        decoded_texts = [text.decode() for text in texts]
        return SchemaInfo(type_, schema, dict(zip(decoded_texts[::2], decoded_texts[1::2], strict=True)))
    if "package org.apache.pulsar" in error_text and "does not exist" in error_text:
        raise SchemactlError(f"{name}: the class path has no Pulsar client", fix=_NEEDS_CLIENT)
    if "jdk.compiler not found" in error_text or "Could not find or load main class" in error_text:
        raise SchemactlError(
            "extract --jar needs a JDK, and this Java has no compiler", fix="set JAVA_HOME to a JDK 17 or newer"
        )
    if "ClassNotFoundException" in error_text and name in error_text:
        fix = f"give the full name, with `$` before an inner class, and its jar: --jar app.jar --class {name}"
        raise SchemactlError(f"{name}: no jar has this class", fix=fix)
    causes = [
        line.strip() for line in error_text.splitlines() if line.startswith(("Exception in thread", "Caused by:"))
    ]
    reasons = causes or [line for line in error_text.splitlines() if line.strip()][:_MAX_REASON_LINES]
    raise SchemactlError(
        f"{name}: Pulsar's client has no schema of this type for it: {'; '.join(reasons[-_MAX_REASON_LINES:])}"
    )
