"""Record how Pulsar's clients in Java, Go and Python render the classes of proto_sets.yaml, in tests/corpus/native_renderings.jsonl.gz.

It also writes the files of protobuf-java that differ from protoc's to schemactl/formats/protobuf/java_files.binpb.

    python tests/formats/renderings/record.py FOLDER

It needs Java and Maven with the jars of the broker (see tests/broker_recipe), Go, and Pulsar's Python client. FOLDER must be empty, and gets all generated files.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
import zipfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.descriptor_pb2 import FileDescriptorSet

HERE = Path(__file__).parent


class ProtoSet:
    """The `.proto` files of one definition: its name, root message, the file that declares it, and the texts by import name."""

    def __init__(self, name: str, message: str, entry: str, files: dict[str, str]) -> None:
        self.name = name
        self.message = message
        self.entry = entry
        self.files = files


SETS = [ProtoSet(**values) for values in yaml.load((HERE / "proto_sets.yaml").read_bytes(), yaml.CSafeLoader)]
CORPUS = HERE.parents[1] / "corpus" / "native_renderings.jsonl.gz"
JARS = Path(os.environ.get("SCHEMACTL_BROKER_CACHE") or HERE.parents[2] / ".broker") / "lib-4.0.7"
JAVA_FILES = HERE.parents[2] / "schemactl" / "formats" / "protobuf" / "java_files.binpb"
MAX_GO_TEXTS = 8
GO = {"GOFLAGS": "-mod=mod -buildvcs=false"}
GO_DRAWS = 400
"""How often the Go client renders a class: the order of its files is random."""


def run(*command: object, folder: Path | None = None, **environment: str) -> str:
    """Run a command, and return what it prints."""
    variables = {**os.environ, **environment}
    result = subprocess.run(
        [*map(str, command)], cwd=folder, env=variables, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    )
    return result.stdout


def fetch_protoc() -> str:
    """Return the path of protoc 3.25.5: Pulsar's Java client takes no classes of a newer one."""
    return run("sh", HERE / "protoc.sh").strip()


def write_sources(folder: Path) -> None:
    """Write the `.proto` files of all sets."""
    for proto_set in SETS:
        for name, text in proto_set.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def compile_python(sources: Path, out: Path) -> dict[str, Any]:
    """Return the class that protoc generates for Python of the root message of each set."""
    out.mkdir()
    names = [name for proto_set in SETS for name in proto_set.files]
    run(sys.executable, "-m", "grpc_tools.protoc", f"-I{sources}", f"--python_out={out}", *names)
    sys.path.insert(0, str(out))
    messages = {}
    for proto_set in SETS:
        message: Any = import_module(
            proto_set.entry.removesuffix(".proto").replace("/", ".").replace("-", "_") + "_pb2"
        )
        for part in find_nested_name(proto_set).split("."):
            message = getattr(message, part)
        messages[proto_set.name] = message
    return messages


def record_python(sources: Path, out: Path) -> dict[str, str]:
    """Return the text that Pulsar's Python client sends for each set."""
    client_schema: Any = import_module("pulsar.schema")
    return {
        name: client_schema.ProtobufNativeSchema(message).schema_info().schema()
        for name, message in compile_python(sources, out).items()
    }


def find_nested_name(proto_set: ProtoSet) -> str:
    """Return the name of the root message without its package, which has only lower-case letters."""
    return ".".join(part for part in proto_set.message.split(".") if part[0].isupper())


def compile_java(sources: Path, out: Path, protoc: str) -> tuple[str, list[str]]:
    """Compile the classes of all sets that protoc compiles for Java; return the class path and NAME=CLASS for each set."""
    generated, classes, shipped = out / "generated", out / "classes", out / "shipped"
    generated.mkdir(parents=True)
    classes.mkdir()
    with zipfile.ZipFile(next(JARS.glob("protobuf-java-3.*.jar"))) as jar:
        jar.extractall(shipped, [name for name in jar.namelist() if name.endswith(".proto")])
    for proto_set in SETS:
        try:
            run(protoc, f"-I{sources}", f"-I{shipped}", f"--java_out={generated}", *proto_set.files)
        except subprocess.CalledProcessError:
            sys.stderr.write(f"java: {proto_set.name} is not compiled\n")
    (out / "RegisteredSchema.java").write_text(read_snippet("java"), encoding="utf-8")
    path = f"{classes}:{JARS}/*"
    programs = [HERE / "Renderings.java", out / "RegisteredSchema.java"]
    (out / "sources").write_text("\n".join(map(str, [*generated.rglob("*.java"), *programs])))
    run("javac", "-nowarn", "-encoding", "UTF-8", "-cp", path, "-d", classes, f"@{out / 'sources'}")
    arguments = []
    for proto_set in SETS:
        ending = find_nested_name(proto_set).replace(".", "$") + ".class"
        for file in sorted(classes.rglob(f"*{ending}")):
            if file.name == ending or file.name.endswith(f"${ending}"):
                name = str(file.relative_to(classes)).removesuffix(".class").replace("/", ".")
                if proto_set.name in name.split(".") or ("." not in name and proto_set.name == "unpackaged"):
                    arguments.append(f"{proto_set.name}={name}")
                    break
    return path, arguments


