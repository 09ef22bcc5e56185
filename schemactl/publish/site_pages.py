"""Write the files of the catalog site: pages by Jinja2, the search index and the feed."""

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
from typing import Any, Final, NamedTuple, TypeVar

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
from schemactl.formats import reading, spec
from schemactl.history.versions import Progress, no_progress
from schemactl.publish.sample_messages import values
from schemactl.publish.site_catalog import MAX_ROWS, Box, Catalogue, TopicEntry, TypeUses, VersionEntry, graph
from schemactl.report.causes import diff_schemas
from schemactl.report.html import render_diff

_MAX_LENGTH: Final = 8_000


def example_of(info: SchemaInfo, name: TopicName) -> str:
    """Return a message's value as JSON, the same each time; "": there is no codec for the schema, or it has no such value."""
    try:
        value = next(values(schema_of(info), name.topic, Random(str(name))))  # noqa: S311  plausible, not secret
    except (CodecError, SchemactlError):
        return ""
    text = json.dumps(json_value(value), indent=2, ensure_ascii=False)
    return text if len(text) <= _MAX_LENGTH else ""


_FEED_ENTRIES: Final = 100
_RECENT: Final = 10
_MAX_DIFF_LINES: Final = 300
_MAX_DEFINITION: Final = 12_000
"""Characters of a definition that a page shows, in whole lines."""

_SHOWN_TOPICS: Final = 200
"""So many topics stand on one page of a namespace or an owner, on the first page if there are no more, and users on that of a type."""

_MAX_LISTED: Final = 300
"""So many namespaces, owners and types are listed; the search finds the others."""

_SHOWN_VERSIONS: Final = 50
"""So many versions stand on the page of a topic; older ones have further pages."""

_Row = TypeVar("_Row")

Write = Callable[[str, str], None]
"""Writes the file of that path below the site."""


class ListedTopic(NamedTuple):
    """A topic in the lists of its namespace and its owner.

    Attributes:
        number: of the version in force, "gone", or "" without a schema.
        page: the path of its page; "": it has none.
    """

    name: TopicName
    type: str
    number: str
    strategy: str
    owner: str
    description: str
    is_deprecated: bool
    page: str


