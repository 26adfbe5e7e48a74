"""Ids of follow-ups: the same wherever they are computed, apart from all others, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import (
    Epoch,
    ShardId,
    make_job_id,
    parse_job_id,
    shard_of,
    unix_ms_of,
)
from fairway.core.run.follow_up_ids import (
    AHEAD_MS_MAX,
    FOLLOW_UPS_MAX,
    flaw_of_moment,
    follow_up_ids,
    moment_of,
)

NOW_MS = 1_800_000_000_000
PARENTS = st.builds(
    make_job_id,
    st.integers(0, 4095).map(ShardId),
    st.integers(NOW_MS - 10**9, NOW_MS),
    st.integers(0, 1 << 19),
    st.integers(0, (1 << 42) - 1),
)
EPOCHS = st.integers(1, 1 << 40).map(Epoch)
COUNTS = st.integers(1, 40) | st.just(FOLLOW_UPS_MAX)


@given(PARENTS, EPOCHS, COUNTS)
def test_they_are_ids_of_their_moment_in_their_parents_shard_and_in_order(
    parent: str, epoch: Epoch, count: int
) -> None:
    found = follow_up_ids(parent, epoch, NOW_MS, count)
    assert found == sorted(set(found))
    assert len(found) == count
    assert all(parse_job_id(one) == one for one in found)
    assert {(shard_of(one), unix_ms_of(one)) for one in found} == {(shard_of(parent), NOW_MS)}


@given(PARENTS, EPOCHS, COUNTS)
def test_the_nth_is_the_same_however_many_there_are(parent: str, epoch: Epoch, count: int) -> None:
    most = follow_up_ids(parent, epoch, NOW_MS, FOLLOW_UPS_MAX)
    assert follow_up_ids(parent, epoch, NOW_MS, count) == most[:count]
    assert follow_up_ids(parent, epoch, NOW_MS, 1, count - 1) == most[count - 1 : count]


@given(PARENTS, PARENTS, EPOCHS, EPOCHS)
def test_two_runs_never_share_an_id(one: str, other: str, first: Epoch, second: Epoch) -> None:
    if (one, first) != (other, second):
        mine = follow_up_ids(one, first, NOW_MS, 5)
        assert set(mine).isdisjoint(follow_up_ids(other, second, NOW_MS, 5))


@given(PARENTS, st.integers(0, NOW_MS + 2 * AHEAD_MS_MAX))
def test_a_moment_is_refused_only_of_a_clock_that_is_far_ahead(parent: str, unix_ms: int) -> None:
    at_ms = moment_of(parent, unix_ms)
    flaw = flaw_of_moment(parent, at_ms, NOW_MS)
    assert (flaw is not None) == (unix_ms > NOW_MS + AHEAD_MS_MAX)


@given(PARENTS)
def test_a_worker_that_dates_them_before_their_parent_is_refused(parent: str) -> None:
    assert flaw_of_moment(parent, unix_ms_of(parent) - 1, NOW_MS) is not None
