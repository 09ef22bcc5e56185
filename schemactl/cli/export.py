"""`export`, `site` and `graph`: the approved schemas for other tools, as a catalogue, and as a graph of their uses."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.topic_selection import States, add_filters, output_file
from schemactl.core.atomic_files import read, remove, write
from schemactl.core.errors import DeclarationError, HistoryError, InvalidSchema, SchemactlError, UsageError
from schemactl.core.json_values import json_text
from schemactl.core.names import select_known
from schemactl.core.wording import counted

if TYPE_CHECKING:
    from schemactl.core.catalog import Metadata, Topic
    from schemactl.core.names import TopicName
    from schemactl.core.project import Project
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.history import History


# `schemactl export`.


_FORMATS: Final = {
    "asyncapi": "one AsyncAPI 3 document of all topics, with Pulsar's bindings",
    "jsonschema": "a JSON Schema (draft 7) for each topic: its messages as JSON",
    "ddl": "CREATE TABLE for Spark SQL, for each topic",
    "datacontract": "an Open Data Contract Standard 3 contract for each topic",
    "avro": "the Avro definition of each topic that has one",
}
_SUFFIXES: Final = {"jsonschema": ".schema.json", "ddl": ".sql", "datacontract": ".odcs.yaml", "avro": ".avsc"}


def configure_export(parser: argparse.ArgumentParser) -> None:
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


def run_export(args: argparse.Namespace, context: Context) -> int:
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
            texts[topic.name] = _DOCUMENTS[args.kind](topic, one, project, approved.catalog.metadata(topic.name))
        except InvalidSchema:
            raise
        except SchemactlError as error:
            context.note(f"{topic.name}: left out: {error.what}")
    if args.out is not None:
        _write_files(args, context, texts)
    elif len(texts) > 1 and args.kind != "ddl":
        raise UsageError(
            f"{counted(len(texts), 'topic')}: each is a document of its own", fix="name a folder with --out DIR/"
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
    made = asyncapi.document(title, version, approved.catalog, topics, servers=servers, release=project.release)
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


# `schemactl site`.


_LISTED = ".schemactl-site"
"""The file that lists what was written: the next run removes what is no longer part of the site, and nothing else."""


def configure_site(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `site`."""
    parser.description = (
        "Write a catalogue of the approved topics as static pages: fields, versions, who can read whom, environments, types and "
        "their users, changes, code to paste, with a search. It needs no server, and no page asks any other address for anything."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl site --out public                    open public/index.html\n"
        "  schemactl site --out public --title 'Events of Acme'\n"
        "  schemactl site --out public --namespace shop/sales\n"
    )
    add_options(
        parser,
        "--out DIR: the folder of the pages; what an earlier run left there and this one does not write is removed",
        required=True,
    )
    add_options(parser, "--title TEXT: what the catalogue is called (default: the name of the repository's folder)")
    add_filters(parser)


def run_site(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the pages are written."""
    try:
        from schemactl.publish.site_catalog import Catalogue, TargetHistory
        from schemactl.publish.site_pages import Site
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "pyarrow", "numpy"):
            raise
        raise SchemactlError(
            f"the catalogue needs {error.name}, which is not installed", fix='pip install "pulsar-schemactl[site]"'
        ) from None
    project, _ = context.project()
    approved = context.approved(project)
    names = sorted(select_known(approved.catalog.topics, args.topic, args.namespace))
    out = Path(context.directory, args.out)
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {args.out} is a file: name a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / _LISTED).is_file():
        raise UsageError(f"--out {args.out} has files and no catalogue: name an empty folder, or a new one")
    # From here on the folder is a catalogue's, whenever this is interrupted.
    before = read(out / _LISTED, below=context.top) or b""
    write(out / _LISTED, before, below=context.top)
    targets = [TargetHistory(name, at) for name, at in _at_targets(project, approved, context).items()]
    written: set[str] = set()

    def keep(path: str, text: str) -> None:
        write(out / path, text.encode(), below=context.top)
        written.add(path)

    title = args.title or context.folder_name
    catalogue = Catalogue(approved, project, _authors(approved, context), targets)
    progress = context.progress("writing pages", "topics")
    count = Site(catalogue, title, keep).write(names, progress=progress)
    for path in {*before.decode().splitlines()} - written:
        if ".." not in Path(path).parts and not Path(path).is_absolute():
            remove(out / path, below=context.top)
    write(out / _LISTED, "".join(f"{path}\n" for path in sorted(written)).encode(), below=context.top)
    context.report(
        f"wrote {counted(count, 'topic')}, {counted(len(written), 'file')}: {args.out.rstrip('/')}/index.html"
    )
    return 0


def _at_targets(project: Project, approved: History, context: Context) -> Mapping[str, History | None]:
    """Return the approved history as far as each target has it; None where its position is not known here."""
    from schemactl.history.target_history import read_effective

    found: dict[str, History | None] = {}
    for name, target in project.targets.items():
        found[name] = None
        with suppress(HistoryError):
            found[name] = read_effective(context.repository, project, target, whole=approved)
    return found


def _authors(approved: History, context: Context) -> dict[str, str]:
    from schemactl.cli.diff import read_authors

    ids = {each.commit.id for topic in approved.catalog.topics.values() for each in topic.versions if each.commit}
    return read_authors(context.repository, ids)


# `schemactl graph`.


def configure_graph(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `graph`."""
    parser.description = (
        "Who uses what, as the files here declare it: topics use types, types use types, and files define them. With a NAME: what "
        "uses it and what it uses, itself or through others. Without one: the types and files that several topics use; JSON has all."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl graph                         what do several topics share?\n"
        "  schemactl graph Money                   who uses this type?\n"
        "  schemactl graph common/money.avsc       who is made of this file?\n"
        "  schemactl graph orders                  what is this topic made of?\n"
        "  schemactl graph --format mermaid        for Markdown\n"
        "  schemactl graph --format dot | dot -Tsvg > graph.svg\n"
    )
    parser.add_argument(
        "node", metavar="NAME", nargs="?", help="a type, a file or a topic, by as much of its end as is unambiguous"
    )
    add_format(parser, "text", "mermaid", "dot", "json")


def run_graph(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the graph is printed."""
    from schemactl.publish import usage_graph as report
    from schemactl.publish.usage_graph import read_usage

    states = States(context)
    declared = states.work
    if declared.problems:
        raise DeclarationError(declared.problems)
    usage = read_usage(states.files, declared)
    node = usage.find(args.node) if args.node else None
    if args.format == "text":
        context.report(report.text(usage, node, color=context.color))
        return 0
    part = usage.around(node) if node else usage
    if args.format == "json":
        print(report.json(part, node))
    else:
        print({"mermaid": report.mermaid, "dot": report.dot}[args.format](part if node else part.shared()))
    return 0
