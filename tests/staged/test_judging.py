"""Changed definitions judged on sight: as the complete check judges them, in its words, or not at all."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from desk import Desk
from scratch import Scratch, record

from schemactl import staged

CASES = Path(__file__).parent.parent / "cases"

NULLABLE: Any = {"type": ["null", "string"], "default": None}


def order(
    *more: str, name: str = "Order", money: bool = False, indent: int | None = None, **added: Any
) -> str:
    """A record with an id, required texts, and optional fields."""
    fields: list[dict[str, Any]] = [{"name": each, "type": "string"} for each in ("id", *more)]
    fields += [{"name": "total", "type": "shop.Money"}] * money
    fields += [{"name": each, **what} for each, what in added.items()]
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": fields}, indent=indent)


def declaration(name: str, definition: str, **more: Any) -> str:
    """A topic's declaration; what is given beside is the schema's, or the topic's where the schema has no such key."""
    schema = {"type": "AVRO", "definition": definition}
    topic: dict[str, Any] = {"topic": f"persistent://shop/sales/{name}"}
    for key, value in more.items():
        (schema if key in ("type", "references", "properties") else topic)[key] = value
    return yaml.safe_dump({**topic, "schema": schema}, sort_keys=False)


INLINE = """\
# Sales
topic: shop/sales/inline
schema:
  type: AVRO
  properties: {owner: sales}
  definition: |
    %s
"""
AS_YAML = """\
topic: shop/sales/as-yaml
schema:
  type: JSON
  definition:
    type: record
    name: Note
    fields:
      - {name: id, type: long}
%s
"""
FILES: Mapping[str, str] = {
    "schemactl.yaml": "version: 1\nroots: [topics]\ndefaults: {schema_compatibility_strategy: FULL}\n",
    "README.md": "a",
    "common/money.avsc": order(name="Money"),
    "topics/space.yaml": "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n",
    "topics/orders.avsc": order(money=True),
    "topics/orders.yaml": declaration("orders", "orders.avsc", references=["../common/money.avsc"]),
    "topics/refunds.avsc": order(name="Refund", money=True),
    "topics/refunds.yaml": declaration(
        "refunds",
        "refunds.avsc",
        references=["../common/money.avsc"],
        schema_compatibility_strategy="FULL_TRANSITIVE",
    ),
    "topics/inline.yaml": INLINE % order(name="Inline"),
    "topics/as-yaml.yaml": AS_YAML % "",
    "topics/text.yaml": "topic: shop/sales/text\nschema: {type: STRING}\n---\ntopic: shop/sales/none\n",
    "topics/mixed.yaml": declaration(
        "mixed", order(name="Mixed", money=True), references=["../common/money.avsc"]
    ),
    "topics/pinned.yaml": declaration("pinned", "pinned.avsc", reader=0),
    "topics/pinned.avsc": order(name="Pinned"),
}
LATER: Mapping[str, str] = {
    "topics/orders.avsc": order("gone", money=True, memo=NULLABLE),
    "topics/refunds.avsc": order(name="Refund", money=True, reason={"type": "int", "default": 1}),
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    """Approved topics of every make, two of them with two versions; the index has been checked once."""
    return made(tmp_path, monkeypatch, capsys)


@pytest.fixture
def feeding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    """The same where the topics feed tables."""
    return made(tmp_path, monkeypatch, capsys, "generate: {package: shop_schemas}\n")


def made(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: str = "",
    last: Mapping[str, str] | None = None,
) -> Desk:
    """The desk, with `more` in its project file, and the files `last` approved after all others."""
    scratch = Scratch(folder / "team")
    scratch.commit({**FILES, "schemactl.yaml": f"{FILES['schemactl.yaml']}{more}"}, "approved")
    scratch.commit(LATER, "also approved")
    if last is not None:
        scratch.commit(last, "approved last")
    desk = Desk(scratch, monkeypatch, capsys)
    desk.git("checkout", "-q", "-b", "work")
    assert desk.work_out()[0] == 0
    return desk


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("topics/orders.avsc", order(money=True, memo=NULLABLE), "version 1, will be 2  BACKWARD"),
        (
            "topics/orders.avsc",
            order("gone", money=True, memo=NULLABLE, more=NULLABLE),
            "version 1, will be 2",
        ),
        (
            "topics/refunds.avsc",
            order(name="Refund", money=True, reason={"type": "int", "default": 1}, more=NULLABLE),
            "version 1, will be 2  FULL_TRANSITIVE",
        ),
        ("common/money.avsc", order(name="Money", currency=NULLABLE), "3 changed"),
        (
            "topics/inline.yaml",
            INLINE % order(name="Inline", more=NULLABLE),
            "persistent://shop/sales/inline",
        ),
        (
            "topics/as-yaml.yaml",
            AS_YAML % "      - {name: more, type: ['null', string], default: null}",
            "as-yaml",
        ),
        ("topics/orders.avsc", order("gone", money=True, memo=NULLABLE, indent=4), "0 changed"),
        ("topics/orders.yaml", "# why\n" + FILES["topics/orders.yaml"], "0 changed"),
        ("topics/inline.yaml", "# more\n" + INLINE % order(name="Inline"), "0 changed"),
    ],
)
def test_what_nobody_minds_is_told_on_sight(desk: Desk, path: str, content: str, said: str) -> None:
    desk.stage(path, content)
    seen = staged.answer()
    assert seen is not None
    assert said in seen
    assert desk.work_out() == (0, seen)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        # It breaks somebody.
        ("topics/orders.avsc", order("gone", "new", money=True, memo=NULLABLE)),
        ("topics/refunds.avsc", order(name="Refund", money=True, reason={"type": "string", "default": "1"})),
        ("common/money.avsc", order("currency", name="Money")),
        # It is a version already, or none.
        ("topics/orders.avsc", order(money=True)),
        ("topics/orders.avsc", json.dumps({**json.loads(LATER["topics/orders.avsc"]), "doc": "why"})),
        ("topics/inline.yaml", INLINE % order(name="Inline", indent=None).replace(" ", "")),
        # Something has to be said.
        ("topics/orders.avsc", order("gone", memo=NULLABLE, more=NULLABLE)),
        ("topics/orders.avsc", "{"),
        ("topics/pinned.avsc", order(name="Pinned", more=NULLABLE)),
        # More than the definition differs.
        ("topics/inline.yaml", "partitions: 3\n" + INLINE % order(name="Inline", more=NULLABLE)),
        ("topics/inline.yaml", "partitions: 3\n" + INLINE % order(name="Inline")),
        (
            "topics/inline.yaml",
            (INLINE % order(name="Inline", more=NULLABLE)).replace("owner: sales", "owner: me"),
        ),
        (
            "topics/inline.yaml",
            INLINE.replace("shop/sales/inline", "shop/sales/other") % order(name="Inline"),
        ),
        ("topics/inline.yaml", (INLINE % order(name="Inline", more=NULLABLE)).replace("AVRO", "JSON")),
        ("topics/orders.yaml", FILES["topics/orders.yaml"].replace("orders.avsc", "refunds.avsc")),
        ("topics/text.yaml", "topic: shop/sales/text\nschema: {type: INT32}\n---\ntopic: shop/sales/none\n"),
        ("topics/text.yaml", "topic: shop/sales/text\nschema: {type: STRING}\n"),
        ("topics/space.yaml", "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"),
        (
            "topics/as-yaml.yaml",
            AS_YAML % "      - {name: more, type: ['null', string], default: null}\n\tx: 1",
        ),
        ("topics/new.yaml", declaration("new", "orders.avsc")),
    ],
)
def test_everything_else_is_worked_out(desk: Desk, path: str, content: str) -> None:
    desk.stage(path, content)
    assert staged.answer() is None


