"""What the pre-commit hook costs at a commit, against what is spent anyway.

    python benchmarks/hook.py [small] [medium] [large] [--folder DIR] [--rounds N]

BASE is `sh -c 'python -c pass; git rev-parse HEAD'` in the same repository. All commands of a row run in turns; a figure is the
median of CPU milliseconds (user and system, of the process and all that it starts), and a ratio is of two medians. The hook is
started as pip's script starts it, with compiled modules, as after an installation. What it says in each row is compared with
what the complete check says.

With `pre-commit` and `buf` on PATH (or --buf) there are rows beside a `pre-commit run` whose hook does nothing, and beside `buf
breaking --against .git` in a repository of twenty `.proto` files. That row has wall time, too: buf waits for git.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from protobuf_check import file_pair
from repositories import ENVIRONMENT, SIZES, make

import schemactl

SCRIPT = "import sys\nfrom schemactl.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
FIELD = '{"name": "memo", "type": ["null", "string"], "default": null},'
Command = Sequence[str]


def main() -> None:
    """Every row that can be measured here, and what is missing for the others."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=", ".join(SIZES))
    parser.add_argument("--folder", type=Path, help="where the repositories are, or are made and kept")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--buf", default=shutil.which("buf"))
    args = parser.parse_args()
    if unknown := set(args.sizes) - SIZES.keys():
        parser.error(f"there is no size {', '.join(sorted(unknown))}")
    compileall.compile_dir(str(schemactl.__path__[0]), quiet=2)
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(Path(scratch), args.rounds)
        for size in args.sizes or ["medium"]:
            bench.repository(size, args.folder or Path(scratch))
        bench.pre_commit()
        if args.buf:
            bench.buf(args.buf)
        else:
            print("no row beside buf: it is not on PATH, and --buf does not say where it is")


class Bench:
    """The hook as it is installed, and how often each command runs."""

    def __init__(self, scratch: Path, rounds: int) -> None:
        self.scratch = scratch
        self.rounds = rounds
        script = scratch / "schemactl"
        script.write_text(SCRIPT, encoding="utf-8")
        self.hook = [sys.executable, str(script), "check", "--staged"]
        self.worked_out = [
            sys.executable,
            "-c",
            "import sys; from schemactl.cli import main; sys.exit(main())",
            "check",
            "--staged",
        ]
        self.base = ["sh", "-c", f"'{sys.executable}' -c pass; git rev-parse HEAD"]

    def repository(self, size: str, folder: Path) -> None:
        """The rows of one repository."""
        path = folder / size
        if not path.exists():
            make(path, *SIZES[size])
        git(path, "reset", "--quiet", "--hard", "main")
        git(path, "checkout", "--quiet", "-B", "work")
        print(
            f"{size}: {SIZES[size][0]:,} topics, {SIZES[size][1]:,} commits; the first check: {self.first(path):,.0f} ms"
        )
        files, inline = path / "topics" / "ns001" / "topic-00001.avsc", path / "topics" / "ns000"
        edits: dict[str, Callable[[], None]] = {
            "nothing to do": lambda: write(path / "README.md", "Topics\n"),
            "one topic, .avsc": lambda: add_field(files),
            "one topic, inline": lambda: add_field(
                next(p for p in sorted(inline.glob("*.yaml")) if "|" in p.read_text())
            ),
        }
        for name, edit in edits.items():
            # What was kept of another change would be of no use for this one.
            said(self.worked_out, path)
            edit()
            git(path, "add", "--all")
            self.row(path, name, {"BASE": self.base, "hook": self.hook})
            git(path, "reset", "--quiet", "--hard")

    def first(self, path: Path) -> float:
        """CPU milliseconds of a check that finds nothing kept."""
        shutil.rmtree(path / ".git" / "schemactl", ignore_errors=True)
        return cpu_ms(self.hook, path)

    def row(
        self, path: Path, name: str, commands: Mapping[str, Command], *, git_processes: bool = True
    ) -> None:
        """One line: the first command, the others, their ratio."""
        told = said(self.hook, path)
        taken = {
            each: [cpu_ms(command, path) for command in commands.values()] for each in range(self.rounds)
        }
        medians = [statistics.median(column) for column in zip(*taken.values(), strict=True)]
        figures = "   ".join(f"{each} {ms:6.1f} ms" for each, ms in zip(commands, medians, strict=True))
        more = f"   {self.processes(path)} git" if git_processes else ""
        print(f"  {name:<22} {figures}   ratio {medians[-1] / medians[0]:5.2f}{more}", flush=True)
        if told != said(self.worked_out, path):
            raise SystemExit(f"the hook says something else than the complete check:\n{told}")

    def processes(self, path: Path) -> int:
        """How many git processes the hook starts."""
        trace = self.scratch / "trace"
        trace.unlink(missing_ok=True)
        said(self.hook, path, {"GIT_TRACE2_EVENT": str(trace)})
        return sum(json.loads(line)["event"] == "start" for line in trace.read_text().splitlines())

    def pre_commit(self) -> None:
        """What the hook adds to pre-commit's own cost."""
        path = self.scratch / "team"
        make(path, 20, 40, 2)
        idle = {
            "id": "idle",
            "name": "idle",
            "entry": "true",
            "language": "system",
            "always_run": True,
            "pass_filenames": False,
        }
        ours = {**idle, "id": "check", "name": "check", "entry": " ".join(self.hook)}
        run = [sys.executable, "-m", "pre_commit", "run", "--config"]
        commands: dict[str, Command] = {}
        for name, hooks in {"pre-commit": [idle], "with the hook": [idle, ours]}.items():
            config = self.scratch / f"{len(hooks)}.yaml"
            config.write_text(json.dumps({"repos": [{"repo": "local", "hooks": hooks}]}), encoding="utf-8")
            commands[name] = [*run, str(config)]
        if subprocess.run([*run[:3], "--version"], capture_output=True, check=False).returncode:
            print("no row beside pre-commit: it is not installed")
            return
        self.first(path)
        add_field(path / "topics" / "ns001" / "topic-00001.avsc")
        git(path, "add", "--all")
        print("pre-commit run, one changed topic of 20")
        self.row(path, "", commands, git_processes=False)

    def buf(self, buf: str) -> None:
        """The hook on twenty topics, beside buf on twenty `.proto` files; one definition is changed."""
        topics, protos = self.scratch / "topics", self.scratch / "protos"
        make(topics, 20, 40, 2)
        self.first(topics)
        add_field(topics / "topics" / "ns001" / "topic-00001.avsc")
        git(topics, "add", "--all")
        make_protos(protos)
        breaking = [buf, "breaking", "--against", ".git#branch=main"]
        taken = [(*run(breaking, protos), *run(self.hook, topics)) for _ in range(self.rounds)]
        theirs, their_wall, own, own_wall = (statistics.median(column) for column in zip(*taken, strict=True))
        print(
            f"buf breaking on 20 files {theirs:.1f} ms   hook on 20 topics {own:.1f} ms   buf / hook {theirs / own:.2f}, "
            f"by wall time {their_wall / own_wall:.2f}"
        )


