"""What was judged once is not judged again, and whoever reads the files cannot tell the difference."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from scratch import Files, Scratch, declared, record

from schemactl import declare, history
from schemactl.declare import Declared, catalog
from schemactl.errors import DeclarationError, InvalidSchema
from schemactl.formats import problems
from schemactl.model import Project, Release, SchemaInfo, TopicName

PROJECT = Project(roots=("topics",))
USES_MONEY = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'
BAD_DEFAULT = (
    '{"type": "record", "name": "Refund", "fields": [{"name": "id", "type": "int", "default": "none"}]}'
)
INLINE = "topic: shop/sales/{}\nschema:\n  type: {}\n  definition: {}\n"
KEY_VALUE = """\
topic: shop/sales/pairs
schema: {type: KEY_VALUE, key: {type: STRING}, value: {type: AVRO, definition: refunds.avsc}}
"""
ORDERS = declared(more="  references: [../money.avsc]\n")
REST = (
    declared("shop/sales/refunds", "refunds.avsc")
    + "---\n"
    + INLINE.format("clicks", "JSON", record("id", name="Click"))
    + "---\n"
    + INLINE.format("views", "AVRO", "{type: record, name: View, fields: []}")
    + "---\n"
    + KEY_VALUE
)
FILES: Files = {
    "money.avsc": record("amount", name="Money"),
    "topics/orders.yaml": ORDERS,
    "topics/orders.avsc": USES_MONEY,
    "topics/rest.yaml": REST,
    "topics/refunds.avsc": record("id", name="Refund"),
}


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """Definitions in files, with references, in the declaration as text and as YAML, and as halves."""
    made = Scratch(tmp_path / "r")
    made.commit(FILES)
    made.flush()
    return made


class Reading(NamedTuple):
    """What the files declare, as told with and without what was known; the definitions that were judged for the first."""

    told: object
    plain: object
    judged: list[bytes]


def read(scratch: Scratch, *, staged: bool = False, project: Project = PROJECT) -> Reading:
    """A reading that keeps what it has found sound."""
    judged: list[bytes] = []

    def noting(info: SchemaInfo, release: Release) -> Iterator[InvalidSchema]:
        judged.append(info.schema)
        return problems(info, release)

    with history.Repository.open(scratch.path) as repository:
        files: history.IndexFiles | history.HashedFiles
        if staged:
            files = history.IndexFiles(repository)
        else:
            worktree = declare.WorktreeFiles(str(scratch.path))
            files = history.HashedFiles(worktree, repository.object_format)
        soundness = history.Soundness(repository, project, files)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(catalog, "format_problems", noting)
            found = declare.read(files, project, soundness=soundness)
        soundness.keep()
        return Reading(told(found), told(declare.read(files, project)), judged)


def told(found: Declared) -> object:
    """All that can be seen of it."""
    topics = {
        name: (topic, topic.schema and (topic.schema.source, topic.schema.locate("/fields/0/type")))
        for name, topic in found.catalog.topics.items()
    }
    return found.catalog.namespaces, topics, found.problems, found.dependencies, found.findings


def write(scratch: Scratch, path: str, text: str | bytes | None) -> None:
    """The file holds `text`, in the working tree and in the index."""
    scratch.write({path: text})
    scratch.git("add", "--all")


@pytest.mark.parametrize("staged", [False, True], ids=["working tree", "index"])
def test_a_definition_is_judged_once(scratch: Scratch, *, staged: bool) -> None:
    first, second = read(scratch, staged=staged), read(scratch, staged=staged)
    assert len(first.judged) == 5
    # Of the languages only Avro is known by its files alone.
    assert len(second.judged) == 1
    assert first.told == second.told == second.plain


def test_what_is_staged_is_known_from_the_working_tree(scratch: Scratch) -> None:
    read(scratch)
    assert len(read(scratch, staged=True).judged) == 1


@pytest.mark.parametrize(
    ("path", "text", "judged"),
    [
        ("topics/refunds.avsc", record("id", "reason", name="Refund"), 2),
        ("topics/refunds.avsc", BAD_DEFAULT, 2),
        ("topics/refunds.avsc", "{", 0),
        ("topics/refunds.avsc", None, 0),
        ("money.avsc", record("amount", "unit", name="Money"), 2),
        ("money.avsc", "{}", 2),
        ("money.avsc", record("amount", name="Coin"), 2),
        ("topics/orders.avsc", record("id", name="Order"), 2),
        ("topics/orders.yaml", declared(), 2),
        ("topics/again.yaml", declared(), 2),
    ],
    ids=[
        *("changed", "bad default", "no JSON", "gone", "reference changed", "reference broken"),
        *("reference misses the type", "reference unused", "no reference", "declared twice"),
    ],
)
@pytest.mark.parametrize("staged", [False, True], ids=["working tree", "index"])
def test_a_change_of_any_file_it_is_made_of_is_judged(
    scratch: Scratch, path: str, text: str | None, judged: int, *, staged: bool
) -> None:
    before = read(scratch, staged=staged)
    write(scratch, path, text)
    changed = read(scratch, staged=staged)
    assert changed.told == changed.plain
    assert changed.told != before.told
    assert len(changed.judged) == judged
    again = read(scratch, staged=staged)
    assert again.told == changed.told


def test_what_is_not_sound_is_judged_every_time(scratch: Scratch) -> None:
    write(scratch, "topics/refunds.avsc", BAD_DEFAULT)
    write(scratch, "topics/orders.avsc", record("id", name="Order"))
    for _ in range(3):
        found = read(scratch)
        assert found.told == found.plain
    assert len(found.judged) == 3


def test_another_release_judges_anew(scratch: Scratch) -> None:
    read(scratch)
    assert len(read(scratch, project=replace(PROJECT, pulsar="4.2", release=Release.R4_2)).judged) == 5


@pytest.mark.parametrize(
    "kept", [b"", b"x" * 33, b"\0" * 4000, None], ids=["empty", "odd", "zeros", "folder"]
)
def test_what_is_kept_may_be_damaged_or_in_the_way(scratch: Scratch, kept: bytes | None) -> None:
    first = read(scratch)
    [path] = (scratch.path / ".git" / "schemactl").glob("soundness-*")
    path.unlink()
    if kept is None:
        path.mkdir()
    else:
        path.write_bytes(kept)
    found = read(scratch)
    assert found.told == first.told
    assert len(found.judged) == 5
    assert not list(path.parent.glob("soundness-*.*"))


def test_a_definition_that_changes_while_it_is_read_is_an_error_of_its_own(scratch: Scratch) -> None:
    read(scratch)
    with history.Repository.open(scratch.path) as repository:
        files = history.HashedFiles(declare.WorktreeFiles(str(scratch.path)), repository.object_format)
        soundness = history.Soundness(repository, PROJECT, files)
        found = declare.read(files, PROJECT, soundness=soundness)
        scratch.write({"topics/orders.avsc": "{"})
        schema = found.catalog.topics[TopicName.parse("shop/sales/orders")].schema
        assert schema
        with pytest.raises(DeclarationError, match=r"orders\.avsc"):
            _ = schema.schema


def test_any_sequence_of_edits_is_told_as_without_what_is_known(scratch: Scratch) -> None:
    contents: dict[str, list[str | bytes | None]] = {
        "money.avsc": [record("amount", name="Money"), record("sum", name="Money"), record("x", name="Coin")],
        "topics/orders.avsc": [USES_MONEY, record("id", name="Order"), BAD_DEFAULT, None],
        "topics/orders.yaml": [
            FILES["topics/orders.yaml"],
            declared(),
            "topic: shop/sales/orders\n",
            "a: b\n",
        ],
        "topics/refunds.avsc": [record("id", name="Refund"), BAD_DEFAULT, "[", None],
        "topics/rest.yaml": [REST, declared("shop/sales/refunds", "refunds.avsc")],
    }
    edits = random.Random(7)  # noqa: S311  no secret, but always the same
    for _ in range(40):
        path = edits.choice(list(contents))
        write(scratch, path, edits.choice(contents[path]))
        found = read(scratch, staged=edits.random() < 0.5)
        assert found.told == found.plain
