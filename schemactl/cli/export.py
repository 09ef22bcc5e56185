"""`export`, `site` and `graph`: the approved schemas for other tools, as a catalog, and as a graph of their uses."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from schemactl.cli.context import Context
from schemactl.cli.parser import add_format, add_options
from schemactl.cli.states import States
from schemactl.cli.topic_selection import add_filters, find_number_in_force, find_part, resolve_output_file
from schemactl.core.atomic_files import read, remove, write
from schemactl.core.errors import DeclarationError, HistoryError, SchemactlError, UsageError
from schemactl.core.json_values import json_text
from schemactl.core.names import find_matching_topics, format_kind_name, select_known_topics
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.core.catalog import Metadata, Topic
    from schemactl.core.findings import WaiversAt
    from schemactl.core.names import TopicName
    from schemactl.core.project import Project
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.history import History
    from schemactl.publish.repository_links import RepositoryLinks
    from schemactl.publish.site_catalog import SiteContent
    from schemactl.publish.site_pages import Site, WrittenTopic
    from schemactl.publish.sql_dialects import Dialect


_SITE_LIST: Final = ".schemactl-site"
"""The file in the folder of a site that lists its files, so that the next run can remove those it does not write."""

_SITE_RECORD: Final = "site"
"""The kind of the record's file in the cache."""


# `schemactl export`.


def configure_export(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `export`."""
    parser.description = (
        "Print the approved schemas in force as other tools read them:\n\n"
        + "\n".join(f"  {name:<14}{entry.summary}" for name, entry in _FORMATS.items())
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

        servers = dict(map(asyncapi.server_of, args.server))
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
    from schemactl.publish.json_schema import json_schema

    title = f"{schema.name}, version {schema.number}"
    value = json_schema(schema.info, schema.project.release, title=title, description=schema.metadata.description)
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
    from schemactl.publish.data_contract import contract_text, data_contract

    topic, project = schema.topic, schema.project
    options = decoded_options(project.generate, topic)
    return contract_text(
        data_contract(topic.name, schema.number, schema.info, schema.metadata, project.release, options, topic.kind)
    )


def _render_avro(schema: _ExportedSchema) -> str:
    from schemactl.formats import spec

    if spec(schema.info).language != "avro":
        raise SchemactlError(f"{schema.info.type.name} has no Avro definition")
    return schema.info.schema.decode().rstrip("\n") + "\n"


def _render_schema_info(schema: _ExportedSchema) -> str:
    from schemactl.formats import spec

    info = schema.info
    text = spec(info).text(info)
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


# `schemactl site`.


def configure_site(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `site`."""
    parser.description = (
        "Write a catalog of the approved topics as static pages: fields, versions, who can read whom, environments, types and "
        "their users, changes, code to paste, with a search. It needs no server, and its pages load nothing from other addresses."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl site --out public                    open public/index.html\n"
        "  schemactl site --out public --title 'Events of Acme'\n"
        "  schemactl site --out public --namespace shop/sales\n"
    )
    add_options(
        parser,
        "--out DIR: the folder of the pages; pages of an earlier run that are no longer part of the site are removed",
        required=True,
    )
    add_options(parser, "--title TEXT: the name of the catalog (default: the name of the repository's folder)")
    add_options(parser, "--theme FILE: CSS that sets --theme-hue, --theme-chroma and --theme-font")
    add_filters(parser)


def run_site(args: argparse.Namespace, context: Context) -> int:
    """Write the pages that changed, and remove pages of an earlier run that are no longer part of the site."""
    from schemactl.history.store import Store
    from schemactl.history.versions import encode_inputs

    try:
        from schemactl.publish.site_catalog import SiteContent, TargetHistory
        from schemactl.publish.site_record import SiteRecord, make_record
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markdown_it", "pyarrow", "numpy"):
            raise
        raise SchemactlError(
            f"the catalog needs {error.name}, which is not installed", fix='pip install "pulsar-schemactl[site]"'
        ) from None
    theme = _read_theme(args.theme, context) if args.theme else ""
    project, _ = context.project()
    approved = context.approved(project, topics=args.topic, namespaces=args.namespace)
    names = sorted(select_known_topics(approved.catalog.topics, args.topic, args.namespace))
    out = Path(context.directory, args.out)
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {args.out} is a file: name a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / _SITE_LIST).is_file():
        raise UsageError(f"--out {args.out} has files and is not a catalog: name an empty folder, or a new one")
    old_list = read(out / _SITE_LIST, below=context.top)
    if old_list is None:
        # The folder is known as a site even if this run is interrupted.
        old_list = b""
        write(out / _SITE_LIST, old_list, below=context.top)
    targets = [
        TargetHistory(name, history) for name, history in _read_target_histories(project, approved, context).items()
    ]
    title = args.title or context.folder_name
    catalogue = SiteContent(
        approved,
        project,
        _read_authors(approved, context),
        targets,
        _read_waivers(project, context),
        _find_web_pages(project, approved, context),
    )
    old_paths = {*old_list.decode().splitlines()}

    # The topics that are as in the last run, and whose pages are as it wrote them.
    store = Store(
        context.repository.common_directory,
        os.path.realpath(out),
        title,
        *map(repr, (project, catalogue.repository, approved.ref)),
        encode_inputs(project),
    )
    content = store.read(_SITE_RECORD)
    record = SiteRecord.decode(content) if content else None
    unchanged = {}
    if record and (changed := approved.find_changed_topics(record.tip, with_namespaces=True)) is not None:
        unchanged = record.select_unchanged(out, changed | approved.undecided.keys())
    target_tips = [(target.name, target.history.tip if target.history else None) for target in targets]
    other_inputs = (theme, [*map(str, names)], sorted(catalogue.authors.items()), target_tips)
    inputs = hashlib.sha256(repr(other_inputs).encode()).hexdigest()
    if (
        record
        and approved.tip
        and (record.tip, record.inputs) == (approved.tip.id, inputs)
        and not approved.undecided
        and old_paths == record.stamps.keys()
        and record.is_unchanged(out, record.stamps)
    ):
        written_paths = old_paths
        count = record.topic_count
    else:
        site, count, written_paths = _write_pages(catalogue, title, theme, names, unchanged, out, old_paths, context)
        if approved.tip:
            new_record = make_record(approved.tip.id, inputs, count, site.topics, out, written_paths)
            store.write(_SITE_RECORD, new_record.encode())
    context.report(
        f"wrote {format_count(count, 'topic')}, {format_count(len(written_paths), 'file')}: {args.out.rstrip('/')}/index.html"
    )
    return 0


