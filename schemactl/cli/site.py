"""`schemactl site`: a static catalogue of the approved topics."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.cli.selection import add_filters
from schemactl.core.atomic_files import read, remove, write
from schemactl.core.errors import HistoryError, SchemactlError, UsageError
from schemactl.core.names import select_known
from schemactl.core.wording import counted

if TYPE_CHECKING:
    from schemactl.core.project import Project
    from schemactl.history import History

_LISTED = ".schemactl-site"
"""The file that lists what was written: the next run removes what is no longer part of the site, and nothing else."""


def configure(parser: argparse.ArgumentParser) -> None:
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
    add_options(
        parser, "--title TEXT: what the catalogue is called (default: the name of the repository's folder)"
    )
    add_filters(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 after the pages are written."""
    try:
        from schemactl.publish.site_catalog import Catalogue, TargetHistory
        from schemactl.publish.site_pages import Site
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "pyarrow", "numpy"):
            raise
        raise SchemactlError(
            f"the catalogue needs {error.name}, which is not installed",
            fix='pip install "pulsar-schemactl[site]"',
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
    from schemactl.cli.revision import authors_of

    ids = {
        each.commit.id for topic in approved.catalog.topics.values() for each in topic.versions if each.commit
    }
    return authors_of(context.repository, ids)
