"""1,000 changed `.proto` files against `buf breaking`: wall time and memory, from images to the printed findings.

    python benchmarks/protobuf_check.py [--buf PATH] [--files 1000] [--rounds 5]

Both read the same two descriptor sets with source info, each in a separate process, and print their findings; the rounds
alternate, and the least time of each counts. The findings must be the same. Without `buf` ours is timed alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SCALARS = ("int32", "int64", "uint32", "bool", "string", "bytes", "double", "sint64", "fixed32")
WORDS = ("id", "name", "price", "count", "note", "zone", "email", "score", "label", "state", "total", "kind")


def main() -> None:
    """Print the table; stop if the findings differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buf", default=shutil.which("buf"))
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", nargs=3, metavar=("OLD", "NEW", "CATEGORY"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        report(*args.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder, "old.binpb"), Path(folder, "new.binpb")
        started = time.perf_counter()
        write_images(old, new, args.files)
        print(f"{args.files} files, each with one change; both sides compiled in {time.perf_counter() - started:.2f} s")
        for category in ("WIRE", "WIRE_JSON"):
            compare(old, new, category, buf=args.buf, rounds=args.rounds)


def compare(old: Path, new: Path, category: str, *, buf: str | None, rounds: int) -> None:
    """One line of the table."""
    commands = {"ours": [sys.executable, __file__, "--child", str(old), str(new), category]}
    if buf:
        config = json.dumps({"version": "v2", "breaking": {"use": [category]}})
        commands["buf"] = [buf, "breaking", str(new), "--against", str(old), "--config", config]
    best: dict[str, Run] = {}
    for _ in range(rounds):
        for name, command in commands.items():
            run = run_once(command)
            if name not in best or run.wall_s < best[name].wall_s:
                best[name] = run
    ours = best["ours"]
    line = f"{category:<10} ours {ours.wall_s:.2f} s, {ours.memory_mb:.0f} MB, {len(ours.lines)} findings"
    if buf:
        other = best["buf"]
        line += f"   buf {other.wall_s:.2f} s, {other.memory_mb:.0f} MB   ratio {ours.wall_s / other.wall_s:.2f}"
        if ours.lines != [fix_line(finding_line) for finding_line in other.lines]:
            raise SystemExit(f"{line}\nthe findings differ")
    print(line, flush=True)


def fix_line(line: str) -> str:
    """buf's line without the stray letter of one of its format strings."""  # noqa: D403  its name
    return line.replace('"q moved', '" moved')


@dataclass(frozen=True, slots=True)
class Run:
    """The time, memory and output of one process."""

    wall_s: float
    memory_mb: float
    lines: list[str]


def run_once(command: list[str]) -> Run:
    """Run `command` with its output in a file, so that it never waits for a reader."""
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        process = os.posix_spawnp(
            command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        )
        _, status, usage = os.wait4(process, 0)
        wall_s = time.perf_counter() - started
        if os.waitstatus_to_exitcode(status) not in (0, 100):
            raise SystemExit(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
        out.seek(0)
        lines = out.read().decode().splitlines()
    per_mb = 2**20 if sys.platform == "darwin" else 2**10
    return Run(wall_s, usage.ru_maxrss / per_mb, lines)


def report(old: str, new: str, category: str) -> None:
    """Print the findings of `find_violations`, line by line as buf prints them."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    from schemactl.formats.protobuf.buf_rules import find_violations
    from schemactl.formats.protobuf.descriptor import Image

    images = [Image.of(FileDescriptorSet.FromString(Path(path).read_bytes())) for path in (old, new)]
    findings = find_violations(old=images[0], new=images[1], category=category)  # type: ignore[arg-type]
    sys.stdout.write("".join(f"{one.file}:{one.line}:{one.column}:{one.message}\n" for one in findings))


def write_images(old: Path, new: Path, count: int) -> None:
    """Two descriptor sets of `count` files that differ in one place each."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    from schemactl.formats.protobuf.protoc import Proto, _run

    rng = random.Random(1)  # noqa: S311  no secret
    pairs = [file_pair(number, rng) for number in range(count)]
    for path, side in ((old, 0), (new, 1)):
        files = FileDescriptorSet()
        protos = [
            Proto("", f"p{number}.proto", {f"p{number}.proto": pair[side].encode()})
            for number, pair in enumerate(pairs)
        ]
        for data in _run(protos):
            if not isinstance(data, bytes):
                raise data
            files.MergeFromString(data)
        path.write_bytes(files.SerializeToString())


def file_pair(number: int, rng: random.Random) -> tuple[str, str]:
    """A file of five messages, an enum and a service, and the same with one line changed."""
    lines = ['syntax = "proto3";', f"package shop.p{number};", ""]
    for message in range(5):
        lines += ["// What is told of one thing.", f"message M{message} {{"]
        names = rng.sample(WORDS, 8)
        for field, name in enumerate(names, start=1):
            label = rng.choice(("", "", "optional ", "repeated "))
            kind = rng.choice((*SCALARS, f"M{rng.randrange(5)}", "Kind", "map<string, int64>"))
            lines.append(f"  {'' if kind.startswith('map') else label}{kind} {name} = {field};  // {name} of it")
        lines += ["}", ""]
    lines += ["enum Kind {", *(f"  KIND_{value} = {value};" for value in range(6)), "}", ""]
    lines += ["service Api {", *(f"  rpc Do{rpc}(M{rpc}) returns (M{4 - rpc});" for rpc in range(5)), "}", ""]
    changed = list(lines)
    at = rng.choice([index for index, line in enumerate(lines) if " = " in line and line.startswith("  ")])
    change_kind = rng.randrange(3)
    if change_kind == 0 and "//" in changed[at]:
        del changed[at]
    elif change_kind == 1 and "//" in changed[at]:
        changed[at] = f"  fixed64 {changed[at].split(' = ')[0].split()[-1]} = {changed[at].split(' = ')[1]}"
    else:
        changed[at] = changed[at].replace(" = ", "_renamed = ")
    return "\n".join(lines), "\n".join(changed)


if __name__ == "__main__":
    main()
