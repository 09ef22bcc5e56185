"""Which version of Git's each version number of a target stands for, where the two differ.

They differ where something other than `apply` took a number: somebody's upload, or a deletion. The difference is recorded in the
target's numbers file, which is read from the approved ref, with what else of the target is accepted. Whatever reads messages of a target goes by `target_versions`, never
by Git's numbers alone.
"""

from __future__ import annotations

from schemactl.target_numbers.acceptance import Acceptance, AcceptanceReason, joined
from schemactl.target_numbers.apart import (
    NumberApart,
    TopicApart,
    apart_values,
    find_apart,
    lost_numbers,
    other_spellings,
    read_apart,
    topic_apart,
    twin_of,
)
from schemactl.target_numbers.file import numbers_of, numbers_path, read_numbers, recorded_elsewhere
from schemactl.target_numbers.judging import JudgedNumbers, judge_files
from schemactl.target_numbers.mapping import (
    NumberEntry,
    TargetNumbers,
    TargetVersion,
    TopicNumbers,
    records_other_numbers,
    target_number,
    target_versions,
)
from schemactl.target_numbers.on_target import expect_agreement, numbered
from schemactl.target_numbers.writing import accept

__all__ = [
    "Acceptance",
    "AcceptanceReason",
    "JudgedNumbers",
    "NumberApart",
    "NumberEntry",
    "TargetNumbers",
    "TargetVersion",
    "TopicApart",
    "TopicNumbers",
    "accept",
    "apart_values",
    "expect_agreement",
    "find_apart",
    "joined",
    "judge_files",
    "lost_numbers",
    "numbered",
    "numbers_of",
    "numbers_path",
    "other_spellings",
    "read_apart",
    "read_numbers",
    "recorded_elsewhere",
    "records_other_numbers",
    "target_number",
    "target_versions",
    "topic_apart",
    "twin_of",
]
