"""Measure the commands on a repository with a long history, against Git's own reading of the same blobs.

    python benchmarks/scale.py [ROW ...] [--small] [--folder FOLDER]

The repository has 5,000 topics, 20,000 commits and 35,429 versions, of which one topic has 1,395. `--small` makes one of a
tenth. It is made from a seed, so it is always the same; FOLDER keeps it for the next time.

Each row prints the CPU time (user and system, of the process and all that it starts), its ratio to Git's reading in the same
run, and the memory of the largest process. Git's reading is `git log --raw` of the first-parent line and
`git cat-file --batch` of all blobs in it. The rows:

    check           the first check, without a cache
    again           the second check
    doc, break      the hook (`check --staged`) after an edit of a doc, and after a breaking change, in the topic of most versions
    changelog       the changes of the last 1,000 commits
    diff            the changes of the last 50 commits
    graph           the users of each type
    plan            of an empty registry
    apply           of everything to this registry, in SQLite
    plan-again, drift, status   with nothing to do; after the row `apply`
    served-plan, served-drift, served-status   the same with this registry behind `schemactl serve`; after the row `apply`
    proto, proto-again          `plan` of another repository, 20 `.proto` topics with 600 versions, and again after an `apply`
    generate, site  of all topics
    regenerate      `generate` again, with nothing changed; after the row `generate`
    one             `generate` again, with a field added to the topic of most versions, not committed; after the row `generate`
    site-1000       `site` of another repository: 1,000 topics with 14 versions each
    site-again      the same again, with nothing changed; after the row `site-1000`
    site-one        the same after a commit that changes one topic; after the row `site-1000`

Two more benchmarks need something else than a repository, and print their own figures:

    python benchmarks/protobuf_history.py CLONE     versions of `.proto` topics; CLONE has a history of `.proto` files
    python benchmarks/live_scale.py                 `plan`, `drift`, `status` and `apply` of thousands of topics on a live registry
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from repositories import ENVIRONMENT, make, make_protos

PROJECT = """version: 1
roots: [topics]
approved: main
defaults: {schema_compatibility_strategy: BACKWARD}
targets:
  local: {registry: "sqlite:.schemactl/registry.db"}
  served: {registry: "http://127.0.0.1:18089"}