def record_java(sources: Path, out: Path, protoc: str) -> dict[str, str]:
    """Return the text that Pulsar's Java client sends for each set that its protoc compiles."""
    path, arguments = compile_java(sources, out, protoc)
    lines = [line.split(" ") for line in run("java", "-cp", path, "Renderings", *arguments).splitlines()]
    return {line[1]: base64.b64decode(line[2]).decode() for line in lines if line[0] == "RENDERED"}


def compile_go(sources: Path, out: Path) -> Path:
    """Compile a program with the messages of all sets that protoc-gen-go compiles, and return its path."""
    out.mkdir()
    (out / "go.mod").write_text((HERE / "go.mod.txt").read_text())
    run("go", "build", "-o", out / "protoc-gen-go", "google.golang.org/protobuf/cmd/protoc-gen-go", folder=out, **GO)
    names = sorted({name for proto_set in SETS for name in proto_set.files})
    packages = {name: f"f{number}" for number, name in enumerate(names)}
    mapping = [f"--go_opt=M{name}=renderings/{package}" for name, package in packages.items()]
    compiled = []
    for proto_set in SETS:
        command = (sys.executable, "-m", "grpc_tools.protoc", f"-I{sources}", f"--go_out={out}")
        plugin = f"--plugin=protoc-gen-go={out / 'protoc-gen-go'}"
        try:
            run(*command, plugin, "--go_opt=module=renderings", *mapping, *proto_set.files)
            compiled.append(proto_set)
        except subprocess.CalledProcessError:
            sys.stderr.write(f"go: {proto_set.name} is not compiled\n")
    imports = "\n".join(f'\t"renderings/{packages[proto_set.entry]}"' for proto_set in compiled)
    messages = "\n".join(
        f'\t"{proto_set.name}": &{packages[proto_set.entry]}.{find_nested_name(proto_set).replace(".", "_")}{{}},'
        for proto_set in compiled
    )
    program = (HERE / "renderings.go.txt").read_text().replace("/*imports*/", imports).replace("/*messages*/", messages)
    (out / "main.go").write_text(program)
    head = 'package main\n\nimport (\n\t"bytes"\n\t"os"\n\n\t"github.com/apache/pulsar-client-go/pulsar"\n)\n\n'
    (out / "registered.go").write_text(head + read_snippet("go"))
    run("go", "build", "-o", out / "program", ".", folder=out, **GO)
    return out / "program"


def record_go(sources: Path, out: Path) -> dict[str, dict[str, int]]:
    """Return the most frequent texts that Pulsar's Go client sends for each set, with their counts in `GO_DRAWS`."""
    texts: dict[str, Counter[str]] = {}
    for line in run(compile_go(sources, out), GO_DRAWS).splitlines():
        name, text = json.loads(line)
        texts.setdefault(name, Counter())[text] += 1
    return {name: dict(counts.most_common(MAX_GO_TEXTS)) for name, counts in texts.items()}


def read_snippet(language: str) -> str:
    """Return the code for a language on the page about the forms, which sends the registered text."""
    page = (HERE.parents[2] / "docs" / "how-to" / "protobuf-forms.md").read_text(encoding="utf-8")
    return page.split(f"```{language}\n")[1].split("```")[0]


def write_java_files(java: dict[str, str]) -> None:
    """Write the files of protobuf-java whose content depends on its release, as the client rendered them."""
    files = {}
    for text in java.values():
        descriptor_set = FileDescriptorSet.FromString(base64.b64decode(json.loads(text)["fileDescriptorSet"]))
        files.update({file.name: file for file in descriptor_set.file})
    names = [f"google/protobuf/{name}.proto" for name in ("api", "descriptor", "type")]
    JAVA_FILES.write_bytes(FileDescriptorSet(file=[files[name] for name in names]).SerializeToString())


def main(folder: Path) -> None:
    """Record all sets."""
    sources = folder / "sources"
    write_sources(sources)
    python = record_python(sources, folder / "python")
    java = record_java(sources, folder / "java", fetch_protoc())
    go = record_go(sources, folder / "go")
    write_java_files(java)
    lines = [
        json.dumps(
            {
                "name": proto_set.name,
                "message": proto_set.message,
                "entry": proto_set.entry,
                "files": proto_set.files,
                "java": java.get(proto_set.name),
                "python": python[proto_set.name],
                "go": go.get(proto_set.name),
            },
            ensure_ascii=False,
        )
        for proto_set in SETS
    ]
    CORPUS.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    sys.stdout.write(f"{len(lines)} sets, {CORPUS.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
