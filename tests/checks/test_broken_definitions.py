"""One broken definition stops only the work that needs it, in every command that reads the working tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from command import run_json, schemactl
from scratch import Files, Scratch, record, write_declaration

pytestmark = pytest.mark.slow

PROJECT = "version: 1\nroots: [topics]\napproved: main\ngenerate: {package: shop_schemas, out: generated}\n"
OPTIONAL = '{"name": "note", "type": ["null", "string"], "default": null}'


def write_record(*fields: str, name: str = "Good") -> str:
    return f'{{"type": "record", "name": "{name}", "fields": [{", ".join(fields)}]}}\n'


ID = '{"name": "id", "type": "string"}'

BROKEN_FILES: dict[str, Files] = {
    "a type that does not exist": {"topics/other.avsc": write_record('{"name": "id", "type": "strng"}', name="Other")},
    "text that is not JSON": {"topics/other.avsc": '{"type": "record", "name": '},
    "a definition that is missing": {"topics/other.avsc": None},
    "a declaration that is not YAML": {"topics/other.yaml": "topic: shop/sales/other\nschema: {type: AVRO"},
    "a declaration with a wrong key": {"topics/other.yaml": "topic: shop/sales/other\nschema: {typ: AVRO}\n"},
    "a declaration whose name cannot be read": {"topics/other.yaml": "{"},
    "a declaration twice": {"topics/again.yaml": "topic: shop/sales/other\nschema: {type: STRING}\n"},
}


def make_shop(path: Path, broken: Files) -> Scratch:
    """Make a repository with a compatible change of the topic `good`, and a topic `other` that this change breaks."""
    scratch = Scratch(path)
    scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/ns.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
            "topics/good.yaml": "topic: shop/sales/good\nschema: {type: AVRO, definition: good.avsc}\n",
            "topics/good.avsc": write_record(ID),
            "topics/other.yaml": "topic: shop/sales/other\nschema: {type: AVRO, definition: other.avsc}\n",
            "topics/other.avsc": write_record(ID, name="Other"),
        }
    )
    scratch.write({"topics/good.avsc": write_record(ID, OPTIONAL), "README.md": "Text.\n", **broken})
    return scratch


@pytest.fixture(params=BROKEN_FILES)
def broken_shop(tmp_path: Path, request: pytest.FixtureRequest) -> Scratch:
    """A shop for one test, which may change it."""
    return make_shop(tmp_path / "shop", BROKEN_FILES[request.param])


@pytest.fixture(scope="module", params=BROKEN_FILES)
def unchanged_shop(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Scratch:
    """A shop that no test changes."""
    return make_shop(tmp_path_factory.mktemp("broken") / "shop", BROKEN_FILES[request.param])


class CommandCase(NamedTuple):
    """Commands on the shop, their exit code, a pattern of standard output, and a part of standard error."""

    commands: Sequence[str]
    code: int = 0
    out: str = ""
    err: str = ""


COMMANDS = {
    "a check of another topic lists what is broken": CommandCase(
        ["check --topic good"], out="not requested, and it cannot be read: topics/",
    ),
    "commands on another topic list what is broken": CommandCase(
        ["lint --topic good", "diff --topic good", "graph good"], err="not requested, and it cannot be read: topics/",
    ),
    "commands that read only another topic succeed": CommandCase(
        ["diff good", "log good", "show good@work", "fmt --check topics/good.yaml"]
    ),
    "files select the topics that they declare or define": CommandCase(
        [
            "check topics/good.avsc", "check topics/good.yaml", "check {shop}/topics/good.avsc README.md",
            "-C {shop}/topics check good.avsc",
        ],
        out="1 topic checked",
    ),
    "lint takes the same files": CommandCase(
        ["lint topics/good.avsc", "lint topics/good.yaml", "lint {shop}/topics/good.avsc README.md"]
    ),
    "a file of no topic selects none": CommandCase(
        ["check README.md"], err="README.md: no selected topic is declared or defined there"
    ),
    "a folder selects the broken topic as well": CommandCase(["check topics", "lint topics"], 1),
    "a name is no path": CommandCase(["check good", "lint good"], 64, err="to select a topic, use --topic good"),
    "a path is in the repository": CommandCase(["check ..", "lint .."], 64, err="outside of the repository"),
    "lint of all topics does the rest": CommandCase(["lint"], 1, out="1 topic linted"),
    "diff and graph of all topics do the rest": CommandCase(["diff", "graph --format json"], 1, out="shop/sales/good"),
    "commands on the broken topic print only an error": CommandCase(
        ["check --topic other", "lint --topic other", "diff --topic other", "generate --topic other"], 1, r"\A\Z", "topics/",
    ),
    "graph and diff of the broken topic fail": CommandCase(["graph other", "diff other"], 1),
}  # fmt: skip


@pytest.mark.parametrize("case", COMMANDS.values(), ids=COMMANDS)
def test_a_broken_definition_stops_only_the_commands_that_need_it(unchanged_shop: Scratch, case: CommandCase) -> None:
    for command in case.commands:
        arguments = [word.format(shop=unchanged_shop.path) for word in command.split()]
        printed = schemactl(unchanged_shop, *arguments, code=case.code)
        assert re.search(case.out, printed.out), (command, printed)
        assert case.err in printed.err, (command, printed)


def test_a_whole_check_judges_the_other_topic_and_exits_with_1(unchanged_shop: Scratch) -> None:
    report = run_json(unchanged_shop, "check", code=1)
    assert [(topic["topic"], topic["data"]) for topic in report["topics"]] == [
        ("persistent://shop/sales/good", "compatible")
    ]
    undecided = [finding for finding in report["findings"] if finding["rule"] == "NOT_DECIDED"]
    assert len(undecided) == 1
    assert {finding["rule"] for finding in report["findings"]} <= {"NOT_DECIDED", "TABLE_CHANGED"}
    text = schemactl(unchanged_shop, "check", code=1)
    assert (text.out + text.err).count(undecided[0]["message"]) == 1


def test_packages_are_generated_for_the_topics_that_can_be_read(broken_shop: Scratch) -> None:
    one = schemactl(broken_shop, "generate", "--topic", "good")
    assert "not requested, and it cannot be read: topics/" in one.out + one.err
    schemactl(broken_shop, "generate", code=1)
    schemas = sorted(path.name for path in (broken_shop.path / "generated").rglob("*.avsc"))
    assert len(schemas) == 3, schemas
    assert "0 stale" in schemactl(broken_shop, "generate", "--check", code=1).out


def test_broken_definitions_that_were_approved_do_not_look_removed(broken_shop: Scratch) -> None:
    broken_shop.git("add", "-A")
    broken_shop.git("commit", "-q", "-m", "break it")
    report = run_json(broken_shop, "check", code=1)
    assert [finding["rule"] for finding in report["findings"]] == ["NOT_DECIDED"]


def test_a_broken_namespace_stops_its_topics_only(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "shop")
    scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
            "topics/orders.yaml": write_declaration(),
            "topics/orders.avsc": record("id"),
            "topics/web.yaml": "namespace: shop/web\n---\ntopic: shop/web/clicks\nschema: {type: STRING}\n",
        }
    )
    scratch.write({"topics/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: backwards\n"})
    assert "backwards" in schemactl(scratch, "check", "--topic", "orders", code=1).err
    schemactl(scratch, "check", "--topic", "clicks")
    report = run_json(scratch, "check", code=1)
    assert [finding["rule"] for finding in report["findings"]] == ["NOT_DECIDED"]
    assert report["policies"] == []


def test_fmt_formats_the_files_that_can_be_read(broken_shop: Scratch) -> None:
    broken_shop.write({"topics/good.avsc": '{"type": "record",    "name": "Good", "fields": []}\n'})
    assert "topics/good.avsc" in schemactl(broken_shop, "fmt", "--check", code=(1, 100)).out
    schemactl(broken_shop, "fmt", "topics/good.avsc")
    assert "    " not in (broken_shop.path / "topics/good.avsc").read_text().splitlines()[0]


def test_the_hook_reports_only_the_definitions_that_the_commit_breaks(broken_shop: Scratch) -> None:
    broken_shop.git("add", "-A")
    schemactl(broken_shop, "check", "--staged", code=1)
    broken_shop.git("commit", "-q", "--no-verify", "-m", "break it")
    broken_shop.write({"topics/good.avsc": write_record(ID)})
    broken_shop.git("add", "-A")
    assert "of earlier commits" in schemactl(broken_shop, "check", "--staged").out


def test_a_removed_file_still_names_its_topics(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "shop")
    files = {
        "schemactl.yaml": PROJECT,
        "topics/ns.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
        "topics/a.yaml": "topic: shop/sales/a\nschema: {type: AVRO, definition: a.avsc, references: [money.avsc]}\n",
        "topics/a.avsc": write_record('{"name": "sum", "type": "Money"}', name="A"),
        "topics/money.avsc": write_record('{"name": "cents", "type": "long"}', name="Money"),
        "topics/b.yaml": "topic: shop/sales/b\nschema: {type: STRING}\n",
    }
    scratch.commit(files)
    scratch.write(
        {"topics/b.yaml": None, "topics/money.avsc": write_record('{"name": "cents", "type": "string"}', name="Money")}
    )
    assert "DELETED_TOPIC" in schemactl(scratch, "check", "topics/b.yaml").out
    assert "TYPE_MISMATCH" in schemactl(scratch, "check", "topics/money.avsc", code=100).out
    both = schemactl(scratch, "check", "topics/ns.yaml", "--topic", "a", code=100).out
    assert "DELETED_TOPIC" not in both
    assert "TYPE_MISMATCH" in both


def test_a_removed_definition_is_restored_and_never_replaced_by_another_topic_s(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "shop")
    topics = ("returns", "refunds")
    scratch.commit(
        {
            "schemactl.yaml": PROJECT,
            "topics/ns.yaml": "namespace: shop/sales\n",
            **{
                f"topics/{name}.yaml": f"topic: shop/sales/{name}\nschema: {{type: AVRO, definition: {name}.avsc}}\n"
                for name in topics
            },
            **{f"topics/{name}.avsc": write_record(ID, name=name.title()) for name in topics},
        }
    )
    scratch.flush()
    definition = scratch.path / "topics/returns.avsc"
    definition.unlink()
    for command in ("check", "lint", "generate --check"):
        error = schemactl(scratch, *command.split(), code=1)
        text = f"{error.out}{error.err}"
        assert "there is no file `topics/returns.avsc` any more" in text
        assert re.search(
            "(Fix:|= fix) +`git restore -- topics/returns.avsc`, or also remove the declaration of the topic", text
        )
        assert "refunds.avsc" not in text
    scratch.git("restore", "--", "topics/returns.avsc")
    declaration = scratch.path / "topics/returns.yaml"
    declaration.write_text(declaration.read_text().replace("returns.avsc", "retruns.avsc"))
    assert "fix      write returns.avsc" in "".join(map(str, schemactl(scratch, "check", code=1)[:2]))
