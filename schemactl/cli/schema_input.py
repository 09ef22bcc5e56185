"""Schemas given as options or files."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core.errors import DeclarationError, InvalidSchema, SchemactlError, UsageError
from schemactl.core.names import TopicName
from schemactl.core.project import Project, ProtoRendering
from schemactl.core.schema import WITHOUT_SCHEMA, SchemaInfo, SchemaType

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog


_TYPES_BY_SUFFIX: Final = {
    ".avsc": SchemaType.AVRO,
    ".proto": SchemaType.PROTOBUF_NATIVE,
    ".binpb": SchemaType.PROTOBUF_NATIVE,
    ".txt": SchemaType.EXTERNAL,
}
"""The default of --type for a definition, by the suffix of its file."""

_ANY_TOPIC: Final = TopicName("public", "default", "topic")
"""A name for the topic of a definition that is read without one."""


def add_schema_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that give a schema: its file, its type, and for protobuf its message and the form of a client."""
    add_options(
        parser,
        "--file FILE: the schema: .avsc, .proto, .binpb, .txt, a YAML declaration, or JSON as pulsar-admin uploads it",
    )
    add_options(
        parser,
        "--type TYPE: of an .avsc: AVRO (the default), JSON or PROTOBUF; without a file: STRING, INT64, ...",
        choices=[
            kind.name for kind in SchemaType if kind.value >= 0 and kind not in {*WITHOUT_SCHEMA, SchemaType.KEY_VALUE}
        ],
    )
    add_options(
        parser,
        "--message NAME: of a .proto: the root message's full name",
        "--reference FILE...: a file that FILE takes types from",
    )
    add_options(
        parser,
        "--language LANGUAGE: give a protobuf definition the form that Pulsar's client of this language sends: java, go or python",
        choices=get_args(ProtoRendering),
    )


def has_schema(args: argparse.Namespace) -> bool:
    """Return whether the command line has a schema."""
    return args.file is not None or args.type is not None


def read_schema(args: argparse.Namespace, context: Context, topic: TopicName) -> SchemaInfo:
    """Return the schema on the command line, for `topic`.

    Raises:
        UsageError: if there is no schema, or a part of it is missing.
        DeclarationError: if the file has problems.
    """
    from schemactl.formats import SPECS

    if args.file is None:
        if args.type is None or SPECS[SchemaType[args.type]].payload != "value":
            raise UsageError(
                "a schema is missing", fix="pass --file FILE, or --type STRING or another type without a definition"
            )
        return SchemaInfo(SchemaType[args.type])
    if not Path(context.directory, args.file).is_file():
        raise UsageError(f"--file {args.file}: no such file")
    info = read_file(
        args.file,
        context,
        topic=topic,
        type_=SchemaType[args.type] if args.type else None,
        message=args.message,
        references=args.reference,
    )
    return render_for_client(info, args.language)


def render_for_client(info: SchemaInfo, language: ProtoRendering | None) -> SchemaInfo:
    """Return a schema as the client of a language sends it; a definition that brokers reject is not changed."""
    from schemactl.formats import native_definitions

    try:
        return native_definitions.convert(info, language) if language else info
    except InvalidSchema:
        return info


def read_file(
    name: str,
    context: Context,
    *,
    topic: TopicName = _ANY_TOPIC,
    type_: SchemaType | None = None,
    message: str | None = None,
    references: Sequence[str] = (),
) -> SchemaInfo:
    """Return the schema in a file.

    Args:
        name: the path of the file, relative to the folder to work in.
        context: where to work.
        topic: the topic to select if the file declares several.
        type_: the type of a definition; by default the file's suffix determines it.
        message: the full name of the root message in a protobuf file.
        references: the files from which the definition uses types.

    Raises:
        UsageError: if the suffix is unknown, or `message` is missing.
        SchemactlError: if the file cannot be read, or has not the format of its suffix.
    """
    from schemactl.declare.files import decode
    from schemactl.formats import SPECS

    path = Path(context.directory, name)
    if not path.is_file():
        raise SchemactlError(f"there is no file {name}")
    suffix = path.suffix.lower()
    if suffix == ".json":
        from schemactl.declare.payload import find_name_problem, read_payload

        payload = read_payload(name, path.read_bytes())
        checked_topic = None if topic == _ANY_TOPIC else topic
        if problems := [*find_name_problem(payload.name, checked_topic, payload.text.locate(("name",)))]:
            raise DeclarationError(problems)
        return payload.build_info()
    if suffix in (".yaml", ".yml"):
        catalog = _build_catalog(path, path.name, path.read_bytes(), context)
        schemas = {name: declared.schema for name, declared in catalog.topics.items() if declared.schema}
        if not schemas:
            raise SchemactlError(f"{path.name} declares no schema")
        info = next(iter(schemas.values())) if len(schemas) == 1 else schemas.get(topic)
        if info is None:
            raise UsageError(f"{path.name} declares {', '.join(map(str, schemas))}, and not {topic}")
        return info
    if suffix not in _TYPES_BY_SUFFIX:
        raise UsageError(
            f"{name}: its extension is not known", fix="name an .avsc, .proto, .binpb, .txt, .yaml or .json file"
        )
    kind = type_ or _TYPES_BY_SUFFIX[suffix]
    if SPECS[kind].declared_as == "proto" and not message:
        raise UsageError("a .proto declares many messages", fix="name one: --message package.Name")
    if SPECS[kind].declared_as == "text":
        data = path.read_bytes()
        decode(path.name, data)
        # The registry says whether it knows the type; the project may be for an older release.
        return SchemaInfo(kind, data)
    schema: dict[str, Any] = {"type": kind.name, "definition": path.name}
    if message:
        schema["message"] = message
    if references:
        schema["references"] = [
            os.path.relpath(Path(context.directory, reference), path.parent) for reference in references
        ]
    # JSON is YAML, so the definition gets a declaration next to it.
    text = json.dumps({"topic": str(topic), "schema": schema})
    info = _build_catalog(path, "--file", text.encode(), context).topics[topic].schema
    assert info  # noqa: S101  the declaration has one
    return info


def _build_catalog(path: Path, name: str, data: bytes, context: Context) -> Catalog:
    """Return the catalog of the YAML `data`, as if it were a file called `name` next to `path`."""
    from schemactl.declare import document as declare_document
    from schemactl.declare import files as declare_files
    from schemactl.declare import project as declare_project
    from schemactl.declare import reader

    folder = path.parent.resolve()
    # References may name the files of the repository if the folder is in it, else only the files of the folder.
    files, rendering = declare_files.WorktreeFiles(str(folder)), None
    with suppress(SchemactlError):
        project, top = declare_project.load_project(context.directory, context.config)
        rendering = project.rendering
        if folder.is_relative_to(top):
            # Missing types are searched in the roots of the project, since generated packages have copies of all definitions.
            folders = (folder.relative_to(top).as_posix(), *project.roots)
            files = declare_files.WorktreeFiles(str(top), folders=folders)
    document = declare_document.read_documents((folder.relative_to(files.top) / name).as_posix(), data)
    declared = reader.build([document], files, Project(rendering=rendering), has_targets=False)
    if declared.problems:
        raise DeclarationError(declared.problems)
    return declared.catalog
