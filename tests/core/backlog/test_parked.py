"""Jobs that stepped aside: in order under their key, and bounded so that everybody finds room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.backlog.test_backlog import make

from fairway.core.backlog.key_limits import KeyLimit, pack
from fairway.core.backlog.parked import JOBS_PER_TENANT, LINES_PER_KEY, ParkedJobs
from fairway.core.ids import ShardId, TenantId
from fairway.core.job import QueuedJob, weight_bytes
from fairway.core.ownership.tenant_shards import TenantShards

NAME = (TenantId(1), "k", 0)


def taken(parked: ParkedJobs, used: int = 0) -> QueuedJob | None:
    entry = parked.take(NAME, used)
    return None if entry is None else entry[2]


def test_of_one_key_priority_and_then_age_decide() -> None:
    parked = ParkedJobs()
    late, early, urgent = make(3), make(1), make(2, priority=9)
    for job in (late, early, urgent):
        parked.put(NAME, 1, job)
    assert [taken(parked) for _ in range(3)] == [urgent, early, late]
    assert not parked.waits_under(NAME)
    assert len(parked) == parked.count(NAME[0]) == 0


def test_dropped_jobs_leave_nothing() -> None:
    parked = ParkedJobs()
    jobs = [make(number, priority=5 - number % 2) for number in range(5)]
    for job in jobs:
        parked.put(NAME, 1 + job.priority % 2, job)
    assert sorted(parked.drop([jobs[0].id, jobs[3].id, "unknown"])) == [jobs[0], jobs[3]]
    assert [taken(parked) for _ in range(4)] == [jobs[2], jobs[4], jobs[1], None]
    assert (parked._bytes, parked.rooms, parked.names, parked._under) == (0, {}, {}, {})


@given(st.lists(st.integers(1, 30), max_size=60), st.integers(0, 30))
def test_whoever_names_more_does_not_wait_for_whoever_names_less(
    numbers: list[int], used: int
) -> None:
    """Of few numbers exactly; of very many a job may wait for one with a lower number."""
    parked = ParkedJobs()
    jobs = {make(place).id: most for place, most in enumerate(numbers)}
    for place, most in enumerate(numbers):
        parked.put(NAME, most, make(place))
    went = []
    while (job := taken(parked, used)) is not None:
        went.append(job.id)
    assert all(jobs[job_id] > used for job_id in went)
    if len({*numbers}) <= LINES_PER_KEY:
        assert went == [job_id for job_id, most in jobs.items() if most > used]
    assert len(parked._under.get(NAME, {})) <= LINES_PER_KEY
    assert len(parked) == len(numbers) - len(went)


def test_what_a_tenant_writes_into_its_limits_weighs() -> None:
    parked = ParkedJobs(bytes_total=4_000)
    heavy = replace(make(1), limits=pack([KeyLimit("k" * 250, 1)]))
    parked.put(NAME, 1, heavy)
    assert parked._bytes == weight_bytes(heavy) > 250


def test_a_shard_that_went_takes_its_jobs_with_it() -> None:
    parked = ParkedJobs()
    parked.put(NAME, 1, make(1))
    assert parked.drop_shards({ShardId(9)}, TenantShards(1)) == []
    assert len(parked.drop_shards({ShardId(0)}, TenantShards(1))) == 1
    assert len(parked) == 0


@given(st.lists(st.integers(1, 8), max_size=200))
def test_whoever_comes_last_finds_room(tenants: list[int]) -> None:
    parked = ParkedJobs(jobs_total=64, bytes_total=64)
    for number, tenant in enumerate(map(TenantId, tenants)):
        has_room = parked.has_room(tenant, 2)
        job = make(number, tenant=tenant)
        assert parked.put((tenant, "k", 0), 1, job) is has_room
    assert len(parked) < 64
    assert parked._bytes <= 64
    held = sorted(parked.count(TenantId(tenant)) for tenant in range(1, 9))
    assert held[-1] <= 16  # by bytes: half of what the others leave, at most
    if len({*tenants}) < 4:
        assert parked.has_room(TenantId(9), 2)


def test_nobody_has_more_than_its_part() -> None:
    parked = ParkedJobs()
    assert parked.most(TenantId(1)) == JOBS_PER_TENANT
