"""A second run of `generate` makes the topics that changed, and leaves the same files as a first one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from command import schemactl
from scratch import Files, Scratch, cache_of, record, write_declaration

from schemactl.codegen import package
from schemactl.codegen.generated_text import MARK
from schemactl.codegen.topic_module import make_topic_module
from schemactl.core import json_values

pytestmark = pytest.mark.slow

PROJECT = """\
version: 1
approved: main
targets:
  prod: {registry: "sqlite:.schemactl/registry.db", numbers: numbers/prod.yaml}
generate: {package: my_schemas, out: generated}
"""
NAMESPACE = "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"
TOPICS = ("ads", "bids", "car-ts")
FOLDER = Path("generated/my_schemas/shop/sales")
ADS_SCHEMA = FOLDER / "schemas/ads.v0.avsc"


class Shop:
    """A repository with three topics and their package."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scratch = Scratch(path)
        files = {"schemactl.yaml": PROJECT, ".gitignore": ".schemactl/\n", "namespaces/sales.yaml": NAMESPACE}
        for name in TOPICS:
            files |= self.declare(name)
        self.scratch.commit(files)
        self.scratch.flush()

    @staticmethod
    def declare(name: str, more: str = "", **default: Any) -> dict[str, str]:
        """Return the files of a topic."""
        return {
            f"namespaces/{name}.yaml": write_declaration(f"shop/sales/{name}", f"{name}.avsc", more),
            f"namespaces/{name}.avsc": record("id", **default),
        }

    def commit(self, files: Files) -> None:
        self.scratch.commit(files)
        self.scratch.flush()

    def generate(self, *arguments: str) -> int:
        """Generate the package, and return the number of topics that were made for it."""
        with patch.object(package, "make_topic_module", wraps=make_topic_module) as make_module:
            schemactl(self.path, "generate", "--draft", *arguments)
        return make_module.call_count

    def read(self, folder: str = "generated") -> dict[str, bytes]:
        """Return the files below a folder."""
        root = self.path / folder
        return {
            path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
        }

    def change_file(self, path: Path, old: str, new: str) -> None:
        text = (self.path / path).read_text()
        assert old in text
        (self.path / path).write_text(text.replace(old, new))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


def edit_with_old_time(shop: Shop) -> None:
    """Write another text of the same size, and restore the time of modification."""
    path = shop.path / ADS_SCHEMA
    status = path.stat()
    shop.change_file(ADS_SCHEMA, "Order", "Ordre")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def list_manifests(shop: Shop) -> list[Path]:
    paths = [*cache_of(shop.path / ".git").glob("package-*")]
    assert paths
    return paths


def damage_manifest(shop: Shop) -> None:
    for path in list_manifests(shop):
        path.write_bytes(path.read_bytes().replace(b"ads", b"bds"))


def truncate_manifest(shop: Shop) -> None:
    for path in list_manifests(shop):
        path.write_bytes(path.read_bytes()[:100])


def remove_manifest(shop: Shop) -> None:
    for path in list_manifests(shop):
        path.unlink()


def remove_package(shop: Shop) -> None:
    for path in (shop.path / "generated").rglob("*.*"):
        path.unlink()


def rename_package(shop: Shop) -> None:
    shop.change_file(Path("schemactl.yaml"), "my_schemas", "schemas_of_all")
    shutil.rmtree(shop.path / "generated/my_schemas")


def set_setting(setting: str) -> Callable[[Shop], None]:
    return lambda shop: shop.change_file(Path("schemactl.yaml"), "out: generated", f"out: generated, {setting}")


def amend(shop: Shop) -> None:
    shop.scratch.git("-c", "user.name=Ada", "-c", "user.email=a@b.c", "commit", "-q", "--amend", "-m", "another")


def put(files: dict[str, str]) -> Callable[[Shop], None]:
    """Return a change of the working tree."""
    return lambda shop: shop.scratch.write(files)


def commit(files: Files) -> Callable[[Shop], None]:
    """Return a change by a commit."""
    return lambda shop: shop.commit(files)


MORE = Shop.declare("ads", size=1)


