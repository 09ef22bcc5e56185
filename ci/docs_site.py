"""The documentation as a site, for MkDocs: its navigation, its start page, highlighted blocks, and the parts that come from the code."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import posixpath
import re
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))
from examples.shop.history import make  # noqa: E402  the examples are not installed
from schemactl import __version__  # noqa: E402  of this checkout

if TYPE_CHECKING:
    from schemactl.cli.parser import Parser

OUTSIDE = "repository"
"""The folder of the site that has copies of files outside of docs/."""

RULES = "rules/README.md"
COMMANDS_PAGE = "reference/commands.md"
LANDING = ROOT / "ci/docs_theme/landing.md"

_PAGE = re.compile(r"\]\(((?!\.\.)[^)#]+\.md)\)")
_LINK = re.compile(r"(\]\()((?:\.\./)+[^)\s#]+)([)#])")
_TOP = {
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "DESIGN.md": "design.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are generated from the code, the pages at the top of the repository, and the files that pages link to."""
    for path, text in {COMMANDS_PAGE: render_commands(), **command_pages()}.items():
        files.append(File.generated(config, path, content=text))
    for name, path in _TOP.items():
        files.append(File.generated(config, path, content=_move_page((ROOT / name).read_text("utf-8"))))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for target in _find_outside_files(page):
            path = _place(target)
            if path not in files.src_uris:
                files.append(File.generated(config, path, abs_src_path=str(ROOT / target)))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation from the list of pages in docs/README.md, and add the version and the links to the repository."""
    nav: list[Any] = [{"Start": "README.md"}]
    for section in re.split(r"^## ", (ROOT / "docs/README.md").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        first, *groups = re.split(r"^### ", text, flags=re.MULTILINE)
        entries: list[Any] = _list_pages(first)
        entries += [{group.partition("\n")[0]: _list_pages(group)} for group in groups]
        nav.append({title: entries})
    rules = sorted(f"rules/{path.name}" for path in (ROOT / "docs/rules").glob("[A-Z]*_*.md"))
    reference = next(tab["Reference"] for tab in nav if "Reference" in tab)
    reference.insert(0, {"Commands": [COMMANDS_PAGE, *command_pages()]})
    nav.insert(-1, {"Rules": [RULES, *rules]})
    nav.append({"Project": [*_TOP.values()]})
    config.nav = nav
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"].get("version") or __version__
    config.copyright = f"schemactl {version}, Apache-2.0"
    if repository := _find_repository():
        config.repo_url = repository
        config.edit_uri = ("-/" if "gitlab" in repository else "") + "edit/main/docs/"
    return config


def _list_pages(text: str) -> list[str]:
    """Return the pages that a part of the index links to, each once, without the index of the rules."""
    return [path for path in dict.fromkeys(_PAGE.findall(text)) if path != RULES]


def _find_repository() -> str:
    """Return the web address of the repository: $SCHEMACTL_REPOSITORY, Read the Docs' variable, or the remote `origin`, or ""."""
    url = os.environ.get("SCHEMACTL_REPOSITORY") or os.environ.get("READTHEDOCS_GIT_CLONE_URL") or ""
    if not url:
        command = ["git", "remote", "get-url", "origin"]
        url = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603  Git's own command
    return url.removesuffix(".git") if url.startswith("https://") else ""


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  MkDocs' signature
    """Return the page with the site's links, highlighted blocks, tabs and admonitions, and with the generated part of a reference."""
    path = page.file.src_uri
    if path == "README.md":
        page.meta["hide"] = ["navigation", "toc"]
        markdown = LANDING.read_text("utf-8") + markdown.partition("\n")[2]
    elif path.startswith("rules/") and path != RULES:
        # A search for an option or a key should list its page before the rules that mention it.
        page.meta["search"] = {"boost": 0.5}
    if path in _GENERATED_PARTS:
        markdown = f"{markdown.rstrip()}\n\n{_GENERATED_PARTS[path]()}"
    folder = posixpath.dirname(path)
    # Where the file is in the repository.
    here = folder.removeprefix(f"{OUTSIDE}/") if folder.startswith(f"{OUTSIDE}/") else posixpath.join("docs", folder)

    def replace_link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, match[2]))
        place = target.removeprefix("docs/") if target.startswith("docs/") else _place(target)
        return f"{match[1]}{posixpath.relpath(place, folder or '.')}{match[3]}"

    return make_tabs(make_admonitions(fence_blocks(_LINK.sub(replace_link, markdown))))