def make_protos(path: Path) -> None:
    """A repository as buf's users have it, one file of it changed."""
    path.mkdir()
    (path / "buf.yaml").write_text("version: v2\n", encoding="utf-8")
    rng = random.Random(1)  # noqa: S311  no secret
    for number in range(20):
        (path / f"p{number}.proto").write_text(file_pair(number, rng)[0], encoding="utf-8")
    git(path, "init", "--quiet", "--initial-branch=main")
    git(path, "add", "--all")
    git(
        path,
        "-c",
        "user.name=Dev",
        "-c",
        "user.email=dev@acme.example",
        "commit",
        "--quiet",
        "--message",
        "approved",
    )
    changed = path / "p7.proto"
    changed.write_text(changed.read_text().replace("}", "  string memo = 90;\n}", 1), encoding="utf-8")
    git(path, "add", "--all")


def write(path: Path, text: str) -> None:
    """The file holds that text."""
    path.write_text(text, encoding="utf-8")


def add_field(path: Path) -> None:
    """The definition in this file has one more field, which may be absent."""
    lines = path.read_text(encoding="utf-8").split("\n")
    at = max(number for number, line in enumerate(lines) if '"name": "revision"' in line) - 1
    indent = lines[at][: -len(lines[at].lstrip())]
    write(path, "\n".join([*lines[:at], indent + FIELD, *lines[at:]]))


def git(path: Path, *arguments: str) -> None:
    """That git command has been carried out."""
    subprocess.run(["git", *arguments], cwd=path, env=ENVIRONMENT, check=True)


def environment() -> dict[str, str]:
    """That of a developer who has installed the hook."""
    return {name: value for name, value in ENVIRONMENT.items() if not name.startswith("PYTHON")}


def said(command: Command, path: Path, more: Mapping[str, str] | None = None) -> str:
    """What a check that is content prints."""
    done = subprocess.run(
        command, cwd=path, env=environment() | dict(more or {}), check=True, capture_output=True, text=True
    )
    return done.stdout


def cpu_ms(command: Command, path: Path) -> float:
    """CPU milliseconds of one run that is content."""
    return run(command, path)[0]


def run(command: Command, path: Path) -> tuple[float, float]:
    """CPU and wall milliseconds of one run that is content."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode} in {path}")
    return (usage.ru_utime + usage.ru_stime) * 1000, wall_s * 1000


if __name__ == "__main__":
    main()
