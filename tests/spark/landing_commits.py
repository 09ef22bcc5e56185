"""Drivers that are killed while they commit, and two drivers at once, for tests/spark/test_landing_commits.py.

python -m tests.spark.landing_commits FOLDER SEEDS

FOLDER has two attempts at one batch, `0` and `1`, each the results of its tasks; a folder `lake` with the files, and `table.json`, which
describes their table. Each process that commits is forked here, where no library has started its threads yet.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL
from types import FrameType
from typing import Any, Final

from schemactl.spark.tables.landing_table import Conflict, Transaction

_STEPS: Final = ("/schemactl/spark/landing", "/pyiceberg/")


class Counting:
    """A trace function that counts the lines of a commit, and kills the process at line `last`."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.lines = 0

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> Counting | None:
        if not any(step in frame.f_code.co_filename for step in _STEPS):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.last:
                os.kill(os.getpid(), SIGKILL)
        return self


def start_process(work: Callable[[], None]) -> int:
    """Fork a process that does the work and then exits with 0, and return its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001  as an interpreter does
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def wait_for_exit(pid: int) -> int:
    """Wait for the process, and return its exit code; the negative signal, if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Lake:
    """The table that the attempts are committed to, and a copy of it before the first attempt."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table: dict[str, Any] = json.loads((folder / "table.json").read_text())
        if not (folder / "before").exists():
            shutil.copytree(folder / "lake", folder / "before")

    def restore(self) -> None:
        """Nothing was committed."""
        shutil.rmtree(self.folder / "lake")
        shutil.copytree(self.folder / "before", self.folder / "lake")

    def commit(self, attempt: int, app: str = "query", *, last: int = 0) -> None:
        """Commit what an attempt wrote; the process is killed at that line, if it comes to it."""
        landing, written = pickle.loads((self.folder / str(attempt)).read_bytes())  # noqa: S301  the test's own
        # Imports are not steps of a commit.
        landing.rows.table.read_last_version(app)
        counting = Counting(last)
        sys.settrace(counting)
        while True:
            try:
                landing.commit(written, Transaction(app, 0))
                break
            except Conflict:
                # Somebody else was faster: Spark repeats the batch.
                continue
        sys.settrace(None)
        (self.folder / "lines").write_text(str(counting.lines))

    def look(self) -> None:
        """Count how often each message is there."""
        counts = Counter(number for aside in (False, True) for number in self._read_ids(aside=aside))
        (self.folder / "found").write_text(json.dumps(sorted(counts.items())))

    def count_messages(self) -> set[int]:
        """Return how often each message occurs; 0 for a missing one, and -1 for unknown messages."""
        assert wait_for_exit(start_process(self.look)) == 0
        counts = dict(json.loads((self.folder / "found").read_text()))
        return {counts.get(number, 0) for number in range(self.table["messages"])} | (
            {-1} if len(counts) > self.table["messages"] else set()
        )

    def _read_ids(self, *, aside: bool) -> list[int]:
        place = self.table["path"] + ("_rejected" if aside else "")
        if self.table["format"] == "delta":
            from deltalake import DeltaTable

            counts: list[int] = DeltaTable(place).to_pyarrow_table(columns=["id"])["id"].to_pylist()
        else:
            from pyiceberg.catalog import load_catalog

            table = load_catalog(**self.table["catalog"]).load_table(place)
            counts = table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
        return counts


def main(place: str, seeds: str) -> None:
    """Say how often messages are there after each: two kills and a repetition at random places, two at once."""
    lake = Lake(Path(place))
    assert wait_for_exit(start_process(lambda: lake.commit(0))) == 0
    lines = int((lake.folder / "lines").read_text())
    result: dict[str, Any] = {"killed": [], "whole": sorted(lake.count_messages())}
    for seed in range(int(seeds)):
        pick = random.Random(seed)  # noqa: S311  reproducible, not secret
        lake.restore()
        # The first attempt dies; the second, of another package, may die; then it is repeated.
        at = [pick.randrange(1, lines + 1), pick.randrange(1, 2 * lines)]
        codes = [wait_for_exit(start_process(lambda no=no, at=at: lake.commit(no, last=at[no]))) for no in (0, 1)]  # type: ignore[misc]
        assert wait_for_exit(start_process(lambda: lake.commit(1))) == 0
        result["killed"].append([at, codes, sorted(lake.count_messages())])
    for name, apps in (("one batch", ("query", "query")), ("two queries", ("query", "other"))):
        lake.restore()
        pids = [start_process(lambda no=no, app=app: lake.commit(no, app)) for no, app in enumerate(apps)]  # type: ignore[misc]
        result[name] = [[wait_for_exit(pid) for pid in pids], sorted(lake.count_messages())]
    print(json.dumps(result))  # noqa: T201  its answer


if __name__ == "__main__":
    main(*sys.argv[1:])