def fence_blocks(markdown: str) -> str:
    """Return the page with each indented block as a fenced block in its language, so that it is highlighted."""
    lines: list[str] = []
    block: list[str] = []
    is_fenced = is_list = False
    for line in [*markdown.split("\n"), "end"]:
        if not is_fenced and not is_list and (line.startswith("    ") or (block and not line.strip())):
            block.append(line[4:])
            continue
        if block:
            text = "\n".join(block).rstrip()
            lines += [f"```{guess_language(text)}", *text.split("\n"), "```", ""]
            block = []
        is_fenced ^= line.lstrip().startswith("```")
        if line.strip() and not line.startswith(" "):
            is_list = re.match(r"(?:[*+-]|\d+\.) |=== |!!! ", line) is not None
        lines.append(line)
    return "\n".join(lines[:-1])


_LANGUAGES: Final = (
    ("console", r"\$ "),
    ("pycon", r">>> "),
    ("diff", r"(?:---|diff) "),
    ("sql", r"(?:SELECT|CREATE|ALTER|INSERT|WITH|UPDATE|MERGE)\b"),
    ("protobuf", r"(?:syntax = |message \w+ \{|enum \w+ \{|import \")"),
    ("java", r"(?:public |@\w+\(|import [\w.]+;)"),
    ("go", r"(?:package \w+$|func |type \w+ struct)"),
    ("python", r"(?:import |from [\w.]+ import|@\w+|class \w+|def |with |for \w+ in|\w+(?:, \w+)* = |\w+(?:\.\w+)+\()"),
    ("json", r"[{\[]\s*(?:\"|$|[{\[])"),
    ("yaml", r"(?:- |# |\{)|[\w.-]+:(?: |$)"),
    ("sh", r"(?:schemactl|git|pip|make|docker|curl|spark-submit|pre-commit|cd|mkdir|export) "),
)
"""Languages with the beginning of a block in each, the most specific first."""


def guess_language(text: str) -> str:
    """Return the language of an indented block, or "text"."""
    return next((name for name, start in _LANGUAGES if re.match(start, text, re.MULTILINE)), "text")


def make_admonitions(markdown: str) -> str:
    """Return the page with GitHub's alerts (`> [!NOTE]`) as admonitions."""

    def replace_alert(match: re.Match[str]) -> str:
        body = re.sub(r"^> ?", "    ", match[2], flags=re.MULTILINE)
        return f"!!! {match[1].lower()}\n\n{body}"

    return re.sub(
        r"^> \[!(NOTE|TIP|WARNING|IMPORTANT|CAUTION)\]\n((?:>.*\n?)+)", replace_alert, markdown, flags=re.MULTILINE
    )


_LABELED_BLOCK: Final = r"\*\*([^*\n]+)\*\*\n\n(```\w+\n.*?\n```)\n\n"


def make_tabs(markdown: str) -> str:
    """Return the page with runs of two or more blocks, each after its name in bold, as tabs."""

    def replace_run(match: re.Match[str]) -> str:
        tabs = re.findall(_LABELED_BLOCK, match[0], re.DOTALL)
        return "".join(f'=== "{label}"\n\n{textwrap.indent(block, "    ")}\n\n' for label, block in tabs)

    return (
        re.sub(rf"^(?:{_LABELED_BLOCK}){{2,}}", replace_run, f"{markdown}\n\n", flags=re.DOTALL | re.MULTILINE).rstrip()
        + "\n"
    )


def _place(name: str) -> str:
    """Return where the site has a file outside of docs/; MkDocs leaves out names that begin with a dot."""
    folder, base = posixpath.split(name)
    return _TOP.get(name) or posixpath.join(OUTSIDE, folder, base.removeprefix("."))


def _find_outside_files(page: Path) -> Iterator[str]:
    """Yield the files outside of docs/ that a page leads to."""
    for link in _LINK.finditer(page.read_text("utf-8")):
        target = os.path.normpath(page.parent / link[2])
        name = os.path.relpath(target, ROOT)
        if not name.startswith("docs") and name not in _TOP and Path(target).is_file():
            yield name


