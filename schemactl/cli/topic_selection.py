"""Select topics and versions as the command line names them, and resolve the paths that it names."""

from __future__ import annotations

import argparse
import os
import posixpath
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.target_selection import add_target
from schemactl.core.errors import DeclarationError, UsageError, did_you_mean
from schemactl.core.names import (
    NamespaceName,
    TopicName,
    find_matching_topics,
    find_topic,
    format_kind_name,
    select_known_topics,
)
from schemactl.core.schema import find_by_number
from schemactl.core.wording import format_version_numbers

if TYPE_CHECKING:
    from schemactl.core.catalog import Catalog, Topic
    from schemactl.core.schema import SchemaInfo, SchemaVersion
    from schemactl.declare.reader import Declared
    from schemactl.history.approved_history import History


TOPIC_HELP: Final = "the topic's name, as much of it as is unambiguous: orders, sales/orders, shop/sales/orders"

PART_HELP: Final = f"{TOPIC_HELP}; #KIND: one of its kinds of events"

VERSION_HELP: Final = f"{PART_HELP}; @N: Git's version N"


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select a target and topics."""
    add_target(parser)
    add_filters(parser)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select topics."""
    add_options(
        parser,
        "--topic GLOB...: only these topics: orders, 'shop/sales/*', 'shop/**'; '!GLOB' excludes topics; may be repeated",
        "--namespace NS...: only this namespace; may be repeated",
    )
    add_options(parser, "--skip GLOB...: without these topics, as --topic '!GLOB'", dest="topic", type="!{}".format)


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Add the files and folders whose topics a command works on."""
    parser.add_argument(
        "path",
        nargs="*",
        metavar="PATH",
        help="only the topics of these files and folders: declarations, definitions, shared types",
    )


def resolve_paths(arguments: Sequence[str], context: Context) -> tuple[str, ...]:
    """Return files and folders relative to the top of the repository, where "" is the top.

    Raises:
        UsageError: if one does not exist, now or in HEAD, or lies outside of the repository.
    """
    from schemactl.history.commit_files import CommitFiles

    repository, folder = context.repository, Path(context.directory)
    top = Path(context.top)
    paths = []
    for argument in arguments:
        path = posixpath.relpath(os.path.normpath(folder.resolve() / argument), top.as_posix()) if argument else ".."
        if path == ".." or path.startswith("../"):
            raise UsageError(f"{argument!r} lies outside of the repository" if argument else "a path is empty")
        head = repository.commit("HEAD")
        if not os.path.lexists(top / path) and (head is None or CommitFiles(repository, head).kind(path) == "missing"):
            raise UsageError(f"{argument}: no such file or folder; to select a topic, use --topic {quote(argument)}")
        paths.append("" if path == "." else path)
    return tuple(paths)


def select_readable(
    declared: Declared,
    topics: Sequence[str],
    namespaces: Sequence[str],
    context: Context,
    *,
    paths: Sequence[str] = (),
    others: Iterable[TopicName] = (),
    where: str = "the declared files",
) -> tuple[frozenset[TopicName], DeclarationError | None]:
    """Select declared topics as the filters say, and print a note on each broken declaration that was not requested.

    Args:
        declared: the declarations, with the broken ones.
        topics: the patterns of the requested topics, by default all.
        namespaces: the requested namespaces, by default all.
        context: prints the notes.
        paths: the files and folders of the repository whose topics are requested, by default all.
        others: further topics to select from.
        where: a description of the topics for errors.

    Returns:
        The selected topics that can be read, and an error with the problems of the others, or None if all can be read.

    Raises:
        DeclarationError: if no requested topic can be read, or a problem concerns all topics.
        UsageError: if a filter matches nothing.
    """
    from schemactl.declare.reader import describe_broken, describe_unused_paths

    if declared.common_problems:
        raise DeclarationError(declared.problems)
    names = {*declared.catalog.topics, *declared.broken_topics, *others}
    try:
        selected = select_known_topics(names, topics, namespaces, where=where)
    except UsageError as usage_error:
        # A file whose topics cannot be read may declare the requested one.
        unnamed_problems = [problem for broken in declared.broken if broken.name is None for problem in broken.problems]
        if unnamed_problems:
            raise DeclarationError(unnamed_problems) from usage_error
        raise
    if paths:
        selected &= declared.find_topics_at(paths)
        context.note(*describe_unused_paths(declared, paths, selected))
    needed = declared.select_broken(selected if topics or namespaces or paths else None, paths)
    readable = declared.filter_readable(selected)
    error = DeclarationError([problem for broken in needed for problem in broken.problems]) if needed else None
    if error and not readable:
        raise error
    context.note(*describe_broken({*declared.broken}.difference(needed)))
    return readable, error


def parse_namespaces(names: Iterable[str]) -> frozenset[NamespaceName] | None:
    """Return the namespaces that `--namespace` names, or None for all namespaces.

    Only a superuser can list all namespaces of a registry; the administrator of a tenant can list the namespaces of the tenant.
    """
    namespaces = set()
    for text in names:
        try:
            namespaces.add(NamespaceName.parse(text))
        except ValueError as error:
            raise UsageError(f"--namespace {text}: {error}") from None
    return frozenset(namespaces) or None


class ChosenTopic(NamedTuple):
    """A topic and one of its versions, or None for the definition in force."""

    topic: Topic
    version: SchemaVersion | None

    @property
    def info(self) -> SchemaInfo | None:
        """The definition of the version, else the one in force, else the last version's; loaded on each use."""
        info = self.topic.schema
        if self.version:
            info = self.version.info
        elif info is None and self.topic.versions:
            info = self.topic.versions[-1].info
        return info.load() if info else None


