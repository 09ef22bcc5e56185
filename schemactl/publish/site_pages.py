"""Write the files of the catalog site: its pages, the search index and the feed."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from itertools import accumulate, takewhile
from random import Random
from typing import Any, Final, NamedTuple, TypeVar, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from schemactl.codec import CodecError
from schemactl.codec.topic import json_value
from schemactl.codegen.topics import module_paths, schema_of
from schemactl.core.environment import version
from schemactl.core.errors import SchemactlError
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.schema import SchemaInfo
from schemactl.core.terminal import on_one_line
from schemactl.core.wording import counted, day, versions
from schemactl.formats import ReadingAnswer, has_client_rules, reading, spec
from schemactl.history.versions import Progress, no_progress
from schemactl.publish.sample_messages import values
from schemactl.publish.site_catalog import MAX_ROWS, Box, Catalogue, TopicEntry, TypeUses, VersionEntry, graph
from schemactl.report.causes import diff_schemas
from schemactl.report.html import render_diff

_FEED_ENTRIES: Final = 100
"""Versions in the feed and on the page of changes."""

_RECENT_VERSIONS: Final = 10
"""Versions on the start page."""

_MAX_DIFF_LINES: Final = 300

_MAX_DEFINITION: Final = 12_000
"""Characters of a definition that a page shows, in whole lines."""

_MAX_EXAMPLE: Final = 8_000
"""Characters of an example message."""

_MAX_TOPICS: Final = 200
"""The most topics on a page of a namespace, an owner or a type, and on the start page, which lists all or none."""

_MAX_LISTED: Final = 300
"""The most namespaces, owners and types in a list; the search finds the others."""

_MAX_VERSIONS: Final = 50
"""The most versions on a page of a topic; older versions have further pages."""


_Row = TypeVar("_Row")


Write = Callable[[str, str], None]
"""Writes a file, given its path below the site and its text."""


class Site:
    """Writes the site one topic at a time, keeping only the facts that other pages show of a topic."""

    def __init__(self, catalogue: Catalogue, title: str, write: Write) -> None:
        """Create a site with a title, whose files `write` writes."""
        self._catalogue = catalogue
        self._write = write
        self._paths = module_paths(catalogue.catalog.topics)
        self._names: set[TopicName] = set()
        self._types = TypeUses()
        self._search: list[list[Any]] = []
        self._listed: dict[NamespaceName, list[ListedTopic]] = defaultdict(list)
        self._owned: dict[str, list[ListedTopic]] = defaultdict(list)
        self._changes: list[tuple[int, TopicName, VersionEntry]] = []
        self._jinja = Environment(
            loader=PackageLoader("schemactl.publish"),
            autoescape=True,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
            finalize=_clean_value,
        )
        self._jinja.globals |= {"site": title, "made_by": f"schemactl {version()}"}
        self._jinja.globals |= {"link": self._link, "space_link": space_link, "type_link": type_link}
        self._jinja.globals |= {"owner_link": owner_link, "page_of": self._page_of}
        self._jinja.globals |= {"max_rows": MAX_ROWS, "max_listed": _MAX_LISTED, "known": self._types}
        self._jinja.filters |= {"day": day, "counted": counted, "versions": versions}

    def write(self, names: Sequence[TopicName], *, progress: Progress = no_progress) -> int:
        """Write all pages, first the pages of the topics `names`, and return the number of listed topics."""
        self._names.update(names)
        for number, entry in enumerate(self._catalogue.topics(names), 1):
            self._write_topic(entry)
            progress(number, len(names))
        for name in self._catalogue.without_schema(names):
            self._list_topic(name)
        self._write_types()
        for namespace in self._catalogue.namespaces():
            self._write_namespace(namespace)
        for owner, topics in self._owned.items():
            self._write_topic_list("owner.html", owner_link(owner), topics, owner=owner)
        # Newest first, then by name.
        self._changes.sort(key=lambda change: (-change[0], str(change[1])))
        self._write_index()
        self._write_feed()
        self._write_search_index()
        report_css, site_css, site_js = (
            files(package).joinpath(name).read_text("utf-8")
            for package, name in (
                ("schemactl.report", "page.css"),
                ("schemactl.publish", "site.css"),
                ("schemactl.publish", "site.js"),
            )
        )
        self._write("site.css", report_css + site_css)
        self._write("site.js", site_js)
        return len(self._search)

    def _render(self, template: str, path: str, **values: Any) -> None:
        root = "../" * path.count("/")
        self._write(path, self._jinja.get_template(template).render(root=root, **values))

    def _link(self, name: TopicName, number: int | None = None) -> str:
        """Return the path of a topic's page, or of one of its versions."""
        path = "/".join(self._paths[name])
        return f"topics/{path}.html" if number is None else f"topics/{path}.v{number}.html"

    def _page_of(self, name: TopicName) -> str:
        """Return the path of a topic's page, or "" if the site does not have it."""
        return self._link(name) if name in self._names and self._catalogue.catalog.topics[name].versions else ""

    def _write_topic(self, entry: TopicEntry) -> None:
        name = entry.name
        catalogue = self._catalogue
        matrix = [
            (reader, [(writer, reading(reader=reader, writer=writer)) for writer in entry.compared])
            for reader in entry.compared
        ]
        languages = [client.known_language for client in entry.topic.clients if client.reads]
        matrices = [("", matrix)]
        for language in dict.fromkeys(languages):
            if entry.info and has_client_rules(entry.info, language):
                rows = [
                    (
                        reader,
                        [
                            (writer, reading(reader=reader, writer=writer, language=language))
                            for writer in entry.compared
                        ],
                    )
                    for reader in entry.compared
                ]
                matrices.append((language.capitalize(), rows))
        today: dict[str, list[tuple[int, str]]] = {answer: [] for answer in get_args(ReadingAnswer)}
        for reader, cells in matrix:
            for writer, read in cells:
                if writer.number == entry.number:
                    today[read.answer].append((reader.number, read.reason))
        latest = next(
            (version_entry for version_entry in entry.latest_first if version_entry.version.number == entry.number),
            None,
        )
        pages = _paginate(self._link(name), entry.latest_first, _MAX_VERSIONS)
        generate = catalogue.project.generate
        module = ".".join(self._paths[name]) if generate else ""
        self._render(
            "topic.html",
            self._link(name),
            entry=entry,
            pages=pages,
            latest=latest,
            matrix=matrix,
            matrices=matrices,
            today=today,
            known=entry.uses.keys() - {""} if entry.number is not None else (),
            package=generate.package if generate else "",
            module=module,
            constant=self._paths[name][2].upper(),
            definition=_cut_definition(entry.info),
            example=example_of(entry.info, name),
        )
        for path in [*pages][1:]:
            self._render("versions.html", path, entry=entry, pages=pages, here=path)
        for version_entry in entry.latest_first:
            if version_entry.version.info is not None:
                latest_of_kind = entry.find_latest(version_entry.version.kind) if entry.kinds else latest
                self._write_version(entry, version_entry, version_entry.version.info, latest_of_kind)
        self._list_topic(name, entry)
        if entry.number is not None:
            self._types.add(entry)
        self._changes += [
            (version_entry.version.commit.time_s, name, version_entry)
            for version_entry in entry.latest_first
            if version_entry.version.commit
        ]

    def _write_version(
        self, entry: TopicEntry, version_entry: VersionEntry, info: SchemaInfo, latest: VersionEntry | None
    ) -> None:
        """Write the page of a version: its changes, and the changes since then up to the latest version."""
        since = None
        if (
            latest
            and latest.version.number != version_entry.version.number
            and latest.before is not version_entry.version
        ):
            since = VersionEntry(latest.version, latest.author, version_entry.version)
        self._render(
            "version.html",
            self._link(entry.name, version_entry.version.number),
            entry=entry,
            each=version_entry,
            diff=_version_diff(version_entry),
            latest=latest,
            since=since,
            since_diff=_version_diff(since) if since else "",
            definition=_cut_definition(info),
        )

    def _list_topic(self, name: TopicName, entry: TopicEntry | None = None) -> None:
        """Record a topic for the lists and the search; a topic without schema has no page."""
        metadata = self._catalogue.catalog.metadata(name)
        strategy, _ = self._catalogue.catalog.strategy(name, self._catalogue.project.defaults)
        listed = ListedTopic(
            name,
            entry.info.type.name if entry else "no schema",
            ("gone" if entry.number is None else str(entry.number)) if entry else "",
            strategy.value if entry else "",
            metadata.owner,
            metadata.description or (entry.doc if entry else ""),
            bool(metadata.deprecated),
            self._link(name) if entry else "",
        )
        self._listed[name.namespace_name].append(listed)
        if metadata.owner:
            self._owned[metadata.owner].append(listed)
        fields = [
            [row.name, " ".join(filter(None, (row.type_text, row.logical))), row.doc]
            for row in (entry.rows if entry else ())
        ]
        place = listed.page or space_link(name.namespace_name)
        text = " ".join(dict.fromkeys(filter(None, (metadata.description, entry.doc if entry else ""))))
        self._search.append([place, str(name), metadata.owner, text, listed.type, fields])

    def _write_types(self) -> None:
        self._types.connect()
        users, parts = self._types.edges(_type_box, self._topic_box)
        for use in self._types.values():
            topics = sorted(use.topics, key=str)
            self._render(
                "type.html",
                type_link(use.name),
                use=use,
                users=topics[:_MAX_TOPICS],
                more=len(topics[_MAX_TOPICS:]),
                graph=Markup(graph(_type_box(use.name), users, parts)),  # noqa: S704  the text in it is escaped
            )
        by_users = sorted(self._types.values(), key=lambda use: (-len(use.topics), use.name))
        self._render("types.html", "types.html", types=by_users)

    def _topic_box(self, name: TopicName) -> Box:
        return Box(name.schema_id, f"../{self._link(name)}", "topic")

    def _write_namespace(self, name: NamespaceName) -> None:
        self._write_topic_list(
            "namespace.html",
            space_link(name),
            self._listed[name],
            name=name,
            space=self._catalogue.catalog.namespaces.get(name),
            said=self._catalogue.catalog.metadata(name),
        )

    def _write_topic_list(self, template: str, path: str, topics: Sequence[ListedTopic], **values: Any) -> None:
        """Write a page with a list of topics, and further pages for a long list."""
        pages = _paginate(path, sorted(topics, key=lambda topic: str(topic.name)), _MAX_TOPICS)
        for here in pages:
            self._render(template, here, count=len(topics), pages=pages, here=here, **values)

    def _write_index(self) -> None:
        spaces = [
            (name, self._catalogue.catalog.metadata(name), len(self._listed[name]))
            for name in self._catalogue.namespaces()
        ]
        topics = sorted(
            (topic for listed in self._listed.values() for topic in listed), key=lambda topic: str(topic.name)
        )
        self._render(
            "index.html",
            "index.html",
            spaces=spaces,
            owners=sorted((owner, len(listed)) for owner, listed in self._owned.items()),
            recent=self._changes[:_RECENT_VERSIONS],
            topics=len(self._search),
            listed=topics if len(topics) <= _MAX_TOPICS else [],
            types=len(self._types),
            tip=self._catalogue.history.tip,
            ref=self._catalogue.history.ref,
        )
        self._render("changes.html", "changes.html", changes=self._changes[:_FEED_ENTRIES])

    def _write_feed(self) -> None:
        """Write the feed. Its ids derive from commits, so they are unique and do not change with the title."""
        entries = self._changes[:_FEED_ENTRIES]
        newest_s = entries[0][0] if entries else 0
        first = self._changes[-1][2].version.commit if entries else None
        self._render(
            "feed.xml",
            "feed.xml",
            id=_make_urn(first.id if first else ""),
            changes=entries,
            updated=_format_time(newest_s),
            moment=_format_time,
            entry_id=_make_urn,
        )

    def _write_search_index(self) -> None:
        """Write the index as a script, because a page opened as a file cannot fetch another file."""
        index = {
            "topics": self._search,
            "types": [[type_link(name), name, len(use.topics)] for name, use in sorted(self._types.items())],
            "namespaces": [
                [space_link(name), str(name), len(self._listed[name])] for name in self._catalogue.namespaces()
            ],
            "owners": [[owner_link(name), name, len(owned)] for name, owned in sorted(self._owned.items())],
        }
        text = json.dumps(index, ensure_ascii=True, separators=(",", ":"))
        self._write("search.js", f"window.schemactlIndex={text};\n")


