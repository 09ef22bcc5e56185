"""The generated package: its content, its classes, its use without other packages, and its installed wheel."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import pickle
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from email import message_from_string
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
import shop
from command import schemactl
from imported_package import import_package
from topics_to_generate import ALL, GENERATE, ODD, ODD_TEXTS, ORDERS, make_approved

from schemactl.classes.extraction import extract
from schemactl.codec import CodecUnavailable, UnknownVersion, Unreadable
from schemactl.codegen.package import package_files
from schemactl.codegen.package_folder import Difference, compare, pack, write
from schemactl.codegen.topics import PackageTopic, VersionsOnTarget
from schemactl.codegen.wheel import Wheel, complete, make_wheel, render_commits, version_at
from schemactl.core.errors import SchemactlError, UsageError
from schemactl.core.project import ClassKind, Generate
from schemactl.core.schema import Commit, Release, SchemaInfo, SchemaType, SchemaVersion
from schemactl.formats import identity
from schemactl.formats.key_value import join

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
ORDERS_FILE = "shop_schemas/shop/sales/orders.py"


def files_of(topics: object = ALL, **options: object) -> Mapping[str, str]:
    return package_files(topics, GENERATE, release=Release.R4_0, **options)  # type: ignore[arg-type]


def write_to(out: Path, files: Mapping[str, str]) -> Difference:
    difference = compare(files, out)
    write(files, out, difference)
    return difference


@pytest.fixture
def shop_package(tmp_path: Path) -> Iterator[ModuleType]:
    write_to(tmp_path, files_of())
    with import_package(tmp_path, "shop_schemas") as module:
        yield module


def test_a_topic_is_found_by_its_name(shop_package: ModuleType) -> None:
    orders = shop_package.topic("persistent://shop/sales/orders")
    assert orders is importlib.import_module("shop_schemas.shop.sales.orders").ORDERS
    assert orders.name == "persistent://shop/sales/orders"
    assert repr(orders) == "<topic persistent://shop/sales/orders>"
    assert shop_package.topic("persistent://shop/sales/orders-partition-12") is orders
    with pytest.raises(KeyError, match="no topic of the package is called orders: TOPICS has the full names"):
        shop_package.topic("orders")
    assert shop_package.TOPICS["persistent://shop/sales/stock-levels"] == "shop_schemas.shop.sales.stock_levels"
    assert shop_package.TARGET is None


def test_every_version_is_read_into_the_reader(shop_package: ModuleType) -> None:
    orders = shop_package.topic("persistent://shop/sales/orders")
    payload = orders.encode_one({"id": 1, "customer_id": 2}, 0)
    assert orders.decode_one(payload, 0) == {"id": 1, "customer": 2, "tags": {}, "größe": "\"'\\ M"}
    for version, info in zip(orders.codec.versions, ORDERS, strict=True):
        assert json.loads(version.schema.text) == json.loads(info.schema)
    assert orders.read_as(0).decode_one(payload, 0) == {"id": 1, "customer_id": 2}
    orders.validate(payload, 0)
    with pytest.raises(Unreadable, match="1 bytes follow the value"):
        orders.validate(payload + b"x", 0)
    with pytest.raises(Unreadable, match=r"version 3 is not in the codec \(0 to 2\)"):
        orders.decode_one(payload, 3)
    with pytest.raises(LookupError, match="shop_schemas names no commits: make it with --with-commits"):
        orders.commit(0)
    again = pickle.loads(pickle.dumps(orders))  # noqa: S301  what was pickled here
    assert again.decode_one(payload, 0) == orders.decode_one(payload, 0)


def test_schemas_for_the_python_client_need_that_client_alone_when_one_is_asked_for(
    shop_package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "schemactl.codec.pulsar_client", raising=False)
    monkeypatch.setitem(sys.modules, "pulsar", None)
    with pytest.raises(CodecUnavailable, match="needs the package pulsar-client: pip install pulsar-client"):
        shop_package.topic("persistent://shop/sales/orders").pulsar_schema(None)


@pytest.mark.parametrize(
    ("topic", "version", "mode", "error", "expected"),
    [
        ("orders", 3, None, UnknownVersion, r"schema version 3 is not in the codec \(0 to 2\)"),
        ("orders", None, "AVRO", ValueError, "expected RECEIVE_ONLY, AUTO_CONSUME, AUTO_PRODUCE_BYTES, NATIVE_AVRO"),
        ("views", None, "NATIVE_AVRO", ValueError, "NATIVE_AVRO is for AVRO, and version 0 of .* is JSON"),
        ("bills", None, None, CodecUnavailable, "the payload of PROTOBUF is protobuf's wire format"),
    ],
)
def test_what_no_client_can_use_is_an_error_before_a_broker_is_asked(
    shop_package: ModuleType, topic: str, version: int | None, mode: Any, error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        shop_package.topic(f"persistent://shop/sales/{topic}").pulsar_schema(None, version, mode=mode)


def test_types_that_the_python_client_cannot_send_are_received_only(shop_package: ModuleType) -> None:
    schema = shop_package.topic("persistent://shop/sales/counts").pulsar_schema(None)
    assert schema.properties == {"schemactl.version": "0"}
    with pytest.raises(TypeError, match="send a int with Pulsar's Java client"):
        schema.encode(1)
    assert schema.decode(b"\x00\x00\x00\x00\x00\x00\x00\x07") == 7


def test_the_module_of_a_topic_is_data(shop_package: ModuleType) -> None:
    module = importlib.import_module("shop_schemas.shop.sales.views")
    text = Path(str(module.__file__)).read_text()
    assert len(text.splitlines()) == 29
    assert "def " not in text
    assert module.SCHEMA == "\nid INT NOT NULL\n" == module.VIEWS.schema
    schema = Path(str(module.__file__)).with_name("schemas") / "views.v0.avsc"
    assert json.loads(schema.read_text())["name"] == "Order"
    assert shop_package.topic("persistent://shop/sales/views") is module.VIEWS


def test_a_type_without_a_codec_says_so(shop_package: ModuleType) -> None:
    bills = shop_package.topic("persistent://shop/sales/bills")
    module = importlib.import_module("shop_schemas.shop.sales.bills")
    assert "Nothing describes the payloads" in str(module.__doc__)
    assert not hasattr(module, "SCHEMA")
    with pytest.raises(CodecUnavailable, match="PROTOBUF"):
        bills.decode_one(b"")


def test_the_reader_is_the_text_at_the_tip_or_what_the_topic_pins() -> None:
    one = make_approved("orders", ORDERS[:1])
    edited = json.dumps(json.loads(ORDERS[0].schema) | {"doc": "said later"})
    tip = replace(one, topic=replace(one.topic, schema=SchemaInfo(SchemaType.AVRO, edited.encode())))
    files = files_of([tip])
    assert '    reader=Schema("AVRO", "orders.reader.avsc"),\n' in files[ORDERS_FILE]
    said = [name for name, text in files.items() if "said later" in text]
    assert said == ["shop_schemas/shop/sales/schemas/orders.reader.avsc"]
    assert "    reader=0,\n" in files_of([one])[ORDERS_FILE]
    pinned = files_of([make_approved("orders", ORDERS, reader=1)])[ORDERS_FILE]
    assert "    reader=1,\n" in pinned
    assert "read as version 1" in pinned


def test_a_package_has_the_numbers_of_all_targets() -> None:
    one = make_approved("orders", ORDERS[:2])
    foreign = SchemaVersion(1, one.versions[1].info)
    versions = (one.versions[0], foreign, replace(foreign, number=3))
    on_targets = tuple(
        VersionsOnTarget(target, versions, {0: 0, 3: 1}, {2: "number 2 was deleted"}, 3) for target in ("prod/eu", "dr")
    )
    files = files_of([replace(one, on_targets=on_targets)], targets=["prod/eu", "dr", "dev"], target="dr")
    package = files["shop_schemas/__init__.py"]
    assert 'TARGETS: tuple[str, ...] = ("dev", "dr", "prod/eu")\n' in package
    assert 'TARGET: str | None = "dr"\n' in package
    module = files[ORDERS_FILE]
    assert "These are Git's numbers. Targets with other numbers: dr, prod/eu (see `targets` below)." in module
    [foreign_file] = [name.rpartition("/")[2] for name in files if "foreign" in name]
    assert re.fullmatch(r"orders\.foreign-[0-9a-f]{12}\.avsc", foreign_file)
    numbers = f"""TargetNumbers(
            reader=3,
            versions={{
                0: 0,
                1: Schema("AVRO", "{foreign_file}"),
                2: "number 2 was deleted",
                3: 1,
            }},
        )"""
    assert f'    targets={{\n        "dr": {numbers},\n        "prod/eu": {numbers},\n    }},\n' in module


@pytest.mark.parametrize(("targets", "expected"), [((), "()"), (["a"], '("a",)'), (["b", "a"], '("a", "b")')])
def test_the_names_of_targets_are_a_tuple(targets: list[str], expected: str) -> None:
    package = files_of([make_approved("orders", ORDERS[:1])], targets=targets)["shop_schemas/__init__.py"]
    assert f"TARGETS: tuple[str, ...] = {expected}\n" in package


def test_defaults_of_json_are_applied_where_the_project_file_says_so() -> None:
    files = package_files(ALL, replace(GENERATE, json_defaults=True), release=Release.R4_0)
    assert "    options=Options(json_defaults=True),\n" in files["shop_schemas/shop/sales/views.py"]
    assert "json_defaults" not in files[ORDERS_FILE]


@pytest.mark.parametrize(
    ("in_project", "in_topic", "options"),
    [
        ("number", {}, ""),
        ("java", {}, "    options=Options(json_times='java'),\n"),
        ("number", {"json_times": "java"}, "    options=Options(json_times='java'),\n"),
        ("java", {"json_times": "number"}, ""),
        ("number", {"integers": "little"}, "    options=Options(integers='little'),\n"),
        ("number", {"integers": "big"}, ""),
    ],
)
def test_a_topic_has_the_forms_of_its_settings(in_project: Any, in_topic: dict[str, Any], options: str) -> None:
    topics = [replace(one, topic=replace(one.topic, **in_topic)) for one in ALL]
    files = package_files(topics, replace(GENERATE, json_times=in_project), release=Release.R4_0)
    module = files["shop_schemas/shop/sales/views.py"]
    assert options.replace("'", '"') in module
    assert ("options=" in module) == bool(options)
    # Times of Avro have one form.
    assert "json_times" not in files[ORDERS_FILE]


def test_odd_definitions_are_kept_as_they_are() -> None:
    for one, text in zip(ODD, ODD_TEXTS, strict=True):
        (schema,) = (content for name, content in files_of([one]).items() if name.endswith(".avsc"))
        info = one.versions[0].info
        assert info is not None
        assert (text, json.loads(schema.encode())) == (text, json.loads(info.schema))


def test_ruff_leaves_the_text_as_it_is(tmp_path: Path) -> None:
    files = files_of([*ALL, *ODD])
    write_to(tmp_path / "here", files)
    write_to(tmp_path / "packed", complete(files, "shop_schemas", ALL))
    for check in (["format", "--check"], ["check", "--select=E,F,I,D,ANN"]):
        command = [sys.executable, "-m", "ruff", *check, "--isolated", "--quiet", str(tmp_path)]
        assert subprocess.run(command, check=False).returncode == 0


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    assert files_of() == files_of(reversed(ALL))
    for name in ("one.zip", "other.zip"):
        pack(complete(files_of(), "shop_schemas", ALL), tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "other.zip").read_bytes()


IMPORTED = """
import sys
sys.path.insert(0, sys.argv[1])
from importlib import import_module
import shop_schemas
for module in shop_schemas.TOPICS.values():
    import_module(module)
