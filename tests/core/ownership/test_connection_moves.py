"""Which connections go to an owner, and how often."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.ids import TenantId
from fairway.core.ownership.connection_moves import (
    BUSY_PER_MILLE,
    FULL_PER_MILLE,
    PASSED_ON_MIN,
    REST_SECONDS,
    REST_SECONDS_MAX,
    SPARE_PER_MILLE,
    ConnectionMoves,
    ProcessLoad,
    may_have_more,
    rest_seconds,
)

PER_MILLE = st.integers(0, 1500)
LOADS = st.builds(ProcessLoad, PER_MILLE, PER_MILLE)


@tried()
@given(LOADS, LOADS)
def test_nobody_is_handed_more_who_is_full_or_behind(there: ProcessLoad, here: ProcessLoad) -> None:
    if may_have_more(there, here):
        assert there.full_per_mille < max(FULL_PER_MILLE, here.full_per_mille)
        is_far_busier = there.busy_per_mille >= here.busy_per_mille + SPARE_PER_MILLE
        assert not (there.busy_per_mille >= BUSY_PER_MILLE and is_far_busier)
        assert may_have_more(ProcessLoad(0, 0), here), "with less it may have more, too"
    else:
        assert there.full_per_mille >= FULL_PER_MILLE or there.busy_per_mille >= BUSY_PER_MILLE
        assert not may_have_more(ProcessLoad(*(one + 1 for one in there)), here)


TENANTS = st.integers(1, 3).map(TenantId)


@tried()
@given(st.lists(TENANTS, max_size=40))
def test_only_a_row_of_requests_for_one_tenant_lets_a_connection_go(asked: list[TenantId]) -> None:
    connection = ConnectionMoves(0, 100.0)
    for place, tenant in enumerate(asked):
        last = asked[max(0, place + 1 - PASSED_ON_MIN) : place + 1]
        is_row = len(last) == PASSED_ON_MIN and set(last) == {tenant}
        assert connection.may_go(tenant, 2, 100.0, owns_nothing=False) == is_row


@tried()
@given(st.lists(st.tuples(TENANTS, st.integers(1, 3)), max_size=40))
def test_who_owns_nothing_lets_go_what_one_process_answers(
    asked: list[tuple[TenantId, int]],
) -> None:
    connection = ConnectionMoves(0, 100.0)
    for place, (tenant, number) in enumerate(asked):
        last = asked[max(0, place + 1 - PASSED_ON_MIN) : place + 1]
        is_row = len(last) == PASSED_ON_MIN and {answered for _, answered in last} == {number}
        assert connection.may_go(tenant, number, 100.0, owns_nothing=True) == is_row


@tried()
@given(st.integers(0, 10**6), st.floats(0, 2 * REST_SECONDS_MAX))
def test_who_has_moved_stays_for_longer_each_time(moves: int, after_seconds: float) -> None:
    connection, now = ConnectionMoves(moves, 50.0), 50.0 + after_seconds
    may_go = [
        connection.may_go(TenantId(1), 2, now, owns_nothing=False) for _ in range(PASSED_ON_MIN)
    ][-1]
    assert may_go == (now >= 50.0 + rest_seconds(moves))
    assert rest_seconds(moves) <= rest_seconds(moves + 1) <= REST_SECONDS_MAX


def test_a_connection_between_two_owners_moves_a_few_times_in_ten_minutes() -> None:
    now, moves = 0.0, 0
    while now < 600:
        moves += 1
        now += rest_seconds(moves)
    assert moves <= 6
    assert rest_seconds(1) == REST_SECONDS
