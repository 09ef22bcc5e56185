"""`import` declares a topic with kinds of events where the names of its records alternate, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from command import schemactl
from scratch import Scratch, record

from schemactl.core.schema import SchemaInfo, SchemaType, SchemaVersion
from schemactl.deploy.registry_import import find_kinds

TOPIC = "persistent://shop/web/users"


def make_versions(names: list[str]) -> list[SchemaVersion]:
    """Return versions with records of these names, each with another content."""
    return [
        SchemaVersion(number, SchemaInfo(SchemaType.AVRO, record("id", f"f{number}", name=name).encode()))
        for number, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        ([], []),
        (["A"], []),
        (["A", "A"], []),
        (["A", "B"], []),
        (["A", "B", "C"], []),
        (["A", "A", "B", "B"], []),
        (["A", "B", "A"], ["a", "b", "a"]),
        (["A", "B", "B", "A", "C"], ["a", "b", "b", "a", "c"]),
        (["UserCreated", "URLSeen", "UserCreated"], ["user_created", "url_seen", "user_created"]),
        (["Class", "B", "Class"], ["class_2", "b", "class_2"]),
        (["_A1", "B", "_A1"], ["a1", "b", "a1"]),
        (["_", "B", "_"], ["kind", "b", "kind"]),
        (["web.User", "app.User", "web.User"], ["user", "user_2", "user"]),
        (["Größe", "B", "Größe"], ["gr_e", "b", "gr_e"]),
    ],
)
def test_names_that_alternate_are_kinds(names: list[str], keys: list[str]) -> None:
    assert [version.kind for version in find_kinds(make_versions(names))] == keys


def test_a_version_without_a_record_makes_no_kinds() -> None:
    versions = make_versions(["A", "B", "A"])
    text = SchemaVersion(3, SchemaInfo(SchemaType.STRING))
    assert find_kinds([*versions, text]) == []


@pytest.mark.parametrize("every_version", [True, False])
@pytest.mark.parametrize("alternates", [True, False])
def test_an_imported_topic_has_the_versions_of_its_registry(
    tmp_path: Path, *, alternates: bool, every_version: bool
) -> None:
    registry = f"sqlite:{tmp_path / 'registry.db'}"
    source = Scratch(tmp_path / "source")
    declaration = f"topic: {TOPIC}\nschema_compatibility_strategy: ALWAYS_COMPATIBLE\nschema: {{type: AVRO, definition: a.avsc}}\n"
    names = ["UserCreated", "UserMoved", "UserCreated" if alternates else "UserLeft"]
    project = f'version: 1\nroots: [topics]\ntargets: {{local: {{registry: "{registry}"}}}}\n'
    source.commit({"schemactl.yaml": project, "topics/a.yaml": "namespace: shop/web\n---\n" + declaration})
    for number, name in enumerate(names):
        source.commit({"topics/a.avsc": record("id", f"f{number}", name=name)}, f"v{number}")
    source.flush()
    schemactl(source.path, "apply", "--target", "local", "--yes")

    imported = Scratch(tmp_path / "imported")
    imported.configure_author()
    options = ["--commit-each-version"] if every_version else []
    printed = schemactl(imported.path, "import", "--registry", registry, "--target", "local", *options)
    value = yaml.safe_load((imported.path / "namespaces/shop/web/users.yaml").read_text())
    assert value.get("kinds_compatibility") is None
    if not alternates:
        assert value["schema"]["definition"] == "users.avsc"
        return
    assert "user_created, user_moved" in printed.out + printed.err
    assert list(value["schemas"]) == ["user_created", "user_moved"]
    if every_version:
        schemactl(imported.path, "drift", "--target", "local", "--detailed-exitcode")
        log = json.loads(schemactl(imported.path, "log", "users", "--format", "json").out)
        assert [version["kind"] for version in log["topics"][0]["versions"]] == [
            "user_created",
            "user_moved",
            "user_created",
        ]
