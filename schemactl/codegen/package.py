"""The files of a generated package, as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

from schemactl.codegen.approved import Approved
from schemactl.codegen.names import LICENSE, RUNTIME, is_importable, module_paths
from schemactl.codegen.spark_type import UnsupportedBySpark
from schemactl.codegen.struct import StructOptions
from schemactl.codegen.topic_module import HEADER, MARK, topic_module
from schemactl.errors import InvalidSchema, SchemactlError
from schemactl.installation import DISTRIBUTION
from schemactl.model import Generate, Release, TopicName

RUNTIME_PARTS: Final = ("generated.py", "codec/**/*.py", "spark/**/*.py")
"""The modules of schemactl that a generated package needs where it is used."""

_PACKAGE: Final = '''\
"""Codecs and Spark types of Pulsar topics, one module a topic."""

from __future__ import annotations

from importlib import import_module
from re import sub
from types import ModuleType

TOPICS: dict[str, str] = {{
{topics}}}
"""Topics, and the modules for them."""


def topic(name: str) -> ModuleType:
    """The module of a topic, by its full name or that of one of its partitions. Raises KeyError: the package has no such topic."""
    name = sub("-partition-[0-9]+$", "", name)
    if name not in TOPICS:
        raise KeyError(f"no topic of the package is called {{name}}: TOPICS has the full names")
    return import_module(TOPICS[name])
'''


def package_files(
    topics: Iterable[Approved],
    generate: Generate,
    *,
    release: Release,
    recursion_depth: int = 0,
    vendor: bool = False,
) -> Mapping[str, str]:
    """Every file of the package that `generate` names, by its path below `generate.out`; the same input, the same bytes.

    Args:
        topics: what to generate modules for.
        generate: the package's name, and for which Spark.
        release: whose Avro reads the definitions.
        recursion_depth: how often a record may hold itself before the field is dropped; 0: recursion is refused.
        vendor: the package carries the run-time with it, and needs no schemactl where it is used.

    Raises:
        SchemactlError: the package's name cannot be imported, or the columns of some topics cannot be made; all of a run
            are named.
    """
    if not is_importable(generate.package):
        raise SchemactlError(
            f"generate.package is {generate.package!r}, which Python cannot import",
            fix="write identifiers with dots between them, such as shop_schemas",
        )
    options = StructOptions(generate.spark, recursion_depth, as_decoded=True)
    approved = {one.topic.name: one for one in sorted(topics, key=lambda one: one.topic.name)}
    paths = module_paths(approved)
    root = generate.package.replace(".", "/")
    runtime = f"{generate.package}.{RUNTIME}" if vendor else "schemactl"
    files = {f"{root}/__init__.py": _package(generate.package, paths), f"{root}/py.typed": ""}
    refused = []
    for name, path in paths.items():
        for length in (1, 2):
            files[f"{root}/{'/'.join(path[:length])}/__init__.py"] = HEADER
        try:
            module = topic_module(
                approved[name],
                runtime=runtime,
                options=options,
                release=release,
                json_defaults=generate.json_defaults,
            )
        except (InvalidSchema, UnsupportedBySpark) as error:
            refused.append(f"{name}: {error.what}" + (f" ({error.fix})" if error.fix else ""))
        else:
            files[f"{root}/{'/'.join(path)}.py"] = module
    if refused:
        raise SchemactlError(
            "\n".join(["there are no columns for every topic:", *refused]),
            fix="change the definitions, or exclude the topics with --topic; for recursion give --recursion-depth",
        )
    if vendor:
        files |= {f"{root}/{RUNTIME}/{path}": text for path, text in _runtime_files().items()}
    return dict(sorted(files.items()))


def _package(package: str, paths: Mapping[TopicName, tuple[str, str, str]]) -> str:
    rows = "".join(f"    {str(name)!r}: {'.'.join((package, *path))!r},\n" for name, path in paths.items())
    return HEADER + _PACKAGE.format(topics=rows)


def _runtime_files() -> Mapping[str, str]:
    """Return the run-time's own files, each with a first line that says where it comes from."""
    source = Path(__file__).parent.parent
    header = f"{MARK}: a copy of its run-time (Apache-2.0), see `schemactl generate --vendor`.\n# ruff: noqa\n# fmt: off\n"
    files = {"__init__.py": HEADER}
    for part in RUNTIME_PARTS:
        for path in sorted(source.glob(part)):
            files[path.relative_to(source).as_posix()] = header + path.read_text(encoding="utf-8")
    files[LICENSE] = f"{MARK}: what follows is the licence of the files in this folder.\n\n{_license()}"
    return files


def _license() -> str:
    """Return the licence that this installation came with. Raises SchemactlError: somebody took it away."""
    text = metadata.distribution(DISTRIBUTION).read_text(f"licenses/{LICENSE}")
    if text is None:
        raise SchemactlError(
            "this installation of schemactl lacks its licence file, which a copy of the run-time must include",
            fix=f"pip install --force-reinstall {DISTRIBUTION}",
        )
    return text