STATES = {"type": {"type": "enum", "name": "State", "symbols": ["A"]}, "default": "A"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"memo": NULLABLE, "more": NULLABLE}, "orders.avsc:1:243: TABLE_CHANGED"),
        ({"more": {"type": "long", "default": 1}}, "more bigint: added column"),
        ({}, "memo string: column no longer written"),
        (
            {"memo": NULLABLE, "at": {"type": {"type": "int", "logicalType": "date"}, "default": 0}},
            "at date:",
        ),
        ({"memo": NULLABLE, "state": STATES}, "state string: added column"),
        ({"memo": {**NULLABLE, "doc": "why"}, "a": NULLABLE}, "a string: added column"),
    ],
)
def test_columns_that_come_and_go_are_told_on_sight(feeding: Desk, fields: dict[str, Any], said: str) -> None:
    feeding.stage("topics/orders.avsc", order("gone", money=True, **fields))
    seen = feeding.holds()
    assert said in seen
    assert "tables" in seen
    # Then they are known, and what joins them is told on sight, too.
    feeding.stage("topics/refunds.avsc", refund(more=NULLABLE))
    assert "more string: added column" in feeding.holds()


def refund(**fields: Any) -> str:
    return order(name="Refund", money=True, reason={"type": "int", "default": 1}, **fields)


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_a_column_is_shown_where_it_stands(feeding: Desk, indent: int | None) -> None:
    feeding.stage(
        "topics/refunds.avsc", "\n " + refund(a=NULLABLE).replace("[", "[ ", 1).replace("\n", "\r\n")
    )
    feeding.holds()
    feeding.stage("topics/orders.avsc", order("gone", money=True, memo=NULLABLE, ü=NULLABLE, indent=indent))
    assert staged.answer() is None
    feeding.stage("topics/orders.avsc", order("gone", money=True, memo=NULLABLE, u=NULLABLE, indent=indent))
    assert "TABLE_CHANGED" in feeding.holds()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        # Inside a column, and of several topics.
        ("common/money.avsc", order(name="Money", currency=NULLABLE)),
        # It stands in YAML.
        ("topics/inline.yaml", INLINE % order(name="Inline", more=NULLABLE)),
        # A column of another type, one of several types, and one with parts.
        (
            "topics/orders.avsc",
            order("gone", money=True, memo={"type": ["null", "string", "int"], "default": None}),
        ),
        (
            "topics/orders.avsc",
            order("gone", money=True, memo=NULLABLE, a={"type": ["string", "int"], "default": ""}),
        ),
        (
            "topics/orders.avsc",
            order(
                "gone",
                money=True,
                memo=NULLABLE,
                a={"type": {"type": "array", "items": "int"}, "default": []},
            ),
        ),
        # One that depends on the release of Spark, and one that is only spelled otherwise.
        (
            "topics/orders.avsc",
            order(
                "gone",
                money=True,
                memo=NULLABLE,
                a={"type": {"type": "long", "logicalType": "time-micros"}, "default": 0},
            ),
        ),
        ("topics/orders.avsc", order("gone", money=True, Memo=NULLABLE)),
    ],
)
def test_whatever_else_happens_to_tables_is_worked_out(feeding: Desk, path: str, content: str) -> None:
    feeding.stage(path, content)
    assert staged.answer() is None
    assert feeding.work_out()[0] == 0


