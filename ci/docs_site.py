"""The documentation as a site, for MkDocs: pages that come from the code, and files outside of docs/ that pages lead to."""

from __future__ import annotations

import inspect
import json
import os
import posixpath
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))
from examples.shop.history import make  # noqa: E402  examples are no package that is installed

OUTSIDE = "repository"
"""The folder of the site that has copies of files outside of docs/."""

RULES = "rules/README.md"
MADE = ("reference/commands.md", "reference/files.md", "reference/json.md", "reference/api.md")
"""Pages that are made of the code."""

_PAGE = re.compile(r"\]\(((?!\.\.)[^)#]+\.md)\)")
_LINK = re.compile(r"(\]\()((?:\.\./)+[^)\s#]+)([)#])")
_TOP = {
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "DESIGN.md": "design.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of the code, those at the top of the repository, and what pages lead to."""
    for path, text in zip(MADE, (commands(), yaml_keys(), json_keys(), api()), strict=True):
        files.append(File.generated(config, path, content=text))
    for path, text in command_pages().items():
        files.append(File.generated(config, path, content=text))
    for name, path in _TOP.items():
        files.append(File.generated(config, path, content=_moved((ROOT / name).read_text("utf-8"))))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for target in _outside(page):
            path = _place(target)
            if path not in files.src_uris:
                files.append(File.generated(config, path, abs_src_path=str(ROOT / target)))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lay out the navigation as docs/README.md lists the pages, with those that are made of the code, and those at the top."""
    index = (ROOT / "docs/README.md").read_text("utf-8")
    nav: list[Any] = [{"Start": "README.md"}]
    for part in re.split(r"^\*\*", index, flags=re.MULTILINE)[1:]:
        listed = [path for path in _PAGE.findall(part) if path != RULES]
        nav.append({part.partition("**")[0]: [*dict.fromkeys(listed)]})
    rules = sorted(f"rules/{path.name}" for path in (ROOT / "docs/rules").glob("[A-Z]*_*.md"))
    reference = next(each["Reference"] for each in nav if "Reference" in each)
    reference[:0] = [{"Commands": [MADE[0], *command_pages()]}, *MADE[1:], {"Rules": [RULES, *rules]}]
    nav.append({"Project": [*_TOP.values()]})
    config.nav = nav
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  MkDocs' signature
    """Return the page, whose links to files outside of docs/ lead to the site's copies."""
    if page.file.src_uri == "README.md":
        introduction = (ROOT / "README.md").read_text("utf-8").partition("\n## ")[0]
        markdown = _moved(introduction) + markdown.partition("\n")[2]
    folder = posixpath.dirname(page.file.src_uri)
    # Where the file is in the repository.
    here = folder.removeprefix(f"{OUTSIDE}/") if folder.startswith(f"{OUTSIDE}/") else posixpath.join("docs", folder)

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
    return re.sub(r"\[([^\]]+)\]\((?:examples|benchmarks|tests|schemactl|schemas)/[^)]*\)", r"\1", text)


def commands() -> str:
    """Return the page that lists every command by group."""
    from schemactl.cli.parser import COMMANDS, GROUPS

    parts = ["# Commands", "Every command has a page, which prints what its `--help` does."]
    for group, purpose in GROUPS.items():
        parts.append(f"## {purpose[0].upper()}{purpose[1:]}")
        rows = [
            f"| [{name}](commands/{name}.md) | {entry.summary} |"
            for name, entry in COMMANDS.items()
            if entry.group == group
        ]
        parts.append("\n".join(["| command | what it does |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


@cache
def command_pages() -> dict[str, str]:
    """Return a page for each command, by path, with its help and that of its subcommands."""
    from schemactl.cli.parser import COMMANDS, Parser, build_parser

    os.environ["COLUMNS"] = "86"
    pages = {}
    for name, entry in COMMANDS.items():
        parser: Parser = build_parser([name]).subcommands[name]
        summary = f"{entry.summary[0].upper()}{entry.summary[1:]}."
        parts = [f"# {name}", summary, f"```text\n{parser.format_help().rstrip()}\n```"]
        for action, inner in parser.subcommands.items():
            parts.append(f"## {name} {action}\n\n```text\n{inner.format_help().rstrip()}\n```")
        parts.append("[Environment variables](../environment-variables.md). [All commands](../commands.md)")
        pages[f"reference/commands/{name}.md"] = "\n\n".join(parts) + "\n"
    return pages


def yaml_keys() -> str:
    """Return a page with every key of the YAML files, as their JSON Schemas describe them."""
    about = "Made of the [JSON Schemas](declarations.md) that editors use."
    return _described("YAML files, key by key", about, ("project", "declarations", "overlays", "waivers"))


def json_keys() -> str:
    """Return a page with every key of the JSON that commands write, as its JSON Schemas describe it."""
    about = "Made of the JSON Schemas of what `--format json` prints, and of what commands print in the shop of `schemactl demo`."
    described = _described("JSON formats, key by key", about, ("check", "list", "revision"))
    return "\n\n".join([described.rstrip(), *_printed()]) + "\n"


_PRINTING = (
    "plan --target local --format json",
    "plan --target local --out plan.json",
    "apply --target local --auto-approve --result result.json",
    "registry delete shop/web/clicks --target local --allow-delete --format json",
    "drift --target local --format json",
    "status --format json",
    "targets --format json",
    "log orders --format json",
    "show orders --format json",
    "show orders --effective --format json",
    "graph --format json",
    "admit consumer orders --target local --format json",
)
"""Commands that write JSON which no JSON Schema describes, run one after the other; `--out` and `--result` name the file."""


def _printed() -> Iterator[str]:
    """Yield for each command the keys of what it writes, with the first value that each has."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder, "shop")
        make(repository)
        for command in _PRINTING:
            done = subprocess.run(  # noqa: S603  our own
                [sys.executable, "-m", "schemactl", *command.split()],
                cwd=repository, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            written = re.search(r"--(?:out|result) (\S+)", command)
            text = (repository / written[1]).read_text("utf-8") if written else done.stdout
            first: dict[str, str] = {}
            for key, value in _keys(json.loads(text)):
                first.setdefault(key, value)
            rows = "\n".join(f"| `{key}` | {value} |" for key, value in first.items())
            yield f"## schemactl {command}\n\n| key | such as |\n|---|---|\n{rows}"


def _keys(value: Any, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield each key below `value`, with those above it, and its value unless that has keys itself."""
    for key, each in value.items():
        path = f"{above}.{key}" if above else key
        inner = each if isinstance(each, list) else [each]
        if any(isinstance(one, dict) and one for one in inner):
            path += "[]" * isinstance(each, list)
            yield path, ""
            for one in inner:
                yield from _keys(one, path) if isinstance(one, dict) else ()
        else:
            shown = json.dumps(each, ensure_ascii=False).replace("`", "'")
            yield path, f"`{shown if len(shown) <= 60 else f'{shown[:57]}...'}`".replace("|", "\\|")


def _described(title: str, about: str, names: Iterable[str]) -> str:
    """Return a page with the keys that JSON Schemas describe."""
    parts = [f"# {title}", about]
    for path in (ROOT / f"schemas/{name}.schema.json" for name in names):
        schema = json.loads(path.read_text("utf-8"))
        parts.append(f"## {schema.get('title', path.stem)}")
        for name, shape in ({"": schema} | schema.get("$defs", {})).items():
            rows = [_row(key, each) for key, each in (shape.get("properties") or {}).items()]
            if rows:
                heading = re.sub(r"Shape$", "", name) or "The document"
                about = f"{shape['description']}\n\n" if shape.get("description") else ""
                parts.append(
                    f"### {heading}\n\n{about}| key | what it says | value |\n|---|---|---|\n" + "\n".join(rows)
                )
    return "\n\n".join(parts) + "\n"


def _row(key: str, shape: Mapping[str, Any]) -> str:
    about = " ".join(str(shape.get("description", "")).split())
    return f"| `{key}` | {about} | {_values(shape)} |"


def _values(shape: Mapping[str, Any]) -> str:
    """Return what a value may be: an example, those that are listed, or its kind."""
    if examples := shape.get("examples"):
        return f"such as `{json.dumps(examples[0])}`"
    if listed := [*shape.get("enum", ()), *([shape["const"]] if "const" in shape else [])]:
        return ", ".join(f"`{each}`" for each in listed)
    if "$ref" in shape:
        return re.sub(r"^.*/|Shape$", "", shape["$ref"])
    branches = shape.get("anyOf", shape.get("oneOf"))
    if branches:
        return ", ".join(dict.fromkeys(filter(None, map(_values, branches))))
    kind = shape.get("type", "")
    kinds = ", ".join(kind) if isinstance(kind, list) else kind
    inner = _values(shape["items"]) if "items" in shape else ""
    return f"{kinds} of {inner}" if inner else kinds


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