class Site:
    """Writes the catalogue, one topic after the other: only what other pages say of a topic is kept."""

    def __init__(self, catalogue: Catalogue, title: str, write: Write) -> None:
        """Write with `write`; `title` is what the catalogue is called."""
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
            finalize=_shown,
        )
        self._jinja.globals |= {"site": title, "made_by": f"schemactl {version()}"}
        self._jinja.globals |= {"link": self._link, "space_link": space_link, "type_link": type_link}
        self._jinja.globals |= {"owner_link": owner_link, "page_of": self._page_of}
        self._jinja.globals |= {"max_rows": MAX_ROWS, "max_listed": _MAX_LISTED, "known": self._types}
        self._jinja.filters |= {"day": day, "counted": counted, "versions": versions}

    def write(self, names: Sequence[TopicName], *, progress: Progress = no_progress) -> int:
        """Write all pages, those of the topics `names` first; return how many topics are listed."""
        self._names.update(names)
        for number, entry in enumerate(self._catalogue.topics(names), 1):
            self._topic(entry)
            progress(number, len(names))
        for name in self._catalogue.without_schema(names):
            self._list(name)
        self._all_types()
        for space in self._catalogue.namespaces():
            self._namespace(space)
        for owner, listed in self._owned.items():
            self._list_of_topics("owner.html", owner_link(owner), listed, owner=owner)
        self._changes.sort(key=lambda each: (-each[0], str(each[1])))
        self._index()
        self._feed()
        self._search_index()
        report = files("schemactl.report")
        own = files("schemactl.publish")
        self._write(
            "site.css", report.joinpath("page.css").read_text("utf-8") + own.joinpath("site.css").read_text("utf-8")
        )
        self._write("site.js", own.joinpath("site.js").read_text("utf-8"))
        return len(self._search)

    def _render(self, template: str, path: str, **values: Any) -> None:
        root = "../" * path.count("/")
        self._write(path, self._jinja.get_template(template).render(root=root, **values))

    def _link(self, name: TopicName, number: int | None = None) -> str:
        """Return the path of a topic's page, or of one of its versions."""
        path = "/".join(self._paths[name])
        return f"topics/{path}.html" if number is None else f"topics/{path}.v{number}.html"

    def _page_of(self, name: TopicName) -> str:
        """Return the path of a topic's page; "": it has none here."""
        return self._link(name) if name in self._names and self._catalogue.catalog.topics[name].versions else ""

    def _topic(self, entry: TopicEntry) -> None:
        name = entry.name
        catalogue = self._catalogue
        matrix = [
            (reader, [(writer, reading(reader=reader, writer=writer)) for writer in entry.compared])
            for reader in entry.compared
        ]
        today: dict[str, list[tuple[int, str]]] = {"yes": [], "strict": [], "no": []}
        for reader, cells in matrix:
            for writer, read in cells:
                if writer.number == entry.number:
                    today[read.answer].append((reader.number, read.reason))
        latest = next((each for each in entry.latest_first if each.version.number == entry.number), None)
        pages = _pages(self._link(name), entry.latest_first, _SHOWN_VERSIONS)
        generate = catalogue.project.generate
        module = ".".join(self._paths[name]) if generate else ""
        self._render(
            "topic.html",
            self._link(name),
            entry=entry,
            pages=pages,
            latest=latest,
            matrix=matrix,
            today=today,
            known=entry.uses.keys() - {""} if entry.number is not None else (),
            package=generate.package if generate else "",
            module=module,
            constant=self._paths[name][2].upper(),
            definition=_definition(entry.info),
            example=example_of(entry.info, name),
        )
        for path in [*pages][1:]:
            self._render("versions.html", path, entry=entry, pages=pages, here=path)
        for each in entry.latest_first:
            if each.version.info is not None:
                self._version(entry, each, each.version.info, latest)
        self._keep(entry)

    def _version(self, entry: TopicEntry, each: VersionEntry, info: SchemaInfo, latest: VersionEntry | None) -> None:
        """Write a version's page: what it changed, and what changed after it, up to the latest."""
        since = None
        if latest and latest.version.number != each.version.number and latest.before is not each.version:
            since = VersionEntry(latest.version, latest.author, each.version)
        self._render(
            "version.html",
            self._link(entry.name, each.version.number),
            entry=entry,
            each=each,
            diff=_side_by_side(each),
            latest=latest,
            since=since,
            since_diff=_side_by_side(since) if since else "",
            definition=_definition(info),
        )

    def _keep(self, entry: TopicEntry) -> None:
        """Keep what other pages show of the topic."""
        name = entry.name
        self._list(name, entry)
        if entry.number is not None:
            self._types.add(entry)
        self._changes += [
            (each.version.commit.time_s, name, each) for each in entry.latest_first if each.version.commit
        ]

    def _list(self, name: TopicName, entry: TopicEntry | None = None) -> None:
        """Keep what the namespace's page and the search say of a topic; one without a schema has no page of its own."""
        said = self._catalogue.catalog.metadata(name)
        strategy, _ = self._catalogue.catalog.strategy(name, self._catalogue.project.defaults)
        listed = ListedTopic(
            name,
            entry.info.type.name if entry else "no schema",
            ("gone" if entry.number is None else str(entry.number)) if entry else "",
            strategy.value if entry else "",
            said.owner,
            said.description or (entry.doc if entry else ""),
            bool(said.deprecated),
            self._link(name) if entry else "",
        )
        self._listed[name.namespace_name].append(listed)
        if said.owner:
            self._owned[said.owner].append(listed)
        fields = [
            [row.name, " ".join(filter(None, (row.type_text, row.logical))), row.doc]
            for row in (entry.rows if entry else ())
        ]
        place = listed.page or space_link(name.namespace_name)
        words = " ".join(dict.fromkeys(filter(None, (said.description, entry.doc if entry else ""))))
        self._search.append([place, str(name), said.owner, words, listed.type, fields])

    def _all_types(self) -> None:
        self._types.connect()
        users, parts = self._types.edges(_type_box, self._topic_box)
        for use in self._types.values():
            topics = sorted(use.topics, key=str)
            self._render(
                "type.html",
                type_link(use.name),
                use=use,
                users=topics[:_SHOWN_TOPICS],
                more=len(topics[_SHOWN_TOPICS:]),
                graph=Markup(graph(_type_box(use.name), users, parts)),  # noqa: S704  it escapes what it shows
            )
        by_users = sorted(self._types.values(), key=lambda use: (-len(use.topics), use.name))
        self._render("types.html", "types.html", types=by_users)

    def _topic_box(self, name: TopicName) -> Box:
        return Box(name.schema_id, f"../{self._link(name)}", "topic")

    def _namespace(self, name: NamespaceName) -> None:
        self._list_of_topics(
            "namespace.html",
            space_link(name),
            self._listed[name],
            name=name,
            space=self._catalogue.catalog.namespaces.get(name),
            said=self._catalogue.catalog.metadata(name),
        )

    def _list_of_topics(self, template: str, path: str, topics: Sequence[ListedTopic], **values: Any) -> None:
        """Write a page that lists topics, and further ones where they are many."""
        pages = _pages(path, sorted(topics, key=lambda each: str(each.name)), _SHOWN_TOPICS)
        for here in pages:
            self._render(template, here, count=len(topics), pages=pages, here=here, **values)

    def _index(self) -> None:
        spaces = [
            (name, self._catalogue.catalog.metadata(name), len(self._listed[name]))
            for name in self._catalogue.namespaces()
        ]
        self._render(
            "index.html",
            "index.html",
            spaces=spaces,
            owners=sorted((owner, len(listed)) for owner, listed in self._owned.items()),
            recent=self._changes[:_RECENT],
            topics=len(self._search),
            listed=self._few_topics(),
            types=len(self._types),
            tip=self._catalogue.history.tip,
            ref=self._catalogue.history.ref,
        )
        self._render("changes.html", "changes.html", changes=self._changes[:_FEED_ENTRIES])

    def _few_topics(self) -> list[ListedTopic]:
        """Return all topics, unless they are more than one page lists."""
        topics = [each for listed in self._listed.values() for each in listed]
        return sorted(topics, key=lambda each: str(each.name)) if len(topics) <= _SHOWN_TOPICS else []

    def _feed(self) -> None:
        """Write the feed. Its ids come from commits: they stay when the title changes, and no other repository has them."""
        entries = self._changes[:_FEED_ENTRIES]
        newest_s = entries[0][0] if entries else 0
        first = self._changes[-1][2].version.commit if entries else None
        self._render(
            "feed.xml",
            "feed.xml",
            id=_urn(first.id if first else ""),
            changes=entries,
            updated=_moment(newest_s),
            moment=_moment,
            entry_id=_urn,
        )

    def _search_index(self) -> None:
        """Write the index as a script: what is opened as a file cannot ask for another one."""
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


