"""A line of the audit: only what differs, without secrets, and never longer than it may be."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.audit import (
    DETAIL_MAX,
    MORE,
    NAME_MAX,
    SIDE_BYTES_MAX,
    SUBJECT_MAX,
    Act,
    Actor,
    line_of,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=4,
)
fields = st.dictionaries(st.text(max_size=100), values, max_size=4)


@given(fields, fields, st.text(max_size=300).map(lambda text: 5 * text))
def test_a_line_is_small_and_the_store_takes_it(
    before: dict[str, Any], after: dict[str, Any], text: str
) -> None:
    line = line_of(Actor(text, text), Act("act", text, None, before, after, text))
    for side in (line.before, line.after):
        assert len(side) <= SIDE_BYTES_MAX + 100
        assert isinstance(json.loads(side), dict)
        assert side.isascii()
    for word, most in (
        (line.actor, NAME_MAX),
        (line.subject, SUBJECT_MAX),
        (line.detail, DETAIL_MAX),
    ):
        assert len(word) <= most
        assert "\x00" not in word
        word.encode("utf-8")


@given(fields)
def test_what_stayed_the_same_is_left_out(same: dict[str, Any]) -> None:
    line = line_of(Actor("k"), Act("act", "s", None, same | {"w": 1}, same | {"w": 2}))
    assert (json.loads(line.before), json.loads(line.after)) == ({"w": 1}, {"w": 2})


def test_a_field_that_is_new_or_gone_is_on_its_side() -> None:
    line = line_of(Actor("k"), Act("act", "s", None, {"old": 1}, {"new": None}))
    assert (line.before, line.after) == ('{"old":1}', '{"new":null}')


def test_secrets_are_hidden() -> None:
    line = line_of(Actor("k"), Act("a", "s", None, {}, {"password": "x1"}, "token=x1"))
    assert "x1" not in str(line)


def test_a_huge_value_is_cut_and_hides_no_other() -> None:
    line = line_of(Actor("k"), Act("a", "s", None, {}, {"schema": "x" * 10**6, "weight": 3}))
    kept = json.loads(line.after)
    assert kept["weight"] == 3
    assert "1000002 bytes" in kept["schema"]


def test_too_many_fields_are_counted() -> None:
    line = line_of(Actor("k"), Act("a", "s", None, {}, {f"f{n}": "x" * 400 for n in range(50)}))
    kept = json.loads(line.after)
    assert kept[MORE] == f"{50 - (len(kept) - 1)} more"
