"""A plan file says what Git and the registry say, or nothing of it is carried out, whatever its digest."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from estate import ORDERS, Estate, avro

from schemactl.core.errors import SchemactlError
from schemactl.core.names import TopicName
from schemactl.core.policies import CompatibilityStrategy, Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.deploy.plan_file import read

pytestmark = pytest.mark.slow

LEGACY = TopicName("shop", "sales", "legacy")
STRING = SchemaInfo(SchemaType.STRING)
LEGACY_TEXT = "topic: shop/sales/legacy\nschema: {type: STRING}\n"

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Orders has a second version that is not applied; legacy is no longer declared, and still in the registry."""
    made = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    made.scratch.commit({"namespaces/legacy.yaml": LEGACY_TEXT})
    made.run("apply", "--auto-approve")
    made.scratch.commit({"namespaces/legacy.yaml": None})
    made.orders("id", note=0)
    return made


def planned(estate: Estate, *options: str, command: tuple[str, ...] = ("plan",)) -> Path:
    estate.run(*command, "--out", "plan.json", *options)
    return estate.scratch.path / "plan.json"


def forge(path: Path, change: Change) -> None:
    """The file is changed, and its checksum is that of what it says now."""
    told = json.loads(path.read_text())
    del told["checksum"]
    change(told)
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    checksum = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    path.write_text(json.dumps({**told, "checksum": checksum}))


def assert_refused(estate: Estate, *options: str, code: int = 1) -> str:
    before = estate.held(), estate.held(LEGACY)
    said = estate.run("apply", "plan.json", *options, code=code).err
    assert (estate.held(), estate.held(LEGACY)) == before
    assert "nothing was changed" in said
    return said


def upload(told: dict[str, Any]) -> dict[str, Any]:
    return next(step for step in told["steps"] if step["action"] == "register_version")


def altered_text(told: dict[str, Any]) -> None:
    upload(told)["schema"]["schema"] = avro("id", theirs=0).schema.decode()


def altered_doc(told: dict[str, Any]) -> None:
    """The same version by Pulsar's equality."""
    text = json.loads(upload(told)["schema"]["schema"])
    upload(told)["schema"]["schema"] = json.dumps({**text, "doc": "nobody approved this"})


def altered_stamp(told: dict[str, Any]) -> None:
    upload(told)["commit"]["id"] = "ab" * 20


def no_upload(told: dict[str, Any]) -> None:
    told["steps"].remove(upload(told))


def repeated(told: dict[str, Any]) -> None:
    told["steps"].append(upload(told))


def policy(told: dict[str, Any]) -> None:
    strategy = {"schema_compatibility_strategy": "ALWAYS_COMPATIBLE"}
    before = {"schema_compatibility_strategy": "BACKWARD"}
    step = {"action": "set_namespace_policies", "namespace": "shop/sales", "before": before, "after": strategy}
    told["steps"].insert(0, step)


def delete(name: TopicName, *, force: bool = True) -> Change:
    step = {"action": "delete_schema", "topic": str(name), "versions": [0], "force": force}
    return lambda told: told["steps"].append(step)


def elsewhere(told: dict[str, Any]) -> None:
    """A topic that Git never had."""
    told["scope"]["topics"].append("persistent://shop/sales/secret")
    told["steps"].append({"action": "create_topic", "topic": "persistent://shop/sales/secret", "partitions": None})


EVERY = int(os.environ.get("SCHEMACTL_FORGED_EVERY", "8"))
"""Of the values that may be absent, every so many is replaced on the way through the whole command; `make soak` replaces each."""
WRONG: list[Any] = [None, True, 7, 1.5, "text", [], {}, [[]], {"x": {}}]


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a JSON value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*way, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*way, key))