def choose(text: str, catalog: Catalog) -> ChosenTopic:
    """Return the topic of `catalog`, and its version, that `text` names as TOPIC, TOPIC@N, TOPIC#KIND or TOPIC#KIND@N.

    Raises:
        UsageError: if `text` does not name exactly one topic, or the version does not exist or belongs to another kind; the message
            lists similar names.
    """
    name, at, number = text.rpartition("@")
    if not at or find_matching_topics(text, catalog.topics):
        return ChosenTopic(find_part(text, catalog), None)
    topic = find_part(name, catalog)
    if not number.isdecimal():
        raise UsageError(
            f"{text}: expected the number of a version after the @, found {number!r}: {describe_numbers(topic)}"
        )
    if topic.kind:
        whole = catalog.topics[topic.name]
        version = find_by_number(whole.versions, int(number))
        if version and version.info is not None and version.kind != topic.kind:
            owner = f"belongs to the kind `{version.kind}`" if version.kind else "belongs to no kind"
            suggestion = format_kind_name(whole.name, version.kind)
            raise UsageError(
                f"{text}: version {number} {owner}, not to `{topic.kind}`",
                fix=f"write {quote(f'{suggestion}@{number}')}",
            )
    return ChosenTopic(topic, find_version(topic, int(number)))


def find_part(text: str, catalog: Catalog, *, where: str = "the approved history") -> Topic:
    """Return the topic that `text` names, or the part of it for one kind of events, which `text` names as TOPIC#KIND.

    A topic whose own name is `text` comes first.

    Raises:
        UsageError: if `text` does not name exactly one topic, or the topic never had this kind; the message lists similar names.
    """
    name, separator, key = text.rpartition("#")
    if not separator or find_matching_topics(text, catalog.topics) or not find_matching_topics(name, catalog.topics):
        return find(text, catalog, where=where)
    topic = find(name, catalog, where=where)
    part = topic.find_part(key)
    if part is None:
        keys = topic.list_kind_keys()
        if not keys:
            raise UsageError(f"{text}: {topic.name} has one schema, and no kinds of events", fix=f"write {quote(name)}")
        near = did_you_mean(key, keys)
        raise UsageError(f"{topic.name} has no kind {key!r}{near or ': its kinds are ' + ', '.join(keys)}")
    return part


def find_number_in_force(history: History, topic: Topic) -> int | None:
    """Return the number of the version in force of a topic, or of its part for one kind of events; None without a schema."""
    if topic.kind:
        return history.find_current_kinds(topic.name).get(topic.kind)
    return history.find_current_number(topic.name)


def find(text: str, catalog: Catalog, *, globs: bool = True, where: str = "the approved history") -> Topic:
    """Return the topic of `catalog` that `text` names; `where` describes the catalog. Raise UsageError unless it is one topic."""
    return catalog.topics[find_topic(text, catalog.topics, globs=globs, where=where)]


def find_version(topic: Topic, number: int) -> SchemaVersion:
    """Return the topic's version with that number; raise UsageError if it does not exist."""
    version = find_by_number(topic.versions, number)
    if version is None:
        raise UsageError(f"{topic.name} has no version {number}: {describe_numbers(topic)}")
    if version.info is None:
        raise UsageError(f"{topic.name}: number {number} is a tombstone, before a new generation, and has no schema")
    return version


def describe_numbers(topic: Topic) -> str:
    """Return the range of a topic's versions, as the end of a message."""
    if not topic.versions:
        return "the approved history has none"
    if topic.kind:
        listed = format_version_numbers([version.number for version in topic.versions if version.info])
        return f"the approved history has {listed} of the kind `{topic.kind}`"
    last = topic.versions[-1].number
    return f"the approved history has {f'0 to {last}' if last else 'version 0 alone'}"


def parse_version_bytes(version_bytes: str) -> int:
    """Return the version number in a message's `schema_version`, written in hex: 8 bytes, big-endian.

    Clients before 2.4.0 sent 64 bytes, of which the first 8 count (BookkeeperSchemaStorage.versionFromBytes).

    Raises:
        UsageError: if the text is not hex, or has another length.
    """
    text = version_bytes.removeprefix("0x").replace(" ", "").replace(":", "")
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise UsageError(f"--version-bytes {version_bytes}: expected 16 hex digits") from None
    if not data:
        raise UsageError("--version-bytes is empty: a message without a schema version was written without a schema")
    if len(data) not in (8, 64):
        raise UsageError(f"--version-bytes {version_bytes}: expected 8 bytes, found {len(data)}")
    return int.from_bytes(data[:8], "big", signed=True)


def resolve_relative_path(text: str, context: Context) -> Path:
    """Return the path `text`, which is relative to the folder to work in, relative to the current folder."""
    return Path(os.path.relpath(Path(context.directory, text)))


def resolve_output_file(text: str, context: Context, *, name: str) -> Path:
    """Return the file that `--out TEXT` and similar options mean, as a path relative to the current folder.

    TEXT is a folder if it ends with `/` or is a folder already, and a file otherwise; in a folder the file is called `name`.
    """
    path = Path(context.directory, text)
    if text.endswith("/") or path.is_dir():
        path /= name
    return resolve_relative_path(str(path), context)