generate: {package: scale_schemas, out: generated}
"""

SKEW = 3.0
"""The exponent of the chance of a topic to change; with it one topic has 1,395 versions."""

DEFINITION = "topics/ns001/topic-00001.avsc"
"""The definition of the topic of most versions."""

_KB_PER_MB = 1 << 20 if sys.platform == "darwin" else 1 << 10


class Usage(NamedTuple):
    """The resources of a command: CPU seconds, the memory of its largest process, its exit status and standard output."""

    cpu_s: float
    memory_mb: float
    status: int
    output: bytes


class Bench:
    """The repository, and the cache that belongs to it."""

    def __init__(self, folder: Path, *, is_small: bool) -> None:
        divisor = 10 if is_small else 1
        self.folder = folder / ("small" if is_small else "large")
        self.cache = folder / f"{self.folder.name}-cache"
        self.output = folder / f"{self.folder.name}-output"
        self.commits = 20_000 // divisor
        self.even_folder = folder / f"{self.folder.name}-even"
        self.even_sizes = (1_000 // divisor, 3_000 // divisor, 20 // divisor)
        if not self.folder.exists():
            make(self.folder, 5_000 // divisor, self.commits, 100 // divisor, skew=SKEW, project=PROJECT)
        self.proto_folder = folder / f"{self.folder.name}-protos"
        self.proto_sizes = (20 // divisor, 400 // divisor)
        self.reset()
        for path in (self.output, self.folder / ".schemactl", self.proto_folder / ".schemactl"):
            shutil.rmtree(path, ignore_errors=True)

    def reset(self) -> None:
        """Restore the working tree of a branch on top of main."""
        run(["git", "reset", "--quiet", "--hard", "main"], self.folder, ENVIRONMENT)
        run(["git", "checkout", "--quiet", "-B", "work"], self.folder, ENVIRONMENT)

    def read_with_git(self) -> float:
        """Measure Git's reading of the first-parent line and its blobs, in CPU seconds."""
        log = ["git", "log", "--first-parent", "--raw", "--no-renames", "--no-abbrev", "--root", "--format=", "main"]
        lines = run(log, self.folder, ENVIRONMENT)
        blobs = {line.split(b" ")[3] for line in lines.output.splitlines()}
        with tempfile.TemporaryFile() as names:
            names.write(b"\n".join(blobs) + b"\n")
            names.seek(0)
            read = subprocess.Popen(
                ["git", "cat-file", "--batch", "--buffer"],
                cwd=self.folder,
                env=ENVIRONMENT,
                stdin=names,
                stdout=subprocess.DEVNULL,
            )
            _, _, usage = os.wait4(read.pid, 0)
        return lines.cpu_s + usage.ru_utime + usage.ru_stime

    def schemactl(self, *arguments: str, folder: Path | None = None) -> Usage:
        """Run a command in the repository, or in another folder."""
        environment = ENVIRONMENT | {"SCHEMACTL_CACHE": str(self.cache)}
        return run([sys.executable, "-m", "schemactl", *arguments], folder or self.folder, environment)

    def check(self) -> Usage:
        """Run the first check."""
        shutil.rmtree(self.cache, ignore_errors=True)
        return self.schemactl("check")

    def edit_doc(self) -> Usage:
        """Run the hook after an edit of a doc."""
        return self._stage_field({"name": "memo", "type": ["null", "string"], "default": None, "doc": "A new field."})

    def break_readers(self) -> Usage:
        """Run the hook after a change with which new readers cannot read old messages."""
        return self._stage_field({"name": "memo", "type": "string"})

    def _stage_field(self, field: dict[str, object]) -> Usage:
        self._edit_definition(field)
        run(["git", "add", "--all"], self.folder, ENVIRONMENT)
        usage = self.schemactl("check", "--staged")
        self.reset()
        return usage

    def _edit_definition(self, field: dict[str, object]) -> None:
        path = self.folder / DEFINITION
        definition = json.loads(path.read_text(encoding="utf-8"))
        if "doc" in field:
            definition["fields"][0]["doc"] = field["doc"]
        else:
            definition["fields"].append(field)
        path.write_text(json.dumps(definition, indent=2), encoding="utf-8")

    def generate(self) -> Usage:
        """Generate the package, of which a second run makes only the changes."""
        return self.schemactl("generate", "--out", str(self.output / "generated"))

    def generate_one(self) -> Usage:
        """Generate the package again after a field was added to a topic."""
        self._edit_definition({"name": "memo", "type": ["null", "string"], "default": None})
        usage = self.generate()
        self.reset()
        return usage

    def run_served(self, command: str) -> Usage:
        """Run a command on the registry of the row `apply`, which a server provides."""
        command_line = [sys.executable, "-m", "schemactl", "serve", "--port", "18089", "--registry"]
        server = subprocess.Popen(
            [*command_line, "sqlite:.schemactl/registry.db"], cwd=self.folder, env=ENVIRONMENT, stdout=subprocess.PIPE
        )
        with server:
            if server.stdout is None:
                raise SystemExit("schemactl serve prints nothing")
            # The server prints its URL when it answers.
            server.stdout.readline()
            usage = self.schemactl(command, "--target", "served")
            server.terminate()
        return usage

    def plan_protos(self) -> Usage:
        """Plan `.proto` topics for an empty registry."""
        if not self.proto_folder.exists():
            make_protos(self.proto_folder, *self.proto_sizes, project=PROJECT)
        # The versions belong to other benchmarks.
        self.schemactl("check", folder=self.proto_folder)
        return self.schemactl("plan", "--target", "local", folder=self.proto_folder)

    def plan_protos_again(self) -> Usage:
        """Plan these topics again after an `apply`."""
        self.schemactl("apply", "--target", "local", "--yes", folder=self.proto_folder)
        return self.schemactl("plan", "--target", "local", folder=self.proto_folder)

    def write_even_site(self) -> Usage:
        """Write the site of the repository whose topics have equally many versions."""
        if not self.even_folder.exists():
            make(self.even_folder, *self.even_sizes, project=PROJECT)
        # The versions belong to other rows.
        self.schemactl("check", folder=self.even_folder)
        return self.schemactl("site", "--out", str(self.output / "even"), folder=self.even_folder)

    def write_even_site_of_change(self) -> Usage:
        """Write this site again after a commit that changes one topic."""
        tip = run(["git", "rev-parse", "main"], self.even_folder, ENVIRONMENT).output.decode().strip()
        path = next(self.even_folder.glob("topics/*/*.avsc"))
        definition = json.loads(path.read_text(encoding="utf-8"))
        definition["fields"].append({"name": "memo", "type": ["null", "string"], "default": None})
        path.write_text(json.dumps(definition, indent=2), encoding="utf-8")
        author = ["-c", "user.name=Dev", "-c", "user.email=dev@acme.example"]
        run(["git", *author, "commit", "--quiet", "--all", "--message", "Change"], self.even_folder, ENVIRONMENT)
        usage = self.write_even_site()
        run(["git", "reset", "--quiet", "--hard", tip], self.even_folder, ENVIRONMENT)
        return usage


