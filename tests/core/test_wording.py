"""The phrases that all reports share."""

from __future__ import annotations

import pytest

from schemactl.core.wording import describe_broken_versions, format_ranges, format_version_numbers


@pytest.mark.parametrize(
    ("values", "text"),
    [([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], "0-4"), ([5, 3, 1, 2], "1-3, 5"), ([7], "7"), ([7, 7], "7"), ([], "")],
)
def test_ranges_are_sorted_and_merged(values: list[int], text: str) -> None:
    assert format_ranges(values) == text


def test_a_number_that_is_given_twice_is_one_version() -> None:
    assert format_version_numbers([3, 3]) == "version 3"
    assert describe_broken_versions([3, 3]) == "Version 3 breaks too."
    assert describe_broken_versions([0, 1, 1]) == "Versions 0-1 break too."