def _move_page(text: str) -> str:
    """Return a page of the repository's top as one of docs/: its links into docs/ lead on, all others are words."""
    text = re.sub(r"\]\(docs/", "](", text)
    for name, path in _TOP.items():
        text = text.replace(f"]({name}", f"]({path}")
    return re.sub(r"\[([^\]]+)\]\((?:examples|benchmarks|tests|schemactl|schemas)/[^)]*\)", r"\1", text)


def render_commands() -> str:
    """Return the page that lists every command by group, and the options of all commands."""
    from schemactl.cli.parser import COMMANDS, GROUPS, build_parser

    parts = ["# Commands", "Every command has a page with its arguments and options, as `--help` prints them."]
    for group, purpose in GROUPS.items():
        parts.append(f"## {purpose[0].upper()}{purpose[1:]}")
        rows = [
            f"| [`{name}`](commands/{name}.md) | {entry.summary} |"
            for name, entry in COMMANDS.items()
            if entry.group == group
        ]
        parts.append("\n".join(["| command | effect |", "|---|---|", *rows]))
    parts += ["## Global options", _make_table(build_parser(["check"]).subcommands["check"], is_global=True)]
    return "\n\n".join(parts) + "\n"


@cache
def command_pages() -> dict[str, str]:
    """Return a page for each command, by path, with its usage, its arguments and options, its examples and its subcommands."""
    from schemactl.cli.parser import COMMANDS, build_parser

    os.environ["COLUMNS"] = "86"
    pages = {}
    for name in COMMANDS:
        parser = build_parser([name]).subcommands[name]
        parts = [f"# {name}", *_describe_command(parser)]
        for action, subparser in parser.subcommands.items():
            parts += [f"## {name} {action}", *_describe_command(subparser)]
        parts.append(
            "[Global options](../commands.md#global-options). [Environment variables](../environment-variables.md). [All commands](../commands.md)"
        )
        pages[f"reference/commands/{name}.md"] = "\n\n".join(parts) + "\n"
    return pages


def _describe_command(parser: Parser) -> Iterator[str]:
    """Yield the description, the usage, the tables of arguments and options, and the examples of a command."""
    description = " ".join((parser.description or "").split())
    yield description[:1].upper() + description[1:] + "." * (not description.endswith((".", ":")))
    usage = re.sub(r"\s*\[-C DIR\].*?(?:\[--color \{[^}]*\}\]|\Z)", "", parser.format_usage(), flags=re.DOTALL)
    yield f"```text\n{usage.rstrip()}\n```"
    if table := _make_table(parser):
        yield table
    for title, text in re.findall(r"^([a-z][a-z ]*):\n((?:  .*\n?|\n)+)", parser.epilog or "", re.MULTILINE):
        language = "sh" if title == "examples" else "text"
        yield f"**{title.capitalize()}**\n\n```{language}\n{textwrap.dedent(text).strip()}\n```"


def _make_table(parser: Parser, *, is_global: bool = False) -> str:
    """Return a table of the arguments and options of a command, or of the options that all commands have; each option has an anchor."""
    rows = []
    for group in parser._action_groups:  # noqa: SLF001  argparse has no other list of them
        if (group.title == "global options") != is_global:
            continue
        for action in group._group_actions:  # noqa: SLF001  as above
            if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  as above
                continue
            metavar = "" if action.nargs == 0 else _format_metavar(action)
            name = ", ".join(action.option_strings[::-1]) if action.option_strings else ""
            anchor = (
                f"{{ #{parser.prog.removeprefix('schemactl ').replace(' ', '-')}{action.option_strings[-1]} }}"
                if name
                else ""
            )
            argument = " ".join(filter(None, (name, metavar))).replace("|", "\\|")
            help_text = parser._get_formatter()._expand_help(action) if action.help else ""  # noqa: SLF001  as above
            rows.append(
                f"| `{argument}`{anchor} | {' '.join(help_text.split()).replace('|', chr(92) + '|').replace('<', '&lt;').replace('*', chr(92) + '*')} |"
            )
    return "\n".join(["| argument or option | effect |", "|---|---|", *rows]) if rows else ""


def _format_metavar(action: argparse.Action) -> str:
    """Return the name of an argument's value, or its choices."""
    if action.choices is not None and action.metavar is None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    name = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    text = " ".join(name) if isinstance(name, tuple) else str(name)
    return {"?": f"[{text}]", "*": f"[{text} ...]", "+": f"{text} [{text} ...]"}.get(str(action.nargs), text)


