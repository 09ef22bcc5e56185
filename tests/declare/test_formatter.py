"""Tests of `schemactl fmt`: its output, its exit codes, and random texts."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shop
from command import schemactl
from hypothesis import given
from hypothesis import strategies as st
from property_runs import EXAMPLES
from scratch import Scratch

from schemactl.codec.avro_schema import blank_comments
from schemactl.declare import formatter, json_formatter, yaml_formatter
from schemactl.declare.yaml_parser import read_yaml

pytestmark = pytest.mark.slow

MESSY = """\
# yaml-language-server: $schema=https://example.com/topic.json
schema:
    definition:   orders.avsc   # beside it
    # the shop's own types
    references:
    - ../common/money.avsc
    type:  AVRO


owner: "team-orders"
topic: persistent://shop/sales/orders
labels: { tier: gold,domain:   sales }
description: |
      One message
        for each order.

clients:
-   name: billing
    role:  consumer
    # of the new service
---

namespace:   shop/sales
"""

TIDY = """\
# yaml-language-server: $schema=https://example.com/topic.json
topic: persistent://shop/sales/orders

owner: "team-orders"
description: |
  One message
    for each order.

labels: {tier: gold, domain: sales}
clients:
  - name: billing
    role: consumer
    # of the new service
schema:
  type: AVRO
  definition: orders.avsc   # beside it
  # the shop's own types
  references:
    - ../common/money.avsc
---
namespace: shop/sales
"""

MESSY_DEFINITION = """\
{"type":"record", "name": "Order",
   "fields": [ {"name":"id","type": "long", "default": 1e3}, // the number
    /* what it costs */

    {"name":"price", "type":["null", "shop.Money"], "doc": "caf\\u00e9, in whatever currency the customer of the shop pays in"}]}
