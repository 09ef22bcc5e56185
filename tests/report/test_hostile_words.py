"""Text of a pull request or a registry cannot control a terminal or a build server, or change the meaning of a report."""

from __future__ import annotations

import io
import json
import os
import random
import re
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from command import schemactl
from consumers import markdown_faults, read_screen, workflow_commands
from hypothesis import example, given
from hypothesis import strategies as st
from scratch import Scratch

from schemactl.core.terminal import CleanStream, clean, on_one_line

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SCHEMACTL_WORDS_SEEDS", "2"))

OBEYED = [
    *("\x1b[2J", "\x1b]0;title\x07", "\x1b[31m", "\x9b2J", "\x9d0;title\x9c", "\r", "\x08\x08\x08", "\x0b"),
    *("\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\x00", "\x7f"),
]
COMMANDS = [
    *("::stop-commands::tok", "::add-mask::x", "  ::error ::x", "##[add-path]/x", "##vso[task.complete]x"),
    "##VSO[a]",
]
MARKDOWN = [
    *("|", " | ok | compatible |", "`", "**all fine**", "![x](http://evil.example/x.png)"),
    *("[x](javascript:1)", "<img src=//evil.example>", "</details>", "<!--", "@acme/team", "#12", "GH-12"),
    *(":white_check_mark:", "https://evil.example", "www.evil.example", "  www.evil.example", "~~x~~"),
    *("&lt;", "\\"),
]
CONTROLS = {chr(code) for code in range(0xA0) if unicodedata.category(chr(code)) == "Cc"} - {"\t", "\n"} | {
    *"\u2028\u2029\u202e\u2066"
}
FORGED = "FORGED: all fine."
CODES = (0, 1, 3, 64, 100)


def _draw_word(chance: random.Random, *, lines: bool = True) -> str:
    parts = chance.choices(OBEYED + COMMANDS + MARKDOWN, k=chance.randint(1, 4))
    if lines:
        parts.insert(chance.randint(0, len(parts)), f"\n{FORGED}")
        parts.insert(chance.randint(0, len(parts)), f"\n{chance.choice(COMMANDS)}")
    return "a" + "".join(parts)


def _judge(text: str, allowed: frozenset[str] = frozenset()) -> None:
    assert set(workflow_commands(text)) <= allowed
    assert not set(text) & CONTROLS
    if len(text) < 20_000:
        screen_lines, title = read_screen(text)
        assert (screen_lines, title) == ([line.expandtabs(8).rstrip() for line in text.split("\n")], "")
    assert not re.findall(r".*\n\W*FORGED.*", text)


def _record(chance: random.Random, symbols: list[str], extra: str) -> str:
    """Make an AVRO definition with hostile words in every possible place."""
    space = "n" + _draw_word(chance)
    return json.dumps(
        {
            "type": "record",
            "name": "Order",
            "namespace": space,
            "doc": _draw_word(chance),
            _draw_word(chance): _draw_word(chance),
            "fields": [
                {
                    "name": "status",
                    "doc": _draw_word(chance),
                    "type": {"type": "enum", "name": "S", "symbols": symbols},
                },
                {
                    "name": "note",
                    "type": "string",
                    "default": _draw_word(chance),
                    "aliases": ["b" + _draw_word(chance)],
                },
                {
                    "name": "of",
                    "type": {"type": "fixed", "name": "F", "namespace": "m" + _draw_word(chance), "size": len(extra)},
                },
                {"name": extra, "type": ["null", {"type": "map", "values": "long"}]},
            ],
        },
        ensure_ascii=chance.random() < 0.5,
    )


def _quote_text(text: str) -> str:
    return json.dumps(text)


