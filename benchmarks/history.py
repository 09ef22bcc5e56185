"""Measure the derivation of versions from Git, against git that reads the same objects and drops them.

    python benchmarks/history.py [small] [medium] [large] [--rounds N] [--folder FOLDER]

Two figures for each size. *Cold*: every version of every topic, with nothing known before; demanded of the large repository
is at most 8 times the cost of `git log --raw` and `git cat-file --batch` of the same blobs, in at most 350 MB for Python and
git together. *Warm*: one topic, whole process, where all but the last 20 commits are known; demanded is at most 1.3 times of
the cost in the repository of the next smaller size.

All times are CPU seconds of our process and git's together, the medians of interleaved rounds; only ratios are
comparable between machines. FOLDER keeps the repositories for the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from repositories import ENVIRONMENT, SIZES, make

from schemactl.history.store import repository_folder

TOPIC = "acme/ns000/topic-00000"
NEW_COMMITS = 20
RATIO = 8.0
WARM_RATIO = 1.3
MEMORY_MB = 350


def children_s() -> float:
    """CPU seconds of all processes that were started and have ended."""
    times = os.times()
    return times.children_user + times.children_system


def floor_s(folder: Path) -> float:
    """CPU seconds that git needs for the record and every object in it."""
    before = children_s()
    log = ["git", "log", "--first-parent", "--raw", "--no-renames", "--no-abbrev", "--root", "--format="]
    record = subprocess.run([*log, "main"], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True).stdout
    ids = {line.split(b" ")[3] for line in record.splitlines()}
    subprocess.run(
        ["git", "cat-file", "--batch", "--buffer"],
        cwd=folder,
        env=ENVIRONMENT,
        check=True,
        input=b"\n".join(ids) + b"\n",
        stdout=subprocess.DEVNULL,
    )
    return children_s() - before


def derive(folder: Path, *topics: str) -> dict[str, float]:
    """Return the figures of one reading, or of the part for `topics`, from a separate process."""
    before = children_s()
    done = subprocess.run(
        [sys.executable, __file__, "--derive", str(folder), *topics], env=ENVIRONMENT, check=True, capture_output=True
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures | {"cpu_s": children_s() - before}


def derive_here(folder: str, *topics: str) -> dict[str, float]:
    """Derive the versions in this process, and return the figures."""
    from schemactl.core.names import TopicName
    from schemactl.declare.project import load_project
    from schemactl.history.approved_history import read_history
    from schemactl.history.git import Repository

    project, _ = load_project(folder)
    with Repository.open(folder) as repository:
        catalog = read_history(repository, project).catalog
        versions = [catalog.topics[TopicName.parse(topic)].versions for topic in topics]
        figures = {"versions": sum(map(len, versions))}
    mine, gits = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    per_mb = 2**20 if sys.platform == "darwin" else 2**10
    return figures | {"memory_mb": (mine.ru_maxrss + gits.ru_maxrss) / per_mb}


class Bench:
    """One repository."""

    def __init__(self, folder: Path, size: str) -> None:
        self.size = size
        self.folder = folder / size
        if not self.folder.exists():
            make(self.folder, *SIZES[size])
        self.kept = Path(repository_folder(self.folder / ".git") or "")

    def measure_cold(self, rounds: int) -> bool:
        """Print the figures of a derivation without a cache, and return whether they meet the demands."""
        figures, floors = [], []
        for _ in range(rounds):
            floors.append(floor_s(self.folder))
            shutil.rmtree(self.kept, ignore_errors=True)
            figures.append(derive(self.folder))
        git_s, ours_s = median(floors), median(figure["cpu_s"] for figure in figures)
        ratio = median(pair["cpu_s"] / floor for pair, floor in zip(figures, floors, strict=True))
        memory_mb = max(figure["memory_mb"] for figure in figures)
        topics, commits, _ = SIZES[self.size]
        print(
            f"cold {self.size:7} {topics:6,} topics x {commits:6,} commits: git {git_s:5.2f} s, ours {ours_s:6.2f} s, "
            f"ratio {ratio:4.1f} (at most {RATIO:g}), {memory_mb:4.0f} MB (at most {MEMORY_MB})",
            flush=True,
        )
        # Starting Python weighs too much where git needs no time at all.
        is_fast = ratio <= RATIO or self.size != "large"
        return is_fast and memory_mb <= MEMORY_MB

    def prepare_warm(self) -> None:
        """Fill the cache up to 20 commits before the tip."""
        self._git("update-ref", "refs/heads/tip", "main")
        self._git("update-ref", "refs/heads/main", f"main~{NEW_COMMITS}")
        shutil.rmtree(self.kept, ignore_errors=True)
        derive(self.folder)
        shutil.rmtree(self.folder / ".git" / "known", ignore_errors=True)
        shutil.move(self.kept, self.folder / ".git" / "known")
        self._git("update-ref", "refs/heads/main", "tip")
        self._git("update-ref", "-d", "refs/heads/tip")

    def warm_s(self) -> float:
        """CPU seconds for one topic after 20 new commits."""
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.folder / ".git" / "known", self.kept)
        return derive(self.folder, TOPIC)["cpu_s"]

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, env=ENVIRONMENT, check=True)


def main(sizes: list[str], rounds: int, folder: Path) -> int:
    """0 where every demand is met."""
    benches = [Bench(folder, size) for size in sizes]
    met = [bench.measure_cold(rounds) for bench in benches]
    for bench in benches:
        bench.prepare_warm()
    times = [[bench.warm_s() for bench in benches] for _ in range(max(rounds, 5))]
    for number, bench in enumerate(benches):
        warm_s = median(row[number] for row in times)
        line = f"warm {bench.size:7} {NEW_COMMITS} new commits, one topic: {warm_s * 1000:4.0f} ms"
        if number:
            ratio = median(row[number] / row[number - 1] for row in times)
            line += f", ratio {ratio:.2f} to {sizes[number - 1]} (at most {WARM_RATIO:g})"
            met.append(ratio <= WARM_RATIO)
        print(line, flush=True)
    return 0 if all(met) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--derive"]:
        print(json.dumps(derive_here(*sys.argv[2:])))
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help="small, medium, large (default: the first two)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(arguments.sizes or [*SIZES][:2], arguments.rounds, arguments.folder or Path(temporary)))
