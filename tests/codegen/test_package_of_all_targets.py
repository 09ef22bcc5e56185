"""One package has the version numbers of all targets."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estate import Estate
from imported_package import import_package
from scratch import record

from schemactl.codec import Codec, Definition, Numbers, UnknownTarget, UnknownVersion, Unreadable, Version
from schemactl.generated import GeneratedTopic, SchemaFile

PROJECT = """\
version: 1
targets:
  dev: {registry: "sqlite:dev.db"}
  dr: {registry: "sqlite:dr.db"}
  prod: {registry: "sqlite:prod.db"}
generate: {package: numbered_shop}
"""
FOREIGN = record("id", foreign=0)
OWN = record("id", own=0)
PROD = """\
persistent://shop/sales/orders:
  1: {foreign: foreign/orders-1.avsc, type: AVRO, reason: "uploaded by hand", accepted: 2026-11-22}
  2: {git: 1}
"""
DR = """\
persistent://shop/sales/orders:
  0: {git: 0, deleted: true}
  1: {deleted: true, reason: "cleaned up", accepted: 2026-11-22}
  2: {git: 0}
  3: {git: 1}
"""
RECORDS = {"numbers/prod.yaml": PROD, "numbers/foreign/orders-1.avsc": FOREIGN, "numbers/dr.yaml": DR}
REASON_OF_1 = (
    "schema version 1 means different content on two targets (Git's version 1 on dev; unreadable on dr; a foreign version on prod): "
    "choose the target that the messages are from, with for_target or SCHEMACTL_TARGET"
)


def make_payload(text: str, **value: Any) -> bytes:
    """Encode a message as a producer with this schema does."""
    encoded = Codec([Version(0, Definition("AVRO", text))]).encode_one(value)
    assert encoded is not None
    return encoded


BY_0 = make_payload(record("id"), id="a")
BY_FOREIGN = make_payload(FOREIGN, id="b", foreign=7777)
BY_OWN = make_payload(OWN, id="c", own=99)


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop", project=PROJECT)
    estate.commit_orders("id", own=0)
    estate.run("generate", "--out", "without_records")
    estate.scratch.commit(RECORDS, "Record numbers")
    estate.run("generate", "--out", "out")
    return estate


@contextmanager
def orders_of(estate: Estate, out: str = "out") -> Iterator[Any]:
    with import_package(estate.scratch.path / out, "numbered_shop") as package:
        yield package.topic("persistent://shop/sales/orders")


@pytest.fixture
def orders_topic(module_estate: Estate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv("SCHEMACTL_TARGET", raising=False)
    with orders_of(module_estate) as topic:
        yield topic


READ = [
    (None, 0, BY_0, {"id": "a", "own": 0}),
    (None, 1, BY_OWN, REASON_OF_1),
    (None, 1, BY_FOREIGN, REASON_OF_1),
    (
        None,
        2,
        BY_OWN,
        "2 is not one of Git's numbers (Git's version 0 on dr; Git's version 1 on prod): choose the target",
    ),
    (None, 3, BY_OWN, "3 is not one of Git's numbers (Git's version 1 on dr): choose the target"),
    (None, 4, BY_OWN, "schema version 4 is not in the codec (0 to 1): generate it again"),
    ("dev", 0, BY_0, {"id": "a", "own": 0}),
    ("dev", 1, BY_OWN, {"id": "c", "own": 99}),
    ("dev", 2, BY_OWN, "schema version 2 is not in the codec (0 to 1): generate it again"),
    ("prod", 0, BY_0, {"id": "a", "own": 0}),
    ("prod", 1, BY_FOREIGN, {"id": "b", "own": 0}),
    ("prod", 2, BY_OWN, {"id": "c", "own": 99}),
    ("prod", 3, BY_OWN, "schema version 3 is not a version of prod that Git knows (0 to 2)"),
    ("dr", 0, BY_0, {"id": "a", "own": 0}),
    ("dr", 1, BY_OWN, "was deleted, and its definition was not recorded (cleaned up)"),
    ("dr", 2, BY_0, {"id": "a", "own": 0}),
    ("dr", 3, BY_OWN, {"id": "c", "own": 99}),
]


@pytest.mark.parametrize(("target", "number", "message", "expected"), READ)
@pytest.mark.parametrize("selection", ["for_target", "environment", "copied"])
def test_a_message_is_read_by_the_numbers_of_its_target(
    orders_topic: Any,
    monkeypatch: pytest.MonkeyPatch,
    selection: str,
    target: str | None,
    number: int,
    message: bytes,
    expected: dict[str, Any] | str,
) -> None:
    topic = orders_topic
    if target and selection == "environment":
        monkeypatch.setenv("SCHEMACTL_TARGET", target)
    elif target:
        topic = orders_topic.for_target(target)
    if selection == "copied":
        topic = pickle.loads(pickle.dumps(topic))  # noqa: S301  what was pickled here
    batch = topic.decode_batch(pa.array([message, message]), pa.array([number, None]))
    if isinstance(expected, dict):
        assert topic.decode_one(message, number) == expected
        assert topic.decode_one(message, number.to_bytes(8, "big")) == expected
        assert (batch.rows.to_pylist()[0], batch.errors[0].as_py()) == (expected, None)
        return
    with pytest.raises(Unreadable) as error:
        topic.decode_one(message, number)
    assert expected in error.value.reason
    assert batch.errors[0].as_py() == error.value.reason
    assert batch.rows.to_pylist()[0] == {"id": None, "own": None}


@pytest.mark.parametrize(("target", "number"), [("dev", 1), ("prod", 2), ("dr", 3)])
def test_messages_are_written_with_the_number_of_their_target(orders_topic: Any, target: str, number: int) -> None:
    topic = orders_topic.for_target(target)
    assert topic.codec.number_written() == number
    assert topic.encode_one({"id": "c", "own": 99}) == topic.encode_one({"id": "c", "own": 99}, number) == BY_OWN
    assert topic.read_as(number).number_written() == number
    assert (topic.numbers.target if topic.numbers else "dev") == target


def test_without_a_target_a_payload_is_written_and_its_number_is_unknown(orders_topic: Any) -> None:
    assert orders_topic.encode_one({"id": "c", "own": 99}) == BY_OWN
    assert orders_topic.codec.number_written(0) == 0
    for version in (None, 1):
        with pytest.raises(UnknownVersion, match="schema version 1 means different content on two targets"):
            orders_topic.codec.number_written(version)
    assert orders_topic.numbers is None
    assert orders_topic.read_as(0).decode_one(BY_0, 0) == {"id": "a"}
    assert orders_topic.read_as(0).for_target("prod").decode_one(BY_FOREIGN, 1) == {"id": "b"}
    assert orders_topic.read_as(0).for_target("prod").number_written() == 0


@pytest.mark.parametrize("name", ["Prod", "stage", "../prod"])
def test_an_unknown_target_is_an_error_and_never_read_by_gits_numbers(
    orders_topic: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    expected = f"unknown target {name}: the targets with known version numbers are dev, dr, prod"
    with pytest.raises(UnknownTarget) as error:
        orders_topic.for_target(name)
    assert str(error.value) == expected
    monkeypatch.setenv("SCHEMACTL_TARGET", name)
    with pytest.raises(UnknownTarget, match="unknown target"):
        orders_topic.decode_one(BY_0, 0)
    assert orders_topic.for_target("prod").decode_one(BY_FOREIGN, 1) == {"id": "b", "own": 0}


def test_the_environment_counts_at_each_call(orders_topic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreadable):
        orders_topic.decode_one(BY_FOREIGN, 1)
    monkeypatch.setenv("SCHEMACTL_TARGET", "prod")
    assert orders_topic.decode_one(BY_FOREIGN, 1) == {"id": "b", "own": 0}
    copied = pickle.dumps(orders_topic)
    monkeypatch.setenv("SCHEMACTL_TARGET", "")
    with pytest.raises(Unreadable):
        orders_topic.decode_one(BY_FOREIGN, 1)
    # A worker of Spark does not have the driver's environment.
    assert pickle.loads(copied).decode_one(BY_FOREIGN, 1) == {"id": "b", "own": 0}  # noqa: S301  what was pickled here


def test_records_of_one_target_change_nothing_for_the_others(module_estate: Estate) -> None:
    texts = {
        out: {
            path.relative_to(module_estate.scratch.path / out).as_posix(): path.read_text()
            for path in (module_estate.scratch.path / out).rglob("*.*")
            if path.suffix != ".pyc"
        }
        for out in ("without_records", "out")
    }
    changed = {name for name, text in texts["out"].items() if texts["without_records"].get(name) != text}
    assert {name.rpartition("/")[2].partition("-")[0] for name in changed} == {"orders.py", "orders.foreign"}
    assert texts["without_records"].keys() <= texts["out"].keys()
    for out in texts:
        with orders_of(module_estate, out) as topic:
            dev = topic.for_target("dev")
            assert [version.number for version in dev.codec.versions] == [0, 1]
            assert dev.decode_one(BY_OWN, 1) == {"id": "c", "own": 99}


def test_the_package_is_the_same_for_every_target_but_for_its_default(
    module_estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHEMACTL_TARGET", "prod")
    module_estate.run("generate", "--out", "out", "--check")
    stale = module_estate.run("generate", "--out", "out", "--check", "--target", "dr", code=100).out
    assert stale.splitlines()[0] == "stale: out/numbered_shop/__init__.py"
    assert " 1 stale." in stale
    module_estate.run("generate", "--out", "of_dr", "--target", "dr")
    monkeypatch.delenv("SCHEMACTL_TARGET")
    with orders_of(module_estate, "of_dr") as topic:
        assert topic.decode_one(BY_OWN, 3) == {"id": "c", "own": 99}
        assert topic.for_target("prod").decode_one(BY_FOREIGN, 1) == {"id": "b", "own": 0}
        monkeypatch.setenv("SCHEMACTL_TARGET", "dev")
        assert topic.decode_one(BY_OWN, 1) == {"id": "c", "own": 99}
    assert (
        "--target prod2: schemactl.yaml has dev, dr, prod"
        in module_estate.run("generate", "--check", "--target", "prod2", code=64).err
    )


def test_commits_are_named_by_the_numbers_of_the_target(module_estate: Estate, tmp_path: Path) -> None:
    module_estate.run("generate", "--zip", str(tmp_path / "numbered_shop.zip"), "--with-commits")
    with import_package(tmp_path / "numbered_shop.zip", "numbered_shop") as package:
        orders = package.topic("persistent://shop/sales/orders")
        own, first = orders.for_target("dev").commit(1), orders.commit(0)
        assert own != first
        assert [orders.for_target("dr").commit(number) for number in (2, 3)] == [first, own]
        assert orders.for_target("prod").commit(2) == own
        for topic, number in ((orders, 1), (orders.for_target("prod"), 1), (orders.for_target("dr"), 1)):
            with pytest.raises(LookupError):
                topic.commit(number)


def test_a_target_and_its_record_that_a_change_brings_are_in_its_package(module_estate: Estate, tmp_path: Path) -> None:
    estate = module_estate.copy_to(tmp_path / "shop")
    git = estate.scratch.git
    git("checkout", "-q", "-b", "work")
    project = PROJECT.replace("  dev:", '  late: {registry: "sqlite:late.db"}\n  dev:')
    estate.scratch.write({"schemactl.yaml": project, "numbers/late.yaml": PROD})
    estate.run("generate")
    git("add", "-A")
    git("commit", "-q", "-m", "A target")
    with orders_of(estate, "generated") as topic:
        assert topic.for_target("late").decode_one(BY_FOREIGN, 1) == {"id": "b", "own": 0}
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "Merge", "work")
    assert estate.run("generate", "--check").out.endswith(" 0 stale.\n")


def test_a_foreign_version_that_is_approved_later_is_gits(module_estate: Estate, tmp_path: Path) -> None:
    estate = module_estate.copy_to(tmp_path / "shop")
    estate.scratch.commit({"namespaces/orders.avsc": FOREIGN})
    estate.run("generate", "--out", "out")
    assert not [*(estate.scratch.path / "out").rglob("*foreign*")]
    with orders_of(estate) as topic:
        assert topic.for_target("prod").decode_one(BY_FOREIGN, 1) == {"id": "b", "foreign": 7777}
        with pytest.raises(Unreadable, match=r"\(Git's version 1 on dev; unreadable on dr; Git's version 2 on prod\)"):
            topic.decode_one(BY_FOREIGN, 1)


@pytest.mark.parametrize("target", ["prod", "dr"])
def test_a_foreign_version_of_another_type_has_its_own_file(module_estate: Estate, tmp_path: Path, target: str) -> None:
    estate = module_estate.copy_to(tmp_path / "shop")
    text = "shop/sales/orders: {0: {foreign: foreign/0.txt, type: STRING}, 1: {git: 0}}\n"
    estate.scratch.commit({f"numbers/{target}.yaml": text, "numbers/foreign/0.txt": ""})
    estate.run("generate", "--out", "out")
    with orders_of(estate) as topic, pytest.raises(Unreadable, match="written as STRING, which cannot be read as AVRO"):
        topic.for_target(target).decode_one(b"a", 0)


def test_a_package_of_an_earlier_release_has_the_numbers_of_its_only_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "old_shop/shop/sales"
    (folder / "schemas").mkdir(parents=True)
    (tmp_path / "old_shop/__init__.py").write_text('TARGET = "prod"\n')
    (folder / "orders.py").write_text("")
    for number, text in enumerate((record("id"), FOREIGN, OWN)):
        (folder / f"schemas/orders.v{number}.avsc").write_text(text)
    monkeypatch.setenv("SCHEMACTL_TARGET", "dev")
    with import_package(tmp_path, "old_shop"):
        topic: GeneratedTopic[Any] = GeneratedTopic(
            "persistent://shop/sales/orders",
            "old_shop.shop.sales.orders",
            versions={number: SchemaFile("AVRO", f"orders.v{number}.avsc") for number in range(3)},
            reader=2,
            numbers=Numbers("prod", 2, {3: "it was deleted"}),
            foreign=[1],
        )
        assert topic.decode_one(BY_FOREIGN, 1) == {"id": "b", "own": 0}
        assert topic.for_target("prod").decode_one(BY_OWN, 2) == {"id": "c", "own": 99}
        with pytest.raises(Unreadable, match="schema version 3 cannot be read: it was deleted"):
            topic.decode_one(BY_OWN, 3)
        with pytest.raises(UnknownTarget, match="the message is from the target dev, and prod was chosen"):
            topic.for_target("dev")


def test_a_broken_record_of_any_target_is_an_error_with_its_place(module_estate: Estate, tmp_path: Path) -> None:
    estate = module_estate.copy_to(tmp_path / "shop")
    estate.scratch.write({"numbers/dr.yaml": "shop/sales/orders: {1: {gti: 0}}\n"})
    assert "numbers/dr.yaml:1:25: unknown key `gti`" in estate.run("generate", "--check", code=1).err
