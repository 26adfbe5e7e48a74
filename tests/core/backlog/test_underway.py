"""Jobs under way: what a read must not bring, told apart from what it may."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import LIMITS, POOL, make

from fairway.core.backlog.reading import Reading
from fairway.core.backlog.streams import Stream, StreamKey
from fairway.core.backlog.underway import JobsUnderway
from fairway.core.backlog.windows import Windows
from fairway.core.ids import ShardId, TenantId, TypeId
from fairway.core.ownership.tenant_shards import TenantShards

some = st.frozensets(st.integers(0, 7))
JOBS = [make(number, ms=number) for number in range(8)]
IDS = [job.id for job in JOBS]


def ids(numbers: frozenset[int]) -> set[str]:
    return {IDS[number] for number in numbers}


@given(some, some, some, some, some, some)
def test_news_is_what_is_neither_here_nor_under_way(
    leased: frozenset[int],
    inserting: frozenset[int],
    unrecorded: frozenset[int],
    ended: frozenset[int],
    ended_before: frozenset[int],
    here: frozenset[int],
) -> None:
    reading = Reading(Windows({}, LIMITS), lambda pool: False)
    underway = JobsUnderway(reading, {}, TenantShards(1))
    underway.inserting_ids, underway.unrecorded_ids = set(ids(inserting)), set(ids(unrecorded))
    stream = Stream(StreamKey(TenantId(1), POOL, TypeId(1), 5), ShardId(0))
    stream.window += [JOBS[number] for number in sorted(here)]
    with reading.looking() as older:
        reading.ended(ids(ended_before))
        reading.start(stream)
        reading.ended(ids(ended))
        news = underway.news(JOBS, stream, ids(leased), stream.look)
        known = leased | inserting | unrecorded | ended | here
        assert news == [job for n, job in enumerate(JOBS) if n not in known]
        assert underway.news(JOBS, None, (), older) == [
            job
            for n, job in enumerate(JOBS)
            if n not in inserting | unrecorded | ended | ended_before
        ]
        for number, job_id in enumerate(IDS):
            old = inserting | unrecorded | ended | ended_before
            assert (job_id in underway) == (number in old)
    reading.over(stream)
    assert [job for job in IDS if job in underway] == [
        job for n, job in enumerate(IDS) if n in inserting | unrecorded
    ], "when no read is under way, ends that are on disk are no longer remembered"


def test_ends_of_a_tenant_that_was_moved_go_with_its_shard() -> None:
    homes, moved_to = TenantShards(1), ShardId(7)
    homes.learn(JOBS[0].tenant, moved_to, moved_from=(ShardId(0),))
    underway = JobsUnderway(Reading(Windows({}, LIMITS), lambda pool: False), {}, homes)
    underway.ran(JOBS[:2])
    assert underway.unrecorded_shards() == {moved_to}
    assert underway.forget_shards({ShardId(0)}) == {JOBS[0].id, JOBS[1].id}
    underway.recorded([JOBS[0].id])
    assert underway.forget_shards({moved_to}) == set() == underway.unrecorded_shards()
