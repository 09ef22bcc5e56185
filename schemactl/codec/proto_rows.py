"""The rows of a batch of protobuf messages, and which of them columns do not tell everything about (see `proto_plan`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from .lanes import Ints, Mask
from .proto_plan import Field


class Rows:
    """The rows of a batch; `bad` are those for the path that takes one message at a time."""

    def __init__(self, bad: Mask) -> None:
        self.bad = bad

    def judge(self, fields: Sequence[Field], arrays: Sequence[pa.Array], rows: Ints, there: Mask) -> None:
        """Bad are messages that lack a required field, or have two members of a oneof.

        Args:
            fields: of the messages.
            arrays: what each field holds, null where it is not there.
            rows: whose each message is.
            there: which are messages at all.
        """
        groups: dict[str, Ints] = {}
        for field, array in zip(fields, arrays, strict=True):
            part = field.part
            if part.oneof is not None:
                known = groups.setdefault(part.oneof, np.zeros(len(rows), np.int64))
                known += np.asarray(array.is_valid())
            if part.required:
                self.bad[rows[there & np.asarray(array.is_null())]] = True
        for known in groups.values():
            self.bad[rows[known > 1]] = True
