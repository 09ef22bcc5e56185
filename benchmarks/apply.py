"""Measure an apply of 2,000 topics over a broker's admin API: the first apply, and one changed topic.

    python benchmarks/apply.py [--registry URL] [--topics N] [--rounds N]

Without `--registry` the embedded registry serves its own. The first apply is compared with the same under `--parallel 1`, each in a new
tenant; the applies of one changed topic with `plan --topic` of that topic. A repository has 100 topics in a namespace, half of them with two
versions. Wall seconds, of one round the only one, else the median; the memory is the largest that a process of a row took.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from repositories import ENVIRONMENT

TOPICS_IN_A_NAMESPACE = 100
CHANGED = "bench/n00/t000"
COMMAND = [sys.executable, "-m", "schemactl"]

_peaks_mb: dict[str, float] = {}
_cpu_s: dict[str, float] = {}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--registry", help="the admin API of a broker")
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3, help="of each apply of one changed topic")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if args.registry:
            measure(Path(scratch, "shop"), args.registry, args)
            return
        serve = [*COMMAND, "serve", "--port", "0", "--registry", f"sqlite:{scratch}/registry.db"]
        served = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        try:
            url = (served.stdout.readline() if served.stdout else "").split()[-1]
            measure(Path(scratch, "shop"), url, args)
        finally:
            served.terminate()
            served.wait()


def measure(path: Path, url: str, args: argparse.Namespace) -> None:
    """Print the rows of one repository, made at `path`."""
    topics = args.topics
    make(path, url, topics, ["serial", "parallel"])
    run(path, "log", CHANGED)
    one_s = run(path, "apply", "--target", "serial", "--yes", "--parallel", "1")
    many_s = run(path, "apply", "--target", "parallel", "--yes")
    print(f"{topics:,} topics, {url}")
    print(
        f"first apply                  {many_s:7.2f} s   of it CPU {_cpu_s['apply']:.1f} s   {_peaks_mb['apply']:.0f} MB"
    )
    print(f"  --parallel 1               {one_s:7.2f} s   ratio {one_s / many_s:5.2f}")
    everything = ["--target", "parallel"]
    change = [*everything, "--topic", CHANGED]
    times_by_row: dict[str, list[float]] = {}
    for number in range(args.rounds):
        edit(path, number)
        run(path, "log", CHANGED)
        times_by_row.setdefault("plan --topic", []).append(run(path, "plan", *change))
        times_by_row.setdefault("apply --topic", []).append(run(path, "apply", *change, "--yes"))
        edit(path, number + 100)
        run(path, "log", CHANGED)
        times_by_row.setdefault("plan", []).append(run(path, "plan", *everything, "--out", "plan.json"))
        times_by_row.setdefault("apply plan.json", []).append(run(path, "apply", "plan.json"))
        edit(path, number + 200)
        run(path, "log", CHANGED)
        times_by_row.setdefault("apply", []).append(run(path, "apply", *everything, "--yes"))
    base_s = statistics.median(times_by_row["plan --topic"])
    for row, times in times_by_row.items():
        median_s = statistics.median(times)
        print(f"one changed: {row:16}{median_s:7.2f} s   ratio {median_s / base_s:5.2f}")
    print(f"memory at most {max(_peaks_mb.values()):.0f} MB")


def run(path: Path, *arguments: str) -> float:
    """Run a command that must succeed, and return how many seconds it took."""
    start_s = time.perf_counter()
    process = subprocess.Popen([*COMMAND, "--quiet", *arguments], cwd=path, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ends with {process.returncode}")
    peak_mb = usage.ru_maxrss / (1024 if sys.platform == "linux" else 1 << 20)
    _peaks_mb[arguments[0]] = max(_peaks_mb.get(arguments[0], 0.0), peak_mb)
    _cpu_s[arguments[0]] = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - start_s


def make(path: Path, url: str, topics: int, targets: list[str]) -> None:
    """Make the repository: two commits, the second of which changes half of the topics."""
    path.mkdir()
    spaces = -(-topics // TOPICS_IN_A_NAMESPACE)
    project = "version: 1\nroots: [topics]\ntargets:\n"
    for target in targets:
        names = ", ".join(f"bench/n{n:02}: {target}-{uuid4().hex[:8]}/n{n:02}" for n in range(spaces))
        project += f'  {target}: {{registry: "{url}", namespaces: {{{names}}}}}\n'
    files = {"schemactl.yaml": project}
    for n in range(spaces):
        files[f"topics/n{n:02}.yaml"] = f"namespace: bench/n{n:02}\nschema_compatibility_strategy: BACKWARD\n"
    for n in range(topics):
        name = f"n{n // TOPICS_IN_A_NAMESPACE:02}/t{n % TOPICS_IN_A_NAMESPACE:03}"
        files[f"topics/{name}.yaml"] = (
            f"topic: bench/{name}\nschema:\n  type: AVRO\n  definition: {Path(name).name}.avsc\n"
        )
        files[f"topics/{name}.avsc"] = make_definition(0)
    git(path, "init", "-q", "-b", "main")
    commit(path, files)
    definitions = sorted(at for at in files if at.endswith(".avsc"))
    commit(path, dict.fromkeys(definitions[::2], make_definition(1)))


def edit(path: Path, number: int) -> None:
    """Commit one more version of one topic."""
    commit(path, {f"topics/{CHANGED.removeprefix('bench/')}.avsc": make_definition(number + 2, f"more_{number}")})


def make_definition(number: int, *more: str) -> str:
    """An order with ten fields, and some more."""
    names = [*(f"field_{n}" for n in range(10 + min(number, 1))), *more]
    fields = [{"name": name, "type": "string", "default": ""} for name in names]
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


def commit(path: Path, files: dict[str, str]) -> None:
    """Commit these files."""
    for name, text in files.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    git(path, "add", "-A")
    git(path, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-q", "-m", "Change")


def git(path: Path, *arguments: str) -> None:
    """Run git, which must succeed."""
    subprocess.run(["git", *arguments], cwd=path, env=ENVIRONMENT, check=True)


if __name__ == "__main__":
    main()
