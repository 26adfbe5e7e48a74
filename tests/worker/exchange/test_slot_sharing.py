"""A worker's slots between several owners: none is promised twice, and nobody waits for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.worker.exchange.slot_sharing import OwnerNeed, reserve_of, share_slots

needs = st.lists(
    st.builds(
        OwnerNeed,
        in_use=st.integers(0, 50),
        is_waiting=st.booleans(),
        weight=st.integers(1, 10_000),
    ),
    min_size=1,
    max_size=12,
)


@given(st.integers(1, 600), needs, st.integers(0, 1000))
def test_every_slot_is_given_once(slots: int, owners: list[OwnerNeed], turn: int) -> None:
    given_out = share_slots(slots, owners, turn)
    assert sum(given_out) == slots
    if slots >= sum(need.is_waiting for need in owners):
        for need, share in zip(owners, given_out, strict=True):
            assert share >= need.is_waiting, "whoever waits can start a job"


@given(st.integers(1, 600), needs, st.integers(0, 1000))
def test_whoever_waits_has_a_slot_after_a_few_turns(
    slots: int, owners: list[OwnerNeed], turn: int
) -> None:
    waiting = {number for number, need in enumerate(owners) if need.is_waiting}
    had: set[int] = set()
    for round_ in range(max(len(waiting), 1)):
        shares = share_slots(slots, owners, turn + round_)
        had |= {number for number in waiting if shares[number]}
    assert had == waiting


@given(st.integers(1, 600), needs)
def test_where_nothing_waits_no_more_is_held_than_is_used_and_a_reserve(
    slots: int, owners: list[OwnerNeed]
) -> None:
    shares = share_slots(slots, owners)
    if any(need.is_waiting for need in owners):
        for need, share in zip(owners, shares, strict=True):
            assert need.is_waiting or share <= need.in_use + reserve_of(slots)


@given(st.integers(2, 12), st.integers(1, 50), st.integers(1, 4))
def test_who_waits_shares_by_weight(owners: int, part: int, weight: int) -> None:
    alike = share_slots(owners * part, [OwnerNeed(0, True, weight)] * owners)
    assert alike == [part] * owners
    heavier = [OwnerNeed(0, True, 3 * weight)] + [OwnerNeed(0, True, weight)] * (owners - 1)
    shares = share_slots((owners + 2) * part, heavier)
    assert abs(shares[0] - 3 * part) <= 1
    assert max(shares[1:]) - min(shares[1:]) <= 1