def assert_every_wrong_type_is_refused(estate: Estate) -> None:
    """`apply plan.json` with one value of another type, for every value, is one error, and does nothing."""
    path = estate.scratch.path / "plan.json"
    text = path.read_text()
    before = estate.held(), estate.held(LEGACY)
    told = json.loads(text)
    del told["checksum"]
    allowed = 0
    for way in places(told):
        *above, key = way

        def replace(told: dict[str, Any], by: Any, above: list[Any] = above, key: Any = key) -> None:
            for each in above:
                told = told[each]
            told[key] = by

        old = told
        for each in way:
            old = old[each]
        for wrong in (each for each in WRONG if type(each) is not type(old)):
            path.write_text(text)
            forge(path, lambda told, wrong=wrong, replace=replace: replace(told, wrong))  # type: ignore[misc]
            # What may be absent is of no wrong type then, and says something else than Git and the registry.
            is_allowed = old is None or wrong is None
            if not is_allowed:
                with pytest.raises(SchemactlError) as raised:
                    read(path)
                assert " is not a plan of schemactl: `" in raised.value.what or way == ("format_version",), (way, wrong)
                continue
            allowed += 1
            if allowed % EVERY:
                continue
            _, said, code = estate.run("apply", "plan.json", code=(0, 1, 3, 4))
            if way[0] == "lists" and code in (0, 3):
                # Nobody needs it, and the registry was empty.
                for file in (estate.scratch.path / ".schemactl").glob("registry.db*"):
                    file.unlink()
                continue
            assert code in (1, 4), (way, wrong, said)
            assert [row for row in said.split("\n") if row.startswith("schemactl: ")] == [said.split("\n")[0]]
            assert (estate.held(), estate.held(LEGACY)) == before, (way, wrong)


@pytest.mark.parametrize("options", [(), ("--allow-delete", "legacy", "--relax-while-replaying")])
def test_no_value_of_another_type_passes(estate: Estate, options: tuple[str, ...]) -> None:
    if options:
        estate.scratch.commit({"namespaces/sales.yaml": "namespace: shop/sales\n"})
        estate.scratch.commit({"namespaces/new.yaml": LEGACY_TEXT.replace("legacy", "new") + "partitions: 3\n"})
        estate.orders("id", "needed")
    planned(estate, *options)
    assert_every_wrong_type_is_refused(estate)


def test_no_value_of_another_type_in_a_rebuild_passes(lost: Estate) -> None:
    rebuilding(lost)
    assert_every_wrong_type_is_refused(lost)


def as_a_rebuild(told: dict[str, Any]) -> None:
    told["lists"] = []
    delete(ORDERS)(told)


@pytest.mark.parametrize(
    "change",
    [altered_text, altered_doc, altered_stamp, no_upload, repeated, policy, elsewhere],
    ids=lambda change: change.__name__,
)
def test_steps_that_git_does_not_give_are_refused(estate: Estate, change: Change) -> None:
    forge(planned(estate), change)
    said = assert_refused(estate)
    assert "does not match Git and the registry" in said
    assert "Fix: make it again: schemactl plan --target local --out plan.json" in said


def test_a_declared_topic_is_deleted_by_no_plan(estate: Estate) -> None:
    forge(planned(estate), delete(ORDERS))
    assert "deletes the schema of persistent://shop/sales/orders by force" in assert_refused(estate)
    said = assert_refused(estate, "--force-delete", "orders", code=4)
    assert "which is declared" in said


def test_a_rebuild_that_nobody_asked_for_deletes_nothing(estate: Estate) -> None:
    forge(planned(estate), as_a_rebuild)
    assert "by force" in assert_refused(estate)
    assert_refused(estate, "--force-delete", "orders")


@pytest.mark.parametrize("option", ["--allow-delete", "--force-delete"])
def test_what_is_deleted_is_allowed_where_it_is_carried_out_too(estate: Estate, option: str) -> None:
    advice = estate.run("plan", "--out", "plan.json", option, "legacy").err
    assert f"schemactl apply plan.json {option} shop/sales/legacy" in advice
    assert f"if that was reviewed: schemactl apply plan.json {option}" in assert_refused(estate)
    other = "--force-delete" if option == "--allow-delete" else "--allow-delete"
    estate.run("apply", "plan.json", other, "legacy", code=64)
    estate.run("apply", "plan.json", option, "legacy")
    assert estate.held(LEGACY) == ([] if option == "--force-delete" else [STRING, None])


