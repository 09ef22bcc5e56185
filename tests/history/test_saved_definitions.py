"""After every kind of change, the history is the same with saved definitions and without."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from readings import PROJECT, clone, read_commands
from scratch import Files, Scratch, record, write_declaration

from schemactl.core.catalog import Catalog, Topic
from schemactl.core.edits import AddAlias
from schemactl.core.schema import SchemaInfo
from schemactl.formats import get_record_name
from schemactl.formats.digest import compute_text_digest
from schemactl.history.approved_history import History, read_history
from schemactl.history.git import Repository

pytestmark = pytest.mark.slow

TOPICS = 200
"""The number of topics from which on definitions are saved."""

USES_MONEY = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "Money"}]}'
REST = """\
topic: shop/sales/pairs
schema: {type: KEY_VALUE, key: {type: STRING}, value: {type: AVRO, definition: views.avsc}}
---
topic: shop/sales/views
partitions: 3
retention_policies: {retentionSizeInMB: 10, retentionTimeInMinutes: 60}
owner: team-sales
deprecated: {remove_after: 2030-01-31}
schema: {type: JSON, definition: views.avsc}
clients:
- {name: reports, role: consumer, schema: 0, language: java}
---
topic: shop/sales/texts
schema: {type: STRING}
---
topic: shop/sales/events
schemas:
  clicked: {type: AVRO, definition: clicks.avsc}
  viewed: {type: AVRO, definition: views.avsc}
