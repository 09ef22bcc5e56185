"""JSON in pieces is the JSON as a whole."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from schemactl.core.json_values import Json, json_pieces, json_text

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), values, max_size=5))
def test_the_pieces_of_an_object_are_its_text(value: Json) -> None:
    text = "".join(json_pieces(value))
    assert text == json_text(value)
    assert json.loads(text) == value