@pytest.mark.parametrize("name", ["memo", "Memo"])
def test_what_older_rows_have_under_the_name_of_a_new_column_is_worked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    without = {"topics/orders.avsc": order("gone", money=True)}
    desk = made(tmp_path, monkeypatch, capsys, "generate: {package: shop_schemas}\n", without)
    number: Any = {"type": ["null", "long"], "default": None}
    desk.stage("topics/orders.avsc", order("gone", money=True, **{name: number}))
    assert staged.answer() is None
    code, said = desk.work_out()
    assert code == 0
    assert "TABLE_REWRITE" in said
    assert f"{name} goes from string to bigint" in said


def test_where_a_project_weighs_it_itself_it_is_worked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = made(
        tmp_path,
        monkeypatch,
        capsys,
        "generate: {package: p}\nseverities: {shop/sales: {TABLE_CHANGED: error}}\n",
    )
    desk.stage("topics/orders.avsc", order("gone", money=True, memo=NULLABLE, more=NULLABLE))
    assert staged.answer() is None
    assert desk.work_out()[0] == 100


def test_under_a_transitive_strategy_every_version_counts(desk: Desk) -> None:
    # The first version has no `reason`: without a default it would not be read, though the latest one would.
    reason: Any = {"type": "int"}
    desk.stage("topics/refunds.avsc", order(name="Refund", money=True, reason=reason, more=NULLABLE))
    assert staged.answer() is None
    code, said = desk.work_out()
    assert code == 100
    assert "version 0" in said


