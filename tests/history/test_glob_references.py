"""Files that many topics reference by a glob are read once, however many topics and commits there are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from command import schemactl
from scratch import Scratch

from schemactl.history.git import Repository

PROJECT = "version: 1\nroots: [topics]\napproved: main\n"
TYPE = '{"type": "record", "name": "T%d", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}'
TOPIC = """\
topic: shop/sales/x{number}
schema:
  type: AVRO
  references: ["types/*.avsc"]
  definition: {{type: record, name: X, fields: [{{name: t, type: shop.T{number}}}]}}
"""


@pytest.mark.parametrize("is_one_commit", [True, False])
def test_each_file_is_read_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_one_commit: bool) -> None:
    scratch = Scratch(tmp_path / "repository")
    scratch.commit(
        {"schemactl.yaml": PROJECT, **{f"topics/types/t{number}.avsc": TYPE % number for number in range(8)}}
    )
    scratch.git("checkout", "-q", "-b", "work")
    topics = {f"topics/x{number}.yaml": TOPIC.format(number=number) for number in range(8)}
    for files in [topics] if is_one_commit else [{path: text} for path, text in topics.items()]:
        scratch.commit(files, branch="work")
    scratch.flush()
    reads: Counter[str] = Counter()
    read_blob = Repository.blob

    def count(repository: Repository, blob_id: str) -> object:
        reads[blob_id] += 1
        return read_blob(repository, blob_id)

    monkeypatch.setattr(Repository, "blob", count)
    schemactl(scratch, "check", "--base", "main")
    types = [scratch.git("rev-parse", f"main:topics/types/t{number}.avsc").strip() for number in range(8)]
    assert max(reads[blob_id] for blob_id in types) <= 5
