"""The cache of a site cannot run code."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from schemactl.core.names import TopicName
from schemactl.publish import restricted_pickle

ORDERS = TopicName("shop", "sales", "orders")


class Command:
    """A value that runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


def test_built_in_values_and_listed_classes_are_read() -> None:
    value = {"orders": (1, None, frozenset({"a"})), "names": [ORDERS]}
    assert restricted_pickle.loads(pickle.dumps(value), [TopicName]) == value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_command_does_not_run(tmp_path: Path, protocol: int) -> None:
    forged = pickle.dumps([Command(f"touch {tmp_path}/ran")], protocol)
    with pytest.raises(pickle.UnpicklingError, match="is not a listed class"):
        restricted_pickle.loads(forged, [TopicName])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(pickle.dumps(ORDERS), id="a class that is not listed"),
        pytest.param(pickle.dumps([1, 2, 3])[:-3], id="a truncated file"),
        pytest.param(b"", id="an empty file"),
        pytest.param(b"\x80\x04garbage", id="other bytes"),
        pytest.param(b"h\x09.", id="a reference to nothing"),
    ],
)
def test_other_content_is_an_error(content: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError):
        restricted_pickle.loads(content)
