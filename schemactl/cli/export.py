"""`export`: print the approved schemas in the formats of other tools."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.topic_selection import add_filters, find_number_in_force, find_part, resolve_output_file
from schemactl.core.atomic_files import write
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.json_values import json_text
from schemactl.core.names import TopicName, find_matching_topics, format_kind_name, select_known_topics
from schemactl.core.terminal import format_table
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.core.catalog import Metadata, Topic
    from schemactl.core.project import Project
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.history.approved_history import History
    from schemactl.publish.sql_dialects import Dialect


def configure_export(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `export`."""
    parser.description = (
        "Print the approved schemas in force as other tools read them:\n\n"
        + "\n".join(format_table([(name, entry.summary) for name, entry in _FORMATS.items()], indent=2))
        + "\n\nParts that a format cannot express are omitted, with a message on standard error."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl export asyncapi > asyncapi.json\n"
        "  schemactl export asyncapi 'shop/**' --server prod=pulsar+ssl://pulsar.example.com:6651 --out asyncapi.json\n"
        "  schemactl export jsonschema orders\n"
        "  schemactl export ddl --out tables/               a file for each topic: tables/shop/sales/orders.sql\n"
        "  schemactl export ddl orders --dialect trino\n"
        "  schemactl export avro 'shop/sales/*' --out avro/\n"
        "  schemactl export schemainfo orders > orders.json\n"
    )
    parser.add_argument("kind", choices=tuple(_FORMATS), metavar="FORMAT", help=", ".join(_FORMATS))
    parser.add_argument(
        "topics", nargs="*", metavar="TOPIC", help="the same as --topic, or TOPIC#KIND for one of its kinds of events"
    )
    add_filters(parser)
    add_options(
        parser,
        "--out PATH: write there: asyncapi a file, the others a folder with a file for each topic (default: standard output)",
        "--server NAME=URL...: with asyncapi: a broker, as clients reach it: pulsar://HOST:6650; may be repeated",
        "--title TEXT: with asyncapi: the document's title (default: the name of the repository's folder)",
    )
    add_options(
        parser,
        "--dialect ENGINE: with ddl: the SQL of spark (the default), trino, flink or hive",
        choices=["spark", "trino", "flink", "hive"],
    )


def run_export(args: argparse.Namespace, context: Context) -> int:
    """Print the schemas, or write them to files with --out."""
    if args.kind != "asyncapi" and (args.server or args.title):
        raise UsageError("--server and --title require `export asyncapi`")
    if args.kind != "ddl" and args.dialect:
        raise UsageError("--dialect requires `export ddl`")
    project, _ = context.project()
    approved = context.approved(project, topics=[*args.topics, *args.topic], namespaces=args.namespace)
    topics = [*_select_topics(args, approved)]
    render = _FORMATS[args.kind].render
    if render is None:
        from schemactl.publish import asyncapi

        servers = dict(map(asyncapi.parse_server, args.server))
        title = args.title or context.folder_name
        document_version = approved.tip.short if approved.tip else "0"
        document = asyncapi.make_document(
            title, document_version, approved.catalog, topics, servers=servers, release=project.release
        )
        text = json_text(document.content) + "\n"
        for name, reason in document.skipped.items():
            context.note(f"{name}: left out: {reason}")
        if args.out is None:
            print(text, end="")
            return 0
        path = resolve_output_file(args.out, context, name="asyncapi.json")
        write(path, text.encode(), below=context.top)
        context.report(f"wrote {format_count(len(document.content['channels']), 'topic')} to {path}")
        return 0
    dialect: Dialect = args.dialect or "spark"
    texts = {}
    for topic, version in topics:
        assert version.info  # noqa: S101  `_select_topics` selects only versions with a schema
        metadata = approved.catalog.metadata(topic.name)
        exported = _ExportedSchema(topic, version.number, version.info, metadata, project, dialect)
        try:
            texts[topic.name, topic.kind] = render(exported)
            if args.kind == "ddl" and dialect == "spark":
                context.note(*_find_equal_names(exported))
        except SchemactlError as error:
            context.note(f"{exported.name}: left out: {error.message}")
        except RecursionError:
            context.note(f"{exported.name}: left out: it is nested too deeply")
    if args.out is not None:
        _write_files(args, context, texts)
    elif len(texts) > 1 and args.kind != "ddl":
        raise UsageError(
            f"{format_count(len(texts), 'schema')}: each is a separate document", fix="name a folder with --out DIR/"
        )
    else:
        print("\n".join(texts.values()), end="")
    return 0


def _select_topics(args: argparse.Namespace, approved: History) -> Iterator[tuple[Topic, SchemaVersion]]:
    """Yield the topics that have a schema in force, each with its version in force and the current text of its definition.

    A topic with several kinds of events is yielded once for each kind, or for the kinds that the command line names as TOPIC#KIND.
    """
    catalog = approved.catalog
    names = {name for name, topic in catalog.topics.items() if not topic.deleted}
    patterns = [*args.topic]
    chosen_kinds: dict[TopicName, set[str]] = {}
    for text in args.topics:
        if "#" in text and not find_matching_topics(text, names):
            part = find_part(text, catalog)
            chosen_kinds.setdefault(part.name, set()).add(part.kind)
            patterns.append(str(part.name))
        else:
            patterns.append(text)
    for name in sorted(select_known_topics(names, patterns, args.namespace)):
        for part in catalog.topics[name].split():
            if name in chosen_kinds and part.kind not in chosen_kinds[name]:
                continue
            number = find_number_in_force(approved, part)
            if part.schema is not None and number is not None:
                version = next(version for version in part.versions if version.number == number)
                yield part, replace(version.load(), info=part.schema.load())


