"""Write the files of the catalog site: its pages, the scripts for the search and for comparisons, and the feeds."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.resources import files
from itertools import groupby
from random import Random
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup, escape

from schemactl.codec import CodecError
from schemactl.codec.readable_json import to_json
from schemactl.codegen.codecs import to_codec_schema
from schemactl.codegen.module_paths import module_paths
from schemactl.core import environment
from schemactl.core.catalog import Client
from schemactl.core.errors import SchemactlError
from schemactl.core.findings import Counterexample
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.project import Target
from schemactl.core.schema import Commit, SchemaInfo, SchemaType, SchemaVersion
from schemactl.core.wording import format_count, format_day, format_version_numbers
from schemactl.formats import ReadingAnswer, spec
from schemactl.formats.part_changes import PartChange
from schemactl.history.versions import Progress, no_progress
from schemactl.publish import restricted_pickle
from schemactl.publish.sample_messages import generate_values
from schemactl.publish.site_catalog import (
    Box,
    SiteContent,
    TopicEntry,
    TopicTypes,
    TypeDefinition,
    TypeUse,
    TypeUses,
    VersionEntry,
    draw_graph,
    list_types,
)
from schemactl.publish.site_definitions import (
    count_common,
    cut_definition,
    list_compact_lines,
    pack_lines,
    render_difference,
)
from schemactl.publish.site_events import (
    EVENT_KINDS,
    Event,
    Month,
    group_months,
    list_namespace_events,
    list_topic_events,
    sort_events,
)
from schemactl.publish.site_evolution import draw_lanes
from schemactl.publish.site_fields import MAX_ROWS, FieldRow, Piece, list_paths
from schemactl.publish.site_flow import draw_flow
from schemactl.publish.site_text import (
    clean_value,
    escape_code,
    find_service_url,
    highlight,
    plain_text,
    render_markdown,
    write_snippets,
)
from schemactl.publish.site_verdicts import (
    Break,
    Pair,
    Readings,
    TopicVerdicts,
    Verdict,
    count_broken,
    format_span,
    group_reasons,
)

_FEED_ENTRIES: Final = 100
"""The maximum number of events in a feed."""

_MAX_EVENTS: Final = 80
"""The maximum number of events on a page of changes."""

_MAX_EVENT_PAGES: Final = 10
"""The maximum number of pages of changes; `changes.json` also has older events."""

_OWN_EVENTS: Final = 20
"""The maximum number of events on the page of an owner or a namespace, the latest ones."""

_RECENT_EVENTS: Final = 6
"""The maximum number of events on the start page."""

_RECENT_DAYS: Final = 90
"""The number of days before the newest commit in which a breaking change still marks its topic as having broken readers."""

_MAX_EXAMPLE: Final = 8_000
"""The maximum number of characters of an example message."""

_MAX_TOPICS: Final = 100
"""The maximum number of topics in a list of a page; the start page lists topics that need attention first."""

_MAX_LISTED: Final = 300
"""The maximum number of namespaces, owners and types in a list; the search finds the others."""

_MAX_VERSIONS: Final = 10
"""The maximum number of versions on the page of a topic; pages of versions have all."""

_VERSIONS_OF_PAGE: Final = 20
"""The number of versions on one page of versions, counted from version 0 on, so that addresses do not change."""

_MAX_PAGE: Final = 70_000
"""The maximum number of characters of differences on one page of versions."""

_MAX_CELLS: Final = 14
"""The maximum number of versions that a list of topics shows as cells, the newest ones."""

_MAX_TREE: Final = 80
"""The maximum number of topics in the tree of namespaces; of a larger site it shows the namespace of the page alone."""

_MAX_TREE_TOPICS: Final = 20
"""The maximum number of topics in the tree of a larger site."""

_MAX_COMMITS: Final = 2_000
"""The maximum number of commits that the search finds, the newest ones."""

_TOPIC_HEADS: Final = ["Topic", "Versions", "Verdict", "Type", "Strategy", "Owner", "Clients", "Changed"]

_CELLS: Final = {"hurts": "n", "breaks": "o", "waived": "w"}
"""The letter of a version's cell in a list, by the kind of its verdict."""

_FORWARDING: Final = (
    "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>{name}</title>"
    '<meta http-equiv=refresh content="0; url={page}#fields">'
    "<p>The fields of <a href={page}#fields>{name}</a></p>\n"
)
"""The page of a type that is the message of one topic, which leads to the topic."""

_Row = TypeVar("_Row")


Write = Callable[[str, str], None]
"""A function that writes a file, given its path below the site and its text."""


@dataclass(frozen=True)
class ListedTopic:
    """A topic in lists and in the search.

    Attributes:
        number: the version in force as text, or "".
        page: the path of its page, or "".
        cells: a letter for each of its newest versions: `r` safe, `o` broke readers, `w` waived, `n` breaks a client today.
        changed: the day of its newest change, or "".
        states: `hurts`, `broke` (readers, recently), `old` (deprecated), `gone` (deleted).
    """

    name: TopicName
    type: str
    number: str
    strategy: str
    owner: str
    description: str
    page: str
    chip_kind: str = ""
    chip: str = ""
    cells: str = ""
    clients: int = 0
    changed: str = ""
    states: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def is_deleted(self) -> bool:
        """Whether its schema was removed."""
        return "gone" in self.states

    @property
    def cell_words(self) -> str:
        """The counts of the outcomes that the cells show, for readers who do not see them."""
        counts = {
            word: self.cells.count(cell)
            for cell, word in (("o", "broke readers"), ("w", "waived"), ("n", "breaks a client"))
        }
        words = [f"{count} {word}" for word, count in counts.items() if count]
        return f"{format_count(len(self.cells), 'version')}: {', '.join(words) or 'all safe'}"


@dataclass(frozen=True)
class TopicFacts:
    """The facts of a topic that had a schema which other pages than its own show.

    A later run reads them instead of the definitions if the topic is unchanged, so no definition is in them.

    Attributes:
        number: the version in force, or None if the schema was removed.
        doc: the documentation of the message.
        verdict: the verdict of the version in force, or None if the schema was removed.
        broken: the names of the consumers that break today.
        cells: see `ListedTopic`.
        changed: the day of its newest change, or "".
        breaking_s: the time of its newest breaking change in seconds since the epoch, or None.
        fields: the rows of its fields in the index of the search.
        field_count: the number of its fields in force.
        documented: the number of these fields with documentation.
        has_columns: whether it has columns in Spark.
        types: its named types, or None if the schema was removed.
    """

    type: str
    number: int | None
    doc: str
    verdict: Verdict | None
    broken: Sequence[str]
    cells: str
    changed: str
    breaking_s: int | None
    fields: Sequence[Sequence[Any]]
    field_count: int
    documented: int
    has_columns: bool
    clients: Sequence[Client]
    pairs: Sequence[Pair]
    events: Sequence[Event]
    types: TopicTypes | None


