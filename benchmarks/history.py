"""What deriving all versions from Git costs, against git reading the same objects to nowhere.

    python benchmarks/history.py [small] [medium] [large]

CPU seconds of our process and git's together; the ratio is what says something on another machine.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from repositories import ENVIRONMENT, SIZES, make

from schemactl import history
from schemactl.declare import load_project


def floor_s(folder: Path) -> float:
    """CPU seconds that git needs for the record and every object in it."""
    before = os.times()
    log = ["git", "log", "--first-parent", "--raw", "--no-renames", "--no-abbrev", "--root", "--format="]
    record = subprocess.run(
        [*log, "main"], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True
    ).stdout
    ids = {line.split(b" ")[3] for line in record.splitlines()}
    subprocess.run(
        ["git", "cat-file", "--batch", "--buffer"],
        cwd=folder,
        env=ENVIRONMENT,
        check=True,
        input=b"\n".join(ids) + b"\n",
        stdout=subprocess.DEVNULL,
    )
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def derive(folder: Path) -> dict[str, float]:
    """The figures of one derivation, taken in a process of its own."""
    trace = folder / ".git" / "trace"
    trace.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, __file__, "--derive", str(folder)],
        env=ENVIRONMENT | {"GIT_TRACE2_EVENT": str(trace)},
        check=True,
        capture_output=True,
    )
    processes = sum(b'"event":"start"' in line for line in trace.read_bytes().splitlines())
    figures: dict[str, float] = json.loads(done.stdout)
    return figures | {"processes": processes}


def derive_here(folder: str) -> dict[str, float]:
    """What this process spends on a derivation."""
    started_s = time.monotonic()
    project, _ = load_project(folder)
    with history.Repository.open(folder) as repository:
        approved = history.read(repository, project)
    times = os.times()
    mine, gits = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "wall_s": time.monotonic() - started_s,
        "cpu_s": times.user + times.system + times.children_user + times.children_system,
        "memory_mb": (mine.ru_maxrss + gits.ru_maxrss) / (1024 if sys.platform == "linux" else 1024**2),
        "topics": len(approved.catalog.topics),
        "versions": sum(len(topic.versions) for topic in approved.catalog.topics.values()),
    }


def main(sizes: list[str]) -> None:
    """One line for each size."""
    print(f"{'':8} topics versions   git s  ours s  ratio  wall s  memory MB  git processes")
    for size in sizes:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / size
            make(folder, *SIZES[size])
            git_s = floor_s(folder)
            ours = derive(folder)
            print(
                f"{size:8} {ours['topics']:6.0f} {ours['versions']:8.0f} {git_s:7.2f} {ours['cpu_s']:7.2f} "
                f"{ours['cpu_s'] / git_s:6.1f} {ours['wall_s']:7.1f} {ours['memory_mb']:10.0f} {ours['processes']:14.0f}",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--derive"]:
        print(json.dumps(derive_here(sys.argv[2])))
    else:
        main(sys.argv[1:] or ["small"])
