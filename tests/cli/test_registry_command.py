"""`schemactl registry`: one topic by hand, on the embedded registry and on a real Pulsar."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brokers
import pytest
import shop

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]

STRANGER = {"type": "record", "name": "Order", "fields": [{"name": "x", "type": "int"}]}
BAD_DEFAULT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}'


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, applied to its local registry."""
    made = shop.make(tmp_path_factory.mktemp("registry"))
    done = shop.schemactl(made, "apply", "--auto-approve")
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def run(applied: Path, tmp_path: Path) -> Iterator[Run]:
    """Runs the command; the registry is as it was applied, before and after. TMP in arguments is a folder of the test."""
    registry = applied / ".schemactl" / "registry.db"
    kept = registry.read_bytes()
    (tmp_path / "stranger.avsc").write_text(json.dumps(STRANGER))
    payload = {"type": "AVRO", "schema": BAD_DEFAULT, "properties": {"owner": "x"}}
    (tmp_path / "payload.json").write_text(json.dumps(payload))

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        words = [word.replace("TMP", str(tmp_path)) for word in arguments]
        return shop.schemactl(applied, "registry", *words)

    yield command
    registry.write_bytes(kept)


def told(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_get_prints_the_definition_that_was_uploaded(run: Run) -> None:
    done = run("get", "orders", "--version", "0")
    assert done.returncode == 0
    assert json.loads(done.stdout)["name"] == "Order"
    assert "version 0, AVRO" in done.stderr
    latest = told(run("get", "shop/sales/orders", "--format", "json"))
    assert (latest["version"], latest["type"], latest["target"]) == (5, "AVRO", "local")
    assert "schemactl.commit" in latest["properties"]


def test_list_has_every_version_and_its_commit(run: Run) -> None:
    lines = run("list", "orders").stdout.splitlines()
    assert [line.split(",")[0].strip() for line in lines[1:]] == [f"version {n}" for n in (5, 4, 3, 2, 1, 0)]
    assert all("from commit" in line for line in lines[1:])
    assert told(run("list", "orders", "--format", "json"))["live"] == [0, 1, 2, 3, 4, 5]


def test_put_of_what_is_there_stores_nothing(run: Run) -> None:
    done = run("put", "orders", "--file", "namespaces/sales/orders/orders.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing was stored: it equals version 5" in done.stdout


def test_put_warns_where_git_does_not_declare_it(run: Run) -> None:
    done = run("put", "shop/sales/new", "--type", "STRING")
    assert (done.returncode, done.stdout) == (
        0,
        "persistent://shop/sales/new: stored as version 0 in local\n",
    )
    assert "warning: Git does not declare" in done.stderr
    done = run("put", "orders", "--file", "TMP/stranger.avsc")
    assert done.returncode == 100
    assert "no approved version" in done.stderr
    assert "incompatible, nothing was stored" in done.stdout
    assert told(run("list", "orders", "--format", "json"))["live"] == [0, 1, 2, 3, 4, 5]


def test_test_says_what_breaks_and_stores_nothing(run: Run) -> None:
    done = run("test", "orders", "--file", "TMP/stranger.avsc")
    assert done.returncode == 100
    assert "incompatible under BACKWARD_TRANSITIVE" in done.stdout
    assert (
        "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/0: the new schema cannot read version 5" in done.stdout
    )
    facts = told(run("test", "orders", "--file", "TMP/stranger.avsc", "--format", "json"))
    assert facts["upload"]["outcome"] == facts["compatibility"]["outcome"] == "incompatible"
    assert {found["against"] for found in facts["data"]} == set(range(6))
    assert told(run("list", "orders", "--format", "json"))["live"] == [0, 1, 2, 3, 4, 5]


def test_test_knows_better_than_the_compatibility_endpoint(run: Run) -> None:
    assert run("put", "shop/sales/new", "--file", "TMP/payload.json").returncode == 0
    done = run("test", "shop/sales/new", "--file", "TMP/payload.json")
    assert done.returncode == 100
    assert "its compatibility endpoint would answer that it is compatible" in done.stdout


def test_delete_says_what_it_destroys_and_needs_a_flag(run: Run) -> None:
    done = run("delete", "orders")
    assert (done.returncode, done.stdout) == (64, "")
    assert "0-5" in done.stderr
    assert "--allow-delete" in done.stderr
    assert "--force-delete" in done.stderr
    assert told(run("list", "orders", "--format", "json"))["live"] == [0, 1, 2, 3, 4, 5]


def test_a_tombstone_hides_and_force_destroys(run: Run) -> None:
    assert "versions 0-5 hidden by tombstone 6" in run("delete", "orders", "--allow-delete").stdout
    assert "deleted already" in run("delete", "orders", "--allow-delete").stderr
    assert "were deleted by tombstone 6" in run("get", "orders").stderr
    assert run("get", "orders", "--version", "2").returncode == 0
    assert run("get", "orders", "--version", "6").returncode == 1
    assert "hidden by a later tombstone" in run("list", "orders").stdout
    done = run("delete", "orders", "--force-delete", "--format", "json")
    assert (done.returncode, told(done)["destroyed"]) == (0, [0, 1, 2, 3, 4, 5, 6])
    assert "no schema" in run("list", "orders").stdout


def test_nothing_is_not_deleted(run: Run) -> None:
    for how in ("--allow-delete", "--force-delete"):
        done = run("delete", "shop/sales/nothing", how)
        assert (done.returncode, done.stdout) == (1, "")
        assert "nothing was deleted" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (("get", "orders", "--version", "9"), 1, "there is 0-5"),
        (("get", "nowhere"), 64, "there is no topic"),
        (("get", "shop/sales/nothing"), 1, "has no schema"),
        (("get", "a/b c/d"), 64, "is not a name Pulsar accepts"),
        (("put", "orders"), 64, "a schema is needed"),
        (("put", "orders", "--file", "TMP/none.avsc"), 64, "there is no such file"),
        (("put", "orders", "--file", "TMP"), 64, "there is no such file"),
        (("put", "orders", "--file", "schemactl.yaml"), 1, "schemactl.yaml"),
        (("put", "clicks", "--file", "namespaces/web/clicks.proto"), 64, "--message"),
        (("get", "orders", "--target", "prod"), 64, "--target prod"),
        ((), 64, "ACTION"),
        (("move", "orders"), 64, "'move' is unknown; choose from get, list"),
    ],
)
def test_wrong_usage_says_what_to_write(run: Run, arguments: tuple[str, ...], code: int, what: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert what in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", ["", "[]", '{"type": "NOPE", "schema": ""}', '{"type": "AVRO"}', "\xff"])
def test_a_payload_that_pulsar_would_not_take_is_one_error(run: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / "payload.json").write_bytes(content.encode("latin-1"))
    done = run("put", "orders", "--file", "TMP/payload.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "payload.json is not" in done.stderr


def test_proto_files_are_taken_with_their_message(run: Run) -> None:
    done = run("test", "clicks", "--file", "namespaces/web/clicks.proto", "--message", "web.Click")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "it equals version" in done.stdout


def test_it_works_on_a_real_pulsar_as_on_the_embedded_registry(
    broker: brokers.Broker, tmp_path: Path
) -> None:
    tenant = brokers.new_tenant()
    shop.git(tmp_path, "init", "-q", "-b", "main")
    project = f'version: 1\nroots: [declared]\ntargets: {{live: {{registry: "{broker.url}"}}, local: {{registry: "sqlite:r.db"}}}}\n'
    (tmp_path / "schemactl.yaml").write_text(project)
    (tmp_path / "declared").mkdir()
    (tmp_path / "declared" / "space.yaml").write_text(
        f"namespace: {tenant}/ns\nschema_compatibility_strategy: FULL\n"
    )
    shop.git(tmp_path, "add", ".")
    shop.git(tmp_path, "commit", "-qm", "Declare the namespace")
    (tmp_path / "a.avsc").write_text(
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
    )
    (tmp_path / "b.avsc").write_text(
        '{"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]}'
    )
    topic = f"{tenant}/ns/orders"
    steps = [
        ("put", topic, "--file", "a.avsc"),
        ("put", topic, "--file", "a.avsc"),
        ("put", topic, "--file", "b.avsc"),
        ("test", topic, "--file", "a.avsc"),
        ("test", topic, "--file", "b.avsc"),
        ("get", topic),
        ("delete", topic),
        ("delete", topic, "--allow-delete"),
        ("get", topic),
        ("put", topic, "--type", "STRING"),
        ("delete", topic, "--force-delete"),
        ("delete", topic, "--force-delete"),
    ]
    said: dict[str, list[tuple[int, str]]] = {}
    for target in ("live", "local"):
        done = shop.schemactl(tmp_path, "apply", "--auto-approve", "--target", target)
        assert done.returncode == 0, done.stderr
        for action, *rest in steps:
            done = shop.schemactl(tmp_path, "registry", action, *rest, "--target", target)
            assert "Traceback" not in done.stderr
            said.setdefault(target, []).append((done.returncode, done.stdout.replace(f"in {target}", "in T")))
    assert [code for code, _ in said["local"]] == [0, 0, 100, 0, 100, 0, 64, 0, 1, 0, 0, 1]
    assert said["live"] == said["local"]
