"""What all workers can run together: counted as they come and go, the same as a count of all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.headcount import Headcount

KEYS = st.sampled_from("abcd")
TYPES = st.frozensets(st.integers(1, 5))
SLOTS = st.dictionaries(st.integers(1, 3), st.integers(0, 4))
STEPS = st.one_of(
    st.tuples(st.just("count"), KEYS, TYPES, SLOTS),
    st.tuples(st.just("forget"), KEYS, TYPES, SLOTS),
    st.tuples(st.sampled_from(["forget_all", "look"]), KEYS, TYPES, SLOTS),
)


@given(st.lists(STEPS, max_size=30))
def test_it_is_the_same_as_a_count_of_all(
    steps: list[tuple[str, str, frozenset[int], dict[int, int]]],
) -> None:
    headcount, said = Headcount(), dict[str, tuple[frozenset[int], dict[int, int]]]()
    capacity, types = dict[int, int](), frozenset[int]()
    for what, key, key_types, slots in [*steps, ("look", "a", frozenset[int](), {})]:
        if what == "count":
            headcount.count(key, key_types, slots)
            said[key] = key_types, slots
        elif what == "forget":
            headcount.forget(key)
            said.pop(key, None)
        elif what == "forget_all":
            headcount.forget_all()
            said.clear()
        else:
            changes = headcount.changes()
            capacity |= changes.capacity
            types = types if changes.types is None else changes.types
            for pool in (1, 2, 3):
                assert capacity.get(pool, 0) == sum(one[1].get(pool, 0) for one in said.values())
            assert types == frozenset().union(*(one[0] for one in said.values()))


def test_one_more_worker_of_the_same_kind_changes_no_types() -> None:
    headcount = Headcount()
    headcount.count("a", {1, 2}, {1: 4})
    assert headcount.changes() == ({1: 4}, frozenset({1, 2}))
    headcount.count("b", {1, 2}, {1: 4})
    assert headcount.changes() == ({1: 8}, None)
    headcount.count("b", {1, 2}, {1: 4})
    assert headcount.changes() == ({}, None)
    headcount.forget("a")
    assert headcount.changes() == ({1: 4}, None)