class ListedTopic(NamedTuple):
    """A topic in the lists of its namespace and its owner.

    Attributes:
        number: the version in force, "gone" if the schema was removed, or "" if it never had one.
        page: the path of its page, or "".
    """

    name: TopicName
    type: str
    number: str
    strategy: str
    owner: str
    description: str
    is_deprecated: bool
    page: str


def example_of(info: SchemaInfo, name: TopicName) -> str:
    """Return an example message as JSON, the same in each run, or "" if the schema has no codec or no short value."""
    try:
        value = next(values(schema_of(info), name.topic, Random(str(name))))  # noqa: S311  plausible, not secret
    except (CodecError, SchemactlError):
        return ""
    text = json.dumps(json_value(value), indent=2, ensure_ascii=False)
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


def space_link(name: NamespaceName) -> str:
    """Return the path of a namespace's page."""
    return f"namespaces/{slug(name.tenant)}/{slug(name.name)}.html"


def owner_link(name: str) -> str:
    """Return the path of the page of an owner's topics."""
    return f"owners/{slug(name)}.html"


def type_link(name: str) -> str:
    """Return the path of a named type's page."""
    return f"types/{slug(name)}.html"


def _type_box(name: str) -> Box:
    return Box(name, f"../{type_link(name)}")


def _make_urn(*parts: object) -> str:
    """Return the id of a feed or entry, which depends only on these parts."""
    return uuid.uuid5(uuid.NAMESPACE_URL, " ".join(["schemactl", *map(str, parts)])).urn


