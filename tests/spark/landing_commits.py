"""Drivers that are killed while they commit, and two at once: what tests/spark/test_landing_commits.py runs.

python -m tests.spark.landing_commits FOLDER SEEDS

FOLDER has two attempts at one batch, `0` and `1`, each what its tasks wrote; a folder `lake` with the files, and `table.json`, which says
what table they are for. Each process that commits is forked here, where no library has started its threads yet.
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
    """A trace function that counts the lines of what commits, and kills the process at the last."""

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


def started(work: Callable[[], None]) -> int:
    """The number of a process that does the work, and then ends with 0."""
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


def ended(pid: int) -> int:
    """The exit code of that process; what killed it, if it is negative."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Lake:
    """Where the attempts are committed, as it was before the first."""

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
        # What it imports is no step of a commit.
        landing.rows.table.last(app)
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
        found = Counter(number for aside in (False, True) for number in self._ids(aside=aside))
        (self.folder / "found").write_text(json.dumps(sorted(found.items())))

    def times(self) -> set[int]:
        """How often messages are there, and whether all are."""
        assert ended(started(self.look)) == 0
        found = dict(json.loads((self.folder / "found").read_text()))
        return {found.get(number, 0) for number in range(self.table["messages"])} | (
            {-1} if len(found) > self.table["messages"] else set()
        )

    def _ids(self, *, aside: bool) -> list[int]:
        place = self.table["path"] + ("_rejected" if aside else "")
        if self.table["format"] == "delta":
            from deltalake import DeltaTable

            found: list[int] = DeltaTable(place).to_pyarrow_table(columns=["id"])["id"].to_pylist()
        else:
            from pyiceberg.catalog import load_catalog

            table = load_catalog(**self.table["catalog"]).load_table(place)
            found = table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
        return found


def main(place: str, seeds: str) -> None:
    """Say how often messages are there after each: two kills and a repetition at random places, two at once."""
    lake = Lake(Path(place))
    assert ended(started(lambda: lake.commit(0))) == 0
    lines = int((lake.folder / "lines").read_text())
    told: dict[str, Any] = {"killed": [], "whole": sorted(lake.times())}
    for seed in range(int(seeds)):
        pick = random.Random(seed)  # noqa: S311  reproducible, not secret
        lake.restore()
        # The first attempt dies; the second, of another package, too, or not; then it is repeated.
        at = [pick.randrange(1, lines + 1), pick.randrange(1, 2 * lines)]
        codes = [ended(started(lambda no=no, at=at: lake.commit(no, last=at[no]))) for no in (0, 1)]  # type: ignore[misc]
        assert ended(started(lambda: lake.commit(1))) == 0
        told["killed"].append([at, codes, sorted(lake.times())])
    for name, apps in (("one batch", ("query", "query")), ("two queries", ("query", "other"))):
        lake.restore()
        pids = [started(lambda no=no, app=app: lake.commit(no, app)) for no, app in enumerate(apps)]  # type: ignore[misc]
        told[name] = [[ended(pid) for pid in pids], sorted(lake.times())]
    print(json.dumps(told))  # noqa: T201  its answer


if __name__ == "__main__":
    main(*sys.argv[1:])
