"""The files of a generated package, as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from schemactl.codegen.approved import Approved
from schemactl.codegen.names import CLASSES, RUNTIME, SCHEMAS, is_importable, module_paths
from schemactl.codegen.topic_module import HEADER, topic_module
from schemactl.columns.python_text import literal
from schemactl.columns.spark_type import UnsupportedBySpark
from schemactl.columns.struct import StructOptions
from schemactl.core.errors import InvalidSchema, SchemactlError
from schemactl.core.project import Generate
from schemactl.core.schema import Release
from schemactl.extracting.class_text import topic_classes

_PACKAGE: Final = '''\
"""Pulsar topics, one module each: what their messages are, and how they are decoded and encoded."""

from __future__ import annotations

from {runtime} import finder

TARGET: str | None = {target}
"""Whose version numbers these are; None: Git's, which every target has unless a record says otherwise."""

TOPICS: dict[str, str] = {{
{topics}}}
"""Topics, and the modules for them."""

topic = finder(TOPICS)
'''


def package_files(
    topics: Iterable[Approved],
    generate: Generate,
    *,
    release: Release,
    target: str | None = None,
    recursion_depth: int = 0,
) -> Mapping[str, str]:
    """Every file of the package that `generate` names, by its path below `generate.out`; the same input, the same bytes.

    It imports the installed schemactl; `packed.complete` gives it a run-time of its own.

    Args:
        topics: what to generate modules for.
        generate: the package's name, and for which Spark.
        release: whose Avro reads the definitions.
        target: whose version numbers the package has; None: Git's.
        recursion_depth: how often a record may hold itself before the field is dropped; 0: recursion is refused.

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
    root, runtime = generate.package.replace(".", "/"), f"{generate.package}.{RUNTIME}"
    rows = "".join(
        f"    {literal(str(name))}: {literal('.'.join((generate.package, *path)))},\n"
        for name, path in paths.items()
    )
    files = {
        f"{root}/__init__.py": HEADER
        + _PACKAGE.format(runtime=runtime, target=target and literal(target), topics=rows),
        f"{root}/{RUNTIME}.py": exports("schemactl.generated"),
        f"{root}/py.typed": "",
    }
    failed = []
    for name, path in paths.items():
        for length in (1, 2):
            files[f"{root}/{'/'.join(path[:length])}/__init__.py"] = HEADER
        try:
            module = topic_module(
                approved[name],
                path[-1],
                runtime=runtime,
                options=options,
                release=release,
                json_defaults=generate.json_defaults,
            )
        except (InvalidSchema, UnsupportedBySpark) as error:
            failed.append(f"{name}: {error.what}" + (f" ({error.fix})" if error.fix else ""))
            continue
        folder = f"{root}/{'/'.join(path[:2])}"
        files[f"{folder}/{path[-1]}.py"] = module.text
        files |= {f"{folder}/{SCHEMAS}/{file}": text for file, text in module.schemas.items()}
        number, reader = approved[name].reader
        if generate.classes and (
            text := topic_classes(name, number, reader, generate.classes, options, release)
        ):
            files[f"{folder}/{CLASSES}/__init__.py"] = HEADER
            files[f"{folder}/{CLASSES}/{path[-1]}.py"] = HEADER + text
    if failed:
        raise SchemactlError(
            "\n".join(["there are no columns for every topic:", *failed]),
            fix="change the definitions, or exclude the topics with --topic; for recursion give --recursion-depth",
        )
    return dict(sorted(files.items()))


def exports(source: str) -> str:
    """Return the module from which a package imports its run-time; `source` says where that is."""
    return f"{HEADER}from {source} import *\n"
