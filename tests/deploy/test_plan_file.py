"""Plan files: whole, checked, and refused with one clear error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from approved import A, B, S, orders, plan_for

from schemactl.core.errors import SchemactlError
from schemactl.core.policies import Policies
from schemactl.core.schema import SchemaInfo, SchemaType
from schemactl.deploy.plan_file import _checksum, read, write
from schemactl.deploy.steps import Plan
from schemactl.registry.embedded import EmbeddedRegistry


@pytest.fixture
def plan(registry: EmbeddedRegistry) -> Plan:
    return plan_for(registry, orders(A, B, sales=Policies(S.FULL)))


@pytest.fixture
def path(plan: Plan, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    write(plan, path)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(SchemactlError) as raised:
        read(path)
    assert raised.value.fix == f"make it again: schemactl plan --out {path}"
    assert raised.value.exit_code == 1
    return raised.value.what


def test_a_file_reads_back_as_the_plan(plan: Plan, path: Path) -> None:
    assert read(path) == plan
    assert [entry.name for entry in path.parent.iterdir()] == ["plan.json"]


def test_a_file_says_what_it_is(path: Path) -> None:
    told = json.loads(path.read_text())
    assert " ".join(told) == (
        "format_version schemactl target registry pulsar registry_version approved proposed state scope steps notes left_out "
        "numbers_apart numbers_apart_now whole digest checksum"
    )
    assert told["format_version"] == 1
    assert told["approved"] == {"ref": "main", "commit": {"id": "f" * 40, "time_s": 1_772_409_600, "subject": "tip"}}
    assert told["steps"][1] == {
        "action": "set_namespace_policies",
        "namespace": "shop/sales",
        "before": {"schema_compatibility_strategy": None},
        "after": {"schema_compatibility_strategy": "FULL"},
    }
    assert told["steps"][3]["schema"] == {"type": "AVRO", "schema": A.schema.decode(), "properties": {}}


def test_definitions_that_are_not_text_are_kept(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    broken = SchemaInfo(SchemaType.STRING, b"\xff\x00")
    odd = orders(SchemaInfo(SchemaType.STRING), schema=broken)
    plan = plan_for(registry, odd)
    write(plan, tmp_path / "plan.json")
    assert read(tmp_path / "plan.json") == plan


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told["steps"][3]["answer"].update(version=7),
        lambda told: told["steps"][1]["after"].update(schema_compatibility_strategy="ALWAYS_COMPATIBLE"),
        lambda told: told["steps"].pop(1),
        lambda told: told.update(comment="approved by me"),
    ],
    ids=["number", "policy", "removed", "added"],
)
def test_a_changed_file_is_refused(path: Path, change: Callable[[Any], object]) -> None:
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))
    assert refusal(path) == f"{path} was changed after it was written: its checksum does not fit"


def test_another_layout_of_the_same_plan_is_no_change(plan: Plan, path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert read(path) == plan


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[]", b"{}", b'"plan"', b"null", b'{"format_version": 1}', b"[" * 100_000]
)
def test_what_is_no_plan_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "is not a plan" in refusal(path)


def test_a_newer_format_is_refused_by_its_number(path: Path) -> None:
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "format_version": 2}))
    assert refusal(path) == f"{path} has format 2; this schemactl reads 1"


@pytest.mark.parametrize("damage", [{"steps": [{"action": "drop_everything"}]}, {"pulsar": "9.9"}])
def test_a_plan_of_another_program_is_refused(path: Path, damage: dict[str, Any]) -> None:
    told = {**json.loads(path.read_text()), **damage}
    del told["checksum"]
    path.write_text(json.dumps({**told, "checksum": _checksum(told)}))
    assert "is not a plan of schemactl" in refusal(path)


def test_a_file_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    assert refusal(path) == f"{path} cannot be read: No such file or directory"


def test_a_plan_that_cannot_be_written_leaves_nothing(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(SchemactlError, match="cannot be written: No such file or directory"):
        write(plan, tmp_path / "nowhere" / "plan.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SchemactlError, match="cannot be written: Is a directory"):
        write(plan, tmp_path / "folder")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
