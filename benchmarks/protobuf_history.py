"""Measure the derivation of versions of `.proto` topics, against protoc over the same trees.

    python benchmarks/protobuf_history.py CLONE [--topics 1 3 40] [--rounds N] [--folder FOLDER]

CLONE is a Git folder with a history of `.proto` files, such as a clone of https://github.com/temporalio/api. Its history becomes the
history of a project, in which each topic is declared with the commit that adds its message. For each number of topics:

* protoc: one process runs protoc once for each commit, over all files that topics name, without source info;
* cold: all versions of all topics are derived without a cache.

Times are CPU seconds with child processes, the medians of the rounds; protoc's own time is without its start and without writing the
files. FOLDER keeps the repositories for the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from history import derive
from repositories import ENVIRONMENT

from schemactl.history.store import repository_folder

_LOG = (
    "log",
    "--first-parent",
    "--reverse",
    "--raw",
    "-z",
    "--no-renames",
    "--no-abbrev",
    "--root",
    "-m",
    "--format=commit %H",
)
_DECLARATION = re.compile(rb"^(?:package ([\w.]+);|message (\w+))", re.MULTILINE)
_NOT_OF_TOPICS = ("google/", "dependencies/")


class Repository:
    """A project with the history of a clone's `.proto` files.

    Attributes:
        folder: the working tree.
        entries: the `.proto` files that topics name.
    """

    def __init__(self, clone: Path, folder: Path, topics: int) -> None:
        self.folder = folder
        self._clone = clone
        messages = self._select_messages(topics)
        self.entries = sorted({path for path, _ in messages.values()})
        if not folder.exists():
            self._make(messages)
        self.cache = Path(repository_folder(folder / ".git") or "")

    def _git(self, *arguments: str) -> bytes:
        return subprocess.run(
            ["git", *arguments], cwd=self._clone, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE
        ).stdout

    def _select_messages(self, topics: int) -> dict[str, tuple[str, str]]:
        """Return messages, spread over the files, by topic: their file and full name.

        Messages that exist since the first quarter of the history are preferred.
        """
        commits = (
            self._git("log", "--first-parent", "--reverse", "--format=%H", "HEAD", "--", "*.proto").decode().split()
        )
        early_messages = {*self._list_messages(commits[len(commits) // 4])}
        all_messages = [*self._list_messages("HEAD")]
        messages = [message for message in all_messages if message in early_messages]
        if len(messages) < topics:
            messages = all_messages
        step = len(messages) / topics
        chosen = [messages[int((number + 0.5) * step)] for number in range(topics)]
        return {f"t{number:03}": message for number, message in enumerate(chosen)}

    def _list_messages(self, commit: str) -> Iterator[tuple[str, str]]:
        """Yield the file and the full name of each message at the top level of a file."""
        paths = self._git("ls-tree", "-r", "--name-only", commit).decode().splitlines()
        for path in paths:
            if path.endswith(".proto") and not path.startswith(_NOT_OF_TOPICS):
                package = ""
                for match in _DECLARATION.finditer(self._git("cat-file", "blob", f"{commit}:{path}")):
                    package = f"{match[1].decode()}." if match[1] else package
                    if match[2]:
                        yield path, f"{package}{match[2].decode()}"

    def _make(self, messages: dict[str, tuple[str, str]]) -> None:
        """Write the repository."""
        undeclared = dict(messages)
        project: dict[str, bytes | None] = {"schemactl.yaml": b"version: 1\nroots: [topics]\n"}
        self.folder.mkdir(parents=True)
        git = ["git", "-C", str(self.folder)]
        subprocess.run([*git, "init", "-q", "-b", "main"], env=ENVIRONMENT, check=True)
        with subprocess.Popen([*git, "fast-import", "--quiet"], env=ENVIRONMENT, stdin=subprocess.PIPE) as process:
            assert process.stdin  # noqa: S101  a pipe was requested
            for number, changes in enumerate(read_changes(self._git(*_LOG, "HEAD", "--", "*.proto"))):
                texts = {path: self._git("cat-file", "blob", blob.decode()) if blob else None for path, blob in changes}
                files = {f"proto/{path}": text for path, text in texts.items()} | project
                project = {}
                for topic, (path, message) in list(undeclared.items()):
                    text = texts.get(path)
                    if text and re.search(rf"^message {message.rpartition('.')[2]}\b".encode(), text, re.MULTILINE):
                        files[f"topics/{topic}.yaml"] = declare(topic, path, message)
                        del undeclared[topic]
                process.stdin.write(commit_text(number, files))
        if process.returncode:
            raise SystemExit(f"git fast-import ended with {process.returncode}")
        subprocess.run([*git, "reset", "-q", "--hard", "main"], env=ENVIRONMENT, check=True)

    def measure_protoc(self) -> float:
        """Return the CPU seconds of protoc over the trees of all commits."""
        command = [sys.executable, __file__, str(self.folder), "--protoc", *self.entries]
        output = subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE).stdout
        return float(output)

    def measure_cold(self) -> dict[str, float]:
        """Return the figures of a derivation without a cache."""
        shutil.rmtree(self.cache, ignore_errors=True)
        return derive(self.folder)


def declare(topic: str, path: str, message: str) -> bytes:
    """Return the declaration of a topic."""
    schema = {
        "type": "PROTOBUF_NATIVE",
        "definition": f"../proto/{path}",
        "message": message,
        "references": ["../proto/"],
    }
    return json.dumps({"topic": f"acme/api/{topic}", "schema": schema}).encode() + b"\n"


def commit_text(number: int, files: dict[str, bytes | None]) -> bytes:
    """Return a commit as `git fast-import` reads it."""
    seconds = 1_600_000_000 + number * 3600
    lines = [b"commit refs/heads/main\ncommitter A <a@example.com> %d +0000\ndata 1\n%d\n" % (seconds, number % 10)]
    for path, text in files.items():
        if text is None:
            lines.append(b"D %b\n" % path.encode())
        else:
            lines.append(b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(text), text))
    return b"".join(lines)


def run_protoc(folder: Path, entries: Sequence[str]) -> None:
    """Compile the entries with protoc after each commit, and print the CPU seconds of protoc."""
    import grpc_tools
    from grpc_tools._protoc_compiler import run_main

    include = Path(next(iter(grpc_tools.__path__)), "_proto")
    log = subprocess.run(["git", *_LOG, "main", "--", "proto"], cwd=folder, check=True, stdout=subprocess.PIPE).stdout
    cpu_s = 0.0
    with (
        tempfile.TemporaryDirectory() as tree,
        subprocess.Popen(
            ["git", "cat-file", "--batch"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as git,
        open(os.devnull, "w") as no_output,  # noqa: PTH123
    ):
        os.dup2(no_output.fileno(), 2)
        assert git.stdin and git.stdout  # noqa: S101, PT018  pipes were requested
        for changes in read_changes(log):
            for path, blob in changes:
                file = Path(tree, path)
                if blob is None:
                    file.unlink(missing_ok=True)
                    continue
                git.stdin.write(blob + b"\n")
                git.stdin.flush()
                size = int(git.stdout.readline().split()[2])
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(git.stdout.read(size))
                git.stdout.read(1)
            present = [entry for entry in entries if Path(tree, "proto", entry).is_file()]
            if present:
                options = [f"-I{tree}/proto", f"-I{include}", "--include_imports", f"--descriptor_set_out={tree}/out"]
                before = os.times()
                run_main([argument.encode() for argument in ["protoc", *options, *present]])
                after = os.times()
                cpu_s += after.user + after.system - before.user - before.system
    sys.stdout.write(f"{cpu_s}\n")


def read_changes(log: bytes) -> Iterator[list[tuple[str, bytes | None]]]:
    """Yield for each commit of a log the changed files: their paths and blob ids, or None for a file that was removed."""
    tokens = iter(log.split(b"\0"))
    changes: list[tuple[str, bytes | None]] = []
    for token in tokens:
        facts = token.lstrip(b"\n")
        if facts.startswith(b"commit "):
            if changes:
                yield changes
            changes = []
            facts = facts.partition(b"\n")[2]
        if facts.startswith(b":"):
            _, mode, _, blob, _ = facts.split(b" ")
            changes.append((next(tokens).decode(), blob if mode.startswith(b"100") else None))
    yield changes


def main() -> None:
    """Print one line for each number of topics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--topics", type=int, nargs="+", default=[1, 3, 40])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--protoc", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.protoc:
        run_protoc(args.clone, args.protoc)
        return
    with tempfile.TemporaryDirectory() as temporary:
        for topics in args.topics:
            repository = Repository(args.clone, (args.folder or Path(temporary)) / f"topics-{topics}", topics)
            protoc_s, cold_s, memory_mb = [], [], []
            for _ in range(args.rounds):
                protoc_s.append(repository.measure_protoc())
                figures = repository.measure_cold()
                cold_s.append(figures["cpu_s"])
                memory_mb.append(figures["memory_mb"])
            ratio = f"{median(cold_s) / median(protoc_s):.2f}" if median(protoc_s) else "-"
            print(
                f"{topics:3} topics: protoc {median(protoc_s):.1f} s, cold {median(cold_s):.1f} s, "
                f"ratio {ratio}, {max(memory_mb):.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
