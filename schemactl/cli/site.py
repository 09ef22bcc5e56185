"""`site`: write the approved topics as a catalog of static pages."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.topic_selection import add_filters
from schemactl.core.atomic_files import read, remove, write
from schemactl.core.errors import HistoryError, SchemactlError, UsageError
from schemactl.core.names import TopicName, select_known_topics
from schemactl.core.wording import format_count

if TYPE_CHECKING:
    from schemactl.publish.site_catalog import SiteContent
    from schemactl.publish.site_pages import Site, WrittenTopic


_SITE_LIST: Final = ".schemactl-site"
"""The file in the folder of a site that lists its files, so that the next run can remove those it does not write."""

_SITE_RECORD: Final = "site"
"""The kind of the record's file in the cache."""


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
    from schemactl.history.approved_history import read_waivers_of_commit
    from schemactl.history.git import read_authors
    from schemactl.history.store import Store
    from schemactl.history.target_history import read_effective
    from schemactl.history.versions import encode_inputs
    from schemactl.publish.repository_links import RepositoryLinks, find_web_address

    try:
        from schemactl.publish.site_catalog import SiteContent, TargetHistory
        from schemactl.publish.site_record import SiteRecord, make_record
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markdown_it", "pyarrow", "numpy"):
            raise
        raise SchemactlError(
            f"the catalog needs {error.name}, which is not installed", fix='pip install "pulsar-schemactl[site]"'
        ) from None
    theme = ""
    if args.theme:
        try:
            theme = Path(context.directory, args.theme).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or "it is not UTF-8"
            raise UsageError(f"--theme {args.theme}: {problem}") from None
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
    targets = []
    for name, target in project.targets.items():
        history = None
        # The position of a target may not be known here.
        with suppress(HistoryError):
            history = read_effective(context.repository, project, target, full_history=approved)
        targets.append(TargetHistory(name, history))
    remote_urls = context.repository.remotes.get("origin", {}).get("url", [])
    url = project.repository_url or next(filter(None, map(find_web_address, remote_urls)), "")
    title = args.title or context.folder_name
    catalogue = SiteContent(
        approved,
        project,
        read_authors(context.repository, approved.list_commits()),
        targets,
        cache(lambda commit: read_waivers_of_commit(context.repository, project, commit)),
        RepositoryLinks(url, approved.ref.removeprefix("origin/") or "main"),
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
