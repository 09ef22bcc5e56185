"""The documentation as a site, for MkDocs: pages that come from the code, and files outside of docs/ that pages lead to."""

from __future__ import annotations

import inspect
import json
import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = "repository"
"""The folder of the site that has copies of files outside of docs/."""

_LINK = re.compile(r"(\]\()((?:\.\./)+[^)\s#]+)([)#])")
_TOP = {
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "DESIGN.md": "design.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of the code, those at the top of the repository, and what pages lead to."""
    made = {"reference/commands.md": commands(), "reference/files.md": keys(), "reference/api.md": api()}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    for name, path in _TOP.items():
        files.append(File.generated(config, path, content=_moved((ROOT / name).read_text("utf-8"))))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for target in _outside(page):
            path = _place(target)
            if path not in files.src_uris:
                files.append(File.generated(config, path, abs_src_path=str(ROOT / target)))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:  # noqa: ARG001  MkDocs' signature
    """Return the pages in the order of the first one, then those at the repository's top; copies have no place."""
    order = [
        "Documentation",
        "Tutorial",
        "How to",
        "Reference",
        "Explanation",
        "Rules",
        "Glossary",
        "Measurements",
    ]
    named = [(item, str(item.title or "Documentation")) for item in nav.items]
    kept = [(item, name) for item, name in named if name != OUTSIDE.capitalize()]
    nav.items = [
        item
        for item, name in sorted(
            kept, key=lambda each: (order.index(each[1]) if each[1] in order else len(order), each[1])
        )
    ]
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  MkDocs' signature
    """Return the page, whose links to files outside of docs/ lead to the site's copies."""
    folder = posixpath.dirname(page.file.src_uri)
    # Where the file is in the repository.
    here = (
        folder.removeprefix(f"{OUTSIDE}/")
        if folder.startswith(f"{OUTSIDE}/")
        else posixpath.join("docs", folder)
    )

    def inside(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, found[2]))
        place = target.removeprefix("docs/") if target.startswith("docs/") else _place(target)
        return f"{found[1]}{posixpath.relpath(place, folder or '.')}{found[3]}"

    return _LINK.sub(inside, markdown)


def _place(name: str) -> str:
    """Return where the site has a file outside of docs/; MkDocs leaves out names that begin with a dot."""
    folder, base = posixpath.split(name)
    return _TOP.get(name) or posixpath.join(OUTSIDE, folder, base.removeprefix("."))


def _outside(page: Path) -> Iterator[str]:
    """Yield the files outside of docs/ that a page leads to."""
    for found in _LINK.finditer(page.read_text("utf-8")):
        target = os.path.normpath(page.parent / found[2])
        name = os.path.relpath(target, ROOT)
        if not name.startswith("docs") and name not in _TOP and Path(target).is_file():
            yield name


def _moved(text: str) -> str:
    """Return a page of the repository's top as one of docs/: its links into docs/ lead on, all others are words."""
    text = re.sub(r"\]\(docs/", "](", text)
    for name, path in _TOP.items():
        text = text.replace(f"]({name}", f"]({path}")
    text = text.replace("](README.md#use-it)", "](README.md)")
    return re.sub(r"\[([^\]]+)\]\((?:examples|benchmarks|tests|schemactl|schemas)/[^)]*\)", r"\1", text)


def commands() -> str:
    """Return a page with the help of every command."""
    from schemactl.cli.parser import COMMANDS, GROUPS, Parser, build_parser

    os.environ["COLUMNS"] = "86"
    parts = ["# Commands", "Every command takes `--help`, which prints the same."]
    for group, purpose in GROUPS.items():
        parts.append(f"## {purpose[0].upper()}{purpose[1:]}")
        for name, entry in COMMANDS.items():
            if entry.group != group:
                continue
            parser: Parser = build_parser([name]).subcommands[name]
            parts.append(
                f"### {name}\n\n{entry.summary[0].upper()}{entry.summary[1:]}.\n\n```text\n{parser.format_help().rstrip()}\n```"
            )
            for action, inner in parser.subcommands.items():
                parts.append(f"#### {name} {action}\n\n```text\n{inner.format_help().rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def keys() -> str:
    """Return a page with every key of the files, as their JSON Schemas describe them."""
    parts = ["# Files, key by key", "Made of the [JSON Schemas](declarations.md) that editors use."]
    for path in sorted((ROOT / "schemas").glob("*.schema.json")):
        schema = json.loads(path.read_text("utf-8"))
        parts.append(f"## {schema.get('title', path.stem)}")
        for name, shape in ({"": schema} | schema.get("$defs", {})).items():
            rows = [_row(key, each) for key, each in (shape.get("properties") or {}).items()]
            if rows:
                heading = re.sub(r"Shape$", "", name) or "The document"
                about = f"{shape['description']}\n\n" if shape.get("description") else ""
                parts.append(
                    f"### {heading}\n\n{about}| key | what it says | |\n|---|---|---|\n" + "\n".join(rows)
                )
    return "\n\n".join(parts) + "\n"


def _row(key: str, shape: Mapping[str, Any]) -> str:
    about = " ".join(str(shape.get("description", "")).split())
    values = ", ".join(f"`{each}`" for each in shape.get("enum", ()))
    example = next(iter(shape.get("examples", ())), None)
    said = f"such as `{json.dumps(example)}`" if example is not None else values
    return f"| `{key}` | {about} | {said} |".replace("\n", " ")


def api() -> str:
    """Return a page with every public name of the package, and what its docstring says."""
    import schemactl

    parts = ["# The Python API, name by name", "[The Python API](python-api.md) shows how they are used."]
    for name in sorted(schemactl.__all__):
        thing = getattr(schemactl, name)
        signature = ""
        if callable(thing):
            try:
                signature = str(inspect.signature(thing))
            except (TypeError, ValueError):
                signature = ""
        doc = inspect.getdoc(thing) if callable(thing) else ""
        parts.append(f"## {name}\n\n```python\n{name}{signature}\n```\n\n```text\n{doc or ''}\n```")
    return "\n\n".join(parts) + "\n"
