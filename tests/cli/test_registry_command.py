"""`schemactl registry`: one topic by hand, on the embedded registry and on a real Pulsar."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brokers
import pytest
import shop
from command import Printed

pytestmark = pytest.mark.slow

Run = Callable[..., Printed]

STRANGER = {"type": "record", "name": "Order", "fields": [{"name": "x", "type": "int"}]}
BAD_DEFAULT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}'


@pytest.fixture(scope="module")
def applied_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, applied to its local registry."""
    folder = shop.make(tmp_path_factory.mktemp("registry"))
    shop.run(folder, "apply", "--auto-approve")
    return folder


@pytest.fixture
def run(applied_example: Path, tmp_path: Path) -> Iterator[Run]:
    """Return a function that runs the command, in which TMP is a folder of the test; restore the registry afterwards."""
    registry = applied_example / ".schemactl" / "registry.db"
    data = registry.read_bytes()
    (tmp_path / "stranger.avsc").write_text(json.dumps(STRANGER))
    payload = {"type": "AVRO", "schema": BAD_DEFAULT, "properties": {"owner": "x"}}
    (tmp_path / "payload.json").write_text(json.dumps(payload))

    def run_command(*arguments: str, code: int = 0) -> Printed:
        words = [word.replace("TMP", str(tmp_path)) for word in arguments]
        return shop.run(applied_example, "registry", *words, code=code)

    yield run_command
    registry.write_bytes(data)


def parse_json(done: Printed) -> Any:
    return json.loads(done.out)


def test_get_prints_the_definition_that_was_uploaded(run: Run) -> None:
    done = run("get", "orders", "--version", "0")
    assert json.loads(done.out)["name"] == "Order"
    assert "version 0, AVRO" in done.err
    latest = parse_json(run("get", "shop/sales/orders", "--format", "json"))
    assert (latest["version"], latest["type"], latest["target"]) == (5, "AVRO", "local")
    assert "schemactl.commit" in latest["properties"]


def test_list_has_every_version_and_its_commit(run: Run) -> None:
    lines = run("list", "orders").out.splitlines()
    assert [line.split(",")[0].strip() for line in lines[1:]] == [f"version {n}" for n in (5, 4, 3, 2, 1, 0)]
    assert all("from commit" in line for line in lines[1:])
    assert parse_json(run("list", "orders", "--format", "json"))["live"] == [0, 1, 2, 3, 4, 5]


def test_put_of_what_is_there_stores_nothing(run: Run) -> None:
    done = run("put", "orders", "--file", "namespaces/sales/orders/orders.yaml")
    assert done.err == ""
    assert "nothing was stored: it equals version 5" in done.out


def test_put_warns_where_git_does_not_declare_it(run: Run) -> None:
    done = run("put", "shop/sales/new", "--type", "STRING")
    assert done.out == "persistent://shop/sales/new: stored as version 0 in local\n"
    assert "warning: Git does not declare" in done.err
    done = run("put", "orders", "--file", "TMP/stranger.avsc", code=100)
    assert "not an approved version" in done.err
    assert "incompatible, nothing was stored" in done.out
    assert parse_json(run("list", "orders", "--format", "json"))["live"] == [0, 1, 2, 3, 4, 5]


def test_test_says_what_breaks_and_stores_nothing(run: Run) -> None:
    done = run("test", "orders", "--file", "TMP/stranger.avsc", code=100)
    assert "incompatible under BACKWARD_TRANSITIVE" in done.out
    assert "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/0: the new schema cannot read version 5" in done.out
    facts = parse_json(run("test", "orders", "--file", "TMP/stranger.avsc", "--format", "json", code=100))
    assert facts["upload"]["outcome"] == facts["compatibility"]["outcome"] == "incompatible"
    assert {breakage["against"] for breakage in facts["data"]} == set(range(6))
    assert parse_json(run("list", "orders", "--format", "json"))["live"] == [0, 1, 2, 3, 4, 5]


def test_a_missing_type_is_looked_for_in_the_roots_and_not_in_the_package(applied_example: Path, run: Run) -> None:
    copy = applied_example / "generated" / "shop_schemas" / "copy.avsc"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes((applied_example / "namespaces/common/money.avsc").read_bytes())
    done = run("test", "orders", "--file", f"{applied_example}/namespaces/sales/orders/orders.avsc", code=1)
    copy.unlink()
    assert "list that file under `references`: [../../common/money.avsc]" in done.err