def run(command: list[str], folder: Path, environment: dict[str, str]) -> Usage:
    """Run a command and measure it; standard error is kept for the error of an unexpected status."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        output.seek(0)
        errors.seek(0)
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, 2, 100):
            raise SystemExit(f"{' '.join(command)} exited with {code}: {errors.read().decode()[-2000:]}")
        return Usage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / _KB_PER_MB, code, output.read())


def main(rows: list[str], folder: Path, *, is_small: bool) -> None:
    """Print the chosen rows."""
    bench = Bench(folder, is_small=is_small)
    commits = bench.commits // 20
    measurements: dict[str, Callable[[], Usage]] = {
        "check": bench.check,
        "again": lambda: bench.schemactl("check"),
        "doc": bench.edit_doc,
        "break": bench.break_readers,
        "changelog": lambda: bench.schemactl("changelog", f"main~{commits}..main"),
        "diff": lambda: bench.schemactl("diff", "main~50..main"),
        "graph": lambda: bench.schemactl("graph"),
        "plan": lambda: bench.schemactl("plan", "--target", "local"),
        "apply": lambda: bench.schemactl("apply", "--target", "local", "--yes"),
        "plan-again": lambda: bench.schemactl("plan", "--target", "local"),
        "drift": lambda: bench.schemactl("drift", "--target", "local"),
        "status": lambda: bench.schemactl("status", "--target", "local"),
        "served-plan": lambda: bench.run_served("plan"),
        "served-drift": lambda: bench.run_served("drift"),
        "served-status": lambda: bench.run_served("status"),
        "proto": bench.plan_protos,
        "proto-again": bench.plan_protos_again,
        "generate": bench.generate,
        "regenerate": bench.generate,
        "one": bench.generate_one,
        "site": lambda: bench.schemactl("site", "--out", str(bench.output / "site")),
        "site-1000": bench.write_even_site,
        "site-again": bench.write_even_site,
        "site-one": bench.write_even_site_of_change,
    }
    unknown = [row for row in rows if row not in measurements]
    if unknown:
        raise SystemExit(f"{unknown[0]} is not a row; the rows are {', '.join(measurements)}")
    if not bench.cache.exists() and rows and "check" not in rows:
        bench.schemactl("check")
    git_s = bench.read_with_git()
    print(f"{'git':13} {git_s:7.2f} s", flush=True)
    for row in rows or measurements:
        usage = measurements[row]()
        print(
            f"{row:13} {usage.cpu_s:7.2f} s {usage.cpu_s / git_s:6.1f} times {usage.memory_mb:6.0f} MB   exit {usage.status}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--small", action="store_true", help="a tenth of the size")
    parser.add_argument("--folder", type=Path, help="where the repository is made and kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(arguments.rows, arguments.folder or Path(temporary), is_small=arguments.small)
