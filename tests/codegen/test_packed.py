"""A wheel of the generated package: what installers make of it, and what it carries."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from topics_to_generate import ALL, GENERATE, ORDERS, approved

from schemactl.codegen.package import Wheel, commits, complete, pack, package_files, version_at, wheel
from schemactl.codegen.topics import Approved
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.project import Generate
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaType
from schemactl.formats.key_value import join

pytestmark = pytest.mark.slow

# 1 March 2026, 00:05:09 UTC.
TIP = Commit("c0ffee" + "0" * 34, 1_772_323_509)
PLAIN = [approved("orders", ORDERS)]


def wheel_of(topics: list[Approved] = PLAIN) -> Wheel:
    files = complete(package_files(topics, GENERATE, release=Release.R4_0), GENERATE.package, topics)
    return wheel(files, GENERATE.package, topics, tip=TIP)


def needed(made: Wheel) -> list[str]:
    (text,) = (text for name, text in made.files.items() if name.endswith("/METADATA"))
    return message_from_string(text).get_all("Requires-Dist") or []


def test_its_version_is_the_time_of_the_approved_tip_and_later_is_newer() -> None:
    assert wheel_of().name == "shop_schemas-2026.3.1.509-py3-none-any.whl"
    moments = [TIP.time_s + step for step in (0, 1, 60, 3_600, 86_400, 40 * 86_400, 400 * 86_400)]
    versions = [version_at(Commit("", time_s)) for time_s in moments]
    numbers = [tuple(map(int, version.split("."))) for version in versions]
    assert numbers == sorted(set(numbers))
    assert [".".join(map(str, number)) for number in numbers] == versions


def test_its_version_can_be_said_in_its_normal_form() -> None:
    for version in ("1.0", "2026.3.1", "1!2.0rc1.post2.dev3+abc.7"):
        made = wheel({}, GENERATE.package, PLAIN, tip=TIP, version=version)
        assert made.name == f"shop_schemas-{version}-py3-none-any.whl"
    for version in ("one", "v1.0", "1.0-1", "1.0/..", "1.0+Ä", "1.0 "):
        with pytest.raises(UsageError, match="not a version of a Python package"):
            wheel({}, GENERATE.package, PLAIN, tip=TIP, version=version)


def test_its_name_is_one_that_installers_take() -> None:
    generate = Generate("Acme.shop__schemas")
    files = package_files(PLAIN, generate, release=Release.R4_0)
    made = wheel(files, generate.package, PLAIN, tip=TIP, version="1")
    assert made.name == "acme_shop_schemas-1-py3-none-any.whl"
    assert "Acme/shop__schemas/__init__.py" in made.files
    assert "\nName: acme-shop-schemas\n" in made.files["acme_shop_schemas-1.dist-info/METADATA"]
    for wrong in ("größe", "_shop", "shop_"):
        with pytest.raises(SchemactlError, match="which is not a valid name for a wheel"):
            wheel({}, wrong, [], tip=TIP)


def test_a_version_is_asked_for_where_no_commit_gives_one() -> None:
    with pytest.raises(UsageError, match="bring what is not approved yet"):
        wheel({}, "shop_schemas", [], tip=None)
    assert wheel({}, "shop_schemas", [], tip=None, version="1.0.dev1").name.startswith("shop_schemas-1.0.dev1-")


def test_it_needs_what_its_run_time_needs_and_no_schemactl() -> None:
    lines = needed(wheel_of())
    assert sorted(re.split(r"[<>=]", line)[0] for line in lines if "extra" not in line) == ["numpy", "pyarrow"]
    assert {line.partition("; ")[2] for line in lines if "extra" in line} == {'extra == "spark"'}
    assert any(line.startswith("pyspark") for line in lines)
    assert not any("schemactl" in line for line in lines)


def test_it_needs_protobuf_where_a_topic_does() -> None:
    topics = {one.topic.name.topic: one for one in ALL}
    clicks = topics["clicks"].versions[0].info
    assert clicks is not None
    pair = join(key=SchemaInfo(SchemaType.STRING), value=clicks, encoding="INLINE")
    for one in (topics["clicks"], topics["described"], approved("pairs", (pair,))):
        assert [text for text in needed(wheel_of([one])) if text.startswith("protobuf")]
    assert not [text for text in needed(wheel_of()) if text.startswith("protobuf")]


def test_the_commits_of_versions_are_in_one_file() -> None:
    found = json.loads(commits(PLAIN))["persistent://shop/sales/orders"]
    assert found["1"] == {"commit": f"{1:040x}", "time": "1970-01-01T00:00:00+00:00"}
    assert [*found] == ["0", "1", "2"]


def test_its_record_names_every_file(tmp_path: Path) -> None:
    made = wheel_of()
    pack(made.files, tmp_path / made.name)
    with zipfile.ZipFile(tmp_path / made.name) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        record = archive.read(names[-1]).decode()
    assert [row[0] for row in csv.reader(io.StringIO(record))] == names


def test_equal_histories_make_equal_bytes(tmp_path: Path) -> None:
    for folder, topics in (("one", ALL), ("other", list(reversed(ALL)))):
        made = wheel_of(topics)
        pack(made.files, tmp_path / folder / made.name)
    one, other = sorted(tmp_path.rglob("*.whl"))
    assert one.read_bytes() == other.read_bytes()


def test_pip_installs_it_where_nothing_else_is_and_it_is_all_there(tmp_path: Path) -> None:
    files = complete(package_files(ALL, GENERATE, release=Release.R4_0), GENERATE.package, ALL)
    files = {**files, "shop_schemas/versions.json": commits(ALL)}
    made = wheel(files, GENERATE.package, ALL, tip=TIP, version="1.4.0")
    pack(made.files, tmp_path / made.name)
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    install = [*pip, "install", "--no-index", "--no-deps", "--no-compile", str(tmp_path / made.name)]
    subprocess.run(install, check=True)
    # Arrow and numpy come from the environment of the tests, as nothing is fetched.
    libraries = next(path for path in sys.path if Path(path, "pyarrow").is_dir())
    program = (
        f"import sys; sys.path.append({libraries!r})\n"
        "from importlib.metadata import version\n"
        "from shop_schemas.shop.sales.orders import ORDERS\n"
        "row = ORDERS.decode_one(ORDERS.encode_one({'id': 1, 'customer_id': 2}, 0), 0)\n"
        "print(version('shop-schemas'), row['customer'], ORDERS.commit(2))\n"
        "print(type(ORDERS).__module__, [name for name in sys.modules if name.split('.')[0] == 'schemactl'])\n"
    )
    command = [str(python), "-I", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == [f"1.4.0 2 {2:040x}", "shop_schemas._runtime.generated []"]


def test_topics_are_in_its_description() -> None:
    text = wheel_of(ALL).files["shop_schemas-2026.3.1.509.dist-info/METADATA"]
    assert all(f"* {one.topic.name}\n" in text for one in ALL)