_FACT_CLASSES: Final = (
    *(Break, Client, Commit, Counterexample, Event, FieldRow, NamespaceName, Pair, PartChange, Piece, SchemaVersion),
    *(TopicFacts, TopicName, TopicTypes, TypeDefinition, Verdict),
)
"""The classes of the values in `TopicFacts`."""


class WrittenTopic(NamedTuple):
    """A topic whose pages are as the site has them.

    Attributes:
        inputs: a digest of the inputs of its pages besides the approved topic and the project (see `Site.digest_inputs`).
        paths: its files.
        facts: its facts, pickled.
    """

    inputs: str
    paths: Collection[str]
    facts: bytes


@dataclass
class ListedClient:
    """A declared client, or a team's clients, and the topics that they read and write.

    Attributes:
        broken: the topics that it cannot read today.
        pairs: its pairs with other clients, each with the topic.
    """

    name: str
    roles: dict[str, None] = field(default_factory=dict)
    teams: dict[str, None] = field(default_factory=dict)
    languages: dict[str, None] = field(default_factory=dict)
    contacts: dict[str, None] = field(default_factory=dict)
    writes: list[TopicName] = field(default_factory=list)
    reads: list[TopicName] = field(default_factory=list)
    broken: list[TopicName] = field(default_factory=list)
    pairs: list[tuple[TopicName, Pair]] = field(default_factory=list)

    def add(self, topic: TopicName, client: Client, pairs: Sequence[Pair]) -> None:
        """Add a topic that the client reads or writes, and its pairs there."""
        self.roles[client.role] = None
        if client.team:
            self.teams[client.team] = None
        if client.language:
            self.languages[client.language] = None
        if client.contact:
            self.contacts[client.contact] = None
        topics = self.reads if client.reads else self.writes
        if topic not in topics:
            topics.append(topic)
        if any(pair.breaks for pair in pairs if pair.consumer is client) and topic not in self.broken:
            self.broken.append(topic)
        self.pairs += [
            (topic, pair)
            for pair in pairs
            if client in (pair.producer, pair.consumer) and (topic, pair) not in self.pairs
        ]


@dataclass
class Figures:
    """The figures of the start page and of the health page.

    Attributes:
        topics: the number of topics that are not deleted.
        broken: the clients that break today, each with its topic.
        breaking: the breaking changes of the newest month.
        last_breaking: the newest breaking change of all, or None.
        shares: the shares of the health page: words, part and whole.
    """

    topics: int = 0
    namespaces: int = 0
    types: int = 0
    clients: int = 0
    broken: list[tuple[str, TopicName]] = field(default_factory=list)
    breaking: list[Event] = field(default_factory=list)
    last_breaking: Event | None = None
    fields: int = 0
    documented: int = 0
    shares: list[tuple[str, int, int]] = field(default_factory=list)


class _Shortening(Extension):
    """Removes optional end tags, quotes around words, and line breaks inside tables and lists from the templates of pages."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the source of a template with shorter HTML."""
        del filename
        if not str(name).endswith(".html"):
            return source
        parts = re.split(r"({%.*?%}|{{.*?}}|{#.*?#})", source, flags=re.DOTALL)
        for index in range(0, len(parts), 2):
            text = re.sub(r"</(?:td|th|tr|li|dt|dd|thead|tbody)>\n?", "", parts[index])
            text = re.sub(r"\n(?=<(?:td|tr|li|dt|dd)\b)|(?<=</ul>)\n", "", text)
            text = re.sub(r"(<(?:ul|tbody)\b[^>]*>)\n", r"\1", text)
            parts[index] = re.sub(r'( [\w-]+)="([\w.#/+:;-]+)"(?=[ >]|\Z)', r"\1=\2", text)
        return "".join(parts)