def yaml_keys() -> str:
    """Return the section with every key of the YAML files, as their JSON Schemas describe them."""
    about = "The JSON Schemas that editors use describe these keys."
    return _describe_schemas("Every key", about, ("project", "declarations", "overlays", "waivers"))


def json_keys() -> str:
    """Return the section with every key of the JSON that commands write, as its JSON Schemas describe it."""
    about = "JSON Schemas describe the first formats. The other tables have the keys, each with an example, that a command prints in the example shop."
    described = _describe_schemas("Every key", about, ("check", "list", "revision"))
    return "\n\n".join([described.rstrip(), *_list_printed_keys()]) + "\n"


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


def _list_printed_keys() -> Iterator[str]:
    """Yield for each command the keys of its output, each with its first value."""
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
            for key, value in _list_keys(json.loads(text)):
                first.setdefault(key, value)
            rows = "\n".join(f"| `{key}` | {value} |" for key, value in first.items())
            yield f"### schemactl {command}\n\n| key | example |\n|---|---|\n{rows}"


def _list_keys(value: Any, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield each key below `value`, with those above it, and its value unless that has keys itself."""
    for key, json_entry in value.items():
        path = f"{above}.{key}" if above else key
        inner = json_entry if isinstance(json_entry, list) else [json_entry]
        if any(isinstance(one, dict) and one for one in inner):
            path += "[]" * isinstance(json_entry, list)
            yield path, ""
            for one in inner:
                yield from _list_keys(one, path) if isinstance(one, dict) else ()
        else:
            value_text = json.dumps(json_entry, ensure_ascii=False).replace("`", "'")
            yield path, f"`{value_text if len(value_text) <= 60 else f'{value_text[:57]}...'}`".replace("|", "\\|")


def _describe_schemas(title: str, about: str, names: Iterable[str]) -> str:
    """Return a section with the keys that JSON Schemas describe."""
    parts = [f"## {title}", about]
    for path in (ROOT / f"schemas/{name}.schema.json" for name in names):
        schema = json.loads(path.read_text("utf-8"))
        parts.append(f"### {schema.get('title', path.stem)}")
        for name, shape in ({"": schema} | schema.get("$defs", {})).items():
            rows = [_make_row(key, property_shape) for key, property_shape in (shape.get("properties") or {}).items()]
            if rows:
                heading = re.sub(r"Shape$", "", name) or "The document"
                about = f"{shape['description']}\n\n" if shape.get("description") else ""
                parts.append(f"#### {heading}\n\n{about}| key | meaning | value |\n|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _make_row(key: str, shape: Mapping[str, Any]) -> str:
    about = " ".join(str(shape.get("description", "")).split())
    return f"| `{key}` | {about} | {_describe_values(shape)} |"


def _describe_values(shape: Mapping[str, Any]) -> str:
    """Describe the possible values: an example, the listed values, or the kind."""
    if examples := shape.get("examples"):
        return f"such as `{json.dumps(examples[0])}`"
    if listed := [*shape.get("enum", ()), *([shape["const"]] if "const" in shape else [])]:
        return ", ".join(f"`{listed_value}`" for listed_value in listed)
    if "$ref" in shape:
        return re.sub(r"^.*/|Shape$", "", shape["$ref"])
    branches = shape.get("anyOf", shape.get("oneOf"))
    if branches:
        return ", ".join(dict.fromkeys(filter(None, map(_describe_values, branches))))
    kind = shape.get("type", "")
    kinds = ", ".join(kind) if isinstance(kind, list) else kind
    inner = _describe_values(shape["items"]) if "items" in shape else ""
    return f"{kinds} of {inner}" if inner else kinds


def render_api() -> str:
    """Return the section with every public name of the package: its signature and its docstring."""
    import schemactl

    parts = ["## Every name"]
    for name in sorted(schemactl.__all__):
        thing = getattr(schemactl, name)
        signature = ""
        if callable(thing):
            with suppress(TypeError, ValueError):
                signature = str(inspect.signature(thing))
        doc = (inspect.getdoc(thing) if callable(thing) else "") or ""
        parts.append(f"### {name}\n\n```python\n{name}{signature}\n```\n\n```text\n{doc}\n```")
    return "\n\n".join(parts) + "\n"


_GENERATED_PARTS: Final = {
    "reference/declarations.md": yaml_keys,
    "reference/command-results.md": json_keys,
    "reference/python-api.md": render_api,
}
"""The functions that return the end of a page, which is generated from the code."""
