"""Which objects are here, told without git."""

from __future__ import annotations

from pathlib import Path

import pytest
from scratch import Scratch

from schemactl.history.stock import Stock


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_packed_loose_and_borrowed_objects_are_here_and_no_others(tmp_path: Path, object_format: str) -> None:
    lender = Scratch(tmp_path / "lender", object_format=object_format)
    lender.commit({f"f{number}": str(number) for number in range(600)})
    lender.git("repack", "-adq")
    lender.write({"loose": "loose"})
    lender.git("add", "loose")
    borrower = tmp_path / "borrower"
    lender.git("clone", "-q", "--shared", "--no-checkout", str(lender.path), str(borrower))
    listed = lender.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert len(listed) > 600
    # Every object's neighbour in the order of ids, too, the first and the last byte among them.
    others = {f"{int(each, 16) ^ 1:0{len(each)}x}" for each in listed}
    others |= {digit * len(listed[0]) for digit in "0f"}
    for objects in (lender.path / ".git" / "objects", borrower / ".git" / "objects"):
        stock = Stock(objects, object_format)
        assert stock.lacks(listed) == set()
        assert stock.lacks([*others, listed[0]]) == others - set(listed)


def test_an_index_that_is_cut_off_or_gone_lists_nothing(tmp_path: Path) -> None:
    packs = tmp_path / "pack"
    packs.mkdir()
    (packs / "empty.idx").touch()
    (packs / "short.idx").write_bytes(b"\xfftOc\x00\x00\x00\x02\x00\x00")
    (packs / "gone.idx").symlink_to(tmp_path / "nowhere")
    assert Stock(tmp_path, "sha1").lacks(["0" * 40]) == {"0" * 40}