class Site:
    """Writes the site one topic at a time, keeping only the facts that other pages show of a topic."""

    def __init__(self, content: SiteContent, title: str, write: Write, theme: str = "") -> None:
        """Create a site with a title, whose files `write` writes; `theme` is CSS that follows the style of the site."""
        self._content = content
        self._write = write
        self._theme = theme
        self._paths = module_paths(content.catalog.topics)
        self._names: set[TopicName] = set()
        self._types = TypeUses()
        self._search: list[list[Any]] = []
        self._topics: list[ListedTopic] = []
        self._listed: dict[NamespaceName, list[ListedTopic]] = defaultdict(list)
        self._owned: dict[str, list[ListedTopic]] = defaultdict(list)
        self._events: list[Event] = []
        self._clients: dict[str, ListedClient] = {}
        self._teams: dict[str, ListedClient] = {}
        self._clients_of: dict[TopicName, list[str]] = defaultdict(list)
        self._problems: dict[str, list[tuple[TopicName, str]]] = defaultdict(list)
        self._figures = Figures()
        self.topics: dict[TopicName, WrittenTopic] = {}
        self._own_paths: list[str] = []
        self._code_types: set[tuple[str, bool]] = set()
        self._tree: dict[NamespaceName, list[TopicName]] = {}
        self._trees: dict[tuple[str, TopicName | None, tuple[NamespaceName, ...]], str] = {}
        self._jinja = Environment(
            loader=PackageLoader("schemactl.publish"),
            autoescape=True,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
            finalize=clean_value,
            extensions=[_Shortening],
        )
        self._jinja.globals |= {
            "site": title,
            "made_by": f"schemactl {environment.get_version()}",
            "tip": content.history.tip,
            "ref": content.history.ref,
            "pages_of": content.repository,
            "link": self._link,
            "version_page": self._version_page,
            "namespace_link": namespace_link,
            "type_link": type_link,
            "owner_link": owner_link,
            "client_link": client_link,
            "team_link": team_link,
            "page_of": self._page_of,
            "event_link": self._event_link,
            "event_id": _event_id,
            "month_page": _find_month_page,
            "row_paths": list_paths,
            "spans": format_span,
            "strip": draw_strip,
            "answers": _draw_answers,
            "grouped": group_reasons,
            "topic_heads": _TOPIC_HEADS,
            "event_kinds": EVENT_KINDS,
            "max_rows": MAX_ROWS,
            "max_listed": _MAX_LISTED,
            "max_versions": _MAX_VERSIONS,
            "figures": self._figures,
            "known": self._types,
            "tree": self._render_tree,
            "here_namespace": None,
            "here_topic": None,
        }
        self._jinja.filters |= {
            "day": format_day,
            "counted": format_count,
            "versions": format_version_numbers,
            "markdown": render_markdown,
            "plain": plain_text,
            "prose": _render_prose,
            "code": lambda text: text if isinstance(text, Markup) else escape_code(clean_value(text)),
            "proof": _mark_proof,
            "attribute": _format_attribute,
            "short": _shorten_names,
        }

    def write(
        self,
        names: Sequence[TopicName],
        *,
        unchanged: Mapping[TopicName, WrittenTopic] = MappingProxyType({}),
        progress: Progress = no_progress,
    ) -> int:
        """Write all pages, first the pages of the topics `names`, and return the number of topics that are not deleted.

        Args:
            names: the topics.
            unchanged: the topics that are as in an earlier run, and whose files are as that run wrote them. Their pages are not made
                again if the other inputs are equal as well.
            progress: called with the number of topics that are done, and of all topics.
        """
        self._names.update(names)
        catalog_topics = self._content.catalog.topics
        for name in sorted(names):
            if not catalog_topics[name].deleted and catalog_topics[name].versions:
                self._tree.setdefault(name.namespace_name, []).append(name)
        for number, name in enumerate(names, 1):
            inputs = self.digest_inputs(name)
            # A client's own definition can change without the topic.
            has_own_definitions = any(client.file for client in self._content.catalog.topics[name].clients)
            if name in unchanged and unchanged[name].inputs == inputs and not has_own_definitions:
                self.topics[name] = unchanged[name]
                self._add_topic(name, restricted_pickle.loads(unchanged[name].facts, _FACT_CLASSES))
            elif entry := self._content.read_topic(name):
                self._own_paths = []
                facts = self._write_topic(entry)
                self.topics[name] = WrittenTopic(inputs, tuple(self._own_paths), pickle.dumps(facts))
                entry.topic.unload()
                self._add_topic(name, facts)
            progress(number, len(names))
        for name in names:
            # Topics that never had a schema come last.
            if not catalog_topics[name].versions and not catalog_topics[name].deleted:
                self._list_topic(name)
        owners = {name: self._content.catalog.metadata(name).owner for name in self._content.list_namespaces()}
        selected = {name.namespace_name for name in names}
        self._events += [
            event
            for event in list_namespace_events(self._content.history, owners)
            if event.name in selected or not names
        ]
        authors = self._content.authors
        self._events = sort_events(
            [
                event if event.author else replace(event, author=authors.get(event.commit.id, ""))
                for event in self._events
            ]
        )
        months = group_months(self._events)
        self._count_figures(months)
        self._write_types()
        events_by_namespace: dict[NamespaceName, list[Event]] = defaultdict(list)
        events_by_owner: dict[str, list[Event]] = defaultdict(list)
        for event in self._events:
            events_by_namespace[event.namespace].append(event)
            events_by_owner[event.owner].append(event)
        for namespace in self._content.list_namespaces():
            self._write_namespace(namespace, events_by_namespace[namespace])
        for owner, topics in self._owned.items():
            self._write_owner(owner, topics, events_by_owner[owner])
        self._write_clients()
        self._write_index(months)
        self._write_changes(months)
        self._write_search_index()
        self._write_code()
        tip = self._content.history.tip
        approved = f"As approved on {self._content.history.ref} at {tip.short}, {format_day(tip)}" if tip else ""
        # The pages of unchanged topics do not name the commit, so that they stay the same.
        before = {"site.js": f"window.schemactlApproved={_to_json(clean_value(approved))};\n"}
        after = {"site.css": f"\n/* Theme */\n{self._theme}" if self._theme else ""}
        for file in ("site.css", "site.js", "favicon.svg"):
            text = files("schemactl.publish").joinpath(file).read_text("utf-8")
            self._write(file, f"{before.get(file, '')}{text}{after.get(file, '')}")
        return self._figures.topics

    def digest_inputs(self, name: TopicName) -> str:
        """Return a digest of the inputs of a topic's pages besides the approved topic and the project."""
        content = self._content
        deprecated = content.catalog.metadata(name).deprecated
        inputs = (
            self._paths[name],
            self._render_tree(self._link(name), name.namespace_name, name),
            self._page_of(deprecated.use) if deprecated and deprecated.use else "",
            [*content.list_targets(name)],
            [
                content.authors.get(version.commit.id, "")
                for version in content.catalog.topics[name].versions
                if version.commit
            ],
        )
        return hashlib.sha256(repr(inputs).encode()).hexdigest()

    def _write_file(self, path: str, text: str) -> None:
        self._own_paths.append(path)
        self._write(path, text)

    def _render(self, template: str, path: str, **values: Any) -> None:
        root = "../" * path.count("/")
        self._write_file(path, self._jinja.get_template(template).render(root=root, path=path, **values))

    # Addresses

    def _link(self, name: TopicName) -> str:
        """Return the path of a topic's page."""
        return f"topics/{'/'.join(self._paths[name])}.html"

    def _version_page(self, name: TopicName, number: int) -> str:
        """Return the path of a version: the page of versions, and the place on it."""
        start = number // _VERSIONS_OF_PAGE * _VERSIONS_OF_PAGE
        return f"topics/{'/'.join(self._paths[name])}.v{start}.html#v{number}"

    def _page_of(self, name: TopicName) -> str:
        """Return the path of a topic's page, or "" if the site does not have it."""
        return self._link(name) if name in self._names and self._content.catalog.topics[name].versions else ""

    def _event_link(self, event: Event) -> str:
        """Return the path of the page of an event."""
        if isinstance(event.name, NamespaceName):
            return namespace_link(event.name)
        if event.number is not None:
            return self._version_page(event.name, event.number)
        return self._page_of(event.name) or namespace_link(event.namespace)

    @property
    def _has_small_tree(self) -> bool:
        """Whether each page has the tree of all topics."""
        return len(self._names) <= _MAX_TREE

    def _render_tree(self, path: str, here: NamespaceName | None, topic: TopicName | None) -> Markup:
        """Return the tree of namespaces for a page, in which the page's own `topic` is marked.

        On a large site it has the namespace and the topic of the page, so that new topics do not change the page; the script adds
        the others from `topics_file`.
        """
        folder = path.rpartition("/")[0]
        is_in_namespace = here is not None and here in self._tree
        if self._has_small_tree:
            members = self._tree
        elif here is not None and is_in_namespace:
            members = {here: [topic] if topic in self._tree[here] else []}
        else:
            members = {namespace: [] for namespace in [*self._tree][:20]}
        # Pages of one folder have the same tree.
        key = (folder, None if self._has_small_tree else topic, tuple(members))
        if key not in self._trees:
            self._trees[key] = self._jinja.get_template("_tree.html").render(
                members=members,
                sizes={namespace: len(self._tree[namespace]) for namespace in members},
                relative=partial(_make_relative, folder=folder),
                topics_file=topics_file(here) if here and is_in_namespace and not self._has_small_tree else "",
            )
        html = self._trees[key]
        if topic:
            link = escape(_make_relative(self._link(topic), folder=folder))
            html = html.replace(f"<a href={link}>", f"<a href={link} aria-current=page>")
        return Markup(html)  # noqa: S704  all text is escaped

    # Topics

    def _write_topic(self, entry: TopicEntry) -> TopicFacts:
        """Write the pages of a topic, and return its facts for the other pages."""
        name = entry.name
        content = self._content
        verdicts = entry.verdicts
        readings = verdicts.readings
        matrix = _list_answers(entry, "")
        matrices = [("", matrix)]
        languages = [client.known_language for client in entry.topic.clients if client.reads]
        matrices += [
            (language.capitalize(), _list_answers(entry, language))
            for language in dict.fromkeys(languages)
            if entry.info and spec(entry.info).has_client_rules(language)
        ]
        today: dict[str, list[tuple[int, str]]] = {answer: [] for answer in get_args(ReadingAnswer)}
        for reader, cells in matrix:
            for writer, answer in cells:
                if writer.number == entry.number:
                    today[answer].append((reader.number, readings.explain(reader, writer)))
        latest = entry.find_latest(entry.kind)
        events = [*list_topic_events(content.history, entry)]
        source = entry.topic.source
        consumers = {client.name for client in entry.topic.clients if client.reads}
        breaking = [
            (number, verdict)
            for number, verdict in [*verdicts.versions.items()][::-1]
            if verdict.is_breaking and verdict.reasons
        ]
        page = self._link(name)
        self._render(
            "topic.html",
            page,
            entry=entry,
            latest=latest,
            matrix=matrix,
            matrices=matrices,
            today=today,
            known=entry.uses.keys() - {""} if entry.number is not None else (),
            code_key=_make_code_key(entry.info.type.name, has_columns=not entry.no_columns),
            module=".".join(self._paths[name]),
            target_name=self._client_target.name if self._client_target else "",
            definition=cut_definition(list_compact_lines(entry.info)),
            example=make_example(entry.info, name),
            version_link=lambda number: self._version_page(name, number).rpartition("/")[2],
            script=page.rpartition("/")[2].removesuffix("html") + "js",
            source=source,
            flow=Markup(draw_flow(name.topic, verdicts.pairs)),  # noqa: S704  the text in it is escaped
            pairs=[(name, pair) for pair in verdicts.pairs],
            broken_words=count_broken(verdicts.broken_consumers, len(consumers)),
            reader_cells=lambda number: _reader_cells(entry, number),
            writers_of=_name_clients(verdicts, writes=True),
            readers_of=_name_clients(verdicts, writes=False),
            breaking_versions=breaking,
            explained={number for number, _ in breaking[:12]},
            returns=[event for event in events if event.kind in ("return", "deletion")][::-1],
            lanes=draw_lanes(entry),
            here_namespace=name.namespace_name,
            here_topic=name,
        )
        versions = [version_entry.version for version_entry in entry.latest_first]
        lines_by_number = {version.number: list_compact_lines(version.info) for version in versions if version.info}
        self._write_versions(entry, lines_by_number)
        self._write_script(entry, lines_by_number, page.removesuffix("html") + "js")
        return _collect_facts(entry, events)

    def _add_topic(self, name: TopicName, facts: TopicFacts) -> None:
        """Record the facts of a topic for the other pages."""
        self._events += facts.events
        self._list_topic(name, facts)
        for client in facts.clients:
            self._clients.setdefault(client.name, ListedClient(client.name)).add(name, client, facts.pairs)
            self._clients_of[name].append(client.name)
            if client.team:
                self._teams.setdefault(client.team, ListedClient(client.team)).add(name, client, facts.pairs)
        if facts.types:
            self._types.add(facts.types)
            self._code_types.add((facts.type, facts.has_columns))

    def _write_versions(self, entry: TopicEntry, lines_by_number: Mapping[int, Sequence[str]]) -> None:
        """Write the pages of versions, each with the changes to the version before."""
        entries_by_page: dict[str, list[VersionEntry]] = {}
        for version_entry in entry.latest_first:
            page = self._version_page(entry.name, version_entry.version.number).partition("#")[0]
            entries_by_page.setdefault(page, []).append(version_entry)
        for page, version_entries in entries_by_page.items():
            differences: dict[int, Markup] = {}
            size = 0
            for version_entry in version_entries:
                difference = render_difference(version_entry, lines_by_number, is_short=size > _MAX_PAGE)
                differences[version_entry.version.number] = difference
                size += len(difference)
            self._render(
                "history.html",
                page,
                entry=entry,
                version_entries=version_entries,
                differences=differences,
                pages=[*entries_by_page],
                here_namespace=entry.name.namespace_name,
                here_topic=entry.name,
            )

    def _write_script(self, entry: TopicEntry, lines_by_number: Mapping[int, Sequence[str]], path: str) -> None:
        """Write the definitions of all versions as a script, each as its differences from the version before.

        A page that was opened from the disk can load a script, and no other file.
        """
        if len(entry.latest_first) < 2:
            return
        versions_of_script: list[list[Any]] = []
        previous: Sequence[str] = []
        for version_entry in reversed(entry.latest_first):
            version = version_entry.version
            lines = lines_by_number.get(version.number, [])
            head, tail = count_common(previous, lines)
            label = format_day(version.commit) if version.commit else ""
            text = pack_lines(lines[head : len(lines) - tail])
            versions_of_script.append([version.number, label, head, len(previous) - head - tail, text])
            previous = lines
        value = {"force": entry.number, "versions": versions_of_script}
        self._write_file(path, f"window.schemactlTopic={_to_json(value)};\n")

    def _list_topic(self, name: TopicName, facts: TopicFacts | None = None) -> None:
        """Record a topic for the lists, the search and the figures; a topic without schema has no page."""
        metadata = self._content.catalog.metadata(name)
        listed = self._describe_topic(name, facts)
        self._topics.append(listed)
        self._listed[name.namespace_name].append(listed)
        if metadata.owner:
            self._owned[metadata.owner].append(listed)
        place = listed.page or namespace_link(name.namespace_name)
        text = plain_text(" ".join(dict.fromkeys(filter(None, (metadata.description, facts.doc if facts else "")))))
        self._search.append(
            [
                place,
                str(name),
                metadata.owner,
                text,
                listed.type,
                facts.fields if facts else [],
                [*listed.labels],
                listed.strategy,
                listed.number,
                listed.chip_kind,
                listed.chip,
                listed.cells,
                listed.clients,
                listed.changed,
                [*listed.states],
            ]
        )
        if listed.is_deleted:
            return
        self._figures.topics += 1
        if facts:
            self._figures.fields += facts.field_count
            self._figures.documented += facts.documented
            self._figures.broken += [(consumer, name) for consumer in facts.broken]
        if not metadata.owner:
            self._problems["owner"].append((name, ""))
        if not (facts and facts.clients):
            self._problems["clients"].append((name, ""))
        if not metadata.description and not (facts and facts.doc):
            self._problems["description"].append((name, ""))
        tip = self._content.history.tip
        end = metadata.deprecated.remove_after if metadata.deprecated else None
        if end and tip and end < datetime.fromtimestamp(tip.time_s, UTC).date():
            self._problems["overdue"].append((name, f"to be removed after {end}"))

    def _describe_topic(self, name: TopicName, facts: TopicFacts | None) -> ListedTopic:
        metadata = self._content.catalog.metadata(name)
        strategy, _ = self._content.catalog.strategy(name, self._content.project.defaults)
        labels = tuple(f"{key}={text}" if text else key for key, text in metadata.labels.items())
        description = plain_text(metadata.description or (facts.doc if facts else ""))[:200]
        if facts is None:
            return ListedTopic(name, "no schema", "", "", metadata.owner, description, "", labels=labels)
        states = []
        kind, words = (facts.verdict.kind, facts.verdict.text) if facts.verdict else ("", "")
        if metadata.deprecated:
            states.append("old")
            end = metadata.deprecated.remove_after
            kind, words = "waived", f"remove after {end}" if end else "deprecated"
        if facts.broken:
            states.append("hurts")
            more = f" and {len(facts.broken) - 2} more" if len(facts.broken) > 2 else ""
            kind, words = "hurts", f"breaks {', '.join(facts.broken[:2])}{more}"
        if facts.number is None:
            states.append("gone")
            kind, words = "deleted", "deleted"
        tip = self._content.history.tip
        start_s = tip.time_s - timedelta(days=_RECENT_DAYS).total_seconds() if tip else 0
        if facts.breaking_s is not None and facts.breaking_s >= start_s:
            states.append("broke")
        return ListedTopic(
            name=name,
            type=facts.type,
            number="" if facts.number is None else f"v{facts.number}",
            strategy=strategy.value,
            owner=metadata.owner,
            description=description,
            page=self._link(name),
            chip_kind=kind,
            chip=words,
            cells=facts.cells,
            clients=len({client.name for client in facts.clients}),
            changed=facts.changed,
            states=tuple(states),
            labels=labels,
        )

    # Other pages

    def _count_figures(self, months: Sequence[Month]) -> None:
        figures = self._figures
        figures.namespaces = len({topic.name.namespace_name for topic in self._topics if not topic.is_deleted})
        figures.types = len(self._list_shown_types())
        figures.clients = len(self._clients)
        figures.breaking = [event for event in months[0].events if event.is_breaking] if months else []
        figures.last_breaking = next((event for event in self._events if event.is_breaking), None)
        count = figures.topics
        figures.shares = [
            ("Topics with declared clients", count - len(self._problems["clients"]), count),
            ("Fields with documentation", figures.documented, figures.fields),
            ("Topics with an owner", count - len(self._problems["owner"]), count),
        ]

    def _write_types(self) -> None:
        self._types.connect()
        users, parts = self._types.list_edges(
            _make_type_box, lambda name: Box(name.schema_id, f"../{self._link(name)}", "topic")
        )
        catalog = self._content.catalog
        for use in self._types.values():
            topics = sorted(use.topics, key=str)
            if self._types.is_message_of_one(use):
                # The page of the topic says all of it.
                page = f"../{self._link(topics[0])}"
                self._write(
                    type_link(use.name), _FORWARDING.format(name=escape(clean_value(use.name)), page=escape(page))
                )
                continue
            clients = {client for name in topics for client in self._clients_of.get(name, ())}
            self._render(
                "type.html",
                type_link(use.name),
                use=use,
                users=topics[:_MAX_TOPICS],
                more=len(topics[_MAX_TOPICS:]),
                clients=clients,
                clients_of=self._clients_of,
                owners=sorted({owner for name in topics if (owner := catalog.metadata(name).owner)}),
                graph=Markup(draw_graph(_make_type_box(use.name), users, parts)),  # noqa: S704  the text in it is escaped
            )
        by_users = sorted(self._list_shown_types(), key=lambda use: (-len(use.topics), use.name))
        self._render("types.html", "types.html", types=by_users, messages=len(self._types) - len(by_users))

    def _list_shown_types(self) -> list[TypeUse]:
        """Return the types that have a page: all types except the messages of a single topic."""
        return [use for use in self._types.values() if not self._types.is_message_of_one(use)]

    def _write_namespace(self, name: NamespaceName, events: Sequence[Event]) -> None:
        if name in self._tree and not self._has_small_tree:
            topics = [[self._link(topic), topic.topic] for topic in self._tree[name][:_MAX_TREE_TOPICS]]
            self._write(topics_file(name), f"window.schemactlTopics={_to_json(topics)};\n")
        self._write_topic_list(
            "namespace.html",
            namespace_link(name),
            self._listed[name],
            name=name,
            space=self._content.catalog.namespaces.get(name),
            metadata=self._content.catalog.metadata(name),
            months=group_months(events[:_OWN_EVENTS]),
            here_namespace=name,
        )

    def _write_owner(self, owner: str, topics: Sequence[ListedTopic], events: Sequence[Event]) -> None:
        feed = owner_link(owner).removesuffix("html") + "xml"
        self._write_topic_list(
            "owner.html",
            owner_link(owner),
            topics,
            owner=owner,
            feed=feed,
            team_page=team_link(owner) if owner in self._teams else "",
            months=group_months(events[:_OWN_EVENTS]),
        )
        self._write_feed(feed, f"{owner}: {self._jinja.globals['site']}", owner_link(owner), events, owner)

    def _write_topic_list(self, template: str, path: str, topics: Sequence[ListedTopic], **values: Any) -> None:
        """Write a page with a list of topics, and further pages for a long list."""
        pages = _paginate(path, sorted(topics, key=lambda topic: str(topic.name)), _MAX_TOPICS)
        count = sum(not topic.is_deleted for topic in topics)
        for here in pages:
            own_values = {**values, "months": values.get("months") if here == path else []}
            self._render(template, here, count=count, pages=pages, here=here, **own_values)

    def _write_clients(self) -> None:
        order = sorted(self._clients.values(), key=lambda client: (not client.broken, client.name))
        names_by_team: dict[str, list[str]] = defaultdict(list)
        for client in order:
            for team in client.teams:
                names_by_team[team].append(client.name)
        self._render("clients.html", "clients.html", clients=order, teams=sorted(names_by_team.items()))
        for client, is_team in [(listed, False) for listed in order] + [(team, True) for team in self._teams.values()]:
            pairs_by_topic: dict[TopicName, list[Pair]] = {}
            for topic, pair in client.pairs:
                pairs_by_topic.setdefault(topic, []).append(pair)
            self._render(
                "client.html",
                (team_link if is_team else client_link)(client.name),
                name=client.name,
                is_team=is_team,
                names=names_by_team[client.name] if is_team else [],
                roles=[*client.roles],
                teams=[*client.teams],
                languages=[*client.languages],
                contacts=[*client.contacts],
                owner_page=owner_link(client.name) if is_team and client.name in self._owned else "",
                pictures=[
                    (topic, Markup(draw_flow(topic.topic, pairs)))  # noqa: S704  the text in it is escaped
                    for topic, pairs in [*pairs_by_topic.items()][:20]
                ],
                pairs=sorted(client.pairs, key=lambda row: (not row[1].breaks, str(row[0]))),
            )

    def _write_index(self, months: Sequence[Month]) -> None:
        order = {"hurts": 0, "waived": 1, "breaks": 2}
        alive = [topic for topic in self._topics if not topic.is_deleted]
        listed = sorted(alive, key=lambda topic: topic.name)
        listed.sort(key=lambda topic: topic.changed, reverse=True)
        listed.sort(key=lambda topic: order.get(topic.chip_kind, 3))
        self._render(
            "index.html",
            "index.html",
            spaces=[
                (name, sum(not topic.is_deleted for topic in self._listed[name]))
                for name in self._content.list_namespaces()
            ],
            owners=sorted(
                (owner, sum(not topic.is_deleted for topic in listed)) for owner, listed in self._owned.items()
            ),
            recent=self._events[:_RECENT_EVENTS],
            listed=listed[:_MAX_TOPICS],
            more=len(listed[_MAX_TOPICS:]),
            months=months,
            examples=self._choose_examples(),
        )
        self._write_topic_list("topics.html", "topics.html", self._topics)
        problems = [
            ("Overdue deprecations", "Remove the declaration, or set a later day.", self._problems["overdue"]),
            ("Topics without an owner", "Add `owner` to the topic or to its namespace.", self._problems["owner"]),
            (
                "Topics without a description",
                "Add `description`, or documentation to the definition.",
                self._problems["description"],
            ),
            ("Topics without clients", "Add `clients`, so that checks name who breaks.", self._problems["clients"]),
        ]
        self._render("health.html", "health.html", problems=problems)

    def _choose_examples(self) -> list[str]:
        """Return words that the search finds, one of each kind."""
        examples = []
        shared = max(self._types.values(), key=lambda use: len(use.topics), default=None)
        if shared:
            examples.append(shared.name.rpartition(".")[2])
        field_rows = (field_row for topic_row in self._search for field_row in topic_row[5])
        examples += next((symbols[-1:] for field_row in field_rows for symbols in field_row[4:5] if symbols), [])
        examples += [*self._clients][:1]
        examples += [event.commit.short[:7] for event in self._events[:1]]
        return examples

    def _write_changes(self, months: Sequence[Month]) -> None:
        """Write the pages of changes, `changes.json`, and the feeds."""
        breaking = [event for event in self._events if event.is_breaking]
        lead = " ".join(f"{month.name}: {month.summary}." for month in months[:2])
        for path, heading, events, overview in (
            ("changes.html", "Changes", self._events, months),
            ("breaking.html", "Breaking changes", breaking, group_months(breaking)),
        ):
            shown_events = events[: _MAX_EVENTS * _MAX_EVENT_PAGES]
            pages = _paginate(path, shown_events, _MAX_EVENTS)
            for here, page_events in pages.items():
                self._render(
                    "changes.html",
                    here,
                    heading=heading,
                    lead=lead if here == "changes.html" else "",
                    overview=overview,
                    months=group_months(page_events),
                    pages=pages,
                    here=here,
                    older=len(events) - len(shown_events),
                )
        value = {
            "format_version": 1,
            "months": [
                {
                    "month": month.key,
                    "breaking": sum(event.is_breaking for event in month.events),
                    "events": [event.to_value() for event in month.events],
                }
                for month in months
            ],
        }
        self._write("changes.json", json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")
        site = self._jinja.globals["site"]
        self._write_feed("feed.xml", str(site), "index.html", self._events)
        self._write_feed("breaking.xml", f"Breaking changes: {site}", "breaking.html", breaking, "breaking")

    def _write_feed(self, path: str, name: str, page: str, events: Sequence[Event], *key: str) -> None:
        """Write a feed. Its ids derive from commits, so they are unique and do not change with the title."""
        first = self._events[-1].commit.id if self._events else ""
        self._render(
            "feed.xml",
            path,
            id=_make_urn(first, *key),
            name=name,
            page=page,
            events=events[:_FEED_ENTRIES],
            updated=_format_time(events[0].commit.time_s if events else 0),
            moment=_format_time,
            entry_id=_make_urn,
        )

    @property
    def _client_target(self) -> Target | None:
        """The last target with an address for clients, or None."""
        targets = self._content.project.targets.values()
        return next((target for target in reversed([*targets]) if target.registry.startswith("http")), None)

    def _write_code(self) -> None:
        """Write the code to paste as a script, once for all topics of the same type."""
        generate = self._content.project.generate
        code = {
            _make_code_key(type_, has_columns=has_columns): [
                [
                    snippets.label,
                    snippets.install,
                    [[heading, highlight(clean_value(text))] for heading, text in snippets.blocks],
                ]
                for snippets in write_snippets(
                    SchemaType[type_],
                    url=find_service_url(self._client_target),
                    package=generate.package if generate else "",
                    has_columns=has_columns,
                )
            ]
            for type_, has_columns in sorted(self._code_types)
        }
        self._write("code.js", f"window.schemactlCode={_to_json(code)};\n")

    def _write_search_index(self) -> None:
        """Write the index as a script, because a page opened as a file cannot fetch another file."""
        commits: dict[str, list[str]] = {}
        for event in self._events:
            if len(commits) < _MAX_COMMITS:
                row = [
                    event.commit.short,
                    event.commit.subject,
                    format_day(event.commit),
                    self._event_link(event),
                    event.title,
                ]
                commits.setdefault(event.commit.id, row)
        index = {
            "topics": self._search,
            "types": [
                [type_link(use.name), use.name, len(use.topics), [*use.symbols[:50]]]
                for use in sorted(self._list_shown_types(), key=lambda use: use.name)
            ],
            "namespaces": [
                [namespace_link(name), str(name), len(self._listed[name])] for name in self._content.list_namespaces()
            ],
            "owners": [[owner_link(name), name, len(owned)] for name, owned in sorted(self._owned.items())],
            "clients": [
                [client_link(name), name, ", ".join([*client.roles, *(f"team {team}" for team in client.teams)])]
                for name, client in sorted(self._clients.items())
            ],
            "teams": [[team_link(name), name, ""] for name in sorted(self._teams) if name not in self._owned],
            "commits": [*commits.values()],
        }
        self._write("search.js", f"window.schemactlIndex={_to_json(index)};\n")


def _collect_facts(entry: TopicEntry, events: Sequence[Event]) -> TopicFacts:
    """Return the facts of a topic for other pages, without definitions."""
    verdicts = entry.verdicts
    fields: list[list[Any]] = []
    for path, row in zip(list_paths(entry.rows), entry.rows, strict=True):
        life = entry.lives.get(path)
        since = ""
        if life and life.first.commit:
            since = f"since v{life.first.number}, {life.first.commit.short}"
        about = " ".join(filter(None, (row.type_text, row.logical)))
        words = [[*row.symbols[:50]], [*row.aliases]] if row.symbols or row.aliases else []
        fields.append([path, about, plain_text(row.doc), since, *words])
    for life in entry.ended[:40]:
        if life.path not in entry.lives:
            until = f"v{life.first.number} to v{life.last.number}" if life.last else ""
            about = f"renamed to {life.later}" if life.later else "removed"
            fields.append([life.path, life.row.type_text, about, until])
    newest = [entry.state_since] if entry.state_since else []
    newest += [version.version.commit for version in entry.latest_first[:1] if version.version.commit]
    cells = (
        _CELLS.get(verdicts.versions[version.version.number].kind, "r")
        for version in reversed(entry.latest_first[:_MAX_CELLS])
    )
    # The same objects in the list and in the pairs, as `ListedClient.add` compares them.
    clients = {id(client): replace(client, schema=None) for client in entry.topic.clients}
    return TopicFacts(
        type=entry.info.type.name,
        number=entry.number,
        doc=entry.doc,
        verdict=None if entry.number is None else verdicts.versions[entry.number],
        broken=verdicts.broken_consumers,
        cells="".join(cells),
        changed=format_day(max(newest, key=lambda commit: commit.time_s)) if newest else "",
        breaking_s=max(
            (
                version.version.commit.time_s
                for version in entry.latest_first
                if version.version.commit and verdicts.versions[version.version.number].is_breaking
            ),
            default=None,
        ),
        fields=fields,
        field_count=len(entry.rows),
        documented=sum(bool(row.doc) for row in entry.rows),
        has_columns=not entry.no_columns,
        clients=[*clients.values()],
        pairs=[
            replace(
                pair,
                producer=clients[id(pair.producer)] if pair.producer else None,
                consumer=clients[id(pair.consumer)],
                writes=tuple(replace(version, info=None) for version in pair.writes),
                reads=tuple(replace(version, info=None) for version in pair.reads),
                breaks=tuple(
                    replace(
                        pair_break,
                        writer=replace(pair_break.writer, info=None),
                        reader=replace(pair_break.reader, info=None),
                    )
                    for pair_break in pair.breaks
                ),
            )
            for pair in verdicts.pairs
        ],
        events=events,
        types=None if entry.number is None else list_types(entry),
    )


def _to_json(value: object) -> str:
    """Return JSON in ASCII that is safe in a script."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")


def _make_code_key(type_: str, *, has_columns: bool) -> str:
    return type_ if has_columns else f"{type_}-bytes"


def _event_id(event: Event) -> str:
    """Return the place of an event on its page: a name that is unique on the site."""
    name = slug(f"{event.namespace.name}-{event.title}".replace(" ", "-").replace("/", "-"))
    return f"e-{name}-{event.kind}-{event.commit.short}"


def _find_month_page(key: str, pages: Mapping[str, Sequence[Event]]) -> str:
    """Return the page of changes on which a month begins."""
    return next(
        (path for path, events in pages.items() if any(event.month == key for event in events)), next(iter(pages))
    )


def draw_strip(cells: str, words: str) -> Markup:
    """Return a cell for each letter: `n` stops here or breaks a client, `o` had stopped, `w` waived, `r` reads."""
    runs = ""
    for letter, run in groupby(cells):
        count = len([*run])
        style = "" if letter == "r" else f" class={letter}"
        runs += f"<i{style}{f' style=--n:{count}' if count > 1 else ''}></i>"
    clean = escape(clean_value(words))
    return Markup(f'<span class=strip role=img title="{clean}">{runs}</span>')  # noqa: S704  escaped


_ANSWERS: Final[Mapping[str, tuple[str, str]]] = {
    "yes": ("", "yes"),
    "doubtful": ("doubtful", "warning"),
    "strict": ("doubtful", "Java"),
    "misread": ("bad", "other values"),
    "no": ("bad", "no"),
}
"""The style and the word of each answer of a reader."""


def _draw_answers(
    cells: Sequence[tuple[SchemaVersion, ReadingAnswer]],
    reader: SchemaVersion,
    readers_of: Mapping[int, str],
    writers_of: Mapping[int, str],
    readings: Readings,
    language: str,
) -> Markup:
    """Return the cells of one row of the table of readers and writers; pairs of declared clients stand out.

    Cells of a language have the reason why its client cannot read: the page explains only the answers of the specification.
    """
    html = ""
    for writer, answer in cells:
        style, word = _ANSWERS[answer]
        if readers_of[reader.number] and writers_of[writer.number]:
            style = f"{style} live".strip()
        reason = readings.explain(reader, writer, language.lower()) if language and answer != "yes" else ""
        title = f' title="{escape(reason)}"' if reason else ""
        html += f'<td class="{style}"{title}>{word}' if style else f"<td{title}>{word}"
    return Markup(html)  # noqa: S704  all text is escaped


def _reader_cells(entry: TopicEntry, number: int) -> str:
    """Return a letter for each of the newest reader versions at one version: `n` stops here, `o` had stopped before, `r` reads."""
    verdict = entry.verdicts.versions[number]
    here, before = {*verdict.readers}, {*verdict.stopped}
    stop = "w" if verdict.kind == "waived" else "n"
    readers = [version.version.number for version in reversed(entry.latest_first) if version.version.info]
    return "".join(stop if reader in here else "o" if reader in before else "r" for reader in readers[-_MAX_CELLS:])


def _name_clients(verdicts: TopicVerdicts, *, writes: bool) -> Mapping[int, str]:
    """Map the versions that clients write, or are built with, to the names of the clients."""
    names: dict[int, dict[str, None]] = defaultdict(dict)
    for pair in verdicts.pairs:
        client = pair.producer if writes else pair.consumer
        for version in pair.writes if writes else pair.reads:
            if client:
                names[version.number][client.name] = None
    texts = {
        number: ", ".join([*members][:2]) + (f" +{len(members) - 2}" if len(members) > 2 else "")
        for number, members in names.items()
    }
    return defaultdict(str, texts)


def _list_answers(
    entry: TopicEntry, language: str
) -> list[tuple[SchemaVersion, list[tuple[SchemaVersion, ReadingAnswer]]]]:
    """Return a row for each reader version: the answer for each writer version."""
    answer = entry.verdicts.readings.get_answer
    return [
        (reader, [(writer, answer(reader, writer, language)) for writer in entry.compared]) for reader in entry.compared
    ]


def _render_prose(text: str) -> Markup | str:
    """Return the documentation of a field: its text, or HTML if it has Markdown."""
    return render_markdown(text) if re.search(r"[*_`\[]|\n\s*[-+*\d]", text) else text


def _shorten_names(text: str) -> str:
    """Return a change with named types without their namespaces, `OrderStatus` for `com.example.OrderStatus`."""
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)


def _mark_proof(proof: Counterexample) -> Markup:
    """Return a message with the values that the result names marked."""
    text = proof.message
    words = [word for word in re.findall(r"[\w.-]+", proof.result) if f'"{word}"' in text]
    html = str(escape(text))
    for word in words[:1]:
        quoted = str(escape(f'"{word}"'))
        html = html.replace(quoted, f"<span class=guilty>{quoted}</span>", 1)
    return Markup(html)  # noqa: S704  all text is escaped


def make_example(info: SchemaInfo, name: TopicName) -> str:
    """Return an example message as JSON, the same in each run, or "" if the schema has no codec or no short value."""
    try:
        value = next(generate_values(to_codec_schema(info), name.topic, Random(str(name))))  # noqa: S311  plausible, not secret
    except (CodecError, SchemactlError):
        return ""
    text = json.dumps(to_json(value), indent=2, ensure_ascii=False)
    return text if len(text) <= _MAX_EXAMPLE else ""


def _paginate(path: str, rows: Sequence[_Row], size: int) -> dict[str, Sequence[_Row]]:
    """Return the rows of each page by its path: `path` for the first `size` rows, numbered paths for the others."""
    base = path.removesuffix(".html")
    starts = range(0, len(rows) or 1, size)
    # Neither `slug` nor Python allows `~` in a name.
    return {
        f"{base}~{number}.html" if number > 1 else path: rows[start : start + size]
        for number, start in enumerate(starts, 1)
    }


def _make_relative(path: str, *, folder: str) -> str:
    """Return a path of the site as a link from the pages of a folder."""
    if folder and path.startswith(f"{folder}/"):
        return path[len(folder) + 1 :]
    return "../" * (folder.count("/") + 1 if folder else 0) + path


def namespace_link(name: NamespaceName) -> str:
    """Return the path of a namespace's page."""
    return f"namespaces/{slug(name.tenant)}/{slug(name.name)}.html"


def topics_file(name: NamespaceName) -> str:
    """Return the path of the script with the topics of a namespace."""
    return namespace_link(name).removesuffix("html") + "js"


def owner_link(name: str) -> str:
    """Return the path of the page of an owner's topics."""
    return f"owners/{slug(name)}.html"


def client_link(name: str) -> str:
    """Return the path of a client's page."""
    return f"clients/{slug(name)}.html"


def team_link(name: str) -> str:
    """Return the path of the page of a team's clients."""
    return f"teams/{slug(name)}.html"


def type_link(name: str) -> str:
    """Return the path of a named type's page."""
    return f"types/{slug(name)}.html"


def _make_type_box(name: str) -> Box:
    return Box(name, f"../{type_link(name)}")


def _make_urn(*parts: object) -> str:
    """Return the id of a feed or entry, which depends only on these parts."""
    return uuid.uuid5(uuid.NAMESPACE_URL, " ".join(["schemactl", *map(str, parts)])).urn


def _format_time(time_s: int) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat()


def _format_attribute(value: object) -> Markup:
    """Return the value of an attribute, in quotes only if it needs them."""
    text = escape(clean_value(str(value)))
    return text if re.fullmatch(r"[\w.#/~-]+", text) else Markup(f'"{text}"')  # noqa: S704  escaped


def slug(name: str) -> str:
    """Return a file name for any name: the name itself if every file system allows it, else a variant with a part of its hash."""
    plain = re.sub(r"[^a-z0-9_.-]", "_", name.lower())[:150].strip(".")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
