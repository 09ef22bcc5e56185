"""`schemactl rebuild`: a registry that lost its schemas gets them back under the numbers they had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from estate import Estate
from scenarios import Scenario, read_scenarios, run_scenario

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scenario", read_scenarios(__file__))
def test_a_registry_that_lost_its_schemas_is_rebuilt(scenario: Scenario, tmp_path: Path) -> None:
    run_scenario(scenario, tmp_path)


@pytest.fixture(scope="module")
def module_estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Apply two versions of orders."""
    estate = Estate(tmp_path_factory.mktemp("prepared") / "shop")
    estate.commit_orders("id", note=0)
    estate.run("apply", "--auto-approve")
    return estate


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a file with version numbers: it is not JSON"),
        ("[]", "is not a file with version numbers"),
        ('{"format_version": 9, "target": "local", "topics": []}', "has format 9; this schemactl reads 1"),
        ('{"format_version": 1, "target": "prod", "topics": []}', "was written for the target prod"),
        (
            '{"format_version": 1, "target": "local", "topics": null}',
            "contains no version numbers, because the registry could not be read when the file was written",
        ),
        (
            '{"format_version": 1, "target": "local", "topics": [{}]}',
            "does not have the format of version numbers that schemactl writes: `topics[0].topic` is missing",
        ),
    ],
)
def test_a_file_that_is_something_else_is_one_clear_error(estate: Estate, text: str, message: str) -> None:
    (estate.scratch.path / "bad.json").write_text(text)
    assert message in estate.run("rebuild", "bad.json", code=1).err
    estate.run("rebuild", "missing.json", code=1)


def test_numbers_out_of_order_are_refused(estate: Estate) -> None:
    note = json.loads(estate.run("drift", "--format", "json").out)
    note["topics"][0]["versions"].reverse()
    (estate.scratch.path / "numbers.json").write_text(json.dumps(note))
    estate.run("rebuild", "numbers.json", code=1)