def test_deletions_that_were_not_planned_are_refused(estate: Estate) -> None:
    """A soft one that becomes one by force, and one that was added: allowed nowhere, or only as it was planned."""
    path = planned(estate, "--allow-delete", "legacy")
    forge(path, lambda told: told["steps"][-1].update(force=True))
    assert_refused(estate)
    estate.run("apply", "plan.json", "--allow-delete", "legacy", code=64)
    forge(planned(estate), delete(LEGACY))
    assert_refused(estate)


def test_the_digest_that_was_reviewed_allows_what_the_plan_does(estate: Estate) -> None:
    path = planned(estate, "--force-delete", "legacy")
    digest = json.loads(path.read_text())["digest"]
    text = path.read_text()
    forge(path, altered_text)
    assert_refused(estate, "--expect-digest", digest, code=4)
    path.write_text(text)
    estate.run("apply", "plan.json", "--expect-digest", digest)
    assert estate.held(LEGACY) == []


def test_relaxing_is_allowed_where_it_is_carried_out_too(estate: Estate) -> None:
    estate.orders("id", "needed")
    planned(estate, "--relax-while-replaying")
    assert "under ALWAYS_COMPATIBLE" in assert_refused(estate)
    estate.run("apply", "plan.json", "--relax-while-replaying")
    assert estate.held()[-1] == avro("id", "needed")


def test_a_plan_of_another_repository_is_refused(estate: Estate, tmp_path: Path) -> None:
    other = Estate(tmp_path / "other")
    other.orders("id", theirs=0)
    text = planned(other).read_text()
    (estate.scratch.path / "plan.json").write_text(text)
    assert "not in the approved history" in estate.run("apply", "plan.json", code=1).err
    # With one's own commit, its steps are still the other's.
    own = json.loads(planned(estate).read_text())
    (estate.scratch.path / "plan.json").write_text(text)
    forge(
        estate.scratch.path / "plan.json",
        lambda told: told.update({key: own[key] for key in ("approved", "scope", "state")}),
    )
    assert "does not match Git and the registry" in assert_refused(estate)
    assert estate.held() == [avro("id")]


def test_a_plan_of_a_branch_that_is_not_approved_is_refused(estate: Estate) -> None:
    estate.scratch.flush()
    estate.scratch.git("switch", "-qc", "proposed")
    estate.scratch.write({"namespaces/orders.avsc": avro("id", theirs=0).schema})
    estate.scratch.git("add", "-A")
    estate.scratch.git("commit", "-qm", "nobody looked at this")
    project = estate.scratch.path / "schemactl.yaml"
    text = project.read_text()
    project.write_text(text + "approved: proposed\n")
    estate.run("plan", "--out", "plan.json", "--trust-working-tree")
    project.write_text(text)
    assert "not in the approved history" in estate.run("apply", "plan.json", code=1).err
    assert estate.held() == [avro("id")]


def test_an_older_approved_commit_still_counts(estate: Estate) -> None:
    planned(estate)
    estate.orders("id", note=0, city=0)
    estate.run("apply", "plan.json")
    assert estate.held() == [avro("id"), avro("id", note=0)]


def test_what_was_declared_again_since_is_not_deleted(estate: Estate) -> None:
    planned(estate, "--force-delete", "legacy")
    estate.scratch.commit({"namespaces/legacy.yaml": LEGACY_TEXT})
    said = assert_refused(estate, "--force-delete", "legacy", code=4)
    assert "which is declared" in said


def test_a_plan_of_some_topics_is_worked_out_for_these(estate: Estate) -> None:
    estate.scratch.commit({"namespaces/other.yaml": LEGACY_TEXT.replace("legacy", "other")})
    planned(estate, "--topic", "*/orders")
    estate.run("apply", "plan.json")
    assert estate.held() == [avro("id"), avro("id", note=0)]
    assert estate.held(TopicName("shop", "sales", "other")) == []


