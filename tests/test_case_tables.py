"""Tables of cases that are refused, because a case of them would not run or not be compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_tables import read_cases


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one: {old: 1, new: 2}\nother: {old: 1}\n", ""),
        ("one: {old: 1}\none: {old: 2}\n", r"keys more than once: \['one'\]"),
        ("one: {old: {a: 1, a: 2}}\n", r"keys more than once: \['a'\]"),
        ("one: {old: 1, nwe: 2}\n", "unknown keys in one"),
        ("one: {old: 1, base: 2}\n", "unknown keys in one"),
    ],
)
def test_a_table_has_each_key_once_and_only_the_keys_of_one_kind(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(text)
    if message:
        with pytest.raises(AssertionError, match=message):
            read_cases(path, {"old", "new"}, {"base"})
    else:
        assert [*read_cases(path, {"old", "new"}, {"base"})] == ["one", "other"]
