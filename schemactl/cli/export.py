"""`schemactl export`: the approved schemas for other tools."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.selection import add_filters, output_file
from schemactl.core.atomic_files import write
from schemactl.core.errors import InvalidSchema, SchemactlError, UsageError
from schemactl.core.json_values import json_text
from schemactl.core.names import select_known
from schemactl.core.wording import counted

if TYPE_CHECKING:
    from schemactl.core.catalog import Metadata, Topic
    from schemactl.core.names import TopicName
    from schemactl.core.project import Project
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.history import History

_FORMATS: Final = {
    "asyncapi": "one AsyncAPI 3 document of all topics, with Pulsar's bindings",
    "jsonschema": "a JSON Schema (draft 7) for each topic: its messages as JSON",
    "ddl": "CREATE TABLE for Spark SQL, for each topic",
    "datacontract": "an Open Data Contract Standard 3 contract for each topic",
    "avro": "the Avro definition of each topic that has one",
}
_SUFFIXES: Final = {
    "jsonschema": ".schema.json",
    "ddl": ".sql",
    "datacontract": ".odcs.yaml",
    "avro": ".avsc",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `export`."""
    parser.description = (
        "Print the approved schemas in force as other tools read them:\n\n"
        + "\n".join(f"  {name:<14}{text}" for name, text in _FORMATS.items())
        + "\n\nWhat a format cannot express is left out, and standard error says so."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl export asyncapi > asyncapi.json\n"
        "  schemactl export asyncapi 'shop/**' --server prod=pulsar+ssl://pulsar.example.com:6651 --out asyncapi.json\n"
        "  schemactl export jsonschema orders\n"
        "  schemactl export ddl --out tables/               a file for each topic: tables/shop/sales/orders.sql\n"
        "  schemactl export avro 'shop/sales/*' --out avro/\n"
    )
    parser.add_argument("kind", choices=tuple(_FORMATS), metavar="FORMAT", help=", ".join(_FORMATS))
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="the same as --topic")
    add_filters(parser)
    add_options(
        parser,
        "--out PATH: write there: asyncapi a file, the others a folder with a file for each topic (default: standard output)",
        "--server NAME=URL...: with asyncapi: a broker, as clients reach it: pulsar://HOST:6650; may be repeated",
        "--title TEXT: with asyncapi: the document's title (default: the name of the repository's folder)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the schemas are printed or written."""
    if args.kind != "asyncapi" and (args.server or args.title):
        raise UsageError("--server and --title belong to `export asyncapi`")
    project, _ = context.project()
    approved = context.approved(project)
    topics = [*_chosen(args, approved)]
    if args.kind == "asyncapi":
        text = _asyncapi(args, context, project, approved, topics)
        if args.out is None:
            print(text, end="")
            return 0
        path = output_file(args.out, context, name="asyncapi.json")
        write(path, text.encode(), below=context.top)
        context.report(f"wrote {counted(len(topics), 'topic')} to {path}")
        return 0
    texts = {}
    for topic, one in topics:
        try:
            texts[topic.name] = _DOCUMENTS[args.kind](
                topic, one, project, approved.catalog.metadata(topic.name)
            )
        except InvalidSchema:
            raise
        except SchemactlError as error:
            context.note(f"{topic.name}: left out: {error.what}")
    if args.out is not None:
        _write_files(args, context, texts)
    elif len(texts) > 1 and args.kind != "ddl":
        raise UsageError(
            f"{counted(len(texts), 'topic')}: each is a document of its own",
            fix="name a folder with --out DIR/",
        )
    else:
        print("\n".join(texts.values()), end="")
    return 0


def _chosen(args: argparse.Namespace, approved: History) -> Iterator[tuple[Topic, SchemaVersion]]:
    """Yield the topics that have a schema in force, with its version, whose definition is the text in force."""
    from dataclasses import replace

    catalog = approved.catalog
    patterns = [*args.topics, *args.topic]
    names = {name for name, topic in catalog.topics.items() if not topic.deleted}
    for name in sorted(select_known(names, patterns, args.namespace)):
        topic, number = catalog.topics[name], approved.current(name)
        if topic.schema is not None and number is not None:
            one = next(each for each in topic.versions if each.number == number)
            yield topic, replace(one.load(), info=topic.schema.load())


def _asyncapi(
    args: argparse.Namespace,
    context: Context,
    project: Project,
    approved: History,
    topics: Sequence[tuple[Topic, SchemaVersion]],
) -> str:
    from schemactl.publish import asyncapi

    servers = dict(map(asyncapi.server_of, args.server))
    title = args.title or context.folder_name
    version = approved.tip.short if approved.tip else "0"
    made = asyncapi.document(
        title, version, approved.catalog, topics, servers=servers, release=project.release
    )
    return json_text(made) + "\n"


def _json_schema(topic: Topic, one: SchemaVersion, project: Project, said: Metadata) -> str:
    from schemactl.publish.json_schema import json_schema

    title = f"{topic.name}, version {one.number}"
    made = json_schema(_info(one), project.release, title=title, description=said.description)
    return json_text(made) + "\n"


def _ddl(topic: Topic, one: SchemaVersion, project: Project, said: Metadata) -> str:
    from schemactl.codegen.topic_struct import decoded_options
    from schemactl.codegen.topics import module_paths
    from schemactl.publish.data_contract import create_table

    # Spark takes letters, digits and _ in a table's name.
    name = module_paths([topic.name])[topic.name][2]
    options = decoded_options(project.generate)
    return create_table(name, _info(one), project.release, options, said.description)


def _contract(topic: Topic, one: SchemaVersion, project: Project, said: Metadata) -> str:
    from schemactl.codegen.topic_struct import decoded_options
    from schemactl.publish.data_contract import contract_text, data_contract

    options = decoded_options(project.generate)
    return contract_text(data_contract(topic.name, one.number, _info(one), said, project.release, options))


def _avro(_topic: Topic, one: SchemaVersion, _project: Project, _said: Metadata) -> str:
    from schemactl.formats import spec

    info = _info(one)
    if spec(info).language != "avro":
        raise SchemactlError(f"{info.type.name} has no Avro definition")
    return info.schema.decode().rstrip("\n") + "\n"


def _info(one: SchemaVersion) -> SchemaInfo:
    assert one.info is not None  # noqa: S101  as it was chosen
    return one.info


_DOCUMENTS: Final = {"jsonschema": _json_schema, "ddl": _ddl, "datacontract": _contract, "avro": _avro}
"""What makes a topic's document of each format; SchemactlError: the format cannot express the schema."""


def _write_files(args: argparse.Namespace, context: Context, texts: Mapping[TopicName, str]) -> None:
    from schemactl.codegen.topics import module_paths

    folder = Path(context.directory, args.out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {args.out} is a file: name a folder for {counted(len(texts), 'file')}")
    paths = module_paths(texts)
    for topic, text in texts.items():
        tenant, namespace, name = paths[topic]
        write(folder / tenant / namespace / f"{name}{_SUFFIXES[args.kind]}", text.encode(), below=context.top)
    context.report(f"wrote {counted(len(texts), 'file')} to {args.out}")
