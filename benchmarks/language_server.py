"""The cost of an edit of one definition in the language server: check and lint of a repository of 2,000 topics.

    python benchmarks/language_server.py [TOPICS] [--folder DIR] [--commits N] [--rounds N]

A figure is CPU time, user and system, of this process and of the git processes that it starts. The first load reads all files and
the approved history without a cache. Each edit is another field in a definition of one topic, or in a type that topics share.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from repositories import make

from schemactl.lsp.workspace import Workspace

FIELDS = '"fields": ['


def main() -> None:
    """Print the first load, and the median and the worst of the edits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("topics", nargs="?", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, help="where the repository is, or is made and kept")
    parser.add_argument("--commits", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["SCHEMACTL_CACHE"] = str(Path(temporary, "cache"))
        folder = args.folder or Path(temporary, "repository")
        if not folder.exists():
            make(folder, args.topics, args.commits, 50)
        workspace = Workspace(str(folder))
        print(f"first load: {measure(workspace.diagnose):.2f} s")
        own = sorted(folder.glob("topics/**/*.avsc"))[5]
        shared = min(folder.glob("common/*.avsc"))
        for name, file in (("definition of one topic", own), ("shared type", shared)):
            path, text = file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8")
            costs = []
            for number in range(args.rounds):
                field = f'{{"name": "added_{number}", "type": "int"}}, '
                workspace.buffers = {path: text.replace(FIELDS, FIELDS + field, 1).encode()}
                costs.append(measure(workspace.diagnose))
            print(f"{name}: median {statistics.median(costs):.3f} s, worst {max(costs):.3f} s")


def measure(work: Callable[[], object]) -> float:
    """Return the CPU time of `work` in seconds, including processes that have ended."""
    before = _read_cpu_s()
    work()
    return _read_cpu_s() - before


def _read_cpu_s() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
