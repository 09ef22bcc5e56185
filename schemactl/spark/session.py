"""A Spark session for a command, and the progress of its jobs."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .errors import SparkProblem, as_spark_problem, cause_in_log, first_line
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