beyond = {name.split(".")[0] for name in sys.modules} - sys.stdlib_module_names
print(sorted(name for name in beyond if not name.startswith(("_", "cython"))))
shop_schemas.topic("persistent://shop/sales/views").decode_one(b'{"id": 1}')
print("google.protobuf" in sys.modules)
shop_schemas.topic("persistent://shop/sales/clicks").decode_one(b"")
print("google.protobuf" in sys.modules)
"""


def test_importing_every_module_imports_numpy_and_pyarrow_alone(tmp_path: Path) -> None:
    write_to(tmp_path / "here", files_of())
    pack(complete(files_of(), "shop_schemas", ALL), tmp_path / "packed.zip")
    for place, runtime in (("here", ["schemactl"]), ("packed.zip", [])):
        command = [sys.executable, "-c", IMPORTED, str(tmp_path / place)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.splitlines() == [str(["numpy", "pyarrow", *runtime, "shop_schemas"]), "False", "True"]


ALONE = """
import sys
sys.path[:0] = sys.argv[1:]
import pyarrow as pa
import shop_schemas
orders = shop_schemas.topic("persistent://shop/sales/orders")
payload = orders.encode_one({"id": 1, "customer_id": 2}, 0)
decoded = orders.decode_batch(pa.array([payload, b"\\x80"]), pa.array([0, 0]))
print(decoded.rows.to_pylist()[0]["customer"], decoded.errors.to_pylist())
"""


def test_a_packed_package_works_where_only_numpy_and_pyarrow_are(tmp_path: Path) -> None:
    archive = tmp_path / "shop_schemas.zip"
    pack(complete(files_of(), "shop_schemas", ALL), archive)
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for name in ("numpy", "pyarrow", "numpy.libs", "pyarrow.libs"):
        library = next((Path(folder, name) for folder in sys.path if Path(folder, name).is_dir()), None)
        if library:
            (libraries / name).symlink_to(library)
    command = [sys.executable, "-S", "-I", "-c", ALONE, str(archive), str(libraries)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["2 [None, 'id, byte 0: the message ends inside a number']"]


def test_the_run_time_is_carried_unchanged_and_no_more_than_is_used() -> None:
    plain = [make_approved("orders", ORDERS)]
    all_of_it, part = (complete(files_of(topics), "shop_schemas", topics) for topics in (ALL, plain))
    folder = "shop_schemas/_runtime/"
    for files in (all_of_it, part):
        for path in ("generated.py", "codec/topic.py", "spark/landing.py", "spark/landing_stream.py"):
            assert files[folder + path].endswith((REPOSITORY / "schemactl" / path).read_text(encoding="utf-8"))
        assert files[f"{folder}LICENSE"] == (REPOSITORY / "LICENSE").read_text(encoding="utf-8")
        assert not [name for name in files if "spark/pulsar/" in name]
        assert "shop_schemas/_runtime.py" not in files
    only_used = {name.removeprefix(folder) for name in all_of_it.keys() - part.keys() if folder in name}
    assert {name.split("_")[0] for name in only_used} == {"codec/json", "codec/proto"}


def test_what_is_no_longer_generated_is_removed_and_nothing_else(tmp_path: Path) -> None:
    assert write_to(tmp_path, files_of())
    assert not compare(files_of(), tmp_path)
    own = tmp_path / "shop_schemas" / "shop" / "own.py"
    own.write_text("print('mine')\n")
    beside = tmp_path / "shop_schemas" / "shop" / "sales" / "schemas" / "mine.json"
    beside.write_text("{}")
    compiled = tmp_path / "shop_schemas" / "shop" / "sales" / "__pycache__"
    compiled.mkdir()
    (compiled / "bills.cpython-311.pyc").write_bytes(b"")
    difference = write_to(tmp_path, files_of([]))
    assert "shop_schemas/shop/sales/orders.py" in difference.extra
    assert "shop_schemas/shop/sales/schemas/orders.v0.avsc" in difference.extra
    assert own.exists()
    assert [path.name for path in beside.parent.iterdir()] == ["mine.json"]
    beside.unlink()
    beside.parent.rmdir()
    write_to(tmp_path, files_of())
    write_to(tmp_path, files_of([]))
    assert not (tmp_path / "shop_schemas" / "shop" / "sales").exists()


def test_a_file_of_one_s_own_is_not_overwritten(tmp_path: Path) -> None:
    own = tmp_path / "shop_schemas" / "shop" / "sales" / "orders.py"
    own.parent.mkdir(parents=True)
    own.write_text("print('mine')\n")
    with pytest.raises(SchemactlError, match=r"left alone: shop_schemas/shop/sales/orders\.py"):
        write_to(tmp_path, files_of())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [own]


def test_topics_that_have_no_columns_are_named_together() -> None:
    node = b'{"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}'
    wide = b'{"type": "bytes", "logicalType": "decimal", "precision": 40}'
    nodes, wides = (
        make_approved(name, (SchemaInfo(SchemaType.AVRO, text),)) for name, text in (("nodes", node), ("wide", wide))
    )
    with pytest.raises(SchemactlError, match=r"shop/sales/wide: a decimal of 40 digits"):
        files_of([nodes, wides])
    files = package_files([nodes], GENERATE, release=Release.R4_0)
    assert files.skipped == {nodes.topic.name: "the record N is recursive, and Spark has no recursive types"}
    assert "shop_schemas/shop/sales/nodes.py" not in files
    assert "recursion_depth=3" in files_of([nodes], recursion_depth=3)["shop_schemas/shop/sales/nodes.py"]


def test_a_package_that_cannot_be_imported_is_rejected() -> None:
    with pytest.raises(SchemactlError, match="cannot import"):
        package_files(ALL, Generate("shop-schemas"), release=Release.R4_0)


# 1 March 2026, 00:05:09 UTC.
TIP = Commit("c0ffee" + "0" * 34, 1_772_323_509)
PLAIN = [make_approved("orders", ORDERS)]


def wheel_of(topics: list[PackageTopic] = PLAIN) -> Wheel:
    files = complete(package_files(topics, GENERATE, release=Release.R4_0), GENERATE.package, topics)
    return make_wheel(files, GENERATE.package, topics, tip=TIP)


def read_requirements(package_wheel: Wheel) -> list[str]:
    (text,) = (text for name, text in package_wheel.files.items() if name.endswith("/METADATA"))
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
        package_wheel = make_wheel({}, GENERATE.package, PLAIN, tip=TIP, version=version)
        assert package_wheel.name == f"shop_schemas-{version}-py3-none-any.whl"
    for version in ("one", "v1.0", "1.0-1", "1.0/..", "1.0+Ä", "1.0 "):
        with pytest.raises(UsageError, match="not a version of a Python package"):
            make_wheel({}, GENERATE.package, PLAIN, tip=TIP, version=version)


def test_its_name_is_one_that_installers_take() -> None:
    generate = Generate("Acme.shop__schemas")
    files = package_files(PLAIN, generate, release=Release.R4_0)
    package_wheel = make_wheel(files, generate.package, PLAIN, tip=TIP, version="1")
    assert package_wheel.name == "acme_shop_schemas-1-py3-none-any.whl"
    assert "Acme/shop__schemas/__init__.py" in package_wheel.files
    assert "\nName: acme-shop-schemas\n" in package_wheel.files["acme_shop_schemas-1.dist-info/METADATA"]
    for wrong in ("größe", "_shop", "shop_"):
        with pytest.raises(SchemactlError, match="which is not a valid name for a wheel"):
            make_wheel({}, wrong, [], tip=TIP)


def test_a_version_is_asked_for_where_no_commit_gives_one() -> None:
    with pytest.raises(UsageError, match="add content that is not approved yet"):
        make_wheel({}, "shop_schemas", [], tip=None)
    assert make_wheel({}, "shop_schemas", [], tip=None, version="1.0.dev1").name.startswith("shop_schemas-1.0.dev1-")


def test_it_needs_what_its_run_time_needs_and_no_schemactl() -> None:
    lines = read_requirements(wheel_of())
    assert sorted(re.split(r"[<>=]", line)[0] for line in lines if "extra" not in line) == ["numpy", "pyarrow"]
    assert {line.partition("; ")[2] for line in lines if "extra" in line} == {'extra == "spark"'}
    assert any(line.startswith("pyspark") for line in lines)
    assert not any("schemactl" in line for line in lines)


def test_it_needs_protobuf_where_a_topic_does() -> None:
    topics = {topic.topic.name.topic: topic for topic in ALL}
    clicks = topics["clicks"].versions[0].info
    assert clicks is not None
    pair = join(key=SchemaInfo(SchemaType.STRING), value=clicks, encoding="INLINE")
    for topic in (topics["clicks"], topics["described"], make_approved("pairs", (pair,))):
        assert [text for text in read_requirements(wheel_of([topic])) if text.startswith("protobuf")]
    assert not [text for text in read_requirements(wheel_of()) if text.startswith("protobuf")]


def test_the_commits_of_versions_are_in_one_file() -> None:
    entries = json.loads(render_commits(PLAIN))["persistent://shop/sales/orders"]
    assert entries["1"] == {"commit": f"{1:040x}", "time": "1970-01-01T00:00:00+00:00"}
    assert [*entries] == ["0", "1", "2"]


def test_its_record_names_every_file(tmp_path: Path) -> None:
    package_wheel = wheel_of()
    pack(package_wheel.files, tmp_path / package_wheel.name)
    with zipfile.ZipFile(tmp_path / package_wheel.name) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        record = archive.read(names[-1]).decode()
    assert [row[0] for row in csv.reader(io.StringIO(record))] == names


def test_equal_histories_make_equal_bytes(tmp_path: Path) -> None:
    for folder, topics in (("one", ALL), ("other", list(reversed(ALL)))):
        package_wheel = wheel_of(topics)
        pack(package_wheel.files, tmp_path / folder / package_wheel.name)
    one, other = sorted(tmp_path.rglob("*.whl"))
    assert one.read_bytes() == other.read_bytes()


def test_pip_installs_it_where_nothing_else_is_and_it_is_all_there(tmp_path: Path) -> None:
    files = complete(package_files(ALL, GENERATE, release=Release.R4_0), GENERATE.package, ALL)
    files = {**files, "shop_schemas/versions.json": render_commits(ALL)}
    package_wheel = make_wheel(files, GENERATE.package, ALL, tip=TIP, version="1.4.0")
    pack(package_wheel.files, tmp_path / package_wheel.name)
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    install = [*pip, "install", "--no-index", "--no-deps", "--no-compile", str(tmp_path / package_wheel.name)]
    subprocess.run(install, check=True)
    # Nothing is downloaded: Arrow and numpy come from the environment of the tests.
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
    assert all(f"* {topic.topic.name}\n" in text for topic in ALL)


PACKAGE_WITH_CLASSES = "classy_schemas"


@pytest.fixture(params=get_args(ClassKind))
def package_with_classes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ModuleType]:
    generate = replace(GENERATE, package=PACKAGE_WITH_CLASSES, classes=request.param)
    files = package_files(ALL, generate, release=Release.R4_0)
    write(files, tmp_path, compare(files, tmp_path))
    with import_package(tmp_path, PACKAGE_WITH_CLASSES) as module:
        yield module


def classes_of(topic: str) -> Any:
    return importlib.import_module(f"{PACKAGE_WITH_CLASSES}.shop.sales.classes.{topic}")


def test_an_instance_is_written_and_every_version_read_as_one(package_with_classes: ModuleType) -> None:
    orders, order = package_with_classes.topic("persistent://shop/sales/orders"), classes_of("orders").Order
    instance = order(id=1, customer=2)
    payload = orders.encode_one(instance)
    assert orders.decode_one(payload) == {"id": 1, "customer": 2, "tags": {}, "größe": "\"'\\ M"}
    assert orders.decode_as(order, payload) == instance
    oldest = orders.encode_one({"id": 1, "customer_id": 2}, 0)
    assert orders.decode_as(order, oldest, 0) == instance
    (version,) = (version for version in orders.codec.versions if version.number == 2)
    info = SchemaInfo(SchemaType.AVRO, version.schema.text.encode())
    assert identity(extract(order, release=Release.R4_0)) == identity(info)


def test_json_and_the_halves_of_key_value_have_classes_and_nothing_else_has(package_with_classes: ModuleType) -> None:
    views, view = package_with_classes.topic("persistent://shop/sales/views"), classes_of("views").Order
    assert json.loads(views.encode_one(view(id=3))) == {"id": 3}
    stock, order = package_with_classes.topic("persistent://shop/sales/stock"), classes_of("stock").Order
    payload = stock.encode_one({"key": "a", "value": order(id=1, customer_id=2)})
    assert stock.decode_one(payload) == {"key": "a", "value": {"id": 1, "customer_id": 2}}
    assert stock.decode_as(order, payload) == order(id=1, customer_id=2)
    levels, key = package_with_classes.topic("persistent://shop/sales/stock-levels"), classes_of("stock_levels").Order
    assert levels.encode_key({"key": key(id=1, customer_id=2), "value": 5}) == b"\x02\x04"
    for topic in ("notes", "clicks", "bills", "plain"):
        with pytest.raises(ModuleNotFoundError):
            classes_of(topic)


def test_a_packed_package_brings_what_its_classes_need(tmp_path: Path) -> None:
    kinds: tuple[ClassKind, ...] = get_args(ClassKind)
    for kind in kinds:
        generate = replace(GENERATE, package=PACKAGE_WITH_CLASSES, classes=kind)
        files = complete(package_files(ALL, generate, release=Release.R4_0), PACKAGE_WITH_CLASSES, ALL)
        package_wheel = make_wheel(files, PACKAGE_WITH_CLASSES, ALL, tip=None, version="1")
        (metadata,) = (text for name, text in package_wheel.files.items() if name.endswith("METADATA"))
        assert ("Requires-Dist: pydantic" in metadata) is (kind == "pydantic")
        pack(files, tmp_path / "packed.zip")
        script = (
            f"import sys; sys.path.insert(0, {str(tmp_path / 'packed.zip')!r})\n"
            f"from {PACKAGE_WITH_CLASSES}.shop.sales.orders import ORDERS\n"
            f"from {PACKAGE_WITH_CLASSES}.shop.sales.classes.orders import Order\n"
            "print(ORDERS.decode_as(Order, ORDERS.encode_one(Order(id=1, customer=2))).customer)\n"
            "print(any(name.partition('.')[0] == 'schemactl' for name in sys.modules))\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout == "2\nFalse\n"


def test_generate_writes_classes_where_the_project_or_the_command_says_so(tmp_path: Path) -> None:
    work = shop.make(tmp_path)
    orders = work / "generated/shop_schemas/shop/sales/classes/orders.py"
    schemactl(work, "generate", "--classes", "pydantic")
    assert "class Order(BaseModel):" in orders.read_text()
    assert (
        "stale: generated/shop_schemas/shop/sales/classes/orders.py"
        in schemactl(work, "generate", "--check", code=100).out
    )
    project = work / "schemactl.yaml"
    project.write_text(project.read_text() + "  classes: dataclass\n")
    schemactl(work, "generate")
    assert "@dataclass(kw_only=True)\nclass Order:" in orders.read_text()
    schemactl(work, "generate", "--check")
    oldest = schemactl(work, "generate", "orders@0", "--classes", "dataclass").out
    assert "The records of persistent://shop/sales/orders, version 0." in oldest
    compile(oldest, "orders", "exec")
    assert "is PROTOBUF_NATIVE, not an Avro record" in schemactl(work, "generate", "clicks", code=1).err
    assert (
        "a single version requires --classes, which prints its classes"
        in schemactl(work, "generate", "orders@0", "--check", code=64).err
    )
