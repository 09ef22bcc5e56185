"""Measure the check of a pull request whose topics reference the types of a folder by a glob, with one commit for each topic.

usage: python benchmarks/glob_references.py

Prints the CPU time of `check --base main` (user and system, with all processes that it starts) for 20 and 200 topics over 300 and
3,000 files, without a cache. Exits with 1 where ten times the topics or files take more than fifteen times as long.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from repositories import ENVIRONMENT

DEMAND = 15.0
PROJECT = "version: 1\nroots: [topics]\napproved: main\n"
AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")


def git(folder: Path, *arguments: str, data: str = "") -> None:
    """Run a git command."""
    subprocess.run(["git", *AUTHOR, *arguments], cwd=folder, env=ENVIRONMENT, input=data, text=True, check=True)


def make(folder: Path, topics: int, files: int) -> None:
    """Make a repository with shared types on `main`, and new topics on `work`."""
    git(folder, "init", "--quiet", "--initial-branch=main", ".")
    (folder / "topics/types").mkdir(parents=True)
    (folder / "schemactl.yaml").write_text(PROJECT)
    for number in range(files):
        fields = [{"name": "cents", "type": "long"}]
        record = {"type": "record", "name": f"T{number}", "namespace": "shop", "fields": fields}
        (folder / f"topics/types/t{number}.avsc").write_text(json.dumps(record))
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=types")
    git(folder, "checkout", "--quiet", "-b", "work")
    for number in range(topics):
        definition = f"{{type: record, name: X{number}, fields: [{{name: t, type: shop.T{number}}}]}}"
        schema = f"{{type: AVRO, definition: {definition}, references: ['types/*.avsc']}}"
        (folder / f"topics/x{number}.yaml").write_text(f"topic: shop/sales/x{number}\nschema: {schema}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", f"--message=topic {number}")


def cpu_s(folder: Path, cache: Path) -> float:
    """Return the CPU time of a check of the branch, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "schemactl", "check", "--base", "main"]
    environment = {**os.environ, **ENVIRONMENT, "XDG_CACHE_HOME": str(cache)}
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Return 0 where the demand is met."""
    times_s: dict[tuple[int, int], float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for topics, files in ((20, 300), (20, 3_000), (200, 300), (200, 3_000)):
            folder = Path(scratch, f"{topics}-{files}")
            folder.mkdir()
            make(folder, topics, files)
            times_s[topics, files] = cpu_s(folder, Path(scratch, "cache", folder.name))
            print(f"{topics:4} topics over {files:5,} files: {times_s[topics, files]:5.1f} s")
    worst = max(times_s[200, 3_000] / times_s[20, 3_000], times_s[200, 3_000] / times_s[200, 300])
    print(f"ten times as many: {worst:.1f} times as long; demanded: at most {DEMAND:g} times")
    return 0 if worst <= DEMAND else 1


if __name__ == "__main__":
    sys.exit(main())