def test_test_knows_better_than_the_compatibility_endpoint(run: Run) -> None:
    run("put", "shop/sales/new", "--file", "TMP/payload.json", "--force")
    done = run("test", "shop/sales/new", "--file", "TMP/payload.json", code=100)
    assert (
        "the broker's compatibility endpoint would report it as compatible, because an upload checks more" in done.out
    )


def test_delete_says_what_it_destroys_and_needs_a_flag(run: Run) -> None:
    done = run("delete", "orders", code=64)
    assert done.out == ""
    assert "0-5" in done.err
    assert "--allow-delete" in done.err
    assert "--force-delete" in done.err
    assert parse_json(run("list", "orders", "--format", "json"))["live"] == [0, 1, 2, 3, 4, 5]


def test_a_tombstone_hides_and_force_destroys(run: Run) -> None:
    assert "versions 0-5 hidden by tombstone 6" in run("delete", "orders", "--allow-delete").out
    assert "deleted already" in run("delete", "orders", "--allow-delete", code=1).err
    assert "were deleted by tombstone 6" in run("get", "orders", code=1).err
    run("get", "orders", "--version", "2")
    run("get", "orders", "--version", "6", code=1)
    assert "hidden by a later tombstone" in run("list", "orders").out
    done = run("delete", "orders", "--force-delete", "--format", "json")
    assert parse_json(done)["destroyed"] == [0, 1, 2, 3, 4, 5, 6]
    assert "no schema" in run("list", "orders").out