---
topic: shop/sales/drafts
lifecycle: draft
"""
FILES: Files = {
    "topics/namespace.yaml": "namespace: shop/sales\nschema_properties: {origin: web}\n",
    "topics/orders.yaml": write_declaration(more="  references: [../money.avsc]\n"),
    "topics/orders.avsc": USES_MONEY,
    "money.avsc": record("amount", name="Money"),
    "topics/refunds.yaml": write_declaration("shop/sales/refunds", more="  references: [../shared/]\n"),
    "shared/money.avsc": record("amount", name="Money"),
    "topics/rest.yaml": REST,
    "topics/views.avsc": record("id", name="View"),
    "topics/clicks.avsc": record("id", name="Click"),
    "topics/many.yaml": "---\n".join(f"topic: shop/sales/t{number:03}\n" for number in range(TOPICS)),
}
CHANGES: dict[str, Files] = {
    "a doc": {"topics/views.avsc": record("id", name="View", doc="A view.")},
    "a field": {"topics/clicks.avsc": record("id", "page", name="Click", page="")},
    "a referenced type": {"money.avsc": record("amount", name="Money", doc="In cents.")},
    "default properties": {"topics/namespace.yaml": "namespace: shop/sales\nschema_properties: {origin: app}\n"},
    "a type of a folder": {"shared/money.avsc": record("amount", "currency", name="Money", currency="EUR")},
    "another file in the folder": {"shared/party.avsc": record("id", name="Party")},
    "a type twice in the folder": {"shared/second.avsc": record("amount", name="Money")},
    "a moved declaration": {
        "topics/rest.yaml": None,
        "topics/later/rest.yaml": REST.replace("views.avsc", "../views.avsc").replace("clicks.avsc", "../clicks.avsc"),
    },
    "a declaration that is back": {"topics/later/rest.yaml": None, "topics/rest.yaml": REST},
    "policies": {"topics/rest.yaml": REST.replace("partitions: 3", "partitions: 4")},
    "a removed topic": {"topics/orders.yaml": None},
    "a broken declaration": {"topics/orders.yaml": "topic: shop/sales/orders\nschema: {type: AVRO}\n"},
}


def read_catalog(repository: Repository, *, saved: bool) -> tuple[History, Catalog]:
    """Read the history with all its definitions, from Git or from the saved ones."""
    approved = read_history(repository, PROJECT)
    if saved:
        approved.read_ahead(approved.catalog.topics)
    catalog = Catalog(dict(approved.catalog.namespaces), dict(approved.catalog.topics)).load()
    approved.save_definitions()
    return approved, catalog


def list_definitions(catalog: Catalog) -> list[SchemaInfo]:
    """List the current definitions and the definitions of all versions."""
    return [
        info
        for topic in catalog.topics.values()
        for info in (
            topic.schema,
            *(kind.schema for kind in topic.kinds),
            *(version.info for version in topic.versions),
        )
        if info
    ]


def get_record_names(topic: Topic) -> list[str]:
    """Return the name of the record of each version."""
    return [get_record_name(version.info) for version in topic.versions if version.info]


@pytest.fixture
def repository(tmp_path: Path) -> Scratch:
    """A repository with many topics."""
    scratch = Scratch(tmp_path / "r")
    scratch.commit(FILES)
    scratch.flush()
    return scratch


def expect_equal(scratch: Scratch) -> None:
    """Expect equal values and places with and without saved definitions."""
    with Repository.open(scratch.path) as opened:
        _, expected = read_catalog(opened, saved=False)
        for _ in range(2):
            _, actual = read_catalog(opened, saved=True)
            assert actual == expected
            for name, topic in expected.topics.items():
                assert repr(actual.topics[name].source) == repr(topic.source)
                assert actual.topics[name].locate("/partitions") == topic.locate("/partitions")
                assert get_record_names(actual.topics[name]) == get_record_names(topic)
            digests = [info.text_digest for info in list_definitions(actual)]
            texts = [compute_text_digest(info) for info in list_definitions(expected)]
            assert all(digest in (None, text) for digest, text in zip(digests, texts, strict=True))
            edit = AddAlias("/fields/0", "former")
            for definition, other in zip(list_definitions(actual), list_definitions(expected), strict=True):
                assert repr(definition.source) == repr(other.source)
                assert definition.locate("/fields/0") == other.locate("/fields/0")
                if definition.schema:
                    assert definition.edit(edit) == other.edit(edit)


def test_saved_definitions_follow_every_change(repository: Scratch) -> None:
    expect_equal(repository)
    for subject, files in CHANGES.items():
        repository.commit(files, subject)
        repository.flush()
        expect_equal(repository)


def test_digests_of_texts_are_known_without_their_files(repository: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    with Repository.open(repository.path) as opened:
        _, expected = read_catalog(opened, saved=True)
    assert len(expected.topics) == TOPICS + 7
    requested_names: list[str] = []
    objects = Repository.objects

    def record_call(repository: Repository, names: list[str]) -> object:
        requested_names.extend(names)
        return objects(repository, names)

    monkeypatch.setattr(Repository, "objects", record_call)
    with Repository.open(repository.path) as opened:
        approved = read_history(opened, PROJECT)
        approved.read_ahead(approved.catalog.topics)
        infos = list_definitions(Catalog({}, dict(approved.catalog.topics)))
        texts = [compute_text_digest(info) for info in list_definitions(expected)]
        assert [info.text_digest for info in infos] == texts
        files = [path for path in FILES if repository.git("rev-parse", f"HEAD:{path}").strip() in requested_names]
        # It declares clients and the readers of kinds, which are not saved.
        assert files == ["topics/rest.yaml"]


def test_a_partial_clone_with_saved_digests_fetches_what_it_lacks_at_once(
    repository: Scratch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number in range(5):
        repository.commit({"topics/views.avsc": record("id", name="View", doc=str(number))})
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    trace = tmp_path / "trace"
    fetch_counts = []
    for _ in range(2):
        here = clone(repository, "--filter=blob:none", "--no-checkout")
        with monkeypatch.context() as patch:
            patch.setenv("GIT_TRACE2_EVENT", str(trace))
            with Repository.open(here.path) as opened:
                read_catalog(opened, saved=True)
        fetch_counts.append(sum("fetch" in argv for argv in read_commands(trace)))
        shutil.rmtree(here.path)
    first, second = fetch_counts
    assert 0 < second <= first


def test_digest_of_a_proto_text_is_known_in_the_form_of_one_language(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    declaration = (
        "topic: shop/sales/orders\nschema: {type: PROTOBUF_NATIVE, definition: orders.proto, message: shop.Order}\n"
    )
    text = 'syntax = "proto3";\npackage shop;\nmessage Order { string id = 1; }\n'
    scratch.commit({"topics/orders.yaml": declaration, "topics/orders.proto": text})
    scratch.flush()
    with Repository.open(scratch.path) as opened:
        _, expected = read_catalog(opened, saved=True)
    digests = [compute_text_digest(info) for info in list_definitions(expected)]
    scratch.commit({"topics/orders.yaml": f"{declaration}protobuf: {{rendering: go}}\n"})
    scratch.flush()
    for known_digests in (digests, [None, None]):
        with Repository.open(scratch.path) as opened:
            approved = read_history(opened, PROJECT)
            if known_digests is digests:
                approved = approved.view_until(approved.resolve_position("HEAD~1", ""))
            approved.read_ahead(approved.catalog.topics)
            infos = list_definitions(Catalog({}, dict(approved.catalog.topics)))
            assert [info.text_digest for info in infos] == known_digests


def test_digest_of_a_proto_text_is_known_for_the_include_folders_of_the_project(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "r")
    declaration = (
        "topic: shop/sales/orders\nschema: {type: PROTOBUF_NATIVE, definition: orders.proto, message: shop.Order}\n"
    )
    text = 'syntax = "proto3";\npackage shop;\nmessage Order { string id = 1; }\n'
    scratch.commit({"topics/orders.yaml": declaration, "topics/orders.proto": text})
    scratch.flush()
    texts: dict[str, bytes | None] = {}
    for prefix in ("web", "shop", "web"):
        with Repository.open(scratch.path) as opened:
            approved = read_history(opened, replace(PROJECT, include={prefix: "topics"}))
            approved.read_ahead(approved.catalog.topics)
            [version] = next(iter(approved.catalog.topics.values())).versions
            assert version.info
            assert version.info.text_digest == texts.get(prefix)
            texts[prefix] = compute_text_digest(version.info)
            approved.save_definitions()
    assert texts["web"] != texts["shop"]