"""

TIDY_DEFINITION = """\
{
  "type": "record",
  "name": "Order",
  "fields": [
    {"name": "id", "type": "long", "default": 1e3}, // the number
    /* what it costs */

    {
      "name": "price",
      "type": ["null", "shop.Money"],
      "doc": "caf\\u00e9, in whatever currency the customer of the shop pays in"
    }
  ]
}
"""
MONEY = '{"type": "record", "name": "Money", "namespace": "shop", "fields": []}\n'


@pytest.fixture
def messy_repository(tmp_path: Path) -> Scratch:
    """A project with an unformatted YAML file and definition, and a formatted shared definition outside the roots."""
    repository = Scratch(tmp_path / "shop")
    repository.write(
        {
            "schemactl.yaml": "version: 1\n",
            "namespaces/orders.yaml": MESSY,
            "namespaces/orders.avsc": MESSY_DEFINITION.replace("1e3", "1"),
            "common/money.avsc": MONEY,
        }
    )
    return repository


def read_text(repository: Scratch, path: str) -> str:
    return (repository.path / path).read_text()


def test_files_are_laid_out_with_their_comments_and_versions(messy_repository: Scratch) -> None:
    result = schemactl(messy_repository, "fmt")
    assert result.out == "formatted namespaces/orders.avsc\nformatted namespaces/orders.yaml\n"
    assert result.err == "2 files laid out, 2 files unchanged\n"
    assert read_text(messy_repository, "namespaces/orders.yaml") == TIDY
    assert read_text(messy_repository, "namespaces/orders.avsc") == TIDY_DEFINITION.replace("1e3", "1")
    assert schemactl(messy_repository, "fmt", "--check").out == ""


def test_check_and_diff_write_nothing_and_exit_with_100(messy_repository: Scratch) -> None:
    result = schemactl(messy_repository, "fmt", "--check", code=100)
    assert result.out == "would format namespaces/orders.avsc\nwould format namespaces/orders.yaml\n"
    diff = schemactl(messy_repository, "fmt", "--diff", "namespaces/orders.yaml", code=100).out
    assert diff.startswith("--- a/namespaces/orders.yaml\n+++ b/namespaces/orders.yaml\n")
    assert "+labels: {tier: gold, domain: sales}\n" in diff
    assert read_text(messy_repository, "namespaces/orders.yaml") == MESSY


def test_paths_are_files_or_folders_from_where_one_works(messy_repository: Scratch) -> None:
    messy_repository.write({"common/money.avsc": MONEY.replace(" ", "")})
    assert schemactl(messy_repository.path / "common", "fmt", ".").out == "formatted common/money.avsc\n"
    assert (
        schemactl(messy_repository.path / "namespaces", "fmt", "orders.avsc").out.split()[-1]
        == "namespaces/orders.avsc"
    )
    for missing_path in ("x.yaml", ""):
        assert "no such file or folder" in schemactl(messy_repository, "fmt", missing_path, code=64).err
    assert "outside of the repository" in schemactl(messy_repository, "fmt", "..", code=64).err


def test_what_is_staged_is_checked(messy_repository: Scratch) -> None:
    messy_repository.git("add", "-A")
    schemactl(messy_repository, "fmt")
    assert "would format namespaces/orders.yaml" in schemactl(messy_repository, "fmt", "--staged", code=100).out
    messy_repository.git("add", "-A")
    schemactl(messy_repository, "fmt", "--staged")


def test_what_is_neither_yaml_nor_json_is_an_error_with_its_place_and_other_files_are_written(
    messy_repository: Scratch,
) -> None:
    messy_repository.write({"namespaces/orders.avsc": '{"type": }', "namespaces/b.yaml": "topic: [a\n"})
    errors = schemactl(messy_repository, "fmt", code=1).err
    assert "namespaces/orders.avsc:1:10: expected a value" in errors
    assert "namespaces/b.yaml:" in errors
    assert read_text(messy_repository, "namespaces/orders.yaml") == TIDY
    assert read_text(messy_repository, "namespaces/orders.avsc") == '{"type": }'
    assert read_text(messy_repository, "namespaces/b.yaml") == "topic: [a\n"


BROKEN_YAML = {
    "a colon in a plain scalar": ("topic: t/n/b: x\n", 13),
    "a text without an end": ('topic: "a\n', None),
    "a reserved character": ("topic: @x\n", 8),
    "a tab as indentation": ("topic: a\nschema:\n\ttype: AVRO\n", 1),
    "an unknown escape": ('topic: "\\xzz"\n', None),
    "a bracket without an end": ("[a\n", None),
    "a conflict": ("<<<<<<< ours\ntopic: a\n=======\ntopic: b\n>>>>>>> theirs\n", 1),
    "a colon, and other line ends": ("topic: t/n/b: x\r", None),
}
"""A text that is not YAML, and the column of the message if it is certain."""


@pytest.mark.parametrize(("text", "column"), BROKEN_YAML.values(), ids=BROKEN_YAML)
def test_a_text_that_is_not_yaml_is_an_error_at_its_place_and_other_files_are_written(
    messy_repository: Scratch, text: str, column: int | None
) -> None:
    (messy_repository.path / "namespaces/broken.yaml").write_text(text)
    done = schemactl(messy_repository, "fmt", code=1)
    assert re.search(rf"^namespaces/broken.yaml:\d+:{column or '[0-9]+'}: ", done.err, re.MULTILINE)
    assert "formatted namespaces/orders.yaml" in done.out


def test_the_definition_of_a_client_is_formatted_with_its_topic(messy_repository: Scratch) -> None:
    folder = messy_repository.path / "namespaces"
    (folder / "billing.avsc").write_text((folder / "orders.avsc").read_text())
    (folder / "orders.yaml").write_text(
        MESSY.replace("    role:  consumer\n", "    role:  consumer\n    schema:  billing.avsc\n    language: python\n")
    )
    printed = schemactl(messy_repository, "fmt")
    assert "formatted namespaces/billing.avsc" in printed.out
    assert "formatted namespaces/orders.yaml" in printed.out
    assert (folder / "billing.avsc").read_text() == (folder / "orders.avsc").read_text()
    schemactl(messy_repository, "fmt", "--check")


def test_line_ends_of_other_systems_become_line_ends_and_links_are_left(messy_repository: Scratch) -> None:
    messy_repository.write(
        {
            "namespaces/orders.yaml": TIDY.replace("\n", "\r\n"),
            "namespaces/orders.avsc": TIDY_DEFINITION.replace("1e3", "1"),
        }
    )
    (messy_repository.path / "namespaces" / "link.avsc").symlink_to("orders.avsc")
    assert schemactl(messy_repository, "fmt").out == "formatted namespaces/orders.yaml\n"
    assert (messy_repository.path / "namespaces" / "orders.yaml").read_bytes() == TIDY.encode()


@pytest.mark.parametrize("name", ["format_yaml", "format_json"])
def test_a_layout_that_would_change_what_is_declared_is_a_bug_and_not_written(
    name: str, messy_repository: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change_names(*arguments: str) -> str:
        return arguments[-1].replace("orders", "order").replace("id", "key")

    monkeypatch.setattr(formatter, name, change_names)
    before = {path.name: path.read_text() for path in (messy_repository.path / "namespaces").iterdir()}
    errors = schemactl(messy_repository, "fmt", code=1).err
    assert "This is a bug of schemactl" in errors
    changed_file = "orders.yaml" if name == "format_yaml" else "orders.avsc"
    assert read_text(messy_repository, f"namespaces/{changed_file}") == before[changed_file]


def test_a_new_project_is_tidy(tmp_path: Path) -> None:
    schemactl(tmp_path, "init")
    schemactl(tmp_path, "new", "namespace", "shop/sales", "--strategy", "BACKWARD")
    for kind in ("AVRO", "STRING", "KEY_VALUE"):
        options = ("--key", "STRING", "--value", "JSON") if kind == "KEY_VALUE" else ()
        schemactl(tmp_path, "new", "topic", f"shop/sales/{kind.lower()}", "--type", kind, *options)
    schemactl(tmp_path, "fmt", "--check")
    schemactl(tmp_path, "lint", "--strict")


def test_the_examples_are_tidy(tmp_path: Path) -> None:
    folders = {"shop": shop.make(tmp_path), "environments": tmp_path / "environments"}
    for step in sorted((Path(__file__).parents[2] / "examples" / "environments" / "history").iterdir()):
        shutil.copytree(step, folders["environments"], dirs_exist_ok=True)
    for folder in folders.values():
        schemactl(folder, "fmt", "--check")
        schemactl(folder, "lint", "--strict")


KEYS = ("topic", "schema", "type", "definition", "labels", "a", "b c", "é", "key", "value", "fields", "doc")
SCALARS = (
    "x",
    "two words",
    "",
    "no",
    "1",
    "null",
    "# none",
    "a: b",
    "'",
    '"',
    "- x",
    "ü",
    "tab\tin",
    " led",
    "{",
    "a,b",
    "*x",
    "&",
)
TEXTS = ("one\ntwo\n", "one\n\n  deeper\nback", "\nled\n", "kept\n\n\n", "  led by blanks\nnot\n")


def choose_value(rng: random.Random, depth: int) -> Any:
    """Choose a random value for YAML and JSON."""
    kind = rng.random()
    if depth and kind < 0.3:
        return {key: choose_value(rng, depth - 1) for key in rng.sample(KEYS, rng.randint(0, 4))}
    if depth and kind < 0.5:
        return [choose_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return rng.choice([rng.choice(SCALARS), rng.randint(-9, 9), 1.5, True, None, rng.choice(TEXTS)])


class YamlWriter:
    """Renders values as YAML in random styles."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.comments = 0

    def render_document(self, content: dict[str, Any]) -> str:
        lines = [*self.render_block(content, 0)]
        return "\n".join([*self.render_noise(0), *lines, *self.render_noise(0), ""])

    def render_noise(self, column: int) -> Iterator[str]:
        while self.rng.random() < 0.25:
            yield self.rng.choice(
                ["", "   ", f"{' ' * self.rng.choice([column, 0, column + 3])}{self.render_comment()}"]
            )

    def render_comment(self) -> str:
        self.comments += 1
        return f"# c{self.comments}  {self.rng.choice(['x', 'a: b', '- y', '', 'é'])}"

    def render_end(self) -> str:
        return self.rng.choice(["", "", "", "  ", f"  {self.render_comment()}"])

    def render_block(self, content: Any, column: int) -> Iterator[str]:
        """Yield the lines of a non-empty dict or list."""
        blanks = " " * column
        for number, item in enumerate(content.items() if isinstance(content, dict) else content):
            yield from self.render_noise(column) if number else ()
            name, inner = item if isinstance(content, dict) else (None, item)
            head = f"{self.render_key(name)}{self.rng.choice(['', '', ' '])}:" if name is not None else "-"
            if isinstance(inner, dict | list) and inner and self.rng.random() < 0.7:
                yield from self.render_nested(inner, head, column, is_key=name is not None)
            elif isinstance(inner, str) and "\n" in inner and inner[0] not in " \n":
                yield f"{blanks}{head} |{self.choose_chomping(inner)}{self.render_end()}"
                text_column = column + self.rng.randint(1, 4)
                yield from (
                    f"{' ' * text_column}{line}" if line else "" for line in inner.removesuffix("\n").split("\n")
                )
            else:
                yield f"{blanks}{head}{' ' * self.rng.choice([1, 1, 3])}{self.render_flow(inner, column + 1)}{self.render_end()}"

    def render_nested(self, inner: Any, head: str, column: int, *, is_key: bool) -> Iterator[str]:
        step = self.rng.randint(1, 4)
        if not is_key and self.rng.random() < 0.7:
            first, *rest = self.render_block(inner, column + 1 + step)
            yield f"{' ' * column}-{first[column + 1 :]}"
            yield from rest
            return
        yield f"{' ' * column}{head}{self.render_end()}"
        is_flush = is_key and isinstance(inner, list) and self.rng.random() < 0.3
        yield from self.render_block(inner, column if is_flush else column + step)

    @staticmethod
    def choose_chomping(text: str) -> str:
        return "" if text.endswith("\n") and not text.endswith("\n\n") else "+" if text.endswith("\n") else "-"

    def render_key(self, name: str) -> str:
        return json.dumps(name, ensure_ascii=False) if self.rng.random() < 0.2 else name

    def render_flow(self, content: Any, column: int) -> str:
        blank = self.rng.choice(["", " ", "  "])
        comma = self.rng.choice(
            [",", ", ", " ,  ", f",\n{' ' * column}", f",  {self.render_comment()}\n{' ' * (column + 2)}"]
        )
        if isinstance(content, dict):
            members = (
                f"{json.dumps(key)}:{blank}{self.render_flow(member, column)}" for key, member in content.items()
            )
            return f"{{{blank}{comma.join(members)}{blank}}}"
        if isinstance(content, list):
            return f"[{blank}{comma.join(self.render_flow(item, column) for item in content)}{blank}]"
        if isinstance(content, str) and re.fullmatch("[a-wyz]+( [a-z]+)*", content) and content not in ("no", "null"):
            return content
        return json.dumps(content, ensure_ascii=False)


