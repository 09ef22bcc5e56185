"""A pull request cannot approve itself: changes of judging files do not hide a breaking change, and legitimate changes pass."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from command import run_json, schemactl
from hypothesis import given
from hypothesis import strategies as st
from property_runs import REPOSITORIES
from scratch import Files, Scratch, record, write_declaration

pytestmark = pytest.mark.slow

READER = "READER_FIELD_MISSING_DEFAULT_VALUE"
OFF = {READER: "off", "BROKER_INCOMPATIBLE": "off", "STEP_REFUSED": "off"}
STRICT = "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"
RELAXED = "namespace: shop/sales\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n"
BREAK = {"topics/orders.avsc": record("id", "note")}
FORGED = (
    "persistent://shop/sales/orders:\n  1: {foreign: forged.avsc, type: AVRO, reason: drift, accepted: 2026-11-22}\n"
)
DELETED = "persistent://shop/sales/orders:\n  1: {deleted: true, reason: gone, accepted: 2026-11-22}\n"


def make_project(**settings: Any) -> dict[str, str]:
    """Return the project file with these settings."""
    return {"schemactl.yaml": yaml.safe_dump({"version": 1, "roots": ["topics"], **settings})}


def make_target(**settings: Any) -> dict[str, Any]:
    """Return a target with these settings."""
    return {"registry": "sqlite:r.db", **settings}


def project_with(**targets: dict[str, Any]) -> dict[str, str]:
    """Return the project file with these targets and a strategy that protects nothing unless an overlay changes it."""
    return make_project(defaults={"schema_compatibility_strategy": "ALWAYS_COMPATIBLE"}, targets=targets)


PROD = {**project_with(prod=make_target(overlays="o.yaml")), "o.yaml": STRICT}
TOPIC = {
    "topics/orders.yaml": write_declaration(),
    "topics/orders.avsc": record("id"),
    "topics/sales.yaml": "namespace: shop/sales\nis_allow_auto_update_schema: false\n",
}
RENAMED = {
    "topics/orders.yaml": write_declaration("shop/sales/sales", more="renamed_from: shop/sales/orders\n"),
    **BREAK,
}
PROTO = 'syntax = "proto3"; package web; message Click { %s a = 1; }'
CLICKS = {
    "topics/p.avsc": '{"type": "record", "name": "Click", "namespace": "web", "fields": [{"name": "a", "type": "string", "default": ""}]}',
    "topics/p.proto": PROTO % "string",
    "topics/p.yaml": "topic: shop/sales/p\nschema: {type: PROTOBUF, definition: p.avsc, proto: p.proto, message: web.Click}\n",
}


@dataclass(frozen=True)
class Evasion:
    """A pull request with a breaking change that tries to pass.

    Attributes:
        approved: the approved commits in addition to the topic.
        change: the changed files of the pull request.
        begins: the index of the approved commit that the pull request starts from; -1 is the tip.
        folder: the folder in which the check runs.
        rules: the rules of which at least one is an error.
    """

    approved: Sequence[Files]
    change: Files
    begins: int = -1
    folder: str = "."
    rules: frozenset[str] = frozenset({READER, "BROKER_INCOMPATIBLE", "STRATEGY_RELAXED", "FIELD_WIRE_COMPATIBLE_TYPE"})


EVASIONS: Mapping[str, Evasion] = {
    "a new target with a relaxed overlay": Evasion(
        [make_project()], {**BREAK, **make_project(targets={"x": make_target(overlays="x.yaml")}), "x.yaml": RELAXED}
    ),
    "a new target whose overlay names the topic": Evasion(
        [make_project()],
        {
            **BREAK,
            **make_project(targets={"x": make_target(overlays="x.yaml")}),
            "x.yaml": "topic: shop/sales/orders\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n",
        },
    ),
    "a target under another name, and a relaxed overlay": Evasion(
        [PROD], {**BREAK, **project_with(live=make_target(overlays="o.yaml")), "o.yaml": RELAXED}
    ),
    "a target with another case, and a relaxed overlay": Evasion(
        [PROD], {**BREAK, **project_with(Prod=make_target(overlays="o.yaml")), "o.yaml": RELAXED}
    ),
    "a relaxed overlay": Evasion([PROD], {**BREAK, "o.yaml": RELAXED}),
    "an overlay in another file": Evasion(
        [PROD], {**BREAK, **project_with(prod=make_target(overlays="other.yaml")), "other.yaml": RELAXED}
    ),
    "a target that names no overlay": Evasion([PROD], {**BREAK, **project_with(prod=make_target()), "o.yaml": None}),
    "no target": Evasion([PROD], {**BREAK, **project_with(), "o.yaml": None}),
    "a target that excludes the topic": Evasion(
        [PROD], {**BREAK, **project_with(prod=make_target(overlays="o.yaml", exclude=["**/orders"]))}
    ),
    "a target that includes only another topic": Evasion(
        [PROD],
        {
            **BREAK,
            **project_with(prod=make_target(overlays="o.yaml", include=["**/other"])),
            "topics/other.yaml": "topic: shop/sales/other\nschema: {type: STRING}\n",
        },
    ),
    "a target with other names": Evasion(
        [PROD], {**BREAK, **project_with(prod=make_target(overlays="o.yaml", tenants={"shop": "x"})), "o.yaml": RELAXED}
    ),
    "a forged numbers file": Evasion(
        [make_project(defaults={"schema_compatibility_strategy": "FULL"}, targets={"prod": make_target()})],
        {**BREAK, "numbers/prod.yaml": FORGED, "numbers/forged.avsc": record("id", "note")},
    ),
    "a numbers file that says that nothing is there": Evasion(
        [make_project(targets={"prod": make_target()})], {**BREAK, "numbers/prod.yaml": DELETED}
    ),
    "a numbers file in another place": Evasion(
        [make_project(targets={"prod": make_target()})],
        {**BREAK, **make_project(targets={"prod": make_target(numbers="n.yaml")}), "n.yaml": FORGED, "forged.avsc": record("id", "note")},
    ),
    "a lenient merge base": Evasion([make_project(severities=OFF), make_project()], BREAK, begins=0),
    "a lenient merge base, and the file is changed": Evasion(
        [make_project(severities=OFF), make_project()], {**BREAK, **make_project(severities=OFF, pulsar="4.0")}, begins=0
    ),
    "a merge base that cannot be read": Evasion(
        [make_project(unknown=1), make_project()], {**BREAK, **make_project(severities=OFF)}, begins=0
    ),
    "a tip that cannot be read": Evasion(
        [make_project(), make_project(unknown=1)], {**BREAK, **make_project(severities=OFF)}
    ),
    "an overlay of the tip that cannot be read": Evasion(
        [PROD, {"o.yaml": "namespace: [\n"}], {**BREAK, "o.yaml": RELAXED}
    ),
    "a renamed topic with an overlay of its own": Evasion(
        [PROD],
        {**RENAMED, "o.yaml": f"{STRICT}---\ntopic: shop/sales/sales\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n"},
    ),
    "a topic that moves to the other domain, with an overlay": Evasion(
        [PROD],
        {
            "topics/orders.yaml": write_declaration("non-persistent://shop/sales/orders"),
            **BREAK,
            "o.yaml": f"{STRICT}---\ntopic: non-persistent://shop/sales/orders\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n",
        },
    ),
    "a renamed topic that leaves the target": Evasion(
        [{**project_with(prod=make_target(overlays="o.yaml", include=["**/orders"])), "o.yaml": STRICT}], RENAMED
    ),
    "a renamed topic in a lenient namespace": Evasion(
        [make_project(severities={"shop/new": OFF})],
        {**BREAK, "topics/orders.yaml": write_declaration("shop/new/orders", more="renamed_from: shop/sales/orders\n")},
    ),
    "a nearer project file": Evasion(
        [{"schemactl.yaml": "version: 1\nroots: [sub/topics]\n", "sub/topics/o.yaml": write_declaration(), "sub/topics/orders.avsc": record("id")}],
        {
            "sub/topics/orders.avsc": record("id", "note"),
            "sub/schemactl.yaml": "version: 1\nroots: [x]\n",
            "sub/x/a.yaml": "topic: a/b/c\n",
        },
        folder="sub",
    ),
    "a topic that moves to a new project": Evasion(
        [make_project()],
        {
            "topics/orders.yaml": None,
            "topics/orders.avsc": None,
            "sub/schemactl.yaml": yaml.safe_dump({"version": 1, "roots": ["topics"], "defaults": {"schema_compatibility_strategy": "ALWAYS_COMPATIBLE"}}),
            "sub/topics/orders.yaml": write_declaration(),
            "sub/topics/orders.avsc": record("id", "note"),
        },
        folder="sub",
    ),
    "a topic that moves to a new project, checked where it was": Evasion(
        [make_project()],
        {
            "topics/orders.yaml": None,
            "topics/orders.avsc": None,
            "sub/schemactl.yaml": yaml.safe_dump({"version": 1, "roots": ["topics"], "severities": OFF}),
            "sub/topics/orders.yaml": write_declaration(),
            "sub/topics/orders.avsc": record("id", "note"),
        },
    ),
    "a topic that moves to a new project under another name": Evasion(
        [make_project()],
        {
            "topics/orders.yaml": None,
            "topics/orders.avsc": None,
            "sub/schemactl.yaml": "version: 1\nroots: [topics]\n",
            "sub/topics/orders.yaml": write_declaration("shop/sales/sales", more="renamed_from: shop/sales/orders\n"),
            "sub/topics/orders.avsc": record("id", "note"),
        },
    ),
    "the project file moves, with lenient settings": Evasion(
        [{"schemactl.yaml": "version: 1\nroots: [sub/topics]\n", "sub/topics/o.yaml": write_declaration(), "sub/topics/orders.avsc": record("id")}],
        {
            "schemactl.yaml": None,
            "sub/topics/orders.avsc": record("id", "note"),
            "sub/schemactl.yaml": yaml.safe_dump({"version": 1, "roots": ["topics"], "severities": OFF}),
        },
        folder="sub",
    ),
    "a break that was approved once, and reverted": Evasion(
        [make_project(), BREAK, {"topics/orders.avsc": record("id")}], BREAK
    ),
    "a break that was approved once, reverted, and has a new doc": Evasion(
        [make_project(), BREAK, {"topics/orders.avsc": record("id")}],
        {"topics/orders.avsc": record("id", "note").replace('"name": "Order"', '"name": "Order", "doc": "new"')},
    ),
    "a .proto that is declared no longer": Evasion(
        [{**make_project(), **CLICKS}],
        {"topics/p.proto": PROTO % "int32", "topics/p.yaml": "topic: shop/sales/p\nschema: {type: PROTOBUF, definition: p.avsc}\n"},
    ),
    "another .proto": Evasion(
        [{**make_project(), **CLICKS}],
        {
            "topics/p.proto": PROTO % "int32",
            "topics/q.proto": PROTO % "string",
            "topics/p.yaml": CLICKS["topics/p.yaml"].replace("p.proto", "q.proto"),
        },
    ),
}  # fmt: skip


IN_ALL_SETTINGS = (
    *("a new target with a relaxed overlay", "a target under another name, and a relaxed overlay", "a relaxed overlay"),
    *("no target", "a target that excludes the topic", "a forged numbers file", "a tip that cannot be read"),
    *("a renamed topic with an overlay of its own", "a break that was approved once, and reverted", "another .proto"),
)
"""The evasions that run in the hook, with `check --base`, in a merge queue, and in a detached checkout in CI."""


@dataclass(frozen=True)
class Estate:
    """A repository with an approved history."""

    scratch: Scratch
    marks: Sequence[int] = field(default_factory=list)

    def check(self, change: Files, setting: str, begins: int = -1, folder: str = ".") -> dict[str, Any]:
        """Return the report of a check of `change` in a setting."""
        scratch, start = self.scratch, self.marks[begins]
        arguments = ["--base", "main"]
        if setting == "hook":
            scratch.git("checkout", "-q", "-B", "work", scratch.id(start))
            scratch.write(change)
            scratch.git("add", "-A")
            arguments = ["--staged"]
        elif setting == "base":
            scratch.commit(change, branch="work", start=start)
            scratch.git("checkout", "-q", "work")
        else:
            work = scratch.commit(change, branch="work", start=start)
            if setting == "queue":
                scratch.commit(change, branch="queue", start=self.marks[-1], merge=work)
            scratch.git("checkout", "-q", "--detach", "queue" if setting == "queue" else "work")
        printed = schemactl(scratch.path / folder, "check", "--format", "json", *arguments, code=(0, 100))
        report: dict[str, Any] = json.loads(printed.out)
        assert bool(list_unwaived_errors(report)) == (printed.code == 100)
        return report


def list_unwaived_errors(report: dict[str, Any]) -> set[str]:
    """Return the rules of the errors without a waiver."""
    return {
        finding["rule"] for finding in report["findings"] if finding["severity"] == "error" and not finding["waiver"]
    }


def approve(path: Path, commits: Sequence[Files]) -> Estate:
    """Approve each of `commits` in a repository, the first with a topic unless it has one."""
    scratch = Scratch(path)
    own = any(name.endswith("sub/topics/orders.avsc") for name in commits[0])
    marks = [scratch.commit({**({} if own else TOPIC), **commits[0]})]
    marks += [scratch.commit(files) for files in commits[1:]]
    return Estate(scratch, marks)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        (name, setting)
        for name in EVASIONS
        for setting in (("hook", "base", "queue", "detached") if name in IN_ALL_SETTINGS else ("base",))
    ],
)
def test_a_break_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, setting: str) -> None:
    if setting == "detached":
        monkeypatch.setenv("CI", "true")
    evasion = EVASIONS[name]
    estate = approve(tmp_path / "r", evasion.approved)
    report = estate.check(evasion.change, setting, evasion.begins, evasion.folder)
    assert list_unwaived_errors(report) & evasion.rules, report["findings"]


LEGITIMATE: Mapping[str, Evasion] = {
    "a new topic": Evasion([PROD], {"topics/new.yaml": "topic: shop/sales/new\nschema: {type: STRING}\n"}),
    "a new topic with its overlay": Evasion(
        [PROD],
        {
            "topics/new.yaml": "topic: shop/sales/new\npartitions: 2\nschema: {type: STRING}\n",
            "o.yaml": f"{STRICT}---\ntopic: shop/sales/new\nschema_compatibility_strategy: BACKWARD\npartitions: 4\n",
        },
    ),
    "a new tenant with its entry": Evasion(
        [make_project(targets={"prod": make_target(tenants={"shop": "shop-prod"})})],
        {
            **make_project(targets={"prod": make_target(tenants={"shop": "shop-prod", "web": "web-prod"})}),
            "topics/new.yaml": "namespace: web/clicks\nis_allow_auto_update_schema: false\n---\ntopic: web/clicks/new\nschema: {type: STRING}\n",
        },
    ),
    "a deleted topic with its overlay": Evasion(
        [{**PROD, "o.yaml": f"{STRICT}---\ntopic: shop/sales/orders\npartitions: 4\n"}],
        {"topics/orders.yaml": None, "topics/orders.avsc": None, "o.yaml": STRICT},
    ),
    "a renamed topic with its overlay": Evasion(
        [{**PROD, "o.yaml": f"{STRICT}---\ntopic: shop/sales/orders\npartitions: 4\n"}],
        {
            "topics/orders.yaml": write_declaration("shop/sales/sales", more="renamed_from: shop/sales/orders\n"),
            "o.yaml": f"{STRICT}---\ntopic: shop/sales/sales\npartitions: 4\n",
        },
    ),
    "a new root": Evasion(
        [make_project()],
        {**make_project(roots=["topics", "more"]), "more/new.yaml": "topic: shop/sales/new\nschema: {type: STRING}\n"},
    ),
    "a branch that began before a root": Evasion(
        [make_project(), {**make_project(roots=["topics", "more"]), "more/new.yaml": "topic: shop/sales/new\nschema: {type: STRING}\n"}],
        {"topics/orders.avsc": record("id", note=0)},
        begins=0,
    ),
    "a new target with its overlay and topics": Evasion(
        [make_project()],
        {
            **make_project(targets={"x": make_target(overlays="x.yaml", include=["**/new"])}),
            "topics/new.yaml": "topic: shop/sales/new\nschema: {type: STRING}\n",
            "x.yaml": "topic: shop/sales/new\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n",
        },
    ),
    "recorded drift": Evasion(
        [make_project(targets={"prod": make_target()})],
        {"numbers/prod.yaml": FORGED, "numbers/forged.avsc": record("id", other=0)},
    ),
    "a stricter overlay": Evasion([PROD], {"o.yaml": STRICT.replace("FULL", "FULL_TRANSITIVE")}),
    "stricter severities": Evasion([make_project()], make_project(severities={"NOT_STORED": "error"})),
    "settings that became stricter meanwhile": Evasion(
        [make_project(), make_project(defaults={"schema_compatibility_strategy": "FULL_TRANSITIVE"})],
        {"topics/orders.avsc": record("id", note=0)},
        begins=0,
    ),
    "a project file that both sides changed": Evasion(
        [make_project(), make_project(severities={"NOT_STORED": "error"})], make_project(names={"fields": "camelCase"}), begins=0
    ),
    "the repair of a project file": Evasion([make_project(), make_project(unknown=1)], make_project()),
    "the removal of a target": Evasion([PROD], {**project_with(), "o.yaml": None}),
}  # fmt: skip


@pytest.mark.parametrize("setting", ["hook", "base", "queue"])
@pytest.mark.parametrize("name", LEGITIMATE)
def test_a_legitimate_change_passes(tmp_path: Path, name: str, setting: str) -> None:
    change = LEGITIMATE[name]
    report = approve(tmp_path / "r", change.approved).check(change.change, setting, change.begins)
    assert list_unwaived_errors(report) == set()
    touched = [path for path in change.change if path in ("schemactl.yaml", "o.yaml", "numbers/prod.yaml")]
    named = {finding["file"] for finding in report["findings"] if finding["rule"] == "GATE_CHANGED"}
    assert named >= {*touched}


def test_no_readable_project_file_on_the_approved_line_is_an_error(tmp_path: Path) -> None:
    estate = approve(tmp_path / "r", [make_project(unknown=1)])
    estate.scratch.commit({**BREAK, **make_project(severities=OFF)}, branch="work", start=1)
    estate.scratch.git("checkout", "-q", "work")
    printed = schemactl(estate.scratch, "check", "--base", "main", code=1)
    assert "no commit of the approved history has a project file that can be read" in printed.err


def test_a_project_that_is_not_approved_yet_is_judged_by_itself_and_a_note_states_this(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({"README.md": "about"})
    scratch.commit({**make_project(severities=OFF), **TOPIC}, branch="work", start=1)
    scratch.git("checkout", "-q", "work")
    report = run_json(scratch, "check", "--base", "main")
    assert report["notes"] == ["schemactl.yaml has not been approved yet, so its own settings judge"]


EMPTIED = {
    "the last accepted version": (
        {"numbers/local.yaml": FORGED, "topics/forged.avsc": record("id")},
        "numbers/local.yaml",
    ),
    "the last setting of an overlay": ({"o.yaml": STRICT}, "o.yaml"),
}


@pytest.mark.parametrize("text", ["", "# none\n"])
@pytest.mark.parametrize(("files", "path"), EMPTIED.values(), ids=EMPTIED)
def test_a_judging_file_that_loses_its_last_entry_is_reported_at_its_start(
    tmp_path: Path, files: Files, path: str, text: str
) -> None:
    scratch = Scratch(tmp_path / "r")
    scratch.commit({**project_with(local=make_target(overlays="o.yaml")), "o.yaml": "", **TOPIC, **files})
    scratch.flush()
    (scratch.path / path).write_text(text)
    report = run_json(scratch, "check", code=(0, 100))
    places = [
        (finding["file"], finding["line"], finding["column"])
        for finding in report["findings"]
        if finding["rule"] == "GATE_CHANGED"
    ]
    assert places == [(path, 1, 1)]


def test_a_merge_of_an_octopus_is_stepped_through(tmp_path: Path) -> None:
    estate = approve(tmp_path / "r", [make_project()])
    scratch = estate.scratch
    one = scratch.commit(BREAK, "the break", branch="one", start=1)
    scratch.commit({"topics/orders.avsc": record("id")}, "its revert", branch="one", start=one)
    for name in ("two", "work"):
        scratch.commit({f"{name}.md": name}, branch=name, start=1)
    scratch.git("checkout", "-q", "work")
    scratch.configure_author()
    scratch.git("merge", "-q", "--no-edit", "one", "two")
    assert len(scratch.git("rev-parse", "HEAD^@").split()) == 3
    report = run_json(scratch, "check", "--base", "main")
    steps = [finding["commit"]["subject"] for finding in report["findings"] if finding["rule"] == "STEP_REFUSED"]
    assert steps == ["the break"]


# Random changes of judging files

STRATEGIES = st.sampled_from(["ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL", "FULL_TRANSITIVE", "UNDEFINED"])
OVERLAYS = st.one_of(
    STRATEGIES.map(lambda name: f"namespace: shop/sales\nschema_compatibility_strategy: {name}\n"),
    STRATEGIES.map(lambda name: f"topic: shop/sales/orders\nschema_compatibility_strategy: {name}\n"),
    st.booleans().map(lambda value: f"namespace: shop/sales\nschema_validation_enforced: {str(value).lower()}\n"),
)
TARGETS = st.fixed_dictionaries(
    {},
    optional={
        "overlays": st.sampled_from(["o.yaml", ["p.yaml"], ["o.yaml", "p.yaml"]]),
        "include": st.sampled_from([["**/orders"], ["**/other"]]),
        "exclude": st.sampled_from([["**/orders"], ["**/other"]]),
        "pulsar": st.sampled_from(["4.0", "4.2", "5.0"]),
        "numbers": st.sampled_from(["numbers/prod.yaml", "n.yaml"]),
    },
).map(lambda settings: make_target(**settings))
PROJECTS = st.fixed_dictionaries(
    {},
    optional={
        "severities": st.dictionaries(st.sampled_from([*OFF]), st.sampled_from(["off", "warning", "error"])).flatmap(
            lambda rules: st.sampled_from([rules, {"shop/sales": rules}] if rules else [{}])
        ),
        "defaults": STRATEGIES.filter(lambda name: name != "UNDEFINED").map(
            lambda name: {"schema_compatibility_strategy": name}
        ),
        "roots": st.sampled_from([["topics"], ["topics", "more"], ["more"], ["."]]),
        "previous_roots": st.just(["topics"]),
        "approved": st.sampled_from(["work", "main", "HEAD"]),
        "waivers": st.just("w.yaml"),
        "protobuf": st.just({"rules": "WIRE"}),
        "targets": st.dictionaries(st.sampled_from(["prod", "Prod", "x"]), TARGETS, max_size=2),
    },
)
OTHER = {"topics/other.yaml": "topic: shop/sales/other\nschema: {type: STRING}\n", "more/about.md": "about"}


@REPOSITORIES
@given(settings=PROJECTS, overlays=st.tuples(OVERLAYS, OVERLAYS), numbers=st.sampled_from([FORGED, DELETED, None]))
def test_random_judging_files_do_not_hide_a_break(
    settings: dict[str, Any], overlays: tuple[str, str], numbers: str | None
) -> None:
    change: dict[str, str | None] = {**BREAK, **make_project(**settings), "o.yaml": overlays[0], "p.yaml": overlays[1]}
    if numbers:
        change |= {"numbers/prod.yaml": numbers, "n.yaml": numbers}
        change |= {"numbers/forged.avsc": record("id", "note"), "forged.avsc": record("id", "note")}
    with TemporaryDirectory() as folder:
        estate = approve(Path(folder, "r"), [{**PROD, **OTHER}])
        scratch = estate.scratch
        scratch.commit(change, branch="work", start=estate.marks[-1])
        scratch.git("checkout", "-q", "work")
        printed = schemactl(scratch, "check", "--base", "main", "--format", "json", code=(0, 1, 100))
    # Settings that contradict each other are an error as well.
    assert printed.code != 0, printed.out
    if printed.code == 100:
        assert list_unwaived_errors(json.loads(printed.out)) & {READER, "BROKER_INCOMPATIBLE", "STRATEGY_RELAXED"}


@REPOSITORIES
@given(names=st.lists(st.sampled_from(sorted(LEGITIMATE)), min_size=1, max_size=3, unique=True))
def test_legitimate_changes_pass_one_after_the_other(names: list[str]) -> None:
    for name in names:
        change = LEGITIMATE[name]
        with TemporaryDirectory() as folder:
            estate = approve(Path(folder, "r"), [*change.approved[:1], {"README.md": "about"}, *change.approved[1:]])
            begins = min(0, change.begins)
            assert list_unwaived_errors(estate.check({**change.change, "more.md": "more"}, "base", begins)) == set()
