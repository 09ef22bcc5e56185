"""The exceptions of this package, Spark's errors as one line, and the release of PySpark."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pyspark
from pyspark.errors import PySparkException

SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException,)
"""PySpark's own exceptions, and those of Java that it does not translate."""

# The package pyspark-client, which knows Spark Connect alone, has no way into a JVM.
with suppress(ModuleNotFoundError):
    from py4j.protocol import Py4JError

    SPARK_ERRORS += (Py4JError,)

_WORKERS_PYTHON: Final = "workers are started with the Python that PYSPARK_PYTHON names, which must be there and have pyarrow and numpy"

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
    found = re.findall(
        r"^(?:Exception in thread \S+|Caused by:|Error:) (?:[\w.$]+: )?(.+)$", log, re.MULTILINE
    )
    return found[-1] if found else ""


def release() -> tuple[int, int]:
    """Return the installed PySpark's, as far as it decides: (4, 1)."""
    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


def require(needed: tuple[int, int], what: str) -> None:
    """Raise SparkProblem on a release of PySpark older than `needed`, which does not have `what`."""
    if release() < needed:
        raise SparkProblem(
            f"{what} needs PySpark {'.'.join(map(str, needed))} or newer; this is {pyspark.__version__}"
        )
