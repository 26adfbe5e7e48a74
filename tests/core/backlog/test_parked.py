"""Jobs that stepped aside: in order under their key, and bounded so that everybody finds room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import make

from fairway.core.backlog.parked import JOBS_PER_TENANT, ParkedJobs
from fairway.core.ids import ShardId, TenantId

NAME = (TenantId(1), "k", 0)


def test_of_one_key_priority_and_then_age_decide() -> None:
    parked = ParkedJobs()
    late, early, urgent = make(3), make(1), make(2, priority=9)
    for job in (late, early, urgent):
        parked.put(NAME, job)
    assert [parked.take(NAME) for _ in range(3)] == [urgent, early, late]
    assert not parked.waits_under(NAME)
    assert len(parked) == parked.count(NAME[0]) == 0


def test_dropped_jobs_leave_nothing() -> None:
    parked = ParkedJobs()
    jobs = [make(number) for number in range(5)]
    for job in jobs:
        parked.put(NAME, job)
    assert parked.drop([jobs[0].id, jobs[3].id, "unknown"]) == [jobs[0], jobs[3]]
    assert [parked.take(NAME) for _ in range(3)] == [jobs[1], jobs[2], jobs[4]]
    assert (parked._bytes, parked._jobs_of, parked.names) == (0, {}, {})


def test_a_shard_that_went_takes_its_jobs_with_it() -> None:
    parked = ParkedJobs()
    parked.put(NAME, make(1))
    assert parked.drop_shard(ShardId(9)) == []
    assert len(parked.drop_shard(ShardId(0))) == 1
    assert len(parked) == 0


@given(st.lists(st.integers(1, 8), max_size=200))
def test_whoever_comes_last_finds_room(tenants: list[int]) -> None:
    parked = ParkedJobs(jobs_total=64, bytes_total=64)
    for number, tenant in enumerate(map(TenantId, tenants)):
        if parked.has_room(tenant, 2):
            parked.put((tenant, "k", 0), make(number, tenant=tenant))
    assert len(parked) < 64
    assert parked._bytes <= 64
    held = sorted(parked.count(TenantId(tenant)) for tenant in range(1, 9))
    assert held[-1] <= 16  # by bytes: half of what the others leave, at most
    if len({*tenants}) < 4:
        assert parked.has_room(TenantId(9), 2)


def test_nobody_has_more_than_its_part() -> None:
    parked = ParkedJobs()
    assert parked.most(TenantId(1)) == JOBS_PER_TENANT
