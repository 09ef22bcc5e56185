"""A numbers file, read from the approved history and from files in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from estate import ORDERS, PROJECT, Estate, make_order_info
from scratch import record

from schemactl.core.errors import DeclarationError, Source
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.project import Project, Target
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.declare.files import Kind
from schemactl.declare.numbers_file import read_numbers
from schemactl.declare.numbers_writer import numbers_text
from schemactl.declare.target_numbers import Acceptance, AcceptanceReason, NumberEntry, TargetNumbers
from schemactl.formats import identity, key_value, spec
from schemactl.history.approved_history import load_project, read_history
from schemactl.history.git import Repository
from schemactl.history.target_history import find_topics_with_other_numbers, read_numbers_of_target

NUMBERS = """\
persistent://shop/sales/orders:
  4: {foreign: foreign/orders-4.avsc, type: AVRO, properties: {by: hand}, reason: "uploaded by hand", accepted: 2026-11-22}
  5: {git: 4}
  6: {deleted: true, reason: cleaned up, accepted: 2026-11-22}
"""
REASON = "reason: x, accepted: 2026-11-22"
PRINT = f"fingerprint: 'sha256:{'0' * 64}'"
PROD = Target("prod", "sqlite:prod.db")


class InMemory:
    """Files by their paths."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def paths(self) -> Iterable[str]:
        return self.files

    def below(self, folder: str) -> Iterable[str]:
        return [path for path in self.files if path.startswith(f"{folder}/")]

    def read(self, path: str) -> bytes:
        return self.files[path]

    def kind(self, path: str) -> Kind:
        return "file" if path in self.files else "missing"


def read(text: str, **others: bytes) -> TargetNumbers | None:
    files = {"numbers/prod.yaml": text.encode(), "numbers/foreign/orders-4.avsc": make_order_info("id").schema}
    return read_numbers(InMemory({**files, **others}), Project(), PROD)


def test_every_part_is_read_with_its_place() -> None:
    numbers = read(NUMBERS)
    assert numbers
    assert (numbers.target, numbers.path) == ("prod", "numbers/prod.yaml")
    entries = numbers.topics[ORDERS].entries
    assert entries == {
        4: NumberEntry(
            4,
            foreign=SchemaInfo(SchemaType.AVRO, make_order_info("id").schema, {"by": "hand"}),
            reason="uploaded by hand",
            accepted=date(2026, 11, 22),
            path="numbers/foreign/orders-4.avsc",
        ),
        5: NumberEntry(5, git=4),
        6: NumberEntry(6, deleted=True, reason="cleaned up", accepted=date(2026, 11, 22)),
    }
    assert entries[5].source == Source("numbers/prod.yaml", 3, 3)


def test_what_is_accepted_besides_numbers_is_read_and_written_alike() -> None:
    text = f"""\
a/b: {{unmanaged: true, reason: of team B, accepted: 2026-11-22, until: 2027-01-31}}
a/b/c: {{1: {{git: 0}}, policies: {{schema_validation_enforced: true, schema_compatibility_strategy: FULL}}, owner: ada, {REASON}}}
a/b/d: {{undeclarable: NONE, {PRINT}, {REASON}}}
"""
    numbers = read(text)
    assert numbers
    c, d = TopicName("a", "b", "c"), TopicName("a", "b", "d")
    assert {*numbers.topics} == {c}
    why = AcceptanceReason("x", "", date(2026, 11, 22))
    assert numbers.accepted == {
        NamespaceName("a", "b"): Acceptance(
            unmanaged=True, decision=AcceptanceReason("of team B", "", date(2026, 11, 22), date(2027, 1, 31))
        ),
        c: Acceptance(
            policies=Policies(CompatibilityStrategy.FULL, schema_validation_enforced=True),
            decision=replace(why, owner="ada"),
        ),
        d: Acceptance(undeclarable="NONE", schemas_digest=f"sha256:{'0' * 64}", decision=why),
    }
    assert read(numbers_text(numbers)) == numbers


@pytest.mark.parametrize("text", ["", "# nothing differs\n"])
def test_an_empty_file_records_nothing(text: str) -> None:
    numbers = read(text)
    assert numbers
    assert not numbers.topics