def _pages(path: str, rows: Sequence[_Row], size: int) -> dict[str, Sequence[_Row]]:
    """Return the rows of each page by its path: `path`, and numbered ones for those beyond `size`."""
    base = path.removesuffix(".html")
    starts = range(0, len(rows) or 1, size)
    # No name that `slug` or Python allows has a `~`.
    return {
        f"{base}~{number}.html" if number > 1 else path: rows[at : at + size] for number, at in enumerate(starts, 1)
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


def _urn(*parts: object) -> str:
    """Return the id that the feed has for what these parts tell from everything else, always the same."""
    return uuid.uuid5(uuid.NAMESPACE_URL, " ".join(["schemactl", *map(str, parts)])).urn


def _moment(time_s: int) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat()


def _shown(value: Any) -> Any:
    """Return what a page shows of a value: no control characters, unless it is HTML of ours."""
    if isinstance(value, (Markup, int)) or (isinstance(value, str) and value.isprintable()):
        return value
    return "\n".join(map(on_one_line, str(value).split("\n")))


def _definition(info: SchemaInfo) -> tuple[str, int]:
    """Return the lines of a definition that a page shows, and how many more there are."""
    lines = spec(info).lines(info)
    lengths = accumulate(len(line) + 1 for line in lines)
    shown = sum(1 for _ in takewhile(_MAX_DEFINITION.__ge__, lengths))
    return "\n".join(lines[:shown]), len(lines) - shown


def _side_by_side(each: VersionEntry) -> Markup:
    """Return the lines that a version differs in from the one before, as a table; none where nothing shows."""
    old, new = each.before.info if each.before else None, each.version.info
    if each.before is None or old is None or new is None:
        return Markup()
    labels = (f"version {each.before.number}", f"version {each.version.number}")
    found = diff_schemas(old=old, new=new, labels=labels)
    return Markup(render_diff(found, _MAX_DIFF_LINES) if found else "")  # noqa: S704  it escapes what it shows


def slug(name: str) -> str:
    """Return a file's name for any name: its own where that is one for every file system, else with a part of its hash."""
    plain = re.sub(r"[^a-z0-9_.-]", "_", name.lower())[:150].strip(".")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