def test_several_changes_are_told_in_the_order_of_a_report(desk: Desk) -> None:
    desk.stage("common/money.avsc", order(name="Money", currency=NULLABLE))
    desk.stage("topics/inline.yaml", INLINE % order(name="Inline", more=NULLABLE))
    desk.stage("topics/as-yaml.yaml", AS_YAML % "      - {name: more, type: ['null', string], default: null}")
    desk.stage("README.md", "b")
    assert "5 changed" in desk.holds()


def test_where_one_of_two_changes_needs_a_word_both_are_worked_out(desk: Desk) -> None:
    desk.stage("topics/inline.yaml", INLINE % order(name="Inline", more=NULLABLE))
    desk.stage("topics/orders.avsc", order("gone", "new", money=True, memo=NULLABLE))
    assert staged.answer() is None


def test_of_what_was_approved_since_the_branch_began_only_other_topics_may_differ(desk: Desk) -> None:
    desk.stage("README.md", "b")
    desk.git("commit", "-q", "-m", "work")
    desk.git("checkout", "-q", "main")
    desk.stage("topics/inline.yaml", INLINE % order(name="Inline", more=NULLABLE))
    desk.stage("topics/fresh.yaml", "topic: shop/sales/fresh\n")
    desk.git("commit", "-q", "-m", "approved")
    desk.git("checkout", "-q", "work")
    assert desk.work_out()[0] == 0
    assert "left at" in desk.holds()
    desk.stage("topics/orders.avsc", order("gone", money=True, memo=NULLABLE, more=NULLABLE))
    assert "version 1, will be 2" in desk.holds()
    desk.stage("topics/inline.yaml", INLINE % order(name="Inline", other=NULLABLE))
    assert staged.answer() is None


def test_where_another_strategy_was_approved_since_it_is_worked_out(desk: Desk) -> None:
    desk.git("checkout", "-q", "main")
    desk.stage("topics/space.yaml", "namespace: shop/sales\nschema_compatibility_strategy: FULL\n")
    desk.git("commit", "-q", "-m", "approved")
    desk.git("checkout", "-q", "work")
    desk.work_out()
    desk.holds()
    desk.stage("topics/orders.avsc", order("gone", money=True, memo=NULLABLE, more=NULLABLE))
    assert staged.answer() is None


def test_what_its_parts_became_since_is_worked_out(desk: Desk) -> None:
    desk.git("checkout", "-q", "main")
    doc = json.dumps({**json.loads(FILES["common/money.avsc"]), "doc": "why"})
    desk.stage("common/money.avsc", doc)
    desk.git("commit", "-q", "-m", "approved")
    desk.git("checkout", "-q", "work")
    desk.work_out()
    desk.stage("topics/orders.avsc", order("gone", money=True, memo=NULLABLE, more=NULLABLE))
    assert staged.answer() is None
    desk.git("reset", "-q", "--hard")
    desk.stage("topics/inline.yaml", INLINE % order(name="Inline", more=NULLABLE))
    desk.holds()


def test_without_the_kept_history_it_is_worked_out(desk: Desk) -> None:
    desk.stage("topics/inline.yaml", INLINE % order(name="Inline", more=NULLABLE))
    for kept in (desk.path / ".git" / "schemactl").glob("history-*"):
        kept.rename(kept.with_suffix(".away"))
    assert staged.answer() is None
    for kept in (desk.path / ".git" / "schemactl").glob("history-*"):
        kept.with_suffix(".db").write_bytes(b"SQLite format 3\0 and nothing else")
    assert staged.answer() is None
    assert desk.work_out()[0] == 0
    desk.holds()