def _write_pages(
    catalogue: SiteContent,
    title: str,
    theme: str,
    names: Sequence[TopicName],
    unchanged: Mapping[TopicName, WrittenTopic],
    out: Path,
    old_paths: AbstractSet[str],
    context: Context,
) -> tuple[Site, int, set[str]]:
    """Write the pages that changed, and remove the pages of an earlier run that are no longer part of the site.

    Returns:
        The site, the number of its topics, and the paths of its files.
    """
    from schemactl.publish.site_pages import Site

    written_paths: set[str] = set()

    def write_page(path: str, text: str) -> None:
        data = text.encode()
        if path not in old_paths:
            # Before the page, so that the next run removes the pages of an interrupted one.
            site_list.write(f"{path}\n")
        # Most pages of a site stay the same from one run to the next.
        if path not in old_paths or read(out / path, below=context.top) != data:
            write(out / path, data, below=context.top)
        written_paths.add(path)

    site = Site(catalogue, title, write_page, theme)
    with (out / _SITE_LIST).open("a", encoding="utf-8", buffering=1) as site_list:
        count = site.write(names, unchanged=unchanged, progress=context.progress("writing pages", "topics"))
    for topic in site.topics.values():
        written_paths.update(topic.paths)
    for path in old_paths - written_paths:
        if ".." not in Path(path).parts and not Path(path).is_absolute():
            remove(out / path, below=context.top)
    new_list = "".join(f"{path}\n" for path in sorted(written_paths)).encode()
    if read(out / _SITE_LIST, below=context.top) != new_list:
        write(out / _SITE_LIST, new_list, below=context.top)
    return site, count, written_paths


