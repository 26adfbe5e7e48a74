"""Values of a body: counted cheaply, and never fewer than there are."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairway.wire.value_count import ENVELOPE_VALUES, VALUES_MAX, has_room, values_at_most

values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def beginnings(value: Any) -> int:
    """Containers, and what comes after the first in each."""
    if isinstance(value, dict):
        return 1 + max(len(value) - 1, 0) + sum(map(beginnings, value.values()))
    if isinstance(value, list):
        return 1 + max(len(value) - 1, 0) + sum(map(beginnings, value))
    return 0


@given(values)
def test_never_fewer_than_there_are(value: Any) -> None:
    assert values_at_most(json.dumps(value).encode()) >= beginnings(value)


@given(st.lists(st.integers()))
def test_without_text_it_is_their_number(value: list[int]) -> None:
    assert values_at_most(json.dumps(value).encode()) == max(len(value), 1)


def test_a_payload_has_room_up_to_the_most_and_not_beyond() -> None:
    most = VALUES_MAX - ENVELOPE_VALUES
    assert has_room(json.dumps([0] * most).encode())
    assert not has_room(json.dumps([0] * (most + 1)).encode())
    assert has_room(b'"' + b"x" * (10 * VALUES_MAX) + b'"'), "a long text is one value"
