"""`docs`: show a page of the documentation, which every installation has, or find pages by words."""

from __future__ import annotations

import argparse
import posixpath
import pydoc
import re
import sys

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options
from schemactl.core.documentation import find_documentation
from schemactl.core.errors import UsageError, did_you_mean
from schemactl.core.terminal import format_table
from schemactl.core.wording import format_count

INDEX = "README"
"""The name of the page that lists the others."""


def configure_docs(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `docs`."""
    parser.description = (
        "Show a page of the documentation: by its name, by its path, or the page of a rule. Every installation has the pages, so no network "
        "is needed. On a terminal, the page opens in your pager. Words that name no page list the pages that contain all of them."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl docs                       the list of all pages\n"
        "  schemactl docs first-project         the tutorial\n"
        "  schemactl docs how-to/break          ways to make a breaking change\n"
        "  schemactl docs NAME_MISMATCH         the page of a rule\n"
        "  schemactl docs allow-delete          the pages that mention it\n"
    )
    parser.add_argument("words", nargs="*", metavar="PAGE", help="the page, or words to look for (default: all pages)")
    add_options(parser, "--path: print the path of the page's file, for an editor or a viewer of Markdown")


def run_docs(args: argparse.Namespace, context: Context) -> int:
    """Show the page that the words name, or list the pages that contain them."""
    folder = find_documentation()
    pages = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.md"))}
    query = " ".join(args.words)
    # A page may be given as its name, its path in docs/, or a link to one of its headings.
    path = posixpath.normpath(query.partition("#")[0]) if query else INDEX
    page_name = path.removeprefix("docs/").removesuffix(".md")
    # The pages with this path, or else with this base name, in any letter case.
    names: list[str] = []
    if len(args.words) <= 1:
        names = [name for name in pages if name.casefold() == page_name.casefold()]
        names = names or [name for name in pages if posixpath.basename(name).casefold() == page_name.casefold()]
    if len(names) == 1:
        [name] = names
        if args.path:
            print(pages[name])
            return 0
        text = pages[name].read_text(encoding="utf-8")
        # pydoc's pager is the pager of Python's help: PAGER, else less, and plain output without a terminal.
        if sys.stdout.isatty() and not context.quiet:
            pydoc.pager(text)
        else:
            print(text, end="")
        return 0
    # Without such a page, list the pages whose text contains all words.
    titles = {}
    for name in names or pages:
        text = pages[name].read_text(encoding="utf-8")
        if names or (args.words and all(word.casefold() in text.casefold() for word in args.words)):
            heading = re.search(r"(?m)^# (.+)$", text)
            titles[name] = heading[1] if heading else pages[name].stem
    if args.path or not titles:
        problem = f"{len(titles)} pages fit {query!r}" if titles else f"no page has the name {query!r}, or these words"
        near = did_you_mean(page_name, [*pages, *map(posixpath.basename, pages)])
        raise UsageError(problem + near, fix="schemactl docs lists all pages")
    print("\n".join(format_table([*titles.items()])))
    context.say(f"\n{format_count(len(titles), 'page')}: schemactl docs PAGE shows one")
    return 0