def _read_theme(path: str, context: Context) -> str:
    """Return the CSS in the file that --theme names."""
    try:
        return Path(context.directory, path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--theme {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None


def _read_target_histories(project: Project, approved: History, context: Context) -> Mapping[str, History | None]:
    """Map each target to the approved history up to its position, or to None if the position is not known here."""
    from schemactl.history.target_history import read_effective

    histories: dict[str, History | None] = {}
    for name, target in project.targets.items():
        histories[name] = None
        with suppress(HistoryError):
            histories[name] = read_effective(context.repository, project, target, whole=approved)
    return histories


def _read_authors(approved: History, context: Context) -> dict[str, str]:
    from schemactl.cli.diff import read_authors

    return read_authors(context.repository, approved.list_commits())


def _read_waivers(project: Project, context: Context) -> WaiversAt:
    """Return the function that reads the waivers in the tree of a commit, each commit once."""
    from schemactl.history import waivers_at

    return cache(lambda commit: waivers_at(context.repository, project, commit))


def _find_web_pages(project: Project, approved: History, context: Context) -> RepositoryLinks:
    """Return the links into the web pages of the repository, by the project file or else by the remote `origin`."""
    from schemactl.publish.repository_links import RepositoryLinks, web_address

    remote_urls = context.repository.remotes.get("origin", {}).get("url", [])
    url = project.repository_url or next(filter(None, map(web_address, remote_urls)), "")
    return RepositoryLinks(url, approved.ref.removeprefix("origin/") or "main")


# `schemactl graph`.


def configure_graph(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `graph`."""
    parser.description = (
        "Show which topics and types use which types, and which files define them, as the working tree declares "
        "them. With a NAME: its users and its parts, direct and indirect. Without a NAME: the types and files that "
        "several topics use; with --format json, all types and files."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl graph                         what do several topics share?\n"
        "  schemactl graph Money                   who uses this type?\n"
        "  schemactl graph common/money.avsc       which topics use this file?\n"
        "  schemactl graph orders                  what is this topic made of?\n"
        "  schemactl graph --format mermaid        for Markdown\n"
        "  schemactl graph Money --format svg > money.svg\n"
    )
    parser.add_argument(
        "node", metavar="NAME", nargs="?", help="a type, a file or a topic, or an unambiguous end of its name"
    )
    add_format(parser, "text", "mermaid", "dot", "svg", "json")


def run_graph(args: argparse.Namespace, context: Context) -> int:
    """Print the graph of the uses of types and files, without topics that cannot be read.

    Raises:
        DeclarationError: if the requested topic cannot be read; or, after the graph of all topics, if one cannot be read.
    """
    from schemactl.declare.reader import describe_broken
    from schemactl.publish import usage_graph

    states = States(context)
    declared = states.work
    if declared.common_problems or (declared.problems and not declared.catalog.topics):
        raise DeclarationError(declared.problems)
    if args.node and (broken_names := find_matching_topics(args.node, declared.broken_topics, globs=False)):
        needed = declared.select_broken(broken_names)
        raise DeclarationError([problem for broken in needed for problem in broken.problems])
    usage = usage_graph.read_usage(states.files, declared)
    try:
        node = usage.find(args.node) if args.node else None
    except UsageError as error:
        # A file whose topics cannot be read may declare it.
        if problems := [problem for broken in declared.broken if broken.name is None for problem in broken.problems]:
            raise DeclarationError(problems) from error
        raise
    part = usage.around(node) if node else usage
    if args.format == "text":
        context.report(usage_graph.text(usage, node, color=context.color))
    elif args.format == "json":
        print(usage_graph.json(part, node))
    elif args.format == "svg":
        from schemactl.publish.drawings import draw_usage

        print(draw_usage(part if node else part.shared(), node), end="")
    else:
        render = usage_graph.mermaid if args.format == "mermaid" else usage_graph.dot
        print(render(part if node else part.shared()))
    if node:
        context.note(*describe_broken(declared.broken))
    elif declared.problems:
        raise DeclarationError(declared.problems)
    return 0
