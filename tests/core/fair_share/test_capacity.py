"""What all workers can run together: counted as they come and go, the same as a count of all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.fair_share.capacity import Headcount, SlotOffer
from fairway.core.ids import PoolId, TenantId, TypeId

KEYS = st.sampled_from("abcd")
WHOSE = st.sampled_from([None, 1, 2])
SAID = st.builds(
    SlotOffer,
    WHOSE,
    st.frozensets(st.integers(1, 5)),
    st.dictionaries(st.integers(1, 3), st.integers(0, 4)),
)
NOTHING = SlotOffer(None, frozenset(), {})
STEPS = st.one_of(
    st.tuples(st.just("count"), KEYS, SAID),
    st.tuples(st.sampled_from(["forget", "forget_all", "look"]), KEYS, st.just(NOTHING)),
)


@given(st.lists(STEPS, max_size=30))
def test_it_is_the_same_as_a_count_of_all(steps: list[tuple[str, str, SlotOffer]]) -> None:
    headcount, said = Headcount(), dict[str, SlotOffer]()
    capacity, types = dict[PoolId, int](), dict[TenantId | None, frozenset[TypeId]]()
    for what, key, says in [*steps, ("look", "a", NOTHING)]:
        if what == "count":
            headcount.count(key, says)
            said[key] = says
        elif what == "forget":
            headcount.forget(key)
            said.pop(key, None)
        elif what == "forget_all":
            headcount.forget_all()
            said.clear()
        else:
            changes = headcount.changes()
            capacity |= changes.capacity
            types |= changes.types
            for pool in map(PoolId, (1, 2, 3)):
                assert capacity.get(pool, 0) == sum(one.slots.get(pool, 0) for one in said.values())
            for whose in (None, TenantId(1), TenantId(2)):
                theirs = (one.types for one in said.values() if one.tenant == whose)
                assert types.get(whose, frozenset()) == frozenset().union(*theirs)


def test_one_more_worker_of_the_same_kind_changes_no_types() -> None:
    headcount = Headcount()
    headcount.count("a", SlotOffer(None, {TypeId(1), TypeId(2)}, {PoolId(1): 4}))
    assert headcount.changes() == ({1: 4}, {None: frozenset({1, 2})})
    headcount.count("b", SlotOffer(None, {TypeId(1), TypeId(2)}, {PoolId(1): 4}))
    assert headcount.changes() == ({1: 8}, {})
    headcount.count("b", SlotOffer(None, {TypeId(1), TypeId(2)}, {PoolId(1): 4}))
    assert headcount.changes() == ({}, {})
    headcount.forget("a")
    assert headcount.changes() == ({1: 4}, {})


def test_what_a_tenants_own_worker_runs_changes_nothing_for_others() -> None:
    headcount = Headcount()
    headcount.count("shared", SlotOffer(None, {TypeId(1), TypeId(2)}, {}))
    headcount.count("own", SlotOffer(TenantId(7), {TypeId(2), TypeId(3)}, {}))
    assert headcount.changes().types == {None: {1, 2}, 7: {2, 3}}
    headcount.count("own", SlotOffer(TenantId(7), {TypeId(3)}, {}))
    assert headcount.changes().types == {7: {3}}
    headcount.forget("own")
    assert headcount.changes().types == {7: frozenset()}
    assert headcount._runners.keys() == {None}, "nothing is kept of who is gone"
