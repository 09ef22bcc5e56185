"""Fields of several writers in one order."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from schemactl.codec.lane_schedule import schedule

WRITERS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=8).map(tuple), min_size=1, max_size=5).map(
    tuple
)


@given(WRITERS)
def test_every_writer_s_fields_are_read_once_and_in_order(writers: tuple[tuple[str, ...], ...]) -> None:
    read: list[list[str]] = [[] for _ in writers]
    for turn, place in schedule(writers):
        field = writers[turn[0]][place]
        for writer in turn:
            read[writer].append(field)
    assert [tuple(fields) for fields in read] == list(writers)


def test_what_is_written_alike_is_read_in_one_turn() -> None:
    versions = (tuple("abc"), tuple("aBc"), tuple("aBcd"), tuple("xaBcd"))
    turns = schedule(versions)
    assert len(turns) == 6
    for (_, _), (writers, _) in pairwise(turns):
        assert writers