def _make_repository(path: Path, chance: random.Random) -> Scratch:
    """A repository whose approved version is broken by the working tree, with hostile words in all that is named freely."""
    repository = Scratch(path)
    topic = "shop/sales/" + re.sub(r"[\x00-\x1f\x7f/]", "", _draw_word(chance, lines=False)).strip()
    # A file's name with other characters is rejected, which has a separate test.
    name = "".join(letter for letter in _draw_word(chance) if letter.isprintable() and letter not in "/\\")
    other = name.replace(":", "")
    project = 'version: 1\ntargets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n'
    files: dict[str, str | bytes | None] = {
        "schemactl.yaml": project,
        "namespaces/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: FULL_TRANSITIVE\n",
        "namespaces/first.yaml": f"topic: {_quote_text(topic)}\nschema: {{type: AVRO, definition: first.avsc}}\n",
        "namespaces/first.avsc": _record(chance, ["A", "B"], "xy"),
        f"namespaces/{name}.yaml": "topic: shop/sales/second\n"
        f"schema: {{type: AVRO, definition: {_quote_text(other + '.avsc')}, properties: {{{_quote_text(_draw_word(chance))}: {_quote_text(_draw_word(chance))}}}}}\n",
        f"namespaces/{other}.avsc": _record(chance, ["A"], "z"),
    }
    repository.commit(files, message=re.sub("\x00", "", _draw_word(chance)))
    repository.write(
        {
            "namespaces/first.avsc": _record(chance, ["A"], "xyz"),
            f"namespaces/{other}.avsc": _record(chance, ["B"], "w"),
        }
    )
    return repository


@pytest.mark.parametrize("seed", range(SEEDS))
def test_reports_of_hostile_declarations_are_only_read(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  seeded
    folder = _make_repository(tmp_path / "repository", chance).path
    for style in ("never", "always"):
        text, error, _ = schemactl(folder, "--color", style, "check", code=100)
        plain = re.sub(r"\x1b\[[0-9;]+m", "", text)
        assert style == "always" or plain == text
        _judge(plain)
        _judge(error)
    forms = ("github", "json", "sarif", "gitlab", "junit", "markdown")
    schemactl(folder, "check", *(f"--format={form}=out/{form}" for form in forms), code=100)
    for form in forms:
        text, error, _ = schemactl(folder, "check", "--format", form, code=100)
        _judge(error)
        _judge(text, frozenset({"error", "warning", "notice"}) if form == "github" else frozenset())
        if form in ("json", "sarif", "gitlab"):
            json.loads(text)
        if form == "markdown":
            assert markdown_faults(text) == []
        written = (folder / "out" / form).read_bytes().decode()
        assert written == text
    for command in (
        "log --all",
        "log --all --format json",
        "plan",
        "plan --format json",
        "drift",
        "apply --auto-approve",
        "drift",
    ):
        text, error, _ = schemactl(folder, *command.split(), code=CODES)
        _judge(text)
        _judge(error)
    for command in (
        "show second@0",
        "diff second@0 second",
        "generate",
        "decode second --version 0 --base64 AAAA",
        "decode second --version 9 --base64 AAAA",
    ):
        text, error, _ = schemactl(folder, *command.split(), code=CODES)
        _judge(error)
        if not command.startswith("show"):
            _judge(text)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_problems_of_hostile_files_are_only_read(tmp_path: Path, seed: int) -> None:
    chance = random.Random(1_000 + seed)  # noqa: S311  seeded

    def draw_quoted() -> str:
        return _quote_text(_draw_word(chance))

    project = 'version: 1\ntargets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n'
    mistakes: dict[str, str] = {
        "topic": f"topic: {draw_quoted()}\n",
        "key": f"topic: shop/sales/a\n{draw_quoted()}: {draw_quoted()}\n",
        "strategy": f"namespace: shop/sales\nschema_compatibility_strategy: {draw_quoted()}\n",
        "type": f"topic: shop/sales/a\nschema: {{type: {draw_quoted()}}}\n",
        "path": f"topic: shop/sales/a\nschema: {{type: AVRO, definition: {draw_quoted()}}}\n",
        "inline": f"topic: shop/sales/a\nschema: {{type: AVRO, definition: {{type: {draw_quoted()}, name: {draw_quoted()}}}}}\n",
        "symbols": "topic: shop/sales/a\nschema: {type: AVRO, definition: {type: enum, name: E, symbols: ["
        + draw_quoted()
        + "]}}\n",
        "default": "topic: shop/sales/a\nschema: {type: AVRO, definition: {type: record, name: E, fields: [{name: a, type: int, default: "
        + draw_quoted()
        + "}]}}\n",
        "syntax": f"topic: [{_draw_word(chance)}\n",
        "anchor": f"topic: *{_draw_word(chance)}\n",
        "proto": "topic: shop/sales/a\nschema: {type: PROTOBUF_NATIVE, definition: a.proto, message: "
        + draw_quoted()
        + "}\n",
        "severity": project + f"severities: {{{draw_quoted()}: {draw_quoted()}}}\n",
        "registry": f"version: 1\ntargets: {{{draw_quoted()}: {{registry: {draw_quoted()}}}}}\n",
        "approved": f"version: 1\napproved: {draw_quoted()}\n",
        "roots": f"version: 1\nroots: [{draw_quoted()}]\n",
    }
    repository = Scratch(tmp_path / "repository")
    repository.commit({"schemactl.yaml": project})
    repository.flush()
    for text in mistakes.values():
        is_project = text.startswith("version")
        repository.write(
            {
                "schemactl.yaml": text if is_project else project,
                "namespaces/a.yaml": "namespace: shop/sales\n" if is_project else text,
                "namespaces/a.proto": f'syntax = "proto3";\nimport {draw_quoted()};\nmessage A {{ {_draw_word(chance)} }}\n',
            }
        )
        for command in ("check", "plan", "check --format github", "check --format markdown"):
            out, error, _ = schemactl(repository, *command.split(), code=CODES)
            _judge(out, frozenset({"error", "warning", "notice"}) if command.endswith("github") else frozenset())
            _judge(error)


@contextmanager
def _serve_words(words: bytes, status: int) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response_only(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(words)))
            self.end_headers()
            self.wfile.write(words)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_responses_of_a_hostile_registry_are_only_text(tmp_path: Path, seed: int) -> None:
    chance = random.Random(2_000 + seed)  # noqa: S311  seeded
    words = _draw_word(chance)
    body = chance.choice([json.dumps({"reason": words}), json.dumps(words), json.dumps([words]), words]).encode()
    with _serve_words(body, chance.choice([200, 400, 403, 404, 409, 412, 422])) as registry:
        repository = Scratch(tmp_path / "repository")
        repository.commit(
            {
                "schemactl.yaml": f"version: 1\ntargets: {{local: {{registry: {_quote_text(registry)}}}}}\n",
                "namespaces/a.yaml": "namespace: shop/sales\n---\ntopic: shop/sales/a\nschema: {type: STRING}\n",
            }
        )
        commands = (
            "plan",
            "drift --unmanaged",
            "drift --unmanaged --accept --reason x",
            "status --unmanaged",
            "import",
            "registry list shop/sales/a",
            "log a --target local",
        )
        for command in commands:
            out, error, _ = schemactl(repository, *command.split(), code=CODES)
            _judge(out)
            _judge(error)