def read_values(text: str) -> list[str]:
    """Return the values of the documents of a YAML text, with sorted keys."""
    documents, problems = read_yaml("x.yaml", text.encode())
    assert problems == []
    return [json.dumps(document.value, sort_keys=True) for document in documents]


@EXAMPLES
@given(st.integers(0, 2**32))
def test_a_yaml_text_says_the_same_with_the_same_comments_and_stays_as_it_is_laid_out(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  no secret
    for _ in range(8):
        writer = YamlWriter(rng)
        contents = [
            {rng.choice(("topic", "namespace", "a")): "x", **choose_document(rng)} for _ in range(rng.randint(1, 2))
        ]
        text = "---\n".join(map(writer.render_document, contents)) + rng.choice(["", "\n\n"])
        text = text.rstrip("\n") if rng.random() < 0.2 else text
        new = yaml_formatter.format_yaml("x.yaml", text)
        assert read_values(new) == read_values(text)
        assert sorted(re.findall(r"# c\d+", new)) == sorted(re.findall(r"# c\d+", text))
        assert yaml_formatter.format_yaml("x.yaml", new) == new


def choose_document(rng: random.Random) -> dict[str, Any]:
    """Choose the random content of a document."""
    return {key: choose_value(rng, 3) for key in rng.sample(KEYS, rng.randint(0, 5)) if key != "topic"}


def render_json(content: Any, rng: random.Random) -> str:
    """Render JSON in a random style, with comments."""

    def choose_gap() -> str:
        return "".join(rng.choices(["", " ", "\n", "\n\n  ", "// c c\n", "/* c */", "\t"], [9, 5, 2, 1, 1, 1, 1], k=2))

    if isinstance(content, dict):
        members = (
            f"{choose_gap()}{json.dumps(key)}{choose_gap()}:{choose_gap()}{render_json(member, rng)}{choose_gap()}"
            for key, member in content.items()
        )
        return f"{{{','.join(members) or choose_gap()}}}"
    if isinstance(content, list):
        return (
            f"[{','.join(f'{choose_gap()}{render_json(item, rng)}{choose_gap()}' for item in content) or choose_gap()}]"
        )
    return rng.choice(["1.50", "1E2", "-0"]) if content == 1.5 else json.dumps(content, ensure_ascii=rng.random() < 0.5)


@EXAMPLES
@given(st.integers(0, 2**32))
def test_a_json_text_says_the_same_with_the_same_comments_and_stays_as_it_is_laid_out(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  no secret
    for _ in range(8):
        text = render_json(choose_value(rng, 4), rng)
        new = json_formatter.format_json(text)
        assert json.loads(blank_comments(new), parse_float=str) == json.loads(blank_comments(text), parse_float=str)
        assert len(re.findall(r"// c|/\* c", new)) == len(re.findall(r"// c|/\* c", text))
        assert json_formatter.format_json(new) == new
        assert "".join(blank_comments(new).split()) == "".join(blank_comments(text).split())


@pytest.mark.parametrize(
    "text",
    [
        "? a\n: b\n",
        "%YAML 1.2\n---\na:   1\n",
        "%YAML 1.2\n---\npartitions: 4\ntopic:  a\n",
        "partitions: 4\ntopic:  |\n \n",
        "- >+\n",
        "a:  1\u2028\n",
    ],
)
def test_a_text_with_what_is_never_used_stays_as_it_is(text: str) -> None:
    assert yaml_formatter.format_yaml("x.yaml", text) == text