@pytest.fixture
def lost(estate: Estate) -> Estate:
    """The registry lost what `list.json` tells of: Git's v0, somebody else's v1, and Git's v1 as v2."""
    assert estate.put(avro("id", theirs=0)) == [1]
    estate.run("apply", "--auto-approve", code=3)
    assert estate.held() == [avro("id"), avro("id", theirs=0), avro("id", note=0)]
    (estate.scratch.path / "list.json").write_text(estate.run("drift", "--format", "json", code=100).out)
    for file in (estate.scratch.path / ".schemactl").glob("registry.db*"):
        file.unlink()
    return estate


def rebuilding(estate: Estate, *options: str) -> Path:
    estate.run("rebuild", "list.json", "--out", "plan.json", *options, code=100)
    return estate.scratch.path / "plan.json"


def test_a_plan_of_a_rebuild_is_carried_out(lost: Estate) -> None:
    out = lost.run("rebuild", "list.json", "--out", "plan.json", code=100).out
    assert f"Digest: {lost.json('plan.json')['digest']}\n" in out
    (lost.scratch.path / "list.json").unlink()
    lost.run("apply", "plan.json", code=3)
    assert lost.held() == [avro("id"), avro("id", theirs=0), avro("id", note=0)]


def list_of(told: dict[str, Any]) -> list[dict[str, Any]]:
    [topic] = [each for each in told["lists"] if each["topic"] == str(ORDERS)]
    versions: list[dict[str, Any]] = topic["versions"]
    return versions


def gits_text(told: dict[str, Any]) -> None:
    """The text of Git's v1, in the list and in its upload."""
    text = {"type": "AVRO", "schema": avro("id", evil=0).schema.decode(), "properties": {}}
    next(entry for entry in list_of(told) if entry["git"] == 1)["schema"] = text
    told["steps"][-1]["schema"] = text


def foreign_text(told: dict[str, Any]) -> None:
    """The upload of what Git does not know says something else than the list."""
    upload_of = [step for step in told["steps"] if step["action"] == "register_version"]
    upload_of[1]["schema"]["schema"] = avro("id", evil=0).schema.decode()


def other_order(told: dict[str, Any]) -> None:
    told["steps"][-1], told["steps"][-2] = told["steps"][-2], told["steps"][-1]


def without_list(told: dict[str, Any]) -> None:
    del told["lists"]


@pytest.mark.parametrize(
    "change", [gits_text, foreign_text, other_order, without_list], ids=lambda change: change.__name__
)
def test_a_plan_of_a_rebuild_brings_back_gits_texts_and_the_lists(lost: Estate, change: Change) -> None:
    forge(rebuilding(lost), change)
    lost.run("apply", "plan.json", code=1)
    assert lost.held() == []


def test_a_rebuild_that_deletes_first_is_allowed_where_it_is_carried_out_too(lost: Estate) -> None:
    with lost.registry() as registry:
        registry.create_namespace(ORDERS.namespace_name)
        registry.set_namespace_policies(ORDERS.namespace_name, Policies(CompatibilityStrategy.ALWAYS_COMPATIBLE))
    lost.put(avro("id", first=0))
    rebuilding(lost, "--force-delete", "orders")
    assert "by force" in assert_refused(lost)
    lost.run("apply", "plan.json", "--force-delete", "orders", code=3)
    assert lost.held() == [avro("id"), avro("id", theirs=0), avro("id", note=0)]


def test_a_plan_that_says_nothing_of_messages_that_would_be_misread(estate: Estate) -> None:
    estate.put(avro("id", theirs=0))
    estate.run("plan", "--out", "plan.json", code=100)
    path = estate.scratch.path / "plan.json"
    forge(path, lambda told: told["numbers_apart"].clear())
    assert_refused(estate)
    estate.run("plan", "--out", "plan.json", code=100)
    estate.run("apply", "plan.json", code=3)