@given(st.text(st.sampled_from(":#[]vso\x1b\x9b0m1;\n\r\t \xa0\u2028\u202eab"), max_size=40), st.booleans())
def test_cleaning_leaves_nothing_to_obey_and_is_done_once(text: str, starts_line: bool) -> None:  # noqa: FBT001
    cleaned = clean(text, starts_line=starts_line)
    if starts_line:
        _judge(cleaned)
    assert clean(cleaned, starts_line=starts_line) == cleaned
    assert "\n" not in on_one_line(text)


@example([":", ":error::x"])
@example(["\n ", ":", ":[::"])
@given(st.lists(st.text(st.sampled_from(":#[ \n\x1bab"), max_size=6), max_size=8))
def test_stream_cleans_text_that_is_written_in_parts(parts: list[str]) -> None:
    below = io.StringIO()
    stream = CleanStream(below)
    stream.writelines(parts[:4])
    for part in parts[4:]:
        stream.write(part)
    commands = [command for command in workflow_commands(below.getvalue()) if command]
    assert not [line for line in below.getvalue().split("\n") if line.lstrip().startswith("::") and commands]


@given(st.dictionaries(st.text(), st.text()))
def test_json_stays_json_and_means_the_same(value: dict[str, str]) -> None:
    value = json.loads(json.dumps(value))
    for indent in (None, 2):
        assert json.loads(clean(json.dumps(value, indent=indent, ensure_ascii=False))) == value
