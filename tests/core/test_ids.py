"""Job ids: what goes in comes out, and the order of the text is the order of time."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import (
    COUNTER_MAX,
    LOWEST_JOB_ID,
    RANDOM_BITS,
    SHARDS_MAX,
    ShardId,
    id_at,
    ids_from,
    lowest_id_at,
    make_job_id,
    make_job_ids,
    parse_job_id,
    place_among,
    shard_of,
    unix_ms_of,
)

shards = st.integers(0, SHARDS_MAX - 1)
moments = st.integers(0, (1 << 48) - 1)
counters = st.integers(0, COUNTER_MAX - 1)
chances = st.integers(0, (1 << RANDOM_BITS) - 1)


@given(shards, moments, counters, chances)
def test_an_id_is_a_uuid_that_carries_its_shard_and_moment(
    shard: int, ms: int, counter: int, chance: int
) -> None:
    job = make_job_id(ShardId(shard), ms, counter, chance)
    as_uuid = uuid.UUID(job)
    assert (as_uuid.version, as_uuid.variant) == (7, uuid.RFC_4122)
    assert str(as_uuid) == job
    assert (shard_of(job), unix_ms_of(job)) == (shard, ms)
    assert parse_job_id(job) == job
    assert parse_job_id(job.upper()) == job


@given(shards, st.tuples(moments, counters, chances), st.tuples(moments, counters, chances))
def test_text_order_is_byte_order_is_time_order(
    shard: int, one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    left, right = make_job_id(ShardId(shard), *one), make_job_id(ShardId(shard), *other)
    assert (left < right) == (one < other)
    assert (uuid.UUID(left).bytes < uuid.UUID(right).bytes) == (one < other)


@given(shards, shards, moments, moments)
def test_across_shards_time_still_comes_first(
    shard: int, other_shard: int, ms: int, later_ms: int
) -> None:
    if ms < later_ms:
        assert make_job_id(ShardId(shard), ms, 5, 5) < make_job_id(
            ShardId(other_shard), later_ms, 0, 0
        )


@given(shards, moments, counters, chances)
def test_a_bound_is_below_every_id_of_its_moment_and_above_all_before(
    shard: int, ms: int, counter: int, chance: int
) -> None:
    job = make_job_id(ShardId(shard), ms, counter, chance)
    assert lowest_id_at(ms) < job
    assert job > LOWEST_JOB_ID
    if ms + 1 < 1 << 48:
        assert job < lowest_id_at(ms + 1)


@given(shards, moments, st.integers(0, 1000), chances, st.integers(0, 50))
def test_many_at_once_are_as_if_made_one_by_one(
    shard: int, ms: int, start: int, chance: int, count: int
) -> None:
    ids = make_job_ids(ShardId(shard), ms, start, chance, count)
    assert len(set(ids)) == count
    assert ids == sorted(ids)
    for job in ids:
        assert parse_job_id(job) == job
        assert (shard_of(job), unix_ms_of(job)) == (shard, ms)
    if ids:  # the first and the number tell all of them
        assert ids_from(ids[0], count) == ids
        assert [id_at(ids[0], place) for place in range(count)] == ids
        assert [place_among(ids[0], count, job) for job in ids] == [*range(count)]
        for other in (id_at(ids[0], count), make_job_id(ShardId(shard), ms, start, chance ^ 1)):
            assert place_among(ids[0], count, other) is None


@given(st.text(max_size=40))
def test_what_is_no_id_is_refused(text: str) -> None:
    assert parse_job_id(text) is None


def test_other_uuids_are_refused() -> None:
    good = make_job_id(ShardId(1), 2, 3, 4)
    for bad in (str(uuid.UUID(int=0)), str(uuid.UUID(int=1 << 127)), good + "0", good[:-1]):
        assert parse_job_id(bad) is None
    assert parse_job_id(good.replace("-", "")) is None
    assert parse_job_id(good + "\n") is None