class _ExportedSchema(NamedTuple):
    """The schema in force of a topic, or of one of its kinds of events, and the context that formats need.

    Attributes:
        topic: the topic, or its part for the kind.
        number: the number of the version in force.
        info: the current text of its definition.
        metadata: the metadata of the topic.
        project: the project file.
        dialect: the SQL of CREATE TABLE.
    """

    topic: Topic
    number: int
    info: SchemaInfo
    metadata: Metadata
    project: Project
    dialect: Dialect

    @property
    def name(self) -> str:
        """The name of the topic, with `#KIND` for a kind of events."""
        return format_kind_name(self.topic.name, self.topic.kind)


def _render_json_schema(schema: _ExportedSchema) -> str:
    from schemactl.publish.json_schema import make_json_schema

    title = f"{schema.name}, version {schema.number}"
    value = make_json_schema(schema.info, schema.project.release, title=title, description=schema.metadata.description)
    return json_text(value) + "\n"


def _render_ddl(schema: _ExportedSchema) -> str:
    from schemactl.codegen.module_paths import module_paths
    from schemactl.codegen.topic_struct import decoded_options
    from schemactl.publish.data_contract import create_table

    topic, project = schema.topic, schema.project
    # Spark accepts letters, digits and _ in a table's name.
    name = module_paths([topic.name])[topic.name][2] + (f"_{topic.kind}" if topic.kind else "")
    options = decoded_options(project.generate, topic)
    return create_table(name, schema.info, project.release, options, schema.metadata.description, schema.dialect)


def _find_equal_names(schema: _ExportedSchema) -> Iterator[str]:
    """Yield a note for each set of columns that Spark rejects in one table."""
    from schemactl.checks.table_impact import find_equal_names
    from schemactl.codegen.topic_struct import StructOptions

    project = schema.project
    spark_release = project.generate.spark if project.generate else StructOptions().spark
    for names in find_equal_names(schema.info, spark_release, project.release).values():
        yield (
            f"{schema.name}: {', '.join(names)} differ only in case: Spark rejects the table unless "
            "spark.sql.caseSensitive is true"
        )


def _render_contract(schema: _ExportedSchema) -> str:
    from schemactl.codegen.topic_struct import decoded_options
    from schemactl.publish.data_contract import make_data_contract, render_contract

    topic, project = schema.topic, schema.project
    options = decoded_options(project.generate, topic)
    return render_contract(
        make_data_contract(
            topic.name, schema.number, schema.info, schema.metadata, project.release, options, topic.kind
        )
    )


def _render_avro(schema: _ExportedSchema) -> str:
    from schemactl.formats import spec

    if spec(schema.info).language != "avro":
        raise SchemactlError(f"{schema.info.type.name} has no Avro definition")
    return schema.info.schema.decode().rstrip("\n") + "\n"


def _render_schema_info(schema: _ExportedSchema) -> str:
    from schemactl.formats import spec

    info = schema.info
    text = spec(info).to_text(info)
    if text is None:
        raise SchemactlError("its definition is not text")
    return json_text({"type": info.type.name, "schema": text, "properties": dict(info.properties)}) + "\n"


class _Format(NamedTuple):
    """A format of `export`.

    Attributes:
        summary: a line of help.
        suffix: the end of a file's name, for a format that has a file for each topic.
        render: returns the document of one schema; raises SchemactlError if the format cannot express it. None for one document of all topics.
    """

    summary: str
    suffix: str = ""
    render: Callable[[_ExportedSchema], str] | None = None


_FORMATS: Final = {
    "asyncapi": _Format("one AsyncAPI 3 document of all topics, with Pulsar's bindings"),
    "jsonschema": _Format(
        "a JSON Schema (draft 7) for each topic: its messages as JSON", ".schema.json", _render_json_schema
    ),
    "ddl": _Format("CREATE TABLE for Spark SQL, Trino, Flink or Hive, for each topic", ".sql", _render_ddl),
    "datacontract": _Format("an Open Data Contract Standard 3 contract for each topic", ".odcs.yaml", _render_contract),
    "avro": _Format("the Avro definition of each topic that has one", ".avsc", _render_avro),
    "schemainfo": _Format(
        "the file that `pulsar-admin schemas upload` takes, for each topic", ".json", _render_schema_info
    ),
}


def _write_files(args: argparse.Namespace, context: Context, texts: Mapping[tuple[TopicName, str], str]) -> None:
    """Write a file for each topic, or for each kind of events of a topic."""
    from schemactl.codegen.module_paths import module_paths

    folder = Path(context.directory, args.out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {args.out} is a file: name a folder for {format_count(len(texts), 'file')}")
    paths = module_paths([topic for topic, _ in texts])
    for (topic, kind), text in texts.items():
        tenant, namespace, name = paths[topic]
        file_name = f"{name}.{kind}" if kind else name
        write(
            folder / tenant / namespace / f"{file_name}{_FORMATS[args.kind].suffix}", text.encode(), below=context.top
        )
    context.report(f"wrote {format_count(len(texts), 'file')} to {args.out}")