def test_one_changed_topic_takes_two_git_processes_and_nothing_heavy(desk: Desk) -> None:
    desk.stage("README.md", "b")
    desk.git("commit", "-q", "-m", "moves HEAD")
    desk.stage("common/money.avsc", order(name="Money", currency=NULLABLE))
    said, modules, started = desk.process()
    assert "3 changed" in said
    assert started == 2
    assert desk.process()[2] == 2
    heavy = {"pydantic", "git", "fastavro", "google", "pyspark", "urllib3", "click", "rich", "asyncio"}
    heavy |= {"subprocess", "argparse", "dataclasses", "inspect", "pathlib"}
    heavy |= {
        f"schemactl.{room}" for room in ("cli", "model", "formats", "broker", "compat", "declare", "check")
    }
    assert modules & heavy == set()


POOL: Mapping[str, tuple[str, ...]] = {
    "common/money.avsc": (order(name="Money"), order(name="Money", a=NULLABLE), order("b", name="Money")),
    "topics/orders.avsc": (
        *(FILES["topics/orders.avsc"], LATER["topics/orders.avsc"], record("id", name="Order")),
        *(order(money=True, **{each: NULLABLE}) for each in "abc"),
    ),
    "topics/inline.yaml": (
        FILES["topics/inline.yaml"],
        *(INLINE % order(name="Inline", **{each: NULLABLE}) for each in "ab"),
        "# a\n" + FILES["topics/inline.yaml"],
        INLINE % order("x", name="Inline"),
    ),
    "topics/as-yaml.yaml": (
        AS_YAML % "",
        AS_YAML % "      - {name: a, type: int, default: 0}",
        AS_YAML % "  - x",
    ),
    "README.md": ("a", "b"),
}


@pytest.mark.parametrize("project", ["desk", "feeding"])
@pytest.mark.parametrize("seed", range(3))
def test_on_any_walk_what_is_told_on_sight_is_what_would_be_worked_out(
    request: pytest.FixtureRequest, project: str, seed: int
) -> None:
    desk: Desk = request.getfixturevalue(project)
    rng = random.Random(seed)  # noqa: S311  no secret
    paths = sorted(POOL)
    start = desk.git("rev-parse", "HEAD").strip()

    def edit() -> None:
        path = rng.choice(paths)
        desk.stage(path, rng.choice(POOL[path]))

    steps: list[Callable[[], object]] = [
        *(edit, edit, edit, edit, edit),
        lambda: desk.git("commit", "-q", "--allow-empty", "-m", "step"),
        lambda: desk.git("reset", "-q", "--hard", "main"),
        lambda: desk.git("branch", "-f", "main", "HEAD"),
        lambda: desk.git("checkout", "-q", "-f", "-B", "other", rng.choice(["HEAD", "main", start])),
    ]
    seen = 0
    for _ in range(30):
        rng.choice(steps)()
        told = staged.answer()
        worked_out = desk.work_out()
        assert told is None or worked_out == (0, told)
        seen += told is not None
    assert seen > 4


def repositories() -> list[Any]:
    """The cases of rules on Avro definitions in a repository, as pytest's parameters."""
    return [
        pytest.param(case, id=f"{path.stem}: {name}")
        for path in sorted(CASES.glob("*.yaml"))
        for name, case in yaml.safe_load(path.read_text(encoding="utf-8")).items()
        if "before" in case
        and "proto" not in json.dumps(case).lower()
        and not {"branch", "meanwhile"} & case.keys()
    ]


@pytest.mark.parametrize("case", repositories())
def test_in_every_case_of_a_rule_the_answer_is_the_same_or_worked_out(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scratch = Scratch(tmp_path / "team")
    strategy = case.get("strategy", "FULL")
    project = f"version: 1\npulsar: '{case.get('pulsar', '4.0')}'\n"
    project += f"defaults: {{schema_compatibility_strategy: {strategy}}}\n" + yaml.safe_dump(
        case.get("project") or {}
    )
    commits = case["before"] if isinstance(case["before"], list) else [case["before"]]
    for number, files in enumerate(commits):
        scratch.commit(files if number else {"schemactl.yaml": project.removesuffix("{}\n"), **files})
    desk = Desk(scratch, monkeypatch, capsys)
    desk.work_out()
    for path, content in case["after"].items():
        desk.stage(path, content)
    told = staged.answer()
    worked_out = desk.work_out()
    assert told is None or worked_out == (0, told)
    # Nothing that a rule has a word on is told on sight.
    assert told is None or not case["expect"] or not case["after"]
