"""A process in which commands run one after another, each as if alone, so that only the first one waits for Java to start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import shop

Run = Callable[..., subprocess.CompletedProcess[str]]
"""What a command does with more arguments."""


class Console:
    """The process; `opened` ends it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def schemactl(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What the command line prints in `folder`, and its exit code."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        with tempfile.TemporaryDirectory() as place:
            out, error = Path(place, "out"), Path(place, "error")
            asked.write(json.dumps([str(folder), arguments, str(out), str(error)]) + "\n")
            asked.flush()
            code = int(answers.readline())
            return subprocess.CompletedProcess(
                arguments, code, out.read_text(encoding="utf-8"), error.read_text(encoding="utf-8")
            )


SETTINGS = """\
spark.sql.adaptive.enabled false
spark.sql.codegen.factoryMode NO_CODEGEN
spark.sql.codegen.wholeStage false
spark.sql.shuffle.partitions 1
"""
"""Of small queries, which take longer to compile than to run."""


@contextmanager
def opened() -> Iterator[Console]:
    """A console, ended afterwards."""
    with tempfile.TemporaryDirectory() as settings:
        Path(settings, "spark-defaults.conf").write_text(SETTINGS)
        environment = {
            **shop.environment(),
            "PYTHONPATH": str(Path(__file__).parent),
            "SPARK_CONF_DIR": settings,
            # Workers of this machine are this Python, whatever others are for clusters.
            "PYSPARK_PYTHON": "/nowhere/python",
        }
        with subprocess.Popen(
            [sys.executable, __file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            yield Console(process)


def _serve(questions: IO[str], answers: IO[str]) -> None:
    from schemactl.cli import main

    for line in questions:
        folder, arguments, *places = json.loads(line)
        for stream, place in zip((1, 2), places, strict=True):
            file = os.open(place, os.O_WRONLY | os.O_CREAT)
            os.dup2(file, stream)
            os.close(file)
        os.chdir(folder)
        try:
            code: object = main(arguments)
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        sys.stderr.flush()
        print(code, file=answers, flush=True)


if __name__ == "__main__":
    _serve(sys.stdin, os.fdopen(os.dup(1), "w"))
