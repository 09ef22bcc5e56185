"""Measure a check by the pre-commit hook, and in the other modes, at 200, 2,000 and 10,000 topics.

    python benchmarks/hook.py [TOPICS ...] [--folder DIR] [--commits N] [--rounds N]

BASE is `sh -c 'python -c pass; git rev-parse HEAD'` in the same repository. The commands of a row run in turns. A figure is the median
of CPU time (user and system, of the process and all that it starts). A ratio is of two medians. schemactl is started as pip's
script starts it, with compiled modules. With `pre-commit` installed there is a row that compares a `pre-commit run` with the hook to one
whose hook does nothing.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from repositories import ENVIRONMENT, make

import schemactl
from schemactl.history.store import repository_folder

SCRIPT = "import sys\nfrom schemactl.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
FIELD = '"fields": [{"name": "memo", "type": ["null", "string"], "default": null},'


def main() -> None:
    """Print every row that can be measured here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("topics", nargs="*", type=int, default=[200, 2_000, 10_000])
    parser.add_argument("--folder", type=Path, help="where the repositories are, or are made and kept")
    parser.add_argument("--commits", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=11)
    args = parser.parse_args()
    compileall.compile_dir(str(schemactl.__path__[0]), quiet=2)
    with tempfile.TemporaryDirectory() as scratch:
        script = Path(scratch, "schemactl")
        script.write_text(SCRIPT, encoding="utf-8")
        check = [sys.executable, str(script), "check"]
        for topics in args.topics:
            path = (args.folder or Path(scratch)) / f"{topics}-{args.commits}"
            if not path.exists():
                make(path, topics, args.commits, max(1, topics // 50))
            measure(path, check, topics, args.rounds)
        if find_spec("pre_commit"):
            pre_commit(Path(scratch, "team"), [*check, "--staged"], args.rounds)


def measure(path: Path, check: Sequence[str], topics: int, rounds: int) -> None:
    """Print the rows of one repository."""
    git(path, "reset", "--quiet", "--hard", "main")
    git(path, "checkout", "--quiet", "-B", "work")
    shutil.rmtree(repository_folder(path / ".git") or "", ignore_errors=True)
    base = ["sh", "-c", f"'{sys.executable}' -c pass; git rev-parse HEAD"]
    print(f"{topics:,} topics: the first check {cpu_s([*check, '--staged'], path):.2f} s")
    folder = path / "topics" / "ns001"
    inline = next(yaml_path for yaml_path in sorted(folder.parent.rglob("*.yaml")) if "|" in yaml_path.read_text())
    edits: dict[str, tuple[list[str], Callable[[], object]]] = {
        "no schema staged": (["--staged"], lambda: (path / "README.md").write_text("Topics\n")),
        "one .avsc, --staged": (["--staged"], lambda: add_field(next(folder.glob("*.avsc")))),
        "one .yaml, --staged": (["--staged"], lambda: add_field(inline)),
        "one .avsc, --base": (["--base", "main"], lambda: add_field(next(folder.glob("*.avsc")))),
        "one .avsc, worktree": ([], lambda: add_field(next(folder.glob("*.avsc")))),
    }
    for name, (arguments, edit) in edits.items():
        subprocess.run([*check, *arguments], cwd=path, env=ENVIRONMENT, capture_output=True, check=True)
        edit()
        git(path, "add", "--all")
        if "--base" in arguments:
            git(path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "work")
        print_row(name, path, base, [*check, *arguments], rounds)
        git(path, "reset", "--quiet", "--hard", "main")


def pre_commit(path: Path, hook: Sequence[str], rounds: int) -> None:
    """Print what the hook adds to pre-commit's own cost."""
    make(path, 20, 40, 2)
    common = {"language": "system", "always_run": True, "pass_filenames": False}
    for name, entry in (("idle", "true"), ("check", " ".join(hook))):
        hooks = [{**common, "id": name, "name": name, "entry": entry}]
        (path.parent / f"{name}.yaml").write_text(json.dumps({"repos": [{"repo": "local", "hooks": hooks}]}))
    subprocess.run(hook, cwd=path, env=ENVIRONMENT, capture_output=True, check=True)
    run = [sys.executable, "-m", "pre_commit", "run", "--config"]
    print_row("pre-commit, no schema", path, [*run, "../idle.yaml"], [*run, "../check.yaml"], rounds)


def print_row(name: str, path: Path, base: Sequence[str], command: Sequence[str], rounds: int) -> None:
    """Print the medians of both commands, and their ratio."""
    taken = [(cpu_s(base, path), cpu_s(command, path)) for _ in range(rounds)]
    one, other = (statistics.median(column) for column in zip(*taken, strict=True))
    print(f"  {name:<22} base {one * 1000:6.1f} ms   check {other:6.3f} s   ratio {other / one:6.2f}", flush=True)


def cpu_s(command: Sequence[str], path: Path) -> float:
    """Return the CPU seconds of a command and all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**ENVIRONMENT, "CI": ""}
    subprocess.run(command, cwd=path, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def add_field(path: Path) -> None:
    """Give the first record in the file another optional field."""
    path.write_text(path.read_text().replace('"fields": [', FIELD, 1))


def git(path: Path, *arguments: str) -> None:
    """Run a git command in the repository."""
    subprocess.run(["git", *arguments], cwd=path, env={**os.environ, **ENVIRONMENT}, check=True)


if __name__ == "__main__":
    main()