def test_without_the_file_there_is_no_record() -> None:
    assert read_numbers(InMemory({}), Project(), PROD) is None
    assert read_numbers(InMemory({}), Project(), Target("../out", "sqlite:x.db")) is None


@pytest.mark.parametrize(
    ("text", "place", "what", "fix"),
    [
        ("[1]", "1:1", "expected topics as a mapping, found a list", ""),
        ("orders: {0: {git: 0}}", "1:1", "'orders' is not a topic", "write persistent://"),
        ("topic://a/b: {unmanaged: true}", "1:1", "'topic://a/b' is not a topic", "write persistent://"),
        ("a/b/c: {0: {git: 0}}\npersistent://a/b/c: {}", "2:1", "persistent://a/b/c is recorded twice", "under one"),
        ("a/b/c: {0: {git: 0}}\na/b/c: {}", "2:1", "the key `a/b/c` is repeated", "keep one"),
        ("a/b/c: 3", "1:8", "expected version numbers as a mapping, found the number 3", ""),
        ("a/b/c: {-1: {git: 0}}", "1:9", "found `-1`", "from 0 to"),
        ("a/b/c: {v1: {git: 0}}", "1:9", "found `v1`", "from 0 to"),
        ("a/b/c: {100001: {git: 0}}", "1:9", "found `100001`", "from 0 to 100000"),
        ("a/b/c: {1: {git: 0}, 1: {git: 1}}", "1:22", "the key `1` is repeated", "keep one"),
        ("a/b/c: {1: 0}", "1:12", "expected the meaning of the number as a mapping", ""),
        ("a/b/c: {1: {}}", "1:9", "the meaning of number 1 is missing", "write {git: 3}"),
        ("a/b/c: {1: {gti: 0}}", "1:13", "unknown key `gti`", "write `git`"),
        ("a/b/c: {1: {git: -1}}", "1:18", "expected the number of one of Git's versions", ""),
        ("a/b/c: {1: {git: true}}", "1:18", "expected the number of one of Git's versions, found true", ""),
        ("a/b/c: {1: {deleted: false}}", "1:22", "expected true, found false", ""),
        ("a/b/c: {1: {git: 0, accepted: 2026-02-30}}", "1:31", "expected a day", ""),
        ("a/b/c: {1: {git: 0, reason: ''}}", "1:29", "expected the reason", ""),
        ("a/b/c: {1: {git: 0, type: AVRO}}", "1:27", "`type` belongs to a `foreign` definition", "remove it"),
        ("a/b/c: {1: {foreign: f.avsc}}", "1:22", "needs its `type`", "type: AVRO"),
        ("a/b/c: {1: {foreign: f.avsc, type: AVRO, git: 0}}", "1:22", "exclude each other", "keep one"),
        ("a/b/c: {1: {foreign: f.avsc, type: AVOR}}", "1:36", "expected a schema type", ""),
        ("a/b/c: {1: {foreign: f.avsc, type: AVRO}}", "1:22", "there is no file `numbers/f.avsc`", "--accept"),
        ("a/b/c: {1: {foreign: ../f.avsc, type: AVRO}}", "1:22", "is not in the numbers file's folder", "foreign/"),
        ("a/b/c: {1: {foreign: ../../f, type: AVRO}}", "1:22", "leads out of the repository", "foreign/"),
        ("a/b/c: {1: {foreign: /etc/f, type: AVRO}}", "1:22", "is not relative", "foreign/"),
        ("a/b: {0: {git: 0}}", "1:7", "a namespace has no `0`", "{unmanaged: true}"),
        ("a/b/c: {unmanged: true}", "1:9", "found `unmanged`", "unmanaged, undeclarable, policies"),
        ("a/b: {unmanaged: yes}", "1:18", "expected true, found the text `yes`", ""),
        ("a/b/c: {undeclarable: AVRO}", "1:23", "a schema type that no file can declare", ""),
        ("a/b/c: {policies: {color: red}}", "1:19", "expected values by their policies", ""),
        ("a/b/c: {policies: {schema_validation_enforced: FULL}}", "1:19", "expected values by", ""),
        ("a/b/c: {policies: {schema_compatibility_strategy: FUL}}", "1:19", "expected values by", ""),
        ("a/b/c: {fingerprint: 'sha256:1'}", "1:22", "expected a fingerprint", ""),
        ("a/b/c: {reason: x, accepted: 2026-11-22}", "1:1", "the accepted state of", "unmanaged"),
        (f"a/b/c: {{unmanaged: true, {REASON}}}", "1:1", "a `fingerprint` belongs to", "--accept` writes it"),
        (f"a/b: {{unmanaged: true, {PRINT}, {REASON}}}", "1:1", "a `fingerprint` belongs to", "remove it"),
        (f"a/b: {{undeclarable: NONE, {REASON}}}", "1:21", "`undeclarable` is for a topic", "keep one"),
        (
            f"a/b/c: {{unmanaged: true, undeclarable: NONE, {PRINT}, {REASON}}}",
            "1:40",
            "instead of `unmanaged`",
            "keep one",
        ),
        ("a/b: {unmanaged: true, accepted: 2026-11-22}", "1:1", "needs its `reason`", "add reason: ..."),
        ("a/b: {unmanaged: true, reason: x}", "1:1", "needs its `accepted`", "add accepted: ..."),
        (f"a/b: {{unmanaged: true, {REASON}, until: soon}}", "1:64", "expected a day", ""),
        ("a/b/c: {0: {git: 0}}\n---\na/b/c: {}", "3:1", "a numbers file has one document", "remove"),
    ],
)
def test_a_problem_has_its_place_and_what_to_write(text: str, place: str, what: str, fix: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        read(text)
    [problem] = raised.value.problems
    assert str(problem.source) == f"numbers/prod.yaml:{place}"
    assert what in problem.message
    assert fix in problem.fix


def test_all_problems_are_told_together() -> None:
    with pytest.raises(DeclarationError) as raised:
        read("a/b/c: {1: {gti: 0}, 2: {}}\nd: {}\n")
    assert len(raised.value.problems) == 3


def test_a_pair_is_kept_as_the_admin_apis_text_or_as_bytes() -> None:
    pair = key_value.join(key=SchemaInfo(SchemaType.STRING), value=make_order_info("id"), encoding="INLINE")
    text = f"a/b/c: {{1: {{foreign: kv.SUFFIX, type: KEY_VALUE, properties: {dict(pair.properties)}}}}}"
    for suffix, data in (("json", str(spec(pair).to_text(pair)).encode()), ("bin", pair.schema)):
        numbers = read(text.replace("SUFFIX", suffix), **{f"numbers/kv.{suffix}": data})
        assert numbers
        foreign = numbers.topics[TopicName("a", "b", "c")].entries[1].foreign
        assert foreign
        if suffix == "bin":
            assert foreign == pair
        assert identity(foreign) == identity(pair)


def test_it_is_the_approved_file_that_counts(tmp_path: Path) -> None:
    project_text = PROJECT + '  prod: {registry: "sqlite:p.db", numbers: ops/prod.yaml}\n'
    estate = Estate(tmp_path / "shop", project=project_text)
    estate.commit_orders("id", note=0)
    estate.scratch.commit(
        {
            "ops/prod.yaml": "shop/sales/orders: {1: {foreign: foreign/o.avsc, type: AVRO}, 2: {git: 1}}\n",
            "ops/foreign/o.avsc": record("id", "theirs"),
            "numbers/local.yaml": "shop/sales/orders: {1: {git: 1}}\n",
        }
    )
    estate.scratch.flush()
    (estate.scratch.path / "ops").mkdir(exist_ok=True)
    (estate.scratch.path / "ops/prod.yaml").write_text("this is not approved")
    project, _ = load_project(str(estate.scratch.path))
    with Repository.open(str(estate.scratch.path)) as repository:
        approved = read_history(repository, project)
        numbers = read_numbers_of_target(project.targets["prod"], project, repository, approved)
        elsewhere = find_topics_with_other_numbers([ORDERS, TopicName("a", "b", "c")], [numbers, None])
        before = read_history(repository, project, "main~1")
        assert read_numbers_of_target(project.targets["prod"], project, repository, before) is None
    assert numbers
    assert [entry.git for entry in numbers.topics[ORDERS].entries.values()] == [None, 1]
    assert elsewhere == {ORDERS: ("prod",)}