def _format_time(time_s: int) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat()


def _clean_value(value: Any) -> Any:
    """Return a value without control characters, unless it is generated HTML."""
    if isinstance(value, (Markup, int)) or (isinstance(value, str) and value.isprintable()):
        return value
    return "\n".join(map(on_one_line, str(value).split("\n")))


def _cut_definition(info: SchemaInfo) -> tuple[str, int]:
    """Return the lines of a definition that a page shows, and the number of the rest."""
    lines = spec(info).lines(info)
    lengths = accumulate(len(line) + 1 for line in lines)
    count = sum(1 for _ in takewhile(_MAX_DEFINITION.__ge__, lengths))
    return "\n".join(lines[:count]), len(lines) - count


def _version_diff(entry: VersionEntry) -> Markup:
    """Return a table with the difference to the previous version, or "" if there is none."""
    old, new = entry.before.info if entry.before else None, entry.version.info
    if entry.before is None or old is None or new is None:
        return Markup()
    labels = (f"version {entry.before.number}", f"version {entry.version.number}")
    diff = diff_schemas(old=old, new=new, labels=labels)
    return Markup(render_diff(diff, _MAX_DIFF_LINES) if diff else "")  # noqa: S704  the text in it is escaped


def slug(name: str) -> str:
    """Return a file name for any name: the name itself if every file system allows it, else a variant with a part of its hash."""
    plain = re.sub(r"[^a-z0-9_.-]", "_", name.lower())[:150].strip(".")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