@pytest.mark.parametrize(
    ("change", "expected_count", "count_of_third_run"),
    [
        pytest.param(lambda _shop: None, 0, 0, id="nothing"),
        # The package on disk.
        pytest.param(lambda shop: shop.change_file(ADS_SCHEMA, "Order", "Ordre"), 1, 0, id="schema of the same size"),
        pytest.param(edit_with_old_time, 1, 0, id="schema of the same size and time"),
        pytest.param(lambda shop: shop.change_file(FOLDER / "ads.py", "ADS", "X"), 1, 0, id="module edited"),
        pytest.param(lambda shop: (shop.path / FOLDER / "ads.py").unlink(), 1, 0, id="module missing"),
        pytest.param(lambda shop: (shop.path / ADS_SCHEMA).unlink(), 1, 0, id="schema missing"),
        pytest.param(
            lambda shop: (shop.path / FOLDER / "__init__.py").unlink(), 0, 0, id="init of a namespace missing"
        ),
        pytest.param(
            lambda shop: (shop.path / "generated/my_schemas/__init__.py").unlink(),
            0,
            0,
            id="init of the package missing",
        ),
        pytest.param(put({f"{FOLDER}/old.py": f"{MARK}\n"}), 0, 0, id="module of no topic"),
        pytest.param(put({f"{FOLDER}/schemas/ads.v1.avsc": "{}"}), 0, 0, id="schema of no version"),
        pytest.param(remove_package, 3, 0, id="package missing"),
        # The manifest.
        pytest.param(damage_manifest, 3, 0, id="manifest edited"),
        pytest.param(truncate_manifest, 3, 0, id="manifest truncated"),
        pytest.param(remove_manifest, 3, 0, id="manifest missing"),
        # Topics. What is not approved is made each time.
        pytest.param(put(MORE), 1, 1, id="version not committed"),
        pytest.param(commit(MORE), 1, 0, id="version"),
        pytest.param(
            commit({"namespaces/ads.avsc": record("id", doc="An order.")}), 1, 0, id="documentation without a version"
        ),
        pytest.param(
            commit(
                {
                    "namespaces/ads.yaml": write_declaration(
                        "shop/sales/ads", "ads.avsc", "generate: {json_times: java}\n"
                    )
                }
            ),
            1,
            0,
            id="setting of a topic",
        ),
        pytest.param(
            commit({"namespaces/sales.yaml": f"{NAMESPACE}schema_properties: {{a: b}}\n"}),
            3,
            0,
            id="default properties",
        ),
        pytest.param(commit(Shop.declare("dues")), 1, 0, id="topic added"),
        pytest.param(commit(Shop.declare("car_ts")), 2, 0, id="topic that takes the module of another"),
        pytest.param(commit(dict.fromkeys(Shop.declare("ads"))), 0, 0, id="topic removed"),
        pytest.param(
            commit({"namespaces/ads.avsc": None, "namespaces/ads.yaml": "topic: shop/sales/ads\n"}),
            0,
            0,
            id="schema removed",
        ),
        pytest.param(amend, 3, 0, id="history rewritten"),
        # Settings.
        pytest.param(set_setting("json_defaults: true"), 3, 0, id="json_defaults"),
        pytest.param(set_setting('spark: "4.2"'), 3, 0, id="spark"),
        pytest.param(set_setting("classes: dataclass"), 3, 0, id="classes"),
        pytest.param(rename_package, 3, 0, id="package"),
        # Numbers of targets.
        pytest.param(put({"numbers/prod.yaml": "shop/sales/ads: {1: {git: 0}}\n"}), 1, 0, id="numbers of a topic"),
    ],
)
def test_the_next_run_makes_what_changed(
    shop: Shop, change: Callable[[Shop], None], expected_count: int, count_of_third_run: int
) -> None:
    assert shop.generate() == 3
    assert shop.generate() == 0
    change(shop)
    assert (shop.generate(), shop.generate()) == (expected_count, count_of_third_run)
    # Another folder has no manifest; a comparison uses none.
    shop.generate("--out", "fresh")
    assert shop.read() == shop.read("fresh")
    assert shop.generate("--check") > 0


def test_a_change_that_is_taken_back_leaves_the_files_of_before(shop: Shop) -> None:
    shop.generate()
    before = shop.read()
    for files in (MORE, Shop.declare("ads")):
        shop.scratch.write(files)
        assert shop.generate() == 1
    assert shop.read() == before
    set_setting("json_defaults: true")(shop)
    shop.generate()
    shop.scratch.write({"schemactl.yaml": PROJECT})
    shop.generate()
    assert shop.read() == before


def test_filters_choose_the_topics_that_the_manifest_has(shop: Shop) -> None:
    assert shop.generate() == 3
    assert shop.generate("--topic", "shop/sales/ads") == 0
    assert not (shop.path / FOLDER / "bids.py").exists()
    assert shop.generate() == 2


def test_a_link_in_place_of_a_file_is_rejected_as_in_a_first_run(shop: Shop) -> None:
    shop.generate()
    path = shop.path / ADS_SCHEMA
    path.rename(shop.path / "elsewhere.avsc")
    path.symlink_to(shop.path / "elsewhere.avsc")
    assert "a symbolic link" in schemactl(shop.path, "generate", code=1).err


def test_a_branch_makes_its_own_topics_and_those_of_a_merge(shop: Shop) -> None:
    shop.generate()
    shop.scratch.git("checkout", "-q", "-b", "work")
    shop.scratch.commit(MORE, branch="work")
    shop.scratch.flush()
    # The second time is for the comparison with a rebase.
    assert shop.generate() == 2
    shop.scratch.commit(Shop.declare("bids", size=1), branch="main")
    shop.scratch.flush()
    shop.generate()
    shop.scratch.git("-c", "user.name=Ada", "-c", "user.email=a@b.c", "merge", "-q", "main", "-m", "merge")
    shop.generate()
    assert shop.generate() == 2
    shop.generate("--out", "fresh")
    assert shop.read() == shop.read("fresh")


def test_definitions_of_approved_versions_are_not_made_again(shop: Shop) -> None:
    for size in range(1, 4):
        shop.commit({"namespaces/ads.avsc": record("id", size=size)})
    shop.generate()
    for size in range(4, 6):
        shop.scratch.write({"namespaces/ads.avsc": record("id", size=size)})
        with patch("schemactl.codegen.topic_module.format_json", wraps=json_values.format_json) as format_json:
            shop.generate()
        assert {call.args[0]["fields"][1]["default"] for call in format_json.call_args_list} == {size}
        shop.generate("--out", f"fresh-{size}")
        assert shop.read() == shop.read(f"fresh-{size}")
    # A version whose file was edited is made again.
    shop.change_file(FOLDER / "schemas/ads.v2.avsc", "Order", "Ordre")
    shop.generate()
    assert shop.read() == shop.read("fresh-5")
