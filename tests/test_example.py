"""The example works as it says: its history, its versions, its messages and its Spark job."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import shop
from spark_java import make_small_queries_environment

from examples.shop import demo, messages
from schemactl.core.schema import SchemaType
from schemactl.spark import ensure_java

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent

VERSIONS = {
    "ops/cold-room-celsius": 1,
    "ops/deliveries": 1,
    "ops/door-open": 1,
    "ops/heartbeats": 1,
    "ops/shift-starts": 1,
    "ops/stock-levels": 1,
    "sales/invoices": 1,
    "sales/order-notes": 1,
    "sales/orders": 6,
    "sales/payments": 2,
    "sales/receipts": 1,
    "web/carts": 2,
    "web/clicks": 2,
    "web/coupons": 1,
    "web/page-views": 2,
    "web/sessions": 1,
}


def test_the_history_is_the_same_everywhere(tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    assert shop.git(folder, "rev-parse", "HEAD").strip() == "a5ca69c91ae2ca7e43ff24b6a8fe72dbf4ed7f9c"
    assert shop.git(folder, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "script", ["hero_picture", "badge_pictures", "terminal_picture", "schema_pictures", "diagram_pictures"]
)
def test_the_pictures_of_the_readme_show_what_the_tool_answers(tmp_path: Path, script: str) -> None:
    subprocess.run([sys.executable, str(ROOT / f"ci/{script}.py"), str(tmp_path)], check=True)
    pictures = sorted(tmp_path.iterdir())
    assert pictures
    # `make pictures` draws them again.
    for picture in pictures:
        assert picture.read_text("utf-8") == (ROOT / "docs/pictures" / picture.name).read_text("utf-8"), picture.name


def test_the_versions_are_those_its_commits_made(tmp_path: Path) -> None:
    catalog = shop.read_approved(shop.make(tmp_path))
    assert {f"{name.namespace}/{name.topic}": len(topic.versions) for name, topic in catalog.topics.items()} == VERSIONS
    assert [name.topic for name, topic in catalog.topics.items() if topic.deleted] == ["coupons"]


def test_it_has_every_type_of_schema(tmp_path: Path) -> None:
    catalog = shop.read_approved(shop.make(tmp_path))
    kinds = {topic.schema.type for topic in catalog.topics.values() if topic.schema}
    wanted = (
        "AVRO JSON PROTOBUF PROTOBUF_NATIVE KEY_VALUE STRING BOOLEAN INT64 DOUBLE TIMESTAMP INSTANT LOCAL_DATE_TIME"
    )
    assert kinds == {SchemaType[name] for name in wanted.split()}


def test_it_keeps_its_package(tmp_path: Path) -> None:
    assert "0 stale" in shop.run(shop.make(tmp_path), "generate", "--check").out


def test_the_breaking_edit_fails_and_the_fix_passes(tmp_path: Path) -> None:
    folder = shop.make(tmp_path)
    demo.edit(folder / demo.ORDERS, demo.GOOD, demo.BREAKING)
    shop.run(folder, "check", code=100)
    demo.edit(folder / demo.ORDERS, demo.BREAKING, demo.FIXED)
    shop.run(folder, "check")


@pytest.mark.spark
def test_the_job_loses_no_message_of_any_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shop.make(tmp_path)
    package = tmp_path / "shop_schemas_of_a_test.zip"
    declared = (folder / "schemactl.yaml").read_text(encoding="utf-8")
    (folder / "schemactl.yaml").write_text(declared.replace("shop_schemas", package.stem), encoding="utf-8")
    shop.run(folder, "generate", "--zip", str(package))
    monkeypatch.syspath_prepend(str(package))
    generated = importlib.import_module(package.stem)
    raw = tmp_path / "messages.parquet"
    count = messages.write(raw, {topic: generated.topic(topic).codec for topic in messages.TOPICS}, count=700)
    job = Path(demo.__file__).with_name("pipeline.py")
    command = [sys.executable, str(job), str(raw), str(package), str(tmp_path / "tables")]
    ensure_java()
    environment = shop.make_environment() | make_small_queries_environment()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (total,) = [line.split() for line in done.stdout.splitlines() if line.startswith("all ")]
    read, decoded, rejected = (int(number.replace(",", "")) for number in total[1:])
    assert (read, read) == (count, decoded + rejected)
    assert rejected > 0
    # The oldest and the newest version answer one question together.
    assert "|0-5" in done.stdout.replace(" ", "")
    assert "add `proto:`" in done.stdout


def test_messages_are_the_same_for_the_same_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shop.make(tmp_path)
    name = "shop_schemas_of_one_seed"
    declared = (folder / "schemactl.yaml").read_text(encoding="utf-8")
    (folder / "schemactl.yaml").write_text(declared.replace("shop_schemas", name), encoding="utf-8")
    shop.run(folder, "generate")
    monkeypatch.syspath_prepend(str(folder / "generated"))
    generated = importlib.import_module(name)
    codecs = {topic: generated.topic(topic).codec for topic in messages.TOPICS}
    for file in ("one", "two"):
        messages.write(tmp_path / file, codecs, count=60)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
