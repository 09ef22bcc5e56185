"""A process in which commands run one after the other, so that only the first one waits for Java to start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

Run = Callable[..., subprocess.CompletedProcess[str]]
"""The arguments that follow a command."""


class Console:
    """The process; `opened` ends it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def schemactl(
        self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line in `folder`, in the given environment or the console's, and return its output and exit code."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        with tempfile.TemporaryDirectory() as place:
            out, error = Path(place, "out"), Path(place, "error")
            requests.write(json.dumps([str(folder), arguments, environment, str(out), str(error)]) + "\n")
            requests.flush()
            code = int(answers.readline())
            return subprocess.CompletedProcess(
                arguments, code, out.read_text(encoding="utf-8"), error.read_text(encoding="utf-8")
            )


@contextmanager
def open_console(environment: Mapping[str, str]) -> Iterator[Console]:
    """Yield a console, and end it afterwards."""
    with subprocess.Popen(
        [sys.executable, __file__],
        env={**environment, "PYTHONPATH": str(Path(__file__).parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Console(process)


def _serve(questions: IO[str], answers: IO[str]) -> None:
    for line in questions:
        print(_run(*json.loads(line)), file=answers, flush=True)


def _run(folder: str, arguments: Sequence[str], environment: Mapping[str, str] | None, out: str, error: str) -> int:
    from schemactl.__main__ import main

    for stream, place in ((0, os.devnull), (1, out), (2, error)):
        file = os.open(place, os.O_RDWR | os.O_CREAT)
        os.dup2(file, stream)
        os.close(file)
    if environment is not None:
        os.environ.clear()
        os.environ.update(environment)
    os.chdir(folder)
    sys.argv[1:] = arguments
    try:
        code = main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:  # noqa: BLE001  as an interpreter does
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    with os.fdopen(os.dup(0)) as told, os.fdopen(os.dup(1), "w") as answering:
        _serve(told, answering)
