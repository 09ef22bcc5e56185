"""Tables of cases in YAML: a name is there once, and a case has the keys of its kind and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import yaml


class _Loader(yaml.CSafeLoader):
    """A loader that refuses a mapping with the same key twice, of which YAML keeps the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  as in its base class
        counts = Counter(key.value for key, _ in node.value)
        repeated_keys = [key for key, count in counts.items() if count > 1]
        assert not repeated_keys, f"keys more than once: {repeated_keys}\n{node.start_mark}"
        return super().construct_mapping(node, deep)


def read_cases(path: Path, *kinds: AbstractSet[str]) -> dict[str, Any]:
    """Return the cases of a file by their names.

    Args:
        path: the file.
        kinds: the keys of the cases of each kind; without kinds, a case may have any keys.
    """
    with path.open("rb") as file:
        cases: dict[str, Any] = yaml.load(file, _Loader)  # noqa: S506  a safe loader
    for name, case in cases.items():
        assert not kinds or any(case.keys() <= keys for keys in kinds), f"unknown keys in {name}: {[*case]}\n{path}"
    return cases
