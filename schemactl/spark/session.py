"""A Spark session for a command, and its problems told in one line."""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark

from .java import ensure_java

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_LOOK_S: Final = 0.5
"""How often Spark is asked how far it is."""

_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""What a Spark of one machine is told; on a cluster its own configuration stands."""


class SparkProblem(RuntimeError):
    """Spark could not do it; says why in one line."""


def require(release: tuple[int, int], what: str) -> None:
    """Nothing, on that release of PySpark and newer ones.

    Raises:
        SparkProblem: this one is older, and does not have `what`.
    """
    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < release:
        needed = ".".join(map(str, release))
        raise SparkProblem(f"{what} needs PySpark {needed} or newer; this is {pyspark.__version__}")


@contextmanager
def session(master: str, name: str, *, carried: Path) -> Iterator[SparkSession]:
    """A session on `master`, whose workers can decode; it has ended afterwards.

    Workers of one machine are this Python. Those of a cluster get `carried`, a zip with this run-time, and need pyarrow and
    numpy. What Java prints on standard error is shown only if Spark does not start.

    Raises:
        JavaNotFound: there is no Java that Spark runs on.
        SparkProblem: Spark does not start, or a job of the block failed.
    """
    ensure_java()
    from pyspark import SparkConf

    local = master == "local" or master.startswith("local[")
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setMaster(master).setAppName(name)
    conf.setAll([("spark.ui.showConsoleProgress", "false"), ("spark.log.level", "OFF")])
    conf.setAll([*_LOCAL.items()] if local else [])
    with told(), _unlogged():
        with _hushed() as printed:
            try:
                spark = _started(conf)
            except Exception as error:
                raise SparkProblem(f"it does not start: {_cause(printed()) or _first_line(error)}") from error
        try:
            if not local:
                spark.sparkContext.addPyFile(str(carried))
            yield spark
        finally:
            spark.stop()


def _started(conf: SparkConf) -> SparkSession:
    """The session; its Java is started in a thread of its own, so that Ctrl-C ends the waiting and nothing else.

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
    """py4j logs no traceback of an interruption: the end of the session ends its jobs."""
    quiet = logging.NullHandler()
    logging.getLogger().addHandler(quiet)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(quiet)


@contextmanager
def _hushed() -> Iterator[Callable[[], str]]:
    """What is started inside prints on standard error into a file, as long as it lives; called, it gives what is there."""
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
def told() -> Iterator[None]:
    """What Spark raises inside is a SparkProblem, with the cause in one line."""
    from .spark_errors import SPARK_ERRORS

    try:
        yield
    except SPARK_ERRORS as error:
        raise SparkProblem(_first_line(error)) from error


def query_of(spark: SparkSession, checkpoint: str) -> str | None:
    """The id of the streaming query whose checkpoint the folder is; None: there is none yet."""
    from pyspark.errors import AnalysisException

    try:
        (row,) = spark.read.text(f"{checkpoint}/metadata").collect()
    except AnalysisException:
        return None
    found: str = json.loads(row["value"])["id"]
    return found


def _cause(log: str) -> str:
    """What Java died of, in the words of its log."""
    found = re.findall(
        r"^(?:Exception in thread \S+|Caused by:|Error:) (?:[\w.$]+: )?(.+)$", log, re.MULTILINE
    )
    return found[-1] if found else ""


@contextmanager
def watched(spark: SparkSession, progress: Callable[[int, int | None], None]) -> Iterator[None]:
    """While the block waits for Spark, `progress` is told how many tasks of the stages that run are done, and of how many."""
    from py4j.protocol import Py4JError

    ended = threading.Event()

    def watch() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(_LOOK_S):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except (Py4JError, OSError):
                # Java has ended, because of an interruption for one: who waits for it says so.
                return
            running = [stage for stage in stages if stage is not None]
            if running:
                progress(
                    sum(stage.numCompletedTasks for stage in running),
                    sum(stage.numTasks for stage in running),
                )

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _first_line(error: BaseException) -> str:
    """The line of Spark's many that says what happened: of a failed task the exception's own, in Python or in Java."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    frames = [at for at, line in enumerate(lines) if line.startswith('File "')]
    if frames:
        # Behind the last frame of the worker's traceback stands its code, and then the exception.
        behind = itertools.takewhile(
            lambda line: not line.startswith(("at ", "SQLSTATE")), lines[frames[-1] + 1 :]
        )
        named = [line for line in behind if re.match(r"[A-Za-z_][\w.]*: ", line)]
        if named:
            return named[-1].partition(": ")[2]
    if lines[0].startswith("An error occurred while calling "):
        # py4j's own words, and then Java's: the exception, and behind it what caused it.
        causes = re.findall(r"^(?::|Caused by:) (?:[\w.$]+: )?(.+)$", "\n".join(lines), re.MULTILINE)
        lines = causes[-1:] or lines
    return re.sub(r" SQLSTATE: \w+$", "", lines[0])
