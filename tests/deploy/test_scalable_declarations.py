"""Declared scalable topics (Pulsar 5.0): which declarations are accepted, and their way through the commands without a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import admin_rest
import pytest
from estate import Estate
from scratch import Scratch, record, write_declaration

from schemactl.core.errors import RegistryError
from schemactl.core.names import TopicName
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.pulsar.registry import PulsarRegistry

pytestmark = pytest.mark.slow

SCALABLE = "topic://shop/sales/orders"
PERSISTENT = "persistent://shop/sales/orders"
NAME = TopicName.parse(SCALABLE)
STRING = SchemaInfo(SchemaType.STRING)


def write_project(registry: str = "sqlite:.schemactl/registry.db", *, pulsar: str = "5.0", more: str = "") -> str:
    return f'version: 1\npulsar: "{pulsar}"\ntargets: {{local: {{registry: "{registry}"{more}}}}}\n'


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    path = tmp_path_factory.mktemp("prepared") / "shop"
    return Estate(path, project=write_project(), orders=write_declaration(SCALABLE))


@pytest.fixture(params=["embedded", pytest.param("served", marks=pytest.mark.network)])
def any_estate(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Estate]:
    """One with the embedded registry, and one with the same registry behind the admin API."""
    if request.param == "embedded":
        yield Estate(tmp_path / "shop", project=write_project(), orders=write_declaration(SCALABLE))
        return
    with serve(tmp_path, "5.0") as url:
        yield Estate(tmp_path / "shop", project=write_project(url), orders=write_declaration(SCALABLE))


@contextmanager
def serve(folder: Path, release: str) -> Iterator[str]:
    """The URL of a server for brokers of this release."""
    (folder / "schemactl.yaml").write_text(f'version: 1\npulsar: "{release}"\n')
    with admin_rest.serve_folder(folder=folder) as (url, _):
        yield url


def run_json(estate: Estate, *arguments: str, code: int = 0) -> Any:
    return json.loads(estate.run(*arguments, "--format", "json", code=code).out)


REJECTED: dict[str, tuple[str, str, str, str, str]] = {
    "the release of the target": (
        write_project(pulsar="4.2"), write_declaration(SCALABLE), "1:8",
        "is a scalable topic, which Pulsar 4.2 on the target local does not have", 'write pulsar: "5.0" for local',
    ),
    "the release of the target, and another one of the project": (
        write_project(more=', pulsar: "4.0"'), write_declaration(SCALABLE), "1:8",
        "Pulsar 4.0 on the target local does not have", "name the topic in `exclude` of local",
    ),
    "the release of a project without targets": (
        "version: 1\n", write_declaration(SCALABLE), "1:8",
        "which Pulsar 4.0 does not have", 'write pulsar: "5.0" in schemactl',
    ),
    "partitions": (
        write_project(), f"topic: {SCALABLE}\npartitions: 3\n", "2:1", "has no `partitions`: brokers split", "remove it",
    ),
    "a strategy": (
        write_project(), f"topic: {SCALABLE}\nschema_compatibility_strategy: FULL\n", "2:1",
        "only its namespace has schema policies", "set it for the namespace",
    ),
    "a policy": (
        write_project(), f"topic: {SCALABLE}\nmessage_ttl_in_seconds: 5\n", "2:1", "sets no policies", "remove it",
    ),
    **{
        f"beside {other}": (
            write_project(), f"topic: {first}\n---\ntopic: {second}\n", "3:8",
            "share one list of schemas in Pulsar", "keep one of the two",
        )
        for other, first, second in (
            ("a persistent topic", SCALABLE, PERSISTENT), ("a non-persistent topic", f"non-{PERSISTENT}", SCALABLE),
        )
    },
}  # fmt: skip
"""The project file, the declaration, the place of the problem, and parts of its message and its fix."""


def make_estate(scratch: Scratch) -> Estate:
    """Return an estate in a repository that does not declare orders."""
    estate = Estate.__new__(Estate)
    estate.scratch = scratch
    return estate


@pytest.mark.parametrize(("project", "declaration", "place", "message", "fix"), REJECTED.values(), ids=REJECTED)
def test_a_declaration_is_rejected_with_its_place_and_fix(
    tmp_path: Path, project: str, declaration: str, place: str, message: str, fix: str
) -> None:
    scratch = Scratch(tmp_path / "shop")
    scratch.commit({"schemactl.yaml": project, "namespaces/sales.yaml": "namespace: shop/sales\n"})
    scratch.flush()
    scratch.write({"namespaces/orders.yaml": declaration, "namespaces/orders.avsc": record("id")})
    printed = make_estate(scratch).run("check", code=1)
    text = printed.out + printed.err
    assert f"namespaces/orders.yaml:{place}: " in text
    assert message in text
    assert fix in text


@pytest.mark.parametrize(
    "project",
    [
        write_project(),
        write_project(pulsar="4.0", more=', pulsar: "5.0.1"'),
        write_project(pulsar="4.0", more=", exclude: [shop/sales/orders]"),
        'version: 1\npulsar: "5.0"\n',
    ],
)
def test_a_declaration_is_accepted_where_each_target_of_the_topic_has_scalable_topics(
    tmp_path: Path, project: str
) -> None:
    Estate(tmp_path / "shop", project=project, orders=write_declaration(SCALABLE)).run("check")


def test_an_overlay_cannot_set_policies(tmp_path: Path) -> None:
    project = write_project(more=", overlays: [overlay.yaml]")
    estate = Estate(tmp_path / "shop", project=project, orders=write_declaration(SCALABLE))
    estate.scratch.commit({"overlay.yaml": f"topic: {SCALABLE}\npartitions: 3\n"})
    printed = estate.run("plan", code=(1, 100))
    assert "overlay.yaml:2:1: a scalable topic has no `partitions`" in printed.out + printed.err


def test_versions_are_registered_compared_and_shown(any_estate: Estate) -> None:
    estate = any_estate
    assert {step["topic"] for step in run_json(estate, "plan")["steps"] if "topic" in step} == {SCALABLE}
    estate.run("apply", "--yes")
    estate.commit_orders("id", note=0)
    estate.run("check")
    estate.run("apply", "--yes")
    estate.run("drift", "--detailed-exitcode")
    assert [row["version"] for row in run_json(estate, "log", "--all")["topics"][0]["versions"]] == [0, 1]
    assert SCALABLE in estate.run("list").out
    listed_names = estate.run("registry", "list", SCALABLE, "--target", "local").out
    assert ("version 0" in listed_names, "version 1" in listed_names) == (True, True)
    estate.commit_orders("id", "needed", note=0)
    printed = estate.run("plan", code=100)
    assert SCALABLE in printed.out
    # The strategy is the namespace's, and the topic has no strategy to relax.
    assert "--relax" not in printed.out


def test_a_foreign_version_is_drift(estate: Estate) -> None:
    estate.run("apply", "--yes")
    estate.scratch.commit(
        {"namespaces/sales.yaml": "namespace: shop/sales\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\n"}
    )
    estate.run("apply", "--yes")
    estate.put(STRING, topic=NAME)
    differences = run_json(estate, "drift", code=100)["differences"]
    assert (SCALABLE, "foreign version") in [(item["topic"], item["kind"]) for item in differences]


def test_import_declares_it_and_plan_has_nothing_to_do(any_estate: Estate, tmp_path: Path) -> None:
    any_estate.run("apply", "--yes")
    any_estate.scratch.commit(
        {
            "namespaces/orders.yaml": None,
            "namespaces/orders.avsc": None,
            "namespaces/sales.yaml": "namespace: shop/web\n",
        }
    )
    # It was declared before, so that `import` needs another repository.
    project = (any_estate.scratch.path / "schemactl.yaml").read_text()
    project = project.replace(".schemactl/", f"{any_estate.scratch.path}/.schemactl/")
    scratch = Scratch(tmp_path / "imported")
    scratch.commit({"schemactl.yaml": project, "namespaces/x.yaml": "namespace: shop/sales\n"})
    imported = make_estate(scratch)
    imported.run("import", "--target", "local")
    [path] = scratch.path.rglob("orders.yaml")
    assert path.read_text().startswith(f"topic: {SCALABLE}\n")
    scratch.configure_author()
    scratch.git("add", "-A")
    scratch.git("commit", "-q", "-m", "Import")
    imported.run("check")
    steps = run_json(imported, "plan")["steps"]
    assert [step for step in steps if step.get("topic") == SCALABLE] == []


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (PERSISTENT, SCALABLE, "migrate it first"),
        (SCALABLE, PERSISTENT, "and shares the schemas of this name, so `apply` does not create this topic"),
    ],
)
def test_a_topic_that_moves_is_compared_and_not_created_over_the_other(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    estate = Estate(tmp_path / "shop", project=write_project(), orders=write_declaration(old))
    estate.run("apply", "--yes")
    estate.scratch.commit({"namespaces/orders.yaml": write_declaration(new)})
    assert why in estate.run("plan", code=100).out
    estate.run("apply", "--yes", code=100)
    with closing(
        EmbeddedRegistry(str(estate.scratch.path / ".schemactl/registry.db"), release=Release.R5_0)
    ) as registry:
        assert [str(name) for name in registry.topics()] == [old]
        assert len(registry.versions(NAME)) == 1
    # Nothing advises to delete the schemas, which the new declaration shares.
    assert "--allow-delete" not in estate.run("drift").out
    estate.scratch.commit({"namespaces/orders.avsc": record("id", "needed")}, branch="work", start=2)
    estate.scratch.flush()
    estate.scratch.git("checkout", "-q", "work")
    assert "version 0, will be 1" in estate.run("check", "--base", "main", code=100).out


def test_an_older_release_has_no_scalable_topics(tmp_path: Path) -> None:
    with closing(EmbeddedRegistry(str(tmp_path / "registry.db"), release=Release.R4_2)) as registry:
        registry.create_namespace(NAME.namespace_name)
        with pytest.raises(RegistryError, match=r"Pulsar 4\.2 does not support scalable topics"):
            registry.create_topic(NAME, None)


@pytest.mark.network
def test_the_server_answers_like_a_broker(tmp_path: Path) -> None:
    """The answers are from 5.0.1."""
    with serve(tmp_path, "5.0") as url, closing(admin_rest.Client(url)) as client:
        client.call("PUT", "/tenants/t", {"allowedClusters": ["standalone"], "adminRoles": []})
        client.call("PUT", "/namespaces/t/n", {})
        path = "/scalable/t/n/a"
        assert client.call("GET", "/scalable/t/n").json() == []
        assert client.call("GET", "/scalable/t/none").json() == []
        assert client.call("GET", path).status == 404
        assert client.call("PUT", path).status == 204
        again = client.call("PUT", path)
        assert (again.status, again.json()["reason"]) == (409, "Scalable topic already exists: topic://t/n/a")
        assert client.call("GET", path).json()["nextSegmentId"] == 1
        assert client.call("GET", "/scalable/t/n").json() == ["topic://t/n/a"]
        assert client.call("GET", "/persistent/t/n").json() == []
        assert client.call("DELETE", "/namespaces/t/n").status == 409
        schema = {"type": "STRING", "schema": "", "properties": {}}
        assert client.call("POST", "/schemas/t/n/a/schema", schema).status == 200
        assert client.call("DELETE", path).status == 204
        missing = client.call("DELETE", path)
        assert (missing.status, missing.json()["reason"]) == (404, "Scalable topic not found: topic://t/n/a")
        assert client.call("GET", "/schemas/t/n/a/schemas").json() == {"getSchemaResponses": []}
        with closing(PulsarRegistry(url)) as registry:
            registry.create_topic(TopicName("t", "n", "a"), None)
            with pytest.raises(RegistryError, match="would share its schemas"):
                registry.create_topic(TopicName("t", "n", "a", "topic"), None)


@pytest.mark.network
def test_a_server_of_an_older_release_has_no_such_paths(tmp_path: Path) -> None:
    with serve(tmp_path, "4.2") as url, closing(admin_rest.Client(url)) as client:
        assert client.call("GET", "/scalable/t/n").status == 404


def test_a_generation_stays_and_none_begins(tmp_path: Path) -> None:
    old = write_declaration(PERSISTENT, more="generation: 2\n")
    estate = Estate(tmp_path / "shop", project=write_project(), orders=old)
    for generation, code, message in (
        (2, 0, "version 1 again"),
        (3, 100, "`apply` cannot begin one for a scalable topic"),
    ):
        declaration = write_declaration(SCALABLE, more=f"generation: {generation}\n")
        estate.scratch.commit({"namespaces/orders.yaml": declaration}, branch=f"g{generation}", start=1)
        estate.scratch.flush()
        estate.scratch.git("checkout", "-q", f"g{generation}")
        assert message in estate.run("check", "--base", "main", code=code).out


def test_a_file_is_uploaded_and_its_number_recorded_under_the_name(estate: Estate, tmp_path: Path) -> None:
    estate.scratch.commit({"schemactl.yaml": write_project(pulsar="4.0", more=', pulsar: "5.0"')})
    estate.run("apply", "--yes")
    file = tmp_path / "order.avsc"
    file.write_text(record("id", other=0))
    selection = (SCALABLE, "--target", "local", "--file", str(file))
    assert "stores it as version 1" in estate.run("registry", "test", *selection).out
    assert "stored as version 1" in estate.run("registry", "put", *selection).out
    estate.accept()
    assert f"\n{SCALABLE}:\n  1: {{foreign: " in (estate.scratch.path / "numbers/local.yaml").read_text()
    estate.run("drift", "--detailed-exitcode")
    estate.run("plan", "--detailed-exitcode")


def test_a_generated_package_has_the_topic(estate: Estate) -> None:
    estate.scratch.commit({"schemactl.yaml": write_project() + "generate: {package: shop_schemas, out: generated}\n"})
    estate.run("generate")
    module = estate.scratch.path / "generated/shop_schemas/shop/sales/orders.py"
    assert SCALABLE in module.read_text()