def test_nothing_is_not_deleted(run: Run) -> None:
    for how in ("--allow-delete", "--force-delete"):
        done = run("delete", "shop/sales/nothing", how, code=1)
        assert done.out == ""
        assert "nothing was deleted" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("get", "orders", "--version", "9"), 1, "it has 0-5"),
        (("get", "nowhere"), 64, "unknown topic"),
        (("get", "shop/sales/nothing"), 1, "has no schema"),
        (("get", "a/b c/d"), 64, "is not a name Pulsar accepts"),
        (("put", "orders"), 64, "a schema is missing"),
        (("put", "orders", "--file", "TMP/none.avsc"), 64, "no such file"),
        (("put", "orders", "--file", "TMP"), 64, "no such file"),
        (("put", "orders", "--file", "schemactl.yaml"), 1, "schemactl.yaml"),
        (("put", "clicks", "--file", "namespaces/web/clicks.proto"), 64, "--message"),
        (("get", "orders", "--target", "prod"), 64, "--target prod"),
        ((), 64, "ACTION"),
        (("move", "orders"), 64, "'move' is unknown; choose from get, list"),
    ],
)
def test_wrong_usage_says_what_to_write(run: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = run(*arguments, code=code)
    assert done.out == ""
    assert message in done.err


@pytest.mark.parametrize("content", ["", "[]", '{"type": "NOPE", "schema": ""}', '{"type": "AVRO"}', "\xff"])
def test_a_payload_that_pulsar_would_not_take_is_one_error(run: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / "payload.json").write_bytes(content.encode("latin-1"))
    done = run("put", "orders", "--file", "TMP/payload.json", code=1)
    assert done.out == ""
    assert f"{tmp_path}/payload.json" in done.err.splitlines()[0]


def test_proto_files_are_taken_with_their_message(run: Run) -> None:
    done = run("test", "clicks", "--file", "namespaces/web/clicks.proto", "--message", "web.Click")
    assert "it equals version" in done.out


def test_it_works_on_a_real_pulsar_as_on_the_embedded_registry(broker: brokers.Broker, tmp_path: Path) -> None:
    tenant = brokers.new_tenant()
    shop.git(tmp_path, "init", "-q", "-b", "main")
    project = f'version: 1\nroots: [declared]\ntargets: {{live: {{registry: "{broker.url}"}}, local: {{registry: "sqlite:r.db"}}}}\n'
    (tmp_path / "schemactl.yaml").write_text(project)
    (tmp_path / "declared").mkdir()
    (tmp_path / "declared" / "space.yaml").write_text(f"namespace: {tenant}/ns\nschema_compatibility_strategy: FULL\n")
    shop.git(tmp_path, "add", ".")
    shop.git(tmp_path, "commit", "-qm", "Declare the namespace")
    for name in ("a", "b"):
        definition = {"type": "record", "name": "R", "fields": [{"name": name, "type": "int"}]}
        (tmp_path / f"{name}.avsc").write_text(json.dumps(definition))
    topic = f"{tenant}/ns/orders"
    steps = [
        ("put --file a.avsc", 0),
        ("put --file a.avsc", 0),
        ("put --file b.avsc", 100),
        ("test --file a.avsc", 0),
        ("test --file b.avsc", 100),
        ("get", 0),
        ("delete", 64),
        ("delete --allow-delete", 0),
        ("get", 1),
        ("put --type STRING", 0),
        ("delete --force-delete", 0),
        ("delete --force-delete", 1),
    ]
    printed: dict[str, list[str]] = {"live": [], "local": []}
    for target, answers in printed.items():
        shop.run(tmp_path, "apply", "--auto-approve", "--target", target)
        for step, code in steps:
            done = shop.run(tmp_path, "registry", *step.split(), topic, "--target", target, code=code)
            answers.append(done.out.replace(f"in {target}", "in T"))
    assert printed["live"] == printed["local"]


WEDGES = [
    ("AVRO", BAD_DEFAULT),
    ("JSON", BAD_DEFAULT),
    ("PROTOBUF", BAD_DEFAULT),
    ("AVRO", BAD_DEFAULT.replace('"int","default":"x"', '["null","int"],"default":"x"')),
    ("AVRO", BAD_DEFAULT.replace('"int","default":"x"', '{"type":"array","items":"int"},"default":["x"]')),
    ("AVRO", BAD_DEFAULT.replace('"int","default":"x"', '{"type":"enum","name":"E","symbols":["A"]},"default":1')),
]
NO_WEDGES = [
    ("AVRO", BAD_DEFAULT.replace('"x"', "1")),
    ("JSON", BAD_DEFAULT.replace('"int","default":"x"', '["null","int"],"default":null')),
    # A release that accepts the default of a later branch at an upload also reads it again.
    ("AVRO", BAD_DEFAULT.replace('"int","default":"x"', '["int","string"],"default":1')),
    ("STRING", ""),
]


@pytest.mark.parametrize(("type_", "definition"), [*WEDGES, *NO_WEDGES])
@pytest.mark.parametrize("format_", ["text", "json"])
def test_put_refuses_what_no_upload_can_follow(
    run: Run, tmp_path: Path, type_: str, definition: str, format_: str
) -> None:
    is_wedge = (type_, definition) in WEDGES
    (tmp_path / "payload.json").write_text(json.dumps({"type": type_, "schema": definition, "properties": {}}))
    put = ("put", "shop/sales/new", "--file", "TMP/payload.json", "--format", format_)
    test = run("test", "shop/sales/new", "--file", "TMP/payload.json", code=100 if is_wedge else 0)
    assert ("then every later upload to the topic fails" in test.out) is is_wedge
    done = run(*put, code=100 if is_wedge else 0)
    if not is_wedge:
        return
    if format_ == "json":
        answer = parse_json(done)
        assert (answer["stored"], answer["version"], answer["outcome"]) == (False, None, "refused")
    else:
        assert "not uploaded" in done.out
        assert "--force" in done.out
    assert "no schema" in run("list", "shop/sales/new").out
    # The registry, which answers as a broker, proves it.
    assert "stored as version 0" in run("put", "shop/sales/new", "--file", "TMP/payload.json", "--force").out
    (tmp_path / "payload.json").write_text(json.dumps({"type": type_, "schema": NO_WEDGES[0][1], "properties": {}}))
    run("put", "shop/sales/new", "--file", "TMP/payload.json", code=100)


def test_a_definition_that_is_rejected_anyway_is_left_to_the_registry(run: Run) -> None:
    done = run("put", "orders", "--file", "TMP/payload.json", code=100)
    assert "the registry answers" in done.out
